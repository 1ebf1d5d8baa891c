//! From the steps of a job to its graph.

use job::collective::{self, Terms};
use job::{Builder, Collective, Graph, Rank, StepId};
use units::Problem;

use super::{Algorithm, Groups, Job, Library, Operation, Protocol, Step};

impl<T> Job<T> {
    /// What so many ranks do. Problems name the key within the job.
    pub(super) fn graph(&self, ranks: u32) -> Result<Graph, Problem> {
        let mut building = Building {
            b: Builder::new(ranks),
            at: vec![Vec::new(); ranks as usize],
            beside: vec![Vec::new(); ranks as usize],
            factors: self.factors(ranks)?,
            iteration: 0,
        };
        for iteration in 0..self.iterations {
            building.b.iteration(iteration);
            building.iteration = iteration;
            for (index, step) in self.steps.iter().enumerate() {
                building.step(self, step).map_err(|problem| problem.under(format!("steps[{index}]")))?;
            }
            building.end_iteration();
        }
        building.b.build().map_err(|error| Problem::new("steps", error.to_string()))
    }

    /// By rank, how many times as long its computations take.
    fn factors(&self, ranks: u32) -> Result<Vec<f64>, Problem> {
        let mut factors = vec![1.0; ranks as usize];
        for (index, straggler) in self.stragglers.iter().enumerate() {
            let key = |name: &str| format!("stragglers[{index}].{name}");
            let Some(factor) = factors.get_mut(straggler.rank as usize) else {
                let message = format!("there is no rank {}; the job has {ranks}, from 0 on", straggler.rank);
                return Err(Problem::new(key("rank"), message));
            };
            if !(straggler.factor > 0.0 && straggler.factor <= 1e6) {
                let message = format!("{} is not a factor; write one above 0, such as 1.5", straggler.factor);
                return Err(Problem::new(key("factor"), message));
            }
            *factor *= straggler.factor;
        }
        Ok(factors)
    }
}

impl Library {
    fn terms(&self) -> Result<Terms, Problem> {
        if !(1..=256).contains(&self.channels) {
            return Err(Problem::new("channels", format!("{} is not between 1 and 256", self.channels)));
        }
        if self.slots == 0 {
            return Err(Problem::new("slots", "with 0 no message could leave; write at least 1"));
        }
        let chunk = self.chunk.map_or(u64::MAX, |chunk| chunk.get());
        if chunk == 0 {
            return Err(Problem::new("chunk", "0B is no chunk; write a size such as \"512KiB\", or leave it out"));
        }
        let expand = match self.protocol {
            Protocol::Simple => (1, 1),
            Protocol::Ll => (2, 1),
            Protocol::Ll128 => (16, 15),
        };
        Ok(Terms { channels: self.channels, chunk, slots: self.slots, latency: self.latency, expand })
    }
}

impl Groups {
    /// The groups, each with its ranks.
    fn of(self, ranks: u32) -> Result<Vec<Vec<Rank>>, Problem> {
        let Groups { size, stride } = self;
        let block = size.checked_mul(stride).filter(|&block| block > 0);
        let Some(block) = block.filter(|&block| size >= 2 && ranks.is_multiple_of(block)) else {
            let message = format!(
                "{size} ranks, each {stride} after the one before, do not divide {ranks} ranks into equal groups; \
                 size is at least 2, and size x stride divides the number of ranks"
            );
            return Err(Problem::new("among", message));
        };
        let group = |first: u32| (0..size).map(|member| Rank(first + member * stride)).collect();
        Ok((0..ranks / block).flat_map(|of| (0..stride).map(move |at| of * block + at)).map(group).collect())
    }
}

struct Building {
    b: Builder,
    /// By rank: the steps after which it goes on.
    at: Vec<Vec<StepId>>,
    /// By rank: the ends of what goes on beside.
    beside: Vec<Vec<StepId>>,
    /// By rank: how many times as long it computes.
    factors: Vec<f64>,
    iteration: u32,
}

impl Building {
    fn step<T>(&mut self, job: &Job<T>, step: &Step) -> Result<(), Problem> {
        let (kind, operation) = match step {
            Step::Compute(time) => {
                self.b.name("compute");
                for (rank, at) in self.at.iter_mut().enumerate() {
                    *at = vec![self.b.compute(Rank(rank as u32), time.mul_f64(self.factors[rank]), at)];
                }
                return Ok(());
            }
            Step::AllReduce(operation) => (Kind::AllReduce, operation),
            Step::ReduceScatter(operation) => (Kind::ReduceScatter, operation),
            Step::AllGather(operation) => (Kind::AllGather, operation),
            Step::Broadcast(operation) => (Kind::Broadcast, operation),
            Step::AllToAll(operation) => (Kind::AllToAll, operation),
        };
        self.collective(job, kind, operation).map_err(|problem| problem.under(kind.name()))
    }

