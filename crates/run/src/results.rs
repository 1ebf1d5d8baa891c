//! Tables that every driver gives alike.

use std::collections::BTreeMap;

use fabric::Fabric;
use node::{PortStats, QueueDiscipline, Switch};
use units::{HostId, LinkId, NodeId, Rate, Time};

use crate::{Column, Data, Host, Plan, Table};

/// The table `links`, of a run that ended at `end`. By the link's id: what its sender counted, and how many packets
/// were lost in flight.
pub fn link_table(plan: &Plan, stats: &[PortStats], in_flight: &[InFlight], end: Time) -> Table {
    let mut columns = link_columns(&plan.fabric);
    columns.extend(sent_columns(plan, stats, end));
    columns.extend(lost_columns(stats, in_flight));
    columns.extend(queue_columns(stats));
    Table { name: "links", columns }
}

/// The share of a link's capacity until `end` that `sent_bytes` are. Of an empty run it is 0.
pub fn utilisation(sent_bytes: f64, rate: Rate, end: Time) -> f64 {
    let capacity = rate.bps() as f64 / 8.0 * end.secs_f64();
    if sent_bytes == 0.0 { 0.0 } else { sent_bytes / capacity }
}

/// The traffic of links, and the longest queue that has waited for them.
fn sent_columns(plan: &Plan, stats: &[PortStats], end: Time) -> Vec<Column> {
    let stat = |value: &dyn Fn(&PortStats) -> u64| Data::U64(stats.iter().map(value).collect());
    // The rest of the last packet's transmission comes after the end. Rounding alone can lead above 1.
    let gone = |stats: &PortStats| stats.sent_bytes.saturating_sub(stats.unsent_bytes) as f64;
    let used =
        stats.iter().zip(&plan.fabric.links).map(|(stats, link)| utilisation(gone(stats), link.rate, end).min(1.0));
    vec![
        Column::new("sent_packets", "", "packets sent", stat(&|stats| stats.sent_packets)),
        Column::new("sent_bytes", "B", "bytes sent, headers counted", stat(&|stats| stats.sent_bytes)),
        Column::new("utilisation", "", "share of its capacity over the whole run", Data::F64(used.collect())),
        Column::new(
            "queued_bytes_max",
            "B",
            "the most bytes that its queues held together",
            stat(&|stats| u64::from(stats.queued_bytes_max)),
        ),
    ]
}

/// The packets that were lost before a link or on it, and those cut or damaged there.
fn lost_columns(stats: &[PortStats], in_flight: &[InFlight]) -> Vec<Column> {
    let stat = |value: &dyn Fn(&PortStats) -> u64| Data::U64(stats.iter().map(value).collect());
    let dead = stats.iter().zip(in_flight).map(|(stats, lost)| stats.dead_packets.wrapping_add(lost.dead_packets));
    // Noted at the port of the other direction, by which the switch would send back.
    let back = |link: usize| stats[Fabric::reverse(LinkId::from(link)).index()].unroutable_packets;
    let of_flight = |value: &dyn Fn(&InFlight) -> u64| Data::U64(in_flight.iter().map(value).collect());
    vec![
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
            "unroutable_packets",
            "",
            "packets that it carried to a switch that had no route for them",
            Data::U64((0..stats.len()).map(back).collect()),
        ),
        Column::new(
            "expired_packets",
            "",
            "packets dropped at it because they had passed 64 switches: they were in a routing loop",
            stat(&|stats| stats.expired_packets),
        ),
        Column::new(
            "lossy_packets",
            "",
            "packets that the link lost because it is lossy",
            of_flight(&|lost| lost.lossy_packets),
        ),
        Column::new(
            "corrupted_packets",
            "",
            "packets lost because a checksum at the link's end found a bit error",
            of_flight(&|lost| lost.corrupted_packets),
        ),
        Column::new(
            "unnoticed_packets",
            "",
            "packets that bit errors hit and that went on: the transport's own checksum did not find them",
            of_flight(&|lost| lost.unnoticed_packets),
        ),
    ]
}

/// How packets waited for links, and what was said of that: marks, and the frames of the flow control.
fn queue_columns(stats: &[PortStats]) -> Vec<Column> {
    let stat = |value: &dyn Fn(&PortStats) -> u64| Data::U64(stats.iter().map(value).collect());
    vec![
        Column::new(
            "marked_packets",
            "",
            "packets marked: congestion experienced",
            stat(&|stats| stats.marked_packets),
        ),
        Column::new(
            "sent_frames",
            "",
            "frames of the flow control, which no other column counts",
            stat(&|stats| stats.sent_frames),
        ),
        Column::new(
            "pauses",
            "",
            "how often a pause of it began: of a class, queue or flow, while no other was paused",
            stat(&|stats| stats.pauses),
        ),
        Column::new(
            "paused_ps",
            "ps",
            "how long at least one class, queue or flow of it was paused",
            stat(&|stats| stats.paused.ps()),
        ),
        Column::new(
            "own_queues_max",
            "",
            "the most queues that the flow control used there at once, such as isolation queues",
            stat(&|stats| u64::from(stats.own_queues_max)),
        ),
        Column::new("waited_packets", "", "packets that had to wait", stat(&|stats| stats.waited_packets)),
        Column::new("waited_ps", "ps", "how long they waited, summed", stat(&|stats| stats.waited.ps())),
    ]
}

