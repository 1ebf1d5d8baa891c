//! Periods in which flows begin and end, as where messages of a job follow each other.
//!
//! The state of the network recurs, but each flow stands where another stood ([`Recurrence::heirs`]). How far that goes
//! is a question to the job: its ranks are told again, in order, what they were told in the period that was logged, of
//! the flows that stand there now. As long as they do what they did (start as many flows, of the same length, to the
//! same hosts, which take the same paths, and act by themselves at the same times), the network has no way to behave
//! otherwise, and the period is skipped. Flows' records are those of the logged period, under the new names.
//!
//! The period is found in what one host starts: when, to whom, and how long.

use std::sync::Arc;

use driver::{Log, Names, Probe};
use node::Packet;
use node::onward_path::Downstream;
use node::walk::{Recurrence, Renamed, recurrence};
use run::{FlowEvent, FlowInfo, FlowRecord, Host, HostJobs, Measured, Plan, Told};
use rustc_hash::FxHashMap;
use units::{Duration, FlowId, HostId, NodeId, PortId, Time};

use super::island::Island;
use super::period::Period;
use crate::part::Part;

/// The search for a period begins when the busiest host has started so many flows.
pub(super) const FIRST_STARTS: usize = 6;
/// The search is repeated once that host has started so many more: one part in so many.
const MORE_STARTS: usize = 16;
/// The state may recur only after several periods of a host's starts: at most so many are tried.
const MULTIPLES: u32 = 2;
/// After so many failures in a row the search ends. A single failure may be due to an appointment that came in between.
const MISSES: u32 = 2;
/// Most periods that are repeated at once, since each has its own names of flows.
const AT_ONCE: u64 = 64;

impl<P: Probe, W: FnMut(Time, u64) -> bool> Island<'_, '_, P, W> {
    /// When ranks act by themselves, host by host.
    pub(super) fn ranks_act_at(&self) -> Vec<Time> {
        self.own().iter().flat_map(ranks).map(HostJobs::next_at).collect()
    }

    /// Skips periods in which flows begin and end, if there are any.
    pub(super) async fn skip_turnovers(&mut self) {
        // With samples, one is always due before a period is over.
        if self.plan.jobs.is_empty() || self.sample_comes_soon() {
            return;
        }
        let Some(started) = self.busiest_starts() else { return };
        let period = period_of_starts(&started).filter(|&period| self.starts_alike(period));
        let Some(mut period) = period else {
            self.want_more_starts(started.len());
            return;
        };
        let mut misses = 0;
        while misses < MISSES {
            misses += 1;
            let mut multiples = MULTIPLES;
            if !self.affords_log(period * u64::from(MULTIPLES)) {
                let Some(found) = self.recurs_after(period).await else { continue };
                (period, multiples) = (found, 1);
            }
            while self.skip(&mut period, multiples).await {
                (misses, multiples) = (0, 1);
            }
        }
        let started = busiest_host(&self.own()).map_or(0, |records| starts(records).count());
        self.want_more_starts(started);
    }

    /// The search has failed when the busiest host had started so many flows.
    fn want_more_starts(&mut self, started: usize) {
        self.starts_wanted = started + started / MORE_STARTS + 1;
    }

    /// Simulates some periods of what a host starts, until the state has recurred. Returns the time after which it has,
    /// if it has. Nothing is logged, so that this costs little where the state does not recur.
    async fn recurs_after(&mut self, period: Duration) -> Option<Duration> {
        let before = self.note()?;
        for _ in 0..MULTIPLES {
            self.go(period).await;
            let after = self.note()?;
            match recurrence(&before, &after) {
                Ok(found) => return Some(found.period),
                Err(differs) => self.because(&differs.to_string()),
            }
        }
        None
    }

    /// Whether a sample is due before two messages could follow each other.
    fn sample_comes_soon(&self) -> bool {
        self.plan.scenario.measure.interval != Duration::ZERO
    }

