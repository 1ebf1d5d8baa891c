//! What NDP's packets carry.

use bytemuck::{Pod, Zeroable};
use node::packet::Malformed;

/// The header of every packet. Which fields mean something depends on the kind; the others are 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Header {
    /// [`kind`].
    pub kind: u8,
    /// Data: bits of [`marks`].
    pub marks: u8,
    /// Data: the class of traffic that the message belongs to, for receivers that pull by it.
    pub class: u16,
    /// Data, and echoed by its ACK or NACK: the packet's number in its message. That all carry it, from 0 on, lets
    /// whichever comes first open the connection (section 3.2.2).
    pub packet: u32,
    /// All but data: pulls sent for the message so far.
    pub pull: u32,
    /// All but data: all packets below it are there.
    pub acked: u32,
    /// Data: length of the message.
    pub message_bytes: u64,
    /// Data: offset of the first byte.
    pub offset: u64,
}

/// The kinds of packets (section 3.2); all but data are control packets.
pub mod kind {
    /// A part of the message, or what is left of it when it was trimmed.
    pub const DATA: u8 = 1;
    /// This packet is here.
    pub const ACK: u8 = 2;
    /// This packet's header is here: have it ready.
    pub const NACK: u8 = 3;
    /// Send as many packets as the counter has grown by.
    pub const PULL: u8 = 4;
}

/// Marks of data packets.
pub mod marks {
    /// The sender had nothing more to send behind it (section 3.2).
    pub const LAST: u8 = 1;
    /// A switch had no room for its headers and has sent it back (section 3.2.4).
    pub const RETURNED: u8 = 2;
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
        out.extend_from_slice(&[self.kind, self.marks]);
        out.extend_from_slice(&self.class.to_be_bytes());
        for word in [self.packet, self.pull, self.acked] {
            out.extend_from_slice(&word.to_be_bytes());
        }
        out.extend_from_slice(&self.message_bytes.to_be_bytes());
        out.extend_from_slice(&self.offset.to_be_bytes());
    }

    fn parse(bytes: &[u8]) -> Result<(Header, usize), Malformed> {
        let Some((bytes, _)) = bytes.split_first_chunk::<WIRE_BYTES>() else {
            return Err(Malformed { what: "NDP header: shorter than 32 bytes" });
        };
        let word = |at: usize| u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let long = |at: usize| u64::from(word(at)) << 32 | u64::from(word(at + 4));
        let [kind, marks, high, low, ..] = *bytes;
        if !(kind::DATA..=kind::PULL).contains(&kind) {
            return Err(Malformed { what: "NDP kind" });
        }
        if marks > marks::LAST | marks::RETURNED {
            return Err(Malformed { what: "NDP marks" });
        }
        let header = Header {
            kind,
            marks,
            class: u16::from_be_bytes([high, low]),
            packet: word(4),
            pull: word(8),
            acked: word(12),
            message_bytes: long(16),
            offset: long(24),
        };
        Ok((header, WIRE_BYTES))
    }

    fn payload_offset(&self) -> u64 {
        self.offset
    }
}

#[cfg(test)]
mod tests {
    use node::Header as _;

    use super::*;

    proptest::proptest! {
        #[test]
        fn headers_survive_the_wire(
            kind in 1u8..5, marks in 0u8..4, class: u16, packet: u32, pull: u32, acked: u32,
            message_bytes: u64, offset: u64, noise: Vec<u8>,
        ) {
            let header = Header { kind, marks, class, packet, pull, acked, message_bytes, offset };
            let mut wire = Vec::new();
            header.emit(&mut wire);
            proptest::prop_assert_eq!(Header::parse(&wire), Ok((header, WIRE_BYTES)));
            let _ = Header::parse(&noise);
        }
    }
}
