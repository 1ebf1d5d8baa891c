//! What workers tell each other of time: how far each may go.
//!
//! A packet takes at least a link's delay from one worker to another. So a worker may do what is due at t as soon as no
//! other worker can still send anything that comes out before, or at, t. Each *promises* a time before which it will do
//! nothing more; with that and the least delay of the links between them, others know how far they may go. So nodes
//! see the same in the same order whichever worker they are on, and a run on many threads has the history that it has
//! on one, and in the simulator.
//!
//! Promises alone would creep, one delay after the other, where nobody has anything to do for long. A worker that has
//! to wait therefore *rests*: it says when its next event is, and how many packets it has sent and taken. If all rest,
//! and all that was sent has been taken, nothing happens before the earliest of these events: then that holds
//! ([`Board::quiet_until`]). It reads all of it twice, as a worker may begin to move in between.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::thread::Thread;

use units::{Duration, Time};

/// What all threads of a run see.
pub(crate) struct Board {
    posts: Vec<Post>,
    /// By receiving worker and sending worker, the least delay of a link between them.
    delays: Vec<Vec<Duration>>,
    /// Flows that have ended, in all workers.
    ended_flows: AtomicU64,
    /// Workers that have nothing left to do before the horizon.
    done: AtomicUsize,
    /// [`Ended`], once the run is over.
    over: AtomicU8,
    /// When it was, and how late it was then.
    end: OnceLock<(Time, Duration)>,
    watcher: Thread,
    /// Whether workers ever sleep.
    sleeps: bool,
}

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Ended {
    Goal = 1,
    Horizon,
    Quiet,
    Interrupted,
}

/// What one worker says, on cache lines of its own.
#[derive(Default)]
#[repr(align(128))]
struct Post {
    /// It will do nothing more that is due before this.
    promise: AtomicU64,
    /// Even while it rests. It changes whenever that does.
    turns: AtomicU64,
    /// While it rests: when its next event is, and how many packets it has sent to others and taken from them.
    next_at: AtomicU64,
    sent: AtomicU64,
    taken: AtomicU64,
    /// While it sleeps: until when, if nobody wakes it.
    sleeps_until: AtomicU64,
    thread: OnceLock<Thread>,
}

impl Board {
    /// For workers with these delays between them, by receiver and sender. The calling thread is the one that watches.
    pub fn new(delays: Vec<Vec<Duration>>, sleeps: bool) -> Board {
        let posts: Vec<Post> = delays.iter().map(|_| Post::default()).collect();
        // All begin as moving.
        posts.iter().for_each(|post| post.turns.store(1, Ordering::SeqCst));
        Board {
            posts,
            delays,
            ended_flows: AtomicU64::new(0),
            done: AtomicUsize::new(0),
            over: AtomicU8::new(0),
            end: OnceLock::new(),
            watcher: std::thread::current(),
            sleeps,
        }
    }

    pub fn workers(&self) -> usize {
        self.posts.len()
    }

    /// The thread of a worker begins.
    pub fn begin(&self, me: usize) {
        let _ = self.posts[me].thread.set(std::thread::current());
    }

    /// What others have promised: before this, nothing comes that has not been sent yet.
    #[inline]
    pub fn limit(&self, me: usize) -> Time {
        let promised = |(post, &delay): (&Post, &Duration)| {
            Time::from_ps(post.promise.load(Ordering::Acquire)).saturating_add(delay)
        };
        self.posts.iter().zip(&self.delays[me]).map(promised).min().unwrap_or(Time::MAX)
    }

    /// A worker will do nothing more that is due before `at`, and has sent all that it had to send until then.
    #[inline]
    pub fn promise(&self, me: usize, at: Time) {
        self.posts[me].promise.store(at.ps(), Ordering::Release);
    }

    /// The worker has nothing to do now.
    pub fn rest(&self, me: usize, next_at: Time, sent: u64, taken: u64) {
        let post = &self.posts[me];
        post.next_at.store(next_at.ps(), Ordering::SeqCst);
        post.sent.store(sent, Ordering::SeqCst);
        post.taken.store(taken, Ordering::SeqCst);
        post.turns.fetch_add(1, Ordering::SeqCst);
    }

