use super::*;

fn device(kind: &str, port_of: &str) -> Device {
    let (kind, port_of) = (kind.to_owned(), port_of.to_owned());
    Link { name: "d".to_owned(), index: 3, header: 1, up: true, kind, port_of, ..Link::default() }.into()
}

#[test]
fn what_a_drop_is_follows_from_the_device_and_the_hook() {
    for (kind, port_of, position, at_tcx, at_clsact) in [
        ("veth", "", Position::Egress, TC_ACT_REDIRECT, TC_ACT_STOLEN),
        ("", "", Position::Egress, TC_ACT_REDIRECT, TC_ACT_STOLEN),
        ("", "bond", Position::Egress, TC_ACT_REDIRECT, TC_ACT_STOLEN),
        ("bridge", "", Position::Egress, TC_ACT_REDIRECT, TC_ACT_STOLEN),
        ("veth", "bridge", Position::Egress, TC_ACT_SHOT, TC_ACT_SHOT),
        ("veth", "", Position::Ingress, TC_ACT_SHOT, TC_ACT_SHOT),
        ("veth", "bridge", Position::Ingress, TC_ACT_SHOT, TC_ACT_SHOT),
    ] {
        let device = device(kind, port_of);
        let chosen = device.choose(position, None, true).unwrap();
        assert_eq!((chosen.hook, chosen.drop_code), (Hook::Tcx, at_tcx), "{kind} {port_of} {position:?}");
        let old = device.choose(position, None, false).unwrap();
        assert_eq!((old.hook, old.drop_code), (Hook::Clsact, at_clsact), "without tcx");
        assert_eq!(device.choose(position, Some(Hook::Clsact), true).unwrap(), old);
    }
    assert!(device("veth", "").choose(Position::Ingress, Some(Hook::Tcx), false).unwrap_err().contains("6.6"));
}

#[test]
fn filters_are_read_in_order() {
    // `tc -j filter show` of a u32 filter behind one of ours: each priority has an entry without options.
    let shown = serde_json::json!([
        { "protocol": "all", "pref": 49151, "kind": "bpf", "chain": 0 },
        { "protocol": "all", "pref": 49151, "kind": "bpf", "chain": 0, "options": {
            "handle": "0x1", "bpf_name": "clearway_aq", "direct-action": true,
            "prog": { "id": 57, "name": "clearway_aq", "tag": "6c71007414332cfd", "jited": 1 } } },
        { "protocol": "ip", "pref": 49152, "kind": "u32", "chain": 0, "options": { "fh": "800:" } },
    ]);
    let filters: Vec<Filter> = shown.as_array().unwrap().iter().filter_map(Filter::read).collect();
    let ours = Filter { priority: 49151, handle: 1, program: Some(57), name: "clearway_aq".to_owned() };
    let other = Filter { priority: 49152, handle: 0, program: None, name: String::new() };
    assert_eq!(filters, [ours, other]);
}

#[test]
fn names_that_are_none_are_refused_before_any_command() {
    for name in ["", "a/b", "a b", "sixteen-letters-"] {
        assert!(Device::find(name).unwrap_err().contains("no name"), "{name}");
    }
}
