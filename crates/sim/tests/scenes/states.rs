//! What hosts have of flows over time: by the arithmetic of each paper, on one thread and on two.

use std::collections::BTreeMap;

use run::{Data, Table};

use crate::packets::incast;
use crate::{RunResult, column, names, run_alone, run_both, table};

/// A flow of 200 packets of 1,460 B over one switch, whose links never fill.
fn alone(settings: &str) -> String {
    format!(
        r#"
        {settings}
        fabric.star = {{ hosts = 3, propagation = "20us" }}
        [[traffic]]
        name = "one"
        sizes.constant = "292000B"
        arrivals = "all_at_once"
        pattern.permutation = {{}}
        senders = "0-1"
        receivers = "1-2"
        flows = 1
        "#
    )
}

/// Counts and ids.
fn numbers(table: &Table, name: &str) -> Vec<u64> {
    match &table.column(name).expect("it has this column").data {
        Data::U32(values) => values.iter().map(|&value| value.into()).collect(),
        Data::U64(values) | Data::OptU64(values) => values.clone(),
        data => panic!("{name}: {data:?}"),
    }
}

/// A change: when, whose, where, what, to what.
type Change = (u64, u64, u64, String, u64);

fn changes(result: &RunResult) -> Vec<Change> {
    let states = table(result, "states");
    let [at, flow, host, value] = ["time_ps", "flow", "host", "value"].map(|name| numbers(states, name));
    let said = names(states, "state");
    (0..states.len()).map(|row| (at[row], flow[row], host[row], said[row].to_owned(), value[row])).collect()
}

/// The values of a name at a flow's sender or receiver, in order.
fn values(result: &RunResult, flow: u64, end: &str, name: &str) -> Vec<u64> {
    let host = numbers(table(result, "flows"), end)[flow as usize];
    let mine = changes(result).into_iter().filter(|change| (change.1, change.2) == (flow, host) && change.3 == name);
    mine.map(|change| change.4).collect()
}

/// The end of a flow: no value any more.
const OVER: u64 = u64::MAX;

/// RFC 5681: each acknowledgement of a segment opens the window by a segment while the window is full, so that it
/// doubles in a round trip, from RFC 6928's ten segments. Bytes in flight never exceed it.
#[test]
fn dctcp_doubles_its_window_in_each_round_until_the_message_is_sent() {
    let result = run_both(&alone("transport = \"dctcp\"\nmeasure.flows = {}"));
    let windows = values(&result, 0, "src", "window_bytes");
    let segments: Vec<u64> = windows.iter().map(|bytes| bytes / 1_460).collect();
    assert_eq!((windows[0], windows.last()), (10 * 1_460, Some(&OVER)));
    assert!(windows[..windows.len() - 1].iter().all(|bytes| bytes.is_multiple_of(1_460)));
    assert!(segments[..segments.len() - 1].windows(2).all(|pair| pair[1] == pair[0] + 1), "{segments:?}");
    let most = segments[segments.len() - 2];
    assert!(most > 20, "it has doubled: {most}");
    let mut had = BTreeMap::new();
    for (at, _, _, name, value) in changes(&result) {
        had.insert(name, value);
        let [window, outstanding] = ["window_bytes", "outstanding_bytes"].map(|name| had.get(name).copied());
        if let (Some(window), Some(outstanding)) = (window, outstanding)
            && window != OVER
            && outstanding != OVER
        {
            assert!(outstanding <= window, "{outstanding} of {window} at {at}");
        }
    }
    // RFC 8257, section 3.3: a window without marks leaves (1 - g) of alpha, and g is 1/16.
    let alphas = values(&result, 0, "src", "alpha_ppm");
    let arithmetic = (0..alphas.len() as i32 - 1).map(|windows| (1e6 * (15.0f64 / 16.0).powi(windows)) as u64);
    assert_eq!(alphas, arithmetic.chain([OVER]).collect::<Vec<_>>());
}

/// Zhu et al., section 3.2: at line rate until the first notification, and then cut by half of alpha.
#[test]
fn dcqcn_begins_at_line_rate_and_its_first_cut_takes_half_of_alpha() {
    let transport = "transport.dcqcn.control = { mark_min = \"5KB\", mark_max = \"20KB\" }";
    let settings = format!("{transport}\nflow_control = \"pfc\"\nmeasure.flows = {{}}");
    let result = run_both(&incast(&settings).replace("60KB", "600KB"));
    let [rates, windows] = ["rate_bps", "window_bytes"].map(|name| values(&result, 0, "src", name));
    assert!(rates.len() > 2, "{rates:?}");
    let src = numbers(table(&result, "flows"), "src")[0];
    let mine = || changes(&result).into_iter().filter(move |change| (change.1, change.2) == (0, src));
    let cut_at = mine().filter(|change| change.3 == "rate_bps").nth(1).expect("there are three").0;
    let mut alphas = mine().filter(|change| change.3 == "alpha_ppm" && change.0 <= cut_at);
    let alpha = alphas.next_back().expect("it has one").4;
    let expected = rates[0] as f64 * (1.0 - alpha as f64 / 2e6);
    assert!((rates[1] as f64 / expected - 1.0).abs() < 1e-5, "{} to {}, alpha {alpha}", rates[0], rates[1]);
    assert!(alpha > 950_000 && values(&result, 0, "src", "target_rate_bps")[0] == rates[0]);
    // One bandwidth-delay product, in proportion to the rate.
    let share = windows[1] as f64 / windows[0] as f64 - rates[1] as f64 / rates[0] as f64;
    assert!(share.abs() < 1e-3, "{windows:?} {rates:?}");
}

