//! One port of a Pyrrha switch: its output queue, the congestion roots behind it and their isolation queues.

use std::collections::VecDeque;

use node::pool::{Fifo, PacketId, Pool};
use units::PortId;

use super::Tiers;
use super::frame::RootId;
use super::state::State;
use super::upstream::PortSet;

/// An entry of the congestion root table, which is kept by distance, nearest first (section 4.2).
#[derive(Debug)]
pub(super) struct Entry {
    pub root: RootId,
    /// Switches from here to it.
    pub distance: u8,
    pub state: State,
    /// Ports whose packets for this root these queues hold back.
    pub told: PortSet,
}

/// An isolation queue.
#[derive(Debug, Default)]
pub(super) struct Queue {
    pub packets: Fifo,
    pub bytes: u32,
    /// What it is for: one root, or those of a set; of several when queues have run out.
    pub roots: Vec<RootId>,
    /// None of its roots is paused.
    open: bool,
    in_turn: bool,
    pushed: u64,
    popped: u64,
    /// Order marks: it opens when of those queues so many packets have gone (appendix C.1).
    behind: Vec<(u16, u64)>,
}

/// The port's claim to be a congestion root.
#[derive(Debug, Default)]
pub(super) struct Claim {
    /// Ports told to pause for it.
    pub told: PortSet,
    /// Without merging: a root further downstream is known by now, so the claim is false.
    pub is_false: bool,
}

/// A port.
#[derive(Debug)]
pub(super) struct Egress {
    /// `K_pause` times the one-hop bandwidth-delay product.
    pub pause_bytes: u32,
    /// `K_resume` times it.
    pub resume_bytes: u32,
    /// Whether it may claim to be a root.
    pub nominates: bool,
    /// Bytes of isolated classes in the output queue.
    pub output_bytes: u32,
    pub claim: Option<Claim>,
    /// After an abdication: the shortest that the output queue has been since.
    pub floor_bytes: Option<u32>,
    pub table: Vec<Entry>,
    pub queues: Vec<Queue>,
    /// Which queue what goes through these roots takes, in the order of the table.
    assigned: Vec<(Vec<RootId>, u16)>,
    free: Vec<u16>,
    /// Queues with packets that may go on, in turn.
    turn: VecDeque<u16>,
    /// Packets that came out of isolation queues since the output queue had its turn.
    since_output: usize,
    pub queues_max: u32,
}

/// What a packet will go through, nearest first.
pub(super) type Path<'a> = &'a [RootId];

impl Egress {
    pub fn new(pause_bytes: u32, resume_bytes: u32, nominates: bool, queues: u16) -> Egress {
        Egress {
            pause_bytes,
            resume_bytes,
            nominates,
            output_bytes: 0,
            claim: None,
            floor_bytes: None,
            table: Vec::new(),
            queues: Vec::new(),
            assigned: Vec::new(),
            free: (0..queues).rev().collect(),
            turn: VecDeque::new(),
            since_output: 0,
            queues_max: 0,
        }
    }

    /// Whether a packet waits in an isolation queue that is open.
    #[inline]
    pub fn has_turn(&self) -> bool {
        !self.turn.is_empty()
    }

    pub fn entry(&mut self, root: RootId) -> Option<&mut Entry> {
        self.table.iter_mut().find(|entry| entry.root == root)
    }

    /// Adds a root to the table, paused.
    pub fn add(&mut self, tiers: Tiers, root: RootId, distance: u8) {
        let place = self.table.partition_point(|entry| entry.distance <= distance);
        self.table.insert(place, Entry { root, distance, state: State::Paused, told: PortSet::default() });
        if tiers == Tiers::Hierarchy {
            self.assign(tiers, vec![root]);
        }
    }

