//! Training jobs in a run: which ranks are at which host, and where they stand.

mod tables;

use node::Walk;
use std::sync::Arc;

use job::{Message, MessageId, Progress, Rank, Summed};
use rustc_hash::FxHashMap;
use units::{Duration, FlowId, HostId, Time};
use workload::PlacedJob;

use crate::FlowTable;

pub use tables::{Noted, job_tables};

/// The jobs of a run.
pub struct Jobs {
    placed: Arc<[PlacedJob]>,
    /// By host: the jobs that have ranks there, and which ranks.
    at: Vec<Vec<(u16, Vec<Rank>)>>,
    /// By job: whether it is noted when each of its steps was done. Of others there are sums.
    singly: Vec<bool>,
    /// The one that begins, where the others do not.
    alone: Option<u16>,
}

impl Jobs {
    /// These jobs, on a fabric of this many hosts, each noted singly or in sum. Their flows are the last of the run,
    /// job by job.
    pub fn new(placed: Arc<[PlacedJob]>, hosts: u32, singly: Vec<bool>) -> Jobs {
        let mut at = vec![Vec::new(); hosts as usize];
        for (job, placed) in (0..).zip(placed.iter()) {
            for (host, ranks) in placed.ranks_by_host() {
                at[host.index()].push((job, ranks));
            }
        }
        Jobs { placed, at, singly, alone: None }
    }

    /// The same, but only one of them begins.
    pub(crate) fn only(mut self, job: u16) -> Jobs {
        self.at.iter_mut().for_each(|here| here.retain(|of| of.0 == job));
        Jobs { alone: Some(job), ..self }
    }

    /// When a job begins; none if it does not.
    pub fn begins(&self, job: usize) -> Option<Time> {
        self.alone.is_none_or(|alone| usize::from(alone) == job).then(|| self.placed[job].start)
    }

    /// These ranks of a job, before anything has happened.
    pub fn progress(&self, job: usize, ranks: &[Rank]) -> Progress {
        let placed = &self.placed[job];
        let progress = Progress::new(placed.graph.clone(), placed.placement.clone(), ranks);
        if self.singly[job] { progress } else { progress.in_sum() }
    }

    /// Whether it is noted when each step of a job was done.
    pub fn is_noted_singly(&self, job: usize) -> bool {
        self.singly[job]
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.placed.is_empty()
    }

    /// All of them.
    pub fn iter(&self) -> std::slice::Iter<'_, PlacedJob> {
        self.placed.iter()
    }

    /// The job of a flow, and its message there; none for other traffic.
    #[inline]
    pub fn of(&self, flow: FlowId) -> Option<(u16, MessageId)> {
        let job = self.placed.partition_point(|job| job.first_flow <= flow).checked_sub(1)?;
        Some((job as u16, self.placed[job].message(flow)))
    }

    /// Whether ranks of some job are bound to links of their hosts.
    pub fn are_bound(&self) -> bool {
        self.placed.iter().any(|placed| placed.bound().is_some())
    }

    /// As bits, the links of a host to which a flow is bound there, of `count` links; none if it may use all.
    pub fn links_of(&self, flow: FlowId, host: HostId, count: u32) -> Option<u64> {
        let job = self.placed.partition_point(|job| job.first_flow <= flow).checked_sub(1)?;
        self.placed[job].links_of(flow, host, count)
    }

    /// How many parts jobs have at hosts. A run is over when each has ended, as each flow has.
    pub fn parts(&self) -> u64 {
        self.at.iter().map(|jobs| jobs.len() as u64).sum()
    }

    /// The work of a host for jobs; none if no rank is there.
    pub(crate) fn at(self: &Arc<Jobs>, host: HostId) -> Option<HostJobs> {
        let part = |(job, ranks): &(u16, Vec<Rank>)| {
            let placed = &self.placed[usize::from(*job)];
            let progress = self.progress(usize::from(*job), ranks);
            JobShare { job: *job, start: placed.start, begun: false, ended: false, progress }
        };
        let parts: Vec<JobShare> = self.at[host.index()].iter().map(part).collect();
        (!parts.is_empty()).then(|| HostJobs {
            jobs: self.clone(),
            parts,
            out: Vec::new(),
            leaving: FxHashMap::default(),
            log: None,
            keeps_log: false,
        })
    }
}

