//! Bit errors on a link.
//!
//! Each bit of each packet is inverted with the same probability, independently. So the number of whole bits before the next wrong one is geometric, and that is
//! what is drawn, once an error: packets that come through whole cost a subtraction. The stream of draws is the link's own, and its packets come in
//! their own order, so that it makes no difference which thread it is on.
//!
//! What is hit is lost where the link ends: Ethernet's frame check sequence is taken to find every error (a CRC of 32 bits lets one damaged frame of 4 billion
//! pass), also in a switch that cuts through and would in truth notice too late. A transport whose packets are in no Ethernet frame has a checksum of its
//! own, which does what it can ([`node::Header::damage`]). Frames of a flow control are not hit: what makes real ones safe, repetition and timers, is not modelled.

use std::sync::Arc;

use node::Packet;
use node::packet::flags;
use schemes::Transport;
use units::Stream;

pub(crate) struct Noise {
    random: Stream,
    bit_error_rate: f64,
    /// Bits that come through whole before the next that does not.
    whole_bits: u64,
    transports: Arc<[Transport]>,
    pub corrupted_packets: u64,
    pub corrupted_bytes: u64,
    pub unnoticed_packets: u64,
}

impl Noise {
    /// Of a link that is quiet for now.
    pub fn new(seed: u64, link: u64, transports: Arc<[Transport]>) -> Noise {
        Noise {
            random: Stream::new(seed, link, "bit errors"),
            bit_error_rate: 0.0,
            whole_bits: 0,
            transports,
            corrupted_packets: 0,
            corrupted_bytes: 0,
            unnoticed_packets: 0,
        }
    }

    /// Each bit is wrong with this probability from now on.
    pub fn set_rate(&mut self, bit_error_rate: f64) {
        self.bit_error_rate = bit_error_rate;
        if bit_error_rate > 0.0 {
            self.whole_bits = self.random.failures_before(bit_error_rate);
        }
    }

    /// Whether this packet, which has passed the link, is lost. If it is not, it may have been changed.
    pub fn loses(&mut self, packet: &mut Packet) -> bool {
        let bits = u64::from(packet.wire_bytes) * 8;
        if self.bit_error_rate == 0.0 || packet.has(flags::LINK_FRAME) {
            return false;
        }
        if self.whole_bits >= bits {
            self.whole_bits -= bits;
            return false;
        }
        let (mut wrong, mut at) = (Vec::new(), self.whole_bits);
        while at < bits {
            wrong.push(at as u32);
            at = at.saturating_add(1).saturating_add(self.random.failures_before(self.bit_error_rate));
        }
        self.whole_bits = at - bits;
        let wire_bytes = packet.wire_bytes;
        // What limiters send is no transport's.
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
mod tests {
    use units::{FlowId, HostId};

    use super::*;

    fn packet(wire_bytes: u16) -> Packet {
        let mut packet = Packet::bare(FlowId(0), HostId(0), HostId(1));
        packet.wire_bytes = wire_bytes;
        packet
    }

    #[test]
    fn a_packet_is_hit_as_often_as_any_of_its_bits() {
        for (bit_error_rate, bytes) in [(1e-5, 1_500), (1e-3, 64), (1e-6, 9_000), (0.5, 1)] {
            let mut noise = Noise::new(1, 7, Arc::new([]));
            noise.set_rate(bit_error_rate);
            let count = 100_000;
            let lost = (0..count).filter(|_| noise.loses(&mut packet(bytes))).count() as f64;
            let hit = 1.0 - (1.0 - bit_error_rate).powi(i32::from(bytes) * 8);
            let (due, slack) = (f64::from(count) * hit, 4.0 * (f64::from(count) * hit * (1.0 - hit)).sqrt());
            assert!((lost - due).abs() <= slack, "{bit_error_rate}, {bytes} B: {lost} for {due}");
            assert_eq!(noise.corrupted_packets as f64, lost);
            assert_eq!(noise.corrupted_bytes, noise.corrupted_packets * u64::from(bytes));
        }
    }

    #[test]
    fn a_quiet_link_and_a_frame_lose_nothing() {
        let mut noise = Noise::new(1, 7, Arc::new([]));
        assert!(!noise.loses(&mut packet(1_500)));
        noise.set_rate(0.5);
        let mut frame = packet(64);
        frame.flags = flags::LINK_FRAME;
        assert!(!noise.loses(&mut frame) && noise.loses(&mut packet(1_500)));
        noise.set_rate(0.0);
        assert!((0..100).all(|_| !noise.loses(&mut packet(1_500))));
    }
}
