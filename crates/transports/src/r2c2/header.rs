//! What R2C2's packets carry while nodes have them in hand. On the wire they are Figure 6's bytes
//! ([`wire`](super::wire)), or what stands for them ([`travel`](super::travel)).

use bytemuck::{Pod, Zeroable};
use node::Packet;
use node::layout::{Bits, Field, Layout, Message, Shown};
use node::wire::{Malformed, Reader, Writer};
use units::HostId;

use super::route::COMPACT_MAX;
use super::travel::{self, OWN_BYTES};
use super::wire::{BROADCAST_BYTES, DATA_BYTES, WIDE};

/// What a packet says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, node::State)]
pub enum Header {
    /// A part of a message (section 3.5, Figure 6).
    Data(Data),
    /// Broadcast: a flow has started, or something about it has changed, or it is still there (section 3.2, Figure 6).
    Announce(FlowState),
    /// Broadcast: a flow has finished (section 3.2, Figure 6).
    Finish(FlowState),
    /// To the sender of a broadcast about a flow, from the node that has dropped it (section 3.2).
    Dropped(FlowState),
    /// Broadcast: flows shall use other routing protocols (section 3.4).
    Assign(Batch),
    /// To the sender of assignments, from the node that has dropped them.
    DroppedAssign(Batch),
    /// Controller to a sender, in the centralised design: the rate of one of its flows (section 5.2).
    Rate(FlowRate),
    /// Sender to receiver: everything has been sent; is it there?
    Probe {
        /// Packets of the flow.
        packets: u32,
        /// The first packet that is asked about.
        from: u32,
    },
    /// Receiver to sender: what is missing.
    Status(Missing),
    /// Receiver to sender: every byte is here.
    Done,
}

/// What a data packet says beside its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, node::State)]
pub struct Data {
    /// It is the message's last packet.
    pub last: bool,
    /// Hops of the route, with [`WIDE`](super::wire::WIDE) where each has a byte. It is in `route` if it has more than
    /// 21 hops, and in the packet's label otherwise.
    pub rlen: u8,
    /// A long route, three bits a hop, first hop lowest.
    pub route: [u64; 2],
    /// The packet's number.
    #[state(sequence(u64::from(self.full)))]
    pub seq: u32,
    /// Message bytes in each packet but the last.
    pub full: u32,
}

/// What a broadcast says of a flow. Its sender is the packet's, of a report its receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, node::State)]
pub struct FlowState {
    /// The flow's receiver.
    pub dst: HostId,
    /// Which of the flows between the two it is.
    pub number: u8,
    /// How often its source has announced it, modulo 16: the later counts.
    pub version: u8,
    /// Its weight.
    pub weight: u8,
    /// Its priority.
    pub priority: u8,
    /// Its demand in Kbps, [`UNLIMITED`] without one.
    pub demand_kbps: u32,
    /// The broadcast tree.
    pub tree: u8,
    /// The routing protocol's number.
    pub rp: u8,
}

/// A packet of assignments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, node::State)]
pub struct Batch {
    /// Its number, by its sender's count.
    pub number: u32,
    /// The broadcast tree.
    pub tree: u8,
}

/// The rate of one of the receiver's flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, node::State)]
pub struct FlowRate {
    /// The flow's receiver.
    pub dst: HostId,
    /// Which of the flows to it.
    pub number: u8,
    /// The rate in Kbps.
    pub kbps: u32,
}

/// What a receiver lacks of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, node::State)]
pub struct Missing {
    /// The first packet that is missing.
    pub first: u32,
    /// Which of the 128 packets from there on are missing, the first lowest.
    pub packets: [u64; 2],
}

/// Packets that one report covers.
pub const WINDOW: u32 = 128;

/// No demand is known: the flow takes what it can have.
pub const UNLIMITED: u32 = u32::MAX;

/// A header in a packet: the fields of all kinds as they follow each other. Those that a kind has no use for are 0.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct Packed {
    /// The route, or what is missing.
    route: [u64; 2],
    /// The packet's number, packets of a flow, a batch's number, or the flow's receiver.
    seq: u32,
    /// Kbps, or bytes of a packet.
    word: u32,
    kind: u8,
    rlen: u8,
    rp: u8,
    weight: u8,
    priority: u8,
    number: u8,
    version: u8,
    tree: u8,
}