    /// The flows that the busiest host has started, if they are enough: when, and a word for length, receiver and
    /// class.
    fn busiest_starts(&self) -> Option<Vec<(Time, u64)>> {
        let own = self.own();
        let records = busiest_host(&own).filter(|records| records.len() >= self.starts_wanted)?;
        let what = |flow: FlowId| {
            let FlowInfo { dst, bytes, class, .. } = *self.plan.flows.get(flow);
            bytes ^ u64::from(dst.0) << 40 ^ u64::from(class) << 32
        };
        let started: Vec<_> = starts(records).map(|record| (record.due, what(record.flow))).collect();
        (started.len() >= self.starts_wanted).then_some(started)
    }

    /// Whether each host started, in the last period, flows that the network treats like those of the period before.
    fn starts_alike(&self, period: Duration) -> bool {
        let since = |periods: u64| Time::from_ps(self.now.ps().saturating_sub(period.ps() * periods));
        let (first, second) = (since(2), since(1));
        let flows = |records: &[FlowRecord], from: Time, until: Time| {
            let last = records.iter().rev().take_while(|record| record.due >= from);
            let started = last.filter(|record| record.due < until && matches!(record.fate, FlowEvent::Started));
            started.map(|record| record.flow).collect::<Vec<_>>()
        };
        let alike = self.run.borrow().alike.clone();
        self.own().iter().flat_map(|part| &part.0.hosts).all(|slot| {
            let records = &slot.host.records;
            let (before, after) = (flows(records, first, second), flows(records, second, self.now));
            before.len() == after.len() && before.iter().zip(after).all(|(&one, other)| alike.are(one, other))
        })
    }

    /// Repeats a period for as long as ranks do what they did in it. Returns whether it was repeated at all. `ranks`
    /// says, as of the period's beginning, when ranks would next act by themselves.
    pub(super) fn repeat_turnover(&mut self, found: &Recurrence, period: &Period, ranks: &[Time]) -> bool {
        let until = found.until.min(self.plan.horizon);
        let most = (until.since(self.now).ps() / period.length.ps()).min(self.before_ends(found));
        let alike = self.run.borrow().alike.clone();
        let again = Again::new(alike, &self.own(), found, period, ranks);
        let mut again = match again {
            Ok(again) => again,
            Err(reason) => {
                self.because(&reason);
                return false;
            }
        };
        let mut left = most;
        while left > 0 {
            let (names, hosts) = again.repeat(&self.own(), left.min(AT_ONCE));
            let times = names.later.len() as u64;
            let Some(last) = names.later.last() else { break };
            let renamed: Renamed = again.called.iter().copied().zip(last.iter().copied()).collect();
            self.move_ahead(found, period, times, &names, Arc::new(renamed));
            settle(&mut self.own_mut(), hosts);
            again.record(&mut self.own_mut(), &names);
            again.called.clone_from(last);
            again.times += times;
            left -= times;
            if times < AT_ONCE {
                break;
            }
        }
        if again.times < most {
            self.because("ranks do not go on as they did");
        }
        again.times > 0
    }
}

/// The records of the host that has the most.
fn busiest_host<P: Probe>(parts: &[Part<P>]) -> Option<&[FlowRecord]> {
    let records = parts.iter().flat_map(|part| &part.0.hosts).map(|slot| &slot.host.records[..]);
    // The first of several hosts with as many.
    records.reduce(|most, other| if other.len() > most.len() { other } else { most })
}

/// The ranks at each host of a part that has some.
fn ranks<P: Probe>(part: &Part<P>) -> impl Iterator<Item = &HostJobs> {
    part.0.hosts.iter().filter_map(|slot| slot.host.jobs())
}

/// Puts the ranks into the state that they have after the periods that were told again.
fn settle<P: Probe>(parts: &mut [Part<P>], hosts: Vec<HostJobs>) {
    let slots = parts.iter_mut().flat_map(|part| &mut part.0.hosts);
    for (jobs, mut told) in slots.filter_map(|slot| slot.host.jobs_mut()).zip(hosts) {
        told.leave_as(jobs);
        *jobs = told;
    }
    parts.iter_mut().for_each(|part| part.0.ranks_settled());
}

fn starts(records: &[FlowRecord]) -> impl Iterator<Item = &FlowRecord> {
    records.iter().filter(|record| matches!(record.fate, FlowEvent::Started))
}

