//! The network of one link: who sends over it, the link, who receives.

use std::collections::BTreeMap;

use fabric::{Builder, Fabric, Quotient};
use node::EndpointParams;
use run::{Data, Flows, HEAD_BYTES, Ideal, Plan, Progress, Status, WorkloadPlan};
use scenario::Scenario;
use units::{Duration, FlowId, HostId, NodeId, PerByte, Problem, Rate};

/// Links that lie side by side on a way, as pieces know them, and the same in the other direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Hop {
    pub rate: Rate,
    /// Propagation, and processing at the far end.
    pub delay: Duration,
    pub back_rate: Rate,
    pub back_delay: Duration,
    /// How many.
    pub width: u32,
}

/// A flow of a piece.
pub(crate) struct Crossing<'a> {
    pub flow: FlowId,
    /// The links before the piece's and after it.
    pub before: &'a [Hop],
    pub after: &'a [Hop],
    /// Its host's link, as far as answers leave it.
    pub edge_rate: Rate,
}

/// A small network and the flows that cross it, ready to be run.
pub(crate) struct Piece {
    plan: Plan,
    /// By flow, how long its message and its answer take at line rate.
    ideal: Vec<[u64; 2]>,
    starts: Vec<u64>,
}

/// The outcome of the flows of a piece, in their order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outcome {
    /// How much longer than at line rate it took until the receiver had it, and until the sender knew, in picoseconds;
    /// none if that never happened.
    pub late: Vec<[Option<i64>; 2]>,
    /// Why flows were refused or given up, by flow.
    pub ended: BTreeMap<usize, (Status, String)>,
    pub packet_hops: u64,
    pub events: u64,
    /// The first thing that the run's audit found fault with.
    pub fault: Option<String>,
}

/// Length of the windows of a run. A piece is one part, which waits for no other, so the length only says how often the
/// run calls its watcher.
const WINDOW: Duration = Duration::from_us(20);
/// How many times as fast the link to a receiver is as the piece's own link: nothing queues there. As in Parsimon.
const FAT: u64 = 10;

/// The material of all pieces.
#[derive(Clone, Copy)]
pub(crate) struct Workshop<'a> {
    /// The scenario, without records.
    pub scenario: &'a Scenario,
    pub work: &'a WorkloadPlan,
}

/// One end of the flows of a piece: a host, and how far it is from the piece's link.
type End = (HostId, Rate, Duration, Duration);

