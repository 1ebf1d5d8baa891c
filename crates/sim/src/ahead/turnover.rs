//! Periods in which flows begin and end, as where messages of a job follow each other.
//!
//! The state of the network recurs, but each flow stands where another stood ([`Recurrence::renaming`]). How far that
//! goes is a question to the job: its ranks are told again, in order, what they were told in the logged period, of
//! the flows that stand there now. As long as they do what they did (start as many flows, of the same length, to the
//! same hosts, which take the same paths, and act by themselves at the same times), the network has no way to behave
//! otherwise, and the period is skipped. Flows' records are those of the logged period, under the new names.
//!
//! The period is found in what one host starts: when, to whom, and how long.

use std::cmp::Reverse;
use std::sync::Arc;

use driver::Probe;
use node::walk::Recurrence;
use run::{FlowEvent, FlowRecord, Host, Plan};
use units::{Duration, Time};

use super::again::{Logged, RankReplay, kind};
use super::island::Island;
use super::period::Period;

/// The search for a period begins when the busiest host has started so many flows.
pub(super) const FIRST_STARTS: usize = 3;
/// The search is repeated once that host has started so many more: one part in so many.
const MORE_STARTS: usize = 16;
/// The state may recur only after several periods of a host's starts: at most so many are tried.
pub(super) const MULTIPLES: u32 = 2;
/// After so many failures in a row the search ends. A single failure may be due to an appointment that came in between.
const MISSES: u32 = 2;

impl<P: Probe, W: FnMut(Time, u64) -> bool> Island<'_, '_, P, W> {
    /// Skips periods in which flows begin and end, if there are any.
    pub(super) async fn skip_turnovers(&mut self) {
        if !self.may_turn_over() {
            return;
        }
        let Some(started) = self.busiest_starts() else { return };
        let period = period_of_starts(&started);
        let by_groups = period.is_some_and(|period| self.groups.skip_steps_of(period));
        self.want_more_starts(started.len());
        let any = match period.filter(|_| !by_groups) {
            Some(period) => self.skip_turnovers_of(period).await,
            None => false,
        };
        let started = self.started();
        if !any || started < self.starts_wanted {
            self.want_more_starts(started);
        }
    }

    /// How many flows the busiest host has started.
    fn started(&self) -> usize {
        busiest_host(self.own().hosts()).map_or(0, |host| starts(&host.records).count())
    }

    /// Skips periods that are so long, in which flows begin and end, until as many have begun as are wanted: then a
    /// longer period may save more, as an iteration does of which a few steps repeat. Returns whether any was skipped.
    async fn skip_turnovers_of(&mut self, mut period: Duration) -> bool {
        let (mut misses, mut any) = (0, false);
        self.wake_all().await;
        while misses < MISSES {
            misses += 1;
            let mut multiples = MULTIPLES;
            while self.skip(&mut period, multiples, true).await {
                (misses, multiples, any) = (0, 1, true);
            }
            if misses == 0 && self.started() >= self.starts_wanted {
                break;
            }
        }
        any
    }

    /// The search has failed when the busiest host had started so many flows.
    fn want_more_starts(&mut self, started: usize) {
        self.starts_wanted = started + started / MORE_STARTS + 1;
    }

    /// Whether messages follow each other before a sample is due: with samples, one always is before a period is over.
    pub(super) fn may_turn_over(&self) -> bool {
        !self.plan.jobs.is_empty() && self.plan.scenario.measure.interval == Duration::ZERO
    }

    /// The flows that the busiest host has started, if they are enough: when, and a word for length, receiver and
    /// class.
    fn busiest_starts(&mut self) -> Option<Vec<(Time, u64)>> {
        let own = self.own();
        let records = &busiest_host(own.hosts())?.records;
        if records.len() < self.records_wanted {
            return None;
        }
        let started: Vec<_> = starts(records).map(|record| start(self.plan, record)).collect();
        // Each start is recorded: nobody counts again before so much more can have started.
        let wanted = records.len() + self.starts_wanted.saturating_sub(started.len());
        drop(own);
        self.records_wanted = wanted;
        (started.len() >= self.starts_wanted).then_some(started)
    }

    /// Repeats a period for as long as ranks do what they did in it. Returns whether it was repeated at all. `ranks`
    /// says, as of the period's beginning, when ranks would next act by themselves.
    pub(super) fn repeat_turnover(&mut self, found: &Recurrence, period: &Arc<Period>, ranks: &[Time]) -> bool {
        let until = found.until.min(self.alone_until());
        let most = (until.since(self.now).ps() / period.length.ps()).min(self.before_ends(found));
        let (logs, length, end) = (&period.course.of_hosts()[..], period.length, period.end);
        let logged = Logged { logs, length, end, found, ranks };
        let alike = self.run.borrow().alike.clone();
        let again = RankReplay::new(alike, self.own().hosts(), &logged);
        let mut again = match again {
            Ok(again) => again,
            Err(reason) => {
                self.because(&reason);
                return false;
            }
        };
        let at_once = again.at_once();
        let mut left = most;
        while left > 0 {
            let (names, hosts) = again.repeat(self.own().hosts(), left.min(at_once));
            let times = names.later.len() as u64;
            let Some(last) = names.later.last() else { break };
            self.move_ahead(found, period, times, &names, Arc::new(again.renamed(last)));
            again.settle(self.own_mut().hosts_mut(), &names, hosts);
            self.look_at_hosts();
            again.called.clone_from(last);
            again.times += times;
            left -= times;
            if times < at_once {
                break;
            }
        }
        if again.times < most {
            self.because("ranks or paths do not go on as they did");
        }
        again.times > 0
    }
}

/// The host that has recorded the most of flows.
pub(super) fn busiest_host<'h>(hosts: impl Iterator<Item = &'h Host>) -> Option<&'h Host> {
    // In which order hosts come depends on the parts that they are in, and so on the number of threads.
    hosts.max_by_key(|host| (host.records.len(), Reverse(host.id())))
}

pub(super) fn starts(records: &[FlowRecord]) -> impl DoubleEndedIterator<Item = &FlowRecord> {
    records.iter().filter(|record| matches!(record.fate, FlowEvent::Started))
}

/// When a flow should have started, and a word for length, receiver and class.
pub(super) fn start(plan: &Plan, record: &FlowRecord) -> (Time, u64) {
    (record.due, kind(&plan.flows.get(record.flow)))
}

/// The time after which a host's starts repeat. Of several candidates, the one that has held for the longest time up to
/// now, and at least twice. Earlier starts may differ, since ranks may have been settling.
pub(super) fn period_of_starts(started: &[(Time, u64)]) -> Option<Duration> {
    let gaps: Vec<_> = started.windows(2).rev().map(|pair| (pair[1].0.since(pair[0].0).ps(), pair[1].1)).collect();
    let like = matches(&gaps);
    // Of periods that have held equally long, the shortest.
    let lasted = |&period: &usize| (like[period] + period, Reverse(period));
    let period = (1..gaps.len()).filter(|&period| like[period] >= period).max_by_key(lasted)?;
    Some(Duration::from_ps(gaps[..period].iter().map(|gap| gap.0).sum())).filter(|&period| period > Duration::ZERO)
}

/// By place: how many items from there on equal those at the beginning (the Z function).
pub(super) fn matches<T: PartialEq>(of: &[T]) -> Vec<usize> {
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

#[cfg(test)]
mod tests;
