//! A Maze that other programs join: each connects to a Unix socket, opens ports of hosts, and sends and receives
//! messages as the program that has the Maze does.
//!
//! A client is trusted with nothing. What it says is read with bounds ([`wire`]) and checked; a request that can't be
//! fulfilled is refused, and a client that does not keep to the format, is silent in the middle of a note, or does not
//! read what it is sent, is disconnected and counted. Its messages take memory on an account of its own, until their
//! receiver has taken them. So whatever a client does, the others and the network go on.
//!
//! Three threads serve a client: one reads what it asks for, one writes what comes for it, and one writes what becomes
//! of its messages. Whoever writes holds the stream, and a request is answered before what follows from it.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration as Span;

use ::run::{Column, Data, Progress, Table};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::Mode;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketType, bind, listen, socket};
use scenario::Scenario;
use units::{HostId, Problem, Time};

use super::exchange::Exchange;
use super::mailbox::{Coming, Mailbox, lock};
use super::ticket::{Account, Arrived, Ends, State, Ticket};
use super::wire::{self, Ask, Broken, Fate, Tell};
use super::{Address, Counterpart, MazeError, with_class};
use crate::machines::{self, Membership, News};
use crate::{RunResult, processes};

/// The most memory that the messages of one client may take.
const CLIENT_BYTES_MAX: usize = wire::MESSAGE_BYTES_MAX;

/// The most clients at a time, and the most ports of one.
const CLIENTS_MAX: usize = 64;
const PORTS_MAX: usize = 1_024;

/// The most times of the network for which one client waits.
const WAKES_MAX: usize = 4_096;

/// The most clients that have a row in the result; others are counted together.
const ROWS_MAX: usize = 4_096;

/// How long a client may take for its greeting, for the rest of a note, or to read what it is sent.
const PATIENCE: Span = Span::from_secs(5);

/// How often the server checks whether the run is over, while it waits for clients.
const LOOK: Span = Span::from_millis(50);

/// How long clients may take to read that the run is over.
const FAREWELL: Span = Span::from_millis(500);

/// The longest queue of programs that want to connect.
const BACKLOG: i32 = 64;

/// How a client's connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
enum Ended {
    /// It was there when the run was over.
    Over,
    /// It has closed the connection, or was killed.
    Gone,
    /// It speaks another version.
    Version,
    /// A note was longer than any.
    Length,
    /// It sent bytes that are no note.
    Note,
    /// It was silent in the middle of a note, or instead of its greeting.
    Silent,
    /// It did not read its messages.
    Stalled,
    /// There were too many.
    TooMany,
}

impl Ended {
    const ALL: [(Ended, &str); 8] = [
        (Ended::Over, "over"),
        (Ended::Gone, "gone"),
        (Ended::Version, "version"),
        (Ended::Length, "length"),
        (Ended::Note, "note"),
        (Ended::Silent, "silent"),
        (Ended::Stalled, "stalled"),
        (Ended::TooMany, "too many"),
    ];

    /// What the server tells the client at the end of its connection.
    fn advice(self) -> String {
        match self {
            Ended::Version => {
                format!("this Maze speaks version {}; use the same Clearway on both sides", wire::VERSION)
            }
            Ended::Length => format!("a note has at most {} bytes", wire::NOTE_BYTES_MAX),
            Ended::Note => "that is no note of a client".to_owned(),
            Ended::Silent => format!("the rest of a note did not come within {} s", PATIENCE.as_secs()),
            Ended::TooMany => format!("{CLIENTS_MAX} programs are connected already; end one"),
            Ended::Over | Ended::Gone | Ended::Stalled => "the connection is over".to_owned(),
        }
    }
}

/// What a client has done.
#[derive(Debug, Default)]
struct Row {
    pid: u32,
    ports: AtomicU64,
    sent: [AtomicU64; 2],
    came: [AtomicU64; 2],
    refused: AtomicU64,
    ended: Mutex<Option<Ended>>,
}

/// What all threads of a server share.
struct Shared {
    exchange: Arc<Exchange>,
    stops: AtomicBool,
    /// Connections, by number.
    open: Mutex<BTreeMap<u64, UnixStream>>,
    rows: Mutex<Vec<Arc<Row>>>,
    /// By [`Ended`], connections without a row.
    others: [AtomicU64; Ended::ALL.len()],
}

