//! Approximate mode: rounds of a job that are alike, but never the same.
//!
//! Iterations of a job seldom repeat to the picosecond: windows keep moving, paths are drawn at random, ranks drift
//! apart by some nanoseconds. But they start the same messages, and one iteration takes as long as another. Such rounds
//! are skipped as follows.
//!
//! 1. What the busiest host starts and computes, regardless of when, repeats: that is a round, or a few of them. The
//!    last four took the same time, but for 1% ([`rhythm`]).
//! 2. There are moments at which all ranks stand where they stood a round ago. A long one is best at which few messages
//!    are under way, such as one in which all ranks compute ([`calm`]). The run goes on to that moment of the next
//!    round.
//! 3. Round after round is simulated, as long as ranks stand there again, and each round and its messages take as long
//!    as others, but for 1% ([`Regime`]). At least twelve are, before one is skipped.
//! 4. If the last one is typical, it is repeated as turnovers are ([`turnover`](super::turnover)): ranks are told it
//!    again, and what is under way gets other names. Windows, queues and random streams stay as they are.
//!
//! Where messages are long, most of each is skipped in other ways while a round is simulated ([`Island::go_on`]).
//!
//! How often a round is repeated is a question of trust. A job whose ranks begin together may run for ten or thirty
//! rounds as if nothing could change. Then small differences between ranks have grown, ranks fall apart, and each round
//! takes half as long again from then on. What was skipped does not let them grow. So ranks must keep their places in
//! time to each other ([`Regime::is_steady`]), and after so many rounds a quarter of the square of that number may have
//! been skipped: after 12 rounds 36, after 200 rounds 10,000.

use std::cmp::Reverse;
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use driver::{LogOfHost, Probe};
use node::walk::{Amounts, Notes};
use run::{FlowEvent, FlowRecord, Host, Plan};
use rustc_hash::FxHashMap;
use units::{Duration, FlowId, Time, mix};

use super::again::{Logged, kind, ranks};
use super::island::Island;
use super::own::Read;
use super::turnover::{busiest_host, matches, starts};

/// So many rounds are compared at first.
const ROUNDS: usize = 4;
/// They differ by less than one part in so many.
const ALIKE: i128 = 100;
/// Rounds in which a moment is searched for, in tenths.
const SEARCHED: u64 = 33;
/// After so many rounds of which none was skipped, something else is tried.
const PATIENCE: u32 = 3 * LEAST as u32;
/// So many rounds must be known before one is skipped.
const LEAST: usize = 12;
/// What may have been skipped after so many rounds is one part in so many of the square of that number.
const TRUST: u64 = 4;
/// Ranks keep their places if these differ between distant rounds by no more than so many halves of what they differ by
/// between neighbours.
const APART: u128 = 3;
/// So many rounds are a round together if they scatter much less: one part in so many.
const MOST_TOGETHER: usize = 4;
const MUCH_LESS: u64 = 4;
/// So many moments are looked at, the longest ones.
const MOMENTS: usize = 32;
/// Among these, a moment is long if it is one part of the longest in so many.
const LONG: u64 = 4;
/// A moment begins a round after that before it, but for one part of a round in so many.
const EARLIER: u64 = 50;
/// After so many failures in a row the search ends.
const MISSES: u32 = 3;
/// The search begins when the busiest host has recorded so much of flows.
pub(super) const FIRST_RECORDS: usize = 12;
/// The search is repeated once the busiest host has recorded so much more of flows: one part in so many.
const MORE: usize = 8;
/// Most records of the busiest host among which a round is searched for.
const MOST_RECORDS: usize = 1 << 14;

/// A moment at which all ranks stood where they stood a round before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Calm {
    at: Time,
    /// The sum of all that happens in a round.
    happens: u64,
}

/// What has happened from one such moment to the next.
struct Happened {
    /// The sum of all.
    what: u64,
    /// How long all messages together were under way, in picoseconds.
    delays: i128,
    /// By host: when the last of it happened, in picoseconds; none if nothing does.
    last: Vec<Option<i128>>,
}

