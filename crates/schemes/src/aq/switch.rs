//! The part of a switch: both pipelines' tables, and its share of the controller's work.
//!
//! A packet meets at most two AQs here (section 4.2): at ingress the one of its first tag, before it joins a queue; at
//! egress that of its second, as it leaves. Either may drop it, mark it, and add to its virtual queueing delay.
//!
//! Tenants' requests and releases come at times that the scenario has set. Rates follow what has arrived, period by
//! period ([`Config::idle_after`], [`WorkConserving::Reallocate`]); orders take effect at once, since the paper
//! gives no time for them.

use std::collections::{BTreeMap, VecDeque};

use node::packet::flags;
use node::{Packet, Port, Stages, TagStats};
use rustc_hash::FxHashMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Bytes, Duration, Problem, Rate, Stream, Time};

use super::control::{Position, Request};
use super::{AqId, Controller, Decline, Limit, Order, Place, Table, WorkConserving};

/// What a scenario may set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "AqConfig")]
pub struct Config {
    /// How each AQ's limit is set.
    pub limit: Limit,
    /// What is done with bandwidth that is allocated and not used; nothing if unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub work_conserving: Option<WorkConserving>,
    /// A weighted entity of which nothing has arrived for a period of this length is idle, and its weight counts no
    /// longer; zero lets all weights count always.
    pub idle_after: Duration,
}

impl Default for Config {
    /// The limit of section 6 that lets congestion controls be set as for a physical queue, and a period of some ten
    /// round trips of a datacenter: the paper gives none.
    fn default() -> Config {
        Config { limit: Limit::Queue, work_conserving: None, idle_after: Duration::from_ms(1) }
    }
}

impl Config {
    /// What its types can't forbid.
    pub fn check(&self) -> Result<(), Problem> {
        if let Some(conserving) = self.work_conserving {
            conserving.check().map_err(|problem| problem.under("work_conserving"))?;
            if matches!(conserving, WorkConserving::Reallocate { .. })
                && self.idle_after != Config::default().idle_after
            {
                let message = "has no effect, since re-allocation looks at use anyway; delete one or the other";
                return Err(Problem::new("idle_after", message));
            }
        }
        Ok(())
    }

    /// How often arrivals are looked at; zero for never.
    fn period(&self) -> Duration {
        match self.work_conserving {
            Some(WorkConserving::Reallocate { period, .. }) => period,
            _ => self.idle_after,
        }
    }
}

/// Pairs of limit and CC fields that a table can tell apart.
const POLICIES: usize = 1 << 16;

/// What a tenant says to the controller.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Step {
    /// It asks for an AQ.
    Request(AqId, Request),
    /// It gives one back.
    Release(AqId),
}

/// Why a switch can't have its AQs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SwitchError {
    /// A setting that makes no sense; keys as in [`Config`].
    #[error("{0}")]
    Setting(Problem),
    /// A request that would be declined, and why.
    #[error("AQ {} is declined: {}", .0.tag(), .1)]
    Declined(AqId, Decline),
}

/// A switch's AQs.
pub struct SwitchPart {
    controller: Controller,
    /// By [`Position`].
    tables: [Table; 2],
    conserving: Option<WorkConserving>,
    /// What tenants will say, earliest first.
    steps: VecDeque<(Time, Step)>,
    period: Duration,
    measure_at: Time,
    sweep_at: Time,
    /// Bytes that arrived in this period, of the AQs whose rates depend on it.
    arrived: FxHashMap<AqId, u64>,
    /// Of AQs that have dropped or marked.
    stats: BTreeMap<u32, TagStats>,
    random: Stream,
}

impl SwitchPart {
    /// A switch with these links (and the limits of their physical queues), whose tenants will say `steps`, in order of
    /// time.
    pub fn new(
        config: &Config,
        links: &[(Place, Rate, Bytes)],
        steps: Vec<(Time, Step)>,
        random: Stream,
    ) -> Result<SwitchPart, SwitchError> {
        let mut controller = Controller::new(config.limit, config.work_conserving).map_err(SwitchError::Setting)?;
        for &(place, capacity, queue) in links {
            controller.add_link(place, capacity, queue).map_err(SwitchError::Setting)?;
        }
        let mut part = SwitchPart {
            controller,
            tables: Default::default(),
            conserving: config.work_conserving,
            steps: VecDeque::new(),
            period: config.period(),
            measure_at: if config.period() == Duration::ZERO { Time::MAX } else { Time::ZERO + config.period() },
            sweep_at: Time::MAX,
            arrived: FxHashMap::default(),
            stats: BTreeMap::new(),
            random,
        };
        let reallocates = matches!(config.work_conserving, Some(WorkConserving::Reallocate { .. }));
        if reallocates && matches!(config.limit, Limit::Divided { .. }) && steps.len() > POLICIES {
            let message = format!(
                "re-allocation gives each of {} AQs a rate of its own and so a limit of its own, and a switch holds {POLICIES} \
                 different ones; write \"queue\" or fixed",
                steps.len()
            );
            return Err(SwitchError::Setting(Problem::new("limit.divided", message)));
        }
        part.rehearse(&steps)?;
        part.steps = steps.into();
        part.wake(Time::ZERO);
        Ok(part)
    }

