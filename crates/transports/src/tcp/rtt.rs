use units::Duration;

/// The retransmission timeout, by RFC 6298.
///
/// Before the first sample the estimate is what section 2.2 makes of the unloaded round trip: messages travel on
/// connections that have been used before, and a wait of one second (section 2.1) would dominate a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rtt {
    srtt: Duration,
    rttvar: Duration,
    sampled: bool,
    /// Number of doublings of the timeout since the last sample.
    backoff: u32,
}

/// Bounds of the timeout.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    pub min: Duration,
    pub max: Duration,
    pub granularity: Duration,
}

impl Rtt {
    /// An estimate for a path whose unloaded round trip is `unloaded`.
    pub fn new(unloaded: Duration) -> Rtt {
        Rtt { srtt: unloaded, rttvar: unloaded / 2, sampled: false, backoff: 0 }
    }

    /// Adds the round trip of a segment that was sent once (the caller applies Karn's rule), and ends the backoff.
    #[inline]
    pub fn sample(&mut self, rtt: Duration) {
        if self.sampled {
            let error = Duration::from_ps(self.srtt.ps().abs_diff(rtt.ps()));
            self.rttvar = (self.rttvar * 3 + error) / 4;
            self.srtt = (self.srtt * 7 + rtt) / 8;
        } else {
            (self.srtt, self.rttvar, self.sampled) = (rtt, rtt / 2, true);
        }
        self.backoff = 0;
    }

    /// The timeout has expired: the next is twice as long.
    pub fn back_off(&mut self) {
        self.backoff += 1;
    }

    /// Smoothed round trip.
    #[inline]
    pub fn smoothed(&self) -> Duration {
        self.srtt
    }

    /// The timeout.
    #[inline]
    pub fn timeout(&self, bounds: &Bounds) -> Duration {
        let rto = (self.srtt + bounds.granularity.max(self.rttvar * 4)).clamp(bounds.min, bounds.max);
        let factor = 1u64.checked_shl(self.backoff).unwrap_or(u64::MAX);
        Duration::from_ps(rto.ps().saturating_mul(factor)).min(bounds.max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: Bounds =
        Bounds { min: Duration::from_us(100), max: Duration::from_ms(1), granularity: Duration::from_us(1) };

    #[test]
    fn the_estimate_follows_rfc_6298() {
        let mut rtt = Rtt::new(Duration::from_us(50));
        assert_eq!(rtt.timeout(&BOUNDS), Duration::from_us(150));
        // (2.2): SRTT = 80, RTTVAR = 40, RTO = 80 + 4 x 40.
        rtt.sample(Duration::from_us(80));
        assert_eq!((rtt.smoothed(), rtt.timeout(&BOUNDS)), (Duration::from_us(80), Duration::from_us(240)));
        // (2.3): RTTVAR = 3/4 x 40 + 1/4 x |80 - 160| = 50, then SRTT = 7/8 x 80 + 1/8 x 160 = 90.
        rtt.sample(Duration::from_us(160));
        assert_eq!((rtt.smoothed(), rtt.timeout(&BOUNDS)), (Duration::from_us(90), Duration::from_us(290)));
    }

    #[test]
    fn a_steady_path_ends_at_the_bounds_and_the_granularity() {
        let mut rtt = Rtt::new(Duration::from_us(50));
        for _ in 0..100 {
            rtt.sample(Duration::from_us(40));
        }
        assert_eq!(rtt.timeout(&BOUNDS), Duration::from_us(100));
        let loose = Bounds { min: Duration::ZERO, ..BOUNDS };
        assert_eq!(rtt.timeout(&loose), Duration::from_us(41));
    }

    #[test]
    fn the_timeout_doubles_until_its_maximum_or_a_sample() {
        let mut rtt = Rtt::new(Duration::from_us(50));
        let mut timeouts = Vec::new();
        for _ in 0..4 {
            timeouts.push(rtt.timeout(&BOUNDS));
            rtt.back_off();
        }
        assert_eq!(timeouts, [150, 300, 600, 1000].map(Duration::from_us));
        for _ in 0..100 {
            rtt.back_off();
        }
        assert_eq!(rtt.timeout(&BOUNDS), BOUNDS.max);
        rtt.sample(Duration::from_us(50));
        assert_eq!(rtt.timeout(&BOUNDS), Duration::from_us(150));
    }
}
