//! The data that programs and the workers of a Maze share: which socket has which port, and which messages are under
//! way.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::thread::Thread;
use std::time::Duration as Span;

use fabric::Fabric;
use run::{FlowInfo, FlowTable, Plan};
use units::{FlowId, HostId, NodeId, Time};

use super::alarms::Alarms;
use super::{Address, Counterpart, Directory, MazeError, Message};
use crate::clock::Clock;

/// Before the content of each message are the ports of both ends and a checksum of these and the content.
pub(crate) const HEADER_BYTES: usize = 8;

/// The longest content of a message, and the most that is kept for programs at a time: messages on their way, and
/// messages that have come and that no program has taken. A program that sends faster than the network, or takes
/// nothing, gets an error.
pub(crate) const CONTENT_MAX: usize = 1 << 30;

/// Memory that a message takes beside its content, in bytes.
const RECORD_BYTES: usize = 512;

/// The first port that is given to whoever asks for none (RFC 6335, section 6).
const EPHEMERAL: u16 = 49_152;

/// A class of messages that programs send.
pub(crate) struct Class {
    pub name: String,
    number: u16,
    transport: u8,
    pub transport_name: &'static str,
}

/// What one program may have of the machine's memory: for messages under way, and for those of its messages that have
/// come and that nobody has taken. So a program that sends faster than the network, or whose messages nobody takes,
/// runs out of its own room alone.
#[derive(Debug)]
pub(crate) struct Account {
    most: usize,
    held: Mutex<usize>,
}

impl Account {
    pub fn new(most: usize) -> Arc<Account> {
        Arc::new(Account { most, held: Mutex::new(0) })
    }

    /// The memory that the account may take, and so the longest content of a message, in bytes.
    pub fn most(&self) -> usize {
        self.most
    }

    /// Takes memory for one more message. Returns an error if there is not enough.
    fn hold(&self, bytes: usize) -> Result<(), MazeError> {
        let mut held = lock(&self.held);
        // One that is alone always has room.
        if *held > 0 && *held + bytes + RECORD_BYTES > self.most {
            return Err(MazeError::Full(format!(
                "no room for {bytes} bytes more: messages that are under way or that nobody has received take {held} \
                 of {}; wait until some are delivered, and receive what comes",
                self.most
            )));
        }
        *held += bytes + RECORD_BYTES;
        Ok(())
    }

    /// Takes memory without asking whether there is enough.
    fn hold_more(&self, bytes: usize) {
        *lock(&self.held) += bytes + RECORD_BYTES;
    }

    /// Gives back the memory of a message of this many bytes.
    pub fn release(&self, bytes: usize) {
        *lock(&self.held) -= bytes + RECORD_BYTES;
    }
}

/// A message that has come.
#[derive(Debug)]
pub(crate) struct Arrived {
    pub message: Message,
    /// The account of its sender, which holds its memory until a program takes it.
    pub account: Option<Arc<Account>>,
}

/// A port that is open.
struct Port {
    mailbox: Arc<Mailbox<Arrived>>,
    /// Whether other ports have the same mailbox.
    is_shared: bool,
}

