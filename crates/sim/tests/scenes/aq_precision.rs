//! How precise Augmented Queue is where nothing is set: thousands of AQs, low rates, short silences, headroom, caps,
//! traffic without an AQ. What must come out is a closed form: shares by weight, R t + L.

use clearway_sim::RunResult;

use crate::aq::{PAYLOAD, application, close, dumbbell, rates};
use crate::{column, names, run_both, run_on, scenario, table};

/// `per_weight` flows of each weight from 1 to `weights`, an AQ each, on 100 Gbps. Each offers `load` of its share.
fn by_weight(weights: u64, per_weight: u64, sharing: &str, end: &str, load: f64) -> String {
    let of_one = 100e9 / (per_weight * weights * (weights + 1) / 2) as f64;
    let class = |weight: u64| {
        let rate = (of_one * load * weight as f64) as u64;
        let last = per_weight - 1;
        format!(
            r#"
            [[entity]]
            name = "w{weight}"
            traffic = ["w{weight}"]
            each = "flow"
            request = [{{ share = {{ weight = {weight} }}, link = ["left", "right"], position = "ingress" }}]
            [[traffic]]
            name = "w{weight}"
            transport = {{ udp = {{ rate = "{rate}bps" }} }}
            sizes = {{ constant = "10GB" }}
            pattern = {{ stride = {{ by = {per_weight} }} }}
            arrivals = "all_at_once"
            senders = "0-{last}"
            "#
        )
    };
    format!(
        r#"
        {sharing}
        measure = {{ end = "{end}", interval = "0s" }}
        host = {{ mtu = "1538B", header = "90B" }}
        switch.buffer = {{ per_port = {{ bytes = "1MB" }} }}
        [fabric.dumbbell]
        hosts_per_side = {per_weight}
        host_rate = "100Gbps"
        bottleneck_rate = "100Gbps"
        propagation = "10us"
        switch_delay = "0s"
        {}
        "#,
        (1..=weights).map(class).collect::<String>()
    )
}

/// Of each AQ, in the order of ids: what it may have in the run by its weight, and what passed, in bytes.
fn passed(result: &RunResult) -> Vec<(f64, f64)> {
    let aqs = table(result, "aqs");
    let share = column(aqs, "share_bps").iter().map(|&bps| bps as f64 / 8.0 * result.info.end_ps as f64 / 1e12);
    share.zip(column(aqs, "passed_bytes").iter().map(|&bytes| bytes as f64)).collect()
}

/// By how much the worst of them is off, when the limit that each may run ahead by is granted: `limit` by the share.
fn worst(passed: &[(f64, f64)]) -> (f64, f64) {
    let off = passed.iter().map(|&(share, passed)| passed / share - 1.0);
    off.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), off| (low.min(off), high.max(off)))
}

#[test]
fn every_one_of_five_hundred_aqs_is_within_a_tenth() {
    // Weights 1 to 100, five AQs each: 3.96 Mbps a weight, 20 packets in 62 ms.
    let result = run_on(1, &by_weight(100, 5, "sharing = \"aq\"", "62ms", 2.0));
    assert_eq!(result.info.warnings, Vec::<String>::new());
    // An AQ may begin with its limit, eight packets and 3 ms, rounded up by a sixteenth. Beyond that each has its
    // share, to a packet.
    for (share, passed) in passed(&result) {
        let limit = 17.0 / 16.0 * (8.0 * 1_538.0 + 3.0 / 62.0 * share);
        let (least, most) = (0.9 * share - 1_538.0, 1.01 * share + limit);
        assert!((least..most).contains(&passed), "{passed} of {share}");
    }
    // A queue's limit each is 2 s of the least: it has twice its share and more.
    let result = run_on(1, &by_weight(100, 5, "sharing = { aq = { limit = \"queue\" } }", "62ms", 2.0));
    assert!(worst(&passed(&result)).1 > 0.6);
    assert!(result.info.warnings[0].starts_with("sharing.aq.limit: gives an AQ of"), "{:?}", result.info.warnings);
}

#[test]
#[ignore = "four minutes of a core"]
fn every_one_of_ten_thousand_aqs_is_within_a_tenth() {
    // 198 Kbps a weight: 32 packets in 2 s.
    let result = run_on(2, &by_weight(100, 100, "sharing = \"aq\"", "2s", 1.25));
    let rows = passed(&result);
    assert_eq!(rows.len(), 10_000);
    for (share, passed) in rows {
        let limit = 8.0 * 1_538.0 + 0.003 / 2.0 * share;
        assert!((passed / (share + limit) - 1.0).abs() < 0.1, "{passed} of {share}");
    }
}

