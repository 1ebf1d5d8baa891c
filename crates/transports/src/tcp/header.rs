//! What is on the wire.

use bytemuck::{Pod, Zeroable};
use node::layout::{BOOL, Bits, Field, Layout, Message, Shown};
use node::wire::{Malformed, Reader, Writer};
use units::Duration;

/// What a TCP packet says, in 32 bytes.
///
/// A flow carries one message one way, so a packet is either data or an acknowledgement and the fields serve both.
/// SACK blocks count segments from the cumulative acknowledgement: every segment but a message's last is as long as
/// the network allows, so 16 bits reach 65,535 segments ahead (96 MB of 1,500 B packets), and three blocks fit, as many
/// as a real TCP with timestamps sends (RFC 2018). Data packets say how long the message is, so no FIN is needed;
/// acknowledgements say in its place what virtual queueing delay the data has met (Augmented Queue, section 3.3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, node::State)]
pub enum Header {
    /// The sender asks for a connection.
    Syn {
        /// Length of the message.
        bytes: u64,
    },
    /// The receiver grants it.
    SynAck,
    /// A part of the message.
    Data(Data),
    /// The receiver acknowledges.
    Ack(Acknowledgement),
}

/// What a data packet says beside its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, node::State)]
pub struct Data {
    /// Offset of the first byte.
    #[state(sequence(1))]
    pub sequence: u64,
    /// Length of the message.
    pub bytes: u64,
    /// The sender has reduced its window (RFC 3168 section 6.1).
    pub cwr: bool,
}

/// What an acknowledgement says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, node::State)]
pub struct Acknowledgement {
    /// Every byte before this one has arrived.
    #[state(sequence(1))]
    pub sequence: u64,
    /// What has arrived beyond, the most recent first.
    pub blocks: [Block; 3],
    /// The receiver has seen congestion marks (RFC 3168 section 6.1).
    pub ece: bool,
    /// Virtual queueing delay of the data packet that brought it about, in nanoseconds, if that belonged to an AQ.
    pub virtual_delay_ns: Option<u32>,
}

/// Segments that have arrived beyond the cumulative acknowledgement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable, node::State)]
#[repr(C)]
pub struct Block {
    /// The first, counted from the cumulative acknowledgement.
    pub first: u16,
    /// How many; 0 where there is no block.
    pub count: u16,
}

/// How far beyond the cumulative acknowledgement a segment may be: what a [`Block`] can say.
pub const WINDOW_SEGMENTS: u64 = u16::MAX as u64;

/// A header in a packet: the fields of data and acknowledgements as they follow each other on the wire.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct Packed {
    sequence: u64,
    /// Length of the message, or virtual delay.
    bytes_or_delay: u64,
    blocks: [Block; 3],
    flags: u32,
}

/// The packet asks for a connection, or with [`ACK`] grants it.
const SYN: u32 = 1;
/// The packet acknowledges.
const ACK: u32 = 2;
const ECE: u32 = 4;
const CWR: u32 = 8;
/// Acknowledgement: the data packet that brought it about belonged to an AQ.
const TAGGED: u32 = 16;

impl Header {
    /// Offset of the data that it is about: what a data packet begins with, or all that has arrived before.
    #[inline]
    pub const fn sequence(&self) -> u64 {
        match self {
            Header::Syn { .. } | Header::SynAck => 0,
            Header::Data(data) => data.sequence,
            Header::Ack(ack) => ack.sequence,
        }
    }
}

impl Acknowledgement {
    /// The virtual queueing delay of the data packet that brought it about, if that belonged to an AQ.
    #[inline]
    pub fn virtual_delay(&self) -> Option<Duration> {
        self.virtual_delay_ns.map(|ns| Duration::from_ns(u64::from(ns)))
    }
}

impl node::Header for Header {
    type Packed = Packed;

    const LAYOUT: Layout = Layout { messages: LAYOUT };

