//! Approximate mode: groups of hosts within an island, each skipped by itself.
//!
//! The messages of a job that are under way at a time mostly fall into groups that share no link, such as the rings of
//! several stages of a pipeline. A group is steady until one of its messages begins or ends, whatever happens in
//! others. So a group that is steady sleeps: nothing of it is simulated until its first message nears its end, or until
//! somebody starts a message over one of its links. When it wakes, it is moved ahead by the time that has passed, and
//! only then, since nobody knows beforehand when a message will start.
//!
//! A message starts at the end of the engine's window at the latest before its first packet reaches another node. So
//! the engine stops at the end of each window in which a host has started something while a group sleeps.
//!
//! A group that wakes is moved ahead by whole periods if its state has recurred, and otherwise by averages
//! ([`History`]). What is left of the time that has passed is simulated, while everything else waits. Periods may be
//! steps of a job, in which messages follow each other ([`turns`]).

mod compared;
mod turns;

use std::collections::BTreeMap;
use std::sync::Arc;

use driver::{Cut, Members, Probe, links_between};
use node::Walk;
use node::walk::{History, Moves, Notes, Recurrence, Renamed, Steady};
use run::Plan;
use rustc_hash::FxHashMap;
use scenario::FastForward;
use units::{Duration, FlowId, HostId, LinkId, Time};

use self::compared::Compared;
use self::turns::{Turns, hosts, hosts_mut};
use super::again::RankReplay;
use super::island::Island;
use super::islands::{Ends, late};
use super::own::Read;
use super::period::{by_node, last_period_of_all};

/// A group is observed no more often than after so many times the first time of listening: in the time of more packets
/// than each of its flows must have sent ([`History::steady`]), if it has a link of its own.
const OBSERVED: u64 = 6;

/// To put a link into a group, take it out again, and find its ends costs as much as looking at so many events.
const LINK: usize = 30;

/// The messages under way in an island, and the groups that they make.
pub(super) struct Groups<'a> {
    /// Where everything is, if groups may sleep at all.
    cut: Option<&'a Cut>,
    /// Which records of flows are known.
    read: Read,
    /// What is known of messages in groups.
    ends: FxHashMap<FlowId, Ends>,
    /// By sender and receiver: the links between them.
    paths: FxHashMap<(HostId, HostId), Arc<[LinkId]>>,
    /// By number.
    all: BTreeMap<u64, Group<'a>>,
    /// By link, the group that has it.
    of: FxHashMap<LinkId, u64>,
    next: u64,
    /// How many of them have messages under way.
    live: usize,
    /// How long late packets of a message that has ended may still be under way.
    late: Duration,
    /// The longest period in which messages of a group were found to follow each other.
    longest_step: Duration,
}

/// Messages that share links, until all of them have ended.
#[derive(Default)]
struct Group<'a> {
    flows: Vec<FlowId>,
    links: Vec<LinkId>,
    /// Whether not all of them have ended.
    live: bool,
    /// By part.
    members: Vec<(usize, Members)>,
    history: History,
    /// For how long it is observed before somebody looks at it.
    span: Duration,
    /// When it began, or when somebody last looked whether it is steady.
    observed_at: Time,
    stage: Stage<'a>,
    /// When somebody looks at it next; [`Time::MAX`] for never.
    looks_at: Time,
    /// Whether messages follow each other as others did before.
    turns: Turns,
}

#[derive(Default)]
enum Stage<'a> {
    /// It is simulated.
    #[default]
    Awake,
    /// The same. What comes to its hosts will be heard when somebody looks at it.
    Unheard,
    /// The same, and what comes to its hosts is heard since then. By part: how much had been heard before.
    Heard { since: Time, from: Vec<usize> },
    /// The same, to find out whether its state recurs after some of its periods.
    Compared(Box<Compared>),
    /// It sleeps until somebody looks at it.
    Asleep(Sleep<'a>),
}

struct Sleep<'a> {
    since: Time,
    /// For so long at most.
    most: Duration,
    /// By part: when its next events are.
    times: Vec<Vec<Time>>,
    way: Way<'a>,
}

/// How a group is moved ahead.
enum Way<'a> {
    Recurs(Recurrence),
    /// The same, but messages follow each other.
    TurnsOver(Arc<Moves>, Box<RankReplay<'a>>),
    Steady(Steady),
}

impl Group<'_> {
    /// When somebody does something about it.
    fn due(&self) -> Time {
        self.looks_at.min(self.turns.due())
    }
}

