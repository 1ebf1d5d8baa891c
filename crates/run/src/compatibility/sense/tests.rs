//! Each doubt has a scenario that raises it, in these words, and one beside it that does not.

use scenario::read;

use super::*;

/// A scenario that raises a doubt, what changes in it, and how it makes sense.
struct Doubtful {
    text: &'static str,
    key: &'static str,
    word: &'static str,
    /// A piece of the text, and what to write in its place.
    right: (&'static str, &'static str),
}

const POISSON: &str = "fabric.leaf_spine = { racks = 2, hosts_per_rack = 4, spines = 2 }\ntransport = 'dctcp'\n\
                       [[traffic]]\nsizes.constant = '100KB'\narrivals.poisson.load = 0.4\nduration = '20ms'\n";

const DOUBTFUL: [Doubtful; SENSE.len()] = [
    Doubtful {
        text: "[[traffic]]\nsizes.constant = '100KB'\narrivals.poisson.load = 60\nduration = '1ms'\n",
        key: "traffic[0].arrivals.poisson.load",
        word: "60 is more than the links carry, so that unfinished work grows for as long as messages arrive; write \
               less than 1; for 60 percent write 0.6",
        right: ("load = 60", "load = 0.6"),
    },
    Doubtful {
        text: "fabric.leaf_spine = { racks = 4, hosts_per_rack = 8, spines = 1 }\n[[traffic]]\n\
               sizes.constant = '100KB'\narrivals.poisson.load = 0.8\nduration = '5ms'\n",
        key: "traffic[0].arrivals.poisson.load",
        word: "its uplinks carry",
        right: ("load = 0.8", "load = 0.1"),
    },
    Doubtful {
        text: "[[traffic]]\nsizes.constant = '1KB'\narrivals.poisson.load = 0.1\nflows = 200\nduration = '1s'\n",
        key: "traffic[0].duration",
        word: "all 200 messages have arrived before \"1s\"; delete one of flows and duration",
        right: ("duration = '1s'", ""),
    },
    Doubtful {
        text: "measure.end = '50us'\n[[traffic]]\nname = 'long'\nsizes.constant = '1MB'\narrivals = 'all_at_once'\n\
               [[traffic]]\nname = 'short'\nsizes.constant = '1KB'\narrivals = 'all_at_once'\n",
        key: "measure.end",
        word: "before 4 of 8 messages can be through",
        right: ("'50us'", "'5ms'"),
    },
    Doubtful {
        text: "fabric.star.hosts = 64\n[[traffic]]\nsizes.constant = '100KB'\narrivals.poisson.load = 0.5\n\
               duration = '80us'\n",
        key: "traffic[0].duration",
        word: "half of all bytes are in messages that take",
        right: ("'80us'", "'800us'"),
    },
    Doubtful {
        text: "transport = 'dctcp'\nswitch.marking.step.threshold = '1MB'\n[[traffic]]\nsizes.constant = '10KB'\n\
               arrivals = 'all_at_once'\n",
        key: "switch.marking",
        word: "marks from 1MB on, and a port has room for 500KB",
        right: ("'1MB'", "'100KB'"),
    },
    Doubtful {
        text: "transport = 'dctcp'\nhost.delay = '50us'\nswitch.marking.step.threshold = '9KB'\n[[traffic]]\n\
               sizes.constant = '10KB'\narrivals = 'all_at_once'\n",
        key: "switch.marking",
        word: "less than a seventh of the bandwidth-delay product",
        right: ("'9KB'", "'400KB'"),
    },
    Doubtful {
        text: "transport = 'cubic'\nhost.delay = '500us'\nswitch.buffer.per_port.bytes = '500KB'\n[[traffic]]\n\
               sizes.constant = '10KB'\narrivals = 'all_at_once'\n",
        key: "switch.buffer",
        word: "has room for 500KB at a port, and one flow of cubic keeps",
        right: ("'500KB'", "'50MB'"),
    },
    Doubtful {
        text: "transport = 'rdma'\nfabric.star = { hosts = 4, propagation = '5us' }\n\
               flow_control.pfc.headroom.cable_m = 1\n[[traffic]]\nsizes.constant = '10KB'\narrivals = 'all_at_once'\n",
        key: "flow_control.pfc.headroom",
        word: "still arrive after a pause",
        right: ("cable_m = 1", "cable_m = 2000"),
    },
    Doubtful {
        text: "fabric.leaf_spine = { racks = 2, hosts_per_rack = 4, spines = 4 }\nswitch.balancing = 'ecmp'\n\
               [[traffic]]\nsizes.constant = '10MB'\narrivals = 'all_at_once'\nsenders = 'racks 0'\n\
               receivers = 'racks 1'\n",
        key: "switch.balancing",
        // 4 of 4 over 4 links: 4 x (1 - 0.75^4 - 4 x 0.25 x 0.75^3) = 1.05 at most.
        word: "hashes 4 long messages from leaf0 over 4 links: in 100% of draws",
        right: ("'ecmp'", "'spray'"),
    },
    Doubtful {
        text: "[[traffic]]\nsizes.cdf_file = { path = 'mean.txt', unit = 'bytes', probability = 'fraction' }\n\
               arrivals = 'all_at_once'\n",
        key: "traffic[0].sizes",
        word: "states a mean of 5.05KB",
        right: ("mean.txt", "close.txt"),
    },
];

