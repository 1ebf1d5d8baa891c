//! What entities get: how many bytes arrive for each in each interval, and how long packets have waited.
//!
//! Waiting times are recorded twice: those in real queues, and the virtual queueing delay, which AQs add up in packets
//! (Augmented Queue, section 5.5 compares the two). Histograms hold three digits, so quantiles are within 0.1%, in
//! constant memory however long the run is.

mod aqs;

use std::collections::BTreeMap;
use std::sync::Arc;

use node::pool::Transit;
use node::wire::{Malformed, Reader, Writer};
use node::{Packet, TagStats, Walk};
use run::{Column, Data, Entities, FlowTable, Plan, Table};
use units::{Duration, SwitchId, Time};

use super::words::{self, Waits};
use crate::{HostSlot, Probe, View, Wants, Whole};

/// What has arrived at the hosts of a part.
#[derive(node::State)]
pub(crate) struct EntityProbe {
    entities: Arc<Entities>,
    flows: Arc<FlowTable>,
    /// The transport that packets of attached hosts name.
    outside: Option<u8>,
    /// Payload since the last sample, by entity.
    now: Vec<Arrived>,
    /// Samples in which anything arrived, by time and entity.
    #[state(same(self.samples.len()))]
    samples: Vec<(Time, u16, Arrived)>,
    /// By entity: waiting in queues and virtual queueing delay, in nanoseconds.
    #[state(each(each(by(visit_waits))))]
    waits: Vec<[Waits; 2]>,
    /// At the end: what the part's switches counted, by switch and AQ.
    #[state(skip("it is filled at the end"))]
    aqs: BTreeMap<(SwitchId, u32), TagStats>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, node::State)]
#[state(counts)]
struct Arrived {
    delivered: u64,
    received: u64,
}

impl Arrived {
    fn add(&mut self, other: Arrived) {
        self.delivered += other.delivered;
        self.received += other.received;
    }
}

fn visit_waits<G: ?Sized>(waits: &mut Waits, walk: &mut Walk, _: &G) {
    let recorded = waits.iter_recorded().map(|of| (of.value_iterated_to(), of.count_at_value()));
    let recorded: Vec<(u64, u64)> = recorded.collect();
    walk.same(recorded.len());
    for (value, mut count) in recorded {
        walk.same(value);
        let more = walk.count(&mut count);
        if more > 0 {
            let least = waits.lowest_equivalent(value);
            waits.record_n(least, more).expect("this value was recorded before");
        }
    }
}

impl EntityProbe {
    /// None if a run has no entities.
    pub fn new(plan: &Plan) -> Option<EntityProbe> {
        let count = plan.entities.names.len();
        (count > 0).then(|| EntityProbe {
            entities: plan.entities.clone(),
            flows: plan.flows.clone(),
            outside: plan.outside,
            now: vec![Arrived::default(); count],
            samples: Vec::new(),
            waits: (0..count).map(|_| [Waits::default(), Waits::default()]).collect(),
            aqs: BTreeMap::new(),
        })
    }
}

impl Probe for EntityProbe {
    fn wants(&self) -> Wants {
        Wants { arrivals: true, samples: true, ..Wants::default() }
    }

    #[inline]
    fn on_arrival(&mut self, _: Time, _: &HostSlot, packet: &Packet, transit: &Transit) {
        let [group, source, destination] = match self.flows.try_get(packet.flow) {
            Some(flow) => self.entities.of(&flow, packet),
            None if self.outside == Some(packet.transport) => self.entities.of_outside(packet),
            None => return,
        };
        let bytes = u64::from(packet.payload_bytes);
        let queued: Duration = transit.queued.iter().copied().fold(Duration::ZERO, |sum, queued| sum + queued);
        let waited = [queued.ps() / 1_000, u64::from(packet.virtual_delay_ns)];
        for entity in [group, source].into_iter().flatten() {
            self.now[usize::from(entity)].delivered += bytes;
            for (histogram, ns) in self.waits[usize::from(entity)].iter_mut().zip(waited) {
                histogram.record(ns).expect("a histogram that resizes takes 2^62 ns");
            }
        }
        if let Some(entity) = destination {
            self.now[usize::from(entity)].received += bytes;
        }
    }

