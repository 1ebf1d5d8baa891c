//! Which entropy value a packet gets, and so which path: switches hash it beside addresses and flow.
//!
//! A message has a number of entropy values. Each leads to a path, but the hash decides to which, so the paths of two
//! values may share a link. A sender learns about a value only from answers: its packet arrived without a mark, or
//! marked; it was trimmed, or there was no answer.
//!
//! - *Oblivious*: each value once in a pseudorandom order, then again in another.
//! - *Bitmap*: the same, but a value with a penalty is passed over, and loses one point of it: 1 for a mark, 4 for a
//!   trimmed packet, 15 for a lost one.
//! - *REPS* (Bonato et al.: REPS: Recycled Entropy Packet Spraying for Adaptive Load Balancing and Failure Mitigation,
//!   2024): values that were acknowledged without a mark are used again, each once, from a cache of eight; a random one
//!   if there is none. After a timeout the cache is *frozen* for a while: its values are used in turn, instead of new
//!   values that may lead to a failed path.
//! - *Mixed*: values that came back without a mark are used again, in their order; the next of the bitmap if there is
//!   none.

use std::collections::VecDeque;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Duration, Stream, Time};

/// How senders choose entropy values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, node::Saved)]
#[serde(rename_all = "snake_case")]
pub enum Spraying {
    /// Each value in turn, in a new random order each round.
    Oblivious,
    /// In turn, but values of marked, trimmed and lost packets are passed over for a while.
    Bitmap,
    /// Values that were acknowledged without a mark, each once; random ones otherwise (REPS).
    Reps,
    /// Values that were acknowledged without a mark, each once; otherwise as `bitmap`.
    #[default]
    Mixed,
    /// None: switches choose the path of each packet, as `switch.balancing` says; at random if it is not set.
    Switches,
}

impl Spraying {
    /// Whether values ever follow each other in an order.
    fn takes_turns(self) -> bool {
        matches!(self, Spraying::Oblivious | Spraying::Bitmap | Spraying::Mixed)
    }
}

/// What has become of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Good,
    Marked,
    Trimmed,
    Lost,
}

/// The greatest penalty of a value, that of a lost packet.
const PENALTY_MAX: u8 = 15;
/// Values that REPS remembers.
const CACHE: usize = 8;
/// How long REPS goes round the values that it has after a timeout.
const FROZEN: Duration = Duration::from_ms(10);
/// Random values that REPS tries after that.
const EXPLORED: u32 = 16;

/// A value below `values`, drawn at random; with one value there is nothing to draw.
fn draw(values: u16, random: &mut Stream) -> u16 {
    random.below(u64::from(values)) as u16
}

/// The entropy values of one message.
#[derive(Clone, Debug, node::State)]
pub(super) struct Spray {
    #[state(skip("settings"))]
    how: Spraying,
    /// Number of values, a power of two.
    values: u16,
    turn: Turn,
    /// By value: its penalty.
    penalties: Vec<u8>,
    reps: Reps,
    good: VecDeque<u16>,
}

/// All values, once each in an order, then in another: the numbers from 0 on, with some bits inverted.
#[derive(Clone, Debug, node::State)]
struct Turn {
    next: u16,
    inverted: u16,
}

impl Turn {
    fn value(&self) -> u16 {
        self.next ^ self.inverted
    }

    fn step(&mut self, values: u16, random: &mut Stream) {
        self.next += 1;
        if self.next == values {
            *self = Turn { next: 0, inverted: draw(values, random) };
        }
    }
}

/// The cache of REPS: a ring.
#[derive(Clone, Debug, Default, node::State)]
struct Reps {
    /// The values in it.
    ring: Vec<u16>,
    /// Where the next value goes.
    head: usize,
    /// How many of the last ones have not been used again.
    fresh: usize,
    frozen_until: Option<Time>,
    /// The next of the ring while it is frozen.
    round: usize,
    explore: u32,
}

