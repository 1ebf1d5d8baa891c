//! Makes tables and findings of the workers' results.

use driver::{Driver, Movement, Probe, Stuck, Summary, Whole};
use node::wire::{Malformed, Reader, Writer};
use run::audit::{EVERY_FLOW_ENDED, Ending};
use run::{Column, Data, Finding, Flows, Plan, Table};
use units::{Duration, HostId, LinkId, Time};

use crate::attach::Count;
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
    /// With the link of each receiving end.
    pub of_links: Vec<(LinkId, LinkLateness)>,
    /// Times that the clock was set back.
    pub slips: u64,
    /// For how long it wanted a core and had none.
    pub away: Duration,
}

/// All that is known when a run is over: this process's workers, what other processes said, and what the workers of all
/// counted.
pub(crate) struct Heard<'a, 'w, P: Probe> {
    pub parts: &'a [Driver<Wires<'w>, P>],
    pub others: &'a [Summary<P>],
    pub said: &'a [Said],
    pub noted: &'a [Noted],
}

/// What a worker counted.
pub(crate) struct Said {
    /// Bytes that were right, packets that were wrong, flows delivered, and those of them that were incomplete.
    pub inbox: [u64; 4],
    /// By [`Refusal`].
    pub refused: [u64; Refusal::ALL.len()],
    /// What went through the devices of attached hosts.
    pub devices: Vec<Through>,
    /// What came from them and was dropped, by [`Refused`].
    pub refused_frames: [u64; Refused::ALL.len()],
    /// Which captures end early, and why.
    pub cut_off: Vec<String>,
}

/// What went through the device of an attached host.
#[derive(Clone, Copy)]
pub(crate) struct Through {
    host: HostId,
    /// From the device into the fabric, and out of it.
    sent: Count,
    received: Count,
    /// Packets that came out marked.
    marked: u64,
}

impl Through {
    fn counts(&mut self) -> [&mut u64; 7] {
        let Through { sent, received, marked, .. } = self;
        let [a, b, c] = sent.counts();
        let [d, e, f] = received.counts();
        [a, b, c, d, e, f, marked]
    }
}

impl Said {
    /// What a worker counted in a run that is over; the rest of what it has captured is written.
    pub fn of<P: Probe>(plan: &Plan, part: &mut Driver<Wires<'_>, P>) -> Said {
        let cut_off = part.links.carrier.captures.as_mut().map(|captures| captures.end(plan)).unwrap_or_default();
        let Wires { inbox, datagrams, attached, .. } = &part.links.carrier;
        let ports = attached.iter().flat_map(|attached| &attached.ports);
        let devices = ports.map(|port| {
            let (sent, received) = (port.sent, port.received);
            Through { host: port.host, sent, received, marked: port.marked }
        });
        let devices = devices.collect();
        let refused_frames = attached.as_ref().map(|attached| attached.refused).unwrap_or_default();
        let mut refused = part.links.carrier.refused;
        for (sum, more) in refused.iter_mut().zip(datagrams.iter().flat_map(|of| &of.refused)) {
            *sum += more;
        }
        Said {
            inbox: [inbox.right_bytes, inbox.wrong_packets, inbox.delivered, inbox.incomplete],
            refused,
            devices,
            refused_frames,
            cut_off,
        }
    }
}

/// Writes what a worker noted and counted, for another process.
pub(crate) fn pack(noted: &Noted, said: &Said, to: &mut Writer<'_>) {
    said.inbox.into_iter().chain(said.refused).for_each(|count| to.u64(count));
    to.u64(said.devices.len() as u64);
    for mut through in said.devices.iter().copied() {
        to.u32(through.host.0);
        through.counts().into_iter().for_each(|count| to.u64(*count));
    }
    said.refused_frames.into_iter().for_each(|count| to.u64(count));
    to.u64(said.cut_off.len() as u64);
    for why in &said.cut_off {
        to.u32(why.len() as u32);
        to.bytes(why.as_bytes());
    }
    to.u64(noted.slips);
    to.u64(noted.away.ps());
    for late in &noted.lateness {
        let counted: Vec<(u64, u64)> = late.counted().collect();
        to.u64(counted.len() as u64);
        counted.into_iter().for_each(|(late, times)| [late, times].into_iter().for_each(|number| to.u64(number)));
    }
    to.u64(noted.of_links.len() as u64);
    for (link, LinkLateness { packets, sum, max, stood, .. }) in &noted.of_links {
        to.u32(link.0);
        [*packets, sum.ps(), max.ps(), stood.ps()].into_iter().for_each(|number| to.u64(number));
    }
}

