use fabric::Tier;
use units::Duration;

/// Load of the links of each tier, by interval.
pub(crate) struct Usage {
    interval_ps: u64,
    tiers: [Bits; 3],
}

/// Bits by interval. `within` has the rates that began or ended there. A rate that covers whole intervals is added in
/// `whole` where it begins and subtracted where it ends.
#[derive(Default)]
struct Bits {
    within: Vec<f64>,
    whole: Vec<f64>,
}

/// The tiers: links between switches away from hosts, those towards hosts, and links to hosts.
pub(crate) const TIERS: [&str; 3] = ["up", "down", "to_host"];

/// Index of a link in [`TIERS`]; `None` for a link from a host.
pub(crate) fn tier_index(tier: Tier) -> Option<usize> {
    match tier {
        Tier::FromHost => None,
        Tier::Up => Some(0),
        Tier::Down => Some(1),
        Tier::ToHost => Some(2),
    }
}

impl Usage {
    /// With this interval between samples; zero takes none.
    pub fn new(interval: Duration) -> Usage {
        Usage { interval_ps: interval.ps(), tiers: Default::default() }
    }

    /// Adds a flow's rate from `from` to `to` (in picoseconds), over this number of links of each tier.
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

    /// For each interval complete by `end_ps`: its end, and the bits of each tier.
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
