//! Skipping what repeats: see [`node::walk`]. A driver says what its whole state is, and moves it ahead.

use std::mem::take;
use std::sync::Arc;

use node::packet::flags;
use node::walk::{HeaderWalk, visit_words};
use node::{Packet, State, Walk};
use run::{Host, HostJobs, Plan, RankEvent};
use rustc_hash::FxHashMap;
use units::{Duration, FlowId, Time, mix};

use crate::links::TIMELINE;
use crate::nodes::{hash_what, size_of, what_of};
use crate::{Carrier, Driver, LinkRx, LinkTx, Probe};

/// What has happened in a part of a network since the log began.
#[derive(Debug, Default)]
pub struct Log {
    /// Packets that have come to nodes; those of a node in order.
    pub arrivals: Vec<Arrival>,
    /// When events took place, in no particular order.
    pub events: Vec<Time>,
    /// By host.
    pub hosts: Vec<LogOfHost>,
}

/// What has happened to messages and ranks at a host since the log began.
#[derive(Clone, Debug)]
pub struct LogOfHost {
    /// What its ranks were told and did, in order.
    pub told: Vec<(Time, RankEvent)>,
    /// How much it had recorded of flows.
    pub records: usize,
    /// How much its transports had measured of flows.
    pub measures: usize,
    /// How much its ranks had logged.
    logged: usize,
}

impl LogOfHost {
    /// Begins the log of a host.
    pub fn begin(host: &mut Host) -> LogOfHost {
        let logged = host.jobs_mut().map_or(0, HostJobs::begin_log);
        LogOfHost { told: Vec::new(), records: host.records.len(), measures: host.measures.len(), logged }
    }

    /// Ends it.
    pub fn end(&mut self, host: &mut Host) {
        self.told = host.jobs_mut().map(|jobs| jobs.take_log(self.logged)).unwrap_or_default();
    }
}

/// What has happened in a span of time: what was logged, one log after the other, so many times.
#[derive(Debug)]
pub struct Stretch<'l> {
    /// What was logged.
    pub logs: Vec<&'l Log>,
    /// How often it happened in this stretch.
    pub times: u64,
    /// The first time comes one `period` and so much time after what was logged.
    pub since: Duration,
    /// The time from one to the next.
    pub period: Duration,
}

impl<'l> Stretch<'l> {
    /// The stretch in which something was logged.
    pub fn logged(log: &'l Log) -> Stretch<'l> {
        Stretch { logs: vec![log], times: 1, since: Duration::ZERO, period: Duration::ZERO }
    }

    /// For each time that it happened: how much later than it was logged, in picoseconds.
    fn later(&self) -> impl Iterator<Item = u64> {
        (1..=self.times).map(|time| (self.since + self.period * time).ps())
    }
}

/// A packet has come to a node.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// When.
    pub at: Time,
    size: u64,
    /// Hosts by their places in the part, then switches.
    pub node: u32,
    flow: FlowId,
}

impl Arrival {
    pub(crate) fn new(node: u32, at: Time, packet: &Packet) -> Arrival {
        Arrival { at, size: size_of(packet), node, flow: packet.flow }
    }

    /// What of the packet goes into its node's digest.
    pub fn what(&self) -> u64 {
        what_of(self.flow, self.size)
    }

    /// Its flow; a frame between neighbours has none.
    fn flow(&self) -> Option<FlowId> {
        (self.size as u8 & flags::LINK_FRAME == 0).then_some(self.flow)
    }
}

/// The names of flows in a period and in its repetitions.
#[derive(Debug, Default)]
pub struct Names {
    /// Their names in the period that was logged.
    pub first: Vec<FlowId>,
    /// By repetition, the name of the flow that stands in the place of each.
    pub later: Vec<Vec<FlowId>>,
}

/// How headers of the transports of a run are gone over, and at the end, how frames between neighbours are.
pub fn header_walks(plan: &Plan) -> Arc<[HeaderWalk]> {
    let frames = plan.scenario.flow_control.as_scheme().map_or(visit_words as HeaderWalk, |of| of.frames().visit());
    let of_transports = plan.transports.iter().map(|transport| transport.as_scheme().headers().visit());
    of_transports.chain([frames]).collect()
}

