//! Where a device's pins and its record are, and which command is working on them.
//!
//! Pins (maps, tcx links) are in a folder of the BPF file system, so they outlive the command. The record says in JSON
//! what was attached, with the text of the tenants' file. It is written before anything is attached and removed after
//! all else, and says whether a command is at work: one that was killed in between leaves nothing that the next does
//! not find.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Duration as Wait;

use contract::sharing::Position;
use rustix::fs::{FlockOperation, flock, statfs};
use rustix::mount::{MountFlags, mount};
use serde::{Deserialize, Serialize};
use units::Duration;

use super::device::Hook;
use crate::grants::Senders;
use crate::tenants::{Tenant, Tenants, read_with};

/// How often a command looks whether another has ended, and how long it waits between. A hundred containers may start
/// at once, and each waits for those before.
const PATIENCE: u32 = 1_000;
const LOOKS: Wait = Wait::from_millis(10);

/// Type of a BPF file system (`BPF_FS_MAGIC`).
const BPF_FS: u64 = 0xcafe_4a11;

/// The places of all devices.
#[derive(Clone, Debug)]
pub struct Roots {
    /// The BPF file system.
    pub pins: PathBuf,
    /// The folder of records and locks.
    pub run: PathBuf,
}

impl Default for Roots {
    fn default() -> Roots {
        Roots { pins: PathBuf::from("/sys/fs/bpf"), run: PathBuf::from("/run/clearway-aq") }
    }
}

/// The program that asked for an attachment, and so takes it off again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum By {
    /// An operator's command.
    #[default]
    Command,
    /// The daemon, since its configuration has the device.
    Daemon,
    /// A container's runtime. Without its device it is of no use.
    Container,
}

/// A tenant that joined those of the file, such as a container.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Joined {
    /// Which container it is, in its runtime's terms.
    pub owner: String,
    /// The tenant.
    pub tenant: Tenant,
}

/// The attachment of a device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The device's name.
    pub device: String,
    /// Its namespace, as the operator named it.
    pub netns: Option<String>,
    /// Its number then: another device of the same name has another.
    pub index: u32,
    /// The tenants' file, whole.
    pub tenants: String,
    /// The senders' least retransmission timeout from which limits were derived, in nanoseconds.
    pub timeout_ns: u64,
    /// The round trip from which limits and thresholds were derived where the file gives none, in nanoseconds.
    pub rtt_ns: u64,
    /// The program that asked for it.
    #[serde(default)]
    pub by: By,
    /// Of a container's own device: which container it is, in its runtime's terms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// Tenants beside those of the file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub joined: Vec<Joined>,
    /// Whether a command is changing it, or was killed on the way: what the maps hold is then unknown.
    #[serde(default)]
    pub unfinished: bool,
    /// The attachments and their places.
    pub attached: Vec<Attached>,
}

impl Record {
    /// All tenants: those of the file and those that joined.
    pub fn all(&self) -> Result<Tenants, String> {
        read_with(&self.tenants, "the attached tenants", self.joined.iter().map(|joined| joined.tenant.clone()))
    }

    /// The assumptions on senders when it was attached.
    pub fn senders(&self) -> Senders {
        Senders { rtt: Duration::from_ns(self.rtt_ns), timeout: Duration::from_ns(self.timeout_ns) }
    }
}

/// A program at one position.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Attached {
    /// Where.
    pub position: Position,
    /// When its program was loaded, by the kernel's monotonic clock: another program has another time.
    pub made_ns: u64,
    /// How.
    pub hook: Hook,
    /// The return value of a drop.
    pub drop_code: u32,
    /// The number of the program, by which a filter is found; none until it is loaded.
    pub program: Option<u32>,
    /// Of a filter: whether its qdisc was made for it.
    pub made_clsact: bool,
    /// The kinds of match that the program looks at.
    pub kinds: u32,
    /// Numbers of entities that its maps have room for.
    pub rooms: Rooms,
    /// Who has which entity, the default first.
    pub held: Vec<Held>,
}

/// Entries of a program's maps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rooms {
    /// Entities.
    pub configs: u32,
    /// AQs.
    pub states: u32,
    /// Cgroups, marks and VLANs.
    pub keys: u32,
    /// Prefixes.
    pub prefixes: u32,
    /// Ports: all or none.
    pub ports: u32,
    /// Fragmented packets that are remembered.
    pub fragments: u32,
}

/// A tenant's place in the maps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// The tenant.
    pub name: String,
    /// Its number.
    pub entity: u32,
    /// The first of its AQs.
    pub first: u32,
    /// How many it has.
    pub flows: u32,
}

/// The place of one device.
#[derive(Clone, Debug)]
pub struct DevicePlace {
    key: String,
    roots: Roots,
}

