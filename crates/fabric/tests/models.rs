//! The numbers that papers state for their fabrics, derived term by term.

use clearway_fabric::{Fabric, FabricSpec, Failures, FatTree, Grid, LeafSpine, Quotient, Routes};
use units::{Duration, HostId, Rate};

fn build(spec: &FabricSpec) -> (Fabric, Routes) {
    let fabric = spec.build().unwrap();
    let routes = Routes::compute(&fabric, &Failures::default());
    (fabric, routes)
}

/// dcPIM's simulator puts 650 ns on every link, those of hosts included, where it means 200 ns of propagation and 450
/// ns of processing at the sending node. So a host delays each packet once, as long as a switch does.
const DCPIM_HOST_DELAY: Duration = Duration::from_ns(450);

#[test]
fn harmony_leaf_spine_rtt_is_4_6_us() {
    let (fabric, routes) = build(&FabricSpec::default());
    // One way across racks: 4 links x 200 ns + 3 switches x 450 ns = 2,150 ns.
    // 1,500 B: 120 ns on each host link, 30 ns on each 400 Gbps link: 300 ns.
    let data = fabric.lone_packet_time(&routes, HostId(0), HostId(143), 1500).unwrap();
    assert_eq!(data, Duration::from_ns(2150 + 120 + 30 + 30 + 120));
    // 40 B: 3.2 ns and 0.8 ns: 8 ns.
    let ack = fabric.lone_packet_time(&routes, HostId(143), HostId(0), 40).unwrap();
    assert_eq!(ack, Duration::from_ns(2150 + 8));
    // Harmony section 5 prints 4.6 us.
    assert_eq!(data + ack, Duration::from_ns(4608));
    assert_eq!(fabric.max_rtt(&Quotient::new(&fabric), 1500, 40), data + ack);
    // Within a rack: 2 links and 1 switch one way.
    let near = fabric.lone_packet_time(&routes, HostId(0), HostId(15), 1500).unwrap();
    assert_eq!(near, Duration::from_ns(2 * 200 + 450 + 2 * 120));
}

#[test]
fn harmony_fat_tree_rtt_is_7_6_us() {
    let (fabric, _) = build(&FabricSpec::FatTree(FatTree::default()));
    assert_eq!(fabric.hosts, 1024);
    // Across pods: 6 links x 200 ns + 5 switches x 450 ns = 3,450 ns one way; all links have 100 Gbps, so 1,500 B take
    // 6 x 120 ns = 720 ns and 40 B 6 x 3.2 ns = 19.2 ns. Harmony section 5 prints 7.6 us.
    assert_eq!(fabric.max_rtt(&Quotient::new(&fabric), 1500, 40), Duration::from_ps(2 * 3_450_000 + 720_000 + 19_200));
}

#[test]
fn dcpim_control_rtt_is_5_2_us_and_data_rtt_5_8_us() {
    let (fabric, _) = build(&FabricSpec::default());
    let rtt = |there, back| fabric.max_rtt(&Quotient::new(&fabric), there, back) + DCPIM_HOST_DELAY * 2;
    // Propagation and processing: 2 x (4 x 200 ns + 3 x 450 ns + 450 ns at the host) = 2 x 4 x 650 ns = 5,200 ns.
    // Two control packets add 8 ns each: 5,216 ns, dcPIM section 3.4's 5.2 us.
    assert_eq!(rtt(40, 40), Duration::from_ns(5_200 + 2 * 8));
    // Section 3.4's "unloaded RTT for data packets", 5.8 us and hence a BDP of 72.5 KB, is a full packet each way: two
    // times 300 ns of transmission.
    assert_eq!(rtt(1500, 1500), Duration::from_ns(5_200 + 2 * 300));
    assert_eq!(Rate::from_gbps(100).bytes_in(rtt(1500, 1500)), 72_500);
    // A full packet and a 40 B answer take less: 5.508 us, as in the formula of the authors' simulator.
    assert_eq!(rtt(1500, 40), Duration::from_ns(5_200 + 300 + 8));
}

