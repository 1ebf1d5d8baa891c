//! What Homa's packets carry.

use bytemuck::{Pod, Zeroable};
use node::wire::{Malformed, Reader, Writer};

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
        to.bytes(&[self.kind, self.class, self.levels]);
        to.bytes(&self.cutoffs);
        to.u8(0);
        to.u16(self.unscheduled);
        to.u32(self.allowed);
        to.u64(self.offset);
        to.u64(self.length);
    }

    fn parse(from: &mut Reader<'_>) -> Result<Header, Malformed> {
        from.begin("Homa header: shorter than 32 bytes");
        let ([kind, class, levels], cutoffs, _) = (from.array()?, from.array()?, from.u8()?);
        let (unscheduled, allowed, offset, length) = (from.u16()?, from.u32()?, from.u64()?, from.u64()?);
        if !(kind::UNSCHEDULED..=kind::DONE).contains(&kind) {
            return Err(Malformed { what: "Homa kind" });
        }
        if class > 7 {
            return Err(Malformed { what: "Homa class" });
        }
        if usize::from(levels) > LEVELS_MAX {
            return Err(Malformed { what: "Homa levels" });
        }
        Ok(Header { kind, class, levels, cutoffs, pad: 0, unscheduled, allowed, offset, length })
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
            kind in 1u8..10, class in 0u8..8, levels in 0u8..8, cutoffs: [u8; 6],
            unscheduled: u16, allowed: u32, offset: u64, length: u64, noise: Vec<u8>,
        ) {
            let header = Header { kind, class, levels, cutoffs, pad: 0, unscheduled, allowed, offset, length };
            testing::check_header(header, &noise);
        }
    }

    #[test]
    fn bytes_stay_what_they_are() {
        let cutoffs = [1, 2, 3, 4, 5, 6];
        let (unscheduled, allowed, offset, length) = (0x0708, 9, 10, 11);
        let header =
            Header { kind: kind::RESEND, class: 7, levels: 6, cutoffs, pad: 0, unscheduled, allowed, offset, length };
        let words = [10u64, 11].map(u64::to_be_bytes).concat();
        let bytes = [&[4, 7, 6, 1, 2, 3, 4, 5, 6, 0, 7, 8, 0, 0, 0, 9][..], &words].concat();
        assert_eq!(testing::check_header(header, &[]), bytes);
    }
}
