//! From workers that have lived to tables and findings.

use driver::{Driver, Probe, Whole};
use run::{Column, Data, Finding, Flows, Plan, Table};
use units::{Duration, Time};

use crate::attach::Port;
use crate::attach::ip::Refused;
use crate::board::Ended;
use crate::clock::{CREDIT, Lateness, LinkLateness};
use crate::frame::Refusal;
use crate::network::Outcome;
use crate::wires::Wires;
use crate::worker::CROSSING;

/// How late the events of a worker were.
pub(crate) struct Noted {
    /// By [`driver::Due`], and of arrivals from other workers.
    pub lateness: [Lateness; CROSSING + 1],
    /// By receiving end.
    pub of_links: Vec<LinkLateness>,
    /// Times that the clock was set back.
    pub slips: u64,
}

/// Links that the finding "in time" names.
const NAMED: usize = 3;

pub(crate) fn tables<P: Probe>(
    whole: &Whole<'_>,
    parts: &[Driver<Wires<'_>, P>],
    noted: &[Noted],
    flows: Flows,
) -> Vec<Table> {
    let mut tables = driver::tables(whole, parts, flows);
    for table in &mut tables {
        match table.name {
            "flows" => table.columns.push(late_column(whole.plan, parts)),
            "links" => table.columns.extend(late_columns(whole.plan, parts, noted)),
            _ => {}
        }
    }
    tables.extend([lateness_table(noted), refused_table(parts)]);
    tables.extend(attached_table(whole.plan, parts));
    tables
}

pub(crate) fn audit<P: Probe>(
    whole: &Whole<'_>,
    parts: &[Driver<Wires<'_>, P>],
    noted: &[Noted],
    flows: &Flows,
    outcome: Outcome,
    stood: Duration,
) -> Vec<Finding> {
    let cut_short = matches!(outcome.ended, Ended::Horizon | Ended::Interrupted);
    let mut findings = vec![content(parts)];
    findings.extend(sockets(parts));
    findings.push(punctual(whole.plan, parts, noted, outcome, stood));
    findings.extend(driver::findings(whole, parts, flows, cut_short));
    findings
}

/// Every byte that arrived was what its sender had sent, and every flow that was called delivered was there whole; but
/// for what links damaged and a scheme's own checksum let pass.
fn content<P: Probe>(parts: &[Driver<Wires<'_>, P>]) -> Finding {
    let sum = |of: fn(&crate::content::Inbox) -> u64| parts.iter().map(|part| of(&part.links.carrier.inbox)).sum();
    let (right, wrong): (u64, u64) = (sum(|inbox| inbox.right_bytes), sum(|inbox| inbox.wrong_packets));
    let (delivered, incomplete): (u64, u64) = (sum(|inbox| inbox.delivered), sum(|inbox| inbox.incomplete));
    let noises = parts.iter().flat_map(|part| &part.links.pipes).filter_map(|pipe| pipe.noise.as_deref());
    let unnoticed: u64 = noises.map(|noise| noise.unnoticed_packets).sum();
    let excuse = match unnoticed {
        0 => String::new(),
        some => format!("; {some} packets had bit errors that their checksums did not show"),
    };
    Finding {
        name: "content right",
        ok: wrong <= unnoticed && incomplete <= unnoticed,
        detail: format!(
            "{right} bytes correct, {wrong} packets wrong; {delivered} flows delivered, {incomplete} of them \
             incomplete{excuse}"
        ),
    }
}

/// The links of a scenario lose nothing that the scenario does not say.
fn sockets<P: Probe>(parts: &[Driver<Wires<'_>, P>]) -> Option<Finding> {
    let links = &parts.iter().find(|part| part.links.carrier.datagrams.is_some())?.links;
    let sent: u64 = links.outlets.iter().filter_map(|outlet| outlet.sender.sent()).map(|sent| sent.frames).sum();
    let lost = sent - links.pipes.iter().map(|pipe| pipe.receiver.count.frames).sum::<u64>();
    Some(Finding {
        name: "sockets lost nothing",
        ok: lost == 0,
        detail: match lost {
            0 => "all frames arrived".to_owned(),
            some => format!(
                "the operating system dropped {some} frames, because its socket buffers were full; slower links need \
                 less buffer"
            ),
        },
    })
}

/// The machine kept pace.
fn punctual<P: Probe>(
    plan: &Plan,
    parts: &[Driver<Wires<'_>, P>],
    noted: &[Noted],
    Outcome { end, late, .. }: Outcome,
    stood: Duration,
) -> Finding {
    let behind = stood + late;
    let times: u64 = noted.iter().map(|of| of.slips).sum();
    let ok = behind * 100 <= end.since(Time::ZERO);
    let mut detail = format!(
        "the run fell behind by {behind} of {end} (at most 1% is allowed): the network stood still {times} times, for \
         {stood}, because something was more than {CREDIT} late by the machine's clock, and its end was {late} late"
    );
    if !ok {
        let mut links: Vec<(u32, LinkLateness)> = parts
            .iter()
            .zip(noted)
            .flat_map(|(part, noted)| part.links.pipes.iter().map(|pipe| pipe.link).zip(noted.of_links.iter().copied()))
            .filter(|(_, late)| late.packets > 0)
            .collect();
        links.sort_by_key(|(link, late)| (std::cmp::Reverse((late.stood, late.max)), *link));
        let name = |&(link, late): &(u32, LinkLateness)| {
            let ends = plan.fabric.link(units::LinkId(link));
            let names = &plan.fabric.names;
            format!("{} to {} by up to {}", names[ends.from.index()], names[ends.to.index()], late.max)
        };
        let named: Vec<String> = links.iter().take(NAMED).map(name).collect();
        detail.push_str(&format!(
            "; latest were {}; a greater live.dilation, slower links, or an idle machine would help",
            named.join(", ")
        ));
    }
    Finding { name: "in time", ok, detail }
}

/// How late each flow's receiver was told.
fn late_column<P: Probe>(plan: &Plan, parts: &[Driver<Wires<'_>, P>]) -> Column {
    let of_flow = |flow| parts.iter().map(|part| part.links.carrier.late_ps[flow]).min().unwrap_or(u64::MAX);
    Column::new(
        "late_ps",
        "ps",
        "of fct_ps: lateness of the machine, from the time at which the last packet was due until the receiver got \
         it; part of propagation_ps",
        Data::OptU64((0..plan.flows.len()).map(of_flow).collect()),
    )
}

/// How late what came out of each link was.
fn late_columns<P: Probe>(plan: &Plan, parts: &[Driver<Wires<'_>, P>], noted: &[Noted]) -> [Column; 3] {
    let mut late = vec![LinkLateness::default(); plan.fabric.links.len()];
    for (part, noted) in parts.iter().zip(noted) {
        for (pipe, of) in part.links.pipes.iter().zip(&noted.of_links) {
            late[pipe.link as usize] = *of;
        }
    }
    let each = |of: fn(&LinkLateness) -> u64| Data::U64(late.iter().map(of).collect());
    let mean = |late: &LinkLateness| late.sum.ps() / late.packets.max(1);
    [
        Column::new(
            "late_mean_ps",
            "ps",
            "how late packets came out of the link, on average, because the machine was not in time",
            each(mean),
        ),
        Column::new("late_max_ps", "ps", "how late the latest of them was", each(|late| late.max.ps())),
        Column::new(
            "behind_ps",
            "ps",
            "for how long the network stood still because packets of the link were too late",
            each(|late| late.stood.ps()),
        ),
    ]
}

fn lateness_table(noted: &[Noted]) -> Table {
    let names = ["arrival", "transmission", "deadline", "arrival from another worker"].map(str::to_owned).to_vec();
    let kinds: Vec<Lateness> = (0..names.len())
        .map(|kind| {
            let mut all = Lateness::default();
            noted.iter().for_each(|of| all.add(&of.lateness[kind]));
            all
        })
        .collect();
    let quantile = |share| Data::U64(kinds.iter().map(|lateness| lateness.quantile(share).ps()).collect());
    let count = Data::U64(kinds.iter().map(Lateness::count).collect());
    Table {
        name: "lateness",
        columns: vec![
            Column::new("event", "", "what the run did", Data::Names { index: vec![0, 1, 2, 3], names }),
            Column::new("events", "", "how often", count),
            Column::new("median_ps", "ps", "half of them were at most this late", quantile(0.5)),
            Column::new("p99_ps", "ps", "99% of them were at most this late", quantile(0.99)),
            Column::new("p999_ps", "ps", "99.9% of them were at most this late", quantile(0.999)),
            Column::new("max_ps", "ps", "the latest was this late", quantile(1.0)),
        ],
    }
}

/// What was refused of what came by sockets, and of what came from devices if there are any.
fn refused_table<P: Probe>(parts: &[Driver<Wires<'_>, P>]) -> Table {
    let mut names: Vec<String> = Refusal::ALL.iter().map(Refusal::to_string).collect();
    let datagrams = parts.iter().filter_map(|part| part.links.carrier.datagrams.as_ref());
    let mut counts = vec![0; names.len()];
    datagrams.for_each(|of| counts.iter_mut().zip(of.refused).for_each(|(sum, count)| *sum += count));
    let mut devices = parts.iter().filter_map(|part| part.links.carrier.attached.as_ref()).peekable();
    if devices.peek().is_some() {
        names.extend(Refused::ALL.iter().map(Refused::to_string));
        counts.resize(names.len(), 0);
        let own = &mut counts[Refusal::ALL.len()..];
        devices.for_each(|of| own.iter_mut().zip(of.refused).for_each(|(sum, count)| *sum += count));
    }
    let index = (0..names.len() as u32).collect();
    Table {
        name: "refused",
        columns: vec![
            Column::new(
                "reason",
                "",
                "why a datagram, or a frame of an attached host's device, was dropped",
                Data::Names { index, names },
            ),
            Column::new("datagrams", "", "how many", Data::U64(counts)),
        ],
    }
}

/// What went through the devices of attached hosts, if there are any.
fn attached_table<P: Probe>(plan: &Plan, parts: &[Driver<Wires<'_>, P>]) -> Option<Table> {
    let attached = parts.iter().filter_map(|part| part.links.carrier.attached.as_ref());
    let mut ports: Vec<&Port> = attached.flat_map(|attached| &attached.ports).collect();
    ports.sort_by_key(|port| port.host);
    let names = |of: fn(&Plan, &Port) -> String| {
        let names = ports.iter().map(|port| of(plan, port)).collect();
        Data::Names { index: (0..ports.len() as u32).collect(), names }
    };
    let each = |of: fn(&Port) -> u64| Data::U64(ports.iter().map(|port| of(port)).collect());
    (!ports.is_empty()).then(|| Table {
        name: "attached",
        columns: vec![
            Column::new(
                "host",
                "",
                "an attached host",
                names(|plan, port| plan.fabric.names[port.host.index()].clone()),
            ),
            Column::new("device", "", "what it is on this machine", names(|_, port| port.name.clone())),
            Column::new("sent_frames", "", "frames that its device handed over", each(|port| port.sent.frames)),
            Column::new("sent_packets", "", "packets into which they were cut", each(|port| port.sent.packets)),
            Column::new("sent_bytes", "bytes", "bytes of these, from the IP header on", each(|port| port.sent.bytes)),
            Column::new("received_frames", "", "frames that its device took", each(|port| port.received.frames)),
            Column::new(
                "received_packets",
                "",
                "packets that came out of the fabric for it",
                each(|port| port.received.packets),
            ),
            Column::new(
                "received_bytes",
                "bytes",
                "bytes of these, from the IP header on",
                each(|port| port.received.bytes),
            ),
            Column::new("marked_packets", "", "packets among them that bore a switch's mark", each(|port| port.marked)),
        ],
    })
}
