//! What the searching node broadcasts (section 3.4): "four bytes for the flow identifier and one byte for the routing
//! protocol per each flow", so that up to 300 are advertised in a single packet of 1,500 bytes.

use std::sync::{Arc, Mutex, PoisonError};

use node::wire::{Malformed, Reader, Writer};
use rustc_hash::FxHashMap;
use units::HostId;

/// A flow's new routing protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// The flow's identifier in broadcasts.
    pub flow: u32,
    /// The protocol's code.
    pub protocol: u8,
}

/// Bytes of an assignment on the wire.
pub const WIRE_BYTES: usize = 5;

/// The most bytes of assignments in a packet.
pub const PACKET_BYTES_MAX: usize = 1_500;

/// The most assignments in a packet.
pub const PER_PACKET: usize = PACKET_BYTES_MAX / WIRE_BYTES;

/// The packets that carry these assignments, each full but the last, of at most `bytes_max` and [`PACKET_BYTES_MAX`]
/// bytes.
pub fn pack(assignments: &[Assignment], bytes_max: usize) -> Vec<Vec<u8>> {
    let packet = |some: &[Assignment]| {
        let mut bytes = Vec::with_capacity(some.len() * WIRE_BYTES);
        let mut to = Writer::new(&mut bytes);
        for assignment in some {
            to.u32(assignment.flow);
            to.u8(assignment.protocol);
        }
        bytes
    };
    let per_packet = (bytes_max / WIRE_BYTES).clamp(1, PER_PACKET);
    assignments.chunks(per_packet).map(packet).collect()
}

/// What the packets of assignments of a run say. A simulated packet has 32 bytes of header and no payload: one that
/// carries assignments names its batch by its transport, its sender, and a number of that sender's, and whoever it
/// reaches reads the batch here.
///
/// So the bytes are the wire's ([`pack`], [`parse`]) and count in the packet's size, and lie in one place of the run
/// instead of in each copy of the packet. A [`Packet`](node::Packet) is a full cache line and is copied at every hop of
/// every scheme; what travels beside it (telemetry) has room for eight hops, and switches that copy broadcasts do not
/// copy it. A body for this one kind of packet, a search in 10 ms, would have all others ask for theirs at each hop.
/// The live driver runs all nodes in one process, so the table is there too.
#[derive(Debug, Default)]
pub struct Batches(Mutex<Named>);

type Named = FxHashMap<(u8, HostId, u32), Arc<[u8]>>;

impl Batches {
    /// A node is going to send a batch.
    pub fn put(&self, name: (u8, HostId, u32), bytes: Vec<u8>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(name, bytes.into());
    }

    /// A batch that has been sent.
    pub fn get(&self, name: (u8, HostId, u32)) -> Option<Arc<[u8]>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&name).cloned()
    }
}

/// The assignments that a packet carries. What a protocol's code means is for the reader to know.
///
/// # Errors
/// A packet that is empty, too long, or holds half an assignment.
pub fn parse(packet: &[u8]) -> Result<Vec<Assignment>, Malformed> {
    if packet.is_empty() || packet.len() > PACKET_BYTES_MAX {
        return Err(Malformed { what: "R2C2 assignments: not from 1 to 1,500 bytes" });
    }
    let mut from = Reader::new(packet, "R2C2 assignments: not a multiple of 5 bytes");
    let one = |_| Ok(Assignment { flow: from.u32()?, protocol: from.u8()? });
    (0..packet.len().div_ceil(WIRE_BYTES)).map(one).collect()
}

#[cfg(test)]
mod tests;