/// A lock, held until it is dropped.
#[derive(Debug)]
pub struct Lock(#[expect(dead_code, reason = "it locks as long as it is open")] File);

impl DevicePlace {
    /// The place of a device in a namespace.
    pub fn new(roots: &Roots, device: &str, netns: Option<&str>) -> DevicePlace {
        // A BPF file system takes no dot in a name.
        let plain = |text: &str| {
            text.bytes().fold(String::new(), |name, byte| match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'-' => name + &char::from(byte).to_string(),
                other => name + &format!("%{other:02x}"),
            })
        };
        let key = netns.map_or_else(|| plain(device), |netns| format!("{}@{}", plain(device), plain(netns)));
        DevicePlace { key, roots: roots.clone() }
    }

    /// All devices with a record.
    pub fn all(roots: &Roots) -> Vec<DevicePlace> {
        let Ok(entries) = fs::read_dir(&roots.run) else { return Vec::new() };
        let mut keys: Vec<String> = entries
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok()?.strip_suffix(".json").map(str::to_owned))
            .collect();
        keys.sort();
        keys.into_iter().map(|key| DevicePlace { key, roots: roots.clone() }).collect()
    }

    /// The names of the devices of a namespace that have a record.
    pub fn of(roots: &Roots, netns: Option<&str>) -> Result<Vec<String>, String> {
        let mut names = Vec::new();
        for place in DevicePlace::all(roots) {
            names.extend(place.record()?.filter(|r| r.netns.as_deref() == netns).map(|record| record.device));
        }
        Ok(names)
    }

    /// The folder of a position's pins.
    pub fn pins(&self, position: Position) -> PathBuf {
        self.folder().join(position.name())
    }

    /// The folder of a position's pins while another program takes over.
    pub fn aside(&self, position: Position) -> PathBuf {
        self.folder().join(format!("{}_was", position.name()))
    }

    /// Sets pins aside, so that what they hold stays until [`DevicePlace::drop_aside`].
    pub fn set_aside(&self, positions: impl Iterator<Item = Position>) -> Result<(), String> {
        for position in positions {
            let (from, to) = (self.pins(position), self.aside(position));
            fs::rename(&from, &to).map_err(|error| format!("{}: {error}", to.display()))?;
        }
        Ok(())
    }

    /// Removes pins that were set aside, and so what only they hold.
    pub fn drop_aside(&self) -> Result<(), String> {
        [Position::Egress, Position::Ingress].iter().try_for_each(|&position| remove_pins(&self.aside(position)))
    }

    /// The places of all devices.
    pub fn roots(&self) -> &Roots {
        &self.roots
    }

    /// The name of the device and its namespace, as files have it.
    pub fn name(&self) -> &str {
        &self.key
    }

    /// Whether anything is pinned here.
    pub fn has_pins(&self) -> bool {
        [Position::Egress, Position::Ingress].iter().any(|&position| self.pins(position).exists())
    }

    fn folder(&self) -> PathBuf {
        self.roots.pins.join("clearway-aq").join(&self.key)
    }

    fn file(&self, ending: &str) -> PathBuf {
        self.roots.run.join(format!("{}.{ending}", self.key))
    }

    /// Locks the place against other commands, or says that one is at work.
    pub fn lock(&self) -> Result<Lock, String> {
        lock(&self.file("lock"), PATIENCE)?
            .ok_or_else(|| format!("another clearway-aq is at work on {}; wait until it ends", self.key))
    }

    /// The lock of the one process that lends the device's idle shares; it does not keep commands from their work. None
    /// if another process has it.
    pub fn lock_to_divide(&self) -> Result<Option<Lock>, String> {
        lock(&self.file("divide"), 1)
    }

    /// Whether a command is at work.
    pub fn is_busy(&self) -> bool {
        is_locked(&self.file("lock"))
    }

    /// Whether the record says that a command did not finish, and no command is at work.
    pub fn is_stuck(&self) -> bool {
        let unfinished = || self.record().is_ok_and(|record| record.is_some_and(|record| record.unfinished));
        // Read again after the lock was free: a command may have finished in between.
        unfinished() && !self.is_busy() && unfinished()
    }

    /// A mark by which a new record is told from the one before: it is another file.
    pub fn stamp(&self) -> Option<(u64, i64, i64, u64)> {
        use std::os::unix::fs::MetadataExt;
        let found = fs::metadata(self.file("json")).ok()?;
        Some((found.ino(), found.mtime(), found.mtime_nsec(), found.len()))
    }

    /// The record, if there is one.
    pub fn record(&self) -> Result<Option<Record>, String> {
        let path = self.file("json");
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(format!("{}: {error}", path.display())),
        };
        let damaged = |error| format!("{}: damaged: {error}", path.display());
        serde_json::from_str(&text).map(Some).map_err(damaged)
    }

    /// Writes the record: whole or not at all.
    pub fn write(&self, record: &Record) -> Result<(), String> {
        let (path, new) = (self.file("json"), self.file("new"));
        let wrong = |error: std::io::Error| format!("{}: {error}", path.display());
        let text = serde_json::to_string_pretty(record).map_err(|error| wrong(error.into()))?;
        // Not synced to a disk: after a crash of the machine, the pins are gone, too.
        fs::write(&new, text).map_err(wrong)?;
        fs::rename(&new, &path).map_err(wrong)
    }

    /// Makes a position's folder for pins.
    pub fn make(&self, position: Position) -> Result<PathBuf, String> {
        let folder = self.pins(position);
        fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        Ok(folder)
    }

    /// Removes all pins and the record.
    pub fn clear(&self) -> Result<(), String> {
        for position in [Position::Egress, Position::Ingress] {
            remove_pins(&self.pins(position))?;
        }
        self.drop_aside()?;
        for path in [self.folder(), self.roots.pins.join("clearway-aq")] {
            // The outer folder may hold other devices.
            let _ = fs::remove_dir(path);
        }
        for path in [self.file("json"), self.file("new")] {
            gone(&path, fs::remove_file(&path))?;
        }
        Ok(())
    }

    /// Gives a lock back. With nothing attached, the files of locks go, too.
    pub fn close(&self, lock: Lock) {
        if self.file("json").exists() {
            return;
        }
        // A process that divides the link may live for a period more.
        let divide = self.file("divide");
        if !is_locked(&divide) {
            let _ = fs::remove_file(divide);
        }
        let _ = fs::remove_file(self.file("lock"));
        drop(lock);
    }
}

