//! Reading a scenario so that every error names its place, the value and what would be right.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use toml_edit::{Document, Item};
use units::Problem;

use super::Scenario;

/// Why a scenario can't be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScenarioError {
    /// The file, or `--set KEY` for a value given beside it.
    pub source: String,
    /// Where in the file, counted from 1.
    pub line: Option<usize>,
    /// The dotted key.
    pub key: String,
    /// What is wrong, and what would be right.
    pub message: String,
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.source)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        if !self.key.is_empty() {
            write!(f, ": {}", self.key)?;
        }
        write!(f, ": {}", self.message)
    }
}

impl std::error::Error for ScenarioError {}

/// A scenario's text and what is set over it: enough to tell of any problem where it comes from.
#[derive(Clone, Debug)]
pub struct Source {
    /// What to call the text in errors: its file.
    pub name: String,
    /// The text, TOML.
    pub text: String,
    /// Keys to be set over it, dotted (`fabric.leaf_spine.racks`; classes by name or number,
    /// `traffic.web.arrivals.poisson.load`), with values as TOML or as bare words.
    pub sets: Vec<(String, String)>,
    /// The folder from which the files that it names are seen.
    pub folder: PathBuf,
}

impl Source {
    /// The scenario of a file; nothing is set over it.
    pub fn open(path: &Path) -> Result<Source, ScenarioError> {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|error| ScenarioError {
            source: name.clone(),
            line: None,
            key: String::new(),
            message: format!("could not be read: {error}"),
        })?;
        let folder = path.parent().unwrap_or(Path::new("")).to_owned();
        Ok(Source { name, text, sets: Vec::new(), folder })
    }

    /// Reads and checks it, and the files that it names.
    pub fn read(&self) -> Result<Scenario, ScenarioError> {
        let mut scenario = read(&self.text, &self.name, &self.sets)?;
        scenario.fabric = scenario.fabric.relative_to(&self.folder);
        for (index, class) in scenario.traffic.iter_mut().enumerate() {
            let loaded = class.load(|path| std::fs::read_to_string(self.folder.join(path)));
            loaded.map_err(|problem| self.locate(problem.under(format!("traffic[{index}]"))))?;
        }
        Ok(scenario)
    }

    /// Tells a problem with what was read from here by its place.
    pub fn locate(&self, problem: Problem) -> ScenarioError {
        Origin { source: &self.name, sets: &self.sets, text: &self.text }.semantic(problem)
    }
}

/// Reads a scenario from TOML, but not the files that it names: see [`Source`], whose fields the arguments are.
pub fn read(text: &str, source: &str, sets: &[(String, String)]) -> Result<Scenario, ScenarioError> {
    let origin = Origin { source, sets, text };
    let written: Scenario = toml::from_str(text).map_err(|error| origin.syntax(&error))?;
    let scenario = if sets.is_empty() { written } else { origin.overlay()? };
    scenario.check().map_err(|problem| origin.semantic(problem))?;
    Ok(scenario)
}

/// Where a scenario's text came from.
#[derive(Clone, Copy)]
struct Origin<'a> {
    source: &'a str,
    sets: &'a [(String, String)],
    text: &'a str,
}

impl Origin<'_> {
    /// The text with the keys set over it.
    fn overlay(&self) -> Result<Scenario, ScenarioError> {
        let mut document = toml::Value::Table(self.text.parse().map_err(|error| self.syntax(&error))?);
        for (key, value) in self.sets {
            set(&mut document, key, value).map_err(|message| ScenarioError {
                source: format!("--set {key}={value}"),
                line: None,
                key: String::new(),
                message,
            })?;
        }
        Scenario::deserialize(document).map_err(|error| {
            let given: Vec<String> = self.sets.iter().map(|(key, value)| format!("{key}={value}")).collect();
            let source = format!("--set {}", given.join(" --set "));
            ScenarioError { source, line: None, key: String::new(), message: advise(&error.to_string()) }
        })
    }

    /// An error of the reader, by its span in the text.
    fn syntax(&self, error: &toml::de::Error) -> ScenarioError {
        let (key, line) = match error.span() {
            Some(span) => (key_at(self.text, &span), Some(line_of(self.text, span.start))),
            None => (String::new(), None),
        };
        ScenarioError { source: self.source.to_owned(), line, key, message: advise(error.message()) }
    }

    /// A problem that a check found, by its key.
    fn semantic(&self, problem: Problem) -> ScenarioError {
        let Problem { key, message } = problem;
        let normal = |key: &str| key.replace('[', ".").replace(']', "");
        let over = |set: &str| normal(&key) == normal(set) || normal(&key).starts_with(&format!("{}.", normal(set)));
        if let Some((set, value)) = self.sets.iter().find(|(set, _)| over(set)) {
            return ScenarioError { source: format!("--set {set}={value}"), line: None, key, message };
        }
        let line = span_of(self.text, &key).map(|span| line_of(self.text, span.start));
        ScenarioError { source: self.source.to_owned(), line, key, message }
    }
}

