//! The links of a live run: memory if both ends are on one worker, rings between workers, or datagrams.
//!
//! On one worker a packet stays in its slot of the pool, and its content in its [page](crate::pages), from hop to hop.
//! To another worker a descriptor is sent: the packet, its journey so far, and the page with its content. There is one
//! ring of descriptors for each pair of workers, with one that writes and one that reads, so that a worker with a
//! thousand links to another checks only one place. A ring has room for [`RING`] packets; a worker that finds it full
//! waits until there is room. A packet for a worker of another process is copied, through a [ring](crate::ring) in
//! shared memory.

use std::collections::VecDeque;
use std::sync::Arc;

use driver::{Carrier, Cut, Departure, Links};
use fabric::{Failures, Routes};
use node::packet::flags;
use node::pool::{PacketId, Slot, Transit};
use node::retry::RetryMessage;
use node::wire::Writer;
use node::{Packet, Telemetry};
use rtrb::{Consumer, Producer, PushError, RingBuffer};
use run::{FlowEvent, Host, Journey, Plan, ReceiveOutcome};
use scenario::ContentCheck;
use units::{FlowId, LinkId, Time};

use crate::attach::Attached;
use crate::board::Board;
use crate::capture::Captures;
use crate::clock::Clock;
use crate::content::{self, Inbox};
use crate::datagrams::{Count, Datagrams, Read, Sent, codec, is_attached_if_outside, is_outside};
use crate::frame::{Frame, Refusal};
use crate::maze::Counter;
use crate::pages::{Page, Pages};
use crate::ring::Ring;

/// Packets that may be on their way from one worker to another, besides those that the receiver has taken. Tests use so
/// few that rings are often full.
const RING: usize = if cfg!(test) { 4 } else { 1024 };

/// Carries packets of one worker.
pub(crate) struct Wires<'a> {
    pub plan: &'a Plan,
    pub clock: &'a Clock,
    board: &'a Board,
    pub cut: &'a Cut,
    me: usize,
    content: ContentCheck,
    pub pages: Pages,
    /// By other worker; none for itself.
    trunks: Vec<Option<RingEnds>>,
    /// By other worker, where that is in another process.
    far: Vec<Option<Far>>,
    /// By other worker, packets that went there, and that came from there.
    pub sent: Vec<u64>,
    pub taken: Vec<u64>,
    /// Packets from other processes that were dropped, by [`Refusal`].
    pub refused: [u64; Refusal::ALL.len()],
    /// A packet from or for another process, as it lies in a ring.
    entry: Vec<u8>,
    /// Since when a packet has waited for another process to read, by the machine's clock.
    held_since: Option<std::time::Duration>,
    /// Packets that found their ring full: to whom, and what.
    held: VecDeque<(u32, Crossing)>,
    pub inbox: Inbox,
    pub ended_flows: u64,
    /// By host, how many of its records have been seen, and how many of its flows had ended.
    seen: Vec<(usize, u64)>,
    /// Present if links are sockets.
    pub datagrams: Option<Datagrams>,
    /// Hosts of this worker that are devices of the machine.
    pub attached: Option<Box<Attached>>,
    /// Messages of programs, to and from hosts of this worker.
    pub counter: Option<Box<Counter>>,
    /// Links of this worker that are captured.
    pub captures: Option<Box<Captures>>,
}

/// Where a link's receiving end is, for its sender.
pub(crate) enum Sender {
    /// On this worker.
    Here(u32),
    /// On another, by a ring.
    There { worker: u32, link_rx: u32 },
    /// On another, in another process.
    Far { worker: u32, link: u32 },
    /// Behind a socket.
    Socket(Sent),
}

impl Sender {
    /// The frames sent so far, if the link is a socket.
    pub fn sent(&self) -> Option<Count> {
        match self {
            Sender::Socket(sent) => Some(sent.count),
            Sender::Here(_) | Sender::There { .. } | Sender::Far { .. } => None,
        }
    }
}

/// One end of the rings between two workers.
pub(crate) struct RingEnds {
    to: Producer<Crossing>,
    from: Consumer<Crossing>,
    /// Pages whose content has been read return to the worker that owns them.
    home: Producer<Page>,
    back: Consumer<Page>,
}

