//! How large a job is before it is built, and which setting would make it fit.

use job::collective::{CollectiveAlgorithm, Group, Kind};
use job::model::Setting;
use job::read::RANKS_MAX;
use job::{Count, STEPS_MAX};
use units::{Bytes, Problem, Rate};

use super::{Groups, Job, Operation, Step};
use crate::generate::BYTES_MAX;
use crate::room::{Room, in_words};
use crate::{FLOWS_MAX, FabricView};

impl<T: Clone> Job<T> {
    /// Refuses a job that is too large, before anything of it is made, with the setting that would fit.
    pub(super) fn check_size(&self, view: &FabricView, seed: u64, room: &Room) -> Result<Count, Problem> {
        let count = self.count(view, seed)?;
        let Some(why) = too_large(&count, room) else { return Ok(count) };
        let fits = |job: &Job<T>| job.count(view, seed).is_ok_and(|count| too_large(&count, room).is_none());
        let (key, advice) = self.smaller(view, fits);
        let Count { steps, messages, leaving, .. } = count;
        let message = format!(
            "has {} steps and {} messages, {} of them between hosts, {why}. {advice}",
            said(steps),
            said(messages),
            said(leaving)
        );
        Err(Problem::new(key, message))
    }

    /// Steps, messages and bytes of the job.
    fn count(&self, view: &FabricView, seed: u64) -> Result<Count, Problem> {
        let ranks = self.ranks_on(view)?;
        if ranks > RANKS_MAX {
            let key = if self.ranks.is_some() { "ranks" } else { "ranks_per_host" };
            let message = format!("the job has {ranks} ranks; at most {RANKS_MAX} are possible, so write fewer");
            return Err(Problem::new(key, message));
        }
        if let Some(loaded) = &self.loaded {
            return Ok(loaded.count());
        }
        let nic = self.nic(view)?;
        let Some(model) = &self.model else { return self.count_steps(ranks, nic) };
        let (plain, how) = self.hows(nic)?;
        let setting = Setting { tensor: plain, data: how, expert: plain, slow: &|_| 1.0, seed };
        model.check_job(&setting).map_err(|problem| problem.under("model"))?;
        Ok(model.count(self.iterations, &setting, self.ranks_per_host))
    }

    fn count_steps(&self, ranks: u32, nic: Rate) -> Result<Count, Problem> {
        let (mut sum, mut waits, mut left) = (Count::default(), 0, u64::from(self.iterations));
        while left > 0 {
            let before = waits;
            let one = self.count_iteration(ranks, nic, &mut waits)?;
            // Once an iteration ends as it began, all later ones are like it.
            let alike = if waits == before { left } else { 1 };
            sum = sum.and(one.times(alike));
            left -= alike;
        }
        Ok(sum)
    }

    /// One iteration, which every rank begins after `waits` steps; then, after how many the next begins.
    fn count_iteration(&self, ranks: u32, nic: Rate, waits: &mut usize) -> Result<Count, Problem> {
        let (mut sum, mut beside) = (Count::default(), 0);
        for (index, step) in self.steps.iter().enumerate() {
            let here = |problem: Problem| problem.under(format!("steps[{index}]"));
            let Some((kind, operation)) = step.collective() else {
                let all = u64::from(ranks);
                sum = sum.and(Count { steps: all, computations: all, ..Count::default() });
                *waits = 1;
                continue;
            };
            let under = |problem: Problem| here(problem.under(kind.name()));
            let groups = operation.among.unwrap_or(Groups { size: ranks, stride: 1 });
            groups.check(ranks).map_err(under)?;
            let how = self.how_of(kind, operation, nic).map_err(under)?;
            let possible = how.fits(kind, groups.size as usize);
            possible.map_err(|error| under(Problem::new("algorithm", error.to_string())))?;
            let of_one = how.count(kind, groups.size, operation.bytes.get(), *waits);
            let share = leaving(&how, kind, groups, ranks, self.ranks_per_host);
            sum = sum.and(of_one.times(u64::from(ranks / groups.size)).leaving(share));
            if operation.beside { beside += 1 } else { *waits = 1 }
        }
        *waits += beside;
        if *waits > 1 {
            sum = sum.and(Count { steps: u64::from(ranks), ..Count::default() });
            *waits = 1;
        }
        Ok(sum)
    }

