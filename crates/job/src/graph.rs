//! The steps of a job, and which of them wait for which.
//!
//! A job among thousands of ranks has some 10^8 steps, nearly all of them in rings. So a [`Graph`] keeps two kinds:
//! steps on their own, each in a list, and [`Ring`]s, of whose steps, messages and dependencies nothing is kept: they
//! follow from their numbers. A rank's part of a ring is a segment of its steps. The memory of a graph grows with ranks
//! and collectives, as the rows of the table `ranks` do, and not with messages.
//!
//! Numbers are those of a list of all steps: rank after rank, in the order in which they were added. So are messages'.
//!
//! A step on its own, or a whole ring, may wait for a rank's part of a ring: for all that it receives there, and for
//! all but the last messages that it sends. That is one dependency here. [`Graph::needs`] and [`Graph::each_after`]
//! show it as one on each of those steps.

mod builder;
pub(crate) mod index;
pub(crate) mod ring;

use std::collections::BTreeMap;
use std::ops::Range;

use units::Duration;

pub use builder::Builder;
use index::Index;
use ring::{Ring, What};

use crate::collective::Terms;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, state::Saved)]
        pub struct $name(pub u32);

        impl $name {
            /// The id as an index.
            #[inline]
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}

id! {
    /// A rank: one accelerator of the job, counted from 0.
    Rank
}
id! {
    /// A step, counted over the graph. Steps of a rank are consecutive.
    StepId
}
id! {
    /// A message from one rank to another, counted over the graph.
    MessageId
}
id! {
    /// One execution of a collective, counted over the graph.
    CollectiveId
}

/// What a step does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Work {
    /// The rank computes. A rank does one computation at a time, in the order in which they could begin.
    Compute(Duration),
    /// Time passes, such as a library's latency. It keeps the rank from nothing else.
    Delay(Duration),
    /// A message leaves. The step ends when its sender knows that it has arrived.
    Send(MessageId),
    /// A message is needed. The step ends when it has arrived, at once if it has before.
    Receive(MessageId),
}

/// A step of a rank.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Step {
    /// Whose step.
    pub rank: Rank,
    /// What it does.
    pub work: Work,
    /// The collective that it belongs to.
    pub of: Option<CollectiveId>,
    /// Index in [`Graph::names`].
    pub name: u32,
    /// The iteration of the job that it belongs to, from 0.
    pub iteration: u32,
}

/// A message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Message {
    /// Sending rank.
    pub from: Rank,
    /// Receiving rank, another one.
    pub to: Rank,
    /// Payload, at least 1.
    pub bytes: u64,
    /// Where in the collective's buffer its content begins, and how long that is; 0, 0 outside of collectives.
    pub span: (u64, u64),
    /// The step that sends it.
    pub send: StepId,
    /// The step that waits for it.
    pub receive: StepId,
    /// Whose messages leave one after the other, in the order in which they are due: such as a queue pair of RDMA.
    /// [`Message::ALONE`] for a message that leaves beside all others.
    pub connection: u32,
}

impl Message {
    /// On no connection.
    pub const ALONE: u32 = u32::MAX;
}

/// One execution of a collective.
#[derive(Clone, PartialEq, Debug)]
pub struct Collective {
    /// Its name, such as "gradients 3".
    pub name: String,
    /// What it does, such as "all_reduce".
    pub kind: &'static str,
    /// How, such as "ring".
    pub algorithm: &'static str,
    /// The ranks that take part.
    pub ranks: u32,
    /// Size of the buffer that the operation is about, in bytes, as NCCL's tests count it.
    pub bytes: u64,
    /// Bus bandwidth over algorithm bandwidth: 2(n-1)/n for an all-reduce (NCCL's tests, PERFORMANCE.md).
    pub bus_factor: f64,
    /// Which iteration of the job it belongs to, from 0.
    pub iteration: u32,
}

