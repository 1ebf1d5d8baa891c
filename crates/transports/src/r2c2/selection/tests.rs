use std::sync::Arc;

use fabric::{FabricSpec, Failures, Grid, LinkWeight, Routes, Routing, RoutingTables};
use units::HostId;

use super::*;
use crate::r2c2::rates::{Flow, allocate};

fn stream(seed: u64) -> Stream {
    Stream::new(seed, 0, "selection")
}

/// All assignments of `protocols` to so many flows.
fn all(protocols: &[u8], flows: usize) -> Vec<Vec<u8>> {
    (0..flows).fold(vec![vec![]], |some, _| {
        some.iter().flat_map(|genes| protocols.iter().map(|&last| [&genes[..], &[last]].concat())).collect()
    })
}

/// Worth more the more neighbours differ, and most where all are alike: greedy search from most places ends in a local
/// maximum.
fn deceptive(genes: &[u8]) -> f64 {
    let differing = genes.windows(2).filter(|pair| pair[0] != pair[1]).count();
    if differing == 0 && genes.first() == Some(&2) { 100.0 } else { differing as f64 }
}

#[test]
fn finds_what_exhaustive_search_finds() {
    // Each pair of flows has its own worth of each pair of protocols, drawn once.
    for seed in 0..10 {
        let mut random = stream(seed);
        let worth: Vec<f64> = (0..8 * 8 * 9).map(|_| random.unit()).collect();
        let fitness = |genes: &[u8]| {
            let pair = |a: usize, b: usize| worth[(a * 8 + b) * 9 + usize::from(genes[a] * 3 + genes[b])];
            (0..genes.len()).flat_map(|a| (0..a).map(move |b| (a, b))).map(|(a, b)| pair(a, b)).sum::<f64>()
        };
        let optimum = all(&[0, 1, 2], 8).iter().map(|genes| fitness(genes)).fold(f64::MIN, f64::max);
        let found = select(&[0; 8], &[0, 1, 2], &Settings::default(), &mut random, fitness);
        assert_eq!(found.utility, optimum, "seed {seed}, {} evaluations", found.evaluations);
        assert_eq!(fitness(&found.assignment), optimum);
    }
}

#[test]
fn one_protocol_for_all_is_tried_where_no_step_leads_there() {
    let found = select(&[0; 40], &[0, 1, 2], &Settings::default(), &mut stream(1), deceptive);
    assert_eq!((found.assignment, found.utility, found.before), (vec![2; 40], 100.0, 0.0));
}

#[test]
fn climbs_far_beyond_random_drawing_at_the_papers_size() {
    // 512 flows that each have a better protocol. Drawing gives 256 right with a standard deviation of 11.3, so that
    // one in 30 million drawn genotypes exceeds 320.
    let mut random = stream(3);
    let best: Vec<u8> = (0..512).map(|_| random.below(2) as u8).collect();
    let fitness = |genes: &[u8]| genes.iter().zip(&best).filter(|(gene, best)| gene == best).count() as f64;
    let found = select(&[0; 512], &[0, 1], &Settings::default(), &mut random, fitness);
    assert!(found.utility > 320.0, "{} of 512 in {} generations", found.utility, found.generations);
}

#[test]
fn the_same_stream_gives_the_same_answer() {
    let select = |seed| select(&[0; 30], &[0, 1, 3], &Settings::default(), &mut stream(seed), deceptive);
    assert_eq!(select(5), select(5));
}

#[test]
fn keeps_the_current_assignment_where_nothing_is_better() {
    let current = [1, 0, 7, 1];
    let found = select(&current, &[0, 1], &Settings::default(), &mut stream(1), |_| 1.0);
    assert_eq!((&found.assignment[..], found.gain()), (&current[..], 0.0));
    let found = select(&current, &[0, 1], &Settings::default(), &mut stream(1), |_| f64::NAN);
    assert_eq!((&found.assignment[..], found.gain()), (&current[..], 0.0));
}

