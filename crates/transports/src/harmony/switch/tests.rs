//! The agent alone: a leaf with a host at port 0 and three spines, whose links have eight, four and two virtual links.

use fabric::{Failures, LeafSpine, Routes};
use node::pool::Hop;
use node::{EndpointParams, Port};
use testing::walks::{NOW, check_moved};
use units::{Duration, FlowId, Rate, Stream, SwitchId};

use super::*;
use crate::harmony::Config;
use crate::harmony::header::Reservation;
use crate::harmony::header::tests::headers;

const RATES: [u64; 4] = [100, 100, 50, 25];
const RECEIVER: HostId = HostId(0);
const SENDER: HostId = HostId(1);

struct Leaf {
    part: SwitchPart,
    ports: Vec<Port>,
    routes: Routes,
    random: Stream,
    made: Vec<(PortId, Packet)>,
    now: Time,
}

fn bounds() -> Bounds {
    let site = EndpointParams {
        host: RECEIVER,
        hosts: 2,
        nic_rate: Rate::from_gbps(100),
        data_rtt: Duration::from_us(5),
        data_rtts: vec![(3, Duration::from_us(5))],
        control_rtt: Duration::from_us(4),
        mtu_bytes: 1500,
        header_bytes: 40,
        clock: node::Clock::default(),
        transport: 0,
    };
    Bounds::uniform(&Config::default(), &site)
}

impl Leaf {
    fn new() -> Leaf {
        let fabric = LeafSpine { racks: 2, hosts_per_rack: 1, spines: 3, ..LeafSpine::default() };
        let fabric = fabric::FabricSpec::LeafSpine(fabric).build().unwrap();
        Leaf {
            part: SwitchPart::new(bounds(), 2),
            ports: RATES.iter().map(|&gbps| Port::new(Rate::from_gbps(gbps), Hop::Up, &[])).collect(),
            routes: Routes::compute(&fabric, &Failures::default()),
            random: Stream::new(3, 0, "leaf"),
            made: Vec::new(),
            now: Time::from_us(1),
        }
    }

    fn handle(&mut self, in_port: u32, packet: &mut Packet) -> Option<u32> {
        let Leaf { part, ports, routes, random, made, now } = self;
        let mut cx = AgentCx::new(*now, SwitchId(0), ports, routes, random, made);
        part.handle(&mut cx, PortId(in_port), packet).map(|port| port.0)
    }

    /// A rsvp of the receiver's comes from it: where it goes, and what it is then.
    fn rsvp(&mut self, id: u32, bytes: u64) -> (Option<u32>, Packet) {
        let mut packet = rsvp(id, bytes);
        (self.handle(0, &mut packet), packet)
    }

    fn set_up(&mut self, port: usize, up: bool) {
        self.ports[port].set_up(up);
        let Leaf { part, ports, routes, random, made, now } = self;
        part.set_up(&mut AgentCx::new(*now, SwitchId(0), ports, routes, random, made), PortId(port as u32), up);
    }

    fn held(&self) -> Vec<u32> {
        self.part.held(self.now).map(|port| port.0).collect()
    }
}

const MAIN: Slot = Slot::Main { conclusive: false };

fn of(id: u32) -> Reservation {
    Reservation { attempt: 1, id }
}

fn rsvp(id: u32, missing: u64) -> Packet {
    rsvp_on_its_way(Rsvp { reservation: of(id), slot: MAIN, missing, offset: 0, back: 0 })
}

fn rsvp_on_its_way(rsvp: Rsvp) -> Packet {
    let mut packet = Packet::new(FlowId(7), RECEIVER, SENDER, Header::Rsvp(rsvp));
    packet.flags = flags::SOURCE_ROUTED | flags::ROUTER_ALERT;
    packet.wire_bytes = 40;
    packet
}