/// The fault of a graph.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum GraphError {
    /// A step waits for one of another rank.
    #[error("step {step} of rank {rank} waits for step {before} of rank {other}; ranks wait for messages alone")]
    OtherRank {
        /// The step that waits.
        step: usize,
        /// Its rank.
        rank: u32,
        /// The step that it waits for.
        before: usize,
        /// That one's rank.
        other: u32,
    },
    /// Steps wait for each other in a circle.
    #[error(
        "{count} steps wait for each other in a circle, one of them \"{name}\" of rank {rank}; delete a dependency"
    )]
    Circle {
        /// How many.
        count: usize,
        /// The name of one.
        name: String,
        /// Its rank.
        rank: u32,
    },
    /// Too large for the ids.
    #[error("has more than {most} {what}, which is the most; write a smaller job")]
    TooLarge {
        /// The bound.
        most: u64,
        /// The things of which there are too many.
        what: &'static str,
    },
    /// A message to the rank itself, or an empty one, or a rank that does not exist.
    #[error(
        "a message of {bytes} B from rank {from} to rank {to}: it goes to another of the {ranks} ranks and has \
         at least 1 B"
    )]
    NoMessage {
        /// Sender.
        from: u32,
        /// Receiver.
        to: u32,
        /// Length.
        bytes: u64,
        /// How many ranks there are.
        ranks: u32,
    },
}

/// All steps of a job, by rank; nothing waits in a circle.
#[derive(Clone, PartialEq, Debug)]
pub struct Graph {
    /// By rank, where its steps begin; one more at the end.
    first: Vec<u32>,
    /// Steps on their own, those of rank 0 first.
    singles: Vec<Step>,
    /// By rank, where its own of these begin; one more at the end.
    first_single: Vec<u32>,
    /// By single step, how many steps must end before it may begin.
    needs: Vec<u32>,
    /// The same, with a rank's part of a ring for one.
    waits: Vec<u32>,
    /// Steps and segments that wait for single steps.
    after: Lists,
    /// Ranks' parts of rings, by their first steps.
    segments: Vec<Segment>,
    /// Where a step is among these.
    segment_index: Index,
    /// By rank, where its own of these begin; one more at the end.
    first_segment: Vec<u32>,
    /// Steps and segments that wait for the end of segments.
    ends: Lists,
    rings: Vec<Ring>,
    /// Where a message is among these.
    ring_index: Index,
    /// By ring and place in its group (see [`Ring::places`]), its segment.
    segment_of: Vec<u32>,
    /// The ranks of rings.
    groups: Vec<Vec<Rank>>,
    /// How rings are carried out.
    terms: Vec<Terms>,
    /// Messages outside of rings.
    messages: Vec<Message>,
    message_count: u32,
    iterations: u32,
    collectives: Vec<Collective>,
    names: Vec<String>,
}

/// A rank's part of a ring.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Segment {
    /// Its first step.
    pub first: u32,
    /// How many single steps there are before it.
    pub singles: u32,
    pub ring: u32,
    /// The rank's place on the way round.
    pub i: u32,
    /// How many steps the rank waits for before it sends.
    pub entry: u32,
}

/// A step or a segment that waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Next {
    /// A step on its own.
    Step(StepId),
    /// The entry into a segment.
    Enter(u32),
}

/// Lists of what waits, one after the other.
#[derive(Clone, PartialEq, Debug, Default)]
struct Lists {
    /// Where each begins; one more at the end.
    first: Vec<u32>,
    /// Steps, or with the highest bit segments.
    items: Vec<u32>,
}

/// Beyond all steps and segments.
const OTHER: u32 = 1 << 31;

impl Lists {
    fn of(&self, index: usize) -> impl Iterator<Item = Next> + Clone {
        let items = &self.items[self.first[index] as usize..self.first[index + 1] as usize];
        items.iter().map(|&item| match item & OTHER {
            0 => Next::Step(StepId(item)),
            _ => Next::Enter(item ^ OTHER),
        })
    }
}

/// Where a step is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, state::Saved)]
pub(crate) enum StepLocation {
    /// On its own, by its index among these.
    Single(u32),
    /// In a segment: in which round, and what it does there.
    Ring(u32, u32, What),
}

/// Most steps of a graph: what ids have room for.
pub const STEPS_MAX: u64 = 400_000_000;

