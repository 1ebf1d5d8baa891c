//! Which links are so alike that one of them can stand for the others.
//!
//! As in Parsimon: links are alike if their loads, their flows' sizes and the times between their flows' starts are (by
//! the weighted mean absolute percentage error of 1,000 quantiles of each), and one link after the other takes all
//! links that are like it. Here they must also have the same rate and delay, carry the same transports, and lie at the
//! same place on their flows' ways.

use std::collections::BTreeSet;

use run::WorkloadPlan;
use units::FlowId;

use crate::decompose::Decomposition;
use crate::piece::Hop;

const QUANTILES: usize = 1_000;

/// What must be the same.
#[derive(PartialEq)]
struct Kind {
    hop: Hop,
    transports: BTreeSet<u8>,
    /// Links before it and after it, on all ways over it.
    places: BTreeSet<(u8, u8)>,
}

/// What may differ by a little.
struct Load {
    load: f64,
    sizes: Vec<f64>,
    gaps: Vec<f64>,
}

/// By resource, the one that is simulated for it: an earlier one that is like it, or else itself. An idle resource
/// stands for itself. `within` is how much two resources may differ that are taken to be alike.
pub(crate) fn alike(links: &Decomposition<'_>, work: &WorkloadPlan, within: f64) -> Vec<usize> {
    let mut stands: Vec<usize> = (0..links.crossing.len()).collect();
    let mut known: Vec<(usize, Kind, Load)> = Vec::new();
    for (resource, stand) in stands.iter_mut().enumerate() {
        // With fewer than two flows there are no times between flows to compare.
        if links.is_idle(resource) || links.crossing[resource].len() < 2 {
            continue;
        }
        let (kind, load) = (kind(links, work, resource), load(links, work, resource));
        let like = known.iter().find(|(_, of, like)| *of == kind && like.is_like(&load, within));
        match like {
            Some(&(first, ..)) => *stand = first,
            None => known.push((resource, kind, load)),
        }
    }
    stands
}

fn kind(links: &Decomposition<'_>, work: &WorkloadPlan, resource: usize) -> Kind {
    let flows = &links.crossing[resource];
    let hop = links.hops(flows[0])[place(links, flows[0], resource)];
    let places = flows.iter().map(|&flow| {
        let at = place(links, flow, resource);
        (at as u8, (links.way(flow).len() - at) as u8)
    });
    Kind {
        hop,
        transports: flows.iter().map(|&flow| work.flows.get(flow).transport).collect(),
        places: places.collect(),
    }
}

fn place(links: &Decomposition<'_>, flow: FlowId, resource: usize) -> usize {
    links.way(flow).iter().position(|&passed| passed as usize == resource).expect("it crosses it")
}

fn load(links: &Decomposition<'_>, work: &WorkloadPlan, resource: usize) -> Load {
    let flows = || links.crossing[resource].iter().map(|&flow| work.flows.get(flow));
    let mut starts: Vec<u64> = flows().map(|flow| flow.start.ps()).collect();
    starts.sort_unstable();
    let time = (starts[starts.len() - 1] - starts[0]).max(1) as f64 * 1e-12;
    let bits = flows().map(|flow| flow.bytes as f64 * 8.0).sum::<f64>();
    Load {
        load: bits / time / links.capacity_bps(resource),
        sizes: quantiles(flows().map(|flow| flow.bytes).collect()),
        gaps: quantiles(starts.windows(2).map(|pair| pair[1] - pair[0]).collect()),
    }
}

fn quantiles(mut values: Vec<u64>) -> Vec<f64> {
    values.sort_unstable();
    (0..QUANTILES).map(|quantile| values[quantile * values.len() / QUANTILES] as f64).collect()
}

impl Load {
    fn is_like(&self, other: &Load, within: f64) -> bool {
        (self.load - other.load).abs() <= within * self.load
            && off(&self.sizes, &other.sizes) <= within
            && off(&self.gaps, &other.gaps) <= within
    }
}

/// Weighted mean absolute percentage error.
fn off(of: &[f64], other: &[f64]) -> f64 {
    let all = of.iter().sum::<f64>();
    let off = of.iter().zip(other).map(|(of, other)| (of - other).abs()).sum::<f64>();
    if all == 0.0 { if off == 0.0 { 0.0 } else { f64::INFINITY } } else { off / all }
}
