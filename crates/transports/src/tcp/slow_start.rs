//! When slow start ends: at a loss or mark alone, or before, where round trips tell that the path is full.
//!
//! HyStart is that of Linux's CUBIC (Ha and Rhee, "Taming the elephants", 2008; `tcp_cubic.c`): it looks once in a
//! round for a train of acknowledgements as long as half the least round trip, and for round trips that have grown.
//! HyStart++ (RFC 9406) knows the second signal only, and first slows down for some rounds to see whether it persists.
//!
//! Decisions. Both learn only from acknowledgements that may open the window: a flow that its host's link limits
//! probes nothing. Linux adds to the length of a train what segmentation offload may delay, four of its largest
//! bursts at the pacing rate of slow start, which is twice the window in a round trip. A burst here is one segment, as
//! hosts have no such offload.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Duration, Problem, Time};

use super::control::{Ack, Phase};

/// What ends slow start, beside a loss or mark.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema, node::Saved)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum SlowStart {
    /// Nothing (RFC 5681 section 3.1).
    #[default]
    Standard,
    /// HyStart, as in Linux's CUBIC: trains of acknowledgements and growing round trips.
    Hystart(HyStart),
    /// HyStart++ (RFC 9406): growing round trips, in the first slow start of a flow.
    HystartPlusPlus(HyStartPlusPlus),
}

/// HyStart. Values and their names are those of Linux's `tcp_cubic`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, node::Saved)]
#[serde(deny_unknown_fields, default)]
pub struct HyStart {
    /// Whether a train of acknowledgements ends slow start once it is as long as half the least round trip. Default:
    /// true.
    pub ack_train: bool,
    /// Whether round trips that have grown end it. Default: true.
    pub delay: bool,
    /// Window in segments below which neither does. Default: 16.
    pub low_window: u64,
    /// Longest time between two acknowledgements of a train. Default: 2ms.
    pub ack_delta: Duration,
    /// Round trips of a round from which its least one counts. Default: 8.
    pub min_samples: u32,
    /// Growth that counts: an eighth of the least round trip, but no less than this. Default: 4ms.
    pub delay_min: Duration,
    /// But no more than this. Default: 16ms.
    pub delay_max: Duration,
}

impl Default for HyStart {
    fn default() -> HyStart {
        HyStart {
            ack_train: true,
            delay: true,
            low_window: 16,
            ack_delta: Duration::from_ms(2),
            min_samples: 8,
            delay_min: Duration::from_ms(4),
            delay_max: Duration::from_ms(16),
        }
    }
}

/// HyStart++. Values and their names are those of RFC 9406 section 4.3.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, node::Saved)]
#[serde(deny_unknown_fields, default)]
pub struct HyStartPlusPlus {
    /// MIN_RTT_THRESH: growth that counts is an eighth of the last round's least round trip, but no less than this.
    /// Default: 4ms.
    pub min_rtt_thresh: Duration,
    /// MAX_RTT_THRESH: but no more than this. Default: 16ms.
    pub max_rtt_thresh: Duration,
    /// N_RTT_SAMPLE: round trips of a round from which its least one counts. Default: 8.
    pub n_rtt_sample: u32,
    /// CSS_GROWTH_DIVISOR: how many times slower the window grows while it is unsure, at least 1. Default: 4.
    pub css_growth_divisor: u64,
    /// CSS_ROUNDS: rounds in which it is unsure, at least 1. Default: 5.
    pub css_rounds: u32,
}

impl Default for HyStartPlusPlus {
    fn default() -> HyStartPlusPlus {
        HyStartPlusPlus {
            min_rtt_thresh: Duration::from_ms(4),
            max_rtt_thresh: Duration::from_ms(16),
            n_rtt_sample: 8,
            css_growth_divisor: 4,
            css_rounds: 5,
        }
    }
}

impl SlowStart {
    /// Linux's, CUBIC's default.
    pub fn hystart() -> SlowStart {
        SlowStart::Hystart(HyStart::default())
    }

