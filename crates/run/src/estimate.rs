//! The cost of a run, before it runs: packet-hops, simulated time and memory.
//!
//! Hops are counted: each flow's packets over the length of its shortest path, with the control packets that its
//! transport says it sends beside them. Effects of the network on packets (losses, retransmissions, detours, pause
//! frames) are not foreseen: on networks that are not overloaded that is some percent. Work that the run has no time
//! for is not counted: no host sends or receives more than its links carry until the run's end.
//!
//! Memory is a sum of what grows with something: links, flows, packets that wait, rows of samples. The cost of each was
//! measured on the scenarios of `make bench`, as the kernel counts a process's peak.
//!
//! Deliberately absent: CPU time. It depends on the machine and on what else uses its caches, so the caller runs the
//! scenario for a second and divides.

use fabric::Quotient;
use units::{Duration, FlowId, LinkId, Problem, Time};
use workload::in_words;

use crate::{FlowInfo, Ideal, Plan, data_header_bytes};

/// The estimated cost of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Estimate {
    /// Packets over links, data and control.
    pub packet_hops: u64,
    /// When it ends.
    pub end: Time,
    /// The most memory that it has at once.
    pub memory: Memory,
}

/// Where memory goes, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// Nodes, links and routes.
    pub fabric: u64,
    /// Flows and their rows of the result.
    pub flows: u64,
    /// Steps of training jobs, their messages, and when each was done.
    pub jobs: u64,
    /// Packets that wait or are under way.
    pub packets: u64,
    /// Samples of queues and links.
    pub samples: u64,
    /// Packets that are recorded one by one, events, states of flows, and changes of ports.
    pub recorded: u64,
    /// Captured packets, and the files made of them.
    pub captured: u64,
}

/// The program, and memory that every run needs.
pub const PROGRAM_BYTES: u64 = 6_000_000;
/// A direction of a link with its share of the nodes.
pub(crate) const LINK_BYTES: u64 = 1_200;
/// A cell of the routes: a switch and a rack.
pub(crate) const ROUTE_BYTES: u64 = 12;
/// A flow, from the traffic to its row of the results.
pub(crate) const FLOW_BYTES: u64 = 550;
/// A flow of a job that has no row: what endpoints remember of it. Measured as the peak of `clearway run` on 16 ranks
/// and 1,000 iterations of an all-reduce of 16 KB with `measure.rows_max = 1000`, less that of 100, and less the same
/// difference at flow level: 26 bytes over DCTCP, 27 over dcPIM, 33 over RDMA.
pub(crate) const UNLISTED_BYTES: u64 = 33;
/// A step of a job that is noted singly, beside its flow: when it was done, until the tables are made. Measured as the
/// next, on rings in groups of 8, of which each step took 70 bytes.
pub(crate) const STEP_BYTES: u64 = 100;
/// A step of a job outside of rings, and a rank's part of a ring, with their rows of the result. Measured as the peak
/// of `clearway run --level flow` on 1,024 ranks and 300 iterations, less that of 10: a computation took 295 bytes, a
/// part of a ring of one channel and the step that ends it 82 each, a part of eight channels 108.
pub(crate) const KEPT_BYTES: u64 = 300;
/// The state that endpoints keep of a flow under way.
const ACTIVE_FLOW_BYTES: u64 = 600;
/// A packet's slot, and room for as many again, since vectors double.
const PACKET_BYTES: u64 = 256;
/// A sample of a switch, in the probe and in the table.
const SAMPLE_BYTES: u64 = 130;
/// Of a recorded packet, and of its row in the table.
const RECORDED_BYTES: u64 = 400;
/// Of a recorded change of a flow's state, and of its row in the table.
const STATE_BYTES: u64 = 90;
/// Of a change of a port, and of its row in the table.
const PORT_BYTES: u64 = 90;
/// Of a captured packet, and of its block in a file, which is made once in Rust and copied once to Python.
const CAPTURED_BYTES: u64 = 800;

impl Memory {
    /// All of it.
    pub fn bytes(&self) -> u64 {
        [self.flows, self.jobs, self.packets, self.samples, self.recorded, self.captured]
            .iter()
            .fold(self.fabric, |sum, part| sum.saturating_add(*part))
    }
}

