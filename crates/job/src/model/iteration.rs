//! One iteration, stage by stage.

use units::{Duration, Problem};

use super::buckets::{Bucket, buckets};
use super::experts::choices;
use super::passes::Passes;
use super::{Degrees, Family, Layer, Setting, Shape, Training, Turn, one_forward_one_backward};
use crate::collective::{CollectiveAlgorithm, Kind, exchange};
use crate::{Builder, Collective, Rank, StepId};

/// Whose gradients a bucket has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Of {
    /// Those of all ranks of the data dimension.
    Dense,
    /// Those of the ranks that hold the same experts.
    Experts,
}

/// Which of a layer's two exchanges, and whose.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Way {
    /// Tokens, or gradients of results, to experts.
    To,
    /// Results, or gradients of tokens, back.
    Back,
}

/// State common to the parts of one iteration.
struct Emit<'a> {
    training: &'a Training,
    shape: Shape,
    degrees: Degrees,
    setting: &'a Setting<'a>,
    b: &'a mut Builder,
    ranks: &'a [Rank],
    iteration: u32,
    /// The stage whose pass it is.
    stage: u32,
    /// By place: what its next step waits for, beside computations that are pending.
    last: Vec<Vec<StepId>>,
    /// By place: time of computations that no message has parted yet.
    pending: Vec<Duration>,
    /// The name of these computations.
    label: String,
    /// By layer of the model, once asked for: choices for each expert.
    choices: Vec<Vec<u64>>,
    /// By stage: its buckets.
    dense: Vec<Vec<Bucket>>,
    experts: Vec<Vec<Bucket>>,
    /// By place: the end of the last bucket of gradients, dense and of experts.
    summed: [Vec<Vec<StepId>>; 2],
    /// By place and bucket: when its parameters have been gathered.
    gathered: [Vec<Vec<StepId>>; 2],
}

/// By stage, micro-batch and place in the stage: the step that receives what a pass begins with.
type Arrivals = Vec<Vec<Option<Vec<StepId>>>>;

pub(super) fn add(
    training: &Training,
    b: &mut Builder,
    ranks: &[Rank],
    setting: &Setting<'_>,
    iteration: u32,
    entry: &[Vec<StepId>],
) -> Result<Vec<StepId>, Problem> {
    let (shape, degrees) = (training.model.shape(), training.degrees);
    let stages = 0..degrees.pipeline;
    let count = ranks.len();
    let mut emit = Emit {
        training,
        shape,
        degrees,
        setting,
        b,
        ranks,
        iteration,
        stage: 0,
        last: entry.to_vec(),
        pending: vec![Duration::ZERO; count],
        label: String::new(),
        choices: vec![Vec::new(); shape.layers as usize],
        dense: stages.clone().map(|stage| buckets(training, stage, |layer: &Layer| layer.dense)).collect(),
        experts: stages.map(|stage| buckets(training, stage, |layer: &Layer| layer.expert)).collect(),
        summed: [vec![Vec::new(); count], vec![Vec::new(); count]],
        gathered: [vec![Vec::new(); count], vec![Vec::new(); count]],
    };
    emit.gather_parameters();
    emit.passes();
    Ok(emit.end())
}

