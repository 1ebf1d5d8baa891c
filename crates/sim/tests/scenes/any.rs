//! Any combination of what a scenario may say, picked at random: what always holds, holds.

use catalogue::{LinkControl, Transport};
use proptest::prelude::*;
use proptest::sample::select;

use crate::{Execution, run_on};

fn fabrics() -> impl Strategy<Value = &'static str> {
    select(vec![
        "leaf_spine = { racks = 3, hosts_per_rack = 3, spines = 2, spine_rate = \"100Gbps\" }",
        "leaf_spine = { racks = 2, hosts_per_rack = 4, spines = 3, oversubscription = 16.0 }",
        "leaf_spine = { racks = 4, hosts_per_rack = 2, homes = 2, spines = 2, spine_rate = \"100Gbps\" }",
        "rails = { blocks = 2, servers_per_block = 3, rails = 3, spines = 2, spine_rate = \"50Gbps\" }",
        "rails = { blocks = 1, servers_per_block = 4, rails = 2, spines = 0 }",
        "multi_plane = { planes = 2, racks = 2, hosts_per_rack = 2, spines = 1, oversubscription = 2.0 }",
        "clos = { pods = 2, leaves_per_pod = 2, hosts_per_leaf = 2, aggs_per_pod = 2, cores_per_agg = 1, \
         agg_oversubscription = 2.0 }",
        "dragonfly = { groups = 3, routers_per_group = 2, hosts_per_router = 1 }",
        "dragonfly_plus = { groups = 3, leaves_per_group = 2, spines_per_group = 2, hosts_per_leaf = 1, \
         global_links_per_spine = 1 }",
        "fat_tree = { k = 4 }",
        "fat_tree = { k = 4, oversubscription = 4.0, propagation = \"3us\" }",
        "dumbbell = { hosts_per_side = 3, bottleneck_rate = \"25Gbps\" }",
        "star = { hosts = 5, switch_delay = \"0s\" }",
        "torus = { dims = [3, 4] }",
        "mesh = { dims = [2, 2, 2], hosts_per_node = 2, rate = \"40Gbps\" }",
    ])
}

fn switches() -> impl Strategy<Value = String> {
    let balancing = select(vec![
        "",
        "balancing = \"ecmp\"\n",
        "balancing = \"spray\"\n",
        "balancing = \"round_robin\"\n",
        "balancing = { drill = { samples = 2, memory = 1 } }\n",
        "balancing = { skewed = { skew = 0.7 } }\n",
    ]);
    let buffer = select(vec![
        "",
        "buffer = { per_port = { bytes = \"10KB\" } }\n",
        "buffer = { shared = { bytes = \"30KB\", alpha = 2.0 } }\n",
        "buffer = { shared = { bytes = \"1MB\", alpha = 0.5 } }\n",
        "buffer = { shared = { bytes = \"2MB\" } }\n",
    ]);
    let overflow = select(vec!["", "overflow = \"tail_drop\"\n", "overflow = \"push_out\"\n"]);
    let levels = select(vec!["", "levels = [[0, 1], [2, 3, 4, 5, 6, 7]]\n"]);
    (balancing, buffer, overflow, levels, any::<bool>()).prop_map(
        |(balancing, buffer, overflow, levels, cut_through)| {
            format!("[switch]\n{balancing}{buffer}{overflow}{levels}cut_through = {cut_through}\n")
        },
    )
}

fn hosts() -> impl Strategy<Value = String> {
    let frame = select(vec!["", "mtu = \"9000B\"\n", "mtu = \"500B\"\nheader = \"64B\"\n"]);
    let delay = select(vec!["", "delay = \"225ns\"\n", "delay = \"7us\"\n"]);
    let clock = select(vec!["", "clock_offset_max = \"4us\"\nclock_drift_ppb_max = 200000\n"]);
    (frame, delay, clock).prop_map(|(frame, delay, clock)| format!("[host]\n{frame}{delay}{clock}"))
}

/// How hosts share; every fabric here has four of them.
fn sharing() -> impl Strategy<Value = String> {
    let entity = |sharing: &str, each: &str, share: &str| {
        format!(
            "sharing = {sharing}\nentity = [{{ name = \"vms\", hosts = \"0-3\", each = \"{each}\", feedback \
             = \"delay\", request = [\n\
             {{ share = {share}, position = \"ingress\" }}, {{ share = {share}, position = \"egress\" }}] }}]\n"
        )
    };
    select(vec![
        String::new(),
        entity("\"aq\"", "host", "{ absolute = \"10Gbps\" }"),
        entity("{ aq = { idle_after = \"20us\", work_conserving = \"bypass\" } }", "host", "{ weight = 3 }"),
        entity("{ aq = { headroom = 0.03 } }", "host", "{ weight = 2 }"),
        entity(
            "{ aq = { work_conserving = { reallocate = { period = \"10us\", headroom = 0.2 } } } }",
            "host",
            "{ weight = 1 }",
        ),
        entity("\"rate_limiter\"", "host", "{ absolute = \"7Gbps\" }"),
        entity("{ elastic_switch = { period = \"50us\" } }", "host", "{ absolute = \"5Gbps\" }"),
    ])
}

/// An outage of some host's link; every fabric here has so many hosts.
fn failures() -> impl Strategy<Value = String> {
    let links = select(vec![
        r#"["host0", "leaf0"]"#,
        r#"["leaf0", "spine0"]"#,
        r#"["edge1", "agg0"]"#,
        r#"["host1", "leaf1"]"#,
        r#"["host0", "rail2"]"#,
        r#"["agg2", "core1"]"#,
        r#"["left", "right"]"#,
        r#"["host2", "switch0"]"#,
        r#"["switch0", "switch1"]"#,
    ]);
    (links, 0u64..40, proptest::option::of(4u64..60)).prop_map(|(link, at, lasts)| {
        let until = lasts.map_or(String::new(), |lasts| format!("until = \"{}us\"\n", at + lasts));
        format!("[[failure]]\nat = \"{at}us\"\n{until}link = {link}\n")
    })
}

