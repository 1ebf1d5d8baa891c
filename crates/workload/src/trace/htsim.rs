use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Bytes, HostId, Time};

use super::{FieldContext, Trace, TraceError, TraceFlow};

/// htsim's connection matrix: `Nodes N`, `Connections M`, optionally `Triggers K`, then a line for each connection,
/// such as `3->7 id 5 start 1000 size 2000000`, and for each trigger, such as `trigger id 2 oneshot`.
///
/// A trigger becomes [`Flow::after`](crate::Flow::after) if exactly one connection fires it, on `send_done_trigger`,
/// and every connection that it starts has the same source. Refused is what flows here can't express: triggers fired by
/// several connections (barriers; multishots, whose order of starts is decided at run time), `recv_done_trigger`,
/// `prio`, `addon` and failures. Connections of size 0, which htsim sends for ever, need [`HtsimTrace::endless`].
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HtsimTrace {
    /// Path of the file, relative to the scenario's folder.
    pub path: String,
    /// Unit of `start` in the file. Default: `ps`.
    #[serde(default)]
    pub start_unit: StartUnit,
    /// Size of connections of size 0, such as "1GB". htsim sends for ever on them; a flow here has an end, so take more
    /// than the run can carry by `measure.end`. Default: such connections are errors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endless: Option<Bytes>,
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

/// A trigger, from all lines that name it.
#[derive(Default)]
struct Trigger {
    /// The line that declares it.
    declared: Option<usize>,
    /// Whether each firing starts only the next connection.
    multishot: bool,
    /// The connections that fire it: index and line.
    fired_by: Vec<(usize, usize)>,
    /// The connections that it starts: index and line.
    starts: Vec<(usize, usize)>,
}

/// State of the reader.
#[derive(Default)]
struct Matrix {
    flows: Vec<TraceFlow>,
    /// Flow ids and the lines where they were first used.
    ids: BTreeMap<u64, usize>,
    triggers: BTreeMap<u64, Trigger>,
}

impl HtsimTrace {
    /// Reads the file's text.
    pub fn parse(&self, text: &str) -> Result<Trace, TraceError> {
        let mut header: BTreeMap<&str, (FieldContext<'_>, u64)> = BTreeMap::new();
        let mut matrix = Matrix::default();
        for (index, line) in text.lines().enumerate() {
            let place = FieldContext { file: &self.path, line: index + 1 };
            let words: Vec<&str> = line.split_whitespace().collect();
            match words[..] {
                [] => {}
                [word, ..] if word.starts_with('#') => {}
                [word @ ("Nodes" | "Connections" | "Triggers" | "Failures"), count] => {
                    let count: u64 = place.number(word, count)?;
                    if word == "Failures" && count > 0 {
                        return Err(place.error(word, &count.to_string(), "0; failures belong to the fabric"));
                    }
                    if header.insert(word, (place, count)).is_some() {
                        return Err(place.error(word, &count.to_string(), "given once"));
                    }
                }
                ["trigger", ref attributes @ ..] => matrix.trigger(place, attributes)?,
                [ends, ref attributes @ ..] if ends.contains("->") => {
                    let nodes = header.get("Nodes").map(|nodes| nodes.1);
                    matrix.connection(place, ends, attributes, nodes, self)?;
                }
                [word, ..] => {
                    let expected = "Nodes N, Connections N, Triggers N, a connection src->dst or a trigger";
                    // The value is not shown: a file that is no connection matrix may be one with passwords.
                    let shown = if header.contains_key("Nodes") { word } else { "something else" };
                    return Err(place.error("line", shown, expected));
                }
            }
        }
        for (name, found) in [("Connections", matrix.flows.len()), ("Triggers", matrix.triggers.len())] {
            match header.get(name) {
                Some((place, count)) if *count != found as u64 => {
                    return Err(place.error(name, &count.to_string(), &format!("{found}, the number that follows")));
                }
                None if name == "Connections" => {
                    let place = FieldContext { file: &self.path, line: 1 };
                    return Err(place.error(name, "missing", "a line such as Connections 16"));
                }
                _ => {}
            }
        }
        matrix.resolve(&self.path)?;
        Trace::new(&self.path, matrix.flows)
    }
}

/// The values of a connection's attributes so far.
#[derive(Default)]
struct Given {
    start: Option<Time>,
    size: Option<u64>,
    /// Whether a trigger starts it.
    waits: bool,
}

impl Matrix {
    fn connection(
        &mut self,
        place: FieldContext<'_>,
        ends: &str,
        attributes: &[&str],
        nodes: Option<u64>,
        how: &HtsimTrace,
    ) -> Result<(), TraceError> {
        let Some(nodes) = nodes else {
            return Err(place.error("line", "a connection", "after a line such as Nodes 16"));
        };
        let (src, dst) = ends.split_once("->").unwrap_or((ends, ""));
        let host = |field: &str, text: &str| {
            let host: HostId = place.host(field, text)?;
            if u64::from(host.0) < nodes {
                Ok(host)
            } else {
                Err(place.error(field, text, &format!("below Nodes, {nodes}")))
            }
        };
        let (src, dst) = (host("src", src)?, host("dst", dst)?);
        let index = self.flows.len();
        let mut given = Given::default();
        let mut words = attributes.iter().copied();
        while let Some(word) = words.next() {
            self.attribute(place, index, word, &mut words, how, &mut given)?;
        }
        let Given { start, size, waits } = given;
        let Some(bytes) = size else {
            return Err(place.error("size", "missing", "a number of bytes"));
        };
        match (start, waits) {
            (None, false) => {
                return Err(place.error("start", "missing", "a time, unless a trigger starts the connection"));
            }
            (Some(_), true) => return Err(place.error("start", "given beside a trigger", "the only one of the two")),
            _ => {}
        }
        self.flows.push(place.flow(src, dst, bytes, start.unwrap_or(Time::ZERO)));
        Ok(())
    }

    /// An attribute of the connection with this index, whose value may follow in `words`.
    fn attribute<'a>(
        &mut self,
        place: FieldContext<'_>,
        index: usize,
        word: &'a str,
        words: &mut impl Iterator<Item = &'a str>,
        how: &HtsimTrace,
        given: &mut Given,
    ) -> Result<(), TraceError> {
        let mut value = || words.next().ok_or_else(|| place.error(word, "", "a word with a value after it"));
        let twice = || Err(place.error(word, "a second one", "given once"));
        match word {
            "start" => {
                let unit_ps = match how.start_unit {
                    StartUnit::Ps => 1.0,
                    StartUnit::Ns => 1e3,
                    StartUnit::Us => 1e6,
                };
                if given.start.replace(place.time("start", value()?, unit_ps)?).is_some() {
                    return twice();
                }
            }
            "size" => {
                let mut bytes: u64 = place.number("size", value()?)?;
                if bytes == 0 {
                    let expected = "at least 1, or `endless = \"1GB\"` beside the path: htsim sends 0 for ever";
                    bytes = how.endless.ok_or_else(|| place.error("size", "0", expected))?.get();
                }
                if given.size.replace(bytes).is_some() {
                    return twice();
                }
            }
            "id" => {
                let text = value()?;
                let id: u64 = place.number("id", text)?;
                if let Some(line) = self.ids.insert(id, place.line) {
                    return Err(place.error(
                        "id",
                        text,
                        &format!("different from those before; line {line} has it already"),
                    ));
                }
            }
            "trigger" => {
                let trigger = self.triggers.entry(place.number("trigger", value()?)?).or_default();
                trigger.starts.push((index, place.line));
                if std::mem::replace(&mut given.waits, true) {
                    return twice();
                }
            }
            "send_done_trigger" => {
                let trigger = self.triggers.entry(place.number("send_done_trigger", value()?)?).or_default();
                trigger.fired_by.push((index, place.line));
            }
            "recv_done_trigger" => {
                let expected = "send_done_trigger: flows here start when another has completed at its sender";
                return Err(place.error(word, value()?, expected));
            }
            "prio" => {
                return Err(place.error(word, value()?, "left out: flows here have no priority of their own"));
            }
            "addon" => return Err(place.error(word, "", "left out: flows here don't grow")),
            other => {
                let expected = "one of id, start, size, trigger, send_done_trigger";
                return Err(place.error("attribute", other, expected));
            }
        }
        Ok(())
    }

    fn trigger(&mut self, place: FieldContext<'_>, attributes: &[&str]) -> Result<(), TraceError> {
        let (mut id, mut kind) = (None, None);
        let mut words = attributes.iter();
        while let Some(&word) = words.next() {
            match word {
                "id" => id = Some(place.number::<u64>("id", words.next().unwrap_or(&""))?),
                "count" => {
                    let count = words.next().unwrap_or(&"");
                    if place.number::<u64>("count", count)? != 1 {
                        return Err(place.error("count", count, "1: flows here wait for one other flow"));
                    }
                }
                "oneshot" | "multishot" | "barrier" => {
                    if kind.replace(word).is_some() {
                        return Err(place.error("trigger", word, "of one kind"));
                    }
                }
                other => {
                    return Err(place.error("attribute", other, "one of id, count, oneshot, multishot, barrier"));
                }
            }
        }
        let Some(id) = id else {
            return Err(place.error("id", "missing", "a number, as in trigger id 1 oneshot"));
        };
        let Some(kind) = kind else {
            return Err(place.error("trigger", "without a kind", "oneshot, multishot or barrier"));
        };
        let trigger = self.triggers.entry(id).or_default();
        if let Some(line) = trigger.declared.replace(place.line) {
            return Err(place.error(
                "id",
                &id.to_string(),
                &format!("different from those before; line {line} has it already"),
            ));
        }
        trigger.multishot = kind == "multishot";
        Ok(())
    }

    /// Turns triggers into flows that wait for flows.
    fn resolve(&mut self, file: &str) -> Result<(), TraceError> {
        for (id, trigger) in &self.triggers {
            let id = id.to_string();
            let line = |list: &[(usize, usize)], at: usize| list.get(at).map(|user| user.1);
            let used = line(&trigger.starts, 0).or(line(&trigger.fired_by, 0));
            let Some(declared) = trigger.declared else {
                let place = FieldContext { file, line: used.unwrap_or(1) };
                return Err(place.error("trigger", &id, "declared by a line such as trigger id 1 oneshot"));
            };
            if trigger.starts.is_empty() {
                continue;
            }
            if trigger.multishot && trigger.starts.len() > 1 {
                let expected = "oneshot: a multishot that fires once starts only the first of its connections";
                return Err(FieldContext { file, line: declared }.error("trigger", "multishot", expected));
            }
            let &[(before, _)] = &trigger.fired_by[..] else {
                let place = FieldContext { file, line: line(&trigger.fired_by, 1).unwrap_or(declared) };
                let expected = format!("fired by one send_done_trigger, and not by {}", trigger.fired_by.len());
                return Err(place.error("trigger", &id, &expected));
            };
            for &(index, line) in &trigger.starts {
                let (src, other) = (self.flows[index].src, self.flows[before].src);
                if src != other {
                    let expected = format!("fired by a connection of the same source, {src}, and not of {other}");
                    return Err(FieldContext { file, line }.error("trigger", &id, &expected));
                }
                self.flows[index].after = u32::try_from(before).ok();
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
