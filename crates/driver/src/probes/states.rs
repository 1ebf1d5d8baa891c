//! The state that the two hosts of some flows keep for them, over time: windows, rates, tokens, bytes in flight, in the
//! words of each transport (`measure.flows`).
//!
//! There is a row for each value that has changed after its host has acted. So at any time, the last row of a name is
//! the current value. Samples at fixed intervals would miss what matters: a short flow is over within one, and a window
//! is cut and grows again, or tokens come and are used, between two. As each row is a change, a flow that waits costs
//! nothing, and `rows_max` bounds the rest.
//!
//! Whenever a host acts, the probe reads the state of all of its followed flows that are under way. It can't read only
//! those that the host acted on, because one event may change other flows: a match of dcPIM is with a sender, and R2C2
//! computes the rates of all flows together.

use std::collections::BTreeSet;
use std::sync::Arc;

use node::FlowState;
use node::wire::{Malformed, Reader, Writer};
use run::{Column, Data, FlowEvent, FlowRecord, Followed, Plan, Table, host_names};
use rustc_hash::FxHashMap;
use units::{FlowId, HostId, Time};

use super::words;
use crate::first_rows::{FirstRows, Timed};
use crate::{HostSlot, Probe, Wants, Whole};

/// What a part's hosts have said.
#[derive(node::State)]
#[state(refuse("measure.flows notes the states of flows"))]
pub(crate) struct States {
    followed: Arc<Followed>,
    /// Of the part's hosts that have acted.
    hosts: FxHashMap<HostId, Watched>,
    rows: FirstRows<Row>,
    /// What a flow's host says now.
    said: FlowState,
}

