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
    /// It wants a pause after each window in which a token came to this cell.
    pauses_at: Option<usize>,
    pauses: bool,
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
                agenda: Agenda::new(&vec![0; owner.iter().filter(|&&p| p == part).count()]),
                waiting: vec![Default::default(); cells],
                log: vec![Vec::new(); cells],
                pauses_at: None,
                pauses: false,
            })
            .collect();
        rings[0].accept(&mut vec![(0, 5)]);
        rings
    }

    /// By cell, what arrived and what is under way to it.
    fn merged(rings: &[Ring]) -> Vec<(Vec<u64>, Vec<u64>)> {
        let of_cell = |cell: usize| {
            let ring = &rings[rings[0].owner[cell]];
            (ring.log[cell].clone(), ring.waiting[cell].iter().copied().collect())
        };
        (0..rings[0].cells).map(of_cell).collect()
    }
}

impl Partition for Ring {
    type Mail = (usize, u64);
    fn next_at(&self) -> Time {
        self.agenda.first().0
    }
    fn advance(&mut self, end: Time, outbox: &mut Outbox<(usize, u64)>) {
        self.pauses = false;
        while self.agenda.first().0 < end {
            let cell = self.first + self.agenda.first().1;
            let at = self.waiting[cell].pop_first().unwrap();
            self.log[cell].push(at);
            self.pauses |= self.pauses_at == Some(cell);
            let mut onward = vec![((cell + 1) % self.cells, at + LOOKAHEAD + cell as u64 % 7)];
            if at < 3_000 && self.log[cell].len().is_multiple_of(3) {
                onward.push(((cell + 2) % self.cells, at + 2 * LOOKAHEAD));
            }
            for mail in onward {
                if self.owner[mail.0] == self.owner[cell] {
                    self.accept(&mut vec![mail]);
                } else {
                    outbox.post(self.owner[mail.0], mail);
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
    fn pauses(&self) -> bool {
        self.pauses
    }
}

fn bounds(goal: u64) -> Bounds {
    Bounds::new(Duration::from_ps(LOOKAHEAD), Time::from_ps(20_000), goal)
}

#[test]
fn any_number_of_threads_gives_the_same_history_and_the_same_end() {
    let run_on = |parts, threads, goal| {
        let mut rings = Ring::cut(12, parts);
        let outcome = run(&mut rings, threads, bounds(goal), |_, _| false);
        (outcome, Ring::merged(&rings))
    };
    let alone = run_on(1, 1, u64::MAX);
    assert_eq!(alone.0.ended, Ended::Horizon);
    assert!(alone.1.iter().all(|(log, _)| log.len() > 20), "the ring is busy");
    let short = run_on(1, 1, 200);
    assert_eq!(short.0.ended, Ended::Goal);
    assert!(short.1.iter().any(|(_, under_way)| !under_way.is_empty()), "mail of the last window counts, too");
    for (parts, threads) in [(2, 1), (2, 2), (3, 2), (4, 4), (12, 1), (12, 3), (12, 5)] {
        assert_eq!(run_on(parts, threads, u64::MAX), alone, "{parts} parts, {threads} threads");
        assert_eq!(run_on(parts, threads, 200), short, "{parts} parts, {threads} threads");
    }
}

/// At the end of the window, whichever thread advances the partition. Who goes on sees what would have been.
#[test]
fn a_partition_can_pause_the_run() {
    let run_on = |parts, threads, pauses_at| {
        let mut rings = Ring::cut(12, parts);
        rings.iter_mut().for_each(|ring| ring.pauses_at = pauses_at);
        let (mut ends, mut windows) = (Vec::new(), 0);
        loop {
            rings.iter_mut().for_each(|ring| ring.pauses = false);
            let outcome = run(&mut rings, threads, bounds(u64::MAX), |_, _| false);
            windows += outcome.windows;
            if outcome.ended != Ended::Paused {
                return (ends, outcome.ended, windows, Ring::merged(&rings));
            }
            ends.push(outcome.end);
        }
    };
    let (ends, ended, windows, history) = run_on(1, 1, Some(7));
    assert_eq!((ended, ends.is_sorted()), (Ended::Horizon, true));
    let arrivals = &history[7].0;
    let within = |&at: &u64| ends.iter().any(|end| (at + 1..=at + LOOKAHEAD).contains(&end.ps()));
    assert!(ends.len() > 10 && ends.len() <= arrivals.len() && arrivals.iter().all(within), "{ends:?} {arrivals:?}");
    let (none, _, windows_without, history_without) = run_on(1, 1, None);
    assert_eq!((none.len(), windows, &history), (0, windows_without, &history_without));
    for (parts, threads) in [(2, 1), (2, 2), (12, 3)] {
        assert_eq!(run_on(parts, threads, Some(7)), (ends.clone(), ended, windows, history.clone()));
    }
}

#[test]
fn a_watcher_can_interrupt() {
    let mut rings = Ring::cut(12, 2);
    let outcome = run(&mut rings, 2, bounds(u64::MAX), |now, _| now.ps() > 2_000);
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
        fn advance(&mut self, _: Time, _: &mut Outbox<()>) {
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
    run(&mut [Bomb(0), Bomb(1)], 2, bounds(u64::MAX), |_, _| false);
}

/// The first tells the others something in each window, and hears nothing.
struct Teller {
    tells: bool,
    next_at: Time,
}

impl Partition for Teller {
    type Mail = ();
    fn next_at(&self) -> Time {
        if self.tells { self.next_at } else { Time::MAX }
    }
    fn advance(&mut self, end: Time, outbox: &mut Outbox<()>) {
        self.next_at = end;
        (1..4).filter(|_| self.tells).for_each(|to| outbox.post(to, ()));
    }
    fn effect_at((): &()) -> Time {
        Time::from_ps(NEVER - 1)
    }
    fn accept(&mut self, mail: &mut Vec<()>) {
        mail.clear();
    }
    fn reached(&self) -> u64 {
        0
    }
}

/// Where more is told than answered, as by broadcasts, memory for mail does not grow with every window.
#[test]
fn who_only_hears_keeps_no_memory_for_mail() {
    let mut tellers = [true, false, false, false].map(|tells| Teller { tells, next_at: Time::ZERO });
    let meeting = Scheduler::new(&mut tellers, 1, bounds(u64::MAX));
    for windows in 0..100 {
        let end = Time::from_ps((windows + 1) * LOOKAHEAD);
        (0..4).for_each(|part| meeting.advance(part, Outcome { end, windows, ended: Ended::Goal, open_until: None }));
    }
    let spare: Vec<usize> = meeting.seats.iter().map(|seat| lock(&seat.desk).spare.len()).collect();
    assert_eq!(spare, [0; 4]);
}

/// It posts a letter to the other at its first event.
struct Writer {
    events: Vec<u64>,
    read: usize,
    other: Option<usize>,
    recalls: bool,
}

impl Partition for Writer {
    type Mail = Time;
    fn next_at(&self) -> Time {
        self.events.first().map_or(Time::MAX, |&at| Time::from_ps(at))
    }
    fn advance(&mut self, end: Time, outbox: &mut Outbox<Time>) {
        while self.next_at() < end {
            self.events.remove(0);
            if let Some(to) = self.other.take() {
                outbox.post(to, Time::from_ps(LOOKAHEAD * 3));
                outbox.posted(to).iter_mut().filter(|_| self.recalls).for_each(|at| *at = Time::MAX);
            }
        }
    }
    fn effect_at(mail: &Time) -> Time {
        *mail
    }
    fn accept(&mut self, mail: &mut Vec<Time>) {
        self.read += mail.len();
        self.events.extend(mail.drain(..).filter(|&at| at < Time::MAX).map(Time::ps));
        self.events.sort_unstable();
    }
    fn reached(&self) -> u64 {
        0
    }
}

#[test]
fn no_window_begins_for_mail_that_never_takes_effect_and_it_is_handed_over_at_the_end() {
    for events in [vec![0], vec![0, LOOKAHEAD * 50]] {
        let windows = events.len() as u64;
        let writer = Writer { events, read: 0, other: Some(1), recalls: true };
        let mut both = [writer, Writer { events: Vec::new(), read: 0, other: None, recalls: false }];
        let outcome = run(&mut both, 2, bounds(u64::MAX), |_, _| false);
        assert_eq!((outcome.ended, outcome.windows, both[1].read), (Ended::Quiet, windows, 1));
    }
}
