//! BBR, version 3 (draft-ietf-ccwg-bbr): version 1's model, with bounds that losses set.
//!
//! The long-term bound (`inflight_longterm`) is how much may be in flight where probing for bandwidth lost more than
//! `loss_thresh` of a round trip's data; the short-term bounds follow what arrives while there are losses, until the
//! next probe. PROBE_BW is a cycle of DOWN (0.9), CRUISE (1), REFILL (1) and UP (1.25), in which UP goes on while the
//! rate grows. It probes again after as many round trips as Reno would need to grow by what is in flight, 63 at most,
//! or after two to three seconds. PROBE_RTT comes twice as often as in version 1 and keeps half a product in flight.
//!
//! Absent: what undoes a spurious recovery, as nothing here detects one; restart from idle; precise offload budgets, as
//! hosts have no segmentation offload: a quantum is a packet.

use units::{Duration, Rate, Stream, Time};

use super::super::control::{Ack, Congestion, Lost, Phase, RateSample, Signal, Start};
use super::{Bounds, MaxFilter, Round, Times};

/// StartupPacingGain, 4 ln 2.
const STARTUP_PACING_GAIN: f64 = 4.0 * std::f64::consts::LN_2;
/// Rounds that the filter of acknowledged excess covers (ExtraAckedFilterLen).
const EXTRA_ACKED_ROUNDS: u64 = 10;
/// Ranges that must have been lost in a round trip for STARTUP to end by losses (BBRStartupFullLossCnt).
const STARTUP_LOST_RANGES: u32 = 6;

#[derive(Clone, Copy, Debug, PartialEq, node::Saved)]
enum State {
    Startup,
    Drain { start_round: u64 },
    Down,
    Cruise,
    Refill,
    Up,
    ProbeRtt { done_stamp: Option<Time>, round_done: bool },
}

/// What acknowledgements tell of probing for bandwidth.
#[derive(Clone, Copy, Debug, PartialEq, node::Saved)]
enum AckPhase {
    Init,
    Refilling,
    ProbeStarting,
    ProbeFeedback,
    ProbeStopping,
}

/// Detects that the delivery rate no longer grows, in STARTUP and in UP.
#[derive(Clone, Copy, Debug, Default, node::Saved)]
struct FullBw {
    /// Since it last began to look.
    now: bool,
    /// Ever.
    reached: bool,
    bw: Rate,
    count: u32,
}

/// The cycle of PROBE_BW.
#[derive(Clone, Copy, Debug, node::Saved)]
struct Cycle {
    ack_phase: AckPhase,
    stamp: Time,
    wait: Duration,
    rounds_since_up: u64,
    /// Whether losses are of data sent while probing.
    is_sample: bool,
    too_high: bool,
    precautionary: bool,
    up_rounds: u32,
    up_acked: u64,
    up_acked_per_inc: u64,
}

/// What the last round trip delivered and lost.
#[derive(Clone, Copy, Debug, Default, node::Saved)]
struct Latest {
    bw: Rate,
    inflight: u64,
    round_delivered: u64,
    round_start: bool,
    lost: bool,
    /// Ranges lost, and where the last one ends.
    ranges: u32,
    range_end: u64,
}

/// A flow's model of its path, and the resulting rate and window. Names are the draft's.
#[derive(Clone, Debug, node::State)]
#[state(refuse("BBR of version 3 draws when it probes next"))]
pub struct V3 {
    bounds: Bounds,
    times: Times,
    margin: f64,
    min_pipe: u64,
    pub(super) start: Start,
    random: Stream,
    state: State,
    max_bw: MaxFilter<Rate>,
    cycle_count: u64,
    bw_shortterm: Option<Rate>,
    inflight_shortterm: u64,
    inflight_longterm: u64,
    bw: Rate,
    min_rtt: Option<(Duration, Time)>,
    probe_rtt_min: Option<(Duration, Time)>,
    probe_rtt_expired: bool,
    delivered: u64,
    round: Round,
    full: FullBw,
    cycle: Cycle,
    latest: Latest,
    extra_acked: MaxFilter<u64>,
    extra_since: Time,
    extra_delivered: u64,
    pub(super) pacing_rate: Rate,
    pub(super) cwnd: u64,
    prior_cwnd: u64,
    recovering: bool,
    /// Round trip in which the recovery began.
    recovery_round: u64,
}

