//! BBR: sends at the rate at which data arrives (Cardwell et al., ACM Queue 2016), in two versions: that of
//! draft-cardwell-iccrg-bbr-congestion-control-00 (`v1`) and that of draft-ietf-ccwg-bbr (`v3`).
//!
//! It keeps a model of the path, the greatest delivery rate of late (`BtlBw`) and the least round trip (`RTprop`), and
//! paces at a gain times `BtlBw` with at most about two products of both in flight. Names are the drafts'; `rate.rs`
//! has the samples.
//!
//! **The times of PROBE_RTT** are a decision. `RTprop` includes others' queue for a flow that starts late; only
//! PROBE_RTT empties the queue, so that all flows measure the same path and come to equal shares. The drafts have it
//! last 200 ms, long enough for flows of all round trips to be in it at once, every ten or five seconds, so that it
//! costs 2%. Both times are the Internet's. Here PROBE_RTT lasts two of the longest unloaded round trips of the network
//! at hand, which is what a round trip of BBR takes at most with two products in flight, 200 ms at most, and comes as
//! often as costs the drafts' 2%. With the drafts' own times, which can be set, a run of less than ten seconds sees
//! what it would see on the Internet: on 1 Gbps four flows that start 10 ms apart have 30, 30, 67 and 844 Mbps in ns-3
//! (without timestamps, whose milliseconds make every round trip 1 us there and every window the least one), and the
//! same here.
//!
//! Deliberately absent: restart from idle, as a flow is one message and never idle; quanta above a packet, as hosts
//! here have no segmentation offload.

use std::collections::VecDeque;

use node::EndpointParams;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Duration, Problem, Rate, Time};

use super::control::{Ack, Algorithm, Congestion, Control, Ecn, Lost, Start};
use contract::{About, CongestionSignal};

#[cfg(test)]
mod testing;
mod v1;
mod v3;

/// Configuration of BBR, by the drafts' names.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, node::Saved)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "BbrConfig")]
pub struct Config {
    /// The version. Default: v1.
    pub version: Version,
    /// BBRHighGain of version 1: pacing and window gain of STARTUP, above 1. DRAIN paces at its inverse. Default: 2/ln
    /// 2.
    pub high_gain: f64,
    /// Window gain of PROBE_BW in version 1, at least 1. Default: 2.
    pub cwnd_gain: f64,
    /// BtlBwFilterLen of version 1: number of round trips for which a delivery rate is remembered. Default: 10.
    pub btlbw_filter_len: u64,
    /// RTpropFilterLen, MinRTTFilterLen: how long the least round trip is valid. In version 1 PROBE_RTT measures it
    /// again then. The drafts have 10s. Default: 50 times `probe_rtt_duration`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-least" = "100ns"))]
    pub rtprop_filter_len: Option<Duration>,
    /// ProbeRTTInterval of version 3: time from one PROBE_RTT to the next. The draft has 5s. Default: half of
    /// `rtprop_filter_len`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-least" = "100ns"))]
    pub probe_rtt_interval: Option<Duration>,
    /// ProbeRTTDuration: minimum duration of PROBE_RTT. The drafts have 200ms. Default: two of the longest unloaded
    /// round trips, 200ms at most, or a fiftieth of `rtprop_filter_len` where that is set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probe_rtt_duration: Option<Duration>,
    /// BBRMinPipeCwnd: the window of version 1's PROBE_RTT and the minimum window, in packets. Default: 4.
    pub min_pipe_cwnd: u64,
    /// Share by which packets leave slower than the model says (PacingMarginPercent), 0.01 in Linux's and ns-3's
    /// version 1 too. Default: 0 in version 1 and 0.01 in version 3.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pacing_margin: Option<f64>,
    /// LossThresh of version 3: share of a round trip's data that may be lost while it probes for bandwidth, below 1.
    /// Default: 0.02.
    pub loss_thresh: f64,
    /// Beta of version 3: a loss reduces bounds to this share at most, above 0 and at most 1. Default: 0.7.
    pub beta: f64,
    /// Headroom of version 3: share of the bound that is left to others, 0 or more and below 1. Default: 0.15.
    pub headroom: f64,
}

