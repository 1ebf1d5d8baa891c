use proptest::prelude::*;
use units::{Bytes, Duration};

use crate::collective::{AllReduce, Broadcast, CollectiveAlgorithm, Group, Kind, Parts, Terms};
use crate::model::{Accelerator, Degrees, Family, Gpt, Gradients, Model, Moe, Setting, Training};
use crate::{Builder, Count, Graph, Rank, StepId};

fn terms() -> impl Strategy<Value = Terms> {
    let latency = prop_oneof![Just(Duration::ZERO), Just(Duration::from_ns(300))];
    let chunk = prop_oneof![1u64..50, 50u64..5_000, Just(u64::MAX)];
    let expand = prop_oneof![Just((1, 1)), Just((2, 1)), Just((16, 15))];
    (1u32..6, chunk, 1u32..9, latency, expand).prop_map(|(channels, chunk, slots, latency, expand)| Terms {
        channels,
        chunk,
        slots,
        latency,
        expand,
        local: 1 + slots / 2,
    })
}

fn how() -> impl Strategy<Value = CollectiveAlgorithm> {
    let all_reduce = prop_oneof![
        Just(AllReduce::Ring),
        Just(AllReduce::Tree),
        Just(AllReduce::HalvingDoubling),
        (1u32..9).prop_map(AllReduce::Rails),
    ];
    let parts = prop_oneof![Just(Parts::Ring), (1u32..9).prop_map(Parts::Rails)];
    let broadcast = prop_oneof![Just(Broadcast::Ring), Just(Broadcast::Tree)];
    (all_reduce, parts, broadcast, terms()).prop_map(|(all_reduce, parts, broadcast, terms)| CollectiveAlgorithm {
        all_reduce,
        parts,
        broadcast,
        terms,
        library: None,
    })
}

fn kind() -> impl Strategy<Value = Kind> {
    prop_oneof![
        Just(Kind::AllReduce),
        Just(Kind::ReduceScatter),
        Just(Kind::AllGather),
        Just(Kind::AllToAll),
        Just(Kind::Broadcast),
        Just(Kind::SendRecv),
    ]
}

/// The collective's part of a job whose ranks wait for a number of steps before.
fn added(how: &CollectiveAlgorithm, kind: Kind, n: u32, bytes: u64, waits: usize) -> Option<Count> {
    let mut b = Builder::new(n);
    let ranks: Vec<Rank> = (0..n).map(Rank).collect();
    let before = |rank: &Rank, b: &mut Builder| -> Vec<StepId> {
        (0..waits).map(|_| b.compute(*rank, Duration::from_ns(1), &[])).collect()
    };
    let entry: Vec<Vec<StepId>> = ranks.iter().map(|rank| before(rank, &mut b)).collect();
    how.add(&mut b, kind, "it", 0, &ranks, bytes, &entry).ok()?;
    let before = waits as u64 * u64::from(n);
    let all = b.count();
    Some(Count { steps: all.steps - before, computations: all.computations - before, ..all })
}

proptest! {
    #[test]
    fn a_collective_has_as_many_steps_and_messages_as_its_formula_says(
        how in how(),
        kind in kind(),
        n in prop_oneof![1u32..20, prop_oneof![Just(32u32), Just(48), Just(64)]],
        bytes in prop_oneof![1u64..40, 40u64..3_000],
        waits in 0usize..4,
    ) {
        if let Some(built) = added(&how, kind, n, bytes, waits) {
            let counted = how.count(kind, n, bytes, waits);
            if waits > 0 || built.messages <= 4_096 {
                prop_assert_eq!(counted, built);
            } else {
                prop_assert_eq!(Count { steps: built.steps, ..counted }, built);
                let joins = u64::from(n) * (2 * u64::from(how.terms.channels) + 1);
                prop_assert!((built.steps..=built.steps + joins).contains(&counted.steps));
            }
        }
    }

    #[test]
    fn messages_leave_hosts_as_counted_where_all_ranks_send_as_many(
        how in how(),
        kind in kind(),
        size in 2u32..17,
        stride in 1u32..4,
        local in 1u32..7,
    ) {
        // Parts of the same length, each in one message.
        let terms = Terms { channels: 1, chunk: u64::MAX, ..how.terms };
        let how = CollectiveAlgorithm { terms, ..how };
        let bytes = u64::from(size) * 64;
        let mut b = Builder::new(size * stride);
        let ranks: Vec<Rank> = (0..size).map(|at| Rank(at * stride)).collect();
        let entry = vec![Vec::new(); ranks.len()];
        if how.add(&mut b, kind, "it", 0, &ranks, bytes, &entry).is_err() {
            return Ok(());
        }
        let graph = b.build().expect("sound");
        let apart = graph.messages().filter(|message| message.from.0 / local != message.to.0 / local).count();
        let share = how.leaving(kind, Group { first: 0, stride, size }, local);
        let counted = how.count(kind, size, bytes, 1).leaving(share).leaving;
        match (kind, how.all_reduce, how.broadcast) {
            // A rank of a ring's broadcast sends to the next, but the last does not.
            (Kind::Broadcast, _, Broadcast::Ring) => prop_assert!(counted.abs_diff(apart as u64) <= 1),
            // Two trees are not alike at the border of a number that is no power of two.
            (Kind::AllReduce, AllReduce::Tree, _) | (Kind::Broadcast, ..) => {
                prop_assert!(counted.abs_diff(apart as u64) <= 4 * u64::from(size.ilog2() + 1));
            }
            _ => prop_assert_eq!(counted, apart as u64),
        }
    }

    #[test]
    fn a_model_has_as_many_steps_and_messages_as_counted(
        training in training(),
        how in how(),
        chunk in prop_oneof![Just(u64::MAX), 64u64..4_096],
        iterations in 1u32..4,
        slow in prop_oneof![Just(1.0), Just(3.0)],
    ) {
        let how = CollectiveAlgorithm { terms: Terms { chunk: how.terms.chunk.max(4_096), ..how.terms }, ..how };
        let terms = Terms { chunk, channels: 1, ..how.terms };
        let plain = CollectiveAlgorithm { terms, ..CollectiveAlgorithm::default() };
        let slow = |_: Rank| slow;
        let setting = Setting { tensor: plain, data: how, expert: plain, slow: &slow, seed: 3 };
        if let Ok(graph) = training.graph(iterations, &setting) {
            let counted = training.count(iterations, &setting, 4);
            prop_assert_eq!(Count { leaving: 0, ..counted }, graph.count());
        }
    }
}

