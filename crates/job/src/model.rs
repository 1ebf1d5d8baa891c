//! Iterations of a named model: what its ranks compute and send, with sizes by formula.
//!
//! The model is a stack of equal transformer layers, GPT-like or with a mixture of experts (MoE). It is trained with
//! Megatron-LM's kinds of parallelism, whose formulas stand beside what they give:
//!
//! - Shoeybi et al., "Megatron-LM: Training Multi-Billion Parameter Language Models Using Model Parallelism", 2019:
//!   tensor parallelism, two all-reduces a layer forwards and two backwards.
//! - Narayanan et al., "Efficient Large-Scale Language Model Training on GPU Clusters Using Megatron-LM", SC 2021:
//!   the 1F1B schedule (section 2.2), sizes of messages (section 3.2), parameters and FLOPs (section 5.1, appendix).
//!
//! Ranks are in Megatron's order: tensor fastest, then data, then pipeline. Expert parallelism divides the data
//! dimension: an expert group has `expert` consecutive ranks of it, at the same tensor and pipeline place, and the same
//! expert is held by every `expert`-th rank of the data dimension.
//!
//! Deliberately absent: sequence and context parallelism, the interleaved schedule, the all-reduces of a few numbers
//! (the loss of a split vocabulary, the norm of gradients), parameters of the last norm. Pipeline messages are
//! asynchronous: a rank computes on while they travel.

mod buckets;
mod count;
mod experts;
mod iteration;
mod passes;
mod schedule;
mod shape;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Bytes, Duration, Problem};

use crate::collective::{CollectiveAlgorithm, NotPossible};
use crate::{Builder, Graph, Rank, StepId};

pub use experts::shares;
pub use schedule::{Turn, one_forward_one_backward};
pub use shape::{Layer, Shape};

/// A model and how it is trained.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Training {
    /// The model: by its name, or by its sizes.
    pub model: Model,
    /// Along which dimensions the work is divided. Ranks are numbered tensor first, then data, then pipeline.
    /// Default: 1 each.
    #[serde(default)]
    pub degrees: Degrees,
    /// Micro-batches of a pipeline in an iteration.
    pub micro_batches: u32,
    /// Sequences of a micro-batch. Default: 1.
    #[serde(default = "one")]
    pub micro_batch: u32,
    /// What a rank computes with.
    pub accelerator: Accelerator,
    /// Size of an element of activations and parameters. Default: 2B, for bfloat16.
    #[serde(default = "two_bytes")]
    pub element: Bytes,
    /// Whether the backward pass computes each layer's activations again, its all-reduces and all-to-alls included.
    /// Default: false.
    #[serde(default)]
    pub recompute: bool,
    /// How gradients are summed.
    #[serde(default)]
    pub gradients: Gradients,
    /// Time of the optimiser's step at every rank. Default: 0.
    #[serde(default)]
    pub optimizer: Duration,
}

/// Along which dimensions a model's training is divided. Default: 1 each.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Degrees {
    /// Ranks that have the same parameters and other data.
    pub data: u32,
    /// Ranks that share every matrix.
    pub tensor: u32,
    /// Stages of the pipeline, of the same number of layers each.
    pub pipeline: u32,
    /// Ranks of the data dimension that share the experts of a layer; divides `data`.
    pub expert: u32,
}

impl Default for Degrees {
    fn default() -> Degrees {
        Degrees { data: 1, tensor: 1, pipeline: 1, expert: 1 }
    }
}

/// A model.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Model {
    /// GPT-3 with 175 billion parameters (Brown et al., 2020; vocabulary as in Narayanan et al., 2021).
    #[serde(rename = "gpt3_175b")]
    Gpt3,
    /// Megatron's model of a trillion parameters (Narayanan et al., 2021, table 1).
    #[serde(rename = "megatron_1t")]
    Megatron1T,
    /// Llama 3 with 8 billion parameters, at 8,192 tokens.
    #[serde(rename = "llama3_8b")]
    Llama8,
    /// Llama 3 with 70 billion parameters, at 8,192 tokens.
    #[serde(rename = "llama3_70b")]
    Llama70,
    /// Llama 3 with 405 billion parameters, at 8,192 tokens.
    #[serde(rename = "llama3_405b")]
    Llama405,
    /// Mixtral with 8 experts, 2 a token, at 4,096 tokens; loads with a Gini coefficient of 0.2.
    #[serde(rename = "mixtral_8x7b")]
    Mixtral,
    /// A stack of attention and dense feed-forward layers.
    Gpt(Gpt),
    /// A stack of attention and layers of experts.
    Moe(Moe),
}

