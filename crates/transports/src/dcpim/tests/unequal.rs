//! Hosts whose NICs differ, 100 Gbps at one end and 25 or 10 at the other: the message goes either way.

use super::*;

const NICS: [u64; 3] = [100, 25, 10];

/// A host for each rate in Gbps.
fn hosts(gbps: &[u64], config: &Config) -> Scene {
    let nics: Vec<Rate> = gbps.iter().map(|&gbps| Rate::from_gbps(gbps)).collect();
    let slowest = nics.iter().copied().min().expect("a host");
    Scene::with_nics(Wire::default(), &nics, |site| {
        // All hosts see one network, whose slowest link they know.
        config.endpoint(site, &NetworkView::star(&EndpointParams { nic_rate: slowest, ..site.clone() }))
    })
}

/// The ways between two hosts, of different NICs or both slow.
fn ways() -> impl Iterator<Item = [u64; 2]> {
    NICS.into_iter().flat_map(|from| NICS.map(|to| [from, to]))
}

/// How long a packet of so many bytes takes on a link.
fn on(gbps: u64, bytes: u64) -> Duration {
    Rate::from_gbps(gbps).transmit(bytes)
}

#[test]
fn what_came_without_tokens_is_not_asked_for_again() {
    // From fast to slow, the sender's bandwidth-delay product is up to ten times its receiver's.
    let mut again = Vec::new();
    for sizes_known in [true, false] {
        let config = Config { sizes_known, ..Config::default() };
        for [from, to] in ways() {
            for count in [1, 4, 5, 13, 17, 20, 46, 60, 100, 1000] {
                let mut scene = hosts(&[from, to], &config);
                let flow = scene.send(Time::ZERO, 0, 1, packets(count));
                scene.run_until(ms(10));
                match resent(&scene, flow) {
                    0 => {}
                    times => again.push(format!("{times} of {count} packets from {from} to {to}, {sizes_known}")),
                }
            }
        }
    }
    assert!(again.is_empty(), "{again:#?}");
}

#[test]
fn a_short_flow_to_a_slow_host_takes_what_its_packets_take() {
    for to in [25, 10] {
        let mut scene = hosts(&[100, to], &Config::default());
        let flow = scene.send(Time::ZERO, 0, 1, packets(20));
        scene.run_until(ms(1));
        // Notification and one packet on the fast link, then twenty on the slow one.
        let times = on(100, 40) + on(100, 1500) + on(to, 1500) * 20 + Duration::from_ns(2_500);
        let took = scene.delivered_at(flow).expect("delivered") - Time::ZERO;
        // Finishes overtake the data. The first is repeated after one round trip and three.
        assert!(took >= times && took <= times + on(to, 40) * 3, "{took} for {times}, {to} Gbps");
        assert!(sent!(scene, Header::Token(token) => token).is_empty());
    }
}

#[test]
fn a_short_flow_to_a_slow_host_whose_notification_is_lost_takes_no_longer() {
    let mut scene = hosts(&[100, 10], &Config::default());
    let mut lost = false;
    scene.spoil(move |_, packet| {
        let drop = matches!(packet.header(), Header::Notification { .. }) && !lost;
        lost |= drop;
        if drop { PacketFate::Drop } else { PacketFate::Pass }
    });
    let flow = scene.send(Time::ZERO, 0, 1, packets(40));
    scene.run_until(ms(1));
    let times = on(100, 40) + on(100, 1500) + on(10, 1500) * 40 + Duration::from_ns(2_500);
    let took = scene.delivered_at(flow).expect("delivered") - Time::ZERO;
    assert!(took >= times && took <= times + on(10, 40) * 5, "{took} for {times}");
    assert_eq!(resent(&scene, flow), 0);
}

