//! The two packet formats of Figure 6, to the bit, in network byte order.
//!
//! The text gives the fields, 16-bit addresses, 32-bit flow identifiers (section 3.4), the 128-bit route with three
//! bits a hop, demand in Kbps up to 4 Tbps (32 bits), and 16 bytes for a broadcast; how wide the rest is stands in the
//! figure alone. Decided here:
//!
//! - Data: type 8, rlen 8, ridx 8, flow 32, src 16, dst 16, seq 32, checksum 16, plen 16, route 128: 35 bytes, and the
//!   payload.
//! - Broadcast: type 8, src 16, dst 16, checksum 16, weight 8, priority 8, demand 32, tree 8, rp 8. These are 15 bytes
//!   of the 16; the last tells the flows between two nodes apart. Versions take the upper half of the type: sixteen in
//!   turn.
//!
//! The checksum is the Internet's (RFC 1071) over the whole packet with ridx taken for 0, since every hop counts it up.
//!
//! This is what travels (`travel`): sizes in the simulator are these, the live driver's frames hold
//! these bytes, and where a link damages bits it is this checksum that finds them.

use node::wire::{Malformed, Reader, Writer};

use super::header::kind;
use super::route::{HOPS_MAX, WIDE_MAX};

/// Bytes of a data packet before its payload.
pub const DATA_BYTES: usize = 35;
/// Bytes of a broadcast.
pub const BROADCAST_BYTES: usize = 16;

/// What precedes the payload of a data packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Data {
    /// It is its message's last: that is in the type.
    pub last: bool,
    /// Hops of the route, with [`WIDE`] where each has a byte.
    pub rlen: u8,
    /// How many have been taken.
    pub ridx: u8,
    /// The flow.
    pub flow: u32,
    /// Its sender.
    pub src: u16,
    /// Its receiver.
    pub dst: u16,
    /// The packet's number.
    pub seq: u32,
    /// Bytes of payload.
    pub plen: u16,
    /// Forwarding links, three bits each (eight with [`WIDE`]), the first lowest.
    pub route: u128,
}

/// In rlen: switches have more than eight ports, and a hop takes a byte.
pub const WIDE: u8 = 0x80;

/// What a broadcast says of its flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Says {
    /// It is there.
    Announce,
    /// It has finished.
    Finish,
    /// A broadcast about it was dropped.
    Dropped,
}

/// A broadcast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broadcast {
    /// What it says of its flow: 4 bits of the type.
    pub says: Says,
    /// Which announcement of the flow, modulo 16.
    pub version: u8,
    /// The flow's sender, which has sent this.
    pub src: u16,
    /// Its receiver.
    pub dst: u16,
    /// Its weight.
    pub weight: u8,
    /// Its priority.
    pub priority: u8,
    /// Which of the flows between the two.
    pub number: u8,
    /// Its demand in Kbps.
    pub demand_kbps: u32,
    /// The broadcast tree.
    pub tree: u8,
    /// The routing protocol.
    pub rp: u8,
}

impl Data {
    /// What precedes `payload`. `plen` is the payload's length whatever the field says.
    pub fn emit(&self, payload: &[u8]) -> Vec<u8> {
        let mut head = Vec::with_capacity(DATA_BYTES);
        let mut to = Writer::new(&mut head);
        let kind = if self.last { kind::LAST } else { kind::DATA };
        to.bytes(&[kind, self.rlen, self.ridx]);
        to.u32(self.flow);
        to.u16(self.src);
        to.u16(self.dst);
        to.u32(self.seq);
        to.u16(0);
        to.u16(payload.len() as u16);
        to.u128(self.route);
        let sum = data_checksum(&head, payload);
        head[DATA_CHECKSUM..DATA_CHECKSUM + 2].copy_from_slice(&sum.to_be_bytes());
        head
    }

