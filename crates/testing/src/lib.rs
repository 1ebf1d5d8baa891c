//! A virtual network for tests: endpoints on one ideal switch. Tests see every packet and can drop, delay or duplicate
//! it.
//!
//! A packet passes the host's NIC, half the delay, one strict-priority queue for each destination (finite, with
//! optional marking), that destination's link and the other half of the delay. The switch may have a scheme's agent
//! ([`Scene::with_agent`]). It is small on purpose and independent of the simulator, so that a scheme's tests test the
//! scheme alone.

pub mod walks;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

use fabric::{FabricSpec, Failures, Routes, Star};
use units::{Duration, FlowId, HostId, PortId, Rate, Stream, SwitchId, Time};

use node::packet::{CLASSES, flags};
use node::pool::Hop;
use node::wire::{Reader, Writer};
use node::{
    AgentCx, Clock, Cx, Endpoint, EndpointParams, Event, Gate, Header, Input, Message, NicControl, Packet, Port,
    SwitchAgent,
};

/// The packets that a [`Scene`] has sent whose headers match a pattern, as (when, packet, what is asked of the header).
#[macro_export]
macro_rules! sent {
    ($scene:expr, $header:pat) => {
        $crate::sent!($scene, $header => ())
    };
    ($scene:expr, $header:pat => $asked:expr) => {
        $scene.headers(|header| match header {
            $header => Some($asked),
            _ => None,
        })
    };
}

/// Checks that a header survives its packet and the wire, that no shorter prefix of its bytes is read as a header, and
/// that any header that `noise` is read as survives too. Returns the header's bytes.
pub fn check_header<H: Header + PartialEq + std::fmt::Debug + 'static>(header: H, noise: &[u8]) -> Vec<u8> {
    let bytes = check_whole(header);
    for cut in 0..bytes.len() {
        assert!(H::parse(&mut Reader::new(&bytes[..cut], "")).is_err(), "{cut} of {} bytes", bytes.len());
    }
    let mut damaged = bytes.clone();
    damaged.iter_mut().skip(1).zip(noise).for_each(|(byte, noise)| *byte = *noise);
    for bytes in [noise, &damaged] {
        if let Ok(header) = H::parse(&mut Reader::new(bytes, "")) {
            check_whole(header);
        }
    }
    bytes
}

fn check_whole<H: Header + PartialEq + std::fmt::Debug + 'static>(header: H) -> Vec<u8> {
    assert_eq!(Packet::new(FlowId(0), HostId(0), HostId(1), header).header::<H>(), header);
    let mut bytes = Vec::new();
    header.emit(&mut Writer::new(&mut bytes));
    let mut from = Reader::new(&bytes, "");
    assert_eq!((H::parse(&mut from), from.rest()), (Ok(header), &[][..]));
    check_layout::<H>(&Packet::new(FlowId(0), HostId(0), HostId(1), header), &[]);
    bytes
}

/// Checks that a packet's layout describes its bytes as its header does, if these bytes can be read back.
pub fn check_layout<H: Header + 'static>(packet: &Packet, content: &[u8]) {
    let (mut bytes, mut read) = (Vec::new(), *packet);
    H::emit_with(packet, content, &mut Writer::new(&mut bytes));
    let header = bytes.len();
    bytes.extend(content);
    if H::parse_with(&mut Reader::new(&bytes, ""), &mut read).is_ok() {
        let said = contract::headers_of::<H>().says(&read);
        assert_eq!(H::LAYOUT.says(&bytes[..header]), Some(said), "{bytes:?}");
    }
}

/// The fate of a packet between its NIC and the switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketFate {
    /// Arrives.
    Pass,
    /// Is lost.
    Drop,
    /// Arrives later by this time, so that others overtake it.
    Delay(Duration),
    /// Arrives twice.
    Duplicate,
}

/// Parameters of the network. The defaults are 100 Gbps and a round trip of 5 us.
#[derive(Clone, Copy, Debug)]
pub struct Wire {
    /// Rate of every link.
    pub rate: Rate,
    /// Rate of the links to hosts, if different.
    pub down_rate: Option<Rate>,
    /// One-way delay between two hosts, without transmission times.
    pub delay: Duration,
    /// Capacity of the queue to a host.
    pub queue_bytes_max: u64,
    /// Queue length from which ECN-capable packets are marked.
    pub mark_bytes: u64,
}