fn training() -> impl Strategy<Value = Training> {
    let model = prop_oneof![
        (1u32..3, prop_oneof![Just(Family::Gpt), Just(Family::Llama)]).prop_map(|(layers, family)| Model::Gpt(Gpt {
            layers: 2 * layers,
            hidden: 16,
            sequence: 8,
            vocabulary: 32,
            feed_forward: None,
            key_value: None,
            family,
        })),
        (1u32..3, 0.0f64..0.4).prop_map(|(layers, gini)| Model::Moe(Moe {
            layers: 2 * layers,
            hidden: 16,
            sequence: 8,
            vocabulary: 32,
            experts: 4,
            top_k: 1,
            expert_hidden: 16,
            gini,
            key_value: None,
            family: Family::Llama,
        })),
    ];
    let degrees = (0u32..3, 0u32..3, 0u32..3, 0u32..3).prop_map(|(data, tensor, pipeline, expert)| Degrees {
        data: 1 << data,
        tensor: 1 << tensor,
        pipeline: [1, 2, 4][pipeline as usize],
        expert: 1 << expert,
    });
    let gradients = (any::<bool>(), any::<bool>(), prop_oneof![Just(Bytes(1)), Just(Bytes(20_000))]);
    let optimizer = prop_oneof![Just(Duration::ZERO), Just(Duration::from_us(1))];
    let speed = prop_oneof![Just(0.001), Just(20.0)];
    (model, degrees, 1u32..7, any::<bool>(), gradients, optimizer, speed).prop_map(
        |(model, degrees, micro_batches, recompute, (sharded, overlap, bucket), optimizer, teraflops)| Training {
            model,
            degrees,
            micro_batches,
            micro_batch: 1,
            accelerator: Accelerator { teraflops, efficiency: 0.5 },
            element: Bytes(2),
            recompute,
            gradients: Gradients { sharded, overlap, bucket: Some(bucket), ..Gradients::default() },
            optimizer,
        },
    )
}

#[test]
fn counts_do_not_wrap() {
    let how = CollectiveAlgorithm {
        terms: Terms { channels: 256, chunk: 1, ..Terms::default() },
        ..CollectiveAlgorithm::default()
    };
    let count = how.count(Kind::AllToAll, u32::MAX, u64::MAX, 1).times(u64::MAX);
    assert_eq!((count.steps, count.messages, count.bytes), (u64::MAX, u64::MAX, u64::MAX));
}

/// 10,000 ranks round a ring have 2 * 10,000 * 9,999 messages of 100 KB, sent and received, and a step that ends each
/// rank's part.
#[test]
fn ten_thousand_ranks_are_counted_without_building_them() {
    let count = CollectiveAlgorithm::default().count(Kind::AllReduce, 10_000, 1_000_000_000, 0);
    assert_eq!(count.messages, 2 * 10_000 * 9_999);
    assert_eq!(count.steps, 2 * count.messages + 10_000);
    assert_eq!(count.bytes, 2 * 9_999 * 1_000_000_000);
    // Of each rank its part of the ring, and the step that ends it.
    assert_eq!(count.kept(), 2 * 10_000);
}

#[test]
fn a_graph_counts_what_it_has() {
    let mut b = Builder::new(2);
    let before = b.compute(Rank(0), Duration::from_us(1), &[]);
    b.message((Rank(0), Rank(1)), 700, (0, 0), &[before], &[]);
    let graph: Graph = b.build().expect("sound");
    let expected = Count { steps: 3, messages: 1, bytes: 700, computations: 1, ..Count::default() };
    assert_eq!(graph.count(), expected);
}
