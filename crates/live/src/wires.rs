//! What links are: where both ends are on one worker, memory; between workers, rings; or datagrams.
//!
//! On one worker a packet stays in its place in the pool, and its content in its [page](crate::pages), from hop to hop.
//! To another worker goes a descriptor: the packet, what it has been through, and whose page its content is on. There
//! is one ring of descriptors for each pair of workers, with one that writes and one that reads, so that a worker that
//! has a thousand links to another looks at one place. A ring has room for [`RING`] packets; whoever finds it full
//! keeps what it has and does nothing else until there is room.

use driver::{Carrier, Departure, Links};
use node::packet::flags;
use node::pool::{PacketId, Slot, Transit};
use node::{Packet, Telemetry};
use rtrb::{Consumer, Producer, PushError, RingBuffer};
use run::{FlowEvent, Host, Plan};
use scenario::ContentCheck;
use std::collections::VecDeque;
use units::Time;

use crate::attach::Attached;
use crate::board::Board;
use crate::capture::Captures;
use crate::clock::Clock;
use crate::content::{self, Inbox};
use crate::datagrams::{Count, Datagrams, Read, Sent};
use crate::pages::{Page, Pages};

/// Packets that may be under way from one worker to another, beside those that the other has taken. So few in tests
/// that rings are full time and again.
const RING: usize = if cfg!(test) { 4 } else { 1024 };

/// Carries packets of one worker.
pub(crate) struct Wires<'a> {
    pub plan: &'a Plan,
    pub clock: &'a Clock,
    board: &'a Board,
    content: ContentCheck,
    pub pages: Pages,
    /// By other worker; none for itself.
    trunks: Vec<Option<Trunk>>,
    /// Packets that went to other workers, and that came from them.
    pub sent: u64,
    pub taken: u64,
    /// Packets that found their ring full: to whom, and what.
    held: VecDeque<(u32, Crossing)>,
    pub inbox: Inbox,
    /// Per flow, how far the clock was past its delivery when that was done, in picoseconds.
    pub late_ps: Vec<u64>,
    pub ended_flows: u64,
    /// By host, how many of its records have been seen, and how many of its flows had ended.
    seen: Vec<(usize, u64)>,
    /// Where links are sockets.
    pub datagrams: Option<Datagrams>,
    /// Hosts of this worker that are devices of the machine.
    pub attached: Option<Box<Attached>>,
    /// Links of this worker that are captured.
    pub captures: Option<Box<Captures>>,
}

/// Where a link's receiving end is, for its sender.
pub(crate) enum Sender {
    /// On this worker.
    Here(u32),
    /// On another, by a ring.
    There { worker: u32, pipe: u32 },
    /// Behind a socket.
    Socket(Sent),
}

impl Sender {
    /// What has been sent, if it is a socket.
    pub fn sent(&self) -> Option<Count> {
        match self {
            Sender::Socket(sent) => Some(sent.count),
            Sender::Here(_) | Sender::There { .. } => None,
        }
    }
}

/// What two workers have between them: one end.
pub(crate) struct Trunk {
    to: Producer<Crossing>,
    from: Consumer<Crossing>,
    /// Pages that have been read go home.
    home: Producer<Page>,
    back: Consumer<Page>,
}

/// A packet that goes from one worker to another.
struct Crossing {
    packet: Packet,
    transit: Transit,
    /// When it comes out of its link.
    at: Time,
    /// The link's end there.
    pipe: u32,
    page: Page,
    telemetry: Option<Box<Telemetry>>,
}

/// The ends of the rings between so many workers, by worker and other worker.
pub(crate) fn trunks(workers: usize) -> Vec<Vec<Option<Trunk>>> {
    let mut ends: Vec<Vec<Option<Trunk>>> =
        (0..workers).map(|_| std::iter::repeat_with(|| None).take(workers).collect()).collect();
    for one in 1..workers {
        let (before, rest) = ends.split_at_mut(one);
        for (other, others) in before.iter_mut().enumerate() {
            let (to_other, from_one) = RingBuffer::new(RING);
            let (to_one, from_other) = RingBuffer::new(RING);
            let (home_to_other, back_from_one) = RingBuffer::new(RING);
            let (home_to_one, back_from_other) = RingBuffer::new(RING);
            others[one] = Some(Trunk { to: to_one, from: from_one, home: home_to_one, back: back_from_one });
            rest[0][other] = Some(Trunk { to: to_other, from: from_other, home: home_to_other, back: back_from_other });
        }
    }
    ends
}

