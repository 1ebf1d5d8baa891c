use std::io::Write;

use run::{Column, Data, Table};
use scenario::ScenarioError;
use serde::Serialize;

use super::PROTOCOL;
use crate::Foreseen;

/// A line of a program's answer.
#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// What the program is: the first line.
    Engine {
        /// The version of this protocol.
        protocol: u32,
        /// Clearway's version.
        version: &'static str,
        /// Digest of the simulator's code ([`sim::SOURCE`]).
        source: &'static str,
        /// The transports that it adds.
        transports: Vec<&'static str>,
    },
    /// How far a run is: now and its horizon in ps, flows that have ended, flows, share of the work done.
    At(u64, u64, u64, u64, f64),
    /// The scenario can't be read, or not be run.
    Error {
        /// The file.
        file: String,
        /// The line in it.
        line: Option<usize>,
        /// The key.
        key: String,
        /// What is wrong.
        message: String,
    },
    /// A transport's code has panicked.
    Panic(String),
}

impl Reply {
    pub(super) fn engine() -> Reply {
        Reply::Engine {
            protocol: PROTOCOL,
            version: env!("CARGO_PKG_VERSION"),
            source: sim::SOURCE,
            transports: catalogue::registered(),
        }
    }

    pub(super) fn of(error: ScenarioError) -> Reply {
        let ScenarioError { source, line, key, message } = error;
        Reply::Error { file: source, line, key, message }
    }
}

/// The last line of an answer.
#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Said {
    /// The scenario was read.
    Read {
        /// With every default filled in.
        toml: String,
        /// Its name.
        name: String,
        /// Its transports.
        transports: Vec<&'static str>,
    },
    /// It can be run.
    Check {
        /// Its hosts.
        hosts: u32,
        /// Its flows.
        flows: usize,
    },
    /// What a run will take.
    Foreseen(Foreseen),
    /// The result of a run. The values of its columns, then its captures, follow behind the line.
    Result {
        /// The summary.
        info: serde_json::Value,
        /// The scenario as it was run.
        toml: String,
        /// Each table's name and columns.
        tables: Vec<(&'static str, Vec<Head>)>,
        /// Of each capture its bytes, and whether there was more.
        captured: Vec<(usize, bool)>,
        /// What follows.
        #[serde(skip)]
        values: Vec<Data>,
        /// What follows that.
        #[serde(skip)]
        captures: Vec<Vec<u8>>,
    },
}

/// A column without its values.
#[derive(Debug, Serialize)]
pub struct Head {
    name: &'static str,
    unit: &'static str,
    doc: &'static str,
    kind: &'static str,
    bytes: usize,
    names: Vec<String>,
}

impl Said {
    pub(super) fn result(
        info: &impl Serialize,
        toml: String,
        tables: Vec<Table>,
        captures: Vec<(Vec<u8>, bool)>,
    ) -> Said {
        let mut values = Vec::new();
        let mut head = |Column { name, unit, doc, mut data }: Column| {
            let names = match &mut data {
                Data::Names { names, .. } => std::mem::take(names),
                _ => Vec::new(),
            };
            let (kind, width) = kind(&data);
            let bytes = data.len() * width;
            values.push(data);
            Head { name, unit, doc, kind, bytes, names }
        };
        let tables = tables.into_iter().map(|of| (of.name, of.columns.into_iter().map(&mut head).collect())).collect();
        let captured = captures.iter().map(|(content, more)| (content.len(), *more)).collect();
        let captures = captures.into_iter().map(|(content, _)| content).collect();
        let info = serde_json::to_value(info).expect("a summary is JSON");
        Said::Result { info, toml, tables, captured, values, captures }
    }
}

/// What the package calls values of this kind, and the bytes of one.
fn kind(data: &Data) -> (&'static str, usize) {
    match data {
        Data::U64(_) => ("u64", 8),
        Data::OptU64(_) => ("u64?", 8),
        Data::U32(_) => ("u32", 4),
        Data::Bool(_) => ("bool", 1),
        Data::F64(_) => ("f64", 8),
        Data::Names { .. } => ("names", 4),
    }
}

/// Writes a line at once.
pub(super) fn line(to: &mut impl Write, reply: &impl Serialize) -> std::io::Result<()> {
    serde_json::to_writer(&mut *to, reply)?;
    to.write_all(b"\n")?;
    to.flush()
}

/// Writes the last line and what follows it.
pub(super) fn said(to: &mut impl Write, said: &Said) -> std::io::Result<()> {
    line(to, said)?;
    let Said::Result { values, captures, .. } = said else { return Ok(()) };
    for data in values {
        match data {
            Data::U64(all) | Data::OptU64(all) => all.iter().try_for_each(|one| to.write_all(&one.to_ne_bytes()))?,
            Data::U32(all) | Data::Names { index: all, .. } => {
                all.iter().try_for_each(|one| to.write_all(&one.to_ne_bytes()))?;
            }
            Data::F64(all) => all.iter().try_for_each(|one| to.write_all(&one.to_ne_bytes()))?,
            Data::Bool(all) => all.iter().try_for_each(|one| to.write_all(&[u8::from(*one)]))?,
        }
    }
    captures.iter().try_for_each(|content| to.write_all(content))
}
