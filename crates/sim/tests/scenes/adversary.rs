//! The adversary of Harmony's Theorem 3.1 on the simulator: what `harmony::adversary` works out in packet times, on
//! real links.
//!
//! A tree of three switches on every path. Packets leave their hosts at the rate of a virtual link, so UDP at that rate
//! is all that it takes.

use std::fmt::Write;

use clearway_sim::RunResult;
use transports::harmony::adversary::{self, Delay, Meeting};
use transports::harmony::theory;
use units::{Bytes, HostId, Time};
use workload::{Trace, TraceFlow, Traffic};

use crate::{check, column, of_flows, scenario, table};

const PACKET: Bytes = Bytes(1_500);
/// A packet at 100 Gbps.
const PACKET_TIME_PS: u64 = 120_000;

/// A port at the third switch; behind it K ports at second switches, with K at first switches behind each and K hosts
/// behind those. Of the K messages of a port one goes on, the last; the others go to hosts of the switch where they
/// come out.
fn tree(k: u32) -> String {
    let mut graph = String::from("switch third\nhost sink\nlink third sink 100Gbps 500ns\n");
    for a in 0..k {
        writeln!(graph, "switch second{a}\nlink second{a} third 100Gbps 500ns").unwrap();
        for other in 0..k {
            writeln!(graph, "host out{a}.{other}\nlink third out{a}.{other} 100Gbps 500ns").unwrap();
        }
        for b in 0..k {
            // Of packets that come at once a victim's is served last: its link is longer.
            let ns = if b == k - 1 { 501 } else { 500 };
            writeln!(graph, "switch first{a}.{b}\nlink first{a}.{b} second{a} 100Gbps {ns}ns").unwrap();
            for c in 0..k {
                writeln!(graph, "host aside{a}.{b}.{c}\nlink second{a} aside{a}.{b}.{c} 100Gbps 500ns").unwrap();
                writeln!(graph, "host from{a}.{b}.{c}\nlink first{a}.{b} from{a}.{b}.{c} 100Gbps 500ns").unwrap();
            }
        }
    }
    graph
}

/// What each host sends: as the adversary says for the port that it meets, and for the next if it goes on.
fn messages(k: u32, hosts: &[String], meetings: &[Meeting]) -> Vec<TraceFlow> {
    let host = |name: String| HostId::from(hosts.iter().position(|known| *known == name).expect("it is in the tree"));
    let mut flows = Vec::new();
    for (a, b, c) in (0..k * k * k).map(|i| (i / k / k, i / k % k, i % k)) {
        let (first, second) = (c == k - 1, b == k - 1);
        let packets = match (first, second) {
            (false, _) => meetings[0].others_packets,
            (true, false) => meetings[1].others_packets,
            (true, true) => meetings[2].arrivals.len(),
        };
        let later = meetings[0].victim_later * u64::from(first) + meetings[1].victim_later * u64::from(second);
        // Of packets that come at once a victim's is served last: it comes a little later.
        let after = 1_000 * (u64::from(first) + u64::from(second));
        let dst = match (first, second) {
            (false, _) => host(format!("aside{a}.{b}.{c}")),
            (true, false) => host(format!("out{a}.{b}")),
            (true, true) => host("sink".to_owned()),
        };
        flows.push(TraceFlow {
            src: host(format!("from{a}.{b}.{c}")),
            dst,
            bytes: packets as u64 * 1_460,
            start: Time::from_ps(later * PACKET_TIME_PS + after),
            after: None,
            line: 0,
        });
    }
    flows
}

fn longest_queue(k: u32) -> u64 {
    let path = format!("{}/adversary-{k}.graph", env!("CARGO_TARGET_TMPDIR"));
    std::fs::write(&path, tree(k)).unwrap();
    let toml = format!(
        r#"
        transport = {{ udp = {{ rate = "{}bps" }} }}
        fabric = {{ file = {{ path = "{}" }} }}
        [[traffic]]
        flows = 1
        sizes = {{ constant = "1460B" }}
        arrivals = "all_at_once"
        "#,
        100_000_000_000 / u64::from(k),
        path
    );
    let mut scenario = scenario(&toml);
    let fabric = scenario.fabric.build().unwrap();
    let meetings = adversary::worst(k, 3);
    let flows = messages(k, &fabric.names[..fabric.hosts as usize], &meetings);
    scenario.traffic = vec![Traffic::from_trace("adversary", Trace::new("adversary", flows).unwrap())];
    let result = clearway_sim::run(&scenario, 1, |_| false).unwrap_or_else(|problem| panic!("{problem}"));
    check(&result);
    // The packet that begins to leave at once is counted when it comes.
    *column(table(&result, "links"), "queued_bytes_max").iter().max().unwrap()
}

