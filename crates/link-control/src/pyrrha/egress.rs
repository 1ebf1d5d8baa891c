//! One port of a Pyrrha switch: its output queue, the congestion roots downstream of it and their isolation queues.

use node::Walk;
use std::collections::VecDeque;
use std::sync::Arc;

use node::pool::{Fifo, PacketId, Pool};
use units::{Duration, PortId, Time};

use super::Tiers;
use super::frame::RootId;
use super::state::State;
use super::upstream::{PortSet, Upstream};

/// An entry of the congestion root table, which is sorted by distance, nearest first (section 4.2).
#[derive(Debug, node::State)]
pub(super) struct Entry {
    pub root: RootId,
    /// Number of switches from here to the root.
    pub distance: u8,
    pub state: State,
    pub upstream: Upstream,
    /// A MERGE has named it, and its next switch downstream has said nothing else of it since.
    pub foretold: bool,
}

/// An isolation queue.
#[derive(Debug, Default, node::State)]
pub(super) struct Queue {
    pub packets: Fifo,
    pub bytes: u32,
    /// The sets of roots that it serves: exactly the roots that its packets pass (single tier), or one root
    /// (hierarchy). Several sets when queues have run out; none while unassigned.
    sets: Vec<Vec<RootId>>,
    /// Its bytes by ingress port, if pauses go by ingress.
    by_ingress: Vec<u32>,
    /// Its bytes by rank of the ingress port, if ranks differ.
    by_rank: Vec<u32>,
    /// Its level: the distance of its first root when it was assigned.
    distance: u8,
    /// Whether none of its roots is paused and no order mark blocks its next packet.
    open: bool,
    in_turn: bool,
    #[state(skip("`visit_marks` visits it"))]
    pushed: u64,
    #[state(skip("`visit_marks` visits it"))]
    popped: u64,
    #[state(skip("`visit_marks` visits them"))]
    marks: Vec<Mark>,
}

/// An order mark (appendix C.1): packets that joined this queue after its first `after` packets wait until `until`
/// packets of another queue have left.
#[derive(Clone, Copy, Debug, node::Saved)]
struct Mark {
    after: u64,
    other: u16,
    until: u64,
}

impl Queue {
    /// The roots that it serves. With several sets, a root may appear more than once.
    pub fn roots(&self) -> impl Iterator<Item = RootId> {
        self.sets.iter().flatten().copied()
    }

    /// The class of its packets; of its first ones, if roots of several classes share it because queues have run out.
    fn class(&self) -> u8 {
        self.sets.first().map_or(0, |set| set[0].class)
    }

    /// Whether it serves several roots, or sets of roots, because queues have run out.
    pub fn is_shared(&self) -> bool {
        self.sets.len() > 1
    }

    pub fn serves(&self, root: RootId) -> bool {
        self.roots().any(|other| other == root)
    }
}

/// The port's claim to be a congestion root.
#[derive(Debug, Default, node::State)]
pub(super) struct Claim {
    pub upstream: Upstream,
    /// Without merging: whether a root further downstream is known by now, which makes the claim false.
    pub is_false: bool,
}

/// Queue lengths in bytes: `K_pause` and `K_resume` times the one-hop bandwidth-delay product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Limits {
    /// Above this length a queue pauses.
    pub pause: u32,
    /// At or below this length it resumes.
    pub resume: u32,
}

/// The output queue of a class.
#[derive(Debug, node::State)]
pub(super) struct Output {
    pub class: u8,
    pub bytes: u32,
    /// The same by rank of the ingress port, if ranks differ.
    by_rank: Vec<u32>,
    pub claim: Option<Claim>,
    /// After an abdication or a MERGE: its shortest length since, with what merges.
    pub floor_bytes: Option<u32>,
}

