//! The steps of a job, and which of them wait for which.

use std::collections::HashMap;

use units::Duration;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
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

/// What is wrong with a graph.
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
        /// What there are too many of.
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
    steps: Vec<Step>,
    /// By rank, where its steps begin; one more at the end.
    first: Vec<u32>,
    /// By step, how many steps must end before it may begin.
    needs: Vec<u32>,
    /// Steps that wait, by the step that they wait for: those of step i are at `after[i]..after[i + 1]`.
    after: Vec<u32>,
    waiting: Vec<StepId>,
    messages: Vec<Message>,
    collectives: Vec<Collective>,
    names: Vec<String>,
}

/// Most steps of a graph: what fits into some gigabytes.
pub const STEPS_MAX: u64 = 400_000_000;

impl Graph {
    /// How many ranks.
    pub fn ranks(&self) -> u32 {
        self.first.len() as u32 - 1
    }

    /// All steps, those of rank 0 first.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// One step.
    #[inline]
    pub fn step(&self, step: StepId) -> &Step {
        &self.steps[step.index()]
    }

    /// The steps of a rank.
    pub fn of(&self, rank: Rank) -> std::ops::Range<u32> {
        self.first[rank.index()]..self.first[rank.index() + 1]
    }

    /// How many steps must end before this one may begin.
    #[inline]
    pub fn needs(&self, step: StepId) -> u32 {
        self.needs[step.index()]
    }

    /// The steps that wait for this one.
    #[inline]
    pub fn after(&self, step: StepId) -> &[StepId] {
        &self.waiting[self.after[step.index()] as usize..self.after[step.index() + 1] as usize]
    }

    /// All messages.
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// One message.
    #[inline]
    pub fn message(&self, message: MessageId) -> &Message {
        &self.messages[message.index()]
    }

    /// All executions of collectives.
    pub fn collectives(&self) -> &[Collective] {
        &self.collectives
    }

    /// Names of steps.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The time of the longest chain of steps that wait for each other, if each message `takes` so long, and ranks can
    /// do several computations at once: no run is shorter.
    pub fn longest_chain(&self, takes: impl Fn(MessageId) -> Duration) -> Duration {
        // By step: when what it waits for has ended; of a receive, when its message has arrived.
        let mut ready = vec![Duration::ZERO; self.steps.len()];
        let mut longest = Duration::ZERO;
        self.in_order(|step| {
            let begin = ready[step.index()];
            let end = match self.step(step).work {
                Work::Compute(time) | Work::Delay(time) => begin + time,
                Work::Send(message) => begin + takes(message),
                Work::Receive(_) => begin,
            };
            longest = longest.max(end);
            for next in self.awaiting(step) {
                ready[next.index()] = ready[next.index()].max(end);
            }
        });
        longest
    }

    /// The steps that wait for a step: those after it, and the receive of what it sends.
    fn awaiting(&self, step: StepId) -> impl Iterator<Item = StepId> {
        let arrives = match self.step(step).work {
            Work::Send(message) => Some(self.message(message).receive),
            _ => None,
        };
        self.after(step).iter().copied().chain(arrives)
    }

    /// How many iterations.
    pub fn iterations(&self) -> u32 {
        self.steps.iter().map(|step| step.iteration + 1).max().unwrap_or(0)
    }

    /// Visits every step after those that it waits for, through messages too. Returns what is left of each step's
    /// dependencies if some wait in a circle, else nothing.
    pub(crate) fn in_order(&self, mut visit: impl FnMut(StepId)) -> Option<Vec<u32>> {
        // A receive also waits for the send of its message.
        let mut missing = self.needs.clone();
        self.messages.iter().for_each(|message| missing[message.receive.index()] += 1);
        let all = (0..self.steps.len() as u32).map(StepId);
        let mut free: Vec<StepId> = all.filter(|step| missing[step.index()] == 0).collect();
        let mut visited = 0;
        while let Some(step) = free.pop() {
            visit(step);
            visited += 1;
            for next in self.awaiting(step) {
                missing[next.index()] -= 1;
                if missing[next.index()] == 0 {
                    free.push(next);
                }
            }
        }
        (visited < self.steps.len()).then_some(missing)
    }
}

/// Collects the steps of a job in any order.
#[derive(Clone, Debug)]
pub struct Builder {
    ranks: u32,
    steps: Vec<Step>,
    /// Pairs: a step, and one that it waits for.
    waits: Vec<(StepId, StepId)>,
    messages: Vec<Message>,
    collectives: Vec<Collective>,
    names: Vec<String>,
    /// Index in `names`, by name.
    named: HashMap<String, u32>,
    /// What the next steps belong to, and their name.
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
            waits: Vec::new(),
            messages: Vec::new(),
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

