//! A worker's part of a Maze: where messages of programs go into the network, and come out of it.

use std::collections::VecDeque;
use std::sync::Arc;

use driver::{Driver, Probe};
use run::{FlowEvent, FlowRecord, FlowTable};
use rustc_hash::FxHashMap;
use units::{FlowId, HostId, Time};

use super::desk::{Desk, Event, Outgoing};
use super::ticket::{HEADER_BYTES, ports_of};
use crate::clock::Clock;
use crate::content::{Inbox, Pieces};
use crate::wires::Wires;

/// The most messages whose content is kept although their sender has given them up: packets of theirs may still wait in
/// its host. Beyond that, the oldest is forgotten. A completed message is forgotten at once: its receiver has all of
/// it, and further packets of it change nothing.
const KEPT: usize = 64;

/// The messages of a worker's hosts.
pub(crate) struct Counter {
    desk: Arc<dyn Desk>,
    me: usize,
    /// By host: its index among the hosts of this worker, if it is one of them.
    places: Vec<Option<usize>>,
    /// Messages of programs with the time at which they came. They wait until all events due before it are done.
    mail: VecDeque<(Time, Outgoing)>,
    /// Messages that its hosts send, each with its header.
    outgoing: FxHashMap<FlowId, Vec<u8>>,
    /// Messages that their senders have given up, in the order in which they did.
    given_up: VecDeque<FlowId>,
    incoming: FxHashMap<FlowId, Incoming>,
    /// By host, whether it is lost with its process; empty if none is.
    lost: Vec<bool>,
}

/// A message that comes to a host of this worker.
enum Incoming {
    Partial {
        bytes: Vec<u8>,
        pieces: Pieces,
    },
    /// It has been delivered.
    Over,
}

impl Counter {
    /// Of a worker with these hosts of all, in their order there.
    pub fn new(desk: Arc<dyn Desk>, me: usize, all: u32, hosts: impl Iterator<Item = HostId>) -> Counter {
        let mut places = vec![None; all as usize];
        hosts.enumerate().for_each(|(place, host)| places[host.index()] = Some(place));
        let (mail, outgoing, incoming, given_up, lost) = Default::default();
        Counter { desk, me, places, mail, outgoing, given_up, incoming, lost }
    }

    /// The worker's thread begins.
    pub fn begin(&self) {
        self.desk.inlet(self.me).begin();
    }

    /// Whether messages of programs wait.
    #[inline]
    pub fn has_mail(&self) -> bool {
        !self.mail.is_empty() || self.desk.inlet(self.me).has_mail()
    }

    /// Takes what programs have handed over. The clock is read after that: no message enters the network before it has
    /// come.
    #[inline]
    pub fn read_mail(&mut self, clock: &Clock) {
        let inlet = self.desk.inlet(self.me);
        if inlet.has_mail() {
            let mail = inlet.take();
            let came = clock.now();
            self.mail.extend(mail.into_iter().map(|outgoing| (came, outgoing)));
        }
    }

    /// Tells every program that waited for a time of the network up to `present`.
    #[inline]
    pub fn ring(&self, present: Time) {
        let alarms = &self.desk.inlet(self.me).alarms;
        if alarms.first() <= present {
            alarms.ring(present, |of, at, mailbox| self.desk.passed(of, at, mailbox));
        }
    }

    /// When a program wants to be told next.
    pub fn next_alarm(&self) -> Time {
        self.desk.inlet(self.me).alarms.first()
    }

    /// Hosts start to send the messages that had come by `present`. Whether there were any.
    #[inline]
    pub fn take_in<P: Probe>(driver: &mut Driver<Wires<'_>, P>, present: Time) -> bool {
        let first = driver.links.carrier.counter.as_ref().and_then(|counter| counter.mail.front());
        let any = first.is_some_and(|(came, _)| *came <= present);
        if any {
            Counter::submit(driver, present);
        }
        any
    }

    #[cold]
    fn submit<P: Probe>(driver: &mut Driver<Wires<'_>, P>, present: Time) {
        loop {
            let Wires { counter: Some(counter), plan, .. } = &mut driver.links.carrier else { return };
            if counter.mail.front().is_none_or(|(came, _)| *came > present) {
                return;
            }
            let Some((_, Outgoing { flow, host, bytes })) = counter.mail.pop_front() else { return };
            if counter.is_to_lost(&plan.flows, flow) {
                counter.desk.happened(flow, Event::Forgotten);
                continue;
            }
            let place = counter.places[host.index()].expect("its host is on this worker");
            counter.outgoing.insert(flow, bytes);
            driver.submit(present, place, flow);
        }
    }

