//! The arbiter: who sends when, and on which path.
//!
//! Time is divided into slots. For each slot, some time ahead, the arbiter goes through the waiting requests, oldest
//! first, and starts every message whose sender, receiver and a path between them are free for its whole duration. The
//! result is a maximal matching, since no request that still waits could have begun in this slot. It is a state machine
//! of its own, without packets.
//!
//! It reconsiders a request no sooner than it might succeed: when the last train that blocked it, on the path that
//! becomes free first, has passed. So the cost of a slot depends on what can begin in it, and not on the number of
//! waiting requests.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use node::FlowMap;
use rustc_hash::FxHashMap;
use units::{Duration, FlowId, HostId, LinkId, PortId, SwitchId, Time};

use super::Granularity;
use super::calendar::{Calendar, Train};
use super::params::{Params, Passage};

/// A sender's request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, node::State)]
pub(super) struct Request {
    pub flow: FlowId,
    pub src: HostId,
    pub dst: HostId,
    pub attempt: u16,
    /// The first packet that needs slots, and the number of packets.
    #[state(steps)]
    pub first: u32,
    #[state(rest(self.first))]
    pub packets: u32,
    /// Whether it can no longer be rejected.
    pub admitted: bool,
    /// Whether packets were lost on the flow's last path.
    pub lost: bool,
}

/// An answer of the arbiter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, node::State)]
pub(super) enum Answer {
    Allocation(Allocation),
    Reject { flow: FlowId, src: HostId, attempt: u16 },
    Wait { flow: FlowId, src: HostId, attempt: u16 },
}

/// Slots for packets from `first` on, and their path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, node::State)]
pub(super) struct Allocation {
    #[state(flow)]
    pub flow: FlowId,
    pub src: HostId,
    pub dst: HostId,
    pub attempt: u16,
    #[state(steps)]
    pub first: u32,
    pub packets: u32,
    /// When the first packet leaves.
    pub at: Time,
    /// Slots from one packet to the next.
    pub stride: u32,
    /// Output ports, one byte for each switch, first switch lowest.
    pub path: u64,
}

#[derive(node::State)]
#[state(first(walk.same(walk.now().ps() % self.params.cycle().ps())))]
pub(super) struct Arbiter {
    #[state(built("settings"))]
    params: Params,
    /// By link.
    calendars: Vec<Calendar>,
    /// By link: until when it is avoided.
    #[state(when(self.avoiding_until > walk.now(), expired))]
    avoided: Vec<Time>,
    #[state(expired)]
    avoiding_until: Time,
    #[state(given(&self.params))]
    waiting: FlowMap<Waiting>,
    /// When to reconsider which request: slot, then turn, then arrival.
    #[state(each((ticks(self.params.slot, time), (if_any(ticks(self.params.slot, time)), turn("arrival")), _)))]
    agenda: BinaryHeap<Reverse<(u64, Turn, u32)>>,
    #[state(turn("arrival"))]
    arrivals: u64,
    #[state(skip("a cache of what routes say"))]
    pairs: FxHashMap<(HostId, HostId), Pair>,
    #[state(given(&self.params.patience))]
    answered: Answered,
    pub counts: Counts,
}

/// Sort key, least first: when it was last given a slot (0 if messages get all of theirs at once), then arrival.
type Turn = (u64, u64);

#[derive(Default, node::State)]
#[state(counts)]
pub(super) struct Counts {
    pub allocations: u64,
    pub rejects: u64,
    /// Number of times that a request found no path in a slot although its hosts were free.
    pub path_blocked: u64,
    pub duplicates: u64,
}

#[derive(node::State)]
#[state(given(Params))]
struct Waiting {
    request: Request,
    #[state(when(self.request.admitted, past, later(given.delta_admission, time)))]
    arrival: Time,
    #[state((if_any(ticks(given.slot, time)), turn("arrival")))]
    turn: Turn,
}

/// Values that are the same for all messages between two hosts.
#[derive(Clone, Copy, node::Saved)]
struct Pair {
    stride: u64,
    /// How a packet that leaves at time 0 passes the last link; `None` if that depends on the path.
    last: Option<Passage>,
}

