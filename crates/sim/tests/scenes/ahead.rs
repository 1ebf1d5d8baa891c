//! Runs that skip what repeats give what whole runs give, to the last bit.

use clearway_sim::Skipped;

use crate::{RunResult, of_flows, run_alone, run_on, table};

/// A ring of 8 ranks on two racks, each flow of its own link.
pub(super) fn ring(transport: &str, more: &str) -> String {
    format!(
        r#"
        transport = "{transport}"
        switch.buffer.shared = {{ bytes = "12MB" }}
        fabric.leaf_spine = {{ racks = 2, hosts_per_rack = 4, spines = 4 }}
        {more}
        [[job]]
        name = "train"
        library = {{ all_reduce = "ring" }}
        steps = [{{ all_reduce = {{ bytes = "8MB" }} }}]
        "#
    )
}

/// The same scenario, simulated whole and with what repeats skipped, on one thread and on two. Says what was skipped.
pub(super) fn skipped(toml: &str) -> Skipped {
    let [one, two] = [1, 2].map(|threads| {
        let ahead = run_on(threads, &format!("fast_forward = \"exact\"\n{toml}"));
        same(&run_on(threads, toml), &ahead);
        ahead.info
    });
    assert_eq!((one.digest, &one.skipped), (two.digest, &two.skipped));
    one.skipped.expect("it was asked for")
}

fn same(whole: &RunResult, ahead: &RunResult) {
    assert_eq!(whole.info.digest, ahead.info.digest);
    let of = |result: &RunResult| {
        let info = &result.info;
        (info.packet_hops, info.events, info.ended, info.end_ps, info.windows, info.flows_completed)
    };
    assert_eq!(of(whole), of(ahead));
    for of in &whole.tables {
        assert_eq!(format!("{of:?}"), format!("{:?}", table(ahead, of.name)), "{}", of.name);
    }
    assert_eq!(whole.tables.len(), ahead.tables.len());
    assert_eq!(format!("{:?}", whole.info.audit), format!("{:?}", ahead.info.audit));
}

/// More than half of all packets are skipped without samples, and a quarter with one every 10 us.
fn pays(transport: &str, more: &str) {
    let share = |skipped: Skipped, hops: u64| {
        assert!(skipped.skips > 0, "{transport}: {:?}", skipped.reason);
        skipped.packet_hops as f64 / hops as f64
    };
    let toml = ring(transport, &format!("measure.interval = \"0s\"\n{more}"));
    let hops = run_alone(&toml).info.packet_hops;
    let (plain, sampled) = (share(skipped(&toml), hops), share(skipped(&ring(transport, more)), hops));
    assert!(plain > 0.5, "{transport}: {plain}");
    assert!(sampled > 0.25, "{transport}: {sampled}");
}

#[test]
fn a_ring_over_rdma_is_skipped() {
    pays("rdma", "flow_control = \"pfc\"");
}

#[test]
fn a_ring_over_tcp_is_skipped() {
    pays("newreno", "");
}

/// A window that the link fills grows no more, and when it last shrank matters for one round trip. It grows by a packet
/// a round trip until then, so that messages of a megabyte end before.
#[test]
fn long_flows_over_swift_are_skipped() {
    let skipped = skipped(
        r#"
        transport = "swift"
        measure.interval = "0s"
        fabric.star = { hosts = 4 }
        [[traffic]]
        pattern.stride.by = 1
        sizes.constant = "20MB"
        arrivals = "all_at_once"
        "#,
    );
    assert!(skipped.skips > 0, "{:?}", skipped.reason);
}

/// The window that it observes is another for each flow, and its share of marks decays all the time.
#[test]
fn a_ring_over_dctcp_is_skipped() {
    pays("dctcp", "");
}

/// What a run that is moved ahead by average rates says, and what the whole run says.
fn estimate(toml: &str) -> [RunResult; 2] {
    let ahead = |threads: usize| run_on(threads, &format!("fast_forward = \"approximate\"\n{toml}"));
    let (one, two) = (ahead(1), ahead(2));
    assert_eq!((&one.info.digest, &one.info.skipped), (&two.info.digest, &two.info.skipped));
    assert!(format!("{:?}", one.tables) == format!("{:?}", two.tables));
    [run_alone(toml), one]
}

/// Chosen before the first run: the issue asks for 1% of the mean, Wormhole's authors report as much.
const WITHIN: f64 = 0.01;

#[test]
fn flows_that_share_a_link_are_moved_ahead_by_their_rates() {
    // NewReno fills a large buffer and empties it again, so it is seldom steady.
    for (transport, more, least) in
        [("dctcp", "", 0.25), ("newreno", "", 0.0), ("dcqcn", "flow_control = \"pfc\"", 0.25)]
    {
        let toml = format!(
            r#"
            transport = "{transport}"
            switch.buffer.shared = {{ bytes = "12MB" }}
            fabric.leaf_spine = {{ racks = 2, hosts_per_rack = 4, spines = 4 }}
            {more}
            [[traffic]]
            name = "incast"
            senders = "1-3"
            receivers = "0"
            pattern = "dense"
            sizes.constant = "40MB"
            arrivals = "all_at_once"
            flows = 3
            "#
        );
        let [whole, ahead] = estimate(&toml);
        let skipped = ahead.info.skipped.as_ref().expect("it was asked for");
        assert_eq!(skipped.estimated_ps > 0, ahead.info.digest.starts_with('~'));
        let share = skipped.packet_hops as f64 / whole.info.packet_hops as f64;
        assert!(share >= least, "{transport}: {share} {:?}", skipped.reason);
        let mean = |run: &RunResult| of_flows(run, "fct_ps").iter().sum::<u64>() as f64;
        let off = mean(&ahead) / mean(&whole) - 1.0;
        assert!(off.abs() <= WITHIN, "{transport}: {:+.2}%", 100.0 * off);
    }
}

