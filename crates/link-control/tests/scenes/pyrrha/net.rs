use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use clearway_link_control::pyrrha::Config;
use clearway_link_control::pyrrha::frame::{Frame, RootId};
use contract::link_control::{LinkScheme, LinkView};
use fabric::{Builder, Fabric, Failures, Routes};
use node::balance::{Balancer, switch_seed};
use node::link::{QueueView, frame_packet};
use node::onward_path::Downstream;
use node::packet::flags;
use node::pool::{Hop, PacketId, Pool, Transit};
use node::{Balancing, Buffer, NicControl, Overflow, Packet, Port, Received, Settings, Switch};
use units::{Bytes, Duration, FlowId, HostId, LinkId, NodeId, PortId, Rate, Stream, SwitchId, Time};

/// Bytes of every data packet.
pub const PACKET: u64 = 1_000;

/// Time of one at 100 Gbps.
pub const PACKET_TIME: Duration = Duration::from_ns(80);

/// 12.5 bytes a ns, and a ns a thousand times there and back: between two switches 200 of cable and 300 of switch each
/// way.
pub const HOP_BDP: u64 = 12_500;

const SEED: u64 = 3;

/// A fabric of links of 100 Gbps with Pyrrha in its switches and NICs, and a clock.
pub struct Net {
    pub fabric: Arc<Fabric>,
    pub now: Time,
    /// Every frame that was sent.
    pub said: Vec<Said>,
    /// Packets that have reached their hosts: when, and which.
    pub delivered: Vec<(Time, Packet)>,
    switches: Vec<Switch>,
    nics: Vec<Option<Box<dyn NicControl>>>,
    sources: Vec<Source>,
    /// Packets on links, each in a place of its own.
    flights: Vec<PacketId>,
    pool: Pool,
    agenda: BinaryHeap<Reverse<(Time, u64, What)>>,
    events: u64,
}

pub struct Said {
    pub at: Time,
    pub from: NodeId,
    pub to: NodeId,
    pub say: Frame,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    Arrives(LinkId, usize),
    Free(LinkId),
    Source(usize),
}

/// A flow at line rate, which asks its NIC before every packet.
struct Source {
    packet: Packet,
    sent: u32,
    left: u32,
}

impl Net {
    /// Cables by the names of their ends. Names that begin with a capital are hosts.
    pub fn new(cables: &[(&str, &str)], config: &Config) -> Net {
        let ends = cables.iter().flat_map(|cable| [cable.0, cable.1]);
        let (mut hosts, mut switches): (Vec<&str>, Vec<&str>) =
            ends.partition(|name| name.starts_with(char::is_uppercase));
        for names in [&mut hosts, &mut switches] {
            names.sort_unstable();
            names.dedup();
        }
        let node = |name: &str| match hosts.binary_search(&name) {
            Ok(host) => NodeId::from(host),
            Err(_) => NodeId::from(hosts.len() + switches.binary_search(&name).unwrap()),
        };
        let owned = |names: &[&str]| names.iter().map(|name| name.to_string()).collect::<Vec<_>>();
        let delayed = owned(&switches).into_iter().map(|name| (name, Duration::from_ns(300))).collect();
        let mut builder = Builder::new(owned(&hosts), delayed);
        for (a, b) in cables {
            // There is no switch at a host's end, so its cable is longer: every round trip is a microsecond.
            let to_host = [a, b].iter().any(|name| name.starts_with(char::is_uppercase));
            let delay = Duration::from_ns(if to_host { 350 } else { 200 });
            builder.cable(node(a), node(b), Rate::from_gbps(100), delay);
        }
        let fabric = Arc::new(builder.finish().unwrap());
        let routes = Arc::new(Routes::compute(&fabric, &Failures::default()));
        let downstream = Downstream::new(&fabric, routes.clone(), vec![Balancing::Ecmp], SEED);
        let view = LinkView {
            fabric: &fabric,
            downstream: &downstream,
            balancing: &[Balancing::Ecmp],
            mtu_bytes: PACKET,
            host_delay: Duration::ZERO,
            intake_buffer: Bytes(1_000_000),
            buffer: Buffer::Shared { bytes: Bytes(1_000_000_000), alpha: None },
        };
        let settings = Arc::new(Settings {
            buffer: view.buffer,
            overflow: Overflow::TailDrop,
            levels: Vec::new(),
            mark_at: Default::default(),
            marking: vec![None],
            early_drop: Vec::new(),
            header_bytes: 40,
        });
        assert_eq!(config.check(), Ok(()));
        let switch = |id: u32| {
            let id = SwitchId(id);
            let port = |_| Port::new(Rate::from_gbps(100), Hop::Up, &settings.levels);
            let ports = fabric.ports[fabric.switch_node(id).index()].iter().map(port).collect();
            let balancer = Balancer::new(Balancing::Ecmp, switch_seed(SEED, id), Stream::new(SEED, 0, "balance"));
            let mark = Stream::new(SEED, 0, "mark");
            Switch::new(id, ports, routes.clone(), vec![balancer], settings.clone(), mark, None)
                .with_flow_control(Some(config.switch_control(&view, id)))
        };
        Net {
            switches: (0..fabric.switches).map(switch).collect(),
            nics: (0..fabric.hosts).map(|host| config.nic_control(&view, HostId(host), PortId(0))).collect(),
            fabric: fabric.clone(),
            now: Time::ZERO,
            said: Vec::new(),
            delivered: Vec::new(),
            sources: Vec::new(),
            flights: Vec::new(),
            pool: Pool::default(),
            agenda: BinaryHeap::new(),
            events: 0,
        }
    }

