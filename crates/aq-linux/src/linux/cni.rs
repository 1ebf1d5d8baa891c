//! A CNI plugin in the form of the standard bandwidth plugin (versions 0.3.0 to 1.1.0 of the specification): chained
//! behind one that made a veth pair, it gives the container its rates, and passes the result on as it is.
//!
//! `ingressRate` and `egressRate` are bits per second, of the configuration or of `runtimeConfig.bandwidth`, which
//! counts if it is there. The bursts have no effect: an AQ's limit is derived from its rate, and a runtime fills them
//! with 2^31. The key `aq` gives a weight on a device that containers share.

use std::io::Read;

use serde::Deserialize;
use serde_json::{Value, json};
use units::Rate;

use super::container::{Container, Ends, Shared, Wish, ends, give, lacks, take};
use super::kernel;
use super::place::Roots;
use crate::matching::Prefix;

/// Versions of the specification, the newest last.
const VERSIONS: [&str; 5] = ["0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"];

/// Numbers of errors, by the specification; from 100 on they are a plugin's own.
const VERSION: u32 = 1;
const ENVIRONMENT: u32 = 4;
const READING: u32 = 5;
const DECODING: u32 = 6;
const CONFIGURATION: u32 = 7;
const UNAVAILABLE: u32 = 50;
const FAILED: u32 = 100;
const NOT_AS_ASKED: u32 = 101;

/// An error of a plugin.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Problem {
    code: u32,
    why: String,
}

