//! Reads a scenario. Every error names its place, the value and what would be right.

use std::cmp::Reverse;
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use toml_edit::{Document, Item, TableLike, Value};
use units::Problem;

use super::outside::transports;
use super::words::{advise, beside, collision};
use super::{Crates, Programs, Scenario, outside};

/// The error of a scenario that can't be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScenarioError {
    /// The file, or `--set KEY` for a value given on the command line.
    pub source: String,
    /// Line in the file, counted from 1.
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

/// A scenario's text and the values set over it. Keeps enough to locate the source of any problem.
#[derive(Clone, Debug)]
pub struct Source {
    /// Name of the text in errors: its file.
    pub name: String,
    /// The text, in TOML.
    pub text: String,
    /// Dotted keys to set over the text, with values as TOML or bare words. Traffic classes go by name or number:
    /// `fabric.leaf_spine.racks`, `traffic.web.arrivals.poisson.load`.
    pub sets: Vec<(String, String)>,
    /// The folder that relative paths in the text start from.
    pub folder: PathBuf,
    /// Controls of one's own that a text can only name.
    pub programs: Programs,
    /// The crates that this process has registered transports of.
    pub crates: Crates,
}

impl Source {
    /// Opens the scenario in a file, with no values set over it.
    pub fn open(path: &Path) -> Result<Source, ScenarioError> {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|error| ScenarioError {
            source: name.clone(),
            line: None,
            key: String::new(),
            message: format!("could not be read: {error}"),
        })?;
        let folder = path.parent().unwrap_or(Path::new("")).to_owned();
        Ok(Source { name, text, sets: Vec::new(), folder, programs: Programs::default(), crates: Crates::default() })
    }

    /// Reads and checks the scenario and the files that it names.
    pub fn read(&self) -> Result<Scenario, ScenarioError> {
        let mut scenario = read(&self.text, &self.name, &self.sets)?;
        scenario.fabric = scenario.fabric.relative_to(&self.folder);
        scenario.load_controls(&self.folder, &self.programs).map_err(|problem| self.locate(problem))?;
        scenario.load_crates(&self.crates).map_err(|problem| self.locate(problem))?;
        for (index, class) in scenario.traffic.iter_mut().enumerate() {
            let loaded = class.load(|path| fabric::read_file(&self.folder.join(path), TRACE_BYTES_MAX));
            loaded.map_err(|problem| self.locate(problem.under(format!("traffic[{index}]"))))?;
        }
        for (index, job) in scenario.job.iter_mut().enumerate() {
            let loaded = job.load(|path| fabric::read_file(&self.folder.join(path), TRACE_BYTES_MAX));
            loaded.map_err(|problem| self.locate(problem.under(format!("job[{index}]"))))?;
        }
        Ok(scenario)
    }

    /// Adds the place in the text to a problem of the scenario that was read from here.
    pub fn locate(&self, problem: Problem) -> ScenarioError {
        Origin { source: &self.name, sets: &self.sets, text: &self.text }.semantic(problem)
    }
}

/// Largest file of a trace: room for some hundred million flows.
const TRACE_BYTES_MAX: u64 = 1 << 33;

/// Reads a scenario from TOML, but not the files that it names. For those, use [`Source`], whose fields are the
/// arguments here.
pub fn read(text: &str, source: &str, sets: &[(String, String)]) -> Result<Scenario, ScenarioError> {
    let origin = Origin { source, sets, text };
    // Where a text names a transport that another program has, and another is set over it, only the whole can be read.
    let is_ours = || outside(text, &[]).keys().all(|name| catalogue::registered().contains(&name.as_str()));
    let written = toml::from_str(text).map_err(|error| origin.syntax(&error));
    let mut scenario = match written {
        Ok(written) if sets.is_empty() => written,
        Err(error) if sets.is_empty() || is_ours() => return Err(error),
        _ => origin.overlay()?,
    };
    if let Some(problem) = scenario.misread() {
        return Err(origin.semantic(Problem { message: advise(&problem.message), ..problem }));
    }
    scenario.check().map_err(|problem| origin.semantic(problem))?;
    scenario.renamed = origin.renamed();
    Ok(scenario)
}