impl Graph {
    /// How many ranks.
    pub fn ranks(&self) -> u32 {
        self.first.len() as u32 - 1
    }

    /// All steps, those of rank 0 first.
    pub fn steps(&self) -> impl ExactSizeIterator<Item = Step> + Clone {
        (0..self.first[self.ranks() as usize]).map(|step| self.step(StepId(step)))
    }

    /// One step.
    ///
    /// # Panics
    /// If there is none of this number.
    #[inline]
    pub fn step(&self, step: StepId) -> Step {
        match self.place(step) {
            StepLocation::Single(at) => self.singles[at as usize],
            StepLocation::Ring(segment, round, what) => self.step_of_ring(segment, round, what),
        }
    }

    fn step_of_ring(&self, segment: u32, round: u32, what: What) -> Step {
        let (Segment { i, .. }, ring) = self.segment(segment);
        let work = self.work_in_ring(segment, round, what);
        Step { rank: self.rank_at(ring, i), work, of: ring.of, name: ring.name, iteration: ring.iteration }
    }

    #[inline]
    pub(crate) fn work_in_ring(&self, segment: u32, round: u32, what: What) -> Work {
        let (Segment { i, .. }, ring) = self.segment(segment);
        match what {
            What::Send => Work::Send(MessageId(ring.first_message + round * ring.ranks + i)),
            What::Receive => Work::Receive(MessageId(ring.first_message + round * ring.ranks + ring.before(i))),
            What::Delay => Work::Delay(self.latency(ring)),
        }
    }

    /// The rank that is the i-th on the way round.
    pub(crate) fn rank_at(&self, ring: &Ring, i: u32) -> Rank {
        self.groups[ring.group as usize][ring.place(i) as usize]
    }

    /// Where a step is.
    #[inline]
    pub(crate) fn place(&self, step: StepId) -> StepLocation {
        let before = self.segment_index.until(step.0, |at| self.segments[at].first);
        let Some(at) = before.checked_sub(1) else { return StepLocation::Single(step.0) };
        let segment = &self.segments[at];
        let (ring, into) = (&self.rings[segment.ring as usize], step.0 - segment.first);
        match into.checked_sub(ring.steps()) {
            Some(beyond) => StepLocation::Single(segment.singles + beyond),
            None => {
                let (round, what) = ring.at(segment.i, into);
                StepLocation::Ring(at as u32, round, what)
            }
        }
    }

    /// The single steps of a rank.
    pub(crate) fn singles_of(&self, rank: Rank) -> Range<u32> {
        self.first_single[rank.index()]..self.first_single[rank.index() + 1]
    }

    /// The segments of a rank.
    pub(crate) fn segments_of(&self, rank: Rank) -> Range<u32> {
        self.first_segment[rank.index()]..self.first_segment[rank.index() + 1]
    }

    /// A single step.
    #[inline]
    pub(crate) fn single(&self, at: u32) -> &Step {
        &self.singles[at as usize]
    }

    /// How many ends a single step waits for: a segment has one.
    #[inline]
    pub(crate) fn waits(&self, single: u32) -> u32 {
        self.waits[single as usize]
    }

    /// Steps and segments that wait for a single step.
    #[inline]
    pub(crate) fn after_single(&self, at: u32) -> impl Iterator<Item = Next> {
        self.after.of(at as usize)
    }

    /// Steps and segments that wait for the end of a segment.
    #[inline]
    pub(crate) fn after_segment(&self, at: u32) -> impl Iterator<Item = Next> {
        self.ends.of(at as usize)
    }

    /// A segment, and its ring.
    #[inline]
    pub(crate) fn segment(&self, at: u32) -> (Segment, &Ring) {
        let segment = self.segments[at as usize];
        (segment, &self.rings[segment.ring as usize])
    }

    /// Payload of a message of a ring that carries this many bytes of the buffer.
    pub(crate) fn payload(&self, ring: &Ring, bytes: u64) -> u64 {
        self.terms(ring).payload(bytes)
    }

    /// How many steps there are outside of rings, and how many ranks' parts of rings: what is kept of the graph.
    pub fn kept(&self) -> (usize, usize) {
        (self.singles.len(), self.segments.len())
    }

