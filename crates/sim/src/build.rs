//! From a plan to parts on the engine.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use catalogue::{LinkControl, Transport};
use engine::Agenda;
use fabric::{Change as FabricChange, Epoch, Fabric, Failures, LinkNoise, Tier, Whom};
use node::pool::{Flight, Pool};
use run::{HEAD_BYTES, Plan};
use units::{Duration, HostId, LinkId, NodeId, PerByte, PortId, Rate, Time};

use crate::arrivals::Arrivals;
use crate::congestion::Congestion;
use crate::entities::EntityProbe;
use crate::first_time::FirstTime;
use crate::guarantee;
use crate::noise::Noise;
use crate::part::{Change, From, HostPort, HostSlot, Outlet, Part, Pipe, PipeRef, SwitchSlot, To};
use crate::probe::Samples;

/// The network cut into at most `parts` parts.
pub(crate) fn parts(plan: &Plan, parts: usize) -> Vec<Part> {
    let fabric = &plan.fabric;
    let parts = parts.clamp(1, fabric.groups as usize);
    // Consecutive groups, so that neighbours stay together.
    let part_of = |node: NodeId| fabric.group_of[node.index()] as usize * parts / fabric.groups as usize;
    let mut pipe_of = vec![0u32; fabric.links.len()];
    let mut pipes = vec![0u32; parts];
    for (id, link) in fabric.links.iter().enumerate() {
        let count = &mut pipes[part_of(link.to)];
        pipe_of[id] = *count;
        *count += 1;
    }
    let mut built: Vec<Part> = (0..parts)
        .map(|_| Part {
            agenda: Agenda::new(0),
            pool: Pool::default(),
            pipes: Vec::new(),
            outlets: Vec::new(),
            switches: Vec::new(),
            hosts: Vec::new(),
            changes: Vec::new(),
            samples: Samples::new(plan.scenario.measure.interval),
            flow_controlled: plan.scenario.flow_control != LinkControl::None,
            watches_ready_ports: false,
            congestion: Congestion::new(plan),
            probes: false,
            entities: EntityProbe::new(plan),
            guarantee: guarantee::Watch::new(plan),
            arrivals: Arrivals::new(plan),
            first_time: FirstTime::new(plan),
            outbox: Vec::new(),
            packet_hops: 0,
            events: 0,
        })
        .collect();
    // Nodes in the order of their ids, and with each its outlets in the order of its ports. Hosts come first, so
    // outlets are in the order of (node, port) in every part.
    let mut index_in_part = vec![0u32; fabric.nodes() as usize];
    let mut outlet_of = vec![0u32; fabric.links.len()];
    for node in (0..fabric.nodes()).map(NodeId) {
        let part = &mut built[part_of(node)];
        let first_outlet = part.outlets.len() as u32;
        let host = fabric.as_host(node);
        let index = if host.is_some() { part.hosts.len() } else { part.switches.len() } as u32;
        index_in_part[node.index()] = index;
        for (port, &id) in fabric.ports[node.index()].iter().enumerate() {
            outlet_of[id.index()] = part.outlets.len() as u32;
            let from = match host {
                Some(_) => From::Host { index, port: PortId::from(port) },
                None => From::Switch { index, port: PortId::from(port) },
            };
            part.outlets.push(outlet(plan, id, from, part_of(node), part_of(fabric.link(id).to), pipe_of[id.index()]));
        }
        match host {
            Some(host) => part.hosts.push(HostSlot {
                host: plan.host(host),
                outlet: first_outlet,
                per_byte: per_byte(plan, fabric.uplink(host)),
                free_at: Time::ZERO,
                up: true,
                lost: (0, 0),
                ports: host_ports(plan, host),
            }),
            None => {
                let id = fabric.as_switch(node).expect("a node is a host or a switch");
                part.switches.push(SwitchSlot { id: id.0, switch: plan.switch(id), first_outlet, digest: 0 });
            }
        }
    }
    let noisy: BTreeSet<LinkId> =
        plan.changes.iter().flat_map(|epoch| noise_of(&epoch.change)).map(|of| of.0).collect();
    let transports: Arc<[Transport]> = if noisy.is_empty() { Arc::new([]) } else { plan.transports.as_slice().into() };
    for (id, link) in fabric.links.iter().enumerate() {
        let index = index_in_part[link.to.index()];
        let to = match fabric.as_host(link.to) {
            Some(_) => To::Host { index, port: link.to_port },
            None => To::Switch { index, port: link.to_port },
        };
        let pipes = &mut built[part_of(link.to)].pipes;
        debug_assert_eq!(pipes.len() as u32, pipe_of[id]);
        let noise = noisy
            .contains(&LinkId::from(id))
            .then(|| Box::new(Noise::new(plan.scenario.seed, id as u64, transports.clone())));
        let packets = Flight::default();
        pipes.push(Pipe { link: id as u32, packets, to, up: true, lost_packets: 0, lost_bytes: 0, noise });
    }
    plan_changes(plan, &mut built, part_of, [&pipe_of, &outlet_of, &index_in_part]);
    for part in &mut built {
        part.watches_ready_ports = part.flow_controlled || part.guarantee.is_some() || plan.has_agents();
        part.probes =
            part.entities.is_some() || part.guarantee.is_some() || part.arrivals.is_some() || part.first_time.is_some();
        part.agenda = Agenda::new(part.sources());
        part.prime();
    }
    built
}

fn per_byte(plan: &Plan, link: LinkId) -> PerByte {
    plan.fabric.link(link).rate.per_byte().in_steps_of(plan.scenario.transmission_step)
}

