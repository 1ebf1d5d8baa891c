//! Scenes on the virtual wire: one switch with Harmony's part, 100 Gbps, 2.5 us from host to host, so that a control
//! packet takes 2.5064 us and a full data packet 2.74 us.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use fabric::Star;
use node::{AgentCx, Clock, EndpointParams, Event, Packet, SwitchAgent};
use testing::{PacketFate, Scene, Wire, sent};
use units::{Duration, FlowId, HostId, PortId, Rate, Time};

mod additional;
mod lost;

use super::bounds::Bounds;
use super::header::{Rejected, Slot};
use super::{Config, Header, Refused, SwitchPart, rsvp};
use contract::{NetworkView, Scheme};

/// What one control packet takes from host to host, and one full data packet.
const CONTROL: Duration = Duration::from_ps(2_506_400);
const DATA: Duration = Duration::from_ps(2_740_000);
/// 1500 bytes at 0.99 x 100 Gbps / 8, rounded up.
const PERIOD: Duration = Duration::from_ps(969_697);
const PACKET: Duration = Duration::from_ns(120);

/// A switch's part that is looked at after every packet: no link has more reservations than virtual links.
#[derive(node::State)]
#[state(refuse("a test does not say what of its state moves"))]
struct Watched(Arc<Mutex<SwitchPart>>);

impl SwitchAgent for Watched {
    fn handle(&mut self, cx: &mut AgentCx<'_>, in_port: PortId, packet: &mut Packet) -> Option<PortId> {
        let mut part = self.0.lock().unwrap();
        let out = part.handle(cx, in_port, packet);
        assert!(part.held(cx.now).all(|(held, links)| held <= links));
        out
    }
}

fn network(site: &EndpointParams) -> NetworkView {
    let fabric = fabric::FabricSpec::Star(Star { hosts: site.hosts, ..Star::default() }).build().unwrap();
    NetworkView::new(fabric, site)
}

/// Hosts of these clocks, and the switch's part to look at.
fn watched(clocks: &[Clock], config: &Config) -> (Scene, Arc<Mutex<SwitchPart>>) {
    let part = Mutex::new(None);
    let scene = Scene::with_clocks(Wire::default(), clocks, |site| {
        let bounds = Bounds::new(config, &network(site));
        *part.lock().unwrap() = Some(SwitchPart::new(bounds, site.hosts));
        config.endpoint(site, &network(site))
    });
    let part = Arc::new(Mutex::new(part.into_inner().unwrap().unwrap()));
    (scene.with_agent(Box::new(Watched(part.clone()))), part)
}

fn scene(hosts: usize, config: Config) -> Scene {
    watched(&vec![Clock::default(); hosts], &config).0
}

fn slots(slots: u16) -> Config {
    Config { slots, ..Config::default() }
}

const fn packets(count: u64) -> u64 {
    count * 1460
}

fn count(scene: &Scene, host: u32, name: &str) -> u64 {
    scene.endpoint(host).counters().into_iter().find(|counter| counter.0 == name).expect("a counter of that name").1
}

/// When the sender of a flow learnt how it ended.
fn ends(scene: &Scene) -> Vec<(Time, Event)> {
    let end = |event: &&(Time, HostId, Event)| !matches!(event.2, Event::Delivered { .. } | Event::Measured { .. });
    scene.events.iter().filter(end).map(|event| (event.0, event.2)).collect()
}

/// What hosts began to send of data.
fn data(scene: &Scene) -> Vec<(Time, Packet, ())> {
    sent!(scene, Header::Data(_))
}

/// The message bytes of the slots that ended, the last ones of their messages or others.
fn completed_bytes(scene: &Scene, last_ones: bool) -> Vec<u64> {
    let ends = sent!(scene, Header::Complete { sent, last, .. } => (sent, last));
    ends.into_iter().filter(|end| end.2.1 == last_ones).map(|end| end.2.0).collect()
}

fn is_data(header: Header) -> bool {
    matches!(header, Header::Data(_))
}

