//! Checkpoints as files: written whole or not at all, read as data.

use std::fs::{self, File};
use std::io::Write;
use std::path::{self, Path, PathBuf};
use std::sync::Mutex;

use pyo3::prelude::*;
use run::{Estimate, Plan, Progress};
use sim::{Checkpoint, Moments, Says, Side};
use units::{FlowId, Problem, Time};

use crate::aside::{aside, watched};
use crate::run::{Run, give};
use crate::{Scenario, scenario_error};

/// When a run is written down, and to which file. Each checkpoint takes the place of the one before.
pub(crate) struct Keeping {
    pub moments: Moments,
    file: PathBuf,
}

impl Keeping {
    pub fn new((moments, file): (String, PathBuf)) -> Result<Keeping, Problem> {
        let moments = moments.parse().map_err(|why: String| Problem::new("checkpoint", why))?;
        Ok(Keeping { moments, file })
    }

    /// Writes beside the file, and renames: a process that is killed leaves the checkpoint before.
    pub fn keep(&self, _: Time, bytes: &[u8]) -> Result<(), String> {
        let name = self.file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let part = self.file.with_file_name(format!(".{name}.part"));
        let written = || {
            let mut to = File::create(&part)?;
            to.write_all(bytes)?;
            to.sync_all()?;
            fs::rename(&part, &self.file)
        };
        written().map_err(|why| format!("{}: {why}", self.file.display()))
    }
}

/// Reads a file; it says which one is wrong.
pub(crate) fn read(file: &Path) -> Result<Checkpoint, Problem> {
    let wrong = |why: String| Problem::new("", format!("{}: {why}", file.display()));
    let bytes = fs::read(file).map_err(|why| wrong(why.to_string()))?;
    Checkpoint::read(bytes).map_err(|problem| wrong(problem.message))
}

/// A folder as a checkpoint has it.
pub(crate) fn place(folder: &Path) -> String {
    path::absolute(folder).map_or(String::new(), |folder| folder.display().to_string())
}

/// The scenario of a checkpoint, every default filled in, its time in picoseconds, and the folder of the files that the
/// scenario names.
#[pyfunction]
pub(crate) fn checkpoint_of(file: PathBuf) -> PyResult<(String, u64, String)> {
    let read = read(&file).map_err(|problem| pyo3::exceptions::PyValueError::new_err(problem.message))?;
    Ok((read.scenario_toml, read.at.ps(), read.folder))
}

/// A checkpoint of this scenario as JSON for a person: a node, a port or a flow, or the whole.
#[pyfunction]
#[pyo3(signature = (scenario, file, what=None, flow=None))]
pub(crate) fn inspect(
    py: Python<'_>,
    scenario: &Bound<'_, Scenario>,
    file: PathBuf,
    what: Option<String>,
    flow: Option<u32>,
) -> PyResult<String> {
    let of = scenario.get();
    let seen = py.detach(|| {
        let checkpoint = read(&file)?;
        checkpoint.inspect(&Plan::new(&of.read)?, what.as_deref(), flow.map(FlowId))
    });
    let tree = seen.map_err(|problem| scenario_error(py, of.source.locate(problem)))?;
    Ok(serde_json::to_string(&tree).expect("a tree is JSON"))
}

/// The keys that a fork may change, and those that it may not: each with whether it may, and what that means, or why it
/// may not.
#[pyfunction]
pub(crate) fn fork_keys() -> Vec<(&'static str, bool, &'static str)> {
    let row = |of: &sim::Key| match of.says {
        Says::Free(what) => (of.key, true, what),
        Says::Fixed(why) => (of.key, false, why),
    };
    sim::KEYS.iter().map(row).collect()
}

/// Runs forks of a checkpoint of this scenario, each as its scenario says. Of those that a signal kept from beginning
/// there is none.
#[pyfunction]
#[pyo3(signature = (scenario, file, forks, threads, progress=None, memory_bytes_max=None))]
pub(crate) fn fork<'py>(
    py: Python<'py>,
    scenario: &Bound<'py, Scenario>,
    file: PathBuf,
    forks: Vec<Py<Scenario>>,
    threads: usize,
    progress: Option<Py<PyAny>>,
    memory_bytes_max: Option<u64>,
) -> PyResult<Vec<Option<Run<'py>>>> {
    let kept: Vec<Py<Scenario>> = forks.iter().map(|of| of.clone_ref(py)).collect();
    let ran = watched(py, scenario.as_unbound(), progress, move |read, watch| {
        let from = self::read(&file)?;
        let most = memory_bytes_max.map(|all| all / (threads / from.parts.max(1)).clamp(1, forks.len().max(1)) as u64);
        let plan = |read: &scenario::Scenario| {
            let plan = Plan::within(read, most)?;
            most.map_or(Ok(()), |most| Estimate::of(&plan).check_memory(&plan, most))?;
            Ok(plan)
        };
        let before = Plan::new(read)?;
        let scenarios: Vec<&scenario::Scenario> = forks.iter().map(|of| &of.get().read).collect();
        let told = Mutex::new((watch, vec![None; forks.len()]));
        let watch = |number: usize, at: Option<Progress>| {
            let mut told = told.lock().expect("no progress panics");
            let (watch, all) = &mut *told;
            all[number] = at.or(all[number]);
            watch(together(all, read_goal(&before)))
        };
        Ok(sim::fork(&from, &before, &scenarios, plan, threads, watch))
    })?;
    let locate = |(number, problem): (usize, Problem)| scenario_error(py, kept[number].get().source.locate(problem));
    let results = ran.map_err(locate)?.into_iter();
    results.map(|of| of.map(|of| give(py, &of.info, of.scenario_toml, of.tables)).transpose()).collect()
}

/// How many things must end until a run of this plan is over, and the bytes that it delivers.
fn read_goal(plan: &Plan) -> (u64, u64) {
    (plan.goal(), plan.flows.bytes_taking_part())
}

/// The progress of several runs; one that has not begun has as much to do as the first run.
fn together(all: &[Option<Progress>], (flows, work): (u64, u64)) -> Progress {
    let begun = || all.iter().flatten();
    let yet = all.iter().filter(|of| of.is_none()).count() as u64;
    Progress {
        now: begun().map(|of| of.now).min().filter(|_| yet == 0).unwrap_or_default(),
        horizon: begun().map(|of| of.horizon).max().unwrap_or(Time::MAX),
        flows_done: begun().map(|of| of.flows_done).sum(),
        flows: begun().map(|of| of.flows).sum::<u64>() + yet * flows,
        work_done: begun().map(|of| of.work_done).sum(),
        work: begun().fold(yet.saturating_mul(work), |sum, of| sum.saturating_add(of.work)),
        still: begun().map(|of| of.still).min().unwrap_or_default(),
    }
}

/// Where two runs begin to differ, as JSON.
#[pyfunction]
pub(crate) fn bisect(
    py: Python<'_>,
    one: &Bound<'_, Scenario>,
    other: &Bound<'_, Scenario>,
    threads: (usize, usize),
) -> PyResult<String> {
    let of = [one, other].map(|of| of.clone().unbind());
    let found = aside(py, move || {
        let plans = [Plan::new(&of[0].get().read)?, Plan::new(&of[1].get().read)?];
        let [one, other] = &plans;
        sim::bisect([Side { plan: one, threads: threads.0 }, Side { plan: other, threads: threads.1 }])
    })?;
    let found = found.map_err(|problem| scenario_error(py, other.get().source.locate(problem)))?;
    Ok(serde_json::to_string(&found).expect("it is JSON"))
}
