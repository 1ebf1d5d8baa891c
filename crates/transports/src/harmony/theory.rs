//! What Harmony's paper proves (section 3.3), as functions.
//!
//! `switches` is #H, the switches on the longest path; `k` is K, the virtual links of each link; `packet` is p, the
//! largest packet with all headers; `rate` is B, that of the slowest link. Where a product is beyond 64 bits it stays
//! at the largest value.

use units::{Bytes, Duration, Rate};

/// Theorem 3.1: the most that any packet finds queued before it at any switch, #H (K - 1) p. From the third switch on
/// an [`adversary`](super::adversary) can exceed it; that module has a bound that always holds.
pub fn queue_max(switches: u32, k: u32, packet: Bytes) -> Bytes {
    queue_max_at(switches, k, packet)
}

/// The same at the i-th switch of a path, from 1 on: i (K - 1) p, what [`queueing_delay_max`] adds up. Packets of the K
/// - 1 other messages may have met each other at each switch before.
pub fn queue_max_at(i: u32, k: u32, packet: Bytes) -> Bytes {
    Bytes(u64::from(i).saturating_mul(u64::from(k.saturating_sub(1))).saturating_mul(packet.0))
}

/// Equation 1: the longest total wait of a packet in all queues of its path, #H (#H + 1) / 2 (K - 1) p/B.
pub fn queueing_delay_max(switches: u32, k: u32, packet: Bytes, rate: Rate) -> Duration {
    let hops = u64::from(switches) * (u64::from(switches) + 1) / 2;
    rate.transmit(queue_max_at(1, k, packet).0.saturating_mul(hops))
}

/// The longest wait at the i-th switch of its path, from 1 on: i (K - 1) p/B.
pub fn queueing_delay_max_at(i: u32, k: u32, packet: Bytes, rate: Rate) -> Duration {
    rate.transmit(queue_max_at(i, k, packet).0)
}

/// K*: the most virtual links with which the queues of Theorem 3.1 fit into a switch with a buffer of S* = `buffer`,
/// even if all its `ports` are full at once, so that nothing is lost to congestion. 0 if none fit, or for a switch
/// without ports.
pub fn k_star(buffer: Bytes, ports: u32, switches: u32, packet: Bytes) -> u64 {
    let all = u64::from(switches).saturating_mul(packet.0).saturating_mul(u64::from(ports));
    buffer.0.checked_div(all).unwrap_or(0)
}

/// Theorem 3.2's f(K, C): which share of the slots that an ideal arbiter would fill Harmony is expected to fill, in a
/// leaf-spine of full bisection with C = `cores`. 0 without virtual links or cores.
///
/// The theorem's sum is E[min(X, K)] / K for X binomial with K C trials of probability 1/C. Its mean is K, so E[min(X,
/// K)] = K - E|X - K| / 2, and De Moivre's mean absolute deviation, E|X - K| = 2 K (1 - 1/C) P(X = K), leaves
///
/// f(K, C) = 1 - (1 - 1/C) P(X = K).
///
/// P(X = K) = Π (K C - K + i) / (i C) · (1 - 1/C)^(C-1) over i = 1..=K: factors above one for small i and below for
/// large. They are taken from both ends, whichever keeps the product near one, so that no K is too large for it.
pub fn slot_efficiency(k: u32, cores: u32) -> f64 {
    if k == 0 || cores == 0 {
        return 0.0;
    }
    let (links, c) = (f64::from(k), f64::from(cores));
    let missed = 1.0 - 1.0 / c;
    let others = libm::pow(missed, c - 1.0);
    let factor = |i: u32| (links * c - links + f64::from(i)) / (f64::from(i) * c) * others;
    let (mut low, mut high) = (1, k);
    let mut just_k = 1.0;
    while low <= high {
        if just_k < 1.0 {
            just_k *= factor(low);
            low += 1;
        } else {
            just_k *= factor(high);
            high -= 1;
        }
    }
    1.0 - missed * just_k
}

/// A message that is being sent in slots, for [`Message::delay_max`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// Its bytes, headers included.
    pub wire_bytes: Bytes,
    /// Its largest packet.
    pub packet: Bytes,
    /// Number of slots that it has from its first packet to its last.
    pub slots: u32,
    /// Rate of each slot: B/K, less what is kept for control.
    pub slot_rate: Rate,
}

/// The path of a [`Message`] and back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path {
    /// Number of switches on the path.
    pub switches: u32,
    /// Time of a full packet there and a control packet back in an empty network.
    pub unloaded_round_trip: Duration,
    /// The longest total delay of a packet in all queues of the path: [`queueing_delay_max`].
    pub queueing: Duration,
    /// Further delay at each transmitter: one best-effort packet already in transmission (section 3.2), and the rsvp
    /// and complete packets that share the first priority, at most K for each link. Zero as the theorem counts.
    pub at_each_hop: Duration,
}

impl Message {
    /// The most between a sender's first use of a rsvp and its receipt of the receiver's `complete`. None without
    /// packets' size or slots.
    ///
    /// The paper leaves the derivation to its technical report and calls it trivial; this one is ours:
    ///
    /// 1. A slot sends one packet every p / (B/K). With the packets dealt evenly to n slots the last one's turn is over
    ///    after ⌈packets / n⌉ of these periods. That has room for a first turn that comes a whole period late.
    /// 2. The last packet, with the sender's `complete` right behind it, and the receiver's `complete` take the
    ///    unloaded round trip,
    /// 3. and wait at most [`Path::queueing`] in each direction: Theorem 3.1 speaks of any packet in a first-priority
    ///    queue, and so of the `complete` too, although it has no virtual link of its own.
    /// 4. Each transmitter, the host's and those of the switches, both ways, adds [`Path::at_each_hop`].
    ///
    /// Hosts' own processing is not in it, as in the paper, nor what a sender lets its pace slip.
    pub fn delay_max(self, path: Path) -> Option<Duration> {
        if self.packet.0 == 0 || self.slots == 0 {
            return None;
        }
        let periods = self.wire_bytes.0.div_ceil(self.packet.0).div_ceil(u64::from(self.slots));
        let paced = self.slot_rate.transmit(periods.saturating_mul(self.packet.0));
        let hops = 2 * (u64::from(path.switches) + 1);
        let waits = path.queueing.ps().saturating_mul(2).saturating_add(path.at_each_hop.ps().saturating_mul(hops));
        let all = paced.ps().saturating_add(path.unloaded_round_trip.ps()).saturating_add(waits);
        Some(Duration::from_ps(all))
    }
}

#[cfg(test)]
mod tests;
