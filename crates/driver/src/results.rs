//! From parts to tables.

use node::PortStats;
use run::{Flows, InFlight, Plan, Table, counter_table, link_table, measure_table};
use units::{LinkId, SwitchId};

use crate::{Carrier, Driver, End, Outlet, Probe, Whole, sender_stats};

/// The tables of a run that is over, in a fixed order: `flows`, `links`, `counters`, then those of probes.
pub fn tables<C: Carrier, P: Probe>(whole: &Whole<'_>, parts: &[Driver<C, P>], flows: Flows) -> Vec<Table> {
    let Whole { plan, end, .. } = *whole;
    let (stats, in_flight) = link_ends(whole, parts);
    let hosts = || whole.hosts.iter().map(|slot| &slot.host);
    let mut tables = vec![
        flows.table(plan),
        link_table(plan, &stats, &in_flight, end),
        counter_table(plan, hosts(), whole.switches.iter().map(|slot| &slot.switch)),
    ];
    let probes: Vec<&P> = parts.iter().map(|part| &part.probe).collect();
    tables.extend(P::tables(&probes, whole));
    tables.extend(measure_table(hosts()));
    tables
}

/// What each link's two ends noted: the sender's counters, and what became of packets in flight, by the link's id.
fn link_ends<C: Carrier, P: Probe>(whole: &Whole<'_>, parts: &[Driver<C, P>]) -> (Vec<PortStats>, Vec<InFlight>) {
    let links = whole.plan.fabric.links.len();
    let mut stats = vec![PortStats::default(); links];
    let mut in_flight = vec![InFlight::default(); links];
    for part in parts {
        for pipe in &part.links.pipes {
            let lost = &mut in_flight[pipe.link as usize];
            lost.dead_packets = pipe.lost_packets;
            if let Some(noise) = &pipe.noise {
                lost.lossy_packets = noise.lossy_packets;
                lost.corrupted_packets = noise.corrupted_packets;
                lost.unnoticed_packets = noise.unnoticed_packets;
            }
        }
        for outlet in &part.links.outlets {
            stats[link_of(whole.plan, part, outlet).index()] = sender_stats(part, outlet, whole.end);
        }
    }
    (stats, in_flight)
}

/// The link that begins there.
fn link_of<C: Carrier, P: Probe>(plan: &Plan, part: &Driver<C, P>, outlet: &Outlet<C::Sender>) -> LinkId {
    let (node, port) = match outlet.from {
        End::Switch { index, port } => (plan.fabric.switch_node(SwitchId(part.switches[index as usize].id)), port),
        End::Host { index, port } => (plan.fabric.host_node(part.hosts[index as usize].host.id()), port),
    };
    plan.fabric.ports[node.index()][port.index()]
}