    /// How many steps there are so far.
    pub fn steps(&self) -> u64 {
        self.steps.len() as u64
    }

    /// The steps and messages that have been added so far.
    pub fn count(&self) -> crate::Count {
        crate::Count::of(&self.steps, self.messages.iter().map(|message| message.bytes))
    }

    /// What the steps that follow are called.
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
            &[only] => only,
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
        let message = MessageId(self.messages.len() as u32);
        let send = self.step(from, Work::Send(message), send_after);
        let receive = self.step(to, Work::Receive(message), receive_after);
        self.messages.push(Message { from, to, bytes, span, send, receive, connection: Message::ALONE });
        (send, receive)
    }

    /// A new connection from one rank to another.
    pub fn connection(&mut self) -> u32 {
        self.connections += 1;
        self.connections - 1
    }

    /// The message that was added last goes over this connection.
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
        let message = MessageId(self.messages.len() as u32);
        let (from, to) = (self.steps[send.index()].rank, self.steps[receive.index()].rank);
        if from == to || bytes == 0 {
            let wrong = GraphError::NoMessage { from: from.0, to: to.0, bytes, ranks: self.ranks };
            self.wrong.get_or_insert(wrong);
        }
        self.steps[send.index()].work = Work::Send(message);
        self.steps[receive.index()].work = Work::Receive(message);
        let connection = Message::ALONE;
        self.messages.push(Message { from, to, bytes, span: (0, 0), send, receive, connection });
    }

    /// One step waits for another of the same rank.
    pub fn wait(&mut self, step: StepId, before: StepId) {
        self.waits.push((step, before));
    }

    fn step(&mut self, rank: Rank, work: Work, after: &[StepId]) -> StepId {
        if self.steps.len() as u64 >= STEPS_MAX {
            self.wrong.get_or_insert(GraphError::TooLarge { most: STEPS_MAX, what: "steps" });
            return StepId(0);
        }
        let step = StepId(self.steps.len() as u32);
        self.steps.push(Step { rank, work, of: self.of, name: self.name, iteration: self.iteration });
        self.waits.extend(after.iter().map(|&before| (step, before)));
        step
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
            let (rank, other) = (self.steps[step.index()].rank, self.steps[before.index()].rank);
            if rank != other {
                let (step, before) = (step.index(), before.index());
                return Err(GraphError::OtherRank { step, rank: rank.0, before, other: other.0 });
            }
        }
        let graph = self.sorted();
        graph.check_order()?;
        Ok(graph)
    }

    /// The same with the steps of each rank side by side.
    fn sorted(self) -> Graph {
        let mut first = vec![0u32; self.ranks as usize + 1];
        self.steps.iter().for_each(|step| first[step.rank.index() + 1] += 1);
        (0..self.ranks as usize).for_each(|rank| first[rank + 1] += first[rank]);
        let mut next = first.clone();
        let place: Vec<StepId> = self
            .steps
            .iter()
            .map(|step| {
                let at = &mut next[step.rank.index()];
                *at += 1;
                StepId(*at - 1)
            })
            .collect();
        let mut steps = self.steps.clone();
        self.steps.iter().zip(&place).for_each(|(step, at)| steps[at.index()] = *step);
        let (mut needs, mut after) = (vec![0u32; steps.len()], vec![0u32; steps.len() + 1]);
        for &(step, before) in &self.waits {
            needs[place[step.index()].index()] += 1;
            after[place[before.index()].index() + 1] += 1;
        }
        (0..steps.len()).for_each(|step| after[step + 1] += after[step]);
        let mut next = after.clone();
        let mut waiting = vec![StepId(0); self.waits.len()];
        for &(step, before) in &self.waits {
            let at = &mut next[place[before.index()].index()];
            waiting[*at as usize] = place[step.index()];
            *at += 1;
        }
        let moved = |message: Message| Message {
            send: place[message.send.index()],
            receive: place[message.receive.index()],
            ..message
        };
        let messages = self.messages.into_iter().map(moved).collect();
        Graph { steps, first, needs, after, waiting, messages, collectives: self.collectives, names: self.names }
    }
}

impl Graph {
    /// Whether every step can begin at some time: no circle, through messages neither.
    fn check_order(&self) -> Result<(), GraphError> {
        let Some(missing) = self.in_order(|_| ()) else { return Ok(()) };
        let stuck = missing.iter().position(|&missing| missing > 0).expect("some step has not ended");
        let Step { rank, name, .. } = self.steps[stuck];
        let count = missing.iter().filter(|&&missing| missing > 0).count();
        Err(GraphError::Circle { count, name: self.names[name as usize].clone(), rank: rank.0 })
    }
}

#[cfg(test)]
mod tests;
