//! Where things lie until somebody takes them: messages for a socket, ends of messages, notes for another process.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration as Span;

use units::Time;

use super::ticket::Arrived;
use super::{Address, MazeError};

/// What has come, such as messages for a socket, until somebody takes it.
#[derive(Debug)]
pub(crate) struct Mailbox<T> {
    state: Mutex<Mail<T>>,
    changed: Condvar,
}

#[derive(Debug)]
struct Mail<T> {
    waiting: VecDeque<T>,
    /// Ports for which a program waits, and a time of each: every message that was delivered before it is in this
    /// mailbox.
    passed: BTreeMap<Address, Time>,
    /// Why nothing comes any more.
    over: Option<MazeError>,
}

impl<T> Default for Mailbox<T> {
    fn default() -> Mailbox<T> {
        let mail = Mail { waiting: VecDeque::new(), passed: BTreeMap::new(), over: None };
        Mailbox { state: Mutex::new(mail), changed: Condvar::new() }
    }
}

/// What a mailbox of several ports has.
pub(crate) enum Coming {
    Message(Arrived),
    /// All has come to this port that was delivered before.
    Passed(Address, Time),
}

/// Locks a mutex even if a thread panicked while it held it: the data is then as it was a moment before.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits until something is there, or for so long at most.
pub(crate) fn wait_for<T, R>(
    guard: MutexGuard<'_, T>,
    changed: &Condvar,
    limit: Option<Span>,
    mut look: impl FnMut(&mut T) -> Option<R>,
) -> Option<R> {
    let mut found = None;
    let mut missing = |of: &mut T| {
        found = look(of);
        found.is_none()
    };
    match limit {
        None => drop(changed.wait_while(guard, &mut missing)),
        Some(limit) => drop(changed.wait_timeout_while(guard, limit, &mut missing)),
    }
    found
}

impl<T> Mailbox<T> {
    pub fn put(&self, one: T) -> bool {
        let mut state = lock(&self.state);
        if state.over.is_some() {
            return false;
        }
        state.waiting.push_back(one);
        drop(state);
        // All look, as what comes may be too late for one of them.
        self.changed.notify_all();
        true
    }

    /// The next one, or why there is none any more; none if it takes longer.
    pub fn take(&self, limit: Option<Span>) -> Option<Result<T, MazeError>> {
        wait_for(lock(&self.state), &self.changed, limit, |mail| match mail.waiting.pop_front() {
            Some(one) => Some(Ok(one)),
            None => mail.over.clone().map(Err),
        })
    }

    /// All has come to a port that was delivered before `at`.
    pub fn pass(&self, port: Address, at: Time) {
        let mut state = lock(&self.state);
        let passed = state.passed.entry(port).or_default();
        *passed = at.max(*passed);
        drop(state);
        self.changed.notify_all();
    }

    /// All messages that no program has taken.
    pub fn clear(&self) -> VecDeque<T> {
        std::mem::take(&mut lock(&self.state).waiting)
    }

    pub fn end(&self, why: MazeError) {
        lock(&self.state).over.get_or_insert(why);
        self.changed.notify_all();
    }
}

impl Mailbox<Arrived> {
    /// The next message that was delivered before `at`. `Nothing` if all of these have come to the port and were taken;
    /// none at the time limit.
    pub fn take_before(
        &self,
        at: Time,
        port: Address,
        limit: Option<Span>,
    ) -> Option<Result<Option<Arrived>, MazeError>> {
        wait_for(lock(&self.state), &self.changed, limit, |mail| {
            match mail.waiting.iter().position(|arrived| arrived.message.delivered < at) {
                Some(place) => Some(Ok(mail.waiting.remove(place))),
                None if mail.passed.get(&port).is_some_and(|&passed| passed >= at) => Some(Ok(None)),
                None => mail.over.clone().map(Err),
            }
        })
    }

    /// Whatever comes next to one of the ports.
    pub fn take_any(&self) -> Option<Coming> {
        wait_for(lock(&self.state), &self.changed, None, |mail| match mail.waiting.pop_front() {
            Some(one) => Some(Some(Coming::Message(one))),
            None => match mail.passed.pop_first() {
                Some((port, at)) => Some(Some(Coming::Passed(port, at))),
                None => mail.over.is_some().then_some(None),
            },
        })
        .flatten()
    }
}
