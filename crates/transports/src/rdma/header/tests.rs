use proptest::prelude::*;
use testing::check_header;

use super::*;

fn headers() -> impl Strategy<Value = Header> {
    let answers = any::<(u64, u64, u64, Option<u32>)>().prop_map(|(sequence, packet, ps, virtual_delay_ns)| Answer {
        sequence,
        packet,
        sent: Time::from_ps(ps),
        virtual_delay_ns,
    });
    let acks = (answers.clone(), any::<bool>()).prop_map(|(answer, cnp)| Acknowledgement { answer, cnp });
    prop_oneof![
        any::<(u64, u64, u64)>()
            .prop_map(|(sequence, bytes, ps)| { Header::Data(Data { sequence, bytes, sent: Time::from_ps(ps) }) }),
        acks.clone().prop_map(Header::Ack),
        acks.prop_map(Header::Nack),
        answers.prop_map(Header::Cnp),
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
    let words = |words: [u64; 3]| words.map(u64::to_be_bytes).concat();
    let data = Header::Data(Data { sequence: 1, bytes: 2, sent: Time::from_ps(3) });
    assert_eq!(check_header(data, &[]), [&words([1, 2, 3])[..], &[0; 8]].concat());
    let answer = Answer { sequence: 4, packet: 5, sent: Time::from_ps(6), virtual_delay_ns: Some(7) };
    let bytes = |flags| [&words([4, 5, 6])[..], &[0, 0, 0, 7, 0, 0, 0, flags]].concat();
    assert_eq!(check_header(Header::Cnp(answer), &[]), bytes(12));
    assert_eq!(check_header(Header::Ack(Acknowledgement { answer, cnp: false }), &[]), bytes(9));
    assert_eq!(check_header(Header::Nack(Acknowledgement { answer, cnp: true }), &[]), bytes(14));
}
