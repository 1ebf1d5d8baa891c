use testing::{PacketFate, Scene, Wire, check_header};
use units::Time;

use super::*;

fn scene(config: Config) -> Scene {
    Scene::new(2, Wire::default(), move |site| config.endpoint(site, &NetworkView::star(site)))
}

#[test]
fn a_lone_packet_and_its_answer_take_the_unloaded_round_trip() {
    let mut scene = scene(Config::default());
    let flow = scene.send(Time::ZERO, 0, 1, 1460);
    scene.run_until(Time::from_ms(1));
    // 2 x (120 ns + 2.5 us / 2) there, 2 x 3.2 ns + 2.5 us back.
    assert_eq!(scene.delivered_at(flow), Some(Time::from_ns(2_740)));
    assert_eq!(scene.completed_at(flow), Some(Time::from_ps(5_246_400)));
}

#[test]
fn packets_leave_on_the_clock() {
    let mut scene = scene(Config { rate: Some(Rate::from_gbps(10)), ..Config::default() });
    scene.send(Time::ZERO, 0, 1, 14_600);
    scene.run_until(Time::from_ms(1));
    let gaps: Vec<Duration> = scene.sent[..10].windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
    assert_eq!(gaps, vec![Duration::from_ns(1200); 9]);
}

#[test]
fn a_lost_packet_fails_the_flow_after_its_patience() {
    let mut scene = scene(Config::default());
    scene.spoil(|now, _| if now == Time::ZERO { PacketFate::Drop } else { PacketFate::Pass });
    let flow = scene.send(Time::ZERO, 0, 1, 14_600);
    scene.run_until(Time::from_ms(100));
    let failed = Event::Failed { flow, reason: Event::NO_ANSWER };
    // Ten packets, one every 120 ns: the last leaves at 1.08 us.
    assert_eq!(scene.events, vec![(Time::from_ns(1_080) + Duration::from_ms(10), HostId(0), failed)]);
}

proptest::proptest! {
    #[test]
    fn headers_survive_the_wire(message_bytes in 1u64.., offset: u64, noise: Vec<u8>) {
        check_header(Header::Data(Data { message_bytes, offset }), &noise);
    }
}

#[test]
fn bytes_stay_what_they_are() {
    let data = Header::Data(Data { message_bytes: 0x0102, offset: 0x0304 });
    assert_eq!(check_header(data, &[]), [0x0102u64, 0x0304].map(u64::to_be_bytes).concat());
    assert_eq!(check_header(Header::Answer, &[]), [0; 16]);
}
