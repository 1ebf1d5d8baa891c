use crate::Duration;
use crate::quantity::{Notation, written_as};

const RATE: Notation = Notation {
    what: "rate",
    example: "\"100Gbps\" or \"2.5Mbps\"",
    units: &[("Tbps", 1_000_000_000_000), ("Gbps", 1_000_000_000), ("Mbps", 1_000_000), ("Kbps", 1_000), ("bps", 1)],
};

const TOLERANCE: Notation = Notation { what: "tolerance", example: "\"100ppm\"", units: &[("ppm", 1_000), ("ppb", 1)] };

/// By how much a rate may be off either way, in parts per billion of it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Tolerance(u64);
written_as!(Tolerance, TOLERANCE);

impl Tolerance {
    /// None: exact.
    pub const ZERO: Tolerance = Tolerance(0);

    /// From parts per million.
    pub const fn from_ppm(ppm: u64) -> Tolerance {
        Tolerance(ppm * 1_000)
    }
    /// In parts per billion.
    pub const fn ppb(self) -> u64 {
        self.0
    }
}

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
    step_ps: u32,
    /// By how many parts per billion the clock is fast, or slow if negative.
    clock_ppb: i32,
}

impl PerByte {
    const SHIFT: u32 = 20;

    fn new(rate: Rate) -> PerByte {
        PerByte { scaled: 0, step_ps: 0, clock_ppb: 0 }.at(rate)
    }

    /// The same with times rounded down to whole multiples of `step`, as in a program with a coarser clock; zero does
    /// not round. Steps are shorter than 4 ms.
    pub fn in_steps_of(self, step: Duration) -> PerByte {
        PerByte { step_ps: u32::try_from(step.ps()).expect("a step is short"), ..self }
    }

    /// The same for another rate, with the same rounding and the same clock.
    pub fn at(self, rate: Rate) -> PerByte {
        const BILLION: u128 = 1_000_000_000;
        let fast = BILLION.checked_add_signed(self.clock_ppb.into()).expect("a clock is not slow by all");
        let real = u128::from(rate.bps().max(1)) * fast;
        let scaled = ((8_000_000_000_000u128 << Self::SHIFT) * BILLION).div_ceil(real);
        PerByte { scaled: u64::try_from(scaled).unwrap_or(u64::MAX), ..self }
    }

    /// The same for a rate, by a clock that is fast by `clock_ppb` parts per billion, or slow if that is negative. It
    /// is below one in ten.
    pub fn by_clock(self, rate: Rate, clock_ppb: i32) -> PerByte {
        PerByte { clock_ppb, ..self }.at(rate)
    }

    /// Time to transmit `bytes`.
    #[inline]
    pub const fn transmit(self, bytes: u32) -> Duration {
        let scaled = bytes as u128 * self.scaled as u128;
        let ps = ((scaled + ((1 << Self::SHIFT) - 1)) >> Self::SHIFT) as u64;
        Duration::from_ps(if self.step_ps == 0 { ps } else { ps - ps % self.step_ps as u64 })
    }

    /// All that it is.
    pub(crate) fn saved(self) -> (u64, u32, i32) {
        (self.scaled, self.step_ps, self.clock_ppb)
    }

    /// The one of which this was all.
    pub(crate) fn from_saved((scaled, step_ps, clock_ppb): (u64, u32, i32)) -> PerByte {
        PerByte { scaled, step_ps, clock_ppb }
    }

    /// Whole bytes that are transmitted in `span`, without rounding to steps.
    pub fn bytes_in(self, span: Duration) -> u64 {
        let bytes = (u128::from(span.ps()) << Self::SHIFT) / u128::from(self.scaled.max(1));
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests;
