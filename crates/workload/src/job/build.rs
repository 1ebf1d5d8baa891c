//! From the steps of a job to its graph.

use job::collective::{AllReduce, Broadcast, CollectiveAlgorithm, Kind, Parts, Terms};
use job::model::Setting;
use job::{Builder, Graph, Rank, StepId};
use std::sync::Arc;

use units::{Problem, Rate, interrupt};

use super::{Algorithm, Groups, Job, Library, Loaded, Operation, Protocol, Step};

impl<T> Job<T> {
    /// The work of this many ranks. Problems name the key within the job.
    pub(super) fn graph(&self, ranks: u32, seed: u64, nic: Rate) -> Result<Graph, Problem> {
        match &self.model {
            Some(model) => self.of_model(model, ranks, seed, nic),
            None => self.of_steps(ranks, nic),
        }
    }

    /// Ranks that the job has by itself: those of its model, or of its trace.
    pub(super) fn own_ranks(&self) -> Option<u64> {
        let trace = self.loaded.as_ref().map(|loaded| u64::from(loaded.ranks()));
        trace.or(self.model.as_ref().map(|model| model.ranks()))
    }

    /// Reads the file of a trace, and counts what it has. `read` maps a path to the file's content.
    ///
    /// # Errors
    /// Where the file can't be read, or is no such trace: by file, place, field and value.
    pub fn load(&mut self, read: impl FnMut(&str) -> std::io::Result<Vec<u8>>) -> Result<(), Problem> {
        let Some(trace) = &self.trace else { return Ok(()) };
        let how = self.library.how(self.ranks_per_host).map_err(|problem| problem.under("library"))?;
        let library = match (self.library.like, self.library.nic) {
            (Some(_), None) => {
                let message = "is needed beside a trace: write the rate of a host, such as nic = \"400Gbps\"";
                return Err(Problem::new("library.nic", message));
            }
            (_, nic) => self.own(&self.library, None, nic.unwrap_or_default())?,
        };
        let how = CollectiveAlgorithm { library, ..how };
        let loaded = Loaded::new(trace, how, self.ranks_per_host, read)?;
        self.loaded = Some(Arc::new(loaded));
        Ok(())
    }

    /// How collectives of a model are carried out: of tensor and expert groups, and of data groups.
    pub(super) fn hows(&self, nic: Rate) -> Result<(CollectiveAlgorithm, CollectiveAlgorithm), Problem> {
        let how = self.library.how(self.ranks_per_host).map_err(|problem| problem.under("library"))?;
        let library = self.own(&self.library, None, nic)?;
        Ok((
            CollectiveAlgorithm { terms: how.terms, library, ..CollectiveAlgorithm::default() },
            CollectiveAlgorithm { library, ..how },
        ))
    }

    fn of_model(&self, model: &job::model::Training, ranks: u32, seed: u64, nic: Rate) -> Result<Graph, Problem> {
        let slow = self.factors(ranks)?;
        let (plain, how) = self.hows(nic)?;
        let slow = |rank: Rank| slow[rank.index()];
        let setting = Setting { tensor: plain, data: how, expert: plain, slow: &slow, seed };
        model.graph(self.iterations, &setting).map_err(|problem| problem.under("model"))
    }

    fn of_steps(&self, ranks: u32, nic: Rate) -> Result<Graph, Problem> {
        let mut building = Building {
            b: Builder::new(ranks),
            at: vec![Vec::new(); ranks as usize],
            beside: vec![Vec::new(); ranks as usize],
            factors: self.factors(ranks)?,
            iteration: 0,
            nic,
        };
        for iteration in 0..self.iterations {
            building.b.iteration(iteration);
            building.iteration = iteration;
            interrupt::check()?;
            for (index, step) in self.steps.iter().enumerate() {
                building.step(self, step).map_err(|problem| problem.under(format!("steps[{index}]")))?;
            }
            building.end_iteration();
        }
        building.b.build().map_err(|error| Problem::new("steps", error.to_string()))
    }

    /// How a step's collective is carried out.
    pub(super) fn how_of(&self, kind: Kind, operation: &Operation, nic: Rate) -> Result<CollectiveAlgorithm, Problem> {
        let terms = match &operation.library {
            Some(own) => own.terms(self.ranks_per_host).map_err(|problem| problem.under("library"))?,
            None => self
                .library
                .terms(self.ranks_per_host)
                .map_err(|problem| Problem::new("library", problem.to_string()))?,
        };
        let algorithm = operation.algorithm.or(self.library.all_reduce.filter(|_| kind == Kind::AllReduce));
        let library = operation.library.as_ref().unwrap_or(&self.library);
        if let Some(own) = self.own(library, algorithm, nic)? {
            return Ok(CollectiveAlgorithm { library: Some(own), terms, ..CollectiveAlgorithm::default() });
        }
        how(kind, algorithm, terms, self.ranks_per_host)
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
    /// How it carries out what does not say how itself.
    fn how(&self, local: u32) -> Result<CollectiveAlgorithm, Problem> {
        how(Kind::AllReduce, self.all_reduce, self.terms(local)?, local)
            .map_err(|problem| Problem::new("all_reduce", problem.message))
    }

    fn terms(&self, local: u32) -> Result<Terms, Problem> {
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
        Ok(Terms { channels: self.channels, chunk, slots: self.slots, latency: self.latency, expand, local })
    }
}

impl Groups {
    /// Whether this many ranks make whole groups; how many consecutive ranks a block of groups has.
    pub(super) fn check(self, ranks: u32) -> Result<u32, Problem> {
        let Groups { size, stride } = self;
        let block = size.checked_mul(stride).filter(|&block| block > 0);
        block.filter(|&block| size >= 2 && ranks.is_multiple_of(block)).ok_or_else(|| {
            let message = format!(
                "{size} ranks, each {stride} after the one before, do not divide {ranks} ranks into equal groups; \
                 size is at least 2, and size x stride divides the number of ranks"
            );
            Problem::new("among", message)
        })
    }

