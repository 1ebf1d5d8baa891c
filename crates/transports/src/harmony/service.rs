//! The order in which a link serves waiting packets, which the paper leaves open and Theorem 3.1 depends on.
//!
//! If packets of all virtual links are served in the order of arrival ([`Service::Fifo`], as in any switch), they may
//! wait longer than Theorem 3.1 says ([`adversary`](super::adversary)). If the virtual links are served *in turn*, one
//! packet of each that has any ([`Service::RoundRobin`]), they never do ([`bounds`](super::bounds) has the proof). This
//! takes a queue for each virtual link at each port, K at most, and a list of the queues that hold packets.
//!
//! A turn ends when the transmission of its packet ends. If the queue has another packet by then, it goes to the end of
//! the list, behind all queues whose packets arrived during the transmission. If it went there as soon as its next
//! packet arrived, a packet that arrives later during the same transmission would wait for the rest of it and for that
//! queue again, one turn more than in the proof.
//!
//! A queue holds the packets of one reservation: its data, and the complete after them, so that the packet that frees a
//! virtual link never overtakes packets that use it. Rsvps and receivers' completes have no virtual link in this
//! direction. They wait in the port's queue of their class, and go before data as long as they have *credit*. Data that
//! leave add credit at a rate that gives control packets `control_share` of the link, up to what can wait at once: one
//! packet of each kind for each virtual link. So control packets take no more bandwidth from data than slots leave to
//! them, however many arrive. While no data wait, they need no credit.
//!
//! All other classes stay in the port's own queues and are served after both.

use node::link::{Cause, Dequeued, LinkCx, QueueView};
use node::pool::PacketId;
use node::{Packet, Port, QueueDiscipline};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{HostId, PortId};

use super::bounds::Bounds;
use super::header::Data;
use super::{Header, URGENT};
use node::flow_queues::{FlowQueues, Order, Taken};

/// The order in which a link serves packets of different virtual links.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Service {
    /// In the order of arrival: one queue. From the third switch on Theorem 3.1 may be exceeded: up to 2^(i-1) (K - 1)
    /// packets wait at the i-th switch.
    #[default]
    Fifo,
    /// One packet of each virtual link in turn: Theorem 3.1 holds, and a packet waits for #H (K - 1) packets in all
    /// switches together.
    RoundRobin,
}

/// The queues of a switch that serves virtual links in turn.
#[derive(node::State)]
#[state(refuse("a flow control, or a transport's queues, do not say what of their state moves"))]
pub(super) struct Turns {
    ports: Vec<PortTurns>,
    transport: u8,
    /// Credit, in 2^-20 bytes, for each byte of data.
    share: u64,
}

#[derive(node::Saved)]
struct PortTurns {
    links: FlowQueues,
    /// By queue: the reservation whose packets it holds, as receiver and number.
    holders: Vec<Option<(HostId, u32)>>,
    data_bytes: u32,
    /// Credit of control packets, in 2^-20 bytes, and the most that is saved.
    credit: u64,
    credit_max: u64,
}

/// 2^-20 bytes in a byte.
const BYTE: u64 = 1 << 20;

impl Turns {
    /// The queues of a switch with these ports. Packets of `transport` are served in turn.
    pub fn new(bounds: &Bounds, ports: impl Iterator<Item = units::Rate>, transport: u8) -> Turns {
        let port = |rate| {
            let credit_max = bounds.control_burst_bytes(rate).saturating_mul(BYTE);
            PortTurns {
                links: FlowQueues::new(bounds.packet_bytes(), Order::WholeTurns),
                holders: Vec::new(),
                data_bytes: 0,
                credit: credit_max,
                credit_max,
            }
        };
        Turns { ports: ports.map(port).collect(), transport, share: (bounds.control_per_data() * BYTE as f64) as u64 }
    }

    /// The reservation in whose queue a packet waits, if any.
    fn holder(&self, packet: &Packet) -> Option<(HostId, u32)> {
        if packet.transport != self.transport || packet.class != URGENT {
            return None;
        }
        match packet.header() {
            Header::Data(Data { reservation, .. }) | Header::Complete { reservation, .. } => {
                Some((packet.dst, reservation.id))
            }
            _ => None,
        }
    }
}

