//! What Homa's packets carry.

use bytemuck::{Pod, Zeroable};
use node::Agreement;
use node::layout::{Bits, Field, Layout, Message, Shown, Test};
use node::wire::{Malformed, Reader, Writer};

use super::traffic::{LEVELS_MAX, Levels};

/// What a packet says. All but data are control packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, node::State)]
pub enum Header {
    /// A part of the message, sent unasked (section 3.2).
    Unscheduled(Data),
    /// A part of the message that was granted, or asked for again (section 3.3).
    Scheduled(Data),
    /// Sender to receiver: what you asked for waits for shorter messages (section 3.7).
    Busy,
    /// Sender to receiver: what do you have of this message? Aeolus sends one behind the last unscheduled packet (its
    /// section 3.3).
    Probe(Announced),
    /// Receiver to sender.
    Answer {
        /// How the receiver divides the levels of unscheduled packets to it, if that is told (section 3.4).
        levels: Option<Levels>,
        /// What it says of the message.
        of: Answer,
    },
}

/// What a receiver says of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, node::State)]
pub enum Answer {
    /// Send up to here (section 3.3).
    Grant(Granted),
    /// Send this once more (section 3.7).
    Resend {
        /// What has been granted so far, and the class of what is sent again.
        granted: Granted,
        /// Offset of the first byte asked for.
        #[state(sequence(1))]
        offset: u64,
        /// Bytes asked for.
        length: u64,
    },
    /// Aeolus: the probe is here, and with it all that was before it.
    Probed(Granted),
    /// Aeolus: this unscheduled packet is here.
    Ack {
        /// Offset of its first byte.
        #[state(sequence(1))]
        offset: u64,
    },
    /// Every byte is here. It stands for the response.
    Done,
}

/// What a sender tells of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, node::State)]
pub struct Announced {
    /// Packets that it begins with unasked.
    pub unscheduled: u16,
    /// Its bytes.
    pub length: u64,
}

/// What a data packet says beside its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, node::State)]
pub struct Data {
    /// The message.
    pub message: Announced,
    /// Offset of its first byte in the message.
    #[state(sequence(1))]
    pub offset: u64,
}

/// What a receiver has granted of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, node::State)]
pub struct Granted {
    /// The priority class that scheduled packets shall have.
    pub class: u8,
    /// Scheduled packets granted in all.
    #[state(steps)]
    pub allowed: u32,
}

/// A header in a packet: the fields of all kinds as they follow each other on the wire. Those that a kind has no use
/// for are 0.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct Packed {
    kind: u8,
    class: u8,
    /// How many levels are told; 0 if none are.
    levels: u8,
    cutoffs: [u8; LEVELS_MAX - 1],
    pad: u8,
    unscheduled: u16,
    allowed: u32,
    offset: u64,
    length: u64,
}

const UNSCHEDULED: u8 = 1;
const SCHEDULED: u8 = 2;
const GRANT: u8 = 3;
const RESEND: u8 = 4;
const BUSY: u8 = 5;
const PROBE: u8 = 6;
const PROBED: u8 = 7;
const ACK: u8 = 8;
const DONE: u8 = 9;

impl Announced {
    #[inline]
    fn pack(self, kind: u8) -> Packed {
        let Announced { unscheduled, length } = self;
        Packed { kind, unscheduled, length, ..Packed::zeroed() }
    }
}

impl Granted {
    #[inline]
    fn pack(self, kind: u8) -> Packed {
        let Granted { class, allowed } = self;
        Packed { kind, class, allowed, ..Packed::zeroed() }
    }
}

impl Answer {
    #[inline]
    fn pack(self) -> Packed {
        match self {
            Answer::Grant(granted) => granted.pack(GRANT),
            Answer::Resend { granted, offset, length } => Packed { offset, length, ..granted.pack(RESEND) },
            Answer::Probed(granted) => granted.pack(PROBED),
            Answer::Ack { offset } => Packed { kind: ACK, offset, ..Packed::zeroed() },
            Answer::Done => Packed { kind: DONE, ..Packed::zeroed() },
        }
    }
}

impl node::Header for Header {
    type Packed = Packed;

    const LAYOUT: Layout = Layout { messages: LAYOUT };

    #[inline]
    fn pack(self) -> Packed {
        match self {
            Header::Unscheduled(Data { message, offset }) => Packed { offset, ..message.pack(UNSCHEDULED) },
            Header::Scheduled(Data { message, offset }) => Packed { offset, ..message.pack(SCHEDULED) },
            Header::Busy => Packed { kind: BUSY, ..Packed::zeroed() },
            Header::Probe(message) => message.pack(PROBE),
            Header::Answer { levels: None, of } => of.pack(),
            Header::Answer { levels: Some(Levels { count, cutoffs }), of } => {
                Packed { levels: count, cutoffs, ..of.pack() }
            }
        }
    }

