//! The state of a run, gone over value by value: whether it has recurred, and how to move it ahead in time.
//!
//! Steady traffic repeats. When the complete state of a network is what it was a period ago, but for the time and for
//! how far each flow has come, then everything that follows repeats too, until something from outside happens: a flow
//! starts or ends, a link fails, a sample is taken. A driver that sees this may skip whole periods.
//!
//! Every piece of state has a `walk`, which names each of its values by what becomes of it in a period:
//!
//! - [`Walk::same`]: it must be what it was.
//! - [`Walk::time`]: it moves with the clock. If it stands still instead, it is an appointment, before which the
//!   skipping must end.
//! - [`Walk::expired`]: a time that matters only while it lies ahead.
//! - [`Walk::past`]: a time that was noted, and that nothing compares with a limit.
//! - [`Walk::outside`]: a time that is set from outside, and never moves.
//! - [`Walk::sequence`]: how far a flow has come. All positions of a flow must move by the same number of bytes.
//! - [`Walk::passed`]: a position that matters only until the flow has come past it.
//! - [`Walk::turn`]: a number whose distance from others of its name alone matters.
//! - [`Walk::count`]: a counter for the results, which nothing depends on.
//!
//! The same walk first notes the values ([`Walk::note`]), twice, a period apart. [`recurrence`] compares the two notes.
//! Then the walk moves the state ahead ([`Walk::ahead`]): each value that has moved in a period moves so often again.
//!
//! A state that does not recur, though its flows are steady, can be moved ahead approximately: times by the time, and
//! positions by what flows do on average ([`Steady`]).
//!
//! A scheme that leaves out a value on which its behaviour depends makes skipping wrong. Whoever has no walk of his own
//! refuses ([`Walk::refuse`]), and such a run is simulated packet by packet.

use std::collections::BTreeMap;
use std::sync::Arc;

use units::{Duration, FlowId, HostId, PortId, Rate, Stream, Time};

use crate::{Header, Packet};

/// Goes over the state of a network: see the [module](self).
pub struct Walk {
    now: Time,
    task: Task,
    /// By transport: how its headers are gone over.
    headers: Arc<[HeaderWalk]>,
    /// The node that is gone over now: turns of one name at different nodes have nothing to do with each other.
    node: u32,
    refusal: Option<String>,
}

/// How the headers of a transport's packets are gone over.
pub type HeaderWalk = fn(&mut Packet, &mut Walk);

enum Task {
    Note(Notes),
    Ahead { moves: Arc<Moves>, times: u64, place: usize, count: usize },
    Shift { amounts: Arc<Amounts>, count: usize },
}

/// The values of a state.
#[derive(Debug)]
pub struct Notes {
    now: Time,
    /// Parts of the state, by the first of their places among `same` and `moving`: for who asks what has changed.
    parts: Vec<(&'static str, u32, usize, usize)>,
    same: Vec<u64>,
    moving: Vec<(Kind, u64)>,
    counts: Vec<u64>,
}

/// What becomes of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Time,
    Past,
    Outside,
    /// A position in a flow, in units of so many bytes.
    Sequence(FlowId, u64),
    Turn(u32, &'static str),
}

/// By how much each value moves in a period.
#[derive(Debug)]
pub struct Moves {
    moving: Vec<u64>,
    counts: Vec<u64>,
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

impl Walk {
    /// A walk that notes every value at the time `now`. `headers` has one entry for each transport.
    pub fn note(now: Time, headers: Arc<[HeaderWalk]>) -> Walk {
        let notes = Notes { now, parts: Vec::new(), same: Vec::new(), moving: Vec::new(), counts: Vec::new() };
        Walk { now, task: Task::Note(notes), headers, node: 0, refusal: None }
    }

    /// A walk that moves a state ahead by so many periods. The state must be the one whose notes were compared last,
    /// at the time `now`.
    pub fn ahead(now: Time, headers: Arc<[HeaderWalk]>, moves: Arc<Moves>, times: u64) -> Walk {
        Walk { now, task: Task::Ahead { moves, times, place: 0, count: 0 }, headers, node: 0, refusal: None }
    }

    /// A walk that moves a state ahead though it has not recurred, at the time `now`: see [`Steady`].
    pub fn shift(now: Time, headers: Arc<[HeaderWalk]>, amounts: Arc<Amounts>) -> Walk {
        Walk { now, task: Task::Shift { amounts, count: 0 }, headers, node: 0, refusal: None }
    }

