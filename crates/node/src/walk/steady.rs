//! States that have not recurred, but whose flows are steady.

use std::collections::BTreeMap;
use std::sync::Arc;

use units::{Duration, FlowId, Time};

use super::{Kind, Notes};

/// Flows are steady only if so many observations, the last ones, say so, or more.
const ASKED: usize = 5;
/// Most observations that are kept. When there are more, every other one is forgotten: enough stay.
const MOST: usize = 2 * ASKED - 1;
/// Flows are steady if their rates between these differ by no more than this share (Wormhole, NSDI 2026, takes 5%) ...
const THETA: f64 = 0.05;
/// ... and if each flow has sent at least so many packets in between.
const LEAST_PACKETS: u64 = 125;
/// The observation is trusted until the rate of a flow may have moved by this share.
const DRIFT: f64 = 0.02;

/// Turns move by a multiple of this, since some are told in coarser units: HPCC's switches tell bytes in units of 128.
const TURNS: u64 = 1 << 12;

/// What flows have done since the last of them began or ended: observations of a state.
///
/// Time that was skipped does not count: earlier observations are moved along with the state.
#[derive(Debug, Default)]
pub struct History {
    seen: Vec<Seen>,
    /// How far apart they are, but for the last one.
    apart: Duration,
    /// How much time was skipped.
    skipped: Duration,
}

/// An observation.
#[derive(Debug)]
struct Seen {
    at: Time,
    /// What lies ahead, in order.
    ahead: Vec<Time>,
    /// The largest share by which the next step of a control changes its rate.
    next_step: f64,
    flows: BTreeMap<FlowId, Places>,
    turns: BTreeMap<(u32, &'static str), u64>,
    counts: Vec<u64>,
    totals: Vec<u64>,
    counts_of: Vec<u64>,
}

/// Flows that are steady: a state that has not recurred, but may be moved ahead by what flows do on average.
///
/// Everything stays as it is but time and positions: queues, packets in flight and what schemes have learned are those
/// of the moment in which the moving begins.
#[derive(Clone, Debug)]
pub struct Steady {
    /// For so long the flows were observed.
    observed: Duration,
    /// What lies ahead of which nobody has seen what comes of it, in order.
    appointments: Vec<u64>,
    /// By flow: bytes of it that were received in that time, the unit of its positions, and its last position.
    flows: BTreeMap<FlowId, (u64, u64, u64)>,
    turns: BTreeMap<(u32, &'static str), u64>,
    counts: Vec<u64>,
    totals: Vec<u64>,
    /// Those of single flows.
    counts_of: Vec<u64>,
    /// For how long the observation is trusted.
    trusted: Duration,
    /// By how much the state has been moved ahead.
    moved: Duration,
}

/// By how much everything is moved ahead at once.
#[derive(Debug)]
pub struct Amounts {
    pub(super) time: Duration,
    /// These times stay.
    pub(super) appointments: Vec<u64>,
    /// The first of them; [`Time::MAX`] for none.
    pub(super) until: Time,
    /// By flow: bytes, and the same in its unit, which is a packet if it is more than a byte.
    pub(super) flows: BTreeMap<FlowId, (u64, u64)>,
    pub(super) turns: BTreeMap<(u32, &'static str), u64>,
    pub(super) counts: Vec<u64>,
    pub(super) totals: Vec<u64>,
    pub(super) counts_of: Vec<u64>,
}

impl Amounts {
    /// The bytes of all flows together.
    pub fn bytes(&self) -> u64 {
        self.flows.values().map(|of| of.0).sum()
    }
}

/// Why flows are not steady.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsteady {
    /// There are too few observations, or a flow has come too little further in between to say.
    Slow,
    /// Flows have begun, ended, or changed their rates.
    Unsteady,
}

impl History {
    /// Forgets everything: flows have begun or ended.
    pub fn clear(&mut self) {
        *self = History::default();
    }

    /// Whether there are enough observations to know that flows are too slow for them.
    pub fn is_slow(&self) -> bool {
        self.seen.len() >= ASKED
    }

