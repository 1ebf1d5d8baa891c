//! BBR, version 1: sends at the rate at which data arrives (Cardwell et al., ACM Queue 2016;
//! draft-cardwell-iccrg-bbr-congestion-control-00).
//!
//! It keeps a model of the path, the greatest delivery rate of the last ten round trips (`BtlBw`) and the least round
//! trip of the last ten seconds (`RTprop`), and paces at `pacing_gain * BtlBw` with at most `cwnd_gain * BtlBw *
//! RTprop` in flight. STARTUP doubles the rate a round trip until it grows no more, DRAIN takes back the queue that
//! this has left, PROBE_BW goes through a cycle of gains, a quarter above and a quarter below 1 and then 1 for six, and
//! PROBE_RTT sends almost nothing for a moment if no round trip has been as short as `RTprop` for long. Names are the
//! draft's; `rate.rs` has the samples.
//!
//! Losses do not change the model. In the first round trip of recovery, only as much is sent as arrives (packet
//! conservation); then the previous window is restored.
//!
//! Deliberately absent: restart from idle, as a flow is one message and never idle; the policer detection and the
//! allowance for aggregated acknowledgements of Linux, which the draft leaves out; quanta above a packet, as hosts here
//! have no segmentation offload.

use std::collections::VecDeque;

use node::{Site, Walk};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Duration, FlowId, Problem, Rate, Stream, Time};

use super::control::{Ack, Algorithm, Congestion, Control, Ecn, Phase, Signal, Start};
use contract::{About, CongestionSignal};

/// Configuration of BBR, by the draft's names.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "BbrConfig")]
pub struct Config {
    /// BBRHighGain: pacing and window gain of STARTUP, above 1. DRAIN paces at its inverse. Default: 2/ln 2.
    pub high_gain: f64,
    /// Window gain of PROBE_BW, at least 1. Default: 2.
    pub cwnd_gain: f64,
    /// BtlBwFilterLen: number of round trips for which a delivery rate is remembered. Default: 10.
    pub btlbw_filter_len: u64,
    /// RTpropFilterLen: how long the least round trip is valid, until PROBE_RTT measures it again. Default: 10s.
    #[schemars(extend("x-least" = "100ns"))]
    pub rtprop_filter_len: Duration,
    /// ProbeRTTDuration: minimum duration of PROBE_RTT. Default: 200ms.
    pub probe_rtt_duration: Duration,
    /// BBRMinPipeCwnd: the window of PROBE_RTT and the minimum window, in packets. Default: 4.
    pub min_pipe_cwnd: u64,
}

impl Default for Config {
    /// The draft's values. 2/ln 2 is the least gain that doubles the rate in a round trip.
    fn default() -> Config {
        Config {
            high_gain: 2.0 / std::f64::consts::LN_2,
            cwnd_gain: 2.0,
            btlbw_filter_len: 10,
            rtprop_filter_len: Duration::from_ms(10_000),
            probe_rtt_duration: Duration::from_ms(200),
            min_pipe_cwnd: 4,
        }
    }
}

impl Algorithm for Config {
    type Control = Bbr;

    const ABOUT: About = About {
        title: "BBR",
        source: "Cardwell et al., ACM Queue 2016; draft-cardwell-iccrg-bbr-congestion-control-00",
        summary: "Paces at the highest delivery rate that it has measured, with at most two bandwidth-delay products \
                  in flight.",
        needs: "nothing",
    };

    const DRAWS: bool = true;
    const WALKS: bool = true;

    fn samples_rate(&self) -> bool {
        true
    }

    fn check(&self) -> Result<(), Problem> {
        if !(self.high_gain > 1.0 && self.high_gain.is_finite()) {
            return Err(Problem::new("high_gain", format!("{} is not above 1", self.high_gain)));
        }
        if !(self.cwnd_gain >= 1.0 && self.cwnd_gain.is_finite()) {
            return Err(Problem::new("cwnd_gain", format!("{} is not at least 1", self.cwnd_gain)));
        }
        for (key, value) in [("btlbw_filter_len", self.btlbw_filter_len), ("min_pipe_cwnd", self.min_pipe_cwnd)] {
            if value == 0 {
                return Err(Problem::new(key, "at 0 nothing would be sent; write at least 1"));
            }
        }
        if self.probe_rtt_duration >= self.rtprop_filter_len {
            let message = format!(
                "{} is not below rtprop_filter_len, {}: all time would go to probing",
                self.probe_rtt_duration, self.rtprop_filter_len
            );
            return Err(Problem::new("probe_rtt_duration", message));
        }
        Ok(())
    }

    fn ecn(&self) -> Ecn {
        Ecn::Off
    }

    fn signal(&self, _: &Site) -> CongestionSignal {
        CongestionSignal::Drop
    }

