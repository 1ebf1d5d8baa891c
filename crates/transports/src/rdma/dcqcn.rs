//! DCQCN: the rate follows congestion notifications, as in QCN (Zhu et al., SIGCOMM 2015, section 3).
//!
//! The state is the current rate, the target rate that it recovers to, and `alpha`, the moving average of whether
//! notifications arrived. This is the reaction point of ConnectX NICs as HPCC's authors simulate it. Its two clocks
//! differ from the paper: `alpha` is updated and the rate is cut on fixed clocks that begin with the first
//! notification. The paper cuts at each notification, and receivers send one in each interval. With `cnp = { packet = {
//! interval = "50us" } }` and matching intervals it is the paper's algorithm. `nvidia` has it under the names and in
//! the units in which NVIDIA documents it.

mod nvidia;

use node::{EndpointParams, FlowState, Marking};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Bytes, Duration, Problem, Rate, Time, power};

use super::control::{Algorithm, Cnp, Control, Start};
use contract::{About, CongestionSignal};
pub use nvidia::Nvidia;

/// Configuration of DCQCN.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "DcqcnConfig")]
pub struct Config {
    /// How receivers report marks. Default: `in_ack`.
    pub cnp: Cnp,
    /// Weight of the newest interval in `alpha`, above 0 and at most 1. Default: 1/256.
    pub g: f64,
    /// Interval between updates of `alpha`. Default: 1us.
    #[schemars(extend("x-least" = "100ns"))]
    pub alpha_interval: Duration,
    /// Interval at which the rate is cut, if notifications arrived in it. Default: 4us.
    #[schemars(extend("x-least" = "100ns", "x-zero" = true))]
    pub decrease_interval: Duration,
    /// Interval of increases since the last cut (T). Default: 900us.
    #[schemars(extend("x-least" = "100ns"))]
    pub increase_timer: Duration,
    /// Bytes sent between further increases (B). Default: none, only the timer increases the rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub byte_counter: Option<Bytes>,
    /// Number of increases of each kind that only recover to the target (F). Default: 1.
    pub fast_recovery: u32,
    /// Growth of the target in an additive increase. Default: 50Mbps.
    pub additive_increase: Rate,
    /// Growth of the target in a hyper increase. Default: 100Mbps.
    pub hyper_increase: Rate,
    /// Whether each cut sets the target to the rate before it. Otherwise only the first cut after an increase does.
    /// Default: false.
    pub clamp_target: bool,
    /// Lowest rate. Default: 100Mbps.
    #[serde(alias = "min_rate")]
    pub rate_min: Rate,
    /// Queue length at which marking begins, on links of 100 Gbps. Default: 50kB.
    pub mark_min: Bytes,
    /// Queue length above which every packet is marked, on links of 100 Gbps. Default: 200kB.
    pub mark_max: Bytes,
    /// Probability of a mark just below `mark_max`. Default: 0.2.
    pub mark_probability_max: f64,
    /// The parameters under NVIDIA's names and in NVIDIA's units, instead of all keys above but the marks; `{}` has the
    /// defaults that NVIDIA publishes. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nvidia: Option<Nvidia>,
}

/// The settings of a reaction point.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Reaction {
    g: f64,
    /// Alpha at the first notification.
    initial_alpha: f64,
    /// The share of alpha by which a cut reduces the rate.
    cut_by: f64,
    /// The least share of its rate that a cut leaves.
    kept_least: f64,
    /// Rate and target at the first notification, if not line rate.
    first_rate: Option<Rate>,
    /// The rate from which nothing is limited, if not line rate.
    rate_max: Option<Rate>,
    /// Whether the first cut after an increase by the timer sets the target to the rate before it.
    clamp_after_timer: bool,
    alpha_interval: Duration,
    decrease_interval: Duration,
    increase_timer: Duration,
    byte_counter: Option<Bytes>,
    fast_recovery: u32,
    additive_increase: Rate,
    hyper_increase: Rate,
    clamp_target: bool,
    rate_min: Rate,
}

impl Config {
    fn reaction(&self) -> Reaction {
        if let Some(nvidia) = &self.nvidia {
            return nvidia.reaction();
        }
        Reaction {
            g: self.g,
            initial_alpha: 1.0,
            cut_by: 0.5,
            kept_least: 0.0,
            first_rate: None,
            rate_max: None,
            clamp_after_timer: true,
            alpha_interval: self.alpha_interval,
            decrease_interval: self.decrease_interval,
            increase_timer: self.increase_timer,
            byte_counter: self.byte_counter,
            fast_recovery: self.fast_recovery,
            additive_increase: self.additive_increase,
            hyper_increase: self.hyper_increase,
            clamp_target: self.clamp_target,
            rate_min: self.rate_min,
        }
    }
}

