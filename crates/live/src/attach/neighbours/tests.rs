use super::*;

const ASKER: Mac = [2, 0, 0, 0, 0, 9];

fn has(wanted: Destination) -> Option<u32> {
    let v6 = [0xFD, 0x77, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4];
    (wanted == Destination::V4([10, 77, 0, 4]) || wanted == Destination::V6(v6)).then_some(3)
}

#[test]
fn arp_is_answered_for_attached_hosts_alone() {
    let question = |last: u8| {
        let fields = [&[0, 1, 8, 0, 6, 4, 0, 1][..], &ASKER, &[10, 77, 0, 1], &[0; 6], &[10, 77, 0, last]].concat();
        [&[0xFF; 6][..], &ASKER, &ARP, &fields].concat()
    };
    let mac = mac_of(3);
    let fields = [&[0, 1, 8, 0, 6, 4, 0, 2][..], &mac, &[10, 77, 0, 4], &ASKER, &[10, 77, 0, 1]].concat();
    let answer = [&ASKER[..], &mac, &ARP, &fields].concat();
    assert_eq!(read(&question(4), has), Some((ASKER, Ethernet::Question(answer))));
    assert_eq!(read(&question(5), has), Some((ASKER, Ethernet::Silence)));
    assert_eq!(read(&question(4)[..41], has), Some((ASKER, Ethernet::Silence)), "cut off");
    assert_eq!(read(&[0; 13], has), None);
}

#[test]
fn a_neighbour_solicitation_is_answered_with_a_right_checksum() {
    let wanted = [0xFD, 0x77, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4];
    let mut question = [&[0x60, 0, 0, 0, 0, 24, ICMPV6, 255][..], &[0xFE; 16], &[0xFF; 16]].concat();
    question.extend([135, 0, 0, 0, 0, 0, 0, 0]);
    question.extend(wanted);
    let frame = [&ethernet([0x33; 6], ASKER, &question)[..], &question].concat();
    let Some((_, Ethernet::Question(answer))) = read(&frame, has) else { panic!("an answer") };
    let packet = &answer[ETHERNET_BYTES..];
    assert_eq!((&answer[..6], &answer[6..12], packet.len()), (&ASKER[..], &mac_of(3)[..], 72));
    assert_eq!((packet[40], &packet[8..24], &packet[24..40]), (136, &wanted[..], &[0xFE; 16][..]));
    assert_eq!(packet[64..], [&[2, 1][..], &mac_of(3)].concat());
    assert_eq!(checksum(pseudo(packet, 40, 32, ICMPV6), &packet[40..]), 0);
    // From elsewhere nobody asks so.
    question[7] = 64;
    let frame = [&ethernet([0x33; 6], ASKER, &question)[..], &question].concat();
    assert_eq!(read(&frame, has), Some((ASKER, Ethernet::Packet(&question))));
}

#[test]
fn packets_are_told_from_what_is_none() {
    let frame = [&ethernet(mac_of(1), ASKER, &[0x45])[..], &[0x45]].concat();
    assert_eq!(read(&frame, has), Some((ASKER, Ethernet::Packet(&[0x45]))));
    let mut tagged = frame;
    tagged[12..14].copy_from_slice(&[0x81, 0]);
    assert_eq!(read(&tagged, has), Some((ASKER, Ethernet::Other)));
}