    /// All steps outside of rings.
    pub(crate) fn singles(&self) -> &[Step] {
        &self.singles
    }

    /// All messages outside of rings.
    pub(crate) fn messages_of_singles(&self) -> &[Message] {
        &self.messages
    }

    /// How a ring is carried out.
    pub(crate) fn terms(&self, ring: &Ring) -> &Terms {
        &self.terms[ring.terms as usize]
    }

    /// Tells all steps outside of rings: all computations are among these.
    pub fn each_single(&self, mut each: impl FnMut(StepId, &Step)) {
        let mut segments = self.segments.iter().peekable();
        let mut of_rings = 0;
        for (at, step) in (0u32..).zip(&self.singles) {
            while let Some(segment) = segments.next_if(|segment| segment.singles <= at) {
                of_rings += self.rings[segment.ring as usize].steps();
            }
            each(StepId(of_rings + at), step);
        }
    }

    pub(crate) fn rings(&self) -> &[Ring] {
        &self.rings
    }

    /// Messages outside of rings.
    pub(crate) fn single_messages(&self) -> impl Iterator<Item = (MessageId, &Message)> {
        let mut rings = self.rings.iter().peekable();
        let mut of_rings = 0;
        self.messages.iter().zip(0u32..).map(move |(message, at)| {
            while let Some(ring) = rings.next_if(|ring| ring.single_messages <= at) {
                of_rings += ring.messages();
            }
            (MessageId(of_rings + at), message)
        })
    }

    #[inline]
    pub(crate) fn ring(&self, at: u32) -> &Ring {
        &self.rings[at as usize]
    }

    /// The work of a rank, in parts: single steps, and parts of rings. Tells of each the collective, the iteration and
    /// how many steps it has.
    pub fn each_part(&self, rank: Rank, mut each: impl FnMut(Option<CollectiveId>, u32, u64)) {
        self.singles_of(rank).map(|at| self.single(at)).for_each(|step| each(step.of, step.iteration, 1));
        let rings = self.segments_of(rank).map(|at| self.segment(at).1);
        rings.for_each(|ring| each(ring.of, ring.iteration, ring.steps().into()));
    }

    /// The steps of a rank.
    pub fn of(&self, rank: Rank) -> Range<u32> {
        self.first[rank.index()]..self.first[rank.index() + 1]
    }

    /// How many steps must end before this one may begin.
    pub fn needs(&self, step: StepId) -> u32 {
        match self.place(step) {
            StepLocation::Single(at) => self.needs[at as usize],
            StepLocation::Ring(_, _, What::Receive) => 0,
            StepLocation::Ring(_, _, What::Delay) => 1,
            StepLocation::Ring(segment, round, What::Send) => {
                let (Segment { entry, .. }, ring) = self.segment(segment);
                entry + u32::from(!ring.begins_turn(round)) + u32::from(round >= self.slots(ring))
            }
        }
    }

    /// Messages that a rank of a ring may have under way.
    pub(crate) fn slots(&self, ring: &Ring) -> u32 {
        self.terms(ring).slots
    }

    /// Time between a message's arrival and what is sent because of it.
    pub(crate) fn latency(&self, ring: &Ring) -> Duration {
        self.terms(ring).latency
    }

    /// The steps that wait for this one: each as often as it waits for it, in no particular order.
    pub fn each_after(&self, step: StepId, mut each: impl FnMut(StepId)) {
        let (at, round, what) = match self.place(step) {
            StepLocation::Single(at) => return self.each_of(self.after.of(at as usize), 1, each),
            StepLocation::Ring(at, round, what) => (at, round, what),
        };
        let (segment, ring) = self.segment(at);
        let step = |round, what| StepId(segment.first + ring.step(segment.i, round, what));
        match what {
            What::Receive if ring.width == 3 => each(step(round, What::Delay)),
            What::Receive | What::Delay => {
                let goes_on = round + 1 < ring.rounds() && !ring.begins_turn(round + 1);
                if goes_on {
                    each(step(round + 1, What::Send));
                }
                self.each_of(self.ends.of(at as usize), 1 + u32::from(goes_on), each);
            }
            What::Send if round + self.slots(ring) < ring.rounds() => {
                each(step(round + self.slots(ring), What::Send));
                self.each_of(self.ends.of(at as usize), 1, each);
            }
            What::Send => {}
        }
    }

