//! The order in which a port serves its queues.
//!
//! Queues that have sent less than their least rate go first. Then levels are served in order, strictly. The queues of
//! a level share what it gets by their weights: by bytes (deficit round robin, Shreedhar and Varghese 1995) or by
//! packets (weighted round robin). A queue at its greatest rate waits.
//!
//! A port may have a greatest rate, too, which holds for all of its queues together.
//!
//! A rate is enforced by when the next packet conforms (the generic cell rate algorithm of ATM, equivalent to a token
//! bucket of `burst` bytes), so that times are exact.

use units::{Duration, Rate, Time};

use crate::packet::CLASSES;

/// By what weights are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A turn is a number of bytes for each unit of weight; what a queue does not use it keeps for its next turn, while
    /// it has packets.
    Bytes(u32),
    /// A turn is a packet for each unit of weight.
    Packets,
}

/// Queues of equal priority.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Level {
    /// Its queues, each with its weight.
    pub queues: Vec<(u8, u32)>,
    /// By what weights are counted.
    pub unit: Unit,
}

/// The least and the greatest rate of a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rates {
    /// The rate up to which it goes before all others; zero for none.
    pub min: Rate,
    /// The rate that it may not exceed, and the bytes that it may send at once; `None` for no limit.
    pub max: Option<(Rate, u64)>,
}

/// The order of service at one port.
#[derive(Debug, node::State)]
pub struct Schedule {
    #[state(built("settings"))]
    levels: Vec<Level>,
    /// By level: the place of the queue that has its turn.
    turn: Vec<u32>,
    /// By queue: bytes or packets that it may send in this turn.
    credit: [u32; CLASSES],
    shapers: Option<Box<Shapers>>,
}

#[derive(Debug, node::State)]
#[state(refuse("queues have rates of their own"))]
struct Shapers {
    #[state(built("settings"))]
    rates: [Rates; CLASSES],
    /// By queue: when the next packet conforms to the least rate, and to the greatest.
    min_at: [Time; CLASSES],
    max_at: [Time; CLASSES],
    /// The greatest rate of the port, and bytes that it may send at once.
    #[state(built("settings"))]
    port: Option<(Rate, u64)>,
    port_at: Time,
}

impl Schedule {
    /// A schedule of these levels, the first first. Every queue is in one of them. `port` is the greatest rate of all
    /// queues together, with the bytes that may be sent at once.
    pub fn new(levels: Vec<Level>, rates: [Rates; CLASSES], port: Option<(Rate, u64)>) -> Schedule {
        let shaped = port.is_some() || rates.iter().any(|rates| *rates != Rates::default());
        let at = [Time::ZERO; CLASSES];
        let shapers = || Box::new(Shapers { rates, min_at: at, max_at: at, port, port_at: Time::ZERO });
        Schedule { turn: vec![0; levels.len()], levels, credit: [0; CLASSES], shapers: shaped.then(shapers) }
    }

    /// The queue to serve among those whose bits are set; `None` if all of them have to wait.
    #[inline]
    pub fn pick(&mut self, now: Time, ready: u8, first_bytes: impl Fn(u8) -> u32) -> Option<u8> {
        let mut ready = ready;
        if let Some(shapers) = &self.shapers {
            ready &= shapers.conforming(now);
            let short = ready & shapers.short(now);
            // It takes no turn, so that weights stay as they are for the others.
            let mut queues = self.levels.iter().flat_map(|level| &level.queues);
            if let Some((queue, _)) = queues.find(|(queue, _)| short >> queue & 1 == 1) {
                return Some(*queue);
            }
        }
        let index =
            self.levels.iter().position(|level| level.queues.iter().any(|(queue, _)| ready >> queue & 1 == 1))?;
        Some(match &self.levels[index].queues[..] {
            [(only, _)] => *only,
            _ => self.in_turn(index, ready, first_bytes),
        })
    }

    fn in_turn(&mut self, index: usize, ready: u8, first_bytes: impl Fn(u8) -> u32) -> u8 {
        let (level, turn) = (&self.levels[index], &mut self.turn[index]);
        loop {
            let (queue, _) = level.queues[*turn as usize];
            let credit = &mut self.credit[usize::from(queue)];
            if ready >> queue & 1 == 1 {
                let cost = if level.unit == Unit::Packets { 1 } else { first_bytes(queue) };
                if *credit >= cost {
                    *credit -= cost;
                    return queue;
                }
            } else {
                *credit = 0; // an idle queue saves nothing
            }
            *turn = (*turn + 1) % level.queues.len() as u32;
            let (queue, weight) = level.queues[*turn as usize];
            if ready >> queue & 1 == 1 {
                let each = if let Unit::Bytes(bytes) = level.unit { bytes } else { 1 };
                self.credit[usize::from(queue)] += weight * each;
            }
        }
    }

    /// A queue has sent a packet.
    #[inline]
    pub fn sent(&mut self, now: Time, queue: u8, bytes: u32) {
        if let Some(shapers) = &mut self.shapers {
            shapers.sent(now, usize::from(queue), bytes);
        }
    }

    /// When the first of the queues whose bits are set may send, which all have to wait for their rates.
    pub fn next_at(&self, waiting: u8) -> Time {
        let Some(shapers) = &self.shapers else { return Time::MAX };
        let waiting = (0..CLASSES).filter(|queue| waiting >> queue & 1 == 1);
        waiting.map(|queue| shapers.conforms_at(queue).max(shapers.port_conforms_at())).min().unwrap_or(Time::MAX)
    }
}

impl Shapers {
    fn conforming(&self, now: Time) -> u8 {
        if self.port_conforms_at() > now {
            return 0;
        }
        (0..CLASSES).fold(0, |bits, queue| bits | u8::from(self.conforms_at(queue) <= now) << queue)
    }

    fn conforms_at(&self, queue: usize) -> Time {
        conforms_at(self.max_at[queue], self.rates[queue].max)
    }

    fn port_conforms_at(&self) -> Time {
        conforms_at(self.port_at, self.port)
    }

    fn short(&self, now: Time) -> u8 {
        let short = |queue: usize| self.rates[queue].min > Rate::ZERO && self.min_at[queue] <= now;
        (0..CLASSES).fold(0, |bits, queue| bits | u8::from(short(queue)) << queue)
    }

    fn sent(&mut self, now: Time, queue: usize, bytes: u32) {
        let Rates { min, max } = self.rates[queue];
        if min > Rate::ZERO {
            self.min_at[queue] = self.min_at[queue].max(now) + min.transmit(u64::from(bytes));
        }
        if let Some((max, _)) = max {
            self.max_at[queue] = self.max_at[queue].max(now) + max.transmit(u64::from(bytes));
        }
        if let Some((max, _)) = self.port {
            self.port_at = self.port_at.max(now) + max.transmit(u64::from(bytes));
        }
    }
}

/// When the next packet conforms to a rate, if all that was sent takes it until `at`.
fn conforms_at(at: Time, max: Option<(Rate, u64)>) -> Time {
    let burst = max.map_or(Duration::ZERO, |(rate, burst)| rate.transmit(burst));
    Time::ZERO + at.since(Time::ZERO + burst)
}

#[cfg(test)]
mod tests;
