//! The assignment of flows to the physical queues of a port.

use node::Walk;
use rustc_hash::FxHashMap;
use units::{Duration, Stream, Time};

use super::{Departure, Departures};

/// Most queues of a port.
pub const QUEUES_MAX: u32 = 128;

/// The flows and queues of one egress port.
#[derive(node::State)]
#[state(given([Duration]), first(walk.numbered("what virtual ids flows have")))]
pub struct Assignment {
    queues: u32,
    #[state(built("settings"))]
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
    #[state(count)]
    pub alone: u64,
    #[state(count)]
    pub shared: u64,
}

/// A flow's entry in the flow table.
#[derive(Clone, Copy, node::State)]
#[state(given([Duration]), first(self.tell(walk, given)))]
struct Entry {
    queue: u8,
    packets: u32,
    /// When one of its packets last arrived or left.
    #[state(past)]
    seen: Time,
}

impl Entry {
    /// The time at which it was seen matters only once it has no packets here.
    fn tell(&self, walk: &mut Walk, sticky: &[Duration]) {
        for &sticky in sticky.iter().filter(|_| self.packets == 0) {
            walk.expired(&mut (self.seen + sticky + Duration::from_ps(1)));
        }
    }
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
mod tests;
