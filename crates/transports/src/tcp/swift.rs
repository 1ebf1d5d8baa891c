//! Swift: additive increase, multiplicative decrease around a target delay (Kumar et al., SIGCOMM 2020).
//!
//! An acknowledgement whose delay is below the target opens the window, by `ai` a round trip; one above it closes the
//! window in proportion to the excess, by `max_mdf` at most and once a round trip at most (Algorithm 1). The target
//! (section 3.5) grows with the number of switches on the path, so that long paths get as much as short ones. It also
//! grows as the window shrinks, so that many flows may cause a longer queue and small windows catch up with large ones.
//! A window below one packet means one packet every `rtt / cwnd`, so that more flows than the path holds packets can
//! share it without loss.
//!
//! The delay is that of the fabric: the round trip, which includes nothing else here. The paper separates the host's
//! delay from it by timestamps of NICs, and gives the host a window of its own, `ecwnd`; the flow's window is the
//! smaller of the two. Hosts here take packets in as they arrive, after a constant delay that the unloaded round trip
//! includes, so `ecwnd` would always be at its maximum. It is left out, and `cwnd` is the paper's `fcwnd`.
//!
//! Under an AQ, the physical queue depends on other entities too and tells nothing about the flow's share. Its delay
//! then is the least round trip that it has seen, which is the path's, plus the virtual queueing delay of its packets
//! in AQs (Augmented Queue, section 3.3.2): what it would see on a network with its AQ's rate. On such a network a
//! window would take that long too. Under an AQ acknowledgements return without queueing, so the window is paced over
//! the delay.
//!
//! That network has an unloaded round trip of its own, from which the default targets follow. The A-Gap counts the
//! packet that has just come (Algorithm 1), so a packet of M bytes that finds an AQ of rate R empty has a virtual delay
//! of M/R, and the unloaded round trip is T' = T + M/R. n flows hold R where the delay d stands at the target: cwnd = R
//! d / (n M). One flow has cwnd = R T'/M = 1 + R T/M and more, so never less than a packet; n of them have the gap
//! stand at d - T', of which flow scaling makes up to 3 T' (down to a window of 0.1): 3 1/4 (M + R T) bytes, which an
//! AQ's derived limit, 8 M and 3 ms of R at least, holds. With targets of T alone a rate below M/T has a delay above
//! every target when nothing waits, and its window falls for good. R is what the entity is granted while nobody is idle
//! ([`Start::virtual_serialisation`]): an AQ with more for a while only has a smaller delay, and grows.

use node::Site;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Duration, Problem, Rate, Time};

use super::control::{Ack, Algorithm, Congestion, Control, Ecn, Signal, Start};
use super::header::WINDOW_SEGMENTS;
use contract::{About, CongestionSignal};

/// Configuration of Swift, by the paper's names. Windows are in packets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "SwiftConfig")]
pub struct Config {
    /// Additive increment: growth of the window in a round trip, in packets. Default: 1.
    pub ai: f64,
    /// Multiplicative decrease: share of the excess delay by which the window shrinks, above 0 and at most 1. Default:
    /// 0.8.
    pub beta: f64,
    /// Largest share of the window that one decrease takes, between 0 and 1. Default: 0.5.
    pub max_mdf: f64,
    /// Target delay before scaling. Default: the unloaded round trip without its switches, plus a quarter of the whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_target: Option<Duration>,
    /// Addition to the target for each switch on the path (the paper's h-bar). Default: what a switch adds to the
    /// unloaded round trip.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hop_target: Option<Duration>,
    /// Largest addition of flow scaling to the target; zero turns it off. Default: three unloaded round trips.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fs_range: Option<Duration>,
    /// Window at which flow scaling adds all of `fs_range`. Default: 0.1.
    pub fs_min_cwnd: f64,
    /// Window from which on flow scaling adds nothing. Default: 100.
    pub fs_max_cwnd: f64,
    /// Smallest window. Default: 0.001.
    pub min_cwnd: f64,
    /// Largest window. Default: 65535.
    pub max_cwnd: f64,
    /// Number of consecutive timeouts that set the window to its minimum. Default: 5.
    pub retx_reset_threshold: u32,
}

