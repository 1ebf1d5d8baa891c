//! Runs that know nothing of each other, on several threads.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use run::Progress;
use units::{Problem, Time};

use crate::piece::{Outcome, Piece};

/// Time between two calls of `watch`.
const LOOK_UP: Duration = Duration::from_millis(20);

/// Something to run.
#[derive(Clone, Copy)]
pub(crate) struct Task {
    /// Bytes of its flows, headers not counted: how much work it is.
    pub bytes: u64,
    pub flows: u64,
}

/// How far all tasks are, over several calls of [`run`].
#[derive(Default)]
pub(crate) struct TaskProgress {
    next: AtomicUsize,
    stop: AtomicBool,
    bytes: AtomicU64,
    flows: AtomicU64,
    bytes_all: u64,
    flows_all: u64,
}

impl TaskProgress {
    /// Of all tasks.
    pub fn of(tasks: impl Iterator<Item = Task>) -> TaskProgress {
        let sum = |sum: (u64, u64), task: Task| (sum.0.saturating_add(task.bytes), sum.1 + task.flows);
        let (bytes_all, flows_all) = tasks.fold((0, 0), sum);
        TaskProgress { bytes_all, flows_all, ..TaskProgress::default() }
    }
}

/// Runs each task's piece on up to `threads` threads, those with the most bytes first, and returns the outcomes in the
/// tasks' order: none for a task that `watch` has ended or kept from beginning. The outcomes do not depend on the
/// number of threads, since no task knows of another.
pub(crate) fn run(
    board: &TaskProgress,
    tasks: &[Task],
    threads: usize,
    horizon: Time,
    make: impl Fn(usize) -> Result<Piece, Problem> + Sync,
    watch: &mut dyn FnMut(Progress) -> bool,
) -> Result<Vec<Option<Outcome>>, Problem> {
    let mut order: Vec<usize> = (0..tasks.len()).collect();
    order.sort_by_key(|&task| std::cmp::Reverse(tasks[task].bytes));
    board.next.store(0, Ordering::Relaxed);
    let (mut outcomes, mut problem) = (vec![None; tasks.len()], None);
    std::thread::scope(|scope| {
        let (sender, receiver) = mpsc::channel();
        for _ in 0..threads.clamp(1, tasks.len().max(1)) {
            let sender = sender.clone();
            let (order, make) = (&order, &make);
            scope.spawn(move || {
                while let Some(&task) = order.get(board.next.fetch_add(1, Ordering::Relaxed)) {
                    if board.stop.load(Ordering::Relaxed)
                        || sender.send((task, one(&tasks[task], task, board, make))).is_err()
                    {
                        return;
                    }
                }
            });
        }
        drop(sender);
        loop {
            match receiver.recv_timeout(LOOK_UP) {
                Ok((task, Ok(outcome))) => outcomes[task] = outcome,
                Ok((_, Err(found))) => {
                    board.stop.store(true, Ordering::Relaxed);
                    problem.get_or_insert(found);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            let progress = Progress {
                now: Time::ZERO,
                horizon,
                flows_done: board.flows.load(Ordering::Relaxed),
                flows: board.flows_all,
                work_done: board.bytes.load(Ordering::Relaxed),
                work: board.bytes_all,
                // Links that are simulated alone have no time in common.
                still: units::Duration::ZERO,
            };
            if watch(progress) {
                board.stop.store(true, Ordering::Relaxed);
            }
        }
    });
    problem.map_or(Ok(outcomes), Err)
}

/// Runs one piece; no outcome if it was ended before its time.
fn one(
    task: &Task,
    index: usize,
    board: &TaskProgress,
    make: &(impl Fn(usize) -> Result<Piece, Problem> + Sync),
) -> Result<Option<Outcome>, Problem> {
    let piece = make(index)?;
    let (mut bytes, mut flows) = (0, 0);
    let mut reached = |now_bytes: u64, now_flows: u64| {
        // Bytes that are sent again may count twice.
        let (now_bytes, now_flows) = (now_bytes.min(task.bytes), now_flows.min(task.flows));
        board.bytes.fetch_add(now_bytes.saturating_sub(bytes), Ordering::Relaxed);
        board.flows.fetch_add(now_flows.saturating_sub(flows), Ordering::Relaxed);
        (bytes, flows) = (bytes.max(now_bytes), flows.max(now_flows));
    };
    let (outcome, interrupted) = piece.run(|at| {
        reached(at.work_done, at.flows_done);
        board.stop.load(Ordering::Relaxed)
    });
    reached(task.bytes, task.flows);
    Ok((!interrupted).then_some(outcome))
}
