//! How a receiver divides priorities by recent traffic (section 3.4): the number of unscheduled levels follows the
//! share of unscheduled bytes, and cutoffs between them give each level the same bytes.

use node::Walk;
use units::mix;

/// Most unscheduled levels: one level is left to scheduled packets.
pub(super) const LEVELS_MAX: usize = 7;

/// The unscheduled levels by message size: the largest size of each level except for the last. Sizes are reported as
/// buckets, eight for each doubling.
#[derive(Clone, Copy, Debug, PartialEq, Eq, node::State)]
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
#[derive(node::State)]
#[state(last(self.tell(walk)))]
pub(super) struct Traffic {
    /// How many messages have ever been seen, and the bytes of each, and how many of them are unscheduled; none if not
    /// all are alike.
    #[state(skip("`tell` visits it"))]
    seen: u64,
    #[state(skip("`tell` visits it"))]
    alike: Option<(u64, u64)>,
    /// By size bucket: bytes sent at unscheduled levels.
    #[state(skip("`tell` visits it"))]
    unscheduled_bytes: [u64; BUCKETS],
    #[state(skip("`tell` visits it"))]
    bytes: u64,
    #[state(skip("`tell` visits it"))]
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
        let (seen, alike) = (0, None);
        Traffic { seen, alike, unscheduled_bytes: [0; BUCKETS], bytes: 0, messages: 0, priorities, fixed, levels }
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
        let mut first = 0;
        for (of, bytes) in unscheduled {
            self.unscheduled_bytes[usize::from(bucket(of))] += bytes;
            first += bytes;
        }
        self.alike = (self.seen == 0 || self.alike == Some((bytes, first))).then_some((bytes, first));
        self.seen += 1;
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

    /// Goes over what was seen. As long as all messages are alike, it follows from how many there were.
    fn tell(&mut self, walk: &mut Walk) {
        walk.same(self.alike.is_some());
        let Some((bytes, unscheduled)) = self.alike else {
            let buckets = self.unscheduled_bytes.iter().fold(0, |hash, &bytes| mix(hash, bytes));
            return walk.same((self.seen, self.messages, self.bytes, buckets));
        };
        walk.same((bytes, unscheduled));
        if walk.counted(&mut self.seen) > 0 {
            let (half, seen) = (u64::from(HALF_LIFE), self.seen);
            let messages = if seen < 2 * half { seen } else { half + seen % half };
            self.messages = messages as u32;
            self.bytes = messages * bytes.min(1 << 48);
            self.unscheduled_bytes[usize::from(bucket(bytes))] = messages * unscheduled;
        }
    }
}

#[cfg(test)]
mod tests;
