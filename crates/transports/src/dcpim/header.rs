//! The header of dcPIM's packets.

use bytemuck::{Pod, Zeroable};
use node::Agreement;
use node::layout::{Bits, Field, Layout, Message};
use node::wire::{Malformed, Reader, Writer};

/// What a packet says. All but data are control packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, node::State)]
pub enum Header {
    /// Sender to receiver: a flow has arrived (section 3.2).
    Notification {
        /// The priority class of a short flow, whose packets follow unasked; 0 for a long flow.
        class: u8,
        /// The flow.
        flow: Announced,
    },
    /// Receiver to sender: the notification has arrived.
    Ack,
    /// A part of the message.
    Data(Data),
    /// Receiver to sender: permission to send this packet.
    Token(Token),
    /// Sender to receiver: every packet has been sent.
    SenderFinish {
        /// Packets of the flow.
        packets: u32,
    },
    /// Receiver to sender: every packet has arrived.
    ReceiverFinish,
    /// Receiver to sender: a request to match (section 3.1).
    Request(Proposal),
    /// Sender to receiver: I would. It gives back phase and round of its request.
    Grant(Proposal),
    /// Receiver to sender: the grant is accepted.
    Accept(Accept),
    /// Sender to receiver: of the accepted channels, those that it can't serve.
    Trim(Accept),
}

/// A sender's news of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, node::State)]
pub struct Announced {
    /// Packets of the flow; 0 if that is not told.
    pub packets: u32,
    /// The packets with lower numbers follow unasked.
    pub untokened: u32,
    /// The rate of the sender's NIC in Kbps; 0 if that is not told.
    pub kbps: u32,
}

/// What a data packet says beside its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, node::State)]
pub struct Data {
    /// The packet's number in its flow.
    pub packet: u32,
    /// The same as in its flow's notification.
    pub flow: Announced,
    /// Number of the token that it uses.
    pub token: u32,
    /// Offset of its first byte in the message.
    pub offset: u64,
}

/// Leave to send one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, node::State)]
pub struct Token {
    /// The priority class that the packet shall have.
    pub class: u8,
    /// The receiver's matching phase, modulo 2^32.
    pub phase: u32,
    /// The packet's number in its flow.
    pub packet: u32,
    /// Cumulative acknowledgement: all packets below it are there.
    pub acked: u32,
    /// The token's number in its flow.
    pub token: u32,
    /// Packets of the flow that are missing.
    pub remaining: u64,
}

/// What one side of a matching proposes to the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, node::State)]
pub struct Proposal {
    /// The receiver's matching phase, modulo 2^32.
    pub phase: u32,
    /// The receiver's round, from 1 on.
    pub round: u8,
    /// Channels asked for or granted.
    pub channels: u8,
    /// Remaining packets of the smallest flow between the two.
    pub remaining: u64,
    /// Channels of these that would begin at once.
    pub prompt: u8,
    /// The rate of the slower NIC of the two in Kbps, of which a channel is the k-th part; 0 if that is not told.
    pub kbps: u32,
}

/// What a receiver accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, node::State)]
pub struct Accept {
    /// The receiver's matching phase, modulo 2^32.
    pub phase: u32,
    /// The receiver's round, from 1 on.
    pub round: u8,
    /// Channels accepted.
    pub channels: u8,
    /// As in the grant.
    pub prompt: u8,
    /// As in the grant.
    pub kbps: u32,
}

/// A header in a packet: the fields of all kinds as they follow each other on the wire. Those that a kind has no use
/// for are 0.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct Packed {
    kind: u8,
    round: u8,
    channels: u8,
    /// Class, or channels that begin at once.
    class: u8,
    /// Phase, or the rate of the sender's NIC.
    phase: u32,
    packet: u32,
    packets: u32,
    /// Acknowledgement, or packets that need no tokens.
    below: u32,
    /// Token, or the rate of channels.
    token: u32,
    /// Offset, or what remains.
    bytes: u64,
}

const NOTIFICATION: u8 = 1;
const ACK: u8 = 2;
const DATA: u8 = 3;
const TOKEN: u8 = 4;
const SENDER_FINISH: u8 = 5;
const RECEIVER_FINISH: u8 = 6;
const REQUEST: u8 = 7;
const GRANT: u8 = 8;
const ACCEPT: u8 = 9;
const TRIM: u8 = 10;

impl Proposal {
    #[inline]
    fn pack(self, kind: u8) -> Packed {
        let Proposal { phase, round, channels, remaining, prompt, kbps } = self;
        Packed { kind, round, channels, class: prompt, phase, token: kbps, bytes: remaining, ..Packed::zeroed() }
    }
}

impl Accept {
    #[inline]
    fn pack(self, kind: u8) -> Packed {
        let Accept { phase, round, channels, prompt, kbps } = self;
        Packed { kind, round, channels, class: prompt, phase, token: kbps, ..Packed::zeroed() }
    }
}

impl Announced {
    #[inline]
    fn pack(self, kind: u8) -> Packed {
        let Announced { packets, untokened, kbps } = self;
        Packed { kind, packets, below: untokened, phase: kbps, ..Packed::zeroed() }
    }
}

impl node::Header for Header {
    type Packed = Packed;

    const LAYOUT: Layout = Layout { messages: LAYOUT };

