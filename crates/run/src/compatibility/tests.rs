//! Each rule has a scenario that breaks it and no rule before it; the tables of rules and of these scenarios are
//! equally long.

use super::*;
use crate::{Plan, WorkloadPlan};
use scenario::read;

/// A scenario that breaks a rule.
struct Broken {
    /// The transports of its classes of traffic, "t0" and so on.
    transports: &'static [&'static str],
    settings: &'static str,
    /// A refused scenario, and a word of the reason.
    key: &'static str,
    word: &'static str,
}

const fn broken(
    transports: &'static [&'static str],
    settings: &'static str,
    key: &'static str,
    word: &'static str,
) -> Broken {
    Broken { transports, settings, key, word }
}

const HARMONY: &[&str] = &["'harmony'", "'dctcp'"];
const TRIM: &str = "switch.overflow = 'trim'";
const DROP: &str = "switch = { marking.step.threshold = '9KB', early_drop = true }";
const FAILS: &str = "failure = [{ at = '1us', link = ['leaf0', 'spine1'] }]";
const LIMITED: &str = "sharing = 'rate_limiter'\nentity = [{ name = 'a', hosts = '0-3', request = [{ share.absolute \
                       = '1Gbps', position = 'ingress' }] }]";
const RETRIES: &str = "link.llr = {}";
const CPU: &str = "host.cpu = { per_packet_send = '1us' }";
const NOTED: &str = "measure.arrivals = ['host1']";
const RECORDED: &str = "measure.packets = {}";
const EVENTS: &str = "measure.events = ['drops']";
const PORTS: &str = "measure.ports = ['leaf0:0']";
const FOLLOWED: &str = "measure.flows = {}";
const SEVERAL_LINKS: &str = "fabric.leaf_spine = { racks = 2, hosts_per_rack = 2, homes = 2 }";

const BROKEN: [Broken; RULES.len()] = [
    broken(
        &["'harmony'", "'dctcp'", "'rsvp'"],
        "",
        "traffic[2].transport",
        "harmony with the settings of traffic[0].transport",
    ),
    broken(HARMONY, LIMITED, "sharing", "change their pacing"),
    broken(HARMONY, "flow_control = 'bfc'", "flow_control", "class 1, and harmony has the classes 0 to 1"),
    broken(HARMONY, "flow_control.mmu.lossless = [3]", "flow_control", "settings of its own"),
    broken(HARMONY, "switch.levels = [[5, 6], [1, 4]]", "switch.levels[1]", "strict priority"),
    broken(HARMONY, TRIM, "switch.overflow", "class 0"),
    broken(HARMONY, DROP, "switch.early_drop", "guarantees that no packet is dropped"),
    broken(
        &["'r2c2'"],
        "reroute_per_hop = '1us'\nfailure = [{ at = '1us', link = ['leaf0', 'spine1'] }]",
        "reroute_per_hop",
        "r2c2 assumes that all nodes change their routing tables",
    ),
    broken(
        &["'r2c2'"],
        "sharing = 'aq'\n\
         entity = [{ name = 'a', transports = ['r2c2'], request = [{ share.weight = 1, link = ['leaf0', 'spine0'], \
         position = 'ingress' }] }]",
        "entity[0].request",
        "no AQ sees them",
    ),
    broken(&["{ dctcp = { plb = {} } }"], "switch.balancing = 'spray'", "switch.balancing", "write \"ecmp\""),
    broken(&["'ndp'", "'pfabric'"], "", "traffic[1].transport", "ndp and pfabric both replace the queues"),
    broken(&["'udp'"], "switch.early_drop = true", "switch.early_drop", "needs switch.marking"),
    broken(
        &["'udp'"],
        "switch.cut_through = true\nfailure = [{ at = '1us', link = ['leaf0', 'spine1'], rate = '1Mbps' }]",
        "failure[0].rate",
        "a packet of 1500B takes more than 4ms",
    ),
    broken(HARMONY, RETRIES, "link.llr", "harmony guarantees how long packets wait"),
    broken(
        &["'udp'"],
        "flow_control = 'cbfc'\nswitch.buffer.shared = { bytes = '2MB', alpha = 1.0 }",
        "flow_control",
        "delete alpha",
    ),
    broken(&["'ndp'"], "flow_control = 'per_flow_queues'", "flow_control", "flow control cannot work on those"),
    broken(HARMONY, CPU, "host.cpu", "harmony guarantees how long packets wait"),
    broken(&["'udp'"], "flow_control = 'pfc'\nhost.cpu = {}", "host.cpu", "could not hold back"),
    broken(&["'ndp'", "'harmony'"], "", "traffic[0].transport", "keep no buffer space for harmony"),
];

