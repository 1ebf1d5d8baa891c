mod cpu;
mod link;
mod repeat;
mod shown;
mod turns;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;

use fabric::Routes;
use node::cpu::Cpu;
use node::link::Cause;
use node::packet::{CLASSES, flags};
use node::pool::Transit;
use node::{Cx, Endpoint, Event, Gate, Input, LostFlows, Message, NicControl, Packet, Shaper, Telemetry};
use rustc_hash::{FxHashMap, FxHashSet};
use units::{Duration, FlowId, HostId, PortId, Stream, Time};

use self::link::Link;
pub use self::turns::Starts;
use crate::jobs::HostJobs;
use crate::outcome::reasons;
use crate::{Entities, FlowEvent, FlowInfo, FlowRecord, FlowTable, Journey, Measured, Unlisted};
use node::nic::{Nic, ReceiveLimit};
use scenario::ResubmitPolicy;

/// A host: its endpoints, the messages that its applications will hand in, and what became of them. A driver hands in
/// packets and the time, and pulls packets.
#[derive(node::State)]
#[state(given(()), first(self.visit_told(walk)))]
pub struct Host {
    id: HostId,
    transports: Vec<Slot>,
    /// The limiter of its rate, if it has one.
    shaper: Option<Box<dyn Shaper>>,
    /// The entities, which give packets their tags, if there are any.
    entities: Option<Arc<Entities>>,
    /// Packets that a driver has handed in, where the host is attached to something outside.
    #[state(skip("refused"))]
    outside: Option<Box<Outside>>,
    /// Whose turn it is at the NIC.
    turn: usize,
    /// The transport that is always asked first, if one reserves the first classes.
    first: Option<usize>,
    flows: Arc<FlowTable>,
    /// Flows still to start, earliest first; of those that start at one instant, by their turns.
    #[state(same(self.starts.len()))]
    starts: BinaryHeap<Reverse<(Time, u32, FlowId)>>,
    /// The seed of turns, where they are drawn.
    turns: Option<u64>,
    /// Flows that start when another has completed, by that other.
    #[state(same(self.waiting.len()))]
    waiting: FxHashMap<FlowId, Vec<FlowId>>,
    /// The ranks of jobs that are here, if any are.
    #[state(given(&*self.flows))]
    jobs: Option<Box<HostJobs>>,
    /// Its NIC.
    nic: Link,
    /// Whether something beside its transports wakes it: a shaper, the limit of its intake, its NIC.
    #[state(built("it never changes"))]
    keeps_time: bool,
    /// The limit of its intake, if it takes packets in more slowly than its link brings them.
    #[state(skip("refused"))]
    receive_limit: Option<Box<ReceiveLimit>>,
    /// Its cores, if what software does takes time.
    #[state(skip("refused"))]
    cpu: Option<Box<Cpu>>,
    #[state(built("it is empty between events"))]
    events: Vec<Event>,
    /// By class, how messages that were rejected or given up are submitted again.
    again: Arc<Vec<Vec<ResubmitPolicy>>>,
    /// By message of this host that was submitted again: how often.
    #[state(same(self.resubmitted.len()))]
    resubmitted: FxHashMap<FlowId, u32>,
    /// Messages that have been delivered here, of classes that may submit again: no application gets one twice.
    #[state(same(self.delivered.len()))]
    delivered: FxHashSet<FlowId>,
    /// Events of flows here that have a row each in results.
    #[state(skip("how many there are is told"))]
    pub records: Vec<FlowRecord>,
    /// Events of the others.
    #[state(skip("a run that skips lists all flows"))]
    pub unlisted: Unlisted,
    /// The transports' measurements of flows here.
    #[state(skip("how many there are is told"))]
    pub measures: Vec<Measured>,
    /// Packets that came in.
    #[state(count)]
    pub received_packets: u64,
    /// Bytes of them, headers counted.
    #[state(count)]
    pub received_bytes: u64,
    /// Packets that went out.
    #[state(count)]
    pub sent_packets: u64,
    /// Bytes of them, headers counted.
    #[state(count)]
    pub sent_bytes: u64,
    /// Flows of this host that have ended: completed, rejected or failed; and parts of jobs here whose ranks have done
    /// everything.
    #[state(told)]
    pub ended: u64,
    /// Digest of the packets that arrived, for a driver that keeps one.
    #[state(skip("it is made anew for what was skipped"))]
    pub digest: u64,
    /// Flows of the packets that were lost here: at the rate limiter, at the dead link, at the intake.
    pub lost_flows: LostFlows,
}

