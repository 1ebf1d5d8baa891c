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
//! Where messages of a job follow each other, the state recurs under other names of flows: see [`turnover`].
//!
//! In exact mode, islands of the network that share no flow ([`driver::Islands`]) are skipped apart: each has its own
//! period, and sleeps for what was skipped of it while others are simulated. Then events of what was skipped echo in
//! the engine ([`crate::part::Echo`]). A packet that goes from one island to another shows that they are none. If
//! nothing was skipped before that, the run goes on without them, and otherwise it begins anew ([`Breach`]).
//!
//! Listening gets longer while it finds nothing, and begins anew when a flow starts or ends. What it may cost is
//! limited ([`budget`]), so that traffic that never repeats costs little more than in an ordinary run.

mod budget;
mod turnover;

use std::ops::Range;
use std::sync::Arc;

use driver::{Log, Names, Probe, header_walks};
use engine::{Bounds, Ended, Outcome};
use node::Walk;
use node::walk::{Amounts, Differs, HeaderWalk, History, Notes, Recurrence, Unsteady, recurrence};
use run::Plan;
use rustc_hash::FxHashMap;
use scenario::FastForward;
use serde::Serialize;
use units::{Duration, FlowId, HostId, Stream, Time};

use crate::part::Part;
use budget::Budget;

/// What was skipped.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Skipped {
    /// Parts of the network that share no flow, and were skipped apart.
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

/// The first span of listening is the time that so many full packets take on a host's link.
const FIRST_PACKETS: u64 = 24;
/// The longest time of listening, in full packets.
const MOST_PACKETS: u64 = 24 << 9;
/// Listening takes longer only after it has found nothing this many times.
const EAGER: u32 = 4;
/// Where looking has cost enough, the run goes on for at most so many times the time of listening before that is asked
/// again.
const MOST_PAUSE: u64 = 16;
/// A node has a period only if its arrivals repeat at least so often.
const REPEATS: usize = 2;
/// The state may recur only after several periods of the arrivals, as where a sender counts the packets of a window. At
/// first so many periods are tried, and twice as many after each failure: most states that do not recur at once are
/// still settling.
const FIRST_MULTIPLES: u32 = 2;
/// The most periods that are ever tried.
const MOST_MULTIPLES: u32 = 128;

/// A packet has gone from one island to another after something was skipped: what was taken for islands are none, and
/// the run is void.
#[derive(Debug)]
pub(crate) struct Breach;

/// A run under way.
struct Run<'a, P: Probe, W: FnMut(Time, u64) -> bool> {
    plan: &'a Plan,
    parts: &'a mut [Part<P>],
    threads: usize,
    bounds: Bounds,
    watch: W,
    headers: Arc<[HeaderWalk]>,
    /// All events before this time have been processed, but for those of islands that sleep.
    now: Time,
    windows: u64,
    islands: Vec<Island>,
    /// The island that is looked at.
    at: usize,
    /// In approximate mode: what flows have done since the last of them began or ended.
    history: History,
    budget: Budget,
    /// Whether something did not say how its state moves.
    refused: bool,
    alike: Arc<turnover::Alike<'a>>,
    skipped: Skipped,
}

/// A part of the network that shares no flow with others.
struct Island {
    /// Its parts.
    parts: Range<usize>,
    /// It sleeps until this time, to which its state has been moved ahead.
    sleeps_until: Time,
    /// When it wakes up, this period is tried first.
    period: Option<Duration>,
    listening: Listening,
    /// How many flows its busiest host must have started before somebody looks for a period in that.
    starts_wanted: usize,
}