impl<'a> Wires<'a> {
    pub fn new(
        plan: &'a Plan,
        clock: &'a Clock,
        board: &'a Board,
        trunks: Vec<Option<Trunk>>,
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
            sent: 0,
            taken: 0,
            held: VecDeque::new(),
            inbox: Inbox::new(plan.flows.len()),
            late_ps: vec![u64::MAX; plan.flows.len()],
            ended_flows: 0,
            seen: vec![(0, 0); plan.fabric.hosts as usize],
            datagrams,
            attached: None,
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
                return true;
            }
        }
        false
    }

    /// Gives back what finds no room.
    #[inline]
    fn push(&mut self, worker: u32, crossing: Crossing) -> Option<Crossing> {
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

    /// Whether other workers have sent something.
    #[inline]
    pub fn has_mail(&self) -> bool {
        self.trunks.iter().flatten().any(|trunk| !trunk.from.is_empty())
    }

    /// Takes in what other workers have sent, and sends their pages home.
    pub fn take_in(links: &mut Links<Self>) {
        for worker in 0..links.carrier.trunks.len() {
            while let Some(crossing) = links.carrier.trunks[worker].as_mut().and_then(|trunk| trunk.from.pop().ok()) {
                links.carrier.taken += 1;
                Self::put(links, crossing);
            }
        }
        links.carrier.return_pages();
    }

    /// The run is over: what this worker could not send any more, by worker.
    pub fn take_held(&mut self) -> Vec<(usize, Held)> {
        self.held.drain(..).map(|(worker, crossing)| (worker as usize, Held(crossing))).collect()
    }

    /// The run is over: takes what another worker could not send.
    pub fn put_held(links: &mut Links<Self>, Held(crossing): Held) {
        Self::put(links, crossing);
    }

    fn put(links: &mut Links<Self>, Crossing { packet, transit, at, pipe, page, telemetry }: Crossing) {
        let end = &mut links.pipes[pipe as usize];
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
        links.put(pipe, id, at);
    }

    /// Pages of others go home; where a ring has no room, to the allocator, which is as good. Own pages come back.
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
    fn capture(links: &mut Links<Self>, outlet: u32, gone: Time, id: PacketId) {
        let packet = links.pool.get(id).packet;
        let wires = &mut links.carrier;
        let carried = match wires.offset_of_content(&packet) {
            Some(offset) => wires.datagrams.is_some() || content::is_carried(wires.content, packet.flow, offset),
            None => wires.plan.outside == Some(packet.transport),
        };
        let content = wires.pages.content(id, usize::from(packet.payload_bytes)).filter(|_| carried);
        if let Some(captures) = &mut wires.captures {
            captures.note(wires.plan, outlet, gone, &packet, content);
        }
    }

    /// The content that a packet should have, by its place in the pool: where in its message it begins.
    #[inline]
    fn offset_of_content(&self, packet: &Packet) -> Option<u64> {
        let transport = self.plan.transports.get(usize::from(packet.transport))?;
        (packet.payload_bytes > 0).then(|| transport.payload_offset(packet))
    }
}

/// A packet that could not be sent before the run was over.
pub(crate) struct Held(Crossing);

impl Carrier for Wires<'_> {
    type Sender = Sender;
    type Receiver = Read;

    #[inline]
    fn carry(links: &mut Links<Self>, outlet: u32, departure: Departure, id: PacketId) {
        if links.carrier.captures.as_ref().is_some_and(|captures| captures.wants(outlet)) {
            Wires::capture(links, outlet, departure.gone, id);
        }
        match links.outlets[outlet as usize].sender {
            Sender::Here(pipe) => links.put(pipe, id, departure.at),
            Sender::There { worker, pipe } => {
                let Slot { packet, transit } = links.pool.remove(id);
                let telemetry = packet.has(flags::TELEMETRY).then(|| Box::new(*links.pool.telemetry_mut(id)));
                let wires = &mut links.carrier;
                let page = if packet.payload_bytes > 0 { wires.pages.leave(id) } else { Page::default() };
                let crossing = Crossing { packet, transit, at: departure.at, pipe, page, telemetry };
                wires.sent += 1;
                if wires.is_held_up() {
                    wires.held.push_back((worker, crossing));
                } else if let Some(crossing) = wires.push(worker, crossing) {
                    wires.held.push_back((worker, crossing));
                }
            }
            Sender::Socket(_) => Datagrams::send(links, outlet, departure.gone, id),
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
        if content::is_carried(wires.content, packet.flow, offset) {
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
            attached.give(packet, wires.pages.content_mut(id, usize::from(packet.payload_bytes)));
            wires.pages.read(id);
            return;
        }
        let Some(offset) = wires.offset_of_content(packet) else { return };
        let count = packet.payload_bytes;
        if content::is_carried(wires.content, packet.flow, offset) {
            match wires.pages.content(id, usize::from(count)) {
                None => wires.inbox.lacks(),
                content => wires.inbox.take(&wires.plan.flows, packet.flow, offset, count, content),
            }
            wires.pages.read(id);
        } else {
            wires.inbox.take(&wires.plan.flows, packet.flow, offset, count, None);
        }
    }

    /// What happened to flows is noted by the clock.
    #[inline]
    fn acted(links: &mut Links<Self>, now: Time, host: &mut Host) {
        let wires = &mut links.carrier;
        let (seen, ended) = wires.seen[host.id().index()];
        if seen != host.records.len() || ended != host.ended {
            wires.note(now, host);
        }
    }
}

impl Wires<'_> {
    fn note(&mut self, now: Time, host: &mut Host) {
        let new = (host.records.len(), host.ended);
        let (records, ended) = std::mem::replace(&mut self.seen[host.id().index()], new);
        self.ended_flows += host.ended - ended;
        for record in &mut host.records[records..] {
            if let FlowEvent::Started = record.fate {
                continue; // it begins when the scenario says
            }
            record.at = self.clock.told_at(now);
            if let FlowEvent::Delivered { .. } = record.fate {
                self.inbox.delivered(&self.plan.flows, record.flow);
                self.late_ps[record.flow.index()] = record.at.since(now).ps();
            }
        }
    }
}
