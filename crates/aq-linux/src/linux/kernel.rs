//! The program and its maps in the kernel.

use std::ffi::CString;
use std::fs;
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use aya::maps::lpm_trie::{Key, LpmTrie};
use aya::maps::{Array, HashMap, Map, MapData, MapError};
use aya::programs::{ProgramError, SchedClassifier};
use aya::util::KernelVersion;
use aya::{Ebpf, EbpfError, EbpfLoader};
use contract::sharing::Position;
use rustix::thread::{CapabilitySet, capabilities};

use super::place::{Held, Rooms};
use crate::matching::{Kind, Matches};
use crate::word::Word;

/// The names of the maps, which are also the names of their pins.
pub const MAPS: [&str; 6] = ["configs", "states", "keys", "prefixes", "ports", "fragments"];
/// The program's name.
pub const PROGRAM: &str = "clearway_aq";
/// Deepest level of a cgroup that the program looks at.
const LEVELS: usize = 8;
/// Entries of the map of ports, if it is used.
pub const PORTS: u32 = 2 << 16;
/// Fragmented packets that the program remembers at a time, if it looks at ports.
pub const FRAGMENTS: u32 = 8_192;

/// The program, as it was compiled when the crate was built.
#[cfg(aq_program)]
pub fn object() -> Result<&'static [u8], String> {
    // The file's alignment is what a reader of ELF needs.
    static OBJECT: &[u8] = aya::include_bytes_aligned!(env!("CLEARWAY_AQ_PROGRAM"));
    Ok(OBJECT)
}

/// Why there is no program.
#[cfg(not(aq_program))]
pub fn object() -> Result<&'static [u8], String> {
    Err(format!(
        "this clearway-aq has no eBPF program: {}; install clang and build it again",
        env!("CLEARWAY_AQ_ABSENT")
    ))
}

/// Values that are fixed when a program is loaded.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// The return value of a drop.
    pub drop_code: u32,
    /// Whether it stands at ingress.
    pub at_ingress: bool,
    /// Bytes of a link header.
    pub link_bytes: u32,
    /// The kinds of match that it looks at.
    pub kinds: u32,
    /// For tests: whether a packet's time stamp is the time.
    pub test_clock: bool,
    /// For tests: above 0, packets belong to one of this many entities at random.
    pub test_entities: u32,
}

/// Says what this process lacks to load and attach programs, before anything is tried.
pub fn check_rights() -> Result<(), String> {
    object()?;
    let has = capabilities(None).map_err(|error| format!("capabilities: {error}"))?.effective;
    let root = has.contains(CapabilitySet::SYS_ADMIN);
    let mut lacks = Vec::new();
    for (set, name) in [(CapabilitySet::BPF, "CAP_BPF"), (CapabilitySet::NET_ADMIN, "CAP_NET_ADMIN")] {
        let enough = has.contains(set) || (root && set == CapabilitySet::BPF);
        if !enough {
            lacks.push(name);
        }
    }
    if lacks.is_empty() {
        return Ok(());
    }
    Err(format!("this needs {}: run it as root, or with these capabilities", lacks.join(" and ")))
}

/// Whether the kernel has tcx.
pub fn has_tcx() -> bool {
    KernelVersion::current().is_ok_and(|version| version >= KernelVersion::new(6, 6, 0))
}

/// Loads the program with maps of these sizes.
pub fn load(settings: Settings, rooms: Rooms) -> Result<Ebpf, String> {
    load_with(settings, rooms, None)
}

/// Loads the program with the pinned maps of a folder, or with new ones of these sizes.
pub fn load_with(settings: Settings, rooms: Rooms, maps: Option<&Path>) -> Result<Ebpf, String> {
    let at_ingress = u32::from(settings.at_ingress);
    let test_clock = u32::from(settings.test_clock);
    let mut loader = EbpfLoader::new();
    if let Some(folder) = maps {
        for name in MAPS {
            loader.map_pin_path(name, folder.join(name));
        }
    }
    loader
        .override_global("drop_code", &settings.drop_code, true)
        .override_global("at_ingress", &at_ingress, true)
        .override_global("link_bytes", &settings.link_bytes, true)
        .override_global("kinds", &settings.kinds, true)
        .override_global("test_clock", &test_clock, true)
        .override_global("test_entities", &settings.test_entities, true)
        .map_max_entries("configs", rooms.configs)
        .map_max_entries("states", rooms.states)
        .map_max_entries("keys", rooms.keys)
        .map_max_entries("prefixes", rooms.prefixes)
        .map_max_entries("ports", rooms.ports)
        .map_max_entries("fragments", rooms.fragments);
    let mut ebpf = loader.load(object()?).map_err(|error| said(&error))?;
    program(&mut ebpf)?.load().map_err(|error| match &error {
        ProgramError::LoadError { verifier_log, io_error, .. } => {
            format!("the kernel refused the program: {io_error}\n{verifier_log}")
        }
        other => format!("the kernel refused the program: {}", chain(other)),
    })?;
    Ok(ebpf)
}

