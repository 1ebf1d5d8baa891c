use node::link::frame_packet;
use testing::check_header;

use super::*;

#[test]
fn a_nic_holds_what_it_is_told_to_and_says_when_to_ask_again() {
    let mut nic = NicPart::new(Name::Flow, HostId(0));
    let tell = |nic: &mut NicPart, queue, pause| nic.frame(Time::ZERO, &frame_packet(Frame { queue, pause }));
    tell(&mut nic, 7, true);
    assert!(!nic.lets(0, FlowId(7), HostId(1), 1, 0) && nic.lets(0, FlowId(8), HostId(1), 1, 0));
    let before = nic.epoch();
    tell(&mut nic, 8, false);
    assert_eq!(nic.epoch(), before);
    tell(&mut nic, 7, false);
    assert!(nic.epoch() != before && nic.lets(0, FlowId(7), HostId(1), 1, 0));
}

#[test]
fn bytes_stay_what_they_are() {
    assert_eq!(check_header(Frame { queue: 0x0102_0304, pause: true }, &[]), [1, 2, 3, 4, 1]);
}

proptest::proptest! {
    #[test]
    fn frames_survive_the_wire(queue: u32, pause: bool, noise: Vec<u8>) {
        check_header(Frame { queue, pause }, &noise);
    }

    #[test]
    fn a_virtual_flow_id_is_one_of_them(vfids in 1u16..=32_768, flow: u32, src: u32, dst: u32) {
        proptest::prop_assert!(Name::vfid(vfids, FlowId(flow), HostId(src), HostId(dst)) < vfids);
    }
}
