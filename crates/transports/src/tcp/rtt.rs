use units::Duration;

/// The retransmission timeout, by RFC 6298.
///
/// Before the first sample the estimate is what section 2.2 makes of the unloaded round trip: messages travel on
/// connections that have been used before, and a wait of one second (section 2.1) would dominate a run.
#[derive(Clone, Copy, Debug, node::State)]
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
    /// Least of four times the variance, as Linux has it: it adds to the round trip.
    pub variance_min: Duration,
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
        let variance = (self.rttvar * 4).max(bounds.granularity).max(bounds.variance_min);
        let rto = (self.srtt + variance).clamp(bounds.min, bounds.max);
        let factor = 1u64.checked_shl(self.backoff).unwrap_or(u64::MAX);
        Duration::from_ps(rto.ps().saturating_mul(factor)).min(bounds.max)
    }
}

#[cfg(test)]
mod tests;