    fn start(&self, start: Start) -> Bbr {
        // BBRInitPacingRate(), with the unloaded round trip as SRTT: the connection has been used before.
        let bits = start.window_bytes as f64 * 8.0 * self.high_gain;
        let rate = bits * 1e12 / start.rtt.ps().max(1) as f64;
        Bbr {
            config: self.clone(),
            random: Stream::new(start.seed, 0, "bbr"),
            state: State::Startup,
            btlbw: MaxFilter::default(),
            rtprop: None,
            rtprop_expired: false,
            delivered: 0,
            round: Round::default(),
            full_pipe: FullPipe::default(),
            pacing_rate: Rate::from_bps(rate as u64),
            cwnd: start.window_bytes,
            prior_cwnd: 0,
            recovering: false,
            packet_conservation: false,
            arrived: Arrived::default(),
            start,
        }
    }
}

/// The gains of PROBE_BW's phases. Each lasts at least a round trip or, with a gain below 1, at most one.
const PACING_GAIN_CYCLE: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];

/// Growth of the delivery rate in three round trips below which STARTUP ends.
const FULL_PIPE_GROWTH: f64 = 1.25;

/// A flow's model of its path, and the resulting rate and window.
#[derive(Clone, Debug)]
pub struct Bbr {
    config: Config,
    start: Start,
    random: Stream,
    state: State,
    btlbw: MaxFilter,
    /// The least round trip, and when it was seen.
    rtprop: Option<(Duration, Time)>,
    rtprop_expired: bool,
    /// Bytes that have arrived.
    delivered: u64,
    round: Round,
    full_pipe: FullPipe,
    /// In message bytes.
    pacing_rate: Rate,
    cwnd: u64,
    /// The window to restore after recovery and PROBE_RTT.
    prior_cwnd: u64,
    recovering: bool,
    packet_conservation: bool,
    arrived: Arrived,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    Startup,
    Drain,
    ProbeBw {
        cycle_index: usize,
        cycle_stamp: Time,
    },
    ProbeRtt {
        /// When PROBE_RTT may end, set once few enough bytes are in flight.
        done_stamp: Option<Time>,
        /// Whether a round trip has passed since.
        round_done: bool,
    },
}

/// Counts round trips. One has passed when a packet is acknowledged that was sent after the previous one had passed.
#[derive(Clone, Copy, Debug, Default)]
struct Round {
    count: u64,
    /// Whether this acknowledgement ends a round trip.
    start: bool,
    next_delivered: u64,
}

/// Detects that the delivery rate no longer grows.
#[derive(Clone, Copy, Debug, Default)]
struct FullPipe {
    filled: bool,
    full_bw: Rate,
    full_bw_count: u32,
}

/// The last acknowledgement, for a recovery that may begin with it.
#[derive(Clone, Copy, Debug, Default)]
struct Arrived {
    in_flight: u64,
    delivered: u64,
}

impl Control for Bbr {
    /// BBRUpdateOnACK().
    fn on_ack(&mut self, ack: &Ack) {
        if self.recovering && ack.phase == Phase::Open {
            (self.recovering, self.packet_conservation) = (false, false);
            self.restore_cwnd();
        }
        self.update_btlbw(ack);
        self.check_cycle_phase(ack);
        self.check_full_pipe(ack);
        self.check_drain(ack);
        self.update_rtprop(ack);
        self.check_probe_rtt(ack);
        self.set_pacing_rate();
        self.set_cwnd(ack);
        self.arrived = Arrived { in_flight: ack.in_flight_bytes, delivered: ack.delivered_bytes };
    }

    fn on_congestion(&mut self, congestion: &Congestion) {
        self.save_cwnd();
        self.recovering = true;
        match congestion.signal {
            Signal::Loss | Signal::Mark => {
                self.cwnd = self.arrived.in_flight + self.arrived.delivered.max(self.start.mss_bytes);
                self.packet_conservation = true;
                // It ends with a round trip that begins now.
                self.round.next_delivered = self.delivered;
            }
            Signal::Timeout { .. } => {
                self.cwnd = self.start.mss_bytes;
                self.packet_conservation = false;
            }
        }
    }

    fn window_bytes(&self) -> u64 {
        self.cwnd
    }

    fn pacing(&self) -> Option<Rate> {
        let wire = self.start.packet_bytes as f64 / self.start.mss_bytes as f64;
        Some(self.pacing_rate.mul_f64(wire).max(Rate::from_bps(1)))
    }

    fn holds_back(&self) -> bool {
        matches!(self.state, State::ProbeRtt { .. })
    }

