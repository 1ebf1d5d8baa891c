//! "Does this make sense?": settings that run, and give numbers that hardly mean what they seem to. One rule each, in
//! one sentence that names the key that would help. `clearway check` says them before a run, and the result afterwards.
//!
//! Thresholds are those of the sources that rules name, or are explained beside them. A rule says nothing where it
//! cannot know: it counts the flows that are known beforehand, on paths without other traffic.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use catalogue::Transport;
use contract::Family;
use fabric::Tier;
use node::Marking;
use units::{Bytes, Duration, FlowId, HostId, Problem, Rate, SwitchId, Time};
use workload::{Arrivals, Periodic, Poisson, Traffic};

use super::{Found, Rule, all_broken, rule};
use crate::{FlowInfo, Plan};

/// Settings that run, but hardly make sense.
pub(crate) fn doubts(plan: &Plan) -> Vec<Problem> {
    all_broken(SENSE, |when| when(plan))
}

/// Limits of the results. A finished run states them beside its own numbers, so only `check` asks for these.
pub(crate) fn doubts_of_results(plan: &Plan) -> Vec<Problem> {
    all_broken(RESULTS, |when| when(plan))
}

/// Doubts that the packets of a finished run raise.
pub(crate) fn doubts_of_outcome(outcome: &Outcome<'_>) -> Vec<Problem> {
    all_broken(OUTCOME, |when| when(outcome))
}

/// Counts of a finished run.
#[derive(Clone, Copy)]
pub(crate) struct Outcome<'a> {
    /// Its plan.
    pub plan: &'a Plan,
    /// Data packets of flows that completed, and how many of them had been sent before.
    pub sent_packets: u64,
    /// See there.
    pub resent_packets: u64,
    /// Packets that were lost anywhere.
    pub lost_packets: u64,
    /// When it ended, if it did so since all messages had.
    pub end_by_itself: Option<Time>,
}

