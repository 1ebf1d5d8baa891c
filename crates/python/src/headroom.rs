//! The arithmetic of headroom, for `clearway switch check` and `clearway tune`.

use link_control::mmu::GroupAtPort;
use node::mmu::Threshold;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use run::Plan;
use units::{Duration, NodeId, Rate, SwitchId};

use crate::{Scenario, planned};

/// The lossless groups at each port of each switch of `flow_control.mmu`, by arithmetic: what each is given, and what
/// it needs with frames of up to `frame_bytes` (by default those of the scenario's hosts). Empty under another flow
/// control.
#[pyfunction]
#[pyo3(signature = (scenario, frame_bytes=None))]
pub(crate) fn headroom<'py>(
    scenario: &Bound<'py, Scenario>,
    frame_bytes: Option<u64>,
) -> PyResult<Vec<Bound<'py, PyDict>>> {
    let py = scenario.py();
    let found = planned(scenario, move |read| {
        let plan = Plan::new(read)?;
        let fabric = plan.fabric.clone();
        let of_port = |(switch, group): (SwitchId, GroupAtPort)| {
            let node = fabric.switch_node(switch);
            let link = fabric.link(fabric.ports[node.index()][group.port.index()]);
            let name = |node: NodeId| fabric.names[node.index()].clone();
            Row { switch: name(node), neighbour: name(link.to), rate: link.rate, group }
        };
        Ok(plan.lossless_groups(frame_bytes)?.into_iter().map(of_port).collect::<Vec<_>>())
    })?;
    found.into_iter().map(|row| row.dict(py)).collect()
}

/// A lossless group at a port, with names.
struct Row {
    switch: String,
    neighbour: String,
    rate: Rate,
    group: GroupAtPort,
}

impl Row {
    fn dict(self, py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
        let (row, group) = (PyDict::new(py), self.group);
        let (alpha, threshold) = match group.profile.threshold {
            Threshold::Dynamic(alpha) => (Some(alpha), None),
            Threshold::Static(u64::MAX) => (None, None),
            Threshold::Static(bytes) => (None, Some(bytes)),
        };
        row.set_item("limit", group.limit())?;
        row.set_item("switch", self.switch)?;
        row.set_item("neighbour", self.neighbour)?;
        row.set_item("rate_bps", self.rate.bps())?;
        row.set_item("cable_m", group.cable_m)?;
        row.set_item("role", group.role)?;
        row.set_item("group", group.group)?;
        row.set_item("queues", group.queues.iter().map(|queue| u32::from(*queue)).collect::<Vec<u32>>())?;
        row.set_item("table", group.table)?;
        row.set_item("row", group.row)?;
        row.set_item("pool", group.pool)?;
        row.set_item("shared_bytes", group.shared_bytes)?;
        row.set_item("reserved", group.profile.reserved)?;
        row.set_item("headroom", group.profile.headroom)?;
        row.set_item("alpha", alpha)?;
        row.set_item("threshold", threshold)?;
        row.set_item("needed", group.needed)?;
        Ok(row)
    }
}

/// SONiC's formula for headroom, in bytes: two frames, both ways of a cable at 198,000 km/s, and what a neighbour sends
/// until it stops.
#[pyfunction]
pub(crate) fn headroom_by_formula(rate_bps: u64, cable_m: f64, frame_bytes: u64) -> u64 {
    let told = link_control::pfc::Headroom { cable_m: Some(cable_m), ..Default::default() };
    told.bytes(Rate::from_bps(rate_bps), Duration::ZERO, frame_bytes)
}
