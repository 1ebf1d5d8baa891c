//! A run that makes no progress says so, and one that makes some does not.

use clearway_sim::{RunResult, run};

use crate::{column, names, of_links, scenario, table};

/// The run's finding of this name: whether it holds, and the numbers behind it.
fn finding<'a>(result: &'a RunResult, name: &str) -> (bool, &'a str) {
    let found = result.info.audit.iter().find(|finding| finding.name == name).expect("every run has it");
    (found.ok, &found.detail)
}

fn moves(result: &RunResult) -> (bool, &str) {
    finding(result, "every class moves")
}

/// On one thread and on two, cut and not; the audit may have faults.
fn run_anyhow(toml: &str) -> RunResult {
    let on = |threads, parts| {
        let execution = clearway_sim::Execution { threads, parts: Some(parts) };
        run(&scenario(toml), execution, |_| false).unwrap_or_else(|problem| panic!("{problem}\n{toml}"))
    };
    let (alone, together) = (on(1, 1), on(2, usize::MAX));
    assert_eq!(alone.info.digest, together.info.digest);
    assert_eq!(alone.info.audit, together.info.audit);
    assert_eq!(alone.info.warnings, together.info.warnings);
    alone
}

/// 199 senders of 3 KB at 1 Gbps, over dcPIM as its paper has it: what repeats finishes fills the link.
fn collapse(more: &str) -> String {
    format!(
        r#"
        transport.dcpim.departures = []
        {more}
        fabric.star = {{ hosts = 200, rate = "1Gbps" }}
        measure = {{ end = "30ms", interval = "0s" }}
        [[traffic]]
        name = "calls"
        sizes.constant = "3KB"
        pattern.incast.degree = 199
        arrivals = "all_at_once"
        flows = 199
        "#
    )
}

#[test]
fn finishes_that_keep_all_data_out_are_a_livelock() {
    let result = run_anyhow(&collapse(""));
    let (ok, detail) = moves(&result);
    assert!(!ok, "{detail}");
    assert!(detail.starts_with("livelock: nothing new has come over dcpim (class calls) for "), "{detail}");
    assert!(detail.contains("though 199 flows are under way, and 200 hosts (host"), "{detail}");
    assert!(detail.contains("SenderFinish in priority class 0"), "{detail}");
    assert_eq!(result.info.audit.iter().filter(|finding| !finding.ok).count(), 1);
}

#[test]
fn a_class_that_moves_beside_it_does_not_hide_it() {
    // Two hosts elsewhere exchange messages over the same transport in another class.
    let beside = r#"
        [[traffic]]
        name = "beside"
        sizes.constant = "10KB"
        senders = "201"
        receivers = "202"
        arrivals = { periodic = { every = "1ms" } }
        flows = 50
        "#;
    let result = run_anyhow(&(collapse("").replace("hosts = 200", "hosts = 203") + beside));
    let (ok, detail) = moves(&result);
    assert!(!ok && detail.contains("class calls"), "{detail}");
}

/// A message of `low` bytes in class 5, and from the beginning a stream at `high` in class 2, into one link of 10 Gbps.
fn behind(low: &str, high: &str, levels: &str) -> String {
    format!(
        r#"
        measure = {{ end = "20ms", interval = "0s" }}
        fabric.star = {{ hosts = 4, rate = "10Gbps" }}
        {levels}
        [[traffic]]
        name = "low"
        transport = {{ udp = {{ class = 5, patience = "1s" }} }}
        sizes.constant = "{low}"
        senders = "1"
        receivers = "0"
        arrivals = "all_at_once"
        start = "100us"
        [[traffic]]
        name = "high"
        transport = {{ udp = {{ class = 2, rate = "{high}" }} }}
        sizes.constant = "100MB"
        senders = "2"
        receivers = "0"
        arrivals = "all_at_once"
        "#
    )
}

#[test]
fn a_class_that_never_has_its_turn_starves() {
    // All of it waits at the switch, and the link is full without it.
    let result = run_anyhow(&behind("100KB", "10Gbps", ""));
    let (ok, detail) = moves(&result);
    assert!(!ok && detail.starts_with("starvation: nothing new has come over udp (class low) for "), "{detail}");
    assert!(detail.contains("priority class 5") && detail.contains("from switch0 to host0"), "{detail}");
    assert!(detail.contains("switch.levels"), "{detail}");
}

