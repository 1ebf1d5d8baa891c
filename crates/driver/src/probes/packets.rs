//! Packets one by one, link by link: when each came to a node, left it, and what it said (`measure.packets`).
//!
//! Everything that a protocol says to another node crosses a link, so the rows show what each protocol did, in its own
//! words: requests, grants, tokens, pauses. They also show what waited in a queue at any time: the packets that had
//! come and not left.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use catalogue::Transport;
use node::Loss;
use node::Packet;
use node::packet::flags;
use run::{Column, Data, Plan, Recorded, Table};
use units::{HostId, LinkId, NodeId, PortId, SwitchId, Time};

use crate::{Leaving, Place, Probe, Wants, Whole};

/// What a part's nodes have sent and lost.
pub(crate) struct Packets {
    recorded: Arc<Recorded>,
    /// Ports of links that are recorded, none if all are: ends that send, and ends that receive.
    ports: Option<(BTreeSet<Place>, BTreeSet<Place>)>,
    rows: Vec<Row>,
    /// There was no room for what came after.
    full: bool,
}

/// In the order of a node's time.
#[derive(Clone, Copy)]
struct Row {
    at: Time,
    place: Place,
    packet: Packet,
    went: Result<On, Loss>,
}

/// When a packet came to a node, when its last bit left, and what went on waiting.
#[derive(Clone, Copy)]
struct On {
    came: Time,
    last: Time,
    waiting_bytes: u32,
}

impl Packets {
    /// None if none are recorded.
    pub fn new(plan: &Plan) -> Option<Packets> {
        let recorded = plan.recorded.clone()?;
        let ports = recorded.links.as_ref().map(|links| {
            let ends = links.iter().map(|&id| plan.fabric.link(id));
            let place = |node, port| place(plan, node, port);
            let senders = ends.clone().map(|link| place(link.from, link.from_port)).collect();
            (senders, ends.map(|link| place(link.to, link.to_port)).collect())
        });
        Some(Packets { recorded, ports, rows: Vec::new(), full: false })
    }

    /// Whether what happens now to such a packet is recorded.
    #[inline]
    fn wants_packet(&mut self, now: Time, packet: &Packet) -> bool {
        let recorded = &self.recorded;
        if now < recorded.from || now >= recorded.until || self.full {
            return false;
        }
        if !packet.has(flags::LINK_FRAME) && !recorded.has(packet.flow) {
            return false;
        }
        // What happens at one instant is recorded whole, so that the same rows come first however parts are cut.
        let has_room = (self.rows.len() as u64) < recorded.rows_max;
        self.full = !has_room && self.rows.last().is_some_and(|row| row.at < now);
        !self.full
    }
}

/// A node's port, by numbers that hold in the whole network.
pub(super) fn place(plan: &Plan, node: NodeId, port: PortId) -> Place {
    match plan.fabric.as_switch(node) {
        Some(switch) => Place { id: switch.0, is_switch: true, port },
        None => Place { id: node.0, is_switch: false, port },
    }
}

impl Probe for Packets {
    fn wants(&self) -> Wants {
        Wants { departures: true, drops: true, ..Wants::default() }
    }

    fn on_departure(&mut self, now: Time, from: Place, leaving: Leaving<'_>) {
        let is_here = self.ports.as_ref().is_none_or(|(senders, _)| senders.contains(&from));
        if is_here && self.wants_packet(now, leaving.packet) {
            let came = if from.is_switch && !leaving.packet.has(flags::LINK_FRAME) { leaving.transit.at } else { now };
            let went = Ok(On { came, last: leaving.last, waiting_bytes: leaving.waiting_bytes });
            self.rows.push(Row { at: now, place: from, packet: *leaving.packet, went });
        }
    }

    /// At the switch of a link that is recorded, or behind it.
    fn on_drop(&mut self, now: Time, at: Place, packet: &Packet, why: Loss) {
        let sends = |place: &Place| (place.id, place.is_switch) == (at.id, at.is_switch);
        let is_here =
            self.ports.as_ref().is_none_or(|(senders, receivers)| receivers.contains(&at) || senders.iter().any(sends));
        if is_here && self.wants_packet(now, packet) {
            self.rows.push(Row { at: now, place: at, packet: *packet, went: Err(why) });
        }
    }

