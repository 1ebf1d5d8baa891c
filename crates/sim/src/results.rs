//! From parts to tables.

use std::collections::BTreeMap;

use fabric::Tier;
use node::PortStats;
use run::{Column, Data, Flows, InFlight, Plan, Table, counter_table, link_table, measure_table};
use units::Time;

use crate::arrivals;
use crate::congestion;
use crate::entities;
use crate::guarantee;
use crate::part::{From, HostSlot, Part, PipeRef};

pub(crate) fn tables(plan: &Plan, parts: &[Part], flows: Flows, end: Time) -> Vec<Table> {
    let (stats, in_flight) = link_ends(plan, parts, end);
    let mut tables = vec![
        flows.table(plan),
        queue_table(plan, parts),
        utilisation_table(plan, parts),
        link_table(plan, &stats, &in_flight, end),
        counter_table(
            plan,
            parts.iter().flat_map(|part| &part.hosts).map(|slot| &slot.host),
            parts.iter().flat_map(|part| &part.switches).map(|slot| &slot.switch),
        ),
    ];
    tables.extend(congestion::table(plan, parts));
    tables.extend(entities::tables(plan, parts, end));
    tables.extend(guarantee::tables(plan, parts));
    tables.extend(arrivals::table(plan, parts));
    tables.extend(measure_table(parts.iter().flat_map(|part| &part.hosts).map(|slot| &slot.host)));
    tables
}

fn queue_table(plan: &Plan, parts: &[Part]) -> Table {
    let mut samples: Vec<_> = parts.iter().flat_map(|part| &part.samples.queues).collect();
    samples.sort_by_key(|sample| (sample.at, sample.switch));
    let switch = Data::Names {
        index: samples.iter().map(|sample| sample.switch).collect(),
        names: plan.fabric.names[plan.fabric.hosts as usize..].to_vec(),
    };
    Table {
        name: "queues",
        columns: vec![
            Column::new("time_ps", "ps", "when", Data::U64(samples.iter().map(|sample| sample.at.ps()).collect())),
            Column::new("switch", "", "where", switch),
            Column::new(
                "used_bytes",
                "B",
                "buffer in use",
                Data::U64(samples.iter().map(|sample| sample.used_bytes).collect()),
            ),
            Column::new(
                "longest_bytes",
                "B",
                "longest queue of a port",
                Data::U64(samples.iter().map(|sample| u64::from(sample.longest_bytes)).collect()),
            ),
            Column::new(
                "up_bytes",
                "B",
                "what waits at all ports together that lead to switches away from hosts",
                Data::U64(samples.iter().map(|sample| sample.waiting_bytes[0]).collect()),
            ),
            Column::new(
                "down_bytes",
                "B",
                "what waits at all other ports together: to hosts, and to switches towards them",
                Data::U64(samples.iter().map(|sample| sample.waiting_bytes[1] + sample.waiting_bytes[2]).collect()),
            ),
        ],
    }
}

const HOPS: [&str; 3] = ["up", "down", "to_host"];
const TO_HOST: usize = 2;

fn hop_index(tier: Tier) -> usize {
    match tier {
        Tier::FromHost | Tier::Up => 0,
        Tier::Down => 1,
        Tier::ToHost => TO_HOST,
    }
}

