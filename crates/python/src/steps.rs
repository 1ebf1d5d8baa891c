//! A simulation in steps, for a program that decides in between what a control of its own answers.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use ::run::{Estimate, Plan};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::aside::LOOK_UP;
use crate::run::{Run, give};
use crate::{Scenario, planned};

/// A run on the calling thread that stops where it is told to.
#[pyclass(frozen, module = "clearway._core")]
pub(crate) struct Steps {
    /// `None` once it has concluded.
    steps: Mutex<Option<sim::Steps>>,
    lookahead_ps: u64,
    /// Whether a control has asked for a stop.
    halted: AtomicBool,
}

const CONCLUDED: &str = "the run has concluded";

#[pymethods]
impl Steps {
    /// The beginning of a run. One that will hardly fit `memory_bytes_max` is refused.
    #[new]
    #[pyo3(signature = (scenario, memory_bytes_max=None))]
    fn new(scenario: &Bound<'_, Scenario>, memory_bytes_max: Option<u64>) -> PyResult<Steps> {
        let plan = planned(scenario, move |read| {
            let plan = Plan::within(read, memory_bytes_max)?;
            if let Some(most) = memory_bytes_max {
                Estimate::of(&plan).check_memory(&plan, most)?;
            }
            Ok(plan)
        })?;
        let (lookahead_ps, halted) = (plan.lookahead.ps(), AtomicBool::new(false));
        Ok(Steps { steps: Mutex::new(Some(sim::Steps::new(plan))), lookahead_ps, halted })
    }

    /// It can stop at the ends of windows alone, and these are no longer than this.
    #[getter]
    fn lookahead_ps(&self) -> u64 {
        self.lookahead_ps
    }

    /// It is to stop at the end of this window.
    fn halt(&self) {
        self.halted.store(true, Ordering::Relaxed);
    }

    /// Goes on until it is halted, and says whether the run is over. It keeps Python's lock, which others get whenever
    /// a control runs, and ten times a second.
    #[expect(clippy::disallowed_methods, reason = "the real clock, for Ctrl-C")]
    fn advance(&self, py: Python<'_>) -> PyResult<bool> {
        let mut steps = self.steps.try_lock().map_err(|_| PyRuntimeError::new_err("it is advanced already"))?;
        let steps = steps.as_mut().ok_or_else(|| PyRuntimeError::new_err(CONCLUDED))?;
        let (mut looked, mut raised) = (Instant::now(), None);
        let over = steps.advance(|_| {
            if self.halted.swap(false, Ordering::Relaxed) {
                return true;
            }
            if looked.elapsed() >= LOOK_UP {
                looked = Instant::now();
                py.detach(std::thread::yield_now);
                raised = py.check_signals().err();
            }
            raised.is_some()
        });
        raised.map_or(Ok(over), Err)
    }

    /// What it has given so far.
    fn conclude<'py>(&self, py: Python<'py>) -> PyResult<Run<'py>> {
        let steps = self.steps.lock().unwrap_or_else(PoisonError::into_inner).take();
        let result = steps.ok_or_else(|| PyRuntimeError::new_err(CONCLUDED))?.conclude();
        give(py, &result.info, result.scenario_toml, result.tables)
    }
}
