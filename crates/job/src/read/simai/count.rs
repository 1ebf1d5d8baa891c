//! The size of a workload, by formula: each layer once for all ranks, which do alike.

use units::Duration;

use super::{Among, Collective, Degrees, Layer, LayerPhase, SimaiTrace};
use crate::Count;
use crate::collective::{CollectiveAlgorithm, Group};
use crate::read::{Reading, TraceError};

impl SimaiTrace {
    /// Counts what the file has: ranks, and what they do if hosts have `local` consecutive ones each.
    pub fn count(&self, content: &[u8], reading: &Reading, local: u32) -> Result<(u32, Count), TraceError> {
        let (degrees, layers) = self.layers(content, reading)?;
        let how = reading.how;
        let mut counting = Counting { degrees, how, local, waits: 0, count: Count::default() };
        let (mut sum, mut left) = (Count::default(), u64::from(self.iterations));
        while left > 0 {
            let before = counting.waits;
            counting.count = Count::default();
            if degrees.micro {
                counting.micro(&layers)
            } else {
                counting.iterate(&layers)
            }
            // Once an iteration ends as it began, all later ones are like it.
            let alike = if counting.waits == before { left } else { 1 };
            sum = sum.and(counting.count.times(alike));
            left -= alike;
        }
        Ok((degrees.ranks, sum))
    }
}

struct Counting {
    degrees: Degrees,
    how: CollectiveAlgorithm,
    local: u32,
    /// How many steps a rank waits for before its next.
    waits: usize,
    count: Count,
}

impl Counting {
    fn micro(&mut self, layers: &[Layer<'_>]) {
        for layer in layers {
            self.compute(layer.forward.time);
            self.collective(layer.weight.collective);
        }
    }

    fn iterate(&mut self, layers: &[Layer<'_>]) {
        layers.iter().for_each(|layer| self.part(layer.forward));
        let mut beside = 0;
        for layer in layers.iter().rev() {
            self.part(layer.input);
            self.compute(layer.weight.time);
            if layer.weight.collective.is_none() {
                continue;
            }
            let waits = self.waits;
            self.collective(layer.weight.collective);
            beside += match layer.update {
                Duration::ZERO => self.waits,
                _ => {
                    self.steps(self.degrees.ranks);
                    1
                }
            };
            self.waits = waits;
        }
        let Degrees { pipeline, passes, pass_bytes, ranks, .. } = self.degrees;
        let stage = ranks / pipeline;
        if passes > 0 {
            let apart =
                (0..ranks).filter(|from| from / self.local.max(1) != (from + stage) % ranks / self.local.max(1));
            let share = (apart.count() as u64, u64::from(ranks));
            let one = Count { steps: 2, messages: 1, bytes: pass_bytes, ..Count::default() };
            self.count = self.count.and(one.times(ranks.into()).times(passes).leaving(share));
            // A rank goes on when it has sent and received.
            self.waits = 2;
        }
        if self.waits + beside != 1 {
            self.steps(ranks);
        }
        self.waits = 1;
    }

    fn part(&mut self, part: LayerPhase) {
        self.compute(part.time);
        self.collective(part.collective);
    }

    fn compute(&mut self, time: Duration) {
        if time > Duration::ZERO {
            self.count = self.count.and(Count::computations(self.degrees.ranks.into()));
            self.waits = 1;
        }
    }

    fn steps(&mut self, ranks: u32) {
        self.count = self.count.and(Count { steps: ranks.into(), ..Count::default() });
    }

    fn collective(&mut self, collective: Option<Collective>) {
        let Some(Collective { kind, among, bytes }) = collective else { return };
        let (stride, size) = self.degrees.group(among);
        if size < 2 {
            return;
        }
        let ranks = self.degrees.ranks;
        let of = |first| Group { first, stride, size };
        let shares = (0..ranks)
            .filter(|rank| rank % (stride * size) < stride)
            .map(|first| self.how.leaving(kind, of(first), self.local));
        let share = match among {
            Among::All => self.how.leaving(kind, of(0), self.local),
            _ => shares.fold((0, 0), |sum, own| (sum.0 + own.0, sum.1 + own.1)),
        };
        let groups = u64::from(ranks / size);
        self.count = self.count.and(self.how.count(kind, size, bytes, self.waits).times(groups).leaving(share));
        self.waits = 1;
    }
}
