//! Whether what a scheme guarantees of queues and waits holds (Harmony, Theorem 3.1): watched at every packet, on every
//! link.
//!
//! A queue is longest right after a packet has joined and the transmitter, if it was free, has taken one. So the probe
//! looks only then. How long a packet waited in all switches together is known when it arrives. So the probe finds the
//! true maximum of the run, not that of samples. Waits are kept in a histogram of three digits, and the longest of all
//! exactly.
//!
//! Packets that are lost to a failed link or switch are no breach, since bounds concern the packets that the network
//! carries. A packet that is lost because there was no room is a breach.
//!
//! Bounds are computed from the rates of links. Once a link is slower than it should be (a `[[failure]]` with `rate`),
//! no bound holds on any link: packets that it has delayed meet packets that should have come after them. So from then
//! on breaches are counted separately, and are no fault. When the link is repaired, delayed packets are still under
//! way, for an unbounded time. So the guarantee does not come back.

mod findings;

use std::collections::BTreeMap;

use contract::Guarantee;
use node::packet::CLASSES;
use node::pool::Transit;
use node::wire::{Malformed, Reader, Writer};
use node::{Packet, Walk};
use run::{Column, Data, Finding, Plan, Table};
use units::{Duration, LinkId, PortId, SwitchId, Time};

use super::words::{self, Waits};
use crate::{HostSlot, Probe, SwitchSlot, Upcoming, View, Wants, Whole};

/// What a part has seen of a guarantee.
#[derive(node::State)]
pub(crate) struct Watch {
    transport: u8,
    class: u8,
    /// By link: the guarantee, and the most bytes that have waited.
    #[state(built("settings"))]
    queue_bounds: Vec<u64>,
    #[state(skip("what comes again is no longer than it was"))]
    queue_max: Vec<u64>,
    /// By switch, its links in the order of ports.
    #[state(built("settings"))]
    links: Vec<Vec<LinkId>>,
    wait_bound: Duration,
    #[state(skip("what comes again is no longer than it was"))]
    wait_max: Duration,
    /// In picoseconds.
    #[state(by(visit_waits))]
    waits: Waits,
    #[state(same(self.queue_breaches.count))]
    queue_breaches: Breaches<LinkId>,
    #[state(same(self.wait_breaches.count))]
    wait_breaches: Breaches<[u32; 3]>,
    #[state(same(self.end.is_some()))]
    end: Option<End>,
    #[state(skip("it is filled at the end"))]
    last: Last,
}

/// What the nodes of a part counted when the run was over.
#[derive(Clone, Debug, Default, node::Saved)]
struct Last {
    /// By class, packets lost because there was no room.
    lost: [u64; CLASSES],
    /// By flow, how long its message took, and how long it may, where its transport says that.
    delays: BTreeMap<u32, u64>,
    bounds: BTreeMap<u32, u64>,
}

impl Last {
    fn add(&mut self, other: &Last) {
        self.lost = std::array::from_fn(|class| self.lost[class].saturating_add(other.lost[class]));
        self.delays.extend(&other.delays);
        self.bounds.extend(&other.bounds);
    }
}

/// The breaches counted when the guarantee ended, if it did.
#[derive(Clone, Copy, node::Saved)]
struct End {
    at: Time,
    /// Breaches until then: of queues, of waits.
    breaches: [u64; 2],
    /// By class, packets lost because there was no room until then, in the switches of this part.
    lost: [u64; CLASSES],
}

/// How often a bound was exceeded, and the first time: when, by which link or which packet (flow, source, destination),
/// and what was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, node::Saved)]
struct Breaches<T> {
    count: u64,
    first: Option<(Time, T, u64)>,
}

impl<T: Copy + Ord> Breaches<T> {
    const NONE: Breaches<T> = Breaches { count: 0, first: None };

    #[cold]
    fn note(&mut self, at: Time, place: T, seen: u64) {
        self.count += 1;
        self.first.get_or_insert((at, place, seen));
    }

    fn add(self, other: Breaches<T>) -> Breaches<T> {
        let first = [self.first, other.first].into_iter().flatten().min();
        Breaches { count: self.count.saturating_add(other.count), first }
    }

    fn pack(&self, to: &mut Writer<'_>, place: impl Fn(&mut Writer<'_>, T)) {
        to.u64(self.count);
        words::pack_each(to, self.first.into_iter(), |to, (at, of, seen)| {
            to.u64(at.ps());
            place(to, of);
            to.u64(seen);
        });
    }

    fn parse(
        from: &mut Reader<'_>,
        place: impl Fn(&mut Reader<'_>) -> Result<T, Malformed>,
    ) -> Result<Breaches<T>, Malformed> {
        let (count, mut first) = (words::count(from)?, None);
        for _ in 0..from.u64()?.min(1) {
            first = Some((words::time(from)?, place(from)?, words::count(from)?));
        }
        Ok(Breaches { count, first })
    }
}