/// A version of BBR.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, node::Saved)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "BbrVersion")]
pub enum Version {
    /// draft-cardwell-iccrg-bbr-congestion-control-00, Linux's tcp_bbr: losses don't count.
    #[default]
    V1,
    /// draft-ietf-ccwg-bbr: losses bound what is in flight.
    V3,
}

impl Default for Config {
    /// The drafts' values. 2/ln 2 is the least gain that doubles the rate in a round trip.
    fn default() -> Config {
        Config {
            version: Version::V1,
            high_gain: 2.0 / std::f64::consts::LN_2,
            cwnd_gain: 2.0,
            btlbw_filter_len: 10,
            rtprop_filter_len: None,
            probe_rtt_interval: None,
            probe_rtt_duration: None,
            min_pipe_cwnd: 4,
            pacing_margin: None,
            loss_thresh: 0.02,
            beta: 0.7,
            headroom: 0.15,
        }
    }
}

/// ProbeRTTDuration of both drafts.
const PROBE_RTT_DURATION: Duration = Duration::from_ms(200);

/// RTpropFilterLen of both drafts, 10 s, in durations of PROBE_RTT.
const FILTER_DURATIONS: u64 = 50;

/// When PROBE_RTT comes and how long it lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, node::Saved)]
struct Times {
    rtprop_filter_len: Duration,
    probe_rtt_interval: Duration,
    probe_rtt_duration: Duration,
}

/// How losses bound version 3.
#[derive(Clone, Copy, Debug, node::Saved)]
struct Bounds {
    loss_thresh: f64,
    beta: f64,
    headroom: f64,
}

impl Config {
    /// The times in a network with such a longest unloaded round trip.
    fn times(&self, rtt: Duration) -> Times {
        let duration = self.probe_rtt_duration.unwrap_or_else(|| match self.rtprop_filter_len {
            Some(filter) => filter / FILTER_DURATIONS,
            None => (rtt * 2).min(PROBE_RTT_DURATION),
        });
        let filter = self.rtprop_filter_len.unwrap_or(duration * FILTER_DURATIONS);
        let interval = self.probe_rtt_interval.unwrap_or(filter / 2);
        Times { rtprop_filter_len: filter, probe_rtt_interval: interval, probe_rtt_duration: duration }
    }

    fn pacing_margin(&self) -> f64 {
        self.pacing_margin.unwrap_or(match self.version {
            Version::V1 => 0.0,
            Version::V3 => 0.01,
        })
    }

    fn check_gains(&self) -> Result<(), Problem> {
        if !(self.high_gain > 1.0 && self.high_gain.is_finite()) {
            return Err(Problem::new("high_gain", format!("{} is not above 1", self.high_gain)));
        }
        if !(self.cwnd_gain >= 1.0 && self.cwnd_gain.is_finite()) {
            return Err(Problem::new("cwnd_gain", format!("{} is not at least 1", self.cwnd_gain)));
        }
        if !(self.beta > 0.0 && self.beta <= 1.0) {
            return Err(Problem::new("beta", format!("{} is not above 0 and at most 1", self.beta)));
        }
        let shares = [
            ("pacing_margin", self.pacing_margin.unwrap_or_default()),
            ("loss_thresh", self.loss_thresh),
            ("headroom", self.headroom),
        ];
        for (key, share) in shares {
            if !(0.0..1.0).contains(&share) {
                return Err(Problem::new(key, format!("{share} is not at least 0 and below 1")));
            }
        }
        Ok(())
    }
}

impl Algorithm for Config {
    type Control = Bbr;

    const ABOUT: About = About {
        title: "BBR",
        source: "Cardwell et al., ACM Queue 2016; draft-cardwell-iccrg-bbr-congestion-control-00, draft-ietf-ccwg-bbr",
        summary: "Paces at the highest delivery rate that it has measured, with at most two bandwidth-delay products \
                  in flight.",
        needs: "nothing",
    };

    const DRAWS: bool = true;

    fn samples_rate(&self) -> bool {
        true
    }

    fn check(&self) -> Result<(), Problem> {
        self.check_gains()?;
        for (key, value) in [("btlbw_filter_len", self.btlbw_filter_len), ("min_pipe_cwnd", self.min_pipe_cwnd)] {
            if value == 0 {
                return Err(Problem::new(key, "at 0 nothing would be sent; write at least 1"));
            }
        }
        let times = self.times(PROBE_RTT_DURATION);
        let (key, between) = match self.version {
            Version::V1 => ("rtprop_filter_len", times.rtprop_filter_len),
            Version::V3 => ("probe_rtt_interval", times.probe_rtt_interval),
        };
        if times.probe_rtt_duration >= between {
            let message =
                format!("{} is not below {key}, {between}: all time would go to probing", times.probe_rtt_duration);
            return Err(Problem::new("probe_rtt_duration", message));
        }
        Ok(())
    }

