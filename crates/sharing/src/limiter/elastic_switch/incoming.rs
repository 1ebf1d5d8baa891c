//! The pairs whose receiver is this VM.

use std::collections::{BTreeMap, VecDeque};

use node::Packet;
use node::packet::flags;
use units::{HostId, Rate, Time};

use super::partition::{Claim, divide, estimate};

/// All traffic of others to this VM.
#[derive(node::Saved)]
pub(super) struct Incoming {
    hose: Rate,
    pairs: BTreeMap<HostId, Pair>,
    /// Senders that are due a report.
    reports_due: VecDeque<HostId>,
}

#[derive(node::Saved)]
struct Pair {
    claim: Claim,
    received_packets: u64,
    /// Packets sent but not received when the sender last reported its count.
    missing_packets: u64,
    /// Marked and lost packets.
    signs: u64,
    /// Number of signs last reported to the sender.
    told_signs: u64,
    report_due: bool,
}

impl Incoming {
    pub fn new(hose: Rate) -> Incoming {
        Incoming { hose, pairs: BTreeMap::new(), reports_due: VecDeque::new() }
    }

    /// A packet for the VM has arrived.
    pub fn data(&mut self, now: Time, packet: &Packet) {
        let pair = self.pairs.entry(packet.src).or_insert_with(Pair::new);
        pair.received_packets += 1;
        pair.claim.bytes += u64::from(packet.wire_bytes);
        pair.signs += u64::from(packet.has(flags::CE));
        self.begin(now, packet.src);
    }

    /// `peer` has reported how many packets it had sent.
    pub fn counted(&mut self, now: Time, peer: HostId, sent_packets: u64) {
        let pair = self.pairs.entry(peer).or_insert_with(Pair::new);
        let missing = sent_packets.saturating_sub(pair.received_packets);
        pair.signs = pair.signs.saturating_add(missing.saturating_sub(pair.missing_packets));
        pair.missing_packets = missing;
        self.begin(now, peer);
    }

    /// Whether any pair is active.
    pub fn active(&self) -> bool {
        self.pairs.values().any(|pair| pair.claim.active)
    }

    /// Guarantee partitioning: a period has ended.
    pub fn end_period(&mut self, began: Time, now: Time, headroom: f64) {
        estimate((began, now), self.hose, headroom, self.pairs.values_mut().map(|pair| (&mut pair.claim, 0)));
        divide(self.hose, self.pairs.values_mut().map(|pair| &mut pair.claim));
        self.report_all();
    }

    /// Rate allocation: an interval has ended. Senders of pairs with congestion become due a report.
    pub fn end_interval(&mut self) {
        for (&peer, pair) in self.pairs.iter_mut().filter(|(_, pair)| pair.claim.active && pair.signs > pair.told_signs)
        {
            pair.report(peer, &mut self.reports_due);
        }
    }

    /// A sender that is due a report, with its pair's guarantee and the number of signs of congestion so far.
    pub fn next_report(&mut self) -> Option<(HostId, Rate, u64)> {
        while let Some(peer) = self.reports_due.pop_front() {
            let pair = self.pairs.get_mut(&peer).expect("pairs stay");
            pair.report_due = false;
            if pair.claim.active {
                pair.told_signs = pair.signs;
                return Some((peer, pair.claim.part, pair.signs));
            }
        }
        None
    }

    /// A silent pair becomes active: all shares change, and all senders are due a report.
    fn begin(&mut self, now: Time, peer: HostId) {
        let pair = self.pairs.get_mut(&peer).expect("pairs stay");
        if !pair.claim.active {
            pair.claim.begin(now);
            divide(self.hose, self.pairs.values_mut().map(|pair| &mut pair.claim));
            self.report_all();
        }
    }

    fn report_all(&mut self) {
        for (&peer, pair) in self.pairs.iter_mut().filter(|(_, pair)| pair.claim.active) {
            pair.report(peer, &mut self.reports_due);
        }
    }
}

impl Pair {
    fn new() -> Pair {
        Pair {
            claim: Claim::new(),
            received_packets: 0,
            missing_packets: 0,
            signs: 0,
            told_signs: 0,
            report_due: false,
        }
    }

    fn report(&mut self, peer: HostId, due: &mut VecDeque<HostId>) {
        if !self.report_due {
            self.report_due = true;
            due.push_back(peer);
        }
    }
}
