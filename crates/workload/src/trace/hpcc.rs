use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{HostId, Time};

use super::{A_NUMBER, FieldContext, Trace, TraceError};

/// HPCC's `flow.txt`: the number of flows on the first line, then `src dst pg dport bytes start` on each line, in
/// seconds.
///
/// Lines beyond that number are ignored, as in HPCC, whose own sample keeps spare flows there. `dport` has no meaning
/// here and is only checked to be a number. All flows must have the same `pg` (priority group): split a file with
/// several into classes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HpccTrace {
    /// Path of the file, relative to the scenario's folder.
    pub path: String,
    /// Node ids that are switches in the topology that the file was written for. HPCC numbers hosts and switches
    /// together; here hosts are numbered in the order of their node ids. Default: none; all hosts come before all
    /// switches.
    #[serde(default)]
    pub switches: Vec<u32>,
    /// Time in the file that is the class's start. HPCC's own generator begins at "2s". Default: 0.
    #[serde(default)]
    pub origin: Time,
}

impl HpccTrace {
    /// Reads the file's text.
    pub fn parse(&self, text: &str) -> Result<Trace, TraceError> {
        let mut switches = self.switches.clone();
        switches.sort_unstable();
        switches.dedup();
        let mut lines = text
            .lines()
            .enumerate()
            .map(|(index, line)| (FieldContext { file: &self.path, line: index + 1 }, line))
            .filter(|(_, line)| !line.trim().is_empty());
        let (first, count) = lines.next().unwrap_or((FieldContext { file: &self.path, line: 1 }, ""));
        // The value is not shown: it may be the first line of any file, such as one with passwords.
        let count: usize =
            count.trim().parse().map_err(|_| first.error("number of flows", "something else", A_NUMBER))?;

        let mut flows = Vec::new();
        let mut group = None;
        for (place, line) in lines.take(count) {
            let words: Vec<&str> = line.split_whitespace().collect();
            let [src, dst, pg, dport, bytes, start] = words[..] else {
                return Err(place.error("line", line, "six fields: src dst pg dport bytes start"));
            };
            let host = |field: &str, text: &str| {
                let node: u32 = place.number(field, text)?;
                match switches.binary_search(&node) {
                    Ok(_) => Err(place.error(field, text, "a host; this node is listed among the switches")),
                    Err(before) => Ok(HostId(node - before as u32)),
                }
            };
            let (pg, _): (u32, u32) = (place.number("pg", pg)?, place.number("dport", dport)?);
            if *group.get_or_insert(pg) != pg {
                return Err(place.error("pg", &pg.to_string(), "the same for all flows; split the file into classes"));
            }
            let at = place.time("start", start, 1e12)?;
            if at < self.origin {
                return Err(place.error("start", start, &format!("no earlier than origin, {}", self.origin)));
            }
            let (src, dst) = (host("src", src)?, host("dst", dst)?);
            flows.push(place.flow(src, dst, place.number("bytes", bytes)?, Time::ZERO + (at - self.origin)));
        }
        if flows.len() < count {
            let expected = format!("{}, the number of flows that follow", flows.len());
            return Err(first.error("number of flows", &count.to_string(), &expected));
        }
        Trace::new(&self.path, flows)
    }
}

#[cfg(test)]
mod tests;