    /// The table `packets`; none if none are recorded.
    fn tables(seen: &[&Packets], whole: &Whole<'_>) -> Vec<Table> {
        let Some(recorded) = &whole.plan.recorded else { return Vec::new() };
        if seen.is_empty() {
            return Vec::new();
        }
        let mut rows: Vec<&Row> = seen.iter().flat_map(|packets| &packets.rows).collect();
        rows.sort_by_key(|row| (row.at, row.place.is_switch, row.place.id));
        rows.truncate(usize::try_from(recorded.rows_max).unwrap_or(usize::MAX));
        let columns = Recording { plan: whole.plan, rows }.columns();
        vec![Table { name: "packets", columns }]
    }

    fn notes(seen: &[&Packets], whole: &Whole<'_>) -> Vec<String> {
        let Some(recorded) = &whole.plan.recorded else { return Vec::new() };
        let rows: usize = seen.iter().map(|packets| packets.rows.len()).sum();
        if rows as u64 <= recorded.rows_max && seen.iter().all(|packets| !packets.full) {
            return Vec::new();
        }
        vec![format!(
            "measure.packets: only the first {} packets are recorded; record fewer, by flows, links or time, or set \
             measure.packets.rows_max",
            recorded.rows_max
        )]
    }
}

/// Why packets were lost, as the table says it; first that they were not.
const LOSSES: [&str; 7] = [
    "",
    "no room",
    "link or switch down",
    "no route",
    "dropped by its AQ",
    "too many hops",
    "lost or damaged on the link",
];

fn loss_index(loss: Loss) -> usize {
    match loss {
        Loss::Overflow => 1,
        Loss::Dead => 2,
        Loss::NoRoute => 3,
        Loss::Stage => 4,
        Loss::Expired => 5,
        Loss::Link => 6,
    }
}

/// Why a packet was lost.
pub(super) fn loss_in_words(loss: Loss) -> &'static str {
    LOSSES[loss_index(loss)]
}

/// A plan, and rows of its run.
struct Recording<'a> {
    plan: &'a Plan,
    rows: Vec<&'a Row>,
}