impl V3 {
    pub(super) fn new(bounds: Bounds, times: Times, margin: f64, min_pipe_cwnd: u64, start: Start) -> V3 {
        let nominal = start.window_bytes as f64 * 8e12 / start.rtt.ps().max(1) as f64;
        V3 {
            bounds,
            times,
            margin,
            min_pipe: min_pipe_cwnd * start.mss_bytes,
            random: Stream::new(start.seed, 0, "bbr"),
            state: State::Startup,
            max_bw: MaxFilter::default(),
            cycle_count: 0,
            bw_shortterm: None,
            inflight_shortterm: u64::MAX,
            inflight_longterm: u64::MAX,
            bw: Rate::ZERO,
            min_rtt: None,
            probe_rtt_min: None,
            probe_rtt_expired: false,
            delivered: 0,
            round: Round::default(),
            full: FullBw::default(),
            cycle: Cycle {
                ack_phase: AckPhase::Init,
                stamp: start.now,
                wait: Duration::ZERO,
                rounds_since_up: 0,
                is_sample: false,
                too_high: false,
                precautionary: false,
                up_rounds: 0,
                up_acked: 0,
                up_acked_per_inc: u64::MAX,
            },
            latest: Latest::default(),
            extra_acked: MaxFilter::default(),
            extra_since: start.now,
            extra_delivered: 0,
            pacing_rate: Rate::from_bps((nominal * STARTUP_PACING_GAIN) as u64),
            cwnd: start.window_bytes,
            prior_cwnd: 0,
            recovering: false,
            recovery_round: 0,
            start,
        }
    }

    pub(super) fn is_probing_rtt(&self) -> bool {
        matches!(self.state, State::ProbeRtt { .. })
    }

    /// UpdateOnACK().
    pub(super) fn on_ack(&mut self, ack: &Ack) {
        if self.recovering && ack.phase == Phase::Open {
            self.recovering = false;
            self.cwnd = self.cwnd.max(self.prior_cwnd);
        }
        (self.round.start, self.latest.round_start) = (false, false);
        if let Some(sample) = &ack.rate {
            self.update_latest(sample);
            self.update_max_bw(sample);
            if self.latest.round_start {
                self.adapt_lower_bounds();
            }
            self.update_ack_aggregation(ack);
            self.check_full_bw(sample);
            self.check_startup_done(ack, sample);
            self.check_drain_done(ack);
            self.update_cycle(ack, sample);
        }
        self.update_min_rtt(ack);
        self.check_probe_rtt(ack);
        if let Some(sample) = ack.rate.filter(|_| self.latest.round_start) {
            (self.latest.bw, self.latest.inflight) = (sample.rate, delivered(&sample));
        }
        self.bw = self.bw_shortterm.map_or(self.max_bw.max(), |bound| bound.min(self.max_bw.max()));
        self.set_pacing_rate();
        self.set_cwnd(ack);
    }

    /// HandleLostPacket(), of each packet that is newly lost, before the acknowledgement that tells.
    pub(super) fn on_lost(&mut self, lost: &Lost) {
        self.note_loss();
        if lost.first != self.latest.range_end {
            self.latest.ranges += 1;
        }
        self.latest.range_end = lost.first + lost.bytes;
        let thresh = self.bounds.loss_thresh;
        if !self.cycle.is_sample || lost.since_bytes as f64 <= lost.in_flight_bytes as f64 * thresh {
            return;
        }
        // InflightAtLoss(): at which prefix of the packet the losses crossed the threshold.
        let before = (lost.in_flight_bytes - lost.bytes) as f64;
        let prefix = (thresh * before - (lost.since_bytes - lost.bytes) as f64) / (1.0 - thresh);
        self.handle_inflight_too_high((before + prefix.max(0.0)) as u64, lost.limited);
    }

