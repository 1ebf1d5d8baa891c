//! Packets one by one, link by link: when each came to a node, left it, and what it said (`measure.packets`); and of
//! the whole network only those to which something happens, for a log of events (`measure.events`).
//!
//! Everything that a protocol says to another node crosses a link, so the rows show what each protocol did, in its own
//! words: requests, grants, tokens, pauses. They also show what waited in a queue at any time: the packets that had
//! come and not left.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use catalogue::{LinkControl, Sharing, Transport};
use fabric::Fabric;
use node::packet::flags;
use node::wire::{Malformed, Reader, Writer};
use node::{Agreement, Loss, Packet};
use run::{Column, Data, Plan, Recorded, Table};
use scenario::EventKind;
use units::{FlowId, HostId, LinkId, NodeId, PortId, SwitchId, Time};

use super::words;
use crate::first_rows::{FirstRows, Timed};
use crate::{Leaving, NodePort, Probe, Wants, Whole};

/// What a part's nodes have sent and lost.
#[derive(node::State)]
#[state(refuse("measure.packets follows each packet"))]
pub(crate) struct Packets {
    recorded: Arc<Recorded>,
    #[state(built("settings"))]
    schemes: Schemes,
    fabric: Arc<Fabric>,
    /// Ports of links that are recorded, none if all are: ends that send, and ends that receive.
    ports: Option<(BTreeSet<NodePort>, BTreeSet<NodePort>)>,
    rows: FirstRows<Row>,
}

/// What packets belong to.
struct Schemes {
    transports: Vec<Transport>,
    flow_control: LinkControl,
    sharing: Sharing,
    /// The transport that packets of attached hosts name.
    outside: Option<u8>,
}

impl Schemes {
    fn of(plan: &Plan) -> Schemes {
        Schemes {
            transports: plan.transports.clone(),
            flow_control: plan.scenario.flow_control.clone(),
            sharing: plan.scenario.sharing.clone(),
            outside: plan.outside,
        }
    }

    /// Its transport, if it has one of the run's.
    fn transport(&self, packet: &Packet) -> Option<&Transport> {
        self.transports.get(usize::from(packet.transport)).filter(|_| !packet.has(flags::LINK_FRAME))
    }

    /// What its header says, in words.
    fn says(&self, packet: &Packet) -> String {
        match self.transport(packet) {
            _ if packet.has(flags::LINK_FRAME) => self.flow_control.says(packet),
            Some(transport) => transport.says(packet),
            None if self.outside == Some(packet.transport) => String::new(),
            None => self.sharing.as_scheme().map_or_else(String::new, |of| of.says(packet)),
        }
    }

    /// Where in its message its payload begins.
    fn offset(&self, packet: &Packet) -> Option<u64> {
        let transport = self.transport(packet).filter(|_| packet.payload_bytes > 0)?;
        Some(transport.payload_offset(packet))
    }
}

/// Sorted by node, then by time.
#[derive(Clone, node::Saved)]
struct Row {
    at: Time,
    place: NodePort,
    packet: Packet,
    went: Result<On, Loss>,
    /// What happened to it, if that is why it is recorded.
    event: Option<EventKind>,
    /// The words of its header, if another process has read the header. This process then has the packet without it.
    told: Option<Box<HeaderText>>,
}

impl Timed for Row {
    fn time(&self) -> Time {
        self.at
    }
}

/// What a packet's header says.
#[derive(Clone, node::Saved)]
struct HeaderText {
    says: Arc<str>,
    offset: Option<u64>,
}

/// When a packet came to a node, when its last bit left, and what went on waiting.
#[derive(Clone, Copy, node::Saved)]
struct On {
    came: Time,
    last: Time,
    waiting_bytes: u32,
}

impl Packets {
    /// None if none are recorded.
    pub fn new(plan: &Plan) -> Option<Packets> {
        Some(Packets::of(plan, plan.recorded.clone()?))
    }

