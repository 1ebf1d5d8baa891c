//! Priority flow control (IEEE 802.1Qbb): lossless operation by pausing a class on a whole link.
//!
//! A switch counts the bytes that it holds by the port and class of their arrival. When a count exceeds its threshold,
//! the neighbour at that port is told to pause the class; when it has fallen `resume_offset` below, to resume. The
//! threshold is dynamic (Choudhury and Hahne 1998, as in switches of RoCE networks): `alpha` times the memory that is
//! free of packets and of headroom. Headroom is set aside for each port and class from its first packet on. It takes
//! the bytes that still arrive after the decision to pause
//! ([`LinkView::reaction_bytes`](contract::link_control::LinkView::reaction_bytes)), so no packet of a lossless class
//! is ever lost.
//!
//! Lossless classes share all memory of a switch, whether or not it is divided by port, and no limit of a queue drops
//! their packets: pauses limit them. From the other classes headroom is kept from the start, as in switches that
//! reserve it for each priority group (SONiC): for all lossless classes of all ports as far as half of the memory goes,
//! and for one class in any case.
//!
//! Packets stay in the port's class queues. Pausing a whole class also blocks traffic that does not contribute to the
//! congestion: head-of-line blocking, pause storms and, if pauses form a circle, deadlock. The simulation shows all of
//! these (Pyrrha, section 2.2).
//!
//! By default a pause holds until it is lifted, and its frames are never lost. With `quanta` it ends by itself and is
//! refreshed, as in real switches (`pfc/expiry.rs`), and links that lose packets lose frames too.
//!
//! Deliberately absent: watchdogs that drop what a storm holds, and the guaranteed minimum of each queue
//! (`flow_control = "mmu"` has both).

mod expiry;
mod ingress;

use std::fmt;

use node::layout::{Bits, Field, Layout, Message, Shown};
use node::link::{Cause, Dequeued, LinkCx, NicControl, QueueDiscipline, QueueView, Share, frame_packet};
use node::packet::CLASSES;
use node::pool::{PacketId, Slot};
use node::wire::{Malformed, Reader, Writer};
use node::{Header, Packet, Port};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Bytes, Duration, HostId, PortId, Problem, Rate, SwitchId, Time};

use contract::link_control::{LinkScheme, LinkView, check_classes, class_mask};
use contract::{About, Compared, HeaderFormat, headers_of};

pub(crate) use expiry::{Expiry, Quanta, frame as frame_of};
pub(crate) use ingress::Ingress;

/// Configuration of PFC.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Threshold of a port and class as a multiple of the free memory (Pyrrha, section 6). Default: 2.
    pub alpha: f64,
    /// Port rate that `alpha` is meant for. Ports of other rates scale it in proportion, to at most 1, so that faster
    /// ports may hold more. Default: `alpha` holds for all ports.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_rate: Option<Rate>,
    /// Headroom of each port and class, in one-hop bandwidth-delay products, if it should be more than the bytes that
    /// arrive during the reaction. Default: the bytes that arrive during the reaction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub headroom_bdps: Option<f64>,
    /// Headroom by the formula with which operators configure switches, instead of the bytes that arrive here during
    /// the reaction. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub headroom: Option<Headroom>,
    /// How far below the threshold the count has to fall before a pause is lifted. Default: 3000B.
    pub resume_offset: Bytes,
    /// The lossless classes. Packets of other classes are dropped when memory is full. Class 0 carries acknowledgements
    /// and other control packets, too few to need PFC. Default: 1 to 7.
    pub classes: Vec<u8>,
    /// Quanta of 512 bit times after which a pause ends by itself, 1 to 65535. Frames may be lost then, like packets.
    /// Default: a pause holds until it is lifted, and no frame is lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quanta: Option<u16>,
    /// Quanta after which a pause is sent again while it is to last; 0 for never. Default: half of `quanta`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refresh: Option<u16>,
}

