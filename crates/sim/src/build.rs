//! From a plan to parts on the engine.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use engine::Agenda;
use fabric::{Change as FabricChange, Tier};
use node::pool::{Flight, Pool};
use scenario::{HEAD_BYTES, Plan};
use schemes::{FlowControl, Transport};
use units::{Duration, HostId, LinkId, NodeId, PerByte, PortId, Time};

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
            flow_controlled: plan.scenario.flow_control != FlowControl::None,
            kicks: false,
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
    plan_changes(plan, &mut built, part_of, &pipe_of, &outlet_of);
    for part in &mut built {
        part.kicks = part.flow_controlled || part.guarantee.is_some() || plan.has_agents();
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
fn noise_of(change: &FabricChange) -> &[(LinkId, f64)] {
    match change {
        FabricChange::Noisy(links) => links,
        FabricChange::Dead(_) | FabricChange::Reroute(_) => &[],
    }
}

/// Tells each part what fails and recovers in it, and when routes change.
fn plan_changes(plan: &Plan, parts: &mut [Part], part_of: impl Fn(NodeId) -> usize, pipes: &[u32], outlets: &[u32]) {
    let mut dead = vec![false; plan.fabric.links.len()];
    let mut noise: BTreeMap<LinkId, f64> = BTreeMap::new();
    for epoch in &plan.changes {
        match &epoch.change {
            FabricChange::Reroute(routes) => {
                let routes = Arc::new(routes.clone());
                for part in parts.iter_mut() {
                    part.changes.push((epoch.at, Change::Routes(routes.clone())));
                }
            }
            FabricChange::Noisy(links) => {
                let quiet = noise.keys().map(|&link| (link, 0.0));
                let now: BTreeMap<LinkId, f64> = quiet.chain(links.iter().copied()).collect();
                for (&link, &bit_error_rate) in &now {
                    if noise.get(&link) != Some(&bit_error_rate) {
                        let change = Change::Noise { pipe: pipes[link.index()], bit_error_rate };
                        parts[part_of(plan.fabric.link(link).to)].changes.push((epoch.at, change));
                    }
                }
                noise = now;
            }
            FabricChange::Dead(failures) => {
                for (id, link) in plan.fabric.links.iter().enumerate() {
                    let up = !failures.kills(&plan.fabric, LinkId::from(id));
                    if up != dead[id] {
                        continue;
                    }
                    dead[id] = !up;
                    let outlet = Change::Outlet { outlet: outlets[id], up };
                    let pipe = Change::Pipe { pipe: pipes[id], up };
                    parts[part_of(link.from)].changes.push((epoch.at, outlet));
                    parts[part_of(link.to)].changes.push((epoch.at, pipe));
                }
            }
        }
    }
    for part in parts {
        part.changes.reverse();
    }
}
