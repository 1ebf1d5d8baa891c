//! From parts to tables.

use driver::{Driver, Probe, Whole, sender_stats};
use node::PortStats;
use run::{Flows, InFlight, Table, counter_table, link_table, measure_table};

use crate::part::{Memory, PipeRef};

pub(crate) fn tables<P: Probe>(whole: &Whole<'_>, parts: &[Driver<Memory, P>], flows: Flows) -> Vec<Table> {
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
fn link_ends<P: Probe>(whole: &Whole<'_>, parts: &[Driver<Memory, P>]) -> (Vec<PortStats>, Vec<InFlight>) {
    let links = whole.plan.fabric.links.len();
    let mut stats = vec![PortStats::default(); links];
    let mut in_flight = vec![InFlight::default(); links];
    for part in parts {
        for pipe in &part.links.pipes {
            let lost = &mut in_flight[pipe.link as usize];
            lost.dead_packets = pipe.lost_packets;
            if let Some(noise) = &pipe.receiver {
                lost.lossy_packets = noise.lossy_packets;
                lost.corrupted_packets = noise.corrupted_packets;
                lost.unnoticed_packets = noise.unnoticed_packets;
            }
        }
        for outlet in &part.links.outlets {
            let pipe = match outlet.sender {
                PipeRef::Here(pipe) => &part.links.pipes[pipe as usize],
                PipeRef::There { part, pipe } => &parts[part as usize].links.pipes[pipe as usize],
            };
            stats[pipe.link as usize] = sender_stats(part, outlet, whole.end);
        }
    }
    (stats, in_flight)
}