#[test]
fn queues_at_the_third_switch_exceed_theorem_3_1_and_keep_what_is_proven() {
    // Virtual links whose rates divide evenly, so that packets meet to the picosecond.
    for k in [4, 5, 8] {
        let (longest, worst) = (longest_queue(k), &adversary::worst(k, 3)[2]);
        assert_eq!(longest, worst.queued_packets * PACKET.0, "K = {k}");
        assert!(longest > theory::queue_max(3, k, PACKET).0, "K = {k}: {longest}");
        assert!(longest <= adversary::proven_queue_max_at(3, k, PACKET).0, "K = {k}: {longest}");
    }
}

/// Traffic to be replaced by the adversary's.
const ANY: &str = "[[traffic]]\nflows = 1\nsizes.constant = '1460B'\narrivals = 'all_at_once'\n";

fn run_flows(toml: &str, flows: &[TraceFlow]) -> RunResult {
    let mut scenario = scenario(&format!("{toml}\n{ANY}"));
    scenario.traffic = vec![Traffic::from_trace("adversary", Trace::new("adversary", flows.to_vec()).unwrap())];
    let result = clearway_sim::run(&scenario, 1, |_| false).unwrap_or_else(|problem| panic!("{problem}"));
    check(&result);
    result
}

#[test]
fn one_packet_waits_longer_than_equation_1_says() {
    for k in [5, 8] {
        let delays = adversary::worst_wait(k, 3);
        let waits = longest_wait(k, &delays);
        assert_eq!(waits, delays.iter().map(|delay| delay.packets).sum::<u64>(), "K = {k}");
        assert_eq!(waits > u64::from(6 * (k - 1)), k == 8, "K = {k}: {waits} packets");
        assert!(waits <= 7 * u64::from(k - 1), "K = {k}: {waits} packets");
    }
}

/// How many packet times the one packet waits in [`tree`] that all others are arranged for: the last host's.
fn longest_wait(k: u32, delays: &[Delay]) -> u64 {
    let path = format!("{}/adversary-wait-{k}.graph", env!("CARGO_TARGET_TMPDIR"));
    std::fs::write(&path, tree(k)).unwrap();
    let toml = format!(
        "transport = {{ udp = {{ rate = \"{}bps\" }} }}\nfabric = {{ file = {{ path = \"{path}\" }} }}",
        100_000_000_000 / u64::from(k),
    );
    let hosts = scenario(&format!("{toml}\n{ANY}")).fabric.build().unwrap();
    let host =
        |name: String| HostId::from(hosts.names.iter().position(|known| *known == name).expect("it is in the tree"));
    let mut flows = Vec::new();
    for (a, b, c) in (0..k * k * k).map(|i| (i / k / k, i / k % k, i % k)) {
        let (on, further, last) = (c == k - 1, b == k - 1, a == k - 1);
        let (packets, dst) = match (on, further, last) {
            (false, ..) => (delays[0].others_packets, format!("aside{a}.{b}.{c}")),
            (true, false, _) => (delays[1].others_packets, format!("out{a}.{b}")),
            (true, true, false) => (delays[2].others_packets, "sink".to_owned()),
            (true, true, true) => (1, "sink".to_owned()),
        };
        // All behind the packet's own second switch comes as much later as it is to come to the third, and a little
        // more, to be served last.
        let own = [(delays[0].later, on), (delays[1].later, further), (delays[2].later, last)];
        let later: u64 = own.iter().filter(|(_, comes)| *comes).map(|(later, _)| later).sum();
        let after = u64::from(on) + 3 * u64::from(further) + 9 * u64::from(last);
        flows.push(TraceFlow {
            src: host(format!("from{a}.{b}.{c}")),
            dst: host(dst),
            bytes: packets * 1_460,
            start: Time::from_ps(later * PACKET_TIME_PS + 1_000 * after),
            after: None,
            line: 0,
        });
    }
    let [among, alone] = [&flows[..], &flows[flows.len() - 1..]].map(|flows| {
        let result = run_flows(&toml, flows);
        let start = flows[flows.len() - 1].start.ps();
        let place = of_flows(&result, "start_ps").iter().rposition(|at| *at == start).expect("it is there");
        of_flows(&result, "fct_ps")[place]
    });
    // Of packets that come at once it is served last: a few nanoseconds of its lateness are not waited.
    (among - alone).div_ceil(PACKET_TIME_PS)
}
