//! `clearway._core`: what the Python package needs of Rust, as plain as it can be. The package makes it comfortable.
//!
//! Long calls are done on a thread of their own ([`aside`]), and let other Python threads run. The caller looks up ten
//! times a second: for a signal, which ends the run at a consistent point, and to report progress.

mod aside;
mod checkpoint;
mod dcpim;
mod estimate;
mod exchange;
mod harmony;
mod headroom;
mod job;
mod machines;
mod maze;
mod network;
mod own;
mod r2c2;
mod run;
mod sandbox;
mod steps;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use ::run::Plan;
use catalogue::{LinkControl, Sharing, Transport};
use contract::{About, Compared, CongestionSignal, Family, Undelivered};
use node::Marking;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use scenario::{Crates, Programs, ScenarioError, Source};
use sharing::aq::{AqId, AqRate, Policy, Table};
use units::{Bytes, Problem, Rate, Time};

/// It asks the kernel for huge pages, as glibc's does not by itself: a large network has more pages than the processor
/// has entries for their addresses.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A scenario that has been read and checked.
#[pyclass(frozen, module = "clearway._core")]
struct Scenario {
    source: Source,
    read: scenario::Scenario,
}

#[pymethods]
impl Scenario {
    /// Reads a scenario from TOML; `folder` is where the files that it names are.
    #[staticmethod]
    fn parse(
        py: Python<'_>,
        text: String,
        name: String,
        folder: PathBuf,
        sets: Vec<(String, String)>,
    ) -> PyResult<Scenario> {
        let source = Source { name, text, sets, folder, programs: Programs::new(), crates: Crates::new() };
        read_aside(py, source)
    }

    /// The same with more keys set over it. `controls` are those of one's own that the keys name, by their digests,
    /// each with its settings as JSON.
    #[pyo3(signature = (sets, controls=Vec::new()))]
    fn with_sets(
        &self,
        py: Python<'_>,
        sets: Vec<(String, String)>,
        controls: Vec<(String, Bound<'_, own::Answer>, String)>,
    ) -> PyResult<Scenario> {
        let mut source = self.source.clone();
        source.sets.extend(sets);
        for (digest, control, settings) in controls {
            let class = own::Class::of(&control, digest.clone(), &settings)?;
            source.programs.insert(digest, Arc::new(class));
        }
        read_aside(py, source)
    }

    /// With every default filled in.
    fn to_toml(&self) -> String {
        self.read.to_toml()
    }

    /// What it was read from: text, name, folder, keys set over it, and whether it has a control of a Python class.
    fn parts(&self) -> (String, String, String, Vec<(String, String)>, bool) {
        let Source { text, name, folder, sets, programs, .. } = &self.source;
        (text.clone(), name.clone(), folder.display().to_string(), sets.clone(), !programs.is_empty())
    }

    #[getter]
    fn name(&self) -> &str {
        &self.read.name
    }

    #[getter]
    fn source(&self) -> &str {
        &self.source.name
    }

    #[getter]
    fn transports(&self) -> Vec<&'static str> {
        self.read.carriers().transports.into_iter().map(|transport| transport.name()).collect()
    }

    /// Works it out as a run at this level would and says how large it is: (hosts, flows). What will hardly fit
    /// `memory_bytes_max` is refused.
    #[pyo3(signature = (memory_bytes_max=None, level="packet"))]
    fn check(slf: &Bound<'_, Self>, memory_bytes_max: Option<u64>, level: &str) -> PyResult<(u32, usize)> {
        let size = |plan: Plan| (plan.fabric.hosts, plan.flows.len());
        match level {
            "flow" => planned(slf, move |read| fluid::check(read, memory_bytes_max)),
            "links" => planned(slf, move |read| links::check(read, memory_bytes_max)),
            _ => planned(slf, move |read| Plan::within(read, memory_bytes_max).map(size)),
        }
    }

