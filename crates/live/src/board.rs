//! The board on which workers publish how far each of them has come, so that all know how far they may go.
//!
//! A packet takes at least a link's delay from one worker to another. So a worker may process events at time t as soon
//! as no other worker can still send anything that arrives at or before t. Each *promises* a time before which it will
//! do nothing more. From that and the least delay of the links between them, others know how far they may go. So nodes
//! see the same packets in the same order whichever worker they are on, and a run on many threads has the same history
//! as on one, and as in the simulator.
//!
//! When no worker has an event for a long time, promises alone would advance by only one link delay at a time. So a
//! worker that has to wait *rests*: it publishes when its next event is, and how many packets it has sent and taken. If
//! all workers rest, and all packets sent have been taken, nothing happens before the earliest of these events, and all
//! may go on to that time ([`Board::quiet_until`]). The numbers are read twice, since a worker may stop resting in
//! between.
//!
//! Workers may be in several processes. Each process has lines of memory of its own, which the others can only read. A
//! false number there harms only that process: packets are counted for each pair of workers, and only the first process
//! says that the run is over, or that a process is lost.

pub(crate) mod mirror;

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::Thread;

use units::{Duration, Time};

use crate::shared::{Lines, WORDS};

/// The board that all workers of a run read.
pub(crate) struct Board {
    /// By process, what it says: a header, and the posts of its workers.
    regions: Vec<Arc<Lines>>,
    /// By worker: its process, and the line of its post.
    places: Vec<(usize, usize)>,
    /// The process that this is.
    me: usize,
    threads: Vec<OnceLock<Thread>>,
    /// By receiving worker and sending worker, the least delay of a link between them.
    delays: Vec<Vec<Duration>>,
    /// This process has to end, whatever others do.
    quits: AtomicBool,
    /// The run is over, though not all may know yet.
    stops: AtomicBool,
    /// By look ([`driver::Stuck`]), how many workers can't go on by themselves.
    stuck: [AtomicUsize; LOOKS_MAX],
    watcher: Thread,
    /// Whether workers ever sleep.
    sleeps: bool,
}

/// Numbers in the header of a process. The first three and `DEAD` are the first process's to say.
mod header {
    /// [`super::Ended`], once the run is over.
    pub const OVER: usize = 0;
    /// When it was, and how late it was then.
    pub const END: usize = 1;
    pub const LATE: usize = 2;
    /// Processes that are lost, as bits.
    pub const DEAD: usize = 3;
    /// Flows that have ended in the process's workers, and when the last of them did.
    pub const ENDED_FLOWS: usize = 4;
    pub const ENDED_AT: usize = 5;
    /// Workers that have nothing left to do before the horizon.
    pub const DONE: usize = 6;
    /// Machines from which the process has heard nothing for long, or only impossible messages, as bits.
    pub const SUSPECTS: usize = 7;
    /// The last of them.
    pub const LAST: usize = SUSPECTS;
}

/// Numbers in the post of a worker. Behind the first line, how many packets it has sent to each other worker, and how
/// many it has taken from each, as of when it last began to rest.
mod post {
    /// It will do nothing more that is due before this.
    pub const PROMISE: usize = 0;
    /// Counts changes between moving and resting: odd while the worker moves, even while it rests.
    pub const TURNS: usize = 1;
    /// While it rests: when its next event is.
    pub const NEXT_AT: usize = 2;
    /// While it sleeps: until when, if nobody wakes it.
    pub const SLEEPS_UNTIL: usize = 3;
}

/// The workers of a process, of this many.
pub(crate) fn workers_of(process: usize, processes: usize, workers: usize) -> Range<usize> {
    (process * workers).div_ceil(processes)..((process + 1) * workers).div_ceil(processes)
}

/// Lines of a post of one of this many workers.
const fn post_lines(workers: usize) -> usize {
    1 + (2 * workers).div_ceil(WORDS)
}

