//! What a node has to compute, interval by interval (section 5.1, Figure 8).
//!
//! The paper records in its simulator when flows begin and end and replays that on a node, which computes rates every
//! rho for the flows that have lasted more than one interval. Here the record is a fluid's: [`lifetimes`] gives every
//! flow that is there its max-min fair rate, new ones at once, which is the ideal (rho = 0) that section 5.2 compares
//! with. One record serves all rhos, as in the paper.
//!
//! A flow that begins with its fair rate (section 3.1) has its node compute once more, for all flows that are there:
//! [`at_starts`]. What Figure 8 counts is the first only.
//!
//! No clock is read here: who calls [`recompute`] brings one.

use std::sync::Arc;

use fabric::{LinkWeight, Routing, RoutingTables};
use units::{Duration, HostId, Time};

use super::{Allocator, Flow};

/// A flow to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// When it begins.
    pub start: Time,
    /// Who sends.
    pub src: HostId,
    /// Who receives.
    pub dst: HostId,
    /// How much.
    pub bytes: u64,
}

/// A flow that has been.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifetime {
    /// When it began.
    pub start: Time,
    /// When its last bit had left; [`Time::MAX`] if the record ended before.
    pub end: Time,
    /// Who sent.
    pub src: HostId,
    /// Who received.
    pub dst: HostId,
}

/// The network of a replay.
#[derive(Clone, Copy)]
pub struct NetworkView<'a> {
    /// What flows pass.
    pub tables: &'a RoutingTables,
    /// The protocol of all flows.
    pub routing: Routing,
    /// By link, what there is to share.
    pub capacity_bps: &'a [f64],
}

/// One computation of a node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Recomputation<T> {
    /// When it was due.
    pub at: Time,
    /// For how many flows.
    pub flows: usize,
    /// What the caller's clock said of it.
    pub took: T,
}

struct Active {
    message: usize,
    links: Arc<[LinkWeight]>,
    bits_left: f64,
}

/// When each of `messages` (in order of start) begins and ends, if all that are there share the network as max-min
/// fairness has it. Rates are those of the flows that are there at the start of each `step`. The record ends with the
/// step in which the last message starts.
pub fn lifetimes(network: &NetworkView<'_>, messages: &[Message], step: Duration) -> Vec<Lifetime> {
    let unfinished = |m: &Message| Lifetime { start: m.start, end: Time::MAX, src: m.src, dst: m.dst };
    let mut lifetimes: Vec<Lifetime> = messages.iter().map(unfinished).collect();
    let mut allocator = Allocator::new(network.capacity_bps);
    let mut active: Vec<Active> = Vec::new();
    let (mut next, mut now) = (0, Time::ZERO);
    while let Some(message) = messages.get(next) {
        if active.is_empty() {
            now = now.max(message.start);
        }
        while let Some(message) = messages.get(next).filter(|message| message.start <= now) {
            let links = network.tables.weights(network.routing, message.src, message.dst);
            active.push(Active { message: next, links, bits_left: message.bytes as f64 * 8.0 });
            next += 1;
        }
        let flows: Vec<Flow<'_>> = active.iter().map(|flow| plain(&flow.links)).collect();
        let mut rates = allocator.allocate(&flows).iter();
        active.retain_mut(|flow| {
            let rate = rates.next().expect("a rate for each flow");
            let needs = flow.bits_left / rate;
            flow.bits_left -= rate * step.secs_f64();
            if needs <= step.secs_f64() {
                lifetimes[flow.message].end = now + Duration::from_secs_f64(needs);
            }
            needs > step.secs_f64()
        });
        now += step;
    }
    lifetimes
}

/// Computes rates every `rho` for the flows that are there and have lasted more than `rho`, from the first flow's start
/// to the last's, and has `time` measure each computation.
pub fn recompute<T>(
    network: &NetworkView<'_>,
    lifetimes: &[Lifetime],
    rho: Duration,
    mut time: impl FnMut(&mut dyn FnMut()) -> T,
) -> Vec<Recomputation<T>> {
    let mut recomputations = Vec::new();
    let mut allocator = Allocator::new(network.capacity_bps);
    let mut known: Vec<(Lifetime, Arc<[LinkWeight]>)> = Vec::new();
    let mut coming = lifetimes.iter().peekable();
    let (Some(first), Some(last)) = (lifetimes.first(), lifetimes.last()) else {
        return recomputations;
    };
    let mut at = first.start + rho;
    while at <= last.start {
        known.retain(|(flow, _)| flow.end > at);
        while let Some(flow) = coming.next_if(|flow| flow.start + rho <= at) {
            if flow.end > at {
                known.push((*flow, network.tables.weights(network.routing, flow.src, flow.dst)));
            }
        }
        let took = time(&mut || {
            let flows: Vec<Flow<'_>> = known.iter().map(|(_, links)| plain(links)).collect();
            std::hint::black_box(allocator.allocate(&flows));
        });
        recomputations.push(Recomputation { at, flows: known.len(), took });
        at += rho;
    }
    recomputations
}

/// What nodes compute beside that, where a flow begins with its fair rate (section 3.1): the rates of all flows that
/// are there when one begins, itself among them. One computation a flow, by the flow's source, of every `each`-th.
pub fn at_starts<T>(
    network: &NetworkView<'_>,
    lifetimes: &[Lifetime],
    each: usize,
    mut time: impl FnMut(&mut dyn FnMut()) -> T,
) -> Vec<(HostId, Recomputation<T>)> {
    let mut allocator = Allocator::new(network.capacity_bps);
    let mut there: Vec<(Lifetime, Arc<[LinkWeight]>)> = Vec::new();
    let mut starts = Vec::new();
    for (index, flow) in lifetimes.iter().enumerate() {
        there.push((*flow, network.tables.weights(network.routing, flow.src, flow.dst)));
        if index % each.max(1) != 0 {
            continue;
        }
        there.retain(|(other, _)| other.end > flow.start);
        let took = time(&mut || {
            let flows: Vec<Flow<'_>> = there.iter().map(|(_, links)| plain(links)).collect();
            std::hint::black_box(allocator.allocate(&flows));
        });
        starts.push((flow.src, Recomputation { at: flow.start, flows: there.len(), took }));
    }
    starts
}

fn plain(links: &[LinkWeight]) -> Flow<'_> {
    Flow { links, weight: 1.0, priority: 0, demand: f64::INFINITY }
}
