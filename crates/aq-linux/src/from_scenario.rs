//! Tenants from a scenario: its entities, with the shares that they ask for and the settings of Augmented Queue, so
//! that a simulated scenario can be attached as it is. A scenario can't say which packets of a machine belong to which
//! entity; the command line does (`--match NAME=cgroup:/x`).
//!
//! A device is one end of one link. So one of the scenario's links is chosen: the one that all requests name, or the
//! one that the command line names. The device is at the link's first end: packets on the link leave by the device, and
//! packets of the other direction come in by it. Whether the simulated AQ was in the switch's ingress or egress
//! pipeline makes no difference here.

use std::collections::{BTreeMap, BTreeSet};

use catalogue::Sharing;
use contract::CongestionSignal;
use contract::sharing::Position;
use run::{Asked, Plan};
use scenario::{RequestSpec, Scenario};
use units::{LinkId, Problem, Time};

use crate::matching::Matches;
use crate::tenants::{Link, Tenant, Tenants};

/// The tenants of a scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct Taken {
    /// The tenants.
    pub tenants: Tenants,
    /// The differences of a kernel.
    pub warnings: Vec<String>,
}

/// Whose packets are an entity's: `NAME=KIND:VALUE[,VALUE]`, as a command line has it. Given again, it adds.
pub fn matches(given: &[String]) -> Result<BTreeMap<String, Matches>, String> {
    let mut all: BTreeMap<String, Matches> = BTreeMap::new();
    for text in given {
        let wrong =
            |why: &str| format!("--match {text}: {why}; write it like \"web=cgroup:/system.slice/nginx.service\"");
        let (name, rest) = text.split_once('=').ok_or_else(|| wrong("names no entity"))?;
        let (kind, values) = rest.split_once(':').ok_or_else(|| wrong("says no kind of match"))?;
        let of = all.entry(name.to_owned()).or_default();
        for value in values.split(',') {
            let number = |most: u32| {
                let read = value.parse().ok().filter(|&number: &u32| number <= most);
                read.ok_or_else(|| wrong(&format!("\"{value}\" is no number up to {most}")))
            };
            match kind {
                "cgroup" => of.cgroup.push(value.to_owned()),
                "mark" => of.mark.push(number(u32::MAX)?),
                "vlan" => of.vlan.push(u16::try_from(number(4_094)?).unwrap_or(0)),
                "destination" => of.destination.push(value.parse()?),
                "source" => of.source.push(value.parse()?),
                "ports" => of.ports.push(value.parse()?),
                "source_ports" => of.source_ports.push(value.parse()?),
                "portless" => of.portless.push(value.parse()?),
                _ => {
                    let kinds = "cgroup, mark, vlan, destination, source, ports, source_ports or portless";
                    return Err(wrong(&format!("\"{kind}\" is no kind of match, but {kinds} is")));
                }
            }
        }
    }
    Ok(all)
}

