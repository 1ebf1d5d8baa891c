//! From a scenario to everything that a run needs, before anything has run.

mod headroom;
mod reserved;
mod shares;
mod timers;
mod timing;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use catalogue::Transport;
use contract::sharing::{Hose, Step};
use contract::{NetworkView, SharedCache, SwitchRequirements};
use fabric::{
    Change, Epoch, Fabric, FailureSpec, Failures, Link, Quotient, RerouteScope, Rerouting, Routes, Tier, epochs,
};
use node::balance::{Balancer, switch_seed};
use node::onward_path::Downstream;
use node::packet::{CLASSES, HOPS_MAX};
use node::pool::Hop;
use node::{
    Balancing, Buffer, EarlyDrop, Endpoint, EndpointParams, LostFlows, NicControl, Overflow, Port, QueueDiscipline,
    Settings, Switch, SwitchAgent,
};
use units::{Bytes, Duration, HostId, LinkId, PortId, Problem, Rate, Stream, SwitchId, Time, interrupt};

use crate::compatibility::{self, Facts};
use crate::{
    Entities, FlowTable, Followed, Groups, Host, Ideal, Jobs, MemoryLimit, Recorded, WatchedPorts, WorkloadPlan,
};
use node::cpu::Cpu;
use node::nic::MultihomedNic;
use node::nic::ReceiveLimit;
pub use reserved::Reserved;
use scenario::{HostSpec, ResubmitPolicy, Scenario, Timing};

/// A switch that cuts through sees a packet when this many of its bytes are in.
pub const HEAD_BYTES: u64 = 64;

/// Round trips after which a class that does not move stands still.
const ROUND_TRIPS: u64 = 100;

/// A scenario worked out: everything that a run needs, and nothing that has run.
pub struct Plan {
    /// The scenario.
    pub scenario: Scenario,
    /// Its network.
    pub fabric: Arc<Fabric>,
    /// Routes while nothing has failed.
    pub routes: Arc<Routes>,
    /// The transports that carry its traffic; packets name them by index.
    pub transports: Vec<Transport>,
    /// By class, how messages that were rejected or given up are submitted again.
    pub again: Arc<Vec<Vec<ResubmitPolicy>>>,
    /// The requirements of each on switches; the last may be that of limiters' own packets.
    pub requirements: Vec<SwitchRequirements>,
    /// How each transport's packets choose among equal paths.
    pub balancing: Vec<Balancing>,
    /// The view of the network that each is given.
    pub network: NetworkView,
    /// The transport that brings queues of its own to switches, if one does.
    pub queueing: Option<usize>,
    /// The transport that has the first classes for itself, if one does.
    pub reserved: Option<Reserved>,
    /// The settings of all switches.
    pub settings: Arc<Settings>,
    /// The place of each host.
    pub sites: Vec<EndpointParams>,
    /// Hosts that are something on the machine, in a live run, and what.
    pub attached: BTreeMap<HostId, String>,
    /// The index by which packets of attached hosts name their transport, if there are any: beyond all transports.
    pub outside: Option<u8>,
    /// All flows.
    pub flows: Arc<FlowTable>,
    /// The groups by which the audit asks whether a run made progress.
    pub groups: Arc<Groups>,
    /// Training jobs on their hosts.
    pub jobs: Arc<Jobs>,
    /// The entities, whose traffic is kept apart.
    pub entities: Arc<Entities>,
    /// By switch, what its AQs' tenants will say.
    steps: BTreeMap<SwitchId, Vec<(Time, Step)>>,
    /// By host, what limiters let out of it and into it; empty if nothing limits hosts.
    hoses: Vec<Hose>,
    /// Hosts of which each data packet's arrival is noted.
    pub arrivals: BTreeSet<HostId>,
    /// Packets that are recorded one by one.
    pub recorded: Option<Arc<Recorded>>,
    /// Packets that are recorded because of what happens to them.
    pub events: Option<Arc<Recorded>>,
    /// Ports that are watched.
    pub ports: Option<Arc<WatchedPorts>>,
    /// Flows that are followed.
    pub followed: Option<Arc<Followed>>,
    /// By row of a flow in results, its completion time alone in the network, in picoseconds.
    pub ideal_ps: Vec<u64>,
    /// Failures and recoveries, and the times at which routes change.
    pub changes: Vec<Epoch>,
    /// The nodes' knowledge of each other's choices.
    pub downstream: Downstream,
    /// When the run ends at the latest.
    pub horizon: Time,
    /// The least delay between groups of nodes; with one group, a hop's.
    pub lookahead: Duration,
}