    pub fn name(&self, node: NodeId) -> String {
        self.fabric.names[node.index()].clone()
    }

    pub fn switch(&self, name: &str) -> &Switch {
        &self.switches[self.switch_id(name).index()]
    }

    fn switch_id(&self, name: &str) -> SwitchId {
        self.fabric.as_switch(self.fabric.find(name).unwrap()).unwrap()
    }

    fn host(&self, name: &str) -> HostId {
        self.fabric.as_host(self.fabric.find(name).unwrap()).unwrap()
    }

    fn link(&self, from: &str, to: &str) -> LinkId {
        let (from, to) = (self.fabric.find(from).unwrap(), self.fabric.find(to).unwrap());
        self.fabric.links_between(from, to).next().unwrap()
    }

    fn port(&self, from: &str, to: &str) -> PortId {
        self.fabric.link(self.link(from, to)).from_port
    }

    /// The id of the port of switch `from` that leads to `to`.
    pub fn root(&self, from: &str, to: &str) -> RootId {
        RootId { node: self.switch_id(from).0, port: self.port(from, to).0 as u16, class: 3 }
    }

    /// From now on a host sends this many packets to another at line rate.
    pub fn send(&mut self, flow: u32, src: &str, dst: &str, packets: u32) {
        let packet = self.packet(flow, src, dst);
        self.sources.push(Source { packet, sent: 0, left: packets });
        self.plan(self.now, What::Source(self.sources.len() - 1));
    }

    fn packet(&self, flow: u32, src: &str, dst: &str) -> Packet {
        let mut packet = Packet::bare(FlowId(flow), self.host(src), self.host(dst));
        (packet.wire_bytes, packet.class) = (PACKET as u16, 3);
        packet
    }

    /// Packets of a flow from `src` to `dst` are at switch `at` now, having come from its neighbour `from`.
    pub fn inject(&mut self, flow: u32, src: &str, dst: &str, from: &str, at: &str, packets: u32) {
        for number in 0..packets {
            self.inject_numbered(flow, number, src, dst, from, at);
        }
    }

    /// The same in another class.
    pub fn inject_in(&mut self, class: u8, flow: u32, (src, dst): (&str, &str), from: &str, at: &str, packets: u32) {
        for number in 0..packets {
            let mut packet = self.packet(flow, src, dst);
            packet.class = class;
            packet.set_tags([number, 0]);
            let id = self.pool.insert(packet, Transit::leaving(self.now));
            self.come(at, from, id);
        }
    }

    /// One packet, with a number of its own.
    pub fn inject_numbered(&mut self, flow: u32, number: u32, src: &str, dst: &str, from: &str, at: &str) {
        let mut packet = self.packet(flow, src, dst);
        packet.set_tags([number, 0]);
        let id = self.pool.insert(packet, Transit::leaving(self.now));
        self.come(at, from, id);
    }

    /// Switch `at` hears this from its neighbour `from` now.
    pub fn tell(&mut self, at: &str, from: &str, say: Frame) {
        let id = self.pool.insert(frame_packet(say), Transit::default());
        self.come(at, from, id);
    }

    fn come(&mut self, at: &str, from: &str, id: PacketId) {
        let (switch, port) = (self.switch_id(at), self.port(at, from));
        self.receive(switch, port, id);
    }

    /// The link goes down or comes up.
    pub fn set_up(&mut self, a: &str, b: &str, up: bool) {
        for (from, to) in [(a, b), (b, a)] {
            let port = self.port(from, to);
            if let Some(switch) = self.fabric.as_switch(self.fabric.find(from).unwrap()) {
                self.switches[switch.index()].set_up(self.now, port, up, &mut self.pool);
                self.follow_up(switch);
            }
        }
    }