/// Headroom as SONiC computes it for switches of several vendors (its design "dynamically headroom calculation", and
/// the scripts `buffer_headroom_*.lua` of sonic-swss): a frame of the class that has begun, and a frame before the
/// pause, both directions of the cable, and what the neighbour sends until it answers.
///
/// It is a setting of switches, so it may be too small: if cables are longer, or `mtu` is too small, a lossless class
/// loses packets, as it would in a real network with this configuration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Headroom {
    /// Length of the cables in metres, at 198,000 km/s. Default: the length that follows from each link's delay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cable_m: Option<f64>,
    /// Largest frame on the link, of any class. Default: `host.mtu`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mtu: Option<Bytes>,
    /// Bytes that a neighbour sends from when a pause arrives until it stops. Default: the most that IEEE 802.3,
    /// 31B.3.7 allows at the link's rate: 394 quanta of 64 bytes at 100 Gbps, 453 at 200, 905 at 400.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response: Option<Bytes>,
    /// Size of the cells of the switch's memory. A packet of 64 bytes that arrives after a pause takes a whole cell, so
    /// headroom for these packets is larger by that factor. Default: memory has no cells.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cell: Option<Bytes>,
}

/// Light in fibre, in metres a second, as in SONiC's formula.
const LIGHT_M_PER_S: f64 = 198_000_000.0;
/// A quantum of pauses, 512 bits.
const QUANTUM_BYTES: u64 = 64;
/// By rate in Gbps: within how many quanta a port stops (IEEE 802.3, 31B.3.7). Rates between have those of the next;
/// faster ports, for which no number is public, have those of 400 Gbps in proportion.
const QUANTA: [(u64, u64); 7] = [(10, 67), (25, 80), (40, 118), (50, 147), (100, 394), (200, 453), (400, 905)];
/// The shortest packet of Ethernet.
const SHORTEST_BYTES: u64 = 64;

impl Headroom {
    /// The headroom, in bytes, for a link of this rate whose delay both ways is `round_trip`, between nodes with
    /// packets of `mtu_bytes`.
    pub fn bytes(&self, rate: Rate, round_trip: Duration, mtu_bytes: u64) -> u64 {
        let mtu = self.mtu.map_or(mtu_bytes, Bytes::get);
        let on_cable = match self.cable_m {
            Some(metres) => (2.0 * metres / LIGHT_M_PER_S * rate.bps() as f64 / 8.0) as u64,
            None => rate.bytes_in(round_trip),
        };
        let response = self.response.map_or_else(|| response_bytes(rate), Bytes::get);
        let after = mtu + on_cable + response;
        mtu_bytes + in_cells(after, self.cell.map(Bytes::get))
    }

    fn check(&self) -> Result<(), Problem> {
        if let Some(metres) = self.cable_m.filter(|metres| !(*metres >= 0.0 && *metres <= 100_000.0)) {
            return Err(Problem::new("cable_m", format!("{metres} is not between 0 and 100000 metres")));
        }
        if let Some(mtu) = self.mtu.filter(|mtu| !(SHORTEST_BYTES..=16_384).contains(&mtu.get())) {
            return Err(Problem::new("mtu", format!("{mtu} is not between 64B and 16384B, the frames of Ethernet")));
        }
        if let Some(cell) = self.cell.filter(|cell| !(1..=16_384).contains(&cell.get())) {
            return Err(Problem::new(
                "cell",
                format!("{cell} is not between 1B and 16384B; a cell has some 100 to 300"),
            ));
        }
        Ok(())
    }
}

/// The most memory that `bytes` of packets of any size take in cells of `cell` bytes (SONiC's formula).
pub(crate) fn in_cells(bytes: u64, cell: Option<u64>) -> u64 {
    match cell {
        None => bytes,
        // A cell for each packet; a small cell may be filled by a byte more than its size.
        Some(cell) if cell > 2 * SHORTEST_BYTES => bytes * cell / SHORTEST_BYTES,
        Some(cell) => bytes * 2 * cell / (1 + cell),
    }
}

/// The most that a port of this rate sends from when a pause arrives until it stops.
fn response_bytes(rate: Rate) -> u64 {
    let gbps = rate.bps().div_ceil(1_000_000_000);
    let (fastest, most) = QUANTA[QUANTA.len() - 1];
    let quanta = QUANTA.iter().find(|of| gbps <= of.0).map_or((gbps * most).div_ceil(fastest), |of| of.1);
    quanta * QUANTUM_BYTES
}

impl Default for Config {
    fn default() -> Config {
        let classes = (1..CLASSES as u8).collect();
        Config {
            alpha: 2.0,
            per_rate: None,
            headroom_bdps: None,
            headroom: None,
            resume_offset: Bytes(3_000),
            classes,
            quanta: None,
            refresh: None,
        }
    }
}

