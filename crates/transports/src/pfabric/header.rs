//! What pFabric's packets carry.

use bytemuck::{Pod, Zeroable};
use node::packet::Malformed;

/// The header of every packet. Which fields mean something depends on the kind; the others are 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Header {
    /// [`kind`].
    pub kind: u32,
    /// Data: the packet's number in its flow. Acknowledgement: the number of the one that has come, [`NONE`] for a
    /// probe's.
    pub packet: u32,
    /// Data and probe: packets of the flow.
    pub packets: u32,
    /// Acknowledgement: all packets below it are there.
    pub acked: u32,
    /// Priority, least first: bytes that remain of the flow, 0 in an acknowledgement (section 4.1).
    pub remaining: u64,
    /// Data: offset of the first byte.
    pub bytes: u64,
}

/// No packet's number.
pub const NONE: u32 = u32::MAX;

/// The kinds of packets.
pub mod kind {
    /// A part of the message.
    pub const DATA: u32 = 1;
    /// Sender to receiver, a header alone: answer if you can (section 4.3).
    pub const PROBE: u32 = 2;
    /// Receiver to sender.
    pub const ACK: u32 = 3;
}

const WIRE_BYTES: usize = 32;

impl Header {
    /// A header of this kind, all else 0.
    pub(super) fn of(kind: u32) -> Header {
        Header { kind, ..Header::zeroed() }
    }
}

impl node::Header for Header {
    fn emit(&self, out: &mut Vec<u8>) {
        for word in [self.kind, self.packet, self.packets, self.acked] {
            out.extend_from_slice(&word.to_be_bytes());
        }
        out.extend_from_slice(&self.remaining.to_be_bytes());
        out.extend_from_slice(&self.bytes.to_be_bytes());
    }

    fn parse(bytes: &[u8]) -> Result<(Header, usize), Malformed> {
        let Some((bytes, _)) = bytes.split_first_chunk::<WIRE_BYTES>() else {
            return Err(Malformed { what: "pFabric header: shorter than 32 bytes" });
        };
        let word = |at: usize| u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let long = |at: usize| u64::from(word(at)) << 32 | u64::from(word(at + 4));
        let kind = word(0);
        if !(kind::DATA..=kind::ACK).contains(&kind) {
            return Err(Malformed { what: "pFabric kind" });
        }
        let header =
            Header { kind, packet: word(4), packets: word(8), acked: word(12), remaining: long(16), bytes: long(24) };
        Ok((header, WIRE_BYTES))
    }

    fn payload_offset(&self) -> u64 {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use node::Header as _;

    use super::*;

    proptest::proptest! {
        #[test]
        fn headers_survive_the_wire(
            kind in 1u32..4, packet: u32, packets: u32, acked: u32, remaining: u64, bytes: u64, noise: Vec<u8>,
        ) {
            let header = Header { kind, packet, packets, acked, remaining, bytes };
            let mut wire = Vec::new();
            header.emit(&mut wire);
            proptest::prop_assert_eq!(Header::parse(&wire), Ok((header, WIRE_BYTES)));
            let _ = Header::parse(&noise);
        }
    }
}