    fn walk(&mut self, flow: FlowId, _: u64, walk: &mut Walk) {
        walk.random(&mut self.random);
        self.state.walk(walk);
        // Of rounds only the distance from the present one matters, and neither moves.
        walk.same(self.btlbw.0.len());
        self.btlbw.0.iter().for_each(|&(round, rate)| walk.same((self.round.count - round, rate)));
        walk.same((self.rtprop_expired, self.rtprop.is_some()));
        if let Some((rtprop, stamp)) = &mut self.rtprop {
            walk.same(*rtprop);
            // What follows from it when it is out of date repeats nothing.
            let mut until = *stamp + self.config.rtprop_filter_len;
            walk.time(&mut until);
            *stamp = until - self.config.rtprop_filter_len;
        }
        walk.same(self.round.start);
        [&mut self.delivered, &mut self.round.next_delivered].into_iter().for_each(|at| walk.sequence(flow, 1, at));
        walk.same((self.full_pipe.filled, self.full_pipe.full_bw, self.full_pipe.full_bw_count));
        walk.same((self.pacing_rate, self.cwnd, self.prior_cwnd));
        walk.same((self.recovering, self.packet_conservation));
        walk.same((self.arrived.in_flight, self.arrived.delivered));
    }
}

impl State {
    /// Goes over it.
    fn walk(&mut self, walk: &mut Walk) {
        match self {
            State::Startup => walk.same(0u8),
            State::Drain => walk.same(1u8),
            State::ProbeBw { cycle_index, cycle_stamp } => {
                walk.same((2u8, *cycle_index));
                walk.past(cycle_stamp);
            }
            State::ProbeRtt { done_stamp, round_done } => {
                walk.same((3u8, *round_done));
                walk.time_if_any(done_stamp);
            }
        }
    }
}

impl Bbr {
    fn pacing_gain(&self) -> f64 {
        match self.state {
            State::Startup => self.config.high_gain,
            State::Drain => 1.0 / self.config.high_gain,
            State::ProbeBw { cycle_index, .. } => PACING_GAIN_CYCLE[cycle_index],
            State::ProbeRtt { .. } => 1.0,
        }
    }

    fn cwnd_gain(&self) -> f64 {
        match self.state {
            State::Startup | State::Drain => self.config.high_gain,
            State::ProbeBw { .. } => self.config.cwnd_gain,
            State::ProbeRtt { .. } => 1.0,
        }
    }

    /// BBRInflight(): this many bandwidth-delay products plus three quanta, which are one packet each.
    fn inflight(&self, gain: f64) -> u64 {
        let Some((rtprop, _)) = self.rtprop else { return self.start.window_bytes };
        let bdp = self.btlbw.max().bytes_in(rtprop);
        (gain * bdp as f64) as u64 + 3 * self.start.mss_bytes
    }

    /// BBRUpdateBtlBw(), BBRUpdateRound().
    fn update_btlbw(&mut self, ack: &Ack) {
        self.round.start = false;
        let Some(sample) = ack.rate else { return };
        self.delivered = sample.delivered_bytes;
        if sample.delivered_before_bytes >= self.round.next_delivered {
            self.round = Round { count: self.round.count + 1, start: true, next_delivered: self.delivered };
            self.packet_conservation = false;
        }
        if !sample.limited || sample.rate >= self.btlbw.max() {
            self.btlbw.add(self.round.count, sample.rate, self.config.btlbw_filter_len);
        }
    }

    /// BBRCheckCyclePhase(), BBRIsNextCyclePhase().
    fn check_cycle_phase(&mut self, ack: &Ack) {
        let State::ProbeBw { cycle_index, cycle_stamp } = self.state else { return };
        let rtprop = self.rtprop.map_or(Duration::ZERO, |(rtprop, _)| rtprop);
        let is_full_length = ack.now - cycle_stamp > rtprop;
        let in_flight = ack.in_flight_before_bytes;
        let gain = PACING_GAIN_CYCLE[cycle_index];
        let is_over = if gain > 1.0 {
            is_full_length && (ack.lost_bytes > 0 || in_flight >= self.inflight(gain))
        } else {
            is_full_length || gain < 1.0 && in_flight <= self.inflight(1.0)
        };
        if is_over {
            self.enter_cycle_phase(cycle_index + 1, ack.now);
        }
    }

    /// BBRAdvanceCyclePhase().
    fn enter_cycle_phase(&mut self, index: usize, now: Time) {
        self.state = State::ProbeBw { cycle_index: index % PACING_GAIN_CYCLE.len(), cycle_stamp: now };
    }

    /// BBRCheckFullPipe().
    fn check_full_pipe(&mut self, ack: &Ack) {
        let limited = ack.rate.is_none_or(|sample| sample.limited);
        if self.full_pipe.filled || !self.round.start || limited {
            return;
        }
        let full = &mut self.full_pipe;
        if self.btlbw.max() >= full.full_bw.mul_f64(FULL_PIPE_GROWTH) {
            (full.full_bw, full.full_bw_count) = (self.btlbw.max(), 0);
            return;
        }
        full.full_bw_count += 1;
        full.filled = full.full_bw_count >= 3;
    }

