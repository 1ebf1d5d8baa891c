use units::{Duration, Rate};

use super::*;
use crate::collective::CollectiveAlgorithm;
use crate::{Builder, Rank, StepId};

fn library() -> Library {
    Library {
        constants: Constants {
            launch: Duration::from_us(10),
            simple: Duration::from_us(5),
            send_recv: Duration::from_us(7),
            latency: 1.0,
            nic_efficiency: 0.9,
            local_efficiency: 0.8,
            copy: Rate::from_gbps(160),
            channels: 16,
        },
        machine: Machine { nic: Rate::from_gbps(3_200), local: Rate::from_gbps(3_600), multicast: true },
        local: 8,
        algorithm: None,
    }
}

#[test]
fn small_buffers_go_by_ll_and_large_ones_by_simple() {
    let of = |bytes: u64| library().course(Kind::AllReduce, 16, 2, 8, bytes).expect("an all-reduce");
    // 14 steps over NVLink and 2 over the network up and down: 0.6 and 5 us each.
    let small = of(8);
    assert_eq!((small.algorithm, small.wire), (Algorithm::Tree, Wire::Ll));
    assert!((small.total() - (10.0 + 14.0 * 0.6 + 2.0 * 5.0) * 1e-6).abs() < 2e-8, "{small:?}");
    let large = of(8 << 30);
    assert_eq!((large.algorithm, large.wire), (Algorithm::NvlsTree, Wire::Simple));
    // Each host sends the buffer once at 0.9 of 400 GB/s; a rank's link at 0.8 of 450 GB/s is as fast.
    let bound = (8u64 << 30) as f64 / 360e9;
    assert!((bound..1.02 * bound).contains(&large.total()), "{large:?}");
    let mut last = 0.0;
    for size in 3..34 {
        let now = of(1 << size).total();
        assert!(now >= 0.97 * last, "a larger buffer is hardly faster: 2^{size} B in {now} s after {last} s");
        last = now;
    }
}

#[test]
fn what_is_asked_for_is_taken_where_it_is_possible() {
    let mut asked = Library { algorithm: Some(Algorithm::Ring), ..library() };
    let of = |library: &Library, kind| library.course(kind, 16, 2, 8, 1 << 30).map(|course| course.algorithm);
    assert_eq!(of(&asked, Kind::AllReduce), Some(Algorithm::Ring));
    asked.algorithm = Some(Algorithm::Tree);
    assert_eq!(of(&asked, Kind::AllReduce), Some(Algorithm::Tree));
    assert_eq!(of(&asked, Kind::AllGather), Some(Algorithm::Ring), "no all-gather goes by a tree");
    asked.algorithm = Some(Algorithm::Pat);
    assert_eq!(of(&asked, Kind::AllGather), Some(Algorithm::Pat));
    assert_eq!(of(&asked, Kind::AllToAll), None);
    let plain = Library { machine: Machine { multicast: false, ..asked.machine }, algorithm: None, ..asked };
    // Links within hosts are the bottleneck, and a tree sends twice the buffer there.
    assert_eq!(of(&plain, Kind::AllReduce), Some(Algorithm::Ring));
}