/// Packets of an attached host: they come from a device of the machine, and not from a transport.
#[derive(node::Saved)]
struct Outside {
    /// The number that these packets have for a transport.
    transport: u8,
    /// Their class.
    class: u8,
    /// Packets that wait for the NIC.
    packets: VecDeque<Packet>,
    /// Packets that the NIC has taken and holds, because their flow is paused.
    held: usize,
    /// The fate of packets that arrived for it since the driver last asked.
    came: ReceiveOutcome,
}

/// The fate of packets for an attached host that takes them in more slowly than they come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, node::Saved)]
pub struct ReceiveOutcome {
    /// How many of the waiting packets were taken in, from the first on.
    pub taken: u32,
    /// The last that came found no room to wait.
    pub lost: bool,
}

#[derive(node::State)]
#[state(given(()))]
struct Slot {
    endpoint: Box<dyn Endpoint>,
    /// Added to the class of its packets, because another transport has the first classes for itself.
    beneath: u8,
    random: Stream,
    /// Messages that were submitted to it after they had been rejected or given up.
    #[state(count)]
    submitted_again: u64,
    /// Messages that it delivered though the application had them.
    #[state(count)]
    delivered_again: u64,
}

impl Host {
    /// A host before anything has happened.
    pub fn new(
        id: HostId,
        endpoints: Vec<Box<dyn Endpoint>>,
        shaper: Option<Box<dyn Shaper>>,
        nic: Option<Box<dyn NicControl>>,
        entities: Option<Arc<Entities>>,
        flows: Arc<FlowTable>,
        seed: u64,
    ) -> Host {
        let mut starts = Vec::new();
        let mut waiting: FxHashMap<FlowId, Vec<FlowId>> = FxHashMap::default();
        for &flow in flows.of(id) {
            let info = flows.get(flow);
            match (info.after, info.begins()) {
                (Some(other), _) => waiting.entry(other).or_default().push(flow),
                (None, Some(start)) => starts.push(Reverse((start, 0, flow))),
                // Its job says when.
                (None, None) => {}
            }
        }
        let slot = |(index, endpoint)| Slot {
            endpoint,
            beneath: 0,
            random: Stream::new(seed, (index as u64) << 32 | u64::from(id.0), "endpoint"),
            submitted_again: 0,
            delivered_again: 0,
        };
        let keeps_time = shaper.is_some() || nic.as_ref().is_some_and(|nic| nic.keeps_time());
        Host {
            id,
            transports: endpoints.into_iter().enumerate().map(slot).collect(),
            shaper,
            entities,
            outside: None,
            turn: 0,
            first: None,
            flows,
            starts: starts.into(),
            turns: None,
            waiting,
            jobs: None,
            keeps_time,
            nic: nic.map_or(Link::Open, |nic| Link::Controlled(Nic::new(nic))),
            receive_limit: None,
            cpu: None,
            events: Vec::new(),
            again: Arc::default(),
            resubmitted: FxHashMap::default(),
            delivered: FxHashSet::default(),
            records: Vec::new(),
            unlisted: Unlisted::default(),
            measures: Vec::new(),
            received_packets: 0,
            received_bytes: 0,
            sent_packets: 0,
            sent_bytes: 0,
            ended: 0,
            digest: 0,
            lost_flows: LostFlows::default(),
        }
    }