    /// The queue that a packet now takes, whose last queue was `after`; none for the output queue.
    ///
    /// In a hierarchy a packet passes the queue of each root on its path, from near to far; single-tier queues are for
    /// what goes through exactly these roots.
    pub fn queue_for(&mut self, tiers: Tiers, path: Path<'_>, after: Option<u16>) -> Option<u16> {
        match tiers {
            Tiers::Hierarchy => {
                let on_path = |(of, _): &&(Vec<RootId>, u16)| path.contains(&of[0]);
                let last = |after| self.assigned.iter().rposition(|pair| on_path(&pair) && pair.1 == after);
                let next = after.and_then(last).map_or(0, |at| at + 1);
                let mut queues = self.assigned[next..].iter().filter(on_path).map(|(_, queue)| *queue);
                queues.find(|&queue| self.must_wait(queue))
            }
            Tiers::Single if after.is_some() => None,
            Tiers::Single => {
                let on_path = |entry: &&Entry| path.contains(&entry.root);
                let roots: Vec<RootId> = self.table.iter().filter(on_path).map(|entry| entry.root).collect();
                let queue = (!roots.is_empty()).then(|| self.assign(tiers, roots))?;
                self.must_wait(queue).then_some(queue)
            }
        }
    }

    /// Whether a packet for this queue has to join it: it is closed, or others are before it.
    fn must_wait(&self, queue: u16) -> bool {
        let queue = &self.queues[usize::from(queue)];
        !queue.packets.is_empty() || !queue.open
    }

    /// The queue of these roots; a new one if they have none yet.
    fn assign(&mut self, tiers: Tiers, roots: Vec<RootId>) -> u16 {
        if let Some((_, queue)) = self.assigned.iter().find(|(of, _)| *of == roots) {
            return *queue;
        }
        let queue = match self.free.pop() {
            Some(queue) => queue,
            None => {
                // None is left: share one, chosen by a hash of the root's id (section 4.5).
                let first = roots[0];
                let hash = units::mix(u64::from(first.node) << 16 | u64::from(first.port), roots.len() as u64);
                self.assigned[(hash % self.assigned.len() as u64) as usize].1
            }
        };
        while self.queues.len() <= usize::from(queue) {
            self.queues.push(Queue::default());
        }
        let behind = match tiers {
            Tiers::Hierarchy => Vec::new(),
            // What came before some of these roots were known waits in the queues of fewer of them.
            Tiers::Single => {
                let earlier = |(of, queue): &(Vec<RootId>, u16)| {
                    of.iter()
                        .all(|root| roots.contains(root))
                        .then(|| (*queue, self.queues[usize::from(*queue)].pushed))
                };
                self.assigned.iter().filter_map(earlier).collect()
            }
        };
        let slot = &mut self.queues[usize::from(queue)];
        slot.behind.extend(behind.into_iter().filter(|(other, _)| *other != queue));
        slot.roots.extend(&roots);
        let distance = |root: RootId| self.table.iter().position(|entry| entry.root == root);
        let at = distance(roots[0]);
        let place = self.assigned.partition_point(|(of, _)| distance(of[0]) <= at);
        self.assigned.insert(place, (roots, queue));
        self.queues_max = self.queues_max.max(self.in_use());
        self.settle(queue);
        queue
    }

    /// Whether queues have run out and this one is for several.
    pub fn is_shared(&self, number: u16) -> bool {
        self.assigned.iter().filter(|(_, queue)| *queue == number).count() > 1
    }

    fn in_use(&self) -> u32 {
        self.queues.iter().filter(|queue| !queue.roots.is_empty()).count() as u32
    }

    /// Works out whether a queue is open, and gives it its turn if it is.
    fn settle(&mut self, number: u16) {
        let of = |root: &RootId| self.table.iter().find(|entry| entry.root == *root);
        let queue = &self.queues[usize::from(number)];
        let passed = |(other, mark): &(u16, u64)| self.queues[usize::from(*other)].popped >= *mark;
        let in_order = queue.behind.iter().all(passed);
        let open = in_order && queue.roots.iter().all(|root| of(root).is_none_or(|entry| entry.state.open()));
        let queue = &mut self.queues[usize::from(number)];
        if in_order {
            queue.behind.clear();
        }
        queue.open = open;
        if open && !queue.packets.is_empty() && !queue.in_turn {
            queue.in_turn = true;
            self.turn.push_back(number);
        }
    }