/// The way back that a rsvp has written down.
fn back(packet: &Packet) -> Option<u64> {
    if let Header::Rsvp(rsvp) = packet.header() { Some(rsvp.back) } else { None }
}

fn is_reject(packet: &Packet) -> bool {
    matches!(packet.header(), Header::Reject { what: Rejected::Slot, .. })
}

fn complete(id: u32) -> Header {
    Header::Complete { reservation: of(id), sent: 1, last: true }
}

fn reject(id: u32) -> Header {
    Header::Reject { reservation: of(id), what: Rejected::Slot }
}

/// What frees a reservation, coming in at the port of its data: on its way to the receiver.
fn release(header: Header) -> Packet {
    let mut packet = Packet::new(FlowId(7), SENDER, RECEIVER, header);
    packet.flags = flags::SOURCE_ROUTED | flags::ROUTER_ALERT;
    packet
}

#[test]
fn the_choice_is_uniform_over_free_virtual_links() {
    let mut leaf = Leaf::new();
    let mut counts = [0u32; 4];
    let draws = 7_000;
    for id in 0..draws {
        leaf.part = SwitchPart::new(bounds(), 2);
        counts[leaf.rsvp(id, 1).0.unwrap() as usize] += 1;
    }
    for (port, share) in [(1, 8.0 / 14.0), (2, 4.0 / 14.0), (3, 2.0 / 14.0)] {
        let (mean, sd) = (share * f64::from(draws), (share * (1.0 - share) * f64::from(draws)).sqrt());
        assert!((f64::from(counts[port]) - mean).abs() < 4.0 * sd, "{counts:?}");
    }
}

#[test]
fn every_virtual_link_is_taken_once_and_then_rejects_go_both_ways() {
    let mut leaf = Leaf::new();
    for id in 0..14 {
        let (out, packet) = leaf.rsvp(id, 1);
        // The data's last port is this leaf's to the receiver; the way back begins where the rsvp goes.
        assert_eq!((packet.label, back(&packet)), (0, out.map(u64::from)));
    }
    assert_eq!(leaf.held(), [0, 8, 4, 2]);
    assert!(leaf.made.is_empty());
    leaf.rsvp(14, 1);
    // Section 3.1 tells both: the receiver, which will try again, and the sender.
    let [(_, told)] = leaf.made[..] else { panic!("{:?}", leaf.made) };
    assert_eq!((told.header(), told.dst), (Header::Refusal { attempt: 1, conclusive: false }, SENDER));
    leaf.made.clear();
    // Where that refusal is the message's end, so it says.
    let slot = Slot::Main { conclusive: true };
    let mut reject = rsvp_on_its_way(Rsvp { reservation: of(15), slot, missing: 1, offset: 0, back: 0 });
    let out = leaf.handle(0, &mut reject);
    assert_eq!((out, reject.dst, reject.src), (Some(0), RECEIVER, SENDER));
    // For the receiver a switch's refusal is never final.
    assert!(is_reject(&reject));
    assert!(reject.has(flags::ROUTER_ALERT) && reject.has(flags::SOURCE_ROUTED) && reject.wire_bytes == 40);
    let [(port, told)] = leaf.made[..] else { panic!("{:?}", leaf.made) };
    assert_eq!(told.header::<Header>(), Header::Refusal { attempt: 1, conclusive: true });
    assert_eq!((told.dst, told.flags, told.label), (SENDER, 0, 0));
    assert!((1..4).contains(&port.0));
    assert_eq!(leaf.held(), [0, 8, 4, 2]);
}

