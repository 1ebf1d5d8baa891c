//! Native work on a thread of its own, while the thread that asked for it looks at Python's signals: so Ctrl-C is
//! answered at once, whatever the work is doing.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use run::Progress;
use units::{Problem, interrupt};

use crate::{Scenario, scenario_error};

/// How often a waiting thread looks up, and work says how far it is.
pub(crate) const LOOK_UP: Duration = Duration::from_millis(100);

/// After a signal, how many times [`LOOK_UP`] a run that has not begun may still take to begin.
const GRACE: u32 = 5;

/// As the stack of a process's first thread has by default, and more.
const STACK_BYTES: usize = 64 << 20;

/// Does some work. If a signal comes, it is left alone, and soon ends by itself: it is told to stop.
pub(crate) fn aside<R: Send + 'static>(py: Python<'_>, work: impl FnOnce() -> R + Send + 'static) -> PyResult<R> {
    let stop = Arc::new(AtomicBool::new(false));
    let mut working = Working::start(stop.clone(), work);
    loop {
        if let Some(result) = working.wait(py) {
            return Ok(result);
        }
        if let Err(interrupted) = py.check_signals() {
            stop.store(true, Ordering::Relaxed);
            return Err(interrupted);
        }
    }
}

/// What the run's thread and the thread that waits for it share.
#[derive(Default)]
struct SharedState {
    stop: Arc<AtomicBool>,
    /// The latest progress that has not been shown yet; and whether the run has begun.
    latest: Mutex<(Option<Progress>, bool)>,
}

impl SharedState {
    fn say(&self, at: Progress) {
        *self.latest.lock().unwrap_or_else(PoisonError::into_inner) = (Some(at), true);
    }

    fn look(&self) -> (Option<Progress>, bool) {
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        (latest.0.take(), latest.1)
    }
}

/// A run tells this of its progress, and stops if it returns true.
pub(crate) type Watch<'a> = &'a mut (dyn FnMut(Progress) -> bool + Send);

/// Runs with a watch. A signal ends a run that has begun at a consistent point, with what it has. One that does not
/// begin within half a second has nothing to keep, and is left alone, as by a second signal.
pub(crate) fn watched<R: Send + 'static>(
    py: Python<'_>,
    scenario: &Py<Scenario>,
    progress: Option<Py<PyAny>>,
    run: impl FnOnce(&scenario::Scenario, Watch<'_>) -> Result<R, Problem> + Send + 'static,
) -> PyResult<R> {
    let told = Arc::new(SharedState::default());
    let (saying, of) = (told.clone(), scenario.clone_ref(py));
    let mut working = Working::start(told.stop.clone(), move || run(&of.get().read, &mut watch(saying)));
    let mut raised = None;
    let mut interrupted: Option<(PyErr, u32)> = None;
    let result = loop {
        if let Some(result) = working.wait(py) {
            break result;
        }
        let (latest, begun) = told.look();
        match (py.check_signals(), interrupted.take()) {
            (Err(signal), _) if told.stop.swap(true, Ordering::Relaxed) => return Err(signal),
            (Err(signal), _) => interrupted = Some((signal, 0)),
            (Ok(()), Some((signal, GRACE))) if !begun => return Err(signal),
            (Ok(()), before) => interrupted = before.map(|(signal, waited)| (signal, (waited + 1).min(GRACE))),
        }
        let (Some(at), Some(progress), false) = (latest, &progress, told.stop.load(Ordering::Relaxed)) else {
            continue;
        };
        let said =
            progress.call1(py, (at.now.ps(), at.horizon.ps(), at.flows_done, at.flows, at.fraction(), at.still.ps()));
        if let Err(error) = said {
            told.stop.store(true, Ordering::Relaxed);
            // Ctrl-C during the callback ends the run as well, with what it has.
            raised = (!error.is_instance_of::<PyKeyboardInterrupt>(py)).then_some(error);
        }
    };
    match (raised, interrupted) {
        (Some(error), _) => Err(error),
        // Its plan has ended early.
        (None, Some((signal, _))) if result.is_err() && !told.look().1 => Err(signal),
        (None, _) => result.map_err(|problem| scenario_error(py, scenario.get().source.locate(problem))),
    }
}

/// The watch of a run: it says now and then how far the run is, and whether to stop.
#[expect(clippy::disallowed_methods, reason = "the real clock, for the progress display")]
fn watch(told: Arc<SharedState>) -> impl FnMut(Progress) -> bool {
    let mut looked: Option<Instant> = None;
    move |at| {
        if looked.is_none_or(|looked| looked.elapsed() >= LOOK_UP) {
            looked = Some(Instant::now());
            told.say(at);
        }
        told.stop.load(Ordering::Relaxed)
    }
}

/// A thread that works, and where its result comes.
struct Working<R> {
    thread: Option<JoinHandle<()>>,
    result: Option<Receiver<R>>,
}

impl<R: Send + 'static> Working<R> {
    fn start(stop: Arc<AtomicBool>, work: impl FnOnce() -> R + Send + 'static) -> Working<R> {
        let (sender, receiver) = sync_channel(1);
        let work = move || {
            // After a second signal no thread waits for it.
            let _ = sender.send(interrupt::stopped_by(stop, work));
        };
        let thread = Builder::new().stack_size(STACK_BYTES).spawn(work).expect("a thread can be started");
        Working { thread: Some(thread), result: Some(receiver) }
    }

    /// Waits a moment for the result, without Python's lock.
    fn wait(&mut self, py: Python<'_>) -> Option<R> {
        let receiver = self.result.take()?;
        let (receiver, came) = py.detach(move || {
            let came = receiver.recv_timeout(LOOK_UP);
            (receiver, came)
        });
        match came {
            Ok(result) => Some(result),
            Err(RecvTimeoutError::Timeout) => {
                self.result = Some(receiver);
                None
            }
            Err(RecvTimeoutError::Disconnected) => {
                let ended = self.thread.take().map(JoinHandle::join);
                match ended {
                    Some(Err(panic)) => resume_unwind(panic),
                    _ => unreachable!("a thread that ends well has sent its result"),
                }
            }
        }
    }
}
