use std::collections::BTreeMap;
use std::sync::Arc;

use units::Time;

use super::*;
use crate::collective::AllReduce;
use crate::testing::run;
use crate::{MessageId, Work};

/// A small GPT with nothing that is hard to divide.
fn gpt(layers: u32) -> Model {
    Model::Gpt(Gpt {
        layers,
        hidden: 64,
        sequence: 32,
        vocabulary: 128,
        feed_forward: None,
        key_value: None,
        family: Family::Gpt,
    })
}

fn moe(gini: f64) -> Model {
    Model::Moe(Moe {
        layers: 4,
        hidden: 64,
        sequence: 32,
        vocabulary: 128,
        experts: 8,
        top_k: 2,
        expert_hidden: 96,
        gini,
        key_value: None,
        family: Family::Llama,
    })
}

fn training(model: Model, (tensor, data, pipeline, expert): (u32, u32, u32, u32)) -> Training {
    Training {
        model,
        degrees: Degrees { data, tensor, pipeline, expert },
        micro_batches: 4,
        micro_batch: 2,
        accelerator: Accelerator { teraflops: 0.001, efficiency: 0.5 },
        element: Bytes(2),
        recompute: false,
        gradients: Gradients { bucket: Some(Bytes(1)), ..Gradients::default() },
        optimizer: Duration::ZERO,
    }
}

/// Bytes that a rank sends, by the name of what they belong to, without numbers.
fn sent(graph: &Graph, rank: u32) -> BTreeMap<String, u64> {
    let mut sent = BTreeMap::new();
    for message in graph.messages().filter(|message| message.from.0 == rank) {
        let name = &graph.names()[graph.step(message.send).name as usize];
        let name = name.trim_end_matches(|sign: char| sign.is_ascii_digit()).trim_end();
        *sent.entry(name.to_owned()).or_default() += message.bytes;
    }
    sent
}

fn expect(sent: &BTreeMap<String, u64>, terms: &[(&str, u64)]) {
    let expected: BTreeMap<String, u64> = terms.iter().map(|(name, bytes)| ((*name).to_owned(), *bytes)).collect();
    assert_eq!(*sent, expected);
}

/// The computation of a rank, in all.
fn computed(graph: &Graph, rank: u32) -> Duration {
    let of = graph.steps().filter(|step| step.rank.0 == rank);
    of.filter_map(|step| if let Work::Compute(time) = step.work { Some(time) } else { None }).sum()
}

#[test]
fn parameters_are_those_of_the_published_models() {
    // Narayanan et al., 2021, table 1: layers, hidden size, billions of parameters.
    for (layers, hidden, billions) in [
        (24, 2304, 1.7),
        (30, 3072, 3.6),
        (36, 4096, 7.5),
        (40, 6144, 18.4),
        (48, 8192, 39.1),
        (60, 10_240, 76.1),
        (80, 12_288, 145.6),
        (96, 16_384, 310.1),
        (105, 20_480, 529.6),
        (128, 25_600, 1008.0),
    ] {
        let model = Model::Gpt(Gpt {
            layers,
            hidden,
            sequence: 2048,
            vocabulary: 51_200,
            feed_forward: None,
            key_value: None,
            family: Family::Gpt,
        });
        let found = model.shape().parameters() as f64 / 1e9;
        assert!((found - billions).abs() < 0.06, "{layers} layers of {hidden}: {found}");
        let (l, h) = (f64::from(layers), f64::from(hidden));
        let formula = 12.0 * l * h * h * (1.0 + 13.0 / (12.0 * h) + 53_248.0 / (12.0 * l * h)) / 1e9;
        assert!((found / formula - 1.0).abs() < 1e-12);
    }
    for (model, billions) in [
        (Model::Gpt3, 174.6),
        (Model::Llama8, 8.03),
        (Model::Llama70, 70.55),
        (Model::Llama405, 405.85),
        (Model::Mixtral, 46.70),
    ] {
        let found = model.shape().parameters() as f64 / 1e9;
        assert!((found / billions - 1.0).abs() < 5e-4, "{model:?}: {found}");
    }
}

