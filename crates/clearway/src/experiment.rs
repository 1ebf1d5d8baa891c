//! Scenarios loaded, changed and run from Rust, and the tables that runs give.
//!
//! ```
//! use clearway::{Level, Scenario};
//!
//! # fn main() -> Result<(), clearway::ScenarioError> {
//! let scenario = Scenario::parse(
//!     r#"
//!     transport = "dctcp"
//!     fabric.star.hosts = 4
//!     [[traffic]]
//!     sizes.constant = "100KB"
//!     arrivals = "all_at_once"
//!     pattern.incast.degree = 3
//!     "#,
//! )?;
//! for transport in ["dctcp", "dcpim"] {
//!     let run = scenario.with("transport", transport).with("seed", 7).run(Level::Packet)?;
//!     let slowest = run.flows().filter_map(|flow| flow.slowdown).fold(0.0, f64::max);
//!     assert!(run.ok() && slowest > 2.0, "three senders share one link");
//!     // Any column of any table, by name and type.
//!     let sent = run.table("links").expect("every run has it").numbers("sent_bytes").expect("it counts");
//!     println!("{transport}: {slowest:.2}, {} bytes on all links, {}", sent.flatten().sum::<u64>(), run.digest);
//! }
//! # Ok(())
//! # }
//! ```

use std::fmt;
use std::path::{Path, PathBuf};

use run::{Column, Data, Progress};
use scenario::{Crates, Programs, Source};
use serde::Serialize;
use units::{Duration, Problem};

pub use scenario::ScenarioError;

/// How much of a network is simulated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Level {
    /// Every packet on its whole way.
    #[default]
    Packet,
    /// No packets: flows share links max-min fairly.
    Flow,
    /// Each link alone, packet by packet; a flow is as late as on its slowest link.
    Links,
}

/// A scenario: its text, and keys set over it. It is read when it is checked or run.
#[derive(Clone, Debug)]
pub struct Scenario {
    source: Source,
    threads: usize,
}

impl Scenario {
    /// Opens a scenario's file, TOML. Files that it names are relative to its folder.
    ///
    /// # Errors
    ///
    /// If the file can't be read, or its text is no scenario: place, key, and what would be right.
    pub fn load(path: impl AsRef<Path>) -> Result<Scenario, ScenarioError> {
        Scenario::of(Source::open(path.as_ref())?)
    }

    /// A scenario from its text, TOML. Files that it names are relative to the current folder.
    ///
    /// # Errors
    ///
    /// If the text is no scenario.
    pub fn parse(text: &str) -> Result<Scenario, ScenarioError> {
        let (name, folder) = ("scenario".to_owned(), PathBuf::new());
        let (programs, crates) = (Programs::default(), Crates::default());
        Scenario::of(Source { name, text: text.to_owned(), sets: Vec::new(), folder, programs, crates })
    }

    fn of(source: Source) -> Result<Scenario, ScenarioError> {
        source.read()?;
        Ok(Scenario { source, threads: 1 })
    }

    /// The same with a key set: dotted, such as `traffic.0.arrivals.poisson.load`, to a value as TOML or a bare word.
    /// A key or value that is not right is an error of [`Scenario::check`] and [`Scenario::run`].
    #[must_use]
    pub fn with(&self, key: &str, value: impl fmt::Display) -> Scenario {
        let mut changed = self.clone();
        changed.source.sets.push((key.to_owned(), value.to_string()));
        changed
    }

    /// The same, run on up to this many threads. Results do not depend on it.
    #[must_use]
    pub fn on_threads(&self, threads: usize) -> Scenario {
        Scenario { threads: threads.max(1), ..self.clone() }
    }

    /// As TOML, with every default filled in.
    ///
    /// # Errors
    ///
    /// If a key that was set is not right.
    pub fn to_toml(&self) -> Result<String, ScenarioError> {
        Ok(self.source.read()?.to_toml())
    }

    /// Checks that it can run at packet level: the number of its flows.
    ///
    /// # Errors
    ///
    /// If a run would be refused, with the same error.
    pub fn check(&self) -> Result<usize, ScenarioError> {
        let plan = run::Plan::new(&self.source.read()?).map_err(|problem| self.source.locate(problem))?;
        Ok(plan.flows.len())
    }

    /// Runs it to its end.
    ///
    /// # Errors
    ///
    /// If it can't run: place, key, and what would be right.
    pub fn run(&self, level: Level) -> Result<Run, ScenarioError> {
        self.run_watched(level, |_| false)
    }

    /// Runs it, and tells `watch` how far it is; where that returns true the run stops, with the results so far.
    ///
    /// # Errors
    ///
    /// As [`Scenario::run`].
    pub fn run_watched(&self, level: Level, watch: impl FnMut(Progress) -> bool) -> Result<Run, ScenarioError> {
        let read = self.source.read()?;
        let ran = match level {
            Level::Packet => sim::run(&read, self.threads, watch)
                .map(|ran| Run::of(&ran.info, ran.info.digest.clone(), ran.scenario_toml, ran.tables)),
            Level::Flow => fluid::estimate(&read, watch)
                .map(|ran| Run::of(&ran.info, ran.info.digest.clone(), ran.scenario_toml, ran.tables)),
            Level::Links => links::estimate(&read, self.threads, watch)
                .map(|ran| Run::of(&ran.info, ran.info.digest.clone(), ran.scenario_toml, ran.tables)),
        };
        ran.map_err(|problem: Problem| self.source.locate(problem))
    }
}

