//! The paper's examples by hand, and two checks for random flow sets: the bottleneck property of max-min fairness, and
//! a linear program, which works without water-filling.

mod program;

use std::sync::Arc;

use fabric::{FabricSpec, Failures, Grid, Routes, Routing, RoutingTables};
use proptest::collection::vec;
use proptest::prelude::*;
use units::{Duration, HostId, LinkId, Rate, Time};

use super::*;

const GBPS: f64 = 1e9;

fn over(links: &[(u32, f32)]) -> Vec<LinkWeight> {
    links.iter().map(|&(link, weight)| LinkWeight { link: LinkId(link), weight }).collect()
}

fn plain(links: &[LinkWeight]) -> Flow<'_> {
    Flow { links, weight: 1.0, priority: 0, demand: f64::INFINITY }
}

fn close(rates: &[f64], expected: &[f64]) {
    assert_eq!(rates.len(), expected.len());
    for (rate, expected) in rates.iter().zip(expected) {
        assert!((rate - expected).abs() <= 1e-12 * expected.abs(), "{rates:?} and not {expected:?}");
    }
}

/// Links 1->4, 1->3, 2->3, 3->4, of capacity one each.
const FIGURE_4: [f64; 4] = [GBPS; 4];

#[test]
fn the_rates_of_figure_4_are_two_thirds_each() {
    let (f1, f2) = (over(&[(0, 0.5), (1, 0.5), (3, 0.5)]), over(&[(2, 1.0), (3, 1.0)]));
    close(&allocate(&FIGURE_4, &[plain(&f1), plain(&f2)]), &[GBPS * 2.0 / 3.0, GBPS * 2.0 / 3.0]);
}

#[test]
fn the_rates_of_figure_4_are_one_each_when_f1_goes_straight() {
    let (f1, f2) = (over(&[(0, 1.0)]), over(&[(2, 1.0), (3, 1.0)]));
    close(&allocate(&FIGURE_4, &[plain(&f1), plain(&f2)]), &[GBPS, GBPS]);
}

/// Links 0->1, 1->3, 0->2, 2->3. Either path takes its share of the flow, so the larger share decides.
#[test]
fn the_flow_of_figure_3_fills_two_paths_as_its_routing_divides_it() {
    let sprayed = over(&[(0, 0.5), (1, 0.5), (2, 0.5), (3, 0.5)]);
    close(&allocate(&[GBPS; 4], &[plain(&sprayed)]), &[2.0 * GBPS]);
    let third = 1.0f32 / 3.0;
    let one_to_two = over(&[(0, third), (1, third), (2, 1.0 - third), (3, 1.0 - third)]);
    close(&allocate(&[GBPS; 4], &[plain(&one_to_two)]), &[GBPS / f64::from(1.0 - third)]);
}

#[test]
fn a_link_is_divided_by_allocation_weights() {
    let links = over(&[(0, 1.0)]);
    let flows = [1.0, 2.0, 5.0].map(|weight| Flow { weight, ..plain(&links) });
    close(&allocate(&[8.0 * GBPS], &flows), &[GBPS, 2.0 * GBPS, 5.0 * GBPS]);
}

#[test]
fn what_a_host_limited_flow_leaves_goes_to_the_others() {
    let links = over(&[(0, 1.0)]);
    let flows = [0.5 * GBPS, f64::INFINITY, f64::INFINITY].map(|demand| Flow { demand, ..plain(&links) });
    close(&allocate(&[4.5 * GBPS], &flows), &[0.5 * GBPS, 2.0 * GBPS, 2.0 * GBPS]);
}

#[test]
fn a_priority_shares_what_those_before_it_have_left() {
    let links = over(&[(0, 1.0)]);
    let flow = |priority, demand| Flow { priority, demand, ..plain(&links) };
    let flows = [flow(7, 9.0 * GBPS), flow(1, f64::INFINITY), flow(0, 4.0 * GBPS), flow(1, 2.0 * GBPS)];
    close(&allocate(&[10.0 * GBPS], &flows), &[0.0, 4.0 * GBPS, 4.0 * GBPS, 2.0 * GBPS]);
}

#[test]
fn a_flow_that_passes_no_link_gets_its_demand() {
    let nowhere = over(&[(0, 0.0)]);
    let flows = [Flow { demand: GBPS, ..plain(&[]) }, plain(&[]), plain(&nowhere)];
    assert_eq!(allocate(&[GBPS], &flows), [GBPS, f64::INFINITY, f64::INFINITY]);
}