/// Loses those packets of one kind that come up in this order.
fn lose(scene: &mut Scene, kind: impl Fn(Header) -> bool + 'static, which: std::ops::Range<usize>) {
    let mut seen = 0;
    scene.spoil(move |_, packet| {
        let hit = kind(packet.header());
        seen += usize::from(hit);
        if hit && which.contains(&(seen - 1)) { PacketFate::Drop } else { PacketFate::Pass }
    });
}

#[test]
fn a_lone_message_takes_a_round_trip_and_then_all_slots() {
    for count in [1, 8, 9, 16, 40] {
        let mut scene = scene(2, slots(8));
        let flow = scene.send(Time::ZERO, 0, 1, packets(count));
        scene.run_until(Time::from_ms(1));
        let last = PERIOD * ((count - 1) / 8) + PACKET * ((count - 1) % 8);
        let delivered = Time::ZERO + CONTROL * 2 + last + DATA;
        assert_eq!(scene.delivered_at(flow), Some(delivered), "{count} packets");
        assert_eq!(scene.completed_at(flow), Some(delivered + CONTROL));
        assert_eq!(data(&scene).len() as u64, count);
    }
}

#[test]
fn with_one_slot_it_is_sent_at_the_whole_rate_less_what_is_control_s() {
    let config = rsvp::Config::default();
    let mut scene = Scene::new(2, Wire::default(), |site| config.endpoint(site, &network(site)));
    let flow = scene.send(Time::ZERO, 0, 1, packets(100));
    scene.run_until(Time::from_ms(1));
    // 120 ns / 0.99 a packet.
    assert_eq!(scene.delivered_at(flow), Some(Time::ZERO + CONTROL * 2 + Duration::from_ps(121_213) * 99 + DATA));
}

#[test]
fn eight_messages_of_eight_senders_share_a_link_and_a_queue_of_seven_packets() {
    let mut scene = scene(10, slots(8));
    // All slots are another's when they ask, and become free together.
    let before = scene.send(Time::ZERO, 9, 0, packets(40));
    let flows: Vec<FlowId> = (1..9).map(|src| scene.send(Time::from_us(1), src, 0, packets(100))).collect();
    scene.run_until(Time::from_ms(1));
    let first = scene.delivered_at(before).unwrap() + CONTROL + PERIOD * 99 + DATA;
    let delivered = || flows.iter().map(|&flow| scene.delivered_at(flow).unwrap());
    // Their first packets meet; from then on each comes in its place. Completes and rsvps of 40 bytes hold them up a
    // little.
    let (earliest, latest) = (delivered().min().unwrap(), delivered().max().unwrap());
    assert!(earliest >= first && latest <= first + PACKET * 8, "{earliest} {latest} for {first}");
    // One is being transmitted, at most seven wait.
    let peak = scene.queue_bytes_peak[0];
    assert!((6 * 1500..=7 * 1500 + 8 * 40).contains(&peak), "{peak}");
}

#[test]
fn a_slot_s_packets_leave_at_least_a_period_apart_whatever_message_has_it() {
    let mut scene = scene(4, slots(2));
    for flow in 0..30 {
        scene.send(Time::from_us(flow), 0, 1 + flow as u32 % 3, packets(1 + flow % 7));
    }
    scene.run_until(Time::from_ms(2));
    assert_eq!(ends(&scene).len(), 30);
    let data: Vec<Time> = data(&scene).into_iter().map(|sent| sent.0).collect();
    let period = Bounds::uniform(&slots(2), &site()).period(1500);
    // With two slots no three full packets leave within a period.
    for three in data.windows(3) {
        assert!(three[2].since(three[0]) >= period, "{three:?}");
    }
}

fn site() -> EndpointParams {
    let site = Mutex::new(None);
    Scene::new(2, Wire::default(), |of| {
        *site.lock().unwrap() = Some(of.clone());
        Config::default().endpoint(of, &NetworkView::star(of))
    });
    site.into_inner().unwrap().unwrap()
}