/// Rounds that are alike.
struct Regime {
    seen: Vec<Seen>,
    skipped: u64,
    /// By host: when the last round ended there.
    last: Vec<Option<i128>>,
}

/// A round that was simulated.
struct Seen {
    length_ps: i128,
    delays: i128,
    /// By host: how much later than others it did the last of the round, in picoseconds.
    places: Vec<i128>,
}

impl Regime {
    /// What happened before the first round.
    fn new(before: Happened) -> Regime {
        Regime { seen: Vec::new(), skipped: 0, last: before.last }
    }

    /// Another round. If it is not like the others, they are forgotten.
    fn add(&mut self, happened: Happened) {
        let mean =
            |of: &[Option<i128>]| of.iter().flatten().sum::<i128>() / (of.iter().flatten().count() as i128).max(1);
        let now = mean(&happened.last);
        let places = happened.last.iter().map(|last| last.map_or(0, |last| last - now)).collect();
        let round = Seen { length_ps: now - mean(&self.last), delays: happened.delays, places };
        if !round.is_like(&self.seen, ALIKE) {
            (self.seen, self.skipped) = (Vec::new(), 0);
        }
        self.last = happened.last;
        self.seen.push(round);
    }

    /// So many rounds, each of this length, have been skipped.
    fn skip(&mut self, times: u64, length: Duration) {
        self.skipped += times;
        self.last.iter_mut().flatten().for_each(|last| *last += i128::from((length * times).ps()));
    }

    /// How long a round takes on average, in whole nanoseconds, since some schemes tell times in these.
    fn length(&self) -> Duration {
        let sum: i128 = self.late().iter().map(|seen| seen.length_ps).sum();
        let mean_ps = (sum / (self.late().len() as i128).max(1)).max(0) as u64;
        Duration::from_ns((mean_ps + 500) / 1_000)
    }

    /// Whether the last round is like the mean, but for a quarter of a percent: only such a one is repeated.
    fn is_typical(&self) -> bool {
        self.seen.last().is_some_and(|last| last.is_like(self.late(), 4 * ALIKE))
    }

    /// The second half of all rounds. In the first half ranks may still have settled.
    fn late(&self) -> &[Seen] {
        &self.seen[self.seen.len() / 2..]
    }

    /// How many more rounds may be skipped.
    fn allows(&self) -> u64 {
        let count = self.seen.len() as u64;
        if self.seen.len() < LEAST { 0 } else { (count * count / TRUST).saturating_sub(self.skipped) }
    }

    /// Whether ranks keep their places in time to each other. Places scatter. But places in distant rounds, half of
    /// what was observed apart, differ no more than those in neighbours. Or ranks come to rest: places have moved by
    /// less than half as much in the second half as in the first. And ranks are not spread further in the second half.
    fn is_steady(&self) -> bool {
        let half = self.seen.len() / 2;
        let spread = |seen: &[Seen]| seen.iter().flat_map(|seen| &seen.places).map(|place| place.unsigned_abs()).sum();
        let [before, after]: [u128; 2] = [&self.seen[..half], &self.seen[self.seen.len() - half..]].map(spread);
        if 4 * after > 5 * before {
            return false;
        }
        let apart = |one: &Seen, other: &Seen| {
            one.places.iter().zip(&other.places).map(|(one, other)| one.abs_diff(*other)).sum::<u128>()
        };
        let mean = |distance: usize| {
            let pairs = self.seen.iter().zip(&self.seen[distance..]);
            pairs.map(|(one, other)| apart(one, other)).sum::<u128>() / (self.seen.len() - distance) as u128
        };
        let [first, middle, last] = [0, half, self.seen.len() - 1].map(|at| &self.seen[at]);
        2 * mean(half) <= APART * mean(1) || 2 * apart(middle, last) <= apart(first, middle)
    }
}

impl Seen {
    /// Whether it took as long as the mean of others, and its messages did, but for one part in so many.
    fn is_like(&self, others: &[Seen], parts: i128) -> bool {
        let near = |of: fn(&Seen) -> i128| {
            let sum: i128 = others.iter().map(of).sum();
            (of(self) * others.len() as i128 - sum).abs() <= sum.abs() / parts
        };
        near(|seen| seen.length_ps) && near(|seen| seen.delays)
    }
}

