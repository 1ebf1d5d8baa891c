//! Whether a state has recurred.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use units::{Duration, FlowId, Stream, Time};

use super::{Kind, Notes};

/// By how much each value moves in a period.
#[derive(Debug)]
pub struct Moves {
    pub(super) moving: Vec<u64>,
    pub(super) counts: Vec<u64>,
    pub(super) counts_of: Vec<u64>,
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
    /// The first appointment: nothing at this time or later repeats.
    pub until: Time,
    /// The flows that have come further: by how many bytes in a period, and the last byte that anything names.
    pub flows: Vec<(FlowId, u64, u64)>,
    /// Whether flows have begun or ended in the period, as messages of a job do: then flows stand where others stood.
    pub turnover: bool,
    /// By flow that stood somewhere at the beginning of the period: the one that stands there at its end.
    pub heirs: BTreeMap<FlowId, FlowId>,
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
    /// What kind of value.
    pub what: &'static str,
}

impl fmt::Display for Differs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {} differs", self.part, self.node, self.what)
    }
}

/// Whether a state is what it was at an earlier time, and what moves.
///
/// # Errors
/// The first thing that is not what it was.
pub fn recurrence(before: &Notes, after: &Notes) -> Result<Recurrence, Differs> {
    let other = before.same.iter().zip(&after.same).position(|(one, other)| one != other);
    if let Some(at) = other {
        return Err(after.differs(Some(at), None, "a value"));
    }
    if before.same.len() != after.same.len() || before.counts.len() != after.counts.len() {
        return Err(after.differs(None, None, "the number of values"));
    }
    if before.moving.len() != after.moving.len() {
        return Err(after.differs(None, None, "the number of times and positions"));
    }
    let draws = draws(before, after)?;
    let mut compared = Compared { period: after.now - before.now, now: after.now, ..Compared::default() };
    let mut moves = Vec::with_capacity(after.moving.len());
    for (at, (&one, &other)) in before.moving.iter().zip(&after.moving).enumerate() {
        match compared.moves_by(one, other) {
            Ok(by) => moves.push(by),
            Err(what) => return Err(after.differs(None, Some(at), what)),
        }
    }
    let counts_of = compared.count_of(&before.counts_of, &after.counts_of);
    let counts_of = counts_of.ok_or_else(|| after.differs(None, None, "what was counted of a flow"))?;
    let Compared { period, until, outside_until, flows, heirs, told, .. } = compared;
    let by_number = before.by_number || after.by_number;
    if by_number && !heirs.values().is_sorted() {
        return Err(after.differs(None, None, "the order of flows' numbers"));
    }
    let turnover = told || heirs.iter().any(|(one, other)| one != other);
    if turnover && let Some(differs) = &after.numbered {
        return Err(differs.clone());
    }
    let counts = before.counts.iter().zip(&after.counts).map(|(one, other)| other.wrapping_sub(*one)).collect();
    let flows = flows.into_iter().filter(|of| of.1.0 > 0).map(|(flow, (bytes, last))| (flow, bytes, last)).collect();
    // If flows turn over, whoever repeats the period asks the ranks when they act, so their times are no limit.
    let until = if turnover { until } else { until.min(outside_until) };
    let moves = Arc::new(Moves { moving: moves, counts, counts_of, tallies: tallies(before, after), draws });
    Ok(Recurrence { period, moves, until, flows, turnover, heirs, by_number })
}

/// By how much counters have moved that may be new.
fn tallies(before: &Notes, after: &Notes) -> Vec<u64> {
    let known: BTreeMap<_, _> = before.tallies.iter().copied().collect();
    after.tallies.iter().map(|(name, count)| count - known.get(name).copied().unwrap_or(0)).collect()
}

/// How often random streams were drawn from, if nothing depended on what came out.
fn draws(before: &Notes, after: &Notes) -> Result<Vec<u64>, Differs> {
    let draws = |((_, one), (part, other)): (&(usize, Stream), &(usize, Stream))| {
        let times = other.idle_draws().wrapping_sub(one.idle_draws());
        let mut copy = one.clone();
        // If it was drawn from otherwise, too, it is now elsewhere.
        (0..times).for_each(|_| copy.draw_idly());
        let (name, node, ..) = after.parts.get(*part).copied().unwrap_or(("nothing", 0, 0, 0));
        if copy == *other { Ok(times) } else { Err(Differs { part: name, node, what: "a random stream" }) }
    };
    if before.streams.len() != after.streams.len() {
        return Err(after.differs(None, None, "the number of random streams"));
    }
    before.streams.iter().zip(&after.streams).map(draws).collect()
}

/// What has been found so far.
struct Compared {
    period: Duration,
    now: Time,
    until: Time,
    /// The first time at which ranks act by themselves.
    outside_until: Time,
    /// By flow that is where it was: by how many bytes it has come further, and the last byte that anything names.
    flows: BTreeMap<FlowId, (u64, u64)>,
    /// The same in packets, where somebody counts them.
    steps: BTreeMap<FlowId, u64>,
    heirs: BTreeMap<FlowId, FlowId>,
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
            until: Time::MAX,
            outside_until: Time::MAX,
            flows: BTreeMap::new(),
            steps: BTreeMap::new(),
            heirs: BTreeMap::new(),
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
            (Kind::Inherited(flow), Kind::Inherited(heir)) => {
                self.inherits(flow, heir)?;
                if flow == heir || by == 0 { Ok(0) } else { Err("what a flow has from before") }
            }
            (Kind::Unused(used), Kind::Unused(again)) if by == 0 || used == again => Ok(by),
            (Kind::Unused(_), Kind::Unused(_)) => Err("a value that is used"),
            (Kind::Unused(_), _) => Err("the kind of a value"),
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
            (Kind::Time | Kind::Past, _) if by == self.period.ps() => Ok(by),
            (Kind::Past, _) if by == 0 => Ok(0),
            (Kind::Time | Kind::Outside, _) if by == 0 && is < self.now.ps() => Err("an appointment that was not kept"),
            (Kind::Time | Kind::Outside, _) if by == 0 => {
                self.until = self.until.min(Time::from_ps(is));
                Ok(0)
            }
            (Kind::Outside, _) => Err("what is to happen from outside"),
            (Kind::Lead, _) if is >= was => Ok(0),
            (Kind::Lead, _) => Err("an order that will change"),
            (Kind::Turn(node, name), _) if *self.turns.entry((node, name)).or_insert(by) == by => Ok(by),
            (Kind::Turn(_, name), _) => Err(name),
            (Kind::Time | Kind::Past | Kind::Sequence(..) | Kind::Steps(_) | Kind::Inherited(_), _) => Err("a time"),
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
        match self.heirs.get(&flow) {
            Some(&known) if known == heir => Ok(()),
            None if self.inherit.insert(heir) => {
                self.heirs.insert(flow, heir);
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
