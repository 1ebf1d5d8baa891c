//! The progress of some ranks of a job: which steps have ended, and which may begin.

use std::cmp::Reverse;
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BinaryHeap, HashMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use units::{Duration, HostId, Rate, Time};

use crate::graph::ring::What;
use crate::graph::{Next, StepLocation};
use crate::{Graph, Message, MessageId, Rank, StepId, Summed, Work};

/// A computation that has ended, or a message that has arrived at another rank of its host.
#[derive(Clone, Copy, PartialEq, Eq, Debug, state::Saved)]
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
        self.is_within(&graph.message(message))
    }

    pub(crate) fn is_within(&self, message: &Message) -> bool {
        self.host_of[message.from.index()] == self.host_of[message.to.index()]
    }
}

/// The progress of a job's ranks: those of one host, or all.
///
/// Its driver passes on the events, in order of time, and starts the messages that are put into `out`. Of those on a
/// connection it also says when their last byte has left ([`Progress::left_host`]). Messages between ranks of one host
/// are not put there: they arrive here by themselves.
///
/// Of a rank's part of a ring nothing is kept before the first thing happens there, and nothing after the last: then it
/// is the rounds in which something has come and something is missing.
#[derive(Clone, state::Saved)]
pub struct Progress {
    #[state(built("it never changes"))]
    job: Job,
    state: State,
}

/// The constant part: the job, and where its ranks are.
#[derive(Clone)]
struct Job {
    graph: Arc<Graph>,
    placement: Arc<Placement>,
}

#[derive(Clone, state::Saved)]
struct State {
    own: Vec<Own>,
    /// By single step of these ranks: how many steps it still waits for; for a receive, its message counts as one more.
    missing: Vec<u32>,
    /// By segment of these ranks: how many steps its rank waits for before it sends there.
    closed: Vec<u32>,
    /// By segment of these ranks, while something is under way there.
    under_way: Vec<Option<Box<UnderWay>>>,
    /// The sum of all that steps wait for.
    all_missing: u64,
    /// Computations, delays and messages within a host, by their ends.
    timers: BinaryHeap<Reverse<(Time, StepId)>>,
    /// Steps that have just ended.
    ended: VecDeque<At>,
    left: u64,
    done: Vec<Done>,
    /// By connection on which a message is leaving: those that are due after it.
    leaving: HashMap<u32, VecDeque<MessageId>>,
    /// Sums over steps, of a job whose steps are not noted one by one.
    summed: Option<Box<Summed>>,
}

#[derive(Clone, state::Saved)]
struct Own {
    rank: Rank,
    /// Its first step.
    first: u32,
    /// Its first single step, and the place of that in `missing`.
    single: u32,
    place: u32,
    /// Its segments, and the place of the first in `closed`.
    segments: Range<u32>,
    place_of_segments: u32,
    /// When the computation under way began, if one is.
    busy: Option<Time>,
    /// Computations that could begin, by when they could.
    ready: BinaryHeap<Reverse<(Time, StepId)>>,
    /// Until when its link into its host is busy.
    link_busy: Time,
}

/// A step of these ranks.
#[derive(Clone, Copy, state::Saved)]
struct At {
    own: u32,
    place: StepLocation,
}

/// A segment in which something is under way.
#[derive(Clone, Default, state::Saved)]
struct UnderWay {
    /// By round whose message has not left: which of the things that it waits for have come, if one has.
    came: BTreeMap<u32, u8>,
    /// Steps that must still end before the segment counts as ended.
    until_end: u32,
    /// How many of all have not.
    left: u32,
}

/// The part that is sent in a round was received in the round before.
const RECEIVED: u8 = 1;
/// The message that had the same slot before has arrived.
const SLOT: u8 = 2;

