//! Every kind of fault under every transport and every flow control: nothing is lost that is not counted, each flow
//! ends, and threads change nothing.

use catalogue::{LinkControl, Transport};

use crate::{names, of_links, run_both, scenario, table};

/// What goes wrong, what follows from it in the table `links`, and settings of routing.
const FAULTS: [(&str, &str, &str); 5] = [
    (
        "{ at = '0s', link = ['leaf0', 'spine0'], loss = 0.03 }, \
         { at = '0s', link = ['host4', 'leaf2'], loss = 0.03, one_way = true }",
        "lossy_packets",
        "",
    ),
    (
        "{ at = '5us', until = '60us', link = ['leaf0', 'spine0'], rate = '10Gbps' }, \
         { at = '5us', link = ['host4', 'leaf2'], rate = '25Gbps' }",
        "",
        "",
    ),
    (
        "{ at = '5us', until = '105us', link = ['leaf0', 'spine0'], flap = { down = '5us', every = '20us' } }",
        "dead_packets",
        "reroute_delay = '2us'",
    ),
    ("{ at = '5us', until = '80us', link = ['leaf0', 'spine0'], reroute = false }", "dead_packets", ""),
    (
        "{ at = '20us', until = '120us', link = ['leaf0', 'spine0'] }, \
         { at = '30us', until = '90us', switch = 'spine1' }",
        "dead_packets",
        "reroute_delay = '2us'\nreroute_per_hop = '5us'\nreroute_compute_max = '5us'",
    ),
];

/// Three racks under three spines, with messages of many sizes.
fn scene(settings: &str, (failure, _, routing): (&str, &str, &str)) -> String {
    format!(
        r#"
        {settings}
        measure.interval = "0s"
        fabric.leaf_spine = {{ racks = 3, hosts_per_rack = 2, spines = 3, spine_rate = "100Gbps" }}
        failure = [{failure}]
        {routing}
        [[traffic]]
        sizes = {{ uniform = {{ min = "1B", max = "60KB" }} }}
        arrivals.poisson.load = 0.8
        flows = 100
        "#
    )
}

#[test]
fn every_transport_stands_every_fault() {
    for transport in Transport::NAMES {
        for fault in FAULTS {
            let toml = scene(&format!("transport = '{transport}'"), fault);
            if let Err(problem) = run::Plan::new(&scenario(&toml)) {
                // The one that is refused: nodes that must agree on tables where they learn of failures one by one.
                let refused = (*transport, problem.key.as_str(), !fault.2.contains("per_hop"));
                assert_eq!(refused, ("r2c2", "reroute_per_hop", false), "{problem}");
                assert!(problem.message.contains("change their routing tables at the same time"), "{problem}");
                continue;
            }
            let result = run_both(&toml);
            assert!(fault.1.is_empty() || of_links(&result, fault.1) > 0, "{transport}: {}", fault.0);
            let statuses = names(table(&result, "flows"), "status");
            assert!(statuses.iter().all(|status| *status != "unfinished"), "{transport}, {}: {statuses:?}", fault.0);
        }
    }
}

#[test]
fn every_flow_control_stands_every_fault() {
    for control in LinkControl::NAMES.iter().filter(|name| **name != "none") {
        for fault in FAULTS {
            let settings = format!(
                "transport = 'newreno'\nflow_control = '{control}'\nswitch.buffer = {{ shared = {{ bytes = '2MB' }} }}"
            );
            let result = run_both(&scene(&settings, fault));
            assert!(fault.1.is_empty() || of_links(&result, fault.1) > 0, "{control}: {}", fault.0);
            let statuses = names(table(&result, "flows"), "status");
            assert!(statuses.iter().all(|status| *status == "completed"), "{control}, {}: {statuses:?}", fault.0);
        }
    }
}
