use run::{Estimate, Plan};
use rustix::time::{ClockId, clock_gettime};
use scenario::Scenario;
use serde::Serialize;
use units::Problem;

/// What a run will take.
#[derive(Clone, Debug, Serialize)]
pub struct Foreseen {
    /// Hosts of the fabric.
    pub hosts: u32,
    /// Flows in all.
    pub flows: usize,
    /// Packets over links, data and control.
    pub packet_hops: u64,
    /// Simulated time at the end.
    pub end_ps: u64,
    /// Bytes by what has them.
    pub memory: [(&'static str, u64); 6],
    /// Of one thread: see [`foresee`].
    pub cpu_seconds: Option<f64>,
    /// How the run would be refused if it does not fit the memory.
    pub fits: Option<String>,
    /// Settings that can hardly work: the key of each, and what would be right.
    pub warnings: Vec<String>,
}

/// What a run will take: hosts, flows, packet-hops, memory and CPU time.
///
/// The CPU time is that of this scenario on this machine: what the plan and the network take to build, and the speed of
/// the run's first `probe_cpu_s` seconds of CPU from the first payload on, on one thread. Without a probe (0 seconds,
/// or a run that does not fit `memory_bytes_max`) it is `None`, and also if no payload comes in eight times as long.
/// The beginning of a run may be faster than the rest: fewer packets are under way.
pub fn foresee(scenario: &Scenario, probe_cpu_s: f64, memory_bytes_max: Option<u64>) -> Result<Foreseen, Problem> {
    let began = cpu_s();
    let plan = Plan::within(scenario, memory_bytes_max)?;
    let planned_s = cpu_s() - began;
    let estimate = Estimate::of(&plan);
    let refused = memory_bytes_max.and_then(|most| estimate.check_memory(&plan, most).err());
    let probed = (probe_cpu_s > 0.0 && refused.is_none()).then(|| probe(&plan, probe_cpu_s));
    let memory = &estimate.memory;
    Ok(Foreseen {
        hosts: plan.fabric.hosts,
        flows: plan.flows.len(),
        packet_hops: estimate.packet_hops,
        end_ps: estimate.end.ps(),
        memory: [
            ("fabric", memory.fabric),
            ("flows", memory.flows),
            ("packets", memory.packets),
            ("samples", memory.samples),
            ("recorded", memory.recorded),
            ("jobs", memory.jobs),
        ],
        cpu_seconds: probed.and_then(|probed| Some(planned_s + probed.cpu_s(estimate.packet_hops)?)),
        fits: refused.map(|problem| problem.to_string()),
        warnings: plan.warnings().iter().chain(&plan.doubts_of_results()).map(ToString::to_string).collect(),
    })
}

/// The first part of a run.
struct Probe {
    /// CPU time until the first payload.
    before_s: f64,
    /// CPU time since.
    spent_s: f64,
    packet_hops: u64,
    whole: bool,
}

/// How long a probe waits for the first payload, in times of what it takes then: ranks of a job may compute first.
const COMPUTES: f64 = 8.0;

impl Probe {
    /// CPU seconds of the whole run, if they can be estimated.
    fn cpu_s(&self, packet_hops: u64) -> Option<f64> {
        let all = match (self.whole, self.packet_hops) {
            (true, _) => self.spent_s,
            (false, 0) => return None,
            (false, some) => self.spent_s * packet_hops as f64 / some as f64,
        };
        Some(self.before_s + all)
    }
}

fn probe(plan: &Plan, probe_cpu_s: f64) -> Probe {
    let began = cpu_s();
    let (mut window, mut payload, mut last) = (None, None, began);
    let result = sim::run_plan(plan, 1, |progress| {
        last = cpu_s();
        let window = *window.get_or_insert(last);
        if payload.is_none() && progress.work_done > 0 {
            payload = Some(last);
        }
        payload.map_or(last - window > COMPUTES * probe_cpu_s, |payload| last - payload > probe_cpu_s)
    });
    let whole = result.info.ended != "interrupted";
    let packet_hops = if payload.is_some() { result.info.packet_hops } else { 0 };
    let payload = payload.unwrap_or(last);
    Probe { before_s: payload - began, spent_s: last - payload, packet_hops, whole }
}

/// CPU time of this thread: the machine may be shared.
fn cpu_s() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}
