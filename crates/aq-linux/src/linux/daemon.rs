//! The daemon: one process that keeps what is attached attached.
//!
//! Attachments need no process: programs, maps and links are pinned. The daemon is for who wants them healed. It
//! compares three things, again and again: its configuration (`config`), the records of what was attached, by it or by
//! any command, and what the kernel says is there. `decide` says what is to be done about a device; the same functions
//! that the commands use do it, under the same locks. So it keeps no state that matters: killed at any moment, it goes
//! on from the records and pins.
//!
//! One thread waits in one `poll` for news of devices (netlink), of cgroups, namespaces and its own files (inotify),
//! for scrapers (`serve`) and for the next look. The kernel gives no news of a hook's chain, so it looks once a second,
//! or as often as is set: who stands before our programs, whether they stand at all, whether they see the device's
//! packets (`probe`). It divides idle shares where tenants ask for it.
//!
//! When it has begun it keeps two capabilities, CAP_BPF and CAP_NET_ADMIN, and CAP_SYS_ADMIN if a device of the
//! configuration or of a record is in another namespace: only with that may a thread enter one (`setns`(2)).

#![allow(clippy::disallowed_methods, reason = "a process beside the kernel works in real time")]

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::thread::{CapabilitySet, capabilities};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use self::config::{Config, Wanted};
use self::decide::decide;
use self::device::Keeping;
use self::notify::{Level, log, tell};
use self::status::Status;
use self::watch::{Namespace, Watch};
use super::hook::Standing;
use super::kernel;
use super::place::{DevicePlace, Lock, Roots, lock};
use super::serve::Server;
use super::show::{Line, prometheus};

pub mod config;
mod decide;
mod device;
pub mod notify;
mod probe;
mod rights;
pub mod status;
mod watch;

/// Least time between two looks that news cause: a change of many devices is one.
const PAUSE: Duration = Duration::from_millis(20);
/// When it looks again into a namespace that could not be entered.
const AGAIN: Duration = Duration::from_millis(200);
/// How often the lock of another daemon is tried: one that was killed may leave a child that has yet to end.
const LOOKS: u32 = 20;

/// Why the daemon could not begin or go on, and its exit status (`sysexits.h`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The exit status.
    pub status: u8,
    /// Why.
    pub why: String,
}

/// Another daemon runs.
pub const BUSY: u8 = 75;
/// This process lacks a right.
pub const RIGHTS: u8 = 77;
/// The configuration is wrong.
pub const CONFIG: u8 = 78;

impl From<String> for Failure {
    fn from(why: String) -> Failure {
        Failure { status: 1, why }
    }
}

struct Daemon {
    roots: Roots,
    path: Option<PathBuf>,
    config: Config,
    server: Option<Server>,
    watch: Watch,
    namespaces: BTreeMap<String, Namespace>,
    own: Namespace,
    devices: BTreeMap<String, Keeping>,
    status: Status,
    written: Status,
    /// Prometheus text, made once for each look, when it is first asked for.
    text: Option<String>,
    next_look: Instant,
    last_look: Option<Instant>,
    _lock: Lock,
}

