//! The state of a run, gone over value by value: whether it has recurred, and how to move it ahead in time.
//!
//! Steady traffic repeats. When the complete state of a network is what it was a period ago, but for the time and for
//! how far each flow has come, then everything that follows repeats too, until something from outside happens: a flow
//! starts or ends, a link fails, a sample is taken. A driver that sees this may skip whole periods.
//!
//! Every piece of state derives [`State`], which names each of its values by what becomes of it in a period. A type
//! says that of its values, or an attribute where a number means more:
//!
//! - [`Walk::same`], [`Walk::same_of`]: it must be what it was.
//! - [`Walk::time`]: it moves with the clock. If it stands still instead, it is an appointment, before which the
//!   skipping must end.
//! - [`Walk::wakes`]: a time at which somebody looks whether an appointment has come, at the latest when it has.
//! - [`Walk::expired`]: a time that matters only while it lies ahead.
//! - [`Walk::past`]: a time that was noted, and that nothing compares with a limit.
//! - [`Walk::outside`]: a time that is set from outside, and never moves.
//! - [`Walk::sequence`]: how far a flow has come. All positions of a flow must move by the same number of bytes.
//! - [`Walk::steps`]: the same in packets, where nobody knows how many bytes they carry.
//! - [`Walk::measured`]: the same in any other measure, of which only distances matter.
//! - [`Walk::passed`]: a position that matters only until the flow has come past it.
//! - [`Walk::below`]: a number that grows, and changes nothing before it has come to a limit.
//! - [`Walk::unused`]: a number that moves as long as nobody uses it.
//! - [`Walk::turn`], [`Walk::turn_at`]: a number whose distance from others of its name alone matters.
//! - [`Walk::flow`]: which flow it is. Another may stand in its place: see below.
//! - [`Walk::numbered`]: another must not stand in its place.
//! - [`Walk::told`], [`Walk::rank_acts`]: what follows the beginnings and ends of flows.
//! - [`Walk::next_step`]: by how much a rate is about to change.
//! - [`Walk::lead`]: by how much a value exceeds another, where their order matters.
//! - [`Walk::random`]: a random stream.
//! - [`Walk::count`], [`Walk::count_of`], [`Walk::tallied`]: a counter for the results, which nothing depends on.
//! - [`Walk::counted`], [`Walk::counted_of`]: a counter with which other values change.
//!
//! The same code first notes the values ([`Walk::note`]), twice, a period apart. [`recurrence`] compares the two notes.
//! Then the walk moves the state ahead ([`Walk::ahead`]): each value that has moved in a period moves so often again.
//!
//! **Turnover.** Where messages of a job follow each other, a state may recur though its flows are others: each stands
//! where another stood. Then flows are renamed ([`Recurrence::renaming`]) when the state is moved ahead, and what
//! begins and ends with flows is repeated by the owner of its record.
//!
//! A state that does not recur, though its flows are steady, can be moved ahead approximately: times by the time, and
//! positions by what flows do on average ([`History`]).
//!
//! No field can be left out. One without an attribute must be equal, so a position that is not called one keeps the
//! state from recurring, and never makes skipping wrong. What can't be moved refuses ([`Walk::refuse`]), and such a run
//! is simulated packet by packet.

mod notes;
mod recurrence;
mod state;
mod steady;
mod values;

use std::sync::Arc;

use rustc_hash::FxHashMap;
use units::{FlowId, HostId, Stream};

use crate::pool::Pool;
use crate::retry::RetryMessage;
use crate::{Header, Packet, Slots};

use recurrence::rank;
pub use recurrence::{Differs, Moves, Recurrence, recurrence};
pub use state::{Each, InSlots, Items, State, is_any};
pub use steady::{Amounts, History, Steady, Unsteady};
pub use units::{Duration, Time};
pub use values::{Number, Plain};

