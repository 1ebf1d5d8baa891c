//! The part of the exchange in every process but the first: it obeys that process's [orders](super::notes), and reports
//! what happens to messages at hosts of its own workers.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};

use driver::Cut;
use run::{FlowInfo, FlowTable, Plan};
use units::{FlowId, HostId, Time};

use super::branches::Outbox;
use super::desk::{Desk, Event, Inlet, Outgoing};
use super::mailbox::{Mailbox, lock};
use super::notes::{Order, Report};
use super::ticket::{Arrived, HEADER_BYTES};
use super::{Address, MazeError};

/// The exchange's part in another process.
pub(crate) struct Branch {
    flows: Arc<FlowTable>,
    /// By class of messages: its number among all classes, and its transport.
    classes: Vec<(u16, u8)>,
    /// By host.
    worker_of: Vec<usize>,
    /// Workers of this process.
    own: Range<usize>,
    /// By worker of all.
    inlets: Vec<Inlet>,
    /// Messages that wait until all processes know their flows, by place.
    waiting: Mutex<VecDeque<(u64, Outgoing)>>,
    /// How many flows it has said that it knows.
    told: AtomicU64,
    /// Reports that have not been written.
    pub outbox: Arc<Outbox>,
}

impl Branch {
    /// Of a process with these workers.
    pub fn new(plan: &Plan, cut: &Cut, own: Range<usize>) -> Branch {
        let worker = |host| cut.part_of(plan.fabric.host_node(HostId(host)));
        let carriers = plan.scenario.carriers();
        let first = plan.scenario.first_socket_class();
        Branch {
            flows: plan.flows.clone(),
            classes: (first..plan.scenario.classes().count())
                .map(|number| (number as u16, carriers.of_class[number]))
                .collect(),
            worker_of: (0..plan.fabric.hosts).map(worker).collect(),
            own,
            inlets: (0..cut.parts()).map(|_| Inlet::default()).collect(),
            waiting: Mutex::default(),
            told: AtomicU64::new(0),
            outbox: Arc::default(),
        }
    }

    /// Does what the first process says. If more is to come at once, that may be answered together.
    ///
    /// # Errors
    /// Where it can't be.
    pub fn obey(&self, note: &[u8], more: bool) -> Result<(), String> {
        match Order::parse(note).map_err(|error| error.to_string())? {
            Order::Flow { place, src, dst, class, bytes, content } => {
                self.add(place, [src, dst], class, bytes, content)?;
            }
            Order::Go { count } => {
                if count > self.known() {
                    return Err(format!("{count} messages may start, but {} are known", self.known()));
                }
                let mut waiting = lock(&self.waiting);
                while waiting.front().is_some_and(|(place, _)| *place < count) {
                    let Some((_, outgoing)) = waiting.pop_front() else { break };
                    self.inlets[self.worker_of[outgoing.host.index()]].put(outgoing);
                }
            }
            Order::Wake { of, at } => {
                let inlet = self.inlet_of(of.host)?;
                inlet.alarms.set(at, of, Weak::new());
                inlet.wake();
            }
            Order::Forget { of, at } => self.inlet_of(of.host)?.alarms.forget(at, of),
        }
        let known = self.known();
        if !more && self.told.swap(known, Ordering::Relaxed) < known {
            self.report(&Report::Knows { count: known });
        }
        Ok(())
    }

    /// The next flow.
    fn add(&self, place: u64, [src, dst]: [HostId; 2], class: u16, bytes: u64, content: &[u8]) -> Result<(), String> {
        let known = self.known();
        let hosts = self.worker_of.len();
        let Some(&(class, transport)) = self.classes.get(usize::from(class)) else {
            return Err(format!("there is no class {class} of messages; there are {}", self.classes.len()));
        };
        if src == dst || src.index() >= hosts || dst.index() >= hosts {
            return Err(format!("a message from host {} to host {}; there are {hosts}", src.0, dst.0));
        }
        if place != known || bytes < HEADER_BYTES as u64 {
            return Err(format!("flow {place} of {bytes} bytes, but flow {known} is the next"));
        }
        let is_own = self.inlet_of(src).is_ok();
        if !content.is_empty() && (!is_own || content.len() as u64 != bytes) {
            return Err(format!("{} bytes of content for a message of {bytes} from host {}", content.len(), src.0));
        }
        let info = FlowInfo { src, dst, bytes, start: Time::ZERO, after: None, class, transport };
        let flow = self.flows.add(info).ok_or("2^31 flows have been sent")?;
        if !content.is_empty() {
            lock(&self.waiting).push_back((place, Outgoing { flow, host: src, bytes: content.to_vec() }));
        }
        Ok(())
    }

    fn inlet_of(&self, host: HostId) -> Result<&Inlet, String> {
        let worker = self.worker_of.get(host.index()).filter(|worker| self.own.contains(worker));
        worker.map(|&worker| &self.inlets[worker]).ok_or_else(|| format!("host {} is not in this process", host.0))
    }

    /// How many flows of messages it knows.
    fn known(&self) -> u64 {
        (self.flows.len() - self.flows.planned()) as u64
    }

    /// Tells the first process something.
    fn report(&self, report: &Report) {
        let mut note = Vec::new();
        report.emit(&mut note);
        self.outbox.put(note);
    }

    /// Nothing more is reported.
    pub fn end(&self) {
        self.outbox.end(MazeError::Over("the run is over".to_owned()));
    }
}

impl Desk for Branch {
    fn inlet(&self, worker: usize) -> &Inlet {
        &self.inlets[worker]
    }

    fn happened(&self, flow: FlowId, what: Event) {
        self.report(&Report::Happened { flow, what });
    }

    fn passed(&self, of: Address, at: Time, _: &Weak<Mailbox<Arrived>>) {
        self.report(&Report::Passed { of, at });
    }
}

#[cfg(test)]
mod tests;
