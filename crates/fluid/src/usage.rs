use fabric::Tier;
use units::Duration;

/// How much passes the links of each tier, interval by interval.
pub(crate) struct Usage {
    interval_ps: u64,
    tiers: [Bits; 3],
}

/// Bits by interval: `within` those of rates that began or ended there, and a rate that lasts all of some intervals is added where it
/// begins in `whole` and subtracted where it ends.
#[derive(Default)]
struct Bits {
    within: Vec<f64>,
    whole: Vec<f64>,
}

/// The tiers that are told apart: links between switches away from hosts and towards them, and to hosts.
pub(crate) const TIERS: [&str; 3] = ["up", "down", "to_host"];

/// Which of [`TIERS`] a link is counted in; none for one that leaves a host.
pub(crate) fn tier_index(tier: Tier) -> Option<usize> {
    match tier {
        Tier::FromHost => None,
        Tier::Up => Some(0),
        Tier::Down => Some(1),
        Tier::ToHost => Some(2),
    }
}

impl Usage {
    /// Samples an interval apart, none if it is zero.
    pub fn new(interval: Duration) -> Usage {
        Usage { interval_ps: interval.ps(), tiers: Default::default() }
    }

    /// From `from` to `to` (in picoseconds) a flow has a rate, and passes so many links of each tier.
    pub fn add(&mut self, from: u64, to: u64, rate_bps: f64, hops: [f64; 3]) {
        let interval = self.interval_ps;
        if interval == 0 || from >= to {
            return;
        }
        let (first, last) = ((from / interval) as usize, (to / interval) as usize);
        for (tier, hops) in self.tiers.iter_mut().zip(hops).filter(|(_, hops)| *hops > 0.0) {
            if tier.within.len() <= last {
                tier.within.resize(last + 1, 0.0);
                tier.whole.resize(last + 1, 0.0);
            }
            let bits = |span: u64| rate_bps * hops * span as f64 * 1e-12;
            if first == last {
                tier.within[first] += bits(to - from);
                continue;
            }
            tier.within[first] += bits((first as u64 + 1) * interval - from);
            tier.within[last] += bits(to - last as u64 * interval);
            tier.whole[first + 1] += bits(interval);
            tier.whole[last] -= bits(interval);
        }
    }

    /// By interval that had ended at `end`, the bits of each tier, and when it ended.
    pub fn samples(&self, end_ps: u64) -> Vec<(u64, [f64; 3])> {
        let count = end_ps.checked_div(self.interval_ps).unwrap_or(0);
        let mut whole = [0.0; 3];
        let sample = |index: u64| {
            let at = |bits: &[f64]| bits.get(index as usize).copied().unwrap_or(0.0);
            let bits = std::array::from_fn(|tier| {
                whole[tier] += at(&self.tiers[tier].whole);
                f64::max(0.0, at(&self.tiers[tier].within) + whole[tier])
            });
            ((index + 1) * self.interval_ps, bits)
        };
        (0..count).map(sample).collect()
    }
}