pub(crate) fn visit_pipe<R>(walk: &mut Walk, link_rx: &mut LinkRx<R>) {
    walk.part("link", link_rx.link);
    link_rx.visit(walk, &());
}

pub(crate) fn visit_outlet<S>(walk: &mut Walk, link_tx: &mut LinkTx<S>) {
    walk.same((link_tx.delay, link_tx.head));
    link_tx.jitter.visit(walk, &());
}

impl<C: Carrier, P: Probe> Driver<C, P> {
    /// Goes over all of its state.
    pub fn visit(&mut self, walk: &mut Walk) {
        walk.part("agenda", 0);
        // Samples change nothing: who moves the state ahead asks for them ([`Driver::next_sample_at`]).
        walk.outside(self.timeline.changes.last().map_or(Time::MAX, |change| change.0));
        (TIMELINE + 1..self.sources()).for_each(|source| self.visit_source(walk, source));
        walk.refuse_if(self.retries, "links send damaged packets again (link.llr)");
        walk.pool = take(&mut self.links.pool);
        self.links.link_rxs.iter_mut().for_each(|link_rx| visit_pipe(walk, link_rx));
        self.links.link_txs.iter_mut().for_each(|link_tx| visit_outlet(walk, link_tx));
        for slot in &mut self.switches {
            walk.part("switch", slot.id);
            slot.switch.visit(walk, &());
        }
        self.links.pool = take(&mut walk.pool);
        (0..self.hosts.len()).for_each(|host| self.visit_host(walk, host));
        self.look_ahead(Host::transports_at);
        walk.part("totals", 0);
        walk.totals([&mut self.packet_hops, &mut self.delivered_bytes, &mut self.events]);
        self.pulse.came.visit(walk, &());
        self.probe.visit(walk, &());
    }

    /// Goes over the next time of a source of events.
    pub(crate) fn visit_source(&mut self, walk: &mut Walk, source: usize) {
        let before = self.links.agenda.get(source);
        let mut at = before;
        walk.time(&mut at);
        if at != before {
            self.links.agenda.set(source, at);
        }
    }

    pub(crate) fn visit_host(&mut self, walk: &mut Walk, host: usize) {
        let next = self.links.agenda.get(self.deadline(host));
        let slot = &mut self.hosts[host];
        walk.part("host", slot.host.id().0);
        // It may be woken before anything is due, where a deadline was put off since. A wake-up that was right and that
        // is early now stands where it stood, but it won't again.
        walk.same(slot.host.next_at() > next);
        slot.visit(walk, &());
    }

    /// What is next at a node is the first of several times. If one of them has moved and another has not, this may now
    /// be that one. `next_at` says when a host acts.
    fn look_ahead(&mut self, next_at: fn(&Host) -> Time) {
        (0..self.hosts.len()).for_each(|host| self.look_ahead_at(host, next_at));
        for switch in 0..self.switches.len() {
            let timer = self.switch_timer(switch);
            self.links.agenda.advance(timer, self.switches[switch].switch.next_at());
        }
    }

    /// The same for a host.
    pub(crate) fn look_ahead_at(&mut self, host: usize, next_at: fn(&Host) -> Time) {
        let deadline = self.deadline(host);
        self.links.agenda.advance(deadline, next_at(&self.hosts[host].host));
    }

    /// Time was skipped, and ranks have been told of it: what is next at a host may be a start of a flow or an act of a
    /// rank, neither of which has moved.
    pub fn look_at_hosts(&mut self) {
        self.look_ahead(Host::next_at);
    }

    /// Whether nothing is left to happen, but that samples are taken.
    pub fn is_quiet(&self) -> bool {
        self.timeline.changes.is_empty() && self.links.agenda.has_none_but(TIMELINE)
    }

    /// When the next sample is taken; [`Time::MAX`] for never.
    pub fn next_sample_at(&self) -> Time {
        self.timeline.sample_at
    }

    /// Takes the sample that is due at `now`. Nothing else is due: the state has been moved ahead to this time.
    pub fn sample(&mut self, now: Time) {
        self.timeline(now);
    }

