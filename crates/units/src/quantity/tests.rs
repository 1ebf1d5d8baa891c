use super::*;
use crate::{Duration, Rate};

#[test]
fn reads_what_people_write() {
    assert_eq!("64KB".parse::<Bytes>().unwrap(), Bytes(64_000));
    assert_eq!("16 MiB".parse::<Bytes>().unwrap(), Bytes(16 << 20));
    assert_eq!("100Gbps".parse::<Rate>().unwrap(), Rate::from_bps(100_000_000_000));
    assert_eq!("5.8us".parse::<Duration>().unwrap(), Duration::from_ps(5_800_000));
}

#[test]
fn reads_from_toml_and_says_what_is_wrong_there() {
    #[derive(serde::Deserialize, Debug)]
    struct Link {
        delay: Duration,
    }
    assert_eq!(toml::from_str::<Link>("delay = '200ns'").unwrap().delay, Duration::from_ns(200));
    let error = toml::from_str::<Link>("delay = 200").unwrap_err();
    assert!(error.message().contains("200ns") && error.span() == Some(8..11), "{error}");
}

#[test]
fn errors_name_value_and_remedy() {
    let error = "200".parse::<Duration>().unwrap_err().to_string();
    assert!(error.contains("\"200\"") && error.contains("no unit") && error.contains("200ns"), "{error}");
    assert!("5 parsec".parse::<Duration>().unwrap_err().to_string().contains("parsec"));
    assert!("0.1ps".parse::<Duration>().unwrap_err().to_string().contains("finer"));
    assert!("99999999999999999999s".parse::<Duration>().unwrap_err().to_string().contains("too large"));
    assert!("1..2s".parse::<Duration>().is_err());
    assert!("".parse::<Bytes>().is_err());
}

proptest::proptest! {
    #[test]
    fn text_round_trips(value: u64) {
        proptest::prop_assert_eq!(Bytes(value).to_string().parse::<Bytes>().unwrap(), Bytes(value));
        let duration = Duration::from_ps(value);
        proptest::prop_assert_eq!(duration.to_string().parse::<Duration>().unwrap(), duration);
        let rate = Rate::from_bps(value);
        proptest::prop_assert_eq!(rate.to_string().parse::<Rate>().unwrap(), rate);
    }

    #[test]
    fn no_text_panics(text: String) {
        let _ = text.parse::<Bytes>();
        let _ = text.parse::<Duration>();
    }
}
