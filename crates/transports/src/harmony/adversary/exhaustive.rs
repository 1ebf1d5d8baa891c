//! A search of all states of one port: how long packets of K virtual links can wait if each arrives up to J packet
//! times after its emission, and a virtual link goes to another message as soon as the last packet of the previous one
//! has left.
//!
//! Time is slotted. A virtual link's emissions are K slots apart within a message; packets of one virtual link arrive
//! in order, one in each slot. All choices that remain (which links emit, which packets arrive, in which order) are
//! tried, so that the longest wait found is the longest possible.

use std::collections::HashSet;

/// A virtual link: the message that has it.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
struct Link {
    /// Slots since its last emission, K at the most: then it may emit.
    since: u32,
    /// For each packet in flight to the port, how long ago it was emitted, the oldest first.
    on_the_way: Vec<u32>,
}

/// The state of the port and of the packets on their way to it.
#[derive(Clone, PartialEq, Eq, Hash)]
struct State {
    links: Vec<Link>,
    /// The links whose packets wait, and how late each packet arrived; in turn, how long ago it was emitted.
    queue: Vec<(usize, u32)>,
    /// In turn: the links that have packets, in the order of their turns.
    turns: Vec<usize>,
}

impl State {
    /// Links are interchangeable, so that states are sorted.
    fn canonical(&self) -> State {
        let first = |link: &usize| self.queue.iter().position(|(of, _)| of == link).unwrap_or(usize::MAX);
        let mut order: Vec<usize> = (0..self.links.len()).collect();
        order.sort_by(|a, b| (first(a), &self.links[*a]).cmp(&(first(b), &self.links[*b])));
        let place = |link: usize| order.iter().position(|of| *of == link).expect("all are there");
        State {
            links: order.iter().map(|&link| self.links[link].clone()).collect(),
            queue: self.queue.iter().map(|&(link, late)| (place(link), late)).collect(),
            turns: self.turns.iter().map(|&link| place(link)).collect(),
        }
    }
}

/// The search.
struct Search {
    k: u32,
    late_max: u32,
    in_turn: bool,
    seen: HashSet<State>,
    todo: Vec<State>,
    /// The longest wait at this port (in turn, the most packets that wait), and the longest wait plus the packet's
    /// lateness.
    wait: u32,
    together: u32,
}

/// In the order of arrival: the longest wait of a packet, and the largest sum of its wait and its lateness.
fn longest(k: u32, late_max: u32) -> (u32, u32) {
    search(k, late_max, false)
}

/// In turn: the most packets that wait, and the longest from a packet's emission until it begins to leave.
fn longest_in_turn(k: u32, late_max: u32) -> (u32, u32) {
    search(k, late_max, true)
}

fn search(k: u32, late_max: u32, in_turn: bool) -> (u32, u32) {
    let links = vec![Link { since: k, ..Link::default() }; k as usize];
    let empty = State { links, queue: Vec::new(), turns: Vec::new() };
    let mut search = Search { k, late_max, in_turn, seen: HashSet::new(), todo: vec![empty], wait: 0, together: 0 };
    while let Some(state) = search.todo.pop() {
        search.emit(state, 0);
    }
    (search.wait, search.together)
}

impl Search {
    /// Tries both: each link from this one on emits, or does not.
    fn emit(&mut self, state: State, link: usize) {
        if link == state.links.len() {
            let all: Vec<usize> = (0..link).collect();
            return self.arrive(&state, &all);
        }
        if state.links[link].since == self.k {
            let mut emitted = state.clone();
            emitted.links[link].since = 0;
            emitted.links[link].on_the_way.push(0);
            self.emit(emitted, link + 1);
        }
        self.emit(state, link + 1);
    }

    /// From each of these links a packet may arrive, in any order; one that is as late as it may be must arrive.
    fn arrive(&mut self, state: &State, from: &[usize]) {
        let due = |link: &usize| state.links[*link].on_the_way.first() == Some(&self.late_max);
        if !from.iter().any(due) {
            self.serve(state.clone());
        }
        for (place, &link) in from.iter().enumerate() {
            if state.links[link].on_the_way.is_empty() {
                continue;
            }
            let mut come = state.clone();
            let late = come.links[link].on_the_way.remove(0);
            if !self.in_turn {
                let wait = come.queue.len() as u32;
                self.wait = self.wait.max(wait);
                self.together = self.together.max(wait + late);
            } else if !come.turns.contains(&link) {
                come.turns.push(link);
            }
            come.queue.push((link, late));
            let others: Vec<usize> =
                from.iter().enumerate().filter(|(other, _)| *other != place).map(|of| *of.1).collect();
            self.arrive(&come, &others);
        }
    }

