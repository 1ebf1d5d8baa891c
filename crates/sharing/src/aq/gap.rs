//! The A-Gap of one AQ and what follows from it for a packet (Theorem 3.2, Algorithms 1 and 2).
//!
//! The state of a switch consists of integers: the gap in whole bytes and the time of the last packet in ticks of the
//! rate's own clock ([`rate`](super::rate)), 24 bits each. A packet costs two multiplications and shifts, a subtraction
//! that stops at zero, an addition and a comparison; the virtual queueing delay needs a division, for which a switch
//! would have a table.
//!
//! *Quantum.* At any packet, the gap differs from the exact recurrence over the same packets by less than what R drains
//! in one tick, plus one byte: under 3 bytes in all, however long the sequence, since rounding does not add up. So in
//! any interval an AQ lets through at most R times the interval, plus the limit, plus this quantum; nothing is added in
//! an interval within one tick. The limit is not reduced by a quantum to compensate: a burst of exactly `limit` bytes
//! into an idle AQ passes, as Algorithm 2 has it. A change of R may add one more quantum.
//!
//! *Wrap-around.* A clock wraps after 2^24 ticks ([`AqRate::wrap`]; 17 ms at 10 Gbps, always 17 to 34 MB worth of R).
//! An AQ must be updated within that time, by a packet or by [`Gap::drain`] ([`Table::sweep`](super::Table::sweep) does
//! so for a switch). Otherwise too little drains and never too much, so the limit becomes stricter.

use node::Marking;
use units::{Bytes, Duration, Problem, Stream, Time};

use super::AqRate;
use contract::CongestionSignal;

/// The largest limit. A gap and the packet that is about to exceed it fit into 24 bits.
pub const LIMIT_MAX: Bytes = Bytes((1 << 24) - 1 - u16::MAX as u64);

/// The limit and the CC fields of an AQ's configuration (Table 1), as integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, node::Saved)]
pub struct Policy {
    limit_bytes: u32,
    signal: Signal,
    capped: bool,
    /// Bytes of the physical queue of which it is told as if they were its own, and beyond which its packets are
    /// dropped; the largest number for never.
    yields_bytes: [u32; 2],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, node::Saved)]
enum Signal {
    None,
    Step {
        threshold_bytes: u32,
    },
    /// `slope` is the probability at `max_bytes`, times 2^32.
    Ramp {
        min_bytes: u32,
        max_bytes: u32,
        slope: u64,
    },
}

/// How an entity that uses lent bandwidth yields to the physical queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Yield {
    /// The packet is marked, if it is ECN-capable, and its virtual delay includes that of the physical queue.
    Told,
    /// The packet is dropped.
    Drop,
}

/// The action of an AQ on a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// False if the packet is dropped; the gap then stays as if it had not arrived.
    pub pass: bool,
    /// Whether the packet is marked "congestion experienced", if it is ECN-capable.
    pub mark: bool,
    /// Growth of the packet's virtual queueing delay: A/R including the packet; zero if it is dropped. Algorithm 2 adds
    /// it only for entities that react to delay. It is computed for all, since section 5.5 compares it with the delay
    /// of a real queue.
    pub virtual_delay: Duration,
    /// Whether the delay of the physical queue counts, too.
    pub told: bool,
}

impl Verdict {
    /// The packet passes unchanged.
    pub const UNTOUCHED: Verdict = Verdict { pass: true, mark: false, virtual_delay: Duration::ZERO, told: false };
    pub(crate) const DROP: Verdict = Verdict { pass: false, ..Verdict::UNTOUCHED };
}

/// The A-Gap and when it was last computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    pub(crate) bytes: u32,
    /// In ticks of the rate's clock.
    pub(crate) last: u32,
}

impl Gap {
    /// A(0) = 0.
    pub fn new(rate: AqRate, now: Time) -> Gap {
        Gap { bytes: 0, last: rate.clock(now) }
    }

    /// A packet of `bytes` arrives. Only a marking ramp draws from `random`.
    #[inline]
    pub fn arrive(&mut self, rate: AqRate, policy: &Policy, now: Time, bytes: u16, random: &mut Stream) -> Verdict {
        self.drain(rate, now);
        let grown = self.bytes + u32::from(bytes);
        if grown > policy.limit_bytes {
            return Verdict::DROP;
        }
        self.bytes = grown;
        let mark = match policy.signal {
            Signal::None => false,
            Signal::Step { threshold_bytes } => grown > threshold_bytes,
            Signal::Ramp { min_bytes, max_bytes, slope } => ramp(grown, min_bytes, max_bytes, slope, random),
        };
        Verdict { pass: true, mark, virtual_delay: rate.delay(grown), told: false }
    }

    /// Updates the gap to `now`: max(0, A - R dt).
    #[inline]
    pub fn drain(&mut self, rate: AqRate, now: Time) {
        let clock = rate.clock(now);
        self.bytes = self.bytes.saturating_sub(rate.drained(self.last, clock));
        self.last = clock;
    }

