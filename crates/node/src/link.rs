//! Hop-by-hop flow control: what a switch or a NIC does about its own links, below any transport.
//!
//! A flow control ([`QueueDiscipline`] in a switch, [`NicControl`] in a host) tells the node at the other end of a link
//! to hold traffic back. It sends frames: packets flagged [`flags::LINK_FRAME`] that cross one link, go before all
//! other packets and are never paused (IEEE 802.1Qbb and its successors). It keeps packets in the port's eight class
//! queues, or in queues of its own where classes are too coarse. It is a state machine without I/O and clock.

use std::sync::Arc;

use fabric::Routes;
use units::{FlowId, HostId, PortId, Stream, Time};

use crate::packet::{Header, flags};
use crate::pool::{Fifo, PacketId, Pool, Slot};
use crate::{Packet, Port};

/// Bytes of a flow-control frame on the wire: Ethernet's minimum.
pub const FRAME_BYTES: u16 = 64;

crate::save_behind!(dyn QueueDiscipline);

/// A flow control's part in a switch, or the queues that a transport brings to a switch.
///
/// Wherever it keeps a packet, it counts it with [`Port::hold`] and [`Port::release`], or uses the port's own
/// [`Port::push`] and [`Port::take_next`].
pub trait QueueDiscipline: Send + crate::State {
    /// Whether there is room for a packet that is to leave by `out` and is in no queue yet.
    fn admit(&mut self, _cx: &mut LinkCx<'_>, _out: PortId, _id: PacketId) -> Admission {
        Admission::ByBuffer
    }

    /// The part of the switch's memory that packets of a class may use, if the flow control sets memory aside. Read for
    /// every packet that [`QueueDiscipline::admit`] leaves to the switch's own memory.
    fn share(&self, _class: u8) -> Option<Share> {
        None
    }

