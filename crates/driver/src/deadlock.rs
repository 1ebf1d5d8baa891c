//! Ports that wait for each other in a circle when a run ends.
//!
//! A paused queue waits for packets at the neighbour that paused it: those that came from this queue. If they wait in
//! paused queues themselves, it waits for these in turn. A circle of such waits never ends: a deadlock. Under PFC that
//! is a result (routes with a cyclic buffer dependency deadlock). Under a flow control that promises that there are no
//! deadlocks, it is a fault. Such promises assume routes without loops. If switches had different tables for a while,
//! packets may have looped, and a deadlock is a result under any flow control.

use std::collections::{BTreeMap, BTreeSet};

use fabric::Fabric;
use node::link::Cause;
use run::{Finding, Plan};
use units::{LinkId, PortId, SwitchId};

use crate::{Carrier, Driver, Probe, Summary};

pub(crate) fn finding<C: Carrier, P: Probe>(plan: &Plan, parts: &[Driver<C, P>], others: &[Summary<P>]) -> Finding {
    let mut waits = waits(plan, parts);
    for other in others {
        other.waits.on.iter().for_each(|(queue, more)| waits.on.entry(*queue).or_default().extend(more));
        waits.shared.extend(&other.waits.shared);
    }
    let circle = circle(&waits.on);
    let sharing = circle.iter().any(|queue| waits.shared.contains(queue));
    Finding {
        name: "no deadlock",
        ok: circle.is_empty()
            || plan.scenario.flow_control.as_scheme().is_some_and(|control| !control.deadlock_free(sharing))
            || plan.tables_differ_from().is_some(),
        detail: match said(plan, &circle) {
            None => "no paused port waits for itself".to_owned(),
            Some(said) => {
                let why = if sharing { "; several roots share a queue there, because queues ran out" } else { "" };
                format!("{said}{why}")
            }
        },
    }
}

/// The ports of parts that wait for each other, as a clause, if any do.
pub(crate) fn found<'d, C: Carrier + 'd, P: Probe + 'd>(
    plan: &Plan,
    parts: impl Iterator<Item = &'d Driver<C, P>>,
) -> Option<String> {
    said(plan, &circle(&waits(plan, parts).on))
}

fn said(plan: &Plan, circle: &[Queue]) -> Option<String> {
    let links: Vec<String> = circle.iter().map(|queue| plan.fabric.link_name(queue.0)).collect();
    (!links.is_empty()).then(|| format!("paused ports wait for each other in a cycle: {}", links.join(", ")))
}

/// A queue of the port at the head of a link.
pub(crate) type Queue = (LinkId, Cause);

#[derive(Default)]
pub(crate) struct Waits {
    /// By paused queue with packets, the paused queues with packets that it waits for.
    pub on: BTreeMap<Queue, Vec<Queue>>,
    /// Those that several congestion roots share.
    pub shared: BTreeSet<Queue>,
}

pub(crate) fn waits<'d, C: Carrier + 'd, P: Probe + 'd>(
    plan: &Plan,
    parts: impl IntoIterator<Item = &'d Driver<C, P>>,
) -> Waits {
    let mut waits: BTreeMap<Queue, Vec<Queue>> = BTreeMap::new();
    let mut shared = BTreeSet::new();
    for part in parts {
        for slot in &part.switches {
            let Some(control) = slot.switch.flow_control() else { continue };
            let links = &plan.fabric.ports[plan.fabric.switch_node(SwitchId(slot.id)).index()];
            for (port, &link) in links.iter().enumerate() {
                // Where queues are of roots, a root's waits are followed by its name.
                control.held(PortId::from(port), &mut |held| {
                    waits.entry((link, held.root)).or_default();
                    if held.shared {
                        shared.insert((link, held.root));
                    }
                    let ingress = |id| part.links.pool.get(id).transit.in_port;
                    let from: BTreeSet<u16> = held.packets.iter(&part.links.pool).map(ingress).collect();
                    for ingress in from.into_iter().map(usize::from) {
                        control.presses(PortId::from(port), held.root, PortId::from(ingress), &mut |cause| {
                            let upstream = Fabric::reverse(links[ingress]);
                            waits.entry((upstream, cause)).or_default().push((link, held.root));
                        });
                    }
                });
                control.queues(slot.switch.ports(), PortId::from(port), &mut |view| {
                    if !view.paused || view.bytes == 0 {
                        return;
                    }
                    waits.entry((link, view.cause)).or_default();
                    for packet in view.packets.iter(&part.links.pool).map(|id| part.links.pool.get(id)) {
                        if let Some(cause) = control.holds_back(packet, view.cause) {
                            let upstream = Fabric::reverse(links[usize::from(packet.transit.in_port)]);
                            waits.entry((upstream, cause)).or_default().push((link, view.cause));
                        }
                    }
                });
            }
        }
    }
    for on in waits.values_mut() {
        on.sort_unstable();
        on.dedup();
    }
    Waits { on: waits, shared }
}

/// A circle of waits, if there is one.
fn circle(waits: &BTreeMap<Queue, Vec<Queue>>) -> Vec<Queue> {
    let mut done: BTreeSet<Queue> = BTreeSet::new();
    for &start in waits.keys() {
        // Depth first, with the way here and which of each queue's waits comes next.
        let mut way: Vec<(Queue, usize)> = vec![(start, 0)];
        while let Some((queue, next)) = way.last_mut() {
            let (queue, on) = (*queue, waits.get(queue).and_then(|on| on.get(*next)).copied());
            *next += 1;
            match on {
                None => {
                    done.insert(queue);
                    way.pop();
                }
                Some(on) if done.contains(&on) => {}
                Some(on) => match way.iter().position(|step| step.0 == on) {
                    Some(from) => return way[from..].iter().map(|step| step.0).collect(),
                    None => way.push((on, 0)),
                },
            }
        }
    }
    Vec::new()
}

#[cfg(test)]
mod tests;
