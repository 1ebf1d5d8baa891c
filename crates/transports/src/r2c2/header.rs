//! What R2C2's packets carry while nodes have them in hand. On the wire they are Figure 6's bytes
//! ([`wire`](super::wire)), or what stands for them ([`travel`](super::travel)).

use bytemuck::{Pod, Zeroable};
use node::Packet;
use node::wire::{Malformed, Reader, Writer};

use super::travel;

/// The header of every packet. Which fields mean something depends on the kind; the others are 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Header {
    /// Data on a long way: the route, three bits a hop, first hop lowest. Status: which of the 128 packets from `seq`
    /// on are missing.
    pub route: [u64; 2],
    /// Data: the packet's number. Announcements: the flow's destination. Assignments: the batch's number. Probe: how
    /// many packets it has. Status: the first that is missing. Rates: the flow's destination.
    pub seq: u32,
    /// Announcements: the demand in Kbps, [`UNLIMITED`] without one. Rates: the rate in Kbps. Data: message
    /// bytes in each packet but the last.
    pub word: u32,
    /// [`kind`].
    pub kind: u8,
    /// Data: hops of the route, with [`WIDE`](super::wire::WIDE) where each has a byte. It is in `route` if it has more
    /// than 21 hops, and in the packet's label otherwise.
    pub rlen: u8,
    /// The routing protocol's number.
    pub rp: u8,
    /// The flow's weight.
    pub weight: u8,
    /// The flow's priority.
    pub priority: u8,
    /// Which of the flows between its source and its destination it is.
    pub number: u8,
    /// How often its source has announced it, modulo 16: the later counts.
    pub version: u8,
    /// The broadcast tree.
    pub tree: u8,
}

/// No demand is known: the flow takes what it can have.
pub const UNLIMITED: u32 = u32::MAX;

/// The kinds of packets.
pub mod kind {
    /// A part of the message.
    pub const DATA: u8 = 1;
    /// Its last part.
    pub const LAST: u8 = 2;
    /// Broadcast: a flow has started, or something about it has changed, or it is still there.
    pub const ANNOUNCE: u8 = 3;
    /// Broadcast: a flow has finished.
    pub const FINISH: u8 = 4;
    /// Broadcast: flows shall use other routing protocols.
    pub const ASSIGN: u8 = 5;
    /// To the sender of a broadcast about a flow, from the node that has dropped it.
    pub const DROPPED: u8 = 6;
    /// Sender to receiver: everything has been sent; is it there?
    pub const PROBE: u8 = 7;
    /// Receiver to sender: what is missing.
    pub const STATUS: u8 = 8;
    /// Receiver to sender: every byte is here.
    pub const DONE: u8 = 9;
    /// Controller to a sender, in the centralised design: the rate of one of its flows.
    pub const RATES: u8 = 10;
    /// To the sender of assignments, from the node that has dropped them.
    pub const DROPPED_ASSIGN: u8 = 11;
}

/// Bytes of a header that is none of Figure 6's.
pub(super) const WIRE_BYTES: usize = 32;

impl Header {
    /// A header of this kind, all else 0.
    pub fn of(kind: u8) -> Header {
        Header { kind, ..Header::zeroed() }
    }
}

impl node::Header for Header {
    type Packed = Header;

    #[inline]
    fn pack(self) -> Header {
        self
    }

    #[inline]
    fn unpack(packed: Header) -> Header {
        packed
    }

    fn emit(self, to: &mut Writer<'_>) {
        let Header { route, seq, word, kind, rlen, rp, weight, priority, number, version, tree } = self;
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
        Ok(Header { route, seq, word, kind, rlen, rp, weight, priority, number, version, tree })
    }

    fn payload_offset(self) -> u64 {
        u64::from(self.seq) * u64::from(self.word)
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

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn headers_survive_the_wire(words: [u64; 2], halves: [u32; 2], bytes: [u8; 7], kind in 1u8..12,
            noise: Vec<u8>) {
            let [rlen, rp, weight, priority, number, version, tree] = bytes;
            let (route, [seq, word]) = (words, halves);
            let header = Header { route, seq, word, kind, rlen, rp, weight, priority, number, version, tree };
            testing::check_header(header, &noise);
        }
    }

    #[test]
    fn bytes_stay_what_they_are() {
        let header = Header { route: [1, 2], seq: 3, word: 4, rlen: 5, tree: 6, ..Header::of(kind::PROBE) };
        let (words, halves) = ([1u64, 2].map(u64::to_be_bytes).concat(), [3u32, 4].map(u32::to_be_bytes).concat());
        let bytes = [&words[..], &halves, &[7, 5, 0, 0, 0, 0, 0, 6]].concat();
        assert_eq!(testing::check_header(header, &[]), bytes);
    }
}
