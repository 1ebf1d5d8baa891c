//! What pHost's packets carry.

use bytemuck::{Pod, Zeroable};
use node::packet::Malformed;

/// The header of every packet. Which fields mean something depends on the kind; the others are 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Header {
    /// [`kind`].
    pub kind: u8,
    /// Token: the priority class that the data packet shall have.
    pub class: u8,
    /// Request to send and data: the tenant that the flow belongs to.
    pub tenant: u16,
    /// Token and data: the packet's number in its flow.
    pub packet: u32,
    /// Request to send and data: packets of the flow.
    pub packets: u32,
    /// Token, and echoed in data: the token's number in its flow. Free tokens have the first.
    pub token: u32,
    /// Token: packets of the flow that its receiver lacks.
    pub remaining: u32,
    /// Request to send and data: free tokens of the flow.
    pub free: u32,
    /// Data: offset of the first byte.
    pub bytes: u64,
}

/// The kinds of packets; all but data are control packets.
pub mod kind {
    /// Sender to receiver: request to send.
    pub const RTS: u8 = 1;
    /// Receiver to sender: send this packet.
    pub const TOKEN: u8 = 2;
    /// A part of the message.
    pub const DATA: u8 = 3;
    /// Receiver to sender: every packet is here.
    pub const ACK: u8 = 4;
}

const WIRE_BYTES: usize = 32;

impl Header {
    /// A header of this kind, all else 0.
    pub(super) fn of(kind: u8) -> Header {
        Header { kind, ..Header::zeroed() }
    }
}

impl node::Header for Header {
    fn emit(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&[self.kind, self.class]);
        out.extend_from_slice(&self.tenant.to_be_bytes());
        for word in [self.packet, self.packets, self.token, self.remaining, self.free] {
            out.extend_from_slice(&word.to_be_bytes());
        }
        out.extend_from_slice(&self.bytes.to_be_bytes());
    }

    fn parse(bytes: &[u8]) -> Result<(Header, usize), Malformed> {
        let Some((bytes, _)) = bytes.split_first_chunk::<WIRE_BYTES>() else {
            return Err(Malformed { what: "pHost header: shorter than 32 bytes" });
        };
        let word = |at: usize| u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let [kind, class, ..] = *bytes;
        if !(kind::RTS..=kind::ACK).contains(&kind) {
            return Err(Malformed { what: "pHost kind" });
        }
        if class > 7 {
            return Err(Malformed { what: "pHost class" });
        }
        let header = Header {
            kind,
            class,
            tenant: u16::from_be_bytes([bytes[2], bytes[3]]),
            packet: word(4),
            packets: word(8),
            token: word(12),
            remaining: word(16),
            free: word(20),
            bytes: u64::from(word(24)) << 32 | u64::from(word(28)),
        };
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
            kind in 1u8..5, class in 0u8..8, tenant: u16,
            packet: u32, packets: u32, token: u32, remaining: u32, free: u32, bytes: u64, noise: Vec<u8>,
        ) {
            let header = Header { kind, class, tenant, packet, packets, token, remaining, free, bytes };
            let mut wire = Vec::new();
            header.emit(&mut wire);
            proptest::prop_assert_eq!(Header::parse(&wire), Ok((header, WIRE_BYTES)));
            let _ = Header::parse(&noise);
        }
    }
}
