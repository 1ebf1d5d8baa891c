//! Estimates of scenarios whose answers arithmetic or theory gives.

use clearway_fluid::{Estimate, estimate};
use proptest::prelude::*;
use run::{Data, Progress, Table};
use scenario::{Scenario, read};

fn scenario(text: &str) -> Scenario {
    read(&format!("timing = 'ideal'\n{text}"), "test", &[]).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn run(text: &str) -> Estimate {
    let estimate = estimate(&scenario(text), |_| false).unwrap_or_else(|problem| panic!("{problem:?}\n{text}"));
    for finding in &estimate.info.audit {
        assert!(finding.ok, "{finding:?}\n{text}");
    }
    estimate
}

/// The same at packet level.
fn packets(text: &str) -> Vec<Table> {
    sim::run(&scenario(text), 1, |_| false).unwrap_or_else(|problem| panic!("{problem:?}\n{text}")).tables
}

fn table<'a>(estimate: &'a Estimate, name: &str) -> &'a Table {
    estimate.tables.iter().find(|table| table.name == name).unwrap()
}

fn whole(table: &Table, column: &str) -> Vec<u64> {
    match &table.column(column).unwrap().data {
        Data::U64(values) | Data::OptU64(values) => values.clone(),
        Data::U32(values) => values.iter().map(|&value| u64::from(value)).collect(),
        other => panic!("{other:?}"),
    }
}

fn real(table: &Table, column: &str) -> Vec<f64> {
    let Data::F64(values) = &table.column(column).unwrap().data else { panic!("{column} is no ratio") };
    values.clone()
}

fn names(table: &Table, column: &str) -> Vec<String> {
    let Data::Names { index, names } = &table.column(column).unwrap().data else { panic!("{column} has no names") };
    index.iter().map(|&index| names[index as usize].clone()).collect()
}

fn fct(estimate: &Estimate) -> Vec<u64> {
    whole(table(estimate, "flows"), "fct_ps")
}

fn fct_of(tables: &[Table]) -> Vec<u64> {
    whole(tables.iter().find(|table| table.name == "flows").unwrap(), "fct_ps")
}

/// A class for each flow: source, destination, bytes, start in nanoseconds.
fn classes(flows: &[(u32, u32, u64, u64)]) -> String {
    let class = |(index, (src, dst, bytes, start)): (usize, &(u32, u32, u64, u64))| {
        format!(
            "[[traffic]]\nname = 'f{index}'\nsizes.constant = '{bytes}B'\narrivals = 'all_at_once'\nflows = 1\n\
             senders = '{src}'\n\
             receivers = '{dst}'\nstart = '{start}ns'\n"
        )
    };
    flows.iter().enumerate().map(class).collect()
}

/// A star of 100 Gbps, at which 1,250 B take 100 ns, without headers to speak of: 10 B in packets of 1,260.
const STAR: &str = "transport = 'dcpim'\n[fabric.star]\nhosts = 8\n[host]\nmtu = '1260B'\nheader = '10B'\n";

#[test]
fn two_flows_to_one_host_take_twice_as_long() {
    let alone = fct(&run(&format!("{STAR}{}", classes(&[(0, 2, 1_250_000, 0)]))))[0];
    let both = fct(&run(&format!("{STAR}{}", classes(&[(0, 2, 1_250_000, 0), (1, 2, 1_250_000, 0)]))));
    // A thousand packets of 1,260 B: 100.8 us on the wire, and as much again for the other flow's.
    assert_eq!(both, [alone + 100_800_000; 2]);
}

#[test]
fn headers_are_those_of_the_flows_transport() {
    // R2C2's paper states the bytes of its headers, so that `host.header` does not count for its data.
    let flows = classes(&[(0, 5, 1461, 0), (1, 2, 125_000, 20_000)]);
    for (transport, header) in [("r2c2", 20), ("r2c2", 90), ("dcpim", 20), ("dcpim", 90)] {
        let fabric = "[fabric.torus]\ndims = [3, 3]\n";
        let text = format!("transport = '{transport}'\n{fabric}[host]\nmtu = '1500B'\nheader = '{header}B'\n{flows}");
        let estimate = run(&text);
        let flows = table(&estimate, "flows");
        assert_eq!(whole(flows, "fct_ps"), whole(flows, "ideal_ps"), "{transport} {header}");
    }
}

