//! Room for a packet where memory is set aside: by a flow control for what must not be lost, or for the first classes.

use units::PortId;

use super::{Buffer, Kept, Switch};
use crate::Packet;
use crate::link::Share;
use crate::packet::CLASSES;

impl Switch {
    /// Whether a packet fits into the part of the memory that a flow control leaves to its class.
    #[inline(never)]
    pub(super) fn fits_share(&self, share: Share, out: PortId, packet: &Packet) -> bool {
        let port = &self.ports[out.index()];
        let bytes = u64::from(packet.wire_bytes);
        let memory = match self.settings.buffer {
            Buffer::PerPort { bytes } => bytes.get().saturating_mul(self.ports.len() as u64),
            Buffer::Shared { bytes, .. } => bytes.get(),
        };
        let free = memory.saturating_sub(self.used_bytes);
        let Share::Lossy { classes, kept_bytes } = share else { return bytes <= free };
        let free = free.saturating_sub(kept_bytes);
        let within = match self.settings.buffer {
            Buffer::PerPort { bytes: max } => {
                let lossy = (0..CLASSES as u8).filter(|class| classes >> class & 1 == 1);
                lossy.map(|class| u64::from(port.class_bytes(class))).sum::<u64>() + bytes <= max.get()
            }
            Buffer::Shared { alpha, .. } => {
                let queue = u64::from(port.class_bytes(packet.class)) + bytes;
                alpha.is_none_or(|alpha| queue as f64 <= alpha * free as f64)
            }
        };
        bytes <= free && within
    }

    /// Whether a packet fits beside the reserved bytes.
    #[inline(never)]
    pub(super) fn fits_beside(&self, kept: &Kept, out: PortId, packet: &Packet) -> bool {
        let port = &self.ports[out.index()];
        let bytes = u64::from(packet.wire_bytes);
        let times = kept.room.times(packet.class);
        match self.settings.buffer {
            Buffer::PerPort { bytes: max } => {
                let kept = times * kept.room.port_bytes[out.index()];
                u64::from(port.queued_bytes()) + bytes + kept <= max.get()
            }
            Buffer::Shared { bytes: max, alpha } => {
                let kept = times * kept.shared_bytes;
                let free = max.get().saturating_sub(self.used_bytes).saturating_sub(kept);
                let queue = u64::from(port.class_bytes(packet.class)) + bytes;
                bytes <= free && (times == 0 || alpha.is_none_or(|alpha| queue as f64 <= alpha * free as f64))
            }
        }
    }
}
