//! How a graph is made: steps in any order, then sorted by rank.

use std::collections::HashMap;

use units::Duration;

use super::index::Index;
use super::ring::{self, Phases, Ring};
use super::{Collective, CollectiveId, Graph, GraphError, Lists, Message, MessageId, OTHER, Rank, STEPS_MAX, Segment};
use super::{Step, StepId, Work};
use crate::collective::{Entry, Span, Terms};

/// Collects the steps of a job in any order.
///
/// The ids that it hands out are its own: steps on their own in the order in which they are added, and the ends of
/// ranks' parts of rings.
#[derive(Clone, Debug)]
pub struct Builder {
    ranks: u32,
    /// Steps on their own.
    steps: Vec<Step>,
    /// How many steps rings have.
    steps_of_rings: u64,
    /// Rings, and how many steps on their own were added before each.
    rings: Vec<(Ring, u32)>,
    /// By ring and place in its group: its ring, and how many steps its rank waits for.
    parts: Vec<(u32, u32)>,
    groups: Vec<Vec<Rank>>,
    /// Index in `groups`.
    grouped: HashMap<Vec<Rank>, u32>,
    terms: Vec<Terms>,
    /// Whether rings are steps on their own, too.
    spelled_out: bool,
    /// Whether every step waits for steps and messages alone that were added before.
    in_order: bool,
    /// Pairs: a step or a part, and a step or the end of a part that it waits for. Parts have the highest bit.
    waits: Vec<(u32, u32)>,
    messages: Vec<Message>,
    message_count: u64,
    collectives: Vec<Collective>,
    names: Vec<String>,
    /// Index in `names`, by name.
    named: HashMap<String, u32>,
    /// The collective and the name of the next steps.
    of: Option<CollectiveId>,
    name: u32,
    iteration: u32,
    connections: u32,
    wrong: Option<GraphError>,
}

impl Builder {
    /// An empty job of this many ranks.
    pub fn new(ranks: u32) -> Builder {
        Builder {
            ranks,
            steps: Vec::new(),
            steps_of_rings: 0,
            rings: Vec::new(),
            parts: Vec::new(),
            groups: Vec::new(),
            grouped: HashMap::new(),
            terms: Vec::new(),
            spelled_out: false,
            in_order: true,
            waits: Vec::new(),
            messages: Vec::new(),
            message_count: 0,
            collectives: Vec::new(),
            names: vec![String::new()],
            named: HashMap::from([(String::new(), 0)]),
            of: None,
            name: 0,
            iteration: 0,
            connections: 0,
            wrong: None,
        }
    }

    /// How many ranks.
    pub fn ranks(&self) -> u32 {
        self.ranks
    }

    /// The steps that follow belong to this iteration.
    pub fn iteration(&mut self, iteration: u32) {
        self.iteration = iteration;
    }

    /// The same, with every step of rings on its own: what the formulas of rings are held against.
    #[cfg(test)]
    pub(crate) fn spelled_out(ranks: u32) -> Builder {
        Builder { spelled_out: true, ..Builder::new(ranks) }
    }

    /// How many steps there are so far.
    pub fn steps(&self) -> u64 {
        self.steps.len() as u64 + self.steps_of_rings
    }

    /// The steps and messages that have been added so far.
    pub fn count(&self) -> crate::Count {
        let rings = self.rings.iter().map(|of| (&of.0, &self.terms[of.0.terms as usize]));
        crate::Count::of(&self.steps, &self.messages, rings)
    }

    /// Sets the name of the steps that follow.
    pub fn name(&mut self, name: &str) {
        if let Some(&at) = self.named.get(name) {
            self.name = at;
            return;
        }
        self.name = self.names.len() as u32;
        self.names.push(name.to_owned());
        self.named.insert(name.to_owned(), self.name);
    }

    /// The steps that `add` adds belong to this collective and are called by its name.
    pub fn within<T>(&mut self, collective: Collective, add: impl FnOnce(&mut Builder) -> T) -> T {
        let before = (self.of, self.name);
        self.name(&collective.name);
        self.of = Some(CollectiveId(self.collectives.len() as u32));
        self.collectives.push(collective);
        let added = add(self);
        (self.of, self.name) = before;
        added
    }

    /// A computation of a rank, after these steps of the same rank.
    pub fn compute(&mut self, rank: Rank, time: Duration, after: &[StepId]) -> StepId {
        self.step(rank, Work::Compute(time), after)
    }

    /// Time that passes at a rank, after these steps of the same rank.
    pub fn delay(&mut self, rank: Rank, time: Duration, after: &[StepId]) -> StepId {
        self.step(rank, Work::Delay(time), after)
    }