const IDLE: [Broken; ADVICE.len()] = [
    broken(&["'udp'"], "switch.marking.step.threshold = '9KB'", "switch.marking", "reacts to marks"),
    broken(&["'udp'"], "switch.mark_at = 'departure'", "switch.mark_at", "reacts to marks"),
    broken(
        &["'udp'"],
        "sharing = 'aq'\n\
         entity = [{ name = 'a', traffic = ['t0'], work_conserving = false, request = [{ share.weight = 1, link = \
         ['leaf0', 'spine0'], position = 'ingress' }] }]",
        "entity[0].work_conserving",
        "without sharing.aq.work_conserving",
    ),
    broken(&["'dctcp'"], "fast_forward = 'exact'", "fast_forward", "skips only what recurs"),
    broken(&["'dctcp'"], "host.jitter = '1us'\nlink.llr = {}", "host.jitter", "the NIC itself handles"),
    broken(&["'udp'"], "flow_control = 'bfc'\nswitch.levels = [[1, 2]]", "flow_control", "packets by flow"),
    broken(&["'pfabric'"], "switch.levels = [[1, 2]]", "switch", "levels"),
    broken(&["'udp'"], "flow_control = 'mmu'\nswitch.levels = [[1, 2]]", "switch.levels", "flow_control.mmu.schedule"),
    broken(&["'udp'"], "flow_control = 'mmu'\nswitch.overflow = 'trim'", "switch.overflow", "the pools of mmu"),
    broken(
        &["'udp'"],
        "flow_control = 'mmu'\nswitch.buffer.shared = { bytes = '2MB', alpha = 0.5 }",
        "switch.buffer",
        "alpha without effect",
    ),
    broken(&["'ndp'"], DROP, "switch.early_drop", "ndp replaces the queues"),
];

const BROKEN_FLOW_LEVEL: [Broken; FLOW_LEVEL.len()] = [
    broken(&["'udp'"], FAILS, "failure", "do not fail at flow level"),
    broken(&["'udp'"], CPU, "host.cpu", "no packets that cores could spend time on"),
    broken(&["'udp'"], LIMITED, "sharing", "max-min fairly"),
];

const IDLE_FLOW_LEVEL: [Broken; FLOW_LEVEL_ADVICE.len()] = [
    broken(&["'udp'"], RETRIES, "link.llr", "nothing to repeat"),
    broken(&["'udp'"], NOTED, "measure.arrivals", "flow level has no packets"),
    broken(&["'udp'"], RECORDED, "measure.packets", "flow level has no packets to record"),
    broken(&["'udp'"], EVENTS, "measure.events", "to which anything happens"),
    broken(&["'udp'"], PORTS, "measure.ports", "flow level has no queues"),
    broken(&["'udp'"], FOLLOWED, "measure.flows", "no window and no token"),
];