impl Default for Config {
    /// `docs/schemes/tcp.md` gives the reasons.
    fn default() -> Config {
        Config {
            ai: 1.0,
            beta: 0.8,
            max_mdf: 0.5,
            base_target: None,
            hop_target: None,
            fs_range: None,
            fs_min_cwnd: 0.1,
            fs_max_cwnd: 100.0,
            min_cwnd: 0.001,
            max_cwnd: WINDOW_SEGMENTS as f64,
            retx_reset_threshold: 5,
        }
    }
}

impl Algorithm for Config {
    type Control = Swift;

    const ABOUT: About = About {
        title: "Swift",
        source: "Kumar et al., SIGCOMM 2020",
        summary: "Keeps the delay near a target that depends on path length and window; paces when the window is \
                  below one packet.",
        needs: "nothing; with AQs, the virtual delay that they report",
    };

    fn check(&self) -> Result<(), Problem> {
        let (above_0, most) = (f64::MIN_POSITIVE, WINDOW_SEGMENTS as f64);
        for (key, value, range, wanted) in [
            ("ai", self.ai, above_0..=f64::MAX, "above 0"),
            ("beta", self.beta, above_0..=1.0, "above 0 and at most 1"),
            ("max_mdf", self.max_mdf, above_0..=1f64.next_down(), "between 0 and 1"),
            ("fs_min_cwnd", self.fs_min_cwnd, above_0..=f64::MAX, "above 0"),
            ("fs_max_cwnd", self.fs_max_cwnd, self.fs_min_cwnd.next_up()..=f64::MAX, "above fs_min_cwnd"),
            ("min_cwnd", self.min_cwnd, 1e-6..=1.0, "from 0.000001 to 1"),
            ("max_cwnd", self.max_cwnd, 1.0..=most, "from 1 to 65535, the largest value that the header holds"),
        ] {
            if !range.contains(&value) {
                return Err(Problem::new(key, format!("{value} is not {wanted}")));
            }
        }
        if self.base_target == Some(Duration::ZERO) {
            return Err(Problem::new(
                "base_target",
                "at 0 the window would always shrink; write a delay above that of the unloaded network",
            ));
        }
        if self.retx_reset_threshold == 0 {
            return Err(Problem::new("retx_reset_threshold", "0 is not a number of timeouts; write at least 1"));
        }
        Ok(())
    }

    fn ecn(&self) -> Ecn {
        Ecn::Off
    }

    fn signal(&self, _: &Site) -> CongestionSignal {
        CongestionSignal::Delay
    }

    fn start(&self, start: Start) -> Swift {
        Swift {
            target: Target::new(self, &start),
            cwnd: (start.window_bytes as f64 / start.mss_bytes as f64).clamp(self.min_cwnd, self.max_cwnd),
            rtt: start.rtt,
            own: None,
            rtt_least: None,
            decreased: None,
            retransmit_count: 0,
            start,
            config: self.clone(),
        }
    }
}

/// A flow's window.
#[derive(Clone, Debug)]
pub struct Swift {
    config: Config,
    start: Start,
    target: Target,
    /// In packets.
    cwnd: f64,
    /// The newest round trip.
    rtt: Duration,
    /// What it would be on a network with its AQ's rate, if it has an AQ.
    own: Option<Duration>,
    rtt_least: Option<Duration>,
    /// When the window last shrank: t_last_decrease.
    decreased: Option<Time>,
    /// Timeouts since the last acknowledgement: retransmit_cnt.
    retransmit_count: u32,
}