/// A round that was logged.
struct Round {
    length: Duration,
    renaming: BTreeMap<FlowId, Heir>,
    logs: Vec<LogOfHost>,
    before: Notes,
    after: Notes,
}

/// The flow that was started in another's place.
struct Heir {
    flow: FlowId,
    /// When the other began, and how much later this one did.
    began: Time,
    later: Duration,
}

/// The messages that are under way.
#[derive(Default)]
pub(super) struct UnderWay {
    /// Which records of flows are counted.
    read: Read,
    count: i64,
}

/// Something that happened at a host to a message or a rank.
struct Event {
    at: Time,
    /// Whether ranks did it: they started a message, or computed.
    own: bool,
    /// A word for what, without names.
    what: u64,
    /// How many messages more are under way.
    more: i64,
}

impl<P: Probe, W: FnMut(Time, u64) -> bool> Island<'_, '_, P, W> {
    /// Skips rounds that are alike, if there are any.
    pub(super) async fn skip_rounds(&mut self) {
        let Some(length) = self.rhythm() else { return };
        self.wake_all().await;
        let mut misses = 0;
        while misses < MISSES {
            misses += 1;
            let events = self.happened(back(self.now, length * SEARCHED / 10));
            let Some(calm) = calm(&events, self.now, length) else {
                self.because("ranks do not stand where they stood a round ago");
                self.go_on(length).await;
                continue;
            };
            let rounds = self.now.since(calm.at).ps() / length.ps() + 1;
            self.go_on((calm.at + length * rounds).since(self.now)).await;
            let regime = self.regime(calm.happens, length);
            if self.repeat_rounds(calm.happens, length, regime).await {
                misses = 0;
            }
        }
        let recorded = busiest_host(self.own().hosts()).map_or(0, |host| host.records.len());
        self.rounds_wanted = recorded + recorded / MORE + 1;
    }

    /// The time of a round, if the busiest host has one, and has started enough flows since somebody last looked.
    fn rhythm(&mut self) -> Option<Duration> {
        // Where it recurs exactly, nothing is estimated.
        if !self.may_turn_over() || !self.turnovers_fail {
            return None;
        }
        let events = {
            let own = self.own();
            let host = busiest_host(own.hosts()).filter(|host| host.records.len() >= self.rounds_wanted)?;
            let first = &host.records[host.records.len().saturating_sub(MOST_RECORDS)];
            let own_acts = happened_at(self.plan, host, first.at).filter(|event| event.own);
            let mut events: Vec<_> = own_acts.map(|event| (event.at, event.what)).collect();
            events.sort_unstable();
            events
        };
        self.run.borrow_mut().budget.looked_at(events.len());
        let found = rhythm(&events).filter(|&round| !self.groups.skip_steps_of(round));
        if found.is_none() {
            self.because("rounds of a job are not alike");
            self.rounds_wanted += self.rounds_wanted / MORE + 1;
        }
        found
    }

    /// The last rounds up to now, each about so long, in which `happens` happened.
    fn regime(&mut self, happens: u64, length: Duration) -> Regime {
        let now = self.now;
        let moment = |rounds: usize| back(now, length * rounds as u64);
        let mut up_to = |rounds: usize| self.happened_in(moment(rounds + 1), moment(rounds));
        let mut rounds: Vec<_> = (0..=LEAST).map(&mut up_to).take_while(|happened| happened.what == happens).collect();
        let first = rounds.pop().unwrap_or_else(|| up_to(0));
        let mut regime = Regime::new(first);
        rounds.into_iter().rev().for_each(|happened| regime.add(happened));
        regime
    }