/// Host 0 sends two long messages to host 1 in two slots; `later` come at 1 us, from other hosts.
fn busy_receiver(clock: Clock, config: &Config, later: u32) -> Scene {
    let mut clocks = vec![Clock::default(); 3 + later as usize];
    clocks[1] = clock;
    let mut scene = watched(&clocks, config).0;
    for src in [0, 2] {
        scene.send(Time::ZERO, src, 1, packets(2_000));
    }
    for src in 0..later {
        scene.send(Time::from_us(1), 3 + src, 1, packets(1));
    }
    scene
}

#[test]
fn a_request_that_finds_no_slot_is_rejected_at_delta_admission() {
    let mut scene = busy_receiver(Clock::default(), &slots(2), 1);
    scene.run_until(Time::from_us(100));
    let rejected = Time::from_us(1) + CONTROL + Duration::from_us(63) + CONTROL;
    assert_eq!(ends(&scene), [(rejected, Event::Rejected { flow: FlowId(2) })]);
}

#[test]
fn the_receiver_s_clock_decides() {
    // One that runs 1% fast has seen 63 us after 62.376.
    let fast = Clock { offset_ps: 5_000_000, drift_ppb: 10_000_000 };
    let mut scene = busy_receiver(fast, &slots(2), 1);
    scene.run_until(Time::from_us(100));
    let [(at, Event::Rejected { .. })] = ends(&scene)[..] else { panic!("{:?}", ends(&scene)) };
    let expected = Time::from_us(1) + CONTROL * 2 + Duration::from_ps(63_000_000 * 100 / 101);
    assert!(at.since(expected) + expected.since(at) < Duration::from_ns(1), "{at} for {expected}");
}

#[test]
fn the_oldest_request_is_next() {
    let config = Config { delta_admission: Duration::from_ms(10), ..slots(2) };
    let mut scene = busy_receiver(Clock::default(), &config, 5);
    scene.run_until(Time::from_ms(5));
    let rsvps: Vec<u32> = sent!(scene, Header::Rsvp(_)).iter().map(|rsvp| rsvp.1.flow.0).collect();
    let mut first = BTreeMap::new();
    for (place, flow) in rsvps.iter().enumerate() {
        first.entry(*flow).or_insert(place);
    }
    let order: Vec<usize> = (2..7).map(|flow| first[&flow]).collect();
    assert!(order.is_sorted(), "{order:?}");
    assert_eq!(ends(&scene).len(), 7);
}

#[test]
fn additional_slots_are_for_one_bdp_and_only_while_nobody_waits() {
    let mut scene = scene(3, slots(8));
    scene.send(Time::ZERO, 0, 1, packets(2_000));
    scene.send(Time::from_us(100), 2, 1, packets(10));
    scene.run_until(Time::from_ms(3));
    let rsvps = sent!(scene, Header::Rsvp(rsvp) => rsvp);
    // 5.2464 us at 100 Gbps are 65,580 bytes: 45 packets.
    assert_eq!((rsvps[0].2.slot, rsvps[0].2.missing), (Slot::Main { conclusive: false }, packets(2_000)));
    assert!(rsvps[1..8].iter().all(|rsvp| rsvp.2.slot == Slot::Additional), "{rsvps:?}");
    let ended = completed_bytes(&scene, false);
    assert!(ended.len() > 7 && ended.iter().all(|&bytes| bytes == packets(45)), "{ended:?}");
    // The second message's rsvp is the first that goes after its request has come: when an additional slot has ended.
    let after: Vec<_> = rsvps.iter().filter(|rsvp| rsvp.0 >= Time::from_us(100) + CONTROL).collect();
    assert_eq!(after[0].1.flow, FlowId(1));
    assert_eq!(ends(&scene).len(), 2);
}