/// A search for a path of one message from one start.
struct Search<'a> {
    arbiter: &'a Arbiter,
    now: Time,
    dst: HostId,
    /// From the first packet's start to the last's.
    span: Duration,
    period: Duration,
    avoid: bool,
    /// When something that blocks it will have passed, as a start at the sender.
    soonest: Time,
    start: Time,
    dead_ends: Vec<(SwitchId, Time)>,
    taken: Vec<(LinkId, Train)>,
}

impl Arbiter {
    pub fn new(params: Params) -> Arbiter {
        let links = params.fabric.links.len();
        Arbiter {
            calendars: vec![Calendar::default(); links],
            avoided: vec![Time::ZERO; links],
            avoiding_until: Time::ZERO,
            waiting: FlowMap::default(),
            agenda: BinaryHeap::new(),
            arrivals: 0,
            pairs: FxHashMap::default(),
            answered: Answered::default(),
            counts: Counts::default(),
            params,
        }
    }

    /// Handles a sender's request. A repetition with a higher attempt means that the sender got no answer; with the
    /// same attempt, the network has duplicated the packet.
    pub fn request(&mut self, now: Time, request: Request) -> Option<Answer> {
        let Request { flow, src, attempt, .. } = request;
        let possible =
            src.0 < self.params.fabric.hosts && request.dst.0 < self.params.fabric.hosts && src != request.dst;
        if !possible || request.packets == 0 {
            return None;
        }
        if let Some(slot) = self.waiting.slot(flow) {
            let (_, waiting) = self.waiting.get_mut(slot).expect("just found");
            if attempt <= waiting.request.attempt {
                self.counts.duplicates += 1;
                return None;
            }
            // Allocated slots stay allocated. A lost allocation shows in the packets missing at the receiver.
            waiting.request.attempt = attempt;
            return Some(Answer::Wait { flow, src, attempt });
        }
        let before = self.answered.get(flow);
        if before.is_some_and(|before| attempt <= before.attempt) {
            self.counts.duplicates += 1;
            return None;
        }
        if let Some(path) = before.and_then(|before| before.path).filter(|_| request.lost) {
            self.avoid(now, src, path);
        }
        self.arrivals += 1;
        let turn = (0, self.arrivals);
        let slot = self.waiting.insert(flow, Waiting { request, arrival: now, turn });
        let (first, lead) = ((now + self.params.lead).ps(), self.params.slot.ps());
        self.agenda.push(Reverse((first.div_ceil(lead), turn, slot)));
        None
    }

    /// When to call [`Arbiter::decide`].
    pub fn next_decision(&self) -> Time {
        let at = |Reverse((slot, ..)): &Reverse<(u64, Turn, u32)>| self.slot_at(*slot) - self.params.lead;
        self.agenda.peek().map_or(Time::MAX, at)
    }

    /// Decides about the slots whose time has come.
    pub fn decide(&mut self, now: Time, answers: &mut VecDeque<(Time, Answer)>) {
        let slot = (now + self.params.lead).ps() / self.params.slot.ps();
        let mut due: Vec<(Turn, u32)> = Vec::new();
        while let Some(&Reverse((at, turn, waiting))) = self.agenda.peek() {
            if at > slot {
                break;
            }
            self.agenda.pop();
            due.push((turn, waiting));
        }
        due.sort_unstable();
        for (_, waiting) in due {
            if let Some(answer) = self.look_at(now, slot, waiting) {
                answers.push_back((now + self.params.processing, answer));
            }
        }
    }

    fn look_at(&mut self, now: Time, slot: u64, index: u32) -> Option<Answer> {
        let (_, waiting) = self.waiting.get(index)?;
        let Waiting { request, arrival, turn } = *waiting;
        let Request { flow, src, attempt, .. } = request;
        match self.start(now, slot, &request) {
            Ok(allocation) => {
                self.counts.allocations += 1;
                let left = request.packets - allocation.packets;
                if left == 0 {
                    self.answered.note(now, self.params.patience, flow, Said { attempt, path: Some(allocation.path) });
                    self.waiting.remove(index);
                } else {
                    let (_, waiting) = self.waiting.get_mut(index).expect("just seen");
                    waiting.request.first += allocation.packets;
                    waiting.request.packets = left;
                    waiting.request.admitted = true;
                    waiting.turn = (slot, turn.1);
                    self.agenda.push(Reverse((slot + 1, waiting.turn, index)));
                }
                Some(Answer::Allocation(allocation))
            }
            Err(next) => {
                let decided = self.slot_at(next) - self.params.lead;
                if !request.admitted && decided.since(arrival) > self.params.delta_admission {
                    self.counts.rejects += 1;
                    self.answered.note(now, self.params.patience, flow, Said { attempt, path: None });
                    self.waiting.remove(index);
                    return Some(Answer::Reject { flow, src, attempt });
                }
                self.agenda.push(Reverse((next, turn, index)));
                None
            }
        }
    }