#[test]
fn a_flow_that_comes_later_takes_half_from_then_on() {
    // a has the link to itself for 50.4 us, half its bytes; then both have half: a ends at 151.2 us, when b has sent
    // half of its own and goes on alone: it ends at 201.6 us, 151.2 us after its start.
    let text = format!("{STAR}{}", classes(&[(0, 2, 1_250_000, 0), (1, 2, 1_250_000, 50_400)]));
    let alone = fct(&run(&format!("{STAR}{}", classes(&[(0, 2, 1_250_000, 0)]))))[0];
    assert_eq!(fct(&run(&text)), [alone + 50_400_000, alone + 50_400_000]);
}

#[test]
fn other_pairs_are_not_disturbed() {
    let estimate =
        run(&format!("{STAR}{}", classes(&[(0, 2, 1_250_000, 0), (1, 3, 1_250_000, 0), (2, 0, 1_250_000, 0)])));
    assert_eq!(real(table(&estimate, "flows"), "slowdown"), [1.0; 3]);
}

#[test]
fn parking_lot_on_a_dumbbell() {
    // The bottleneck of 25 Gbps is shared by three; a fourth flow meets one of them at its receiver alone.
    let text = format!(
        "transport = 'dcpim'\nmeasure.end = '1us'\n[fabric.dumbbell]\nhosts_per_side = 4\nbottleneck_rate = '30Gbps'\n\
         [host]\nmtu = '1260B'\n\
         header = '10B'\n{}",
        classes(&[
            (0, 4, 1_250_000_000, 0),
            (1, 5, 1_250_000_000, 0),
            (2, 6, 1_250_000_000, 0),
            (7, 4, 1_250_000_000, 0)
        ])
    );
    let estimate = run(&text);
    let links = table(&estimate, "links");
    let used = |from: &str, to: &str| {
        let place =
            names(links, "from_node").iter().zip(names(links, "to_node")).position(|(a, b)| a == from && b == to);
        real(links, "utilisation")[place.unwrap()]
    };
    assert!((used("host0", "left") - 0.1).abs() < 1e-9);
    assert!((used("left", "right") - 1.0).abs() < 1e-9);
    assert!((used("host7", "right") - 0.9).abs() < 1e-9, "what the bottleneck leaves at host 4");
    assert_eq!(estimate.info.flows_completed, 0);
    assert_eq!(names(table(&estimate, "flows"), "reason"), ["not delivered"; 4].map(str::to_owned));
}

#[test]
fn a_flow_is_no_faster_than_its_transport_sends() {
    let flow = classes(&[(0, 2, 1_250_000, 0), (1, 2, 1_250_000, 0)]);
    let at = |rate: &str| {
        let udp = STAR.replace("'dcpim'", &format!("{{ udp = {{ rate = '{rate}' }} }}"));
        fct(&run(&format!("{udp}{flow}")))
    };
    // 1,260,000 B take 100.8 us at 100 Gbps; two at 25 Gbps do not meet, two at 75 Gbps have half the link each.
    let alone = fct(&run(&format!("{STAR}{}", classes(&[(0, 2, 1_250_000, 0)]))))[0];
    assert_eq!(at("25Gbps"), [alone + 3 * 100_800_000; 2]);
    assert_eq!(at("75Gbps"), [alone + 100_800_000; 2]);
}

#[test]
fn a_host_that_takes_in_slowly_is_shared_as_a_link_is() {
    let slow = "intake_rate = '50Gbps'\n";
    let alone = fct(&run(&format!("{STAR}{}", classes(&[(0, 2, 1_250_000, 0)]))))[0];
    let both = fct(&run(&format!("{STAR}{slow}{}", classes(&[(0, 2, 1_250_000, 0), (1, 2, 1_250_000, 0)]))));
    assert_eq!(both, [alone + 3 * 100_800_000; 2]);
}