impl PortTurns {
    /// The queue of a reservation. The number of reservations with packets never exceeds the link's virtual links.
    fn queue(&mut self, holder: (HostId, u32)) -> u32 {
        let known = self.holders.iter().position(|of| *of == Some(holder));
        let queue = known.or_else(|| self.holders.iter().position(Option::is_none)).unwrap_or_else(|| {
            self.holders.push(None);
            self.holders.len() - 1
        });
        self.holders[queue] = Some(holder);
        queue as u32
    }

    /// A packet has left. Its queue, if empty, may hold packets of another reservation next.
    fn left(&mut self, taken: &Taken, bytes: u32) {
        let Some(queue) = taken.slot else { return };
        self.data_bytes -= bytes;
        if taken.left_bytes == 0 {
            self.holders[queue as usize] = None;
        }
    }
}

impl QueueDiscipline for Turns {
    fn enqueue(&mut self, cx: &mut LinkCx<'_>, out: PortId, id: PacketId) -> u32 {
        let packet = &cx.pool.get(id).packet;
        let (class, bytes) = (packet.class, u32::from(packet.wire_bytes));
        let Some(holder) = self.holder(packet) else {
            let port = &mut cx.ports[out.index()];
            port.push(cx.now, cx.pool, id);
            return port.class_bytes(class);
        };
        let port = &mut self.ports[out.index()];
        let queue = port.queue(holder);
        port.data_bytes += bytes;
        port.links.push(cx, out, queue, id)
    }

    fn class_bytes(&self, ports: &[Port], port: PortId, class: u8) -> u32 {
        let data = if class == URGENT { self.ports[port.index()].data_bytes } else { 0 };
        ports[port.index()].class_bytes(class) + data
    }

    fn dequeue(&mut self, cx: &mut LinkCx<'_>, out: PortId) -> Option<Dequeued> {
        let (port, turns) = (&mut cx.ports[out.index()], &mut self.ports[out.index()]);
        let data = turns.links.ready() > 0;
        let control = port.class_packets(URGENT).first();
        let needs = control.map(|id| u64::from(cx.pool.get(id).packet.wire_bytes) * BYTE);
        if data && needs.is_none_or(|needs| needs > turns.credit) {
            let taken = turns.links.take_turn(port, cx.pool)?;
            let bytes = u32::from(cx.pool.get(taken.id).packet.wire_bytes);
            turns.credit = turns.credit.saturating_add(u64::from(bytes) * self.share).min(turns.credit_max);
            turns.left(&taken, bytes);
            return Some(Dequeued { id: taken.id, left_bytes: taken.left_bytes });
        }
        if data {
            turns.credit -= needs.unwrap_or(0);
        }
        let id = port.take_next(cx.pool)?;
        Some(Dequeued { id, left_bytes: port.class_bytes(cx.pool.get(id).packet.class) })
    }

    fn ready(&self, ports: &[Port], out: PortId) -> bool {
        self.ports[out.index()].links.has_sendable(&ports[out.index()])
    }

    fn drain(&mut self, cx: &mut LinkCx<'_>, port: PortId) -> Option<PacketId> {
        let turns = &mut self.ports[port.index()];
        let taken = turns.links.drain(&mut cx.ports[port.index()], cx.pool)?;
        turns.left(&taken, u32::from(cx.pool.get(taken.id).packet.wire_bytes));
        Some(taken.id)
    }

    /// Packets that are served in turn are the most urgent ones, and are never pushed out.
    fn push_out(&mut self, cx: &mut LinkCx<'_>, port: PortId, class: u8) -> Option<PacketId> {
        cx.ports[port.index()].push_out(class, cx.pool)
    }

    fn queues_max(&self, port: PortId) -> u32 {
        self.ports[port.index()].links.used_max()
    }

    fn queues(&self, ports: &[Port], port: PortId, see: &mut dyn FnMut(QueueView)) {
        let own = &ports[port.index()];
        for class in 1..8 {
            let (bytes, packets) = (own.class_bytes(class), own.class_packets(class));
            if bytes > 0 {
                see(QueueView { cause: Cause::Class(class), paused: false, root: false, bytes, packets });
            }
        }
        self.ports[port.index()].links.show(own, Cause::Queue, see);
    }
}
