//! SimAI's workloads, which its tool AICB writes: what one iteration of a training job computes and which collectives
//! it has, layer by layer.

mod count;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::Duration;

use super::{BYTES_MAX, Line, RANKS_MAX, Reading, TIME_MAX, TraceError, text};
use crate::collective::Kind;
use crate::{Builder, Graph, Rank, StepId};

/// A workload of SimAI. The first line has the policy and the degrees, such as `HYBRID_TRANSFORMER_FWD_IN_BCKWD
/// model_parallel_NPU_group: 8 ep: 1 pp: 1 vpp: 1 ga: 1 all_gpus: 64 checkpoints: 0 checkpoint_initiates: 0`, the
/// second the number of layers, and each other a layer: name, -1, then for the forward pass, the gradients of inputs
/// and the gradients of weights a time in nanoseconds, a collective and its size, and last the time of the update.
///
/// All ranks do all layers, first to last forwards, last to first backwards. A rank waits for collectives of forward
/// passes and inputs. It does not wait for those of weights, but the layer's next forward pass does. `ALLREDUCE` and so
/// on are among tensor ranks, those of weights among data ranks; `..._EP` among those that share experts, `..._DP_EP`
/// among those with the same ones. Ranks are numbered tensor first, then data (experts are shared among neighbours
/// there), then pipeline. With `pp` above 1 each rank passes 2 vpp ga messages of `pp_comm` bytes on to the next stage
/// at the end, one after the other, as SimAI's formula has it. `MICRO` does each layer's forward time and weight
/// collective, of all ranks, one after the other. Sizes count as NCCL's tests do. Checkpoints and other policies are
/// refused.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SimaiTrace {
    /// Path of the file, relative to the scenario's folder.
    pub path: String,
    /// How many ranks there are. Default: `all_gpus` of the file, which older files lack.
    pub ranks: Option<u32>,
    /// Number of iterations. Default: 1.
    #[serde(default = "one")]
    pub iterations: u32,
}

fn one() -> u32 {
    1
}

/// Among whom a collective is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Among {
    All,
    Tensor,
    Data,
    /// Those that share the experts of a layer.
    Experts,
    /// Those with the same experts.
    ExpertData,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Collective {
    kind: Kind,
    among: Among,
    bytes: u64,
}

/// One of the three parts of a layer.
#[derive(Clone, Copy, Debug, Default)]
struct LayerPhase {
    time: Duration,
    collective: Option<Collective>,
}

struct Layer<'a> {
    line: Line<'a>,
    name: &'a str,
    forward: LayerPhase,
    input: LayerPhase,
    weight: LayerPhase,
    update: Duration,
}

/// The facts of the first line.
#[derive(Clone, Copy, Debug)]
struct Degrees {
    micro: bool,
    tensor: u32,
    expert: u32,
    pipeline: u32,
    /// Messages from stage to stage, and their size.
    passes: u64,
    pass_bytes: u64,
    ranks: u32,
}

impl SimaiTrace {
    /// Reads the file's content.
    pub fn parse(&self, content: &[u8], reading: &Reading) -> Result<Graph, TraceError> {
        let (degrees, layers) = self.layers(content, reading)?;
        let mut job = Job {
            degrees,
            reading,
            b: Builder::new(degrees.ranks),
            last: vec![Vec::new(); degrees.ranks as usize],
            iteration: 0,
        };
        for iteration in 0..self.iterations {
            job.iteration = iteration;
            if degrees.micro { job.micro(&layers)? } else { job.iterate(&layers, &self.path)? }
        }
        job.b.build().map_err(|error| TraceError::whole(&self.path, "job", &error.to_string(), "one that can be done"))
    }

