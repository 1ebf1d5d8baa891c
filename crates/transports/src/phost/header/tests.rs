use proptest::prelude::*;
use testing::check_header;

use super::*;

fn headers() -> impl Strategy<Value = Header> {
    let flows = any::<(u16, u32, u32)>().prop_map(|(tenant, packets, free)| Announced { tenant, packets, free });
    prop_oneof![
        flows.clone().prop_map(Header::Rts),
        (0u8..8, any::<[u32; 3]>()).prop_map(|(class, [packet, token, remaining])| {
            Header::Token(Token { class, packet, token, remaining })
        }),
        (flows, any::<(u32, u32, u64)>()).prop_map(|(flow, (packet, token, offset))| Header::Data(Data {
            flow,
            packet,
            token,
            offset
        })),
        Just(Header::Ack),
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
    let bytes = |first: [u8; 4], words: [u32; 5], offset: u64| {
        [&first[..], &words.map(u32::to_be_bytes).concat(), &offset.to_be_bytes()].concat()
    };
    let flow = Announced { tenant: 0x0102, packets: 3, free: 4 };
    assert_eq!(check_header(Header::Rts(flow), &[]), bytes([1, 0, 1, 2], [0, 3, 0, 0, 4], 0));
    let token = Token { class: 5, packet: 6, token: 7, remaining: 8 };
    assert_eq!(check_header(Header::Token(token), &[]), bytes([2, 5, 0, 0], [6, 0, 7, 8, 0], 0));
    let data = Data { flow, packet: 6, token: 7, offset: 9 };
    assert_eq!(check_header(Header::Data(data), &[]), bytes([3, 0, 1, 2], [6, 3, 7, 0, 4], 9));
}
