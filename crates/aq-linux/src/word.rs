//! The A-Gap as one 64-bit word: the Rust twin of `bpf/a_gap.h`, which says what the word is and why it is the paper's
//! recurrence.
//!
//! It serves the control plane, which writes rates, limits and thresholds in the program's units and reads gaps back,
//! and the tests, which compare it with the program packet by packet, and with [`sharing::aq::gap`].
//!
//! *Rounding.* The time of a byte is off by at most 2^-17 ticks, and a packet's time by another half tick. So after n
//! packets without an empty moment, the word is within n (1/2 + size 2^-17) ticks of the exact recurrence: a packet of
//! 1,500 bytes at 10 Gbps takes 1,228,800 ticks, so this is under a millionth of what was sent.

use units::{Bytes, Duration, Rate};

/// log2 of the ticks in a nanosecond.
const TICKS_PER_NS: u32 = 10;
/// Bits behind the point of a byte's time.
const PER_BYTE: u32 = 16;
/// The furthest that a word can be ahead of the clock; also the most that a limit can be.
pub const HORIZON_TICKS: u64 = 1 << 47;
/// Picoseconds times this, over [`TICK_PARTS`], are ticks.
const TICK_WHOLE: u128 = 1 << TICKS_PER_NS;
const TICK_PARTS: u128 = 1_000;

/// The lowest rate. A packet of half a megabyte times a byte's time at it still fits into 64 bits.
pub const RATE_MIN: Rate = Rate::from_bps(64_000);
/// The highest: the rounding of a byte's time is still under a millionth.
pub const RATE_MAX: Rate = Rate::from_bps(1_000_000_000_000);

/// An AQ's configuration in the program's units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word {
    /// Ticks for a byte at R, times 2^16; 0 for no AQ.
    pub per_byte: u64,
    /// The A-Gap, as a time, above which packets are dropped.
    pub limit: u64,
    /// The same for marks; `u64::MAX` for never.
    pub mark: u64,
}

/// The fate of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It passes.
    Pass,
    /// It passes, marked.
    Mark,
    /// It is dropped.
    Drop,
}

impl Word {
    /// No AQ: every packet passes.
    pub const OPEN: Word = Word { per_byte: 0, limit: u64::MAX, mark: u64::MAX };

    /// For a rate from [`RATE_MIN`] to [`RATE_MAX`]; a rate outside is taken as the nearer of these. A limit that takes
    /// longer than the horizon to drain is cut to it.
    pub fn new(rate: Rate, limit: Bytes, threshold: Option<Bytes>) -> Word {
        let bps = u128::from(rate.bps().clamp(RATE_MIN.bps(), RATE_MAX.bps()));
        // A byte takes 8e9 / bps nanoseconds.
        let scaled = 8_000_000_000_u128 << (TICKS_PER_NS + PER_BYTE);
        let per_byte = ((scaled + bps / 2) / bps) as u64;
        let time = |bytes: Bytes| {
            // Rounded up: a burst of exactly the limit must pass, though each of its packets is rounded.
            let ticks = (u128::from(bytes.get()) * u128::from(per_byte)).div_ceil(1 << PER_BYTE);
            ticks.saturating_add(SLACK.into()).min(HORIZON_TICKS.into()) as u64
        };
        Word { per_byte, limit: time(limit), mark: threshold.map_or(u64::MAX, time) }
    }

    /// The word of an AQ that is empty at `now`, in nanoseconds of the kernel's clock.
    pub const fn empty(now_ns: u64) -> u64 {
        now_ns << TICKS_PER_NS
    }

    /// Ticks that a packet takes.
    pub fn cost(self, bytes: u64) -> u64 {
        (bytes.wrapping_mul(self.per_byte).wrapping_add(1 << (PER_BYTE - 1))) >> PER_BYTE
    }

    /// A packet arrives at `now`, in nanoseconds of the kernel's clock.
    pub fn arrive(self, when_empty: &mut u64, now_ns: u64, bytes: u64) -> Verdict {
        let now = now_ns << TICKS_PER_NS;
        let ahead = ahead(*when_empty, now) + self.cost(bytes);
        if ahead > self.limit {
            return Verdict::Drop;
        }
        *when_empty = now.wrapping_add(ahead);
        if ahead > self.mark { Verdict::Mark } else { Verdict::Pass }
    }

    /// A/R: how long a packet that arrives at `now` would wait in a queue of the entity's own.
    pub fn delay(when_empty: u64, now_ns: u64) -> Duration {
        let ticks = ahead(when_empty, now_ns << TICKS_PER_NS);
        Duration::from_ps((u128::from(ticks) * TICK_PARTS / TICK_WHOLE) as u64)
    }

    /// A, in bytes.
    pub fn gap(self, when_empty: u64, now_ns: u64) -> Bytes {
        let ticks = u128::from(ahead(when_empty, now_ns << TICKS_PER_NS));
        Bytes(((ticks << PER_BYTE) / u128::from(self.per_byte.max(1))) as u64)
    }
}

/// Ticks added to a limit and a threshold, 0.5 ns, so that the rounding of a thousand packets does not use them up.
const SLACK: u64 = 512;

fn ahead(when_empty: u64, now: u64) -> u64 {
    let ahead = when_empty.wrapping_sub(now);
    if ahead > HORIZON_TICKS { 0 } else { ahead }
}

#[cfg(test)]
mod tests;