    /// The same host, with these ranks of jobs.
    pub(crate) fn with_jobs(self, jobs: Option<HostJobs>) -> Host {
        Host { jobs: jobs.map(Box::new), ..self }
    }

    /// The same host, which takes packets in at `rate` at most and has room for `buffer` of those that wait.
    pub(crate) fn with_receive_limit(mut self, receive_limit: Option<ReceiveLimit>) -> Host {
        self.receive_limit = receive_limit.map(Box::new);
        self.keeps_time |= self.receive_limit.is_some();
        self
    }

    /// The same host, where a transport has the first classes for itself: its packets go first, and those of all others
    /// below.
    pub(crate) fn with_reserved(mut self, reserved: Option<(usize, u8)>) -> Host {
        if let Some((first, classes)) = reserved {
            self.first = Some(first);
            for (index, slot) in self.transports.iter_mut().enumerate() {
                slot.beneath = if index == first { 0 } else { classes };
            }
        }
        self
    }

    /// The same host, which notes the flows of packets that are lost here.
    pub(crate) fn with_lost_flows(self, lost_flows: LostFlows) -> Host {
        Host { lost_flows, ..self }
    }

    /// The same host, into which a driver hands packets that name this transport, if any.
    pub(crate) fn with_outside(mut self, transport: Option<u8>, class: u8) -> Host {
        let outside = |transport| {
            Box::new(Outside { transport, class, packets: VecDeque::new(), held: 0, came: ReceiveOutcome::default() })
        };
        self.outside = transport.map(outside);
        self
    }

    /// A program sends a message: a flow that was not known beforehand. It starts when the host is woken.
    pub fn submit(&mut self, now: Time, flow: FlowId) {
        self.starts.push(Reverse((now, 0, flow)));
    }

    /// Queues a packet from outside for the NIC, which serves such packets and the transports in turn. Sets its class
    /// and its transport.
    pub fn offer(&mut self, mut packet: Packet) {
        let outside = self.outside.as_mut().expect("only attached hosts are offered packets");
        (packet.transport, packet.class, packet.src) = (outside.transport, outside.class, self.id);
        outside.packets.push_back(packet);
    }

    /// How many packets from outside wait for the NIC, or in it because they are paused.
    #[inline]
    pub fn offered(&self) -> usize {
        self.outside.as_ref().map_or(0, |outside| outside.packets.len() + outside.held)
    }

    /// Whether arriving packets wait until the host has taken in those before them (`host.intake_rate`).
    pub fn limits_intake(&self) -> bool {
        self.receive_limit.is_some()
    }

    /// The fate of packets from outside that came to this host since the last call. A driver that keeps their content
    /// asks after each packet.
    #[inline]
    pub fn take_came(&mut self) -> ReceiveOutcome {
        self.outside.as_mut().map_or(ReceiveOutcome::default(), |outside| std::mem::take(&mut outside.came))
    }

    /// The same host, whose applications submit messages again that were rejected or given up: how, by class.
    pub(crate) fn with_again(self, again: Arc<Vec<Vec<ResubmitPolicy>>>) -> Host {
        Host { again, ..self }
    }

    /// Which host.
    pub fn id(&self) -> HostId {
        self.id
    }

    /// The time of the host's next own event: a flow's start or a deadline.
    #[inline]
    pub fn next_at(&self) -> Time {
        let start = self.starts_at();
        let start = if self.keeps_time { self.parts_at().min(start) } else { start };
        self.transports_at().min(start)
    }

    /// The first of its transports' deadlines.
    #[inline]
    pub fn transports_at(&self) -> Time {
        self.transports.iter().map(|slot| slot.endpoint.poll_at().time()).fold(Time::MAX, Time::min)
    }