impl Plan {
    /// Works a scenario out, or says which key can't be right.
    pub fn new(scenario: &Scenario) -> Result<Plan, Problem> {
        Plan::within(scenario, None)
    }

    /// The same, but a plan that can't fit this many bytes of memory is refused before it is made, with the setting
    /// that would fit.
    pub fn within(scenario: &Scenario, memory_bytes_max: Option<u64>) -> Result<Plan, Problem> {
        Plan::of(scenario, WorkloadPlan::within(scenario, MemoryLimit::packets(memory_bytes_max))?)
    }

    /// The plan of a run of one of the jobs alone, as `measure.alone` asks for it.
    pub fn of_job_alone(scenario: &Scenario, job: usize) -> Result<Plan, Problem> {
        let scenario = crate::alone::without_records(scenario);
        let work = WorkloadPlan::new(&scenario)?.with_job_alone(job);
        Plan::of(&scenario, work)
    }

    /// The plan of a workload that has been worked out already.
    pub fn of(scenario: &Scenario, work: WorkloadPlan) -> Result<Plan, Problem> {
        let routes = Arc::new(Routes::compute_or_stop(&work.fabric, &Failures::default())?);
        interrupt::check()?;
        let changes = changes(scenario, &work.fabric, &routes)?;
        let WorkloadPlan { transports, keys, requirements, .. } = &work;
        let facts = Facts { scenario, transports, keys, requirements };
        let mut network = network(scenario, &work, &routes, facts.buffer())?;
        compatibility::check(&facts)?;
        let reserved = reserved(scenario, &work, &network)?;
        let settings = Arc::new(settings(&facts)?);
        let lookahead = lookahead(scenario, &work.fabric)?;
        let arrivals = arrivals(scenario, &work.fabric)?;
        let recorded = Recorded::new(scenario, &work.fabric, &work.flows)?.map(Arc::new);
        let events = Recorded::events(scenario)?.map(Arc::new);
        let ports = WatchedPorts::new(scenario, &work.fabric)?.map(Arc::new);
        let followed = Followed::new(scenario, &work.fabric, &work.flows)?.map(Arc::new);
        check_sample_rows(scenario, &work.fabric)?;
        let entities = Arc::new(Entities::new(scenario, &work)?);
        let tagging = scenario.sharing.as_scheme().and_then(|scheme| scheme.tagging());
        let limits = scenario.sharing.as_scheme().filter(|scheme| scheme.limits_hosts());
        let hoses = limits.map_or(Ok(Vec::new()), |_| entities.hoses(&work.fabric))?;
        let queued = hoses.iter().filter_map(|hose| Some(limits?.longest_wait(&network.site, *hose)));
        network.wait = Duration::from_ps(network.wait.ps().saturating_add(queued.max().unwrap_or_default().ps()));
        let groups = Groups::new(&work.flows, transports.len(), &work.again, work.fabric.hosts);
        let plan = Plan {
            steps: tagging.map_or(BTreeMap::new(), |tagging| entities.steps(tagging.untagged)),
            hoses,
            downstream: Downstream::new(&work.fabric, routes.clone(), work.balancing.clone(), scenario.path_seed()),
            queueing: transports.iter().position(|transport| transport.as_scheme().capabilities().brings_queueing),
            scenario: scenario.clone(),
            routes,
            network,
            reserved,
            settings,
            entities,
            arrivals,
            recorded,
            events,
            ports,
            followed,
            changes,
            lookahead,
            fabric: work.fabric,
            transports: work.transports,
            again: Arc::new(work.again),
            requirements: work.requirements,
            balancing: work.balancing,
            groups: Arc::new(groups),
            sites: work.sites,
            attached: work.attached,
            outside: work.outside,
            flows: Arc::new(work.flows),
            jobs: Arc::new(work.jobs),
            ideal_ps: work.ideal_ps,
            horizon: work.horizon,
        };
        plan.check_switches()?;
        Ok(plan)
    }

