//! The data that programs and the workers of a Maze share: which socket has which port, and which messages are under
//! way.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, Weak};
use std::thread::Thread;
use std::time::Duration as Span;

use fabric::Fabric;
use run::{FlowInfo, FlowTable, Plan};
use units::{FlowId, HostId, NodeId, Time};

use super::branches::Branches;
use super::desk::{Desk, Event, Inlet, Outgoing};
use super::mailbox::{Mailbox, lock, wait_for};
use super::notes::Report;
use super::ticket::{Account, Arrived, Ends, State, Ticket, with_header};
use super::{Address, Counterpart, Directory, MazeError, Message};
use crate::clock::Clock;

/// The longest content of a message, and the most that is kept for programs at a time: messages on their way, and
/// messages that have come and that no program has taken. A program that sends faster than the network, or takes
/// nothing, gets an error.
pub(crate) const CONTENT_MAX: usize = 1 << 30;

/// The first port that is given to whoever asks for none (RFC 6335, section 6).
const EPHEMERAL: u16 = 49_152;

/// A class of messages that programs send.
struct Class {
    name: String,
    number: u16,
    transport: u8,
    transport_name: &'static str,
}

/// A port that is open.
struct Port {
    mailbox: Arc<Mailbox<Arrived>>,
    /// Whether other ports have the same mailbox.
    is_shared: bool,
}

/// All that programs share with the workers of a run.
pub(crate) struct Exchange {
    fabric: Arc<Fabric>,
    classes: Vec<Class>,
    directory: Directory,
    clock: Arc<Clock>,
    /// The account of the program that started the Maze.
    own: Arc<Account>,
    flows: Arc<FlowTable>,
    /// By host.
    worker_of: Vec<usize>,
    /// By worker.
    inlets: Vec<Inlet>,
    branches: Branches,
    ports: Mutex<Ports>,
    /// Where programs wait for messages to end.
    queues: Mutex<Vec<Weak<Ends>>>,
    /// By place among the flows that were added.
    tickets: boxcar::Vec<Arc<Ticket>>,
    /// Messages that have not ended, and whether more can be sent.
    under_way: Mutex<UnderWay>,
    settled: Condvar,
    closes: AtomicBool,
    abandoned: AtomicBool,
    watcher: Thread,
}

/// Open ports, by host and number.
type Ports = BTreeMap<(HostId, u16), Port>;

struct UnderWay {
    messages: usize,
    /// Why no message can be sent any more.
    over: Option<MazeError>,
    /// Whether the run has its result.
    finished: bool,
}

