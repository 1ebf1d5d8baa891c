//! The AQ controller (section 4.1): a state machine that takes requests, releases and measurements, and orders what to
//! deploy where. It holds no table: its driver carries out each [`Order`].
//!
//! A request names one place: a link, and the pipeline that controls the traffic on it. An absolute request is granted
//! if the link has enough capacity left. Weighted requests share what absolute grants leave with the other weighted
//! requests of the link. Shares change when an entity arrives, leaves or falls idle: 1/n for each of n active equals
//! (section 5.2).
//!
//! The shares of a link depend on that link alone. So the work of one controller for a whole network divides into one
//! part for each switch ([`switch`](super::switch)) without any loss of information. This matters because a run is
//! simulated in parts that run in parallel; a central controller would make all of them wait. Ids are unique in the
//! whole network ([`Ids`](super::Ids)), since an entity's packets may be tagged for several switches.
//!
//! Decided where the paper is silent:
//! * Weighted entities can't be pushed off a link: a request that would leave any of them, idle ones included, less
//!   than a row can hold is declined.
//! * An entity is idle when nothing of it has arrived for longer than an entity with data to send may be silent
//!   ([`derive`](super::derive)), or for the period that the scenario sets. Its AQ keeps the rate that it would have if
//!   it alone woke up, so its first packets are neither lost nor unlimited. Until the next measurement the sum of rates
//!   may exceed the link by that, and the physical queue absorbs it. An absolute entity keeps its rate, idle or not.
//! * Under [`WorkConserving::Reallocate`] idleness is one case of low use: guarantees count all granted weights. Unused
//!   bandwidth is lent to others, and no AQ's rate falls below its guarantee: an entity that resumes sending has its
//!   guarantee from the first packet. The sum of rates may exceed the link until the next measurement takes back what
//!   was lent, and the physical queue absorbs it. Any grant or release sets all rates of its link to the guarantees
//!   until the next measurement.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use node::Marking;
use units::{Bytes, Duration, Problem, Rate};

use super::derive::Path;
use super::share::{Usage, reallocate};
use super::{AqId, AqRate, Limit, Place, Policy, Request, Share, WorkConserving};
use contract::CongestionSignal;
use contract::sharing::portion;

/// A link that AQs share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkSpec {
    /// The link and the pipeline.
    pub place: Place,
    /// Capacity for all AQs together.
    pub capacity: Rate,
    /// Capacity of its physical queue.
    pub queue: Bytes,
    /// Path properties from which limits, thresholds and idle periods are derived.
    pub path: Path,
    /// Whether the AQs see its physical queue. Those of a link out of a host do not: that queue is in the host.
    pub sees_queue: bool,
}

/// Why a request is declined.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Decline {
    /// No such link.
    #[error("the AQ controller has no such link and pipeline")]
    UnknownLink,
    /// An absolute request exceeds the remaining capacity of the link.
    #[error("{asked} is more than the {left} that absolute grants leave of the link")]
    Capacity {
        /// The requested rate.
        asked: Rate,
        /// The available rate.
        left: Rate,
    },
    /// A weighted entity of the link would get too little for a row.
    #[error(
        "weighted entities would have {left} left, and the one of the least weight {least}; an AQ has at least 3.73Kbps"
    )]
    Starves {
        /// The rate that weighted entities would share.
        left: Rate,
        /// The rate of the least weight among them.
        least: Rate,
    },
    /// No row can hold this rate.
    #[error("{0} is out of range; an AQ has from 3.73Kbps to 16Tbps")]
    Rate(Rate),
    /// The weight is zero.
    #[error("a weight must be at least 1")]
    NoWeight,
    /// The CC fields are invalid.
    #[error("{0}")]
    Fields(Problem),
    /// The id is in use: a table has one row for each id.
    #[error("it has an AQ in this switch already, and a packet passes one in each pipeline")]
    Taken,
}

/// The AQ does not exist (any more).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("AQ {} is not granted", .0.tag())]
pub struct NotGranted(pub AqId);

/// An order to a switch.
#[derive(Clone, Copy, Debug, PartialEq, node::Saved)]
pub enum Order {
    /// Deploy this AQ in the table of the place, or change it there.
    Deploy {
        /// The place.
        place: Place,
        /// The AQ.
        id: AqId,
        /// Its rate.
        rate: AqRate,
        /// Its limit and feedback.
        policy: Policy,
    },
    /// Remove this AQ from the table of the place.
    Withdraw {
        /// The place.
        place: Place,
        /// The AQ.
        id: AqId,
    },
}

