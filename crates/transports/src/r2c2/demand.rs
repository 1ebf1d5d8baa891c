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

#[derive(Clone, Copy, Default)]
pub(super) struct Demand {
    from: Time,
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
mod tests {
    use super::*;

    #[test]
    fn the_estimate_is_what_was_sent_and_what_waits_over_the_period() {
        let mut demand = Demand::default();
        demand.restart(Time::ZERO, 0);
        // 1,000 bytes sent and 250 waiting in 10 us are 1 Gbps.
        let first = demand.estimate(Time::from_us(10), 1_000, 250, 1.0, 1e10, 0.5).unwrap();
        assert!((first - 1e9).abs() < 1.0, "{first}");
        // Nothing more in the next: half of it.
        let second = demand.estimate(Time::from_us(20), 1_000, 0, 1.0, 1e10, 0.5).unwrap();
        assert!((second - 0.5e9).abs() < 1.0, "{second}");
        assert_eq!(demand.estimate(Time::from_us(20), 1_000, 0, 1.0, 1e10, 0.5), None);
    }

    #[test]
    fn no_estimate_is_more_than_the_host_s_link_carries() {
        let mut demand = Demand::default();
        demand.restart(Time::ZERO, 0);
        let most = demand.estimate(Time::from_us(10), 0, 1_000_000, 1.0, 1e10, 0.5);
        assert_eq!(most, Some(1e10));
    }

    #[test]
    fn an_estimate_is_news_where_rates_depend_on_it() {
        // Nothing announced: only what falls below the rate.
        assert!(is_news(0.9e9, f64::INFINITY, 1e9) && !is_news(0.97e9, f64::INFINITY, 1e9));
        // Held by what was announced: up and down.
        assert!(is_news(1.1e9, 1e9, 1e9) && is_news(0.9e9, 1e9, 1e9) && !is_news(1.04e9, 1e9, 1e9));
        // A rate from before what was announced last says nothing.
        assert!(!is_news(1.02e9, 1e9, 3e9) && is_news(0.9e9, 1e9, 3e9));
        // Held by the network at a tenth of that, or starved: more backlog changes nothing, a lower demand than the
        // rate does.
        assert!(!is_news(9e9, 1e9, 1e8) && !is_news(9e9, 1e9, 0.0) && is_news(0.5e8, 1e9, 1e8));
    }
}
