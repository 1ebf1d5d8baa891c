//! The arithmetic of sharing a link: by weight (section 4.1), the limit that goes with a rate, and section 6's two ways
//! to be work-conserving. Integers throughout; what division leaves over is under a bit per second an entity.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Bytes, Duration, Problem, Rate};

use super::AqRate;
use super::gap::LIMIT_MAX;

/// How the AQ limit, the A-Gap above which packets are dropped, is set (section 6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Limit {
    /// The limit of the physical queue, for each entity: CC fields mean what they mean there, but all entities together
    /// may want more than it holds.
    Queue,
    /// The limit of the physical queue divided by allocated rate.
    Divided {
        /// No entity has less. The paper calls it empirical and gives none; nor is there a default here.
        min: Bytes,
    },
    /// The same for all, whatever the physical queue: not in the paper, but what one sweeps to find the least.
    Fixed {
        /// Bytes an AQ.
        bytes: Bytes,
    },
}

impl Limit {
    /// The limit of an entity at `rate` on a link of `capacity` whose queue holds `queue`.
    pub fn bytes(self, queue: Bytes, rate: Rate, capacity: Rate) -> Bytes {
        match self {
            Limit::Queue => queue,
            Limit::Divided { min } => Bytes(portion(queue.get(), rate.bps(), u128::from(capacity.bps()))).max(min),
            Limit::Fixed { bytes } => bytes,
        }
    }

    /// Whether rows can hold what it comes to at a queue of this length.
    pub fn check(self, queue: Bytes) -> Result<(), Problem> {
        let (key, largest) = match self {
            Limit::Queue => ("queue", queue),
            Limit::Divided { min } => ("divided.min", min.max(queue)),
            Limit::Fixed { bytes } => ("fixed.bytes", bytes),
        };
        if largest.get() == 0 || largest > LIMIT_MAX || matches!(self, Limit::Divided { min: Bytes(0) }) {
            return Err(Problem::new(
                key,
                format!("gives a limit of {largest}; it must be above 0, at most {LIMIT_MAX}"),
            ));
        }
        Ok(())
    }
}

/// What to do with bandwidth that is allocated and not used (section 6). Without either, an AQ is a guarantee and a cap:
/// no more, no less.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum WorkConserving {
    /// Packets that find the physical queue empty don't see their AQ at all.
    Bypass,
    /// Rates are computed anew, periodically, from what arrived.
    Reallocate {
        /// How often.
        period: Duration,
        /// How much more than it used an entity may get, as a fraction of it: room to show that it wants more.
        headroom: f64,
    },
}

impl WorkConserving {
    /// Whether a packet that finds `queued` in the physical queue goes by its AQ unseen: the gap is neither looked at
    /// nor grown.
    pub fn bypasses(self, queued: Bytes) -> bool {
        self == WorkConserving::Bypass && queued.get() == 0
    }

    /// What its types can't forbid.
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

/// What an entity had and used in a period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// What it may always have; above 0.
    pub guarantee: Rate,
    /// Its rate in the period.
    pub rate: Rate,
    /// What came of it, before anything was dropped.
    pub arrived: Rate,
}

/// Rates for the next period; together `capacity`. Guarantees must be together at most that.
///
/// Max-min fair with guarantees as weights, in the manner of Seawall and EyeQ: an entity that used less than its rate is
/// taken to want what it used and `headroom` more; one that came within `headroom` of its rate is taken to want all
/// there is, so its guarantee is back one period after it sends again. What nobody wants is divided by guarantee.
pub fn reallocate(capacity: Rate, headroom: f64, entities: &[Usage]) -> Vec<Rate> {
    let wants: Vec<u64> = entities
        .iter()
        .map(|e| {
            let more = e.arrived.mul_f64(1.0 + headroom);
            if more >= e.rate { u64::MAX } else { more.max(e.guarantee.mul_f64(headroom)).bps().max(AqRate::BPS_MIN) }
        })
        .collect();
    // Filled from the one that is content at the lowest level, want over guarantee.
    let guarantee = |i: usize| u128::from(entities[i].guarantee.bps());
    let mut order: Vec<usize> = (0..entities.len()).collect();
    order.sort_by(|&a, &b| (u128::from(wants[a]) * guarantee(b)).cmp(&(u128::from(wants[b]) * guarantee(a))));

    let mut rates = vec![0; entities.len()];
    let (mut left, mut weights) = (capacity.bps(), (0..entities.len()).map(guarantee).sum::<u128>());
    let total = weights;
    for i in order {
        rates[i] = wants[i].min(portion(left, guarantee(i) as u64, weights));
        left -= rates[i];
        weights -= guarantee(i);
    }
    let extra = |i: usize| portion(left, guarantee(i) as u64, total);
    (0..entities.len()).map(|i| Rate::from_bps(rates[i] + extra(i))).collect()
}

