//! Bytes spread over the time in which a link carries them.

use units::{Duration, Rate};

/// Units in a byte: amounts are counted in 4,096ths, because a link carries less than a byte in a short interval.
const FINE: u128 = 1 << 12;

/// An amount in bytes.
pub(super) fn in_bytes(amount: u128) -> f64 {
    amount as f64 / FINE as f64
}

/// A bit, in the unit of a rate in bit/s times a time in picoseconds.
const BIT: u128 = 1_000_000_000_000;

/// The amount that a link had carried by the last sample, in bit/s times picoseconds.
#[derive(Clone, Copy, Debug, Default, node::Saved)]
pub(super) struct Carried(u128);

impl Carried {
    /// Returns the amount that a link of `rate` has carried in the `span` since the last call, when a counter stands at
    /// `bytes` which has had each packet's bytes at once, and the transmitter is busy for `to_leave`.
    ///
    /// Bytes that have not left are not counted yet, and no span has more than the link can carry. A frame of the flow
    /// control keeps the transmitter busy and is in no counter: the packet before it may be counted later by the
    /// frame's length, and is never counted twice.
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
