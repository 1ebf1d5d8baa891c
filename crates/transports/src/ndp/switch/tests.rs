//! A switch of four hosts at 100 Gbps, handed packets by hand: 1,500 B of data, 40 B of headers, eight packets a queue.

use std::sync::Arc;

use fabric::{FabricSpec, Failures, Routes, Star};
use node::balance::Balancer;
use node::packet::flags;
use node::pool::{Hop, Pool, Transit};
use node::{Balancing, Buffer, Clock, Loss, MarkAt, Overflow, Port, Received, Settings, Switch};
use units::{Bytes, Duration, FlowId, HostId, PortId, Rate, Stream, SwitchId, Time};

use super::*;
use crate::ndp::header::{Answer, Progress};

struct Scene {
    switch: Switch,
    pool: Pool,
    now: Time,
}

impl Scene {
    fn new(config: &Config) -> Scene {
        let fabric = FabricSpec::Star(Star { hosts: 4, ..Star::default() }).build().unwrap();
        let settings = Settings {
            buffer: Buffer::PerPort { bytes: Bytes(500_000) },
            overflow: Overflow::TailDrop,
            levels: Vec::new(),
            marking: vec![None, None],
            mark_at: MarkAt::default(),
            early_drop: Vec::new(),
            header_bytes: 40,
        };
        let site = EndpointParams {
            host: HostId(0),
            hosts: 4,
            nic_rate: Rate::from_gbps(100),
            data_rtt: Duration::from_us(5),
            data_rtts: vec![(1, Duration::from_us(5))],
            control_rtt: Duration::from_us(5),
            mtu_bytes: 1500,
            header_bytes: 40,
            clock: Clock::default(),
            transport: 0,
        };
        let balancer = |seed| Balancer::new(Balancing::Spray, seed, Stream::new(seed, 0, "balance"));
        let switch = Switch::new(
            SwitchId(0),
            (0..4).map(|_| Port::new(Rate::from_gbps(100), Hop::Last, &[])).collect(),
            Arc::new(Routes::compute(&fabric, &Failures::default())),
            vec![balancer(1), balancer(2)],
            Arc::new(settings),
            Stream::new(1, 0, "switch"),
            None,
        );
        let switch = switch.with_flow_control(Some(Box::new(part(config, &site, 4))));
        Scene { switch, pool: Pool::default(), now: Time::ZERO }
    }

    /// A packet from host 0 to host 1.
    fn receive(&mut self, packet: Packet) -> Received {
        let id = self.pool.insert(packet, Transit::default());
        self.switch.receive(self.now, PortId(0), &mut self.pool, id)
    }

    fn transmit(&mut self, port: u32) -> Option<Packet> {
        self.now = self.now.max(self.switch.port(PortId(port)).free_at());
        let id = self.switch.transmit(self.now, PortId(port), &mut self.pool)?;
        Some(self.pool.remove(id).packet)
    }

    fn drain(&mut self, port: u32) -> Vec<Packet> {
        std::iter::from_fn(|| self.transmit(port)).collect()
    }

    fn counter(&self, name: &str) -> u64 {
        let counters = self.switch.flow_control().unwrap().counters();
        counters.iter().find(|counter| counter.0 == name).unwrap().1
    }
}

fn data_header(packet: u32, returned: bool) -> Header {
    Header::Data(Data { packet, class: 0, message_bytes: 0, offset: 0, last: false, returned })
}

fn ack_header(packet: u32) -> Header {
    Header::Ack(Answer { packet, progress: Progress { pull: 0, acked: 0 } })
}

fn data(number: u32) -> Packet {
    let mut packet = Packet::new(FlowId(0), HostId(0), HostId(1), data_header(number, false));
    (packet.wire_bytes, packet.payload_bytes, packet.class) = (1500, 1460, 1);
    packet
}

fn ack(number: u32) -> Packet {
    let mut packet = Packet::new(FlowId(1), HostId(0), HostId(1), ack_header(number));
    packet.wire_bytes = 40;
    packet
}

fn number(packet: &Packet) -> u32 {
    match packet.header() {
        Header::Data(data) => data.packet,
        Header::Ack(answer) | Header::Nack(answer) => answer.packet,
        Header::Pull(_) => 0,
    }
}

#[test]
fn what_finds_eight_packets_waiting_is_cut_by_a_coin_and_headers_go_first() {
    let mut arriving = 0;
    let mut scene = Scene::new(&Config::default());
    for _ in 0..400 {
        for packet in 0..9 {
            assert_eq!(scene.receive(data(packet)), Received::Queued(PortId(1)));
        }
        assert_eq!(scene.switch.used_bytes(), 8 * 1500 + 40);
        let mut sent = scene.drain(1);
        // One header, of the ninth packet or of the eighth, and eight packets in order. The header goes first, but when
        // ten before it have.
        sent[..2].sort_by_key(|packet| packet.wire_bytes);
        let cut = number(&sent[0]);
        assert!(sent[0].has(flags::TRIMMED) && sent[0].wire_bytes == 40 && sent[0].payload_bytes == 0);
        assert!(cut == 7 || cut == 8);
        arriving += u32::from(cut == 8);
        let rest: Vec<u32> = (0..9).filter(|&packet| packet != cut).collect();
        assert_eq!(sent[1..].iter().map(number).collect::<Vec<_>>(), rest);
        assert!(sent[1..].iter().all(|packet| packet.wire_bytes == 1500));
        assert_eq!(scene.switch.used_bytes(), 0);
    }
    // 400 throws: five standard deviations are 50.
    assert!((150..=250).contains(&arriving), "{arriving}");
    assert_eq!(scene.switch.port(PortId(1)).stats.trimmed_packets, 400);
}

