//! Scenes on the virtual wire: 100 Gbps, 2.5 us from host to host, so that a control packet takes 2.5064 us (3.2 ns
//! onto the wire, and again out of the switch) and a full data packet 2.74 us. The switch has no bounds; what is
//! trimmed or sent back, a scene does itself.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use node::packet::flags;
use node::{Endpoint, EndpointParams, Event, Packet};
use testing::{PacketFate, Scene, Wire, sent};
use units::{Duration, FlowId, HostId, Rate, Time};

use super::header::{Answer, Data, Progress};
use super::{Config, Departure, Departures, Header, PathChoice};
use contract::{NetworkView, Scheme};

/// A full packet, of 1,460 message bytes.
const PACKET: Duration = Duration::from_ns(120);
/// From one host to another.
const DATA_WAY: Duration = Duration::from_ps(2_740_000);
const CONTROL_WAY: Duration = Duration::from_ps(2_506_400);
/// One round trip at line rate (5.2464 us: 65,580 B) and two queues of eight packets.
const WINDOW: u64 = 60;
/// The round trip, and at the one switch 8 packets and 300 headers, ten before each packet: 38 turns of 152 ns.
const RTO: Duration = Duration::from_ps(5_246_400 + 38 * 152_000);

/// A host's part where there is one path, so that senders choose none.
fn endpoint(config: Config, site: &EndpointParams) -> Box<dyn Endpoint> {
    Config { paths: PathChoice::Switches, ..config }.endpoint(site, &NetworkView::star(site))
}

fn scene(hosts: u32) -> Scene {
    Scene::new(hosts, Wire::default(), |site| endpoint(Config::default(), site))
}

/// The same with links of 400 Gbps to hosts, which pull for 100.
fn fast(hosts: u32) -> Scene {
    departing(hosts, &[])
}

/// The same, where hosts depart from the paper.
fn departing(hosts: u32, departures: &'static [Departure]) -> Scene {
    let wire = Wire { down_rate: Some(Rate::from_gbps(400)), ..Wire::default() };
    let departures: Departures = departures.iter().copied().collect();
    Scene::new(hosts, wire, move |site| endpoint(Config { departures, ..Config::default() }, site))
}

const fn packets(count: u64) -> u64 {
    count * 1460
}

fn ms(ms: u64) -> Time {
    Time::from_ms(ms)
}

/// The number of a data packet.
fn number(packet: &Packet) -> Option<u32> {
    if let Header::Data(data) = packet.header() { Some(data.packet) } else { None }
}

/// Pulls sent for a message, as far as this packet says.
fn pull(packet: &Packet) -> u32 {
    match packet.header() {
        Header::Data(_) => 0,
        Header::Ack(Answer { progress, .. }) | Header::Nack(Answer { progress, .. }) | Header::Pull(progress) => {
            progress.pull
        }
    }
}

/// When each of a packet's copies was sent.
fn times(scene: &Scene, number: u32) -> Vec<Time> {
    sent!(scene, Header::Data(data) => data.packet)
        .into_iter()
        .filter(|sent| sent.2 == number)
        .map(|sent| sent.0)
        .collect()
}

fn count(scene: &Scene, host: u32, name: &str) -> u64 {
    scene.endpoint(host).counters().into_iter().find(|counter| counter.0 == name).expect("a counter of that name").1
}

fn trim(packet: &mut Packet) {
    packet.flags |= flags::TRIMMED;
    (packet.wire_bytes, packet.payload_bytes, packet.class) = (40, 0, 0);
}

fn send_back(packet: &mut Packet) {
    trim(packet);
    if let Header::Data(data) = packet.header() {
        packet.set_header(Header::Data(Data { returned: true, ..data }));
    }
    (packet.src, packet.dst) = (packet.dst, packet.src);
}

/// Whether a packet is data, first sent.
fn first_time() -> impl FnMut(&Packet) -> bool {
    let mut seen = BTreeSet::new();
    move |packet| number(packet).is_some_and(|number| seen.insert((packet.flow, number)))
}

#[test]
fn one_packet_needs_no_handshake() {
    let mut scene = scene(2);
    let flow = scene.send(Time::ZERO, 0, 1, 100);
    scene.run_until(ms(1));
    // 140 B: 11.2 ns onto each link.
    let delivered = Time::from_ps(2_500_000 + 2 * 11_200);
    assert_eq!(scene.delivered_at(flow), Some(delivered));
    assert_eq!(scene.completed_at(flow), Some(delivered + CONTROL_WAY));
    assert_eq!((sent!(scene, Header::Ack(_)).len(), sent!(scene, Header::Pull(_)).len()), (1, 0));
    assert_eq!(scene.sent.len(), 2);
}

