use ::run::{Estimate, Plan};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rustix::time::{ClockId, clock_gettime};

use crate::{Scenario, scenario_error};

/// What a run will take: `hosts`, `flows`, `packet_hops`, `end_ps`, bytes of `memory` by what has them, `cpu_seconds`
/// of one thread, and `fits`, how the run would be refused if it does not fit `memory_bytes_max` (None if it does).
///
/// The CPU time is that of this scenario on this machine: what the plan and the network take to build, and the speed of
/// the run's first `probe_cpu_s` seconds of CPU, on one thread. Without a probe (0 seconds, or a run that does not fit)
/// it is None. The beginning of a run may be faster than the rest: fewer packets are under way.
pub(crate) fn foresee<'py>(
    py: Python<'py>,
    scenario: &Scenario,
    probe_cpu_s: f64,
    memory_bytes_max: Option<u64>,
) -> PyResult<Bound<'py, PyDict>> {
    let (plan, planned_s) = py.detach(|| {
        let began = cpu_s();
        (Plan::new(&scenario.read), cpu_s() - began)
    });
    let plan = plan.map_err(|problem| scenario_error(py, scenario.source.locate(problem)))?;
    let estimate = Estimate::of(&plan);
    let refused = memory_bytes_max.and_then(|most| estimate.check_memory(&plan, most).err());
    let probed = (probe_cpu_s > 0.0 && refused.is_none()).then(|| py.detach(|| probe(&plan, probe_cpu_s)));
    let row = PyDict::new(py);
    row.set_item("hosts", plan.fabric.hosts)?;
    row.set_item("flows", plan.flows.len())?;
    row.set_item("packet_hops", estimate.packet_hops)?;
    row.set_item("end_ps", estimate.end.ps())?;
    let memory = PyDict::new(py);
    memory.set_item("fabric", estimate.memory.fabric)?;
    memory.set_item("flows", estimate.memory.flows)?;
    memory.set_item("packets", estimate.memory.packets)?;
    memory.set_item("samples", estimate.memory.samples)?;
    memory.set_item("recorded", estimate.memory.recorded)?;
    memory.set_item("jobs", estimate.memory.jobs)?;
    row.set_item("memory", memory)?;
    row.set_item("cpu_seconds", probed.map(|probed| planned_s + probed.cpu_s(estimate.packet_hops)))?;
    row.set_item("fits", refused.map(|problem| problem.to_string()))?;
    Ok(row)
}

/// The first part of a run.
struct Probe {
    /// CPU time until the first window.
    built_s: f64,
    /// CPU time of the windows.
    spent_s: f64,
    packet_hops: u64,
    whole: bool,
}

impl Probe {
    /// What the whole run takes.
    fn cpu_s(&self, packet_hops: u64) -> f64 {
        if self.whole || self.packet_hops == 0 {
            return self.built_s + self.spent_s;
        }
        self.built_s + self.spent_s * packet_hops as f64 / self.packet_hops as f64
    }
}

fn probe(plan: &Plan, probe_cpu_s: f64) -> Probe {
    let began = cpu_s();
    let (mut first, mut last) = (None, began);
    let result = sim::run_plan(plan, 1, |_| {
        last = cpu_s();
        let first = *first.get_or_insert(last);
        last - first > probe_cpu_s
    });
    let first = first.unwrap_or(last);
    let whole = result.info.ended != "interrupted";
    Probe { built_s: first - began, spent_s: last - first, packet_hops: result.info.packet_hops, whole }
}

/// CPU time of this thread: the machine may be shared.
fn cpu_s() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}