    /// The worker, which was resting, is about to do something.
    pub fn stir(&self, me: usize) {
        self.posts[me].turns.fetch_add(1, Ordering::SeqCst);
    }

    /// If all rest: when the first of them has its next event, before which nothing at all happens.
    pub fn quiet_until(&self) -> Option<Time> {
        let turns = || self.posts.iter().map(|post| post.turns.load(Ordering::SeqCst));
        let before: u64 = turns().try_fold(0u64, |sum, turns| (turns % 2 == 0).then_some(sum.wrapping_add(turns)))?;
        let sum = |of: fn(&Post) -> &AtomicU64| self.posts.iter().map(|post| of(post).load(Ordering::SeqCst)).sum();
        let (sent, taken): (u64, u64) = (sum(|post| &post.sent), sum(|post| &post.taken));
        let next_at = self.posts.iter().map(|post| post.next_at.load(Ordering::SeqCst)).min()?;
        // They only ever grow, so that an equal sum is that of the same.
        let after = turns().fold(0u64, u64::wrapping_add);
        (sent == taken && before == after).then_some(Time::from_ps(next_at))
    }

    /// From this time on a worker can hear of what happens at `at` in any other.
    pub fn heard(&self, me: usize, at: Time) -> Time {
        let soonest = self.delays[me].iter().copied().min().unwrap_or(Duration::ZERO);
        at.saturating_add(soonest)
    }

    /// The worker sleeps, until then if nobody wakes it.
    pub fn sleep(&self, me: usize, until: Time, span: std::time::Duration, stays_empty: impl FnOnce() -> bool) {
        self.posts[me].sleeps_until.store(until.ps(), Ordering::SeqCst);
        // Who sent something before it saw that has not woken anybody.
        if stays_empty() && !self.is_over() {
            std::thread::park_timeout(span);
        }
        self.posts[me].sleeps_until.store(0, Ordering::SeqCst);
    }

    /// A worker has been sent something that comes out at `at`: it must not sleep beyond that.
    #[inline]
    pub fn wake(&self, other: usize, at: Time) {
        if !self.sleeps {
            return;
        }
        std::sync::atomic::fence(Ordering::SeqCst);
        let post = &self.posts[other];
        if post.sleeps_until.load(Ordering::Relaxed) > at.ps()
            && let Some(thread) = post.thread.get()
        {
            thread.unpark();
        }
    }

    /// More flows have ended. Gives how many in all.
    pub fn add_ended(&self, flows: u64) -> u64 {
        self.ended_flows.fetch_add(flows, Ordering::Relaxed) + flows
    }

    pub fn ended_flows(&self) -> u64 {
        self.ended_flows.load(Ordering::Relaxed)
    }

    /// A worker has nothing left to do before the horizon. Whether that is so for all.
    pub fn add_done(&self) -> bool {
        self.done.fetch_add(1, Ordering::SeqCst) + 1 == self.posts.len()
    }

    /// The run is over: why, when, and how late that was noticed. The first to say so is right.
    pub fn stop(&self, ended: Ended, at: Time, late: Duration) {
        if self.over.compare_exchange(0, ended as u8, Ordering::SeqCst, Ordering::SeqCst).is_ok() {
            let _ = self.end.set((at, late));
        }
        self.watcher.unpark();
        self.posts.iter().filter_map(|post| post.thread.get()).for_each(Thread::unpark);
    }

    #[inline]
    pub fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed) != 0
    }

    /// Once it is over: why, when, and how late that was noticed.
    pub fn outcome(&self) -> (Ended, Time, Duration) {
        let ended = match self.over.load(Ordering::SeqCst) {
            1 => Ended::Goal,
            2 => Ended::Horizon,
            3 => Ended::Quiet,
            _ => Ended::Interrupted,
        };
        let (end, late) = self.end.get().copied().unwrap_or_default();
        (ended, end, late)
    }

    /// Stops the run if the calling thread panics while it holds this, so that no other waits for it for ever.
    pub fn guard(&self) -> Guard<'_> {
        Guard(self)
    }
}

pub(crate) struct Guard<'a>(&'a Board);

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.stop(Ended::Interrupted, Time::ZERO, Duration::ZERO);
        }
    }
}

#[cfg(test)]
mod tests;