#[test]
fn operations_are_those_of_the_published_formula() {
    let shape = Model::Megatron1T.shape();
    let (b, s, l, h, v) = (3_072.0, 2_048.0, 128.0, 25_600.0, 51_200.0);
    // With activations computed again: four forward passes of layers, three of the logits.
    let forward = shape.forward_flops(3_072 * 2_048) as f64;
    let again = forward - shape.logit_flops(3_072 * 2_048) as f64;
    let formula = 96.0 * b * s * l * h * h * (1.0 + s / (6.0 * h) + v / (16.0 * l * h));
    assert!(((3.0 * forward + again) / formula - 1.0).abs() < 1e-12);
}

#[test]
fn a_rank_computes_what_the_formula_says() {
    for (degrees, recompute) in [((1, 1, 1, 1), false), ((2, 2, 1, 1), false), ((4, 1, 1, 1), true)] {
        let training = Training { recompute, ..training(gpt(4), degrees) };
        let graph = training.graph(1, &Setting::default()).expect("sound");
        let shape = training.model.shape();
        let (all, logits) = (shape.forward_flops(training.tokens()), shape.logit_flops(training.tokens()));
        let flops = 3 * all + if recompute { all - logits } else { 0 };
        let expected = training.time_of(4 * flops / u128::from(training.degrees.tensor));
        for rank in 0..graph.ranks() {
            let off = computed(&graph, rank).ps().abs_diff(expected.ps());
            // Times of layers are rounded one by one.
            assert!(off < 200, "{off} ps of {expected}");
        }
    }
}

#[test]
fn a_rank_sends_what_the_formulas_say() {
    // Two of each: rank 0 is on the first stage, rank 4 on the second.
    let training = training(gpt(4), (2, 2, 2, 1));
    let graph = training.graph(1, &Setting::default()).expect("sound");
    let (m, l, t, d) = (4, 2, 2, 2);
    let activations = 2 * 32 * 64 * 2; // b s h elements of 2 bytes
    let sum = 2 * activations * (t - 1) / t; // of a ring of t ranks
    let shape = training.model.shape();
    let embedding = 128 * 64 / 2;
    let stage = l * shape.layer(2, 1).dense + embedding;
    let gradients = |elements: u64| 2 * 4 * elements * (d - 1) / d;
    let common = [
        ("attention", m * l * sum),
        ("attention gradients", m * l * sum),
        ("feed-forward", m * l * sum),
        ("feed-forward gradients", m * l * sum),
        ("embedding gradients", 4 * embedding), // a ring of two: 2 (n-1)/n of it
    ];
    let positions = 32 * 64;
    let first = [("activations", m * activations), ("embedding", m * sum), ("gradients", gradients(stage + positions))];
    expect(&sent(&graph, 0), &[&common[..], &first].concat());
    let second =
        [("activation gradients", m * activations), ("logit gradients", m * sum), ("gradients", gradients(stage))];
    expect(&sent(&graph, 4), &[&common[..], &second].concat());
    // The sum of a rank's tensor all-reduces in the layers is the paper's l 8bsh (t-1)/t elements (section 3.2).
    let paper = m * l * 8 * 2 * 32 * 64 * 2 * (t - 1) / t;
    assert_eq!(common[..4].iter().map(|term| term.1).sum::<u64>(), paper);
}

#[test]
fn a_sharded_optimiser_scatters_gradients_and_gathers_parameters() {
    for (overlap, bucket) in [(true, 1), (false, 1), (true, 100_000), (false, 1_000_000_000)] {
        let gradients = Gradients { sharded: true, overlap, bucket: Some(Bytes(bucket)), element: Bytes(4) };
        let training = Training { gradients, ..training(gpt(4), (1, 4, 1, 1)) };
        let graph = training.graph(2, &Setting::default()).expect("sound");
        let parameters = training.model.shape().parameters() as u64;
        for rank in 0..4 {
            let terms = [("gradients", 2 * 4 * parameters * 3 / 4), ("parameters", 2 * 2 * parameters * 3 / 4)];
            expect(&sent(&graph, rank), &terms);
        }
    }
}

#[test]
fn sums_beside_the_backward_pass_end_sooner() {
    let time = |overlap, sharded| {
        let gradients = Gradients { overlap, sharded, bucket: Some(Bytes(1)), ..Gradients::default() };
        let training = Training { gradients, ..training(gpt(8), (1, 2, 1, 1)) };
        let graph = Arc::new(training.graph(1, &Setting::default()).expect("sound"));
        let layer = training.time_of(2 * training.model.shape().attention_flops(training.tokens()));
        run(&graph, layer / 4).0
    };
    for sharded in [false, true] {
        let (beside, after) = (time(true, sharded), time(false, sharded));
        assert!(beside < after, "{beside} and {after}");
    }
}