/// Handley et al., section 3.2: a first window without pulls, and then one packet a pull.
#[test]
fn ndp_sends_a_window_and_then_what_is_pulled() {
    let result = run_both(&incast("transport.ndp.initial_window = \"6000B\"\nmeasure.flows = {}"));
    let credit = values(&result, 0, "src", "credit_packets");
    // Of four packets the first has left. Each later one leaves as soon as it is pulled, so that there is no credit to
    // be seen. 42 packets cause 41 pulls, as the last to arrive causes none, and 38 of these are needed.
    assert_eq!(credit, [3, 2, 1, 0, 1, 2, 3, OVER]);
}

/// Cai et al., section 3.2: a long flow sends by tokens, which its receiver gives while they are matched.
#[test]
fn dcpim_sends_only_while_it_is_matched() {
    let settings = "transport.dcpim.short_flow = \"1B\"\nmeasure.flows = { flows = [1] }";
    let result = run_both(&incast(settings));
    let unsent = values(&result, 1, "src", "unsent_packets");
    let packets = 60_000u64.div_ceil(1_460);
    assert_eq!(unsent, (0..=packets).rev().chain([OVER]).collect::<Vec<_>>());
    let src = numbers(table(&result, "flows"), "src")[1];
    let mut channels = 0;
    for (at, _, _, name, value) in changes(&result).into_iter().filter(|change| change.2 == src) {
        match name.as_str() {
            "channels" => channels = value,
            "unsent_packets" => assert!(value == packets || channels > 0, "{value} unsent at {at}"),
            _ => {}
        }
    }
    let admitted = values(&result, 1, "dst", "admitted_packets");
    assert!(admitted.iter().any(|&packets| packets > 1 && packets != OVER), "{admitted:?}");
}

/// Gao et al., section 3: receivers give tokens at the rate of their own links, whoever else gives the sender some; one
/// that is not used within one and a half packet times is void, so that two at most wait.
#[test]
fn phost_has_tokens_that_wait_if_two_receivers_give_them() {
    let result = run_both(
        r#"
        transport = "phost"
        measure.flows = {}
        fabric.star.hosts = 3
        [[traffic]]
        sizes.constant = "600KB"
        arrivals = "all_at_once"
        pattern.outcast.degree = 2
        senders = "0"
        flows = 2
        "#,
    );
    let most = |flow| values(&result, flow, "src", "tokens").into_iter().filter(|&tokens| tokens != OVER).max();
    assert!([most(0), most(1)].iter().all(|most| (1..=2).contains(&most.unwrap_or(0))), "{:?}, {:?}", most(0), most(1));
    let free = values(&result, 0, "src", "free_tokens");
    assert!(free[..free.len() - 1].windows(2).all(|pair| pair[1] == pair[0] - 1), "{free:?}");
    assert_eq!(free[free.len() - 2..], [0, OVER]);
}

#[test]
fn what_follows_flows_changes_nothing_and_who_follows_none_has_no_table() {
    for transport in [
        "dcpim",
        "phost",
        "pfabric",
        "newreno",
        "swift",
        "bbr",
        "rdma",
        "dcqcn",
        "hpcc",
        "harmony",
        "fastpass",
        "homa",
        "homa_aeolus",
        "r2c2",
        "ndp",
        "uet",
        "falcon",
        "udp",
    ] {
        let text = format!("transport = \"{transport}\"");
        let without = run_alone(&incast(&text));
        let with = run_both(&incast(&format!("{text}\nmeasure.flows = {{}}")));
        assert_eq!(with.info.digest, without.info.digest, "{transport}");
        assert!(without.tables.iter().all(|table| table.name != "states"), "{transport}");
        let said = changes(&with);
        assert_eq!(said.is_empty(), transport == "udp", "{transport} says {said:?}");
        // Whatever is said of a flow that has ended is taken back, at either end.
        let ended = column(table(&with, "flows"), "completed_ps").iter().all(|&at| at != u64::MAX);
        let last: BTreeMap<(u64, u64, String), u64> =
            said.into_iter().map(|(_, flow, host, name, value)| ((flow, host, name), value)).collect();
        assert!(!ended || last.values().all(|&value| value == OVER), "{transport}: {last:?}");
    }
}

#[test]
fn flows_are_chosen_and_bounded_as_packets_are() {
    let result = |flows: &str| run_both(&incast(&format!("transport = \"dctcp\"\nmeasure.flows = {flows}")));
    let all = changes(&result("{}"));
    let some = |flows: &str, wanted: &dyn Fn(&Change) -> bool| {
        let some = changes(&result(flows));
        assert!(!some.is_empty(), "{flows}");
        let expected: Vec<Change> = all.iter().filter(|change| wanted(change)).cloned().collect();
        assert_eq!(some, expected, "{flows}");
    };
    some("{ flows = [1, 2] }", &|change| change.1 > 0);
    some("{ classes = [\"many\"], hosts = [\"host0\"] }", &|_| true);
    some("{ until = \"9us\" }", &|change| change.0 < 9_000_000);
    let few = result("{ rows_max = 20 }");
    assert_eq!(changes(&few), all[..20]);
    assert!(few.info.warnings.iter().any(|warning| warning.contains("only the first 20 changes")), "{:?}", few.info);
    // From a later time on, all that there is at first, and then the same changes.
    let later = changes(&result("{ from = \"9us\" }"));
    let after: Vec<Change> = all.iter().filter(|change| change.0 > later[later.len() / 2].0).cloned().collect();
    assert!(!after.is_empty() && later.ends_with(&after));
}