    /// The notes, or why somebody has refused.
    ///
    /// # Errors
    /// What was refused, in words.
    pub fn finish(self) -> Result<Option<Notes>, String> {
        match (self.refusal, self.task) {
            (Some(why), _) => Err(why),
            (None, Task::Note(notes)) => Ok(Some(notes)),
            (None, Task::Ahead { moves, place, count, .. }) => {
                assert!(
                    place == moves.moving.len() && count == moves.counts.len(),
                    "a state was moved that is not the one whose notes were taken"
                );
                Ok(None)
            }
            (None, Task::Shift { amounts, count }) => {
                assert!(count == amounts.counts.len(), "a state was moved that is not the one whose notes were taken");
                Ok(None)
            }
        }
    }

    /// The time at which the walk takes place. All that was due before has happened.
    pub fn now(&self) -> Time {
        self.now
    }

    /// A part of the state of a node begins.
    pub fn part(&mut self, name: &'static str, node: u32) {
        self.node = node;
        if let Task::Note(notes) = &mut self.task {
            notes.parts.push((name, node, notes.same.len(), notes.moving.len()));
        }
    }

    /// The state can't be moved: why.
    pub fn refuse(&mut self, why: impl Into<String>) {
        self.refusal.get_or_insert_with(|| why.into());
    }

    /// Refuses if something is there.
    pub fn refuse_if(&mut self, there: bool, why: &'static str) {
        if there {
            self.refuse(why);
        }
    }

    /// A value that must be what it was a period ago.
    #[inline]
    pub fn same(&mut self, value: impl Plain) {
        if let Task::Note(notes) = &mut self.task {
            value.write(&mut notes.same);
        }
    }

    /// A time that moves with the clock; [`Time::MAX`] for none. If it stands still instead, nothing at that time or
    /// later repeats.
    #[inline]
    pub fn time(&mut self, time: &mut Time) {
        if *time == Time::MAX {
            self.same(false);
        } else {
            self.same(true);
            self.moment(Kind::Time, time);
        }
    }

    /// The same where there may be none.
    #[inline]
    pub fn time_if_any(&mut self, time: &mut Option<Time>) {
        self.same(time.is_some());
        if let Some(time) = time {
            self.time(time);
        }
    }

    /// A time up to which something holds: once it has passed, it is no longer of interest how long ago that was.
    #[inline]
    pub fn expired(&mut self, time: &mut Time) {
        if *time <= self.now {
            self.same(false);
        } else {
            self.time(time);
        }
    }

    /// A time that was noted: it moves with the clock or stays.
    #[inline]
    pub fn past(&mut self, time: &mut Time) {
        self.moment(Kind::Past, time);
    }

    /// A time that is set from outside, such as that of a flow's start; [`Time::MAX`] for none.
    #[inline]
    pub fn outside(&mut self, time: Time) {
        let mut stays = time;
        self.same(time != Time::MAX);
        if time != Time::MAX {
            self.moment(Kind::Outside, &mut stays);
        }
        debug_assert_eq!(stays, time);
    }

    /// How far a flow has come, in units of so many bytes.
    #[inline]
    pub fn sequence(&mut self, flow: FlowId, unit_bytes: u64, place: &mut u64) {
        self.moving(Kind::Sequence(flow, unit_bytes), place);
    }

    /// A position in a flow that matters only until the flow has come past it, in the same units: `by` is how far it
    /// has come.
    #[inline]
    pub fn passed(&mut self, flow: FlowId, unit_bytes: u64, place: &mut u64, by: u64) {
        let lies_ahead = *place >= by;
        self.same(lies_ahead);
        if lies_ahead {
            self.sequence(flow, unit_bytes, place);
        }
    }

    /// A number of this node that grows, of which only the distance from others of its name matters.
    #[inline]
    pub fn turn<N: Number>(&mut self, name: &'static str, turn: &mut N) {
        let mut number = turn.get();
        self.moving(Kind::Turn(self.node, name), &mut number);
        turn.set(number);
    }

    /// A counter, which nothing depends on.
    #[inline]
    pub fn count<N: Number>(&mut self, counter: &mut N) {
        self.counted(counter);
    }

    /// Several of them.
    pub fn counts<'a, N: Number + 'a>(&mut self, counters: impl IntoIterator<Item = &'a mut N>) {
        counters.into_iter().for_each(|counter| self.count(counter));
    }

    /// A counter, and by how much it has moved: a value that changes with each count, and with nothing else, is to be
    /// changed as often.
    #[inline]
    pub fn counted<N: Number>(&mut self, counter: &mut N) -> u64 {
        match &mut self.task {
            Task::Note(notes) => {
                notes.counts.push(counter.get());
                0
            }
            Task::Ahead { moves, times, count, .. } => {
                let by = moves.counts[*count].wrapping_mul(*times);
                counter.set(counter.get().wrapping_add(by));
                *count += 1;
                by
            }
            Task::Shift { amounts, count } => {
                let by = amounts.counts[*count];
                counter.set(counter.get().wrapping_add(by));
                *count += 1;
                by
            }
        }
    }

