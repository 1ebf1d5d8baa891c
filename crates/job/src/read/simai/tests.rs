use std::collections::BTreeSet;
use std::sync::Arc;

use proptest::prelude::*;
use units::Time;

use super::*;
use crate::collective::{CollectiveAlgorithm, Terms};
use crate::testing::{mangled, run};

fn trace() -> SimaiTrace {
    SimaiTrace { path: "gpt.txt".to_owned(), ranks: None, iterations: 1 }
}

fn read(text: &str) -> Result<Graph, TraceError> {
    read_as(&trace(), text, Reading::default().how)
}

/// Reads a file, and counts it without building anything: both must say the same.
fn read_as(trace: &SimaiTrace, text: &str, how: CollectiveAlgorithm) -> Result<Graph, TraceError> {
    let reading = Reading { how, ..Reading::default() };
    let graph = trace.parse(text.as_bytes(), &reading)?;
    let counted = trace.count(text.as_bytes(), &reading, u32::MAX).expect("as sound");
    assert_eq!(counted, (graph.ranks(), graph.count()), "counted without building");
    Ok(graph)
}

/// Two layers on 8 ranks: 2 tensor, 4 data of which 2 share experts.
const GPT: &str = "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 ep: 2 pp: 1 vpp: 1 ga: 1 all_gpus: 8 \
    checkpoints: 0 checkpoint_initiates: 0\n2\n\
    attention -1\t1000\tALLREDUCE\t400\t700\tALLREDUCE\t600\t300\tREDUCESCATTER\t8000\t100\n\
    moe\t-1 500 ALLTOALL_EP 900 0 NONE 0 0 ALLREDUCE_DP_EP 1000 50\n";

/// Of each collective by its name: pairs of ranks between which it has messages, and bytes that rank 0 sends.
fn between(graph: &Graph, name: &str) -> (BTreeSet<(u32, u32)>, u64) {
    let of = graph.messages().filter(|message| graph.names()[graph.step(message.send).name as usize] == name);
    let sent = of.clone().filter(|message| message.from.0 == 0).map(|message| message.bytes).sum();
    (of.map(|message| (message.from.0.min(message.to.0), message.from.0.max(message.to.0))).collect(), sent)
}

#[test]
fn layers_become_computations_and_collectives_in_their_groups() {
    let graph = read(GPT).unwrap_or_else(|error| panic!("{error}"));
    let tensor: BTreeSet<(u32, u32)> = [(0, 1), (2, 3), (4, 5), (6, 7)].into();
    assert_eq!(between(&graph, "attention forward"), (tensor.clone(), 400));
    assert_eq!(between(&graph, "attention input"), (tensor, 600));
    // Rings of 0, 2, 4, 6 and 1, 3, 5, 7.
    let data: BTreeSet<(u32, u32)> = [(0, 2), (2, 4), (4, 6), (0, 6), (1, 3), (3, 5), (5, 7), (1, 7)].into();
    assert_eq!(between(&graph, "attention weight"), (data, 6_000));
    let experts: BTreeSet<(u32, u32)> = [(0, 2), (1, 3), (4, 6), (5, 7)].into();
    assert_eq!(between(&graph, "moe forward"), (experts, 450));
    let same_experts: BTreeSet<(u32, u32)> = [(0, 4), (1, 5), (2, 6), (3, 7)].into();
    assert_eq!(between(&graph, "moe weight"), (same_experts, 1_000));
}

#[test]
fn an_iteration_takes_its_times_and_weights_are_summed_beside() {
    let graph = Arc::new(read(GPT).expect("sound"));
    // Nothing is as fast as this network: 1000 + 500 forwards, 700 + 300 backwards; the last weights take an update.
    assert_eq!(run(&graph, Duration::ZERO).0, Time::from_ns(2_500 + 100));
    // 2 messages for each sum of 2 ranks, 1 for the all-to-all, 3 for the ring of 4; the moe weights are beside.
    assert_eq!(run(&graph, Duration::from_ns(10)).0, Time::from_ns(2_500 + 20 + 10 + 20 + 30 + 100));
    let twice = SimaiTrace { iterations: 2, ..trace() };
    let graph = twice.parse(GPT.as_bytes(), &Reading::default()).expect("sound");
    assert_eq!(graph.collectives().iter().map(|of| of.iteration).max(), Some(1));
    assert_eq!(run(&Arc::new(graph), Duration::ZERO).0, Time::from_ns(2 * 2_600));
}

