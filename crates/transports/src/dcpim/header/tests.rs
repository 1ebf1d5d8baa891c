use proptest::prelude::*;
use testing::check_header;

use super::*;

fn headers() -> impl Strategy<Value = Header> {
    let proposal = any::<(u32, [u8; 3], u64, u32)>().prop_map(|(phase, [round, channels, prompt], remaining, kbps)| {
        Proposal { phase, round, channels, remaining, prompt, kbps }
    });
    let accept = any::<(u32, [u8; 3], u32)>().prop_map(|(phase, [round, channels, prompt], kbps)| Accept {
        phase,
        round,
        channels,
        prompt,
        kbps,
    });
    let flow = any::<[u32; 3]>().prop_map(|[packets, untokened, kbps]| Announced { packets, untokened, kbps });
    prop_oneof![
        (0u8..8, flow.clone()).prop_map(|(class, flow)| Header::Notification { class, flow }),
        Just(Header::Ack),
        (flow, any::<(u32, u32, u64)>())
            .prop_map(|(flow, (packet, token, offset))| { Header::Data(Data { flow, packet, token, offset }) }),
        (0u8..8, any::<([u32; 4], u64)>()).prop_map(|(class, ([phase, packet, acked, token], remaining))| {
            Header::Token(Token { class, phase, packet, acked, token, remaining })
        }),
        any::<u32>().prop_map(|packets| Header::SenderFinish { packets }),
        Just(Header::ReceiverFinish),
        proposal.clone().prop_map(Header::Request),
        proposal.prop_map(Header::Grant),
        accept.clone().prop_map(Header::Accept),
        accept.prop_map(Header::Trim),
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
    let token = Token { class: 2, phase: 3, packet: 4, acked: 5, token: 6, remaining: 7 };
    let [zero, three, four, five, six] = [0u32, 3, 4, 5, 6].map(u32::to_be_bytes);
    let words = [three, four, zero, five, six].concat();
    assert_eq!(check_header(Header::Token(token), &[]), [&[4, 0, 0, 2], &words[..], &7u64.to_be_bytes()].concat());
    let flow = Announced { packets: 4, untokened: 5, kbps: 3 };
    let data = Data { flow, packet: 3, token: 6, offset: 7 };
    let words = [three, three, four, five, six].concat();
    assert_eq!(check_header(Header::Data(data), &[]), [&[3, 0, 0, 0], &words[..], &7u64.to_be_bytes()].concat());
    let words = [three, zero, four, five, zero].concat();
    assert_eq!(
        check_header(Header::Notification { class: 1, flow }, &[]),
        [&[1, 0, 0, 1], &words[..], &[0; 8]].concat()
    );
    let proposal = Proposal { phase: 3, round: 1, channels: 2, remaining: 4, prompt: 9, kbps: 5 };
    let words = [three, zero, zero, zero, five].concat();
    let bytes = [&[8, 1, 2, 9], &words[..], &4u64.to_be_bytes()].concat();
    assert_eq!(check_header(Header::Grant(proposal), &[]), bytes);
}