    /// Simulates round after round, each about so long, in which `happens` must happen, and repeats one whenever it
    /// may. Returns whether any was repeated.
    async fn repeat_rounds(&mut self, happens: u64, mut length: Duration, mut regime: Regime) -> bool {
        let (mut any, mut vain) = (false, 0);
        while vain < PATIENCE {
            vain += 1;
            let may_repeat = regime.seen.len() + 1 >= LEAST && regime.is_steady();
            let before = if may_repeat { self.note() } else { None };
            let (began, leaving) = (self.now, self.leaving());
            let logs = self.go_on_recording(length).await.of_hosts();
            let happened = self.happened_in(began, self.now);
            if happened.what != happens || self.leaving() != leaving {
                self.because("ranks do not stand where they stood a round ago");
                return any;
            }
            let delays = happened.delays;
            regime.add(happened);
            length = regime.length();
            let allowed = regime.allows();
            if length == Duration::ZERO || allowed == 0 || !regime.is_steady() || !regime.is_typical() {
                self.because("rounds of a job are not alike");
                continue;
            }
            let renaming = self.renaming(began);
            if !self.ends_as_it_begins(began, length, delays, &renaming) {
                self.because("messages between rounds would take more or less time");
                continue;
            }
            let Some(before) = before else { continue };
            let Some(after) = self.note() else { return any };
            let times = self.repeat_round(&Round { length, renaming, logs, before, after }, allowed);
            if times == 0 {
                return any;
            }
            regime.skip(times, length);
            (any, vain) = (true, 0);
        }
        any
    }

    /// Repeats a round that has just been logged, at most so often. Returns how often.
    fn repeat_round(&mut self, round: &Round, most: u64) -> u64 {
        let Round { length, renaming, logs, before, after } = round;
        if let Some(why) = after.numbered() {
            self.because(&why);
            return 0;
        }
        let renaming = renaming.iter().map(|(&flow, heir)| (flow, heir.flow)).collect();
        let (named, in_network) = (after.flows(), after.flows_in_network());
        let until = after.outside().min(self.alone_until());
        let most = most.min(until.since(self.now).ps() / length.ps());
        let logged = Logged {
            logs,
            length: *length,
            end: self.now,
            renaming: &renaming,
            ranks: None,
            ordered: &|flow| after.by_number() && named.contains(&flow),
            routed: &|flow| in_network.contains(&flow),
        };
        let hops = self.own_hops();
        let times = self.repeat(&logged, most, |island, names, renamed| {
            let times = names.later.len() as u64;
            let amounts = Amounts::of_rounds(before, after, *length, times).map(Arc::new);
            let Some(amounts) = amounts else { return false };
            island.shift(&amounts, renamed, *length * times);
            true
        });
        self.skipped_hops(self.own_hops() - hops, true);
        times
    }

    /// By flow that was started in the round before this one, which began then: the flow that was started in its place
    /// in this one.
    fn renaming(&self, began: Time) -> BTreeMap<FlowId, Heir> {
        let mut renaming = BTreeMap::new();
        let own = self.own();
        for host in own.hosts() {
            let mut of_kind: FxHashMap<u64, VecDeque<&FlowRecord>> = FxHashMap::default();
            for record in starts(&host.records).rev() {
                let kind = of_kind.entry(word(self.plan, record));
                if record.at >= began {
                    kind.or_default().push_back(record);
                } else if let Entry::Occupied(mut kind) = kind {
                    // The last one of its kind stands for the last, and so on.
                    let heir = kind.get_mut().pop_front();
                    let (began, of) = (record.at, heir.map(|heir| (heir.flow, heir.at.since(record.at))));
                    renaming.extend(of.map(|(flow, later)| (record.flow, Heir { flow, began, later })));
                    if kind.get().is_empty() {
                        kind.remove();
                    }
                }
                if of_kind.is_empty() {
                    break;
                }
            }
        }
        renaming
    }

    /// Whether messages that were under way when a round of this length began would take as long in their places at
    /// the next beginning, where what comes before is of this round, and what comes after is of its repetition. All
    /// together they may be off by 1% of the delays of all messages of the round, and each by a half.
    fn ends_as_it_begins(
        &self,
        began: Time,
        length: Duration,
        delays: i128,
        renaming: &BTreeMap<FlowId, Heir>,
    ) -> bool {
        let own = self.own();
        let hosts = own.hosts();
        let records = hosts.flat_map(|host| host.records.iter().rev().take_while(|record| record.at >= began));
        let ended = records.filter(|record| matches!(record.fate, FlowEvent::Delivered { .. }));
        let mut all_off = 0;
        for record in ended {
            let Some(heir) = renaming.get(&record.flow) else { continue };
            let (took, off) = (record.at.since(heir.began).ps(), heir.later.ps().abs_diff(length.ps()));
            if 2 * off > took {
                return false;
            }
            all_off += i128::from(off);
        }
        all_off * ALIKE <= delays
    }

