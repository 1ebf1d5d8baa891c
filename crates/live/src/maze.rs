//! A Maze in your own program: messages with content between hosts of a scenario, over any of its transports.
//!
//! [`Maze::start`] runs a scenario on threads of its own. A [`Socket`] is a port of one of its hosts; it sends messages
//! to ports of other hosts and receives what comes to its own. A message is a flow of the run: it goes through the
//! endpoint of its transport, the host's NIC, links and switches as all others do, beside the scenario's own traffic;
//! it is a row of table `flows`, and the audit counts it. Its class is one of `live.sockets`, which says the transport;
//! without that table there is one class, "socket", over the scenario's `transport`.
//!
//! The bytes of a message are in its packets. Before the content are eight more: the ports of both ends and a CRC-32 of
//! all. The receiving host puts packets together whatever their order, drops what comes twice, and a message that is
//! not whole and unchanged is handed to nobody (finding "content right").
//!
//! A message starts when its host's worker has done all that was due before. So the history of a run depends on when
//! programs send, and such a run has no digest.

mod alarms;
mod branch;
mod branches;
mod counter;
mod desk;
mod exchange;
mod mailbox;
pub(crate) mod notes;
mod remote;
mod serve;
mod ticket;
pub mod wire;

use std::fmt;
use std::sync::Arc;
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration as Span;

use scenario::{Scenario, SocketSpec};
use units::{HostId, Problem, Time};

use crate::RunResult;
use mailbox::Mailbox;
use ticket::{Arrived, Ends, Ticket};

pub(crate) use branch::Branch;
pub(crate) use branches::Outbox;
pub(crate) use counter::Counter;
pub(crate) use desk::Desk;
pub(crate) use exchange::Exchange;
pub(crate) use mailbox::lock;
pub use notes::is_note;
pub use remote::Remote;
pub use serve::{serve, serve_machines, serve_processes};

/// The class of messages in a scenario without `live.sockets`.
const CLASS: &str = "socket";

/// A port of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address {
    /// The host.
    pub host: HostId,
    /// Which of its sockets.
    pub port: u16,
}

/// Why something can't be had of a Maze.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MazeError {
    /// What was asked for can't be.
    #[error("{0}")]
    Wrong(String),
    /// The network has no room for the message, says a transport with admission control.
    #[error("{0}")]
    Rejected(String),
    /// The message has not come, and will not.
    #[error("{0}")]
    Undelivered(String),
    /// More is under way than there is room for.
    #[error("{0}")]
    Full(String),
    /// It takes longer than the caller waits.
    #[error("{0}")]
    Late(String),
    /// The socket is closed, or the run is over.
    #[error("{0}")]
    Over(String),
}

/// A message that has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The number of its flow, in table `flows`.
    pub flow: u32,
    /// Who has sent it: where an answer goes.
    pub from: Address,
    /// Where it has come.
    pub to: Address,
    /// Its class, by place in [`Maze::classes`].
    pub class: usize,
    /// What it says.
    pub content: Vec<u8>,
    /// When all of it was there, by the network's time.
    pub delivered: Time,
}

/// When what happened to a message, by the network's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// Its transport got it.
    pub started: Time,
    /// All of it was there.
    pub delivered: Time,
    /// Its sender knew that, if it knows by now.
    pub completed: Option<Time>,
}

/// A scenario that lives, until it is closed or comes to `measure.end`.
///
/// ```
/// use std::time::Duration as Span;
///
/// use clearway_live::maze::Maze;
///
/// let text = "transport = 'dctcp'\nfabric.star = { hosts = 4, rate = '1Gbps' }\nlive.wait = 'sleep'";
/// let scenario = scenario::read(&format!("{text}\nlive.sockets.rpc = {{}}"), "mine", &[])?;
/// let maze = Maze::start(&scenario)?;
/// let (client, server) = (maze.socket("host0", None)?, maze.socket("host3", Some(7))?);
/// let sent = client.send(server.address(), None, b"how are you?")?;
/// let question = server.receive(Some(Span::from_secs(10)))?;
/// server.send(question.from, None, b"fine")?;
/// assert_eq!(client.receive(Some(Span::from_secs(10)))?.content, b"fine");
/// assert!(sent.wait(None)?.delivered >= question.delivered);
/// let result = maze.close(Span::from_secs(10))?;
/// assert_eq!(result.info.flows_completed, 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Maze {
    exchange: Arc<Exchange>,
    thread: Option<JoinHandle<Result<RunResult, Problem>>>,
}