/// Earlier names of keys: the end of the table's path, the name, and the name now. The minimum and the maximum of a
/// quantity end in `_min` and `_max`; a parameter that a paper or a standard names keeps that name.
const RENAMED: [(&str, &str, &str); 3] = [
    ("dcqcn.control", "min_rate", "rate_min"),
    ("hpcc.control", "min_rate", "rate_min"),
    ("timely.control", "min_rate", "rate_min"),
];

fn note_renamed(value: &toml::Value, path: &str, found: &mut Vec<Problem>) {
    let (table, key) = path.rsplit_once('.').unwrap_or_default();
    let ends = |end: &str| table.strip_suffix(end).is_some_and(|before| before.is_empty() || before.ends_with('.'));
    if let Some((_, _, now)) = RENAMED.iter().find(|(end, earlier, _)| *earlier == key && ends(end)) {
        found.push(Problem::new(path, format!("is called {now}; the earlier name still works")));
    }
    match value {
        toml::Value::Table(inner) => {
            for (key, value) in inner {
                let inner = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                note_renamed(value, &inner, found);
            }
        }
        toml::Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                note_renamed(item, &format!("{path}[{at}]"), found);
            }
        }
        _ => {}
    }
}

/// Where a scenario's text came from.
#[derive(Clone, Copy)]
struct Origin<'a> {
    source: &'a str,
    sets: &'a [(String, String)],
    text: &'a str,
}

impl Origin<'_> {
    /// Keys of the text, and keys set over it, that have another name now.
    fn renamed(&self) -> Vec<Problem> {
        let mut found = Vec::new();
        // A long scenario is not read twice for nothing.
        let named = RENAMED.iter().any(|(_, earlier, _)| self.text.contains(earlier));
        if named && let Ok(document) = self.text.parse::<toml::Table>() {
            note_renamed(&toml::Value::Table(document), "", &mut found);
        }
        for (key, value) in self.sets {
            let read: Option<toml::Table> = toml::from_str(&format!("value = {value}")).ok();
            let value = read.and_then(|mut read| read.remove("value"));
            note_renamed(&value.unwrap_or(toml::Value::Boolean(false)), key, &mut found);
        }
        found
    }

    /// Parses the text and sets the keys over it.
    fn overlay(&self) -> Result<Scenario, ScenarioError> {
        let document: toml::Table = self.text.parse().map_err(|error| self.syntax(&error))?;
        let with = |sets: &mut dyn Iterator<Item = &(String, String)>| -> Result<Scenario, ScenarioError> {
            let written = toml::Value::Table(document.clone());
            let mut document = written.clone();
            for (key, value) in sets {
                set(&mut document, &written, key, value).map_err(|message| self.of_set(key, value, message))?;
            }
            Scenario::deserialize(document).map_err(|error| {
                let given: Vec<String> = self.sets.iter().map(|(key, value)| format!("{key}={value}")).collect();
                let source = format!("--set {}", given.join(" --set "));
                let mut message = advise(error.message());
                if error.message().contains("wanted exactly 1 element")
                    && let Some((choice, has, wanted)) = self.sets.iter().find_map(|(key, _)| beside(&written, key))
                {
                    message = format!(
                        "the scenario has {choice}.{has}, and {choice} is one of several; to replace it, set the whole \
                         of it: --set {choice}='{{ {wanted} = {{ ... }} }}'"
                    );
                }
                ScenarioError { source, line: None, key: String::new(), message }
            })
        };
        with(&mut self.sets.iter()).map_err(|error| {
            // Reads again without each set key: the key whose absence removes the error is the wrong one.
            let others = |out: usize| self.sets.iter().enumerate().filter(move |(index, _)| *index != out);
            let wrong = (0..self.sets.len()).find(|&out| with(&mut others(out).map(|(_, set)| set)).is_ok());
            wrong.map_or(error.clone(), |out| self.of_set(&self.sets[out].0, &self.sets[out].1, error.message))
        })
    }

    /// The error of a value that was set.
    fn of_set(&self, key: &str, value: &str, message: String) -> ScenarioError {
        ScenarioError { source: format!("--set {key}={value}"), line: None, key: String::new(), message }
    }

    /// The error of the TOML parser, located by its span in the text.
    fn syntax(&self, error: &toml::de::Error) -> ScenarioError {
        let at = error.span().map(|span| line_of(self.text, span.start));
        if let Some(line) = at
            && let Some((key, message)) = collision(self.text, line, error.message())
        {
            return ScenarioError { source: self.source.to_owned(), line: at, key, message };
        }
        let (key, line) = match error.span() {
            Some(span) => (key_at(self.text, &span), Some(line_of(self.text, span.start))),
            None => (String::new(), None),
        };
        let mut message = advise(error.message());
        if message.contains("is not a known name") && key.ends_with("transport") {
            message += "; one from a crate of your own needs its folder: transports = { NAME = \"FOLDER\" }";
        }
        ScenarioError { source: self.source.to_owned(), line, key, message }
    }

    /// The error of a problem that a check found, located by its key.
    fn semantic(&self, problem: Problem) -> ScenarioError {
        let parts = split(&problem.key);
        let key = join(&parts);
        // Blame a set key if it names the problem's key or contains it, and the text does not.
        let new = || places(self.text).iter().all(|(known, _)| *known != parts);
        let whole = self.sets.iter().find(|(set, _)| parts.starts_with(&self.numbered(set)));
        let blamed =
            whole.or_else(|| self.sets.iter().find(|(set, _)| self.numbered(set).starts_with(&parts) && new()));
        if let Some((set, value)) = blamed {
            return ScenarioError { key, ..self.of_set(set, value, problem.message) };
        }
        let line = span_of(self.text, parts).map(|span| line_of(self.text, span.start));
        ScenarioError { source: self.source.to_owned(), line, key, message: problem.message }
    }

    /// The parts of a set key, with names of entries replaced by their numbers.
    fn numbered(&self, key: &str) -> Vec<String> {
        let mut parts = split(key);
        let mut at = self.text.parse().ok().map(toml::Value::Table);
        for part in &mut parts {
            if let Some(entries) = at.as_ref().and_then(toml::Value::as_array)
                && let Some(index) = entry(entries, part)
            {
                *part = index.to_string();
            }
            at = at.and_then(|at| match part.parse::<usize>() {
                Ok(index) => at.get(index).cloned(),
                Err(_) => at.get(part.as_str()).cloned(),
            });
        }
        parts
    }
}