/// Runs to the end. By island, `islands` has its parts.
///
/// # Errors
/// The islands are none.
pub(crate) fn run<P: Probe>(
    plan: &Plan,
    parts: &mut [Part<P>],
    islands: &[Range<usize>],
    threads: usize,
    bounds: Bounds,
    watch: impl FnMut(Time, u64) -> bool,
) -> Result<(Outcome, Skipped), Breach> {
    let headers = header_walks(plan);
    // There is a host, or nothing would be sent.
    let packet = plan.sites[0].nic_rate.transmit(u64::from(plan.sites[0].mtu_bytes));
    let island = |parts: &Range<usize>| Island {
        parts: parts.clone(),
        sleeps_until: Time::ZERO,
        period: None,
        listening: Listening::new(packet),
        starts_wanted: turnover::FIRST_STARTS,
    };
    let mut run = Run {
        plan,
        parts,
        threads,
        bounds,
        watch,
        headers,
        now: Time::ZERO,
        windows: 0,
        islands: islands.iter().map(island).collect(),
        at: 0,
        history: History::default(),
        budget: Budget::default(),
        refused: false,
        alike: Arc::new(turnover::Alike::new(plan)),
        skipped: Skipped::default(),
    };
    let over = run.until_over();
    run.skipped.islands = run.islands.len();
    over.map(|(end, ended)| (Outcome { end, ended, windows: run.windows, open_until: None }, run.skipped))
}

/// How long to listen.
#[derive(Clone, Copy)]
struct Listening {
    /// At first, and at most.
    first: Duration,
    most: Duration,
    /// The next time.
    span: Duration,
    /// How many times nothing was found since a flow began or ended.
    vain: u32,
    /// How many records of flows there were then.
    told: usize,
}

impl Listening {
    /// Where a full packet takes this long on a host's link.
    fn new(packet: Duration) -> Listening {
        let (first, most) = (packet * FIRST_PACKETS, packet * MOST_PACKETS);
        Listening { first, most, span: first, vain: 0, told: 0 }
    }
}

/// Why a run does not go on as it did.
enum Over {
    /// The run is over: when it ended, and why.
    Ended { end: Time, ended: Ended },
    /// A packet has gone from one island to another.
    Breached,
}

