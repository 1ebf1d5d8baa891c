//! The results of jobs: tables of their iterations, collectives, ranks and critical paths.

use std::collections::BTreeMap;

use fabric::Fabric;
use job::{Carried, CollectiveId, Done, PathPart, Rank, Segment, Share, StepId, Summed, Timeline, Work};
use units::{Duration, Time};
use workload::PlacedJob;

use crate::{Column, Data, Flows, Jobs, Table, alone, host_names};

/// The notes of a host on a computation or on a message within it, with the job's number.
pub type Noted = (u16, Done);

/// In place of a rank or a flow that there is not.
const NONE: u64 = Flows::NONE;

/// The tables `jobs`, `collectives`, `ranks` and `critical`; none without jobs. By row of a flow: when it was handed
/// over, was there, and was known to be, in picoseconds. Of jobs that are noted in sum, `summed` says what they came to
/// at each host.
pub fn job_tables<'a>(
    jobs: &Jobs,
    fabric: &Fabric,
    [started, delivered, completed]: [&[u64]; 3],
    done: impl Iterator<Item = Noted>,
    summed: impl Iterator<Item = (u16, &'a Summed)>,
) -> Vec<Table> {
    if jobs.is_empty() {
        return Vec::new();
    }
    let mut noted: Vec<Vec<Done>> = jobs.iter().map(|_| Vec::new()).collect();
    done.for_each(|(job, done)| noted[usize::from(job)].push(done));
    let mut sums: Vec<Vec<&Summed>> = jobs.iter().map(|_| Vec::new()).collect();
    summed.for_each(|(job, summed)| sums[usize::from(job)].push(summed));
    let mut rows = Rows::default();
    let time = |times: &[u64], flow: usize| (times[flow] != NONE).then(|| Time::from_ps(times[flow]));
    for (index, (placed, (done, summed))) in jobs.iter().zip(noted.into_iter().zip(sums)).enumerate() {
        let carried = |message| {
            // The flows of a job that is noted singly have a row each, and come first.
            placed.flow(message).map(units::FlowId::index).map_or(Carried::default(), |flow| Carried {
                started: time(started, flow),
                delivered: time(delivered, flow),
                completed: time(completed, flow),
            })
        };
        let line = match jobs.is_noted_singly(index) {
            true => Line::Singly(Timeline::new(&placed.graph, placed.start, done.into_iter(), carried)),
            false => Line::InSum(InSum::new(done, &summed)),
        };
        One { job: index as u32, placed, line }.add(&mut rows);
    }
    let names: Vec<String> = jobs.iter().map(|job| job.name.clone()).collect();
    vec![
        rows.jobs.table(&names),
        rows.collectives.table(&names),
        rows.ranks.table(&names, fabric),
        rows.critical.table(&names),
    ]
}

#[derive(Default)]
struct Rows {
    jobs: JobRows,
    collectives: CollectiveRows,
    ranks: RankRows,
    critical: CriticalRows,
}

/// Names, each once.
#[derive(Default)]
struct Names {
    names: Vec<String>,
    index: Vec<u32>,
}

impl Names {
    fn push(&mut self, name: &str) {
        let known = self.names.iter().rposition(|known| known == name);
        self.index.push(known.unwrap_or_else(|| {
            self.names.push(name.to_owned());
            self.names.len() - 1
        }) as u32);
    }

    fn data(self) -> Data {
        Data::Names { index: self.index, names: self.names }
    }
}

/// A job, and when its steps were done.
struct One<'a> {
    job: u32,
    placed: &'a PlacedJob,
    line: Line<'a>,
}

/// When steps were done.
enum Line<'a> {
    /// Each step.
    Singly(Timeline<'a>),
    /// Sums only: no critical path is traced.
    InSum(InSum),
}

/// Sums over the steps of a job.
struct InSum {
    /// Its computations, by step.
    computed: Vec<Done>,
    /// By rank and collective.
    shares: Vec<(Rank, CollectiveId, Share)>,
    /// By iteration: when the last of its steps was done, and how many never were.
    iterations: Vec<(Time, u64)>,
}

impl InSum {
    fn new(mut computed: Vec<Done>, summed: &[&Summed]) -> InSum {
        computed.sort_unstable_by_key(|done| done.step);
        let mut shares: Vec<_> = summed.iter().flat_map(|summed| summed.shares()).collect();
        shares.sort_unstable_by_key(|share| (share.0, share.1));
        let mut iterations: Vec<(Time, u64)> = Vec::new();
        for of in summed.iter().map(|summed| summed.iterations()) {
            iterations.resize(of.len(), (Time::ZERO, 0));
            for ((last, left), (at, more)) in iterations.iter_mut().zip(of) {
                (*last, *left) = (at.max(last).to_owned(), *left + more);
            }
        }
        InSum { computed, shares, iterations }
    }