/// All that programs share with the workers of a run.
pub(crate) struct Exchange {
    pub fabric: Arc<Fabric>,
    pub classes: Vec<Class>,
    directory: Directory,
    clock: Arc<Clock>,
    /// The account of the program that started the Maze.
    own: Arc<Account>,
    flows: Arc<FlowTable>,
    /// By host.
    worker_of: Vec<usize>,
    /// By worker.
    inlets: Vec<Inlet>,
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

/// A queue of messages that have been delivered or have ended.
pub(crate) type Ends = Mailbox<Arc<Ticket>>;

struct UnderWay {
    messages: usize,
    /// Why no message can be sent any more.
    over: Option<MazeError>,
    /// Whether the run has its result.
    finished: bool,
}

/// What a worker gets from programs.
#[derive(Default)]
pub(crate) struct Inlet {
    has_mail: AtomicBool,
    mail: Mutex<VecDeque<Outgoing>>,
    pub alarms: Alarms,
    thread: OnceLock<Thread>,
}

/// A message that its host has to send.
pub(crate) struct Outgoing {
    pub ticket: Arc<Ticket>,
    /// With its header.
    pub bytes: Vec<u8>,
}

/// A message's way through the network, as its sender sees it.
#[derive(Debug)]
pub(crate) struct Ticket {
    pub flow: FlowId,
    pub from: Address,
    pub to: Address,
    /// Its class, as an index of the exchange's classes.
    pub class: usize,
    /// Bytes of its content.
    pub bytes: usize,
    /// The account that holds its memory.
    pub account: Option<Arc<Account>>,
    /// The queue that is told of its end.
    queue: Option<Arc<Ends>>,
    /// Whether the queue gets it already when it is delivered.
    tells_delivery: bool,
    state: Mutex<State>,
    changed: Condvar,
}

/// The state of a message so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct State {
    pub started: Option<Time>,
    pub delivered: Option<Time>,
    pub completed: Option<Time>,
    pub failure: Option<MazeError>,
    /// Its sender has given it up. If it was delivered all the same, it has not failed.
    pub given_up: bool,
    /// It can change no more.
    pub ended: bool,
}

impl State {
    /// Whether a program that waits for the message can be answered.
    fn is_decided(&self) -> bool {
        self.delivered.is_some() || self.failure.is_some()
    }
}

/// What has come, such as messages for a socket, until somebody takes it.
#[derive(Debug)]
pub(crate) struct Mailbox<T> {
    state: Mutex<Mail<T>>,
    changed: Condvar,
}

#[derive(Debug)]
struct Mail<T> {
    waiting: VecDeque<T>,
    /// Ports for which a program waits, and a time of each: every message that was delivered before it is in this
    /// mailbox.
    passed: BTreeMap<Address, Time>,
    /// Why nothing comes any more.
    over: Option<MazeError>,
}

impl<T> Default for Mailbox<T> {
    fn default() -> Mailbox<T> {
        let mail = Mail { waiting: VecDeque::new(), passed: BTreeMap::new(), over: None };
        Mailbox { state: Mutex::new(mail), changed: Condvar::new() }
    }
}

/// Locks a mutex even if a thread panicked while it held it: the data is then as it was a moment before.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits until something is there, or for so long at most.
pub(crate) fn wait_for<T, R>(
    guard: MutexGuard<'_, T>,
    changed: &Condvar,
    limit: Option<Span>,
    mut look: impl FnMut(&mut T) -> Option<R>,
) -> Option<R> {
    let mut found = None;
    let mut missing = |of: &mut T| {
        found = look(of);
        found.is_none()
    };
    match limit {
        None => drop(changed.wait_while(guard, &mut missing)),
        Some(limit) => drop(changed.wait_timeout_while(guard, limit, &mut missing)),
    }
    found
}

