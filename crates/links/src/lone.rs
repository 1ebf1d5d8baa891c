//! How much longer than at line rate a flow takes that meets no other: slow start, a grant to wait for, a target below
//! the full rate.
//!
//! It depends on the transport, on the links of the way and on the size. So flows are sorted by the first two into
//! classes, and each class is simulated for sizes: for each that occurs, or, where that is less work, for a grid of
//! numbers of packets, between which it is interpolated. The grid has each number up to 32, and 8 for each doubling
//! from there on. A scenario of few flows is exact so, and one of many takes little more time. The grid ends where a
//! flow has long been in its steady state. From there on its lateness grows as in the last doubling.

use std::collections::{BTreeMap, BTreeSet};

use fabric::{Fabric, Quotient};
use run::{Ideal, WorkloadPlan};
use scenario::Scenario;
use units::{FlowId, HostId, Problem};

use crate::decompose::Decomposition;
use crate::piece::{Hop, Outcome, at_line_rate, chain_quotient};

/// Numbers of packets up to this one are simulated one by one.
const EACH_UP_TO: u64 = 32;
/// Sizes of the grid within each doubling beyond.
const WITHIN_DOUBLING: u64 = 8;

/// A flow alone is in its steady state after this number of packets, and this number of bandwidth-delay products: a
/// window that doubles in each round trip has passed the largest by far.
const STEADY_PACKETS: u64 = 8_192;
const STEADY_BDPS: u64 = 64;

/// Flows of one transport over the same links, and how late each is alone.
struct Class {
    /// The first of its flows: the others are like it but for their sizes.
    flow: FlowId,
    way: Vec<Hop>,
    fabric: Fabric,
    quotient: Quotient,
    /// The grid's last number of packets, a power of two.
    steady: u64,
    /// By size of a message, how late it is alone.
    late: BTreeMap<u64, [Option<i64>; 2]>,
}

/// All classes of a scenario's flows.
pub(crate) struct Lone {
    classes: Vec<Class>,
    class_of: Vec<u32>,
    /// The runs: a class and a size each.
    pub sizes: Vec<(usize, u64)>,
    payload: Vec<u64>,
}

impl Lone {
    pub fn new(scenario: &Scenario, work: &WorkloadPlan, links: &Decomposition<'_>) -> Result<Lone, Problem> {
        let payload = |transport| scenario.host.mtu.get() - run::data_header_bytes(scenario, transport);
        let payload: Vec<u64> = work.transports.iter().map(payload).collect();
        let mut number: BTreeMap<(u8, Vec<Hop>), u32> = BTreeMap::new();
        let (mut classes, mut class_of) = (Vec::new(), Vec::with_capacity(work.flows.len()));
        let mut sizes: Vec<BTreeSet<u64>> = Vec::new();
        for (flow, id) in work.flows.iter().zip(0..).map(|(flow, id)| (flow, FlowId(id))) {
            let way = links.hops(id);
            let next = classes.len() as u32;
            let class = *number.entry((flow.transport, way.clone())).or_insert(next);
            if class == next {
                let (fabric, quotient) = chain_quotient(&way)?;
                let bdp = work.sites[flow.src.index()].bdp_bytes().saturating_mul(STEADY_BDPS);
                let packets = (bdp / payload[usize::from(flow.transport)]).clamp(STEADY_PACKETS, 1 << 40);
                let steady = packets.next_power_of_two();
                classes.push(Class { flow: id, way, fabric, quotient, steady, late: BTreeMap::new() });
                sizes.push(BTreeSet::new());
            }
            sizes[class as usize].insert(flow.bytes);
            class_of.push(class);
        }
        let chosen = |(class, sizes): (usize, &BTreeSet<u64>)| {
            let payload = payload[usize::from(work.flows.get(classes[class].flow).transport)];
            choose(sizes, payload, classes[class].steady).into_iter().map(move |bytes| (class, bytes))
        };
        let sizes = sizes.iter().enumerate().flat_map(chosen).collect();
        Ok(Lone { classes, class_of, sizes, payload })
    }

