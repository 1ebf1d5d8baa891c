//! The header of Harmony's packets.

use bytemuck::{Pod, Zeroable};
use node::wire::{Malformed, Reader, Writer};

/// The header of every packet. The kind decides which fields have a meaning; the others are 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Header {
    /// [`kind`].
    pub kind: u8,
    /// 1 in a rsvp whose refusal rejects the message, in a refusal of the message, in a reject by a sender that has
    /// asked again since, and in a complete after which nothing is left to send; [`ADDITIONAL`] in a rsvp for an
    /// additional slot; [`ENDED`] in a reject by a sender that no longer has the message; otherwise 0.
    pub conclusive: u8,
    /// The sender's attempt at carrying the message that this serves, modulo 2^16: grants of an earlier attempt are
    /// void.
    pub attempt: u16,
    /// The reservation of the receiver that this serves.
    pub id: u32,
    /// Request: length of the message. Rsvp: bytes of it that are missing from `offset` on. Complete: bytes that have
    /// been sent in the slot.
    pub bytes: u64,
    /// Data: offset of the first byte. Rsvp: the first byte that is missing.
    pub offset: u64,
    /// Rsvp, and echoed in data: the path from the receiver to the sender, as output ports like in
    /// [`node::Packet::label`].
    pub back: u64,
}

/// The kinds of packets; all but data are control packets.
pub mod kind {
    /// Sender to receiver: a message has arrived.
    pub const REQUEST: u8 = 1;
    /// Receiver to sender: a slot for the message; each switch on its path reserves a virtual link.
    pub const RSVP: u8 = 2;
    /// A part of the message.
    pub const DATA: u8 = 3;
    /// Sender to receiver, after the last data of a slot: slot and virtual links are free.
    pub const COMPLETE: u8 = 4;
    /// Receiver to sender, also a *complete* in the paper: every byte has arrived.
    pub const DELIVERED: u8 = 5;
    /// Sender or switch to receiver: the rsvp is refused; slot and virtual links are free.
    pub const REJECT: u8 = 6;
    /// Receiver or switch to sender, also a *reject* in the paper: the message is refused.
    pub const REFUSAL: u8 = 7;
    /// Receiver to sender: an expected packet is missing. On the path of the data it frees virtual links too.
    pub const FAILURE: u8 = 8;
}

/// The slot is for a part of the message, unless it turns out to be the only one.
pub const ADDITIONAL: u8 = 2;
/// The message has ended at its sender; no data of it will arrive.
pub const ENDED: u8 = 2;

impl Header {
    /// A header of this kind with all other fields 0.
    pub fn of(kind: u8) -> Header {
        Header { kind, ..Header::zeroed() }
    }
}

impl node::Header for Header {
    type Packed = Header;

    #[inline]
    fn pack(self) -> Header {
        self
    }

    #[inline]
    fn unpack(packed: Header) -> Header {
        packed
    }

    fn emit(self, to: &mut Writer<'_>) {
        let Header { kind, conclusive, attempt, id, bytes, offset, back } = self;
        to.bytes(&[kind, conclusive]);
        to.u16(attempt);
        to.u32(id);
        for word in [bytes, offset, back] {
            to.u64(word);
        }
    }

    fn parse(from: &mut Reader<'_>) -> Result<Header, Malformed> {
        from.begin("Harmony header: shorter than 32 bytes");
        let ([kind, conclusive], attempt, id) = (from.array()?, from.u16()?, from.u32()?);
        let (bytes, offset, back) = (from.u64()?, from.u64()?, from.u64()?);
        if !(kind::REQUEST..=kind::FAILURE).contains(&kind) {
            return Err(Malformed { what: "Harmony kind" });
        }
        if conclusive > ADDITIONAL {
            return Err(Malformed { what: "Harmony header: conclusive is none of 0, 1 and 2" });
        }
        Ok(Header { kind, conclusive, attempt, id, bytes, offset, back })
    }

    fn payload_offset(self) -> u64 {
        self.offset
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn headers_survive_the_wire(
            kind in 1u8..9, conclusive in 0u8..3, attempt: u16, id: u32, bytes: u64, offset: u64, back: u64,
                noise: Vec<u8>,
        ) {
            let header = Header { kind, conclusive, attempt, id, bytes, offset, back };
            testing::check_header(header, &noise);
        }
    }

    #[test]
    fn bytes_stay_what_they_are() {
        let header = Header { kind: kind::RSVP, conclusive: 1, attempt: 0x0102, id: 3, bytes: 4, offset: 5, back: 6 };
        let words = [4u64, 5, 6].map(u64::to_be_bytes).concat();
        assert_eq!(testing::check_header(header, &[]), [&[2, 1, 1, 2, 0, 0, 0, 3][..], &words].concat());
    }
}