    /// A root's state has changed: opens and closes its queues.
    pub fn settle_root(&mut self, root: RootId) {
        for number in 0..self.queues.len() {
            if self.queues[number].roots.contains(&root) {
                self.settle(number as u16);
            }
        }
    }

    pub fn push(&mut self, pool: &mut Pool, number: u16, id: PacketId) {
        let bytes = u32::from(pool.get(id).packet.wire_bytes);
        let queue = &mut self.queues[usize::from(number)];
        queue.packets.push(pool, id);
        queue.bytes += bytes;
        queue.pushed += 1;
        self.settle(number);
    }

    /// Takes a packet out of the isolation queue whose turn it is. A queue that has been closed since loses its turn.
    pub fn pop_turn(&mut self, pool: &Pool) -> Option<(u16, PacketId)> {
        loop {
            let number = self.turn.pop_front()?;
            self.queues[usize::from(number)].in_turn = false;
            if !self.queues[usize::from(number)].open {
                continue;
            }
            let Some(id) = self.pop(pool, number) else { continue };
            return Some((number, id));
        }
    }

    /// Takes the first packet out of a queue, open or not.
    pub fn pop(&mut self, pool: &Pool, number: u16) -> Option<PacketId> {
        let queue = &mut self.queues[usize::from(number)];
        let id = queue.packets.pop(pool)?;
        queue.bytes -= u32::from(pool.get(id).packet.wire_bytes);
        queue.popped += 1;
        self.settle(number);
        // An order mark has come out of this queue, perhaps.
        for other in 0..self.queues.len() {
            if self.queues[other].behind.iter().any(|(before, _)| *before == number) {
                self.settle(other as u16);
            }
        }
        Some(id)
    }

    /// Whether isolation queues are to give a packet before the output queue sends its next: all take turns.
    pub fn isolated_first(&mut self, output_empty: bool) -> bool {
        if output_empty || self.since_output < self.turn.len() {
            self.since_output += 1;
            return self.has_turn();
        }
        self.since_output = 0;
        false
    }

    /// Longest of the queues of a root, in bytes.
    pub fn root_bytes(&self, root: RootId) -> u32 {
        self.queues.iter().filter(|queue| queue.roots.contains(&root)).map(|queue| queue.bytes).max().unwrap_or(0)
    }

    /// Takes a root out of the table, whose queues are empty, and frees those that are for no other.
    pub fn remove(&mut self, root: RootId) {
        self.table.retain(|entry| entry.root != root);
        let mut gone = Vec::new();
        self.assigned.retain(|(roots, queue)| {
            let keep = !roots.contains(&root);
            if !keep {
                gone.push((roots.clone(), *queue));
            }
            keep
        });
        for (roots, number) in gone {
            let queue = &mut self.queues[usize::from(number)];
            for root in roots {
                let at = queue.roots.iter().position(|other| *other == root).expect("it was assigned");
                queue.roots.remove(at);
            }
            if queue.roots.is_empty() {
                queue.behind.clear();
                self.free.push(number);
            }
            self.settle(number);
        }
    }

    /// A packet joins the output queue (`by` bytes) or leaves it (negative).
    #[inline]
    pub fn count_output(&mut self, by: i64) {
        self.output_bytes = (i64::from(self.output_bytes) + by) as u32;
        if let Some(floor) = self.floor_bytes {
            self.floor_bytes = (self.output_bytes > self.resume_bytes).then_some(floor.min(self.output_bytes));
        }
    }

    /// From which length on the output queue nominates itself. One that has abdicated has to grow by as much again: what
    /// it holds came before the true root was known.
    #[inline]
    pub fn nomination_bytes(&self) -> u32 {
        self.floor_bytes.map_or(self.pause_bytes, |floor| floor.saturating_add(self.pause_bytes))
    }

    /// Forgets whom it has told anything by a port, whose link has gone down.
    pub fn forget(&mut self, port: PortId) {
        self.table.iter_mut().for_each(|entry| entry.told.remove(port));
        if let Some(claim) = &mut self.claim {
            claim.told.remove(port);
        }
    }
}