/// Locks a file, which is made if it is not there, within as many looks; none if another process holds it.
///
/// A file that was removed meanwhile is none that others would find, so the lock is of the file that is there after it.
pub fn lock(path: &Path, looks: u32) -> Result<Option<Lock>, String> {
    use std::os::unix::fs::MetadataExt;
    let wrong = |error: std::io::Error| format!("{}: {error}", path.display());
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(wrong)?;
    }
    // Commands are short; and one that was killed may leave a child that has yet to begin its program.
    for look in 0..looks {
        let file = File::options().create(true).append(true).open(path).map_err(wrong)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {
                let ours = file.metadata().map_err(wrong)?.ino();
                if fs::metadata(path).is_ok_and(|found| found.ino() == ours) {
                    return Ok(Some(Lock(file)));
                }
            }
            Err(rustix::io::Errno::WOULDBLOCK) if look + 1 < looks => std::thread::sleep(LOOKS),
            Err(rustix::io::Errno::WOULDBLOCK) => {}
            Err(error) => return Err(format!("{}: {error}", path.display())),
        }
    }
    Ok(None)
}

/// Whether a process holds the lock of a file.
pub fn is_locked(path: &Path) -> bool {
    File::open(path)
        .is_ok_and(|file| flock(&file, FlockOperation::NonBlockingLockShared) == Err(rustix::io::Errno::WOULDBLOCK))
}

/// Removes the pins in a folder, and the folder.
pub fn remove_pins(folder: &Path) -> Result<(), String> {
    let Ok(entries) = fs::read_dir(folder) else { return Ok(()) };
    for entry in entries.flatten() {
        gone(&entry.path(), fs::remove_file(entry.path()))?;
    }
    gone(folder, fs::remove_dir(folder))
}

fn gone(path: &Path, done: std::io::Result<()>) -> Result<(), String> {
    match done {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(format!("{}: {error}", path.display())),
        _ => Ok(()),
    }
}

impl Roots {
    /// Makes sure that there is a BPF file system; mounts one if none is there.
    pub fn check_pins(&self) -> Result<(), String> {
        let path = self.pins.display();
        let is_bpf = || statfs(&self.pins).is_ok_and(|found| found.f_type as u64 == BPF_FS);
        if is_bpf() {
            return Ok(());
        }
        // `ip netns exec` gives a command mounts of its own. Its parent has others then, and so has the first process.
        let mounts = |process: &str| fs::read_link(format!("/proc/{process}/ns/mnt")).ok();
        let parent = rustix::process::getppid().map_or(1, |parent| parent.as_raw_nonzero().get());
        let others = |process: &str| mounts(process).is_some_and(|theirs| mounts("self") != Some(theirs));
        if others("1") || others(&parent.to_string()) {
            return Err(format!(
                "{path}: there is no BPF file system among the mounts of this process, and one mounted here would end \
                 with it; run the command outside, with --netns instead of `ip netns exec`"
            ));
        }
        let made = fs::create_dir_all(&self.pins).map_err(|error| error.to_string());
        made.and_then(|()| mount("bpf", &self.pins, "bpf", MountFlags::empty(), None).map_err(|e| e.to_string()))
            .map_err(|error| format!("{path}: is no BPF file system, and none could be mounted there: {error}"))
    }
}

#[cfg(test)]
mod tests;