    fn computed(&self, step: StepId) -> Option<&Done> {
        self.computed.binary_search_by_key(&step, |done| done.step).ok().map(|at| &self.computed[at])
    }

    /// From when to when a rank took part in a collective in which it has `steps` steps.
    fn share(&self, rank: Rank, of: CollectiveId, steps: u64) -> Span {
        let at = self.shares.binary_search_by_key(&(rank, of), |share| (share.0, share.1));
        at.map_or(Span { open: true, ..Span::default() }, |at| {
            let Share { begin, end, steps: done } = self.shares[at].2;
            Span { begin: Some(begin), end: Some(end), open: done < steps }
        })
    }
}

impl One<'_> {
    fn add(&self, rows: &mut Rows) {
        let graph = &self.placed.graph;
        let (ends, path) = match &self.line {
            Line::Singly(line) => {
                let all = (0..graph.steps().len() as u32).map(StepId);
                (self.iteration_ends(line), Some(line.last(all).map_or(Vec::new(), |last| line.critical_path(last.0))))
            }
            Line::InSum(sums) => {
                let end = |&(last, left): &(Time, u64)| (left == 0).then(|| last.max(self.placed.start));
                (sums.iterations.iter().map(end).collect(), None)
            }
        };
        let mut begin = Some(self.placed.start);
        let spans: Vec<_> = ends
            .into_iter()
            .map(|end| {
                let span = (begin, end);
                begin = begin.max(end).filter(|_| end.is_some());
                span
            })
            .collect();
        for ((iteration, &(begin, end)), took) in (0..).zip(&spans).zip(self.took(&spans, path.as_deref())) {
            rows.jobs.push(self, iteration, begin, end, &took);
        }
        path.iter().flatten().for_each(|segment| rows.critical.push(self, segment));
        self.add_collectives(rows);
        self.add_computations(rows);
    }

    /// By iteration, when the last of its steps was done; none if one never was.
    fn iteration_ends(&self, line: &Timeline<'_>) -> Vec<Option<Time>> {
        let graph = &self.placed.graph;
        let mut last = vec![Some(self.placed.start); graph.iterations() as usize];
        for (at, step) in (0..).zip(graph.steps()) {
            let of = &mut last[step.iteration as usize];
            *of = of.zip(line.was_done(StepId(at))).map(|(before, end)| before.max(end));
        }
        last
    }

    /// When computations began and ended, those that did.
    fn computations(&self) -> Vec<(Time, Time)> {
        match &self.line {
            Line::Singly(line) => line.computations().collect(),
            Line::InSum(sums) => sums.computed.iter().map(|done| (done.begin, done.end)).collect(),
        }
    }

    /// The times of iterations, which follow each other. A job may have so many that whatever happened is looked at
    /// once.
    fn took(&self, spans: &[(Option<Time>, Option<Time>)], path: Option<&[Segment]>) -> Vec<Took> {
        let critical = path.map(|_| [0; 5]);
        let mut took: Vec<Took> = spans.iter().map(|_| Took { computing: 0, critical }).collect();
        let known = |(iteration, &(begin, end)): (usize, &(Option<Time>, Option<Time>))| {
            let (from, until) = begin.zip(end)?;
            Some((iteration, from, until.max(from)))
        };
        let known: Vec<_> = (0..).zip(spans).filter_map(known).collect();
        let each = |begin: Time, end: Time, add: &mut dyn FnMut(usize, u64)| {
            let first = known.partition_point(|of| of.2 <= begin);
            for &(iteration, from, until) in known[first..].iter().take_while(|of| of.1 < end) {
                add(iteration, end.min(until).since(begin.max(from)).ps());
            }
        };
        for (begin, end) in self.computations() {
            each(begin, end, &mut |iteration, ps| took[iteration].computing += u128::from(ps));
        }
        for segment in path.into_iter().flatten() {
            let part = PARTS.iter().position(|part| *part == segment.part).expect("all parts are there");
            each(segment.begin, segment.end, &mut |iteration, ps| {
                took[iteration].critical.iter_mut().for_each(|critical| critical[part] += ps);
            });
        }
        took
    }

    /// Collectives as wholes, and by rank.
    fn add_collectives(&self, rows: &mut Rows) {
        let graph = &self.placed.graph;
        let count = graph.collectives().len();
        let mut spans: Vec<Span> = vec![Span::default(); count];
        for rank in (0..graph.ranks()).map(Rank) {
            for (of, span) in self.shares_of(rank) {
                spans[of.index()].join(span);
                let collective = &graph.collectives()[of.index()];
                rows.ranks.push(self, rank, "collective", &collective.name, collective.iteration, span);
            }
        }
        for (collective, span) in graph.collectives().iter().zip(spans) {
            rows.collectives.push(self.job, collective, span);
        }
    }

    /// The collectives of a rank, and from when to when it took part.
    fn shares_of(&self, rank: Rank) -> BTreeMap<CollectiveId, Span> {
        let graph = &self.placed.graph;
        match &self.line {
            Line::Singly(line) => {
                let mut own: BTreeMap<CollectiveId, Span> = BTreeMap::new();
                for step in graph.of(rank).map(StepId) {
                    let Some(of) = graph.step(step).of else { continue };
                    own.entry(of).or_default().add(line.took_part(step), line.was_done(step));
                }
                own
            }
            Line::InSum(sums) => {
                let mut steps: BTreeMap<CollectiveId, u64> = BTreeMap::new();
                graph.each_part(rank, |of, _, more| {
                    of.into_iter().for_each(|of| *steps.entry(of).or_default() += more);
                });
                steps.into_iter().map(|(of, steps)| (of, sums.share(rank, of, steps))).collect()
            }
        }
    }

    fn add_computations(&self, rows: &mut Rows) {
        let graph = &self.placed.graph;
        graph.each_single(|step, of| {
            if let Work::Compute(_) = of.work {
                let (begin, end) = match &self.line {
                    Line::Singly(line) => (line.begin(step), line.end(step)),
                    Line::InSum(sums) => sums.computed(step).map(|done| (done.begin, done.end)).unzip(),
                };
                let span = Span { begin, end, open: false };
                rows.ranks.push(self, of.rank, "compute", &graph.names()[of.name as usize], of.iteration, span);
            }
        });
    }
}

