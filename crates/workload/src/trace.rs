//! Flow lists that other tools wrote.
//!
//! Formats: tables with named columns, as CSV with a header or as Parquet; HPCC's `flow.txt`; htsim's connection matrix
//! (`.cm`). Each reader returns a [`Trace`], or a [`TraceError`] that names file, line (or row), field, value and what
//! would be right. What a [`Flow`](crate::Flow) can't express is refused, never dropped. [`Trace::new`] takes flows
//! that a program made.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{HostId, Time};

use crate::generate::BYTES_MAX;

mod columns;
mod csv;
mod hpcc;
mod htsim;
mod parquet;

pub use self::csv::CsvTrace;
pub use self::parquet::ParquetTrace;
pub use hpcc::HpccTrace;
pub use htsim::{HtsimTrace, StartUnit};

/// A file of flows, by format.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum TraceFile {
    /// Columns `src`, `dst`, `size_bytes` (or `bytes`) and one of `start_s`, `start_ms`, `start_us`, `start_ns`,
    /// `start_ps`.
    Csv(CsvTrace),
    /// The same columns in Parquet, for example a result's `flows.parquet`.
    Parquet(ParquetTrace),
    /// HPCC's `flow.txt`.
    Hpcc(HpccTrace),
    /// htsim's connection matrix.
    Htsim(HtsimTrace),
}

impl TraceFile {
    /// Path of the file.
    pub fn path(&self) -> &str {
        match self {
            TraceFile::Csv(csv) => &csv.path,
            TraceFile::Parquet(parquet) => &parquet.path,
            TraceFile::Hpcc(hpcc) => &hpcc.path,
            TraceFile::Htsim(htsim) => &htsim.path,
        }
    }

    /// Parses the file's content.
    pub fn parse(&self, content: Vec<u8>) -> Result<Trace, TraceError> {
        let text = |content| {
            String::from_utf8(content).map_err(|error| {
                let (sound, rest) = error.as_bytes().split_at(error.utf8_error().valid_up_to());
                let line = 1 + sound.iter().filter(|&&byte| byte == b'\n').count();
                let value = format!("byte {:#04x}", rest.first().copied().unwrap_or_default());
                TraceError::new(self.path(), line, "text", &value, "UTF-8")
            })
        };
        match self {
            TraceFile::Csv(csv) => csv.parse(&text(content)?),
            TraceFile::Parquet(parquet) => parquet.parse(content),
            TraceFile::Hpcc(hpcc) => hpcc.parse(&text(content)?),
            TraceFile::Htsim(htsim) => htsim.parse(&text(content)?),
        }
    }
}

/// One flow of a trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TraceFlow {
    /// The sender.
    pub src: HostId,
    /// The receiver.
    pub dst: HostId,
    /// Payload in bytes.
    pub bytes: u64,
    /// Start, counted from the class's start. With `after`: delay after that flow.
    pub start: Time,
    /// Index in the trace of a flow of the same source whose completion starts this one.
    pub after: Option<u32>,
    /// Its line in the file (or row), from 1, for errors.
    pub line: u32,
}

/// A valid list of flows: no flow goes from a host to itself, is empty or waits for itself. Whether the hosts exist is
/// checked against the fabric.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Trace {
    file: String,
    /// The unit that flows are counted in, for errors.
    unit: &'static str,
    flows: Vec<TraceFlow>,
}

/// A malformed line or row.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TraceError {
    /// The file's name as given.
    pub file: String,
    /// Counted from 1; 0 if the whole file is wrong.
    pub line: usize,
    /// The unit of `line`: lines, or rows of a table.
    pub unit: &'static str,
    /// The column or keyword.
    pub field: String,
    /// The value found.
    pub value: String,
    /// What would be right.
    pub expected: String,
}

impl Trace {
    /// A trace of these flows. `file` is the name in errors.
    pub fn new(file: &str, flows: Vec<TraceFlow>) -> Result<Trace, TraceError> {
        Trace::counted(file, "line", flows)
    }

    /// A trace whose flows are counted in `unit`.
    fn counted(file: &str, unit: &'static str, flows: Vec<TraceFlow>) -> Result<Trace, TraceError> {
        let trace = Trace { file: file.to_owned(), unit, flows };
        if trace.flows.len() as u64 > crate::FLOWS_MAX {
            let expected = format!("at most {} flows", crate::FLOWS_MAX);
            return Err(trace.error(0, "flows", &trace.flows.len().to_string(), &expected));
        }
        let mut bytes = 0u128;
        for flow in &trace.flows {
            bytes += u128::from(flow.bytes);
            if bytes > u128::from(BYTES_MAX) {
                let expected = format!("less: all flows together have at most {BYTES_MAX} bytes");
                return Err(trace.error(flow.line, "size", &flow.bytes.to_string(), &expected));
            }
            if flow.src == flow.dst {
                return Err(trace.error(flow.line, "dst", &flow.dst.to_string(), "a host other than the source"));
            }
            if flow.bytes == 0 {
                return Err(trace.error(flow.line, "size", "0", "at least 1 byte"));
            }
            if flow.start.ps() > u64::MAX / 4 {
                return Err(trace.error(flow.line, "start", &flow.start.to_string(), "less than 50 days"));
            }
            let Some(before) = flow.after else { continue };
            match trace.flows.get(before as usize) {
                None => return Err(trace.error(flow.line, "after", &before.to_string(), "a flow of this trace")),
                Some(before) if before.src != flow.src => {
                    let expected = format!("a flow of the same source, {}, and not of {}", flow.src, before.src);
                    return Err(trace.error(flow.line, "after", &format!("line {}", before.line), &expected));
                }
                Some(_) => {}
            }
        }
        match trace.depths() {
            Ok(_) => Ok(trace),
            Err(index) => {
                let flow = trace.flows[index];
                Err(trace.error(flow.line, "after", "a circle", "a chain that begins with a flow that has a start"))
            }
        }
    }