impl Exchange {
    /// The exchange of a run on this clock, with nodes on these workers. Create it on the thread that will watch the
    /// run.
    pub fn new(plan: &Plan, clock: Arc<Clock>, workers: usize, worker_of: impl Fn(NodeId) -> usize) -> Exchange {
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
        Exchange {
            classes,
            directory,
            clock,
            own: Account::new(CONTENT_MAX),
            flows: plan.flows.clone(),
            worker_of: (0..plan.fabric.hosts).map(|host| worker_of(plan.fabric.host_node(HostId(host)))).collect(),
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
    pub fn words(&self, address: Address) -> String {
        self.directory.words(address)
    }

    pub fn inlet(&self, worker: usize) -> &Inlet {
        &self.inlets[worker]
    }

    /// The ticket of a flow, by its place among those that were added.
    pub fn ticket(&self, place: usize) -> Option<&Arc<Ticket>> {
        self.tickets.get(place)
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
        self.tickets.push(ticket.clone());
        under_way.messages += 1;
        let inlet = self.inlet_of(src);
        lock(&inlet.mail).push_back(Outgoing { ticket: ticket.clone(), bytes });
        drop(under_way);
        inlet.has_mail.store(true, Ordering::Release);
        inlet.wake();
        Ok(ticket)
    }

    /// Asks the worker of a port's host to tell `mailbox` when every message delivered before `at` has come to the
    /// port.
    pub fn set_alarm(&self, of: Address, at: Time, mailbox: &Arc<Mailbox<Arrived>>) {
        let inlet = self.inlet_of(of.host);
        inlet.alarms.set(at, of, mailbox);
        inlet.wake();
    }

    /// Withdraws that request.
    pub fn forget_alarm(&self, of: Address, at: Time) {
        self.inlet_of(of.host).alarms.forget(at, of);
    }

    fn inlet_of(&self, host: HostId) -> &Inlet {
        &self.inlets[self.worker_of[host.index()]]
    }

    /// A message has arrived. Returns whether a socket is open for it.
    pub fn deliver(&self, message: Message, account: Option<Arc<Account>>) -> bool {
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
    pub fn note(&self, ticket: &Arc<Ticket>, change: impl FnOnce(&mut State)) {
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

    /// The run is over: everyone who waits for something learns why.
    pub fn end(&self, why: &str) {
        let over = MazeError::Over(why.to_owned());
        lock(&self.under_way).over.get_or_insert(over.clone());
        self.settled.notify_all();
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

impl Inlet {
    /// The worker's thread begins.
    pub fn begin(&self) {
        let _ = self.thread.set(std::thread::current());
    }

    /// If it sleeps, it looks.
    fn wake(&self) {
        self.thread.get().into_iter().for_each(Thread::unpark);
    }

    #[inline]
    pub fn has_mail(&self) -> bool {
        self.has_mail.load(Ordering::Acquire)
    }

    /// All that programs have handed over.
    pub fn take(&self) -> VecDeque<Outgoing> {
        self.has_mail.store(false, Ordering::SeqCst);
        std::mem::take(&mut *lock(&self.mail))
    }
}

impl<T> Mailbox<T> {
    pub fn put(&self, one: T) -> bool {
        let mut state = lock(&self.state);
        if state.over.is_some() {
            return false;
        }
        state.waiting.push_back(one);
        drop(state);
        // All look, as what comes may be too late for one of them.
        self.changed.notify_all();
        true
    }

    /// The next one, or why there is none any more; none if it takes longer.
    pub fn take(&self, limit: Option<Span>) -> Option<Result<T, MazeError>> {
        wait_for(lock(&self.state), &self.changed, limit, |mail| match mail.waiting.pop_front() {
            Some(one) => Some(Ok(one)),
            None => mail.over.clone().map(Err),
        })
    }

    /// All has come to a port that was delivered before `at`.
    pub fn pass(&self, port: Address, at: Time) {
        let mut state = lock(&self.state);
        let passed = state.passed.entry(port).or_default();
        *passed = at.max(*passed);
        drop(state);
        self.changed.notify_all();
    }

    /// All messages that no program has taken.
    pub fn clear(&self) -> VecDeque<T> {
        std::mem::take(&mut lock(&self.state).waiting)
    }

    pub fn end(&self, why: MazeError) {
        lock(&self.state).over.get_or_insert(why);
        self.changed.notify_all();
    }
}

/// What a mailbox of several ports has.
pub(crate) enum Coming {
    Message(Arrived),
    /// All has come to this port that was delivered before.
    Passed(Address, Time),
}

impl Mailbox<Arrived> {
    /// The next message that was delivered before `at`. `Nothing` if all of these have come to the port and were taken;
    /// none at the time limit.
    pub fn take_before(
        &self,
        at: Time,
        port: Address,
        limit: Option<Span>,
    ) -> Option<Result<Option<Arrived>, MazeError>> {
        wait_for(lock(&self.state), &self.changed, limit, |mail| {
            match mail.waiting.iter().position(|arrived| arrived.message.delivered < at) {
                Some(place) => Some(Ok(mail.waiting.remove(place))),
                None if mail.passed.get(&port).is_some_and(|&passed| passed >= at) => Some(Ok(None)),
                None => mail.over.clone().map(Err),
            }
        })
    }

    /// Whatever comes next to one of the ports.
    pub fn take_any(&self) -> Option<Coming> {
        wait_for(lock(&self.state), &self.changed, None, |mail| match mail.waiting.pop_front() {
            Some(one) => Some(Some(Coming::Message(one))),
            None => match mail.passed.pop_first() {
                Some((port, at)) => Some(Some(Coming::Passed(port, at))),
                None => mail.over.is_some().then_some(None),
            },
        })
        .flatten()
    }
}

impl Ticket {
    /// Of a message that nothing has become of.
    pub fn new(flow: FlowId, [from, to]: [Address; 2], class: usize, bytes: usize, queue: Option<Arc<Ends>>) -> Ticket {
        let (state, changed) = (Mutex::default(), Condvar::new());
        Ticket { flow, from, to, class, bytes, account: None, queue, tells_delivery: false, state, changed }
    }

    /// Its state so far.
    pub fn state(&self) -> State {
        lock(&self.state).clone()
    }

    /// Something has become of it. Whether nothing more will.
    pub fn change(self: &Arc<Ticket>, change: impl FnOnce(&mut State)) -> bool {
        let mut state = lock(&self.state);
        let (was_decided, had_ended) = (state.is_decided(), state.ended);
        change(&mut state);
        state.ended |=
            state.failure.is_some() || (state.delivered.is_some() && (state.completed.is_some() || state.given_up));
        let ended = state.ended && !had_ended;
        let decided = !was_decided && state.is_decided();
        drop(state);
        self.changed.notify_all();
        if let Some(queue) = &self.queue
            && (ended || decided && self.tells_delivery)
        {
            queue.put(self.clone());
        }
        ended
    }

    /// The run is over: messages that have not arrived fail.
    pub fn abandon(self: &Arc<Ticket>, over: &MazeError) {
        let mut state = lock(&self.state);
        if state.delivered.is_none() {
            state.failure.get_or_insert(over.clone());
        }
        let ended = std::mem::replace(&mut state.ended, true);
        drop(state);
        self.changed.notify_all();
        if let Some(queue) = self.queue.as_ref().filter(|_| !ended) {
            queue.put(self.clone());
        }
    }

    /// What has become of the message, once it is delivered or has failed; none if that takes longer.
    pub fn wait(&self, limit: Option<Span>) -> Option<State> {
        wait_for(lock(&self.state), &self.changed, limit, |state| {
            (state.delivered.is_some() || state.failure.is_some()).then(|| state.clone())
        })
    }
}

/// None where the machine has no memory for it.
fn with_header(from: u16, to: u16, content: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(HEADER_BYTES + content.len()).ok()?;
    bytes.extend_from_slice(&from.to_be_bytes());
    bytes.extend_from_slice(&to.to_be_bytes());
    bytes.extend_from_slice(&checksum(&bytes, content).to_be_bytes());
    bytes.extend_from_slice(content);
    Some(bytes)
}

fn checksum(ports: &[u8], content: &[u8]) -> u32 {
    let mut hash = crc32fast::Hasher::new();
    hash.update(ports);
    hash.update(content);
    hash.finalize()
}

/// The ports of a message that is whole and unchanged; its content is behind the header.
pub(crate) fn ports_of(bytes: &[u8]) -> Option<(u16, u16)> {
    let (header, content) = bytes.split_first_chunk::<HEADER_BYTES>()?;
    let [from0, from1, to0, to1, sum @ ..] = *header;
    let right = checksum(&header[..4], content) == u32::from_be_bytes(sum);
    right.then_some((u16::from_be_bytes([from0, from1]), u16::from_be_bytes([to0, to1])))
}