pub(super) fn line_of(text: &str, at: usize) -> usize {
    text.as_bytes()[..at.min(text.len())].iter().filter(|&&byte| byte == b'\n').count() + 1
}

/// Sets a dotted key in a document and creates the tables on its path.
///
/// The name of a scheme stands for the settings that the scenario has for it, so that comparing schemes by name
/// compares them as the scenario has set them: `transport = "dcqcn"` over `transport = { dcqcn = { ... } }`, or where a
/// class has such a table, gives that table. `written` is the document before anything was set. For a scheme's
/// defaults, set a table: `transport = { dcqcn = {} }`.
pub(super) fn set(document: &mut toml::Value, written: &toml::Value, key: &str, value: &str) -> Result<(), String> {
    let value = value.parse::<toml::Value>().unwrap_or_else(|_| toml::Value::String(value.to_owned()));
    let parts = split(key);
    let kept = value.as_str().and_then(|name| settings_of(name, &parts, document, written));
    let mut at = document;
    for part in parts {
        at = match at {
            toml::Value::Array(entries) => {
                let count = entries.len();
                // The number after the last adds an entry.
                if part == count.to_string() {
                    entries.push(toml::Table::new().into());
                }
                entry(entries, &part).and_then(|index| entries.get_mut(index)).ok_or_else(|| {
                    format!("there is no entry \"{part}\": the list has {count} entries, counted from 0")
                })?
            }
            toml::Value::Table(table) => table.entry(part).or_insert_with(|| toml::Table::new().into()),
            other => {
                // A bare name (`transport = "dcpim"`) becomes a table when one of its keys is set.
                *other = toml::Table::new().into();
                let table = other.as_table_mut().expect("just made");
                table.entry(part).or_insert_with(|| toml::Table::new().into())
            }
        };
    }
    *at = kept.unwrap_or(value);
    Ok(())
}

