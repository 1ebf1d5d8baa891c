use job::Work;
use units::{Bytes, Duration, Rate};

use super::*;
use crate::job::{Groups, Local, Operation, Step};
use crate::testing::star_of_racks;

fn operation(bytes: u64) -> Operation {
    Operation { name: None, bytes: Bytes(bytes), algorithm: None, among: None, beside: false, library: None }
}

fn job(steps: Vec<Step>) -> Job<()> {
    Job {
        name: "train".to_owned(),
        transport: None,
        start: Time::ZERO,
        hosts: None,
        ranks: None,
        ranks_per_host: 1,
        nics: None,
        placement: Placement::Packed,
        local: Local::default(),
        iterations: 1,
        steps,
        model: None,
        trace: None,
        loaded: None,
        library: crate::job::Library::default(),
        stragglers: Vec::new(),
    }
}

fn placed(job: &Job<()>) -> Result<(PlacedJob, Vec<Flow>), String> {
    let placed = place(std::slice::from_ref(job), 3, &star_of_racks(4, 4), 1, &Room::ANY, &[]);
    let flows = |placed: &PlacedJob| (0..placed.flows() as u32).map(|flow| placed.flow_at(flow)).collect();
    placed.map(|placed| (placed[0].clone(), flows(&placed[0]))).map_err(|problem| problem.to_string())
}

fn hosts(job: &PlacedJob) -> Vec<u32> {
    job.placement.host_of.iter().map(|host| host.0).collect()
}

#[test]
fn ranks_go_host_by_host_rack_by_rack_or_at_random() {
    let mut job = job(vec![Step::AllReduce(operation(8_000))]);
    (job.ranks, job.ranks_per_host) = (Some(8), 2);
    assert_eq!(hosts(&placed(&job).expect("fits").0), [0, 0, 1, 1, 2, 2, 3, 3]);
    job.placement = Placement::Striped;
    assert_eq!(hosts(&placed(&job).expect("fits").0), [0, 0, 4, 4, 8, 8, 12, 12]);
    job.placement = Placement::Random;
    let (first, again) = (placed(&job).expect("fits").0, placed(&job).expect("fits").0);
    assert_eq!(hosts(&first), hosts(&again), "by the seed");
    assert_ne!(hosts(&first), [0, 0, 1, 1, 2, 2, 3, 3]);
}

/// Where hosts have several links.
#[test]
fn there_may_be_more_racks_than_hosts() {
    let mut job = job(vec![Step::AllReduce(operation(8_000))]);
    job.placement = Placement::Striped;
    let mut view = star_of_racks(2, 2);
    view.rack_of[..].copy_from_slice(&[5, 5, 9, 9]);
    let placed = place(std::slice::from_ref(&job), 3, &view, 1, &Room::ANY, &[]);
    assert_eq!(hosts(&placed.map_err(|problem| problem.to_string()).expect("fits")[0]), [0, 2, 1, 3]);
}

#[test]
fn a_message_is_a_flow_unless_it_stays_in_its_host() {
    let mut job = job(vec![Step::AllReduce(operation(8_000))]);
    (job.ranks, job.ranks_per_host) = (Some(4), 2);
    let (placed, flows) = placed(&job).expect("fits");
    // A ring of 4 on two hosts: every second message goes to the other host.
    assert_eq!((placed.graph.messages().len(), flows.len(), placed.flows()), (24, 12, 12));
    for (index, flow) in flows.iter().enumerate() {
        let message = placed.message(FlowId::from(index));
        assert_eq!(placed.flow(message), Some(FlowId::from(index)));
        let Flow { src, dst, bytes, start, class, after } = *flow;
        let of = placed.graph.message(message);
        assert_eq!((bytes, start, class, after), (of.bytes, Flow::BY_JOB, 3, None));
        assert_eq!((src, dst), (HostId(of.from.0 / 2), HostId(of.to.0 / 2)));
    }
    let ranks = placed.ranks_by_host();
    assert_eq!(ranks, [(HostId(0), vec![Rank(0), Rank(1)]), (HostId(1), vec![Rank(2), Rank(3)])]);
}

#[test]
fn groups_have_every_stride_th_rank_and_steps_follow_each_other() {
    let mut all = operation(8_000);
    all.among = Some(Groups { size: 4, stride: 4 });
    let mut job =
        job(vec![Step::Compute(Duration::from_us(10)), Step::AllReduce(all), Step::AllToAll(operation(1_600))]);
    job.iterations = 2;
    let (placed, _) = placed(&job).expect("fits");
    let graph = &placed.graph;
    assert_eq!(graph.collectives().len(), 2 * (4 + 1));
    assert_eq!(graph.iterations(), 2);
    let mut reduce = graph.messages().filter(|message| {
        let of = graph.step(message.send).of.expect("of a collective");
        graph.collectives()[of.index()].kind == "all_reduce"
    });
    assert!(reduce.all(|message| message.from.0 % 4 == message.to.0 % 4), "each in its own group");
}

