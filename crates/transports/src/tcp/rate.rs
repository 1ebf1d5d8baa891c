use std::collections::VecDeque;

use units::{Duration, Rate, Time};

use super::control::{Lost, RateSample};
use super::scoreboard::Progress;

/// Samples the rate at which a flow's data is delivered: draft-cheng-iccrg-delivery-rate-estimation-00.
///
/// A sample spans the time from a packet's sending to its acknowledgement. It uses the longer of two intervals, in
/// which the same amount was sent and acknowledged, so that neither compressed acknowledgements nor a burst of packets
/// suggest more than the path can carry. All counts are in segments.
#[derive(Clone, Debug, node::State)]
pub(crate) struct Sampler {
    /// C.delivered: amount delivered so far.
    #[state(sequence)]
    delivered: u64,
    /// C.delivered_time: when the last of it was acknowledged.
    #[state(past)]
    delivered_at: Time,
    /// C.first_sent_time: when the newest acknowledged packet was sent.
    #[state(past)]
    first_sent: Time,
    /// C.app_limited: until this much is delivered, samples come from a sender that had less to send than it might
    /// have.
    #[state(when(self.limited_until > 0, sequence))]
    limited_until: u64,
    /// MinRTT: a shorter interval means that an acknowledgement was taken for that of a later transmission.
    rtt_min: Duration,
    /// C.lost: how many were lost so far.
    lost: u64,
    /// One entry for each outstanding segment, in order.
    sent: VecDeque<Sent>,
}

/// The state at a packet's last transmission.
#[derive(Clone, Copy, Debug, node::State)]
struct Sent {
    #[state(past)]
    at: Time,
    #[state(past)]
    first_sent: Time,
    #[state(sequence)]
    delivered: u64,
    #[state(past)]
    delivered_at: Time,
    limited: bool,
    /// P.tx_in_flight: in flight then, this one included.
    in_flight: u64,
    /// P.lost: C.lost then.
    lost: u64,
}

impl Sampler {
    pub fn new() -> Sampler {
        Sampler {
            delivered: 0,
            delivered_at: Time::ZERO,
            first_sent: Time::ZERO,
            limited_until: 0,
            rtt_min: Duration::MAX,
            lost: 0,
            sent: VecDeque::new(),
        }
    }

    /// A segment, counted from the first outstanding one, is sent, for the first time or again. So many are
    /// in flight then.
    pub fn send(&mut self, beyond: u64, now: Time, in_flight: u64) {
        if self.sent.is_empty() {
            (self.first_sent, self.delivered_at) = (now, now);
        }
        let sent = Sent {
            at: now,
            first_sent: self.first_sent,
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            limited: self.limited_until > 0,
            in_flight,
            lost: self.lost,
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

    /// A segment, counted from the first outstanding one, is lost: the `first` byte of it is given.
    pub fn lose(&mut self, beyond: u64, first: u64, mss: u64) -> Lost {
        self.lost += 1;
        let sent = self.sent[beyond as usize];
        Lost {
            first,
            bytes: mss,
            in_flight_bytes: sent.in_flight * mss,
            since_bytes: (self.lost - sent.lost) * mss,
            limited: sent.limited,
        }
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
            in_flight_bytes: newest.in_flight * mss,
            lost_bytes: (self.lost - newest.lost) * mss,
        })
    }
}

#[cfg(test)]
mod tests;