impl<'a> Groups<'a> {
    /// None yet, in an island of a plan.
    pub fn new(plan: &'a Plan, cut: Option<&'a Cut>) -> Groups<'a> {
        Groups {
            cut: cut.filter(|_| plan.scenario.skips() == FastForward::Approximate && Members::may_sleep(plan)),
            read: Read::default(),
            ends: FxHashMap::default(),
            paths: FxHashMap::default(),
            all: BTreeMap::new(),
            of: FxHashMap::default(),
            next: 0,
            live: 0,
            late: late(plan),
            longest_step: Duration::ZERO,
        }
    }

    /// Whether groups skip periods that are so long, in which messages follow each other, or are about to find out.
    /// Then nobody looks whether the whole island recurs after such a time.
    pub fn skip_steps_of(&self, period: Duration) -> bool {
        period <= self.longest_step || self.all.values().any(|group| group.turns.compares(period))
    }

    /// All of them have been moved ahead: what was being compared is no more.
    pub fn were_moved(&mut self) {
        self.all.values_mut().for_each(|group| group.turns.forget());
    }

    fn path(&mut self, plan: &Plan, flow: FlowId) -> Arc<[LinkId]> {
        let info = plan.flows.get(flow);
        let path = || links_between(plan, info.src, info.dst).into();
        self.paths.entry((info.src, info.dst)).or_insert_with(path).clone()
    }

    /// Takes away the groups that have links on the paths of these messages.
    fn take(&mut self, plan: &Plan, flows: &[FlowId]) -> Vec<Group<'a>> {
        let mut taken = Vec::new();
        for &flow in flows {
            for link in &*self.path(plan, flow) {
                let Some(group) = self.of.get(link).and_then(|number| self.all.remove(number)) else { continue };
                self.live -= usize::from(group.live);
                for link in &group.links {
                    self.of.remove(link);
                }
                taken.push(group);
            }
        }
        taken
    }

    /// Puts messages into groups: those whose paths share links into one.
    fn group(&mut self, plan: &Plan, flows: &[FlowId]) -> Vec<Group<'a>> {
        let (mut groups, mut of): (Vec<Group<'a>>, FxHashMap<LinkId, usize>) = Default::default();
        for &flow in flows {
            let path = self.path(plan, flow);
            let at = path.iter().find_map(|link| of.get(link).copied()).unwrap_or(groups.len());
            if at == groups.len() {
                groups.push(Group::default());
            }
            groups[at].live |= self.ends[&flow].at().is_none();
            groups[at].flows.push(flow);
            for &link in &*path {
                match of.insert(link, at) {
                    None => groups[at].links.push(link),
                    Some(other) if other != at => {
                        let Group { flows, links, live, .. } = std::mem::take(&mut groups[other]);
                        of.extend(links.iter().map(|&link| (link, at)));
                        groups[at].flows.extend(flows);
                        groups[at].links.extend(links);
                        groups[at].live |= live;
                    }
                    Some(_) => {}
                }
            }
        }
        groups.retain(|group| !group.flows.is_empty());
        groups.iter_mut().for_each(|group| group.links.sort_unstable());
        groups
    }

    fn add(&mut self, group: Group<'a>) {
        self.live += usize::from(group.live);
        self.of.extend(group.links.iter().map(|&link| (link, self.next)));
        self.all.insert(self.next, group);
        self.next += 1;
    }
}