/// `whole` times `part` / `parts`, rounded down; nothing of no parts.
pub fn portion(whole: u64, part: u64, parts: u128) -> u64 {
    (u128::from(whole) * u128::from(part) / parts.max(1)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HEADROOM: f64 = 0.25;

    fn gbps(guarantee: u64, rate: u64, arrived: u64) -> Usage {
        let [guarantee, rate, arrived] = [guarantee, rate, arrived].map(Rate::from_gbps);
        Usage { guarantee, rate, arrived }
    }

    fn reallocated(entities: &[Usage]) -> Vec<f64> {
        reallocate(Rate::from_gbps(10), HEADROOM, entities).iter().map(|r| r.bps() as f64 / 1e9).collect()
    }

    #[test]
    fn limits_of_section_6() {
        let at = |limit: Limit, gbps| limit.bytes(Bytes(1_000_000), Rate::from_gbps(gbps), Rate::from_gbps(10)).get();
        assert_eq!([at(Limit::Queue, 1), at(Limit::Queue, 10)], [1_000_000; 2]);
        let divided = Limit::Divided { min: Bytes(150_000) };
        assert_eq!([at(divided, 1), at(divided, 2), at(divided, 10)], [150_000, 200_000, 1_000_000]);
        assert_eq!(at(Limit::Fixed { bytes: Bytes(7_000) }, 1), 7_000);
    }

    #[test]
    fn limits_that_no_row_holds_are_refused() {
        assert!(Limit::Queue.check(Bytes(1_000_000)).is_ok());
        assert_eq!(Limit::Queue.check(Bytes(64 << 20)).unwrap_err().key, "queue");
        assert_eq!(Limit::Divided { min: Bytes(0) }.check(Bytes(1_000)).unwrap_err().key, "divided.min");
        assert!(Limit::Fixed { bytes: Bytes(9_000) }.check(Bytes(64 << 20)).is_ok());
    }

    #[test]
    fn bypass_is_for_an_empty_queue_and_only_if_asked() {
        let periodic = WorkConserving::Reallocate { period: Duration::from_ms(1), headroom: HEADROOM };
        assert!(WorkConserving::Bypass.bypasses(Bytes(0)) && !WorkConserving::Bypass.bypasses(Bytes(1)));
        assert!(!periodic.bypasses(Bytes(0)));
        assert!(periodic.check().is_ok());
        assert!(WorkConserving::Reallocate { period: Duration::ZERO, headroom: HEADROOM }.check().is_err());
        assert!(WorkConserving::Reallocate { period: Duration::from_ms(1), headroom: f64::NAN }.check().is_err());
    }

    #[test]
    fn whoever_wants_more_gets_what_others_leave() {
        // The idle one keeps a quarter of its 5 to wake with: 1.25.
        assert_eq!(reallocated(&[gbps(5, 5, 5), gbps(5, 5, 0)]), [8.75, 1.25]);
        // One uses 2 of 5 and keeps 2.5.
        assert_eq!(reallocated(&[gbps(5, 5, 5), gbps(5, 5, 2)]), [7.5, 2.5]);
        // Both want all: each its guarantee.
        assert_eq!(reallocated(&[gbps(6, 9, 9), gbps(4, 1, 1)]), [6.0, 4.0]);
    }

    #[test]
    fn a_guarantee_is_back_after_one_period() {
        assert_eq!(reallocated(&[gbps(5, 9, 9), gbps(5, 1, 3)]), [5.0, 5.0]);
    }

    #[test]
    fn what_nobody_wants_is_divided_by_guarantee() {
        // They want 1.5 and 0.5 (a quarter of 2 is the least); 8 is left, 3:1.
        assert_eq!(reallocated(&[gbps(6, 6, 0), gbps(2, 2, 0)]), [7.5, 2.5]);
    }

    proptest! {
        #[test]
        fn fills_the_link_and_starves_nobody(
            uses in prop::collection::vec((1_000_000u64..1_000_000_000, 1u64..4_000_000_000, 0u64..8_000_000_000), 1..10)
        ) {
            let capacity = 10_000_000_000;
            let entities: Vec<Usage> = uses
                .iter()
                .map(|&(guarantee, rate, arrived)| Usage {
                    guarantee: Rate::from_bps(guarantee),
                    rate: Rate::from_bps(rate),
                    arrived: Rate::from_bps(arrived),
                })
                .collect();
            let rates = reallocate(Rate::from_bps(capacity), HEADROOM, &entities);
            let sum: u64 = rates.iter().map(|r| r.bps()).sum();
            prop_assert!(sum <= capacity && sum + 2 * rates.len() as u64 >= capacity);
            for (entity, rate) in entities.iter().zip(&rates) {
                prop_assert!(*rate >= entity.guarantee.min(entity.arrived));
            }
        }
    }
}
