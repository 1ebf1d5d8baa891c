//! Scenarios that can't be simulated one link at a time, and why.
//!
//! A link alone sees only the flows that cross it, all of which must be known beforehand, with their times and their
//! ways. So whatever starts by what happened elsewhere, and whatever acts on several links at once, is refused.

use scenario::Scenario;
use units::{FlowId, Problem};

use super::{
    Found, OfFabric, OfScenario, Rule, all_broken, arrivals_noted, events_recorded, fails, flows_followed,
    links_repeat, packets_recorded, ports_watched, refuse_first, rule, several_links, shares, software_takes_time,
};
use crate::{FlowInfo, Way, WorkloadPlan};

/// Refuses what can't be simulated one link at a time, before anything of it is worked out.
pub fn check_links(scenario: &Scenario) -> Result<(), Problem> {
    refuse_first(LINKS, |when| when(scenario))
}

/// The same, of its network and its transports.
pub fn check_links_network(work: &WorkloadPlan) -> Result<(), Problem> {
    refuse_first(LINKS_NETWORK, |when| when(&work.fabric))?;
    refuse_first(LINKS_TRANSPORTS, |when| when(work))
}

/// The same, of its flows: none of them may wait for another.
pub fn check_links_flows(scenario: &Scenario, work: &WorkloadPlan) -> Result<(), Problem> {
    let Some(flow) = work.flows.iter().find(|flow| flow.after.is_some()) else { return Ok(()) };
    let message = "its flows start when others have ended, and a link alone does not know when that is; run it at \
                   packet level, or let them arrive at times of their own";
    Err(Problem::new(scenario.class_key(usize::from(flow.class)), message))
}

/// The same, of the way of one flow: all of it has to pass each resource.
pub fn check_links_ways(scenario: &Scenario, id: FlowId, flow: &FlowInfo, way: &Way) -> Result<(), Problem> {
    if way.passes.iter().all(|&(_, share)| share == 1.0) {
        return Ok(());
    }
    let message = format!(
        "packets of flow {} spread over links that have other neighbours, so that no link or bundle of alike links has \
         all of them; let all transports choose by a hash (switch.balancing = \"ecmp\"), or run it at packet level",
        id.0
    );
    Err(Problem::new(scenario.class_key(usize::from(flow.class)), message))
}

/// Settings without effect where each link is simulated alone.
pub fn links_advice(scenario: &Scenario) -> Vec<Problem> {
    all_broken(LINKS_ADVICE, |when| when(scenario))
}

type OfWork = fn(&WorkloadPlan) -> Found;

const LINKS_NETWORK: &[Rule<OfFabric>] = &[rule(
    "fabric",
    several_links,
    "{0} has {1} links, and with level = links a host has one; run it at packet level",
)];

const LINKS: &[Rule<OfScenario>] = &[
    rule(
        "job",
        has_jobs,
        "messages of a training job start when others have come, and a link alone does not know when that is; run it \
         at packet level or at flow level",
    ),
    rule("failure", fails, "a link alone knows no routes that change; run it at packet level, or delete it"),
    rule(
        "sharing",
        shares,
        "shares among entities are kept on all links of a path at once; run it at packet level, or delete it",
    ),
    rule(
        "flow_control",
        controls_links,
        "{0} lets a switch hold back the switches and hosts before it, and a link alone has none; run it at packet \
         level, or delete it",
    ),
    rule(
        "host.cpu",
        software_takes_time,
        "each link would be simulated with it, and what it delays counted several times; run it at packet level, or \
         delete it",
    ),
    rule(
        "host.intake_rate",
        takes_in_slowly,
        "each link would be simulated with it, and what it delays counted several times; run it at packet level, or \
         delete it",
    ),
];

const LINKS_ADVICE: &[Rule<OfScenario>] = &[
    rule(
        "link.llr",
        links_repeat,
        "a link alone has no errors, so that there is nothing to repeat; run it at packet level for that",
    ),
    rule(
        "measure.arrivals",
        arrivals_noted,
        "packets cross one link only in each run, so that there are no arrivals of the whole way; run it at packet \
         level, or delete it",
    ),
    rule(
        "measure.packets",
        packets_recorded,
        "packets cross one link only in each run, so that there is no whole way to record; run it at packet level for \
         that",
    ),
    rule(
        "measure.events",
        events_recorded,
        "each link has a run of its own, so that there are no events of the whole network; run it at packet level for \
         that",
    ),
    rule(
        "measure.ports",
        ports_watched,
        "each link has a run of its own, which keeps no samples; run it at packet level for that",
    ),
    rule(
        "measure.flows",
        flows_followed,
        "a flow has another window on each link that is simulated alone; run it at packet level for that",
    ),
];

const LINKS_TRANSPORTS: &[Rule<OfWork>] = &[
    rule(
        "{0}",
        routes_itself,
        "{1} chooses routes or rates by what happens in the whole network, and a link alone does not show it; run it \
         at packet level, or choose another transport",
    ),
    rule(
        "{0}",
        labels_packets,
        "{1} gives each packet a path of its own, by the answers that come from all of them; run it at packet level, \
         or let switches spread its packets",
    ),
];

fn has_jobs(scenario: &Scenario) -> Found {
    if scenario.job.is_empty() { None } else { found![] }
}

fn controls_links(scenario: &Scenario) -> Found {
    scenario.flow_control.as_scheme()?;
    found![scenario.flow_control.name()]
}

fn takes_in_slowly(scenario: &Scenario) -> Found {
    scenario.host.intake_rate?;
    found![]
}

fn first_that(work: &WorkloadPlan, does: impl Fn(usize) -> bool) -> Found {
    let index = (0..work.transports.len()).find(|&index| does(index))?;
    found![work.keys[index], work.transports[index].name()]
}

fn routes_itself(work: &WorkloadPlan) -> Found {
    first_that(work, |index| work.requirements[index].own_routes)
}

fn labels_packets(work: &WorkloadPlan) -> Found {
    first_that(work, |index| work.requirements[index].flow_labels)
}

#[cfg(test)]
mod tests;
