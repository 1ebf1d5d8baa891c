//! The bytes that a switch holds by port and class of arrival, and which of these are paused.

use node::link::{Cause, LinkCx, Share};
use node::packet::CLASSES;
use node::pool::PacketId;
use units::{Bytes, PortId, Problem, Rate, SwitchId, Time};

use super::{Config, Expiry, Frame, frame_of};
use contract::link_control::LinkView;

/// PFC's accounts of a switch.
#[derive(node::State)]
pub(crate) struct Ingress {
    /// By port: the multiple of the free memory that one of its classes may take.
    #[state(built("settings"))]
    alpha: Vec<f64>,
    resume_offset: u64,
    lossless: u8,
    buffer_bytes: u64,
    /// Headroom that is kept from lossy classes from the start.
    kept_bytes: u64,
    /// Bytes of lossless classes that are here, and of these what arrived after a pause.
    lossless_bytes: u64,
    in_headroom: u64,
    /// By port: headroom of each of its classes.
    #[state(built("settings"))]
    headroom: Vec<u64>,
    /// Headroom set aside in total.
    reserved_bytes: u64,
    accounts: Vec<[Account; CLASSES]>,
    expiry: Option<Box<Expiry>>,
    #[state(count)]
    pauses: u64,
    #[state(count)]
    resumes: u64,
}

/// Bytes that arrived by a port in a class and are still here.
#[derive(Clone, Copy, Debug, Default, node::State)]
struct Account {
    bytes: u64,
    reserved: bool,
    paused: bool,
    /// Bytes when it was last paused.
    #[state(when(self.paused, _))]
    paused_at: u64,
}

impl Account {
    /// Of `headroom`, the part that is filled.
    fn in_headroom(&self, headroom: u64) -> u64 {
        if self.paused { self.bytes.saturating_sub(self.paused_at).min(headroom) } else { 0 }
    }
}

/// By port of a switch, what each of its classes is given.
fn headroom(config: &Config, view: &LinkView<'_>, switch: SwitchId) -> impl Iterator<Item = u64> {
    let node = view.fabric.switch_node(switch);
    let ports = (0..view.fabric.ports[node.index()].len()).map(PortId::from);
    let asked =
        move |port| config.headroom_bdps.map_or(0, |bdps| (bdps * view.hop_bdp_bytes(node, port) as f64) as u64);
    ports.map(move |port| match &config.headroom {
        Some(headroom) => headroom.bytes(view.rate(node, port), view.round_trip(node, port), view.mtu_bytes),
        None => view.reaction_bytes(node, port).max(asked(port)),
    })
}

impl Ingress {
    /// Whether a switch has memory beyond its headroom.
    pub fn check(config: &Config, view: &LinkView<'_>, switch: SwitchId) -> Result<(), Problem> {
        let all: u64 = headroom(config, view, switch).sum();
        let node = view.fabric.switch_node(switch);
        let buffer = view.memory_bytes(node);
        if all >= buffer {
            let name = &view.fabric.names[node.index()];
            let (all, buffer) = (Bytes(all), Bytes(buffer));
            let message = format!("{name} needs {all} of headroom and has a buffer of {buffer}; enlarge switch.buffer");
            return Err(Problem::new("alpha", message));
        }
        Ok(())
    }