/// What a Maze has, for a program that sends over it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Directory {
    /// By number.
    pub hosts: Vec<String>,
    /// By place, with the transport of each.
    pub classes: Vec<(String, String)>,
    pub dilation: u32,
}

impl Directory {
    /// What a host is called.
    pub fn name(&self, host: HostId) -> &str {
        &self.hosts[host.index()]
    }

    /// How fast the network lives, in words.
    pub fn pace(&self) -> String {
        format!("with live.dilation = {} it needs so many times as long as its network", self.dilation)
    }

    /// An address in words.
    pub fn words(&self, Address { host, port }: Address) -> String {
        format!("{}:{port}", self.name(host))
    }
}

/// A running Maze, as sockets see it: in this process, or in another one.
pub(crate) trait Counterpart: Send + Sync + fmt::Debug {
    fn directory(&self) -> &Directory;

    /// A host, by its name.
    fn host(&self, name: &str) -> Result<HostId, MazeError>;

    /// Opens a port of a host: this one, or any that is free.
    fn open(&self, host: HostId, port: Option<u16>) -> Result<(Address, Arc<Mailbox<Arrived>>), MazeError>;

    /// Nothing more comes to this port.
    fn shut(&self, address: Address);

    /// Makes a queue in which the ends of messages are told.
    fn queue(&self) -> Arc<Ends>;

    /// Sends a message from one port to another.
    fn send(
        &self,
        ends: [Address; 2],
        class: usize,
        content: &[u8],
        queue: Option<Arc<Ends>>,
    ) -> Result<Arc<Ticket>, MazeError>;

    /// The network's time.
    fn now(&self) -> Result<Time, MazeError>;

    /// Lets the mailbox of a port know when all has come that was delivered before `at`.
    fn wake(&self, port: Address, at: Time, mailbox: &Arc<Mailbox<Arrived>>) -> Result<(), MazeError>;

    /// A message that has come was taken.
    fn taken(&self, arrived: &Arrived);

    /// Why nothing can be sent any more, if that is so.
    fn over(&self) -> Option<MazeError>;

    /// Waits until all messages have ended, or for so long at most. How many have not.
    fn settle(&self, limit: Span) -> usize;
}

/// A port of a host of a Maze. It is closed when it is dropped.
#[derive(Debug)]
pub struct Socket {
    exchange: Arc<dyn Counterpart>,
    mailbox: Arc<Mailbox<Arrived>>,
    address: Address,
}

/// A completion queue: messages that were sent with it come out of it when they have ended, in that order.
#[derive(Clone, Debug)]
pub struct Completions {
    exchange: Arc<dyn Counterpart>,
    queue: Arc<Ends>,
}

/// A message that was sent.
#[derive(Clone, Debug)]
pub struct Sent {
    exchange: Arc<dyn Counterpart>,
    ticket: Arc<Ticket>,
}

impl fmt::Debug for Exchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exchange").finish_non_exhaustive()
    }
}

/// The scenario with a class of messages, where it names none.
fn with_class(scenario: &Scenario) -> Scenario {
    let mut scenario = scenario.clone();
    if scenario.live.sockets.is_empty() {
        scenario.live.sockets.insert(CLASS.to_owned(), SocketSpec::default());
    }
    scenario
}

impl Maze {
    /// Lets a scenario live. Returns when it does.
    pub fn start(scenario: &Scenario) -> Result<Maze, Problem> {
        let scenario = with_class(scenario);
        let (tell, told) = mpsc::channel();
        let opened = move |exchange: &Arc<Exchange>| {
            let _ = tell.send(exchange.clone());
            Ok(())
        };
        let thread = std::thread::Builder::new().name("maze".to_owned());
        let watch = |exchange: &Exchange, _| exchange.is_closing();
        let thread = thread.spawn(move || crate::run::run_open(&scenario, opened, watch)).map_err(|error| {
            Problem::new("live", format!("the machine gives no thread for it: {error}; end other programs"))
        })?;
        match told.recv() {
            Ok(exchange) => Ok(Maze { exchange, thread: Some(thread) }),
            // It has ended before it began.
            Err(_) => match thread.join() {
                Ok(Err(problem)) => Err(problem),
                _ => Err(Problem::new("live", "it ended before it began")),
            },
        }
    }

    /// Opens a socket at a host: at this port, or at any that is free.
    pub fn socket(&self, host: &str, port: Option<u16>) -> Result<Socket, MazeError> {
        Socket::open(self.exchange.clone(), host, port)
    }