#[test]
fn the_bubble_of_1f1b_is_p_minus_1_of_m() {
    for (stages, micro_batches) in [(1, 4), (2, 4), (4, 4), (4, 8), (8, 16), (4, 2)] {
        // Hardly any logits, so that all stages take as long.
        let model = Model::Gpt(Gpt { vocabulary: 1, hidden: 512, ..small(8) });
        let training = Training { micro_batches, ..training(model, (1, 1, stages, 1)) };
        let graph = Arc::new(training.graph(1, &Setting::default()).expect("sound"));
        let (end, done) = run(&graph, Duration::ZERO);
        let busy = computed(&graph, 0).secs_f64();
        let bubble = (end.since(Time::ZERO).secs_f64() - busy) / busy;
        let expected = f64::from(stages - 1) / f64::from(micro_batches);
        assert!((bubble - expected).abs() < 1e-3, "{stages} stages: {bubble}, and not {expected}");
        // A stage keeps no more micro-batches than there are stages from it on.
        for stage in 0..stages {
            let mut under_way = 0i32;
            for done in done.iter().filter(|done| graph.step(done.step).rank.0 == stage) {
                let name = &graph.names()[graph.step(done.step).name as usize];
                under_way += if name.starts_with("forward") { 1 } else { 0 };
                assert!(under_way <= (stages - stage) as i32, "stage {stage} has {under_way} under way");
                under_way -= if name.starts_with("backward") && last_of(&graph, &done.step) { 1 } else { 0 };
            }
        }
    }
}

fn small(layers: u32) -> Gpt {
    let Model::Gpt(gpt) = gpt(layers) else { unreachable!("it is one") };
    gpt
}

/// Whether no later computation of the rank has the same name.
fn last_of(graph: &Graph, step: &StepId) -> bool {
    let own = graph.step(*step);
    let later = step.0 + 1..graph.of(own.rank).end;
    !later
        .map(|at| graph.step(StepId(at)))
        .any(|other| other.name == own.name && matches!(other.work, Work::Compute(_)))
}

#[test]
fn stages_take_turns_as_the_schedule_says() {
    use Turn::{Backward as B, Forward as F};
    assert_eq!(
        one_forward_one_backward(0, 3, 4),
        [F(0), F(1), F(2), B(0), F(3), B(1), B(2), B(3)],
        "two ahead, then one and one"
    );
    assert_eq!(one_forward_one_backward(2, 3, 2), [F(0), B(0), F(1), B(1)]);
    assert_eq!(one_forward_one_backward(0, 9, 2), [F(0), F(1), B(0), B(1)]);
}

#[test]
fn shares_of_experts_have_the_gini_coefficient_asked_for() {
    for n in [2, 8, 64, 256] {
        for gini in [0.0, 0.05, 0.105, 0.25, 0.4] {
            let shares = shares(n, gini);
            assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-12 && shares.is_sorted());
            // The mean difference of two, over twice the mean.
            let differences: f64 = shares.iter().flat_map(|a| shares.iter().map(move |b| (a - b).abs())).sum();
            let found = differences / (2.0 * f64::from(n));
            assert!((found - gini).abs() < 1e-9, "{n} experts at {gini}: {found}");
        }
    }
}

