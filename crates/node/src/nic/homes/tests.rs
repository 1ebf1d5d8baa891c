//! The ports of a host under flow control.

use fabric::{FabricSpec, Failures, LeafSpine};

use super::*;

/// A NIC control for tests: the class byte of a frame is the mask of paused classes, its flow the held flow.
#[derive(Default, node::State)]
#[state(refuse("a test does not say what of its state moves"))]
struct HeldFlows {
    classes: u8,
    flow: Option<FlowId>,
    epoch: u32,
}

impl NicControl for HeldFlows {
    fn frame(&mut self, _: Time, frame: &Packet) {
        self.classes = frame.class;
        self.flow = (frame.flow != FREE).then_some(frame.flow);
        self.epoch += 1;
    }
    fn reset(&mut self, _: bool) {
        *self = HeldFlows { epoch: self.epoch + 1, ..HeldFlows::default() };
    }
    fn paused_classes(&self) -> u8 {
        self.classes
    }
    fn lets(&self, _: u8, flow: FlowId, _: HostId, _: u8, _: u32) -> bool {
        self.flow != Some(flow)
    }
    fn epoch(&self) -> u32 {
        self.epoch
    }
}

const FREE: FlowId = FlowId(u32::MAX);
const BOTH: u64 = 0b11;

fn homes(balancing: Balancing) -> MultihomedNic {
    let spec = LeafSpine { racks: 2, hosts_per_rack: 1, homes: 2, spines: 1, ..LeafSpine::default() };
    let fabric = FabricSpec::LeafSpine(spec).build().unwrap();
    let routes = Arc::new(Routes::compute(&fabric, &Failures::default()));
    let nics = (0..2).map(|_| Some(Box::<HeldFlows>::default() as Box<dyn NicControl>)).collect();
    MultihomedNic::new(HostId(0), nics, routes, vec![balancing], fabric.switches, 1)
}

fn packet(flow: u32, class: u8) -> Packet {
    let mut packet = Packet::bare(FlowId(flow), HostId(0), HostId(1));
    (packet.class, packet.wire_bytes) = (class, 100);
    packet
}

fn told(homes: &mut MultihomedNic, port: u32, classes: u8, flow: FlowId) {
    let mut frame = packet(0, classes);
    frame.flow = flow;
    homes.frame(Time::ZERO, PortId(port), &frame);
}

/// Flows that ECMP sends by a given port, lowest first.
fn flow_of(homes: &MultihomedNic, port: u32) -> impl Iterator<Item = u32> + '_ {
    (0..).filter(move |&flow| homes.hashed(&packet(flow, 0), BOTH) == Some(port))
}

fn flows(homes: &mut MultihomedNic, free: u64) -> Vec<(u32, u32)> {
    std::iter::from_fn(|| homes.next(free)).map(|(port, packet)| (port.0, packet.flow.0)).collect()
}

#[test]
fn a_sprayed_packet_goes_where_it_can_go_now() {
    let mut homes = homes(Balancing::Spray);
    for port in [0, 1] {
        let went = homes.take_in(Time::ZERO, packet(7, 0), 1 << port).map(|went| went.0);
        assert_eq!(went, Some(PortId(port)));
    }
    // Either of two free ports is taken; if one is paused or holds the flow, the other is, even if it is busy.
    let ports: std::collections::BTreeSet<_> =
        (0..20).map(|_| homes.take_in(Time::ZERO, packet(7, 0), BOTH).unwrap().0.0).collect();
    assert_eq!(ports.len(), 2);
    told(&mut homes, 0, 1, FREE);
    assert!(homes.take_in(Time::ZERO, packet(7, 0), 0b01).is_none());
    told(&mut homes, 0, 0, FlowId(7));
    assert!(homes.take_in(Time::ZERO, packet(7, 0), 0b01).is_none());
    assert_eq!(flows(&mut homes, BOTH), [(1, 7), (1, 7)]);
    // A class is closed to endpoints only if no port accepts it.
    told(&mut homes, 0, 0b110, FREE);
    assert_eq!(homes.paused_classes(), 0);
    told(&mut homes, 1, 0b011, FREE);
    assert_eq!(homes.paused_classes(), 0b010);
}

