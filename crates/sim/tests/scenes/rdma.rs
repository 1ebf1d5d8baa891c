//! RDMA's rate controls in the simplest scenes of their own papers, against their closed forms.

use clearway_sim::RunResult;
use scenario::Data;

use crate::{column, of_link, run_alone, run_on, table};

/// One switch; `senders` hosts send to host 0 from the start, for `end`.
fn incast(transport: &str, senders: u32, rate: &str, propagation: &str, end: &str, settings: &str) -> RunResult {
    run_alone(&format!(
        r#"
        transport = {{ {transport} }}
        measure = {{ end = "{end}", interval = "5us" }}
        fabric.star = {{ hosts = {}, rate = "{rate}", propagation = "{propagation}" }}
        switch.buffer.per_port.bytes = "20MB"
        {settings}
        [[traffic]]
        sizes = {{ constant = "1GB" }}
        arrivals = "all_at_once"
        pattern = {{ incast = {{ degree = {senders} }} }}
        receivers = "0"
        flows = {senders}
        "#,
        senders + 1
    ))
}

/// The switch's queue at each sample, in bytes, from a time in milliseconds on.
fn queue(result: &RunResult, from_ms: u64) -> Vec<f64> {
    let queues = table(result, "queues");
    let samples = column(queues, "time_ps").iter().zip(column(queues, "longest_bytes"));
    samples.filter(|sample| *sample.0 >= from_ms * 1_000_000_000).map(|sample| *sample.1 as f64).collect()
}

/// What of its links' rates the switch sends, by sample from a time in milliseconds on: of a star with `links`, how many are full.
fn full_links(result: &RunResult, links: u32, from_ms: u64) -> Vec<f64> {
    let utilisation = table(result, "utilisation");
    let Data::F64(shares) = &utilisation.column("utilisation").unwrap().data else { panic!("a ratio") };
    let samples = column(utilisation, "time_ps").iter().zip(shares);
    let from_ps = from_ms * 1_000_000_000;
    samples.filter(|sample| *sample.0 >= from_ps).map(|sample| sample.1 * f64::from(links)).collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The marking probability at which DCQCN's fluid model rests (Zhu et al., "ECN or Delay", CoNEXT 2016, equation 10): for `n` flows on
/// `gbps`, with CNPs and updates of alpha every so many seconds, the paper's timer, no byte counter and F = 5.
fn dcqcn_rests_at(n: f64, gbps: f64, cnp: f64, alpha: f64) -> f64 {
    let packet = 1500.0 * 8.0;
    let (rate, additive, timer) = (gbps * 1e9 / n / packet, 40e6 / packet, 55e-6);
    let excess = |p: f64| {
        let cuts = 1.0 - (1.0 - p).powf(cnp * rate);
        let recoveries = p / ((1.0 - p).powf(-timer * rate) - 1.0);
        let growths = (1.0 - p).powf(5.0 * timer * rate) * recoveries;
        let alpha = 1.0 - (1.0 - p).powf(alpha * rate);
        cuts * cuts * alpha / (recoveries * growths) - cnp * cnp * additive * rate
    };
    let (mut low, mut high) = (1e-9_f64, 0.5_f64);
    for _ in 0..100 {
        let middle = (low * high).sqrt();
        if excess(middle) > 0.0 { high = middle } else { low = middle }
    }
    low
}

#[test]
fn an_incast_of_dcqcn_rests_where_its_fluid_model_does() {
    // The SIGCOMM paper's settings at 40 Gbps, but a steeper ramp: 16 flows rest at 1.6%, above its 1% at the most.
    let dcqcn = r#"dcqcn = { window = "unlimited", control = {
        cnp = { packet = { interval = "50us" } }, alpha_interval = "55us", decrease_interval = "50us", increase_timer = "55us",
        fast_recovery = 5, additive_increase = "40Mbps", hyper_increase = "40Mbps", clamp_target = true, min_rate = "40Mbps" } }"#;
    let marking = r#"switch.marking.ramp = { min = "20KB", max = "200KB", probability_max = 0.1 }"#;
    for flows in [8, 16] {
        let result = incast(dcqcn, flows, "40Gbps", "200ns", "60ms", marking);
        let probability = dcqcn_rests_at(f64::from(flows), 40.0, 50e-6, 55e-6);
        let rests = 20e3 + probability / 0.1 * 180e3;
        let queue = mean(&queue(&result, 20));
        assert!((queue / rests - 1.0).abs() < 0.15, "{flows} flows: {queue} B, the fluid model rests at {rests} B");
        // Beside data on one link, acknowledgements of 40 B on those to the senders.
        let full = mean(&full_links(&result, flows + 1, 20)) / (1.0 + 40.0 / 1500.0);
        assert!((0.99..=1.001).contains(&full), "{flows} flows: {full}");
    }
}