    /// Headroom that is less than what still arrives after a pause, and memory of which headroom leaves so little that
    /// a link runs dry after each pause.
    pub fn doubt(config: &Config, view: &LinkView<'_>, switch: SwitchId) -> Option<Problem> {
        let node = view.fabric.switch_node(switch);
        let given: Vec<u64> = headroom(config, view, switch).collect();
        let name = |port: PortId| {
            let to = view.fabric.link(view.fabric.ports[node.index()][port.index()]).to;
            format!("{} from {}", view.fabric.names[node.index()], view.fabric.names[to.index()])
        };
        let arrives = |port: usize| view.reaction_bytes(node, PortId::from(port));
        if let Some(port) = (0..given.len()).find(|&port| given[port] < arrives(port)) {
            let (needed, given) = (Bytes(arrives(port)), Bytes(given[port]));
            let message = format!(
                "gives {given} to {}, where {needed} still arrive after a pause, so packets are lost; write the \
                 cable's real length, or leave headroom out",
                name(PortId::from(port))
            );
            return Some(Problem::new("headroom", message));
        }
        // One port alone is paused at this many bytes, and goes on with `resume_offset` less. The rest of the
        // queue has to last until packets arrive again.
        let left = view.memory_bytes(node).saturating_sub(given.iter().sum());
        let paused_at = |alpha: f64| (left as f64 * alpha / (1.0 + alpha)) as u64;
        let own = Ingress::new(config, view, switch);
        let dry = |port: &usize| paused_at(own.alpha[*port]).saturating_sub(own.resume_offset) < arrives(*port);
        let port = (0..given.len()).find(dry)?;
        let message = format!(
            "pauses {} at {}, because {} of {} are headroom: after each pause the link idles until packets arrive \
             again, unless {} wait here; enlarge switch.buffer",
            name(PortId::from(port)),
            Bytes(paused_at(own.alpha[port])),
            Bytes(given.iter().sum()),
            Bytes(view.memory_bytes(node)),
            Bytes(arrives(port) + own.resume_offset),
        );
        Some(Problem::new("alpha", message))
    }

    /// The accounts of a switch that holds nothing.
    pub fn new(config: &Config, view: &LinkView<'_>, switch: SwitchId) -> Ingress {
        let node = view.fabric.switch_node(switch);
        let headroom: Vec<u64> = headroom(config, view, switch).collect();
        let share = |per: Rate, port| view.rate(node, port).bps() as f64 / per.bps() as f64;
        let alpha = |port| config.per_rate.map_or(config.alpha, |per| (config.alpha * share(per, port)).min(1.0));
        let buffer_bytes = view.memory_bytes(node);
        // For each lossless class, as far as half of the memory goes, and for one in any case.
        let of_class: u64 = headroom.iter().sum();
        let classes = (buffer_bytes / 2 / of_class.max(1)).clamp(1, u64::from(config.mask().count_ones()));
        let rates = (0..headroom.len()).map(|port| view.rate(node, PortId::from(port)));
        Ingress {
            expiry: Expiry::new(config.quanta(), rates),
            alpha: (0..headroom.len()).map(PortId::from).map(alpha).collect(),
            resume_offset: config.resume_offset.get(),
            lossless: config.mask(),
            buffer_bytes,
            kept_bytes: of_class * classes,
            lossless_bytes: 0,
            in_headroom: 0,
            accounts: vec![[Account::default(); CLASSES]; headroom.len()],
            headroom,
            reserved_bytes: 0,
            pauses: 0,
            resumes: 0,
        }
    }

    /// An admitted packet has arrived in `class` of the link.
    #[inline]
    pub fn came(&mut self, cx: &mut LinkCx<'_>, id: PacketId, class: u8) {
        let slot = cx.pool.get(id);
        let port = PortId(u32::from(slot.transit.in_port));
        let bytes = u64::from(slot.packet.wire_bytes);
        let account = &mut self.accounts[port.index()][usize::from(class)];
        let before = account.in_headroom(self.headroom[port.index()]);
        account.bytes += bytes;
        if self.lossless >> class & 1 == 0 {
            return;
        }
        self.lossless_bytes += bytes;
        if account.paused {
            self.in_headroom += account.in_headroom(self.headroom[port.index()]) - before;
            return;
        }
        if !account.reserved {
            account.reserved = true;
            self.reserved_bytes += self.headroom[port.index()];
        }
        let threshold = self.threshold(port, *cx.used_bytes);
        let account = &mut self.accounts[port.index()][usize::from(class)];
        if account.bytes > threshold {
            account.paused = true;
            account.paused_at = account.bytes;
            self.pauses += 1;
            cx.send(port, frame_of(&mut self.expiry, cx.now, port, 1 << class, true));
        }
    }