    /// Adds an observation, and forgets every other one if there are too many. Returns whether it did, so that the next
    /// ones should be twice as far apart.
    pub fn add(&mut self, notes: &Notes) -> bool {
        let seen = Seen::of(notes);
        if self.seen.last().is_some_and(|last| !last.is_like(&seen)) {
            self.clear();
        }
        let thinned = self.seen.len() == MOST;
        if thinned {
            let mut index = 0;
            self.seen.retain(|_| {
                index += 1;
                index % 2 == 1
            });
            self.apart = self.apart * 2;
        }
        match &mut self.seen[..] {
            // The last one is replaced until it is far enough from the one before.
            [.., before, last] if last.at - before.at < self.apart => *last = seen,
            [first] => {
                self.apart = seen.at - first.at;
                self.seen.push(seen);
            }
            _ => self.seen.push(seen),
        }
        thinned
    }

    /// The flows, if the last observations say that they are steady. How far each has come differs from step to step by
    /// no more than 5% of the mean, but for a packet at each end. And what is under way of it has not changed by more.
    ///
    /// A control that changes its rate slowly looks steady for a while. So the last rate must be within 2% of the mean,
    /// and the observation is trusted only until a rate would have moved by 2% in all that was skipped, if it moves on
    /// as it did from the first half of the observation to the second. The less it has moved in a longer time, the
    /// longer that is.
    ///
    /// Averages don't know what controls do at a fixed time: see [`Steady::until`]. Nor do they know that a control is
    /// about to change its rate by more than 5% ([`Walk::next_step`](super::Walk::next_step)).
    ///
    /// # Errors
    /// Why they are not.
    pub fn steady(&self) -> Result<Steady, Unsteady> {
        let least = self.seen.len().checked_sub(ASKED).ok_or(Unsteady::Slow)?;
        let longest = (0..least).find_map(|from| Steady::of(&self.seen[from..]).ok());
        let mut steady = longest.map_or_else(|| Steady::of(&self.seen[least..]), Ok)?;
        steady.trusted = steady.trusted.saturating_sub(self.skipped);
        Ok(steady)
    }

    /// The state has been moved ahead by so much.
    pub fn moved(&mut self, amounts: &Amounts) {
        self.skipped += amounts.time;
        for seen in &mut self.seen {
            seen.at += amounts.time;
            let moves = seen.ahead.iter_mut().filter(|at| !amounts.appointments.contains(&at.ps()));
            moves.for_each(|at| *at += amounts.time);
            seen.ahead.sort_unstable();
            for (flow, places) in &mut seen.flows {
                let by = amounts.flows.get(flow).map_or(0, |&(bytes, _)| bytes / places.unit * places.unit);
                (places.from, places.until) = (places.from.wrapping_add(by), places.until.wrapping_add(by));
            }
            for (of, turn) in &mut seen.turns {
                *turn = turn.wrapping_add(amounts.turns.get(of).copied().unwrap_or(0));
            }
            let add =
                |to: &mut [u64], by: &[u64]| to.iter_mut().zip(by).for_each(|(to, by)| *to = to.wrapping_add(*by));
            add(&mut seen.counts, &amounts.counts);
            add(&mut seen.totals, &amounts.totals);
            add(&mut seen.counts_of, &amounts.counts_of);
        }
    }
}

impl Seen {
    fn of(notes: &Notes) -> Seen {
        let counts_of = notes.counts_of.iter().map(|of| of.1).collect();
        let (counts, totals) = (notes.counts.clone(), notes.totals.clone());
        Seen {
            at: notes.now,
            ahead: notes.ahead(),
            next_step: notes.next_step,
            flows: notes.places(),
            turns: notes.turns(),
            counts,
            totals,
            counts_of,
        }
    }

