//! The state of an AQ in a switch: 15 bytes (section 5.5).
//!
//! | bytes | field | |
//! |---|---|---|
//! | 0-3 | AQ ID | as packets carry it; 0 is an empty row |
//! | 4-6 | AQ rate | [`AqRate`] |
//! | 7-9 | AQ gap | bytes |
//! | 10-12 | AQ last_time | on the clock of the rate |
//! | 13-14 | AQ limit, CC fields | number of a [`Policy`](super::Policy) |
//!
//! The paper gives the first two sizes and the sum. Gap, last_time and the limit and CC fields of Table 1 share the
//! eight bytes that remain. Gap and last_time need three bytes each to be exact, and two bytes can't hold limit,
//! threshold and ramp. So the row holds the number of a policy, which is stored once for all AQs with the same values,
//! like a P4 action profile.

use super::{AqId, AqRate, Gap};

/// One AQ, packed; all numbers little-endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq, node::Saved)]
#[repr(transparent)]
pub struct Row([u8; 15]);

const _: () = assert!(size_of::<Row>() == 15 && align_of::<Row>() == 1);

impl Row {
    /// No AQ.
    pub const EMPTY: Row = Row([0; 15]);

    /// Packs the fields of an AQ.
    pub fn new(id: AqId, rate: AqRate, gap: Gap, policy: u16) -> Row {
        let mut row = Row::EMPTY;
        row.0[..4].copy_from_slice(&id.tag().to_le_bytes());
        row.0[4..7].copy_from_slice(&rate.code().to_le_bytes()[..3]);
        row.0[13..].copy_from_slice(&policy.to_le_bytes());
        row.set_gap(gap);
        row
    }

    /// The id as in a packet; 0 for an empty row.
    #[inline]
    pub fn tag(&self) -> u32 {
        self.low() as u32
    }

    /// R.
    #[inline]
    pub fn rate(&self) -> AqRate {
        AqRate::from_code((self.low() >> 32) as u32)
    }

    /// A and when it was computed.
    #[inline]
    pub fn gap(&self) -> Gap {
        let high = self.high();
        Gap { bytes: high as u32 & 0xFF_FFFF, last: (high >> 24) as u32 & 0xFF_FFFF }
    }

    /// Number of its policy.
    #[inline]
    pub fn policy(&self) -> u16 {
        (self.high() >> 48) as u16
    }

    /// Replaces A and its time.
    #[inline]
    pub fn set_gap(&mut self, gap: Gap) {
        let high = self.high() & 0xFFFF << 48 | u64::from(gap.last) << 24 | u64::from(gap.bytes);
        self.0[7..].copy_from_slice(&high.to_le_bytes());
    }

    /// Bytes 0 to 7.
    #[inline]
    fn low(&self) -> u64 {
        u64::from_le_bytes(self.0[..8].try_into().expect("eight bytes"))
    }

    /// Bytes 7 to 14.
    #[inline]
    fn high(&self) -> u64 {
        u64::from_le_bytes(self.0[7..].try_into().expect("eight bytes"))
    }
}

#[cfg(test)]
mod tests;
