use std::hint::select_unpredictable;

use units::Time;

/// The next event time of each of a fixed number of sources, and the earliest of them.
///
/// A tournament over the sources in a complete binary tree: each inner node holds the winning source, ties go to the
/// lower one. An update replays the matches between one leaf and the root. Their addresses follow from the leaf, so the
/// loads overlap and each match is a conditional move: no branch to mispredict, nothing allocated, 12 bytes for each
/// source. A binary heap's pop instead follows data-dependent addresses; the simulator of dcPIM's authors spends 56-59%
/// of its time in one.
#[derive(Clone, Debug)]
pub struct Agenda {
    /// By source: its next time in picoseconds; `NEVER` for none. Padded to a power of two.
    at: Vec<u64>,
    /// By inner node, with the root at 1: the winning source below. Same length as `at`.
    winner: Vec<u32>,
}

const NEVER: u64 = u64::MAX;

impl Agenda {
    /// An agenda without pending events.
    pub fn new(sources: usize) -> Agenda {
        let size = sources.next_power_of_two().max(2);
        let mut winner = vec![0; size];
        for node in (1..size).rev() {
            winner[node] = if node >= size / 2 { (2 * node - size) as u32 } else { winner[2 * node] };
        }
        Agenda { at: vec![NEVER; size], winner }
    }

    /// The earliest source and its time; [`Time::MAX`] if no event is pending.
    #[inline]
    pub fn first(&self) -> (Time, usize) {
        let source = self.winner[1] as usize;
        (Time::from_ps(self.at[source]), source)
    }

    /// The next time of one source, [`Time::MAX`] for none.
    #[inline]
    pub fn get(&self, source: usize) -> Time {
        Time::from_ps(self.at[source])
    }

    /// Sets the next time of `source`; [`Time::MAX`] for none.
    #[inline]
    pub fn set(&mut self, source: usize, at: Time) {
        let (times, winner) = (&mut self.at[..], &mut self.winner[..]);
        times[source] = at.ps();
        // First the match of two leaves, then those of inner nodes. `best` beats `rival` if it is earlier, or equally
        // early and to the left.
        let (mut best, mut best_at) = (source as u32, at.ps());
        let mut rival = best ^ 1;
        let mut node = (times.len() + source) >> 1;
        let mut right = source as u64 & 1;
        loop {
            let rival_at = times[rival as usize];
            let rival_wins = rival_at < best_at.saturating_add(right);
            best = select_unpredictable(rival_wins, rival, best);
            best_at = select_unpredictable(rival_wins, rival_at, best_at);
            let before = std::mem::replace(&mut winner[node], best);
            // If the source neither won this match before nor does now, nothing changes further up.
            if node == 1 || (before == best && best != source as u32) {
                return;
            }
            rival = winner[node ^ 1];
            right = node as u64 & 1;
            node >>= 1;
        }
    }

    /// Moves the next time of `source` to `at` if that is earlier.
    #[inline]
    pub fn advance(&mut self, source: usize, at: Time) {
        if at.ps() < self.at[source] {
            self.set(source, at);
        }
    }
}

#[cfg(test)]
mod tests;