    fn of(plan: &Plan, recorded: Arc<Recorded>) -> Packets {
        let ports = recorded.links.as_ref().map(|links| {
            let ends = links.iter().map(|&id| plan.fabric.link(id));
            let place = |node, port| place(plan, node, port);
            let senders = ends.clone().map(|link| place(link.from, link.from_port)).collect();
            (senders, ends.map(|link| place(link.to, link.to_port)).collect())
        });
        let (schemes, fabric) = (Schemes::of(plan), plan.fabric.clone());
        let rows = FirstRows::new(recorded.rows_max);
        Packets { recorded, schemes, fabric, ports, rows }
    }

    fn departed(&mut self, now: Time, from: NodePort, leaving: &Leaving<'_>, event: Option<EventKind>) {
        let is_here = self.ports.as_ref().is_none_or(|(senders, _)| senders.contains(&from));
        if is_here && self.wants_packet(now, leaving.packet) {
            let came = if from.is_switch && !leaving.packet.has(flags::LINK_FRAME) { leaving.transit.at } else { now };
            let went = Ok(On { came, last: leaving.last, waiting_bytes: leaving.waiting_bytes });
            self.rows.push(Row { at: now, place: from, packet: *leaving.packet, went, event, told: None });
        }
    }

    /// Records a packet that was lost at a node: at the switch that sends on a recorded link, or at the link's far end.
    fn dropped(&mut self, now: Time, at: NodePort, packet: &Packet, why: Loss, event: Option<EventKind>) {
        let sends = |place: &NodePort| (place.id, place.is_switch) == (at.id, at.is_switch);
        let is_here =
            self.ports.as_ref().is_none_or(|(senders, receivers)| receivers.contains(&at) || senders.iter().any(sends));
        if is_here && self.wants_packet(now, packet) {
            self.rows.push(Row { at: now, place: at, packet: *packet, went: Err(why), event, told: None });
        }
    }

    /// Whether what happens now to such a packet is recorded.
    #[inline]
    fn wants_packet(&mut self, now: Time, packet: &Packet) -> bool {
        let recorded = &self.recorded;
        if now < recorded.from || now >= recorded.until {
            return false;
        }
        if !packet.has(flags::LINK_FRAME) && !recorded.has(packet.flow) {
            return false;
        }
        self.rows.wants(now)
    }
}

impl Packets {
    /// Writes the words of headers and not the headers, so that the reader need not trust a header from another
    /// process.
    fn pack_rows(&self, to: &mut Writer<'_>) {
        to.u8(self.rows.more.into());
        let mut places: BTreeMap<String, u32> = BTreeMap::new();
        let mut said: Vec<u32> = Vec::new();
        for row in &self.rows {
            let next = places.len() as u32;
            said.push(*places.entry(self.schemes.says(&row.packet)).or_insert(next));
        }
        let mut texts: Vec<(&String, &u32)> = places.iter().collect();
        texts.sort_by_key(|(_, place)| **place);
        words::pack_each(to, texts.into_iter(), |to, (text, _)| words::pack_text(to, text));
        words::pack_each(to, self.rows.iter().zip(said), |to, (row, said)| {
            to.u64(row.at.ps());
            words::pack_place(to, row.place);
            to.u8(row.event.map_or(u8::MAX, |event| event as u8));
            match row.went {
                Err(loss) => to.u8(loss_index(loss) as u8),
                Ok(On { came, last, waiting_bytes }) => {
                    to.u8(0);
                    to.u64(came.ps());
                    to.u64(last.ps());
                    to.u32(waiting_bytes);
                }
            }
            let packet = &row.packet;
            [packet.flow.0, packet.src.0, packet.dst.0, packet.virtual_delay_ns].into_iter().for_each(|w| to.u32(w));
            to.u16(packet.wire_bytes);
            to.u16(packet.payload_bytes);
            to.u64(packet.label);
            to.bytes(&[packet.class, packet.flags, packet.transport, packet.hops]);
            to.u32(said);
            to.u64(self.schemes.offset(packet).unwrap_or(u64::MAX));
        });
    }