    /// The groups, each with its ranks.
    fn of(self, ranks: u32) -> Result<Vec<Vec<Rank>>, Problem> {
        let Groups { size, stride } = self;
        let block = self.check(ranks)?;
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
    /// Rate of a host into the network.
    nic: Rate,
}

impl Building {
    fn step<T>(&mut self, job: &Job<T>, step: &Step) -> Result<(), Problem> {
        let Some((kind, operation)) = step.collective() else {
            let Step::Compute(time) = step else { unreachable!("no collective is a computation") };
            self.b.name("compute");
            for (rank, at) in self.at.iter_mut().enumerate() {
                *at = vec![self.b.compute(Rank(rank as u32), time.mul_f64(self.factors[rank]), at)];
            }
            return Ok(());
        };
        self.collective(job, kind, operation).map_err(|problem| problem.under(kind.name()))
    }

    fn collective<T>(&mut self, job: &Job<T>, kind: Kind, operation: &Operation) -> Result<(), Problem> {
        let ranks = self.b.ranks();
        let groups = operation.among.map_or(Ok(vec![(0..ranks).map(Rank).collect()]), |among| among.of(ranks))?;
        if operation.bytes.get() == 0 {
            return Err(Problem::new("bytes", "0B is no buffer; write a size such as \"1GB\""));
        }
        let how = job.how_of(kind, operation, self.nic)?;
        let name = operation.name.as_deref().unwrap_or(kind.name());
        for group in groups {
            interrupt::check()?;
            let entry: Vec<Vec<StepId>> = group.iter().map(|rank| self.at[rank.index()].clone()).collect();
            let ends = how.add(&mut self.b, kind, name, self.iteration, &group, operation.bytes.get(), &entry);
            let ends = ends.map_err(|error| Problem::new("algorithm", error.to_string()))?;
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

    /// Everybody waits for its own part of what went on beside, in one step: the next iteration's would each wait for
    /// all that ever went on beside.
    fn end_iteration(&mut self) {
        self.b.name("end of iteration");
        for (rank, (at, beside)) in (0..).zip(self.at.iter_mut().zip(&mut self.beside)) {
            at.append(beside);
            if at.len() > 1 {
                *at = vec![self.b.join(Rank(rank), at)];
            }
        }
    }
}

/// The way to carry out a collective that is asked for by these words; ranks of a host count for rails.
fn how(kind: Kind, algorithm: Option<Algorithm>, terms: Terms, local: u32) -> Result<CollectiveAlgorithm, Problem> {
    let how = CollectiveAlgorithm { terms, ..CollectiveAlgorithm::default() };
    Ok(match (kind, algorithm) {
        (_, None)
        | (Kind::AllToAll, Some(Algorithm::Pairwise))
        | (
            Kind::ReduceScatter | Kind::AllGather | Kind::AllReduce | Kind::Broadcast | Kind::SendRecv,
            Some(Algorithm::Ring),
        ) => how,
        (Kind::AllReduce, Some(Algorithm::Tree)) => CollectiveAlgorithm { all_reduce: AllReduce::Tree, ..how },
        (Kind::AllReduce, Some(Algorithm::HalvingDoubling)) => {
            CollectiveAlgorithm { all_reduce: AllReduce::HalvingDoubling, ..how }
        }
        (Kind::AllReduce, Some(Algorithm::Rails)) => CollectiveAlgorithm { all_reduce: AllReduce::Rails(local), ..how },
        (Kind::ReduceScatter | Kind::AllGather, Some(Algorithm::Rails)) => {
            CollectiveAlgorithm { parts: Parts::Rails(local), ..how }
        }
        (Kind::Broadcast, Some(Algorithm::Tree)) => CollectiveAlgorithm { broadcast: Broadcast::Tree, ..how },
        (_, Some(algorithm)) => {
            let known = match kind {
                Kind::AllReduce => "ring, tree, halving_doubling or rails",
                Kind::Broadcast => "ring or tree",
                Kind::ReduceScatter | Kind::AllGather => "ring or rails",
                Kind::SendRecv => "ring",
                Kind::AllToAll => "pairwise",
            };
            let message = format!("{} does not do {}; write {known}", algorithm.name(), kind.name());
            return Err(Problem::new("algorithm", message));
        }
    })
}

impl Algorithm {
    pub(super) fn name(self) -> &'static str {
        match self {
            Algorithm::Ring => "ring",
            Algorithm::Tree => "tree",
            Algorithm::HalvingDoubling => "halving_doubling",
            Algorithm::Rails => "rails",
            Algorithm::Pairwise => "pairwise",
            Algorithm::Nvls => "nvls",
            Algorithm::Pat => "pat",
        }
    }
}
