//! The daemon's acts, for `show`: a file beside the records. A lock says whether the daemon runs, so the file of
//! one that was killed misleads no reader.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::super::place::{Roots, is_locked};

/// No device's files have names that begin with a dot.
const FILE: &str = ".daemon";
const LOCK: &str = ".daemon.lock";
/// How long after bytes escaped a device's shares count as not enforced: scrapers look once a minute.
const MINUTE: u64 = 60;

/// All that the daemon says of itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// Its process.
    pub process: u32,
    /// When it began, in seconds since 1970.
    pub since: u64,
    /// Its configuration.
    pub config: Option<PathBuf>,
    /// Why the last configuration was refused; the one before it is in force then.
    pub refused: Option<String>,
    /// Its knowledge of each device, by the name of its record.
    pub devices: BTreeMap<String, Kept>,
}

/// The daemon's knowledge of one device.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Kept {
    /// How often it has healed it.
    pub heals: u64,
    /// The last time.
    pub healed: Option<Healed>,
    /// Why it can't do what it should.
    pub trouble: Option<String>,
    /// By position, what came by the device unseen.
    pub escaped: BTreeMap<String, Escaped>,
}

/// An act of healing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Healed {
    /// When, in seconds since 1970.
    pub at: u64,
    /// The trouble, and the act.
    pub what: String,
}

/// Bytes of a device that its program did not see.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Escaped {
    /// How many since the daemon began.
    pub bytes: u64,
    /// When the last did, in seconds since 1970.
    pub at: u64,
}

impl Healed {
    /// How long ago it was, for people.
    pub fn ago(&self) -> String {
        match now().saturating_sub(self.at) {
            seconds @ 0..120 => format!("{seconds} s ago"),
            seconds @ 120..7_200 => format!("{} min ago", seconds / 60),
            seconds => format!("{} h ago", seconds / 3_600),
        }
    }
}

impl Escaped {
    /// A sentence about it while it is recent.
    pub fn said(&self) -> Option<String> {
        let recent = self.bytes > 0 && now().saturating_sub(self.at) < MINUTE;
        recent.then(|| {
            format!(
                "{} bytes came by the device that its program did not see (a packet socket that leaves tc out, XDP, or \
                 an offload)",
                self.bytes
            )
        })
    }
}

impl Kept {
    /// Whether there is nothing to say.
    pub fn is_empty(&self) -> bool {
        *self == Kept::default()
    }
}

impl Status {
    /// The knowledge of a device; a running daemon keeps every device.
    pub fn of(mut self, place: &str) -> Option<Kept> {
        Some(self.devices.remove(place).unwrap_or_default())
    }

    /// Writes it: whole or not at all.
    pub fn write(&self, roots: &Roots) -> Result<(), String> {
        let (path, new) = (roots.run.join(FILE), roots.run.join(format!("{FILE}.new")));
        let wrong = |error: std::io::Error| format!("{}: {error}", path.display());
        let text = serde_json::to_string_pretty(self).map_err(|error| wrong(error.into()))?;
        fs::write(&new, text).map_err(wrong)?;
        fs::rename(&new, &path).map_err(wrong)
    }

    /// For people.
    pub fn said(&self) -> String {
        let config = self.config.as_ref().map_or("no configuration".to_owned(), |path| path.display().to_string());
        let mut text = format!("daemon: process {} keeps these by {config}\n", self.process);
        if let Some(why) = &self.refused {
            text += &format!("daemon: the new configuration is refused, the one before is in force: {why}\n");
        }
        for (place, kept) in &self.devices {
            if let Some(why) = &kept.trouble {
                text += &format!("daemon: {place}: {why}\n");
            }
        }
        text
    }
}

/// The status of the running daemon; none if none runs.
pub fn read(roots: &Roots) -> Option<Status> {
    if !is_locked(&lock_of(roots)) {
        return None;
    }
    serde_json::from_str(&fs::read_to_string(roots.run.join(FILE)).ok()?).ok()
}

/// The lock that a running daemon holds.
pub fn lock_of(roots: &Roots) -> PathBuf {
    roots.run.join(LOCK)
}

/// Removes the file of a daemon that ends.
pub fn forget(roots: &Roots) {
    let _ = fs::remove_file(roots.run.join(FILE));
}

/// Seconds since 1970.
pub fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
