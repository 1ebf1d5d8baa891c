//! Steps of a job that repeat within a group, as those of a ring do.
//!
//! Each step's messages take the places of those of the step before, between the same hosts. If the state of the group
//! recurs from one step to the next, the group sleeps for as many steps as its ranks would do the same in. The period
//! is found in what one host starts, as [turnovers](super::super::turnover) of a whole island are.

use driver::{LogOfHost, Members, Probe};
use node::walk::{Notes, Recurrence, recurrence};
use run::Host;
use units::{Duration, Time};

use super::{Group, Way};
use crate::ahead::again::{Logged, RankReplay, ranks_act_at};
use crate::ahead::island::Island;
use crate::ahead::turnover::{MULTIPLES, busiest_host, period_of_starts, start, starts};
use crate::part::Part;

/// The period is searched for in the last starts of a host.
const STARTS: usize = 32;

/// The search for steps that repeat.
#[derive(Default)]
pub(super) struct Turns {
    step: Option<Step>,
}

/// A step that is simulated, or several, to find out whether the state recurs.
struct Step {
    /// The state when it began, and when ranks would act.
    before: Notes,
    ranks: Vec<Time>,
    period: Duration,
    /// When it ends, and how many have ended before.
    end: Time,
    tried: u32,
    /// What happens at the group's hosts.
    logs: Vec<LogOfHost>,
}

impl Turns {
    /// When the state will be compared; [`Time::MAX`] for never.
    pub fn due(&self) -> Time {
        self.step.as_ref().map_or(Time::MAX, |step| step.end)
    }

    /// Whether the state will be compared after such a period, or a longer one.
    pub fn compares(&self, period: Duration) -> bool {
        self.step.as_ref().is_some_and(|step| step.period >= period)
    }

    /// The group has been moved ahead: no step is compared.
    pub fn forget(&mut self) {
        self.step = None;
    }
}

/// The hosts of a group.
pub(super) fn hosts<'p, P: Probe>(
    parts: &'p [Part<P>],
    members: &'p [(usize, Members)],
) -> impl Iterator<Item = &'p Host> + Clone {
    members.iter().flat_map(|(part, members)| parts[*part].0.hosts_of(members))
}

/// The same, to change them.
pub(super) fn hosts_mut<'p, P: Probe>(
    parts: &'p mut [Part<P>],
    members: &'p [(usize, Members)],
) -> impl Iterator<Item = &'p mut Host> {
    let mut of_parts = members.iter().peekable();
    let of_part = move |(part, of): (usize, &'p mut Part<P>)| {
        let (_, members) = of_parts.next_if(|next| next.0 == part)?;
        Some(of.0.hosts_of_mut(members))
    };
    parts.iter_mut().enumerate().filter_map(of_part).flatten()
}

impl<'a, P: Probe, W: FnMut(Time, u64) -> bool> Island<'_, 'a, P, W> {
    /// Messages of a group have begun or ended. If what its busiest host starts repeats, begins to simulate a period of
    /// that, to compare the group's state at its end.
    pub(super) fn begin_step(&mut self, group: &mut Group<'a>) {
        if group.turns.step.is_some() || !self.may_turn_over() {
            return;
        }
        // Of shorter steps not much could be skipped.
        let period = self.period_of_starts_in(group).filter(|&period| period >= self.first_span());
        let Some(period) = period else { return };
        let Some(before) = self.note_group(group) else { return };
        let run = &mut *self.run.borrow_mut();
        let ranks = ranks_act_at(hosts(run.parts, &group.members));
        let logs = hosts_mut(run.parts, &group.members).map(LogOfHost::begin).collect();
        group.turns.step = Some(Step { before, ranks, period, end: self.now + period, tried: 0, logs });
    }

    /// The time after which what the busiest host of a group starts has repeated.
    fn period_of_starts_in(&mut self, group: &Group<'_>) -> Option<Duration> {
        let run = self.run.borrow();
        let busiest = busiest_host(hosts(run.parts, &group.members))?;
        let last = starts(&busiest.records).rev().take(STARTS);
        let mut started: Vec<_> = last.map(|record| start(self.plan, record)).collect();
        drop(run);
        started.reverse();
        self.spend(|budget| budget.looked_at(started.len()));
        period_of_starts(&started)
    }

    /// A step is over. If the group's state has recurred, it sleeps for as long as its ranks do the same.
    pub(super) fn end_step(&mut self, group: &mut Group<'a>) {
        let Some(mut step) = group.turns.step.take() else { return };
        if step.end == self.now
            && let Some(notes) = self.note_group(group)
        {
            match recurrence(&step.before, &notes) {
                Ok(found) if found.turnover => self.sleeps_by_steps(group, &found, &mut step),
                Err(_) if step.tried + 1 < MULTIPLES => {
                    (step.end, step.tried) = (step.end + step.period, step.tried + 1);
                    group.turns.step = Some(step);
                }
                _ => {}
            }
        }
    }

    /// Lets a group sleep for as long as its ranks do what they did in a step.
    fn sleeps_by_steps(&mut self, group: &mut Group<'a>, found: &Recurrence, step: &mut Step) {
        let period = found.period;
        let until = found.until.min(self.undisturbed_until());
        let most = (until.since(self.now).ps() / period.ps()).min(self.before_ends(found));
        {
            let run = &mut *self.run.borrow_mut();
            step.logs.iter_mut().zip(hosts_mut(run.parts, &group.members)).for_each(|(log, host)| log.end(host));
        }
        let logged = Logged { logs: &step.logs, length: period, end: self.now, found, ranks: &step.ranks };
        let alike = self.run.borrow().alike.clone();
        let (again, times) = {
            let run = self.run.borrow();
            let hosts = hosts(run.parts, &group.members);
            let Ok(again) = RankReplay::new(alike, hosts.clone(), &logged) else { return };
            let times = again.repeat(hosts, most.min(again.at_once())).0.later.len() as u64;
            (again, times)
        };
        self.groups.longest_step = self.groups.longest_step.max(period);
        if times > 0 {
            self.put_to_sleep(group, period * times, Way::TurnsOver(found.moves.clone(), Box::new(again)));
        }
    }
}