    fn absorb_rows(&mut self, from: &mut Reader<'_>) -> Result<(), Malformed> {
        from.begin("recorded packets");
        let wrong = Malformed { what: "recorded packets" };
        self.rows.more |= from.u8()? != 0;
        let mut texts: Vec<Arc<str>> = Vec::new();
        for _ in 0..from.u64()? {
            texts.push(words::text(from)?.into());
        }
        for _ in 0..from.u64()? {
            let (at, place) = (words::time(from)?, words::place(&self.fabric, from)?);
            let event = match from.u8()? {
                u8::MAX => None,
                kind => Some(*EventKind::ALL.get(usize::from(kind)).ok_or(wrong)?),
            };
            let went = match from.u8()? {
                0 => Ok(On { came: words::time(from)?, last: words::time(from)?, waiting_bytes: from.u32()? }),
                loss => Err(*LOSS.get(usize::from(loss) - 1).ok_or(wrong)?),
            };
            let mut packet = Packet::bare(FlowId(from.u32()?), HostId(from.u32()?), HostId(from.u32()?));
            (packet.virtual_delay_ns, packet.wire_bytes) = (from.u32()?, from.u16()?);
            (packet.payload_bytes, packet.label) = (from.u16()?, from.u64()?);
            [packet.class, packet.flags, packet.transport, packet.hops] = from.array()?;
            let hosts = self.fabric.hosts;
            if !packet.has(flags::LINK_FRAME) && (packet.src.0 >= hosts || packet.dst.0 >= hosts) {
                return Err(wrong);
            }
            let says = texts.get(from.u32()? as usize).ok_or(wrong)?.clone();
            let offset = from.u64()?;
            let told = Some(Box::new(HeaderText { says, offset: (offset != u64::MAX).then_some(offset) }));
            self.rows.push(Row { at, place, packet, went, event, told });
        }
        Ok(())
    }
}

/// Packets to which something happens.
#[derive(node::State)]
#[state(refuse("measure.events notes what happens to packets"))]
pub(crate) struct Events {
    packets: Packets,
    kinds: Vec<EventKind>,
}

impl Events {
    /// None if none are recorded.
    pub fn new(plan: &Plan) -> Option<Events> {
        let recorded = plan.events.clone()?;
        let kinds = recorded.events.clone().unwrap_or_default();
        Some(Events { packets: Packets::of(plan, recorded), kinds })
    }

    /// Whether a packet that leaves a node is an event of this kind there.
    fn is(&self, kind: EventKind, leaving: &Leaving<'_>) -> bool {
        let packet = leaving.packet;
        if packet.has(flags::LINK_FRAME) {
            return kind == EventKind::LinkControl;
        }
        let gained = |flag| packet.has(flag) && leaving.came & flag == 0;
        let agreed = || {
            let transport = self.packets.schemes.transport(packet)?;
            transport.agreement(packet).filter(|_| packet.payload_bytes == 0)
        };
        // A message is an event once, where it leaves its host; a reservation also at each switch that acts on it.
        let first = packet.hops == 0;
        match kind {
            EventKind::LinkControl | EventKind::Drops => false,
            EventKind::Marks => gained(flags::CE),
            EventKind::Trims => gained(flags::TRIMMED),
            EventKind::Matching => first && agreed() == Some(Agreement::Matching),
            EventKind::Grants => first && agreed() == Some(Agreement::Grant),
            EventKind::Reservations => {
                (first || packet.has(flags::ROUTER_ALERT)) && agreed() == Some(Agreement::Reservation)
            }
            EventKind::Control => {
                first && packet.payload_bytes == 0 && self.packets.schemes.transport(packet).is_some()
            }
        }
    }
}

impl Probe for Events {
    fn wants(&self) -> Wants {
        let has = |kind: EventKind| self.kinds.contains(&kind);
        Wants {
            departures: self.kinds.iter().any(|&kind| kind != EventKind::Drops),
            changes: has(EventKind::Marks) || has(EventKind::Trims),
            drops: has(EventKind::Drops),
            ..Wants::default()
        }
    }

    fn on_departure(&mut self, now: Time, from: NodePort, leaving: Leaving<'_>) {
        for place in 0..self.kinds.len() {
            let kind = self.kinds[place];
            if self.is(kind, &leaving) {
                self.packets.departed(now, from, &leaving, Some(kind));
            }
        }
    }

    fn on_drop(&mut self, now: Time, at: NodePort, packet: &Packet, why: Loss) {
        if self.kinds.contains(&EventKind::Drops) {
            self.packets.dropped(now, at, packet, why, Some(EventKind::Drops));
        }
    }