/// Reads the words of a worker of another process. Nothing of them is trusted.
pub(crate) fn parse(plan: &Plan, from: &mut Reader<'_>) -> Result<(Noted, Said), Malformed> {
    const MOST: u64 = 1 << 56;
    from.begin("words of a worker");
    let wrong = Malformed { what: "words of a worker" };
    let number = |from: &mut Reader<'_>| from.u64().and_then(|number| (number <= MOST).then_some(number).ok_or(wrong));
    let mut said = Said {
        inbox: [0; 4],
        refused: [0; Refusal::ALL.len()],
        devices: Vec::new(),
        refused_frames: [0; Refused::ALL.len()],
        cut_off: Vec::new(),
    };
    for count in said.inbox.iter_mut().chain(&mut said.refused) {
        *count = number(from)?;
    }
    for _ in 0..from.u64()? {
        let host = HostId(from.u32()?);
        if !plan.attached.contains_key(&host) {
            return Err(wrong);
        }
        let mut through = Through { host, sent: Count::default(), received: Count::default(), marked: 0 };
        for count in through.counts() {
            *count = number(from)?;
        }
        said.devices.push(through);
    }
    for count in &mut said.refused_frames {
        *count = number(from)?;
    }
    for _ in 0..from.u64()? {
        let length = from.u32()? as usize;
        said.cut_off.push(String::from_utf8_lossy(from.bytes(length)?).into_owned());
    }
    let (slips, away) = (number(from)?, Duration::from_ps(number(from)?));
    let mut noted = Noted { lateness: Default::default(), of_links: Vec::new(), slips, away };
    for late in &mut noted.lateness {
        for _ in 0..from.u64()? {
            late.note_many(number(from)?, number(from)?);
        }
    }
    for _ in 0..from.u64()? {
        let link = LinkId(from.u32()?);
        if link.index() >= plan.fabric.links.len() {
            return Err(wrong);
        }
        let packets = number(from)?;
        let mut duration = || number(from).map(Duration::from_ps);
        let (sum, max, stood) = (duration()?, duration()?, duration()?);
        noted.of_links.push((link, LinkLateness { crosses: false, packets, sum, max, stood }));
    }
    Ok((noted, said))
}

/// Links that the finding "in time" names.
const NAMED: usize = 3;

pub(crate) fn tables<P: Probe>(
    whole: &Whole<'_>,
    &Heard { parts, others, said, noted }: &Heard<'_, '_, P>,
    flows: Flows,
) -> Vec<Table> {
    let mut late = Some(late_column(whole.plan, &flows));
    let mut tables = driver::tables(whole, parts, others, flows);
    for table in &mut tables {
        match table.name {
            "flows" => table.columns.extend(late.take()),
            "links" => table.columns.extend(late_columns(whole.plan, noted)),
            _ => {}
        }
    }
    tables.extend([lateness_table(noted), refused_table(whole.plan, said)]);
    tables.extend(attached_table(whole.plan, said));
    tables
}

pub(crate) fn audit<P: Probe>(
    whole: &Whole<'_>,
    &Heard { parts, others, said, noted }: &Heard<'_, '_, P>,
    flows: &Flows,
    outcome: Outcome,
    stood: Duration,
    movement: &Movement,
) -> Vec<Finding> {
    let mut findings = vec![content(parts, others, said)];
    findings.extend(sockets(parts));
    findings.push(punctual(whole.plan, noted, outcome, stood));
    findings.extend(driver::findings(whole, parts, others, flows, ending(whole.plan, outcome), movement));
    if outcome.ended == Ended::Stuck {
        for finding in findings.iter_mut().filter(|finding| finding.name == EVERY_FLOW_ENDED) {
            finding.detail.extend(Stuck::why(whole.plan, parts.iter()).iter().flat_map(|why| [": ", why]));
        }
    }
    findings
}

/// How the run came to its end.
pub(crate) fn ending(plan: &Plan, outcome: Outcome) -> Ending {
    match outcome.ended {
        Ended::Goal | Ended::Quiet => Ending::Itself,
        Ended::Horizon => Ending::TimeUp { said: plan.scenario.measure.end.is_some() },
        Ended::Stuck => Ending::Stuck,
        Ended::Interrupted | Ended::Closed => Ending::Stopped,
    }
}

