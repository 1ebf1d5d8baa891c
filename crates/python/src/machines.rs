//! Live runs on several machines.

use std::path::PathBuf;

use live::machines::{Joined, Membership, News, Token};
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use scenario::ScenarioError;
use units::Problem;

use crate::aside::{Watch, watched};
use crate::run::{Run, give};
use crate::{Scenario, scenario_error};

/// What all machines of a run have to be built of. A commit says nothing of edits.
fn build() -> String {
    format!("version {}, commit {}, source {}", env!("CARGO_PKG_VERSION"), env!("CLEARWAY_COMMIT"), sim::SOURCE)
}

/// Machine, machines, nodes that lived here, end in ps.
type Part = (usize, usize, usize, u64);

/// Runs a scenario in real time on several machines, of which this is the first: it waits at `listen` until the others
/// have joined. `tell` is called with what happens until then. With `sockets`, programs send messages over it that
/// connect to a socket at that path.
#[pyfunction]
#[pyo3(signature = (scenario, machines, listen, token, tell, progress=None, sockets=None))]
#[expect(clippy::too_many_arguments, reason = "the arguments of a function of Python")]
pub(crate) fn live_machines<'py>(
    py: Python<'py>,
    scenario: &Bound<'py, Scenario>,
    machines: usize,
    listen: String,
    token: String,
    tell: Py<PyAny>,
    progress: Option<Py<PyAny>>,
    sockets: Option<PathBuf>,
) -> PyResult<Run<'py>> {
    let run = move |read: &scenario::Scenario, watch: Watch<'_>| {
        let member = Membership { token: &Token::new(&token)?, build: &build() };
        match &sockets {
            Some(path) => live::maze::serve_machines(read, path, machines, &listen, &member, teller(tell), watch),
            None => live::run_machines(read, machines, &listen, &member, teller(tell), watch),
        }
    };
    let result = watched(py, scenario.as_unbound(), progress, run)?;
    give(py, &result.info, result.scenario_toml, result.tables)
}

/// Takes part in a run that a machine at `address` has begun.
#[pyfunction]
#[pyo3(signature = (address, token, tell, scenario=None))]
pub(crate) fn live_join(
    py: Python<'_>,
    address: &str,
    token: &str,
    tell: Py<PyAny>,
    scenario: Option<&Scenario>,
) -> PyResult<Part> {
    let scenario = scenario.map(|scenario| &scenario.read);
    let mut leaves = false;
    let joined = py.detach(|| {
        let member = Membership { token: &Token::new(token)?, build: &build() };
        live::join(address, scenario, &member, teller(tell), |_| {
            leaves = Python::attach(|py| py.check_signals().is_err());
            leaves
        })
    });
    if joined.is_err() && leaves {
        return Err(PyKeyboardInterrupt::new_err(()));
    }
    match joined {
        Ok(Joined { machine, machines, nodes, end }) => Ok((machine, machines, nodes, end.ps())),
        Err(Problem { key, message }) => {
            Err(scenario_error(py, ScenarioError { source: address.to_owned(), line: None, key, message }))
        }
    }
}

/// Tells Python; what that makes of it does not stop the run.
fn teller(tell: Py<PyAny>) -> impl FnMut(News) {
    move |news| _ = Python::attach(|py| tell.call1(py, (news.to_string(),)))
}
