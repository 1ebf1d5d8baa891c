//! htsim's connection matrices, whose triggers start connections when others are done: a job of dependent messages.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::Duration;

use super::{BYTES_MAX, Line, RANKS_MAX, Reading, TIME_MAX, TraceError, text};
use crate::{Builder, Count, Graph, GraphError, Rank, StepId};

/// htsim's connection matrix: `Nodes N`, `Connections M`, optionally `Triggers K`, then a line for each connection,
/// such as `3->7 id 5 start 1000 size 2000000` or `3->7 id 6 trigger 2 size 2000000 send_done_trigger 3`, and for each
/// trigger, such as `trigger id 2 oneshot`. Each node is a rank, each connection a message.
///
/// In htsim a trigger starts a connection anywhere at once. Here it starts at a host that knows of the earlier
/// connection's end: at the earlier sender, when it knows that everything has arrived; or at the earlier receiver, when
/// everything has arrived. Any other source is refused. A barrier waits for `count` connections. A multishot starts one
/// connection for each that fires it: here the n-th that fires it in the file starts the n-th that it starts. Refused
/// are `prio`, `addon`, failures and connections of size 0, which htsim sends for ever.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HtsimTrace {
    /// Path of the file, relative to the scenario's folder.
    pub path: String,
    /// Unit of `start` in the file. Default: `ps`.
    #[serde(default)]
    pub start_unit: StartUnit,
}

/// Unit of `start` in a connection matrix, in which versions of htsim differ.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StartUnit {
    /// Picoseconds, as in present versions of htsim.
    #[default]
    Ps,
    /// Nanoseconds.
    Ns,
    /// Microseconds, as in older versions.
    Us,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    OneShot,
    MultiShot,
    Barrier { count: u64 },
}

/// A trigger, from all lines that name it.
#[derive(Default)]
struct Trigger {
    /// The line that declares it, and what it is.
    declared: Option<(u64, Kind)>,
    /// The connections that fire it, and those that it starts: indices.
    fired_by: Vec<usize>,
    starts: Vec<usize>,
}

struct Connection {
    line: u64,
    from: u32,
    to: u32,
    bytes: u64,
    start: Duration,
}

#[derive(Default)]
struct Matrix {
    nodes: Option<u32>,
    /// Counts of the header, with their lines.
    counts: BTreeMap<&'static str, (u64, u64)>,
    connections: Vec<Connection>,
    triggers: BTreeMap<u64, Trigger>,
    /// Lines by the ids of their connections.
    ids: BTreeMap<u64, u64>,
    /// All starts together, in picoseconds.
    times: u64,
}

impl HtsimTrace {
    /// Reads the file's content.
    pub fn parse(&self, content: &[u8], reading: &Reading) -> Result<Graph, TraceError> {
        self.matrix(content)?.graph(&self.path, reading)
    }

    /// Counts what the file has: ranks, and what they do if hosts have `local` consecutive ones each.
    pub fn count(&self, content: &[u8], local: u32) -> Result<(u32, Count), TraceError> {
        let matrix = self.matrix(content)?;
        let local = local.max(1);
        let one = |&Connection { from, to, bytes, start, .. }: &Connection| Count {
            steps: 2 + u64::from(start > Duration::ZERO),
            messages: 1,
            leaving: u64::from(from / local != to / local),
            bytes,
            ..Count::default()
        };
        let all = matrix.connections.iter().fold(Count::default(), |sum, connection| sum.and(one(connection)));
        Ok((matrix.nodes.unwrap_or(0), all))
    }

