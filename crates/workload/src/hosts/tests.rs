use super::*;
use crate::testing::star_of_racks;

#[test]
fn hosts_and_racks_are_sets() {
    let view = star_of_racks(3, 4);
    let resolve = |text: &str| text.parse::<Hosts>().unwrap().resolve(&view);
    let ids = |list: &[u32]| list.iter().copied().map(HostId).collect::<Vec<_>>();
    assert_eq!(resolve("9, 0-2, 1").unwrap(), ids(&[0, 1, 2, 9]));
    assert_eq!(resolve("rack 2, 0").unwrap(), ids(&[0, 8, 9, 10, 11]));
    assert_eq!(resolve("racks 0-1").unwrap(), ids(&[0, 1, 2, 3, 4, 5, 6, 7]));
    assert!(resolve("12").unwrap_err().message.contains("no host 12: the fabric has 12"));
    assert!(resolve("rack 3").unwrap_err().message.contains("no rack 3"));
}

#[test]
fn errors_name_the_part() {
    for wrong in ["", "a", "3-1", "1,,2", "rack", "-", "99999999999"] {
        let error = wrong.parse::<Hosts>().unwrap_err().to_string();
        assert!(error.contains("write hosts like"), "{error}");
    }
}

proptest::proptest! {
    #[test]
    fn no_text_panics_and_good_text_round_trips(text in "[ 0-9a-z,-]{0,12}|(rack )?[0-9]{1,2}(-[0-9]{3})?") {
        if let Ok(hosts) = text.parse::<Hosts>() {
            proptest::prop_assert_eq!(hosts.to_string().parse::<Hosts>().unwrap(), hosts);
        }
    }
}