    /// The flows in their original order.
    pub fn flows(&self) -> &[TraceFlow] {
        &self.flows
    }

    /// Indices of the flows: first those with a start, sorted by it; then the others, each after the flow that it waits
    /// for.
    pub(crate) fn order(&self) -> Vec<usize> {
        let depths = self.depths().expect("checked when made");
        let mut order: Vec<usize> = (0..self.flows.len()).collect();
        order.sort_by_key(|&index| match depths[index] {
            0 => (0, self.flows[index].start),
            depth => (depth, Time::ZERO),
        });
        order
    }

    pub(crate) fn error(&self, line: u32, field: &str, value: &str, expected: &str) -> TraceError {
        TraceError { unit: self.unit, ..TraceError::new(&self.file, line as usize, field, value, expected) }
    }

    /// For each flow: how many flows must complete before it may start. The error is a flow that waits for itself.
    fn depths(&self) -> Result<Vec<u32>, usize> {
        const UNKNOWN: u32 = u32::MAX;
        let mut depths: Vec<u32> =
            self.flows.iter().map(|flow| if flow.after.is_none() { 0 } else { UNKNOWN }).collect();
        let mut path = Vec::new();
        for first in 0..self.flows.len() {
            let mut index = first;
            while depths[index] == UNKNOWN {
                // A path longer than the list contains some flow twice.
                if path.len() > self.flows.len() {
                    return Err(first);
                }
                path.push(index);
                index = self.flows[index].after.expect("only these are unknown") as usize;
            }
            let mut depth = depths[index];
            while let Some(index) = path.pop() {
                depth += 1;
                depths[index] = depth;
            }
        }
        Ok(depths)
    }
}

impl TraceError {
    pub(crate) fn new(file: &str, line: usize, field: &str, value: &str, expected: &str) -> TraceError {
        // A broken file may hold one line of a gigabyte.
        let value = value.chars().take(80).collect();
        let file = file.to_owned();
        TraceError { file, line, unit: "line", field: field.to_owned(), value, expected: expected.to_owned() }
    }
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TraceError { file, line, unit, field, value, expected } = self;
        f.write_str(file)?;
        if *line > 0 {
            write!(f, ", {unit} {line}")?;
        }
        write!(f, ": {field} is \"{value}\", but should be {expected}")
    }
}

impl std::error::Error for TraceError {}

/// A place in a file, which makes the errors of its fields.
#[derive(Clone, Copy)]
struct FieldContext<'a> {
    file: &'a str,
    line: usize,
}

/// The values that errors suggest in place of a malformed number or time.
const A_NUMBER: &str = "a whole number, zero or more, that fits";
const A_TIME: &str = "a time, zero or more, of less than 50 days";

/// A whole number of units of `unit_ps` as a time, exact beyond the precision of a float.
fn time_of_whole(value: u64, unit_ps: f64) -> Option<Time> {
    value.checked_mul(unit_ps as u64).filter(|ps| *ps <= u64::MAX / 4).map(Time::from_ps)
}

/// A number of units of `unit_ps` as a time, to the nearest picosecond.
fn time_of_real(value: f64, unit_ps: f64) -> Option<Time> {
    let sound = value >= 0.0 && value * unit_ps <= (u64::MAX / 4) as f64;
    sound.then(|| Time::from_ps((value * unit_ps + 0.5) as u64))
}

impl FieldContext<'_> {
    fn error(&self, field: &str, value: &str, expected: &str) -> TraceError {
        TraceError::new(self.file, self.line, field, value, expected)
    }

    fn number<N: std::str::FromStr>(&self, field: &str, text: &str) -> Result<N, TraceError> {
        text.parse().map_err(|_| self.error(field, text, A_NUMBER))
    }

    fn host(&self, field: &str, text: &str) -> Result<HostId, TraceError> {
        self.number(field, text).map(HostId)
    }

    /// Parses a decimal number of units of `unit_ps` as a time, to the nearest picosecond.
    fn time(&self, field: &str, text: &str, unit_ps: f64) -> Result<Time, TraceError> {
        let whole = text.parse().ok().and_then(|value| time_of_whole(value, unit_ps));
        let time = || whole.or_else(|| time_of_real(text.parse().ok()?, unit_ps));
        time().ok_or_else(|| self.error(field, text, A_TIME))
    }

    fn flow(&self, src: HostId, dst: HostId, bytes: u64, start: Time) -> TraceFlow {
        TraceFlow { src, dst, bytes, start, after: None, line: u32::try_from(self.line).unwrap_or(u32::MAX) }
    }
}