impl Exchange {
    /// The exchange of a run on this clock, with nodes on these workers, of processes of which this is the first.
    /// Create it on the thread that will watch the run.
    pub fn new(
        plan: &Plan,
        clock: Arc<Clock>,
        workers: usize,
        worker_of: impl Fn(NodeId) -> usize,
        (what, processes, process_of): (&'static str, usize, impl Fn(usize) -> usize),
    ) -> Exchange {
        let carriers = plan.scenario.carriers();
        let first = plan.scenario.first_socket_class();
        let class = |(number, class): (usize, scenario::Class<'_>)| Class {
            name: class.name.to_owned(),
            number: number as u16,
            transport: carriers.of_class[number],
            transport_name: class.transport.name(),
        };
        let classes: Vec<Class> = plan.scenario.classes().enumerate().skip(first).map(class).collect();
        let directory = Directory {
            hosts: plan.fabric.names[..plan.fabric.hosts as usize].to_vec(),
            classes: classes.iter().map(|class| (class.name.clone(), class.transport_name.to_owned())).collect(),
            dilation: plan.scenario.live.dilation,
        };
        let worker_of: Vec<usize> =
            (0..plan.fabric.hosts).map(|host| worker_of(plan.fabric.host_node(HostId(host)))).collect();
        Exchange {
            branches: Branches::new(what, worker_of.iter().map(|&worker| process_of(worker)).collect(), processes),
            classes,
            directory,
            clock,
            own: Account::new(CONTENT_MAX),
            flows: plan.flows.clone(),
            worker_of,
            fabric: plan.fabric.clone(),
            inlets: (0..workers).map(|_| Inlet::default()).collect(),
            ports: Mutex::default(),
            queues: Mutex::default(),
            tickets: boxcar::Vec::new(),
            under_way: Mutex::new(UnderWay { messages: 0, over: None, finished: false }),
            settled: Condvar::new(),
            closes: AtomicBool::new(false),
            abandoned: AtomicBool::new(false),
            watcher: std::thread::current(),
        }
    }

    /// An address in words.
    fn words(&self, address: Address) -> String {
        self.directory.words(address)
    }

    /// The other processes.
    pub fn branches(&self) -> &Branches {
        &self.branches
    }

    /// Opens a port of a host, this one or any that is free. What comes there goes into `shared`, or a mailbox of its
    /// own.
    pub fn open_port(
        &self,
        host: HostId,
        port: Option<u16>,
        shared: Option<&Arc<Mailbox<Arrived>>>,
    ) -> Result<(Address, Arc<Mailbox<Arrived>>), MazeError> {
        let mut ports = lock(&self.ports);
        if let Some(over) = self.over() {
            return Err(over);
        }
        if let Some(lost) = self.branches.lost(host, &self.directory) {
            return Err(MazeError::Wrong(format!("{lost}; open the socket at another host")));
        }
        let name = self.directory.name(host);
        let port = match port {
            Some(0) => return Err(MazeError::Wrong("port 0 is none; ports are 1 to 65535".to_owned())),
            Some(port) if ports.contains_key(&(host, port)) => {
                let message = format!("{name}:{port} is open already; close that socket, or leave the port out");
                return Err(MazeError::Wrong(message));
            }
            Some(port) => port,
            None => (EPHEMERAL..=u16::MAX).find(|&port| !ports.contains_key(&(host, port))).ok_or_else(|| {
                MazeError::Wrong(format!("all ports of {name} from {EPHEMERAL} on are open; close some sockets"))
            })?,
        };
        let mailbox = shared.cloned().unwrap_or_default();
        ports.insert((host, port), Port { mailbox: mailbox.clone(), is_shared: shared.is_some() });
        Ok((Address { host, port }, mailbox))
    }

    /// Makes a queue in which the ends of messages are told.
    pub fn new_queue(&self) -> Arc<Ends> {
        let queue = Arc::new(Mailbox::default());
        // Whoever asks when the run is over hears of that.
        let mut queues = lock(&self.queues);
        self.over().into_iter().for_each(|over| queue.end(over));
        queues.retain(|queue| queue.strong_count() > 0);
        queues.push(Arc::downgrade(&queue));
        queue
    }

    /// Hands a message to the worker of its host and books its memory on the account. `queue`, if there is one, gets
    /// the message when it ends, or when it is delivered if `tells_delivery`.
    pub fn submit(
        &self,
        [from, to]: [Address; 2],
        class: usize,
        content: &[u8],
        account: &Arc<Account>,
        (queue, tells_delivery): (Option<Arc<Ends>>, bool),
    ) -> Result<Arc<Ticket>, MazeError> {
        if from.host == to.host {
            let name = self.directory.name(to.host);
            let message =
                format!("{name} is the socket's own host: a message to it crosses no link; send it to another");
            return Err(MazeError::Wrong(message));
        }
        if content.len() > account.most() {
            let message =
                format!("{} bytes are too long for a message; cut it into {} at most", content.len(), account.most());
            return Err(MazeError::Wrong(message));
        }
        account.hold(content.len())?;
        let bytes = with_header(from.port, to.port, content).ok_or_else(|| {
            account.release(content.len());
            MazeError::Full(format!("the machine has no memory for {} bytes; send less at a time", content.len()))
        })?;
        let Class { number, transport, .. } = self.classes[class];
        let (src, dst) = (from.host, to.host);
        let info =
            FlowInfo { src, dst, bytes: bytes.len() as u64, start: Time::ZERO, after: None, class: number, transport };
        // Flows and tickets are in the same order, and so are the messages of a host.
        let mut under_way = lock(&self.under_way);
        if let Some(over) = &under_way.over {
            return Err(over.clone()); // and what it holds matters no more
        }
        let flow = self.flows.add(info).ok_or_else(|| {
            account.release(content.len());
            MazeError::Full("2^31 messages have been sent in this run; close it and start another".to_owned())
        })?;
        let mut ticket = Ticket::new(flow, [from, to], class, content.len(), queue);
        (ticket.account, ticket.tells_delivery) = (Some(account.clone()), tells_delivery);
        let ticket = Arc::new(ticket);
        let place = self.tickets.push(ticket.clone());
        under_way.messages += 1;
        self.branches.announce(place, dst, class, Outgoing { flow, host: src, bytes });
        drop(under_way);
        if let Some(lost) = [src, dst].iter().find_map(|&host| self.branches.lost(host, &self.directory)) {
            self.lose(&ticket, &lost);
        }
        self.advance();
        Ok(ticket)
    }

    /// A message from or to a host that is lost is neither sent nor received any more.
    fn lose(&self, ticket: &Arc<Ticket>, lost: &str) {
        let message = format!("{lost}; send the message from and to other hosts");
        self.note(ticket, |state| state.give_up(MazeError::Undelivered(message)));
        // Where its sender lives, its worker gives the memory back.
        if self.branches.lost(ticket.from.host, &self.directory).is_some() {
            ticket.release();
        }
    }

    /// A process is lost, with all of its hosts.
    pub fn lose_process(&self, process: usize, why: &str) {
        let under_way = lock(&self.under_way);
        let alarms = self.branches.lose(process, why);
        // Whoever sends after this sees that it is lost.
        drop(under_way);
        let Some(alarms) = alarms else { return };
        for (_, ticket) in &self.tickets {
            let host =
                [ticket.from.host, ticket.to.host].into_iter().find(|&of| self.branches.process_of(of) == process);
            if let Some(lost) = host.and_then(|host| self.branches.lost(host, &self.directory)) {
                self.lose(ticket, &lost);
            }
        }
        // Nothing comes from its hosts' workers any more, and any worker knows when the network has come to a time.
        for (at, of, mailbox) in alarms {
            self.inlets[0].alarms.set(at, of, mailbox);
        }
        self.inlets[0].wake();
        self.advance();
    }

    /// Messages that all processes know by now may start.
    fn advance(&self) {
        self.branches.advance(|outgoing| {
            let ticket = self.flows.place_added(outgoing.flow).and_then(|place| self.tickets.get(place));
            match ticket.filter(|ticket| ticket.state().ended) {
                Some(ended) => ended.release(),
                None => self.inlet_of(outgoing.host).put(outgoing),
            }
        });
    }

    /// Takes in what another process reports. Nothing of it is trusted: it can change what becomes of messages at its
    /// own hosts, and nothing else.
    ///
    /// # Errors
    /// Where it can't be.
    pub fn hear(&self, process: usize, note: &[u8]) -> Result<(), String> {
        match Report::parse(note).map_err(|error| error.to_string())? {
            Report::Knows { count } => {
                self.branches.knows(process, count)?;
                self.advance();
            }
            Report::Passed { of, at } => {
                if of.host.index() >= self.worker_of.len() {
                    return Err(format!("there is no host {}; there are {}", of.host.0, self.worker_of.len()));
                }
                // Nobody may want to know any more.
                self.branches.passed(process, of, at).iter().for_each(|mailbox| mailbox.pass(of, at));
            }
            Report::Happened { flow, what } => {
                let Some(ticket) = self.flows.place_added(flow).and_then(|place| self.tickets.get(place)) else {
                    return Err(format!("there is no message with flow {}", flow.0));
                };
                let host = if what.is_receivers() { ticket.to.host } else { ticket.from.host };
                if self.branches.process_of(host) != process {
                    return Err(format!("{} is in another process", self.directory.name(host)));
                }
                if matches!(&what, Event::Delivered { content, .. } if content.len() != ticket.bytes) {
                    return Err(format!("the message with flow {} has {} bytes", flow.0, ticket.bytes));
                }
                if what.is_receivers() && !ticket.come() {
                    return Err(format!("the message with flow {} came twice", flow.0));
                }
                self.happens(ticket, what);
            }
        }
        Ok(())
    }

    /// Something happens to a message.
    fn happens(&self, ticket: &Arc<Ticket>, what: Event) {
        match what {
            Event::Started(at) => self.note(ticket, |state| state.started = Some(at)),
            Event::Completed(at) => self.note(ticket, |state| state.completed = Some(at)),
            Event::GivenUp { is_rejected, reason } => {
                let message = format!(
                    "{} has not delivered a message of {} bytes from {} to {}: {reason}; send it again later, or in a \
                     class over another transport",
                    self.classes[ticket.class].transport_name,
                    ticket.bytes,
                    self.words(ticket.from),
                    self.words(ticket.to),
                );
                let error = if is_rejected { MazeError::Rejected } else { MazeError::Undelivered };
                self.note(ticket, |state| state.give_up(error(message)));
            }
            Event::Forgotten => ticket.release(),
            Event::Delivered { at, ports, content } => self.take(ticket, at, ports, content),
            Event::Damaged => {
                let message = format!(
                    "a message of {} bytes came to {} changed or with parts missing; the finding \"content right\" \
                     of the result says more",
                    ticket.bytes,
                    self.words(ticket.to)
                );
                self.note(ticket, |state| state.failure = Some(MazeError::Undelivered(message)));
            }
        }
    }

    /// A message is there, as it was sent.
    fn take(&self, ticket: &Arc<Ticket>, at: Time, (from, to): (u16, u16), content: Vec<u8>) {
        let message = Message {
            flow: ticket.flow.0,
            from: Address { port: from, ..ticket.from },
            to: Address { port: to, ..ticket.to },
            class: ticket.class,
            content,
            delivered: at,
        };
        if self.deliver(message, ticket.account.clone()) {
            return self.note(ticket, |state| state.arrived = Some(at));
        }
        let address = self.words(ticket.to);
        let message = format!("nobody listens at {address}; open a socket there before messages are sent to it");
        self.note(ticket, |state| state.failure = Some(MazeError::Undelivered(message)));
    }

    /// Has the worker of a port's host tell `mailbox` when every message delivered before `at` has come to the port.
    pub fn set_alarm(&self, of: Address, at: Time, mailbox: &Arc<Mailbox<Arrived>>) {
        if self.branches.process_of(of.host) == 0 || !self.branches.set_alarm(of, at, mailbox) {
            let inlet = self.inlet_of(of.host);
            inlet.alarms.set(at, of, Arc::downgrade(mailbox));
            inlet.wake();
        }
    }

    /// Withdraws that request.
    pub fn forget_alarm(&self, of: Address, at: Time) {
        if self.branches.process_of(of.host) != 0 {
            self.branches.forget_alarm(of, at);
        }
        self.inlet_of(of.host).alarms.forget(at, of);
    }

    /// Of a host's worker. If that is in another process, which is lost: of one that knows the network's time.
    fn inlet_of(&self, host: HostId) -> &Inlet {
        let is_here = self.branches.process_of(host) == 0;
        &self.inlets[if is_here { self.worker_of[host.index()] } else { 0 }]
    }

    /// A message has arrived. Returns whether a socket is open for it.
    fn deliver(&self, message: Message, account: Option<Arc<Account>>) -> bool {
        let mailbox = lock(&self.ports).get(&(message.to.host, message.to.port)).map(|port| port.mailbox.clone());
        let Some(mailbox) = mailbox else { return false };
        let bytes = message.content.len();
        // It has come, and must be kept: room was checked when it was sent.
        account.iter().for_each(|account| account.hold_more(bytes));
        let is_open = mailbox.put(Arrived { message, account: account.clone() });
        if !is_open {
            account.iter().for_each(|account| account.release(bytes));
        }
        is_open
    }

    /// Changes the state of a message, and counts it if it ends.
    fn note(&self, ticket: &Arc<Ticket>, change: impl FnOnce(&mut State)) {
        if ticket.change(change) {
            lock(&self.under_way).messages -= 1;
            self.settled.notify_all();
        }
    }

    /// Asks the run to end.
    pub fn close(&self) {
        self.closes.store(true, Ordering::SeqCst);
        self.watcher.unpark();
    }

    pub fn is_closing(&self) -> bool {
        self.closes.load(Ordering::SeqCst)
    }

    /// Asks the run to end without a result, since nobody wants it.
    pub fn abandon(&self) {
        self.abandoned.store(true, Ordering::SeqCst);
        self.close();
    }

    pub fn is_abandoned(&self) -> bool {
        self.abandoned.load(Ordering::SeqCst)
    }

    /// The run has its result.
    pub fn finish(&self) {
        lock(&self.under_way).finished = true;
        self.settled.notify_all();
    }

    /// Waits until the run has its result, for so long at most. Whether it has.
    pub fn is_finished(&self, limit: Span) -> bool {
        let finished = |of: &mut UnderWay| of.finished.then_some(());
        wait_for(lock(&self.under_way), &self.settled, Some(limit), finished).is_some()
    }

    /// Why the run ends when it does.
    pub fn why_over(&self) -> &'static str {
        match self.is_closing() {
            true => "the Maze is closed",
            false => "the run is over; without measure.end it lasts until it is closed",
        }
    }

