//! How long Harmony's queues get when an adversary arranges the arrivals: a test of Theorem 3.1.
//!
//! The premises are the theorem's. Time is counted in packets (p/B). A link carries K messages, each over a virtual
//! link of bandwidth B/K, so that its packets leave their sender at least K apart. Messages end, others begin. Each
//! switch is a queue served in order of arrival. The adversary chooses when messages send, and the order of service of
//! packets that arrive at the same time.
//!
//! It proceeds along a path. At each switch a *victim* message meets K - 1 others with the same history as its own,
//! which send some packets and end. The adversary chooses how many packets they send and how much later the victim
//! arrives. The victim's first packet is then delayed and its later ones are not, so that they catch up with the first.
//! K such victims, each from other switches, meet at the next switch. So a port at the i-th switch takes a tree of K^i
//! messages: a leaf-spine network has that many paths to one host.
//!
//! What it finds ([`worst`]):
//!
//! - At the first two switches the queues reach exactly i (K - 1) p: Theorem 3.1 is tight there.
//! - From the third switch on, for K of 3 and more, they get *longer than the theorem says*: 27 packets instead of 21
//!   for K = 8, and 95 instead of 35 at the fifth switch. The theorem's i (K - 1) assumes that each switch holds a
//!   victim up by one more round of the others. But packets that have closed up upstream arrive together, so that a
//!   message can catch up by the sum of all earlier waits.
//! - What is proven for the order of arrival, where links do not precede each other in cycles, is 2^(i-1) (K - 1) p at
//!   the i-th switch, and (2^#H - 1) (K - 1) p/B for the whole path ([`proven_queue_max_at`],
//!   [`proven_queueing_delay_max`]); [`bounds`](super::bounds) has the proof, which includes the reuse of virtual
//!   links. The adversary comes within a fifth of it. An exhaustive search of one port (`exhaustive`, for small K)
//!   finds exactly the proven bound.
//! - Served in turn ([`Service::RoundRobin`](super::Service)), the theorem holds: i (K - 1) p at the i-th switch, and
//!   #H (K - 1) p/B for the whole path, which is less than equation (1).
//!
//! With K = 2 the theorem holds at the first three switches: a packet that was held up by j has that much less in
//! flight beside it, so that two switches hold it up by 2 and not by 3 (`exhaustive`). From the fourth switch on the
//! question is open. This adversary does not exceed the theorem; the search, in which every packet may be as late as
//! the latest one, finds 5 packets where the theorem has 4.
//!
//! The paper's proof is in a technical report that is not available, so that it cannot be compared. No run with traffic
//! like the paper's comes near either bound (`guarantees` in the results has the numbers). Zero loss needs only enough
//! buffer: with the proven bound K* is 28 and 73 for the paper's two fat-trees, and the paper uses a K of 8.

#[cfg(test)]
mod exhaustive;

use units::{Bytes, Duration, Rate};

/// The most packets that any packet finds queued before it at the i-th switch of its path, from 1 on: 2^(i-1) (K - 1)
/// p.
pub fn proven_queue_max_at(i: u32, k: u32, packet: Bytes) -> Bytes {
    let rounds = 1u64.checked_shl(i.saturating_sub(1)).unwrap_or(u64::MAX);
    Bytes(rounds.saturating_mul(u64::from(k.saturating_sub(1))).saturating_mul(packet.0))
}

/// The longest total wait at all switches of its path: (2^#H - 1) (K - 1) p/B.
pub fn proven_queueing_delay_max(switches: u32, k: u32, packet: Bytes, rate: Rate) -> Duration {
    let rounds = 1u64.checked_shl(switches).unwrap_or(u64::MAX) - 1;
    rate.transmit(rounds.saturating_mul(u64::from(k.saturating_sub(1))).saturating_mul(packet.0))
}

