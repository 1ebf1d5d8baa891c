use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use units::{Duration, Time};

use crate::barrier::Barrier;

/// One part of a model, advanced by one thread.
pub trait Partition: Send {
    /// Messages between partitions.
    type Mail: Send;

    /// Time of its next event, [`Time::MAX`] if it has none.
    fn next_at(&self) -> Time;

    /// Performs all events before `end`. Mail for partition `p` goes into `outbox[p]` and must not take effect before
    /// `end`.
    fn advance(&mut self, end: Time, outbox: &mut [Vec<Self::Mail>]);

    /// When a piece of mail takes effect.
    fn effect_at(mail: &Self::Mail) -> Time;

    /// Takes mail, in the order in which the sender put it into its outbox.
    fn accept(&mut self, mail: &mut Vec<Self::Mail>);

    /// This partition's part of the run's goal so far.
    fn reached(&self) -> u64;
}

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The partitions have reached the goal.
    Goal,
    /// No event before the horizon is left.
    Horizon,
    /// No event is left at all.
    Quiet,
    /// The watcher stopped it.
    Interrupted,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// All events before this time have happened, and none at or after it.
    pub end: Time,
    /// Why it ended.
    pub ended: Ended,
    /// Number of windows.
    pub windows: u64,
}

/// Advances partitions through windows of length `lookahead` until the sum of their progress reaches `goal`, no event
/// before `horizon` is left, or `watch` returns true. Except for `watch`, the end depends only on the model and not on
/// the number of threads.
///
/// `watch(now, reached)` is called on the calling thread after each window, for progress displays and Ctrl-C.
///
/// A single partition runs on the calling thread. Several get a thread each, the first the calling thread.
pub fn run<P: Partition>(
    partitions: &mut [P],
    lookahead: Duration,
    horizon: Time,
    goal: u64,
    mut watch: impl FnMut(Time, u64) -> bool,
) -> Outcome {
    assert!(lookahead > Duration::ZERO, "partitions with no delay between them can't run side by side");
    let meeting = Meeting::new(partitions.len(), lookahead, horizon, goal);
    let (first, others) = partitions.split_first_mut().expect("at least one partition");
    std::thread::scope(|scope| {
        for (index, partition) in others.iter_mut().enumerate() {
            let meeting = &meeting;
            scope.spawn(move || meeting.attend(index + 1, partition, |_, _| false));
        }
        meeting.attend(0, first, &mut watch)
    })
}

/// State shared by the threads. There are two boards: a window writes one while the previous one is being read, so that
/// one barrier for each window is enough.
struct Meeting<M> {
    lookahead: Duration,
    horizon: Time,
    goal: u64,
    barrier: Barrier,
    boards: [Board<M>; 2],
}

struct Board<M> {
    /// By partition: the earliest time that it knows of, from its own events or from mail that it has sent.
    next_at: Vec<AtomicU64>,
    /// By partition: its progress.
    reached: Vec<AtomicU64>,
    interrupted: AtomicBool,
    /// Mail by destination and sender.
    mail: Vec<Vec<Mutex<Vec<M>>>>,
}

impl<M> Meeting<M> {
    fn new(parties: usize, lookahead: Duration, horizon: Time, goal: u64) -> Self {
        let counters = || (0..parties).map(|_| AtomicU64::new(0)).collect();
        let board = || Board {
            next_at: counters(),
            reached: counters(),
            interrupted: AtomicBool::new(false),
            mail: (0..parties).map(|_| (0..parties).map(|_| Mutex::new(Vec::new())).collect()).collect(),
        };
        Meeting { lookahead, horizon, goal, barrier: Barrier::new(parties), boards: [board(), board()] }
    }

