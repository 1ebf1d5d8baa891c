//! Whether a state has recurred.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use units::{Duration, FlowId, Time};

use super::{Begins, Kind, Notes};

/// By how much each value moves in a period.
#[derive(Debug)]
pub struct Moves {
    pub(super) moving: Vec<u64>,
    pub(super) counts: Vec<u64>,
    pub(super) counts_of: Vec<u64>,
    pub(super) totals: Vec<u64>,
    pub(super) tallies: Vec<u64>,
    /// How often each random stream is drawn from in vain.
    pub(super) draws: Vec<u64>,
}

/// A state that is what it was a period ago.
#[derive(Debug)]
pub struct Recurrence {
    /// The period.
    pub period: Duration,
    /// What moves, and by how much.
    pub moves: Arc<Moves>,
    /// So many periods repeat, by numbers that come to a limit ([`Walk::below`](super::Walk::below)).
    pub most: u64,
    /// The first appointment: nothing at this time or later repeats.
    pub until: Time,
    /// The flows that have come further: by how many bytes in a period, and the last byte that anything names.
    pub flows: Vec<(FlowId, u64, u64)>,
    /// Whether flows have begun or ended in the period, as messages of a job do: then flows stand where others stood.
    pub turnover: bool,
    /// By flow that stood somewhere at the beginning of the period: the one that stands there at its end.
    pub renaming: BTreeMap<FlowId, FlowId>,
    /// Whether something goes by the order of flows' numbers.
    pub by_number: bool,
}

/// Why a state is not what it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Differs {
    /// The part of the state.
    pub part: &'static str,
    /// The node.
    pub node: u32,
    /// The kind of value, such as a queue's length.
    pub what: &'static str,
}

impl fmt::Display for Differs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Differs { part, node, what } = self;
        write!(f, "{part} {node}: {what} differs")
    }
}

/// Whether a state is what it was at an earlier time, and what moves.
///
/// # Errors
/// The first thing that is not what it was, by kind of node and by its number: it is the same however the network is
/// divided among threads.
pub fn recurrence(before: &Notes, after: &Notes) -> Result<Recurrence, Differs> {
    let sizes = |of: &Notes| (of.counts.len(), of.counts_of.len(), of.streams.len());
    if !before.has_parts_of(after) || sizes(before) != sizes(after) {
        return Err(Differs { part: "nothing", node: 0, what: "the number of values" });
    }
    let mut order: Vec<usize> = (0..after.parts.len()).collect();
    order.sort_by_key(|&at| after.parts[at].rank());
    let other = order.iter().find(|&&at| before.same[before.same_of(at)] != after.same[after.same_of(at)]);
    if let Some(&at) = other {
        return Err(after.parts[at].differs("a value"));
    }
    let draws = draws(before, after)?;
    let mut compared = Compared { period: after.now - before.now, now: after.now, ..Compared::default() };
    let mut moving = vec![0; after.moving.len()];
    for part in order {
        let (was, is) = (before.moving_of(part), after.moving_of(part));
        if was.len() != is.len() {
            return Err(after.parts[part].differs("the number of times and positions"));
        }
        for (was, is) in was.zip(is) {
            let by = compared.moves_by(before.moving[was], after.moving[is]);
            moving[is] = by.map_err(|what| after.parts[part].differs(what))?;
        }
    }
    let differs = |what| Differs { part: "host", node: 0, what };
    let counts_of = compared.count_of(&before.counts_of, &after.counts_of);
    let counts_of = counts_of.ok_or_else(|| differs("what was counted of a flow"))?;
    let Compared { period, most, until, outside_until, flows, renaming, told, .. } = compared;
    let by_number = before.by_number || after.by_number;
    if by_number && !renaming.values().is_sorted() {
        return Err(differs("the order of flows' numbers"));
    }
    let turnover = told || renaming.iter().any(|(one, other)| one != other);
    if turnover && let Some((_, differs)) = &after.numbered {
        return Err(differs.clone());
    }
    let less =
        |one: &[u64], other: &[u64]| one.iter().zip(other).map(|(one, other)| other.wrapping_sub(*one)).collect();
    let (counts, totals) = (less(&before.counts, &after.counts), less(&before.totals, &after.totals));
    let flows = flows.into_iter().filter(|of| of.1.0 > 0).map(|(flow, (bytes, last))| (flow, bytes, last)).collect();
    // If flows turn over, whoever repeats the period asks the ranks when they act, so their times are no limit.
    let until = if turnover { until } else { until.min(outside_until) };
    let moves = Arc::new(Moves { moving, counts, totals, counts_of, tallies: tallies(before, after), draws });
    Ok(Recurrence { period, moves, most, until, flows, turnover, renaming, by_number })
}