    /// Whether each switch can do what the plan requires: grant its AQs, keep room for its flow control.
    fn check_switches(&self) -> Result<(), Problem> {
        for &switch in self.steps.keys() {
            self.switch_part(switch)?;
        }
        for switch in (0..self.fabric.switches).map(SwitchId) {
            let checked = self.scenario.flow_control.check_on(&self.link_view(), switch);
            checked.map_err(|problem| problem.under("flow_control"))?;
        }
        Ok(())
    }

    /// From when on switches have had different tables, if they ever do.
    pub fn tables_differ_from(&self) -> Option<Time> {
        let one_by_one = |epoch: &&Epoch| matches!(epoch.change, Change::Reroute(_, RerouteScope::Switches(_)));
        self.changes.iter().find(one_by_one).map(|epoch| epoch.at)
    }

    /// Settings that can hardly work, though they run; keys as in the scenario.
    ///
    /// First the settings that have no effect here.
    pub fn warnings(&self) -> Vec<Problem> {
        let mut warnings = self.advice();
        warnings.extend(self.sharing_warnings());
        warnings.extend(self.timer_warnings());
        warnings.extend(compatibility::doubts(self));
        warnings.extend(crate::note_of_sums(&self.flows, &self.jobs));
        let open = self.reserved.as_ref().filter(|reserved| reserved.guarantee.as_ref().is_some_and(|of| !of.proven));
        warnings.extend(open.map(|reserved| {
            let index = usize::from(reserved.transport);
            let (key, name) = (self.scenario.carriers().keys[index].clone(), self.transports[index].name());
            let message = format!(
                "routes of this fabric depend on each other in cycles, as in a torus, and there no bound is proven \
                 for links that serve in the order of arrival; the audit still checks what {name} guarantees. With \
                 service = \"round_robin\" the bound is proven"
            );
            Problem::new(key, message)
        }));
        warnings
    }

    /// Limits of its results, such as too few flows for a percentile; keys as in the scenario.
    pub fn doubts_of_results(&self) -> Vec<Problem> {
        compatibility::doubts_of_results(self)
    }

    /// Doubts about its settings that its lost and repeated packets raise, and its end, if it ended since all messages
    /// had.
    pub fn doubts_of_outcome(&self, (sent, resent): (u64, u64), lost: u64, end: Option<Time>) -> Vec<Problem> {
        compatibility::doubts_of_outcome(&compatibility::Outcome {
            plan: self,
            sent_packets: sent,
            resent_packets: resent,
            lost_packets: lost,
            end_by_itself: end,
        })
    }

    /// Settings without effect in this run.
    fn advice(&self) -> Vec<Problem> {
        let Plan { scenario, transports, requirements, .. } = self;
        let keys = &scenario.carriers().keys;
        let mut advice = scenario.advice();
        advice.extend(compatibility::advice(&Facts { scenario, transports, keys, requirements }));
        advice.extend(self.entities.idle_untagged(scenario));
        advice
    }

