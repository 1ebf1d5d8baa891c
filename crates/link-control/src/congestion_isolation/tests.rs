use node::link::frame_packet;
use testing::check_header;

use super::*;

#[test]
fn a_nic_holds_isolated_flows_while_their_class_is_paused() {
    let mut nic = NicPart { class: 7, lossless: !1, paused: 0, isolated: FxHashSet::default(), epoch: 0 };
    let lets = |nic: &NicPart| [3, 4].map(|flow| nic.lets(0, FlowId(flow), HostId(1), 1, 0));
    nic.frame(Time::ZERO, &frame_packet(Message::Isolate(FlowId(3))));
    assert_eq!(lets(&nic), [true, true]);
    nic.frame(Time::ZERO, &frame_packet(pfc::Frame { classes: 1 << 7, pause: 1 << 7, quanta: 9 }));
    assert_eq!(lets(&nic), [false, true]);
    let before = nic.epoch();
    nic.frame(Time::ZERO, &frame_packet(Message::Release(FlowId(3))));
    assert!(nic.epoch() != before && lets(&nic) == [true, true] && nic.paused_classes() == 1 << 7);
}

#[test]
fn bytes_stay_what_they_are() {
    assert_eq!(check_header(Message::Isolate(FlowId(0x0102_0304)), &[]), [0, 0, 0, 1, 1, 2, 3, 4]);
    assert_eq!(check_header(Message::Release(FlowId(5)), &[]), [0, 0, 0, 0, 0, 0, 0, 5]);
}

proptest::proptest! {
    #[test]
    fn messages_survive_the_wire(flow: u32, classes in 1u8.., pause: u8, noise: Vec<u8>) {
        check_header(Message::Isolate(FlowId(flow)), &noise);
        check_header(Message::Release(FlowId(flow)), &noise);
        let pause = pause & classes;
        let quanta = if pause == 0 { 0 } else { u16::MAX };
        check_header(Message::Pfc(pfc::Frame { classes, pause, quanta }), &noise);
    }
}
