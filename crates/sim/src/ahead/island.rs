//! An island's search for what it can skip.
//!
//! It is a coroutine, since several islands search at a time, and each waits for the engine again and again.

use std::cell::{Ref, RefCell, RefMut};
use std::convert::Infallible;
use std::sync::Arc;
use std::task::Poll;

use driver::{Log, Names, Probe};
use engine::Partition;
use node::Walk;
use node::walk::{Amounts, History, Notes, Recurrence, Renamed, Steady, Unsteady, recurrence};
use run::{Host, HostJobs, Plan};
use scenario::FastForward;
use units::{Duration, Time};

use super::again::ranks_act_at;
use super::budget::Budget;
use super::course::Course;
use super::groups::Groups;
use super::own::{Own, OwnMut};
use super::period::{Period, by_node, period_of_all};
use super::{Run, turnover};

/// The first span of listening is the time that so many full packets take on a host's link.
pub(super) const FIRST_PACKETS: u64 = 24;
/// The longest time of listening, in full packets.
const MOST_PACKETS: u64 = 24 << 9;
/// Listening takes longer only after it has found nothing this many times.
const EAGER: u32 = 4;
/// Where looking has cost enough, the run goes on for at most so many times the time of listening before that is asked
/// again.
const MOST_PAUSE: u64 = 16;
/// The state may recur only after several periods of the arrivals, as where a sender counts the packets of a window. At
/// first so many periods are tried, and twice as many after each failure: most states that do not recur at once are
/// still settling.
pub(super) const FIRST_MULTIPLES: u32 = 2;
/// The most periods that are ever tried.
pub(super) const MOST_MULTIPLES: u32 = 128;

/// A part of the network that shares no flow with others.
pub(super) struct Island<'r, 'a, P: Probe, W: FnMut(Time, u64) -> bool> {
    pub run: &'r RefCell<Run<'a, P, W>>,
    pub plan: &'a Plan,
    /// Its districts, one bit each.
    pub districts: u32,
    pub groups: Groups<'a>,
    /// By part, whether it belongs to the island.
    parts: Vec<bool>,
    /// The time at which its state is: the engine's, or later if it has been moved ahead.
    pub now: Time,
    listening: Listening,
    /// In approximate mode: what flows have done since the last of them began or ended.
    history: History,
    /// How many flows its busiest host must have started before somebody looks for a period in that, and how much it
    /// must have recorded of flows before somebody counts them.
    pub starts_wanted: usize,
    pub records_wanted: usize,
    /// How much time was skipped by averages.
    estimated: Duration,
    /// What skips within messages goes no further than this.
    pub bound: Time,
    /// In exact mode, while a period is simulated in which messages follow each other: all that happens in it.
    recording: Option<Course>,
}

/// How long to listen.
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

impl<'r, 'a, P: Probe, W: FnMut(Time, u64) -> bool> Island<'r, 'a, P, W> {
    pub fn new(run: &'r RefCell<Run<'a, P, W>>, districts: u32) -> Self {
        let (plan, now, parts) = (run.borrow().plan, run.borrow().now, run.borrow().parts_of(districts));
        // There is a host, or nothing would be sent.
        let packet = plan.sites[0].nic_rate.transmit(u64::from(plan.sites[0].mtu_bytes));
        let (first, most) = (packet * FIRST_PACKETS, packet * MOST_PACKETS);
        let listening = Listening { first, most, span: first, vain: 0, told: 0 };
        let groups = Groups::new(plan, run.borrow().cut);
        let island = Island {
            run,
            plan,
            districts,
            groups,
            parts,
            now,
            listening,
            history: History::default(),
            starts_wanted: turnover::FIRST_STARTS,
            records_wanted: 0,
            estimated: Duration::ZERO,
            bound: Time::MAX,
            recording: None,
        };
        if !island.is_exact() {
            // Several groups, and the whole island, are logged at a time.
            island.own_mut().hosts_mut().filter_map(Host::jobs_mut).for_each(HostJobs::keep_log);
        }
        island
    }

    /// Looks for something to skip for as long as the run lasts.
    pub async fn live(mut self) -> Infallible {
        loop {
            self.look().await;
            self.pause().await;
        }
    }

