//! Jobs that other tools wrote.
//!
//! Formats: GOAL, as text and in binary ([`GoalTrace`]: LogGOPSim, ATLAHS); Chakra's execution traces, a file a rank
//! ([`ChakraTrace`]: ASTRA-sim); SimAI's workloads ([`SimaiTrace`]: AICB); htsim's connection matrices with triggers
//! ([`HtsimTrace`]). Each reader gives a [`Graph`], or a [`TraceError`] that names file, line or node, field, value and
//! what would be right. What a graph can't express is refused, never dropped, unless the reader's page says so.
//!
//! Sends and receives match by (source, destination, tag), in the order of the file, as MPI's do.
//!
//! Deliberately absent: file access. The caller passes a function that reads files.

mod assemble;
mod chakra;
mod goal;
mod htsim;
mod simai;

use std::fmt;
use std::io;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::collective::CollectiveAlgorithm;
use crate::{Count, Graph};

pub use chakra::ChakraTrace;
pub(crate) use chakra::schema;
pub use goal::GoalTrace;
pub use htsim::{HtsimTrace, StartUnit};
pub use simai::SimaiTrace;

/// Most ranks of a trace.
pub const RANKS_MAX: u32 = 1 << 20;

/// Most bytes of one message or one collective.
pub(crate) const BYTES_MAX: u64 = 1 << 50;

/// Most picoseconds of all computations and delays of all ranks together, 106 days: whatever waits for what, no time
/// overflows.
pub(crate) const TIME_MAX: u64 = u64::MAX / 2;

/// A trace of a job, by format.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum TraceFile {
    /// GOAL, text or binary (LogGOPSim, ATLAHS).
    Goal(GoalTrace),
    /// Chakra's execution traces, a file a rank (ASTRA-sim).
    Chakra(ChakraTrace),
    /// SimAI's workload (AICB).
    Simai(SimaiTrace),
    /// htsim's connection matrix with triggers.
    Htsim(HtsimTrace),
}

/// How a trace becomes a graph.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Reading {
    /// How the collectives of a trace are carried out.
    pub how: CollectiveAlgorithm,
    /// Most steps that the graph may have: a few bytes can ask for billions.
    pub steps_max: u64,
}

impl Default for Reading {
    fn default() -> Reading {
        Reading { how: CollectiveAlgorithm::default(), steps_max: 100_000_000 }
    }
}

/// Reads a file, by its name.
pub type ReadFile<'a> = &'a mut dyn FnMut(&str) -> io::Result<Vec<u8>>;

impl TraceFile {
    /// Path of the file; of Chakra's the part before the ranks' numbers.
    pub fn path(&self) -> &str {
        match self {
            TraceFile::Goal(goal) => &goal.path,
            TraceFile::Chakra(chakra) => &chakra.path,
            TraceFile::Simai(simai) => &simai.path,
            TraceFile::Htsim(htsim) => &htsim.path,
        }
    }

    /// Reads and parses the file, or files.
    pub fn load(&self, reading: &Reading, read: ReadFile<'_>) -> Result<Graph, TraceError> {
        match self {
            TraceFile::Goal(goal) => goal.parse(&self.content(read)?, reading),
            TraceFile::Chakra(chakra) => chakra.load(reading, read),
            TraceFile::Simai(simai) => simai.parse(&self.content(read)?, reading),
            TraceFile::Htsim(htsim) => htsim.parse(&self.content(read)?, reading),
        }
    }
}

impl TraceFile {
    /// Reads the file, or files, and counts what a graph would have, without building it: ranks, and what they do if
    /// hosts have `local` consecutive ones each.
    pub fn count(&self, reading: &Reading, read: ReadFile<'_>, local: u32) -> Result<(u32, Count), TraceError> {
        match self {
            TraceFile::Goal(goal) => goal.count(&self.content(read)?, reading, local),
            TraceFile::Chakra(chakra) => chakra.count(reading, read, local),
            TraceFile::Simai(simai) => simai.count(&self.content(read)?, reading, local),
            TraceFile::Htsim(htsim) => htsim.count(&self.content(read)?, local),
        }
    }

    fn content(&self, read: ReadFile<'_>) -> Result<Vec<u8>, TraceError> {
        let path = self.path();
        read(path).map_err(|error| TraceError::whole(path, "file", &error.to_string(), "one that can be read"))
    }
}

/// What is wrong with a trace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TraceError {
    /// The file's name as given.
    pub file: String,
    /// Where in it, such as "line 7" or "node 3 of rank 0"; empty if the whole file is meant.
    pub place: String,
    /// The field or keyword.
    pub field: String,
    /// The value found.
    pub value: String,
    /// What would be right.
    pub expected: String,
}

impl TraceError {
    pub(crate) fn new(file: &str, place: impl fmt::Display, field: &str, value: &str, expected: &str) -> TraceError {
        // A broken file may hold one word of a gigabyte.
        let short = |text: &str, most| text.chars().take(most).collect::<String>();
        let (place, file) = (short(&place.to_string(), 200), short(file, 400));
        TraceError { file, place, field: short(field, 80), value: short(value, 80), expected: short(expected, 400) }
    }

    /// Of a whole file.
    pub(crate) fn whole(file: &str, field: &str, value: &str, expected: &str) -> TraceError {
        TraceError::new(file, "", field, value, expected)
    }
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TraceError { file, place, field, value, expected } = self;
        f.write_str(file)?;
        if !place.is_empty() {
            write!(f, ", {place}")?;
        }
        write!(f, ": {field} is \"{value}\", but should be {expected}")
    }
}

impl std::error::Error for TraceError {}

/// The text of a file, or where it is none.
fn text<'a>(file: &str, content: &'a [u8]) -> Result<&'a str, TraceError> {
    std::str::from_utf8(content).map_err(|error| {
        let (sound, rest) = content.split_at(error.valid_up_to());
        let line = 1 + sound.iter().filter(|&&byte| byte == b'\n').count();
        let value = format!("byte {:#04x}", rest.first().copied().unwrap_or_default());
        TraceError::new(file, format_args!("line {line}"), "text", &value, "UTF-8")
    })
}

/// A line of a file, which makes the errors of its words.
#[derive(Clone, Copy)]
struct Line<'a> {
    file: &'a str,
    number: u64,
}

impl Line<'_> {
    fn error(&self, field: &str, value: &str, expected: &str) -> TraceError {
        TraceError::new(self.file, format_args!("line {}", self.number), field, value, expected)
    }

    /// A whole number up to `most`.
    fn number(&self, field: &str, text: &str, most: u64) -> Result<u64, TraceError> {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        match text.parse::<u64>() {
            Ok(number) if digits && number <= most => Ok(number),
            _ => Err(self.error(field, text, &format!("a whole number from 0 to {most}"))),
        }
    }
}
