use super::*;
use crate::attach::ip::Packets;
use crate::attach::ip::tests::{all, is_sound, offload, tcp4};

fn cut(content: &[u8], flags: u8) -> Vec<Vec<u8>> {
    let long = tcp4(content, flags, 0);
    all(&Packets::read(&offload(GSO_TCP4, 1_000, 20), &long, 0, 1_500).expect("a sound frame"))
}

/// What was cut and is put together is what it was.
#[test]
fn packets_of_a_flow_become_the_frame_that_they_were() {
    let content: Vec<u8> = (0..2_500u32).map(|byte| (byte / 7) as u8).collect();
    let packets = cut(&content, 0x18);
    for link in [&[][..], &[9; 14]] {
        let mut frame = Coalescing::default();
        frame.begin(link, &packets[0], true);
        assert!(frame.append(&packets[1], true) && frame.append(&packets[2], true));
        assert!(!frame.append(&packets[2], true), "PSH ends it");
        assert_eq!(frame.count, 3);
        let bytes = frame.take().to_vec();
        let start = 20 + link.len() as u16;
        let [c, d] = (start + 20).to_ne_bytes();
        let mut told = offload(GSO_TCP4, 1_000, start);
        (told[2], told[3]) = (c, d);
        assert_eq!(bytes[..OFFLOAD_BYTES], told);
        let packet = &bytes[OFFLOAD_BYTES + link.len()..];
        assert_eq!(packet, tcp4(&content, 0x18, 0));
        let mut again = told;
        again[6..8].copy_from_slice(&20u16.to_ne_bytes());
        let again = all(&Packets::read(&again, packet, 0, 1_500).expect("a sound frame"));
        assert!(again == packets && again.iter().all(|packet| is_sound(packet)));
        assert!(frame.is_empty());
    }
}

#[test]
fn what_differs_is_not_put_together() {
    let packets = cut(&[1; 3_000], 0x10);
    let appends = |change: &dyn Fn(&mut Vec<u8>), sealed: bool| {
        let mut frame = Coalescing::default();
        frame.begin(&[], &packets[0], true);
        let mut next = packets[1].clone();
        change(&mut next);
        let appended = frame.append(&next, sealed);
        assert!(appended || frame.take()[OFFLOAD_BYTES..] == packets[0], "it is as it was");
        appended
    };
    assert!(appends(&|_| {}, true));
    assert!(!appends(&|_| {}, false), "nobody knows whether its checksum is right");
    for at in [1, 5, 8, 12, 19, 21, 27, 31, 33, 35] {
        assert!(!appends(&|packet| packet[at] ^= 1, true), "byte {at}");
    }
    assert!(!appends(&|packet| packet.truncate(39), true));
    assert!(!appends(&|packet| packet.truncate(33), true));
}

#[test]
fn a_single_packet_is_left_as_it_is() {
    let mut frame = Coalescing::default();
    for packet in [&cut(&[1; 10], 0x10)[0][..], &[0x45; 3], &[]] {
        frame.begin(&[], packet, true);
        let bytes = frame.take();
        assert_eq!((&bytes[..OFFLOAD_BYTES], &bytes[OFFLOAD_BYTES..]), (&[0; OFFLOAD_BYTES][..], packet));
    }
}