impl Default for Wire {
    fn default() -> Self {
        Wire {
            rate: Rate::from_gbps(100),
            down_rate: None,
            delay: Duration::from_ns(2_500),
            queue_bytes_max: u64::MAX,
            mark_bytes: u64::MAX,
        }
    }
}

impl Wire {
    fn down_rate(&self) -> Rate {
        self.down_rate.unwrap_or(self.rate)
    }

    /// The site of a host in this network with the given number of hosts.
    pub fn site(&self, host: HostId, hosts: u32) -> EndpointParams {
        let way = |bytes| self.delay + self.rate.transmit(bytes) + self.down_rate().transmit(bytes);
        let round_trip = |there, back| way(there) + way(back);
        EndpointParams {
            host,
            hosts,
            nic_rate: self.rate,
            data_rtt: round_trip(1500, 40),
            data_rtts: vec![(1, round_trip(1500, 40))],
            control_rtt: round_trip(40, 40),
            mtu_bytes: 1500,
            header_bytes: 40,
            clock: Clock::default(),
            transport: 0,
        }
    }
}

type Spoil = Box<dyn FnMut(Time, &Packet) -> PacketFate>;
type Touch = Box<dyn FnMut(Time, &mut Packet)>;

/// Endpoints on one network.
pub struct Scene {
    wire: Wire,
    now: Time,
    hosts: Vec<Host>,
    agenda: BinaryHeap<Reverse<(Time, u64)>>,
    happenings: BTreeMap<u64, Happening>,
    count: u64,
    flows: u32,
    spoil: Spoil,
    touch: Touch,
    part: Option<Part>,
    /// All events of endpoints, in order.
    pub events: Vec<(Time, HostId, Event)>,
    /// All packets that NICs began to send, in order.
    pub sent: Vec<(Time, Packet)>,
    /// Number of packets dropped at a full queue.
    pub overflows: u64,
    /// By host: the longest length of its queue, in bytes.
    pub queue_bytes_peak: Vec<u64>,
}

struct Host {
    endpoint: Box<dyn Endpoint>,
    /// Rates of its link out and in.
    up: Rate,
    down: Rate,
    random: Stream,
    held: Held,
    nic_free: Time,
    queues: [VecDeque<Packet>; CLASSES],
    queue_bytes: u64,
    link_free: Time,
    deadline: Option<Time>,
}

/// The classes that a NIC is told to hold.
#[derive(Default, node::State)]
#[state(refuse("a test does not say what of its state moves"))]
struct Held {
    classes: u8,
    flows: Vec<FlowId>,
    epoch: u32,
}

impl NicControl for Held {
    fn frame(&mut self, _: Time, _: &Packet) {}

    fn reset(&mut self, _: bool) {}

    fn paused_classes(&self) -> u8 {
        self.classes
    }

    fn lets(&self, _: u8, flow: FlowId, _: HostId, _: u8, _: u32) -> bool {
        !self.flows.contains(&flow)
    }

    fn epoch(&self) -> u32 {
        self.epoch
    }
}

/// A scheme's agent in the switch, and the switch as it sees it: host i is at port i.
struct Part {
    agent: Box<dyn SwitchAgent>,
    ports: Vec<Port>,
    routes: Routes,
    random: Stream,
}

enum Happening {
    Send(Message),
    NicFree(HostId),
    AtSwitch(Packet),
    LinkFree(HostId),
    AtHost(HostId, Packet),
    Deadline(HostId),
}

impl Scene {
    /// `hosts` endpoints. `make` builds each from its site.
    pub fn new(hosts: u32, wire: Wire, make: impl Fn(&EndpointParams) -> Box<dyn Endpoint>) -> Scene {
        Scene::with_clocks(wire, &vec![Clock::default(); hosts as usize], make)
    }