/// A port's place in the fabric, and its parameters.
pub(super) struct PortParams {
    /// By ingress port of the switch: the rank of its link by round trip, from the shortest. Equal links share one.
    pub ranks: Arc<[u16]>,
    /// By rank: the limits of a queue that packets enter by such a link. A PAUSE takes effect, and a RESUME ends, a
    /// round trip of that link later, and meanwhile this port sends at its own rate.
    pub limits: Vec<Limits>,
    /// Whether it may nominate itself as a root.
    pub nominates: bool,
    /// Whether it leads up.
    pub up: bool,
    /// Number of ports of the switch, if pauses go by ingress.
    pub ingresses: Option<usize>,
    /// Number of isolation queues.
    pub queues: u16,
    /// Transmission time of a full packet on its link.
    pub packet_time: Duration,
}

/// A port.
#[derive(Debug, node::State)]
#[state(last(self.visit_marks(walk)))]
pub(super) struct Egress {
    ranks: Arc<[u16]>,
    #[state(built("settings"))]
    limits: Vec<Limits>,
    pub nominates: bool,
    pub up: bool,
    ingresses: Option<usize>,
    /// The output queues of the isolated classes that have had packets.
    pub outputs: Vec<Output>,
    pub table: Vec<Entry>,
    /// By number: all queues that have ever been assigned.
    pub queues: Vec<Queue>,
    /// The assigned queues, near to far. A packet passes queues only in this order, so packets of a flow never overtake
    /// each other. The level of a queue that serves several roots is that of the first.
    assigned: Vec<u16>,
    /// Classes that have had isolation queues, as bits.
    classes: u8,
    /// The unassigned queues: the port's segment of the QueueID stack (appendix E.3).
    free: Vec<u16>,
    /// Whether any queue has order marks.
    has_marks: bool,
    /// Open queues with packets, in the order of their turns.
    turn: VecDeque<u16>,
    /// Packets taken from isolation queues since the output queue had its turn.
    #[state(same(self.since_output.min(self.assigned.len() + self.free.len())))]
    since_output: usize,
    packet_time: Duration,
    /// If isolation queues hand on together: the earliest time for the next round.
    #[state(expired)]
    next_hand_on: Time,
    pub queues_max: u32,
}

impl Output {
    /// The length at which it nominates the port, if it pauses at `pause`. After an abdication it has to grow by that
    /// much again, since its present packets arrived before the true root was known.
    pub fn nomination_bytes(&self, pause: u32) -> u32 {
        self.floor_bytes.map_or(pause, |floor| floor.saturating_add(pause))
    }
}

/// Number of ranks whose bytes a queue counts: none if all links are alike.
fn counted_ranks(limits: &[Limits]) -> usize {
    if limits.len() > 1 { limits.len() } else { 0 }
}

/// The roots that a packet will pass, nearest first.
pub(super) type Path<'a> = &'a [RootId];

impl Egress {
    pub fn new(place: PortParams) -> Egress {
        let PortParams { ranks, limits, nominates, up, ingresses, queues, packet_time } = place;
        Egress {
            ranks,
            limits,
            nominates,
            up,
            ingresses,
            outputs: Vec::new(),
            classes: 0,
            table: Vec::new(),
            queues: Vec::new(),
            assigned: Vec::new(),
            free: (0..queues).rev().collect(),
            has_marks: false,
            turn: VecDeque::new(),
            since_output: 0,
            packet_time,
            next_hand_on: Time::ZERO,
            queues_max: 0,
        }
    }

    /// Whether a packet waits in an open isolation queue.
    #[inline]
    pub fn has_turn(&self) -> bool {
        !self.turn.is_empty()
    }

    pub fn entry(&mut self, root: RootId) -> Option<&mut Entry> {
        self.table.iter_mut().find(|entry| entry.root == root)
    }

    /// Adds a root to the table, paused by a PAUSE or foretold by a MERGE, which holds nothing.
    pub fn add(&mut self, tiers: Tiers, root: RootId, distance: u8, foretold: bool) {
        let place = self.table.partition_point(|entry| entry.distance <= distance);
        let state = if foretold { State::Resumed } else { State::Paused };
        self.table.insert(place, Entry { root, distance, state, upstream: Upstream::default(), foretold });
        if tiers == Tiers::Hierarchy {
            self.assign(vec![root], distance);
        }
    }