/// Where a kind of part stands among the others. What is next at a node comes last, since it follows from others.
pub(super) fn rank(part: &str) -> usize {
    let all = ["link", "switch", "host", "totals"];
    all.iter().position(|&known| known == part).unwrap_or(all.len())
}

impl Begins {
    /// Where it stands among the others.
    pub(super) fn rank(&self) -> (usize, u32) {
        (rank(self.part), self.node)
    }

    pub(super) fn differs(&self, what: &'static str) -> Differs {
        Differs { part: self.part, node: self.node, what }
    }
}

/// By how much counters have moved that may be new.
fn tallies(before: &Notes, after: &Notes) -> Vec<u64> {
    let known: BTreeMap<_, _> = before.tallies.iter().copied().collect();
    after.tallies.iter().map(|(name, count)| count - known.get(name).copied().unwrap_or(0)).collect()
}

/// How often random streams were drawn from, if nothing depended on what came out.
fn draws(before: &Notes, after: &Notes) -> Result<Vec<u64>, Differs> {
    let of = before.streams.iter().zip(&after.streams).map(|((_, was), (part, is))| {
        let differs = || &after.parts[*part];
        is.idle_draws_since(was).ok_or_else(differs)
    });
    let draws: Vec<_> = of.collect();
    let first = draws.iter().filter_map(|of| of.as_ref().err()).min_by_key(|of| of.rank());
    first.map_or(Ok(()), |of| Err(of.differs("a random stream")))?;
    Ok(draws.into_iter().flatten().collect())
}