/// The fate of packets on one link.
#[derive(Clone, Copy, Debug, Default)]
pub struct InFlight {
    /// Lost with the link.
    pub dead_packets: u64,
    /// Lost because the link loses packets.
    pub lossy_packets: u64,
    /// Hit by bit errors, and lost for that.
    pub corrupted_packets: u64,
    /// Hit by bit errors, and not lost.
    pub unnoticed_packets: u64,
}

/// Names of hosts, for a column beside their numbers.
pub fn host_names(fabric: &Fabric, hosts: impl Iterator<Item = HostId>) -> Data {
    Data::Names { index: hosts.map(|host| fabric.host_node(host).0).collect(), names: fabric.names.clone() }
}

/// The names of the two nodes of links, for columns beside the links' numbers.
pub fn link_ends(fabric: &Fabric, links: impl Iterator<Item = LinkId> + Clone) -> [Column; 2] {
    let names = |of: fn(&fabric::Link) -> NodeId| Data::Names {
        index: links.clone().map(|link| of(fabric.link(link)).0).collect(),
        names: fabric.names.clone(),
    };
    [
        Column::new("from_node", "", "sending node of the link", names(|link| link.from)),
        Column::new("to_node", "", "receiving node of the link", names(|link| link.to)),
    ]
}

/// Which link is which.
pub fn link_columns(fabric: &Fabric) -> Vec<Column> {
    let [from, to] = link_ends(fabric, (0..fabric.links.len() as u32).map(LinkId));
    let tier = Data::Names {
        index: fabric.links.iter().map(|link| link.tier as u32).collect(),
        names: ["from_host", "up", "down", "to_host"].map(str::to_owned).to_vec(),
    };
    let rate = fabric.links.iter().map(|link| link.rate.bps()).collect();
    let delay = (0..fabric.links.len() as u32).map(|link| fabric.delay(LinkId(link)).ps()).collect();
    let delay_doc = "from a packet's last bit leaving to the next node's having it: propagation, and processing";
    vec![
        Column::new("link", "", "number of the directed link", Data::U32((0..fabric.links.len() as u32).collect())),
        from,
        to,
        Column::new("tier", "", "from_host, up, down or to_host", tier),
        Column::new("rate_bps", "bit/s", "the link's rate", Data::U64(rate)),
        Column::new("delay_ps", "ps", delay_doc, Data::U64(delay)),
    ]
}

/// The counters of the endpoints of `hosts`, of the limiters of their rates, and of switches: by transport (then
/// limiters, then flow controls) and name.
pub fn counted<'a>(
    plan: &Plan,
    hosts: impl Iterator<Item = &'a Host>,
    switches: impl Iterator<Item = &'a Switch>,
) -> Vec<Counted> {
    let mut counted = Vec::new();
    let mut add = |by: usize, counters: Vec<(&'static str, u64)>| {
        counted.extend(counters.into_iter().map(|(name, value)| (by, name, value)));
    };
    for switch in switches {
        switch.agent_counters().for_each(|(transport, counters)| add(transport, counters));
        let control = switch.flow_control().map(|control: &dyn QueueDiscipline| control.counters());
        add(plan.queueing.unwrap_or(plan.transports.len() + 1), control.into_iter().flatten().collect());
    }
    hosts.for_each(|host| host.counters().enumerate().for_each(|(transport, counters)| add(transport, counters)));
    counted
}

/// Who counts (see [`counted`]), what, and how often.
pub type Counted = (usize, &'static str, u64);

/// The table `counters`.
pub fn counter_table(plan: &Plan, counted: impl Iterator<Item = Counted>) -> Table {
    let mut sums: BTreeMap<(usize, &'static str), u64> = BTreeMap::new();
    for (transport, name, value) in counted {
        *sums.entry((transport, name)).or_default() += value;
    }
    let mut names: Vec<String> = sums.keys().map(|key| key.1.to_owned()).collect();
    names.sort();
    names.dedup();
    let index = |name: &str| names.iter().position(|known| known == name).expect("it was collected") as u32;
    let transport = Data::Names {
        index: sums.keys().map(|key| key.0 as u32).collect(),
        names: plan
            .transports
            .iter()
            .map(|transport| transport.name().to_owned())
            .chain([plan.scenario.sharing.name().to_owned(), plan.scenario.flow_control.name().to_owned()])
            .chain(plan.scenario.link.llr.as_ref().map(|_| "llr".to_owned()))
            .collect(),
    };
    let counter = Data::Names { index: sums.keys().map(|key| index(key.1)).collect(), names: names.clone() };
    Table {
        name: "counters",
        columns: vec![
            Column::new(
                "transport",
                "",
                "the transport, the limiter of hosts, the flow control of switches, or the links' llr that counts",
                transport,
            ),
            Column::new("counter", "", "what is counted", counter),
            Column::new(
                "value",
                "",
                "the count, summed over all hosts or switches",
                Data::U64(sums.values().copied().collect()),
            ),
        ],
    }
}
