use run::Plan;

use super::{Apart, Bisected, Side, bisect};

fn plan(settings: &str, more: &str) -> Plan {
    let text = format!(
        r#"
        {settings}
        fabric.leaf_spine = {{ racks = 2, hosts_per_rack = 3, spines = 2, spine_rate = "100Gbps" }}
        [[traffic]]
        name = "mix"
        sizes = "websearch"
        arrivals = {{ poisson = {{ load = 0.8 }} }}
        flows = 20
        {more}
        "#
    );
    let scenario = scenario::read(&text, "bisect", &[]).unwrap_or_else(|why| panic!("{settings}: {why}"));
    Plan::new(&scenario).unwrap_or_else(|why| panic!("{settings}: {why}"))
}

fn apart(one: &Plan, other: &Plan, threads: [usize; 2]) -> Bisected {
    let sides = [(one, threads[0]), (other, threads[1])].map(|(plan, threads)| Side { plan, threads });
    bisect(sides).unwrap_or_else(|why| panic!("{why}"))
}

fn found(apart: Option<Apart>) -> Apart {
    apart.expect("they differ")
}

/// However the network is cut, whatever the transport.
#[test]
fn a_run_does_not_differ_from_itself() {
    for name in ["dcpim", "dctcp", "rdma", "ndp", "r2c2", "homa", "harmony"] {
        let of = plan(&format!("transport = \"{name}\""), "");
        let Bisected { from_start, state, arrival, end_ps } = apart(&of, &of, [1, 2]);
        assert!(from_start.is_empty() && state.is_none() && arrival.is_none(), "{name}: {from_start:?} {state:?}");
        assert!(end_ps > 0);
    }
}

/// A link that fails at a time that nothing else has: that time, one of its two ends, and the field.
#[test]
fn a_failure_is_found_at_its_time_and_place() {
    let own = plan("transport = \"newreno\"", "");
    let fault = r#"failure = [{ link = ["leaf0", "spine1"], at = "61234567ps" }]"#;
    let other = plan(&format!("transport = \"newreno\"\n{fault}"), "");
    let Bisected { from_start, state, arrival, .. } = apart(&own, &other, [1, 2]);
    assert!(from_start.is_empty(), "{from_start:?}");
    let Apart { at_ps, place, field, values, also, .. } = found(state);
    assert_eq!((at_ps, place.as_str()), (61_234_567, "leaf0"), "{field} {values:?} {also:?}");
    assert!(field.ends_with("up") || field.contains("queue") || field.contains("dead"), "{field}: {values:?}");
    assert!(also.contains(&"spine1".to_owned()), "{also:?}");
    assert!(found(arrival).at_ps > at_ps);
}

/// A class that comes later is in a host's list from the start, which is named and left out.
#[test]
fn a_message_is_found_when_it_starts() {
    let class = r#"
        [[traffic]]
        name = "one"
        start = "77us"
        sizes = { constant = "30KB" }
        arrivals = "all_at_once"
        senders = "4"
        receivers = "1"
        flows = 1
        "#;
    let settings = "transport = \"newreno\"\ntiming = \"ideal\"";
    let Bisected { from_start, state, arrival, .. } = apart(&plan(settings, ""), &plan(settings, class), [1, 1]);
    assert_eq!(from_start, ["host.starts"]);
    let state = found(state);
    assert_eq!((state.at_ps, state.place.as_str()), (77_000_000, "host4"), "{state:?}");
    let arrival = found(arrival);
    assert!(arrival.at_ps > 77_000_000 && arrival.place == "leaf1" && arrival.field == "digest", "{arrival:?}");
}

/// A setting that hosts keep differs from the start; what it changes is found where it first does.
#[test]
fn a_setting_is_named_and_its_first_effect_found() {
    let of = |kb: u64| {
        plan(&format!("transport = \"dctcp\"\nswitch.marking.step.threshold = \"{kb}KB\"\ntiming = \"ideal\""), "")
    };
    let Bisected { from_start, state, arrival, .. } = apart(&of(90), &of(12), [2, 1]);
    assert!(from_start.is_empty(), "{from_start:?}");
    let (state, arrival) = (found(state), found(arrival));
    assert!(state.field.contains("marked_packets"), "{state:?}");
    assert!(arrival.at_ps > state.at_ps, "{arrival:?}");
}

#[test]
fn other_nodes_are_refused() {
    let one = plan("transport = \"dctcp\"", "");
    let text = "transport = \"dctcp\"\nfabric.leaf_spine = { racks = 3, hosts_per_rack = 3, spines = 2 }\n\
                [[traffic]]\nname = \"x\"\nsizes = \"websearch\"\narrivals = { poisson = { load = 0.5 } }\nflows = 2";
    let other = Plan::new(&scenario::read(text, "", &[]).expect("it is sound")).expect("it is sound");
    let sides = [&one, &other].map(|plan| Side { plan, threads: 1 });
    assert_eq!(bisect(sides).expect_err("they differ").key, "fabric");
}
