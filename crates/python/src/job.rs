//! Jobs for other tools, written to files.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ::job::collective::Kind;
use ::job::collective::library::{Algorithm, Constants, Library, Machine};
use ::job::{Graph, write};
use pyo3::exceptions::{PyFileExistsError, PyOSError, PyValueError};
use pyo3::prelude::*;
use run::{MemoryLimit, WorkloadPlan};
use units::{Duration, Problem, Rate};

use crate::{Scenario, planned};

/// LogGOPSim's unit of time.
const NANOSECOND: Duration = Duration::from_ns(1);

/// Constants of a library: seconds of the launch, of Simple, of sending and receiving; a step's latency as a multiple;
/// shares of NICs and of local links; bits a second that a channel copies; channels.
type Numbers = (f64, f64, f64, f64, f64, f64, f64, u32);

/// Times of collectives of these sizes in a network of their own, by the model of a library: seconds, the algorithm and
/// the protocol of each. `shape` is ranks, hosts and most ranks of a host, `links` bits a second of a host and of a
/// rank, and whether the switch between ranks multicasts.
#[pyfunction]
pub(crate) fn collective_times(
    kind: &str,
    shape: (u32, u32, u32),
    sizes: Vec<u64>,
    constants: Numbers,
    links: (u64, u64, bool),
    ring: bool,
) -> PyResult<Vec<(f64, &'static str, &'static str)>> {
    let kinds = [Kind::AllReduce, Kind::ReduceScatter, Kind::AllGather, Kind::SendRecv];
    let kind = kinds.into_iter().find(|known| known.name() == kind);
    let kind = kind.ok_or_else(|| PyValueError::new_err("no such collective"))?;
    let (ranks, nodes, local) = shape;
    let (launch, simple, send_recv, latency, nic_efficiency, local_efficiency, copy, channels) = constants;
    let constants = Constants {
        launch: Duration::from_secs_f64(launch),
        simple: Duration::from_secs_f64(simple),
        send_recv: Duration::from_secs_f64(send_recv),
        latency,
        nic_efficiency,
        local_efficiency,
        copy: Rate::from_bps((copy as u64).max(1)),
        channels: channels.max(1),
    };
    let machine =
        Machine { nic: Rate::from_bps(links.0.max(1)), local: Rate::from_bps(links.1.max(1)), multicast: links.2 };
    let library = Library { constants, machine, local, algorithm: ring.then_some(Algorithm::Ring) };
    let of = |bytes: u64| {
        let course = library.course(kind, ranks.max(2), nodes.max(1), local.max(1), bytes);
        course.map(|course| (course.total(), course.algorithm.name(), course.wire.name()))
    };
    Ok(sizes.into_iter().filter_map(of).collect())
}

/// Writes a scenario's job, by its name or the only one, as GOAL text to `path`, or as a Chakra trace for each rank to
/// `PATH.RANK.et`. Returns the files. None is overwritten, and none stays if one cannot be written.
#[pyfunction]
#[pyo3(signature = (scenario, path, chakra, job=None, memory_bytes_max=None))]
pub(crate) fn write_job(
    py: Python<'_>,
    scenario: &Bound<'_, Scenario>,
    path: PathBuf,
    chakra: bool,
    job: Option<String>,
    memory_bytes_max: Option<u64>,
) -> PyResult<Vec<PathBuf>> {
    let graph = planned(scenario, move |read| graph_of(read, job.as_deref(), memory_bytes_max))?;
    py.detach(|| if chakra { write_chakra(&graph, &path) } else { write_goal(&graph, &path) })
}

fn graph_of(
    scenario: &scenario::Scenario,
    job: Option<&str>,
    memory_bytes_max: Option<u64>,
) -> Result<Arc<Graph>, Problem> {
    let plan = WorkloadPlan::within(scenario, MemoryLimit::flows(memory_bytes_max))?;
    let names = || plan.jobs.iter().map(|job| format!("\"{}\"", job.name)).collect::<Vec<_>>().join(", ");
    let found = match job {
        None if plan.jobs.iter().len() > 1 => {
            return Err(Problem::new("job", format!("there are several, {}; say which one to write", names())));
        }
        None => plan.jobs.iter().next(),
        Some(name) => plan.jobs.iter().find(|placed| placed.name == name),
    };
    let missing = || match job {
        Some(name) if !plan.jobs.is_empty() => format!("none is called \"{name}\"; there are {}", names()),
        _ => "the scenario has none to write; add a [[job]]".to_owned(),
    };
    found.map(|placed| placed.graph.clone()).ok_or_else(|| Problem::new("job", missing()))
}

fn write_goal(graph: &Graph, path: &Path) -> PyResult<Vec<PathBuf>> {
    let written = create(path).and_then(|mut file| {
        let whole = write::goal(graph, NANOSECOND, &mut file).and_then(|()| file.flush());
        whole.map_err(|error| failed(path, &error)).inspect_err(|_| remove(&[path.to_owned()]))
    });
    written.map(|()| vec![path.to_owned()])
}

fn write_chakra(graph: &Graph, prefix: &Path) -> PyResult<Vec<PathBuf>> {
    let mut written = Vec::new();
    for (rank, content) in write::chakra(graph).enumerate() {
        let mut name = prefix.as_os_str().to_owned();
        name.push(format!(".{rank}.et"));
        let path = PathBuf::from(name);
        let one = create(&path).and_then(|mut file| {
            written.push(path.clone());
            file.write_all(&content).and_then(|()| file.flush()).map_err(|error| failed(&path, &error))
        });
        if let Err(error) = one {
            remove(&written);
            return Err(error);
        }
    }
    Ok(written)
}

fn create(path: &Path) -> PyResult<BufWriter<File>> {
    File::create_new(path).map(BufWriter::new).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => {
            PyFileExistsError::new_err(format!("{} exists already; name another file", path.display()))
        }
        _ => failed(path, &error),
    })
}

fn failed(path: &Path, error: &io::Error) -> PyErr {
    PyOSError::new_err(format!("{} cannot be written: {error}; name another file", path.display()))
}

/// What was written before something failed is of no use.
fn remove(paths: &[PathBuf]) {
    for path in paths {
        let _ = std::fs::remove_file(path);
    }
}