/// The tenants that a scenario's entities are on the link from one node to another, or on the one link that they share.
pub fn tenants(
    scenario: &Scenario,
    matches: &BTreeMap<String, Matches>,
    link: Option<(&str, &str)>,
) -> Result<Taken, Problem> {
    if !matches!(scenario.sharing, Sharing::Aq(_)) {
        let message = format!("is \"{}\"; what is attached to a kernel is \"aq\"", scenario.sharing.name());
        return Err(Problem::new("sharing", message));
    }
    let plan = Plan::new(scenario)?;
    let leaves = chosen(&plan, link)?;
    let comes = reverse(&plan, leaves);
    let mut warnings = Vec::new();
    let mut entity = Vec::new();
    let mut named: BTreeSet<&str> = matches.keys().map(String::as_str).collect();
    for (number, spec) in scenario.entity.iter().enumerate() {
        named.remove(spec.name.as_str());
        let asked: Vec<&Asked> =
            plan.entities.requests.iter().filter(|one| usize::from(one.entity) == number).collect();
        let mut request = Vec::new();
        for one in &asked {
            let position = match one.place.link {
                link if link == leaves => Position::Egress,
                link if Some(link) == comes => Position::Ingress,
                _ => continue,
            };
            request.push(RequestSpec { share: one.share, position, link: None });
        }
        let Some(first) = asked.first().filter(|_| !request.is_empty()) else { continue };
        let key = format!("entity[{number}]");
        let matches = matches.get(&spec.name).cloned().ok_or_else(|| {
            let message = format!("\"{0}\" has no packets here; say which with --match {0}=cgroup:/...", spec.name);
            Problem::new(format!("{key}.name"), message)
        })?;
        if spec.start > Time::ZERO || spec.end.is_some() {
            warnings
                .push(format!("{key}: starts and ends at times of its own in the scenario; here it is there at once"));
        }
        let mine = |class: u16| class_of(spec, class, scenario);
        let senders: BTreeSet<_> = plan.flows.iter().filter(|flow| mine(flow.class)).map(|flow| flow.src).collect();
        let carrier = plan.flows.iter().find(|flow| mine(flow.class)).map(|flow| usize::from(flow.transport));
        let transport = carrier.map_or_else(|| scenario.transport.clone(), |index| plan.transports[index].clone());
        let derived = matches!(first.feedback, CongestionSignal::Ecn(_)) && first.derive_threshold;
        if derived && transport.name() != "dctcp" {
            let message = "is needed: only DCTCP's threshold is derived; write \"drop\" or { ecn = { step = ... } }";
            return Err(Problem::new(format!("{key}.feedback"), message));
        }
        let feedback = Some(first.feedback).filter(|_| !derived);
        entity.push(Tenant {
            name: spec.name.clone(),
            matches,
            each: spec.each,
            flows: None,
            transport,
            senders: u32::try_from(senders.len()).unwrap_or(u32::MAX).clamp(1, 1_000),
            feedback,
            work_conserving: spec.work_conserving,
            request,
        });
    }
    if let Some(name) = named.first() {
        let names: Vec<&str> = scenario.entity.iter().map(|spec| spec.name.as_str()).collect();
        return Err(Problem::new("--match", format!("the scenario has no entity \"{name}\"; it has {names:?}")));
    }
    let mut here = Link::of(plan.fabric.link(leaves).rate);
    here.queue = plan.settings.buffer.bytes().max(here.burst);
    let tenants = Tenants { link: here, sharing: scenario.sharing.clone(), entity };
    tenants.check()?;
    Ok(Taken { tenants, warnings })
}

/// Whether a class of traffic is an entity's by name or by transport. Hosts are told by address.
fn class_of(spec: &scenario::EntitySpec, class: u16, scenario: &Scenario) -> bool {
    let Some(class) = scenario.classes().nth(usize::from(class)) else { return false };
    spec.traffic.iter().any(|name| name == class.name)
        || spec.transports.iter().any(|name| name == class.transport.name())
        || spec.hosts.is_some()
}

/// The link that is named, or the one that all requests are about, in the direction in which it is named.
fn chosen(plan: &Plan, link: Option<(&str, &str)>) -> Result<LinkId, Problem> {
    let fabric = &plan.fabric;
    if let Some((from, to)) = link {
        let find = |name: &str| fabric.find(name).map_err(|problem| problem.under("--link"));
        let found: Vec<LinkId> = fabric.links_between(find(from)?, find(to)?).collect();
        return match found[..] {
            [one] => Ok(one),
            _ => Err(Problem::new("--link", format!("there are {} links from {from} to {to}, not one", found.len()))),
        };
    }
    let mut leaves: Vec<LinkId> = Vec::new();
    for asked in &plan.entities.requests {
        let here = asked.place.link;
        // Into a host: its device is at the other end.
        let here = match fabric.as_switch(fabric.link(here).to) {
            None => reverse(plan, here).unwrap_or(here),
            Some(_) => here,
        };
        if !leaves.iter().any(|&one| one == here || reverse(plan, one) == Some(here)) {
            leaves.push(here);
        }
    }
    match leaves[..] {
        [one] => Ok(one),
        [] => Err(Problem::new("entity", "none asks for anything; give one a request")),
        _ => {
            let name = |link: &LinkId| {
                let ends = fabric.link(*link);
                format!("{},{}", fabric.names[ends.from.index()], fabric.names[ends.to.index()])
            };
            let some: Vec<String> = leaves.iter().take(4).map(name).collect();
            let message = format!("requests are about {} links; name the device's, such as {some:?}", leaves.len());
            Err(Problem::new("--link", message))
        }
    }
}

/// The link back.
fn reverse(plan: &Plan, link: LinkId) -> Option<LinkId> {
    let ends = plan.fabric.link(link);
    plan.fabric.links_between(ends.to, ends.from).next()
}

#[cfg(test)]
mod tests;
