use std::collections::VecDeque;

use crate::{NicControl, Packet};
use rustc_hash::FxHashMap;
use units::FlowId;

/// Packets of held flows, a queue for each flow. A NIC keeps them for endpoints that do not ask the gate before they
/// send, so that a paused flow does not block others.
#[derive(Default, node::State)]
pub struct PausedFlows {
    queues: FxHashMap<FlowId, VecDeque<Packet>>,
    /// Held flows with packets here, oldest first.
    waiting: Vec<FlowId>,
    /// Flows with packets here that may be sent, in turn.
    ready: VecDeque<FlowId>,
    #[state(turn("epoch"))]
    epoch: u32,
}

impl PausedFlows {
    /// Takes a packet that an endpoint has sent, and returns it unless it must wait.
    pub fn pass(&mut self, control: &dyn NicControl, packet: Packet) -> Option<Packet> {
        if control.held_classes() >> packet.class & 1 == 0 {
            return Some(packet);
        }
        if let Some(queue) = self.queues.get_mut(&packet.flow) {
            queue.push_back(packet); // behind those that came before
            return None;
        }
        let must_wait = control.counts() && control.paused_classes() >> packet.class & 1 == 1;
        if !must_wait && control.lets(packet.transport, packet.flow, packet.dst, packet.class, packet.flow_label()) {
            return Some(packet);
        }
        self.queues.insert(packet.flow, VecDeque::from([packet]));
        self.waiting.push(packet.flow);
        None
    }

    /// Whether packets of a flow wait here.
    pub fn holds(&self, flow: FlowId) -> bool {
        self.queues.contains_key(&flow)
    }

    /// Takes back a packet that precedes all packets of its flow here and may no longer be sent.
    pub fn put_back(&mut self, packet: Packet) {
        match self.queues.get_mut(&packet.flow) {
            Some(queue) => queue.push_front(packet),
            None => {
                self.queues.insert(packet.flow, VecDeque::from([packet]));
                self.waiting.push(packet.flow);
            }
        }
    }

    /// All packets, flow by flow.
    pub fn into_packets(mut self) -> Vec<Packet> {
        let flows = self.waiting.into_iter().chain(self.ready);
        flows.filter_map(|flow| self.queues.remove(&flow)).flatten().collect()
    }

    /// The next packet that was held and may now be sent.
    pub fn next(&mut self, control: &dyn NicControl) -> Option<Packet> {
        if self.epoch != control.epoch() {
            self.epoch = control.epoch();
            self.ready.extend(self.waiting.drain(..));
        }
        while let Some(flow) = self.ready.pop_front() {
            let queue = self.queues.get_mut(&flow).expect("a flow that waits has a queue");
            let first = *queue.front().expect("a flow's queue is not empty");
            if !control.lets(first.transport, flow, first.dst, first.class, first.flow_label())
                || control.paused_classes() >> first.class & 1 == 1
            {
                self.waiting.push(flow);
                continue;
            }
            queue.pop_front();
            if queue.is_empty() {
                self.queues.remove(&flow);
            } else {
                self.ready.push_back(flow);
            }
            return Some(first);
        }
        None
    }
}
