use clearway::node::Event;
use clearway::testing::{PacketFate, Scene, Wire, check_header, sent};
use proptest::prelude::*;

use super::*;

/// Bytes of a message in a full packet.
const MSS: u64 = 1460;

/// Time of a full packet at 100 Gbps.
const PACKET: Duration = Duration::from_ns(120);

/// The way of a control packet of 40 bytes to another host, and that of a full packet: two links and 2.5 us.
const CONTROL_WAY: Duration = Duration::from_ps(2_506_400);
const DATA_WAY: Duration = Duration::from_ps(2_740_000);

/// Hosts with this transport on the virtual wire.
fn scene(hosts: u32, config: Config) -> Scene {
    assert_eq!(config.check(), Ok(()));
    Scene::new(hosts, Wire::default(), move |site| config.endpoint(site, &NetworkView::star(site)))
}

/// When each packet of a message left, and where it begins.
fn data(scene: &Scene, flow: FlowId) -> Vec<(Time, u64)> {
    let sent = sent!(scene, Header::Data { offset } => offset).into_iter();
    sent.filter(|(_, packet, _)| packet.flow == flow).map(|(at, _, offset)| (at, offset)).collect()
}

#[test]
fn a_lone_message_takes_a_round_trip_and_its_packets() {
    let mut scene = scene(2, Config::default());
    let flow = scene.send(Time::ZERO, 0, 1, 4 * MSS);
    scene.run_until(Time::from_ms(1));
    // The request, the grant of the first, and three packets' times later the last.
    let delivered = Time::ZERO + CONTROL_WAY * 2 + PACKET * 3 + DATA_WAY;
    assert_eq!(scene.delivered_at(flow), Some(delivered));
    assert_eq!(scene.completed_at(flow), Some(delivered + CONTROL_WAY));
}

#[test]
fn many_senders_do_not_meet_before_the_receiver() {
    let mut scene = scene(9, Config::default());
    let flows: Vec<FlowId> = (0..8).map(|src| scene.send(Time::ZERO, src, 8, 50 * MSS)).collect();
    scene.run_until(Time::from_ms(1));
    assert!(flows.iter().all(|&flow| scene.completed_at(flow).is_some()));
    // A packet that is on the link, one behind it, and the requests.
    assert!(scene.queue_bytes_peak[8] <= 2 * 1500 + 8 * 40, "{} bytes", scene.queue_bytes_peak[8]);
    // The link is never idle once the first packet has come: all take no longer than it needs for them.
    let last = flows.iter().filter_map(|&flow| scene.delivered_at(flow)).max();
    assert!(last <= Some(Time::ZERO + CONTROL_WAY * 2 + PACKET * 400 + DATA_WAY), "{last:?}");
}

#[test]
fn no_more_than_the_window_is_granted() {
    let mut scene = scene(2, Config { window: Some(Bytes(4 * MSS)), ..Config::default() });
    let flow = scene.send(Time::ZERO, 0, 1, 8 * MSS);
    scene.run_until(Time::from_ms(1));
    // Four packets a round trip: a grant's way and a packet's.
    let first = Time::ZERO + CONTROL_WAY * 2;
    let expected = |packet: u64| first + PACKET * (packet % 4) + (CONTROL_WAY + DATA_WAY) * (packet / 4);
    assert_eq!(data(&scene, flow), (0..8).map(|packet| (expected(packet), packet * MSS)).collect::<Vec<_>>());
}

#[test]
fn what_is_lost_is_granted_again() {
    let mut scene = scene(2, Config::default());
    let mut lost = false;
    scene.spoil(move |_, packet| {
        let hit = matches!(packet.header(), Header::Data { offset: MSS }) && !std::mem::replace(&mut lost, true);
        if hit { PacketFate::Drop } else { PacketFate::Pass }
    });
    let flow = scene.send(Time::ZERO, 0, 1, 4 * MSS);
    scene.run_until(Time::from_ms(1));
    // The last arrival is that of the fourth packet; the timeout begins there.
    let again = Time::ZERO + CONTROL_WAY * 3 + PACKET * 3 + DATA_WAY + Duration::from_us(100);
    assert_eq!(data(&scene, flow).last(), Some(&(again, MSS)));
    let completed = Event::Completed { flow, sent_packets: 5, resent_packets: 1 };
    assert!(scene.events.iter().any(|(_, host, event)| *host == HostId(0) && *event == completed));
}

proptest! {
    #[test]
    fn whatever_is_lost_late_or_doubled_messages_arrive_once(fates: u64, bytes in 1u64..100_000) {
        let mut scene = scene(3, Config::default());
        scene.spoil_for_a_millisecond(fates, |_| false);
        let flows = [scene.send(Time::ZERO, 0, 2, bytes), scene.send(Time::ZERO, 1, 2, 2 * bytes)];
        scene.run_until(Time::from_ms(100));
        for flow in flows {
            let delivered = scene.events.iter().filter(|event| event.2 == Event::Delivered { flow });
            prop_assert_eq!(delivered.count(), 1);
            prop_assert!(scene.completed_at(flow).is_some());
        }
    }

    #[test]
    fn headers_survive_the_wire(message_bytes in 1u64.., offset: u64, noise: Vec<u8>) {
        check_header(Header::Request { message_bytes }, &noise);
        check_header(Header::Grant { offset }, &noise);
        check_header(Header::Data { offset }, &noise);
        check_header(Header::Done, &noise);
    }
}

#[test]
fn settings_without_sense_are_refused_by_name() {
    let of = |config: Config| config.check().expect_err("refused").to_string();
    assert!(of(Config { window: Some(Bytes(0)), ..Config::default() }).contains("window"));
    assert!(of(Config { timeout: Duration::ZERO, ..Config::default() }).contains("timeout"));
}
