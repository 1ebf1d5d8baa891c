//! Congestion trees: which ports are roots, which queues they hold, and which packets are held although they don't pass
//! a root.
//!
//! A hotspot is a port at which more waits than two one-hop bandwidth-delay products: more than its flow control's
//! reaction accounts for. A root is the most downstream hotspot of a tree (Pyrrha, section 4.1). That many bytes wait
//! there which meet no further hotspot on their path, and which may be sent now and could be sent at any time since the
//! last sample. (So a port whose queue is paused and resumed in turn does not count as a root in between.) Where a flow
//! control names roots itself, those are the roots. Bytes that a pause holds are innocent if their onward path meets no
//! root of that instant. A part sees only its own ports. So it notes the sums of waiting bytes by onward path, and
//! paths are compared with roots after the run ([`table`]).
//!
//! A flow control that promises to hold a packet only for roots on its path (Pyrrha, Theorem 3.1) is checked whenever
//! one of its frames about a root arrives (before the frame takes effect), when a link fails, when routes change, and
//! when the run ends ([`findings`]). A held packet stays until one of these events releases it. So the check sees every
//! packet that was ever held in a switch.
//!
//! Where paths are chosen by queue length or at random, only the hops that all paths share are known, and only a root
//! at one of these counts. Absent: frames in flight. A pause counts from its arrival.

mod table;

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use fabric::{Fabric, Routes};
use node::Packet;
use node::link::{Cause, Held, QueueView};
use node::onward_path::Downstream;
use node::packet::flags;
use node::pool::Pool;
use node::wire::{Malformed, Reader, Writer};
use run::{Finding, Plan, Table};
use rustc_hash::FxHashMap;
use units::{Duration, NodeId, PortId, SwitchId, Time};

use super::words;
use crate::summary::{pack_cause, parse_cause};
use crate::{Probe, SwitchSlot, Upcoming, View, Wants, Whole};

/// What a part sees of congestion.
#[derive(node::State)]
pub(crate) struct Congestion {
    fabric: Arc<Fabric>,
    #[state(built("settings"))]
    downstream: Downstream,
    names_roots: bool,
    /// By link: what waits for it beyond this makes its sender's port a hotspot.
    #[state(built("settings"))]
    hotspot_bytes: Vec<u64>,
    /// By link: how long its sender's port had been paused at the last sample.
    #[state(skip("of the last sample"))]
    paused_before: Vec<Duration>,
    #[state(same(self.rows.len()))]
    rows: Vec<Row>,
    /// What waits in the rows' queues: an onward path and how many bytes take it.
    #[state(same(self.waiting.len()))]
    waiting: Vec<(u32, u64)>,
    /// Onward paths by number: links, and at the end that of the receiving host.
    #[state(same(self.paths.len()))]
    paths: Vec<Vec<u32>>,
    #[state(skip("it follows from the paths"))]
    numbers: FxHashMap<Vec<u32>, u32>,
    /// By a hash of what decides a path: packets seen of late, and the numbers of their paths. A sample sees every
    /// packet that waits, and most are of flows that waited in the same queue before.
    #[state(built("it is found again"))]
    recent: Vec<(Decides, u32)>,
    /// By number, while a queue is added up: bytes that take the path.
    #[state(skip("it is zero between samples"))]
    sums: Vec<u64>,
    kept: Kept,
    #[state(built("it is empty between samples"))]
    views: Vec<QueueView>,
    #[state(built("it is empty between samples"))]
    held: Vec<Held>,
    #[state(built("it is empty between samples"))]
    path: Vec<u32>,
}

/// The fields by which tables route a packet: the link that it waits for, its ends, flow, flow label and transport.
type Decides = [u32; 6];

/// Entries of [`Congestion::recent`], a power of two.
const RECENT: usize = 4096;

/// An entry of no packet: no link has that number.
const NOTHING: (Decides, u32) = ([u32::MAX; 6], 0);

