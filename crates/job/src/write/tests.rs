use proptest::prelude::*;
use units::{Bytes, Duration};

use super::*;
use crate::collective::{AllReduce, Broadcast, CollectiveAlgorithm, Kind, Terms};
use crate::model::{Accelerator, Degrees, Family, Gradients, Model, Moe, Setting, Training};
use crate::read::{ChakraTrace, GoalTrace, Reading};
use crate::{Builder, Rank, StepId, Work};

/// The content of a graph, without the ids of messages: for each rank its steps, each with what it does, its name if
/// they are compared, and those that it waits for.
fn said(graph: &Graph, names: bool) -> Vec<String> {
    let before = Before::new(graph);
    let mut said = Vec::new();
    for rank in 0..graph.ranks() {
        let steps = graph.of(Rank(rank));
        for step in steps.clone() {
            let own = graph.step(StepId(step));
            assert_eq!(own.rank, Rank(rank));
            let local = |step: StepId| step.0 - graph.of(graph.step(step).rank).start;
            let work = match own.work {
                Work::Compute(time) => format!("compute {time}"),
                Work::Delay(time) => format!("delay {time}"),
                Work::Send(id) => {
                    let message = graph.message(id);
                    format!("send {} B to {} {}", message.bytes, message.to.0, local(message.receive))
                }
                Work::Receive(id) => {
                    let message = graph.message(id);
                    format!("receive {} B from {} {}", message.bytes, message.from.0, local(message.send))
                }
            };
            let mut waits: Vec<u32> = before.of(step).iter().map(|other| other - steps.start).collect();
            waits.sort_unstable();
            waits.dedup();
            let name = if names { &graph.names()[own.name as usize] } else { "" };
            said.push(format!("{rank}: {work} after {waits:?} {name}"));
        }
    }
    said
}

fn through_goal(graph: &Graph) -> Graph {
    let mut text = Vec::new();
    let unit = Duration::from_ps(1);
    goal(graph, unit, &mut text).expect("memory takes everything");
    let trace = GoalTrace { path: "job.goal".to_owned(), unit };
    trace.parse(&text, &Reading::default()).unwrap_or_else(|error| panic!("{error}"))
}

fn through_chakra(graph: &Graph) -> Graph {
    let files: Vec<Vec<u8>> = chakra(graph).collect();
    let trace = ChakraTrace { path: "job".to_owned(), ranks: None, groups: None, teraflops: None };
    trace.parse(&files, None, &Reading::default()).unwrap_or_else(|error| panic!("{error}"))
}

/// One collective after a computation, by one of all algorithms.
fn collective(which: usize, ranks: u32, bytes: u64, terms: Terms) -> Graph {
    let kinds = [Kind::AllReduce, Kind::ReduceScatter, Kind::AllGather, Kind::AllToAll, Kind::Broadcast];
    let (kind, how) = match which {
        0..5 => (kinds[which], CollectiveAlgorithm { terms, ..CollectiveAlgorithm::default() }),
        5 => (
            Kind::AllReduce,
            CollectiveAlgorithm { all_reduce: AllReduce::Tree, terms, ..CollectiveAlgorithm::default() },
        ),
        6 => (
            Kind::AllReduce,
            CollectiveAlgorithm { all_reduce: AllReduce::HalvingDoubling, terms, ..CollectiveAlgorithm::default() },
        ),
        7 => (
            Kind::AllReduce,
            CollectiveAlgorithm { all_reduce: AllReduce::Rails(2), terms, ..CollectiveAlgorithm::default() },
        ),
        _ => (
            Kind::Broadcast,
            CollectiveAlgorithm { broadcast: Broadcast::Tree, terms, ..CollectiveAlgorithm::default() },
        ),
    };
    // All algorithms have room for a power of two.
    let ranks = ranks.next_power_of_two().max(2);
    let mut b = Builder::new(ranks);
    let all: Vec<Rank> = (0..ranks).map(Rank).collect();
    b.name("work");
    let entry: Vec<Vec<StepId>> = all.iter().map(|&rank| vec![b.compute(rank, Duration::from_ps(7), &[])]).collect();
    let ends = how.add(&mut b, kind, "sum", 0, &all, bytes, &entry).expect("it fits");
    b.name("rest");
    for (&end, &rank) in ends.iter().zip(&all) {
        b.compute(rank, Duration::from_us(3), &[end]);
    }
    b.build().expect("sound")
}

proptest! {
    #[test]
    fn what_is_written_is_read_alike(
        which in 0usize..9, ranks in 2u32..9, bytes in 1u64..3_000, channels in 1u32..3, chunk in 1u64..2_000,
        slots in 1u32..9, latency in 0u64..2
    ) {
        let latency = Duration::from_ns(latency * 300);
        let terms = Terms { channels, chunk, slots, latency, expand: (16, 15), local: 2 };
        let graph = collective(which, ranks, bytes, terms);
        prop_assert_eq!(said(&through_goal(&graph), false), said(&graph, false));
        prop_assert_eq!(said(&through_chakra(&graph), true), said(&graph, true));
    }
}

#[test]
fn a_model_is_read_as_it_was_written() {
    let training = Training {
        model: Model::Moe(Moe {
            layers: 4,
            hidden: 64,
            sequence: 32,
            vocabulary: 128,
            experts: 8,
            top_k: 2,
            expert_hidden: 96,
            gini: 0.2,
            key_value: None,
            family: Family::Gpt,
        }),
        degrees: Degrees { data: 4, tensor: 2, pipeline: 2, expert: 2 },
        micro_batches: 3,
        micro_batch: 1,
        accelerator: Accelerator { teraflops: 0.01, efficiency: 0.5 },
        element: Bytes(2),
        recompute: false,
        gradients: Gradients { sharded: true, ..Gradients::default() },
        optimizer: Duration::from_us(2),
    };
    let graph = training.graph(2, &Setting::default()).expect("sound");
    assert_eq!(said(&through_goal(&graph), false), said(&graph, false));
    assert_eq!(said(&through_chakra(&graph), true), said(&graph, true));
}

#[test]
fn goal_is_written_in_the_words_of_its_tools() {
    let mut b = Builder::new(2);
    let first = b.compute(Rank(0), Duration::from_ps(1_500), &[]);
    b.message((Rank(0), Rank(1)), 10, (0, 0), &[first], &[]);
    b.message((Rank(0), Rank(1)), 20, (0, 0), &[], &[]);
    b.delay(Rank(1), Duration::from_ps(1_499), &[]);
    let mut text = Vec::new();
    goal(&b.build().expect("sound"), Duration::from_ns(1), &mut text).expect("memory takes everything");
    let expected = "num_ranks 2\n\nrank 0 {\nl1: calc 2\nl2: send 10b to 1 tag 0\nl2 requires l1\n\
        l3: send 20b to 1 tag 1\n}\n\nrank 1 {\nl1: recv 10b from 0 tag 0\nl2: recv 20b from 0 tag 1\nl3: calc 1 cpu \
            1\n}\n";
    assert_eq!(String::from_utf8(text).as_deref(), Ok(expected));
}