    /// No message is sent from now on.
    pub fn stop(&self, why: &str) -> MazeError {
        let over = MazeError::Over(why.to_owned());
        lock(&self.under_way).over.get_or_insert(over.clone());
        self.settled.notify_all();
        over
    }

    /// The run is over: everyone who waits for something learns why.
    pub fn end(&self, why: &str) {
        let over = self.stop(why);
        for (_, ticket) in &self.tickets {
            ticket.abandon(&over);
        }
        let ports = std::mem::take(&mut *lock(&self.ports));
        ports.into_values().for_each(|port| port.mailbox.end(over.clone()));
        lock(&self.queues).iter().filter_map(Weak::upgrade).for_each(|queue| queue.end(over.clone()));
    }
}

impl Counterpart for Exchange {
    fn directory(&self) -> &Directory {
        &self.directory
    }

    fn host(&self, name: &str) -> Result<HostId, MazeError> {
        let node = self.fabric.find(name).map_err(|problem| MazeError::Wrong(problem.message))?;
        let switch = || MazeError::Wrong(format!("\"{name}\" is a switch; sockets are at hosts, such as \"host0\""));
        self.fabric.as_host(node).ok_or_else(switch)
    }

    fn open(&self, host: HostId, port: Option<u16>) -> Result<(Address, Arc<Mailbox<Arrived>>), MazeError> {
        self.open_port(host, port, None)
    }