    #[inline]
    fn unpack(packed: Packed) -> Header {
        let Packed { kind, class, levels, cutoffs, pad: _, unscheduled, allowed, offset, length } = packed;
        let message = Announced { unscheduled, length };
        let granted = Granted { class, allowed };
        let levels = (levels > 0).then_some(Levels { count: levels, cutoffs });
        let answer = |of| Header::Answer { levels, of };
        match kind {
            UNSCHEDULED => Header::Unscheduled(Data { message, offset }),
            GRANT => answer(Answer::Grant(granted)),
            RESEND => answer(Answer::Resend { granted, offset, length }),
            BUSY => Header::Busy,
            PROBE => Header::Probe(message),
            PROBED => answer(Answer::Probed(granted)),
            ACK => answer(Answer::Ack { offset }),
            DONE => answer(Answer::Done),
            _ => Header::Scheduled(Data { message, offset }),
        }
    }

    fn emit(self, to: &mut Writer<'_>) {
        let Packed { kind, class, levels, cutoffs, pad, unscheduled, allowed, offset, length } = self.pack();
        to.bytes(&[kind, class, levels]);
        to.bytes(&cutoffs);
        to.u8(pad);
        to.u16(unscheduled);
        to.u32(allowed);
        to.u64(offset);
        to.u64(length);
    }

    fn parse(from: &mut Reader<'_>) -> Result<Header, Malformed> {
        from.begin("Homa header: shorter than 32 bytes");
        let ([kind, class, levels], cutoffs, _) = (from.array()?, from.array()?, from.u8()?);
        let (unscheduled, allowed, offset, length) = (from.u16()?, from.u32()?, from.u64()?, from.u64()?);
        if !(UNSCHEDULED..=DONE).contains(&kind) {
            return Err(Malformed { what: "Homa kind" });
        }
        if class > 7 {
            return Err(Malformed { what: "Homa class" });
        }
        if usize::from(levels) > LEVELS_MAX {
            return Err(Malformed { what: "Homa levels" });
        }
        let packed = Packed { kind, class, levels, cutoffs, pad: 0, unscheduled, allowed, offset, length };
        Ok(Header::unpack(packed))
    }

    fn agreement(self) -> Option<Agreement> {
        matches!(self, Header::Answer { of: Answer::Grant(_), .. }).then_some(Agreement::Grant)
    }

    fn payload_offset(self) -> u64 {
        if let Header::Unscheduled(data) | Header::Scheduled(data) = self { data.offset } else { 0 }
    }
}

/// Whether levels are told.
const TOLD: Test = Bits::u8(2).within(1, LEVELS_MAX as u64);
const COUNT: Field = Field::number("levels count", Bits::u8(2));
const UNTOLD: Field = Field::new("levels", Bits::u8(2), Shown::If(TOLD));
const CUTOFFS: [Field; LEVELS_MAX - 1] = [
    Field::number("cutoffs [", Bits::u8(3)),
    Field::number("", Bits::u8(4)),
    Field::number("", Bits::u8(5)),
    Field::number("", Bits::u8(6)),
    Field::number("", Bits::u8(7)),
    Field::number("]", Bits::u8(8)),
];
const OF_MESSAGE: Field = Field::number("message unscheduled", Bits::u16(10));
const LENGTH: Field = Field::number("length", Bits::u64(24));
const OFFSET: Field = Field::number("offset", Bits::u64(16));
const OF_CLASS: Field = Field::number("of class", Bits::u8(1));
const GRANTED_CLASS: Field = Field::number("of granted class", Bits::u8(1));
const ALLOWED: Field = Field::number("allowed", Bits::u32(12));
const OF_OFFSET: Field = Field::number("of offset", Bits::u64(16));
const DONE_WORD: Field = Field::new("of", Bits::u8(0), Shown::Word(&[(DONE as u64, "Done")]));

/// An answer, with levels and without.
macro_rules! answers {
    ($($kind:ident: $($field:expr),*;)*) => {
        &[$(
            Message::of_kind(
                "Answer",
                $kind,
                &[COUNT, CUTOFFS[0], CUTOFFS[1], CUTOFFS[2], CUTOFFS[3], CUTOFFS[4], CUTOFFS[5], $($field),*],
            )
            .and(TOLD),
            Message::of_kind("Answer", $kind, &[UNTOLD, $($field),*]),
        )*
            Message::of_kind("Unscheduled", UNSCHEDULED, &[OF_MESSAGE, LENGTH, OFFSET]),
            Message::of_kind("Scheduled", SCHEDULED, &[OF_MESSAGE, LENGTH, OFFSET]),
            Message::of_kind("Busy", BUSY, &[]),
            Message::of_kind("Probe", PROBE, &[Field::number("unscheduled", Bits::u16(10)), LENGTH]),
        ]
    };
}

const LAYOUT: &[Message] = answers! {
    GRANT: OF_CLASS, ALLOWED;
    RESEND: GRANTED_CLASS, ALLOWED, OFFSET, LENGTH;
    PROBED: OF_CLASS, ALLOWED;
    ACK: OF_OFFSET;
    DONE: DONE_WORD;
};

#[cfg(test)]
mod tests;