impl Emit<'_> {
    /// All forward and backward passes, each stage in its own order, each pass as soon as it has what it begins with.
    fn passes(&mut self) {
        let (stages, micro_batches) = (self.degrees.pipeline, self.training.micro_batches);
        let turns: Vec<Vec<Turn>> =
            (0..stages).map(|stage| one_forward_one_backward(stage, stages, micro_batches)).collect();
        let mut forward: Arrivals = vec![vec![None; micro_batches as usize]; stages as usize];
        let mut backward = forward.clone();
        let mut next = vec![0; stages as usize];
        // 1F1B has no circle: some stage can always go on.
        while (0..stages as usize).any(|stage| next[stage] < turns[stage].len()) {
            for stage in 0..stages as usize {
                while let Some(&turn) = turns[stage].get(next[stage]) {
                    let (Turn::Forward(at) | Turn::Backward(at)) = turn;
                    let at = at as usize;
                    let first_of_all = match turn {
                        Turn::Forward(_) => stage == 0,
                        Turn::Backward(_) => stage + 1 == stages as usize,
                    };
                    let arrivals = if matches!(turn, Turn::Forward(_)) { &mut forward } else { &mut backward };
                    let arrived = arrivals[stage][at].take();
                    if arrived.is_none() && !first_of_all {
                        break;
                    }
                    let places = self.places(stage as u32);
                    for (place, received) in places.zip(arrived.into_iter().flatten()) {
                        self.last[place].push(received);
                    }
                    self.stage = stage as u32;
                    match turn {
                        Turn::Forward(micro_batch) => {
                            self.label = format!("forward {micro_batch}");
                            self.forward(micro_batch == 0);
                            if stage + 1 < stages as usize {
                                forward[stage + 1][at] = Some(self.hand_over(stage as u32, stage as u32 + 1));
                            }
                        }
                        Turn::Backward(micro_batch) => {
                            self.label = format!("backward {micro_batch}");
                            self.backward(micro_batch + 1 == micro_batches);
                            if stage > 0 {
                                backward[stage - 1][at] = Some(self.hand_over(stage as u32, stage as u32 - 1));
                            }
                        }
                    }
                    next[stage] += 1;
                }
            }
        }
    }

    /// Places of a stage.
    fn places(&self, stage: u32) -> std::ops::Range<usize> {
        let width = (self.degrees.tensor * self.degrees.data) as usize;
        stage as usize * width..(stage as usize + 1) * width
    }

    /// One collective in each group of places of a stage, between what was before and what follows.
    fn collective(&mut self, groups: &[Vec<usize>], how: &CollectiveAlgorithm, kind: Kind, name: &str, bytes: u64) {
        for group in groups {
            let entry: Vec<Vec<StepId>> = group.iter().map(|&place| self.last[place].clone()).collect();
            let ends = self.one(group, how, kind, name, bytes, &entry);
            group.iter().zip(ends).for_each(|(&place, end)| self.last[place] = vec![end]);
        }
    }

    fn one(
        &mut self,
        group: &[usize],
        how: &CollectiveAlgorithm,
        kind: Kind,
        name: &str,
        bytes: u64,
        entry: &[Vec<StepId>],
    ) -> Vec<StepId> {
        let ranks: Vec<Rank> = group.iter().map(|&place| self.ranks[place]).collect();
        how.add(self.b, kind, name, self.iteration, &ranks, bytes, entry).expect("groups were checked")
    }

    /// Groups of tensor ranks of a stage.
    fn tensor_groups(&self, stage: u32) -> Vec<Vec<usize>> {
        let places: Vec<usize> = self.places(stage).collect();
        places.chunks(self.degrees.tensor as usize).map(<[usize]>::to_vec).collect()
    }

    /// Places of the same tensor place, whose data places are each `stride`-th from each of `first` on.
    fn data_groups(&self, stage: u32, firsts: impl Iterator<Item = (u32, u32)>, stride: u32) -> Vec<Vec<usize>> {
        let Degrees { tensor, .. } = self.degrees;
        let begin = self.places(stage).start;
        let mut groups = Vec::new();
        for (first, size) in firsts {
            for of_tensor in 0..tensor {
                let place = |at: u32| begin + (of_tensor + tensor * (first + at * stride)) as usize;
                groups.push((0..size).map(place).collect());
            }
        }
        groups
    }

    /// Who sums the gradients of the same parameters.
    fn replicas(&self, stage: u32, of: Of) -> Vec<Vec<usize>> {
        let Degrees { data, expert, .. } = self.degrees;
        match of {
            Of::Dense => self.data_groups(stage, std::iter::once((0, data)), 1),
            Of::Experts => self.data_groups(stage, (0..expert).map(|first| (first, data / expert)), expert),
        }
    }

    /// An all-to-all in each expert group: a vector of h elements for each choice of a token that is at another rank.
    /// Those for two experts of one rank go there twice.
    fn exchange(&mut self, groups: &[Vec<usize>], held: &[u64], way: Way, name: &str) {
        let vector = u64::from(self.shape.hidden) * self.training.element.get();
        let n = self.degrees.expert as usize;
        if n < 2 {
            return;
        }
        for group in groups {
            let ranks: Vec<Rank> = group.iter().map(|&place| self.ranks[place]).collect();
            let entry: Vec<Vec<StepId>> = group.iter().map(|&place| self.last[place].clone()).collect();
            let collective = Collective {
                name: name.to_owned(),
                kind: Kind::AllToAll.name(),
                algorithm: "pairwise",
                ranks: n as u32,
                bytes: held.iter().sum::<u64>() * vector,
                bus_factor: Kind::AllToAll.bus_factor(n),
                iteration: self.iteration,
            };
            let terms = self.setting.expert.terms;
            let bytes_of = |from: usize, to: usize| match way {
                Way::To => held[to] * vector,
                Way::Back => held[from] * vector,
            };
            let ends = self.b.within(collective, |b| exchange(b, &ranks, &terms, &entry, bytes_of));
            group.iter().zip(ends).for_each(|(&place, end)| self.last[place] = vec![end]);
        }
    }

    /// Each rank of a stage sends what it has computed to the same place of another stage: the steps that receive it.
    fn hand_over(&mut self, from: u32, to: u32) -> Vec<StepId> {
        self.b.name(if from < to { "activations" } else { "activation gradients" });
        let bytes = activation_bytes(self.training);
        let (senders, receivers) = (self.places(from), self.places(to));
        senders
            .zip(receivers)
            .map(|(sender, receiver)| {
                let ends = (self.ranks[sender], self.ranks[receiver]);
                self.b.message(ends, bytes, (0, 0), &self.last[sender], &[]).1
            })
            .collect()
    }

    /// With a sharded optimiser an iteration begins with the gathering of parameters, bucket after bucket in the order
    /// of the forward pass.
    fn gather_parameters(&mut self) {
        if !self.training.gradients.sharded {
            return;
        }
        for stage in 0..self.degrees.pipeline {
            for of in [Of::Dense, Of::Experts] {
                let buckets = if of == Of::Dense { &self.dense } else { &self.experts };
                let buckets = buckets[stage as usize].clone();
                let name = if of == Of::Dense { "parameters" } else { "expert parameters" };
                for group in self.replicas(stage, of) {
                    let mut entry: Vec<Vec<StepId>> = group.iter().map(|&place| self.last[place].clone()).collect();
                    let mut ends = vec![Vec::new(); group.len()];
                    for (number, bucket) in buckets.iter().enumerate().rev() {
                        let bytes = bucket.elements * self.training.element.get();
                        let (how, name) = (self.setting.data, format!("{name} {number}"));
                        let done = self.one(&group, &how, Kind::AllGather, &name, bytes, &entry);
                        ends.iter_mut().zip(&done).for_each(|(ends, &end)| ends.push(end));
                        entry = done.into_iter().map(|end| vec![end]).collect();
                    }
                    for (&place, mut ends) in group.iter().zip(ends) {
                        if !self.training.gradients.overlap {
                            self.last[place].extend(ends.last());
                        }
                        ends.reverse(); // by number of the bucket
                        self.gathered[of as usize][place] = ends;
                    }
                }
            }
        }
    }

    /// The end of the iteration: all gradients, those of a shared embedding, the optimiser.
    fn end(mut self) -> Vec<StepId> {
        for place in 0..self.ranks.len() {
            let summed = self.summed.iter().flat_map(|of| of[place].clone()).collect::<Vec<_>>();
            self.last[place].extend(summed);
        }
        let Degrees { pipeline, tensor, .. } = self.degrees;
        if pipeline > 1 && self.shape.family == Family::Gpt {
            let groups: Vec<Vec<usize>> =
                self.places(0).zip(self.places(pipeline - 1)).map(|(first, last)| vec![first, last]).collect();
            let bytes = self.shape.embedding(tensor, false) * self.training.gradients.element.get();
            let how = self.setting.data;
            self.collective(&groups, &how, Kind::AllReduce, "embedding gradients", bytes);
        }
        self.label = "optimizer".to_owned();
        self.pending.fill(self.training.optimizer);
        for stage in 0..pipeline {
            self.stage = stage;
            self.flush();
        }
        self.b.name("end of iteration");
        self.last.iter().zip(self.ranks).map(|(last, &rank)| self.b.join(rank, last)).collect()
    }
}