impl LinkScheme for Config {
    fn about(&self) -> About {
        About {
            title: "Priority flow control (PFC)",
            source: "IEEE 802.1Qbb",
            summary: "A switch that runs short of buffer pauses a priority class on the link from which its packets \
                      come.",
            needs: "switches: a counter for each port and class, headroom",
        }
    }

    /// Lossless transports run over it, and it has no row of its own.
    fn compared(&self) -> Compared {
        Compared::No
    }

    fn frames(&self) -> &'static dyn HeaderFormat {
        headers_of::<Frame>()
    }

    fn check(&self) -> Result<(), Problem> {
        if !(self.alpha > 0.0 && self.alpha.is_finite()) {
            return Err(Problem::new("alpha", format!("{} is not a positive number", self.alpha)));
        }
        if self.per_rate.is_some_and(|rate| rate == Rate::ZERO) {
            return Err(Problem::new("per_rate", "0 is not the rate of a port; write one, such as \"100Gbps\""));
        }
        if let Some(bdps) = self.headroom_bdps.filter(|bdps| !(*bdps > 0.0 && *bdps <= 1e6)) {
            return Err(Problem::new("headroom_bdps", format!("{bdps} is not above 0 and at most 1e6")));
        }
        if let Some(headroom) = &self.headroom {
            if self.headroom_bdps.is_some() {
                return Err(Problem::new("headroom_bdps", "headroom says the same in another way; delete one of them"));
            }
            headroom.check().map_err(|problem| problem.under("headroom"))?;
        }
        Quanta::check(self.quanta, self.refresh)?;
        check_classes(&self.classes, "names no class; name at least one, or leave flow_control out")
    }

    fn check_on(&self, view: &LinkView<'_>, switch: SwitchId) -> Result<(), Problem> {
        Ingress::check(self, view, switch)
    }

    fn doubt(&self, view: &LinkView<'_>, switch: SwitchId) -> Option<Problem> {
        Ingress::doubt(self, view, switch).or_else(|| Quanta::doubt(self.quanta, self.refresh))
    }

    fn switch_control(&self, view: &LinkView<'_>, switch: SwitchId) -> Box<dyn QueueDiscipline> {
        Box::new(SwitchPart { ingress: Ingress::new(self, view, switch) })
    }

    fn held_classes(&self) -> u8 {
        self.mask()
    }

    fn pools_buffer(&self) -> bool {
        true
    }

    fn keeps_time(&self) -> bool {
        self.quanta.is_some()
    }

    fn bears_lost_frames(&self) -> bool {
        self.quanta.is_some()
    }

    fn nic_control(&self, view: &LinkView<'_>, host: HostId, port: PortId) -> Option<Box<dyn NicControl>> {
        Some(nic_part(view, host, port, self.mask(), self.resume_offset, self.quanta()))
    }
}

/// A NIC that obeys pauses, and pauses these classes.
pub(crate) fn nic_part(
    view: &LinkView<'_>,
    host: HostId,
    port: PortId,
    lossless: u8,
    resume_offset: Bytes,
    quanta: Option<Quanta>,
) -> Box<dyn NicControl> {
    // With several links, all deliver more until they fall silent.
    let reaction = view.of_ports(host, |node, port| view.reaction_bytes(node, port));
    let pause_bytes = view.intake_buffer.get().saturating_sub(reaction);
    let resume_bytes = pause_bytes.saturating_sub(resume_offset.get());
    let rate = view.rate(view.fabric.host_node(host), port);
    let expiry = Expiry::new(quanta, std::iter::once(rate));
    Box::new(NicPart { paused: 0, lossless, pause_bytes, resume_bytes, pauses: false, expiry })
}

impl Config {
    pub(crate) fn mask(&self) -> u8 {
        class_mask(&self.classes)
    }

    fn quanta(&self) -> Option<Quanta> {
        Quanta::new(self.quanta, self.refresh)
    }
}