/// The result of a run.
#[derive(Clone, Debug)]
pub struct Run {
    /// Digest of its whole history: equal for one scenario and seed on any machine and number of threads.
    pub digest: String,
    /// The scenario as it was run, every default filled in.
    pub scenario_toml: String,
    /// Its summary, as `run.json` has it.
    pub info: serde_json::Value,
    /// Its tables.
    pub tables: Vec<Table>,
}

impl Run {
    fn of(info: &impl Serialize, digest: String, scenario_toml: String, tables: Vec<run::Table>) -> Run {
        let info = serde_json::to_value(info).expect("a summary is JSON");
        Run { digest, scenario_toml, info, tables: tables.into_iter().map(Table).collect() }
    }

    /// Whether it ended by itself and its audit found no fault.
    pub fn ok(&self) -> bool {
        let audit = self.info["audit"].as_array();
        self.info["ended"] != "interrupted" && audit.is_some_and(|all| all.iter().all(|of| of["ok"] == true))
    }

    /// A table, by name: `flows`, `links`, and what else the scenario asks for. `docs/results.md` has all columns.
    pub fn table(&self, name: &str) -> Option<&Table> {
        self.tables.iter().find(|table| table.0.name == name)
    }

    /// Its flows, in the order of their numbers.
    pub fn flows(&self) -> impl Iterator<Item = Flow<'_>> {
        let table = self.table("flows").expect("every run has flows");
        let number = |name| table.numbers(name).expect("flows have it").map(|value| value.unwrap_or_default());
        let text = |name| table.texts(name).expect("flows have it");
        let fct = table.numbers("fct_ps").expect("flows have it").map(|time| time.map(Duration::from_ps));
        let slowdown = table.floats("slowdown").expect("flows have it");
        let who = number("flow").zip(text("source")).zip(text("destination")).zip(number("bytes"));
        who.zip(fct).zip(slowdown).zip(text("status")).map(
            |((((((flow, source), destination), bytes), fct), slowdown), status)| Flow {
                flow,
                source,
                destination,
                bytes,
                fct,
                slowdown,
                status,
            },
        )
    }
}

/// A flow of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Flow<'a> {
    /// Its number.
    pub flow: u64,
    /// Name of the sending host.
    pub source: &'a str,
    /// Name of the receiving host.
    pub destination: &'a str,
    /// Payload.
    pub bytes: u64,
    /// Completion time; none if it did not complete.
    pub fct: Option<Duration>,
    /// Completion time over that of the same flow alone in the network; none if it did not complete.
    pub slowdown: Option<f64>,
    /// `completed`, `unfinished`, `rejected` and so on.
    pub status: &'a str,
}

/// A table of a run, by columns.
#[derive(Clone, Debug)]
pub struct Table(run::Table);

impl Table {
    /// Its name.
    pub fn name(&self) -> &str {
        self.0.name
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether it has no rows.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Its columns: name, unit (empty for plain numbers and names) and meaning.
    pub fn columns(&self) -> impl Iterator<Item = (&str, &str, &str)> {
        self.0.columns.iter().map(|Column { name, unit, doc, .. }| (*name, *unit, *doc))
    }

    /// A column of numbers, times in picoseconds, and truth values; none where a row has no value. `None` if no column
    /// of this name has numbers.
    pub fn numbers(&self, column: &str) -> Option<impl Iterator<Item = Option<u64>> + '_> {
        let data = &self.0.column(column)?.data;
        let at = move |row: usize| match data {
            Data::U64(values) => Some(values[row]),
            Data::OptU64(values) => (values[row] != u64::MAX).then_some(values[row]),
            Data::U32(values) => Some(values[row].into()),
            Data::Bool(values) => Some(values[row].into()),
            Data::F64(_) | Data::Names { .. } => None,
        };
        let numbers = !matches!(data, Data::F64(_) | Data::Names { .. });
        numbers.then(|| (0..data.len()).map(at))
    }

    /// A column of ratios; none where a row has no value. `None` if no column of this name has ratios.
    pub fn floats(&self, column: &str) -> Option<impl Iterator<Item = Option<f64>> + '_> {
        let Data::F64(values) = &self.0.column(column)?.data else { return None };
        Some(values.iter().map(|&value| (!value.is_nan()).then_some(value)))
    }

    /// A column of names. `None` if no column of this name has names.
    pub fn texts(&self, column: &str) -> Option<impl Iterator<Item = &str> + '_> {
        let Data::Names { index, names } = &self.0.column(column)?.data else { return None };
        Some(index.iter().map(|&at| names[at as usize].as_str()))
    }
}

#[cfg(test)]
mod tests;