    /// A flow of a class, and its way.
    pub fn example(&self, class: usize) -> (FlowId, &[Hop]) {
        (self.classes[class].flow, &self.classes[class].way)
    }

    /// Notes the runs of `sizes`, in their order.
    pub fn note(&mut self, outcomes: &[Option<Outcome>]) {
        for (&(class, bytes), outcome) in self.sizes.iter().zip(outcomes) {
            let late = outcome.as_ref().map_or([None; 2], |outcome| outcome.late[0]);
            self.classes[class].late.insert(bytes, late);
        }
    }

    /// How much longer than at line rate a flow takes alone, in picoseconds, until its message is there and until its
    /// sender knows; none if that never happens.
    pub fn late(&self, work: &WorkloadPlan, flow: FlowId) -> [Option<i64>; 2] {
        let class = &self.classes[self.class_of[flow.index()] as usize];
        let info = work.flows.get(flow);
        if let Some(&late) = class.late.get(&info.bytes) {
            return late;
        }
        let payload = self.payload[usize::from(info.transport)];
        let packets = self.packets(work, flow);
        let (below, above) = around(packets, class.steady);
        let at = |packets: u64| class.late.get(&(packets * payload)).copied().unwrap_or([None; 2]);
        let (low, high) = (at(below), at(above));
        [0, 1].map(|which| {
            let (low, high) = (low[which]?, high[which]?);
            let share = if above == below { 0.0 } else { (packets - below) as f64 / (above - below) as f64 };
            Some(low + ((high - low) as f64 * share) as i64)
        })
    }

    /// How many packets a flow has.
    pub fn packets(&self, work: &WorkloadPlan, flow: FlowId) -> u64 {
        let info = work.flows.get(flow);
        info.bytes.div_ceil(self.payload[usize::from(info.transport)]).max(1)
    }

    /// By flow, how long it takes at line rate.
    pub fn at_line_rate(&self, scenario: &Scenario, work: &WorkloadPlan) -> Vec<[u64; 2]> {
        let header = |class: &Class| {
            run::data_header_bytes(scenario, &work.transports[usize::from(work.flows.get(class.flow).transport)])
        };
        let mut ideals: Vec<Ideal<'_>> = Vec::with_capacity(self.classes.len());
        for class in &self.classes {
            ideals.push(Ideal::new(&class.fabric, &class.quotient, scenario).with_header(header(class)));
        }
        let of = |(flow, &class): (run::FlowInfo, &u32)| {
            let ends = run::FlowInfo { src: HostId(0), dst: HostId(1), ..flow };
            at_line_rate(&mut ideals[class as usize], &ends)
        };
        work.flows.iter().zip(&self.class_of).map(of).collect()
    }
}

/// The sizes of which a class is simulated.
fn choose(sizes: &BTreeSet<u64>, payload: u64, steady: u64) -> Vec<u64> {
    let mut grid = BTreeSet::new();
    for &bytes in sizes {
        let (below, above) = around(bytes.div_ceil(payload).max(1), steady);
        grid.extend([below * payload, above * payload]);
    }
    let sum = |of: &BTreeSet<u64>| of.iter().map(|&bytes| u128::from(bytes)).sum::<u128>();
    if sum(sizes) <= sum(&grid) { sizes.iter().copied().collect() } else { grid.into_iter().collect() }
}

/// The numbers of packets of the grid that this one is between, or the last doubling, which it is beyond.
fn around(packets: u64, steady: u64) -> (u64, u64) {
    if packets > steady {
        return (steady / 2, steady);
    }
    if packets <= EACH_UP_TO {
        return (packets, packets);
    }
    let step = (1 << packets.ilog2()) / WITHIN_DOUBLING;
    let below = packets / step * step;
    (below, if below == packets { below } else { below + step })
}

#[cfg(test)]
mod tests;