    /// Mixes the length of a skipped span into the digests of all nodes. Which packets came in it is not known.
    pub fn mark_digests(&mut self, time: Duration) {
        let hosts = self.hosts.iter_mut().map(|slot| &mut slot.host.digest);
        let switches = self.switches.iter_mut().map(|slot| &mut slot.digest);
        hosts.chain(switches).for_each(|digest| *digest = mix(*digest, time.ps()));
    }

    /// From now on, what happens is logged.
    pub fn begin_log(&mut self) {
        self.log = Some(Box::new(self.begin_log_of_hosts()));
    }

    /// What has been logged; nothing more is.
    pub fn take_log(&mut self) -> Log {
        let log = *self.log.take().expect("it was begun");
        self.take_log_of_hosts(log)
    }

    /// Nobody wants to know what has been logged, if anything is; nothing more is.
    pub fn forget_log(&mut self) {
        self.log = None;
        let log = self.begin_log_of_hosts();
        drop(self.take_log_of_hosts(log));
    }

    /// From now on, it is logged what happens to messages and ranks. Returns the log, which
    /// [`Driver::take_log_of_hosts`] completes.
    pub fn begin_log_of_hosts(&mut self) -> Log {
        let hosts = self.hosts.iter_mut().map(|slot| LogOfHost::begin(&mut slot.host)).collect();
        Log { hosts, ..Log::default() }
    }

    /// The log with what has happened to messages and ranks; nothing more is logged of them, unless the log is kept.
    pub fn take_log_of_hosts(&mut self, mut log: Log) -> Log {
        log.hosts.iter_mut().zip(&mut self.hosts).for_each(|(log, slot)| log.end(&mut slot.host));
        log
    }

    /// Adds the arrivals of a period to the digests of nodes `times` times, as if they had happened again, under the
    /// names that flows have in each repetition. The first repetition ends one `period` plus `since` after the one that
    /// is described.
    pub fn repeat_digests(
        &mut self,
        course: &[Stretch<'_>],
        since: Duration,
        period: Duration,
        times: u64,
        names: &Names,
    ) {
        let place: FxHashMap<FlowId, u32> = names.first.iter().copied().zip(0..).collect();
        let by_node: Vec<_> = course.iter().map(|stretch| self.by_node(stretch, &place)).collect();
        let (hosts, nodes) = (self.hosts.len(), self.hosts.len() + self.switches.len());
        for node in 0..nodes {
            let arrivals = || course.iter().zip(&by_node).map(|(stretch, by_node)| (stretch, &by_node[node][..]));
            if arrivals().all(|(_, arrivals)| arrivals.is_empty()) {
                continue;
            }
            let slot = match node.checked_sub(hosts) {
                None => &mut self.hosts[node].host.digest,
                Some(switch) => &mut self.switches[switch].digest,
            };
            let (mut digest, mut shift) = (*slot, since.ps());
            for time in 0..times as usize {
                shift += period.ps();
                let names = names.later.get(time).map_or(&[][..], |names| names);
                for (stretch, arrivals) in arrivals() {
                    for later in stretch.later() {
                        for &(at, what, renamed) in arrivals {
                            let what = names.get(renamed as usize).map_or(what, |&name| what_of(name, what));
                            digest = hash_what(digest, Time::from_ps(at + shift + later), what);
                        }
                    }
                }
            }
            *slot = digest;
        }
    }

    /// By node, the arrivals that were logged: when, what, and which flow that has other names later.
    fn by_node(&self, stretch: &Stretch<'_>, place: &FxHashMap<FlowId, u32>) -> Vec<Vec<(u64, u64, u32)>> {
        let mut by_node = vec![Vec::new(); self.hosts.len() + self.switches.len()];
        for arrival in stretch.logs.iter().flat_map(|log| &log.arrivals) {
            let renamed = arrival.flow().and_then(|flow| place.get(&flow).copied()).unwrap_or(u32::MAX);
            let what = if renamed == u32::MAX { arrival.what() } else { arrival.size };
            by_node[arrival.node as usize].push((arrival.at.ps(), what, renamed));
        }
        by_node
    }
}