    /// Whether a root that is added has a queue of its own.
    pub fn has_free_queue(&self) -> bool {
        !self.free.is_empty()
    }

    /// Bytes in queues of a class whose roots have all merged into others: they belong to no tree, so they wait for
    /// this port alone, as what is in its output queue does.
    pub fn merging_bytes(&self, class: u8) -> u32 {
        let merging = |entry: &&Entry| entry.state == State::SoftMerging;
        if self.table.iter().find(merging).is_none() {
            return 0;
        }
        let is_merging = |root: RootId| self.table.iter().filter(merging).any(|entry| entry.root == root);
        let filled = self.queues.iter().filter(|queue| queue.bytes > 0 && queue.class() == class);
        filled.filter(|queue| queue.roots().all(is_merging)).map(|queue| queue.bytes).sum()
    }

    /// If no queue is free: frees that of a root which is only foretold and holds nothing, for one that does.
    pub fn give_up_foretold(&mut self) -> Option<Entry> {
        if self.has_free_queue() {
            return None;
        }
        let idle = |entry: &Entry| entry.foretold && self.root_bytes(entry.root) == 0;
        let place = self.table.iter().position(idle)?;
        let root = self.table[place].root;
        let upstream = std::mem::take(&mut self.table[place].upstream);
        let Entry { distance, state, foretold, .. } = self.table[place];
        self.remove(root);
        Some(Entry { root, distance, state, upstream, foretold })
    }

    /// The next queue of a packet whose last isolation queue was `after`; `None` for the output queue.
    ///
    /// In a hierarchy a packet passes the queue of each root on its path, from near to far. A single-tier queue serves
    /// packets that pass exactly its roots.
    pub fn queue_for(&mut self, tiers: Tiers, path: Path<'_>, after: Option<u16>) -> Option<u16> {
        match tiers {
            Tiers::Hierarchy => {
                let place = |after| self.assigned.iter().position(|queue| *queue == after);
                let next = after.and_then(place).map_or(0, |place| place + 1);
                let on_path = |queue: u16| self.queues[usize::from(queue)].roots().any(|root| path.contains(&root));
                self.assigned[next..].iter().copied().find(|queue| self.must_wait(*queue) && on_path(*queue))
            }
            Tiers::Single if after.is_some() => None,
            Tiers::Single => {
                // A root that is only foretold holds nothing.
                let met = || self.table.iter().filter(|entry| !entry.foretold && path.contains(&entry.root));
                let distance = met().next()?.distance;
                let is_for = |set: &Vec<RootId>| met().map(|entry| entry.root).eq(set.iter().copied());
                let queues = || self.assigned.iter().copied();
                let queue = match queues().find(|queue| self.queues[usize::from(*queue)].sets.iter().any(is_for)) {
                    Some(queue) => queue,
                    None => {
                        let set: Vec<RootId> = met().map(|entry| entry.root).collect();
                        // Packets that arrived before some of these roots were known wait in queues of fewer roots.
                        let fewer = |of: &Vec<RootId>| of.iter().all(|root| set.contains(root));
                        let earlier = |queue: &u16| self.queues[usize::from(*queue)].sets.iter().any(fewer);
                        let earlier: Vec<u16> = queues().filter(earlier).collect();
                        let queue = self.assign(set, distance);
                        self.mark(queue, &earlier);
                        queue
                    }
                };
                self.must_wait(queue).then_some(queue)
            }
        }
    }

    /// Whether a packet for this queue has to wait there: the queue is closed or other packets are before it.
    fn must_wait(&self, queue: u16) -> bool {
        let queue = &self.queues[usize::from(queue)];
        !queue.packets.is_empty() || !queue.open
    }

