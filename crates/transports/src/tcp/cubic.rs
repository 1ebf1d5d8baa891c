//! CUBIC (RFC 9438): the window follows a cubic of the time since the last congestion, whatever the round trip.
//!
//! With its Reno-friendly region (section 4.3), fast convergence (4.7) and a slow start that ends before a loss (4.10):
//! Linux's HyStart, since the round trips of a datacenter don't grow by the milliseconds that HyStart++ looks for.
//! Absent: the restore after spurious congestion (4.9).
//!
//! In a datacenter the cubic hardly matters: with C = 0.4 segments/s^3 a window of 100 takes K = 4.2 s to come back, so
//! that the Reno-friendly region decides until round trips reach several milliseconds. To make the cubic act within
//! microseconds, raise `c`.

use node::{EndpointParams, Marking};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Bytes, Duration, Problem, Time};

use super::control::{Ack, Algorithm, Congestion, Control, Ecn, Phase, Signal, Start};
use super::slow_start::{SlowStart, Step, Watch};
use contract::{About, CongestionSignal};

/// Configuration of CUBIC.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, node::Saved)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "CubicConfig")]
pub struct Config {
    /// Steepness of the cubic, in segments per second cubed. Default: 0.4.
    pub c: f64,
    /// Factor of the window at a loss or mark, above 0 and below 1. Default: 0.7.
    pub beta: f64,
    /// Whether a flow whose window shrinks releases bandwidth to others faster. Default: true.
    pub fast_convergence: bool,
    /// Whether its packets are ECN-capable (RFC 3168). Default: false.
    pub ecn: bool,
    /// What ends slow start beside a loss or mark. Default: HyStart, as in Linux.
    pub slow_start: SlowStart,
    /// By which share of itself the window grows in a round trip at least, from slow start to the first loss or mark,
    /// and after a timeout to the next: up to 0.5. Default: 0 with `cubic`, 0.05 with `linux` (`bictcp_update`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub growth_before_loss: Option<f64>,
}

impl Default for Config {
    /// RFC 9438 sections 5 (C), 4.6 (beta) and 4.7 (fast convergence).
    fn default() -> Config {
        Config {
            c: 0.4,
            beta: 0.7,
            fast_convergence: true,
            ecn: false,
            slow_start: SlowStart::hystart(),
            growth_before_loss: None,
        }
    }
}

impl Algorithm for Config {
    type Control = Cubic;

    const ABOUT: About = About {
        title: "TCP CUBIC",
        source: "RFC 9438, RFC 6675",
        summary: "Its window is a cubic function of the time since the last congestion event.",
        needs: "nothing; ECN if its marks are to be used",
    };

    fn check(&self) -> Result<(), Problem> {
        if !(self.c > 0.0 && self.c.is_finite()) {
            return Err(Problem::new("c", format!("{} is not a positive number", self.c)));
        }
        if !(self.beta > 0.0 && self.beta < 1.0) {
            return Err(Problem::new("beta", format!("{} is not above 0 and below 1", self.beta)));
        }
        if let Some(growth) = self.growth_before_loss.filter(|growth| !(0.0..=0.5).contains(growth)) {
            return Err(Problem::new("growth_before_loss", format!("{growth} is not between 0 and 0.5")));
        }
        self.slow_start.check()
    }

    fn ecn(&self) -> Ecn {
        if self.ecn { Ecn::Classic } else { Ecn::Off }
    }

    fn signal(&self, site: &EndpointParams) -> CongestionSignal {
        match self.queue_needed(site) {
            Some(threshold) if self.ecn => CongestionSignal::Ecn(Marking::Step { threshold }),
            _ => CongestionSignal::Drop,
        }
    }

    /// `1 / beta - 1` bandwidth-delay products: a window that fills the path and this queue still fills the path when
    /// multiplied by beta.
    fn queue_needed(&self, site: &EndpointParams) -> Option<Bytes> {
        Some(Bytes((site.bdp_bytes() as f64 * (1.0 / self.beta - 1.0)) as u64))
    }

    fn start(&self, start: Start) -> Cubic {
        Cubic {
            config: self.clone(),
            mss: start.mss_bytes,
            window: start.window_bytes as f64 / start.mss_bytes as f64,
            threshold: f64::INFINITY,
            w_max: 0.0,
            prior: 0.0,
            timed_out: false,
            unknown: true,
            epoch: None,
            watch: self.slow_start.watch(),
        }
    }
}

