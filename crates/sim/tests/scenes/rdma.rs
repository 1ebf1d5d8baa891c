//! RDMA's rate controls in whole networks. Their closed forms are `clearway.papers.closed_forms.rdma`.

use crate::{column, run_both, table};

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
