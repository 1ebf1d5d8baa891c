use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Hashes two words into one: the finaliser of SplitMix64 over their sum with an odd constant.
///
/// It has no secret and is cheap, so any node can compute any other's values. Random streams, digests and per-switch
/// hash seeds are derived with it.
#[inline]
pub const fn mix(a: u64, b: u64) -> u64 {
    let mut z = a.wrapping_add(b.wrapping_mul(0x9E37_79B9_7F4A_7C15)).wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// A random stream (xoshiro256++) that depends on (seed, entity, purpose) alone.
///
/// Draws use integer arithmetic and `libm`, so they are equal on every machine.
#[derive(Clone, Debug)]
pub struct Stream(Xoshiro256PlusPlus);

impl Stream {
    /// The stream of `entity` for `purpose` (a short name, such as "spray") under the run's `seed`.
    pub fn new(seed: u64, entity: u64, purpose: &str) -> Stream {
        let purpose = purpose.bytes().fold(0u64, |hash, byte| mix(hash, u64::from(byte)));
        Stream(Xoshiro256PlusPlus::seed_from_u64(mix(mix(seed, entity), purpose)))
    }

    /// 64 random bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.0.random()
    }

    /// Uniform in `0..n`, by multiply-shift: bias below n / 2^64. `n` must not be zero.
    #[inline]
    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(n)) >> 64) as u64
    }

    /// Uniform in [0, 1), 53 bits.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// True with probability `p`.
    #[inline]
    pub fn chance(&mut self, p: f64) -> bool {
        self.unit() < p
    }

    /// Exponential with the given mean.
    #[inline]
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -libm::log(1.0 - self.unit()) * mean
    }

    /// Number of failures before the first success of trials with success probability `p`: geometric, from 0 on. `p`
    /// must be above 0 and below 1.
    pub fn failures_before(&mut self, p: f64) -> u64 {
        // Values beyond 2^64 saturate: so does `as`.
        (libm::log(1.0 - self.unit()) / libm::log1p(-p)) as u64
    }

    /// A uniformly random order, in place (Fisher-Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last as u64 + 1) as usize);
        }
    }

    /// A uniformly chosen element; `None` for an empty slice.
    pub fn choose<'a, T>(&mut self, items: &'a [T]) -> Option<&'a T> {
        (!items.is_empty()).then(|| &items[self.below(items.len() as u64) as usize])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trials_before_a_success_have_their_mean_and_their_first_share() {
        let mut stream = Stream::new(1, 1, "trials");
        for p in [0.5, 0.01, 1e-6] {
            let draws: Vec<u64> = (0..20_000).map(|_| stream.failures_before(p)).collect();
            let mean = draws.iter().map(|&draw| draw as f64).sum::<f64>() / 2e4;
            // Mean (1 - p) / p, standard deviation sqrt(1 - p) / p; four standard errors of 20,000 draws.
            let (due, slack) = ((1.0 - p) / p, 4.0 * (1.0 - p).sqrt() / p / 2e4f64.sqrt());
            assert!((mean - due).abs() <= slack, "{p}: {mean} for {due}");
            let none = draws.iter().filter(|&&draw| draw == 0).count() as f64;
            assert!((none - 2e4 * p).abs() <= 4.0 * (2e4 * p * (1.0 - p)).sqrt() + 1.0, "{p}: {none} at once");
        }
    }

    #[test]
    fn streams_are_functions_of_seed_entity_and_purpose() {
        let draw = |seed, entity, purpose| Stream::new(seed, entity, purpose).bits();
        assert_eq!(draw(1, 2, "spray"), draw(1, 2, "spray"));
        let others = [draw(2, 2, "spray"), draw(1, 3, "spray"), draw(1, 2, "grant"), draw(2, 1, "spray")];
        assert!(others.iter().all(|&other| other != draw(1, 2, "spray")));
    }

    #[test]
    fn moments_are_those_of_the_distributions() {
        let mut stream = Stream::new(7, 0, "test");
        let n = 100_000;
        let mean = |f: &mut dyn FnMut() -> f64| (0..n).map(|_| f()).sum::<f64>() / f64::from(n);
        // Four standard errors: uniform sd 0.289, exponential sd = mean.
        assert!((mean(&mut || stream.unit()) - 0.5).abs() < 4.0 * 0.289 / f64::from(n).sqrt());
        assert!((mean(&mut || stream.exponential(3.0)) - 3.0).abs() < 4.0 * 3.0 / f64::from(n).sqrt());
    }

    proptest::proptest! {
        #[test]
        fn below_is_below(seed: u64, n in 1u64..) {
            proptest::prop_assert!(Stream::new(seed, 0, "test").below(n) < n);
        }

        #[test]
        fn shuffling_keeps_the_elements(seed: u64, len in 0usize..50) {
            let mut items: Vec<usize> = (0..len).collect();
            Stream::new(seed, 0, "test").shuffle(&mut items);
            items.sort_unstable();
            proptest::prop_assert_eq!(items, (0..len).collect::<Vec<_>>());
        }
    }
}
