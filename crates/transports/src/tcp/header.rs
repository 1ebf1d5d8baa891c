//! What is on the wire.

use bytemuck::{Pod, Zeroable};
use node::packet::Malformed;
use units::Duration;

/// What TCP packets carry, 32 bytes.
///
/// A flow carries one message one way, so a packet is either data or an acknowledgement and the fields serve both.
/// SACK blocks count segments from the cumulative acknowledgement: every segment but a message's last is as long as
/// the network allows, so 16 bits reach 65,535 segments ahead (96 MB of 1,500 B packets), and three blocks fit, as many
/// as a real TCP with timestamps sends (RFC 2018). Data packets say how long the message is, so no FIN is needed;
/// acknowledgements say in its place what virtual queueing delay the data has met (Augmented Queue, section 3.3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Header {
    /// Data: offset of the first byte. Acknowledgement: every byte before this one has arrived.
    pub sequence: u64,
    /// Data and SYN: length of the message. Acknowledgement with [`TAGGED`]: virtual queueing delay of the data packet
    /// that brought it about, in nanoseconds; 0 without.
    pub bytes_or_delay: u64,
    /// Acknowledgement: what has arrived beyond, the most recent first.
    pub blocks: [Block; 3],
    /// [`SYN`], [`ACK`], [`ECE`], [`CWR`], [`TAGGED`].
    pub flags: u32,
}

/// Segments that have arrived beyond the cumulative acknowledgement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Block {
    /// The first, counted from the cumulative acknowledgement.
    pub first: u16,
    /// How many; 0 where there is no block.
    pub count: u16,
}

/// The packet asks for a connection, or with [`ACK`] grants it.
pub const SYN: u32 = 1;
/// The packet acknowledges.
pub const ACK: u32 = 2;
/// The receiver has seen congestion marks (RFC 3168 section 6.1).
pub const ECE: u32 = 4;
/// The sender has reduced its window (RFC 3168 section 6.1).
pub const CWR: u32 = 8;
/// Acknowledgement: the data packet that brought it about belonged to an AQ.
pub const TAGGED: u32 = 16;

/// How far beyond the cumulative acknowledgement a segment may be: what a [`Block`] can say.
pub const WINDOW_SEGMENTS: u64 = u16::MAX as u64;

const BYTES: usize = size_of::<Header>();

impl Header {
    /// Whether any bit of `mask` is set.
    #[inline]
    pub fn has(&self, mask: u32) -> bool {
        self.flags & mask != 0
    }

    /// In an acknowledgement: the virtual queueing delay of the data packet that brought it about, if that belonged to
    /// an AQ.
    #[inline]
    pub fn virtual_delay(&self) -> Option<Duration> {
        // Packets gather it in 32 bits; what more there is in a malformed one is noise.
        self.has(TAGGED).then(|| Duration::from_ns(u64::from(self.bytes_or_delay as u32)))
    }
}

impl node::Header for Header {
    fn emit(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.sequence.to_be_bytes());
        out.extend_from_slice(&self.bytes_or_delay.to_be_bytes());
        for block in self.blocks {
            out.extend_from_slice(&block.first.to_be_bytes());
            out.extend_from_slice(&block.count.to_be_bytes());
        }
        out.extend_from_slice(&self.flags.to_be_bytes());
    }

    fn parse(bytes: &[u8]) -> Result<(Header, usize), Malformed> {
        let bytes: &[u8; BYTES] = bytes.first_chunk().ok_or(Malformed { what: "TCP header: shorter than 32 bytes" })?;
        let word = |at: usize| u64::from_be_bytes(std::array::from_fn(|i| bytes[at + i]));
        let short = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
        let header = Header {
            sequence: word(0),
            bytes_or_delay: word(8),
            blocks: std::array::from_fn(|i| Block { first: short(16 + 4 * i), count: short(18 + 4 * i) }),
            flags: u32::from_be_bytes(std::array::from_fn(|i| bytes[28 + i])),
        };
        Ok((header, BYTES))
    }

    fn payload_offset(&self) -> u64 {
        self.sequence
    }
}

#[cfg(test)]
mod tests {
    use node::Header as _;

    use super::*;

    proptest::proptest! {
        #[test]
        fn headers_survive_the_wire(sequence: u64, bytes_or_delay: u64, blocks: [(u16, u16); 3], flags: u32) {
            let blocks = blocks.map(|(first, count)| Block { first, count });
            let header = Header { sequence, bytes_or_delay, blocks, flags };
            let mut bytes = Vec::new();
            header.emit(&mut bytes);
            proptest::prop_assert_eq!(Header::parse(&bytes), Ok((header, 32)));
            proptest::prop_assert!(Header::parse(&bytes[..31]).is_err());
        }

        #[test]
        fn noise_is_no_panic(noise: Vec<u8>) {
            let _ = Header::parse(&noise);
        }
    }
}