    /// The view that a flow control is given.
    pub(crate) fn link_view(&self) -> contract::link_control::LinkView<'_> {
        contract::link_control::LinkView {
            fabric: &self.fabric,
            downstream: &self.downstream,
            balancing: &self.balancing,
            mtu_bytes: self.scenario.host.mtu.get(),
            host_delay: self.scenario.host.delay,
            intake_buffer: self.intake_buffer(),
            buffer: self.settings.buffer,
        }
    }

    /// A NIC's buffer, which is that of the default where hosts take in all that comes.
    fn intake_buffer(&self) -> Bytes {
        let host = &self.scenario.host;
        if host.intake_rate.is_some() { host.intake_buffer } else { HostSpec::default().intake_buffer }
    }

    /// Round-trip delay of a link and back, without transmission times.
    pub fn link_round_trip(&self, link: LinkId) -> Duration {
        let Link { from, from_port, .. } = *self.fabric.link(link);
        self.link_view().round_trip(from, from_port)
    }

    /// Rows of one sample: each switch, and each of the three tiers of links.
    pub fn sample_rows(&self) -> u64 {
        sample_rows(&self.fabric)
    }

    /// One-hop bandwidth-delay product of each link's sending port.
    pub fn hop_bdp_bytes(&self) -> Vec<u64> {
        let network = self.link_view();
        self.fabric.links.iter().map(|link| network.hop_bdp_bytes(link.from, link.from_port)).collect()
    }

    /// The settings of a switch: those of all, with the memory of its own if it has any.
    fn settings_of(&self, switch: SwitchId) -> Arc<Settings> {
        let own = self.scenario.flow_control.as_scheme().and_then(|control| control.memory(&self.link_view(), switch));
        own.map_or_else(
            || self.settings.clone(),
            |bytes| {
                let buffer = Buffer::Shared { bytes, alpha: None };
                Arc::new(Settings { buffer, ..(*self.settings).clone() })
            },
        )
    }

    /// A switch's part of the flow control, or the queues that a transport brings.
    fn flow_control(&self, switch: SwitchId) -> Option<Box<dyn QueueDiscipline>> {
        if let Some(index) = self.queueing {
            let site = EndpointParams { transport: index as u8, ..self.network.site.clone() };
            let network = NetworkView { site, ..self.network.clone() };
            return self.transports[index].as_scheme().queueing(&network, switch);
        }
        let control = self.scenario.flow_control.as_scheme()?;
        Some(control.switch_control(&self.link_view(), switch))
    }

    /// A host, as it is before the first packet, with one endpoint a transport.
    pub fn host(&self, host: HostId) -> Host {
        let site = |transport| EndpointParams { transport: transport as u8, ..self.sites[host.index()].clone() };
        let endpoint =
            |(index, transport): (usize, &Transport)| transport.as_scheme().endpoint(&site(index), &self.network);
        let endpoints: Vec<Box<dyn Endpoint>> = self.transports.iter().enumerate().map(endpoint).collect();
        let shaper = self.shaper(&site(self.transports.len()));
        let tagging = self.scenario.sharing.as_scheme().and_then(|scheme| scheme.tagging());
        let tagged = tagging.is_some() && self.entities.tag_anything();
        let entities = tagged.then(|| self.entities.clone());
        let ports = self.fabric.uplinks(host).len();
        let mut nics = (0..ports).map(|port| self.nic(host, PortId::from(port)));
        let (nic, homes) = match ports {
            1 => (nics.next().flatten(), None),
            _ => (None, Some(self.homes(host, nics.collect()))),
        };
        let spec = &self.scenario.host;
        let receive_limit = spec.intake_rate.map(|rate| ReceiveLimit::new(rate, spec.intake_buffer));
        let cpu = spec.cpu.map(|cpu| Cpu::new(cpu.costs(spec.mtu.get())));
        let flows = self.flows.clone();
        let reserved = self.reserved.as_ref().map(|reserved| (usize::from(reserved.transport), reserved.classes));
        let made = Host::new(host, endpoints, shaper, nic, entities, flows, self.scenario.seed);
        let made = match self.scenario.timing {
            Timing::Ideal => made,
            Timing::Real => made.with_drawn_turns(self.scenario.seed),
        };
        made.with_homes(homes)
            .with_receive_limit(receive_limit)
            .with_cpu(cpu)
            .with_reserved(reserved)
            .with_outside(self.outside.filter(|_| self.attached.contains_key(&host)), self.outside_class())
            .with_again(self.again.clone())
            .with_lost_flows(self.lost_flows())
            .with_jobs(self.jobs.at(host))
    }

    /// The longest round trip without load.
    pub fn round_trip(&self) -> Duration {
        self.network.busy_rtt()
    }

    /// How long nothing new may come of a class whose flows are under way, while nothing stands in their way that
    /// passes: a hundred round trips, with full buffers and limiters twice, and ten packets at the lowest rate. A
    /// transport that has asked for something a hundred times in vain will ask for ever.
    pub fn patience(&self) -> Duration {
        let slow = self.changes.iter().flat_map(|epoch| match &epoch.change {
            Change::Slow(links) => links.as_slice(),
            Change::Dead(_) | Change::Noisy(_) | Change::Reroute(..) => &[],
        });
        let rates = self.transports.iter().filter_map(|transport| transport.as_scheme().rate_max());
        let rates = rates.chain(self.scenario.host.intake_rate).chain(slow.map(|link| link.1));
        let rates = rates.filter(|&rate| rate > Rate::ZERO);
        let lowest = rates.fold(self.fabric.narrowest_rate(), Rate::min);
        let packet = lowest.transmit(self.scenario.host.mtu.get());
        let times = [(self.round_trip(), ROUND_TRIPS), (self.network.wait, 2), (packet, 10)];
        let ps = times.iter().fold(0u64, |sum, (time, count)| sum.saturating_add(time.ps().saturating_mul(*count)));
        Duration::from_ps(ps.max(16))
    }

    /// A host's name, by its number.
    pub fn host_name(&self, host: u32) -> String {
        self.fabric.names[self.fabric.host_node(HostId(host)).index()].clone()
    }

    /// Where flows of lost packets are noted: only if a transport may give a flow up, so that it is asked why.
    pub fn lost_flows(&self) -> LostFlows {
        let gives_up = self.transports.iter().any(|transport| transport.as_scheme().capabilities().gives_up());
        if gives_up { LostFlows::noted() } else { LostFlows::default() }
    }

    /// Whether all losses are noted. Those of links that repeat what was damaged are not: most of it comes.
    pub fn knows_lost_flows(&self) -> bool {
        self.scenario.link.llr.is_none()
    }

    /// Each flow's completion time alone in the network, in picoseconds, of those that programs have sent as well.
    pub fn ideals(&self) -> Cow<'_, [u64]> {
        let known = self.ideal_ps.len();
        if known == self.flows.row_count() {
            return Cow::Borrowed(&self.ideal_ps);
        }
        let quotient = Quotient::new(&self.fabric);
        let mut ideals = Ideal::by_transport(&self.fabric, &quotient, &self.scenario, &self.transports);
        let more = self.flows.rows().skip(known).map(|(_, flow)| Ideal::of(&mut ideals, &flow));
        Cow::Owned(self.ideal_ps.iter().copied().chain(more).collect())
    }

    /// How many things must end until the run is over: flows, and the parts that jobs have at hosts. Where software
    /// takes time, a flow ends at its sender and, when its message has been received, at its receiver.
    pub fn goal(&self) -> u64 {
        let ends = 1 + u64::from(self.scenario.host.cpu.is_some());
        self.flows.taking_part().len() as u64 * ends + self.jobs.parts()
    }

    /// The first class that is not reserved.
    fn beneath_reserved(&self) -> u8 {
        self.reserved.as_ref().map_or(0, |reserved| reserved.classes)
    }

    /// The class of attached hosts' packets: that of transports' data, which flow controls hold back, and behind which
    /// acknowledgements never wait.
    fn outside_class(&self) -> u8 {
        (self.beneath_reserved() + 1).min(CLASSES as u8 - 1)
    }

    /// The flow control's part of a port of a host.
    fn nic(&self, host: HostId, port: PortId) -> Option<Box<dyn NicControl>> {
        self.scenario.flow_control.as_scheme()?.nic_control(&self.link_view(), host, port)
    }

    /// The NIC of a host with several links.
    fn homes(&self, host: HostId, nics: Vec<Option<Box<dyn NicControl>>>) -> MultihomedNic {
        let (routes, switches) = (self.routes.clone(), self.fabric.switches);
        let count = nics.len() as u32;
        let homes = MultihomedNic::new(host, nics, routes, self.balancing.clone(), switches, self.scenario.path_seed());
        if !self.jobs.are_bound() {
            return homes;
        }
        let jobs = self.jobs.clone();
        homes.binding(Arc::new(move |flow, host| jobs.links_of(flow, host, count)))
    }

    /// Whether any transport has a part in switches.
    pub fn has_agents(&self) -> bool {
        self.transports.iter().any(|transport| transport.as_scheme().capabilities().has_agent)
    }

    /// The parts that transports have in a switch.
    fn agents(&self, switch: SwitchId) -> Vec<Option<(Box<dyn SwitchAgent>, Stream)>> {
        let random = |index| Stream::new(self.scenario.seed, (index as u64) << 32 | u64::from(switch.0), "agent");
        let agent = |(index, transport): (usize, &Transport)| {
            Some((transport.as_scheme().agent(&self.network, switch)?, random(index)))
        };
        self.transports.iter().enumerate().map(agent).collect()
    }

    /// A switch, as it is before the first packet.
    pub fn switch(&self, id: SwitchId) -> Switch {
        let (seed, path_seed) = (self.scenario.seed, self.scenario.path_seed());
        let node = self.fabric.switch_node(id);
        let hop = |tier| match tier {
            Tier::ToHost => Hop::Last,
            Tier::Down => Hop::Down,
            Tier::Up | Tier::FromHost => Hop::Up,
        };
        let port = |link: &LinkId| {
            let link = self.fabric.link(*link);
            let port = Port::new(link.rate, hop(link.tier), &self.settings.levels);
            port.in_steps_of(self.scenario.transmission_step).by_clock(self.clock_ppb(node))
        };
        let balancer = |(index, balancing): (usize, Balancing)| {
            let random = Stream::new(path_seed, (index as u64) << 32 | u64::from(id.0), "balance");
            Balancer::new(balancing, switch_seed(path_seed, id), random)
        };
        let switch = Switch::new(
            id,
            self.fabric.ports[node.index()].iter().map(port).collect(),
            self.routes.clone(),
            self.balancing.iter().copied().enumerate().map(balancer).collect(),
            self.settings_of(id),
            Stream::new(seed, u64::from(id.0), "mark"),
            self.switch_part(id).expect("checked when the plan was made"),
        );
        // Where the network's own paths are that long, its hosts would set a higher time to live.
        let longest = self.network.site.data_rtts.iter().map(|of| of.0).max().unwrap_or(0);
        let switch = if longest < HOPS_MAX { switch } else { switch.with_long_paths() };
        switch
            .with_agents(self.agents(id))
            .with_reserved_buffer(self.reserved.as_ref().and_then(|reserved| reserved.room(&self.fabric, id)))
            .with_flow_control(self.flow_control(id))
    }
}