    /// A step of no length that ends when all of these have ended.
    pub fn join(&mut self, rank: Rank, after: &[StepId]) -> StepId {
        match after {
            &[only] if self.weight(only.0) == 1 => only,
            _ => self.delay(rank, Duration::ZERO, after),
        }
    }

    /// A message about a span of a buffer, and the steps that send and receive it: each waits for steps of its own
    /// rank.
    pub fn message(
        &mut self,
        (from, to): (Rank, Rank),
        bytes: u64,
        span: (u64, u64),
        send_after: &[StepId],
        receive_after: &[StepId],
    ) -> (StepId, StepId) {
        if from == to || bytes == 0 || from.0.max(to.0) >= self.ranks {
            let wrong = GraphError::NoMessage { from: from.0, to: to.0, bytes, ranks: self.ranks };
            self.wrong.get_or_insert(wrong);
        }
        let message = MessageId(self.message_count as u32);
        let send = self.step(from, Work::Send(message), send_after);
        let receive = self.step(to, Work::Receive(message), receive_after);
        self.add_message(Message { from, to, bytes, span, send, receive, connection: Message::ALONE });
        (send, receive)
    }

    /// A new connection from one rank to another.
    pub fn connection(&mut self) -> u32 {
        self.connections += 1;
        self.connections - 1
    }

    /// The message that was added last uses this connection.
    pub fn over(&mut self, connection: u32) {
        if let Some(last) = self.messages.last_mut() {
            last.connection = connection;
        }
    }

    /// A step that [`Builder::connect`] makes the sending or the receiving of a message. Until then it takes no time.
    pub fn open(&mut self, rank: Rank, after: &[StepId]) -> StepId {
        self.delay(rank, Duration::ZERO, after)
    }

    /// Makes two steps the sending and the receiving of one message.
    pub fn connect(&mut self, send: StepId, receive: StepId, bytes: u64) {
        let message = MessageId(self.message_count as u32);
        let (from, to) = (self.steps[send.index()].rank, self.steps[receive.index()].rank);
        if from == to || bytes == 0 {
            let wrong = GraphError::NoMessage { from: from.0, to: to.0, bytes, ranks: self.ranks };
            self.wrong.get_or_insert(wrong);
        }
        self.steps[send.index()].work = Work::Send(message);
        self.steps[receive.index()].work = Work::Receive(message);
        self.in_order = false;
        let connection = Message::ALONE;
        self.add_message(Message { from, to, bytes, span: (0, 0), send, receive, connection });
    }

    fn add_message(&mut self, message: Message) {
        self.messages.push(message);
        self.message_count += 1;
    }

    /// One step waits for another of the same rank.
    pub fn wait(&mut self, step: StepId, before: StepId) {
        self.in_order = false;
        self.waits.push((step.0, before.0));
    }

    /// One channel of a ring over `span`: by place in `ranks`, what ends its part of it. None if some message would be
    /// empty, so that the ring has to be added message by message. Its connections begin at `over`, which is set if it
    /// is none.
    pub(crate) fn ring(
        &mut self,
        ranks: &[Rank],
        span: Span,
        (phases, backwards): (Phases, bool),
        terms: &Terms,
        entry: Entry<'_>,
        over: &mut Option<u32>,
    ) -> Option<Vec<StepId>> {
        let turns = ring::turns(span, ranks.len() as u64, terms).filter(|_| !self.spelled_out && ranks.len() > 1)?;
        let mut ring = Ring {
            group: 0,
            ranks: ranks.len() as u32,
            places: self.parts.len() as u32,
            first_message: self.message_count as u32,
            single_messages: self.messages.len() as u32,
            connection: over.unwrap_or(self.connections),
            backwards,
            phases,
            span,
            turns,
            terms: 0,
            width: ring::width(terms.latency),
            of: self.of,
            name: self.name,
            iteration: self.iteration,
        };
        let of_rank = u64::from(turns) * u64::from(ring.rounds_of_turn()) * u64::from(ring.width);
        let steps = of_rank.saturating_mul(ranks.len() as u64);
        if steps.saturating_add(self.steps()) > STEPS_MAX {
            self.wrong.get_or_insert(GraphError::TooLarge { most: STEPS_MAX, what: "steps" });
            return Some(vec![StepId(0); ranks.len()]);
        }
        ring.group = self.group(ranks);
        ring.terms = self.terms_of(terms);
        let number = self.rings.len() as u32;
        for (at, entry) in (ring.places..).zip(entry) {
            self.parts.push((number, entry.len() as u32));
            self.waits.extend(entry.iter().map(|before| (at | OTHER, before.0)));
        }
        self.steps_of_rings += steps;
        self.message_count += u64::from(ring.messages());
        if over.is_none() {
            *over = Some(self.connections);
            self.connections += ring.ranks;
        }
        self.rings.push((ring, self.steps.len() as u32));
        Some((0..ring.ranks).map(|place| StepId((ring.places + place) | OTHER)).collect())
    }

