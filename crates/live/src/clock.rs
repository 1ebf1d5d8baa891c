//! The real clock, and how far behind it things were done.

use std::time::Instant;

use units::{Duration, Time};

/// Time since the run began.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Clock {
    /// By the machine's clock.
    Real(Instant),
    /// A clock that stands still while something is done, and jumps to what is due next: a run by it is the same every
    /// time.
    #[cfg_attr(not(test), expect(dead_code, reason = "tests alone run by it"))]
    Virtual(Time),
}

impl Clock {
    /// The run begins now.
    #[expect(clippy::disallowed_methods, reason = "this is the one place of the project that reads the real clock")]
    pub fn start() -> Clock {
        Clock::Real(Instant::now())
    }

    /// The run begins now, and not when the clock was made.
    pub fn restart(&mut self) {
        *self = match self {
            Clock::Real(_) => Clock::start(),
            Clock::Virtual(_) => Clock::Virtual(Time::ZERO),
        };
    }

    pub fn now(self) -> Time {
        match self {
            Clock::Real(start) => Time::from_ns(start.elapsed().as_nanos() as u64),
            Clock::Virtual(now) => now,
        }
    }

    /// Nothing is to be done before `at`: how long there is to sleep.
    pub fn until(&mut self, at: Time) -> Duration {
        match self {
            Clock::Real(_) => at.since(self.now()),
            Clock::Virtual(now) => {
                *now = at.max(*now);
                Duration::ZERO
            }
        }
    }
}

/// How late things were: a count for each whole microsecond.
#[derive(Clone, Debug)]
pub(crate) struct Lateness {
    /// The last one counts everything from there on.
    micros: Vec<u64>,
    count: u64,
    max: Duration,
}

const MICROS: usize = 100_000;

impl Default for Lateness {
    fn default() -> Lateness {
        Lateness { micros: vec![0; MICROS], count: 0, max: Duration::ZERO }
    }
}

impl Lateness {
    pub fn note(&mut self, late: Duration) {
        self.count += 1;
        self.max = self.max.max(late);
        self.micros[(late.us_f64() as usize).min(MICROS - 1)] += 1;
    }

    pub fn add(&mut self, other: &Lateness) {
        self.count += other.count;
        self.max = self.max.max(other.max);
        self.micros.iter_mut().zip(&other.micros).for_each(|(sum, more)| *sum += more);
    }

    pub fn count(&self) -> u64 {
        self.count
    }

    pub fn max(&self) -> Duration {
        self.max
    }

    /// What the given share of all things did not exceed, rounded up to a microsecond; the maximum from 100 ms on.
    pub fn quantile(&self, share: f64) -> Duration {
        let wanted = (share * self.count as f64).ceil() as u64;
        let mut seen = 0;
        for (micros, &count) in self.micros.iter().enumerate() {
            seen += count;
            if seen >= wanted && micros < MICROS - 1 {
                return Duration::from_us(micros as u64 + 1).min(self.max);
            }
        }
        self.max
    }
}

/// Lets this thread's sleeps end on time while it lives: Linux otherwise adds up to 50 us to save power.
pub(crate) struct Punctual {
    #[cfg(target_os = "linux")]
    before: Option<u64>,
}

impl Punctual {
    pub fn new() -> Punctual {
        Punctual {
            #[cfg(target_os = "linux")]
            before: rustix::thread::current_timer_slack().ok().inspect(|_| set_slack(1)),
        }
    }
}

#[cfg(target_os = "linux")]
impl Drop for Punctual {
    fn drop(&mut self) {
        if let Some(before) = self.before {
            set_slack(before);
        }
    }
}

#[cfg(target_os = "linux")]
fn set_slack(nanoseconds: u64) {
    // Without it the run is later, and its lateness says so: no reason to fail.
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(nanoseconds));
}

#[cfg(test)]
mod tests;
