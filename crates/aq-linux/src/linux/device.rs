//! The kind of a device, and so what a drop must be there.
//!
//! The kernel reports a drop at egress to the local sender. TCP then assumes that the device's queue is full, forgets
//! that it sent the packet, and sends it again at once without reducing its window: shares collapse (66, 36 and 63 Mbps
//! for targets of 100, 200 and 300). A forwarder, such as a bridge, doesn't report the drop, and the sender's TCP sees
//! a loss. So:
//!
//! | where | drop at tcx | drop at clsact |
//! |---|---|---|
//! | ingress | `TCX_DROP` | `TC_ACT_SHOT` |
//! | egress of a port of a bridge | `TCX_DROP` | `TC_ACT_SHOT` |
//! | egress of any other device: local senders may use it | `TCX_REDIRECT` to no device | `TC_ACT_STOLEN` |
//!
//! Neither of the last row is reported: the sender is told that the packet was sent. tcx runs before clsact, and a
//! program of tcx that returns `TCX_PASS` has clsact left out. So clsact is used only where the kernel has no tcx
//! (before 6.6).

use std::process::Command;

use contract::sharing::Position;
use rustix::net::{AddressFamily, SocketType, netdevice, socket};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::netlink::{self, Link};

/// A drop that the sender is told of (`linux/pkt_cls.h`; tcx has the same number).
pub const TC_ACT_SHOT: u32 = 2;
/// A drop that no sender is told of.
pub const TC_ACT_STOLEN: u32 = 4;
/// The silent drop of tcx: a redirection, to a device that does not exist.
pub const TC_ACT_REDIRECT: u32 = 7;

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

/// Runs `tc` and reads its JSON.
fn tc(arguments: &[&str]) -> Result<Value, String> {
    let output = Command::new("tc").args(arguments).output().map_err(|error| {
        format!("tc could not be run: {error}; it is part of iproute2 (on Debian: apt install iproute2)")
    })?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(said.trim().to_owned());
    }
    if output.stdout.iter().all(u8::is_ascii_whitespace) {
        return Ok(Value::Array(Vec::new()));
    }
    serde_json::from_slice(&output.stdout).map_err(|error| format!("tc {}: {error}", arguments.join(" ")))
}

/// Refuses a name that no device can have.
pub fn check_name(name: &str) -> Result<(), String> {
    if name.is_empty() || name.len() > 15 || name.contains(|c: char| c == '/' || c.is_whitespace()) {
        return Err(format!("\"{name}\" is no name of a network device"));
    }
    Ok(())
}

impl From<Link> for Device {
    fn from(link: Link) -> Device {
        // `ARPHRD_ETHER` and `ARPHRD_LOOPBACK`.
        let link_bytes = if matches!(link.header, 1 | 772) { 14 } else { 0 };
        let Link { name, index, kind, port_of, up, .. } = link;
        Device { name, index, kind, port_of, link_bytes, up }
    }
}

impl Device {
    /// Looks a device up in the namespace of this thread.
    pub fn find(name: &str) -> Result<Device, String> {
        check_name(name)?;
        let absent =
            || format!("{name}: there is no such network device here; `ip link` lists them, --netns names a namespace");
        netlink::link(name)?.map(Device::from).ok_or_else(absent)
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
        let hook = asked.unwrap_or(if has_tcx { Hook::Tcx } else { Hook::Clsact });
        if hook == Hook::Tcx && !has_tcx {
            return Err(format!("{}: this kernel has no tcx (it came with 6.6); leave --hook out", self.name));
        }
        let (drop_code, why) = match (position, told, hook) {
            (Position::Ingress, ..) => (TC_ACT_SHOT, "no sender is told of a drop at ingress"),
            (Position::Egress, false, _) => (TC_ACT_SHOT, "a bridge does not tell senders of a drop"),
            (Position::Egress, true, Hook::Tcx) => (TC_ACT_REDIRECT, "local senders may use it, so drops are silent"),
            (Position::Egress, true, Hook::Clsact) => (TC_ACT_STOLEN, "local senders may use it, so drops are silent"),
        };
        Ok(Choice { hook, drop_code, why })
    }
}

/// The present name of the device with a number, in the namespace of this thread.
pub fn name_of(index: u32) -> Option<String> {
    let any = socket(AddressFamily::INET, SocketType::DGRAM, None).ok()?;
    netdevice::index_to_name(&any, index).ok()
}

/// Whether a device of this namespace has a clsact qdisc.
pub fn has_clsact(name: &str) -> Result<bool, String> {
    let qdiscs = tc(&["-j", "qdisc", "show", "dev", name])?;
    Ok(qdiscs.as_array().is_some_and(|all| all.iter().any(|one| one["kind"] == "clsact")))
}

/// A filter of clsact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter {
    /// Filters of a lower one run first.
    pub priority: u16,
    /// Its number within the priority; 0 where it is no number.
    pub handle: u32,
    /// The number of its program, if it has one.
    pub program: Option<u32>,
    /// The name of its program.
    pub name: String,
}

impl Filter {
    /// From an entry of `tc -j filter show`; one without options only repeats the priority.
    fn read(entry: &Value) -> Option<Filter> {
        let options = entry.get("options")?;
        let handle = options["handle"].as_str().and_then(|text| u32::from_str_radix(text.strip_prefix("0x")?, 16).ok());
        Some(Filter {
            priority: entry["pref"].as_u64().and_then(|pref| u16::try_from(pref).ok()).unwrap_or(u16::MAX),
            handle: handle.unwrap_or(0),
            program: options["prog"]["id"].as_u64().and_then(|id| u32::try_from(id).ok()),
            name: options["prog"]["name"].as_str().unwrap_or_default().to_owned(),
        })
    }
}

/// The filters of a device's clsact qdisc in one direction, in the order in which they run.
pub fn filters(name: &str, position: Position) -> Result<Vec<Filter>, String> {
    let found = tc(&["-j", "filter", "show", "dev", name, position.name()])?;
    Ok(found.as_array().into_iter().flatten().filter_map(Filter::read).collect())
}

/// Removes the clsact qdisc of a device.
pub fn remove_clsact(name: &str) -> Result<(), String> {
    tc(&["qdisc", "del", "dev", name, "clsact"]).map(drop)
}

#[cfg(test)]
mod tests;