    fn on_sample(&mut self, now: Time, _: View<'_>) {
        for (entity, arrived) in self.now.iter_mut().enumerate() {
            if *arrived != Arrived::default() {
                self.samples.push((now, entity as u16, std::mem::take(arrived)));
            }
        }
    }

    fn on_thin(&mut self, interval: Duration) {
        let mut sums: BTreeMap<(Time, u16), Arrived> = BTreeMap::new();
        for (at, entity, arrived) in self.samples.drain(..) {
            sums.entry((at.next_multiple_of(interval), entity)).or_default().add(arrived);
        }
        self.samples.extend(sums.into_iter().map(|((at, entity), arrived)| (at, entity, arrived)));
    }

    fn end(&mut self, view: View<'_>) {
        for slot in view.switches {
            let of_switch = slot.switch.tag_stats().into_iter();
            self.aqs.extend(of_switch.map(|(aq, stats)| ((SwitchId(slot.id), aq), stats)));
        }
    }

    fn pack(&self, to: &mut Writer<'_>) {
        self.now.iter().for_each(|arrived| [arrived.delivered, arrived.received].into_iter().for_each(|b| to.u64(b)));
        words::pack_each(to, self.samples.iter(), |to, (at, entity, arrived)| {
            to.u64(at.ps());
            to.u16(*entity);
            to.u64(arrived.delivered);
            to.u64(arrived.received);
        });
        self.waits.iter().flatten().for_each(|waits| words::pack_histogram(to, waits));
        words::pack_each(to, self.aqs.iter(), |to, ((switch, aq), stats)| {
            to.u32(switch.0);
            to.u32(*aq);
            let TagStats { passed_packets, passed_bytes, dropped_packets, dropped_bytes, marked_packets } = *stats;
            let counts = [passed_packets, passed_bytes, dropped_packets, dropped_bytes, marked_packets];
            counts.into_iter().for_each(|count| to.u64(count));
        });
    }

    fn absorb(&mut self, from: &mut Reader<'_>) -> Result<(), Malformed> {
        from.begin("arrivals for entities");
        // Samples and what came since the last one are of bytes, of which sums must fit.
        let arrived = |from: &mut Reader<'_>| {
            let (delivered, received) = (words::count(from)?, words::count(from)?);
            let sound = delivered.max(received) < 1 << 50;
            sound.then_some(Arrived { delivered, received }).ok_or(Malformed { what: "bytes of an entity" })
        };
        for now in &mut self.now {
            now.add(arrived(from)?);
        }
        for _ in 0..from.u64()? {
            let (at, entity) = (words::time(from)?, from.u16()?);
            if usize::from(entity) >= self.now.len() {
                return Err(Malformed { what: "arrivals for entities: there is no such entity" });
            }
            self.samples.push((at, entity, arrived(from)?));
        }
        for waits in self.waits.iter_mut().flatten() {
            words::add_histogram(waits, from)?;
        }
        for _ in 0..from.u64()? {
            let (switch, aq) = (SwitchId(from.u32()?), from.u32()?);
            let mut count = || words::count(from);
            let stats = TagStats {
                passed_packets: count()?,
                passed_bytes: count()?,
                dropped_packets: count()?,
                dropped_bytes: count()?,
                marked_packets: count()?,
            };
            self.aqs.entry((switch, aq)).or_insert(stats);
        }
        Ok(())
    }

    /// The tables `entities`, `waits` and `aqs`; none if the run has no entities.
    fn tables(seen: &[&EntityProbe], whole: &Whole<'_>) -> Vec<Table> {
        if seen.is_empty() {
            return Vec::new();
        }
        let counted = seen.iter().flat_map(|probe| probe.aqs.iter().map(|(place, stats)| (*place, *stats))).collect();
        vec![arrivals(seen, whole), waits(seen, whole.plan), aqs::table(whole.plan, &counted)]
    }
}