/// Keeps devices by a configuration, or, without one, what others attach, until the process is told to end.
pub fn run(roots: &Roots, path: Option<&Path>) -> Result<(), Failure> {
    let wrong = |error: std::io::Error| Failure::from(error.to_string());
    let (ends, told_to_end) = UnixStream::pair().map_err(wrong)?;
    let (reads, told_to_read) = UnixStream::pair().map_err(wrong)?;
    for signal in [SIGTERM, SIGINT] {
        signal_hook::low_level::pipe::register(signal, told_to_end.try_clone().map_err(wrong)?).map_err(wrong)?;
    }
    signal_hook::low_level::pipe::register(SIGHUP, told_to_read).map_err(wrong)?;
    kernel::check_rights().map_err(|why| Failure { status: RIGHTS, why })?;
    let config = path.map_or_else(|| Ok(Config::default()), Config::read);
    let config = config.map_err(|why| Failure { status: CONFIG, why })?;
    let held = lock(&status::lock_of(roots), LOOKS)?.ok_or_else(|| Failure {
        status: BUSY,
        why: format!("another daemon keeps the devices of {}", roots.run.display()),
    })?;
    roots.check_pins()?;
    let server = config.metrics.as_ref().map(Server::new).transpose()?;
    let (watch, own) = (Watch::new()?, Namespace::own()?);
    rights::drop_all_but(config.namespaces || elsewhere(roots))?;
    let status = Status {
        process: std::process::id(),
        since: status::now(),
        config: path.map(Path::to_owned),
        ..Status::default()
    };
    let mut daemon = Daemon {
        roots: roots.clone(),
        path: path.map(Path::to_owned),
        config,
        server,
        watch,
        namespaces: BTreeMap::new(),
        own,
        devices: BTreeMap::new(),
        status,
        written: Status::default(),
        text: None,
        next_look: Instant::now(),
        last_look: None,
        _lock: held,
    };
    log(
        Level::Info,
        &format!("keeps {} devices of its configuration, and what others attach", daemon.config.devices.len()),
    );
    daemon.look();
    tell("READY=1");
    daemon.work(&ends, &reads)?;
    tell("STOPPING=1");
    daemon.end();
    Ok(())
}

/// Whether anything is attached in another namespace.
fn elsewhere(roots: &Roots) -> bool {
    let record = |place: &DevicePlace| place.record().ok().flatten();
    DevicePlace::all(roots).iter().filter_map(record).any(|record| record.netns.is_some())
}

impl Daemon {
    /// Works until it is told to end.
    fn work(&mut self, ends: &UnixStream, reads: &UnixStream) -> Result<(), Failure> {
        let watchdog = notify::watchdog();
        let mut next_beat = Instant::now();
        loop {
            if let Some(period) = watchdog.filter(|_| Instant::now() >= next_beat) {
                tell("WATCHDOG=1");
                next_beat = Instant::now() + period;
            }
            if Instant::now() >= self.next_look {
                self.look();
            }
            self.divide();
            let mut until = self.next_look;
            until = watchdog.map_or(until, |_| until.min(next_beat));
            until = self.devices.values().filter_map(Keeping::divides_at).fold(until, Instant::min);
            until = self.server.as_ref().and_then(Server::deadline).map_or(until, |deadline| until.min(deadline));
            let news = self.wait(until, ends, reads)?;
            if news.ends {
                return Ok(());
            }
            if news.reads || (news.watched && self.watch.take(&self.config.files)) {
                drain(reads);
                self.read();
            }
            if news.linked || news.watched {
                self.soon();
            }
            self.serve();
        }
    }

