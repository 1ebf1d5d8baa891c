use std::slice;

use driver::{Cut, Driver, Probe, Probes, Stuck};
use engine::{Bounds, Ended, Outcome};
use run::{Plan, Progress, Stillness};
use units::Time;

use crate::part::{self, Part, ReceivedBytes};
use crate::run::{Finish, RunResult, conclude};

/// A run on the calling thread, for callers that have to do other things in between: a browser's worker can't receive a
/// message to stop while it computes. Its results are those of [`run_plan`](crate::run_plan), however long its steps,
/// but for two settings: with `fast_forward` nothing is skipped, and with `measure.alone` no job runs alone afterwards.
pub struct Steps {
    plan: Plan,
    board: ReceivedBytes,
    parts: Parts,
    stuck: Stuck,
    stillness: Stillness,
    finish: Finish,
}

/// With probes, or without any trace of them.
enum Parts {
    Plain(Vec<Part<()>>),
    Probed(Vec<Part<Probes>>),
}

impl Steps {
    /// The beginning of a run, in one part: several would share nothing with one thread but its cache.
    pub fn new(plan: Plan) -> Steps {
        let (board, cut) = (ReceivedBytes::default(), Cut::new(&plan, 1));
        let parts = match Probes::new(&plan).is_empty() {
            true => Parts::Plain(part::parts(&plan, &cut, &board, || ())),
            false => Parts::Probed(part::parts(&plan, &cut, &board, || Probes::new(&plan))),
        };
        let outcome = Outcome { end: Time::ZERO, ended: Ended::Interrupted, windows: 0, open_until: None };
        let (stuck, stillness) = (Stuck::new(&plan), Stillness::new(&plan));
        Steps { plan, board, parts, stuck, stillness, finish: Finish { outcome, stuck: None } }
    }

    /// Goes on until `watch`, which is called after each window, returns true. Returns whether the run is over.
    pub fn advance(&mut self, mut watch: impl FnMut(Progress) -> bool) -> bool {
        let (plan, board) = (&self.plan, &self.board);
        let (flows, work) = (plan.goal(), plan.flows.bytes());
        let (before, stillness) = (self.finish.outcome, &mut self.stillness);
        let open_until = before.open_until;
        let bounds = Bounds { open_until, ..Bounds::new(plan.lookahead, plan.horizon, flows) };
        let watch = |now, flows_done| {
            let work_done = board.delivered_bytes();
            let still = stillness.see(now, work_done);
            watch(Progress { now, horizon: plan.horizon, flows_done, flows, work_done, work, still })
        };
        // Windows follow from what is pending alone, so the engine goes on where it has stopped.
        let stuck = &mut self.stuck;
        self.finish = match &mut self.parts {
            Parts::Plain(parts) => Finish::of(plan, parts, 1, bounds, stuck, watch),
            Parts::Probed(parts) => Finish::of(plan, parts, 1, bounds, stuck, watch),
        };
        let outcome = &mut self.finish.outcome;
        (outcome.end, outcome.windows) = (outcome.end.max(before.end), outcome.windows + before.windows);
        outcome.ended != Ended::Interrupted
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
            Parts::Plain(parts) => conclude(&self.plan, &cut, slice::from_ref(&parts[0].0), 1, &self.finish),
            Parts::Probed(parts) => conclude(&self.plan, &cut, slice::from_ref(&parts[0].0), 1, &self.finish),
        }
    }

    /// Its results so far: if it is not over, those of a run that was interrupted here.
    pub fn conclude(self) -> RunResult {
        let Steps { plan, parts, finish, .. } = self;
        match parts {
            Parts::Plain(parts) => end(&plan, parts, &finish),
            Parts::Probed(parts) => end(&plan, parts, &finish),
        }
    }
}

fn end<P: Probe>(plan: &Plan, parts: Vec<Part<P>>, finish: &Finish) -> RunResult {
    let mut drivers: Vec<_> = parts.into_iter().map(|Part(driver, _)| driver).collect();
    drivers.iter_mut().for_each(|driver| driver.settle(finish.outcome.end));
    drivers.iter_mut().for_each(Driver::end);
    conclude(plan, &Cut::new(plan, 1), &drivers, 1, finish)
}

#[cfg(test)]
mod tests;
