//! A host in a run that skips what repeats: what its state is, and what happened to it in skipped time.

use node::Walk;
use units::Time;

use super::Host;
use crate::{FlowEvent, FlowRecord, Measured};

impl Host {
    /// Adds a record of a flow in skipped time: what happened to the flow that it is like.
    pub fn record_again(&mut self, record: FlowRecord) {
        match record.fate {
            FlowEvent::Delivered { transport, .. } => {
                self.transports[usize::from(transport)].endpoint.came_again(record.flow);
            }
            FlowEvent::Completed { .. } | FlowEvent::Rejected | FlowEvent::Failed(_) => self.ended += 1,
            FlowEvent::Started | FlowEvent::Resubmitted => {}
        }
        self.records.push(record);
    }

    /// Adds what was measured of a flow in skipped time: what was measured of the flow that it is like.
    pub fn measure_again(&mut self, measured: Measured) {
        self.measures.push(measured);
    }

    /// Counts parts of jobs here that ended in skipped time.
    pub fn parts_ended(&mut self, count: u64) {
        self.ended += count;
    }

    /// What keeps it from being moved ahead, and what follows the beginnings and ends of flows.
    pub(super) fn visit_told(&self, walk: &mut Walk) {
        walk.refuse_if(self.receive_limit.is_some(), "hosts take packets in more slowly than they come");
        walk.refuse_if(self.cpu.is_some(), "software of hosts takes time (host.cpu)");
        walk.refuse_if(self.outside.is_some(), "a host is attached to something outside");
        walk.told(self.measures.len() as u64);
        walk.told(self.records.len() as u64);
        walk.outside(self.starts.peek().map_or(Time::MAX, |start| start.0.0));
    }
}
