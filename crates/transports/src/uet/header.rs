//! What the packets of UET carry.
//!
//! UET's own headers (PDS: request, ACK_CC, NACK, control packets) carry more than a simulation needs. Here are the
//! fields that congestion control, spraying and loss recovery read, 32 bytes in all.

use bytemuck::{Pod, Zeroable};
use node::layout::{BOOL, Bits, Field, Layout, Message};
use node::wire::{Malformed, Reader, Writer};
use node::{Agreement, Packet};

/// The measures in which a flow grows: credit, and bytes that have been received.
pub(super) const CREDIT: &str = "credit";
pub(super) const RECEIVED: &str = "how many bytes have been received";

/// What a packet says. All but data are control packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, node::State)]
pub enum Header {
    /// A part of the message, or what is left of it when it was trimmed.
    Data(Data),
    /// These packets are here (a selective acknowledgement with what congestion control reads).
    Ack(Ack),
    /// This packet's header is here and its payload is not.
    Nack(Nack),
    /// A receiver's credit.
    Pull(Pull),
    /// A sender without credit asks for some.
    Rts(Rts),
}

/// What a data packet says beside its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, node::State)]
pub struct Data {
    /// The packet's number in its message (PSN), from 0 on.
    #[state(steps)]
    pub psn: u32,
    /// The entropy value that chose its path.
    pub entropy: u16,
    /// Credit that the sender wants in all, in units of [`CREDIT_UNIT`] from the message's beginning.
    #[state(measured(CREDIT))]
    pub pull_target: u32,
    /// Length of the message.
    pub message_bytes: u64,
    /// Offset of the packet's first byte.
    #[state(sequence(1))]
    pub offset: u64,
    /// The sender wants an answer at once.
    pub ack_request: bool,
    /// It was sent before.
    pub resent: bool,
    /// It was trimmed before the last link of its path.
    pub last_hop: bool,
}

/// What a receiver says of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, node::State)]
pub struct Ack {
    /// The packet that caused it.
    #[state(when(self.of_request, _, steps))]
    pub psn: u32,
    /// That packet's entropy value.
    pub entropy: u16,
    /// All packets below it are there.
    #[state(steps)]
    pub cumulative: u32,
    /// The packet of the lowest bit of `bitmap`.
    #[state(steps)]
    pub base: u32,
    /// Packets from `base` on that are there.
    pub bitmap: u64,
    /// Bytes of data packets taken in so far, headers included, each packet once.
    #[state(measured(RECEIVED))]
    pub received_bytes: u64,
    /// The packet was marked (ECN).
    pub marked: bool,
    /// The packet was sent before.
    pub resent: bool,
    /// It answers a request for credit, so no data packet.
    pub of_request: bool,
}

/// What a receiver says of a trimmed packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, node::State)]
pub struct Nack {
    /// The packet's number.
    #[state(steps)]
    pub psn: u32,
    /// Its entropy value.
    pub entropy: u16,
    /// It was marked (ECN) before it was trimmed.
    pub marked: bool,
    /// It was sent before.
    pub resent: bool,
    /// It was trimmed before the last link of its path: no other path would have helped.
    pub last_hop: bool,
}

/// A receiver's credit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, node::State)]
pub struct Pull {
    /// Credit so far, in units of [`CREDIT_UNIT`].
    #[state(measured(CREDIT))]
    pub credit: u32,
}

/// A request for credit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, node::State)]
pub struct Rts {
    /// As in data.
    #[state(measured(CREDIT))]
    pub pull_target: u32,
    /// Length of the message, of which no packet may have arrived.
    pub message_bytes: u64,
}

/// Bytes of a unit of credit.
pub const CREDIT_UNIT: u64 = 256;

/// Says in a data packet that it was trimmed before the last link of its path.
pub(super) fn trimmed_last_hop(packet: &mut Packet) {
    if let Header::Data(data) = packet.header() {
        packet.set_header(Header::Data(Data { last_hop: true, ..data }));
    }
}

/// A header in a packet: fields as they follow each other on the wire. Those that a kind has no use for are 0.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct Packed {
    kind: u8,
    marks: u8,
    entropy: u16,
    psn: u32,
    credit: u32,
    base: u32,
    long: u64,
    count: u64,
}

const DATA: u8 = 1;
const ACK: u8 = 2;
const NACK: u8 = 3;
const PULL: u8 = 4;
const RTS: u8 = 5;

const RESENT: u8 = 1;
const ACK_REQUEST: u8 = 2;
const LAST_HOP: u8 = 4;
const MARKED: u8 = 8;
const OF_REQUEST: u8 = 16;

fn marks(of: &[(bool, u8)]) -> u8 {
    of.iter().filter(|(set, _)| *set).fold(0, |marks, (_, bit)| marks | bit)
}

impl node::Header for Header {
    type Packed = Packed;

    const LAYOUT: Layout = Layout { messages: LAYOUT };