#[test]
fn by_payload_a_queue_of_eight_packets_holds_seven() {
    let mut scene = Scene::new(&Config { departures: super::super::Departures::published(), ..Config::default() });
    for packet in 0..8 {
        scene.receive(data(packet));
    }
    // Eight times 1,460 B.
    assert_eq!(scene.switch.used_bytes(), 7 * 1500 + 40);
}

#[test]
fn ten_headers_go_for_each_packet_while_both_wait() {
    let mut scene = Scene::new(&Config::default());
    for packet in 0..3 {
        scene.receive(data(packet));
    }
    for packet in 0..40 {
        scene.receive(ack(packet));
    }
    let sizes: Vec<bool> = scene.drain(1).iter().map(|packet| packet.wire_bytes == 1500).collect();
    let expected: Vec<bool> = (0..43).map(|at| matches!(at, 10 | 21 | 32)).collect();
    assert_eq!(sizes, expected);
}

#[test]
fn headers_that_find_no_room_go_back_to_their_sender_once() {
    let mut scene = Scene::new(&Config::default());
    // Room for 8 packets, and for 12,000 / 40 headers in as much memory.
    for packet in 0..308 {
        assert_eq!(scene.receive(data(packet)), Received::Queued(PortId(1)));
    }
    assert_eq!(scene.receive(data(308)), Received::Queued(PortId(0)), "the port to its sender");
    let back = scene.transmit(0).unwrap();
    assert_eq!((back.src, back.dst, number(&back)), (HostId(1), HostId(0), 308));
    assert!(back.has(flags::TRIMMED) && back.wire_bytes == 40);
    assert_eq!(back.header::<Header>(), data_header(308, true));
    // Control packets, and what has been sent back already, have nowhere to go.
    let full = Received::Lost(Loss::Overflow, Some(PortId(1)));
    assert_eq!(scene.receive(ack(0)), full);
    let mut again = back;
    (again.src, again.dst) = (HostId(0), HostId(1));
    assert_eq!(scene.receive(again), full);
    assert_eq!((scene.counter("headers_returned"), scene.counter("headers_lost")), (1, 2));
    // Without the option it is lost; and all is there that was let in.
    let mut other = Scene::new(&Config { return_to_sender: false, ..Config::default() });
    let lost = (0..310).filter(|&packet| other.receive(data(packet)) == full).count();
    assert_eq!((lost, other.counter("headers_lost")), (2, 2));
    assert_eq!(other.drain(1).len(), 308);
    assert_eq!((other.switch.used_bytes(), other.pool.len()), (0, 0));
}

#[test]
fn a_source_route_leads_back_no_more() {
    let mut scene = Scene::new(&Config::default());
    let routed = |number| {
        let mut packet = data(number);
        (packet.flags, packet.label) = (flags::SOURCE_ROUTED, 1);
        packet
    };
    for packet in 0..308 {
        scene.receive(routed(packet));
    }
    assert_eq!(scene.receive(routed(308)), Received::Queued(PortId(0)));
    let back = scene.transmit(0).unwrap();
    assert!(!back.has(flags::SOURCE_ROUTED) && back.hops == 1);
}

#[test]
fn other_transports_packets_are_neither_cut_nor_sent_back() {
    let mut scene = Scene::new(&Config::default());
    let other = |class| {
        let mut packet = data(0);
        (packet.transport, packet.class) = (1, class);
        packet
    };
    for class in 0..8 {
        assert_eq!(scene.receive(other(class)), Received::Queued(PortId(1)));
    }
    assert_eq!(scene.receive(other(0)), Received::Lost(Loss::Overflow, Some(PortId(1))));
    // NDP's own is cut itself when the last is another's.
    assert_eq!(scene.receive(data(5)), Received::Queued(PortId(1)));
    let sent = scene.drain(1);
    assert!(sent.len() == 9 && sent[0].has(flags::TRIMMED) && number(&sent[0]) == 5);
}

#[test]
fn what_waits_for_a_link_that_dies_is_lost_and_counted() {
    let mut scene = Scene::new(&Config::default());
    for packet in 0..20 {
        scene.receive(data(packet));
    }
    scene.switch.set_up(scene.now, PortId(1), false, &mut scene.pool);
    let stats = scene.switch.port(PortId(1)).stats;
    assert_eq!((stats.dead_packets, stats.dead_bytes), (20, 8 * 1500 + 12 * 40));
    assert_eq!((scene.switch.used_bytes(), scene.pool.len()), (0, 0));
    assert!(!scene.switch.has_sendable(PortId(1)));
}
