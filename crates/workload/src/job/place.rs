//! Which rank is on which host, and the flows of a job.

use std::collections::BTreeMap;
use std::sync::Arc;

use job::{Crossing, Graph, Message, MessageId, Rank};
use units::{FlowId, HostId, Problem, Stream, Time, interrupt, mix};

use super::{Job, Nics, Placement};
use crate::generate::{BYTES_MAX, FLOWS_MAX, too_many_bytes};
use crate::room::Room;
use crate::{FabricView, Flow};

/// A job on hosts.
#[derive(Clone, PartialEq, Debug)]
pub struct PlacedJob {
    /// Its name.
    pub name: String,
    /// The class of its flows.
    pub class: u16,
    /// The work of its ranks.
    pub graph: Arc<Graph>,
    /// Where they are.
    pub placement: Arc<job::Placement>,
    /// When they begin.
    pub start: Time,
    /// Its flows are consecutive: this one and as many more as there are messages that leave their hosts.
    pub first_flow: FlowId,
    /// Which messages these are, in order.
    crossing: Crossing,
    /// Which links of a host its ranks use, if they are bound, and how many ranks a host has.
    nics: Option<(Nics, u32)>,
}

impl PlacedJob {
    /// The message of a flow of this job.
    #[inline]
    pub fn message(&self, flow: FlowId) -> MessageId {
        self.crossing.id(&self.graph, flow.0 - self.first_flow.0)
    }

    /// The flow of a message; none if it does not leave its host.
    #[inline]
    pub fn flow(&self, message: MessageId) -> Option<FlowId> {
        self.crossing.number(&self.graph, message).map(|number| FlowId(self.first_flow.0 + number))
    }

    /// As bits, the links of a host to which a flow is bound there, of `count` links; none if it may use all.
    pub fn links_of(&self, flow: FlowId, host: HostId, count: u32) -> Option<u64> {
        let (nics, ranks) = self.nics.as_ref()?;
        let Message { from, to, .. } = self.crossing.message(&self.graph, flow.0 - self.first_flow.0);
        let rank = if self.placement.host_of[from.index()] == host { from } else { to };
        Some(nics.links(rank.0 % ranks, *ranks, count))
    }

    /// Whether its ranks are bound to links, and the highest number of a link that the scenario names.
    pub fn bound(&self) -> Option<u32> {
        match &self.nics.as_ref()?.0 {
            Nics::ByRank => Some(0),
            Nics::Links(links) => links.iter().max().copied(),
        }
    }

    /// How many flows it has.
    pub fn flows(&self) -> usize {
        self.crossing.count()
    }

    /// Its flow of this place among its flows.
    ///
    /// # Panics
    /// If there is none.
    pub fn flow_at(&self, place: u32) -> Flow {
        let Message { from, to, bytes, .. } = self.crossing.message(&self.graph, place);
        let host = |rank: Rank| self.placement.host_of[rank.index()];
        Flow { src: host(from), dst: host(to), bytes, start: Flow::BY_JOB, class: self.class, after: None }
    }

    /// Tells its flows in kinds: the ends, the length, and how many are like that.
    pub fn each_kind(&self, mut each: impl FnMut((HostId, HostId), u64, u64)) {
        let host = |rank: Rank| self.placement.host_of[rank.index()];
        self.crossing.each_kind(&self.graph, |(from, to), bytes, count| each((host(from), host(to)), bytes, count));
    }

    /// The ranks of each host that has some, by host.
    pub fn ranks_by_host(&self) -> Vec<(HostId, Vec<Rank>)> {
        let mut ranks: Vec<(HostId, Rank)> = self.placement.host_of.iter().copied().zip((0..).map(Rank)).collect();
        ranks.sort_unstable();
        let of = |part: &[(HostId, Rank)]| (part[0].0, part.iter().map(|of| of.1).collect());
        ranks.chunk_by(|a, b| a.0 == b.0).map(of).collect()
    }
}

/// Places jobs on hosts. Their flows start when their ranks come to them ([`Flow::BY_JOB`]), and follow `others`, job
/// by job. The first job's are of class `class`, and so on. A problem's key begins with the job's index, `[1].ranks`.
pub fn place<T: Clone>(
    jobs: &[Job<T>],
    class: u16,
    view: &FabricView,
    seed: u64,
    room: &Room,
    others: &[Flow],
) -> Result<Vec<PlacedJob>, Problem> {
    let here = |index: usize| move |problem: Problem| problem.under(format!("[{index}]"));
    let mut bytes = others.iter().map(|flow| u128::from(flow.bytes)).sum::<u128>();
    let mut left = room.without_flows(others.len() as u64);
    for (index, job) in jobs.iter().enumerate() {
        let count = job.check_size(view, seed, &left).map_err(here(index))?;
        left = left.without_job(&count);
        bytes += u128::from(count.bytes);
        if bytes > u128::from(BYTES_MAX) {
            return Err(here(index)(too_many_bytes("", bytes)));
        }
    }
    let mut flows = others.len();
    let one = |(index, job): (usize, &Job<T>)| {
        let placed = job.place(class + index as u16, view, seed, flows);
        flows += placed.as_ref().map_or(0, PlacedJob::flows);
        placed.map_err(here(index))
    };
    jobs.iter().enumerate().map(one).collect()
}