/// The rings between a worker and one of another process.
pub(crate) struct Far {
    pub to: Ring,
    pub from: Ring,
    /// The other process is lost or has written something impossible: no more packets are sent to it.
    pub lost: bool,
}

/// A worker's ends of the rings to all others: to workers of this process, to workers of other processes.
pub(crate) type Ends = (Vec<Option<RingEnds>>, Vec<Option<Far>>);

/// How long a worker waits for another process to read before it stops sending to that process.
const STALL: std::time::Duration = std::time::Duration::from_secs(10);

/// A packet that goes from one worker to another.
struct Crossing {
    packet: Packet,
    transit: Transit,
    /// When it comes out of its link.
    at: Time,
    /// The receiving end of the link, at the other worker; for a worker of another process, the link itself.
    link_rx: u32,
    page: Page,
    telemetry: Option<Box<Telemetry>>,
}

/// The ends of the rings between this many workers, by worker and other worker.
pub(crate) fn trunks(workers: usize) -> Vec<Vec<Option<RingEnds>>> {
    let mut ends: Vec<Vec<Option<RingEnds>>> =
        (0..workers).map(|_| std::iter::repeat_with(|| None).take(workers).collect()).collect();
    for one in 1..workers {
        let (before, rest) = ends.split_at_mut(one);
        for (other, others) in before.iter_mut().enumerate() {
            let (to_other, from_one) = RingBuffer::new(RING);
            let (to_one, from_other) = RingBuffer::new(RING);
            let (home_to_other, back_from_one) = RingBuffer::new(RING);
            let (home_to_one, back_from_other) = RingBuffer::new(RING);
            others[one] = Some(RingEnds { to: to_one, from: from_one, home: home_to_one, back: back_from_one });
            rest[0][other] =
                Some(RingEnds { to: to_other, from: from_other, home: home_to_other, back: back_from_other });
        }
    }
    ends
}