impl Workshop<'_> {
    /// Time from a packet's first bit on a link until the far end may send it on, without propagation.
    fn seen(&self, rate: Rate, bytes: u64) -> Duration {
        let bytes = if self.scenario.switch.cut_through { bytes.min(HEAD_BYTES) } else { bytes };
        self.per_byte(rate).transmit(bytes as u32)
    }

    fn per_byte(&self, rate: Rate) -> PerByte {
        rate.per_byte().in_steps_of(self.scenario.transmission_step)
    }

    /// Time that a full packet takes over links that a piece leaves out.
    fn out(&self, hops: &[Hop]) -> Duration {
        let mtu = self.scenario.host.mtu.get();
        hops.iter().fold(Duration::ZERO, |sum, hop| sum + self.seen(hop.rate, mtu) + hop.delay)
    }

    /// Time that a control packet takes back over them.
    fn back(&self, hops: &[Hop]) -> Duration {
        let header = self.scenario.host.header.get();
        hops.iter().fold(Duration::ZERO, |sum, hop| sum + self.seen(hop.back_rate, header) + hop.back_delay)
    }

    fn source(&self, crossing: &Crossing<'_>) -> Option<End> {
        let (first, rest) = crossing.before.split_first()?;
        let host = self.work.flows.get(crossing.flow).src;
        let (out, back) = (first.delay + self.out(rest), first.back_delay + self.back(rest));
        Some((host, crossing.edge_rate, out, back))
    }

    fn sink(&self, crossing: &Crossing<'_>, fat: Rate) -> Option<End> {
        let (last, rest) = crossing.after.split_last()?;
        let host = self.work.flows.get(crossing.flow).dst;
        let all = self.out(crossing.after);
        let out = all.saturating_sub(self.seen(fat, self.scenario.host.mtu.get()));
        Some((host, last.back_rate, out, last.back_delay + self.back(rest)))
    }

    /// The piece of a link, with the flows that cross it in the order of their numbers.
    pub fn of_link(&self, target: Hop, crossings: &[Crossing<'_>]) -> Result<Piece, Problem> {
        let fat = Rate::from_bps(target.rate.bps().saturating_mul(FAT));
        let mut sources: BTreeMap<(u32, End), HostId> = BTreeMap::new();
        let mut sinks = sources.clone();
        let mut hosts: Vec<HostId> = Vec::new();
        let mut ends = Vec::with_capacity(crossings.len());
        for crossing in crossings {
            let info = self.work.flows.get(crossing.flow);
            let here = |host| (host, Rate::ZERO, Duration::ZERO, Duration::ZERO);
            let source = self.source(crossing).unwrap_or(here(info.src));
            let sink = self.sink(crossing, fat).unwrap_or(here(info.dst));
            let mut place = |known: &mut BTreeMap<(u32, End), HostId>, end: End| {
                *known.entry((end.0.0, end)).or_insert_with(|| {
                    hosts.push(end.0);
                    HostId(hosts.len() as u32 - 1)
                })
            };
            ends.push((place(&mut sources, source), place(&mut sinks, sink)));
        }
        let (has_before, has_after) = (!crossings[0].before.is_empty(), !crossings[0].after.is_empty());
        let switches = usize::from(has_before) + usize::from(has_after);
        let mut cables = Cables::new(hosts.len() as u32, switches as u32);
        let near = if has_before { cables.builder.switch(0) } else { NodeId(ends[0].0.0) };
        let far = if has_after { cables.builder.switch(switches as u32 - 1) } else { NodeId(ends[0].1.0) };
        for (&(_, (_, rate, out, back)), &host) in sources.iter().filter(|_| has_before) {
            let back_rate = crossings[0].before[0].back_rate;
            cables.join(NodeId(host.0), near, Hop { rate, delay: out, back_rate, back_delay: back, width: 1 });
        }
        cables.join(near, far, target);
        for (&(_, (_, back_rate, out, back)), &host) in sinks.iter().filter(|_| has_after) {
            cables.join(far, NodeId(host.0), Hop { rate: fat, delay: out, back_rate, back_delay: back, width: 1 });
        }
        let way = |crossing: &Crossing<'_>| crossing.before.len() + crossing.after.len();
        let longest = crossings.iter().map(way).max().unwrap_or(0);
        let sites = self.sites(&hosts, switches as u8, longest as u8);
        let flow = |(crossing, &(src, dst)): (&Crossing<'_>, &(HostId, HostId))| run::FlowInfo {
            src,
            dst,
            ..self.work.flows.get(crossing.flow)
        };
        self.plan(cables.finish()?, sites, crossings.iter().zip(&ends).map(flow).collect())
    }

    /// A flow alone on its whole way. It has the size `bytes` and starts at once.
    pub fn alone(&self, flow: FlowId, bytes: u64, way: &[Hop]) -> Result<Piece, Problem> {
        let info = self.work.flows.get(flow);
        let fabric = chain(way)?;
        let sites = [info.src, info.dst].into_iter().zip(0..).map(|(host, place)| EndpointParams {
            host: HostId(place),
            hosts: 2,
            ..self.work.sites[host.index()].clone()
        });
        let mini = run::FlowInfo { src: HostId(0), dst: HostId(1), bytes, start: units::Time::ZERO, ..info };
        self.plan(fabric, sites.collect(), vec![mini])
    }

    fn plan(&self, fabric: Fabric, sites: Vec<EndpointParams>, flows: Vec<run::FlowInfo>) -> Result<Piece, Problem> {
        let work = self.work.on(self.scenario, fabric, sites, flows);
        let mut ideals = Ideal::by_transport(&work.fabric, &work.quotient, self.scenario, &work.transports);
        let ideal = work.flows.iter().map(|flow| at_line_rate(&mut ideals[usize::from(flow.transport)], &flow));
        let ideal = ideal.collect();
        let starts = work.flows.iter().map(|flow| flow.start.ps()).collect();
        drop(ideals);
        let mut plan = Plan::of(self.scenario, work)?;
        plan.lookahead = plan.lookahead.max(WINDOW);
        Ok(Piece { plan, ideal, starts })
    }

    /// What the hosts of a piece are told: what they are told in the whole network, but for the number of switches that
    /// their packets pass. Swift reads how long a way should take from that number.
    fn sites(&self, hosts: &[HostId], switches: u8, switches_before: u8) -> Vec<EndpointParams> {
        let site = |(place, host): (usize, &HostId)| {
            let site = &self.work.sites[host.index()];
            let known = site.data_rtts.iter().find(|of| of.0 >= switches_before).map_or(site.data_rtt, |of| of.1);
            let mut data_rtts = vec![(switches, known)];
            data_rtts.extend(site.data_rtts.last().filter(|of| of.0 > switches));
            EndpointParams { host: HostId::from(place), hosts: hosts.len() as u32, data_rtts, ..site.clone() }
        };
        hosts.iter().enumerate().map(site).collect()
    }
}

