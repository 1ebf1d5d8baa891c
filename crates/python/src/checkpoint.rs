//! Checkpoints as files: written whole or not at all, read as data.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use pyo3::prelude::*;
use run::Plan;
use sim::{Checkpoint, Moments};
use units::{FlowId, Problem, Time};

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

/// The scenario of a checkpoint, every default filled in, and its time in picoseconds.
#[pyfunction]
pub(crate) fn checkpoint_of(file: PathBuf) -> PyResult<(String, u64)> {
    let read = read(&file).map_err(|problem| pyo3::exceptions::PyValueError::new_err(problem.message))?;
    Ok((read.scenario_toml, read.at.ps()))
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
