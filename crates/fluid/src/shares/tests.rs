use proptest::prelude::*;

use super::*;

fn shares(capacities: &[f64]) -> Shares {
    Shares::new(capacities.iter().copied())
}

fn insert(shares: &mut Shares, limit: f64, passes: &[u32]) -> Slot {
    shares.insert(limit, passes.iter().map(|&resource| (resource, 1.0)))
}

fn rates(shares: &mut Shares, slots: &[Slot]) -> Vec<f64> {
    shares.settle(&mut Vec::new());
    slots.iter().map(|&slot| shares.rate(slot)).collect()
}

#[test]
fn two_flows_halve_a_link() {
    let mut shares = shares(&[10.0]);
    let a = insert(&mut shares, 10.0, &[0]);
    assert_eq!(rates(&mut shares, &[a]), [10.0]);
    let b = insert(&mut shares, 10.0, &[0]);
    assert_eq!(rates(&mut shares, &[a, b]), [5.0, 5.0]);
    shares.remove(a);
    assert_eq!(rates(&mut shares, &[b]), [10.0]);
}

#[test]
fn parking_lot() {
    // One flow over all of n links and one more over each (Bertsekas and Gallager, figure 6.13): all get half.
    let mut even = shares(&[1.0; 4]);
    let long = insert(&mut even, 1.0, &[0, 1, 2, 3]);
    let short: Vec<Slot> = (0..4).map(|link| insert(&mut even, 1.0, &[link])).collect();
    assert_eq!(rates(&mut even, &[long]), [0.5]);
    assert_eq!(rates(&mut even, &short), [0.5; 4]);
    // With one narrow link the long flow gets half of that link, and the others get what it leaves.
    let mut uneven = shares(&[1.0, 0.5, 1.0]);
    let long = insert(&mut uneven, 0.5, &[0, 1, 2]);
    let short: Vec<Slot> = (0..3).map(|link| insert(&mut uneven, 1.0, &[link])).collect();
    assert_eq!(rates(&mut uneven, &[long]), [0.25]);
    assert_eq!(rates(&mut uneven, &short), [0.75, 0.25, 0.75]);
}

#[test]
fn what_a_flow_cannot_use_others_have() {
    let mut shares = shares(&[10.0]);
    let slots = [1.0, 10.0, 10.0].map(|limit| insert(&mut shares, limit, &[0]));
    assert_eq!(rates(&mut shares, &slots), [1.0, 4.5, 4.5]);
}

#[test]
fn a_flow_that_is_spread_takes_its_share_of_each() {
    // a sends half over each of two links, b over one of them: a/2 + b = 1 and a = b, so both get 2/3.
    let mut shares = shares(&[1.0, 1.0]);
    let a = shares.insert(2.0, [(0, 0.5), (1, 0.5)].into_iter());
    let b = insert(&mut shares, 1.0, &[1]);
    let two_thirds = 1.0 / 1.5;
    assert_eq!(rates(&mut shares, &[a, b]), [two_thirds, two_thirds]);
}

/// A flow's limit and its resources.
type Fluid = (f64, Vec<(u32, f64)>);

/// Textbook water-filling from scratch: all rates rise together; flows at their limit or on a full resource are frozen.
fn by_the_book(capacities: &[f64], flows: &[Fluid]) -> Vec<f64> {
    let mut rates = vec![0.0; flows.len()];
    let mut open: Vec<usize> = (0..flows.len()).collect();
    let mut left = capacities.to_vec();
    while !open.is_empty() {
        let mut load = vec![0.0; capacities.len()];
        for &flow in &open {
            flows[flow].1.iter().for_each(|&(resource, share)| load[resource as usize] += share);
        }
        let level =
            |resource: usize| if load[resource] > 1e-9 { left[resource] / load[resource] } else { f64::INFINITY };
        let least = |flow: usize| {
            flows[flow].1.iter().map(|&(resource, _)| level(resource as usize)).fold(flows[flow].0, f64::min)
        };
        let now = open.iter().map(|&flow| least(flow)).fold(f64::INFINITY, f64::min);
        let frozen: Vec<usize> = open.iter().copied().filter(|&flow| least(flow) <= now * (1.0 + 1e-12)).collect();
        open.retain(|flow| !frozen.contains(flow));
        for flow in frozen {
            rates[flow] = now;
            flows[flow].1.iter().for_each(|&(resource, share)| left[resource as usize] -= now * share);
        }
    }
    rates
}

fn passes(resources: u32) -> impl Strategy<Value = Vec<(u32, f64)>> {
    let one = (0..resources, prop::sample::select(vec![1.0, 1.0, 0.5, 0.25]));
    prop::collection::vec(one, 1..5).prop_map(|mut passes| {
        passes.sort_by_key(|pass| pass.0);
        passes.dedup_by_key(|pass| pass.0);
        passes
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn after_any_comings_and_goings_shares_are_those_of_the_book(
        capacities in prop::collection::vec(prop::sample::select(vec![1.0, 2.0, 2.5, 4.0, 10.0]), 6),
        steps in prop::collection::vec((any::<u8>(), prop::sample::select(vec![0.3, 1.0, 20.0]), passes(6),
            any::<bool>()), 1..60),
    ) {
        let mut shares = shares(&capacities);
        let mut under_way: Vec<(Slot, Fluid)> = Vec::new();
        let mut known = vec![0.0; 100];
        let mut changed = Vec::new();
        for (pick, limit, passes, settle) in steps {
            if pick % 3 == 0 && !under_way.is_empty() {
                let (slot, _) = under_way.swap_remove(usize::from(pick) % under_way.len());
                shares.remove(slot);
                known[slot as usize] = 0.0;
            } else {
                let slot = shares.insert(limit, passes.iter().copied());
                known[slot as usize] = 0.0;
                under_way.push((slot, (limit, passes)));
            }
            if !settle {
                continue;
            }
            shares.settle(&mut changed);
            changed.iter().for_each(|&slot| known[slot as usize] = shares.rate(slot));
            let flows: Vec<_> = under_way.iter().map(|(_, flow)| flow.clone()).collect();
            for ((slot, _), expected) in under_way.iter().zip(by_the_book(&capacities, &flows)) {
                let rate = shares.rate(*slot);
                prop_assert!((rate - expected).abs() < 1e-9 * expected, "{} {}", rate, expected);
                prop_assert_eq!(rate, known[*slot as usize], "told of every change");
            }
            let (loaded, lack) = shares.distance_from_fair();
            prop_assert!(loaded < 1.0 + 1e-9 && lack < 1e-9, "{} {}", loaded, lack);
        }
    }
}