#[test]
fn a_window_is_pushed_at_line_rate_and_then_nothing_until_pulled() {
    let mut scene = scene(2);
    scene.spoil(|_, packet| if packet.src == HostId(1) { PacketFate::Drop } else { PacketFate::Pass });
    scene.send(Time::ZERO, 0, 1, packets(500));
    scene.run_until(Time::ZERO + RTO - Duration::from_ps(1));
    let sent: Vec<Time> = sent!(scene, Header::Data(data) => data.packet).iter().map(|sent| sent.0).collect();
    let expected: Vec<Time> = (0..WINDOW).map(|packet| Time::ZERO + PACKET * packet).collect();
    assert_eq!(sent, expected);
}

#[test]
fn a_long_message_never_leaves_the_line_idle() {
    let mut scene = scene(2);
    let flow = scene.send(Time::ZERO, 0, 1, packets(5_000));
    scene.run_until(ms(10));
    assert_eq!(scene.delivered_at(flow), Some(Time::ZERO + PACKET * 4_999 + DATA_WAY));
    // A lone sender's pulls go with ACKs (section 3.2), and there is one for each packet that was not pushed, or more
    // by what was on its way when the sender's last packet left.
    assert_eq!(sent!(scene, Header::Pull(_)).len(), 0);
    let pulls = count(&scene, 1, "pulls");
    assert!((5_000 - WINDOW..5_000).contains(&pulls), "{pulls}");
}

#[test]
fn a_trimmed_packet_is_announced_at_once_and_sent_first_when_pulled() {
    let mut scene = scene(2);
    let mut first_time = first_time();
    scene.touch(move |_, packet| {
        if first_time(packet) && [Some(3), Some(20)].contains(&number(packet)) {
            trim(packet);
        }
    });
    let flow = scene.send(Time::ZERO, 0, 1, packets(200));
    scene.run_until(ms(1));
    let nacks: Vec<(Time, u32)> =
        sent!(scene, Header::Nack(nack) => nack.packet).iter().map(|nack| (nack.0, nack.2)).collect();
    // Sent whole, it comes in as headers; its ACK is no larger.
    let comes = |packet: u64| Time::ZERO + PACKET * packet + Duration::from_ps(120_000 + 2_500_000 + 3_200);
    assert_eq!(nacks.len(), 2);
    for ((at, packet), expected) in nacks.into_iter().zip([3, 20]) {
        assert_eq!(packet, expected);
        // Behind the control packet that the NIC is sending, at most.
        assert!(at.since(comes(u64::from(packet))) <= Duration::from_ps(3_200), "{at}");
    }
    for packet in [3, 20] {
        assert_eq!(times(&scene, packet).len(), 2);
        // Before all packets that had not been sent when its NACK came.
        let again = times(&scene, packet)[1];
        let nack_comes = comes(u64::from(packet)) + CONTROL_WAY + Duration::from_ps(3_200);
        assert!(again.since(nack_comes) <= PACKET * 2, "{again}");
    }
    let all = sent!(scene, Header::Data(data) => data.packet).len();
    assert_eq!((all, count(&scene, 0, "timeouts"), count(&scene, 1, "duplicates")), (202, 0, 0));
    // The line is never idle: two packets more.
    assert_eq!(scene.delivered_at(flow), Some(Time::ZERO + PACKET * 201 + DATA_WAY));
}

#[test]
fn what_nothing_is_heard_of_goes_again_after_the_timeout() {
    let mut scene = scene(2);
    let mut first_time = first_time();
    scene.spoil(
        move |_, packet| {
            if first_time(packet) && number(packet) == Some(5) { PacketFate::Drop } else { PacketFate::Pass }
        },
    );
    let flow = scene.send(Time::ZERO, 0, 1, packets(30));
    scene.run_until(ms(1));
    let (sent, again) = (Time::ZERO + PACKET * 5, Time::ZERO + PACKET * 5 + RTO);
    assert_eq!(times(&scene, 5), [sent, again]);
    assert_eq!(scene.delivered_at(flow), Some(again + DATA_WAY));
    assert_eq!(count(&scene, 0, "timeouts"), 1);
}