#[test]
fn flows_that_wait_for_others_start_when_those_end() {
    let text = "transport = 'udp'\n[fabric.star]\nhosts = 2\n[[traffic]]\nsizes.constant = '50KB'\nflows = 6\n\
                senders = '0'\n\
                receivers = '1'\narrivals.closed_loop = { outstanding = 1, think = '3us' }\n";
    let estimate = run(text);
    let ours = table(&estimate, "flows");
    let theirs = packets(text);
    for column in ["start_ps", "delivered_ps", "completed_ps", "fct_ps", "slowdown"] {
        assert_eq!(ours.column(column), theirs[0].column(column));
    }
}

#[test]
fn hashed_flows_take_the_paths_of_their_packets() {
    for fabric in [
        "fat_tree = { k = 4 }",
        "leaf_spine = { racks = 3, hosts_per_rack = 4, spines = 4 }",
        "leaf_spine = { racks = 4, hosts_per_rack = 3, homes = 2 }",
        "rails = { blocks = 2, servers_per_block = 6, rails = 4, spines = 3 }",
        "multi_plane = { planes = 3, racks = 3, hosts_per_rack = 4 }",
    ] {
        for (balancing, seed) in [("'ecmp'", 1), ("'ecmp'", 2), ("{ skewed = { skew = 0.6 } }", 3)] {
            let text = format!(
                "transport = 'udp'\nseed = {seed}\nfabric.{fabric}\nswitch.balancing = {balancing}\n{}",
                classes(&[(0, 9, 100_000, 0), (1, 10, 100_000, 0), (11, 2, 100_000, 0), (5, 8, 100_000, 0)])
            );
            // Answers are a packet a flow, so that a link with more bytes than those has a flow.
            let loaded = |table: &Table| -> Vec<usize> {
                let sent = whole(table, "sent_bytes").into_iter().enumerate();
                sent.filter(|sent| sent.1 > 1_000).map(|sent| sent.0).collect()
            };
            let theirs = packets(&text);
            let theirs = theirs.iter().find(|table| table.name == "links").unwrap();
            assert_eq!(loaded(table(&run(&text), "links")), loaded(theirs), "{text}");
        }
    }
}

/// Packets that are spread use all links of both hosts, and shortest paths to the nearest of the receiver's switches.
#[test]
fn sprayed_flows_take_all_links_of_their_hosts() {
    let planes = "multi_plane = { planes = 2, racks = 2, hosts_per_rack = 4 }";
    for fabric in [planes, "rails = { blocks = 2, servers_per_block = 4, rails = 2, spines = 3 }"] {
        for flow in [(0, 1, 10_000_000, 0), (0, 5, 10_000_000, 0)] {
            let text = format!("transport = 'udp'\nfabric.{fabric}\nswitch.balancing = 'spray'\n{}", classes(&[flow]));
            let estimate = run(&text);
            let theirs = packets(&text);
            let links = theirs.iter().find(|table| table.name == "links").unwrap();
            // Packets are whole, and which link takes the next is drawn between switches: 4 standard deviations.
            for (ours, theirs) in
                whole(table(&estimate, "links"), "sent_bytes").into_iter().zip(whole(links, "sent_bytes"))
            {
                let (ours, theirs) = (ours as f64, theirs as f64);
                let room = 4.0 * (ours * 1_500.0).sqrt() + 3_000.0;
                assert!((ours - theirs).abs() < room, "{text}: {ours} for {theirs}");
            }
            // Packets that two switches send to one link at a time wait for each other. Each of n packets takes one of
            // two links by chance, so that one has n / 2 +- sqrt(n) / 2 of them.
            let late = fct_of(&theirs)[0] as f64 - fct(&estimate)[0] as f64;
            let packet_ps = 120_000.0;
            let room = 4.0 * (10_000_000.0f64 / 1_460.0).sqrt() / 2.0 * packet_ps;
            assert!((0.0..room).contains(&late), "{text}: {late} ps, {room}");
        }
    }
}

