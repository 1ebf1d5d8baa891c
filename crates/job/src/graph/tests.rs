use std::sync::Arc;

use proptest::prelude::*;
use units::{Duration, HostId, Rate};

use super::*;
use crate::Placement;
use crate::collective::{AllReduce, CollectiveAlgorithm, Kind, Terms};
use crate::testing::{after, carry};

#[test]
fn steps_of_a_rank_lie_side_by_side() {
    let mut b = Builder::new(2);
    let one = b.compute(Rank(1), Duration::from_us(1), &[]);
    let zero = b.compute(Rank(0), Duration::from_us(2), &[]);
    let (_, receive) = b.message((Rank(1), Rank(0)), 10, (0, 0), &[one], &[zero]);
    b.compute(Rank(0), Duration::from_us(3), &[receive]);
    let graph = b.build().expect("sound");
    assert_eq!((graph.of(Rank(0)), graph.of(Rank(1))), (0..3, 3..5));
    let message = graph.message(MessageId(0));
    assert_eq!((message.send, message.receive), (StepId(4), StepId(1)));
    assert_eq!(after(&graph, StepId(0)), [StepId(1)]);
    assert_eq!(after(&graph, StepId(1)), [StepId(2)]);
    assert_eq!((graph.needs(StepId(0)), graph.needs(StepId(1)), graph.needs(StepId(2))), (0, 1, 1));
}

#[test]
fn what_cannot_be_is_refused() {
    let mut b = Builder::new(2);
    let one = b.compute(Rank(1), Duration::from_us(1), &[]);
    b.compute(Rank(0), Duration::from_us(2), &[one]);
    let error = b.build().expect_err("rank 0 cannot see a step of rank 1");
    assert_eq!(error.to_string(), "step 1 of rank 0 waits for step 0 of rank 1; ranks wait for messages alone");

    for (from, to, bytes) in [(0, 0, 5), (0, 2, 5), (0, 1, 0)] {
        let mut b = Builder::new(2);
        b.message((Rank(from), Rank(to)), bytes, (0, 0), &[], &[]);
        assert_eq!(b.build(), Err(GraphError::NoMessage { from, to, bytes, ranks: 2 }));
    }

    // Each sends after it has received.
    let mut b = Builder::new(2);
    b.name("ping");
    let (send, receive) = b.message((Rank(0), Rank(1)), 5, (0, 0), &[], &[]);
    let (back, got) = b.message((Rank(1), Rank(0)), 5, (0, 0), &[receive], &[]);
    b.wait(send, got);
    let _ = back;
    let error = b.build().expect_err("a circle through messages");
    assert_eq!(
        error.to_string(),
        "4 steps wait for each other in a circle, one of them \"ping\" of rank 0; delete a dependency"
    );
}

/// Rounds of collectives of some kind among `ranks` ranks, after a computation each, beside collectives of pairs.
fn collectives(mut b: Builder, ranks: u32, kinds: &[(Kind, u64)], how: &CollectiveAlgorithm, enter: bool) -> Graph {
    let all: Vec<Rank> = (0..ranks).map(Rank).collect();
    let mut last: Vec<Vec<StepId>> = vec![Vec::new(); ranks as usize];
    for (iteration, &(kind, bytes)) in (0..).zip(kinds) {
        b.iteration(iteration);
        if enter {
            let compute =
                |&rank: &Rank| b.compute(rank, Duration::from_ns(700 + u64::from(rank.0) * 30), &last[rank.index()]);
            last = all.iter().map(compute).map(|step| vec![step]).collect();
        }
        for pair in all.chunks_exact(2) {
            let entry = &last[pair[0].index()..=pair[1].index()];
            let beside = how.add(&mut b, Kind::AllGather, "pairs", iteration, pair, bytes, entry).expect("fits");
            pair.iter().zip(beside).for_each(|(rank, end)| last[rank.index()].push(end));
        }
        let ends = how.add(&mut b, kind, "all", iteration, &all, bytes, &last).expect("fits");
        last = ends.into_iter().map(|end| vec![end]).collect();
    }
    b.build().expect("sound")
}