fn traffic() -> impl Strategy<Value = String> {
    let sizes = select(vec![
        "sizes = { uniform = { min = \"1B\", max = \"40KB\" } }\n",
        "sizes = { constant = \"1460B\" }\n",
        "sizes = \"google_rpc\"\n",
        "sizes = { constant = \"300KB\" }\n",
    ]);
    let arrivals = select(vec![
        "arrivals = { poisson = { load = 0.7 } }\n",
        "arrivals = { poisson = { load = 3.0 } }\n",
        "arrivals = { periodic = { every = \"2us\", jitter = \"1us\" } }\n",
        "arrivals = { closed_loop = { outstanding = 2 } }\n",
        "arrivals = \"all_at_once\"\n",
    ]);
    let pattern =
        select(vec!["", "pattern = \"permutation\"\n", "pattern = { hot_spots = { hosts = \"1\", share = 0.7 } }\n"]);
    (sizes, arrivals, pattern, select(Transport::NAMES.to_vec()), 1u32..60).prop_map(
        |(sizes, arrivals, pattern, transport, flows)| {
            format!("{sizes}{arrivals}{pattern}transport = \"{transport}\"\nflows = {flows}\n")
        },
    )
}

/// So many scenes are drawn, unless `PROPTEST_CASES` says how many: what is wrong with one in a thousand is found by
/// `make test-slow`.
fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").map_or(200, |cases| cases.parse().expect("PROPTEST_CASES is a number"))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn what_always_holds_holds(
        seed: u32,
        fabric in fabrics(),
        switch in switches(),
        host in hosts(),
        failure in proptest::option::of(failures()),
        sharing in sharing(),
        flow_control in select(LinkControl::NAMES.to_vec()),
        retries in any::<bool>(),
        completion in select(vec!["delivered", "acknowledged"]),
        classes in proptest::collection::vec(traffic(), 1..3),
        parts in 2usize..9,
    ) {
        let mut classes: Vec<String> = classes
            .iter()
            .enumerate()
            .map(|(index, class)| format!("[[traffic]]\nname = \"class {index}\"\n{class}"))
            .collect();
        // Small numbers, so that they go round and links wait for what is acknowledged.
        let mut llr = if retries { "link.llr = { outstanding_packets = 40, spacing = \"4KB\" }\n" } else { "" };
        let scene = |[llr, failure, flow_control, sharing, switch]: [&str; 5], classes: &[String]| format!(
            "seed = {seed}\nmeasure = {{ completion = \"{completion}\", drain = \"2ms\" }}\n\
             flow_control = \"{flow_control}\"\n{llr}{sharing}fabric.{fabric}\n{}{switch}{host}{failure}{}",
            if failure.is_empty() { "" } else { "reroute_delay = \"5us\"\n" },
            classes.concat(),
        );
        // An outage of a link that this fabric lacks is left out, and a flow control that its buffers are too small
        // for; and whatever can't stand beside a transport that has the first classes for itself, and that itself where
        // links are too slow for it.
        let (mut failure, mut flow_control) = (failure.unwrap_or_default(), flow_control);
        let (mut sharing, mut switch) = (sharing, switch);
        let text = loop {
            let text = scene([llr, &failure, flow_control, &sharing, &switch], &classes);
            match run::Plan::new(&crate::scenario(&text)) {
                Ok(_) => break text,
                Err(problem) if problem.key.starts_with("failure") && !failure.is_empty() => failure.clear(),
                Err(problem) if problem.key == "link.llr" && !llr.is_empty() => llr = "",
                Err(problem) if problem.key.starts_with("flow_control") && flow_control != "none"
                    => flow_control = "none",
                Err(problem) if ["sharing", "entity"].iter().any(|key| problem.key.starts_with(key))
                    && !sharing.is_empty() => {
                    sharing.clear();
                }
                Err(problem) if problem.key.starts_with("switch") && !switch.is_empty() => switch.clear(),
                Err(problem) if problem.key.starts_with("traffic") && classes.len() > 1 => classes.truncate(1),
                Err(problem) if problem.key == "switch.buffer" && switch.is_empty() => {
                    classes.iter_mut().for_each(|class| {
                        for name in ["rsvp", "harmony", "fastpass"] {
                            *class = class.replace(name, "dcpim");
                        }
                    });
                }
                Err(problem)
                    if problem.key.starts_with("traffic") && problem.message.contains("in this fabric host0") =>
                {
                    for name in ["rsvp", "harmony", "fastpass", "r2c2", "ndp"] {
                        classes[0] = classes[0].replace(name, "dcpim");
                    }
                }
                // Links that are no slot of a host, or paths too long for a route.
                Err(problem) if problem.key.starts_with("traffic") && classes[0].contains("rsvp") => {
                    classes[0] = classes[0].replace("rsvp", "harmony");
                }
                Err(problem) if problem.key.starts_with("traffic") && classes[0].contains("harmony") => {
                    classes[0] = classes[0].replace("harmony", "dcpim");
                }
                Err(problem) => panic!("{problem}\n{text}"),
            }
        };
        let cut = Execution { threads: 2, parts: Some(parts) };
        let (alone, together) = (run_on(1, &text), run_on(cut, &text));
        prop_assert_eq!(alone.info.digest, together.info.digest, "{}", text);
        prop_assert!(format!("{:?}", alone.tables) == format!("{:?}", together.tables), "{}", text);
    }
}