    fn shut(&self, address: Address) {
        let port = lock(&self.ports).remove(&(address.host, address.port));
        if let Some(Port { mailbox, .. }) = port.filter(|port| !port.is_shared) {
            mailbox.end(MazeError::Over(format!("the socket {} is closed", self.words(address))));
            mailbox.clear().iter().for_each(|arrived| self.taken(arrived));
        }
    }

    fn queue(&self) -> Arc<Ends> {
        self.new_queue()
    }

    fn send(
        &self,
        ends: [Address; 2],
        class: usize,
        content: &[u8],
        queue: Option<Arc<Ends>>,
    ) -> Result<Arc<Ticket>, MazeError> {
        self.submit(ends, class, content, &self.own, (queue, false))
    }

    fn taken(&self, Arrived { message, account }: &Arrived) {
        account.iter().for_each(|account| account.release(message.content.len()));
    }

    fn now(&self) -> Result<Time, MazeError> {
        self.over().map_or_else(|| Ok(self.clock.now()), Err)
    }

    fn wake(&self, port: Address, at: Time, mailbox: &Arc<Mailbox<Arrived>>) -> Result<(), MazeError> {
        self.set_alarm(port, at, mailbox);
        Ok(())
    }

    fn over(&self) -> Option<MazeError> {
        lock(&self.under_way).over.clone()
    }

    fn settle(&self, limit: Span) -> usize {
        let done = |of: &mut UnderWay| (of.messages == 0 || of.over.is_some()).then_some(());
        wait_for(lock(&self.under_way), &self.settled, Some(limit), done);
        lock(&self.under_way).messages
    }
}

impl Desk for Exchange {
    fn inlet(&self, worker: usize) -> &Inlet {
        &self.inlets[worker]
    }

    fn happened(&self, flow: FlowId, what: Event) {
        if let Some(ticket) = self.flows.place_added(flow).and_then(|place| self.tickets.get(place)) {
            self.happens(ticket, what);
        }
    }

    fn passed(&self, of: Address, at: Time, mailbox: &Weak<Mailbox<Arrived>>) {
        mailbox.upgrade().iter().for_each(|mailbox| mailbox.pass(of, at));
    }
}

#[cfg(test)]
mod tests;