/// The controller of the AQs of a switch.
#[derive(Debug, node::State)]
pub struct Controller {
    #[state(skip("settings"))]
    limit: Limit,
    #[state(skip("settings"))]
    conserving: Option<WorkConserving>,
    /// Whether the idle period is derived for each entity. Otherwise it is the measuring period.
    derives_idle: bool,
    #[state(each((skip("what it is called"), _)))]
    links: BTreeMap<Place, Link>,
    #[state(skip("it follows from the links"))]
    places: BTreeMap<AqId, Place>,
    /// Places whose rates may have changed since orders were last taken.
    #[state(same(self.stale.len()))]
    stale: BTreeSet<Place>,
    #[state(same(self.orders.len()))]
    orders: VecDeque<Order>,
}

#[derive(Debug, node::State)]
struct Link {
    capacity: Rate,
    queue: Bytes,
    #[state(skip("settings"))]
    path: Path,
    sees_queue: bool,
    /// Whether several entities used it in the last period.
    shared: bool,
    /// Sums over its grants, so that a request does not iterate over them.
    absolute_bps: u64,
    weights: u64,
    active_weights: u64,
    /// Whether the rate of any grant follows a measurement. If not, a request need not iterate over grants.
    reallocated: bool,
    /// By weight: number of grants.
    by_weight: BTreeMap<u32, u32>,
    #[state(each((same(part_0.tag()), _)))]
    grants: BTreeMap<AqId, Grant>,
}

#[derive(Debug, node::State)]
struct Grant {
    #[state(skip("settings"))]
    share: Share,
    #[state(skip("settings"))]
    feedback: CongestionSignal,
    derive_threshold: bool,
    capped: bool,
    active: bool,
    /// Number of consecutive periods in which nothing of it arrived.
    quiet: u32,
    /// Under re-allocation: its rate by the last measurement.
    reallocated: Option<Rate>,
    #[state(same(self.deployed.map(|deployed| deployed.0.code())))]
    deployed: Option<(AqRate, Policy)>,
}

impl Controller {
    /// A controller without links.
    pub fn new(limit: Limit, conserving: Option<WorkConserving>) -> Result<Controller, Problem> {
        if let Some(conserving) = conserving {
            conserving.check().map_err(|problem| problem.under("work_conserving"))?;
        }
        Ok(Controller {
            limit,
            conserving,
            derives_idle: false,
            links: BTreeMap::new(),
            places: BTreeMap::new(),
            stale: BTreeSet::new(),
            orders: VecDeque::new(),
        })
    }

    /// From now on an entity counts as idle when it was silent for longer than an entity with data to send can be.
    pub fn with_derived_idle(self, derives_idle: bool) -> Controller {
        Controller { derives_idle, ..self }
    }

    /// Adds a place for AQs, and its link.
    pub fn add_link(&mut self, spec: LinkSpec) -> Result<(), Problem> {
        let LinkSpec { place, capacity, queue, path, sees_queue: _ } = spec;
        self.limit.check(queue, path.burst).map_err(|problem| problem.under("limit"))?;
        if capacity.bps() > AqRate::BPS_MAX {
            return Err(Problem::new("capacity", format!("{capacity} is more than AQs can share; at most 16Tbps")));
        }
        if self.links.contains_key(&place) {
            return Err(Problem::new("place", format!("{place:?} is known; a link's grants can't be replaced")));
        }
        self.links.insert(place, Link::new(spec));
        Ok(())
    }

    /// Grants an AQ under an id that the tenant tags packets with, or declines.
    pub fn request(&mut self, id: AqId, request: Request) -> Result<(), Decline> {
        let link = self.links.get_mut(&request.place).ok_or(Decline::UnknownLink)?;
        let limit = self.limit.bytes(link.queue, link.capacity, link.capacity, link.path);
        Policy::new(limit, request.feedback).map_err(Decline::Fields)?;
        link.check(request.share)?;
        if self.places.contains_key(&id) {
            return Err(Decline::Taken);
        }
        link.count(request.share, true);
        let Request { share, feedback, derive_threshold, capped, place } = request;
        let (active, quiet) = (true, 0);
        let grant =
            Grant { share, feedback, derive_threshold, capped, active, quiet, reallocated: None, deployed: None };
        link.grants.insert(id, grant);
        link.forget_measurements();
        self.places.insert(id, place);
        self.stale.insert(place);
        Ok(())
    }

    /// Releases an AQ and frees its share.
    pub fn release(&mut self, id: AqId) -> Result<(), NotGranted> {
        let place = self.places.remove(&id).ok_or(NotGranted(id))?;
        let link = self.links.get_mut(&place).expect("a granted AQ has a link");
        let grant = link.grants.remove(&id).expect("its place says so");
        link.uncount(&grant);
        link.forget_measurements();
        if grant.deployed.is_some() {
            self.orders.push_back(Order::Withdraw { place, id });
        }
        self.stale.insert(place);
        Ok(())
    }