impl<P: Probe, W: FnMut(Time, u64) -> bool> Run<'_, P, W> {
    fn until_over(&mut self) -> Result<(Time, Ended), Breach> {
        loop {
            match self.look_around() {
                Ok(()) => {}
                Err(Over::Ended { end, ended }) => return Ok((end, ended)),
                Err(Over::Breached) if self.skipped.skips == 0 => self.join(),
                Err(Over::Breached) => return Err(Breach),
            }
        }
    }

    /// Looks at each island that is awake, and goes on.
    fn look_around(&mut self) -> Result<(), Over> {
        for at in 0..self.islands.len() {
            self.at = at;
            if !self.sleeps() {
                self.look()?;
            }
        }
        self.pause()
    }

    /// The island that is looked at.
    fn island(&mut self) -> &mut Island {
        &mut self.islands[self.at]
    }

    /// Its parts.
    fn own(&self) -> &[Part<P>] {
        &self.parts[self.islands[self.at].parts.clone()]
    }

    fn own_mut(&mut self) -> &mut [Part<P>] {
        &mut self.parts[self.islands[self.at].parts.clone()]
    }

    /// Whether the island's state is ahead of the others'.
    fn sleeps(&self) -> bool {
        self.islands[self.at].sleeps_until > self.now
    }

    /// The time at which the island's state is.
    fn own_now(&self) -> Time {
        self.now.max(self.islands[self.at].sleeps_until)
    }

    /// Looks for something to skip, and skips it.
    fn look(&mut self) -> Result<(), Over> {
        if let Some(mut period) = self.island().period.take()
            && self.skip(&mut period, 1)?
        {
            return Ok(());
        }
        self.skip_turnovers()?;
        if self.sleeps() {
            return Ok(());
        }
        let Listening { span, vain, .. } = self.island().listening;
        let recurs = match self.listen(span)? {
            None => false,
            Some(mut period) => {
                let multiples = (FIRST_MULTIPLES << vain.min(31)).min(MOST_MULTIPLES);
                let any = self.skip(&mut period, multiples)?;
                while any && !self.sleeps() && self.skip(&mut period, 1)? {}
                any
            }
        };
        let (tells, mut listening) = (self.tells(), self.island().listening);
        let longer = if tells != listening.told {
            listening = Listening { span: listening.first, vain: 0, told: tells, ..listening };
            self.history.clear();
            false
        } else {
            listening.vain = if recurs { 0 } else { listening.vain + 1 };
            if self.plan.scenario.fast_forward == FastForward::Approximate {
                // What was skipped because it recurred is as good an observation as what was simulated.
                self.skip_steady(listening.span)
            } else {
                !recurs && listening.vain >= EAGER
            }
        };
        if longer {
            listening.span = (listening.span * 2).min(listening.most);
        } else if recurs && self.plan.scenario.fast_forward == FastForward::Exact {
            listening.span = listening.first;
        }
        self.island().listening = listening;
        Ok(())
    }

    /// Goes on without looking while that has cost enough, or while all islands sleep.
    fn pause(&mut self) -> Result<(), Over> {
        let awake = self.islands.iter().filter(|island| island.sleeps_until <= self.now);
        let span = awake.map(|island| island.listening.span).min();
        let mut step = span.unwrap_or(Duration::MAX);
        loop {
            let wakes = self.islands.iter().map(|island| island.sleeps_until).filter(|&until| until > self.now).min();
            let (short, before) = (self.short(), self.packet_hops());
            if short == 0 && span.is_some() {
                return Ok(());
            }
            self.go(wakes.map_or(step, |wakes| step.min(wakes.since(self.now))))?;
            if wakes.is_some_and(|wakes| wakes <= self.now) {
                return Ok(());
            }
            if let Some(span) = span
                && self.packet_hops() - before < short / 2
            {
                step = (step * 2).min(span * MOST_PAUSE);
            }
        }
    }

    /// How many packet-hops must be simulated before looking may cost more.
    fn short(&self) -> u64 {
        let skipped = self.skipped.packet_hops;
        self.budget.short_of(self.packet_hops() - skipped, skipped)
    }

    /// Whether looking may cost as much as a log of a span of time that is like the time up to now.
    fn affords_log(&self, span: Duration) -> bool {
        let (hops, skipped) = (self.packet_hops(), self.skipped.packet_hops);
        let in_span = u128::from(self.own_hops()) * u128::from(span.ps()) / u128::from(self.own_now().ps().max(1));
        self.budget.affords_log(in_span as u64, hops - skipped, skipped)
    }

    /// The number of records of flows at all hosts of the island.
    fn tells(&self) -> usize {
        self.own().iter().flat_map(|part| &part.0.hosts).map(|slot| slot.host.records.len()).sum()
    }

    /// Simulates a span of time. The error is that the run ended within it.
    fn go(&mut self, span: Duration) -> Result<(), Over> {
        let pause = self.now.saturating_add(span);
        let bounds = Bounds { pause, ..self.bounds };
        let Outcome { end, ended, windows, open_until } =
            engine::run(self.parts, self.threads, bounds, &mut self.watch);
        self.windows += windows;
        self.bounds.open_until = open_until;
        let breached = self.islands.len() > 1 && self.parts.iter().any(|part| part.0.links.carrier.breached);
        if breached && self.skipped.skips > 0 {
            return Err(Over::Breached);
        }
        if ended != Ended::Paused {
            // If no window began, the engine's end is zero, and not the time that the run had come to.
            let end = if end == Time::ZERO { self.now } else { end };
            return Err(Over::Ended { end, ended });
        }
        self.now = pause;
        if breached { Err(Over::Breached) } else { Ok(()) }
    }

    /// The islands are none: the whole network goes on as one. Nothing was skipped.
    fn join(&mut self) {
        self.parts.iter_mut().filter(|part| part.0.log.is_some()).for_each(|part| drop(part.0.take_log()));
        let mut whole = self.islands.swap_remove(0);
        whole.parts = 0..self.parts.len();
        whole.listening.span = whole.listening.first;
        (self.islands, self.at) = (vec![whole], 0);
    }

    /// As `go`, and logs what happens.
    fn log(&mut self, span: Duration) -> Result<Vec<Log>, Over> {
        self.own_mut().iter_mut().for_each(|part| part.0.begin_log());
        let before = self.own_hops();
        self.go(span)?;
        self.budget.logged(self.own_hops() - before);
        Ok(self.own_mut().iter_mut().map(|part| part.0.take_log()).collect())
    }

    /// Simulates a span of time and looks for a period of the island in the arrivals at its nodes.
    fn listen(&mut self, span: Duration) -> Result<Option<Duration>, Over> {
        let since = self.now.saturating_add(span / 2);
        let streams: Vec<Stream> = self.streams().map(|of| of.1.clone()).collect();
        let logs = self.log(span)?;
        match period_of_all(logs.iter().flat_map(|log| by_node(log, since)), 4 * span.ps()) {
            Ok(period) => Ok((period > 1).then(|| Duration::from_ps(period))),
            Err(why) => {
                let why = self.drawn_since(&streams).map_or(why.to_owned(), |drawn| drawn.to_string());
                self.because(&why);
                Ok(None)
            }
        }
    }

    /// The random streams of transports, host by host.
    fn streams(&self) -> impl Iterator<Item = (HostId, &Stream)> {
        self.own().iter().flat_map(|part| part.0.streams())
    }

    /// What a transport has drawn at random since its streams were these, at the first host where one has, if what it
    /// draws has a name.
    fn drawn_since(&self, before: &[Stream]) -> Option<Differs> {
        let drawn = self.streams().zip(before).filter(|((_, is), was)| is.idle_draws_since(was).is_none());
        let named = drawn.filter_map(|((host, stream), _)| Some((host.0, stream.decided()?)));
        let (node, what) = named.min_by_key(|of| of.0)?;
        Some(Differs { part: "host", node, what, drawn: true })
    }

    /// Simulates up to `most_multiples` times `period` until the state has recurred, then skips as many periods as it
    /// can. Returns whether it has skipped any; if so, `period` is now the period of the state.
    fn skip(&mut self, period: &mut Duration, most_multiples: u32) -> Result<bool, Over> {
        let Some(before) = self.note() else { return Ok(false) };
        let ranks = self.ranks_act_at();
        let hops_before = self.own_hops();
        let mut logs: Vec<Log> = self.own().iter().map(|_| Log::default()).collect();
        let mut multiple = 0;
        let found = loop {
            multiple += 1;
            for (all, more) in logs.iter_mut().zip(self.log(*period)?) {
                all.extend(more);
            }
            let Some(after) = self.note() else { return Ok(false) };
            match recurrence(&before, &after) {
                Ok(found) => break found,
                Err(_) if multiple < most_multiples && self.short() == 0 => {}
                Err(differs) => {
                    self.because(&differs.to_string());
                    return Ok(false);
                }
            }
        };
        *period = found.period;
        let hops = self.own_hops() - hops_before;
        let period = Period::new(logs, hops, found.period, self.now);
        if period.events.is_empty() {
            // Nothing is under way, so that nothing is gained; and windows follow from events.
            self.because("nothing happened in a period");
            return Ok(false);
        }
        let any = match found.turnover {
            true => self.repeat_turnover(&found, &period, &ranks),
            false => self.skip_periods(&found, &period)?,
        };
        if self.sleeps() {
            self.island().period = Some(found.period);
        }
        Ok(any)
    }

    /// Skips as many periods as it can, and simulates those in which samples are taken. An island among several is
    /// looked at again after each sample.
    fn skip_periods(&mut self, found: &Recurrence, period: &Period) -> Result<bool, Over> {
        let until = found.until.min(self.bounds.horizon);
        let (mut left, mut any) = (self.before_ends(found), false);
        loop {
            let sample = self.own()[0].0.next_sample_at();
            let times = (until.min(sample).since(self.now).ps() / period.length.ps()).min(left);
            if times > 0 {
                self.move_ahead(found, period, times, &Names::default(), Arc::default());
                (left, any) = (left - times, true);
            }
            if self.sleeps() || left == 0 || self.now + period.length > until {
                self.own_mut().iter_mut().for_each(|part| part.0.ranks_settled());
                return Ok(any);
            }
            self.go(period.length)?;
            left -= 1;
        }
    }

    /// Observes what flows have done. If they are steady, moves everything ahead by what they do on average, until one
    /// nears its end. Returns whether the next observation should take longer.
    fn skip_steady(&mut self, span: Duration) -> bool {
        let Some(notes) = self.note() else { return true };
        if let Some(why) = notes.exact_only() {
            self.because(why);
            return true;
        }
        let longer = self.history.add(&notes);
        let mut steady = match self.history.steady() {
            Ok(steady) => steady,
            Err(Unsteady::Slow) => {
                self.because("a flow sends too little to say how fast it is");
                return self.history.is_slow();
            }
            Err(Unsteady::Unsteady) => {
                self.because("flows are not steady");
                return longer;
            }
        };
        let left = 2 * u64::from(self.plan.sites[0].mtu_bytes);
        let before_ends = steady.before_ends(|flow| self.plan.flows.get(flow).bytes, left, span);
        let until = notes.appointment().min(self.bounds.horizon);
        let end = self.now.saturating_add(before_ends.min(steady.trusted())).min(until);
        if end < self.now + span {
            self.because("flows are steady for a short time only");
            return longer;
        }
        let hops = self.packet_hops();
        // Each step ends at the next sample or before it. It moves all events behind its end; then the sample is taken.
        while self.now < end {
            let sample = self.parts[0].0.next_sample_at();
            let time = end.min(sample).since(self.now);
            if time > Duration::ZERO {
                self.shift(&steady.next(time), time);
            }
            if self.now == sample && self.now < end {
                self.parts.iter_mut().for_each(|part| part.0.sample(sample));
            }
        }
        self.skipped.packet_hops += self.packet_hops() - hops;
        longer
    }

    /// Moves everything ahead by so much time.
    fn shift(&mut self, amounts: &Arc<Amounts>, time: Duration) {
        let mut walk = Walk::shift(self.now, self.headers.clone(), amounts.clone());
        self.parts.iter_mut().for_each(|part| part.0.walk(&mut walk));
        walk.finish().expect("the same walk was possible just before");
        self.history.moved(amounts);
        self.parts.iter_mut().for_each(|part| part.0.mark_digests(time));
        self.bounds.open_until = self.bounds.open_until.map(|until| until + time);
        self.now += time;
        self.skipped.skips += 1;
        self.skipped.time_ps += time.ps();
        self.skipped.estimated_ps += time.ps();
    }

    /// Moves everything ahead by so many periods. `names` are the names of flows in each period, and `renamed` gives
    /// each flow its name after the last one.
    fn move_ahead(&mut self, found: &Recurrence, period: &Period, times: u64, names: &Names, renamed: Arc<Renamed>) {
        let now = self.own_now();
        let mut walk = Walk::ahead(now, self.headers.clone(), found.moves.clone(), renamed, times);
        self.own_mut().iter_mut().for_each(|part| part.0.walk(&mut walk));
        walk.finish().expect("the same walk was possible just before");
        for (part, log) in self.own_mut().iter_mut().zip(&period.logs) {
            part.0.repeat_digests(log, now - period.end, period.length, times, names);
        }
        if self.islands.len() > 1 {
            self.own_mut()[0].1.extend(&period.events, period.length, now, times);
            self.island().sleeps_until = now + period.length * times;
        } else {
            self.skip_windows(period, times);
            self.now += period.length * times;
        }
        self.skipped.skips += 1;
        self.skipped.time_ps += period.length.ps() * times;
        self.skipped.packet_hops += period.hops * times;
    }

    /// This did not repeat.
    fn because(&mut self, why: &str) {
        if !self.refused {
            self.skipped.reason = Some(why.to_owned());
        }
    }

    fn packet_hops(&self) -> u64 {
        self.parts.iter().map(|part| part.0.packet_hops).sum()
    }

    /// Those of the island.
    fn own_hops(&self) -> u64 {
        self.own().iter().map(|part| part.0.packet_hops).sum()
    }

    /// Notes the whole state of the island, if all that has some says how it moves.
    fn note(&mut self) -> Option<Notes> {
        let mut walk = Walk::note(self.now, self.headers.clone());
        self.own_mut().iter_mut().for_each(|part| part.0.walk(&mut walk));
        self.budget.noted(walk.noted() as u64);
        match walk.finish() {
            Ok(notes) => notes,
            Err(refusal) => {
                self.refused = true;
                self.skipped.reason = Some(refusal);
                None
            }
        }
    }

    /// How many periods repeat before a flow nears its end, or a number its limit.
    fn before_ends(&self, found: &Recurrence) -> u64 {
        // The last packet of a flow may be shorter than those before it.
        let packet = u64::from(self.plan.sites[0].mtu_bytes);
        let of = |&(flow, bytes, last): &(_, u64, u64)| {
            self.plan.flows.get(flow).bytes.saturating_sub(last + 2 * packet) / bytes
        };
        found.flows.iter().map(of).min().unwrap_or(u64::MAX).min(found.most)
    }

    /// Counts the windows that would have begun in the skipped time, because a run may end only at the end of a window.
    /// Windows follow from the times of events alone.
    fn skip_windows(&mut self, period: &Period, times: u64) {
        let (length, from, events) = (period.length.ps(), self.now.ps(), &period.events);
        let end = from + length * times;
        let mut window_end = self.bounds.open_until.map_or(from, Time::ps);
        while window_end < end {
            let (round, within) = ((window_end - from) / length, (window_end - from) % length);
            let next = events.partition_point(|&at| at < within);
            let at = events.get(next).or(events.first()).expect("what recurs has events");
            let begin = from + (round + u64::from(next == events.len())) * length + at;
            if begin >= end {
                break;
            }
            window_end = (begin + self.bounds.lookahead.ps()).min(self.bounds.horizon.ps());
            self.windows += 1;
        }
        self.bounds.open_until = (window_end > end).then(|| Time::from_ps(window_end));
    }
}

