//! BBR, version 1 (draft-cardwell-iccrg-bbr-congestion-control-00).
//!
//! STARTUP doubles the rate a round trip until it grows no more, DRAIN takes back the queue that this has left,
//! PROBE_BW goes through a cycle of gains, a quarter above and a quarter below 1 and then 1 for six, and PROBE_RTT
//! sends almost nothing for a moment if no round trip has been as short as `RTprop` for long.
//!
//! Losses do not change the model. In the first round trip of recovery, only as much is sent as arrives (packet
//! conservation); then the previous window is restored.
//!
//! Absent: the policer detection and the allowance for aggregated acknowledgements of Linux, which the draft leaves
//! out.

use units::{Duration, Rate, Stream, Time};

use super::super::control::{Ack, Congestion, Phase, Signal, Start};
use super::{Config, FULL_PIPE_GROWTH, MaxFilter, Round, Times};

/// The gains of PROBE_BW's phases. Each lasts at least a round trip or, with a gain below 1, at most one.
const PACING_GAIN_CYCLE: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];

/// A flow's model of its path, and the resulting rate and window.
#[derive(Clone, Debug, node::State)]
pub struct V1 {
    #[state(skip("settings"))]
    config: Config,
    #[state(skip("settings"))]
    times: Times,
    pub(super) start: Start,
    random: Stream,
    state: State,
    #[state(same(&self.btlbw.0.iter().map(|&(round, rate)| (self.round.count - round, rate)).collect::<Vec<_>>()[..]))]
    btlbw: MaxFilter<Rate>,
    /// The least round trip, and when it was seen.
    #[state(each((_, later(self.times.rtprop_filter_len, time))))]
    rtprop: Option<(Duration, Time)>,
    rtprop_expired: bool,
    /// Bytes that have arrived.
    #[state(sequence(1))]
    delivered: u64,
    round: Round,
    full_pipe: FullPipe,
    /// In message bytes.
    pub(super) pacing_rate: Rate,
    pub(super) cwnd: u64,
    /// The window to restore after recovery and PROBE_RTT.
    prior_cwnd: u64,
    recovering: bool,
    packet_conservation: bool,
    arrived: Arrived,
}

#[derive(Clone, Copy, Debug, PartialEq, node::State)]
enum State {
    Startup,
    Drain,
    ProbeBw {
        cycle_index: usize,
        #[state(past)]
        cycle_stamp: Time,
    },
    ProbeRtt {
        /// When PROBE_RTT may end, set once few enough bytes are in flight.
        done_stamp: Option<Time>,
        /// Whether a round trip has passed since.
        round_done: bool,
    },
}

/// Detects that the delivery rate no longer grows.
#[derive(Clone, Copy, Debug, Default, node::State)]
struct FullPipe {
    filled: bool,
    full_bw: Rate,
    full_bw_count: u32,
}

/// The last acknowledgement, for a recovery that may begin with it.
#[derive(Clone, Copy, Debug, Default, node::State)]
struct Arrived {
    in_flight: u64,
    delivered: u64,
}

impl V1 {
    /// A flow in STARTUP.
    pub(super) fn new(config: Config, times: Times, start: Start) -> V1 {
        // With the unloaded round trip as SRTT: the connection has been used before.
        let pacing_rate = first_rate(&config, &start, start.rtt);
        V1 {
            config,
            times,
            random: Stream::new(start.seed, 0, "bbr"),
            state: State::Startup,
            btlbw: MaxFilter::default(),
            rtprop: None,
            rtprop_expired: false,
            delivered: 0,
            round: Round::default(),
            full_pipe: FullPipe::default(),
            pacing_rate,
            cwnd: start.window_bytes,
            prior_cwnd: 0,
            recovering: false,
            packet_conservation: false,
            arrived: Arrived::default(),
            start,
        }
    }

    /// The handshake's round trip is the first.
    pub(super) fn on_opened(&mut self, now: Time, rtt: Duration) {
        self.rtprop = Some((rtt, now));
        self.pacing_rate = first_rate(&self.config, &self.start, rtt);
    }

    /// BBRUpdateOnACK().
    pub(super) fn on_ack(&mut self, ack: &Ack) {
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

    pub(super) fn on_congestion(&mut self, congestion: &Congestion) {
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

    pub(super) fn is_probing_rtt(&self) -> bool {
        matches!(self.state, State::ProbeRtt { .. })
    }
}

impl V1 {
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
        self.rtprop_expired = self.rtprop.is_some_and(|(_, stamp)| ack.now > stamp + self.times.rtprop_filter_len);
        let Some(rtt) = ack.rtt else { return };
        if self.rtprop_expired || self.rtprop.is_none_or(|(rtprop, _)| rtt <= rtprop) {
            self.rtprop = Some((rtt, ack.now));
        }
    }

    /// BBRCheckProbeRTT(), BBRHandleProbeRTT().
    fn check_probe_rtt(&mut self, ack: &Ack) {
        if !self.is_probing_rtt() && self.rtprop_expired {
            self.save_cwnd();
            self.state = State::ProbeRtt { done_stamp: None, round_done: false };
        }
        let State::ProbeRtt { done_stamp, round_done } = &mut self.state else { return };
        match done_stamp {
            None if ack.in_flight_bytes <= self.config.min_pipe_cwnd * self.start.mss_bytes => {
                *done_stamp = Some(ack.now + self.times.probe_rtt_duration);
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
        let rate = self.btlbw.max().mul_f64(self.pacing_gain() * (1.0 - self.config.pacing_margin()));
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
        if self.is_probing_rtt() {
            self.cwnd = self.cwnd.min(least);
        }
    }

    /// BBRSaveCwnd().
    fn save_cwnd(&mut self) {
        let undisturbed = !self.recovering && !self.is_probing_rtt();
        self.prior_cwnd = if undisturbed { self.cwnd } else { self.prior_cwnd.max(self.cwnd) };
    }

    /// BBRRestoreCwnd().
    fn restore_cwnd(&mut self) {
        self.cwnd = self.cwnd.max(self.prior_cwnd);
    }
}

/// BBRInitPacingRate(): the initial window in a round trip, times the gain of STARTUP.
fn first_rate(config: &Config, start: &Start, srtt: Duration) -> Rate {
    let bits = start.window_bytes as f64 * 8.0 * config.high_gain;
    Rate::from_bps((bits * 1e12 / srtt.ps().max(1) as f64) as u64)
}

#[cfg(test)]
mod tests;
