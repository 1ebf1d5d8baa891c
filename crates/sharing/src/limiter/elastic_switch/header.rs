//! Control packets between hypervisors.

use node::layout::{Bits, Field, Layout, Message, RATE};
use node::wire::{Malformed, Reader, Writer};
use units::Rate;

/// The content of a control packet. All of them say how things stand and not what has changed, so that one may be lost:
/// the next makes up for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, node::State)]
pub enum Header {
    /// From the receiver's hypervisor to the sender's.
    Report {
        /// The receiver's guarantee to the pair, from its hose.
        guarantee: Rate,
        /// Signs of congestion (marks and losses) that the receiver has seen on the pair since the beginning.
        signs: u64,
    },
    /// From the sender's hypervisor to the receiver's.
    Count {
        /// Packets of VMs that the sender has sent on the pair since the beginning.
        packets: u64,
    },
}

const REPORT: u8 = 1;
const COUNT: u8 = 2;

impl node::Header for Header {
    /// Kind, guarantee and count.
    type Packed = [u64; 3];

    const LAYOUT: Layout = Layout { messages: LAYOUT };

    #[inline]
    fn pack(self) -> [u64; 3] {
        match self {
            Header::Report { guarantee, signs } => [u64::from(REPORT), guarantee.bps(), signs],
            Header::Count { packets } => [u64::from(COUNT), 0, packets],
        }
    }

    #[inline]
    fn unpack([kind, guarantee, count]: [u64; 3]) -> Header {
        if kind == u64::from(REPORT) {
            Header::Report { guarantee: Rate::from_bps(guarantee), signs: count }
        } else {
            Header::Count { packets: count }
        }
    }

    fn emit(self, to: &mut Writer<'_>) {
        let [kind, guarantee, count] = self.pack();
        to.u8(kind as u8);
        to.u64(guarantee);
        to.u64(count);
    }

    fn parse(from: &mut Reader<'_>) -> Result<Header, Malformed> {
        from.begin("ElasticSwitch header: shorter than 17 bytes");
        let (kind, guarantee, count) = (from.u8()?, from.u64()?, from.u64()?);
        if kind != REPORT && kind != COUNT {
            return Err(Malformed { what: "ElasticSwitch kind" });
        }
        Ok(Header::unpack([u64::from(kind), guarantee, count]))
    }
}

const COUNTED: Bits = Bits::u64(9);

const LAYOUT: &[Message] = &[
    Message::new(
        "Report",
        Bits::u8(0).are(REPORT as u64),
        17,
        &[Field::new("guarantee", Bits::u64(1), RATE), Field::number("signs", COUNTED)],
    ),
    Message::new("Count", Bits::u8(0).are(COUNT as u64), 17, &[Field::number("packets", COUNTED)]),
];

#[cfg(test)]
mod tests;