    /// Waits for news, or until a time.
    fn wait(&mut self, until: Instant, ends: &UnixStream, reads: &UnixStream) -> Result<News, Failure> {
        let left = until.saturating_duration_since(Instant::now()).as_nanos();
        let (second, nano) = (left / 1_000_000_000, left % 1_000_000_000);
        let span = Timespec { tv_sec: second.try_into().unwrap_or(1), tv_nsec: nano.try_into().unwrap_or(0) };
        let names: Vec<&String> = self.namespaces.keys().collect();
        let mut all = vec![
            PollFd::new(ends, PollFlags::IN),
            PollFd::new(reads, PollFlags::IN),
            PollFd::from_borrowed_fd(self.watch.fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(self.own.fd(), PollFlags::IN),
        ];
        all.extend(names.iter().map(|name| PollFd::from_borrowed_fd(self.namespaces[*name].fd(), PollFlags::IN)));
        all.extend(self.server.iter().flat_map(Server::waits));
        match poll(&mut all, Some(&span)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(format!("poll: {error}").into()),
        }
        let ready: Vec<bool> = all.iter().map(|one| !one.revents().is_empty()).collect();
        drop(all);
        let mut linked = false;
        if ready[3] {
            linked |= self.own.drain();
        }
        for (place, namespace) in self.namespaces.values().enumerate() {
            if ready[4 + place] {
                linked |= namespace.drain();
            }
        }
        Ok(News { ends: ready[0], reads: ready[1], watched: ready[2], linked })
    }

    /// Looks as soon as it may.
    fn soon(&mut self) {
        let earliest = self.last_look.map_or_else(Instant::now, |last| last + PAUSE);
        self.next_look = self.next_look.min(earliest);
    }

    /// Reads the configuration again. One that is wrong is refused whole.
    fn read(&mut self) {
        let Some(path) = self.path.clone() else { return };
        match self.take(&path) {
            Ok(false) => {}
            Ok(true) => {
                log(Level::Notice, &format!("a new configuration: {} devices", self.config.devices.len()));
                self.status.refused = None;
                self.soon();
            }
            Err(why) => {
                log(Level::Error, &format!("the new configuration is refused, the one before stays: {why}"));
                self.status.refused = Some(why);
            }
        }
        self.text = None;
        self.tell_status();
    }

    /// Takes a configuration; false if it is the same.
    fn take(&mut self, path: &Path) -> Result<bool, String> {
        let config = Config::read(path)?;
        if config == self.config {
            return Ok(std::mem::take(&mut self.status.refused).is_some());
        }
        let may_enter = capabilities(None).is_ok_and(|has| has.effective.contains(CapabilitySet::SYS_ADMIN));
        if config.namespaces && !may_enter {
            return Err(format!(
                "{}: a device is in another namespace, and the daemon gave up the right to enter one when it began \
                 without any; start it again",
                path.display()
            ));
        }
        if config.metrics.as_ref() != self.server.as_ref().map(Server::address) {
            // The socket of before may be at the same place.
            let before = self.server.take();
            match config.metrics.as_ref().map(Server::new).transpose() {
                Ok(server) => self.server = server,
                Err(why) => {
                    self.server = before;
                    return Err(format!("{}: daemon.metrics: {why}", path.display()));
                }
            }
        }
        self.config = config;
        Ok(true)
    }

    /// Looks at every device, and does what is to be done.
    fn look(&mut self) {
        self.last_look = Some(Instant::now());
        self.next_look = Instant::now() + self.config.every;
        self.text = None;
        let mut places: BTreeMap<String, DevicePlace> = BTreeMap::new();
        for wanted in &self.config.devices {
            let place = DevicePlace::new(&self.roots, &wanted.name, wanted.netns.as_deref());
            places.insert(place.name().to_owned(), place);
        }
        places.extend(DevicePlace::all(&self.roots).into_iter().map(|place| (place.name().to_owned(), place)));
        self.devices.retain(|name, keeping| places.contains_key(name) || keeping.has_lost());
        for (name, place) in places {
            self.devices.entry(name).or_insert_with(|| Keeping::new(place)).read();
        }
        let mut by_namespace: BTreeMap<Option<String>, Vec<String>> = BTreeMap::new();
        for (name, keeping) in &self.devices {
            let wanted = wanted(&self.config, keeping);
            let netns = wanted.map_or_else(|| keeping.netns(), |wanted| wanted.netns.clone());
            by_namespace.entry(netns).or_default().push(name.clone());
        }
        self.namespaces.retain(|name, _| by_namespace.contains_key(&Some(name.clone())));
        self.watch_paths(by_namespace.keys().flatten());
        for (netns, names) in by_namespace {
            self.look_into(netns.as_deref(), &names);
        }
        if self.devices.values().any(Keeping::is_to_be_seen_again) {
            self.soon();
        }
        self.status.devices = self
            .devices
            .iter()
            .filter(|(_, keeping)| !keeping.kept().is_empty())
            .map(|(name, keeping)| (name.clone(), keeping.kept().clone()))
            .collect();
        self.tell_status();
    }

    /// Looks at the devices of one namespace.
    fn look_into(&mut self, netns: Option<&str>, names: &[String]) {
        let mut unknown = None;
        if let Some(netns) = netns {
            let before = self.namespaces.remove(netns);
            match Namespace::named(netns, before) {
                Ok(Some(namespace)) => drop(self.namespaces.insert(netns.to_owned(), namespace)),
                Ok(None) => {}
                Err(why) => unknown = Some(why),
            }
        }
        let keepings: Vec<&Keeping> = names.iter().map(|name| &self.devices[name]).collect();
        let there = netns.is_none_or(|netns| self.namespaces.contains_key(netns));
        let seen = there.then(|| device::see(netns, &keepings)).transpose().unwrap_or_else(|why| {
            unknown = Some(why);
            None
        });
        if unknown.is_some() {
            // `ip netns add` makes a file, and the namespace there an instant later, of which there is no news.
            self.next_look = self.next_look.min(Instant::now() + AGAIN);
        }
        for (place, name) in names.iter().enumerate() {
            let Some(keeping) = self.devices.get_mut(name) else { continue };
            if let Some(why) = &unknown {
                keeping.cannot_look(why);
                continue;
            }
            let wanted = wanted(&self.config, keeping);
            let links = seen.as_ref().map(|(links, _)| &links[..]);
            let standings = seen.as_ref().map_or(&[][..], |(_, standings)| &standings[place]);
            let trouble = standings.iter().find_map(|standing| match standing {
                Standing::Not(why) => Some(why.as_str()),
                _ => None,
            });
            let again = keeping.has_new_cgroups().then_some("a cgroup was made again");
            let act = decide(wanted, keeping.record(), links, trouble.or(again));
            keeping.act(&self.roots, act, wanted, links.unwrap_or_default());
            keeping.measure(standings, links);
        }
    }

    /// Watches what may change without the kernel's news of devices: files, names of namespaces, cgroups.
    fn watch_paths<'a>(&mut self, namespaces: impl Iterator<Item = &'a String>) {
        let folder = |path: &Path| path.parent().map(Path::to_owned);
        let mut paths: BTreeSet<PathBuf> = self.config.files.iter().filter_map(|path| folder(path)).collect();
        paths.extend(namespaces.filter_map(|name| folder(&super::netns::file(name))));
        paths.extend(self.devices.values().flat_map(Keeping::cgroups).filter_map(|path| folder(&path)));
        self.watch.set(paths);
    }