    /// Whether the same flows were there.
    fn is_like(&self, other: &Seen) -> bool {
        self.counts.len() == other.counts.len()
            && self.counts_of.len() == other.counts_of.len()
            && self.flows.keys().eq(other.flows.keys())
    }
}

impl Steady {
    fn of(seen: &[Seen]) -> Result<Steady, Unsteady> {
        let [first, .., last] = seen else { return Err(Unsteady::Slow) };
        if last.flows.is_empty() || last.next_step > THETA {
            return Err(Unsteady::Unsteady);
        }
        let observed = last.at - first.at;
        let mut flows = BTreeMap::new();
        let mut trusted = Duration::MAX;
        for (flow, &Places { from, until, unit }) in &last.flows {
            let of_flow: Vec<(Time, Places)> = seen.iter().map(|seen| (seen.at, seen.flows[flow])).collect();
            let was = of_flow[0].1;
            let (come, quantum) = (from.saturating_sub(was.from), 2.0 * unit as f64);
            if of_flow.windows(2).any(|pair| pair[1].1.from.saturating_sub(pair[0].1.from) < LEAST_PACKETS * unit) {
                return Err(Unsteady::Slow);
            }
            let under_way = (until - from).abs_diff(was.until - was.from);
            let rates = Rates::new(&of_flow);
            if !rates.are_alike() || !rates.last_is_typical() || under_way as f64 > THETA * come as f64 + quantum {
                return Err(Unsteady::Unsteady);
            }
            trusted = trusted.min(Duration::from_ps((observed.ps() as f64 * rates.times_trusted()) as u64));
            flows.insert(*flow, (come, unit, until));
        }
        let turns = last.turns.iter().map(|(of, to)| {
            let from = first.turns.get(of).unwrap_or(to);
            (*of, to.wrapping_sub(*from))
        });
        let less =
            |one: &[u64], other: &[u64]| one.iter().zip(other).map(|(to, from)| to.wrapping_sub(*from)).collect();
        Ok(Steady {
            observed,
            appointments: appointments(seen).map(Time::ps).collect(),
            flows,
            turns: turns.collect(),
            counts: less(&last.counts, &first.counts),
            totals: less(&last.totals, &first.totals),
            counts_of: less(&last.counts_of, &first.counts_of),
            trusted,
            moved: Duration::ZERO,
        })
    }

    /// For how long the flows were observed.
    pub fn observed(&self) -> Duration {
        self.observed
    }

    /// For how long the observation is trusted.
    pub fn trusted(&self) -> Duration {
        self.trusted
    }

    /// Until when the state may be moved ahead at most: nobody has seen what comes of what is due then.
    /// [`Time::MAX`] if there is no such appointment.
    pub fn until(&self) -> Time {
        self.appointments.first().map_or(Time::MAX, |&at| Time::from_ps(at))
    }

    /// For how long the state may be moved ahead before a flow nears its end: until `left` bytes of it are left, where
    /// `bytes` says how many it has, and then less by `step`.
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
        let in_units = |bytes: u64, unit: u64| (bytes, if unit > 1 { bytes / unit } else { 0 });
        self.moved += time;
        Arc::new(Amounts {
            time,
            appointments: self.appointments.clone(),
            until: self.until(),
            flows: self.flows.iter().map(|(&flow, &(by, unit, _))| (flow, in_units(more(by, unit), unit))).collect(),
            turns: self.turns.iter().map(|(&of, &by)| (of, more(by, TURNS))).collect(),
            counts: self.counts.iter().map(|&by| more(by, 1)).collect(),
            totals: self.totals.iter().map(|&by| more(by, 1)).collect(),
            counts_of: self.counts_of.iter().map(|&by| more(by, 1)).collect(),
        })
    }
}

/// What lies ahead at the last observation and did before, if it was made further ahead than the observation is long:
/// nobody has seen what comes of it.
fn appointments(seen: &[Seen]) -> impl Iterator<Item = Time> {
    let (before, last) = (&seen[..seen.len() - 1], &seen[seen.len() - 1]);
    let observed = last.at - seen[0].at;
    let made = |at: Time| before.iter().find(|seen| seen.ahead.binary_search(&at).is_ok());
    last.ahead.iter().copied().filter(move |&at| made(at).is_some_and(|made| at - made.at > observed))
}

/// How fast a flow was from each observation to the next.
struct Rates {
    /// Bytes a picosecond.
    of: Vec<f64>,
    mean: f64,
    /// What a packet at each end of a step may account for, on average.
    packets: f64,
}

impl Rates {
    fn new(of_flow: &[(Time, Places)]) -> Rates {
        let time = |one: Time, other: Time| (other - one).ps() as f64;
        let come = |one: Places, other: Places| other.from.saturating_sub(one.from) as f64;
        let of: Vec<f64> =
            of_flow.windows(2).map(|pair| come(pair[0].1, pair[1].1) / time(pair[0].0, pair[1].0)).collect();
        let (begin, end) = (of_flow[0], of_flow[of_flow.len() - 1]);
        let whole = time(begin.0, end.0);
        let packets = 2.0 * end.1.unit as f64 * of.len() as f64 / whole;
        Rates { of, mean: come(begin.1, end.1) / whole, packets }
    }

