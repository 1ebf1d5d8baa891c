use units::{Duration, Time};

use crate::part::SwitchSlot;

/// Samples of a part's queues and links at fixed intervals.
#[derive(Default)]
pub(crate) struct Samples {
    interval: Duration,
    next: Time,
    /// Per sample and switch: what waits.
    pub queues: Vec<QueueSample>,
    /// Per sample: bytes that switch ports have begun to send since the last one, by kind of hop.
    pub sent: Vec<SentSample>,
    sent_before: [u64; 3],
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct QueueSample {
    pub at: Time,
    pub switch: u32,
    pub used_bytes: u64,
    pub longest_bytes: u32,
    /// At all ports of a kind together: up, down, to hosts.
    pub waiting_bytes: [u64; 3],
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct SentSample {
    pub at: Time,
    pub bytes: [u64; 3],
}

impl Samples {
    pub fn new(interval: Duration) -> Samples {
        let next = if interval == Duration::ZERO { Time::MAX } else { Time::ZERO + interval };
        Samples { interval, next, ..Samples::default() }
    }

    pub fn next_at(&self) -> Time {
        if self.interval == Duration::ZERO { Time::MAX } else { self.next }
    }

    pub fn take(&mut self, now: Time, switches: &[SwitchSlot]) {
        let mut sent = [0; 3];
        for slot in switches {
            let (mut longest_bytes, mut waiting_bytes) = (0, [0; 3]);
            for port in slot.switch.ports() {
                longest_bytes = longest_bytes.max(port.queued_bytes());
                waiting_bytes[port.hop() as usize] += u64::from(port.queued_bytes());
                sent[port.hop() as usize] += port.stats.sent_bytes;
            }
            let used_bytes = slot.switch.used_bytes();
            self.queues.push(QueueSample { at: now, switch: slot.id, used_bytes, longest_bytes, waiting_bytes });
        }
        let bytes = std::array::from_fn(|hop| sent[hop] - self.sent_before[hop]);
        self.sent.push(SentSample { at: now, bytes });
        self.sent_before = sent;
        self.next = now + self.interval;
    }
}