    /// Its parts. Nobody keeps them while waiting for the engine.
    pub fn own(&self) -> Own<'_, P> {
        Own { all: Ref::map(self.run.borrow(), |run| &*run.parts), which: &self.parts }
    }

    pub fn own_mut(&self) -> OwnMut<'_, P> {
        OwnMut { all: RefMut::map(self.run.borrow_mut(), |run| &mut *run.parts), which: &self.parts }
    }

    /// Until when nothing comes from outside, and the run goes on.
    pub fn alone_until(&self) -> Time {
        let run = self.run.borrow();
        run.connections.alone_until(self.districts).min(run.stuck.next_at()).min(self.plan.horizon)
    }

    /// When the next sample is taken, in all parts at once.
    pub fn next_sample_at(&self) -> Time {
        self.own().iter().map(|part| part.0.next_sample_at()).next().unwrap_or(Time::MAX)
    }

    /// Waits until a span of time has been simulated, or, while groups sleep, until a message may have started.
    async fn wait(&mut self, span: Duration) {
        let (run, districts, now, until) = (self.run, self.districts, self.now, self.now.saturating_add(span));
        let stirs = Some(run.borrow()).filter(|run| run.heeds_starts).map(|run| run.stirs);
        self.now = std::future::poll_fn(|_| {
            let run = &mut *run.borrow_mut();
            run.waits.insert(districts, until);
            let over = run.now >= until || stirs.is_some_and(|stirs| run.stirs > stirs);
            if over { Poll::Ready(until.min(run.now.max(now))) } else { Poll::Pending }
        })
        .await;
    }

    /// Simulates a span of time.
    pub async fn go(&mut self, span: Duration) {
        match self.recording {
            None => self.wait(span).await,
            Some(_) => drop(self.log(span).await),
        }
    }

    /// Simulates a span of time, and skips what it can within messages.
    pub async fn go_on(&mut self, span: Duration) {
        self.bound = self.now.saturating_add(span);
        while self.now < self.bound {
            // Looking within messages never comes here, so that it ends; the compiler can't know that.
            Box::pin(self.look_within()).await;
            self.pause().await;
        }
        self.wake_all().await;
        self.bound = Time::MAX;
    }

    /// The same, and says what has happened: all, or in approximate mode, what has happened to messages and ranks.
    pub async fn go_on_recording(&mut self, span: Duration) -> Course {
        if self.is_exact() {
            self.recording = Some(Course::default());
            self.go_on(span).await;
            return self.recording.take().expect("nobody else takes it");
        }
        let begun: Vec<Log> = self.own_mut().iter_mut().map(|part| part.0.begin_log_of_hosts()).collect();
        let from = self.now;
        self.go_on(span).await;
        let logs = self.own_mut().iter_mut().zip(begun).map(|(part, log)| part.0.take_log_of_hosts(log)).collect();
        let mut course = Course::default();
        course.logged(from, self.now, logs);
        course
    }

    /// Looking costs so much.
    pub fn spend(&self, cost: impl Fn(&mut Budget)) {
        cost(&mut self.run.borrow_mut().budget);
    }

    /// Looks for something to skip, and skips it.
    async fn look(&mut self) {
        self.skip_turnovers().await;
        self.look_within().await;
    }

    /// Looks for something to skip within messages, and skips it.
    async fn look_within(&mut self) {
        let rest = self.bound.since(self.now);
        let idle = self.idle().min(rest);
        if idle > self.listening.span {
            self.wake_all().await;
            return self.go(idle).await;
        }
        let span = self.listening.span.min(rest);
        if span < self.listening.first {
            self.wake_all().await;
            return self.go(span).await;
        }
        if !self.look_in_groups().await {
            self.skip_within(span).await;
        }
    }

    /// The time until its next event, in which there is nothing to listen to. Zero while groups sleep, since these have
    /// no events.
    fn idle(&self) -> Duration {
        if self.run.borrow().asleep.get(&self.districts).is_some_and(|&count| count > 0) {
            return Duration::ZERO;
        }
        let next = self.own().iter().map(Partition::next_at).min().unwrap_or(Time::MAX);
        next.since(self.now)
    }

    /// Listens for a span of time, and skips what repeats within messages, or is steady.
    async fn skip_within(&mut self, span: Duration) {
        let recurs = match self.listen(span).await {
            None => false,
            Some(mut period) => {
                let multiples = (FIRST_MULTIPLES << self.listening.vain.min(16)).min(self.most_multiples(period));
                let any = self.skip(&mut period, multiples, false).await;
                while any && self.skip(&mut period, 1, false).await {}
                any
            }
        };
        let tells = self.tells();
        if tells != self.listening.told {
            let Listening { first, most, .. } = self.listening;
            self.listening = Listening { first, most, span: first, vain: 0, told: tells };
            self.history.clear();
            return;
        }
        self.listening.vain = if recurs { 0 } else { self.listening.vain + 1 };
        // Where the state recurs, nothing is estimated.
        let longer = match self.is_exact() || recurs {
            true => self.listening.vain >= EAGER,
            false => self.skip_steady(span),
        };
        if recurs {
            self.listening.span = self.listening.first;
        } else if longer {
            self.listen_longer();
        }
    }

    /// The most multiples of a period that are tried. Meanwhile flows are not observed; so in approximate mode, where
    /// averages may skip them, the multiples take no longer than the longest time of listening.
    fn most_multiples(&self, period: Duration) -> u32 {
        let audible = self.listening.most.ps() / period.ps();
        match self.is_exact() {
            true => MOST_MULTIPLES,
            false => audible.clamp(FIRST_MULTIPLES.into(), MOST_MULTIPLES.into()) as u32,
        }
    }

    pub fn is_exact(&self) -> bool {
        self.plan.scenario.skips() == FastForward::Exact
    }

    fn listen_longer(&mut self) {
        self.listening.span = (self.listening.span * 2).min(self.listening.most);
    }

    /// For how long somebody listens at first.
    pub fn first_span(&self) -> Duration {
        self.listening.first
    }

    /// For how long somebody listens at most.
    pub fn longest_span(&self) -> Duration {
        self.listening.most
    }

    /// Goes on without looking while that has cost enough.
    async fn pause(&mut self) {
        let span = self.listening.span;
        let mut step = span;
        while self.now < self.bound {
            let (short, before) = (self.run.borrow().short(), self.run.borrow().packet_hops());
            if short == 0 {
                return;
            }
            self.wake_all().await;
            self.go(step.min(self.bound.since(self.now))).await;
            if self.run.borrow().packet_hops() - before < short / 2 {
                step = (step * 2).min(span * MOST_PAUSE);
            }
        }
    }

    /// The number of records of flows at all of its hosts.
    fn tells(&self) -> usize {
        self.own().hosts().map(|host| host.records.len()).sum()
    }

    /// Simulates a span of time, and logs what happens in it, by part.
    async fn log(&mut self, span: Duration) -> Arc<[Log]> {
        self.own_mut().iter_mut().for_each(|part| part.0.begin_log());
        let (from, before) = (self.now, self.own_hops());
        self.wait(span).await;
        let hops = self.own_hops() - before;
        self.spend(|budget| budget.logged(hops));
        let logs: Arc<[Log]> = self.own_mut().iter_mut().map(|part| part.0.take_log()).collect();
        if let Some(course) = &mut self.recording {
            course.logged(from, self.now, logs.clone());
        }
        logs
    }

    /// Listens for a span of time and looks for a period in what comes to the nodes.
    async fn listen(&mut self, span: Duration) -> Option<Duration> {
        let since = self.now.saturating_add(span / 2);
        let logs = self.log(span).await;
        match period_of_all(logs.iter().flat_map(|log| by_node(log.arrivals.iter(), since)), 4 * span.ps()) {
            Ok(period) => (period > 1).then(|| Duration::from_ps(period)),
            Err(why) => {
                self.because(why);
                None
            }
        }
    }

    /// Simulates up to `most_multiples` times `period` until the state has recurred, then skips as many periods as it
    /// can. Returns whether it has skipped any; if so, `period` is now the period of the state. `between`: messages
    /// follow each other in a period, so that it may itself be skipped in part.
    pub async fn skip(&mut self, period: &mut Duration, most_multiples: u32, between: bool) -> bool {
        let Some(before) = self.note() else { return false };
        let ranks = ranks_act_at(self.own().hosts());
        let (hops_before, estimated_before) = (self.own_hops(), self.estimated);
        let mut course = Course::default();
        let mut multiple = 0;
        let found = loop {
            multiple += 1;
            if between {
                course.append(self.go_on_recording(*period).await);
            } else if *period > self.bound.since(self.now) {
                return false;
            } else if self.is_exact() {
                let from = self.now;
                let logs = self.log(*period).await;
                course.logged(from, self.now, logs);
            } else {
                self.go(*period).await;
            }
            let Some(after) = self.note() else { return false };
            match recurrence(&before, &after) {
                Ok(found) => break found,
                Err(_) if multiple < most_multiples && self.run.borrow().short() == 0 => {}
                Err(differs) => {
                    self.because(&differs.to_string());
                    return false;
                }
            }
        };
        *period = found.period;
        let (hops, estimated) = (self.own_hops() - hops_before, self.estimated - estimated_before);
        let period = Arc::new(Period::new(course, hops, estimated, found.period, self.now));
        if hops == 0 {
            // Nothing is under way, so that nothing is gained; and windows follow from events.
            self.because("nothing happened in a period");
            return false;
        }
        if !found.turnover {
            return self.skip_periods(&found, &period).await;
        }
        // While an outer period is simulated, only packets are repeated: a course holds no new names of flows.
        self.bound == Time::MAX && self.repeat_turnover(&found, &period, &ranks)
    }

    /// Skips as many periods as it can, and simulates those in which samples are taken.
    async fn skip_periods(&mut self, found: &Recurrence, period: &Arc<Period>) -> bool {
        let until = found.until.min(self.alone_until()).min(self.bound);
        let (mut left, mut any) = (self.before_ends(found), false);
        loop {
            let sample = self.next_sample_at();
            let times = (until.min(sample).since(self.now).ps() / period.length.ps()).min(left);
            if times > 0 {
                if let Some(course) = &mut self.recording {
                    course.repeated(self.now, period, times);
                }
                self.move_ahead(found, period, times, &Names::default(), Arc::default());
                (left, any) = (left - times, true);
            }
            if left == 0 || self.now + period.length > until {
                self.look_at_hosts();
                return any;
            }
            self.go(period.length).await;
            left -= 1;
        }
    }

    /// Observes what flows have done. If they are steady, says how they are moved ahead, and for how long: for `span`
    /// at least, which is the time between observations, and not beyond `until`. Also says whether the next
    /// observations should be further apart.
    pub fn steady(
        &mut self,
        history: &mut History,
        notes: &Notes,
        span: Duration,
        until: Time,
    ) -> (Option<(Steady, Duration)>, bool) {
        if let Some(why) = notes.not_by_averages() {
            self.because(why);
            return (None, true);
        }
        let longer = history.add(notes);
        // It finds each position of each flow, which costs as much again.
        self.spend(|budget| budget.noted(notes.of_network() as u64));
        let steady = match history.steady() {
            Ok(steady) => steady,
            Err(Unsteady::Slow) => {
                self.because("a flow sends too little to say how fast it is");
                return (None, history.is_slow());
            }
            Err(Unsteady::Unsteady) => {
                self.because("flows are not steady");
                return (None, longer);
            }
        };
        let left = 2 * u64::from(self.plan.sites[0].mtu_bytes);
        let before_ends = steady.before_ends(|flow| self.plan.flows.get(flow).bytes, left, span);
        let until = notes.appointment().min(steady.until()).min(until);
        // Whole nanoseconds, since some schemes tell times in these.
        let time = before_ends.min(steady.trusted()).min(until.since(self.now));
        let time = Duration::from_ns(time.ps() / 1_000);
        if time < span {
            self.because("flows are steady for a short time only");
        }
        ((time >= span).then_some((steady, time)), longer)
    }

    /// If flows are steady, moves everything ahead by what they do on average, until one nears its end. Returns whether
    /// the next observation should take longer.
    fn skip_steady(&mut self, span: Duration) -> bool {
        let Some(notes) = self.note() else { return true };
        let mut history = std::mem::take(&mut self.history);
        let (steady, longer) = self.steady(&mut history, &notes, span, self.alone_until().min(self.bound));
        self.history = history;
        let Some((mut steady, time)) = steady else { return longer };
        let end = self.now + time;
        let hops = self.own_hops();
        // Each step ends at the next sample or before it. It moves all events behind its end; then the sample is taken.
        while self.now < end {
            let sample = self.next_sample_at();
            let time = end.min(sample).since(self.now);
            if time > Duration::ZERO {
                self.shift(&steady.next(time), time);
            }
            if self.now == sample && self.now < end {
                self.own_mut().iter_mut().for_each(|part| part.0.sample(sample));
            }
        }
        self.look_at_hosts();
        self.skipped_hops(self.own_hops() - hops);
        longer
    }

    /// The state was moved ahead: a host may have been about to start a flow or to let a rank act, which stays where it
    /// is.
    pub fn look_at_hosts(&self) {
        self.own_mut().iter_mut().for_each(|part| part.0.look_at_hosts());
    }

    /// Moves the whole network ahead by so much time.
    fn shift(&mut self, amounts: &Arc<Amounts>, time: Duration) {
        let mut walk = Walk::shift(self.now, self.run.borrow().headers.clone(), amounts.clone());
        self.own_mut().iter_mut().for_each(|part| part.0.visit(&mut walk));
        walk.finish().expect("the same walk was possible just before");
        self.history.moved(amounts);
        self.own_mut().iter_mut().for_each(|part| part.0.mark_digests(time));
        self.skip_windows(self.now + time);
        self.moved(time, time);
    }

    /// Moves the engine up to then, if nothing else happens before. How many windows would have begun is not known.
    fn skip_windows(&self, until: Time) {
        if self.is_alone(until) {
            let run = &mut *self.run.borrow_mut();
            run.window_end = until.max(run.window_end + (until - self.now));
            run.now = until;
        }
    }

    /// Whether the engine is at its time, and nothing happens elsewhere before another time.
    fn is_alone(&self, until: Time) -> bool {
        let run = self.run.borrow();
        let mut others = run.parts.iter().zip(&self.parts).filter(|(_, own)| !**own);
        run.now == self.now && run.waits.len() == 1 && others.all(|(part, _)| part.next_at() >= until)
    }

    /// Moves everything ahead by so many periods. `names` are the names of flows in each period, and `renamed` gives
    /// each flow its name after the last one.
    pub fn move_ahead(
        &mut self,
        found: &Recurrence,
        period: &Arc<Period>,
        times: u64,
        names: &Names,
        renamed: Arc<Renamed>,
    ) {
        let mut walk = Walk::ahead(self.now, self.run.borrow().headers.clone(), found.moves.clone(), renamed, times);
        self.own_mut().iter_mut().for_each(|part| part.0.visit(&mut walk));
        walk.finish().expect("the same walk was possible just before");
        for (place, part) in self.own_mut().iter_mut().enumerate() {
            if self.is_exact() {
                let course = period.course.of_part(place);
                part.0.repeat_digests(&course, self.now - period.end, period.length, times, names);
            } else {
                part.0.mark_digests(period.length * times);
            }
        }
        let until = self.now + period.length * times;
        if !self.is_exact() {
            self.skip_windows(until);
        } else if self.is_alone(until) {
            self.run.borrow_mut().skip_all(period, times);
        } else {
            self.own_mut().iter_mut().take(1).for_each(|part| part.1.extend(&period.events, self.now, times));
        }
        self.moved(period.length * times, period.estimated * times);
        self.skipped_hops(period.hops * times);
    }

    /// Its state has been moved ahead by so much time, so much of which by averages.
    fn moved(&mut self, time: Duration, estimated: Duration) {
        self.now += time;
        self.groups.were_moved();
        {
            let run = &mut *self.run.borrow_mut();
            run.ahead_until = run.ahead_until.max(self.now);
        }
        self.count_skip(time, estimated);
    }

    /// So much time has been skipped, so much of which by averages.
    pub fn count_skip(&mut self, time: Duration, estimated: Duration) {
        self.estimated += estimated;
        let run = &mut *self.run.borrow_mut();
        run.skipped.skips += 1;
        run.skipped.time_ps += time.ps();
        run.skipped.estimated_ps += estimated.ps();
    }

    /// Counts `hops` more packet-hops as skipped.
    pub fn skipped_hops(&self, hops: u64) {
        self.run.borrow_mut().skipped.packet_hops += hops;
    }

    /// This did not repeat. What does not repeat within messages is no reason while a period is simulated in which
    /// messages follow each other: what keeps that period from recurring is.
    pub fn because(&self, why: &str) {
        if self.bound == Time::MAX {
            self.run.borrow_mut().because(why);
        }
    }

    /// The packet-hops of its nodes.
    pub fn own_hops(&self) -> u64 {
        self.own().iter().map(|part| part.0.packet_hops).sum()
    }

    /// Notes the whole state, if all that has some says how it moves.
    pub fn note(&mut self) -> Option<Notes> {
        let mut walk = Walk::note(self.now, self.run.borrow().headers.clone());
        self.own_mut().iter_mut().for_each(|part| part.0.visit(&mut walk));
        self.noted(walk)
    }

    /// What a walk has noted, if all that it came to says how it moves.
    pub fn noted(&mut self, walk: Walk) -> Option<Notes> {
        self.spend(|budget| budget.noted(walk.noted() as u64));
        let run = &mut *self.run.borrow_mut();
        match walk.finish() {
            Ok(notes) => notes,
            Err(refusal) => {
                run.refused = true;
                run.skipped.reason = Some(refusal);
                None
            }
        }
    }

    /// How many periods repeat before a flow nears its end, or a number its limit.
    pub fn before_ends(&self, found: &Recurrence) -> u64 {
        // The last packet of a flow may be shorter than those before it.
        let packet = u64::from(self.plan.sites[0].mtu_bytes);
        let of = |&(flow, bytes, last): &(_, u64, u64)| {
            self.plan.flows.get(flow).bytes.saturating_sub(last + 2 * packet) / bytes
        };
        found.flows.iter().map(of).min().unwrap_or(u64::MAX).min(found.most)
    }
}