    /// Reports what arrived at a place in the `period` that ends now, by AQ, before any drops.
    pub fn measured(&mut self, place: Place, period: Duration, arrived: impl Fn(AqId) -> Bytes) {
        let Some(link) = self.links.get_mut(&place) else { return };
        let bytes = |id: &AqId| arrived(*id).get();
        match self.conserving {
            Some(WorkConserving::Reallocate { headroom, .. }) => {
                let usage = |(id, grant): (&AqId, &Grant)| {
                    let guarantee = link.guarantee(grant, true);
                    let bps = u128::from(bytes(id)) * 8_000_000_000_000 / u128::from(period.ps().max(1));
                    let arrived = Rate::from_bps(u64::try_from(bps).unwrap_or(u64::MAX));
                    Usage { guarantee, rate: link.rate(grant, true), arrived, capped: grant.capped }
                };
                let usages: Vec<Usage> = link.grants.iter().map(usage).collect();
                let rates = reallocate(link.capacity, headroom, &usages);
                for (grant, rate) in link.grants.values_mut().zip(rates) {
                    grant.reallocated = Some(rate);
                }
                link.shared = usages.iter().filter(|used| used.arrived > Rate::ZERO).count() > 1;
                link.reallocated = true;
                self.stale.insert(place);
            }
            _ => {
                let patience = self.derives_idle.then_some(period);
                if link.count_active(bytes, patience) {
                    self.stale.insert(place);
                }
            }
        }
    }

    /// The next order; `None` if the switches are up to date.
    pub fn poll_order(&mut self) -> Option<Order> {
        while let Some(place) = self.stale.pop_first() {
            let all = self.counts_all();
            let link = self.links.get_mut(&place).expect("a stale link is known");
            let rates = |grant: &Grant| (link.rate(grant, all), link.guarantee(grant, all));
            let rates: Vec<(Rate, Rate)> = link.grants.values().map(rates).collect();
            let room = link.sees_queue.then(|| link.room());
            for ((&id, grant), (rate, guarantee)) in link.grants.iter_mut().zip(rates) {
                let limit = self.limit.bytes(link.queue, rate, link.capacity, link.path);
                let feedback = match grant.feedback {
                    CongestionSignal::Ecn(Marking::Step { .. }) if grant.derive_threshold => {
                        let threshold = link.path.threshold(rate, link.capacity, limit);
                        CongestionSignal::Ecn(Marking::Step { threshold })
                    }
                    given => given,
                };
                let policy = Policy::new(limit, feedback).expect("checked when it was granted");
                let room = room.filter(|_| rate > guarantee);
                let policy = policy.with_cap(grant.capped).with_room(room, grant.feedback);
                let rate = AqRate::nearest(rate).expect("no grant is starved, no link beyond 16 Tbps");
                if grant.deployed.replace((rate, policy)) != Some((rate, policy)) {
                    self.orders.push_back(Order::Deploy { place, id, rate, policy });
                }
            }
        }
        self.orders.pop_front()
    }

    /// All places, in order.
    pub fn places(&self) -> impl Iterator<Item = Place> + '_ {
        self.links.keys().copied()
    }

    /// Whether arrivals of an AQ matter. They don't for an absolute share, unless unused bandwidth is lent.
    pub fn is_measured(&self, id: AqId) -> bool {
        let grant = self.places.get(&id).and_then(|place| self.links.get(place)?.grants.get(&id));
        grant.is_some_and(|grant| self.counts_all() || matches!(grant.share, Share::Weight(_)))
    }

    /// The rate allocated to an AQ, before rounding to the format of a row.
    pub fn rate(&self, id: AqId) -> Option<Rate> {
        let link = self.links.get(self.places.get(&id)?)?;
        Some(link.rate(link.grants.get(&id)?, self.counts_all()))
    }

    /// The rate of an AQ while no entity is idle, and the bytes that it carries in a round trip.
    pub fn guarantee(&self, id: AqId) -> Option<(Rate, u64)> {
        let link = self.links.get(self.places.get(&id)?)?;
        let guarantee = link.guarantee(link.grants.get(&id)?, true);
        Some((guarantee, guarantee.bytes_in(link.path.rtt)))
    }

    /// Whether weights of idle entities count.
    fn counts_all(&self) -> bool {
        self.conserving.is_some_and(WorkConserving::lends)
    }
}

impl Link {
    fn new(spec: LinkSpec) -> Link {
        Link {
            capacity: spec.capacity,
            queue: spec.queue,
            path: spec.path,
            sees_queue: spec.sees_queue,
            shared: false,
            absolute_bps: 0,
            weights: 0,
            active_weights: 0,
            reallocated: false,
            by_weight: BTreeMap::new(),
            grants: BTreeMap::new(),
        }
    }