/// The kinds of packets, which Figure 6 calls types.
pub(super) mod kind {
    pub const DATA: u8 = 1;
    /// The last data packet of a message.
    pub const LAST: u8 = 2;
    pub const ANNOUNCE: u8 = 3;
    pub const FINISH: u8 = 4;
    pub const ASSIGN: u8 = 5;
    pub const DROPPED: u8 = 6;
    pub const PROBE: u8 = 7;
    pub const STATUS: u8 = 8;
    pub const DONE: u8 = 9;
    pub const RATE: u8 = 10;
    pub const DROPPED_ASSIGN: u8 = 11;
}

/// Bytes of a header that is none of Figure 6's.
pub(super) const WIRE_BYTES: usize = 32;

impl Data {
    #[inline]
    fn pack(self) -> Packed {
        let Data { last, rlen, route, seq, full } = self;
        let kind = if last { kind::LAST } else { kind::DATA };
        Packed { kind, rlen, route, seq, word: full, ..Packed::zeroed() }
    }
}

impl FlowState {
    #[inline]
    fn pack(self, kind: u8) -> Packed {
        let FlowState { dst, number, version, weight, priority, demand_kbps, tree, rp } = self;
        let (seq, word) = (dst.0, demand_kbps);
        Packed { kind, seq, word, number, version, weight, priority, tree, rp, ..Packed::zeroed() }
    }
}

impl Batch {
    #[inline]
    fn pack(self, kind: u8) -> Packed {
        Packed { kind, seq: self.number, tree: self.tree, ..Packed::zeroed() }
    }
}

impl node::Header for Header {
    type Packed = Packed;

    const LAYOUT: Layout = Layout { messages: LAYOUT };

    #[inline]
    fn pack(self) -> Packed {
        let of = |kind| Packed { kind, ..Packed::zeroed() };
        match self {
            Header::Data(data) => data.pack(),
            Header::Announce(state) => state.pack(kind::ANNOUNCE),
            Header::Finish(state) => state.pack(kind::FINISH),
            Header::Dropped(state) => state.pack(kind::DROPPED),
            Header::Assign(batch) => batch.pack(kind::ASSIGN),
            Header::DroppedAssign(batch) => batch.pack(kind::DROPPED_ASSIGN),
            Header::Rate(FlowRate { dst, number, kbps }) => Packed { seq: dst.0, number, word: kbps, ..of(kind::RATE) },
            Header::Probe { packets, from } => Packed { seq: packets, word: from, ..of(kind::PROBE) },
            Header::Status(Missing { first, packets }) => Packed { seq: first, route: packets, ..of(kind::STATUS) },
            Header::Done => of(kind::DONE),
        }
    }

    #[inline]
    fn unpack(packed: Packed) -> Header {
        let Packed { route, seq, word, kind, rlen, rp, weight, priority, number, version, tree } = packed;
        let dst = HostId(seq);
        let state = FlowState { dst, number, version, weight, priority, demand_kbps: word, tree, rp };
        let batch = Batch { number: seq, tree };
        match kind {
            kind::ANNOUNCE => Header::Announce(state),
            kind::FINISH => Header::Finish(state),
            kind::DROPPED => Header::Dropped(state),
            kind::ASSIGN => Header::Assign(batch),
            kind::DROPPED_ASSIGN => Header::DroppedAssign(batch),
            kind::RATE => Header::Rate(FlowRate { dst, number, kbps: word }),
            kind::PROBE => Header::Probe { packets: seq, from: word },
            kind::STATUS => Header::Status(Missing { first: seq, packets: route }),
            kind::DONE => Header::Done,
            _ => Header::Data(Data { last: kind == kind::LAST, rlen, route, seq, full: word }),
        }
    }

    fn emit(self, to: &mut Writer<'_>) {
        let Packed { route, seq, word, kind, rlen, rp, weight, priority, number, version, tree } = self.pack();
        for half in route {
            to.u64(half);
        }
        to.u32(seq);
        to.u32(word);
        to.bytes(&[kind, rlen, rp, weight, priority, number, version, tree]);
    }

