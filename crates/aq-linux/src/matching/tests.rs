use super::*;

#[test]
fn prefixes_are_read_exactly() {
    for good in ["10.1.0.0/16", "0.0.0.0/0", "::/0", "2001:db8::/32", "10.0.0.1/32"] {
        assert_eq!(good.parse::<Prefix>().unwrap().to_string(), good);
    }
    assert_eq!("10.0.0.1".parse::<Prefix>().unwrap().to_string(), "10.0.0.1/32");
    for bad in ["", "10.1/16", "10.1.0.0/33", "10.1.0.1/16", "::1/64", "10.1.0.0/-1", "10.1.0.0/", "x"] {
        assert!(bad.parse::<Prefix>().is_err(), "{bad}");
    }
    let (length, key) = "10.1.0.0/16".parse::<Prefix>().unwrap().key(Kind::Destination);
    assert_eq!((length, key[0], key[1].to_ne_bytes()), (48, 0x403, [10, 1, 0, 0]));
}

#[test]
fn ports_are_read_exactly() {
    for good in ["1", "65535", "8000-8099"] {
        assert_eq!(good.parse::<Ports>().unwrap().to_string(), good);
    }
    for bad in ["", "0", "65536", "9-8", "1-", "-1", "a"] {
        assert!(bad.parse::<Ports>().is_err(), "{bad}");
    }
}
