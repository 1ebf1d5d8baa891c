//! How much a flow could send (section 3.3.2, equation 1): d\[i+1\] = r\[i\] + q\[i\]/T, smoothed.
//!
//! r is what the flow has *sent* in the period. The paper's text has the allocated rate, but then the estimate could
//! never fall below the allocation, and no demand would ever be announced.
//!
//! A flow can't send faster than its host's link, so no estimate exceeds that: the backlog q grows while others use the
//! network, but is no unbounded demand. And an estimate is announced only if others' rates depend on it ([`is_news`]).

use units::{Duration, Time};

/// Whether a flow with rate `rate_bps` has to announce that it could use `demand_bps`, if it last announced
/// `announced_bps` (infinite: nothing yet).
///
/// Section 3.3.2: "Whenever a flow's demand drops below its current rate allocation, the sender broadcasts this
/// information". It must withdraw that when it could use more. But a flow that gets less than it has announced is
/// limited by the network: its share stays the same whatever more it asks for, so it need not announce its growing
/// backlog. Both rules have a margin of 5% against noise.
pub(super) fn is_news(demand_bps: f64, announced_bps: f64, rate_bps: f64) -> bool {
    let held_by_demand = rate_bps >= announced_bps * 0.95;
    // A rate may still be that of an older announcement.
    let falls = demand_bps < rate_bps.min(announced_bps) * 0.95;
    falls || held_by_demand && demand_bps > announced_bps * 1.05
}

#[derive(Clone, Copy, Default, node::State)]
pub(super) struct Demand {
    #[state(past)]
    from: Time,
    #[state(inherited(self.sent_bytes))]
    sent_bytes: u64,
    smoothed_bps: Option<f64>,
}

impl Demand {
    /// Starts a period, and discards the estimate.
    pub fn restart(&mut self, now: Time, sent_bytes: u64) {
        *self = Demand { from: now, sent_bytes, smoothed_bps: None };
    }

    /// The estimate at the end of a period, in bits per second on the wire, if there has been a period. `queued`
    /// message bytes wait at the sender, each of which takes `wire` on the wire; the host's link carries `most_bps`;
    /// `gain` is the weight of the newest estimate.
    pub fn estimate(
        &mut self,
        now: Time,
        sent_bytes: u64,
        queued: u64,
        wire: f64,
        most_bps: f64,
        gain: f64,
    ) -> Option<f64> {
        let period = now.since(self.from);
        if period == Duration::ZERO {
            return None;
        }
        let bytes = (sent_bytes - self.sent_bytes) as f64 + queued as f64;
        let fresh = (bytes * wire * 8.0 / (period.ps() as f64 * 1e-12)).min(most_bps);
        let smoothed = self.smoothed_bps.map_or(fresh, |before| before + gain * (fresh - before));
        *self = Demand { from: now, sent_bytes, smoothed_bps: Some(smoothed) };
        Some(smoothed)
    }
}

#[cfg(test)]
mod tests;
