//! The header of Fastpass's packets.

use bytemuck::{Pod, Zeroable};
use node::Agreement;
use node::layout::{BOOL, Bits, Field, Layout, Message, TIME};
use node::wire::{Malformed, Reader, Writer};
use units::{HostId, Time};

/// What a packet says. All but data are control packets. Each says how often the sender had asked for slots when this
/// was said, modulo 2^16, its `attempt`; answers repeat it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, node::State)]
pub enum Header {
    /// Sender to arbiter: a request for slots.
    Request(Request),
    /// Arbiter to sender: slots and a path.
    Allocation(Allocation),
    /// Arbiter to sender: no slots within delta_admission.
    Reject {
        /// The request's.
        attempt: u16,
    },
    /// Arbiter to sender: the request has arrived and waits.
    Wait {
        /// The request's.
        attempt: u16,
    },
    /// A part of the message.
    Data(Data),
    /// Receiver to sender: every packet has arrived.
    Complete {
        /// The last packet's.
        attempt: u16,
    },
    /// Sender to receiver: everything has been sent; what is missing?
    Probe {
        /// The sender's.
        attempt: u16,
        /// Packets of the message.
        packets: u32,
    },
    /// Receiver to sender: the first missing packet.
    State {
        /// The probe's.
        attempt: u16,
        /// The first packet that is missing.
        #[state(steps)]
        missing: u32,
    },
}

/// What a sender asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, node::State)]
pub struct Request {
    /// The sender's.
    pub attempt: u16,
    /// The first packet that slots are for.
    #[state(steps)]
    pub first: u32,
    /// Packets that slots are for.
    #[state(rest(self.first))]
    pub packets: u32,
    /// The receiver.
    pub dst: HostId,
    /// Parts of the message have been sent, so it can no longer be rejected.
    pub admitted: bool,
    /// Packets were lost on the path that was allocated last.
    pub lost: bool,
}

/// What the arbiter gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, node::State)]
pub struct Allocation {
    /// The request's.
    pub attempt: u16,
    /// The first packet that slots are for.
    #[state(steps)]
    pub first: u32,
    /// Packets that slots are for.
    pub packets: u32,
    /// Slots from one packet to the next.
    pub stride: u32,
    /// When the first packet leaves.
    pub at: Time,
    /// Output ports of the switches on the way, one byte each, first lowest.
    pub path: u64,
}

/// What a data packet says beside its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, node::State)]
#[state(first(let unit = self.offset.checked_div(u64::from(self.packet)).unwrap_or(0)))]
pub struct Data {
    /// The sender's.
    pub attempt: u16,
    /// The packet's number.
    #[state(when(unit > 0, sequence(unit), steps))]
    pub packet: u32,
    /// Packets of the message.
    pub packets: u32,
    /// Offset of its first byte in the message.
    #[state(sequence(1))]
    pub offset: u64,
}

/// A header in a packet: the fields of all kinds as they follow each other on the wire. Those that a kind has no use
/// for are 0.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct Packed {
    kind: u8,
    /// Request: bits.
    about: u8,
    attempt: u16,
    packets: u32,
    /// The packet that it is about, or begins with.
    first: u32,
    /// Receiver or stride.
    argument: u32,
    /// Time in picoseconds, or offset.
    at: u64,
    path: u64,
}

const REQUEST: u8 = 1;
const ALLOCATION: u8 = 2;
const REJECT: u8 = 3;
const WAIT: u8 = 4;
const DATA: u8 = 5;
const COMPLETE: u8 = 6;
const PROBE: u8 = 7;
const STATE: u8 = 8;

/// Bits of [`Packed::about`].
const ADMITTED: u8 = 1;
const LOST: u8 = 2;

impl node::Header for Header {
    type Packed = Packed;

    const LAYOUT: Layout = Layout { messages: LAYOUT };