    /// The initial telemetry of a packet of this host that is flagged for telemetry.
    #[cold]
    pub fn carries(&mut self, packet: &Packet) -> Telemetry {
        self.transports[usize::from(packet.transport)].endpoint.carries(packet)
    }

    /// A packet has come in whole, with what it has gathered if it is flagged for that.
    #[inline]
    pub fn receive(&mut self, now: Time, packet: &Packet, transit: &Transit, telemetry: Option<&Telemetry>) {
        self.received_packets += 1;
        self.received_bytes += u64::from(packet.wire_bytes);
        if let Some(nic) = self.nic.at(PortId(u32::from(transit.in_port))) {
            nic.control.comes(packet, transit.queue);
        }
        match &mut self.receive_limit {
            None => self.take_in(now, packet, transit, telemetry),
            Some(receive_limit) => {
                let kept = receive_limit.push(now, *packet, *transit, telemetry.copied());
                if !kept {
                    self.lost_flows.note(packet);
                }
                if !kept && let Some(nic) = self.nic.at(PortId(u32::from(transit.in_port))) {
                    nic.control.taken(packet, transit.queue);
                }
                if !kept && let Some(outside) = self.outside.as_mut().filter(|of| of.transport == packet.transport) {
                    outside.came.lost = true;
                }
                self.drain_received(now);
            }
        }
    }

    #[inline]
    fn take_in(&mut self, now: Time, packet: &Packet, transit: &Transit, telemetry: Option<&Telemetry>) {
        if let Some(nic) = self.nic.at(PortId(u32::from(transit.in_port))) {
            nic.control.taken(packet, transit.queue);
        }
        if let Some(shaper) = &mut self.shaper
            && !shaper.receive(now, packet)
        {
            return;
        }
        if let Some(outside) = self.outside.as_mut().filter(|outside| outside.transport == packet.transport) {
            outside.came.taken += 1;
            return; // its content is the driver's
        }
        match &self.cpu {
            None => self.reach(now, packet, transit, telemetry),
            Some(_) => self.come_to_cores(now, packet, transit, telemetry),
        }
    }

    /// A packet reaches its transport.
    #[inline]
    fn reach(&mut self, now: Time, packet: &Packet, transit: &Transit, telemetry: Option<&Telemetry>) {
        let transport = usize::from(packet.transport);
        if let Some(telemetry) = telemetry {
            self.transports[transport].endpoint.gathered(telemetry);
        }
        self.hand(now, transport, Input::Packet(packet), Some(transit));
    }

    /// Hands over the packets that the receive limit lets through by now. Tells each NIC how many bytes still wait, so
    /// that its flow control can pause or resume the switch.
    #[cold]
    fn drain_received(&mut self, now: Time) {
        let tell = |host: &mut Host| {
            let bytes = host.receive_limit.as_ref().map_or(0, |receive_limit| receive_limit.bytes);
            host.nic.each(|nic| nic.intake(now, bytes));
        };
        tell(self);
        while let Some(next) = self.receive_limit.as_mut().and_then(|receive_limit| receive_limit.pop(now)) {
            tell(self);
            self.take_in(now, &next.packet, &next.transit, next.telemetry.as_ref());
        }
    }

