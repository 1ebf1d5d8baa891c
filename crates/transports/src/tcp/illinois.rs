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

use node::Site;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Duration, Problem};

use super::control::{Ack, Algorithm, Congestion, Control, Ecn, Phase, Signal, Start};
use super::newreno::slow_start;
use contract::{About, CongestionSignal};

/// Configuration of TCP-Illinois: the paper's parameters. Delays `d_1`, `d_2`, `d_3` are given as the fractions
/// `eta_1`, `eta_2`, `eta_3` of `d_m`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
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
        Ok(())
    }

    fn ecn(&self) -> Ecn {
        Ecn::Off
    }

    fn signal(&self, _: &Site) -> CongestionSignal {
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
#[derive(Clone, Debug)]
pub struct Illinois {
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
    window_end: u64,
    /// Sum and number of those round trips so far.
    sum: Duration,
    samples: u64,
    /// Consecutive windows, up to theta, with a delay of at most `d_1`.
    calm: u32,
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
            self.window += slow_start(ack, self.mss) as f64 / self.mss as f64;
        } else {
            self.window += self.alpha * ack.acked_bytes as f64 / self.mss as f64 / self.window;
        }
    }

    fn on_congestion(&mut self, congestion: &Congestion) {
        let flight = congestion.flight_bytes as f64 / self.mss as f64;
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
mod tests {
    use proptest::prelude::*;

    use super::super::newreno::NewReno;
    use super::*;

    const MSS: u64 = 1000;

    /// A flow in congestion avoidance, with a window of `segments`.
    fn flow(config: &Config, segments: u64) -> Illinois {
        let mut flow = config.start(Start::of(segments, MSS));
        flow.threshold = 2.0;
        flow
    }

    /// Acknowledges a window, segment by segment, each of this round trip.
    fn round(flow: &mut Illinois, una: &mut u64, rtt: Duration) {
        let segments = flow.window as u64;
        let next = *una + segments * MSS;
        for _ in 0..segments {
            *una += MSS;
            flow.on_ack(&Ack { una: *una, next, rtt: Some(rtt), ..Ack::of(MSS) });
        }
    }

    #[test]
    fn the_curves_are_those_of_the_paper() {
        let config = Config::default();
        // kappa_1 = 0.99 x 0.3 x 10 / 9.7 and kappa_2 = 0.99 x 0.3 / 9.7 - 0.01, in units of d_m.
        for (d, alpha) in [(0.0, 10.0), (0.01, 10.0), (0.5, 0.306_185_567 / 0.520_618_557), (1.0, 0.3)] {
            assert!((config.f_1(d) - alpha).abs() < 1e-8, "f_1({d}) = {}", config.f_1(d));
        }
        // Between d_2 = 0.1 and d_3 = 0.8 a line: kappa_3 = (0.125 x 0.8 - 0.5 x 0.1) / 0.7, kappa_4 = 0.375 / 0.7.
        let line = |d: f64| (0.05 + 0.375 * d) / 0.7;
        for (d, beta) in [(0.0, 0.125), (0.1, 0.125), (0.3, line(0.3)), (0.45, 0.3125), (0.8, 0.5), (1.0, 0.5)] {
            assert!((config.f_2(d) - beta).abs() < 1e-12, "f_2({d}) = {}", config.f_2(d));
        }
    }

    proptest! {
        #[test]
        fn the_curves_are_continuous_and_monotone_whatever_the_parameters(
            (alpha_min, above) in (0.01..5.0, 0.1..20.0),
            (beta_min, beta_more) in (0.01..0.5, 0.0..0.49),
            (eta_1, eta_2, eta_more) in (0.0..0.9, 0.0..0.5, 0.05..0.5),
        ) {
            let config = Config {
                alpha_max: alpha_min + above,
                alpha_min,
                beta_min,
                beta_max: beta_min + beta_more,
                eta_1,
                eta_2,
                eta_3: eta_2 + eta_more,
                ..Config::default()
            };
            prop_assert_eq!(config.check(), Ok(()));
            let tiny = 1e-9;
            for knee in [config.eta_1, config.eta_2, config.eta_3] {
                let (before, after) = (knee - tiny, knee + tiny);
                prop_assert!((config.f_1(before) / config.f_1(after) - 1.0).abs() < 1e-4);
                prop_assert!((config.f_2(before) - config.f_2(after)).abs() < 1e-6);
            }
            for step in 0..100 {
                let (d, more) = (f64::from(step) / 100.0, f64::from(step + 1) / 100.0);
                prop_assert!(config.f_1(d) >= config.f_1(more) && config.f_2(d) <= config.f_2(more));
            }
            prop_assert!((config.f_1(1.0) / alpha_min - 1.0).abs() < 1e-9);
        }
    }

    #[test]
    fn what_makes_no_curve_is_refused_by_name() {
        let good = Config::default();
        for (config, key) in [
            (Config { alpha_max: f64::NAN, ..good.clone() }, "alpha_max"),
            (Config { alpha_min: 10.0, ..good.clone() }, "alpha_min"),
            (Config { beta_min: 0.6, ..good.clone() }, "beta_min"),
            (Config { beta_max: 1.0, ..good.clone() }, "beta_max"),
            (Config { eta_1: 1.0, ..good.clone() }, "eta_1"),
            (Config { eta_2: 0.8, ..good.clone() }, "eta_2"),
            (Config { eta_3: 1.1, ..good.clone() }, "eta_3"),
            (Config { theta: 0, ..good.clone() }, "theta"),
            (Config { w_thresh: -1.0, ..good.clone() }, "w_thresh"),
        ] {
            assert_eq!(config.check().unwrap_err().key, key);
        }
    }

    #[test]
    fn the_window_grows_by_alpha_of_the_last_window_s_delay() {
        let (mut flow, mut una) = (flow(&Config::default(), 100), 0);
        let [empty, half, full] = [100, 150, 200].map(Duration::from_us);
        // Nothing is known of the first window; in it no queue is seen, so alpha is 10 in the second.
        round(&mut flow, &mut una, empty);
        assert_eq!((flow.alpha, flow.beta), (1.0, 0.5));
        // dW/dn = 10 / W over 100 acknowledgements: the square grows by 2 x 10 x 100.
        let before = flow.window;
        round(&mut flow, &mut una, full);
        assert_eq!((flow.alpha, flow.beta), (10.0, 0.125));
        assert!((flow.window - (before * before + 2_000.0).sqrt()).abs() < 0.01, "{before} {}", flow.window);
        // d_a was d_m: alpha_min and beta_max.
        let before = flow.window;
        round(&mut flow, &mut una, half);
        assert!((flow.alpha - 0.3).abs() < 1e-9 && flow.beta == 0.5, "{} {}", flow.alpha, flow.beta);
        assert!((flow.window - before - 0.3).abs() < 0.01, "{before} {}", flow.window);
        // d_a was half of d_m.
        round(&mut flow, &mut una, half);
        assert!((flow.alpha - 0.306_185_567 / 0.520_618_557).abs() < 1e-8, "{}", flow.alpha);
        let beta = (0.05 + 0.375 * 0.5) / 0.7;
        assert!((flow.beta - beta).abs() < 1e-12, "{}", flow.beta);
        flow.on_congestion(&Congestion::of(Signal::Loss, 80 * MSS));
        assert!((flow.window - 80.0 * (1.0 - beta)).abs() < 1e-9, "{}", flow.window);
    }

    #[test]
    fn after_delay_alpha_waits_for_theta_calm_windows_in_a_row() {
        let (mut flow, mut una) = (flow(&Config::default(), 100), 0);
        let (near, far) = (Duration::from_us(200), Duration::from_us(100));
        let mut play = |rtts: &[Duration]| -> Vec<bool> {
            let mut at_max = |&rtt: &Duration| {
                round(&mut flow, &mut una, rtt);
                flow.alpha == 10.0
            };
            rtts.iter().map(&mut at_max).collect()
        };
        // What a window has seen counts from the next on.
        assert_eq!(play(&[far, far, near, near]), [false, true, true, false]);
        // Four calm windows are too few, and count for nothing after one that is not.
        assert_eq!(play(&[far, far, far, far, near, far]), [false; 6]);
        assert_eq!(play(&[far, far, far, far, far]), [false, false, false, false, true]);
    }

    #[test]
    fn it_is_standard_tcp_in_slow_start_with_small_windows_and_after_a_timeout() {
        let (mut slow, mut una) = (Config::default().start(Start::of(10, MSS)), 0);
        for window in [20, 40, 80] {
            round(&mut slow, &mut una, Duration::from_us(100));
            assert_eq!(slow.window_bytes(), window * MSS);
        }
        slow.on_congestion(&Congestion::of(Signal::Loss, 80 * MSS));
        assert_eq!(slow.window_bytes(), 40 * MSS);

        let mut small = flow(&Config::default(), 14);
        let mut una = 0;
        round(&mut small, &mut una, Duration::from_us(100));
        assert!(small.window > 14.9 && small.window < 15.0, "{}", small.window);
        round(&mut small, &mut una, Duration::from_us(100));
        assert_eq!((small.alpha, small.beta), (1.0, 0.5));

        let (mut late, mut una) = (flow(&Config::default(), 100), 0);
        for _ in 0..2 {
            round(&mut late, &mut una, Duration::from_us(100));
        }
        assert_eq!((late.alpha, late.beta), (10.0, 0.125));
        late.on_congestion(&Congestion::of(Signal::Timeout { again: false }, 100 * MSS));
        assert_eq!((late.window, late.threshold, late.alpha, late.beta), (1.0, 50.0, 1.0, 0.5));
        late.on_congestion(&Congestion::of(Signal::Timeout { again: true }, MSS));
        assert_eq!((late.window, late.threshold), (1.0, 50.0));
    }

    /// Beside a NewReno flow that loses whenever it does, on a path of `path` segments with as large a buffer. A loss
    /// takes half of either window, so windows at losses are as their growths between losses, 1 and alpha's average.
    /// The queue `d` grows from 0 to 1 by `f_1(d) + 1` a round trip, so that alpha's average is the integral of `f_1 /
    /// (f_1 + 1)` over that of `1 / (f_1 + 1)`, with `f_1 = kappa_1 / (kappa_2 + d)`: `l / (1 - l)`, where `l = kappa_1
    /// ln((kappa_1 + kappa_2 + 1) / (kappa_1 + kappa_2))`.
    #[test]
    fn beside_newreno_its_window_at_losses_is_the_average_of_alpha() {
        let (kappa_1, kappa_2) = (0.306_185_567, 0.020_618_557);
        let l = kappa_1 * libm::log((kappa_1 + kappa_2 + 1.0) / (kappa_1 + kappa_2));
        let wanted = l / (1.0 - l);

        let path = 2_000.0;
        let (mut illinois, mut una) = (flow(&Config::default(), 1_000), 0);
        let mut newreno = NewReno::new(Start::of(0, MSS));
        newreno.reduce(1_000 * MSS);
        let (mut peaks, mut losses) = ([0.0; 2], 0);
        while losses < 40 {
            let queued = illinois.window + (newreno.window_bytes() / MSS) as f64 - path;
            let rtt = Duration::from_us(100).mul_f64(1.0 + queued.max(0.0) / path);
            round(&mut illinois, &mut una, rtt);
            for _ in 0..newreno.window_bytes() / MSS {
                newreno.on_ack(&Ack::of(MSS));
            }
            if queued > path {
                losses += 1;
                if losses > 20 {
                    peaks[0] += illinois.window;
                    peaks[1] += (newreno.window_bytes() / MSS) as f64;
                }
                for flow in [&mut illinois as &mut dyn Control, &mut newreno] {
                    flow.on_congestion(&Congestion::of(Signal::Loss, flow.window_bytes()));
                }
            }
        }
        let share = peaks[0] / peaks[1];
        assert!((share / wanted - 1.0).abs() < 0.03, "{share}, in theory {wanted}");
    }
}