    /// Lends idle shares where it is time to.
    fn divide(&mut self) {
        for keeping in self.devices.values_mut() {
            keeping.divide();
        }
    }

    /// Answers scrapers.
    fn serve(&mut self) {
        let Some(server) = &mut self.server else { return };
        let (text, devices, status) = (&mut self.text, &self.devices, &self.status);
        server.turn(|| Ok(text.get_or_insert_with(|| metrics(devices, status)).clone()));
    }

    fn tell_status(&mut self) {
        if self.status != self.written {
            match self.status.write(&self.roots) {
                Ok(()) => self.written = self.status.clone(),
                Err(why) => log(Level::Error, &why),
            }
        }
    }

    /// Ends: idle shares are given back, and all that is attached stays.
    fn end(self) {
        for keeping in self.devices.into_values() {
            keeping.end();
        }
        status::forget(&self.roots);
        log(Level::Info, "ended; what is attached stays");
    }
}

/// The news that a wait brought.
struct News {
    ends: bool,
    reads: bool,
    watched: bool,
    linked: bool,
}

/// The configuration's wish for a place.
fn wanted<'a>(config: &'a Config, keeping: &Keeping) -> Option<&'a Wanted> {
    config.devices.iter().find(|wanted| wanted.is_at(keeping.place()))
}

fn metrics(devices: &BTreeMap<String, Keeping>, status: &Status) -> String {
    let lines: Vec<Line> = devices.values().flat_map(Keeping::lines).cloned().collect();
    let mut text = prometheus(&lines);
    for (name, help, value) in [
        ("config_refused", "Whether the last configuration was refused.", u64::from(status.refused.is_some())),
        ("start_time_seconds", "When the daemon began, since 1970.", status.since),
        ("waiting", "Devices for which it can't do what it should.", waiting(status)),
    ] {
        text +=
            &format!("# HELP clearway_aq_{name} {help}\n# TYPE clearway_aq_{name} gauge\nclearway_aq_{name} {value}\n");
    }
    text
}

fn waiting(status: &Status) -> u64 {
    status.devices.values().filter(|kept| kept.trouble.is_some()).count() as u64
}

/// Takes the bytes of signals that came.
fn drain(stream: &UnixStream) {
    let _ = rustix::net::recv(stream, &mut [0; 64][..], rustix::net::RecvFlags::DONTWAIT);
}