    /// One endpoint for each clock.
    pub fn with_clocks(wire: Wire, clocks: &[Clock], make: impl Fn(&EndpointParams) -> Box<dyn Endpoint>) -> Scene {
        let site = |(index, &clock)| EndpointParams { clock, ..wire.site(HostId::from(index), clocks.len() as u32) };
        let sites = clocks.iter().enumerate().map(site);
        Scene::of_sites(wire, sites.map(|site| (site, wire.down_rate())).collect(), make)
    }

    /// One endpoint for each rate, which is that of its link both ways.
    pub fn with_nics(wire: Wire, nics: &[Rate], make: impl Fn(&EndpointParams) -> Box<dyn Endpoint>) -> Scene {
        let mut slowest = nics.to_vec();
        slowest.sort_unstable();
        // The longest round trip is that between the two slowest.
        let longest = Wire { rate: slowest[0], down_rate: slowest.get(1).copied(), ..wire };
        let site =
            |(index, &nic_rate)| EndpointParams { nic_rate, ..longest.site(HostId::from(index), nics.len() as u32) };
        let sites = nics.iter().enumerate().map(site);
        Scene::of_sites(wire, sites.map(|site| (site.clone(), site.nic_rate)).collect(), make)
    }

    /// One endpoint for each site, with the rate of the link to it.
    fn of_sites(
        wire: Wire,
        sites: Vec<(EndpointParams, Rate)>,
        make: impl Fn(&EndpointParams) -> Box<dyn Endpoint>,
    ) -> Scene {
        let queue_bytes_peak = vec![0; sites.len()];
        let hosts = sites.into_iter().enumerate().map(|(index, (site, down))| Host {
            endpoint: make(&site),
            up: site.nic_rate,
            down,
            random: Stream::new(1, index as u64, "scene"),
            held: Held::default(),
            nic_free: Time::ZERO,
            queues: Default::default(),
            queue_bytes: 0,
            link_free: Time::ZERO,
            deadline: None,
        });
        Scene {
            wire,
            now: Time::ZERO,
            hosts: hosts.collect(),
            agenda: BinaryHeap::new(),
            happenings: BTreeMap::new(),
            count: 0,
            flows: 0,
            spoil: Box::new(|_, _| PacketFate::Pass),
            touch: Box::new(|_, _| {}),
            part: None,
            events: Vec::new(),
            sent: Vec::new(),
            overflows: 0,
            queue_bytes_peak,
        }
    }

    /// The same scene with an agent in the switch, which gets the packets that ask for one.
    pub fn with_agent(self, agent: Box<dyn SwitchAgent>) -> Scene {
        let hosts = self.hosts.len() as u32;
        let star = Star { hosts, rate: self.wire.rate, ..Star::default() };
        let fabric = FabricSpec::Star(star).build().expect("a scene has two hosts");
        let part = Part {
            agent,
            ports: (0..hosts).map(|_| Port::new(self.wire.rate, Hop::Last, &[])).collect(),
            routes: Routes::compute(&fabric, &Failures::default()),
            random: Stream::new(1, 0, "scene agent"),
        };
        Scene { part: Some(part), ..self }
    }