/// The table of settings that a name stands for at a key: that of the key itself, or, of a transport, of any class.
fn settings_of(name: &str, key: &[String], document: &toml::Value, written: &toml::Value) -> Option<toml::Value> {
    let at = |document| {
        key.iter().try_fold(document, |at: &toml::Value, part| match at {
            toml::Value::Array(entries) => entries.get(entry(entries, part)?),
            at => at.get(part.as_str()),
        })
    };
    let is_transport = matches!(key.last().map(String::as_str), Some("transport" | "over"));
    let elsewhere = || [document, written].into_iter().filter(|_| is_transport).flat_map(transports);
    let mut places = [document, written].into_iter().filter_map(at).chain(elsewhere());
    let has_settings = |place: &&toml::Value| {
        place.as_table().is_some_and(|table| table.len() == 1 && table.get(name).is_some_and(toml::Value::is_table))
    };
    places.find(has_settings).cloned()
}

/// Index of the entry that a part of a key names, by number or by name.
fn entry(entries: &[toml::Value], part: &str) -> Option<usize> {
    let named = |entry: &toml::Value| entry.get("name").and_then(toml::Value::as_str) == Some(part);
    part.parse().ok().or_else(|| entries.iter().position(named))
}

/// The parts of a dotted key; `traffic[0].load` and `traffic.0.load` are the same.
pub(super) fn split(key: &str) -> Vec<String> {
    key.replace('[', ".").replace(']', "").split('.').filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

/// A key from its parts: `traffic[0].sizes`.
pub(super) fn join(parts: &[String]) -> String {
    let mut key = String::new();
    for part in parts {
        match part.parse::<usize>() {
            Ok(index) => key += &format!("[{index}]"),
            Err(_) if key.is_empty() => key += part,
            Err(_) => key += &format!(".{part}"),
        }
    }
    key
}

/// All keys of a document, split into parts, with the spans of their names and values, in any of TOML's notations.
pub(super) fn places(text: &str) -> Vec<(Vec<String>, Range<usize>)> {
    fn table(table: &dyn TableLike, path: &[String], places: &mut Vec<(Vec<String>, Range<usize>)>) {
        for (key, child) in table.iter() {
            let path = [path, &[key.to_owned()]].concat();
            let name = table.get_key_value(key).and_then(|(key, _)| key.span());
            places.extend([name, child.span()].into_iter().flatten().map(|span| (path.clone(), span)));
            item(child, &path, places);
        }
    }
    fn item(item: &Item, path: &[String], places: &mut Vec<(Vec<String>, Range<usize>)>) {
        let mut entry = |index: usize, span: Option<Range<usize>>, inner: Option<&dyn TableLike>| {
            let path = [path, &[index.to_string()]].concat();
            places.extend(span.map(|span| (path.clone(), span)));
            if let Some(inner) = inner {
                table(inner, &path, places);
            }
        };
        match item {
            Item::ArrayOfTables(tables) => {
                tables.iter().enumerate().for_each(|(index, inner)| entry(index, inner.span(), Some(inner)));
            }
            Item::Value(Value::Array(values)) => values.iter().enumerate().for_each(|(index, value)| {
                entry(index, value.span(), value.as_inline_table().map(|inner| inner as &dyn TableLike));
            }),
            _ => {
                if let Some(inner) = item.as_table_like() {
                    table(inner, path, places);
                }
            }
        }
    }
    let mut found = Vec::new();
    if let Ok(document) = Document::parse(text) {
        table(document.as_table(), &[], &mut found);
    }
    found
}

/// The innermost dotted key whose name or value covers `span`.
fn key_at(text: &str, span: &Range<usize>) -> String {
    let holds = |place: &Range<usize>| place.start <= span.start && span.end <= place.end;
    let inside = places(text).into_iter().filter(|(_, place)| holds(place));
    inside.min_by_key(|(key, place)| (place.len(), Reverse(key.len()))).map_or(String::new(), |(key, _)| join(&key))
}

/// The span of a key, or of its innermost parent that the document contains.
fn span_of(text: &str, mut key: Vec<String>) -> Option<Range<usize>> {
    let places = places(text);
    while !key.is_empty() {
        if let Some((_, span)) = places.iter().find(|(known, _)| *known == key) {
            return Some(span.clone());
        }
        key.pop();
    }
    None
}