impl Progress {
    /// These ranks before anything has happened; `ranks` ascend, and are all of their hosts.
    pub fn new(graph: Arc<Graph>, placement: Arc<Placement>, ranks: &[Rank]) -> Progress {
        let (mut own, mut missing, mut closed) = (Vec::with_capacity(ranks.len()), Vec::new(), Vec::new());
        let (mut left, mut all_missing) = (0, 0);
        for &rank in ranks {
            let (singles, segments) = (graph.singles_of(rank), graph.segments_of(rank));
            own.push(Own {
                rank,
                first: graph.of(rank).start,
                single: singles.start,
                place: missing.len() as u32,
                segments: segments.clone(),
                place_of_segments: closed.len() as u32,
                busy: None,
                ready: BinaryHeap::new(),
                link_busy: Time::ZERO,
            });
            left += graph.of(rank).len() as u64;
            missing.extend(singles.map(|at| {
                let message = matches!(graph.single(at).work, Work::Receive(_));
                graph.waits(at) + u32::from(message)
            }));
            for segment in segments {
                let (segment, ring) = graph.segment(segment);
                closed.push(segment.entry);
                let slots = ring.rounds().saturating_sub(graph.slots(ring));
                let received = u64::from(ring.rounds()) + u64::from(ring.rounds() - ring.turns);
                all_missing += u64::from(segment.entry) + received + u64::from(slots);
            }
        }
        all_missing += missing.iter().map(|&missing| u64::from(missing)).sum::<u64>();
        let state = State {
            under_way: vec![None; closed.len()],
            own,
            missing,
            closed,
            all_missing,
            timers: BinaryHeap::new(),
            ended: VecDeque::new(),
            left,
            done: Vec::new(),
            leaving: HashMap::new(),
            summed: None,
        };
        Progress { job: Job { graph, placement }, state }
    }

    /// The same without notes of single messages and steps: [`Progress::summed`] has their sums.
    #[must_use]
    pub fn in_sum(mut self) -> Progress {
        self.state.summed = Some(Box::new(Summed::new(&self.job.graph, self.state.own.iter().map(|own| own.rank))));
        self
    }

    /// Sums over all steps, of a job that was begun by [`Progress::in_sum`].
    pub fn summed(&self) -> Option<&Summed> {
        self.state.summed.as_deref()
    }

    /// How many steps of these ranks have not ended.
    pub fn left(&self) -> u64 {
        self.state.left
    }

    /// When the next computation, delay or message within a host ends.
    #[inline]
    pub fn next_at(&self) -> Time {
        self.state.timers.peek().map_or(Time::MAX, |next| next.0.0)
    }

    /// How many steps and messages the steps of these ranks wait for, all together, and how many messages are leaving
    /// on connections or wait there.
    pub fn waiting(&self) -> (u64, usize) {
        #[expect(clippy::disallowed_methods, reason = "a sum has no order")]
        let behind = self.state.leaving.values().map(|waiting| 1 + waiting.len()).sum();
        (self.state.all_missing, behind)
    }

    /// Computations that have ended and, unless the job is noted in sum, messages within a host. Messages are here
    /// before they have arrived.
    pub fn done(&self) -> &[Done] {
        &self.state.done
    }

    /// The computations among these, the last one first.
    pub fn computed_back(&self) -> impl Iterator<Item = Done> {
        let computed = |done: &&Done| matches!(self.job.graph.step(done.step).work, Work::Compute(_));
        self.state.done.iter().rev().filter(computed).copied()
    }

    /// The job begins.
    pub fn begin(&mut self, now: Time, out: &mut Vec<MessageId>) {
        self.state.begin(&self.job, now, out);
    }

    /// A message to one of these ranks has arrived whole.
    pub fn arrived(&mut self, message: MessageId, now: Time, out: &mut Vec<MessageId>) {
        self.state.receive(&self.job, message, now, out);
        self.state.settle(&self.job, now, out);
    }

    /// The sender of a message knows that it has arrived.
    pub fn sent(&mut self, message: MessageId, now: Time, out: &mut Vec<MessageId>) {
        let at = self.state.sender(&self.job, message);
        self.state.ended.push_back(at);
        self.state.settle(&self.job, now, out);
    }

    /// Time has come to [`Progress::next_at`].
    pub fn wake(&mut self, now: Time, out: &mut Vec<MessageId>) {
        self.state.wake(&self.job, now, out);
    }

    /// The last byte of a message on a connection has left its host: the next may.
    pub fn left_host(&mut self, message: MessageId, now: Time, out: &mut Vec<MessageId>) {
        self.state.left_host(&self.job, message, now, out);
    }
}