/// Two flows from one server that a hash puts on different rails go at the rate of a rail each, and two on one rail
/// share it.
#[test]
fn flows_of_a_server_share_the_rails_that_they_are_hashed_to() {
    let flows: Vec<(u32, u32, u64, u64)> = (1..5).map(|to| (0, to, 1_000_000, 0)).collect();
    for seed in 1..6 {
        let text = format!(
            "transport = 'hpcc'\nseed = {seed}\nswitch.balancing = 'ecmp'\n\
             fabric.rails = {{ blocks = 1, servers_per_block = 6, rails = 2, spines = 0 }}\n{}",
            classes(&flows)
        );
        let (ours, theirs) = (fct(&run(&text)), fct_of(&packets(&text)));
        for (ours, theirs) in ours.iter().zip(&theirs) {
            let ratio = *ours as f64 / *theirs as f64;
            assert!((0.85..1.05).contains(&ratio), "{text}: {ours} for {theirs}");
        }
    }
}

/// A scenario whose digest no machine may change.
const KNOWN: &str = "transport = 'dctcp'\nfabric.fat_tree = { k = 4 }\n[[traffic]]\nsizes = 'imc10'\n\
                     arrivals.poisson = { load = 0.8 }\nflows = 2000\n";

#[test]
fn the_result_is_the_scenarios_alone() {
    let twice = [run(KNOWN), run(KNOWN)];
    assert_eq!(twice[0].tables, twice[1].tables);
    assert_eq!(twice[0].info.digest, twice[1].info.digest);
    // As on the machine where this was written.
    assert_eq!(twice[0].info.digest, "fa95e9391a5dc1b6");
    assert_ne!(run(&format!("seed = 2\n{KNOWN}")).info.digest, twice[0].info.digest);
}

#[test]
fn what_there_is_when_it_is_stopped_is_kept() {
    let whole_run = run(KNOWN);
    let mut calls = 0;
    let stop = |progress: Progress| {
        calls += 1;
        assert!(progress.flows_done <= progress.flows && progress.now < progress.horizon);
        calls == 3
    };
    let part = estimate(&scenario(KNOWN), stop).unwrap();
    assert_eq!((part.info.ended, calls), ("interrupted", 3));
    assert!(part.info.audit.iter().all(|finding| finding.ok), "{:?}", part.info.audit);
    assert!(part.info.flows_completed > 0 && part.info.flows_completed < 2_000);
    // What had been delivered by then was delivered at the same times.
    let (before, after) = (table(&part, "flows"), table(&whole_run, "flows"));
    let delivered = whole(before, "delivered_ps").into_iter().zip(whole(after, "delivered_ps"));
    for (part_ps, whole_ps) in delivered {
        assert!(part_ps == whole_ps || part_ps == u64::MAX && whole_ps > part.info.end_ps, "{part_ps} {whole_ps}");
    }
}

#[test]
fn what_is_not_known_is_refused() {
    let flows = classes(&[(0, 2, 1_250_000, 0)]);
    for (settings, key, words) in [
        (
            "failure = [{ at = '1us', link = ['host0', 'switch0'] }]\n",
            "failure",
            "links and switches do not fail at flow level",
        ),
        (
            "sharing = 'aq'\nentity = \
             [{ name = 'a', hosts = '0', request = [{ share.absolute = '1Gbps', position = 'ingress' }] }]\n",
            "sharing",
            "max-min fairly",
        ),
    ] {
        let problem = estimate(&scenario(&format!("{settings}{STAR}{flows}")), |_| false).unwrap_err();
        assert_eq!(problem.key, key);
        assert!(problem.message.contains(words), "{problem:?}");
    }
    let idle = run(&format!("measure.arrivals = ['host1']\n{STAR}{flows}"));
    assert!(idle.info.warnings[0].starts_with("measure.arrivals: flow level has no packets"), "{:?}", idle.info);
}

