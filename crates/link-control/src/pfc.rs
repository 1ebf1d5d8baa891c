//! Priority flow control (IEEE 802.1Qbb): lossless by pausing the class of a whole link.
//!
//! A switch counts the bytes that it holds by the port and class by which they came. When a count exceeds its threshold, the
//! neighbour at that port is told to pause the class; when it has fallen `resume_offset` below, to go on. The threshold is
//! dynamic (Choudhury and Hahne 1998, as switches of RoCE networks use it): `alpha` times the memory that is free of packets and
//! of headroom. Headroom, set aside for each port and class from its first packet on, takes what still comes in after the
//! decision to pause ([`LinkView::reaction_bytes`](contract::link_control::LinkView::reaction_bytes)), so no packet of a paused class is
//! ever lost.
//!
//! Packets stay in the port's class queues. A class that is paused as a whole also holds back what does not contribute to
//! the congestion: head-of-line blocking, pause storms and, where pauses depend on each other in a circle, deadlock. All of
//! them are meant to be seen here (Pyrrha, section 2.2).
//!
//! Absent on purpose: the timeouts of pauses (a pause holds until it is lifted: a real switch refreshes it), watchdogs
//! that drop what a storm holds, and the guaranteed minimum of each queue.

mod ingress;

use node::link::{Cause, Dequeued, LinkCx, NicControl, QueueDiscipline, QueueView, frame_packet};
use node::packet::{CLASSES, Malformed};
use node::pool::{PacketId, Slot};
use node::{Header, Packet, Port};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Bytes, HostId, PortId, Problem, Rate, SwitchId, Time};

use contract::About;
use contract::link_control::{LinkScheme, LinkView, check_classes, class_mask};

pub(crate) use ingress::Ingress;

/// What a scenario may set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Threshold of a port and class as a multiple of the free memory (Pyrrha, section 6).
    pub alpha: f64,
    /// If set, `alpha` is that of ports of this rate, and others have it in proportion to theirs, 1 at most, so that faster ports
    /// may hold more; if not, all ports have the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_rate: Option<Rate>,
    /// Headroom of each port and class in one-hop bandwidth-delay products, if more than what reaction takes is set aside.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub headroom_bdps: Option<f64>,
    /// A pause is lifted when the count has fallen so far below the threshold.
    pub resume_offset: Bytes,
    /// The classes that are lossless. The others are lost when memory is full: class 0 has acknowledgements and other
    /// control, which are too little to need more.
    pub classes: Vec<u8>,
}

impl Default for Config {
    fn default() -> Config {
        let classes = (1..CLASSES as u8).collect();
        Config { alpha: 2.0, per_rate: None, headroom_bdps: None, resume_offset: Bytes(3_000), classes }
    }
}

impl LinkScheme for Config {
    type Frame = Frame;

    const ABOUT: About = About {
        title: "Priority flow control (PFC)",
        source: "IEEE 802.1Qbb",
        summary: "A switch that runs short of memory pauses a priority class of the link by which its packets came.",
        needs: "counters of each port and class, and headroom",
    };

    fn check(&self) -> Result<(), Problem> {
        if !(self.alpha > 0.0 && self.alpha.is_finite()) {
            return Err(Problem::new("alpha", format!("{} is not a positive number", self.alpha)));
        }
        if self.per_rate.is_some_and(|rate| rate == Rate::ZERO) {
            return Err(Problem::new("per_rate", "0 is no rate of a port"));
        }
        if let Some(bdps) = self.headroom_bdps.filter(|bdps| !(*bdps > 0.0 && *bdps <= 1e6)) {
            return Err(Problem::new("headroom_bdps", format!("{bdps} is not above 0 and at most 1e6")));
        }
        check_classes(&self.classes, "none is lossless, so that PFC has no effect; name one at least")
    }

    fn switch_control(&self, view: &LinkView<'_>, switch: SwitchId) -> Result<Box<dyn QueueDiscipline>, Problem> {
        Ok(Box::new(SwitchPart { ingress: Ingress::new(self, view, switch)? }))
    }

    fn held_classes(&self) -> u8 {
        self.mask()
    }

