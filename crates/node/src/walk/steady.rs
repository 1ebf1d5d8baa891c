//! States that have not recurred, but whose flows are steady.

use std::collections::BTreeMap;
use std::sync::Arc;

use units::{Duration, FlowId, Time};

use super::{Kind, Notes};

/// Flows that are steady: a state that has not recurred, but may be moved ahead by what flows do on average.
///
/// Everything stays as it is but time and positions: queues, packets in flight and what schemes have learned are those
/// of the moment in which the moving begins.
#[derive(Clone, Debug)]
pub struct Steady {
    /// For so long the flows were observed.
    observed: Duration,
    /// By flow: bytes of it that were received in that time, the unit of its positions, and its last position.
    flows: BTreeMap<FlowId, (u64, u64, u64)>,
    turns: BTreeMap<(u32, &'static str), u64>,
    counts: Vec<u64>,
    /// Those of single flows.
    counts_of: Vec<u64>,
    /// By how much the state has been moved ahead.
    moved: Duration,
    /// The first time that is set from outside.
    pub until: Time,
}

/// By how much everything is moved ahead at once.
#[derive(Debug)]
pub struct Amounts {
    pub(super) time: Duration,
    pub(super) flows: BTreeMap<FlowId, u64>,
    pub(super) turns: BTreeMap<(u32, &'static str), u64>,
    pub(super) counts: Vec<u64>,
    pub(super) counts_of: Vec<u64>,
}

impl Steady {
    /// The flows of notes that were taken at equal distances, if they are steady. Each has been received further by at
    /// least `least` packets from each note to the next. How far differs from step to step by at most the share `theta`
    /// of the mean, but for a packet at each end. And what is under way of it has not changed by more.
    ///
    /// # Errors
    /// Why they are not.
    pub fn of(notes: &[Notes], theta: f64, least: u64) -> Result<Steady, Unsteady> {
        let [first, .., last] = notes else { return Err(Unsteady::Slow) };
        if notes.iter().any(|of| of.counts.len() != first.counts.len() || of.counts_of.len() != first.counts_of.len()) {
            return Err(Unsteady::Unsteady);
        }
        let places: Vec<_> = notes.iter().map(Notes::places).collect();
        let (begin, end) = (&places[0], &places[places.len() - 1]);
        if end.is_empty() || begin.len() != end.len() {
            return Err(Unsteady::Unsteady);
        }
        let mut flows = BTreeMap::new();
        for (&flow, &Places { from, until, unit }) in end {
            let steps = places.windows(2).map(|pair| {
                let (one, other) = (pair[0].get(&flow)?, pair[1].get(&flow)?);
                Some(other.from.saturating_sub(one.from))
            });
            let steps: Option<Vec<u64>> = steps.collect();
            let (Some(steps), Some(was)) = (steps, begin.get(&flow)) else { return Err(Unsteady::Unsteady) };
            let (min, max) = steps.iter().fold((u64::MAX, 0), |(min, max), &step| (step.min(min), step.max(max)));
            if min < least * unit {
                return Err(Unsteady::Slow);
            }
            let (come, quantum) = (from - was.from, 2.0 * unit as f64);
            let under_way = (until - from).abs_diff(was.until - was.from);
            let differs = (max - min) as f64 > theta * come as f64 / steps.len() as f64 + quantum;
            if differs || under_way as f64 > theta * come as f64 + quantum {
                return Err(Unsteady::Unsteady);
            }
            flows.insert(flow, (come, unit, until));
        }
        let turns = first.turns();
        let turns =
            last.turns().into_iter().map(|(of, to)| (of, to.wrapping_sub(turns.get(&of).copied().unwrap_or(to))));
        let counts = first.counts.iter().zip(&last.counts).map(|(one, other)| other.wrapping_sub(*one)).collect();
        let counts_of =
            first.counts_of.iter().zip(&last.counts_of).map(|(one, other)| other.1.wrapping_sub(one.1)).collect();
        let until = last
            .moving
            .iter()
            .filter(|of| matches!(of.0, Kind::Outside | Kind::RankActs))
            .map(|of| Time::from_ps(of.1))
            .min();
        Ok(Steady {
            observed: last.now - first.now,
            flows,
            turns: turns.collect(),
            counts,
            counts_of,
            moved: Duration::ZERO,
            until: until.unwrap_or(Time::MAX),
        })
    }

