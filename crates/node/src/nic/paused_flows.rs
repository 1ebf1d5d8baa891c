use std::collections::VecDeque;

use crate::{NicControl, Packet};
use rustc_hash::FxHashMap;
use units::FlowId;

/// Packets of flows that the link may not carry now, a queue a flow: what a NIC keeps for endpoints that do not ask the gate
/// before they send, so that a paused flow holds back no other.
#[derive(Default)]
pub struct PausedFlows {
    queues: FxHashMap<FlowId, VecDeque<Packet>>,
    /// Flows with packets here that may not go, oldest first.
    waiting: Vec<FlowId>,
    /// Flows with packets here that might go, in turn.
    ready: VecDeque<FlowId>,
    epoch: u32,
}

impl PausedFlows {
    /// Takes in a packet that an endpoint has sent, and gives it back unless it must wait.
    pub fn pass(&mut self, control: &dyn NicControl, packet: Packet) -> Option<Packet> {
        if control.held_classes() >> packet.class & 1 == 0 {
            return Some(packet);
        }
        if let Some(queue) = self.queues.get_mut(&packet.flow) {
            queue.push_back(packet); // behind those that came before
            return None;
        }
        if control.lets(packet.transport, packet.flow, packet.dst, packet.flow_label()) {
            return Some(packet);
        }
        self.queues.insert(packet.flow, VecDeque::from([packet]));
        self.waiting.push(packet.flow);
        None
    }

    /// Takes in a packet that came before all of its flow that are here and may no longer go.
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

    /// The next packet that was held and may go.
    pub fn next(&mut self, control: &dyn NicControl) -> Option<Packet> {
        if self.epoch != control.epoch() {
            self.epoch = control.epoch();
            self.ready.extend(self.waiting.drain(..));
        }
        while let Some(flow) = self.ready.pop_front() {
            let queue = self.queues.get_mut(&flow).expect("a flow that waits has a queue");
            let first = *queue.front().expect("a flow's queue is not empty");
            if !control.lets(first.transport, flow, first.dst, first.flow_label())
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
