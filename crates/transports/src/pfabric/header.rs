//! What pFabric's packets carry.

use bytemuck::{Pod, Zeroable};
use node::layout::{Bits, Field, Layout, Message, Shown};
use node::wire::{Malformed, Reader, Writer};

/// What a packet says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, node::State)]
pub enum Header {
    /// A part of the message.
    Data(Data),
    /// Sender to receiver, a header alone: answer if you can (section 4.3).
    Probe {
        /// Packets of the flow.
        packets: u32,
        /// Bytes that remain of the flow.
        remaining: u64,
    },
    /// Receiver to sender.
    Ack(Ack),
}

/// What a data packet says beside its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, node::State)]
pub struct Data {
    /// The packet's number in its flow.
    #[state(steps)]
    pub packet: u32,
    /// Packets of the flow.
    pub packets: u32,
    /// Bytes that remain of the flow.
    #[state(rest(self.offset))]
    pub remaining: u64,
    /// Offset of its first byte in the message.
    #[state(sequence(1))]
    pub offset: u64,
}

/// What an acknowledgement says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, node::State)]
pub struct Ack {
    /// The number of the packet that has come; none for a probe. `u32::MAX` is no packet's.
    #[state(steps)]
    pub packet: Option<u32>,
    /// All packets below it are there.
    #[state(steps)]
    pub acked: u32,
}

/// A header in a packet: the fields of all kinds as they follow each other on the wire. Those that a kind has no use
/// for are 0.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct Packed {
    kind: u32,
    packet: u32,
    packets: u32,
    acked: u32,
    remaining: u64,
    offset: u64,
}

const DATA: u32 = 1;
const PROBE: u32 = 2;
const ACK: u32 = 3;
/// No packet's number.
const NONE: u32 = u32::MAX;

impl Header {
    /// Priority, least first: bytes that remain of the flow, 0 in an acknowledgement (section 4.1).
    #[inline]
    pub const fn priority(&self) -> u64 {
        match self {
            Header::Data(data) => data.remaining,
            Header::Probe { remaining, .. } => *remaining,
            Header::Ack(_) => 0,
        }
    }
}

impl node::Header for Header {
    type Packed = Packed;

    const LAYOUT: Layout = Layout { messages: LAYOUT };

    #[inline]
    fn pack(self) -> Packed {
        match self {
            Header::Data(Data { packet, packets, remaining, offset }) => {
                Packed { kind: DATA, packet, packets, remaining, offset, ..Packed::zeroed() }
            }
            Header::Probe { packets, remaining } => {
                Packed { kind: PROBE, packet: NONE, packets, remaining, ..Packed::zeroed() }
            }
            Header::Ack(Ack { packet, acked }) => {
                Packed { kind: ACK, packet: packet.unwrap_or(NONE), acked, ..Packed::zeroed() }
            }
        }
    }

    #[inline]
    fn unpack(packed: Packed) -> Header {
        let Packed { kind, packet, packets, acked, remaining, offset } = packed;
        match kind {
            PROBE => Header::Probe { packets, remaining },
            ACK => Header::Ack(Ack { packet: (packet != NONE).then_some(packet), acked }),
            _ => Header::Data(Data { packet, packets, remaining, offset }),
        }
    }

    fn emit(self, to: &mut Writer<'_>) {
        let Packed { kind, packet, packets, acked, remaining, offset } = self.pack();
        for word in [kind, packet, packets, acked] {
            to.u32(word);
        }
        to.u64(remaining);
        to.u64(offset);
    }

    fn parse(from: &mut Reader<'_>) -> Result<Header, Malformed> {
        from.begin("pFabric header: shorter than 32 bytes");
        let (kind, packet, packets, acked) = (from.u32()?, from.u32()?, from.u32()?, from.u32()?);
        let (remaining, offset) = (from.u64()?, from.u64()?);
        if !(DATA..=ACK).contains(&kind) {
            return Err(Malformed { what: "pFabric kind" });
        }
        Ok(Header::unpack(Packed { kind, packet, packets, acked, remaining, offset }))
    }

    fn payload_offset(self) -> u64 {
        if let Header::Data(data) = self { data.offset } else { 0 }
    }
}

const KIND: Bits = Bits::u32(0);
const NUMBER: Field = Field::number("packet", Bits::u32(4));
const PACKETS: Field = Field::number("packets", Bits::u32(8));
const REMAINING: Field = Field::number("remaining", Bits::u64(16));
const OFFSET: Field = Field::number("offset", Bits::u64(24));
const ACKNOWLEDGED: Field = Field::new("packet", Bits::u32(4), Shown::If(Bits::u32(4).within(0, NONE as u64 - 1)));

const LAYOUT: &[Message] = &[
    Message::new("Data", KIND.are(DATA as u64), 32, &[NUMBER, PACKETS, REMAINING, OFFSET]),
    Message::new("Probe", KIND.are(PROBE as u64), 32, &[PACKETS, REMAINING]),
    Message::new("Ack", KIND.are(ACK as u64), 32, &[ACKNOWLEDGED, Field::number("acked", Bits::u32(12))]),
];

#[cfg(test)]
mod tests;
