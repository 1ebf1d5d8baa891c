//! When each step of a job began and ended, and which steps made the job as long as it was.

use units::Time;

use crate::{Done, Graph, MessageId, StepId, Work};

/// The times of a message in the network; none for an event that did not happen.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Carried {
    /// Its sender's application handed it over.
    pub started: Option<Time>,
    /// Its receiver had all of it.
    pub delivered: Option<Time>,
    /// Its sender knew.
    pub completed: Option<Time>,
}

/// When each step of a job began and ended.
pub struct Timeline<'a> {
    graph: &'a Graph,
    /// By step.
    begin: Vec<Option<Time>>,
    end: Vec<Option<Time>>,
    /// By step: whether it sent a message within its host.
    within: Vec<bool>,
    /// Until when the steps that it waited for had ended, and the last of them.
    ready: Vec<(Time, Option<StepId>)>,
}

/// The kind of a part of the critical path.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum PathPart {
    /// A rank computed.
    Compute,
    /// Time passed, such as a library's latency.
    Delay,
    /// A message was in the network, until its receiver had it.
    Message,
    /// A message was on its way to another rank of its host, or waited for its rank's link.
    Local,
    /// A step waited until a sender knew that its message had arrived.
    Answer,
}

/// A part of the critical path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Segment {
    /// What it is.
    pub part: PathPart,
    /// The step: of a message, the one that sent it.
    pub step: StepId,
    /// When the part before it ended.
    pub begin: Time,
    /// When it ended.
    pub end: Time,
}