/// Sizes of a GPT-like model.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Gpt {
    /// Number of transformer layers.
    pub layers: u32,
    /// Length of a token's vector.
    pub hidden: u32,
    /// Tokens of a sequence.
    pub sequence: u32,
    /// Tokens that there are.
    pub vocabulary: u32,
    /// Length of the inner vector of feed-forward layers. Default: 4 times `hidden`.
    pub feed_forward: Option<u32>,
    /// Length of all keys of a token together, and of all values; less than `hidden` with grouped queries. Default:
    /// `hidden`.
    pub key_value: Option<u32>,
    /// What else differs. Default: `gpt`.
    #[serde(default)]
    pub family: Family,
}

/// Sizes of a model with experts in every layer.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Moe {
    /// Number of transformer layers.
    pub layers: u32,
    /// Length of a token's vector.
    pub hidden: u32,
    /// Tokens of a sequence.
    pub sequence: u32,
    /// Tokens that there are.
    pub vocabulary: u32,
    /// Experts of a layer.
    pub experts: u32,
    /// Experts that each token goes to.
    pub top_k: u32,
    /// Length of the inner vector of an expert.
    pub expert_hidden: u32,
    /// Gini coefficient of the experts' loads: 0 if all get as many tokens. Measured for real text: 0.105 to 0.25.
    pub gini: f64,
    /// Length of all keys of a token together, and of all values; less than `hidden` with grouped queries. Default:
    /// `hidden`.
    pub key_value: Option<u32>,
    /// What else differs. Default: `llama`.
    #[serde(default = "llama")]
    pub family: Family,
}

/// Families of models, which differ in more than sizes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Family {
    /// Two matrices a feed-forward layer, biases, learnt positions, one embedding for input and output, whose gradients
    /// the first and the last stage of a pipeline sum.
    #[default]
    Gpt,
    /// Three matrices a feed-forward layer (a gate), no biases, an embedding each for input and output.
    Llama,
}

/// What a rank computes with.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Accelerator {
    /// 10^12 floating-point operations a second that it can do, for example 312 (A100) or 989 (H100), both of bfloat16.
    pub teraflops: f64,
    /// The share of these that it achieves, for example 0.5: Narayanan et al. (2021) measured 0.43 to 0.52.
    pub efficiency: f64,
}

/// How gradients are summed among ranks with the same parameters.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Gradients {
    /// Size of an element of gradients. Default: 4B, as Megatron sums them.
    pub element: Bytes,
    /// Whether each rank has only a part of the optimiser's state. Then gradients are reduce-scattered, and parameters
    /// are gathered at the beginning of an iteration, instead of an all-reduce. Default: false.
    pub sharded: bool,
    /// Gradients are summed in buckets of whole layers, from the last to the first, of at least this size.
    /// Default: 40,000,000 elements, as Megatron's.
    pub bucket: Option<Bytes>,
    /// Whether a bucket is summed as soon as the backward pass of the last micro-batch has left its layers, and
    /// parameters are gathered beside the first forward pass. Default: true.
    pub overlap: bool,
}

impl Default for Gradients {
    fn default() -> Gradients {
        Gradients { element: Bytes(4), sharded: false, bucket: None, overlap: true }
    }
}

/// How the ranks of an iteration do what the model asks for.
#[derive(Clone, Copy)]
pub struct Setting<'a> {
    /// Collectives of tensor groups.
    pub tensor: CollectiveAlgorithm,
    /// Collectives of data groups: gradients and parameters.
    pub data: CollectiveAlgorithm,
    /// All-to-alls of expert groups.
    pub expert: CollectiveAlgorithm,
    /// Computations of a rank take this many times as long.
    pub slow: &'a dyn Fn(Rank) -> f64,
    /// Seed of the experts' loads.
    pub seed: u64,
}

impl Default for Setting<'_> {
    fn default() -> Self {
        Setting {
            tensor: CollectiveAlgorithm::default(),
            data: CollectiveAlgorithm::default(),
            expert: CollectiveAlgorithm::default(),
            slow: &|_| 1.0,
            seed: 1,
        }
    }
}

impl Training {
    /// How many ranks train.
    pub fn ranks(&self) -> u64 {
        u64::from(self.degrees.data) * u64::from(self.degrees.tensor) * u64::from(self.degrees.pipeline)
    }

