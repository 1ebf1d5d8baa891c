use super::*;

fn device(kind: &str, port_of: &str) -> Device {
    let entry = serde_json::json!({
        "ifname": "d", "ifindex": 3, "flags": ["UP"], "link_type": "ether",
        "linkinfo": { "info_kind": kind, "info_slave_kind": port_of },
    });
    Device::read(&entry).unwrap()
}

#[test]
fn the_hook_follows_from_the_device() {
    for (kind, port_of, position, hook, code) in [
        ("veth", "", Position::Egress, Hook::Clsact, TC_ACT_STOLEN),
        ("", "", Position::Egress, Hook::Clsact, TC_ACT_STOLEN),
        ("", "bond", Position::Egress, Hook::Clsact, TC_ACT_STOLEN),
        ("bridge", "", Position::Egress, Hook::Clsact, TC_ACT_STOLEN),
        ("veth", "bridge", Position::Egress, Hook::Tcx, TC_ACT_SHOT),
        ("veth", "", Position::Ingress, Hook::Tcx, TC_ACT_SHOT),
        ("veth", "bridge", Position::Ingress, Hook::Tcx, TC_ACT_SHOT),
    ] {
        let chosen = device(kind, port_of).choose(position, None, true).unwrap();
        assert_eq!((chosen.hook, chosen.drop_code), (hook, code), "{kind} {port_of} {position:?}");
        let old = device(kind, port_of).choose(position, None, false).unwrap();
        assert_eq!((old.hook, old.drop_code), (Hook::Clsact, code), "without tcx");
    }
}

#[test]
fn what_would_collapse_is_refused() {
    let refused = device("veth", "").choose(Position::Egress, Some(Hook::Tcx), true).unwrap_err();
    assert!(refused.contains("collapse"), "{refused}");
    device("veth", "bridge").choose(Position::Egress, Some(Hook::Tcx), true).unwrap();
    assert!(device("veth", "").choose(Position::Ingress, Some(Hook::Tcx), false).unwrap_err().contains("6.6"));
}

#[test]
fn names_that_are_none_are_refused_before_any_command() {
    for name in ["", "a/b", "a b", "sixteen-letters-"] {
        assert!(Device::find(name).unwrap_err().contains("no name"), "{name}");
    }
}