    /// The time of a flow's start or of a deadline has come.
    pub fn wake(&mut self, now: Time) {
        if self.keeps_time {
            self.nic.wake(now);
        }
        if self.receive_limit.is_some() {
            self.drain_received(now);
        }
        if self.cpu.is_some() {
            self.go_on(now);
        }
        self.tell_jobs(|jobs, start| if jobs.next_at() <= now { jobs.wake(now, start) } else { 0 }, now);
        while let Some(&Reverse((at, _, flow))) = self.starts.peek() {
            if at > now {
                break;
            }
            self.starts.pop();
            let info = self.flows.get(flow);
            let (fate, transport) = match self.resubmitted.get(&flow) {
                None => (FlowEvent::Started, info.transport),
                Some(&times) => {
                    let over = self.again[usize::from(info.class)][times as usize - 1].transport;
                    self.transports[usize::from(over)].submitted_again += 1;
                    (FlowEvent::Resubmitted, over)
                }
            };
            self.note(FlowRecord { flow, at: now, due: now, fate });
            match &mut self.cpu {
                None => self.submit_over(now, flow, transport),
                Some(cpu) => cpu.submit(now, flow, transport),
            }
        }
        for transport in 0..self.transports.len() {
            if self.transports[transport].endpoint.poll_at().time() <= now {
                self.hand(now, transport, Input::Deadline, None);
            }
        }
        if let Some(shaper) = &mut self.shaper {
            shaper.wake(now);
        }
        if self.cpu.is_some() {
            self.feed(now);
        }
    }

    /// A transport gets a message of an application.
    fn submit_over(&mut self, now: Time, flow: FlowId, transport: u8) {
        let FlowInfo { src, dst, bytes, class, .. } = self.flows.get(flow);
        let entities = self.entities.as_ref();
        let virtual_serialisation =
            entities.map_or(Duration::ZERO, |entities| entities.virtual_serialisation(flow, src, dst));
        let message = Message { flow, src, dst, bytes, class, virtual_serialisation };
        self.hand(now, usize::from(transport), Input::Send(&message), None);
    }

    fn note(&mut self, record: FlowRecord) {
        match self.flows.row(record.flow) {
            Some(_) => self.records.push(record),
            None => {
                let bytes = self.flows.try_get(record.flow).map_or(0, |flow| flow.bytes);
                self.unlisted.add(record.fate, record.at, bytes);
            }
        }
    }

    /// Tells the ranks here of something, and notes which flows start now because of it.
    #[inline]
    fn tell_jobs(&mut self, tell: impl FnOnce(&mut HostJobs, &mut dyn FnMut(FlowId)) -> u64, now: Time) {
        let Some(jobs) = &mut self.jobs else { return };
        let starts = &mut self.starts;
        self.ended += tell(jobs, &mut |flow| starts.push(Reverse((now, 0, flow))));
    }

    /// The next packet for the NIC of a host with one link.
    #[inline]
    pub fn pull(&mut self, now: Time) -> Option<Packet> {
        let packet = match (&mut self.nic, &self.shaper) {
            (Link::Open, None) => self.poll_endpoints(now)?,
            (Link::Open, Some(_)) => self.pull_shaped(now)?,
            (Link::Controlled(nic), _) => match nic.next_frame() {
                Some(frame) => return Some(frame),
                None => self.pull_let(now)?,
            },
            (Link::Several(_), _) => unreachable!("a host with several links is asked by pull_by"),
        };
        self.sent_packets += 1;
        self.sent_bytes += u64::from(packet.wire_bytes);
        Some(packet)
    }

    /// The next packet of a host with several links, and by which port it goes, of those that are `free` (as bits).
    pub fn pull_by(&mut self, now: Time, free: u64) -> Option<(PortId, Packet)> {
        let next = loop {
            let Link::Several(homes) = &mut self.nic else { unreachable!("a host with one link is asked by pull") };
            if let Some(next) = homes.next(free) {
                break next;
            }
            if free == 0 || homes.full() {
                return None;
            }
            let packet = self.pull_shaped(now)?;
            if let Link::Several(homes) = &mut self.nic
                && let Some(next) = homes.take_in(now, packet, free)
            {
                break next;
            }
        };
        if !next.1.has(flags::LINK_FRAME) {
            self.sent_packets += 1;
            self.sent_bytes += u64::from(next.1.wire_bytes);
        }
        Some(next)
    }