/// The ports of a host, if it has several.
fn host_ports(plan: &Plan, host: HostId) -> Option<Box<[HostPort]>> {
    let uplinks = plan.fabric.uplinks(host);
    let port = |&link: &LinkId| HostPort {
        per_byte: per_byte(plan, link),
        free_at: Time::ZERO,
        up: true,
        sent: (0, 0),
        lost: (0, 0),
    };
    (uplinks.len() > 1).then(|| uplinks.iter().map(port).collect())
}

fn outlet(plan: &Plan, id: LinkId, from: From, here: usize, there: usize, pipe: u32) -> Outlet {
    let link = plan.fabric.link(id);
    let at_host = matches!(link.tier, Tier::FromHost | Tier::ToHost);
    let host_delay = if at_host { plan.scenario.host.delay } else { Duration::ZERO };
    let cut_through = plan.scenario.switch.cut_through && link.tier != Tier::ToHost;
    Outlet {
        to: if here == there { PipeRef::Here(pipe) } else { PipeRef::There { part: there as u32, pipe } },
        delay: link.propagation + plan.fabric.delay_after(id) + host_delay,
        from,
        head: cut_through.then(|| link.rate.transmit(HEAD_BYTES)),
    }
}

/// The links that are noisy from an epoch on.
fn noise_of(change: &FabricChange) -> &[(LinkId, LinkNoise)] {
    match change {
        FabricChange::Noisy(links) => links,
        FabricChange::Dead(_) | FabricChange::Slow(_) | FabricChange::Reroute(..) => &[],
    }
}

/// Tells each part what fails and recovers in it, and when routes change. By link: its place among pipes and outlets; by node: its own.
fn plan_changes(
    plan: &Plan,
    parts: &mut [Part],
    part_of: impl Fn(NodeId) -> usize,
    [pipes, outlets, places]: [&[u32]; 3],
) {
    let fabric = &plan.fabric;
    let (sender, receiver) =
        (|link: LinkId| part_of(fabric.link(link).from), |link: LinkId| part_of(fabric.link(link).to));
    let mut dead = Failures::default();
    let mut noise: BTreeMap<LinkId, LinkNoise> = BTreeMap::new();
    let mut rates: BTreeMap<LinkId, Rate> = BTreeMap::new();
    let mut guaranteed = true;
    for Epoch { at, change } in &plan.changes {
        match change {
            FabricChange::Reroute(routes, Whom::Switches(switches)) => {
                let mut told = vec![(Vec::new(), Vec::new()); parts.len()];
                for &switch in switches {
                    let node = fabric.switch_node(switch);
                    told[part_of(node)].0.push(places[node.index()]);
                }
                for host in (0..fabric.hosts).map(HostId).filter(|&host| switches.contains(&fabric.rack_of(host))) {
                    let node = fabric.host_node(host);
                    told[part_of(node)].1.push(places[node.index()]);
                }
                for (part, (switches, hosts)) in parts.iter_mut().zip(told) {
                    let routes = routes.clone();
                    part.changes.push((*at, Change::RoutesOf { routes, switches, hosts }));
                }
            }
            FabricChange::Reroute(routes, Whom::All) => {
                for part in parts.iter_mut() {
                    part.changes.push((*at, Change::Routes(routes.clone())));
                }
            }
            FabricChange::Noisy(links) => {
                let quiet = noise.keys().map(|&link| (link, LinkNoise::default()));
                let now: BTreeMap<LinkId, LinkNoise> = quiet.chain(links.iter().copied()).collect();
                for (&link, &of_link) in now.iter().filter(|(link, now)| noise.get(link) != Some(now)) {
                    let change = Change::Noise { pipe: pipes[link.index()], noise: of_link };
                    parts[receiver(link)].changes.push((*at, change));
                }
                noise = now;
            }
            FabricChange::Slow(links) => {
                if std::mem::take(&mut guaranteed) {
                    parts.iter_mut().for_each(|part| part.changes.push((*at, Change::NoGuarantee)));
                }
                let whole = rates.keys().map(|&link| (link, fabric.link(link).rate));
                let now: BTreeMap<LinkId, Rate> = whole.chain(links.iter().copied()).collect();
                for (&link, &rate) in now.iter().filter(|(link, now)| rates.get(link) != Some(now)) {
                    let change = Change::Rate { outlet: outlets[link.index()], rate };
                    parts[sender(link)].changes.push((*at, change));
                }
                rates = now;
            }
            FabricChange::Dead(now) => {
                for link in touched(fabric, &dead, now) {
                    let up = !now.kills(fabric, link);
                    if up != dead.kills(fabric, link) {
                        continue;
                    }
                    let outlet = Change::Outlet { outlet: outlets[link.index()], up };
                    let pipe = Change::Pipe { pipe: pipes[link.index()], up };
                    parts[sender(link)].changes.push((*at, outlet));
                    parts[receiver(link)].changes.push((*at, pipe));
                }
                dead = now.clone();
            }
        }
    }
    for part in parts {
        part.changes.reverse();
    }
}

/// The links, in order, that may be dead in one of two states and not in the other.
fn touched(fabric: &Fabric, before: &Failures, now: &Failures) -> BTreeSet<LinkId> {
    let switches = before.switches.symmetric_difference(&now.switches);
    let ports = switches.flat_map(|&switch| &fabric.ports[fabric.switch_node(switch).index()]);
    let both = ports.flat_map(|&link| [link, Fabric::reverse(link)]);
    before.links.symmetric_difference(&now.links).copied().chain(both).collect()
}
