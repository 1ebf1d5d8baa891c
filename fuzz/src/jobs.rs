//! Jobs of other tools, and descriptions of models. What is read can be written, and is read again alike.

use job::Graph;
use job::model::{Setting, Training};
use job::read::{ChakraTrace, GoalTrace, HtsimTrace, Reading, SimaiTrace, StartUnit, TraceError};
use units::{Bytes, Duration};

use super::told;

/// Parts the files of a job, one a rank.
const BETWEEN: &[u8] = b"\n--\n";

/// Few steps: a line can ask for billions.
fn reading() -> Reading {
    Reading { steps_max: 20_000, ..Reading::default() }
}

/// What holds of every job: it can be written, and what is written is the same.
fn job(read: Result<Graph, TraceError>) -> bool {
    let graph = match read {
        Ok(graph) => graph,
        Err(error) => return told(&error),
    };
    let all = Reading::default();
    let unit = Duration::from_ps(1);
    let mut text = Vec::new();
    job::write::goal(&graph, unit, &mut text).expect("memory takes everything");
    let goal = GoalTrace { path: "again.goal".into(), unit }.parse(&text, &all);
    let files: Vec<Vec<u8>> = job::write::chakra(&graph).collect();
    let chakra = trace().parse(&files, None, &all);
    for again in [goal, chakra] {
        let again = again.unwrap_or_else(|error| panic!("{error}"));
        let size = |graph: &Graph| (graph.ranks(), graph.steps().len(), graph.messages().len());
        assert_eq!(size(&again), size(&graph));
        let bytes = |graph: &Graph| graph.messages().map(|message| u128::from(message.bytes)).sum::<u128>();
        assert_eq!(bytes(&again), bytes(&graph));
    }
    true
}

pub fn goal(bytes: &[u8]) -> bool {
    job(GoalTrace { path: "fuzz.goal".into(), unit: Duration::from_ns(1) }.parse(bytes, &reading()))
}

fn trace() -> ChakraTrace {
    ChakraTrace { path: "fuzz".into(), ranks: None, groups: None, teraflops: Some(312.0) }
}

/// The files of all ranks, one after the other, and last perhaps one of process groups.
pub fn chakra(bytes: &[u8]) -> bool {
    let mut files: Vec<Vec<u8>> = Vec::new();
    let mut rest = bytes;
    while let Some(at) = rest.windows(BETWEEN.len()).position(|window| window == BETWEEN) {
        files.push(rest[..at].to_vec());
        rest = &rest[at + BETWEEN.len()..];
    }
    let groups = rest.starts_with(b"{").then_some(("groups.json", rest));
    if groups.is_none() {
        files.push(rest.to_vec());
    }
    job(trace().parse(&files, groups, &reading()))
}

pub fn simai(bytes: &[u8]) -> bool {
    let simai = SimaiTrace { path: "fuzz.txt".into(), ranks: None, iterations: 2 };
    let given = SimaiTrace { ranks: Some(8), ..simai.clone() };
    job(simai.parse(bytes, &reading())) | job(given.parse(bytes, &reading()))
}

pub fn htsim(bytes: &[u8]) -> bool {
    let htsim = HtsimTrace { path: "fuzz.cm".into(), start_unit: StartUnit::Us };
    job(htsim.parse(bytes, &reading()))
        | job(HtsimTrace { start_unit: StartUnit::Ps, ..htsim }.parse(bytes, &reading()))
}

/// The description of a model: what passes the check can be built, unless it is too large.
pub fn model(bytes: &[u8]) -> bool {
    let Some(text) = super::text(bytes) else { return false };
    let Ok(training) = toml::from_str::<Training>(text) else { return false };
    if let Err(problem) = training.check() {
        return told(&problem);
    }
    // After the check, which refuses NaN: that is not equal to itself.
    let written = toml::to_string(&training).expect("a description can be written");
    assert_eq!(toml::from_str::<Training>(&written).as_ref(), Ok(&training), "{written}");
    let layers = u64::from(training.model.shape().layers);
    let work = training.ranks() * layers * u64::from(training.micro_batches);
    // A bucket of a byte is one for each layer.
    let buckets = training.gradients.bucket.is_none_or(|bucket| bucket > Bytes(0));
    assert!(buckets && training.time_of(0) == Duration::ZERO);
    if work > 2_000 || training.ranks() > 64 {
        return true;
    }
    match training.graph(1, &Setting::default()) {
        Ok(graph) => {
            assert_eq!(u64::from(graph.ranks()), training.ranks());
            true
        }
        Err(problem) => told(&problem),
    }
}