/// The ranks of jobs at one host.
#[derive(node::State)]
#[state(given(FlowTable), first(self.visit_progress(walk)), last(self.visit_leaving(walk, given)))]
pub struct HostJobs {
    jobs: Arc<Jobs>,
    #[state(skip("only beginnings and ends of flows move them, which are told again"))]
    parts: Vec<JobShare>,
    /// Messages that start now, for reuse.
    #[state(built("it is empty between events"))]
    out: Vec<MessageId>,
    /// By flow on a connection that is leaving: how many of its bytes have not left.
    #[state(skip("`visit_leaving` visits it"))]
    leaving: FxHashMap<FlowId, u64>,
    /// The log of what these ranks were told and started, while a period is searched for (`sim/src/ahead/turnover.rs`).
    #[state(skip("it is of the search for periods"))]
    log: Option<Vec<(Time, RankEvent)>>,
    /// Whether the log continues after its entries were taken.
    #[state(skip("it is of the search for periods"))]
    keeps_log: bool,
}

/// An event at the ranks of a host: something that they were told, or a flow that they started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, node::Saved)]
pub enum RankEvent {
    /// The time came at which a rank acts by itself, such as the end of a computation.
    Woken,
    /// A flow has been delivered whole.
    Delivered(FlowId),
    /// The sender of a flow, at this host, knows that it has been delivered.
    Completed(FlowId),
    /// The last byte of a flow has left.
    Left(FlowId),
    /// A rank started a flow.
    Starts(FlowId),
}

impl RankEvent {
    /// The flow that it is about.
    pub fn flow(self) -> Option<FlowId> {
        match self {
            RankEvent::Woken => None,
            RankEvent::Delivered(flow)
            | RankEvent::Completed(flow)
            | RankEvent::Left(flow)
            | RankEvent::Starts(flow) => Some(flow),
        }
    }
}

#[derive(Clone, node::Saved)]
struct JobShare {
    job: u16,
    start: Time,
    begun: bool,
    ended: bool,
    progress: Progress,
}

impl JobShare {
    fn begin(&mut self, now: Time, out: &mut Vec<MessageId>) {
        if !std::mem::replace(&mut self.begun, true) {
            self.progress.begin(now, out);
        }
    }
}

impl HostJobs {
    /// When ranks begin, or end something, though no message comes.
    pub fn next_at(&self) -> Time {
        let next = |part: &JobShare| if part.begun { part.progress.next_at() } else { part.start };
        self.parts.iter().map(next).min().unwrap_or(Time::MAX)
    }

    /// Whether all ranks of a job that are here have ended; none if there is none.
    pub fn has_ended(&self, job: usize) -> Option<bool> {
        self.parts.iter().find(|part| usize::from(part.job) == job).map(|part| part.ended)
    }

    /// How many jobs have ranks here that have not done everything.
    pub fn parts_left(&self) -> u64 {
        self.parts.iter().filter(|part| !part.ended).count() as u64
    }

    /// Time has come to [`HostJobs::next_at`]. Tells the flows that start, and returns how many parts have ended.
    pub fn wake(&mut self, now: Time, start: impl FnMut(FlowId)) -> u64 {
        self.note(now, RankEvent::Woken);
        self.tell(now, start, |part, out| {
            if part.start <= now {
                part.begin(now, out);
                part.progress.wake(now, out);
            }
        })
    }