    /// Whether all will be granted: what a link's tenants have at a time depends on nothing that happens in a run.
    fn rehearse(&mut self, steps: &[(Time, Step)]) -> Result<(), SwitchError> {
        let mut granted = Vec::new();
        for (_, step) in steps {
            match *step {
                Step::Request(id, request) => {
                    self.controller.request(id, request).map_err(|why| SwitchError::Declined(id, why))?;
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
                if self.controller.is_measured(id) && self.period > Duration::ZERO {
                    self.arrived.insert(id, 0);
                }
            }
            Step::Release(id) => {
                self.controller.release(id).expect("rehearsed");
                self.arrived.remove(&id);
            }
        }
    }

    fn measure(&mut self) {
        let places: Vec<Place> = self.controller.places().collect();
        for place in places {
            let arrived = &self.arrived;
            self.controller.measured(place, self.period, |id| Bytes(arrived.get(&id).copied().unwrap_or(0)));
        }
        self.arrived.values_mut().for_each(|bytes| *bytes = 0);
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

    /// What an AQ makes of a packet (Algorithm 2).
    #[inline]
    fn arrive(&mut self, now: Time, position: Position, out: &Port, packet: &mut Packet) -> bool {
        let Some(id) = AqId::from_tag(packet.tags()[position as usize]) else { return true };
        let bytes = packet.wire_bytes;
        if let Some(arrived) = self.arrived.get_mut(&id) {
            *arrived += u64::from(bytes);
        }
        let queued = Bytes(u64::from(out.queued_bytes()));
        if self.conserving.is_some_and(|conserving| conserving.bypasses(queued)) {
            return true;
        }
        let verdict = self.tables[position as usize].arrive(now, id, bytes, &mut self.random);
        let delay_ns = u32::try_from(verdict.virtual_delay.ps() / 1_000).unwrap_or(u32::MAX);
        packet.virtual_delay_ns = packet.virtual_delay_ns.saturating_add(delay_ns);
        if !verdict.pass {
            let stats = self.stats.entry(id.tag()).or_default();
            stats.dropped_packets += 1;
            stats.dropped_bytes += u64::from(bytes);
        } else if verdict.mark && packet.has(flags::ECT) {
            packet.flags |= flags::CE;
            self.stats.entry(id.tag()).or_default().marked_packets += 1;
        }
        verdict.pass
    }
}

impl Stages for SwitchPart {
    fn ingress(&mut self, now: Time, out: &Port, packet: &mut Packet) -> bool {
        self.arrive(now, Position::Ingress, out, packet)
    }

    fn egress(&mut self, now: Time, out: &Port, packet: &mut Packet) -> bool {
        self.arrive(now, Position::Egress, out, packet)
    }

    fn poll_at(&self) -> Time {
        let measure_at = if self.arrived.is_empty() { Time::MAX } else { self.measure_at };
        self.steps.front().map_or(Time::MAX, |step| step.0).min(measure_at).min(self.sweep_at)
    }

    fn wake(&mut self, now: Time) {
        while let Some(&(_, step)) = self.steps.front().filter(|(at, _)| *at <= now) {
            self.steps.pop_front();
            self.step(step);
        }
        if self.measure_at <= now {
            if !self.arrived.is_empty() {
                self.measure();
            }
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

    fn tag_stats(&self) -> BTreeMap<u32, TagStats> {
        self.stats.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Feedback;
    use crate::aq::{Ids, Share};
    use units::LinkId;

    #[test]
    fn more_limits_than_a_table_can_hold_are_refused_beforehand() {
        let place = Place { link: LinkId(0), position: Position::Ingress };
        let request = Request { share: Share::Weight(1), feedback: Feedback::Drop, place };
        let mut ids = Ids::default();
        let steps: Vec<_> =
            (0..=POLICIES).map(|_| (Time::ZERO, Step::Request(ids.next_id().unwrap(), request))).collect();
        let reallocate = WorkConserving::Reallocate { period: Duration::from_ms(1), headroom: 0.1 };
        let config = |limit| Config { limit, work_conserving: Some(reallocate), ..Config::default() };
        let links = [(place, Rate::from_gbps(10), Bytes(1_000_000))];
        let part = |limit, steps: &[_]| {
            SwitchPart::new(&config(limit), &links, steps.to_vec(), Stream::new(1, 0, "aq")).map(|part| part.deployed())
        };
        let divided = Limit::Divided { min: Bytes(3_000) };
        let Err(SwitchError::Setting(problem)) = part(divided, &steps) else { panic!("it would run out of policies") };
        assert_eq!(problem.key, "limit.divided");
        assert_eq!(part(divided, &steps[1..]), Ok(POLICIES));
        assert_eq!(part(Limit::Queue, &steps), Ok(POLICIES + 1));
    }
}