    fn layers<'a>(&'a self, content: &'a [u8], reading: &Reading) -> Result<(Degrees, Vec<Layer<'a>>), TraceError> {
        let text = text(&self.path, content)?;
        let mut lines = (1..).zip(text.lines()).map(|(number, line)| (Line { file: &self.path, number }, line));
        let mut next = |what: &str| {
            lines.next().ok_or_else(|| TraceError::whole(&self.path, what, "missing", "the next line of the file"))
        };
        let (line, header) = next("policy")?;
        let degrees = self.degrees(line, header, reading)?;
        let (line, count) = next("number of layers")?;
        let count = line.number("number of layers", count.trim(), 100_000_000)?;
        let mut layers = Vec::new();
        for _ in 0..count {
            let (line, layer) = next("layer")?;
            layers.push(Layer::read(line, layer, degrees.micro)?);
        }
        if let Some((line, more)) = lines.find(|(_, line)| !line.trim().is_empty()) {
            return Err(line.error("layer", more, &format!("none: line 2 says that there are {count}")));
        }
        self.check_times(&layers, degrees.ranks)?;
        Ok((degrees, layers))
    }

    fn degrees(&self, line: Line<'_>, header: &str, reading: &Reading) -> Result<Degrees, TraceError> {
        let mut words = header.split_whitespace();
        let micro = match words.next().unwrap_or_default() {
            "HYBRID_TRANSFORMER_FWD_IN_BCKWD" => false,
            "MICRO" => true,
            // The value is not shown whole: a file that is no workload may be one with passwords.
            other => {
                let known = other.starts_with("HYBRID_") || ["DATA", "MODEL", "DISTRIBUTED_INFERENCE"].contains(&other);
                let shown = if known { other } else { "something else" };
                return Err(line.error("policy", shown, "HYBRID_TRANSFORMER_FWD_IN_BCKWD or MICRO"));
            }
        };
        let (mut tensor, mut expert, mut pipeline, mut chunks, mut ga, mut pass_bytes) = (1, 1, 1, 1, 1, 0);
        let mut ranks = self.ranks.map(u64::from);
        let most = u64::from(RANKS_MAX);
        while let Some(word) = words.next() {
            let key = word.trim_end_matches(':');
            let mut value = |most| line.number(key, words.next().unwrap_or_default(), most);
            match key {
                "model_parallel_NPU_group" => tensor = value(most)?,
                "ep" => expert = value(most)?,
                "pp" => pipeline = value(most)?,
                "vpp" => chunks = value(1 << 20)?,
                "ga" => ga = value(1 << 20)?,
                "pp_comm" => pass_bytes = value(BYTES_MAX)?,
                "all_gpus" => {
                    let all = value(most)?;
                    ranks.get_or_insert(all);
                }
                "checkpoints" | "checkpoint_initiates" => {
                    let count = value(u64::MAX)?;
                    if count > 0 {
                        return Err(line.error(key, &count.to_string(), "0: layers are not computed again here"));
                    }
                }
                _ => return Err(line.error("policy", word, "a degree, such as ep: 8")),
            }
        }
        let Some(ranks) = ranks else {
            let expected = "given in the file, or as `ranks` beside its path";
            return Err(line.error("all_gpus", "missing", expected));
        };
        let wrong = [("model_parallel_NPU_group", tensor), ("ep", expert), ("pp", pipeline), ("all_gpus", ranks)];
        if let Some((key, value)) = wrong.iter().find(|(_, value)| *value == 0 || *value > most) {
            return Err(line.error(key, &value.to_string(), &format!("from 1 to {most}")));
        }
        let stage = tensor.saturating_mul(pipeline);
        if !ranks.is_multiple_of(stage) || !(ranks / stage).is_multiple_of(expert) {
            let expected =
                format!("a multiple of tensor, expert and pipeline degree, {tensor} * {expert} * {pipeline}");
            return Err(line.error("all_gpus", &ranks.to_string(), &expected));
        }
        if (pipeline > 1) != (pass_bytes > 0) && !micro {
            return Err(line.error("pp_comm", &pass_bytes.to_string(), "above 0 with pp above 1, and only then"));
        }
        let [tensor, expert, pipeline, ranks] = [tensor, expert, pipeline, ranks].map(|value| value as u32);
        if u64::from(ranks) > reading.steps_max {
            let expected = format!("at most {}, the steps that the job may have", reading.steps_max);
            return Err(line.error("all_gpus", &ranks.to_string(), &expected));
        }
        let passes = if pipeline > 1 { 2 * chunks * ga } else { 0 };
        Ok(Degrees { micro, tensor, expert, pipeline, passes, pass_bytes, ranks })
    }

    fn check_times(&self, layers: &[Layer<'_>], ranks: u32) -> Result<(), TraceError> {
        let most = TIME_MAX / u64::from(ranks) / u64::from(self.iterations.max(1));
        let mut time = 0u64;
        for layer in layers {
            let own = [layer.forward.time, layer.input.time, layer.weight.time, layer.update];
            time = own.iter().fold(time, |sum, own| sum.saturating_add(own.ps()));
            if time > most {
                return Err(layer.line.error("time", layer.name, "less: all times of all ranks may be 100 days"));
            }
        }
        Ok(())
    }
}

