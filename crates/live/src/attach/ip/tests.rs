use super::*;

/// An IPv4 packet of TCP from 10.77.0.1 to 10.77.0.2 with this content, as the kernel hands it over: without checksum.
pub(crate) fn tcp4(content: &[u8], flags: u8, ecn: u8) -> Vec<u8> {
    let length = (40 + content.len()) as u16;
    let mut packet = vec![0x45, ecn, 0, 0, 0xFF, 0xFF, 0x40, 0, 64, TCP, 0, 0, 10, 77, 0, 1, 10, 77, 0, 2];
    packet[2..4].copy_from_slice(&length.to_be_bytes());
    packet.extend([0x04, 0xD2, 0x00, 0x50, 0xFF, 0xFF, 0xFF, 0xF0, 0, 0, 0, 9, 0x50, flags, 1, 0, 0, 0, 0, 0]);
    packet.extend(content);
    let sum = fold(pseudo(&packet, 20, u32::from(length) - 20, TCP));
    packet[36..38].copy_from_slice(&sum.to_be_bytes());
    seal_v4(&mut packet, 20);
    packet
}

pub(crate) fn offload(gso: u8, size: u16, start: u16) -> [u8; OFFLOAD_BYTES] {
    let ([a, b], [c, d], [e, f]) = (size.to_ne_bytes(), start.to_ne_bytes(), 16u16.to_ne_bytes());
    [NEEDS_CHECKSUM, gso, 0, 0, a, b, c, d, e, f]
}

pub(crate) fn all(packets: &Packets) -> Vec<Vec<u8>> {
    let packet = |index| {
        let mut out = vec![0xAA; packets.length(index)];
        packets.write(index, &mut out);
        out
    };
    (0..packets.count()).map(packet).collect()
}

/// Both checksums of an IPv4 packet of TCP are right.
pub(crate) fn is_sound(packet: &[u8]) -> bool {
    let length = usize::from(u16::from_be_bytes([packet[2], packet[3]]));
    let tcp = checksum(pseudo(packet, 20, length as u32 - 20, TCP), &packet[20..]);
    length == packet.len() && checksum(0, &packet[..20]) == 0 && tcp == 0
}

#[test]
fn a_checksum_left_to_the_device_is_completed() {
    let packets = Packets::read(&offload(0, 0, 20), &tcp4(b"hello", 0x18, 0), 0, 1500).expect("a sound packet");
    let [packet] = &all(&packets)[..] else { panic!("one packet") };
    assert!(is_sound(packet) && packets.is_sealed(), "{packet:?}");
    // Behind an Ethernet header offsets count from there.
    let tap = Packets::read(&offload(0, 0, 34), &tcp4(b"hello", 0x18, 0), 14, 1500).expect("a sound packet");
    assert_eq!(all(&tap), all(&packets));
}

#[test]
fn a_long_frame_becomes_packets_as_long_as_it_says() {
    let content: Vec<u8> = (0..3_001u32).map(|byte| byte as u8).collect();
    let packets = Packets::read(&offload(GSO_TCP4 | 0x80, 1_000, 20), &tcp4(&content, 0x99, 2), 0, 1_040);
    let packets = packets.expect("a sound frame");
    let all = all(&packets);
    assert_eq!(all.iter().map(Vec::len).collect::<Vec<_>>(), [1_040, 1_040, 1_040, 41]);
    assert!(all.iter().all(|packet| is_sound(packet)));
    assert_eq!(all.iter().flat_map(|packet| packet[40..].to_vec()).collect::<Vec<_>>(), content);
    let number = |packet: &Vec<u8>| u32::from_be_bytes([packet[24], packet[25], packet[26], packet[27]]);
    assert_eq!(all.iter().map(number).collect::<Vec<_>>(), [0xFFFF_FFF0, 984, 1_984, 2_984], "past the end of numbers");
    let id = |packet: &Vec<u8>| u16::from_be_bytes([packet[4], packet[5]]);
    assert_eq!(all.iter().map(id).collect::<Vec<_>>(), [0xFFFF, 0, 1, 2]);
    // CWR at the first only (RFC 3168), FIN and PSH at the last.
    assert_eq!(all.iter().map(|packet| packet[33]).collect::<Vec<_>>(), [0x90, 0x10, 0x10, 0x19]);
}

#[test]
fn what_cannot_be_is_refused() {
    let packet = tcp4(&[7; 500], 0x10, 0);
    let read = |offload: [u8; OFFLOAD_BYTES], packet: &[u8]| Packets::read(&offload, packet, 0, 1_500).map(|_| ());
    assert_eq!(read([0; OFFLOAD_BYTES], &[]), Err(Refused::Short));
    assert_eq!(read([0; OFFLOAD_BYTES], &packet[..19]), Err(Refused::Short));
    assert_eq!(read([0; OFFLOAD_BYTES], &packet[..400]), Err(Refused::Length));
    assert_eq!(read([0; OFFLOAD_BYTES], &[0x55; 60]), Err(Refused::Version));
    assert_eq!(read(offload(0, 0, 600), &packet), Err(Refused::Offload), "a checksum behind the end");
    assert_eq!(read(offload(GSO_TCP4, 0, 20), &packet), Err(Refused::Offload), "pieces of nothing");
    assert_eq!(read(offload(GSO_TCP6, 100, 20), &packet), Err(Refused::Offload), "of another version");
    assert_eq!(read(offload(3, 100, 20), &packet), Err(Refused::Offload), "not asked for");
    assert_eq!(read(offload(GSO_TCP4, 1_461, 20), &tcp4(&[0; 3_000], 0x10, 0)), Err(Refused::TooLong));
    assert_eq!(read([0; OFFLOAD_BYTES], &tcp4(&[0; 1_461], 0x10, 0)), Err(Refused::TooLong));
    let mut options = packet.clone();
    options[32] = 0xF0;
    assert_eq!(read(offload(GSO_TCP4, 100, 20), &options[..60]), Err(Refused::Length), "options behind the end");
}

#[test]
fn a_mark_is_set_only_where_it_is_understood_and_leaves_a_right_header() {
    for (before, after, marked) in [(0, 0, false), (1, 3, true), (2, 3, true), (3, 3, true)] {
        let mut packet = tcp4(b"x", 0x10, before);
        assert_eq!(mark(&mut packet), marked);
        assert_eq!((packet[1], checksum(0, &packet[..20])), (after, 0));
    }
    let mut six = vec![0x60, 0x20, 0, 0];
    six.resize(40, 0);
    assert!(mark(&mut six) && six[..2] == [0x60, 0x30]);
}

#[test]
fn flows_differ_by_ports_and_are_none_of_a_scenario() {
    let of = |port: u8, fragment: u8| {
        let mut packet = tcp4(b"x", 0x10, 0);
        (packet[21], packet[6]) = (port, fragment);
        Packets::read(&[0; OFFLOAD_BYTES], &packet, 0, 1_500).expect("a sound packet").flow
    };
    assert_ne!(of(1, 0), of(2, 0));
    assert_eq!(of(1, 0x20), of(2, 0x20), "of fragments only the first has ports");
    assert!(of(1, 0) >= 1 << 31);
}