    pub(super) fn on_congestion(&mut self, congestion: &Congestion) {
        self.save_cwnd();
        self.note_loss();
        (self.recovering, self.recovery_round) = (true, self.round.count);
        if let Signal::Timeout { .. } = congestion.signal {
            self.cwnd = self.start.mss_bytes;
        }
    }

    fn note_loss(&mut self) {
        if !self.latest.lost {
            self.latest.round_delivered = self.delivered;
        }
        self.latest.lost = true;
    }

    fn pacing_gain(&self) -> f64 {
        match self.state {
            State::Startup => STARTUP_PACING_GAIN,
            State::Drain { .. } => 0.5,
            State::Down => 0.9,
            State::Cruise | State::Refill | State::ProbeRtt { .. } => 1.0,
            State::Up => 1.25,
        }
    }

    fn cwnd_gain(&self) -> f64 {
        match self.state {
            State::Up => 2.25,
            State::ProbeRtt { .. } => 0.5,
            _ => 2.0,
        }
    }

    /// BDPMultiple().
    fn bdp(&self, gain: f64) -> u64 {
        let Some((min_rtt, _)) = self.min_rtt else { return self.start.window_bytes };
        (gain * self.bw.bytes_in(min_rtt) as f64) as u64
    }

    /// QuantizationBudget(): three quanta of a packet are less than the least window.
    fn quantized(&self, inflight: u64) -> u64 {
        let more = if self.state == State::Up { 2 * self.start.mss_bytes } else { 0 };
        inflight.max(self.min_pipe) + more
    }

    fn target_inflight(&self) -> u64 {
        self.bdp(1.0).min(self.cwnd)
    }

    fn inflight_with_headroom(&self) -> u64 {
        if self.inflight_longterm == u64::MAX {
            return u64::MAX;
        }
        let headroom = (self.bounds.headroom * self.inflight_longterm as f64) as u64;
        self.inflight_longterm.saturating_sub(headroom.max(self.start.mss_bytes)).max(self.min_pipe)
    }

    fn probes_bw(&self) -> bool {
        matches!(self.state, State::Startup | State::Refill | State::Up)
    }

    fn is_in_probe_bw(&self) -> bool {
        matches!(self.state, State::Down | State::Cruise | State::Refill | State::Up)
    }

    fn start_round(&mut self) {
        self.round.next_delivered = self.delivered;
    }

    /// UpdateLatestDeliverySignals().
    fn update_latest(&mut self, sample: &RateSample) {
        let latest = &mut self.latest;
        latest.bw = latest.bw.max(sample.rate);
        latest.inflight = latest.inflight.max(delivered(sample));
        if sample.delivered_before_bytes >= latest.round_delivered {
            (latest.round_delivered, latest.round_start) = (sample.delivered_bytes, true);
        }
    }

    /// UpdateMaxBw(), UpdateRound().
    fn update_max_bw(&mut self, sample: &RateSample) {
        self.delivered = sample.delivered_bytes;
        if sample.delivered_before_bytes >= self.round.next_delivered {
            self.start_round();
            (self.round.start, self.round.count) = (true, self.round.count + 1);
            self.cycle.rounds_since_up += 1;
        }
        if sample.rate >= self.max_bw.max() || !sample.limited {
            self.max_bw.add(self.cycle_count, sample.rate, 2);
        }
    }

    /// AdaptLowerBoundsFromCongestion(), once a round trip.
    fn adapt_lower_bounds(&mut self) {
        if !self.probes_bw() && self.latest.lost {
            let beta = self.bounds.beta;
            let bw = self.bw_shortterm.unwrap_or(self.max_bw.max()).mul_f64(beta);
            let inflight = if self.inflight_shortterm == u64::MAX { self.cwnd } else { self.inflight_shortterm };
            self.bw_shortterm = Some(bw.max(self.latest.bw));
            self.inflight_shortterm = self.latest.inflight.max((beta * inflight as f64) as u64);
        }
    }

