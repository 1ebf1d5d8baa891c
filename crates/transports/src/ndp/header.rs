//! What NDP's packets carry.

use bytemuck::{Pod, Zeroable};
use node::Agreement;
use node::layout::{BOOL, Bits, Field, Layout, Message};
use node::wire::{Malformed, Reader, Writer};

/// What a packet says (section 3.2). All but data are control packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, node::State)]
pub enum Header {
    /// A part of the message, or what is left of it when it was trimmed.
    Data(Data),
    /// This packet is here.
    Ack(Answer),
    /// This packet's header is here: have it ready.
    Nack(Answer),
    /// Send as many packets as the counter has grown by.
    Pull(Progress),
}

/// What a data packet says beside its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, node::State)]
pub struct Data {
    /// The packet's number in its message. That all carry it, from 0 on, lets whichever comes first open the connection
    /// (section 3.2.2).
    #[state(steps)]
    pub packet: u32,
    /// The class of traffic that the message belongs to, for receivers that pull by it.
    pub class: u16,
    /// Length of the message.
    pub message_bytes: u64,
    /// Offset of the packet's first byte.
    #[state(sequence(1))]
    pub offset: u64,
    /// The sender had nothing more to send behind it (section 3.2).
    pub last: bool,
    /// A switch had no room for its headers and has sent it back (section 3.2.4).
    pub returned: bool,
}

/// What a receiver says of one packet, and of the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, node::State)]
pub struct Answer {
    /// The packet's number.
    #[state(steps)]
    pub packet: u32,
    /// How far the message is.
    pub progress: Progress,
}

/// How far a message is, by its receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, node::State)]
pub struct Progress {
    /// Pulls sent for the message so far.
    #[state(steps)]
    pub pull: u32,
    /// All packets below it are there.
    #[state(steps)]
    pub acked: u32,
}

/// A header in a packet: the fields of all kinds as they follow each other on the wire. Those that a kind has no use
/// for are 0.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct Packed {
    kind: u8,
    marks: u8,
    class: u16,
    packet: u32,
    pull: u32,
    acked: u32,
    message_bytes: u64,
    offset: u64,
}

const DATA: u8 = 1;
const ACK: u8 = 2;
const NACK: u8 = 3;
const PULL: u8 = 4;

/// Marks of data packets.
const LAST: u8 = 1;
const RETURNED: u8 = 2;

impl Answer {
    #[inline]
    fn pack(self, kind: u8) -> Packed {
        let Answer { packet, progress: Progress { pull, acked } } = self;
        Packed { kind, packet, pull, acked, ..Packed::zeroed() }
    }
}

impl node::Header for Header {
    type Packed = Packed;

    const LAYOUT: Layout = Layout { messages: LAYOUT };

    #[inline]
    fn pack(self) -> Packed {
        match self {
            Header::Data(Data { packet, class, message_bytes, offset, last, returned }) => {
                let marks = if last { LAST } else { 0 } | if returned { RETURNED } else { 0 };
                Packed { kind: DATA, marks, class, packet, message_bytes, offset, ..Packed::zeroed() }
            }
            Header::Ack(answer) => answer.pack(ACK),
            Header::Nack(answer) => answer.pack(NACK),
            Header::Pull(progress) => Answer { packet: 0, progress }.pack(PULL),
        }
    }

    #[inline]
    fn unpack(packed: Packed) -> Header {
        let Packed { kind, marks, class, packet, pull, acked, message_bytes, offset } = packed;
        let progress = Progress { pull, acked };
        match kind {
            ACK => Header::Ack(Answer { packet, progress }),
            NACK => Header::Nack(Answer { packet, progress }),
            PULL => Header::Pull(progress),
            _ => {
                let (last, returned) = (marks & LAST != 0, marks & RETURNED != 0);
                Header::Data(Data { packet, class, message_bytes, offset, last, returned })
            }
        }
    }

    fn emit(self, to: &mut Writer<'_>) {
        let Packed { kind, marks, class, packet, pull, acked, message_bytes, offset } = self.pack();
        to.bytes(&[kind, marks]);
        to.u16(class);
        for word in [packet, pull, acked] {
            to.u32(word);
        }
        to.u64(message_bytes);
        to.u64(offset);
    }

    fn parse(from: &mut Reader<'_>) -> Result<Header, Malformed> {
        from.begin("NDP header: shorter than 32 bytes");
        let ([kind, marks], class) = (from.array()?, from.u16()?);
        let (packet, pull, acked) = (from.u32()?, from.u32()?, from.u32()?);
        let (message_bytes, offset) = (from.u64()?, from.u64()?);
        if !(DATA..=PULL).contains(&kind) {
            return Err(Malformed { what: "NDP kind" });
        }
        if marks > LAST | RETURNED {
            return Err(Malformed { what: "NDP marks" });
        }
        Ok(Header::unpack(Packed { kind, marks, class, packet, pull, acked, message_bytes, offset }))
    }

    fn agreement(self) -> Option<Agreement> {
        matches!(self, Header::Pull(_)).then_some(Agreement::Grant)
    }

    fn payload_offset(self) -> u64 {
        if let Header::Data(data) = self { data.offset } else { 0 }
    }
}

const NUMBER: Field = Field::number("packet", Bits::u32(4));
const ANSWER: &[Field] = &[NUMBER, Field::number("progress pull", Bits::u32(8)), Field::number("acked", Bits::u32(12))];

const LAYOUT: &[Message] = &[
    Message::of_kind(
        "Data",
        DATA,
        &[
            NUMBER,
            Field::number("class", Bits::u16(2)),
            Field::number("message_bytes", Bits::u64(16)),
            Field::number("offset", Bits::u64(24)),
            Field::new("last", Bits::u8(1).bits(0, 1), BOOL),
            Field::new("returned", Bits::u8(1).bits(1, 1), BOOL),
        ],
    ),
    Message::of_kind("Ack", ACK, ANSWER),
    Message::of_kind("Nack", NACK, ANSWER),
    Message::of_kind("Pull", PULL, &[Field::number("pull", Bits::u32(8)), Field::number("acked", Bits::u32(12))]),
];

#[cfg(test)]
mod tests;