impl<T> Job<T> {
    /// How many ranks the job has on this fabric.
    pub(super) fn ranks_on(&self, view: &FabricView) -> Result<u32, Problem> {
        self.check_source()?;
        if self.iterations == 0 {
            return Err(Problem::new("iterations", "at 0 the job does nothing; write at least 1"));
        }
        if self.local.rate.bps() == 0 {
            return Err(Problem::new("local.rate", "at 0 nothing would arrive; write a rate such as \"3.6Tbps\""));
        }
        if let Some(Nics::Links(links)) = &self.nics
            && links.len() != self.ranks_per_host as usize
        {
            let message =
                format!("has {} links; write one for each of the {} ranks of a host", links.len(), self.ranks_per_host);
            return Err(Problem::new("nics.links", message));
        }
        let hosts = self.hosts(view)?.len();
        let room = hosts as u64 * u64::from(self.ranks_per_host);
        let whole = u64::from(u32::try_from(room).unwrap_or(u32::MAX));
        let ranks = self.own_ranks().or(self.ranks.map(u64::from)).unwrap_or(whole);
        if ranks > room || ranks < 2 {
            let message = format!(
                "a job of {ranks} ranks does not go on {} hosts with {} ranks each; it has 2 to {room}",
                hosts, self.ranks_per_host
            );
            let key = match (&self.model, &self.trace, self.ranks) {
                (Some(_), ..) => "model.degrees",
                (_, Some(_), _) => "trace",
                (.., Some(_)) => "ranks",
                _ => "hosts",
            };
            return Err(Problem::new(key, message));
        }
        Ok(u32::try_from(ranks).unwrap_or(u32::MAX))
    }

    fn place(&self, class: u16, view: &FabricView, seed: u64, flows: usize) -> Result<PlacedJob, Problem> {
        let ranks = self.ranks_on(view)?;
        let hosts = self.hosts_in_order(view, seed)?;
        let host_of = (0..ranks as usize).map(|rank| hosts[rank / self.ranks_per_host as usize]).collect();
        let placement = job::Placement { host_of, rate: self.local.rate, delay: self.local.delay };
        let graph = match &self.loaded {
            Some(loaded) => loaded.graph()?,
            None => Arc::new(self.graph(ranks, seed, self.nic(view)?)?),
        };
        let crossing = Crossing::new(&graph, &placement, FLOWS_MAX.saturating_sub(flows as u64));
        interrupt::check()?;
        let Some(crossing) = crossing else {
            let message = format!("has more than {FLOWS_MAX} messages, which is the most; write larger chunks");
            return Err(Problem::new("steps", message));
        };
        let first_flow = FlowId::from(flows);
        let (name, start) = (self.name.clone(), self.start);
        let placement = Arc::new(placement);
        let nics = self.nics.clone().map(|nics| (nics, self.ranks_per_host));
        Ok(PlacedJob { name, class, graph, placement, start, first_flow, crossing, nics })
    }

    /// Whether it is said once what ranks do.
    fn check_source(&self) -> Result<(), Problem> {
        let given = [!self.steps.is_empty(), self.model.is_some(), self.trace.is_some()];
        if given.iter().filter(|given| **given).count() != 1 {
            let message = "a job has steps, a model or a trace, and one of them: write steps = [{ all_reduce = { bytes \
                           = \"1GB\" } }], for example";
            return Err(Problem::new("steps", message));
        }
        if self.trace.is_some() && self.loaded.is_none() {
            return Err(Problem::new("trace", "the file has not been read yet; load the files first"));
        }
        Ok(())
    }

    /// Settings that have no effect beside the others.
    pub fn advice(&self) -> Vec<Problem> {
        let of_model = self.model.iter().flat_map(|model| model.advice()).map(|problem| problem.under("model"));
        let has_own = self.model.is_some() || self.trace.is_some();
        let unused = [
            ("ranks", has_own && self.ranks.is_some(), "which says itself how many ranks there are"),
            ("iterations", self.trace.is_some() && self.iterations != 1, "which is done once"),
            (
                "stragglers",
                self.trace.is_some() && !self.stragglers.is_empty(),
                "which says itself how long each takes",
            ),
        ];
        let beside = if self.trace.is_some() { "trace" } else { "model" };
        let said = |(key, _, why): (&str, bool, &str)| {
            Problem::new(key, format!("has no effect beside a {beside}, {why}; delete it"))
        };
        unused.into_iter().filter(|unused| unused.1).map(said).chain(of_model).collect()
    }

    /// The hosts that the job may be on.
    pub(super) fn hosts(&self, view: &FabricView) -> Result<Vec<HostId>, Problem> {
        if self.ranks_per_host == 0 {
            return Err(Problem::new("ranks_per_host", "at 0 no rank has a host; write at least 1"));
        }
        match &self.hosts {
            Some(hosts) => hosts.resolve(view).map_err(|problem| problem.under("hosts")),
            None => Ok((0..view.hosts()).map(HostId).collect()),
        }
    }

    /// The same in the order in which they get ranks.
    fn hosts_in_order(&self, view: &FabricView, seed: u64) -> Result<Vec<HostId>, Problem> {
        let mut hosts = self.hosts(view)?;
        match self.placement {
            Placement::Packed => {}
            Placement::Random => {
                let entity = self.name.bytes().fold(0, |hash, byte| mix(hash, u64::from(byte)));
                Stream::new(seed, entity, "workload.placement").shuffle(&mut hosts);
            }
            Placement::Striped => {
                // Where hosts have several links there may be more racks than hosts.
                let mut places = BTreeMap::new();
                let place_in_rack = hosts.iter().map(|host| {
                    let rack = view.rack_of[host.index()];
                    let place = places.entry(rack).or_insert(0u32);
                    *place += 1;
                    (*place, rack, *host)
                });
                let mut order: Vec<_> = place_in_rack.collect();
                order.sort_unstable();
                hosts = order.into_iter().map(|of| of.2).collect();
            }
        }
        Ok(hosts)
    }
}

#[cfg(test)]
mod tests;