#[test]
fn a_class_that_waits_behind_another_and_moves_does_not_starve() {
    // A tenth of the link is left to it; or it has its turns.
    for toml in [behind("1MB", "9Gbps", ""), behind("100KB", "10Gbps", "switch.levels = [[2, 5]]")] {
        let result = run_anyhow(&toml);
        assert_eq!(moves(&result), (true, "no class stood still when the run ended"));
    }
}

#[test]
fn a_stream_that_a_full_buffer_keeps_out_is_named() {
    // The buffer is full of the other class, whose packets come a little earlier whenever there is room.
    let result = run_anyhow(&behind("50MB", "10Gbps", ""));
    assert_eq!(moves(&result), (true, "no class stood still when the run ended"));
    let [warning] = result.info.warnings.as_slice() else { panic!("{:?}", result.info.warnings) };
    assert!(warning.starts_with("nothing new has come over udp (class high) for "), "{warning}");
    assert!(warning.contains("1 flow is under way, and 1 host (host2) sent "), "{warning}");
    assert!(warning.ends_with("100% Data in priority class 2; all of it is lost on the way"), "{warning}");
}

#[test]
fn who_waits_idles_or_has_no_path_does_not_stand_still() {
    let flow = |more: &str| {
        format!(
            r#"
            measure = {{ end = "400ms", interval = "0s" }}
            fabric.star = {{ hosts = 3, rate = "10Gbps" }}
            {more}
            [[traffic]]
            sizes.constant = "1MB"
            senders = "1"
            receivers = "0"
            arrivals = "all_at_once"
            "#
        )
    };
    // Cut off for good: TCP tries again and again. A sender of a packet in 100 ms. A start that comes later.
    let failure = r#"failure = [{ link = ["host0", "switch0"], at = "100us" }]"#;
    for more in [
        format!("transport = 'newreno'\n{failure}"),
        format!("transport = 'dcpim'\n{failure}"),
        format!("transport = 'rdma'\n{failure}"),
        "transport = { udp = { rate = '120Kbps' } }".to_owned(),
    ] {
        let result = run_anyhow(&flow(&more));
        assert_eq!(moves(&result), (true, "no class stood still when the run ended"), "{more}");
        assert_eq!(result.info.flows_completed, 0, "{more}");
    }
}

#[test]
fn a_job_that_can_never_end_is_a_fault_whoever_takes_samples() {
    // A ring over UDP through small buffers: a message is given up, and its job waits for ever.
    let ring = |measure: &str| {
        format!(
            r#"
            transport = "udp"
            {measure}
            switch.buffer.per_port.bytes = "20KB"
            fabric.star = {{ hosts = 4, rate = "10Gbps" }}
            [[job]]
            ranks = 4
            steps = [{{ all_reduce = {{ bytes = "4MB" }} }}]
            [[traffic]]
            sizes.constant = "4MB"
            senders = "2"
            receivers = "1"
            arrivals = "all_at_once"
            "#
        )
    };
    for measure in ["", "measure.interval = '0s'", "measure.interval = '1us'", "measure.end = '1s'"] {
        let result = run_anyhow(&ring(measure));
        let (ok, detail) = finding(&result, "every flow ended");
        assert!(!ok && detail.contains("no event is left that could finish them"), "{measure}: {detail}");
        assert!(detail.contains("ranks of jobs on") || detail.contains("ranks of a job on"), "{detail}");
        assert_ne!(of_links(&result, "overflow_packets"), 0);
    }
    // Cut off before anything was given up, by the scenario: no fault.
    let result = run_anyhow(&ring("measure.end = '1ms'"));
    let (ok, detail) = finding(&result, "every flow ended");
    assert!(ok && detail.contains("were unfinished when the run was ended"), "{detail}");
}