    /// A setting that alone makes the job fit: its key, and what to write.
    fn smaller(&self, view: &FabricView, fits: impl Fn(&Job<T>) -> bool) -> (String, String) {
        let said = |key: &str, value: u64| (key.to_owned(), format!("{} = {value} would fit", last(key)));
        if let Some(iterations) = largest(self.iterations, |iterations| fits(&Job { iterations, ..self.clone() })) {
            return said("iterations", u64::from(iterations));
        }
        if let Some((key, chunk)) = self.larger_chunk(&fits) {
            return (key, format!("chunk = \"{chunk}\" would fit"));
        }
        let with = |channels: u32| {
            let mut job = self.clone();
            job.library.channels = channels;
            job
        };
        if let Some(channels) = largest(self.library.channels, |channels| fits(&with(channels))) {
            return said("library.channels", u64::from(channels));
        }
        if self.trace.is_some() {
            return ("trace".to_owned(), "A trace of fewer ranks, layers or iterations would fit".to_owned());
        }
        if let Some(model) = &self.model {
            let of = |data: u32| {
                let mut job = self.clone();
                job.model.as_mut().expect("it is one of a model").degrees.data = data;
                job
            };
            if let Some(data) = halved(model.degrees.data, |data| fits(&of(data))) {
                return said("model.degrees.data", u64::from(data));
            }
            return ("model".to_owned(), "A smaller model, or fewer ranks, would fit".to_owned());
        }
        let own = self.ranks_on(view).unwrap_or(u32::MAX);
        let room = |ranks: u32| fits(&Job { ranks: Some(ranks), ..self.clone() });
        if self.ranks.is_some()
            && let Some(ranks) = halved(own, room)
        {
            return said("ranks", u64::from(ranks));
        }
        let packed = |ranks_per_host: u32| fits(&Job { ranks_per_host, ..self.clone() });
        if self.ranks.is_none()
            && let Some(ranks_per_host) = halved(self.ranks_per_host, packed)
        {
            return said("ranks_per_host", u64::from(ranks_per_host));
        }
        match halved(own, room) {
            Some(ranks) => said("ranks", u64::from(ranks)),
            None => ("steps".to_owned(), "Fewer ranks, or fewer steps, would fit".to_owned()),
        }
    }

    /// The key of a chunk that alone makes the job fit if it is larger, and how large.
    fn larger_chunk(&self, fits: &impl Fn(&Job<T>) -> bool) -> Option<(String, Bytes)> {
        let mut places: Vec<(String, Bytes)> = Vec::new();
        places.extend(self.library.chunk.map(|chunk| ("library.chunk".to_owned(), chunk)));
        for (index, step) in self.steps.iter().enumerate() {
            let Some((kind, operation)) = step.collective() else { continue };
            let chunk = operation.library.and_then(|library| library.chunk);
            places.extend(chunk.map(|chunk| (format!("steps[{index}].{}.library.chunk", kind.name()), chunk)));
        }
        places.into_iter().find_map(|(key, chunk)| {
            let doubled = std::iter::successors(chunk.get().checked_mul(2), |chunk| chunk.checked_mul(2));
            let fit = doubled.map(Bytes).find(|&chunk| fits(&self.with_chunk(&key, chunk)));
            fit.map(|fit| (key, fit))
        })
    }

    fn with_chunk(&self, key: &str, chunk: Bytes) -> Job<T> {
        let mut job = self.clone();
        if key == "library.chunk" {
            job.library.chunk = Some(chunk);
        }
        for (index, step) in job.steps.iter_mut().enumerate() {
            if key.starts_with(&format!("steps[{index}].")) {
                let library = step.operation_mut().and_then(|operation| operation.library.as_mut());
                library.into_iter().for_each(|library| library.chunk = Some(chunk));
            }
        }
        job
    }
}