/// The time after which a host's starts repeat. Of several candidates, the one that has held for the longest time up to
/// now, and at least twice. Earlier starts may differ, since ranks may have been settling.
fn period_of_starts(started: &[(Time, u64)]) -> Option<Duration> {
    let gaps: Vec<_> = started.windows(2).rev().map(|pair| (pair[1].0.since(pair[0].0).ps(), pair[1].1)).collect();
    let like = matches(&gaps);
    // Of periods that have held equally long, the shortest.
    let lasted = |&period: &usize| (like[period] + period, std::cmp::Reverse(period));
    let period = (1..gaps.len()).filter(|&period| like[period] >= period).max_by_key(lasted)?;
    Some(Duration::from_ps(gaps[..period].iter().map(|gap| gap.0).sum())).filter(|&period| period > Duration::ZERO)
}

/// By place: how many items from there on equal those at the beginning (the Z function).
fn matches<T: PartialEq>(of: &[T]) -> Vec<usize> {
    let mut like = vec![0; of.len()];
    let (mut begin, mut end) = (0, 0);
    for at in 1..of.len() {
        let known = if at < end { like[at - begin].min(end - at) } else { 0 };
        like[at] = known + of[at + known..].iter().zip(&of[known..]).take_while(|pair| pair.0 == pair.1).count();
        if at + like[at] > end {
            (begin, end) = (at, at + like[at]);
        }
    }
    like
}

/// Which flows the network treats alike.
pub(super) struct Alike<'a> {
    plan: &'a Plan,
    /// The paths, where a hash chooses them.
    paths: Option<Downstream>,
}

impl<'a> Alike<'a> {
    pub fn new(plan: &'a Plan) -> Alike<'a> {
        let hashed = !plan.jobs.is_empty() && plan.balancing.iter().any(|balancing| balancing.by_hash());
        let of = || Downstream::new(&plan.fabric, plan.routes.clone(), plan.balancing.clone(), plan.scenario.seed);
        Alike { plan, paths: hashed.then(of) }
    }

    /// Whether the network treats two flows alike.
    pub fn are(&self, one: FlowId, other: FlowId) -> bool {
        let (first, second) = (self.plan.flows.get(one), self.plan.flows.get(other));
        let what = |of: &FlowInfo| (of.src, of.dst, of.bytes, of.class, of.transport);
        what(first) == what(second) && self.take_one_path(first, one, other)
    }

    /// Whether a hash sends the packets of both flows, and the answers to them, over the same paths.
    fn take_one_path(&self, info: &FlowInfo, one: FlowId, other: FlowId) -> bool {
        let Some(paths) = self.paths.as_ref().filter(|_| self.plan.balancing[usize::from(info.transport)].by_hash())
        else {
            return true;
        };
        // Failures change tables and so paths: the flows are then taken to differ.
        if !self.plan.scenario.failure.is_empty() {
            return false;
        }
        let path = |flow: FlowId, from: HostId, to: HostId| {
            let mut packet = Packet::bare(flow, from, to);
            packet.transport = info.transport;
            paths.onward(NodeId(from.0), PortId(0), &packet).map(|hop| (hop.switch, hop.port)).collect::<Vec<_>>()
        };
        [(info.src, info.dst), (info.dst, info.src)]
            .iter()
            .all(|&(from, to)| path(one, from, to) == path(other, from, to))
    }
}

/// A logged period whose events are told to the ranks again, under other names of flows.
struct Again<'a> {
    alike: Arc<Alike<'a>>,
    /// What ranks were told and did, in order of time: at which host (counted among those with ranks), when and what.
    told: Vec<(usize, Time, Told)>,
    /// The flows of the logged period, and the place of each in that list.
    first: Vec<FlowId>,
    place: FxHashMap<FlowId, usize>,
    /// Places in `first`: a flow at the period's beginning, and the flow that stood in its place at the end.
    heirs: Vec<(usize, usize)>,
    /// The names of these flows in the last repetition so far, and the number of repetitions.
    called: Vec<FlowId>,
    times: u64,
    length: Duration,
    /// When the logged period ended.
    end: Time,
    /// By host with ranks: whether the time at which they act next moves with the clock; if not, it stays.
    moves: Vec<bool>,
    /// By part and host: what was recorded in the period.
    records: Vec<Vec<Recorded>>,
    /// If something goes by the order of flows' numbers: their places in this order.
    in_order: Option<Vec<usize>>,
}

