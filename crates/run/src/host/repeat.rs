//! A host in a run that skips what repeats: what its state is, and what happened to it in skipped time.

use node::Walk;
use units::{Stream, Time};

use super::{Host, Link};
use crate::{FlowEvent, FlowRecord, Measured};

impl Host {
    /// The random streams of its transports.
    pub fn streams(&self) -> impl Iterator<Item = &Stream> {
        self.transports.iter().map(|slot| &slot.random)
    }

    /// Goes over its state, so that a run whose state recurs may be moved ahead.
    pub fn walk(&mut self, walk: &mut Walk) {
        walk.same(self.turn);
        walk.told(self.measures.len() as u64);
        walk.told(self.records.len() as u64);
        walk.told(self.ended);
        walk.same((self.starts.len(), self.waiting.len(), self.resubmitted.len(), self.delivered.len()));
        walk.outside(self.starts.peek().map_or(Time::MAX, |start| start.0.0));
        let counts = [&mut self.received_packets, &mut self.received_bytes, &mut self.sent_packets];
        walk.counts(counts.into_iter().chain([&mut self.sent_bytes]));
        if let Some(jobs) = &mut self.jobs {
            jobs.walk(walk, &self.flows);
        }
        match &mut self.nic {
            Link::Open => {}
            Link::Controlled(nic) => nic.walk(walk),
            Link::Several(homes) => homes.walk(walk),
        }
        self.shaper.iter_mut().for_each(|shaper| shaper.walk(walk));
        walk.refuse_if(self.receive_limit.is_some(), "hosts take packets in more slowly than they come");
        walk.refuse_if(self.outside.is_some(), "a host is attached to something outside");
        for slot in &mut self.transports {
            walk.random(&mut slot.random);
            walk.count(&mut slot.submitted_again);
            walk.count(&mut slot.delivered_again);
            slot.endpoint.walk(walk);
        }
    }

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
}