    fn reset_short_term(&mut self) {
        (self.bw_shortterm, self.inflight_shortterm) = (None, u64::MAX);
    }

    fn update_ack_aggregation(&mut self, ack: &Ack) {
        let mut expected = self.bw.bytes_in(ack.now - self.extra_since);
        if self.extra_delivered <= expected {
            (self.extra_delivered, self.extra_since, expected) = (0, ack.now, 0);
        }
        self.extra_delivered += ack.delivered_bytes;
        let extra = (self.extra_delivered - expected).min(self.cwnd);
        let rounds = if self.full.reached { EXTRA_ACKED_ROUNDS } else { 1 };
        self.extra_acked.add(self.round.count, extra, rounds);
    }

    /// CheckFullBWReached().
    fn check_full_bw(&mut self, sample: &RateSample) {
        if self.full.now || !self.round.start || sample.limited {
            return;
        }
        if sample.rate >= self.full.bw.mul_f64(super::FULL_PIPE_GROWTH) {
            self.reset_full_bw(sample.rate);
            return;
        }
        self.full.count += 1;
        self.full.now = self.full.count >= 3;
        self.full.reached |= self.full.now;
    }

    fn reset_full_bw(&mut self, bw: Rate) {
        self.full = FullBw { bw, reached: self.full.reached, ..FullBw::default() };
    }

    /// CheckStartupDone(), CheckStartupHighLoss().
    fn check_startup_done(&mut self, ack: &Ack, sample: &RateSample) {
        if self.latest.round_start {
            let whole_round = ack.phase == Phase::Recovery && self.round.count > self.recovery_round;
            let lossy = self.latest.ranges >= STARTUP_LOST_RANGES && self.is_too_high(sample);
            if self.state == State::Startup && whole_round && lossy {
                self.full.reached = true;
                self.inflight_longterm = self.bdp(1.0).max(self.latest.inflight);
            }
            (self.latest.lost, self.latest.ranges) = (false, 0);
        }
        if self.state == State::Startup && self.full.reached {
            self.state = State::Drain { start_round: self.round.count };
        }
    }

    fn check_drain_done(&mut self, ack: &Ack) {
        let State::Drain { start_round } = self.state else { return };
        if ack.in_flight_bytes <= self.quantized(self.bdp(1.0)) || self.round.count > start_round + 3 {
            self.start_down(ack.now);
        }
    }

    fn start_down(&mut self, now: Time) {
        (self.latest.lost, self.latest.bw, self.latest.inflight) = (false, Rate::ZERO, 0);
        self.cycle.up_acked_per_inc = u64::MAX;
        self.cycle.rounds_since_up = self.random.below(2);
        let second = Duration::from_ms(1_000);
        self.cycle.wait = second * 2 + Duration::from_ps(self.random.below(second.ps()));
        (self.cycle.stamp, self.cycle.ack_phase) = (now, AckPhase::ProbeStopping);
        self.start_round();
        self.state = State::Down;
    }

    fn start_refill(&mut self) {
        self.reset_short_term();
        (self.cycle.up_rounds, self.cycle.up_acked, self.cycle.precautionary) = (0, 0, false);
        self.cycle.ack_phase = AckPhase::Refilling;
        self.start_round();
        self.state = State::Refill;
    }

    fn start_up(&mut self, bw: Rate) {
        self.cycle.ack_phase = AckPhase::ProbeStarting;
        self.start_round();
        self.reset_full_bw(bw);
        self.state = State::Up;
        self.raise_slope();
    }

    /// RaiseInflightLongtermSlope().
    fn raise_slope(&mut self) {
        let growth = 1u64 << self.cycle.up_rounds;
        self.cycle.up_rounds = (self.cycle.up_rounds + 1).min(30);
        self.cycle.up_acked_per_inc = (self.cwnd / growth).max(self.start.mss_bytes);
    }

