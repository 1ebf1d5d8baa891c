//! A switch's part (section 4.1): at each port a short queue that is searched, not sorted.
//!
//! With at most two bandwidth-delay products of packets, the paper finds the least and the greatest in a comparator
//! tree; here a list in the order of arrival is searched.

use node::link::{Admission, Cause, Dequeued, LinkCx, QueueView};
use node::pool::{Fifo, PacketId};
use node::{Packet, Port, QueueDiscipline, Walk};
use units::{FlowId, HostId, PortId};

use super::Header;

/// What the queue knows of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, node::Saved)]
pub struct Label {
    /// Priority, least first.
    pub priority: u64,
    /// The packet's flow; a flow's data and its acknowledgements count as two.
    pub flow: (FlowId, HostId),
    /// Bytes on the wire.
    pub bytes: u32,
}

/// The queue of one port, of packets named by `T`, in the order of arrival.
#[derive(Clone, Debug, node::Saved)]
pub struct Queue<T> {
    packets: Vec<(Label, T)>,
    bytes: u32,
    bytes_max: u32,
}

/// The fate of an arriving packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offer<T> {
    /// It fits.
    Fits,
    /// This packet has been removed to make room, and perhaps another follows.
    Evicts(T),
    /// The arriving packet is dropped.
    Loses,
}

impl<T: Copy> Queue<T> {
    /// An empty queue with this capacity.
    pub fn new(bytes_max: u32) -> Queue<T> {
        Queue { packets: Vec::new(), bytes: 0, bytes_max }
    }

    /// Bytes in it.
    pub fn bytes(&self) -> u32 {
        self.bytes
    }

    /// Whether nothing is in it.
    pub fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// Whether there is room for a packet. If not, the packet with the greatest number is dropped, the last of equals.
    pub fn offer(&mut self, label: Label) -> Offer<T> {
        if self.bytes + label.bytes <= self.bytes_max {
            return Offer::Fits;
        }
        match self.greatest() {
            Some(last) if self.packets[last].0.priority > label.priority => Offer::Evicts(self.take(last).1),
            _ => Offer::Loses,
        }
    }

    /// Appends a packet.
    pub fn push(&mut self, label: Label, packet: T) {
        self.bytes += label.bytes;
        self.packets.push((label, packet));
    }

    /// Removes the packet to send: the first to arrive of the flow that has the packet with the least number.
    pub fn pop(&mut self) -> Option<T> {
        let (least, _) = self.packets.iter().min_by_key(|(label, _)| label.priority)?;
        let flow = least.flow;
        let first = self.packets.iter().position(|(label, _)| label.flow == flow)?;
        Some(self.take(first).1)
    }

    fn greatest(&self) -> Option<usize> {
        let all = self.packets.iter().enumerate();
        all.max_by_key(|(_, (label, _))| label.priority).map(|(index, _)| index)
    }

    fn take(&mut self, index: usize) -> (Label, T) {
        let taken = self.packets.remove(index);
        self.bytes -= taken.0.bytes;
        taken
    }
}

/// A switch's queues.
#[derive(node::State)]
#[state(last(self.put_in_order(walk)))]
pub(super) struct SwitchPart {
    #[state(skip("`put_in_order` visits them"))]
    ports: Vec<Queue<PacketId>>,
    /// The same packets as a plain list, for others to see.
    shown: Vec<Fifo>,
    transport: u8,
    #[state(count)]
    evicted: u64,
}

impl SwitchPart {
    /// Queues of this capacity for each port; packets of `transport` carry priorities.
    pub fn new(ports: usize, bytes_max: u32, transport: u8) -> SwitchPart {
        let queue = |_| Queue::new(bytes_max);
        SwitchPart {
            ports: (0..ports).map(queue).collect(),
            shown: vec![Fifo::default(); ports],
            transport,
            evicted: 0,
        }
    }

    fn label(&self, packet: &Packet) -> Label {
        let ours = packet.transport == self.transport;
        let priority = if ours { packet.header::<Header>().priority() } else { u64::MAX };
        Label { priority, flow: (packet.flow, packet.src), bytes: u32::from(packet.wire_bytes) }
    }

    fn left(&mut self, cx: &mut LinkCx<'_>, out: PortId, id: PacketId) {
        self.shown[out.index()].remove(cx.pool, id);
        cx.ports[out.index()].release(cx.pool, id);
    }

    /// Goes over what waits, and over the order in which it leaves: of priorities only that matters. They are in the
    /// packets, which have been gone over.
    fn put_in_order(&mut self, walk: &mut Walk) {
        walk.with_pool(|walk, pool| {
            for port in 0..self.ports.len() {
                let ids: Vec<PacketId> = self.ports[port].packets.iter().map(|&(_, id)| id).collect();
                let labels: Vec<Label> = ids.iter().map(|&id| self.label(&pool.get(id).packet)).collect();
                walk.same((labels.len(), self.ports[port].bytes));
                let mut order: Vec<(u64, usize)> = labels.iter().map(|label| label.priority).zip(0..).collect();
                order.sort_unstable();
                order.iter().for_each(|&(_, place)| walk.same(place));
                for pair in order.windows(2).filter(|pair| pair[0].0 > 0) {
                    walk.lead(pair[1].0 - pair[0].0);
                }
                self.ports[port].packets = labels.into_iter().zip(ids).collect();
            }
        });
    }
}

impl QueueDiscipline for SwitchPart {
    fn admit(&mut self, cx: &mut LinkCx<'_>, out: PortId, id: PacketId) -> Admission {
        let label = self.label(&cx.pool.get(id).packet);
        match self.ports[out.index()].offer(label) {
            Offer::Fits => Admission::ByBuffer,
            Offer::Loses => Admission::Full,
            Offer::Evicts(victim) => {
                self.evicted += 1;
                self.left(cx, out, victim);
                Admission::Evict(victim)
            }
        }
    }

    fn enqueue(&mut self, cx: &mut LinkCx<'_>, out: PortId, id: PacketId) -> u32 {
        let label = self.label(&cx.pool.get(id).packet);
        self.ports[out.index()].push(label, id);
        self.shown[out.index()].push(cx.pool, id);
        cx.ports[out.index()].hold(cx.now, cx.pool, id);
        self.ports[out.index()].bytes()
    }

    fn dequeue(&mut self, cx: &mut LinkCx<'_>, out: PortId) -> Option<Dequeued> {
        let id = self.ports[out.index()].pop()?;
        self.left(cx, out, id);
        Some(Dequeued { id, left_bytes: self.ports[out.index()].bytes() })
    }

    fn ready(&self, _: &[Port], out: PortId) -> bool {
        !self.ports[out.index()].is_empty()
    }

    fn drain(&mut self, cx: &mut LinkCx<'_>, port: PortId) -> Option<PacketId> {
        self.dequeue(cx, port).map(|dequeued| dequeued.id)
    }

    /// All packets are of one class: none is less urgent.
    fn push_out(&mut self, _: &mut LinkCx<'_>, _: PortId, _: u8) -> Option<PacketId> {
        None
    }

    fn queues(&self, _: &[Port], port: PortId, see: &mut dyn FnMut(QueueView)) {
        let (bytes, packets) = (self.ports[port.index()].bytes(), self.shown[port.index()]);
        if bytes > 0 {
            see(QueueView { cause: Cause::Class(0), paused: false, root: false, bytes, packets });
        }
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        vec![("evicted", self.evicted)]
    }
}

#[cfg(test)]
mod tests;