/// How many lines of the board a process needs.
pub(crate) fn board_lines(process: usize, processes: usize, workers: usize) -> usize {
    1 + workers_of(process, processes, workers).len() * post_lines(workers)
}

/// The most processes: each has a bit.
pub(crate) const PROCESSES_MAX: usize = 64;

/// The most looks at whether a run is stuck: each is twice as late as the one before, in picoseconds of 64 bits.
const LOOKS_MAX: usize = 64;

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Ended {
    Goal = 1,
    Horizon,
    Quiet,
    Interrupted,
    Closed,
    Stuck,
}

impl Ended {
    /// Its name in results.
    pub fn name(self) -> &'static str {
        match self {
            Ended::Goal => "goal",
            Ended::Horizon => "horizon",
            Ended::Quiet => "quiet",
            Ended::Interrupted => "interrupted",
            Ended::Closed => "closed",
            Ended::Stuck => "stuck",
        }
    }
}

impl Board {
    /// For workers of one process with these delays between them, by receiver and sender. The calling thread is the one
    /// that watches.
    pub fn new(delays: Vec<Vec<Duration>>, sleeps: bool) -> Board {
        let lines = Lines::own(board_lines(0, 1, delays.len()));
        Board::over(vec![Arc::new(lines)], 0, delays, sleeps)
    }

    /// Of process `me`, over what each says.
    pub fn over(regions: Vec<Arc<Lines>>, me: usize, delays: Vec<Vec<Duration>>, sleeps: bool) -> Board {
        let (processes, workers) = (regions.len(), delays.len());
        let places = (0..processes).flat_map(|process| {
            let posts = (0..workers_of(process, processes, workers).len()).map(|post| 1 + post * post_lines(workers));
            posts.map(move |line| (process, line))
        });
        let places: Vec<(usize, usize)> = places.collect();
        let board = Board {
            regions,
            places,
            me,
            threads: delays.iter().map(|_| OnceLock::new()).collect(),
            delays,
            quits: AtomicBool::new(false),
            stops: AtomicBool::new(false),
            stuck: [const { AtomicUsize::new(0) }; LOOKS_MAX],
            watcher: std::thread::current(),
            sleeps,
        };
        // All begin as moving.
        board.own().for_each(|worker| board.post(worker, post::TURNS).store(1, Ordering::SeqCst));
        board
    }

    pub fn workers(&self) -> usize {
        self.places.len()
    }

    /// Of all processes.
    pub fn processes(&self) -> usize {
        self.regions.len()
    }

    /// The workers of this process.
    pub fn own(&self) -> Range<usize> {
        workers_of(self.me, self.processes(), self.workers())
    }

    /// The process of a worker.
    pub fn process_of(&self, worker: usize) -> usize {
        self.places[worker].0
    }

    #[inline]
    fn post(&self, worker: usize, word: usize) -> &AtomicU64 {
        let (process, line) = self.places[worker];
        &self.regions[process][line + word / WORDS].0[word % WORDS]
    }

    /// How many packets a worker has sent to another, or taken from it, as it says while it rests.
    fn passed(&self, worker: usize, other: usize, taken: bool) -> &AtomicU64 {
        self.post(worker, WORDS + other + if taken { self.workers() } else { 0 })
    }

    #[inline]
    fn header(&self, process: usize, word: usize) -> &AtomicU64 {
        &self.regions[process][0].0[word]
    }

    /// The thread of a worker begins.
    pub fn begin(&self, me: usize) {
        let _ = self.threads[me].set(std::thread::current());
    }

    /// What others have promised: before this, nothing comes that has not been sent yet.
    #[inline]
    pub fn limit(&self, me: usize) -> Time {
        let dead = self.dead();
        let promised = |worker: usize| match dead >> self.places[worker].0 & 1 {
            0 => Time::from_ps(self.post(worker, post::PROMISE).load(Ordering::Acquire)),
            _ => Time::MAX,
        };
        let delays = self.delays[me].iter().enumerate();
        delays.map(|(worker, &delay)| promised(worker).saturating_add(delay)).min().unwrap_or(Time::MAX)
    }