    /// Tells single steps `times`, and all sends of segments that are entered. A step that waits for the end of such a
    /// segment waits for all that its sends wait for: once more for each of its rounds.
    fn each_of(&self, next: impl Iterator<Item = Next>, times: u32, mut each: impl FnMut(StepId)) {
        for next in next {
            match next {
                Next::Enter(at) => {
                    let (segment, ring) = self.segment(at);
                    for round in 0..ring.rounds() {
                        each(StepId(segment.first + ring.step(segment.i, round, What::Send)));
                        self.ends.of(at as usize).for_each(|end| {
                            if let Next::Step(step) = end {
                                each(step);
                            }
                        });
                    }
                }
                Next::Step(step) => (0..times).for_each(|_| each(step)),
            }
        }
    }

    /// All messages.
    pub fn messages(&self) -> impl ExactSizeIterator<Item = Message> + Clone {
        (0..self.message_count).map(|message| self.message(MessageId(message)))
    }

    /// One message.
    ///
    /// # Panics
    /// If there is none of this number.
    #[inline]
    pub fn message(&self, message: MessageId) -> Message {
        match self.find_message(message) {
            Err(single) => self.messages[single as usize],
            Ok((ring, round, i)) => self.message_of_ring(ring, round, i),
        }
    }

    /// The ring of a message, its round and the place of its sender on the way; else its place among those outside of
    /// rings.
    #[inline]
    pub(crate) fn find_message(&self, message: MessageId) -> Result<(u32, u32, u32), u32> {
        let before = self.ring_index.until(message.0, |at| self.rings[at].first_message);
        let Some(at) = before.checked_sub(1) else { return Err(message.0) };
        let ring = &self.rings[at];
        let into = message.0 - ring.first_message;
        match into.checked_sub(ring.messages()) {
            Some(beyond) => Err(ring.single_messages + beyond),
            None => Ok((at as u32, into / ring.ranks, into % ring.ranks)),
        }
    }

    /// The message that a rank of a ring sends in a round.
    #[inline]
    pub(crate) fn message_of_segment(&self, segment: u32, round: u32) -> Message {
        let Segment { ring, i, .. } = self.segments[segment as usize];
        self.message_of_ring(ring, round, i)
    }

    /// The connection that carries a message.
    pub(crate) fn connection(&self, message: MessageId) -> u32 {
        match self.find_message(message) {
            Err(single) => self.messages[single as usize].connection,
            Ok((ring, _, i)) => self.rings[ring as usize].connection + i,
        }
    }

    pub(crate) fn message_of_ring(&self, at: u32, round: u32, i: u32) -> Message {
        let ring = &self.rings[at as usize];
        let next = ring.next(i);
        let (from, to) = (self.segment_at(ring, i), self.segment_at(ring, next));
        let span = ring.span_of(i, round);
        Message {
            from: self.rank_at(ring, i),
            to: self.rank_at(ring, next),
            bytes: self.terms(ring).payload(span.1),
            span,
            send: StepId(self.segments[from as usize].first + ring.step(i, round, What::Send)),
            receive: StepId(self.segments[to as usize].first + ring.step(next, round, What::Receive)),
            connection: ring.connection + i,
        }
    }

    /// The segment of the i-th on the way.
    #[inline]
    pub(crate) fn segment_at(&self, ring: &Ring, i: u32) -> u32 {
        self.segment_of[(ring.places + ring.place(i)) as usize]
    }

    /// All executions of collectives.
    pub fn collectives(&self) -> &[Collective] {
        &self.collectives
    }

