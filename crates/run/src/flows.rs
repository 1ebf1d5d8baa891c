use std::ops::Range;

use units::{FlowId, HostId, Time};

/// What the run knows of a flow beforehand.
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
    /// When it starts, if that is known beforehand: it waits for no other flow and for no rank of a job.
    pub fn begins(&self) -> Option<Time> {
        (self.after.is_none() && self.start != workload::Flow::BY_JOB).then_some(self.start)
    }
}

/// All flows of a run, and which of them start at which host.
///
/// Those that a scenario names are known beforehand. In a live run programs may send more ([`FlowTable::add`]), which
/// get the numbers that follow; they can be added, and looked up, from any thread.
pub struct FlowTable {
    flows: Vec<FlowInfo>,
    /// Those that the run is about; the others never begin.
    part: Range<usize>,
    added: boxcar::Vec<FlowInfo>,
    by_src: Vec<FlowId>,
    /// Per host, where its part of `by_src` begins; one more at the end.
    first: Vec<u32>,
}

impl FlowTable {
    /// A table of these flows for a fabric of `hosts` hosts; a flow's id is its place.
    pub fn new(flows: Vec<FlowInfo>, hosts: u32) -> FlowTable {
        let mut by_src: Vec<FlowId> = (0..flows.len()).map(FlowId::from).collect();
        by_src.sort_by_key(|flow| flows[flow.index()].src);
        let below = |host| by_src.partition_point(|flow| flows[flow.index()].src.0 < host) as u32;
        let first = (0..=hosts).map(below).collect();
        FlowTable { part: 0..flows.len(), flows, added: boxcar::Vec::new(), by_src, first }
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
    pub fn taking_part(&self) -> &[FlowInfo] {
        &self.flows[self.part.clone()]
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.flows.len() + self.added.count()
    }

    /// How many of them were known beforehand.
    pub fn planned(&self) -> usize {
        self.flows.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds a flow that a program sends. `None` if all numbers are taken: half of the 2^32 numbers are for flows, the
    /// other half is for attached hosts.
    pub fn add(&self, flow: FlowInfo) -> Option<FlowId> {
        (self.len() < (1 << 31) - 1).then(|| FlowId::from(self.flows.len() + self.added.push(flow)))
    }

    /// Where a flow is among those that programs have sent, if it is one of them.
    #[inline]
    pub fn place_added(&self, flow: FlowId) -> Option<usize> {
        flow.index().checked_sub(self.flows.len()).filter(|_| flow.0 < 1 << 31)
    }

    /// One flow.
    #[inline]
    pub fn get(&self, flow: FlowId) -> &FlowInfo {
        self.try_get(flow).expect("a flow of the run")
    }

    /// The flow of this number, if there is one: packets that limiters send have none.
    #[inline]
    pub fn try_get(&self, flow: FlowId) -> Option<&FlowInfo> {
        self.flows.get(flow.index()).or_else(|| self.get_added(flow))
    }

    #[cold]
    fn get_added(&self, flow: FlowId) -> Option<&FlowInfo> {
        self.added.get(flow.index() - self.flows.len())
    }

    /// The flows that `host` sends, as far as they were known beforehand.
    pub fn of(&self, host: HostId) -> &[FlowId] {
        &self.by_src[self.first[host.index()] as usize..self.first[host.index() + 1] as usize]
    }

    /// All flows, in order.
    pub fn iter(&self) -> impl Iterator<Item = &FlowInfo> {
        self.flows.iter().chain(self.added.iter().map(|(_, flow)| flow))
    }
}