#[test]
fn a_short_interval_grows_until_its_samples_fit() {
    let flows = classes(&[(0, 2, 1_250_000, 0)]);
    let few = "measure.interval = '7ps'\nmeasure.rows_max = 300\n";
    let estimated = estimate(&scenario(&format!("{few}{STAR}{flows}")), |_| false).expect("it fits");
    let table = estimated.tables.iter().find(|table| table.name == "utilisation").expect("samples");
    let rows = table.columns[0].data.len();
    // A hundred for each of three tiers at most, of which a star has one: when one more would come, they are halved.
    assert!((50..=100).contains(&rows), "{rows}");
}

fn fabrics() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "leaf_spine = { racks = 3, hosts_per_rack = 3, spines = 2, spine_rate = '100Gbps' }",
        "leaf_spine = { racks = 2, hosts_per_rack = 4, spines = 3, oversubscription = 16.0 }",
        "fat_tree = { k = 4 }",
        "fat_tree = { k = 4, oversubscription = 4.0, propagation = '3us' }",
        "dumbbell = { hosts_per_side = 3, bottleneck_rate = '25Gbps' }",
        "star = { hosts = 5, switch_delay = '0s' }",
        "torus = { dims = [3, 4] }",
        "mesh = { dims = [2, 2, 2], hosts_per_node = 2, rate = '40Gbps' }",
    ])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_lone_flow_takes_its_ideal(
        fabric in fabrics(),
        ends in (0u32..5, 1u32..5),
        bytes in prop::sample::select(vec![1u64, 40, 1_460, 1_461, 14_600, 100_000, 12_345_678]),
        completion in prop::sample::select(vec!["delivered", "acknowledged"]),
        cut_through in any::<bool>(),
    ) {
        let (src, dst) = (ends.0, (ends.0 + ends.1) % 5);
        let flow = classes(&[(src, dst, bytes, 7)]);
        let text = format!(
            "transport = 'dcpim'\nmeasure.completion = '{completion}'\nfabric.{fabric}\nhost.delay = '225ns'\n\
             switch = {{ balancing = 'spray', cut_through = {cut_through} }}\n{flow}"
        );
        let estimate = run(&text);
        prop_assert_eq!(fct(&estimate), whole(table(&estimate, "flows"), "ideal_ps"));
        prop_assert_eq!(real(table(&estimate, "flows"), "slowdown"), vec![1.0]);
    }

    #[test]
    fn what_always_holds_holds(
        fabric in fabrics(),
        balancing in prop::sample::select(vec!["ecmp", "spray"]),
        sizes in prop::sample::select(vec!["imc10", "websearch"]),
        seed in 0u64..1_000,
        end in prop::sample::select(vec!["", "measure.end = '300us'\n"]),
    ) {
        let text = format!(
            "transport = 'dctcp'\nseed = {seed}\n{end}fabric.{fabric}\nswitch.balancing = '{balancing}'\n\
             [[traffic]]\nsizes = '{sizes}'\narrivals.poisson = {{ load = 0.7, of = 'narrowest_link' }}\nflows = 300\n"
        );
        let estimate = run(&text);
        let (flows, links) = (table(&estimate, "flows"), table(&estimate, "links"));
        let all = end.is_empty();
        prop_assert_eq!(estimate.info.ended, if estimate.info.flows_completed == 300 { "goal" } else { "horizon" });
        prop_assert!(!all || estimate.info.flows_completed == 300);
        prop_assert!(real(links, "utilisation").iter().all(|used| (-1e-9..1.0 + 1e-9).contains(used)));
        // What hosts send is what hosts receive, and if all is done, all that there was with its headers.
        let sent = |tier: &str| -> u64 {
            names(links, "tier").iter().zip(whole(links, "sent_bytes")).filter(|(of, _)| *of == tier).map(|(_,
                bytes)| bytes).sum()
        };
        let hosts = 24;
        prop_assert!(sent("from_host").abs_diff(sent("to_host")) <= hosts);
        if all {
            let wire: u64 = whole(flows, "bytes").iter().map(|bytes| bytes + bytes.div_ceil(1_460) * 40).sum();
            prop_assert_eq!(sent("from_host"), wire);
        }
        let faster = real(flows, "slowdown").into_iter().filter(|slowdown| *slowdown < 1.0).count();
        prop_assert_eq!(faster, 0);
        // Utilisation over time adds up to the same bytes, but for the last interval, which is cut off.
        let samples = table(&estimate, "utilisation");
        let carried: f64 = names(samples, "tier").iter().zip(real(samples, "utilisation")).filter(|(of,
            _)| *of == "to_host")
            .map(|(_, used)| used).sum();
        let capacity: u64 = names(links, "tier").iter().zip(whole(links, "rate_bps")).filter(|(of, _)| *of == "to_host")
            .map(|(_, rate)| rate).sum();
        let bytes = carried * capacity as f64 * 10e-6 / 8.0;
        let last = capacity as f64 * 10e-6 / 8.0;
        prop_assert!(bytes <= sent("to_host") as f64 + 10.0 && bytes + last >= sent("to_host") as f64, "{} {}", bytes,
            sent("to_host"));
    }
}

