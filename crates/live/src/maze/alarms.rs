//! Programs that wait for a time of the network.
//!
//! Whoever waits until then wants to know that nothing more can come that was delivered before. The machine's clock
//! does not say that, as the worker of its host may be late; the worker does, when it has done all that was due before.
//! So what a program has received by a time of the network does not depend on how late the machine is.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, Weak};

use units::Time;

use super::Address;
use super::mailbox::{Mailbox, lock};
use super::ticket::Arrived;

/// The times for which programs wait, at hosts of one worker.
pub(crate) struct Alarms {
    /// The first, in picoseconds; `u64::MAX` without any.
    first: AtomicU64,
    set: Mutex<Set>,
}

/// Mailboxes to tell that all messages delivered before a time have come to a port.
type Set = BTreeMap<(Time, Address), Weak<Mailbox<Arrived>>>;

impl Default for Alarms {
    fn default() -> Alarms {
        Alarms { first: AtomicU64::new(u64::MAX), set: Mutex::default() }
    }
}

impl Alarms {
    /// When the first alarm rings; [`Time::MAX`] without any.
    #[inline]
    pub fn first(&self) -> Time {
        Time::from_ps(self.first.load(Ordering::Relaxed))
    }

    /// Sets an alarm. One that is set twice rings once.
    pub fn set(&self, at: Time, of: Address, mailbox: Weak<Mailbox<Arrived>>) {
        let mut set = lock(&self.set);
        set.insert((at, of), mailbox);
        self.note_first(&set);
    }

    /// Removes an alarm.
    pub fn forget(&self, at: Time, of: Address) {
        let mut set = lock(&self.set);
        set.remove(&(at, of));
        self.note_first(&set);
    }

    /// Tells of the alarms up to `present`. The worker has done all that was due before it, and has told of every
    /// message that came.
    #[cold]
    pub fn ring(&self, present: Time, mut tell: impl FnMut(Address, Time, &Weak<Mailbox<Arrived>>)) {
        let mut set = lock(&self.set);
        while let Some(first) = set.first_entry().filter(|first| first.key().0 <= present) {
            let ((at, of), mailbox) = first.remove_entry();
            tell(of, at, &mailbox);
        }
        self.note_first(&set);
    }

    fn note_first(&self, set: &Set) {
        let first = set.keys().next().map_or(u64::MAX, |(at, _)| at.ps());
        self.first.store(first, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests;