impl<'a> Wires<'a> {
    pub fn new(
        plan: &'a Plan,
        clock: &'a Clock,
        board: &'a Board,
        (trunks, far): Ends,
        cut: &'a Cut,
        me: usize,
        datagrams: Option<Datagrams>,
    ) -> Wires<'a> {
        Wires {
            plan,
            clock,
            board,
            content: plan.scenario.live.content,
            pages: Pages::new(me, plan.scenario.host.mtu.get() as usize),
            trunks,
            sent: vec![0; far.len()],
            taken: vec![0; far.len()],
            far,
            cut,
            me,
            refused: [0; Refusal::ALL.len()],
            entry: Vec::new(),
            held_since: None,
            held: VecDeque::new(),
            inbox: Inbox::new(plan.flows.len()),
            ended_flows: 0,
            seen: vec![(0, 0); plan.fabric.hosts as usize],
            datagrams,
            attached: None,
            counter: None,
            captures: None,
        }
    }

    /// Whether packets wait for room in a ring. If there is room now, they go first.
    #[inline]
    pub fn is_held_up(&mut self) -> bool {
        !self.held.is_empty() && self.push_held()
    }

    #[cold]
    fn push_held(&mut self) -> bool {
        while let Some((worker, crossing)) = self.held.pop_front() {
            if let Some(crossing) = self.push(worker, crossing) {
                self.held.push_front((worker, crossing));
                self.note_stall(worker);
                return true;
            }
            self.held_since = None;
        }
        false
    }

    /// Stops sending to a process that has read nothing for longer than [`STALL`].
    fn note_stall(&mut self, worker: u32) {
        let Some(far) = &mut self.far[worker as usize] else { return };
        let now = self.clock.machine();
        let stalled = now.saturating_sub(*self.held_since.get_or_insert(now)) > STALL;
        if stalled && !std::mem::replace(&mut far.lost, true) {
            self.refused[Refusal::Stalled as usize] += 1;
        }
    }

    /// Sends a packet to another worker. Returns the packet if the ring is full.
    #[inline]
    fn push(&mut self, worker: u32, crossing: Crossing) -> Option<Crossing> {
        if self.far[worker as usize].is_some() {
            return self.push_far(worker as usize, crossing);
        }
        let trunk = self.trunks[worker as usize].as_mut().expect("a link between workers has a ring");
        let at = crossing.at;
        match trunk.to.push(crossing) {
            Ok(()) => {
                self.board.wake(worker as usize, at);
                None
            }
            Err(PushError::Full(crossing)) => Some(crossing),
        }
    }

    /// The same for a worker of another process, which gets a copy of the packet.
    fn push_far(&mut self, worker: usize, crossing: Crossing) -> Option<Crossing> {
        let far = self.far[worker].as_mut().filter(|far| !far.lost);
        let pushed = far.map(|far| {
            let Crossing { packet, transit, at, link_rx, page, telemetry } = &crossing;
            let frame = Frame {
                link: LinkId(*link_rx),
                number: 0,
                gone: *at,
                tail_lag: transit.tail_lag,
                packet: *packet,
                journey: Journey::from(*transit),
                queue: transit.queue,
                retry: retry_number(self.plan, transit),
                telemetry: telemetry.as_deref().copied().unwrap_or_default(),
                content: page.content(packet.payload_bytes.into()).unwrap_or_default(),
            };
            self.entry.clear();
            codec(self.plan).emit_body(&frame, &mut Writer::new(&mut self.entry));
            far.to.push(&self.entry)
        });
        match pushed {
            Some(Ok(false)) => return Some(crossing),
            Some(Ok(true)) => {}
            Some(Err(refusal)) => {
                self.sent[worker] -= 1;
                self.refuse(worker, refusal);
            }
            // Nobody is there to read it.
            None => self.sent[worker] -= 1,
        }
        self.pages.free(crossing.page);
        None
    }

    fn refuse(&mut self, worker: usize, refusal: Refusal) {
        self.refused[refusal as usize] += 1;
        if let Some(far) = &mut self.far[worker]
            && refusal == Refusal::Index
        {
            far.lost = true;
        }
    }

    /// Whether other workers have sent something.
    #[inline]
    pub fn has_mail(&self) -> bool {
        self.trunks.iter().flatten().any(|trunk| !trunk.from.is_empty())
            || self.far.iter().flatten().any(|far| !far.lost && far.from.has_some())
    }

    /// Delivers the packets that a worker of another process has sent. Nothing that it writes is trusted.
    fn take_in_far(links: &mut Links<Self>, worker: usize) {
        let mut entry = std::mem::take(&mut links.carrier.entry);
        while let Some(far) = links.carrier.far[worker].as_mut().filter(|far| !far.lost) {
            let taken = match far.from.pop(&mut entry) {
                Ok(false) => break,
                Ok(true) => Self::put_far(links, worker, &entry),
                Err(refusal) => Err(refusal),
            };
            links.carrier.taken[worker] += 1;
            if let Err(refusal) = taken {
                links.carrier.refuse(worker, refusal);
            }
        }
        links.carrier.entry = entry;
    }

    fn put_far(links: &mut Links<Self>, worker: usize, entry: &[u8]) -> Result<(), Refusal> {
        let Wires { plan, cut, me, pages, .. } = &mut links.carrier;
        let Frame { link, gone: at, tail_lag, packet, journey, queue, retry, telemetry, content, .. } =
            codec(plan).parse_body(entry)?;
        let ends = plan.fabric.link(link);
        if (cut.part_of(ends.from), cut.part_of(ends.to)) != (worker, *me) {
            return Err(Refusal::Link);
        }
        if !is_attached_if_outside(plan, &packet) {
            return Err(Refusal::Host);
        }
        let link_rx = cut.link_rx_of(link);
        let end = &mut links.link_rxs[link_rx as usize];
        // What comes out of a link comes out in order.
        if at < end.receiver.last {
            return Err(Refusal::Times);
        }
        end.receiver.last = at;
        if !end.up {
            end.lose(&packet);
            return Ok(());
        }
        let Journey { sent, queued, serialised } = journey;
        let mut transit = Transit::leaving(sent);
        (transit.queued, transit.serialised) = (queued, serialised);
        (transit.tail_lag, transit.queue, transit.in_port) = (tail_lag, queue, retry);
        let id = links.pool.insert(packet, transit);
        if packet.has(flags::TELEMETRY) {
            *links.pool.telemetry_mut(id) = telemetry;
        }
        if !content.is_empty() {
            if content.len() > pages.room() {
                links.pool.remove(id);
                return Err(Refusal::Length);
            }
            pages.fresh(id, content.len()).copy_from_slice(content);
        } else {
            pages.clear(id);
        }
        links.put(link_rx, id, at);
        Ok(())
    }

    /// These processes are lost. Gives the ends of links between them and this worker, and the routes around them.
    pub fn cut_off(&mut self, dead: u64) -> (Vec<u32>, Vec<u32>, Arc<Routes>) {
        let is_dead = |node| dead >> self.board.process_of(self.cut.part_of(node)) & 1 != 0;
        for (worker, far) in self.far.iter_mut().enumerate() {
            if let Some(far) = far
                && dead >> self.board.process_of(worker) & 1 != 0
            {
                far.lost = true;
            }
        }
        let fabric = &self.plan.fabric;
        if let Some(counter) = &mut self.counter {
            counter.bury(&self.plan.flows, |host| is_dead(fabric.host_node(host)));
        }
        let (mut link_rxs, mut link_txs, mut failures) = (Vec::new(), Vec::new(), Failures::default());
        for (id, link) in fabric.links.iter().enumerate() {
            let (id, from, to) = (LinkId::from(id), is_dead(link.from), is_dead(link.to));
            if from || to {
                failures.links.insert(id);
            }
            if from && self.cut.part_of(link.to) == self.me {
                link_rxs.push(self.cut.link_rx_of(id));
            }
            if to && self.cut.part_of(link.from) == self.me {
                link_txs.push(self.cut.link_tx_of(id));
            }
        }
        (link_rxs, link_txs, Arc::new(Routes::compute(fabric, &failures)))
    }

    /// Delivers the packets that other workers have sent, and returns their pages.
    pub fn take_in(links: &mut Links<Self>) {
        for worker in 0..links.carrier.trunks.len() {
            while let Some(crossing) = links.carrier.trunks[worker].as_mut().and_then(|trunk| trunk.from.pop().ok()) {
                links.carrier.taken[worker] += 1;
                Self::put(links, crossing);
            }
            if links.carrier.far[worker].is_some() {
                Self::take_in_far(links, worker);
            }
        }
        links.carrier.return_pages();
    }

    /// The run is over: the packets that found no room in the rings to other workers of this process, with the receiver
    /// of each.
    pub fn take_held(&mut self) -> Vec<(usize, Held)> {
        let held = std::mem::take(&mut self.held).into_iter();
        let (far, near): (VecDeque<_>, VecDeque<_>) =
            held.partition(|(worker, _)| self.far[*worker as usize].is_some());
        self.held = far;
        near.into_iter().map(|(worker, crossing)| (worker as usize, Held(crossing))).collect()
    }

    /// The run is over: delivers a packet for which another worker found no room in the ring.
    pub fn put_held(links: &mut Links<Self>, Held(crossing): Held) {
        Self::put(links, crossing);
    }

    fn put(links: &mut Links<Self>, Crossing { packet, transit, at, link_rx, page, telemetry }: Crossing) {
        let end = &mut links.link_rxs[link_rx as usize];
        if !end.up {
            end.lose(&packet);
            links.carrier.pages.free(page);
            return;
        }
        let id = links.pool.insert(packet, transit);
        if let Some(telemetry) = telemetry {
            *links.pool.telemetry_mut(id) = *telemetry;
        }
        links.carrier.pages.come(id, page);
        links.put(link_rx, id, at);
    }

    /// Returns pages to the workers that own them, and takes back own pages. A page for which a ring has no room is
    /// freed, which does no harm.
    pub fn return_pages(&mut self) {
        while let Some((home, page)) = self.pages.next_foreign() {
            if let Some(trunk) = self.trunks.get_mut(home).and_then(Option::as_mut) {
                let _ = trunk.home.push(page);
            }
        }
        for trunk in self.trunks.iter_mut().flatten() {
            while let Ok(page) = trunk.back.pop() {
                self.pages.free(page);
            }
        }
    }

    /// A packet leaves on a link that is captured.
    #[cold]
    fn capture(links: &mut Links<Self>, link_tx: u32, gone: Time, id: PacketId) {
        let Slot { packet, transit } = *links.pool.get(id);
        if RetryMessage::of(&packet).is_some() {
            return; // ordered sets between packets, which no capture of a wire shows
        }
        let last = gone + transit.tail_lag.time();
        let wires = &mut links.carrier;
        let carried = wires.has_content(&packet);
        let content = wires.pages.content(id, usize::from(packet.payload_bytes)).filter(|_| carried);
        if let Some(captures) = &mut wires.captures {
            captures.note(wires.plan, link_tx, last, &packet, content);
        }
    }

    /// Whether a packet of this worker has bytes on a page.
    fn has_content(&self, packet: &Packet) -> bool {
        match self.offset_of_content(packet) {
            Some(offset) => self.datagrams.is_some() || self.is_carried(packet.flow, offset),
            None => is_outside(self.plan, packet),
        }
    }

    /// Whether a packet has content: those of programs' messages always do.
    #[inline]
    fn is_carried(&self, flow: FlowId, offset: u64) -> bool {
        content::is_carried(self.content, flow, offset) || self.plan.flows.place_added(flow).is_some()
    }

    /// Where in its message the content of a packet begins, in bytes; none if the packet has no content.
    #[inline]
    fn offset_of_content(&self, packet: &Packet) -> Option<u64> {
        let transport = self.plan.transports.get(usize::from(packet.transport))?;
        (packet.payload_bytes > 0).then(|| transport.payload_offset(packet))
    }
}