/// Failures and recoveries, and the times at which routes change.
fn changes(scenario: &Scenario, fabric: &Fabric, routes: &Arc<Routes>) -> Result<Vec<Epoch>, Problem> {
    let rerouting = Rerouting {
        delay: scenario.reroute_delay,
        per_hop: scenario.reroute_per_hop,
        compute_max: scenario.reroute_compute_max,
        seed: scenario.seed,
    };
    epochs(fabric, &scenario.failure, &rerouting, routes).map_err(|problem| problem.under("failure"))
}

/// The view of the network that schemes are given, if all of them can run on it.
fn network(
    scenario: &Scenario,
    work: &WorkloadPlan,
    routes: &Arc<Routes>,
    buffer: Buffer,
) -> Result<NetworkView, Problem> {
    let narrowest = work.fabric.narrowest_rate();
    let network = NetworkView {
        fabric: work.fabric.clone(),
        routes: routes.clone(),
        site: work.sites[0].clone(),
        host_delay: scenario.host.delay,
        wait: narrowest.transmit(waiting_bytes_max(scenario, &work.fabric, buffer)),
        narrowest,
        head_bytes: scenario.switch.cut_through.then_some(HEAD_BYTES),
        classes: scenario.classes().map(|class| class.name.to_owned()).collect(),
        common: SharedCache::default(),
    };
    for (transport, key) in work.transports.iter().zip(&work.keys) {
        transport.check_on(&network).map_err(|problem| problem.under(key))?;
    }
    Ok(network)
}