/// The program of what was loaded.
pub fn program(ebpf: &mut Ebpf) -> Result<&mut SchedClassifier, String> {
    let program = ebpf.program_mut(PROGRAM).ok_or("the object has no program")?;
    program.try_into().map_err(|error: ProgramError| error.to_string())
}

fn said(error: &EbpfError) -> String {
    let text = chain(error);
    if text.contains("os error 38") {
        return format!("this kernel has no BPF (CONFIG_BPF_SYSCALL): {text}");
    }
    if text.contains("os error 1)") {
        return format!("the kernel does not allow BPF to this process: {text}");
    }
    format!("the kernel did not take the maps: {text}")
}

/// An error with its causes.
pub fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text += &format!(": {cause_text}");
        }
        source = cause.source();
    }
    text
}

/// The maps of a program.
pub struct Maps {
    configs: Array<MapData, [u64; 4]>,
    states: Array<MapData, [u64; 8]>,
    keys: HashMap<MapData, [u32; 4], u32>,
    prefixes: LpmTrie<MapData, [u32; 5], u32>,
    ports: Array<MapData, u32>,
}

impl std::fmt::Debug for Maps {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Maps")
    }
}

/// The program's counters for one AQ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// When its queue would be empty, in ticks.
    pub when_empty: u64,
    /// Packets that passed.
    pub packets: u64,
    /// Bytes that passed.
    pub bytes: u64,
    /// Packets that were dropped.
    pub drops: u64,
    /// Bytes that were dropped.
    pub dropped_bytes: u64,
    /// Packets that were marked.
    pub marks: u64,
    /// Packets that have ports, but out of sight.
    pub hidden: u64,
}

fn wrong(error: &MapError) -> String {
    match chain(error) {
        text if text.contains("os error 7") => format!("a map is full: {text}"),
        text => text,
    }
}

impl Maps {
    /// The maps of what was just loaded.
    pub fn of(ebpf: &mut Ebpf) -> Result<Maps, String> {
        let mut take = |name: &str| ebpf.take_map(name).ok_or_else(|| format!("the object has no map {name}"));
        Maps::from([take("configs")?, take("states")?, take("keys")?, take("prefixes")?, take("ports")?])
    }

    /// The pinned maps in a folder, to be written.
    pub fn open(folder: &Path) -> Result<Maps, String> {
        Maps::pinned(folder, |path| MapData::from_pin(path).map_err(|error| wrong(&error)))
    }

    /// The pinned maps in a folder, to be read only, which any user may (Linux 5.19 and later).
    pub fn open_to_read(folder: &Path) -> Result<Maps, String> {
        Maps::pinned(folder, |path| {
            let opened = get_to_read(path).map_err(|error| match error.kind() {
                std::io::ErrorKind::PermissionDenied => {
                    format!("{error}; users who are not root need `chmod o+x` on the BPF file system and Linux 5.19")
                }
                _ => error.to_string(),
            })?;
            MapData::from_fd(opened).map_err(|error| wrong(&error))
        })
    }

    fn pinned(folder: &Path, open: impl Fn(&Path) -> Result<MapData, String>) -> Result<Maps, String> {
        let open = |name: &str| {
            let path = folder.join(name);
            let data = open(&path).map_err(|why| format!("{}: {why}", path.display()))?;
            Map::from_map_data(data).map_err(|error| wrong(&error))
        };
        Maps::from([open("configs")?, open("states")?, open("keys")?, open("prefixes")?, open("ports")?])
    }

    fn from([configs, states, keys, prefixes, ports]: [Map; 5]) -> Result<Maps, String> {
        Ok(Maps {
            configs: Array::try_from(configs).map_err(|error| wrong(&error))?,
            states: Array::try_from(states).map_err(|error| wrong(&error))?,
            keys: HashMap::try_from(keys).map_err(|error| wrong(&error))?,
            prefixes: LpmTrie::try_from(prefixes).map_err(|error| wrong(&error))?,
            ports: Array::try_from(ports).map_err(|error| wrong(&error))?,
        })
    }