    fn attend<P>(&self, me: usize, partition: &mut P, mut watch: impl FnMut(Time, u64) -> bool) -> Outcome
    where
        P: Partition<Mail = M>,
    {
        let _guard = self.barrier.guard();
        let mut outbox: Vec<Vec<M>> = self.boards[0].next_at.iter().map(|_| Vec::new()).collect();
        let mut outcome = Outcome { end: Time::ZERO, ended: Ended::Quiet, windows: 0 };
        let mut interrupt = false;
        loop {
            let board = &self.boards[(outcome.windows & 1) as usize];
            let mut next_at = partition.next_at();
            for (to, letters) in outbox.iter_mut().enumerate().filter(|(_, letters)| !letters.is_empty()) {
                next_at = letters.iter().map(P::effect_at).fold(next_at, Time::min);
                std::mem::swap(letters, &mut board.mail[to][me].lock().expect("no thread panics with the lock"));
            }
            board.next_at[me].store(next_at.ps(), Ordering::Relaxed);
            board.reached[me].store(partition.reached(), Ordering::Relaxed);
            if me == 0 {
                board.interrupted.store(interrupt, Ordering::Relaxed);
            }
            if self.barrier.wait().is_err() {
                return outcome; // the scope passes the other thread's panic on
            }
            for letters in &board.mail[me] {
                let mut letters = letters.lock().expect("no thread panics with the lock");
                if !letters.is_empty() {
                    partition.accept(&mut letters);
                    letters.clear();
                }
            }
            let earliest = board.next_at.iter().map(|at| at.load(Ordering::Relaxed)).min().unwrap_or(u64::MAX);
            let reached = board.reached.iter().map(|n| n.load(Ordering::Relaxed)).sum::<u64>();
            // Every thread draws the same conclusion from the same board.
            let ended = if board.interrupted.load(Ordering::Relaxed) {
                Some(Ended::Interrupted)
            } else if reached >= self.goal {
                Some(Ended::Goal)
            } else if earliest == u64::MAX {
                Some(Ended::Quiet)
            } else if earliest >= self.horizon.ps() {
                Some(Ended::Horizon)
            } else {
                None
            };
            if let Some(ended) = ended {
                return Outcome { ended, ..outcome };
            }
            outcome.windows += 1;
            outcome.end = Time::from_ps(earliest).saturating_add(self.lookahead).min(self.horizon);
            partition.advance(outcome.end, &mut outbox);
            interrupt |= watch(outcome.end, reached);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Agenda;

    /// Cells on a ring. A token that arrives at a cell is logged there and moves to the next after a delay that depends
    /// on the cell. Every third arrival makes another token two cells ahead.
    struct Ring {
        first: usize,
        cells: usize,
        owner: Vec<usize>,
        agenda: Agenda,
        waiting: Vec<std::collections::BTreeSet<u64>>,
        log: Vec<Vec<u64>>,
    }

    const LOOKAHEAD: u64 = 100;

    impl Ring {
        fn cut(cells: usize, parts: usize) -> Vec<Ring> {
            let owner: Vec<usize> = (0..cells).map(|cell| cell * parts / cells).collect();
            let mut rings: Vec<Ring> = (0..parts)
                .map(|part| Ring {
                    first: owner.iter().position(|&p| p == part).unwrap(),
                    cells,
                    owner: owner.clone(),
                    agenda: Agenda::new(owner.iter().filter(|&&p| p == part).count()),
                    waiting: vec![Default::default(); cells],
                    log: vec![Vec::new(); cells],
                })
                .collect();
            rings[0].accept(&mut vec![(0, 5)]);
            rings
        }

        fn merged(rings: &[Ring]) -> Vec<Vec<u64>> {
            (0..rings[0].cells).map(|cell| rings[rings[0].owner[cell]].log[cell].clone()).collect()
        }
    }

    impl Partition for Ring {
        type Mail = (usize, u64);
        fn next_at(&self) -> Time {
            self.agenda.first().0
        }
        fn advance(&mut self, end: Time, outbox: &mut [Vec<(usize, u64)>]) {
            while self.agenda.first().0 < end {
                let cell = self.first + self.agenda.first().1;
                let at = self.waiting[cell].pop_first().unwrap();
                self.log[cell].push(at);
                let mut onward = vec![((cell + 1) % self.cells, at + LOOKAHEAD + cell as u64 % 7)];
                if at < 3_000 && self.log[cell].len().is_multiple_of(3) {
                    onward.push(((cell + 2) % self.cells, at + 2 * LOOKAHEAD));
                }
                for mail in onward {
                    if self.owner[mail.0] == self.owner[cell] {
                        self.accept(&mut vec![mail]);
                    } else {
                        outbox[self.owner[mail.0]].push(mail);
                    }
                }
                let next = self.waiting[cell].first().map_or(Time::MAX, |&at| Time::from_ps(at));
                self.agenda.set(cell - self.first, next);
            }
        }
        fn effect_at(mail: &(usize, u64)) -> Time {
            Time::from_ps(mail.1)
        }
        fn accept(&mut self, mail: &mut Vec<(usize, u64)>) {
            for (cell, at) in mail.drain(..) {
                self.waiting[cell].insert(at);
                self.agenda.advance(cell - self.first, Time::from_ps(at));
            }
        }
        fn reached(&self) -> u64 {
            self.log.iter().map(|log| log.len() as u64).sum()
        }
    }

    #[test]
    fn any_number_of_threads_gives_the_same_history_and_the_same_end() {
        let run_on = |parts, goal| {
            let mut rings = Ring::cut(12, parts);
            let outcome = run(&mut rings, Duration::from_ps(LOOKAHEAD), Time::from_ps(20_000), goal, |_, _| false);
            (outcome, Ring::merged(&rings))
        };
        let alone = run_on(1, u64::MAX);
        assert_eq!(alone.0.ended, Ended::Horizon);
        assert!(alone.1.iter().all(|log| log.len() > 20), "the ring is busy");
        for parts in [2, 3, 4] {
            assert_eq!(run_on(parts, u64::MAX), alone);
            assert_eq!(run_on(parts, 200), run_on(1, 200));
        }
        assert_eq!(run_on(1, 200).0.ended, Ended::Goal);
    }

    #[test]
    fn a_watcher_can_interrupt() {
        let mut rings = Ring::cut(12, 2);
        let outcome = run(&mut rings, Duration::from_ps(LOOKAHEAD), Time::MAX, u64::MAX, |now, _| now.ps() > 2_000);
        assert_eq!(outcome.ended, Ended::Interrupted);
    }

    #[test]
    #[should_panic]
    fn a_panic_in_one_thread_ends_the_run() {
        struct Bomb(usize);
        impl Partition for Bomb {
            type Mail = ();
            fn next_at(&self) -> Time {
                Time::ZERO
            }
            fn advance(&mut self, _: Time, _: &mut [Vec<()>]) {
                assert!(self.0 == 0, "the second partition fails");
            }
            fn effect_at(_: &()) -> Time {
                Time::MAX
            }
            fn accept(&mut self, _: &mut Vec<()>) {}
            fn reached(&self) -> u64 {
                0
            }
        }
        run(&mut [Bomb(0), Bomb(1)], Duration::from_ps(1), Time::MAX, u64::MAX, |_, _| false);
    }
}
