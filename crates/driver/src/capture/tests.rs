use units::{FlowId, HostId};

use super::*;

/// The blocks of a file: type and body of each.
fn blocks(mut bytes: &[u8]) -> Vec<(u32, Vec<u8>)> {
    let word = |bytes: &[u8], at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let (kind, length) = (word(bytes, 0), word(bytes, 4) as usize);
        assert_eq!((length % 4, word(bytes, length - 4) as usize), (0, length));
        found.push((kind, bytes[8..length - 4].to_vec()));
        bytes = &bytes[length..];
    }
    found
}

#[test]
fn blocks_are_those_of_pcapng() {
    let mut bytes = Vec::new();
    section(&mut bytes);
    interface(&mut bytes, "a-b", 1_000);
    block(&mut bytes, 0, Time::from_us(5_000_000_000), &[1, 2, 3, 4, 5], 9, "");
    block(&mut bytes, 0, Time::from_us(5_000_000_000), &[1, 2, 3, 4, 5], 9, "pfc: on");
    let found = blocks(&bytes);
    assert_eq!(found.iter().map(|(kind, _)| *kind).collect::<Vec<_>>(), [SECTION, INTERFACE, PACKET, PACKET]);
    assert_eq!(found[0].1[..8], [0x4D, 0x3C, 0x2B, 0x1A, 1, 0, 0, 0]);
    assert_eq!(found[1].1[8..16], [2, 0, 3, 0, b'a', b'-', b'b', 0], "its name, filled up");
    let ns = 5_000_000_000_000u64;
    let [high, low] = [(ns >> 32) as u32, ns as u32].map(u32::to_le_bytes);
    let packet = [&[0; 4][..], &high, &low, &[5, 0, 0, 0, 9, 0, 0, 0], &[1, 2, 3, 4, 5, 0, 0, 0]].concat();
    assert_eq!(found[2].1, packet);
    let comment = [&[1, 0, 7, 0][..], b"pfc: on", &[0], &[0; 4]].concat();
    assert_eq!(found[3].1, [packet, comment].concat());
}

#[test]
fn packets_of_a_transport_are_in_ipv4_and_udp() {
    let text = "fabric.star = {}\ntransport = 'dctcp'\n[[traffic]]\nsizes.constant = '3KB'\narrivals = 'all_at_once'\n";
    let plan = Plan::new(&scenario::read(text, "test", &[]).expect("a scenario")).expect("a plan");
    let now = Time::from_us(50);
    let mut host = plan.host(HostId(1));
    host.wake(now);
    let mut packet = host.pull(now).expect("it has something to send");
    (packet.flags, packet.class, packet.hops) = (packet.flags | flags::CE, 5, 2);
    let networks = plan.scenario.live.networks().expect("the default");
    let mut frame = Vec::new();
    let content = vec![7; packet.payload_bytes.into()];
    let whole = datagram(&plan, &networks, &packet, Some(&content), &mut frame);
    assert_eq!(whole, frame.len());
    assert_eq!((&frame[..6], &frame[6..14]), (&mac_of(packet.dst.0)[..], &[2, 0x77, 0, 0, 0, 2, 8, 0][..]));
    let ip = &frame[14..];
    assert_eq!((ip[1], ip[8], ip[9], &ip[12..16]), (5 << 5 | 3, 62, 17, &[10, 77, 0, 2][..]));
    assert_eq!(usize::from(u16::from_be_bytes([ip[2], ip[3]])), ip.len());
    assert_eq!(internet::checksum(0, &ip[..20]), 0);
    assert_eq!(u16::from_be_bytes([ip[22], ip[23]]), transport_port("dctcp"));
    assert_eq!(usize::from(u16::from_be_bytes([ip[24], ip[25]])), ip.len() - 20);
    let mut read = Packet::bare(FlowId(0), packet.src, packet.dst);
    let mut from = node::wire::Reader::new(&ip[28..], "header");
    plan.transports[0].parse_header(&mut from, &mut read).expect("its own header");
    assert_eq!(from.rest(), content);
    // Without content it is cut off, and says how long it was.
    frame.clear();
    assert_eq!(datagram(&plan, &networks, &packet, None, &mut frame), whole);
    assert_eq!(frame.len() + content.len(), whole);
}
