use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock};

use units::{Duration, Time};

use crate::barrier::Barrier;

/// One part of a model. Within a window it is advanced by one thread; in the next window it may be another.
pub trait Partition: Send {
    /// Messages between partitions.
    type Mail: Send;

    /// Time of its next event, [`Time::MAX`] if it has none.
    fn next_at(&self) -> Time;

    /// Whether no event is left, but for such as only look at the state. A run of partitions that are all so is over.
    fn is_quiet(&self) -> bool {
        self.next_at() == Time::MAX
    }

    /// Performs all events before `end`. Mail for other partitions goes into `outbox` and must not take effect before
    /// `end`.
    fn advance(&mut self, end: Time, outbox: &mut Outbox<Self::Mail>);

    /// When a piece of mail takes effect. [`Time::MAX`] if it never does and is only noted: no window begins for it,
    /// and it is handed over with other mail or at the end of the run.
    fn effect_at(mail: &Self::Mail) -> Time;

    /// Takes mail, in the order in which the sender put it into its outbox.
    fn accept(&mut self, mail: &mut Vec<Self::Mail>);

    /// This partition's part of the run's goal so far.
    fn reached(&self) -> u64;

    /// Whether the run is to pause at the end of the window through which this partition has just been advanced.
    fn pauses(&self) -> bool {
        false
    }
}

/// Mail from one partition to others, by destination.
#[derive(Debug)]
pub struct Outbox<M> {
    letters: Vec<Vec<M>>,
    /// Destinations that have mail, so that those that have none are not looked at.
    used: Vec<usize>,
}

/// An outbox without destinations, which stands in for one that is lent out.
impl<M> Default for Outbox<M> {
    fn default() -> Self {
        Outbox::new(0)
    }
}

impl<M> Outbox<M> {
    /// An empty outbox for mail to `partitions` partitions.
    pub fn new(partitions: usize) -> Outbox<M> {
        Outbox { letters: (0..partitions).map(|_| Vec::new()).collect(), used: Vec::new() }
    }

    /// Adds a piece of mail for the partition `to`.
    #[inline]
    pub fn post(&mut self, to: usize, mail: M) {
        let letters = &mut self.letters[to];
        if letters.is_empty() {
            self.used.push(to);
        }
        letters.push(mail);
    }

    /// The mail for a partition that has been posted in this window.
    pub fn posted(&mut self, to: usize) -> &mut [M] {
        self.letters.get_mut(to).map_or(&mut [], |letters| letters)
    }
}

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The partitions have reached the goal.
    Goal,
    /// No event before the horizon is left.
    Horizon,
    /// No event is left, but for such as only look at the state.
    Quiet,
    /// The watcher stopped it.
    Interrupted,
    /// The time at which it was to pause has come, or a partition wanted a pause: [`run`] goes on as if it had not.
    Paused,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// All events before this time have happened, and none at or after it.
    pub end: Time,
    /// Why it ended.
    pub ended: Ended,
    /// Number of windows that began.
    pub windows: u64,
    /// If it paused within a window: where that ends.
    pub open_until: Option<Time>,
}

/// The task of a run.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// The least time from any event to its effect in another partition: the length of a window. More than zero.
    pub lookahead: Duration,
    /// No event at this time or later happens.
    pub horizon: Time,
    /// The run ends when the partitions have reached this much together.
    pub goal: u64,
    /// It pauses before any event at this time or later happens; [`Time::MAX`] for never.
    pub pause: Time,
    /// Where the window ends within which it paused the last time.
    pub open_until: Option<Time>,
}

impl Bounds {
    /// A run without pauses.
    pub fn new(lookahead: Duration, horizon: Time, goal: u64) -> Bounds {
        Bounds { lookahead, horizon, goal, pause: Time::MAX, open_until: None }
    }
}