    /// IsInflightTooHigh().
    fn is_too_high(&self, sample: &RateSample) -> bool {
        sample.lost_bytes as f64 > sample.in_flight_bytes as f64 * self.bounds.loss_thresh
    }

    fn handle_inflight_too_high(&mut self, in_flight: u64, limited: bool) {
        (self.cycle.too_high, self.cycle.is_sample) = (true, false);
        if !limited {
            let least = (self.target_inflight() as f64 * self.bounds.beta) as u64;
            self.inflight_longterm = in_flight.max(least);
        }
        if self.state == State::Up {
            self.start_down(self.cycle.stamp);
        }
    }

    /// UpdateProbeBWCyclePhase().
    fn update_cycle(&mut self, ack: &Ack, sample: &RateSample) {
        if !self.full.reached || self.adapt_long_term(ack, sample) {
            return;
        }
        match self.state {
            State::Down | State::Cruise if self.is_time_to_probe(ack.now) => self.start_refill(),
            State::Down => {
                let drained = ack.in_flight_bytes <= self.quantized(self.bdp(1.0));
                if drained && ack.in_flight_bytes <= self.inflight_with_headroom() {
                    self.state = State::Cruise;
                }
            }
            State::Refill if self.round.start => {
                self.cycle.is_sample = true;
                self.start_up(sample.rate);
            }
            State::Up => {
                if self.is_time_to_go_down(ack, sample) {
                    self.cycle.too_high = false;
                    self.start_down(ack.now);
                }
            }
            State::Startup | State::Drain { .. } | State::Cruise | State::Refill | State::ProbeRtt { .. } => {}
        }
    }

    fn is_time_to_probe(&self, now: Time) -> bool {
        let reno_rounds = (self.target_inflight() / self.start.mss_bytes).min(63);
        now > self.cycle.stamp + self.cycle.wait || self.cycle.rounds_since_up >= reno_rounds
    }

    fn is_time_to_go_down(&mut self, ack: &Ack, sample: &RateSample) -> bool {
        if self.cycle.too_high && ack.in_flight_bytes >= self.inflight_longterm {
            self.cycle.precautionary = true;
            return true;
        }
        if ack.limited && self.cwnd >= self.inflight_longterm {
            self.reset_full_bw(sample.rate);
            return false;
        }
        self.full.now
    }

    /// AdaptLongTermModel(): whether it has decided a change of state.
    fn adapt_long_term(&mut self, ack: &Ack, sample: &RateSample) -> bool {
        if self.cycle.ack_phase == AckPhase::ProbeStarting && self.round.start {
            self.cycle.ack_phase = AckPhase::ProbeFeedback;
        }
        if self.cycle.ack_phase == AckPhase::ProbeStopping && self.round.start {
            (self.cycle.is_sample, self.cycle.ack_phase) = (false, AckPhase::Init);
            self.cycle_count += u64::from(self.is_in_probe_bw() && !sample.limited);
            if self.is_in_probe_bw() && self.cycle.precautionary && !self.cycle.too_high {
                self.start_refill();
                return true;
            }
        }
        if self.inflight_longterm != u64::MAX && !self.is_too_high(sample) {
            self.inflight_longterm = self.inflight_longterm.max(sample.in_flight_bytes);
            if self.state == State::Up && ack.limited && self.cwnd >= self.inflight_longterm {
                self.grow_long_term(ack.delivered_bytes);
            }
        }
        false
    }

    /// ProbeInflightLongtermUpward().
    fn grow_long_term(&mut self, acked: u64) {
        self.cycle.up_acked += acked;
        let delta = self.cycle.up_acked / self.cycle.up_acked_per_inc;
        self.cycle.up_acked -= delta * self.cycle.up_acked_per_inc;
        self.inflight_longterm += delta * self.start.mss_bytes;
        if self.round.start {
            self.raise_slope();
        }
    }