    /// A random stream: it must not have been drawn from.
    pub fn random(&mut self, stream: &Stream) {
        if let Task::Note(_) = self.task {
            let mut copy = stream.clone();
            self.same((copy.bits(), copy.bits()));
        }
    }

    /// A packet, with its header.
    pub fn packet(&mut self, packet: &mut Packet) {
        self.same((packet.flow.0, packet.src.0, packet.dst.0, packet.label));
        self.same((packet.virtual_delay_ns, packet.wire_bytes, packet.payload_bytes, packet.class));
        self.same((packet.flags, packet.transport, packet.hops));
        if packet.has(crate::packet::flags::LINK_FRAME) {
            return self.same(packet.words());
        }
        if packet.has(crate::packet::flags::TELEMETRY) {
            self.refuse("packets gather telemetry, which has counters of switches in it");
        }
        let walk = self.headers[usize::from(packet.transport)];
        walk(packet, self);
    }

    fn moment(&mut self, kind: Kind, time: &mut Time) {
        let mut ps = time.ps();
        self.moving(kind, &mut ps);
        *time = Time::from_ps(ps);
    }

    #[inline]
    fn moving(&mut self, kind: Kind, value: &mut u64) {
        match &mut self.task {
            Task::Note(notes) => notes.moving.push((kind, *value)),
            Task::Ahead { moves, times, place, .. } => {
                *value = value.wrapping_add(moves.moving[*place].wrapping_mul(*times));
                *place += 1;
            }
            Task::Shift { amounts, .. } => {
                let by = match kind {
                    Kind::Time | Kind::Past => amounts.time.ps(),
                    Kind::Outside => 0,
                    Kind::Sequence(flow, unit) => amounts.flows.get(&flow).map_or(0, |bytes| bytes / unit),
                    Kind::Turn(node, name) => amounts.turns.get(&(node, name)).copied().unwrap_or(0),
                };
                *value = value.wrapping_add(by);
            }
        }
    }
}

/// Goes over the header of a packet of type `H`.
pub fn walk_header<H: Header>(packet: &mut Packet, walk: &mut Walk) {
    let header = packet.header::<H>().walk(packet.flow, walk);
    packet.set_header(header);
}

impl Notes {
    /// How many values were noted.
    #[expect(clippy::len_without_is_empty, reason = "a state is never empty")]
    pub fn len(&self) -> usize {
        self.same.len() + self.moving.len() + self.counts.len()
    }