    fn group(&mut self, ranks: &[Rank]) -> u32 {
        if let Some(&known) = self.grouped.get(ranks) {
            return known;
        }
        let next = self.groups.len() as u32;
        if let Some(rank) = ranks.iter().find(|rank| rank.0 >= self.ranks) {
            let wrong = GraphError::NoMessage { from: rank.0, to: rank.0, bytes: 0, ranks: self.ranks };
            self.wrong.get_or_insert(wrong);
        }
        self.groups.push(ranks.to_vec());
        self.grouped.insert(ranks.to_vec(), next);
        next
    }

    fn terms_of(&mut self, terms: &Terms) -> u32 {
        let known = self.terms.iter().rposition(|known| known == terms);
        known.unwrap_or_else(|| {
            self.terms.push(*terms);
            self.terms.len() - 1
        }) as u32
    }

    /// For how many dependencies it counts to wait for this: of the end of a part, for each of its rounds' steps that
    /// its messages wait for, and for all that it receives.
    fn weight(&self, before: u32) -> u32 {
        if before & OTHER == 0 {
            return 1;
        }
        let (ring, entry) = self.parts[(before ^ OTHER) as usize];
        let ring = &self.rings[ring as usize].0;
        let rounds = ring.rounds();
        let slots = self.terms[ring.terms as usize].slots;
        rounds * entry + (rounds - ring.turns) + rounds.saturating_sub(slots) + rounds
    }

    fn step(&mut self, rank: Rank, work: Work, after: &[StepId]) -> StepId {
        if self.steps() >= STEPS_MAX {
            self.wrong.get_or_insert(GraphError::TooLarge { most: STEPS_MAX, what: "steps" });
            return StepId(0);
        }
        let step = StepId(self.steps.len() as u32);
        self.steps.push(Step { rank, work, of: self.of, name: self.name, iteration: self.iteration });
        self.waits.extend(after.iter().map(|before| (step.0, before.0)));
        step
    }

    /// The rank of a step or a part.
    fn rank_of(&self, of: u32) -> Rank {
        if of & OTHER == 0 {
            return self.steps[of as usize].rank;
        }
        let at = of ^ OTHER;
        let ring = &self.rings[self.parts[at as usize].0 as usize].0;
        self.groups[ring.group as usize][(at - ring.places) as usize]
    }

    /// The graph, or what is wrong with it.
    pub fn build(self) -> Result<Graph, GraphError> {
        if let Some(wrong) = self.wrong {
            return Err(wrong);
        }
        if self.waits.len() as u64 >= 4 * STEPS_MAX {
            return Err(GraphError::TooLarge { most: 4 * STEPS_MAX, what: "dependencies" });
        }
        for &(step, before) in &self.waits {
            let (rank, other) = (self.rank_of(step), self.rank_of(before));
            if rank != other {
                let (step, before) = ((step & !OTHER) as usize, (before & !OTHER) as usize);
                return Err(GraphError::OtherRank { step, rank: rank.0, before, other: other.0 });
            }
        }
        let in_order = self.in_order;
        let graph = self.sorted();
        if !in_order {
            graph.check_order()?;
        }
        Ok(graph)
    }