#[test]
fn three_hundred_classes_are_three_hundred_aqs() {
    // One of each, 300 on 9 Gbps: 30 Mbps each, of 40 that come.
    let class = |n: u32| {
        application(&format!("c{n}"), "{ udp = { rate = \"40Mbps\" } }", &(n % 10).to_string(), "{ weight = 1 }")
    };
    let tables: String = (0..300).map(class).collect();
    let result = run_on(
        1,
        &dumbbell("sharing = { aq = { headroom = 0.1 } }\nmeasure = { end = \"60ms\", interval = \"10ms\" }", &tables),
    );
    let got = rates(&result, 30);
    assert_eq!(got.len(), 300);
    for rate in got {
        // 73 packets each, so one is 1.4%.
        close(rate, 0.03 * PAYLOAD, 0.03);
    }
}

#[test]
fn each_flow_s_aq_has_a_row() {
    let tables = application("a", "\"udp\"", "0-1", "{ absolute = \"2Gbps\" }")
        .replace("traffic = [\"a\"]", "traffic = [\"a\"]\neach = \"flow\"");
    let settings = "sharing = { aq = { limit = { fixed = { bytes = \"20KB\" } } } }\n\
                    measure = { end = \"20ms\", interval = \"1ms\" }";
    let result = run_both(&dumbbell(settings, &tables));
    let aqs = table(&result, "aqs");
    assert_eq!(names(aqs, "part"), ["flow", "flow"]);
    for row in 0..2 {
        // 20 ms at 2 Gbps, and the limit; what has not yet come is a trip of 11 us, what doesn't fit is under a packet.
        let most = 2e9 / 8.0 * 0.02 + 20_000.0;
        let passed = column(aqs, "passed_bytes")[row] as f64;
        assert!(passed <= most && passed > most - 2.0 * 1_538.0 - 2e9 / 8.0 * 12e-6, "{passed}");
        // 10 Gbps come to it from 11 us on.
        let came = (column(aqs, "passed_packets")[row] + column(aqs, "dropped_packets")[row]) as f64;
        close(came, 10e9 / 8.0 * 0.02 / 1_538.0, 0.001);
        assert_eq!(column(aqs, "share_bps")[row], 2_000_000_000);
    }
}

#[test]
fn headroom_lets_the_physical_queue_drain() {
    // What has once gathered stays, unless there is some rate to drain it: 464 us of 800 without, 39 with 2%.
    let tables =
        application("a", "\"cubic\"", "0", "{ weight = 1 }") + &application("b", "\"cubic\"", "1-9", "{ weight = 1 }");
    let of = |headroom: f64| {
        let settings = format!(
            "sharing = {{ aq = {{ headroom = {headroom:?} }} }}\nmeasure = {{ end = \"150ms\", interval = \"10ms\" }}"
        );
        let result = run_on(1, &dumbbell(&settings, &tables));
        let waits = table(&result, "waits");
        (rates(&result, 50), column(waits, "p50_ns")[0])
    };
    let ((full, stands), (some, drains)) = (of(0.0), of(0.02));
    for (rates, share) in [(full, 5.0), (some, 4.9)] {
        rates.iter().for_each(|&rate| close(rate, share * PAYLOAD, 0.02));
    }
    assert!(drains < 80_000 && (300_000..800_000).contains(&stands), "{stands} {drains}");
}

#[test]
fn an_absolute_cap_holds_where_others_may_have_more() {
    for conserving in ["\"bypass\"", "{ reallocate = { period = \"1ms\", headroom = 0.1 } }"] {
        let of = |capped: &str| {
            let settings = format!(
                "sharing = {{ aq = {{ work_conserving = {conserving} }} }}\n\
                 measure = {{ end = \"60ms\", interval = \"1ms\" }}"
            );
            let a = application("a", "{ udp = { rate = \"9Gbps\" } }", "0", "{ absolute = \"4Gbps\" }")
                .replace("traffic = [\"a\"]", &format!("traffic = [\"a\"]\n{capped}"));
            let b = application("b", "{ udp = { rate = \"2Gbps\" } }", "1", "{ weight = 1 }");
            rates(&run_both(&dumbbell(&settings, &(a + &b))), 20)
        };
        let free = of("");
        assert!(free[0] > 6.0, "{conserving}: {free:?}");
        let capped = of("work_conserving = false");
        close(capped[0], 4.0 * PAYLOAD, 0.01);
        close(capped[1], 2.0 * PAYLOAD, 0.01);
    }
}