    /// Names of steps.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The time of the longest chain of steps that wait for each other, if each message takes
    /// `takes(message)`, and ranks can do several computations at once: no run is shorter.
    pub fn longest_chain(&self, takes: impl Fn(MessageId) -> Duration) -> Duration {
        // By step: when what it waits for has ended; of a receive, when its message has arrived.
        let mut ready = vec![Duration::ZERO; self.steps().len()];
        let mut longest = Duration::ZERO;
        self.in_order(|step| {
            let begin = ready[step.index()];
            let end = match self.step(step).work {
                Work::Compute(time) | Work::Delay(time) => begin + time,
                Work::Send(message) => begin + takes(message),
                Work::Receive(_) => begin,
            };
            longest = longest.max(end);
            self.each_awaiting(step, |next| ready[next.index()] = ready[next.index()].max(end));
        });
        longest
    }

    /// About the same, without a look at each step: what a rank computes, and its collectives one after the other, of
    /// each ring the first of its messages as often as they follow each other.
    pub fn about_longest_chain(&self, mut takes: impl FnMut(MessageId) -> Duration) -> Duration {
        let mut of_ring = |ring: &Ring| {
            let ends = [0, ring.ranks - 1].map(|i| takes(MessageId(ring.first_message + i)));
            let each = ends[0].max(ends[1]).ps().saturating_add(self.latency(ring).ps());
            Duration::from_ps(each.saturating_mul(ring.rounds_of_turn().into()))
        };
        let of_rings: Vec<Duration> = self.rings.iter().map(&mut of_ring).collect();
        let of_rank = |rank| {
            // Rings of one collective go round side by side.
            let mut collectives: BTreeMap<Option<CollectiveId>, Duration> = BTreeMap::new();
            for segment in &self.segments[self.segments_of(rank).start as usize..self.segments_of(rank).end as usize] {
                let all = collectives.entry(self.rings[segment.ring as usize].of).or_default();
                *all = of_rings[segment.ring as usize].max(*all);
            }
            let time = |at| match self.single(at).work {
                Work::Compute(time) | Work::Delay(time) => time,
                Work::Send(_) | Work::Receive(_) => Duration::ZERO,
            };
            let all = collectives.into_values().chain(self.singles_of(rank).map(time));
            all.fold(Duration::ZERO, |sum, time| Duration::from_ps(sum.ps().saturating_add(time.ps())))
        };
        (0..self.ranks()).map(Rank).map(of_rank).max().unwrap_or(Duration::ZERO)
    }

    /// The steps that wait for a step: those after it, and the receive of what it sends.
    fn each_awaiting(&self, step: StepId, mut each: impl FnMut(StepId)) {
        self.each_after(step, &mut each);
        if let Work::Send(message) = self.step(step).work {
            each(self.message(message).receive);
        }
    }

    /// How many iterations.
    pub fn iterations(&self) -> u32 {
        self.iterations
    }

    /// Visits every step after those that it waits for, through messages too. If some wait in a circle, returns the
    /// number of open dependencies by step.
    pub(crate) fn in_order(&self, mut visit: impl FnMut(StepId)) -> Option<Vec<u32>> {
        let count = self.steps().len();
        let all = || (0..count as u32).map(StepId);
        // A receive also waits for the send of its message.
        let receives = |step| u32::from(matches!(self.step(step).work, Work::Receive(_)));
        let mut missing: Vec<u32> = all().map(|step| self.needs(step) + receives(step)).collect();
        let mut free: Vec<StepId> = all().filter(|step| missing[step.index()] == 0).collect();
        let mut visited = 0;
        while let Some(step) = free.pop() {
            visit(step);
            visited += 1;
            self.each_awaiting(step, |next| {
                missing[next.index()] -= 1;
                if missing[next.index()] == 0 {
                    free.push(next);
                }
            });
        }
        (visited < count).then_some(missing)
    }

    /// Whether every step can begin at some time: no circle, through messages neither.
    fn check_order(&self) -> Result<(), GraphError> {
        let Some(missing) = self.in_order(|_| ()) else { return Ok(()) };
        let stuck = missing.iter().position(|&missing| missing > 0).expect("some step has not ended");
        let Step { rank, name, .. } = self.step(StepId(stuck as u32));
        let count = missing.iter().filter(|&&missing| missing > 0).count();
        Err(GraphError::Circle { count, name: self.names[name as usize].clone(), rank: rank.0 })
    }
}

#[cfg(test)]
mod tests;
