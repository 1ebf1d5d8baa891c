use proptest::prelude::*;
use testing::check_header;

use super::*;

fn headers() -> impl Strategy<Value = Header> {
    prop_oneof![
        any::<(u32, u32, u64, u64)>().prop_map(|(packet, packets, remaining, offset)| {
            Header::Data(Data { packet, packets, remaining, offset })
        }),
        any::<(u32, u64)>().prop_map(|(packets, remaining)| Header::Probe { packets, remaining }),
        (proptest::option::of(0..NONE), any::<u32>()).prop_map(|(packet, acked)| Header::Ack(Ack { packet, acked })),
    ]
}

proptest! {
    #[test]
    fn headers_survive_the_wire(header in headers(), noise: Vec<u8>) {
        check_header(header, &noise);
    }
}

#[test]
fn bytes_stay_what_they_are() {
    let bytes = |halves: [u32; 4], words: [u64; 2]| {
        [halves.map(u32::to_be_bytes).concat(), words.map(u64::to_be_bytes).concat()].concat()
    };
    let data = Data { packet: 2, packets: 3, remaining: 4, offset: 5 };
    assert_eq!(check_header(Header::Data(data), &[]), bytes([1, 2, 3, 0], [4, 5]));
    let probe = Header::Probe { packets: 3, remaining: 4 };
    assert_eq!(check_header(probe, &[]), bytes([2, u32::MAX, 3, 0], [4, 0]));
    let ack = |packet| Header::Ack(Ack { packet, acked: 6 });
    assert_eq!(check_header(ack(Some(2)), &[]), bytes([3, 2, 0, 6], [0, 0]));
    assert_eq!(check_header(ack(None), &[]), bytes([3, u32::MAX, 0, 6], [0, 0]));
}