/// A PFC frame: which classes, whether they pause or go on, and for how long they pause.
#[derive(Clone, Copy, PartialEq, Eq, node::State)]
pub struct Frame {
    /// One bit a class that the frame speaks of (the class-enable vector).
    pub classes: u8,
    /// One bit a class that shall pause; those of `classes` that are not here go on.
    pub pause: u8,
    /// For how many quanta; 0 if no class pauses. Where pauses hold until they are lifted it is the most, and means
    /// nothing.
    pub quanta: u16,
}

/// MAC control opcode of PFC.
pub(crate) const OPCODE: u16 = 0x0101;

impl Header for Frame {
    /// Classes, which of them pause, and for how long.
    type Packed = [u8; 4];

    const LAYOUT: Layout = Layout { messages: LAYOUT };

    #[inline]
    fn pack(self) -> [u8; 4] {
        let [high, low] = self.quanta.to_be_bytes();
        [self.classes, self.pause, high, low]
    }

    #[inline]
    fn unpack([classes, pause, high, low]: [u8; 4]) -> Frame {
        Frame { classes, pause, quanta: u16::from_be_bytes([high, low]) }
    }

    /// Opcode, class-enable vector, and a time of pause in quanta for each class (IEEE 802.1Q figure 36-4).
    fn emit(self, to: &mut Writer<'_>) {
        to.u16(OPCODE);
        to.u16(u16::from(self.classes));
        for class in 0..CLASSES {
            to.u16(if self.pause >> class & 1 == 1 { self.quanta } else { 0 });
        }
    }

    fn parse(from: &mut Reader<'_>) -> Result<Frame, Malformed> {
        from.begin("PFC frame: shorter than 20 bytes");
        if from.u16()? != OPCODE {
            return Err(Malformed { what: "PFC opcode" });
        }
        let classes = u8::try_from(from.u16()?).map_err(|_| Malformed { what: "PFC class-enable vector" })?;
        let (mut pause, mut quanta) = (0, 0);
        for class in 0..CLASSES {
            let time = from.u16()?;
            if time > 0 && classes >> class & 1 == 1 {
                pause |= 1 << class;
                quanta = quanta.max(time); // classes here pause for one time
            }
        }
        Ok(Frame { classes, pause, quanta })
    }
}

const CLASS_ENABLE: Bits = Bits::u16(2);
const PAUSED: Shown = Shown::NotZero { count: CLASSES as u8, mask: CLASS_ENABLE };
pub(crate) const FIELDS: &[Field] =
    &[Field::number("classes", CLASS_ENABLE), Field::new("pause", Bits::u16(4), PAUSED)];

const LAYOUT: &[Message] = &[Message::new("Frame", Bits::u16(0).are(OPCODE as u64), 20, FIELDS)];

/// As captures and tables of packets say it: the quanta are the same in all frames of a run.
impl fmt::Debug for Frame {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("Frame").field("classes", &self.classes).field("pause", &self.pause).finish()
    }
}

impl Frame {
    /// These classes go on.
    pub(crate) fn resume(classes: u8) -> Frame {
        Frame { classes, pause: 0, quanta: 0 }
    }

    /// The paused classes after this frame.
    pub(crate) fn applied_to(self, paused: u8) -> u8 {
        paused & !self.classes | self.pause & self.classes
    }

    /// Pauses the classes of `port` that it speaks of, or lets them go on.
    pub(crate) fn obey(self, cx: &mut LinkCx<'_>, port: PortId) {
        let own = &mut cx.ports[port.index()];
        own.set_paused(self.applied_to(own.paused()), cx.now);
        cx.port_ready(port);
    }
}

#[derive(node::State)]
struct SwitchPart {
    ingress: Ingress,
}

impl SwitchPart {
    /// A packet has left the buffer.
    fn left(&mut self, cx: &mut LinkCx<'_>, id: PacketId) {
        let class = cx.pool.get(id).packet.class;
        self.ingress.left(cx, id, class);
    }
}

impl QueueDiscipline for SwitchPart {
    fn share(&self, class: u8) -> Option<Share> {
        Some(self.ingress.share(class))
    }

    fn enqueue(&mut self, cx: &mut LinkCx<'_>, out: PortId, id: PacketId) -> u32 {
        let class = cx.pool.get(id).packet.class;
        self.ingress.came(cx, id, class);
        let port = &mut cx.ports[out.index()];
        port.push(cx.now, cx.pool, id);
        port.class_bytes(class)
    }

