//! A channel of a ring, by formula: nothing is kept of its steps and messages but what they have in common.
//!
//! A ring among n ranks has n messages in each round and some thousand rounds, so that one all-reduce among 10,000
//! ranks has 2 * 10^8 of them. Each follows from its number: the k-th round has a message of each rank to the
//! next. The channel's parts are divided into turns, chunk after chunk, and a turn has n - 1 rounds a phase.
//!
//! Places on the way round are counted from 0 on: the i-th is `place(i)` in the group, backwards for odd channels.
//! Of a round a rank has the receiving step, perhaps the library's delay, and the sending step. The first on the way
//! sends before it receives, since the round begins with it.

use units::Duration;

use super::CollectiveId;
use crate::collective::{Span, Terms};

/// The phases of a ring.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Phases {
    ReduceScatter,
    AllGather,
    Both,
}

/// One channel's ring.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Ring {
    /// Index of its ranks in the graph's groups, and how many there are.
    pub group: u32,
    pub ranks: u32,
    /// Its segments: those of its places are consecutive in `Graph::segment_of` from here on.
    pub places: u32,
    /// Its first message, and how many that are on their own come before it.
    pub first_message: u32,
    pub single_messages: u32,
    /// The connection from the first on the way to the next; the others follow.
    pub connection: u32,
    pub backwards: bool,
    pub phases: Phases,
    /// The part of the buffer.
    pub span: Span,
    pub turns: u32,
    /// Index in the graph's terms.
    pub terms: u32,
    /// Steps of a rank in a round: 3 with a delay.
    pub width: u32,
    /// The collective of its steps, their name and their iteration.
    pub of: Option<CollectiveId>,
    pub name: u32,
    pub iteration: u32,
}

/// The action of a step of a ring in its round.
#[derive(Clone, Copy, PartialEq, Eq, Debug, state::Saved)]
pub(crate) enum What {
    Send,
    Receive,
    Delay,
}

impl Ring {
    /// Rounds of a turn.
    pub fn rounds_of_turn(&self) -> u32 {
        match self.phases {
            Phases::Both => 2 * (self.ranks - 1),
            Phases::ReduceScatter | Phases::AllGather => self.ranks - 1,
        }
    }

    /// All rounds: as many messages a rank sends.
    pub fn rounds(&self) -> u32 {
        self.turns * self.rounds_of_turn()
    }

    /// Steps of a rank.
    pub fn steps(&self) -> u32 {
        self.rounds() * self.width
    }

    pub fn messages(&self) -> u32 {
        self.rounds() * self.ranks
    }

    /// The place in the group of the i-th on the way round; and the other way round.
    #[inline]
    pub fn place(&self, i: u32) -> u32 {
        if self.backwards { self.ranks - 1 - i } else { i }
    }

    /// The next on the way.
    #[inline]
    pub fn next(&self, i: u32) -> u32 {
        if i + 1 == self.ranks { 0 } else { i + 1 }
    }

    /// The one before.
    #[inline]
    pub fn before(&self, i: u32) -> u32 {
        if i == 0 { self.ranks - 1 } else { i - 1 }
    }

    /// Whether a round is the first of its turn: what is sent then has not been received before.
    #[inline]
    pub fn begins_turn(&self, round: u32) -> bool {
        round.is_multiple_of(self.rounds_of_turn())
    }

    /// The round and what is done there, of a step of the i-th on the way.
    #[inline]
    pub fn at(&self, i: u32, step: u32) -> (u32, What) {
        let (round, at) = (step / self.width, step % self.width);
        let what = match (i, at) {
            (0, 0) => What::Send,
            (0, 1) => What::Receive,
            (0, _) => What::Delay,
            (_, 0) => What::Receive,
            (_, at) if at + 1 == self.width => What::Send,
            _ => What::Delay,
        };
        (round, what)
    }

    /// The step of the i-th on the way that does this.
    #[inline]
    pub fn step(&self, i: u32, round: u32, what: What) -> u32 {
        let at = match (i, what) {
            (0, What::Send) | (1.., What::Receive) => 0,
            (0, What::Receive) | (1.., What::Delay) => 1,
            (0, What::Delay) => 2,
            (1.., What::Send) => self.width - 1,
        };
        round * self.width + at
    }

