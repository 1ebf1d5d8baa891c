//! Queues and use of some ports over time (`measure.ports`): a row whenever what waits at one changes, or it begins to
//! send a packet.
//!
//! Samples at fixed intervals miss what a queue is between two, and packets one by one (`measure.packets`) take ten
//! times the room. What a port has room for is never exceeded: once its rows are as many, every two of them become one
//! with the later state of the two and the longest queue of both, and from then on a row covers twice the changes. Each
//! port keeps its own rows, so they are the same however parts are cut.

use std::collections::BTreeMap;
use std::sync::Arc;

use node::wire::{Malformed, Reader, Writer};
use run::{Column, Data, Plan, Table, WatchedPorts, link_ends};
use units::{LinkId, PortId, Time};

use super::packets::place;
use super::words;
use crate::{Leaving, NodePort, Probe, SwitchSlot, Wants, Whole};

/// Ports that are watched in a part.
#[derive(node::State)]
#[state(refuse("measure.ports notes what waits at ports"))]
pub(crate) struct Ports {
    watched: Arc<WatchedPorts>,
    of: BTreeMap<NodePort, Watched>,
}

/// A port.
#[derive(node::Saved)]
struct Watched {
    link: LinkId,
    rows: Vec<Row>,
    /// So many changes become a row: a power of two.
    changes: u64,
    /// So many are in the last one.
    in_last: u64,
    sent_bytes: u64,
}

/// The state of a port from a time on, until the next row.
#[derive(Clone, Copy, node::Saved)]
struct Row {
    at: Time,
    queue_bytes: u32,
    /// The most since the row before.
    queue_bytes_max: u32,
    sent_bytes: u64,
    /// When the last bit of the packet that it sends leaves.
    free_at: Time,
}

impl Ports {
    /// None if no port is watched.
    pub fn new(plan: &Plan) -> Option<Ports> {
        let watched = plan.ports.clone()?;
        let of = watched.links.iter().map(|&link| {
            let ends = plan.fabric.link(link);
            let port = Watched { link, rows: Vec::new(), changes: 1, in_last: 0, sent_bytes: 0 };
            (place(plan, ends.from, ends.from_port), port)
        });
        let of = of.collect();
        Some(Ports { watched, of })
    }
}

impl Watched {
    /// Records the state of a port from now on.
    fn change(&mut self, now: Time, queue_bytes: u32, free_at: Option<Time>, rows_max: usize) {
        let free_at = free_at.or(self.rows.last().map(|row| row.free_at)).unwrap_or(now);
        let new = Row { at: now, queue_bytes, queue_bytes_max: queue_bytes, sent_bytes: self.sent_bytes, free_at };
        // What changes at one instant is one change.
        let goes_on = match self.rows.last() {
            Some(last) if last.at == now => true,
            Some(_) if self.in_last < self.changes => {
                self.in_last += 1;
                true
            }
            _ => false,
        };
        if goes_on {
            let last = self.rows.pop().expect("it goes on");
            self.rows.push(last.and(new));
            return;
        }
        if self.rows.len() >= rows_max {
            self.rows =
                self.rows.chunks(2).map(|two| two.iter().copied().reduce(Row::and).expect("not empty")).collect();
            self.changes *= 2;
        }
        self.rows.push(new);
        self.in_last = 1;
    }
}

impl Row {
    /// Merges a row with the one after it.
    fn and(self, next: Row) -> Row {
        Row { queue_bytes_max: self.queue_bytes_max.max(next.queue_bytes_max), ..next }
    }
}

impl Probe for Ports {
    fn wants(&self) -> Wants {
        Wants { departures: true, enqueues: true, ..Wants::default() }
    }

    fn on_enqueue(&mut self, now: Time, switch: &SwitchSlot, port: PortId) {
        let place = NodePort { id: switch.id, is_switch: true, port };
        if let Some(watched) = self.of.get_mut(&place) {
            watched.change(now, switch.switch.port(port).queued_bytes(), None, self.watched.rows_max);
        }
    }

    fn on_departure(&mut self, now: Time, from: NodePort, leaving: Leaving<'_>) {
        if let Some(watched) = self.of.get_mut(&from) {
            watched.sent_bytes += u64::from(leaving.packet.wire_bytes);
            watched.change(now, leaving.waiting_bytes, Some(leaving.last), self.watched.rows_max);
        }
    }

    fn pack(&self, to: &mut Writer<'_>) {
        let rows = self.of.values().flat_map(|of| of.rows.iter().map(|row| (of.link, row)));
        words::pack_each(to, rows, |to, (link, row)| {
            to.u32(link.0);
            to.u64(row.at.ps());
            to.u32(row.queue_bytes);
            to.u32(row.queue_bytes_max);
            to.u64(row.sent_bytes);
            to.u64(row.free_at.ps());
        });
    }

    fn absorb(&mut self, from: &mut Reader<'_>) -> Result<(), Malformed> {
        from.begin("watched ports");
        let rows_max = self.watched.rows_max;
        let mut of: BTreeMap<LinkId, &mut Watched> = self.of.values_mut().map(|of| (of.link, of)).collect();
        for _ in 0..from.u64()? {
            let port = of.get_mut(&LinkId(from.u32()?)).filter(|port| port.rows.len() < rows_max);
            let port = port.ok_or(Malformed { what: "watched ports: no such port, or too many rows" })?;
            port.rows.push(Row {
                at: words::time(from)?,
                queue_bytes: from.u32()?,
                queue_bytes_max: from.u32()?,
                sent_bytes: words::count(from)?,
                free_at: words::time(from)?,
            });
        }
        Ok(())
    }

    /// The table `ports`; none if no port is watched.
    fn tables(seen: &[&Ports], whole: &Whole<'_>) -> Vec<Table> {
        if seen.is_empty() {
            return Vec::new();
        }
        // Each part has all ports, and those of its own nodes have rows.
        let watched = seen.iter().flat_map(|ports| ports.of.values());
        let mut rows: Vec<(LinkId, &Row)> = watched.flat_map(|of| of.rows.iter().map(|row| (of.link, row))).collect();
        rows.sort_by_key(|(link, row)| (*link, row.at));
        let numbers = |of: fn(&Row) -> u64| Data::U64(rows.iter().map(|(_, row)| of(row)).collect());
        let sent = "bytes of all packets that the port has begun to send since the run began";
        let [from, to] = link_ends(&whole.plan.fabric, rows.iter().map(|(link, _)| *link));
        let columns = vec![
            Column::new(
                "link",
                "",
                "the port's link, as its row in `links`",
                Data::U32(rows.iter().map(|(link, _)| link.0).collect()),
            ),
            from,
            to,
            Column::new("time_ps", "ps", "from when on the values below held", numbers(|row| row.at.ps())),
            Column::new("queue_bytes", "B", "bytes in the port's queues", numbers(|row| row.queue_bytes.into())),
            Column::new(
                "queue_bytes_max",
                "B",
                "the most bytes since the row before: more than queue_bytes where rows were merged",
                numbers(|row| row.queue_bytes_max.into()),
            ),
            Column::new("sent_bytes", "B", sent, numbers(|row| row.sent_bytes)),
            Column::new("free_ps", "ps", "when the last bit of these packets leaves", numbers(|row| row.free_at.ps())),
        ];
        vec![Table { name: "ports", columns }]
    }
}