    /// Checks what types can't express. Keys of errors are relative to the table that has the key `slow_start`.
    pub fn check(&self) -> Result<(), Problem> {
        let order = |least: Duration, key: &str, most: Duration, above: &str| {
            let message = format!("{least} is above {above}, {most}");
            if least > most { Err(Problem::new(key, message)) } else { Ok(()) }
        };
        match self {
            SlowStart::Standard => Ok(()),
            SlowStart::Hystart(hystart) => {
                order(hystart.delay_min, "slow_start.hystart.delay_min", hystart.delay_max, "delay_max")
            }
            SlowStart::HystartPlusPlus(plus) => {
                for (key, value) in
                    [("css_growth_divisor", plus.css_growth_divisor), ("css_rounds", plus.css_rounds.into())]
                {
                    if value == 0 {
                        let key = format!("slow_start.hystart_plus_plus.{key}");
                        return Err(Problem::new(&key, "0 is not possible; write at least 1"));
                    }
                }
                let key = "slow_start.hystart_plus_plus.min_rtt_thresh";
                order(plus.min_rtt_thresh, key, plus.max_rtt_thresh, "max_rtt_thresh")
            }
        }
    }

    /// The state that watches over the slow start of one flow.
    pub(crate) fn watch(&self) -> Watch {
        match self {
            SlowStart::Standard => Watch::Standard,
            SlowStart::Hystart(config) => {
                let of = Trains { config: config.clone(), least: Duration::MAX, last_ack: Time::ZERO, found: false };
                Watch::Trains(Box::new((of, Round::default())))
            }
            SlowStart::HystartPlusPlus(config) => {
                let of = Growth { config: config.clone(), last: Duration::MAX, unsure: None, over: false };
                Watch::Growth(Box::new((of, Round::default())))
            }
        }
    }
}

/// How much slow start opens the window: by what was acknowledged, up to two segments, so that it doubles in each round
/// trip with delayed acknowledgements too. After a timeout it is one segment, since one acknowledgement may cover much
/// that arrived long ago (RFC 3465 section 2.3).
#[inline]
fn growth(ack: &Ack, mss: u64) -> u64 {
    let segments = if ack.phase == Phase::Loss { 1 } else { 2 };
    ack.acked_bytes.min(segments * mss)
}

/// The reaction of slow start to an acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// The window opens by so many bytes.
    Grow(u64),
    /// Slow start is over: the threshold is the window as it is.
    Leave,
}