#[test]
fn a_message_that_has_begun_is_not_rejected_an_additional_slot_becomes_its_main_one() {
    let mut scene = scene(2, slots(4));
    let flow = scene.send(Time::ZERO, 0, 1, packets(2_000));
    // Whatever rsvp is for its main slot comes back as a reject, as by a switch without a free virtual link.
    scene.touch(|_, packet| {
        if let Header::Rsvp(rsvp) = packet.header()
            && rsvp.slot != Slot::Additional
        {
            packet.set_header(Header::Reject { reservation: rsvp.reservation, what: Rejected::Slot });
            (packet.src, packet.dst, packet.class, packet.label) = (packet.dst, packet.src, 1, 1);
        }
    });
    scene.run_until(Time::from_ms(5));
    let [(_, end)] = ends(&scene)[..] else { panic!("{:?}", ends(&scene)) };
    assert!(matches!(end, Event::Completed { flow: of, resent_packets: 0, .. } if of == flow), "{end:?}");
    assert!(count(&scene, 1, "slots_promoted") > 0 && count(&scene, 1, "rejected_by_receivers") == 0);
    assert_eq!((count(&scene, 0, "busy_at_end"), count(&scene, 1, "busy_at_end")), (0, 0));
    // One went on beyond its 45 packets, and the others ended there, or with the message.
    let [last, before] = [true, false].map(|last| completed_bytes(&scene, last));
    assert!(before.len() > 7 && before.iter().all(|&bytes| bytes == packets(45)), "{before:?}");
    let beyond: Vec<u64> = last.iter().copied().filter(|&bytes| bytes > packets(45)).collect();
    assert!(matches!(beyond[..], [one] if one > packets(400)), "{last:?}");
    assert_eq!(before.iter().chain(&last).sum::<u64>(), packets(2_000));
}

#[test]
fn a_message_s_delay_is_measured_beside_its_bound() {
    let mut scene = scene(2, slots(8));
    scene.send(Time::ZERO, 0, 1, packets(9));
    scene.run_until(Time::from_ms(1));
    let measured: Vec<(&str, u64)> = scene
        .events
        .iter()
        .filter_map(|event| match event.2 {
            Event::Measured { what, value, .. } => Some((what, value)),
            _ => None,
        })
        .collect();
    // Nine packets in eight slots: from the rsvp's arrival a period, the last packet's way and the complete's.
    let delay = PERIOD + DATA + CONTROL;
    let bound = Bounds::new(&slots(8), &network(&site())).message_delay(packets(9));
    assert_eq!(measured, [("message_delay_ps", delay.ps()), ("message_delay_bound_ps", bound.ps())]);
    assert!(bound > PERIOD * 9 + DATA + CONTROL);
}

#[test]
fn without_additional_slots_a_message_has_one() {
    let mut scene = scene(2, Config { additional: Some(units::Bytes(0)), ..slots(8) });
    let message = scene.send(Time::ZERO, 0, 1, packets(9));
    scene.run_until(Time::from_ms(1));
    assert_eq!((count(&scene, 1, "rsvps"), count(&scene, 1, "rsvps_additional")), (1, 0));
    assert!(scene.completed_at(message).unwrap() >= Time::ZERO + PERIOD * 8);
}

#[test]
fn a_sender_without_a_slot_refuses_and_is_asked_again() {
    let mut scene = scene(3, slots(1));
    let first = scene.send(Time::ZERO, 0, 1, packets(100));
    let second = scene.send(Time::ZERO, 0, 2, packets(1));
    scene.run_until(Time::from_ms(1));
    let (first, second) = (scene.completed_at(first).unwrap(), scene.completed_at(second).unwrap());
    // The first takes 5 us + 12 us; then the second is asked for within a round trip, and takes another with its data.
    assert!(second > first && second.since(first) < CONTROL * 5, "{first} {second}");
    let refused = count(&scene, 2, "refused");
    assert!((2..=4).contains(&refused), "every 5 us for 12 us: {refused}");
}

#[test]
fn or_the_message_is_rejected_at_once() {
    let mut scene = scene(3, Config { refused: Refused::GiveUp, ..slots(1) });
    scene.send(Time::ZERO, 0, 1, packets(100));
    let second = scene.send(Time::ZERO, 0, 2, packets(1));
    scene.run_until(Time::from_ms(1));
    // The switch tells the sender in place of the rsvp.
    let (at, event) = ends(&scene)[0];
    assert_eq!(event, Event::Rejected { flow: second });
    assert!(at.since(Time::ZERO + CONTROL * 2) < Duration::from_ns(10), "{at}");
    assert_eq!(ends(&scene).len(), 2);
}