#[test]
fn round_trips_by_the_switches_on_the_way() {
    // In a rack 2 links of 200 ns and a switch of 450 ns each way, across 4 links and 3 switches; 1,500 B there and 40
    // B back.
    let (fabric, _) = build(&FabricSpec::default());
    let in_rack = Duration::from_ps(2 * 850_000 + 2 * 120_000 + 2 * 3_200);
    let rtts = fabric.max_rtts(&Quotient::new(&fabric), 1500, 40);
    assert_eq!((rtts.keys().copied().collect::<Vec<_>>(), rtts[&1]), (vec![1, 3], in_rack));
    assert_eq!(rtts[&3], fabric.max_rtt(&Quotient::new(&fabric), 1500, 40));
}

#[test]
fn longest_rtt_counts_unlike_hosts() {
    // b sends and receives slower than a and c; the longest pair in its rack is with either, and the answer may be
    // larger than the data.
    let spec = clearway_fabric::FileSpec {
        path: "net.txt".into(),
        format: clearway_fabric::FileFormat::Graph,
        switch_delay: Duration::ZERO,
    };
    let fabric =
        spec.parse("host a b c\nswitch s\nlink a s 8Gbps 1ns\nlink b s 1Gbps 1ns\nlink c s 4Gbps 5ns\n").unwrap();
    let routes = Routes::compute(&fabric, &Failures::default());
    let all = (0..3).flat_map(|a| (0..3).map(move |b| (HostId(a), HostId(b)))).filter(|(a, b)| a != b);
    for (data, answer) in [(1000, 10), (10, 1000), (100, 100)] {
        let rtt = |(a, b): (HostId, HostId)| {
            fabric.lone_packet_time(&routes, a, b, data).unwrap()
                + fabric.lone_packet_time(&routes, b, a, answer).unwrap()
        };
        assert_eq!(Some(fabric.max_rtt(&Quotient::new(&fabric), data, answer)), all.clone().map(rtt).max());
    }
}

#[test]
fn bisections() {
    let bisection = |spec: FabricSpec| {
        let fabric = spec.build().unwrap();
        fabric.bisection(&Quotient::new(&fabric))
    };
    // Full bisection: each of 72 hosts sends at its rate.
    assert_eq!(bisection(FabricSpec::default()), Rate::from_gbps(7_200));
    assert_eq!(bisection(FabricSpec::FatTree(FatTree::default())), Rate::from_gbps(51_200));
    // 2:1: four racks with 4 x 200 Gbps up; the fifth lies half on each side and loses nothing inside itself.
    let spec = FabricSpec::LeafSpine(LeafSpine { oversubscription: 2.0, ..LeafSpine::default() });
    assert_eq!(bisection(spec), Rate::from_gbps(4 * 800 + 800));
    // A torus is cut twice across its last ring: 2 x 64 links of 10 Gbps.
    assert_eq!(bisection(FabricSpec::Torus(Grid::default())), Rate::from_gbps(2 * 64 * 10));
    // A mesh once.
    assert_eq!(bisection(FabricSpec::Mesh(Grid::default())), Rate::from_gbps(64 * 10));
}

#[test]
fn r2c2_path_counts_in_the_216_node_torus() {
    let (fabric, routes) = build(&FabricSpec::Torus(Grid { dims: vec![6, 6, 6], ..Grid::default() }));
    let paths = |x: u32, y: u32, z: u32| routes.count_paths(&fabric, HostId(0), HostId(x + 6 * (y + 6 * z)));
    // Steps (a, b, c) can be taken in (a + b + c)! / (a! b! c!) orders.
    assert_eq!(paths(1, 2, 0), 3);
    assert_eq!(paths(2, 2, 2), 90);
    // R2C2 section 2.2.2's 1,680 is 9! / (3! 3! 3!): the farthest pair, three steps along each axis, with one way
    // round each ring. Half-way round, both ways are shortest, so there are eight times as many in all...
    assert_eq!(paths(3, 3, 3), 8 * 1680);
    // ... and the mean over all pairs is neither: the sum of the formula over the 215 other nodes.
    let ways = |offset: u32| if offset == 3 { 2 } else { 1 };
    let steps = |offset: u32| u64::from(offset.min(6 - offset));
    let factorial = |n: u64| (1..=n).product::<u64>();
    let (mut total, mut expected) = (0, 0);
    for node in 1..216 {
        let at = [node % 6, node / 6 % 6, node / 36];
        total += paths(at[0], at[1], at[2]);
        let orders = factorial(at.map(steps).iter().sum()) / at.map(steps).map(factorial).iter().product::<u64>();
        expected += orders * at.map(ways).iter().product::<u64>();
    }
    assert_eq!(total, expected);
}
