use std::ops::Range;
use std::sync::Arc;

use units::{FlowId, HostId, Time};
use workload::PlacedJob;

/// The facts on a flow that the run knows beforehand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowInfo {
    /// Sending host.
    pub src: HostId,
    /// Receiving host.
    pub dst: HostId,
    /// Length of the message.
    pub bytes: u64,
    /// When it starts; with `after`, how long after that other flow's end; [`workload::Flow::BY_JOB`] if its job says.
    pub start: Time,
    /// The flow that it waits for.
    pub after: Option<FlowId>,
    /// Index of its traffic class in the scenario.
    pub class: u16,
    /// Index of its transport in the run.
    pub transport: u8,
}

impl FlowInfo {
    /// Of a flow over the transport of this index.
    pub fn new(flow: workload::Flow, transport: u8) -> FlowInfo {
        let workload::Flow { src, dst, bytes, start, class, after } = flow;
        FlowInfo { src, dst, bytes, start, after, class, transport }
    }

    /// When it starts, if that is known beforehand: it waits for no other flow and for no rank of a job.
    pub fn begins(&self) -> Option<Time> {
        (self.after.is_none() && self.start != workload::Flow::BY_JOB).then_some(self.start)
    }
}

/// All flows of a run, and which of them start at which host.
///
/// Those that a scenario names are known beforehand: first those of its traffic, in a list, then those of its jobs,
/// which are computed from the jobs' graphs on demand. In a live run programs may send more
/// ([`FlowTable::add`]), which get the numbers that follow; they can be added, and looked up, from any thread.
pub struct FlowTable {
    /// Those of traffic.
    flows: Vec<FlowInfo>,
    jobs: Arc<[PlacedJob]>,
    /// By job: its flows' transport.
    transport: Vec<u8>,
    /// How many were known beforehand.
    planned: usize,
    /// Of how many of these results have a row each: of the others there are only sums.
    listed: usize,
    /// Those that the run is about; the others never begin.
    part: Range<usize>,
    added: boxcar::Vec<FlowInfo>,
    /// Those of traffic, by source.
    by_src: Vec<FlowId>,
    /// Per host, where its part of `by_src` begins; one more at the end.
    first: Vec<u32>,
}

impl FlowTable {
    /// A table of these flows for a fabric of `hosts` hosts; a flow's id is its place.
    pub fn new(flows: Vec<FlowInfo>, hosts: u32) -> FlowTable {
        FlowTable::with_jobs(flows, hosts, [].into(), Vec::new())
    }

    /// The same with the flows of jobs, which follow those of traffic; by job, with their transport.
    pub fn with_jobs(flows: Vec<FlowInfo>, hosts: u32, jobs: Arc<[PlacedJob]>, transport: Vec<u8>) -> FlowTable {
        let mut by_src: Vec<FlowId> = (0..flows.len()).map(FlowId::from).collect();
        by_src.sort_by_key(|flow| flows[flow.index()].src);
        let below = |host| by_src.partition_point(|flow| flows[flow.index()].src.0 < host) as u32;
        let first = (0..=hosts).map(below).collect();
        let planned = flows.len() + jobs.iter().map(PlacedJob::flows).sum::<usize>();
        let (part, added) = (0..planned, boxcar::Vec::new());
        FlowTable { flows, jobs, transport, planned, listed: planned, part, added, by_src, first }
    }

    /// The same, but of the flows of jobs only the first `most` have a row each in results.
    #[must_use]
    pub(crate) fn list_at_most(mut self, most: u64) -> FlowTable {
        let of_jobs = (self.planned - self.flows.len()) as u64;
        self.listed = self.flows.len() + of_jobs.min(most) as usize;
        self
    }

    /// The row of a flow in results, if it has one.
    #[inline]
    pub fn row(&self, flow: FlowId) -> Option<usize> {
        match flow.index() {
            index if index < self.listed => Some(index),
            index => Some(index.checked_sub(self.planned)? + self.listed),
        }
    }

    /// The flows that have a row each, in order.
    pub fn rows(&self) -> impl Iterator<Item = (FlowId, FlowInfo)> {
        let planned = (0..self.listed).map(FlowId::from).map(|flow| (flow, self.get(flow)));
        planned.chain(self.added.iter().map(|(at, flow)| (FlowId::from(self.planned + at), *flow)))
    }

    /// How many these are.
    pub fn row_count(&self) -> usize {
        self.listed + self.added.count()
    }

    /// How many flows of the run have none.
    pub fn unlisted(&self) -> u64 {
        self.part.end.saturating_sub(self.part.start.max(self.listed)) as u64
    }