/// Every byte that arrived was what its sender had sent, and every flow that was called delivered was there whole; but
/// for what links damaged and a scheme's own checksum let pass.
fn content<P: Probe>(parts: &[Driver<Wires<'_>, P>], others: &[Summary<P>], said: &[Said]) -> Finding {
    let sum = |what: usize| said.iter().map(|of| of.inbox[what]).sum::<u64>();
    let (right, wrong, delivered, incomplete) = (sum(0), sum(1), sum(2), sum(3));
    let noises = parts.iter().flat_map(|part| &part.links.link_rxs).filter_map(|link_rx| link_rx.noise.as_deref());
    let unnoticed: u64 = noises.map(|noise| noise.unnoticed_packets).sum();
    let unnoticed = unnoticed + others.iter().map(Summary::unnoticed_packets).sum::<u64>();
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
pub(crate) fn sockets<P: Probe>(parts: &[Driver<Wires<'_>, P>]) -> Option<Finding> {
    let links = &parts.iter().find(|part| part.links.carrier.datagrams.is_some())?.links;
    let sent: u64 = links.link_txs.iter().filter_map(|link_tx| link_tx.sender.sent()).map(|sent| sent.frames).sum();
    let lost = sent - links.link_rxs.iter().map(|link_rx| link_rx.receiver.count.frames).sum::<u64>();
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
fn punctual(plan: &Plan, noted: &[Noted], Outcome { end, late, .. }: Outcome, stood: Duration) -> Finding {
    let behind = stood + late;
    let times: u64 = noted.iter().map(|of| of.slips).sum();
    let ok = behind * 100 <= end.since(Time::ZERO);
    let mut detail = format!(
        "the run fell behind by {behind} of {end} (at most 1% is allowed): the network stood still {times} times, for \
         {stood}, because something was more than {CREDIT} late by the machine's clock, and its end was {late} late"
    );
    if !ok {
        let links = noted.iter().flat_map(|noted| &noted.of_links).copied();
        let mut links: Vec<(LinkId, LinkLateness)> = links.filter(|(_, late)| late.packets > 0).collect();
        links.sort_by_key(|(link, late)| (std::cmp::Reverse((late.stood, late.max)), *link));
        let name = |&(link, late): &(LinkId, LinkLateness)| {
            let ends = plan.fabric.link(link);
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

/// How late the machine was at each flow's end.
fn late_column(plan: &Plan, flows: &Flows) -> Column {
    Column::new(
        "late_ps",
        "ps",
        "of fct_ps: lateness of the machine, from the time at which the packet that ended the flow was due until its \
         host got it; part of propagation_ps or, where completion is acknowledged, of return_ps",
        Data::OptU64(flows.late_ps(&plan.scenario)),
    )
}

/// How late packets came out of each link.
fn late_columns(plan: &Plan, noted: &[Noted]) -> [Column; 3] {
    let mut late = vec![LinkLateness::default(); plan.fabric.links.len()];
    for (link, of) in noted.iter().flat_map(|noted| &noted.of_links) {
        late[link.index()] = *of;
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

/// What was refused of what came by sockets or from other processes, and of what came from devices if there are any.
fn refused_table(plan: &Plan, said: &[Said]) -> Table {
    let mut names: Vec<String> = Refusal::ALL.iter().map(Refusal::to_string).collect();
    let mut counts: Vec<u64> =
        (0..names.len()).map(|refusal| said.iter().map(|of| of.refused[refusal]).sum()).collect();
    if !plan.attached.is_empty() {
        names.extend(Refused::ALL.iter().map(Refused::to_string));
        let sum = |refused: usize| said.iter().map(|of| of.refused_frames[refused]).sum();
        counts.extend((0..Refused::ALL.len()).map(sum).collect::<Vec<u64>>());
    }
    let index = (0..names.len() as u32).collect();
    Table {
        name: "refused",
        columns: vec![
            Column::new(
                "reason",
                "",
                "why a datagram, a packet from another process, or a frame of an attached host's device, was dropped",
                Data::Names { index, names },
            ),
            Column::new("datagrams", "", "how many", Data::U64(counts)),
        ],
    }
}

/// What went through the devices of attached hosts, if there are any.
fn attached_table(plan: &Plan, said: &[Said]) -> Option<Table> {
    let mut ports: Vec<&Through> = said.iter().flat_map(|of| &of.devices).collect();
    ports.sort_by_key(|port| port.host);
    let names = |of: fn(&Plan, &Through) -> String| {
        let names = ports.iter().map(|port| of(plan, port)).collect();
        Data::Names { index: (0..ports.len() as u32).collect(), names }
    };
    let each = |of: fn(&Through) -> u64| Data::U64(ports.iter().map(|port| of(port)).collect());
    (!ports.is_empty()).then(|| Table {
        name: "attached",
        columns: vec![
            Column::new(
                "host",
                "",
                "an attached host",
                names(|plan, port| plan.fabric.names[port.host.index()].clone()),
            ),
            Column::new(
                "device",
                "",
                "what it is on this machine",
                names(|plan, port| plan.attached[&port.host].clone()),
            ),
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
