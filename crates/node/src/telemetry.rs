//! In-band network telemetry: what each switch on a packet's path reports about the packet's output port (HPCC, SIGCOMM
//! 2019, section 3.1 and Figure 7).
//!
//! A packet that asks for it is flagged [`TELEMETRY`](crate::packet::flags::TELEMETRY). Its record is kept beside the
//! pool's slots and costs nothing where no packet asks. An answer carries the record of the packet that it answers
//! under the same flag, and switches leave it as it is.

use units::{Rate, SwitchId, Time};

use crate::wire::{Malformed, Reader, Writer};

/// Most hops of a record. Later hops report nothing.
pub const HOPS_MAX: usize = 8;

/// Bytes of a hop on the wire: link rate, time, bytes sent and queue length in 64 bits.
pub const HOP_BYTES: u16 = 8;

/// Bytes of a record besides its hops: the number of hops and the path id.
pub const BASE_BYTES: u16 = 2;

/// The telemetry of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Telemetry {
    hops: [HopRecord; HOPS_MAX],
    count: u8,
    path: u16,
    echo: bool,
}

/// A switch's report about a port, rounded down to the units of the wire format: nanoseconds, 128 B sent, 80 B queued.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HopRecord {
    /// Rate of the port's link.
    pub rate: Rate,
    /// When the packet began to leave.
    pub at: Time,
    /// Bytes that had left by the port before the packet.
    pub sent_bytes: u64,
    /// Bytes that it left behind in its queue.
    pub queue_bytes: u32,
}

impl HopRecord {
    /// A report in the units of the wire format.
    pub fn new(rate: Rate, at: Time, sent_bytes: u64, queue_bytes: u32) -> HopRecord {
        HopRecord {
            rate,
            at: Time::from_ns(at.ps() / 1_000),
            sent_bytes: sent_bytes / 128 * 128,
            queue_bytes: queue_bytes / 80 * 80,
        }
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
            *hop = HopRecord { rate, at, sent_bytes, queue_bytes };
        }
        Ok(telemetry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_keeps_what_the_wire_can_tell_of_the_first_eight_hops() {
        let hop = HopRecord::new(Rate::from_gbps(100), Time::from_ps(12_345_678), 1_500, 3_000);
        assert_eq!((hop.at, hop.sent_bytes, hop.queue_bytes), (Time::from_ns(12_345), 1_408, 2_960));
        let mut telemetry = Telemetry::default();
        (0..10).for_each(|switch| telemetry.push(SwitchId(switch), hop));
        assert_eq!((telemetry.hops().len(), telemetry.path()), (8, (0..10).fold(0, |path, switch| path ^ switch)));
        let mut echo = telemetry.echo();
        echo.push(SwitchId(5), hop);
        assert_eq!((echo.hops(), echo.path()), (telemetry.hops(), telemetry.path()));
    }

    #[test]
    fn a_record_s_bytes_stay_what_they_are() {
        let mut telemetry = Telemetry::default();
        telemetry.push(
            SwitchId(0x123),
            HopRecord { rate: Rate::from_bps(1), at: Time::from_ps(2), sent_bytes: 3, queue_bytes: 4 },
        );
        let mut bytes = Vec::new();
        telemetry.echo().emit(&mut Writer::new(&mut bytes));
        let words = [1u64, 2, 3, 4].map(u64::to_be_bytes).concat();
        assert_eq!(bytes, [&[1, 1, 0x01, 0x23][..], &words].concat());
    }

    proptest::proptest! {
        #[test]
        fn records_survive_the_wire_and_noise_is_no_panic(
            hops in proptest::collection::vec(proptest::prelude::any::<(u64, u64, u64, u32)>(), 0..9),
            echo: bool,
            noise: Vec<u8>,
        ) {
            let mut telemetry = Telemetry::default();
            for (number, &(rate, at, sent, queue)) in hops.iter().enumerate() {
                let hop = HopRecord::new(Rate::from_bps(rate), Time::from_ps(at), sent, queue);
                telemetry.push(SwitchId(number as u32 * 77), hop);
            }
            let telemetry = if echo { telemetry.echo() } else { telemetry };
            let mut bytes = Vec::new();
            telemetry.emit(&mut Writer::new(&mut bytes));
            let whole = bytes.len();
            bytes.extend(&noise);
            let mut from = Reader::new(&bytes, "");
            proptest::prop_assert_eq!((Telemetry::parse(&mut from), from.rest()), (Ok(telemetry), &noise[..]));
            for cut in 0..whole {
                let told = Telemetry::parse(&mut Reader::new(&bytes[..cut], ""));
                proptest::prop_assert_eq!(told, Err(Malformed { what: "telemetry" }));
            }
            let _ = Telemetry::parse(&mut Reader::new(&noise, ""));
        }
    }
}
