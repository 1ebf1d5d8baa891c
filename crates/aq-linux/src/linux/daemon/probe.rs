//! Whether a program runs on every packet: its bytes beside the device's own.
//!
//! The program counts what passes it, the device what it sends or has received. Bytes that the program passed may be
//! dropped before the device, never the other way round. So if the device has more than the program, the rest did not
//! come by it. Bytes that lay in the queue between them when counting began may come late; beyond that, each byte
//! counts as escaped. A driver may count a few bytes more of each packet, such as a checksum or a tag.

use super::super::netlink::Count;

/// Bytes of a packet that a driver may count and the program not.
const EXTRA: u64 = 24;
/// Bytes that may be on the way beside those in the queue.
const AMPLE: u64 = 1 << 20;

/// One position of a device, from look to look.
#[derive(Clone, Copy, Debug)]
pub struct Probe {
    device: Count,
    program: u64,
    excess: u64,
}

impl Probe {
    /// Begins with what both have counted.
    pub fn new(device: Count, program: u64) -> Probe {
        Probe { device, program, excess: 0 }
    }

    /// Takes the counts since, and returns the bytes that escaped. `queue` is what the device's queue holds.
    pub fn look(&mut self, device: Count, program: u64, queue: u64) -> u64 {
        // A counter that runs backwards is another one.
        if device.bytes < self.device.bytes || device.packets < self.device.packets || program < self.program {
            *self = Probe::new(device, program);
            return 0;
        }
        let (bytes, packets) = (device.bytes - self.device.bytes, device.packets - self.device.packets);
        let seen = program - self.program;
        let room = 2 * queue + AMPLE;
        let excess = (self.excess + bytes.saturating_sub(EXTRA * packets)).saturating_sub(seen);
        let escaped = excess.saturating_sub(room);
        *self = Probe { device, program, excess: excess - escaped };
        escaped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(packets: u64) -> Count {
        Count { packets, bytes: packets * 1_514 }
    }

    #[test]
    fn what_a_queue_held_did_not_escape() {
        let mut probe = Probe::new(count(0), 0);
        // 1.5 MB leave that the program passed before counting began, while it passes nothing new.
        assert_eq!(probe.look(count(990), 0, 1_500_000), 0);
        // Then both count the same, with 4 bytes of checksum for each packet.
        for second in 1..100 {
            let packets = 990 + second * 1_000;
            let device = Count { packets, bytes: packets * 1_518 };
            assert_eq!(probe.look(device, second * 1_000 * 1_514, 1_500_000), 0, "{second}");
        }
    }

    #[test]
    fn what_the_program_never_saw_escaped() {
        let (mut probe, queue) = (Probe::new(count(0), 0), 100_000);
        let room = 2 * queue + AMPLE;
        // Half of all bytes pass it by.
        let mut escaped = 0;
        for second in 1..=10 {
            escaped += probe.look(count(second * 2_000), second * 1_000 * 1_514, queue);
        }
        // All but the room and what a driver may add.
        assert_eq!(escaped, 10 * (2_000 * (1_514 - EXTRA) - 1_000 * 1_514) - room);
        // Packets that are dropped behind the program take nothing back, but count against later ones.
        assert_eq!(probe.look(count(20_000), 10_000 * 1_514 + 10_000_000, queue), 0);
    }

    #[test]
    fn counters_that_begin_again_are_others() {
        let mut probe = Probe::new(count(1_000_000), 7);
        assert_eq!(probe.look(count(5_000), 7, 0), 0);
        assert_eq!(probe.look(count(10_000), 8, 0), 5_000 * (1_514 - EXTRA) - 1 - AMPLE);
    }
}
