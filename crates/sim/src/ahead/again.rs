//! What happened to flows and ranks in a period, once more: ranks are told it again, of the flows that stand in the
//! places of those. See [`turnover`](super::turnover).

use std::sync::Arc;

use driver::{LogOfHost, Names};
use node::Packet;
use node::onward_path::Downstream;
use node::walk::{Recurrence, Renamed};
use run::{FlowEvent, FlowInfo, FlowRecord, Host, HostJobs, Measured, Plan, RankEvent};
use rustc_hash::FxHashMap;
use units::{Duration, FlowId, HostId, NodeId, PortId, Time, mix};

/// Most names of flows that are kept at once, since each repetition has its own; but so many periods are repeated at
/// once, since before and after that ranks are copied.
const MOST_NAMES: usize = 1 << 22;
const AT_ONCE: u64 = 64;

/// The ranks at each host that has some.
pub(super) fn ranks<'h>(hosts: impl Iterator<Item = &'h Host>) -> impl Iterator<Item = &'h HostJobs> {
    hosts.filter_map(Host::jobs)
}

/// When ranks act by themselves, host by host.
pub(super) fn ranks_act_at<'h>(hosts: impl Iterator<Item = &'h Host>) -> Vec<Time> {
    ranks(hosts).map(HostJobs::next_at).collect()
}

/// A word for all flows from one host to another that are as long and of one class.
pub(super) fn kind(flow: &FlowInfo) -> u64 {
    let FlowInfo { src, dst, bytes, class, .. } = *flow;
    [src.0.into(), dst.0.into(), bytes].into_iter().fold(class.into(), mix)
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
        let [info, of_other] = [one, other].map(|flow| self.plan.flows.get(flow));
        let what = |of: &FlowInfo| (of.src, of.dst, of.bytes, of.class, of.transport);
        what(&info) == what(&of_other) && self.take_one_path(&info, one, other)
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

/// A period that was logged.
pub(super) struct Logged<'l> {
    /// By host.
    pub logs: &'l [LogOfHost],
    pub length: Duration,
    /// When it ended.
    pub end: Time,
    /// The recurrence between the states at its beginning and at its end.
    pub found: &'l Recurrence,
    /// When ranks would next act by themselves, as of its beginning.
    pub ranks: &'l [Time],
}

/// A logged period whose events are told to the ranks again, under other names of flows.
pub(super) struct RankReplay<'a> {
    alike: Arc<Alike<'a>>,
    /// What ranks were told and did, in order of time: at which host (counted among those with ranks), when and what.
    told: Vec<(usize, Time, RankEvent)>,
    /// The flows of the logged period, and the place of each in that list.
    first: Vec<FlowId>,
    place: FxHashMap<FlowId, usize>,
    /// Places in `first`: a flow at the period's beginning, and the flow that stood in its place at the end.
    renaming: Vec<(usize, usize)>,
    /// The names of these flows in the last repetition so far, and the number of repetitions.
    pub called: Vec<FlowId>,
    pub times: u64,
    pub length: Duration,
    /// When the logged period ended.
    end: Time,
    /// By host with ranks: whether the time at which they act next moves with the clock; if not, it stays.
    moves: Vec<bool>,
    /// By host: what was recorded in the period.
    records: Vec<Recorded>,
    /// Places of flows that must keep their order by number, in this order.
    in_order: Vec<usize>,
}