    fn ecn(&self) -> Ecn {
        Ecn::Off
    }

    fn signal(&self, _: &EndpointParams) -> CongestionSignal {
        CongestionSignal::Drop
    }

    fn start(&self, start: Start) -> Bbr {
        let times = self.times(start.rtt);
        match self.version {
            Version::V1 => Bbr::V1(Box::new(v1::V1::new(self.clone(), times, start))),
            Version::V3 => {
                let Config { loss_thresh, beta, headroom, min_pipe_cwnd, .. } = *self;
                let bounds = Bounds { loss_thresh, beta, headroom };
                Bbr::V3(Box::new(v3::V3::new(bounds, times, self.pacing_margin(), min_pipe_cwnd, start)))
            }
        }
    }
}

/// A flow's model of its path, and the resulting rate and window.
#[derive(Clone, Debug, node::State)]
pub enum Bbr {
    /// Of version 1.
    V1(Box<v1::V1>),
    /// Of version 3.
    V3(Box<v3::V3>),
}

impl Control for Bbr {
    fn on_ack(&mut self, ack: &Ack) {
        match self {
            Bbr::V1(of) => of.on_ack(ack),
            Bbr::V3(of) => of.on_ack(ack),
        }
    }

    fn on_opened(&mut self, now: Time, rtt: Duration) {
        if let Bbr::V1(of) = self {
            of.on_opened(now, rtt);
        }
    }

    fn on_lost(&mut self, lost: &Lost) {
        if let Bbr::V3(of) = self {
            of.on_lost(lost);
        }
    }

    fn on_congestion(&mut self, congestion: &Congestion) {
        match self {
            Bbr::V1(of) => of.on_congestion(congestion),
            Bbr::V3(of) => of.on_congestion(congestion),
        }
    }

    fn window_bytes(&self) -> u64 {
        match self {
            Bbr::V1(of) => of.cwnd,
            Bbr::V3(of) => of.cwnd,
        }
    }

    fn pacing(&self) -> Option<Rate> {
        let (rate, start) = match self {
            Bbr::V1(of) => (of.pacing_rate, &of.start),
            Bbr::V3(of) => (of.pacing_rate, &of.start),
        };
        let wire = start.packet_bytes as f64 / start.mss_bytes as f64;
        Some(rate.mul_f64(wire).max(Rate::from_bps(1)))
    }

    fn holds_back(&self) -> bool {
        match self {
            Bbr::V1(of) => of.is_probing_rtt(),
            Bbr::V3(of) => of.is_probing_rtt(),
        }
    }
}

/// Growth of the delivery rate in three round trips below which STARTUP ends.
const FULL_PIPE_GROWTH: f64 = 1.25;

/// Counts round trips. One has passed when a packet is acknowledged that was sent after the previous one had passed.
#[derive(Clone, Copy, Debug, Default, node::State)]
struct Round {
    #[state(skip("only distances from it matter"))]
    count: u64,
    /// Whether this acknowledgement ends a round trip.
    start: bool,
    #[state(sequence(1))]
    next_delivered: u64,
}

/// The greatest of a number of rounds: a list of values that no later one exceeds, newest last.
#[derive(Clone, Debug, node::Saved)]
struct MaxFilter<T>(VecDeque<(u64, T)>);

impl<T> Default for MaxFilter<T> {
    fn default() -> Self {
        MaxFilter(VecDeque::new())
    }
}

impl<T: Copy + Ord + Default> MaxFilter<T> {
    fn add(&mut self, round: u64, value: T, rounds: u64) {
        while self.0.back().is_some_and(|last| last.1 <= value) {
            self.0.pop_back();
        }
        self.0.push_back((round, value));
        while self.0.front().is_some_and(|first| first.0 + rounds <= round) {
            self.0.pop_front();
        }
    }

    fn max(&self) -> T {
        self.0.front().map_or(T::default(), |first| first.1)
    }
}