#[test]
fn a_lost_request_is_sent_again_when_no_answer_can_come_any_more() {
    let mut scene = scene(2, slots(8));
    lose(&mut scene, |header| matches!(header, Header::Request { .. }), 0..1);
    let flow = scene.send(Time::ZERO, 0, 1, packets(1));
    scene.run_until(Time::from_ms(1));
    let answer = Bounds::new(&slots(8), &network(&site())).answer();
    assert_eq!(scene.delivered_at(flow), Some(Time::ZERO + answer + CONTROL * 2 + DATA));
    assert_eq!((count(&scene, 0, "requests_again"), count(&scene, 0, "attempts_failed")), (1, 0));
}

#[test]
fn what_is_lost_is_noticed_within_the_bounds_and_sent_again() {
    let bounds = Bounds::new(&slots(8), &network(&site()));
    // The rsvp: no data come. The sender asks again as soon as it is told.
    let mut lost_rsvp = scene(2, slots(8));
    lose(&mut lost_rsvp, |header| matches!(header, Header::Rsvp(_)), 0..1);
    let flow = lost_rsvp.send(Time::ZERO, 0, 1, packets(1));
    lost_rsvp.run_until(Time::from_ms(1));
    let again = Time::ZERO + CONTROL + bounds.first_data() + CONTROL;
    assert_eq!(lost_rsvp.delivered_at(flow), Some(again + CONTROL * 2 + DATA));
    assert_eq!(count(&lost_rsvp, 1, "failures_seen"), 1);

    // A packet in the middle: its slot's complete says how much was sent. Nothing that came is sent again but what is
    // behind it.
    let mut lost_data = scene(2, slots(1));
    lose(&mut lost_data, is_data, 40..41);
    let flow = lost_data.send(Time::ZERO, 0, 1, packets(100));
    lost_data.run_until(Time::from_ms(1));
    let Some((_, Event::Completed { sent_packets, resent_packets, .. })) = ends(&lost_data).first().copied() else {
        panic!("{:?}", lost_data.events)
    };
    assert!(lost_data.delivered_at(flow).is_some());
    // Once the lost one is there nothing is missing: the sender goes on for the round trip of 5.2464 us, 44 packets.
    assert_eq!((sent_packets, resent_packets), (144, 44));

    // All from some packet on, as when a link has died: noticed when the next is overdue.
    let mut silence = scene(2, slots(1));
    let flow = silence.send(Time::ZERO, 0, 1, packets(100));
    silence.spoil({
        let mut seen = 0;
        move |now, packet| {
            let data = is_data(packet.header());
            seen += u32::from(data);
            let lost = data && seen > 40 || matches!(packet.header(), Header::Complete { .. });
            if lost && now < Time::from_us(20) { PacketFate::Drop } else { PacketFate::Pass }
        }
    });
    silence.run_until(Time::from_ms(1));
    let one = Bounds::new(&slots(1), &network(&site()));
    let last = Time::ZERO + CONTROL * 2 + Duration::from_ps(121_213) * 39 + DATA;
    let failure = sent!(silence, Header::Failure(_))[0].0;
    assert_eq!(failure, last + one.next_data());
    assert!(silence.completed_at(flow).is_some());

    // The receiver's complete: the sender asks, and hears that it has been delivered.
    let mut lost_end = scene(2, slots(8));
    lose(&mut lost_end, |header| header == Header::Delivered, 0..1);
    let flow = lost_end.send(Time::ZERO, 0, 1, packets(1));
    lost_end.run_until(Time::from_ms(1));
    let asked = Time::ZERO + CONTROL * 2 + bounds.completion();
    assert_eq!(lost_end.completed_at(flow), Some(asked + CONTROL * 2));
    assert_eq!(lost_end.events.iter().filter(|event| event.2 == Event::Delivered { flow }).count(), 1);
}