    /// Makes a completion queue.
    pub fn completions(&self) -> Completions {
        Completions { exchange: self.exchange.clone(), queue: self.exchange.queue() }
    }

    /// A host, by its name.
    pub fn host(&self, name: &str) -> Result<HostId, MazeError> {
        self.exchange.host(name)
    }

    /// All hosts by their names, in order.
    pub fn hosts(&self) -> impl Iterator<Item = &str> {
        self.exchange.directory().hosts.iter().map(String::as_str)
    }

    /// What a host is called.
    pub fn name(&self, host: HostId) -> &str {
        self.exchange.directory().name(host)
    }

    /// The classes in which messages can be sent, and the transport of each.
    pub fn classes(&self) -> impl Iterator<Item = (&str, &str)> {
        self.exchange.directory().classes.iter().map(|(name, transport)| (name.as_str(), transport.as_str()))
    }

    /// The network's time by the machine's clock: what was due before is done, or late. It goes back by as much as the
    /// network is said to have stood still.
    ///
    /// # Errors
    /// Where the run is over.
    pub fn now(&self) -> Result<Time, MazeError> {
        self.exchange.now()
    }

    /// Why nothing can be sent any more, if that is so.
    pub fn over(&self) -> Option<MazeError> {
        self.exchange.over()
    }

    /// Waits until all messages have ended, for `limit` of the machine's time at most. How many have not.
    pub fn settle(&self, limit: Span) -> usize {
        self.exchange.settle(limit)
    }

    /// Ends the run and waits for its result, for `limit` at most. That takes long only where jobs are run alone
    /// (`measure.alone`).
    pub fn finish(&self, limit: Span) -> Result<(), MazeError> {
        self.exchange.close();
        match self.exchange.is_finished(limit) {
            true => Ok(()),
            false => Err(MazeError::Late("the run has no result yet".to_owned())),
        }
    }