type OfPlan = fn(&Plan) -> Found;
type OfOutcome = fn(&Outcome<'_>) -> Found;

const OUTCOME: &[Rule<OfOutcome>] = &[
    rule(
        "{0}",
        repeated_in_vain,
        "{1} of {2} data packets had been sent before, and none was lost: answers came later than a timer, or packets \
         overtook each other; leave timers out of the scenario, or let packets of a flow keep to one path \
         (switch.balancing = \"ecmp\")",
    ),
    rule(
        "{0}",
        fails_too_late,
        "did not happen at {1}: the run had ended at {2}, when all messages had; let messages arrive until then, or \
         let it fail earlier",
    ),
];

const RESULTS: &[Rule<OfPlan>] = &[rule(
    "{0}",
    short_for_a_percentile,
    "{1} messages in all: a 99th percentile of fewer than 100 is close to the slowest of them; more flows, or --seeds, \
     would tell more",
)];

const SENSE: &[Rule<OfPlan>] = &[
    rule(
        "{0}",
        overloaded,
        "{1} is more than the links carry, so that unfinished work grows for as long as messages arrive; write less \
         than 1{2}",
    ),
    rule(
        "{0}",
        tier_overloaded,
        "{1} would send {2} upward, and its uplinks carry {3}: a load counts hosts' links unless it says of = \
         \"bisection\"; write a load of at most {4}, or more uplinks",
    ),
    rule("{0}", two_ends, "{1}; delete one of flows and duration"),
    rule(
        "{0}",
        ends_too_early,
        "the run ends at {1}, before {2} of {3} messages can be through even if each were alone in the network: \
         numbers are of the others; the slowest needs until {4}",
    ),
    rule(
        "{0}",
        never_steady,
        "messages arrive for {1}, and half of all bytes are in messages that take {2} or longer alone in the network: \
         slowdown comes out too low, and not equally for all schemes; let messages arrive for ten times that",
    ),
    rule(
        "switch.marking",
        marks_above_room,
        "marks from {0} on, and a port has room for {1}: packets are dropped before any is marked; write less, or a \
         larger switch.buffer",
    ),
    rule(
        "switch.marking",
        marks_too_early,
        "marks every packet from {0} on, less than a seventh of the bandwidth-delay product ({1}), below which DCTCP's \
         queue runs empty (section 3.4 of its paper) and the link idles; write at least {2}, or leave it out",
    ),
    rule(
        "switch.buffer",
        buffer_below_product,
        "has room for {0} at a port, and one flow of {1} keeps a link of this delay busy after a loss only with a \
         queue of {2}; write at least that, or expect less than the link's rate from few flows",
    ),
    rule("{0}", headroom_and_buffer, "{1}"),
    rule(
        "switch.balancing",
        few_are_hashed,
        "hashes {0} long messages from {1} over {2} links: in {3}% of draws a link gets at least twice its share, so \
         that the result is one draw of the hash; compare over --seeds, or write \"adaptive\" or \"spray\"",
    ),
    rule(
        "{0}.sizes",
        mean_differs,
        "the file's first line states a mean of {1}, and sizes that are drawn from the table, linear between its \
         points, have {2}; the load is set by the latter. More points would bring them together",
    ),
];

/// One packet in a hundred is repeated though it came. If it is every second one, progress is said to be poor.
fn repeated_in_vain(outcome: &Outcome<'_>) -> Found {
    let Outcome { plan, sent_packets: sent, resent_packets: resent, lost_packets, .. } = *outcome;
    let many = sent >= 1_000 && resent >= sent / 100 && resent <= sent / 2;
    let key = plan.scenario.carriers().keys.first()?.clone();
    if many && lost_packets == 0 { found![key, resent, sent] } else { None }
}

/// The first failure that a run which ended by itself did not come to.
fn fails_too_late(outcome: &Outcome<'_>) -> Found {
    let end = outcome.end_by_itself?;
    let (index, failure) = outcome.plan.scenario.failure.iter().enumerate().find(|(_, failure)| failure.at >= end)?;
    found![format!("failure[{index}]"), failure.at, end]
}

/// Arrivals at times of their own: the load, the gap, and the key of a class.
fn load_of(class: &Traffic<Transport>) -> Option<(&'static str, f64)> {
    match class.arrivals.as_ref()? {
        Arrivals::Poisson(Poisson { load: Some(load), .. }) => Some(("arrivals.poisson.load", *load)),
        Arrivals::Periodic(Periodic { load: Some(load), .. }) => Some(("arrivals.periodic.load", *load)),
        _ => None,
    }
}

/// The classes whose messages arrive by a clock, with their index.
fn by_clock(plan: &Plan) -> impl Iterator<Item = (usize, &Traffic<Transport>)> {
    let timed = |class: &Traffic<Transport>| {
        class.trace.is_none() && matches!(class.arrivals, Some(Arrivals::Poisson(_) | Arrivals::Periodic(_)))
    };
    plan.scenario.traffic.iter().enumerate().filter(move |of| timed(of.1))
}

fn of_class(plan: &Plan, class: usize) -> impl Iterator<Item = (usize, &FlowInfo)> {
    plan.flows.of_traffic().iter().enumerate().filter(move |of| usize::from(of.1.class) == class)
}

/// How long messages of a class arrive.
fn arrives_for(plan: &Plan, class: usize) -> Option<Duration> {
    let starts = || of_class(plan, class).filter_map(|of| of.1.begins());
    Some(starts().max()?.since(starts().min()?))
}

/// Fewer than ten are a study of single messages, and ask for no distribution.
fn short_for_a_percentile(plan: &Plan) -> Found {
    let flows = plan.flows.of_traffic().len();
    let few = (10..100).contains(&flows) && plan.jobs.is_empty();
    let key = if plan.scenario.traffic.first()?.flows.is_some() { "traffic[0].flows" } else { "traffic[0]" };
    if few { found![key, flows] } else { None }
}

fn overloaded(plan: &Plan) -> Found {
    let load = |(index, class): (usize, &Traffic<Transport>)| Some((index, load_of(class)?));
    let (index, (key, load)) = by_clock(plan).filter_map(load).find(|(_, (_, load))| *load > 1.0)?;
    // Five times what links carry is rarely meant.
    let percent = if load >= 5.0 { format!("; for {load} percent write {}", load / 100.0) } else { String::new() };
    found![format!("traffic[{index}].{key}"), load, percent]
}

/// The switch whose uplinks would have to carry more than they can, of whichever tier.
fn tier_overloaded(plan: &Plan) -> Found {
    let fabric = &plan.fabric;
    let (index, class) = by_clock(plan).find(|(_, class)| load_of(class).is_some_and(|of| of.1 <= 1.0))?;
    let (key, load) = load_of(class)?;
    let lasts = arrives_for(plan, index)?;
    // Fewer are no rate.
    if lasts == Duration::ZERO || of_class(plan, index).count() < 1_000 {
        return None;
    }
    let bytes = sent_up(plan, of_class(plan, index).map(|of| of.1));
    let up = |switch: usize| {
        let ports = &fabric.ports[fabric.switch_node(SwitchId(switch as u32)).index()];
        let links = ports.iter().map(|&link| fabric.link(link)).filter(|link| link.tier == Tier::Up);
        links.map(|link| link.rate.bps()).sum::<u64>()
    };
    let rate = |switch: usize| (bytes[switch] * 8e12 / lasts.ps() as f64) as u64;
    let (switch, rate, carries) = (0..bytes.len())
        .map(|switch| (switch, rate(switch), up(switch)))
        .filter(|of| of.2 > 0 && of.1 as f64 > of.2 as f64 * 1.05)
        .max_by(|a, b| (a.1 as f64 / a.2 as f64).total_cmp(&(b.1 as f64 / b.2 as f64)))?;
    let name = &fabric.names[fabric.switch_node(SwitchId(switch as u32)).index()];
    let most = (load * carries as f64 / rate as f64 * 100.0).floor() / 100.0;
    found![format!("traffic[{index}].{key}"), name, in_gbps(rate), Rate::from_bps(carries), most]
}

/// By switch, what flows send over its uplinks if each switch shares out evenly over all shortest paths.
fn sent_up<'a>(plan: &'a Plan, flows: impl Iterator<Item = &'a FlowInfo>) -> Vec<f64> {
    let (fabric, routes) = (&plan.fabric, &plan.routes);
    // By destination's rack: a host there, and what each rack sends to it.
    let mut to_racks: BTreeMap<SwitchId, (HostId, BTreeMap<SwitchId, f64>)> = BTreeMap::new();
    for flow in flows {
        let (from, to) = (fabric.rack_of(flow.src), fabric.rack_of(flow.dst));
        if from != to {
            let (_, sent) = to_racks.entry(to).or_insert((flow.dst, BTreeMap::new()));
            *sent.entry(from).or_default() += flow.bytes as f64;
        }
    }
    let mut up = vec![0.0; fabric.switches as usize];
    for (host, sent) in to_racks.into_values() {
        // From the farthest on, so that a switch has got all that it passes on. Only switches on paths are looked at.
        let far = |switch| routes.distance(switch, host).unwrap_or(0);
        let mut passing: BTreeMap<(Reverse<u32>, SwitchId), f64> =
            sent.into_iter().map(|(switch, bytes)| ((Reverse(far(switch)), switch), bytes)).collect();
        while let Some(((_, switch), bytes)) = passing.pop_first() {
            let ports = routes.next(switch, host);
            let share = bytes / ports.len().max(1) as f64;
            for &port in ports {
                let link = fabric.link(fabric.ports[fabric.switch_node(switch).index()][port.index()]);
                up[switch.0 as usize] += if link.tier == Tier::Up { share } else { 0.0 };
                if let Some(next) = fabric.as_switch(link.to) {
                    *passing.entry((Reverse(far(next)), next)).or_default() += share;
                }
            }
        }
    }
    up
}

