//! GOAL, the group operation assembly language of LogGOPSim and ATLAHS (Hoefler, Siebert and Lumsdaine, "Group
//! Operation Assembly Language", ICPP 2009), as text; [`binary`] has the form that simulators load.

mod binary;

use std::collections::{BTreeMap, HashMap};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::Duration;

use super::assemble::{Op, Ops, RankOps, What};
use super::{Line, RANKS_MAX, Reading, TraceError, text};
use crate::{Count, Graph};

/// A schedule in GOAL: `num_ranks 2`, then for each rank `rank 0 {`, lines such as `l1: send 10b to 1 tag 3`,
/// `l2: recv 10b from 1 tag 3`, `l3: calc 100`, `l2 requires l1`, `l3 irequires l2`, and `}`. Text or binary.
///
/// A rank computes on cpu 0. A `calc` on another cpu runs in parallel, and does not wait for others there. `nic` has no
/// effect. An operation that `requires` a send waits until the sender knows that the message has arrived, even if it is
/// small. An operation that `irequires` another begins when that one could begin. A message of 0 bytes has one byte
/// here, and a message of a rank to itself takes no time. Receives from any source or with any tag (-1) are refused,
/// because the message that they would get depends on the network.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GoalTrace {
    /// Path of the file, relative to the scenario's folder.
    pub path: String,
    /// The unit of `calc`. Default: 1ns, as LogGOPSim's.
    #[serde(default = "nanosecond")]
    pub unit: Duration,
}

fn nanosecond() -> Duration {
    Duration::from_ns(1)
}

impl GoalTrace {
    /// Reads the file's content.
    pub fn parse(&self, content: &[u8], reading: &Reading) -> Result<Graph, TraceError> {
        self.read(content, reading, |ops| ops.graph())
    }

    /// Counts what the file has: ranks, and what they do if hosts have `local` consecutive ones each.
    pub fn count(&self, content: &[u8], reading: &Reading, local: u32) -> Result<(u32, Count), TraceError> {
        self.read(content, reading, |ops| Ok((ops.ranks.len() as u32, ops.count(local)?)))
    }

    fn read<R>(
        &self,
        content: &[u8],
        reading: &Reading,
        then: impl FnOnce(&Ops<'_>) -> Result<R, TraceError>,
    ) -> Result<R, TraceError> {
        let (ranks, unit) = match binary::is_binary(content) {
            true => (binary::read(self, content)?, "node"),
            false => (Text::new(self, text(&self.path, content)?).read()?, "line"),
        };
        let file = |_| self.path.clone();
        then(&Ops { ranks, groups: Vec::new(), file: &file, unit, reading })
    }

    fn calc(&self, amount: u64) -> Option<Duration> {
        amount.checked_mul(self.unit.ps()).map(Duration::from_ps)
    }
}

/// A piece of the text: a word, a number or a sign, with its line.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Token<'a> {
    text: &'a str,
    line: u64,
}

struct Text<'a> {
    trace: &'a GoalTrace,
    rest: &'a str,
    line: u64,
    /// The next token, if it has been looked at.
    next: Option<Token<'a>>,
}