/// Every rank gets what the algorithm sends, in groups of any shape: no power of two, one rank a host, hosts of
/// different numbers of ranks, a message shorter than a chunk.
#[test]
fn links_carry_what_the_algorithm_says() {
    for (n, local, bytes) in [(16u32, 8u32, 1u64 << 30), (6, 1, 4 << 20), (5, 1, 3), (12, 8, 1 << 28), (3, 4, 1 << 20)]
    {
        for kind in [Kind::AllReduce, Kind::AllGather, Kind::ReduceScatter, Kind::SendRecv] {
            let library = Library { local, ..library() };
            let ranks: Vec<Rank> = (0..n).map(Rank).collect();
            let all = messages(&library, kind, &ranks, bytes).expect("it has an algorithm");
            let nodes = n.div_ceil(local);
            let course = library.course(kind, n, nodes, local.min(n), bytes).expect("the same");
            for host in 0..nodes {
                let of = |rank: usize| rank as u32 / local;
                let leaves = all.iter().filter(|of_one| of(of_one.0) == host && of(of_one.1) != host);
                let leaves = leaves.map(|of_one| of_one.2).sum::<u64>() as f64;
                let most = match (course.algorithm, kind) {
                    (Algorithm::Ring, Kind::AllReduce) => 2.0 * f64::from(n - 1) / f64::from(n),
                    (Algorithm::Ring, Kind::SendRecv) => 1.0,
                    (Algorithm::Ring, _) => f64::from(n - 1) / f64::from(n),
                    _ => sent(nodes),
                };
                let bound = most * bytes as f64 * course.wire.expand() * course.rest / 0.9;
                // Beside the news, and a byte at least of each message.
                assert!(leaves <= bound + 8.0 * f64::from(n) * 6.0 + 200.0, "{kind:?} among {n}: {leaves} of {bound}");
                assert!(nodes == 1 || leaves >= 0.49 * bound, "{kind:?} among {n}: {leaves} of {bound}");
            }
            let mut b = Builder::new(n);
            let entry: Vec<Vec<StepId>> = vec![Vec::new(); n as usize];
            let how = CollectiveAlgorithm { library: Some(library), ..CollectiveAlgorithm::default() };
            how.add(&mut b, kind, "it", 0, &ranks, bytes, &entry).expect("fits");
            assert_eq!(b.count(), how.count(kind, n, bytes, 0));
            for waits in 1..4 {
                let mut b = Builder::new(n);
                let before = |rank: &Rank, b: &mut Builder| -> Vec<StepId> {
                    (0..waits).map(|_| b.delay(*rank, Duration::ZERO, &[])).collect()
                };
                let entry: Vec<Vec<StepId>> = ranks.iter().map(|rank| before(rank, &mut b)).collect();
                how.add(&mut b, kind, "it", 0, &ranks, bytes, &entry).expect("fits");
                let steps = b.count().steps - waits * u64::from(n);
                assert_eq!(steps, how.count(kind, n, bytes, waits as usize).steps, "after {waits} steps");
            }
            assert_eq!(b.build().expect("sound").messages().len(), all.len());
        }
    }
}

/// A rank that comes late delays all others.
#[test]
fn nobody_ends_before_the_last_has_entered() {
    let n = 7;
    let mut b = Builder::new(n);
    let ranks: Vec<Rank> = (0..n).map(Rank).collect();
    let late = b.compute(Rank(4), Duration::from_ms(1), &[]);
    let mut entry: Vec<Vec<StepId>> = vec![Vec::new(); n as usize];
    entry[4] = vec![late];
    let how =
        CollectiveAlgorithm { library: Some(Library { local: 1, ..library() }), ..CollectiveAlgorithm::default() };
    let ends = how.add(&mut b, Kind::AllReduce, "it", 0, &ranks, 1 << 20, &entry).expect("fits");
    assert_eq!(ends.len(), n as usize);
    let graph = b.build().expect("sound");
    // Without the computation nothing of any rank's last step may be reached.
    let mut missing: Vec<u32> = (0..graph.steps().len()).map(|step| graph.needs(StepId(step as u32))).collect();
    graph.messages().for_each(|message| missing[message.receive.index()] += 1);
    let is_late = |step: StepId| matches!(graph.step(step).work, crate::Work::Compute(_));
    let mut free: Vec<StepId> = (0..missing.len() as u32).map(StepId).collect();
    free.retain(|&step| missing[step.index()] == 0 && !is_late(step));
    let mut ended = vec![false; missing.len()];
    while let Some(step) = free.pop() {
        ended[step.index()] = true;
        let mut next = crate::testing::after(&graph, step);
        if let crate::Work::Send(message) = graph.step(step).work {
            next.push(graph.message(message).receive);
        }
        for step in next {
            missing[step.index()] -= 1;
            if missing[step.index()] == 0 {
                free.push(step);
            }
        }
    }
    for rank in ranks {
        let steps = graph.of(rank);
        assert!(!steps.clone().all(|step| ended[step as usize]), "rank {} has ended", rank.0);
    }
}