    fn pack(&self, to: &mut Writer<'_>) {
        self.packets.pack_rows(to);
    }

    fn absorb(&mut self, from: &mut Reader<'_>) -> Result<(), Malformed> {
        self.packets.absorb_rows(from)
    }

    /// The table `events`; none if none are recorded.
    fn tables(seen: &[&Events], whole: &Whole<'_>) -> Vec<Table> {
        let seen: Vec<&Packets> = seen.iter().map(|events| &events.packets).collect();
        let Some(recording) = Recording::new(&seen, whole.plan) else { return Vec::new() };
        vec![Table { name: "events", columns: recording.of_events() }]
    }

    fn notes(seen: &[&Events], _: &Whole<'_>) -> Vec<String> {
        let seen: Vec<&Packets> = seen.iter().map(|events| &events.packets).collect();
        let rows_max = rows_left_out(&seen);
        let say = |rows_max| {
            format!(
                "measure.events: only the first {rows_max} are recorded; record fewer kinds, or set measure.rows_max"
            )
        };
        rows_max.map(say).into_iter().collect()
    }
}

/// How many rows there may be, if there were more.
fn rows_left_out(seen: &[&Packets]) -> Option<u64> {
    let rows_max = seen.first()?.recorded.rows_max;
    let rows: usize = seen.iter().map(|packets| packets.rows.len()).sum();
    (rows as u64 > rows_max || seen.iter().any(|packets| packets.rows.more)).then_some(rows_max)
}

/// A node's port, by numbers that hold in the whole network.
pub(super) fn place(plan: &Plan, node: NodeId, port: PortId) -> NodePort {
    match plan.fabric.as_switch(node) {
        Some(switch) => NodePort { id: switch.0, is_switch: true, port },
        None => NodePort { id: node.0, is_switch: false, port },
    }
}

impl Probe for Packets {
    fn wants(&self) -> Wants {
        Wants { departures: true, drops: true, ..Wants::default() }
    }

    fn on_departure(&mut self, now: Time, from: NodePort, leaving: Leaving<'_>) {
        self.departed(now, from, &leaving, None);
    }

    fn on_drop(&mut self, now: Time, at: NodePort, packet: &Packet, why: Loss) {
        self.dropped(now, at, packet, why, None);
    }

    fn pack(&self, to: &mut Writer<'_>) {
        self.pack_rows(to);
    }

    fn absorb(&mut self, from: &mut Reader<'_>) -> Result<(), Malformed> {
        self.absorb_rows(from)
    }

    /// The table `packets`; none if none are recorded.
    fn tables(seen: &[&Packets], whole: &Whole<'_>) -> Vec<Table> {
        let Some(recording) = Recording::new(seen, whole.plan) else { return Vec::new() };
        vec![Table { name: "packets", columns: recording.columns() }]
    }

    fn notes(seen: &[&Packets], _: &Whole<'_>) -> Vec<String> {
        let say = |rows_max| {
            format!(
                "measure.packets: only the first {rows_max} packets are recorded; record fewer, by flows, links or \
                 time, or set measure.packets.rows_max"
            )
        };
        rows_left_out(seen).map(say).into_iter().collect()
    }
}

/// The reasons for losses as the table writes them. The first stands for a packet that was not lost.
const LOSSES: [&str; 7] = [
    "",
    "no room",
    "link or switch down",
    "no route",
    "dropped by its AQ",
    "too many hops",
    "lost or damaged on the link",
];

/// The reasons in the order of [`LOSSES`], without its first entry.
const LOSS: [Loss; 6] = [Loss::Overflow, Loss::Dead, Loss::NoRoute, Loss::Stage, Loss::Expired, Loss::Link];

fn loss_index(loss: Loss) -> usize {
    1 + LOSS.iter().position(|known| *known == loss).expect("all are there")
}

/// Why a packet was lost.
pub(super) fn loss_in_words(loss: Loss) -> &'static str {
    LOSSES[loss_index(loss)]
}

/// A plan, and rows of its run.
struct Recording<'a> {
    plan: &'a Plan,
    schemes: &'a Schemes,
    rows: Vec<&'a Row>,
}