/// By flow: its new name.
type Renamed = FxHashMap<FlowId, FlowId>;

/// What happens in a period.
struct Period {
    length: Duration,
    /// When the logged period ended.
    end: Time,
    /// By part.
    logs: Vec<Log>,
    /// When events take place, in picoseconds since its beginning.
    events: Vec<u64>,
    /// Packets that come out of links.
    hops: u64,
}

impl Period {
    fn new(logs: Vec<Log>, hops: u64, length: Duration, end: Time) -> Period {
        let since = |at: &Time| at.ps() + length.ps() - end.ps();
        let mut events: Vec<u64> = logs.iter().flat_map(|log| &log.events).map(since).collect();
        events.sort_unstable();
        events.dedup();
        Period { length, end, logs, events, hops }
    }
}

/// The shortest time after which what arrives at each node repeats, if it is no longer than `most`; 1 if nothing
/// arrives. The error says why there is none; it does not depend on the order of nodes.
fn period_of_all(nodes: impl Iterator<Item = Vec<(u64, u64)>>, most: u64) -> Result<u64, &'static str> {
    let mut period = Some(1);
    for arrivals in nodes {
        let of_node = period_of(&arrivals).ok_or("no period was found in what comes to nodes")?;
        period = period.and_then(|period| lcm(period, of_node)).filter(|&period| period <= most);
    }
    period.ok_or("nodes have periods without a short common multiple")
}

