use std::collections::BTreeMap;
use std::sync::Arc;

use catalogue::Transport;
use contract::{CongestionSignal, SwitchRequirements};
use fabric::{Fabric, Quotient};
use node::{Balancing, Clock, EndpointParams};
use units::{Duration, HostId, Problem, Stream, Time, interrupt};

use workload::{PlacedJob, Room};

use crate::{FlowInfo, FlowTable, Ideal, Jobs, MemoryLimit, data_header_bytes};
use scenario::{Carriers, FastForward, ResubmitPolicy, Scenario};

/// The part of a scenario that does not depend on packets: who sends how much to whom, over what, and how long each
/// flow would take alone. All that an estimate needs, and where a [`Plan`](crate::Plan) begins.
pub struct WorkloadPlan {
    /// The network.
    pub fabric: Arc<Fabric>,
    /// The same, folded along its symmetries.
    pub quotient: Quotient,
    /// The transports that carry its traffic; flows name them by index.
    pub transports: Vec<Transport>,
    /// Where in the scenario each is first named.
    pub keys: Vec<String>,
    /// By class, how messages that were rejected or given up are submitted again.
    pub again: Vec<Vec<ResubmitPolicy>>,
    /// The place of each host.
    pub sites: Vec<EndpointParams>,
    /// The requirements of each transport on switches; the last may be that of limiters' own packets.
    pub requirements: Vec<SwitchRequirements>,
    /// How each transport's packets choose among equal paths.
    pub balancing: Vec<Balancing>,
    /// Hosts that are something on the machine, in a live run, and what.
    pub attached: BTreeMap<HostId, String>,
    /// The index by which packets of attached hosts name their transport, if there are any: beyond all transports.
    pub outside: Option<u8>,
    /// All flows.
    pub flows: FlowTable,
    /// Training jobs on their hosts.
    pub jobs: Jobs,
    /// By row of a flow in results, its completion time alone in the network, in picoseconds.
    pub ideal_ps: Vec<u64>,
    /// When the run ends at the latest.
    pub horizon: Time,
}

impl WorkloadPlan {
    /// Works out as much of a scenario, or says which key can't be right.
    pub fn new(scenario: &Scenario) -> Result<WorkloadPlan, Problem> {
        WorkloadPlan::within(scenario, MemoryLimit::NONE)
    }

    /// The same, but what can't fit the memory is refused before it is made, with the setting that would fit.
    pub fn within(scenario: &Scenario, limit: MemoryLimit) -> Result<WorkloadPlan, Problem> {
        scenario.check()?;
        limit.check_fabric(scenario)?;
        let fabric = Arc::new(scenario.fabric.build().map_err(|problem| problem.under("fabric"))?);
        let room = limit.check_built(scenario, &fabric)?;
        interrupt::check()?;
        let quotient = Quotient::new(&fabric);
        let Carriers { transports, keys, of_class, again } = scenario.carriers();
        let transports: Vec<Transport> = transports.into_iter().cloned().collect();
        let sites = sites(scenario, &fabric, &quotient);
        let mut requirements: Vec<SwitchRequirements> =
            transports.iter().map(|transport| transport.as_scheme().requirements(&sites[0])).collect();
        requirements.extend(scenario.sharing.as_scheme().and_then(|scheme| scheme.requirements()));
        let attached = attached(scenario, &fabric)?;
        let outside = (!attached.is_empty()).then(|| outside(scenario, &mut requirements)).transpose()?;
        let balancing =
            requirements.iter().map(|required| scenario.switch.balancing.unwrap_or(required.balancing)).collect();
        let (flows, jobs) = flows(scenario, &fabric, &quotient, &of_class, &room)?;
        let mut ideals = Ideal::by_transport(&fabric, &quotient, scenario, &transports);
        interrupt::check()?;
        let ideal_ps = flows.rows().map(|(_, flow)| Ideal::of(&mut ideals, &flow)).collect();
        let timed = flows.of_traffic().iter().map(|flow| flow.start).filter(|&start| start != workload::Flow::BY_JOB);
        let last_start = timed.max().unwrap_or(Time::ZERO);
        let horizon = match scenario.measure.end {
            Some(end) => Time::ZERO + end,
            // How long a job takes is what its run is about.
            None if !jobs.is_empty() => Time::ZERO + LONGEST_JOB,
            None => last_start.saturating_add(scenario.measure.drain),
        };
        Ok(WorkloadPlan {
            fabric,
            quotient,
            transports,
            keys,
            again,
            sites,
            requirements,
            balancing,
            attached,
            outside,
            flows,
            jobs,
            ideal_ps,
            horizon,
        })
    }
}

impl WorkloadPlan {
    /// Bytes of a flow's data packets, headers included.
    pub fn wire_bytes(&self, scenario: &Scenario, flow: &FlowInfo) -> u64 {
        let header = data_header_bytes(scenario, &self.transports[usize::from(flow.transport)]);
        let packets = flow.bytes.div_ceil(scenario.host.mtu.get() - header);
        flow.bytes.saturating_add(packets.saturating_mul(header))
    }

