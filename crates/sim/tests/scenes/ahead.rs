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

/// One message between two hosts.
pub(super) fn message(name: &str, (from, to): (u32, u32), start: &str, bytes: &str) -> String {
    format!(
        "[[traffic]]\nname = \"{name}\"\nsenders = \"{from}\"\nreceivers = \"{to}\"\nstart = \"{start}\"\n\
         sizes.constant = \"{bytes}\"\narrivals = \"all_at_once\"\nflows = 1\n"
    )
}

/// The same scenario, simulated whole and with what repeats skipped, on one thread and on two. Says what was skipped.
pub(super) fn skipped(toml: &str) -> Skipped {
    both(toml).1
}

/// The same, and the whole run.
pub(super) fn both(toml: &str) -> (RunResult, Skipped) {
    let [(whole, one), (_, two)] = [1, 2].map(|threads| {
        let ahead = run_on(threads, &format!("fast_forward = \"exact\"\n{toml}"));
        let whole = run_on(threads, toml);
        same(&whole, &ahead);
        (whole, ahead.info)
    });
    assert_eq!((one.digest, &one.skipped), (two.digest, &two.skipped));
    (whole, one.skipped.expect("it was asked for"))
}

/// The share of all packets that is skipped.
pub(super) fn share(toml: &str) -> f64 {
    let (whole, skipped) = both(toml);
    share_of(&whole, &skipped)
}

pub(super) fn share_of(whole: &RunResult, skipped: &Skipped) -> f64 {
    skipped.packet_hops as f64 / whole.info.packet_hops as f64
}

/// The share of all packets that is skipped, and what the whole run counted under a name that ends so.
fn share_and_count(toml: &str, counter: &str) -> (f64, u64) {
    let (whole, skipped) = both(toml);
    let counters = table(&whole, "counters");
    let rows = crate::names(counters, "counter").into_iter().zip(crate::column(counters, "value"));
    let counted = rows.filter(|row| row.0.ends_with(counter)).map(|row| *row.1).sum();
    (share_of(&whole, &skipped), counted)
}

