//! The nodes and links of a scenario's network, without what a run would need of them.

use pyo3::prelude::*;
use pyo3::types::PyBytes;

use run::MemoryLimit;

use crate::{Scenario, planned};

/// Names of nodes, and of each directed link, in the machine's byte order: the numbers of its two nodes, its tier
/// (`u32` each) and its rate in bit/s (`u64`).
type Network<'py> = (Vec<String>, Bound<'py, PyBytes>, Bound<'py, PyBytes>, Bound<'py, PyBytes>, Bound<'py, PyBytes>);

/// The network of a scenario; refused if it doesn't fit so many bytes of memory.
#[pyfunction]
#[pyo3(signature = (scenario, memory_bytes_max=None))]
pub(crate) fn network<'py>(scenario: &Bound<'py, Scenario>, memory_bytes_max: Option<u64>) -> PyResult<Network<'py>> {
    let (py, limit) = (scenario.py(), MemoryLimit::flows(memory_bytes_max));
    let fabric = planned(scenario, move |read| limit.fabric(read))?;
    let u32s = |of: &dyn Fn(&fabric::Link) -> u32| {
        let bytes: Vec<u8> = fabric.links.iter().flat_map(|link| of(link).to_ne_bytes()).collect();
        PyBytes::new(py, &bytes)
    };
    let rates: Vec<u8> = fabric.links.iter().flat_map(|link| link.rate.bps().to_ne_bytes()).collect();
    let (from, to) = (u32s(&|link| link.from.0), u32s(&|link| link.to.0));
    Ok((fabric.names.clone(), from, to, u32s(&|link| link.tier as u32), PyBytes::new(py, &rates)))
}
