//! What the packets of Falcon carry (specification 0.9, section 7).
//!
//! Here are the fields that a simulation of push transactions needs, 32 bytes in all. Connection, function and protocol
//! are the packet's flow. Of the bitmaps of an EACK one is left, that of received packets. What a slow upper layer has
//! acknowledged beyond the first packet that it has not is learnt when that is; there are no pull requests. Timestamps
//! are in nanoseconds, not in 131.072 ns, which would be a fortieth of a round trip of 5 us.

use bytemuck::{Pod, Zeroable};
use node::Walk;
use node::layout::{BOOL, Bits, Field, Layout, Message};
use node::wire::{Malformed, Reader, Writer};
use units::{Duration, Time};

/// What a packet says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, node::State)]
pub enum Header {
    /// A part of the message: push data.
    Data(Data),
    /// These packets are here (EACK).
    Ack(Ack),
    /// This packet was here and found no room in the receive buffer (NACK, code 1).
    Nack(Nack),
}

/// What a data packet says beside its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, node::State)]
pub struct Data {
    /// The packet's number in its message (PSN), from 0 on.
    #[state(steps)]
    pub psn: u32,
    /// The path that it takes: the low bits of its flow label.
    pub path: u8,
    /// The sender wants an answer at once (AR).
    pub ack_request: bool,
    /// When it was sent (T1), in nanoseconds modulo 2^32.
    #[state(by(visit_stamp))]
    pub t1_ns: u32,
    /// Length of the message.
    pub message_bytes: u64,
    /// Offset of the packet's first byte.
    #[state(sequence(1))]
    pub offset: u64,
}

/// What a receiver says of one path: of the packet that came over it last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, node::State)]
pub struct Echo {
    /// The path.
    pub path: u8,
    /// Switches that the packet passed.
    pub hops: u8,
    /// How full the receive buffer is, in 32nds of it (quantized level).
    pub buffer_level: u8,
    /// When the packet was sent (T1), in nanoseconds modulo 2^32.
    #[state(by(visit_stamp))]
    pub t1_ns: u32,
    /// How long it was here before this answer left (T3 - T2), in nanoseconds.
    pub held_ns: u32,
}

/// What a receiver has of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, node::State)]
pub struct Ack {
    /// All packets below it are there, and the upper layer has taken them (BPSN).
    #[state(steps)]
    pub base: u32,
    /// Packets from `base` on that are there: bit n is that of packet `base` + n.
    pub received: u64,
    /// The next 64 bits.
    pub received_beyond: u64,
    /// What congestion control reads.
    pub echo: Echo,
}

/// What a receiver says of a packet that it has dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, node::State)]
pub struct Nack {
    /// As in an acknowledgement.
    #[state(steps)]
    pub base: u32,
    /// The dropped packet.
    #[state(steps)]
    pub psn: u32,
    /// What congestion control reads.
    pub echo: Echo,
}

/// Packets that an acknowledgement's bitmap covers.
pub const BITMAP: u32 = 128;
/// Levels of the receive buffer.
pub const LEVELS: u8 = 32;

/// A header in a packet: fields as they follow each other on the wire. Those that a kind has no use for are 0.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct Packed {
    kind: u8,
    path: u8,
    hops: u8,
    /// Whether an answer is wanted, or the buffer's level.
    small: u8,
    psn: u32,
    t1_ns: u32,
    held_ns: u32,
    first: u64,
    second: u64,
}

const DATA: u8 = 1;
const ACK: u8 = 2;
const NACK: u8 = 3;

/// A time in nanoseconds modulo 2^32, as packets carry it.
pub(super) fn stamp(at: Time) -> u32 {
    (at.ps() / 1_000) as u32
}

impl Echo {
    fn of(packed: Packed) -> Echo {
        let Packed { path, hops, small, t1_ns, held_ns, .. } = packed;
        Echo { path, hops, buffer_level: small, t1_ns, held_ns }
    }

    fn pack(self, kind: u8) -> Packed {
        let Echo { path, hops, buffer_level, t1_ns, held_ns } = self;
        Packed { kind, path, hops, small: buffer_level, t1_ns, held_ns, ..Packed::zeroed() }
    }
}

