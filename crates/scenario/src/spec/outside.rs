//! Transports from crates outside of Clearway's tree: where a scenario says that they are.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::Problem;

use super::{Scenario, read};

/// Where the crate of a transport is. In a scenario: its folder, or a table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "FolderOrTable")]
pub struct CrateSpec {
    /// The crate's folder, relative to the scenario's.
    pub folder: String,
    /// Digest of the crate's code, which results record. If it is given, a crate with another digest is refused.
    /// Default: the digest of what is found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(untagged, expecting = "expected the folder of a crate, such as \"../mine\", or { folder = \"../mine\" }")]
enum FolderOrTable {
    Folder(String),
    Table(Table),
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Table {
    folder: String,
    digest: Option<String>,
}

impl From<FolderOrTable> for CrateSpec {
    fn from(read: FolderOrTable) -> CrateSpec {
        match read {
            FolderOrTable::Folder(folder) => CrateSpec { folder, digest: None },
            FolderOrTable::Table(Table { folder, digest }) => CrateSpec { folder, digest },
        }
    }
}

/// Digests of crates, by the names of their transports.
pub type Crates = BTreeMap<String, String>;

/// The transports of a scenario that are in crates outside, by name: those that it both uses and gives a folder. It
/// reads no more than it needs, since nobody but the program of that crate can read the whole; what is wrong with the
/// rest is for the reader to say.
pub fn outside(text: &str, sets: &[(String, String)]) -> BTreeMap<String, String> {
    let Ok(table) = text.parse::<toml::Table>() else { return BTreeMap::new() };
    let mut document = toml::Value::Table(table);
    let written = document.clone();
    for (key, value) in sets {
        // An error is the reader's to name.
        let _ = read::set(&mut document, &written, key, value);
    }
    let used = used(&document);
    let given = document.get("transports").and_then(toml::Value::as_table);
    let folder = |spec: &toml::Value| {
        let folder = spec.as_str().or_else(|| spec.get("folder")?.as_str());
        folder.map(str::to_owned)
    };
    let known = |(name, spec): (&String, &toml::Value)| Some((name.clone(), folder(spec)?));
    given.into_iter().flatten().filter(|(name, _)| used.contains(*name)).filter_map(known).collect()
}

/// The names of all transports in a document.
fn used(document: &toml::Value) -> BTreeSet<String> {
    let name = |place: &toml::Value| match place {
        toml::Value::String(name) => Some(name.clone()),
        toml::Value::Table(table) => table.keys().next().cloned(),
        _ => None,
    };
    transports(document).into_iter().filter_map(name).collect()
}

/// All transports in a document, as it has them: names, or tables with settings.
pub(super) fn transports(document: &toml::Value) -> Vec<&toml::Value> {
    fn entries<'a>(of: &'a toml::Value, key: &str) -> impl Iterator<Item = &'a toml::Value> {
        of.get(key).and_then(toml::Value::as_array).into_iter().flatten()
    }
    let mut places: Vec<_> = document.get("transport").into_iter().collect();
    for class in entries(document, "traffic") {
        places.extend(class.get("transport"));
        places.extend(entries(class, "resubmit").filter_map(|again| again.get("over")));
    }
    places.extend(entries(document, "job").filter_map(|job| job.get("transport")));
    let sockets = document.get("live").and_then(|live| live.get("sockets")).and_then(toml::Value::as_table);
    places.extend(sockets.into_iter().flatten().filter_map(|(_, class)| class.get("transport")));
    places
}

impl Scenario {
    /// Notes what the crates are from which this process has its transports.
    pub(super) fn load_crates(&mut self, crates: &Crates) -> Result<(), Problem> {
        for (name, digest) in crates {
            let Some(spec) = self.transports.get_mut(name) else { continue };
            if let Some(given) = spec.digest.as_ref().filter(|given| *given != digest) {
                let message = format!(
                    "{given} is not the digest of what is there, {digest}: the crate has changed since; delete this \
                     key to run it as it is now"
                );
                return Err(Problem::new(format!("transports.{name}.digest"), message));
            }
            spec.digest = Some(digest.clone());
        }
        Ok(())
    }

    /// What a table of crates can't say.
    pub(super) fn check_crates(&self) -> Result<(), Problem> {
        for (name, spec) in &self.transports {
            let key = format!("transports.{name}");
            let own = [catalogue::Transport::NAMES, catalogue::Transport::NEEDING_SETTINGS].concat();
            if own.contains(&&**name) {
                let message = "is the name of one of Clearway's own transports; give that of your crate another";
                return Err(Problem::new(key, message));
            }
            if spec.folder.is_empty() {
                return Err(Problem::new(key, "names no folder; write the crate's, such as \"../mine\""));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
