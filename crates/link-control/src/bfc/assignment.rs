//! The assignment of flows to the physical queues of a port.

use rustc_hash::FxHashMap;
use units::{Duration, Stream, Time};

use super::{Departure, Departures};

/// Most queues of a port.
pub const QUEUES_MAX: u32 = 128;

/// The flows and queues of one egress port.
pub struct Assignment {
    queues: u32,
    departures: Departures,
    flows: FxHashMap<u16, Entry>,
    /// By queue: number of flows in the table that it is assigned to, with or without packets.
    owners: Vec<u32>,
    /// Queues with packets, and paused queues, as bits.
    busy: u128,
    paused: u128,
    /// Queue at which the search for an empty one begins.
    turn: u32,
    /// Number of flows that were assigned an empty queue, and of those that had to share.
    pub alone: u64,
    pub shared: u64,
}

/// A flow's entry in the flow table.
#[derive(Clone, Copy)]
struct Entry {
    queue: u8,
    packets: u32,
    /// When one of its packets last arrived or left.
    seen: Time,
}

impl Assignment {
    /// A port with this many queues and no flows.
    pub fn new(queues: u32, departures: Departures) -> Assignment {
        debug_assert!((1..=QUEUES_MAX).contains(&queues));
        let owners = vec![0; queues as usize];
        Assignment {
            queues,
            departures,
            flows: FxHashMap::default(),
            owners,
            busy: 0,
            paused: 0,
            turn: 0,
            alone: 0,
            shared: 0,
        }
    }

    /// The queue for an arriving packet of a flow: the flow's present queue, unless it has had no packet there for
    /// longer than `sticky`.
    #[inline]
    pub fn assign(&mut self, now: Time, vfid: u16, sticky: Duration, random: &mut Stream) -> u32 {
        if let Some(entry) = self.flows.get_mut(&vfid)
            && (entry.packets > 0 || now.since(entry.seen) <= sticky)
        {
            entry.packets += 1;
            entry.seen = now;
            let queue = u32::from(entry.queue);
            self.busy |= 1 << queue;
            return queue;
        }
        let queue = self.choose(vfid, random);
        let before = self.flows.insert(vfid, Entry { queue: queue as u8, packets: 1, seen: now });
        if let Some(before) = before {
            self.owners[usize::from(before.queue)] -= 1;
        }
        self.owners[queue as usize] += 1;
        self.busy |= 1 << queue;
        queue
    }

    /// A packet of a flow has left its queue; `empty` says whether the queue is now empty.
    #[inline]
    pub fn left(&mut self, now: Time, vfid: u16, queue: u32, empty: bool) {
        let entry = self.flows.get_mut(&vfid).expect("a flow with packets is in the table");
        entry.packets -= 1;
        entry.seen = now;
        if empty {
            self.busy &= !(1 << queue);
        }
    }

    /// Pauses or resumes a queue. False if there is no such queue.
    pub fn set_paused(&mut self, queue: u32, paused: bool) -> bool {
        if queue < self.queues {
            self.paused = self.paused & !(1 << queue) | u128::from(paused) << queue;
        }
        queue < self.queues
    }

    /// Resumes all queues.
    pub fn resume_all(&mut self) {
        self.paused = 0;
    }

    /// The queue for a flow that has none.
    fn choose(&mut self, vfid: u16, random: &mut Stream) -> u32 {
        let all = u128::MAX >> (QUEUES_MAX - self.queues);
        let empty = all & !self.busy;
        let first = self.departures.has(Departure::FirstQueue);
        let best = if first { self.usable(empty) } else { self.best(empty) };
        if best == 0 {
            self.shared += 1;
            return match self.departures.has(Departure::RandomSharing) {
                true => random.below(u64::from(self.queues)) as u32,
                false => u32::from(vfid) % self.queues,
            };
        }
        self.alone += 1;
        if first {
            return best.trailing_zeros();
        }
        // Queues are taken in turn, so that a queue to which a silent flow may return is reused as late as possible.
        let onward = best & u128::MAX << self.turn;
        let queue = if onward != 0 { onward } else { best }.trailing_zeros();
        self.turn = (queue + 1) % self.queues;
        queue
    }

    /// The empty queues that are not paused, or else all empty queues.
    fn best(&self, empty: u128) -> u128 {
        if empty & !self.paused != 0 { empty & !self.paused } else { empty }
    }

    /// The empty queues that the published program takes: it recognises paused queues only by the flows in its table.
    fn usable(&self, empty: u128) -> u128 {
        let owned = |queue: &u32| self.owners[*queue as usize] > 0;
        let taken = (0..self.queues).filter(|queue| self.paused >> queue & 1 == 1).filter(owned);
        taken.fold(empty, |usable, queue| usable & !(1 << queue))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, VecDeque};