    /// Assigns a queue to these roots, which have none yet.
    fn assign(&mut self, roots: Vec<RootId>, distance: u8) -> u16 {
        self.classes |= 1 << roots[0].class;
        let queue = match self.free.pop() {
            Some(queue) => {
                while self.queues.len() <= usize::from(queue) {
                    let by_ingress = vec![0; self.ingresses.unwrap_or(0)];
                    let by_rank = vec![0; counted_ranks(&self.limits)];
                    self.queues.push(Queue { by_ingress, by_rank, ..Queue::default() });
                }
                self.queues[usize::from(queue)].distance = distance;
                let place = self.assigned.partition_point(|of| self.queues[usize::from(*of)].distance <= distance);
                self.assigned.insert(place, queue);
                self.queues_max = self.queues_max.max(self.assigned.len() as u32);
                queue
            }
            None => {
                // No queue is free: share one of the class, chosen by a hash of the root's id (section 4.5).
                let first = roots[0];
                let hash = units::mix(u64::from(first.node) << 16 | u64::from(first.port), roots.len() as u64);
                let alike = |queue: &u16| self.queues[usize::from(*queue)].class() == first.class;
                let of_class: Vec<u16> = self.assigned.iter().copied().filter(alike).collect();
                let among = if of_class.is_empty() { &self.assigned } else { &of_class };
                among[(hash % among.len() as u64) as usize]
            }
        };
        self.queues[usize::from(queue)].sets.push(roots);
        self.settle(queue);
        queue
    }

    /// Sets order marks: packets that join `queue` from now on follow those that are in `others`.
    fn mark(&mut self, queue: u16, others: &[u16]) {
        let after = self.queues[usize::from(queue)].pushed;
        for &other in others.iter().filter(|other| **other != queue) {
            let until = self.queues[usize::from(other)].pushed;
            self.queues[usize::from(queue)].marks.push(Mark { after, other, until });
            self.has_marks = true;
        }
        self.settle(queue);
    }

    /// Computes whether a queue is open, and gives it a turn if so.
    fn settle(&mut self, number: u16) {
        let mut marks = std::mem::take(&mut self.queues[usize::from(number)].marks);
        marks.retain(|mark| self.queues[usize::from(mark.other)].popped < mark.until);
        let queue = &self.queues[usize::from(number)];
        let in_order = marks.iter().all(|mark| queue.popped < mark.after);
        let closed = |root: RootId| self.table.iter().any(|entry| entry.root == root && !entry.state.open());
        let open = in_order && !queue.roots().any(closed);
        let queue = &mut self.queues[usize::from(number)];
        queue.marks = marks;
        queue.open = open;
        self.take_turn(number);
    }

    /// Gives an open queue a turn if it has none.
    #[inline]
    fn take_turn(&mut self, number: u16) {
        let queue = &mut self.queues[usize::from(number)];
        if queue.open && !queue.packets.is_empty() && !queue.in_turn {
            queue.in_turn = true;
            self.turn.push_back(number);
        }
    }

    /// A root's state has changed: opens and closes its queues.
    pub fn settle_root(&mut self, root: RootId) {
        for number in 0..self.queues.len() {
            if self.queues[number].serves(root) {
                self.settle(number as u16);
            }
        }
    }

    pub fn push(&mut self, pool: &mut Pool, number: u16, id: PacketId) {
        let (bytes, ingress) = (u32::from(pool.get(id).packet.wire_bytes), pool.get(id).transit.in_port);
        let rank = usize::from(self.ranks[usize::from(ingress)]);
        let queue = &mut self.queues[usize::from(number)];
        if let Some(count) = queue.by_rank.get_mut(rank) {
            *count += bytes;
        }
        if let Some(count) = queue.by_ingress.get_mut(usize::from(ingress)) {
            *count += bytes;
        }
        queue.packets.push(pool, id);
        queue.bytes += bytes;
        queue.pushed += 1;
        self.take_turn(number);
    }

