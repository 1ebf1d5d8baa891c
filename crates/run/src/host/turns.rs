//! When messages start, and in which order if they start at one instant. A program may send its messages in any order,
//! and the first always has its packets ahead of the others'. Messages of jobs stay in the order in which their ranks
//! send them.

use std::cmp::Reverse;

use units::{FlowId, Time, mix};

use super::Host;

impl Host {
    /// Messages that start at one instant do so in an order that is drawn by this seed.
    pub(crate) fn with_drawn_turns(mut self, seed: u64) -> Host {
        self.turns = Some(seed);
        let starts = std::mem::take(&mut self.starts).into_iter();
        self.starts = starts.map(|Reverse((at, _, flow))| Reverse((at, self.turn(flow), flow))).collect();
        self
    }

    /// When something starts here by itself: a flow whose time has come, or what a rank does after a computation.
    #[inline]
    pub fn starts_at(&self) -> Time {
        let start = self.starts.peek().map_or(Time::MAX, |start| start.0.0);
        self.jobs.as_ref().map_or(start, |jobs| jobs.next_at().min(start))
    }

    pub(super) fn turn(&self, flow: FlowId) -> u32 {
        self.turns.map_or(0, |seed| (mix(seed, u64::from(flow.0)) >> 32) as u32)
    }
}