impl Estimate {
    /// Of a plan, without running it.
    pub fn of(plan: &Plan) -> Estimate {
        let shares = Shares::new(plan);
        let of = |flow: &FlowInfo| hops(plan, flow) * shares.of(plan, flow);
        let mut hops: f64 = plan.flows.of_traffic().iter().map(of).sum();
        plan.flows.each_kind_of_jobs(|flow, count| hops += of(&flow) * count as f64);
        let end = end(plan, &shares).min(plan.horizon);
        Estimate { packet_hops: hops as u64, end, memory: memory(plan, end, hops as u64) }
    }

    /// The same of a run that captures at most this many packets of each of these files, which have these links. A link
    /// carries no more than full data packets and as many small ones in all the run's time.
    pub fn capturing<'a>(
        mut self,
        plan: &Plan,
        files: impl Iterator<Item = &'a [LinkId]>,
        packets_max: u64,
    ) -> Estimate {
        let mtu = plan.scenario.host.mtu.get().max(1);
        let carried = |link: &LinkId| 2 * plan.fabric.link(*link).rate.bytes_in(self.end.since(Time::ZERO)) / mtu + 2;
        let all = |links: &[LinkId]| links.iter().map(carried).fold(0, u64::saturating_add);
        let packets = |links| all(links).min(self.packet_hops).min(packets_max);
        self.memory.captured = files.map(packets).fold(0, u64::saturating_add).saturating_mul(CAPTURED_BYTES);
        self
    }

    /// Refuses a plan that will hardly fit `most` bytes, and says which setting would make it fit.
    pub fn check_memory(&self, plan: &Plan, most: u64) -> Result<(), Problem> {
        let needed = self.memory.bytes();
        if needed <= most {
            return Ok(());
        }
        let Memory { fabric, flows, jobs, packets, samples, recorded, captured } = self.memory;
        let rows = [("samples", samples), ("recorded packets", recorded), ("captured packets", captured)];
        let parts = [("the fabric", fabric), ("flows", flows), ("steps of jobs", jobs), ("packets", packets)];
        let (largest, bytes) = parts.into_iter().chain(rows).max_by_key(|part| part.1).expect("there are seven");
        let (key, advice) = self.advice(plan, most);
        let message = format!(
            "the run will need about {} of memory and there are {}; {} of it is for {largest}. {advice}",
            in_words(needed),
            in_words(most),
            in_words(bytes)
        );
        Err(Problem::new(key, message))
    }

    /// The setting that would make it fit: the first that alone does.
    fn advice(&self, plan: &Plan, most: u64) -> (&'static str, String) {
        let Memory { flows, jobs, samples, recorded, captured, .. } = self.memory;
        let rest_of = |part: u64| most.saturating_sub(self.memory.bytes() - part);
        if captured > samples.max(recorded) && rest_of(captured) > 0 {
            let packets = rest_of(captured) / CAPTURED_BYTES;
            return ("pcap", format!("Packets of all captured links up to {packets} would fit (--pcap-packets)"));
        }
        if recorded > samples && rest_of(recorded) > 0 {
            let parts = recorded_bytes(plan, self.packet_hops);
            let largest = parts.into_iter().max_by_key(|part| part.bytes).expect("there are four");
            let rows = rest_of(largest.bytes) / largest.row_bytes;
            return (largest.key, format!("rows_max = {rows} would fit"));
        }
        if samples > 0 && rest_of(samples) > 0 {
            let rows = rest_of(samples) / SAMPLE_BYTES;
            return ("measure.rows_max", format!("rows_max = {rows} would fit, or interval = \"0s\" for no samples"));
        }
        // Messages of a job are flows, too.
        if jobs > flows.min(self.memory.bytes() / 4) {
            let advice = "Larger chunks, or fewer channels, ranks or iterations of the job would fit";
            return ("job", advice.to_owned());
        }
        if flows > 0 && rest_of(flows) > 0 {
            let fit = plan.flows.len() as u64 / flows.div_ceil(rest_of(flows)).max(2);
            return ("traffic", format!("About {fit} flows would fit, by `flows` or `duration` of a class"));
        }
        ("fabric", "A smaller fabric would fit, or an estimate at flow level".to_owned())
    }
}

/// Packet-hops of a flow that is delivered.
fn hops(plan: &Plan, flow: &FlowInfo) -> f64 {
    let transport = &plan.transports[usize::from(flow.transport)];
    let header = data_header_bytes(&plan.scenario, transport);
    let packets = flow.bytes.div_ceil(plan.scenario.host.mtu.get().saturating_sub(header).max(1)) as f64;
    let control = transport.as_scheme().control_packets();
    let links = f64::from(plan.routes.hops(flow.src, flow.dst).unwrap_or(0));
    let others = f64::from(plan.fabric.nodes().saturating_sub(1));
    links * (packets * (1.0 + control.per_packet) + control.per_message) + others * control.broadcasts
}

