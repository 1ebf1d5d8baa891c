//! Augmented Queue in a whole network: what entities get, whatever their congestion control, and what happens when they
//! come, go, fall idle, overdo it or lose the link.

use clearway_sim::{RunResult, run};
use run::Data;
use scenario::read;

use crate::{column, run_on, table};

/// The paper's dumbbell (section 5.1): 10 Gbps, 10 us a link, ten senders and ten receivers. `settings` come first,
/// tables after.
pub(crate) fn dumbbell(settings: &str, tables: &str) -> String {
    format!(
        r#"
        host = {{ mtu = "1538B", header = "90B" }}
        switch.buffer = {{ per_port = {{ bytes = "1MB" }} }}
        {settings}
        [fabric.dumbbell]
        hosts_per_side = 10
        host_rate = "10Gbps"
        bottleneck_rate = "10Gbps"
        propagation = "10us"
        switch_delay = "0s"
        {tables}
        "#
    )
}

/// An application: endless flows of `senders`, and its request on the bottleneck.
pub(crate) fn application(name: &str, transport: &str, senders: &str, share: &str) -> String {
    format!(
        r#"
        [[entity]]
        name = "{name}"
        traffic = ["{name}"]
        request = [{{ share = {share}, link = ["left", "right"], position = "ingress" }}]
        [[traffic]]
        name = "{name}"
        transport = {transport}
        sizes = {{ constant = "100GB" }}
        pattern = {{ stride = {{ by = 10 }} }}
        arrivals = "all_at_once"
        senders = "{senders}"
        "#
    )
}

/// Payload that was delivered for each entity from `from_ms` on, in Gbps.
pub(crate) fn rates(result: &RunResult, from_ms: u64) -> Vec<f64> {
    let entities = table(result, "entities");
    let Data::Names { index, names } = &entities.column("entity").unwrap().data else { panic!("names") };
    let (at, bytes) = (column(entities, "time_ps"), column(entities, "delivered_bytes"));
    let mut sums = vec![0; names.len()];
    for row in 0..at.len() {
        if at[row] > from_ms * 1_000_000_000 {
            sums[index[row] as usize] += bytes[row];
        }
    }
    let seconds = (result.info.end_ps - from_ms * 1_000_000_000) as f64 / 1e12;
    sums.iter().map(|&bytes| bytes as f64 * 8.0 / seconds / 1e9).collect()
}

pub(crate) fn close(got: f64, want: f64, tolerance: f64) {
    assert!((got / want - 1.0).abs() <= tolerance, "{got} is not within {tolerance} of {want}");
}

/// What is left of a rate when headers are taken off: 1,448 of 1,538 bytes.
pub(crate) const PAYLOAD: f64 = 1448.0 / 1538.0;

const DCTCP: &str = r#"{ dctcp = {} }"#;

