//! The run's clock, and how late events were processed.
//!
//! Nodes use network time, which is the machine's time divided by the dilation. So the scenario stays as it is, and
//! only the clock is slower. All workers have the same clock.
//!
//! **Standing still.** An event is processed with the time at which it was due, late or not. So lateness does not
//! change what nodes do, as long as the run catches up. If an event is later than [`CREDIT`], the clock is set back by
//! the excess, as if the network had stood still for that long, and the audit reports it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use hdrhistogram::Histogram;
use rustix::time::{ClockId, clock_gettime};
use units::{Duration, Time};

/// How far nodes may live behind the machine's clock before that is set back: a few turns of a busy machine's
/// scheduler. In the machine's time.
pub const CREDIT: Duration = Duration::from_ms(10);

/// For how long a thread has been without a core, since it began to want one all the time.
pub(crate) struct Away {
    began: std::time::Duration,
    used: std::time::Duration,
}

impl Away {
    /// The calling thread begins.
    pub fn begin() -> Away {
        Away { began: read(ClockId::Monotonic), used: read(ClockId::ThreadCPUTime) }
    }

    /// How long the calling thread has had no core, in the machine's time. Call it on the thread that began.
    pub fn so_far(&self) -> Duration {
        let wall = read(ClockId::Monotonic).saturating_sub(self.began);
        let used = read(ClockId::ThreadCPUTime).saturating_sub(self.used);
        Duration::from_ns(wall.saturating_sub(used).as_nanos() as u64)
    }
}

fn read(clock: ClockId) -> std::time::Duration {
    clock_gettime(clock).try_into().unwrap_or_default()
}

/// Time since the run began, for all threads.
pub(crate) struct Clock {
    source: Source,
    /// Times the machine's time is slowed down.
    dilation: u64,
    /// [`CREDIT`] in the network's time; `slack` adds the time until another worker has heard of an event.
    credit: Duration,
    slack: Duration,
    /// How long the network has stood still, in the machine's nanoseconds.
    stood_ns: AtomicU64,
}

/// When a run began that has not begun: so far in the future that its time is zero.
const NEVER: u64 = u64::MAX / 2;

enum Source {
    /// The machine's clock, and when the run began by it, in nanoseconds; [`NEVER`] before that.
    Machine { made: Instant, began_ns: AtomicU64 },
    /// A clock that jumps to the next event, so that a run is the same every time. In picoseconds.
    #[cfg_attr(not(test), expect(dead_code, reason = "tests alone run by it"))]
    Jumping(AtomicU64),
}

impl Clock {
    /// By the machine's clock; the run begins when it is [started](Clock::start). `lookahead` is how long what happens
    /// in one worker takes to reach another.
    #[expect(clippy::disallowed_methods, reason = "this is the one place of the project that reads the real clock")]
    pub fn new(dilation: u32, lookahead: Duration) -> Clock {
        let source = Source::Machine { made: Instant::now(), began_ns: AtomicU64::new(NEVER) };
        Clock::of(source, dilation, lookahead)
    }

    /// A clock that jumps.
    #[cfg(test)]
    pub fn jumping() -> Clock {
        Clock::of(Source::Jumping(AtomicU64::new(0)), 1, Duration::ZERO)
    }

    fn of(source: Source, dilation: u32, lookahead: Duration) -> Clock {
        let dilation = u64::from(dilation);
        let credit = Duration::from_ps(CREDIT.ps() / dilation);
        Clock { source, dilation, credit, slack: credit + lookahead, stood_ns: AtomicU64::new(0) }
    }

    /// The run begins now.
    pub fn start(&self) {
        if let Source::Machine { made, began_ns } = &self.source {
            began_ns.store(made.elapsed().as_nanos() as u64, Ordering::SeqCst);
        }
    }

    /// The run has begun at an instant that is the same in all processes: see [`instant_ns`].
    pub fn start_at(&self, began: u64) {
        if let Source::Machine { made, began_ns } = &self.source {
            let ago = instant_ns().saturating_sub(began);
            began_ns.store((made.elapsed().as_nanos() as u64).saturating_sub(ago), Ordering::SeqCst);
        }
    }

    /// The same; waits until that instant has come.
    pub fn begin_at(&self, began: u64) {
        std::thread::sleep(std::time::Duration::from_nanos(began.saturating_sub(instant_ns())));
        self.start_at(began);
    }

    /// Now, in the network's time; zero before the run has begun.
    #[inline]
    pub fn now(&self) -> Time {
        match &self.source {
            Source::Machine { made, began_ns } => {
                let since_made = made.elapsed().as_nanos() as u64;
                let before = began_ns.load(Ordering::Relaxed) + self.stood_ns.load(Ordering::Relaxed);
                Time::from_ps(since_made.saturating_sub(before) * 1_000 / self.dilation)
            }
            Source::Jumping(now) => Time::from_ps(now.load(Ordering::Relaxed)),
        }
    }