#[test]
fn tokens_go_to_experts_by_their_loads_and_results_come_back() {
    for (gini, degrees) in [(0.0, (1, 4, 1, 4)), (0.2, (1, 4, 2, 2)), (0.25, (2, 8, 1, 4))] {
        let training = training(moe(gini), degrees);
        let setting = Setting { seed: 7, ..Setting::default() };
        let graph = training.graph(1, &setting).expect("sound");
        let (t, e, m) = (training.degrees.tensor as usize, training.degrees.expert as usize, 4);
        let vector = 64 * 2;
        let layers = 4 / training.degrees.pipeline;
        for rank in 0..graph.ranks() {
            let stage = rank / (degrees.0 * degrees.1);
            let place = rank as usize % (t * degrees.1 as usize) / t % e;
            let (mut to, mut back) = (0, 0);
            for layer in stage * layers..(stage + 1) * layers {
                let choices = super::experts::choices(&training, 7, 0, layer);
                assert_eq!(choices.iter().sum::<u64>(), 2 * training.tokens());
                let held: u64 = choices.chunks(8 / e).nth(place).expect("a holder").iter().sum();
                to += (2 * training.tokens() - held) * vector;
                back += held * (e as u64 - 1) * vector;
            }
            let sent = sent(&graph, rank);
            for (name, bytes) in
                [("dispatch", to), ("combine", back), ("combine gradients", to), ("dispatch gradients", back)]
            {
                assert_eq!(sent.get(name), Some(&(m * bytes)), "{name} of rank {rank}");
            }
            let shape = training.model.shape();
            let replicas = u64::from(training.degrees.data) / e as u64;
            let own = shape.layer(t as u32, e as u32).expert * u64::from(layers);
            let expected = (replicas > 1).then_some(2 * 4 * own * (replicas - 1) / replicas);
            assert_eq!(sent.get("expert gradients").copied(), expected);
        }
    }
}

#[test]
fn the_rank_with_the_heaviest_experts_computes_longest() {
    let even = training(moe(0.0), (1, 4, 1, 4)).graph(1, &Setting::default()).expect("sound");
    assert!((1..4).all(|rank| computed(&even, rank) == computed(&even, 0)));
    let uneven = training(moe(0.25), (1, 4, 1, 4)).graph(1, &Setting::default()).expect("sound");
    let sum = |graph: &Graph| (0..4).map(|rank| computed(graph, rank)).sum::<Duration>();
    assert!(sum(&even).ps().abs_diff(sum(&uneven).ps()) < 2_000, "the same work in all");
    assert!((1..4).any(|rank| computed(&uneven, rank) != computed(&uneven, 0)));
    // Another seed, another expert.
    let other = training(moe(0.25), (1, 4, 1, 4)).graph(1, &Setting { seed: 2, ..Setting::default() });
    assert_ne!(other.expect("sound"), uneven);
}

#[test]
fn a_slow_rank_takes_longer_and_iterations_follow_each_other() {
    let training = Training { optimizer: Duration::from_us(3), ..training(gpt(2), (1, 2, 1, 1)) };
    let slow = |rank: Rank| if rank.0 == 1 { 2.0 } else { 1.0 };
    let graph = training.graph(2, &Setting { slow: &slow, ..Setting::default() }).expect("sound");
    assert_eq!(computed(&graph, 1), computed(&graph, 0) * 2);
    let (end, _) = run(&Arc::new(graph.clone()), Duration::ZERO);
    assert_eq!(end.since(Time::ZERO), computed(&graph, 1));
    let iterations: Vec<u32> = graph.collectives().iter().map(|collective| collective.iteration).collect();
    assert_eq!((iterations.iter().min(), iterations.iter().max()), (Some(&0), Some(&1)));
    let early = graph.message(MessageId(0));
    assert_eq!(graph.collectives()[graph.step(early.send).of.expect("a sum").index()].iteration, 0);
}

#[test]
fn no_more_steps_than_were_counted_before() {
    for (model, degrees, sharded) in [
        (gpt(4), (2, 2, 2, 1), false),
        (gpt(4), (2, 1, 1, 1), true),
        (moe(0.2), (2, 4, 2, 2), true),
        (moe(0.0), (1, 8, 4, 8), false),
    ] {
        for recompute in [false, true] {
            let gradients = Gradients { sharded, bucket: Some(Bytes(1)), ..Gradients::default() };
            let training = Training { recompute, gradients, ..training(model.clone(), degrees) };
            let graph = training.graph(1, &Setting::default()).expect("sound");
            let (steps, most) = (graph.steps().len() as u64, training.steps_most(&Setting::default(), 0));
            assert!(steps <= most && most < 2 * steps, "{steps} steps, and {most} expected for {training:?}");
        }
    }
}

