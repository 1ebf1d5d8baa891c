//! A switch's part: the tables of both pipelines, and its part of the controller's work.
//!
//! A packet meets at most two AQs here (section 4.2): the one of its first tag at ingress, before it joins a queue, and
//! the one of its second tag at egress, as it leaves. Each may drop it, mark it, and add to its virtual queueing delay.
//!
//! Tenants make and release requests at the times that the scenario sets. Rates follow what arrives, period by period
//! ([`Config::idle_after`], [`WorkConserving::Reallocate`]). Orders take effect at once, since the paper gives no time
//! for them.

use std::collections::{BTreeMap, VecDeque};

use node::packet::flags;
use node::telemetry::HopRecord;
use node::{Packet, Port, Stages, TagStats};
use rustc_hash::FxHashMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Bytes, Duration, PortId, Problem, Rate, Stream, Time};

use super::{
    AqId, Controller, Limit, LinkSpec, Order, Place, Position, Share, Step, SwitchError, Table, WorkConserving,
};

/// Configuration of Augmented Queue.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "AqConfig")]
pub struct Config {
    /// How the limit of each AQ is set. Default: `derived`.
    pub limit: Limit,
    /// Share of each link that no AQ gets, at least 0 and below 1. If AQs fill a link completely, its physical queue
    /// never drains what has once gathered there. Default: 0.
    pub headroom: f64,
    /// A share for an AQ for all packets without one, on each link with a request. Default: none; such packets take
    /// what they can, including granted bandwidth.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub untagged: Option<Share>,
    /// What happens to bandwidth that is allocated and not used. Default: it stays idle.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub work_conserving: Option<WorkConserving>,
    /// Period of silence after which a weighted entity is idle and its weight no longer counts. 0 always counts all
    /// weights. Default: as long as an entity with data to send may be silent: a round trip, the drain time of the
    /// physical queue, and twice the greater of 1 ms and a packet at its rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-least" = "1us", "x-zero" = true))]
    pub idle_after: Option<Duration>,
}

/// Default time between checks for idle entities.
const PERIOD: Duration = Duration::from_ms(1);

impl Default for Config {
    /// The physical queue's limit divided as in section 6, with a derived minimum. The paper has no headroom and no AQ
    /// for untagged packets.
    fn default() -> Config {
        Config { limit: Limit::Derived, headroom: 0.0, untagged: None, work_conserving: None, idle_after: None }
    }
}

impl Config {
    /// Time between measurements; zero for never.
    fn period(&self) -> Duration {
        match self.work_conserving {
            Some(WorkConserving::Reallocate { period, .. }) => period,
            _ => self.idle_after.unwrap_or(PERIOD),
        }
    }
}

/// Most pairs of limit and CC fields in a table.
const POLICIES: usize = 1 << 16;

/// A switch's AQs.
#[derive(node::State)]
#[state(first(
    walk.refuse_if(self.told, "Augmented Queues have put telemetry into packets, whose counters move with theirs")
))]
#[state(first(walk.outside(self.steps.front().map_or(Time::MAX, |step| step.0))))]
pub struct SwitchPart {
    controller: Controller,
    /// The tables, by [`Position`].
    tables: [Table; 2],
    #[state(built("settings"))]
    conserving: Option<WorkConserving>,
    /// Requests and releases to come, earliest first.
    #[state(same(self.steps.len()))]
    steps: VecDeque<(Time, Step)>,
    period: Duration,
    #[state(when(self.measured > 0, time))]
    measure_at: Time,
    #[state(when(self.measured > 0, time))]
    measured_at: Time,
    sweep_at: Time,
    /// Counters of each AQ that has ever been here.
    counts: FxHashMap<u32, Count>,
    /// Number of AQs whose rates depend on what arrives.
    measured: usize,
    /// By port and position: the AQ of untagged packets.
    #[state(skip("settings"))]
    untagged: Vec<[Option<AqId>; 2]>,
    random: Stream,
    /// Whether an AQ has put telemetry into a packet.
    told: bool,
}

/// Counters of an AQ.
#[derive(Clone, Copy, Debug, Default, node::State)]
struct Count {
    /// Whether the AQ's rate depends on its arrivals.
    measured: bool,
    /// Bytes that arrived in this period.
    #[state(count)]
    arrived: u64,
    /// Its guarantee, and what that carries in a round trip.
    guarantee: Rate,
    round: u64,
    stats: TagStats,
}

impl Count {
    /// Whether what has arrived in a period that has lasted for `span` is within the guarantee. A window may come at
    /// once, so a round trip more than that is.
    #[inline]
    fn is_within(&self, span: Duration) -> bool {
        self.arrived <= self.guarantee.bytes_in(span) + self.round
    }
}

