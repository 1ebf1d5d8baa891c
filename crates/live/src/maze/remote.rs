//! A Maze that runs in another program, which waits at a Unix socket.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, Weak};
use std::thread::JoinHandle;
use std::time::Duration as Span;

use units::{FlowId, HostId, Time};

use super::mailbox::{Mailbox, lock, wait_for};
use super::ticket::{Arrived, Ends, Ticket};
use super::wire::{self, Ask, Broken, Fate, Tell};
use super::{Address, Completions, Counterpart, Directory, MazeError, Message, Socket};

/// So long the Maze may take to answer.
const PATIENCE: Span = Span::from_secs(30);

/// A running Maze in another program, joined by its socket: `clearway live SCENARIO.toml --sockets PATH` has one.
///
/// It gives the same sockets as a [`Maze`](super::Maze) of this program. When it is dropped, its sockets are closed;
/// the Maze goes on.
#[derive(Debug)]
pub struct Remote {
    line: Arc<Line>,
    thread: Option<JoinHandle<()>>,
}

/// What sockets and the thread that listens share.
struct Line {
    directory: Directory,
    stream: UnixStream,
    /// Whoever writes holds it.
    writes: Mutex<Vec<u8>>,
    asks: AtomicU32,
    state: Mutex<State>,
    settled: Condvar,
}

#[derive(Default)]
struct State {
    /// Requests without an answer, by number.
    pending: BTreeMap<u32, Pending>,
    /// Messages of this program that have not ended, by flow.
    tickets: BTreeMap<u32, Arc<Ticket>>,
    ports: BTreeMap<(HostId, u16), Arc<Mailbox<Arrived>>>,
    queues: Vec<Weak<Ends>>,
    over: Option<MazeError>,
}

/// A message that is asked to be sent: its ends, class, bytes, and the queue in which its end is told.
type Posted = ([Address; 2], usize, usize, Option<Arc<Ends>>);

/// A request, and what its answer needs.
struct Pending {
    answer: Arc<Mailbox<Answer>>,
    message: Option<Posted>,
}

/// The Maze's answer to a request.
enum Answer {
    Opened(Address, Arc<Mailbox<Arrived>>),
    Accepted(Arc<Ticket>),
    Now(Time),
    Refused(MazeError),
}

impl fmt::Debug for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Line").finish_non_exhaustive()
    }
}

impl Remote {
    /// Joins the Maze that waits there.
    ///
    /// # Errors
    /// Where none does, or one of another version.
    pub fn connect(path: &Path) -> Result<Remote, MazeError> {
        let wrong = |why: &dyn fmt::Display| {
            MazeError::Wrong(format!(
                "{}: {why}; start a Maze there with `clearway live SCENARIO.toml --sockets {}`",
                path.display(),
                path.display()
            ))
        };
        let stream = UnixStream::connect(path).map_err(|error| wrong(&error))?;
        let directory = greet(&stream).map_err(|why| wrong(&why))?;
        let line = Arc::new(Line {
            directory,
            stream,
            writes: Mutex::default(),
            asks: AtomicU32::new(0),
            state: Mutex::default(),
            settled: Condvar::new(),
        });
        let of_thread = line.clone();
        let thread = std::thread::Builder::new().name("maze".to_owned()).spawn(move || of_thread.listen());
        let thread = thread.map_err(|error| wrong(&error))?;
        Ok(Remote { line, thread: Some(thread) })
    }

    /// Opens a socket at a host: at this port, or at any that is free.
    pub fn socket(&self, host: &str, port: Option<u16>) -> Result<Socket, MazeError> {
        Socket::open(self.line.clone(), host, port)
    }

    /// Makes a completion queue.
    pub fn completions(&self) -> Completions {
        Completions { queue: self.line.queue(), exchange: self.line.clone() }
    }

    /// All hosts by their names, in order.
    pub fn hosts(&self) -> impl Iterator<Item = &str> {
        self.line.directory.hosts.iter().map(String::as_str)
    }

    /// The classes in which messages can be sent, and the transport of each.
    pub fn classes(&self) -> impl Iterator<Item = (&str, &str)> {
        self.line.directory.classes.iter().map(|(name, transport)| (name.as_str(), transport.as_str()))
    }

