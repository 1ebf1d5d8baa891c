use proptest::prelude::*;
use testing::check_header;

use super::*;

fn headers() -> impl Strategy<Value = Header> {
    prop_oneof![
        any::<(u16, [u32; 3], bool, bool)>().prop_map(|(attempt, [first, packets, dst], admitted, lost)| {
            Header::Request(Request { attempt, first, packets, dst: HostId(dst), admitted, lost })
        }),
        any::<(u16, [u32; 3], u64, u64)>().prop_map(|(attempt, [first, packets, stride], at, path)| {
            let at = Time::from_ps(at);
            Header::Allocation(Allocation { attempt, first, packets, stride, at, path })
        }),
        any::<u16>().prop_map(|attempt| Header::Reject { attempt }),
        any::<u16>().prop_map(|attempt| Header::Wait { attempt }),
        any::<(u16, u32, u32, u64)>()
            .prop_map(|(attempt, packet, packets, offset)| { Header::Data(Data { attempt, packet, packets, offset }) }),
        any::<u16>().prop_map(|attempt| Header::Complete { attempt }),
        any::<(u16, u32)>().prop_map(|(attempt, packets)| Header::Probe { attempt, packets }),
        any::<(u16, u32)>().prop_map(|(attempt, missing)| Header::State { attempt, missing }),
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
    let (attempt, first, packets) = (0x0102, 3, 4);
    let request = Request { attempt, first, packets, dst: HostId(5), admitted: true, lost: true };
    assert_eq!(check_header(Header::Request(request), &[]), bytes([1, 3, 1, 2], [4, 3, 5], [0, 0]));
    let allocation = Allocation { attempt, first, packets, stride: 6, at: Time::from_ps(7), path: 8 };
    assert_eq!(check_header(Header::Allocation(allocation), &[]), bytes([2, 0, 1, 2], [4, 3, 6], [7, 8]));
    let data = Data { attempt, packet: first, packets, offset: 9 };
    assert_eq!(check_header(Header::Data(data), &[]), bytes([5, 0, 1, 2], [4, 3, 0], [9, 0]));
    let state = Header::State { attempt, missing: first };
    assert_eq!(check_header(state, &[]), bytes([8, 0, 1, 2], [0, 3, 0], [0, 0]));
}