/// A queue at a sample.
#[derive(node::Saved)]
struct Row {
    at: Time,
    link: u32,
    cause: Cause,
    hotspot: bool,
    /// Its port has been paused since the last sample.
    lately: bool,
    /// The flow control says so.
    root: bool,
    paused: bool,
    bytes: u32,
    waiting: Range<usize>,
}

/// How often a flow control's promise was kept and broken.
#[derive(Clone, Copy, Default, node::State)]
#[state(counts)]
struct Kept {
    /// Packets in queues that a root holds, a packet once an event.
    held_packets: u64,
    /// Packets among them whose path does not pass that root.
    wrong_packets: u64,
    /// The same for queues that several roots share because none was free, which the promise does not cover.
    shared_packets: u64,
    shared_wrong_packets: u64,
    /// The most isolation queues of a port.
    #[state(same)]
    queues_max: usize,
    /// Isolation queues for a root that has another at the same port.
    twins: u64,
}

impl Kept {
    fn and(&self, other: &Kept) -> Kept {
        Kept {
            held_packets: self.held_packets.saturating_add(other.held_packets),
            wrong_packets: self.wrong_packets.saturating_add(other.wrong_packets),
            shared_packets: self.shared_packets.saturating_add(other.shared_packets),
            shared_wrong_packets: self.shared_wrong_packets.saturating_add(other.shared_wrong_packets),
            queues_max: self.queues_max.max(other.queues_max),
            twins: self.twins.saturating_add(other.twins),
        }
    }
}

impl Congestion {
    /// None without a flow control.
    pub fn new(plan: &Plan) -> Option<Congestion> {
        let control = plan.scenario.flow_control.as_scheme()?;
        Some(Congestion {
            fabric: plan.fabric.clone(),
            downstream: plan.downstream.clone(),
            names_roots: control.promise().is_some(),
            hotspot_bytes: plan.hop_bdp_bytes().into_iter().map(|bytes| 2 * bytes).collect(),
            paused_before: vec![Duration::ZERO; plan.fabric.links.len()],
            rows: Vec::new(),
            waiting: Vec::new(),
            paths: Vec::new(),
            numbers: FxHashMap::default(),
            recent: vec![NOTHING; RECENT],
            sums: Vec::new(),
            kept: Kept::default(),
            views: Vec::new(),
            held: Vec::new(),
            path: Vec::new(),
        })
    }

    /// Checks the promise for the packets held at each port of a switch.
    fn audit_all(&mut self, slot: &SwitchSlot, pool: &Pool) {
        if self.names_roots {
            for port in (0..slot.switch.ports().len()).map(PortId::from) {
                self.audit(slot, port, None, pool);
            }
        }
    }

    /// What one root, or any, holds at a port.
    fn audit(&mut self, slot: &SwitchSlot, port: PortId, root: Option<Cause>, pool: &Pool) {
        let Some(control) = slot.switch.flow_control() else { return };
        let mut held = std::mem::take(&mut self.held);
        control.held(port, &mut |of| {
            if root.is_none_or(|root| root.covers(of.root)) {
                held.push(of);
            }
        });
        let mut path = std::mem::take(&mut self.path);
        for Held { root, shared, packets } in held.drain(..) {
            let Some(root) = root_link(&self.fabric, root) else { continue };
            for id in packets.iter(pool) {
                self.onward(slot.id, port, &pool.get(id).packet, &mut path);
                let wrong = u64::from(!path.contains(&root));
                let kept = &mut self.kept;
                let (seen, off) = match shared {
                    false => (&mut kept.held_packets, &mut kept.wrong_packets),
                    true => (&mut kept.shared_packets, &mut kept.shared_wrong_packets),
                };
                *seen += 1;
                *off += wrong;
            }
        }
        (self.path, self.held) = (path, held);
        let mut views = std::mem::take(&mut self.views);
        views.clear();
        control.queues(slot.switch.ports(), port, &mut |view| views.push(view));
        self.count_queues(&views);
        self.views = views;
    }

