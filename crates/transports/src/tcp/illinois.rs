//! TCP-Illinois: losses decide when the window shrinks, delay decides by how much (Liu, Başar and Srikant, VALUETOOLS
//! 2006 and Performance Evaluation 65, 2008).
//!
//! Once a window of data it averages the round trips of that window, `T_a`, and measures how near congestion is by the
//! queueing delay `d_a = T_a - T_min`, relative to the longest ever seen, `d_m = T_max - T_min`. Far from congestion
//! the window grows by up to `alpha_max` segments in a round trip and a loss reduces it by as little as `beta_min`;
//! near congestion it grows by `alpha_min` and a loss reduces it by `beta_max`. Slow start and recovery are NewReno's,
//! and while slow start lasts, after a timeout and with windows below `w_thresh`, so are alpha (1) and beta (1/2).
//!
//! Absent: ECN, which the paper leaves out; marks at a shallow queue would hide the delay.

use node::EndpointParams;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Duration, Problem};

use super::control::{Ack, Algorithm, Congestion, Control, Ecn, Phase, Signal, Start};
use super::slow_start::{SlowStart, Step, Watch};
use contract::{About, CongestionSignal};

/// Configuration of TCP-Illinois: the paper's parameters. Delays `d_1`, `d_2`, `d_3` are given as the fractions
/// `eta_1`, `eta_2`, `eta_3` of `d_m`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, node::Saved)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "IllinoisConfig")]
pub struct Config {
    /// Growth up to `d_1`, in segments per round trip. Default: 10.
    pub alpha_max: f64,
    /// Growth at `d_m`, in segments per round trip; below `alpha_max`. Default: 0.3.
    pub alpha_min: f64,
    /// Share of the window that a loss takes up to `d_2`. Default: 0.125.
    pub beta_min: f64,
    /// Share of the window that a loss takes from `d_3` on, below 1. Default: 0.5.
    pub beta_max: f64,
    /// `d_1` as a share of `d_m`, below 1. Default: 0.01.
    pub eta_1: f64,
    /// `d_2` as a share of `d_m`. Default: 0.1.
    pub eta_2: f64,
    /// `d_3` as a share of `d_m`, above `eta_2` and at most 1. Default: 0.8.
    pub eta_3: f64,
    /// After `d_a` has exceeded `d_1`, number of consecutive windows in which it must not, until alpha may be
    /// `alpha_max` again. Default: 5.
    pub theta: u32,
    /// Window in segments below which it behaves like standard TCP: alpha is 1, beta is 1/2. Default: 15.
    pub w_thresh: f64,
    /// What ends slow start beside a loss or mark. Default: nothing.
    pub slow_start: SlowStart,
}

impl Default for Config {
    /// The values of Linux, whose Illinois is the one used in comparisons.
    fn default() -> Config {
        Config {
            alpha_max: 10.0,
            alpha_min: 0.3,
            beta_min: 0.125,
            beta_max: 0.5,
            eta_1: 0.01,
            eta_2: 0.1,
            eta_3: 0.8,
            theta: 5,
            w_thresh: 15.0,
            slow_start: SlowStart::Standard,
        }
    }
}

impl Algorithm for Config {
    type Control = Illinois;

    const ABOUT: About = About {
        title: "TCP-Illinois",
        source: "Liu, Basar and Srikant, VALUETOOLS 2006; RFC 6675",
        summary: "Reacts to loss like NewReno, but delay decides how fast the window grows and how much a loss \
                  reduces it.",
        needs: "queues deep enough to show in round-trip times",
    };

    fn check(&self) -> Result<(), Problem> {
        if !(self.alpha_max > 0.0 && self.alpha_max.is_finite()) {
            return Err(Problem::new("alpha_max", format!("{} is not a positive number", self.alpha_max)));
        }
        if !(self.alpha_min > 0.0 && self.alpha_min < self.alpha_max) {
            let message = format!("{} is not above 0 and below alpha_max, {}", self.alpha_min, self.alpha_max);
            return Err(Problem::new("alpha_min", message));
        }
        if !(self.beta_max > 0.0 && self.beta_max < 1.0) {
            return Err(Problem::new("beta_max", format!("{} is not above 0 and below 1", self.beta_max)));
        }
        if !(self.beta_min > 0.0 && self.beta_min <= self.beta_max) {
            let message = format!("{} is not above 0 and at most beta_max, {}", self.beta_min, self.beta_max);
            return Err(Problem::new("beta_min", message));
        }
        if !(0.0..1.0).contains(&self.eta_1) {
            return Err(Problem::new("eta_1", format!("{} is not at least 0 and below 1", self.eta_1)));
        }
        if !(self.eta_3 > 0.0 && self.eta_3 <= 1.0) {
            return Err(Problem::new("eta_3", format!("{} is not above 0 and at most 1", self.eta_3)));
        }
        if !(0.0..self.eta_3).contains(&self.eta_2) {
            let message = format!("{} is not at least 0 and below eta_3, {}", self.eta_2, self.eta_3);
            return Err(Problem::new("eta_2", message));
        }
        if self.theta == 0 {
            return Err(Problem::new("theta", "0 is not a number of windows; write at least 1"));
        }
        if !(self.w_thresh >= 0.0 && self.w_thresh.is_finite()) {
            return Err(Problem::new("w_thresh", format!("{} is not a number of at least 0", self.w_thresh)));
        }
        self.slow_start.check()
    }

    fn ecn(&self) -> Ecn {
        Ecn::Off
    }

    fn signal(&self, _: &EndpointParams) -> CongestionSignal {
        CongestionSignal::Drop
    }

