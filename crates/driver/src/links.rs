//! Links: their two ends, as a driver sees them, and the carrier that brings packets from one to the other.

use engine::Agenda;
use node::packet::flags;
use node::pool::{Flight, PacketId, Pool, TailLag};
use node::{LostFlows, Packet};
use run::Host;
use units::{Duration, PortId, Time};

use crate::jitter::Jitter;
use crate::{Acceptor, Noise, Repeater};

/// What brings a packet from a link's sending end to its receiving end: memory in a simulation, datagrams in a live
/// run.
///
/// Everything is resolved when the program is compiled: a driver over one carrier has no trace of the others.
pub trait Carrier: Sized {
    /// What it keeps at a link's sending end.
    type Sender;
    /// What it keeps at a link's receiving end.
    type Receiver;

    /// Takes a packet that leaves by `link_tx`. The carrier must later hand it, or one equal to it, to [`Links::put`].
    fn carry(links: &mut Links<Self>, link_tx: u32, departure: Departure, id: PacketId);

    /// The link at `_outlet` stops working: what is on it is lost. What has come to the receiving end is lost there.
    fn fail(_links: &mut Links<Self>, _outlet: u32) {}

    /// A host has made a packet, which is about to leave.
    #[inline(always)]
    fn made(_links: &mut Links<Self>, _id: PacketId) {}

    /// A host is about to receive `_packet`. The packet's slot in the pool is free already, but not yet overwritten.
    #[inline(always)]
    fn taken(_links: &mut Links<Self>, _id: PacketId, _packet: &Packet) {}

    /// A host has acted at `_now`. Its records say what happened to flows.
    #[inline(always)]
    fn acted(_links: &mut Links<Self>, _now: Time, _host: &mut Host) {}

    /// Copies what the carrier keeps of a packet beside its fields, for a link that may have to send the packet again.
    /// `None` if there is nothing.
    fn copied(_links: &Links<Self>, _id: PacketId) -> Option<Box<[u8]>> {
        None
    }

    /// Restores that copy for a packet that is sent again and has a new slot in the pool.
    fn restored(_links: &mut Links<Self>, _id: PacketId, _copy: Option<&[u8]>) {}
}

/// When a packet leaves a node and is seen in the next.
#[derive(Clone, Copy, Debug)]
pub struct Departure {
    /// When its last bit (where the next switch cuts through: its head) has left.
    pub gone: Time,
    /// When the next node sees it.
    pub at: Time,
}

/// The links of a part of a network, the packets in flight on them, and the agenda of pending events.
pub struct Links<C: Carrier> {
    /// Pending events. Their sources, in the order that breaks ties: the timeline, receiving ends, sending ends, hosts,
    /// switches.
    pub agenda: Agenda,
    /// Where packets are while they are in this part.
    pub pool: Pool,
    /// Receiving ends, in the order of nodes and their ports.
    pub link_rxs: Vec<LinkRx<C::Receiver>>,
    /// Sending ends, in the order of nodes and their ports.
    pub link_txs: Vec<LinkTx<C::Sender>>,
    /// What carries packets.
    pub carrier: C,
}

/// A link's receiving end: the packets in flight on it, first to come out first. What every packet touches comes first,
/// in one cache line: on a large fabric each of them waits for it to come from memory.
#[derive(node::State)]
#[state(first(walk.refuse_if(self.noise.is_some(), "links damage or lose packets at random")))]
#[repr(C, align(64))]
pub struct LinkRx<R> {
    /// What is in flight.
    pub packets: Flight,
    /// Where it ends.
    #[state(built("it never changes"))]
    pub to: End,
    /// The last source of events among the arrivals at its node: see [`crate::ties`].
    #[state(built("it never changes"))]
    pub(crate) last_at_node: u32,
    /// Whether a host at its end takes a random time for packets, so that frames may come out before them.
    pub(crate) jitters: bool,
    /// By how much it has gone first less often than was its due, in units of 1 / [`DUE`](crate::ties::DUE).
    pub(crate) credit: i64,
    /// Whether it works.
    pub up: bool,
    /// The link's id in the fabric.
    pub link: u32,
    /// Packets lost in flight because it did not work.
    #[state(count)]
    pub lost_packets: u64,
    /// Bytes of them.
    #[state(count)]
    pub lost_bytes: u64,
    /// What damages or loses its packets, if anything ever does.
    #[state(built("once it has begun, the part saves it: see `saved.rs`"))]
    pub noise: Option<Box<Noise>>,
    /// Flows of the packets that it has lost.
    pub lost_flows: LostFlows,
    /// Link-level retry.
    #[state(skip("refused"))]
    pub acceptor: Option<Box<Acceptor>>,
    /// The carrier's part of it.
    #[state(built("the carrier's"))]
    pub receiver: R,
}

/// A link's sending end.
#[derive(node::Saved)]
pub struct LinkTx<S> {
    /// The carrier's part of it.
    #[state(built("the carrier's"))]
    pub sender: S,
    /// From the last bit's departure to the packet's appearance in the next node: propagation, and the node's own
    /// latency.
    pub delay: Duration,
    /// Where it begins.
    #[state(built("it never changes"))]
    pub from: End,
    /// Whether it does: a switch that was taken apart has ports in name that belong to other parts.
    pub begins: bool,
    /// Cut-through into the next node: after so long its switch sees the packet.
    pub head: Option<Duration>,
    /// The random times that a host at its other end takes for packets, if it does.
    pub(crate) jitter: Option<Box<Jitter>>,
    /// Link-level retry.
    pub repeater: Option<Box<Repeater>>,
}