fn problem(code: u32) -> impl Fn(String) -> Problem {
    move |why| Problem { code, why }
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Config {
    cni_version: String,
    name: String,
    prev_result: Option<Value>,
    #[serde(flatten)]
    rates: Rates,
    aq: Aq,
    runtime_config: Runtime,
    #[serde(rename = "cni.dev/valid-attachments")]
    valid: Vec<Valid>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Rates {
    ingress_rate: u64,
    egress_rate: u64,
    shaped_subnets: Vec<Prefix>,
    unshaped_subnets: Vec<Prefix>,
}

/// Our own key.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Aq {
    weight: Option<u32>,
    device: Option<String>,
    capacity: Option<Rate>,
    headroom: Option<f64>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Runtime {
    bandwidth: Option<Rates>,
    aq: Option<Aq>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Valid {
    #[serde(rename = "containerID")]
    container_id: String,
    ifname: String,
}

/// The variables that a runtime sets.
#[derive(Clone, Debug, Default)]
struct Variables {
    command: String,
    container: String,
    netns: String,
    device: String,
    arguments: String,
}

/// The whole plugin: what it prints, and whether it could do what it should.
pub fn main(roots: &Roots) -> (String, bool) {
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    let variables = Variables {
        command: variable("CNI_COMMAND"),
        container: variable("CNI_CONTAINERID"),
        netns: variable("CNI_NETNS"),
        device: variable("CNI_IFNAME"),
        arguments: variable("CNI_ARGS"),
    };
    let mut text = String::new();
    let read = std::io::stdin().read_to_string(&mut text);
    let done = read.map_err(|error| problem(READING)(format!("standard input: {error}")));
    answer(done.and_then(|_| act(roots, &variables, &text)), &text)
}

fn answer(done: Result<Option<Value>, Problem>, text: &str) -> (String, bool) {
    match done {
        Ok(None) => (String::new(), true),
        Ok(Some(value)) => (value.to_string(), true),
        Err(Problem { code, why }) => {
            let asked: Value = serde_json::from_str(text).unwrap_or_default();
            let known = asked["cniVersion"].as_str().filter(|version| VERSIONS.contains(version));
            (json!({ "cniVersion": known.unwrap_or("1.1.0"), "code": code, "msg": why }).to_string(), false)
        }
    }
}

fn act(roots: &Roots, variables: &Variables, text: &str) -> Result<Option<Value>, Problem> {
    let decode = |text: &str| serde_json::from_str(text).map_err(|error| problem(DECODING)(format!("{error}")));
    if variables.command == "VERSION" {
        let asked: Value = decode(text)?;
        let version = asked["cniVersion"].as_str().unwrap_or("1.1.0").to_owned();
        return Ok(Some(json!({ "cniVersion": version, "supportedVersions": VERSIONS })));
    }
    let config: Config = decode(text).and_then(|value: Value| {
        serde_json::from_value(value).map_err(|error| problem(DECODING)(format!("the configuration: {error}")))
    })?;
    let version = config.cni_version.as_str();
    if !VERSIONS.contains(&version) {
        return Err(problem(VERSION)(format!("version \"{version}\" is none of {}", VERSIONS.join(", "))));
    }
    let newer =
        |least: &str| VERSIONS.iter().position(|one| *one == version) >= VERSIONS.iter().position(|o| *o == least);
    match variables.command.as_str() {
        "ADD" => config.add(roots, variables).map(Some),
        "DEL" => {
            let owner = config.owner(variables)?;
            take(roots, |other| other == owner).map_err(problem(FAILED))?;
            Ok(None)
        }
        "CHECK" if newer("0.4.0") => config.check(roots, variables).map(|()| None),
        "GC" if newer("1.1.0") => {
            let prefix = config.prefix();
            let valid: Vec<String> =
                config.valid.iter().map(|one| format!("{prefix}{}/{}", one.container_id, one.ifname)).collect();
            let stale = |owner: &str| owner.starts_with(&prefix) && !valid.iter().any(|one| one == owner);
            take(roots, stale).map_err(problem(FAILED))?;
            Ok(None)
        }
        "STATUS" if newer("1.1.0") => {
            kernel::check_rights().and_then(|()| roots.check_pins()).map_err(problem(UNAVAILABLE))?;
            Ok(None)
        }
        other => Err(problem(ENVIRONMENT)(format!("CNI_COMMAND: version {version} has no command \"{other}\""))),
    }
}

impl Config {
    /// How owners of this network's attachments begin in records.
    fn prefix(&self) -> String {
        format!("cni:{}/", self.name)
    }

    fn owner(&self, variables: &Variables) -> Result<String, Problem> {
        for (name, value) in [("CNI_CONTAINERID", &variables.container), ("CNI_IFNAME", &variables.device)] {
            if value.is_empty() {
                return Err(problem(ENVIRONMENT)(format!("{name} is not set")));
            }
        }
        Ok(format!("{}{}/{}", self.prefix(), variables.container, variables.device))
    }

    fn container(&self, variables: &Variables) -> Result<Container, Problem> {
        let owner = self.owner(variables)?;
        if variables.netns.is_empty() {
            return Err(problem(ENVIRONMENT)("CNI_NETNS is not set".to_owned()));
        }
        let argument = |key: &str| {
            variables.arguments.split(';').find_map(|pair| pair.strip_prefix(key)?.strip_prefix('=').map(str::to_owned))
        };
        let name = match argument("K8S_POD_NAMESPACE").zip(argument("K8S_POD_NAME")) {
            Some((namespace, pod)) => format!("{namespace}/{pod}/{}", variables.device),
            None => format!("{}/{}", variables.container, variables.device),
        };
        // A tenant's name has 64 signs at most. The end tells pods of one deployment apart.
        let signs: Vec<char> = name.chars().filter(|sign| !sign.is_control()).collect();
        let name = signs[signs.len().saturating_sub(64)..].iter().collect();
        Ok(Container { owner, name, netns: variables.netns.clone() })
    }

    /// The wish of the configuration and the runtime.
    fn wish(&self) -> Result<Wish, Problem> {
        let wrong = problem(CONFIGURATION);
        let rates = self.runtime_config.bandwidth.as_ref().unwrap_or(&self.rates);
        if !rates.unshaped_subnets.is_empty() || !self.rates.unshaped_subnets.is_empty() {
            return Err(wrong("unshapedSubnets: has no effect; write shapedSubnets".to_owned()));
        }
        let rate = |bps: u64| (bps > 0).then(|| Rate::from_bps(bps));
        let subnets = if rates.shaped_subnets.is_empty() { &self.rates.shaped_subnets } else { &rates.shaped_subnets };
        let asked = self.runtime_config.aq.as_ref().and_then(|aq| aq.weight).or(self.aq.weight);
        let weight = match (asked, &self.aq.device, self.aq.capacity) {
            (None, ..) => None,
            (Some(0), ..) => return Err(wrong("aq.weight: must be at least 1".to_owned())),
            (Some(weight), Some(device), Some(capacity)) => {
                let headroom = self.aq.headroom.unwrap_or(0.02);
                if !(0.0..1.0).contains(&headroom) {
                    return Err(wrong(format!("aq.headroom: {headroom} is not from 0 to below 1")));
                }
                Some((weight, Shared { device: device.clone(), capacity, headroom }))
            }
            _ => {
                return Err(wrong("aq.weight: needs aq.device and aq.capacity, of the link that is shared".to_owned()));
            }
        };
        Ok(Wish {
            ingress: rate(rates.ingress_rate),
            egress: rate(rates.egress_rate),
            subnets: subnets.clone(),
            weight,
        })
    }

    /// The ends of the container's device; its addresses are those that the plugins before gave it.
    fn ends(&self, container: &Container, variables: &Variables) -> Result<Ends, Problem> {
        let mut found = ends(&container.netns, Some(&variables.device)).map_err(problem(FAILED))?;
        let given = self.prev_result.iter().flat_map(|result| result["ips"].as_array()).flatten();
        let text = given.filter_map(|one| one["address"].as_str()?.split('/').next()?.parse().ok());
        let all: Vec<_> = text.collect();
        if !all.is_empty() {
            found.addresses = all;
        }
        Ok(found)
    }

    fn add(&self, roots: &Roots, variables: &Variables) -> Result<Value, Problem> {
        let container = self.container(variables)?;
        let Some(result) = self.prev_result.clone() else {
            let message = "it has no prevResult: this plugin comes behind one that makes the device";
            return Err(problem(CONFIGURATION)(message.to_owned()));
        };
        let wish = self.wish()?;
        if !wish.is_empty() {
            let ends = self.ends(&container, variables)?;
            let given = give(roots, &container, &wish, &ends);
            if let Err(why) = given {
                // A part that was given is taken back; the first error is the one to tell.
                let _ = take(roots, |owner| owner == container.owner);
                return Err(problem(FAILED)(why));
            }
        }
        Ok(result)
    }

    fn check(&self, roots: &Roots, variables: &Variables) -> Result<(), Problem> {
        let (container, wish) = (self.container(variables)?, self.wish()?);
        if wish.is_empty() {
            return Ok(());
        }
        let ends = self.ends(&container, variables)?;
        match lacks(roots, &container, &wish, &ends).map_err(problem(FAILED))? {
            Some(why) => Err(problem(NOT_AS_ASKED)(why)),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