    /// A flow from another host has arrived whole.
    pub fn delivered(&mut self, now: Time, flow: FlowId, start: impl FnMut(FlowId)) -> u64 {
        let Some((job, message)) = self.jobs.of(flow) else { return 0 };
        self.note(now, RankEvent::Delivered(flow));
        self.tell(now, start, |part, out| {
            if part.job == job {
                // The job may not have begun here yet: the clock of the sender's machine may be ahead.
                part.begin(now, out);
                part.progress.arrived(message, now, out);
            }
        })
    }

    /// The sender of a flow, here, knows that it has arrived.
    pub fn completed(&mut self, now: Time, flow: FlowId, mut start: impl FnMut(FlowId)) -> u64 {
        let Some((job, message)) = self.jobs.of(flow) else { return 0 };
        // All bytes of a flow that has arrived have left, whatever was counted.
        self.leaving(now, flow, u64::MAX, &mut start);
        self.note(now, RankEvent::Completed(flow));
        self.tell(now, start, |part, out| {
            if part.job == job {
                part.progress.sent(message, now, out);
            }
        })
    }

    fn tell(
        &mut self,
        now: Time,
        mut start: impl FnMut(FlowId),
        mut tell: impl FnMut(&mut JobShare, &mut Vec<MessageId>),
    ) -> u64 {
        let mut ended = 0;
        for part in &mut self.parts {
            tell(part, &mut self.out);
            // A step that takes no time, such as a delay of 0, may be over at once.
            if part.begun && part.progress.next_at() <= now {
                part.progress.wake(now, &mut self.out);
            }
            let placed = &self.jobs.placed[usize::from(part.job)];
            for message in self.out.drain(..) {
                let flow = placed.flow(message).expect("a message within the host is not told of");
                let Message { connection, bytes, .. } = placed.graph.message(message);
                if connection != Message::ALONE {
                    self.leaving.insert(flow, bytes);
                }
                if let Some(log) = &mut self.log {
                    log.push((now, RankEvent::Starts(flow)));
                }
                start(flow);
            }
            if !part.ended && part.progress.left() == 0 {
                part.ended = true;
                ended += 1;
            }
        }
        ended
    }

    /// Bytes of a flow leave this host. If they were the last of the flow, the ranks may start others: says which.
    pub fn leaving(&mut self, now: Time, flow: FlowId, bytes: u64, start: impl FnMut(FlowId)) -> u64 {
        let Some(left) = self.leaving.get_mut(&flow) else { return 0 };
        *left = left.saturating_sub(bytes);
        if *left > 0 {
            return 0;
        }
        self.leaving.remove(&flow);
        let Some((job, message)) = self.jobs.of(flow) else { return 0 };
        self.note(now, RankEvent::Left(flow));
        self.tell(now, start, |part, out| {
            if part.job == job {
                part.progress.left_host(message, now, out);
            }
        })
    }

    #[inline]
    fn note(&mut self, now: Time, told: RankEvent) {
        if let Some(log) = &mut self.log {
            log.push((now, told));
        }
    }

    /// From now on, what ranks are told and start is logged. Says how much has been logged before.
    pub fn begin_log(&mut self) -> usize {
        self.log.get_or_insert_default().len()
    }

    /// The entries that were logged after the given number. Nothing more is, if the log is not kept.
    pub fn take_log(&mut self, from: usize) -> Vec<(Time, RankEvent)> {
        if self.keeps_log {
            return self.log.as_deref().unwrap_or_default()[from..].to_vec();
        }
        let mut log = self.log.take().unwrap_or_default();
        log.drain(..from);
        log
    }

    /// Begins a log that does not end, so that several can be begun and taken at a time.
    pub fn keep_log(&mut self) {
        self.keeps_log = true;
        self.begin_log();
    }

    /// A copy, which can be told something ahead of time ([`HostJobs::take_over`]).
    #[must_use]
    pub fn copy(&self) -> HostJobs {
        let HostJobs { jobs, parts, leaving, keeps_log, .. } = self;
        let (jobs, parts, leaving) = (jobs.clone(), parts.clone(), leaving.clone());
        HostJobs { jobs, parts, out: Vec::new(), leaving, log: keeps_log.then(Vec::new), keeps_log: *keeps_log }
    }

