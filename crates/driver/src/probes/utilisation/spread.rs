//! Bytes spread over the time in which a link carries them.

use units::{Duration, Rate};

/// Amounts are counted in units of so many to a byte: a link carries less than a byte in a short interval.
const FINE: u128 = 1 << 12;

/// An amount in bytes.
pub(super) fn in_bytes(amount: u128) -> f64 {
    amount as f64 / FINE as f64
}

/// A rate in bit/s times a time in picoseconds gives so much to a bit.
const BIT: u128 = 1_000_000_000_000;

/// What a link had carried by the last sample, in bits times picoseconds a second.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Carried(u128);

impl Carried {
    /// Returns the amount that a link of `rate` has carried in the `span` since the last call, when a counter stands at
    /// `bytes` which has had each packet's bytes at once, and the transmitter is busy for `to_leave`.
    ///
    /// What has not left is not counted yet, and neither is more than the link carries in the span. What else keeps a
    /// transmitter busy, such as a frame, is in no counter: a packet before it may be counted late by as much, and is
    /// never counted twice.
    pub fn by(&mut self, span: Duration, rate: Rate, bytes: u64, to_leave: Duration) -> u64 {
        let in_time = |time: Duration| u128::from(rate.bps()) * u128::from(time.ps());
        let all = u128::from(bytes) * 8 * BIT;
        let by_now = all.saturating_sub(in_time(to_leave)).max(self.0).min(self.0 + in_time(span));
        let before = std::mem::replace(&mut self.0, by_now);
        // Differences of rounded amounts add up to the rounded whole.
        let rounded = |amount: u128| amount * FINE / (8 * BIT);
        u64::try_from(rounded(by_now) - rounded(before)).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests;