/// The most bytes that wait for one port.
fn waiting_bytes_max(scenario: &Scenario, fabric: &Fabric, buffer: Buffer) -> u64 {
    let pools = scenario.flow_control.as_scheme().is_some_and(|control| control.pools_buffer());
    let own = scenario.flow_control.as_scheme().and_then(|control| control.memory_max()).map_or(0, Bytes::get);
    let of_all = match buffer {
        Buffer::PerPort { bytes } if pools => {
            let ports = (0..fabric.switches).map(|id| fabric.ports[fabric.switch_node(SwitchId(id)).index()].len());
            bytes.get().saturating_mul(ports.max().unwrap_or(1) as u64)
        }
        buffer => buffer.port_bytes_max(),
    };
    of_all.max(own)
}

/// The transport that has the first classes for itself, what it guarantees, and the room that switches have for that.
fn reserved(scenario: &Scenario, work: &WorkloadPlan, network: &NetworkView) -> Result<Option<Reserved>, Problem> {
    let mut reserved = Reserved::new(&work.transports, &work.requirements, network);
    if let Some(reserved) = &mut reserved {
        let (name, alone) = (work.transports[usize::from(reserved.transport)].name(), work.transports.len() == 1);
        reserved.check_room(scenario, &work.fabric, name, alone)?;
        reserved.widen(scenario, &work.fabric, alone);
    }
    Ok(reserved)
}

