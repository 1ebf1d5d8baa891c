use super::super::scoreboard::Scoreboard;
use super::*;

/// A byte a segment, so that rates are 8 times segments a second.
struct Path {
    board: Scoreboard,
    sampler: Sampler,
}

impl Path {
    fn new() -> Path {
        Path { board: Scoreboard::new(3, false), sampler: Sampler::new() }
    }

    fn send(&mut self, at_us: u64) {
        let beyond = self.board.next() - self.board.una();
        self.board.send(Time::from_us(at_us));
        self.sampler.send(beyond, Time::from_us(at_us), self.board.pipe());
    }

    /// Segments a second that the acknowledgement of all before `upto` shows, and whether the sample is limited.
    fn acknowledge(&mut self, upto: u64, at_us: u64) -> Option<(u64, bool)> {
        let (una, now) = (self.board.una(), Time::from_us(at_us));
        let progress = self.board.acknowledge(upto, []);
        let sample = self.sampler.acknowledge(now, una, &progress, 1)?;
        Some((sample.rate.bps() / 8, sample.limited))
    }
}

#[test]
fn a_steady_stream_shows_its_rate() {
    // A segment a microsecond, 10 us there and back.
    let mut path = Path::new();
    for at in 0..40 {
        if at >= 10 {
            let rate = path.acknowledge(at - 9, at).unwrap().0;
            // The first ten were sent before anything had arrived: n of them in 10 + n - 1 microseconds.
            let n = at - 9;
            let wanted = if n <= 10 { 1_000_000 * n / (9 + n) } else { 1_000_000 };
            assert_eq!(rate, wanted, "segment {n}");
        }
        if at < 30 {
            path.send(at);
        }
    }
}

#[test]
fn neither_compressed_acknowledgements_nor_bursts_show_more_than_the_path() {
    // Ten segments a microsecond apart, then ten more when the first ten are acknowledged, all at once: the second
    // ten are acknowledged 10 us later and at once too. Sent in 10 us, so they show one a microsecond, not more.
    let mut path = Path::new();
    (0..10).for_each(|at| path.send(at));
    path.acknowledge(10, 20);
    (20..30).for_each(|at| path.send(at));
    assert_eq!(path.acknowledge(20, 31), Some((10_000_000 / 11, false)));
    // A burst of ten at one instant, acknowledged a microsecond apart.
    let mut path = Path::new();
    (0..10).for_each(|_| path.send(0));
    for n in 1..=10 {
        assert_eq!(path.acknowledge(n, 9 + n), Some((1_000_000 * n / (9 + n), false)));
    }
}

#[test]
fn what_is_sent_while_the_sender_is_limited_gives_marked_samples() {
    let mut path = Path::new();
    path.send(0);
    path.sampler.limit(1);
    path.send(1);
    path.send(2);
    // The first was sent before; one more than what was in flight has arrived when the mark ends.
    assert!(!path.acknowledge(1, 10).unwrap().1);
    path.send(10);
    assert!(path.acknowledge(2, 11).unwrap().1);
    path.send(11);
    assert!(path.acknowledge(4, 20).unwrap().1);
    assert!(!path.acknowledge(5, 21).unwrap().1);
}

#[test]
fn an_answer_sooner_than_any_round_trip_gives_no_sample() {
    let mut path = Path::new();
    (0..3).for_each(|n| path.send(2 * n));
    assert!(path.acknowledge(1, 20).is_some());
    // Both others are sent again, each a microsecond before its first transmission is acknowledged. The second of
    // these spans 2 us from the one before it, where none was acknowledged sooner than after 20.
    path.board.give_up();
    let mut again = |segment: u64, at_us: u64| {
        path.board.resend(segment, Time::from_us(at_us));
        path.sampler.send(0, Time::from_us(at_us), 1);
        path.acknowledge(segment + 1, at_us + 1)
    };
    assert!(again(1, 21).is_some());
    assert_eq!(again(2, 23), None);
}