    fn update_min_rtt(&mut self, ack: &Ack) {
        let since = |of: Option<(Duration, Time)>| of.map_or(self.start.now, |(_, stamp)| stamp);
        self.probe_rtt_expired = ack.now > since(self.probe_rtt_min) + self.times.probe_rtt_interval;
        if let Some(rtt) = ack.rtt
            && (self.probe_rtt_expired || self.probe_rtt_min.is_none_or(|(least, _)| rtt < least))
        {
            self.probe_rtt_min = Some((rtt, ack.now));
        }
        let expired = ack.now > since(self.min_rtt) + self.times.rtprop_filter_len;
        if let Some(least) = self.probe_rtt_min
            && (expired || self.min_rtt.is_none_or(|(rtt, _)| least.0 < rtt))
        {
            self.min_rtt = Some(least);
        }
    }

    /// CheckProbeRTT(), HandleProbeRTT().
    fn check_probe_rtt(&mut self, ack: &Ack) {
        if !self.is_probing_rtt() && self.probe_rtt_expired {
            self.save_cwnd();
            self.state = State::ProbeRtt { done_stamp: None, round_done: false };
            self.cycle.ack_phase = AckPhase::ProbeStopping;
            self.start_round();
        }
        let window = self.probe_rtt_cwnd();
        let State::ProbeRtt { done_stamp, round_done } = &mut self.state else { return };
        match done_stamp {
            None if ack.in_flight_bytes <= window => {
                *done_stamp = Some(ack.now + self.times.probe_rtt_duration);
                self.start_round();
            }
            None => {}
            Some(stamp) => {
                *round_done |= self.round.start;
                if *round_done && ack.now > *stamp {
                    self.probe_rtt_min = self.probe_rtt_min.map(|(rtt, _)| (rtt, ack.now));
                    self.cwnd = self.cwnd.max(self.prior_cwnd);
                    self.exit_probe_rtt(ack.now);
                }
            }
        }
    }

    fn exit_probe_rtt(&mut self, now: Time) {
        self.reset_short_term();
        if self.full.reached {
            self.start_down(now);
            self.state = State::Cruise;
        } else {
            self.state = State::Startup;
        }
    }

    fn probe_rtt_cwnd(&self) -> u64 {
        self.bdp(0.5).max(self.min_pipe)
    }

    fn set_pacing_rate(&mut self) {
        let rate = self.bw.mul_f64(self.pacing_gain() * (1.0 - self.margin));
        if self.full.reached || rate > self.pacing_rate {
            self.pacing_rate = rate;
        }
    }

    /// SetCwnd(), BoundCwndForProbeRTT(), BoundCwndForModel().
    fn set_cwnd(&mut self, ack: &Ack) {
        let most = self.quantized(self.bdp(self.cwnd_gain()) + self.extra_acked.max());
        if self.full.reached {
            self.cwnd = (self.cwnd + ack.delivered_bytes).min(most);
        } else if self.cwnd < most || self.delivered < self.start.window_bytes {
            self.cwnd += ack.delivered_bytes;
        }
        self.cwnd = self.cwnd.max(self.min_pipe);
        if self.is_probing_rtt() {
            self.cwnd = self.cwnd.min(self.probe_rtt_cwnd());
        }
        let cap = match self.state {
            State::Down | State::Refill | State::Up => self.inflight_longterm,
            State::ProbeRtt { .. } | State::Cruise => self.inflight_with_headroom(),
            State::Startup | State::Drain { .. } => u64::MAX,
        };
        self.cwnd = self.cwnd.min(cap.min(self.inflight_shortterm).max(self.min_pipe));
    }

    fn save_cwnd(&mut self) {
        let undisturbed = !self.recovering && !self.is_probing_rtt();
        self.prior_cwnd = if undisturbed { self.cwnd } else { self.prior_cwnd.max(self.cwnd) };
    }
}

/// Bytes delivered in the time that a sample covers.
fn delivered(sample: &RateSample) -> u64 {
    sample.delivered_bytes - sample.delivered_before_bytes
}

#[cfg(test)]
mod tests;
