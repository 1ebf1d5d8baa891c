//! The header of dcPIM's packets.

use bytemuck::{Pod, Zeroable};
use node::packet::Malformed;

/// The header of every packet. The kind decides which fields have a meaning; the others are 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Header {
    /// [`kind`].
    pub kind: u8,
    /// Matching: the round, from 1 on.
    pub round: u8,
    /// Matching: channels requested, granted or accepted.
    pub channels: u8,
    /// Token: priority class for the data packet. Notification: class of a short flow, whose packets follow without
    /// tokens; 0 for a long flow.
    pub class: u8,
    /// Matching and token: the matching phase, modulo 2^32. Phase and round are the receiver's; a grant returns those
    /// of its request.
    pub phase: u32,
    /// Token and data: the packet's number in its flow.
    pub packet: u32,
    /// Notification, data, sender's finish: number of packets of the flow; 0 if it is not told.
    pub packets: u32,
    /// Token: cumulative acknowledgement; all packets below it have arrived.
    pub acked: u32,
    /// Token, and echoed in data: the token's number in its flow.
    pub token: u32,
    /// Data: offset of the first byte. Request, grant, token: remaining packets of the smallest flow.
    pub bytes: u64,
}

/// The kinds of packets; all but data are control packets.
pub mod kind {
    /// Sender to receiver: a flow has arrived (section 3.2).
    pub const NOTIFICATION: u8 = 1;
    /// Receiver to sender: the notification has arrived.
    pub const ACK: u8 = 2;
    /// A part of the message.
    pub const DATA: u8 = 3;
    /// Receiver to sender: permission to send this packet.
    pub const TOKEN: u8 = 4;
    /// Sender to receiver: every packet has been sent.
    pub const SENDER_FINISH: u8 = 5;
    /// Receiver to sender: every packet has arrived.
    pub const RECEIVER_FINISH: u8 = 6;
    /// Receiver to sender: a request to match (section 3.1).
    pub const REQUEST: u8 = 7;
    /// Sender to receiver: the request is granted.
    pub const GRANT: u8 = 8;
    /// Receiver to sender: the grant is accepted.
    pub const ACCEPT: u8 = 9;
}

const WIRE_BYTES: usize = 32;

impl Header {
    /// A header of this kind with all other fields 0.
    pub(super) fn of(kind: u8) -> Header {
        Header { kind, ..Header::zeroed() }
    }
}

impl node::Header for Header {
    fn emit(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&[self.kind, self.round, self.channels, self.class]);
        for word in [self.phase, self.packet, self.packets, self.acked, self.token] {
            out.extend_from_slice(&word.to_be_bytes());
        }
        out.extend_from_slice(&self.bytes.to_be_bytes());
    }

    fn parse(bytes: &[u8]) -> Result<(Header, usize), Malformed> {
        let Some((bytes, _)) = bytes.split_first_chunk::<WIRE_BYTES>() else {
            return Err(Malformed { what: "dcPIM header: shorter than 32 bytes" });
        };
        let word = |at: usize| u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let [kind, round, channels, class, ..] = *bytes;
        if !(kind::NOTIFICATION..=kind::ACCEPT).contains(&kind) {
            return Err(Malformed { what: "dcPIM kind" });
        }
        if class > 7 {
            return Err(Malformed { what: "dcPIM class" });
        }
        let header = Header {
            kind,
            round,
            channels,
            class,
            phase: word(4),
            packet: word(8),
            packets: word(12),
            acked: word(16),
            token: word(20),
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
            kind in 1u8..10, round: u8, channels: u8, class in 0u8..8,
            phase: u32, packet: u32, packets: u32, acked: u32, token: u32, bytes: u64, noise: Vec<u8>,
        ) {
            let header = Header { kind, round, channels, class, phase, packet, packets, acked, token, bytes };
            let mut wire = Vec::new();
            header.emit(&mut wire);
            proptest::prop_assert_eq!(Header::parse(&wire), Ok((header, WIRE_BYTES)));
            let _ = Header::parse(&noise);
        }
    }
}