impl Control for Swift {
    /// Algorithm 1, "On Receiving ACK". An acknowledgement of nothing new has no delay.
    fn on_ack(&mut self, ack: &Ack) {
        self.retransmit_count = 0;
        self.rtt_least = ack.rtt.into_iter().chain(self.rtt_least).min();
        let Some(rtt) = ack.delay else { return };
        self.rtt = rtt;
        let own = |queued| self.rtt_least.unwrap_or(rtt) + queued;
        self.own = ack.virtual_delay.map(own);
        let delay = self.own.unwrap_or(rtt).ps() as f64;
        let target = self.target.ps(self.cwnd, ack.hops);
        if delay >= target {
            let excess = (delay - target) / delay;
            self.decrease(ack.now, self.config.beta * excess);
        } else if ack.limited {
            let acked = (ack.delivered_bytes / self.start.mss_bytes) as f64;
            self.cwnd = (self.cwnd + self.config.ai * acked / self.cwnd.max(1.0)).min(self.config.max_cwnd);
        }
    }

    /// Algorithm 1, "On Retransmit Timeout" and "On Fast Recovery".
    fn on_congestion(&mut self, congestion: &Congestion) {
        if let Signal::Timeout { .. } = congestion.signal {
            self.retransmit_count += 1;
            if self.retransmit_count >= self.config.retx_reset_threshold {
                self.cwnd = self.config.min_cwnd;
                self.decreased = Some(congestion.now);
                return;
            }
        }
        self.decrease(congestion.now, self.config.max_mdf);
    }

    fn window_bytes(&self) -> u64 {
        (self.cwnd * self.start.mss_bytes as f64) as u64
    }

    /// Below one packet, one packet every `rtt / cwnd` (section 3.4). Under an AQ, a window in the delay that it would
    /// have on a network with the AQ's rate.
    fn pacing(&self) -> Option<Rate> {
        if self.cwnd >= 1.0 && self.own.is_none() {
            return None;
        }
        let bits = self.start.packet_bytes as f64 * 8.0;
        let rate = bits * self.cwnd * 1e12 / self.own.unwrap_or(self.rtt).ps().max(1) as f64;
        Some(Rate::from_bps((rate as u64).max(1)))
    }
}

impl Swift {
    /// Reduces the window by a share, at most `max_mdf`, unless it was reduced within the last round trip.
    ///
    /// The paper's listing records the time whenever `cwnd <= cwnd_prev`, so even when an acknowledgement leaves the
    /// window unchanged because it may not decrease yet; above the target it might then never decrease. Here only a
    /// decrease counts.
    fn decrease(&mut self, now: Time, share: f64) {
        if self.decreased.is_some_and(|at| now.since(at) < self.rtt) {
            return;
        }
        self.cwnd = (self.cwnd * (1.0 - share.min(self.config.max_mdf))).max(self.config.min_cwnd);
        self.decreased = Some(now);
    }
}

/// The target delay, in picoseconds (section 3.5).
#[derive(Clone, Copy, Debug)]
struct Target {
    base: f64,
    hop: f64,
    alpha: f64,
    beta: f64,
    range: f64,
}

impl Target {
    fn new(config: &Config, start: &Start) -> Target {
        // On the network of its AQ's rate (above): virtual delay is never less than a packet's own time there.
        let full = start.virtual_serialisation.ps() as f64;
        let unloaded = start.rtt.ps() as f64 + full;
        let or = |set: Option<Duration>, default: f64| set.map_or(default, |set| set.ps() as f64);
        let range = or(config.fs_range, 3.0 * unloaded);
        let alpha = range / (1.0 / config.fs_min_cwnd.sqrt() - 1.0 / config.fs_max_cwnd.sqrt());
        Target {
            base: or(config.base_target, start.base_rtt.ps() as f64 + full + unloaded / 4.0),
            hop: or(config.hop_target, start.hop_rtt.ps() as f64),
            alpha,
            beta: -alpha / config.fs_max_cwnd.sqrt(),
            range,
        }
    }