#[test]
fn ends_when_the_evaluations_are_spent_or_nothing_improves() {
    let mut evaluated = 0;
    let settings = Settings { evaluations: 250, ..Settings::default() };
    let found = select(&[0; 64], &[0, 1], &settings, &mut stream(1), |genes| {
        evaluated += 1;
        genes.iter().map(|&gene| f64::from(gene)).sum()
    });
    assert_eq!((found.evaluations, evaluated), (250, 250));
    let found = select(&[0; 64], &[0, 1], &Settings::default(), &mut stream(1), |_| 1.0);
    assert_eq!(found.generations, Settings::default().patience);
}

#[test]
fn nothing_to_choose_is_no_trouble() {
    let settings = Settings::default();
    let none = select(&[], &[0, 1], &settings, &mut stream(1), |_| 0.0);
    assert_eq!((none.assignment, none.evaluations), (vec![], 1));
    let single = select(&[0, 0], &[0], &settings, &mut stream(1), |_| 3.0);
    assert_eq!((single.assignment, single.evaluations), (vec![0, 0], 1));
    let nothing = select(&[4, 2], &[], &settings, &mut stream(1), |_| 3.0);
    assert_eq!(nothing.assignment, [4, 2]);
}

#[test]
fn settings_that_can_not_be_are_refused() {
    let problem = |settings: Settings| settings.check().unwrap_err().to_string();
    let usual = Settings::default();
    assert_eq!(usual.check(), Ok(()));
    assert_eq!(
        problem(Settings { mutation: 1.5, ..usual.clone() }),
        "mutation: is 1.5; it is a probability, from 0 to 1"
    );
    assert_eq!(
        problem(Settings { elite: 100, ..usual.clone() }),
        "elite: is 100; it must be at least 1 and less than the population, 100"
    );
    assert_eq!(
        problem(Settings { population: 1, ..usual }),
        "population: is 1; it must be at least 2, because two assignments are recombined"
    );
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(40))]
    #[test]
    fn never_worse_than_the_current_assignment(
        current in proptest::collection::vec(0u8..6, 0..12),
        protocols in proptest::collection::vec(0u8..4, 0..5),
        population in 0u32..12, elite in 0u32..14, patience in 0u32..4, evaluations in 0u32..80,
        mutation in -1.0..2.0, seed: u64,
    ) {
        let settings = Settings { population, mutation, elite, patience, evaluations };
        let fitness = |genes: &[u8]| genes.iter().fold(0.0, |sum, &gene| (sum * 7.0 + f64::from(gene)) % 11.0);
        let found = select(&current, &protocols, &settings, &mut stream(seed), fitness);
        proptest::prop_assert_eq!(found.before, fitness(&current));
        proptest::prop_assert_eq!(found.utility, fitness(&found.assignment));
        proptest::prop_assert!(found.utility >= found.before && found.gain() >= 0.0);
        proptest::prop_assert_eq!(found.assignment.len(), current.len());
        let known = |(gene, now): (&u8, &u8)| gene == now || protocols.contains(gene) || current.contains(gene);
        proptest::prop_assert!(found.assignment.iter().zip(&current).all(known));
    }
}

/// By flow: its allocation weight and, by protocol, the links that it passes.
type Choices = Vec<(f64, Vec<Arc<[LinkWeight]>>)>;

const RPS_AND_VLB: [Routing; 2] = [Routing::RandomPacketSpraying, Routing::Vlb];

/// The capacities of a torus' links, and what flows between these hosts can choose.
fn on_torus(dims: &[u32], pairs: &[(u32, u32)], protocols: &[Routing]) -> (Vec<f64>, Choices) {
    let fabric = FabricSpec::Torus(Grid { dims: dims.to_vec(), ..Grid::default() }).build().unwrap();
    let routes = Routes::compute(&fabric, &Failures::default());
    let capacity_bps = fabric.links.iter().map(|link| link.rate.bps() as f64).collect();
    let tables = RoutingTables::new(Arc::new(fabric), Arc::new(routes));
    let choices = |&(src, dst): &(u32, u32)| {
        let weights = |&protocol: &Routing| tables.weights(protocol, HostId(src), HostId(dst));
        (1.0, protocols.iter().map(weights).collect())
    };
    (capacity_bps, pairs.iter().map(choices).collect())
}