    /// Starts a message in `slot`, or returns the earliest slot in which it might be possible.
    fn start(&mut self, now: Time, slot: u64, request: &Request) -> Result<Allocation, u64> {
        let Request { flow, src, dst, attempt, first, .. } = *request;
        let packets = match self.params.granularity {
            Granularity::Message => request.packets,
            Granularity::Packet => 1,
        };
        let Pair { stride, last } = self.pair(src, dst);
        if !self.params.may_begin(src, dst, stride, slot) {
            return Err(slot + 1);
        }
        let period = self.params.slot * stride;
        let span = period * self.params.slot_of(src, dst, stride, self.slot_at(slot), u64::from(packets) - 1);
        let lane = self.params.slot / self.params.lanes;
        let (up, down) = (self.params.fabric.uplink(src), fabric::Fabric::reverse(self.params.fabric.uplink(dst)));
        let mut search = Search {
            arbiter: self,
            now,
            dst,
            span,
            period,
            avoid: self.avoiding_until > now,
            soonest: Time::MAX,
            start: Time::ZERO,
            dead_ends: Vec::new(),
            taken: Vec::new(),
        };
        let mut hosts_free = false;
        // Every phase that such a train can have.
        for at in 0..self.params.lanes * stride {
            search.start = self.slot_at(slot) + lane * at;
            let passage = self.params.first(src, search.start);
            let Some(train) = search.fits(up, passage) else { continue };
            // The receiver's link is the most likely to be busy, so it is checked first.
            if let Some(last) = last {
                let shift = search.start - Time::ZERO;
                let passage = Passage { begin: last.begin + shift, gone: last.gone + shift };
                if search.fits(down, passage).is_none() {
                    continue;
                }
            }
            hosts_free = true;
            search.dead_ends.clear();
            search.taken.push((up, train));
            let mut path = search.path(up, passage);
            if path.is_none() && std::mem::take(&mut search.avoid) {
                search.dead_ends.clear();
                path = search.path(up, passage);
                search.avoid = true;
            }
            if let Some(path) = path {
                let (at, taken) = (search.start, search.taken);
                for (link, train) in taken {
                    self.calendars[link.index()].enter(now, train);
                }
                return Ok(Allocation { flow, src, dst, attempt, first, packets, at, stride: stride as u32, path });
            }
            search.taken.clear();
        }
        let soonest = search.soonest;
        self.counts.path_blocked += u64::from(hosts_free);
        // A start is up to `stride` slots after the slot in which it is found.
        let next = (soonest.ps() / self.params.slot.ps()).saturating_sub(stride - 1);
        Err(next.max(slot + 1))
    }

    fn slot_at(&self, slot: u64) -> Time {
        Time::from_ps(slot * self.params.slot.ps())
    }

