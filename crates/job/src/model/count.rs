//! The size of iterations of a model, by formula: each part of a pass ([`super::passes`]) counts once for all ranks of
//! a stage, which do alike, and each micro-batch in the middle once for all.

use std::collections::HashMap;

use units::Duration;

use super::buckets::{Bucket, buckets};
use super::experts::choices_by;
use super::passes::Passes;
use super::{Degrees, Family, Layer, Setting, Shape, Training, shares};
use crate::Count;
use crate::collective::{CollectiveAlgorithm, Group, Kind, SEVERAL, exchanged};

/// Most choices of experts that are drawn to count: in later iterations experts get as much as in the last one drawn.
const CHOICES: u64 = 1 << 20;

impl Training {
    /// The size of a job of this many iterations whose hosts have `local` consecutive ranks each. Where experts get
    /// different numbers of tokens, later iterations are taken to be like an earlier one.
    pub fn count(&self, iterations: u32, setting: &Setting<'_>, local: u32) -> Count {
        let experts = self.model.shape().experts;
        let drawn = experts.map_or(1, |of| {
            let each = u64::from(of.count) * u64::from(self.model.shape().layers);
            (CHOICES / each.max(1)).clamp(1, 8)
        });
        // The first iteration begins with nothing, each other one with the end of the one before.
        let exact = u64::from(iterations).min(drawn + 1);
        let (mut sum, mut last) = (Count::default(), Count::default());
        for iteration in 0..exact {
            last = Counting::new(self, setting, iteration as u32, local).iteration(usize::from(iteration > 0));
            sum = sum.and(last);
        }
        sum.and(last.times(u64::from(iterations) - exact))
    }

    /// No fewer than the steps of an iteration, whatever ranks wait for.
    pub(super) fn steps_most(&self, setting: &Setting<'_>, iteration: u32) -> u64 {
        Counting::new(self, setting, iteration, 1).iteration(SEVERAL).steps
    }
}

/// The state that all ranks of a stage have in common before their next step.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Stage {
    /// How many steps it waits for.
    waits: usize,
    /// Computations that no message has parted yet.
    pending: Duration,
    /// Whether gradients have been summed, dense and those of experts.
    summed: [bool; 2],
}

/// By first piece: a bucket's elements.
type Buckets = HashMap<usize, u64>;

struct Counting<'a> {
    training: &'a Training,
    setting: &'a Setting<'a>,
    shape: Shape,
    degrees: Degrees,
    local: u32,
    /// By layer of the stage: choices for each expert.
    choices: Vec<Vec<u64>>,
    buckets: [Buckets; 2],
    /// Pieces of the stage.
    pieces: usize,
    index: u32,
    stage: Stage,
    iteration: u32,
    count: Count,
}

/// A pass of a micro-batch, and whether it is the first or the last of a stage's.
#[derive(Clone, Copy)]
enum Pass {
    Forward { first: bool },
    Backward { last: bool },
}