impl State {
    fn begin(&mut self, job: &Job, now: Time, out: &mut Vec<MessageId>) {
        let graph = &*job.graph;
        for own in 0..self.own.len() as u32 {
            let Own { rank, segments, .. } = self.own[own as usize].clone();
            let singles = graph.singles_of(rank);
            // Single steps lie between segments.
            let mut at = singles.start;
            let mut step = graph.of(rank).start;
            for number in segments.map(Some).chain([None]) {
                let segment = number.map(|number| graph.segment(number));
                let until = segment.map_or(singles.end, |of| of.0.singles);
                for single in at..until {
                    if self.missing[self.place_of(own, single)] == 0 {
                        self.start(job, At { own, place: StepLocation::Single(single) }, StepId(step), now, out);
                    }
                    step += 1;
                }
                at = until;
                if let Some((number, (segment, ring))) = number.zip(segment) {
                    if segment.entry == 0 {
                        self.enter(job, own, number, now, out);
                    }
                    step += ring.steps();
                }
            }
        }
        self.settle(job, now, out);
    }

    /// The step that sends a message.
    fn sender(&self, job: &Job, message: MessageId) -> At {
        match job.graph.find_message(message) {
            Err(_) => self.at(job, job.graph.message(message).send),
            Ok((ring, round, i)) => {
                let segment = job.graph.segment_at(job.graph.ring(ring), i);
                let own = self.own_of(job.graph.segment(segment).0.first);
                At { own, place: StepLocation::Ring(segment, round, What::Send) }
            }
        }
    }

    fn receive(&mut self, job: &Job, message: MessageId, now: Time, out: &mut Vec<MessageId>) {
        match job.graph.find_message(message) {
            Err(_) => self.one_less(job, job.graph.message(message).receive, now, out),
            Ok((number, round, i)) => {
                let ring = job.graph.ring(number);
                let segment = job.graph.segment_at(ring, ring.next(i));
                let own = self.own_of(job.graph.segment(segment).0.first);
                self.all_missing -= 1;
                self.ended.push_back(At { own, place: StepLocation::Ring(segment, round, What::Receive) });
            }
        }
    }

    fn wake(&mut self, job: &Job, now: Time, out: &mut Vec<MessageId>) {
        while let Some(&Reverse((end, step))) = self.timers.peek()
            && end <= now
        {
            self.timers.pop();
            let at = self.at(job, step);
            self.ended.push_back(at);
            match self.work(job, at) {
                Work::Compute(_) => {
                    let own = at.own as usize;
                    let begin = self.own[own].busy.take().expect("a computation that ends has begun");
                    self.done.push(Done { step, begin, end });
                    self.note(job, at, begin, end);
                    if let Some(Reverse((_, next))) = self.own[own].ready.pop() {
                        self.compute(job, own, next, end);
                    }
                }
                Work::Send(message) => {
                    if self.summed.is_some() {
                        let Placement { rate, delay, .. } = *job.placement;
                        let begin = end - delay - rate.transmit(self.message(job, at, message).bytes);
                        self.note(job, at, begin, begin);
                    }
                    self.receive(job, message, end, out);
                }
                Work::Delay(time) => self.note(job, at, end - time, end),
                Work::Receive(_) => {}
            }
            self.settle(job, end, out);
        }
    }

    /// Completes steps that have ended, and begins steps that waited for them.
    fn settle(&mut self, job: &Job, now: Time, out: &mut Vec<MessageId>) {
        let graph = &*job.graph;
        while let Some(at) = self.ended.pop_front() {
            self.left -= 1;
            match at.place {
                StepLocation::Single(single) => {
                    if let Work::Receive(_) = graph.single(single).work {
                        self.note(job, at, now, now);
                    }
                    graph.after_single(single).for_each(|next| self.next(job, next, now, out));
                }
                StepLocation::Ring(segment, round, what) => {
                    self.settle_in_ring(job, at.own, (segment, round, what), now, out)
                }
            }
        }
    }

    fn settle_in_ring(
        &mut self,
        job: &Job,
        own: u32,
        (number, round, what): (u32, u32, What),
        now: Time,
        out: &mut Vec<MessageId>,
    ) {
        let graph = &*job.graph;
        let (segment, ring) = graph.segment(number);
        let (slots, place) = (graph.slots(ring), self.place_of_segment(own, number));
        if what == What::Receive {
            self.note(job, At { own, place: StepLocation::Ring(number, round, what) }, now, now);
        }
        let of = self.under_way(job, own, number);
        of.left -= 1;
        let next = match what {
            What::Receive if ring.width == 3 => {
                let step = StepId(segment.first + ring.step(segment.i, round, What::Delay));
                return self.timers.push(Reverse((now + graph.latency(ring), step)));
            }
            What::Send if round + slots < ring.rounds() => Some((round + slots, SLOT)),
            // No step waits until it has arrived.
            What::Send => {
                if of.left == 0 {
                    self.under_way[place] = None;
                }
                return;
            }
            What::Receive | What::Delay => {
                let goes_on = round + 1 < ring.rounds() && !ring.begins_turn(round + 1);
                goes_on.then_some((round + 1, RECEIVED))
            }
        };
        of.until_end -= 1;
        let (ends, over) = (of.until_end == 0, of.left == 0);
        if let Some(next) = next {
            self.came(job, own, number, next, now, out);
        }
        if over {
            self.under_way[place] = None;
        }
        if ends {
            graph.after_segment(number).for_each(|next| self.next(job, next, now, out));
        }
    }

