use std::cmp::Reverse;
use std::collections::BinaryHeap;

use units::{Time, mix};

use crate::walk::InSlots;
use crate::{Slots, State, Walk};

/// The deadlines of one endpoint. Each key has at most one deadline, and postponing it takes constant time.
///
/// The heap holds one entry for each armed key. An entry that comes up before its key's deadline is put back at the
/// deadline. So the most frequent timer, a retransmission timeout that every acknowledgement postpones, costs one
/// store.
#[derive(Clone, Debug, Default, crate::Saved)]
pub struct Timers {
    heap: BinaryHeap<Reverse<Entry>>,
    /// How many entries were made.
    made: u32,
    /// By key: its deadline and the time of its heap entry (MAX for none).
    keys: Vec<(Time, Time)>,
}

/// When it comes up, how many entries were made before, and its key. So ties go by age and not by key: keys say nothing
/// but where a flow happens to be kept.
type Entry = (Time, u32, u32);

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
            self.push(at, key);
        }
    }

    fn push(&mut self, at: Time, key: u32) {
        self.heap.push(Reverse((at, self.made, key)));
        self.made = self.made.wrapping_add(1);
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
        while let Some(&Reverse((at, _, key))) = self.heap.peek() {
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

    fn visit_keys(&mut self, walk: &mut Walk, slots: &Slots) {
        for &slot in slots.order() {
            let mut never = (Time::MAX, Time::MAX);
            let (deadline, entry) = self.keys.get_mut(slot as usize).unwrap_or(&mut never);
            walk.time(deadline);
            walk.wakes(entry);
        }
        let mut heap = std::mem::take(&mut self.heap).into_sorted_vec();
        heap.reverse();
        let ties = heap.windows(2).filter(|two| two[0].0.0 == two[1].0.0);
        let places = |two: &[Reverse<Entry>]| [two[0].0.2, two[1].0.2].map(|key| u64::from(slots.place(key)));
        walk.same(ties.flat_map(places).fold(0, mix));
        heap.sort_by_key(|Reverse((_, _, key))| slots.place(*key));
        walk.same(heap.len());
        for Reverse((at, _, key)) in &mut heap {
            walk.same(slots.place(*key));
            walk.wakes(at);
        }
        self.heap = heap.into();
        // Those that live may have moved past one that doesn't.
        self.drop_dead();
    }

    /// When `key` is due, if it is armed.
    pub fn get(&self, key: u32) -> Option<Time> {
        self.keys.get(key as usize).map(|key| key.0).filter(|&at| at != Time::MAX)
    }

    /// When to call [`Timers::expire`]: the earliest deadline or before it.
    pub fn next(&self) -> Option<Time> {
        self.heap.peek().map(|Reverse((at, ..))| *at)
    }

    /// Takes one key whose deadline is not later than `now`, the earliest first, ties by age.
    pub fn expire(&mut self, now: Time) -> Option<u32> {
        loop {
            self.drop_dead();
            let &Reverse((at, _, key)) = self.heap.peek()?;
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
            let at = *deadline;
            self.push(at, key);
        }
    }
}

impl<G: ?Sized> State<G> for Timers {
    fn visit(&mut self, walk: &mut Walk, _: &G) {
        walk.same(self.keys.len());
        self.visit_keys(walk, &Slots::as_they_are(self.keys.len()));
    }
}

/// Its keys are slots. Which is which makes no difference.
impl<G: ?Sized> InSlots<G> for Timers {
    fn visit_slots(&mut self, walk: &mut Walk, _: &G) {
        let slots = std::mem::take(&mut walk.slots);
        self.visit_keys(walk, &slots);
        walk.slots = slots;
    }
}

#[cfg(test)]
mod tests;