/// What has been found so far.
struct Compared {
    period: Duration,
    now: Time,
    most: u64,
    until: Time,
    /// The first time at which ranks act by themselves.
    outside_until: Time,
    /// By flow that is where it was: by how many bytes it has come further, and the last byte that anything names.
    flows: BTreeMap<FlowId, (u64, u64)>,
    /// The same in packets, where somebody counts them.
    steps: BTreeMap<FlowId, u64>,
    /// The same in other measures, by name.
    measured: BTreeMap<(FlowId, &'static str), u64>,
    renaming: BTreeMap<FlowId, FlowId>,
    /// The flows that are heirs.
    inherit: BTreeSet<FlowId>,
    turns: BTreeMap<(u32, &'static str), u64>,
    /// Whether a value differs that only changes when flows begin or end.
    told: bool,
}

impl Default for Compared {
    fn default() -> Compared {
        Compared {
            period: Duration::ZERO,
            now: Time::ZERO,
            most: u64::MAX,
            until: Time::MAX,
            outside_until: Time::MAX,
            flows: BTreeMap::new(),
            steps: BTreeMap::new(),
            measured: BTreeMap::new(),
            renaming: BTreeMap::new(),
            inherit: BTreeSet::new(),
            turns: BTreeMap::new(),
            told: false,
        }
    }
}

impl Compared {
    /// By how much a value moves, or what of it is not as it was.
    fn moves_by(&mut self, one: (Kind, u64), other: (Kind, u64)) -> Result<u64, &'static str> {
        let ((kind, was), (other_kind, is)) = (one, other);
        let by = is.wrapping_sub(was);
        match (kind, other_kind) {
            (Kind::Sequence(flow, unit), Kind::Sequence(heir, same_unit)) if unit == same_unit => {
                self.inherits(flow, heir)?;
                if flow == heir {
                    return self.comes_further(flow, by.wrapping_mul(unit), is.wrapping_mul(unit)).map(|()| by);
                }
                if by == 0 { Ok(0) } else { Err("how far a flow has come") }
            }
            (Kind::Steps(flow), Kind::Steps(heir)) => {
                self.inherits(flow, heir)?;
                let known = if flow == heir { *self.steps.entry(flow).or_insert(by) } else { 0 };
                if by == known { Ok(by) } else { Err("how many packets a flow has come further") }
            }
            (Kind::Measured(flow, name), Kind::Measured(heir, same_name)) if name == same_name => {
                self.inherits(flow, heir)?;
                let known = if flow == heir { *self.measured.entry((flow, name)).or_insert(by) } else { 0 };
                if by == known { Ok(by) } else { Err(name) }
            }
            (Kind::Inherited(flow), Kind::Inherited(heir)) => {
                self.inherits(flow, heir)?;
                if flow == heir || by == 0 { Ok(0) } else { Err("what a flow has from before") }
            }
            (Kind::Unused(_, used), Kind::Unused(_, again)) if by == 0 || used == again => Ok(by),
            (Kind::Unused(what, _), Kind::Unused(..)) => Err(what),
            (Kind::Unused(..), _) => Err("the kind of a value"),
            (Kind::Below(limit), Kind::Below(same)) if limit == same && is >= was && is < limit => {
                // After so many periods it is still below.
                self.most = self.most.min((limit - 1 - is).checked_div(by).unwrap_or(u64::MAX));
                Ok(by)
            }
            (Kind::Below(_), Kind::Below(_)) => Err("a number that has a limit"),
            _ if kind != other_kind => Err("the kind of a value"),
            (Kind::Same(_), _) if by == 0 => Ok(0),
            (Kind::Same(what), _) => Err(what),
            (Kind::Flow, _) => self.inherits(FlowId(was as u32), FlowId(is as u32)).map(|()| 0),
            (Kind::Told, _) => {
                self.told |= by != 0;
                Ok(0)
            }
            (Kind::RankActs, _) => {
                match by {
                    0 => self.outside_until = self.outside_until.min(Time::from_ps(is)),
                    _ => self.told = true,
                }
                Ok(0)
            }
            (Kind::Time | Kind::Wakes | Kind::Past, _) if by == self.period.ps() => Ok(by),
            (Kind::Past, _) if by == 0 => Ok(0),
            (Kind::Time | Kind::Wakes | Kind::Outside, _) if by == 0 && is < self.now.ps() => {
                Err("an appointment that was not kept")
            }
            (Kind::Time | Kind::Wakes | Kind::Outside, _) if by == 0 => {
                self.until = self.until.min(Time::from_ps(is));
                Ok(0)
            }
            (Kind::Outside, _) => Err("what is to happen from outside"),
            (Kind::Lead, _) if is >= was => Ok(0),
            (Kind::Lead, _) => Err("an order that will change"),
            (Kind::Turn(node, name), _) if *self.turns.entry((node, name)).or_insert(by) == by => Ok(by),
            (Kind::Turn(_, name), _) => Err(name),
            (Kind::Time | Kind::Wakes | Kind::Past, _) => Err("a time"),
            _ => Err("the kind of a value"),
        }
    }

    /// By how much counters of flows move: not at all where another flow stands in one's place.
    fn count_of(&mut self, before: &[(FlowId, u64)], after: &[(FlowId, u64)]) -> Option<Vec<u64>> {
        let by = |(&(flow, was), &(heir, is)): (&(FlowId, u64), &(FlowId, u64))| {
            self.inherits(flow, heir).ok()?;
            (flow == heir || was == is).then(|| is.wrapping_sub(was))
        };
        if before.len() == after.len() { before.iter().zip(after).map(by).collect() } else { None }
    }

    /// Notes that `heir` stands where `flow` stood; both may be the same flow. The error: one of them is paired with
    /// another.
    fn inherits(&mut self, flow: FlowId, heir: FlowId) -> Result<(), &'static str> {
        match self.renaming.get(&flow) {
            Some(&known) if known == heir => Ok(()),
            None if self.inherit.insert(heir) => {
                self.renaming.insert(flow, heir);
                Ok(())
            }
            _ => Err("which flow it is"),
        }
    }

    fn comes_further(&mut self, flow: FlowId, bytes: u64, end: u64) -> Result<(), &'static str> {
        let (first, last) = self.flows.entry(flow).or_insert((bytes, end));
        if *first != bytes || bytes > u64::MAX / 2 {
            return Err("how far a flow has come");
        }
        *last = end.max(*last);
        Ok(())
    }
}
