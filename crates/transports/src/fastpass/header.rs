//! The header of Fastpass's packets.

use bytemuck::{Pod, Zeroable};
use node::packet::Malformed;

/// The header of every packet. The kind decides which fields have a meaning; the others are 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Header {
    /// [`kind`].
    pub kind: u8,
    /// Request: [`about`].
    pub about: u8,
    /// The number of the sender's requests at that time, modulo 2^16; answers repeat it.
    pub attempt: u16,
    /// Request and allocation: number of packets that slots are for. Data and probe: packets of the message.
    pub packets: u32,
    /// Data: the packet's number. Request, allocation: the first packet that slots are for. State: the first that is
    /// missing.
    pub first: u32,
    /// Request: the receiver. Allocation: slots from one packet to the next.
    pub argument: u32,
    /// Allocation: when the first packet leaves, in picoseconds. Data: offset of the first byte.
    pub at: u64,
    /// Allocation: output ports of the switches on the path, one byte each, first lowest.
    pub path: u64,
}

/// The kinds of packets; all but data are control packets.
pub mod kind {
    /// Sender to arbiter: a request for slots.
    pub const REQUEST: u8 = 1;
    /// Arbiter to sender: slots and a path.
    pub const ALLOCATION: u8 = 2;
    /// Arbiter to sender: no slots within delta_admission.
    pub const REJECT: u8 = 3;
    /// Arbiter to sender: the request has arrived and waits.
    pub const WAIT: u8 = 4;
    /// A part of the message.
    pub const DATA: u8 = 5;
    /// Receiver to sender: every packet has arrived.
    pub const COMPLETE: u8 = 6;
    /// Sender to receiver: everything has been sent; what is missing?
    pub const PROBE: u8 = 7;
    /// Receiver to sender: the first missing packet.
    pub const STATE: u8 = 8;
}

/// Flags of a request, as bits.
pub mod about {
    /// Parts of the message have been sent, so it can no longer be rejected.
    pub const ADMITTED: u8 = 1;
    /// Packets were lost on the path that was allocated last.
    pub const LOST: u8 = 2;
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
        out.extend_from_slice(&[self.kind, self.about]);
        out.extend_from_slice(&self.attempt.to_be_bytes());
        for word in [self.packets, self.first, self.argument] {
            out.extend_from_slice(&word.to_be_bytes());
        }
        out.extend_from_slice(&self.at.to_be_bytes());
        out.extend_from_slice(&self.path.to_be_bytes());
    }

    fn parse(bytes: &[u8]) -> Result<(Header, usize), Malformed> {
        let Some((bytes, _)) = bytes.split_first_chunk::<WIRE_BYTES>() else {
            return Err(Malformed { what: "Fastpass header: shorter than 32 bytes" });
        };
        let word = |at: usize| u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let long = |at: usize| u64::from(word(at)) << 32 | u64::from(word(at + 4));
        let [kind, about, ..] = *bytes;
        if !(kind::REQUEST..=kind::STATE).contains(&kind) {
            return Err(Malformed { what: "Fastpass kind" });
        }
        let header = Header {
            kind,
            about,
            attempt: u16::from_be_bytes([bytes[2], bytes[3]]),
            packets: word(4),
            first: word(8),
            argument: word(12),
            at: long(16),
            path: long(24),
        };
        Ok((header, WIRE_BYTES))
    }

    fn payload_offset(&self) -> u64 {
        self.at
    }
}

#[cfg(test)]
mod tests {
    use node::Header as _;

    use super::*;

    proptest::proptest! {
        #[test]
        fn headers_survive_the_wire(
            kind in 1u8..9, about: u8, attempt: u16, packets: u32, first: u32, argument: u32, at: u64, path: u64,
            noise: Vec<u8>,
        ) {
            let header = Header { kind, about, attempt, packets, first, argument, at, path };
            let mut wire = Vec::new();
            header.emit(&mut wire);
            proptest::prop_assert_eq!(Header::parse(&wire), Ok((header, WIRE_BYTES)));
            let _ = Header::parse(&noise);
        }
    }
}