    fn see_port(&mut self, now: Time, slot: &SwitchSlot, port: PortId, pool: &Pool) {
        let Some(control) = slot.switch.flow_control() else { return };
        let mut views = std::mem::take(&mut self.views);
        views.clear();
        control.queues(slot.switch.ports(), port, &mut |view| views.push(view));
        let link = self.fabric.out_link(SwitchId(slot.id), port).0;
        let waiting: u64 = views.iter().map(|view| u64::from(view.bytes)).sum();
        let hotspot = waiting > self.hotspot_bytes[link as usize];
        let paused = slot.switch.port(port).paused_time(now);
        let lately = paused > std::mem::replace(&mut self.paused_before[link as usize], paused);
        for view in &views {
            let QueueView { cause, paused, root, bytes, .. } = *view;
            if paused || root || hotspot && bytes > 0 {
                let waiting = self.add_up(slot.id, port, view, pool);
                self.rows.push(Row { at: now, link, cause, hotspot, lately, root, paused, bytes, waiting });
            }
        }
        self.views = views;
    }

    /// Adds up the onward paths of what waits in a queue.
    fn add_up(&mut self, switch: u32, port: PortId, view: &QueueView, pool: &Pool) -> Range<usize> {
        let begin = self.waiting.len();
        let link = self.fabric.out_link(SwitchId(switch), port).0;
        for id in view.packets.iter(pool) {
            let packet = &pool.get(id).packet;
            let number = self.number_of(switch, port, link, packet);
            let sum = &mut self.sums[number as usize];
            if *sum == 0 {
                self.waiting.push((number, 0));
            }
            *sum += u64::from(packet.wire_bytes);
        }
        for (number, bytes) in &mut self.waiting[begin..] {
            *bytes = std::mem::take(&mut self.sums[*number as usize]);
        }
        begin..self.waiting.len()
    }

    fn onward(&self, switch: u32, port: PortId, packet: &Packet, path: &mut Vec<u32>) {
        path.clear();
        let from = self.fabric.switch_node(SwitchId(switch));
        path.extend(self.downstream.onward(from, port, packet).map(|hop| self.fabric.out_link(hop.switch, hop.port).0));
        path.push(self.fabric.uplink(packet.dst).0);
    }

    /// The number of a packet's onward path from a port, whose link is `link`.
    fn number_of(&mut self, switch: u32, port: PortId, link: u32, packet: &Packet) -> u32 {
        let decides =
            [link, packet.src.0, packet.dst.0, packet.flow.0, packet.flow_label(), u32::from(packet.transport)];
        // The flow brings most of the others with it.
        let hash = (u64::from(packet.flow.0) << 32 | u64::from(link)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let at = (hash >> (u64::BITS - RECENT.ilog2())) as usize;
        let routed = packet.has(flags::SOURCE_ROUTED);
        let (known, number) = self.recent[at];
        if known == decides && !routed {
            debug_assert!(self.is_path(number, switch, port, packet), "what decides the path decides it alone");
            return number;
        }
        let mut path = std::mem::take(&mut self.path);
        self.onward(switch, port, packet, &mut path);
        let number = self.number(&path);
        self.path = path;
        if !routed {
            self.recent[at] = (decides, number);
        }
        number
    }

    fn is_path(&self, number: u32, switch: u32, port: PortId, packet: &Packet) -> bool {
        let mut path = Vec::new();
        self.onward(switch, port, packet, &mut path);
        path == self.paths[number as usize]
    }

    fn number(&mut self, path: &[u32]) -> u32 {
        if let Some(&number) = self.numbers.get(path) {
            return number;
        }
        let number = self.paths.len() as u32;
        self.numbers.insert(path.to_vec(), number);
        self.paths.push(path.to_vec());
        self.sums.push(0);
        number
    }

    fn set_routes(&mut self, routes: &Arc<Routes>) {
        self.downstream.set_routes(routes.clone());
        self.recent.fill(NOTHING);
    }

    fn count_queues(&mut self, views: &[QueueView]) {
        let isolation = views.iter().filter(|view| !view.root && matches!(view.cause, Cause::Root { .. }));
        let causes: Vec<Cause> = isolation.map(|view| view.cause).collect();
        let roots: BTreeSet<Cause> = causes.iter().copied().collect();
        self.kept.queues_max = self.kept.queues_max.max(causes.len());
        self.kept.twins += (causes.len() - roots.len()) as u64;
    }
}

impl Probe for Congestion {
    fn wants(&self) -> Wants {
        Wants { frames: self.names_roots, samples: true, ..Wants::default() }
    }

