use proptest::prelude::*;
use testing::check_header;

use super::*;

fn echoes() -> impl Strategy<Value = Echo> {
    any::<([u8; 3], [u32; 2])>().prop_map(|([path, hops, level], [t1_ns, held_ns])| Echo {
        path,
        hops,
        buffer_level: level % LEVELS,
        t1_ns,
        held_ns,
    })
}

fn headers() -> impl Strategy<Value = Header> {
    let data = any::<([u32; 2], u8, bool, [u64; 2])>().prop_map(
        |([psn, t1_ns], path, ack_request, [message_bytes, offset])| {
            Header::Data(Data { psn, path, ack_request, t1_ns, message_bytes, offset })
        },
    );
    let ack = (any::<(u32, [u64; 2])>(), echoes()).prop_map(|((base, [received, received_beyond]), echo)| {
        Header::Ack(Ack { base, received, received_beyond, echo })
    });
    let nack = (any::<[u32; 2]>(), echoes()).prop_map(|([base, psn], echo)| Header::Nack(Nack { base, psn, echo }));
    prop_oneof![data, ack, nack]
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
    let data = Data { psn: 3, path: 2, ack_request: true, t1_ns: 4, message_bytes: 5, offset: 6 };
    assert_eq!(check_header(Header::Data(data), &[]), bytes([1, 2, 0, 1], [3, 4, 0], [5, 6]));
    let echo = Echo { path: 2, hops: 3, buffer_level: 31, t1_ns: 4, held_ns: 5 };
    let ack = Ack { base: 6, received: 7, received_beyond: 8, echo };
    assert_eq!(check_header(Header::Ack(ack), &[]), bytes([2, 2, 3, 31], [6, 4, 5], [7, 8]));
    let nack = Nack { base: 6, psn: 7, echo };
    assert_eq!(check_header(Header::Nack(nack), &[]), bytes([3, 2, 3, 31], [7, 4, 5], [6, 0]));
}
