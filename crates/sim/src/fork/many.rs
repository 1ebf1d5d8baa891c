//! Many forks of one checkpoint, side by side.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use run::{Plan, Progress};
use scenario::Scenario;
use units::{Problem, interrupt};

use super::check;
use crate::checkpoint::{Course, refusal};
use crate::{Checkpoint, RunResult, run_on};

/// Runs forks of a checkpoint, as many at once as fit these threads, each on as many as its network has parts. All are
/// checked before the first begins. `before` is the plan of the checkpoint's own run, `plan` makes the plan of a fork,
/// `watch` is told of the progress of each by its number; when it returns true the fork stops there. A fork that did
/// not begin because of that is `None`.
///
/// # Errors
/// The number of a fork that can't be, and why: the key that can't change, or what is wrong with its scenario.
pub fn fork(
    from: &Checkpoint,
    before: &Plan,
    forks: &[&Scenario],
    plan: impl Fn(&Scenario) -> Result<Plan, Problem> + Sync,
    threads: usize,
    watch: impl Fn(usize, Option<Progress>) -> bool + Sync,
) -> Result<Vec<Option<RunResult>>, (usize, Problem)> {
    for (number, scenario) in forks.iter().enumerate() {
        let checked = plan(scenario).and_then(|plan| {
            refusal(&plan).map_or(Ok(()), Err)?;
            check(from, before, &plan)
        });
        checked.map_err(|problem| (number, problem))?;
        interrupt::check().map_err(|problem| (number, problem))?;
    }
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(scenario) = forks.get(number) else { return };
            if watch(number, None) {
                return;
            }
            let ran = plan(scenario).and_then(|plan| {
                run_on(&plan, from.parts, None, Course::fork(from, before), |at| watch(number, Some(at)))
            });
            done.lock().expect("no fork panics while it holds this").push((number, ran));
        }
    };
    let at_once = (threads / from.parts.max(1)).clamp(1, forks.len().max(1));
    thread::scope(|scope| {
        (1..at_once).for_each(|_| drop(scope.spawn(work)));
        work();
    });
    let mut results: Vec<Option<RunResult>> = forks.iter().map(|_| None).collect();
    for (number, ran) in done.into_inner().expect("no fork panics while it holds this") {
        results[number] = Some(ran.map_err(|problem| (number, problem))?);
    }
    Ok(results)
}
