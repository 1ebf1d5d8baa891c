//! How much of the links' capacity is used, by tier, in each interval, and how much of that carries new data.

mod first_time;

use std::collections::BTreeMap;

use fabric::Tier;
use node::pool::Transit;
use node::wire::{Malformed, Reader, Writer};
use node::{Packet, Walk};
use run::{Column, Data, Plan, Table};
use units::{Duration, Time};

use crate::{HostSlot, Probe, View, Wants, Whole};
use first_time::FirstTime;

/// What the ports of a part have sent, and what has come to its hosts for the first time.
pub(crate) struct Utilisation {
    /// Per sample: bytes that switch ports have begun to send since the last one, by kind of hop.
    sent: Vec<(Time, [u64; 3])>,
    sent_before: [u64; 3],
    first_time: FirstTime,
    /// Per sample: bytes that came for the first time since the last one.
    new_bytes: Vec<(Time, u64)>,
}

impl Utilisation {
    /// None if nothing is sampled.
    pub fn new(plan: &Plan) -> Option<Utilisation> {
        (plan.scenario.measure.interval != Duration::ZERO).then(|| Utilisation {
            sent: Vec::new(),
            sent_before: [0; 3],
            first_time: FirstTime::new(plan),
            new_bytes: Vec::new(),
        })
    }
}

impl Probe for Utilisation {
    fn wants(&self) -> Wants {
        Wants { arrivals: true, samples: true, ..Wants::default() }
    }

    #[inline]
    fn on_arrival(&mut self, _: Time, _: &HostSlot, packet: &Packet, _: &Transit) {
        self.first_time.note(packet);
    }

    fn on_sample(&mut self, now: Time, view: View<'_>) {
        let mut sent = [0; 3];
        for port in view.switches.iter().flat_map(|slot| slot.switch.ports()) {
            sent[port.hop() as usize] += port.stats.sent_bytes;
        }
        self.sent.push((now, std::array::from_fn(|hop| sent[hop] - self.sent_before[hop])));
        self.sent_before = sent;
        self.new_bytes.push((now, self.first_time.take_bytes()));
    }

    fn walk(&mut self, walk: &mut Walk) {
        walk.same((self.sent.len(), self.new_bytes.len()));
        self.first_time.walk(walk);
    }

    fn on_thin(&mut self, interval: Duration) {
        sum_up(&mut self.sent, interval, |sum, later| std::array::from_fn(|hop| sum[hop] + later[hop]));
        sum_up(&mut self.new_bytes, interval, |sum, later| sum + later);
    }

    fn pack(&self, to: &mut Writer<'_>) {
        to.u64(self.sent.len() as u64);
        for ((at, sent), (_, new_bytes)) in self.sent.iter().zip(&self.new_bytes) {
            [at.ps(), sent[0], sent[1], sent[2], *new_bytes].into_iter().for_each(|number| to.u64(number));
        }
    }

    fn absorb(&mut self, from: &mut Reader<'_>) -> Result<(), Malformed> {
        from.begin("samples of utilisation");
        for _ in 0..from.u64()? {
            let at = Time::from_ps(from.u64()?);
            // So that sums over all processes fit.
            let mut bytes = || from.u64().map(|bytes| bytes.min(1 << 56));
            self.sent.push((at, [bytes()?, bytes()?, bytes()?]));
            self.new_bytes.push((at, bytes()?));
        }
        Ok(())
    }

    /// The table `utilisation`; empty without samples.
    fn tables(seen: &[&Utilisation], whole: &Whole<'_>) -> Vec<Table> {
        let plan = whole.plan;
        let mut capacity = [0u64; 3];
        for link in plan.fabric.links.iter().filter(|link| plan.fabric.as_switch(link.from).is_some()) {
            capacity[hop_index(link.tier)] += link.rate.bps();
        }
        let mut sums: BTreeMap<(Time, usize), u64> = BTreeMap::new();
        for &(at, bytes) in seen.iter().flat_map(|seen| &seen.sent) {
            for (hop, bytes) in bytes.into_iter().enumerate().filter(|(hop, _)| capacity[*hop] > 0) {
                *sums.entry((at, hop)).or_default() += bytes;
            }
        }
        let mut first: BTreeMap<Time, u64> = BTreeMap::new();
        for &(at, bytes) in seen.iter().flat_map(|seen| &seen.new_bytes) {
            *first.entry(at).or_default() += bytes;
        }
        let interval = whole.sample_interval.secs_f64();
        let of_capacity = |hop: usize, bytes: u64| bytes as f64 * 8.0 / interval / capacity[hop] as f64;
        let share = |(&(_, hop), &bytes): (&(Time, usize), &u64)| of_capacity(hop, bytes);
        let data_share = |&(at, hop): &(Time, usize)| match hop {
            TO_HOST => of_capacity(hop, first.get(&at).copied().unwrap_or(0)),
            _ => f64::NAN,
        };
        let tier = Data::Names {
            index: sums.keys().map(|key| key.1 as u32).collect(),
            names: HOPS.map(str::to_owned).to_vec(),
        };
        let columns = vec![
            Column::new("time_ps", "ps", "end of the interval", Data::U64(sums.keys().map(|key| key.0.ps()).collect())),
            Column::new(
                "tier",
                "",
                "links between switches away from hosts (up) and towards them (down), and to hosts",
                tier,
            ),
            Column::new(
                "utilisation",
                "",
                "share of the tier's capacity that was used, headers counted",
                Data::F64(sums.iter().map(share).collect()),
            ),
            Column::new(
                "data_share",
                "",
                "of the links to hosts: share of their capacity used by message data that arrived for the first time, \
                 headers counted",
                Data::F64(sums.keys().map(data_share).collect()),
            ),
        ];
        vec![Table { name: "utilisation", columns }]
    }
}

/// Adds what was counted in shorter intervals up to intervals of this length.
fn sum_up<T: Copy>(counted: &mut Vec<(Time, T)>, interval: Duration, add: impl Fn(T, T) -> T) {
    counted.iter_mut().for_each(|(at, _)| *at = at.next_multiple_of(interval));
    counted.dedup_by(|later, sum| {
        let same = later.0 == sum.0;
        if same {
            sum.1 = add(sum.1, later.1);
        }
        same
    });
}

const HOPS: [&str; 3] = ["up", "down", "to_host"];
const TO_HOST: usize = 2;

fn hop_index(tier: Tier) -> usize {
    match tier {
        Tier::FromHost | Tier::Up => 0,
        Tier::Down => 1,
        Tier::ToHost => TO_HOST,
    }
}
