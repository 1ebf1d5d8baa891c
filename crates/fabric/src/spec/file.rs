//! Fabrics from files: our own list of nodes and links, and the formats of two other simulators.
//!
//! A file is read line by line and field by field. The first error names the file, the line, the field, its value and
//! what would be right; nothing is guessed.

mod graph;
mod hpcc;
mod htsim;

use std::io;
#[cfg(not(target_family = "wasm"))]
use std::io::Read;
use std::path::{Path, PathBuf};
use std::str::{FromStr, SplitWhitespace};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Duration, Problem};

use crate::{Fabric, names};

/// A fabric that is described in a file of its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FileSpec {
    /// Path of the file, relative to the scenario's folder.
    pub path: PathBuf,
    /// Format of the file.
    #[serde(default)]
    pub format: FileFormat,
    /// Processing delay of switches for which the file states none (HPCC's files never do). Default: 0.
    #[serde(default)]
    pub switch_delay: Duration,
}

/// Format of a topology file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FileFormat {
    /// Lines `host NAME...`, `switch NAME [DELAY]` and `link NAME NAME RATE PROPAGATION`; `#` begins a comment.
    #[default]
    Graph,
    /// `topology.txt` of HPCC's ns-3 simulator.
    Hpcc,
    /// `.topo` of htsim: a fat-tree or leaf-spine, tier by tier.
    Htsim,
}

impl FileSpec {
    /// Reads the file and builds the fabric.
    pub(super) fn build(&self) -> Result<Fabric, Problem> {
        let unreadable = |why: String| Problem::new("path", format!("can't read {}: {why}", self.path.display()));
        let content = read_file(&self.path, TEXT_BYTES_MAX).map_err(|error| unreadable(error.to_string()))?;
        let text = String::from_utf8(content).map_err(|_| unreadable("it is not text in UTF-8".into()))?;
        self.parse(&text)
    }

    /// Builds the fabric from the file's text.
    pub fn parse(&self, text: &str) -> Result<Fabric, Problem> {
        let lines = Lines { file: &self.path, text };
        let fabric = match self.format {
            FileFormat::Graph => graph::parse(lines, self.switch_delay),
            FileFormat::Hpcc => hpcc::parse(lines, self.switch_delay),
            FileFormat::Htsim => htsim::parse(lines, self.switch_delay),
        };
        // A fault of the whole graph, such as a disconnected part, has no line.
        fabric.map_err(|problem| match problem.key.as_str() {
            "" => Problem::new("path", format!("{}: {}", self.path.display(), problem.message)),
            _ => problem,
        })
    }
}

/// Largest topology file: room for a million links.
const TEXT_BYTES_MAX: u64 = 1 << 28;

/// Reads a file that a scenario names, of at most `bytes_max` bytes. Refuses a pipe or a device, which might never end.
#[cfg(not(target_family = "wasm"))]
pub fn read_file(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    // Checked before opening, since opening a pipe waits for a writer.
    if !std::fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is not a file but a folder, a pipe or a device"));
    }
    let mut content = Vec::new();
    std::fs::File::open(path)?.take(bytes_max + 1).read_to_end(&mut content)?;
    if content.len() as u64 > bytes_max {
        return Err(io::Error::other(format!("it has more than {bytes_max} bytes")));
    }
    Ok(content)
}

/// In a browser there are no files but those that the page has handed over.
#[cfg(target_family = "wasm")]
pub fn read_file(path: &Path, _: u64) -> io::Result<Vec<u8>> {
    let none = || io::Error::other("a page has no files but those of the examples; the clearway command reads yours");
    files().get(path).cloned().ok_or_else(none)
}

/// Hands over a file, by the path that scenarios name it by.
#[cfg(target_family = "wasm")]
pub fn hand_over(path: PathBuf, content: Vec<u8>) {
    files().insert(path, content);
}

#[cfg(target_family = "wasm")]
fn files() -> std::sync::MutexGuard<'static, std::collections::BTreeMap<PathBuf, Vec<u8>>> {
    static FILES: std::sync::Mutex<std::collections::BTreeMap<PathBuf, Vec<u8>>> =
        std::sync::Mutex::new(std::collections::BTreeMap::new());
    FILES.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// The lines of a file without blank lines and comments.
#[derive(Clone, Copy)]
struct Lines<'a> {
    file: &'a Path,
    text: &'a str,
}

impl<'a> Lines<'a> {
    fn iter(self) -> impl Iterator<Item = Line<'a>> {
        let lines = self.text.lines().enumerate().filter_map(move |(index, line)| {
            let line = line.split_once('#').map_or(line, |(before, _)| before);
            let fields = line.split_whitespace();
            (fields.clone().next().is_some()).then_some(Line {
                file: self.file,
                number: index + 1,
                fields,
                first: false,
            })
        });
        lines.enumerate().map(|(index, line)| Line { first: index == 0, ..line })
    }

    /// The error of a file that ends before `wanted`.
    fn ends_before(self, wanted: &str) -> Problem {
        let last = self.text.lines().count();
        Problem::new("path", format!("{}:{last}: the file ends before {wanted}", self.file.display()))
    }
}

/// One line, read field by field.
struct Line<'a> {
    file: &'a Path,
    number: usize,
    fields: SplitWhitespace<'a>,
    /// Whether this is the first of these lines.
    first: bool,
}

impl<'a> Line<'a> {
    /// The next field as text.
    fn word(&mut self, field: &str) -> Result<&'a str, Problem> {
        self.fields.next().ok_or_else(|| self.error(&format!("{field} is missing at the end of the line")))
    }

    /// The next field parsed as a value, whose error says what would be right.
    fn value<T: FromStr<Err: std::fmt::Display>>(&mut self, field: &str) -> Result<T, Problem> {
        let word = self.word(field)?;
        word.parse().map_err(|error| match self.first {
            true => self.error(&format!("{field} is something else")),
            false => self.error(&format!("{field} \"{word}\": {error}")),
        })
    }

    /// The next field as a whole number in a range.
    fn count(&mut self, field: &str, range: std::ops::RangeInclusive<u32>) -> Result<u32, Problem> {
        let word = self.word(field)?;
        word.parse().ok().filter(|count| range.contains(count)).ok_or_else(|| {
            let (least, most) = range.into_inner();
            self.error(&format!("{field} is {}; it must be a whole number from {least} to {most}", self.shown(word)))
        })
    }

    /// Checks that no field is left.
    fn end(mut self) -> Result<(), Problem> {
        match self.fields.next() {
            None => Ok(()),
            Some(extra) => Err(self.error(&format!("the line should end before \"{extra}\""))),
        }
    }

    /// A word as shown in errors. A word of the first line is hidden if the file is no topology, because it may be any
    /// file, such as one with passwords, and errors go to logs.
    fn shown(&self, word: &str) -> String {
        let telling = !self.first || word.parse::<u64>().is_ok();
        if telling { format!("\"{word}\"") } else { "something else".to_owned() }
    }

    /// The error of an unknown word.
    fn unknown(&self, what: &str, word: &str, known: &[&str]) -> Problem {
        match self.first {
            true => self.error(&format!("the first line does not begin with a {what}; known: {}", known.join(", "))),
            false => self.error(&names::unknown(what, word, known).message),
        }
    }

    fn error(&self, message: &str) -> Problem {
        Problem::new("path", format!("{}:{}: {message}", self.file.display(), self.number))
    }
}

#[cfg(test)]
mod tests;