#[test]
fn a_route_is_written_hop_by_hop_and_a_reject_goes_back_along_it() {
    let mut leaf = Leaf::new();
    // It has passed two switches, whose ports 5 and 9 lead back.
    let mut packet = rsvp_on_its_way(Rsvp { reservation: of(1), slot: MAIN, missing: 1, offset: 0, back: 0x0201 });
    (packet.hops, packet.label) = (2, 0x0905);
    let out = leaf.handle(3, &mut packet).unwrap();
    assert_eq!(packet.label, 0x09_05_03, "data leave this switch by port 3, then by 5 and 9");
    assert_eq!(back(&packet), Some(u64::from(out) << 16 | 0x0201));
    // Beyond the longest shortest path there is no guarantee.
    let mut far = rsvp(2, 1);
    (far.hops, far.label) = (3, 0x07_0905);
    assert_eq!(leaf.handle(3, &mut far), Some(3));
    // Its next switch takes the second port, since it counts the first as passed.
    assert_eq!((is_reject(&far), far.label, far.hops), (true, 0x0709_0503, 0));
}

#[test]
fn completes_rejects_and_failures_free_and_what_comes_twice_frees_once() {
    let mut leaf = Leaf::new();
    let outs: Vec<u32> = (0..3).map(|id| leaf.rsvp(id, 1).0.unwrap()).collect();
    // The same rsvp again goes the same way and takes nothing.
    assert_eq!(leaf.rsvp(0, 1).0, Some(outs[0]));
    assert_eq!(leaf.held().iter().sum::<u32>(), 3);
    for (id, header) in [(0, complete(0)), (1, reject(1))] {
        for _ in 0..2 {
            assert_eq!(leaf.handle(outs[id as usize], &mut release(header)), Some(0));
            assert_eq!(leaf.held().iter().sum::<u32>(), 2 - id);
        }
    }
    // A failure goes the other way: it leaves by the port of the data.
    let mut failure = Packet::new(FlowId(7), RECEIVER, SENDER, Header::Failure(of(2)));
    (failure.flags, failure.label) = (flags::SOURCE_ROUTED | flags::ROUTER_ALERT, u64::from(outs[2]));
    assert_eq!(leaf.handle(0, &mut failure), Some(outs[2]));
    assert_eq!(leaf.held(), [0; 4]);
    // Another receiver's reservation of the same number is another.
    leaf.rsvp(5, 1);
    let mut other = release(complete(5));
    other.dst = SENDER;
    for port in 1..4 {
        leaf.handle(port, &mut other);
        other.hops = 0;
    }
    assert_eq!(leaf.held().iter().sum::<u32>(), 1);
}

#[test]
fn what_is_not_freed_runs_out() {
    let mut leaf = Leaf::new();
    for id in 0..14 {
        leaf.rsvp(id, 1460 * 100);
    }
    leaf.now += bounds().hold(1460 * 100);
    assert!(is_reject(&leaf.rsvp(100, 1).1));
    leaf.now += Duration::from_ps(1);
    assert!(back(&leaf.rsvp(101, 1).1).is_some());
    assert_eq!(leaf.held().iter().sum::<u32>(), 1);
    let reclaimed = leaf.part.counters().into_iter().find(|counter| counter.0 == "switch_reclaimed");
    assert_eq!(reclaimed, Some(("switch_reclaimed", 14)));
}

#[test]
fn a_link_that_goes_down_keeps_its_reservations_for_senders_that_do_not_know() {
    let mut leaf = Leaf::new();
    for id in 0..14 {
        leaf.rsvp(id, 1);
    }
    leaf.set_up(1, false);
    assert_eq!(leaf.held(), [0, 8, 4, 2]);
    leaf.handle(2, &mut release(reject(leaf.part.ports[2].held[0].id)));
    assert_eq!(leaf.rsvp(20, 1).0, Some(2), "what is down is no way");
    leaf.set_up(1, true);
    assert!(is_reject(&leaf.rsvp(21, 1).1));
    leaf.now += leaf.part.bounds.hold(1) + Duration::from_ns(1);
    assert!(back(&leaf.rsvp(22, 1).1).is_some(), "until they can't be of use to them");
}

