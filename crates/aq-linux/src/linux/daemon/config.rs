//! The daemon's configuration: devices, each with what a file for `attach` says, and a few settings of its own.
//!
//! ```toml
//! [daemon]
//! metrics = "127.0.0.1:9121"
//!
//! [[device]]
//! name = "eth0"
//! tenants = "eth0.toml"          # a file for `attach`, beside this one
//!
//! [[device]]
//! name = "eth1"                  # or the same keys here
//! netns = "blue"
//! link = { capacity = "1Gbps" }
//! entity = [{ name = "a", match = { ports = ["80"] }, request = [{ share = { weight = 1 }, position = "egress" }] }]
//! ```

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration as Wait;

use catalogue::Sharing;
use serde::Deserialize;
use units::Duration;

use super::super::device::{Hook, check_name};
use super::super::place::DevicePlace;
use super::super::serve::Address;
use crate::grants::{Grants, Senders};
use crate::tenants::{Link, Tenant, Tenants, read};

/// How often the daemon looks, by default, at least and at most.
const EVERY: Duration = Duration::from_ms(1_000);
const EVERY_LEAST: Duration = Duration::from_ms(10);
const EVERY_MOST: Duration = Duration::from_ms(60_000);

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct File {
    daemon: Settings,
    device: Vec<Spec>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Settings {
    metrics: Option<String>,
    every: Duration,
    namespaces: bool,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { metrics: None, every: EVERY, namespaces: false }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Spec {
    name: String,
    netns: Option<String>,
    hook: Option<Hook>,
    tenants: Option<PathBuf>,
    link: Option<Link>,
    sharing: Option<Sharing>,
    #[serde(default)]
    entity: Vec<Tenant>,
}

/// A whole configuration that was checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Where Prometheus text is served.
    pub metrics: Option<Address>,
    /// How often it looks.
    pub every: Wait,
    /// Whether it must be able to enter other namespaces.
    pub namespaces: bool,
    /// The devices.
    pub devices: Vec<Wanted>,
    /// The files that it consists of.
    pub files: BTreeSet<PathBuf>,
}

impl Default for Config {
    fn default() -> Config {
        let every = Wait::from_secs(1);
        Config { metrics: None, every, namespaces: false, devices: Vec::new(), files: BTreeSet::new() }
    }
}

/// A device that is to be attached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Its name.
    pub name: String,
    /// Its namespace.
    pub netns: Option<String>,
    /// A hook that the operator insists on.
    pub hook: Option<Hook>,
    /// The text of its tenants, as `attach` reads it.
    pub text: String,
    /// Where that is from.
    pub source: String,
}

impl Config {
    /// Reads and checks a configuration whole, with all files that it names.
    pub fn read(path: &Path) -> Result<Config, String> {
        let source = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|error| format!("{source}: {error}"))?;
        let folder = path.parent().unwrap_or(Path::new("."));
        let load = |name: &Path| {
            let path = folder.join(name);
            let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
            Ok((path, text))
        };
        let mut config = Config::parse(&text, &source, load)?;
        config.files.insert(path.to_owned());
        Ok(config)
    }

    /// The same from a text; `load` reads a file that it names.
    pub fn parse(
        text: &str,
        source: &str,
        load: impl Fn(&Path) -> Result<(PathBuf, String), String>,
    ) -> Result<Config, String> {
        let file: File = toml::from_str(text).map_err(|error| {
            let line = error.span().and_then(|span| text.get(..span.start)).map(|b| b.matches('\n').count() + 1);
            format!("{source}{}: {}", line.map_or(String::new(), |line| format!(":{line}")), error.message())
        })?;
        let Settings { metrics, every, namespaces } = file.daemon;
        let wrong = |key: &str, why: String| format!("{source}: daemon.{key}: {why}");
        let metrics = metrics.map(|text| text.parse()).transpose().map_err(|why| wrong("metrics", why))?;
        if !(EVERY_LEAST..=EVERY_MOST).contains(&every) {
            return Err(wrong("every", format!("{every} is not from {EVERY_LEAST} to {EVERY_MOST}")));
        }
        let mut config = Config {
            metrics,
            every: Wait::from_nanos(every.ps() / 1_000),
            namespaces,
            devices: Vec::new(),
            files: BTreeSet::new(),
        };
        for (index, spec) in file.device.into_iter().enumerate() {
            let key = format!("{source}: device[{index}]");
            let (wanted, file) = spec.check(&key, &load)?;
            let same = |other: &&Wanted| other.name == wanted.name && other.netns == wanted.netns;
            if config.devices.iter().any(|other| same(&other)) {
                return Err(format!("{key}.name: \"{}\" is there twice", wanted.name));
            }
            config.namespaces |= wanted.netns.is_some();
            config.files.extend(file);
            config.devices.push(wanted);
        }
        Ok(config)
    }
}

impl Spec {
    /// Checks all that can be known without the device.
    fn check(
        self,
        key: &str,
        load: &impl Fn(&Path) -> Result<(PathBuf, String), String>,
    ) -> Result<(Wanted, Option<PathBuf>), String> {
        check_name(&self.name).map_err(|why| format!("{key}.name: {why}"))?;
        let inline = self.sharing.is_some() || !self.entity.is_empty();
        let (source, text, file) = match (self.tenants, self.link) {
            (Some(path), None) if !inline => {
                let (path, text) = load(&path).map_err(|why| format!("{key}.tenants: {why}"))?;
                (path.display().to_string(), text, Some(path))
            }
            (None, Some(link)) => {
                let sharing = self.sharing.unwrap_or_else(|| Sharing::Aq(sharing::aq::Config::default()));
                let tenants = Tenants { link, sharing, entity: self.entity };
                (key.to_owned(), toml::to_string(&tenants).map_err(|error| format!("{key}: {error}"))?, None)
            }
            _ => {
                return Err(format!(
                    "{key}: write either tenants = \"FILE\" or the keys of such a file, link, sharing and entity"
                ));
            }
        };
        let tenants = read(&text, &source)?;
        for position in tenants.positions() {
            Grants::new(&tenants, position, Senders::USUAL).map_err(|problem| format!("{source}: {problem}"))?;
        }
        Ok((Wanted { name: self.name, netns: self.netns, hook: self.hook, text, source }, file))
    }
}

impl Wanted {
    /// Whether a record's place is this device's.
    pub fn is_at(&self, place: &DevicePlace) -> bool {
        DevicePlace::new(place.roots(), &self.name, self.netns.as_deref()).name() == place.name()
    }
}

#[cfg(test)]
mod tests;
