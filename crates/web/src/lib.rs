//! The simulator in a browser: what a page needs of the engine, on one thread and in steps.
//!
//! [`check`] reads a scenario and says what is wrong with it, by line and key, as the command line does. A [`Session`]
//! runs one: its caller advances it step by step, so that a Web Worker hears in between that it is to stop, and gets
//! tables at the end. Digests are those of the native build.
//!
//! Compiled for WebAssembly (`make web`), the module `js` gives this to JavaScript. Compiled for anything else there is
//! only what a test needs. Files that a scenario names are those that the page has handed over.
//!
//! Deliberately absent: live runs, captures, and traces in Parquet, whose zstd is C.

mod session;

#[cfg(target_family = "wasm")]
mod js;

pub use session::{Level, Results, Session, Step};

use scenario::{Scenario, ScenarioError, Source};
use serde::Serialize;

/// What is said of a scenario's text.
#[derive(Debug, Serialize)]
pub struct Said {
    /// Its name; empty if it can't be read.
    pub name: String,
    /// What is wrong with it.
    pub error: Option<Wrong>,
    /// With every default filled in; empty if it can't be read.
    pub resolved: String,
}

/// What is wrong with a scenario: what the command line says, in its parts.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Wrong {
    /// Line in the text, counted from 1.
    pub line: Option<usize>,
    /// The dotted key.
    pub key: String,
    /// What is wrong, and what would be right.
    pub message: String,
}

impl From<ScenarioError> for Wrong {
    fn from(error: ScenarioError) -> Wrong {
        Wrong { line: error.line, key: error.key, message: error.message }
    }
}

/// Reads a scenario, and the files that it names, but works nothing out.
pub fn check(text: &str) -> Said {
    match source(text).read() {
        Ok(read) => Said { name: read.name.clone(), error: None, resolved: read.to_toml() },
        Err(error) => Said { name: String::new(), error: Some(error.into()), resolved: String::new() },
    }
}

/// The JSON Schema of a scenario.
pub fn schema() -> String {
    Scenario::json_schema()
}

fn source(text: &str) -> Source {
    let (name, text, sets) = ("scenario".to_owned(), text.to_owned(), Vec::new());
    Source { name, text, sets, folder: "".into(), programs: Default::default(), crates: Default::default() }
}

#[cfg(test)]
mod tests;