#[test]
fn each_kind_of_control_packet_may_be_lost_once() {
    let kind = |packet: &Packet| match packet.header() {
        Header::Notification { .. } => "notification",
        Header::Ack => "ack",
        Header::Token(_) => "token",
        Header::SenderFinish { .. } => "sender's finish",
        Header::ReceiverFinish => "receiver's finish",
        Header::Request(_) => "request",
        Header::Grant(_) => "grant",
        Header::Accept(_) => "accept",
        Header::Trim(_) | Header::Data(_) => "other",
    };
    let kinds = ["notification", "ack", "token", "sender's finish", "receiver's finish", "request", "grant", "accept"];
    for [from, to] in ways() {
        for count in [3, 20, 40, 300] {
            for lost in kinds {
                let mut scene = hosts(&[from, to], &Config::default());
                let mut losses = 0;
                scene.spoil(move |_, packet| {
                    losses += u32::from(kind(packet) == lost);
                    if kind(packet) == lost && losses == 1 { PacketFate::Drop } else { PacketFate::Pass }
                });
                let flow = scene.send(Time::ZERO, 0, 1, packets(count));
                scene.run_until(ms(10));
                let case = format!("{count} packets from {from} to {to} Gbps without one {lost}");
                let delivered = scene.events.iter().filter(|said| said.2 == Event::Delivered { flow }).count();
                assert_eq!(delivered, 1, "{case}");
                assert!(scene.completed_at(flow).is_some(), "{case}");
                assert_eq!(resent(&scene, flow), 0, "{case}");
            }
        }
    }
}

#[test]
fn a_lost_packet_of_a_short_flow_to_a_slow_host_alone_is_sent_again() {
    for [from, to] in ways() {
        for sizes_known in [true, false] {
            let mut scene = hosts(&[from, to], &Config { sizes_known, ..Config::default() });
            let mut lost = false;
            scene.spoil(move |_, packet| {
                let drop = matches!(packet.header(), Header::Data(Data { packet: 2, .. })) && !lost;
                lost |= drop;
                if drop { PacketFate::Drop } else { PacketFate::Pass }
            });
            let flow = scene.send(Time::ZERO, 0, 1, packets(4));
            scene.run_until(ms(1));
            assert!(scene.completed_at(flow).is_some(), "{from} to {to} Gbps");
            assert_eq!(resent(&scene, flow), 1, "{from} to {to} Gbps");
        }
    }
}

/// Two megabytes from or to each of ten hosts of 10 Gbps, to or from one of 100 Gbps: when the last is delivered.
fn ten_slow_hosts_and_a_fast_one(departures: Departures, to_the_fast_one: bool) -> (Scene, Time) {
    let nics = [&[100][..], &[10; 10]].concat();
    let mut scene = hosts(&nics, &Config { departures, ..Config::default() });
    let send = |slow: u32| {
        let [src, dst] = if to_the_fast_one { [slow, 0] } else { [0, slow] };
        scene.send(Time::ZERO, src, dst, 2_000_000)
    };
    let flows: Vec<FlowId> = (1..=10).map(send).collect();
    scene.run_until(ms(40));
    let last = flows.iter().map(|&flow| scene.delivered_at(flow).expect("delivered")).max();
    assert!(flows.iter().all(|&flow| resent(&scene, flow) == 0));
    (scene, last.expect("ten flows"))
}

#[test]
fn ten_slow_hosts_fill_a_fast_one_and_are_filled_by_it() {
    // 1,370 packets each, at 10 Gbps each: 1,644 us. Two phases before them, one with the last match.
    let busy = on(10, 1500) * 1_370;
    let default = Config::default().departures;
    for to_the_fast_one in [true, false] {
        let (scene, last) = ten_slow_hosts_and_a_fast_one(default, to_the_fast_one);
        let took = last - Time::ZERO;
        assert!(took >= busy && took < busy + STAGE * 9 * 3, "{took} for {busy} of data, {to_the_fast_one}");
        // In a phase a host accepts no more than its link carries.
        let mut accepted = std::collections::BTreeMap::new();
        for (_, packet, accept) in sent!(scene, Header::Accept(accept) => accept) {
            let kbps = accepted.entry((packet.src, accept.phase)).or_insert(0u64);
            *kbps += u64::from(accept.channels) * u64::from(accept.kbps) / 4;
        }
        for ((host, phase), kbps) in accepted {
            let nic = if host == HostId(0) { 100_000_000 } else { 10_000_000 };
            assert!(kbps <= nic, "{host:?} accepted {kbps} Kbps in phase {phase}");
        }
    }
    // In the paper's letter one sender at a time has all channels of the fast host.
    let (_, paper) = ten_slow_hosts_and_a_fast_one(default.without(Departure::SlowerNic), true);
    assert!(paper > Time::ZERO + busy * 2, "{paper}");
}