#[test]
fn lost_pulls_are_made_up_for_by_later_ones() {
    let mut scene = fast(3);
    let mut pulls = 0;
    scene.spoil(move |now, packet| {
        let pull = matches!(packet.header(), Header::Pull(_)) && now < Time::from_us(50);
        pulls += u32::from(pull);
        if pull && pulls % 3 != 0 { PacketFate::Drop } else { PacketFate::Pass }
    });
    let flows = [scene.send(Time::ZERO, 0, 2, packets(400)), scene.send(Time::ZERO, 1, 2, packets(400))];
    scene.run_until(ms(1));
    assert!(flows.iter().all(|&flow| scene.delivered_at(flow).is_some()));
    assert!(sent!(scene, Header::Pull(_)).len() > 50);
    let sum = |name| count(&scene, 0, name) + count(&scene, 1, name);
    assert_eq!(
        (sum("timeouts"), sum("pulls_missed"), sent!(scene, Header::Data(data) => data.packet).len()),
        (0, 0, 800)
    );
}

#[test]
fn when_the_last_pulls_are_lost_a_sender_goes_on_after_a_while() {
    let mut scene = scene(2);
    // Answers that pull nothing, until long after the window has been acknowledged.
    scene.touch(|now, packet| {
        if now < Time::from_us(100) {
            let none = |progress| Progress { pull: 0, ..progress };
            packet.set_header(match packet.header() {
                Header::Ack(Answer { packet, progress }) => Header::Ack(Answer { packet, progress: none(progress) }),
                Header::Nack(Answer { packet, progress }) => Header::Nack(Answer { packet, progress: none(progress) }),
                Header::Pull(progress) => Header::Pull(none(progress)),
                data @ Header::Data(_) => data,
            });
        }
    });
    let flow = scene.send(Time::ZERO, 0, 1, packets(WINDOW + 10));
    scene.run_until(ms(5));
    // One packet unasked, 16 timeouts after the window's last ACK; its own ACK tells of all the pulls.
    let heard = Time::ZERO + PACKET * (WINDOW - 1) + DATA_WAY + CONTROL_WAY;
    assert_eq!(times(&scene, WINDOW as u32), [heard + RTO * 16]);
    assert!(scene.delivered_at(flow).unwrap() < heard + RTO * 16 + Duration::from_us(20));
    assert_eq!((count(&scene, 0, "pulls_missed"), count(&scene, 0, "timeouts")), (1, 0));
}

#[test]
fn pulls_go_at_the_rate_at_which_full_packets_come_in_and_to_all_alike() {
    // Packets come out of the network four times as fast, so that the pull queue is long.
    let mut scene = fast(9);
    for src in 1..9 {
        scene.send(Time::ZERO, src, 0, packets(300));
    }
    scene.run_until(ms(10));
    // Each rise of a flow's counter is a pull.
    let mut known = BTreeMap::new();
    let mut pulls: Vec<(Time, FlowId)> = Vec::new();
    for (at, packet) in scene.sent.iter().filter(|sent| sent.1.src == HostId(0)) {
        let before = known.insert(packet.flow, pull(packet)).unwrap_or(0);
        let more = pull(packet).saturating_sub(before);
        pulls.extend((0..more).map(|_| (*at, packet.flow)));
    }
    // Control packets before it hold one up for 9 x 3.2 ns at most.
    let slack = Duration::from_ps(9 * 3_200);
    assert!(pulls.iter().enumerate().all(|(at, pull)| pull.0 + slack >= pulls[0].0 + PACKET * at as u64));
    // Once all windows are known to the receiver, everyone has one in eight, until the first has sent everything.
    let steady = &pulls[500..1_500];
    for flow in 0..8 {
        let share = steady.iter().filter(|pull| pull.1 == FlowId(flow)).count();
        assert!((124..=126).contains(&share), "flow {flow}: {share}");
    }
}

#[test]
fn a_lone_packet_sent_back_goes_again_at_once() {
    let mut scene = scene(2);
    let mut first_time = first_time();
    scene.touch(move |_, packet| {
        if first_time(packet) {
            send_back(packet);
        }
    });
    let flow = scene.send(Time::ZERO, 0, 1, packets(1));
    scene.run_until(ms(1));
    let back = Time::from_ps(120_000 + 2_500_000 + 3_200);
    assert_eq!(times(&scene, 0), [Time::ZERO, back]);
    assert_eq!(scene.delivered_at(flow), Some(back + DATA_WAY));
    assert_eq!((count(&scene, 0, "returned"), count(&scene, 0, "timeouts")), (1, 0));
}