impl<'a> Passes<'a> for Emit<'a> {
    fn training(&self) -> &'a Training {
        self.training
    }

    fn shape(&self) -> Shape {
        self.shape
    }

    fn stage(&self) -> u32 {
        self.stage
    }

    fn pieces(&self) -> usize {
        self.dense[self.stage as usize].first().map_or(0, |bucket| bucket.pieces.end)
    }

    fn compute(&mut self, flops: u128) {
        let time = self.training.time_of(flops / u128::from(self.degrees.tensor));
        for place in self.places(self.stage) {
            self.pending[place] += time;
        }
    }

    fn flush(&mut self) {
        self.b.name(&self.label);
        for place in self.places(self.stage) {
            let time = std::mem::take(&mut self.pending[place]);
            if time > Duration::ZERO {
                let rank = self.ranks[place];
                let time = time.mul_f64((self.setting.slow)(rank));
                self.last[place] = vec![self.b.compute(rank, time, &self.last[place])];
            }
        }
    }

    fn tensor_sum(&mut self, name: &str) {
        if self.degrees.tensor > 1 {
            self.flush();
            let (groups, how) = (self.tensor_groups(self.stage), self.setting.tensor);
            self.collective(&groups, &how, Kind::AllReduce, name, activation_bytes(self.training));
        }
    }

    fn through_experts(&mut self, layer: u32, factor: u128) {
        let Degrees { expert, data, tensor, .. } = self.degrees;
        if self.choices[layer as usize].is_empty() {
            self.choices[layer as usize] = choices(self.training, self.setting.seed, self.iteration, layer);
        }
        // By place in an expert group: the choices of one rank's tokens for the experts there.
        let all = &self.choices[layer as usize];
        let held: Vec<u64> = all.chunks(all.len() / expert as usize).map(|own| own.iter().sum()).collect();
        self.flush();
        let groups = self.data_groups(self.stage, (0..data / expert).map(|group| (group * expert, expert)), 1);
        let names = if factor == 1 { ["dispatch", "combine"] } else { ["combine gradients", "dispatch gradients"] };
        self.exchange(&groups, &held, Way::To, names[0]);
        for group in &groups {
            for (at, &place) in group.iter().enumerate() {
                let tokens = held[at] * u64::from(expert);
                let flops = factor * self.shape.inner_flops(tokens) / u128::from(tensor);
                self.pending[place] += self.training.time_of(flops);
            }
        }
        self.flush();
        self.exchange(&groups, &held, Way::Back, names[1]);
    }

    fn await_parameters(&mut self, piece: usize) {
        let stage = self.stage;
        for of in [Of::Dense, Of::Experts] {
            let buckets = if of == Of::Dense { &self.dense } else { &self.experts };
            let Some(number) = buckets[stage as usize].iter().position(|bucket| bucket.pieces.start == piece) else {
                continue;
            };
            self.flush();
            for place in self.places(stage) {
                let gathered = self.gathered[of as usize][place][number];
                self.last[place].push(gathered);
            }
        }
    }

    fn sum_buckets_at(&mut self, piece: usize) {
        let stage = self.stage;
        for of in [Of::Dense, Of::Experts] {
            let buckets = if of == Of::Dense { &self.dense } else { &self.experts };
            let found = buckets[stage as usize].iter().position(|bucket| bucket.pieces.start == piece);
            let Some(number) = found else { continue };
            let bytes = buckets[stage as usize][number].elements * self.training.gradients.element.get();
            self.flush();
            let kind = if self.training.gradients.sharded { Kind::ReduceScatter } else { Kind::AllReduce };
            let name = if of == Of::Dense { "gradients" } else { "expert gradients" };
            for group in self.replicas(stage, of) {
                // One after the other, as a communicator's operations are.
                let summed = &self.summed[of as usize];
                let entry: Vec<Vec<StepId>> =
                    group.iter().map(|&place| [&self.last[place][..], &summed[place]].concat()).collect();
                let how = self.setting.data;
                let ends = self.one(&group, &how, kind, &format!("{name} {number}"), bytes, &entry);
                group.iter().zip(ends).for_each(|(&place, end)| self.summed[of as usize][place] = vec![end]);
            }
        }
    }
}

/// Activations (or their gradients) of a micro-batch: b s h elements (Narayanan et al., 2021, section 3.2).
pub(super) fn activation_bytes(training: &Training) -> u64 {
    training.tokens() * u64::from(training.model.shape().hidden) * training.element.get()
}
