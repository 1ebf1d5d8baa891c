use fabric::Tier;
use units::Duration;

/// Load of the links of each tier, by interval.
pub(crate) struct Usage {
    interval_ps: u64,
    /// Most intervals. When more would be needed, every two become one.
    most: u64,
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

impl Bits {
    /// Every two intervals become one.
    fn halve(&mut self) {
        let mut whole = 0.0;
        let all: Vec<f64> = self
            .within
            .iter()
            .zip(&self.whole)
            .map(|(within, change)| {
                whole += change;
                within + whole
            })
            .collect();
        self.within = all.chunks(2).map(|pair| pair.iter().sum()).collect();
        self.whole = vec![0.0; self.within.len()];
    }
}

impl Usage {
    /// With this interval between samples (zero takes none) and at most `rows_max` rows.
    pub fn new(interval: Duration, rows_max: u64) -> Usage {
        let most = (rows_max / TIERS.len() as u64).max(2);
        Usage { interval_ps: interval.ps(), most, tiers: Default::default() }
    }

    /// The interval between samples, longer than at first if there were many.
    pub fn interval(&self) -> Duration {
        Duration::from_ps(self.interval_ps)
    }

    /// Makes intervals longer until there are few enough up to a time.
    fn widen(&mut self, until: u64) {
        while self.interval_ps > 0 && until / self.interval_ps >= self.most {
            self.interval_ps = self.interval_ps.saturating_mul(2);
            self.tiers.iter_mut().for_each(Bits::halve);
        }
    }

    /// Adds a flow's rate from `from` to `to` (in picoseconds), over this number of links of each tier.
    pub fn add(&mut self, from: u64, to: u64, rate_bps: f64, hops: [f64; 3]) {
        if self.interval_ps == 0 || from >= to {
            return;
        }
        self.widen(to);
        let interval = self.interval_ps;
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
    pub fn samples(&mut self, end_ps: u64) -> Vec<(u64, [f64; 3])> {
        self.widen(end_ps);
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

#[cfg(test)]
mod tests {
    use super::*;

    /// 10 bits a second over one link of a tier for 7 s, and 4 from 2 s to 3.5 s over another.
    fn used(interval: Duration, rows_max: u64) -> (Duration, Vec<(u64, [f64; 3])>) {
        let second = 1_000_000_000_000;
        let mut usage = Usage::new(interval, rows_max);
        usage.add(0, 7 * second, 10.0, [1.0, 0.0, 0.0]);
        usage.add(2 * second, 7 * second / 2, 4.0, [0.0, 0.0, 1.0]);
        let samples = usage.samples(8 * second);
        (usage.interval(), samples)
    }

    #[test]
    fn longer_intervals_have_the_same_bits() {
        let (interval, samples) = used(Duration::from_ms(1_000), u64::MAX);
        assert_eq!((interval, samples.len()), (Duration::from_ms(1_000), 8));
        assert_eq!(samples[2].1, [10.0, 0.0, 4.0]);
        let (interval, samples) = used(Duration::from_ps(7), 15);
        assert!(samples.len() <= 5 && interval.ps() > 1_600_000_000_000, "{interval} {}", samples.len());
        let sum = |samples: &[(u64, [f64; 3])], tier: usize| samples.iter().map(|of| of.1[tier]).sum::<f64>();
        assert!((sum(&samples, 0) - 70.0).abs() < 1e-6 && (sum(&samples, 2) - 6.0).abs() < 1e-6, "{samples:?}");
    }
}
