//! Flow control between neighbours: what a switch or a NIC may do about its own links, below any transport.
//!
//! A flow control ([`QueueDiscipline`] in a switch, [`NicControl`] in a host) tells the node at the other end of a link to hold
//! traffic back, in frames of its own: packets flagged [`flags::LINK_FRAME`] that cross one link, go before everything else and
//! are never paused (IEEE 802.1Qbb and all that followed). It may keep packets in the port's eight class queues or in queues of its
//! own, where a class is too coarse. It is a state machine like the rest of the house: no I/O, no clock.

use std::sync::Arc;

use fabric::Routes;
use units::{FlowId, HostId, PortId, Stream, Time};

use crate::packet::{Header, flags};
use crate::pool::{Fifo, PacketId, Pool, Slot};
use crate::{Packet, Port};

/// Bytes of a frame between neighbours on the wire: the least that Ethernet has.
pub const FRAME_BYTES: u16 = 64;

/// A flow control's part of a switch, or the queues that a transport brings to switches.
///
/// Wherever a packet waits, [`Port::hold`] and [`Port::release`] (or the port's own [`Port::push`] and
/// [`Port::take_next`]) keep count of it.
pub trait QueueDiscipline: Send {
    /// A packet is to leave by `out` and is in no queue yet: whether there is room for it.
    fn admit(&mut self, _cx: &mut LinkCx<'_>, _out: PortId, _id: PacketId) -> Admission {
        Admission::ByBuffer
    }

