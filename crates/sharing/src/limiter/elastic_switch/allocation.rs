//! Rate allocation (RA): what a pair sends above its guarantee.
//!
//! A congestion control like TCP's, weighted by the guarantee, whose rate never falls below the guarantee. On
//! congestion the rate is cut. It then grows along CUBIC's curve in units of the guarantee (RFC 9438; after Seawall):
//! fast up to near the rate at which congestion was met, slowly past it, then faster. Two mechanisms make it gentler
//! than TCP, so that pairs within their guarantees find capacity. *Hold-increase*: after congestion a pair waits before
//! it grows, longer for a smaller guarantee. *Rate-caution*: the further a pair is above its guarantee, the slower it
//! grows.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Bytes, Duration, Problem, Rate};

/// How pairs probe for bandwidth that no guarantee claims.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, node::Saved)]
#[serde(deny_unknown_fields, default)]
pub struct Probing {
    /// Time between adaptations of rates and reports of congestion. Our choice: a few round trips of a data center.
    /// Default: 500us.
    #[schemars(extend("x-least" = "1us"))]
    pub interval: Duration,
    /// Factor of the rate after congestion (RFC 9438, section 4.6). Default: 0.7.
    pub decrease: f64,
    /// Time that a pair without congestion takes to double its rate from its guarantee, without rate-caution. Our
    /// choice: the period of guarantee partitioning. Default: 15ms.
    #[schemars(extend("x-least" = "1us"))]
    pub growth: Duration,
    /// Hold-increase: after congestion a pair waits as long as this many bytes take at its guarantee. Our choice: 5 ms
    /// at 1 Gbps. Default: 625kB.
    pub hold_increase: Bytes,
    /// Rate-caution c: at x times the guarantee, growth is slower by 1 + c (x - 1). Our choice. Default: 1.
    pub rate_caution: f64,
}

impl Default for Probing {
    fn default() -> Probing {
        Probing {
            interval: Duration::from_us(500),
            decrease: 0.7,
            growth: Duration::from_ms(15),
            hold_increase: Bytes(625_000),
            rate_caution: 1.0,
        }
    }
}

impl Probing {
    /// Checks what the types can't express.
    pub fn check(&self) -> Result<(), Problem> {
        let problem = |key: &str, message: String| Err(Problem::new(key, message));
        super::check_duration("interval", self.interval)?;
        super::check_duration("growth", self.growth)?;
        if !(0.0..=1.0).contains(&self.decrease) {
            return problem("decrease", format!("{} is not between 0 (back to the guarantee) and 1", self.decrease));
        }
        if self.hold_increase > Bytes(1_000_000_000_000) {
            return problem("hold_increase", format!("{} is too large; at most 1TB", self.hold_increase));
        }
        if !(0.0..=1000.0).contains(&self.rate_caution) {
            return problem("rate_caution", format!("{} is not between 0 (none) and 1000", self.rate_caution));
        }
        Ok(())
    }
}

/// Rate allocation of one pair.
#[derive(Clone, Debug, Default, node::Saved)]
pub(super) struct Allocation {
    rate: Rate,
    /// The rate at which congestion was last met, and the rate after the cut.
    peak: Rate,
    base: Rate,
    /// Position on the curve.
    grown: Duration,
    hold: Duration,
    /// Number of intervals for which signs of congestion still concern packets sent before the last cut.
    deaf: u8,
}

/// Packets sent before a cut reach the receiver up to one trip later, are in its report up to an interval after that,
/// and count here at the end of an interval. There is one cut for all of them, as TCP cuts once in a round trip.
const DEAF_INTERVALS: u8 = 2;

/// The signals of a pair since its rate was last adapted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Met {
    pub guarantee: Rate,
    pub congested: bool,
    /// Whether it sent as much as allowed. Only then may it try a higher rate.
    pub used: bool,
}

impl Allocation {
    /// The allowed rate, never below the guarantee.
    pub fn rate(&self, guarantee: Rate) -> Rate {
        self.rate.max(guarantee)
    }

    /// An interval has ended. The rate is at most that of the link.
    pub fn adapt(&mut self, probing: &Probing, link: Rate, met: Met) {
        let guarantee = met.guarantee.max(Rate::from_bps(1));
        if self.rate < guarantee {
            *self = Allocation { rate: guarantee, peak: guarantee, base: guarantee, ..*self };
            self.grown = Duration::ZERO;
        }
        let heard = met.congested && self.deaf == 0;
        self.deaf = self.deaf.saturating_sub(1);
        if heard {
            self.deaf = DEAF_INTERVALS;
            self.peak = self.rate;
            self.rate = self.rate.mul_f64(probing.decrease).max(guarantee);
            self.base = self.rate;
            self.grown = Duration::ZERO;
            self.hold = guarantee.transmit(probing.hold_increase.get());
        } else if self.hold > Duration::ZERO {
            self.hold = self.hold.saturating_sub(probing.interval);
        } else if met.used && !met.congested {
            let unit = guarantee.bps() as f64;
            let above = self.rate.bps() as f64 / unit - 1.0;
            self.grown += probing.interval.mul_f64(1.0 / (1.0 + probing.rate_caution * above));
            let plateau = libm::cbrt(self.peak.bps().saturating_sub(self.base.bps()) as f64 / unit);
            let x = self.grown.ps() as f64 / probing.growth.ps() as f64 - plateau;
            let goal = self.peak.bps() as f64 + unit * (x * x * x);
            self.rate = self.rate.max(Rate::from_bps(goal as u64).min(link));
        }
    }
}

#[cfg(test)]
mod tests;
