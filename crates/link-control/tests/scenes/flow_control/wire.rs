//! Two switches with two hosts each, without time: who sends next is for the test to say, and what is sent is there at
//! once.

use std::collections::BTreeMap;
use std::sync::Arc;

use catalogue::LinkControl;
use contract::link_control::LinkView;
use fabric::{Dumbbell, Fabric, FabricSpec, Failures, Routes};
use node::balance::{Balancer, switch_seed};
use node::link::QueueView;
use node::onward_path::Downstream;
use node::packet::flags;
use node::pool::{Hop, Pool, Slot, Transit};
use node::wire::{Malformed, Reader, Writer};
use node::{Balancing, Buffer, MarkAt, NicControl, Overflow, Packet, Port, Settings, Switch};
use units::{Bytes, Duration, FlowId, HostId, LinkId, NodeId, PortId, Rate, Stream, SwitchId, Time};

pub const PACKET_BYTES: u16 = 1_500;

pub struct TwoSwitches {
    fabric: Arc<Fabric>,
    pool: Pool,
    now: Time,
    nics: Vec<Box<dyn NicControl>>,
    switches: Vec<Switch>,
    /// By flow: packets sent, and packets received.
    flows: BTreeMap<u32, (u64, u64)>,
    /// Frames to hosts, and between switches.
    pub frames: (u32, u32),
}

/// A packet's number within its flow.
#[derive(Clone, Copy, Debug, node::State)]
struct Number(u64);

impl node::Header for Number {
    type Packed = u64;
    fn pack(self) -> u64 {
        self.0
    }
    fn unpack(number: u64) -> Number {
        Number(number)
    }
    fn emit(self, to: &mut Writer<'_>) {
        to.u64(self.0);
    }
    fn parse(from: &mut Reader<'_>) -> Result<Number, Malformed> {
        from.u64().map(Number)
    }
}

impl TwoSwitches {
    /// Hosts 0 and 1 at `left`, 2 and 3 at `right`; every link 100 Gbps, 200 ns long, 450 ns in a switch.
    pub fn new(control: &LinkControl) -> TwoSwitches {
        let spec = FabricSpec::Dumbbell(Dumbbell { hosts_per_side: 2, ..Dumbbell::default() });
        let fabric = Arc::new(spec.build().unwrap());
        let routes = Arc::new(Routes::compute(&fabric, &Failures::default()));
        let buffer = Buffer::Shared { bytes: Bytes(1_000_000), alpha: None };
        let settings = Arc::new(Settings {
            buffer,
            overflow: Overflow::TailDrop,
            levels: Vec::new(),
            marking: vec![None],
            mark_at: MarkAt::Arrival,
            early_drop: Vec::new(),
            header_bytes: 40,
        });
        let balancing = vec![Balancing::Ecmp];
        let downstream = Downstream::new(&fabric, routes.clone(), balancing.clone(), 1);
        let view = LinkView {
            fabric: &fabric,
            downstream: &downstream,
            balancing: &balancing,
            mtu_bytes: u64::from(PACKET_BYTES),
            host_delay: Duration::ZERO,
            intake_buffer: Bytes(1_000_000),
            buffer,
        };
        let switch = |id| {
            let id = SwitchId(id);
            let ports = &fabric.ports[fabric.switch_node(id).index()];
            let balancer = Balancer::new(Balancing::Ecmp, switch_seed(1, id), Stream::new(1, 0, "balance"));
            let port = |_| Port::new(Rate::from_gbps(100), Hop::Up, &[]);
            let (ports, mark) = (ports.iter().map(port).collect(), Stream::new(1, 0, "mark"));
            Switch::new(id, ports, routes.clone(), vec![balancer], settings.clone(), mark, None)
                .with_flow_control(control.as_scheme().map(|scheme| scheme.switch_control(&view, id)))
        };
        let switches = (0..2).map(switch).collect();
        let nic = |host| control.as_scheme().and_then(|scheme| scheme.nic_control(&view, host, PortId(0))).unwrap();
        let nics = (0..4).map(|host| nic(HostId(host))).collect();
        let pool = Pool::default();
        TwoSwitches { pool, now: Time::ZERO, nics, switches, flows: BTreeMap::new(), frames: (0, 0), fabric }
    }

    /// Whether a host may send a flow's next packet in class 1.
    pub fn may_send(&self, src: u32, dst: u32, flow: u32) -> bool {
        let nic = &self.nics[src as usize];
        nic.paused_classes() >> 1 & 1 == 0 && nic.lets(0, FlowId(flow), HostId(dst), 1, 0)
    }

    /// A host sends a flow's next packet, if it may.
    pub fn send(&mut self, src: u32, dst: u32, flow: u32) -> bool {
        if !self.may_send(src, dst, flow) {
            return false;
        }
        self.send_anyway(src, dst, flow, PACKET_BYTES - 40);
        true
    }