impl<'a> Text<'a> {
    fn new(trace: &'a GoalTrace, rest: &'a str) -> Text<'a> {
        Text { trace, rest, line: 1, next: None }
    }

    fn at(&self, line: u64) -> Line<'a> {
        Line { file: &self.trace.path, number: line }
    }

    fn read(mut self) -> Result<Vec<RankOps>, TraceError> {
        let mut ranks: BTreeMap<u64, RankOps> = BTreeMap::new();
        let mut declared = None;
        while let Some(token) = self.token() {
            let line = self.at(token.line);
            match token.text {
                "num_ranks" if declared.is_none() => {
                    declared = Some(self.number("num_ranks", u64::from(RANKS_MAX))?);
                }
                "rank" if declared.is_some() => {
                    let most = declared.unwrap_or(0).saturating_sub(1);
                    let number = self.number("rank", most)?;
                    self.expect("{", "rank")?;
                    if ranks.insert(number, self.rank(number as u32)?).is_some() {
                        return Err(line.error("rank", &number.to_string(), "one that has not been given before"));
                    }
                }
                "rank" => return Err(line.error("rank", "the first line", "num_ranks and how many there are")),
                // The value is not shown: a file that is no schedule may be one with passwords.
                other => {
                    let shown = if declared.is_some() { other } else { "something else" };
                    return Err(line.error("line", shown, "num_ranks 8, once, or rank 0 { ... }"));
                }
            }
        }
        let Some(count) = declared else {
            return Err(TraceError::whole(&self.trace.path, "num_ranks", "missing", "the first line"));
        };
        if ranks.len() as u64 != count {
            let missing = (0..count).find(|rank| !ranks.contains_key(rank)).unwrap_or(count);
            let expected = format!("given: num_ranks says that there are {count}");
            return Err(TraceError::whole(&self.trace.path, "rank", &format!("{missing}, missing"), &expected));
        }
        Ok(ranks.into_values().collect())
    }

    /// The text between the brackets of a rank.
    fn rank(&mut self, rank: u32) -> Result<RankOps, TraceError> {
        let mut own = RankOps::default();
        let mut labels: HashMap<&'a str, u32> = HashMap::new();
        // Pairs of labels, and whether the begin is enough.
        let mut waits: Vec<(Token<'a>, Token<'a>, bool)> = Vec::new();
        loop {
            let Some(token) = self.token() else {
                return Err(self.at(self.line).error("}", "missing", &format!("the end of rank {rank}")));
            };
            match token.text {
                "}" => break,
                "send" | "recv" | "calc" => self.operation(token, "", &mut own)?,
                label if label.starts_with(|sign: char| sign.is_ascii_alphabetic()) => {
                    let next = self.token().unwrap_or(Token { text: "", line: self.line });
                    match next.text {
                        ":" => {
                            if labels.insert(label, own.ops.len() as u32).is_some() {
                                let expected = format!("a label that rank {rank} has not used before");
                                return Err(self.at(token.line).error("label", label, &expected));
                            }
                            let Some(operation) = self.token() else {
                                return Err(self.at(token.line).error(label, "", "send, recv or calc"));
                            };
                            self.operation(operation, label, &mut own)?;
                        }
                        "requires" | "irequires" => {
                            let Some(before) = self.token() else {
                                return Err(self.at(token.line).error(next.text, "", "a label"));
                            };
                            waits.push((token, before, next.text == "irequires"));
                        }
                        other => {
                            let expected = "followed by : and an operation, by requires or by irequires";
                            return Err(self.at(token.line).error(label, other, expected));
                        }
                    }
                }
                other => {
                    let expected = "send, recv, calc, a label or }";
                    return Err(self.at(token.line).error("operation", other, expected));
                }
            }
        }
        for (op, before, begin) in waits {
            let find = |token: Token<'a>| {
                let expected = format!("a label of rank {rank}");
                let error = || self.at(token.line).error("label", token.text, &expected);
                labels.get(token.text).copied().ok_or_else(error)
            };
            let pair = (find(op)?, find(before)?);
            if begin { own.after_begin.push(pair) } else { own.after_end.push(pair) }
        }
        Ok(own)
    }

    /// A send, receive or calculation, whose first word has been read.
    fn operation(&mut self, first: Token<'a>, label: &str, own: &mut RankOps) -> Result<(), TraceError> {
        let (rank_most, tag_most) = (u64::from(u32::MAX - 1), u64::from(u32::MAX - 1));
        let what = match first.text {
            "calc" => {
                let amount = self.number("calc", u64::MAX)?;
                let options = self.options(first.line, &["cpu", "nic"])?;
                let long = || self.at(first.line).error("calc", &amount.to_string(), "less than 100 days");
                let time = self.trace.calc(amount).ok_or_else(long)?;
                if options[0].unwrap_or(0) == 0 { What::Compute(time) } else { What::Delay(time) }
            }
            kind @ ("send" | "recv") => {
                let bytes = self.number("size", u64::MAX)?;
                self.expect("b", "size")?;
                let (field, send) = if kind == "send" { ("to", true) } else { ("from", false) };
                self.expect(field, kind)?;
                let other = self.number(field, rank_most)? as u32;
                let options = self.options(first.line, &["cpu", "nic", "tag"])?;
                let tag = options[2].unwrap_or(0);
                if tag > tag_most {
                    let expected = "a number below 2^32 - 1, which stands for any";
                    return Err(self.at(first.line).error("tag", &tag.to_string(), expected));
                }
                let tag = tag as u32;
                match send {
                    true => What::Send { to: other, tag, bytes },
                    false => What::Receive { from: other, tag, room: bytes },
                }
            }
            other => return Err(self.at(first.line).error("operation", other, "send, recv or calc")),
        };
        own.ops.push(Op { what, name: label.into(), at: first.line });
        Ok(())
    }

    /// Options with their numbers, up to the end of the line: cpu and nic up to 255.
    fn options(&mut self, line: u64, names: &[&str]) -> Result<[Option<u64>; 3], TraceError> {
        let mut values = [None; 3];
        while let Some(token) = self.peek().filter(|token| token.line == line) {
            let Some(at) = names.iter().position(|name| *name == token.text) else { break };
            self.next = None;
            let most = if token.text == "tag" { u64::from(u32::MAX) } else { 255 };
            let value = self.number(token.text, most)?;
            if values[at].replace(value).is_some() {
                return Err(self.at(line).error(token.text, &value.to_string(), "given once"));
            }
        }
        Ok(values)
    }

    fn number(&mut self, field: &str, most: u64) -> Result<u64, TraceError> {
        match self.token() {
            Some(Token { text: "-", line }) => {
                let expected = "a number: who any source or any tag (-1) is depends on the network";
                Err(self.at(line).error(field, "-1", expected))
            }
            Some(token) => self.at(token.line).number(field, token.text, most),
            None => Err(self.at(self.line).error(field, "the end of the file", "a number")),
        }
    }

    fn expect(&mut self, text: &str, field: &str) -> Result<(), TraceError> {
        match self.token() {
            Some(token) if token.text == text => Ok(()),
            Some(token) => Err(self.at(token.line).error(field, token.text, &format!("followed by {text}"))),
            None => Err(self.at(self.line).error(field, "the end of the file", &format!("followed by {text}"))),
        }
    }

    fn peek(&mut self) -> Option<Token<'a>> {
        if self.next.is_none() {
            self.next = self.token();
        }
        self.next
    }

    /// The next word, number or sign. Comments are `// ...` and `/* ... */`.
    fn token(&mut self) -> Option<Token<'a>> {
        if let Some(token) = self.next.take() {
            return Some(token);
        }
        loop {
            let sign = self.rest.chars().next()?;
            if sign == '\n' {
                self.line += 1;
                self.rest = &self.rest[1..];
            } else if sign.is_whitespace() {
                self.rest = &self.rest[sign.len_utf8()..];
            } else if self.rest.starts_with("//") {
                self.rest = &self.rest[self.rest.find('\n').unwrap_or(self.rest.len())..];
            } else if self.rest.starts_with("/*") {
                let end = self.rest.find("*/").map_or(self.rest.len(), |end| end + 2);
                self.line += self.rest[..end].bytes().filter(|&byte| byte == b'\n').count() as u64;
                self.rest = &self.rest[end..];
            } else {
                let word = |sign: char| sign.is_ascii_alphanumeric() || sign == '_';
                let length = match sign {
                    // 10b are two tokens.
                    '0'..='9' => self.rest.find(|sign: char| !sign.is_ascii_digit()),
                    sign if word(sign) => self.rest.find(|sign: char| !word(sign)),
                    sign => Some(sign.len_utf8()),
                };
                let (text, rest) = self.rest.split_at(length.unwrap_or(self.rest.len()));
                self.rest = rest;
                return Some(Token { text, line: self.line });
            }
        }
    }
}

#[cfg(test)]
mod tests;