/// Time until the receiver has a message, and until the sender knows, at line rate.
pub(crate) fn at_line_rate(ideal: &mut Ideal<'_>, flow: &run::FlowInfo) -> [u64; 2] {
    let delivery = ideal.delivery(flow.src, flow.dst, flow.bytes).ps();
    [delivery, delivery.saturating_add(ideal.answer(flow.src, flow.dst).ps())]
}

/// A way of its own: a host, a switch after each link but the last, a host.
pub(crate) fn chain(way: &[Hop]) -> Result<Fabric, Problem> {
    let mut cables = Cables::new(2, way.len() as u32 - 1);
    for (place, &hop) in way.iter().enumerate() {
        let from = place.checked_sub(1).map_or(NodeId(0), |before| cables.builder.switch(before as u32));
        let last = place + 1 == way.len();
        let to = if last { NodeId(1) } else { cables.builder.switch(place as u32) };
        cables.join(from, to, hop);
    }
    cables.finish()
}

/// The folded form of a chain, for its ideals.
pub(crate) fn chain_quotient(way: &[Hop]) -> Result<(Fabric, Quotient), Problem> {
    let fabric = chain(way)?;
    let quotient = Quotient::new(&fabric);
    Ok((fabric, quotient))
}

/// A fabric whose cables are not the same in both directions.
struct Cables {
    builder: Builder,
    hops: Vec<Hop>,
}

impl Cables {
    fn new(hosts: u32, switches: u32) -> Cables {
        let delays = Builder::numbered("switch", switches).into_iter().map(|name| (name, Duration::ZERO));
        let mut builder = Builder::new(Builder::numbered("host", hosts), delays.collect());
        // All in one group: a piece is run by one thread. A switch's delay is part of the links that lead to it.
        for switch in 0..switches {
            let node = builder.switch(switch);
            builder.group(node, 0);
        }
        Cables { builder, hops: Vec::new() }
    }

    fn join(&mut self, from: NodeId, to: NodeId, hop: Hop) {
        for _ in 0..hop.width {
            // `finish` sets the delays: their sum over a way may be more than one cable may have.
            self.builder.cable(from, to, hop.rate, Duration::ZERO);
            self.hops.push(hop);
        }
    }

    fn finish(self) -> Result<Fabric, Problem> {
        let mut fabric = self.builder.finish()?;
        for (cable, hop) in self.hops.into_iter().enumerate() {
            fabric.links[2 * cable].propagation = hop.delay;
            let back = &mut fabric.links[2 * cable + 1];
            (back.rate, back.propagation) = (hop.back_rate, hop.back_delay);
        }
        Ok(fabric)
    }
}

impl Piece {
    /// Runs it, on this thread. `watch` may end it.
    pub fn run(&self, watch: impl FnMut(Progress) -> bool) -> (Outcome, bool) {
        let execution = sim::Execution { threads: 1, parts: Some(1) };
        let run = sim::run_plan(&self.plan, execution, watch);
        let flows = run.tables.iter().find(|table| table.name == "flows").expect("each run has it");
        let times = |name: &str| match flows.column(name).map(|column| &column.data) {
            Some(Data::OptU64(times)) => times,
            _ => unreachable!("a table of flows has it"),
        };
        let (delivered, completed) = (times("delivered_ps"), times("completed_ps"));
        let late = |at: u64, start: u64, ideal: u64| {
            let took = at.wrapping_sub(start);
            (at != Flows::NONE).then(|| took as i64 - ideal as i64)
        };
        let of = |flow: usize| {
            let (start, ideal) = (self.starts[flow], self.ideal[flow]);
            [late(delivered[flow], start, ideal[0]), late(completed[flow], start, ideal[1])]
        };
        let fault = run.info.audit.iter().find(|finding| !finding.ok);
        let outcome = Outcome {
            late: (0..self.starts.len()).map(of).collect(),
            ended: ended(flows),
            packet_hops: run.info.packet_hops,
            events: run.info.events,
            fault: fault.map(|finding| format!("{}: {}", finding.name, finding.detail)),
        };
        (outcome, run.info.ended == "interrupted")
    }
}

/// The flows that were refused or given up.
fn ended(flows: &run::Table) -> BTreeMap<usize, (Status, String)> {
    let names = |name: &str| match flows.column(name).map(|column| &column.data) {
        Some(Data::Names { index, names }) => (index, names),
        _ => unreachable!("a table of flows has it"),
    };
    let ((status, of_status), (reason, of_reason)) = (names("status"), names("reason"));
    let fate = |flow: usize| {
        let why = of_reason[reason[flow] as usize].clone();
        match of_status[status[flow] as usize].as_str() {
            "rejected" => Some((flow, (Status::Rejected, why))),
            "failed" => Some((flow, (Status::Failed, why))),
            _ => None,
        }
    };
    (0..status.len()).filter_map(fate).collect()
}