/// Goes over the state of a network: see the [module](self).
pub struct Walk {
    now: Time,
    task: Task,
    /// By transport: how its headers are gone over; and at the end, how frames of a flow control are.
    headers: Arc<[HeaderWalk]>,
    /// The node that is gone over now: turns of one name at different nodes have nothing to do with each other.
    node: u32,
    /// The same for a port of it, from 1 on; 0 for the node as a whole.
    port: u32,
    /// The source and the destination of the packet that is gone over now.
    ends: (HostId, HostId),
    /// The part of the state that is gone over now.
    part: &'static str,
    /// Why the state can't be moved ahead, by the place of the part that says so.
    refusal: Option<((usize, u32), String)>,
    /// Whether counters have got all by which sums move ([`Walk::totals`]).
    totals_given: bool,
    /// The flow whose state, or whose packet, is gone over now.
    pub flow: FlowId,
    /// The unit of its positions, in bytes.
    pub unit: u64,
    /// How far it has come, in bytes.
    pub come: u64,
    /// The slots of the flows that were gone over last.
    pub slots: Slots,
    /// The packets in the part of the network that is gone over now.
    pub pool: Pool,
}

const NO_ENDS: (HostId, HostId) = (HostId(u32::MAX), HostId(u32::MAX));

/// By flow: its new name.
pub type Renamed = FxHashMap<FlowId, FlowId>;

/// From this bit on, a port stands in the number of its node. So many nodes with several ports there are not.
const PORT: u32 = 25;

/// How the headers of a transport's packets are gone over.
pub type HeaderWalk = fn(&mut Packet, &mut Walk);

enum Task {
    Note(Box<Notes>),
    Ahead {
        moves: Arc<Moves>,
        names: Arc<Renamed>,
        times: u64,
        place: usize,
        count: usize,
        count_of: usize,
        stream: usize,
        tally: usize,
    },
    Shift {
        amounts: Arc<Amounts>,
        count: usize,
        count_of: usize,
    },
}

/// Where a part of the state begins: its first places among the values that must be the same, and among those that
/// move.
#[derive(Clone, Copy, Debug)]
struct Begins {
    part: &'static str,
    node: u32,
    same: usize,
    moving: usize,
}

/// The values of a state.
#[derive(Debug)]
pub struct Notes {
    now: Time,
    /// The parts of the state: they tell which part a value belongs to.
    parts: Vec<Begins>,
    same: Vec<u64>,
    moving: Vec<(Kind, u64)>,
    counts: Vec<u64>,
    /// Sums over all that has been gone over.
    totals: Vec<u64>,
    /// Counters of single flows.
    counts_of: Vec<(FlowId, u64)>,
    /// Counters that may be new, each by the number of parts before it and its name there.
    tallies: Vec<((usize, u64), u64)>,
    /// Why positions of flows can't be moved by averages.
    not_by_averages: Option<&'static str>,
    /// The largest share by which the next step of a control changes its rate.
    next_step: f64,
    /// Where the number of a flow makes a difference, so that no other flow can take its place.
    numbered: Option<((usize, u32), Differs)>,
    /// Random streams, each with its part of the state.
    streams: Vec<(usize, Stream)>,
    /// Whether something goes by the order of flows' numbers.
    by_number: bool,
}