impl Recording<'_> {
    /// The first rows that all parts have seen; none if nothing is recorded.
    fn new<'a>(seen: &[&'a Packets], plan: &'a Plan) -> Option<Recording<'a>> {
        let (rows_max, schemes) = (seen.first()?.recorded.rows_max, &seen.first()?.schemes);
        let mut rows: Vec<&Row> = seen.iter().flat_map(|packets| &packets.rows).collect();
        rows.sort_by_key(|row| (row.at, row.place.is_switch, row.place.id));
        rows.truncate(usize::try_from(rows_max).unwrap_or(usize::MAX));
        Some(Recording { plan, schemes, rows })
    }

    /// What happened, and the columns of `packets` that say where, to what, and in which words.
    fn of_events(&self) -> Vec<Column> {
        const SAID: [&str; 10] =
            ["time_ps", "node", "to_node", "link", "flow", "transport", "says", "source", "destination", "lost"];
        let event = Data::Names {
            index: self.rows.iter().map(|row| row.event.map_or(0, |event| event as u32)).collect(),
            names: EventKind::ALL.map(|kind| kind.name().to_owned()).to_vec(),
        };
        let mut columns = self.columns();
        columns.retain(|column| SAID.contains(&column.name));
        columns.insert(1, Column::new("event", "", "what happened: a kind of `measure.events`", event));
        columns
    }

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
        let left = "when the packet's first bit left the node, or when the packet was lost there";
        vec![
            Column::new("time_ps", "ps", left, self.numbers(|row| row.at.ps())),
            Column::new("node", "", "where", node),
            Column::new(
                "to_node",
                "",
                "node at the other end of the link; empty if the packet was lost",
                self.nodes(|row| self.next(row)),
            ),
            Column::new("link", "", "the link's row in `links`", link),
            Column::new(
                "came_ps",
                "ps",
                "when the packet came to the switch; at a host: when it left",
                on(|on| on.came.ps()),
            ),
            Column::new("last_ps", "ps", "when the packet's last bit left the node", on(|on| on.last.ps())),
            Column::new(
                "waiting_bytes",
                "B",
                "bytes still waiting at the switch's port when the packet left",
                on(|on| on.waiting_bytes.into()),
            ),
            Column::new(
                "lost",
                "",
                "why the packet was lost; empty if it was not",
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
        let offset = |row: &Row| match &row.told {
            Some(told) => told.offset,
            None => self.schemes.offset(&row.packet),
        };
        let flow = |row: &Row| {
            let has_one = !Self::is_frame(row) && self.plan.flows.try_get(row.packet.flow).is_some();
            has_one.then_some(u64::from(row.packet.flow.0))
        };
        let number = |of: fn(&Packet) -> u64| self.numbers(|row| of(&row.packet));
        let small = |of: fn(&Packet) -> u32| self.small(|row| of(&row.packet));
        vec![
            Column::new("flow", "", "number of its flow; null for a frame of a flow control", self.some(flow)),
            Column::new("transport", "", "transport or flow control that made the packet", self.schemes()),
            Column::new("says", "", "what the packet's header says, in the words of that scheme", self.says()),
            Column::new("source", "", "host or switch that made the packet", source),
            Column::new("destination", "", "host or switch that the packet is for", destination),
            Column::new("hop", "", "switches that the packet has come to so far", small(|packet| packet.hops.into())),
            Column::new("class", "", "priority class; 0 is served first", small(|packet| packet.class.into())),
            Column::new("bytes", "B", "the packet's size on the wire", number(|packet| packet.wire_bytes.into())),
            Column::new(
                "payload_bytes",
                "B",
                "bytes of the message in the packet",
                number(|packet| packet.payload_bytes.into()),
            ),
            Column::new("offset_bytes", "B", "where in the message these bytes begin", self.some(offset)),
            Column::new("marked", "", "whether the packet bore a congestion mark", self.flag(flags::CE)),
            Column::new("trimmed", "", "whether a switch had cut the packet's payload off", self.flag(flags::TRIMMED)),
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
        let said = |row: &Row| match &row.told {
            Some(told) => told.says.to_string(),
            None => self.schemes.says(&row.packet),
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