    /// BBRCheckDrain().
    fn check_drain(&mut self, ack: &Ack) {
        if self.state == State::Startup && self.full_pipe.filled {
            self.state = State::Drain;
        }
        if self.state == State::Drain && ack.in_flight_bytes <= self.inflight(1.0) {
            self.enter_probe_bw(ack.now);
        }
    }

    /// BBREnterProbeBW(): in any phase but the one that compensates the phase before it.
    fn enter_probe_bw(&mut self, now: Time) {
        let before = PACING_GAIN_CYCLE.len() - 1 - self.random.below(7) as usize;
        self.enter_cycle_phase(before + 1, now);
    }

    /// BBRUpdateRTprop().
    fn update_rtprop(&mut self, ack: &Ack) {
        self.rtprop_expired = self.rtprop.is_some_and(|(_, stamp)| ack.now > stamp + self.config.rtprop_filter_len);
        let Some(rtt) = ack.rtt else { return };
        if self.rtprop_expired || self.rtprop.is_none_or(|(rtprop, _)| rtt <= rtprop) {
            self.rtprop = Some((rtt, ack.now));
        }
    }

    /// BBRCheckProbeRTT(), BBRHandleProbeRTT().
    fn check_probe_rtt(&mut self, ack: &Ack) {
        if !self.holds_back() && self.rtprop_expired {
            self.save_cwnd();
            self.state = State::ProbeRtt { done_stamp: None, round_done: false };
        }
        let State::ProbeRtt { done_stamp, round_done } = &mut self.state else { return };
        match done_stamp {
            None if ack.in_flight_bytes <= self.config.min_pipe_cwnd * self.start.mss_bytes => {
                *done_stamp = Some(ack.now + self.config.probe_rtt_duration);
                self.round.next_delivered = self.delivered;
            }
            None => {}
            Some(stamp) => {
                *round_done |= self.round.start;
                if *round_done && ack.now > *stamp {
                    self.rtprop = self.rtprop.map(|(rtprop, _)| (rtprop, ack.now));
                    self.restore_cwnd();
                    if self.full_pipe.filled {
                        self.enter_probe_bw(ack.now);
                    } else {
                        self.state = State::Startup;
                    }
                }
            }
        }
    }

    /// BBRSetPacingRate().
    fn set_pacing_rate(&mut self) {
        let rate = self.btlbw.max().mul_f64(self.pacing_gain());
        if self.full_pipe.filled || rate > self.pacing_rate {
            self.pacing_rate = rate;
        }
    }

    /// BBRSetCwnd(), BBRModulateCwndForRecovery(), BBRModulateCwndForProbeRTT().
    fn set_cwnd(&mut self, ack: &Ack) {
        let least = self.config.min_pipe_cwnd * self.start.mss_bytes;
        // A loss that begins a recovery resets the window.
        if ack.phase != Phase::Open {
            self.cwnd = self.cwnd.saturating_sub(ack.lost_bytes).max(self.start.mss_bytes);
        }
        if self.packet_conservation {
            self.cwnd = self.cwnd.max(ack.in_flight_bytes + ack.delivered_bytes);
        } else {
            let target = self.inflight(self.cwnd_gain());
            if self.full_pipe.filled {
                self.cwnd = (self.cwnd + ack.delivered_bytes).min(target);
            } else if self.cwnd < target || self.delivered < self.start.window_bytes {
                self.cwnd += ack.delivered_bytes;
            }
            self.cwnd = self.cwnd.max(least);
        }
        if self.holds_back() {
            self.cwnd = self.cwnd.min(least);
        }
    }

    /// BBRSaveCwnd().
    fn save_cwnd(&mut self) {
        let undisturbed = !self.recovering && !self.holds_back();
        self.prior_cwnd = if undisturbed { self.cwnd } else { self.prior_cwnd.max(self.cwnd) };
    }

    /// BBRRestoreCwnd().
    fn restore_cwnd(&mut self) {
        self.cwnd = self.cwnd.max(self.prior_cwnd);
    }
}

/// The greatest rate of a number of round trips: a list of rates that no later one exceeds, newest last.
#[derive(Clone, Debug, Default)]
struct MaxFilter(VecDeque<(u64, Rate)>);

impl MaxFilter {
    fn add(&mut self, round: u64, rate: Rate, rounds: u64) {
        while self.0.back().is_some_and(|last| last.1 <= rate) {
            self.0.pop_back();
        }
        self.0.push_back((round, rate));
        while self.0.front().is_some_and(|first| first.0 + rounds <= round) {
            self.0.pop_front();
        }
    }

    fn max(&self) -> Rate {
        self.0.front().map_or(Rate::ZERO, |first| first.1)
    }
}

#[cfg(test)]
mod tests;