impl Default for Config {
    fn default() -> Config {
        Config {
            cnp: Cnp::InAck,
            g: 1.0 / 256.0,
            alpha_interval: Duration::from_us(1),
            decrease_interval: Duration::from_us(4),
            increase_timer: Duration::from_us(900),
            byte_counter: None,
            fast_recovery: 1,
            additive_increase: Rate::from_bps(50_000_000),
            hyper_increase: Rate::from_bps(100_000_000),
            clamp_target: false,
            rate_min: Rate::from_bps(100_000_000),
            mark_min: Bytes(50_000),
            mark_max: Bytes(200_000),
            mark_probability_max: 0.2,
            nvidia: None,
        }
    }
}

impl Algorithm for Config {
    type Control = Dcqcn;

    const ABOUT: About = About {
        title: "DCQCN over RoCE",
        source: "Zhu et al., SIGCOMM 2015",
        summary: "Cuts its rate by how often switches mark its packets, and raises it by a timer and a byte counter.",
        needs: "RED marking at switches; a lossless network, or IRN",
    };

    fn check(&self) -> Result<(), Problem> {
        if let Some(nvidia) = &self.nvidia {
            nvidia.check().map_err(|problem| problem.under("nvidia"))?;
            if let Some((own, theirs)) = Nvidia::doubled(self) {
                let message =
                    format!("has no effect beside nvidia; write nvidia.{theirs} instead, or delete one of them");
                return Err(Problem::new(own, message));
            }
        }
        if !(self.g > 0.0 && self.g <= 1.0) {
            return Err(Problem::new("g", format!("{} is not above 0 and at most 1", self.g)));
        }
        let spans = [
            ("alpha_interval", self.alpha_interval),
            ("decrease_interval", self.decrease_interval),
            ("increase_timer", self.increase_timer),
        ];
        if let Some((key, _)) = spans.iter().find(|span| span.1 == Duration::ZERO) {
            return Err(Problem::new(*key, "at 0 the timer would never let time pass; write at least 1ps"));
        }
        if self.byte_counter == Some(Bytes(0)) {
            return Err(Problem::new(
                "byte_counter",
                "at 0 the rate would rise without end; leave it out to use the timer alone",
            ));
        }
        if self.rate_min == Rate::ZERO {
            return Err(Problem::new("rate_min", "at 0 a flow would never send again; write a rate above 0"));
        }
        if !(self.mark_min < self.mark_max && (0.0..=1.0).contains(&self.mark_probability_max)) {
            return Err(Problem::new("mark_min", "marking needs mark_min < mark_max and a probability from 0 to 1"));
        }
        Ok(())
    }

    /// Thresholds in proportion to the rate of the link, at least a packet, since no queue is shorter.
    fn signal(&self, site: &EndpointParams) -> CongestionSignal {
        let min = self.mark_min.get().max(u64::from(site.mtu_bytes));
        let max = self.mark_max.get().max(2 * min);
        let per = Some(Rate::from_gbps(100));
        let probability_max = self.mark_probability_max;
        CongestionSignal::Ecn(Marking::Ramp { min: Bytes(min), max: Bytes(max), probability_max, per })
    }

    fn cnp(&self) -> Option<Cnp> {
        Some(self.nvidia.map_or(self.cnp, |nvidia| nvidia.cnp()))
    }

    fn start(&self, start: Start) -> Dcqcn {
        let line = start.line.bps() as f64;
        let own = self.reaction();
        let up_to_line = |rate: Option<Rate>| rate.map_or(line, |rate| (rate.bps() as f64).min(line));
        Dcqcn {
            g: own.g,
            cut_by: own.cut_by,
            kept_least: own.kept_least,
            first_rate: up_to_line(own.first_rate),
            rate_max: up_to_line(own.rate_max),
            clamp_after_timer: own.clamp_after_timer,
            alpha_interval: own.alpha_interval,
            decrease_interval: own.decrease_interval,
            increase_timer: own.increase_timer,
            byte_counter: own.byte_counter.map_or(u64::MAX, Bytes::get),
            counts_bytes: own.byte_counter.is_some(),
            fast_recovery: own.fast_recovery,
            additive_increase: own.additive_increase.bps() as f64,
            hyper_increase: own.hyper_increase.bps() as f64,
            clamp_target: own.clamp_target,
            rate_min: (own.rate_min.bps() as f64).min(line),
            line,
            rate: line,
            target: line,
            alpha: own.initial_alpha,
            notified: None,
            updates: 0,
            fresh: false,
            cut_at: None,
            increase_at: None,
            by_timer: 0,
            by_bytes: 0,
            bytes: 0,
        }
    }
}