    /// A packet has been admitted and will leave by `out`: puts it into a queue. How long that queue now is, in bytes: what
    /// marking goes by.
    fn enqueue(&mut self, cx: &mut LinkCx<'_>, out: PortId, id: PacketId) -> u32;

    /// Bytes of a class that wait at `port`, in whichever queue.
    fn class_bytes(&self, ports: &[Port], port: PortId, class: u8) -> u32 {
        ports[port.index()].class_bytes(class)
    }

    /// The transmitter of `out` is free: the packet whose turn it is, if any may go.
    fn dequeue(&mut self, cx: &mut LinkCx<'_>, out: PortId) -> Option<Dequeued>;

    /// Whether [`QueueDiscipline::dequeue`] would give something.
    fn ready(&self, ports: &[Port], out: PortId) -> bool;

    /// A frame from the other end of the link at `port`.
    fn frame(&mut self, _cx: &mut LinkCx<'_>, _port: PortId, _frame: &Packet) {}

    /// A packet that waits at `port`, whose link has gone down; asked until there is none.
    fn drain(&mut self, cx: &mut LinkCx<'_>, port: PortId) -> Option<PacketId>;

    /// A full switch makes room: takes the last packet of the port's least urgent class below `class`.
    fn push_out(&mut self, cx: &mut LinkCx<'_>, port: PortId, class: u8) -> Option<PacketId>;

    /// The link at `port` has gone down or come up: what the other end said, and was told, no longer holds.
    fn set_up(&mut self, _cx: &mut LinkCx<'_>, _port: PortId, _up: bool) {}

    /// All switches forward by these tables from now on.
    fn set_routes(&mut self, _cx: &mut LinkCx<'_>, _routes: &Arc<Routes>) {}

    /// When it wants [`QueueDiscipline::wake`]; [`Time::MAX`] for never. Read at the start and after each wake.
    fn poll_at(&self) -> Time {
        Time::MAX
    }

    /// The time named by [`QueueDiscipline::poll_at`] has come.
    fn wake(&mut self, _cx: &mut LinkCx<'_>) {}

    /// The most queues of its own that `port` has had in use at once.
    fn queues_max(&self, _port: PortId) -> u32 {
        0
    }

    /// Shows the queues of `port` that hold packets or may not send, for samples and audits.
    fn queues(&self, ports: &[Port], port: PortId, see: &mut dyn FnMut(QueueView));

    /// Which queue of the node that it came from a packet that waits here, in a queue for such a cause, may hold back, if any: what
    /// an audit follows to find ports that wait for each other in a circle.
    fn holds_back(&self, _slot: &Slot, _in: Cause) -> Option<Cause> {
        None
    }

    /// The congestion root that a frame is about, if it names one: what that holds is audited before the frame changes it.
    fn about(&self, _frame: &Packet) -> Option<Cause> {
        None
    }

    /// Shows what congestion roots hold at `port`, for audits: a queue with packets once for each root that holds it back.
    fn held(&self, _port: PortId, _see: &mut dyn FnMut(Held)) {}

    /// In the names of which roots packets that `root` holds at `port` may hold back what comes by `ingress`: as
    /// [`QueueDiscipline::holds_back`], where queues are of roots.
    fn presses(&self, _port: PortId, _root: Cause, _ingress: PortId, _see: &mut dyn FnMut(Cause)) {}

    /// What it counted, by name, for the result.
    fn counters(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }
}

/// What [`QueueDiscipline::admit`] says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// As far as it is concerned, there is: the switch's own memory decides.
    ByBuffer,
    /// Not yet. This packet, which it has just taken out of its queue at the same port, is lost; then it is asked again.
    Evict(PacketId),
    /// The packet has another address now, and is forwarded anew (NDP's return to sender).
    Redirect,
    /// There is not: the packet is lost.
    Full,
}

/// A packet taken out of its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dequeued {
    /// Which.
    pub id: PacketId,
    /// Bytes that it leaves behind in its queue: what telemetry tells.
    pub left_bytes: u32,
}

/// Why a queue is what it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cause {
    /// The queue of a class, paused as a class.
    Class(u8),
    /// One of a flow control's numbered queues.
    Queue(u32),
    /// The queue of one flow.
    Flow(FlowId),
    /// The queue of what goes through a congestion root: a port of a node (of a switch by its id, of a host by the number
    /// of switches plus its id).
    Root {
        /// The node.
        node: u32,
        /// Its port.
        port: u16,
    },
}

/// A queue as samples and audits see it.
#[derive(Clone, Copy, Debug)]
pub struct QueueView {
    /// What it is for.
    pub cause: Cause,
    /// Whether it may not send.
    pub paused: bool,
    /// Whether it is of those that this very port claims to be a congestion root for: its own output queue, as a root.
    pub root: bool,
    /// Bytes in it.
    pub bytes: u32,
    /// Its packets.
    pub packets: Fifo,
}

/// A queue that a congestion root holds back.
#[derive(Clone, Copy, Debug)]
pub struct Held {
    /// The root.
    pub root: Cause,
    /// Whether the queue is for other roots too, for want of queues.
    pub shared: bool,
    /// Its packets.
    pub packets: Fifo,
}

/// What a flow control may look at and touch while it runs.
pub struct LinkCx<'a> {
    /// The time.
    pub now: Time,
    /// The switch's ports.
    pub ports: &'a mut [Port],
    /// Where packets live.
    pub pool: &'a mut Pool,
    /// Bytes in the switch's buffer; a packet that has been admitted counts.
    pub used_bytes: &'a mut u64,
    /// The switch's random stream.
    pub random: &'a mut Stream,
    pub(crate) header_bytes: u16,
    pub(crate) ready_ports: &'a mut Vec<PortId>,
}

impl LinkCx<'_> {
    /// Sends a frame to the node at the other end of the link at `port`, unless that is down.
    pub fn send<H: Header>(&mut self, port: PortId, frame: H) {
        if self.ports[port.index()].is_up() {
            let id = self.pool.insert(frame_packet(frame), Default::default());
            self.ports[port.index()].push_frame(self.pool, id);
            self.port_ready(port);
        }
    }

    /// Cuts off the payload of a packet that is to leave by `port` and has not been admitted: its headers are left, in class 0.
    pub fn trim_arriving(&mut self, port: PortId, id: PacketId) {
        let cut = trim(&mut self.pool.get_mut(id).packet, self.header_bytes);
        let stats = &mut self.ports[port.index()].stats;
        stats.trimmed_packets += 1;
        stats.overflow_bytes += u64::from(cut);
    }

    /// The same of one that has just been taken out of its queue at `port`, to be put into another.
    pub fn trim_waiting(&mut self, port: PortId, id: PacketId) {
        let whole = self.pool.get(id).packet.wire_bytes;
        self.trim_arriving(port, id);
        *self.used_bytes -= u64::from(whole - self.pool.get(id).packet.wire_bytes);
    }

    /// Something may go at `port` that might not before.
    pub fn port_ready(&mut self, port: PortId) {
        if !self.ready_ports.contains(&port) {
            self.ready_ports.push(port);
        }
    }
}

/// Cuts a packet down to its headers, which go first from there on. How many bytes that were.
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
    let mut packet = Packet::new(FlowId(u32::MAX), HostId(u32::MAX), HostId(u32::MAX), frame);
    packet.flags = flags::LINK_FRAME;
    packet.wire_bytes = FRAME_BYTES;
    packet
}

/// A flow control's part of a host's NIC.
pub trait NicControl: Send {
    /// A frame from the switch.
    fn frame(&mut self, now: Time, frame: &Packet);

    /// The link has gone down or come up: what the switch said no longer holds.
    fn reset(&mut self);

    /// One bit a class that may not send.
    fn paused_classes(&self) -> u8 {
        0
    }

    /// Whether anything may not be sent now.
    fn holds(&self) -> bool {
        self.paused_classes() != 0
    }

    /// The classes that [`NicControl::lets`] speaks of, as bits: packets of others always go.
    fn held_classes(&self) -> u8 {
        u8::MAX
    }

    /// Whether packets of a flow of the host's endpoint `transport` to `dst` may be sent now, with this flow label (0 for none).
    fn lets(&self, _transport: u8, _flow: FlowId, _dst: HostId, _label: u32) -> bool {
        true
    }

    /// Changes whenever a flow that was held may go.
    fn epoch(&self) -> u32 {
        0
    }

    /// Shows why it holds anything back, for samples.
    fn causes(&self, see: &mut dyn FnMut(Cause)) {
        let paused = self.paused_classes();
        (0..8).filter(|class| paused >> class & 1 == 1).for_each(|class| see(Cause::Class(class)));
    }

    /// A packet is about to leave.
    fn stamp(&mut self, _packet: &Packet) -> u16 {
        0
    }

    /// So many bytes that have come in wait until the host takes them (Pyrrha, section 4.4: host congestion). A frame, if
    /// the switch is to hold more back, or no longer.
    fn intake(&mut self, _bytes: u64) -> Option<Packet> {
        None
    }

    /// All switches forward by these tables from now on.
    fn set_routes(&mut self, _routes: &Arc<Routes>) {}
}
