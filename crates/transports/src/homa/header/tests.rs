use proptest::prelude::*;
use testing::check_header;

use super::*;

fn headers() -> impl Strategy<Value = Header> {
    let messages = any::<(u16, u64)>().prop_map(|(unscheduled, length)| Announced { unscheduled, length });
    let data = (messages.clone(), any::<u64>()).prop_map(|(message, offset)| Data { message, offset });
    let granted = (0u8..8, any::<u32>()).prop_map(|(class, allowed)| Granted { class, allowed });
    let levels = (1u8..8, any::<[u8; 6]>()).prop_map(|(count, cutoffs)| Levels { count, cutoffs });
    let answers = prop_oneof![
        granted.clone().prop_map(Answer::Grant),
        (granted.clone(), any::<(u64, u64)>()).prop_map(|(granted, (offset, length))| Answer::Resend {
            granted,
            offset,
            length
        }),
        granted.prop_map(Answer::Probed),
        any::<u64>().prop_map(|offset| Answer::Ack { offset }),
        Just(Answer::Done),
    ];
    prop_oneof![
        data.clone().prop_map(Header::Unscheduled),
        data.prop_map(Header::Scheduled),
        Just(Header::Busy),
        messages.prop_map(Header::Probe),
        (prop::option::of(levels), answers).prop_map(|(levels, of)| Header::Answer { levels, of }),
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
    let levels = Some(Levels { count: 6, cutoffs: [1, 2, 3, 4, 5, 6] });
    let granted = Granted { class: 7, allowed: 9 };
    let resend = Header::Answer { levels, of: Answer::Resend { granted, offset: 10, length: 11 } };
    let words = [10u64, 11].map(u64::to_be_bytes).concat();
    let bytes = [&[4, 7, 6, 1, 2, 3, 4, 5, 6, 0, 0, 0, 0, 0, 0, 9][..], &words].concat();
    assert_eq!(check_header(resend, &[]), bytes);
    let message = Announced { unscheduled: 0x0708, length: 11 };
    let data = Header::Scheduled(Data { message, offset: 10 });
    let bytes = [&[2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7, 8, 0, 0, 0, 0][..], &words].concat();
    assert_eq!(check_header(data, &[]), bytes);
}