/// Watches over a flow's slow start.
#[derive(Clone, Debug, node::State)]
pub(crate) enum Watch {
    Standard,
    Trains(#[state(when(!of_0.0.found, _))] Box<(Trains, Round)>),
    Growth(#[state(when(!of_0.0.over, _))] Box<(Growth, Round)>),
}

/// A round: until what was sent when it began is acknowledged.
#[derive(Clone, Copy, Debug, node::State)]
pub(crate) struct Round {
    #[state(passed(1))]
    end: u64,
    #[state(past)]
    start: Time,
    /// Its least round trip, and how many were measured.
    least: Duration,
    samples: u32,
}

impl Default for Round {
    fn default() -> Round {
        Round { end: 0, start: Time::ZERO, least: Duration::MAX, samples: 0 }
    }
}

impl Round {
    /// Begins a new one where this one has ended, and returns the old one.
    fn turn(&mut self, ack: &Ack) -> Option<Round> {
        let new = Round { end: ack.next, start: ack.now, ..Round::default() };
        (ack.una > self.end).then(|| std::mem::replace(self, new))
    }

    fn sample(&mut self, rtt: Duration) {
        self.least = self.least.min(rtt);
        self.samples = self.samples.saturating_add(1);
    }
}

/// HyStart's state, beside that of the round.
#[derive(Clone, Debug, node::State)]
pub(crate) struct Trains {
    #[state(skip("settings"))]
    config: HyStart,
    /// The flow's least round trip.
    least: Duration,
    #[state(past)]
    last_ack: Time,
    found: bool,
}

/// HyStart++'s state, beside that of the round.
#[derive(Clone, Debug, node::State)]
pub(crate) struct Growth {
    #[state(skip("settings"))]
    config: HyStartPlusPlus,
    /// The last round's least round trip.
    last: Duration,
    unsure: Option<Unsure>,
    over: bool,
}

/// Conservative Slow Start, RFC 9406 section 4.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, node::State)]
struct Unsure {
    /// cssBaselineMinRtt.
    baseline: Duration,
    /// Rounds so far, the one in which it began included.
    rounds: u32,
}

impl Watch {
    /// An acknowledgement has come in slow start, with a window of so many bytes.
    pub fn on_ack(&mut self, ack: &Ack, window_bytes: u64, mss: u64) -> Step {
        let (leaves, divisor) = match self {
            Watch::Standard => (false, 1),
            Watch::Trains(state) => (state.0.on_ack(&mut state.1, ack, window_bytes / mss), 1),
            Watch::Growth(state) => {
                let leaves = state.0.on_ack(&mut state.1, ack);
                (leaves, if state.0.unsure.is_some() { state.0.config.css_growth_divisor } else { 1 })
            }
        };
        if leaves { Step::Leave } else { Step::Grow(growth(ack, mss) / divisor) }
    }

    /// A loss or mark, or a timeout, has ended slow start; after a timeout there will be another.
    pub fn on_congestion(&mut self, now: Time, timeout: bool) {
        match self {
            Watch::Standard => {}
            Watch::Trains(state) if timeout => {
                (state.0.least, state.0.last_ack, state.0.found) = (Duration::MAX, now, false);
                state.1 = Round { start: now, ..Round::default() };
            }
            Watch::Trains(_) => {}
            Watch::Growth(state) => (state.0.over, state.0.unsure) = (true, None),
        }
    }
}

impl Trains {
    /// Whether slow start is over.
    fn on_ack(&mut self, round: &mut Round, ack: &Ack, window: u64) -> bool {
        let Some(rtt) = ack.rtt.filter(|_| !self.found) else { return false };
        self.least = self.least.min(rtt);
        if round.turn(ack).is_some() {
            self.last_ack = ack.now;
        }
        let HyStart { ack_train, delay, low_window, ack_delta, min_samples, delay_min, delay_max } = self.config;
        if window < low_window {
            return false;
        }
        if ack_train && ack.now - self.last_ack <= ack_delta {
            self.last_ack = ack.now;
            let bursts = (ack.srtt * 2 / window.max(1)).min(Duration::from_ms(1));
            self.found |= ack.now - round.start > (self.least + bursts) / 2;
        }
        if delay {
            let full = round.samples >= min_samples;
            round.sample(rtt);
            self.found |= full && round.least > self.least + (self.least / 8).clamp(delay_min, delay_max);
        }
        self.found
    }
}

impl Growth {
    /// Whether slow start is over.
    fn on_ack(&mut self, round: &mut Round, ack: &Ack) -> bool {
        if self.over {
            return false;
        }
        let HyStartPlusPlus { min_rtt_thresh, max_rtt_thresh, n_rtt_sample, css_rounds, .. } = self.config;
        if let Some(ended) = round.turn(ack) {
            self.last = ended.least;
            if let Some(unsure) = &mut self.unsure {
                self.over = unsure.rounds >= css_rounds;
                unsure.rounds += 1;
            }
        }
        if self.over {
            self.unsure = None;
            return true;
        }
        let Some(rtt) = ack.rtt else { return false };
        round.sample(rtt);
        if round.samples < n_rtt_sample || self.last == Duration::MAX {
            return false;
        }
        match self.unsure {
            None => {
                let growth = (self.last / 8).clamp(min_rtt_thresh, max_rtt_thresh);
                if round.least >= self.last + growth {
                    self.unsure = Some(Unsure { baseline: round.least, rounds: 1 });
                }
            }
            // Round trips have become shorter again: the queue was not the flow's own.
            Some(unsure) if round.least < unsure.baseline => self.unsure = None,
            Some(_) => {}
        }
        false
    }
}

#[cfg(test)]
mod tests;