impl End {
    fn add(self, other: End) -> End {
        End {
            at: self.at,
            breaches: std::array::from_fn(|index| self.breaches[index].saturating_add(other.breaches[index])),
            lost: std::array::from_fn(|class| self.lost[class].saturating_add(other.lost[class])),
        }
    }
}

fn visit_waits<G: ?Sized>(waits: &mut Waits, walk: &mut Walk, _: &G) {
    let recorded = waits.iter_recorded().map(|of| (of.value_iterated_to(), of.count_at_value()));
    for (wait, mut times) in recorded.collect::<Vec<_>>() {
        let more = walk.tallied(wait, &mut times);
        waits.record_n(wait, more).expect("a histogram that resizes takes 2^62 ps");
    }
}

impl Watch {
    /// None if a run guarantees nothing.
    pub fn new(plan: &Plan) -> Option<Watch> {
        let reserved = plan.reserved.as_ref()?;
        let guarantee = reserved.guarantee.as_ref()?;
        let fabric = &plan.fabric;
        let links = |switch| fabric.ports[fabric.switch_node(switch).index()].clone();
        Some(Watch {
            transport: reserved.transport,
            class: guarantee.class,
            queue_bounds: guarantee.queue_bytes.clone(),
            queue_max: vec![0; fabric.links.len()],
            links: (0..fabric.switches).map(SwitchId).map(links).collect(),
            wait_bound: guarantee.wait,
            wait_max: Duration::ZERO,
            waits: Waits::default(),
            queue_breaches: Breaches::NONE,
            wait_breaches: Breaches::NONE,
            end: None,
            last: Last::default(),
        })
    }
}

impl Probe for Watch {
    fn wants(&self) -> Wants {
        Wants { arrivals: true, enqueues: true, ..Wants::default() }
    }

    /// From some change on nothing is guaranteed.
    fn on_change(&mut self, now: Time, change: Upcoming<'_>, view: View<'_>) {
        if let Upcoming::GuaranteeEnds = change {
            let breaches = [self.queue_breaches.count, self.wait_breaches.count];
            self.end = Some(End { at: now, breaches, lost: lost(view.switches.iter()) });
        }
    }

    #[inline]
    fn on_enqueue(&mut self, now: Time, slot: &SwitchSlot, port: PortId) {
        let bytes = u64::from(slot.switch.class_bytes(port, self.class));
        let link = self.links[slot.id as usize][port.index()];
        let max = &mut self.queue_max[link.index()];
        *max = bytes.max(*max);
        if bytes > self.queue_bounds[link.index()] {
            self.queue_breaches.note(now, link, bytes);
        }
    }

    #[inline]
    fn on_arrival(&mut self, now: Time, _: &HostSlot, packet: &Packet, transit: &Transit) {
        if packet.transport != self.transport || packet.class != self.class || packet.payload_bytes == 0 {
            return;
        }
        let wait = transit.queued.iter().copied().fold(Duration::ZERO, |sum, queued| sum + queued);
        self.waits.record(wait.ps()).expect("a histogram that resizes takes 2^62 ps");
        self.wait_max = self.wait_max.max(wait);
        if wait > self.wait_bound {
            self.wait_breaches.note(now, [packet.flow.0, packet.src.0, packet.dst.0], wait.ps());
        }
    }

    fn end(&mut self, view: View<'_>) {
        let measures = || view.hosts.iter().flat_map(|slot| &slot.host.measures);
        let of = |what: &str| -> BTreeMap<u32, u64> {
            measures().filter(|measure| measure.what == what).map(|measure| (measure.flow.0, measure.value)).collect()
        };
        let (delays, bounds) = (of(Guarantee::DELAY), of(Guarantee::DELAY_BOUND));
        self.last = Last { lost: lost(view.switches.iter()), delays, bounds };
    }

    fn pack(&self, to: &mut Writer<'_>) {
        words::pack_each(to, (0u32..).zip(&self.queue_max).filter(|(_, most)| **most > 0), |to, (link, most)| {
            to.u32(link);
            to.u64(*most);
        });
        to.u64(self.wait_max.ps());
        words::pack_histogram(to, &self.waits);
        self.queue_breaches.pack(to, |to, link| to.u32(link.0));
        self.wait_breaches.pack(to, |to, packet| packet.into_iter().for_each(|word| to.u32(word)));
        words::pack_each(to, self.end.iter(), |to, end| {
            to.u64(end.at.ps());
            end.breaches.into_iter().chain(end.lost).for_each(|count| to.u64(count));
        });
        self.last.lost.into_iter().for_each(|count| to.u64(count));
        for of in [&self.last.delays, &self.last.bounds] {
            words::pack_each(to, of.iter(), |to, (flow, ps)| {
                to.u32(*flow);
                to.u64(*ps);
            });
        }
    }

