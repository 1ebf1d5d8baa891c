use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::{Scenario, planned};

/// What a run will take, as [`clearway::foresee`] says: `hosts`, `flows`, `packet_hops`, `end_ps`, bytes of `memory` by
/// what has them, `cpu_seconds` of one thread, `fits`, how the run would be refused (None if it
/// fits), and `warnings`, what is set so that it can hardly work.
pub(crate) fn foresee<'py>(
    scenario: &Bound<'py, Scenario>,
    probe_cpu_s: f64,
    memory_bytes_max: Option<u64>,
) -> PyResult<Bound<'py, PyDict>> {
    let foreseen = planned(scenario, move |read| clearway::foresee(read, probe_cpu_s, memory_bytes_max))?;
    let row = PyDict::new(scenario.py());
    row.set_item("hosts", foreseen.hosts)?;
    row.set_item("flows", foreseen.flows)?;
    row.set_item("packet_hops", foreseen.packet_hops)?;
    row.set_item("end_ps", foreseen.end_ps)?;
    let memory = PyDict::new(scenario.py());
    for (what, bytes) in foreseen.memory {
        memory.set_item(what, bytes)?;
    }
    row.set_item("memory", memory)?;
    row.set_item("cpu_seconds", foreseen.cpu_seconds)?;
    row.set_item("fits", foreseen.fits)?;
    row.set_item("warnings", foreseen.warnings)?;
    Ok(row)
}
