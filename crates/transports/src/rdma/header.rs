//! What is on the wire.

use bytemuck::{Pod, Zeroable};
use node::layout::{BOOL, Bits, Field, Layout, Message, Shown, TIME};
use node::wire::{Malformed, Reader, Writer};
use units::{Duration, Time};

/// What an RDMA packet says, in 32 bytes.
///
/// A queue pair carries one message one way, so a packet is either data or an answer, and the fields serve both.
/// Offsets in bytes stand for RoCE's packet sequence numbers: every packet but a message's last is as long as the
/// network allows. Data packets say how long the message is, so that a receiver needs no connection to be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, node::State)]
pub enum Header {
    /// A part of the message.
    Data(Data),
    /// The receiver acknowledges.
    Ack(Acknowledgement),
    /// It acknowledges, and says that the packet that brought it about came out of order.
    Nack(Acknowledgement),
    /// A congestion notification in a packet of its own: data has come in marked.
    Cnp(Answer),
}

/// What a data packet says beside its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, node::State)]
pub struct Data {
    /// Offset of the first byte.
    #[state(sequence(1))]
    pub sequence: u64,
    /// Length of the message.
    pub bytes: u64,
    /// When it left, by its sender's clock.
    #[state(past)]
    pub sent: Time,
}

/// What an acknowledgement says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, node::State)]
pub struct Acknowledgement {
    /// What every answer says.
    pub answer: Answer,
    /// It is a congestion notification too.
    pub cnp: bool,
}

/// What an answer says of the data packet that brought it about, and of all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, node::State)]
pub struct Answer {
    /// Every byte before this one has arrived.
    #[state(sequence(1))]
    pub sequence: u64,
    /// Offset of the packet that brought it about (IRN's selective acknowledgement).
    #[state(sequence(1))]
    pub packet: u64,
    /// When that packet left, by its sender's clock.
    #[state(past)]
    pub sent: Time,
    /// Its virtual queueing delay in nanoseconds, if it belonged to an AQ (Augmented Queue, section 3.3.2).
    pub virtual_delay_ns: Option<u32>,
}

/// A header in a packet: the fields of data and answers as they follow each other on the wire.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct Packed {
    sequence: u64,
    bytes_or_packet: u64,
    timestamp_ps: u64,
    virtual_delay_ns: u32,
    flags: u32,
}

const ACK: u32 = 1;
const NACK: u32 = 2;
const CNP: u32 = 4;
/// Answer: the data packet that brought it about belonged to an AQ.
const TAGGED: u32 = 8;

impl Header {
    /// Offset of the data that it is about: what a data packet begins with, or all that has arrived before.
    #[inline]
    pub const fn sequence(&self) -> u64 {
        match self {
            Header::Data(data) => data.sequence,
            Header::Ack(ack) | Header::Nack(ack) => ack.answer.sequence,
            Header::Cnp(answer) => answer.sequence,
        }
    }
}

impl Answer {
    /// The virtual queueing delay of the data packet that brought it about, if that belonged to an AQ.
    #[inline]
    pub fn virtual_delay(&self) -> Option<Duration> {
        self.virtual_delay_ns.map(|ns| Duration::from_ns(u64::from(ns)))
    }

    #[inline]
    fn pack(self, flags: u32) -> Packed {
        let tagged = self.virtual_delay_ns.map_or(0, |_| TAGGED);
        Packed {
            sequence: self.sequence,
            bytes_or_packet: self.packet,
            timestamp_ps: self.sent.ps(),
            virtual_delay_ns: self.virtual_delay_ns.unwrap_or(0),
            flags: flags | tagged,
        }
    }
}

impl node::Header for Header {
    type Packed = Packed;

    const LAYOUT: Layout = Layout { messages: LAYOUT };

    #[inline]
    fn pack(self) -> Packed {
        let cnp = |ack: Acknowledgement| if ack.cnp { CNP } else { 0 };
        match self {
            Header::Data(Data { sequence, bytes, sent }) => {
                Packed { sequence, bytes_or_packet: bytes, timestamp_ps: sent.ps(), ..Packed::zeroed() }
            }
            Header::Ack(ack) => ack.answer.pack(ACK | cnp(ack)),
            Header::Nack(ack) => ack.answer.pack(NACK | cnp(ack)),
            Header::Cnp(answer) => answer.pack(CNP),
        }
    }

    #[inline]
    fn unpack(packed: Packed) -> Header {
        let Packed { sequence, bytes_or_packet, timestamp_ps, virtual_delay_ns, flags } = packed;
        let has = |flag| flags & flag != 0;
        let sent = Time::from_ps(timestamp_ps);
        let virtual_delay_ns = has(TAGGED).then_some(virtual_delay_ns);
        let answer = Answer { sequence, packet: bytes_or_packet, sent, virtual_delay_ns };
        let ack = Acknowledgement { answer, cnp: has(CNP) };
        if !has(ACK | NACK | CNP) {
            Header::Data(Data { sequence, bytes: bytes_or_packet, sent })
        } else if has(NACK) {
            Header::Nack(ack)
        } else if has(ACK) {
            Header::Ack(ack)
        } else {
            Header::Cnp(answer)
        }
    }

    fn emit(self, to: &mut Writer<'_>) {
        let Packed { sequence, bytes_or_packet, timestamp_ps, virtual_delay_ns, flags } = self.pack();
        for word in [sequence, bytes_or_packet, timestamp_ps] {
            to.u64(word);
        }
        to.u32(virtual_delay_ns);
        to.u32(flags);
    }

    fn parse(from: &mut Reader<'_>) -> Result<Header, Malformed> {
        from.begin("RDMA header: shorter than 32 bytes");
        let (sequence, bytes_or_packet, timestamp_ps) = (from.u64()?, from.u64()?, from.u64()?);
        let (virtual_delay_ns, flags) = (from.u32()?, from.u32()?);
        Ok(Header::unpack(Packed { sequence, bytes_or_packet, timestamp_ps, virtual_delay_ns, flags }))
    }

    fn payload_offset(self) -> u64 {
        self.sequence()
    }
}

/// The flags, by their place.
const IS_ACK: Bits = Bits::u32(28).bits(0, 1);
const IS_NACK: Bits = Bits::u32(28).bits(1, 1);
const IS_CNP: Bits = Bits::u32(28).bits(2, 1);
const IS_TAGGED: Bits = Bits::u32(28).bits(3, 1);

const SEQUENCE: Field = Field::number("sequence", Bits::u64(0));
const OF_ANSWER: Field = Field::number("answer sequence", Bits::u64(0));
const BROUGHT_BY: Field = Field::number("packet", Bits::u64(8));
const SENT: Field = Field::new("sent", Bits::u64(16), TIME);
const DELAY: Field = Field::new("virtual_delay_ns", Bits::u32(24), Shown::If(IS_TAGGED.are(1)));
const ALSO_CNP: Field = Field::new("cnp", IS_CNP, BOOL);

const LAYOUT: &[Message] = &[
    Message::new("Nack", IS_NACK.are(1), 32, &[OF_ANSWER, BROUGHT_BY, SENT, DELAY, ALSO_CNP]),
    Message::new("Ack", IS_ACK.are(1), 32, &[OF_ANSWER, BROUGHT_BY, SENT, DELAY, ALSO_CNP]),
    Message::new("Cnp", IS_CNP.are(1), 32, &[SEQUENCE, BROUGHT_BY, SENT, DELAY]),
    Message::new("Data", IS_CNP.are(0), 32, &[SEQUENCE, Field::number("bytes", Bits::u64(8)), SENT]),
];

#[cfg(test)]
mod tests;