    /// The bytes that its switches' ports hold, and those from which they mark, with what transports ask for filled
    /// in: the most that wait at a port, and for each class that is marked (class, least bytes, most bytes, probability
    /// at the most, link rate that the bytes are meant for, whether the probability goes on to 1 at twice the most).
    #[allow(clippy::type_complexity)]
    fn ports(slf: &Bound<'_, Self>) -> PyResult<(u64, Vec<(usize, u64, u64, f64, Option<u64>, bool)>)> {
        planned(slf, |read| {
            let settings = Plan::new(read)?.settings;
            let marked = settings.marking.iter().enumerate().filter_map(|(class, at)| {
                let (min, max, most, per, gentle) = match (*at)? {
                    Marking::Step { threshold } => (threshold, threshold, 1.0, None, false),
                    Marking::Ramp { min, max, probability_max, per } => (min, max, probability_max, per, false),
                    Marking::GentleRamp { min, max, probability_max } => (min, max, probability_max, None, true),
                };
                Some((class, min.get(), max.get(), most, per.map(|rate| rate.bps()), gentle))
            });
            Ok((settings.buffer.port_bytes_max(), marked.collect()))
        })
    }

    /// What a run will take, and how fast its first `probe_cpu_s` seconds of CPU are on this machine: see
    /// [`estimate::foresee`].
    fn foresee<'py>(
        slf: &Bound<'py, Self>,
        probe_cpu_s: f64,
        memory_bytes_max: Option<u64>,
    ) -> PyResult<Bound<'py, PyDict>> {
        estimate::foresee(slf, probe_cpu_s, memory_bytes_max)
    }
}

fn read_aside(py: Python<'_>, source: Source) -> PyResult<Scenario> {
    let (source, read) = aside::aside(py, move || (source.read(), source)).map(|(read, source)| (source, read))?;
    Ok(Scenario { read: read.map_err(|error| scenario_error(py, error))?, source })
}

/// Works something out from a scenario, aside.
fn planned<R: Send + 'static>(
    scenario: &Bound<'_, Scenario>,
    work: impl FnOnce(&scenario::Scenario) -> Result<R, Problem> + Send + 'static,
) -> PyResult<R> {
    let (py, of) = (scenario.py(), scenario.clone().unbind());
    let result = aside::aside(py, move || work(&of.get().read))?;
    result.map_err(|problem| scenario_error(py, scenario.get().source.locate(problem)))
}

fn scenario_error(py: Python<'_>, error: ScenarioError) -> PyErr {
    let ScenarioError { source, line, key, message } = error;
    let made = py
        .import("clearway.errors")
        .and_then(|module| module.getattr("ScenarioError"))
        .and_then(|class| class.call1((source, line, key, message)));
    made.map_or_else(|error| error, PyErr::from_value)
}

/// The transports, the flow controls and the mechanisms of sharing: name, kind, title, source, summary, needs; of which
/// family each is, whether `compare --all` has it, beside which other ("" for none), and whether it may reject a
/// message.
#[pyfunction]
#[pyo3(name = "schemes")]
fn list_schemes(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyDict>>> {
    let row = |name: &str, kind: &str, about: About, family: Option<Family>, compared: Compared, rejects: bool| {
        let row = PyDict::new(py);
        row.set_item("name", name)?;
        row.set_item("kind", kind)?;
        row.set_item("title", about.title)?;
        row.set_item("summary", about.summary)?;
        row.set_item("needs", about.needs)?;
        row.set_item("source", about.source)?;
        row.set_item("family", family.map_or("", Family::name))?;
        row.set_item("compared", compared != Compared::No)?;
        row.set_item("beside", if let Compared::With(other) = compared { other } else { "" })?;
        row.set_item("rejects", rejects)?;
        Ok(row)
    };
    let transport = |kind: &'static str| {
        let row = &row;
        move |one: Transport| {
            let (scheme, capabilities) = (one.as_scheme(), one.as_scheme().capabilities());
            let rejects = capabilities.undelivered == Undelivered::Rejected;
            row(one.name(), kind, scheme.about(), Some(capabilities.family), capabilities.compared, rejects)
        }
    };
    let named = |names: &'static [&'static str]| names.iter().filter_map(|name| Transport::named(name));
    let transports = named(Transport::NAMES).map(transport("transport"));
    let own = named(Transport::NEEDING_SETTINGS).map(transport("own transport"));
    let controls = LinkControl::NAMES
        .iter()
        .filter_map(|name| LinkControl::named(name))
        .map(|one| row(one.name(), "flow control", one.about(), one.family(), one.compared(), false));
    let sharing = Sharing::NAMES.iter().filter_map(|name| Sharing::named(name));
    let sharing = sharing.map(|one| row(one.name(), "sharing", one.about(), None, Compared::No, false));
    transports.chain(own).chain(controls).chain(sharing).collect()
}