impl Recording<'_> {
    fn numbers(&self, of: impl Fn(&Row) -> u64) -> Data {
        Data::U64(self.rows.iter().map(|row| of(row)).collect())
    }

    fn some(&self, of: impl Fn(&Row) -> Option<u64>) -> Data {
        Data::OptU64(self.rows.iter().map(|row| of(row).unwrap_or(u64::MAX)).collect())
    }

    fn small(&self, of: impl Fn(&Row) -> u32) -> Data {
        Data::U32(self.rows.iter().map(|row| of(row)).collect())
    }

    fn flag(&self, flag: u8) -> Data {
        Data::Bool(self.rows.iter().map(|row| row.packet.has(flag)).collect())
    }

    /// Names of nodes, or of none.
    fn nodes(&self, of: impl Fn(&Row) -> Option<NodeId>) -> Data {
        let mut names = self.plan.fabric.names.clone();
        let nowhere = names.len() as u32;
        names.push(String::new());
        Data::Names { index: self.rows.iter().map(|row| of(row).map_or(nowhere, |node| node.0)).collect(), names }
    }

    fn node(&self, row: &Row) -> NodeId {
        match row.place.is_switch {
            true => self.plan.fabric.switch_node(SwitchId(row.place.id)),
            false => self.plan.fabric.host_node(HostId(row.place.id)),
        }
    }

    /// The link that it took.
    fn link(&self, row: &Row) -> Option<LinkId> {
        row.went.is_ok().then(|| self.plan.fabric.ports[self.node(row).index()][row.place.port.index()])
    }

    /// The node at that link's other end.
    fn next(&self, row: &Row) -> Option<NodeId> {
        self.link(row).map(|link| self.plan.fabric.link(link).to)
    }

    fn is_frame(row: &Row) -> bool {
        row.packet.has(flags::LINK_FRAME)
    }

    /// Its transport, if it has one of the run's.
    fn transport(&self, row: &Row) -> Option<&Transport> {
        self.plan.transports.get(usize::from(row.packet.transport)).filter(|_| !Self::is_frame(row))
    }

    fn columns(&self) -> Vec<Column> {
        let mut columns = self.of_links();
        columns.extend(self.of_packets());
        columns
    }

    /// When and where.
    fn of_links(&self) -> Vec<Column> {
        let on = |of: fn(On) -> u64| self.some(|row| row.went.ok().map(of));
        let link = self.some(|row| self.link(row).map(|link| u64::from(link.0)));
        let node = self.nodes(|row| Some(self.node(row)));
        let left = "when its first bit left the node, or when it was lost there";
        vec![
            Column::new("time_ps", "ps", left, self.numbers(|row| row.at.ps())),
            Column::new("node", "", "where", node),
            Column::new(
                "to",
                "",
                "node at the other end of its link; empty if it was lost",
                self.nodes(|row| self.next(row)),
            ),
            Column::new("link", "", "that link's row in `links`", link),
            Column::new("came_ps", "ps", "when it came to the switch; at a host: when it left", on(|on| on.came.ps())),
            Column::new("last_ps", "ps", "when its last bit left the node", on(|on| on.last.ps())),
            Column::new(
                "waiting_bytes",
                "B",
                "bytes that went on waiting at the switch's port when it left",
                on(|on| on.waiting_bytes.into()),
            ),
            Column::new(
                "lost",
                "",
                "why it was lost; empty if it was not",
                Data::Names {
                    index: self.rows.iter().map(|row| row.went.map_or_else(loss_index, |_| 0) as u32).collect(),
                    names: LOSSES.map(str::to_owned).to_vec(),
                },
            ),
        ]
    }

    /// What it was.
    fn of_packets(&self) -> Vec<Column> {
        let source = self.nodes(|row| match Self::is_frame(row) {
            true => Some(self.node(row)),
            false => Some(self.plan.fabric.host_node(row.packet.src)),
        });
        let destination = self.nodes(|row| match Self::is_frame(row) {
            true => self.next(row),
            false => Some(self.plan.fabric.host_node(row.packet.dst)),
        });
        let offset = |row: &Row| {
            let transport = self.transport(row).filter(|_| row.packet.payload_bytes > 0)?;
            Some(transport.payload_offset(&row.packet))
        };
        let flow = |row: &Row| {
            let has_one = !Self::is_frame(row) && self.plan.flows.try_get(row.packet.flow).is_some();
            has_one.then_some(u64::from(row.packet.flow.0))
        };
        let number = |of: fn(&Packet) -> u64| self.numbers(|row| of(&row.packet));
        let small = |of: fn(&Packet) -> u32| self.small(|row| of(&row.packet));
        vec![
            Column::new("flow", "", "whose it was; a frame of a flow control is no flow's", self.some(flow)),
            Column::new("transport", "", "the scheme that made it", self.schemes()),
            Column::new("says", "", "what its header says, in the words of the scheme", self.says()),
            Column::new("source", "", "where it comes from", source),
            Column::new("destination", "", "where it goes", destination),
            Column::new("hop", "", "switches that it has come to so far", small(|packet| packet.hops.into())),
            Column::new("class", "", "priority class; 0 is served first", small(|packet| packet.class.into())),
            Column::new("bytes", "B", "on the wire", number(|packet| packet.wire_bytes.into())),
            Column::new("payload_bytes", "B", "of its message in it", number(|packet| packet.payload_bytes.into())),
            Column::new("offset", "B", "where in the message these begin", self.some(offset)),
            Column::new("marked", "", "whether it bore a congestion mark", self.flag(flags::CE)),
            Column::new("trimmed", "", "whether a switch had cut its payload off", self.flag(flags::TRIMMED)),
        ]
    }

    /// What made each packet.
    fn schemes(&self) -> Data {
        let plan = self.plan;
        let mut names: Vec<String> = plan.transports.iter().map(|transport| transport.name().to_owned()).collect();
        let others = names.len() as u32;
        names.extend([plan.scenario.flow_control.name(), plan.scenario.sharing.name(), "attached"].map(str::to_owned));
        let of = |row: &&Row| match row.packet.transport {
            _ if Self::is_frame(row) => others,
            transport if plan.outside == Some(transport) => others + 2,
            transport if u32::from(transport) < others => transport.into(),
            // A limiter's.
            _ => others + 1,
        };
        Data::Names { index: self.rows.iter().map(of).collect(), names }
    }

    /// What each says.
    fn says(&self) -> Data {
        let mut places: BTreeMap<String, u32> = BTreeMap::new();
        let said = |row: &Row| match self.transport(row) {
            _ if Self::is_frame(row) => self.plan.scenario.flow_control.says(&row.packet),
            Some(transport) => transport.says(&row.packet),
            None if self.plan.outside == Some(row.packet.transport) => String::new(),
            None => self.plan.scenario.sharing.as_scheme().map_or_else(String::new, |of| of.says(&row.packet)),
        };
        let index = self.rows.iter().map(|row| {
            let next = places.len() as u32;
            *places.entry(said(row)).or_insert(next)
        });
        let index = index.collect();
        let mut names = vec![String::new(); places.len()];
        places.into_iter().for_each(|(name, place)| names[place as usize] = name);
        Data::Names { index, names }
    }
}