#[test]
fn a_fast_sender_and_slow_ones_share_a_fast_receiver() {
    // 25 and 10 Gbps beside 100: together they could send 135, and the receiver's link is full.
    let mut scene = hosts(&[100, 100, 25, 10], &Config::default());
    let sizes = [6_500, 2_500, 1_000];
    let flows: Vec<FlowId> =
        (1..=3).zip(sizes).map(|(src, count)| scene.send(Time::ZERO, src, 0, packets(count))).collect();
    scene.run_until(ms(20));
    let last = flows.iter().map(|&flow| scene.delivered_at(flow).expect("delivered")).max().unwrap() - Time::ZERO;
    let busy = on(100, 1500) * 10_000;
    assert!(last >= busy && last < busy.mul_f64(1.5), "{last} for {busy} of data");
    assert!(flows.iter().all(|&flow| resent(&scene, flow) == 0));
}

#[test]
fn a_long_flow_between_unequal_hosts_takes_what_the_slower_carries() {
    for [from, to] in ways() {
        let mut scene = hosts(&[from, to], &Config::default());
        let flow = scene.send(Time::ZERO, 0, 1, packets(5_000));
        scene.run_until(ms(40));
        let busy = on(from.min(to), 1500) * 5_000;
        let took = scene.delivered_at(flow).expect("delivered") - Time::ZERO;
        // A phase before it, and one or two of the last packets, which have fewer channels.
        assert!(took >= busy && took < busy.mul_f64(1.02) + STAGE * 9 * 3, "{from} to {to}: {took} for {busy}");
        assert_eq!(resent(&scene, flow), 0);
    }
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig { cases: 24, ..Default::default() })]

    /// Whatever is lost, delayed or doubled, every flow between whatever NICs is delivered once.
    #[test]
    fn every_flow_between_unequal_hosts_completes_over_a_bad_wire(
        sizes in proptest::collection::vec((1u64..200_000, 0u32..4, 1u32..4, 0u64..50), 1..12),
        nics in proptest::array::uniform4(proptest::sample::select(vec![100u64, 40, 25, 10, 1])),
        fates: u64,
        sizes_known: bool,
        k in 1u8..6,
    ) {
        let config = Config { channels: k, sizes_known, ..Config::default() };
        let mut scene = hosts(&nics, &config);
        scene.spoil_for_a_millisecond(fates, |_| false);
        let send = |&(bytes, src, step, at): &(u64, u32, u32, u64)| {
            scene.send(Time::from_us(at), src, (src + step) % 4, bytes)
        };
        let flows: Vec<FlowId> = sizes.iter().map(send).collect();
        scene.run_until(ms(300));
        for flow in flows {
            let said = |event: Event| scene.events.iter().filter(|said| said.2 == event).count();
            proptest::prop_assert_eq!(said(Event::Delivered { flow }), 1);
            proptest::prop_assert!(scene.completed_at(flow).is_some());
        }
    }
}

#[test]
fn a_queue_of_repeats_for_a_slow_link_drains() {
    // At 1 Gbps a window is five packets of 12 us and a phase three. What queued for longer than a round trip was taken
    // for lost and repeated in every phase, so that the queue never got shorter: 191 ms, and each packet 74 times.
    let mut scene = hosts(&[40, 100, 1, 100], &Config { channels: 1, ..Config::default() });
    let flows = [
        scene.send(Time::from_us(5), 1, 2, 122_809),
        scene.send(Time::from_us(10), 0, 2, 157_681),
        scene.send(Time::from_us(10), 0, 2, 166_441),
    ];
    scene.spoil_for_a_millisecond(7_219_354_260_257_940_653, |_| false);
    scene.run_until(ms(20));
    // Their packets take 3.7 ms, and one in sixteen is lost in the first.
    assert!(flows.iter().all(|&flow| scene.completed_at(flow).is_some_and(|at| at < ms(8))));
}