/// What becomes of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A value that must be the same, by its name.
    Same(&'static str),
    /// A value that must be the same if it was used: its name, and how often it was.
    Unused(&'static str, u64),
    Time,
    Wakes,
    Past,
    Outside,
    /// A position in a flow, in units of so many bytes.
    Sequence(FlowId, u64),
    Turn(u32, &'static str),
    /// The number of a flow.
    Flow,
    /// What changes only when flows begin or end.
    Told,
    /// When a rank acts by itself.
    RankActs,
    /// A value that only another flow in a flow's place must have, too.
    Inherited(FlowId),
    /// A distance between two values whose order matters.
    Lead,
    /// A position in a flow, in packets.
    Steps(FlowId),
    /// A position in a flow in a measure of this name.
    Measured(FlowId, &'static str),
    /// A number that changes nothing as long as it is below this.
    Below(u64),
}

impl Walk {
    /// A walk that notes every value at the time `now`. `headers` has one entry for each transport, and one for frames
    /// of a flow control.
    pub fn note(now: Time, headers: Arc<[HeaderWalk]>) -> Walk {
        let (same, moving, counts) = (Vec::new(), Vec::new(), Vec::new());
        let parts = vec![Begins { part: "nothing", node: 0, same: 0, moving: 0 }];
        let (totals, counts_of, streams, by_number) = (Vec::new(), Vec::new(), Vec::new(), false);
        let (numbered, tallies, not_by_averages, next_step) = (None, Vec::new(), None, 0.0);
        let notes = Notes {
            now,
            parts,
            same,
            moving,
            counts,
            totals,
            counts_of,
            tallies,
            not_by_averages,
            next_step,
            streams,
            numbered,
            by_number,
        };
        Walk::new(now, headers, Task::Note(Box::new(notes)))
    }

    /// A walk that moves a state ahead by so many periods. The state must be the one whose notes were compared last,
    /// at the time `now`. Flows get these `names`; those that have none keep theirs.
    pub fn ahead(now: Time, headers: Arc<[HeaderWalk]>, moves: Arc<Moves>, names: Arc<Renamed>, times: u64) -> Walk {
        let task = Task::Ahead { moves, names, times, place: 0, count: 0, count_of: 0, stream: 0, tally: 0 };
        Walk::new(now, headers, task)
    }

    /// A walk that moves a state ahead though it has not recurred, at the time `now`: see [`Steady`].
    pub fn shift(now: Time, headers: Arc<[HeaderWalk]>, amounts: Arc<Amounts>) -> Walk {
        Walk::new(now, headers, Task::Shift { amounts, count: 0, count_of: 0 })
    }

    fn new(now: Time, headers: Arc<[HeaderWalk]>, task: Task) -> Walk {
        let (node, port, ends, part) = (0, 0, NO_ENDS, "");
        let (flow, slots, pool) = (FlowId(u32::MAX), Slots::default(), Pool::default());
        let (refusal, totals_given, unit, come) = (None, false, 1, 0);
        Walk { now, task, headers, node, port, ends, part, refusal, totals_given, flow, unit, come, slots, pool }
    }

    /// How many values of links and nodes have been noted: it does not depend on how the network is divided among
    /// threads.
    pub fn noted(&self) -> usize {
        if let Task::Note(notes) = &self.task { notes.of_network() } else { 0 }
    }

    /// The notes, or why somebody has refused.
    ///
    /// # Errors
    /// What was refused, in words.
    pub fn finish(self) -> Result<Option<Notes>, String> {
        match (self.refusal, self.task) {
            (Some((_, why)), _) => Err(why),
            (None, Task::Note(notes)) => Ok(Some(*notes)),
            (None, Task::Ahead { moves, place, count, count_of, stream, tally, .. }) => {
                let Moves { moving, counts, counts_of, tallies, draws, .. } = &*moves;
                let all = (moving.len(), counts.len(), counts_of.len(), draws.len(), tallies.len());
                assert!(
                    (place, count, count_of, stream, tally) == all,
                    "a state was moved that is not the one whose notes were taken"
                );
                Ok(None)
            }
            (None, Task::Shift { amounts, count, .. }) => {
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
        (self.part, self.node, self.port) = (name, node, 0);
        if let Task::Note(notes) = &mut self.task {
            let (same, moving) = (notes.same.len(), notes.moving.len());
            notes.parts.push(Begins { part: name, node, same, moving });
        }
    }

    /// What follows is of one port of the node, or of the whole node again: turns of one name at different ports have
    /// nothing to do with each other.
    pub fn port(&mut self, port: Option<u32>) {
        self.port = port.map_or(0, |port| port + 1);
    }

    /// Says why the state can't be moved ahead. The first reason counts: of what is said of the whole network, then of
    /// links, switches and hosts in the order of their numbers.
    pub fn refuse(&mut self, why: impl Into<String>) {
        let place = if self.part == "agenda" { (0, 0) } else { (1 + rank(self.part), self.node) };
        if self.refusal.as_ref().is_none_or(|known| place < known.0) {
            self.refusal = Some((place, why.into()));
        }
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

    /// As [`Walk::time`], for a time at which somebody looks whether an appointment has come, which may be later. It is
    /// none itself; [`Time::MAX`] for none.
    #[inline]
    pub fn wakes(&mut self, time: &mut Time) {
        self.same(*time != Time::MAX);
        if *time != Time::MAX {
            self.moment(Kind::Wakes, time);
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
    pub fn sequence<N: Number>(&mut self, flow: FlowId, unit_bytes: u64, place: &mut N) {
        let mut number = place.get();
        self.moving(Kind::Sequence(flow, unit_bytes), &mut number);
        place.set(number);
    }

    /// How far a flow has come, in packets, by who does not know how many bytes they carry. Who knows names the same
    /// position both ways.
    #[inline]
    pub fn steps<N: Number>(&mut self, flow: FlowId, place: &mut N) {
        let mut number = place.get();
        self.moving(Kind::Steps(flow), &mut number);
        place.set(number);
    }

    /// How far the flow has come that is gone over now, in its unit, by who knows it both ways.
    #[inline]
    pub fn position<N: Number>(&mut self, place: &mut N) {
        self.sequence(self.flow, self.unit, &mut { *place });
        self.steps(self.flow, place);
    }

    /// A number of a flow that grows in a measure of its own, such as bytes with headers, or credit: all numbers of one
    /// name must move by the same amount, and only the distance between them matters. Averages don't move it.
    #[inline]
    pub fn measured<N: Number>(&mut self, flow: FlowId, name: &'static str, place: &mut N) {
        let mut number = place.get();
        self.moving(Kind::Measured(flow, name), &mut number);
        place.set(number);
    }

    /// A position in a flow that matters only until the flow has come past it, in the same units: `by` is how far it
    /// has come.
    #[inline]
    pub fn passed<N: Number>(&mut self, flow: FlowId, unit_bytes: u64, place: &mut N, by: u64) {
        let lies_ahead = place.get() >= by;
        self.same(lies_ahead);
        if lies_ahead {
            self.sequence(flow, unit_bytes, place);
        }
    }

    /// A number of this node that grows, of which only the distance from others of its name matters.
    #[inline]
    pub fn turn<N: Number>(&mut self, name: &'static str, turn: &mut N) {
        let mut number = turn.get();
        self.moving(Kind::Turn(self.here(), name), &mut number);
        turn.set(number);
    }

    /// The same, of a node or of one of its ports ([`Walk::place`]), wherever the number is: in packets or at hosts.
    #[inline]
    pub fn turn_at<N: Number>(&mut self, place: u32, name: &'static str, turn: &mut N) {
        let mut number = turn.get();
        self.moving(Kind::Turn(place, name), &mut number);
        turn.set(number);
    }

    /// A node, or a port of it, as [`Walk::turn_at`] names it. Two that get one name are only taken for one.
    pub fn place(node: u32, port: Option<u32>) -> u32 {
        node ^ port.map_or(0, |port| port + 1) << PORT
    }

    /// The source and the destination of the packet that is gone over now.
    pub fn ends(&self) -> (HostId, HostId) {
        self.ends
    }

    /// Which flow it is.
    #[inline]
    pub fn flow(&mut self, flow: &mut FlowId) {
        let mut number = u64::from(flow.0);
        self.moving(Kind::Flow, &mut number);
        if let Task::Ahead { names, .. } = &self.task
            && let Some(name) = names.get(flow)
        {
            *flow = *name;
        }
    }

    /// Which flow it is, by who knows it by its number alone.
    #[inline]
    pub fn flow_number<N: Number>(&mut self, number: &mut N) {
        let mut flow = FlowId(number.get() as u32);
        self.flow(&mut flow);
        number.set(flow.0.into());
    }

    /// What follows depends on the numbers of flows, in the way that `what` says: no flow can take another's place.
    pub fn numbered(&mut self, what: &'static str) {
        if let Task::Note(notes) = &mut self.task {
            let of = notes.parts.last().expect("a walk begins with a part");
            if notes.numbered.as_ref().is_none_or(|known| of.rank() < known.0) {
                notes.numbered = Some((of.rank(), of.differs(what)));
            }
        }
    }

    /// A value of a flow that does not matter as long as the flow goes on, but that another flow in its place must
    /// have, too.
    #[inline]
    pub fn inherited(&mut self, flow: FlowId, value: u64) {
        let mut stays = value;
        self.moving(Kind::Inherited(flow), &mut stays);
    }

    /// A number that may move freely as long as nobody uses it: `used` counts how often somebody has. It moves modulo
    /// a power of two; who has fewer bits than 64 takes the low ones.
    #[inline]
    pub fn unused<N: Number>(&mut self, number: &mut N, used: u64) {
        self.unused_of("a value that is used", number, used);
    }

    /// The same, with a name of its own.
    #[inline]
    pub fn unused_of<N: Number>(&mut self, what: &'static str, number: &mut N, used: u64) {
        let mut value = number.get();
        self.moving(Kind::Unused(what, used), &mut value);
        number.set(value);
    }

    /// A number that grows by as much in each period, and changes nothing as long as it stays below the limit: so many
    /// periods repeat. Who sets it back says otherwise that this has happened.
    #[inline]
    pub fn below<N: Number>(&mut self, limit: u64, number: &mut N) {
        let mut value = number.get();
        self.moving(Kind::Below(limit), &mut value);
        number.set(value);
    }

    /// A value that must be what it was a period ago, and that has a name of its own where it is not.
    #[inline]
    pub fn same_of(&mut self, what: &'static str, value: u64) {
        let mut stays = value;
        self.moving(Kind::Same(what), &mut stays);
    }

    /// A value that changes only when flows begin or end. Who repeats these sets it.
    #[inline]
    pub fn told(&mut self, value: u64) {
        let mut stays = value;
        self.moving(Kind::Told, &mut stays);
    }

    /// By how much one value exceeds another, of which only the order matters: the distance may grow, but not shrink.
    #[inline]
    pub fn lead(&mut self, by: u64) {
        let mut stays = by;
        self.moving(Kind::Lead, &mut stays);
    }

    /// Something goes by the order of flows' numbers: flows that stand in others' places must have the same order.
    pub fn by_number(&mut self) {
        if let Task::Note(notes) = &mut self.task {
            notes.by_number = true;
        }
    }

    /// When a rank acts by itself, if nothing comes to it; [`Time::MAX`] for never.
    #[inline]
    pub fn rank_acts(&mut self, at: Time) {
        let mut stays = at.ps();
        self.moving(Kind::RankActs, &mut stays);
    }

    /// A counter for the results, which nothing depends on. Returns by how much this walk has moved it.
    #[inline]
    pub fn count<N: Number>(&mut self, counter: &mut N) -> u64 {
        let by = self.next_count(counter.get());
        counter.set(counter.get().wrapping_add(by));
        by
    }

    /// Several of them.
    pub fn counts<'a, N: Number + 'a>(&mut self, counters: impl IntoIterator<Item = &'a mut N>) {
        for counter in counters {
            self.count(counter);
        }
    }

    /// Counters of a part of a run, whose sums over all parts are results. How the network is divided among threads
    /// does not matter for these sums. So the first part gets all by which they move.
    pub fn totals<const N: usize>(&mut self, counters: [&mut u64; N]) {
        let (by, times) = match &mut self.task {
            Task::Note(notes) => {
                notes.totals.resize(N, 0);
                notes.totals.iter_mut().zip(counters).for_each(|(total, counter)| *total += *counter);
                return;
            }
            Task::Ahead { moves, times, .. } => (&moves.totals, *times),
            Task::Shift { amounts, .. } => (&amounts.totals, 1),
        };
        if !std::mem::replace(&mut self.totals_given, true) {
            counters.into_iter().zip(by).for_each(|(counter, by)| *counter += by * times);
        }
    }

    /// A counter for the results of one flow, as [`Walk::count`].
    #[inline]
    pub fn count_of<N: Number>(&mut self, flow: FlowId, counter: &mut N) -> u64 {
        let by = self.next_count_of(flow, counter.get());
        counter.set(counter.get().wrapping_add(by));
        by
    }

    /// A counter on which something depends that changes with each count, and with nothing else: it can be changed as
    /// often as this returns. Averages don't move it, since they don't say that all counts were alike.
    #[inline]
    pub fn counted<N: Number>(&mut self, counter: &mut N) -> u64 {
        let by = self.next_count(counter.get());
        let by = if self.by_averages() { 0 } else { by };
        counter.set(counter.get().wrapping_add(by));
        by
    }

    /// The same of one flow.
    #[inline]
    pub fn counted_of<N: Number>(&mut self, flow: FlowId, counter: &mut N) -> u64 {
        let by = self.next_count_of(flow, counter.get());
        let by = if self.by_averages() { 0 } else { by };
        counter.set(counter.get().wrapping_add(by));
        by
    }

    /// Whether the state is moved ahead by averages: what happens in that time is not known, only how much.
    pub fn by_averages(&self) -> bool {
        matches!(self.task, Task::Shift { .. })
    }

    /// Notes the next counter, or says by how much it moves.
    #[inline]
    fn next_count(&mut self, counter: u64) -> u64 {
        match &mut self.task {
            Task::Note(notes) => {
                notes.counts.push(counter);
                0
            }
            Task::Ahead { moves, times, count, .. } => {
                *count += 1;
                moves.counts[*count - 1].wrapping_mul(*times)
            }
            Task::Shift { amounts, count, .. } => {
                *count += 1;
                amounts.counts[*count - 1]
            }
        }
    }

    /// The same for the next counter of a flow.
    #[inline]
    fn next_count_of(&mut self, flow: FlowId, counter: u64) -> u64 {
        match &mut self.task {
            Task::Note(notes) => {
                notes.counts_of.push((flow, counter));
                0
            }
            Task::Ahead { moves, times, count_of, .. } => {
                *count_of += 1;
                moves.counts_of[*count_of - 1].wrapping_mul(*times)
            }
            Task::Shift { amounts, count_of, .. } => {
                *count_of += 1;
                amounts.counts_of.get(*count_of - 1).copied().unwrap_or(0)
            }
        }
    }

    /// A counter by name (within its part of the state) that may not have been there a period ago, and by how much it
    /// has moved, as [`Walk::count`].
    pub fn tallied(&mut self, name: u64, counter: &mut u64) -> u64 {
        match &mut self.task {
            Task::Note(notes) => {
                notes.tallies.push(((notes.parts.len(), name), *counter));
                0
            }
            Task::Ahead { moves, times, tally, .. } => {
                *tally += 1;
                let by = moves.tallies[*tally - 1].wrapping_mul(*times);
                *counter += by;
                by
            }
            Task::Shift { .. } => 0,
        }
    }

    /// Positions of flows can't be moved by averages. The state may still be moved ahead where it recurs.
    pub fn not_by_averages(&mut self, why: &'static str) {
        if let Task::Note(notes) = &mut self.task {
            notes.not_by_averages = Some(why);
        }
    }

    /// The next step of a control, which it will take unless something keeps it from that, takes a rate from `rate` to
    /// `next`. If they are far apart, averages say nothing of what follows, though the rate was steady up to now.
    pub fn next_step(&mut self, rate: f64, next: f64) {
        if let Task::Note(notes) = &mut self.task {
            notes.next_step = notes.next_step.max((next / rate - 1.0).abs());
        }
    }

    /// A random stream: it must not have been drawn from, but where only one thing could come out.
    pub fn random(&mut self, random: &mut Stream) {
        match &mut self.task {
            Task::Note(notes) => notes.streams.push((notes.parts.len().saturating_sub(1), random.clone())),
            Task::Ahead { moves, times, stream, .. } => {
                (0..moves.draws[*stream] * *times).for_each(|_| random.draw_idly());
                *stream += 1;
            }
            Task::Shift { .. } => {}
        }
    }

    /// A packet, with its header.
    pub fn packet(&mut self, packet: &mut Packet) {
        if packet.has(crate::packet::flags::LINK_FRAME) {
            self.same(packet.flow.0);
        } else {
            self.flow(&mut packet.flow);
        }
        self.same((packet.src.0, packet.dst.0, packet.label));
        self.same((packet.wire_bytes, packet.payload_bytes, packet.class));
        match packet.tags() {
            [0, 0] => self.same(packet.virtual_delay_ns),
            _ => self.same_of("how long a packet waited in Augmented Queues", packet.virtual_delay_ns.into()),
        }
        self.same((packet.flags, packet.transport, packet.hops));
        self.ends = (packet.src, packet.dst);
        let (before, flow) = (*packet, std::mem::replace(&mut self.flow, packet.flow));
        self.header_walk(packet)(packet, self);
        self.flow = flow;
        debug_assert!(*packet == before || !matches!(self.task, Task::Note(_)), "a look changes it: {before:?}");
    }

    /// How the header of a packet is gone over. Messages of link-level retry have headers of their own, in which
    /// nothing may change, and so have packets of rate limiters, whose number follows those of the transports.
    fn header_walk(&self, packet: &Packet) -> HeaderWalk {
        let Some((&of_frames, of_transports)) = self.headers.split_last() else { return visit_words };
        match packet.has(crate::packet::flags::LINK_FRAME) {
            true if RetryMessage::of(packet).is_some() => visit_words,
            true => of_frames,
            false => of_transports.get(usize::from(packet.transport)).copied().unwrap_or(visit_words),
        }
    }

    /// Packets that wait one behind the other.
    pub fn packets<'a>(&mut self, packets: impl IntoIterator<Item = &'a mut Packet, IntoIter: ExactSizeIterator>) {
        let packets = packets.into_iter();
        self.same(packets.len());
        packets.for_each(|packet| self.packet(packet));
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
                    Kind::Time if amounts.appointments.contains(value) => 0,
                    Kind::Time | Kind::Past => amounts.time.ps(),
                    // Nobody may look later than at the first appointment.
                    Kind::Wakes => amounts.until.ps().saturating_sub(*value).min(amounts.time.ps()),
                    Kind::Same(_)
                    | Kind::Unused(..)
                    | Kind::Below(_)
                    | Kind::Outside
                    | Kind::Flow
                    | Kind::Told
                    | Kind::RankActs
                    | Kind::Inherited(_)
                    | Kind::Lead => 0,
                    // What an old packet says of its flow counts no more when a newer one has come.
                    Kind::Measured(..) => 0,
                    Kind::Steps(flow) => amounts.flows.get(&flow).map_or(0, |of| of.1),
                    Kind::Sequence(flow, unit) => amounts.flows.get(&flow).map_or(0, |of| of.0 / unit),
                    Kind::Turn(node, name) => amounts.turns.get(&(node, name)).copied().unwrap_or(0),
                };
                *value = value.wrapping_add(by);
            }
        }
    }
}

/// Goes over the header of a packet of type `H`.
pub fn visit_header<H: Header>(packet: &mut Packet, walk: &mut Walk) {
    let mut header = packet.header::<H>();
    header.visit(walk, &());
    packet.set_header(header);
}

/// Goes over a header of any type, in which nothing may change.
pub fn visit_words(packet: &mut Packet, walk: &mut Walk) {
    walk.same(packet.words());
}

#[cfg(test)]
mod tests;