/// Advances partitions through windows until the sum of their progress reaches the goal, no event before the horizon
/// is left, or `watch` returns true. Except for `watch`, the end depends only on the model, and neither on the number
/// of partitions nor on that of threads.
///
/// `watch(now, reached)` is called on the calling thread after each window, for progress displays and Ctrl-C.
///
/// The calling thread and `threads - 1` others share the partitions, of which there may be more than threads.
/// Every thread has partitions that it takes first, so that they stay with its cache from window to window, and then
/// takes those that no thread has begun.
///
/// # Panics
/// If there is no partition or no lookahead, or if a partition panics.
pub fn run<P: Partition>(
    partitions: &mut [P],
    threads: usize,
    bounds: Bounds,
    watch: impl FnMut(Time, u64) -> bool,
) -> Outcome {
    assert!(bounds.lookahead > Duration::ZERO, "partitions with no delay between them can't run side by side");
    assert!(!partitions.is_empty(), "a run has at least one partition");
    let threads = threads.clamp(1, partitions.len());
    let meeting = Scheduler::new(partitions, threads, bounds);
    let outcome = std::thread::scope(|scope| {
        for thread in 1..threads {
            let meeting = &meeting;
            scope.spawn(move || meeting.attend(thread, |_, _| false));
        }
        meeting.attend(0, watch)
    });
    // Deliver the mail of the last window too, so that a count of packets in flight finds them at their destination.
    meeting.seats.iter().for_each(|seat| seat.inboxes.iter().for_each(|inbox| inbox.empty_into(&mut lock(&seat.desk))));
    // A window that was cut short by a pause was counted when it began.
    let went_on = u64::from(bounds.open_until.is_some());
    Outcome { windows: outcome.windows.saturating_sub(went_on), ..outcome }
}

/// State that the threads share.
struct Scheduler<'a, P: Partition> {
    bounds: Bounds,
    barrier: Barrier,
    seats: Vec<Slot<'a, P>>,
    rosters: Vec<RunQueue>,
    window: Window,
}

/// A partition and its mail.
struct Slot<'a, P: Partition> {
    desk: Mutex<PartitionState<'a, P>>,
    /// The time of its next event, whether there is any that does more than look, and its progress: written when it has
    /// been advanced, read between windows.
    next_at: AtomicU64,
    quiet: AtomicBool,
    reached: AtomicU64,
    /// Two inboxes in turn: one is filled in a window while the other is being read.
    inboxes: [Inbox<P::Mail>; 2],
}

/// State that only the thread that advances a partition touches.
struct PartitionState<'a, P: Partition> {
    partition: &'a mut P,
    outbox: Outbox<P::Mail>,
    /// Empty vectors, kept for their memory: as many as it has ever sent in a window. Who gets more letters than it
    /// sends would keep more and more of them.
    spare: Vec<Vec<P::Mail>>,
    sent_most: usize,
}

struct Inbox<M> {
    /// Mail by sender.
    letters: Mutex<Vec<(usize, Vec<M>)>>,
    /// When the earliest of it takes effect; `NEVER` if there is none.
    earliest: AtomicU64,
}

/// The partitions that one thread takes first, and in a window those of them that have anything to do.
struct RunQueue {
    first: usize,
    end: usize,
    due: Vec<AtomicUsize>,
    count: AtomicUsize,
    /// How many of the due have been taken.
    taken: AtomicUsize,
}

/// The window that all threads work on.
#[derive(Default)]
struct Window {
    end: AtomicU64,
    /// Number of windows so far, this one included.
    number: AtomicU64,
    reached: AtomicU64,
    /// Why the run is over, once it is.
    ended: OnceLock<Ended>,
    interrupted: AtomicBool,
    /// Whether a partition wants a pause.
    pauses: AtomicBool,
    /// If the window is cut short by a pause: where it would end. `NEVER` if it is not.
    cut: AtomicU64,
}

const NEVER: u64 = u64::MAX;