impl Spray {
    pub fn new(how: Spraying, values: u16, random: &mut Stream) -> Spray {
        let bitmap = matches!(how, Spraying::Bitmap | Spraying::Mixed);
        let inverted = if how.takes_turns() {
            draw(values, random)
        } else {
            random.draw_idly();
            0
        };
        Spray {
            how,
            values,
            turn: Turn { next: 0, inverted },
            penalties: if bitmap { vec![0; usize::from(values)] } else { Vec::new() },
            reps: Reps::default(),
            good: VecDeque::new(),
        }
    }

    /// The value of the next packet.
    pub fn next(&mut self, random: &mut Stream) -> u16 {
        match self.how {
            Spraying::Oblivious => {
                let value = self.turn.value();
                self.turn.step(self.values, random);
                value
            }
            Spraying::Bitmap => self.unpunished(random),
            Spraying::Reps => self.reps.next(self.values, random),
            Spraying::Switches => 0,
            Spraying::Mixed => match self.good.pop_front() {
                Some(value) => value,
                None => self.unpunished(random),
            },
        }
    }

    /// The next value without a penalty. The first that has one loses a point of it; if all have one, the first goes.
    fn unpunished(&mut self, random: &mut Stream) -> u16 {
        let mut value = self.turn.value();
        if self.penalties[usize::from(value)] > 0 {
            self.penalties[usize::from(value)] -= 1;
            for _ in 0..self.values {
                self.turn.step(self.values, random);
                value = self.turn.value();
                if self.penalties[usize::from(value)] == 0 {
                    break;
                }
            }
        }
        self.turn.step(self.values, random);
        value
    }

    /// What has become of a packet with this value.
    pub fn heard(&mut self, now: Time, value: u16, fate: Fate) {
        // From a packet, and so from anybody.
        if value >= self.values {
            return;
        }
        match self.how {
            Spraying::Oblivious | Spraying::Switches => {}
            Spraying::Reps => self.reps.heard(now, value, fate),
            Spraying::Bitmap | Spraying::Mixed => {
                let penalty = match fate {
                    Fate::Good => 0,
                    Fate::Marked => 1,
                    Fate::Trimmed => 4,
                    Fate::Lost => PENALTY_MAX,
                };
                let of = &mut self.penalties[usize::from(value)];
                *of = (*of + penalty).min(PENALTY_MAX);
                if self.how == Spraying::Mixed && fate == Fate::Good {
                    self.good.push_back(value);
                }
            }
        }
    }
}

impl Reps {
    fn next(&mut self, values: u16, random: &mut Stream) -> u16 {
        let any = |random: &mut Stream| draw(values, random);
        if self.explore > 0 {
            self.explore -= 1;
            return any(random);
        }
        if self.frozen_until.is_some() && !self.ring.is_empty() {
            self.round = (self.round + 1) % self.ring.len();
            // What comes by is no longer fresh.
            self.fresh = self.fresh.saturating_sub(1);
            return self.ring[self.round];
        }
        if self.fresh == 0 || self.ring.is_empty() {
            return any(random);
        }
        let oldest = (self.head + self.ring.len() - self.fresh) % self.ring.len();
        self.fresh -= 1;
        self.ring[oldest]
    }

    fn heard(&mut self, now: Time, value: u16, fate: Fate) {
        if fate == Fate::Lost && self.frozen_until.is_none() && self.explore == 0 {
            self.frozen_until = Some(now + FROZEN);
        }
        if self.frozen_until.is_some_and(|until| now > until) {
            *self = Reps { explore: EXPLORED, ..Reps::default() };
        }
        if fate == Fate::Good {
            if self.ring.len() < CACHE {
                self.ring.push(value);
                self.head = self.ring.len() % CACHE;
            } else {
                self.ring[self.head] = value;
                self.head = (self.head + 1) % CACHE;
            }
            self.fresh = (self.fresh + 1).min(CACHE);
        }
    }
}

#[cfg(test)]
mod tests;
