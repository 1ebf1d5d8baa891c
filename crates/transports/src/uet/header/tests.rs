use proptest::prelude::*;
use testing::check_header;

use super::*;

fn headers() -> impl Strategy<Value = Header> {
    let data = any::<(u32, u16, u32, [u64; 2], [bool; 3])>().prop_map(
        |(psn, entropy, pull_target, [message_bytes, offset], [ack_request, resent, last_hop])| {
            Header::Data(Data { psn, entropy, pull_target, message_bytes, offset, ack_request, resent, last_hop })
        },
    );
    let ack = any::<([u32; 3], u16, [u64; 2], [bool; 3])>().prop_map(
        |([psn, cumulative, base], entropy, [bitmap, received_bytes], [marked, resent, of_request])| {
            let ack = Ack { psn, entropy, cumulative, base, bitmap, received_bytes, marked, resent, of_request };
            Header::Ack(ack)
        },
    );
    let nack = any::<(u32, u16, [bool; 3])>().prop_map(|(psn, entropy, [marked, resent, last_hop])| {
        Header::Nack(Nack { psn, entropy, marked, resent, last_hop })
    });
    prop_oneof![
        data,
        ack,
        nack,
        any::<u32>().prop_map(|credit| Header::Pull(Pull { credit })),
        any::<(u32, u64)>().prop_map(|(pull_target, message_bytes)| Header::Rts(Rts { pull_target, message_bytes })),
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
    let bytes = |first: [u8; 4], halves: [u32; 3], words: [u64; 2]| {
        let (halves, words) = (halves.map(u32::to_be_bytes).concat(), words.map(u64::to_be_bytes).concat());
        [&first[..], &halves, &words].concat()
    };
    let data = Data {
        psn: 3,
        entropy: 0x0102,
        pull_target: 4,
        message_bytes: 5,
        offset: 6,
        ack_request: true,
        resent: false,
        last_hop: true,
    };
    assert_eq!(check_header(Header::Data(data), &[]), bytes([1, 6, 1, 2], [3, 4, 0], [5, 6]));
    let ack = Ack {
        psn: 3,
        entropy: 0x0102,
        cumulative: 4,
        base: 5,
        bitmap: 6,
        received_bytes: 7,
        marked: true,
        resent: true,
        of_request: false,
    };
    assert_eq!(check_header(Header::Ack(ack), &[]), bytes([2, 9, 1, 2], [3, 4, 5], [6, 7]));
    let nack = Nack { psn: 3, entropy: 0x0102, marked: false, resent: false, last_hop: true };
    assert_eq!(check_header(Header::Nack(nack), &[]), bytes([3, 4, 1, 2], [3, 0, 0], [0, 0]));
    assert_eq!(check_header(Header::Pull(Pull { credit: 8 }), &[]), bytes([4, 0, 0, 0], [0, 8, 0], [0, 0]));
    let rts = Header::Rts(Rts { pull_target: 8, message_bytes: 9 });
    assert_eq!(check_header(rts, &[]), bytes([5, 0, 0, 0], [0, 8, 0], [9, 0]));
}