fn line_of(text: &str, at: usize) -> usize {
    text.as_bytes()[..at.min(text.len())].iter().filter(|&&byte| byte == b'\n').count() + 1
}

/// Puts the reader's message into words, with the nearest known name for an unknown one.
fn advise(message: &str) -> String {
    let message = message.trim();
    let quoted: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    let what = if message.starts_with("unknown field") {
        "key"
    } else if message.starts_with("unknown variant") {
        "name"
    } else {
        return message.replace('`', "\"");
    };
    let Some((unknown, known)) = quoted.split_first() else { return message.to_owned() };
    let nearest = known
        .iter()
        .map(|name| (strsim::damerau_levenshtein(unknown, name), name))
        .min()
        .filter(|(distance, name)| *distance <= 1 + name.len().max(unknown.len()) / 3);
    let hint = nearest.map_or(String::new(), |(_, name)| format!("; did you mean \"{name}\"?"));
    format!("\"{unknown}\" is no {what} here{hint} Known: {}", known.join(", ")).replace("here Known", "here. Known")
}

/// Sets a dotted key in a document, making tables on the way.
fn set(document: &mut toml::Value, key: &str, value: &str) -> Result<(), String> {
    let value = value.parse::<toml::Value>().unwrap_or_else(|_| toml::Value::String(value.to_owned()));
    let mut at = document;
    for part in split(key) {
        at = match at {
            toml::Value::Array(entries) => {
                let count = entries.len();
                let named = |entry: &toml::Value| entry.get("name").and_then(toml::Value::as_str) == Some(&part);
                let index = part.parse().ok().or_else(|| entries.iter().position(named));
                index.and_then(|index: usize| entries.get_mut(index)).ok_or_else(|| {
                    format!("no entry is called \"{part}\", and there are {count} of them, counted from 0")
                })?
            }
            toml::Value::Table(table) => table.entry(part).or_insert_with(|| toml::Table::new().into()),
            other => {
                // A name that stood alone (`transport = "dcpim"`) becomes a table when one of its keys is set.
                *other = toml::Table::new().into();
                let table = other.as_table_mut().expect("just made");
                table.entry(part).or_insert_with(|| toml::Table::new().into())
            }
        };
    }
    *at = value;
    Ok(())
}

/// The parts of a dotted key; `traffic[0].load` and `traffic.0.load` are the same.
fn split(key: &str) -> Vec<String> {
    key.replace('[', ".").replace(']', "").split('.').filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

/// One level of a document, whatever TOML's many notations for it.
fn children(item: &Item) -> Vec<(String, &Item, Option<Range<usize>>)> {
    if let Some(tables) = item.as_array_of_tables() {
        // Items of an array of tables are tables, which have no `Item` of their own: their keys are listed here.
        return tables
            .iter()
            .enumerate()
            .flat_map(|(index, table)| table.iter().map(move |(key, item)| (format!("{index}.{key}"), item, None)))
            .collect();
    }
    let Some(table) = item.as_table_like() else { return Vec::new() };
    let key_span = |key: &str| table.get_key_value(key).and_then(|(key, _)| key.span());
    table.iter().map(|(key, item)| (key.to_owned(), item, key_span(key))).collect()
}

/// All keys of a document with the places of their names and values.
fn places(text: &str) -> Vec<(String, Range<usize>)> {
    fn visit(item: &Item, path: &str, places: &mut Vec<(String, Range<usize>)>) {
        for (key, child, key_span) in children(item) {
            let path = if path.is_empty() { key } else { format!("{path}.{key}") };
            places.extend(key_span.map(|span| (path.clone(), span)));
            places.extend(child.span().map(|span| (path.clone(), span)));
            visit(child, &path, places);
        }
    }
    let mut found = Vec::new();
    if let Ok(document) = Document::parse(text) {
        visit(document.as_item(), "", &mut found);
    }
    found
}

/// The dotted key whose name or value is at `span`: the innermost one.
fn key_at(text: &str, span: &Range<usize>) -> String {
    let holds = |place: &Range<usize>| place.start <= span.start && span.end <= place.end;
    let inside = places(text).into_iter().filter(|(_, place)| holds(place));
    inside.min_by_key(|(_, place)| place.len()).map_or(String::new(), |(key, _)| key)
}

/// Where a key, or the innermost of its parents that is written there, stands.
fn span_of(text: &str, key: &str) -> Option<Range<usize>> {
    let places = places(text);
    let mut parts = split(key);
    while !parts.is_empty() {
        let wanted = parts.join(".");
        if let Some((_, span)) = places.iter().find(|(key, _)| *key == wanted) {
            return Some(span.clone());
        }
        parts.pop();
    }
    None
}
