//! In-band network telemetry: what each switch on a packet's path reports about the packet's output port (HPCC, SIGCOMM
//! 2019, section 3.1 and Figure 7).
//!
//! A packet that asks for it is flagged [`TELEMETRY`](crate::packet::flags::TELEMETRY). Its record is kept beside the
//! pool's slots and costs nothing where no packet asks. An answer carries the record of the packet that it answers
//! under the same flag, and switches leave it as it is.

use units::{PortId, Rate, SwitchId, Time};

use crate::wire::{Malformed, Reader, Writer};

/// Most hops of a record. Later hops report nothing.
pub const HOPS_MAX: usize = 8;

/// Bytes of a hop on the wire: link rate, time, bytes sent and queue length in 64 bits.
pub const HOP_BYTES: u16 = 8;

/// Bytes of a record besides its hops: the number of hops and the path id.
pub const BASE_BYTES: u16 = 2;

/// The telemetry of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, node::State)]
pub struct Telemetry {
    #[state(part(&mut self.hops[..usize::from(self.count)]))]
    hops: [HopRecord; HOPS_MAX],
    count: u8,
    path: u16,
    echo: bool,
}

/// A switch's report about a port, rounded down to the units of the wire format: nanoseconds, 128 B sent, 80 B queued.
/// Only the difference to a later record of the same port is ever used, so times and counters may move: times by the
/// clock, and the counter of a port by as much as the port's own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, node::State)]
pub struct HopRecord {
    /// Rate of the port's link.
    pub rate: Rate,
    /// When the packet began to leave.
    pub at: Time,
    /// Bytes that had left by the port before the packet.
    #[state(turn_at(self.place, SENT))]
    pub sent_bytes: u64,
    /// Bytes that it left behind in its queue.
    pub queue_bytes: u32,
    /// Whose report it is, for who goes over the state of a network ([`Walk::place`](crate::Walk::place)). It is in no
    /// wire format, and 0 where it is not known.
    pub place: u32,
}

/// The name of what ports tell: bytes sent.
pub(crate) const SENT: &str = "what a port tells of its bytes";
/// To how many bytes they are rounded.
pub(crate) const SENT_UNIT: u64 = 128;

impl HopRecord {
    /// A report in the units of the wire format.
    pub fn new(rate: Rate, at: Time, sent_bytes: u64, queue_bytes: u32) -> HopRecord {
        HopRecord {
            rate,
            at: Time::from_ns(at.ps() / 1_000),
            sent_bytes: sent_bytes / SENT_UNIT * SENT_UNIT,
            queue_bytes: queue_bytes / 80 * 80,
            place: 0,
        }
    }

    /// The same, of this port.
    pub(crate) fn of(self, switch: SwitchId, port: PortId) -> HopRecord {
        HopRecord { place: crate::Walk::place(switch.0, Some(port.0)), ..self }
    }
}

impl Telemetry {
    /// The hops, first one first.
    pub fn hops(&self) -> &[HopRecord] {
        &self.hops[..usize::from(self.count)]
    }

    /// Path id: the exclusive or of 12 bits of the ids of the switches.
    pub fn path(&self) -> u16 {
        self.path
    }

    /// Adds a switch's report, unless the packet is an answer.
    pub fn push(&mut self, switch: SwitchId, hop: HopRecord) {
        if self.echo {
            return;
        }
        self.path ^= (switch.0 & 0xFFF) as u16;
        if let Some(place) = self.hops.get_mut(usize::from(self.count)) {
            *place = hop;
            self.count += 1;
        }
    }

    /// The record as an answer carries it.
    pub fn echo(self) -> Telemetry {
        Telemetry { echo: true, ..self }
    }

    /// Appends the exact record, for a driver that hands packets between processes.
    pub fn emit(&self, to: &mut Writer<'_>) {
        to.u8(self.count);
        to.u8(u8::from(self.echo));
        to.u16(self.path);
        for hop in self.hops() {
            to.u64(hop.rate.bps());
            to.u64(hop.at.ps());
            to.u64(hop.sent_bytes);
            to.u64(u64::from(hop.queue_bytes));
        }
    }

    /// Reads it back.
    pub fn parse(from: &mut Reader<'_>) -> Result<Telemetry, Malformed> {
        from.begin("telemetry");
        let (count, echo, path) = (from.u8()?, from.u8()?, from.u16()?);
        if usize::from(count) > HOPS_MAX {
            return Err(Malformed { what: "telemetry: number of hops" });
        }
        if echo > 1 {
            return Err(Malformed { what: "telemetry: echo is neither 0 nor 1" });
        }
        let mut telemetry = Telemetry { count, path, echo: echo == 1, ..Telemetry::default() };
        for hop in &mut telemetry.hops[..usize::from(count)] {
            let (rate, at, sent_bytes) = (Rate::from_bps(from.u64()?), Time::from_ps(from.u64()?), from.u64()?);
            let queue_bytes =
                u32::try_from(from.u64()?).map_err(|_| Malformed { what: "telemetry: bytes in a queue" })?;
            *hop = HopRecord { rate, at, sent_bytes, queue_bytes, place: 0 };
        }
        Ok(telemetry)
    }
}

#[cfg(test)]
mod tests;