    /// The network's time, when the program that runs the Maze was asked for it.
    ///
    /// # Errors
    /// Where the run is over, or the connection is.
    pub fn now(&self) -> Result<Time, MazeError> {
        self.line.now()
    }

    /// Why nothing can be sent any more, if that is so.
    pub fn over(&self) -> Option<MazeError> {
        self.line.over()
    }

    /// Waits until all messages that this program sent have ended, for `limit` of the machine's time at most. How many
    /// have not.
    pub fn settle(&self, limit: Span) -> usize {
        self.line.settle(limit)
    }

    /// Leaves the Maze, which goes on.
    pub fn close(&self) {
        self.line.end("the connection to the Maze is closed");
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        self.close();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Sends its protocol version, and receives the hosts and classes of the Maze.
fn greet(mut stream: &UnixStream) -> Result<Directory, String> {
    let said = |error: io::Error| error.to_string();
    stream.set_read_timeout(Some(PATIENCE)).map_err(said)?;
    stream.set_write_timeout(Some(PATIENCE)).map_err(said)?;
    let mut note = Vec::new();
    Ask::Hello { version: wire::VERSION }.emit(&mut note);
    // Whoever has been turned away is told why, even if its greeting was not read.
    let written = wire::write(&mut stream, &note);
    let read = wire::read(&mut stream, wire::NOTE_BYTES_MAX, &mut note, || {});
    match (read, Tell::parse(&note)) {
        (Ok(()), Ok(Tell::Welcome { dilation, hosts, classes })) => {
            stream.set_read_timeout(None).map_err(said)?;
            let hosts = hosts.into_iter().map(str::to_owned).collect();
            let classes = classes.into_iter().map(|(name, over)| (name.to_owned(), over.to_owned())).collect();
            Ok(Directory { hosts, classes, dilation })
        }
        (Ok(()), Ok(Tell::Over { why })) => Err(why.to_owned()),
        (Err(broken), _) if written.is_ok() => Err(broken.to_string()),
        _ => Err("what waits there is no Maze".to_owned()),
    }
}

impl Line {
    /// What the Maze says, until it says no more.
    fn listen(&self) {
        let mut note = Vec::new();
        loop {
            let why = match wire::read(&mut &self.stream, wire::NOTE_BYTES_MAX, &mut note, || {}) {
                Err(Broken::Gone | Broken::Silent) => "the program that ran the Maze has gone".to_owned(),
                Err(broken) => broken.to_string(),
                Ok(()) => match Tell::parse(&note) {
                    Ok(Tell::Over { why }) => why.to_owned(),
                    Ok(Tell::Welcome { .. }) | Err(_) => "the Maze says what makes no sense".to_owned(),
                    Ok(tell) => {
                        self.hear(tell);
                        continue;
                    }
                },
            };
            return self.end(&why);
        }
    }

    fn hear(&self, tell: Tell<'_>) {
        match tell {
            Tell::Opened { ask, at } if at.host.index() < self.directory.hosts.len() => {
                let mut state = lock(&self.state);
                let Some(pending) = state.pending.remove(&ask) else { return };
                let mailbox: Arc<Mailbox<Arrived>> = Arc::default();
                state.ports.insert((at.host, at.port), mailbox.clone());
                pending.answer.put(Answer::Opened(at, mailbox));
            }
            Tell::Accepted { ask, flow } => {
                let mut state = lock(&self.state);
                let Some(Pending { answer, message: Some((ends, class, bytes, queue)) }) = state.pending.remove(&ask)
                else {
                    return;
                };
                let ticket = Arc::new(Ticket::new(FlowId(flow), ends, class, bytes, queue));
                state.tickets.insert(flow, ticket.clone());
                answer.put(Answer::Accepted(ticket));
            }
            Tell::Now { ask, at } => {
                let pending = lock(&self.state).pending.remove(&ask);
                pending.into_iter().for_each(|pending| _ = pending.answer.put(Answer::Now(Time::from_ps(at))));
            }
            Tell::Passed { to, at } => {
                let mailbox = lock(&self.state).ports.get(&(to.host, to.port)).cloned();
                mailbox.iter().for_each(|mailbox| mailbox.pass(to, Time::from_ps(at)));
            }
            Tell::Refused { ask, why } => {
                let pending = lock(&self.state).pending.remove(&ask);
                pending.into_iter().for_each(|pending| _ = pending.answer.put(Answer::Refused(why.clone())));
            }
            Tell::Fate(fate) => self.hear_fate(fate),
            Tell::Came { flow, from, to, class, delivered, content } => {
                let message = Message {
                    flow,
                    from,
                    to,
                    class: class.into(),
                    content: content.to_vec(),
                    delivered: Time::from_ps(delivered),
                };
                let sound =
                    from.host.index() < self.directory.hosts.len() && usize::from(class) < self.directory.classes.len();
                let mailbox = lock(&self.state).ports.get(&(to.host, to.port)).cloned().filter(|_| sound);
                // If its port has just been closed, the Maze knows, or will.
                if let Some(mailbox) = mailbox {
                    mailbox.put(Arrived { message, account: None });
                }
            }
            Tell::Opened { .. } | Tell::Welcome { .. } | Tell::Over { .. } => {}
        }
    }

    fn hear_fate(&self, fate: Fate) {
        let mut state = lock(&self.state);
        let ticket = if fate.ended { state.tickets.remove(&fate.flow) } else { state.tickets.get(&fate.flow).cloned() };
        drop(state);
        let Some(ticket) = ticket else { return };
        let time = |ps: Option<u64>| ps.map(Time::from_ps);
        ticket.change(|state| {
            (state.started, state.delivered) = (time(fate.started), time(fate.delivered));
            (state.completed, state.given_up) = (time(fate.completed), fate.given_up);
            (state.failure, state.ended) = (fate.failure, fate.ended);
        });
        if fate.ended {
            self.settled.notify_all();
        }
    }

    /// Asks for something, and waits for the answer.
    fn ask(&self, message: Option<Posted>, note: impl FnOnce(u32) -> Vec<u8>) -> Result<Answer, MazeError> {
        let ask = self.asks.fetch_add(1, Ordering::Relaxed);
        let answer: Arc<Mailbox<Answer>> = Arc::default();
        let mut state = lock(&self.state);
        if let Some(over) = &state.over {
            return Err(over.clone());
        }
        state.pending.insert(ask, Pending { answer: answer.clone(), message });
        drop(state);
        self.write(&note(ask));
        match answer.take(Some(PATIENCE)) {
            Some(Ok(Answer::Refused(why))) => Err(why),
            Some(answer) => answer,
            None => {
                lock(&self.state).pending.remove(&ask);
                Err(MazeError::Late("the program that runs the Maze does not answer".to_owned()))
            }
        }
    }

    /// The same, where the answer is the network's time.
    fn ask_time(&self, ask: impl FnOnce(u32) -> Ask<'static>) -> Result<Time, MazeError> {
        let answer = self.ask(None, |number| {
            let mut note = Vec::new();
            ask(number).emit(&mut note);
            note
        });
        match answer? {
            Answer::Now(at) => Ok(at),
            _ => Err(MazeError::Over("the Maze says what makes no sense".to_owned())),
        }
    }

    fn tell(&self, ask: &Ask<'_>) {
        let mut note = Vec::new();
        ask.emit(&mut note);
        self.write(&note);
    }

    /// What can't be written is noticed by the thread that listens.
    fn write(&self, note: &[u8]) {
        let _held = lock(&self.writes);
        if wire::write(&mut &self.stream, note).is_err() {
            let _ = self.stream.shutdown(Shutdown::Both);
        }
    }

    /// Nothing comes any more, and whoever waits for something is told.
    fn end(&self, why: &str) {
        let mut state = lock(&self.state);
        let over = state.over.get_or_insert_with(|| MazeError::Over(why.to_owned())).clone();
        let State { pending, tickets, ports, queues, .. } = &mut *state;
        let (pending, tickets) = (std::mem::take(pending), std::mem::take(tickets));
        let (ports, queues) = (std::mem::take(ports), std::mem::take(queues));
        drop(state);
        self.settled.notify_all();
        pending.into_values().for_each(|pending| _ = pending.answer.put(Answer::Refused(over.clone())));
        tickets.values().for_each(|ticket| ticket.abandon(&over));
        ports.into_values().for_each(|mailbox| mailbox.end(over.clone()));
        queues.iter().filter_map(Weak::upgrade).for_each(|queue| queue.end(over.clone()));
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

impl Counterpart for Line {
    fn directory(&self) -> &Directory {
        &self.directory
    }

    fn host(&self, name: &str) -> Result<HostId, MazeError> {
        let hosts = &self.directory.hosts;
        let place = hosts.iter().position(|known| known == name);
        place.map(HostId::from).ok_or_else(|| {
            let first = hosts.first().map_or("none", String::as_str);
            MazeError::Wrong(format!("there is no host \"{name}\"; there are {}, such as \"{first}\"", hosts.len()))
        })
    }

    fn open(&self, host: HostId, port: Option<u16>) -> Result<(Address, Arc<Mailbox<Arrived>>), MazeError> {
        if port == Some(0) {
            return Err(MazeError::Wrong("port 0 is none; ports are 1 to 65535".to_owned()));
        }
        let opened = self.ask(None, |ask| {
            let mut note = Vec::new();
            Ask::Open { ask, host: host.0, port: port.unwrap_or(0) }.emit(&mut note);
            note
        });
        match opened? {
            Answer::Opened(at, mailbox) => Ok((at, mailbox)),
            _ => Err(MazeError::Over("the Maze says what makes no sense".to_owned())),
        }
    }

    fn shut(&self, address: Address) {
        let mailbox = lock(&self.state).ports.remove(&(address.host, address.port));
        let Some(mailbox) = mailbox else { return };
        self.tell(&Ask::Close { at: address });
        mailbox.end(MazeError::Over(format!("the socket {} is closed", self.directory.words(address))));
        mailbox.clear().iter().for_each(|arrived| self.taken(arrived));
    }

    fn queue(&self) -> Arc<Ends> {
        let queue: Arc<Ends> = Arc::default();
        let mut state = lock(&self.state);
        state.over.iter().for_each(|over| queue.end(over.clone()));
        state.queues.retain(|queue| queue.strong_count() > 0);
        state.queues.push(Arc::downgrade(&queue));
        queue
    }

    fn send(
        &self,
        [from, to]: [Address; 2],
        class: usize,
        content: &[u8],
        queue: Option<Arc<Ends>>,
    ) -> Result<Arc<Ticket>, MazeError> {
        if content.len() > wire::MESSAGE_BYTES_MAX {
            let most = wire::MESSAGE_BYTES_MAX;
            let message = format!("{} bytes are too long for a message; cut it into {most} at most", content.len());
            return Err(MazeError::Wrong(message));
        }
        let message = Some(([from, to], class, content.len(), queue));
        let sent = self.ask(message, |ask| {
            let mut note = Vec::with_capacity(content.len() + wire::GREETING_BYTES_MAX);
            Ask::Send { ask, from, to, class: class as u16, content }.emit(&mut note);
            note
        });
        match sent? {
            Answer::Accepted(ticket) => Ok(ticket),
            _ => Err(MazeError::Over("the Maze says what makes no sense".to_owned())),
        }
    }

    fn now(&self) -> Result<Time, MazeError> {
        self.ask_time(|ask| Ask::Now { ask })
    }

    fn wake(&self, port: Address, at: Time, _: &Arc<Mailbox<Arrived>>) -> Result<(), MazeError> {
        self.ask_time(|ask| Ask::Wake { ask, of: port, at: at.ps() }).map(|_| ())
    }

    fn taken(&self, arrived: &Arrived) {
        self.tell(&Ask::Taken { flow: arrived.message.flow });
    }

    fn over(&self) -> Option<MazeError> {
        lock(&self.state).over.clone()
    }

    fn settle(&self, limit: Span) -> usize {
        let done = |of: &mut State| (of.tickets.is_empty() || of.over.is_some()).then_some(());
        wait_for(lock(&self.state), &self.settled, Some(limit), done);
        lock(&self.state).tickets.len()
    }
}
