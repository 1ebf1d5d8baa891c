//! Makes a graph of the steps of a trace's ranks: matches sends with receives, and collects the participants of
//! collectives.

use units::Duration;

use super::{BYTES_MAX, Reading, TIME_MAX, TraceError};
use crate::collective::{Group, Kind};
use crate::{Builder, Count, Graph, GraphError, Rank, StepId};

/// The kind of an operation of a trace.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum What {
    /// Keeps the rank busy.
    Compute(Duration),
    /// Time passes.
    Delay(Duration),
    /// A message leaves.
    Send { to: u32, tag: u32, bytes: u64 },
    /// A message is needed. `room` is the largest that fits.
    Receive { from: u32, tag: u32, room: u64 },
    /// Takes part in a collective of a group. `root` is the place in the group of whose buffer a broadcast is.
    Collective { kind: Kind, group: u32, bytes: u64, root: u32 },
}

/// An operation of a rank.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Op {
    pub what: What,
    pub name: Box<str>,
    /// Its line in the file, or the number of its node.
    pub at: u64,
}

/// The work of a rank.
#[derive(Default)]
pub(super) struct RankOps {
    pub ops: Vec<Op>,
    /// Pairs: an operation, and one that must have ended before it begins.
    pub after_end: Vec<(u32, u32)>,
    /// Pairs: an operation, and one that must have begun before it begins.
    pub after_begin: Vec<(u32, u32)>,
}

/// All ranks of a trace.
pub(super) struct Ops<'a> {
    pub ranks: Vec<RankOps>,
    /// Groups of ranks that collectives name.
    pub groups: Vec<Vec<u32>>,
    /// The file that has a rank's operations.
    pub file: &'a dyn Fn(u32) -> String,
    /// The unit of [`Op::at`], such as "line".
    pub unit: &'static str,
    pub reading: &'a Reading,
}

/// A send or a receive, in the order in which they match.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct End {
    from: u32,
    to: u32,
    tag: u32,
    op: u32,
}

impl End {
    fn key(&self) -> (u32, u32, u32) {
        (self.from, self.to, self.tag)
    }
}

/// Where the operations of a rank begin and end in the graph.
struct Steps {
    begin: Vec<StepId>,
    end: Vec<StepId>,
}