/// By node, what arrived since then: the time since the arrival before, and the digest of the packet.
fn by_node(log: &Log, since: Time) -> Vec<Vec<(u64, u64)>> {
    let nodes = log.arrivals.iter().map(|of| of.node as usize + 1).max().unwrap_or(0);
    let mut last = vec![None; nodes];
    let mut arrivals = vec![Vec::new(); nodes];
    for arrival in log.arrivals.iter().filter(|of| of.at >= since) {
        let node = arrival.node as usize;
        if let Some(last) = last[node].replace(arrival.at) {
            arrivals[node].push(((arrival.at - last).ps(), arrival.what()));
        }
    }
    arrivals.retain(|of| !of.is_empty());
    arrivals
}

/// The shortest time after which arrivals repeat, in picoseconds, if they do so often enough.
fn period_of(arrivals: &[(u64, u64)]) -> Option<u64> {
    // By arrival: how many up to it are the same as the first ones (the failure function of Knuth, Morris and Pratt).
    let mut matched = vec![0; arrivals.len()];
    for end in 1..arrivals.len() {
        let mut of: usize = matched[end - 1];
        while of > 0 && arrivals[of] != arrivals[end] {
            of = matched[of - 1];
        }
        matched[end] = of + usize::from(arrivals[of] == arrivals[end]);
    }
    let count = arrivals.len() - matched.last()?;
    (count * REPEATS <= arrivals.len()).then(|| arrivals[..count].iter().map(|of| of.0).sum())
}

fn lcm(one: u64, other: u64) -> Option<u64> {
    let (mut rest, mut divisor) = (one, other);
    while rest > 0 {
        (rest, divisor) = (divisor % rest, rest);
    }
    (one / divisor.max(1)).checked_mul(other)
}

#[cfg(test)]
mod tests;