/// The published flow sizes: name, mean, source.
#[pyfunction]
#[pyo3(name = "workloads")]
fn list_workloads(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyDict>>> {
    let about = |named: &workload::Named| {
        let row = PyDict::new(py);
        row.set_item("name", named.name)?;
        row.set_item("mean_bytes", named.cdf().mean_bytes())?;
        row.set_item("source", named.source)?;
        Ok(row)
    };
    workload::Named::ALL.iter().map(about).collect()
}

/// Bytes of SRAM that each part of a Pyrrha ToR takes in a fat-tree of k-port switches, by the part's name.
#[pyfunction]
fn pyrrha_resources(py: Python<'_>, k: u32) -> PyResult<Bound<'_, PyDict>> {
    let usage = link_control::pyrrha::resources::usage_bytes(k);
    let row = PyDict::new(py);
    for (part, bytes) in usage.map_err(|problem| PyValueError::new_err(format!("k {}", problem.message)))? {
        row.set_item(part, bytes)?;
    }
    Ok(row)
}

/// Bytes of memory of a switch's table in which so many AQs are deployed, all with one limit.
#[pyfunction]
fn aq_table_bytes(aqs: u32) -> u64 {
    let rate = AqRate::nearest(Rate::from_gbps(1)).expect("a rate that a row holds");
    let policy = Policy::new(Bytes(1_000_000), CongestionSignal::Drop).expect("a limit that a row holds");
    let mut table = Table::for_entities(aqs as usize);
    for id in (1..=aqs).filter_map(AqId::from_tag) {
        table.deploy(Time::ZERO, id, rate, policy).expect("one policy");
    }
    table.memory().get()
}

/// The JSON Schema of the fabrics' part of a scenario: their names and parameters.
#[pyfunction]
fn fabric_schema() -> String {
    serde_json::to_string(&schemars::schema_for!(fabric::FabricSpec)).expect("a schema is JSON")
}

/// A dissector for Wireshark, in Lua, of what captures have.
#[pyfunction]
fn dissector() -> String {
    sim::capture::dissector()
}

/// The JSON Schema of a scenario.
#[pyfunction]
fn schema() -> String {
    scenario::Scenario::json_schema()
}

/// The transports of a scenario that are in crates outside of Clearway's tree, by name: those that it both uses and
/// gives a folder. Whatever else is wrong with it is for [`Scenario::parse`] to say.
#[pyfunction]
fn outside(text: &str, sets: Vec<(String, String)>) -> BTreeMap<String, String> {
    scenario::outside(text, &sets)
}

/// The error of a key of a scenario, with its place in the text.
#[pyfunction]
fn located(
    py: Python<'_>,
    text: String,
    name: String,
    sets: Vec<(String, String)>,
    key: String,
    message: String,
) -> PyErr {
    let source = Source { name, text, sets, folder: PathBuf::new(), programs: Programs::new(), crates: Crates::new() };
    scenario_error(py, source.locate(Problem::new(key, message)))
}

#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("COMMIT", env!("CLEARWAY_COMMIT"))?;
    module.add("SOURCE", sim::SOURCE)?;
    module.add("PROTOCOL", clearway::engine::PROTOCOL)?;
    module.add_class::<Scenario>()?;
    module.add_class::<maze::Completions>()?;
    module.add_class::<maze::JoinedMaze>()?;
    module.add_class::<maze::Maze>()?;
    module.add_class::<maze::Sent>()?;
    module.add_class::<maze::Socket>()?;
    module.add_class::<own::Answer>()?;
    module.add_class::<steps::Steps>()?;
    module.add_class::<own::StartEvent>()?;
    module.add_class::<own::AckEvent>()?;
    module.add_class::<own::CongestionEvent>()?;
    module.add_class::<own::SentEvent>()?;
    module.add_function(wrap_pyfunction!(exchange::exchange, module)?)?;
    module.add_function(wrap_pyfunction!(list_schemes, module)?)?;
    module.add_function(wrap_pyfunction!(list_workloads, module)?)?;
    module.add_function(wrap_pyfunction!(aq_table_bytes, module)?)?;
    module.add_function(wrap_pyfunction!(pyrrha_resources, module)?)?;
    module.add_function(wrap_pyfunction!(dcpim::dcpim_matchings, module)?)?;
    module.add_function(wrap_pyfunction!(harmony::harmony_queue_max, module)?)?;
    module.add_function(wrap_pyfunction!(harmony::harmony_queueing_delay_max, module)?)?;
    module.add_function(wrap_pyfunction!(harmony::harmony_k_star, module)?)?;
    module.add_function(wrap_pyfunction!(harmony::harmony_slot_efficiency, module)?)?;
    module.add_function(wrap_pyfunction!(harmony::harmony_message_delay_max, module)?)?;
    module.add_function(wrap_pyfunction!(harmony::harmony_allocation, module)?)?;
    module.add_function(wrap_pyfunction!(harmony::harmony_adversary, module)?)?;
    module.add_function(wrap_pyfunction!(r2c2::r2c2_throughput, module)?)?;
    module.add_function(wrap_pyfunction!(r2c2::r2c2_link_weights, module)?)?;
    module.add_function(wrap_pyfunction!(r2c2::r2c2_water_filling, module)?)?;
    module.add_function(wrap_pyfunction!(r2c2::r2c2_rates, module)?)?;
    module.add_function(wrap_pyfunction!(r2c2::r2c2_select, module)?)?;
    module.add_function(wrap_pyfunction!(r2c2::r2c2_recompute_times, module)?)?;
    module.add_function(wrap_pyfunction!(dissector, module)?)?;
    module.add_function(wrap_pyfunction!(fabric_schema, module)?)?;
    module.add_function(wrap_pyfunction!(headroom::headroom, module)?)?;
    module.add_function(wrap_pyfunction!(headroom::headroom_by_formula, module)?)?;
    module.add_function(wrap_pyfunction!(network::network, module)?)?;
    module.add_function(wrap_pyfunction!(schema, module)?)?;
    module.add_function(wrap_pyfunction!(outside, module)?)?;
    module.add_function(wrap_pyfunction!(located, module)?)?;
    module.add_function(wrap_pyfunction!(sandbox::close_sandbox, module)?)?;
    module.add_function(wrap_pyfunction!(run::simulate, module)?)?;
    module.add_function(wrap_pyfunction!(checkpoint::checkpoint_of, module)?)?;
    module.add_function(wrap_pyfunction!(checkpoint::inspect, module)?)?;
    module.add_function(wrap_pyfunction!(checkpoint::fork, module)?)?;
    module.add_function(wrap_pyfunction!(checkpoint::fork_keys, module)?)?;
    module.add_function(wrap_pyfunction!(checkpoint::bisect, module)?)?;
    module.add_function(wrap_pyfunction!(job::write_job, module)?)?;
    module.add_function(wrap_pyfunction!(job::collective_times, module)?)?;
    module.add_function(wrap_pyfunction!(run::estimate, module)?)?;
    module.add_function(wrap_pyfunction!(run::estimate_links, module)?)?;
    module.add_function(wrap_pyfunction!(run::run_live, module)?)?;
    module.add_function(wrap_pyfunction!(run::live_bench, module)?)?;
    module.add_function(wrap_pyfunction!(run::live_part, module)?)?;
    module.add_function(wrap_pyfunction!(maze::live_sockets, module)?)?;
    module.add_function(wrap_pyfunction!(machines::live_machines, module)?)?;
    module.add_function(wrap_pyfunction!(machines::live_join, module)?)?;
    Ok(())
}
