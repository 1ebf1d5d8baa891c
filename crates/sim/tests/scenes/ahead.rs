//! Runs that skip what repeats give what whole runs give, to the last bit.

use clearway_sim::Skipped;

use crate::{RunResult, run_alone, run_on, table};

/// A ring of 8 ranks on two racks, each flow of its own link.
fn ring(transport: &str, more: &str) -> String {
    format!(
        r#"
        transport = "{transport}"
        switch.buffer.shared = {{ bytes = "12MB" }}
        fabric.leaf_spine = {{ racks = 2, hosts_per_rack = 4, spines = 4 }}
        {more}
        [[job]]
        name = "train"
        library = {{ all_reduce = "ring" }}
        steps = [{{ all_reduce = {{ bytes = "8MB" }} }}]
        "#
    )
}

/// The same scenario, simulated whole and with what repeats skipped, on one thread and on two. Says what was skipped.
fn skipped(toml: &str) -> Skipped {
    let [one, two] = [1, 2].map(|threads| {
        let ahead = run_on(threads, &format!("fast_forward = \"exact\"\n{toml}"));
        same(&run_on(threads, toml), &ahead);
        ahead.info
    });
    assert_eq!((one.digest, &one.skipped), (two.digest, &two.skipped));
    one.skipped.expect("it was asked for")
}

fn same(whole: &RunResult, ahead: &RunResult) {
    assert_eq!(whole.info.digest, ahead.info.digest);
    let of = |result: &RunResult| {
        let info = &result.info;
        (info.packet_hops, info.events, info.ended, info.end_ps, info.windows, info.flows_completed)
    };
    assert_eq!(of(whole), of(ahead));
    for of in &whole.tables {
        assert_eq!(format!("{of:?}"), format!("{:?}", table(ahead, of.name)), "{}", of.name);
    }
    assert_eq!(whole.tables.len(), ahead.tables.len());
    assert_eq!(format!("{:?}", whole.info.audit), format!("{:?}", ahead.info.audit));
}

/// More than half of all packets are skipped without samples, and a quarter with one every 10 us.
fn pays(transport: &str, more: &str) {
    let share = |skipped: Skipped, hops: u64| {
        assert!(skipped.skips > 0, "{transport}: {:?}", skipped.reason);
        skipped.packet_hops as f64 / hops as f64
    };
    let toml = ring(transport, &format!("measure.interval = \"0s\"\n{more}"));
    let hops = run_alone(&toml).info.packet_hops;
    let (plain, sampled) = (share(skipped(&toml), hops), share(skipped(&ring(transport, more)), hops));
    assert!(plain > 0.5, "{transport}: {plain}");
    assert!(sampled > 0.25, "{transport}: {sampled}");
}

#[test]
fn a_ring_over_rdma_is_skipped() {
    pays("rdma", "flow_control = \"pfc\"");
}

#[test]
fn a_ring_over_tcp_is_skipped() {
    pays("newreno", "");
}

/// The window that it observes is another for each flow, and its share of marks decays all the time.
#[test]
fn a_ring_over_dctcp_is_skipped() {
    pays("dctcp", "");
}