/// The time of an iteration, in picoseconds.
struct Took {
    /// All ranks together.
    computing: u128,
    /// By [`PathPart`], how much of the critical path it is, if that is known.
    critical: Option<[u64; 5]>,
}

/// From when to when.
#[derive(Clone, Copy, Debug, Default)]
struct Span {
    begin: Option<Time>,
    end: Option<Time>,
    /// Whether something in it never ended.
    open: bool,
}

impl Span {
    fn add(&mut self, begin: Option<Time>, end: Option<Time>) {
        if let Some(begin) = begin {
            self.begin = Some(self.begin.map_or(begin, |before| before.min(begin)));
        }
        self.open |= end.is_none();
        self.end = self.end.max(end);
    }

    fn join(&mut self, other: Span) {
        self.add(other.begin, other.end);
        self.open |= other.open;
    }

    fn end(self) -> Option<Time> {
        self.end.filter(|_| !self.open)
    }
}

fn ps(time: Option<Time>) -> u64 {
    time.map_or(NONE, Time::ps)
}

fn job_column(job: Vec<u32>, names: &[String]) -> Column {
    Column::new("job", "", "the job", Data::Names { index: job, names: names.to_vec() })
}

#[derive(Default)]
struct JobRows {
    job: Vec<u32>,
    iteration: Vec<u32>,
    ranks: Vec<u32>,
    begin: Vec<u64>,
    end: Vec<u64>,
    time: Vec<u64>,
    computing: Vec<u64>,
    exposed: Vec<u64>,
    /// By [`PathPart`], how much of the critical path it is.
    critical: [Vec<u64>; 5],
}

/// The parts of a critical path, in the order of the columns.
const PARTS: [PathPart; 5] = [PathPart::Compute, PathPart::Message, PathPart::Local, PathPart::Delay, PathPart::Answer];

fn part_name(part: PathPart) -> &'static str {
    match part {
        PathPart::Compute => "compute",
        PathPart::Message => "message",
        PathPart::Local => "local",
        PathPart::Delay => "delay",
        PathPart::Answer => "answer",
    }
}