impl<'a, P: Probe, W: FnMut(Time, u64) -> bool> Island<'_, 'a, P, W> {
    /// Skips what it can in each group, until something begins or ends, or until its bound. Returns whether groups may
    /// sleep at all.
    pub(super) async fn look_in_groups(&mut self) -> bool {
        if self.groups.cut.is_none() {
            return false;
        }
        self.run.borrow_mut().heeds_starts = true;
        let mut changed = self.follow_messages().await;
        while self.now < self.bound && self.run.borrow().short() == 0 {
            if changed && self.bound == Time::MAX {
                break;
            }
            self.look_at_groups().await;
            let next = self.groups.all.values().map(Group::due).fold(self.bound, Time::min);
            self.go(next.min(self.plan.horizon).since(self.now).max(Duration::from_ps(1))).await;
            changed = self.follow_messages().await;
            // Somebody has looked at each host and each group.
            let looked_at = self.groups.read.hosts() + self.groups.all.len();
            self.spend(|budget| budget.looked_at(looked_at));
        }
        self.run.borrow_mut().heeds_starts = false;
        true
    }

    /// Notes which messages have begun and ended, and makes groups anew where that changes them. Returns whether any
    /// has.
    async fn follow_messages(&mut self) -> bool {
        let mut any = false;
        loop {
            let stirred = self.read_records();
            if stirred.is_empty() {
                return any;
            }
            any = true;
            let (now, cut) = (self.now, self.groups.cut.expect("groups may sleep"));
            let mut since = now;
            let mut taken = self.groups.take(self.plan, &stirred);
            let mut flows = stirred;
            for group in &mut taken {
                since = since.min(self.wake(group));
                flows.append(&mut group.flows);
            }
            flows.sort_unstable();
            flows.dedup();
            flows.retain(|flow| {
                let over = self.is_over(&self.groups.ends[flow]);
                if over {
                    self.groups.ends.remove(flow);
                }
                !over
            });
            let groups = self.groups.group(self.plan, &flows);
            let links = groups.iter().map(|group| group.links.len()).sum::<usize>();
            self.spend(|budget| budget.looked_at(LINK * links));
            for mut group in groups {
                match taken.iter_mut().find(|was| was.links == group.links) {
                    Some(was) => {
                        group.members = std::mem::take(&mut was.members);
                        group.turns = std::mem::take(&mut was.turns);
                    }
                    None => group.members = Members::of(self.plan, cut, &group.links),
                }
                (group.span, group.observed_at, group.looks_at) = (self.first_span(), now, Time::MAX);
                if group.live {
                    self.listen_to(&mut group);
                    if since == now {
                        self.begin_step(&mut group);
                    }
                }
                self.groups.add(group);
            }
            self.catch_up(since).await;
        }
    }

    /// Whether a message has ended, and nothing of it is on its way any more.
    fn is_over(&self, ends: &Ends) -> bool {
        ends.at().is_some_and(|at| at + self.groups.late <= self.now)
    }

    /// The messages that have begun or ended since somebody last looked.
    fn read_records(&mut self) -> Vec<FlowId> {
        let (mut read, mut ends) = (std::mem::take(&mut self.groups.read), std::mem::take(&mut self.groups.ends));
        let (mut stirred, mut new) = (Vec::new(), Vec::new());
        read.read(self.own().hosts(), |record| {
            let of = ends.entry(record.flow).or_insert_with(|| {
                new.push(record.flow);
                Ends::default()
            });
            of.note(record);
            stirred.push(record.flow);
        });
        // What has begun and ended in skipped time concerns nobody.
        for flow in new.into_iter().filter(|flow| self.is_over(&ends[flow])).collect::<Vec<_>>() {
            ends.remove(&flow);
        }
        stirred.retain(|flow| ends.contains_key(flow));
        (self.groups.read, self.groups.ends) = (read, ends);
        stirred
    }

    /// Looks at each group whose time has come.
    async fn look_at_groups(&mut self) {
        let mut all = std::mem::take(&mut self.groups.all);
        let (now, mut since) = (self.now, self.now);
        for group in all.values_mut().filter(|group| group.due() <= now) {
            match group.stage {
                Stage::Asleep(_) => since = since.min(self.wake_and_listen(group)),
                _ if group.looks_at <= now => self.look_at_group(group),
                _ => {}
            }
        }
        self.groups.all = all;
        self.catch_up(since).await;
        let mut all = std::mem::take(&mut self.groups.all);
        for group in all.values_mut().filter(|group| group.turns.due() <= now) {
            self.end_step(group);
        }
        self.groups.all = all;
        let heard = |group: &Group<'_>| matches!(group.stage, Stage::Heard { .. });
        if !self.groups.all.values().any(heard) {
            self.hear_nobody();
        }
    }

    fn hear_nobody(&mut self) {
        self.own_mut().iter_mut().for_each(|part| part.0.heard = None);
    }

    /// Looks whether the state of a group that is awake has recurred, or is steady.
    fn look_at_group(&mut self, group: &mut Group<'a>) {
        let now = self.now;
        // If its state can't be noted, nobody looks again.
        group.looks_at = Time::MAX;
        match std::mem::take(&mut group.stage) {
            Stage::Compared(compared) => self.compare(group, compared),
            Stage::Heard { since, from } => {
                if let Some(period) = self.period_of_group(group, since, &from) {
                    return self.begin_to_compare(group, period);
                }
                // Flows that have sent little since the last observation would not be known to be steady.
                if now - group.observed_at < self.first_span() * OBSERVED {
                    self.observe_longer(group);
                } else {
                    let Some(notes) = self.note_group(group) else { return };
                    self.look_for_steady(group, &notes);
                }
                if let Stage::Heard { .. } = group.stage {
                    // It is heard for longer.
                    group.looks_at = since + group.span;
                    group.stage = Stage::Heard { since, from };
                }
            }
            Stage::Unheard => self.listen_to(group),
            _ => {
                let Some(notes) = self.note_group(group) else { return };
                self.look_for_steady(group, &notes);
            }
        }
    }

    /// The state of a group has not recurred. Lets it sleep if it is steady, or observes it for longer.
    fn look_for_steady(&mut self, group: &mut Group<'a>, notes: &Notes) {
        group.observed_at = self.now;
        if !self.sleeps_by_averages(group, notes) {
            self.observe_longer(group);
        }
    }

    /// Nothing was found: somebody looks at the group again after a longer time.
    fn observe_longer(&mut self, group: &mut Group<'a>) {
        group.span = (group.span + group.span / 2).min(self.longest_span());
        self.listen_to(group);
    }

    /// From now on, what comes to the hosts of a group is heard, to find a period in that.
    fn listen_to(&mut self, group: &mut Group<'a>) {
        let run = &mut *self.run.borrow_mut();
        let begin = |(part, _): &(usize, Members)| run.parts[*part].0.heard.get_or_insert_default().len();
        group.stage = Stage::Heard { since: self.now, from: group.members.iter().map(begin).collect() };
        group.looks_at = self.now + group.span;
    }

    /// A period in what has come to a group's hosts.
    fn period_of_group(&mut self, group: &Group<'_>, since: Time, from: &[usize]) -> Option<Duration> {
        let run = self.run.borrow();
        let of_part = |((part, members), from): (&(usize, Members), &usize)| {
            let heard: Vec<_> = run.parts[*part].0.heard_by(members, *from).collect();
            by_node(heard.into_iter(), since)
        };
        let nodes: Vec<_> = group.members.iter().zip(from).flat_map(of_part).collect();
        let heard = nodes.iter().map(Vec::len).sum::<usize>() as u64;
        drop(run);
        self.spend(|budget| budget.logged(heard));
        let period = last_period_of_all(nodes.into_iter(), (self.now - since).ps()).ok()?;
        (period > 1).then(|| Duration::from_ps(period))
    }

    /// The state of a group recurs: it sleeps until its first message nears its end.
    fn sleep_by_periods(&mut self, group: &mut Group<'a>, found: Recurrence) {
        group.span = self.first_span();
        if found.flows.is_empty() {
            // Nothing is under way, but what is late.
            group.looks_at = Time::MAX;
            return;
        }
        let until = found.until.min(self.undisturbed_until()).min(group.turns.due());
        let left = self.before_ends(&found);
        let time = found.period * left.min(until.since(self.now).ps() / found.period.ps());
        if time >= group.span {
            self.put_to_sleep(group, time, Way::Recurs(found));
        } else if found.period * left < group.span {
            group.looks_at = Time::MAX;
        } else {
            // After the appointment it goes on.
            group.looks_at = until + group.span;
        }
    }

    /// If a group is steady, it sleeps until its first message nears its end or its observation is no longer trusted.
    /// Returns whether it does.
    fn sleeps_by_averages(&mut self, group: &mut Group<'a>, notes: &Notes) -> bool {
        let until = self.undisturbed_until().min(group.turns.due());
        let Some((steady, time)) = self.steady(&mut group.history, notes, group.span, until).0 else { return false };
        self.put_to_sleep(group, time, Way::Steady(steady));
        true
    }

    /// Until when nothing comes to a group from outside, but for messages.
    fn undisturbed_until(&self) -> Time {
        self.alone_until().min(self.next_sample_at()).min(self.bound)
    }

    fn put_to_sleep(&mut self, group: &mut Group<'a>, time: Duration, way: Way<'a>) {
        let run = &mut *self.run.borrow_mut();
        let times = group.members.iter().map(|(part, members)| run.parts[*part].0.put_to_sleep(members)).collect();
        group.stage = Stage::Asleep(Sleep { since: self.now, most: time, times, way });
        group.looks_at = self.now + time;
        *run.asleep.entry(self.districts).or_default() += 1;
        run.skipped.islands = run.skipped.islands.max(self.groups.live);
    }

    /// Wakes a group if it sleeps: it is moved ahead to now, or to a little earlier. Returns since when it must be
    /// simulated.
    fn wake(&mut self, group: &mut Group<'a>) -> Time {
        let Stage::Asleep(Sleep { since, most, times, way }) = std::mem::take(&mut group.stage) else {
            return self.now;
        };
        let passed = most.min(self.now - since);
        let headers = self.run.borrow().headers.clone();
        let mut told = None;
        let (walk, time, estimated, bytes) = match way {
            Way::Recurs(found) => {
                let times = passed.ps() / found.period.ps();
                let bytes = found.flows.iter().map(|of| of.1 * times).sum();
                let walk = Walk::ahead(since, headers, found.moves, Arc::new(Renamed::default()), times);
                (walk, found.period * times, Duration::ZERO, bytes)
            }
            Way::TurnsOver(moves, again) => {
                let times = passed.ps() / again.length.ps();
                let (names, ranks) = again.repeat(hosts(self.run.borrow().parts, &group.members), times);
                let renamed = Arc::new(again.renamed(names.later.last().unwrap_or(&again.called)));
                let walk = Walk::ahead(since, headers, moves, renamed, times);
                let bytes = again.delivered_bytes() * times;
                let time = again.length * times;
                told = Some((again, names, ranks));
                (walk, time, Duration::ZERO, bytes)
            }
            Way::Steady(mut steady) => {
                let time = Duration::from_ns(passed.ps() / 1_000);
                let amounts = steady.next(time);
                group.history.moved(&amounts);
                let bytes = amounts.bytes();
                (Walk::shift(since, headers, amounts), time, time, bytes)
            }
        };
        let hops = self.move_group(group, &times, walk, time);
        {
            let run = &mut *self.run.borrow_mut();
            if let Some((again, names, ranks)) = told {
                again.settle(hosts_mut(run.parts, &group.members), &names, ranks);
            }
            group.members.iter().for_each(|(part, members)| run.parts[*part].0.look_at_members(members));
            *run.asleep.entry(self.districts).or_default() -= 1;
            // The first part gets what is counted of all.
            let first = &mut run.parts[group.members[0].0].0;
            first.packet_hops += hops;
            first.delivered_bytes += bytes;
        }
        self.count_skip(time, estimated);
        self.skipped_hops(hops);
        since + time
    }

    fn wake_and_listen(&mut self, group: &mut Group<'a>) -> Time {
        let since = self.wake(group);
        self.listen_to(group);
        since
    }

    /// Wakes a group and moves it ahead by so much time. Returns how many packets have passed links in that time.
    fn move_group(&mut self, group: &Group<'_>, times: &[Vec<Time>], mut walk: Walk, time: Duration) -> u64 {
        let run = &mut *self.run.borrow_mut();
        let mut hops = 0;
        for ((part, members), times) in group.members.iter().zip(times) {
            let part = &mut run.parts[*part].0;
            let before = part.sent_by(members);
            part.wake_up(members, times);
            part.visit_members(&mut walk, members);
            part.mark_digests_of(members, time);
            hops += part.sent_by(members) - before;
        }
        walk.finish().expect("the same walk was possible just before");
        hops
    }

    /// Simulates what has been moved ahead to an earlier time only. Whatever starts meanwhile is noted afterwards: it
    /// has started in groups that are awake.
    async fn catch_up(&mut self, since: Time) {
        let until = self.now;
        if since < until {
            {
                let run = &mut *self.run.borrow_mut();
                run.now = run.now.min(since);
            }
            self.now = since;
        }
        while self.now < until {
            self.go(until - self.now).await;
        }
    }

    /// Wakes all groups, and hears none of them until somebody looks again.
    pub(super) async fn wake_all(&mut self) {
        let mut all = std::mem::take(&mut self.groups.all);
        let mut since = self.now;
        for group in all.values_mut() {
            match group.stage {
                Stage::Asleep(_) => since = since.min(self.wake(group)),
                Stage::Heard { .. } => {}
                _ => continue,
            }
            (group.stage, group.looks_at) = (Stage::Unheard, self.now);
        }
        self.groups.all = all;
        self.hear_nobody();
        self.catch_up(since).await;
    }

    fn outline(&self, group: &Group<'_>) -> u64 {
        let run = self.run.borrow();
        let of_parts = group.members.iter().map(|(part, members)| run.parts[*part].0.outline(self.now, members));
        of_parts.fold(0, u64::wrapping_add)
    }

    /// The state of some hosts and links, by part.
    fn note_members<'m>(&mut self, of_parts: impl IntoIterator<Item = &'m (usize, Members)>) -> Option<Notes> {
        let mut walk = Walk::note(self.now, self.run.borrow().headers.clone());
        {
            let run = &mut *self.run.borrow_mut();
            for (part, members) in of_parts {
                run.parts[*part].0.visit_members(&mut walk, members);
            }
        }
        self.noted(walk)
    }

    fn note_group(&mut self, group: &Group<'_>) -> Option<Notes> {
        self.note_members(&group.members)
    }
}