    /// A worker will do nothing more that is due before `at`, and has sent all that it had to send until then.
    #[inline]
    pub fn promise(&self, me: usize, at: Time) {
        self.post(me, post::PROMISE).store(at.ps(), Ordering::Release);
    }

    /// The worker has nothing to do now. `sent` and `taken` are the numbers of packets that it has sent to each other
    /// worker and taken from it.
    pub fn rest(&self, me: usize, next_at: Time, sent: &[u64], taken: &[u64]) {
        self.post(me, post::NEXT_AT).store(next_at.ps(), Ordering::SeqCst);
        for other in 0..self.workers() {
            self.passed(me, other, false).store(sent[other], Ordering::SeqCst);
            self.passed(me, other, true).store(taken[other], Ordering::SeqCst);
        }
        self.post(me, post::TURNS).fetch_add(1, Ordering::SeqCst);
    }

    /// The worker, which was resting, is about to do something.
    pub fn stir(&self, me: usize) {
        self.post(me, post::TURNS).fetch_add(1, Ordering::SeqCst);
    }

    /// If all rest: when the first of them has its next event, before which nothing at all happens.
    pub fn quiet_until(&self) -> Option<Time> {
        let dead = self.dead();
        let alive = || (0..self.workers()).filter(|&worker| dead >> self.places[worker].0 & 1 == 0);
        let turns = || alive().map(|worker| self.post(worker, post::TURNS).load(Ordering::SeqCst));
        let before: u64 = turns().try_fold(0u64, |sum, turns| (turns % 2 == 0).then_some(sum.wrapping_add(turns)))?;
        let passed = |worker, other, taken| self.passed(worker, other, taken).load(Ordering::SeqCst);
        let arrived = |from: usize| alive().all(|to| passed(from, to, false) == passed(to, from, true));
        let arrived = alive().all(arrived);
        let next_at = alive().map(|worker| self.post(worker, post::NEXT_AT).load(Ordering::SeqCst)).min()?;
        // They only ever grow, so that an equal sum is that of the same.
        let after = turns().fold(0u64, u64::wrapping_add);
        (arrived && before == after).then_some(Time::from_ps(next_at))
    }

    /// From this time on a worker can hear of what happens at `at` in any other.
    pub fn heard(&self, me: usize, at: Time) -> Time {
        let soonest = self.delays[me].iter().copied().min().unwrap_or(Duration::ZERO);
        at.saturating_add(soonest)
    }

    /// The worker sleeps, until then if nobody wakes it.
    pub fn sleep(&self, me: usize, until: Time, span: std::time::Duration, stays_empty: impl FnOnce() -> bool) {
        let sleeps_until = self.post(me, post::SLEEPS_UNTIL);
        sleeps_until.store(until.ps(), Ordering::SeqCst);
        // Who sent something before it saw that has not woken anybody.
        if stays_empty() && !self.is_over() {
            std::thread::park_timeout(span);
        }
        sleeps_until.store(0, Ordering::SeqCst);
    }

    /// A worker has been sent something that comes out at `at`: it must not sleep beyond that. One of another process
    /// looks by itself.
    #[inline]
    pub fn wake(&self, other: usize, at: Time) {
        if !self.sleeps || self.places[other].0 != self.me {
            return;
        }
        std::sync::atomic::fence(Ordering::SeqCst);
        if self.post(other, post::SLEEPS_UNTIL).load(Ordering::Relaxed) > at.ps()
            && let Some(thread) = self.threads[other].get()
        {
            thread.unpark();
        }
    }

    /// Counts flows that have ended, the last of them at `at`. Returns the total of all processes.
    pub fn add_ended(&self, flows: u64, at: Time) -> u64 {
        self.header(self.me, header::ENDED_AT).fetch_max(at.ps(), Ordering::Relaxed);
        self.header(self.me, header::ENDED_FLOWS).fetch_add(flows, Ordering::SeqCst);
        self.ended_flows()
    }