    /// The first waiting packet leaves, or in turn the first of the link whose turn it is, and a slot passes.
    fn serve(&mut self, mut state: State) {
        if self.in_turn && !state.turns.is_empty() {
            let link = state.turns.remove(0);
            let first = state.queue.iter().position(|of| of.0 == link).expect("it has packets");
            self.together = self.together.max(state.queue.remove(first).1);
            if state.queue.iter().any(|of| of.0 == link) {
                state.turns.push(link);
            }
            self.wait = self.wait.max(state.queue.len() as u32);
        } else if !state.queue.is_empty() {
            state.queue.remove(0);
        }
        for (name, link) in state.links.iter_mut().enumerate() {
            link.since = (link.since + 1).min(self.k);
            link.on_the_way.iter_mut().for_each(|age| *age += 1);
            // All of its message has left: the virtual link goes to another message.
            if link.on_the_way.is_empty() && !state.queue.iter().any(|of| of.0 == name) {
                link.since = self.k;
            }
        }
        // The lateness of a waiting packet no longer matters; in turn, neither does the order among links.
        state.queue.iter_mut().for_each(|of| of.1 = if self.in_turn { of.1 + 1 } else { 0 });
        if self.in_turn {
            let turns = &state.turns;
            state.queue.sort_by_key(|of| (turns.iter().position(|link| *link == of.0), u32::MAX - of.1));
        }
        let state = state.canonical();
        if self.seen.insert(state.clone()) {
            self.todo.push(state);
        }
    }
}

/// `bounds`, case by case: (K - 1) + max((K - 1) ⌈J/K⌉, J).
fn proven(k: u32, late_max: u32) -> u32 {
    k - 1 + ((k - 1) * late_max.div_ceil(k)).max(late_max)
}

#[test]
fn what_is_proven_of_the_order_of_arrival_is_exactly_what_can_happen() {
    // J after no, one and two switches: 0, K - 1, 3 (K - 1). Then K - 1 + J is 2^(i-1) (K - 1).
    for (k, late_max) in [(2, 0), (2, 1), (2, 3), (3, 0), (3, 2), (3, 6), (4, 3)] {
        assert_eq!(longest(k, late_max).0, k - 1 + late_max, "K = {k}, J = {late_max}");
        assert_eq!(proven(k, late_max), k - 1 + late_max);
    }
}

#[test]
fn a_virtual_link_s_reuse_costs_where_lateness_is_no_multiple_of_k_minus_1() {
    // Without reuse it would be K - 1 + J, 5: one reason why the bound on a network of unequal rates is what it is.
    assert_eq!((longest(4, 2).0, proven(4, 2)), (6, 6));
}

#[test]
fn with_two_virtual_links_theorem_3_1_holds_at_three_switches() {
    // One switch holds a packet up by 1, two by 2 together: so the third by 3 at most.
    assert_eq!(longest(2, 0), (1, 1));
    assert_eq!(longest(2, 1), (2, 2));
    assert_eq!(longest(2, 2), (3, 4));
    // At the fourth it is open: if the first three can hold one packet up by 4 together, five may wait there and not
    // four.
    assert_eq!(longest(2, 4).0, 5);
}

#[test]
fn in_turn_a_packet_begins_to_leave_exactly_k_minus_1_after_it_might_have_come_at_the_latest() {
    // J after no, one, two switches: 0, K - 1, 2 (K - 1). So i (K - 1) after its emission at the i-th, and as many
    // wait.
    for (k, late_max) in [(2, 0), (2, 1), (2, 2), (2, 3), (3, 0), (3, 2), (3, 4), (4, 0), (4, 3)] {
        assert_eq!(longest_in_turn(k, late_max), (k - 1 + late_max, k - 1 + late_max), "K = {k}, J = {late_max}");
    }
}
