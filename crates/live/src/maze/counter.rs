//! A worker's part of a Maze: where messages of programs go into the network, and come out of it.

use std::collections::VecDeque;
use std::sync::Arc;

use driver::{Driver, Probe};
use run::{FlowEvent, FlowRecord, FlowTable};
use rustc_hash::FxHashMap;
use units::{FlowId, HostId, Time};

use super::exchange::{Exchange, HEADER_BYTES, Outgoing, Ticket, ports_of};
use super::{MazeError, Message};
use crate::content::{Inbox, Pieces};
use crate::wires::Wires;

/// The most messages whose content is kept although their sender has given them up: packets of theirs may still wait in
/// its host. Beyond that, the oldest is forgotten. A completed message is forgotten at once: its receiver has all of
/// it, and further packets of it change nothing.
const KEPT: usize = 64;

/// The messages of a worker's hosts.
pub(crate) struct Counter {
    exchange: Arc<Exchange>,
    me: usize,
    /// By host: its index among the hosts of this worker, if it is one of them.
    places: Vec<Option<usize>>,
    outgoing: FxHashMap<FlowId, Outgoing>,
    /// Messages that their senders have given up, in the order in which they did.
    given_up: VecDeque<FlowId>,
    incoming: FxHashMap<FlowId, Incoming>,
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
    /// Of a worker with these hosts, in their order there.
    pub fn new(exchange: Arc<Exchange>, me: usize, hosts: impl Iterator<Item = HostId>) -> Counter {
        let mut places = vec![None; exchange.fabric.hosts as usize];
        hosts.enumerate().for_each(|(place, host)| places[host.index()] = Some(place));
        let (outgoing, incoming) = Default::default();
        Counter { exchange, me, places, outgoing, given_up: VecDeque::new(), incoming }
    }

    /// The worker's thread begins.
    pub fn begin(&self) {
        self.exchange.inlet(self.me).begin();
    }

    #[inline]
    pub fn has_mail(&self) -> bool {
        self.exchange.inlet(self.me).has_mail()
    }

    /// Tells every program that waited for a time of the network up to `present`.
    #[inline]
    pub fn ring(&self, present: Time) {
        let alarms = &self.exchange.inlet(self.me).alarms;
        if alarms.first() <= present {
            alarms.ring(present);
        }
    }

    /// When a program wants to be told next.
    pub fn next_alarm(&self) -> Time {
        self.exchange.inlet(self.me).alarms.first()
    }

    /// Hosts start to send what programs have handed over, at `present`. Whether there was anything.
    #[inline]
    pub fn take_in<P: Probe>(driver: &mut Driver<Wires<'_>, P>, present: Time) -> bool {
        let has_mail = driver.links.carrier.counter.as_ref().is_some_and(|counter| counter.has_mail());
        if has_mail {
            Counter::submit(driver, present);
        }
        has_mail
    }

    #[cold]
    fn submit<P: Probe>(driver: &mut Driver<Wires<'_>, P>, present: Time) {
        let Some(counter) = &driver.links.carrier.counter else { return };
        let mail = counter.exchange.inlet(counter.me).take();
        for outgoing in mail {
            let Some(counter) = &mut driver.links.carrier.counter else { return };
            let (flow, host) = (outgoing.ticket.flow, outgoing.ticket.from.host);
            let place = counter.places[host.index()].expect("its host is on this worker");
            counter.outgoing.insert(flow, outgoing);
            driver.submit(present, place, flow);
        }
    }

    /// The bytes of a message that a packet carries; none if the message was forgotten.
    pub fn part(&self, flow: FlowId, offset: u64, bytes: usize) -> Option<&[u8]> {
        let begin = offset as usize;
        self.outgoing.get(&flow)?.bytes.get(begin..begin + bytes)
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
    pub fn note(&mut self, place: usize, record: &FlowRecord, inbox: &mut Inbox) {
        let exchange = self.exchange.clone();
        let Some(ticket) = exchange.ticket(place) else { return };
        match record.fate {
            FlowEvent::Started => exchange.note(ticket, |state| state.started = Some(record.at)),
            FlowEvent::Resubmitted => {}
            FlowEvent::Delivered { .. } => self.deliver(ticket, record.at, inbox),
            FlowEvent::Completed { .. } => {
                self.forget(ticket.flow);
                exchange.note(ticket, |state| state.completed = Some(record.at));
            }
            FlowEvent::Rejected => {
                let reason = "the network has no room for it now and rejected it";
                self.fail(ticket, reason, MazeError::Rejected);
            }
            FlowEvent::Failed(reason) => self.fail(ticket, reason, MazeError::Undelivered),
        }
    }

    fn fail(&mut self, ticket: &Arc<Ticket>, reason: &str, error: fn(String) -> MazeError) {
        self.forget_later(ticket.flow);
        let class = &self.exchange.classes[ticket.class];
        let message = format!(
            "{} has not delivered a message of {} bytes from {} to {}: {reason}; send it again later, or in a class \
             over another transport",
            class.transport_name,
            ticket.bytes,
            self.exchange.words(ticket.from),
            self.exchange.words(ticket.to),
        );
        self.exchange.note(ticket, |state| {
            state.given_up = true;
            if state.delivered.is_none() {
                state.failure.get_or_insert(error(message));
            }
        });
    }

    fn forget(&mut self, flow: FlowId) {
        if let Some(Outgoing { ticket, .. }) = self.outgoing.remove(&flow) {
            ticket.account.iter().for_each(|account| account.release(ticket.bytes));
        }
    }

    /// The sender has given up a message, but packets of it may still wait in its host: keep the content for now.
    fn forget_later(&mut self, flow: FlowId) {
        self.given_up.push_back(flow);
        if self.given_up.len() > KEPT
            && let Some(oldest) = self.given_up.pop_front()
        {
            self.forget(oldest);
        }
    }

    /// The receiving host has all of a message.
    fn deliver(&mut self, ticket: &Arc<Ticket>, at: Time, inbox: &mut Inbox) {
        let incoming = self.incoming.insert(ticket.flow, Incoming::Over);
        let whole = match incoming {
            Some(Incoming::Partial { bytes, pieces }) if pieces.is_whole(bytes.len() as u64) => Some(bytes),
            _ => None,
        };
        let read = whole.and_then(|bytes| Some((ports_of(&bytes)?, bytes)));
        inbox.delivered += 1;
        let Some(((from, to), mut bytes)) = read else {
            inbox.incomplete += 1;
            let message = format!(
                "a message of {} bytes came to {} changed or with parts missing; the finding \"content right\" of the \
                 result says more",
                ticket.bytes,
                self.exchange.words(ticket.to)
            );
            return self.exchange.note(ticket, |state| state.failure = Some(MazeError::Undelivered(message)));
        };
        inbox.right_bytes += bytes.len() as u64;
        bytes.drain(..HEADER_BYTES);
        let message = Message {
            flow: ticket.flow.0,
            from: super::Address { port: from, ..ticket.from },
            to: super::Address { port: to, ..ticket.to },
            class: ticket.class,
            content: bytes,
            delivered: at,
        };
        if self.exchange.deliver(message, ticket.account.clone()) {
            return self.exchange.note(ticket, |state| state.delivered = Some(at));
        }
        let address = self.exchange.words(ticket.to);
        let message = format!("nobody listens at {address}; open a socket there before messages are sent to it");
        self.exchange.note(ticket, |state| state.failure = Some(MazeError::Undelivered(message)));
    }
}