    /// Enqueues an admitted packet that will leave by `out`. Returns the queue's length in bytes, which marking goes
    /// by.
    fn enqueue(&mut self, cx: &mut LinkCx<'_>, out: PortId, id: PacketId) -> u32;

    /// Bytes of a class that wait at `port`, over all queues.
    fn class_bytes(&self, ports: &[Port], port: PortId, class: u8) -> u32 {
        ports[port.index()].class_bytes(class)
    }

    /// The transmitter of `out` is free: dequeues the next packet, if any may be sent.
    fn dequeue(&mut self, cx: &mut LinkCx<'_>, out: PortId) -> Option<Dequeued>;

    /// Whether [`QueueDiscipline::dequeue`] would return a packet.
    fn ready(&self, ports: &[Port], out: PortId) -> bool;

    /// Handles a frame from the other end of the link at `port`.
    fn frame(&mut self, _cx: &mut LinkCx<'_>, _port: PortId, _frame: &Packet) {}

    /// Removes a packet that waits at `port`, whose link has gone down. Called until none is left.
    fn drain(&mut self, cx: &mut LinkCx<'_>, port: PortId) -> Option<PacketId>;

    /// Makes room in a full switch: removes the last packet of the port's least urgent class below `class`.
    fn push_out(&mut self, cx: &mut LinkCx<'_>, port: PortId, class: u8) -> Option<PacketId>;

    /// The link at `port` has gone down or come up. All state agreed with the other end is void.
    fn set_up(&mut self, _cx: &mut LinkCx<'_>, _port: PortId, _up: bool) {}

    /// All switches use these routing tables from now on.
    fn set_routes(&mut self, _cx: &mut LinkCx<'_>, _routes: &Arc<Routes>) {}

    /// When it wants [`QueueDiscipline::wake`]; [`Time::MAX`] for never. Read at the start and after each wake.
    fn poll_at(&self) -> Time {
        Time::MAX
    }

    /// The time named by [`QueueDiscipline::poll_at`] has come.
    fn wake(&mut self, _cx: &mut LinkCx<'_>) {}

    /// A packet that it has taken out of a queue of a port to lose it. Asked after each wake, until there is none.
    fn gives_up(&mut self) -> Option<(PortId, PacketId)> {
        None
    }

    /// The most of its own queues that `port` has had in use at one time.
    fn queues_max(&self, _port: PortId) -> u32 {
        0
    }

    /// Shows the queues of `port` that have packets or are paused, for samples and audits.
    fn queues(&self, ports: &[Port], port: PortId, see: &mut dyn FnMut(QueueView));

    /// The queue at the previous node that this switch may pause because of a packet that waits here in a queue of
    /// cause `_in`; `None` if it pauses none. The audit follows these links to find circular waits among ports.
    fn holds_back(&self, _slot: &Slot, _in: Cause) -> Option<Cause> {
        None
    }

    /// The congestion root that a frame concerns, if it names one. The audit checks what the root holds before the
    /// frame takes effect.
    fn about(&self, _frame: &Packet) -> Option<Cause> {
        None
    }

    /// Shows what congestion roots hold at `port`, for audits. A queue appears once for each root that holds it.
    fn held(&self, _port: PortId, _see: &mut dyn FnMut(Held)) {}

    /// Shows the roots in whose names packets held at `port` by `root` may pause what comes in by `ingress`. Like
    /// [`QueueDiscipline::holds_back`], for queues that belong to roots.
    fn presses(&self, _port: PortId, _root: Cause, _ingress: PortId, _see: &mut dyn FnMut(Cause)) {}

    /// Counters for the result, by name.
    fn counters(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }
}

/// The answer of [`QueueDiscipline::admit`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// No objection: the switch's own memory decides.
    ByBuffer,
    /// Not yet: this packet, which it has just taken out of a queue of the same port, is dropped, and the question is
    /// asked again.
    Evict(PacketId),
    /// The packet has got another destination and is forwarded again (NDP's return to sender).
    Redirect,
    /// No room: the packet is dropped.
    Full,
}

/// The part of a switch's memory that a class may use under a flow control that pauses before memory is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// All of it, over all ports and without a limit for a queue: senders are paused in time.
    Lossless,
    /// The memory that a port, or the limit of a queue, leaves to the classes of this bit mask, and in the whole switch
    /// all but these bytes, which are set aside for packets that still arrive from paused neighbours.
    Lossy {
        /// The classes that may lose packets, as bits.
        classes: u8,
        /// Bytes that they may not use.
        kept_bytes: u64,
    },
}

/// A dequeued packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dequeued {
    /// The packet.
    pub id: PacketId,
    /// Bytes that remain in its queue, for telemetry.
    pub left_bytes: u32,
}

/// What a queue is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, crate::Saved)]
pub enum Cause {
    /// A class, paused as a class.
    Class(u8),
    /// A numbered queue of a flow control.
    Queue(u32),
    /// One flow.
    Flow(FlowId),
    /// Packets of a class that pass a congestion root, which is a port of a node. Switches are numbered by id, hosts by
    /// the number of switches plus their id.
    Root {
        /// The node.
        node: u32,
        /// Its port.
        port: u16,
        /// The class, or [`ALL_CLASSES`].
        class: u8,
    },
}

/// In place of a class: all of them.
pub const ALL_CLASSES: u8 = u8::MAX;

impl Cause {
    /// Whether a congestion root is this one, or this is that root in all classes.
    pub fn covers(self, root: Cause) -> bool {
        match (self, root) {
            (Cause::Root { node, port, class: ALL_CLASSES }, Cause::Root { node: of, port: its, .. }) => {
                (node, port) == (of, its)
            }
            _ => self == root,
        }
    }
}

/// A queue as samples and audits see it.
#[derive(Clone, Copy, Debug, crate::Saved)]
pub struct QueueView {
    /// What the queue is for.
    pub cause: Cause,
    /// Whether it is paused.
    pub paused: bool,
    /// Whether it is the port's own output queue for which the port claims to be a congestion root.
    pub root: bool,
    /// Bytes in it.
    pub bytes: u32,
    /// Its packets.
    pub packets: Fifo,
}

/// A queue that a congestion root holds.
#[derive(Clone, Copy, Debug)]
pub struct Held {
    /// The root.
    pub root: Cause,
    /// Whether the queue also serves other roots, because no queue was free.
    pub shared: bool,
    /// Its packets.
    pub packets: Fifo,
}

/// The context of a flow control's call: what it may read and write.
pub struct LinkCx<'a> {
    /// The time.
    pub now: Time,
    /// The switch's ports.
    pub ports: &'a mut [Port],
    /// The pool of packets.
    pub pool: &'a mut Pool,
    /// Bytes in the switch's buffer, admitted packets included.
    pub used_bytes: &'a mut u64,
    /// The switch's random stream.
    pub random: &'a mut Stream,
    pub(crate) header_bytes: u16,
    pub(crate) ready_ports: &'a mut Vec<PortId>,
}

impl LinkCx<'_> {
    /// Sends a frame to the node at the other end of the link at `port`, unless the link is down.
    pub fn send<H: Header>(&mut self, port: PortId, frame: H) {
        self.send_packet(port, frame_packet(frame));
    }

    /// As [`LinkCx::send`], for a frame that is a packet already.
    pub fn send_packet(&mut self, port: PortId, frame: Packet) {
        if self.ports[port.index()].is_up() {
            let id = self.pool.insert(frame, Default::default());
            self.ports[port.index()].push_frame(self.pool, id);
            self.port_ready(port);
        }
    }

    /// Trims a packet that is to leave by `port` and has not been admitted: cuts the payload off and moves the headers
    /// to class 0.
    pub fn trim_arriving(&mut self, port: PortId, id: PacketId) {
        let cut = trim(&mut self.pool.get_mut(id).packet, self.header_bytes);
        let stats = &mut self.ports[port.index()].stats;
        stats.trimmed_packets += 1;
        stats.overflow_bytes += u64::from(cut);
    }

    /// Trims a packet that has just been taken out of its queue at `port`, to be put into another.
    pub fn trim_waiting(&mut self, port: PortId, id: PacketId) {
        let whole = self.pool.get(id).packet.wire_bytes;
        self.trim_arriving(port, id);
        *self.used_bytes -= u64::from(whole - self.pool.get(id).packet.wire_bytes);
    }

    /// Reports that `port` may have become ready to send.
    pub fn port_ready(&mut self, port: PortId) {
        if !self.ready_ports.contains(&port) {
            self.ready_ports.push(port);
        }
    }
}

/// Cuts a packet down to its headers and gives it the highest priority. Returns the number of bytes cut.
pub(crate) fn trim(packet: &mut Packet, header_bytes: u16) -> u16 {
    let cut = packet.wire_bytes.saturating_sub(header_bytes);
    packet.wire_bytes -= cut;
    packet.payload_bytes = 0;
    packet.flags |= flags::TRIMMED;
    packet.class = 0;
    cut
}

/// A frame as a packet.
pub fn frame_packet<H: Header>(frame: H) -> Packet {
    sized_frame(frame, FRAME_BYTES)
}

/// A frame of another size than Ethernet's minimum: a control ordered set between blocks of data.
pub fn sized_frame<H: Header>(frame: H, wire_bytes: u16) -> Packet {
    let mut packet = Packet::new(FlowId(u32::MAX), HostId(u32::MAX), HostId(u32::MAX), frame);
    packet.flags = flags::LINK_FRAME;
    packet.wire_bytes = wire_bytes;
    packet
}

/// A frame that counts packets: it keeps its place among them where a link repeats packets, and is repeated with them.
pub fn ordered_frame<H: Header>(frame: H) -> Packet {
    let mut packet = frame_packet(frame);
    packet.flags |= flags::ROUTER_ALERT;
    packet
}

crate::save_behind!(dyn NicControl);

/// A flow control's part in a host's NIC.
pub trait NicControl: Send + crate::State {
    /// Handles a frame from the switch.
    fn frame(&mut self, now: Time, frame: &Packet);

    /// The link has gone down or come up. All state agreed with the switch is void.
    fn reset(&mut self, up: bool);

    /// Paused classes, as bits.
    fn paused_classes(&self) -> u8 {
        0
    }

    /// Whether anything is paused now.
    fn holds(&self) -> bool {
        self.paused_classes() != 0
    }

    /// The classes that [`NicControl::lets`] applies to, as bits. Packets of other classes may always be sent.
    fn held_classes(&self) -> u8 {
        u8::MAX
    }

    /// Whether packets of a flow of transport index `_transport` to `_dst` in this class, with this flow label (0 for
    /// none), may be sent now.
    fn lets(&self, _transport: u8, _flow: FlowId, _dst: HostId, _class: u8, _label: u32) -> bool {
        true
    }

    /// A number that changes whenever a held flow may send again.
    fn epoch(&self) -> u32 {
        0
    }

    /// Shows the causes of pauses, for samples.
    fn causes(&self, see: &mut dyn FnMut(Cause)) {
        let paused = self.paused_classes();
        (0..8).filter(|class| paused >> class & 1 == 1).for_each(|class| see(Cause::Class(class)));
    }

    /// Whether a packet of a paused class must not leave on any account, because the switch counts its room. The NIC
    /// then holds what an endpoint or a limiter has handed over too early.
    fn counts(&self) -> bool {
        false
    }

    /// A packet is about to leave. Returns the number of the queue that it came from.
    fn stamp(&mut self, _packet: &Packet) -> u16 {
        0
    }

    /// A packet has come from the switch, which sent it from this queue of the switch's.
    fn comes(&mut self, _packet: &Packet, _queue: u16) {}

    /// The host has taken in such a packet: at once, unless it is slower than its link.
    fn taken(&mut self, _packet: &Packet, _queue: u16) {}

    /// A frame that it wants to send by itself. Asked whenever the NIC could send one, until there is none.
    fn says(&mut self) -> Option<Packet> {
        None
    }

    /// `_bytes` have arrived and wait for the host to take them in (host congestion: Pyrrha, section 4.4). Returns a
    /// frame if the switch has to pause or resume.
    fn intake(&mut self, _now: Time, _bytes: u64) -> Option<Packet> {
        None
    }

    /// Whether it is to be woken at times of its own ([`NicControl::poll_at`]).
    fn keeps_time(&self) -> bool {
        false
    }

    /// When it wants [`NicControl::wake`]; [`Time::MAX`] for never.
    fn poll_at(&self) -> Time {
        Time::MAX
    }

    /// The time named by [`NicControl::poll_at`] has come. Returns a frame to the switch.
    fn wake(&mut self, _now: Time) -> Option<Packet> {
        None
    }

    /// All switches use these routing tables from now on.
    fn set_routes(&mut self, _routes: &Arc<Routes>) {}
}