    fn matrix(&self, content: &[u8]) -> Result<Matrix, TraceError> {
        let text = text(&self.path, content)?;
        let mut matrix = Matrix::default();
        for (number, content) in (1..).zip(text.lines()) {
            let line = Line { file: &self.path, number };
            let words: Vec<&str> = content.split_whitespace().collect();
            match words[..] {
                [] => {}
                [word, ..] if word.starts_with('#') => {}
                [word @ ("Nodes" | "Connections" | "Triggers" | "Failures"), count] => {
                    matrix.header(line, word, count)?;
                }
                ["trigger", ref attributes @ ..] => matrix.trigger(line, attributes)?,
                [ends, ref attributes @ ..] if ends.contains("->") => {
                    matrix.connection(line, ends, attributes, self.start_unit)?;
                }
                [word, ..] => {
                    let expected = "Nodes N, Connections N, Triggers N, a connection src->dst or a trigger";
                    // The value is not shown: a file that is no connection matrix may be one with passwords.
                    let shown = if matrix.nodes.is_some() { word } else { "something else" };
                    return Err(line.error("line", shown, expected));
                }
            }
        }
        matrix.check_counts(&self.path)?;
        Ok(matrix)
    }
}

impl Matrix {
    fn header(&mut self, line: Line<'_>, word: &str, count: &str) -> Result<(), TraceError> {
        let (name, most) = match word {
            "Nodes" => ("Nodes", u64::from(RANKS_MAX)),
            "Connections" => ("Connections", u64::from(u32::MAX)),
            "Triggers" => ("Triggers", u64::from(u32::MAX)),
            _ => ("Failures", u64::MAX),
        };
        let number = line.number(name, count, most)?;
        if name == "Failures" && number > 0 {
            return Err(line.error(name, count, "0; failures belong to the fabric"));
        }
        if self.counts.insert(name, (number, line.number)).is_some() {
            return Err(line.error(name, count, "given once"));
        }
        if name == "Nodes" {
            if number == 0 {
                return Err(line.error(name, count, "at least 1"));
            }
            self.nodes = Some(number as u32);
        }
        Ok(())
    }