#[test]
fn a_straggler_computes_longer() {
    let mut job = job(vec![Step::Compute(Duration::from_us(10)), Step::AllReduce(operation(8_000))]);
    job.stragglers = vec![crate::job::Straggler { rank: 5, factor: 1.5 }];
    let (placed, _) = placed(&job).expect("fits");
    for step in placed.graph.steps() {
        if let Work::Compute(time) = step.work {
            assert_eq!(time, Duration::from_us(if step.rank == Rank(5) { 15 } else { 10 }));
        }
    }
}

/// A model of 2 x 2 x 2 ranks, as a scenario has it.
const MODEL: &str = r#"
model = { gpt = { layers = 4, hidden = 64, sequence = 32, vocabulary = 100 } }
degrees = { data = 2, tensor = 2, pipeline = 2 }
micro_batches = 2
accelerator = { teraflops = 1.0, efficiency = 0.5 }
"#;

#[test]
fn a_model_brings_its_ranks_and_iterations() {
    let mut job = job(Vec::new());
    job.model = Some(toml::from_str(MODEL).expect("a model"));
    job.iterations = 2;
    let (placed, flows) = placed(&job).expect("fits");
    assert_eq!((placed.graph.ranks(), placed.graph.iterations()), (8, 2));
    assert!(flows.iter().all(|flow| flow.src != flow.dst) && !flows.is_empty());
    let kinds: std::collections::BTreeSet<_> = placed.graph.collectives().iter().map(|of| of.kind).collect();
    assert!(kinds.contains("all_reduce"), "{kinds:?}");
}

#[test]
fn a_trace_of_another_tool_brings_its_ranks() {
    let mut job = job(Vec::new());
    job.trace = Some(toml::from_str("goal = { path = \"ping.goal\" }").expect("a trace"));
    let goal = "num_ranks 2\nrank 0 {\nl1: calc 1000\nl2: send 8000b to 1 tag 1\nl2 requires l1\n}\n\
                rank 1 {\nl1: recv 8000b from 0 tag 1\n}\n";
    assert!(placed(&job).expect_err("not read").starts_with("[0].trace: the file has not been read yet"));
    job.load(|path| if path == "ping.goal" { Ok(goal.into()) } else { Err(std::io::ErrorKind::NotFound.into()) })
        .expect("a sound trace");
    let (placed, flows) = placed(&job).expect("fits");
    assert_eq!((placed.graph.ranks(), flows.len(), flows[0].bytes), (2, 1, 8_000));
    let mut broken = job.clone();
    let error = broken.load(|_| Ok(goal.replace("8000b to", "many to").into())).expect_err("broken").to_string();
    assert!(error.starts_with("trace: ping.goal, line 4"), "{error}");
    job.stragglers = vec![crate::job::Straggler { rank: 0, factor: 2.0 }];
    job.iterations = 3;
    let (same, _) = super::tests::placed(&job).expect("fits");
    assert_eq!(same.graph, placed.graph, "stragglers and iterations have no effect beside a trace");
    let advice: Vec<String> = job.advice().iter().map(ToString::to_string).collect();
    assert!(advice[0].starts_with("iterations: has no effect beside a trace, which is done once"), "{advice:?}");
    assert!(advice[1].starts_with("stragglers: has no effect beside a trace"), "{advice:?}");
}

/// Makes a sound job unsound.
type Change = fn(&mut Job<()>);

#[test]
fn what_cannot_be_is_refused_by_its_key() {
    let refused = |change: Change| {
        let mut job = job(vec![Step::Compute(Duration::from_us(10)), Step::AllReduce(operation(8_000))]);
        change(&mut job);
        placed(&job).expect_err("refused")
    };
    let cases: [(Change, &str); 11] = [
        (|job| job.steps.clear(), "[0].steps: a job has steps, a model or a trace"),
        (|job| job.model = Some(toml::from_str(MODEL).expect("a model")), "[0].steps: a job has steps, a model or"),
        (|job| job.ranks = Some(17), "[0].ranks: a job of 17 ranks does not go on 16 hosts"),
        (|job| job.ranks = Some(1), "[0].ranks: a job of 1 ranks"),
        (|job| job.ranks_per_host = 0, "[0].ranks_per_host: at 0"),
        (|job| job.iterations = 0, "[0].iterations: at 0"),
        (|job| job.local.rate = Rate::ZERO, "[0].local.rate: at 0"),
        (|job| job.steps[1] = Step::AllReduce(operation(0)), "[0].steps[1].all_reduce.bytes: 0B is no buffer"),
        (
            |job| {
                let among = Some(Groups { size: 3, stride: 1 });
                job.steps[1] = Step::AllReduce(Operation { among, ..operation(8) });
            },
            "[0].steps[1].all_reduce.among: 3 ranks",
        ),
        (
            |job| {
                let algorithm = Some(crate::job::Algorithm::Rails);
                job.steps[1] = Step::AllToAll(Operation { algorithm, ..operation(8) });
            },
            "[0].steps[1].all_to_all.algorithm: rails does not do all_to_all; write pairwise",
        ),
        (
            |job| job.stragglers.push(crate::job::Straggler { rank: 16, factor: 2.0 }),
            "[0].stragglers[0].rank: there is",
        ),
    ];
    for (change, said) in cases {
        let error = refused(change);
        assert!(error.starts_with(said), "{error}");
    }
}