/// A node at the end of a link, by its place in its part, and the port that it is joined to.
#[derive(Clone, Copy, Debug)]
pub enum End {
    /// A switch.
    Switch {
        /// Its place among the part's switches.
        index: u32,
        /// Which of its ports.
        port: PortId,
    },
    /// A host.
    Host {
        /// Its place among the part's hosts.
        index: u32,
        /// Which of its ports.
        port: PortId,
    },
}

/// The source of events that stands for failures, samples and whatever else happens at set times.
pub(crate) const TIMELINE: usize = 0;

impl<C: Carrier> Links<C> {
    #[inline]
    pub(crate) fn arrival(&self, link_rx: usize) -> usize {
        1 + link_rx
    }

    #[inline]
    pub(crate) fn transmit_ready(&self, link_tx: u32) -> usize {
        1 + self.link_rxs.len() + link_tx as usize
    }

    #[inline]
    pub(crate) fn first_host(&self) -> usize {
        1 + self.link_rxs.len() + self.link_txs.len()
    }

    /// Puts a packet in flight on a link, behind those already there. It comes out at `at`.
    #[inline]
    pub fn put(&mut self, link_rx: u32, id: PacketId, at: Time) {
        let end = &mut self.link_rxs[link_rx as usize];
        let first = match end.jitters && self.pool.get(id).packet.has(flags::LINK_FRAME) {
            // Packets ahead of it may be due later.
            true => end.packets.insert(&mut self.pool, id, at),
            false => end.packets.push(&mut self.pool, id, at),
        };
        if first {
            let arrival = self.arrival(link_rx as usize);
            self.agenda.set(arrival, at);
        }
    }

    /// Takes the packet that comes out of a link now, whose source of events this is. Returns also the last source of
    /// arrivals at the same node.
    #[inline(always)]
    pub(crate) fn take(&mut self, source: usize) -> (PacketId, u32) {
        let link_rx = &mut self.link_rxs[source - 1];
        let id = link_rx.packets.pop(&self.pool).expect("a link with an event has a packet");
        self.agenda.set(source, link_rx.packets.next_at());
        (id, link_rx.last_at_node)
    }

    /// Puts a packet on its link. Its first bit leaves now, its last at `last`.
    #[inline]
    pub(crate) fn launch(&mut self, link_tx: u32, now: Time, last: Time, id: PacketId) {
        let LinkTx { delay, head, jitter, .. } = &mut self.link_txs[link_tx as usize];
        let gone = head.map_or(last, |head| last.min(now + head));
        let slot = self.pool.get_mut(id);
        slot.transit.tail_lag = TailLag::of(last - gone);
        slot.transit.serialised += gone - now;
        let at = gone + *delay;
        let at = match jitter {
            Some(jitter) if !slot.packet.has(flags::LINK_FRAME) => jitter.takes_in(at),
            _ => at,
        };
        C::carry(self, link_tx, Departure { gone, at }, id);
    }

    /// Whether a packet that comes out of a link was lost or damaged on it. If so, it is removed from the pool.
    #[cold]
    pub(crate) fn loses_to_noise(&mut self, link_rx: usize, id: PacketId) -> bool {
        let LinkRx { noise: Some(noise), lost_flows, .. } = &mut self.link_rxs[link_rx] else { return false };
        let lost = noise.loses(&mut self.pool.get_mut(id).packet);
        if lost {
            let packet = self.pool.remove(id).packet;
            if !packet.has(flags::LINK_FRAME) {
                lost_flows.note(&packet);
            }
        }
        lost
    }

    /// Takes a link down, which loses the packets in flight on it, or brings it up again.
    pub(crate) fn set_up(&mut self, link_rx: u32, up: bool) {
        let arrival = self.arrival(link_rx as usize);
        let end = &mut self.link_rxs[link_rx as usize];
        end.up = up;
        while !up && let Some(id) = end.packets.pop(&self.pool) {
            let packet = self.pool.remove(id).packet;
            end.lose(&packet);
        }
        if let Some(acceptor) = &mut self.link_rxs[link_rx as usize].acceptor {
            acceptor.reset();
        }
        if !up {
            self.agenda.set(arrival, Time::MAX);
        }
    }
}

impl<R> LinkRx<R> {
    /// A packet in flight is lost with the link.
    pub fn lose(&mut self, packet: &Packet) {
        // Under link-level retry the sender counts such losses: packets that left and were never accepted.
        if !packet.has(flags::LINK_FRAME) && self.acceptor.is_none() {
            self.lost_flows.note(packet);
            self.lost_packets += 1;
            self.lost_bytes += u64::from(packet.wire_bytes);
        }
    }

    /// Bytes in flight, frames between neighbours not counted.
    pub fn bytes(&self, pool: &Pool) -> u64 {
        let packets = self.packets.iter(pool).map(|id| &pool.get(id).packet);
        packets.filter(|packet| !packet.has(flags::LINK_FRAME)).map(|packet| u64::from(packet.wire_bytes)).sum()
    }
}
