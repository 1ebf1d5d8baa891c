//! The progress of some ranks of a job: which steps have ended, and which may begin.

use std::cmp::Reverse;
use std::collections::hash_map::Entry;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::sync::Arc;

use units::{Duration, HostId, Rate, Time};

use crate::{Graph, Message, MessageId, Rank, StepId, Work};

/// A computation that has ended, or a message that has arrived at another rank of its host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Done {
    /// The computation, or the step that sent the message.
    pub step: StepId,
    /// When it began. A computation may have waited for its rank, a message for its rank's link.
    pub begin: Time,
    /// When it ended.
    pub end: Time,
}

/// Where ranks are, and how those of one host reach each other: each has a link of its own into the host.
#[derive(Clone, PartialEq, Debug)]
pub struct Placement {
    /// By rank: its host.
    pub host_of: Vec<HostId>,
    /// Rate of a rank's link into its host.
    pub rate: Rate,
    /// Time from when the last byte of a message has left until it has arrived.
    pub delay: Duration,
}

impl Placement {
    /// Whether a message stays within a host.
    #[inline]
    pub fn is_local(&self, graph: &Graph, message: MessageId) -> bool {
        let message = graph.message(message);
        self.host_of[message.from.index()] == self.host_of[message.to.index()]
    }
}

/// The progress of a job's ranks: those of one host, or all.
///
/// Whoever drives it passes on what happens, in order of time, and starts the messages that are put into `out`. Of
/// those on a connection it also says when their last byte has left ([`Progress::left_host`]). Messages between ranks
/// of one host are not put there: they arrive here by themselves.
#[derive(Clone)]
pub struct Progress {
    graph: Arc<Graph>,
    placement: Arc<Placement>,
    own: Vec<Own>,
    /// By step of these ranks: how many steps it still waits for; for a receive, its message counts as one more.
    missing: Vec<u32>,
    /// The sum of these.
    all_missing: u64,
    /// Computations, delays and messages within a host, by their ends.
    timers: BinaryHeap<Reverse<(Time, StepId)>>,
    /// Steps that have just ended.
    ended: VecDeque<StepId>,
    left: u64,
    done: Vec<Done>,
    /// By connection on which a message is leaving: those that are due after it.
    leaving: HashMap<u32, VecDeque<MessageId>>,
}

#[derive(Clone)]
struct Own {
    /// Its first step, and its place in `missing`.
    first: u32,
    place: u32,
    /// When the computation under way began, if one is.
    busy: Option<Time>,
    /// Computations that could begin, by when they could.
    ready: BinaryHeap<Reverse<(Time, StepId)>>,
    /// Until when its link into its host is busy.
    link_busy: Time,
}

impl Progress {
    /// These ranks before anything has happened; `ranks` ascend, and are all of their hosts.
    pub fn new(graph: Arc<Graph>, placement: Arc<Placement>, ranks: &[Rank]) -> Progress {
        let (mut own, mut missing) = (Vec::with_capacity(ranks.len()), Vec::new());
        for &rank in ranks {
            let steps = graph.of(rank);
            let (first, place) = (steps.start, missing.len() as u32);
            own.push(Own { first, place, busy: None, ready: BinaryHeap::new(), link_busy: Time::ZERO });
            missing.extend(steps.map(|step| {
                let message = matches!(graph.step(StepId(step)).work, Work::Receive(_));
                graph.needs(StepId(step)) + u32::from(message)
            }));
        }
        let left = missing.len() as u64;
        let all_missing = missing.iter().map(|&missing| u64::from(missing)).sum();
        let (timers, ended, done) = (BinaryHeap::new(), VecDeque::new(), Vec::new());
        Progress { graph, placement, own, missing, all_missing, timers, ended, left, done, leaving: HashMap::new() }
    }

    /// How many steps of these ranks have not ended.
    pub fn left(&self) -> u64 {
        self.left
    }

    /// When the next computation, delay or message within a host ends.
    #[inline]
    pub fn next_at(&self) -> Time {
        self.timers.peek().map_or(Time::MAX, |next| next.0.0)
    }

    /// How many steps and messages the steps of these ranks wait for, all together, and how many messages are leaving
    /// on connections or wait there.
    pub fn waiting(&self) -> (u64, usize) {
        #[expect(clippy::disallowed_methods, reason = "a sum has no order")]
        let behind = self.leaving.values().map(|waiting| 1 + waiting.len()).sum();
        (self.all_missing, behind)
    }

    /// What has ended of computations and of messages within a host. Messages are here before they have arrived.
    pub fn done(&self) -> &[Done] {
        &self.done
    }

    /// The computations among these, the last one first.
    pub fn computed_back(&self) -> impl Iterator<Item = Done> {
        let computed = |done: &&Done| matches!(self.graph.step(done.step).work, Work::Compute(_));
        self.done.iter().rev().filter(computed).copied()
    }

