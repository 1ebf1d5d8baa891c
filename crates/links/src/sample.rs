//! Which links are simulated, and which are taken to be like them.
//!
//! In a large network thousands of links have the same rate, the same place on their flows' paths and about the same
//! load. At most `decomposition.sample` links of each such kind are simulated, at even steps of load, and
//! a flow on another one has the delay of a random flow of about its size on these.

use std::collections::{BTreeMap, BTreeSet};

use run::WorkloadPlan;
use scenario::Scenario;

use crate::combine::Run;
use crate::decompose::Decomposition;
use crate::piece::Hop;

/// The properties that links of a kind share.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Kind {
    hop: Hop,
    /// Most links before it and after it, on the paths over it.
    before: u8,
    after: u8,
    transports: BTreeSet<u8>,
    /// Their loads are within a factor of two: the exponent.
    load: i32,
}

/// How each resource is dealt with, and by kind the resources that are simulated for others.
pub(crate) fn choose(
    scenario: &Scenario,
    work: &WorkloadPlan,
    links: &Decomposition<'_>,
) -> (Vec<Run>, Vec<Vec<usize>>) {
    let idle = |resource: usize| if links.is_idle(resource) { Run::Idle } else { Run::Own };
    let mut runs: Vec<Run> = (0..links.crossing.len()).map(idle).collect();
    let most = scenario.decomposition.sample as usize;
    let mut kinds: BTreeMap<Kind, Vec<(f64, usize)>> = BTreeMap::new();
    for resource in (0..runs.len()).filter(|&resource| runs[resource] == Run::Own) {
        let (kind, seconds) = kind(work, links, resource);
        kinds.entry(kind).or_default().push((seconds, resource));
    }
    let mut simulated = Vec::new();
    for mut members in kinds.into_values().filter(|members| members.len() > most) {
        members.sort_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)));
        members.iter().for_each(|of| runs[of.1] = Run::Like(simulated.len() as u32));
        // The middle of each of as many parts of equal length.
        let chosen: Vec<usize> = (0..most).map(|part| members[(2 * part + 1) * members.len() / (2 * most)].1).collect();
        chosen.iter().for_each(|&resource| runs[resource] = Run::Own);
        simulated.push(chosen);
    }
    (runs, simulated)
}

/// A resource's kind, and for how many seconds the bytes of its flows keep it busy.
fn kind(work: &WorkloadPlan, links: &Decomposition<'_>, resource: usize) -> (Kind, f64) {
    let flows = &links.crossing[resource];
    let place = |flow| links.place(flow, resource);
    let hop = links.hops(flows[0])[place(flows[0])];
    let before = flows.iter().map(|&flow| place(flow)).max().unwrap_or(0);
    let after = flows.iter().map(|&flow| links.way(flow).len() - 1 - place(flow)).max().unwrap_or(0);
    let bits: f64 = flows.iter().map(|&flow| work.flows.get(flow).bytes as f64 * 8.0).sum();
    let seconds = bits / links.capacity_bps(resource);
    let transports = flows.iter().map(|&flow| work.flows.get(flow).transport).collect();
    let load = seconds.max(f64::MIN_POSITIVE).log2().floor() as i32;
    (Kind { hop, before: before as u8, after: after as u8, transports, load }, seconds)
}