#[test]
fn a_window_sent_back_echoes_with_one_packet() {
    let mut scene = scene(2);
    let mut first_time = first_time();
    scene.touch(move |_, packet| {
        if first_time(packet) {
            send_back(packet);
        }
    });
    let flow = scene.send(Time::ZERO, 0, 1, packets(10));
    scene.run_until(ms(1));
    assert!(scene.delivered_at(flow).is_some());
    // The tenth return: nothing else is on its way, and no pull to come.
    let back = Time::ZERO + PACKET * 9 + Duration::from_ps(120_000 + 2_500_000 + 3_200);
    let again: Vec<Time> = sent!(scene, Header::Data(data) => data.packet)[10..].iter().map(|sent| sent.0).collect();
    assert_eq!(again[0], back);
    // The next when that one's ACK pulls it; each pulls one.
    assert!(again[1].since(back) >= DATA_WAY + CONTROL_WAY);
    assert_eq!((count(&scene, 0, "returned"), count(&scene, 0, "returned_resent"), again.len()), (10, 1, 10));
    assert_eq!((count(&scene, 0, "timeouts"), count(&scene, 0, "pulls_missed")), (0, 0));
}

#[test]
fn a_packet_sent_back_while_others_get_through_goes_again_at_once() {
    let mut scene = scene(2);
    let mut first_time = first_time();
    scene.touch(move |_, packet| {
        if first_time(packet) && number(packet) == Some(150) {
            send_back(packet);
        }
    });
    scene.send(Time::ZERO, 0, 1, packets(300));
    scene.run_until(ms(1));
    // Behind the packet that the NIC is sending.
    let [sent, again] = times(&scene, 150)[..] else { panic!("sent twice") };
    assert!(again.since(sent) <= Duration::from_ps(120_000 + 2_500_000 + 3_200) + PACKET * 2);
}

#[test]
fn nothing_is_pulled_for_what_has_come() {
    let mut scene = fast(5);
    let short: Vec<FlowId> = (1..5).map(|src| scene.send(Time::ZERO, src, 0, packets(30))).collect();
    scene.run_until(ms(1));
    for flow in short {
        let done = scene.delivered_at(flow).expect("it is there");
        let late = sent!(scene, Header::Pull(_)).iter().any(|pull| pull.1.flow == flow && pull.0 > done + PACKET);
        assert!(!late, "{flow:?}");
    }
    // 120 packets of four senders came in the time of 30: most of their pulls were still waiting.
    assert!(count(&scene, 0, "pulls_removed") > 60);
}

#[test]
fn in_order_a_short_message_waits_for_the_window_before_it_and_in_turn_for_a_packet_or_two() {
    let first_of_short = |departures| {
        let mut scene = departing(3, departures);
        scene.send(Time::ZERO, 0, 1, packets(500));
        let short = scene.send(Time::from_us(1), 0, 2, packets(1));
        scene.run_until(ms(1));
        sent!(scene, Header::Data(data) => data.packet).iter().find(|sent| sent.1.flow == short).expect("it was sent").0
    };
    // Behind the packet that is leaving and the turn that the other has already.
    assert_eq!(first_of_short(&[]), Time::ZERO + PACKET * 10);
    // One packet less than on the slower wire: its round trip is 90 ns shorter.
    assert_eq!(first_of_short(&[Departure::InOrder]), Time::ZERO + PACKET * (WINDOW - 1));
}

#[test]
fn in_order_what_is_sent_again_goes_ahead() {
    let mut scene = departing(3, &[Departure::InOrder]);
    let mut first_time = first_time();
    scene.touch(move |_, packet| {
        if first_time(packet) && number(packet) == Some(3) && packet.dst == HostId(1) {
            trim(packet);
        }
    });
    scene.send(Time::ZERO, 0, 1, packets(10));
    // 60 packets that are still leaving when the NACK and its pull are there.
    scene.send(Time::from_us(1), 0, 2, packets(100));
    scene.run_until(ms(1));
    let again = sent!(scene, Header::Data(data) => data.packet)
        .iter()
        .filter(|sent| sent.1.dst == HostId(1) && sent.2 == 3)
        .map(|sent| sent.0)
        .next_back()
        .unwrap();
    assert!(again < Time::ZERO + PACKET * 60, "{again}");
}

#[test]
fn by_payload_pulls_are_closer_than_packets() {
    let spread = |departures| {
        let mut scene = departing(9, departures);
        for src in 1..9 {
            scene.send(Time::ZERO, src, 0, packets(300));
        }
        scene.run_until(ms(10));
        let pulls: Vec<Time> = sent!(scene, Header::Pull(_)).iter().map(|pull| pull.0).collect();
        pulls[1_100].since(pulls[100])
    };
    let slack = Duration::from_ps(9 * 3_200);
    let [whole, payload] = [spread(&[]), spread(&[Departure::PayloadOnly])];
    assert!(whole + slack >= PACKET * 1_000 && whole <= PACKET * 1_000 + slack, "{whole}");
    let expected = Duration::from_ps(116_800) * 1_000;
    assert!(payload + slack >= expected && payload <= expected + slack, "{payload}");
}

