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

use node::EndpointParams;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Duration, Problem, Rate, Time};

use super::control::{Ack, Algorithm, Congestion, Control, Ecn, Signal, Start};
use super::header::WINDOW_SEGMENTS;
use crate::target_delay::{Gains, Target, Wanted};
use contract::{About, CongestionSignal};

/// Configuration of Swift, by the paper's names. Windows are in packets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, node::Saved)]
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

    fn signal(&self, _: &EndpointParams) -> CongestionSignal {
        CongestionSignal::Delay
    }

    fn start(&self, start: Start) -> Swift {
        Swift {
            target: self.target(&start),
            gains: self.gains(),
            cwnd: (start.window_bytes as f64 / start.mss_bytes as f64).clamp(self.min_cwnd, self.max_cwnd),
            rtt: start.rtt,
            rtt_most: start.rtt,
            own: None,
            rtt_least: None,
            decreased: None,
            retransmit_count: 0,
            start,
            config: self.clone(),
        }
    }
}

impl Config {
    /// On the network of a flow's AQ's rate (above): virtual delay is never less than a packet's own time there.
    fn target(&self, start: &Start) -> Target {
        let full = start.virtual_serialisation.ps() as f64;
        let wanted = Wanted {
            base: self.base_target,
            hop: self.hop_target,
            range: self.fs_range,
            min_window: self.fs_min_cwnd,
            max_window: self.fs_max_cwnd,
        };
        wanted.on(start.rtt.ps() as f64 + full, start.base_rtt.ps() as f64 + full, start.hop_rtt.ps() as f64)
    }

    fn gains(&self) -> Gains {
        Gains {
            increase: self.ai,
            decrease: self.beta,
            decrease_max: self.max_mdf,
            window_min: self.min_cwnd,
            window_max: self.max_cwnd,
        }
    }
}

/// A flow's window.
#[derive(Clone, Debug, node::State)]
pub struct Swift {
    #[state(skip("settings"))]
    config: Config,
    start: Start,
    #[state(skip("settings"))]
    target: Target,
    #[state(skip("settings"))]
    gains: Gains,
    /// In packets.
    cwnd: f64,
    /// The newest round trip.
    rtt: Duration,
    /// The longest so far. A decrease that is longer ago than this no longer prevents the next one.
    rtt_most: Duration,
    /// What it would be on a network with its AQ's rate, if it has an AQ.
    own: Option<Duration>,
    rtt_least: Option<Duration>,
    /// When the window last shrank: t_last_decrease.
    #[state(each(later(self.rtt_most, expired)))]
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
        (self.rtt, self.rtt_most) = (rtt, self.rtt_most.max(rtt));
        let own = |queued| self.rtt_least.unwrap_or(rtt) + queued;
        self.own = ack.virtual_delay.map(own);
        let delay = self.own.unwrap_or(rtt).ps() as f64;
        let target = self.target.ps(self.cwnd, ack.hops);
        if delay >= target {
            self.decrease(ack.now, self.gains.excess(delay, target));
        } else if ack.limited {
            let acked = (ack.delivered_bytes / self.start.mss_bytes) as f64;
            self.cwnd = self.gains.grown(self.cwnd, acked);
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
        self.cwnd = self.gains.shrunk(self.cwnd, share);
        self.decreased = Some(now);
    }
}

#[cfg(test)]
mod tests;
