use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

/// Every pair (sender, receiver) with the channels it may use.
fn demands() -> impl Strategy<Value = (Demand, u32)> {
    let triples = proptest::collection::btree_map((0u32..12, 0u32..9), 0u32..4, 0..60);
    (triples, 1u32..4).prop_map(|(pairs, channels)| {
        let triples: Vec<_> = pairs.into_iter().map(|((sender, receiver), wants)| (sender, receiver, wants)).collect();
        (Demand::new(12, 9, &triples), channels)
    })
}

/// How many channels of each pair are matched.
fn by_pair(pim: &Pim) -> BTreeMap<(u32, u32), u32> {
    pim.matched().iter().fold(BTreeMap::new(), |mut pairs, &pair| {
        *pairs.entry(pair).or_default() += 1;
        pairs
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn every_round_leaves_a_matching_and_the_last_a_maximal_one((demand, channels) in demands(), seed: u64) {
        let mut random = Stream::new(seed, 0, "pim");
        let mut pim = Pim::new(&demand, channels);
        loop {
            let grew = pim.round(&mut random);
            let pairs = by_pair(&pim);
            let (mut senders, mut receivers) = ([0; 12], [0; 9]);
            for (&(sender, receiver), &matched) in &pairs {
                senders[sender as usize] += matched;
                receivers[receiver as usize] += matched;
                let wanted = demand.of(sender).find(|pair| pair.0 == receiver);
                prop_assert!(wanted.is_some_and(|pair| matched <= pair.1));
            }
            prop_assert!(senders.iter().chain(&receivers).all(|&used| used <= channels));
            if grew == 0 {
                for sender in 0..12 {
                    for (receiver, wanted) in demand.of(sender) {
                        let full = senders[sender as usize] == channels || receivers[receiver as usize] == channels;
                        prop_assert!(full || pairs.get(&(sender, receiver)) == Some(&wanted));
                    }
                }
                break;
            }
        }
    }

    #[test]
    fn the_seed_decides_everything((demand, channels) in demands(), seed: u64) {
        let run = || {
            let mut random = Stream::new(seed, 0, "pim");
            let mut pim = Pim::new(&demand, channels);
            while pim.round(&mut random) > 0 {}
            pim.matched().to_vec()
        };
        prop_assert_eq!(run(), run());
    }
}

#[test]
fn maximal_on_a_dense_demand_is_perfect() {
    // Two free hosts of a complete bipartite graph are always a pair, so that nobody is left over.
    let mut random = Stream::new(1, 0, "pim");
    assert_eq!(sizes(&Demand::dense(144), 1, None, &mut random).last(), Some(&144));
    let triples: Vec<_> = (0..144).flat_map(|sender| (0..144).map(move |receiver| (sender, receiver, 4))).collect();
    let four_channels = Demand::new(144, 144, &triples);
    assert_eq!(sizes(&four_channels, 4, None, &mut random).last(), Some(&(4 * 144)));
}

#[test]
fn grants_and_accepts_are_uniform() {
    // One sender of four that want the same receiver, and one receiver of four that the same sender has something
    // for: each with probability 1/4. 4,000 draws have a standard deviation of sqrt(4000 * 3/16) = 27; five of
    // them.
    let to_one = Demand::new(4, 4, &[(0, 0, 1), (1, 0, 1), (2, 0, 1), (3, 0, 1)]);
    let from_one = Demand::new(4, 4, &[(0, 0, 1), (0, 1, 1), (0, 2, 1), (0, 3, 1)]);
    let mut random = Stream::new(7, 0, "pim");
    let mut counts = [[0i32; 4]; 2];
    for _ in 0..4_000 {
        for (demand, counts) in [&to_one, &from_one].into_iter().zip(&mut counts) {
            let mut pim = Pim::new(demand, 1);
            assert_eq!(pim.round(&mut random), 1);
            let (sender, receiver) = pim.matched()[0];
            counts[(sender + receiver) as usize] += 1;
        }
    }
    assert!(counts.iter().flatten().all(|count| (count - 1_000).abs() < 135), "{counts:?}");
}

#[test]
fn rounds_to_a_maximal_matching_are_below_log_n_and_four_thirds() {
    // Anderson et al., appendix: at most log2(n) + 4/3 rounds are expected, whatever the demand.
    let mut random = Stream::new(3, 0, "pim");
    for n in [16u32, 64, 256, 1024] {
        let bound = f64::from(n).log2() + 4.0 / 3.0;
        for degree in [2.0, 8.0, f64::from(n)] {
            let runs = 50;
            let rounds = |_| sizes(&Demand::random(n, degree, &mut random), 1, None, &mut random).len();
            let mean = (0..runs).map(rounds).sum::<usize>() as f64 / f64::from(runs);
            assert!(mean <= bound, "{n} hosts, degree {degree}: {mean} rounds, bound {bound}");
        }
    }
}

#[test]
fn a_random_demand_has_its_degree_and_nobody_sends_to_itself() {
    let mut random = Stream::new(5, 0, "pim");
    let demand = Demand::random(10_000, 5.0, &mut random);
    // Pairs are binomial with mean 50,000 and standard deviation 224; degrees with standard deviation sqrt(5).
    assert!((demand.degree() - 5.0).abs() < 5.0 * 0.0224, "{}", demand.degree());
    assert!((0..10_000).all(|sender| demand.of(sender).all(|(receiver, _)| receiver != sender && receiver < 10_000)));
    let degrees = (0..10_000).map(|sender| demand.of(sender).count() as f64);
    let variance = degrees.map(|degree| (degree - 5.0) * (degree - 5.0)).sum::<f64>() / 10_000.0;
    assert!((variance - 5.0).abs() < 0.5, "{variance}");
    // As dense as can be, and not at all.
    assert_eq!(Demand::random(10, 9.0, &mut random).degree(), 9.0);
    assert_eq!(Demand::random(10, 0.0, &mut random).degree(), 0.0);
    assert_eq!(Demand::random(1, 5.0, &mut random).senders(), 1);
}