    /// Hosts are lost with their processes. What goes to them is not kept any more, since it can't arrive.
    #[cold]
    #[expect(clippy::disallowed_methods, reason = "put in order below")]
    pub fn bury(&mut self, table: &FlowTable, is_lost: impl Fn(HostId) -> bool) {
        self.lost = (0..self.places.len() as u32).map(|host| is_lost(HostId(host))).collect();
        let mut gone: Vec<FlowId> =
            self.outgoing.keys().copied().filter(|&flow| self.is_to_lost(table, flow)).collect();
        gone.sort_unstable();
        gone.into_iter().for_each(|flow| self.forget(flow));
    }

    fn is_to_lost(&self, table: &FlowTable, flow: FlowId) -> bool {
        !self.lost.is_empty() && table.try_get(flow).is_some_and(|info| self.lost[info.dst.index()])
    }

    /// The bytes of a message that a packet carries; none if the message was forgotten.
    pub fn part(&self, flow: FlowId, offset: u64, bytes: usize) -> Option<&[u8]> {
        let begin = offset as usize;
        self.outgoing.get(&flow)?.get(begin..begin + bytes)
    }

    /// A packet of a message has come. It has no content if its sender has given up and forgotten the message.
    pub fn take(&mut self, table: &FlowTable, flow: FlowId, offset: u64, content: Option<&[u8]>, inbox: &mut Inbox) {
        let (Some(info), Some(content)) = (table.try_get(flow), content) else { return };
        let fresh = || Incoming::Partial { bytes: vec![0; info.bytes as usize], pieces: Pieces::default() };
        let Incoming::Partial { bytes, pieces } = self.incoming.entry(flow).or_insert_with(fresh) else {
            return; // what comes once more changes nothing
        };
        // A frame from elsewhere may say any offset.
        let end = offset.checked_add(content.len() as u64);
        let place = end.and_then(|end| bytes.get_mut(offset as usize..end as usize));
        let (Some(place), Some(end)) = (place, end) else { return inbox.lacks() };
        place.copy_from_slice(content);
        pieces.add(offset, end);
    }

    /// Something has happened to a message at a host of this worker.
    pub fn note(&mut self, record: &FlowRecord, inbox: &mut Inbox) {
        let flow = record.flow;
        match record.fate {
            FlowEvent::Started => self.desk.happened(flow, Event::Started(record.at)),
            FlowEvent::Resubmitted => {}
            FlowEvent::Delivered { .. } => self.deliver(flow, record.at, inbox),
            FlowEvent::Completed { .. } => {
                self.forget(flow);
                self.desk.happened(flow, Event::Completed(record.at));
            }
            FlowEvent::Rejected => self.give_up(flow, true, "the network has no room for it now and rejected it"),
            FlowEvent::Failed(reason) => self.give_up(flow, false, reason),
        }
    }

    /// The sender has given up a message, but packets of it may still wait in its host: keep the content for now.
    fn give_up(&mut self, flow: FlowId, is_rejected: bool, reason: &'static str) {
        self.desk.happened(flow, Event::GivenUp { is_rejected, reason: reason.into() });
        self.given_up.push_back(flow);
        if self.given_up.len() > KEPT
            && let Some(oldest) = self.given_up.pop_front()
        {
            self.forget(oldest);
        }
    }

    fn forget(&mut self, flow: FlowId) {
        if self.outgoing.remove(&flow).is_some() {
            self.desk.happened(flow, Event::Forgotten);
        }
    }

    /// The receiving host has all of a message.
    fn deliver(&mut self, flow: FlowId, at: Time, inbox: &mut Inbox) {
        let incoming = self.incoming.insert(flow, Incoming::Over);
        let whole = match incoming {
            Some(Incoming::Partial { bytes, pieces }) if pieces.is_whole(bytes.len() as u64) => Some(bytes),
            _ => None,
        };
        let read = whole.and_then(|bytes| Some((ports_of(&bytes)?, bytes)));
        inbox.delivered += 1;
        let Some((ports, mut bytes)) = read else {
            inbox.incomplete += 1;
            return self.desk.happened(flow, Event::Damaged);
        };
        inbox.right_bytes += bytes.len() as u64;
        bytes.drain(..HEADER_BYTES);
        self.desk.happened(flow, Event::Delivered { at, ports, content: bytes });
    }
}