fn hows() -> impl Strategy<Value = CollectiveAlgorithm> {
    let latency = prop_oneof![Just(Duration::ZERO), Just(Duration::from_ns(300))];
    let terms = (1u32..4, 1u64..2_000, 1u32..9, latency);
    (terms, any::<bool>()).prop_map(|((channels, chunk, slots, latency), rails)| CollectiveAlgorithm {
        all_reduce: if rails { AllReduce::Rails(2) } else { AllReduce::Ring },
        terms: Terms { channels, chunk, slots, latency, expand: (1, 1), local: 2 },
        ..CollectiveAlgorithm::default()
    })
}

fn kinds() -> impl Strategy<Value = Vec<(Kind, u64)>> {
    let kind =
        prop_oneof![Just(Kind::AllReduce), Just(Kind::ReduceScatter), Just(Kind::AllGather), Just(Kind::AllToAll)];
    prop::collection::vec((kind, 1u64..5_000), 1..4)
}

/// Two channels of which one has too few bytes for a formula: the step that joins them waits for both, and each once.
#[test]
fn a_ring_by_formula_beside_one_that_is_spelled_out_is_joined_once() {
    let how = CollectiveAlgorithm {
        terms: Terms { channels: 2, chunk: 1, slots: 1, ..Terms::default() },
        ..CollectiveAlgorithm::default()
    };
    let [short, long] =
        [Builder::new(2), Builder::spelled_out(2)].map(|b| collectives(b, 2, &[(Kind::AllReduce, 465)], &how, false));
    assert_eq!(short.rings.len(), 2, "that of the pair, and one of two channels");
    for step in (0..long.steps().len() as u32).map(StepId) {
        assert_eq!(after(&short, step), after(&long, step), "step {}", step.0);
    }
}

proptest! {
    #[test]
    fn rings_by_formula_are_those_that_are_spelled_out(
        half in 1u32..5, kinds in kinds(), how in hows(), enter: bool
    ) {
        let ranks = 2 * half;
        let short = collectives(Builder::new(ranks), ranks, &kinds, &how, enter);
        let long = collectives(Builder::spelled_out(ranks), ranks, &kinds, &how, enter);
        prop_assert!(long.rings.is_empty());
        prop_assert_eq!(short.steps().collect::<Vec<_>>(), long.steps().collect::<Vec<_>>());
        prop_assert_eq!(short.messages().collect::<Vec<_>>(), long.messages().collect::<Vec<_>>());
        prop_assert_eq!(short.iterations(), long.iterations());
        for rank in (0..ranks).map(Rank) {
            prop_assert_eq!(short.of(rank), long.of(rank));
        }
        for step in (0..long.steps().len() as u32).map(StepId) {
            prop_assert_eq!(short.needs(step), long.needs(step), "step {}", step.0);
            prop_assert_eq!(after(&short, step), after(&long, step), "step {}", step.0);
        }
    }

    #[test]
    fn ranks_do_the_same_in_rings_by_formula(
        half in 1u32..5, of_host in 1u32..4, kinds in kinds(), how in hows(), enter: bool, times in any::<u64>()
    ) {
        let ranks = 2 * half;
        let host_of = (0..ranks).map(|rank| HostId(rank / of_host)).collect();
        let placement = Arc::new(Placement { host_of, rate: Rate::from_gbps(80), delay: Duration::from_ns(150) });
        // Messages overtake each other, and ranks are late.
        let takes = |message: MessageId| {
            let draw = units::mix(times, message.0.into());
            (Duration::from_ns(1 + draw % 900), Duration::from_ns(draw >> 32 & 255))
        };
        let [short, long] = [Builder::new(ranks), Builder::spelled_out(ranks)].map(|b| {
            let graph = Arc::new(collectives(b, ranks, &kinds, &how, enter));
            carry(&graph, &placement, takes)
        });
        prop_assert_eq!((short.left, long.left), (0, 0));
        prop_assert_eq!(short.end, long.end);
        prop_assert_eq!(short.done, long.done);
        prop_assert_eq!(short.carried, long.carried);
    }
}