    /// The same transports on another network with other flows, as a part of this one that is simulated alone: hosts
    /// are told `sites` of their place. Flows have their transports' numbers in this plan, and their classes'.
    pub fn on(
        &self,
        scenario: &Scenario,
        fabric: Fabric,
        sites: Vec<EndpointParams>,
        flows: Vec<FlowInfo>,
    ) -> WorkloadPlan {
        let quotient = Quotient::new(&fabric);
        let mut ideals = Ideal::by_transport(&fabric, &quotient, scenario, &self.transports);
        let ideal_ps = flows.iter().map(|flow| Ideal::of(&mut ideals, flow)).collect();
        WorkloadPlan {
            flows: FlowTable::new(flows, fabric.hosts),
            jobs: Jobs::new([].into(), fabric.hosts, Vec::new()),
            fabric: Arc::new(fabric),
            quotient,
            ideal_ps,
            sites,
            transports: self.transports.clone(),
            keys: self.keys.clone(),
            again: self.again.clone(),
            requirements: self.requirements.clone(),
            balancing: self.balancing.clone(),
            attached: BTreeMap::new(),
            outside: None,
            horizon: self.horizon,
        }
    }

    /// The same network with the same ranks in the same places, but nothing but one of the jobs begins.
    pub fn with_job_alone(mut self, job: usize) -> WorkloadPlan {
        let placed = &self.jobs.iter().as_slice()[job];
        let first = placed.first_flow.index();
        self.flows = self.flows.only(first..first + placed.flows());
        self.jobs = self.jobs.only(job as u16);
        self
    }
}

/// The hosts that are attached to devices, by number.
fn attached(scenario: &Scenario, fabric: &Fabric) -> Result<BTreeMap<HostId, String>, Problem> {
    let under = |name: &str| format!("live.attach.{name}");
    let mut attached = BTreeMap::new();
    for (name, device) in &scenario.live.attach {
        let node = fabric.find(name).map_err(|problem| problem.under(under(name)))?;
        let Some(host) = fabric.as_host(node) else {
            let message = format!("\"{name}\" is a switch; what is attached is a host, such as \"host0\"");
            return Err(Problem::new(under(name), message));
        };
        attached.insert(host, device.clone());
    }
    if attached.is_empty() {
        return Ok(attached);
    }
    if !scenario.live.networks()?.has_room(fabric.hosts) {
        let message = format!("has no room for addresses of {} hosts; write a shorter prefix", fabric.hosts);
        return Err(Problem::new("live.network", message));
    }
    if scenario.host.mtu.get() < MTU_MIN {
        let message = format!("attached hosts need {MTU_MIN} bytes, as IPv6 does (RFC 8200, section 5)");
        return Err(Problem::new("host.mtu", message));
    }
    Ok(attached)
}

/// The least that a network must carry in one packet for IPv6.
const MTU_MIN: u64 = 1280;

/// The requirements of packets of attached hosts on switches: one path per flow, and marks if the scenario has
/// thresholds.
fn outside(scenario: &Scenario, requirements: &mut Vec<SwitchRequirements>) -> Result<u8, Problem> {
    let index = u8::try_from(requirements.len()).map_err(|_| {
        Problem::new("live.attach", "needs a transport's number, and all 256 are taken; let more classes share one")
    })?;
    let signal = scenario.switch.marking.map_or(CongestionSignal::Drop, CongestionSignal::Ecn);
    requirements.push(SwitchRequirements { signal, ..SwitchRequirements::only(Balancing::Ecmp) });
    Ok(index)
}

fn sites(scenario: &Scenario, fabric: &Fabric, quotient: &Quotient) -> Vec<EndpointParams> {
    let (mtu, header) = (scenario.host.mtu.get(), scenario.host.header.get());
    // A packet passes four host-side delays on a round trip, and two hosts take a random time for it. A window for less
    // than the longest of these would leave the link idle.
    let slowest = (0..fabric.hosts).map(|host| fabric.host_rate(HostId(host))).min();
    let jitter = slowest.filter(|_| scenario.link.llr.is_none()).map_or(Duration::ZERO, |rate| scenario.jitter(rate));
    let cpu = scenario.host.cpu.map_or(Duration::ZERO, |cpu| {
        let costs = cpu.costs(mtu);
        costs.of_packet(mtu) + costs.of_packet(header)
    });
    let host_delay = scenario.host.delay * 4 + jitter * 2 + cpu;
    let data_rtts = fabric.max_rtts(quotient, mtu, header).into_iter();
    let data_rtts: Vec<_> =
        data_rtts.map(|(switches, rtt)| (u8::try_from(switches).unwrap_or(u8::MAX), rtt + host_delay)).collect();
    let data_rtt = data_rtts.iter().map(|of| of.1).max().unwrap_or(host_delay);
    let control_rtt = fabric.max_rtt(quotient, header, header) + host_delay;
    let site = |host: HostId| EndpointParams {
        host,
        hosts: fabric.hosts,
        nic_rate: fabric.host_rate(host),
        data_rtt,
        data_rtts: data_rtts.clone(),
        control_rtt,
        mtu_bytes: mtu as u16,
        header_bytes: header as u16,
        clock: clock(scenario, host),
        transport: 0,
    };
    (0..fabric.hosts).map(|host| site(HostId(host))).collect()
}

