//! The adversary of Harmony's Theorem 3.1 on the simulator: what `harmony::adversary` works out in packet times, on real links.
//!
//! A tree of three switches on every path. Packets leave their hosts at the rate of a virtual link, so UDP at that rate is all that it takes.

use std::fmt::Write;

use schemes::harmony::adversary::{self, Meeting};
use schemes::harmony::theory;
use units::{Bytes, HostId, Time};
use workload::{Trace, TraceFlow, Traffic};

use crate::{check, column, scenario, table};

const PACKET: Bytes = Bytes(1_500);
/// A packet at 100 Gbps.
const PACKET_TIME_PS: u64 = 120_000;

/// A port at the third switch; behind it K ports at second switches, with K at first switches behind each and K hosts behind those. Of
/// the K messages of a port one goes on, the last; the others go to hosts of the switch where they come out.
fn tree(k: u32) -> String {
    let mut graph = String::from("switch third\nhost sink\nlink third sink 100Gbps 500ns\n");
    for a in 0..k {
        writeln!(graph, "switch second{a}\nlink second{a} third 100Gbps 500ns").unwrap();
        for other in 0..k {
            writeln!(graph, "host out{a}.{other}\nlink third out{a}.{other} 100Gbps 500ns").unwrap();
        }
        for b in 0..k {
            writeln!(graph, "switch first{a}.{b}\nlink first{a}.{b} second{a} 100Gbps 500ns").unwrap();
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