    fn absorb(&mut self, from: &mut Reader<'_>) -> Result<(), Malformed> {
        from.begin("guarantees");
        for _ in 0..from.u64()? {
            let (link, most) = (from.u32()?, words::count(from)?);
            let known = self.queue_max.get_mut(link as usize);
            let max = known.ok_or(Malformed { what: "guarantees: there is no such link" })?;
            *max = most.max(*max);
        }
        self.wait_max = self.wait_max.max(Duration::from_ps(words::count(from)?));
        words::add_histogram(&mut self.waits, from)?;
        let links = self.queue_max.len();
        let queues = Breaches::parse(from, |from| {
            let link = LinkId(from.u32()?);
            (link.index() < links).then_some(link).ok_or(Malformed { what: "guarantees: there is no such link" })
        })?;
        self.queue_breaches = self.queue_breaches.add(queues);
        let waits = Breaches::parse(from, |from| Ok([from.u32()?, from.u32()?, from.u32()?]))?;
        self.wait_breaches = self.wait_breaches.add(waits);
        for _ in 0..from.u64()? {
            let at = words::time(from)?;
            let breaches = [words::count(from)?, words::count(from)?];
            let lost = counts(from)?;
            let other = End { at, breaches, lost };
            self.end = Some(self.end.map_or(other, |end| end.add(other)));
        }
        let mut last = Last { lost: counts(from)?, ..Last::default() };
        for of in [&mut last.delays, &mut last.bounds] {
            for _ in 0..from.u64()? {
                of.insert(from.u32()?, words::count(from)?);
            }
        }
        self.last.add(&last);
        Ok(())
    }

    /// The tables `guarantees` and `guaranteed_waits`; none if the run guarantees nothing.
    fn tables(seen: &[&Watch], whole: &Whole<'_>) -> Vec<Table> {
        Seen::gather(seen).map_or(Vec::new(), |seen| vec![queues(whole.plan, &seen), waits(&seen)])
    }

    /// Whether the queues and waits of the run were within what was guaranteed, and nothing of it was lost for want of
    /// room.
    fn findings(seen: &[&Watch], whole: &Whole<'_>) -> Vec<Finding> {
        Seen::gather(seen).map_or(Vec::new(), |seen| findings::of(&seen, whole))
    }
}

fn counts(from: &mut Reader<'_>) -> Result<[u64; CLASSES], Malformed> {
    let mut counts = [0; CLASSES];
    for count in &mut counts {
        *count = words::count(from)?;
    }
    Ok(counts)
}

/// What all parts have seen together.
struct Seen {
    queue_bounds: Vec<u64>,
    queue_max: Vec<u64>,
    wait_bound: Duration,
    wait_max: Duration,
    waits: Waits,
    queue_breaches: Breaches<LinkId>,
    wait_breaches: Breaches<[u32; 3]>,
    end: Option<End>,
    last: Last,
}

impl Seen {
    fn gather(watches: &[&Watch]) -> Option<Seen> {
        let (first, others) = watches.split_first()?;
        let mut seen = Seen {
            queue_bounds: first.queue_bounds.clone(),
            queue_max: first.queue_max.clone(),
            wait_bound: first.wait_bound,
            wait_max: first.wait_max,
            waits: first.waits.clone(),
            queue_breaches: first.queue_breaches,
            wait_breaches: first.wait_breaches,
            end: first.end,
            last: first.last.clone(),
        };
        for watch in others {
            for (max, other) in seen.queue_max.iter_mut().zip(&watch.queue_max) {
                *max = (*max).max(*other);
            }
            seen.wait_max = seen.wait_max.max(watch.wait_max);
            seen.waits.add(&*watch.waits).expect("a histogram that resizes takes any other");
            seen.queue_breaches = seen.queue_breaches.add(watch.queue_breaches);
            seen.wait_breaches = seen.wait_breaches.add(watch.wait_breaches);
            if let (Some(end), Some(other)) = (seen.end, watch.end) {
                seen.end = Some(end.add(other));
            }
            seen.last.add(&watch.last);
        }
        Some(seen)
    }