    /// What the root that a frame names holds at a port is held to the promise.
    fn on_frame(&mut self, _: Time, slot: &SwitchSlot, port: PortId, frame: &Packet, pool: &Pool) {
        if !self.names_roots {
            return;
        }
        let Some(root) = slot.switch.flow_control().and_then(|control| control.about(frame)) else { return };
        self.audit(slot, port, Some(root), pool);
    }

    fn on_sample(&mut self, now: Time, view: View<'_>) {
        for slot in view.switches {
            for port in (0..slot.switch.ports().len()).map(PortId::from) {
                self.see_port(now, slot, port, view.pool);
            }
        }
        for slot in view.hosts {
            let uplinks = self.fabric.uplinks(slot.host.id());
            slot.host.held(&mut |port, cause| {
                let link = uplinks[port.index()].0;
                let place = Row {
                    at: now,
                    link,
                    cause,
                    hotspot: false,
                    lately: false,
                    root: false,
                    paused: true,
                    bytes: 0,
                    waiting: 0..0,
                };
                self.rows.push(place);
            });
        }
    }

    fn on_thin(&mut self, interval: Duration) {
        self.rows.retain(|row| row.at.is_multiple_of(interval));
        let waiting = std::mem::take(&mut self.waiting);
        for row in &mut self.rows {
            let begin = self.waiting.len();
            self.waiting.extend_from_slice(&waiting[row.waiting.clone()]);
            row.waiting = begin..self.waiting.len();
        }
    }

    fn on_change(&mut self, _: Time, change: Upcoming<'_>, view: View<'_>) {
        match change {
            Upcoming::Routes(routes) => {
                self.end(view);
                self.set_routes(routes);
            }
            // Switches now differ in their tables, so the path that a node computes may not be the packet's. The
            // promise is no longer checked, and samples use the newest tables.
            Upcoming::RoutesOfSome(routes) => {
                self.end(view);
                self.names_roots = false;
                self.set_routes(routes);
            }
            Upcoming::LinkOf(switch) => self.audit_all(&view.switches[switch as usize], view.pool),
            Upcoming::GuaranteeEnds => {}
        }
    }

    fn end(&mut self, view: View<'_>) {
        view.switches.iter().for_each(|slot| self.audit_all(slot, view.pool));
    }

    fn pack(&self, to: &mut Writer<'_>) {
        words::pack_each(to, self.paths.iter(), |to, path| {
            words::pack_each(to, path.iter(), |to, link| to.u32(*link));
        });
        words::pack_each(to, self.rows.iter(), |to, row| {
            to.u64(row.at.ps());
            to.u32(row.link);
            pack_cause(to, row.cause);
            let flags = [row.hotspot, row.lately, row.root, row.paused];
            flags.into_iter().for_each(|flag| to.u8(flag.into()));
            to.u32(row.bytes);
            words::pack_each(to, self.waiting[row.waiting.clone()].iter(), |to, (path, bytes)| {
                to.u32(*path);
                to.u64(*bytes);
            });
        });
        let Kept { held_packets, wrong_packets, shared_packets, shared_wrong_packets, queues_max, twins } = self.kept;
        let kept = [held_packets, wrong_packets, shared_packets, shared_wrong_packets, queues_max as u64, twins];
        kept.into_iter().for_each(|count| to.u64(count));
    }

