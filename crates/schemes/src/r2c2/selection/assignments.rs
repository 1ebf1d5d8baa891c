//! What the searching node broadcasts (section 3.4): "four bytes for the flow identifier and one byte for the routing
//! protocol per each flow", so that up to 300 are advertised in a single packet of 1,500 bytes.

use node::packet::Malformed;

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

/// The packets that carry these assignments, each full but the last.
pub fn pack(assignments: &[Assignment]) -> Vec<Vec<u8>> {
    let packet = |some: &[Assignment]| {
        let mut bytes = Vec::with_capacity(some.len() * WIRE_BYTES);
        for assignment in some {
            bytes.extend_from_slice(&assignment.flow.to_be_bytes());
            bytes.push(assignment.protocol);
        }
        bytes
    };
    assignments.chunks(PER_PACKET).map(packet).collect()
}

/// The assignments that a packet carries. What a protocol's code means is for the reader to know.
///
/// # Errors
/// A packet that is empty, too long, or holds half an assignment.
pub fn parse(packet: &[u8]) -> Result<Vec<Assignment>, Malformed> {
    if packet.is_empty() || packet.len() > PACKET_BYTES_MAX {
        return Err(Malformed { what: "R2C2 assignments: not from 1 to 1,500 bytes" });
    }
    let (whole, rest) = packet.as_chunks::<WIRE_BYTES>();
    if !rest.is_empty() {
        return Err(Malformed { what: "R2C2 assignments: not a multiple of 5 bytes" });
    }
    let read =
        |&[a, b, c, d, protocol]: &[u8; WIRE_BYTES]| Assignment { flow: u32::from_be_bytes([a, b, c, d]), protocol };
    Ok(whole.iter().map(read).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn up_to_300_fit_in_a_packet_of_1500_bytes() {
        let sizes = |count: u32| {
            let some: Vec<Assignment> = (0..count).map(|flow| Assignment { flow, protocol: 1 }).collect();
            pack(&some).iter().map(Vec::len).collect::<Vec<_>>()
        };
        assert!(sizes(0).is_empty());
        assert_eq!(sizes(1), [5]);
        assert_eq!(sizes(300), [1_500]);
        assert_eq!(sizes(512), [1_500, 1_060]);
    }

    proptest::proptest! {
        #[test]
        fn assignments_survive_the_wire(pairs in proptest::collection::vec((0u32.., 0u8..), 0..700), noise: Vec<u8>) {
            let some: Vec<Assignment> =
                pairs.into_iter().map(|(flow, protocol)| Assignment { flow, protocol }).collect();
            let read: Result<Vec<_>, _> = pack(&some).iter().map(|packet| parse(packet)).collect();
            proptest::prop_assert_eq!(read.map(|packets| packets.concat()), Ok(some));
            if let Ok(read) = parse(&noise) {
                proptest::prop_assert_eq!(pack(&read), [noise]);
            }
        }
    }
}
