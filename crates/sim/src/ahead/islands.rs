//! Which islands there are at a time: districts of the network that something connects, from when it begins until it
//! has ended ([`driver::Islands`]).

use std::ops::Range;

use driver::{Bond, Islands, Probe, Until};
use run::{FlowEvent, FlowRecord, Host, Plan};
use rustc_hash::FxHashMap;
use units::{Duration, FlowId, Time};

use super::own::Read;
use crate::part::Part;

/// After a flow or a job has ended, what connected its nodes lasts for so many round trips more: late packets may still
/// be under way.
const ROUND_TRIPS: u64 = 8;

/// How long late packets of a flow that has ended may still be under way.
pub(super) fn late(plan: &Plan) -> Duration {
    plan.sites.iter().map(|site| site.data_rtt).max().unwrap_or_default() * ROUND_TRIPS
}

/// What connects districts, now and later.
pub(super) struct Connections {
    /// By district, its parts.
    districts: Vec<Range<usize>>,
    /// What has not begun, the first last.
    coming: Vec<Bond>,
    /// What lasts, and if it has ended, until when.
    lasting: Vec<(Bond, Time)>,
    late: Duration,
    /// Which records of flows are known.
    read: Read,
    /// How many flows, and parts that jobs have at hosts, had ended when somebody last looked.
    ended: u64,
    /// By flow that connects districts by itself.
    ends: FxHashMap<FlowId, Ends>,
}

/// What is known of the end of a flow.
#[derive(Clone, Copy, Default)]
pub(super) struct Ends {
    delivered: bool,
    completed: bool,
    last: Time,
}

impl Ends {
    /// Something has happened to the flow.
    pub fn note(&mut self, record: &FlowRecord) {
        let over = matches!(record.fate, FlowEvent::Failed(_) | FlowEvent::Rejected);
        self.delivered |= over || matches!(record.fate, FlowEvent::Delivered { .. });
        self.completed |= over || matches!(record.fate, FlowEvent::Completed { .. });
        self.last = self.last.max(record.at);
    }

    /// When the later of its two hosts noted it.
    pub fn at(self) -> Option<Time> {
        (self.delivered && self.completed).then_some(self.last)
    }
}

/// When the last message of a job was over, or a later one at these hosts, if all of its ranks have ended.
fn ended_at<'h>(hosts: impl Iterator<Item = &'h Host>, job: usize) -> Option<Time> {
    let of_job = hosts.filter_map(|host| Some((host, host.jobs()?.has_ended(job)?)));
    let last = |host: &Host| host.records.last().map_or(Time::ZERO, |record| record.at);
    of_job.map(|(host, ended)| ended.then(|| last(host))).try_fold(Time::ZERO, |all, last| Some(all.max(last?)))
}

impl Connections {
    pub fn new(plan: &Plan, islands: &Islands, districts: &[Range<usize>]) -> Connections {
        let mut coming = islands.bonds().to_vec();
        coming.sort_by_key(|bond| std::cmp::Reverse(bond.from));
        let ends = coming.iter().filter_map(|bond| match bond.until {
            Until::FlowEnds(flow) => Some((flow, Ends::default())),
            Until::RunEnds | Until::JobEnds(_) => None,
        });
        Connections {
            districts: districts.to_vec(),
            ends: ends.collect(),
            coming,
            lasting: Vec::new(),
            late: late(plan),
            read: Read::default(),
            ended: 0,
        }
    }

    /// When something next begins; [`Time::MAX`] if nothing does.
    pub fn next_at(&self) -> Time {
        self.coming.last().map_or(Time::MAX, |bond| bond.from)
    }

    /// When something begins that connects some of these districts with others.
    pub fn alone_until(&self, districts: u32) -> Time {
        let joins = |bond: &&Bond| bond.districts & districts != 0 && bond.districts & !districts != 0;
        self.coming.iter().rev().find(joins).map_or(Time::MAX, |bond| bond.from)
    }

    /// The districts of each island, if they may be others than before. `is_ahead` says of districts whether they have
    /// been moved beyond `now`: they stay together.
    pub fn changed<P: Probe>(
        &mut self,
        now: Time,
        parts: &[Part<P>],
        is_ahead: impl Fn(u32) -> bool,
    ) -> Option<Vec<u32>> {
        let before = (self.coming.len(), self.lasting.len());
        while let Some(bond) = self.coming.pop_if(|bond| bond.from <= now) {
            self.lasting.push((bond, Time::MAX));
        }
        self.note_ends(parts);
        self.lasting.retain(|(bond, until)| *until > now || is_ahead(bond.districts));
        (before != (self.coming.len(), self.lasting.len())).then(|| self.islands())
    }

    /// The districts of each island, in the order of their first ones.
    fn islands(&self) -> Vec<u32> {
        let mut islands: Vec<u32> = Vec::new();
        for (bond, _) in &self.lasting {
            let (joined, apart) = islands.into_iter().partition(|island| island & bond.districts != 0);
            islands = apart;
            islands.push(Vec::into_iter(joined).fold(bond.districts, |all, island| all | island));
        }
        islands.sort_unstable_by_key(|island| island.trailing_zeros());
        islands
    }

    /// By part, its island; 0 if it is in none.
    pub fn islands_of_parts(&self, islands: &[u32]) -> Vec<u32> {
        let of = |district: usize| islands.iter().find(|island| *island >> district & 1 == 1).copied().unwrap_or(0);
        let of = |(district, parts): (usize, &Range<usize>)| parts.clone().map(move |_| of(district));
        self.districts.iter().enumerate().flat_map(of).collect()
    }

    /// Notes what has ended since the last time.
    fn note_ends<P: Probe>(&mut self, parts: &[Part<P>]) {
        if self.lasting.iter().all(|(bond, _)| bond.until == Until::RunEnds) {
            return;
        }
        let hosts = || parts.iter().flat_map(|part| &part.0.hosts).map(|slot| &slot.host);
        self.read.read(hosts(), |record| {
            if let Some(ends) = self.ends.get_mut(&record.flow) {
                ends.note(record);
            }
        });
        let ended = parts.iter().map(|part| part.0.ended_flows()).sum();
        let jobs_go_on = std::mem::replace(&mut self.ended, ended) == ended;
        for (bond, until) in self.lasting.iter_mut().filter(|(_, until)| *until == Time::MAX) {
            let last = match bond.until {
                Until::RunEnds => continue,
                Until::JobEnds(_) if jobs_go_on => continue,
                Until::JobEnds(job) => ended_at(hosts(), job),
                Until::FlowEnds(flow) => self.ends[&flow].at(),
            };
            *until = last.map_or(Time::MAX, |last| last + self.late);
        }
    }
}

#[cfg(test)]
mod tests;