impl JobRows {
    fn push(&mut self, one: &One<'_>, iteration: u32, begin: Option<Time>, end: Option<Time>, took: &Took) {
        let ranks = one.placed.graph.ranks();
        self.job.push(one.job);
        self.iteration.push(iteration);
        self.ranks.push(ranks);
        self.begin.push(ps(begin));
        self.end.push(ps(end));
        let Some((from, until)) = begin.zip(end) else {
            [&mut self.time, &mut self.computing, &mut self.exposed].into_iter().for_each(|of| of.push(NONE));
            self.critical.iter_mut().for_each(|of| of.push(NONE));
            return;
        };
        let time = until.since(from);
        let computing = (took.computing / u128::from(ranks)) as u64;
        self.time.push(time.ps());
        self.computing.push(computing);
        self.exposed.push(time.ps() - computing);
        let critical = took.critical.unwrap_or([NONE; 5]);
        self.critical.iter_mut().zip(critical).for_each(|(column, ps)| column.push(ps));
    }

    fn table(self, names: &[String]) -> Table {
        let [compute, message, local, delay, answer] = self.critical.map(Data::OptU64);
        let [alone, slowdown] = alone::columns(self.time.len());
        Table {
            name: "jobs",
            columns: vec![
                job_column(self.job, names),
                Column::new("iteration", "", "the iteration, from 0", Data::U32(self.iteration)),
                Column::new("ranks", "", "ranks of the job", Data::U32(self.ranks)),
                Column::new(
                    "begin_ps",
                    "ps",
                    "when the iteration before it ended, or the job began",
                    Data::OptU64(self.begin),
                ),
                Column::new(
                    "end_ps",
                    "ps",
                    "when its ranks were done with their last steps: with a message, when it was handed over; null if \
                     never",
                    Data::OptU64(self.end),
                ),
                Column::new("time_ps", "ps", "from its begin to its end", Data::OptU64(self.time)),
                Column::new(
                    "computing_ps",
                    "ps",
                    "of time_ps: how long a rank computed, as the mean over ranks",
                    Data::OptU64(self.computing),
                ),
                Column::new(
                    "exposed_ps",
                    "ps",
                    "of time_ps: how long a rank did not compute, as the mean over ranks: communication that nothing \
                     hides, and waiting for other ranks",
                    Data::OptU64(self.exposed),
                ),
                Column::new("critical_compute_ps", "ps", "of the critical path: computation", compute),
                Column::new("critical_message_ps", "ps", "of the critical path: messages in the network", message),
                Column::new("critical_local_ps", "ps", "of the critical path: messages within hosts", local),
                Column::new("critical_delay_ps", "ps", "of the critical path: the library's latency", delay),
                Column::new(
                    "critical_answer_ps",
                    "ps",
                    "of the critical path: messages until their sender knew, where the next waited for that",
                    answer,
                ),
                alone,
                slowdown,
            ],
        }
    }
}

#[derive(Default)]
struct CollectiveRows {
    job: Vec<u32>,
    iteration: Vec<u32>,
    name: Names,
    kind: Names,
    algorithm: Names,
    ranks: Vec<u32>,
    bytes: Vec<u64>,
    begin: Vec<u64>,
    end: Vec<u64>,
    time: Vec<u64>,
    algorithm_bps: Vec<f64>,
    bus_bps: Vec<f64>,
}

impl CollectiveRows {
    fn push(&mut self, job: u32, of: &job::Collective, span: Span) {
        let (begin, end) = (span.begin, span.end());
        let time = begin.zip(end).map(|(begin, end)| end.since(begin));
        let rate = time.map_or(f64::NAN, |time| of.bytes as f64 * 8.0 / time.secs_f64());
        self.job.push(job);
        self.iteration.push(of.iteration);
        self.name.push(&of.name);
        self.kind.push(of.kind);
        self.algorithm.push(of.algorithm);
        self.ranks.push(of.ranks);
        self.bytes.push(of.bytes);
        self.begin.push(ps(begin));
        self.end.push(ps(end));
        self.time.push(time.map_or(NONE, Duration::ps));
        self.algorithm_bps.push(rate);
        self.bus_bps.push(rate * of.bus_factor);
    }

    fn table(self, names: &[String]) -> Table {
        Table {
            name: "collectives",
            columns: vec![
                job_column(self.job, names),
                Column::new("iteration", "", "the iteration that it belongs to, from 0", Data::U32(self.iteration)),
                Column::new("collective", "", "its name", self.name.data()),
                Column::new("kind", "", "what the collective does, such as all_reduce", self.kind.data()),
                Column::new("algorithm", "", "how it does so, such as ring", self.algorithm.data()),
                Column::new("ranks", "", "ranks that take part", Data::U32(self.ranks)),
                Column::new("bytes", "B", "size of its buffer, as NCCL's tests count it", Data::U64(self.bytes)),
                Column::new("begin_ps", "ps", "when the first rank sent", Data::OptU64(self.begin)),
                Column::new(
                    "end_ps",
                    "ps",
                    "when the last rank was done; null if one never was",
                    Data::OptU64(self.end),
                ),
                Column::new("time_ps", "ps", "from its begin to its end", Data::OptU64(self.time)),
                Column::new(
                    "algorithm_bps",
                    "bit/s",
                    "algorithm bandwidth: bytes over time",
                    Data::F64(self.algorithm_bps),
                ),
                Column::new(
                    "bus_bps",
                    "bit/s",
                    "bus bandwidth: algorithm bandwidth times what NCCL's tests multiply by, 2(n-1)/n for an \
                     all-reduce; it compares with the rate of a link",
                    Data::F64(self.bus_bps),
                ),
            ],
        }
    }
}

