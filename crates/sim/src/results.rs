//! From parts to tables.

use std::collections::BTreeMap;

use fabric::Tier;
use scenario::{Column, Data, Flows, Plan, Table};
use units::{NodeId, Time};

use crate::part::{From, HostSlot, Part, PipeRef};

pub(crate) fn tables(plan: &Plan, parts: &[Part], flows: Flows, end: Time) -> Vec<Table> {
    vec![
        flows.table(plan),
        queue_table(plan, parts),
        utilisation_table(plan, parts),
        link_table(plan, parts, end),
        counter_table(plan, parts),
    ]
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
        ],
    }
}

const HOPS: [&str; 3] = ["up", "down", "to_host"];

fn hop_index(tier: Tier) -> usize {
    match tier {
        Tier::FromHost | Tier::Up => 0,
        Tier::Down => 1,
        Tier::ToHost => 2,
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
    let interval = plan.scenario.measure.interval.secs_f64();
    let share = |(&(_, hop), &bytes): (&(Time, usize), &u64)| bytes as f64 * 8.0 / interval / capacity[hop] as f64;
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
        ],
    }
}

fn link_table(plan: &Plan, parts: &[Part], end: Time) -> Table {
    // What each link's two ends noted, by the link's id.
    let mut stats = vec![node::PortStats::default(); plan.fabric.links.len()];
    let mut lost_in_flight = vec![0; plan.fabric.links.len()];
    for part in parts {
        for pipe in &part.pipes {
            lost_in_flight[pipe.link as usize] = pipe.lost_packets;
        }
        for outlet in &part.outlets {
            let pipe = match outlet.to {
                PipeRef::Here(pipe) => &part.pipes[pipe as usize],
                PipeRef::There { part, pipe } => &parts[part as usize].pipes[pipe as usize],
            };
            stats[pipe.link as usize] = match outlet.from {
                From::Switch { index, port } => part.switches[index as usize].switch.port(port).stats,
                From::Host { index } => {
                    let HostSlot { host, lost: (dead_packets, dead_bytes), .. } = &part.hosts[index as usize];
                    // As at a switch, what met a dead link was not sent.
                    node::PortStats {
                        sent_packets: host.sent_packets - dead_packets,
                        sent_bytes: host.sent_bytes - dead_bytes,
                        dead_packets: *dead_packets,
                        dead_bytes: *dead_bytes,
                        ..Default::default()
                    }
                }
            };
        }
    }
    let names = |of: &dyn Fn(&fabric::Link) -> NodeId| Data::Names {
        index: plan.fabric.links.iter().map(|link| of(link).0).collect(),
        names: plan.fabric.names.clone(),
    };
    let tier = Data::Names {
        index: plan.fabric.links.iter().map(|link| link.tier as u32).collect(),
        names: ["from_host", "up", "down", "to_host"].map(str::to_owned).to_vec(),
    };
    let stat = |value: &dyn Fn(&node::PortStats) -> u64| Data::U64(stats.iter().map(value).collect());
    let capacity = |link: &fabric::Link| link.rate.bps() as f64 / 8.0 * end.secs_f64();
    let used = stats.iter().zip(&plan.fabric.links).map(|(stats, link)| stats.sent_bytes as f64 / capacity(link));
    let dead = stats.iter().zip(&lost_in_flight).map(|(stats, lost)| stats.dead_packets + lost);
    Table {
        name: "links",
        columns: vec![
            Column::new("link", "", "the directed link's number", Data::U32((0..stats.len() as u32).collect())),
            Column::new("from", "", "sending node", names(&|link| link.from)),
            Column::new("to", "", "receiving node", names(&|link| link.to)),
            Column::new("tier", "", "from_host, up, down or to_host", tier),
            Column::new(
                "rate_bps",
                "bit/s",
                "its rate",
                Data::U64(plan.fabric.links.iter().map(|link| link.rate.bps()).collect()),
            ),
            Column::new("sent_packets", "", "packets sent", stat(&|stats| stats.sent_packets)),
            Column::new("sent_bytes", "B", "bytes sent, headers counted", stat(&|stats| stats.sent_bytes)),
            Column::new("utilisation", "", "share of its capacity over the whole run", Data::F64(used.collect())),
            Column::new(
                "queued_bytes_max",
                "B",
                "longest that its queues have been together",
                stat(&|stats| u64::from(stats.queued_bytes_max)),
            ),
            Column::new(
                "overflow_packets",
                "",
                "packets lost because the buffer was full",
                stat(&|stats| stats.overflow_packets),
            ),
            Column::new(
                "trimmed_packets",
                "",
                "packets whose payload was cut off because the buffer was full",
                stat(&|stats| stats.trimmed_packets),
            ),
            Column::new(
                "dead_packets",
                "",
                "packets lost because the link or its switch was down",
                Data::U64(dead.collect()),
            ),
            Column::new(
                "marked_packets",
                "",
                "packets marked: congestion experienced",
                stat(&|stats| stats.marked_packets),
            ),
            Column::new("waited_packets", "", "packets that had to wait", stat(&|stats| stats.waited_packets)),
            Column::new("waited_ps", "ps", "how long they waited, together", stat(&|stats| stats.waited.ps())),
        ],
    }
}

fn counter_table(plan: &Plan, parts: &[Part]) -> Table {
    let mut sums: BTreeMap<(usize, &'static str), u64> = BTreeMap::new();
    for slot in parts.iter().flat_map(|part| &part.hosts) {
        for (transport, counters) in slot.host.counters().enumerate() {
            for (name, value) in counters {
                *sums.entry((transport, name)).or_default() += value;
            }
        }
    }
    let mut names: Vec<String> = sums.keys().map(|key| key.1.to_owned()).collect();
    names.sort();
    names.dedup();
    let index = |name: &str| names.iter().position(|known| known == name).expect("it was collected") as u32;
    let transport = Data::Names {
        index: sums.keys().map(|key| key.0 as u32).collect(),
        names: plan.transports.iter().map(|transport| transport.name().to_owned()).collect(),
    };
    let counter = Data::Names { index: sums.keys().map(|key| index(key.1)).collect(), names: names.clone() };
    Table {
        name: "counters",
        columns: vec![
            Column::new("transport", "", "the scheme", transport),
            Column::new("counter", "", "what it counted", counter),
            Column::new("value", "", "how often, over all hosts", Data::U64(sums.values().copied().collect())),
        ],
    }
}