impl Step {
    /// The collective that it is, unless it is a computation.
    pub(super) fn collective(&self) -> Option<(Kind, &Operation)> {
        match self {
            Step::Compute(_) => None,
            Step::AllReduce(operation) => Some((Kind::AllReduce, operation)),
            Step::ReduceScatter(operation) => Some((Kind::ReduceScatter, operation)),
            Step::AllGather(operation) => Some((Kind::AllGather, operation)),
            Step::Broadcast(operation) => Some((Kind::Broadcast, operation)),
            Step::AllToAll(operation) => Some((Kind::AllToAll, operation)),
            Step::SendRecv(operation) => Some((Kind::SendRecv, operation)),
        }
    }

    fn operation_mut(&mut self) -> Option<&mut Operation> {
        match self {
            Step::Compute(_) => None,
            Step::AllReduce(operation)
            | Step::ReduceScatter(operation)
            | Step::AllGather(operation)
            | Step::Broadcast(operation)
            | Step::AllToAll(operation)
            | Step::SendRecv(operation) => Some(operation),
        }
    }
}

/// The share of messages that leave their hosts, as (these, all), over all groups.
fn leaving(
    how: &CollectiveAlgorithm,
    kind: Kind,
    Groups { size, stride }: Groups,
    ranks: u32,
    local: u32,
) -> (u64, u64) {
    let firsts = (0..ranks).filter(|rank| rank % (size * stride) < stride);
    firsts.map(|first| how.leaving(kind, Group { first, stride, size }, local)).fold((0, 0), |sum, own| {
        let add = |sum: u64, own: u64| sum.saturating_add(own);
        (add(sum.0, own.0), add(sum.1, own.1))
    })
}

/// Why a job of this size can't be, if it can't.
fn too_large(count: &Count, room: &Room) -> Option<String> {
    let needs = room.of_job(count);
    if count.steps >= STEPS_MAX {
        return Some(format!("and at most {} steps are possible", said(STEPS_MAX)));
    }
    if count.leaving > FLOWS_MAX {
        return Some(format!("and at most {} between hosts are possible", said(FLOWS_MAX)));
    }
    if count.bytes > BYTES_MAX {
        return Some(format!("with more than {} bytes in all, which is the most", said(BYTES_MAX)));
    }
    let what = |bytes| format!("which will need about {}, and {} of memory are left", in_words(needs), in_words(bytes));
    (needs > room.bytes).then(|| what(room.bytes))
}

/// The largest number below `most` with which something fits, if it fits with 1.
fn largest(most: u32, fits: impl Fn(u32) -> bool) -> Option<u32> {
    if most < 2 || !fits(1) {
        return None;
    }
    let (mut good, mut bad) = (1, most);
    while bad - good > 1 {
        let middle = good + (bad - good) / 2;
        if fits(middle) { good = middle } else { bad = middle }
    }
    Some(good)
}

/// Half of a number, or a quarter, and so on: the first with which something fits.
fn halved(most: u32, fits: impl Fn(u32) -> bool) -> Option<u32> {
    std::iter::successors(Some(most / 2), |number| Some(number / 2)).take_while(|number| *number > 0).find(|&n| fits(n))
}

/// The last part of a key.
fn last(key: &str) -> &str {
    key.rsplit('.').next().unwrap_or(key)
}

/// A number as people read it: 4,295,000,000, or 4.29e19 where that is too long.
pub(crate) fn said(number: u64) -> String {
    if number > 1_000_000_000_000 {
        return format!("{:.2e}", number as f64);
    }
    let digits = number.to_string();
    let groups: Vec<&str> = digits.as_bytes().rchunks(3).rev().filter_map(|of| std::str::from_utf8(of).ok()).collect();
    groups.join(",")
}
