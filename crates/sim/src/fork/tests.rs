use run::Plan;
use scenario::Scenario;
use units::{Problem, Time};

use super::{KEYS, Says, fork, keys};
use crate::checkpoint::Keep;
use crate::checkpoint::tests::text;
use crate::{Checkpoint, Course, Execution, Moments, RunResult, run_on};

fn read(text: &str) -> Scenario {
    scenario::read(text, "fork", &[]).unwrap_or_else(|why| panic!("{text}: {why}"))
}

fn plan(text: &str) -> Plan {
    Plan::new(&read(text)).unwrap_or_else(|why| panic!("{text}: {why}"))
}

fn at(us: u64) -> Time {
    Time::from_ps(us * 1_000_000)
}

fn run(plan: &Plan, threads: usize, course: Course<'_>) -> Result<RunResult, Problem> {
    run_on(plan, Execution { threads, parts: Some(threads) }, None, course, |_| false)
}

fn whole(plan: &Plan, threads: usize) -> RunResult {
    run(plan, threads, Course::default()).unwrap_or_else(|why| panic!("{why}"))
}

fn checkpoint(plan: &Plan, threads: usize, at: Time) -> Checkpoint {
    let mut kept = None;
    let mut keep = |_: Time, bytes: &[u8]| {
        kept = Some(bytes.to_vec());
        Ok(())
    };
    run(plan, threads, Course::new(None, Some((Moments::At(at), &mut keep as Keep<'_>)))).expect("it runs");
    Checkpoint::read(kept.expect("it was due")).expect("it was just written")
}

/// All of a result, in words.
fn all(result: &RunResult) -> String {
    format!("{:?} {:?} {}", result.info, result.tables, result.scenario_toml)
}

/// A fork from a checkpoint of one run is the whole run of another.
fn is_the_run(what: &str, before: &str, after: &str, moment: Time) {
    is_like_the_run(what, before, after, moment, |_| ());
}

/// The same, once some of both results has been left out.
fn is_like_the_run(what: &str, before: &str, after: &str, moment: Time, leave_out: fn(&mut RunResult)) {
    let (before, after) = (plan(before), plan(after));
    for threads in [1, 2] {
        let from = checkpoint(&before, threads, moment);
        let forked = run(&after, threads, Course::fork(&from, &before));
        let (mut forked, mut whole) = (forked.unwrap_or_else(|why| panic!("{what}: {why}")), whole(&after, threads));
        leave_out(&mut forked);
        leave_out(&mut whole);
        let digests = (&forked.info.digest, &whole.info.digest);
        assert!(digests.0 == digests.1, "{what}, {threads} threads: {digests:?}");
        let (forked, whole) = (all(&forked), all(&whole));
        let apart = forked.bytes().zip(whole.bytes()).position(|(one, other)| one != other);
        if let Some(apart) = apart.map(|at| at.saturating_sub(200)) {
            let near = |text: &str| text.get(apart..(apart + 300).min(text.len())).unwrap_or_default().to_owned();
            panic!("{what}, {threads} threads:\n{}\n{}", near(&forked), near(&whole));
        }
    }
}

/// Nothing; samples; each packet.
const MEASURES: [&str; 3] = ["", "measure.interval = \"5us\"", "measure.packets = {}\nmeasure.interval = \"9us\""];

#[test]
fn a_fork_without_a_change_is_the_run() {
    for (number, name) in ["dcpim", "dctcp", "dcqcn", "ndp", "r2c2", "homa"].into_iter().enumerate() {
        let text = text("0s", &format!("transport = \"{name}\"\n{}", MEASURES[number % 3]), "");
        is_the_run(name, &text, &text, at(40));
    }
}

/// Whatever the fabric does from the checkpoint on: as if the whole run had been told.
#[test]
fn what_fails_later_fails_as_in_a_whole_run() {
    let link = r#"link = ["leaf0", "spine0"], at = "60us""#;
    let faults = [
        format!("failure = [{{ {link} }}]"),
        format!("reroute_delay = \"10us\"\nfailure = [{{ {link}, until = \"200us\" }}]"),
        format!("failure = [{{ {link}, loss = 0.02, bit_error_rate = 1e-7, one_way = true }}]"),
        format!("failure = [{{ {link}, rate = \"10Gbps\" }}]"),
        "failure = [{ link = [\"host1\", \"leaf0\"], at = \"50us\", rate = \"1Gbps\", until = \"120us\" }]".to_owned(),
        "reroute_delay = \"7us\"\nreroute_per_hop = \"20us\"\nfailure = [{ switch = \"spine1\", at = \"50us\" }]"
            .to_owned(),
    ];
    let mut tried = 0;
    for (number, fault) in faults.iter().enumerate() {
        for name in ["newreno", "dcpim", "ndp", "r2c2"] {
            let before = format!("transport = \"{name}\"\nmeasure.end = \"900us\"\n{}", MEASURES[number % 3]);
            let Some(after) = scenario::read(&text("0s", &format!("{before}\n{fault}"), ""), "", &[])
                .ok()
                .filter(|of| Plan::new(of).is_ok())
            else {
                continue; // not every transport allows every fault
            };
            is_the_run(&format!("{name}, {fault}"), &text("0s", &before, ""), &after.to_toml(), at(50));
            tried += 1;
        }
    }
    assert!(tried > 15, "{tried}");
}

/// A failure that the checkpoint's own run would have had, and one that lasts beyond the checkpoint and ends otherwise.
#[test]
fn what_was_to_fail_may_not() {
    let fault = |at: &str| format!("transport = \"newreno\"\nfailure = [{{ link = [\"leaf0\", \"spine0\"], {at} }}]");
    let (soon, late) = (fault("at = \"20us\", until = \"90us\""), fault("at = \"20us\", until = \"300us\""));
    is_the_run("a repair later", &text("0s", &soon, ""), &text("0s", &late, ""), at(50));
    let noisy = fault("at = \"80us\", loss = 0.1");
    is_the_run("no noise", &text("0s", &noisy, ""), &text("0s", "transport = \"newreno\"", ""), at(50));
    let (less, more) = (fault("at = \"20us\", loss = 0.1"), fault("at = \"20us\", loss = 0.1, until = \"90us\""));
    is_the_run("noise that ends", &text("0s", &less, ""), &text("0s", &more, ""), at(50));
}

/// Other messages from the checkpoint on, in classes that were there and new ones, with the same groups and others.
#[test]
fn new_traffic_comes_as_in_a_whole_run() {
    let class = r#"
        [[traffic]]
        name = "late"
        start = "60us"
        sizes = { constant = "30KB" }
        arrivals = { poisson = { load = 0.5 } }
        flows = 30
        "#;
    let waits = r#"
        [[traffic]]
        name = "asking"
        start = "55us"
        sizes = { constant = "3KB" }
        arrivals = { closed_loop = { outstanding = 2 } }
        flows = 40
        "#;
    for (number, name) in ["dctcp", "dcpim", "rdma", "homa"].into_iter().enumerate() {
        let settings = format!("transport = \"{name}\"\n{}", MEASURES[number % 3]);
        let before = text("0s", &settings, "");
        is_the_run(name, &before, &text("0s", &settings, class), at(50));
        // A host may have been woken for what is left out, or not have been.
        is_like_the_run(name, &text("0s", &settings, class), &before, at(50), |of| of.info.events = 0);
        is_the_run(name, &before, &text("0s", &settings, waits), at(50));
    }
    let ideal = |more| text("0s", "transport = \"dctcp\"\ntiming = \"ideal\"", more);
    is_the_run("ideal", &ideal(""), &ideal(class), at(50));
}

#[test]
fn the_end_may_be_another() {
    let of = |end: &str| text("0s", &format!("transport = \"dctcp\"\nmeasure.end = \"{end}\""), "");
    is_the_run("later", &of("100us"), &of("400us"), at(50));
    is_the_run("sooner", &of("400us"), &of("51us"), at(50));
}

/// Before and after, for each setting that may change. The first list of settings is that of both.
const SETTINGS: &[(&str, &str, &str, &str)] = &[
    (
        "switch.buffer",
        "transport = \"newreno\"",
        "switch.buffer.per_port.bytes = \"300KB\"",
        "switch.buffer.per_port.bytes = \"40KB\"",
    ),
    ("switch.overflow", "transport = \"newreno\"", "switch.overflow = \"tail_drop\"", "switch.overflow = \"trim\""),
    (
        "switch.marking",
        "transport = \"dctcp\"",
        "switch.marking.step.threshold = \"90KB\"",
        "switch.marking.step.threshold = \"9KB\"",
    ),
    (
        "switch.early_drop",
        "transport = \"newreno\"\nswitch.marking.step.threshold = \"90KB\"",
        "",
        "switch.early_drop = true",
    ),
    ("switch.balancing", "transport = \"newreno\"", "switch.balancing = \"ecmp\"", "switch.balancing = \"spray\""),
    ("flow_control.pfc.alpha", "transport = \"rdma\"", "flow_control.pfc.alpha = 1.0", "flow_control.pfc.alpha = 0.01"),
    (
        "transport.TCP.initial_window",
        "",
        "transport.newreno.initial_window = 10",
        "transport.newreno.initial_window = 2",
    ),
    ("transport.TCP.rto_min", "", "transport.newreno.rto_min = \"1ms\"", "transport.newreno.rto_min = \"50us\""),
    ("transport.TCP.rto_max", "", "transport.newreno.rto_max = \"9ms\"", "transport.newreno.rto_max = \"5ms\""),
    (
        "transport.TCP.clock_granularity",
        "transport.newreno.rto_min = \"1us\"",
        "transport.newreno.clock_granularity = \"1us\"",
        "transport.newreno.clock_granularity = \"90us\"",
    ),
    ("transport.RDMA.window", "", "transport.dcqcn.window.fixed.bdps = 1.0", "transport.dcqcn.window.fixed.bdps = 0.3"),
    (
        "transport.RDMA.recovery.go_back_n.timeout",
        "",
        "transport.dcqcn.recovery.go_back_n.timeout = \"1ms\"",
        "transport.dcqcn.recovery.go_back_n.timeout = \"30us\"",
    ),
    (
        "transport.RDMA.recovery.irn.rto_low",
        "",
        "transport.rdma.recovery.irn = { rto_low = \"90us\" }",
        "transport.rdma.recovery.irn = { rto_low = \"20us\" }",
    ),
    (
        "transport.RDMA.recovery.irn.rto_high",
        "",
        "transport.rdma.recovery.irn = { rto_high = \"320us\" }",
        "transport.rdma.recovery.irn = { rto_high = \"200us\" }",
    ),
    (
        "transport.RDMA.recovery.irn.few_packets",
        "",
        "transport.rdma.recovery.irn = { few_packets = 3 }",
        "transport.rdma.recovery.irn = { few_packets = 30 }",
    ),
];

/// Before any message a setting that may change is that of a whole run: nothing that nodes keep follows from it.
#[test]
fn settings_that_may_change_are_in_no_state() {
    for (name, both, before, after) in SETTINGS {
        let both = format!("measure.end = \"3ms\"\n{both}");
        let of = |own: &str| text("2us", &format!("{both}\n{own}"), "");
        is_the_run(name, &of(before), &of(after), at(1));
        // In the middle of a run: another run, a sound one, and the same one again.
        let (before, after) = (plan(&of(before)), plan(&of(after)));
        let from = checkpoint(&before, 2, at(60));
        let ran = [1, 2].map(|threads| run(&after, threads, Course::fork(&from, &before)).expect("it runs"));
        assert_eq!(ran[0].info.digest, ran[1].info.digest, "{name}");
        assert!(ran[0].info.audit.iter().all(|of| of.ok), "{name}: {:?}", ran[0].info.audit);
    }
}

#[test]
fn each_setting_that_may_change_is_tried() {
    let elsewhere = ["name", "failure", "reroute_", "traffic", "measure."];
    for of in KEYS.iter().filter(|of| matches!(of.says, Says::Free(_))) {
        let here = SETTINGS.iter().any(|(name, ..)| *name == of.key);
        assert!(here || elsewhere.iter().any(|begin| of.key.starts_with(begin)), "{}", of.key);
    }
}

#[test]
fn an_entry_is_found_wherever_a_transport_is_named() {
    let says = |key: &str| keys::of(key).key;
    assert_eq!(says("transport.dctcp.rto_min"), "transport.TCP.rto_min");
    assert_eq!(says("traffic[3].transport.cubic.rto_min"), "transport.TCP.rto_min");
    assert_eq!(says("traffic[3].again[0].over.cubic.reordering"), "transport");
    assert_eq!(says("traffic[3].sizes"), "traffic");
    assert_eq!(says("switch.buffer.per_port.bytes"), "switch.buffer");
    assert_eq!(says("switch.cut_through"), "switch");
    assert_eq!(says("a_new_key"), "");
    assert_eq!(keys::FAMILIES.iter().flat_map(|of| of.1).count(), 10);
}

/// PFC keeps shares of the buffer.
#[test]
fn a_setting_that_nodes_keep_a_copy_of_is_refused() {
    let before = read(&text("0s", "transport = \"rdma\"\nflow_control = \"pfc\"", ""));
    let own = Plan::new(&before).expect("it is sound");
    let from = checkpoint(&own, 1, at(50));
    let set = [("switch.buffer.per_port.bytes".to_owned(), "700KB".to_owned())];
    let changed = scenario::read(&before.to_toml(), "", &set).expect("it is sound");
    let said = fork(&from, &own, &[&changed], Plan::new, 1, |_, _| panic!("nothing runs"));
    let (_, problem) = said.expect_err("PFC keeps it");
    assert_eq!(problem.key, "switch.buffer.per_port.bytes");
    assert!(problem.message.contains("keep what follows from it"), "{problem}");
}

const LATE_OVER_CUBIC: &str = concat!(
    r#"{ name = "late", start = "90us", transport = "cubic", sizes = "websearch", "#,
    "arrivals = { poisson = { load = 0.1 } }, flows = 3 }",
);

#[test]
fn what_cannot_change_is_refused_by_its_name() {
    let settings = "transport = \"dctcp\"\nfailure = [{ link = [\"leaf0\", \"spine0\"], at = \"20us\" }]";
    let before = read(&text("0s", settings, ""));
    let own = Plan::new(&before).expect("it is sound");
    let from = checkpoint(&own, 1, at(50));
    for (key, value, named, why) in [
        ("seed", "3", "seed", "drawn"),
        ("host.mtu", "9000B", "host.mtu", "can't change in a fork"),
        ("transport", "cubic", "transport.cubic", "would no longer fit"),
        ("transport.dctcp.class", "2", "transport.dctcp.class", "would no longer fit"),
        ("fabric.leaf_spine.spine_rate", "50Gbps", "fabric.leaf_spine.spine_rate", "failure with a rate"),
        ("failure[0].at", "30us", "failure[0]", "has happened"),
        ("failure[1]", "{ switch = \"spine1\", at = \"49us\" }", "failure[1]", "checkpoint at 50us"),
        ("reroute_delay", "9us", "reroute_delay", "has happened"),
        ("traffic[1].arrivals.poisson.load", "0.7", "traffic", "stay the same"),
        ("measure.end", "50us", "measure.end", "not after the checkpoint"),
        ("measure.interval", "1us", "measure.interval", "rows"),
        ("traffic[0].transport", "cubic", "traffic[0].transport", "would no longer fit"),
        ("traffic[2]", LATE_OVER_CUBIC, "traffic[2].transport", "hosts have state for dctcp, and not for cubic"),
    ] {
        let changed = scenario::read(&before.to_toml(), "", &[(key.to_owned(), value.to_owned())]);
        let changed = changed.unwrap_or_else(|why| panic!("{key}: {why}"));
        let said = fork(&from, &own, &[&before, &changed], Plan::new, 1, |_, _| panic!("{key}: nothing runs"));
        let (number, problem) = said.expect_err(key);
        assert!(number == 1 && problem.key.starts_with(named), "{key}: {}", problem.key);
        assert!(problem.message.contains(why), "{key}: {}", problem.message);
    }
}

#[test]
fn many_forks_run_side_by_side_and_stop_when_they_are_told() {
    let before = read(&text("0s", "transport = \"dctcp\"", ""));
    let own = Plan::new(&before).expect("it is sound");
    let from = checkpoint(&own, 1, at(50));
    let set = |kb: u64| vec![("switch.buffer.per_port.bytes".to_owned(), format!("{kb}KB"))];
    let forks: Vec<Scenario> =
        [500, 30, 60].map(|kb| scenario::read(&before.to_toml(), "", &set(kb)).expect("it is sound")).into();
    let forks: Vec<&Scenario> = forks.iter().collect();
    let digests = |threads: usize| -> Vec<Option<String>> {
        let ran =
            fork(&from, &own, &forks, Plan::new, threads, |_, _| false).unwrap_or_else(|(_, why)| panic!("{why}"));
        ran.into_iter().map(|of| of.map(|of| of.info.digest)).collect()
    };
    let one_by_one = digests(1);
    assert_eq!(one_by_one[0].as_ref(), Some(&whole(&own, 1).info.digest));
    assert!(one_by_one[1] != one_by_one[0] && one_by_one[1] != one_by_one[2]);
    assert_eq!(one_by_one, digests(3));
    let stopped =
        fork(&from, &own, &forks, Plan::new, 1, |number, _| number > 0).unwrap_or_else(|(_, why)| panic!("{why}"));
    assert!(stopped[0].is_some() && stopped[1..].iter().all(Option::is_none));
}
