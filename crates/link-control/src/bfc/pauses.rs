//! The pause counters: how many packets here are counted against each upstream queue.

use node::Walk;
use node::link::{Cause, LinkCx};
use node::pool::{PacketId, Slot};
use rustc_hash::FxHashMap;
use units::{FlowId, PortId};

use crate::queue_frame::{Frame, Name};

/// Bits of a queue's number in [`Transit::queue`](node::pool::Transit::queue). The next bit says whether the packet is
/// counted.
pub const NUMBER_BITS: u32 = 15;

const COUNTED: u16 = 1 << NUMBER_BITS;

/// The pause counters of a switch.
#[derive(node::State)]
#[state(last(self.visit_upstream(walk)))]
pub struct Pauses {
    #[state(built("settings"))]
    name: Name,
    /// By port: whether frames to it name flows and acknowledgements are not counted.
    hosts_by_flow: Vec<bool>,
    #[state(skip("`visit_upstream` visits it"))]
    upstream: Vec<Upstream>,
    /// Number of frames sent.
    #[state(count)]
    pub pauses: u64,
    #[state(count)]
    pub resumes: u64,
}

/// Counters of the packets that arrived by one port, by upstream queue.
#[derive(Default, node::State)]
#[state(given(bool))]
struct Upstream {
    /// Number of changes of its link's state.
    epoch: u32,
    /// Counters by upstream queue, where not zero.
    #[state(each((when(*given, flow_number, _), _)))]
    counts: FxHashMap<u32, Count>,
}

#[derive(node::State)]
struct Count {
    packets: u32,
    /// The epoch in which the queue was paused.
    told: u32,
}

impl Pauses {
    /// `hosts_by_flow` tells for each port whether it leads to a host whose frames name flows.
    pub fn new(name: Name, hosts_by_flow: Vec<bool>) -> Pauses {
        let upstream = hosts_by_flow.iter().map(|_| Upstream::default()).collect();
        Pauses { name, hosts_by_flow, upstream, pauses: 0, resumes: 0 }
    }

    /// How the queue that a packet came from is named.
    fn named(&self, slot: &Slot) -> Name {
        if self.hosts_by_flow[usize::from(slot.transit.in_port)] { Name::Flow } else { self.name }
    }

    fn queue(&self, slot: &Slot) -> u32 {
        match self.named(slot) {
            Name::Flow => slot.packet.flow.0,
            Name::Number { .. } => u32::from(slot.transit.queue & !COUNTED),
        }
    }

    /// The upstream queue that a packet is counted against, if any.
    pub fn holds_back(&self, slot: &Slot) -> Option<Cause> {
        let queue = self.queue(slot);
        let cause = if self.named(slot) == Name::Flow { Cause::Flow(FlowId(queue)) } else { Cause::Queue(queue) };
        (slot.transit.queue & COUNTED != 0).then_some(cause)
    }

    /// Counts a packet against the upstream queue that it came from, and pauses that queue at the first packet.
    #[cold]
    pub fn count(&mut self, cx: &mut LinkCx<'_>, id: PacketId) {
        let slot = cx.pool.get_mut(id);
        if slot.packet.payload_bytes == 0 && self.hosts_by_flow[usize::from(slot.transit.in_port)] {
            return; // an answer, which its host sends whatever it is told
        }
        slot.transit.queue |= COUNTED;
        let (port, slot) = (slot.transit.in_port, *slot);
        let queue = self.queue(&slot);
        let Upstream { epoch, counts } = &mut self.upstream[usize::from(port)];
        let count = counts.entry(queue).or_insert(Count { packets: 0, told: epoch.wrapping_sub(1) });
        count.packets += 1;
        if count.told != *epoch {
            count.told = *epoch;
            self.pauses += 1;
            cx.send(PortId(u32::from(port)), Frame { queue, pause: true });
        }
    }

    /// A packet leaves: resumes the upstream queue that it came from if no other packet is counted against it.
    #[inline]
    pub fn left(&mut self, cx: &mut LinkCx<'_>, id: PacketId) {
        if cx.pool.get(id).transit.queue & COUNTED != 0 {
            self.uncount(cx, id);
        }
    }

    #[cold]
    fn uncount(&mut self, cx: &mut LinkCx<'_>, id: PacketId) {
        let slot = cx.pool.get_mut(id);
        let (port, before) = (slot.transit.in_port, *slot);
        slot.transit.queue &= !COUNTED;
        let queue = self.queue(&before);
        let Upstream { epoch, counts } = &mut self.upstream[usize::from(port)];
        let count = counts.get_mut(&queue).expect("a counted packet has a count");
        count.packets -= 1;
        if count.packets == 0 {
            let told = count.told == *epoch;
            counts.remove(&queue);
            if told {
                self.resumes += 1;
                cx.send(PortId(u32::from(port)), Frame { queue, pause: false });
            }
        }
    }

    /// The link at `port` has gone down or come up: no queue at its other end is paused any more.
    pub fn link_changed(&mut self, port: PortId) {
        let epoch = &mut self.upstream[port.index()].epoch;
        *epoch = epoch.wrapping_add(1);
    }

    fn visit_upstream(&mut self, walk: &mut Walk) {
        for (upstream, by_flow) in self.upstream.iter_mut().zip(&self.hosts_by_flow) {
            node::State::visit(upstream, walk, &(*by_flow || self.name == Name::Flow));
        }
    }
}