#[test]
fn a_crowded_port_is_told_by_flow_before_others_wait_for_it() {
    let mut homes = homes(Balancing::Ecmp);
    let (a, b) = (flow_of(&homes, 0).next().unwrap(), flow_of(&homes, 1).next().unwrap());
    let lets = |homes: &MultihomedNic, flow| homes.lets(0, FlowId(flow), HostId(1), 1, 0);
    for _ in 0..RING {
        assert!(lets(&homes, a) && homes.take_in(Time::ZERO, packet(a, 3), 0b10).is_none());
    }
    assert!(!lets(&homes, a) && lets(&homes, b) && !homes.full());
    assert_eq!(homes.take_in(Time::ZERO, packet(b, 3), 0b10).map(|went| went.0), Some(PortId(1)));
    for _ in 0..RING {
        assert!(homes.take_in(Time::ZERO, packet(a, 3), 0b10).is_none());
    }
    assert!(homes.full());
    // Urgent packets go first, the rest in order. When the ring is half empty, endpoints are told to ask again.
    assert!(homes.take_in(Time::ZERO, packet(a, 0), 0b10).is_none());
    assert_eq!(homes.next(0b01).map(|next| next.1.class), Some(0));
    let epoch = homes.epoch();
    for _ in 0..2 * RING - RING / 2 {
        assert!(!lets(&homes, a));
        homes.next(0b01).unwrap();
    }
    assert!(lets(&homes, a) && homes.epoch() != epoch);
}

#[test]
fn what_is_held_waits_in_order_beside_what_may_go() {
    let mut homes = homes(Balancing::Ecmp);
    let of_port: Vec<u32> = flow_of(&homes, 0).take(2).collect();
    let [a, b] = of_port[..] else { panic!() };
    let put = |homes: &mut MultihomedNic, flow, bytes| {
        let mut packet = packet(flow, 2);
        packet.wire_bytes = bytes;
        assert!(homes.take_in(Time::ZERO, packet, 0).is_none());
    };
    put(&mut homes, a, 1);
    put(&mut homes, b, 2);
    // Flow a is held when one of its packets is already in the ring; more packets of both flows follow.
    told(&mut homes, 0, 0, FlowId(a));
    (3..40).for_each(|bytes| put(&mut homes, a, bytes));
    put(&mut homes, b, 40);
    assert!(!homes.full(), "what is held crowds nothing");
    assert_eq!(flows(&mut homes, BOTH), [(0, b), (0, b)]);
    told(&mut homes, 0, 0, FREE);
    let sizes: Vec<u16> = std::iter::from_fn(|| homes.next(BOTH)).map(|next| next.1.wire_bytes).collect();
    assert_eq!(sizes, [1].into_iter().chain(3..40).collect::<Vec<_>>());
    // The same where a class is paused.
    put(&mut homes, a, 1);
    told(&mut homes, 0, 0b100, FREE);
    (2..40).for_each(|bytes| put(&mut homes, a, bytes));
    assert!(!homes.full() && homes.next(BOTH).is_none());
    told(&mut homes, 0, 0, FREE);
    let sizes: Vec<u16> = std::iter::from_fn(|| homes.next(BOTH)).map(|next| next.1.wire_bytes).collect();
    assert_eq!(sizes, (1..40).collect::<Vec<_>>());
}

#[test]
fn a_dead_port_gives_all_that_it_has_to_the_other() {
    let mut homes = homes(Balancing::Ecmp);
    let of_port: Vec<u32> = flow_of(&homes, 0).take(3).collect();
    let [a, b, c] = of_port[..] else { panic!() };
    told(&mut homes, 0, 0b100, FlowId(c));
    for (flow, class) in [(a, 1), (b, 2), (c, 3)] {
        assert!(homes.take_in(Time::ZERO, packet(flow, class), BOTH).is_none() || flow == a);
    }
    assert!(homes.take_in(Time::ZERO, packet(a, 1), 0).is_none());
    homes.link_changed(Time::ZERO, PortId(0), false);
    assert_eq!(flows(&mut homes, BOTH), [(1, a), (1, b), (1, c)]);
    assert_eq!(homes.take_in(Time::ZERO, packet(a, 1), BOTH).map(|went| went.0), Some(PortId(1)));
    // With no link up, all packets take the first port, where they are lost; with the link back, each flow takes its
    // own.
    homes.link_changed(Time::ZERO, PortId(1), false);
    assert_eq!(homes.take_in(Time::ZERO, packet(a, 1), BOTH).map(|went| went.0), Some(PortId(0)));
    homes.link_changed(Time::ZERO, PortId(0), true);
    homes.link_changed(Time::ZERO, PortId(1), true);
    let other = flow_of(&homes, 1).next().unwrap();
    for (flow, port) in [(a, 0), (other, 1)] {
        assert_eq!(homes.take_in(Time::ZERO, packet(flow, 1), BOTH).map(|went| went.0), Some(PortId(port)));
    }
}
