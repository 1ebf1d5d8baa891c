//! How far another machine's clock is from this one's.

use std::io;

use super::agreement::{hear, say};
use super::control::Control;
use crate::clock::instant_ns;

/// Round trips that are measured: the shortest is believed.
pub(crate) const ROUNDS: u32 = 64;

/// What a round trip has shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Offset {
    /// What the other's clock is ahead, in nanoseconds.
    pub ahead_ns: i64,
    /// How long the round trip took: the offset is right to within half of it.
    pub trip_ns: u64,
}

impl Offset {
    /// The other's clock showed `theirs` between `before` and `after` by ours.
    pub fn of(before: u64, theirs: u64, after: u64) -> Offset {
        let trip_ns = after.saturating_sub(before);
        let ahead = i128::from(theirs) - i128::from(before) - i128::from(trip_ns / 2);
        Offset { ahead_ns: ahead.clamp(i64::MIN.into(), i64::MAX.into()) as i64, trip_ns }
    }

    /// How far it may be wrong.
    pub fn error_ns(self) -> u64 {
        self.trip_ns.div_ceil(2)
    }

    /// What the other's clock shows at an instant by ours.
    pub fn there(self, instant: u64) -> u64 {
        instant.saturating_add_signed(self.ahead_ns)
    }
}

/// Measures another machine's clock; it [answers](answer).
pub(crate) fn measure(control: &Control, rounds: u32) -> io::Result<Offset> {
    let mut best: Option<Offset> = None;
    for _ in 0..rounds {
        let before = instant_ns();
        say(control, &[])?;
        let theirs = hear(control)?;
        let after = instant_ns();
        let theirs = theirs.try_into().map_err(|_| io::Error::other("no time"))?;
        let offset = Offset::of(before, u64::from_be_bytes(theirs), after);
        if best.is_none_or(|best| offset.trip_ns < best.trip_ns) {
            best = Some(offset);
        }
    }
    best.ok_or_else(|| io::Error::other("no time"))
}

/// Says what this machine's clock shows as often as it is asked. Gives what is said then.
pub(crate) fn answer(control: &Control) -> io::Result<Vec<u8>> {
    loop {
        let words = hear(control)?;
        if !words.is_empty() {
            return Ok(words);
        }
        say(control, &instant_ns().to_be_bytes())?;
    }
}

#[cfg(test)]
mod tests;
