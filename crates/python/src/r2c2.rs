use std::sync::Arc;
use std::time::{Duration as RealTime, Instant};

use fabric::routing::throughput::{Algorithm, Pattern, throughput, worst_case};
use fabric::{FabricSpec, Failures, LinkWeight, Routes, Routing, RoutingTables};
use pyo3::exceptions::{PyKeyboardInterrupt, PyValueError};
use pyo3::prelude::*;
use run::Plan;
use rustix::time::{ClockId, clock_gettime};
use serde::de::DeserializeOwned;
use transports::r2c2::network::{Calculators, Network, Networks};
use transports::r2c2::rates::replay::{self, Message};
use transports::r2c2::rates::{Flow, allocate};
use transports::r2c2::selection::{self, Fitness, Utility};
use units::{Duration, HostId, LinkId, Problem, Stream};

use crate::aside::aside;
use crate::{Scenario, planned};

/// What an algorithm carries of a pattern, or of the permutation that suits it least, as a fraction of capacity.
#[pyfunction]
#[pyo3(signature = (fabric, algorithm, pattern=None))]
pub(crate) fn r2c2_throughput(py: Python<'_>, fabric: String, algorithm: &str, pattern: Option<&str>) -> PyResult<f64> {
    let algorithm = named("algorithm", algorithm, Algorithm::named(algorithm), &Algorithm::ALL.map(Algorithm::name))?;
    let named_pattern = |name| named("pattern", name, Pattern::named(name), &Pattern::ALL.map(Pattern::name));
    let pattern = pattern.map(named_pattern).transpose()?;
    aside(py, move || {
        let network = network(&fabric)?;
        let tables = &network.tables;
        match pattern {
            Some(pattern) => pattern.traffic(tables).and_then(|traffic| throughput(tables, algorithm, &traffic)),
            None => worst_case(tables, algorithm).map(|worst| worst.throughput),
        }
        .map_err(refused)
    })?
}

/// The links that packets between two hosts pass, and how often: (from, to, expected passages).
#[pyfunction]
pub(crate) fn r2c2_link_weights(
    fabric: &str,
    routing: &str,
    src: u32,
    dst: u32,
) -> PyResult<Vec<(String, String, f64)>> {
    let network = network(fabric)?;
    let (tables, fabric) = (&network.tables, network.tables.fabric());
    let (src, dst) = hosts(tables, src, dst)?;
    let name = |passed: &LinkWeight| {
        let link = fabric.link(passed.link);
        let [from, to] = [link.from, link.to].map(|node| fabric.names[node.index()].clone());
        (from, to, f64::from(passed.weight))
    };
    Ok(tables.weights(checked(tables, routing)?, src, dst).iter().map(name).collect())
}

/// A flow's links and weights on them, then its allocation weight, priority and demand in Gbps.
type Plain = (Vec<(u32, f32)>, f64, u8, f64);

/// The water-filling: rates in Gbps.
#[pyfunction]
pub(crate) fn r2c2_water_filling(capacities_gbps: Vec<f64>, flows: Vec<Plain>) -> PyResult<Vec<f64>> {
    let mut links = Vec::new();
    for (index, (passed, ..)) in flows.iter().enumerate() {
        if let Some((link, _)) = passed.iter().find(|(link, _)| *link as usize >= capacities_gbps.len()) {
            return Err(PyValueError::new_err(format!("flows[{index}]: there is no link {link}")));
        }
        let weight = |&(link, weight)| LinkWeight { link: LinkId(link), weight };
        links.push(passed.iter().map(weight).collect::<Vec<LinkWeight>>());
    }
    let with_links = flows.iter().zip(&links);
    let flows: Vec<Flow<'_>> = with_links
        .map(|(&(_, weight, priority, demand_gbps), links)| Flow { links, weight, priority, demand: demand_gbps })
        .collect();
    // Rates come in the unit of capacities.
    Ok(allocate(&capacities_gbps, &flows))
}

/// A flow's source, destination and routing, then its allocation weight, priority and demand in Gbps.
type Between = (u32, u32, String, f64, u8, f64);

/// The water-filling on a fabric: rates in Gbps.
#[pyfunction]
pub(crate) fn r2c2_rates(py: Python<'_>, fabric: &str, headroom: f64, flows: Vec<Between>) -> PyResult<Vec<f64>> {
    let (network, headroom) = (network(fabric)?, checked_headroom(headroom)?);
    let links = flows.iter().enumerate().map(|(index, (src, dst, routing, ..))| {
        links(&network, routing, *src, *dst).map_err(|error| at(py, &format!("flows[{index}]"), &error))
    });
    let links: Vec<Vec<LinkWeight>> = links.collect::<PyResult<_>>()?;
    let rates = aside(py, move || {
        let flow = |(&(_, _, _, weight, priority, demand_gbps), links)| {
            let links: &Vec<LinkWeight> = links;
            Flow { links, weight, priority, demand: demand_gbps * BPS_PER_GBPS }
        };
        let flows: Vec<Flow<'_>> = flows.iter().zip(&links).map(flow).collect();
        Calculators::default().of(&network, headroom).allocate(&flows)
    })?;
    Ok(rates.into_iter().map(|bps| bps / BPS_PER_GBPS).collect())
}