    /// A host sends a flow's next packet with this payload; with none it is an answer.
    pub fn send_anyway(&mut self, src: u32, dst: u32, flow: u32, payload_bytes: u16) {
        self.now += Duration::from_ns(100);
        let (sent, _) = self.flows.entry(flow).or_default();
        let mut packet = Packet::new(FlowId(flow), HostId(src), HostId(dst), Number(*sent));
        *sent += 1;
        packet.wire_bytes = PACKET_BYTES;
        packet.payload_bytes = payload_bytes;
        packet.class = 1;
        let mut transit = Transit::leaving(self.now);
        transit.queue = self.nics[src as usize].stamp(&packet);
        let id = self.pool.insert(packet, transit);
        self.deliver(self.fabric.uplink(HostId(src)), id);
        self.answer(HostId(src));
        self.speak();
    }

    /// A switch sends what is next at the port to a neighbour, if anything may go.
    pub fn transmit(&mut self, from: &str, to: &str) -> bool {
        let (from, to) = (self.fabric.find(from).unwrap(), self.fabric.find(to).unwrap());
        let link = self.fabric.links_between(from, to).next().unwrap();
        self.now += Duration::from_ns(100);
        let sent = self.transmit_on(link);
        self.speak();
        sent
    }

    /// Everything that may go goes, until nothing may.
    pub fn run_dry(&mut self) {
        let links: Vec<LinkId> = (0..self.fabric.links.len()).map(LinkId::from).collect();
        loop {
            self.now += Duration::from_us(1);
            for switch in &mut self.switches {
                if switch.next_at() <= self.now {
                    switch.wake(self.now, &mut self.pool);
                }
            }
            if links.iter().filter(|link| self.transmit_on(**link)).count() == 0 {
                break;
            }
        }
        assert!(self.pool.is_empty(), "packets that may not go for ever: {:?}", self.flows);
        assert!(self.flows.values().all(|(sent, received)| sent == received));
    }

    /// Shows the queues of both switches.
    pub fn queues(&self, see: &mut dyn FnMut(QueueView)) {
        for switch in &self.switches {
            for port in 0..switch.ports().len() {
                switch.flow_control().unwrap().queues(switch.ports(), port.into(), see);
            }
        }
    }

    /// The counters of the switches' flow control.
    pub fn counter(&self, name: &str) -> u64 {
        let of = |switch: &Switch| switch.flow_control().unwrap().counters();
        self.switches.iter().flat_map(of).filter(|counter| counter.0 == name).map(|counter| counter.1).sum()
    }

    /// Flows that a host may not send now.
    pub fn held(&self, src: u32) -> bool {
        self.nics[src as usize].holds()
    }

    /// Frames go at once.
    fn speak(&mut self) {
        for index in 0..self.switches.len() {
            while let Some(port) = self.switches[index].take_ready_port() {
                let link = self.fabric.ports[self.fabric.switch_node(SwitchId(index as u32)).index()][port.index()];
                while self.has_frame(index, port) {
                    self.transmit_on(link);
                }
            }
        }
    }

    /// Whether what a port would send next is a frame: those go before everything else.
    fn has_frame(&self, index: usize, port: units::PortId) -> bool {
        self.switches[index].port(port).has_frame()
    }

    fn transmit_on(&mut self, link: LinkId) -> bool {
        let Some(switch) = self.fabric.as_switch(self.fabric.link(link).from) else { return false };
        let port = self.fabric.ports[self.fabric.link(link).from.index()].iter().position(|own| *own == link).unwrap();
        let sent = self.switches[switch.index()].transmit(self.now, port.into(), &mut self.pool);
        if let Some(id) = sent {
            self.deliver(link, id);
        }
        sent.is_some()
    }

    /// Frames of a host's NIC leave at once.
    fn answer(&mut self, host: HostId) {
        while let Some(frame) = self.nics[host.index()].says() {
            let id = self.pool.insert(frame, Transit::default());
            self.deliver(self.fabric.uplink(host), id);
        }
    }

    fn deliver(&mut self, link: LinkId, id: node::pool::PacketId) {
        let (to, port): (NodeId, _) = (self.fabric.link(link).to, self.fabric.link(link).to_port);
        let is_frame = self.pool.get(id).packet.has(flags::LINK_FRAME);
        if let Some(switch) = self.fabric.as_switch(to) {
            self.frames.1 += u32::from(is_frame);
            self.switches[switch.index()].receive(self.now, port, &mut self.pool, id);
            return;
        }
        let host = self.fabric.as_host(to).unwrap();
        let Slot { packet, transit } = self.pool.remove(id);
        let nic = &mut self.nics[host.index()];
        if is_frame {
            self.frames.0 += 1;
            nic.frame(self.now, &packet);
        } else {
            nic.comes(&packet, transit.queue);
            nic.taken(&packet, transit.queue);
        }
        self.answer(host);
        if is_frame {
            return;
        }
        let (_, received) = self.flows.get_mut(&packet.flow.0).unwrap();
        assert_eq!(packet.header::<Number>().0, *received, "flow {} came out of order", packet.flow.0);
        *received += 1;
    }
}