    /// Adds one iteration. `ranks` are in the order that the model's degrees say, and begin after the steps `entry`:
    /// for each, the step at which it has ended the iteration.
    pub fn add(
        &self,
        b: &mut Builder,
        ranks: &[Rank],
        setting: &Setting<'_>,
        iteration: u32,
        entry: &[Vec<StepId>],
    ) -> Result<Vec<StepId>, Problem> {
        self.check()?;
        let (have, want) = (ranks.len() as u64, self.ranks());
        if have != want || entry.len() != ranks.len() {
            let message = format!("are for {want} ranks, data * tensor * pipeline, and the job has {have}");
            return Err(Problem::new("degrees", message));
        }
        self.check_groups(setting)?;
        b.iteration(iteration);
        let room = crate::graph::STEPS_MAX.saturating_sub(b.steps());
        let most = self.steps_most(setting, iteration);
        if most > room {
            let message = format!("an iteration may have {most} steps, and {room} are possible; write a smaller job");
            return Err(Problem::new("micro_batches", message));
        }
        iteration::add(self, b, ranks, setting, iteration, entry)
    }

    /// A job of this many iterations, one after the other at every rank.
    pub fn graph(&self, iterations: u32, setting: &Setting<'_>) -> Result<Graph, Problem> {
        self.check()?;
        let count = self.ranks() as u32;
        let ranks: Vec<Rank> = (0..count).map(Rank).collect();
        let mut b = Builder::new(count);
        let mut entry = vec![Vec::new(); ranks.len()];
        for iteration in 0..iterations {
            let ends = self.add(&mut b, &ranks, setting, iteration, &entry)?;
            entry = ends.into_iter().map(|end| vec![end]).collect();
        }
        b.build().map_err(|error| Problem::new("model", error.to_string()))
    }

    /// Checks all that [`Training::graph`] checks before it adds anything.
    pub fn check_job(&self, setting: &Setting<'_>) -> Result<(), Problem> {
        self.check()?;
        self.check_groups(setting)
    }

    /// Checks all that can be checked without ranks.
    pub fn check(&self) -> Result<(), Problem> {
        let shape = self.model.shape();
        shape.check().map_err(|problem| match self.model {
            Model::Gpt(_) => problem.under("model.gpt"),
            _ => problem.under("model.moe"),
        })?;
        self.check_degrees(&shape).map_err(|problem| problem.under("degrees"))?;
        for (key, value) in [("micro_batches", self.micro_batches), ("micro_batch", self.micro_batch)] {
            if value == 0 || value > 1_000_000 {
                return Err(Problem::new(key, format!("{value} is no such number; write one from 1 to 1000000")));
            }
        }
        let Accelerator { teraflops, efficiency } = self.accelerator;
        // NaN fails the comparisons.
        if !(teraflops > 1e-6 && teraflops <= 1e9) {
            let message = format!("{teraflops} is no speed; write 10^12 operations a second above 0, such as 312");
            return Err(Problem::new("accelerator.teraflops", message));
        }
        if !(efficiency > 1e-6 && efficiency <= 1.0) {
            let message = format!("{efficiency} is no share; write one above 0, at most 1, such as 0.5");
            return Err(Problem::new("accelerator.efficiency", message));
        }
        for (key, size) in [("element", self.element), ("gradients.element", self.gradients.element)] {
            if !(1..=16).contains(&size.get()) {
                return Err(Problem::new(key, format!("{size} is no size of a number; write 1B to 16B")));
            }
        }
        if self.gradients.bucket == Some(Bytes(0)) {
            return Err(Problem::new("gradients.bucket", "0B would hold nothing; write at least 1B, or leave it out"));
        }
        if self.optimizer.ps() > u64::MAX / 1_000_000 {
            return Err(Problem::new("optimizer", format!("{} is too long; write less than 18s", self.optimizer)));
        }
        let choices = shape.experts.map_or(1, |experts| u128::from(experts.top_k));
        let vectors = u128::from(self.tokens()) * u128::from(shape.hidden) * u128::from(self.element.get()) * choices;
        if vectors > 1 << 50 {
            let message = format!("its activations have {vectors} bytes; write fewer sequences, below 1 PiB");
            return Err(Problem::new("micro_batch", message));
        }
        // Forward twice, backward twice as much: no sum of times may overflow.
        let passes = 4.0 * f64::from(self.micro_batches) + 4.0 * f64::from(self.degrees.pipeline);
        let longest = passes * shape.forward_flops(self.tokens()) as f64 / (teraflops * efficiency);
        if longest > 1e18 {
            let message = format!("an iteration would take {:.0} s; write a smaller model or more", longest * 1e-12);
            return Err(Problem::new("accelerator.teraflops", message));
        }
        Ok(())
    }