    /// The next packet that the link lets through.
    fn pull_let(&mut self, now: Time) -> Option<Packet> {
        // Packets of the transport with reserved classes are never held, and go before all held packets.
        if let Some(packet) = self.poll_first(now) {
            return Some(packet);
        }
        loop {
            let Link::Controlled(Nic { control, hold, .. }) = &mut self.nic else { return None };
            if let Some(packet) = hold.next(&**control) {
                self.note_held(&packet, |held| held.saturating_sub(1));
                return Some(packet);
            }
            let packet = self.pull_shaped(now)?;
            let Link::Controlled(Nic { control, hold, .. }) = &mut self.nic else { return None };
            match hold.pass(&**control, packet) {
                Some(packet) => return Some(packet),
                None => self.note_held(&packet, |held| held + 1),
            }
        }
    }

    /// Notes that the NIC holds one packet more or one less. Those from outside are counted ([`Host::offered`]), so
    /// that a driver need not take in everything from outside while they are paused.
    #[inline]
    fn note_held(&mut self, packet: &Packet, change: impl FnOnce(usize) -> usize) {
        if let Some(outside) = self.outside.as_mut().filter(|outside| outside.transport == packet.transport) {
            outside.held = change(outside.held);
        }
    }

    /// The next packet for the link. If there is a shaper, endpoints hand it all that they would send, and it chooses.
    fn pull_shaped(&mut self, now: Time) -> Option<Packet> {
        if self.shaper.is_none() {
            return self.poll_endpoints(now);
        }
        while let Some(packet) = self.poll_endpoints(now) {
            if !self.shaper.as_mut()?.enqueue(now, packet) {
                self.lost_flows.note(&packet);
            }
        }
        self.shaper.as_mut()?.poll_transmit(now)
    }

    /// The next packet of the endpoints.
    #[inline(always)]
    fn poll_endpoints(&mut self, now: Time) -> Option<Packet> {
        match &self.cpu {
            None => self.ask_endpoints(now),
            Some(_) => self.pull_from_cores(now),
        }
    }

    #[inline(always)]
    fn ask_endpoints(&mut self, now: Time) -> Option<Packet> {
        match self.transports.len() {
            1 if self.outside.is_none() => self.poll_endpoint(now, 0),
            _ => self.poll_several(now),
        }
    }

    /// Transports take turns, after the one that goes first.
    #[inline(never)]
    fn poll_several(&mut self, now: Time) -> Option<Packet> {
        if let Some(packet) = self.poll_first(now) {
            return Some(packet);
        }
        let own = self.transports.len();
        let count = own + usize::from(self.outside.is_some());
        for offset in 0..count {
            let index = (self.turn + offset) % count;
            let packet = if index == own { self.poll_outside() } else { self.poll_endpoint(now, index) };
            if let Some(packet) = packet {
                self.turn = index + 1;
                return Some(packet);
            }
        }
        None
    }

    /// The next packet from outside, unless the switch has paused its class: an endpoint would ask.
    fn poll_outside(&mut self) -> Option<Packet> {
        let outside = self.outside.as_mut()?;
        let paused = self.nic.control().map_or(0, |control| control.paused_classes());
        let mut packet = (paused >> outside.class & 1 == 0).then(|| outside.packets.pop_front())??;
        if let Some(entities) = &self.entities {
            packet.set_tags(entities.tags(&self.flows, &packet));
        }
        Some(packet)
    }

    /// The next packet of the transport that goes first, if there is one.
    #[inline(never)]
    fn poll_first(&mut self, now: Time) -> Option<Packet> {
        self.first.and_then(|first| self.poll_endpoint(now, first))
    }