/// A flow's window, in segments, by the names of RFC 9438 section 4.1.
#[derive(Clone, Debug, node::State)]
pub struct Cubic {
    #[state(skip("settings"))]
    config: Config,
    mss: u64,
    /// cwnd.
    window: f64,
    /// ssthresh.
    threshold: f64,
    w_max: f64,
    /// cwnd_prior: cwnd when it was last reduced.
    prior: f64,
    /// Whether the last reduction was a timeout's.
    timed_out: bool,
    /// The path's capacity is unknown: no loss or mark since the beginning or a timeout.
    unknown: bool,
    epoch: Option<Epoch>,
    #[state(when(self.window < self.threshold, _))]
    watch: Watch,
}

/// The current congestion avoidance stage.
#[derive(Clone, Copy, Debug, node::State)]
struct Epoch {
    /// Its duration, without times when the window did not limit the flow (section 5.8).
    age: Duration,
    /// Time of its last acknowledgement.
    #[state(past)]
    last: Time,
    /// When the cubic returns to W_max, in seconds after the beginning.
    k: f64,
    /// W_est.
    estimate: f64,
}

impl Control for Cubic {
    fn on_ack(&mut self, ack: &Ack) {
        if let Some(epoch) = &mut self.epoch {
            if ack.limited {
                epoch.age += ack.now - epoch.last;
            }
            epoch.last = ack.now;
        }
        if !ack.limited || ack.marked || ack.acked_bytes == 0 || ack.phase == Phase::Recovery {
            return;
        }
        if self.window < self.threshold {
            match self.watch.on_ack(ack, self.window_bytes(), self.mss) {
                Step::Grow(bytes) => self.window += bytes as f64 / self.mss as f64,
                Step::Leave => self.leave_slow_start(),
            }
        } else {
            self.avoid_congestion(ack);
        }
    }

    fn on_congestion(&mut self, congestion: &Congestion) {
        let flight = congestion.flight_bytes as f64 / self.mss as f64;
        let Config { beta, fast_convergence, .. } = self.config;
        self.epoch = None;
        self.timed_out = matches!(congestion.signal, Signal::Timeout { .. });
        self.unknown = self.timed_out;
        self.watch.on_congestion(congestion.now, self.timed_out);
        if congestion.signal != (Signal::Timeout { again: true }) {
            let shrinking = fast_convergence && self.window < self.w_max;
            self.w_max = if shrinking { self.window * (1.0 + beta) / 2.0 } else { self.window };
            self.prior = self.window;
            self.threshold = (flight * beta).max(2.0);
        }
        self.window = if self.timed_out { 1.0 } else { self.threshold };
    }

    fn window_bytes(&self) -> u64 {
        (self.window * self.mss as f64) as u64
    }
}

impl Cubic {
    /// Section 4.10: if no loss has been seen, the plateau is at the window where slow start has ended.
    fn leave_slow_start(&mut self) {
        self.threshold = self.window;
        if self.w_max == 0.0 {
            (self.w_max, self.prior) = (self.window, self.window);
        }
    }

    /// Sections 4.2 to 4.5.
    fn avoid_congestion(&mut self, ack: &Ack) {
        let Config { c, beta, .. } = self.config;
        let (window, segments) = (self.window, ack.acked_bytes as f64 / self.mss as f64);
        let epoch = self.epoch.get_or_insert_with(|| {
            // Section 4.8: after a timeout the plateau is at the window where the stage begins.
            if self.timed_out {
                (self.w_max, self.timed_out) = (window, false);
            }
            let k = libm::cbrt((self.w_max - window).max(0.0) / c);
            Epoch { age: Duration::ZERO, last: ack.now, k, estimate: window }
        });
        let cubic = |seconds: f64| {
            let t = seconds - epoch.k;
            c * t * t * t + self.w_max
        };
        let alpha = if epoch.estimate < self.prior { 3.0 * (1.0 - beta) / (1.0 + beta) } else { 1.0 };
        epoch.estimate += alpha * segments / window;
        let age = epoch.age.secs_f64();
        self.window = if cubic(age) < epoch.estimate {
            epoch.estimate.max(window)
        } else {
            let target = cubic(age + ack.srtt.secs_f64()).clamp(window, 1.5 * window);
            window + (target - window) / window * segments
        };
        if self.unknown {
            self.window = self.window.max(window + self.config.growth_before_loss.unwrap_or_default() * segments);
        }
    }
}

#[cfg(test)]
mod tests;