/// The share of its bytes that each host's links carry before the run's end.
struct Shares {
    sent: Vec<f64>,
    received: Vec<f64>,
    /// When each host's links have carried all of its bytes, in picoseconds, if they begin with its first.
    busy_until_ps: Vec<f64>,
}

impl Shares {
    fn new(plan: &Plan) -> Shares {
        let hosts = plan.fabric.hosts as usize;
        let (mut sent, mut received) = (vec![0.0; hosts], vec![0.0; hosts]);
        let mut first = vec![f64::INFINITY; hosts];
        let mut add = |flow: &FlowInfo, count: f64| {
            sent[flow.src.index()] += flow.bytes as f64 * count;
            received[flow.dst.index()] += flow.bytes as f64 * count;
            let start = flow.begins().map_or(0.0, |start| start.ps() as f64);
            for host in [flow.src, flow.dst] {
                first[host.index()] = first[host.index()].min(start);
            }
        };
        plan.flows.of_traffic().iter().for_each(|flow| add(flow, 1.0));
        plan.flows.each_kind_of_jobs(|flow, count| add(&flow, count as f64));
        let horizon = plan.horizon.ps() as f64;
        let mut busy_until_ps = vec![0.0f64; hosts];
        for host in (0..plan.fabric.hosts).map(units::HostId) {
            let index = host.index();
            let bytes_per_ps = plan.fabric.host_rate(host).bps() as f64 / 8e12;
            let carried = (horizon - first[index]).max(0.0) * bytes_per_ps;
            for bytes in [&mut sent[index], &mut received[index]].into_iter().filter(|bytes| **bytes > 0.0) {
                busy_until_ps[index] = busy_until_ps[index].max(first[index] + *bytes / bytes_per_ps);
                *bytes = (carried / *bytes).min(1.0);
            }
        }
        Shares { sent, received, busy_until_ps }
    }

    /// The share of a flow that is delivered.
    fn of(&self, plan: &Plan, flow: &FlowInfo) -> f64 {
        if flow.begins().is_some_and(|start| start >= plan.horizon) {
            return 0.0;
        }
        self.sent[flow.src.index()].min(self.received[flow.dst.index()])
    }
}

/// When the last flow has ended, if each takes as long as alone and no link is asked for more than it carries.
fn end(plan: &Plan, shares: &Shares) -> Time {
    let traffic = plan.flows.of_traffic();
    let mut ends: Vec<u64> = Vec::with_capacity(traffic.len());
    for (index, flow) in traffic.iter().enumerate() {
        let before = flow.after.map_or(0, |after: FlowId| ends.get(after.index()).copied().unwrap_or(0));
        let start = if flow.start == workload::Flow::BY_JOB { 0 } else { flow.start.ps() };
        ends.push(before.saturating_add(start).saturating_add(plan.ideal_ps[index]));
    }
    let least = |(number, job): (usize, &workload::PlacedJob)| job.start.saturating_add(least_time(plan, number, job));
    ends.extend(plan.jobs.iter().enumerate().map(least).map(Time::ps));
    let alone = ends.into_iter().max().unwrap_or(0);
    let busy = shares.busy_until_ps.iter().fold(0.0f64, |most, until| most.max(*until));
    Time::from_ps(alone.max(busy as u64))
}

/// The time of a job if each of its messages takes as long as alone: of a job that is noted in sum, about.
fn least_time(plan: &Plan, number: usize, job: &workload::PlacedJob) -> Duration {
    let within = |message| job.placement.rate.transmit(job.graph.message(message).bytes) + job.placement.delay;
    if plan.jobs.is_noted_singly(number) && job.graph.steps().len() as u64 <= CHAIN_STEPS_MAX {
        return job.graph.longest_chain(|message| match job.flow(message) {
            Some(flow) => Duration::from_ps(plan.ideal_ps[flow.index()]),
            None => within(message),
        });
    }
    let quotient = Quotient::new(&plan.fabric);
    let mut ideals = Ideal::by_transport(&plan.fabric, &quotient, &plan.scenario, &plan.transports);
    job.graph.about_longest_chain(|message| match job.flow(message) {
        Some(flow) => Duration::from_ps(Ideal::of(&mut ideals, &plan.flows.get(flow))),
        None => within(message),
    })
}