#[test]
fn a_description_is_read_and_written_alike() {
    let text = "model = { gpt = { layers = 4, hidden = 64, sequence = 32, vocabulary = 128 } }\n\
        degrees = { data = 2, tensor = 2 }\nmicro_batches = 4\n\
        accelerator = { teraflops = 312.0, efficiency = 0.5 }\ngradients = { sharded = true }\n";
    let read: Training = toml::from_str(text).expect("a description");
    assert_eq!((read.ranks(), read.micro_batch, read.element), (4, 1, Bytes(2)));
    assert_eq!(read.gradients, Gradients { sharded: true, ..Gradients::default() });
    let written = toml::to_string(&read).expect("it can be written");
    assert_eq!(toml::from_str::<Training>(&written), Ok(read));
    let named: Training =
        toml::from_str(&text.replace(&text[..text.find('\n').expect("lines")], "model = \"gpt3_175b\""))
            .expect("named");
    assert_eq!(named.model, Model::Gpt3);
    let error = toml::from_str::<Training>(&text.replace("layers", "layer")).expect_err("no such key");
    assert!(error.to_string().contains("layer"), "{error}");
}

#[test]
fn what_cannot_be_trained_is_refused_by_its_key() {
    let sound = training(gpt(4), (2, 2, 2, 1));
    let wrong = |change: &dyn Fn(&mut Training)| {
        let mut changed = sound.clone();
        change(&mut changed);
        changed.check().expect_err("it is wrong").to_string()
    };
    for (change, said) in [
        (
            &(|t: &mut Training| t.degrees.pipeline = 3) as &dyn Fn(&mut Training),
            "degrees.pipeline: 3 stages do not divide the model's 4 layers",
        ),
        (&|t| t.degrees.tensor = 5, "degrees.tensor: 5 does not divide the model's hidden size, 64"),
        (&|t| t.degrees.data = 0, "degrees.data: 0 divides nothing; write at least 1"),
        (&|t| t.degrees.data = 1 << 30, "degrees.data: 4294967296 ranks in all; at most 1048576 are possible"),
        (&|t| t.degrees.expert = 3, "degrees.expert: 3 does not divide data, 2, which it is a part of"),
        (&|t| t.micro_batches = 0, "micro_batches: 0 is no such number; write one from 1 to 1000000"),
        (
            &|t| t.accelerator.teraflops = f64::NAN,
            "accelerator.teraflops: NaN is no speed; write 10^12 operations a second above 0, such as 312",
        ),
        (
            &|t| t.accelerator.efficiency = 1.5,
            "accelerator.efficiency: 1.5 is no share; write one above 0, at most 1, such as 0.5",
        ),
        (&|t| t.element = Bytes(0), "element: 0B is no size of a number; write 1B to 16B"),
        (
            &|t| t.gradients.bucket = Some(Bytes(0)),
            "gradients.bucket: 0B would hold nothing; write at least 1B, or leave it out",
        ),
        (&|t| t.model = gpt(0), "model.gpt.layers: 0 is no such size; write one from 1 to 10000"),
        (
            &|t| t.model = moe(0.99),
            "model.moe.gini: 0.99 is no Gini coefficient of 8 experts; write one from 0 to 0.875",
        ),
        (
            &|t| t.model = moe(0.7),
            "model.moe.gini: at 0.7 one expert would get 0.553 of all choices, and it gets one of a token's 2; \
             write less: real text has 0.105 to 0.25",
        ),
    ] {
        assert_eq!(wrong(change), said);
    }
    let setting = |all_reduce| Setting {
        tensor: CollectiveAlgorithm { all_reduce, ..CollectiveAlgorithm::default() },
        ..Setting::default()
    };
    let odd = training(Model::Gpt(Gpt { hidden: 96, vocabulary: 96, ..small(4) }), (3, 1, 1, 1));
    let error = odd.graph(1, &setting(AllReduce::HalvingDoubling)).expect_err("3 is no power of two");
    assert_eq!(
        error.to_string(),
        "degrees.tensor: recursive halving and doubling needs a power of two ranks, and not 3; use a ring or a tree"
    );
    let mut b = Builder::new(3);
    let ranks: Vec<Rank> = (0..3).map(Rank).collect();
    let error = sound.add(&mut b, &ranks, &Setting::default(), 0, &vec![Vec::new(); 3]).expect_err("8 are needed");
    assert_eq!(error.to_string(), "degrees: are for 8 ranks, data * tensor * pipeline, and the job has 3");
    let large = Training { micro_batches: 1_000_000, ..training(gpt(4), (2, 2, 2, 1)) };
    let error = large.graph(1, &Setting::default()).expect_err("too many steps");
    assert!(error.to_string().starts_with("micro_batches: an iteration may have "), "{error}");
}