#[test]
fn what_makes_no_sense_gets_nothing_and_takes_nothing() {
    let links = over(&[(0, 1.0)]);
    for nonsense in [0.0, -1.0, f64::NAN, f64::NEG_INFINITY] {
        let flows = [Flow { weight: nonsense, ..plain(&links) }, plain(&links)];
        close(&allocate(&[GBPS], &flows), &[0.0, GBPS]);
        let flows = [Flow { demand: nonsense, ..plain(&links) }, plain(&links)];
        close(&allocate(&[GBPS], &flows), &[0.0, GBPS]);
        close(&allocate(&[nonsense], &[plain(&links)]), &[0.0]);
    }
}

#[test]
fn an_infinite_capacity_limits_nothing() {
    let (both, second) = (over(&[(0, 1.0), (1, 1.0)]), over(&[(0, 1.0)]));
    let rates = allocate(&[f64::INFINITY, GBPS], &[plain(&both), plain(&second)]);
    close(&rates[..1], &[GBPS]);
    assert_eq!(rates[1], f64::INFINITY);
}

/// Which flow a packet announces is nobody's to trust: whatever it says, rates are numbers and links are not
/// oversubscribed.
#[test]
fn extreme_terms_oversubscribe_nothing() {
    let (one, two) = (over(&[(0, 1.0), (1, 1e-30)]), over(&[(0, 1e-6), (1, 3e38)]));
    let extremes = [f64::MIN_POSITIVE, 1e-300, 1.0, 1e300, f64::MAX, f64::INFINITY];
    for capacity in [1e-3, 1.0, 1e10, 1e300] {
        for weight in extremes {
            for demand in extremes {
                let flows = [plain(&one), Flow { weight, demand, ..plain(&two) }, Flow { weight, ..plain(&one) }];
                assert_max_min(&[capacity, capacity], &flows, &allocate(&[capacity, capacity], &flows));
            }
        }
    }
}

#[test]
fn memory_changes_no_result() {
    let (a, b) = (over(&[(0, 0.5), (1, 0.5)]), over(&[(1, 1.0), (2, 0.25)]));
    let capacity = [GBPS, 3.0 * GBPS, GBPS];
    let sets = [vec![plain(&a), plain(&b)], vec![], vec![plain(&b)], vec![plain(&b), plain(&a), plain(&a)]];
    let mut allocator = Allocator::new(&capacity);
    for flows in sets.iter().chain(sets.iter().rev()) {
        assert_eq!(allocator.allocate(flows), allocate(&capacity, flows));
    }
}