#[test]
fn pulls_to_the_end_are_not_removed_by_a_mark() {
    let removed = |departures| {
        let mut scene = departing(5, departures);
        let mut first_time = first_time();
        // The first packet of each message is missing until all others have come.
        scene.touch(move |_, packet| {
            if first_time(packet) && number(packet) == Some(0) {
                trim(packet);
            }
        });
        let short: Vec<FlowId> = (1..5).map(|src| scene.send(Time::ZERO, src, 0, packets(30))).collect();
        scene.run_until(ms(1));
        assert!(short.into_iter().all(|flow| scene.delivered_at(flow).is_some()));
        count(&scene, 0, "pulls")
    };
    assert!(removed(&[Departure::PullsToTheEnd]) > removed(&[]) + 10);
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig { cases: 60, ..Default::default() })]

    /// Whatever befalls packets: each message is delivered once and completed once; headers always lead to a NACK;
    /// receivers pull no more than packets came in, and no faster than these do.
    #[test]
    fn what_always_holds(
        seed: u32,
        flows in proptest::collection::vec((0u64..60, 0u32..4, 1u32..4, 1u64..300_000), 1..8),
        spoilt in 0u64..30,
        cut in 0u64..40,
        back in 0u64..20,
        published: bool,
    ) {
        let mut scene = Scene::new(4, Wire::default(), move |site| {
            // Pulls by payload would be faster than packets, which is asked below.
            let departures = if published { vec![Departure::InOrder, Departure::PullsToTheEnd] } else { Vec::new() };
            endpoint(Config { departures: departures.into_iter().collect(), ..Config::default() }, site)
        });
        let mut random = units::Stream::new(u64::from(seed), 0, "fates");
        scene.spoil(move |_, _| match random.below(400) {
            at if at < spoilt => PacketFate::Drop,
            at if at < 2 * spoilt => PacketFate::Duplicate,
            at if at < 4 * spoilt => PacketFate::Delay(Duration::from_ns(random.below(6_000))),
            _ => PacketFate::Pass,
        });
        let mut random = units::Stream::new(u64::from(seed), 1, "cuts");
        let seen = Rc::new(RefCell::new((0u64, BTreeMap::<FlowId, u32>::new())));
        let note = seen.clone();
        scene.touch(move |_, packet| {
            if number(packet).is_some() {
                match random.below(100) {
                    at if at < cut => {
                        trim(packet);
                        note.borrow_mut().0 += 1;
                    }
                    at if at < cut + back => return send_back(packet),
                    _ => {}
                }
                *note.borrow_mut().1.entry(packet.flow).or_default() += 1;
            }
        });
        let flows: Vec<FlowId> = flows
            .into_iter()
            .map(|(at, src, away, bytes)| scene.send(Time::from_us(at), src, (src + away) % 4, bytes))
            .collect();
        scene.run_until(ms(200));
        let said = |event: &dyn Fn(&Event) -> bool| scene.events.iter().filter(|said| event(&said.2)).count();
        for &flow in &flows {
            assert_eq!(said(&|event| *event == Event::Delivered { flow }), 1, "{flow:?} delivered");
            assert_eq!(said(&|event| matches!(event, Event::Completed { flow: of, .. } if *of == flow)), 1, "{flow:?}");
        }
        let (trimmed, arrived) = &*seen.borrow();
        let sum = |name| (0..4).map(|host| count(&scene, host, name)).sum::<u64>();
        // Each header is answered: by a NACK, or by an ACK if the packet had come meanwhile.
        assert!(sum("nacks") <= *trimmed && sum("nacks") + sum("duplicates") >= *trimmed);
        for (flow, arrived) in arrived {
            let pulls = scene.sent.iter().filter(|sent| sent.1.flow == *flow).map(|sent| pull(&sent.1));
            assert!(pulls.max().unwrap_or(0) <= *arrived);
        }
        let lasts = scene.sent.last().map_or(Time::ZERO, |sent| sent.0);
        for host in 0..4 {
            assert!(PACKET * count(&scene, host, "pulls").saturating_sub(1) <= lasts.since(Time::ZERO));
        }
    }
}