/// The search: the index of each pair's protocol, its utility and that of the current ones in Gbps, generations,
/// evaluations.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "plain values across the border")]
pub(crate) fn r2c2_select(
    py: Python<'_>,
    fabric: &str,
    headroom: f64,
    pairs: Vec<(u32, u32)>,
    routings: Vec<String>,
    current: Vec<u8>,
    utility: &str,
    settings: &str,
    seed: u64,
) -> PyResult<(Vec<u8>, f64, f64, u32, u32)> {
    let utility: Utility = read("utility", utility)?;
    let settings: selection::Settings = read("settings", settings)?;
    let (network, headroom) = (network(fabric)?, checked_headroom(headroom)?);
    utility.check(network.tables.fabric().hosts).map_err(|problem| refused(problem.under("utility")))?;
    settings.check().map_err(|problem| refused(problem.under("settings")))?;
    let calculator = Calculators::default().of(&network, headroom);
    let capacity_bps = calculator.capacity_bps();
    let known = 0..routings.len().min(usize::from(u8::MAX)) as u8;
    if current.len() != pairs.len() || !current.iter().all(|protocol| known.contains(protocol)) {
        return Err(PyValueError::new_err("current: it takes one of the routings for each flow"));
    }
    let loads = pairs.len().saturating_mul(routings.len()).saturating_mul(capacity_bps.len());
    if loads > LOADS_MAX {
        let message = format!("{} flows and {} routings are more than fit", pairs.len(), routings.len());
        return Err(PyValueError::new_err(message));
    }
    let mut choices = Vec::new();
    for (index, &(src, dst)) in pairs.iter().enumerate() {
        let options = routings.iter().map(|routing| links(&network, routing, src, dst));
        let options: PyResult<Vec<_>> = options.collect();
        choices.push((1.0, options.map_err(|error| at(py, &format!("flows[{index}]"), &error))?));
    }
    let sources: Vec<HostId> = pairs.iter().map(|&(src, _)| HostId(src)).collect();
    let found = py.detach(|| {
        let (mut fitness, mut measure) = (Fitness::new(capacity_bps, &choices), utility.measure(&sources));
        let (mut look_up, mut interrupted) = (every_tenth_of_a_second(), false);
        let random = &mut Stream::new(seed, 0, "routing selection");
        let protocols: Vec<u8> = known.collect();
        let found = selection::select(&current, &protocols, &settings, random, |assignment| {
            interrupted = interrupted || (look_up() && Python::attach(|py| py.check_signals().is_err()));
            if interrupted { f64::NAN } else { measure.of(fitness.rates(assignment)) }
        });
        (!interrupted).then_some(found)
    });
    let found = found.ok_or_else(|| PyKeyboardInterrupt::new_err(()))?;
    let selection::Selection { assignment, utility, before, generations, evaluations } = found;
    Ok((assignment, utility / BPS_PER_GBPS, before / BPS_PER_GBPS, generations, evaluations))
}

/// A computation of rates: when in picoseconds, for how many flows, how many nanoseconds of a core it took.
type Recomputation = (u64, usize, i64);

/// The same at a flow's start, and by which host.
type AtStart = (u32, u64, usize, i64);

/// What a node has to compute of a scenario's flows, and what that takes here, for each interval in picoseconds; and at
/// the start of every `each`-th flow.
#[pyfunction]
pub(crate) fn r2c2_recompute_times(
    py: Python<'_>,
    scenario: &Bound<'_, Scenario>,
    routing: String,
    headroom: f64,
    rhos_ps: Vec<u64>,
    step_ps: u64,
    each: usize,
) -> PyResult<(Vec<Vec<Recomputation>>, Vec<AtStart>)> {
    if step_ps == 0 || rhos_ps.contains(&0) {
        return Err(PyValueError::new_err("interval: must be longer than 0"));
    }
    let plan = planned(scenario, Plan::new)?;
    if plan.flows.iter().any(|flow| flow.after.is_some()) {
        return Err(PyValueError::new_err("flows that begin when others end have no start of their own to replay"));
    }
    let message = |flow: run::FlowInfo| Message { start: flow.start, src: flow.src, dst: flow.dst, bytes: flow.bytes };
    let mut messages: Vec<Message> = plan.flows.iter().map(message).collect();
    messages.sort_by_key(|message| message.start);
    aside(py, move || recomputed(&plan, &messages, &routing, headroom, &rhos_ps, (step_ps, each)))?
}

