//! Each rule has a scenario that breaks it and no rule before it.

use scenario::read;

use super::super::first_broken;
use super::*;

const BROKEN: [(&str, &str, &str); LINKS.len()] = [
    ("job = [{ steps = [{ all_reduce = { bytes = '8KB' } }] }]", "job", "does not know when that is"),
    ("failure = [{ at = '1us', link = ['leaf0', 'spine1'] }]", "failure", "no routes that change"),
    (
        "sharing = 'rate_limiter'\nentity = [{ name = 'a', hosts = '0-3', request = [{ share.absolute = '1Gbps', \
         position = 'ingress' }] }]",
        "sharing",
        "all links of a path at once",
    ),
    ("flow_control = 'pfc'", "flow_control", "pfc lets a switch hold back"),
    ("host.cpu = {}", "host.cpu", "counted several times"),
    ("host.intake_rate = '10Gbps'", "host.intake_rate", "counted several times"),
];

const IDLE: [(&str, &str, &str); LINKS_ADVICE.len()] = [
    ("link.llr = {}", "link.llr", "has no errors"),
    ("measure.arrivals = ['host1']", "measure.arrivals", "no arrivals of the whole way"),
    ("measure.packets = {}", "measure.packets", "no whole way to record"),
    ("measure.events = ['drops']", "measure.events", "no events of the whole network"),
    ("measure.ports = ['leaf0:0']", "measure.ports", "keeps no samples"),
    ("measure.flows = {}", "measure.flows", "another window on each link"),
];

const BROKEN_TRANSPORTS: [(&[&str], &str, &str); LINKS_TRANSPORTS.len()] = [
    (&["r2c2", "harmony", "fastpass", "ndp"], "transport", "in the whole network"),
    (&["uet", "falcon", "{ dctcp = { plb = {} } }"], "transport", "a path of its own"),
];

fn scenario(settings: &str) -> Scenario {
    let text = format!(
        "timing = 'ideal'\nfabric.leaf_spine = {{ racks = 2, hosts_per_rack = 2 }}\n{settings}\n[[traffic]]\nname = \
         'a'\nsizes.constant = '1KB'\nflows = 1\narrivals = 'all_at_once'\n"
    );
    read(&text, "test", &[]).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

#[test]
fn each_rule_is_broken_by_its_scenario() {
    for (index, (settings, key, word)) in BROKEN.into_iter().enumerate() {
        let scenario = scenario(settings);
        let (first, problem) = first_broken(LINKS, |when| when(&scenario)).expect(settings);
        assert_eq!((first, problem.key.as_str()), (index, key), "{problem:?}");
        assert!(problem.message.contains(word) && !problem.message.contains('{'), "{word} is not in {problem:?}");
        assert_eq!(check_links(&scenario), Err(problem));
    }
    assert_eq!(check_links(&scenario("")), Ok(()));
}

#[test]
fn what_has_no_effect_is_said_and_refuses_nothing() {
    for (settings, key, word) in IDLE {
        let scenario = scenario(settings);
        let [problem] = &links_advice(&scenario)[..] else { panic!("{settings}: {:?}", links_advice(&scenario)) };
        assert!(problem.key == key && problem.message.contains(word), "{problem}");
        assert_eq!(check_links(&scenario), Ok(()));
    }
}

#[test]
fn transports_that_act_on_the_whole_network_are_refused() {
    for (index, (transports, key, word)) in BROKEN_TRANSPORTS.into_iter().enumerate() {
        for transport in transports {
            let quoted = if transport.starts_with('{') { (*transport).to_owned() } else { format!("'{transport}'") };
            let work = WorkloadPlan::new(&scenario(&format!("transport = {quoted}"))).unwrap();
            let (first, problem) = first_broken(LINKS_TRANSPORTS, |when| when(&work)).expect(transport);
            assert_eq!((first, problem.key.as_str()), (index, key), "{transport}: {problem:?}");
            assert!(problem.message.contains(word) && !problem.message.contains('{'), "{word} is not in {problem:?}");
            assert_eq!(check_links_network(&work), Err(problem));
        }
    }
    for transport in ["dctcp", "dcpim", "homa", "phost", "hpcc", "udp"] {
        let work = WorkloadPlan::new(&scenario(&format!("transport = '{transport}'"))).unwrap();
        assert_eq!(check_links_network(&work), Ok(()), "{transport}");
    }
}

#[test]
fn hosts_with_several_links_are_for_packets() {
    let text = "fabric.leaf_spine = { racks = 2, hosts_per_rack = 2, homes = 2 }\n[[traffic]]\nname = \
                'a'\nsizes.constant = '1KB'\nflows = 1\narrivals = 'all_at_once'\n";
    let work = WorkloadPlan::new(&read(text, "test", &[]).unwrap()).unwrap();
    let problem = check_links_network(&work).unwrap_err();
    assert!(problem.key == "fabric" && problem.message.contains("with level = links a host has one"), "{problem:?}");
}
