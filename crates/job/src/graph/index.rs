//! Where a number is among numbers that ascend.

/// Finds the last of some numbers that is no greater than another, in about one step: by the numbers' highest bits it
/// is known among which few that one is.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Index {
    /// How many of the lowest bits are left out.
    shift: u32,
    /// By the bits above these: how many numbers begin with less; one more at the end.
    below: Vec<u32>,
}

impl Index {
    /// Of numbers that ascend.
    pub fn new(numbers: impl ExactSizeIterator<Item = u32> + Clone) -> Index {
        let last = numbers.clone().last().unwrap_or(0);
        // About as many parts as numbers.
        let shift = (last / numbers.len().max(1) as u32).max(1).ilog2();
        let mut below = vec![0u32; (last >> shift) as usize + 2];
        numbers.for_each(|number| below[(number >> shift) as usize + 1] += 1);
        (1..below.len()).for_each(|part| below[part] += below[part - 1]);
        Index { shift, below }
    }

    /// How many of these numbers are no greater than this one.
    #[inline]
    pub fn until(&self, number: u32, at: impl Fn(usize) -> u32) -> usize {
        let part = ((number >> self.shift) as usize).min(self.below.len() - 1);
        let Some(&end) = self.below.get(part + 1) else { return self.below[part] as usize };
        let (mut begin, mut end) = (self.below[part] as usize, end as usize);
        while begin < end {
            let middle = begin + (end - begin) / 2;
            if at(middle) <= number { begin = middle + 1 } else { end = middle }
        }
        begin
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_found_as_by_looking_at_all() {
        let of: [&[u32]; 6] = [&[], &[0], &[7], &[0, 0, 3, 3, 3, 9], &[5, 1_000_000, 1_000_001], &[0, u32::MAX - 1]];
        for numbers in of {
            let index = Index::new(numbers.iter().copied());
            let some = numbers.iter().flat_map(|&number| [number.saturating_sub(1), number, number + 1]);
            for number in some.chain([0, 12, 4096, u32::MAX]) {
                let expected = numbers.iter().filter(|&&other| other <= number).count();
                assert_eq!(index.until(number, |at| numbers[at]), expected, "{number} in {numbers:?}");
            }
        }
    }
}