    /// By job: which flows are its own, how many of them have no row, and their transport and class.
    pub fn jobs(&self) -> impl Iterator<Item = (Range<usize>, u64, (u8, u16))> {
        self.jobs.iter().zip(&self.transport).map(|(job, &transport)| {
            let first = job.first_flow.index();
            let flows = first..first + job.flows();
            let unlisted = flows.end.saturating_sub(self.listed.max(flows.start)) as u64;
            (flows, unlisted, (transport, job.class))
        })
    }

    /// The flows of jobs in kinds, with how many there are of each.
    pub fn each_kind_of_jobs(&self, mut each: impl FnMut(FlowInfo, u64)) {
        for (job, &transport) in self.jobs.iter().zip(&self.transport) {
            job.each_kind(|(src, dst), bytes, count| {
                let (start, class) = (workload::Flow::BY_JOB, job.class);
                each(FlowInfo { src, dst, bytes, start, after: None, class, transport }, count);
            });
        }
    }

    /// Bytes of all that were known beforehand.
    pub fn bytes(&self) -> u64 {
        let traffic = self.flows.iter().fold(0, |sum: u64, flow| sum.saturating_add(flow.bytes));
        let mut all = traffic;
        self.each_kind_of_jobs(|flow, count| all = all.saturating_add(flow.bytes.saturating_mul(count)));
        all
    }

    /// The same of those that the run is about.
    pub fn bytes_taking_part(&self) -> u64 {
        if self.part == (0..self.planned) {
            return self.bytes();
        }
        self.taking_part().fold(0, |sum, flow| sum.saturating_add(flow.bytes))
    }

    /// Those of traffic.
    pub fn of_traffic(&self) -> &[FlowInfo] {
        &self.flows
    }

    /// The same flows under the same numbers, so that they take the same paths, but those outside of `part` never
    /// begin.
    pub(crate) fn only(mut self, part: Range<usize>) -> FlowTable {
        for flow in (0..self.flows.len()).filter(|flow| !part.contains(flow)) {
            (self.flows[flow].start, self.flows[flow].after) = (workload::Flow::BY_JOB, None);
        }
        self.part = part;
        self
    }

    /// The flows that the run is about: all, unless it is about one job.
    pub fn taking_part(&self) -> impl ExactSizeIterator<Item = FlowInfo> {
        self.part.clone().map(|flow| self.get(FlowId::from(flow)))
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.planned + self.added.count()
    }

    /// How many of them were known beforehand.
    pub fn planned(&self) -> usize {
        self.planned
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds a flow that a program sends. `None` if all numbers are taken: half of the 2^32 numbers are for flows, the
    /// other half is for attached hosts.
    pub fn add(&self, flow: FlowInfo) -> Option<FlowId> {
        (self.len() < (1 << 31) - 1).then(|| FlowId::from(self.planned + self.added.push(flow)))
    }

    /// Where a flow is among those that programs have sent, if it is one of them.
    #[inline]
    pub fn place_added(&self, flow: FlowId) -> Option<usize> {
        flow.index().checked_sub(self.planned).filter(|_| flow.0 < 1 << 31)
    }

    /// One flow.
    #[inline]
    pub fn get(&self, flow: FlowId) -> FlowInfo {
        self.try_get(flow).expect("a flow of the run")
    }

    /// The flow of this number, if there is one: packets that limiters send have none.
    #[inline]
    pub fn try_get(&self, flow: FlowId) -> Option<FlowInfo> {
        self.flows.get(flow.index()).copied().or_else(|| self.get_other(flow))
    }

    fn get_other(&self, flow: FlowId) -> Option<FlowInfo> {
        if flow.index() >= self.planned {
            return self.added.get(flow.index() - self.planned).copied();
        }
        let (job, placed) = self.job_of(flow);
        let flow = placed.flow_at(flow.0 - placed.first_flow.0);
        Some(FlowInfo::new(flow, self.transport[job]))
    }

    /// The class of a flow.
    #[inline]
    pub fn class(&self, flow: FlowId) -> u16 {
        match self.flows.get(flow.index()) {
            Some(flow) => flow.class,
            None if flow.index() < self.planned => self.job_of(flow).1.class,
            None => self.get(flow).class,
        }
    }

    /// The job of a flow, and its number.
    fn job_of(&self, flow: FlowId) -> (usize, &PlacedJob) {
        let job = self.jobs.partition_point(|job| job.first_flow <= flow) - 1;
        (job, &self.jobs[job])
    }

    /// The flows that `host` sends, as far as they were known beforehand, but for those of jobs.
    pub fn of(&self, host: HostId) -> &[FlowId] {
        &self.by_src[self.first[host.index()] as usize..self.first[host.index() + 1] as usize]
    }

    /// All flows, in order.
    pub fn iter(&self) -> impl Iterator<Item = FlowInfo> {
        let planned = (0..self.planned).map(|flow| self.get(FlowId::from(flow)));
        planned.chain(self.added.iter().map(|(_, flow)| *flow))
    }
}