    /// The most urgent of the classes whose isolation queues are in turn, and how many of its queues are.
    pub fn next_class(&mut self, urgency: impl Fn(u8) -> u8) -> Option<(u8, usize)> {
        if self.classes.count_ones() <= 1 {
            return self.has_turn().then(|| (self.classes.trailing_zeros() as u8, self.turn.len()));
        }
        let queues = &mut self.queues;
        self.turn.retain(|number| {
            let queue = &mut queues[usize::from(*number)];
            queue.in_turn = queue.open;
            queue.open
        });
        let of = |number: &u16| self.queues[usize::from(*number)].class();
        let first = self.turn.iter().map(of).min_by_key(|class| (urgency(*class), *class))?;
        Some((first, self.turn.iter().filter(|number| urgency(of(number)) == urgency(first)).count()))
    }

    /// Dequeues a packet from the isolation queue whose turn it is, among those of classes as urgent as `of`. A queue
    /// that has been closed since loses its turn.
    pub fn pop_turn(&mut self, pool: &Pool, of: Option<(u8, &dyn Fn(u8) -> u8)>) -> Option<(u16, PacketId)> {
        loop {
            let number = match of {
                Some((class, urgency)) if self.classes.count_ones() > 1 => {
                    let alike = |number: &u16| urgency(self.queues[usize::from(*number)].class()) == urgency(class);
                    let place = self.turn.iter().position(alike)?;
                    self.turn.remove(place)?
                }
                _ => self.turn.pop_front()?,
            };
            self.queues[usize::from(number)].in_turn = false;
            if !self.queues[usize::from(number)].open {
                continue;
            }
            let Some(id) = self.pop(pool, number) else { continue };
            return Some((number, id));
        }
    }

    /// Dequeues the first packet of a queue, open or not.
    pub fn pop(&mut self, pool: &Pool, number: u16) -> Option<PacketId> {
        let queue = &mut self.queues[usize::from(number)];
        let id = queue.packets.pop(pool)?;
        let slot = pool.get(id);
        let bytes = u32::from(slot.packet.wire_bytes);
        queue.bytes -= bytes;
        if let Some(count) = queue.by_ingress.get_mut(usize::from(slot.transit.in_port)) {
            *count -= bytes;
        }
        if let Some(count) = queue.by_rank.get_mut(usize::from(self.ranks[usize::from(slot.transit.in_port)])) {
            *count -= bytes;
        }
        queue.popped += 1;
        if !self.has_marks {
            self.take_turn(number);
            return Some(id);
        }
        // The packet may have been one that an order mark waits for, or an order mark may now be at the head.
        for other in 0..self.queues.len() as u16 {
            if other == number || self.queues[usize::from(other)].marks.iter().any(|mark| mark.other == number) {
                self.settle(other);
            }
        }
        self.has_marks = self.queues.iter().any(|queue| !queue.marks.is_empty());
        Some(id)
    }

    /// Removes all packets one by one, from open and closed queues, keeping the order within each flow.
    pub fn pop_last_to_first(&mut self, pool: &Pool) -> Option<PacketId> {
        let next =
            |queue: &Queue| !queue.packets.is_empty() && queue.marks.iter().all(|mark| queue.popped < mark.after);
        let number = self.assigned.iter().rev().copied().find(|number| next(&self.queues[usize::from(*number)]))?;
        self.pop(pool, number)
    }

    /// Whether an isolation queue hands on a packet before the output queue sends its next. All take turns, `in_turn`
    /// isolation queues and the output queue.
    pub fn isolated_first(&mut self, output_empty: bool, in_turn: usize) -> bool {
        if output_empty || self.since_output < in_turn {
            self.since_output += 1;
            return self.has_turn();
        }
        self.since_output = 0;
        false
    }

    /// If isolation queues hand on together: how many do so now.
    pub fn hand_on(&mut self, now: Time, output_empty: bool) -> usize {
        if !output_empty && now < self.next_hand_on {
            return 0;
        }
        self.next_hand_on = now + self.packet_time;
        self.turn.len()
    }