fn in_gbps(bps: u64) -> String {
    format!("{:.4}Gbps", bps as f64 / 1e9).replace(".0000", "")
}

/// Of flows and duration, the one that ends the class makes the other idle.
fn two_ends(plan: &Plan) -> Found {
    let both = |(_, class): &(usize, &Traffic<Transport>)| class.flows.is_some() && class.duration.is_some();
    let (index, class) = by_clock(plan).find(both)?;
    let (asked, lasts, came) = (class.flows?, class.duration?, of_class(plan, index).count() as u64);
    let (key, said) = if came < asked {
        ("flows", format!("only {came} of {asked} messages arrive within duration = \"{lasts}\""))
    } else {
        ("duration", format!("all {asked} messages have arrived before \"{lasts}\""))
    };
    found![format!("traffic[{index}].{key}"), said]
}

/// Where no message can be through they are meant to go on, and rates are what is measured. Where some can, numbers are
/// of those alone.
fn ends_too_early(plan: &Plan) -> Found {
    let measure = &plan.scenario.measure;
    let through = |(at, flow): (usize, &FlowInfo)| {
        let row = plan.flows.row(FlowId::from(at))?;
        Some(flow.begins()?.saturating_add(Duration::from_ps(*plan.ideal_ps.get(row)?)))
    };
    let late = || plan.flows.of_traffic().iter().enumerate().filter_map(through).filter(|at| *at > plan.horizon);
    let (count, all, last) = (late().count(), plan.flows.of_traffic().len(), late().max()?);
    let key = if measure.end.is_some() { "measure.end" } else { "measure.drain" };
    if count < all { found![key, plan.horizon, count, all, last] } else { None }
}