    /// The part of the buffer that the i-th on the way sends in a round.
    pub fn span_of(&self, i: u32, round: u32) -> Span {
        let (turn, round) = (round / self.rounds_of_turn(), round % self.rounds_of_turn());
        let n = self.ranks;
        let back = match self.phases {
            Phases::ReduceScatter => round + 1,
            Phases::Both if round < n - 1 => round + 1,
            Phases::Both => round - (n - 1),
            Phases::AllGather => round,
        };
        let owner = self.place((i + n - back) % n);
        part(part(self.span, n.into(), owner.into()), self.turns.into(), turn.into())
    }
}

impl Ring {
    /// How many bytes of the buffer the i-th on the way sends how often: a few lengths, since parts and chunks differ
    /// by a byte at most.
    pub fn each_length(&self, i: u32, mut each: impl FnMut(u64, u64)) {
        let (n, turns) = (u64::from(self.ranks), u64::from(self.turns));
        let (length, longer) = (self.span.1 / n, self.span.1 % n);
        // In a phase it sends all parts but one: its own, or that of the next.
        let left_out: &[u32] = match self.phases {
            Phases::ReduceScatter => &[i],
            Phases::AllGather => &[self.next(i)],
            Phases::Both => &[i, self.next(i)],
        };
        let is_long = |&of: &u32| u64::from(u64::from(self.place(of)) < longer);
        let long = left_out.len() as u64 * longer - left_out.iter().map(is_long).sum::<u64>();
        let short = left_out.len() as u64 * (n - 1) - long;
        for (part, parts) in [(length + 1, long), (length, short)] {
            let (chunk, more) = (part / turns, part % turns);
            for (bytes, chunks) in [(chunk + 1, more), (chunk, turns - more)] {
                if parts * chunks > 0 {
                    each(bytes, parts * chunks);
                }
            }
        }
    }
}

/// One of the parts that [`split`](crate::collective::split) makes.
fn part((at, bytes): Span, parts: u64, number: u64) -> Span {
    let (each, more) = (bytes / parts, bytes % parts);
    let begin = at + number * each + number.min(more);
    (begin, each + u64::from(number < more))
}

/// In how many turns a ring's parts go round; none if some part has no byte in some turn, so that messages are left out
/// and the formula does not hold.
pub(crate) fn turns(span: Span, ranks: u64, terms: &Terms) -> Option<u32> {
    let least = span.1 / ranks;
    let turns = span.1.div_ceil(ranks).div_ceil(terms.chunk).max(1);
    (turns <= least).then(|| u32::try_from(turns).ok())?
}

/// Steps of a rank in a round.
pub(crate) fn width(latency: Duration) -> u32 {
    if latency == Duration::ZERO { 2 } else { 3 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collective::split;

    #[test]
    fn parts_are_those_that_a_split_has() {
        for (bytes, parts) in [(10, 3), (9, 3), (1, 1), (7, 7), (100, 13)] {
            let all: Vec<Span> = split((5, bytes), parts).collect();
            assert!((0..parts).all(|number| part((5, bytes), parts, number) == all[number as usize]));
        }
    }

    #[test]
    fn a_step_is_found_by_what_it_does() {
        let ring = |width| Ring {
            group: 0,
            ranks: 3,
            places: 0,
            first_message: 0,
            single_messages: 0,
            connection: 0,
            backwards: false,
            phases: Phases::Both,
            span: (0, 90),
            turns: 2,
            terms: 0,
            width,
            of: None,
            name: 0,
            iteration: 0,
        };
        for ring in [ring(2), ring(3)] {
            assert_eq!(ring.rounds(), 8);
            for (i, step) in (0..3).flat_map(|i| (0..ring.steps()).map(move |step| (i, step))) {
                let (round, what) = ring.at(i, step);
                assert_eq!(ring.step(i, round, what), step);
            }
        }
    }
}
