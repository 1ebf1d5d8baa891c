use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex};

/// A barrier for the threads of a run. The last thread to come does what is to be done once, then all go on.
///
/// A thread that waits spins first, since the others usually need about a microsecond more; then it yields, since they
/// may have no core; then it sleeps, since they may have much more work than it had.
pub(crate) struct Barrier {
    parties: usize,
    arrived: AtomicUsize,
    round: AtomicUsize,
    broken: AtomicBool,
    /// Threads that sleep or are about to.
    sleepers: AtomicUsize,
    door: Mutex<()>,
    opened: Condvar,
}

/// Another thread has panicked, so waiting is pointless.
#[derive(Debug)]
pub(crate) struct Broken;

const SPINS: u32 = 2_000;
const YIELDS: u32 = 50;

impl Barrier {
    pub fn new(parties: usize) -> Barrier {
        Barrier {
            parties,
            arrived: AtomicUsize::new(0),
            round: AtomicUsize::new(0),
            broken: AtomicBool::new(false),
            sleepers: AtomicUsize::new(0),
            door: Mutex::new(()),
            opened: Condvar::new(),
        }
    }

    /// Waits for all threads; the last to come calls `once` before any of them goes on. Whatever each wrote before is
    /// visible to `once`, and what `once` wrote to all after.
    pub fn wait(&self, once: impl FnOnce()) -> Result<(), Broken> {
        let round = self.round.load(Ordering::Acquire);
        if self.arrived.fetch_add(1, Ordering::AcqRel) + 1 == self.parties {
            once();
            self.arrived.store(0, Ordering::Relaxed);
            // Ordered with the sleeper's `sleepers.fetch_add`: either the sleeper sees the new round, or `wake` sees
            // the sleeper.
            self.round.store(round.wrapping_add(1), Ordering::SeqCst);
            self.wake();
        } else {
            let goes_on = || self.round.load(Ordering::SeqCst) != round || self.broken.load(Ordering::SeqCst);
            self.wait_until(goes_on);
        }
        if self.broken.load(Ordering::Acquire) { Err(Broken) } else { Ok(()) }
    }

    fn wait_until(&self, goes_on: impl Fn() -> bool) {
        for turn in 0..SPINS + YIELDS {
            if goes_on() {
                return;
            }
            if turn < SPINS { std::hint::spin_loop() } else { std::thread::yield_now() }
        }
        let mut closed = self.door.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        while !goes_on() {
            closed = self.opened.wait(closed).unwrap_or_else(|poisoned| poisoned.into_inner());
        }
        self.sleepers.fetch_sub(1, Ordering::SeqCst);
    }

    fn wake(&self) {
        if self.sleepers.load(Ordering::SeqCst) > 0 {
            drop(self.door.lock().unwrap_or_else(|poisoned| poisoned.into_inner()));
            self.opened.notify_all();
        }
    }

    /// Breaks the barrier if the calling thread unwinds while it holds the guard.
    pub fn guard(&self) -> Guard<'_> {
        Guard(self)
    }
}

pub(crate) struct Guard<'a>(&'a Barrier);

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.broken.store(true, Ordering::SeqCst);
            self.0.wake();
        }
    }
}