impl<'a> Timeline<'a> {
    /// Works out when steps began and ended: from what was noted of computations and of messages within hosts
    /// ([`crate::Progress::done`]), and from what the network did with other messages. The job began at `start`.
    pub fn new(
        graph: &'a Graph,
        start: Time,
        done: impl Iterator<Item = Done>,
        carried: impl Fn(MessageId) -> Carried,
    ) -> Timeline<'a> {
        let steps = graph.steps().len();
        let (begin, end, within) = (vec![None; steps], vec![None; steps], vec![false; steps]);
        let mut line = Timeline { graph, begin, end, within, ready: vec![(start, None); steps] };
        for Done { step, begin, end } in done {
            (line.begin[step.index()], line.end[step.index()]) = (Some(begin), Some(end));
            line.within[step.index()] = matches!(graph.step(step).work, Work::Send(_));
        }
        // Whether something that a step waits for has not ended.
        let mut never = vec![false; steps];
        graph.in_order(|step| {
            line.set(step, never[step.index()], &carried);
            let end = line.end[step.index()];
            graph.each_after(step, |next| match end {
                None => never[next.index()] = true,
                Some(end) if end >= line.ready[next.index()].0 => line.ready[next.index()] = (end, Some(step)),
                Some(_) => {}
            });
        });
        line
    }

    /// Sets a step's times; those that it waited for are set, and one of them may `never` have ended.
    fn set(&mut self, step: StepId, never: bool, carried: impl Fn(MessageId) -> Carried) {
        let (at, ready) = (step.index(), self.ready[step.index()].0);
        match self.graph.step(step).work {
            _ if never => (self.begin[at], self.end[at]) = (None, None),
            Work::Compute(_) => {}
            Work::Delay(time) => (self.begin[at], self.end[at]) = (Some(ready), Some(ready + time)),
            Work::Send(_) if self.within[at] => {}
            Work::Send(message) => {
                let carried = carried(message);
                (self.begin[at], self.end[at]) = (carried.started, carried.completed);
            }
            Work::Receive(message) => {
                let send = self.graph.message(message).send;
                let within = self.within[send.index()];
                let arrived = if within { self.end[send.index()] } else { carried(message).delivered };
                (self.begin[at], self.end[at]) = (Some(ready), arrived.map(|arrived| arrived.max(ready)));
            }
        }
    }

    /// When a step began: a receive, when its rank began to wait. None if it never did.
    pub fn begin(&self, step: StepId) -> Option<Time> {
        self.begin[step.index()]
    }

    /// When a step's rank took part in something: when it sent, when it received, when it computed. A rank may begin
    /// to wait long before.
    pub fn took_part(&self, step: StepId) -> Option<Time> {
        match self.graph.step(step).work {
            Work::Receive(_) => self.end(step),
            _ => self.begin(step),
        }
    }

    /// When a step's rank was done with it: with a message, when it had handed it over. Others may wait until the
    /// message has arrived.
    pub fn was_done(&self, step: StepId) -> Option<Time> {
        match self.graph.step(step).work {
            Work::Send(_) => self.begin(step),
            _ => self.end(step),
        }
    }

    /// When a step ended, if it did.
    pub fn end(&self, step: StepId) -> Option<Time> {
        self.end[step.index()]
    }

    /// The last of these steps that a rank was done with, and when; the first of several. None if there is none.
    pub fn last(&self, steps: impl Iterator<Item = StepId>) -> Option<(StepId, Time)> {
        let ended = steps.filter_map(|step| Some((step, self.was_done(step)?)));
        ended.reduce(|last, next| if next.1 > last.1 { next } else { last })
    }

    /// The chain of parts that ends with `last`, the earliest first, each beginning when the one before it ended: the
    /// first begins with the job. Making one of them shorter would have made the job shorter; any other, not.
    pub fn critical_path(&self, last: StepId) -> Vec<Segment> {
        let mut path = Vec::new();
        // A rank is done with a message when it has handed it over.
        let mut at = match self.graph.step(last).work {
            Work::Send(_) => self.ready[last.index()].1,
            _ => Some(last),
        };
        let before = self.computed_before();
        while let Some(step) = at {
            at = self.add_part(step, &before, &mut path);
        }
        path.reverse();
        path
    }

    /// By step, the computation of its rank that ended when it began; else nothing.
    fn computed_before(&self) -> Vec<Option<StepId>> {
        let mut before = vec![None; self.end.len()];
        let is_compute = |step: &StepId| matches!(self.graph.step(*step).work, Work::Compute(_));
        for rank in 0..self.graph.ranks() {
            let steps = self.graph.of(crate::Rank(rank)).map(StepId).filter(is_compute);
            let mut computed: Vec<StepId> = steps.filter(|step| self.end[step.index()].is_some()).collect();
            computed.sort_by_key(|step| (self.begin[step.index()], self.end[step.index()]));
            computed.windows(2).for_each(|pair| before[pair[1].index()] = Some(pair[0]));
        }
        before
    }

    /// Adds the part that ends with a step, and returns the step that this part waited for.
    fn add_part(&self, step: StepId, before: &[Option<StepId>], path: &mut Vec<Segment>) -> Option<StepId> {
        let (ready, cause) = self.ready[step.index()];
        let end = self.end[step.index()]?;
        let mut add = |part, step, begin| {
            if end > begin {
                path.push(Segment { part, step, begin, end });
            }
        };
        match self.graph.step(step).work {
            Work::Compute(_) => {
                let begin = self.begin[step.index()]?;
                add(PathPart::Compute, step, begin);
                // Its rank was busy with another computation, or it waited for what it needed.
                if begin > ready { before[step.index()] } else { cause }
            }
            Work::Delay(_) => {
                add(PathPart::Delay, step, ready);
                cause
            }
            Work::Send(_) => {
                add(if self.within[step.index()] { PathPart::Local } else { PathPart::Answer }, step, ready);
                cause
            }
            Work::Receive(message) => {
                let send = self.graph.message(message).send;
                let (sent, sent_cause) = self.ready[send.index()];
                if end <= ready && cause.is_some() {
                    return cause;
                }
                add(if self.within[send.index()] { PathPart::Local } else { PathPart::Message }, send, sent);
                sent_cause
            }
        }
    }

    /// When computations began and ended, those that did.
    pub fn computations(&self) -> impl Iterator<Item = (Time, Time)> {
        let steps = (0..self.end.len() as u32).map(StepId);
        let computing = steps.filter(|step| matches!(self.graph.step(*step).work, Work::Compute(_)));
        computing.filter_map(|step| self.begin(step).zip(self.end(step)))
    }
}

#[cfg(test)]
mod tests;
