use proptest::prelude::*;
use testing::check_header;

use super::*;

fn headers() -> impl Strategy<Value = Header> {
    let answers =
        any::<[u32; 3]>().prop_map(|[packet, pull, acked]| Answer { packet, progress: Progress { pull, acked } });
    prop_oneof![
        any::<(u32, u16, [u64; 2], bool, bool)>().prop_map(
            |(packet, class, [message_bytes, offset], last, returned)| {
                Header::Data(Data { packet, class, message_bytes, offset, last, returned })
            }
        ),
        answers.clone().prop_map(Header::Ack),
        answers.prop_map(Header::Nack),
        any::<(u32, u32)>().prop_map(|(pull, acked)| Header::Pull(Progress { pull, acked })),
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
    let data =
        |last, returned| Header::Data(Data { packet: 3, class: 0x0102, message_bytes: 4, offset: 5, last, returned });
    assert_eq!(check_header(data(true, false), &[]), bytes([1, 1, 1, 2], [3, 0, 0], [4, 5]));
    assert_eq!(check_header(data(true, true), &[]), bytes([1, 3, 1, 2], [3, 0, 0], [4, 5]));
    let progress = Progress { pull: 6, acked: 7 };
    let nack = Header::Nack(Answer { packet: 3, progress });
    assert_eq!(check_header(nack, &[]), bytes([3, 0, 0, 0], [3, 6, 7], [0, 0]));
    assert_eq!(check_header(Header::Pull(progress), &[]), bytes([4, 0, 0, 0], [0, 6, 7], [0, 0]));
}
