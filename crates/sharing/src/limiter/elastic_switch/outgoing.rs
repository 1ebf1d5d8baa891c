//! The pairs whose sender is this VM.

use std::collections::{BTreeMap, VecDeque};

use node::Packet;
use units::{Bytes, FlowId, HostId, Rate, Time};

use super::allocation::{Allocation, Met, Probing};
use super::partition::{Claim, divide, estimate};
use crate::limiter::TokenBucket;

/// All traffic of this VM to others.
#[derive(node::Saved)]
pub(super) struct Outgoing {
    hose: Rate,
    link: Rate,
    burst: Bytes,
    queue_packets: usize,
    pairs: BTreeMap<HostId, Pair>,
    /// Pairs with waiting packets, in the order of service.
    turns: VecDeque<HostId>,
    /// Pairs whose receiver is due a count.
    counts_due: VecDeque<HostId>,
    pub passed: u64,
    pub dropped: u64,
    /// Number of times that a pair met congestion.
    pub congested: u64,
}

#[derive(node::Saved)]
struct Pair {
    claim: Claim,
    queue: VecDeque<Packet>,
    queued_bytes: u64,
    bucket: TokenBucket,
    allocation: Allocation,
    /// Class of its last packet.
    class: u8,
    sent_packets: u64,
    counted_packets: u64,
    /// Bytes sent in this interval.
    sent_bytes: u64,
    signs: u64,
    signs_heeded: u64,
}

impl Outgoing {
    pub fn new(hose: Rate, link: Rate, burst: Bytes, queue_packets: u32) -> Outgoing {
        Outgoing {
            hose,
            link,
            burst,
            queue_packets: queue_packets as usize,
            pairs: BTreeMap::new(),
            turns: VecDeque::new(),
            counts_due: VecDeque::new(),
            passed: 0,
            dropped: 0,
            congested: 0,
        }
    }

    /// Whether packets of a flow wait here.
    pub fn holds(&self, flow: FlowId) -> bool {
        self.pairs.values().any(|pair| pair.queue.iter().any(|packet| packet.flow == flow))
    }

    /// Queues a packet behind those to the same host. Returns whether there was room.
    pub fn enqueue(&mut self, now: Time, packet: Packet) -> bool {
        let pair = self.pairs.entry(packet.dst).or_insert_with(|| Pair::new(self.burst));
        if !pair.claim.active {
            pair.claim.begin(now);
            pair.allocation = Allocation::default();
            self.divide(now);
        }
        let pair = self.pairs.get_mut(&packet.dst).expect("just found or made");
        if pair.queue.len() >= self.queue_packets {
            self.dropped += 1;
            return false;
        }
        if pair.queue.is_empty() {
            self.turns.push_back(packet.dst);
        }
        pair.queued_bytes += u64::from(packet.wire_bytes);
        pair.queue.push_back(packet);
        true
    }

    /// The next packet: of the first pair, in turn, that has tokens.
    pub fn transmit(&mut self, now: Time) -> Option<Packet> {
        for _ in 0..self.turns.len() {
            let peer = self.turns.pop_front()?;
            let pair = self.pairs.get_mut(&peer).expect("pairs stay");
            let packet = pair.send(now);
            if !pair.queue.is_empty() {
                self.turns.push_back(peer);
            }
            if packet.is_some() {
                self.passed += 1;
                return packet;
            }
        }
        None
    }

    /// When [`Outgoing::transmit`] next has a packet that it doesn't have at `seen`.
    pub fn ready_after(&self, seen: Time) -> Time {
        let times = self.turns.iter().map(|peer| self.pairs[peer].ready_at());
        times.filter(|&at| at > seen).min().unwrap_or(Time::MAX)
    }

    /// Whether any pair is active.
    pub fn active(&self) -> bool {
        self.pairs.values().any(|pair| pair.claim.active)
    }

    /// `peer` has reported its guarantee for this pair and the number of signs of congestion that it has seen.
    pub fn reported(&mut self, now: Time, peer: HostId, guarantee: Rate, signs: u64) {
        let Some(pair) = self.pairs.get_mut(&peer) else { return };
        pair.signs = pair.signs.max(signs);
        if pair.claim.active && pair.claim.other_part != guarantee {
            pair.claim.other_part = guarantee;
            self.divide(now);
        }
    }

    /// Guarantee partitioning: a period has ended.
    pub fn end_period(&mut self, began: Time, now: Time, headroom: f64) {
        let claims = self.pairs.values_mut().map(|pair| (&mut pair.claim, pair.queued_bytes));
        estimate((began, now), self.hose, headroom, claims);
        self.divide(now);
    }

    /// Rate allocation: an interval has ended.
    pub fn end_interval(&mut self, now: Time, probing: &Probing) {
        for (&peer, pair) in self.pairs.iter_mut().filter(|(_, pair)| pair.claim.active) {
            let guarantee = pair.claim.guarantee();
            let congested = pair.signs > pair.signs_heeded;
            let most = pair.bucket.rate().bytes_in(probing.interval);
            let used = !pair.queue.is_empty() || pair.sent_bytes >= most - most / 10;
            pair.allocation.adapt(probing, self.link, Met { guarantee, congested, used });
            pair.bucket.set_rate(now, pair.allocation.rate(guarantee));
            pair.signs_heeded = pair.signs;
            pair.sent_bytes = 0;
            self.congested += u64::from(congested);
            if pair.sent_packets > pair.counted_packets {
                pair.counted_packets = pair.sent_packets;
                self.counts_due.push_back(peer);
            }
        }
    }

    /// A receiver that is due a count, with the number of packets sent to it so far and their class.
    pub fn next_count(&mut self) -> Option<(HostId, u64, u8)> {
        let peer = self.counts_due.pop_front()?;
        let pair = &self.pairs[&peer];
        Some((peer, pair.sent_packets, pair.class))
    }

    fn divide(&mut self, now: Time) {
        divide(self.hose, self.pairs.values_mut().map(|pair| &mut pair.claim));
        for pair in self.pairs.values_mut().filter(|pair| pair.claim.active) {
            pair.bucket.set_rate(now, pair.allocation.rate(pair.claim.guarantee()));
        }
    }
}

impl Pair {
    fn new(burst: Bytes) -> Pair {
        Pair {
            claim: Claim::new(),
            queue: VecDeque::new(),
            queued_bytes: 0,
            bucket: TokenBucket::new(Rate::ZERO, burst),
            allocation: Allocation::default(),
            class: 0,
            sent_packets: 0,
            counted_packets: 0,
            sent_bytes: 0,
            signs: 0,
            signs_heeded: 0,
        }
    }

    fn send(&mut self, now: Time) -> Option<Packet> {
        let bytes = u64::from(self.queue.front()?.wire_bytes);
        if !self.bucket.take(now, bytes) {
            return None;
        }
        let packet = self.queue.pop_front()?;
        self.queued_bytes -= bytes;
        self.claim.bytes += bytes;
        self.sent_bytes += bytes;
        self.sent_packets += 1;
        self.class = packet.class;
        Some(packet)
    }

    fn ready_at(&self) -> Time {
        self.queue.front().map_or(Time::MAX, |head| self.bucket.ready_at(u64::from(head.wire_bytes)))
    }
}