fn clock(scenario: &Scenario, host: HostId) -> Clock {
    let mut random = Stream::new(scenario.seed, u64::from(host.0), "clock");
    let drift = u64::from(scenario.host.clock_drift_ppb_max);
    Clock {
        offset_ps: random.below(scenario.host.clock_offset_max.ps() + 1) as i64,
        drift_ppb: random.below(2 * drift + 1) as i64 - drift as i64,
    }
}

/// Without `measure.end`, a run with jobs ends there at the latest: what `measure.end` may be at most.
const LONGEST_JOB: Duration = Duration::from_ms(86_400_000);

fn flows(
    scenario: &Scenario,
    fabric: &Fabric,
    quotient: &Quotient,
    of_class: &[u8],
    room: &Room,
) -> Result<(FlowTable, Jobs), Problem> {
    let view = fabric_view(fabric, quotient);
    let generated = workload::generate_within(&scenario.traffic, &view, scenario.seed, room);
    let generated = generated.map_err(|problem| problem.under("traffic"))?;
    let generated = workload::start_later(generated, scenario.host.start_jitter, scenario.seed);
    let first_class = scenario.traffic.len() as u16;
    let placed = workload::place(&scenario.job, first_class, &view, scenario.seed, room, &generated)
        .map_err(|problem| problem.under("job"))?;
    check_bound(fabric, &placed)?;
    let placed: Arc<[PlacedJob]> = placed.into();
    let transport = |class: u16| of_class[usize::from(class)];
    let generated = generated.into_iter().map(|flow| FlowInfo::new(flow, transport(flow.class))).collect();
    let of_jobs = placed.iter().map(|job| transport(job.class)).collect();
    let most = rows_of_jobs(scenario);
    let flows = FlowTable::with_jobs(generated, fabric.hosts, placed.clone(), of_jobs).list_at_most(most);
    let singly = |job: &PlacedJob| {
        let last = job.first_flow.index() + job.flows();
        let listed = last == 0 || flows.row(units::FlowId::from(last - 1)).is_some();
        listed && job.graph.steps().len() as u64 <= most.saturating_mul(STEPS_A_ROW)
    };
    let singly = placed.iter().map(singly).collect();
    Ok((flows, Jobs::new(placed, fabric.hosts, singly)))
}

/// Refuses ranks that are bound to links that their hosts do not have.
fn check_bound(fabric: &Fabric, placed: &[PlacedJob]) -> Result<(), Problem> {
    for (index, job) in placed.iter().enumerate() {
        let fewest = job.placement.host_of.iter().map(|&host| fabric.uplinks(host).len()).min().unwrap_or(0);
        if let Some(most) = job.bound().filter(|&most| most as usize >= fewest) {
            let message = format!("{most} is no link: hosts have {fewest}, from 0 on");
            return Err(Problem::new(format!("job[{index}].nics.links"), message));
        }
    }
    Ok(())
}

/// Of how many messages of jobs results have a row each. Who skips what repeats, or follows flows, needs all of them.
pub(crate) fn rows_of_jobs(scenario: &Scenario) -> u64 {
    let all = scenario.skips() != FastForward::Off || scenario.measure.flows.is_some();
    if all { u64::MAX } else { scenario.measure.rows_max }
}

/// The rows that a run lacks if jobs have too many messages, and the setting that adds them.
pub fn note_of_sums(flows: &FlowTable, jobs: &Jobs) -> Option<Problem> {
    let sums = (0..jobs.iter().len()).filter(|&job| !jobs.is_noted_singly(job));
    let names: Vec<&str> = sums.map(|job| jobs.iter().as_slice()[job].name.as_str()).collect();
    if names.is_empty() {
        return None;
    }
    let steps = jobs.iter().map(|job| job.graph.steps().len() as u64).max().unwrap_or(0);
    let of_jobs = (flows.planned() - flows.of_traffic().len()) as u64;
    let fit = of_jobs.max(steps.div_ceil(STEPS_A_ROW));
    let message = format!(
        "the job \"{}\" has more steps or messages than can be noted one by one: of {of_jobs} messages between hosts \
         {} have a row in the table flows, and no critical path is traced. {fit} would have all, at about 600 \
         bytes each",
        names.join("\", \""),
        of_jobs - flows.unlisted(),
    );
    Some(Problem::new("measure.rows_max", message))
}

/// A job with more steps than this a row is noted in sum: when each was done takes memory, too.
pub(crate) const STEPS_A_ROW: u64 = 8;

/// The facts on a fabric that traffic needs.
pub(crate) fn fabric_view(fabric: &Fabric, quotient: &Quotient) -> workload::FabricView {
    let hosts = || (0..fabric.hosts).map(HostId);
    workload::FabricView {
        rack_of: hosts().map(|host| fabric.rack_of(host).0).collect(),
        host_rate: hosts().map(|host| fabric.host_rate(host)).collect(),
        bisection: fabric.bisection(quotient),
        narrowest: fabric.narrowest_rate(),
    }
}