fn allocated(capacity_bps: &[f64], choices: &Choices, assignment: &[u8]) -> Vec<f64> {
    let mut flows = Vec::new();
    for ((weight, options), &protocol) in choices.iter().zip(assignment) {
        let links = &options[usize::from(protocol)];
        flows.push(Flow { links, weight: *weight, priority: 0, demand: f64::INFINITY });
    }
    allocate(capacity_bps, &flows)
}

/// One source and one destination a node, drawn.
fn permutation(nodes: u32, flows: usize, random: &mut Stream) -> Vec<(u32, u32)> {
    let mut destinations: Vec<u32> = (0..nodes).collect();
    random.shuffle(&mut destinations);
    (0..nodes).zip(destinations).filter(|(src, dst)| src != dst).take(flows).collect()
}

#[test]
fn fitness_is_what_the_allocation_gives_whatever_came_before() {
    for (dims, protocols) in [(&[4, 4][..], &Routing::ALL[..]), (&[3, 3, 3], &RPS_AND_VLB), (&[6, 5], &Routing::ALL)] {
        let mut random = stream(11);
        let nodes = dims.iter().product();
        let (capacity_bps, mut choices) = on_torus(dims, &permutation(nodes, 25, &mut random), protocols);
        for (weight, _) in &mut choices {
            *weight = 0.5 + random.unit();
        }
        let mut fitness = Fitness::new(&capacity_bps, &choices);
        for mixed in [0.0, 0.1, 0.5, 1.0].repeat(5) {
            let protocol = |_| if random.chance(mixed) { random.below(protocols.len() as u64) as u8 } else { 1 };
            let assignment: Vec<u8> = (0..choices.len()).map(protocol).collect();
            let exact = allocated(&capacity_bps, &choices, &assignment);
            for (rate, exact) in fitness.rates(&assignment).iter().zip(&exact) {
                assert!((rate - exact).abs() <= 1e-6 * exact, "{rate} and not {exact} under {assignment:?}");
            }
        }
    }
}

#[test]
fn nothing_limits_a_flow_that_passes_no_link() {
    let (capacity_bps, choices) = on_torus(&[4], &[(0, 0), (0, 1)], &RPS_AND_VLB);
    assert_eq!(Fitness::new(&capacity_bps, &choices).rates(&[1, 0]), [0.0, 1e10]);
    assert!(Fitness::new::<Vec<LinkWeight>>(&[], &[]).rates(&[]).is_empty());
}

#[test]
fn finds_the_best_assignment_of_a_torus_for_each_utility() {
    for seed in 0..3 {
        let mut random = stream(seed);
        let pairs = permutation(16, 6, &mut random);
        let (capacity_bps, choices) = on_torus(&[4, 4], &pairs, &Routing::ALL[..3]);
        let sources: Vec<HostId> = pairs.iter().map(|&(src, _)| HostId(src)).collect();
        let tenants = Tenants { hosts: vec![vec![0, 2, 4], vec![1, 3, 5]], percentile: 0.0 };
        let utilities = [Utility::Aggregate, Utility::Tail(Tail::default()), Utility::Tenants(tenants)];
        for utility in utilities {
            let mut measure = utility.measure(&sources);
            let mut worth = |assignment: &[u8]| measure.of(&allocated(&capacity_bps, &choices, assignment));
            let optimum = all(&[0, 1, 2], pairs.len()).iter().map(|assignment| worth(assignment)).fold(0.0, f64::max);
            let found = select(&vec![0; pairs.len()], &[0, 1, 2], &Settings::default(), &mut random, worth);
            assert_eq!(found.utility, optimum, "seed {seed}, {utility:?}");
        }
    }
}
