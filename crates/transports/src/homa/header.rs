//! What Homa's packets carry.

use bytemuck::{Pod, Zeroable};
use node::packet::Malformed;

use super::traffic::{LEVELS_MAX, Levels};

/// The header of every packet. Which fields mean something depends on the kind; the others are 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Header {
    /// [`kind`].
    pub kind: u8,
    /// Grant and resend: the priority class that scheduled packets shall have.
    pub class: u8,
    /// From receivers: how many levels unscheduled packets to it have, 0 if that is not told, and up to what sizes of
    /// messages each goes but the last (section 3.4).
    pub levels: u8,
    /// See `levels`.
    pub cutoffs: [u8; LEVELS_MAX - 1],
    pub(super) pad: u8,
    /// Data and probe: packets that the message begins with unasked.
    pub unscheduled: u16,
    /// Grant, resend and probed: scheduled packets of the message that its receiver has granted in all.
    pub allowed: u32,
    /// Data and ack: offset of the first byte. Resend: of the first byte asked for.
    pub offset: u64,
    /// Data and probe: bytes of the message. Resend: bytes asked for.
    pub length: u64,
}

/// The kinds of packets; all but data are control packets.
pub mod kind {
    /// A part of the message, sent unasked.
    pub const UNSCHEDULED: u8 = 1;
    /// A part of the message that was granted, or asked for again.
    pub const SCHEDULED: u8 = 2;
    /// Receiver to sender: send up to here (section 3.3).
    pub const GRANT: u8 = 3;
    /// Receiver to sender: send this once more (section 3.7).
    pub const RESEND: u8 = 4;
    /// Sender to receiver: what you asked for waits for shorter messages.
    pub const BUSY: u8 = 5;
    /// Sender to receiver: what do you have of this message? Aeolus sends one behind the last unscheduled packet.
    pub const PROBE: u8 = 6;
    /// Aeolus, receiver to sender: the probe is here, and with it all that was before it.
    pub const PROBED: u8 = 7;
    /// Aeolus, receiver to sender: this unscheduled packet is here.
    pub const ACK: u8 = 8;
    /// Receiver to sender: every byte is here. It stands for the response.
    pub const DONE: u8 = 9;
}

const WIRE_BYTES: usize = 32;

impl Header {
    /// A header of this kind, all else 0.
    pub(super) fn of(kind: u8) -> Header {
        Header { kind, ..Header::zeroed() }
    }

    /// The same, which tells these levels too.
    pub(super) fn telling(self, levels: Levels) -> Header {
        Header { levels: levels.count, cutoffs: levels.cutoffs, ..self }
    }

    /// The levels that it tells.
    pub(super) fn told(&self) -> Option<Levels> {
        (self.levels > 0).then_some(Levels { count: self.levels, cutoffs: self.cutoffs })
    }
}

impl node::Header for Header {
    fn emit(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&[self.kind, self.class, self.levels]);
        out.extend_from_slice(&self.cutoffs);
        out.push(0);
        out.extend_from_slice(&self.unscheduled.to_be_bytes());
        out.extend_from_slice(&self.allowed.to_be_bytes());
        out.extend_from_slice(&self.offset.to_be_bytes());
        out.extend_from_slice(&self.length.to_be_bytes());
    }

    fn parse(bytes: &[u8]) -> Result<(Header, usize), Malformed> {
        let Some((bytes, _)) = bytes.split_first_chunk::<WIRE_BYTES>() else {
            return Err(Malformed { what: "Homa header: shorter than 32 bytes" });
        };
        let word = |at: usize| u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let long = |at: usize| u64::from(word(at)) << 32 | u64::from(word(at + 4));
        let [kind, class, levels, c0, c1, c2, c3, c4, c5, _, u0, u1, ..] = *bytes;
        if !(kind::UNSCHEDULED..=kind::DONE).contains(&kind) {
            return Err(Malformed { what: "Homa kind" });
        }
        if class > 7 {
            return Err(Malformed { what: "Homa class" });
        }
        if usize::from(levels) > LEVELS_MAX {
            return Err(Malformed { what: "Homa levels" });
        }
        let header = Header {
            kind,
            class,
            levels,
            cutoffs: [c0, c1, c2, c3, c4, c5],
            pad: 0,
            unscheduled: u16::from_be_bytes([u0, u1]),
            allowed: word(12),
            offset: long(16),
            length: long(24),
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
            kind in 1u8..10, class in 0u8..8, levels in 0u8..8, cutoffs: [u8; 6],
            unscheduled: u16, allowed: u32, offset: u64, length: u64, noise: Vec<u8>,
        ) {
            let header = Header { kind, class, levels, cutoffs, pad: 0, unscheduled, allowed, offset, length };
            let mut wire = Vec::new();
            header.emit(&mut wire);
            proptest::prop_assert_eq!(Header::parse(&wire), Ok((header, WIRE_BYTES)));
            let _ = Header::parse(&noise);
        }
    }
}