/// A pipeline of `stages` with two ranks each, and `batches` of one layer.
fn pipeline(stages: u32, batches: u32) -> Graph {
    let text = format!(
        "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 ep: 1 pp: {stages} vpp: 1 ga: {batches} \
         all_gpus: {} pp_comm 70\n1\nlayer -1 100 NONE 0 0 NONE 0 0 NONE 0 0\n",
        2 * stages
    );
    read(&text).expect("sound")
}

#[test]
fn stages_pass_messages_on_at_the_end() {
    let graph = pipeline(2, 3);
    assert_eq!(between(&graph, "pipeline"), ([(0, 2), (1, 3)].into(), 6 * 70));
    assert_eq!(run(&Arc::new(graph), Duration::from_ns(10)).0, Time::from_ns(100 + 6 * 10));
}

#[test]
fn a_stage_waits_for_what_is_passed_on_to_it() {
    let graph = pipeline(3, 2);
    for message in graph.messages() {
        let mut waiting = Vec::new();
        graph.each_after(message.receive, |step| waiting.push(graph.step(step).rank));
        assert!(!waiting.is_empty() && waiting.iter().all(|&rank| rank == message.to), "{message:?}: {waiting:?}");
    }
}

#[test]
fn micro_benchmarks_are_done_line_by_line_among_all() {
    let text = "MICRO\n2\nmicro_test\t-1\t1\tNONE\t0\t1\tNONE\t0\t1\tALLREDUCE\t4096\t1\n\
        micro_test\t-1\t1\tNONE\t0\t1\tNONE\t0\t1\tALLTOALL\t8192\t1\n";
    let four = SimaiTrace { ranks: Some(4), ..trace() };
    let graph = four.parse(text.as_bytes(), &Reading::default()).expect("sound");
    assert_eq!(graph.collectives().iter().map(|of| (of.ranks, of.bytes)).collect::<Vec<_>>(), [(4, 4_096), (4, 8_192)]);
    let error = read(text).expect_err("how many ranks?");
    assert_eq!(
        error.to_string(),
        "gpt.txt, line 1: all_gpus is \"missing\", but should be given in the file, or as `ranks` beside its path"
    );
}

#[test]
fn what_is_wrong_is_named_by_line_and_field() {
    let layer = "attention -1";
    for (from, to, said) in [
        (
            "HYBRID_TRANSFORMER_FWD_IN_BCKWD",
            "HYBRID_DLRM",
            "line 1: policy is \"HYBRID_DLRM\", but should be HYBRID_TRANSFORMER_FWD_IN_BCKWD or MICRO",
        ),
        (
            "HYBRID_TRANSFORMER_FWD_IN_BCKWD",
            "root:x",
            "line 1: policy is \"something else\", but should be HYBRID_TRANSFORMER_FWD_IN_BCKWD or MICRO",
        ),
        ("ep: 2", "ep: x", "line 1: ep is \"x\", but should be a whole number from 0 to 1048576"),
        ("ep: 2", "ep: 0", "line 1: ep is \"0\", but should be from 1 to 1048576"),
        ("ep: 2", "xp: 2", "line 1: policy is \"xp:\", but should be a degree, such as ep: 8"),
        (
            "ep: 2",
            "ep: 3",
            "line 1: all_gpus is \"8\", but should be a multiple of tensor, expert and pipeline degree, 2 * 3 * 1",
        ),
        ("pp: 1", "pp: 2", "line 1: pp_comm is \"0\", but should be above 0 with pp above 1, and only then"),
        (
            "checkpoints: 0",
            "checkpoints: 2",
            "line 1: checkpoints is \"2\", but should be 0: layers are not computed again here",
        ),
        ("\n2\n", "\n3\n", ": layer is \"missing\", but should be the next line of the file"),
        (
            "\n2\n",
            "\n1\n",
            "line 4: layer is \"moe\t-1 500 ALLTOALL_EP 900 0 NONE 0 0 ALLREDUCE_DP_EP 1000 50\", but should be \
            none: line 2 says that there are 1",
        ),
        ("\n2\n", "\ntwo\n", "line 2: number of layers is \"two\", but should be a whole number from 0 to 100000000"),
        (
            layer,
            "attention",
            "line 3: layer is \"11 words\", but should be 12 words: a name, -1, three times a time, a \
            collective and its size, and a time",
        ),
        (
            "\t1000\t",
            "\t-5\t",
            "line 3: forward time is \"-5\", but should be a whole number from 0 to 4611686018427387",
        ),
        (
            "ALLREDUCE\t400",
            "ALLDEDUCE\t400",
            "line 3: forward collective is \"ALLDEDUCE\", but should be NONE, ALLREDUCE, \
            ALLGATHER, REDUCESCATTER, ALLTOALL or BROADCAST, perhaps with _EP or _DP_EP",
        ),
        (
            "REDUCESCATTER\t8000",
            "REDUCESCATTER\t8e3",
            "line 3: weight size is \"8e3\", but should be a whole number from 0 to \
            1125899906842624",
        ),
        (
            "\t1000\t",
            "\t4611686018427387\t",
            "line 3: time is \"attention\", but should be less: all times of all ranks may be 100 days",
        ),
    ] {
        let text = GPT.replacen(from, to, 1);
        assert_ne!(text, GPT, "{from}");
        let place = if said.starts_with(':') { "gpt.txt" } else { "gpt.txt, " };
        assert_eq!(read(&text).expect_err(said).to_string(), format!("{place}{said}"));
    }
}