#[test]
fn after_so_many_attempts_it_is_a_failure() {
    let mut scene = scene(2, slots(8));
    lose(&mut scene, is_data, 0..usize::MAX);
    let flow = scene.send(Time::ZERO, 0, 1, packets(3));
    scene.run_until(Time::from_ms(10));
    assert!(matches!(ends(&scene)[..], [(_, Event::Failed { flow: of, .. })] if of == flow), "{:?}", scene.events);
    assert_eq!(count(&scene, 0, "requests"), 3);
    // The receiver's patience is over: nothing is left anywhere.
    assert_eq!((count(&scene, 0, "busy_at_end"), count(&scene, 1, "busy_at_end")), (0, 0));
}

#[test]
fn a_closed_gate_lets_nothing_out_and_loses_nothing() {
    let mut scene = scene(2, slots(8));
    let flow = scene.send(Time::ZERO, 0, 1, packets(30));
    scene.run_until(Time::ZERO + CONTROL * 2);
    scene.pause(0, 1);
    scene.run_until(Time::from_us(10));
    assert!(data(&scene).len() <= 1);
    scene.pause(0, 0);
    scene.run_until(Time::from_ms(1));
    assert!(scene.completed_at(flow).is_some());
}

/// Any packets of any kind at any host or switch: nothing panics, and nothing of it stays.
fn garbage() -> impl proptest::strategy::Strategy<Value = (u8, Header, u8, u64, u32, u16)> {
    use proptest::prelude::*;
    let bytes = any::<u64>().prop_map(|bytes| if bytes % 2 == 0 { bytes % 5_000 } else { bytes });
    let words = (bytes, 0u64..20_000, any::<u64>()).prop_map(|(bytes, offset, back)| [bytes, offset, back]);
    let header = super::header::tests::headers(0u16..3, 0u32..20_000, words);
    (any::<u8>(), header, 0u8..12, any::<u64>(), 0u32..6, 0u16..1461)
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig { cases: 60, ..Default::default() })]

    #[test]
    fn each_message_ends_once_whatever_befalls_packets(
        seed: u64, k in 1u16..5, loss in 0u64..25, twice in 0u64..15, late in 0u64..15, give_up: bool,
        messages in proptest::collection::vec((0u64..80, 0u32..4, 1u32..4, 1u64..60), 1..25),
    ) {
        let refused = if give_up { Refused::GiveUp } else { Refused::Wait };
        let (mut scene, part) = watched(&[Clock::default(); 4], &Config { refused, ..slots(k) });
        let mut random = units::Stream::new(seed, 0, "fate");
        scene.spoil(move |_, _| match random.below(100) {
            draw if draw < loss => PacketFate::Drop,
            draw if draw < loss + twice => PacketFate::Duplicate,
            draw if draw < loss + twice + late => PacketFate::Delay(Duration::from_ns(random.below(30_000))),
            _ => PacketFate::Pass,
        });
        let send = |scene: &mut Scene, &(at, src, by, count): &(u64, u32, u32, u64)| {
            scene.send(Time::from_us(at), src, (src + by) % 4, packets(count) - 7)
        };
        let flows: Vec<FlowId> = messages.iter().map(|message| send(&mut scene, message)).collect();
        scene.run_until(Time::from_ms(20));
        for flow in flows {
            let said: Vec<Event> = scene.events.iter().map(|event| event.2).filter(|event| match *event {
                Event::Delivered { flow: of } | Event::Rejected { flow: of } => of == flow,
                Event::Measured { .. } => false,
                Event::Completed { flow: of, .. } | Event::Failed { flow: of, .. } => of == flow,
            }).collect();
            let delivered = said.iter().filter(|event| matches!(event, Event::Delivered { .. })).count();
            proptest::prop_assert!(delivered <= 1 && said.len() == delivered + 1, "{:?}", said);
            let end = said.iter().find(|event| !matches!(event, Event::Delivered { .. }));
            match end {
                Some(Event::Completed { .. }) => proptest::prop_assert_eq!(delivered, 1),
                Some(Event::Rejected { .. }) => proptest::prop_assert_eq!(delivered, 0),
                _ => {}
            }
        }
        // All slots and virtual links are free again.
        for host in 0..4 {
            proptest::prop_assert_eq!(count(&scene, host, "busy_at_end"), 0);
            proptest::prop_assert_eq!(count(&scene, host, "malformed"), 0);
        }
        proptest::prop_assert!(part.lock().unwrap().held(Time::from_ms(20)).all(|(held, _)| held == 0));
    }

    #[test]
    fn garbage_from_a_socket_harms_nothing(
        packets_in in proptest::collection::vec(garbage(), 1..60), seed: u64,
    ) {
        let (mut scene, part) = watched(&[Clock::default(); 3], &slots(2));
        let mut random = units::Stream::new(seed, 0, "garbage");
        let flow = scene.send(Time::ZERO, 0, 1, packets(5));
        // Whatever a host sends, what reaches the switch is something else now and then.
        let mut packets_in = packets_in.into_iter();
        scene.touch(move |_, packet| {
            if random.below(3) == 0 && let Some((flags, header, hops, label, flow, payload)) = packets_in.next() {
                let (src, dst) = (HostId(random.below(3) as u32), packet.dst);
                let mut other = Packet::new(FlowId(flow), src, dst, header);
                (other.flags, other.hops, other.label, other.payload_bytes) = (flags, hops, label, payload);
                (other.wire_bytes, other.class) = (payload + 40, 1);
                *packet = other;
            }
        });
        for src in 0..3 {
            scene.send(Time::from_us(5), src, (src + 1) % 3, packets(20));
        }
        scene.run_until(Time::from_ms(20));
        let ended = scene.events.iter().filter(|event| match event.2 {
            Event::Delivered { .. } | Event::Measured { .. } => false,
            Event::Completed { flow: of, .. } | Event::Rejected { flow: of } | Event::Failed { flow: of, .. }
                => of == flow,
        }).count();
        proptest::prop_assert_eq!(ended, 1);
        proptest::prop_assert!(part.lock().unwrap().held(Time::from_ms(20)).all(|(held, links)| held <= links));
    }
}

