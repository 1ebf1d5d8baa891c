//! Scenes on the virtual wire: 100 Gbps, 2.5 us from host to host, so that a control packet takes 2.5064 us and a full
//! data packet 2.74 us. From a token to its packet are 5.2464 us, 43.72 packet times: a bandwidth-delay product is 44
//! packets.

use node::{Event, Packet};
use testing::{PacketFate, Scene, Wire, sent};
use units::{Bytes, Duration, FlowId, Time};

use super::header::Token;
use super::policy::Turns;
use super::{Config, FreeTokensFor, Header, Policy};
use contract::{NetworkView, Scheme};

const BDP: u32 = 44;
const PACKET: Duration = Duration::from_ns(120);
const RTT: Duration = Duration::from_ps(5_246_400);
const CONTROL: Duration = Duration::from_ps(2_506_400);
const DATA: Duration = Duration::from_ps(2_740_000);

fn scene(hosts: u32, config: Config) -> Scene {
    Scene::new(hosts, Wire::default(), move |site| config.endpoint(site, &NetworkView::star(site)))
}

/// As the authors' program: long flows wait for tokens.
fn short_flows_only() -> Config {
    Config { free_tokens_for: FreeTokensFor::ShortFlows, ..Config::default() }
}

fn ms(ms: u64) -> Time {
    Time::from_ms(ms)
}

/// 1460 bytes a packet.
const fn packets(count: u64) -> u64 {
    count * 1460
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Rts,
    Token,
    Data,
    Ack,
}

fn kind(packet: &Packet) -> Kind {
    match packet.header() {
        Header::Rts(_) => Kind::Rts,
        Header::Token(_) => Kind::Token,
        Header::Data(_) => Kind::Data,
        Header::Ack => Kind::Ack,
    }
}

/// All that was sent of one kind, and when.
fn of_kind(scene: &Scene, of: Kind) -> Vec<(Time, Packet)> {
    scene.sent.iter().copied().filter(|sent| kind(&sent.1) == of).collect()
}

fn times(scene: &Scene, kind: Kind) -> Vec<Time> {
    of_kind(scene, kind).into_iter().map(|sent| sent.0).collect()
}

fn count(scene: &Scene, host: u32, name: &str) -> u64 {
    scene.endpoint(host).counters().into_iter().find(|counter| counter.0 == name).expect("a counter of that name").1
}

fn resent(scene: &Scene, flow: FlowId) -> u64 {
    let found = scene.events.iter().find_map(|event| match event.2 {
        Event::Completed { flow: of, resent_packets, .. } if of == flow => Some(resent_packets),
        _ => None,
    });
    found.expect("the flow is complete")
}

/// Loses the first `times` packets of a kind.
fn lose(scene: &mut Scene, lost: Kind, times: u32) {
    let mut left = times;
    scene.spoil(move |_, packet| match kind(packet) {
        kind if kind == lost && left > 0 => {
            left -= 1;
            PacketFate::Drop
        }
        _ => PacketFate::Pass,
    });
}

#[test]
fn a_flow_within_its_free_tokens_is_sent_at_once() {
    let mut scene = scene(2, Config::default());
    let flow = scene.send(Time::ZERO, 0, 1, packets(u64::from(BDP)));
    scene.run_until(ms(1));
    // The request, 44 packets, and the last one's way.
    let delivered = Time::from_ps(3_200) + PACKET * u64::from(BDP) - PACKET + DATA;
    assert_eq!(scene.delivered_at(flow), Some(delivered));
    assert_eq!(scene.completed_at(flow), Some(delivered + CONTROL));
    assert_eq!(times(&scene, Kind::Token), []);
    assert!(of_kind(&scene, Kind::Data).iter().all(|(_, packet)| packet.class == 1));
}

#[test]
fn a_lone_flow_has_its_link_for_itself_from_the_first_packet_on() {
    let mut scene = scene(2, Config::default());
    let flow = scene.send(Time::ZERO, 0, 1, packets(10_000));
    scene.run_until(ms(10));
    assert_eq!(scene.delivered_at(flow), Some(Time::from_ps(3_200) + PACKET * 9_999 + DATA));
    assert_eq!((of_kind(&scene, Kind::Token).len(), resent(&scene, flow)), (10_000 - BDP as usize, 0));
    assert!(of_kind(&scene, Kind::Data).iter().all(|(_, packet)| packet.class == 2));
}