    /// Changes the allocated rate. The virtual delay A/R stays the same, as far as the new limit allows.
    ///
    /// The paper changes rates (section 6) but does not say what becomes of the gap. If its bytes stayed, an entity
    /// that has filled a large gap under a lent rate would have to drain it at its own rate: 400 KB of 4 Gbps at 60
    /// Mbps block every packet for 50 ms. With a constant delay, a rate that falls and returns leaves the gap as it
    /// was, and changing rates lend nothing.
    pub fn change_rate(&mut self, from: AqRate, to: AqRate, policy: &Policy, now: Time) {
        self.drain(from, now);
        if from != to {
            let scaled = (u128::from(self.bytes) * u128::from(to.mantissa())) << from.exponent();
            let parts = u128::from(from.mantissa()) << to.exponent();
            self.bytes = u32::try_from((scaled + parts / 2) / parts).unwrap_or(u32::MAX);
        }
        self.bytes = self.bytes.min(policy.limit_bytes);
        self.last = to.clock(now);
    }

    /// A, as of the last update.
    pub fn bytes(&self) -> Bytes {
        Bytes(u64::from(self.bytes))
    }

    /// A/R, as of the last update: how long the last packet would have waited in a queue of its own.
    pub fn virtual_delay(&self, rate: AqRate) -> Duration {
        rate.delay(self.bytes)
    }
}

/// Marks with a probability that grows from 0 at `min` to the slope at `max`, and always above. It compares products
/// and needs no division.
#[inline]
fn ramp(gap: u32, min: u32, max: u32, slope: u64, random: &mut Stream) -> bool {
    if gap <= min {
        return false;
    }
    gap > max || (random.bits() >> 32) * u64::from(max - min) < u64::from(gap - min) * slope
}

impl Policy {
    /// Keys of an error are `limit` and those of `feedback`.
    pub fn new(limit: Bytes, feedback: CongestionSignal) -> Result<Policy, Problem> {
        if limit > LIMIT_MAX || limit.get() == 0 {
            return Err(Problem::new("limit", format!("{limit} is not above 0 and at most {LIMIT_MAX}")));
        }
        // A threshold beyond the largest gap never marks.
        let word = |bytes: Bytes| bytes.get().min(1 << 24) as u32;
        let signal = match feedback {
            CongestionSignal::Drop | CongestionSignal::Delay => Signal::None,
            CongestionSignal::Ecn(Marking::Step { threshold }) => Signal::Step { threshold_bytes: word(threshold) },
            CongestionSignal::Ecn(Marking::GentleRamp { .. }) => {
                let message = "an AQ marks by a step or by a ramp; write one of the two";
                return Err(Problem::new("feedback.ecn.gentle_ramp", message));
            }
            CongestionSignal::Ecn(Marking::Ramp { min, max, probability_max, .. }) => {
                if !(min < max && max <= LIMIT_MAX && (0.0..=1.0).contains(&probability_max)) {
                    let message = format!("a ramp needs min < max <= {LIMIT_MAX} and a probability_max from 0 to 1");
                    return Err(Problem::new("feedback.ecn.ramp", message));
                }
                let slope = (probability_max * (1u64 << 32) as f64) as u64;
                Signal::Ramp { min_bytes: word(min), max_bytes: word(max), slope }
            }
        };
        Ok(Policy { limit_bytes: limit.get() as u32, signal, capped: false, yields_bytes: [u32::MAX; 2] })
    }

    /// The same policy for an entity that uses what others leave: once the physical queue holds more than `room`, it
    /// is told so, by a mark or by the delay of that queue, or if it reacts to neither, its packets are dropped. Beyond
    /// twice the room they are dropped in any case. `None`: never.
    pub fn with_room(self, room: Option<Bytes>, feedback: CongestionSignal) -> Policy {
        let word = |bytes: u64| u32::try_from(bytes).unwrap_or(u32::MAX);
        let told = feedback != CongestionSignal::Drop;
        let bytes = |room: Bytes| [word(room.get() >> u32::from(told)), word(room.get())];
        Policy { yields_bytes: room.map_or([u32::MAX; 2], bytes), ..self }
    }

    /// How a packet that finds `queued` bytes in the physical queue yields. `None`: the AQ alone decides.
    #[inline]
    pub fn yields(&self, queued: u32) -> Option<Yield> {
        let [told, dropped] = self.yields_bytes;
        match () {
            () if queued <= told => None,
            () if queued > dropped => Some(Yield::Drop),
            () => Some(Yield::Told),
        }
    }

    /// The same policy for a capped entity: every packet counts, even if the link has capacity to spare.
    pub fn with_cap(self, capped: bool) -> Policy {
        Policy { capped, ..self }
    }

    /// Whether every packet counts, even where packets of other entities bypass their AQ.
    pub fn is_capped(&self) -> bool {
        self.capped
    }

    /// The A-Gap above which packets are dropped.
    pub fn limit(&self) -> Bytes {
        Bytes(u64::from(self.limit_bytes))
    }

    /// The A-Gap above which every packet is marked, if it marks by a step.
    pub fn threshold(&self) -> Option<Bytes> {
        match self.signal {
            Signal::Step { threshold_bytes } => Some(Bytes(u64::from(threshold_bytes))),
            Signal::None | Signal::Ramp { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests;