#[test]
fn entities_get_their_share_whatever_their_control() {
    // Table 2's last row: UDP at about line rate beside three controls, a quarter each. About, since a sender that
    // ticks with the bottleneck finds room in a full queue always or never (phase effects, Floyd and Jacobson 1991).
    let tables = [
        application("udp", r#"{ udp = { rate = "9.9Gbps" } }"#, "0", "{ weight = 1 }"),
        application("cubic", "\"cubic\"", "1-3", "{ weight = 1 }"),
        application("dctcp", DCTCP, "4-6", "{ weight = 1 }"),
        application("newreno", "\"newreno\"", "7-9", "{ weight = 1 }"),
    ];
    let settings = |sharing| format!("sharing = \"{sharing}\"\nmeasure = {{ end = \"200ms\", interval = \"10ms\" }}");
    let fair = run_on(1, &dumbbell(&settings("aq"), &tables.concat()));
    let got = rates(&fair, 50);
    for got in &got[..2] {
        close(*got, 2.5 * PAYLOAD, 0.04);
    }
    close(got[3], 2.5 * PAYLOAD, 0.04);
    close(got.iter().sum(), 10.0 * PAYLOAD, 0.05);
    // Without AQ, UDP takes all but next to nothing.
    let unfair = rates(&run_on(1, &dumbbell(&settings("physical_queue"), &tables.concat())), 50);
    assert!(unfair[0] > 8.0 && unfair[1..].iter().all(|&rate| rate < 0.6), "{unfair:?}");
}

#[test]
fn weights_hold_whatever_the_number_of_flows() {
    // Figure 8: 1:2, one flow against nine.
    let tables =
        [application("a", "\"cubic\"", "0", "{ weight = 1 }"), application("b", "\"cubic\"", "1-9", "{ weight = 2 }")];
    let settings = "sharing = \"aq\"\nmeasure = { end = \"300ms\", interval = \"10ms\" }";
    let got = rates(&run_on(1, &dumbbell(settings, &tables.concat())), 100);
    close(got[0], 10.0 / 3.0 * PAYLOAD, 0.04);
    close(got[1], 20.0 / 3.0 * PAYLOAD, 0.04);
}

#[test]
fn nothing_passes_beyond_rate_times_time_and_the_limit() {
    // An overload of 10 to 1; section 3.2.2's bound to the byte (and the quantum of under 3 bytes).
    let settings = "sharing = { aq = { limit = { fixed = { bytes = \"100KB\" } } } }\n\
                    measure = { end = \"20ms\", interval = \"1ms\" }";
    let result = run_on(1, &dumbbell(settings, &application("a", "\"udp\"", "0", "{ absolute = \"1Gbps\" }")));
    let entities = table(&result, "entities");
    let (mut packets, mut checked) = (0, 0);
    for (at, bytes) in column(entities, "time_ps").iter().zip(column(entities, "delivered_bytes")) {
        packets += bytes / 1448;
        // What has arrived had passed the AQ two links before.
        let passed_at = at - 20_000_000 - 2 * 1_230_400;
        let most = passed_at as f64 * 1e9 / 8e12 + 100_000.0 + 3.0;
        let wire = (packets * 1538) as f64;
        assert!(wire <= most, "{wire} by {at} ps, at most {most}");
        assert!(wire >= most - 2.0 * 1538.0, "and no less: {wire} of {most}");
        checked += 1;
    }
    assert_eq!(checked, 20);
    let aqs = table(&result, "aqs");
    assert!(column(aqs, "dropped_packets")[0] > 10_000, "9 of 10 packets in 20 ms at 10 Gbps");
}

#[test]
fn idle_entities_shares_go_to_the_others_and_come_back() {
    // Figure 9: each 1/n of n active. b sends from 20 to 40 ms only: 2.5 MB at line rate would take 2 ms, so a UDP flow
    // of 12.5 MB at 5 Gbps lasts 20.
    let b = application("b", r#"{ udp = { rate = "5Gbps" } }"#, "1", "{ weight = 1 }")
        .replace("\"100GB\"", "\"11.77MB\"")
        .replace("arrivals = \"all_at_once\"", "arrivals = \"all_at_once\"\nstart = \"20ms\"");
    let tables = application("a", "\"udp\"", "0", "{ weight = 1 }") + &b;
    let settings = "sharing = { aq = { limit = { fixed = { bytes = \"20KB\" } } } }\n\
                    measure = { end = \"60ms\", interval = \"1ms\" }";
    let result = run_on(1, &dumbbell(settings, &tables));
    let entities = table(&result, "entities");
    let Data::Names { index, .. } = &entities.column("entity").unwrap().data else { panic!("names") };
    let rows = column(entities, "time_ps").iter().zip(column(entities, "delivered_bytes")).zip(index);
    for ((at, bytes), entity) in rows {
        let (ms, gbps) = (at / 1_000_000_000, *bytes as f64 * 8.0 / 1e6);
        // Idle after 64 us, 800 of queue and 2 ms of timer: three periods of 1 ms, the first of which begins within 1.
        let alone = (5..=19).contains(&ms) || (46..=60).contains(&ms);
        if alone && *entity == 0 {
            close(gbps, 10.0 * PAYLOAD, 0.02);
        }
        if (23..=38).contains(&ms) {
            close(gbps, 5.0 * PAYLOAD, 0.02);
        }
    }
}

#[test]
fn a_vm_has_its_bandwidth_both_ways() {
    // Table 3's setting: 25 Gbps links, VM 0 with 5 Gbps out and 5 in; three others send to it and it to them.
    let scene = |sharing: &str| {
        format!(
            r#"
            sharing = "{sharing}"
            transport = "cubic"
            measure = {{ end = "60ms", interval = "2ms" }}
            fabric.star = {{ hosts = 4, rate = "25Gbps", propagation = "2us" }}
            [[entity]]
            name = "A"
            hosts = "0"
            request = [
                {{ share = {{ absolute = "5Gbps" }}, position = "ingress" }},
                {{ share = {{ absolute = "5Gbps" }}, position = "egress" }},
            ]
            [[traffic]]
            name = "out"
            sizes = {{ constant = "10GB" }}
            pattern = {{ all_to_all = {{}} }}
            arrivals = {{ closed_loop = {{ outstanding = 3 }} }}
            flows = 3
            senders = "0"
            [[traffic]]
            name = "in"
            sizes = {{ constant = "10GB" }}
            pattern = {{ all_to_all = {{}} }}
            arrivals = "all_at_once"
            senders = "1-3"
            receivers = "0"
            "#
        )
    };
    let both = |sharing: &str| {
        let result = run_on(1, &scene(sharing));
        let entities = table(&result, "entities");
        let late = |name: &str| {
            let rows = column(entities, "time_ps").iter().zip(column(entities, name));
            rows.filter(|&(at, _)| *at > 20_000_000_000).map(|(_, bytes)| bytes).sum::<u64>() as f64 * 8.0 / 0.04 / 1e9
        };
        (late("delivered_bytes"), late("received_bytes"))
    };
    let (out, into) = both("aq");
    let (payload, acks) = (1460.0 / 1500.0, 40.0 / 1500.0);
    // Acknowledgements of what comes the other way count as what the VM sends, and receives.
    close(out, 5.0 * payload * (1.0 - acks), 0.03);
    close(into, 5.0 * payload * (1.0 - acks), 0.03);
    let (out, into) = both("physical_queue");
    assert!(out > 20.0 && into > 20.0, "{out} {into}");
}

#[test]
fn bypass_gives_an_entity_what_nobody_wants() {
    let shares = |conserving: &str| {
        let settings = format!(
            "sharing = {{ aq = {{ {conserving} idle_after = \"0s\" }} }}\n\
             measure = {{ end = \"30ms\", interval = \"1ms\" }}"
        );
        let tables = application("a", r#"{ udp = { rate = "9Gbps" } }"#, "0", "{ weight = 1 }")
            + &application("b", r#"{ udp = { rate = "500Mbps" } }"#, "1", "{ weight = 1 }");
        rates(&run_on(1, &dumbbell(&settings, &tables)), 10)
    };
    let strict = shares("");
    close(strict[0], 5.0 * PAYLOAD, 0.01);
    let conserving = shares("work_conserving = \"bypass\",");
    assert!(conserving[0] > 8.8 * PAYLOAD, "{conserving:?}");
    close(conserving[1], 0.5 * PAYLOAD, 0.01);
}

#[test]
fn shares_are_back_after_the_link_was_down() {
    let failing = "sharing = \"aq\"\nmeasure = { end = \"200ms\", interval = \"10ms\" }\n\
                   failure = [{ at = \"30ms\", until = \"40ms\", link = [\"left\", \"right\"] }]";
    let tables =
        [application("a", "\"cubic\"", "0", "{ weight = 1 }"), application("b", DCTCP, "1-9", "{ weight = 3 }")];
    let toml = dumbbell(failing, &tables.concat());
    let result = run_on(1, &toml);
    let got = rates(&result, 100);
    close(got[0], 2.5 * PAYLOAD, 0.04);
    close(got[1], 7.5 * PAYLOAD, 0.04);
    assert_eq!(result.info.digest, run_on(2, &toml).info.digest);
}

#[test]
fn virtual_delay_adds_up_over_switches() {
    // One id in both switches of the dumbbell, at 1 and at 2 Gbps: packets of 1,538 B that come in pairs see an empty
    // AQ, then one with a packet in it; its limit of one packet and a half lets no third wait.
    let entity = r#"
        [[entity]]
        name = "a"
        traffic = ["a"]
        request = [
            { share = { absolute = "1Gbps" }, link = ["left", "right"], position = "ingress" },
            { share = { absolute = "2Gbps" }, link = ["right", "host10"], position = "ingress" },
        ]
        [[traffic]]
        name = "a"
        transport = { udp = { rate = "100Mbps" } }
        sizes = { constant = "100KB" }
        arrivals = "all_at_once"
        senders = "0"
        receivers = "10"
        "#;
    let settings = "sharing = \"aq\"\nmeasure = { interval = \"1ms\" }";
    let result = run_on(1, &dumbbell(settings, entity));
    let waits = table(&result, "waits");
    // Each alone in its AQs: 1,538 B / 1 Gbps + 1,538 B / 2 Gbps = 12,304 + 6,152 ns, to 0.1%; the last packet is
    // shorter.
    let p95 = column(waits, "p95_ns")[1];
    assert!(p95.abs_diff(18_456) <= 19, "{p95}");
    assert_eq!(column(waits, "p95_ns")[0], 0, "no real queue");
}

#[test]
fn every_flow_can_be_an_entity() {
    // Two flows of one class and unequal controls of their own: each has its own AQ of 2 Gbps.
    let tables = application("a", "\"udp\"", "0-1", "{ absolute = \"2Gbps\" }")
        .replace("traffic = [\"a\"]", "traffic = [\"a\"]\neach = \"flow\"");
    let settings = "sharing = \"aq\"\nmeasure = { end = \"30ms\", interval = \"1ms\" }";
    let result = run_on(1, &dumbbell(settings, &tables));
    close(rates(&result, 10)[0], 4.0 * PAYLOAD, 0.01);
}

#[test]
fn dcpim_runs_under_aq() {
    let settings = "sharing = \"aq\"\nmeasure = { end = \"30ms\", interval = \"1ms\" }";
    let tables = application("a", "\"dcpim\"", "0-9", "{ absolute = \"4Gbps\" }");
    let got = rates(&run_on(2, &dumbbell(settings, &tables)), 10);
    // Its matchings clock tokens at the link's rate, so that it fills any AQ; of what passes, a fiftieth at most is
    // control packets.
    close(got[0], 4.0 * PAYLOAD, 0.02);
}

#[test]
fn what_cannot_be_granted_is_refused_with_the_reason() {
    let refused = |settings: &str, tables: &str, key: &str, words: &str| {
        let toml = dumbbell(&format!("measure.end = \"1ms\"\n{settings}"), tables);
        let problem = match read(&toml, "scene.toml", &[]) {
            Ok(scenario) => run(&scenario, 1, |_| false).map(|result| result.info).unwrap_err(),
            Err(error) => units::Problem { key: error.key, message: error.message },
        };
        assert!(problem.key == key && problem.message.contains(words), "{problem}");
    };
    let aq = "sharing = \"aq\"";
    let six = |name: &str, senders: &str| application(name, "\"udp\"", senders, "{ absolute = \"6Gbps\" }");
    let both = six("a", "0") + &six("b", "1");
    refused(aq, &both, "entity[1].request[0].share", "declined: 6Gbps is more than the 4Gbps");
    refused(
        "",
        &both.replace("[\"left\", \"right\"]", "[\"left\", \"rihgt\"]"),
        "entity[0].request[0].link",
        "did you mean \"right\"",
    );
    refused(
        "",
        &both.replace("name = \"b\"\n        traffic = [\"b\"]", "name = \"b\"\n        traffic = [\"a\"]"),
        "entity[1].traffic",
        "belongs to the entity \"a\" already",
    );
    refused(
        "",
        &both.replace("traffic = [\"b\"]", "traffic = [\"c\"]"),
        "entity[1].traffic[0]",
        "the scenario has a, b",
    );
    refused(
        "",
        &both.replace("traffic = [\"b\"]", "transports = [\"cubic\"]"),
        "entity[1].transports[0]",
        "no traffic class uses",
    );
    refused("", &both.replace("traffic = [\"b\"]", ""), "entity[1]", "exactly one of");
    refused("", &both.replace("traffic = [\"b\"]", "hosts = \"20\""), "entity[1].hosts", "there is no host 20");
    refused(
        "",
        &both.replace("link = [\"left\", \"right\"], ", ""),
        "entity[0].request[0].link",
        "needed for a group of flows",
    );
    refused(
        "",
        &both.replacen("position = \"ingress\"", "position = \"egress\"", 1).replacen(
            "[\"left\", \"right\"]",
            "[\"host0\", \"left\"]",
            1,
        ),
        "entity[0].request[0].position",
        "ingress",
    );
    // Without requests it shares nothing, and says so.
    let idle = application("a", "\"udp\"", "0", "{ weight = 1 }").replace("request", "# request");
    let result = run_on(1, &dumbbell(&format!("measure.end = \"1ms\"\n{aq}"), &idle));
    assert!(result.info.warnings[0].starts_with("sharing: has no effect, since no entity requests"), "{result:?}");
    refused("sharing = \"qa\"", &both, "sharing", "aq");
}