    /// Whether this queue, when it is too long, pauses in the name of `root`. A queue of several roots does so only for
    /// the nearest root that holds it, as in a hierarchy: if it paused for all, roots could wait for each other in a
    /// circle for ever. A shared queue pauses for all of its roots.
    pub fn presses(&self, number: u16, root: RootId) -> bool {
        let queue = &self.queues[usize::from(number)];
        let closed = |root: &RootId| self.table.iter().any(|entry| entry.root == *root && !entry.state.open());
        let presser = || queue.roots().find(closed).or_else(|| queue.roots().last());
        queue.serves(root) && (queue.is_shared() || presser() == Some(root))
    }

    /// The limits for packets that come by `ingress` alone.
    pub fn limits_of(&self, ingress: PortId) -> Limits {
        self.limits[usize::from(self.ranks[ingress.index()])]
    }

    /// The limits for packets that come by the shortest link, and by the longest.
    pub fn limits_between(&self) -> (Limits, Limits) {
        (self.limits[0], self.limits[self.limits.len() - 1])
    }

    /// The limits of a queue with these bytes by rank, which holds these neighbours: those of the longest link over
    /// which its packets have come or will. One length holds for all who feed it. If each link had its own, a neighbour
    /// on a short link would not go on before the queue is shorter than a neighbour on a long link ever lets it become.
    fn limits(&self, by_rank: &[u32], held: Option<&PortSet>) -> Limits {
        if by_rank.is_empty() {
            return self.limits[0];
        }
        let waiting = by_rank.iter().rposition(|bytes| *bytes > 0).unwrap_or(0);
        let held = held.iter().flat_map(|held| held.iter()).map(|port| usize::from(self.ranks[port.index()]));
        self.limits[held.fold(waiting, usize::max)]
    }

    /// The limits of an output queue.
    pub fn output_limits(&self, output: &Output) -> Limits {
        self.limits(&output.by_rank, output.claim.as_ref().map(|claim| &claim.upstream.held))
    }

    /// The output queue of a class, if that has had packets.
    #[inline]
    pub fn output(&self, class: u8) -> Option<&Output> {
        self.outputs.iter().find(|output| output.class == class)
    }

    /// After an abdication or a MERGE an output queue has to grow again before it nominates the port.
    pub fn set_floor(&mut self, class: u8) {
        let merging = self.merging_bytes(class);
        if let Some(output) = self.outputs.iter_mut().find(|output| output.class == class) {
            output.floor_bytes = Some(output.bytes + merging);
        }
    }

    /// Bytes of isolated classes in its output queues.
    pub fn output_bytes(&self) -> u64 {
        self.outputs.iter().map(|output| u64::from(output.bytes)).sum()
    }

    /// The port's claim to be a root of a class.
    pub fn claim(&mut self, class: u8) -> Option<&mut Claim> {
        self.outputs.iter_mut().find(|output| output.class == class)?.claim.as_mut()
    }

    /// The limits of a queue that pauses in the name of a root.
    pub fn queue_limits(&self, number: u16, root: RootId) -> Limits {
        let entry = self.table.iter().find(|entry| entry.root == root);
        self.limits(&self.queues[usize::from(number)].by_rank, entry.map(|entry| &entry.upstream.held))
    }

    /// Whether a queue that pauses in the name of a root is too long to resume: for its neighbour at `ingress`, or for
    /// all.
    pub fn is_long(&self, root: RootId, ingress: Option<PortId>) -> bool {
        let limits = |number| ingress.map_or_else(|| self.queue_limits(number, root), |port| self.limits_of(port));
        let filled = (0u16..).zip(&self.queues).filter(|(_, queue)| queue.bytes > 0);
        let pressing = filled.filter(|(number, _)| self.presses(*number, root));
        pressing.into_iter().any(|(number, queue)| queue.bytes > limits(number).resume)
    }

    /// Bytes that arrived by an ingress port and wait in queues that pause in the name of a root, if pauses go by
    /// ingress.
    pub fn ingress_bytes(&self, root: RootId, ingress: PortId) -> u32 {
        let filled = (0u16..).zip(&self.queues).filter(|(_, queue)| queue.bytes > 0);
        let pressing = filled.filter(|(number, _)| self.presses(*number, root));
        pressing.map(|(_, queue)| queue.by_ingress[ingress.index()]).sum()
    }

