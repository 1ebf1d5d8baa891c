//! From a network that has lived to tables and findings.

use driver::{Tally, sender_stats};
use node::PortStats;
use run::{Column, Data, Finding, Flows, InFlight, Plan, Table, audit, counter_table, link_table, measure_table};
use units::Time;

use crate::frame::Refusal;
use crate::network::{CREDIT, Ended, Network};

pub(crate) fn tables(plan: &Plan, network: &Network<'_>, flows: Flows, end: Time) -> Vec<Table> {
    let (stats, lost) = link_ends(network, end);
    let (hosts, switches) = (&network.driver.hosts, &network.driver.switches);
    let mut flows = flows.table(plan);
    flows.columns.push(Column::new(
        "late_ps",
        "ps",
        "of fct_ps: lateness of the machine, from the time at which the last packet was due until the receiver got \
         it; part of propagation_ps",
        Data::OptU64(network.driver.links.carrier.late_ps.clone()),
    ));
    let mut tables = vec![
        flows,
        link_table(plan, &stats, &lost, end),
        counter_table(plan, hosts.iter().map(|slot| &slot.host), switches.iter().map(|slot| &slot.switch)),
        lateness_table(network),
        refused_table(network),
    ];
    tables.extend(measure_table(hosts.iter().map(|slot| &slot.host)));
    tables
}

pub(crate) fn audit(plan: &Plan, network: &Network<'_>, flows: &Flows, ended: Ended, end: Time) -> Vec<Finding> {
    let cut_short = matches!(ended, Ended::Horizon | Ended::Interrupted);
    vec![
        content(network),
        tally(network).finding(plan),
        sockets(network),
        punctual(network, end),
        audit::order(flows),
        audit::once(flows),
        audit::ends(flows, cut_short),
    ]
}

/// Every byte that arrived was what its sender had sent, and every flow that was called delivered was there whole.
fn content(network: &Network<'_>) -> Finding {
    let inbox = &network.driver.links.carrier.inbox;
    Finding {
        name: "content right",
        ok: inbox.wrong_packets == 0 && inbox.incomplete == 0,
        detail: format!(
            "{} bytes correct, {} packets wrong; {} flows delivered, {} of them incomplete",
            inbox.right_bytes, inbox.wrong_packets, inbox.delivered, inbox.incomplete
        ),
    }
}

/// Where all bytes are.
fn tally(network: &Network<'_>) -> Tally {
    let links = &network.driver.links;
    let sent: u64 = links.outlets.iter().map(|outlet| outlet.sender.bytes).sum();
    let read: u64 = links.pipes.iter().map(|pipe| pipe.receiver.bytes).sum();
    let mut tally = Tally::of(&network.driver);
    tally.lost += sent - read;
    tally
}

/// The links of a scenario lose nothing that the scenario does not say.
fn sockets(network: &Network<'_>) -> Finding {
    let links = &network.driver.links;
    let sent: u64 = links.outlets.iter().map(|outlet| outlet.sender.frames).sum();
    let lost = sent - links.pipes.iter().map(|pipe| pipe.receiver.frames).sum::<u64>();
    Finding {
        name: "sockets lost nothing",
        ok: lost == 0,
        detail: match lost {
            0 => "all frames arrived".to_owned(),
            some => format!(
                "the operating system dropped {some} frames, because its socket buffers were full; slower links need \
                 less buffer"
            ),
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
            "the run fell behind by {lost} of {end} (at most 1% is allowed): {late} of {} events were more than \
             {CREDIT} late{}",
            network.driver.events,
            if late > 0 { "; slower links, or an idle machine, would help" } else { "" }
        ),
    }
}

/// What each link's two ends noted: the sender's counters, and the packets that were lost in flight.
fn link_ends(network: &Network<'_>, end: Time) -> (Vec<PortStats>, Vec<InFlight>) {
    let links = &network.driver.links;
    let both = links.pipes.iter().map(|pipe| {
        let outlet = &links.outlets[pipe.receiver.outlet as usize];
        let dead_packets = outlet.sender.frames - pipe.receiver.frames;
        (sender_stats(&network.driver, outlet, end), InFlight { dead_packets, ..InFlight::default() })
    });
    both.unzip()
}

fn lateness_table(network: &Network<'_>) -> Table {
    let kinds = ["arrival", "transmission", "deadline"].map(str::to_owned).to_vec();
    let each = || network.lateness.iter();
    let quantile = |share| Data::U64(each().map(|lateness| lateness.quantile(share).ps()).collect());
    Table {
        name: "lateness",
        columns: vec![
            Column::new("event", "", "what the run did", Data::Names { index: vec![0, 1, 2], names: kinds }),
            Column::new("events", "", "how often", Data::U64(each().map(|lateness| lateness.count()).collect())),
            Column::new("median_ps", "ps", "half of them were at most this late", quantile(0.5)),
            Column::new("p99_ps", "ps", "99% of them were at most this late", quantile(0.99)),
            Column::new("p999_ps", "ps", "99.9% of them were at most this late", quantile(0.999)),
            Column::new("max_ps", "ps", "the latest was this late", quantile(1.0)),
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
            Column::new("datagrams", "", "how many", Data::U64(network.driver.links.carrier.refused.to_vec())),
        ],
    }
}
