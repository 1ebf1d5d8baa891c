use node::Header as _;
use testing::check_header;

use super::*;

proptest::proptest! {
    #[test]
    fn headers_survive_the_wire(guarantee: u64, count: u64, noise: Vec<u8>) {
        check_header(Header::Report { guarantee: Rate::from_bps(guarantee), signs: count }, &noise);
        check_header(Header::Count { packets: count }, &noise);
    }
}

#[test]
fn bytes_stay_what_they_are() {
    let bytes = |kind: u8, words: [u64; 2]| [&[kind][..], &words.map(u64::to_be_bytes).concat()].concat();
    let report = Header::Report { guarantee: Rate::from_bps(0x0102), signs: 0x0304 };
    assert_eq!(check_header(report, &[]), bytes(1, [0x0102, 0x0304]));
    assert_eq!(check_header(Header::Count { packets: 5 }, &[]), bytes(2, [0, 5]));
}

#[test]
fn an_unknown_kind_is_refused() {
    let refused = Header::parse(&mut Reader::new(&[3; 17], ""));
    assert_eq!(refused, Err(Malformed { what: "ElasticSwitch kind" }));
}