#[test]
fn a_cap_without_work_conservation_has_no_effect() {
    let a = application("a", "\"udp\"", "0", "{ weight = 1 }")
        .replace("traffic = [\"a\"]", "traffic = [\"a\"]\nwork_conserving = false");
    let toml = dumbbell("sharing = \"aq\"\nmeasure.end = \"1ms\"", &a);
    let warnings = run_on(1, &toml).info.warnings;
    assert!(warnings[0].starts_with("entity[0].work_conserving: has no effect"), "{warnings:?}");
}

#[test]
fn an_aq_for_untagged_packets_keeps_what_was_granted() {
    let of = |untagged: &str| {
        let settings =
            format!("sharing = {{ aq = {{ {untagged} }} }}\nmeasure = {{ end = \"150ms\", interval = \"10ms\" }}");
        let a = application("a", "\"cubic\"", "0-3", "{ absolute = \"5Gbps\" }");
        let stray = r#"
            [[traffic]]
            name = "stray"
            transport = "cubic"
            sizes = { constant = "100GB" }
            pattern = { stride = { by = 10 } }
            arrivals = "all_at_once"
            senders = "4-9"
            "#;
        let result = run_both(&dumbbell(&settings, &(a + stray)));
        let aqs = table(&result, "aqs");
        let stray = names(aqs, "entity").iter().position(|name| *name == "(untagged)");
        let stray = stray.map(|row| column(aqs, "passed_bytes")[row] as f64 * 8.0 / 0.15 / 1e9);
        (rates(&result, 50)[0], stray, result.info.warnings)
    };
    let (voided, _, warnings) = of("");
    assert!(voided < 0.96 * 5.0 * PAYLOAD, "{voided}");
    assert!(warnings[0].starts_with("traffic[1]: \"stray\" belongs to no entity"), "{warnings:?}");
    let (held, stray, warnings) = of("untagged = { weight = 1 }");
    close(held, 5.0 * PAYLOAD, 0.02);
    close(stray.unwrap(), 5.0, 0.05);
    assert_eq!(warnings, Vec::<String>::new());
    // What can't be granted says so.
    let toml = dumbbell(
        "sharing = { aq = { untagged = { absolute = \"6Gbps\" } } }\nmeasure.end = \"1ms\"",
        &application("a", "\"udp\"", "0", "{ absolute = \"5Gbps\" }"),
    );
    let problem = clearway_sim::run(&scenario(&toml), 1, |_| false).map(|result| result.info).unwrap_err();
    assert!(problem.key.starts_with("entity[0]") || problem.key == "sharing.aq.untagged", "{problem}");
}

#[test]
fn reallocated_shares_are_max_min_by_weight() {
    // 1, 2 and 3 of 10 Gbps; the last wants 1 Gbps and keeps a tenth more. Of the other 8.9, a third and two thirds.
    let udp = |name, senders, rate: &str, weight| {
        application(name, &format!("{{ udp = {{ rate = \"{rate}\" }} }}"), senders, &format!("{{ weight = {weight} }}"))
    };
    let tables = udp("a", "0", "9Gbps", 1) + &udp("b", "1", "9Gbps", 2) + &udp("c", "2", "1Gbps", 3);
    let settings = "sharing = { aq = { limit = { fixed = { bytes = \"50KB\" } }, \
                    work_conserving = { reallocate = { period = \"1ms\", headroom = 0.1 } } } }\n\
                    measure = { end = \"60ms\", interval = \"1ms\" }";
    let result = run_both(&dumbbell(settings, &tables));
    let got = rates(&result, 20);
    for (got, want) in got.iter().zip([8.9 / 3.0, 2.0 * 8.9 / 3.0, 1.0]) {
        close(*got, want * PAYLOAD, 0.01);
    }
}

/// The page's example of work conservation.
const LENDS: &str = "sharing = { aq = { work_conserving = { reallocate = { period = \"1ms\", headroom = 0.1 } } } }";