/// One link, Poisson arrivals, processor sharing: whatever the sizes, a flow of size x takes x / (1 - load) on average
/// (Kleinrock, "Queueing Systems" volume 2, section 4.4).
#[test]
fn a_single_link_is_a_processor_sharing_queue() {
    for sizes in ["{ constant = '1MB' }", "'imc10'", "{ uniform = { min = '1KB', max = '1MB' } }"] {
        for load in [0.3, 0.6, 0.8] {
            // Slowdowns of transfers, batch by batch so that their spread says how sure the mean is.
            let means: Vec<f64> = (0..20)
                .map(|seed| {
                    let estimate = run(&format!(
                        "transport = 'dcpim'\nseed = {seed}\nmeasure.interval = '0s'\n[fabric.dumbbell]\n\
                     hosts_per_side = 50\nbottleneck_rate = '1Gbps'\n\
                     host_rate = '100Gbps'\n[host]\nmtu = '9000B'\nheader = '1B'\n[[traffic]]\nsizes = {sizes}\n\
                     senders = '0-49'\nreceivers = '50-99'\nflows = 4000\n\
                     arrivals.poisson = {{ load = {load}, of = 'narrowest_link' }}\n"
                    ));
                    let flows = table(&estimate, "flows");
                    let wire =
                        whole(flows, "bytes").into_iter().map(|bytes| (bytes + bytes.div_ceil(8_999)) as f64 * 8_000.0);
                    // By work: the mean transfer over the mean lone transfer is 1 / (1 - load) exactly, and weighs
                    // large
                    // flows most.
                    let times: Vec<(f64, f64)> = whole(flows, "fct_ps")
                        .into_iter()
                        .zip(whole(flows, "ideal_ps"))
                        .zip(wire)
                        .map(|((fct, ideal), wire)| ((fct - ideal) as f64 + wire, wire))
                        .collect();
                    times.iter().map(|time| time.0 / time.1).sum::<f64>() / times.len() as f64
                })
                .collect();
            let mean = means.iter().sum::<f64>() / 20.0;
            let error = (means.iter().map(|of| (of - mean) * (of - mean)).sum::<f64>() / 19.0 / 20.0).sqrt();
            let theory = 1.0 / (1.0 - load);
            // The first flows meet an empty link, a matter of the relaxation time over the run: less than a percent
            // here.
            assert!(
                (mean - theory).abs() < 3.0 * error + 0.01 * theory,
                "{sizes} at {load}: {mean} +- {error}, not {theory}"
            );
        }
    }
}

