//! Which physical queue of a port a flow is in.

use rustc_hash::FxHashMap;
use units::{Duration, Time};

/// As many queues as a port may have.
pub const QUEUES_MAX: u32 = 128;

/// The flows and queues of one egress port.
pub struct Assignment {
    queues: u32,
    flows: FxHashMap<u16, Entry>,
    /// Queues with packets, and queues that may not send, as bits.
    busy: u128,
    paused: u128,
    /// Where the search for an empty queue begins.
    turn: u32,
    /// Flows that were given an empty queue, and those that had to share.
    pub alone: u64,
    pub shared: u64,
}

/// A flow's entry in the flow table.
#[derive(Clone, Copy)]
struct Entry {
    queue: u8,
    packets: u32,
    /// When a packet of it last came or left.
    seen: Time,
}

impl Assignment {
    /// No flow in any of so many queues.
    pub fn new(queues: u32) -> Assignment {
        debug_assert!((1..=QUEUES_MAX).contains(&queues));
        Assignment { queues, flows: FxHashMap::default(), busy: 0, paused: 0, turn: 0, alone: 0, shared: 0 }
    }

    /// The queue for a packet of a flow that comes now: the one that it has, unless it has had no packet there for longer
    /// than `sticky`.
    #[inline]
    pub fn assign(&mut self, now: Time, vfid: u16, sticky: Duration) -> u32 {
        if let Some(entry) = self.flows.get_mut(&vfid)
            && (entry.packets > 0 || now.since(entry.seen) <= sticky)
        {
            entry.packets += 1;
            entry.seen = now;
            let queue = u32::from(entry.queue);
            self.busy |= 1 << queue;
            return queue;
        }
        let queue = self.choose(vfid);
        self.flows.insert(vfid, Entry { queue: queue as u8, packets: 1, seen: now });
        self.busy |= 1 << queue;
        queue
    }

    /// A packet of a flow has left its queue, which is now empty or not.
    #[inline]
    pub fn left(&mut self, now: Time, vfid: u16, queue: u32, empty: bool) {
        let entry = self.flows.get_mut(&vfid).expect("a flow with packets is in the table");
        entry.packets -= 1;
        entry.seen = now;
        if empty {
            self.busy &= !(1 << queue);
        }
    }

    /// A queue may not send, or may again. False if there is no such queue.
    pub fn set_paused(&mut self, queue: u32, paused: bool) -> bool {
        if queue < self.queues {
            self.paused = self.paused & !(1 << queue) | u128::from(paused) << queue;
        }
        queue < self.queues
    }

    /// All queues may send.
    pub fn resume_all(&mut self) {
        self.paused = 0;
    }

    /// An empty queue, one that may send if there is one; if all have packets, the flow's by hash.
    fn choose(&mut self, vfid: u16) -> u32 {
        let all = u128::MAX >> (QUEUES_MAX - self.queues);
        let empty = all & !self.busy;
        let best = if empty & !self.paused != 0 { empty & !self.paused } else { empty };
        if best == 0 {
            self.shared += 1;
            return u32::from(vfid) % self.queues;
        }
        self.alone += 1;
        // In turn, so that a queue that a silent flow may come back to is taken as late as possible.
        let onward = best & u128::MAX << self.turn;
        let queue = if onward != 0 { onward } else { best }.trailing_zeros();
        self.turn = (queue + 1) % self.queues;
        queue
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, VecDeque};

    use super::*;

    const STICKY: Duration = Duration::from_us(2);

    #[test]
    fn a_flow_keeps_its_queue_for_a_while() {
        let mut port = Assignment::new(4);
        let queue = port.assign(Time::ZERO, 9, STICKY);
        port.left(Time::from_us(1), 9, queue, true);
        let other = port.assign(Time::from_us(1), 5, STICKY);
        assert_ne!(other, queue);
        assert_eq!(port.assign(Time::from_us(3), 9, STICKY), queue);
        port.left(Time::from_us(3), 9, queue, true);
        assert_ne!(port.assign(Time::from_us(6), 9, STICKY), queue);
    }

    #[test]
    fn an_empty_queue_that_may_not_send_is_second_choice() {
        let mut port = Assignment::new(2);
        assert!(port.set_paused(0, true) && !port.set_paused(2, true));
        assert_eq!([7, 8].map(|vfid| port.assign(Time::ZERO, vfid, STICKY)), [1, 0]);
        assert_eq!((port.alone, port.shared), (2, 0));
        assert!(port.assign(Time::ZERO, 9, STICKY) < 2);
        assert_eq!((port.alone, port.shared), (2, 1));
    }

    proptest::proptest! {
        /// A model of one port: a flow that comes to it never joins others while a queue is empty, and its packets are
        /// never in two queues.
        #[test]
        fn no_queue_is_shared_while_one_is_empty(
            queues in 1u32..=8,
            steps in proptest::collection::vec((0u16..12, proptest::bool::ANY), 1..300),
        ) {
            let mut port = Assignment::new(queues);
            let mut waiting: BTreeMap<u32, VecDeque<u16>> = (0..queues).map(|queue| (queue, VecDeque::new())).collect();
            for (step, (vfid, comes)) in steps.into_iter().enumerate() {
                let now = Time::from_us(step as u64);
                if comes {
                    let known = waiting.iter().find(|(_, flows)| flows.contains(&vfid)).map(|of| *of.0);
                    let empty = waiting.values().any(VecDeque::is_empty);
                    let queue = port.assign(now, vfid, Duration::ZERO);
                    match known {
                        Some(known) => proptest::prop_assert_eq!(queue, known),
                        None => proptest::prop_assert_eq!(waiting[&queue].is_empty(), empty),
                    }
                    waiting.get_mut(&queue).unwrap().push_back(vfid);
                } else if let Some((&queue, flows)) = waiting.iter_mut().find(|of| !of.1.is_empty()) {
                    let vfid = flows.pop_front().unwrap();
                    port.left(now, vfid, queue, flows.is_empty());
                }
            }
        }
    }
}