    /// Ends the run and gives its result. Before, it waits for `limit` at most until all messages have ended.
    pub fn close(mut self, limit: Span) -> Result<RunResult, Problem> {
        self.exchange.settle(limit);
        self.exchange.close();
        let thread = self.thread.take().expect("it is closed once");
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

impl Drop for Maze {
    fn drop(&mut self) {
        self.exchange.abandon();
        if let Some(thread) = self.thread.take() {
            // Whoever drops it wants no result.
            let _ = thread.join();
        }
    }
}

impl Socket {
    fn open(exchange: Arc<dyn Counterpart>, host: &str, port: Option<u16>) -> Result<Socket, MazeError> {
        let (address, mailbox) = exchange.open(exchange.host(host)?, port)?;
        Ok(Socket { exchange, mailbox, address })
    }

    /// Where it is.
    pub fn address(&self) -> Address {
        self.address
    }

    /// A host of its Maze, by its name.
    pub fn host(&self, name: &str) -> Result<HostId, MazeError> {
        self.exchange.host(name)
    }

    /// Sends a message, in a class by its name, or the only one that there is. It does not wait: when 1 GiB is under
    /// way or has come and was not taken, it is an error ([`MazeError::Full`]).
    pub fn send(&self, to: Address, class: Option<&str>, content: &[u8]) -> Result<Sent, MazeError> {
        self.submit(to, class, content, None)
    }

    /// The same; the queue tells when it has ended.
    pub fn submit(
        &self,
        to: Address,
        class: Option<&str>,
        content: &[u8],
        queue: Option<&Completions>,
    ) -> Result<Sent, MazeError> {
        let classes = &self.exchange.directory().classes;
        let known = || classes.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join("\", \"");
        let class = match class {
            None if classes.len() > 1 => {
                return Err(MazeError::Wrong(format!("a message needs a class: name one of \"{}\"", known())));
            }
            None => 0,
            Some(name) => classes.iter().position(|(known, _)| known == name).ok_or_else(|| {
                MazeError::Wrong(format!("there is no class \"{name}\" in live.sockets; there are \"{}\"", known()))
            })?,
        };
        let queue = queue.map(|of| of.queue.clone());
        let ticket = self.exchange.send([self.address, to], class, content, queue)?;
        Ok(Sent { exchange: self.exchange.clone(), ticket })
    }

    /// The next message that has come; waits for it, for `limit` of the machine's time at most.
    pub fn receive(&self, limit: Option<Span>) -> Result<Message, MazeError> {
        let taken = self.mailbox.take(limit);
        if let Some(Ok(arrived)) = &taken {
            self.exchange.taken(arrived);
        }
        taken.map(|taken| taken.map(|arrived| arrived.message)).unwrap_or_else(|| {
            let message = format!(
                "no message has come to {} so far; wait longer ({}), or ask the sender whether one was delivered",
                self.exchange.directory().words(self.address),
                self.exchange.directory().pace(),
            );
            Err(MazeError::Late(message))
        })
    }

    /// The next message that was delivered before `at` of the network's time. None when the network has come to it and
    /// no message is left that was: its host has done all that was due before, so that none can come any more, however
    /// late the machine is. Waits for either, for `limit` of the machine's time at most.
    ///
    /// ```
    /// use std::time::Duration as Span;
    ///
    /// use clearway_live::maze::Maze;
    /// use units::Duration;
    ///
    /// let text = "transport = 'dctcp'\nfabric.star = { hosts = 4, rate = '1Gbps' }\nlive.wait = 'sleep'";
    /// let scenario = scenario::read(&format!("{text}\nlive.sockets.rpc = {{}}"), "mine", &[])?;
    /// let maze = Maze::start(&scenario)?;
    /// let (client, server) = (maze.socket("host0", None)?, maze.socket("host3", Some(7))?);
    /// client.send(server.address(), None, b"one")?;
    /// let first = server.receive(Some(Span::from_secs(10)))?;
    /// client.send(server.address(), None, b"two")?;
    /// // All that comes within a second of the first.
    /// let until = first.delivered + Duration::from_ms(1_000);
    /// assert_eq!(server.receive_until(until, None)?.map(|message| message.content), Some(b"two".to_vec()));
    /// assert_eq!(server.receive_until(until, None)?, None);
    /// assert!(maze.now()? >= until);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn receive_until(&self, at: Time, limit: Option<Span>) -> Result<Option<Message>, MazeError> {
        let mut taken = self.mailbox.take_before(at, self.address, Some(Span::ZERO));
        if taken.is_none() {
            self.exchange.wake(self.address, at, &self.mailbox)?;
            taken = self.mailbox.take_before(at, self.address, limit);
        }
        match taken {
            Some(Ok(Some(arrived))) => {
                self.exchange.taken(&arrived);
                Ok(Some(arrived.message))
            }
            Some(Ok(None)) => Ok(None),
            Some(Err(error)) => Err(error),
            None => {
                let pace = self.exchange.directory().pace();
                Err(MazeError::Late(format!("the network has not come to {at} so far; wait longer ({pace})")))
            }
        }
    }

    /// Messages as they come, until the socket is closed or the run over.
    pub fn messages(&self) -> impl Iterator<Item = Message> + '_ {
        std::iter::from_fn(|| self.receive(None).ok())
    }

    /// Nothing more comes; whoever waits here is told.
    pub fn close(&self) {
        self.exchange.shut(self.address);
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        self.close();
    }
}

impl Completions {
    /// The next message that has ended: its sender knows that it was delivered, or was not. Waits for it, for `limit`
    /// of the machine's time at most.
    pub fn next(&self, limit: Option<Span>) -> Result<Sent, MazeError> {
        let next = self.queue.take(limit).unwrap_or_else(|| {
            let pace = self.exchange.directory().pace();
            Err(MazeError::Late(format!("no message has ended so far; wait longer ({pace})")))
        });
        next.map(|ticket| Sent { exchange: self.exchange.clone(), ticket })
    }
}

impl Sent {
    /// The number of its flow, in table `flows`.
    pub fn flow(&self) -> u32 {
        self.ticket.flow.0
    }

    /// Waits until the message is delivered, for `limit` of the machine's time at most, and says when that was.
    pub fn wait(&self, limit: Option<Span>) -> Result<Times, MazeError> {
        let Some(state) = self.ticket.wait(limit) else {
            let message = format!(
                "the message to {} is not delivered yet; wait longer ({}), or see whether links on its way are down",
                self.exchange.directory().words(self.ticket.to),
                self.exchange.directory().pace(),
            );
            return Err(MazeError::Late(message));
        };
        match (state.delivered, state.failure) {
            (Some(delivered), None) => {
                Ok(Times { started: state.started.unwrap_or(delivered), delivered, completed: state.completed })
            }
            (_, failure) => Err(failure.unwrap_or_else(|| MazeError::Over("the run is over".to_owned()))),
        }
    }
}