impl<'a> RankReplay<'a> {
    /// `hosts` are those of which the log is, here and below.
    ///
    /// # Errors
    /// Why the period can't be repeated, in words.
    pub fn new<'h>(
        alike: Arc<Alike<'a>>,
        hosts: impl Iterator<Item = &'h Host> + Clone,
        logged: &Logged<'_>,
    ) -> Result<RankReplay<'a>, String> {
        let with_ranks = hosts.clone().zip(logged.logs).filter(|of| of.0.jobs().is_some());
        let of_host = |(place, (_, log)): (usize, (_, &'_ LogOfHost))| {
            log.told.iter().map(move |&(at, told)| (place, at, told)).collect::<Vec<_>>()
        };
        let mut told: Vec<_> = with_ranks.enumerate().flat_map(of_host).collect();
        // The log goes host by host. A stable sort keeps together what a host does at one instant.
        told.sort_by_key(|of| of.1);
        let begin = told.iter().filter_map(|of| match of.2 {
            RankEvent::Starts(flow) => Some(flow),
            _ => None,
        });
        let first: Vec<FlowId> = logged.found.renaming.keys().copied().chain(begin).collect();
        let place: FxHashMap<FlowId, usize> = first.iter().copied().zip(0..).collect();
        let mut renaming = Vec::with_capacity(logged.found.renaming.len());
        for (flow, heir) in &logged.found.renaming {
            match place.get(heir) {
                Some(&heir) => renaming.push((place[flow], heir)),
                None => return Err("a flow of no job has come".to_owned()),
            }
        }
        let recorded = hosts.clone().zip(logged.logs).map(|(host, log)| Recorded::since(host, log));
        let records: Vec<Recorded> = recorded.collect();
        let told_of = told.iter().filter_map(|of| of.2.flow());
        if records.iter().flat_map(Recorded::flows).chain(told_of).any(|flow| !place.contains_key(&flow)) {
            return Err("something happened to a flow of no job".to_owned());
        }
        let moves = ranks(hosts).zip(logged.ranks).map(|(jobs, &was)| jobs.next_at() != was).collect();
        let mut in_order: Vec<usize> = if logged.found.by_number { (0..first.len()).collect() } else { Vec::new() };
        in_order.sort_unstable_by_key(|&place| first[place]);
        let called = first.clone();
        let Logged { length, end, .. } = *logged;
        Ok(RankReplay { alike, told, first, place, renaming, called, times: 0, length, end, moves, records, in_order })
    }

    /// How many periods are repeated at once.
    pub fn at_once(&self) -> u64 {
        AT_ONCE.max((MOST_NAMES / self.called.len().max(1)) as u64)
    }

    /// The flows of the period, and what each is called now.
    pub fn renamed(&self, now: &[FlowId]) -> Renamed {
        self.called.iter().copied().zip(now.iter().copied()).collect()
    }

    /// Repeats up to `most` periods on a copy of the ranks, as long as they do what they did in the first. Returns the
    /// names of flows in each period, and the ranks after the last.
    pub fn repeat<'h>(&self, hosts: impl Iterator<Item = &'h Host> + Clone, most: u64) -> (Names, Vec<HostJobs>) {
        let begin = || ranks(hosts.clone()).map(HostJobs::copy).collect::<Vec<_>>();
        let mut hosts = begin();
        let mut names = Names { first: self.first.clone(), later: Vec::new() };
        for time in 0..most {
            let called = names.later.last().unwrap_or(&self.called);
            let Some(called) = self.repeat_once(&mut hosts, called, self.times + time + 1) else { break };
            names.later.push(called);
        }
        let kept = names.later.len();
        if kept < most as usize {
            // The failed attempt has changed the ranks: begin anew.
            hosts = begin();
            for (time, called) in (0..).zip(std::iter::once(&self.called).chain(&names.later)).take(kept) {
                self.repeat_once(&mut hosts, called, self.times + time + 1).expect("it was possible before");
            }
        }
        (names, hosts)
    }

    /// Repeats one more period on these ranks. Returns the names of its flows, or `None` if the ranks do something
    /// else.
    fn repeat_once(&self, hosts: &mut [HostJobs], called: &[FlowId], time: u64) -> Option<Vec<FlowId>> {
        let shift = self.length * time;
        let acted: Vec<Time> = hosts.iter().map(HostJobs::next_at).collect();
        let mut names: Vec<Option<FlowId>> = vec![None; self.first.len()];
        for &(flow, heir) in &self.renaming {
            names[flow] = Some(called[heir]);
        }
        let (mut started, mut taken) = (Vec::new(), 0);
        for &(host, at, told) in &self.told {
            let now = at + shift;
            let name = |flow| names[self.place[&flow]];
            let told = match told {
                RankEvent::Starts(flow) => {
                    let heir = *started.get(taken)?;
                    taken += 1;
                    self.alike.are(flow, heir).then(|| names[self.place[&flow]] = Some(heir))?;
                    continue;
                }
                RankEvent::Woken => {
                    (hosts[host].next_at() == now).then_some(())?;
                    RankEvent::Woken
                }
                RankEvent::Delivered(flow) => RankEvent::Delivered(name(flow)?),
                RankEvent::Completed(flow) => RankEvent::Completed(name(flow)?),
                RankEvent::Left(flow) => RankEvent::Left(name(flow)?),
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
        let mut acts = (0..).zip(hosts.iter().zip(acted));
        let as_before = acts.all(|(host, (jobs, was))| {
            let acts_at = jobs.next_at();
            acts_at == if self.moves[host] { was + self.length } else { was } && acts_at >= self.end + shift
        });
        if taken < started.len() || !as_before {
            return None;
        }
        let names = names.into_iter().collect::<Option<Vec<_>>>()?;
        self.in_order.iter().map(|&place| names[place]).is_sorted().then_some(names)
    }

    /// Puts hosts into the state that they have after periods that were repeated: their ranks stand where these do, and
    /// what happened to flows, and what was measured of them, has happened again.
    pub fn settle<'h>(&self, hosts: impl Iterator<Item = &'h mut Host>, names: &Names, ranks: Vec<HostJobs>) {
        let mut ranks = ranks.into_iter();
        for (host, recorded) in hosts.zip(&self.records) {
            if let Some(jobs) = host.jobs_mut() {
                jobs.take_over(ranks.next().expect("there is one for each host with ranks"));
            }
            for (time, called) in (self.times + 1..).zip(&names.later) {
                recorded.repeat(host, self.length * time, |flow| called[self.place[&flow]]);
            }
        }
    }

    /// The bytes of the flows that have been delivered in the logged period.
    pub fn delivered_bytes(&self) -> u64 {
        let records = self.records.iter().flat_map(|of| &of.records);
        let delivered = records.filter(|record| matches!(record.fate, FlowEvent::Delivered { .. }));
        delivered.map(|record| self.alike.plan.flows.get(record.flow).bytes).sum()
    }
}

/// What a host has recorded of flows in the logged period, and what its transports have measured of them.
struct Recorded {
    records: Vec<FlowRecord>,
    measures: Vec<Measured>,
}

impl Recorded {
    /// Since the log began.
    fn since(host: &Host, log: &LogOfHost) -> Recorded {
        Recorded { records: host.records[log.records..].to_vec(), measures: host.measures[log.measures..].to_vec() }
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
