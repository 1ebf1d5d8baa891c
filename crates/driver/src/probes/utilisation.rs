//! How much of the links' capacity is used, by tier, in each interval, and how much of that carries new data.
//!
//! A packet's bytes are spread over the time in which the link transmits them. So an interval has no more than its link
//! can carry, however short it is, and the intervals together have all that was carried. Whether a packet's data are
//! new is known when its last byte has come: from then on they are spread over the time that they took.

mod spread;

use std::collections::BTreeMap;
use std::sync::Arc;

use fabric::{Fabric, Tier};
use node::Packet;
use node::pool::Transit;
use node::wire::{Malformed, Reader, Writer};
use run::{Column, Data, Plan, Table};
use units::{Duration, Rate, Time};

use crate::first_time::FirstTime;
use crate::{HostSlot, Probe, View, Wants, Whole};
use spread::{Carried, in_bytes};

/// The bytes that switch ports of a part have sent, and those that its hosts received for the first time, in the units
/// of [`spread`].
#[derive(node::State)]
pub(crate) struct Utilisation {
    /// Per sample: what switch ports have sent since the last one, by kind of hop.
    #[state(same(self.sent.len()))]
    sent: Vec<(Time, [u64; 3])>,
    /// By port, switch after switch.
    #[state(skip("of the last sample"))]
    ports: Vec<Carried>,
    #[state(skip("of the last sample"))]
    sampled_at: Time,
    first_time: FirstTime,
    /// By outlet of the part, the link that comes back to it, where that leads to a host and something new has come.
    last_hops: Vec<Option<LastHop>>,
    fabric: Arc<Fabric>,
    /// Per sample: what came for the first time since the last one.
    #[state(same(self.new.len()))]
    new: Vec<(Time, u64)>,
}

/// A link to a host.
#[derive(node::State)]
struct LastHop {
    rate: Rate,
    /// Bytes that have come by it for the first time.
    #[state(count)]
    new_bytes: u64,
    #[state(skip("of the last sample"))]
    carried: Carried,
}

impl Utilisation {
    /// None if nothing is sampled.
    pub fn new(plan: &Plan) -> Option<Utilisation> {
        if plan.scenario.measure.interval == Duration::ZERO {
            return None;
        }
        Some(Utilisation {
            sent: Vec::new(),
            ports: Vec::new(),
            sampled_at: Time::ZERO,
            first_time: FirstTime::new(plan),
            last_hops: Vec::new(),
            fabric: plan.fabric.clone(),
            new: Vec::new(),
        })
    }

    /// New bytes have come by a link to a host.
    #[inline]
    fn has_come(&mut self, host: &HostSlot, port: u16, bytes: u64) {
        let link_tx = host.link_tx as usize + usize::from(port);
        match self.last_hops.get_mut(link_tx) {
            Some(Some(hop)) => hop.new_bytes += bytes,
            _ => self.first_came(host, port, bytes),
        }
    }

    #[cold]
    fn first_came(&mut self, host: &HostSlot, port: u16, new_bytes: u64) {
        let link_tx = host.link_tx as usize + usize::from(port);
        let uplink = self.fabric.uplinks(host.host.id())[usize::from(port)];
        let rate = self.fabric.link(Fabric::reverse(uplink)).rate;
        if self.last_hops.len() <= link_tx {
            self.last_hops.resize_with(link_tx + 1, || None);
        }
        self.last_hops[link_tx] = Some(LastHop { rate, new_bytes, carried: Carried::default() });
    }
}

impl Probe for Utilisation {
    fn wants(&self) -> Wants {
        Wants { arrivals: true, samples: true, ..Wants::default() }
    }

    #[inline]
    fn on_arrival(&mut self, _: Time, host: &HostSlot, packet: &Packet, transit: &Transit) {
        let bytes = self.first_time.note(packet);
        if bytes > 0 {
            self.has_come(host, transit.in_port, bytes);
        }
    }

    fn on_sample(&mut self, now: Time, view: View<'_>) {
        let ports = || view.switches.iter().flat_map(|slot| slot.switch.ports());
        self.ports.resize(ports().count(), Carried::default());
        let (mut sent, span) = ([0; 3], now.since(self.sampled_at));
        for (port, carried) in ports().zip(&mut self.ports) {
            let to_leave = port.free_at().since(now);
            sent[port.hop() as usize] += carried.by(span, port.rate(), port.stats.sent_bytes, to_leave);
        }
        self.sent.push((now, sent));
        let new = |hop: &mut LastHop| hop.carried.by(span, hop.rate, hop.new_bytes, Duration::ZERO);
        self.new.push((now, self.last_hops.iter_mut().flatten().map(new).sum()));
        self.sampled_at = now;
    }

    fn on_thin(&mut self, interval: Duration) {
        sum_up(&mut self.sent, interval, |sum, later| std::array::from_fn(|hop| sum[hop] + later[hop]));
        sum_up(&mut self.new, interval, |sum, later| sum + later);
    }

    fn pack(&self, to: &mut Writer<'_>) {
        to.u64(self.sent.len() as u64);
        for ((at, sent), (_, new)) in self.sent.iter().zip(&self.new) {
            [at.ps(), sent[0], sent[1], sent[2], *new].into_iter().for_each(|number| to.u64(number));
        }
    }

    fn absorb(&mut self, from: &mut Reader<'_>) -> Result<(), Malformed> {
        from.begin("samples of utilisation");
        for _ in 0..from.u64()? {
            let at = Time::from_ps(from.u64()?);
            self.sent.push((at, [from.u64()?, from.u64()?, from.u64()?]));
            self.new.push((at, from.u64()?));
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
        // Wide, so that sums of whatever another process says fit.
        let mut sums: BTreeMap<(Time, usize), u128> = BTreeMap::new();
        for &(at, amounts) in seen.iter().flat_map(|seen| &seen.sent) {
            for (hop, amount) in amounts.into_iter().enumerate().filter(|(hop, _)| capacity[*hop] > 0) {
                *sums.entry((at, hop)).or_default() += u128::from(amount);
            }
        }
        let mut first: BTreeMap<Time, u128> = BTreeMap::new();
        for &(at, amount) in seen.iter().flat_map(|seen| &seen.new) {
            *first.entry(at).or_default() += u128::from(amount);
        }
        let interval = whole.sample_interval.secs_f64();
        // Rounding alone can lead above 1.
        let of_capacity =
            |hop: usize, amount: u128| (in_bytes(amount) * 8.0 / interval / capacity[hop] as f64).min(1.0);
        let share = |(&(_, hop), &amount): (&(Time, usize), &u128)| of_capacity(hop, amount);
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