    use super::*;

    const STICKY: Duration = Duration::from_us(2);

    fn random() -> Stream {
        Stream::new(1, 0, "test")
    }

    #[test]
    fn a_flow_keeps_its_queue_for_a_while() {
        let mut port = Assignment::new(4, Departures::default());
        let queue = port.assign(Time::ZERO, 9, STICKY, &mut random());
        port.left(Time::from_us(1), 9, queue, true);
        let other = port.assign(Time::from_us(1), 5, STICKY, &mut random());
        assert_ne!(other, queue);
        assert_eq!(port.assign(Time::from_us(3), 9, STICKY, &mut random()), queue);
        port.left(Time::from_us(3), 9, queue, true);
        assert_ne!(port.assign(Time::from_us(6), 9, STICKY, &mut random()), queue);
    }

    #[test]
    fn an_empty_queue_that_may_not_send_is_second_choice() {
        let mut port = Assignment::new(2, Departures::default());
        assert!(port.set_paused(0, true) && !port.set_paused(2, true));
        assert_eq!([7, 8].map(|vfid| port.assign(Time::ZERO, vfid, STICKY, &mut random())), [1, 0]);
        assert_eq!((port.alone, port.shared), (2, 0));
        assert!(port.assign(Time::ZERO, 9, STICKY, &mut random()) < 2);
        assert_eq!((port.alone, port.shared), (2, 1));
    }

    #[test]
    fn the_published_program_shares_at_random() {
        for (departures, sharing) in [(vec![], 1), (vec![Departure::RandomSharing], 2)] {
            let mut port = Assignment::new(2, departures.into_iter().collect());
            let mut random = random();
            // Both queues keep packets; another flow comes and goes.
            for vfid in [0, 1] {
                port.assign(Time::ZERO, vfid, STICKY, &mut random);
            }
            let mut seen = std::collections::BTreeSet::new();
            for at in 1..=64 {
                let queue = port.assign(Time::from_us(10 * at), 9, STICKY, &mut random);
                port.left(Time::from_us(10 * at), 9, queue, false);
                seen.insert(queue);
            }
            assert_eq!((seen.len(), port.shared), (sharing, 64));
        }
    }

    #[test]
    fn the_published_program_overlooks_pauses_of_queues_without_a_flow() {
        let mut port = Assignment::new(3, Departures::published());
        let mut random = random();
        assert_eq!(port.assign(Time::ZERO, 7, STICKY, &mut random), 0);
        port.left(Time::ZERO, 7, 0, true);
        // The first queue is paused and still assigned to flow 7: another flow takes the second.
        port.set_paused(0, true);
        assert_eq!(port.assign(Time::ZERO, 8, STICKY, &mut random), 1);
        // Flow 7 returns late, to the third queue. The first is still paused and assigned to no flow.
        assert_eq!(port.assign(Time::from_us(9), 7, STICKY, &mut random), 2);
        assert_eq!(port.assign(Time::from_us(9), 9, STICKY, &mut random), 0);
    }

    #[test]
    fn the_published_program_shares_though_an_empty_queue_is_paused() {
        let mut port = Assignment::new(2, [Departure::FirstQueue].into_iter().collect());
        let mut random = random();
        port.assign(Time::ZERO, 7, STICKY, &mut random);
        port.left(Time::ZERO, 7, 0, true);
        port.set_paused(0, true);
        assert_eq!(port.assign(Time::ZERO, 8, STICKY, &mut random), 1);
        // BFC itself would choose the empty queue.
        assert_eq!((port.assign(Time::ZERO, 9, STICKY, &mut random), port.shared), (1, 1));
    }

    proptest::proptest! {
        /// A model of one port: an arriving flow never shares a queue while one is empty, and its packets are never in
        /// two queues.
        #[test]
        fn no_queue_is_shared_while_one_is_empty(
            queues in 1u32..=8,
            published in proptest::bool::ANY,
            steps in proptest::collection::vec((0u16..12, proptest::bool::ANY), 1..300),
        ) {
            let departures = if published { Departures::published() } else { Departures::default() };
            let (mut port, mut random) = (Assignment::new(queues, departures), random());
            let mut waiting: BTreeMap<u32, VecDeque<u16>> = (0..queues).map(|queue| (queue, VecDeque::new())).collect();
            for (step, (vfid, comes)) in steps.into_iter().enumerate() {
                let now = Time::from_us(step as u64);
                if comes {
                    let known = waiting.iter().find(|(_, flows)| flows.contains(&vfid)).map(|of| *of.0);
                    let empty = waiting.values().any(VecDeque::is_empty);
                    let queue = port.assign(now, vfid, Duration::ZERO, &mut random);
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