    /// The roots that hold a queue, each once.
    pub fn holders(&self, queue: &Queue) -> Vec<RootId> {
        let closed = |root: &RootId| self.table.iter().any(|entry| entry.root == *root && !entry.state.open());
        let mut roots: Vec<RootId> = queue.roots().filter(closed).collect();
        roots.sort_unstable();
        roots.dedup();
        roots
    }

    /// Longest queue of a root, in bytes.
    pub fn root_bytes(&self, root: RootId) -> u32 {
        self.queues.iter().filter(|queue| queue.serves(root)).map(|queue| queue.bytes).max().unwrap_or(0)
    }

    /// Removes a root from the table, whose queues must be empty, and frees the queues that serve no other root.
    pub fn remove(&mut self, root: RootId) {
        self.table.retain(|entry| entry.root != root);
        for number in 0..self.queues.len() as u16 {
            let queue = &mut self.queues[usize::from(number)];
            if !queue.serves(root) {
                continue;
            }
            queue.sets.retain(|roots| !roots.contains(&root));
            if queue.sets.is_empty() {
                queue.marks.clear();
                self.assigned.retain(|of| *of != number);
                self.free.push(number);
            }
            self.settle(number);
        }
    }

    /// A packet of a class that came by `ingress` joins the output queue (`by` bytes) or leaves it (negative).
    #[inline]
    pub fn count_output(&mut self, class: u8, ingress: u16, by: i64) {
        let place = match self.outputs.iter().position(|output| output.class == class) {
            Some(place) => place,
            None => {
                let by_rank = vec![0; counted_ranks(&self.limits)];
                self.outputs.push(Output { class, bytes: 0, by_rank, claim: None, floor_bytes: None });
                self.outputs.len() - 1
            }
        };
        let output = &mut self.outputs[place];
        output.bytes = (i64::from(output.bytes) + by) as u32;
        if let Some(count) = output.by_rank.get_mut(usize::from(self.ranks[usize::from(ingress)])) {
            *count = (i64::from(*count) + by) as u32;
        }
        if let Some(floor) = output.floor_bytes {
            let bytes = output.bytes + self.merging_bytes(class);
            let long = bytes > self.output_limits(&self.outputs[place]).resume;
            self.outputs[place].floor_bytes = long.then_some(floor.min(bytes));
        }
    }

    /// The upstream neighbours of its queues for a root, and of its output queues that claim to be roots.
    pub fn upstreams(&mut self) -> impl Iterator<Item = &mut Upstream> {
        let claims = self.outputs.iter_mut().filter_map(|output| output.claim.as_mut());
        self.table.iter_mut().map(|entry| &mut entry.upstream).chain(claims.map(|claim| &mut claim.upstream))
    }

    /// Visits the marks in queues: only distances between their numbers matter.
    fn visit_marks(&mut self, walk: &mut Walk) {
        let popped: Vec<u64> = self.queues.iter().map(|queue| queue.popped).collect();
        for queue in &self.queues {
            walk.same((queue.pushed.wrapping_sub(queue.popped), queue.marks.len()));
            for &Mark { after, other, until } in &queue.marks {
                let left = until.wrapping_sub(popped[usize::from(other)]);
                walk.same((after.wrapping_sub(queue.popped), other, left));
            }
        }
        let more: Vec<u64> = self.queues.iter_mut().map(|queue| walk.counted(&mut queue.popped)).collect();
        for (queue, by) in self.queues.iter_mut().zip(&more) {
            queue.pushed = queue.pushed.wrapping_add(*by);
            for mark in &mut queue.marks {
                mark.after = mark.after.wrapping_add(*by);
                mark.until = mark.until.wrapping_add(more[usize::from(mark.other)]);
            }
        }
    }
}

#[cfg(test)]
mod tests;
