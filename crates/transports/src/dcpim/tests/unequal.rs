//! Hosts whose NICs differ, 100 Gbps at one end and 25 or 10 at the other: the message goes either way.

use super::*;

const NICS: [u64; 3] = [100, 25, 10];

/// A host for each rate in Gbps.
fn hosts(gbps: &[u64], config: &Config) -> Scene {
    let nics: Vec<Rate> = gbps.iter().map(|&gbps| Rate::from_gbps(gbps)).collect();
    Scene::with_nics(Wire::default(), &nics, |site| config.endpoint(site, &NetworkView::star(site)))
}

/// The ways between two hosts of different NICs.
fn ways() -> impl Iterator<Item = [u64; 2]> {
    NICS.into_iter().flat_map(|from| NICS.map(|to| [from, to])).filter(|[from, to]| from != to)
}

/// How long a packet of so many bytes takes on a link.
fn on(gbps: u64, bytes: u64) -> Duration {
    Rate::from_gbps(gbps).transmit(bytes)
}

#[test]
fn what_came_without_tokens_is_not_asked_for_again() {
    // From fast to slow, the sender's bandwidth-delay product is up to ten times its receiver's.
    for sizes_known in [true, false] {
        let config = Config { sizes_known, ..Config::default() };
        for [from, to] in ways() {
            for count in [1, 4, 5, 13, 17, 20, 46, 60, 100, 1000] {
                let mut scene = hosts(&[from, to], &config);
                let flow = scene.send(Time::ZERO, 0, 1, packets(count));
                scene.run_until(ms(10));
                let case = format!("{count} packets from {from} to {to} Gbps, sizes known: {sizes_known}");
                assert!(scene.completed_at(flow).is_some(), "{case}");
                assert_eq!(resent(&scene, flow), 0, "{case}");
            }
        }
    }
}

#[test]
fn a_short_flow_to_a_slow_host_takes_what_its_packets_take() {
    for to in [25, 10] {
        let mut scene = hosts(&[100, to], &Config::default());
        let flow = scene.send(Time::ZERO, 0, 1, packets(20));
        scene.run_until(ms(1));
        // Notification and one packet on the fast link, then twenty on the slow one.
        let times = on(100, 40) + on(100, 1500) + on(to, 1500) * 20 + Duration::from_ns(2_500);
        assert_eq!(scene.delivered_at(flow), Some(Time::ZERO + times), "{to} Gbps");
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
    assert_eq!(scene.delivered_at(flow), Some(Time::ZERO + times));
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
        Header::Data(_) => "data",
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
