//! One scenario, one history: on one thread, on two, on four.

use catalogue::Transport;
use run::Plan;
use units::HostId;

use crate::{NONE, check, of_flows, run_on, scenario, table};

/// 200 flows at a load that makes queues; what a scene adds comes before its traffic.
fn scene(transport: &str, settings: &str) -> String {
    format!(
        r#"
        transport = "{transport}"
        measure.drain = "300us"
        {settings}
        [[traffic]]
        sizes = {{ uniform = {{ min = "1B", max = "60KB" }} }}
        arrivals = {{ poisson = {{ load = 0.8 }} }}
        flows = 200
        "#
    )
}

const SMALL_CLOS: &str = "fabric.leaf_spine = { racks = 4, hosts_per_rack = 4, spines = 3, spine_rate = \"100Gbps\" }";

/// Every kind of fabric, balancing, buffer, overflow and failure, each once at least.
fn settings() -> Vec<String> {
    let clos = |settings: &str| format!("{SMALL_CLOS}\n{settings}");
    vec![
        clos(""),
        clos("seed = 2\nswitch.balancing = \"ecmp\""),
        clos("switch.balancing = \"spray\"\nswitch.buffer = { per_port = { bytes = \"20KB\" } }"),
        clos("switch.balancing = \"round_robin\"\nswitch.buffer = { shared = { bytes = \"60KB\", alpha = 1.0 } }"),
        clos("switch.balancing = { drill = { samples = 2, memory = 1 } }\nmeasure.interval = \"1us\""),
        clos("switch.balancing = { skewed = { skew = 0.5 } }\nswitch.cut_through = true"),
        clos("host = { delay = \"225ns\", clock_offset_max = \"3us\", clock_drift_ppb_max = 100000 }"),
        clos(
            "switch = { overflow = \"push_out\", buffer = { per_port = { bytes = \"10KB\" } }, levels = [[1, 2, 3]] }",
        ),
        clos(
            "flow_control = { pyrrha = { k_pause = 0.5, k_resume = 0.2 } }\n\
             switch.buffer = { shared = { bytes = \"400KB\" } }\nmeasure.interval = \"1us\"",
        ),
        clos(
            "flow_control = { bfc = { queues = { physical = 3 }, vfids = 16 } }\n\
             switch.buffer = { shared = { bytes = \"400KB\" } }\nmeasure.interval = \"1us\"",
        ),
        clos(
            "transmission_step = \"1ns\"\nflow_control = \
             { bfc = { queues = { physical = 3 }, departures = \"published\" } }\n\
             switch.buffer = { shared = { bytes = \"400KB\" } }\nmeasure.interval = \"1us\"",
        ),
        clos("flow_control = \"per_flow_queues\"\nswitch.buffer = { shared = { bytes = \"400KB\" } }"),
        clos("flow_control = \"congestion_isolation\"\nswitch.buffer = { shared = { bytes = \"400KB\" } }"),
        clos(
            "flow_control = { cbfc = { vcs = [[1, 2], [3, 4, 5, 6, 7]], update = \"2KB\" } }\n\
             switch.buffer = { shared = { bytes = \"1MB\" } }\nmeasure.interval = \"1us\"",
        ),
        clos("flow_control = \"pfc\"\nswitch.buffer = { shared = { bytes = \"400KB\" } }\nmeasure.interval = \"1us\""),
        clos(
            "link.llr = { timeout = \"4us\" }\n\
             failure = [{ at = \"2us\", link = [\"leaf0\", \"spine1\"], bit_error_rate = 1e-5, loss = 0.02 }]",
        ),
        clos("measure.completion = \"acknowledged\"\nhost = { mtu = \"4000B\", header = \"64B\" }"),
        clos(
            r#"
            reroute_delay = "5us"
            failure = [
                { at = "3us", until = "30us", link = ["leaf0", "spine1"] },
                { at = "8us", until = "20us", switch = "spine2" },
                { at = "9us", link = ["host5", "leaf1"] },
            ]"#,
        ),
        clos(
            r#"
            sharing = "aq"
            entity = [
                { name = "vms", hosts = "0-7", each = "host", feedback = "drop", request = [
                    { share = { absolute = "60Gbps" }, position = "ingress" },
                    { share = { weight = 2 }, position = "egress" },
                ] },
                { name = "one", hosts = "8", start = "2us", end = "9us", feedback = "delay", request = [
                    { share = { absolute = "30Gbps" }, position = "egress" },
                ] },
            ]"#,
        ),
        "fabric.fat_tree = { k = 4, oversubscription = 2.0 }".to_owned(),
        "fabric.dumbbell = { bottleneck_rate = \"200Gbps\" }".to_owned(),
        "fabric.star = { hosts = 6 }".to_owned(),
        "fabric.dragonfly = { groups = 3, routers_per_group = 2, hosts_per_router = 2 }".to_owned(),
        "fabric.torus = { dims = [4, 3, 3] }".to_owned(),
        "fabric.mesh = { dims = [4, 4] }\nswitch.balancing = \"spray\"".to_owned(),
    ]
}