    /// Writes an entity's rate, limit and threshold. Gaps and counters stay.
    pub fn configure(&mut self, held: &Held, word: Word) -> Result<(), String> {
        let (first, flows) = (held.first.to_ne_bytes(), held.flows.to_ne_bytes());
        let mut pair = [0; 8];
        pair[..4].copy_from_slice(&first);
        pair[4..].copy_from_slice(&flows);
        let value = [word.per_byte, word.limit, word.mark, u64::from_ne_bytes(pair)];
        self.configs.set(held.entity, value, 0).map_err(|error| wrong(&error))
    }

    /// Sets an AQ's gap and counters to zero. The time is that of the program's clock.
    pub fn reset(&mut self, state: u32, now_ns: u64) -> Result<(), String> {
        let value = [Word::empty(now_ns), 0, 0, 0, 0, 0, 0, 0];
        self.states.set(state, value, 0).map_err(|error| wrong(&error))
    }

    /// Takes an AQ's gap and counters over from another program's maps.
    pub fn take_over(&mut self, from: &Maps, was: u32, now: u32) -> Result<(), String> {
        let value = from.states.get(&was, 0).map_err(|error| wrong(&error))?;
        self.states.set(now, value, 0).map_err(|error| wrong(&error))
    }

    /// The counters of an AQ.
    pub fn state(&self, state: u32) -> Result<State, String> {
        let [when_empty, packets, bytes, drops, dropped_bytes, marks, hidden, _] =
            self.states.get(&state, 0).map_err(|error| wrong(&error))?;
        Ok(State { when_empty, packets, bytes, drops, dropped_bytes, marks, hidden })
    }

    /// Time of a byte at an entity's rate, in the program's units.
    pub fn per_byte(&self, entity: u32) -> Result<u64, String> {
        self.configs.get(&entity, 0).map(|[per_byte, ..]| per_byte).map_err(|error| wrong(&error))
    }

    /// The sum of what an entity's AQs have counted; of their gaps, the longest.
    pub fn sum(&self, held: &Held, now_ns: u64) -> Result<(State, units::Duration), String> {
        let mut sum = State::default();
        let mut delay = units::Duration::ZERO;
        for state in held.first..held.first + held.flows {
            let one = self.state(state)?;
            sum.packets += one.packets;
            sum.bytes += one.bytes;
            sum.drops += one.drops;
            sum.dropped_bytes += one.dropped_bytes;
            sum.marks += one.marks;
            sum.hidden += one.hidden;
            delay = delay.max(Word::delay(one.when_empty, now_ns));
        }
        Ok((sum, delay))
    }

    /// Says whose packets are an entity's.
    pub fn tell(&mut self, matches: &Found, entity: u32) -> Result<(), String> {
        for &(kind, value) in &matches.keys {
            self.keys.insert(key(kind, value), entity, 0).map_err(|error| wrong(&error))?;
        }
        for &(length, prefix) in &matches.prefixes {
            self.prefixes.insert(&Key::new(length, prefix), entity, 0).map_err(|error| wrong(&error))?;
        }
        for &port in &matches.ports {
            self.ports.set(port, entity + 1, 0).map_err(|error| wrong(&error))?;
        }
        Ok(())
    }

    /// Whether a cgroup's packets are an entity's.
    pub fn knows(&self, cgroup: u64, entity: u32) -> bool {
        self.keys.get(&key(Kind::Cgroup, cgroup), 0).is_ok_and(|found| found == entity)
    }

    /// Makes these the only cgroups. Returns how many were not there before.
    pub fn follow(&mut self, cgroups: &std::collections::BTreeMap<u64, u32>) -> Result<usize, String> {
        let mut stale = Vec::new();
        for found in self.keys.keys() {
            let [low, high, kind, _] = found.map_err(|error| wrong(&error))?;
            let mut bytes = [0; 8];
            bytes[..4].copy_from_slice(&low.to_ne_bytes());
            bytes[4..].copy_from_slice(&high.to_ne_bytes());
            let id = u64::from_ne_bytes(bytes);
            if kind == Kind::Cgroup as u32 && !cgroups.contains_key(&id) {
                stale.push((Kind::Cgroup, id));
            }
        }
        let mut new = 0;
        for (&id, &entity) in cgroups {
            if !self.knows(id, entity) {
                self.keys.insert(key(Kind::Cgroup, id), entity, 0).map_err(|error| wrong(&error))?;
                new += 1;
            }
        }
        self.forget(&Found { keys: stale, ..Found::default() })?;
        Ok(new)
    }

