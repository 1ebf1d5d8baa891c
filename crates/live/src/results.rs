//! From a network that has lived to tables and findings.

use node::{Overflow, PortStats};
use run::{Column, Data, Finding, Flows, InFlight, Plan, Table, audit, counter_table, link_table, measure_table};
use units::Time;

use crate::frame::Refusal;
use crate::network::{CREDIT, Ended, Link, Network};

pub(crate) fn tables(plan: &Plan, network: &Network<'_>, flows: Flows, end: Time) -> Vec<Table> {
    let (stats, lost) = link_ends(plan, network);
    let mut flows = flows.table(plan);
    flows.columns.push(Column::new(
        "late_ps",
        "ps",
        "of fct_ps: the machine's lateness, from when the last packet was due until the receiver was told; part of propagation_ps",
        Data::OptU64(network.late_ps.clone()),
    ));
    let mut tables = vec![
        flows,
        link_table(plan, &stats, &lost, end),
        counter_table(
            plan,
            network.hosts.iter().map(|slot| &slot.host),
            network.switches.iter().map(|slot| &slot.switch),
        ),
        lateness_table(network),
        refused_table(network),
    ];
    tables.extend(measure_table(network.hosts.iter().map(|slot| &slot.host)));
    tables
}

pub(crate) fn audit(plan: &Plan, network: &Network<'_>, flows: &Flows, ended: Ended, end: Time) -> Vec<Finding> {
    let cut_short = matches!(ended, Ended::Horizon | Ended::Interrupted);
    vec![
        content(network),
        bytes(plan, network),
        sockets(network),
        punctual(network, end),
        audit::order(flows),
        audit::once(flows),
        audit::ends(flows, cut_short),
    ]
}

/// Every byte that arrived was what its sender had sent, and every flow that was called delivered was there whole.
fn content(network: &Network<'_>) -> Finding {
    let inbox = &network.inbox;
    Finding {
        name: "content right",
        ok: inbox.wrong_packets == 0 && inbox.incomplete == 0,
        detail: format!(
            "{} bytes right, {} packets wrong; {} flows delivered, {} of them not whole",
            inbox.right_bytes, inbox.wrong_packets, inbox.delivered, inbox.incomplete
        ),
    }
}

/// Every byte that a host sent was received, lost for a reason that was counted, or is still inside.
fn bytes(plan: &Plan, network: &Network<'_>) -> Finding {
    let hosts = || network.hosts.iter().map(|slot| &slot.host);
    let agents = || network.switches.iter().map(|slot| slot.switch.agents_bytes());
    let sent: u64 = hosts().map(|host| host.sent_bytes).chain(agents().map(|bytes| bytes.0)).sum();
    let received: u64 = hosts().map(|host| host.received_bytes).chain(agents().map(|bytes| bytes.1)).sum();
    let (mut lost, mut inside) = (0, 0);
    for slot in &network.switches {
        lost += slot.switch.unroutable_bytes + slot.switch.staged_out.1;
        lost += slot
            .switch
            .ports()
            .iter()
            .map(|port| port.stats.overflow_bytes + port.stats.dead_bytes + port.stats.expired_bytes)
            .sum::<u64>();
        inside += slot.switch.used_bytes();
    }
    for link in &network.links {
        lost += link.sent_bytes - link.read_bytes;
        inside += link.held_bytes();
    }
    let trims = if plan.settings.overflow == Overflow::Trim { ", cut-off payload counted as lost" } else { "" };
    Finding {
        name: "bytes conserved",
        ok: sent == received + lost + inside,
        detail: format!("{sent} sent = {received} received + {lost} lost + {inside} inside{trims}"),
    }
}

/// The links of a scenario lose nothing that the scenario does not say.
fn sockets(network: &Network<'_>) -> Finding {
    let lost: u64 = network.links.iter().map(|link| link.sent_frames - link.read_frames).sum();
    Finding {
        name: "sockets lost nothing",
        ok: lost == 0,
        detail: match lost {
            0 => "all frames came in".to_owned(),
            some => format!("the system lost {some} frames: its buffers were full; slower links need less of them"),
        },
    }
}

/// The machine kept pace: what is later than the nodes' credit shifts all that follows.
fn punctual(network: &Network<'_>, end: Time) -> Finding {
    let (late, lost) = network.slips;
    Finding {
        name: "in time",
        ok: lost * 100 <= end.since(Time::ZERO),
        detail: format!(
            "{lost} of {end} lost (1% may be): {late} of {} events were more than {CREDIT} late{}",
            network.events,
            if late > 0 { "; slower links, or a machine with less to do, would help" } else { "" }
        ),
    }
}

/// What each link's two ends noted: the sender's counters, and the packets that were lost in flight.
fn link_ends(plan: &Plan, network: &Network<'_>) -> (Vec<PortStats>, Vec<InFlight>) {
    let stats = |link: &fabric::Link| match plan.fabric.as_switch(link.from) {
        Some(switch) => network.switches[switch.index()].switch.port(link.from_port).stats,
        None => {
            let host = &network.hosts[link.from.index()].host;
            let (sent_packets, sent_bytes) = (host.sent_packets, host.sent_bytes);
            PortStats { sent_packets, sent_bytes, ..PortStats::default() }
        }
    };
    let lost = |link: &Link| InFlight { dead_packets: link.sent_frames - link.read_frames, ..InFlight::default() };
    let lost = network.links.iter().map(lost).collect();
    (plan.fabric.links.iter().map(stats).collect(), lost)
}

fn lateness_table(network: &Network<'_>) -> Table {
    let kinds = ["arrival", "transmission", "deadline"].map(str::to_owned).to_vec();
    let each = || network.lateness.iter();
    let quantile = |share| Data::U64(each().map(|lateness| lateness.quantile(share).ps()).collect());
    Table {
        name: "lateness",
        columns: vec![
            Column::new("event", "", "what was done", Data::Names { index: vec![0, 1, 2], names: kinds }),
            Column::new("events", "", "how often", Data::U64(each().map(|lateness| lateness.count()).collect())),
            Column::new("median_ps", "ps", "how late, at most, half of them were", quantile(0.5)),
            Column::new("p99_ps", "ps", "how late, at most, 99% of them were", quantile(0.99)),
            Column::new("p999_ps", "ps", "how late, at most, 99.9% of them were", quantile(0.999)),
            Column::new("max_ps", "ps", "how late the latest was", quantile(1.0)),
        ],
    }
}

fn refused_table(network: &Network<'_>) -> Table {
    let names = Refusal::ALL.iter().map(Refusal::to_string).collect();
    let index = Refusal::ALL.iter().map(|&refusal| refusal as u32).collect();
    Table {
        name: "refused",
        columns: vec![
            Column::new("reason", "", "why a datagram was dropped", Data::Names { index, names }),
            Column::new("datagrams", "", "how many", Data::U64(network.refused.to_vec())),
        ],
    }
}