    /// What has happened at all of its hosts since then, in order of time.
    fn happened(&self, since: Time) -> Vec<(Time, u64, i64)> {
        let own = self.own();
        let hosts = own.hosts();
        let events = hosts.flat_map(|host| happened_at(self.plan, host, since));
        let mut events: Vec<_> = events.map(|event| (event.at, event.what, event.more)).collect();
        drop(own);
        self.run.borrow_mut().budget.looked_at(events.len());
        events.sort_unstable();
        events
    }

    /// What has happened from one moment to another, as a whole.
    fn happened_in(&mut self, from: Time, until: Time) -> Happened {
        self.count_under_way();
        let own = self.own();
        let (mut all, mut events) = (Happened { what: 0, delays: 0, last: Vec::new() }, 0);
        let (mut more_since, span) = (0, i128::from(until.since(from).ps()));
        for host in own.hosts() {
            let mut last = None;
            for Event { at, what, more, .. } in happened_at(self.plan, host, from) {
                events += 1;
                more_since += more;
                if at < until {
                    all.what = all.what.wrapping_add(what);
                    all.delays += i128::from(more) * i128::from(until.since(at).ps());
                    last = last.max(Some(i128::from(at.ps())));
                }
            }
            all.last.push(last);
        }
        // Those that were under way when it began, and what others add.
        all.delays += i128::from(self.under_way.count - more_since) * span;
        drop(own);
        self.run.borrow_mut().budget.looked_at(events);
        all
    }

    /// Counts the messages that are under way.
    fn count_under_way(&mut self) {
        let UnderWay { mut read, mut count } = std::mem::take(&mut self.under_way);
        read.read(self.own().hosts(), |record| count += more(&record.fate));
        self.under_way = UnderWay { read, count };
    }

    /// The sum of flows on connections whose last bytes have not left.
    fn leaving(&self) -> u64 {
        let own = self.own();
        let leaving = ranks(own.hosts()).flat_map(|jobs| jobs.all_leaving());
        leaving.map(|(flow, _)| kind(&self.plan.flows.get(flow))).fold(0, u64::wrapping_add)
    }
}

/// So much earlier, or the beginning.
pub(super) fn back(now: Time, by: Duration) -> Time {
    Time::from_ps(now.ps().saturating_sub(by.ps()))
}

/// What has happened at a host since then.
fn happened_at(plan: &Plan, host: &Host, since: Time) -> impl Iterator<Item = Event> {
    let records = host.records.iter().rev().take_while(move |record| record.at >= since).map(move |record| {
        let own = matches!(record.fate, FlowEvent::Started);
        Event { at: record.at, own, what: word(plan, record), more: more(&record.fate) }
    });
    let computed = host.jobs().into_iter().flat_map(move |jobs| jobs.computed_since(since));
    let computed =
        computed.map(move |(at, time)| Event { at, own: true, what: mix(host.id().0.into(), time.ps()), more: 0 });
    records.chain(computed)
}

/// How many messages more are under way.
fn more(fate: &FlowEvent) -> i64 {
    match fate {
        FlowEvent::Started => 1,
        FlowEvent::Delivered { .. } => -1,
        _ => 0,
    }
}

/// A word for what happened to a flow, whatever its number.
fn word(plan: &Plan, record: &FlowRecord) -> u64 {
    let what = match record.fate {
        FlowEvent::Started => 1,
        FlowEvent::Delivered { .. } => 2,
        FlowEvent::Completed { .. } => 3,
        FlowEvent::Resubmitted | FlowEvent::Rejected | FlowEvent::Failed(_) => 4,
    };
    mix(kind(&plan.flows.get(record.flow)), what)
}

