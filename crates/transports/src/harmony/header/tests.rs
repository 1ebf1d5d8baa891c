use proptest::prelude::*;
use testing::check_header;

use super::*;

/// What these fields are on a wire.
pub fn bytes([kind, conclusive]: [u8; 2], attempt: u16, id: u32, words: [u64; 3]) -> Vec<u8> {
    let first = [&[kind, conclusive][..], &attempt.to_be_bytes(), &id.to_be_bytes()].concat();
    [first, words.map(u64::to_be_bytes).concat()].concat()
}

/// All that may come from a wire, with these fields.
pub fn headers(
    attempts: impl Strategy<Value = u16>,
    ids: impl Strategy<Value = u32>,
    words: impl Strategy<Value = [u64; 3]>,
) -> impl Strategy<Value = Header> {
    let fields = (REQUEST..=FAILURE, 0..=FULL, attempts, ids, words);
    fields.prop_map(|(kind, far, attempt, id, words)| {
        let first = [kind, if kind == REJECT { far } else { far.min(ADDITIONAL) }];
        let bytes = bytes(first, attempt, id, words);
        node::Header::parse(&mut Reader::new(&bytes, "")).expect("all fields are in range")
    })
}

proptest! {
    #[test]
    fn headers_survive_the_wire(header in headers(any::<u16>(), any::<u32>(), any::<[u64; 3]>()), noise: Vec<u8>) {
        check_header(header, &noise);
    }
}

#[test]
fn bytes_stay_what_they_are() {
    let reservation = Reservation { attempt: 0x0102, id: 3 };
    let rsvp = |slot| Header::Rsvp(Rsvp { reservation, slot, missing: 4, offset: 5, back: 6 });
    let main = check_header(rsvp(Slot::Main { conclusive: true }), &[]);
    assert_eq!(main, bytes([2, 1], 0x0102, 3, [4, 5, 6]));
    assert_eq!(main[..8], [2, 1, 1, 2, 0, 0, 0, 3]);
    assert_eq!(check_header(rsvp(Slot::Additional), &[]), bytes([2, 2], 0x0102, 3, [4, 5, 6]));
    let data = Header::Data(Data { reservation, offset: 5, back: 6 });
    assert_eq!(check_header(data, &[]), bytes([3, 0], 0x0102, 3, [0, 5, 6]));
    let complete = Header::Complete { reservation, sent: 4, last: true };
    assert_eq!(check_header(complete, &[]), bytes([4, 1], 0x0102, 3, [4, 0, 0]));
    let rejects = [Rejected::Slot, Rejected::Attempt, Rejected::Message, Rejected::Full];
    for (conclusive, what) in (0..).zip(rejects) {
        let reject = Header::Reject { reservation, what };
        assert_eq!(check_header(reject, &[]), bytes([6, conclusive], 0x0102, 3, [0; 3]));
    }
}