impl<'a, P: Partition> Scheduler<'a, P> {
    fn new(partitions: &'a mut [P], threads: usize, bounds: Bounds) -> Self {
        let parts = partitions.len();
        let roster = |thread: usize| {
            let (first, end) = (thread * parts / threads, (thread + 1) * parts / threads);
            let due = (first..end).map(|_| AtomicUsize::new(0)).collect();
            RunQueue { first, end, due, count: AtomicUsize::new(0), taken: AtomicUsize::new(0) }
        };
        let seat = |partition: &'a mut P| Slot {
            next_at: AtomicU64::new(partition.next_at().ps()),
            quiet: AtomicBool::new(partition.is_quiet()),
            reached: AtomicU64::new(partition.reached()),
            desk: Mutex::new(PartitionState { partition, outbox: Outbox::new(parts), spare: Vec::new(), sent_most: 0 }),
            inboxes: [Inbox::new(), Inbox::new()],
        };
        Scheduler {
            bounds,
            barrier: Barrier::new(threads),
            rosters: (0..threads).map(roster).collect(),
            seats: partitions.iter_mut().map(seat).collect(),
            window: Window { cut: AtomicU64::new(NEVER), ..Window::default() },
        }
    }

    fn attend(&self, thread: usize, mut watch: impl FnMut(Time, u64) -> bool) -> Outcome {
        let _guard = self.barrier.guard();
        let window = &self.window;
        let mut outcome = Outcome { end: Time::ZERO, ended: Ended::Quiet, windows: 0, open_until: None };
        loop {
            if self.barrier.wait(|| self.open_window()).is_err() {
                return outcome; // the scope passes the other thread's panic on
            }
            if let Some(&ended) = window.ended.get() {
                let cut = Some(window.cut.load(Ordering::Relaxed)).filter(|&cut| cut != NEVER);
                return Outcome { ended, open_until: cut.map(Time::from_ps), ..outcome };
            }
            outcome = Outcome {
                end: Time::from_ps(window.end.load(Ordering::Relaxed)),
                windows: window.number.load(Ordering::Relaxed),
                ..outcome
            };
            // First its own, then what others have not begun.
            for turn in 0..self.rosters.len() {
                let roster = &self.rosters[(thread + turn) % self.rosters.len()];
                while let Some(part) = roster.take() {
                    self.advance(part, outcome);
                }
            }
            if watch(outcome.end, window.reached.load(Ordering::Relaxed)) {
                window.interrupted.store(true, Ordering::Relaxed);
            }
        }
    }

    /// Between two windows, on one thread: whether the run is over, else when the next window ends and which partitions
    /// have anything to do in it.
    fn open_window(&self) {
        let window = &self.window;
        let number = window.number.load(Ordering::Relaxed) + 1;
        let (mut earliest, mut reached, mut quiet) = (NEVER, 0, true);
        for seat in &self.seats {
            let mail = seat.inbox(number).earliest.load(Ordering::Relaxed);
            earliest = earliest.min(seat.next_at.load(Ordering::Relaxed)).min(mail);
            reached += seat.reached.load(Ordering::Relaxed);
            quiet &= mail == NEVER && seat.quiet.load(Ordering::Relaxed);
        }
        let goes_on = self.bounds.open_until.filter(|_| number == 1);
        let pause = self.bounds.pause.ps();
        let ended = if window.interrupted.load(Ordering::Relaxed) {
            Some(Ended::Interrupted)
        } else if goes_on.is_some() {
            None
        } else if window.cut.load(Ordering::Relaxed) != NEVER {
            Some(Ended::Paused)
        } else if reached >= self.bounds.goal {
            Some(Ended::Goal)
        } else if window.pauses.load(Ordering::Relaxed) {
            Some(Ended::Paused)
        } else if quiet {
            Some(Ended::Quiet)
        } else if earliest >= self.bounds.horizon.ps() {
            Some(Ended::Horizon)
        } else if earliest >= pause {
            Some(Ended::Paused)
        } else {
            None
        };
        if let Some(ended) = ended {
            window.ended.set(ended).expect("a run ends once");
            return;
        }
        let whole = || Time::from_ps(earliest).saturating_add(self.bounds.lookahead).min(self.bounds.horizon);
        let whole = goes_on.unwrap_or_else(whole);
        let end = whole.min(self.bounds.pause);
        window.cut.store(if end < whole { whole.ps() } else { NEVER }, Ordering::Relaxed);
        window.number.store(number, Ordering::Relaxed);
        window.reached.store(reached, Ordering::Relaxed);
        window.end.store(end.ps(), Ordering::Relaxed);
        for roster in &self.rosters {
            let is_due = |&part: &usize| {
                let seat = &self.seats[part];
                let mail = seat.inbox(number);
                seat.next_at.load(Ordering::Relaxed) < end.ps() || mail.earliest.load(Ordering::Relaxed) != NEVER
            };
            roster.fill((roster.first..roster.end).filter(is_due));
        }
    }

    /// Hands a partition its mail, advances it through the window, and posts what it sends.
    fn advance(&self, part: usize, Outcome { end, windows, .. }: Outcome) {
        let seat = &self.seats[part];
        let desk = &mut *lock(&seat.desk);
        let inbox = seat.inbox(windows);
        if inbox.earliest.swap(NEVER, Ordering::Relaxed) != NEVER {
            inbox.empty_into(desk);
        }
        desk.partition.advance(end, &mut desk.outbox);
        desk.sent_most = desk.sent_most.max(desk.outbox.used.len());
        for to in desk.outbox.used.drain(..) {
            let mail = std::mem::replace(&mut desk.outbox.letters[to], desk.spare.pop().unwrap_or_default());
            let earliest = mail.iter().map(|mail| P::effect_at(mail).ps()).min().unwrap_or(NEVER);
            debug_assert!(earliest >= end.ps(), "mail that takes effect in the window in which it was sent");
            let inbox = self.seats[to].inbox(windows + 1);
            lock(&inbox.letters).push((part, mail));
            inbox.earliest.fetch_min(earliest, Ordering::Relaxed);
        }
        seat.next_at.store(desk.partition.next_at().ps(), Ordering::Relaxed);
        seat.quiet.store(desk.partition.is_quiet(), Ordering::Relaxed);
        seat.reached.store(desk.partition.reached(), Ordering::Relaxed);
        if desk.partition.pauses() {
            self.window.pauses.store(true, Ordering::Relaxed);
        }
    }
}

