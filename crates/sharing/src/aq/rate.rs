//! The allocated rate R in three bytes (section 5.5: "three bytes for the AQ rate to support a wide range").
//!
//! A float with 5 bits of exponent and 19 bits of fraction after a hidden leading one. R is m / 2^19 bytes in a *tick*,
//! with m from 2^19 to 2^20 - 1, and a tick is 2^k ps, with k from 31 (the lowest rates) to 0. So every rate drains at
//! least one byte a tick and less than two; the arithmetic of [`gap`](super::gap) is the same for all, and its error is
//! under three bytes for all. The range is 3.73 Kbps to 16 Tbps, which includes the paper's 1 MB/s to 1 TB/s. The
//! nearest encodable rate is within 2^-20 (under 1 ppm) of any rate in the range.

use units::{Duration, Rate, Time};

/// Bits of the fraction m / 2^19.
pub(crate) const FRACTION: u32 = 19;
const EXPONENT_MAX: u32 = 31;
const BITS_PER_BYTE_PS: u128 = 8_000_000_000_000;

/// Ticks are counted modulo 2^24.
pub(crate) const CLOCK_BITS: u32 = 24;
const CLOCK_MASK: u32 = (1 << CLOCK_BITS) - 1;

/// A rate that a row can hold; larger codes are larger rates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, node::Saved)]
pub struct AqRate(u32);

impl AqRate {
    /// The lowest, 8 Tbps / 2^31: about 3.73 Kbps.
    pub const MIN: AqRate = AqRate(0);
    /// The highest, just under 16 Tbps.
    pub const MAX: AqRate = AqRate((1 << 24) - 1);
    /// Every rate from here to [`AqRate::BPS_MAX`] has a nearest code.
    pub const BPS_MIN: u64 = 3_726;
    /// See [`AqRate::BPS_MIN`].
    pub const BPS_MAX: u64 = 15_999_984_741_211;

    /// The encodable rate nearest to `rate`; `None` if it is out of range.
    pub fn nearest(rate: Rate) -> Option<AqRate> {
        (0..=EXPONENT_MAX).rev().find_map(|k| {
            let m = ((u128::from(rate.bps()) << (FRACTION + k)) + BITS_PER_BYTE_PS / 2) / BITS_PER_BYTE_PS;
            // A value that rounds up to 2^20 here is 2^19 one exponent further.
            let fraction = m.checked_sub(1 << FRACTION)?;
            (fraction < 1 << FRACTION).then(|| AqRate((EXPONENT_MAX - k) << FRACTION | fraction as u32))
        })
    }

    /// From the three bytes of a row; higher bits are ignored.
    pub const fn from_code(code: u32) -> AqRate {
        AqRate(code & 0xFF_FFFF)
    }

    /// The three bytes.
    pub const fn code(self) -> u32 {
        self.0
    }

    /// To the nearest bit per second.
    pub fn rate(self) -> Rate {
        let shift = FRACTION + self.exponent();
        let bps = (u128::from(self.mantissa()) * BITS_PER_BYTE_PS + (1 << (shift - 1))) >> shift;
        Rate::from_bps(bps as u64)
    }

    /// m: bytes in a tick times 2^19.
    #[inline]
    pub(crate) const fn mantissa(self) -> u64 {
        (1 << FRACTION) | (self.0 & ((1 << FRACTION) - 1)) as u64
    }

    /// k: a tick is 2^k ps.
    #[inline]
    pub(crate) const fn exponent(self) -> u32 {
        EXPONENT_MAX - (self.0 >> FRACTION)
    }

    /// The time on this rate's clock.
    #[inline]
    pub(crate) const fn clock(self, now: Time) -> u32 {
        (now.ps() >> self.exponent()) as u32 & CLOCK_MASK
    }

    /// How long its clock runs until it wraps.
    pub const fn wrap(self) -> Duration {
        Duration::from_ps(1 << (CLOCK_BITS + self.exponent()))
    }

    /// Bytes that it drains between two readings of its clock less than a wrap apart. The difference of two rounded
    /// totals, so that rounding doesn't add up from packet to packet; a wrap drains 2^5 m bytes, a whole number, so the
    /// totals stay in step across it.
    #[inline]
    pub(crate) const fn drained(self, from: u32, to: u32) -> u32 {
        let to = if to < from { to as u64 + (1 << CLOCK_BITS) } else { to as u64 };
        let m = self.mantissa();
        (((m * to) >> FRACTION) - ((m * from as u64) >> FRACTION)) as u32
    }

    /// The parts that are rounded away at `now`: the part of a tick, and the part of a byte of what has drained in all.
    /// Two times that agree in this are alike for a gap.
    pub(crate) const fn rounding(self, now: Time) -> u64 {
        let tick = now.ps() & ((1 << self.exponent()) - 1);
        let byte = (self.mantissa() * self.clock(now) as u64) & ((1 << FRACTION) - 1);
        tick << FRACTION | byte
    }

    /// Time to drain `bytes`, rounded down to a tick.
    #[inline]
    pub(crate) const fn delay(self, bytes: u32) -> Duration {
        Duration::from_ps((((bytes as u64) << FRACTION) / self.mantissa()) << self.exponent())
    }
}

#[cfg(test)]
mod tests;