impl<'a> Counting<'a> {
    fn new(training: &'a Training, setting: &'a Setting<'a>, iteration: u32, local: u32) -> Counting<'a> {
        Counting {
            training,
            setting,
            shape: training.model.shape(),
            degrees: training.degrees,
            local,
            choices: Vec::new(),
            buckets: [Buckets::new(), Buckets::new()],
            pieces: 0,
            index: 0,
            stage: Stage::default(),
            iteration,
            count: Count::default(),
        }
    }

    fn iteration(mut self, waits: usize) -> Count {
        let stages = self.degrees.pipeline;
        let shares = self.shape.experts.map(|experts| shares(experts.count, experts.gini));
        let mut ends = [Stage::default(); 2];
        for index in 0..stages {
            self.index = index;
            self.stage = Stage { waits, ..Stage::default() };
            let (training, seed, iteration) = (self.training, self.setting.seed, self.iteration);
            let choices = |layer| choices_by(training, shares.as_ref()?.clone(), seed, iteration, layer);
            self.choices = self.layers().map(|layer| choices(layer).unwrap_or_default()).collect();
            let own = [
                buckets(training, index, |layer: &Layer| layer.dense),
                buckets(training, index, |layer: &Layer| layer.expert),
            ];
            self.pieces = own[0].first().map_or(0, |bucket| bucket.pieces.end);
            self.gather_parameters(&own);
            self.buckets = own.map(|own| own.iter().map(|bucket| (bucket.pieces.start, bucket.elements)).collect());
            self.passes();
            self.stage.waits += self.stage.summed.iter().filter(|summed| **summed).count();
            if index == 0 {
                ends[0] = self.stage;
            }
            if index + 1 == stages {
                ends[1] = self.stage;
            }
            if !self.sums_embedding(index) {
                self.end();
            }
        }
        if self.sums_embedding(0) {
            self.sum_embedding(ends);
        }
        self.count
    }

    /// Whether a stage shares the embedding of another, and sums its gradients with that at the end.
    fn sums_embedding(&self, index: u32) -> bool {
        let last = self.degrees.pipeline - 1;
        last > 0 && self.shape.family == Family::Gpt && (index == 0 || index == last)
    }

    fn sum_embedding(&mut self, ends: [Stage; 2]) {
        let bytes = self.shape.embedding(self.degrees.tensor, false) * self.training.gradients.element.get();
        let width = self.width();
        let distance = (self.degrees.pipeline - 1) * width;
        // Ranks of both stages wait for as many steps: one of each is a group.
        let waits = ends[0].waits.max(ends[1].waits);
        let pairs = (0..width).map(|first| Group { first, stride: distance, size: 2 });
        let how = self.setting.data;
        self.collective(&how, Kind::AllReduce, pairs, bytes, waits);
        for end in ends {
            self.stage = Stage { waits: 1, ..end };
            self.end();
        }
    }

    /// The optimiser, and the end of the iteration.
    fn end(&mut self) {
        self.stage.pending = self.training.optimizer;
        self.flush();
        if self.stage.waits != 1 {
            self.count = self.count.and(Count { steps: u64::from(self.width()), ..Count::default() });
        }
    }

    /// Ranks of a stage.
    fn width(&self) -> u32 {
        self.degrees.tensor * self.degrees.data
    }

    /// All passes of the stage: forward passes ahead, then one forward and one backward in turn, then those that are
    /// left.
    fn passes(&mut self) {
        let count = self.training.micro_batches;
        let ahead = (self.degrees.pipeline - 1 - self.index).min(count);
        let pairs = count - ahead;
        let (forward, backward) = (Pass::Forward { first: false }, Pass::Backward { last: false });
        let (first, last) = (Pass::Forward { first: true }, Pass::Backward { last: true });
        if ahead > 0 {
            self.times(1, &[first]);
            self.times(ahead - 1, &[forward]);
            self.times(pairs, &[forward, backward]);
            self.times(ahead - 1, &[backward]);
            self.times(1, &[last]);
        } else if pairs == 1 {
            self.times(1, &[first, last]);
        } else {
            self.times(1, &[first, backward]);
            self.times(pairs - 2, &[forward, backward]);
            self.times(1, &[forward, last]);
        }
    }

    /// These passes, `times` times. Once one time leaves the stage as it was, all later ones are like it.
    fn times(&mut self, mut times: u32, passes: &[Pass]) {
        while times > 0 {
            let (stage, before) = (self.stage, std::mem::take(&mut self.count));
            for pass in passes {
                match *pass {
                    Pass::Forward { first } => {
                        self.stage.waits += usize::from(self.index > 0);
                        self.forward(first);
                        if !self.is_last() {
                            self.hand_over(self.index + 1);
                        }
                    }
                    Pass::Backward { last } => {
                        self.stage.waits += usize::from(!self.is_last());
                        self.backward(last);
                        if self.index > 0 {
                            self.hand_over(self.index - 1);
                        }
                    }
                }
            }
            let alike = if self.stage == stage { times } else { 1 };
            self.count = before.and(self.count.times(u64::from(alike)));
            times -= alike;
        }
    }

    /// Each rank of the stage gets a message from the same place of another stage, or sends one there.
    fn hand_over(&mut self, to: u32) {
        let (width, local) = (self.width(), self.local.max(1));
        let (own, other) = (self.index * width, to * width);
        let leaving = (0..width).filter(|at| (own + at) / local != (other + at) / local).count() as u64;
        let all = u64::from(width);
        let bytes = super::iteration::activation_bytes(self.training);
        let one = Count { steps: 2, messages: 1, bytes, ..Count::default() };
        self.count = self.count.and(one.times(all).leaving((leaving, all)));
    }

    /// One collective in each of some groups of the same size.
    fn collective(
        &mut self,
        how: &CollectiveAlgorithm,
        kind: Kind,
        groups: impl Iterator<Item = Group>,
        bytes: u64,
        waits: usize,
    ) {
        let (mut number, mut size, mut share) = (0, 0, (0, 0));
        for group in groups {
            let own = if group.size < 2 { (0, 1) } else { how.leaving(kind, group, self.local) };
            share = (share.0 + own.0, share.1 + own.1);
            (number, size) = (number + 1, group.size);
        }
        self.count = self.count.and(how.count(kind, size, bytes, waits).times(number).leaving(share));
    }

    /// Groups with the same parameters, dense or those of experts.
    fn replicas(&self, of: usize) -> impl Iterator<Item = Group> + use<> {
        let Degrees { data, tensor, expert, .. } = self.degrees;
        let begin = self.index * self.width();
        let (firsts, size, stride) = if of == 0 { (1, data, tensor) } else { (expert, data / expert, tensor * expert) };
        (0..firsts * tensor).map(move |first| Group { first: begin + first, stride, size })
    }

    fn gather_parameters(&mut self, own: &[Vec<Bucket>; 2]) {
        let gradients = self.training.gradients;
        if !gradients.sharded {
            return;
        }
        for (of, own) in own.iter().enumerate() {
            let mut waits = self.stage.waits;
            for bucket in own.iter().rev() {
                let bytes = bucket.elements * self.training.element.get();
                let how = self.setting.data;
                self.collective(&how, Kind::AllGather, self.replicas(of), bytes, waits);
                waits = 1;
            }
            if !gradients.overlap {
                // The steps of the second loop wait for this as well.
                self.stage.waits += usize::from(!own.is_empty());
            }
        }
    }
}

impl<'a> Passes<'a> for Counting<'a> {
    fn training(&self) -> &'a Training {
        self.training
    }

    fn shape(&self) -> Shape {
        self.shape
    }

    fn stage(&self) -> u32 {
        self.index
    }

    fn pieces(&self) -> usize {
        self.pieces
    }

    fn compute(&mut self, flops: u128) {
        self.stage.pending += self.training.time_of(flops / u128::from(self.degrees.tensor));
    }

    fn flush(&mut self) {
        if std::mem::take(&mut self.stage.pending) > Duration::ZERO {
            self.count = self.count.and(Count::computations(self.width().into()));
            self.stage.waits = 1;
        }
    }

    fn tensor_sum(&mut self, _: &str) {
        let size = self.degrees.tensor;
        if size > 1 {
            self.flush();
            let begin = self.index * self.width();
            let groups = (0..self.degrees.data).map(|group| Group { first: begin + group * size, stride: 1, size });
            let (how, bytes) = (self.setting.tensor, super::iteration::activation_bytes(self.training));
            self.collective(&how, Kind::AllReduce, groups, bytes, self.stage.waits);
            self.stage.waits = 1;
        }
    }

    fn through_experts(&mut self, layer: u32, factor: u128) {
        let Degrees { expert, data, tensor, .. } = self.degrees;
        let all = &self.choices[(layer - self.layers().start) as usize];
        let held: Vec<u64> = all.chunks(all.len() / expert as usize).map(|own| own.iter().sum()).collect();
        self.flush();
        let width = u64::from(self.width());
        if expert > 1 {
            let vector = u64::from(self.shape.hidden) * self.training.element.get();
            let begin = self.index * self.width();
            let (mut share, places) = ((0, 0), data / expert);
            for group in (0..places).flat_map(|group| (0..tensor).map(move |of| of + tensor * group * expert)) {
                let group = Group { first: begin + group, stride: tensor, size: expert };
                let own = self.setting.expert.leaving(Kind::AllToAll, group, self.local);
                share = (share.0 + own.0, share.1 + own.1);
            }
            let sizes = held.iter().map(|held| (held * vector, 1));
            let there = exchanged(sizes, expert, &self.setting.expert.terms).times(u64::from(places * tensor));
            self.count = self.count.and(there.times(2).leaving(share));
            self.stage.waits = 1;
        }
        let each = |held: &u64| {
            let flops = factor * self.shape.inner_flops(held * u64::from(expert)) / u128::from(tensor);
            u64::from(self.training.time_of(flops) > Duration::ZERO)
        };
        let busy: u64 = held.iter().map(each).sum();
        self.count = self.count.and(Count::computations(width / u64::from(expert) * busy));
        if busy > 0 {
            self.stage.waits = 1;
        }
    }

    fn await_parameters(&mut self, piece: usize) {
        for of in 0..2 {
            if self.buckets[of].contains_key(&piece) {
                self.flush();
                self.stage.waits += 1;
            }
        }
    }

    fn sum_buckets_at(&mut self, piece: usize) {
        for of in 0..2 {
            let Some(&elements) = self.buckets[of].get(&piece) else { continue };
            let bytes = elements * self.training.gradients.element.get();
            self.flush();
            let kind = if self.training.gradients.sharded { Kind::ReduceScatter } else { Kind::AllReduce };
            let waits = self.stage.waits + usize::from(self.stage.summed[of]);
            let how = self.setting.data;
            self.collective(&how, kind, self.replicas(of), bytes, waits);
            self.stage.summed[of] = true;
        }
    }
}