#[test]
fn without_free_tokens_a_flow_waits_for_one_round_trip() {
    let mut scene = scene(2, short_flows_only());
    let flow = scene.send(Time::ZERO, 0, 1, packets(1_000));
    scene.run_until(ms(10));
    // Tokens from the arrival of the request on, a packet time apart.
    let tokens: Vec<Time> = (0..1_000).map(|token| Time::ZERO + CONTROL + PACKET * token).collect();
    assert_eq!(times(&scene, Kind::Token), tokens);
    assert_eq!(scene.delivered_at(flow), Some(*tokens.last().unwrap() + RTT));
}

#[test]
fn a_receiver_gives_a_token_each_packet_time_whoever_asks() {
    let mut scene = scene(9, Config::default());
    let flows: Vec<FlowId> = (1..9).map(|src| scene.send(Time::ZERO, src, 0, packets(500))).collect();
    scene.run_until(ms(2));
    let tokens = times(&scene, Kind::Token);
    // The NIC may send an acknowledgement before one of two.
    let apart = PACKET - Duration::from_ps(3_200);
    assert!(tokens.windows(2).all(|two| two[1] - two[0] >= apart));
    // Eight bandwidth-delay products come at once: after that nothing waits in the network for long.
    assert!(flows.iter().all(|&flow| scene.completed_at(flow).is_some()));
    let last = flows.iter().filter_map(|&flow| scene.delivered_at(flow)).max().unwrap();
    // The link is busy from the first packet to the last but for gaps of a few round trips.
    let busy = PACKET * 8 * 500;
    assert!(last.since(Time::ZERO) < busy + RTT * 6, "{last} for {busy}");
}

#[test]
fn tokens_go_to_the_flow_with_the_least_remaining() {
    let mut scene = scene(3, short_flows_only());
    let long = scene.send(Time::ZERO, 0, 2, packets(1_000));
    let short = scene.send(Time::from_us(20), 1, 2, packets(200));
    scene.run_until(ms(2));
    let of = |flow| of_kind(&scene, Kind::Token).into_iter().filter(move |sent| sent.1.flow == flow);
    let began = Time::from_us(20) + CONTROL;
    let end = began + PACKET * 200;
    // From its request on, all tokens are the short flow's, but for those that make the long one's window.
    assert_eq!(of(short).filter(|sent| sent.0 >= began && sent.0 < end).count(), 200);
    assert_eq!(of(long).filter(|sent| sent.0 > began + PACKET && sent.0 < end).count(), 0);
    assert!(scene.delivered_at(short).unwrap() < end + RTT);
}

#[test]
fn a_sender_uses_the_tokens_of_the_flow_with_the_least_remaining() {
    // One sender, two receivers: both give a token each packet time, and only one can be used.
    let mut scene = scene(3, short_flows_only());
    let long = scene.send(Time::ZERO, 0, 1, packets(2_000));
    let short = scene.send(Time::ZERO, 0, 2, packets(500));
    scene.run_until(ms(2));
    // The short flow goes as if alone but for a packet of the other that is being sent when its first token comes.
    let alone = CONTROL + PACKET * 499 + RTT + Duration::from_ps(3_200);
    let delivered = scene.delivered_at(short).unwrap();
    assert!(delivered <= Time::ZERO + alone + PACKET, "{delivered} for {alone}");
    assert!(scene.delivered_at(long) > scene.delivered_at(short));
    assert!(count(&scene, 0, "tokens_expired") > 0);
}

#[test]
fn flows_take_turns_where_they_shall_have_equal_shares() {
    let mut scene = scene(3, Config { policy: Policy::FlowFairness, ..short_flows_only() });
    scene.send(Time::ZERO, 0, 2, packets(1_000));
    scene.send(Time::ZERO, 1, 2, packets(500));
    scene.run_until(Time::from_us(80));
    let tokens = of_kind(&scene, Kind::Token);
    assert!(tokens.len() > 500);
    assert!(tokens.windows(2).skip(1).all(|two| two[0].1.flow != two[1].1.flow));
}