    /// Takes back what [`Maps::tell`] said.
    pub fn forget(&mut self, matches: &Found) -> Result<(), String> {
        // An entry that is gone need not be removed.
        let removed = |done: Result<(), MapError>| match done {
            Err(MapError::KeyNotFound) | Ok(()) => Ok(()),
            Err(error) if chain(&error).contains("os error 2)") => Ok(()),
            Err(error) => Err(wrong(&error)),
        };
        for &(kind, value) in &matches.keys {
            removed(self.keys.remove(&key(kind, value)))?;
        }
        for &(length, prefix) in &matches.prefixes {
            removed(self.prefixes.remove(&Key::new(length, prefix)))?;
        }
        for &port in &matches.ports {
            self.ports.set(port, 0, 0).map_err(|error| wrong(&error))?;
        }
        Ok(())
    }
}

/// Gives the kernel a command of `bpf(2)`. `T` is the beginning of `union bpf_attr` as the command has it.
#[allow(unsafe_code, reason = "neither aya nor rustix opens a pin to read only, or asks for programs by number only")]
fn bpf<T>(command: libc::c_int, arguments: &mut T) -> std::io::Result<libc::c_long> {
    // SAFETY: the kernel reads and writes as many bytes of `arguments` as it is told. Those that `arguments` points at
    // belong to the caller, who holds them until this returns.
    let done = unsafe { libc::syscall(libc::SYS_bpf, command, &raw mut *arguments, size_of::<T>()) };
    if done < 0 { Err(std::io::Error::last_os_error()) } else { Ok(done) }
}

/// Opens a pinned object to read it. `MapData::from_pin` opens it to be written too, and so not for other users.
fn get_to_read(path: &Path) -> std::io::Result<OwnedFd> {
    const READ_ONLY: u32 = 1 << 3;
    get(path, READ_ONLY)
}