    /// Whether the link has capacity for one more request.
    fn check(&self, share: Share) -> Result<(), Decline> {
        let mut left = self.left_bps();
        let mut least = self.by_weight.keys().next().copied();
        match share {
            Share::Absolute(rate) => {
                AqRate::nearest(rate).ok_or(Decline::Rate(rate))?;
                let capacity = Decline::Capacity { asked: rate, left: Rate::from_bps(left) };
                left = left.checked_sub(rate.bps()).ok_or(capacity)?;
            }
            Share::Weight(0) => return Err(Decline::NoWeight),
            Share::Weight(weight) => least = Some(least.map_or(weight, |least| least.min(weight))),
        }
        let Some(least) = least else { return Ok(()) };
        let least_bps = portion(left, u64::from(least), u128::from(self.weights + share.weight()));
        if least_bps < AqRate::BPS_MIN {
            return Err(Decline::Starves { left: Rate::from_bps(left), least: Rate::from_bps(least_bps) });
        }
        Ok(())
    }

    fn count(&mut self, share: Share, active: bool) {
        match share {
            Share::Absolute(rate) => self.absolute_bps += rate.bps(),
            Share::Weight(weight) => {
                self.weights += u64::from(weight);
                self.active_weights += if active { u64::from(weight) } else { 0 };
                *self.by_weight.entry(weight).or_default() += 1;
            }
        }
    }

    fn uncount(&mut self, grant: &Grant) {
        match grant.share {
            Share::Absolute(rate) => self.absolute_bps -= rate.bps(),
            Share::Weight(weight) => {
                self.weights -= u64::from(weight);
                self.active_weights -= if grant.active { u64::from(weight) } else { 0 };
                let count = self.by_weight.get_mut(&weight).expect("it was counted");
                *count -= 1;
                if *count == 0 {
                    self.by_weight.remove(&weight);
                }
            }
        }
    }

    /// Updates which entities are active by what arrived in a period. Returns whether that has changed. With
    /// `patience`, an entity stays active as long as one with data to send may be silent; without, only if something
    /// arrived in this period.
    fn count_active(&mut self, bytes: impl Fn(&AqId) -> u64, patience: Option<Duration>) -> bool {
        let wait = self.capacity.transmit(self.queue.get());
        let left = self.left_bps();
        let (mut active_weights, mut changed) = (0, false);
        for (id, grant) in &mut self.grants {
            let Share::Weight(weight) = grant.share else { continue };
            grant.quiet = if bytes(id) > 0 { 0 } else { grant.quiet.saturating_add(1) };
            let mut active = grant.quiet == 0;
            if let (true, false, Some(period)) = (grant.active, active, patience) {
                let rate = Rate::from_bps(portion(left, u64::from(weight), u128::from(self.weights)));
                let silence = self.path.silence(rate, wait);
                active = u64::from(grant.quiet).saturating_mul(period.ps()) < silence.ps();
            }
            changed |= active != grant.active;
            grant.active = active;
            active_weights += if active { u64::from(weight) } else { 0 };
        }
        self.active_weights = active_weights;
        changed
    }

    fn forget_measurements(&mut self) {
        if std::mem::take(&mut self.reallocated) {
            self.grants.values_mut().for_each(|grant| grant.reallocated = None);
            self.shared = false;
        }
    }

    /// How much of the physical queue may be filled with what was lent. Beside others, it is as little as keeps the
    /// link busy, so that they neither wait nor lose packets; alone, half, so that an entity that wakes up finds room.
    fn room(&self) -> Bytes {
        match self.shared {
            true => self.path.room(self.capacity).min(Bytes(self.queue.get() / 2)),
            false => Bytes(self.queue.get() / 2),
        }
    }

    /// The capacity that absolute grants leave.
    fn left_bps(&self) -> u64 {
        self.capacity.bps() - self.absolute_bps
    }

    fn rate(&self, grant: &Grant, all: bool) -> Rate {
        let guarantee = self.guarantee(grant, all);
        grant.reallocated.map_or(guarantee, |rate| rate.max(guarantee))
    }

    /// The share of a grant among all weights (`all`), or only among those of active entities and its own.
    fn guarantee(&self, grant: &Grant, all: bool) -> Rate {
        match grant.share {
            Share::Absolute(rate) => rate,
            Share::Weight(weight) => {
                let own = if grant.active { 0 } else { u64::from(weight) };
                let among = if all { self.weights } else { self.active_weights + own };
                Rate::from_bps(portion(self.left_bps(), u64::from(weight), u128::from(among)))
            }
        }
    }
}

#[cfg(test)]
mod tests;