fn plan(text: &str) -> Plan {
    let fabric = if text.contains("fabric") { "" } else { "fabric.star.hosts = 4\n" };
    let transport = if text.contains("transport") { "" } else { "transport = 'udp'\n" };
    let text = format!("{fabric}{transport}{text}");
    let mut scenario = read(&text, "test", &[]).unwrap_or_else(|error| panic!("{error}\n{text}"));
    for class in &mut scenario.traffic {
        // By steps, both have a mean of 5,050; linear between the points the second is within a tenth.
        let files = |path: &str| {
            let close = (1..=50).map(|at| format!("{} {}\n", at * 200, f64::from(at) / 50.0)).collect::<String>();
            let text =
                if path == "mean.txt" { "5050\n100 0.5\n10000 1\n".to_owned() } else { format!("5100\n{close}") };
            Ok(text.into_bytes())
        };
        class.load(files).unwrap_or_else(|problem| panic!("{problem}"));
    }
    Plan::new(&scenario).unwrap_or_else(|problem| panic!("{problem}\n{text}"))
}

#[test]
fn each_doubt_is_raised_by_its_scenario_and_goes_away_by_what_it_says() {
    for (index, Doubtful { text, key, word, right: (wrong, right) }) in DOUBTFUL.iter().enumerate() {
        let raised = |text: &str| {
            let plan = plan(text);
            let found = (SENSE[index].when)(&plan)?;
            let problem = SENSE[index].problem(&found);
            assert!(plan.warnings().contains(&problem), "{:?}", plan.warnings());
            Some(problem)
        };
        let Some(problem) = raised(text) else { panic!("no doubt {index} is raised by {text}") };
        assert!(problem.key == *key && problem.message.contains(word), "{problem}");
        assert!(!problem.message.contains('{') && !problem.key.contains('{'), "{problem}");
        assert!(text.contains(wrong), "{wrong}");
        assert_eq!(raised(&text.replace(wrong, right)), None, "{text}");
    }
}

#[test]
fn what_makes_sense_raises_no_doubt() {
    assert_eq!(doubts(&plan(POISSON)), []);
    assert_eq!(doubts_of_results(&plan(POISSON)), []);
}

#[test]
fn few_flows_have_no_percentile_of_their_own() {
    let few = POISSON.replace("duration = '20ms'", "flows = 99");
    let [problem] = &doubts_of_results(&plan(&few))[..] else { panic!("nothing is said") };
    assert!(problem.key == "traffic[0].flows" && problem.message.starts_with("99 messages in all"), "{problem}");
    assert_eq!(doubts_of_results(&plan(&few.replace("99", "100"))), []);
    assert_eq!(doubts_of_results(&plan(&few.replace("99", "9"))), []);
}

#[test]
fn flows_that_never_come_are_said() {
    let text = "[[traffic]]\nsizes.constant = '1MB'\narrivals.poisson.load = 0.1\nflows = 2000\nduration = '1ms'\n";
    let found = doubts(&plan(text));
    let said = found.iter().find(|of| of.key == "traffic[0].flows").expect("it is said");
    assert!(said.message.contains("of 2000 messages arrive within duration = \"1ms\""), "{said}");
}

