use std::collections::BTreeMap;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

use pyo3::exceptions::{PyKeyboardInterrupt, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use run::{Data, Estimate, Plan, Table};
use serde::Serialize;
use sim::Capturing;
use sim::capture::wanted;

use crate::Scenario;
use crate::aside::{LOOK_UP, Watch, watched};
use crate::checkpoint::{self, Keeping};

/// What a run gives: its summary as JSON, the resolved scenario, the tables.
pub(crate) type Run<'py> = (String, String, Vec<(&'static str, Vec<ColumnOut<'py>>)>);

/// Name, unit, what it says, kind ("u64", "u64?", "u32", "f64", "bool", "names"), values in the machine's byte order,
/// names.
pub(crate) type ColumnOut<'py> =
    (&'static str, &'static str, &'static str, &'static str, Bound<'py, PyBytes>, Vec<String>);

/// The content of a file of captured packets, and whether there were more.
type Captured<'py> = (Bound<'py, PyBytes>, bool);

/// Simulates a scenario. `progress` is called with (now in ps, horizon in ps, flows ended, flows, share of the work
/// done). A run that will hardly fit `memory_bytes_max` is refused. `parts`: into how many parts the network is cut at
/// most; None lets the engine choose. `pcap`: links whose packets are captured, each with its file, and at most how
/// many of each. `checkpoint`: when its state is written down, and to which file. `resume`: the file from which it goes
/// on.
#[pyfunction]
#[pyo3(signature = (scenario, threads, progress=None, memory_bytes_max=None, parts=None, pcap=None, checkpoint=None,
    resume=None))]
#[expect(clippy::too_many_arguments, reason = "they are Python's")]
#[expect(clippy::disallowed_methods, reason = "the real clock, for whoever looks on")]
pub(crate) fn simulate<'py>(
    py: Python<'py>,
    scenario: &Bound<'py, Scenario>,
    threads: usize,
    progress: Option<Py<PyAny>>,
    memory_bytes_max: Option<u64>,
    parts: Option<usize>,
    pcap: Option<(BTreeMap<String, String>, u64)>,
    checkpoint: Option<(String, PathBuf)>,
    resume: Option<PathBuf>,
) -> PyResult<(Run<'py>, Vec<Captured<'py>>)> {
    // One thread that calls Python all the time keeps its lock. Other threads of Python get it whenever Python runs and
    // they ask, as from any Python code, and when the run looks up.
    let folder = checkpoint::place(&scenario.get().source.folder);
    let keeps_lock = threads == 1 && !scenario.get().source.programs.is_empty();
    let (result, captured) = watched(py, scenario.as_unbound(), progress, move |read, watch| {
        let plan = Plan::within(read, memory_bytes_max)?;
        let capturing = |(places, most)| Ok((Capturing::new(&plan, wanted(&plan, &places, "pcap")?, most), most));
        let links = pcap.map(capturing).transpose()?;
        if let Some(most) = memory_bytes_max {
            let estimate = Estimate::of(&plan);
            match &links {
                Some((links, packets)) => estimate.capturing(&plan, links.links(), *packets),
                None => estimate,
            }
            .check_memory(&plan, most)?;
        }
        let links = links.map(|(links, _)| links);
        let execution = sim::Execution { threads, parts };
        let keeping = checkpoint.map(Keeping::new).transpose()?;
        let from = resume.as_deref().map(checkpoint::read).transpose()?;
        let mut keep = |at, bytes: &[u8]| keeping.as_ref().map_or(Ok(()), |keeping| keeping.keep(at, bytes));
        let kept = keeping.as_ref().map(|keeping| (keeping.moments, &mut keep as sim::Keep<'_>));
        let mut course = sim::Course::new(from.as_ref(), kept);
        course.folder = folder;
        let result = match keeps_lock {
            true => Python::attach(|py| {
                let mut looked = Instant::now();
                sim::run_on(&plan, execution, links.as_ref(), course, |at| {
                    if looked.elapsed() >= LOOK_UP {
                        looked = Instant::now();
                        py.detach(std::thread::yield_now);
                    }
                    watch(at)
                })
            }),
            false => sim::run_on(&plan, execution, links.as_ref(), course, watch),
        }?;
        let captured = links.map(|links| links.contents(&plan)).transpose()?;
        Ok((result, captured.unwrap_or_default()))
    })?;
    let captured = captured.into_iter().map(|of| (PyBytes::new(py, &of.blocks), of.is_cut_off)).collect();
    Ok((give(py, &result.info, result.scenario_toml, result.tables)?, captured))
}

/// Estimates a scenario at flow level. What will hardly fit `memory_bytes_max` is refused.
#[pyfunction]
#[pyo3(signature = (scenario, progress=None, memory_bytes_max=None))]
pub(crate) fn estimate<'py>(
    py: Python<'py>,
    scenario: &Bound<'py, Scenario>,
    progress: Option<Py<PyAny>>,
    memory_bytes_max: Option<u64>,
) -> PyResult<Run<'py>> {
    let run = move |read: &_, watch: Watch<'_>| fluid::estimate_within(read, memory_bytes_max, watch);
    let result = watched(py, scenario.as_unbound(), progress, run)?;
    give(py, &result.info, result.scenario_toml, result.tables)
}