/// Opens a pinned object.
#[allow(unsafe_code, reason = "a number of a descriptor becomes its owner")]
pub fn get(path: &Path, flags: u32) -> std::io::Result<OwnedFd> {
    /// The arguments of `BPF_OBJ_GET`.
    #[repr(C)]
    struct Arguments {
        path: u64,
        fd: u32,
        flags: u32,
    }
    const OBJ_GET: libc::c_int = 7;
    let path = CString::new(path.as_os_str().as_bytes())?;
    let fd = bpf(OBJ_GET, &mut Arguments { path: path.as_ptr() as u64, fd: 0, flags })?;
    let fd = i32::try_from(fd).map_err(std::io::Error::other)?;
    // SAFETY: the kernel has just made this descriptor for us, and it has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// The numbers of a device's tcx programs, in the order in which they run. aya asks for their descriptors too, which
/// needs CAP_SYS_ADMIN.
pub fn tcx_programs(index: u32, position: Position) -> std::io::Result<Vec<u32>> {
    /// The arguments of `BPF_PROG_QUERY`.
    #[repr(C)]
    #[derive(Default)]
    struct Arguments {
        index: u32,
        attach_type: u32,
        query_flags: u32,
        attach_flags: u32,
        programs: u64,
        count: u32,
        pad: u32,
        program_flags: u64,
        links: u64,
        link_flags: u64,
        revision: u64,
    }
    const QUERY: libc::c_int = 16;
    /// The most programs of a hook (`BPF_MPROG_MAX`).
    const MOST: usize = 64;
    let attach_type = match position {
        Position::Ingress => 46,
        Position::Egress => 47,
    };
    let mut found = [0_u32; MOST];
    let (programs, count) = (found.as_mut_ptr() as u64, MOST as u32);
    let mut arguments = Arguments { index, attach_type, programs, count, ..Arguments::default() };
    match bpf(QUERY, &mut arguments) {
        Ok(_) => Ok(found[..(arguments.count as usize).min(MOST)].to_vec()),
        // No program was ever there.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// Pins the maps of what was loaded, readable for all.
pub fn pin(ebpf: &Ebpf, folder: &Path) -> Result<(), String> {
    use std::os::unix::fs::PermissionsExt;
    for name in MAPS {
        let map = ebpf.map(name).ok_or_else(|| format!("the object has no map {name}"))?;
        let path = folder.join(name);
        map.pin(&path).map_err(|error| format!("{}: {}", path.display(), chain(&error)))?;
        let _ = fs::set_permissions(&path, fs::Permissions::from_mode(0o644));
    }
    let mut outer = Some(folder);
    for _ in 0..3 {
        if let Some(path) = outer {
            let _ = fs::set_permissions(path, fs::Permissions::from_mode(0o755));
            outer = path.parent();
        }
    }
    Ok(())
}

fn key(kind: Kind, value: u64) -> [u32; 4] {
    let bytes = value.to_ne_bytes();
    let word = |at: usize| u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    [word(0), word(4), kind as u32, 0]
}

/// The match of a tenant's packets, in the program's terms.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Kinds and values of hash keys.
    pub keys: Vec<(Kind, u64)>,
    /// Lengths and bytes of prefixes.
    pub prefixes: Vec<(u32, [u32; 5])>,
    /// Indices of ports.
    pub ports: Vec<u32>,
}

impl Found {
    /// Looks up what only the machine knows: the ids of cgroups. `strict`: a cgroup that is not there is an error.
    pub fn new(matches: &Matches, strict: bool) -> Result<Found, String> {
        let mut found = Found::default();
        for path in &matches.cgroup {
            match cgroup(path) {
                Ok(id) => found.keys.push((Kind::Cgroup, id)),
                Err(why) if strict => return Err(why),
                Err(_) => {}
            }
        }
        found.keys.extend(matches.mark.iter().map(|&mark| (Kind::Mark, u64::from(mark))));
        found.keys.extend(matches.vlan.iter().map(|&id| (Kind::Vlan, u64::from(id))));
        found.prefixes.extend(matches.destination.iter().map(|prefix| prefix.key(Kind::Destination)));
        found.prefixes.extend(matches.source.iter().map(|prefix| prefix.key(Kind::Source)));
        found.prefixes.extend(matches.portless.iter().map(|prefix| prefix.key(Kind::Portless)));
        found.ports.extend(matches.ports.iter().flat_map(|ports| ports.each()).map(u32::from));
        found
            .ports
            .extend(matches.source_ports.iter().flat_map(|ports| ports.each()).map(|port| 65_536 + u32::from(port)));
        Ok(found)
    }

    /// The number of the cgroup that is there now.
    pub fn cgroup(path: &str) -> Result<u64, String> {
        cgroup(path)
    }

    /// The numbers of its cgroups.
    pub fn cgroups(&self) -> impl Iterator<Item = u64> + '_ {
        self.keys.iter().filter(|(kind, _)| *kind == Kind::Cgroup).map(|&(_, id)| id)
    }

    /// The kinds of match in it.
    pub fn kinds(matches: &Matches) -> u32 {
        let bit = |kind: Kind, used: bool| if used { kind.bit() } else { 0 };
        bit(Kind::Cgroup, !matches.cgroup.is_empty())
            | bit(Kind::Mark, !matches.mark.is_empty())
            | bit(Kind::Vlan, !matches.vlan.is_empty())
            | bit(Kind::Destination, !matches.destination.is_empty())
            | bit(Kind::Source, !matches.source.is_empty())
            | bit(Kind::Port, !matches.ports.is_empty())
            | bit(Kind::SourcePort, !matches.source_ports.is_empty())
            | bit(Kind::Portless, !matches.portless.is_empty())
    }
}

/// Where cgroups of version 2 are mounted.
fn cgroups() -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
    mounts.lines().find_map(|line| {
        let mut words = line.split(' ');
        let (_, place, kind) = (words.next()?, words.next()?, words.next()?);
        (kind == "cgroup2").then(|| PathBuf::from(place))
    })
}

/// The folder of a cgroup, whether it is there or not.
pub fn cgroup_folder(path: &str) -> Option<PathBuf> {
    Some(cgroups()?.join(path.trim_start_matches('/')))
}

/// The id of a cgroup.
fn cgroup(path: &str) -> Result<u64, String> {
    let Some(mount) = cgroups() else {
        return Err(format!("cgroup {path}: no cgroups of version 2 are mounted here"));
    };
    let below: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    if below.is_empty() || below.len() > LEVELS || below.contains(&"..") {
        return Err(format!("cgroup {path}: write 1 to {LEVELS} names below {}", mount.display()));
    }
    let folder = mount.join(below.join("/"));
    let found = fs::metadata(&folder).map_err(|error| format!("cgroup {path}: {}: {error}", folder.display()))?;
    // A cgroup's id is its folder's inode.
    Ok(found.ino())
}