fn arrivals(seen: &[&EntityProbe], whole: &Whole<'_>) -> Table {
    let (plan, end) = (whole.plan, whole.end);
    let count = plan.entities.names.len();
    let interval = whole.sample_interval;
    let rest = seen.iter().flat_map(|probe| (0u16..).zip(&probe.now).map(|(entity, &arrived)| (end, entity, arrived)));
    let mut cells: BTreeMap<(Time, u16), Arrived> = BTreeMap::new();
    // Every entity has a row in every interval, also where nothing arrived: a mean over rows is a mean over time.
    let mut at = Time::ZERO;
    while interval > Duration::ZERO && at.saturating_add(interval) <= end {
        at += interval;
        cells.extend((0..count as u16).map(|entity| ((at, entity), Arrived::default())));
    }
    for (at, entity, arrived) in seen.iter().flat_map(|probe| probe.samples.iter().copied()).chain(rest) {
        if arrived != Arrived::default() || cells.contains_key(&(at, entity)) {
            cells.entry((at, entity)).or_default().add(arrived);
        }
    }
    let sum = |value: &dyn Fn(&Arrived) -> u64| Data::U64(cells.values().map(value).collect());
    Table {
        name: "entities",
        columns: vec![
            Column::new(
                "time_ps",
                "ps",
                "end of the interval",
                Data::U64(cells.keys().map(|key| key.0.ps()).collect()),
            ),
            Column::new("entity", "", "whose", names(plan, cells.keys().map(|key| u32::from(key.1)).collect())),
            Column::new(
                "delivered_bytes",
                "B",
                "payload sent by the entity that arrived in the interval; repeated packets count again",
                sum(&|arrived| arrived.delivered),
            ),
            Column::new(
                "received_bytes",
                "B",
                "payload that arrived at its hosts in the interval; 0 for a group of flows",
                sum(&|arrived| arrived.received),
            ),
        ],
    }
}

fn waits(seen: &[&EntityProbe], plan: &Plan) -> Table {
    let kinds = ["physical", "virtual"].map(str::to_owned).to_vec();
    let mut rows = Vec::new();
    for entity in 0..plan.entities.names.len() {
        for kind in 0..kinds.len() {
            let mut all = Waits::default();
            for probe in seen {
                all.add(&*probe.waits[entity][kind]).expect("a histogram that resizes takes any other");
            }
            rows.push((entity as u32, kind as u32, all));
        }
    }
    let ns = |value: &dyn Fn(&Waits) -> u64| Data::U64(rows.iter().map(|(.., all)| value(all)).collect());
    Table {
        name: "waits",
        columns: vec![
            Column::new(
                "entity",
                "",
                "entity that the packets belong to",
                names(plan, rows.iter().map(|row| row.0).collect()),
            ),
            Column::new(
                "queue",
                "",
                "physical: waiting in all queues on the path; virtual: virtual queueing delay of all AQs on the path",
                Data::Names { index: rows.iter().map(|row| row.1).collect(), names: kinds },
            ),
            Column::new("packets", "", "data packets that arrived", ns(&|all| all.len())),
            Column::new("mean_ns", "ns", "mean wait", Data::F64(rows.iter().map(|(.., all)| all.mean()).collect())),
            Column::new("p50_ns", "ns", "median", ns(&|all| all.value_at_quantile(0.5))),
            Column::new("p95_ns", "ns", "95th percentile", ns(&|all| all.value_at_quantile(0.95))),
            Column::new("p99_ns", "ns", "99th percentile", ns(&|all| all.value_at_quantile(0.99))),
            Column::new("max_ns", "ns", "longest", ns(&|all| all.max())),
        ],
    }
}

fn names(plan: &Plan, index: Vec<u32>) -> Data {
    Data::Names { index, names: plan.entities.names.clone() }
}