    /// The state of a segment.
    fn under_way(&mut self, job: &Job, own: u32, number: u32) -> &mut UnderWay {
        let place = self.place_of_segment(own, number);
        let graph = &job.graph;
        self.under_way[place].get_or_insert_with(|| {
            let ring = graph.segment(number).1;
            let rounds = ring.rounds();
            let until_end = rounds + rounds.saturating_sub(graph.slots(ring));
            Box::new(UnderWay { came: BTreeMap::new(), until_end, left: ring.steps() })
        })
    }

    /// One of the things that a round's message waits for has come.
    fn came(
        &mut self,
        job: &Job,
        own: u32,
        number: u32,
        (round, what): (u32, u8),
        now: Time,
        out: &mut Vec<MessageId>,
    ) {
        let graph = &*job.graph;
        let open = self.closed[self.place_of_segment(own, number)] == 0;
        let of = self.under_way(job, own, number);
        let came = of.came.get(&round).copied().unwrap_or(0) | what;
        if open && came == needed(graph, number, round) {
            of.came.remove(&round);
            self.send_in_ring(job, own, number, round, now, out);
        } else {
            of.came.insert(round, came);
        }
        self.all_missing -= 1;
    }

    /// A rank enters a ring: what could leave before, does.
    fn enter(&mut self, job: &Job, own: u32, number: u32, now: Time, out: &mut Vec<MessageId>) {
        let graph = &*job.graph;
        let ring = graph.segment(number).1;
        let rounds = ring.rounds().min(graph.slots(ring));
        let mut ready: Vec<u32> = (0..rounds).step_by(ring.rounds_of_turn() as usize).collect();
        let of = self.under_way(job, own, number);
        ready.extend(of.came.iter().filter(|of| *of.1 == needed(graph, number, *of.0)).map(|of| *of.0));
        ready.sort_unstable();
        for round in ready {
            self.under_way(job, own, number).came.remove(&round);
            self.send_in_ring(job, own, number, round, now, out);
        }
    }

    fn send_in_ring(&mut self, job: &Job, own: u32, number: u32, round: u32, now: Time, out: &mut Vec<MessageId>) {
        let (segment, ring) = job.graph.segment(number);
        let step = StepId(segment.first + ring.step(segment.i, round, What::Send));
        self.start(job, At { own, place: StepLocation::Ring(number, round, What::Send) }, step, now, out);
    }

    /// Something that a step or a segment waited for has ended.
    fn next(&mut self, job: &Job, next: Next, now: Time, out: &mut Vec<MessageId>) {
        match next {
            Next::Step(step) => self.one_less(job, step, now, out),
            Next::Enter(number) => {
                let own = self.own_of(job.graph.segment(number).0.first);
                let place = self.place_of_segment(own, number);
                self.closed[place] -= 1;
                self.all_missing -= 1;
                if self.closed[place] == 0 {
                    self.enter(job, own, number, now, out);
                }
            }
        }
    }

    /// A single step waits for one step less.
    fn one_less(&mut self, job: &Job, step: StepId, now: Time, out: &mut Vec<MessageId>) {
        let at = self.at(job, step);
        let StepLocation::Single(single) = at.place else { unreachable!("rings count for themselves") };
        let place = self.place_of(at.own, single);
        self.missing[place] -= 1;
        self.all_missing -= 1;
        if self.missing[place] == 0 {
            self.start(job, at, step, now, out);
        }
    }

    fn start(&mut self, job: &Job, at: At, step: StepId, now: Time, out: &mut Vec<MessageId>) {
        match self.work(job, at) {
            Work::Compute(_) => {
                let own = at.own as usize;
                match self.own[own].busy {
                    Some(_) => self.own[own].ready.push(Reverse((now, step))),
                    None => self.compute(job, own, step, now),
                }
            }
            Work::Delay(time) if time.ps() == 0 => {
                self.note(job, at, now, now);
                self.ended.push_back(at);
            }
            Work::Delay(time) => self.timers.push(Reverse((now + time, step))),
            Work::Send(message) => {
                let of = self.message(job, at, message);
                if job.placement.is_within(&of) {
                    self.send_within(job, at, step, of.bytes, now);
                } else {
                    self.send(job, at, message, of.connection, now, out);
                }
            }
            Work::Receive(_) => self.ended.push_back(at),
        }
    }

