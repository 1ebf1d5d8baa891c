//! When messages start, and in which order if they start at one instant. A program may send its messages in any order,
//! and the first always has its packets ahead of the others'. Messages of jobs stay in the order in which their ranks
//! send them.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rustc_hash::FxHashMap;
use units::{FlowId, Time, mix};

use super::Host;

/// The messages that are still to start at a host.
pub struct Starts {
    at_times: BinaryHeap<Reverse<(Time, u32, FlowId)>>,
    after_others: FxHashMap<FlowId, Vec<FlowId>>,
}

impl Host {
    /// Messages that start at one instant do so in an order that is drawn by this seed.
    pub(crate) fn with_drawn_turns(mut self, seed: u64) -> Host {
        self.turns = Some(seed);
        let starts = std::mem::take(&mut self.starts).into_iter();
        self.starts = starts.map(|Reverse((at, _, flow))| Reverse((at, self.turn(flow), flow))).collect();
        self
    }

    /// The first time of what wakes it beside its transports and starts.
    pub(super) fn parts_at(&self) -> Time {
        let shaper = self.shaper.as_ref().map_or(Time::MAX, |shaper| shaper.poll_at());
        let intake = self.receive_limit.as_ref().map_or(Time::MAX, |receive_limit| receive_limit.next_at());
        let cpu = self.cpu.as_ref().map_or(Time::MAX, |cpu| cpu.next_at());
        shaper.min(intake).min(cpu).min(self.nic.next_at())
    }

    /// When something starts here by itself: a flow whose time has come, or what a rank does after a computation.
    #[inline]
    pub fn starts_at(&self) -> Time {
        let start = self.starts.peek().map_or(Time::MAX, |start| start.0.0);
        self.jobs.as_ref().map_or(start, |jobs| jobs.next_at().min(start))
    }

    /// Takes the messages out that are still to start.
    pub fn take_starts(&mut self) -> Starts {
        Starts { at_times: std::mem::take(&mut self.starts), after_others: std::mem::take(&mut self.waiting) }
    }

    /// These messages are still to start, in place of others. Of the first `started` messages of the run those stay
    /// that are to be submitted again.
    pub fn replace_starts(&mut self, started: usize, new: Starts) {
        self.starts.retain(|Reverse((_, _, flow))| flow.index() < started);
        self.starts.extend(new.at_times.into_iter().filter(|Reverse((_, _, flow))| flow.index() >= started));
        self.waiting = new.after_others;
    }

    pub(super) fn turn(&self, flow: FlowId) -> u32 {
        self.turns.map_or(0, |seed| (mix(seed, u64::from(flow.0)) >> 32) as u32)
    }
}