fn recomputed(
    plan: &Plan,
    messages: &[Message],
    routing: &str,
    headroom: f64,
    rhos_ps: &[u64],
    (step_ps, each): (u64, usize),
) -> PyResult<(Vec<Vec<Recomputation>>, Vec<AtStart>)> {
    let network = Networks::default().of(&plan.fabric, &plan.routes);
    let routing = checked(&network.tables, routing)?;
    let calculator = Calculators::default().of(&network, checked_headroom(headroom)?);
    let network_view =
        replay::NetworkView { tables: &network.tables, routing, capacity_bps: calculator.capacity_bps() };
    let took_ns = |work: &mut dyn FnMut()| {
        // Not the wall's: what else runs here is no cost of the computation.
        let begin = clock_gettime(ClockId::ThreadCPUTime);
        work();
        let took = clock_gettime(ClockId::ThreadCPUTime) - begin;
        took.tv_sec * 1_000_000_000 + took.tv_nsec
    };
    let plain = |one: replay::Recomputation<i64>| (one.at.ps(), one.flows, one.took);
    let lifetimes = replay::lifetimes(&network_view, messages, Duration::from_ps(step_ps));
    let of = |&rho| replay::recompute(&network_view, &lifetimes, Duration::from_ps(rho), took_ns);
    let at_intervals = rhos_ps.iter().map(|rho| of(rho).into_iter().map(plain).collect()).collect();
    let starts = if each == 0 { Vec::new() } else { replay::at_starts(&network_view, &lifetimes, each, took_ns) };
    let by_host = |(host, one): (HostId, replay::Recomputation<i64>)| (host.0, one.at.ps(), one.flows, one.took);
    Ok((at_intervals, starts.into_iter().map(by_host).collect()))
}

const BPS_PER_GBPS: f64 = 1e9;

/// Loads of flows on links that a search holds at once: 3 GiB.
const LOADS_MAX: usize = 1 << 28;

fn network(fabric: &str) -> PyResult<Arc<Network>> {
    let spec: FabricSpec = read("fabric", fabric)?;
    let fabric = spec.build().map_err(|problem| refused(problem.under("fabric")))?;
    if fabric.several_links().is_some() {
        return Err(refused(Problem::new(
            "fabric",
            "fabric: R2C2 treats a host and its switch as one node, joined by one link; give hosts one link each",
        )));
    }
    let routes = Routes::compute(&fabric, &Failures::default());
    Ok(Networks::default().of(&Arc::new(fabric), &Arc::new(routes)))
}

/// The links of a flow, its hosts' among them.
fn links(network: &Network, routing: &str, src: u32, dst: u32) -> PyResult<Vec<LinkWeight>> {
    let (src, dst) = hosts(&network.tables, src, dst)?;
    Ok(network.links(checked(&network.tables, routing)?, src, dst))
}

fn hosts(tables: &RoutingTables, src: u32, dst: u32) -> PyResult<(HostId, HostId)> {
    let hosts = tables.fabric().hosts;
    match [src, dst].into_iter().find(|&host| host >= hosts) {
        Some(host) => Err(PyValueError::new_err(format!("there is no host {host}: {hosts} hosts are counted from 0"))),
        None => Ok((HostId(src), HostId(dst))),
    }
}

fn checked_headroom(headroom: f64) -> PyResult<f64> {
    match (0.0..1.0).contains(&headroom) {
        true => Ok(headroom),
        false => {
            Err(PyValueError::new_err(format!("headroom={headroom}: a share of each link, from 0 to less than 1")))
        }
    }
}

fn checked(tables: &RoutingTables, routing: &str) -> PyResult<Routing> {
    let routing = named("routing", routing, Routing::named(routing), &Routing::NAMES)?;
    tables.check(routing).map_err(refused)?;
    Ok(routing)
}

fn named<T>(what: &str, name: &str, found: Option<T>, names: &[&str]) -> PyResult<T> {
    found.ok_or_else(|| PyValueError::new_err(format!("{what} '{name}' is not one of {}", names.join(", "))))
}

fn read<T: DeserializeOwned>(what: &str, json: &str) -> PyResult<T> {
    serde_json::from_str(json).map_err(|error| PyValueError::new_err(format!("{what}: {error}")))
}

fn refused(problem: Problem) -> PyErr {
    PyValueError::new_err(match problem.key.as_str() {
        "" => problem.message,
        _ => problem.to_string(),
    })
}

/// The same error, with the place that it is about.
fn at(py: Python<'_>, place: &str, error: &PyErr) -> PyErr {
    PyValueError::new_err(format!("{place}: {}", error.value(py)))
}

/// Says ten times a second that it is time to look for signals.
#[expect(clippy::disallowed_methods, reason = "the real clock, for whoever waits")]
fn every_tenth_of_a_second() -> impl FnMut() -> bool {
    let mut looked = Instant::now();
    move || {
        let due = looked.elapsed() >= RealTime::from_millis(100);
        if due {
            looked = Instant::now();
        }
        due
    }
}