    /// Tells ranks something from a log once more, perhaps about another flow. Says which flows start, and returns how
    /// many parts have ended.
    pub fn tell_again(&mut self, now: Time, told: RankEvent, start: impl FnMut(FlowId)) -> u64 {
        match told {
            RankEvent::Woken => self.wake(now, start),
            RankEvent::Delivered(flow) => self.delivered(now, flow, start),
            RankEvent::Completed(flow) => self.completed(now, flow, start),
            RankEvent::Left(flow) => self.leaving(now, flow, u64::MAX, start),
            RankEvent::Starts(_) => 0,
        }
    }

    /// Which flows are leaving, by connection, and how many of their bytes have not left.
    pub fn all_leaving(&self) -> Vec<(FlowId, u64)> {
        #[expect(clippy::disallowed_methods, reason = "they are put in order")]
        let mut leaving: Vec<_> = self.leaving.iter().map(|(&flow, &left)| (flow, left)).collect();
        leaving.sort_unstable_by_key(|&(flow, _)| {
            let of = self.jobs.of(flow);
            of.map(|(job, message)| (job, self.jobs.placed[usize::from(job)].graph.message(message).connection))
        });
        leaving
    }

    /// Takes over what a copy was told, and logs it. The same flows are leaving, and as many of their bytes have left
    /// as here, since notices to ranks that are repeated do not say how many leave.
    pub fn take_over(&mut self, copy: HostJobs) {
        debug_assert!(self.leaving.len() == copy.leaving.len());
        let (leaving, mut log) = (std::mem::take(&mut self.leaving), self.log.take());
        if let Some(log) = &mut log {
            log.extend(copy.log.iter().flatten());
        }
        *self = HostJobs { leaving, log, ..copy };
    }

    /// The computations that have ended here since then: when, and for how long each took. Job by job, the last one
    /// first.
    pub fn computed_since(&self, since: Time) -> impl Iterator<Item = (Time, Duration)> {
        let computed = self.parts.iter().flat_map(move |part| {
            let back = part.progress.computed_back();
            back.take_while(move |done| done.end >= since)
        });
        computed.map(|done| (done.end, done.end - done.begin))
    }

    /// Sums over the steps here of jobs whose steps are not noted one by one, with the job's number.
    pub fn summed(&self) -> impl Iterator<Item = (u16, &Summed)> {
        self.parts.iter().filter_map(|part| Some((part.job, part.progress.summed()?)))
    }

    /// The notes on computations and on messages within the host, with the job's number.
    pub fn done(&self) -> impl Iterator<Item = Noted> + '_ {
        self.parts.iter().flat_map(|part| part.progress.done().iter().map(|&done| (part.job, done)))
    }

    /// The ranks' progress. Only beginnings and ends of flows move it: whoever skips a period with such events tells
    /// them to the ranks again ([`HostJobs::tell_again`]).
    fn visit_progress(&self, walk: &mut Walk) {
        for part in &self.parts {
            let (waiting, behind) = part.progress.waiting();
            let done = part.progress.done().len() as u64;
            [part.begun.into(), part.ended.into(), part.progress.left(), done, waiting, behind as u64]
                .into_iter()
                .for_each(|of| walk.told(of));
        }
        walk.rank_acts(self.next_at());
    }

    fn visit_leaving(&mut self, walk: &mut Walk, flows: &FlowTable) {
        let mut leaving = self.all_leaving();
        walk.same(leaving.len());
        for (flow, left) in &mut leaving {
            walk.flow(flow);
            let bytes = flows.get(*flow).bytes;
            let mut gone = bytes - *left;
            walk.sequence(*flow, 1, &mut gone);
            *left = bytes - gone;
        }
        self.leaving = leaving.into_iter().collect();
    }
}
