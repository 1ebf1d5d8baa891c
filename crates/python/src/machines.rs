//! Live runs on several machines.

use pyo3::prelude::*;
use scenario::ScenarioError;
use units::Problem;

use crate::run::{Run, give, watched};
use crate::{Scenario, scenario_error};

/// Machine, machines, nodes that lived here, end in ps.
type Part = (usize, usize, usize, u64);

/// Runs a scenario by the clock of so many machines, of which this is the first: it waits at `listen` until the others
/// have joined. `tell` is called with what happens until then.
#[pyfunction]
#[pyo3(signature = (scenario, machines, listen, token, tell, progress=None))]
pub(crate) fn live_machines<'py>(
    py: Python<'py>,
    scenario: &Scenario,
    machines: usize,
    listen: &str,
    token: &str,
    tell: Py<PyAny>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Run<'py>> {
    let run = |watch: &mut dyn FnMut(::run::Progress) -> bool| {
        here::run(&scenario.read, machines, listen, token, teller(tell), watch)
    };
    let result = watched(py, scenario, progress, run)?;
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
    let interrupted = || Python::attach(|py| py.check_signals().is_err());
    let joined = py.detach(|| here::join(address, scenario, token, teller(tell), interrupted));
    joined.map_err(|Problem { key, message }| {
        scenario_error(py, ScenarioError { source: address.to_owned(), line: None, key, message })
    })
}

/// Tells Python; what that makes of it does not stop the run.
fn teller(tell: Py<PyAny>) -> impl FnMut(String) {
    move |news| _ = Python::attach(|py| tell.call1(py, (news,)))
}

#[cfg(target_os = "linux")]
mod here {
    use live::machines::{Joined, Membership, News, Token};
    use units::Problem;

    const BUILD: &str = concat!("version ", env!("CARGO_PKG_VERSION"), ", commit ", env!("CLEARWAY_COMMIT"));

    pub fn run(
        scenario: &scenario::Scenario,
        machines: usize,
        listen: &str,
        token: &str,
        mut tell: impl FnMut(String),
        watch: &mut dyn FnMut(run::Progress) -> bool,
    ) -> Result<live::RunResult, Problem> {
        let member = Membership { token: &Token::new(token)?, build: BUILD };
        live::run_machines(scenario, machines, listen, &member, |news: News| tell(news.to_string()), watch)
    }

    pub fn join(
        address: &str,
        scenario: Option<&scenario::Scenario>,
        token: &str,
        mut tell: impl FnMut(String),
        mut interrupted: impl FnMut() -> bool,
    ) -> Result<super::Part, Problem> {
        let member = Membership { token: &Token::new(token)?, build: BUILD };
        let tell = |news: News| tell(news.to_string());
        let Joined { machine, machines, nodes, end } =
            live::join(address, scenario, &member, tell, |_| interrupted())?;
        Ok((machine, machines, nodes, end.ps()))
    }
}

#[cfg(not(target_os = "linux"))]
mod here {
    use units::Problem;

    pub fn run(
        _: &scenario::Scenario,
        _: usize,
        _: &str,
        _: &str,
        _: impl FnMut(String),
        _: &mut dyn FnMut(run::Progress) -> bool,
    ) -> Result<live::RunResult, Problem> {
        Err(Problem::new("live.machines", "several machines need Linux"))
    }

    pub fn join(
        _: &str,
        _: Option<&scenario::Scenario>,
        _: &str,
        _: impl FnMut(String),
        _: impl FnMut() -> bool,
    ) -> Result<super::Part, Problem> {
        Err(Problem::new("join", "several machines need Linux"))
    }
}