/// Estimates a scenario by links that are simulated alone.
#[pyfunction]
#[pyo3(signature = (scenario, threads, progress=None, memory_bytes_max=None))]
pub(crate) fn estimate_links<'py>(
    py: Python<'py>,
    scenario: &Bound<'py, Scenario>,
    threads: usize,
    progress: Option<Py<PyAny>>,
    memory_bytes_max: Option<u64>,
) -> PyResult<Run<'py>> {
    let result = watched(py, scenario.as_unbound(), progress, move |read, watch| {
        links::estimate_within(read, threads, memory_bytes_max, watch)
    })?;
    give(py, &result.info, result.scenario_toml, result.tables)
}

/// Runs a scenario by the machine's clock, in this many processes. `command` starts one that calls [`live_part`].
#[pyfunction]
#[pyo3(name = "live", signature = (scenario, progress=None, processes=1, command=Vec::new()))]
pub(crate) fn run_live<'py>(
    py: Python<'py>,
    scenario: &Bound<'py, Scenario>,
    progress: Option<Py<PyAny>>,
    processes: usize,
    command: Vec<String>,
) -> PyResult<Run<'py>> {
    let result =
        watched(py, scenario.as_unbound(), progress, move |read, watch| match (processes, starting(&command)) {
            (2.., Some(start)) => live::run_processes(read, processes, start, watch),
            _ => live::run(read, watch),
        })?;
    give(py, &result.info, result.scenario_toml, result.tables)
}

/// What gives a command line as a command, again and again; none if the line is empty.
pub(crate) fn starting(line: &[String]) -> Option<impl FnMut() -> Command> {
    let (program, arguments) = line.split_first()?;
    Some(move || {
        let mut command = Command::new(program);
        command.args(arguments);
        command
    })
}

/// Takes part in a live run of several processes, of which the first is at the other end of standard input.
#[pyfunction]
pub(crate) fn live_part(py: Python<'_>) -> PyResult<()> {
    let socket = std::io::stdin().as_fd().try_clone_to_owned()?;
    py.detach(|| live::take_part(socket)).map_err(|problem| PyRuntimeError::new_err(problem.to_string()))
}

/// Measures how fast this machine runs scenarios by its clock: a report as JSON.
#[pyfunction]
#[pyo3(signature = (command=Vec::new()))]
pub(crate) fn live_bench(py: Python<'_>, command: Vec<String>) -> PyResult<String> {
    let interrupted = || Python::attach(|py| py.check_signals().is_err());
    let start = command.split_first().map(|(program, arguments)| {
        move || {
            let mut command = Command::new(program);
            command.args(arguments);
            command
        }
    });
    let report = py.detach(|| live::bench::measure(start, interrupted));
    match report {
        Ok(report) => Ok(serde_json::to_string(&report).expect("a report is JSON")),
        Err(problem) if problem.key == "bench" => Err(PyKeyboardInterrupt::new_err(())),
        Err(problem) => Err(PyRuntimeError::new_err(problem.to_string())),
    }
}

pub(crate) fn give<'py>(
    py: Python<'py>,
    info: &impl Serialize,
    toml: String,
    tables: Vec<Table>,
) -> PyResult<Run<'py>> {
    let info = serde_json::to_string(info).expect("a summary is JSON");
    let columns = |table: Table| Ok((table.name, columns_out(py, table.columns)?));
    Ok((info, toml, tables.into_iter().map(columns).collect::<PyResult<Vec<_>>>()?))
}

fn columns_out<'py>(py: Python<'py>, columns: Vec<run::Column>) -> PyResult<Vec<ColumnOut<'py>>> {
    let column = |column: run::Column| {
        let (kind, values, names) = match column.data {
            Data::U64(values) => ("u64", bytes(py, &values, |value| value.to_ne_bytes()), Vec::new()),
            Data::OptU64(values) => ("u64?", bytes(py, &values, |value| value.to_ne_bytes()), Vec::new()),
            Data::U32(values) => ("u32", bytes(py, &values, |value| value.to_ne_bytes()), Vec::new()),
            Data::Bool(values) => ("bool", bytes(py, &values, |value| [u8::from(value)]), Vec::new()),
            Data::F64(values) => ("f64", bytes(py, &values, |value| value.to_ne_bytes()), Vec::new()),
            Data::Names { index, names } => ("names", bytes(py, &index, |value| value.to_ne_bytes()), names),
        };
        Ok((column.name, column.unit, column.doc, kind, values?, names))
    };
    columns.into_iter().map(column).collect()
}

fn bytes<'py, T: Copy, const N: usize>(
    py: Python<'py>,
    values: &[T],
    to_bytes: impl Fn(T) -> [u8; N],
) -> PyResult<Bound<'py, PyBytes>> {
    PyBytes::new_with(py, values.len() * N, |out| {
        for (place, &value) in out.chunks_exact_mut(N).zip(values) {
            place.copy_from_slice(&to_bytes(value));
        }
        Ok(())
    })
}
