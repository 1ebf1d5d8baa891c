//! What the exchange has with the other processes of a run. Each of several machines is one of them.
//!
//! Every process has a flow list of its own, and all of them have to grow in the same order. So the exchange announces
//! each flow to every other process, in the order of their numbers, and the process of the sender gets the content,
//! too. A message may start when all processes have said that they know its flow: then no packet of a flow can come to
//! a process that does not know it. Everything else waits for nobody: notes to a process lie in its outbox until its
//! thread has written them.
//!
//! A process that is lost is asked for nothing any more, and messages wait for it no longer.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, Weak};

use units::{HostId, Time};

use super::Address;
use super::desk::Outgoing;
use super::mailbox::{Mailbox, lock};
use super::notes::Order;
use super::ticket::Arrived;
use super::{Directory, MazeError};
use crate::clock::instant_ns;

/// Notes for another process that have not been written yet.
pub(crate) type Outbox = Mailbox<Vec<u8>>;

/// For so long a process may leave a flow without an answer.
const STALL_NS: u64 = 10_000_000_000;

/// The other processes, as the exchange knows them.
pub(crate) struct Branches {
    /// What they are: "process" or "machine".
    what: &'static str,
    /// By host.
    process_of: Vec<usize>,
    known: Mutex<Known>,
}

/// A port and a time for which a program waits, and whom to tell.
pub(crate) type Alarm = (Time, Address, Weak<Mailbox<Arrived>>);

#[derive(Default)]
struct Known {
    /// Flows that were announced, and those that all processes know.
    announced: u64,
    by_all: u64,
    /// By process; none for the first.
    branches: Vec<Option<Branch>>,
    /// Messages from hosts of this process that wait until all know them, by place.
    waiting: VecDeque<(u64, Outgoing)>,
    /// Times for which programs wait, at hosts of other processes.
    alarms: BTreeMap<(Time, Address), Weak<Mailbox<Arrived>>>,
}

/// Another process.
struct Branch {
    outbox: Arc<Outbox>,
    /// Flows that it knows.
    known: u64,
    /// Since when it knows not all that were announced, by [`instant_ns`].
    behind_since: Option<u64>,
    /// Of its messages it was told that those before this place may start.
    may_start: u64,
    /// Behind its last message.
    end: u64,
    /// Why it is lost.
    lost: Option<String>,
}

impl Branches {
    /// Of a run in which hosts are in these processes, of so many. `what` they are, in words.
    pub fn new(what: &'static str, process_of: Vec<usize>, processes: usize) -> Branches {
        let branch = |process: usize| {
            let new =
                || Branch { outbox: Arc::default(), known: 0, behind_since: None, may_start: 0, end: 0, lost: None };
            (process > 0).then(new)
        };
        let known = Known { branches: (0..processes).map(branch).collect(), ..Known::default() };
        Branches { what, process_of, known: Mutex::new(known) }
    }

    /// Which process has a host.
    pub fn process_of(&self, host: HostId) -> usize {
        self.process_of[host.index()]
    }

    /// What was not written yet of the notes to a process.
    pub fn outbox(&self, process: usize) -> Option<Arc<Outbox>> {
        lock(&self.known).branches.get(process)?.as_ref().map(|branch| branch.outbox.clone())
    }

    /// Why nothing comes to a host and from it any more, in words, if its process is lost.
    pub fn lost(&self, host: HostId, directory: &Directory) -> Option<String> {
        let process = self.process_of(host);
        let known = lock(&self.known);
        let why = known.branches.get(process)?.as_ref()?.lost.as_ref()?;
        Some(format!("{} is lost with {} {process} of the run: {why}", directory.name(host), self.what))
    }

    /// Tells all other processes of a flow: its place, both hosts, and the class of its message by place. Its content
    /// goes to the process of its sender. If that is this one, the message waits here.
    pub fn announce(&self, place: usize, dst: HostId, class: usize, outgoing: Outgoing) {
        let mut known = lock(&self.known);
        let (place, src, bytes) = (place as u64, outgoing.host, outgoing.bytes.len() as u64);
        let owner = self.process_of(src);
        known.announced = place + 1;
        for (process, branch) in known.branches.iter_mut().enumerate() {
            let Some(branch) = branch.as_mut().filter(|branch| branch.lost.is_none()) else { continue };
            let is_owner = process == owner;
            let content: &[u8] = if is_owner { &outgoing.bytes } else { &[] };
            branch.put(&Order::Flow { place, src, dst, class: class as u16, bytes, content });
            branch.behind_since.get_or_insert_with(instant_ns);
            if is_owner {
                branch.end = place + 1;
            }
        }
        if owner == 0 {
            known.waiting.push_back((place, outgoing));
        }
    }