/// The flows of a host.
#[derive(Default, node::Saved)]
struct Watched {
    /// How many of those from and to here have begun.
    begun: usize,
    /// Flows under way, and what was said of each.
    open: Vec<(FlowId, Vec<(&'static str, u64)>)>,
    /// How many of the host's records have been seen.
    records: usize,
}

/// A change.
#[derive(Clone, Copy, node::Saved)]
struct Row {
    at: Time,
    host: HostId,
    flow: FlowId,
    name: &'static str,
    /// None from when on nothing is said.
    value: Option<u64>,
}

impl Timed for Row {
    fn time(&self) -> Time {
        self.at
    }
}

impl States {
    /// None if no flow is followed.
    pub fn new(plan: &Plan) -> Option<States> {
        let followed = plan.followed.clone()?;
        Some(States {
            rows: FirstRows::new(followed.rows_max),
            followed,
            hosts: FxHashMap::default(),
            said: FlowState::default(),
        })
    }

    /// Whether what changes now is recorded.
    fn wants_now(&mut self, now: Time) -> bool {
        if now < self.followed.from || now >= self.followed.until {
            return false;
        }
        self.rows.wants(now)
    }
}

impl Watched {
    /// Begins with those whose time has come. A message that is submitted again begins again.
    fn begin(&mut self, now: Time, followed: &Followed, slot: &HostSlot) {
        while let Some(&(_, flow)) = followed.of(slot.host.id()).get(self.begun).filter(|(begins, _)| *begins <= now) {
            self.begun += 1;
            self.open.push((flow, Vec::new()));
        }
        for record in &slot.host.records[self.records..] {
            let again = matches!(record.fate, FlowEvent::Resubmitted) && followed.has(record.flow);
            if again && !self.open.iter().any(|(flow, _)| *flow == record.flow) {
                self.open.push((record.flow, Vec::new()));
            }
        }
    }

    /// Flows that have ended here.
    fn ended(&mut self, slot: &HostSlot) -> Vec<FlowId> {
        let new = &slot.host.records[std::mem::replace(&mut self.records, slot.host.records.len())..];
        let ends = |record: &&FlowRecord| !matches!(record.fate, FlowEvent::Started | FlowEvent::Resubmitted);
        new.iter().filter(ends).map(|record| record.flow).collect()
    }
}

impl Probe for States {
    fn wants(&self) -> Wants {
        Wants { hosts: true, ..Wants::default() }
    }

    fn on_host(&mut self, now: Time, slot: &HostSlot) {
        if !self.wants_now(now) {
            return;
        }
        let host = slot.host.id();
        let watched = self.hosts.entry(host).or_default();
        watched.begin(now, &self.followed, slot);
        let ended = watched.ended(slot);
        for (flow, known) in &mut watched.open {
            let flow = *flow;
            self.said.clear();
            if !ended.contains(&flow) {
                slot.host.flow_state(flow, &mut self.said);
            }
            let said = self.said.said();
            if said == *known {
                continue;
            }
            let new = said.iter().filter(|said| !known.contains(said)).map(|&(name, value)| (name, Some(value)));
            let over = known.iter().filter(|(name, _)| self.said.of(name).is_none()).map(|&(name, _)| (name, None));
            let rows = new.chain(over).map(|(name, value)| Row { at: now, host, flow, name, value });
            rows.for_each(|row| self.rows.push(row));
            known.clear();
            known.extend(said);
        }
        watched.open.retain(|(flow, _)| !ended.contains(flow));
    }

    fn pack(&self, to: &mut Writer<'_>) {
        to.u8(self.rows.more.into());
        words::pack_each(to, self.rows.iter(), |to, row| {
            to.u64(row.at.ps());
            to.u32(row.host.0);
            to.u32(row.flow.0);
            words::pack_text(to, row.name);
            to.u8(row.value.is_some().into());
            to.u64(row.value.unwrap_or_default());
        });
    }

    fn absorb(&mut self, from: &mut Reader<'_>) -> Result<(), Malformed> {
        from.begin("states of flows");
        self.rows.more |= from.u8()? != 0;
        let mut names: BTreeSet<&'static str> = self.rows.iter().map(|row| row.name).collect();
        for _ in 0..from.u64()? {
            let (at, host, flow) = (words::time(from)?, HostId(from.u32()?), FlowId(from.u32()?));
            let name = words::name(&mut names, from)?;
            let (has_value, value) = (from.u8()? != 0, from.u64()?);
            self.rows.push(Row { at, host, flow, name, value: has_value.then_some(value) });
        }
        Ok(())
    }

    /// The table `states`; none if no flow is followed.
    fn tables(seen: &[&States], whole: &Whole<'_>) -> Vec<Table> {
        let Some(followed) = &whole.plan.followed else { return Vec::new() };
        if seen.is_empty() {
            return Vec::new();
        }
        let mut rows: Vec<&Row> = seen.iter().flat_map(|states| &states.rows).collect();
        rows.sort_by_key(|row| (row.at, row.host));
        rows.truncate(usize::try_from(followed.rows_max).unwrap_or(usize::MAX));
        let mut names: Vec<String> = Vec::new();
        let index = rows.iter().map(|row| {
            let known = names.iter().position(|name| name == row.name).unwrap_or_else(|| {
                names.push(row.name.to_owned());
                names.len() - 1
            });
            known as u32
        });
        let index = index.collect();
        let small = |of: fn(&Row) -> u32| Data::U32(rows.iter().map(|row| of(row)).collect());
        // The highest number stands for none.
        let value = |row: &&Row| row.value.map_or(u64::MAX, |value| value.min(u64::MAX - 1));
        let columns = vec![
            Column::new(
                "time_ps",
                "ps",
                "when the value changed",
                Data::U64(rows.iter().map(|row| row.at.ps()).collect()),
            ),
            Column::new("flow", "", "whose it is", small(|row| row.flow.0)),
            Column::new("host", "", "host of the state: the flow's sender or receiver", small(|row| row.host.0)),
            Column::new("host_name", "", "its name", host_names(&whole.plan.fabric, rows.iter().map(|row| row.host))),
            Column::new("state", "", "name of the value, in the words of the transport", Data::Names { index, names }),
            Column::new(
                "value",
                "",
                "the new value, in the unit that ends its name; null once the host has forgotten the flow",
                Data::OptU64(rows.iter().map(value).collect()),
            ),
        ];
        vec![Table { name: "states", columns }]
    }

    fn notes(seen: &[&States], whole: &Whole<'_>) -> Vec<String> {
        let Some(followed) = &whole.plan.followed else { return Vec::new() };
        let rows: usize = seen.iter().map(|states| states.rows.len()).sum();
        if rows as u64 <= followed.rows_max && seen.iter().all(|states| !states.rows.more) {
            return Vec::new();
        }
        vec![format!(
            "measure.flows: only the first {} changes are recorded; follow fewer flows, by number, class, host or \
             time, or set measure.flows.rows_max",
            followed.rows_max
        )]
    }
}