    /// Whether they differ by no more than the share [`THETA`], and a packet at each end.
    fn are_alike(&self) -> bool {
        let (least, most) = self.of.iter().fold((f64::MAX, 0.0), |(least, most), &of| (of.min(least), of.max(most)));
        most - least <= THETA * self.mean + self.packets
    }

    /// Whether the last one is within the share [`DRIFT`] of the mean, and a packet at each end. If it is not, what was
    /// steady has just begun to move.
    fn last_is_typical(&self) -> bool {
        self.of.last().is_none_or(|last| (last - self.mean).abs() <= DRIFT * self.mean + self.packets)
    }

    /// For how many times as long as they were observed rates will not have moved by the share [`DRIFT`], if they go on
    /// to move as they did from the first half of the observation to the second. What they differ by within the halves
    /// is no movement. Less than a packet in each half can't be seen, so that they may always have moved by that.
    fn times_trusted(&self) -> f64 {
        let (first, second) = self.of.split_at(self.of.len() / 2);
        let mean = |of: &[f64]| of.iter().sum::<f64>() / of.len() as f64;
        let scatter = |of: &[f64]| of.iter().map(|rate| (rate - mean(of)).powi(2)).sum::<f64>();
        let moved = (mean(second) - mean(first)).abs();
        let (half, freedom) = (self.of.len() as f64 / 2.0, (self.of.len() - 2) as f64);
        // Twice the standard error of the difference of two means.
        let chance = 2.0 * ((scatter(first) + scatter(second)) / freedom * 2.0 / half).sqrt();
        let unseen = self.packets / half / 2.0;
        let moves = if moved > chance + unseen { moved } else { unseen };
        DRIFT * self.mean / moves / 2.0
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

impl Places {
    fn with(self, other: Places) -> Places {
        let Places { from, until, unit } = other;
        Places { from: self.from.min(from), until: self.until.max(until), unit: self.unit.max(unit) }
    }
}

impl Notes {
    /// When they were made.
    pub fn now(&self) -> Time {
        self.now
    }

    /// The first time that is set from outside; [`Time::MAX`] for none.
    pub fn appointment(&self) -> Time {
        let times = self.moving.iter().filter(|of| matches!(of.0, Kind::Outside | Kind::RankActs));
        times.map(|of| Time::from_ps(of.1)).min().unwrap_or(Time::MAX)
    }

    /// The times that lie ahead, in order, but for those at which something happens next to a node: these follow from
    /// the others.
    fn ahead(&self) -> Vec<Time> {
        let parts = (0..self.parts.len()).filter(|&at| self.parts[at].part != "agenda");
        let moving = parts.flat_map(|at| &self.moving[self.moving_of(at)]);
        let times = moving.filter(|&&(kind, at)| kind == Kind::Time && at > self.now.ps());
        let mut times: Vec<_> = times.map(|of| Time::from_ps(of.1)).collect();
        times.sort_unstable();
        times.dedup();
        times
    }

    /// The positions of each flow.
    fn places(&self) -> BTreeMap<FlowId, Places> {
        let mut places = BTreeMap::new();
        // Positions of one flow mostly stand together.
        let mut last: Option<(FlowId, Places)> = None;
        let mut put = |(flow, of): (FlowId, Places)| {
            places.entry(flow).and_modify(|all: &mut Places| *all = all.with(of)).or_insert(of);
        };
        for &(kind, value) in &self.moving {
            let Kind::Sequence(flow, unit) = kind else { continue };
            let at = value.wrapping_mul(unit);
            let here = Places { from: at, until: at, unit };
            last = match last {
                Some((of, places)) if of == flow => Some((of, places.with(here))),
                Some(other) => {
                    put(other);
                    Some((flow, here))
                }
                None => Some((flow, here)),
            };
        }
        last.into_iter().for_each(put);
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