impl<'a> Layer<'a> {
    fn read(line: Line<'a>, words: &'a str, micro: bool) -> Result<Layer<'a>, TraceError> {
        let words: Vec<&str> = words.split_whitespace().collect();
        let &[name, _, forward, f_kind, f_size, input, i_kind, i_size, weight, w_kind, w_size, update] = &words[..]
        else {
            let expected = "12 words: a name, -1, three times a time, a collective and its size, and a time";
            return Err(line.error("layer", &format!("{} words", words.len()), expected));
        };
        let time = |field: &str, text: &str| line.number(field, text, u64::MAX / 4_000).map(Duration::from_ns);
        let part = |[field, kind_field, size_field]: [&str; 3], own, kind, size, among| {
            let bytes = line.number(size_field, size, BYTES_MAX)?;
            let collective = collective(line, kind_field, kind, among)?.filter(|_| bytes > 0);
            let collective = collective.map(|(kind, among)| Collective { kind, among, bytes });
            Ok::<LayerPhase, TraceError>(LayerPhase { time: time(field, own)?, collective })
        };
        let data = if micro { Among::All } else { Among::Data };
        Ok(Layer {
            line,
            name,
            forward: part(
                ["forward time", "forward collective", "forward size"],
                forward,
                f_kind,
                f_size,
                Among::Tensor,
            )?,
            input: part(["input time", "input collective", "input size"], input, i_kind, i_size, Among::Tensor)?,
            weight: part(["weight time", "weight collective", "weight size"], weight, w_kind, w_size, data)?,
            update: time("update time", update)?,
        })
    }
}

/// A collective by its name, with those among whom it is.
fn collective(line: Line<'_>, field: &str, name: &str, among: Among) -> Result<Option<(Kind, Among)>, TraceError> {
    if name == "NONE" {
        return Ok(None);
    }
    let (base, among) = match (name.strip_suffix("_DP_EP"), name.strip_suffix("_EP")) {
        (Some(base), _) => (base, Among::ExpertData),
        (None, Some(base)) => (base, Among::Experts),
        (None, None) => (name, among),
    };
    let kind = match base {
        "ALLREDUCE" => Kind::AllReduce,
        "ALLGATHER" => Kind::AllGather,
        "REDUCESCATTER" => Kind::ReduceScatter,
        "ALLTOALL" => Kind::AllToAll,
        "BROADCAST" => Kind::Broadcast,
        _ => {
            let expected =
                "NONE, ALLREDUCE, ALLGATHER, REDUCESCATTER, ALLTOALL or BROADCAST, perhaps with _EP or _DP_EP";
            return Err(line.error(field, name, expected));
        }
    };
    Ok(Some((kind, among)))
}

/// The graph so far.
struct Job<'a> {
    degrees: Degrees,
    reading: &'a Reading,
    b: Builder,
    /// By rank, what its next step waits for.
    last: Vec<Vec<StepId>>,
    iteration: u32,
}

