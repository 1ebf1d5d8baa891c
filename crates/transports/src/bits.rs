use node::Walk;

/// A set of packet numbers that grows on demand.
#[derive(Clone, Debug, Default, node::Saved)]
pub(crate) struct Bits {
    words: Vec<u64>,
    /// Number of elements.
    pub count: u32,
    /// The smallest number that is not in the set.
    pub first_missing: u32,
}

impl Bits {
    /// Adds a number; false if it was already there.
    pub fn insert(&mut self, number: u32) -> bool {
        let (word, bit) = (number as usize / 64, 1 << (number % 64));
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        if self.words[word] & bit != 0 {
            return false;
        }
        self.words[word] |= bit;
        self.count += 1;
        if number == self.first_missing {
            self.first_missing = self.next_missing(number);
        }
        true
    }

    /// Makes it the set of all numbers up to the first missing one, and of these.
    fn fill(&mut self, others: &[u32]) {
        self.count = self.first_missing + others.len() as u32;
        let last = others.last().map_or(self.first_missing, |&last| last + 1);
        self.words.clear();
        self.words.resize(self.first_missing as usize / 64, u64::MAX);
        self.words.resize(last.div_ceil(64) as usize, 0);
        if let Some(word) = self.words.get_mut(self.first_missing as usize / 64) {
            *word = (1 << (self.first_missing % 64)) - 1;
        }
        for &number in others {
            self.words[number as usize / 64] |= 1 << (number % 64);
        }
    }

    fn contains(&self, number: u32) -> bool {
        self.words.get(number as usize / 64).is_some_and(|word| word >> (number % 64) & 1 == 1)
    }

    /// The smallest number from `number` on that is not in the set.
    pub fn next_missing(&self, number: u32) -> u32 {
        let mut word = number as usize / 64;
        let mut free = !self.words.get(word).copied().unwrap_or(0) & u64::MAX << (number % 64);
        while free == 0 {
            word += 1;
            free = !self.words.get(word).copied().unwrap_or(0);
        }
        word as u32 * 64 + free.trailing_zeros()
    }
}

/// Positions of a flow: all below the first that is missing, and some beyond.
impl<G: ?Sized> node::State<G> for Bits {
    fn visit(&mut self, walk: &mut Walk, _: &G) {
        let ahead = self.count - self.first_missing;
        walk.same(ahead);
        let mut number = self.first_missing;
        let mut numbers: Vec<u32> = Vec::new();
        while numbers.len() < ahead as usize {
            number += 1;
            if self.contains(number) {
                numbers.push(number);
            }
        }
        let before = self.first_missing;
        numbers.iter_mut().chain([&mut self.first_missing]).for_each(|at| walk.sequence(walk.flow, walk.unit, at));
        if self.first_missing != before {
            self.fill(&numbers);
        }
    }
}

#[cfg(test)]
mod tests;