/// Half of the bytes are of messages that take longer alone than a tenth of the time in which messages arrive. Measured
/// for web search at load 0.6 at one switch of 12 hosts, against messages that arrive for 64 times as long: over 8
/// times as long, DCTCP's mean slowdown is 0.67 and dcPIM's 0.91 of that; over twice as long, 0.48 and 0.83.
fn never_steady(plan: &Plan) -> Found {
    let unsteady = |(index, _): (usize, &Traffic<Transport>)| {
        let lasts = arrives_for(plan, index)?;
        // All at one instant: a burst is never meant to be steady.
        if lasts == Duration::ZERO || of_class(plan, index).count() < 100 {
            return None;
        }
        let ideal = |(at, flow): (usize, &FlowInfo)| {
            let row = plan.flows.row(FlowId::from(at))?;
            Some((*plan.ideal_ps.get(row)?, flow.bytes))
        };
        let mut times: Vec<(u64, u64)> = of_class(plan, index).filter_map(ideal).collect();
        times.sort_unstable();
        let half = times.iter().map(|of| u128::from(of.1)).sum::<u128>() / 2;
        let mut below = 0;
        let (middle, _) = times.iter().find(|of| {
            below += u128::from(of.1);
            below >= half
        })?;
        let middle = Duration::from_ps(*middle);
        (middle.ps().saturating_mul(10) > lasts.ps()).then_some((index, lasts, middle))
    };
    let (index, lasts, middle) = by_clock(plan).find_map(unsteady)?;
    let class = &plan.scenario.traffic[index];
    let key = if class.duration.is_some() { "duration" } else { "flows" };
    found![format!("traffic[{index}].{key}"), lasts, middle]
}

/// The queue from which packets are marked, if the scenario says so and a transport reacts to it.
fn marked_from(plan: &Plan) -> Option<Marking> {
    plan.scenario.switch.marking.filter(|_| plan.settings.marking.iter().any(Option::is_some))
}

fn marks_above_room(plan: &Plan) -> Found {
    let from = match marked_from(plan)? {
        Marking::Step { threshold } => threshold,
        Marking::Ramp { min, per: None, .. } | Marking::GentleRamp { min, .. } => min,
        Marking::Ramp { .. } => return None,
    };
    let room = plan.settings.buffer.port_bytes_max();
    if from.get() >= room { found![from, Bytes(room)] } else { None }
}

/// DCTCP's queue stays above 0 if the threshold is above a seventh of the bandwidth-delay product (section 3.4).
fn marks_too_early(plan: &Plan) -> Found {
    let Marking::Step { threshold } = marked_from(plan)? else { return None };
    let reacts = plan.transports.iter().any(|of| of.as_scheme().capabilities().family == Family::Reactive);
    let product = plan.sites[0].bdp_bytes();
    if reacts && threshold.get() < product / 7 {
        found![threshold, Bytes(product), Bytes(product / 7 + 1)]
    } else {
        None
    }
}