    /// The time at which an application learns of an event that was due at `due`: later by the event's lateness, but
    /// not by the time for which the clock was stopped.
    pub fn told_at(&self, due: Time) -> Time {
        match &self.source {
            Source::Machine { .. } => self.now().clamp(due, due + self.credit),
            Source::Jumping(_) => due,
        }
    }

    /// The clock's time, if it has reached `due`. A clock that jumps always has.
    #[inline(always)]
    pub fn come_to(&self, due: Time) -> Option<Time> {
        match &self.source {
            Source::Machine { .. } => Some(self.now()).filter(|&now| now >= due),
            Source::Jumping(now) => {
                now.fetch_max(due.ps(), Ordering::Relaxed);
                Some(due)
            }
        }
    }

    /// How long until `at`, in the machine's time.
    pub fn until(&self, at: Time) -> std::time::Duration {
        match &self.source {
            Source::Machine { .. } => {
                let ns = u128::from(at.since(self.now()).ps()) * u128::from(self.dilation) / 1_000;
                std::time::Duration::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX))
            }
            Source::Jumping(_) => std::time::Duration::ZERO,
        }
    }

    /// An event that was due at `due` is about to be processed. If it is too late, sets the clock back. Returns by how
    /// much, in the network's time.
    #[inline]
    pub fn forgive(&self, due: Time, wall: Time) -> Duration {
        if wall.since(due) <= self.slack { Duration::ZERO } else { self.set_back(due) }
    }

    #[cold]
    fn set_back(&self, due: Time) -> Duration {
        loop {
            let stood = self.stood_ns.load(Ordering::SeqCst);
            let Some(over) = self.now().since(due).ps().checked_sub(self.slack.ps()) else { return Duration::ZERO };
            let over_ns = (over / 1_000).saturating_mul(self.dilation);
            // Another thread may have done it in the meantime.
            if self.stood_ns.compare_exchange(stood, stood + over_ns, Ordering::SeqCst, Ordering::SeqCst).is_ok() {
                return Duration::from_ps(over);
            }
        }
    }

    /// How long the network has stood still, in its own time.
    pub fn stood(&self) -> Duration {
        Duration::from_ps(self.stood_ns.load(Ordering::SeqCst) * 1_000 / self.dilation)
    }

    /// How long the run has lasted by the machine's clock; zero with a clock that jumps.
    pub fn machine(&self) -> std::time::Duration {
        match &self.source {
            Source::Machine { made, began_ns } => {
                let began = std::time::Duration::from_nanos(began_ns.load(Ordering::SeqCst));
                made.elapsed().saturating_sub(began)
            }
            Source::Jumping(_) => std::time::Duration::ZERO,
        }
    }

    /// Whether this is the machine's clock.
    pub fn is_real(&self) -> bool {
        matches!(self.source, Source::Machine { .. })
    }
}

/// The machine's monotonic clock, in nanoseconds.
pub(crate) fn instant_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// The largest lateness that is recorded, 18 minutes; anything later counts as this.
const LATE_PS_MAX: u64 = 1 << 50;

/// How late things were, to 1%.
#[derive(Clone, Debug)]
pub(crate) struct Lateness(Histogram<u64>);

impl Default for Lateness {
    fn default() -> Lateness {
        Lateness(Histogram::new_with_bounds(1, LATE_PS_MAX, 2).expect("two digits are allowed"))
    }
}

impl Lateness {
    #[inline]
    pub fn note(&mut self, late: Duration) {
        self.0.saturating_record(late.ps());
    }

    pub fn add(&mut self, other: &Lateness) {
        self.0.add(&other.0).expect("both have the same bounds");
    }

    pub fn count(&self) -> u64 {
        self.0.len()
    }

    pub fn max(&self) -> Duration {
        Duration::from_ps(self.0.max())
    }

    /// How late, and how often that was.
    pub fn counted(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.0.iter_recorded().map(|bucket| (bucket.value_iterated_to(), bucket.count_at_value()))
    }

    /// Notes that something was so late this many times.
    pub fn note_many(&mut self, late_ps: u64, times: u64) {
        self.0.saturating_record_n(late_ps, times);
    }

    /// The lateness that the given share of all events did not exceed.
    pub fn quantile(&self, share: f64) -> Duration {
        Duration::from_ps(self.0.value_at_quantile(share)).min(self.max())
    }
}

/// The lateness of the packets that came out of one link.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LinkLateness {
    /// Whether it leads from another worker.
    pub crosses: bool,
    pub packets: u64,
    pub sum: Duration,
    pub max: Duration,
    /// Time for which the network stood still because of it.
    pub stood: Duration,
}

impl LinkLateness {
    pub fn of(crosses: bool) -> LinkLateness {
        LinkLateness { crosses, ..LinkLateness::default() }
    }

    #[inline]
    pub fn note(&mut self, late: Duration, stood: Duration) {
        self.packets += 1;
        self.sum += late;
        self.max = self.max.max(late);
        self.stood += stood;
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