pub(super) fn same(whole: &RunResult, ahead: &RunResult) {
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
    let share = |toml: &str| {
        let (whole, skipped) = both(toml);
        assert!(skipped.skips > 0, "{transport}: {:?}", skipped.reason);
        share_of(&whole, &skipped)
    };
    let plain = share(&ring(transport, &format!("measure.interval = \"0s\"\n{more}")));
    let sampled = share(&ring(transport, more));
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

/// Between two messages nothing happens for twenty thousand seconds. Who listened all that time would look fifteen
/// million times.
#[test]
fn nothing_is_listened_to_until_something_happens() {
    let star = "transport = \"dctcp\"\ntiming = \"ideal\"\nmeasure.interval = \"0s\"\nfabric.star = { hosts = 4 }\n";
    let (first, second) = (message("first", (0, 1), "0s", "1MB"), message("second", (2, 1), "20000s", "1MB"));
    let (whole, _) = both(&format!("{star}{first}{second}"));
    assert_eq!(whole.info.flows_completed, 2);
}

/// A ring of eight ranks at one switch, whose messages are long.
fn long_ring(transport: &str, more: &str) -> String {
    format!(
        r#"
        transport = "{transport}"
        measure.interval = "0s"
        fabric.star = {{ hosts = 8 }}
        {more}
        [[job]]
        name = "train"
        library = {{ all_reduce = "ring" }}
        steps = [{{ all_reduce = {{ bytes = "64MB" }} }}]
        "#
    )
}

/// Step follows step as message follows message, and within each, packet follows packet. While a step is simulated to
/// be repeated, most of it is skipped itself. Without that, a third of these 14 steps is simulated.
#[test]
fn long_messages_are_skipped_within_steps_that_are_skipped() {
    for (transport, more) in [("dctcp", ""), ("newreno", ""), ("swift", ""), ("rdma", "flow_control = \"pfc\"")] {
        let toml = long_ring(transport, more);
        let share = share(&toml);
        assert!(share > 0.96, "{transport}: {share}");
        // Averages are not needed, so that the estimate is exact.
        let ahead = run_on(1, &format!("fast_forward = \"approximate\"\n{toml}"));
        let skipped = ahead.info.skipped.expect("it was asked for");
        assert_eq!(skipped.estimated_ps, 0, "{transport}");
        assert!(skipped.packet_hops as f64 > 0.96 * ahead.info.packet_hops as f64, "{transport}: {skipped:?}");
    }
}

/// Long flows, each alone on its links.
pub(super) fn apart(transport: &str) -> String {
    format!(
        r#"
        transport = "{transport}"
        measure.interval = "0s"
        fabric.star = {{ hosts = 4 }}
        [[traffic]]
        pattern.stride.by = 1
        sizes.constant = "20MB"
        arrivals = "all_at_once"
        "#
    )
}

/// A step of a model with short messages, of which little is skipped, and then with long ones: these are skipped while
/// a period of its steps is searched for, too. Before, a seventh of all packets was skipped.
#[test]
fn long_messages_of_a_model_are_skipped_after_its_short_ones() {
    let toml = r#"
        transport = "rdma"
        flow_control = "pfc"
        measure.interval = "0s"
        host = { mtu = "4160B", header = "64B" }
        switch.buffer.shared = { bytes = "16MB" }
        fabric.star = { hosts = 12, rate = "400Gbps" }
        [[job]]
        [job.model]
        model = { gpt = { layers = 6, hidden = 1024, sequence = 2048, vocabulary = 51200 } }
        degrees = { tensor = 1, pipeline = 3, data = 4 }
        micro_batches = 8
        accelerator = { teraflops = 312, efficiency = 0.45 }
        "#;
    let share = share(toml);
    assert!(share > 0.6, "{share}");
    let [whole, ahead] = estimate(toml);
    let skipped = ahead.info.skipped.as_ref().expect("it was asked for");
    assert!(share_of(&whole, skipped) > 0.6, "{skipped:?}");
    near("a model", &whole, &ahead);
}

/// A window that the link fills grows no more, and when it last shrank matters for one round trip. It grows by a packet
/// a round trip until then, so that messages of a megabyte end before.
#[test]
fn long_flows_over_swift_are_skipped() {
    let skipped = skipped(&apart("swift"));
    assert!(skipped.skips > 0, "{:?}", skipped.reason);
}

/// Its cycle of gains repeats. When it has to measure the round trip again, it sends little for a while and draws where
/// in the cycle it goes on.
#[test]
fn long_flows_over_bbr_are_skipped_until_they_measure_the_round_trip() {
    let share = |filter: &str, duration: &str| {
        let control = format!("{{ rtprop_filter_len = \"{filter}\", probe_rtt_duration = \"{duration}\" }}");
        share(&apart("bbr").replace("\"bbr\"", &format!("{{ bbr.control = {control} }}")))
    };
    assert!(share("10s", "200ms") > 0.9);
    let often = share("800us", "50us");
    assert!(often > 0.3, "{often}");
}

/// The window that it observes is another for each flow, and its share of marks decays all the time.
#[test]
fn a_ring_over_dctcp_is_skipped() {
    pays("dctcp", "");
}

/// What a run that is moved ahead by average rates says, and what the whole run says.
pub(super) fn estimate(toml: &str) -> [RunResult; 2] {
    let ahead = |threads: usize| run_on(threads, &format!("fast_forward = \"approximate\"\n{toml}"));
    let (one, two) = (ahead(1), ahead(2));
    let of = |result: &RunResult| {
        let info = &result.info;
        (info.digest.clone(), info.skipped.clone(), info.packet_hops, info.events, info.end_ps)
    };
    assert_eq!(of(&one), of(&two));
    assert!(format!("{:?}", one.tables) == format!("{:?}", two.tables));
    [run_alone(toml), one]
}

/// Chosen before the first run: the issue asks for 1% of the mean and 3% of the 99th percentile, and Wormhole's authors
/// report as much.
const WITHIN: f64 = 0.01;
const EACH_WITHIN: f64 = 0.03;

/// Completion times of an estimate are those of the whole run, all together and each.
fn near(what: &str, whole: &RunResult, ahead: &RunResult) {
    let (one, other) = (of_flows(whole, "fct_ps"), of_flows(ahead, "fct_ps"));
    let off = |one: u64, other: u64| other as f64 / one as f64 - 1.0;
    let mean = off(one.iter().sum(), other.iter().sum());
    assert!(mean.abs() <= WITHIN, "{what}: {:+.2}%", 100.0 * mean);
    for (&one, &other) in one.iter().zip(other) {
        assert!(off(one, other).abs() <= EACH_WITHIN, "{what}: {:+.2}%", 100.0 * off(one, other));
    }
}

#[test]
fn flows_that_share_a_link_are_moved_ahead_by_their_rates() {
    // NewReno fills a large buffer and empties it again, so it is seldom steady. Three flows over DCQCN still settle
    // when they end.
    for (transport, flows, least) in
        [("dctcp", 2, 0.5), ("newreno", 2, 0.0), ("timely", 3, 0.75), ("dcqcn", 2, 0.25), ("dcqcn", 3, 0.0)]
    {
        let toml = format!(
            r#"
            transport = "{transport}"
            switch.buffer.shared = {{ bytes = "12MB" }}
            fabric.leaf_spine = {{ racks = 2, hosts_per_rack = 4, spines = 4 }}
            {}
            [[traffic]]
            name = "incast"
            senders = "1-{flows}"
            receivers = "0"
            pattern = "dense"
            sizes.constant = "100MB"
            arrivals = "all_at_once"
            flows = {flows}
            "#,
            if ["timely", "dcqcn"].contains(&transport) { "flow_control = \"pfc\"" } else { "" }
        );
        let [whole, ahead] = estimate(&toml);
        let skipped = ahead.info.skipped.as_ref().expect("it was asked for");
        assert_eq!(skipped.skips > 0, ahead.info.digest.starts_with('~'));
        let share = share_of(&whole, skipped);
        assert!(share >= least, "{transport}, {flows}: {share} {:?}", skipped.reason);
        near(&format!("{transport}, {flows}"), &whole, &ahead);
    }
}

/// Flows that start apart over DCQCN: for 0.9 ms after its last cut a rate stands still, and then it jumps by half and
/// more. If cuts put that off, it stands still for longer.
#[test]
fn rates_that_stand_still_until_a_timer_ends_are_not_steady() {
    let racks = |sizes: &[u32], apart_us: u32, seed: u32| {
        let hosts = sizes.len() as u32 + 1;
        let flow = |rack: u32, number: u32, size: u32| {
            let (receiver, start) = (hosts * rack, format!("{}us", apart_us * number));
            message(&format!("{rack}, {number}"), (receiver + number + 1, receiver), &start, &format!("{size}MB"))
        };
        let of = |rack: u32| (0..).zip(sizes).map(move |(number, &size)| flow(rack, number, size));
        let flows: String = (0..2).flat_map(of).collect();
        format!(
            "seed = {seed}\ntransport = \"dcqcn\"\nflow_control = \"pfc\"\nmeasure.interval = \"0s\"\n\
             switch.buffer.shared = {{ bytes = \"12MB\" }}\n\
             fabric.leaf_spine = {{ racks = 2, hosts_per_rack = {hosts}, spines = 1 }}\n{flows}"
        )
    };
    // If timers are not looked at, the mean is off by 2.9% to 6.2% in the first three, and if only those are that were
    // set before, by 3.2% and 1.3% in the last two.
    for (sizes, apart_us, seed) in [
        (&[60, 80][..], 111, 1),
        (&[80, 60], 111, 2),
        (&[120, 200], 111, 3),
        (&[60, 80, 120], 237, 238),
        (&[200, 120, 80], 237, 238),
    ] {
        let [whole, ahead] = estimate(&racks(sizes, apart_us, seed));
        near(&format!("{sizes:?}, {seed}"), &whole, &ahead);
    }
}

/// Who waits for a fixed time, to start a flow or to let a rank act, and has nothing else to do, is not put off by what
/// is skipped by averages before that time.
#[test]
fn flows_start_and_ranks_act_in_time_where_flows_are_moved_ahead_by_their_rates() {
    let flow = |host: u32, bytes: &str, start: &str| message(&host.to_string(), (host, 0), start, bytes);
    for (transport, more) in [("timely", "flow_control = \"pfc\""), ("swift", "")] {
        let toml = format!(
            r#"
            transport = "{transport}"
            {more}
            switch.buffer.shared = {{ bytes = "12MB" }}
            measure.interval = "0s"
            fabric.star.hosts = 6
            [[job]]
            name = "train"
            hosts = "4-5"
            steps = [{{ compute = "7ms" }}, {{ all_reduce = {{ bytes = "1MB" }} }}]
            {}{}{}
            "#,
            flow(1, "60MB", "0us"),
            flow(2, "80MB", "930us"),
            flow(3, "1MB", "8000us")
        );
        let [whole, ahead] = estimate(&toml);
        let estimated_ps = ahead.info.skipped.as_ref().expect("it was asked for").estimated_ps;
        // More than half of the time before the last message starts.
        assert!(estimated_ps > 4_000_000_000, "{transport}: {estimated_ps}");
        // Those of traffic, and the first message of each rank.
        let [one, other] = [&whole, &ahead].map(|run| &of_flows(run, "start_ps")[..5]);
        assert_eq!(one, other, "{transport}");
        near(transport, &whole, &ahead);
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
    assert!(skipped.reason.is_some_and(|reason| reason.starts_with("dcPIM draws at random")));
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
        let (whole, skipped) = both(&toml);
        let share = share_of(&whole, &skipped);
        assert!(share > 0.6, "{transport}: {share} {:?}", skipped.reason);
    }
}

/// A host is woken when a deadline was due that has been put off since. So it was in the period that would be repeated,
/// but not in the one after.
#[test]
fn a_host_that_is_woken_early_once_is_not_always() {
    let (_, skipped) = both(
        r#"
        transport = "pfabric"
        measure.interval = "0s"
        fabric.leaf_spine = { racks = 3, hosts_per_rack = 4, spines = 2 }
        [[job]]
        name = "one"
        hosts = "0-3"
        iterations = 10
        steps = [{ compute = "11us" }, { all_reduce = { bytes = "100KB" } }]
        "#,
    );
    assert!(skipped.skips > 0, "{skipped:?}");
}

/// A message's timer is set for later than the message's end. It must not stay behind and wake the host then: messages
/// that follow each other would never find the state that the ones before them found.
#[test]
fn timers_of_messages_that_have_ended_stop_no_skip() {
    for transport in ["dctcp", "newreno"] {
        let (whole, skipped) = both(&format!(
            r#"
            transport = "{transport}"
            measure.interval = "0s"
            fabric.star = {{ hosts = 16 }}
            switch.buffer.shared = {{ bytes = "16MB" }}
            [[job]]
            name = "train"
            library = {{ all_reduce = "ring" }}
            steps = [{{ all_reduce = {{ bytes = "48MB" }} }}]
            "#
        ));
        // It would be 98.5% if it mattered in which slot a host keeps a message: every second one has another slot.
        let share = share_of(&whole, &skipped);
        assert!(share > 0.987, "{transport}: {share} {:?}", skipped.reason);
    }
}

/// The state of 128 ranks recurs after every second message. By then the search within messages has cost all that it
/// may.
#[test]
fn periods_of_jobs_are_found_when_looking_within_messages_has_cost_enough() {
    let ahead = crate::run_alone(
        r#"
        transport = "timely"
        flow_control = "pfc"
        fast_forward = "exact"
        measure.interval = "0s"
        fabric.star = { hosts = 128 }
        switch.buffer.shared = { bytes = "16MB" }
        [[job]]
        name = "train"
        library = { all_reduce = "ring" }
        steps = [{ all_reduce = { bytes = "32MB" } }]
        "#,
    );
    let share = share_of(&ahead, ahead.info.skipped.as_ref().expect("it was asked for"));
    assert!(share > 0.9, "{share}");
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
/// refuses as a whole.
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

/// Messages that share a link: three senders into one receiver, all at once.
fn incast(transport: &str, more: &str) -> String {
    format!(
        r#"
        transport = "{transport}"
        measure.interval = "0s"
        switch.buffer.shared = {{ bytes = "12MB" }}
        fabric.leaf_spine = {{ racks = 2, hosts_per_rack = 4, spines = 1 }}
        {more}
        [[traffic]]
        name = "incast"
        senders = "4-6"
        receivers = "0"
        pattern = "dense"
        sizes.constant = "40MB"
        arrivals = "all_at_once"
        flows = 3
        [[traffic]]
        name = "beside it"
        senders = "7"
        receivers = "1"
        sizes.constant = "40MB"
        arrivals = "all_at_once"
        flows = 1
        "#
    )
}

/// Iterations of a job whose messages share the link between two racks, so that flow controls act in each of them.
fn all_to_all(transport: &str, count: u32, more: &str) -> String {
    let ring = iterations(transport, count, more);
    let steps = ring.replace("library = { all_reduce = \"ring\" }", "").replace("all_reduce", "all_to_all");
    steps.replace("120KB", "1200KB").replace("spines = 1", "spines = 1, spine_rate = \"100Gbps\"")
}

/// The least shares that are skipped of a ring, of iterations of a job, and of iterations whose messages share links.
#[test]
fn over_each_flow_control_what_repeats_is_skipped() {
    for control in catalogue::LinkControl::NAMES {
        let more = format!("flow_control = \"{control}\"");
        let least = match *control {
            // Flows' virtual ids are hashes of their numbers, so that no flow takes another's place.
            "bfc" => [0.8, 0.0, 0.0],
            // What it notes of flows stays when they have ended.
            "congestion_isolation" => [0.8, 0.6, 0.0],
            // Why is not known: the state differs from one iteration to the next.
            "per_flow_queues" => [0.8, 0.6, 0.0],
            "cbfc" => [0.8, 0.6, 0.4],
            // Packets that tie at a port take turns, so that fewer iterations are alike.
            _ => [0.8, 0.6, 0.5],
        };
        let scenes = [
            ring("rdma", &format!("measure.interval = \"0s\"\n{more}")),
            iterations("rdma", 60, &more),
            all_to_all("rdma", 30, &more),
        ];
        for (toml, least) in scenes.iter().zip(least) {
            let share = share(toml);
            assert!(share >= least, "{control}: {share}");
        }
    }
}

/// Ports nominate themselves and flows are held in each iteration, under other names.
#[test]
fn jobs_that_pyrrha_holds_back_are_skipped() {
    let (share, acted) = share_and_count(&all_to_all("rdma", 30, "flow_control = \"pyrrha\""), "pyrrha_pauses");
    assert!(acted > 0 && share > 0.6, "{acted} {share}");
}

/// While they hold flows back, again and again: the counter that says so, and the least share that is skipped.
#[test]
fn flow_controls_that_act_are_skipped() {
    for (control, counter, least) in [
        ("pfc = { alpha = 0.01 }", "pfc_pauses", 0.6),
        ("bfc = {}", "bfc_pauses", 0.3),
        ("bfc = { departures = \"published\" }", "bfc_pauses", 0.25),
        ("bfc = { queues = \"ideal\" }", "bfc_pauses", 0.0),
        ("per_flow_queues = {}", "flow_pauses", 0.6),
        ("per_flow_queues = { pause = 0.5, resume = 0.2 }", "flow_pauses", 0.6),
        ("congestion_isolation = {}", "ci_isolated", 0.6),
        ("pyrrha = {}", "pyrrha_pauses", 0.6),
        ("pyrrha = { departures = \"published\" }", "pyrrha_pauses", 0.6),
        ("pyrrha = { tiers = \"single\" }", "pyrrha_pauses", 0.6),
        ("pyrrha = { k_pause = 0.5, k_resume = 0.2, departures = \"published\" }", "pyrrha_pauses", 0.2),
        ("cbfc = {}", "cbfc_updates", 0.6),
    ] {
        let (share, acted) = share_and_count(&incast("rdma", &format!("flow_control = {{ {control} }}")), counter);
        assert!(acted > 0 && share >= least, "{control}: {acted} {share}");
    }
}

/// DCTCP's endpoints do not ask which flows are held, so that NICs hold packets of theirs.
#[test]
fn flow_controls_hold_packets_in_nics() {
    for control in ["per_flow_queues", "pyrrha"] {
        let toml = all_to_all("dctcp", 20, &format!("flow_control = \"{control}\""));
        assert!(share(&toml) < 0.5);
    }
}

/// A flow at a constant rate repeats itself. Where its packets are lost it does not: what is missing stays so.
#[test]
fn flows_at_a_constant_rate_are_skipped() {
    let rate = |toml: String| toml.replace("\"udp\"", "{ udp = { rate = \"30Gbps\" } }");
    let still = "measure.interval = \"0s\"";
    for (toml, least) in
        [(ring("udp", still), 0.8), (rate(ring("udp", still)), 0.8), (rate(iterations("udp", 60, "")), 0.8)]
    {
        let share = share(&toml);
        assert!(share >= least, "{share}\n{toml}");
    }
    let lost = incast("udp", "").replace("40MB", "8MB");
    assert!(share_and_count(&lost, "flows_failed").1 > 0);
}

/// Two jobs that share the links between two racks, each a tenant with this share of them. Delays and times are such
/// that whole packets at 31.25 Gbps take whole ticks of the clock of an Augmented Queue of 62.5 Gbps.
fn tenants(transport: &str, sharing: &str, share: &str) -> String {
    let job = |name: &str, hosts: &str| {
        format!(
            r#"
            [[job]]
            name = "{name}"
            hosts = "{hosts}"
            iterations = 60
            library = {{ all_reduce = "ring" }}
            steps = [{{ compute = "20480ns" }}, {{ all_reduce = {{ bytes = "240KB" }} }}]
            [[entity]]
            name = "{name}"
            hosts = "{hosts}"
            request = [
                {{ share = {share}, link = ["leaf0", "spine0"], position = "ingress" }},
                {{ share = {share}, link = ["leaf1", "spine0"], position = "ingress" }},
            ]
            "#
        )
    };
    let (one, other) = (job("one", "0,1,4,5"), job("other", "2,3,6,7"));
    format!(
        r#"
        transport = {transport}
        sharing = "{sharing}"
        measure.interval = "0s"
        switch.buffer.shared = {{ bytes = "12MB" }}
        [fabric.leaf_spine]
        racks = 2
        hosts_per_rack = 4
        spines = 1
        host_rate = "125Gbps"
        spine_rate = "125Gbps"
        propagation = "256ns"
        switch_delay = "512ns"
        {one}
        {other}
        "#
    )
}

/// The same network with a flow of each host to its counterpart in the other rack.
fn tenants_flows(share: &str) -> String {
    let of = |name: &str, hosts: &str| {
        format!(
            r#"
            [[traffic]]
            name = "{name}"
            senders = "{hosts}"
            pattern.stride.by = 4
            sizes.constant = "4MB"
            arrivals = "all_at_once"
            [[entity]]
            name = "{name}"
            traffic = ["{name}"]
            request = [{{ share = {share}, link = ["leaf0", "spine0"], position = "ingress" }}]
            "#
        )
    };
    let toml = tenants(r#"{ udp = { rate = "31250Mbps" } }"#, "aq", share);
    let network = toml.find("[[job]]").expect("it has jobs");
    format!("{}{}{}", &toml[..network], of("one", "0,1"), of("other", "2,3"))
}

/// An A-Gap is drained by a clock with ticks, in bytes: what is rounded must be the same, too.
#[test]
fn augmented_queues_are_skipped_where_they_round_alike() {
    let alike = share(&tenants_flows("{ absolute = \"62500Mbps\" }"));
    assert!(alike > 0.8, "{alike}");
    let other = skipped(&tenants_flows("{ absolute = \"50Gbps\" }"));
    assert_eq!(other.packet_hops, 0, "{:?}", other.reason);
    // Gaps of half a link that are full decide over each packet.
    for transport in ["\"rdma\"", "\"dctcp\""] {
        let share = share(&tenants(transport, "aq", "{ weight = 1 }"));
        assert!(share < 0.5, "{transport}: {share}");
    }
}

#[test]
fn rate_limiters_are_skipped() {
    let share = share(&tenants("\"rdma\"", "rate_limiter", "{ absolute = \"50Gbps\" }"));
    assert!(share > 0.8, "{share}");
}

/// Racks in pairs: each host has two links, and takes them in turn.
#[test]
fn hosts_with_several_links_are_skipped() {
    let homes = |toml: String, balancing: &str| {
        let racks = "homes = 2, spine_rate = \"100Gbps\", racks";
        format!("switch.balancing = \"{balancing}\"\n{}", toml.replace("racks", racks))
    };
    let udp = |toml: String| toml.replace("\"udp\"", "{ udp = { rate = \"30Gbps\" } }");
    for (toml, least) in [
        (homes(udp(iterations("udp", 60, "")), "round_robin"), 0.8),
        (homes(iterations("dctcp", 60, "flow_control = \"pfc\""), "round_robin"), 0.5),
        // By a hash of their numbers, flows take other links.
        (homes(udp(iterations("udp", 60, "")), "ecmp"), 0.0),
    ] {
        let share = share(&toml);
        assert!(share >= least, "{share}\n{toml}");
    }
}
