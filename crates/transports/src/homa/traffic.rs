//! How a receiver divides priorities by recent traffic (section 3.4): the number of unscheduled levels follows the
//! share of unscheduled bytes, and cutoffs between them give each level the same bytes.

/// Most unscheduled levels: one level is left to scheduled packets.
pub(super) const LEVELS_MAX: usize = 7;

/// The unscheduled levels by message size: the largest size of each level except for the last. Sizes are reported as
/// buckets, eight for each doubling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Levels {
    /// Their number.
    pub count: u8,
    /// By level, the highest first: the bucket of its largest size.
    pub cutoffs: [u8; LEVELS_MAX - 1],
}

impl Levels {
    /// The level of a message of this size, 0 first.
    pub fn of(&self, bytes: u64) -> u8 {
        let bucket = bucket(bytes);
        let cutoffs = self.cutoffs.iter().take(usize::from(self.count).saturating_sub(1));
        cutoffs.take_while(|&&cutoff| bucket > cutoff).count() as u8
    }
}

const BUCKETS: usize = 256;

/// Sizes that differ by less than an eighth share a bucket; from 2^34 bytes on all do.
fn bucket(bytes: u64) -> u8 {
    let octave = bytes.max(1).ilog2();
    if octave < 3 {
        return bytes as u8;
    }
    let eighth = bytes >> (octave - 3) & 7;
    ((u64::from(octave) - 2) * 8 + eighth).min(BUCKETS as u64 - 1) as u8
}

/// Recent messages by size.
pub(super) struct Traffic {
    /// By size bucket: bytes sent at unscheduled levels.
    unscheduled_bytes: [u64; BUCKETS],
    bytes: u64,
    messages: u32,
    /// Total number of priorities, and number of unscheduled ones if fixed.
    priorities: u8,
    fixed: Option<u8>,
    levels: Levels,
}

/// After this many messages half of the counts are forgotten: "recent" is a few thousand messages, so that cutoffs are
/// steady although a few large messages carry most bytes.
const HALF_LIFE: u32 = 4096;
/// Cutoffs are recomputed after this many messages.
const EVERY: u32 = 16;

impl Traffic {
    /// Before any traffic all unscheduled packets share one level above all scheduled ones.
    pub fn new(priorities: u8, fixed: Option<u8>) -> Traffic {
        let levels = Levels { count: fixed.unwrap_or(1), cutoffs: [0; LEVELS_MAX - 1] };
        Traffic { unscheduled_bytes: [0; BUCKETS], bytes: 0, messages: 0, priorities, fixed, levels }
    }

    pub fn levels(&self) -> Levels {
        self.levels
    }

    /// A message has begun to arrive. Counts its bytes at unscheduled levels, each at the level of a message of that
    /// size.
    pub fn saw(&mut self, bytes: u64, unscheduled: impl IntoIterator<Item = (u64, u64)>) {
        self.messages += 1;
        if self.messages >= 2 * HALF_LIFE {
            self.messages = HALF_LIFE;
            self.bytes /= 2;
            self.unscheduled_bytes.iter_mut().for_each(|bytes| *bytes /= 2);
        }
        // A longer message only shows that nearly all bytes are scheduled.
        self.bytes += bytes.min(1 << 48);
        for (of, bytes) in unscheduled {
            self.unscheduled_bytes[usize::from(bucket(of))] += bytes;
        }
        if self.messages < EVERY || self.messages.is_multiple_of(EVERY) {
            self.levels = self.divide();
        }
    }

    fn divide(&self) -> Levels {
        let unscheduled: u128 = self.unscheduled_bytes.iter().map(|&bytes| u128::from(bytes)).sum();
        let (bytes, priorities) = (u128::from(self.bytes).max(1), u128::from(self.priorities));
        let share = (2 * priorities * unscheduled + bytes) / (2 * bytes);
        let count = self.fixed.unwrap_or(share.clamp(1, priorities - 1) as u8);
        let mut levels = Levels { count, cutoffs: [0; LEVELS_MAX - 1] };
        let (mut bucket, mut below) = (0, u128::from(self.unscheduled_bytes[0]));
        for (index, cutoff) in (1..u128::from(count)).zip(&mut levels.cutoffs) {
            while below * u128::from(count) < unscheduled * index {
                bucket += 1;
                below += u128::from(self.unscheduled_bytes[bucket]);
            }
            *cutoff = bucket as u8;
        }
        levels
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn traffic(fixed: Option<u8>) -> Traffic {
        Traffic::new(8, fixed)
    }

    #[test]
    fn levels_are_divided_by_the_share_of_unscheduled_bytes() {
        // 60 bytes of 100 unscheduled: 4.8 of 8 levels.
        let mut measured = traffic(None);
        (0..100).for_each(|_| measured.saw(100_000, [(100_000, 60_000)]));
        assert_eq!(measured.levels().count, 5);
        // None, or all: one is left on either side.
        let mut none = traffic(None);
        (0..100).for_each(|_| none.saw(100_000_000, [(100_000_000, 1_000)]));
        let mut all = traffic(None);
        (0..100).for_each(|_| all.saw(1_000, [(1_000, 1_000)]));
        assert_eq!((none.levels().count, all.levels().count), (1, 7));
        let mut fixed = traffic(Some(3));
        (0..100).for_each(|_| fixed.saw(1_000, [(1_000, 1_000)]));
        assert_eq!(fixed.levels().count, 3);
    }

    #[test]
    fn old_traffic_is_forgotten() {
        let mut traffic = traffic(None);
        (0..100_000).for_each(|_| traffic.saw(100, [(100, 100)]));
        (0..40_000).for_each(|_| traffic.saw(100_000, [(100_000, 10_000)]));
        assert_eq!(traffic.levels().count, 1);
    }

    proptest::proptest! {
        /// No level carries more than its share by more than the sizes that share its last bucket.
        #[test]
        fn cutoffs_balance_unscheduled_bytes(sizes in proptest::collection::vec(1u64..200_000, 64), count in 1u8..8) {
            let mut traffic = traffic(Some(count));
            let unscheduled = |size: u64| size.min(10_000);
            // A number of messages at which cutoffs are worked out.
            sizes.iter().for_each(|&size| traffic.saw(size, [(size, unscheduled(size))]));
            let levels = traffic.levels();
            let mut carried = [0; LEVELS_MAX];
            let mut in_bucket = [0; BUCKETS];
            for &size in &sizes {
                carried[usize::from(levels.of(size))] += unscheduled(size);
                in_bucket[usize::from(bucket(size))] += unscheduled(size);
            }
            let total: u64 = carried.iter().sum();
            let grain = in_bucket.into_iter().max().unwrap();
            for bytes in &carried[..usize::from(count)] {
                proptest::prop_assert!(*bytes <= total / u64::from(count) + grain + 1, "{:?} of {}", carried, total);
            }
            proptest::prop_assert_eq!(carried[usize::from(count)..].iter().sum::<u64>(), 0);
        }

        #[test]
        fn larger_messages_never_have_a_higher_level(a in 1u64..u64::MAX, b in 1u64..u64::MAX, cutoffs: [u8; 6]) {
            let mut cutoffs = cutoffs;
            cutoffs.sort_unstable();
            let levels = Levels { count: 7, cutoffs };
            proptest::prop_assert!(bucket(a.min(b)) <= bucket(a.max(b)));
            proptest::prop_assert!(levels.of(a.min(b)) <= levels.of(a.max(b)));
        }
    }
}