    /// The part of the state to which a place among the values that must be the same belongs, or among those that
    /// move.
    fn differs(&self, same: Option<usize>, moving: Option<usize>, what: &'static str) -> Differs {
        let begun = |&&(_, _, first_same, first_moving): &&(_, _, usize, usize)| match (same, moving) {
            (Some(at), _) => first_same <= at,
            (None, Some(at)) => first_moving <= at,
            (None, None) => true,
        };
        let (part, node, ..) = self.parts.iter().take_while(begun).last().copied().unwrap_or(("nothing", 0, 0, 0));
        Differs { part, node, what }
    }
}

/// Whether a state is what it was at an earlier time, and what moves.
///
/// # Errors
/// The first thing that is not what it was.
pub fn recurrence(before: &Notes, after: &Notes) -> Result<Recurrence, Differs> {
    let period = after.now - before.now;
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
    let mut until = Time::MAX;
    let mut flows: BTreeMap<FlowId, (u64, u64)> = BTreeMap::new();
    let mut turns: BTreeMap<(u32, &'static str), u64> = BTreeMap::new();
    let mut moves = Vec::with_capacity(after.moving.len());
    for (at, (&(kind, one), &(other_kind, other))) in before.moving.iter().zip(&after.moving).enumerate() {
        let differs = |what| Err(after.differs(None, Some(at), what));
        if kind != other_kind {
            return differs("the kind of a value");
        }
        let by = other.wrapping_sub(one);
        match kind {
            Kind::Time | Kind::Past if by == period.ps() => {}
            Kind::Past if by == 0 => {}
            Kind::Time | Kind::Outside if by == 0 => {
                if other < after.now.ps() {
                    return differs("an appointment that was not kept");
                }
                until = until.min(Time::from_ps(other));
            }
            Kind::Time | Kind::Past => return differs("a time"),
            Kind::Outside => return differs("what is to happen from outside"),
            Kind::Sequence(flow, unit) => {
                let (bytes, end) = (by.wrapping_mul(unit), other.wrapping_mul(unit));
                let (first, last) = flows.entry(flow).or_insert((bytes, end));
                if *first != bytes || bytes > u64::MAX / 2 {
                    return differs("how far a flow has come");
                }
                *last = end.max(*last);
            }
            Kind::Turn(node, name) => {
                if *turns.entry((node, name)).or_insert(by) != by {
                    return differs(name);
                }
            }
        }
        moves.push(by);
    }
    let counts = before.counts.iter().zip(&after.counts).map(|(one, other)| other.wrapping_sub(*one)).collect();
    let flows = flows.into_iter().filter(|of| of.1.0 > 0).map(|(flow, (bytes, last))| (flow, bytes, last)).collect();
    Ok(Recurrence { period, moves: Arc::new(Moves { moving: moves, counts }), until, flows })
}

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
    /// By how much the state has been moved ahead.
    moved: Duration,
    /// The first time that is set from outside.
    pub until: Time,
}

/// By how much everything is moved ahead at once.
#[derive(Debug)]
pub struct Amounts {
    time: Duration,
    flows: BTreeMap<FlowId, u64>,
    turns: BTreeMap<(u32, &'static str), u64>,
    counts: Vec<u64>,
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
        if notes.iter().any(|of| of.counts.len() != first.counts.len()) {
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
        let until = last.moving.iter().filter(|of| of.0 == Kind::Outside).map(|of| Time::from_ps(of.1)).min();
        Ok(Steady {
            observed: last.now - first.now,
            flows,
            turns: turns.collect(),
            counts,
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

/// A number that can move.
pub trait Number: Copy {
    /// As 64 bits.
    fn get(self) -> u64;
    /// From 64 bits; only the low ones count.
    fn set(&mut self, to: u64);
}

macro_rules! numbers {
    ($($kind:ty)*) => {$(
        impl Number for $kind {
            #[inline]
            fn get(self) -> u64 {
                u64::from(self)
            }

            #[inline]
            fn set(&mut self, to: u64) {
                *self = to as $kind;
            }
        }

        impl Plain for $kind {
            #[inline]
            fn write(&self, to: &mut Vec<u64>) {
                to.push(u64::from(*self));
            }
        }
    )*};
}

numbers!(u8 u16 u32 u64);

impl Number for Duration {
    #[inline]
    fn get(self) -> u64 {
        self.ps()
    }

    #[inline]
    fn set(&mut self, to: u64) {
        *self = Duration::from_ps(to);
    }
}

/// A value that can be compared.
pub trait Plain {
    /// Appends it.
    fn write(&self, to: &mut Vec<u64>);
}

macro_rules! plain {
    ($($kind:ty: $value:ident => $number:expr,)*) => {$(
        impl Plain for $kind {
            #[inline]
            fn write(&self, to: &mut Vec<u64>) {
                let $value = *self;
                to.push($number);
            }
        }
    )*};
}

plain! {
    bool: value => u64::from(value),
    usize: value => value as u64,
    f64: value => value.to_bits(),
    Duration: value => value.ps(),
    Rate: value => value.bps(),
    FlowId: value => u64::from(value.0),
    HostId: value => u64::from(value.0),
    PortId: value => u64::from(value.0),
}

impl<T: Plain> Plain for Option<T> {
    #[inline]
    fn write(&self, to: &mut Vec<u64>) {
        to.push(u64::from(self.is_some()));
        if let Some(value) = self {
            value.write(to);
        }
    }
}

impl<T: Plain + ?Sized> Plain for &T {
    #[inline]
    fn write(&self, to: &mut Vec<u64>) {
        (**self).write(to);
    }
}

/// How many, then each.
impl<T: Plain> Plain for [T] {
    #[inline]
    fn write(&self, to: &mut Vec<u64>) {
        to.push(self.len() as u64);
        self.iter().for_each(|value| value.write(to));
    }
}

impl<T: Plain, const N: usize> Plain for [T; N] {
    #[inline]
    fn write(&self, to: &mut Vec<u64>) {
        self.iter().for_each(|value| value.write(to));
    }
}

macro_rules! tuples {
    ($(($($name:ident),+))*) => {$(
        impl<$($name: Plain),+> Plain for ($($name,)+) {
            #[inline]
            fn write(&self, to: &mut Vec<u64>) {
                #[allow(non_snake_case)]
                let ($($name,)+) = self;
                $($name.write(to);)+
            }
        }
    )*};
}

tuples!((A, B)(A, B, C)(A, B, C, D)(A, B, C, D, E));

#[cfg(test)]
mod tests;
