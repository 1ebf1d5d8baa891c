use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// A barrier for the threads of a run, which they reach about once in a microsecond of work. It spins first, since the
/// other threads are near, and yields after a while, since they may have no core.
pub(crate) struct Barrier {
    parties: usize,
    arrived: AtomicUsize,
    round: AtomicUsize,
    broken: AtomicBool,
}

/// Another thread has panicked, so waiting is pointless.
#[derive(Debug)]
pub(crate) struct Broken;

impl Barrier {
    pub fn new(parties: usize) -> Barrier {
        Barrier { parties, arrived: AtomicUsize::new(0), round: AtomicUsize::new(0), broken: AtomicBool::new(false) }
    }

    /// Waits for all threads. Whatever each wrote before is visible to all after.
    pub fn wait(&self) -> Result<(), Broken> {
        let round = self.round.load(Ordering::Acquire);
        if self.arrived.fetch_add(1, Ordering::AcqRel) + 1 == self.parties {
            self.arrived.store(0, Ordering::Relaxed);
            self.round.store(round.wrapping_add(1), Ordering::Release);
            return if self.broken.load(Ordering::Acquire) { Err(Broken) } else { Ok(()) };
        }
        let mut spins = 0u32;
        while self.round.load(Ordering::Acquire) == round {
            if self.broken.load(Ordering::Acquire) {
                return Err(Broken);
            }
            spins += 1;
            if spins < 1_000 { std::hint::spin_loop() } else { std::thread::yield_now() }
        }
        Ok(())
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
            self.0.broken.store(true, Ordering::Release);
        }
    }
}