/// The number of a packet under link-level retry. It is in the field that otherwise has the packet's ingress port.
pub(crate) fn retry_number(plan: &Plan, transit: &Transit) -> u16 {
    if plan.scenario.link.llr.is_some() { transit.in_port } else { 0 }
}

/// A packet that could not be sent before the run was over.
pub(crate) struct Held(Crossing);

impl Carrier for Wires<'_> {
    type Sender = Sender;
    type Receiver = Read;

    #[inline]
    fn carry(links: &mut Links<Self>, link_tx: u32, departure: Departure, id: PacketId) {
        if links.carrier.captures.as_ref().is_some_and(|captures| captures.wants(link_tx)) {
            Wires::capture(links, link_tx, departure.gone, id);
        }
        match links.link_txs[link_tx as usize].sender {
            Sender::Here(link_rx) => links.put(link_rx, id, departure.at),
            Sender::There { worker, link_rx } | Sender::Far { worker, link: link_rx } => {
                let Slot { packet, transit } = links.pool.remove(id);
                let telemetry = packet.has(flags::TELEMETRY).then(|| Box::new(*links.pool.telemetry_mut(id)));
                let wires = &mut links.carrier;
                let page = if packet.payload_bytes > 0 { wires.pages.leave(id) } else { Page::default() };
                let crossing = Crossing { packet, transit, at: departure.at, link_rx, page, telemetry };
                wires.sent[worker as usize] += 1;
                if wires.is_held_up() {
                    wires.held.push_back((worker, crossing));
                } else if let Some(crossing) = wires.push(worker, crossing) {
                    wires.held.push_back((worker, crossing));
                }
            }
            Sender::Socket(_) => Datagrams::send(links, link_tx, departure, id),
        }
    }

    #[inline]
    fn made(links: &mut Links<Self>, id: PacketId) {
        let packet = links.pool.get(id).packet;
        let wires = &mut links.carrier;
        if let Some(attached) = wires.attached.as_mut().filter(|attached| attached.has_made(&packet)) {
            attached.write(&packet, wires.pages.fresh(id, usize::from(packet.payload_bytes)));
            return;
        }
        let Some(offset) = wires.offset_of_content(&packet) else { return };
        if let Some(counter) = wires.counter.as_ref().filter(|_| wires.plan.flows.place_added(packet.flow).is_some()) {
            let bytes = usize::from(packet.payload_bytes);
            match counter.part(packet.flow, offset, bytes) {
                Some(part) => wires.pages.fresh(id, bytes).copy_from_slice(part),
                // A message that is forgotten; a datagram has all its bytes, and the message's checksum is wrong then.
                None if wires.datagrams.is_some() => wires.pages.fresh(id, bytes).fill(0),
                None => {}
            }
        } else if content::is_carried(wires.content, packet.flow, offset) {
            content::write(packet.flow, offset, wires.pages.fresh(id, usize::from(packet.payload_bytes)));
        } else if wires.datagrams.is_some() {
            // A datagram has all its bytes.
            wires.pages.fresh(id, usize::from(packet.payload_bytes)).fill(0);
        }
    }

    #[inline]
    fn taken(links: &mut Links<Self>, id: PacketId, packet: &Packet) {
        let wires = &mut links.carrier;
        if let Some(attached) = wires.attached.as_mut().filter(|attached| attached.has_made(packet)) {
            attached.come(packet, wires.pages.content_mut(id, usize::from(packet.payload_bytes)));
            wires.pages.read(id);
            return;
        }
        let Some(offset) = wires.offset_of_content(packet) else { return };
        let count = packet.payload_bytes;
        if let Some(counter) = wires.counter.as_mut().filter(|_| wires.plan.flows.place_added(packet.flow).is_some()) {
            let content = wires.pages.content(id, usize::from(count));
            counter.take(&wires.plan.flows, packet.flow, offset, content, &mut wires.inbox);
            wires.pages.read(id);
        } else if content::is_carried(wires.content, packet.flow, offset) {
            match wires.pages.content(id, usize::from(count)) {
                None => wires.inbox.lacks(),
                content => wires.inbox.take(&wires.plan.flows, packet.flow, offset, count, content),
            }
            wires.pages.read(id);
        } else {
            wires.inbox.take(&wires.plan.flows, packet.flow, offset, count, None);
        }
    }

    fn copied(links: &Links<Self>, id: PacketId) -> Option<Box<[u8]>> {
        let packet = &links.pool.get(id).packet;
        let wires = &links.carrier;
        let content = wires.pages.content(id, usize::from(packet.payload_bytes))?;
        wires.has_content(packet).then(|| content.into())
    }

    fn restored(links: &mut Links<Self>, id: PacketId, copy: Option<&[u8]>) {
        let pages = &mut links.carrier.pages;
        match copy {
            Some(copy) => pages.fresh(id, copy.len()).copy_from_slice(copy),
            None => pages.clear(id),
        }
    }

    /// Records events of flows with the time of the machine's clock.
    #[inline]
    fn acted(links: &mut Links<Self>, now: Time, host: &mut Host) {
        let wires = &mut links.carrier;
        let (seen, ended) = wires.seen[host.id().index()];
        if seen != host.records.len() || ended != host.ended {
            wires.note(now, host);
        }
        if let Some(attached) = &mut wires.attached {
            let came = host.take_came();
            if host.limits_intake() && came != ReceiveOutcome::default() {
                attached.taken_in(host.id(), came);
            }
        }
    }
}

impl Wires<'_> {
    fn note(&mut self, now: Time, host: &mut Host) {
        let new = (host.records.len(), host.ended);
        let (records, ended) = std::mem::replace(&mut self.seen[host.id().index()], new);
        self.ended_flows += host.ended - ended;
        for record in &mut host.records[records..] {
            let starts = matches!(record.fate, FlowEvent::Started);
            if !starts {
                // It begins when the scenario, or a program, says.
                record.at = self.clock.told_at(now);
            }
            if let (Some(_), Some(counter)) = (self.plan.flows.place_added(record.flow), &mut self.counter) {
                counter.note(record, &mut self.inbox);
            } else if let FlowEvent::Delivered { .. } = record.fate {
                self.inbox.delivered(&self.plan.flows, record.flow);
            }
        }
    }
}