    fn nic_control(&self, view: &LinkView<'_>, host: HostId, _: PortId) -> Option<Box<dyn NicControl>> {
        // Of several links, all bring more until they have fallen silent.
        let reaction = view.of_ports(host, |node, port| view.reaction_bytes(node, port));
        let pause_bytes = view.intake_buffer.get().saturating_sub(reaction);
        let resume_bytes = pause_bytes.saturating_sub(self.resume_offset.get());
        Some(Box::new(NicPart { paused: 0, lossless: self.mask(), pause_bytes, resume_bytes, pauses: false }))
    }
}

impl Config {
    pub(crate) fn mask(&self) -> u8 {
        class_mask(&self.classes)
    }
}

/// A PFC frame: which classes, and whether they pause or go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub struct Frame {
    /// One bit a class that the frame speaks of (the class-enable vector).
    pub classes: u8,
    /// One bit a class that shall pause; those of `classes` that are not here go on.
    pub pause: u8,
}

/// MAC control opcode of PFC.
const OPCODE: u16 = 0x0101;

impl Header for Frame {
    /// Opcode, class-enable vector, and a time of pause in quanta for each class (IEEE 802.1Q figure 36-4).
    fn emit(&self, out: &mut Vec<u8>) {
        out.extend(OPCODE.to_be_bytes());
        out.extend(u16::from(self.classes).to_be_bytes());
        for class in 0..CLASSES {
            let quanta = if self.pause >> class & 1 == 1 { u16::MAX } else { 0 };
            out.extend(quanta.to_be_bytes());
        }
    }

    fn parse(bytes: &[u8]) -> Result<(Frame, usize), Malformed> {
        let word = |at: usize| bytes.get(2 * at..2 * at + 2).map(|word| u16::from_be_bytes([word[0], word[1]]));
        if word(0) != Some(OPCODE) {
            return Err(Malformed { what: "PFC opcode" });
        }
        let classes = word(1).and_then(|classes| u8::try_from(classes).ok());
        let classes = classes.ok_or(Malformed { what: "PFC class-enable vector" })?;
        let mut pause = 0;
        for class in 0..CLASSES {
            let quanta = word(2 + class).ok_or(Malformed { what: "PFC times" })?;
            pause |= u8::from(quanta > 0) << class;
        }
        Ok((Frame { classes, pause: pause & classes }, 4 + 2 * CLASSES))
    }

    fn payload_offset(&self) -> u64 {
        0
    }
}

impl Frame {
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
        frame.header::<Frame>().obey(cx, port);
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

/// Shows the queues of a port's classes that hold packets or may not send.
pub(crate) fn show_classes(own: &Port, see: &mut dyn FnMut(QueueView)) {
    for class in 0..CLASSES as u8 {
        let (bytes, paused) = (own.class_bytes(class), own.paused() >> class & 1 == 1);
        if bytes > 0 || paused {
            let packets = own.class_packets(class);
            see(QueueView { cause: Cause::Class(class), paused, root: false, bytes, packets });
        }
    }
}

/// A NIC that answers PFC, and pauses the switch when its host does not take in what comes.
struct NicPart {
    paused: u8,
    lossless: u8,
    /// From how much that waits in the NIC it pauses: all of its memory but what reaction takes. And at how much it lets go.
    pause_bytes: u64,
    resume_bytes: u64,
    pauses: bool,
}

impl NicControl for NicPart {
    fn frame(&mut self, _: Time, frame: &Packet) {
        self.paused = frame.header::<Frame>().applied_to(self.paused);
    }

    fn reset(&mut self) {
        self.paused = 0;
        self.pauses = false;
    }

    fn paused_classes(&self) -> u8 {
        self.paused
    }

    fn intake(&mut self, bytes: u64) -> Option<Packet> {
        let before = self.pauses;
        self.pauses = bytes > if before { self.resume_bytes } else { self.pause_bytes };
        let pause = if self.pauses { self.lossless } else { 0 };
        (self.pauses != before).then(|| frame_packet(Frame { classes: self.lossless, pause }))
    }
}