#[derive(Default)]
struct RankRows {
    job: Vec<u32>,
    rank: Vec<u32>,
    host: Vec<u32>,
    what: Names,
    name: Names,
    iteration: Vec<u32>,
    begin: Vec<u64>,
    end: Vec<u64>,
}

impl RankRows {
    fn push(&mut self, one: &One<'_>, rank: Rank, what: &str, name: &str, iteration: u32, span: Span) {
        self.job.push(one.job);
        self.rank.push(rank.0);
        self.host.push(one.placed.placement.host_of[rank.index()].0);
        self.what.push(what);
        self.name.push(name);
        self.iteration.push(iteration);
        self.begin.push(ps(span.begin));
        self.end.push(ps(span.end()));
    }

    fn table(self, names: &[String], fabric: &Fabric) -> Table {
        let named = host_names(fabric, self.host.iter().map(|&host| units::HostId(host)));
        Table {
            name: "ranks",
            columns: vec![
                job_column(self.job, names),
                Column::new("rank", "", "the rank", Data::U32(self.rank)),
                Column::new("host", "", "the host where it is", Data::U32(self.host)),
                Column::new("host_name", "", "name of that host", named),
                Column::new("what", "", "compute or collective", self.what.data()),
                Column::new("name", "", "the name of the computation or collective", self.name.data()),
                Column::new("iteration", "", "the iteration that it belongs to, from 0", Data::U32(self.iteration)),
                Column::new(
                    "begin_ps",
                    "ps",
                    "when the rank began it: of a collective, when it first sent or received",
                    Data::OptU64(self.begin),
                ),
                Column::new(
                    "end_ps",
                    "ps",
                    "when the rank was done with it; null if it never was",
                    Data::OptU64(self.end),
                ),
            ],
        }
    }
}

#[derive(Default)]
struct CriticalRows {
    job: Vec<u32>,
    part: Names,
    rank: Vec<u32>,
    to_rank: Vec<u64>,
    name: Names,
    flow: Vec<u64>,
    begin: Vec<u64>,
    end: Vec<u64>,
}

impl CriticalRows {
    fn push(&mut self, one: &One<'_>, segment: &Segment) {
        let graph = &one.placed.graph;
        let step = graph.step(segment.step);
        let message = match step.work {
            Work::Send(message) => Some(message),
            _ => None,
        };
        self.job.push(one.job);
        self.part.push(part_name(segment.part));
        self.rank.push(step.rank.0);
        self.to_rank.push(message.map_or(NONE, |message| graph.message(message).to.0.into()));
        self.name.push(&graph.names()[step.name as usize]);
        self.flow.push(message.and_then(|message| one.placed.flow(message)).map_or(NONE, |flow| flow.0.into()));
        self.begin.push(segment.begin.ps());
        self.end.push(segment.end.ps());
    }

    fn table(self, names: &[String]) -> Table {
        Table {
            name: "critical",
            columns: vec![
                job_column(self.job, names),
                Column::new(
                    "part",
                    "",
                    "compute; message (in the network); local (within a host); delay (of the library); answer (until a \
                     sender knew)",
                    self.part.data(),
                ),
                Column::new("rank", "", "rank that computed or sent", Data::U32(self.rank)),
                Column::new(
                    "to_rank",
                    "",
                    "rank that the message was sent to; null if nothing was sent",
                    Data::OptU64(self.to_rank),
                ),
                Column::new("name", "", "the name of the computation or collective", self.name.data()),
                Column::new(
                    "flow",
                    "",
                    "the message's number in the table flows; null for others",
                    Data::OptU64(self.flow),
                ),
                Column::new("begin_ps", "ps", "when the part before it ended", Data::U64(self.begin)),
                Column::new("end_ps", "ps", "when it ended", Data::U64(self.end)),
            ],
        }
    }
}
