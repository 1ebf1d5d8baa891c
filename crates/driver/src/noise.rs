//! Bit errors and losses on a link.
//!
//! Each bit of each packet is inverted with the same probability, independently. So the number of correct bits before
//! the next wrong one has a geometric distribution. It is drawn once for each error, and a packet without errors costs
//! a subtraction. Each link has a random stream of its own, and its packets stay in order, so the thread that runs it
//! makes no difference.
//!
//! A damaged packet is lost at the link's end: Ethernet's frame check sequence is assumed to find every error (a CRC of
//! 32 bits misses one damaged frame of 4 billion). That also holds for cut-through switches, although a real one would
//! notice too late. A transport whose packets are not in Ethernet frames has a checksum of its own, which finds fewer
//! errors ([`node::Header::damage`]).
//!
//! Losses hit whole packets, whatever their length, as a bad optic or a full buffer in an unknown box would. They are
//! drawn in the same way, before bit errors, from a stream of their own.
//!
//! Frames of a flow control are hit and lost as packets are, if it bears that: PFC whose pauses expire and are
//! refreshed (`quanta`). Frames of others are neither hit nor lost, since a single lost frame would stop a link for
//! ever. So a lossy link harms them less here than in reality. Messages of link-level retry are hit and lost as packets
//! are, since it recovers by itself.

use std::sync::Arc;

use catalogue::Transport;
use fabric::LinkNoise;
use node::Packet;
use node::packet::flags;
use units::Stream;

/// What damages or loses the packets of a link.
#[derive(node::Saved)]
pub struct Noise {
    /// Whether it ever did anything.
    pub(crate) begun: bool,
    bits: Trials,
    packets: Trials,
    #[state(built("settings"))]
    transports: Arc<[Transport]>,
    /// Whether it hits frames of a flow control, too.
    #[state(built("settings"))]
    pub(crate) hits_frames: bool,
    /// Frames that were lost or hit, which are counted with no packets.
    pub lost_frames: u64,
    /// Packets with bit errors, which were noticed and cost them.
    pub corrupted_packets: u64,
    /// Bytes of them.
    pub corrupted_bytes: u64,
    /// Packets with bit errors that nothing noticed.
    pub unnoticed_packets: u64,
    /// Packets that were lost.
    pub lossy_packets: u64,
    /// Bytes of them.
    pub lossy_bytes: u64,
}

/// Independent trials that hit with the same probability.
#[derive(node::Saved)]
struct Trials {
    random: Stream,
    probability: f64,
    /// How many trials will miss before the next one hits.
    misses: u64,
}

impl Trials {
    fn new(random: Stream) -> Trials {
        Trials { random, probability: 0.0, misses: 0 }
    }

    fn set(&mut self, probability: f64) {
        if probability != self.probability {
            self.probability = probability;
            if probability > 0.0 {
                self.misses = self.random.failures_before(probability);
            }
        }
    }

    /// Whether all of the next `count` miss.
    fn miss(&mut self, count: u64) -> bool {
        if self.probability == 0.0 {
            return true;
        }
        let all = self.misses >= count;
        if all {
            self.misses -= count;
        }
        all
    }

    /// Which of the next `count` hit, where not all miss.
    fn hits(&mut self, count: u64) -> Vec<u32> {
        let (mut hits, mut at) = (Vec::new(), self.misses);
        while at < count {
            hits.push(at as u32);
            at = at.saturating_add(1).saturating_add(self.random.failures_before(self.probability));
        }
        self.misses = at - count;
        hits
    }
}

impl Noise {
    /// The noise of a link that neither damages nor loses packets yet.
    pub(crate) fn new(seed: u64, link: u64, transports: Arc<[Transport]>) -> Noise {
        Noise {
            begun: false,
            bits: Trials::new(Stream::new(seed, link, "bit errors")),
            packets: Trials::new(Stream::new(seed, link, "losses")),
            transports,
            hits_frames: false,
            lost_frames: 0,
            corrupted_packets: 0,
            corrupted_bytes: 0,
            unnoticed_packets: 0,
            lossy_packets: 0,
            lossy_bytes: 0,
        }
    }

    /// The same noise, which may also hit frames of a flow control.
    pub(crate) fn hitting_frames(self, hits_frames: bool) -> Noise {
        Noise { hits_frames, ..self }
    }

    /// Sets the probabilities of errors and losses from now on.
    pub(crate) fn set(&mut self, noise: LinkNoise) {
        self.begun = true;
        self.bits.set(noise.bit_error_rate);
        self.packets.set(noise.loss);
    }

    /// Whether it loses every packet.
    pub(crate) fn loses_all(&self) -> bool {
        self.packets.probability >= 1.0
    }

    /// Whether a message of this many bytes, which is no packet and is not counted, is lost or damaged.
    pub(crate) fn hits(&mut self, bytes: u64) -> bool {
        let lost = !self.packets.miss(1);
        if lost {
            self.packets.hits(1);
        }
        let damaged = !self.bits.miss(8 * bytes);
        if damaged {
            self.bits.hits(8 * bytes);
        }
        lost || damaged
    }

    /// Whether this packet, which has passed the link, is lost. If it is not, it may have been changed.
    pub(crate) fn loses(&mut self, packet: &mut Packet) -> bool {
        if packet.has(flags::LINK_FRAME) {
            let lost = self.hits_frames && self.hits(u64::from(packet.wire_bytes));
            self.lost_frames += u64::from(lost);
            return lost;
        }
        if !self.packets.miss(1) {
            self.packets.hits(1);
            self.lossy_packets += 1;
            self.lossy_bytes += u64::from(packet.wire_bytes);
            return true;
        }
        let bits = u64::from(packet.wire_bytes) * 8;
        if self.bits.miss(bits) {
            return false;
        }
        let wrong = self.bits.hits(bits);
        let wire_bytes = packet.wire_bytes;
        // Packets of rate limiters belong to no transport.
        let transport = self.transports.get(usize::from(packet.transport));
        if transport.is_some_and(|transport| transport.damage(packet, &wrong)) {
            self.unnoticed_packets += 1;
            return false;
        }
        self.corrupted_packets += 1;
        self.corrupted_bytes += u64::from(wire_bytes);
        true
    }
}

#[cfg(test)]
mod tests;