#[test]
fn tenants_take_turns_and_of_a_tenant_the_smallest_flow_goes() {
    // Tenant 1 has flows of 5 and 9 packets, tenant 2 one of 100.
    let policy = Policy::TenantFairness;
    let mut turns = Turns::default();
    let mut flows = [(1u16, 5u32), (1, 9), (2, 100)];
    let mut order = Vec::new();
    for _ in 0..16 {
        let key = |&index: &usize| (turns.rank(policy, 0, flows[index].0), flows[index].1, index);
        let next = (0..3).filter(|&index| flows[index].1 > 0).min_by_key(key).unwrap();
        turns.take(policy, flows[next].0);
        flows[next].1 -= 1;
        order.push(next);
    }
    assert_eq!(order, [0, 2, 0, 2, 0, 2, 0, 2, 0, 2, 1, 2, 1, 2, 1, 2]);
}

#[test]
fn a_source_that_does_not_answer_has_a_window_of_tokens_and_then_one_each_timeout() {
    // Its NIC may send control packets only.
    let mut scene = scene(2, short_flows_only());
    scene.pause(0, 0b1111_1110);
    let flow = scene.send(Time::ZERO, 0, 1, packets(100));
    scene.run_until(Time::from_us(60));
    let first = Time::ZERO + CONTROL;
    let last = first + PACKET * u64::from(BDP - 1);
    let window = (0..u64::from(BDP)).map(|token| first + PACKET * token);
    let probes = (1..=3).map(|probe| last + RTT * 3 * probe);
    assert_eq!(times(&scene, Kind::Token), window.chain(probes).collect::<Vec<_>>());
    assert_eq!(count(&scene, 1, "downgrades"), 3);
    scene.pause(0, 0);
    scene.run_until(ms(1));
    // Tokens live for 1.5 packet times: all are void by now.
    assert_eq!(count(&scene, 0, "tokens_expired"), u64::from(BDP) + 3);
    assert_eq!(resent(&scene, flow), 0);
    // The next probe is answered, and then all goes as usual, the void ones' packets behind the others.
    let answered = last + RTT * 12 + DATA + DATA;
    assert!(scene.delivered_at(flow).unwrap() < answered + PACKET * 100 + RTT * 2);
}

#[test]
fn others_have_the_tokens_of_a_downgraded_source() {
    let mut scene = scene(3, short_flows_only());
    scene.pause(0, 0b1111_1110);
    scene.send(Time::ZERO, 0, 2, packets(100));
    let other = scene.send(Time::ZERO, 1, 2, packets(1_000));
    scene.run_until(ms(1));
    // A window of tokens is lost to it, and some probes.
    let alone = CONTROL + PACKET * 1_000 + RTT;
    let delivered = scene.delivered_at(other).unwrap().since(Time::ZERO);
    assert!(delivered < alone + PACKET * u64::from(BDP + 10), "{delivered} for {alone}");
}

#[test]
fn a_lost_request_is_repeated_after_a_silence_and_then_later_each_time() {
    let mut scene = scene(2, short_flows_only());
    lose(&mut scene, Kind::Rts, 3);
    let flow = scene.send(Time::ZERO, 0, 1, packets(100));
    scene.run_until(ms(1));
    let silence = RTT * 4;
    assert_eq!(times(&scene, Kind::Rts), [0, 1, 3, 7].map(|silences| Time::ZERO + silence * silences));
    assert!(scene.completed_at(flow).is_some());
    assert_eq!(count(&scene, 0, "requests_resent"), 3);
}

#[test]
fn free_packets_stand_for_a_lost_request() {
    let mut scene = scene(2, Config::default());
    lose(&mut scene, Kind::Rts, 1);
    let flow = scene.send(Time::ZERO, 0, 1, packets(1_000));
    scene.run_until(ms(1));
    assert_eq!(of_kind(&scene, Kind::Rts).len(), 1);
    assert!(scene.delivered_at(flow).unwrap() < Time::ZERO + PACKET * 1_000 + DATA + RTT);
}

#[test]
fn a_lost_acknowledgement_is_asked_for_after_a_silence() {
    let mut scene = scene(2, Config::default());
    lose(&mut scene, Kind::Ack, 1);
    let flow = scene.send(Time::ZERO, 0, 1, packets(10));
    scene.run_until(ms(1));
    let last_sent = Time::from_ps(3_200) + PACKET * 9;
    assert_eq!(scene.completed_at(flow), Some(last_sent + RTT * 4 + CONTROL + CONTROL));
    assert_eq!(scene.events.iter().filter(|event| event.2 == Event::Delivered { flow }).count(), 1);
    assert_eq!(resent(&scene, flow), 0);
}

