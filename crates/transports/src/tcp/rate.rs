use std::collections::VecDeque;

use units::{Duration, Rate, Time};

use super::control::RateSample;
use super::scoreboard::Progress;

/// Samples the rate at which a flow's data is delivered: draft-cheng-iccrg-delivery-rate-estimation-00.
///
/// A sample spans the time from a packet's sending to its acknowledgement. It uses the longer of two intervals, in
/// which the same amount was sent and acknowledged, so that neither compressed acknowledgements nor a burst of packets
/// suggest more than the path can carry. All counts are in segments.
#[derive(Clone, Debug)]
pub(crate) struct Sampler {
    /// C.delivered: amount delivered so far.
    delivered: u64,
    /// C.delivered_time: when the last of it was acknowledged.
    delivered_at: Time,
    /// C.first_sent_time: when the newest acknowledged packet was sent.
    first_sent: Time,
    /// C.app_limited: until this much is delivered, samples come from a sender that had less to send than it might
    /// have.
    limited_until: u64,
    /// MinRTT: a shorter interval means that an acknowledgement was taken for that of a later transmission.
    rtt_min: Duration,
    /// One entry for each outstanding segment, in order.
    sent: VecDeque<Sent>,
}

/// The state at a packet's last transmission.
#[derive(Clone, Copy, Debug)]
struct Sent {
    at: Time,
    first_sent: Time,
    delivered: u64,
    delivered_at: Time,
    limited: bool,
}

impl Sampler {
    pub fn new() -> Sampler {
        Sampler {
            delivered: 0,
            delivered_at: Time::ZERO,
            first_sent: Time::ZERO,
            limited_until: 0,
            rtt_min: Duration::MAX,
            sent: VecDeque::new(),
        }
    }

    /// A segment, counted from the first outstanding one, is sent, for the first time or again.
    pub fn send(&mut self, beyond: u64, now: Time) {
        if self.sent.is_empty() {
            (self.first_sent, self.delivered_at) = (now, now);
        }
        let sent = Sent {
            at: now,
            first_sent: self.first_sent,
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            limited: self.limited_until > 0,
        };
        match self.sent.get_mut(beyond as usize) {
            Some(entry) => *entry = sent,
            None => self.sent.push_back(sent),
        }
    }

    /// Until everything now in flight has arrived, samples tell nothing about the path's capacity.
    pub fn limit(&mut self, in_flight: u64) {
        self.limited_until = (self.delivered + in_flight).max(1);
    }

    /// An acknowledgement has arrived, with the scoreboard's `progress`; `una` was the first outstanding segment
    /// before. The newest delivered packet, the one sent last, gives the sample.
    pub fn acknowledge(&mut self, now: Time, una: u64, progress: &Progress, mss: u64) -> Option<RateSample> {
        self.rtt_min = progress.rtt(now).into_iter().fold(self.rtt_min, Duration::min);
        self.delivered += progress.delivered;
        let newest = progress.newest.map(|(_, segment)| self.sent[(segment - una) as usize]);
        self.sent.drain(..progress.acked as usize);
        if self.limited_until < self.delivered {
            self.limited_until = 0;
        }
        let newest = newest?;
        (self.delivered_at, self.first_sent) = (now, newest.at);
        let interval = (newest.at - newest.first_sent).max(now - newest.delivered_at);
        if interval < self.rtt_min {
            return None;
        }
        let bits = u128::from((self.delivered - newest.delivered) * mss) * 8_000_000_000_000;
        Some(RateSample {
            rate: Rate::from_bps((bits / u128::from(interval.ps().max(1))) as u64),
            limited: newest.limited,
            delivered_bytes: self.delivered * mss,
            delivered_before_bytes: newest.delivered * mss,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::scoreboard::Scoreboard;
    use super::*;

    /// A byte a segment, so that rates are 8 times segments a second.
    struct Path {
        board: Scoreboard,
        sampler: Sampler,
    }

    impl Path {
        fn new() -> Path {
            Path { board: Scoreboard::default(), sampler: Sampler::new() }
        }

        fn send(&mut self, at_us: u64) {
            let beyond = self.board.next() - self.board.una();
            self.board.send(Time::from_us(at_us));
            self.sampler.send(beyond, Time::from_us(at_us));
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
            path.sampler.send(0, Time::from_us(at_us));
            path.acknowledge(segment + 1, at_us + 1)
        };
        assert!(again(1, 21).is_some());
        assert_eq!(again(2, 23), None);
    }
}
