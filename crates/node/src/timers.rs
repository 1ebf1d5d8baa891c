use std::cmp::Reverse;
use std::collections::BinaryHeap;

use units::Time;

use crate::Walk;

/// The deadlines of one endpoint. Each key has at most one deadline, and postponing it takes constant time.
///
/// The heap holds one entry for each armed key. An entry that comes up before its key's deadline is put back at the
/// deadline. So the most frequent timer, a retransmission timeout that every acknowledgement postpones, costs one
/// store.
#[derive(Clone, Debug, Default)]
pub struct Timers {
    heap: BinaryHeap<Reverse<(Time, u32)>>,
    /// By key: its deadline and the time of its heap entry (MAX for none).
    keys: Vec<(Time, Time)>,
}

impl Timers {
    /// Arms `key` for `at`, or moves its deadline there.
    pub fn set(&mut self, key: u32, at: Time) {
        if self.keys.len() <= key as usize {
            self.keys.resize(key as usize + 1, (Time::MAX, Time::MAX));
        }
        let (deadline, entry) = &mut self.keys[key as usize];
        *deadline = at;
        if at < *entry {
            *entry = at;
            self.heap.push(Reverse((at, key)));
        }
    }

    /// Disarms `key`.
    pub fn clear(&mut self, key: u32) {
        if let Some((deadline, _)) = self.keys.get_mut(key as usize) {
            *deadline = Time::MAX;
            self.drop_dead();
        }
    }

    /// Drops entries at the top of the heap that no deadline needs any more. So a flow that has ended wakes nobody, and
    /// flows that follow each other leave the same state behind, which is what skipping looks for. Dead entries further
    /// down stay until they come up: a key that is armed again can still use them.
    fn drop_dead(&mut self) {
        while let Some(&Reverse((at, key))) = self.heap.peek() {
            let (deadline, entry) = &mut self.keys[key as usize];
            if at == *entry {
                if *deadline != Time::MAX {
                    return;
                }
                *entry = Time::MAX;
            }
            // Otherwise it is an older entry of a key that was moved earlier since.
            self.heap.pop();
        }
    }

    /// Goes over its state.
    pub fn walk(&mut self, walk: &mut Walk) {
        walk.same(self.keys.len());
        for (deadline, entry) in &mut self.keys {
            walk.time(deadline);
            walk.wakes(entry);
        }
        let mut heap: Vec<_> = std::mem::take(&mut self.heap).into_vec();
        heap.sort_unstable_by_key(|Reverse((at, key))| (*key, *at));
        walk.same(heap.len());
        for Reverse((at, key)) in &mut heap {
            walk.same(*key);
            walk.wakes(at);
        }
        self.heap = heap.into();
    }

    /// When `key` is due, if it is armed.
    pub fn get(&self, key: u32) -> Option<Time> {
        self.keys.get(key as usize).map(|key| key.0).filter(|&at| at != Time::MAX)
    }

    /// When to call [`Timers::expire`]: the earliest deadline or before it.
    pub fn next(&self) -> Option<Time> {
        self.heap.peek().map(|Reverse((at, _))| *at)
    }

    /// Takes one key whose deadline is not later than `now`, the earliest first, ties by key.
    pub fn expire(&mut self, now: Time) -> Option<u32> {
        loop {
            self.drop_dead();
            let &Reverse((at, key)) = self.heap.peek()?;
            if at > now {
                return None;
            }
            self.heap.pop();
            let (deadline, entry) = &mut self.keys[key as usize];
            if *deadline <= now {
                (*deadline, *entry) = (Time::MAX, Time::MAX);
                return Some(key);
            }
            *entry = *deadline;
            self.heap.push(Reverse((*deadline, key)));
        }
    }
}

#[cfg(test)]
mod tests;
