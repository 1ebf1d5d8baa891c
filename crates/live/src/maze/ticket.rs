//! A message on its way, and the memory that it takes.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration as Span;

use units::{FlowId, Time};

use super::mailbox::{Mailbox, lock, wait_for};
use super::{Address, MazeError, Message};

/// Before the content of each message are the ports of both ends and a checksum of these and the content.
pub(crate) const HEADER_BYTES: usize = 8;

/// Memory that a message takes beside its content, in bytes.
const RECORD_BYTES: usize = 512;

/// What one program may have of the machine's memory: for messages under way, and for those of its messages that have
/// come and that nobody has taken. So a program that sends faster than the network, or whose messages nobody takes,
/// runs out of its own room alone.
#[derive(Debug)]
pub(crate) struct Account {
    most: usize,
    pub(super) held: Mutex<usize>,
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
    pub fn hold(&self, bytes: usize) -> Result<(), MazeError> {
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
    pub fn hold_more(&self, bytes: usize) {
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

/// A queue of messages that have been delivered or have ended.
pub(crate) type Ends = Mailbox<Arc<Ticket>>;

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
    pub tells_delivery: bool,
    /// Whether its receiver has said that it has come.
    has_come: AtomicBool,
    /// Whether its sender's memory was given back.
    is_released: AtomicBool,
    state: Mutex<State>,
    changed: Condvar,
}

/// The state of a message so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct State {
    pub started: Option<Time>,
    /// It has come. It counts as delivered when it is known, too, when it started: the two are told by different
    /// workers, perhaps of different processes.
    pub arrived: Option<Time>,
    pub delivered: Option<Time>,
    pub completed: Option<Time>,
    pub failure: Option<MazeError>,
    /// Its sender has given it up. If it was delivered all the same, it has not failed.
    pub given_up: bool,
    /// It can change no more.
    pub ended: bool,
}

impl State {
    /// Its sender gives it up. If it has come all the same, it is delivered.
    pub fn give_up(&mut self, why: MazeError) {
        self.given_up = true;
        if self.delivered.or(self.arrived).is_none() {
            self.failure.get_or_insert(why);
        }
    }

    /// Whether a program that waits for the message can be answered.
    fn is_decided(&self) -> bool {
        self.delivered.is_some() || self.failure.is_some()
    }
}

impl Ticket {
    /// Of a message that nothing has become of.
    pub fn new(flow: FlowId, [from, to]: [Address; 2], class: usize, bytes: usize, queue: Option<Arc<Ends>>) -> Ticket {
        let (has_come, is_released, state, changed) = Default::default();
        let (account, tells_delivery) = (None, false);
        Ticket { flow, from, to, class, bytes, account, queue, tells_delivery, has_come, is_released, state, changed }
    }

    /// Its receiver says that it has come. Whether it says so for the first time.
    pub fn come(&self) -> bool {
        !self.has_come.swap(true, Ordering::Relaxed)
    }

    /// Its sender's memory is given back, once.
    pub fn release(&self) {
        if !self.is_released.swap(true, Ordering::Relaxed) {
            self.account.iter().for_each(|account| account.release(self.bytes));
        }
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
        if state.started.is_some() || state.given_up {
            state.delivered = state.delivered.or(state.arrived);
        }
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
        state.delivered = state.delivered.or(state.arrived);
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
pub(crate) fn with_header(from: u16, to: u16, content: &[u8]) -> Option<Vec<u8>> {
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
