use node::Walk;
use units::FlowId;

/// A set of packet numbers that grows on demand.
#[derive(Clone, Debug, Default)]
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

    /// Goes over the set of the packets of a flow that have come, full ones of so many bytes. Who has holes refuses:
    /// what is missing does not move with the flow.
    pub fn walk(&mut self, walk: &mut Walk, flow: FlowId, packet_bytes: u64) {
        walk.refuse_if(self.count != self.first_missing, "packets of a flow are missing, for good or for now");
        let mut first_missing = u64::from(self.first_missing);
        walk.sequence(flow, packet_bytes, &mut first_missing);
        let first_missing = first_missing as u32;
        if first_missing != self.first_missing {
            let (words, bits) = (first_missing as usize / 64, first_missing % 64);
            self.words.clear();
            self.words.resize(words, u64::MAX);
            self.words.push((1 << bits) - 1);
            (self.count, self.first_missing) = (first_missing, first_missing);
        }
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

#[cfg(test)]
mod tests;