    #[inline]
    fn pack(self) -> Packed {
        let of = |kind| Packed { kind, ..Packed::zeroed() };
        match self {
            Header::Notification { class, flow } => Packed { class, ..flow.pack(NOTIFICATION) },
            Header::Ack => of(ACK),
            Header::Data(Data { packet, flow, token, offset }) => {
                Packed { packet, token, bytes: offset, ..flow.pack(DATA) }
            }
            Header::Token(Token { class, phase, packet, acked, token, remaining }) => {
                Packed { class, phase, packet, below: acked, token, bytes: remaining, ..of(TOKEN) }
            }
            Header::SenderFinish { packets } => Packed { packets, ..of(SENDER_FINISH) },
            Header::ReceiverFinish => of(RECEIVER_FINISH),
            Header::Request(proposal) => proposal.pack(REQUEST),
            Header::Grant(proposal) => proposal.pack(GRANT),
            Header::Accept(accept) => accept.pack(ACCEPT),
            Header::Trim(accept) => accept.pack(TRIM),
        }
    }

    #[inline]
    fn unpack(packed: Packed) -> Header {
        let Packed { kind, round, channels, class, phase, packet, packets, below, token, bytes } = packed;
        let proposal = Proposal { phase, round, channels, remaining: bytes, prompt: class, kbps: token };
        let accept = Accept { phase, round, channels, prompt: class, kbps: token };
        let flow = Announced { packets, untokened: below, kbps: phase };
        match kind {
            NOTIFICATION => Header::Notification { class, flow },
            ACK => Header::Ack,
            TOKEN => Header::Token(Token { class, phase, packet, acked: below, token, remaining: bytes }),
            SENDER_FINISH => Header::SenderFinish { packets },
            RECEIVER_FINISH => Header::ReceiverFinish,
            REQUEST => Header::Request(proposal),
            GRANT => Header::Grant(proposal),
            ACCEPT => Header::Accept(accept),
            TRIM => Header::Trim(accept),
            _ => Header::Data(Data { packet, flow, token, offset: bytes }),
        }
    }

    fn emit(self, to: &mut Writer<'_>) {
        let Packed { kind, round, channels, class, phase, packet, packets, below, token, bytes } = self.pack();
        to.bytes(&[kind, round, channels, class]);
        for word in [phase, packet, packets, below, token] {
            to.u32(word);
        }
        to.u64(bytes);
    }

    fn parse(from: &mut Reader<'_>) -> Result<Header, Malformed> {
        from.begin("dcPIM header: shorter than 32 bytes");
        let [kind, round, channels, class] = from.array()?;
        let (phase, packet, packets) = (from.u32()?, from.u32()?, from.u32()?);
        let (below, token, bytes) = (from.u32()?, from.u32()?, from.u64()?);
        if !(NOTIFICATION..=TRIM).contains(&kind) {
            return Err(Malformed { what: "dcPIM kind" });
        }
        if class > 7 && !(REQUEST..=TRIM).contains(&kind) {
            return Err(Malformed { what: "dcPIM class" });
        }
        Ok(Header::unpack(Packed { kind, round, channels, class, phase, packet, packets, below, token, bytes }))
    }

    fn agreement(self) -> Option<Agreement> {
        match self {
            Header::Request(_) | Header::Grant(_) | Header::Accept(_) | Header::Trim(_) => Some(Agreement::Matching),
            Header::Token(_) => Some(Agreement::Grant),
            _ => None,
        }
    }

    fn payload_offset(self) -> u64 {
        if let Header::Data(data) = self { data.offset } else { 0 }
    }
}

const PHASE: Field = Field::number("phase", Bits::u32(4));
const ROUND: Field = Field::number("round", Bits::u8(1));
const CHANNELS: Field = Field::number("channels", Bits::u8(2));
const CLASS: Field = Field::number("class", Bits::u8(3));
const NUMBER: Field = Field::number("packet", Bits::u32(8));
const PACKETS: Field = Field::number("flow packets", Bits::u32(12));
const OF_FINISH: Field = Field::number("packets", Bits::u32(12));
const UNTOKENED: Field = Field::number("untokened", Bits::u32(16));
const ACKED: Field = Field::number("acked", Bits::u32(16));
const OF_TOKEN: Field = Field::number("token", Bits::u32(20));
const REMAINING: Field = Field::number("remaining", Bits::u64(24));
const OF_NIC: Field = Field::number("kbps", Bits::u32(4));
const OF_BOTH: Field = Field::number("kbps", Bits::u32(20));
const PROMPT: Field = Field::number("prompt", Bits::u8(3));
const PROPOSAL: &[Field] = &[PHASE, ROUND, CHANNELS, REMAINING, PROMPT, OF_BOTH];
const ACCEPTED: &[Field] = &[PHASE, ROUND, CHANNELS, PROMPT, OF_BOTH];

const LAYOUT: &[Message] = &[
    Message::of_kind("Notification", NOTIFICATION, &[CLASS, PACKETS, UNTOKENED, OF_NIC]),
    Message::of_kind("Ack", ACK, &[]),
    Message::of_kind(
        "Data",
        DATA,
        &[NUMBER, PACKETS, UNTOKENED, OF_NIC, OF_TOKEN, Field::number("offset", Bits::u64(24))],
    ),
    Message::of_kind("Token", TOKEN, &[CLASS, PHASE, NUMBER, ACKED, OF_TOKEN, REMAINING]),
    Message::of_kind("SenderFinish", SENDER_FINISH, &[OF_FINISH]),
    Message::of_kind("ReceiverFinish", RECEIVER_FINISH, &[]),
    Message::of_kind("Request", REQUEST, PROPOSAL),
    Message::of_kind("Grant", GRANT, PROPOSAL),
    Message::of_kind("Accept", ACCEPT, ACCEPTED),
    Message::of_kind("Trim", TRIM, ACCEPTED),
];

#[cfg(test)]
mod tests;
