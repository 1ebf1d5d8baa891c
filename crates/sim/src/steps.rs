use std::slice;

use driver::{Cut, Driver, Probe, Probes};
use engine::{Bounds, Ended, Outcome};
use run::{Plan, Progress};
use units::Time;

use crate::part::{self, Board, Part};
use crate::run::{RunResult, conclude};

/// A run on the calling thread, for callers that have to do other things in between: a browser's worker can't receive a
/// message to stop while it computes. Its results are those of [`run_plan`](crate::run_plan), however long its steps,
/// but for two settings: with `fast_forward` nothing is skipped, and with `measure.alone` no job runs alone afterwards.
pub struct Steps {
    plan: Plan,
    board: Board,
    parts: Parts,
    outcome: Outcome,
}

/// With probes, or without any trace of them.
enum Parts {
    Plain(Vec<Part<()>>),
    Probed(Vec<Part<Probes>>),
}

impl Steps {
    /// The beginning of a run, in one part: several would share nothing with one thread but its cache.
    pub fn new(plan: Plan) -> Steps {
        let (board, cut) = (Board::default(), Cut::new(&plan, 1));
        let parts = match Probes::new(&plan).is_empty() {
            true => Parts::Plain(part::parts(&plan, &cut, &board, || ())),
            false => Parts::Probed(part::parts(&plan, &cut, &board, || Probes::new(&plan))),
        };
        let outcome = Outcome { end: Time::ZERO, ended: Ended::Interrupted, windows: 0, open_until: None };
        Steps { plan, board, parts, outcome }
    }

    /// Goes on until `watch`, which is called after each window, returns true. Returns whether the run is over.
    pub fn advance(&mut self, mut watch: impl FnMut(Progress) -> bool) -> bool {
        let (plan, board) = (&self.plan, &self.board);
        let (flows, work) = (plan.goal(), plan.flows.bytes());
        let bounds = Bounds::new(plan.lookahead, plan.horizon, flows);
        let watch = |now, flows_done| {
            let work_done = board.delivered_bytes();
            watch(Progress { now, horizon: plan.horizon, flows_done, flows, work_done, work })
        };
        // Windows follow from what is pending alone, so the engine goes on where it has stopped.
        let Outcome { end, ended, windows, .. } = match &mut self.parts {
            Parts::Plain(parts) => engine::run(parts, 1, bounds, watch),
            Parts::Probed(parts) => engine::run(parts, 1, bounds, watch),
        };
        // If no window began, the engine's end is zero, and not the time that the run had come to.
        let end = if windows == 0 { self.outcome.end } else { end };
        self.outcome = Outcome { end, ended, windows: self.outcome.windows + windows, open_until: None };
        ended != Ended::Interrupted
    }

    /// Events so far.
    pub fn events(&self) -> u64 {
        match &self.parts {
            Parts::Plain(parts) => parts[0].0.events,
            Parts::Probed(parts) => parts[0].0.events,
        }
    }

    /// The results so far of a run that goes on. Asking changes nothing. What probes note at the end of a run is
    /// missing.
    pub fn so_far(&self) -> RunResult {
        let cut = Cut::new(&self.plan, 1);
        match &self.parts {
            Parts::Plain(parts) => conclude(&self.plan, &cut, slice::from_ref(&parts[0].0), 1, self.outcome),
            Parts::Probed(parts) => conclude(&self.plan, &cut, slice::from_ref(&parts[0].0), 1, self.outcome),
        }
    }

    /// Its results so far: if it is not over, those of a run that was interrupted here.
    pub fn conclude(self) -> RunResult {
        let Steps { plan, parts, outcome, .. } = self;
        match parts {
            Parts::Plain(parts) => end(&plan, parts, outcome),
            Parts::Probed(parts) => end(&plan, parts, outcome),
        }
    }
}

fn end<P: Probe>(plan: &Plan, parts: Vec<Part<P>>, outcome: Outcome) -> RunResult {
    let mut drivers: Vec<_> = parts.into_iter().map(|Part(driver, _)| driver).collect();
    drivers.iter_mut().for_each(|driver| driver.settle(outcome.end));
    drivers.iter_mut().for_each(Driver::end);
    conclude(plan, &Cut::new(plan, 1), &drivers, 1, outcome)
}

#[cfg(test)]
mod tests;
