//! Guarantee partitioning (GP): how one end of the pairs divides its hose among them.
//!
//! Max-min by demand: a pair gets what it wants, or an equal share of what pairs with less demand leave. The remainder
//! is divided equally on top, so that the whole hose is always given out, and a pair that wakes up is not held to its
//! earlier low demand.

use units::{Rate, Time};

/// A pair's demand on a hose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, node::Saved)]
pub enum Demand {
    /// It has used less than it might: its demand is this rate.
    Bounded(Rate),
    /// It has used all that it had, and may want more.
    Unbounded,
}

/// Divides `hose`: the parts in the order of `demands`. They add up to `hose`.
pub fn partition(hose: Rate, demands: &[Demand]) -> Vec<Rate> {
    let mut modest: Vec<usize> = (0..demands.len()).collect();
    modest.sort_by_key(|&pair| demands[pair]);
    let mut left = hose.bps();
    let mut parts = vec![0; demands.len()];
    for (served, &pair) in modest.iter().enumerate() {
        let share = left / (demands.len() - served) as u64;
        parts[pair] = match demands[pair] {
            Demand::Bounded(demand) => share.min(demand.bps()),
            Demand::Unbounded => share,
        };
        left -= parts[pair];
    }
    for (served, part) in parts.iter_mut().enumerate() {
        let share = left / (demands.len() - served) as u64;
        *part += share;
        left -= share;
    }
    parts.into_iter().map(Rate::from_bps).collect()
}

/// One end's state of a pair.
#[derive(Clone, Debug, node::Saved)]
pub(super) struct Claim {
    /// Whether something was sent or waits, in this period or the previous one.
    pub active: bool,
    /// Wire bytes passed in this period.
    pub bytes: u64,
    /// This end's part of its hose.
    pub part: Rate,
    /// The other end's part, as far as known.
    pub other_part: Rate,
    since: Time,
    demand: Demand,
}

impl Claim {
    pub fn new() -> Claim {
        Claim {
            active: false,
            bytes: 0,
            part: Rate::ZERO,
            other_part: UNKNOWN,
            since: Time::ZERO,
            demand: Demand::Unbounded,
        }
    }

    /// A silent pair sends: it gets an equal share at once, until the other end reports.
    pub fn begin(&mut self, now: Time) {
        self.active = true;
        self.since = now;
        self.demand = Demand::Unbounded;
        self.other_part = UNKNOWN;
    }

    /// The pair's guarantee: the lesser part of both ends.
    pub fn guarantee(&self) -> Rate {
        self.part.min(self.other_part)
    }
}

/// The other end's part before its first report. This end's part then counts.
const UNKNOWN: Rate = Rate::from_bps(u64::MAX);

/// Divides `hose` among the active pairs, by their demands at the end of the last period.
pub(super) fn divide<'a>(hose: Rate, claims: impl Iterator<Item = &'a mut Claim>) {
    let active: Vec<&mut Claim> = claims.filter(|claim| claim.active).collect();
    // Bandwidth that the other end does not allow a pair is available to others.
    let demands: Vec<Demand> = active.iter().map(|claim| claim.demand.min(Demand::Bounded(claim.other_part))).collect();
    for (claim, part) in active.into_iter().zip(partition(hose, &demands)) {
        claim.part = part;
    }
}

/// The period from `began` has ended: estimates demands from the bytes that passed and wait.
pub(super) fn estimate<'a>(
    (began, now): (Time, Time),
    hose: Rate,
    headroom: f64,
    claims: impl Iterator<Item = (&'a mut Claim, u64)>,
) {
    let mut active = Vec::new();
    for (claim, waiting) in claims.filter(|(claim, _)| claim.active) {
        claim.active = claim.bytes + waiting > 0;
        if claim.active {
            active.push((claim, waiting));
        }
    }
    let share = Rate::from_bps(hose.bps() / active.len().max(1) as u64);
    for (claim, waiting) in active {
        let bits = u128::from(claim.bytes + waiting) * 8_000_000_000_000;
        let rate = bits.checked_div(u128::from(now.since(began).ps())).unwrap_or(u128::MAX);
        let rate = Rate::from_bps(u64::try_from(rate).unwrap_or(u64::MAX));
        // A pair younger than the period has not shown its demand yet.
        let used_up = rate >= claim.guarantee().mul_f64(1.0 - headroom);
        claim.demand = if used_up || claim.since > began {
            Demand::Unbounded
        } else {
            Demand::Bounded(Rate::from_bps(rate.bps() + share.mul_f64(headroom).bps()))
        };
        claim.bytes = 0;
    }
}

#[cfg(test)]
mod tests;
