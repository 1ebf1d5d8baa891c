//! A run that skips what repeats: see [`node::walk`].
//!
//! Between skips the run is an ordinary one. Now and then it listens: it logs what comes to each node, and looks for
//! a period in that. If it finds one, it notes the whole state, goes on for a period, and notes it again. If the
//! state has recurred, it moves it ahead by as many periods as there are before the next appointment, or before a
//! flow nears its end. A sample changes nothing: the period in which one is taken is simulated, and what follows is
//! skipped again. Digests are those of the whole run: what was logged of the period goes into them once for each
//! period that is skipped. So the results are those of a run without skips, to the last bit.
//!
//! In approximate mode the state is observed from time to time. If its flows are steady though it has not recurred, it
//! is moved ahead by what they do on average ([`History`]), from sample to sample, until a flow nears its end.
//!
//! Where messages of a job follow each other, the state recurs under other names of flows: see [`turnover`]. Where
//! messages are long, most of each is skipped even while such a period is simulated. So a period may have parts that
//! were skipped: see [`course`].
//!
//! Islands of the network that share no flow ([`driver::Islands`]) are skipped apart: each looks for its own period,
//! and has its own time ([`island`]). Which islands there are changes as jobs and messages begin and end ([`islands`]).
//! While the engine comes to the time up to which an island was moved ahead, events of what was skipped because it
//! recurred echo in it ([`crate::part::Echo`]). A packet that goes from one island to another shows that they are none:
//! the run begins anew ([`Breach`]).
//!
//! In approximate mode groups of hosts in an island sleep while they are steady, each by itself: see [`groups`].
//!
//! Listening gets longer while it finds nothing, and begins anew when a flow starts or ends. What it may cost is
//! limited ([`budget`]), so that traffic that never repeats costs little more than in an ordinary run.

mod again;
mod budget;
mod course;
mod groups;
mod island;
mod islands;
mod own;
mod period;
mod turnover;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use driver::{Cut, Islands, Probe, Stuck, header_walks};
use engine::{Bounds, Ended, Outcome};
use node::walk::HeaderWalk;
use run::Plan;
use serde::Serialize;
use units::Time;

use crate::part::Part;
use crate::run::Finish;
use budget::Budget;
use island::Island;
use islands::Connections;
use period::Period;

/// What was skipped.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Skipped {
    /// Parts of the network that shared no flow and were skipped apart, at most at a time.
    pub islands: usize,
    /// How many times periods were skipped.
    pub skips: u64,
    /// Simulated time, in picoseconds, of all islands together.
    pub time_ps: u64,
    /// The part of that time that was skipped by average rates, though the state had not recurred.
    pub estimated_ps: u64,
    /// Packets that passed a link in that time, each link once.
    pub packet_hops: u64,
    /// Why nothing was skipped, or not more, if there was a reason: what does not say how its state moves, or else the
    /// last thing that did not repeat.
    pub reason: Option<String>,
}

/// A packet has gone from one island to another: what was taken for islands are none, and the run is void.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Breach {
    OfIslands,
    /// The same, of groups of hosts of which one slept.
    OfGroups,
}

/// A run under way, with what its islands have in common.
struct Run<'a, P: Probe, W: FnMut(Time, u64) -> bool> {
    plan: &'a Plan,
    parts: &'a mut [Part<P>],
    threads: usize,
    bounds: Bounds,
    watch: W,
    headers: Arc<[HeaderWalk]>,
    /// All events before this time have been processed.
    now: Time,
    windows: u64,
    /// Where the last window ends that has begun, which may be before now or after it.
    window_end: Time,
    /// Where everything is, if groups of hosts may sleep.
    cut: Option<&'a Cut>,
    /// By island, how many of its groups sleep.
    asleep: BTreeMap<u32, usize>,
    /// Whether the engine stops where a message may have started, and how often it did.
    heeds_starts: bool,
    stirs: u64,
    /// The latest time up to which an island was moved ahead.
    ahead_until: Time,
    connections: Connections,
    /// By island, which its districts name: it waits until all events before this time have been processed.
    waits: BTreeMap<u32, Time>,
    budget: Budget,
    /// Whether something did not say how its state moves.
    refused: bool,
    alike: Arc<again::Alike<'a>>,
    skipped: Skipped,
    /// Looks at the whole run now and then, so that no island is moved ahead beyond its next look.
    stuck: Stuck,
    why_stuck: Option<String>,
}