proptest::proptest! {
    #[test]
    fn any_packet_is_survived(
        packets in proptest::collection::vec(
            (headers(0u16..3, 0u32..20, [proptest::num::u64::ANY; 3]), proptest::num::u32::ANY,
                proptest::num::u64::ANY, 0u8..20, proptest::num::u8::ANY, 0u32..300, 0u32..5),
            1..50,
        ),
    ) {
        let mut leaf = Leaf::new();
        for (header, flow, word, hops, flags, port, dst) in packets {
            let mut packet = Packet::new(FlowId(flow), HostId(dst), HostId(dst ^ 1), header);
            (packet.label, packet.hops, packet.flags) = (word, hops, flags | flags::ROUTER_ALERT);
            let out = leaf.handle(port, &mut packet);
            proptest::prop_assert!(out.is_none_or(|out| out < 4 || out == port));
            proptest::prop_assert!(leaf.part.held(leaf.now).all(|(held, links)| held <= links));
        }
    }
}

#[test]
fn data_take_no_turn_by_which_they_would_be_later_than_a_link_s_bound_has_it() {
    // To the host they may be as late as they come, from the first two spines or from the third.
    let us = Duration::from_us;
    let port = |arriving, leaving| PortLateness { arriving: us(arriving), leaving: us(leaving) };
    let lateness = |third| Some(vec![port(0, 4), port(4, 0), port(4, 0), port(third, 0)]);
    let spines = |third| {
        let mut leaf = Leaf::new();
        leaf.part = SwitchPart::new(bounds(), 2).with_lateness(lateness(third));
        (0..14).map(|id| leaf.rsvp(id, 1).0.unwrap()).collect::<std::collections::BTreeSet<u32>>()
    };
    assert_eq!(spines(4).into_iter().collect::<Vec<_>>(), [1, 2, 3]);
    // What comes by the third may be later than that: no rsvp goes there, and with the others full it is refused, back
    // to port 0.
    assert_eq!(spines(5).into_iter().collect::<Vec<_>>(), [0, 1, 2]);
    // From a spine back up: a way around a failure that goes down and up again.
    let mut leaf = Leaf::new();
    leaf.part = SwitchPart::new(bounds(), 2).with_lateness(lateness(4));
    let mut packet = rsvp(1, 1);
    assert_eq!(leaf.handle(2, &mut packet), Some(2));
    assert!(is_reject(&packet));
}

/// A reservation that lasts, and one for what is missing of a flow.
fn reserved() -> Reservations {
    let held = |index: u32, additional| super::Reservation {
        receiver: RECEIVER,
        id: SLOTS_MAX + index,
        until: NOW + Duration::from_us(5) + bounds().hold(if additional { 100_000 } else { 1_000_000 }),
        flow: FlowId(3),
        additional,
        offset: if additional { 900_000 } else { 0 },
        missing: if additional { 100_000 } else { 1_000_000 },
    };
    Reservations { links: 8, held: vec![held(0, false), held(1, true)], oldest: NOW }
}

/// In each period the slots are assigned anew, when more of the flow has come.
#[test]
fn its_walk_moves_reservations() {
    let period = Duration::from_us(1);
    let pass = move |reserved: &mut Reservations, _| {
        for held in &mut reserved.held {
            let before = bounds().hold(held.missing);
            held.id += SLOTS_MAX;
            if held.additional {
                (held.offset, held.missing) = (held.offset + 1_460, held.missing - 1_460);
            }
            held.until = held.until + period + bounds().hold(held.missing) - before;
        }
        reserved.oldest = reserved.held.iter().map(|held| held.until).min().expect("there are two");
    };
    let see = |reserved: &Reservations| {
        let all = reserved.held.iter().map(|held| (held.id, held.until, held.offset, held.missing));
        (all.collect::<Vec<_>>(), reserved.oldest)
    };
    let walk = |reserved: &mut Reservations, walk: &mut Walk| node::State::visit(reserved, walk, &bounds());
    check_moved(&[], period, reserved, walk, pass, see);
}