    #[inline(always)]
    fn poll_endpoint(&mut self, now: Time, index: usize) -> Option<Packet> {
        let Slot { endpoint, beneath, random, .. } = &mut self.transports[index];
        let beneath = *beneath;
        let gate = Gate::new(self.nic.control(), index as u8).beneath(beneath);
        let mut cx = Cx { now, random, gate, events: &mut self.events };
        let mut packet = endpoint.poll_transmit(&mut cx);
        if !self.events.is_empty() {
            self.learn(now, index, None);
        }
        // Changed in place, without a copy: this runs for every packet, and a packet fills a cache line.
        if let Some(packet) = &mut packet {
            if packet.payload_bytes > 0 {
                let (flow, bytes) = (packet.flow, packet.payload_bytes.into());
                self.tell_jobs(|jobs, start| jobs.leaving(now, flow, bytes, start), now);
            }
            debug_assert!(packet.src == self.id && packet.wire_bytes > 0);
            if beneath > 0 {
                packet.class = (packet.class + beneath).min(CLASSES as u8 - 1);
            }
            if let Some(entities) = &self.entities
                && !packet.has(flags::SOURCE_ROUTED | flags::COMPACT_ROUTE)
            {
                packet.set_tags(entities.tags(&self.flows, packet));
            }
        }
        packet
    }

    /// A frame of the flow control has come by a port.
    pub fn frame(&mut self, now: Time, port: PortId, frame: &Packet) {
        match &mut self.nic {
            Link::Open => {}
            Link::Controlled(nic) => nic.frame(now, frame),
            Link::Several(homes) => homes.frame(now, port, frame),
        }
    }

    /// How often a port was told to hold something back, and for how long by `end`.
    pub fn pauses(&self, port: PortId, end: Time) -> (u64, Duration) {
        match &self.nic {
            Link::Open => (0, Duration::ZERO),
            Link::Controlled(nic) => nic.pauses(end),
            Link::Several(homes) => homes.pauses(port, end),
        }
    }

    /// The link at a port has gone down or come up.
    pub fn link_changed(&mut self, now: Time, port: PortId, up: bool) {
        match &mut self.nic {
            Link::Open => {}
            Link::Controlled(nic) => nic.reset(now, up),
            Link::Several(homes) => homes.link_changed(now, port, up),
        }
    }

    /// All switches forward by these tables from now on.
    pub fn set_routes(&mut self, now: Time, routes: &Arc<Routes>) {
        match &mut self.nic {
            Link::Open => {}
            Link::Controlled(nic) => nic.control.set_routes(routes),
            Link::Several(homes) => homes.set_routes(routes),
        }
        for transport in 0..self.transports.len() {
            self.tell(now, transport, None, |endpoint, cx| endpoint.set_routes(cx, routes));
        }
    }

    /// Shows why a port of its NIC holds anything back, if it does.
    pub fn held(&self, see: &mut dyn FnMut(PortId, Cause)) {
        match &self.nic {
            Link::Open => {}
            Link::Controlled(nic) => nic.control.causes(&mut |cause| see(PortId(0), cause)),
            Link::Several(homes) => homes.held(see),
        }
    }

    /// The number of the queue that a packet leaves a port from, for a flow control that numbers queues.
    #[inline]
    pub fn stamp(&mut self, now: Time, port: PortId, packet: &Packet) -> u16 {
        match &mut self.nic {
            Link::Open => 0,
            Link::Controlled(nic) => nic.stamp(now, packet),
            Link::Several(homes) => homes.stamp(now, port, packet),
        }
    }

    /// The ranks of jobs that are here, if any are.
    pub fn jobs(&self) -> Option<&HostJobs> {
        self.jobs.as_deref()
    }

    /// The same.
    pub fn jobs_mut(&mut self) -> Option<&mut HostJobs> {
        self.jobs.as_deref_mut()
    }

    #[inline]
    fn hand(&mut self, now: Time, transport: usize, input: Input<'_>, transit: Option<&Transit>) {
        self.tell(now, transport, transit, |endpoint, cx| endpoint.handle(cx, input));
    }