impl Ops<'_> {
    /// The graph.
    pub fn graph(&self) -> Result<Graph, TraceError> {
        self.check_sizes()?;
        let mut b = Builder::new(self.ranks.len() as u32);
        let mut steps: Vec<Steps> = (0..self.ranks.len() as u32).map(|rank| self.add_rank(&mut b, rank)).collect();
        self.match_messages(&mut b, &steps)?;
        self.match_collectives(&mut b, &mut steps)?;
        for (rank, own) in self.ranks.iter().enumerate() {
            self.add_waits(&mut b, rank as u32, own, &steps[rank]);
        }
        b.build().map_err(|error| match error {
            GraphError::Circle { count, name, rank } => {
                let expected = format!("a step that can begin: {count} steps wait for each other in a circle");
                TraceError::new(&(self.file)(rank), format_args!("rank {rank}"), "step", &name, &expected)
            }
            other => TraceError::whole(&(self.file)(0), "job", &other.to_string(), "one that can be carried out"),
        })
    }

    /// The size of the graph, before it is built, if hosts have `local` consecutive ranks each.
    pub fn count(&self, local: u32) -> Result<Count, TraceError> {
        self.check_sizes()?;
        let local = local.max(1);
        let mut sum = Count::default();
        for (rank, own) in (0..).zip(&self.ranks) {
            let mut waits = vec![false; own.ops.len()];
            own.after_end.iter().chain(&own.after_begin).for_each(|&(op, _)| waits[op as usize] = true);
            let mut gated: Vec<u32> = own.after_begin.iter().map(|&(_, before)| before).collect();
            gated.retain(|&before| waits[before as usize]);
            gated.sort_unstable();
            gated.dedup();
            let steps = (own.ops.len() + gated.len()) as u64;
            sum = sum.and(Count { steps, ..Count::default() });
            for op in &own.ops {
                sum = sum.and(self.count_op(rank, op, local));
            }
        }
        Ok(sum)
    }

    /// The addition of an operation to its own step. A collective is counted at its group's first rank.
    fn count_op(&self, rank: u32, op: &Op, local: u32) -> Count {
        match op.what {
            What::Compute(_) => Count { computations: 1, ..Count::default() },
            What::Send { to, bytes, .. } if to != rank => {
                let leaving = u64::from(to / local != rank / local);
                Count { messages: 1, leaving, bytes: bytes.max(1), ..Count::default() }
            }
            What::Collective { kind, group, bytes, .. } => {
                let members = &self.groups[group as usize];
                if members.first() != Some(&rank) {
                    return Count::default();
                }
                let stride = members.get(1).map_or(1, |second| second - rank);
                let group = Group { first: rank, stride, size: members.len() as u32 };
                let how = &self.reading.how;
                let share = if group.size < 2 { (0, 1) } else { how.leaving(kind, group, local) };
                how.count(kind, group.size, bytes, 1).leaving(share)
            }
            _ => Count::default(),
        }
    }

    pub fn error(&self, rank: u32, op: u32, field: &str, value: &str, expected: &str) -> TraceError {
        let at = self.ranks[rank as usize].ops[op as usize].at;
        let place = format!("{} {at} of rank {rank}", self.unit);
        TraceError::new(&(self.file)(rank), place, field, value, expected)
    }

    /// Nothing may overflow, however the steps follow each other.
    fn check_sizes(&self) -> Result<(), TraceError> {
        if self.ranks.is_empty() {
            return Err(TraceError::whole(&(self.file)(0), "number of ranks", "0", "at least 1"));
        }
        let steps: u64 = self.ranks.iter().map(|rank| rank.ops.len() as u64).sum();
        if steps > self.reading.steps_max {
            let expected = format!("at most {}", self.reading.steps_max);
            return Err(TraceError::whole(&(self.file)(0), "number of steps", &steps.to_string(), &expected));
        }
        let mut time = 0u64;
        for (rank, own) in self.ranks.iter().enumerate() {
            for (op, Op { what, .. }) in own.ops.iter().enumerate() {
                let error = |field, value: String, expected: &str| {
                    Err(self.error(rank as u32, op as u32, field, &value, expected))
                };
                match *what {
                    What::Compute(own) | What::Delay(own) => {
                        time = time.saturating_add(own.ps());
                        if time > TIME_MAX {
                            return error("time", own.to_string(), "less: all times of all ranks may be 100 days");
                        }
                    }
                    What::Send { bytes, .. } | What::Collective { bytes, .. } if bytes > BYTES_MAX => {
                        return error("size", bytes.to_string(), "at most 1 PiB, 2^50 bytes");
                    }
                    What::Send { to: other, .. } | What::Receive { from: other, .. }
                        if other as usize >= self.ranks.len() =>
                    {
                        let expected = format!("one of the {} ranks, from 0", self.ranks.len());
                        return error("rank", other.to_string(), &expected);
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }

    fn add_rank(&self, b: &mut Builder, rank: u32) -> Steps {
        let own = Rank(rank);
        let add = |op: &Op| {
            b.name(&op.name);
            match op.what {
                What::Compute(time) => b.compute(own, time, &[]),
                What::Delay(time) => b.delay(own, time, &[]),
                What::Send { .. } | What::Receive { .. } | What::Collective { .. } => b.open(own, &[]),
            }
        };
        let begin: Vec<StepId> = self.ranks[rank as usize].ops.iter().map(add).collect();
        Steps { end: begin.clone(), begin }
    }

    /// The dependencies of a rank. A step that waits for the beginning of another step waits for the same steps as that
    /// one.
    fn add_waits(&self, b: &mut Builder, rank: u32, own: &RankOps, steps: &Steps) {
        let mut waits = vec![false; own.ops.len()];
        own.after_end.iter().chain(&own.after_begin).for_each(|&(op, _)| waits[op as usize] = true);
        // Of each that another waits for the begin of: the step at which it may begin.
        let mut gate: Vec<Option<StepId>> = vec![None; own.ops.len()];
        b.name("");
        for &(_, before) in &own.after_begin {
            if waits[before as usize] && gate[before as usize].is_none() {
                let step = b.open(Rank(rank), &[]);
                b.wait(steps.begin[before as usize], step);
                gate[before as usize] = Some(step);
            }
        }
        let waiter = |op: u32| gate[op as usize].unwrap_or(steps.begin[op as usize]);
        for &(op, before) in &own.after_end {
            b.wait(waiter(op), steps.end[before as usize]);
        }
        for &(op, before) in &own.after_begin {
            if let Some(gate) = gate[before as usize] {
                b.wait(waiter(op), gate);
            }
        }
    }

    fn match_messages(&self, b: &mut Builder, steps: &[Steps]) -> Result<(), TraceError> {
        let (mut sends, mut receives) = (Vec::new(), Vec::new());
        for (rank, own) in self.ranks.iter().enumerate() {
            let rank = rank as u32;
            for (op, Op { what, .. }) in own.ops.iter().enumerate() {
                let op = op as u32;
                match *what {
                    What::Send { to, tag, .. } => sends.push(End { from: rank, to, tag, op }),
                    What::Receive { from, tag, .. } => receives.push(End { from, to: rank, tag, op }),
                    _ => {}
                }
            }
        }
        sends.sort_unstable();
        receives.sort_unstable();
        for (at, send) in sends.iter().enumerate() {
            match receives.get(at) {
                Some(receive) if receive.key() == send.key() => {
                    let bytes = self.fitting(send, receive)?;
                    let step_of = |rank: u32, op: u32| steps[rank as usize].begin[op as usize];
                    let (from, to) = (step_of(send.from, send.op), step_of(send.to, receive.op));
                    if send.from == send.to {
                        b.wait(to, from); // it crosses no network
                    } else {
                        b.connect(from, to, bytes);
                    }
                }
                Some(receive) if receive < send => return Err(self.alone(receive, false, &sends, &receives)),
                _ => return Err(self.alone(send, true, &sends, &receives)),
            }
        }
        match receives.get(sends.len()) {
            Some(receive) => Err(self.alone(receive, false, &sends, &receives)),
            None => Ok(()),
        }
    }

    /// Bytes of a message, for which its receiver must have room. One without content has a byte here.
    fn fitting(&self, send: &End, receive: &End) -> Result<u64, TraceError> {
        let (from, to) = (&self.ranks[send.from as usize].ops, &self.ranks[send.to as usize].ops);
        let (sender, receiver) = (&from[send.op as usize], &to[receive.op as usize]);
        let (What::Send { bytes, .. }, What::Receive { room, .. }) = (sender.what, receiver.what) else {
            unreachable!("ends are of messages")
        };
        if bytes > room {
            let at = format!("{} {} of rank {}", self.unit, sender.at, send.from);
            let expected = format!("at least {bytes}, the size of the message that it receives, of {at}");
            return Err(self.error(send.to, receive.op, "size", &room.to_string(), &expected));
        }
        Ok(bytes.max(1))
    }

    /// A send without a receive, or the other way round.
    fn alone(&self, end: &End, send: bool, sends: &[End], receives: &[End]) -> TraceError {
        let count = |ends: &[End]| {
            let key = end.key();
            ends.partition_point(|other| other.key() <= key) - ends.partition_point(|other| other.key() < key)
        };
        let End { from, to, tag, op } = *end;
        let (sent, received) = (count(sends), count(receives));
        let expected =
            format!("matched: with tag {tag} rank {from} sends {sent} to rank {to}, which receives {received}");
        match send {
            true => self.error(from, op, "send", &format!("to rank {to} with tag {tag}"), &expected),
            false => self.error(to, op, "receive", &format!("from rank {from} with tag {tag}"), &expected),
        }
    }

    /// The n-th collective of a group at one of its ranks is the n-th at all of them.
    fn match_collectives(&self, b: &mut Builder, steps: &mut [Steps]) -> Result<(), TraceError> {
        // By group and rank, which operations.
        let mut found: Vec<Vec<(u32, u32)>> = vec![Vec::new(); self.groups.len()];
        for (rank, own) in self.ranks.iter().enumerate() {
            for (op, Op { what, .. }) in own.ops.iter().enumerate() {
                if let What::Collective { group, .. } = *what {
                    found[group as usize].push((rank as u32, op as u32));
                }
            }
        }
        for (group, found) in self.groups.iter().zip(found).filter(|(_, found)| !found.is_empty()) {
            let of = |rank: u32| {
                let begin = found.partition_point(|other| other.0 < rank);
                &found[begin..found.partition_point(|other| other.0 <= rank)]
            };
            let all: Vec<&[(u32, u32)]> = group.iter().map(|&rank| of(rank)).collect();
            let most = all.iter().max_by_key(|own| own.len()).expect("a group has ranks");
            for number in 0..most.len() {
                let (rank, op) = most[number];
                let missing = all.iter().position(|own| own.len() <= number);
                if let Some(missing) = missing {
                    let expected = format!(
                        "one that all ranks of the group have: rank {rank} has {} and rank {} has {}",
                        most.len(),
                        group[missing],
                        all[missing].len()
                    );
                    let value = format!("number {} of a group of {}", number + 1, group.len());
                    return Err(self.error(rank, op, "collective", &value, &expected));
                }
                let parts: Vec<(u32, u32)> = all.iter().map(|own| own[number]).collect();
                self.add_collective(b, steps, &parts)?;
            }
        }
        Ok(())
    }

    fn add_collective(&self, b: &mut Builder, steps: &mut [Steps], parts: &[(u32, u32)]) -> Result<(), TraceError> {
        let op_of = |&(rank, op): &(u32, u32)| &self.ranks[rank as usize].ops[op as usize];
        let first = op_of(&parts[0]);
        for part in parts {
            let op = op_of(part);
            if op.what != first.what {
                let (value, expected) = (said(&op.what), said(&first.what));
                let at = format!("{} {} of rank {}", self.unit, first.at, parts[0].0);
                let expected = format!("{expected}, as {at} says of the same collective");
                return Err(self.error(part.0, part.1, "collective", &value, &expected));
            }
        }
        let What::Collective { kind, bytes, root, .. } = first.what else { unreachable!("parts are of collectives") };
        let error =
            |field, value: &str, expected: &str| Err(self.error(parts[0].0, parts[0].1, field, value, expected));
        let most = self.reading.how.steps_most(kind, parts.len(), bytes);
        let room = self.reading.steps_max.saturating_sub(b.steps());
        if most > room {
            return error("steps", &format!("up to {most} more"), &format!("at most {room} more in this job"));
        }
        let mut parts = parts.to_vec();
        parts.rotate_left(root as usize);
        let ranks: Vec<Rank> = parts.iter().map(|part| Rank(part.0)).collect();
        let entry: Vec<Vec<StepId>> =
            parts.iter().map(|&(rank, op)| vec![steps[rank as usize].begin[op as usize]]).collect();
        match self.reading.how.add(b, kind, &first.name, 0, &ranks, bytes, &entry) {
            Ok(ends) => {
                for (&(rank, op), end) in parts.iter().zip(ends) {
                    steps[rank as usize].end[op as usize] = end;
                }
                Ok(())
            }
            Err(not_possible) => error("algorithm", &not_possible.to_string(), "one for this group"),
        }
    }
}

fn said(what: &What) -> String {
    match what {
        What::Collective { kind, bytes, .. } => format!("{} of {bytes} B", kind.name()),
        _ => String::new(),
    }
}