#[test]
fn packets_that_are_repeated_though_none_was_lost_are_said() {
    let plan = plan(POISSON);
    let said = |resent, lost| plan.doubts_of_outcome((10_000, resent), lost, None);
    assert!(said(100, 0)[0].message.starts_with("100 of 10000 data packets had been sent before, and none was lost"));
    assert_eq!((said(99, 0), said(100, 1)), (Vec::new(), Vec::new()));
}

#[test]
fn a_failure_after_the_last_message_has_ended_is_said_not_to_have_happened() {
    let plan = plan(&format!("failure = [{{ switch = 'spine0', at = '900us' }}]\n{POISSON}"));
    let said = |end| plan.doubts_of_outcome((0, 0), 0, end);
    let [problem] = &said(Some(Time::from_us(900)))[..] else { panic!("nothing is said") };
    assert_eq!(problem.key, "failure[0]");
    assert!(problem.message.starts_with("did not happen at 900us: the run had ended at 900us"), "{problem}");
    assert_eq!((said(Some(Time::from_us(901))), said(None)), (Vec::new(), Vec::new()));
}

#[test]
fn a_hash_crowds_a_link_as_often_as_the_binomial_distribution_has_it() {
    // Two over two links: both on one, in half of the draws.
    assert!((crowded(2, 2) - 0.5).abs() < 1e-12);
    // Six over four: three or more on one. 1 - (0.75^6 + 6 0.25 0.75^5 + 15 0.25^2 0.75^4) = 0.1694, four times.
    assert!((crowded(6, 4) - 0.6777).abs() < 1e-3);
    assert!(crowded(15, 2) < 1e-4 && crowded(27, 4) < 0.05 && crowded(999, 64) < 0.05);
}

#[test]
fn headroom_that_takes_the_memory_lets_links_idle() {
    let said = |buffer: &str| {
        let found = headroom_and_buffer(&plan(&format!(
            "transport = 'rdma'\nfabric.star = {{ hosts = 4, rate = '100Gbps', propagation = '1us' }}\n\
             flow_control = 'pfc'\nswitch.buffer.shared.bytes = '{buffer}'\n\
             [[traffic]]\nsizes.constant = '10KB'\narrivals = 'all_at_once'\n"
        )))?;
        Some(found.join(": "))
    };
    // 33.689 KB arrive after a pause, at each of four ports: 134.756 KB of headroom. A port is paused at alpha / (1 +
    // alpha) = 2/3 of the rest, and resumes with 3 KB less: 1.5 (33.689 + 3) = 55.034 KB have to be left.
    let found = said("185KB").expect("50.2 KB are left");
    assert!(found.contains("flow_control.pfc.alpha") && found.contains("unless 36.689KB wait here"), "{found}");
    assert_eq!(said("195KB"), None);
}

#[test]
fn a_tier_above_the_racks_is_looked_at_too() {
    // 40 Gbps of each of 4 hosts under a leaf, 160 of its 400; of the 320 of a pod 4/7 go to the other pod, over 2
    // aggregation switches whose links to cores carry 400 / 5 = 80 each.
    let found = |over: f64| {
        tier_overloaded(&plan(&format!(
            "fabric.clos = {{ pods = 2, leaves_per_pod = 2, hosts_per_leaf = 4, aggs_per_pod = 2, cores_per_agg = 2, \
             agg_oversubscription = {over} }}\n[[traffic]]\nsizes.constant = '20KB'\narrivals.poisson.load = 0.4\n\
             duration = '5ms'\n"
        )))
    };
    let words = found(5.0).expect("182.9 Gbps over 160");
    assert!(words[1].starts_with("agg") && words[3] == "80Gbps", "{words:?}");
    let gbps: f64 = words[2].trim_end_matches("Gbps").parse().expect("a rate");
    assert!((85.0..98.0).contains(&gbps), "{gbps} for 91.4");
    assert_eq!(found(3.0), None, "133 Gbps for each pair of links");
}