/// Of jobs with more steps than this, the longest chain is not looked for.
const CHAIN_STEPS_MAX: u64 = 4_000_000;

fn memory(plan: &Plan, end: Time, packet_hops: u64) -> Memory {
    let (fabric, flows) = (&plan.fabric, plan.flows.len() as u64);
    let (links, switches) = (fabric.links.len() as u64, u64::from(fabric.switches));
    let racks = plan.routes.racks().len() as u64;
    let samples = end.ps().checked_div(plan.scenario.measure.interval.ps()).unwrap_or(0);
    let samples = samples.min(plan.scenario.measure.rows_max / plan.sample_rows());
    let active = active(plan, end);
    // A window of packets each, or the whole flow, or as many as the buffers of all ports hold.
    let mtu = plan.scenario.host.mtu.get().max(1);
    let window = plan.sites[0].bdp_bytes().div_ceil(mtu) + 1;
    let room = links.saturating_mul(window);
    let bytes = plan.flows.bytes();
    let window = window.min(bytes.div_ceil(flows.max(1)).div_ceil(mtu));
    let of_job = |(number, job): (usize, &workload::PlacedJob)| {
        let (singles, parts) = job.graph.kept();
        let noted = if plan.jobs.is_noted_singly(number) { job.graph.steps().len() as u64 * STEP_BYTES } else { 0 };
        (singles + parts) as u64 * KEPT_BYTES + noted
    };
    let listed = flows.saturating_sub(plan.flows.unlisted());
    Memory {
        jobs: plan.jobs.iter().enumerate().map(of_job).sum(),
        fabric: PROGRAM_BYTES + links * LINK_BYTES + switches * racks * ROUTE_BYTES,
        flows: listed * FLOW_BYTES + plan.flows.unlisted() * UNLISTED_BYTES + active * ACTIVE_FLOW_BYTES,
        packets: active.saturating_mul(window).min(room).saturating_mul(PACKET_BYTES),
        samples: samples.saturating_mul(plan.sample_rows()).saturating_mul(SAMPLE_BYTES),
        recorded: recorded_bytes(plan, packet_hops).iter().fold(0, |sum: u64, part| sum.saturating_add(part.bytes)),
        captured: 0,
    }
}

/// Rows of a kind, the bytes of one and of all, and the key that says how many there are at most.
struct Rows {
    key: &'static str,
    row_bytes: u64,
    bytes: u64,
}

/// Bytes of recorded packets, events, states and changes of ports. A packet-hop gives at most one packet and one event,
/// and is taken to give at most two states and two changes of a port.
fn recorded_bytes(plan: &Plan, packet_hops: u64) -> [Rows; 4] {
    let of = |key, rows: Option<u64>, per_hop: u64, row_bytes: u64| {
        let rows = rows.unwrap_or(0).min(packet_hops.saturating_mul(per_hop));
        Rows { key, row_bytes, bytes: rows.saturating_mul(row_bytes) }
    };
    let ports = plan.ports.as_ref().map(|_| plan.scenario.measure.rows_max);
    [
        of("measure.packets.rows_max", plan.recorded.as_ref().map(|recorded| recorded.rows_max), 1, RECORDED_BYTES),
        of("measure.rows_max", plan.events.as_ref().map(|events| events.rows_max), 1, RECORDED_BYTES),
        of("measure.flows.rows_max", plan.followed.as_ref().map(|followed| followed.rows_max), 2, STATE_BYTES),
        of("measure.rows_max", ports, 2, PORT_BYTES),
    ]
}

/// How many flows are under way at once, if they begin and end evenly: those that begin together, or by Little's law as
/// many as begin in the time that one takes.
fn active(plan: &Plan, end: Time) -> u64 {
    let traffic = plan.flows.of_traffic().iter();
    let mut starts: Vec<u64> = traffic.filter_map(FlowInfo::begins).map(|start| start.ps()).collect();
    starts.sort_unstable();
    let together = starts.chunk_by(|a, b| a == b).map(<[u64]>::len).max().unwrap_or(0) as u64;
    let listed: f64 = plan.ideal_ps.iter().map(|ideal| *ideal as f64).sum();
    // The others are of the same jobs.
    let all = listed * (plan.flows.planned() as f64 / plan.ideal_ps.len().max(1) as f64).max(1.0);
    // A flow without an end takes longer than the run, and is one flow all the same.
    together.max((all / end.ps().max(1) as f64).ceil() as u64).min(plan.flows.len() as u64)
}