fn utilisation_table(plan: &Plan, parts: &[Part]) -> Table {
    let mut capacity = [0u64; 3];
    for link in plan.fabric.links.iter().filter(|link| plan.fabric.as_switch(link.from).is_some()) {
        capacity[hop_index(link.tier)] += link.rate.bps();
    }
    let mut sums: BTreeMap<(Time, usize), u64> = BTreeMap::new();
    for sample in parts.iter().flat_map(|part| &part.samples.sent) {
        for (hop, bytes) in sample.bytes.into_iter().enumerate().filter(|(hop, _)| capacity[*hop] > 0) {
            *sums.entry((sample.at, hop)).or_default() += bytes;
        }
    }
    let mut first: BTreeMap<Time, u64> = BTreeMap::new();
    for &(at, bytes) in parts.iter().flat_map(|part| &part.first_time).flat_map(|first_time| &first_time.samples) {
        *first.entry(at).or_default() += bytes;
    }
    let interval = plan.scenario.measure.interval.secs_f64();
    let of_capacity = |hop: usize, bytes: u64| bytes as f64 * 8.0 / interval / capacity[hop] as f64;
    let share = |(&(_, hop), &bytes): (&(Time, usize), &u64)| of_capacity(hop, bytes);
    let data_share = |&(at, hop): &(Time, usize)| match hop {
        TO_HOST => of_capacity(hop, first.get(&at).copied().unwrap_or(0)),
        _ => f64::NAN,
    };
    let tier =
        Data::Names { index: sums.keys().map(|key| key.1 as u32).collect(), names: HOPS.map(str::to_owned).to_vec() };
    Table {
        name: "utilisation",
        columns: vec![
            Column::new("time_ps", "ps", "end of the interval", Data::U64(sums.keys().map(|key| key.0.ps()).collect())),
            Column::new(
                "tier",
                "",
                "links between switches away from hosts (up) and towards them (down), and to hosts",
                tier,
            ),
            Column::new(
                "utilisation",
                "",
                "share of the tier's capacity that was used, headers counted",
                Data::F64(sums.iter().map(share).collect()),
            ),
            Column::new(
                "data_share",
                "",
                "of the links to hosts: share of their capacity that message data took which came for the first time, its headers counted",
                Data::F64(sums.keys().map(data_share).collect()),
            ),
        ],
    }
}

/// What each link's two ends noted: the sender's counters, and what became of packets in flight, by the link's id.
fn link_ends(plan: &Plan, parts: &[Part], end: Time) -> (Vec<PortStats>, Vec<InFlight>) {
    let mut stats = vec![PortStats::default(); plan.fabric.links.len()];
    let mut in_flight = vec![InFlight::default(); plan.fabric.links.len()];
    for part in parts {
        for pipe in &part.pipes {
            let lost = &mut in_flight[pipe.link as usize];
            lost.dead_packets = pipe.lost_packets;
            if let Some(noise) = &pipe.noise {
                lost.lossy_packets = noise.lossy_packets;
                lost.corrupted_packets = noise.corrupted_packets;
                lost.unnoticed_packets = noise.unnoticed_packets;
            }
        }
        for outlet in &part.outlets {
            let pipe = match outlet.to {
                PipeRef::Here(pipe) => &part.pipes[pipe as usize],
                PipeRef::There { part, pipe } => &parts[part as usize].pipes[pipe as usize],
            };
            stats[pipe.link as usize] = match outlet.from {
                From::Switch { index, port } => {
                    let switch = &part.switches[index as usize].switch;
                    let own_queues_max = switch.flow_control().map_or(0, |control| control.queues_max(port));
                    let port = switch.port(port);
                    PortStats { paused: port.paused_time(end), own_queues_max, ..port.stats }
                }
                From::Host { index, port } => {
                    let HostSlot { host, lost, ports, .. } = &part.hosts[index as usize];
                    let (sent, lost) = match ports {
                        None => ((host.sent_packets, host.sent_bytes), *lost),
                        Some(ports) => (ports[port.index()].sent, ports[port.index()].lost),
                    };
                    let (pauses, paused) = host.pauses(port, end);
                    // As at a switch, what met a dead link was not sent.
                    PortStats {
                        sent_packets: sent.0 - lost.0,
                        sent_bytes: sent.1 - lost.1,
                        dead_packets: lost.0,
                        dead_bytes: lost.1,
                        pauses,
                        paused,
                        ..Default::default()
                    }
                }
            };
        }
    }
    (stats, in_flight)
}
