use testing::check_header;

use super::*;

#[test]
fn bytes_stay_what_they_are() {
    let bytes = [0x01, 0x01, 0, 0b101, 0, 0, 0, 0, 0xFF, 0xFF, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    assert_eq!(check_header(Frame { classes: 0b101, pause: 0b100 }, &[]), bytes);
}

proptest::proptest! {
    #[test]
    fn frames_survive_the_wire(classes: u8, pause: u8, noise: Vec<u8>) {
        check_header(Frame { classes, pause: pause & classes }, &noise);
    }
}