/// The time of a round, among what the ranks of a host did: so many events repeat, and took the same time each of the
/// last times. Of several numbers, the one that has held for the longest time up to now; if they have held equally
/// long, the smallest.
fn rhythm(events: &[(Time, u64)]) -> Option<Duration> {
    let back: Vec<_> = events.iter().rev().collect();
    let like = matches(&back.iter().map(|event| event.1).collect::<Vec<_>>());
    let often = |&count: &usize| like[count] > (ROUNDS - 1) * count;
    let mut counts: Vec<usize> = (1..like.len()).filter(often).collect();
    counts.sort_by_key(|&count| (Reverse(like[count] + count), count));
    let took = |count: usize| {
        let ends = |round: usize| back[round * count].0;
        let took = |round: usize| ends(round).since(ends(round + 1)).ps();
        let (least, most) =
            (0..ROUNDS).map(took).fold((u64::MAX, 0), |(least, most), of| (least.min(of), most.max(of)));
        (most - least, ends(0).since(ends(ROUNDS)) / ROUNDS as u64)
    };
    let found = counts.iter().map(|&count| (count, took(count)));
    let alike = |(_, (scatter, mean)): &(usize, (u64, Duration))| {
        *mean > Duration::ZERO && *scatter <= mean.ps() / ALIKE as u64
    };
    let (count, (scatter, mean)) = found.into_iter().find(alike)?;
    // Rounds may take turns, a little.
    let together = (2..=MOST_TOGETHER).filter(|more| counts.contains(&(more * count))).map(|more| took(more * count));
    Some(together.into_iter().find(|of| of.0 * MUCH_LESS <= scatter).map_or(mean, |of| of.1))
}

/// A moment in the last round at which ranks stood where they had stood a round before, and another before that: in
/// each of both rounds the same has happened. Of long moments, the one at which the fewest messages are under way.
/// `events` are those of all hosts in the last three rounds, in order of time: when, what, and how many messages more
/// were under way.
fn calm(events: &[(Time, u64, i64)], now: Time, length: Duration) -> Option<Calm> {
    // What has happened before each event, and how many messages were under way then, more than at first.
    let mut before = vec![(0_u64, 0)];
    before.extend(events.iter().scan((0_u64, 0), |(sum, under_way), &(_, what, more)| {
        (*sum, *under_way) = (sum.wrapping_add(what), *under_way + more);
        Some((*sum, *under_way))
    }));
    let at: FxHashMap<u64, usize> = before.iter().map(|of| of.0).zip(0..).collect();
    // After so many events: for how long nothing happens.
    let begins = |after: usize| events[after - 1].0;
    let lasts = |after: usize| events.get(after).map_or(now, |event| event.0).since(begins(after));
    let early = length / EARLIER;
    let a_round_before = |after: usize| {
        let from = back(begins(after), length + early);
        let first = events.partition_point(|event| event.0 < from) + 1;
        (first..after).take_while(move |&one| begins(one) + length <= begins(after) + early)
    };
    let recent = events.partition_point(|event| event.0 < back(now, length + early)) + 1;
    let mut moments: Vec<usize> = (recent..=events.len()).collect();
    moments.sort_by_key(|&after| Reverse(lasts(after)));
    moments.truncate(MOMENTS);
    let found = moments.into_iter().flat_map(|after| a_round_before(after).map(move |one| (after, one)));
    let stand = found.filter_map(|(after, one)| {
        let happens = before[after].0.wrapping_sub(before[one].0);
        let first = *at.get(&before[one].0.wrapping_sub(happens))?;
        let twice = happens != 0 && first > 0 && begins(first) + length >= back(begins(one), early);
        let time = lasts(after).min(lasts(one)).min(lasts(first.max(1)));
        let moment = Calm { at: begins(after) + time / 2, happens };
        twice.then_some((before[after].1, Reverse(time), moment.at, moment))
    });
    let stand: Vec<_> = stand.collect();
    let longest = stand.iter().map(|of| of.1.0).max()?;
    let long = stand.into_iter().filter(|of| of.1.0 * LONG >= longest);
    long.min_by_key(|&(under_way, time, at, _)| (under_way, time, at)).map(|of| of.3)
}

#[cfg(test)]
mod tests;