    /// The job begins.
    pub fn begin(&mut self, now: Time, out: &mut Vec<MessageId>) {
        for own in 0..self.own.len() {
            let (first, place) = (self.own[own].first, self.own[own].place);
            let until = self.own.get(own + 1).map_or(self.missing.len() as u32, |next| next.place);
            for at in place..until {
                if self.missing[at as usize] == 0 {
                    self.start(StepId(first + at - place), now, out);
                }
            }
        }
        self.settle(now, out);
    }

    /// A message to one of these ranks has arrived whole.
    pub fn arrived(&mut self, message: MessageId, now: Time, out: &mut Vec<MessageId>) {
        self.one_less(self.graph.message(message).receive, now, out);
        self.settle(now, out);
    }

    /// The sender of a message knows that it has arrived.
    pub fn sent(&mut self, message: MessageId, now: Time, out: &mut Vec<MessageId>) {
        self.ended.push_back(self.graph.message(message).send);
        self.settle(now, out);
    }

    /// Time has come to [`Progress::next_at`].
    pub fn wake(&mut self, now: Time, out: &mut Vec<MessageId>) {
        while let Some(&Reverse((at, step))) = self.timers.peek()
            && at <= now
        {
            self.timers.pop();
            self.ended.push_back(step);
            match self.graph.step(step).work {
                Work::Compute(_) => {
                    let own = self.own_of(step);
                    let begin = self.own[own].busy.take().expect("a computation that ends has begun");
                    self.done.push(Done { step, begin, end: at });
                    if let Some(Reverse((_, next))) = self.own[own].ready.pop() {
                        self.compute(own, next, at);
                    }
                }
                Work::Send(message) => self.one_less(self.graph.message(message).receive, at, out),
                Work::Delay(_) | Work::Receive(_) => {}
            }
            self.settle(at, out);
        }
    }

    /// Completes steps that have ended, and begins steps that waited for them.
    fn settle(&mut self, now: Time, out: &mut Vec<MessageId>) {
        let graph = Arc::clone(&self.graph);
        while let Some(step) = self.ended.pop_front() {
            self.left -= 1;
            for &next in graph.after(step) {
                self.one_less(next, now, out);
            }
        }
    }

    fn one_less(&mut self, step: StepId, now: Time, out: &mut Vec<MessageId>) {
        let own = &self.own[self.own_of(step)];
        let place = own.place + step.0 - own.first;
        let missing = &mut self.missing[place as usize];
        *missing -= 1;
        self.all_missing -= 1;
        if self.missing[place as usize] == 0 {
            self.start(step, now, out);
        }
    }

    fn start(&mut self, step: StepId, now: Time, out: &mut Vec<MessageId>) {
        match self.graph.step(step).work {
            Work::Compute(_) => {
                let own = self.own_of(step);
                match self.own[own].busy {
                    Some(_) => self.own[own].ready.push(Reverse((now, step))),
                    None => self.compute(own, step, now),
                }
            }
            Work::Delay(time) if time.ps() == 0 => self.ended.push_back(step),
            Work::Delay(time) => self.timers.push(Reverse((now + time, step))),
            Work::Send(message) if self.placement.is_local(&self.graph, message) => {
                self.send_within(step, message, now)
            }
            Work::Send(message) => self.send(message, out),
            Work::Receive(_) => self.ended.push_back(step),
        }
    }

    /// A message goes to another host, when its connection is free.
    fn send(&mut self, message: MessageId, out: &mut Vec<MessageId>) {
        let connection = self.graph.message(message).connection;
        if connection == Message::ALONE {
            return out.push(message);
        }
        match self.leaving.entry(connection) {
            Entry::Occupied(mut leaving) => leaving.get_mut().push_back(message),
            Entry::Vacant(free) => {
                free.insert(VecDeque::new());
                out.push(message);
            }
        }
    }

    /// The last byte of a message on a connection has left its host: the next may.
    pub fn left_host(&mut self, message: MessageId, out: &mut Vec<MessageId>) {
        let connection = self.graph.message(message).connection;
        if let Entry::Occupied(mut leaving) = self.leaving.entry(connection) {
            match leaving.get_mut().pop_front() {
                Some(next) => out.push(next),
                None => drop(leaving.remove()),
            }
        }
    }

    /// A message goes to another rank of its host.
    fn send_within(&mut self, step: StepId, message: MessageId, now: Time) {
        let Placement { rate, delay, .. } = *self.placement;
        let bytes = self.graph.message(message).bytes;
        let own = self.own_of(step);
        let link_busy = &mut self.own[own].link_busy;
        let begin = now.max(*link_busy);
        *link_busy = begin + rate.transmit(bytes);
        let end = *link_busy + delay;
        self.done.push(Done { step, begin, end });
        self.timers.push(Reverse((end, step)));
    }

    fn compute(&mut self, own: usize, step: StepId, now: Time) {
        let Work::Compute(time) = self.graph.step(step).work else { unreachable!("only computations wait for a rank") };
        self.own[own].busy = Some(now);
        self.timers.push(Reverse((now + time, step)));
    }

    fn own_of(&self, step: StepId) -> usize {
        self.own.partition_point(|own| own.first <= step.0) - 1
    }
}

#[cfg(test)]
mod tests;