    pub fn ended_flows(&self) -> u64 {
        let of = |process| self.header(process, header::ENDED_FLOWS).load(Ordering::SeqCst);
        (0..self.processes()).map(of).fold(0, u64::saturating_add)
    }

    /// When the last flow ended.
    pub fn ended_at(&self) -> Time {
        let of = |process| self.header(process, header::ENDED_AT).load(Ordering::SeqCst);
        Time::from_ps((0..self.processes()).map(of).max().unwrap_or(0))
    }

    /// Notes that a worker has nothing left to do before the horizon. Returns whether that is so for all workers; false
    /// if there are several processes.
    pub fn add_done(&self) -> bool {
        let done = self.header(self.me, header::DONE).fetch_add(1, Ordering::SeqCst) + 1;
        self.processes() == 1 && done == self.workers() as u64
    }

    /// Notes that at this look a worker can't go on by itself. Returns whether that is so for all workers; false if
    /// there are several processes.
    pub fn add_stuck(&self, look: usize) -> bool {
        let stuck = self.stuck[look % LOOKS_MAX].fetch_add(1, Ordering::SeqCst) + 1;
        self.processes() == 1 && stuck == self.workers()
    }

    /// The run is over: why, at what time, and how late that was noticed. The first call counts; only the first process
    /// may call it.
    pub fn stop(&self, ended: Ended, at: Time, late: Duration) {
        if self.me == 0 && !self.stops.swap(true, Ordering::SeqCst) {
            self.header(0, header::END).store(at.ps(), Ordering::SeqCst);
            self.header(0, header::LATE).store(late.ps(), Ordering::SeqCst);
            self.header(0, header::OVER).store(ended as u64, Ordering::SeqCst);
        }
        self.wake_all();
    }

    /// This process ends, whether the run is over or not.
    pub fn quit(&self) {
        self.quits.store(true, Ordering::SeqCst);
        self.wake_all();
    }

    fn wake_all(&self) {
        self.watcher.unpark();
        self.threads.iter().filter_map(OnceLock::get).for_each(Thread::unpark);
    }

    #[inline]
    pub fn is_over(&self) -> bool {
        self.header(0, header::OVER).load(Ordering::Relaxed) != 0 || self.quits.load(Ordering::Relaxed)
    }

    /// Processes that are lost, as bits.
    #[inline]
    pub fn dead(&self) -> u64 {
        self.header(0, header::DEAD).load(Ordering::Relaxed)
    }

    /// A process is lost, says the first.
    pub fn bury(&self, process: usize) {
        self.header(0, header::DEAD).fetch_or(1 << process, Ordering::SeqCst);
    }

    /// This process can't hear others, as bits.
    pub fn suspect(&self, processes: u64) {
        self.header(self.me, header::SUSPECTS).fetch_or(processes, Ordering::SeqCst);
    }

    /// The processes that a process says it can't hear.
    pub fn suspects(&self, process: usize) -> u64 {
        self.header(process, header::SUSPECTS).load(Ordering::Relaxed)
    }

    /// A worker of this process has been sent something from another machine.
    pub fn nudge(&self, worker: usize) {
        self.wake(worker, Time::ZERO);
    }

    /// Once it is over: why, when, and how late that was noticed.
    pub fn outcome(&self) -> (Ended, Time, Duration) {
        let of = |word| self.header(0, word).load(Ordering::SeqCst);
        let ended = match of(header::OVER) {
            1 => Ended::Goal,
            2 => Ended::Horizon,
            3 => Ended::Quiet,
            5 => Ended::Closed,
            6 => Ended::Stuck,
            _ => Ended::Interrupted,
        };
        (ended, Time::from_ps(of(header::END)), Duration::from_ps(of(header::LATE)))
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
            self.0.quit();
        }
    }
}

#[cfg(test)]
mod tests;