/// A link stays busy after a loss if the queue before it has held what the window loses.
fn buffer_below_product(plan: &Plan) -> Found {
    let lossless = plan.scenario.flow_control.as_scheme().is_some() || plan.queueing.is_some();
    let room = plan.settings.buffer.port_bytes_max();
    let short = |transport: &Transport| {
        let needed = transport.as_scheme().queue_needed(&plan.sites[0])?;
        (needed.get() > room && !lossless).then_some((transport.name(), needed))
    };
    let (name, needed) = plan.transports.iter().find_map(short)?;
    found![Bytes(room), name, needed]
}

/// A rack's messages for which a hash chooses one of several links.
#[derive(Clone, Copy, Default)]
struct Hashed {
    links: u64,
    long: u64,
    long_bytes: u64,
    bytes: u64,
}

/// In how many of all draws one of `links` at least gets twice its share of `messages` that a hash spreads evenly: at
/// most, as the sum over links of a binomial distribution's tail.
fn crowded(messages: u64, links: u64) -> f64 {
    let (chance, share) = (1.0 / links as f64, (2 * messages).div_ceil(links));
    let mut exactly = (0..messages).fold(1.0, |all, _| all * (1.0 - chance));
    let mut fewer = 0.0;
    for count in 0..share {
        fewer += exactly;
        exactly *= (messages - count) as f64 / (count + 1) as f64 * chance / (1.0 - chance);
    }
    ((1.0 - fewer) * links as f64).clamp(0.0, 1.0)
}

/// The flow control's doubt about the first switch that it hardly fits.
fn headroom_and_buffer(plan: &Plan) -> Found {
    let view = plan.link_view();
    let doubt = |switch| plan.scenario.flow_control.doubt(&view, switch);
    let problem = (0..plan.fabric.switches).map(SwitchId).find_map(doubt)?.under("flow_control");
    found![problem.key, problem.message]
}

/// A link has twice its share in more than one draw of twenty.
fn few_are_hashed(plan: &Plan) -> Found {
    const SELDOM: f64 = 0.05;
    // Of 1,000 and more, twice the share is next to impossible, and the sum takes long.
    const MANY: u64 = 1_000;
    let fabric = &plan.fabric;
    let hashed = |transport: u8| {
        let index = usize::from(transport);
        let own = &plan.requirements[index];
        plan.balancing.get(index).is_some_and(|of| of.by_hash()) && !own.flow_labels && !own.own_routes
    };
    let long = 8 * plan.sites[0].bdp_bytes();
    let mut racks = vec![Hashed::default(); fabric.switches as usize];
    let mut count = |flow: &FlowInfo| {
        let from = fabric.rack_of(flow.src);
        let links = plan.routes.next(from, flow.dst).len() as u64;
        if links < 2 || !hashed(flow.transport) {
            return;
        }
        let rack = &mut racks[from.0 as usize];
        rack.links = rack.links.max(links);
        rack.bytes = rack.bytes.saturating_add(flow.bytes);
        if flow.bytes >= long {
            rack.long += 1;
            rack.long_bytes = rack.long_bytes.saturating_add(flow.bytes);
        }
    };
    plan.flows.of_traffic().iter().for_each(&mut count);
    // Messages between two ranks follow one another: a pair counts once.
    plan.flows.each_kind_of_jobs(|flow, _| count(&flow));
    // Where most bytes are of shorter messages, those decide.
    let few = |rack: &Hashed| {
        (2..MANY).contains(&rack.long) && rack.long_bytes > rack.bytes / 2 && crowded(rack.long, rack.links) > SELDOM
    };
    let switch = racks.iter().position(few)?;
    let name = &fabric.names[fabric.switch_node(SwitchId(switch as u32)).index()];
    let Hashed { long, links, .. } = racks[switch];
    found![long, name, links, (crowded(long, links) * 100.0).round()]
}

/// Homa's files state means by steps, which are up to 5% above those that are linear between points.
fn mean_differs(plan: &Plan) -> Found {
    let (index, (stated, drawn)) =
        plan.scenario.traffic.iter().enumerate().find_map(|(index, class)| Some((index, class.stated_mean()?)))?;
    let differs = (stated / drawn - 1.0).abs() > 0.1;
    let bytes = |mean: f64| Bytes(mean.round() as u64);
    if differs { found![format!("traffic[{index}]"), bytes(stated), bytes(drawn)] } else { None }
}

#[cfg(test)]
mod tests;