    /// The same with the steps of each rank side by side.
    fn sorted(self) -> Graph {
        let Placed { first, first_single, first_segment, step, single, segment, segments } = self.places();
        let mut singles = self.steps.clone();
        self.steps.iter().zip(&single).for_each(|(step, &at)| singles[at as usize] = *step);
        let (mut needs, mut waits) = (vec![0u32; singles.len()], vec![0u32; singles.len()]);
        let mut pairs = [Vec::new(), Vec::new()];
        for &(waiting, before) in &self.waits {
            let item = match waiting & OTHER {
                0 => {
                    let at = single[waiting as usize] as usize;
                    needs[at] += self.weight(before);
                    waits[at] += 1;
                    step[waiting as usize]
                }
                _ => segment[(waiting ^ OTHER) as usize] | OTHER,
            };
            match before & OTHER {
                0 => pairs[0].push((single[before as usize], item)),
                _ => pairs[1].push((segment[(before ^ OTHER) as usize], item)),
            }
        }
        let [after, ends] = pairs;
        let after = Lists::new(singles.len(), &after);
        let ends = Lists::new(segments.len(), &ends);
        let rings: Vec<Ring> = self.rings.into_iter().map(|of| of.0).collect();
        let terms = self.terms;
        // The ids in messages are those of this builder.
        let messages = self.messages.into_iter().map(|message| Message {
            send: StepId(step[message.send.index()]),
            receive: StepId(step[message.receive.index()]),
            ..message
        });
        let of_singles = singles.iter().map(|step| step.iteration + 1).max();
        let of_rings = rings.iter().map(|ring| ring.iteration + 1).max();
        Graph {
            first,
            first_single,
            needs,
            waits,
            after,
            segment_index: Index::new(segments.iter().map(|segment| segment.first)),
            segments,
            first_segment,
            ends,
            segment_of: segment,
            groups: self.groups,
            terms,
            messages: messages.collect(),
            message_count: self.message_count as u32,
            iterations: of_singles.max(of_rings).unwrap_or(0),
            collectives: self.collectives,
            names: self.names,
            singles,
            ring_index: Index::new(rings.iter().map(|ring| ring.first_message)),
            rings,
        }
    }

    /// Where steps and parts go.
    fn places(&self) -> Placed {
        let ranks = self.ranks as usize;
        let (mut first, mut first_single, mut first_segment) =
            (vec![0u32; ranks + 1], vec![0u32; ranks + 1], vec![0u32; ranks + 1]);
        for step in &self.steps {
            first[step.rank.index() + 1] += 1;
            first_single[step.rank.index() + 1] += 1;
        }
        for (ring, _) in &self.rings {
            for rank in &self.groups[ring.group as usize] {
                first[rank.index() + 1] += ring.steps();
                first_segment[rank.index() + 1] += 1;
            }
        }
        for of in [&mut first, &mut first_single, &mut first_segment] {
            (0..ranks).for_each(|rank| of[rank + 1] += of[rank]);
        }
        let (mut next, mut next_single, mut next_segment) =
            (first.clone(), first_single.clone(), first_segment.clone());
        let none = Segment { first: 0, singles: 0, ring: 0, i: 0, entry: 0 };
        let mut placed = Placed {
            step: Vec::with_capacity(self.steps.len()),
            single: Vec::with_capacity(self.steps.len()),
            segment: vec![0; self.parts.len()],
            segments: vec![none; self.parts.len()],
            first,
            first_single,
            first_segment,
        };
        let mut rings = (0u32..).zip(&self.rings).peekable();
        for number in 0..=self.steps.len() {
            while let Some((at, (ring, _))) = rings.next_if(|of| of.1.1 as usize == number) {
                for (place, rank) in (0u32..).zip(&self.groups[ring.group as usize]) {
                    let (rank, part) = (rank.index(), (ring.places + place) as usize);
                    placed.segment[part] = next_segment[rank];
                    placed.segments[next_segment[rank] as usize] = Segment {
                        first: next[rank],
                        singles: next_single[rank],
                        ring: at,
                        i: ring.place(place),
                        entry: self.parts[part].1,
                    };
                    next_segment[rank] += 1;
                    next[rank] += ring.steps();
                }
            }
            if let Some(step) = self.steps.get(number) {
                let rank = step.rank.index();
                placed.step.push(next[rank]);
                placed.single.push(next_single[rank]);
                next[rank] += 1;
                next_single[rank] += 1;
            }
        }
        placed
    }
}

/// Where steps and parts go in a graph.
struct Placed {
    first: Vec<u32>,
    first_single: Vec<u32>,
    first_segment: Vec<u32>,
    /// By single step: its number among all, and among these.
    step: Vec<u32>,
    single: Vec<u32>,
    /// By part: its segment.
    segment: Vec<u32>,
    segments: Vec<Segment>,
}

impl Lists {
    /// From pairs: an index, and an item that waits for it.
    fn new(count: usize, pairs: &[(u32, u32)]) -> Lists {
        let mut first = vec![0u32; count + 1];
        pairs.iter().for_each(|of| first[of.0 as usize + 1] += 1);
        (0..count).for_each(|at| first[at + 1] += first[at]);
        let mut next = first.clone();
        let mut items = vec![0; pairs.len()];
        for &(before, item) in pairs {
            let at = &mut next[before as usize];
            items[*at as usize] = item;
            *at += 1;
        }
        Lists { first, items }
    }
}