#[test]
fn what_can_t_be_right_is_refused_with_advice() {
    let refused = |config: Config| config.check().unwrap_err().key;
    assert_eq!(refused(slots(0)), "slots");
    assert_eq!(refused(slots(2_000)), "slots");
    assert_eq!(refused(Config { delta_admission: Duration::ZERO, ..slots(8) }), "delta_admission");
    assert_eq!(refused(Config { retry_after: Some(Duration::from_ms(10_000)), ..slots(8) }), "retry_after");
    assert_eq!(refused(Config { attempts: 0, ..slots(8) }), "attempts");
    assert_eq!(refused(Config { control_share: f64::NAN, ..slots(8) }), "control_share");
    assert_eq!(Config::default().check(), Ok(()));
    // A link of 10 Gbps among hosts of 100: a slot of an eighth is 12.5.
    let fabric =
        fabric::FabricSpec::Dumbbell(fabric::Dumbbell { bottleneck_rate: Rate::from_gbps(10), ..Default::default() });
    let network = NetworkView::new(fabric.build().unwrap(), &site());
    let problem = Config::default().check_on(&network).unwrap_err();
    assert!(problem.key == "slots" && problem.message.contains("slots = 10 or more"), "{problem:?}");
    assert_eq!(slots(10).check_on(&network), Ok(()));
    let problem = rsvp::Config::default().check_on(&network).unwrap_err();
    assert!(problem.key.is_empty() && problem.message.contains("harmony"), "{problem:?}");
    let far = EndpointParams { data_rtts: vec![(9, Duration::from_us(9))], ..site() };
    let problem = slots(10).check_on(&NetworkView { site: far, ..network }).unwrap_err();
    assert!(problem.message.contains("pass 9"), "{problem:?}");
}