    fn parse(from: &mut Reader<'_>) -> Result<Header, Malformed> {
        from.begin("R2C2 header: shorter than 32 bytes");
        let (route, seq, word) = ([from.u64()?, from.u64()?], from.u32()?, from.u32()?);
        let [kind, rlen, rp, weight, priority, number, version, tree] = from.array()?;
        if !(kind::DATA..=kind::DROPPED_ASSIGN).contains(&kind) {
            return Err(Malformed { what: "R2C2 type" });
        }
        let packed = Packed { route, seq, word, kind, rlen, rp, weight, priority, number, version, tree };
        Ok(Header::unpack(packed))
    }

    fn payload_offset(self) -> u64 {
        if let Header::Data(data) = self { u64::from(data.seq) * u64::from(data.full) } else { 0 }
    }

    fn emit_with(packet: &Packet, content: &[u8], to: &mut Writer<'_>) {
        travel::emit(packet, content, to);
    }

    fn parse_with(from: &mut Reader<'_>, packet: &mut Packet) -> Result<(), Malformed> {
        travel::parse(from, packet)
    }

    fn damage(packet: &mut Packet, bits: &[u32]) -> bool {
        travel::damage(packet, bits)
    }
}

/// Figure 6's type; the upper half of a broadcast's first byte is its version.
const TYPE: Bits = Bits::u8(0).bits(0, 4);
/// A route that is no packet's label: three bits a hop, and too many hops for 64 bits.
const LONG: Shown = Shown::OrZero(Bits::u8(1).within(COMPACT_MAX as u64 + 1, WIDE as u64 - 1));
const DATA_LAYOUT: &[Field] = &[
    Field::new("last", TYPE, Shown::Word(&[(kind::DATA as u64, "false"), (kind::LAST as u64, "true")])),
    Field::number("rlen", Bits::u8(1)),
    Field::new("route [", Bits::u64(27), LONG),
    Field::new("]", Bits::u64(19), LONG),
    Field::number("seq", Bits::u32(11)),
    Field::number("full", Bits::u16(35)),
];
const STATE_LAYOUT: &[Field] = &[
    Field::number("dst", Bits::u16(3)),
    Field::number("number", Bits::u8(9)),
    Field::number("version", Bits::u8(0).bits(4, 4)),
    Field::number("weight", Bits::u8(7)),
    Field::number("priority", Bits::u8(8)),
    Field::number("demand_kbps", Bits::u32(10)),
    Field::number("tree", Bits::u8(14)),
    Field::number("rp", Bits::u8(15)),
];
const BATCH_LAYOUT: &[Field] = &[Field::number("number", SEQ), Field::number("tree", Bits::u8(7))];
/// In a packet that is none of Figure 6's.
const SEQ: Bits = Bits::u32(24);

const fn message(name: &'static str, kind: u8, bytes: usize, fields: &'static [Field]) -> Message {
    Message::new(name, TYPE.are(kind as u64), bytes as u16, fields)
}

const LAYOUT: &[Message] = &[
    Message::new("Data", TYPE.within(kind::DATA as u64, kind::LAST as u64), DATA_BYTES as u16 + 2, DATA_LAYOUT),
    message("Announce", kind::ANNOUNCE, BROADCAST_BYTES, STATE_LAYOUT),
    message("Finish", kind::FINISH, BROADCAST_BYTES, STATE_LAYOUT),
    message("Dropped", kind::DROPPED, BROADCAST_BYTES, STATE_LAYOUT),
    message("Assign", kind::ASSIGN, OWN_BYTES, BATCH_LAYOUT),
    message("DroppedAssign", kind::DROPPED_ASSIGN, OWN_BYTES, BATCH_LAYOUT),
    message(
        "Rate",
        kind::RATE,
        OWN_BYTES,
        &[Field::number("dst", SEQ), Field::number("number", Bits::u8(5)), Field::number("kbps", Bits::u32(28))],
    ),
    message("Probe", kind::PROBE, OWN_BYTES, &[Field::number("packets", SEQ), Field::number("from", Bits::u32(28))]),
    message(
        "Status",
        kind::STATUS,
        OWN_BYTES,
        &[Field::number("first", SEQ), Field::number("packets [", Bits::u64(8)), Field::number("]", Bits::u64(16))],
    ),
    message("Done", kind::DONE, OWN_BYTES, &[]),
];

#[cfg(test)]
pub(super) mod tests;