/// The rate of a queue pair: the reaction point.
#[derive(Clone, Debug, node::State)]
#[state(first(if self.increase_at.is_some() { walk.next_step(self.rate, (self.rate + self.target) / 2.0) }))]
pub struct Dcqcn {
    g: f64,
    cut_by: f64,
    kept_least: f64,
    first_rate: f64,
    rate_max: f64,
    clamp_after_timer: bool,
    alpha_interval: Duration,
    decrease_interval: Duration,
    increase_timer: Duration,
    byte_counter: u64,
    counts_bytes: bool,
    fast_recovery: u32,
    additive_increase: f64,
    hyper_increase: f64,
    clamp_target: bool,
    rate_min: f64,
    line: f64,
    /// In bits per second: the current rate and the target rate.
    rate: f64,
    target: f64,
    alpha: f64,
    /// When the first notification arrived, which starts both clocks.
    #[state(past)]
    notified: Option<Time>,
    /// Number of due updates of `alpha` that have been made.
    updates: u64,
    /// Whether a notification has arrived since the last update.
    fresh: bool,
    cut_at: Option<Time>,
    increase_at: Option<Time>,
    /// Increases since the last cut.
    by_timer: u32,
    by_bytes: u32,
    #[state(when(self.increase_at.is_some(), _, counted_of))]
    bytes: u64,
}

impl Dcqcn {
    /// `alpha` at time `now`.
    pub fn alpha(&mut self, now: Time) -> f64 {
        if let Some(first) = self.notified {
            let due = (now - first).ps() / self.alpha_interval.ps();
            let mut silent = due - self.updates;
            if silent > 0 && std::mem::take(&mut self.fresh) {
                self.alpha = (1.0 - self.g) * self.alpha + self.g;
                silent -= 1;
            }
            self.alpha *= power(1.0 - self.g, silent);
            self.updates = due;
        }
        self.alpha
    }

    /// The target rate.
    pub fn target(&self) -> Rate {
        Rate::from_bps((self.target + 0.5) as u64)
    }

    fn cut(&mut self, now: Time) {
        if self.clamp_target || self.by_bytes > 0 || self.clamp_after_timer && self.by_timer > 0 {
            self.target = self.rate;
        }
        let kept = (1.0 - self.alpha(now) * self.cut_by).max(self.kept_least);
        self.rate = (self.rate * kept).max(self.rate_min);
        (self.by_timer, self.by_bytes, self.bytes) = (0, 0, 0);
        self.increase_at = Some(now + self.increase_timer);
    }

    /// Fast recovery while neither count has reached F, hyper increase when both have exceeded it, additive increase
    /// otherwise.
    fn increase(&mut self) {
        let (timer, bytes) = (self.by_timer, if self.counts_bytes { self.by_bytes } else { self.by_timer });
        let (least, most) = (timer.min(bytes), timer.max(bytes));
        if least > self.fast_recovery {
            self.target += self.hyper_increase;
        } else if most >= self.fast_recovery {
            self.target += self.additive_increase;
        }
        self.target = self.target.min(self.line);
        self.rate = (self.rate + self.target) / 2.0;
        if self.rate >= self.rate_max {
            (self.rate, self.target) = (self.line, self.line); // not limited any more
        }
    }
}

impl Control for Dcqcn {
    fn rate(&self) -> Rate {
        Rate::from_bps((self.rate + 0.5) as u64)
    }

    fn state(&self, say: &mut FlowState) {
        say.say("target_rate_bps", self.target().bps());
        say.say("alpha_ppm", (self.alpha * 1e6) as u64);
    }

    fn on_cnp(&mut self, now: Time) {
        let Some(first) = self.notified else {
            self.notified = Some(now);
            (self.rate, self.target) = (self.first_rate, self.first_rate);
            self.cut_at = Some(now + self.decrease_interval);
            return;
        };
        self.alpha(now);
        self.fresh = true;
        if self.cut_at.is_none() {
            let passed = (now - first).ps() / self.decrease_interval.ps();
            self.cut_at = Some(first + self.decrease_interval * (passed + 1));
        }
    }

    fn on_sent(&mut self, bytes: u16) {
        self.bytes += u64::from(bytes);
        if self.bytes >= self.byte_counter && self.increase_at.is_some() {
            self.bytes = 0;
            self.increase();
            self.by_bytes += 1;
        }
    }

    fn deadline(&self) -> Option<Time> {
        self.cut_at.into_iter().chain(self.increase_at).min()
    }

    fn wake(&mut self, now: Time) {
        if self.cut_at.is_some_and(|at| at <= now) {
            self.cut_at = None;
            self.cut(now);
        }
        if let Some(at) = self.increase_at.filter(|&at| at <= now) {
            self.increase();
            self.by_timer += 1;
            // At line rate, in hyper increase, nothing changes before the next cut.
            let rests = self.rate().bps() as f64 >= self.line && self.by_timer > self.fast_recovery;
            self.increase_at = (!rests).then_some(at + self.increase_timer);
        }
    }
}

#[cfg(test)]
mod tests;