/// Why a run does not go on as it did.
enum Over {
    /// The run is over: when it ended, and why.
    Ended(Time, Ended),
    /// A packet has gone from one island to another, or to a group that sleeps.
    Breached(Breach),
}

/// Runs to the end. `groups`: whether groups of hosts may sleep within an island.
///
/// # Errors
/// The islands are none, or the groups are.
pub(crate) fn run<P: Probe>(
    plan: &Plan,
    parts: &mut [Part<P>],
    (islands, cut, groups): (&Islands, &Cut, bool),
    threads: usize,
    bounds: Bounds,
    watch: impl FnMut(Time, u64) -> bool,
) -> Result<(Finish, Skipped), Breach> {
    let connections = Connections::new(plan, islands, cut.districts());
    let run = RefCell::new(Run::new(plan, parts, connections, groups.then_some(cut), threads, bounds, watch));
    let (end, ended) = match live(&run) {
        Over::Ended(end, ended) => (end, ended),
        Over::Breached(breach) => return Err(breach),
    };
    let Run { windows, skipped, why_stuck: stuck, .. } = run.into_inner();
    let outcome = Outcome { end, ended, windows, open_until: None };
    Ok((Finish { outcome, stuck }, skipped))
}

/// An island's looking for something to skip.
type Living<'r> = Pin<Box<dyn Future<Output = Infallible> + 'r>>;

/// Lets each island look for what it can skip, until the run is over or a packet has left its island.
///
/// An island's looking is a coroutine: it goes on whenever the engine has come to the time that it waits for.
fn live<P: Probe, W: FnMut(Time, u64) -> bool>(run: &RefCell<Run<'_, P, W>>) -> Over {
    let begin = |districts| -> Living<'_> { Box::pin(Island::new(run, districts).live()) };
    let mut islands = BTreeMap::new();
    let mut context = Context::from_waker(Waker::noop());
    let mut look = |islands: &mut BTreeMap<u32, Living<'_>>| {
        for (districts, island) in islands {
            if !run.borrow().waits_for_later(*districts) {
                let _: Poll<Infallible> = island.as_mut().poll(&mut context);
            }
        }
    };
    loop {
        // What sleeps wakes before its island is joined with others.
        look(&mut islands);
        let changed = run.borrow_mut().changed_islands();
        if let Some(changed) = changed {
            islands.retain(|districts, _| changed.contains(districts));
            if !run.borrow_mut().have_islands(&changed) {
                return Over::Breached(Breach::OfGroups);
            }
            for districts in changed {
                islands.entry(districts).or_insert_with(|| begin(districts));
            }
            look(&mut islands);
        }
        if let Some(over) = run.borrow_mut().advance() {
            return over;
        }
    }
}

impl<'a, P: Probe, W: FnMut(Time, u64) -> bool> Run<'a, P, W> {
    fn new(
        plan: &'a Plan,
        parts: &'a mut [Part<P>],
        connections: Connections,
        cut: Option<&'a Cut>,
        threads: usize,
        bounds: Bounds,
        watch: W,
    ) -> Self {
        Run {
            plan,
            parts,
            threads,
            bounds,
            watch,
            headers: header_walks(plan),
            now: Time::ZERO,
            windows: 0,
            window_end: Time::ZERO,
            cut,
            asleep: BTreeMap::new(),
            heeds_starts: false,
            stirs: 0,
            ahead_until: Time::ZERO,
            connections,
            waits: BTreeMap::new(),
            budget: Budget::default(),
            refused: false,
            alike: Arc::new(again::Alike::new(plan)),
            skipped: Skipped::default(),
            stuck: Stuck::new(plan),
            why_stuck: None,
        }
    }

    /// The islands, if they are others than before.
    fn changed_islands(&mut self) -> Option<Vec<u32>> {
        let Run { now, parts, waits, asleep, connections, .. } = self;
        let is_ahead = |districts| {
            waits.iter().any(|(of, until)| of & districts != 0 && until > now)
                || asleep.iter().any(|(of, count)| of & districts != 0 && *count > 0)
        };
        connections.changed(*now, parts, is_ahead)
    }

