//! DCQCN: the rate follows congestion notifications, as in QCN (Zhu et al., SIGCOMM 2015, section 3).
//!
//! The state is the current rate, the target rate that it recovers to, and `alpha`, the moving average of whether
//! notifications arrived. This is the reaction point of ConnectX NICs as HPCC's authors simulate it. Its two clocks
//! differ from the paper: `alpha` is updated and the rate is cut on fixed clocks that begin with the first
//! notification. The paper cuts at each notification, and receivers send one in each interval. With `cnp = { packet = {
//! interval = "50us" } }` and matching intervals it is the paper's algorithm.

use node::{Marking, Site};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Bytes, Duration, Problem, Rate, Time};

use super::control::{Algorithm, Cnp, Control, Start};
use contract::{About, CongestionSignal};

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
    pub alpha_interval: Duration,
    /// Interval at which the rate is cut, if notifications arrived in it. Default: 4us.
    pub decrease_interval: Duration,
    /// Interval of increases since the last cut (T). Default: 900us.
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
    pub min_rate: Rate,
    /// Queue length at which marking begins, on links of 100 Gbps. Default: 50kB.
    pub mark_min: Bytes,
    /// Queue length above which every packet is marked, on links of 100 Gbps. Default: 200kB.
    pub mark_max: Bytes,
    /// Probability of a mark just below `mark_max`. Default: 0.2.
    pub mark_probability_max: f64,
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
            min_rate: Rate::from_bps(100_000_000),
            mark_min: Bytes(50_000),
            mark_max: Bytes(200_000),
            mark_probability_max: 0.2,
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
        if self.min_rate == Rate::ZERO {
            return Err(Problem::new("min_rate", "at 0 a flow would never send again; write a rate above 0"));
        }
        if !(self.mark_min < self.mark_max && (0.0..=1.0).contains(&self.mark_probability_max)) {
            return Err(Problem::new("mark_min", "marking needs mark_min < mark_max and a probability from 0 to 1"));
        }
        Ok(())
    }

    /// Thresholds in proportion to the rate of the link, at least a packet, since no queue is shorter.
    fn signal(&self, site: &Site) -> CongestionSignal {
        let min = self.mark_min.get().max(u64::from(site.mtu_bytes));
        let max = self.mark_max.get().max(2 * min);
        let per = Some(Rate::from_gbps(100));
        let probability_max = self.mark_probability_max;
        CongestionSignal::Ecn(Marking::Ramp { min: Bytes(min), max: Bytes(max), probability_max, per })
    }

    fn cnp(&self) -> Option<Cnp> {
        Some(self.cnp)
    }

    fn start(&self, start: Start) -> Dcqcn {
        let line = start.line.bps() as f64;
        Dcqcn {
            g: self.g,
            alpha_interval: self.alpha_interval,
            decrease_interval: self.decrease_interval,
            increase_timer: self.increase_timer,
            byte_counter: self.byte_counter.map_or(u64::MAX, Bytes::get),
            counts_bytes: self.byte_counter.is_some(),
            fast_recovery: self.fast_recovery,
            additive_increase: self.additive_increase.bps() as f64,
            hyper_increase: self.hyper_increase.bps() as f64,
            clamp_target: self.clamp_target,
            min_rate: (self.min_rate.bps() as f64).min(line),
            line,
            rate: line,
            target: line,
            alpha: 1.0,
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
#[derive(Clone, Debug)]
pub struct Dcqcn {
    g: f64,
    alpha_interval: Duration,
    decrease_interval: Duration,
    increase_timer: Duration,
    byte_counter: u64,
    counts_bytes: bool,
    fast_recovery: u32,
    additive_increase: f64,
    hyper_increase: f64,
    clamp_target: bool,
    min_rate: f64,
    line: f64,
    /// In bits per second: the current rate and the target rate.
    rate: f64,
    target: f64,
    alpha: f64,
    /// When the first notification arrived, which starts both clocks.
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
        if self.clamp_target || self.by_timer > 0 || self.by_bytes > 0 {
            self.target = self.rate;
        }
        self.rate = (self.rate * (1.0 - self.alpha(now) / 2.0)).max(self.min_rate);
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
    }
}

impl Control for Dcqcn {
    fn rate(&self) -> Rate {
        Rate::from_bps((self.rate + 0.5) as u64)
    }

    fn on_cnp(&mut self, now: Time) {
        let Some(first) = self.notified else {
            self.notified = Some(now);
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

/// `base` to the power of `exponent`, by multiplication only, so that every machine gives the same result.
fn power(mut base: f64, mut exponent: u64) -> f64 {
    let mut power = 1.0;
    while exponent > 0 {
        if exponent & 1 == 1 {
            power *= base;
        }
        base *= base;
        exponent >>= 1;
    }
    power
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: Rate = Rate::from_gbps(100);

    fn control(config: &Config) -> Dcqcn {
        config.start(Start { now: Time::ZERO, line: LINE, rtt: Duration::from_us(5) })
    }

    /// Wakes it whenever it wants, up to `end`.
    fn run(control: &mut Dcqcn, end: Time) {
        while let Some(at) = control.deadline().filter(|&at| at <= end) {
            control.wake(at);
        }
    }

    #[test]
    fn alpha_after_n_updates_is_a_geometric_series() {
        let us = Time::from_us;
        let g: f64 = 1.0 / 256.0;
        let mut control = control(&Config::default());
        control.on_cnp(us(0));
        // Without another notification: (1 - g)^n.
        for n in [1, 7, 300, 2_000] {
            assert!((control.alpha(us(n)) - libm::pow(1.0 - g, n as f64)).abs() < 1e-12, "{n}");
        }
        // With one an interval from then on: 1 - (1 - alpha) (1 - g)^n.
        let before = control.alpha(us(2_000));
        for n in 0..700u64 {
            control.on_cnp(us(2_000 + n) + Duration::from_ns(500));
            let alpha = control.alpha(us(2_001 + n));
            let wanted = 1.0 - (1.0 - before) * libm::pow(1.0 - g, (n + 1) as f64);
            assert!((alpha - wanted).abs() < 1e-9, "{n}: {alpha} {wanted}");
        }
    }

    #[test]
    fn cuts_come_on_a_clock_if_notifications_did() {
        let us = Time::from_us;
        let mut control = control(&Config::default());
        control.on_cnp(us(10));
        assert_eq!((control.rate(), control.deadline()), (LINE, Some(us(14))));
        run(&mut control, us(15));
        let g: f64 = 1.0 / 256.0;
        let factor = 1.0 - libm::pow(1.0 - g, 4.0) / 2.0;
        assert!((control.rate().bps() as f64 / 100e9 - factor).abs() < 1e-9);
        // None in the next interval: no cut at 18 us. One at 21 us: a cut at 22 us.
        run(&mut control, us(21));
        assert_eq!(control.deadline(), Some(us(14 + 900)));
        control.on_cnp(us(21));
        assert_eq!(control.deadline(), Some(us(22)));
        // Before any increase the target stays.
        run(&mut control, us(30));
        assert_eq!(control.target(), LINE);
        assert_eq!(control.deadline(), Some(us(22 + 900)));
    }

    #[test]
    fn recovery_is_fast_then_additive_then_hyper() {
        let ms = Time::from_ms;
        let mut control = control(&Config { increase_timer: Duration::from_ms(1), g: 1.0, ..Config::default() });
        let rates = |control: &Dcqcn| (control.rate().bps() / 1_000, control.target().bps() / 1_000);
        control.on_cnp(Time::ZERO);
        // With g = 1, alpha is whether a notification came in the last interval.
        control.on_cnp(Time::from_ns(3_500));
        run(&mut control, Time::from_us(4));
        assert_eq!(rates(&control), (50_000_000, 100_000_000));
        run(&mut control, ms(1) + Duration::from_us(4));
        assert_eq!(rates(&control), (75_000_000, 100_000_000));
        // After an increase, a cut makes the rate before it the target.
        control.on_cnp(ms(1) + Duration::from_ns(7_500));
        run(&mut control, ms(1) + Duration::from_us(8));
        assert_eq!(rates(&control), (37_500_000, 75_000_000));
        run(&mut control, ms(2) + Duration::from_us(8));
        assert_eq!(rates(&control), (56_250_000, 75_000_000)); // fast recovery
        run(&mut control, ms(3) + Duration::from_us(8));
        assert_eq!(rates(&control), (65_650_000, 75_050_000)); // additive: 50 Mbps
        run(&mut control, ms(4) + Duration::from_us(8));
        assert_eq!(rates(&control), (70_400_000, 75_150_000)); // hyper: 100 Mbps
    }

    #[test]
    fn bytes_increase_the_rate_too_and_hyper_increase_needs_both() {
        let byte_counter = Some(Bytes(1_500_000));
        let mut control = control(&Config { byte_counter, g: 1.0, ..Config::default() });
        control.on_cnp(Time::ZERO);
        control.on_cnp(Time::from_ns(3_500));
        run(&mut control, Time::from_us(4));
        let rate = |control: &Dcqcn| control.rate().bps() / 1_000;
        (0..999).for_each(|_| control.on_sent(1500));
        assert_eq!(rate(&control), 50_000_000);
        control.on_sent(1500);
        assert_eq!(rate(&control), 75_000_000);
        // The timer has not fired: however many follow, the target grows by 50 Mbps at most, here not beyond the line.
        (0..5_000).for_each(|_| control.on_sent(1500));
        assert_eq!((control.by_timer, control.by_bytes, control.target()), (0, 6, LINE));
    }

    #[test]
    fn the_rate_stays_between_its_least_and_the_link_s() {
        let mut control = control(&Config { g: 1.0, ..Config::default() });
        control.on_cnp(Time::ZERO);
        for ns in (500..200_000).step_by(1_000) {
            run(&mut control, Time::from_ns(ns));
            control.on_cnp(Time::from_ns(ns));
        }
        run(&mut control, Time::from_us(210));
        assert_eq!(control.rate(), Config::default().min_rate);
        run(&mut control, Time::from_ms(3_000));
        assert_eq!((control.rate(), control.deadline()), (LINE, None));
    }
}
