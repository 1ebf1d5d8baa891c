//! What waits in switches, at fixed intervals.

use node::wire::{Malformed, Reader, Writer};
use run::{Column, Data, Plan, Table};
use units::{Duration, Time};

use crate::{Probe, View, Wants, Whole};

/// Samples of a part's queues.
#[derive(node::State)]
pub(crate) struct Queues {
    /// In the fabric.
    switches: u32,
    #[state(same(self.samples.len()))]
    samples: Samples,
}

/// Samples, first to last. They are in pieces, because one long list is copied, into fresh memory, each time it grows:
/// with 512 switches that took an eighth of a run.
#[derive(Default, node::Saved)]
struct Samples {
    pieces: Vec<Vec<Sample>>,
}

impl Samples {
    /// Samples of a piece.
    const PIECE: usize = 1 << 14;

    fn push(&mut self, sample: Sample) {
        match self.pieces.last_mut() {
            Some(last) if last.len() < Samples::PIECE => last.push(sample),
            _ => {
                let mut next = Vec::with_capacity(Samples::PIECE);
                next.push(sample);
                self.pieces.push(next);
            }
        }
    }

    fn iter(&self) -> impl Iterator<Item = &Sample> {
        self.pieces.iter().flatten()
    }

    fn len(&self) -> usize {
        self.pieces.iter().map(Vec::len).sum()
    }

    fn retain(&mut self, keep: impl Fn(&Sample) -> bool) {
        self.pieces.iter_mut().for_each(|piece| piece.retain(&keep));
        self.pieces.retain(|piece| !piece.is_empty());
    }
}

#[derive(Clone, Copy, Debug, node::Saved)]
struct Sample {
    at: Time,
    switch: u32,
    used_bytes: u64,
    longest_bytes: u32,
    /// At all ports of a kind together: up, down, to hosts.
    waiting_bytes: [u64; 3],
}

impl Queues {
    /// None if nothing is sampled.
    pub fn new(plan: &Plan) -> Option<Queues> {
        let switches = plan.fabric.switches;
        (plan.scenario.measure.interval != Duration::ZERO).then(|| Queues { switches, samples: Samples::default() })
    }
}

impl Probe for Queues {
    fn wants(&self) -> Wants {
        Wants { samples: true, ..Wants::default() }
    }

    fn on_sample(&mut self, now: Time, view: View<'_>) {
        for slot in view.switches {
            let (mut longest_bytes, mut waiting_bytes) = (0, [0; 3]);
            for port in slot.switch.ports() {
                longest_bytes = longest_bytes.max(port.queued_bytes());
                waiting_bytes[port.hop() as usize] += u64::from(port.queued_bytes());
            }
            let used_bytes = slot.switch.used_bytes();
            self.samples.push(Sample { at: now, switch: slot.id, used_bytes, longest_bytes, waiting_bytes });
        }
    }

    fn on_thin(&mut self, interval: Duration) {
        self.samples.retain(|sample| sample.at.is_multiple_of(interval));
    }

    fn pack(&self, to: &mut Writer<'_>) {
        to.u64(self.samples.len() as u64);
        for Sample { at, switch, used_bytes, longest_bytes, waiting_bytes: [up, down, last] } in self.samples.iter() {
            [at.ps(), *used_bytes, *up, *down, *last].into_iter().for_each(|number| to.u64(number));
            to.u32(*switch);
            to.u32(*longest_bytes);
        }
    }

    fn absorb(&mut self, from: &mut Reader<'_>) -> Result<(), Malformed> {
        from.begin("samples of queues");
        for _ in 0..from.u64()? {
            let (at, used_bytes) = (Time::from_ps(from.u64()?), from.u64()?);
            // As much as a sum of two can be.
            let waiting_bytes = [from.u64()?, from.u64()?, from.u64()?].map(|bytes| bytes.min(1 << 56));
            let (switch, longest_bytes) = (from.u32()?, from.u32()?);
            if switch >= self.switches {
                return Err(Malformed { what: "samples of queues: there is no such switch" });
            }
            self.samples.push(Sample { at, switch, used_bytes, longest_bytes, waiting_bytes });
        }
        Ok(())
    }

    /// The table `queues`; empty without samples.
    fn tables(seen: &[&Queues], whole: &Whole<'_>) -> Vec<Table> {
        let mut samples: Vec<&Sample> = seen.iter().flat_map(|seen| seen.samples.iter()).collect();
        samples.sort_unstable_by_key(|sample| (sample.at, sample.switch));
        let plan = whole.plan;
        let switch = Data::Names {
            index: samples.iter().map(|sample| sample.switch).collect(),
            names: plan.fabric.names[plan.fabric.hosts as usize..].to_vec(),
        };
        let number = |value: &dyn Fn(&Sample) -> u64| Data::U64(samples.iter().map(|sample| value(sample)).collect());
        let columns = vec![
            Column::new("time_ps", "ps", "when", number(&|sample| sample.at.ps())),
            Column::new("switch", "", "where", switch),
            Column::new("used_bytes", "B", "buffer in use", number(&|sample| sample.used_bytes)),
            Column::new(
                "longest_bytes",
                "B",
                "longest queue of a port",
                number(&|sample| u64::from(sample.longest_bytes)),
            ),
            Column::new(
                "up_bytes",
                "B",
                "bytes that wait at all ports to switches farther from hosts",
                number(&|sample| sample.waiting_bytes[0]),
            ),
            Column::new(
                "down_bytes",
                "B",
                "bytes that wait at all other ports: to hosts, and to switches nearer to hosts",
                number(&|sample| sample.waiting_bytes[1] + sample.waiting_bytes[2]),
            ),
        ];
        vec![Table { name: "queues", columns }]
    }
}