    /// A message goes to another host, when its connection is free.
    fn send(&mut self, job: &Job, at: At, message: MessageId, connection: u32, now: Time, out: &mut Vec<MessageId>) {
        if connection != Message::ALONE {
            match self.leaving.entry(connection) {
                Entry::Occupied(mut leaving) => return leaving.get_mut().push_back(message),
                Entry::Vacant(free) => drop(free.insert(VecDeque::new())),
            }
        }
        self.note(job, at, now, now);
        out.push(message);
    }

    fn left_host(&mut self, job: &Job, message: MessageId, now: Time, out: &mut Vec<MessageId>) {
        let connection = job.graph.connection(message);
        if let Entry::Occupied(mut leaving) = self.leaving.entry(connection) {
            match leaving.get_mut().pop_front() {
                Some(next) => {
                    out.push(next);
                    if self.summed.is_some() {
                        self.note(job, self.sender(job, next), now, now);
                    }
                }
                None => drop(leaving.remove()),
            }
        }
    }

    /// A message goes to another rank of its host.
    fn send_within(&mut self, job: &Job, at: At, step: StepId, bytes: u64, now: Time) {
        let Placement { rate, delay, .. } = *job.placement;
        let link_busy = &mut self.own[at.own as usize].link_busy;
        let begin = now.max(*link_busy);
        *link_busy = begin + rate.transmit(bytes);
        let end = *link_busy + delay;
        if self.summed.is_none() {
            self.done.push(Done { step, begin, end });
        }
        self.timers.push(Reverse((end, step)));
    }

    fn compute(&mut self, job: &Job, own: usize, step: StepId, now: Time) {
        let Work::Compute(time) = self.work(job, self.at(job, step)) else {
            unreachable!("only computations wait for a rank")
        };
        self.own[own].busy = Some(now);
        self.timers.push(Reverse((now + time, step)));
    }

    /// From when to when a rank did a step: a message, when it was handed over or came.
    #[inline]
    fn note(&mut self, job: &Job, at: At, begin: Time, end: Time) {
        if let Some(summed) = &mut self.summed {
            let (of, iteration) = match at.place {
                StepLocation::Single(single) => {
                    let step = job.graph.single(single);
                    (step.of, step.iteration)
                }
                StepLocation::Ring(segment, ..) => {
                    let ring = job.graph.segment(segment).1;
                    (ring.of, ring.iteration)
                }
            };
            summed.note(at.own, of, iteration, (begin, end));
        }
    }

    fn work(&self, job: &Job, at: At) -> Work {
        match at.place {
            StepLocation::Single(single) => job.graph.single(single).work,
            StepLocation::Ring(segment, round, what) => job.graph.work_in_ring(segment, round, what),
        }
    }

    fn message(&self, job: &Job, at: At, message: MessageId) -> Message {
        match at.place {
            StepLocation::Single(_) => job.graph.message(message),
            StepLocation::Ring(segment, round, _) => job.graph.message_of_segment(segment, round),
        }
    }

    fn at(&self, job: &Job, step: StepId) -> At {
        let own = self.own_of(step.0);
        At { own, place: job.graph.place(step) }
    }

    /// Of whom a step is.
    fn own_of(&self, step: u32) -> u32 {
        self.own.partition_point(|own| own.first <= step) as u32 - 1
    }

    fn place_of(&self, own: u32, single: u32) -> usize {
        let own = &self.own[own as usize];
        (own.place + single - own.single) as usize
    }

    fn place_of_segment(&self, own: u32, number: u32) -> usize {
        let own = &self.own[own as usize];
        (own.place_of_segments + number - own.segments.start) as usize
    }
}

/// Conditions of a round's message, beside its rank's entry.
fn needed(graph: &Graph, number: u32, round: u32) -> u8 {
    let ring = graph.segment(number).1;
    let received = if ring.begins_turn(round) { 0 } else { RECEIVED };
    received | if round >= graph.slots(ring) { SLOT } else { 0 }
}

#[cfg(test)]
mod tests;
