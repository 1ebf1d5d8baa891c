use crate::Duration;
use crate::quantity::{Notation, written_as};

const RATE: Notation = Notation {
    what: "rate",
    example: "\"100Gbps\" or \"2.5Mbps\"",
    units: &[("Tbps", 1_000_000_000_000), ("Gbps", 1_000_000_000), ("Mbps", 1_000_000), ("Kbps", 1_000), ("bps", 1)],
};

/// Bits per second.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Rate(u64);
written_as!(Rate, RATE);

impl Rate {
    /// Zero.
    pub const ZERO: Rate = Rate(0);

    /// From bits per second.
    #[inline]
    pub const fn from_bps(bps: u64) -> Rate {
        Rate(bps)
    }
    /// From gigabits (10^9 bits) per second.
    #[inline]
    pub const fn from_gbps(gbps: u64) -> Rate {
        Rate(gbps * 1_000_000_000)
    }
    /// In bits per second.
    #[inline]
    pub const fn bps(self) -> u64 {
        self.0
    }
    /// This rate times a real factor, to the nearest bit per second.
    #[inline]
    pub fn mul_f64(self, factor: f64) -> Rate {
        Rate((self.0 as f64 * factor + 0.5) as u64)
    }
    /// Time to transmit `bytes`, rounded up to a picosecond; [`Duration::MAX`] at rate zero.
    #[inline]
    pub fn transmit(self, bytes: u64) -> Duration {
        if self.0 == 0 {
            return Duration::MAX;
        }
        let ps = (u128::from(bytes) * 8_000_000_000_000).div_ceil(u128::from(self.0));
        Duration::from_ps(u64::try_from(ps).unwrap_or(u64::MAX))
    }
    /// Whole bytes that are transmitted in `span`.
    #[inline]
    pub fn bytes_in(self, span: Duration) -> u64 {
        let bytes = u128::from(self.0) * u128::from(span.ps()) / 8_000_000_000_000;
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }
    /// [`Rate::transmit`] prepared for the hot path.
    pub fn per_byte(self) -> PerByte {
        PerByte::new(self)
    }
}

/// Transmission time of a byte, in units of 2^-20 ps. A packet costs one multiplication and one shift. The time is
/// exact for every rate whose time for a byte is a multiple of 2^-20 ps (including all multiples of 1 Gbps that divide
/// 8 Tbps), and otherwise at most 1 ps late and never early.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PerByte {
    scaled: u64,
    /// Times are rounded down to multiples of this many picoseconds; 0 does not round.
    step_ps: u64,
}

impl PerByte {
    const SHIFT: u32 = 20;

    fn new(rate: Rate) -> PerByte {
        let scaled = (8_000_000_000_000u128 << Self::SHIFT).div_ceil(u128::from(rate.bps().max(1)));
        PerByte { scaled: u64::try_from(scaled).unwrap_or(u64::MAX), step_ps: 0 }
    }

    /// The same with times rounded down to whole multiples of `step`, as in a program with a coarser clock; zero does
    /// not round.
    pub fn in_steps_of(self, step: Duration) -> PerByte {
        PerByte { step_ps: step.ps(), ..self }
    }

    /// The same for another rate, with the same rounding.
    pub fn at(self, rate: Rate) -> PerByte {
        PerByte { step_ps: self.step_ps, ..PerByte::new(rate) }
    }

    /// Time to transmit `bytes`.
    #[inline]
    pub const fn transmit(self, bytes: u32) -> Duration {
        let scaled = bytes as u128 * self.scaled as u128;
        let ps = ((scaled + ((1 << Self::SHIFT) - 1)) >> Self::SHIFT) as u64;
        Duration::from_ps(if self.step_ps == 0 { ps } else { ps - ps % self.step_ps })
    }

    /// Whole bytes that are transmitted in `span`, without rounding to steps.
    pub fn bytes_in(self, span: Duration) -> u64 {
        let bytes = (u128::from(span.ps()) << Self::SHIFT) / u128::from(self.scaled.max(1));
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests;