#[test]
fn a_burst_makes_a_long_flow_of_timely_shrink_and_it_recovers_a_step_a_round_trip() {
    let result = run_alone(
        r#"
        transport = { timely = { window = "unlimited" } }
        measure = { end = "20ms", interval = "100us" }
        fabric.star = { hosts = 3, rate = "10Gbps" }
        switch.buffer.per_port.bytes = "20MB"
        [[traffic]]
        name = "long"
        sizes = { constant = "1GB" }
        arrivals = "all_at_once"
        pattern = { incast = { degree = 1 } }
        senders = "1"
        receivers = "0"
        flows = 1
        [[traffic]]
        name = "burst"
        transport = { rdma = { window = "unlimited" } }
        sizes = { constant = "1MB" }
        arrivals = "all_at_once"
        start = "2ms"
        pattern = { incast = { degree = 1 } }
        senders = "2"
        receivers = "0"
        flows = 1
        "#,
    );
    let rates: Vec<f64> = full_links(&result, 3, 0).iter().map(|full| full * 10.0 / (1.0 + 40.0 / 1500.0)).collect();
    // While both send at line rate each round trip is twice the one before. So the first above the lower threshold of 50 us is longer
    // by at least min_rtt / beta = 25 us, and Algorithm 1 takes all. The burst is through 0.8 ms after its start.
    let alone = mean(&rates[..20]);
    assert!((alone / 10.0 - 1.0).abs() < 0.01, "{alone}");
    assert!(rates[31] < 0.2, "{}", rates[31]);
    // Then a step of 10 Mbps for each packet that was sent after the one before it was answered: (RTT / gap, rounded down, + 1) gaps.
    let gap_us = |gbps: f64| 12.0 / gbps;
    let rtt_us = result.info.data_rtt_ps as f64 * 1e-6;
    let (mut gbps, mut took_us) = (1.2, 0.0);
    while gbps < 9.0 {
        took_us += ((rtt_us / gap_us(gbps)).floor() + 1.0) * gap_us(gbps);
        gbps += 0.01;
    }
    let reaches = |gbps: f64| (31..rates.len()).find(|&at| rates[at..at + 3].iter().all(|&rate| rate >= gbps)).unwrap();
    let took = (reaches(9.0) - reaches(1.2)) as f64 * 100.0;
    // Samples are 100 us and, at that, whole packets apart.
    assert!((took - took_us).abs() < 200.0, "{took} us, by Algorithm 1 {took_us}");
}

/// What HPCC rests at with `flows`, as a share of the link: each reduction to eta is followed by an additive step of each flow (HPCC,
/// section 3.2), so R = R eta / U + AI, and U = eta + n AI / C.
fn hpcc_rests_at(flows: f64, gbps: f64) -> f64 {
    0.95 + flows * 0.05 / gbps
}

#[test]
fn flows_of_hpcc_share_a_link_at_its_target_with_no_queue_to_speak_of() {
    for flows in [2u32, 16] {
        let result = incast("hpcc = {}", flows, "100Gbps", "4us", "40ms", "");
        // Acknowledgements of 82 B on the links to senders, for each 1,500 B.
        let load = mean(&full_links(&result, flows + 1, 20)) / (1.0 + 82.0 / 1500.0);
        let rests = hpcc_rests_at(f64::from(flows), 100.0);
        assert!((load - rests).abs() < 0.006, "{flows} flows use {load}, not {rests}");
        // Below the target nothing waits but for packets of paced flows that happen to meet.
        let queue = queue(&result, 20);
        let longest = queue.iter().copied().fold(0.0, f64::max);
        assert!(mean(&queue) < 2.0 * 1500.0 && longest < f64::from(flows) * 1500.0, "{} {longest}", mean(&queue));
        let sent = |host: u32| of_link(&result, &format!("host{host}"), "switch0", "sent_bytes") as f64;
        assert!(flows > 2 || (sent(1) / sent(2) - 1.0).abs() < 0.02);
    }
}

#[test]
fn every_control_runs_over_every_flow_control_without_loss() {
    for transport in ["rdma", "dcqcn", "timely", "hpcc"] {
        for flow_control in schemes::FlowControl::NAMES {
            let result = run_on_both(&format!(
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

/// Runs it on one thread and on two.
fn run_on_both(toml: &str) -> RunResult {
    let (alone, together) = (run_alone(toml), run_on(2, toml));
    assert_eq!(alone.info.digest, together.info.digest, "{toml}");
    alone
}