    fn absorb(&mut self, from: &mut Reader<'_>) -> Result<(), Malformed> {
        from.begin("congestion");
        let wrong = Malformed { what: "congestion" };
        let mut numbers = Vec::new();
        for _ in 0..from.u64()? {
            let mut path = Vec::new();
            for _ in 0..from.u64()? {
                path.push(from.u32()?);
            }
            numbers.push(self.number(&path));
        }
        for _ in 0..from.u64()? {
            let (at, link) = (words::time(from)?, from.u32()?);
            if link as usize >= self.fabric.links.len() {
                return Err(wrong);
            }
            let cause = cause_in(&self.fabric, from)?;
            let [hotspot, lately, root, paused] = from.array()?.map(|flag: u8| flag != 0);
            let (bytes, begin) = (from.u32()?, self.waiting.len());
            for _ in 0..from.u64()? {
                let number = *numbers.get(from.u32()? as usize).ok_or(wrong)?;
                // No more than a queue can hold, so that sums fit.
                let waiting = from.u64()?.min(1 << 32);
                self.waiting.push((number, waiting));
            }
            let waiting = begin..self.waiting.len();
            self.rows.push(Row { at, link, cause, hotspot, lately, root, paused, bytes, waiting });
        }
        let mut count = || words::count(from);
        let other = Kept {
            held_packets: count()?,
            wrong_packets: count()?,
            shared_packets: count()?,
            shared_wrong_packets: count()?,
            queues_max: count()? as usize,
            twins: count()?,
        };
        self.kept = self.kept.and(&other);
        Ok(())
    }

    fn tables(seen: &[&Congestion], whole: &Whole<'_>) -> Vec<Table> {
        table::table(seen, whole.plan).into_iter().collect()
    }

    /// Whether a flow control that names roots held what it should, and no more.
    fn findings(seen: &[&Congestion], whole: &Whole<'_>) -> Vec<Finding> {
        findings(whole.plan, seen)
    }
}

/// The link of a root, whose port sends on it; of a host, its own.
fn root_link(fabric: &Fabric, cause: Cause) -> Option<u32> {
    match cause {
        Cause::Root { node, port, .. } => Some(fabric.ports[root_node(fabric, node).index()][usize::from(port)].0),
        _ => None,
    }
}

fn root_node(fabric: &Fabric, node: u32) -> NodeId {
    NodeId(node.checked_sub(fabric.switches).unwrap_or(node + fabric.hosts))
}

/// The causes that a queue can have in this fabric.
fn cause_in(fabric: &Fabric, from: &mut Reader<'_>) -> Result<Cause, Malformed> {
    let what = "queue of congestion";
    let cause = parse_cause(from, what)?;
    let is_there = match cause {
        Cause::Root { node, port, .. } if node < fabric.nodes() => {
            usize::from(port) < fabric.ports[root_node(fabric, node).index()].len()
        }
        Cause::Root { .. } => false,
        Cause::Class(_) | Cause::Queue(_) | Cause::Flow(_) => true,
    };
    is_there.then_some(cause).ok_or(Malformed { what })
}

fn findings(plan: &Plan, seen: &[&Congestion]) -> Vec<Finding> {
    let Some(promise) = plan.scenario.flow_control.as_scheme().and_then(|control| control.promise()) else {
        return Vec::new();
    };
    let all = seen.iter().fold(Kept::default(), |all, seen| all.and(&seen.kept));
    let until = plan.tables_differ_from().map_or(String::new(), |at| {
        format!("; checked until {}, when the tables of switches began to differ", at.since(Time::ZERO))
    });
    let Kept { held_packets, wrong_packets, shared_packets, shared_wrong_packets, queues_max, twins } = all;
    let shared = match shared_packets {
        0 => String::new(),
        _ => format!(
            "in queues that several roots share because queues ran out, which the theorem does not cover, \
             {shared_wrong_packets} of {shared_packets} do not; "
        ),
    };
    vec![
        Finding {
            name: "flows are held only by roots on their own onward path",
            ok: wrong_packets == 0 || !promise.on_path,
            detail: format!(
                "{wrong_packets} of {held_packets} packets that pause frames held do not pass their root; \
                 {shared}{:.2}% of held bytes, over all samples, wait for a root that has ended{until}",
                100.0 * table::innocent_share(seen)
            ),
        },
        Finding {
            name: "never more isolation queues than roots on a port",
            ok: twins == 0 || !promise.queue_a_root,
            detail: format!("at most {queues_max} on a port; {twins} were taken for a root that had one there already"),
        },
    ]
}

#[cfg(test)]
mod tests;
