//! The arithmetic of sharing a link: by weight (section 4.1), the limit that goes with a rate, and section 6's two
//! kinds of work conservation. All integer; the remainder of a division is less than one bit per second for each
//! entity.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Bytes, Duration, Problem, Rate};

use super::AqRate;
use super::derive::{Path, grain};
use super::gap::LIMIT_MAX;
use contract::sharing::portion;

/// How the limit of an AQ is set: the A-Gap above which packets are dropped (section 6).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, node::Saved)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Limit {
    /// The limit of the physical queue times the AQ's share of the link rate, but at least what the rate, the longest
    /// round trip and the MTU require, and at most the limit of the physical queue (default).
    #[default]
    Derived,
    /// The limit of the physical queue, for each entity. CC fields keep their meaning, but all entities together may
    /// want more than the queue holds.
    Queue,
    /// The limit of the physical queue times the AQ's share of the link rate.
    Divided {
        /// The least limit of an entity. The paper calls it empirical and gives no value. Default: derived as for
        /// `derived`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        min: Option<Bytes>,
    },
    /// The same limit for all, whatever the physical queue. It is not in the paper; sweep it to find the least limit.
    Fixed {
        /// Limit of each AQ.
        bytes: Bytes,
    },
}

impl Limit {
    /// The limit of an entity at `rate` on a link of `capacity` with a physical queue of `queue`.
    pub fn bytes(self, queue: Bytes, rate: Rate, capacity: Rate, path: Path) -> Bytes {
        let part = Bytes(portion(queue.get(), rate.bps(), u128::from(capacity.bps())));
        match self {
            Limit::Derived => grain(part).max(path.least_limit(rate)).min(queue),
            Limit::Queue => queue,
            Limit::Divided { min } => part.max(min.unwrap_or_else(|| path.least_limit(rate).min(queue))),
            Limit::Fixed { bytes } => bytes,
        }
    }

    /// Checks that rows can hold the limits that follow for a physical queue of this length.
    pub fn check(self, queue: Bytes, mtu: Bytes) -> Result<(), Problem> {
        let (key, least, largest) = match self {
            Limit::Derived => ("derived", queue, queue),
            Limit::Queue => ("queue", queue, queue),
            Limit::Divided { min } => ("divided.min", min.unwrap_or(queue), min.unwrap_or(queue).max(queue)),
            Limit::Fixed { bytes } => ("fixed.bytes", bytes, bytes),
        };
        if least < mtu || largest > LIMIT_MAX {
            let wrong = if least < mtu { least } else { largest };
            let message =
                format!("gives a limit of {wrong}; it must be at least a full packet, {mtu}, and at most {LIMIT_MAX}");
            return Err(Problem::new(key, message));
        }
        Ok(())
    }
}

/// What happens to bandwidth that is allocated and not used (section 6). By default, an AQ is a guarantee and a cap.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema, node::Saved)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum WorkConserving {
    /// Packets that find the physical queue empty bypass their AQ.
    Bypass,
    /// Rates are recomputed periodically from what arrived.
    Reallocate {
        /// Time between computations.
        #[schemars(extend("x-least" = "1us"))]
        period: Duration,
        /// How much more than it used an entity may get, as a fraction of its use: room to show that it wants more.
        headroom: f64,
    },
}

impl WorkConserving {
    /// Whether unused bandwidth is lent to others by rates that change.
    pub fn lends(self) -> bool {
        matches!(self, WorkConserving::Reallocate { .. })
    }

    /// Whether a packet that finds `queued` bytes in the physical queue bypasses its AQ. The gap then stays the same.
    pub fn bypasses(self, queued: Bytes) -> bool {
        self == WorkConserving::Bypass && queued.get() == 0
    }

    /// Checks what the types can't express.
    pub fn check(self) -> Result<(), Problem> {
        match self {
            WorkConserving::Reallocate { headroom, .. } if !(headroom > 0.0 && headroom <= 1.0) => {
                Err(Problem::new("reallocate.headroom", format!("{headroom} is not above 0 and at most 1")))
            }
            WorkConserving::Reallocate { period: Duration::ZERO, .. } => {
                Err(Problem::new("reallocate.period", "must be above 0"))
            }
            _ => Ok(()),
        }
    }
}

/// The grant and the use of an entity in a period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Its guaranteed rate, above 0.
    pub guarantee: Rate,
    /// Its rate in the period.
    pub rate: Rate,
    /// The bytes that arrived of it, before any drops.
    pub arrived: Rate,
    /// Whether its guarantee is also its cap.
    pub capped: bool,
}

/// Rates for the next period. Their sum is `capacity` if any entity may take what is left. The sum of guarantees must
/// not exceed it.
///
/// Max-min fair with guarantees as weights, like Seawall and EyeQ. An entity that used less than its rate is assumed to
/// want what it used plus `headroom`. An entity within half of `headroom` of its rate is assumed to want everything.
/// (With all of `headroom`, a steady entity would always be within it of the rate it was given, and would have its
/// guarantee every other period.) Bandwidth that no entity wants is divided in proportion to guarantees. A capped
/// entity never wants or gets more than its guarantee: if all entities of a link are capped, what none of them wants
/// stays idle.
pub fn reallocate(capacity: Rate, headroom: f64, entities: &[Usage]) -> Vec<Rate> {
    let wants: Vec<u64> = entities
        .iter()
        .map(|e| {
            let more = e.arrived.mul_f64(1.0 + headroom);
            let near = e.arrived.mul_f64(1.0 + headroom / 2.0);
            let want = if near >= e.rate {
                u64::MAX
            } else {
                more.max(e.guarantee.mul_f64(headroom)).bps().max(AqRate::BPS_MIN)
            };
            if e.capped { want.min(e.guarantee.bps()) } else { want }
        })
        .collect();
    // Water-filling in the order of want over guarantee: the entity satisfied at the lowest level comes first.
    let guarantee = |i: usize| u128::from(entities[i].guarantee.bps());
    let mut order: Vec<usize> = (0..entities.len()).collect();
    order.sort_by(|&a, &b| (u128::from(wants[a]) * guarantee(b)).cmp(&(u128::from(wants[b]) * guarantee(a))));

    let mut rates = vec![0; entities.len()];
    let (mut left, mut weights) = (capacity.bps(), (0..entities.len()).map(guarantee).sum::<u128>());
    for i in order {
        rates[i] = wants[i].min(portion(left, guarantee(i) as u64, weights));
        left -= rates[i];
        weights -= guarantee(i);
    }
    let free: u128 = (0..entities.len()).filter(|&i| !entities[i].capped).map(guarantee).sum();
    let extra = |i: usize| if entities[i].capped { 0 } else { portion(left, guarantee(i) as u64, free) };
    (0..entities.len()).map(|i| Rate::from_bps(rates[i] + extra(i))).collect()
}

#[cfg(test)]
mod tests;