    fn check_counts(&self, file: &str) -> Result<(), TraceError> {
        if self.nodes.is_none() {
            return Err(TraceError::whole(file, "Nodes", "missing", "a line such as Nodes 16"));
        }
        for (name, found) in [("Connections", self.connections.len()), ("Triggers", self.declared())] {
            match self.counts.get(name) {
                Some(&(count, number)) if count != found as u64 => {
                    let expected = format!("{found}, the number that follows");
                    return Err(Line { file, number }.error(name, &count.to_string(), &expected));
                }
                None if name == "Connections" => {
                    return Err(TraceError::whole(file, name, "missing", "a line such as Connections 16"));
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn declared(&self) -> usize {
        self.triggers.values().filter(|trigger| trigger.declared.is_some()).count()
    }

    fn connection(
        &mut self,
        line: Line<'_>,
        ends: &str,
        attributes: &[&str],
        unit: StartUnit,
    ) -> Result<(), TraceError> {
        let Some(nodes) = self.nodes else {
            return Err(line.error("Nodes", "missing", "a line such as Nodes 16 before the first connection"));
        };
        let (from, to) = ends.split_once("->").unwrap_or((ends, ""));
        let most = u64::from(nodes).saturating_sub(1);
        let (from, to) = (line.number("source", from, most)? as u32, line.number("destination", to, most)? as u32);
        if from == to {
            return Err(line.error("destination", &to.to_string(), "another node than the source"));
        }
        let index = self.connections.len();
        let (mut start, mut bytes, mut waits) = (None, None, None);
        let mut words = attributes.iter().copied();
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or_else(|| line.error(word, "", "a word with a value after it"));
            let twice = |again: bool| match again {
                true => Err(line.error(word, "a second one", "given once")),
                false => Ok(()),
            };
            match word {
                "start" => twice(start.replace(start_time(line, value()?, unit)?).is_some())?,
                "size" => {
                    let size = line.number("size", value()?, BYTES_MAX)?;
                    if size == 0 {
                        return Err(line.error("size", "0", "at least 1: a message that never ends can end no job"));
                    }
                    twice(bytes.replace(size).is_some())?;
                }
                "id" => {
                    let text = value()?;
                    let id = line.number("id", text, u64::MAX)?;
                    if let Some(before) = self.ids.insert(id, line.number) {
                        let expected = format!("different from those before; line {before} has it already");
                        return Err(line.error("id", text, &expected));
                    }
                }
                "trigger" => {
                    let id = line.number("trigger", value()?, u64::MAX)?;
                    twice(waits.replace(id).is_some())?;
                    self.triggers.entry(id).or_default().starts.push(index);
                }
                "send_done_trigger" | "recv_done_trigger" => {
                    let id = line.number(word, value()?, u64::MAX)?;
                    self.triggers.entry(id).or_default().fired_by.push(index);
                }
                "prio" => return Err(line.error(word, value()?, "left out: messages have no priority of their own")),
                "addon" => return Err(line.error(word, "", "left out: messages don't grow")),
                other => {
                    let expected = "one of id, start, size, trigger, send_done_trigger, recv_done_trigger";
                    return Err(line.error("attribute", other, expected));
                }
            }
        }
        let Some(bytes) = bytes else { return Err(line.error("size", "missing", "a number of bytes")) };
        match (start, waits) {
            (None, None) => Err(line.error("start", "missing", "a time, unless a trigger starts the connection")),
            (Some(_), Some(_)) => Err(line.error("start", "given beside a trigger", "the only one of the two")),
            _ => {
                let start = start.unwrap_or(Duration::ZERO);
                self.times = self.times.saturating_add(start.ps());
                if self.times > TIME_MAX {
                    return Err(line.error("start", &start.to_string(), "less: all together may be 100 days"));
                }
                self.connections.push(Connection { line: line.number, from, to, bytes, start });
                Ok(())
            }
        }
    }

    fn trigger(&mut self, line: Line<'_>, attributes: &[&str]) -> Result<(), TraceError> {
        let (mut id, mut count, mut kind) = (None, None, None);
        let mut words = attributes.iter().copied();
        while let Some(word) = words.next() {
            match word {
                "id" | "count" => {
                    let number = line.number(word, words.next().unwrap_or_default(), u64::from(u32::MAX))?;
                    let place = if word == "id" { &mut id } else { &mut count };
                    if place.replace(number).is_some() {
                        return Err(line.error(word, "a second one", "given once"));
                    }
                }
                "oneshot" | "multishot" | "barrier" => {
                    if kind.replace(word).is_some() {
                        return Err(line.error("trigger", word, "of one kind"));
                    }
                }
                other => return Err(line.error("attribute", other, "one of id, count, oneshot, multishot, barrier")),
            }
        }
        let Some(id) = id else { return Err(line.error("id", "missing", "a number, as in trigger id 1 oneshot")) };
        let kind = match (kind, count) {
            (Some("oneshot"), _) => Kind::OneShot,
            (Some("multishot"), _) => Kind::MultiShot,
            (Some(_), Some(count)) => Kind::Barrier { count },
            (Some(_), None) => return Err(line.error("count", "missing", "how many connections a barrier waits for")),
            (None, _) => return Err(line.error("trigger", "without a kind", "oneshot, multishot or barrier")),
        };
        if let Some((before, _)) = self.triggers.entry(id).or_default().declared.replace((line.number, kind)) {
            let expected = format!("different from those before; line {before} has it already");
            return Err(line.error("id", &id.to_string(), &expected));
        }
        Ok(())
    }

    fn graph(&self, file: &str, reading: &Reading) -> Result<Graph, TraceError> {
        let steps = 3 * self.connections.len() as u64;
        if steps > reading.steps_max {
            let expected = format!("at most {} steps in this job", reading.steps_max);
            return Err(TraceError::whole(file, "connections", &format!("{steps} steps"), &expected));
        }
        let mut b = Builder::new(self.nodes.unwrap_or(0));
        let add = |connection: &Connection| {
            let &Connection { line, from, to, bytes, start } = connection;
            let (from, to) = (Rank(from), Rank(to));
            b.name(&format!("line {line}"));
            let after: Vec<StepId> = if start > Duration::ZERO { vec![b.delay(from, start, &[])] } else { Vec::new() };
            b.message((from, to), bytes, (0, 0), &after, &[])
        };
        let ends: Vec<(StepId, StepId)> = self.connections.iter().map(add).collect();
        for (&id, trigger) in &self.triggers {
            for (started, before) in self.pairs(file, id, trigger)? {
                let (own, other) = (&self.connections[started], &self.connections[before]);
                let line = Line { file, number: own.line };
                let done = match own.from {
                    from if from == other.from => ends[before].0,
                    from if from == other.to => ends[before].1,
                    from => {
                        let expected = format!(
                            "fired by a connection from or to its source, {from}: that of line {} is {}->{}",
                            other.line, other.from, other.to
                        );
                        return Err(line.error("trigger", &id.to_string(), &expected));
                    }
                };
                b.wait(ends[started].0, done);
            }
        }
        b.build().map_err(|error| match error {
            GraphError::Circle { count, name, .. } => {
                let expected = format!("one that can start: {count} steps wait for each other in a circle");
                TraceError::new(file, name, "trigger", "of this connection", &expected)
            }
            other => TraceError::whole(file, "job", &other.to_string(), "one that can be carried out"),
        })
    }

    /// Which connection waits for which, by one trigger.
    fn pairs(&self, file: &str, id: u64, trigger: &Trigger) -> Result<Vec<(usize, usize)>, TraceError> {
        let Trigger { declared, fired_by, starts } = trigger;
        let first_user = starts.iter().chain(fired_by).next();
        let used = first_user.map_or(1, |&index| self.connections[index].line);
        let Some((number, kind)) = *declared else {
            let expected = "declared by a line such as trigger id 1 oneshot";
            return Err(Line { file, number: used }.error("trigger", &id.to_string(), expected));
        };
        let error = |expected: String| Err(Line { file, number }.error("trigger", &id.to_string(), &expected));
        if starts.is_empty() {
            return Ok(Vec::new());
        }
        let found = fired_by.len();
        let all = || starts.iter().flat_map(|&started| fired_by.iter().map(move |&before| (started, before))).collect();
        match kind {
            Kind::OneShot if found != 1 => error(format!("fired by one connection, and not by {found}")),
            Kind::OneShot => Ok(all()),
            Kind::Barrier { count } if count != found as u64 => {
                error(format!("fired by {count} connections, as its count says, and not by {found}"))
            }
            // As many pairs as could be: the lines of a file give no more than their square.
            Kind::Barrier { .. } if found.saturating_mul(starts.len()) > 10_000_000 => {
                error("a barrier of fewer connections: at most 10,000,000 pairs".to_owned())
            }
            Kind::Barrier { .. } => Ok(all()),
            Kind::MultiShot if found < starts.len() => {
                error(format!("fired by {} connections, one for each that it starts, and not by {found}", starts.len()))
            }
            Kind::MultiShot => Ok(starts.iter().copied().zip(fired_by.iter().copied()).collect()),
        }
    }
}

/// A time with or without a fraction, less than 50 days.
fn start_time(line: Line<'_>, text: &str, unit: StartUnit) -> Result<Duration, TraceError> {
    let unit_ps = match unit {
        StartUnit::Ps => 1.0,
        StartUnit::Ns => 1e3,
        StartUnit::Us => 1e6,
    };
    match text.parse::<f64>() {
        Ok(number) if number >= 0.0 && number * unit_ps < (u64::MAX / 4) as f64 => {
            Ok(Duration::from_ps((number * unit_ps + 0.5) as u64))
        }
        _ => Err(line.error("start", text, "a number from 0, less than 50 days")),
    }
}

#[cfg(test)]
mod tests;