#[test]
fn lent_bandwidth_breaks_no_guarantee_whatever_the_mix_of_controls() {
    // Endless flows share 10 Gbps by weight. Each wants more than its share, so each has its guarantee within a tenth.
    // UDP takes all that it is lent, and fills the physical queue with it unless it yields.
    let weights = [[1, 1, 2], [8, 1, 1]];
    let mixes = [
        (["newreno", "bbr", "udp"], weights[0]),
        (["swift", "cubic", "udp"], weights[0]),
        (["illinois", "newreno", "udp"], weights[0]),
        (["dctcp", "dctcp", "newreno"], weights[0]),
        (["newreno", "newreno", "dctcp"], weights[0]),
        (["dctcp", "swift", "bbr"], weights[1]),
        (["newreno", "bbr", "udp"], weights[1]),
        // RDMA's class is not TCP's.
        (["timely", "newreno", "udp"], weights[0]),
        (["dctcp", "hpcc", "cubic"], weights[0]),
        (["dcqcn", "cubic", "swift"], weights[0]),
        (["hpcc", "dcqcn", "bbr"], weights[0]),
        (["newreno", "hpcc", "udp"], weights[1]),
    ];
    for (mix, weights) in mixes {
        let entity = |(at, name): (usize, &&str)| {
            let transport =
                if *name == "udp" { "{ udp = { rate = \"10Gbps\" } }".to_owned() } else { format!("\"{name}\"") };
            application(&format!("e{at}"), &transport, &at.to_string(), &format!("{{ weight = {} }}", weights[at]))
        };
        let tables: String = mix.iter().enumerate().map(entity).collect();
        let settings = format!("{LENDS}\nmeasure = {{ end = \"150ms\", interval = \"10ms\" }}");
        let got = rates(&run_both(&dumbbell(&settings, &tables)), 50);
        let sum: u32 = weights.iter().sum();
        let share = |weight: u32| 10.0 * f64::from(weight) / f64::from(sum) * PAYLOAD;
        // Others may have what one leaves.
        let left: f64 = got.iter().zip(weights).map(|(rate, weight)| (share(weight) - rate).max(0.0)).sum();
        for ((&rate, weight), name) in got.iter().zip(weights).zip(mix) {
            let share = share(weight);
            assert!(
                (0.9 * share..1.1 * share + left).contains(&rate),
                "{mix:?} {weights:?}: {name} has {rate} of {share}"
            );
        }
    }
}

#[test]
fn what_nobody_else_uses_is_lent_to_a_window_too() {
    // The other entity never starts, and keeps a tenth of its 5 Gbps.
    for transport in ["newreno", "dctcp", "swift"] {
        let settings = format!("{LENDS}\nmeasure = {{ end = \"60ms\", interval = \"10ms\" }}");
        let one = application("one", &format!("\"{transport}\""), "0", "{ weight = 1 }");
        let idle = application("idle", "\"udp\"", "1", "{ weight = 1 }")
            .replace("[[traffic]]", "[[traffic]]\nstart = \"59ms\"");
        let got = rates(&run_both(&dumbbell(&settings, &(one + &idle))), 20);
        assert!((0.9 * 9.5 * PAYLOAD..=9.5 * PAYLOAD * 1.01).contains(&got[0]), "{transport}: {got:?}");
    }
}

#[test]
fn hpcc_behaves_in_an_aq_as_on_a_link_of_its_rate() {
    // Section 5.5: as if it ran exclusively in a network of that bandwidth. Without telemetry of the AQ it had three
    // quarters of its share.
    let hpcc = |senders: &str, weight: u32| {
        application(&format!("h{senders}"), "\"hpcc\"", senders, &format!("{{ weight = {weight} }}"))
    };
    let measure = "measure = { end = \"60ms\", interval = \"10ms\" }";
    let own = dumbbell(&format!("sharing = \"physical_queue\"\n{measure}"), &hpcc("0", 1))
        .replace("bottleneck_rate = \"10Gbps\"", "bottleneck_rate = \"2.5Gbps\"");
    let own = rates(&run_both(&own), 20)[0];
    // Beside CUBIC, whose bursts let its packets wait in the physical queue for 9 us of a round trip of 62: HPCC's
    // window is its rate times the unloaded round trip.
    let cubic = application("cubic", "\"cubic\"", "4", "{ weight = 2 }");
    for (other, least) in [(hpcc("4", 2), 0.99), (cubic, 0.88)] {
        let tables = hpcc("0", 1) + &hpcc("3", 1) + &other;
        let shared = rates(&run_both(&dumbbell(&format!("sharing = \"aq\"\n{measure}"), &tables)), 20);
        assert!(shared[..2].iter().all(|rate| (least..1.01).contains(&(rate / own))), "{shared:?}, and alone {own}");
    }
}

