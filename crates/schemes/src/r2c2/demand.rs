//! How much a flow could send (section 3.3.2, equation 1): d\[i+1\] = r\[i\] + q\[i\]/T, smoothed.
//!
//! r is what the flow has *sent* in the period. The paper's text has the rate that it was allocated; then the estimate could never fall below the allocation,
//! and no demand would ever be announced.

use units::{Duration, Time};

#[derive(Clone, Copy, Default)]
pub(super) struct Demand {
    from: Time,
    sent_bytes: u64,
    smoothed_bps: Option<f64>,
}

impl Demand {
    /// A period begins, and what was estimated is void.
    pub fn restart(&mut self, now: Time, sent_bytes: u64) {
        *self = Demand { from: now, sent_bytes, smoothed_bps: None };
    }

    /// The estimate at a period's end, in bits per second on the wire, if there has been a period. `queued` message bytes wait at the sender,
    /// each of which takes `wire` on the wire; `gain` is the weight of the newest.
    pub fn estimate(&mut self, now: Time, sent_bytes: u64, queued: u64, wire: f64, gain: f64) -> Option<f64> {
        let period = now.since(self.from);
        if period == Duration::ZERO {
            return None;
        }
        let bytes = (sent_bytes - self.sent_bytes) as f64 + queued as f64;
        let fresh = bytes * wire * 8.0 / (period.ps() as f64 * 1e-12);
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
        let first = demand.estimate(Time::from_us(10), 1_000, 250, 1.0, 0.5).unwrap();
        assert!((first - 1e9).abs() < 1.0, "{first}");
        // Nothing more in the next: half of it.
        let second = demand.estimate(Time::from_us(20), 1_000, 0, 1.0, 0.5).unwrap();
        assert!((second - 0.5e9).abs() < 1.0, "{second}");
        assert_eq!(demand.estimate(Time::from_us(20), 1_000, 0, 1.0, 0.5), None);
    }
}