/// What the adversary has arranged for the ports at the i-th switches of paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meeting {
    /// When each packet of a message arrives at such a port, in packet times after the first. K messages arrive alike.
    pub arrivals: Vec<u64>,
    /// The most packets that wait there if all K arrive together.
    pub queued_packets: u64,
    /// For the next switch: how many packets the K - 1 others send here before they end.
    pub others_packets: usize,
    /// And how much later than theirs the victim's packets arrive.
    pub victim_later: u64,
}

/// The worst case that the adversary achieves with K virtual links for each link, at each switch of a path.
pub fn worst(k: u32, switches: u32) -> Vec<Meeting> {
    let mut arrivals: Vec<u64> = (0..message_packets(switches)).map(|packet| packet * u64::from(k)).collect();
    let mut meetings = Vec::new();
    for i in 1..=switches {
        let sent = 1..=(1usize << i.min(20)).min(arrivals.len());
        let choices = sent.flat_map(|sent| (0..=arrivals[sent - 1] + 1).map(move |later| (sent, later)));
        let passed = choices.map(|(sent, later)| (sent, later, pass(k, &arrivals, sent, later)));
        let best = passed.reduce(|best, next| if queued(k, &next.2) > queued(k, &best.2) { next } else { best });
        let (others_packets, victim_later, closed_up) = best.expect("there is always a first choice");
        let queued_packets = queued(k, &arrivals);
        meetings.push(Meeting { arrivals, queued_packets, others_packets, victim_later });
        arrivals = closed_up;
    }
    meetings
}

/// The adversary's arrangement for one packet at the i-th switch of its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delay {
    /// How many packets each of the K - 1 others sends there before this packet is served, all closed up to their
    /// first.
    pub others_packets: u64,
    /// How many packet times after their first packet it arrives.
    pub later: u64,
    /// How many packet times it waits.
    pub packets: u64,
}

/// The longest that the adversary can hold one packet up, at each of this many switches of its path. The packet is the
/// first of a message, and meets K - 1 others that have been held up for as long, so that their later packets have
/// closed up. The sum exceeds equation (1) from the third switch on for K of 7 and more: 44 packet times instead of 42
/// with K = 8.
pub fn worst_wait(k: u32, switches: u32) -> Vec<Delay> {
    let (k, mut late) = (u64::from(k.max(1)), 0);
    let mut delays = Vec::new();
    for _ in 0..switches.min(20) {
        let sent = |later: u64| (1 + (later + late) / k).min(later + 1);
        let delay = |later| Delay {
            others_packets: sent(later),
            later,
            packets: ((k - 1) * sent(later)).saturating_sub(later),
        };
        let best = (0..=late + k).map(delay).reduce(|best, next| if next.packets > best.packets { next } else { best });
        let best = best.expect("0 is one");
        late += best.packets;
        delays.push(best);
    }
    delays
}

/// More than a message can close up over this many switches: its total wait is below 2^switches rounds.
fn message_packets(switches: u32) -> u64 {
    (1 << switches.min(20)) + 2
}

/// Packets that wait when K messages with these arrival times come at once, and the link is never idle.
fn queued(k: u32, arrivals: &[u64]) -> u64 {
    let after = |(packet, &at): (u64, &u64)| (u64::from(k) * (packet + 1)).saturating_sub(at + 1);
    (0..).zip(arrivals).map(after).max().unwrap_or(0)
}

/// When a victim's packets leave a switch where K - 1 others send the first `sent` of theirs and the victim arrives
/// that much later, in packet times after its first packet, which is served last of those that arrive with it.
fn pass(k: u32, arrivals: &[u64], sent: usize, later: u64) -> Vec<u64> {
    let mut others = arrivals[..sent].iter().peekable();
    let (mut free_at, mut first) = (0, None);
    let leave = |&at: &u64| {
        let at = at + later;
        while let Some(&other) = others.next_if(|&&other| other <= at) {
            free_at = other.max(free_at) + u64::from(k) - 1;
        }
        let begins = at.max(free_at);
        free_at = begins + 1;
        begins - *first.get_or_insert(begins)
    };
    arrivals.iter().map(leave).collect()
}

#[cfg(test)]
mod tests;