    #[inline]
    fn tell(
        &mut self,
        now: Time,
        transport: usize,
        transit: Option<&Transit>,
        tell: impl FnOnce(&mut dyn Endpoint, &mut Cx<'_>),
    ) {
        let Slot { endpoint, beneath, random, .. } = &mut self.transports[transport];
        let gate = Gate::new(self.nic.control(), transport as u8).beneath(*beneath);
        let mut cx = Cx { now, random, gate, events: &mut self.events };
        tell(&mut **endpoint, &mut cx);
        if !self.events.is_empty() {
            self.learn(now, transport, transit);
        }
    }

    /// Why a flow was given up: what its transport says, and if that is only that no answer came, where its packets
    /// wait.
    fn reason(&self, flow: FlowId, said: &'static str) -> &'static str {
        let held = match &self.nic {
            Link::Controlled(nic) => nic.hold.holds(flow),
            Link::Open | Link::Several(_) => false,
        };
        match said {
            Event::NO_ANSWER if self.shaper.as_ref().is_some_and(|shaper| shaper.holds(flow)) => reasons::AT_LIMITER,
            Event::NO_ANSWER if held => reasons::HELD,
            _ => said,
        }
    }

    /// How the packet came that made a message whole, if one did.
    fn journey(now: Time, transit: Option<&Transit>) -> Journey {
        transit.map_or(Journey { sent: now, ..Journey::default() }, |&transit| transit.into())
    }

    #[cold]
    fn learn(&mut self, now: Time, transport: usize, transit: Option<&Transit>) {
        let mut events = std::mem::take(&mut self.events);
        for event in events.drain(..) {
            let (flow, fate) = match event {
                Event::Measured { flow, what, value } => {
                    if self.flows.row(flow).is_some() {
                        self.measures.push(Measured { flow, what, value });
                    }
                    continue;
                }
                Event::Delivered { flow } => {
                    // Reported without a packet that has just arrived: none of the flow's time counts as a packet's
                    // journey.
                    let journey = Host::journey(now, transit);
                    (flow, FlowEvent::Delivered { journey, transport: transport as u8 })
                }
                Event::Completed { flow, sent_packets, resent_packets } => {
                    (flow, FlowEvent::Completed { sent_packets, resent_packets })
                }
                Event::Rejected { flow } => (flow, FlowEvent::Rejected),
                Event::Failed { flow, reason } => (flow, FlowEvent::Failed(self.reason(flow, reason))),
            };
            let ends = !matches!(fate, FlowEvent::Delivered { .. });
            let again = self.again.get(usize::from(self.flows.class(flow))).filter(|again| !again.is_empty());
            if let Some(again) = again {
                // A message may arrive though its sender was told that it had not. The application knows it by its
                // number.
                if !ends && !self.delivered.insert(flow) {
                    self.transports[transport].delivered_again += 1;
                    continue;
                }
                let times = self.resubmitted.get(&flow).copied().unwrap_or(0);
                let undelivered = matches!(fate, FlowEvent::Rejected | FlowEvent::Failed(_));
                if let Some(next) = again.get(times as usize).filter(|_| undelivered) {
                    self.starts.push(Reverse((now + next.after, self.turn(flow), flow)));
                    self.resubmitted.insert(flow, times + 1);
                    continue;
                }
            }
            if !ends && self.is_read_later(now, flow, transport, transit) {
                continue;
            }
            self.note(FlowRecord { flow, at: now, due: now, fate });
            match fate {
                FlowEvent::Delivered { .. } => self.tell_jobs(|jobs, start| jobs.delivered(now, flow, start), now),
                FlowEvent::Completed { .. } => self.tell_jobs(|jobs, start| jobs.completed(now, flow, start), now),
                _ => {}
            }
            if ends {
                self.ended += 1;
                for next in self.waiting.remove(&flow).into_iter().flatten() {
                    let pause = Duration::from_ps(self.flows.get(next).start.ps());
                    self.starts.push(Reverse((now + pause, self.turn(next), next)));
                }
            }
        }
        self.events = events;
    }
}

#[cfg(test)]
pub(crate) mod tests;