    #[inline]
    fn pack(self) -> Packed {
        let of = |kind, attempt| Packed { kind, attempt, ..Packed::zeroed() };
        match self {
            Header::Request(Request { attempt, first, packets, dst, admitted, lost }) => {
                let about = if admitted { ADMITTED } else { 0 } | if lost { LOST } else { 0 };
                Packed { about, packets, first, argument: dst.0, ..of(REQUEST, attempt) }
            }
            Header::Allocation(Allocation { attempt, first, packets, stride, at, path }) => {
                Packed { packets, first, argument: stride, at: at.ps(), path, ..of(ALLOCATION, attempt) }
            }
            Header::Reject { attempt } => of(REJECT, attempt),
            Header::Wait { attempt } => of(WAIT, attempt),
            Header::Data(Data { attempt, packet, packets, offset }) => {
                Packed { packets, first: packet, at: offset, ..of(DATA, attempt) }
            }
            Header::Complete { attempt } => of(COMPLETE, attempt),
            Header::Probe { attempt, packets } => Packed { packets, ..of(PROBE, attempt) },
            Header::State { attempt, missing } => Packed { first: missing, ..of(STATE, attempt) },
        }
    }

    #[inline]
    fn unpack(packed: Packed) -> Header {
        let Packed { kind, about, attempt, packets, first, argument, at, path } = packed;
        match kind {
            REQUEST => {
                let (admitted, lost) = (about & ADMITTED != 0, about & LOST != 0);
                Header::Request(Request { attempt, first, packets, dst: HostId(argument), admitted, lost })
            }
            ALLOCATION => {
                let at = Time::from_ps(at);
                Header::Allocation(Allocation { attempt, first, packets, stride: argument, at, path })
            }
            REJECT => Header::Reject { attempt },
            WAIT => Header::Wait { attempt },
            COMPLETE => Header::Complete { attempt },
            PROBE => Header::Probe { attempt, packets },
            STATE => Header::State { attempt, missing: first },
            _ => Header::Data(Data { attempt, packet: first, packets, offset: at }),
        }
    }

    fn emit(self, to: &mut Writer<'_>) {
        let Packed { kind, about, attempt, packets, first, argument, at, path } = self.pack();
        to.bytes(&[kind, about]);
        to.u16(attempt);
        for word in [packets, first, argument] {
            to.u32(word);
        }
        to.u64(at);
        to.u64(path);
    }

    fn parse(from: &mut Reader<'_>) -> Result<Header, Malformed> {
        from.begin("Fastpass header: shorter than 32 bytes");
        let ([kind, about], attempt) = (from.array()?, from.u16()?);
        let (packets, first, argument) = (from.u32()?, from.u32()?, from.u32()?);
        let (at, path) = (from.u64()?, from.u64()?);
        if !(REQUEST..=STATE).contains(&kind) {
            return Err(Malformed { what: "Fastpass kind" });
        }
        Ok(Header::unpack(Packed { kind, about, attempt, packets, first, argument, at, path }))
    }

    fn agreement(self) -> Option<Agreement> {
        let reserves =
            matches!(self, Header::Request(_) | Header::Allocation(_) | Header::Reject { .. } | Header::Wait { .. });
        reserves.then_some(Agreement::Reservation)
    }

    fn payload_offset(self) -> u64 {
        if let Header::Data(data) = self { data.offset } else { 0 }
    }
}

const ATTEMPT: Field = Field::number("attempt", Bits::u16(2));
const PACKETS: Field = Field::number("packets", Bits::u32(4));
const FIRST: Field = Field::number("first", Bits::u32(8));

const LAYOUT: &[Message] = &[
    Message::of_kind(
        "Request",
        REQUEST,
        &[
            ATTEMPT,
            FIRST,
            PACKETS,
            Field::number("dst", Bits::u32(12)),
            Field::new("admitted", Bits::u8(1).bits(0, 1), BOOL),
            Field::new("lost", Bits::u8(1).bits(1, 1), BOOL),
        ],
    ),
    Message::of_kind(
        "Allocation",
        ALLOCATION,
        &[
            ATTEMPT,
            FIRST,
            PACKETS,
            Field::number("stride", Bits::u32(12)),
            Field::new("at", Bits::u64(16), TIME),
            Field::number("path", Bits::u64(24)),
        ],
    ),
    Message::of_kind("Reject", REJECT, &[ATTEMPT]),
    Message::of_kind("Wait", WAIT, &[ATTEMPT]),
    Message::of_kind(
        "Data",
        DATA,
        &[ATTEMPT, Field::number("packet", Bits::u32(8)), PACKETS, Field::number("offset", Bits::u64(16))],
    ),
    Message::of_kind("Complete", COMPLETE, &[ATTEMPT]),
    Message::of_kind("Probe", PROBE, &[ATTEMPT, PACKETS]),
    Message::of_kind("State", STATE, &[ATTEMPT, Field::number("missing", Bits::u32(8))]),
];

#[cfg(test)]
mod tests;