/// Goes over a time in nanoseconds, of which a packet has the last 32 bits.
pub(super) fn visit_stamp<G: ?Sized>(stamp_ns: &mut u32, walk: &mut Walk, _: &G) {
    let age = stamp(walk.now()).wrapping_sub(*stamp_ns);
    walk.same(age);
    let before = Time::from_ps(walk.now().ps().saturating_sub(Duration::from_ns(age.into()).ps()));
    let mut at = before;
    walk.time(&mut at);
    *stamp_ns = stamp_ns.wrapping_add(((at - before).ps() / 1_000) as u32);
}

impl node::Header for Header {
    type Packed = Packed;

    const LAYOUT: Layout = Layout { messages: LAYOUT };

    #[inline]
    fn pack(self) -> Packed {
        match self {
            Header::Data(Data { psn, path, ack_request, t1_ns, message_bytes, offset }) => {
                let (kind, small) = (DATA, u8::from(ack_request));
                Packed { kind, path, hops: 0, small, psn, t1_ns, held_ns: 0, first: message_bytes, second: offset }
            }
            Header::Ack(Ack { base, received, received_beyond, echo }) => {
                Packed { psn: base, first: received, second: received_beyond, ..echo.pack(ACK) }
            }
            Header::Nack(Nack { base, psn, echo }) => Packed { psn, first: u64::from(base), ..echo.pack(NACK) },
        }
    }

    #[inline]
    fn unpack(packed: Packed) -> Header {
        let Packed { kind, path, small, psn, t1_ns, first, second, .. } = packed;
        match kind {
            ACK => Header::Ack(Ack { base: psn, received: first, received_beyond: second, echo: Echo::of(packed) }),
            NACK => Header::Nack(Nack { base: first as u32, psn, echo: Echo::of(packed) }),
            _ => {
                let (ack_request, message_bytes, offset) = (small != 0, first, second);
                Header::Data(Data { psn, path, ack_request, t1_ns, message_bytes, offset })
            }
        }
    }

    fn emit(self, to: &mut Writer<'_>) {
        let Packed { kind, path, hops, small, psn, t1_ns, held_ns, first, second } = self.pack();
        to.bytes(&[kind, path, hops, small]);
        for word in [psn, t1_ns, held_ns] {
            to.u32(word);
        }
        to.u64(first);
        to.u64(second);
    }

    fn parse(from: &mut Reader<'_>) -> Result<Header, Malformed> {
        from.begin("Falcon header: shorter than 32 bytes");
        let [kind, path, hops, small] = from.array()?;
        let (psn, t1_ns, held_ns) = (from.u32()?, from.u32()?, from.u32()?);
        let (first, second) = (from.u64()?, from.u64()?);
        let smalls = match kind {
            DATA => 2,
            ACK | NACK => LEVELS,
            _ => return Err(Malformed { what: "Falcon kind" }),
        };
        if small >= smalls {
            return Err(Malformed { what: "Falcon buffer level" });
        }
        if kind == NACK && first > u64::from(u32::MAX) {
            return Err(Malformed { what: "Falcon base" });
        }
        Ok(Header::unpack(Packed { kind, path, hops, small, psn, t1_ns, held_ns, first, second }))
    }

    fn payload_offset(self) -> u64 {
        if let Header::Data(data) = self { data.offset } else { 0 }
    }
}

const ECHO_PATH: Field = Field::number("echo path", Bits::u8(1));
const HOPS: Field = Field::number("hops", Bits::u8(2));
const LEVEL: Field = Field::number("buffer_level", Bits::u8(3));
const HELD: Field = Field::number("held_ns", Bits::u32(12));
const T1: Field = Field::number("t1_ns", Bits::u32(8));

const LAYOUT: &[Message] = &[
    Message::of_kind(
        "Data",
        DATA,
        &[
            Field::number("psn", Bits::u32(4)),
            Field::number("path", Bits::u8(1)),
            Field::new("ack_request", Bits::u8(3).bits(0, 1), BOOL),
            T1,
            Field::number("message_bytes", Bits::u64(16)),
            Field::number("offset", Bits::u64(24)),
        ],
    ),
    Message::of_kind(
        "Ack",
        ACK,
        &[
            Field::number("base", Bits::u32(4)),
            Field::number("received", Bits::u64(16)),
            Field::number("received_beyond", Bits::u64(24)),
            ECHO_PATH,
            HOPS,
            LEVEL,
            T1,
            HELD,
        ],
    ),
    Message::of_kind(
        "Nack",
        NACK,
        &[Field::number("base", Bits::u64(16)), Field::number("psn", Bits::u32(4)), ECHO_PATH, HOPS, LEVEL, T1, HELD],
    ),
];

#[cfg(test)]
mod tests;