    fn start(&self, start: Start) -> Illinois {
        Illinois {
            config: self.clone(),
            mss: start.mss_bytes,
            window: start.window_bytes as f64 / start.mss_bytes as f64,
            threshold: f64::INFINITY,
            alpha: STANDARD_ALPHA,
            beta: STANDARD_BETA,
            t_min: Duration::MAX,
            t_max: Duration::ZERO,
            window_end: 0,
            sum: Duration::ZERO,
            samples: 0,
            calm: self.theta,
            watch: self.slow_start.watch(),
        }
    }
}

/// Segments that standard TCP adds in a round trip.
const STANDARD_ALPHA: f64 = 1.0;

/// Share of the window that a loss takes from standard TCP.
const STANDARD_BETA: f64 = 0.5;

impl Config {
    /// The paper's `f_1`, at a queueing delay that is `d` of `d_m`: `alpha_max` up to `d_1`, then `kappa_1 / (kappa_2 +
    /// d_a)` with kappas that make it continuous and `alpha_min` at `d_m`.
    fn f_1(&self, d: f64) -> f64 {
        let Config { alpha_max, alpha_min, eta_1, .. } = *self;
        if d <= eta_1 {
            return alpha_max;
        }
        let kappa_1 = (1.0 - eta_1) * alpha_min * alpha_max / (alpha_max - alpha_min);
        let kappa_2 = (1.0 - eta_1) * alpha_min / (alpha_max - alpha_min) - eta_1;
        kappa_1 / (kappa_2 + d)
    }

    /// The paper's `f_2`, at a queueing delay that is `d` of `d_m`: `beta_min` up to `d_2`, `beta_max` from `d_3` on, a
    /// line between.
    fn f_2(&self, d: f64) -> f64 {
        let Config { beta_min, beta_max, eta_2, eta_3, .. } = *self;
        if d <= eta_2 {
            beta_min
        } else if d < eta_3 {
            beta_min + (beta_max - beta_min) * (d - eta_2) / (eta_3 - eta_2)
        } else {
            beta_max
        }
    }
}

/// A flow's window, in segments, and what it knows of delay.
#[derive(Clone, Debug, node::State)]
pub struct Illinois {
    #[state(skip("settings"))]
    config: Config,
    mss: u64,
    /// cwnd.
    window: f64,
    /// ssthresh.
    threshold: f64,
    alpha: f64,
    beta: f64,
    t_min: Duration,
    t_max: Duration,
    /// Where the window of data ends whose round trips are being averaged.
    #[state(passed(1))]
    window_end: u64,
    /// Sum and number of those round trips so far.
    sum: Duration,
    samples: u64,
    /// Consecutive windows, up to theta, with a delay of at most `d_1`.
    calm: u32,
    #[state(when(self.window < self.threshold, _))]
    watch: Watch,
}

impl Control for Illinois {
    fn on_ack(&mut self, ack: &Ack) {
        if ack.una > self.window_end {
            self.update();
            (self.window_end, self.sum, self.samples) = (ack.next, Duration::ZERO, 0);
        }
        if let Some(rtt) = ack.rtt {
            self.t_min = self.t_min.min(rtt);
            self.t_max = self.t_max.max(rtt);
            self.sum += rtt;
            self.samples += 1;
        }
        if !ack.limited || ack.phase == Phase::Recovery {
            return;
        }
        if self.window < self.threshold {
            match self.watch.on_ack(ack, self.window_bytes(), self.mss) {
                Step::Grow(bytes) => self.window += bytes as f64 / self.mss as f64,
                Step::Leave => self.threshold = self.window,
            }
        } else {
            self.window += self.alpha * ack.acked_bytes as f64 / self.mss as f64 / self.window;
        }
    }

    fn on_congestion(&mut self, congestion: &Congestion) {
        let flight = congestion.flight_bytes as f64 / self.mss as f64;
        self.watch.on_congestion(congestion.now, matches!(congestion.signal, Signal::Timeout { .. }));
        match congestion.signal {
            Signal::Loss | Signal::Mark => {
                self.threshold = (flight * (1.0 - self.beta)).max(2.0);
                self.window = self.threshold;
            }
            Signal::Timeout { again } => {
                (self.alpha, self.beta) = (STANDARD_ALPHA, STANDARD_BETA);
                if !again {
                    self.threshold = (flight * (1.0 - self.beta)).max(2.0);
                }
                self.window = 1.0;
            }
        }
    }

    fn window_bytes(&self) -> u64 {
        (self.window * self.mss as f64) as u64
    }
}

impl Illinois {
    /// A window of data has been acknowledged: computes alpha and beta for the next.
    fn update(&mut self) {
        if self.window < self.threshold.max(self.config.w_thresh) {
            (self.alpha, self.beta) = (STANDARD_ALPHA, STANDARD_BETA);
            return;
        }
        if self.samples == 0 {
            return;
        }
        let d_m = (self.t_max - self.t_min).ps() as f64;
        let d_a = self.sum.ps() as f64 / self.samples as f64 - self.t_min.ps() as f64;
        // If no queue was ever seen, congestion is far.
        let d = if d_m > 0.0 { d_a / d_m } else { 0.0 };
        self.beta = self.config.f_2(d);
        self.calm = if d <= self.config.eta_1 { (self.calm + 1).min(self.config.theta) } else { 0 };
        if self.calm == 0 || self.calm == self.config.theta {
            self.alpha = self.config.f_1(d);
        }
    }
}

#[cfg(test)]
mod tests;
