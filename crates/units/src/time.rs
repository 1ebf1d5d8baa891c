use std::iter::Sum;
use std::ops::{Add, AddAssign, Div, Mul, Sub, SubAssign};

use crate::quantity::{Notation, written_as};

const TIME: Notation = Notation {
    what: "duration",
    example: "\"200ns\" or \"5.8us\"",
    units: &[("s", 1_000_000_000_000), ("ms", 1_000_000_000), ("us", 1_000_000), ("ns", 1_000), ("ps", 1)],
};

/// A span of time in picoseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Duration(u64);
written_as!(Duration, TIME);

/// A point in time: picoseconds since the run began.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(u64);
written_as!(Time, TIME);

macro_rules! constructors {
    ($name:ident) => {
        impl $name {
            /// The start of the run, or an empty span.
            pub const ZERO: Self = Self(0);
            /// Later (or longer) than any event.
            pub const MAX: Self = Self(u64::MAX);

            /// From picoseconds.
            #[inline]
            pub const fn from_ps(ps: u64) -> Self {
                Self(ps)
            }
            /// From nanoseconds.
            #[inline]
            pub const fn from_ns(ns: u64) -> Self {
                Self(ns * 1_000)
            }
            /// From microseconds.
            #[inline]
            pub const fn from_us(us: u64) -> Self {
                Self(us * 1_000_000)
            }
            /// From milliseconds.
            #[inline]
            pub const fn from_ms(ms: u64) -> Self {
                Self(ms * 1_000_000_000)
            }
            /// From seconds, rounded to the nearest picosecond; negative and NaN give zero.
            #[inline]
            pub fn from_secs_f64(secs: f64) -> Self {
                Self((secs * 1e12 + 0.5) as u64)
            }
            /// In picoseconds.
            #[inline]
            pub const fn ps(self) -> u64 {
                self.0
            }
            /// In seconds, for statistics only.
            #[inline]
            pub const fn secs_f64(self) -> f64 {
                self.0 as f64 * 1e-12
            }
            /// In microseconds, for statistics only.
            #[inline]
            pub const fn us_f64(self) -> f64 {
                self.0 as f64 * 1e-6
            }
        }
    };
}
constructors!(Duration);
constructors!(Time);

impl Time {
    /// Time since an earlier time; zero if that is later.
    #[inline]
    pub const fn since(self, earlier: Time) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }
    /// The time `span` later, at most [`Time::MAX`].
    #[inline]
    pub const fn saturating_add(self, span: Duration) -> Time {
        Time(self.0.saturating_add(span.0))
    }
    /// Whether it is this many whole spans after the start.
    #[inline]
    pub const fn is_multiple_of(self, span: Duration) -> bool {
        self.0.is_multiple_of(span.0)
    }
    /// The first time, from this one on, that is this many whole spans after the start.
    #[inline]
    pub const fn next_multiple_of(self, span: Duration) -> Time {
        Time(self.0.next_multiple_of(span.0))
    }
}

impl Duration {
    /// This span times a real factor, rounded to the nearest picosecond; a negative factor gives zero.
    #[inline]
    pub fn mul_f64(self, factor: f64) -> Duration {
        Duration((self.0 as f64 * factor + 0.5) as u64)
    }
    /// The difference, or zero.
    #[inline]
    pub const fn saturating_sub(self, other: Duration) -> Duration {
        Duration(self.0.saturating_sub(other.0))
    }
}

impl Add<Duration> for Time {
    type Output = Time;
    #[inline]
    fn add(self, span: Duration) -> Time {
        Time(self.0 + span.0)
    }
}
impl AddAssign<Duration> for Time {
    #[inline]
    fn add_assign(&mut self, span: Duration) {
        self.0 += span.0;
    }
}
impl Sub<Duration> for Time {
    type Output = Time;
    #[inline]
    fn sub(self, span: Duration) -> Time {
        Time(self.0 - span.0)
    }
}
impl Sub<Time> for Time {
    type Output = Duration;
    #[inline]
    fn sub(self, earlier: Time) -> Duration {
        Duration(self.0 - earlier.0)
    }
}
impl Add for Duration {
    type Output = Duration;
    #[inline]
    fn add(self, other: Duration) -> Duration {
        Duration(self.0 + other.0)
    }
}
impl AddAssign for Duration {
    #[inline]
    fn add_assign(&mut self, other: Duration) {
        self.0 += other.0;
    }
}
impl Sub for Duration {
    type Output = Duration;
    #[inline]
    fn sub(self, other: Duration) -> Duration {
        Duration(self.0 - other.0)
    }
}
impl SubAssign for Duration {
    #[inline]
    fn sub_assign(&mut self, other: Duration) {
        self.0 -= other.0;
    }
}
impl Mul<u64> for Duration {
    type Output = Duration;
    #[inline]
    fn mul(self, factor: u64) -> Duration {
        Duration(self.0 * factor)
    }
}
impl Div<u64> for Duration {
    type Output = Duration;
    #[inline]
    fn div(self, divisor: u64) -> Duration {
        Duration(self.0 / divisor)
    }
}
impl Sum for Duration {
    fn sum<I: Iterator<Item = Duration>>(spans: I) -> Duration {
        spans.fold(Duration::ZERO, Add::add)
    }
}
