//! The kind of a device, and so the hook to which the program must be attached.
//!
//! The kernel reports a drop at egress to the local sender. TCP then assumes that the device's queue is full, forgets
//! that it sent the packet, and sends it again at once without reducing its window: shares collapse (66, 36 and 63 Mbps
//! for targets of 100, 200 and 300). A forwarder, such as a bridge, doesn't report the drop, and the sender's TCP sees
//! a loss. So:
//!
//! | where | hook | drop |
//! |---|---|---|
//! | ingress | tcx | `TCX_DROP` |
//! | egress of a port of a bridge | tcx | `TCX_DROP` |
//! | egress of any other device: local senders may use it | clsact | `TC_ACT_STOLEN`, which no sender is told of |
//!
//! tcx knows no silent drop. Kernels before 6.6 have no tcx; clsact is used there throughout.

use std::net::IpAddr;
use std::process::Command;

use contract::sharing::Position;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A drop that the sender is told of (`linux/pkt_cls.h`; tcx has the same number).
pub const TC_ACT_SHOT: u32 = 2;
/// A drop that no sender is told of.
pub const TC_ACT_STOLEN: u32 = 4;

/// How a program is attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Hook {
    /// A tcx link, pinned.
    Tcx,
    /// A filter of the clsact qdisc.
    Clsact,
}

impl Hook {
    /// Its name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Hook::Tcx => "tcx",
            Hook::Clsact => "clsact",
        }
    }
}

/// A device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// Its name.
    pub name: String,
    /// Its number in its namespace.
    pub index: u32,
    /// "veth", "bridge" and so on; empty for hardware.
    pub kind: String,
    /// The kind of its master: "bridge" and so on; empty for none.
    pub port_of: String,
    /// Bytes of its packets' link header.
    pub link_bytes: u32,
    /// Whether it is up.
    pub up: bool,
}

/// Where a program stands and what a drop is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The hook.
    pub hook: Hook,
    /// The program's return value for a drop.
    pub drop_code: u32,
    /// Why.
    pub why: &'static str,
}

/// Runs a command of iproute2 and reads its JSON.
fn json(program: &str, arguments: &[&str]) -> Result<Value, String> {
    let output = Command::new(program).args(arguments).output().map_err(|error| {
        format!("{program} could not be run: {error}; it is part of iproute2 (on Debian: apt install iproute2)")
    })?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(said.trim().to_owned());
    }
    if output.stdout.iter().all(u8::is_ascii_whitespace) {
        return Ok(Value::Array(Vec::new()));
    }
    serde_json::from_slice(&output.stdout).map_err(|error| format!("{program} {}: {error}", arguments.join(" ")))
}

impl Device {
    /// Looks a device up in the namespace of this thread.
    pub fn find(name: &str) -> Result<Device, String> {
        if name.is_empty() || name.len() > 15 || name.contains(|c: char| c == '/' || c.is_whitespace()) {
            return Err(format!("\"{name}\" is no name of a network device"));
        }
        let found = json("ip", &["-d", "-j", "link", "show", "dev", name]).map_err(|said| match said.as_str() {
            "" => format!("{name}: there is no such network device here"),
            _ if said.contains("does not exist") => {
                format!("{name}: there is no such network device here; `ip link` lists them, --netns names a namespace")
            }
            _ => format!("{name}: {said}"),
        })?;
        Device::read(&found[0]).ok_or_else(|| format!("{name}: what `ip -j link` says of it could not be understood"))
    }

    /// From an entry of `ip -d -j link`.
    fn read(entry: &Value) -> Option<Device> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let link_type = text(&entry["link_type"]);
        Some(Device {
            name: entry["ifname"].as_str()?.to_owned(),
            index: u32::try_from(entry["ifindex"].as_u64()?).ok()?,
            kind: text(&entry["linkinfo"]["info_kind"]),
            port_of: text(&entry["linkinfo"]["info_slave_kind"]),
            link_bytes: if matches!(link_type.as_str(), "ether" | "loopback") { 14 } else { 0 },
            up: entry["flags"].as_array().is_some_and(|flags| flags.iter().any(|flag| flag == "UP")),
        })
    }

    /// Its description, for people.
    pub fn about(&self) -> String {
        let kind = match self.kind.as_str() {
            "" => "device",
            kind => kind,
        };
        match self.port_of.as_str() {
            "" => kind.to_owned(),
            of => format!("{kind}, port of a {of}"),
        }
    }

    /// Where its program must stand. `asked` is a hook that the operator insists on; one that can't work is refused.
    pub fn choose(&self, position: Position, asked: Option<Hook>, has_tcx: bool) -> Result<Choice, String> {
        let told = position == Position::Egress && !matches!(self.port_of.as_str(), "bridge" | "openvswitch");
        let best = if told || !has_tcx { Hook::Clsact } else { Hook::Tcx };
        let hook = asked.unwrap_or(best);
        if hook == Hook::Tcx && !has_tcx {
            return Err(format!("{}: this kernel has no tcx (it came with 6.6); leave --hook out", self.name));
        }
        if hook == Hook::Tcx && told {
            return Err(format!(
                "{}: tcx at egress would collapse: local TCP senders are told of a drop there and send again at once \
                 (66, 36 and 63 Mbps for shares of 100, 200 and 300); leave --hook out, and clsact drops silently",
                self.name
            ));
        }
        let (drop_code, why) = match (position, told) {
            (Position::Ingress, _) => (TC_ACT_SHOT, "no sender is told of a drop at ingress"),
            (Position::Egress, false) => (TC_ACT_SHOT, "a bridge does not tell senders of a drop"),
            (Position::Egress, true) => (TC_ACT_STOLEN, "local senders may use it, so drops are silent"),
        };
        Ok(Choice { hook, drop_code, why })
    }
}

/// The addresses of a device of this namespace.
pub fn addresses(name: &str) -> Result<Vec<IpAddr>, String> {
    let found = json("ip", &["-j", "addr", "show", "dev", name])?;
    let all = found[0]["addr_info"].as_array().into_iter().flatten();
    Ok(all.filter_map(|one| one["local"].as_str()?.parse().ok()).collect())
}

/// Whether a device of this namespace has a clsact qdisc.
pub fn has_clsact(name: &str) -> Result<bool, String> {
    let qdiscs = json("tc", &["-j", "qdisc", "show", "dev", name])?;
    Ok(qdiscs.as_array().is_some_and(|all| all.iter().any(|one| one["kind"] == "clsact")))
}

/// How many filters the clsact qdisc of a device has, in both directions.
pub fn filters(name: &str) -> Result<usize, String> {
    let mut sum = 0;
    for direction in ["ingress", "egress"] {
        let found = json("tc", &["-j", "filter", "show", "dev", name, direction])?;
        // An entry without options only repeats the priority.
        sum += found.as_array().map_or(0, |all| all.iter().filter(|one| one.get("options").is_some()).count());
    }
    Ok(sum)
}

/// Removes the clsact qdisc of a device.
pub fn remove_clsact(name: &str) -> Result<(), String> {
    json("tc", &["qdisc", "del", "dev", name, "clsact"]).map(drop)
}

#[cfg(test)]
mod tests;