    /// The links that switches send on.
    fn rows<'a>(&'a self, plan: &'a Plan) -> impl Iterator<Item = LinkId> + 'a {
        let from_switch = |link: &LinkId| plan.fabric.as_switch(plan.fabric.link(*link).from).is_some();
        (0..self.queue_max.len()).map(LinkId::from).filter(from_switch)
    }

    /// Breaches that are faults, of queues and of waits.
    fn faults(&self) -> [u64; 2] {
        self.end.map_or([self.queue_breaches.count, self.wait_breaches.count], |end| end.breaches)
    }

    /// What a finding says of `all` breaches, of which this many are faults.
    fn excuse(&self, all: u64, faults: u64) -> String {
        self.end.map_or(String::new(), |end| {
            format!(
                "; the guarantee ended at {}, when a link slowed down: {} since then",
                end.at.since(Time::ZERO),
                all - faults
            )
        })
    }

    fn queue_share(&self, link: LinkId) -> f64 {
        share(self.queue_max[link.index()], self.queue_bounds[link.index()])
    }
}

/// The share of a bound that was used. Of a bound of zero: 0 if nothing was used, otherwise infinite.
fn share(most: u64, bound: u64) -> f64 {
    if most == 0 { 0.0 } else { most as f64 / bound as f64 }
}

/// By class, packets lost because there was no room.
fn lost<'a>(switches: impl Iterator<Item = &'a SwitchSlot>) -> [u64; CLASSES] {
    let add = |sum: [u64; CLASSES], slot: &SwitchSlot| {
        let more = slot.switch.overflow_by_class();
        std::array::from_fn(|class| sum[class] + more[class])
    };
    switches.fold([0; CLASSES], add)
}

/// The quantiles of waits that the table has.
const QUANTILES: [f64; 17] =
    [0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 0.999, 0.9999, 0.99999, 1.0];

fn queues(plan: &Plan, seen: &Seen) -> Table {
    let links: Vec<LinkId> = seen.rows(plan).collect();
    let name = |node: &dyn Fn(&fabric::Link) -> units::NodeId| Data::Names {
        index: links.iter().map(|link| node(plan.fabric.link(*link)).0).collect(),
        names: plan.fabric.names.clone(),
    };
    let tier = Data::Names {
        index: links.iter().map(|link| plan.fabric.link(*link).tier as u32).collect(),
        names: ["from_host", "up", "down", "to_host"].map(str::to_owned).to_vec(),
    };
    let bytes = |of: &[u64]| Data::U64(links.iter().map(|link| of[link.index()]).collect());
    Table {
        name: "guarantees",
        columns: vec![
            Column::new(
                "link",
                "",
                "number of the directed link",
                Data::U32(links.iter().map(|link| link.index() as u32).collect()),
            ),
            Column::new("from_node", "", "sending switch", name(&|link| link.from)),
            Column::new("to_node", "", "receiving node", name(&|link| link.to)),
            Column::new("tier", "", "up, down or to_host", tier),
            Column::new(
                "queue_bound_bytes",
                "B",
                "bound: the most bytes of the guaranteed class that may queue for it",
                bytes(&seen.queue_bounds),
            ),
            Column::new("queue_max_bytes", "B", "the most bytes of that class that did", bytes(&seen.queue_max)),
            Column::new(
                "share",
                "",
                "queue_max_bytes / queue_bound_bytes: above 1, the guarantee was broken",
                Data::F64(links.iter().map(|link| seen.queue_share(*link)).collect()),
            ),
        ],
    }
}

fn waits(seen: &Seen) -> Table {
    let (bound, longest) = (seen.wait_bound.ps(), seen.wait_max.ps());
    let wait = |quantile| if quantile == 1.0 { longest } else { seen.waits.value_at_quantile(quantile).min(longest) };
    let waits = QUANTILES.map(wait);
    Table {
        name: "guaranteed_waits",
        columns: vec![
            Column::new(
                "quantile",
                "",
                "the quantile: the share of data packets that waited no longer",
                Data::F64(QUANTILES.to_vec()),
            ),
            Column::new(
                "wait_ps",
                "ps",
                "their longest total wait in switches; to three digits, except for the last row, which is exact",
                Data::U64(waits.to_vec()),
            ),
            Column::new(
                "wait_bound_ps",
                "ps",
                "bound: the longest total wait that is allowed",
                Data::U64(vec![bound; waits.len()]),
            ),
            Column::new(
                "share",
                "",
                "wait_ps / wait_bound_ps: above 1, the guarantee was broken",
                Data::F64(waits.iter().map(|&wait| share(wait, bound)).collect()),
            ),
        ],
    }
}

#[cfg(test)]
mod tests;