impl Job<'_> {
    fn micro(&mut self, layers: &[Layer<'_>]) -> Result<(), TraceError> {
        for layer in layers {
            self.compute(layer, "forward", layer.forward.time)?;
            if let Some(collective) = layer.weight.collective {
                self.last = self.collective(layer, collective, "weight")?;
            }
        }
        Ok(())
    }

    fn iterate(&mut self, layers: &[Layer<'_>], file: &str) -> Result<(), TraceError> {
        for layer in layers {
            self.part(layer, "forward", layer.forward)?;
        }
        let mut beside: Vec<Vec<StepId>> = vec![Vec::new(); self.last.len()];
        for layer in layers.iter().rev() {
            self.part(layer, "input", layer.input)?;
            self.compute(layer, "weight", layer.weight.time)?;
            let Some(collective) = layer.weight.collective else { continue };
            let ends = self.collective(layer, collective, "weight")?;
            self.b.name(layer.name);
            for (rank, end) in ends.iter().enumerate() {
                let updated = match layer.update {
                    Duration::ZERO => end.clone(),
                    update => vec![self.b.delay(Rank(rank as u32), update, end)],
                };
                beside[rank].extend(updated);
            }
        }
        self.pass_on(file)?;
        // The next iteration, and the end of the job, wait for all weights.
        self.last.iter_mut().zip(beside).for_each(|(last, beside)| last.extend(beside));
        for (rank, last) in self.last.iter_mut().enumerate() {
            *last = vec![self.b.join(Rank(rank as u32), last)];
        }
        Ok(())
    }

    /// Messages from each stage to the next, one after the other.
    fn pass_on(&mut self, file: &str) -> Result<(), TraceError> {
        let Degrees { pipeline, passes, pass_bytes, ranks, .. } = self.degrees;
        if passes == 0 {
            return Ok(());
        }
        let most = passes.saturating_mul(2 * u64::from(ranks));
        self.room(most).map_err(|(value, expected)| TraceError::whole(file, "ga and vpp", &value, &expected))?;
        self.b.name("pipeline");
        let stage = ranks / pipeline;
        for _ in 0..passes {
            let mut next = vec![Vec::new(); ranks as usize];
            for from in 0..ranks {
                let to = (from + stage) % ranks;
                let ready = self.last[from as usize].clone();
                let (send, receive) = self.b.message((Rank(from), Rank(to)), pass_bytes, (0, 0), &ready, &[]);
                next[from as usize].push(send);
                next[to as usize].push(receive);
            }
            self.last = next;
        }
        Ok(())
    }

    fn room(&self, more: u64) -> Result<(), (String, String)> {
        let room = self.reading.steps_max.saturating_sub(self.b.steps());
        if more > room {
            return Err((format!("up to {more} more steps"), format!("at most {room} more in this job")));
        }
        Ok(())
    }

    /// A computation and then a collective that holds the rank up.
    fn part(&mut self, layer: &Layer<'_>, what: &str, part: LayerPhase) -> Result<(), TraceError> {
        self.compute(layer, what, part.time)?;
        if let Some(collective) = part.collective {
            self.last = self.collective(layer, collective, what)?;
        }
        Ok(())
    }

    fn compute(&mut self, layer: &Layer<'_>, what: &str, time: Duration) -> Result<(), TraceError> {
        if time == Duration::ZERO {
            return Ok(());
        }
        self.room(u64::from(self.degrees.ranks))
            .map_err(|(value, expected)| layer.line.error(&format!("{what} time"), &value, &expected))?;
        self.b.name(&format!("{} {what}", layer.name));
        for (rank, last) in self.last.iter_mut().enumerate() {
            *last = vec![self.b.compute(Rank(rank as u32), time, last)];
        }
        Ok(())
    }

    /// A collective in each of its groups: by rank, what ends it.
    fn collective(
        &mut self,
        layer: &Layer<'_>,
        collective: Collective,
        what: &str,
    ) -> Result<Vec<Vec<StepId>>, TraceError> {
        let Collective { kind, among, bytes } = collective;
        let how = &self.reading.how;
        let (stride, size) = self.degrees.group(among);
        let mut ends = self.last.clone();
        if size < 2 {
            return Ok(ends);
        }
        let groups = groups(self.degrees.ranks, stride, size);
        let error =
            |(value, expected): (String, String)| layer.line.error(&format!("{what} collective"), &value, &expected);
        let each = how.steps_most(kind, size as usize, bytes);
        self.room(each.saturating_mul(groups.len() as u64)).map_err(error)?;
        for group in &groups {
            let entry: Vec<Vec<StepId>> = group.iter().map(|rank| self.last[rank.index()].clone()).collect();
            let name = format!("{} {what}", layer.name);
            let done = how
                .add(&mut self.b, kind, &name, self.iteration, group, bytes, &entry)
                .map_err(|error_of| error((error_of.to_string(), "one for this group".to_owned())))?;
            group.iter().zip(done).for_each(|(rank, end)| ends[rank.index()] = vec![end]);
        }
        Ok(ends)
    }
}

impl Degrees {
    /// Of each group: from one rank to the next, and how many.
    fn group(self, among: Among) -> (u32, u32) {
        let Degrees { tensor, expert, pipeline, ranks, .. } = self;
        let data = ranks / tensor / pipeline;
        match among {
            Among::All => (1, ranks),
            Among::Tensor => (1, tensor),
            Among::Data => (tensor, data),
            Among::Experts => (tensor, expert),
            Among::ExpertData => (tensor * expert, data / expert),
        }
    }
}

/// All groups of `size` ranks, each `stride` after the one before.
fn groups(ranks: u32, stride: u32, size: u32) -> Vec<Vec<Rank>> {
    let firsts = (0..ranks).filter(|rank| rank % (stride * size) < stride);
    firsts.map(|first| (0..size).map(|at| Rank(first + at * stride)).collect()).collect()
}

#[cfg(test)]
mod tests;
