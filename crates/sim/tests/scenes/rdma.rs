//! RDMA's rate controls in whole networks. Their closed forms are `clearway.papers.closed_forms.rdma`.

use crate::{column, of_link, run_both, table};

#[test]
fn every_control_runs_over_every_flow_control_without_loss() {
    for transport in ["rdma", "dcqcn", "timely", "hpcc"] {
        for flow_control in catalogue::LinkControl::NAMES {
            let result = run_both(&format!(
                r#"
                transport = "{transport}"
                flow_control = "{flow_control}"
                fabric.leaf_spine = {{ racks = 3, hosts_per_rack = 4, spines = 2, spine_rate = "200Gbps" }}
                switch.buffer.shared = {{ bytes = "20MB" }}
                [[traffic]]
                name = "incast"
                sizes = {{ constant = "200KB" }}
                arrivals = "all_at_once"
                pattern = {{ incast = {{ degree = 11 }} }}
                receivers = "0"
                flows = 11
                [[traffic]]
                name = "others"
                sizes = {{ uniform = {{ min = "1KB", max = "100KB" }} }}
                arrivals = {{ poisson = {{ load = 0.4 }} }}
                flows = 100
                "#
            ));
            assert_eq!(result.info.flows_completed, 111, "{transport} over {flow_control}");
            let links = table(&result, "links");
            assert_eq!(column(links, "overflow_packets").iter().sum::<u64>(), 0, "{transport} over {flow_control}");
        }
    }
}

/// Four endless flows of HPCC into one port: the shares between 2 and 6 ms of each, in equal shares.
fn hpcc_shares(settings: &str) -> Vec<f64> {
    let sent = |end: u32| {
        let flow = |host: u32| {
            format!(
                "[[traffic]]\nname = \"of_{host}\"\nsenders = \"{host}\"\nreceivers = \"4\"\n\
                 sizes.constant = \"10GB\"\narrivals = \"all_at_once\"\nflows = 1\n"
            )
        };
        let result = run_both(&format!(
            "measure.end = \"{end}ms\"\nmeasure.interval = \"0s\"\nfabric.star.hosts = 5\n{settings}\n{}",
            (0..4).map(flow).collect::<String>()
        ));
        [0, 1, 2, 3].map(|host| of_link(&result, &format!("host{host}"), "switch0", "sent_bytes") as f64)
    };
    let (until, before) = (sent(6), sent(2));
    let sent: Vec<f64> = until.iter().zip(before).map(|(until, before)| until - before).collect();
    let all: f64 = sent.iter().sum();
    sent.iter().map(|of| 4.0 * of / all).collect()
}

/// A sender compares the packets that left in a round trip with those that the link could have sent. On a star of 2 us
/// these are 16, so the ratio is off by up to 6%, and once in a round trip the rate is divided by it. Only the additive
/// step draws rates together. The default is that of HPCC's authors: 5% of 100 Gbps for 100 flows, with round trips of
/// 13 us. So four flows are equal with the step for ten flows, or over such a round trip, and otherwise not.
#[test]
fn hpcc_shares_equally_with_a_step_for_its_flows_or_a_round_trip_of_its_paper() {
    let equal = |shares: &[f64]| shares.iter().all(|share| (0.9..1.1).contains(share));
    let step = hpcc_shares("transport = { hpcc = { control.additive_increase = \"500Mbps\" } }");
    assert!(equal(&step), "{step:?}");
    let far = hpcc_shares("transport = \"hpcc\"\nhost.delay = \"5us\"");
    assert!(equal(&far), "{far:?}");
    let near = hpcc_shares("transport = \"hpcc\"");
    assert!(!equal(&near), "{near:?}");
}