    /// These are the islands from now on. Where there was another, nobody listens any more. Returns false if something
    /// sleeps there.
    fn have_islands(&mut self, islands: &[u32]) -> bool {
        let before = std::mem::take(&mut self.waits);
        let kept = before.keys().filter(|of| islands.contains(of)).fold(0, |kept, of| kept | of);
        self.waits = islands.iter().map(|of| (*of, before.get(of).copied().unwrap_or(self.now))).collect();
        self.skipped.islands = self.skipped.islands.max(islands.len());
        let of_parts: Arc<[u32]> = self.connections.islands_of_parts(islands).into();
        for (part, &island) in self.parts.iter_mut().zip(&*of_parts) {
            part.0.links.carrier.lies_in(island, of_parts.clone());
            if island & kept == 0 {
                part.0.forget_log();
            }
        }
        self.asleep.iter().all(|(of, count)| *count == 0 || islands.contains(of))
    }

    /// By part, whether it is in this island.
    fn parts_of(&self, island: u32) -> Vec<bool> {
        self.connections.islands_of_parts(&[island]).into_iter().map(|of| of != 0).collect()
    }

    /// Whether an island waits for a time that has not come.
    fn waits_for_later(&self, districts: u32) -> bool {
        self.waits[&districts] > self.now
    }

    /// Simulates up to the first time that an island waits for. Returns why the run does not go on, if it does not.
    fn advance(&mut self) -> Option<Over> {
        let begins = self.connections.next_at();
        let pause = self.waits.values().copied().fold(begins, Time::min).min(self.stuck.next_at());
        let open_until = Some(self.window_end).filter(|end| *end > self.now);
        let bounds = Bounds { pause, open_until, ..self.bounds };
        for part in &mut *self.parts {
            (part.0.stirred, part.0.links.carrier.heeds_starts) = (false, self.heeds_starts);
        }
        // To begin threads for each of so many short spans would cost more than they save.
        let threads = if self.heeds_starts { 1 } else { self.threads };
        let Outcome { end, ended, windows, open_until } = engine::run(self.parts, threads, bounds, &mut self.watch);
        self.windows += windows;
        // If no window began, the engine's end is zero.
        let end = if end == Time::ZERO { self.window_end } else { end };
        self.window_end = open_until.unwrap_or(end);
        if self.parts.iter().any(|part| part.0.strayed) {
            return Some(Over::Breached(Breach::OfGroups));
        }
        if self.parts.iter().any(|part| part.0.links.carrier.breached) {
            return Some(Over::Breached(Breach::OfIslands));
        }
        // What sleeps has no events, but it will go on.
        let any_asleep = self.asleep.values().any(|&count| count > 0);
        let sleeps = any_asleep && matches!(ended, Ended::Quiet | Ended::Horizon) && pause < self.bounds.horizon;
        if ended != Ended::Paused && !sleeps {
            // Who stops a run gets what is known, and of some islands that is more than of others.
            let known_until = if ended == Ended::Interrupted { self.ahead_until } else { Time::ZERO };
            return Some(Over::Ended(end.max(known_until), ended));
        }
        let stirred = ended == Ended::Paused && self.heeds_starts && self.parts.iter().any(|part| part.0.stirred);
        self.now = if stirred { end } else { pause };
        if self.now == self.stuck.next_at() {
            let why = self.stuck.look(self.plan, self.parts.iter().map(|part| &part.0));
            // What sleeps is at another time.
            self.why_stuck = why.filter(|_| !any_asleep);
            if self.why_stuck.is_some() {
                return Some(Over::Ended(self.now, Ended::Paused));
            }
        }
        if stirred {
            self.stirs += 1;
            self.waits.values_mut().for_each(|until| *until = end.min(*until));
        }
        None
    }

    /// How many packet-hops must be simulated before looking may cost more.
    fn short(&self) -> u64 {
        let skipped = self.skipped.packet_hops;
        self.budget.short_of(self.packet_hops() - skipped, skipped)
    }

    fn packet_hops(&self) -> u64 {
        self.parts.iter().map(|part| part.0.packet_hops).sum()
    }

    /// This did not repeat.
    fn because(&mut self, why: &str) {
        if !self.refused {
            self.skipped.reason = Some(why.to_owned());
        }
    }

    /// The network has been moved ahead by so many periods.
    fn skip_all(&mut self, period: &Period, times: u64) {
        let length = self.bounds.lookahead;
        let (begun, end) = period.windows(self.now, times, self.window_end, length, self.bounds.horizon);
        self.windows += begun;
        self.window_end = end;
        self.now += period.length * times;
    }
}

#[cfg(test)]
mod tests;
