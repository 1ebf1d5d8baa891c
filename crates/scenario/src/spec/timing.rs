//! How hosts and clocks differ from ideal ones.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Duration, Problem, Rate, Tolerance};

use super::{FastForward, Scenario};

/// How hosts and clocks keep time: see docs/concepts.md.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Timing {
    /// All hosts are equally fast, and no clock is fast or slow: for closed forms, for the figures of papers that
    /// assume it, and for `fast_forward = "exact"`.
    Ideal,
    /// As in a real network: `host.jitter` is the time of a full packet on the host's link, and `link.clock_tolerance`
    /// is 100ppm.
    #[default]
    Real,
}

impl Timing {
    pub(super) fn is_default(&self) -> bool {
        *self == Timing::default()
    }
}

/// The tolerance of transmit clocks that IEEE 802.3 allows, such as 10GBASE-R's 10.3125 GBd +/- 100 ppm.
const OF_ETHERNET: Tolerance = Tolerance::from_ppm(100);

/// More than any network's: the slowest clocks of serial lines.
const TOLERANCE_MOST: Tolerance = Tolerance::from_ppm(10_000);

impl Scenario {
    /// The longest random time that a host takes for a packet that comes by a link of this rate.
    pub fn jitter(&self, rate: Rate) -> Duration {
        match (self.host.jitter, self.timing) {
            (Some(jitter), _) => jitter,
            (None, Timing::Ideal) => Duration::ZERO,
            (None, Timing::Real) => rate.transmit(self.host.mtu.get()),
        }
    }

    /// By how much transmit clocks may be fast or slow.
    pub fn clock_tolerance(&self) -> Tolerance {
        match (self.link.clock_tolerance, self.timing) {
            (Some(tolerance), _) => tolerance,
            (None, Timing::Ideal) => Tolerance::ZERO,
            (None, Timing::Real) => OF_ETHERNET,
        }
    }

    /// What a run skips: nothing where all that recurs is asked for, and nothing does since hosts or clocks differ.
    pub fn skips(&self) -> FastForward {
        match self.fast_forward == FastForward::Exact && self.never_recurs().is_some() {
            true => FastForward::Off,
            false => self.fast_forward,
        }
    }

    /// The key by which hosts or clocks differ, so that no state recurs. With `link.llr` hosts take no random time.
    pub fn never_recurs(&self) -> Option<&'static str> {
        let jitters = self.link.llr.is_none() && self.jitter(Rate::from_gbps(1)) > Duration::ZERO;
        let drifts = self.clock_tolerance() > Tolerance::ZERO;
        jitters.then_some("host.jitter").or(drifts.then_some("link.clock_tolerance"))
    }

    /// The seed of the choice among paths.
    pub fn path_seed(&self) -> u64 {
        self.switch.path_seed.unwrap_or(self.seed)
    }

    pub(super) fn check_timing(&self) -> Result<(), Problem> {
        if let Some(tolerance) = self.link.clock_tolerance.filter(|&of| of > TOLERANCE_MOST) {
            let message = format!("{tolerance} is too much for a clock; at most {TOLERANCE_MOST}");
            return Err(Problem::new("link.clock_tolerance", message));
        }
        Ok(())
    }
}