    fn collective<T>(&mut self, job: &Job<T>, kind: Kind, operation: &Operation) -> Result<(), Problem> {
        let ranks = self.b.ranks();
        let groups = operation.among.map_or(Ok(vec![(0..ranks).map(Rank).collect()]), |among| among.of(ranks))?;
        if operation.bytes.get() == 0 {
            return Err(Problem::new("bytes", "0B is no buffer; write a size such as \"1GB\""));
        }
        let terms = match &operation.library {
            Some(own) => own.terms().map_err(|problem| problem.under("library"))?,
            None => job.library.terms().map_err(|problem| Problem::new("library", problem.to_string()))?,
        };
        let algorithm = operation.algorithm.unwrap_or(kind.default_algorithm());
        let name = operation.name.as_deref().unwrap_or(kind.name());
        for group in groups {
            let entry: Vec<Vec<StepId>> = group.iter().map(|rank| self.at[rank.index()].clone()).collect();
            let collective = Collective {
                name: name.to_owned(),
                kind: kind.name(),
                algorithm: algorithm.name(),
                ranks: group.len() as u32,
                bytes: operation.bytes.get(),
                bus_factor: kind.bus_factor(group.len()),
                iteration: self.iteration,
            };
            let local = job.ranks_per_host as usize;
            let add = |b: &mut Builder| kind.add(b, algorithm, &group, local, operation.bytes.get(), &terms, &entry);
            let ends = self.b.within(collective, add)?;
            let to = if operation.beside { &mut self.beside } else { &mut self.at };
            for (rank, end) in group.iter().zip(ends) {
                match operation.beside {
                    true => to[rank.index()].push(end),
                    false => to[rank.index()] = vec![end],
                }
            }
        }
        Ok(())
    }

    /// Everybody waits for its own part of what went on beside.
    fn end_iteration(&mut self) {
        for (at, beside) in self.at.iter_mut().zip(&mut self.beside) {
            at.append(beside);
        }
    }
}

#[derive(Clone, Copy)]
enum Kind {
    AllReduce,
    ReduceScatter,
    AllGather,
    Broadcast,
    AllToAll,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::AllReduce => "all_reduce",
            Kind::ReduceScatter => "reduce_scatter",
            Kind::AllGather => "all_gather",
            Kind::Broadcast => "broadcast",
            Kind::AllToAll => "all_to_all",
        }
    }

    fn default_algorithm(self) -> Algorithm {
        if let Kind::AllToAll = self { Algorithm::Pairwise } else { Algorithm::Ring }
    }

    /// Bus bandwidth over algorithm bandwidth (NCCL's tests, PERFORMANCE.md).
    fn bus_factor(self, ranks: usize) -> f64 {
        let n = ranks as f64;
        match self {
            Kind::AllReduce => 2.0 * (n - 1.0) / n,
            Kind::ReduceScatter | Kind::AllGather | Kind::AllToAll => (n - 1.0) / n,
            Kind::Broadcast => 1.0,
        }
    }

    /// Adds the messages of a group; by member, the step at which it has its result.
    #[allow(clippy::too_many_arguments, reason = "the terms of one operation")]
    fn add(
        self,
        b: &mut Builder,
        algorithm: Algorithm,
        group: &[Rank],
        local: usize,
        bytes: u64,
        terms: &Terms,
        entry: &[Vec<StepId>],
    ) -> Result<Vec<StepId>, Problem> {
        let wrong = |message: String| Problem::new("algorithm", message);
        match (self, algorithm) {
            (Kind::AllReduce, Algorithm::Ring) => Ok(collective::all_reduce(b, group, bytes, terms, entry)),
            (Kind::AllReduce, Algorithm::Tree) => Ok(collective::two_trees(b, group, bytes, terms, entry)),
            (Kind::AllReduce, Algorithm::HalvingDoubling) => {
                collective::halving_doubling(b, group, bytes, terms, entry).ok_or_else(|| {
                    let ranks = group.len();
                    wrong(format!("halving_doubling needs a power of two ranks and not {ranks}; write ring or tree"))
                })
            }
            (Kind::AllReduce, Algorithm::Rails) => {
                collective::rails(b, group, local, bytes, terms, entry).ok_or_else(|| {
                    let ranks = group.len();
                    wrong(format!("rails need whole hosts, and {ranks} ranks are not of {local} a host; write ring"))
                })
            }
            (Kind::ReduceScatter, Algorithm::Ring) => Ok(collective::reduce_scatter(b, group, bytes, terms, entry)),
            (Kind::AllGather, Algorithm::Ring) => Ok(collective::all_gather(b, group, bytes, terms, entry)),
            (Kind::Broadcast, Algorithm::Ring) => Ok(collective::broadcast(b, group, bytes, terms, entry)),
            (Kind::Broadcast, Algorithm::Tree) => Ok(collective::two_trees_broadcast(b, group, bytes, terms, entry)),
            (Kind::AllToAll, Algorithm::Pairwise) => Ok(collective::all_to_all(b, group, bytes, terms, entry)),
            _ => {
                let known = match self {
                    Kind::AllReduce => "ring, tree, halving_doubling or rails",
                    Kind::Broadcast => "ring or tree",
                    Kind::ReduceScatter | Kind::AllGather => "ring",
                    Kind::AllToAll => "pairwise",
                };
                Err(wrong(format!("{} does not do {}; write {known}", algorithm.name(), self.name())))
            }
        }
    }
}

impl Algorithm {
    fn name(self) -> &'static str {
        match self {
            Algorithm::Ring => "ring",
            Algorithm::Tree => "tree",
            Algorithm::HalvingDoubling => "halving_doubling",
            Algorithm::Rails => "rails",
            Algorithm::Pairwise => "pairwise",
        }
    }
}
