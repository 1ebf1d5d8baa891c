use proptest::prelude::*;
use testing::check_header;

use super::*;

fn headers() -> impl Strategy<Value = Header> {
    let acks = any::<(u64, [(u16, u16); 3], bool, Option<u32>)>();
    prop_oneof![
        any::<u64>().prop_map(|bytes| Header::Syn { bytes }),
        Just(Header::SynAck),
        any::<(u64, u64, bool)>().prop_map(|(sequence, bytes, cwr)| Header::Data(Data { sequence, bytes, cwr })),
        acks.prop_map(|(sequence, blocks, ece, virtual_delay_ns)| {
            let blocks = blocks.map(|(first, count)| Block { first, count });
            Header::Ack(Acknowledgement { sequence, blocks, ece, virtual_delay_ns })
        }),
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
    let words = |words: [u64; 2]| words.map(u64::to_be_bytes).concat();
    let data = Header::Data(Data { sequence: 0x0102, bytes: 0x0304, cwr: true });
    assert_eq!(check_header(data, &[]), [&words([0x0102, 0x0304])[..], &[0; 15], &[8]].concat());
    let blocks = [(5, 6), (7, 8), (0, 0)].map(|(first, count)| Block { first, count });
    let ack = Header::Ack(Acknowledgement { sequence: 9, blocks, ece: true, virtual_delay_ns: Some(10) });
    let bytes = [&words([9, 10])[..], &[0, 5, 0, 6, 0, 7, 0, 8, 0, 0, 0, 0], &[0, 0, 0, 22]].concat();
    assert_eq!(check_header(ack, &[]), bytes);
    assert_eq!(check_header(Header::SynAck, &[]), [&[0; 31][..], &[3]].concat());
    assert_eq!(check_header(Header::Syn { bytes: 7 }, &[]), [&words([0, 7])[..], &[0; 15], &[1]].concat());
}
