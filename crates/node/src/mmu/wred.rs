//! Early marks and losses (WRED): by the colour of a packet, and by the length of its queue, now or on average.
//!
//! The average is that of RED (Floyd and Jacobson 1993, section 4): each arrival moves it by 2^-n of its distance from
//! the length that the packet finds, and an idle queue lets it fall as if those packets had found nothing that could
//! have been sent meanwhile. SAI has the same formula, with `weight` for n. Deliberately absent: the count of packets
//! since the last mark, by which RED spaces them; switches draw for each packet by itself.

use units::{Duration, Rate, Stream, Time, power};

use crate::Marking;
use crate::switch::marks;

/// The drop precedence of a packet (RFC 2697, RFC 2698).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, node::State)]
pub enum Colour {
    /// Within what was agreed.
    #[default]
    Green,
    /// Beyond it, within an excess.
    Yellow,
    /// Beyond that.
    Red,
}

impl Colour {
    /// All of them, in their order.
    pub const ALL: [Colour; 3] = [Colour::Green, Colour::Yellow, Colour::Red];
}

/// The treatment of one colour.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Curve {
    /// At which length packets are hit, and how likely.
    pub hits: Marking,
    /// Whether ECN-capable packets that are hit are marked.
    pub mark: bool,
    /// Whether those that are not marked are lost.
    pub drop: bool,
}

/// The early marks and losses of a queue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wred {
    /// By colour.
    pub curves: [Curve; 3],
    /// The exponent of the average; `None` for the length itself.
    pub average: Option<u8>,
    /// Whether packets are marked when they leave.
    pub at_departure: bool,
}

impl Wred {
    /// Whether a packet that arrives is lost early, in a queue of this length.
    #[inline]
    pub fn loses(&self, colour: Colour, capable: bool, rate: Rate, length: u32, random: &mut Stream) -> bool {
        let curve = &self.curves[colour as usize];
        curve.drop && !(capable && curve.mark) && marks(curve.hits, rate, length, random)
    }

    /// Whether an ECN-capable packet is marked, in a queue of this length.
    #[inline]
    pub fn marks(&self, colour: Colour, rate: Rate, length: u32, random: &mut Stream) -> bool {
        let curve = &self.curves[colour as usize];
        curve.mark && marks(curve.hits, rate, length, random)
    }
}

/// The average length of a queue.
#[derive(Clone, Copy, Debug, Default, node::State)]
pub struct Average {
    bytes: f64,
    /// When the queue became empty; `None` while it is not.
    idle_since: Option<Time>,
}

impl Average {
    /// A packet arrives, and finds `length` bytes. `exponent` is n, and `packet` the time that a packet takes to leave.
    pub fn arrives(&mut self, now: Time, length: u32, exponent: u8, packet: Duration) {
        let share = 1.0 / f64::from(1u32 << exponent);
        match self.idle_since.take() {
            Some(since) => {
                let could_have_left = (now - since).ps() / packet.ps().max(1);
                self.bytes *= power(1.0 - share, could_have_left);
            }
            None => self.bytes += (f64::from(length) - self.bytes) * share,
        }
    }

    /// The queue is empty.
    pub fn empties(&mut self, now: Time) {
        self.idle_since = Some(now);
    }

    /// Bytes.
    pub fn bytes(&self) -> u32 {
        self.bytes as u32
    }
}

/// A meter that colours packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Meter {
    /// The committed rate, and bytes that may come at once within it.
    pub committed: (Rate, u64),
    /// A peak rate of its own, and its bytes (two rates, RFC 2698); without one, what the committed rate does not use
    /// (a single rate, RFC 2697).
    pub peak: Option<Rate>,
    /// Bytes beyond the committed ones that may come at once.
    pub excess: u64,
}

/// The two token buckets of a meter, each as the time that its rate needs to fill it.
#[derive(Clone, Copy, Debug, Default, node::State)]
pub struct Buckets {
    at: Time,
    committed: Duration,
    excess: Duration,
}

impl Buckets {
    /// The colour of a packet that comes with a colour.
    pub fn colour(&mut self, meter: &Meter, now: Time, bytes: u64, before: Colour) -> Colour {
        let passed = now - self.at;
        self.at = now;
        let over = match meter.peak {
            Some(_) => passed,
            None => passed.saturating_sub(self.committed),
        };
        self.committed = self.committed.saturating_sub(passed);
        self.excess = self.excess.saturating_sub(over);
        let (rate, burst) = meter.committed;
        let second = meter.peak.unwrap_or(rate);
        let (own, other) = (self.committed + rate.transmit(bytes), self.excess + second.transmit(bytes));
        let within = before == Colour::Green && own <= rate.transmit(burst);
        let within_excess = before < Colour::Red && other <= second.transmit(meter.excess);
        match (within, within_excess, meter.peak) {
            // Two rates: a packet beyond the peak is red, whatever was committed.
            (_, false, Some(_)) | (false, false, None) => Colour::Red,
            (true, true, Some(_)) => {
                (self.committed, self.excess) = (own, other);
                Colour::Green
            }
            (true, _, None) => {
                self.committed = own;
                Colour::Green
            }
            (false, true, _) => {
                self.excess = other;
                Colour::Yellow
            }
        }
    }
}

#[cfg(test)]
mod tests;
