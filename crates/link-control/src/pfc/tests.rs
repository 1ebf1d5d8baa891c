use testing::check_header;

use super::*;

#[test]
fn bytes_stay_what_they_are() {
    let bytes = [0x01, 0x01, 0, 0b101, 0, 0, 0, 0, 0xFF, 0xFF, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    assert_eq!(check_header(Frame { classes: 0b101, pause: 0b100, quanta: u16::MAX }, &[]), bytes);
}

/// 100 m of cable at 100 Gbps with packets of 1,500 B, term by term: two packets, 2 x 100 m of light in fibre, 394
/// quanta (IEEE 802.3, 31B.3.7).
#[test]
fn headroom_is_the_sum_of_its_terms() {
    let (rate, none) = (Rate::from_gbps(100), Duration::ZERO);
    let cable: f64 = 2.0 * 100.0 / 198e6 * 100e9 / 8.0;
    let told = Headroom { cable_m: Some(100.0), ..Headroom::default() };
    assert_eq!(told.bytes(rate, none, 1_500), 2 * 1_500 + cable as u64 + 394 * 64);
    // A vendor's white paper counts 513 ns for each 100 m of fibre (Cisco, "Priority Flow Control", figure 3).
    let theirs = 2.0 * 513e-9 * 100e9 / 8.0;
    assert!((cable / theirs - 1.0).abs() < 0.02, "{cable} and {theirs}");
    // A delay of 505 ns each way is 100 m.
    let by_delay = Headroom::default().bytes(rate, Duration::from_ns(1_010), 1_500);
    assert!(by_delay.abs_diff(told.bytes(rate, none, 1_500)) < 10, "{by_delay}");
}

/// Jumbo frames of another class, a neighbour that answers at once, cells of 192 B filled by 64 B each.
#[test]
fn headroom_has_terms_for_other_frames_answers_and_cells() {
    let given = |mtu, response, cell| Headroom { cable_m: Some(0.0), mtu, response, cell };
    let bytes = |headroom: Headroom| headroom.bytes(Rate::from_gbps(400), Duration::ZERO, 1_000);
    assert_eq!(bytes(given(None, Some(Bytes(0)), None)), 2_000);
    assert_eq!(bytes(given(Some(Bytes(9_216)), Some(Bytes(0)), None)), 10_216);
    assert_eq!(bytes(given(None, None, None)), 2_000 + 905 * 64);
    assert_eq!(bytes(given(None, Some(Bytes(0)), Some(Bytes(192)))), 1_000 + 3 * 1_000);
    assert_eq!(bytes(given(None, Some(Bytes(3_200)), Some(Bytes(96)))), 1_000 + 4_200 * 192 / 97);
}

proptest::proptest! {
    #[test]
    fn frames_survive_the_wire(classes: u8, pause: u8, quanta in 1u16.., noise: Vec<u8>) {
        let pause = pause & classes;
        check_header(Frame { classes, pause, quanta: if pause == 0 { 0 } else { quanta } }, &noise);
    }
}