    /// A process knows all flows before this place.
    ///
    /// # Errors
    /// Where that can't be.
    pub fn knows(&self, process: usize, count: u64) -> Result<(), &'static str> {
        let mut known = lock(&self.known);
        let announced = known.announced;
        let Some(branch) = known.branches.get_mut(process).and_then(Option::as_mut) else {
            return Err("it is the first process");
        };
        if count < branch.known || count > announced {
            return Err("it knows flows that there are not, or has forgotten some");
        }
        branch.known = count;
        branch.behind_since = (count < announced).then(instant_ns);
        Ok(())
    }

    /// Starts the messages that all processes know by now: tells other processes of theirs, and hands `start` those of
    /// this process, in order.
    pub fn advance(&self, mut start: impl FnMut(Outgoing)) {
        let mut known = lock(&self.known);
        let Known { announced, by_all, branches, waiting, .. } = &mut *known;
        let alive = || branches.iter().flatten().filter(|branch| branch.lost.is_none());
        let count = alive().map(|branch| branch.known).min().unwrap_or(*announced);
        *by_all = count.max(*by_all);
        for branch in branches.iter_mut().flatten().filter(|branch| branch.lost.is_none()) {
            if branch.may_start < branch.end.min(*by_all) {
                branch.may_start = *by_all;
                branch.put(&Order::Go { count: *by_all });
            }
        }
        while waiting.front().is_some_and(|(place, _)| *place < *by_all) {
            waiting.pop_front().into_iter().for_each(|(_, outgoing)| start(outgoing));
        }
    }

    /// Has a process tell when all has come to one of its ports that was delivered before `at`. False if the process is
    /// lost.
    pub fn set_alarm(&self, of: Address, at: Time, mailbox: &Arc<Mailbox<Arrived>>) -> bool {
        let mut known = lock(&self.known);
        let Some(branch) = known.alive(self.process_of(of.host)) else { return false };
        branch.put(&Order::Wake { of, at });
        known.alarms.insert((at, of), Arc::downgrade(mailbox));
        true
    }

    /// Withdraws that request.
    pub fn forget_alarm(&self, of: Address, at: Time) {
        let mut known = lock(&self.known);
        known.alarms.remove(&(at, of));
        if let Some(branch) = known.alive(self.process_of(of.host)) {
            branch.put(&Order::Forget { of, at });
        }
    }

    /// A process says that this time has passed. Whom to tell, if anybody waits for that.
    pub fn passed(&self, process: usize, of: Address, at: Time) -> Option<Arc<Mailbox<Arrived>>> {
        (self.process_of(of.host) == process).then(|| lock(&self.known).alarms.remove(&(at, of)))??.upgrade()
    }

    /// Whether a process leaves a flow without an answer for too long.
    pub fn is_stalled(&self, process: usize) -> bool {
        let known = lock(&self.known);
        let since = known.branches.get(process).and_then(|branch| branch.as_ref()?.behind_since);
        since.is_some_and(|since| instant_ns().saturating_sub(since) > STALL_NS)
    }

    /// A process is lost. Gives the alarms at its hosts; none if that was known.
    pub fn lose(&self, process: usize, why: &str) -> Option<Vec<Alarm>> {
        let mut known = lock(&self.known);
        let branch = known.alive(process)?;
        branch.lost = Some(why.to_owned());
        branch.behind_since = None;
        branch.outbox.end(MazeError::Over(why.to_owned()));
        branch.outbox.clear();
        let (gone, rest) =
            std::mem::take(&mut known.alarms).into_iter().partition(|((_, of), _)| self.process_of(of.host) == process);
        known.alarms = rest;
        let gone: BTreeMap<(Time, Address), Weak<Mailbox<Arrived>>> = gone;
        Some(gone.into_iter().map(|((at, of), mailbox)| (at, of, mailbox)).collect())
    }
}

impl Known {
    /// A process that is not lost.
    fn alive(&mut self, process: usize) -> Option<&mut Branch> {
        self.branches.get_mut(process)?.as_mut().filter(|branch| branch.lost.is_none())
    }
}

impl Branch {
    fn put(&self, order: &Order<'_>) {
        let mut note = Vec::new();
        order.emit(&mut note);
        self.outbox.put(note);
    }
}