    /// Makes the wire bad for the first millisecond. Of all packets one in sixteen is lost, one in thirty-two is late
    /// by up to 31 us, and one in thirty-two is doubled; `fates` seeds the choice. Packets that `spares` names are
    /// never lost.
    pub fn spoil_for_a_millisecond(&mut self, fates: u64, spares: impl Fn(&Packet) -> bool + 'static) {
        let mut state = fates | 1;
        self.spoil(move |now, packet| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            match state >> 59 {
                0 | 1 if now < Time::from_ms(1) && !spares(packet) => PacketFate::Drop,
                2 if now < Time::from_ms(1) => PacketFate::Delay(Duration::from_us(state >> 40 & 31)),
                3 if now < Time::from_ms(1) => PacketFate::Duplicate,
                _ => PacketFate::Pass,
            }
        });
    }

    /// From now on `spoil` decides the fate of each packet.
    pub fn spoil(&mut self, spoil: impl FnMut(Time, &Packet) -> PacketFate + 'static) {
        self.spoil = Box::new(spoil);
    }

    /// From now on `touch` changes packets when they reach the switch, like a pipeline stage.
    pub fn touch(&mut self, touch: impl FnMut(Time, &mut Packet) + 'static) {
        self.touch = Box::new(touch);
    }

    /// Sends a message of `bytes` at time `at` and returns its flow id.
    pub fn send(&mut self, at: Time, src: u32, dst: u32, bytes: u64) -> FlowId {
        let flow = FlowId(self.flows);
        self.flows += 1;
        self.plan(
            at,
            Happening::Send(Message {
                flow,
                src: HostId(src),
                dst: HostId(dst),
                bytes,
                class: 0,
                virtual_serialisation: Duration::ZERO,
            }),
        );
        flow
    }

    /// Pauses these priority classes of a host's link, as bits, and resumes the others.
    pub fn pause(&mut self, host: u32, paused_classes: u8) {
        self.hosts[host as usize].held.classes = paused_classes;
        self.pump(HostId(host));
    }

    /// Holds or releases the packets of a flow, like a flow control finer than classes.
    pub fn hold(&mut self, host: u32, flow: FlowId, hold: bool) {
        let held = &mut self.hosts[host as usize].held;
        held.flows.retain(|&other| other != flow);
        if hold {
            held.flows.push(flow);
        } else {
            held.epoch += 1;
        }
        self.pump(HostId(host));
    }

    /// Runs until no event is left or `end` has come.
    pub fn run_until(&mut self, end: Time) {
        while let Some(&Reverse((at, number))) = self.agenda.peek() {
            if at > end {
                break;
            }
            self.agenda.pop();
            self.now = at;
            let happening = self.happenings.remove(&number).expect("every entry has its happening");
            self.happen(happening);
        }
        self.now = self.now.max(end);
    }

    /// What was asked of the headers that had it, with their packets and when these were sent: see
    /// [`sent!`](crate::sent).
    pub fn headers<H: Header, T>(&self, ask: impl Fn(H) -> Option<T>) -> Vec<(Time, Packet, T)> {
        self.sent.iter().filter_map(|&(at, packet)| Some((at, packet, ask(packet.header())?))).collect()
    }

    /// The endpoint of a host, for its counters.
    pub fn endpoint(&self, host: u32) -> &dyn Endpoint {
        self.hosts[host as usize].endpoint.as_ref()
    }

    /// When the receiver of `flow` had all of it.
    pub fn delivered_at(&self, flow: FlowId) -> Option<Time> {
        self.events.iter().find(|e| e.2 == Event::Delivered { flow }).map(|e| e.0)
    }

    /// When the sender of `flow` learnt of it.
    pub fn completed_at(&self, flow: FlowId) -> Option<Time> {
        let completes = |event: &Event| matches!(event, Event::Completed { flow: f, .. } if *f == flow);
        self.events.iter().find(|e| completes(&e.2)).map(|e| e.0)
    }

    fn plan(&mut self, at: Time, happening: Happening) {
        self.happenings.insert(self.count, happening);
        self.agenda.push(Reverse((at, self.count)));
        self.count += 1;
    }

    fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::Send(message) => self.hand(message.src, Input::Send(&message)),
            Happening::NicFree(host) => self.pump(host),
            Happening::AtSwitch(packet) => self.enqueue(packet),
            Happening::LinkFree(host) => self.serve(host),
            Happening::AtHost(host, packet) => self.hand(host, Input::Packet(&packet)),
            // A deadline that has moved since is ignored.
            Happening::Deadline(host) if self.hosts[host.index()].deadline == Some(self.now) => {
                self.hosts[host.index()].deadline = None;
                self.hand(host, Input::Deadline);
            }
            Happening::Deadline(_) => {}
        }
    }

    fn hand(&mut self, id: HostId, input: Input<'_>) {
        let mut said = Vec::new();
        let host = &mut self.hosts[id.index()];
        let mut cx =
            Cx { now: self.now, random: &mut host.random, gate: Gate::new(Some(&host.held), 0), events: &mut said };
        host.endpoint.handle(&mut cx, input);
        self.events.extend(said.into_iter().map(|event| (self.now, id, event)));
        self.pump(id);
    }

    fn pump(&mut self, id: HostId) {
        let host = &mut self.hosts[id.index()];
        if host.nic_free <= self.now {
            let mut said = Vec::new();
            let mut cx =
                Cx { now: self.now, random: &mut host.random, gate: Gate::new(Some(&host.held), 0), events: &mut said };
            let packet = host.endpoint.poll_transmit(&mut cx);
            self.events.extend(said.into_iter().map(|event| (self.now, id, event)));
            if let Some(packet) = packet {
                let gate = Gate::new(Some(&self.hosts[id.index()].held), 0);
                assert!(gate.open(packet.class), "a packet of a paused class");
                self.launch(id, packet);
            }
        }
        let host = &mut self.hosts[id.index()];
        let at = host.endpoint.poll_at().time().max(self.now);
        if at != Time::MAX && host.deadline.is_none_or(|armed| at < armed) {
            host.deadline = Some(at);
            self.plan(at, Happening::Deadline(id));
        }
    }

    fn launch(&mut self, id: HostId, packet: Packet) {
        assert!(packet.wire_bytes > 0 && packet.src == id && packet.dst != id, "{packet:?}");
        let host = &mut self.hosts[id.index()];
        let gone = self.now + host.up.transmit(u64::from(packet.wire_bytes));
        host.nic_free = gone;
        self.sent.push((self.now, packet));
        self.plan(gone, Happening::NicFree(id));
        let there = gone + self.wire.delay / 2;
        match (self.spoil)(self.now, &packet) {
            PacketFate::Drop => {}
            PacketFate::Pass => self.plan(there, Happening::AtSwitch(packet)),
            PacketFate::Delay(more) => self.plan(there + more, Happening::AtSwitch(packet)),
            PacketFate::Duplicate => {
                self.plan(there, Happening::AtSwitch(packet));
                self.plan(there, Happening::AtSwitch(packet));
            }
        }
    }

    fn enqueue(&mut self, mut packet: Packet) {
        (self.touch)(self.now, &mut packet);
        match &mut self.part {
            Some(part) if packet.has(flags::ROUTER_ALERT) => {
                let mut made = Vec::new();
                let Part { agent, ports, routes, random } = part;
                let mut cx = AgentCx::new(self.now, SwitchId(0), ports, routes, random, &mut made);
                let out = agent.handle(&mut cx, PortId(packet.src.0), &mut packet);
                for (out, made) in made {
                    if (self.spoil)(self.now, &made) != PacketFate::Drop {
                        self.join(HostId(out.0), made);
                    }
                }
                if let Some(out) = out {
                    self.join(HostId(out.0), packet);
                }
            }
            _ => self.join(packet.dst, packet),
        }
    }

    /// Queues a packet for the link to a host.
    fn join(&mut self, to: HostId, mut packet: Packet) {
        packet.hops += 1;
        let host = &mut self.hosts[to.index()];
        let bytes = u64::from(packet.wire_bytes);
        if host.queue_bytes + bytes > self.wire.queue_bytes_max {
            self.overflows += 1;
            return;
        }
        if packet.has(flags::ECT) && host.queue_bytes + bytes > self.wire.mark_bytes {
            packet.flags |= flags::CE;
        }
        host.queue_bytes += bytes;
        let peak = &mut self.queue_bytes_peak[to.index()];
        *peak = host.queue_bytes.max(*peak);
        host.queues[packet.class as usize].push_back(packet);
        self.serve(to);
    }

    fn serve(&mut self, id: HostId) {
        let host = &mut self.hosts[id.index()];
        if host.link_free > self.now {
            return;
        }
        let Some(packet) = host.queues.iter_mut().find_map(VecDeque::pop_front) else { return };
        host.queue_bytes -= u64::from(packet.wire_bytes);
        host.link_free = self.now + host.down.transmit(u64::from(packet.wire_bytes));
        let free = host.link_free;
        self.plan(free, Happening::LinkFree(id));
        self.plan(free + self.wire.delay / 2, Happening::AtHost(id, packet));
    }
}
