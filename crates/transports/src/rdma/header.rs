//! What is on the wire.

use bytemuck::{Pod, Zeroable};
use node::packet::Malformed;
use units::{Duration, Time};

/// What RDMA packets carry, 32 bytes.
///
/// A queue pair carries one message one way, so a packet is either data or an answer, and the fields serve both.
/// Offsets in bytes stand for RoCE's packet sequence numbers: every packet but a message's last is as long as the
/// network allows. Data packets say how long the message is, so that a receiver needs no connection to be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Header {
    /// Data: offset of the first byte. Answer: every byte before this one has arrived.
    pub sequence: u64,
    /// Data: length of the message. Answer: offset of the packet that brought it about (IRN's selective
    /// acknowledgement).
    pub bytes_or_packet: u64,
    /// Data: when it left, by its sender's clock, in picoseconds. Answer: the same of the packet that brought it about.
    pub timestamp_ps: u64,
    /// Answer with [`TAGGED`]: virtual queueing delay of the packet that brought it about, in nanoseconds (Augmented
    /// Queue, section 3.3.2); 0 without.
    pub virtual_delay_ns: u32,
    /// [`ACK`], [`NACK`], [`CNP`], [`TAGGED`].
    pub flags: u32,
}

/// The packet acknowledges.
pub const ACK: u32 = 1;
/// The packet acknowledges, and says that the packet that brought it about came out of order.
pub const NACK: u32 = 2;
/// A congestion notification: data has come in marked.
pub const CNP: u32 = 4;
/// Answer: the data packet that brought it about belonged to an AQ.
pub const TAGGED: u32 = 8;

const BYTES: usize = size_of::<Header>();

impl Header {
    /// Whether any bit of `mask` is set.
    #[inline]
    pub fn has(&self, mask: u32) -> bool {
        self.flags & mask != 0
    }

    /// When the data packet left.
    #[inline]
    pub fn timestamp(&self) -> Time {
        Time::from_ps(self.timestamp_ps)
    }

    /// In an answer: the virtual queueing delay of the data packet that brought it about, if that belonged to an AQ.
    #[inline]
    pub fn virtual_delay(&self) -> Option<Duration> {
        self.has(TAGGED).then(|| Duration::from_ns(u64::from(self.virtual_delay_ns)))
    }
}

impl node::Header for Header {
    fn emit(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.sequence.to_be_bytes());
        out.extend_from_slice(&self.bytes_or_packet.to_be_bytes());
        out.extend_from_slice(&self.timestamp_ps.to_be_bytes());
        out.extend_from_slice(&self.virtual_delay_ns.to_be_bytes());
        out.extend_from_slice(&self.flags.to_be_bytes());
    }

    fn parse(bytes: &[u8]) -> Result<(Header, usize), Malformed> {
        let bytes: &[u8; BYTES] =
            bytes.first_chunk().ok_or(Malformed { what: "RDMA header: shorter than 32 bytes" })?;
        let word = |at: usize| u64::from_be_bytes(std::array::from_fn(|i| bytes[at + i]));
        let half = |at: usize| u32::from_be_bytes(std::array::from_fn(|i| bytes[at + i]));
        let header = Header {
            sequence: word(0),
            bytes_or_packet: word(8),
            timestamp_ps: word(16),
            virtual_delay_ns: half(24),
            flags: half(28),
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
        fn headers_survive_the_wire(
            sequence: u64, bytes_or_packet: u64, timestamp_ps: u64, virtual_delay_ns: u32, flags: u32,
        ) {
            let header = Header { sequence, bytes_or_packet, timestamp_ps, virtual_delay_ns, flags };
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
