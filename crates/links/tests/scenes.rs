//! Estimates by single links against closed forms and whole runs.

use clearway_links::{Estimate, estimate};
use run::{Data, Progress, Table};
use scenario::Scenario;

fn read(text: &str) -> Scenario {
    scenario::read(&format!("timing = 'ideal'\n{text}"), "test", &[]).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn estimated(text: &str, threads: usize) -> Estimate {
    let estimate = estimate(&read(text), threads, |_| false).unwrap_or_else(|problem| panic!("{problem}\n{text}"));
    assert!(estimate.info.audit.iter().all(|finding| finding.ok), "{:?}", estimate.info.audit);
    estimate
}

fn whole(text: &str) -> Vec<Table> {
    sim::run(&read(text), 1, |_| false).unwrap_or_else(|problem| panic!("{problem}\n{text}")).tables
}

fn numbers(tables: &[Table], name: &str) -> Vec<u64> {
    let flows = tables.iter().find(|table| table.name == "flows").unwrap();
    match &flows.column(name).unwrap().data {
        Data::U64(values) | Data::OptU64(values) => values.clone(),
        _ => panic!("{name} has no numbers"),
    }
}

const LEAF_SPINE: &str = "fabric.leaf_spine = { racks = 2, hosts_per_rack = 4, spines = 2 }\n";

/// Transports whose flows cross a link alone as they would cross it in the network.
const TRANSPORTS: [&str; 9] = ["dctcp", "newreno", "cubic", "rdma", "dcqcn", "hpcc", "timely", "swift", "udp"];

/// A class for each flow: source, destination, bytes, start in nanoseconds.
fn classes(flows: &[(u32, u32, u64, u64)]) -> String {
    let class = |(index, (src, dst, bytes, start)): (usize, &(u32, u32, u64, u64))| {
        format!(
            "[[traffic]]\nname = 'f{index}'\nsizes.constant = '{bytes}B'\narrivals = 'all_at_once'\nflows = 1\n\
             senders = '{src}'\nreceivers = '{dst}'\nstart = '{start}ns'\n"
        )
    };
    flows.iter().enumerate().map(class).collect()
}

fn one_flow(transport: &str, bytes: u64) -> String {
    format!("{LEAF_SPINE}transport = '{transport}'\n{}", classes(&[(0, 5, bytes, 0)]))
}

#[test]
fn a_flow_alone_takes_its_time_at_packet_level() {
    for transport in TRANSPORTS {
        for bytes in [1, 1_460, 100_000, 3_000_000] {
            let text = one_flow(transport, bytes);
            let (links, packets) = (estimated(&text, 1), whole(&text));
            for column in ["start_ps", "delivered_ps", "completed_ps", "fct_ps", "ideal_ps"] {
                let (ours, theirs) = (numbers(&links.tables, column), numbers(&packets, column));
                assert_eq!(ours, theirs, "{transport}, {bytes} bytes: {column}");
            }
            assert_eq!(links.info.links_simulated, 0);
        }
    }
}

/// 40 MB are beyond the sizes that are simulated alone. Chosen before the first run: within 1%.
#[test]
fn a_long_flow_alone_goes_on_as_it_has_begun() {
    for transport in TRANSPORTS {
        let text = one_flow(transport, 40_000_000);
        let (links, packets) = (estimated(&text, 1), whole(&text));
        let (ours, theirs) = (numbers(&links.tables, "fct_ps")[0], numbers(&packets, "fct_ps")[0]);
        let off = ours as f64 / theirs as f64 - 1.0;
        assert!(off.abs() < 0.01, "{transport}: {ours} instead of {theirs}, {off:+.4}");
        assert!(links.info.packet_hops < 40_000_000 / 1_460 * 4, "{transport}: {:?}", links.info);
    }
}

/// Flows of hosts of one rack to one of them: the last link is the only one where anything waits, and its piece is the
/// rack itself. Chosen before the first run: to the picosecond.
#[test]
fn one_bottleneck_in_a_rack_is_the_packet_level() {
    for transport in TRANSPORTS {
        let flows = [(0, 3, 400_000, 0), (1, 3, 90_000, 2_000), (2, 3, 1_000, 7_000), (4, 5, 20_000, 0)];
        let fabric = "fabric.leaf_spine = { racks = 2, hosts_per_rack = 4, spines = 2 }\n";
        let text = format!("{fabric}transport = '{transport}'\n{}", classes(&flows));
        let (links, packets) = (estimated(&text, 1), whole(&text));
        for column in ["delivered_ps", "completed_ps"] {
            assert_eq!(numbers(&links.tables, column), numbers(&packets, column), "{transport}: {column}");
        }
        assert_eq!(links.info.links_simulated, 1, "{transport}");
    }
}

/// The same from the other racks: what was left out is delay. Chosen before the first run: 2% of each completion time.
/// DCQCN marks at random by default, and in another network other packets: here it marks from a threshold on.
#[test]
fn one_bottleneck_behind_other_links_is_nearly_the_packet_level() {
    let fabric = "fabric.leaf_spine = { racks = 4, hosts_per_rack = 2, spines = 1, spine_rate = '400Gbps' }\n";
    for transport in TRANSPORTS {
        let flows = [(0, 7, 400_000, 0), (2, 7, 900_000, 2_000), (4, 7, 100_000, 7_000), (5, 7, 3_000, 9_000)];
        let marking = if transport == "dcqcn" { "switch.marking.step.threshold = '100KB'\n" } else { "" };
        let text = format!("{fabric}{marking}transport = '{transport}'\n{}", classes(&flows));
        let (links, packets) = (estimated(&text, 1), whole(&text));
        let (ours, theirs) = (numbers(&links.tables, "fct_ps"), numbers(&packets, "fct_ps"));
        for (flow, (&ours, &theirs)) in ours.iter().zip(&theirs).enumerate() {
            let off = ours as f64 / theirs as f64 - 1.0;
            assert!(off.abs() < 0.02, "{transport}, flow {flow}: {ours} instead of {theirs}, {off:+.3}");
        }
    }
}

fn web_search(fabric: &str, transport: &str, rest: &str) -> String {
    format!(
        "seed = 3\n{fabric}transport = '{transport}'\n{rest}[[traffic]]\nname = 'web'\nsizes = 'websearch'\n\
         arrivals.poisson.load = 0.5\nflows = 200\n"
    )
}

#[test]
fn threads_and_again_give_the_same() {
    for rest in ["", "decomposition.sample = 2\n"] {
        for transport in ["dctcp", "dcpim"] {
            let text = web_search(LEAF_SPINE, transport, rest);
            let (one, two) = (estimated(&text, 1), estimated(&text, 2));
            assert_eq!(one.info.digest, two.info.digest, "{transport} {rest}");
            assert_eq!(format!("{:?}", one.tables), format!("{:?}", two.tables), "{transport} {rest}");
            assert_eq!(one.info.flows_completed, 200, "{transport} {rest}");
        }
    }
}

/// One flow meets another at its sender's link and a third at its receiver's. Each takes half of a link from it. It is
/// late by the longer of the two delays and not by their sum: while it has half of the first link, the third is ahead
/// at the second. Within 10% of the packet level, as DCTCP gets less than half of a link from a flow that meets
/// marks at one link only; the sum of both delays is 40% above it.
#[test]
fn a_flow_is_as_late_as_on_its_slowest_link() {
    for sizes in [[4_000_000, 4_000_000], [4_000_000, 2_000_000], [2_000_000, 4_000_000]] {
        let flows = classes(&[(0, 5, 4_000_000, 0), (0, 6, sizes[0], 700), (1, 5, sizes[1], 1_300)]);
        let text = format!("{LEAF_SPINE}transport = 'dctcp'\n{flows}");
        let (links, packets) = (estimated(&text, 1), whole(&text));
        let (ours, theirs) = (numbers(&links.tables, "fct_ps")[0], numbers(&packets, "fct_ps")[0]);
        let off = ours as f64 / theirs as f64 - 1.0;
        assert!(off.abs() < 0.1, "{sizes:?}: {ours} instead of {theirs}, {off:+.3}");
    }
}

/// Eight senders of like load: two of their links are simulated, and flows on the other six draw from these.
#[test]
fn links_of_a_kind_stand_for_the_others() {
    let text = web_search(LEAF_SPINE, "dctcp", "");
    let all = estimated(&text, 1);
    let some = estimated(&format!("decomposition.sample = 2\n{text}"), 1);
    let (all, some) = (all.info, some.info);
    assert_eq!(some.links_simulated + some.links_alike, all.links_simulated);
    assert!(all.links_alike == 0 && some.links_alike > 0 && some.packet_hops < all.packet_hops, "{some:?}");
    assert_eq!(some.flows_completed, 200);
    let enough = estimated(&format!("decomposition.sample = 100\n{text}"), 1);
    assert_eq!(enough.info.digest, all.digest, "no kind has more than eight links");
}

/// Two flows of different hosts whose ways are the same from the second link on meet there, and nowhere else.
#[test]
fn nothing_waits_behind_a_link_that_all_have_crossed() {
    let fabric = "fabric.leaf_spine = { racks = 2, hosts_per_rack = 2, spines = 1, spine_rate = '100Gbps' }\n";
    let flows = classes(&[(0, 2, 2_000_000, 0), (1, 3, 2_000_000, 0)]);
    let estimate = estimated(&format!("{fabric}transport = 'dctcp'\n{flows}"), 1);
    assert_eq!((estimate.info.links_simulated, estimate.info.links_idle), (1, 5));
}

#[test]
fn what_was_simulated_is_there_after_an_interruption() {
    let text = web_search(LEAF_SPINE, "dctcp", "");
    let scenario = read(&text);
    let all = estimate(&scenario, 1, |_| false).unwrap();
    let mut looks = 0;
    let part = estimate(&scenario, 1, |_: Progress| {
        looks += 1;
        looks > 20
    })
    .unwrap();
    assert_eq!(part.info.ended, "interrupted");
    assert!(part.info.flows_completed < all.info.flows_completed);
    let (ours, theirs) = (numbers(&part.tables, "fct_ps"), numbers(&all.tables, "fct_ps"));
    assert!(ours.iter().zip(&theirs).all(|(&ours, &theirs)| ours == theirs || ours == u64::MAX));
}

#[test]
fn progress_goes_from_nothing_to_all() {
    let mut last = 0.0;
    let text = web_search(LEAF_SPINE, "dctcp", "");
    let check = |at: Progress| {
        assert!(at.fraction() >= last && at.fraction() <= 1.0 && at.flows_done <= at.flows, "{at:?}");
        last = at.fraction();
        false
    };
    estimate(&read(&text), 2, check).unwrap();
    assert!(last > 0.9, "{last}");
}

#[test]
fn what_cannot_be_decomposed_is_refused() {
    let cases = [
        ("dctcp", "flow_control = 'pfc'\n", "flow_control", "hold back"),
        ("dctcp", "[[failure]]\nlink = ['leaf0', 'spine1']\nat = '1us'\n", "failure", "routes that change"),
        ("r2c2", "", "transport", "whole network"),
        ("harmony", "", "transport", "whole network"),
        ("fastpass", "", "transport", "whole network"),
        ("uet", "", "transport", "path of its own"),
        ("dctcp", "host.intake_rate = '10Gbps'\n", "host.intake_rate", "several times"),
    ];
    for (transport, rest, key, word) in cases {
        let text = web_search(LEAF_SPINE, transport, rest);
        let problem = estimate(&read(&text), 1, |_| false).map(|_| ()).unwrap_err();
        assert!(problem.key == key && problem.message.contains(word), "{transport} {rest}: {problem:?}");
    }
    let idle = estimated(&web_search(LEAF_SPINE, "dctcp", "measure.packets = {}\nlink.llr = {}\n"), 1);
    let plain = estimated(&web_search(LEAF_SPINE, "dctcp", ""), 1);
    assert_eq!(idle.info.digest, plain.info.digest);
    assert!(idle.info.warnings[0].starts_with("link.llr: a link alone has no errors"), "{:?}", idle.info);
    assert!(idle.info.warnings[1].starts_with("measure.packets: packets cross one link only"), "{:?}", idle.info);
    let torus = web_search("fabric.torus = { dims = [3, 3] }\n", "dcpim", "");
    let problem = estimate(&read(&torus), 1, |_| false).map(|_| ()).unwrap_err();
    assert!(problem.key == "traffic[0]" && problem.message.contains("spread"), "{problem:?}");
}