#[test]
fn a_lost_packet_is_admitted_again_when_its_answer_is_overdue() {
    for (lost, flow_packets, config) in [
        (Kind::Data, 30, Config::default()),
        (Kind::Data, 300, Config::default()),
        (Kind::Token, 300, short_flows_only()),
    ] {
        let mut scene = scene(2, config);
        lose(&mut scene, lost, 1);
        let flow = scene.send(Time::ZERO, 0, 1, packets(flow_packets));
        scene.run_until(ms(1));
        let of_lost = sent!(scene, Header::Token(Token { packet: 0, .. })).len();
        let tokened = usize::from(flow_packets == 300 && lost == Kind::Token) + 1;
        assert_eq!((of_lost, resent(&scene, flow)), (tokened, u64::from(lost == Kind::Data)));
        // Behind the last: a round trip and a token's life, and the packet's own round trip.
        let alone = PACKET * flow_packets + DATA + if lost == Kind::Token { RTT } else { Duration::ZERO };
        assert!(scene.delivered_at(flow).unwrap() < Time::ZERO + alone + RTT * 2 + PACKET * 4);
    }
}

#[test]
fn a_flow_that_is_lost_whole_is_admitted_whole() {
    let mut scene = scene(2, Config::default());
    scene.spoil(
        |now, packet| {
            if packet.payload_bytes > 0 && now < Time::from_us(8) { PacketFate::Drop } else { PacketFate::Pass }
        },
    );
    let flow = scene.send(Time::ZERO, 0, 1, packets(u64::from(BDP)));
    scene.run_until(ms(1));
    assert_eq!(resent(&scene, flow), u64::from(BDP));
}

#[test]
fn a_paused_class_holds_back_no_other() {
    let mut scene = scene(3, Config::default());
    scene.pause(0, 0b10);
    let short = scene.send(Time::ZERO, 0, 1, packets(10));
    let long = scene.send(Time::ZERO, 0, 2, packets(1_000));
    scene.run_until(ms(1));
    assert!(scene.completed_at(long).is_some() && scene.delivered_at(short).is_none());
    scene.pause(0, 0);
    scene.run_until(ms(2));
    assert!(scene.completed_at(short).is_some());
}

#[test]
fn late_duplicates_of_a_finished_flow_change_nothing() {
    let mut scene = scene(2, Config::default());
    scene.spoil(|_, _| PacketFate::Duplicate);
    let flows: Vec<FlowId> = (1..=4).map(|n| scene.send(Time::ZERO, 0, 1, packets(n * 30))).collect();
    scene.run_until(ms(2));
    for flow in flows {
        let said = |event: Event| scene.events.iter().filter(|said| said.2 == event).count();
        assert_eq!(said(Event::Delivered { flow }), 1);
        assert!(scene.completed_at(flow).is_some());
    }
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig { cases: 32, ..Default::default() })]

    /// Whatever is lost, delayed or doubled, every flow is delivered once and its sender learns of it. (That no flow
    /// has more unanswered tokens than its window is asserted where they are given.)
    #[test]
    fn every_flow_completes_over_a_bad_wire(
        sizes in proptest::collection::vec((1u64..200_000, 0u32..4, 1u32..4, 0u64..50), 1..12),
        fates: u64,
        every_flow: bool,
        policy in proptest::sample::select(vec![Policy::Srpt, Policy::FlowFairness, Policy::TenantFairness]),
        window in 1u64..100_000,
        priorities in 2u8..4,
    ) {
        let free_tokens_for = if every_flow { FreeTokensFor::EveryFlow } else { FreeTokensFor::ShortFlows };
        let token_window = Some(Bytes(window));
        let config = Config { policy, free_tokens_for, token_window, priorities, ..Config::default() };
        let mut scene = scene(4, config);
        scene.spoil_for_a_millisecond(fates, |_| false);
        let send = |&(bytes, src, step, at): &(u64, u32, u32, u64)| {
            scene.send(Time::from_us(at), src, (src + step) % 4, bytes)
        };
        let flows: Vec<FlowId> = sizes.iter().map(send).collect();
        scene.run_until(ms(40));
        for flow in flows {
            let said = |event: Event| scene.events.iter().filter(|said| said.2 == event).count();
            proptest::prop_assert_eq!(said(Event::Delivered { flow }), 1);
            let completed = scene.completed_at(flow);
            proptest::prop_assert!(completed >= scene.delivered_at(flow), "{:?}", completed);
        }
    }
}