impl<'a> Again<'a> {
    fn new<P: Probe>(
        alike: Arc<Alike<'a>>,
        parts: &[Part<P>],
        found: &Recurrence,
        period: &Period,
        ranks_before: &[Time],
    ) -> Result<Again<'a>, String> {
        let mut told = Vec::new();
        let mut before = 0;
        for (part, log) in parts.iter().zip(&period.logs) {
            let mut place = vec![usize::MAX; part.0.hosts.len()];
            let with_ranks = (0..).zip(&part.0.hosts).filter(|of: &(usize, _)| of.1.host.jobs().is_some());
            with_ranks.zip(before..).for_each(|((host, _), at)| place[host] = at);
            before += ranks(part).count();
            told.extend(log.told.iter().map(|&(host, at, told)| (place[host as usize], at, told)));
        }
        // The log goes host by host. A stable sort keeps together what a host does at one instant.
        told.sort_by_key(|of| of.1);
        let begin = told.iter().filter_map(|of| match of.2 {
            Told::Starts(flow) => Some(flow),
            _ => None,
        });
        let first: Vec<FlowId> = found.heirs.keys().copied().chain(begin).collect();
        let place: FxHashMap<FlowId, usize> = first.iter().copied().zip(0..).collect();
        let mut heirs = Vec::with_capacity(found.heirs.len());
        for (flow, heir) in &found.heirs {
            match place.get(heir) {
                Some(&heir) => heirs.push((place[flow], heir)),
                None => return Err("a flow of no job has come".to_owned()),
            }
        }
        let recorded = |(part, log): (&Part<P>, &Log)| {
            let hosts = part.0.hosts.iter().zip(log.records.iter().zip(&log.measures));
            hosts.map(|(slot, (&from, &also))| Recorded::since(&slot.host, from, also)).collect()
        };
        let records: Vec<Vec<Recorded>> = parts.iter().zip(&period.logs).map(recorded).collect();
        if records.iter().flatten().flat_map(Recorded::flows).any(|flow| !place.contains_key(&flow)) {
            return Err("something happened to a flow of no job".to_owned());
        }
        let moves =
            (parts.iter().flat_map(ranks).zip(ranks_before)).map(|(jobs, &was)| jobs.next_at() != was).collect();
        let in_order = found.by_number.then(|| {
            let mut places: Vec<usize> = (0..first.len()).collect();
            places.sort_unstable_by_key(|&place| first[place]);
            places
        });
        let called = first.clone();
        let (length, end) = (period.length, period.end);
        Ok(Again { alike, told, first, place, heirs, called, times: 0, length, end, moves, records, in_order })
    }

    /// Repeats up to `most` periods on a copy of the ranks, as long as they do what they did in the first. Returns the
    /// names of flows in each period, and the ranks after the last.
    fn repeat<P: Probe>(&self, parts: &[Part<P>], most: u64) -> (Names, Vec<HostJobs>) {
        let begin = || parts.iter().flat_map(ranks).cloned().collect::<Vec<_>>();
        let mut hosts = begin();
        let mut names = Names { first: self.first.clone(), later: Vec::new() };
        for time in 0..most {
            let called = names.later.last().unwrap_or(&self.called);
            let Some(called) = self.repeat_once(&mut hosts, called, self.times + time + 1) else {
                // The failed attempt has changed the ranks: begin anew, and repeat only the periods that succeeded.
                hosts = begin();
                for (time, called) in
                    (0..).zip(std::iter::once(&self.called).chain(&names.later)).take(names.later.len())
                {
                    self.repeat_once(&mut hosts, called, self.times + time + 1).expect("it was possible before");
                }
                break;
            };
            names.later.push(called);
        }
        (names, hosts)
    }

    /// Repeats one more period on these ranks. Returns the names of its flows, or `None` if the ranks do something
    /// else.
    fn repeat_once(&self, hosts: &mut [HostJobs], called: &[FlowId], time: u64) -> Option<Vec<FlowId>> {
        let shift = self.length * time;
        let acted: Vec<Time> = hosts.iter().map(HostJobs::next_at).collect();
        let mut names: Vec<Option<FlowId>> = vec![None; self.first.len()];
        for &(flow, heir) in &self.heirs {
            names[flow] = Some(called[heir]);
        }
        let (mut started, mut taken) = (Vec::new(), 0);
        for &(host, at, told) in &self.told {
            let now = at + shift;
            let name = |flow| names[self.place[&flow]];
            let told = match told {
                Told::Starts(flow) => {
                    let heir = *started.get(taken)?;
                    taken += 1;
                    self.alike.are(flow, heir).then(|| names[self.place[&flow]] = Some(heir))?;
                    continue;
                }
                Told::Woken if hosts[host].next_at() != now => return None,
                Told::Woken => Told::Woken,
                Told::Delivered(flow) => Told::Delivered(name(flow)?),
                Told::Completed(flow) => Told::Completed(name(flow)?),
                Told::Left(flow) => Told::Left(name(flow)?),
            };
            if taken < started.len() {
                return None;
            }
            started.clear();
            taken = 0;
            // When a rank ends, the run may end, and its end must be simulated.
            if hosts[host].tell_again(now, told, |flow| started.push(flow)) > 0 {
                return None;
            }
        }
        let acts = hosts.iter().zip(acted).zip(&self.moves);
        let same = acts.map(|((jobs, was), &moves)| {
            let acts_at = if moves { was + self.length } else { was };
            jobs.next_at() == acts_at && acts_at >= self.end + shift
        });
        if taken < started.len() || !same.fold(true, |all, same| all & same) {
            return None;
        }
        let names = names.into_iter().collect::<Option<Vec<_>>>()?;
        let ordered = |places: &Vec<usize>| places.iter().map(|&place| names[place]).is_sorted();
        self.in_order.as_ref().is_none_or(ordered).then_some(names)
    }

    /// Notes what happened to flows, and what was measured of them, in the periods that were repeated.
    fn record<P: Probe>(&self, parts: &mut [Part<P>], names: &Names) {
        for (part, records) in parts.iter_mut().zip(&self.records) {
            for (slot, recorded) in part.0.hosts.iter_mut().zip(records) {
                for (time, called) in (self.times + 1..).zip(&names.later) {
                    let name = |flow: FlowId| called[self.place[&flow]];
                    recorded.repeat(&mut slot.host, self.length * time, name);
                }
            }
        }
    }
}