impl SwitchPart {
    /// A switch with these links and these requests and releases, in order of time.
    pub fn new(
        config: &Config,
        links: &[LinkSpec],
        steps: Vec<(Time, Step)>,
        random: Stream,
    ) -> Result<SwitchPart, SwitchError> {
        let lends = config.work_conserving.is_some_and(|conserving| conserving.lends());
        let mut controller = Controller::new(config.limit, config.work_conserving)
            .map_err(SwitchError::Setting)?
            .with_derived_idle(config.idle_after.is_none() || lends);
        for &link in links {
            let capacity = link.capacity.mul_f64(1.0 - config.headroom);
            controller.add_link(LinkSpec { capacity, ..link }).map_err(SwitchError::Setting)?;
        }
        let mut part = SwitchPart {
            controller,
            tables: Default::default(),
            conserving: config.work_conserving,
            steps: VecDeque::new(),
            period: config.period(),
            measure_at: if config.period() == Duration::ZERO { Time::MAX } else { Time::ZERO + config.period() },
            measured_at: Time::ZERO,
            sweep_at: Time::MAX,
            counts: FxHashMap::default(),
            measured: 0,
            untagged: Vec::new(),
            random,
            told: false,
        };
        let reallocates = config.work_conserving.is_some_and(WorkConserving::lends);
        // Derived limits are rounded, so there are few different ones.
        if reallocates && matches!(config.limit, Limit::Divided { .. }) && steps.len() > POLICIES {
            let message = format!(
                "re-allocation gives each of {} AQs a different rate and so a different limit, and a switch holds \
                 {POLICIES} different limits; write \"derived\", \"queue\" or a fixed limit",
                steps.len()
            );
            return Err(SwitchError::Setting(Problem::new("limit.divided", message)));
        }
        part.rehearse(&steps)?;
        part.steps = steps.into();
        part.wake(Time::ZERO);
        Ok(part)
    }

    /// The same switch with AQs for untagged packets by output port. Their requests are among the steps.
    pub fn with_untagged(mut self, untagged: impl IntoIterator<Item = (PortId, Position, AqId)>) -> SwitchPart {
        for (port, position, id) in untagged {
            let ports = self.untagged.len().max(port.index() + 1);
            self.untagged.resize(ports, [None; 2]);
            self.untagged[port.index()][position as usize] = Some(id);
        }
        self
    }

    /// Checks that all requests will be granted. The grants of a link at any time do not depend on the run.
    fn rehearse(&mut self, steps: &[(Time, Step)]) -> Result<(), SwitchError> {
        let mut granted = Vec::new();
        for (_, step) in steps {
            match *step {
                Step::Request(id, request) => {
                    self.controller.request(id, request).map_err(|why| SwitchError::Declined(id, why.to_string()))?;
                    granted.push(id);
                }
                Step::Release(id) => self.controller.release(id).expect("it was requested before"),
            }
        }
        for id in granted {
            let _ = self.controller.release(id); // it may have been already
        }
        while self.controller.poll_order().is_some() {}
        Ok(())
    }

    /// Number of AQs deployed, in both pipelines.
    pub fn deployed(&self) -> usize {
        self.tables.iter().map(Table::len).sum()
    }