/// What can't be skipped is simulated, and the run says why.
#[test]
fn who_refuses_is_simulated_whole() {
    for (more, reason) in [
        ("measure.packets = {}", "measure.packets follows each packet"),
        ("link.llr = {}", "links send damaged packets again (link.llr)"),
    ] {
        let skipped = skipped(&ring("rdma", &format!("flow_control = \"pfc\"\n{more}")));
        assert_eq!((skipped.skips, skipped.reason.as_deref()), (0, Some(reason)));
    }
    let skipped = skipped(&ring("dcpim", ""));
    assert_eq!((skipped.skips, skipped.packet_hops), (0, 0));
}

/// What cannot be skipped at all outweighs what just did not repeat, whichever was found last.
#[test]
fn the_reason_is_who_refuses_and_not_what_did_not_repeat() {
    let later = r#"
        [[traffic]]
        name = "later"
        sizes = "websearch"
        arrivals.poisson = { load = 0.4 }
        start = "1500us"
        flows = 20
    "#;
    for (more, reason) in [
        ("", "no period was found in what comes to nodes"),
        ("measure.packets = {}", "measure.packets follows each packet"),
    ] {
        let skipped = skipped(&format!("{}{later}", ring("rdma", &format!("flow_control = \"pfc\"\n{more}"))));
        assert_eq!((skipped.skips > 0, skipped.reason.as_deref()), (more.is_empty(), Some(reason)));
    }
}

/// A failure in the middle: nothing is skipped past it.
#[test]
fn nothing_is_skipped_past_a_failure() {
    let fails = r#"failure = [{ link = ["leaf0", "spine1"], at = "150us", until = "400us" }]"#;
    for (transport, more) in [("rdma", "flow_control = \"pfc\""), ("dctcp", "")] {
        let skipped = skipped(&ring(transport, &format!("{more}\n{fails}\nreroute_delay = \"20us\"")));
        assert!(skipped.skips > 0, "{:?}", skipped.reason);
    }
}

/// Iterations of a job on racks with one spine, so that there is one path. Messages are too short for a flow to repeat
/// itself for long.
pub(super) fn iterations(transport: &str, count: u32, more: &str) -> String {
    format!(
        r#"
        transport = "{transport}"
        measure.interval = "0s"
        switch.buffer.shared = {{ bytes = "12MB" }}
        fabric.leaf_spine = {{ racks = 2, hosts_per_rack = 2, spines = 1 }}
        {more}
        [[job]]
        name = "train"
        iterations = {count}
        library = {{ all_reduce = "ring" }}
        steps = [{{ compute = "20us" }}, {{ all_reduce = {{ bytes = "120KB" }} }}]
        "#
    )
}

/// Flows begin and end in each period, and stand where others stood.
#[test]
fn messages_that_follow_each_other_are_skipped() {
    for (transport, more) in [("rdma", "flow_control = \"pfc\""), ("dctcp", ""), ("newreno", "")] {
        let toml = iterations(transport, 150, more);
        let hops = run_alone(&toml).info.packet_hops;
        let skipped = skipped(&toml);
        let share = skipped.packet_hops as f64 / hops as f64;
        assert!(share > 0.6, "{transport}: {share} {:?}", skipped.reason);
    }
}

/// A straggler, ranks that share hosts, two jobs that do not end together, a failure in the middle.
#[test]
fn jobs_of_every_kind_end_as_they_would() {
    let late = "[[job]]\nname = \"late\"\nstart = \"1ms\"\niterations = 30\nhosts = \"0-3\"\n\
                steps = [{ compute = \"7us\" }, { all_to_all = { bytes = \"80KB\" } }]";
    for (of_job, after) in [
        ("stragglers = [{ rank = 2, factor = 1.5 }]", ""),
        ("ranks_per_host = 2", ""),
        ("", late),
        ("", "[[failure]]\nlink = [\"leaf0\", \"host1\"]\nat = \"2ms\"\nuntil = \"2050us\""),
    ] {
        let toml = iterations("rdma", 60, "flow_control = \"pfc\"");
        skipped(&format!("{toml}\n{of_job}\n{after}"));
    }
}

/// Where a hash chooses among paths, each message takes its own, and nobody says that it takes another's.
#[test]
fn messages_on_other_paths_are_not_alike() {
    let toml = iterations("dctcp", 40, "").replace("spines = 1", "spines = 4");
    assert_eq!(skipped(&toml).packet_hops, 0);
}

/// Between iterations no flow is under way that could refuse. So a transport that does not say how its state moves
/// refuses as a whole: HPCC's telemetry is rounded to nanoseconds of the clock, and its digests differed.
#[test]
fn over_each_transport_a_run_that_skips_is_the_whole_run() {
    let mut carried = 0;
    for transport in catalogue::Transport::NAMES {
        let toml = iterations(transport, 40, "").replace("20us", "40us");
        if run::Plan::new(&crate::scenario(&toml)).is_err() {
            continue;
        }
        let (whole, ahead) = (run_alone(&toml), run_alone(&format!("fast_forward = \"exact\"\n{toml}")));
        same(&whole, &ahead);
        let skipped = ahead.info.skipped.expect("it was asked for").packet_hops;
        assert!(!["hpcc", "bbr"].contains(transport) || skipped == 0, "{transport}");
        carried += 1;
    }
    assert!(carried > 15, "{carried}");
}