/// How long parts of the network can be simulated on their own. No outage is shorter.
fn lookahead(scenario: &Scenario, fabric: &Fabric) -> Result<Duration, Problem> {
    let lookahead = fabric.lookahead().unwrap_or_else(|| shortest_delay(fabric));
    if lookahead == Duration::ZERO {
        let message = "links between partitions of the network need a delay above 0 (propagation or switch processing)";
        return Err(Problem::new("fabric", message));
    }
    let short = |spec: &FailureSpec| spec.degrades_by().is_none() && spec.lasts() < lookahead;
    if let Some(index) = scenario.failure.iter().position(short) {
        let message = format!(
            "an outage must last at least {lookahead}, the least delay from one part of the network to another"
        );
        let key = if scenario.failure[index].flap.is_some() { "flap.down" } else { "until" };
        return Err(Problem::new(format!("failure[{index}].{key}"), message));
    }
    Ok(lookahead)
}

fn sample_rows(fabric: &Fabric) -> u64 {
    u64::from(fabric.switches) + 3
}

/// Refuses a limit of rows that is less than two samples: with fewer, dropping every second sample frees nothing.
fn check_sample_rows(scenario: &Scenario, fabric: &Fabric) -> Result<(), Problem> {
    let (given, least) = (scenario.measure.rows_max, 2 * sample_rows(fabric));
    if scenario.measure.interval == Duration::ZERO || given >= least {
        return Ok(());
    }
    let message = format!(
        "{given} is less than two samples of this network: {} rows each, for {} switches and 3 tiers of links. At \
         least {least}, or measure.interval = \"0s\" for no samples",
        sample_rows(fabric),
        fabric.switches
    );
    Err(Problem::new("measure.rows_max", message))
}

/// The hosts of which each data packet's arrival is noted.
fn arrivals(scenario: &Scenario, fabric: &Fabric) -> Result<BTreeSet<HostId>, Problem> {
    let hosts = scenario.measure.arrivals.iter().enumerate().map(|(index, name)| {
        arrivals_at(fabric, name).map_err(|problem| problem.under(format!("measure.arrivals[{index}]")))
    });
    hosts.collect()
}

/// The host whose arrivals are asked for by this name.
fn arrivals_at(fabric: &Fabric, name: &str) -> Result<HostId, Problem> {
    fabric.as_host(fabric.find(name)?).ok_or_else(|| {
        Problem::new("", format!("\"{name}\" is a switch; arrivals are recorded at hosts, such as \"host0\""))
    })
}

fn shortest_delay(fabric: &Fabric) -> Duration {
    let ids = (0..fabric.links.len()).map(LinkId::from);
    let shortest = ids.map(|id| fabric.delay(id)).min().unwrap_or(Duration::ZERO);
    // One part has no neighbour: the window is only how often the run looks up, and need not be short.
    shortest.max(Duration::from_ns(100))
}

fn settings(facts: &Facts<'_>) -> Result<Settings, Problem> {
    let Facts { scenario, requirements, .. } = *facts;
    let switch = &scenario.switch;
    let push_out = requirements.iter().any(|required| required.overflow == Some(Overflow::PushOut));
    let asked = if push_out { Overflow::PushOut } else { Overflow::TailDrop };
    let said = switch.marking.filter(|_| facts.drops_early()).map(|at| EarlyDrop { at, by_port: false });
    let early: Vec<_> = requirements.iter().map(|required| said.or(required.early_drop)).collect();
    let early_drop = if early.iter().any(Option::is_some) { early } else { Vec::new() };
    let marks_itself = scenario.flow_control.as_scheme().is_some_and(|control| control.marks());
    let settings = Settings {
        buffer: switch.buffer,
        overflow: switch.overflow.unwrap_or(asked),
        levels: switch.levels.clone(),
        marking: requirements
            .iter()
            .map(|required| required.signal.marking().map(|own| switch.marking.unwrap_or(own)))
            .map(|marking| marking.filter(|_| !marks_itself))
            .collect(),
        mark_at: switch.mark_at,
        early_drop,
        header_bytes: scenario.host.header.get() as u16,
    };
    settings.check().map_err(|problem| problem.under("switch"))?;
    Ok(Settings { buffer: facts.buffer(), levels: facts.levels(), ..settings })
}