    /// Memory of both tables.
    pub fn memory(&self) -> Bytes {
        Bytes(self.tables.iter().map(|table| table.memory().get()).sum())
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Request(id, request) => {
                self.controller.request(id, request).expect("rehearsed");
                let measured = self.controller.is_measured(id) && self.period > Duration::ZERO;
                self.measured += usize::from(measured);
                let (guarantee, round) = self.controller.guarantee(id).unwrap_or_default();
                self.counts.insert(id.tag(), Count { measured, guarantee, round, ..Count::default() });
            }
            Step::Release(id) => {
                self.controller.release(id).expect("rehearsed");
                let count = self.counts.get_mut(&id.tag()).expect("it was requested");
                self.measured -= usize::from(std::mem::take(&mut count.measured));
            }
        }
    }

    fn measure(&mut self) {
        let places: Vec<Place> = self.controller.places().collect();
        for place in places {
            let counts = &self.counts;
            let arrived = |id: AqId| Bytes(counts.get(&id.tag()).map_or(0, |count| count.arrived));
            self.controller.measured(place, self.period, arrived);
        }
        let lends = self.conserving.is_some_and(WorkConserving::lends);
        for (&tag, count) in &mut self.counts {
            count.arrived = 0;
            if lends {
                let guarantee = AqId::from_tag(tag).and_then(|id| self.controller.guarantee(id));
                (count.guarantee, count.round) = guarantee.unwrap_or_default();
            }
        }
    }

    fn carry_out(&mut self, now: Time) {
        while let Some(order) = self.controller.poll_order() {
            match order {
                Order::Deploy { place, id, rate, policy } => self.tables[place.position as usize]
                    .deploy(now, id, rate, policy)
                    .expect("requests of one scenario differ in far less than 65,536 ways"),
                Order::Withdraw { place, id } => {
                    self.tables[place.position as usize].withdraw(id);
                }
            }
        }
    }

    /// Passes a packet through its AQ (Algorithm 2).
    #[inline]
    fn arrive(&mut self, now: Time, position: Position, out: PortId, port: &Port, packet: &mut Packet) -> bool {
        // A tag for other switches has no meaning here.
        let mut tag = packet.tags()[position as usize];
        if !self.untagged.is_empty() && (tag == 0 || !self.counts.contains_key(&tag)) {
            tag = self.of_untagged(out, position).map_or(0, AqId::tag);
        }
        let Some(id) = AqId::from_tag(tag) else { return true };
        let Some(count) = self.counts.get_mut(&tag) else { return true };
        let bytes = packet.wire_bytes;
        count.arrived += u64::from(bytes);
        let queued = port.queued_bytes();
        // Only what was lent yields to the physical queue.
        let lends = self.conserving.is_some_and(WorkConserving::lends);
        let yields = lends && queued > 0 && !count.is_within(now.since(self.measured_at));
        let seen = if yields { queued } else { 0 };
        let bypass = self.conserving.is_some_and(|conserving| conserving.bypasses(Bytes(u64::from(queued))));
        let verdict = self.tables[position as usize].arrive_at(now, id, bytes, seen, bypass, &mut self.random);
        let queued = if verdict.told { port.rate().transmit(u64::from(queued)) } else { Duration::ZERO };
        let delay_ns = u32::try_from((verdict.virtual_delay + queued).ps() / 1_000).unwrap_or(u32::MAX);
        packet.virtual_delay_ns = packet.virtual_delay_ns.saturating_add(delay_ns);
        if !verdict.pass {
            count.stats.dropped_packets += 1;
            count.stats.dropped_bytes += u64::from(bytes);
            return false;
        }
        count.stats.passed_packets += 1;
        count.stats.passed_bytes += u64::from(bytes);
        if verdict.mark && packet.has(flags::ECT) {
            packet.flags |= flags::CE;
            count.stats.marked_packets += 1;
        }
        true
    }

    /// The AQ of an untagged packet.
    #[inline]
    fn of_untagged(&self, out: PortId, position: Position) -> Option<AqId> {
        self.untagged.get(out.index()).and_then(|ids| ids[position as usize])
    }
}

impl Stages for SwitchPart {
    fn ingress(&mut self, now: Time, out: PortId, port: &Port, packet: &mut Packet) -> bool {
        self.arrive(now, Position::Ingress, out, port, packet)
    }

    fn egress(&mut self, now: Time, out: PortId, port: &Port, packet: &mut Packet) -> bool {
        self.arrive(now, Position::Egress, out, port, packet)
    }

    /// The utilisation of the AQ that has the longer virtual delay of the packet's two: rate R, what has passed, and
    /// the A-Gap without the packet as the queue. HPCC (section 7) then sees a network of that rate, as Swift does.
    fn tell(&mut self, now: Time, packet: &Packet) -> Option<HopRecord> {
        let tags = packet.tags();
        let of = |position: Position| {
            let id = AqId::from_tag(tags[position as usize])?;
            let (rate, gap) = self.tables[position as usize].get(now, id)?;
            Some((gap.virtual_delay(rate), rate, gap, self.counts.get(&id.tag())?.stats.passed_bytes))
        };
        let slowest = [Position::Ingress, Position::Egress].into_iter().filter_map(of).max_by_key(|of| of.0);
        let (_, rate, gap, passed_bytes) = slowest?;
        self.told = true;
        let waiting = gap.bytes().get().saturating_sub(u64::from(packet.wire_bytes));
        Some(HopRecord::new(rate.rate(), now, passed_bytes, waiting as u32))
    }

    fn poll_at(&self) -> Time {
        let measure_at = if self.measured == 0 { Time::MAX } else { self.measure_at };
        self.steps.front().map_or(Time::MAX, |step| step.0).min(measure_at).min(self.sweep_at)
    }

    fn wake(&mut self, now: Time) {
        while let Some(&(_, step)) = self.steps.front().filter(|(at, _)| *at <= now) {
            self.steps.pop_front();
            self.step(step);
        }
        if self.measure_at <= now {
            if self.measured > 0 {
                self.measure();
            }
            self.measured_at = now;
            let passed = now.since(Time::ZERO).ps() / self.period.ps();
            self.measure_at = Time::ZERO + self.period * (passed + 1);
        }
        if self.sweep_at <= now {
            self.tables.iter_mut().for_each(|table| table.sweep(now));
            self.sweep_at = Time::MAX;
        }
        self.carry_out(now);
        for table in self.tables.iter().filter(|table| !table.is_empty()) {
            self.sweep_at = self.sweep_at.min(now + table.sweep_period());
        }
    }

    // The map sorts them, so their order does not matter.
    #[expect(clippy::disallowed_methods)]
    fn tag_stats(&self) -> BTreeMap<u32, TagStats> {
        self.counts.iter().map(|(&tag, count)| (tag, count.stats)).collect()
    }
}

#[cfg(test)]
mod tests;
