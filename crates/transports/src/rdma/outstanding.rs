use std::collections::VecDeque;

use units::Time;

/// The packets of a message that have been sent and not acknowledged, and those to be sent again.
///
/// Go-back-N moves `next` back. IRN (Mittal et al., section 3.1) records which packets have arrived out of order, and a
/// recovery that ends when everything sent before it began is acknowledged.
#[derive(Debug, node::State)]
pub(crate) struct Outstanding {
    /// Packets of the message.
    total: u64,
    /// The first packet without acknowledgement.
    #[state(sequence)]
    una: u64,
    /// The next packet if nothing is to be repaired.
    #[state(sequence)]
    next: u64,
    /// The first packet that has not been sent.
    #[state(sequence)]
    sent: u64,
    /// IRN: packets that arrived out of order, from `una` on.
    sacked: VecDeque<bool>,
    /// IRN: packets before this one have been sent again since the last timeout, have arrived, or were not lost.
    #[state(when(self.repair.is_some(), sequence))]
    resent: u64,
    repair: Option<Repair>,
}

/// IRN's loss recovery.
#[derive(Clone, Copy, Debug, node::State)]
struct Repair {
    /// It ends when all packets before this one are acknowledged (the recovery sequence).
    #[state(sequence)]
    until: u64,
    /// Packets before this one that have not arrived are lost, since a later packet has arrived.
    #[state(sequence)]
    top: u64,
    /// Set if it began with a timeout: the time.
    #[state(past)]
    timed_out: Option<Time>,
}

/// How far beyond the cumulative acknowledgement a packet may be: what an IRN receiver has to remember.
pub(crate) const REACH: u64 = 1 << 16;

impl Outstanding {
    pub fn new(total: u64) -> Outstanding {
        Outstanding { total, una: 0, next: 0, sent: 0, sacked: VecDeque::new(), resent: 0, repair: None }
    }

    /// Every packet before this one is acknowledged.
    pub fn una(&self) -> u64 {
        self.una
    }

    /// The next new packet or, after going back, the next to repeat.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// The first packet that has not been sent.
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// Packets that count for the window: between the cumulative acknowledgement and the next packet.
    pub fn in_flight(&self) -> u64 {
        self.next - self.una
    }

    /// Whether something has been sent and not been acknowledged.
    pub fn any(&self) -> bool {
        self.una < self.sent
    }

    /// Whether all is acknowledged.
    pub fn done(&self) -> bool {
        self.una == self.total
    }

    /// Whether the first outstanding packet has still to be sent again.
    pub fn head_waits(&mut self) -> bool {
        self.next == self.una || self.lost() == Some(self.una)
    }

    /// The first packet that is lost and has not been sent again in this recovery.
    pub fn lost(&mut self) -> Option<u64> {
        let top = self.repair?.top;
        let arrived = |packet: u64| self.sacked.get((packet - self.una) as usize) == Some(&true);
        self.resent = self.resent.max(self.una);
        while self.resent < top && arrived(self.resent) {
            self.resent += 1;
        }
        (self.resent < top).then_some(self.resent)
    }

    /// The next packet if nothing is lost, regardless of the window.
    pub fn following(&self) -> Option<u64> {
        (self.next < self.total && self.next < self.una + REACH).then_some(self.next)
    }

    /// A packet is sent. Returns whether it had been sent before.
    pub fn send(&mut self, packet: u64) -> bool {
        if packet == self.next {
            self.next += 1;
        } else {
            self.resent = packet + 1;
        }
        let again = packet < self.sent;
        self.sent = self.sent.max(packet + 1);
        again
    }

    /// An acknowledgement of a packet sent at `echo`: everything before `upto` has arrived. Returns whether that is
    /// new. `upto` must not be beyond what was sent.
    pub fn acknowledge(&mut self, upto: u64, echo: Time) -> bool {
        if upto <= self.una {
            return false;
        }
        let passed = (upto - self.una).min(self.sacked.len() as u64) as usize;
        self.sacked.drain(..passed);
        self.una = upto;
        self.next = self.next.max(upto);
        if let Some(repair) = &mut self.repair {
            if self.una >= repair.until {
                self.repair = None;
            } else if repair.timed_out.is_some_and(|at| echo >= at) {
                // The retransmission has arrived and not the original, so the packets after it are lost too.
                repair.top = repair.until;
            }
        }
        true
    }

    /// Go-back-N: `una` was missing when a later packet came.
    pub fn go_back(&mut self) {
        self.next = self.una;
    }

    /// IRN: `packet` has arrived, but not everything before it. Missing packets more than `reordering` before it are
    /// lost. Returns whether recovery begins. `packet` must have been sent.
    pub fn sack(&mut self, packet: u64, reordering: u64) -> bool {
        if packet < self.una {
            return false; // all before it has arrived since
        }
        let place = (packet - self.una) as usize;
        if self.sacked.len() <= place {
            self.sacked.resize(place + 1, false);
        }
        self.sacked[place] = true;
        let top = packet.saturating_sub(reordering);
        if top <= self.una {
            return false;
        }
        let begins = self.repair.is_none();
        let new = Repair { until: self.next, top: self.una, timed_out: None };
        let repair = self.repair.get_or_insert(new);
        repair.top = repair.top.max(top);
        begins
    }

    /// IRN: a timeout. The first outstanding packet counts as lost, and so do those known to be.
    pub fn time_out(&mut self, now: Time) {
        let top = self.repair.map_or(self.una, |repair| repair.top).max(self.una + 1);
        self.resent = self.una;
        self.repair = Some(Repair { until: self.next, top, timed_out: Some(now) });
    }
}

#[cfg(test)]
mod tests;