    /// Computes what all paths between two hosts have in common, once.
    fn pair(&mut self, src: HostId, dst: HostId) -> Pair {
        if let Some(&pair) = self.pairs.get(&(src, dst)) {
            return pair;
        }
        let (params, fabric) = (&self.params, &self.params.fabric);
        let up = fabric.uplink(src);
        let mut slowest = params.transmission(up);
        let mut level = vec![(up, params.first(src, Time::ZERO))];
        let mut alike = true;
        while let Some(switch) = level.first().and_then(|&(link, _)| fabric.as_switch(fabric.link(link).to)) {
            let mut onward: Vec<(LinkId, Passage)> = Vec::new();
            debug_assert!(params.routes.distance(switch, dst).is_some());
            for &(from, passage) in &level {
                let Some(switch) = fabric.as_switch(fabric.link(from).to) else { continue };
                for &port in params.routes.next(switch, dst) {
                    let link = fabric.out_link(switch, port);
                    slowest = slowest.max(params.transmission(link));
                    onward.push((link, params.next(from, passage, link)));
                }
            }
            alike &= onward.windows(2).all(|two| two[0].1 == two[1].1);
            onward.sort_unstable_by_key(|&(link, passage)| (link, passage.begin));
            onward.dedup_by_key(|(link, _)| *link);
            level = onward;
        }
        let pair = Pair { stride: params.stride(slowest), last: level.first().map(|of| of.1).filter(|_| alike) };
        self.pairs.insert((src, dst), pair);
        pair
    }

    /// Links between switches of a path on which packets were lost are avoided for a while. (Those of hosts can't be.)
    fn avoid(&mut self, now: Time, src: HostId, path: u64) {
        let until = now + self.params.avoid_for;
        let fabric = &self.params.fabric;
        let mut switch = Some(fabric.rack_of(src));
        for hop in 0..8 {
            let Some(at) = switch else { break };
            let link = fabric.out_link(at, PortId((path >> (8 * hop)) as u32 & 0xFF));
            switch = fabric.as_switch(fabric.link(link).to);
            if switch.is_some() {
                self.avoided[link.index()] = until;
            }
        }
        self.avoiding_until = until;
    }
}

impl Search<'_> {
    /// The train of this message on a link that its first packet passes at this time, if nothing blocks it.
    fn fits(&mut self, link: LinkId, passage: Passage) -> Option<Train> {
        let Passage { begin, gone } = passage;
        let train = Train { begin, until: gone + self.span, period: self.period, busy: passage.busy() };
        match self.arbiter.calendars[link.index()].blocked_until(&train) {
            None => Some(train),
            Some(until) => {
                // As a start at the sender.
                let start = Time::from_ps(until.ps().saturating_sub((begin - self.start).ps()));
                self.soonest = self.soonest.min(start);
                None
            }
        }
    }

    /// A path after `from`: the first in port order. Reservations then lie together, so that a link free at one switch
    /// is free at the others too (packing, as in telephone networks with Clos switches).
    fn path(&mut self, from: LinkId, passage: Passage) -> Option<u64> {
        let (arbiter, params) = (self.arbiter, &self.arbiter.params);
        let switch = params.fabric.as_switch(params.fabric.link(from).to)?;
        if self.dead_ends.contains(&(switch, passage.begin)) {
            return None;
        }
        for &port in params.routes.next(switch, self.dst) {
            let link = params.fabric.out_link(switch, port);
            if self.avoid && arbiter.avoided[link.index()] > self.now {
                continue;
            }
            let passage = params.next(from, passage, link);
            let Some(train) = self.fits(link, passage) else { continue };
            self.taken.push((link, train));
            if params.fabric.as_host(params.fabric.link(link).to).is_some() {
                return Some(u64::from(port.0));
            }
            if let Some(rest) = self.path(link, passage) {
                return Some(rest << 8 | u64::from(port.0));
            }
            self.taken.pop();
        }
        self.dead_ends.push((switch, passage.begin));
        None
    }
}

/// Answers about flows that no longer wait, kept for one to two spans: a duplicate of a request must not be taken for a
/// new one.
#[derive(Default, node::State)]
#[state(given(Duration))]
struct Answered {
    young: FxHashMap<FlowId, Said>,
    old: FxHashMap<FlowId, Said>,
    #[state(later(*given, expired))]
    turned: Time,
}

#[derive(Clone, Copy, node::State)]
struct Said {
    attempt: u16,
    path: Option<u64>,
}

impl Answered {
    fn note(&mut self, now: Time, span: Duration, flow: FlowId, said: Said) {
        if now.since(self.turned) >= span {
            self.old = std::mem::take(&mut self.young);
            self.turned = now;
        }
        self.young.insert(flow, said);
    }

    fn get(&self, flow: FlowId) -> Option<Said> {
        self.young.get(&flow).or_else(|| self.old.get(&flow)).copied()
    }
}

#[cfg(test)]
mod tests;