    fn dequeue(&mut self, cx: &mut LinkCx<'_>, out: PortId) -> Option<Dequeued> {
        let id = cx.ports[out.index()].take_next(cx.pool)?;
        self.left(cx, id);
        let left_bytes = cx.ports[out.index()].class_bytes(cx.pool.get(id).packet.class);
        Some(Dequeued { id, left_bytes })
    }

    fn ready(&self, ports: &[Port], out: PortId) -> bool {
        ports[out.index()].has_sendable()
    }

    fn frame(&mut self, cx: &mut LinkCx<'_>, port: PortId, frame: &Packet) {
        let frame = frame.header::<Frame>();
        self.ingress.heard(cx.now, port, frame);
        frame.obey(cx, port);
    }

    fn poll_at(&self) -> Time {
        self.ingress.next_at()
    }

    fn wake(&mut self, cx: &mut LinkCx<'_>) {
        self.ingress.wake(cx);
    }

    fn drain(&mut self, cx: &mut LinkCx<'_>, port: PortId) -> Option<PacketId> {
        let id = cx.ports[port.index()].drain(cx.pool)?;
        self.left(cx, id);
        Some(id)
    }

    fn push_out(&mut self, cx: &mut LinkCx<'_>, port: PortId, class: u8) -> Option<PacketId> {
        let id = cx.ports[port.index()].push_out(class, cx.pool)?;
        self.left(cx, id);
        Some(id)
    }

    fn set_up(&mut self, cx: &mut LinkCx<'_>, port: PortId, _: bool) {
        self.ingress.link_changed(cx, port);
    }

    fn queues(&self, ports: &[Port], port: PortId, see: &mut dyn FnMut(QueueView)) {
        show_classes(&ports[port.index()], see);
    }

    fn holds_back(&self, slot: &Slot, _: Cause) -> Option<Cause> {
        self.ingress.holds_back(slot.packet.class)
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        self.ingress.counters()
    }
}

/// Shows the class queues of a port that have packets or are paused.
pub(crate) fn show_classes(own: &Port, see: &mut dyn FnMut(QueueView)) {
    for class in 0..CLASSES as u8 {
        let (bytes, paused) = (own.class_bytes(class), own.paused() >> class & 1 == 1);
        if bytes > 0 || paused {
            let packets = own.class_packets(class);
            see(QueueView { cause: Cause::Class(class), paused, root: false, bytes, packets });
        }
    }
}

/// A NIC that obeys PFC, and pauses the switch when its host takes packets in too slowly.
#[derive(node::State)]
struct NicPart {
    paused: u8,
    lossless: u8,
    /// Bytes waiting in the NIC at which it pauses the switch: all of its buffer except for what still arrives during
    /// the reaction. And the bytes at which it resumes.
    pause_bytes: u64,
    resume_bytes: u64,
    pauses: bool,
    expiry: Option<Box<Expiry>>,
}

impl NicControl for NicPart {
    fn frame(&mut self, now: Time, frame: &Packet) {
        let frame = frame.header::<Frame>();
        if let Some(expiry) = &mut self.expiry {
            expiry.heard(now, PortId(0), frame);
        }
        self.paused = frame.applied_to(self.paused);
    }

    fn reset(&mut self, _: bool) {
        self.paused = 0;
        self.pauses = false;
        if let Some(expiry) = &mut self.expiry {
            expiry.clear(PortId(0));
        }
    }

    fn keeps_time(&self) -> bool {
        self.expiry.is_some()
    }

    fn poll_at(&self) -> Time {
        self.expiry.as_ref().map_or(Time::MAX, |expiry| expiry.next_at())
    }

    fn wake(&mut self, now: Time) -> Option<Packet> {
        let (ended, frame) = self.expiry.as_mut()?.wake_nic(now);
        self.paused &= !ended;
        frame.map(frame_packet)
    }

    fn paused_classes(&self) -> u8 {
        self.paused
    }

    fn intake(&mut self, now: Time, bytes: u64) -> Option<Packet> {
        let before = self.pauses;
        self.pauses = bytes > if before { self.resume_bytes } else { self.pause_bytes };
        let frame = |part: &mut NicPart| frame_of(&mut part.expiry, now, PortId(0), part.lossless, part.pauses);
        (self.pauses != before).then(|| frame_packet(frame(self)))
    }
}

#[cfg(test)]
mod tests;
