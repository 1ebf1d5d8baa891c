//! A path for tests of both versions: a segment a microsecond, and ten in a round trip.

use units::{Duration, Rate, Time};

use crate::tcp::control::{Ack, RateSample};

pub(super) const MSS: u64 = 1000;

/// A segment a microsecond.
pub(super) const RATE: Rate = Rate::from_gbps(8);

/// The round trip of the path, in which ten segments fit.
pub(super) const RTT: Duration = Duration::from_us(10);

/// The delivery rate at this time, with so many segments in flight before; a round trip after their sending.
pub(super) fn sample(at_us: u64, in_flight: u64) -> RateSample {
    RateSample {
        rate: RATE,
        limited: false,
        delivered_bytes: at_us * MSS,
        delivered_before_bytes: at_us.saturating_sub(10) * MSS,
        in_flight_bytes: in_flight * MSS,
        lost_bytes: 0,
    }
}

/// An acknowledgement of one segment at this time, with so many in flight before.
pub(super) fn ack(at_us: u64, in_flight: u64) -> Ack {
    Ack {
        now: Time::from_us(at_us),
        rtt: Some(RTT),
        rate: Some(sample(at_us, in_flight)),
        in_flight_bytes: (in_flight - 1) * MSS,
        in_flight_before_bytes: in_flight * MSS,
        ..Ack::of(MSS)
    }
}
