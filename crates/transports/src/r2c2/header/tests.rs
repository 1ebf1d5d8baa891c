use proptest::prelude::*;
use testing::check_header;

use super::*;

/// What these fields are as a header's bytes: the last are rlen, rp, weight, priority, number, version and tree.
fn bytes(route: [u64; 2], [seq, word]: [u32; 2], kind: u8, rest: [u8; 7]) -> Vec<u8> {
    let (route, halves) = (route.map(u64::to_be_bytes).concat(), [seq, word].map(u32::to_be_bytes).concat());
    [&route[..], &halves, &[kind], &rest].concat()
}

/// All headers that there are.
pub fn headers(numbers: impl Strategy<Value = u32>) -> impl Strategy<Value = Header> {
    let fields = (any::<[u64; 2]>(), numbers, any::<u32>(), kind::DATA..=kind::DROPPED_ASSIGN, any::<[u8; 7]>());
    fields.prop_map(|(route, seq, word, kind, rest)| {
        let bytes = bytes(route, [seq, word], kind, rest);
        node::Header::parse(&mut Reader::new(&bytes, "")).expect("its kind is one")
    })
}

proptest! {
    #[test]
    fn headers_survive_the_wire(header in headers(any::<u32>()), noise: Vec<u8>) {
        check_header(header, &noise);
    }
}

#[test]
fn bytes_stay_what_they_are() {
    let data = Header::Data(Data { last: true, rlen: 5, route: [1, 2], seq: 3, full: 4 });
    assert_eq!(check_header(data, &[]), bytes([1, 2], [3, 4], 2, [5, 0, 0, 0, 0, 0, 0]));
    let (dst, demand_kbps) = (HostId(3), 4);
    let state = FlowState { dst, number: 8, version: 9, weight: 6, priority: 7, demand_kbps, tree: 10, rp: 5 };
    assert_eq!(check_header(Header::Finish(state), &[]), bytes([0, 0], [3, 4], 4, [0, 5, 6, 7, 8, 9, 10]));
    let batch = Header::DroppedAssign(Batch { number: 3, tree: 10 });
    assert_eq!(check_header(batch, &[]), bytes([0, 0], [3, 0], 11, [0, 0, 0, 0, 0, 0, 10]));
    let rate = Header::Rate(FlowRate { dst, number: 8, kbps: 4 });
    assert_eq!(check_header(rate, &[]), bytes([0, 0], [3, 4], 10, [0, 0, 0, 0, 8, 0, 0]));
    assert_eq!(check_header(Header::Probe { packets: 3, from: 4 }, &[]), bytes([0, 0], [3, 4], 7, [0; 7]));
    let missing = Header::Status(Missing { first: 3, packets: [1, 2] });
    assert_eq!(check_header(missing, &[]), bytes([1, 2], [3, 0], 8, [0; 7]));
}