/// What a host has recorded of flows in the logged period, and what its transports have measured of them.
struct Recorded {
    records: Vec<FlowRecord>,
    measures: Vec<Measured>,
}

impl Recorded {
    /// Since the host had so many records and so many measurements.
    fn since(host: &Host, records: usize, measures: usize) -> Recorded {
        Recorded { records: host.records[records..].to_vec(), measures: host.measures[measures..].to_vec() }
    }

    fn flows(&self) -> impl Iterator<Item = FlowId> {
        let measured = self.measures.iter().map(|measured| measured.flow);
        self.records.iter().map(|record| record.flow).chain(measured)
    }

    /// Notes the same so much later, under the names that flows have then.
    fn repeat(&self, host: &mut Host, shift: Duration, name: impl Fn(FlowId) -> FlowId) {
        for measured in &self.measures {
            host.measure_again(Measured { flow: name(measured.flow), ..*measured });
        }
        for record in &self.records {
            let fate = match record.fate {
                FlowEvent::Delivered { mut journey, transport } => {
                    journey.sent += shift;
                    FlowEvent::Delivered { journey, transport }
                }
                other => other,
            };
            let (at, due) = (record.at + shift, record.due + shift);
            host.record_again(FlowRecord { flow: name(record.flow), at, due, fate });
        }
    }
}

#[cfg(test)]
mod tests;
