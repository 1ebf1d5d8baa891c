/// When each active flow will have been transferred, earliest first: a binary heap in which a slot's time can be
/// changed.
#[derive(Default)]
pub(crate) struct Agenda {
    heap: Vec<(u64, u32)>,
    /// By slot: its position in the heap.
    place: Vec<u32>,
}

const NOWHERE: u32 = u32::MAX;

impl Agenda {
    /// The earliest time and its slot, the lowest one on a tie.
    pub fn first(&self) -> Option<(u64, u32)> {
        self.heap.first().copied()
    }

    /// Sets or changes a slot's time.
    pub fn set(&mut self, slot: u32, at: u64) {
        if self.place.len() <= slot as usize {
            self.place.resize(slot as usize + 1, NOWHERE);
        }
        let place = self.place[slot as usize];
        if place == NOWHERE {
            self.heap.push((at, slot));
            self.rise(self.heap.len() - 1);
        } else {
            self.heap[place as usize].0 = at;
            let place = self.rise(place as usize);
            self.sink(place);
        }
    }

    /// Removes the earliest entry.
    pub fn pop(&mut self) -> Option<(u64, u32)> {
        let first = self.first()?;
        self.place[first.1 as usize] = NOWHERE;
        let last = self.heap.pop()?;
        if !self.heap.is_empty() {
            self.heap[0] = last;
            self.sink(0);
        }
        Some(first)
    }

    /// Moves an entry up towards the root and returns its new position.
    fn rise(&mut self, mut at: usize) -> usize {
        let entry = self.heap[at];
        while at > 0 && entry < self.heap[(at - 1) / 2] {
            self.put((at - 1) / 2, at);
            at = (at - 1) / 2;
        }
        self.heap[at] = entry;
        self.place[entry.1 as usize] = at as u32;
        at
    }

    fn sink(&mut self, mut at: usize) {
        let entry = self.heap[at];
        loop {
            let left = 2 * at + 1;
            let Some(mut child) = self.heap.get(left).map(|_| left) else { break };
            if self.heap.get(left + 1).is_some_and(|right| *right < self.heap[left]) {
                child = left + 1;
            }
            if entry <= self.heap[child] {
                break;
            }
            self.put(child, at);
            at = child;
        }
        self.heap[at] = entry;
        self.place[entry.1 as usize] = at as u32;
    }

    fn put(&mut self, from: usize, to: usize) {
        self.heap[to] = self.heap[from];
        self.place[self.heap[to].1 as usize] = to as u32;
    }
}

#[cfg(test)]
mod tests;