    /// Reads a packet back: what precedes the payload, and the payload.
    pub fn parse(bytes: &[u8]) -> Result<(Data, &[u8]), Malformed> {
        let mut from = Reader::new(bytes, "R2C2 data packet: shorter than 35 bytes");
        let [kind, rlen, ridx] = from.array()?;
        let (flow, src, dst, seq) = (from.u32()?, from.u16()?, from.u16()?, from.u32()?);
        let (sum, plen, route) = (from.u16()?, from.u16()?, from.u128()?);
        let payload = from.rest();
        let data = Data { last: kind == kind::LAST, rlen, ridx, flow, src, dst, seq, plen, route };
        if ![kind::DATA, kind::LAST].contains(&kind) {
            return Err(Malformed { what: "R2C2 data packet: type" });
        }
        let hops = rlen & !WIDE;
        let most = if rlen == hops { HOPS_MAX } else { WIDE_MAX };
        if usize::from(hops) > most || ridx > hops {
            return Err(Malformed { what: "R2C2 data packet: rlen or ridx" });
        }
        if usize::from(plen) != payload.len() {
            return Err(Malformed { what: "R2C2 data packet: plen" });
        }
        if sum != data_checksum(&bytes[..DATA_BYTES], payload) {
            return Err(Malformed { what: "R2C2 data packet: checksum" });
        }
        Ok((data, payload))
    }
}

impl Broadcast {
    /// Its sixteen bytes.
    pub fn emit(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(BROADCAST_BYTES);
        let mut to = Writer::new(&mut bytes);
        let kind = match self.says {
            Says::Announce => kind::ANNOUNCE,
            Says::Finish => kind::FINISH,
            Says::Dropped => kind::DROPPED,
        };
        to.u8(self.version << 4 | kind);
        to.u16(self.src);
        to.u16(self.dst);
        to.u16(0);
        to.bytes(&[self.weight, self.priority, self.number]);
        to.u32(self.demand_kbps);
        to.bytes(&[self.tree, self.rp]);
        let sum = checksum(bytes.iter().copied(), BROADCAST_CHECKSUM);
        bytes[BROADCAST_CHECKSUM..BROADCAST_CHECKSUM + 2].copy_from_slice(&sum.to_be_bytes());
        bytes
    }

    /// Reads one back.
    pub fn parse(bytes: &[u8]) -> Result<Broadcast, Malformed> {
        let mut from = Reader::new(bytes, "R2C2 broadcast: not 16 bytes");
        let (first, src, dst, sum) = (from.u8()?, from.u16()?, from.u16()?, from.u16()?);
        let ([weight, priority, number], demand_kbps) = (from.array()?, from.u32()?);
        let [tree, rp] = from.array()?;
        if !from.rest().is_empty() {
            return Err(Malformed { what: "R2C2 broadcast: not 16 bytes" });
        }
        if sum != checksum(bytes.iter().copied(), BROADCAST_CHECKSUM) {
            return Err(Malformed { what: "R2C2 broadcast: checksum" });
        }
        let version = first >> 4;
        let says = match first & 15 {
            kind::ANNOUNCE => Says::Announce,
            kind::FINISH => Says::Finish,
            kind::DROPPED => Says::Dropped,
            _ => return Err(Malformed { what: "R2C2 broadcast: type" }),
        };
        Ok(Broadcast { says, version, src, dst, weight, priority, number, demand_kbps, tree, rp })
    }
}

const DATA_CHECKSUM: usize = 15;
const BROADCAST_CHECKSUM: usize = 5;
const RIDX: usize = 2;

fn data_checksum(head: &[u8], payload: &[u8]) -> u16 {
    let head = head.iter().enumerate().map(|(at, &byte)| if at == RIDX { 0 } else { byte });
    checksum(head.chain(payload.iter().copied()), DATA_CHECKSUM)
}

/// RFC 1071's checksum of all bytes but the two at `at`.
pub(super) fn checksum(bytes: impl Iterator<Item = u8>, at: usize) -> u16 {
    // As 32 bits, folded at the end: a packet has fewer than 2^16 words.
    let word = |(place, byte): (usize, u8)| match place {
        place if place == at || place == at + 1 => 0,
        place if place % 2 == 0 => u32::from(byte) << 8,
        _ => u32::from(byte),
    };
    let sum: u32 = bytes.enumerate().map(word).sum();
    let folded = (sum & 0xFFFF) + (sum >> 16);
    !((folded & 0xFFFF) + (folded >> 16)) as u16
}

#[cfg(test)]
mod tests;