    /// All nodes use new tables, which a failure elsewhere has left as they were.
    pub fn reroute(&mut self) {
        let routes = Arc::new(Routes::compute(&self.fabric, &Failures::default()));
        for nic in self.nics.iter_mut().flatten() {
            nic.set_routes(&routes);
        }
        for id in (0..self.fabric.switches).map(SwitchId) {
            self.switches[id.index()].set_routes(self.now, routes.clone(), &mut self.pool);
            self.follow_up(id);
        }
    }

    /// The queues of `from`'s port to `to` that hold packets or may not send.
    pub fn queues(&self, from: &str, to: &str) -> Vec<QueueView> {
        let (switch, mut views) = (self.switch(from), Vec::new());
        let control = switch.flow_control().unwrap();
        control.queues(switch.ports(), self.port(from, to), &mut |view| views.push(view));
        views
    }

    /// The numbers of a flow's packets in the order in which they came.
    pub fn order_of(&self, flow: u32) -> Vec<u32> {
        let of = |packet: &&(Time, Packet)| packet.1.flow == FlowId(flow);
        self.delivered.iter().filter(of).map(|packet| packet.1.tags()[0]).collect()
    }

    /// Whether no packet is anywhere.
    pub fn pool_is_empty(&self) -> bool {
        self.pool.is_empty()
    }

    /// Runs until nothing is left to happen.
    pub fn run(&mut self) {
        self.run_for(Duration::from_ms(100));
        assert!(self.agenda.is_empty(), "still busy");
    }

    pub fn run_for(&mut self, time: Duration) {
        let end = self.now + time;
        while let Some(&Reverse((at, _, what))) = self.agenda.peek() {
            if at > end {
                break;
            }
            self.agenda.pop();
            self.now = at;
            match what {
                What::Free(link) => self.open(link),
                What::Source(index) => self.emit(index),
                What::Arrives(link, slot) => self.arrive(link, slot),
            }
        }
        self.now = end;
    }

    fn plan(&mut self, at: Time, what: What) {
        self.events += 1;
        self.agenda.push(Reverse((at, self.events, what)));
    }

    fn emit(&mut self, index: usize) {
        let source = &mut self.sources[index];
        let Packet { flow, src, dst, class, .. } = source.packet;
        if self.nics[src.index()].as_ref().is_none_or(|nic| nic.lets(0, flow, dst, class, 0)) {
            let mut packet = source.packet;
            packet.set_tags([source.sent, 0]);
            source.sent += 1;
            source.left -= 1;
            let id = self.pool.insert(packet, Transit::leaving(self.now));
            self.launch(self.fabric.uplink(src), self.now + PACKET_TIME, id);
        }
        if self.sources[index].left > 0 {
            self.plan(self.now + PACKET_TIME, What::Source(index));
        }
    }

    /// A packet's last bit leaves by a link at `gone`.
    fn launch(&mut self, link: LinkId, gone: Time, id: PacketId) {
        let there = self.fabric.delay(link);
        self.flights.push(id);
        self.plan(gone + there, What::Arrives(link, self.flights.len() - 1));
    }

    fn arrive(&mut self, link: LinkId, flight: usize) {
        let id = self.flights[flight];
        let end = *self.fabric.link(link);
        match self.fabric.as_host(end.to) {
            None => self.receive(self.fabric.as_switch(end.to).unwrap(), end.to_port, id),
            Some(host) => {
                let packet = self.pool.remove(id).packet;
                if !packet.has(flags::LINK_FRAME) {
                    self.delivered.push((self.now, packet));
                } else if let Some(nic) = &mut self.nics[host.index()] {
                    nic.frame(self.now, &packet);
                }
            }
        }
    }

    fn receive(&mut self, switch: SwitchId, port: PortId, id: PacketId) {
        let received = self.switches[switch.index()].receive(self.now, port, &mut self.pool, id);
        if let Received::Queued(out) = received {
            self.open(self.fabric.out_link(switch, out));
        }
        self.follow_up(switch);
    }

    fn follow_up(&mut self, switch: SwitchId) {
        while let Some(port) = self.switches[switch.index()].take_ready_port() {
            self.open(self.fabric.out_link(switch, port));
        }
    }

    /// The transmitter of a switch's link sends what it can.
    fn open(&mut self, link: LinkId) {
        let end = *self.fabric.link(link);
        let id = self.fabric.as_switch(end.from).unwrap();
        let switch = &mut self.switches[id.index()];
        if switch.port(end.from_port).free_at() > self.now {
            return; // it is asked again when it is free
        }
        let Some(sent) = switch.transmit(self.now, end.from_port, &mut self.pool) else { return };
        let gone = switch.port(end.from_port).free_at();
        let packet = &self.pool.get(sent).packet;
        if packet.has(flags::LINK_FRAME) {
            let say = packet.header();
            self.said.push(Said { at: self.now, from: end.from, to: end.to, say });
        }
        self.launch(link, gone, sent);
        self.plan(gone, What::Free(link));
        self.follow_up(id);
    }
}