/// A ring of four at 8 Gbps, 1 KB/us, in which host 1 sends to its neighbour over their link.
#[test]
fn a_replay_considers_flows_that_have_lasted_an_interval() {
    let grid = Grid { dims: vec![4], rate: Rate::from_gbps(8), ..Grid::default() };
    let fabric = Arc::new(FabricSpec::Torus(grid).build().unwrap());
    let capacity: Vec<f64> = fabric.links.iter().map(|link| link.rate.bps() as f64).collect();
    let routes = Arc::new(Routes::compute(&fabric, &Failures::default()));
    let tables = RoutingTables::new(fabric, routes);
    let network =
        replay::NetworkView { tables: &tables, routing: Routing::RandomPacketSpraying, capacity_bps: &capacity };
    let message = |start_us, src, bytes| {
        let start = Time::from_us(start_us);
        replay::Message { start, src: HostId(src), dst: HostId(2), bytes }
    };
    let messages = [message(0, 1, 10_000), message(0, 1, 5_000), message(20, 1, 4_000), message(60, 1, 900)];
    let lifetimes = replay::lifetimes(&network, &messages, Duration::from_us(1));
    let ends: Vec<Time> = lifetimes.iter().map(|flow| flow.end).collect();
    // Half each until 5 KB have gone of either, then the rest alone.
    assert_eq!(ends, [Time::from_us(15), Time::from_us(10), Time::from_us(24), Time::from_ns(60_900)]);

    let mut computed = 0;
    let recomputations = replay::recompute(&network, &lifetimes, Duration::from_us(4), |work| {
        work();
        computed += 1;
        computed
    });
    let flows: Vec<usize> = recomputations.iter().map(|recomputation| recomputation.flows).collect();
    // At 4, 8, ... 60 us: two until 10 us, one until 15 us; the third is there, for 4 us, until the very instant.
    assert_eq!(flows, [2, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(recomputations[1], replay::Recomputation { at: Time::from_us(8), flows: 2, took: 2 });

    // A fair first rate is one computation a flow more, with all that are there: two at once, then each alone.
    let starts = |each| replay::at_starts(&network, &lifetimes, each, |work| work());
    assert_eq!(starts(1).iter().map(|of| (of.0.0, of.1.flows)).collect::<Vec<_>>(), [(1, 1), (1, 2), (1, 1), (1, 1)]);
    assert_eq!(starts(3).iter().map(|of| of.1.at).collect::<Vec<_>>(), [Time::ZERO, Time::from_us(60)]);
}

/// Max-min fairness by its definition: nothing is oversubscribed, and each flow either has its demand or a bottleneck,
/// a full link on which no flow of its priority has more for its weight, and none of a later priority has anything.
fn assert_max_min(capacity_bps: &[f64], flows: &[Flow<'_>], rates: &[f64]) {
    const SLACK: f64 = 1e-9;
    let capacity = |link: usize| if capacity_bps[link] > 0.0 { capacity_bps[link] } else { 0.0 };
    let takes = |flow: usize, link: usize| -> f64 {
        let weights = flows[flow].links.iter().filter(|passed| passed.link.index() == link && passed.weight > 0.0);
        weights.map(|passed| f64::from(passed.weight) * rates[flow]).sum()
    };
    let load = |link: usize, up_to: u8| -> f64 {
        (0..flows.len()).filter(|&flow| flows[flow].priority <= up_to).map(|flow| takes(flow, link)).sum()
    };
    for link in 0..capacity_bps.len() {
        let load = load(link, u8::MAX);
        assert!(load <= capacity(link) * (1.0 + SLACK), "{load} on link {link} of {}: {rates:?}", capacity(link));
    }
    for (index, flow) in flows.iter().enumerate() {
        let rate = rates[index];
        assert!(rate >= 0.0 && rate <= f64::max(flow.demand, 0.0), "flow {index} has {rate} of {}", flow.demand);
        if !takes_part(flow) || rate >= flow.demand * (1.0 - SLACK) {
            continue;
        }
        let is_bottleneck = |passed: &LinkWeight| {
            let link = passed.link.index();
            let full = load(link, flow.priority) >= capacity(link) * (1.0 - SLACK);
            let peers = flows.iter().enumerate().filter(|(_, peer)| peer.priority == flow.priority && takes_part(peer));
            let fair = peers.filter(|(_, peer)| peer.links.iter().any(|other| other.link == passed.link)).all(
                |(other, peer)| {
                    let (mine, its) = (rate / weight(flow), rates[other] / weight(peer));
                    its <= mine * (1.0 + SLACK) || takes(other, link) <= SLACK * capacity(link)
                },
            );
            full && fair
        };
        assert!(
            flow.links.iter().any(is_bottleneck),
            "flow {index} has no bottleneck at {rate}: {rates:?} of {flows:?}"
        );
    }
}

/// What a flow is made of: links and weights, allocation weight, priority, demand.
type Params = (Vec<(u32, f32)>, f64, u8, f64);

/// Weights go from 1 down to the inverse of `spread`: many that coincide, for ties, and some that don't.
fn params(links: u32, priorities: u8, spread: f64) -> impl Strategy<Value = Params> {
    let any = 1.0 / spread as f32..2.0;
    let link_weight = prop_oneof![Just(1.0f32), Just(0.5), Just(0.25), Just(1.0 / 3.0), any];
    let passed = proptest::collection::btree_map(0..links, link_weight, 1..=links.min(6) as usize);
    let weight = prop_oneof![3 => Just(1.0), 1 => Just(2.0), 1 => 1.0..spread];
    let demand = prop_oneof![2 => Just(f64::INFINITY), 1 => Just(GBPS), 1 => 0.001 * GBPS..10.0 * GBPS];
    (passed.prop_map(|map| map.into_iter().collect()), weight, 0..priorities, demand)
}

fn capacities(links: usize) -> impl Strategy<Value = Vec<f64>> {
    vec(prop_oneof![8 => Just(9.5 * GBPS), 1 => Just(0.0), 3 => 0.1 * GBPS..40.0 * GBPS], links)
}

fn with_flows(params: &[Params], test: impl FnOnce(&[Flow<'_>])) {
    let links: Vec<Vec<LinkWeight>> = params.iter().map(|(links, ..)| over(links)).collect();
    let flow = |(links, &(_, weight, priority, demand)): (_, &Params)| Flow { links, weight, priority, demand };
    test(&links.iter().map(Vec::as_slice).zip(params).map(flow).collect::<Vec<_>>());
}

proptest! {
    #[test]
    fn every_flow_has_its_demand_or_a_bottleneck(capacity in capacities(12), params in vec(params(12, 3, 1e3), 0..60)) {
        with_flows(&params, |flows| assert_max_min(&capacity, flows, &allocate(&capacity, flows)));
    }

    #[test]
    fn rates_are_those_of_the_linear_program(capacity in capacities(5), params in vec(params(5, 2, 10.0), 1..7)) {
        with_flows(&params, |flows| {
            let (water, program) = (allocate(&capacity, flows), program::max_min(&capacity, flows));
            for (index, (water, program)) in water.iter().zip(&program).enumerate() {
                let water = water / GBPS;
                assert!((water - program).abs() < 1e-5, "flow {index}: {water} Gbps by water, {program} by program");
            }
        });
    }
}
