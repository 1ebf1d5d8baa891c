use super::*;

const MESSAGES: &[Message] = &[
    Message::of_kind("Long", 1, &[]).and(Bits::u8(1).within(2, 3)),
    Message::new(
        "Short",
        Bits::u8(0).are(1),
        8,
        &[
            Field::number("list [", Bits::u8(1)),
            Field::number("count]", Bits::u16(2)),
            Field::new("", Bits::u8(4).bits(7, 1), BOOL),
            Field::new("if", Bits::u8(5), Shown::If(Bits::u8(4).bits(0, 1).are(1))),
            Field::new("zero", Bits::u8(5), Shown::OrZero(Bits::u8(4).bits(0, 1).are(1))),
            Field::new("rate", Bits::u16(6), RATE),
        ],
    ),
    Message::new("Other", Bits::u8(0).are(2), 6, &[Field::new("set", Bits::u16(2), WORDS)]),
];
const WORDS: Shown = Shown::NotZero { count: 2, mask: Bits::u8(1) };

#[test]
fn a_header_says_what_its_message_has_in_the_order_of_its_fields() {
    let says = |header: &[u8]| Layout { messages: MESSAGES }.says(header);
    let said = |text: &str| Some(text.to_owned());
    assert_eq!(
        says(&[1, 9, 1, 0, 0x81, 7, 0x05, 0xDC]),
        said("Short list [9, count 256], true, if 7, zero 7, rate 1.5Kbps")
    );
    assert_eq!(says(&[1, 9, 0, 0, 0x02, 7, 0, 3]), said("Short list [9, count 0], false, if None, zero 0, rate 3bps"));
    assert_eq!(says(&[[1, 2].as_slice(), &[0; 30]].concat()), said("Long"));
    assert_eq!(says(&[2, 0b11, 0, 1, 0, 0]), said("Other set 1"));
    assert_eq!(says(&[2, 0b10, 0, 1, 1, 0]), said("Other set 2"), "what the mask has not is not set");
    assert_eq!((says(&[1, 9, 1]), says(&[3; 40]), says(&[])), (None, None, None));
}
