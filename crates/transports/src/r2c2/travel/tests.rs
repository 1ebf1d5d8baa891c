use proptest::prelude::*;
use units::{FlowId, PortId};

use super::super::header::tests::headers;
use super::super::route;
use super::*;

fn data_packet(ports: &[u32], hops: u8, seq: u32, content: usize) -> Packet {
    let ports: Vec<PortId> = ports.iter().map(|&port| PortId(port)).collect();
    let mut data = header::Data { last: false, rlen: 0, route: [0; 2], seq, full: 1_465 };
    let mut packet = Packet::new(FlowId(7), HostId(1), HostId(2), Header::Data(data));
    assert!(route::set(&mut packet, &mut data, &ports));
    packet.set_header(Header::Data(data));
    (packet.hops, packet.payload_bytes) = (hops, content as u16);
    packet.wire_bytes = (DATA_BYTES + content) as u16;
    packet
}

const STATE: FlowState =
    FlowState { dst: HostId(3), number: 0, version: 0, weight: 1, priority: 0, demand_kbps: 0, tree: 0, rp: 0 };

fn packet_of(header: Header) -> Packet {
    Packet::new(FlowId(7), HostId(1), HostId(2), header)
}

/// A packet, and the same with its header to be read.
fn there_and_back(packet: &Packet, content: &[u8]) -> (Vec<u8>, Result<(Packet, usize), Malformed>) {
    let mut bytes = Vec::new();
    emit(packet, content, &mut Writer::new(&mut bytes));
    let taken = bytes.len();
    bytes.extend_from_slice(content);
    let mut read = *packet;
    read.set_header(Header::Done);
    let mut from = Reader::new(&bytes, "");
    let result = parse(&mut from, &mut read);
    assert!(result.is_err() || from.taken() == taken);
    let result = result.map(|()| (read, from.taken()));
    (bytes, result)
}

proptest! {
    #[test]
    fn every_packet_comes_back_as_it_was(
        short in proptest::collection::vec(0u32..8, 1..43), wide in proptest::collection::vec(0u32..256, 1..9),
            seq: u32, hops: u8,
        content in proptest::collection::vec(proptest::num::u8::ANY, 0..80), other in headers(any::<u32>()),
    ) {
        for ports in [&short, &wide] {
            let packet = data_packet(ports, hops % (ports.len() as u8 + 1), seq, content.len());
            let (wire, read) = there_and_back(&packet, &content);
            prop_assert_eq!(read, Ok((packet, DATA_BYTES + 2)));
            prop_assert_eq!(wire.len() - 2, usize::from(packet.wire_bytes), "the size in the simulator");
            testing::check_layout::<Header>(&packet, &content);
        }
        let header = match Format::of(other) {
            Format::Data(_) => return Ok(()),
            Format::Broadcast(says, state) => {
                let (dst, version) = (HostId(state.dst.0 % 65_536), state.version % 16);
                Header::from(broadcast(&packet_of(other), says, FlowState { dst, version, ..state }))
            }
            Format::Own => other,
        };
        let packet = packet_of(header);
        prop_assert_eq!(there_and_back(&packet, &[]).1.map(|read| read.0), Ok(packet));
    }

    #[test]
    fn what_is_not_the_frame_s_is_refused(seq: u32, what in 0usize..6) {
        let packet = data_packet(&[1, 2, 3], 1, seq, 10);
        let mut bytes = Vec::new();
        emit(&packet, &[5; 10], &mut Writer::new(&mut bytes));
        bytes.extend_from_slice(&[5; 10]);
        let mut frame = packet;
        match what {
            0 => frame.flow.0 += 1,
            1 => frame.src.0 += 1,
            2 => frame.dst.0 += 1,
            3 => frame.hops += 1,
            4 => frame.label ^= 1,
            _ => frame.flags ^= flags::COMPACT_ROUTE,
        }
        prop_assert!(parse(&mut Reader::new(&bytes, ""), &mut frame).is_err());
    }

    #[test]
    fn noise_is_refused_or_read(noise: Vec<u8>, packet_flags: u8) {
        let mut packet = data_packet(&[1], 0, 0, 0);
        packet.flags = packet_flags;
        let _ = parse(&mut Reader::new(&noise, ""), &mut packet);
    }

    #[test]
    fn one_wrong_bit_is_always_found(bit in 0u32..12_000, broadcast in 0u32..128) {
        let mut packet = data_packet(&[1, 2, 3], 1, 5, 1_465);
        // ridx is not covered, but says where the packet is.
        prop_assert!(!damage(&mut packet, &[bit]));
        let mut packet = packet_of(Header::Announce(STATE));
        packet.wire_bytes = 16;
        prop_assert!(!damage(&mut packet, &[broadcast]));
    }
}

#[test]
fn one_pair_of_wrong_bits_in_thirty_two_is_not_found() {
    let mut random = units::Stream::new(1, 0, "pairs");
    let (mut missed, count, bits) = (0u32, 20_000u32, 8 * 400);
    for seq in 0..count {
        let mut packet = data_packet(&[1, 2, 3], 1, seq, 400);
        let one = random.below(bits) as u32;
        let other = (one + 1 + random.below(bits - 1) as u32) % bits as u32;
        let before = packet;
        // Bits of the payload.
        if damage(&mut packet, &[one, other].map(|bit| 8 * DATA_BYTES as u32 + bit)) {
            missed += 1;
            assert_eq!(packet, before);
        }
    }
    // Another bit is in the same column in 199 of 3,199 cases, and the opposite in half of them.
    let share = 199.0 / 3_199.0 / 2.0;
    let (due, slack) = (f64::from(count) * share, 4.0 * (f64::from(count) * share).sqrt());
    assert!((f64::from(missed) - due).abs() <= slack, "{missed} for {due}");
}

#[test]
fn what_is_not_found_goes_on_as_what_it_says() {
    // Demand and number: two bits of the same column, one set and one not.
    let mut packet = packet_of(Header::Announce(FlowState { demand_kbps: 1, ..STATE }));
    packet.wire_bytes = 16;
    // Byte 9 is the number, byte 13 the demand's last: both the lower half of their words.
    assert!(damage(&mut packet, &[9 * 8 + 7, 13 * 8 + 7]));
    assert_eq!(packet.header::<Header>(), Header::Announce(FlowState { number: 1, ..STATE }));
}