/// A Maze that waits for clients.
pub(crate) struct Server {
    path: PathBuf,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// Runs a scenario over which other programs send messages: they connect to a Unix socket at `path`, which is there
/// while the run lasts and which only this user may open. It lasts until `measure.end`, or until `watch` returns true,
/// which is asked about twenty times a second.
///
/// # Errors
/// Where the scenario can't be run so, or the socket can't be made.
pub fn serve(scenario: &Scenario, path: &Path, mut watch: impl FnMut(Progress) -> bool) -> Result<RunResult, Problem> {
    serve_with(scenario, path, |scenario, opened| crate::run::run_open(scenario, opened, |_, progress| watch(progress)))
}

/// The same in several processes of this machine, as [`run_processes`](crate::run_processes) runs it.
///
/// # Errors
/// Where the scenario can't be run so, the socket can't be made, or a process does not start.
pub fn serve_processes(
    scenario: &Scenario,
    path: &Path,
    processes: usize,
    command: impl FnMut() -> Command,
    watch: impl FnMut(Progress) -> bool,
) -> Result<RunResult, Problem> {
    serve_with(scenario, path, |scenario, opened| processes::run_open(scenario, processes, command, opened, watch))
}

/// The same on several machines, as [`run_machines`](crate::run_machines) runs it. Programs join at the first, which is
/// this one.
///
/// # Errors
/// Where the scenario can't be run so, the socket can't be made, or a machine goes before the run begins.
pub fn serve_machines(
    scenario: &Scenario,
    path: &Path,
    machines: usize,
    listen: &str,
    member: &Membership<'_>,
    tell: impl FnMut(News),
    watch: impl FnMut(Progress) -> bool,
) -> Result<RunResult, Problem> {
    serve_with(scenario, path, |with_class, opened| {
        machines::run_open([scenario, with_class], machines, listen, member, opened, tell, watch)
    })
}

/// Tells that programs can send messages.
type Opened<'a> = &'a mut dyn FnMut(&Arc<Exchange>) -> Result<(), Problem>;

/// The same, where `run` runs the scenario.
fn serve_with(
    scenario: &Scenario,
    path: &Path,
    run: impl FnOnce(&Scenario, Opened<'_>) -> Result<RunResult, Problem>,
) -> Result<RunResult, Problem> {
    // Nobody shall wait for a run that programs can't join.
    check(path).map_err(|error| wrong(path, &error))?;
    let scenario = with_class(scenario);
    let mut server = None;
    let mut opened = |exchange: &Arc<Exchange>| {
        server = Some(Server::start(exchange.clone(), path)?);
        Ok(())
    };
    let mut result = run(&scenario, &mut opened)?;
    let table = server.map(|server| server.finish());
    result.tables.extend(table);
    Ok(result)
}

impl Server {
    /// Waits for clients at `path` from now on.
    pub fn start(exchange: Arc<Exchange>, path: &Path) -> Result<Server, Problem> {
        let listener = listen_at(path).map_err(|error| wrong(path, &error))?;
        let shared = Arc::new(Shared {
            exchange,
            stops: AtomicBool::new(false),
            open: Mutex::default(),
            rows: Mutex::default(),
            others: Default::default(),
        });
        let (path, of_thread) = (path.to_owned(), shared.clone());
        let thread = std::thread::Builder::new().name("sockets".to_owned());
        let thread = thread.spawn(move || accept(&of_thread, &listener));
        let thread = thread.map_err(|error| {
            Problem::new("sockets", format!("the machine gives no thread: {error}; end other programs"))
        })?;
        Ok(Server { path, shared, thread: Some(thread) })
    }

    /// No more clients come, and those that are there have gone. What each did.
    pub fn finish(mut self) -> Table {
        self.stop();
        table(&self.shared)
    }

    fn stop(&mut self) {
        let Some(thread) = self.thread.take() else { return };
        self.shared.stops.store(true, Ordering::SeqCst);
        let _ = std::fs::remove_file(&self.path);
        // A thread that panicked has already said so.
        let _ = thread.join();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}

fn wrong(path: &Path, error: &io::Error) -> Problem {
    Problem::new("sockets", format!("{}: {error}", path.display()))
}

/// Whether a socket can be made at this path: its address, and whether an old one is there.
fn check(path: &Path) -> io::Result<(SocketAddrUnix, bool)> {
    let long = |_| io::Error::other(format!("{} bytes are too long for a socket's path", path.as_os_str().len()));
    let address = SocketAddrUnix::new(path.as_os_str().as_bytes()).map_err(long)?;
    let Ok(there) = std::fs::symlink_metadata(path) else {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        return match folder.is_none_or(Path::is_dir) {
            true => Ok((address, false)),
            false => Err(io::Error::other("there is no such folder: make it, or name another path")),
        };
    };
    if !there.file_type().is_socket() {
        return Err(io::Error::other("is there already, and is no socket: name another path"));
    }
    if UnixStream::connect(path).is_ok() {
        return Err(io::Error::other("another program listens there: name another path"));
    }
    Ok((address, true))
}

/// A socket that only this user may open. One that a program left behind when it was killed is replaced; anything else
/// that is there is not.
fn listen_at(path: &Path) -> io::Result<UnixListener> {
    let (address, is_old) = check(path)?;
    if is_old {
        std::fs::remove_file(path)?;
    }
    let fd = socket(AddressFamily::UNIX, SocketType::STREAM, None)?;
    rustix::io::fcntl_setfd(&fd, rustix::io::FdFlags::CLOEXEC)?;
    // Linux makes the file with the socket's own rights: it is never open to others.
    let own = Mode::RUSR | Mode::WUSR;
    let _ = rustix::fs::fchmod(&fd, own);
    bind(&fd, &address)?;
    rustix::fs::chmod(path, own)?;
    listen(&fd, BACKLOG)?;
    let listener = UnixListener::from(fd);
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Lets clients in until the run is over.
fn accept(shared: &Arc<Shared>, listener: &UnixListener) {
    let mut threads: Vec<JoinHandle<()>> = Vec::new();
    let mut number = 0;
    while !shared.stops.load(Ordering::SeqCst) {
        let span = Timespec { tv_sec: 0, tv_nsec: LOOK.subsec_nanos().into() };
        let _ = poll(&mut [PollFd::from_borrowed_fd(listener.as_fd(), PollFlags::IN)], Some(&span));
        while let Ok((stream, _)) = listener.accept() {
            threads.retain(|thread| !thread.is_finished());
            let (of_thread, client) = (shared.clone(), number);
            number += 1;
            if threads.len() >= CLIENTS_MAX {
                turn_away(shared, &stream);
                continue;
            }
            let thread = std::thread::Builder::new().name(format!("client {client}"));
            match thread.spawn(move || attend(&of_thread, client, stream)) {
                Ok(thread) => threads.push(thread),
                Err(_) => _ = shared.others[Ended::TooMany as usize].fetch_add(1, Ordering::Relaxed),
            }
        }
    }
    // Their own threads tell clients that the run is over. The server does not wait for those that don't read.
    let mut left = FAREWELL.as_millis() / LOOK.as_millis();
    while left > 0 && threads.iter().any(|thread| !thread.is_finished()) {
        std::thread::park_timeout(LOOK);
        left -= 1;
    }
    lock(&shared.open).values().for_each(|stream| _ = stream.shutdown(Shutdown::Both));
    threads.into_iter().for_each(|thread| _ = thread.join());
}

/// Tells a client that there are too many, if it reads.
fn turn_away(shared: &Shared, stream: &UnixStream) {
    shared.others[Ended::TooMany as usize].fetch_add(1, Ordering::Relaxed);
    let _ = stream.set_nonblocking(true);
    tell_over(stream, &Ended::TooMany.advice());
}

fn tell_over(mut stream: &UnixStream, why: &str) {
    let mut note = Vec::new();
    Tell::Over { why }.emit(&mut note);
    let _ = wire::write(&mut stream, &note);
}

/// A client, from its greeting to its end.
fn attend(shared: &Shared, number: u64, stream: UnixStream) {
    let Ok(copy) = stream.try_clone() else { return };
    lock(&shared.open).insert(number, copy);
    let greeted = greet(shared, &stream);
    let ended = match greeted {
        Err(ended) => {
            shared.others[ended as usize].fetch_add(1, Ordering::Relaxed);
            ended
        }
        Ok(()) => {
            let row = Arc::new(Row { pid: peer_of(&stream), ..Row::default() });
            let ended = Client::new(shared, &stream, &row).attend();
            *lock(&row.ended) = Some(ended);
            let mut rows = lock(&shared.rows);
            match rows.len() < ROWS_MAX {
                true => rows.push(row),
                false => _ = shared.others[ended as usize].fetch_add(1, Ordering::Relaxed),
            }
            ended
        }
    };
    if ended != Ended::Over && ended != Ended::Stalled {
        tell_over(&stream, &ended.advice());
    }
    let _ = stream.shutdown(Shutdown::Both);
    lock(&shared.open).remove(&number);
}

/// The first note, and the answer to it.
fn greet(shared: &Shared, mut stream: &UnixStream) -> Result<(), Ended> {
    let timeouts = stream.set_nonblocking(false).and_then(|()| stream.set_read_timeout(Some(PATIENCE)));
    timeouts.and_then(|()| stream.set_write_timeout(Some(PATIENCE))).map_err(|_| Ended::Gone)?;
    let mut note = Vec::new();
    wire::read(&mut stream, wire::GREETING_BYTES_MAX, &mut note, || {}).map_err(|broken| ended(&broken))?;
    match Ask::parse(&note) {
        Ok(Ask::Hello { version: wire::VERSION }) => {}
        Ok(Ask::Hello { .. }) => return Err(Ended::Version),
        _ => return Err(Ended::Note),
    }
    let directory = shared.exchange.directory();
    let hosts = directory.hosts.iter().map(String::as_str).collect();
    let classes = directory.classes.iter().map(|(name, over)| (name.as_str(), over.as_str())).collect();
    let mut answer = Vec::new();
    Tell::Welcome { dilation: directory.dilation, hosts, classes }.emit(&mut answer);
    wire::write(&mut stream, &answer).map_err(|error| if is_slow(&error) { Ended::Stalled } else { Ended::Gone })
}

/// Whether the other end does not read.
fn is_slow(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

fn ended(broken: &Broken) -> Ended {
    match broken {
        Broken::Length(_) => Ended::Length,
        Broken::Silent => Ended::Silent,
        Broken::Gone | Broken::Io(_) => Ended::Gone,
    }
}

/// The process at the other end, where the system says it.
fn peer_of(stream: &UnixStream) -> u32 {
    #[cfg(target_os = "linux")]
    if let Ok(peer) = rustix::net::sockopt::socket_peercred(stream) {
        return peer.pid.as_raw_nonzero().get().cast_unsigned();
    }
    #[cfg(not(target_os = "linux"))]
    let _ = stream;
    0
}

/// A client that has been let in.
struct Client<'a> {
    exchange: &'a Exchange,
    stream: &'a UnixStream,
    row: &'a Row,
    account: Arc<Account>,
    /// A thread that writes to the client holds this lock.
    writes: Mutex<Vec<u8>>,
    /// Messages for its ports.
    mailbox: Arc<Mailbox<Arrived>>,
    /// What happens to messages that it sent.
    fates: Arc<Ends>,
    /// Its open ports.
    ports: Mutex<BTreeSet<(HostId, u16)>>,
    /// Messages that were sent to the client and that its program has not taken, by flow.
    untaken: Mutex<BTreeMap<u32, Arrived>>,
    /// Times for which the client waits, with the port of each.
    wakes: Mutex<BTreeSet<(Address, Time)>>,
    stalled: AtomicBool,
    /// It was told that the run is over.
    told_over: AtomicBool,
}

impl<'a> Client<'a> {
    fn new(shared: &'a Shared, stream: &'a UnixStream, row: &'a Row) -> Client<'a> {
        Client {
            exchange: &shared.exchange,
            stream,
            row,
            account: Account::new(CLIENT_BYTES_MAX),
            writes: Mutex::default(),
            mailbox: Arc::default(),
            fates: shared.exchange.new_queue(),
            ports: Mutex::default(),
            untaken: Mutex::default(),
            wakes: Mutex::default(),
            stalled: AtomicBool::new(false),
            told_over: AtomicBool::new(false),
        }
    }

    /// Serves the client until it goes or the run is over.
    fn attend(&self) -> Ended {
        let ended = std::thread::scope(|scope| {
            scope.spawn(|| self.bring());
            scope.spawn(|| self.tell_fates());
            let ended = self.obey();
            for (host, port) in std::mem::take(&mut *lock(&self.ports)) {
                self.exchange.shut(Address { host, port });
            }
            let wakes = std::mem::take(&mut *lock(&self.wakes));
            wakes.into_iter().for_each(|(of, at)| self.exchange.forget_alarm(of, at));
            self.mailbox.end(gone());
            self.fates.end(gone());
            ended
        });
        for arrived in self.mailbox.clear() {
            self.exchange.taken(&arrived);
        }
        lock(&self.untaken).values().for_each(|arrived| self.exchange.taken(arrived));
        match ended {
            _ if self.stalled.load(Ordering::SeqCst) => Ended::Stalled,
            Ended::Gone if self.told_over.load(Ordering::SeqCst) => Ended::Over,
            ended => ended,
        }
    }

    /// Executes a request.
    fn obey(&self) -> Ended {
        let mut note = Vec::new();
        loop {
            if self.stream.set_read_timeout(None).is_err() {
                return Ended::Gone;
            }
            let hurry = || _ = self.stream.set_read_timeout(Some(PATIENCE));
            if let Err(broken) = wire::read(&mut &*self.stream, wire::NOTE_BYTES_MAX, &mut note, hurry) {
                return ended(&broken);
            }
            match Ask::parse(&note) {
                Ok(Ask::Open { ask, host, port }) => self.open(ask, host, port),
                Ok(Ask::Close { at }) => self.close(at),
                Ok(Ask::Send { ask, from, to, class, content }) => {
                    let owns = lock(&self.ports).contains(&(from.host, from.port));
                    self.send(ask, owns, [from, to], class, content);
                }
                Ok(Ask::Taken { flow }) => {
                    if let Some(arrived) = lock(&self.untaken).remove(&flow) {
                        self.exchange.taken(&arrived);
                    }
                }
                Ok(Ask::Now { ask }) => self.tell_now(ask),
                Ok(Ask::Wake { ask, of, at }) => self.wake(ask, of, Time::from_ps(at)),
                Ok(Ask::Hello { .. }) | Err(_) => return Ended::Note,
            }
            if note.capacity() > 1 << 20 {
                note = Vec::new();
            }
        }
    }

    fn open(&self, ask: u32, host: u32, port: u16) {
        let hosts = self.exchange.directory().hosts.len();
        // Locked until the port is in the set: a message may come at once.
        let mut ports = lock(&self.ports);
        let opened = if host as usize >= hosts {
            Err(MazeError::Wrong(format!("there is no host number {host}; there are {hosts}, from 0 on")))
        } else if ports.len() >= PORTS_MAX {
            Err(MazeError::Full(format!("a program has at most {PORTS_MAX} sockets; close some")))
        } else {
            self.exchange.open_port(HostId(host), (port > 0).then_some(port), Some(&self.mailbox))
        };
        if let Ok((at, _)) = &opened {
            ports.insert((at.host, at.port));
        }
        drop(ports);
        match opened {
            Ok((at, _)) => {
                self.row.ports.fetch_add(1, Ordering::Relaxed);
                self.tell(&Tell::Opened { ask, at });
            }
            Err(why) => self.refuse(ask, why),
        }
    }

    /// Closes a port. What the client waited for there is forgotten.
    fn close(&self, at: Address) {
        if lock(&self.ports).remove(&(at.host, at.port)) {
            self.exchange.shut(at);
            lock(&self.wakes).retain(|&(of, wake)| {
                let stays = of != at;
                if !stays {
                    self.exchange.forget_alarm(of, wake);
                }
                stays
            });
            let mut untaken = lock(&self.untaken);
            let flows: Vec<u32> =
                untaken.iter().filter(|(_, arrived)| arrived.message.to == at).map(|(flow, _)| *flow).collect();
            for arrived in flows.iter().filter_map(|flow| untaken.remove(flow)) {
                self.exchange.taken(&arrived);
            }
        }
    }

    fn tell_now(&self, ask: u32) {
        match self.exchange.now() {
            Ok(now) => self.tell(&Tell::Now { ask, at: now.ps() }),
            Err(over) => self.refuse(ask, over),
        }
    }

    fn wake(&self, ask: u32, of: Address, at: Time) {
        if !lock(&self.ports).contains(&(of.host, of.port)) {
            return self.refuse(ask, MazeError::Wrong("the port is not open".to_owned()));
        }
        let mut wakes = lock(&self.wakes);
        if wakes.len() >= WAKES_MAX {
            drop(wakes);
            return self.refuse(ask, MazeError::Full(format!("a program waits for at most {WAKES_MAX} times")));
        }
        wakes.insert((of, at));
        drop(wakes);
        self.exchange.set_alarm(of, at, &self.mailbox);
        self.tell_now(ask);
    }

    fn send(&self, ask: u32, owns: bool, ends: [Address; 2], class: u16, content: &[u8]) {
        let directory = self.exchange.directory();
        let (hosts, classes) = (directory.hosts.len(), directory.classes.len());
        let wrong = match ends[1] {
            _ if !owns => Some("the sender's port is not open".to_owned()),
            to if to.host.index() >= hosts => {
                Some(format!("there is no host number {}; there are {hosts}, from 0 on", to.host.0))
            }
            _ if usize::from(class) >= classes => {
                Some(format!("there is no class number {class}; there are {classes}"))
            }
            _ => None,
        };
        if let Some(wrong) = wrong {
            return self.refuse(ask, MazeError::Wrong(wrong));
        }
        // The lock keeps what happens to the message from being told before its number.
        let mut writes = lock(&self.writes);
        let sent = self.exchange.submit(ends, class.into(), content, &self.account, (Some(self.fates.clone()), true));
        match sent {
            Ok(ticket) => {
                self.row.sent[0].fetch_add(1, Ordering::Relaxed);
                self.row.sent[1].fetch_add(content.len() as u64, Ordering::Relaxed);
                self.write(&mut writes, &Tell::Accepted { ask, flow: ticket.flow.0 });
            }
            Err(why) => {
                drop(writes);
                self.refuse(ask, why);
            }
        }
    }

    fn refuse(&self, ask: u32, why: MazeError) {
        self.row.refused.fetch_add(1, Ordering::Relaxed);
        self.tell(&Tell::Refused { ask, why });
    }

    /// Writes messages and answers to the client.
    fn bring(&self) {
        while let Some(coming) = self.mailbox.take_any() {
            let arrived = match coming {
                Coming::Message(arrived) => arrived,
                Coming::Passed(to, at) => {
                    lock(&self.wakes).retain(|&(of, wake)| of != to || wake > at);
                    self.tell(&Tell::Passed { to, at: at.ps() });
                    continue;
                }
            };
            let message = &arrived.message;
            let mut writes = lock(&self.writes);
            let flow = message.flow;
            let tell = Tell::Came {
                flow,
                from: message.from,
                to: message.to,
                class: message.class as u16,
                delivered: message.delivered.ps(),
                content: &message.content,
            };
            let mut note = Vec::new();
            tell.emit(&mut note);
            let bytes = message.content.len() as u64;
            let ports = lock(&self.ports);
            if !ports.contains(&(message.to.host, message.to.port)) {
                self.exchange.taken(&arrived);
                continue;
            }
            lock(&self.untaken).insert(flow, arrived);
            drop(ports);
            self.row.came[0].fetch_add(1, Ordering::Relaxed);
            self.row.came[1].fetch_add(bytes, Ordering::Relaxed);
            std::mem::swap(&mut *writes, &mut note);
            self.flush(&mut writes);
        }
    }

    /// Writes what happens to the client's messages, and finally that the run is over.
    fn tell_fates(&self) {
        let over = loop {
            match self.fates.take(None) {
                Some(Ok(ticket)) => self.tell(&Tell::Fate(fate_of(&ticket))),
                Some(Err(over)) => break over,
                None => {}
            }
        };
        if over != gone() {
            self.told_over.store(true, Ordering::SeqCst);
            self.tell(&Tell::Over { why: &over.to_string() });
            // The client can't ask for anything any more.
            let _ = self.stream.shutdown(Shutdown::Both);
        }
    }

    fn tell(&self, tell: &Tell<'_>) {
        self.write(&mut lock(&self.writes), tell);
    }

    fn write(&self, writes: &mut Vec<u8>, tell: &Tell<'_>) {
        writes.clear();
        tell.emit(writes);
        self.flush(writes);
    }

    /// Sends what was written. Disconnects a client that does not read.
    fn flush(&self, writes: &mut Vec<u8>) {
        if self.stalled.load(Ordering::SeqCst) {
            return;
        }
        if let Err(error) = wire::write(&mut &*self.stream, writes) {
            self.stalled.fetch_or(is_slow(&error), Ordering::SeqCst);
            let _ = self.stream.shutdown(Shutdown::Both);
        }
        if writes.capacity() > 1 << 20 {
            *writes = Vec::new();
        }
    }
}

/// Why nothing more is told to a client that nobody is there to hear.
fn gone() -> MazeError {
    MazeError::Over("the client has gone".to_owned())
}

fn fate_of(ticket: &Ticket) -> Fate {
    let State { started, delivered, completed, failure, given_up, ended, .. } = ticket.state();
    let [started, delivered, completed] = [started, delivered, completed].map(|at| at.map(|at| at.ps()));
    Fate { flow: ticket.flow.0, started, delivered, completed, failure, given_up, ended }
}

/// A row a client, and one for each reason for which others were turned away or have no row.
fn table(shared: &Shared) -> Table {
    let rows = lock(&shared.rows);
    let count = |of: &AtomicU64| of.load(Ordering::Relaxed);
    let others = Ended::ALL.iter().map(|&(ended, _)| (ended, count(&shared.others[ended as usize])));
    let others: Vec<(Ended, u64)> = others.filter(|of| of.1 > 0).collect();
    let numbers = |of: &dyn Fn(&Row) -> u64, other: &dyn Fn(u64) -> u64| {
        Data::U64(rows.iter().map(|row| of(row)).chain(others.iter().map(|&(_, many)| other(many))).collect())
    };
    let ends = rows.iter().map(|row| lock(&row.ended).unwrap_or(Ended::Over));
    let ends = ends.chain(others.iter().map(|&(ended, _)| ended)).map(|ended| ended as u32);
    let names = Ended::ALL.iter().map(|&(_, name)| name.to_owned()).collect();
    let none = |_| 0;
    Table {
        name: "clients",
        columns: vec![
            Column::new("pid", "", "its process; 0 if that is not known", numbers(&|row| row.pid.into(), &none)),
            Column::new(
                "connections",
                "",
                "1; more in a row for connections that have none of their own, as they were turned away",
                numbers(&|_| 1, &|many| many),
            ),
            Column::new("sockets", "", "sockets that it opened", numbers(&|row| count(&row.ports), &none)),
            Column::new("sent_messages", "", "messages that it sent", numbers(&|row| count(&row.sent[0]), &none)),
            Column::new("sent_bytes", "B", "bytes of these", numbers(&|row| count(&row.sent[1]), &none)),
            Column::new(
                "received_messages",
                "",
                "messages that came for it and were handed to it",
                numbers(&|row| count(&row.came[0]), &none),
            ),
            Column::new("received_bytes", "B", "bytes of these", numbers(&|row| count(&row.came[1]), &none)),
            Column::new(
                "refused",
                "",
                "requests that could not be fulfilled",
                numbers(&|row| count(&row.refused), &none),
            ),
            Column::new(
                "ended",
                "",
                "over: with the run; gone: it closed the connection, or was killed; or why it was disconnected: \
                 version, length, note (what it said is none), silent (in the middle of a note), stalled (it did not \
                 read), too many",
                Data::Names { index: ends.collect(), names },
            ),
        ],
    }
}