fn scenario(transports: &[&str], settings: &str) -> Scenario {
    let fabric =
        if settings.contains("fabric") { "" } else { "fabric.leaf_spine = { racks = 2, hosts_per_rack = 2 }\n" };
    let class = |(index, transport): (usize, &&str)| {
        format!(
            "[[traffic]]\nname = 't{index}'\ntransport = {transport}\nsizes.constant = '1KB'\nflows = 1\narrivals = \
             'all_at_once'\n"
        )
    };
    let traffic: String = transports.iter().enumerate().map(class).collect();
    let text = format!("{fabric}{settings}\n{traffic}");
    read(&text, "test", &[]).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn first(scenario: &Scenario) -> Option<(usize, Problem)> {
    let work = WorkloadPlan::new(scenario).unwrap();
    let WorkloadPlan { transports, keys, requirements, .. } = &work;
    first_broken(RULES, |when| when(&Facts { scenario, transports, keys, requirements }))
}

#[track_caller]
fn assert_broken(index: usize, broken: &Broken, found: Option<(usize, Problem)>) {
    let Broken { key, word, settings, .. } = broken;
    let Some((first, problem)) = found else { panic!("no rule is broken by {settings}, which was to break {index}") };
    assert_eq!((first, problem.key.as_str()), (index, *key), "{settings}: {problem:?}");
    assert!(problem.message.contains(word), "{word} is not in {problem:?}");
    for place in 0..9 {
        let left = format!("{{{place}}}");
        assert!(
            !problem.message.contains(&left) && !problem.key.contains(&left),
            "nothing was found for {left}: {problem:?}"
        );
    }
}

#[test]
fn each_rule_is_broken_by_its_scenario_and_by_none_of_another_rule() {
    for (index, broken) in BROKEN.iter().enumerate() {
        let scenario = scenario(broken.transports, broken.settings);
        let found = first(&scenario);
        assert_broken(index, broken, found.clone());
        let Err(problem) = Plan::new(&scenario) else { panic!("a plan is made of {}", broken.settings) };
        assert_eq!(Some(problem), found.map(|of| of.1), "the plan has another reason");
    }
}

#[test]
fn what_has_no_effect_is_said_and_refuses_nothing() {
    for (index, idle) in IDLE.iter().enumerate() {
        let scenario = scenario(idle.transports, idle.settings);
        let plan = Plan::new(&scenario).unwrap_or_else(|problem| panic!("{problem}: {}", idle.settings));
        let WorkloadPlan { transports, keys, requirements, .. } = &WorkloadPlan::new(&scenario).unwrap();
        let facts = Facts { scenario: &scenario, transports, keys, requirements };
        let found = first_broken(ADVICE, |when| when(&facts));
        assert_broken(index, idle, found.clone());
        assert!(plan.warnings().contains(&found.unwrap().1), "{:?}", plan.warnings());
    }
    for (index, idle) in IDLE_FLOW_LEVEL.iter().enumerate() {
        let scenario = scenario(idle.transports, idle.settings);
        assert_broken(index, idle, first_broken(FLOW_LEVEL_ADVICE, |when| when(&scenario)));
        assert_eq!(check_flow_level(&scenario), Ok(()));
    }
}

/// Queues of flows, and those that a transport brings, are as without groups of classes and alpha.
#[test]
fn levels_and_alpha_change_nothing_where_queues_are_none_of_classes() {
    let shared = "switch.buffer.shared = { bytes = '2MB'";
    for (transport, control) in [("'udp'", "flow_control = 'bfc'\n"), ("'pfabric'", "")] {
        let plan = |settings: &str| Plan::new(&scenario(&[transport], &format!("{control}{settings}"))).unwrap();
        let (idle, plain) =
            (plan(&format!("switch.levels = [[1, 2]]\n{shared}, alpha = 0.5 }}")), plan(&format!("{shared} }}")));
        assert_eq!(format!("{:?}", idle.settings), format!("{:?}", plain.settings));
        assert_eq!(idle.round_trip(), plain.round_trip());
    }
}

#[test]
fn each_rule_of_flow_level_is_broken_by_its_scenario() {
    for (index, broken) in BROKEN_FLOW_LEVEL.iter().enumerate() {
        let scenario = scenario(broken.transports, broken.settings);
        assert_broken(index, broken, first_broken(FLOW_LEVEL, |when| when(&scenario)));
        assert!(check_flow_level(&scenario).is_err());
    }
}

#[test]
fn hosts_with_several_links_that_take_in_slowly_are_for_packets() {
    let slow = format!("{SEVERAL_LINKS}\nhost.intake_rate = '50Gbps'");
    let [several, slow] = [SEVERAL_LINKS, &slow].map(|settings| scenario(&["'udp'"], settings));
    let fabric = several.fabric.build().unwrap();
    let flow_level = broken(&[], SEVERAL_LINKS, "host.intake_rate", "host0 has 2 links");
    assert_broken(0, &flow_level, first_broken(FLOW_LEVEL_NETWORK, |when| when(&slow, &fabric)));
    assert_eq!(check_flow_level_network(&several, &fabric), Ok(()));
    let one = scenario(&["'udp'"], "host.intake_rate = '50Gbps'");
    assert_eq!(check_flow_level_network(&one, &one.fabric.build().unwrap()), Ok(()));
}

#[test]
fn what_leaves_reserved_classes_alone_stands_beside_them() {
    for settings in [
        "",
        "flow_control = { pfc = { classes = [2, 3, 4, 5, 6, 7] } }",
        "flow_control = { pyrrha = { classes = [3] } }",
        "switch.levels = [[0], [2, 3]]",
        "switch.overflow = 'tail_drop'",
    ] {
        assert_eq!(first(&scenario(HARMONY, settings)), None, "{settings}");
    }
    assert_eq!(first(&scenario(&["'dctcp'"], TRIM)), None);
    assert_eq!(first(&scenario(&["'dctcp'"], DROP)), None);
    // In turn, Harmony brings queues for its own classes and leaves the others to the port's.
    let in_turn = &["{ harmony = { service = 'round_robin' } }", "'dctcp'"];
    assert_eq!(first(&scenario(in_turn, "switch.levels = [[2, 3]]")), None);
}
