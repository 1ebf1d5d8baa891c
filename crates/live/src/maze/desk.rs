//! What a worker and whoever has the messages of programs say to each other.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, Weak};
use std::thread::Thread;

use units::{FlowId, HostId, Time};

use super::Address;
use super::alarms::Alarms;
use super::mailbox::{Mailbox, lock};
use super::ticket::Arrived;

/// Whoever has the messages of programs for the workers of a process: the exchange, or in another process its branch.
pub(crate) trait Desk: Send + Sync {
    /// What a worker gets.
    fn inlet(&self, worker: usize) -> &Inlet;

    /// Something has happened to a message at a host of this process.
    fn happened(&self, flow: FlowId, what: Event);

    /// The worker of this port's host has done all that was due before `at`, and has told all that happened until then.
    fn passed(&self, of: Address, at: Time, mailbox: &Weak<Mailbox<Arrived>>);
}

/// What happens to a message at one of its two hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// Its transport has got it.
    Started(Time),
    /// Its sender knows that all of it has been delivered.
    Completed(Time),
    /// Its sender gives it up.
    GivenUp {
        /// Whether the network had no room for it.
        is_rejected: bool,
        reason: Cow<'static, str>,
    },
    /// Its sender does not keep its content any more.
    Forgotten,
    /// All of it has come to its receiver.
    Delivered {
        at: Time,
        /// Of its sender and of its receiver.
        ports: (u16, u16),
        content: Vec<u8>,
    },
    /// It has come to its receiver changed or with parts missing.
    Damaged,
}

impl Event {
    /// Whether it happens at the message's receiver.
    pub fn is_receivers(&self) -> bool {
        matches!(self, Event::Delivered { .. } | Event::Damaged)
    }
}

/// A message that its host has to send.
pub(crate) struct Outgoing {
    pub flow: FlowId,
    /// Who sends it.
    pub host: HostId,
    /// With its header.
    pub bytes: Vec<u8>,
}

/// What a worker gets from programs.
#[derive(Default)]
pub(crate) struct Inlet {
    has_mail: AtomicBool,
    mail: Mutex<VecDeque<Outgoing>>,
    pub alarms: Alarms,
    thread: OnceLock<Thread>,
}

impl Inlet {
    /// The worker's thread begins.
    pub fn begin(&self) {
        let _ = self.thread.set(std::thread::current());
    }

    /// A message for one of its hosts to send.
    pub fn put(&self, outgoing: Outgoing) {
        lock(&self.mail).push_back(outgoing);
        self.has_mail.store(true, Ordering::Release);
        self.wake();
    }

    /// If it sleeps, it looks.
    pub fn wake(&self) {
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