    #[inline]
    fn pack(self) -> Packed {
        let of = |flags| Packed { flags, ..Packed::zeroed() };
        match self {
            Header::Syn { bytes } => Packed { bytes_or_delay: bytes, ..of(SYN) },
            Header::SynAck => of(SYN | ACK),
            Header::Data(Data { sequence, bytes, cwr }) => {
                Packed { sequence, bytes_or_delay: bytes, ..of(if cwr { CWR } else { 0 }) }
            }
            Header::Ack(Acknowledgement { sequence, blocks, ece, virtual_delay_ns }) => {
                let flags = ACK | if ece { ECE } else { 0 } | virtual_delay_ns.map_or(0, |_| TAGGED);
                Packed { sequence, bytes_or_delay: virtual_delay_ns.map_or(0, u64::from), blocks, flags }
            }
        }
    }

    #[inline]
    fn unpack(packed: Packed) -> Header {
        let Packed { sequence, bytes_or_delay, blocks, flags } = packed;
        let has = |flag| flags & flag != 0;
        match (has(ACK), has(SYN)) {
            (false, false) => Header::Data(Data { sequence, bytes: bytes_or_delay, cwr: has(CWR) }),
            // Packets gather a delay in 32 bits; what more there is in a malformed one is noise.
            (true, false) => {
                let virtual_delay_ns = has(TAGGED).then_some(bytes_or_delay as u32);
                Header::Ack(Acknowledgement { sequence, blocks, ece: has(ECE), virtual_delay_ns })
            }
            (false, true) => Header::Syn { bytes: bytes_or_delay },
            (true, true) => Header::SynAck,
        }
    }

    fn emit(self, to: &mut Writer<'_>) {
        let Packed { sequence, bytes_or_delay, blocks, flags } = self.pack();
        to.u64(sequence);
        to.u64(bytes_or_delay);
        for Block { first, count } in blocks {
            to.u16(first);
            to.u16(count);
        }
        to.u32(flags);
    }

    fn parse(from: &mut Reader<'_>) -> Result<Header, Malformed> {
        from.begin("TCP header: shorter than 32 bytes");
        let (sequence, bytes_or_delay) = (from.u64()?, from.u64()?);
        let mut blocks = [Block::default(); 3];
        for block in &mut blocks {
            *block = Block { first: from.u16()?, count: from.u16()? };
        }
        Ok(Header::unpack(Packed { sequence, bytes_or_delay, blocks, flags: from.u32()? }))
    }

    fn payload_offset(self) -> u64 {
        self.sequence()
    }
}

/// The flags, by their place.
const IS_SYN: Bits = Bits::u32(28).bits(0, 1);
const IS_ACK: Bits = Bits::u32(28).bits(1, 1);
const IS_TAGGED: Bits = Bits::u32(28).bits(4, 1);

const SEQUENCE: Field = Field::number("sequence", Bits::u64(0));
const BYTES: Field = Field::number("bytes", Bits::u64(8));
const ACKNOWLEDGEMENT: &[Field] = &[
    SEQUENCE,
    Field::number("blocks [first", Bits::u16(16)),
    Field::number("count", Bits::u16(18)),
    Field::number("first", Bits::u16(20)),
    Field::number("count", Bits::u16(22)),
    Field::number("first", Bits::u16(24)),
    Field::number("count]", Bits::u16(26)),
    Field::new("ece", Bits::u32(28).bits(2, 1), BOOL),
    Field::new("virtual_delay_ns", Bits::u32(12), Shown::If(IS_TAGGED.are(1))),
];

const LAYOUT: &[Message] = &[
    Message::new("SynAck", IS_SYN.are(1), 32, &[]).and(IS_ACK.are(1)),
    Message::new("Syn", IS_SYN.are(1), 32, &[BYTES]),
    Message::new("Ack", IS_ACK.are(1), 32, ACKNOWLEDGEMENT),
    Message::new("Data", IS_ACK.are(0), 32, &[SEQUENCE, BYTES, Field::new("cwr", Bits::u32(28).bits(3, 1), BOOL)]),
];

#[cfg(test)]
mod tests;