    fn check_degrees(&self, shape: &Shape) -> Result<(), Problem> {
        let Degrees { data, tensor, pipeline, expert } = self.degrees;
        let named = [("data", data), ("tensor", tensor), ("pipeline", pipeline), ("expert", expert)];
        if let Some((key, _)) = named.iter().find(|(_, degree)| *degree == 0) {
            return Err(Problem::new(*key, "0 divides nothing; write at least 1"));
        }
        let ranks = u128::from(data) * u128::from(tensor) * u128::from(pipeline);
        if ranks > 1 << 20 {
            return Err(Problem::new("data", format!("{ranks} ranks in all; at most {} are possible", 1 << 20)));
        }
        if !shape.layers.is_multiple_of(pipeline) {
            let message = format!("{pipeline} stages do not divide the model's {} layers", shape.layers);
            return Err(Problem::new("pipeline", message));
        }
        for (what, size) in [
            ("hidden", shape.hidden),
            ("key_value", shape.key_value),
            ("feed-forward", shape.feed_forward),
            ("vocabulary", shape.vocabulary),
        ] {
            if !size.is_multiple_of(tensor) {
                let message = format!("{tensor} does not divide the model's {what} size, {size}");
                return Err(Problem::new("tensor", message));
            }
        }
        match shape.experts {
            Some(experts) if !experts.count.is_multiple_of(expert) => {
                Err(Problem::new("expert", format!("{expert} does not divide the {} experts", experts.count)))
            }
            _ if !data.is_multiple_of(expert) => {
                Err(Problem::new("expert", format!("{expert} does not divide data, {data}, which it is a part of")))
            }
            _ => Ok(()),
        }
    }

    /// Settings that have no effect on this model.
    pub fn advice(&self) -> Vec<Problem> {
        let idle = self.model.shape().experts.is_none() && self.degrees.expert != 1;
        let message = "has no effect on a model without experts; delete it";
        idle.then(|| Problem::new("degrees.expert", message)).into_iter().collect()
    }

    fn check_groups(&self, setting: &Setting<'_>) -> Result<(), Problem> {
        use crate::collective::Kind::{AllReduce, ReduceScatter};
        let Degrees { data, tensor, pipeline, expert } = self.degrees;
        let wrong = |key: &'static str| move |error: NotPossible| Problem::new(key, error.to_string());
        setting.tensor.fits(AllReduce, tensor as usize).map_err(wrong("degrees.tensor"))?;
        // Of sharded gradients parameters are gathered, too, which fits where reduce-scatters do.
        let of_gradients = if self.gradients.sharded { ReduceScatter } else { AllReduce };
        setting.data.fits(of_gradients, data as usize).map_err(wrong("degrees.data"))?;
        setting.data.fits(of_gradients, (data / expert) as usize).map_err(wrong("degrees.expert"))?;
        if pipeline > 1 && self.model.shape().family == Family::Gpt {
            // The two ends of a pipeline sum their embeddings as data groups do.
            setting.data.fits(AllReduce, 2).map_err(wrong("degrees.pipeline"))?;
        }
        Ok(())
    }

    /// Tokens of a micro-batch.
    pub fn tokens(&self) -> u64 {
        u64::from(self.micro_batch) * u64::from(self.model.shape().sequence)
    }

    /// Time of this many floating-point operations.
    pub fn time_of(&self, flops: u128) -> Duration {
        // 10^12 operations a second are one a picosecond.
        let Accelerator { teraflops, efficiency } = self.accelerator;
        Duration::from_ps((flops as f64 / (teraflops * efficiency) + 0.5) as u64)
    }

    /// Elements of gradients after which a bucket is full.
    fn bucket_elements(&self) -> u64 {
        self.gradients.bucket.map_or(40_000_000, |bucket| bucket.get().div_ceil(self.gradients.element.get()))
    }
}

fn one() -> u32 {
    1
}

fn two_bytes() -> Bytes {
    Bytes(2)
}

fn llama() -> Family {
    Family::Llama
}

#[cfg(test)]
mod tests;