#[test]
fn more_steps_than_a_job_may_have_are_refused() {
    let small = Reading { steps_max: 100, ..Reading::default() };
    let error = trace().parse(GPT.as_bytes(), &small).expect_err("too large").to_string();
    assert!(
        error.contains("more, but should be at most") || error.contains("more steps\", but should be at most"),
        "{error}"
    );
    let error = trace().parse(GPT.replace("gpus: 8", "gpus: 1048576").as_bytes(), &small).expect_err("too large");
    assert_eq!(
        error.to_string(),
        "gpt.txt, line 1: all_gpus is \"1048576\", but should be at most 100, the steps that the job may have"
    );
}

/// A collective of one of the kinds that files have, by number, and its size.
fn words(kind: usize, bytes: u64) -> String {
    let kinds = ["NONE", "ALLREDUCE", "ALLGATHER", "ALLTOALL_EP", "REDUCESCATTER_DP_EP", "BROADCAST"];
    format!("{} {bytes}", kinds[kind])
}

proptest! {
    #[test]
    fn whole_workloads_have_as_many_steps_as_counted(
        layers in prop::collection::vec((0u64..3, 0usize..6, 0u64..3, 0usize..6, 0u64..3, 0usize..6, 0u64..2), 0..5),
        (tensor, expert, data, pipeline) in (1u32..4, 1u32..3, 1u32..3, 1u32..4),
        (ga, bytes, iterations, micro) in (1u32..3, 1u64..3_000, 1u32..4, any::<bool>()),
        chunk in prop_oneof![Just(u64::MAX), 50u64..2_000],
        channels in 1u32..3,
    ) {
        let ranks = tensor * expert * data * pipeline;
        let passed = if pipeline > 1 { format!("pp_comm: {bytes} ") } else { String::new() };
        let policy = if micro { "MICRO" } else { "HYBRID_TRANSFORMER_FWD_IN_BCKWD" };
        let mut text = format!(
            "{policy} model_parallel_NPU_group: {tensor} ep: {expert} pp: {pipeline} vpp: 1 ga: {ga} {passed}all_gpus: \
             {ranks}\n{}\n",
            layers.len()
        );
        for (a, one, b, two, c, three, update) in layers {
            let (one, two, three) = (words(one, bytes), words(two, 2 * bytes), words(three, bytes / 2));
            text += &format!("layer -1 {a} {one} {b} {two} {c} {three} {update}\n");
        }
        let terms = Terms { channels, chunk, ..Terms::default() };
        let trace = SimaiTrace { iterations, ..trace() };
        let read = read_as(&trace, &text, CollectiveAlgorithm { terms, ..CollectiveAlgorithm::default() });
        prop_assert!(read.is_ok(), "{read:?}");
    }
}

#[test]
fn no_bytes_make_it_panic() {
    let small = Reading { steps_max: 5_000, ..Reading::default() };
    let mut accepted = 0;
    mangled(&[GPT.as_bytes().to_vec()], 4_000, |bytes| match trace().parse(bytes, &small) {
        Ok(_) => accepted += 1,
        Err(error) => assert!(error.to_string().len() < 2_000),
    });
    assert!(accepted > 0);
}
