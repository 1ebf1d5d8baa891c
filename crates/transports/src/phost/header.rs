//! What pHost's packets carry.

use bytemuck::{Pod, Zeroable};
use node::Agreement;
use node::layout::{Bits, Field, Layout, Message};
use node::wire::{Malformed, Reader, Writer};

/// What a packet says. All but data are control packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, node::State)]
pub enum Header {
    /// Sender to receiver: request to send.
    Rts(Announced),
    /// Receiver to sender: send this packet.
    Token(Token),
    /// A part of the message.
    Data(Data),
    /// Receiver to sender: every packet is here.
    Ack,
}

/// What a sender tells of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, node::State)]
pub struct Announced {
    /// The tenant that the flow belongs to.
    pub tenant: u16,
    /// Packets of the flow.
    pub packets: u32,
    /// Free tokens of the flow.
    pub free: u32,
}

/// Leave to send one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, node::State)]
pub struct Token {
    /// The priority class that the packet shall have.
    pub class: u8,
    /// The packet's number in its flow.
    #[state(steps)]
    pub packet: u32,
    /// The token's number in its flow. Free tokens have the first.
    #[state(steps)]
    pub token: u32,
    /// Packets of the flow that its receiver lacks.
    #[state(rest(self.packet))]
    pub remaining: u32,
}

/// What a data packet says beside its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, node::State)]
pub struct Data {
    /// What its flow's request says too.
    pub flow: Announced,
    /// The packet's number in its flow.
    #[state(steps)]
    pub packet: u32,
    /// Number of the token that it uses.
    #[state(steps)]
    pub token: u32,
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
    class: u8,
    tenant: u16,
    packet: u32,
    packets: u32,
    token: u32,
    remaining: u32,
    free: u32,
    offset: u64,
}

const RTS: u8 = 1;
const TOKEN: u8 = 2;
const DATA: u8 = 3;
const ACK: u8 = 4;

impl Announced {
    #[inline]
    fn pack(self, kind: u8) -> Packed {
        let Announced { tenant, packets, free } = self;
        Packed { kind, tenant, packets, free, ..Packed::zeroed() }
    }
}

impl node::Header for Header {
    type Packed = Packed;

    const LAYOUT: Layout = Layout { messages: LAYOUT };

    #[inline]
    fn pack(self) -> Packed {
        match self {
            Header::Rts(flow) => flow.pack(RTS),
            Header::Token(Token { class, packet, token, remaining }) => {
                Packed { kind: TOKEN, class, packet, token, remaining, ..Packed::zeroed() }
            }
            Header::Data(Data { flow, packet, token, offset }) => Packed { packet, token, offset, ..flow.pack(DATA) },
            Header::Ack => Packed { kind: ACK, ..Packed::zeroed() },
        }
    }

    #[inline]
    fn unpack(packed: Packed) -> Header {
        let Packed { kind, class, tenant, packet, packets, token, remaining, free, offset } = packed;
        let flow = Announced { tenant, packets, free };
        match kind {
            RTS => Header::Rts(flow),
            TOKEN => Header::Token(Token { class, packet, token, remaining }),
            ACK => Header::Ack,
            _ => Header::Data(Data { flow, packet, token, offset }),
        }
    }

    fn emit(self, to: &mut Writer<'_>) {
        let Packed { kind, class, tenant, packet, packets, token, remaining, free, offset } = self.pack();
        to.bytes(&[kind, class]);
        to.u16(tenant);
        for word in [packet, packets, token, remaining, free] {
            to.u32(word);
        }
        to.u64(offset);
    }

    fn parse(from: &mut Reader<'_>) -> Result<Header, Malformed> {
        from.begin("pHost header: shorter than 32 bytes");
        let ([kind, class], tenant) = (from.array()?, from.u16()?);
        let (packet, packets, token) = (from.u32()?, from.u32()?, from.u32()?);
        let (remaining, free, offset) = (from.u32()?, from.u32()?, from.u64()?);
        if !(RTS..=ACK).contains(&kind) {
            return Err(Malformed { what: "pHost kind" });
        }
        if class > 7 {
            return Err(Malformed { what: "pHost class" });
        }
        Ok(Header::unpack(Packed { kind, class, tenant, packet, packets, token, remaining, free, offset }))
    }

    fn agreement(self) -> Option<Agreement> {
        matches!(self, Header::Rts(_) | Header::Token(_)).then_some(Agreement::Grant)
    }

    fn payload_offset(self) -> u64 {
        if let Header::Data(data) = self { data.offset } else { 0 }
    }
}

const CLASS: Field = Field::number("class", Bits::u8(1));
const TENANT: Field = Field::number("tenant", Bits::u16(2));
const NUMBER: Field = Field::number("packet", Bits::u32(4));
const PACKETS: Field = Field::number("packets", Bits::u32(8));
const OF_TOKEN: Field = Field::number("token", Bits::u32(12));
const REMAINING: Field = Field::number("remaining", Bits::u32(16));
const FREE: Field = Field::number("free", Bits::u32(20));
const OFFSET: Field = Field::number("offset", Bits::u64(24));
const OF_FLOW: Field = Field::number("flow tenant", Bits::u16(2));

const LAYOUT: &[Message] = &[
    Message::of_kind("Rts", RTS, &[TENANT, PACKETS, FREE]),
    Message::of_kind("Token", TOKEN, &[CLASS, NUMBER, OF_TOKEN, REMAINING]),
    Message::of_kind("Data", DATA, &[OF_FLOW, PACKETS, FREE, NUMBER, OF_TOKEN, OFFSET]),
    Message::of_kind("Ack", ACK, &[]),
];

#[cfg(test)]
mod tests;