/// A job on a star of 100 Gbps, with wires of 1 us.
fn job(hosts: u32, job: &str) -> Estimate {
    run(&format!(
        "transport = 'udp'\nhost.delay = '0s'\n\
         fabric.star = {{ hosts = {hosts}, rate = '100Gbps', propagation = '1us', switch_delay = '0s' }}\n\
         [[job]]\n{job}\n"
    ))
}

fn job_time(estimate: &Estimate) -> u64 {
    let jobs = estimate.tables.iter().find(|table| table.name == "jobs").expect("a table of jobs");
    match &jobs.column("time_ps").expect("times").data {
        Data::OptU64(times) => times.iter().sum(),
        data => panic!("{data:?}"),
    }
}

/// Picoseconds of bytes on the wire at 100 Gbps, in packets of 1,460 B with 40 B of headers.
fn wire_ps(bytes: u64) -> u64 {
    (bytes + bytes.div_ceil(1460) * 40) * 80
}

/// Two wires and a packet's store-and-forward.
const LATENCY_PS: u64 = 2_120_000;

/// The closed forms that packet level holds to as well (`crates/sim/tests/scenes/jobs.rs`).
#[test]
fn jobs_take_the_time_that_arithmetic_gives() {
    let ring = 14 * (wire_ps(730_000) + LATENCY_PS);
    let halving: u64 = (1..=3).map(|step| 2 * (wire_ps(5_840_000 >> step) + LATENCY_PS)).sum();
    let everybody = 7 * wire_ps(730_000) + LATENCY_PS;
    for (steps, expected) in [
        ("all_reduce = { bytes = '5840000B' }", ring),
        ("all_reduce = { bytes = '5840000B', algorithm = 'halving_doubling' }", halving),
        ("all_to_all = { bytes = '5840000B', library = { slots = 100 } }", everybody),
    ] {
        let time = job_time(&job(8, &format!("steps = [{{ compute = '100us' }}, {{ {steps} }}]")));
        let off = time as f64 / (100_000_000 + expected) as f64 - 1.0;
        assert!(off.abs() < 0.01, "{steps}: {time} for {expected}: {off}");
    }
}

/// Two jobs that share each NIC have half of it each, and alone all of it. One that is alone is not slowed down.
#[test]
fn a_job_beside_another_takes_twice_as_long_as_alone() {
    let steps = "steps = [{ all_reduce = { bytes = '2920000B' } }]";
    let two = job(2, &format!("{steps}\n[[job]]\nname = 'other'\n{steps}\n[measure]\nalone = true"));
    let jobs = two.tables.iter().find(|table| table.name == "jobs").expect("a table of jobs");
    let Data::OptU64(alone) = &jobs.column("alone_ps").expect("it was asked for").data else { panic!("{jobs:?}") };
    let Data::F64(slowdown) = &jobs.column("slowdown").expect("it was asked for").data else { panic!("{jobs:?}") };
    let expected = 2 * (wire_ps(1_460_000) + LATENCY_PS);
    for row in 0..2 {
        assert!((alone[row] as f64 / expected as f64 - 1.0).abs() < 0.01, "{alone:?}");
        let (one, both) = (wire_ps(1_460_000) as f64, LATENCY_PS as f64);
        assert!((slowdown[row] / ((2.0 * one + both) / (one + both)) - 1.0).abs() < 0.01, "{slowdown:?}");
    }
}

/// What a rank computes after the last message belongs to the job, and to the estimate.
#[test]
fn a_job_ends_with_its_last_computation() {
    let estimate = job(4, "steps = [{ all_reduce = { bytes = '58400B' } }, { compute = '1ms' }]");
    let expected = 6 * (wire_ps(14_600) + LATENCY_PS) + 1_000_000_000;
    assert_eq!((estimate.info.ended, estimate.info.end_ps), ("goal", job_time(&estimate)));
    assert!((job_time(&estimate) as f64 / expected as f64 - 1.0).abs() < 0.01);
}

