use super::*;

#[test]
fn a_token_that_could_be_tried_is_refused_and_blanks_around_it_do_not_count() {
    let problem = Token::new(" fifteen-letters ").expect_err("it is too short").to_string();
    assert!(problem.contains("15 characters") && problem.contains("openssl rand -hex 32"), "{problem}");
    let (one, same) = (Token::new("sixteen-letters!").expect("long"), Token::new("sixteen-letters!\n").expect("long"));
    assert_eq!(one.key("a", &[b"b"]).0, same.key("a", &[b"b"]).0);
    assert_eq!(format!("{one:?}"), "Token(..)");
}

#[test]
fn keys_differ_by_purpose_and_by_where_numbers_end_and_tags_by_every_bit() {
    let token = Token::new("sixteen-letters!").expect("long");
    let keys: [(&str, &[&[u8]]); 4] = [("a", &[b"bc"]), ("ab", &[b"c"]), ("a", &[b"b", b"c"]), ("a", &[b"bc", b""])];
    let keys = keys.map(|(purpose, nonces)| token.key(purpose, nonces));
    for (one, key) in keys.iter().enumerate() {
        assert!(keys[..one].iter().all(|other| other.0 != key.0));
    }
    let tag = keys[0].tag(b"words");
    assert!(keys[0].is_right(b"words", &tag) && !keys[0].is_right(b"Words", &tag) && !keys[1].is_right(b"words", &tag));
    for bit in 0..8 * TAG_BYTES {
        let mut other = tag;
        other[bit / 8] ^= 1 << (bit % 8);
        assert!(!keys[0].is_right(b"words", &other));
    }
}