    #[inline]
    fn ps(&self, cwnd: f64, hops: u8) -> f64 {
        let flow = (self.alpha / cwnd.sqrt() + self.beta).min(self.range).max(0.0);
        self.base + self.hop * f64::from(hops) + flow
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1000;

    /// The target is 25 us, whatever the window and the path.
    fn fixed() -> Config {
        let zero = Some(Duration::ZERO);
        Config { base_target: Some(Duration::from_us(25)), hop_target: zero, fs_range: zero, ..Config::default() }
    }

    fn flow(config: &Config, cwnd: f64) -> Swift {
        Swift { cwnd, ..config.start(Start::of(10, MSS)) }
    }

    /// One for a packet that took `us`, at `at_us`.
    fn ack(at_us: u64, us: u64) -> Ack {
        let rtt = Some(Duration::from_us(us));
        Ack { now: Time::from_us(at_us), rtt, delay: rtt, ..Ack::of(MSS) }
    }

    #[test]
    fn a_round_trip_below_the_target_adds_ai() {
        for (ai, cwnd) in [(1.0, 10.0), (0.5, 40.0), (2.0, 8.0)] {
            let mut flow = flow(&Config { ai, ..fixed() }, cwnd);
            for _ in 0..cwnd as u32 {
                flow.on_ack(&ack(1, 20));
            }
            // Each of `cwnd` steps is from ai / (cwnd + ai) to ai / cwnd.
            let grown = flow.cwnd - cwnd;
            assert!(grown <= ai && grown >= ai * cwnd / (cwnd + ai), "{ai} {cwnd}: {grown}");
        }
    }

    #[test]
    fn below_one_packet_each_acknowledgement_adds_ai_whole() {
        let mut flow = flow(&Config { ai: 0.1, ..fixed() }, 0.25);
        flow.on_ack(&ack(1, 20));
        assert_eq!(flow.cwnd, 0.35);
        // Three packets at once, above one: 3 x 0.1 / 2.
        let mut flow = self::flow(&Config { ai: 0.1, ..fixed() }, 2.0);
        flow.on_ack(&Ack { delivered_bytes: 3 * MSS, ..ack(1, 20) });
        assert!((flow.cwnd - 2.15).abs() < 1e-12);
    }

    #[test]
    fn a_window_that_was_not_full_does_not_grow_and_none_grows_past_its_maximum() {
        let mut flow = flow(&Config { max_cwnd: 11.0, ..fixed() }, 10.0);
        flow.on_ack(&Ack { limited: false, ..ack(1, 20) });
        assert_eq!(flow.cwnd, 10.0);
        for _ in 0..100 {
            flow.on_ack(&ack(1, 20));
        }
        assert_eq!(flow.cwnd, 11.0);
    }

    #[test]
    fn the_window_shrinks_with_the_excess_and_by_half_at_most() {
        // Target 25 us, beta 0.8: 1 - 0.8 x (delay - 25) / delay.
        for (delay, left) in [(25, 1.0), (50, 0.6), (40, 0.7), (100, 0.5), (10_000, 0.5)] {
            let mut flow = flow(&fixed(), 10.0);
            flow.on_ack(&ack(1, delay));
            assert!((flow.cwnd - 10.0 * left).abs() < 1e-12, "{delay} us: {}", flow.cwnd);
        }
    }

    #[test]
    fn the_window_shrinks_once_a_round_trip() {
        let mut flow = flow(&fixed(), 10.0);
        // 50 us late each 10 us: at 0, 50 and 100 us the window falls to 0.6 of it.
        for at in 0..=10 {
            flow.on_ack(&ack(10 * at, 50));
            let falls = at / 5 + 1;
            assert!((flow.cwnd - 10.0 * 0.6f64.powi(falls as i32)).abs() < 1e-9, "at {at}0 us: {}", flow.cwnd);
        }
        // A loss within the same round trip is answered already; one after it is not.
        let before = flow.cwnd;
        let loss = |at| Congestion { now: Time::from_us(at), ..Congestion::of(Signal::Loss, MSS) };
        flow.on_congestion(&loss(149));
        assert_eq!(flow.cwnd, before);
        flow.on_congestion(&loss(150));
        assert_eq!(flow.cwnd, before / 2.0);
    }

    #[test]
    fn timeouts_halve_the_window_and_the_fifth_in_a_row_leaves_the_least() {
        let mut flow = flow(&fixed(), 16.0);
        let timeout =
            |at| Congestion { now: Time::from_us(at), ..Congestion::of(Signal::Timeout { again: at > 1_000 }, MSS) };
        let mut windows = Vec::new();
        for ms in 1..=5 {
            flow.on_congestion(&timeout(1_000 * ms));
            windows.push(flow.cwnd);
        }
        assert_eq!(windows, [8.0, 4.0, 2.0, 1.0, 0.001]);
        // An acknowledgement ends the row, whatever it brings.
        flow.on_ack(&Ack { delay: None, rtt: None, ..ack(5_500, 20) });
        assert_eq!((flow.cwnd, flow.retransmit_count), (0.001, 0));
        flow.on_ack(&ack(5_600, 20));
        assert_eq!(flow.cwnd, 1.001);
        flow.on_congestion(&timeout(6_000));
        assert_eq!(flow.cwnd, 0.5005);
    }

    #[test]
    fn the_target_is_the_paper_s() {
        let us = |us| Some(Duration::from_us(us));
        let config = Config { base_target: us(25), hop_target: us(2), fs_range: us(100), ..Config::default() };
        let flow = flow(&config, 10.0);
        // Section 3.5: alpha = 100 us / (1 / sqrt(0.1) - 1 / sqrt(100)), and beta = -alpha / sqrt(100).
        let alpha = 100.0 / (10f64.sqrt() - 0.1);
        for (cwnd, hops, scaled) in [
            (0.05, 0, 100.0),
            (0.1, 1, 100.0),
            (1.0, 1, alpha * (1.0 - 0.1)),
            (4.0, 3, alpha * (0.5 - 0.1)),
            (25.0, 5, alpha * (0.2 - 0.1)),
            (100.0, 3, 0.0),
            (400.0, 3, 0.0),
        ] {
            let wanted = 25.0 + 2.0 * f64::from(hops) + scaled;
            let target = flow.target.ps(cwnd, hops) * 1e-6;
            assert!((target - wanted).abs() < 1e-9, "cwnd {cwnd}, {hops} hops: {target}, not {wanted}");
        }
    }

    #[test]
    fn targets_that_are_not_set_follow_from_the_unloaded_round_trip() {
        // 10 us over one switch, of which the switch makes 2.
        let flow = flow(&Config::default(), 10.0);
        assert_eq!(flow.target.ps(100.0, 1) * 1e-6, 12.5);
        assert_eq!(flow.target.ps(100.0, 3) * 1e-6, 16.5);
        assert!((flow.target.ps(0.1, 1) * 1e-6 - 42.5).abs() < 1e-9);
    }

    #[test]
    fn targets_allow_for_a_packet_s_own_time_at_its_aq_s_rate() {
        // An AQ of 10.4 Mbps takes 800 us for a packet of 1,040 B: unloaded, a round trip of 10 us is one of 810 there.
        let start = Start { virtual_serialisation: Duration::from_us(800), ..Start::of(10, MSS) };
        let mut flow = Swift { cwnd: 100.0, ..Config::default().start(start) };
        assert_eq!(flow.target.ps(100.0, 1) * 1e-6, 8.0 + 800.0 + 202.5 + 2.0);
        assert!((flow.target.ps(0.1, 1) * 1e-6 - 1_012.5 - 2_430.0).abs() < 1e-9);
        // What finds the AQ empty opens the window; twice the time of two packets ahead closes it.
        let tagged =
            |at, virtual_us| Ack { virtual_delay: Some(Duration::from_us(virtual_us)), hops: 1, ..ack(at, 10) };
        flow.on_ack(&tagged(1_000, 800));
        assert!(flow.cwnd > 100.0);
        flow.on_ack(&tagged(2_000, 1_600));
        assert!(flow.cwnd < 100.0);
        // Targets that are set are kept.
        let flow = fixed().start(start);
        assert_eq!(flow.target.ps(1.0, 1) * 1e-6, 25.0);
    }

    #[test]
    fn virtual_delay_takes_the_place_of_the_queue_s() {
        let mut flow = flow(&fixed(), 10.0);
        flow.on_ack(&ack(0, 12));
        let grown = flow.cwnd;
        // The round trip, 500 us, is others' doing: 12 us of path and 10 of virtual delay are below the target of 25.
        let tagged = |at, virtual_us| Ack { virtual_delay: Some(Duration::from_us(virtual_us)), ..ack(at, 500) };
        flow.on_ack(&tagged(1_000, 10));
        assert!((flow.cwnd - (grown + 1.0 / grown)).abs() < 1e-12);
        // 12 and 38 are 50: twice the target.
        let before = flow.cwnd;
        flow.on_ack(&tagged(2_000, 38));
        assert!((flow.cwnd - 0.6 * before).abs() < 1e-12);
        // The round trip in which it may not shrink again is the real one.
        let before = flow.cwnd;
        flow.on_ack(&tagged(2_499, 38));
        assert_eq!(flow.cwnd, before);
        flow.on_ack(&tagged(2_500, 38));
        assert!((flow.cwnd - 0.6 * before).abs() < 1e-12);
    }

    #[test]
    fn under_an_aq_a_window_takes_its_own_delay() {
        let mut flow = flow(&fixed(), 4.0);
        flow.on_ack(&Ack { virtual_delay: Some(Duration::from_us(4)), ..ack(0, 20) });
        // 4 1/4 packets in 20 + 4 us.
        let gap = flow.pacing().unwrap().transmit(MSS + 40).us_f64();
        assert!((gap / (24.0 / 4.25) - 1.0).abs() < 1e-5, "{gap} us");
    }

    #[test]
    fn half_a_packet_is_one_every_two_round_trips() {
        for (cwnd, us) in [(0.5, 40), (0.1, 200), (0.001, 20_000)] {
            let mut flow = flow(&fixed(), 4.0);
            flow.on_ack(&ack(0, 20));
            assert_eq!(flow.pacing(), None);
            flow.cwnd = cwnd;
            let gap = flow.pacing().unwrap().transmit(MSS + 40).us_f64();
            // To the bit a second of its rate.
            assert!((gap / us as f64 - 1.0).abs() < 1e-5, "{cwnd}: {gap} us");
            assert_eq!(flow.window_bytes(), (cwnd * MSS as f64) as u64);
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused_by_name() {
        let refused = |config: Config| config.check().unwrap_err().key;
        let config = Config::default;
        assert_eq!(config().check(), Ok(()));
        assert_eq!(refused(Config { ai: 0.0, ..config() }), "ai");
        assert_eq!(refused(Config { beta: f64::NAN, ..config() }), "beta");
        assert_eq!(refused(Config { max_mdf: 1.0, ..config() }), "max_mdf");
        assert_eq!(refused(Config { base_target: Some(Duration::ZERO), ..config() }), "base_target");
        assert_eq!(refused(Config { fs_min_cwnd: 0.0, ..config() }), "fs_min_cwnd");
        assert_eq!(refused(Config { fs_max_cwnd: 0.1, ..config() }), "fs_max_cwnd");
        assert_eq!(refused(Config { min_cwnd: 0.0, ..config() }), "min_cwnd");
        assert_eq!(refused(Config { max_cwnd: 1e6, ..config() }), "max_cwnd");
        assert_eq!(refused(Config { retx_reset_threshold: 0, ..config() }), "retx_reset_threshold");
    }
}
