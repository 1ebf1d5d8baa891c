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
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stream {
    /// Where the generator is. It is written out here because a checkpoint needs these words.
    words: [u64; 4],
    /// How often it was drawn from where only one thing could come out.
    idle: u64,
}

impl Stream {
    /// The stream of `entity` for `purpose` (a short name, such as "spray") under the run's `seed`.
    pub fn new(seed: u64, entity: u64, purpose: &str) -> Stream {
        let purpose = purpose.bytes().fold(0u64, |hash, byte| mix(hash, u64::from(byte)));
        Stream { words: seeded(mix(mix(seed, entity), purpose)), idle: 0 }
    }

    /// All of it.
    pub(crate) fn saved(&self) -> [u64; 5] {
        let [a, b, c, d] = self.words;
        [a, b, c, d, self.idle]
    }

    /// The stream of which this was all.
    pub(crate) fn from_saved([a, b, c, d, idle]: [u64; 5]) -> Stream {
        Stream { words: [a, b, c, d], idle }
    }

    /// 64 random bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        let [a, b, c, d] = &mut self.words;
        let bits = a.wrapping_add(*d).rotate_left(23).wrapping_add(*a);
        let shifted = *b << 17;
        *c ^= *a;
        *d ^= *b;
        *b ^= *c;
        *a ^= *d;
        *c ^= shifted;
        *d = d.rotate_left(45);
        bits
    }

    /// Uniform in `0..n`, by multiply-shift: bias below n / 2^64. `n` must not be zero.
    #[inline]
    pub fn below(&mut self, n: u64) -> u64 {
        if n == 1 {
            self.idle += 1;
        }
        ((u128::from(self.bits()) * u128::from(n)) >> 64) as u64
    }

    /// Draws 64 bits that nothing depends on.
    pub fn draw_idly(&mut self) {
        self.bits();
        self.idle += 1;
    }

    /// How often it was drawn from since it was `before`, if nothing depended on what came out.
    pub fn idle_draws_since(&self, before: &Stream) -> Option<u64> {
        let times = self.idle.wrapping_sub(before.idle);
        let mut copy = before.clone();
        // If it was drawn from otherwise, too, it is now elsewhere.
        (0..times).for_each(|_| copy.draw_idly());
        (copy == *self).then_some(times)
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

/// The generator's first words: four of SplitMix64, as its authors recommend.
fn seeded(seed: u64) -> [u64; 4] {
    let mut at = seed;
    [(); 4].map(|()| {
        let word = mix(at, 0);
        at = at.wrapping_add(0x9E37_79B9_7F4A_7C15);
        word
    })
}

#[cfg(test)]
mod tests;