    /// For how long the flows were observed.
    pub fn observed(&self) -> Duration {
        self.observed
    }

    /// Whether the same flows were observed before, and each was as fast but for the share `theta`, and for a packet at
    /// each end.
    pub fn agrees(&self, before: &Steady, theta: f64) -> bool {
        let rate = |of: &Steady, by: u64| by as f64 / of.observed.ps() as f64;
        self.flows.len() == before.flows.len()
            && self.flows.iter().zip(&before.flows).all(|((flow, (by, unit, _)), (other, (was, ..)))| {
                let (now, then, packets) = (rate(self, *by), rate(before, *was), rate(self, 2 * unit));
                flow == other && (now - then).abs() <= theta * then + packets
            })
    }

    /// For how long the state may be moved ahead before a flow nears its end: until `left` bytes of it are left, where
    /// `bytes` says how many it has, and then less by a step between notes.
    pub fn before_ends(&self, bytes: impl Fn(FlowId) -> u64, left: u64, step: Duration) -> Duration {
        let of = |(&flow, &(by, _, last)): (&FlowId, &(u64, u64, u64))| {
            let more = bytes(flow).saturating_sub(last + left);
            Duration::from_ps(scaled(more, self.observed.ps(), by))
        };
        let least = self.flows.iter().map(of).min().unwrap_or(Duration::ZERO);
        least.saturating_sub(self.moved).saturating_sub(step)
    }

    /// What moves in the next span of time. Positions are whole packets: what is left over counts the next time.
    pub fn next(&mut self, time: Duration) -> Arc<Amounts> {
        let (before, after, observed) = (self.moved.ps(), (self.moved + time).ps(), self.observed.ps());
        let more = |by: u64, unit: u64| {
            let until = |moved: u64| scaled(by, moved, observed) / unit * unit;
            until(after) - until(before)
        };
        self.moved += time;
        Arc::new(Amounts {
            time,
            flows: self.flows.iter().map(|(&flow, &(by, unit, _))| (flow, more(by, unit))).collect(),
            turns: self.turns.iter().map(|(&of, &by)| (of, more(by, 1))).collect(),
            counts: self.counts.iter().map(|&by| more(by, 1)).collect(),
            counts_of: self.counts_of.iter().map(|&by| more(by, 1)).collect(),
        })
    }
}

/// `value * times / of`.
fn scaled(value: u64, times: u64, of: u64) -> u64 {
    u64::try_from(u128::from(value) * u128::from(times) / u128::from(of.max(1))).unwrap_or(u64::MAX)
}

/// The first and the last position of a flow that anything names, in bytes, and the largest of their units.
#[derive(Clone, Copy, Debug)]
struct Places {
    from: u64,
    until: u64,
    unit: u64,
}

/// Why flows are not steady.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsteady {
    /// A flow has come too little further to say.
    Slow,
    /// Flows have begun, ended, or changed their rates.
    Unsteady,
}

impl Notes {
    /// The positions of each flow.
    fn places(&self) -> BTreeMap<FlowId, Places> {
        let mut places = BTreeMap::new();
        for &(kind, value) in &self.moving {
            if let Kind::Sequence(flow, unit) = kind {
                let at = value.wrapping_mul(unit);
                let places = places.entry(flow).or_insert(Places { from: at, until: at, unit });
                *places =
                    Places { from: places.from.min(at), until: places.until.max(at), unit: places.unit.max(unit) };
            }
        }
        places
    }

    fn turns(&self) -> BTreeMap<(u32, &'static str), u64> {
        let turn = |&(kind, value): &(Kind, u64)| match kind {
            Kind::Turn(node, name) => Some(((node, name), value)),
            _ => None,
        };
        self.moving.iter().filter_map(turn).collect()
    }
}