#[test]
fn a_reason_is_given_only_if_it_happened() {
    let reason = |toml: &str| {
        let result = run_anyhow(toml);
        let flows = table(&result, "flows");
        names(flows, "reason").into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    let flow = |more: &str| {
        format!(
            r#"
            transport = {{ udp = {{ patience = "100us" }} }}
            fabric.star = {{ hosts = 3, rate = "10Gbps" }}
            measure.interval = "0s"
            {more}
            [[traffic]]
            name = "probe"
            sizes.constant = "30KB"
            senders = "0"
            receivers = "1"
            arrivals = "all_at_once"
            "#
        )
    };
    let limiter = r#"
        sharing = { rate_limiter = { burst = "1514B" } }
        [[entity]]
        name = "probe"
        traffic = ["probe"]
        request = [{ position = "ingress", link = ["host0", "switch0"], share = { absolute = "5Mbps" } }]
        "#;
    let waits = "no answer in time: packets wait at its host's rate limiter, and none was lost";
    let (before, after) = flow("SHARING").split_once("SHARING").map(|of| (of.0.to_owned(), of.1.to_owned())).unwrap();
    let [sharing, entity] = limiter.split("[[entity]]").collect::<Vec<_>>()[..] else { panic!("two parts") };
    assert_eq!(reason(&format!("{before}{sharing}{after}[[entity]]{entity}")), [waits]);
    // The limiter's queue is full: packets are lost at the host itself.
    let full = sharing.replace("burst", "queue_packets = 2, burst");
    assert_eq!(reason(&format!("{before}{full}{after}[[entity]]{entity}")), ["no answer: packets were lost"]);
    // A way that takes longer than its patience, and a host that takes in so little that packets are lost in its NIC.
    let far = flow("").replace("rate = \"10Gbps\"", "rate = \"10Gbps\", propagation = \"1ms\"");
    assert_eq!(reason(&far), ["no answer in time, and no packet was lost"]);
    let intake = flow("host = { intake_rate = \"100Mbps\", intake_buffer = \"10KB\" }");
    assert_eq!(reason(&intake), ["no answer: packets were lost"]);
    // Another flow's losses are no reason.
    let both = format!(
        "{}\n[[traffic]]\nsizes.constant = '30KB'\nsenders = '2'\nreceivers = '0'\narrivals = 'all_at_once'\n",
        intake
    );
    assert_eq!(reason(&both).len(), 2);
}

#[test]
fn no_interval_uses_more_than_its_links_carry() {
    // Packets take 1,200 ns, and samples come each 50 ns; beside a pause by PFC, a slower and a faster link.
    let toml = r#"
        transport = "dcqcn"
        flow_control = "pfc"
        measure = { interval = "50ns", end = "60us" }
        switch.buffer.shared.bytes = "60KB"
        fabric.leaf_spine = { racks = 2, hosts_per_rack = 3, spines = 1, host_rate = "10Gbps", spine_rate = "4Gbps" }
        [[traffic]]
        sizes.constant = "20KB"
        pattern.incast.degree = 5
        receivers = "0"
        arrivals = "all_at_once"
        flows = 5
        "#;
    let result = run_anyhow(toml);
    let utilisation = table(&result, "utilisation");
    let tiers = names(utilisation, "tier");
    let sum = |what: &str, tier: &str| -> f64 {
        let run::Data::F64(shares) = &utilisation.column(what).unwrap().data else { panic!("a ratio") };
        let of_tier = || tiers.iter().zip(shares).filter(|row| *row.0 == tier).map(|row| *row.1);
        assert!(of_tier().all(|share| (0.0..=1.0).contains(&share)), "{what} {tier}");
        of_tier().sum()
    };
    // Bytes of 50 ns at these rates, of six links to hosts, one up from each leaf and one down to each.
    let rows = column(utilisation, "time_ps").len() / 3;
    assert_eq!(rows, 1_199);
    let [to_host, up] = ["to_host", "up"].map(|tier| sum("utilisation", tier));
    let sent = |(from, to): (&&str, &&str)| crate::of_link(&result, from, to, "sent_bytes");
    let bytes = |from: &[&str], to: &[&str]| -> u64 {
        from.iter().flat_map(|from| to.iter().map(move |to| (from, to))).map(sent).sum()
    };
    let to_hosts = bytes(&["leaf0"], &["host0", "host1", "host2"]) + bytes(&["leaf1"], &["host3", "host4", "host5"]);
    let ups = bytes(&["leaf0", "leaf1"], &["spine0"]);
    // What is in transmission at the last sample is not carried yet.
    assert!((to_host * 50e-9 * 60e9 / 8.0 - to_hosts as f64).abs() <= 6.0 * 1_500.0, "{to_host} {to_hosts}");
    assert!((up * 50e-9 * 8e9 / 8.0 - ups as f64).abs() <= 2.0 * 1_500.0, "{up} {ups}");
    assert!(sum("data_share", "to_host") > 0.0);
}

/// What a plan warns of.
fn warnings(toml: &str) -> Vec<String> {
    let plan = run::Plan::new(&scenario(toml)).unwrap_or_else(|problem| panic!("{problem}\n{toml}"));
    plan.warnings().iter().map(ToString::to_string).collect()
}

#[test]
fn a_timer_that_is_set_shorter_than_a_round_trip_is_warned_of_before_the_run() {
    let far = |transport: &str, propagation: &str| {
        format!(
            r#"
            transport = {transport}
            fabric.star = {{ hosts = 3, rate = "10Gbps", propagation = "{propagation}" }}
            [[traffic]]
            sizes.constant = "30KB"
            senders = "0"
            receivers = "1"
            arrivals = "all_at_once"
            "#
        )
    };
    let set = "{ rdma = { recovery = { go_back_n = { timeout = '16ms' } } } }";
    // Two links each way of 30 ms.
    let said = warnings(&far(set, "30ms"));
    let [warning] = said.as_slice() else { panic!("{said:?}") };
    assert!(warning.starts_with("transport.rdma.recovery.go_back_n.timeout: 16ms is shorter than "), "{warning}");
    assert!(warning.contains("the longest round trip without load, 120.") && warning.contains("again"), "{warning}");
    // It fits, or follows from the network.
    assert!(warnings(&far(set, "3ms")).is_empty() && warnings(&far("'rdma'", "30ms")).is_empty());
    // What goes elsewhere in the network, farther away, is not this transport's.
    assert!(warnings(&far("{ udp = { patience = '100us' } }", "200ns")).is_empty());
}

#[test]
fn a_patience_that_is_set_shorter_than_a_limiter_s_delay_is_warned_of_before_the_run() {
    let limited = |transport: &str, rate: &str| {
        format!(
            r#"
            transport = {transport}
            sharing = {{ rate_limiter = {{ burst = "1514B" }} }}
            fabric.star = {{ hosts = 3, rate = "10Gbps" }}
            [[traffic]]
            name = "probe"
            sizes.constant = "30KB"
            senders = "0"
            receivers = "1"
            arrivals = "all_at_once"
            [[entity]]
            name = "probe"
            traffic = ["probe"]
            request = [{{ position = "ingress", link = ["host0", "switch0"], share = {{ absolute = "{rate}" }} }}]
            "#
        )
    };
    let set = "{ udp = { patience = '10ms' } }";
    // 240,000 bits at 500 kbit/s are 480 ms, at 50 Mbit/s 4.8 ms.
    let said = warnings(&limited(set, "500Kbps"));
    let [warning] = said.as_slice() else { panic!("{said:?}") };
    assert!(warning.starts_with("transport.udp.patience: 10ms is shorter than a message takes"), "{warning}");
    assert!(warning.contains("rate limiter, 480ms"), "{warning}");
    assert!(warnings(&limited(set, "50Mbps")).is_empty() && warnings(&limited("'udp'", "500Kbps")).is_empty());
}

#[test]
fn dcpim_ends_flows_of_unknown_size_whatever_departs() {
    // Only the sender's finish tells where such a flow ends, and `authors_2022` and `no_handshakes` sent none.
    for departures in ["'paper'", "'authors_2022'", "'authors_2023'", "['no_handshakes']"] {
        let class = |bytes: &str| {
            format!("[[traffic]]\nname = '{bytes}'\nsizes.constant = '{bytes}'\narrivals = 'all_at_once'\nflows = 6\n")
        };
        let result = run_anyhow(&format!(
            "fabric.star.hosts = 4\nmeasure.drain = '20ms'\n\
             transport.dcpim = {{ sizes_known = false, departures = {departures} }}\n{}{}",
            class("3KB"),
            class("3MB")
        ));
        let status = names(table(&result, "flows"), "status");
        assert!(status.iter().all(|status| *status == "completed"), "{departures}: {status:?}");
    }
}
