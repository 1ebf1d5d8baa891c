//! Control packets between hypervisors.

use bytemuck::{Pod, Zeroable};
use node::packet::Malformed;

/// The header of every control packet. It carries totals and not changes, so a packet may be lost: the next makes up
/// for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Header {
    /// [`kind`].
    pub kind: u64,
    /// Report: the receiver's guarantee for the pair, in bps. Count: 0.
    pub guarantee: u64,
    /// Report: signs of congestion (marks and losses) that the receiver has seen on the pair. Count: VM packets that
    /// the sender has sent on it. Both are totals since the beginning.
    pub count: u64,
}

/// The kinds of control packets.
pub mod kind {
    /// From the receiver's hypervisor to the sender's.
    pub const REPORT: u64 = 1;
    /// From the sender's hypervisor to the receiver's.
    pub const COUNT: u64 = 2;
}

const WIRE_BYTES: usize = 17;

impl node::Header for Header {
    fn emit(&self, out: &mut Vec<u8>) {
        out.push(self.kind as u8);
        out.extend_from_slice(&self.guarantee.to_be_bytes());
        out.extend_from_slice(&self.count.to_be_bytes());
    }

    fn parse(bytes: &[u8]) -> Result<(Header, usize), Malformed> {
        let Some((&[kind, ref words @ ..], _)) = bytes.split_first_chunk::<WIRE_BYTES>() else {
            return Err(Malformed { what: "ElasticSwitch header: shorter than 17 bytes" });
        };
        let kind = u64::from(kind);
        if kind != kind::REPORT && kind != kind::COUNT {
            return Err(Malformed { what: "ElasticSwitch kind" });
        }
        let word = |at: usize| words[at..at + 8].iter().fold(0, |word, &byte| word << 8 | u64::from(byte));
        Ok((Header { kind, guarantee: word(0), count: word(8) }, WIRE_BYTES))
    }

    fn payload_offset(&self) -> u64 {
        0
    }
}

#[cfg(test)]
mod tests {
    use node::Header as _;

    use super::*;

    proptest::proptest! {
        #[test]
        fn headers_survive_the_wire(kind in 1u64..3, guarantee: u64, count: u64, noise: Vec<u8>) {
            let header = Header { kind, guarantee, count };
            let mut wire = Vec::new();
            header.emit(&mut wire);
            proptest::prop_assert_eq!(Header::parse(&wire), Ok((header, WIRE_BYTES)));
            proptest::prop_assert!(Header::parse(&wire[..WIRE_BYTES - 1]).is_err());
            let _ = Header::parse(&noise);
        }
    }

    #[test]
    fn an_unknown_kind_is_refused() {
        assert_eq!(Header::parse(&[3; WIRE_BYTES]), Err(Malformed { what: "ElasticSwitch kind" }));
    }
}