impl<P: Partition> Slot<'_, P> {
    /// The inbox whose mail the partition is handed in this window.
    fn inbox(&self, window: u64) -> &Inbox<P::Mail> {
        &self.inboxes[(window & 1) as usize]
    }
}

impl<M> Inbox<M> {
    fn new() -> Inbox<M> {
        Inbox { letters: Mutex::new(Vec::new()), earliest: AtomicU64::new(NEVER) }
    }

    /// Hands all mail to the partition, in the order of senders, whichever thread was first.
    fn empty_into<P: Partition<Mail = M>>(&self, desk: &mut PartitionState<'_, P>) {
        let mut letters = lock(&self.letters);
        letters.sort_unstable_by_key(|&(from, _)| from);
        for (_, mut mail) in letters.drain(..) {
            desk.partition.accept(&mut mail);
            mail.clear();
            if desk.spare.len() < desk.sent_most {
                desk.spare.push(mail);
            }
        }
    }
}

impl RunQueue {
    /// Between windows: lists the partitions that are due.
    fn fill(&self, parts: impl Iterator<Item = usize>) {
        let mut count = 0;
        for part in parts {
            self.due[count].store(part, Ordering::Relaxed);
            count += 1;
        }
        self.count.store(count, Ordering::Relaxed);
        self.taken.store(0, Ordering::Relaxed);
    }

    /// The next partition that is due and that no thread has taken.
    fn take(&self) -> Option<usize> {
        let count = self.count.load(Ordering::Relaxed);
        if self.taken.load(Ordering::Relaxed) >= count {
            return None;
        }
        let place = self.taken.fetch_add(1, Ordering::Relaxed);
        (place < count).then(|| self.due[place].load(Ordering::Relaxed))
    }
}

/// A thread that panics with a lock breaks the barrier, after which no thread goes on.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

#[cfg(test)]
mod tests;