    #[inline]
    fn pack(self) -> Packed {
        let none = Packed::zeroed();
        match self {
            Header::Data(Data { psn, entropy, pull_target, message_bytes, offset, ack_request, resent, last_hop }) => {
                let marks = marks(&[(resent, RESENT), (ack_request, ACK_REQUEST), (last_hop, LAST_HOP)]);
                let (credit, long, count) = (pull_target, message_bytes, offset);
                Packed { kind: DATA, marks, entropy, psn, credit, long, count, ..none }
            }
            Header::Ack(Ack { psn, entropy, cumulative, base, bitmap, received_bytes, marked, resent, of_request }) => {
                let marks = marks(&[(resent, RESENT), (marked, MARKED), (of_request, OF_REQUEST)]);
                let (credit, long, count) = (cumulative, bitmap, received_bytes);
                Packed { kind: ACK, marks, entropy, psn, credit, base, long, count }
            }
            Header::Nack(Nack { psn, entropy, marked, resent, last_hop }) => {
                let marks = marks(&[(resent, RESENT), (marked, MARKED), (last_hop, LAST_HOP)]);
                Packed { kind: NACK, marks, entropy, psn, ..none }
            }
            Header::Pull(Pull { credit }) => Packed { kind: PULL, credit, ..none },
            Header::Rts(Rts { pull_target, message_bytes }) => {
                Packed { kind: RTS, credit: pull_target, long: message_bytes, ..none }
            }
        }
    }

    #[inline]
    fn unpack(packed: Packed) -> Header {
        let Packed { kind, marks, entropy, psn, credit, base, long, count } = packed;
        let [resent, ack_request, last_hop, marked, of_request] =
            [RESENT, ACK_REQUEST, LAST_HOP, MARKED, OF_REQUEST].map(|bit| marks & bit != 0);
        match kind {
            ACK => Header::Ack(Ack {
                psn,
                entropy,
                cumulative: credit,
                base,
                bitmap: long,
                received_bytes: count,
                marked,
                resent,
                of_request,
            }),
            NACK => Header::Nack(Nack { psn, entropy, marked, resent, last_hop }),
            PULL => Header::Pull(Pull { credit }),
            RTS => Header::Rts(Rts { pull_target: credit, message_bytes: long }),
            _ => {
                let (pull_target, message_bytes, offset) = (credit, long, count);
                Header::Data(Data { psn, entropy, pull_target, message_bytes, offset, ack_request, resent, last_hop })
            }
        }
    }

    fn emit(self, to: &mut Writer<'_>) {
        let Packed { kind, marks, entropy, psn, credit, base, long, count } = self.pack();
        to.bytes(&[kind, marks]);
        to.u16(entropy);
        for word in [psn, credit, base] {
            to.u32(word);
        }
        to.u64(long);
        to.u64(count);
    }

    fn parse(from: &mut Reader<'_>) -> Result<Header, Malformed> {
        from.begin("UET header: shorter than 32 bytes");
        let ([kind, marks], entropy) = (from.array()?, from.u16()?);
        let (psn, credit, base) = (from.u32()?, from.u32()?, from.u32()?);
        let (long, count) = (from.u64()?, from.u64()?);
        if !(DATA..=RTS).contains(&kind) {
            return Err(Malformed { what: "UET kind" });
        }
        if marks >= 2 * OF_REQUEST {
            return Err(Malformed { what: "UET marks" });
        }
        Ok(Header::unpack(Packed { kind, marks, entropy, psn, credit, base, long, count }))
    }

    fn agreement(self) -> Option<Agreement> {
        matches!(self, Header::Pull(_) | Header::Rts(_)).then_some(Agreement::Grant)
    }

    fn payload_offset(self) -> u64 {
        if let Header::Data(data) = self { data.offset } else { 0 }
    }
}

const ENTROPY: Field = Field::number("entropy", Bits::u16(2));
const PSN: Field = Field::number("psn", Bits::u32(4));

/// A mark, by the place of its bit.
const fn mark(label: &'static str, bit: u8) -> Field {
    Field::new(label, Bits::u8(1).bits(bit.trailing_zeros() as u8, 1), BOOL)
}

const LAYOUT: &[Message] = &[
    Message::of_kind(
        "Data",
        DATA,
        &[
            PSN,
            ENTROPY,
            Field::number("pull_target", Bits::u32(8)),
            Field::number("message_bytes", Bits::u64(16)),
            Field::number("offset", Bits::u64(24)),
            mark("ack_request", ACK_REQUEST),
            mark("resent", RESENT),
            mark("last_hop", LAST_HOP),
        ],
    ),
    Message::of_kind(
        "Ack",
        ACK,
        &[
            PSN,
            ENTROPY,
            Field::number("cumulative", Bits::u32(8)),
            Field::number("base", Bits::u32(12)),
            Field::number("bitmap", Bits::u64(16)),
            Field::number("received_bytes", Bits::u64(24)),
            mark("marked", MARKED),
            mark("resent", RESENT),
            mark("of_request", OF_REQUEST),
        ],
    ),
    Message::of_kind(
        "Nack",
        NACK,
        &[PSN, ENTROPY, mark("marked", MARKED), mark("resent", RESENT), mark("last_hop", LAST_HOP)],
    ),
    Message::of_kind("Pull", PULL, &[Field::number("credit", Bits::u32(8))]),
    Message::of_kind(
        "Rts",
        RTS,
        &[Field::number("pull_target", Bits::u32(8)), Field::number("message_bytes", Bits::u64(16))],
    ),
];

#[cfg(test)]
mod tests;
