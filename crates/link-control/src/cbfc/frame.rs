//! The frames in which the two ends of a link report their counters.

use node::layout::{Bits, Field, Layout, Message};
use node::wire::{Malformed, Reader, Writer};
use node::{Header, Packet};

use node::link::{ordered_frame, sized_frame};

/// Most virtual channels of a link.
pub const VCS_MAX: usize = 32;
/// Bytes of a CF_Update, which is a control ordered set between blocks of data.
pub(super) const UPDATE_BYTES: u16 = 8;
/// The bits of a counter.
pub(super) const COUNT: u16 = 0x7FFF;

/// A message about counters. Virtual channels have 5 bits, counters 15.
#[derive(Clone, Copy, Debug, PartialEq, Eq, node::State)]
pub enum Frame {
    /// CF_Update: credits that the receiver has freed, in two virtual channels.
    Freed {
        /// The channels: twice the same, if only one has news.
        vcs: [u8; 2],
        /// The counters.
        #[state(skip("only the difference from a counter matters, and neither moves"))]
        counts: [u16; 2],
    },
    /// CC_Update: credits that the sender has consumed.
    Consumed {
        /// The virtual channel.
        vc: u8,
        /// The counter.
        #[state(skip("only the difference from a counter matters, and neither moves"))]
        count: u16,
    },
}

/// Type of a CF_Update (UE specification 1.0, table 5-29).
const FREED: u8 = 0x10;
const CONSUMED: u8 = 0x11;

impl Frame {
    /// As a packet. A CC_Update is an Ethernet frame, and keeps its place among packets.
    pub(super) fn packet(self) -> Packet {
        match self {
            Frame::Freed { .. } => sized_frame(self, UPDATE_BYTES),
            Frame::Consumed { .. } => ordered_frame(self),
        }
    }
}

/// A channel and its counter in 20 bits.
const fn entry(vc: u8, count: u16) -> u64 {
    ((vc as u64) << 15 | (count & COUNT) as u64) & 0xF_FFFF
}

const fn of_entry(bits: u64) -> (u8, u16) {
    ((bits >> 15 & 31) as u8, bits as u16 & COUNT)
}

impl Header for Frame {
    /// The message as on the wire.
    type Packed = [u8; 6];

    const LAYOUT: Layout = Layout { messages: LAYOUT };

    #[inline]
    fn pack(self) -> [u8; 6] {
        let (kind, bits) = match self {
            Frame::Freed { vcs: [one, other], counts } => {
                (FREED, entry(one, counts[0]) << 20 | entry(other, counts[1]))
            }
            Frame::Consumed { vc, count } => (CONSUMED, entry(vc, count) << 20),
        };
        let [_, _, _, rest @ ..] = bits.to_be_bytes();
        let [a, b, c, d, e] = rest;
        [kind, a, b, c, d, e]
    }

    #[inline]
    fn unpack([kind, a, b, c, d, e]: [u8; 6]) -> Frame {
        let bits = u64::from_be_bytes([0, 0, 0, a, b, c, d, e]);
        let ((vc, count), (other, other_count)) = (of_entry(bits >> 20), of_entry(bits));
        match kind {
            FREED => Frame::Freed { vcs: [vc, other], counts: [count, other_count] },
            _ => Frame::Consumed { vc, count },
        }
    }

    /// The type, and 20 bits a counter: the fields of UE's messages, without the characters of the coding around them.
    fn emit(self, to: &mut Writer<'_>) {
        let packed = self.pack();
        to.bytes(match self {
            Frame::Freed { .. } => &packed,
            Frame::Consumed { .. } => &packed[..4],
        });
    }

    fn parse(from: &mut Reader<'_>) -> Result<Frame, Malformed> {
        from.begin("CBFC message: shorter than its counters");
        let [kind, a, b, c] = from.array()?;
        let [d, e] = match kind {
            FREED => from.array()?,
            CONSUMED if c & 0xF == 0 => [0, 0],
            CONSUMED => return Err(Malformed { what: "CBFC CC_Update: bits behind its counter" }),
            _ => return Err(Malformed { what: "CBFC message type" }),
        };
        Ok(Frame::unpack([kind, a, b, c, d, e]))
    }
}

/// The fields behind the type: five bytes, and three in a CC_Update.
const PAIR: Bits = Bits { at: 1, bytes: 5, shift: 0, count: 40 };
const ONE: Bits = Bits { at: 1, bytes: 3, shift: 0, count: 24 };

const LAYOUT: &[Message] = &[
    Message::new(
        "Freed",
        Bits::u8(0).are(FREED as u64),
        6,
        &[
            Field::number("vcs [", PAIR.bits(35, 5)),
            Field::number("]", PAIR.bits(15, 5)),
            Field::number("counts [", PAIR.bits(20, 15)),
            Field::number("]", PAIR.bits(0, 15)),
        ],
    ),
    Message::new(
        "Consumed",
        Bits::u8(0).are(CONSUMED as u64),
        4,
        &[Field::number("vc", ONE.bits(19, 5)), Field::number("count", ONE.bits(4, 15))],
    ),
];

#[cfg(test)]
mod tests;
