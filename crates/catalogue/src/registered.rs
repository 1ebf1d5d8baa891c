//! Transports that are not in the list: a program brings them from a crate of its own.
//!
//! A program registers them when it starts, before it reads a scenario. From then on their names are read, checked and
//! written like those of the list; runs reach them as they reach all transports, through [`Scheme`] and
//! [`Endpoint`](node::Endpoint) as trait objects, so the others' way is the same. Registering is for a whole process,
//! because a scenario is read by its types, which can't be handed a list.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use contract::{Others, Scheme};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{DeserializeOwned, Error, MapAccess};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use units::Problem;

use crate::Transport;

/// A transport that was registered, with its settings.
#[derive(Clone)]
pub struct Registered {
    name: &'static str,
    /// The defaults, if its settings can't be read.
    made: Made,
    misread: Option<Problem>,
}

/// A scheme, with the settings that it was made from.
#[derive(Clone)]
struct Made {
    scheme: Arc<dyn Scheme + Send + Sync>,
    /// Every default filled in.
    settings: toml::Value,
}

/// How to make a registered transport from its settings.
#[derive(Clone, Copy)]
struct Entry {
    name: &'static str,
    default: fn() -> Result<Made, Problem>,
    read: fn(toml::Value) -> Result<Made, Problem>,
    schema: fn(&mut SchemaGenerator) -> Schema,
}

static ENTRIES: RwLock<Vec<Entry>> = RwLock::new(Vec::new());

/// Adds a transport for the rest of this process. The key of an error is the name.
pub fn register<C>(name: &'static str) -> Result<(), Problem>
where
    C: Scheme + Default + Serialize + DeserializeOwned + JsonSchema + Send + Sync + 'static,
{
    check_name(name)?;
    let entry = Entry {
        name,
        default: || Made::of(C::default()),
        read: |settings| {
            let config = serde_path_to_error::deserialize::<_, C>(settings).map_err(|error| {
                let place = error.path().to_string();
                // The path to the settings themselves.
                let key = if place == "." { String::new() } else { place };
                Problem::new(key, error.into_inner().message().trim())
            })?;
            Made::of(config)
        },
        schema: |generator| generator.subschema_for::<C>(),
    };
    let default = (entry.default)().map_err(|problem| problem.under(name))?;
    // What is written must be read again: results hold their scenarios.
    (entry.read)(default.settings).map_err(|problem| {
        let message = format!("its own default is refused: {}", problem.message);
        Problem { message, ..problem.under(name) }
    })?;
    let mut entries = ENTRIES.write().unwrap_or_else(PoisonError::into_inner);
    if entries.iter().any(|other| other.name == name) {
        return Err(Problem::new(name, "two transports of this name were registered; give one another name"));
    }
    entries.push(entry);
    Ok(())
}

/// The names of all transports that were registered.
pub fn registered() -> Vec<&'static str> {
    let entries = ENTRIES.read().unwrap_or_else(PoisonError::into_inner);
    entries.iter().map(|entry| entry.name).collect()
}

fn check_name(name: &str) -> Result<(), Problem> {
    if Transport::NAMES.contains(&name) || Transport::NEEDING_SETTINGS.contains(&name) {
        return Err(Problem::new(name, "is the name of one of Clearway's own transports; choose another"));
    }
    let fits = |sign: char| sign.is_ascii_lowercase() || sign.is_ascii_digit() || sign == '_';
    if name.is_empty() || name.len() > 64 || !name.starts_with(|sign: char| sign.is_ascii_lowercase()) {
        return Err(Problem::new(name, "is not a name of 1 to 64 signs that begins with a small letter"));
    }
    match name.chars().find(|&sign| !fits(sign)) {
        Some(sign) => {
            let message = format!("has '{sign}'; a transport's name has small letters, digits and underscores");
            Err(Problem::new(name, message))
        }
        None => Ok(()),
    }
}

fn entry(name: &str) -> Option<Entry> {
    let entries = ENTRIES.read().unwrap_or_else(PoisonError::into_inner);
    entries.iter().find(|entry| entry.name == name).copied()
}

impl Made {
    fn of<C: Scheme + Serialize + Send + Sync + 'static>(config: C) -> Result<Made, Problem> {
        let settings = toml::Value::try_from(&config)
            .map_err(|error| Problem::new("", format!("its settings can't be written as TOML: {error}")))?;
        if !settings.is_table() {
            return Err(Problem::new("", "its settings are no table of keys; make its Config a struct"));
        }
        Ok(Made { scheme: Arc::new(config), settings })
    }
}

impl Registered {
    /// The registered transport of this name, with its defaults.
    pub(crate) fn named(name: &str) -> Option<Registered> {
        let entry = entry(name)?;
        Some(Registered { name: entry.name, made: (entry.default)().ok()?, misread: None })
    }

    /// Its name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// What is wrong with its settings as they were read; keys are relative to them.
    pub(crate) fn misread(&self) -> Option<Problem> {
        self.misread.clone()
    }

    /// The scheme.
    pub(crate) fn scheme(&self) -> &dyn Scheme {
        &*self.made.scheme
    }

    /// The JSON Schema of each registered transport, as a table with its name.
    pub(crate) fn schemas(generator: &mut SchemaGenerator) -> Vec<Schema> {
        let entries = ENTRIES.read().unwrap_or_else(PoisonError::into_inner).clone();
        let form = |entry: &Entry| {
            let settings = (entry.schema)(generator);
            schemars::json_schema!({
                "type": "object",
                "properties": { entry.name: settings },
                "required": [entry.name],
                "additionalProperties": false
            })
        };
        entries.iter().map(form).collect()
    }
}

impl PartialEq for Registered {
    fn eq(&self, other: &Registered) -> bool {
        self.name == other.name && self.made.settings == other.made.settings
    }
}

impl fmt::Debug for Registered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Registered").field(&self.name).field(&self.made.settings).finish()
    }
}

/// As the entries of the list: a table with the name.
impl Serialize for Registered {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(1))?;
        map.serialize_entry(self.name, &self.made.settings)?;
        map.end()
    }
}

/// All that were registered.
pub(crate) struct All;

impl Others<Transport> for All {
    fn names(&self) -> Vec<&'static str> {
        registered()
    }

    fn named(&self, name: &'static str) -> Transport {
        Transport::Registered(Registered::named(name).expect("registered once, registered for ever"))
    }

    /// Settings that are wrong are kept as a problem, whose key says where: the reader's own error would name the whole
    /// table.
    fn read<'de, A: MapAccess<'de>>(&self, name: &'static str, table: &mut A) -> Result<Transport, A::Error> {
        let settings = table.next_value::<toml::Value>()?;
        let entry = entry(name).ok_or_else(|| A::Error::custom("it is not registered"))?;
        let made = match (entry.read)(settings) {
            Ok(made) => Ok((made, None)),
            Err(problem) => (entry.default)().map(|made| (made, Some(problem))),
        };
        let (made, misread) = made.map_err(A::Error::custom)?;
        Ok(Transport::Registered(Registered { name, made, misread }))
    }
}

#[cfg(test)]
mod tests;