/// An all-reduce of a thousand ranks, two million messages.
#[test]
#[ignore = "some seconds"]
fn a_thousand_ranks() {
    let time = job_time(&job(1_024, "steps = [{ all_reduce = { bytes = '1GB' } }]"));
    let expected = 2 * 1_023 * (wire_ps(1_000_000_000 / 1_024) + LATENCY_PS);
    assert!((time as f64 / expected as f64 - 1.0).abs() < 0.01, "{time} for {expected}");
}

/// Rounds of collectives, many ranks a host, of a job whose messages have a row each or not.
fn job_with_rows(rows_max: u64, more: &str) -> String {
    format!(
        r#"
        transport = "udp"
        measure = {{ interval = "0s", rows_max = {rows_max}{more} }}
        fabric.leaf_spine = {{ racks = 2, hosts_per_rack = 3 }}
        [[job]]
        name = "train"
        ranks_per_host = 4
        iterations = 3
        library = {{ channels = 2, chunk = "20KB", slots = 2, latency = "300ns" }}
        steps = [
            {{ compute = "20us" }},
            {{ all_reduce = {{ bytes = "900KB" }} }},
            {{ all_gather = {{ bytes = "500KB", among = {{ size = 4 }}, beside = true }} }},
            {{ all_to_all = {{ bytes = "300KB", among = {{ size = 6, stride = 4 }} }} }},
            {{ reduce_scatter = {{ bytes = "700KB" }} }},
        ]
        stragglers = [{{ rank = 5, factor = 1.7 }}]
        "#
    )
}

#[test]
fn a_job_that_is_noted_in_sum_has_the_tables_of_one_that_is_noted_step_by_step() {
    for end in ["", ", end = \"400us\""] {
        let [singly, in_sum] = [1 << 21, 100].map(|rows| run(&job_with_rows(rows, end)));
        assert_eq!(singly.info.digest, in_sum.info.digest);
        assert_eq!((singly.info.end_ps, &singly.info.ended), (in_sum.info.end_ps, &in_sum.info.ended));
        assert_eq!(singly.info.flows_completed, in_sum.info.flows_completed);
        let rest = in_sum.info.rest.unwrap();
        let all = |name| whole(table(&singly, "flows"), name);
        assert_eq!((singly.info.rest, rest.flows), (None, singly.info.flows - 100));
        let without: Vec<usize> = (100..singly.info.flows as usize).collect();
        let (delivered, sizes) = (all("delivered_ps"), all("bytes"));
        let bytes = without.iter().filter(|&&flow| delivered[flow] != u64::MAX).map(|&flow| sizes[flow]);
        assert_eq!(rest.delivered_bytes, bytes.sum::<u64>());
        let times = |name| {
            let times = all(name);
            without.iter().map(|&flow| times[flow]).filter(|&at| at != u64::MAX).collect::<Vec<u64>>()
        };
        assert_eq!(rest.first_start_ps, times("start_ps").into_iter().min());
        assert_eq!(rest.last_delivery_ps, times("delivered_ps").into_iter().max());
        assert!(singly.info.warnings.is_empty());
        assert!(in_sum.info.warnings[0].starts_with("measure.rows_max: the job \"train\" has more"));
        assert_eq!(table(&in_sum, "flows").len(), 100);
        let first: Vec<u64> = fct(&singly)[..100].to_vec();
        assert_eq!(fct(&in_sum), first);
        assert!(table(&in_sum, "critical").is_empty() && !table(&singly, "critical").is_empty());
        assert_eq!(table(&singly, "collectives").len(), 3 * (1 + 6 + 4 + 1));
        for name in ["collectives", "ranks", "jobs", "links"] {
            for column in &table(&singly, name).columns {
                let other = table(&in_sum, name).column(column.name).unwrap();
                let said = column.name.starts_with("critical");
                assert_eq!(
                    format!("{:?}", column.data) == format!("{:?}", other.data),
                    !said,
                    "{name}.{}",
                    column.name
                );
            }
        }
    }
}