#[test]
fn threads_change_nothing() {
    // Each scene on two threads or on four, and with hosts and clocks that differ or are ideal, by turns: every
    // transport and every setting meets all of these.
    for (row, transport) in Transport::NAMES.iter().enumerate() {
        for (column, settings) in settings().into_iter().enumerate() {
            let threads = if (row + column) % 2 == 0 { 2 } else { 4 };
            let timing = if (row + column) / 2 % 2 == 0 { "real" } else { "ideal" };
            let scene = scene(transport, &format!("timing = '{timing}'\n{settings}"));
            // What would break a guarantee is refused beside it: too little memory, what holds packets back, repeats
            // them, and links less than a slot. So is what queues that a transport brings have no use for, and what
            // does not read flow labels.
            if (crate::reserves(transport) || crate::brings_queues(transport) || crate::labels_paths(transport))
                && let Err(problem) = run::Plan::new(&scenario(&scene))
            {
                let keys = ["flow_control", "link.llr", "switch", "transport."];
                assert!(keys.iter().any(|key| problem.key.starts_with(key)), "{problem}\n{scene}");
                continue;
            }
            let alone = run_on(1, &scene);
            assert!(alone.info.packet_hops > 1_000, "a scene with traffic");
            let together = run_on(threads, &scene);
            assert_eq!(together.info.digest, alone.info.digest, "{threads} threads\n{scene}");
            assert_eq!(together.info.end_ps, alone.info.end_ps, "{scene}");
            assert_eq!(together.info.windows, alone.info.windows, "{scene}");
            assert_eq!(together.info.packet_hops, alone.info.packet_hops, "{scene}");
            for (one, other) in alone.tables.iter().zip(&together.tables) {
                // Printed, since a slowdown that there is not equals no other.
                assert!(format!("{one:?}") == format!("{other:?}"), "table {} differs\n{scene}", one.name);
            }
        }
    }
}

#[test]
fn what_is_measured_changes_nothing() {
    let digest = |measure: &str| run_on(2, &scene("udp", &format!("{SMALL_CLOS}\n{measure}"))).info.digest;
    assert_eq!(digest("measure.interval = \"0s\""), digest("measure.interval = \"500ns\""));
    assert_eq!(digest(""), digest("measure.completion = \"acknowledged\""));
    assert_ne!(digest(""), digest("seed = 2"));
}

#[test]
fn time_in_flight_is_the_path_s() {
    // Of a flow's time, what is neither waiting nor transmission: 200 ns a link and 450 ns a switch, and the two
    // hosts'.
    let scene = scene("udp", &format!("{SMALL_CLOS}\nhost.delay = \"225ns\""));
    let result = run_on(1, &scene);
    let plan = Plan::new(&scenario(&scene)).unwrap();
    let rack = |host: u32| plan.fabric.rack_of(HostId(host));
    for (flow, info) in plan.flows.iter().enumerate() {
        let (links, switches) = if rack(info.src.0) == rack(info.dst.0) { (2, 1) } else { (4, 3) };
        let flight = of_flows(&result, "propagation_ps")[flow];
        assert!(
            flight == NONE || flight == links * 200_000 + switches * 450_000 + 2 * 225_000,
            "flow {flow}: {flight}"
        );
    }
    check(&result);
}

#[test]
fn samples_are_taken_on_time() {
    let result = run_on(1, &scene("udp", &format!("{SMALL_CLOS}\nmeasure.interval = \"2us\"")));
    let queues = table(&result, "queues");
    let times = crate::column(queues, "time_ps");
    // Seven switches at each 2 us that the run saw.
    assert_eq!(times.len() as u64, result.info.end_ps.saturating_sub(1) / 2_000_000 * 7);
    assert!(times.iter().enumerate().all(|(row, &time)| time == (row as u64 / 7 + 1) * 2_000_000));
}