#[test]
fn a_short_idle_period_costs_precision_and_is_warned_of() {
    // 20 entities of weights 1 to 20, single flows of CUBIC: whoever waits for its timer is silent for more than a
    // millisecond.
    let tables: String = (0..10)
        .map(|n| application(&format!("e{n}"), "\"cubic\"", &n.to_string(), &format!("{{ weight = {} }}", 1 + 11 * n)))
        .collect();
    let jain = |idle: &str| {
        let settings =
            format!("sharing = {{ aq = {{ {idle} }} }}\nmeasure = {{ end = \"200ms\", interval = \"10ms\" }}");
        let toml = dumbbell(&settings, &tables).replace(
            "\"10Gbps\"\n        bottleneck_rate = \"10Gbps\"",
            "\"10Gbps\"\n        bottleneck_rate = \"1Gbps\"",
        );
        let result = run_on(1, &toml);
        let shares: Vec<f64> =
            rates(&result, 50).iter().enumerate().map(|(n, rate)| rate / (1 + 11 * n) as f64).collect();
        let sum: f64 = shares.iter().sum();
        (
            sum * sum / (shares.len() as f64 * shares.iter().map(|share| share * share).sum::<f64>()),
            result.info.warnings,
        )
    };
    let (derived, warnings) = jain("");
    assert!(derived > 0.99 && warnings.is_empty(), "{derived} {warnings:?}");
    let (short, warnings) = jain("idle_after = \"200us\"");
    assert!(short < 0.95, "{short}");
    assert!(warnings[0].starts_with("sharing.aq.idle_after: 200us is less than"), "{warnings:?}");
}

#[test]
fn swift_has_its_share_below_a_packet_a_round_trip() {
    // A packet takes 6 ms to 62 us at these rates, and a round trip 61 us. Alone, and four flows that share an AQ.
    let mbps = [2, 4, 10, 20, 60, 198];
    for flows in [1, 4] {
        let entity = |(at, rate): (usize, &u32)| {
            let senders = format!("{}-{}", at * flows, at * flows + flows - 1);
            application(&format!("{rate}"), "\"swift\"", &senders, &format!("{{ absolute = \"{rate}Mbps\" }}"))
                .replace("by = 10", "by = 24")
        };
        let tables: String = mbps.iter().enumerate().map(entity).collect();
        let settings = "sharing = \"aq\"\nmeasure = { end = \"2s\", interval = \"100ms\" }";
        let toml = dumbbell(settings, &tables).replace("hosts_per_side = 10", "hosts_per_side = 24");
        let got = rates(&run_on(1, &toml), 200);
        for (rate, mbps) in got.iter().zip(mbps) {
            close(*rate, f64::from(mbps) / 1e3 * PAYLOAD, 0.05);
        }
    }
}

#[test]
fn dctcp_has_its_share_with_the_threshold_that_is_derived() {
    // Up to some 9 Gbps the limit is worth the deficit of its window; beyond, it swings (`aq/derive.rs`).
    let cases = [
        (5, "10Gbps", "0", 0.02),
        (5, "10Gbps", "0-9", 0.02),
        (25, "100Gbps", "0-3", 0.09),
        (50, "100Gbps", "0-3", 0.09),
    ];
    for (gbps, link, senders, within) in cases {
        let tables = application("a", "\"dctcp\"", senders, &format!("{{ absolute = \"{gbps}Gbps\" }}"));
        let toml = dumbbell("sharing = \"aq\"\nmeasure = { end = \"100ms\", interval = \"10ms\" }", &tables)
            .replace("\"10Gbps\"", &format!("\"{link}\""));
        let got = rates(&run_on(1, &toml), 30);
        close(got[0], f64::from(gbps) * PAYLOAD, within);
    }
}

/// 5 Gbps over 64 us: a halved window takes (40 KB)^2 / 18 packets = 58 KB to come back, and what arrives meanwhile
/// eight packets.
#[test]
fn a_limit_that_cannot_carry_a_share_is_warned_of() {
    let run = |limit: &str| {
        let settings = format!(
            "sharing = {{ aq = {{ limit = {{ fixed = {{ bytes = \"{limit}\" }} }} }} }}\n\
             measure = {{ end = \"300ms\", interval = \"10ms\" }}"
        );
        let alone = application("reno", "\"newreno\"", "0", "{ absolute = \"5Gbps\" }");
        let result = run_on(1, &dumbbell(&settings, &alone));
        let warned = result.info.warnings.iter().any(|warning| warning.contains("halves its window"));
        (warned, rates(&result, 50)[0] / (5.0 * PAYLOAD))
    };
    let (low, enough) = (run("20KB"), run("80KB"));
    assert!(low.0 && low.1 < 0.92, "{low:?}");
    assert!(!enough.0 && enough.1 > 0.95, "{enough:?}");
}