    /// A packet that arrived in `class` of its link has left the buffer.
    #[inline]
    pub fn left(&mut self, cx: &mut LinkCx<'_>, id: PacketId, class: u8) {
        let slot = cx.pool.get(id);
        let (port, bytes) = (PortId(u32::from(slot.transit.in_port)), u64::from(slot.packet.wire_bytes));
        let threshold = self.threshold(port, *cx.used_bytes - bytes);
        let account = &mut self.accounts[port.index()][usize::from(class)];
        let before = account.in_headroom(self.headroom[port.index()]);
        account.bytes -= bytes;
        if self.lossless >> class & 1 == 1 {
            self.lossless_bytes -= bytes;
        }
        // An empty account always resumes, however low the threshold is.
        if account.paused && account.bytes <= threshold.saturating_sub(self.resume_offset) {
            account.paused = false;
            self.resumes += 1;
            cx.send(port, frame_of(&mut self.expiry, cx.now, port, 1 << class, false));
        }
        self.in_headroom -= before - account.in_headroom(self.headroom[port.index()]);
    }

    /// The neighbour at `port` has sent a frame.
    pub fn heard(&mut self, now: Time, port: PortId, frame: Frame) {
        if let Some(expiry) = &mut self.expiry {
            expiry.heard(now, port, frame);
        }
    }

    /// When a pause ends by itself or is to be sent again.
    pub fn next_at(&self) -> Time {
        self.expiry.as_ref().map_or(Time::MAX, |expiry| expiry.next_at())
    }

    /// That time has come.
    pub fn wake(&mut self, cx: &mut LinkCx<'_>) {
        if let Some(expiry) = &mut self.expiry {
            expiry.wake(cx, |cx, port, frame| frame.obey(cx, port));
        }
    }

    /// The link at `port` has gone down or come up: nothing is paused at either end.
    pub fn link_changed(&mut self, cx: &mut LinkCx<'_>, port: PortId) {
        if let Some(expiry) = &mut self.expiry {
            expiry.clear(port);
        }
        cx.ports[port.index()].set_paused(0, cx.now);
        for account in &mut self.accounts[port.index()] {
            self.in_headroom -= account.in_headroom(self.headroom[port.index()]);
            account.paused = false;
        }
        cx.port_ready(port);
    }

    /// The memory that packets of a class may use. Packets that still arrive from paused neighbours have their
    /// headroom, whatever lossy classes fill in the meantime; and before the first lossless packet has come they leave
    /// room for it.
    #[inline]
    pub fn share(&self, class: u8) -> Share {
        if self.lossless >> class & 1 == 1 {
            return Share::Lossless;
        }
        let unused = self.reserved_bytes - self.in_headroom;
        let kept_bytes = unused.max(self.kept_bytes.saturating_sub(self.lossless_bytes));
        Share::Lossy { classes: !self.lossless, kept_bytes }
    }

    /// The class that a packet which arrived in `class` may pause.
    pub fn holds_back(&self, class: u8) -> Option<Cause> {
        (self.lossless >> class & 1 == 1).then_some(Cause::Class(class))
    }

    pub fn counters(&self) -> Vec<(&'static str, u64)> {
        let own = [("pfc_pauses", self.pauses), ("pfc_resumes", self.resumes)];
        own.into_iter().chain(self.expiry.iter().flat_map(|expiry| expiry.counters())).collect()
    }

    fn threshold(&self, port: PortId, used_bytes: u64) -> u64 {
        let free = self.buffer_bytes.saturating_sub(self.reserved_bytes).saturating_sub(used_bytes);
        (self.alpha[port.index()] * free as f64) as u64
    }
}
