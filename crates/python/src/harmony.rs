use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use transports::harmony::{adversary, allocation, theory};
use units::{Bytes, Duration, Rate, Stream};

use crate::aside::aside;

/// Theorem 3.1's queue in bytes.
#[pyfunction]
pub(crate) fn harmony_queue_max(switches: u32, k: u32, packet_bytes: u64) -> u64 {
    theory::queue_max(switches, k, Bytes(packet_bytes)).0
}

/// Equation 1 in picoseconds.
#[pyfunction]
pub(crate) fn harmony_queueing_delay_max(switches: u32, k: u32, packet_bytes: u64, rate_bps: u64) -> u64 {
    theory::queueing_delay_max(switches, k, Bytes(packet_bytes), Rate::from_bps(rate_bps)).ps()
}

/// K*.
#[pyfunction]
pub(crate) fn harmony_k_star(buffer_bytes: u64, ports: u32, switches: u32, packet_bytes: u64) -> u64 {
    theory::k_star(Bytes(buffer_bytes), ports, switches, Bytes(packet_bytes))
}

/// Theorem 3.2's f(K, C).
#[pyfunction]
pub(crate) fn harmony_slot_efficiency(k: u32, cores: u32) -> f64 {
    theory::slot_efficiency(k, cores)
}

/// From rsvp to complete, in picoseconds: a message in its slots, then its path.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "plain numbers across the border")]
pub(crate) fn harmony_message_delay_max(
    wire_bytes: u64,
    packet_bytes: u64,
    slots: u32,
    slot_rate_bps: u64,
    switches: u32,
    unloaded_round_trip_ps: u64,
    queueing_ps: u64,
    at_each_hop_ps: u64,
) -> PyResult<u64> {
    let slot_rate = Rate::from_bps(slot_rate_bps);
    let message = theory::Message { wire_bytes: Bytes(wire_bytes), packet: Bytes(packet_bytes), slots, slot_rate };
    let path = theory::Path {
        switches,
        unloaded_round_trip: Duration::from_ps(unloaded_round_trip_ps),
        queueing: Duration::from_ps(queueing_ps),
        at_each_hop: Duration::from_ps(at_each_hop_ps),
    };
    let bound = message.delay_max(path);
    bound.map(Duration::ps).ok_or_else(|| PyValueError::new_err("packet_bytes and slots must be at least 1"))
}

/// The share of slots filled, as (mean, standard error) after each try; in the theorem's model without `leaves`.
#[pyfunction]
pub(crate) fn harmony_allocation(
    py: Python<'_>,
    k: u32,
    cores: u32,
    leaves: Option<u32>,
    tries: u32,
    trials: u32,
    seed: u64,
) -> PyResult<Vec<(f64, f64)>> {
    let slots = u64::from(k) * u64::from(cores) * u64::from(leaves.unwrap_or(1));
    if slots == 0 || slots > SLOTS_MAX {
        return Err(PyValueError::new_err(format!("{slots} slots in all; take from 1 to {SLOTS_MAX}")));
    }
    if leaves == Some(1) {
        return Err(PyValueError::new_err("leaves=1: at least 2, or nothing crosses a core"));
    }
    let mut random = Stream::new(seed, 0, "slot allocation");
    let estimates = aside(py, move || match leaves {
        None => vec![allocation::thrown(k, cores, trials, &mut random)],
        Some(leaves) => {
            let fabric = allocation::LeafSpine { leaves, cores };
            allocation::leaf_spine(fabric, k, tries, trials, &mut random)
        }
    })?;
    Ok(estimates.into_iter().map(|estimate| (estimate.mean, estimate.standard_error)).collect())
}

/// What an adversary makes wait at each switch of a path, and the most that is proven: in packets.
#[pyfunction]
pub(crate) fn harmony_adversary(py: Python<'_>, k: u32, switches: u32) -> PyResult<Vec<(u64, u64)>> {
    if k == 0 || k > LINKS_MAX || switches == 0 || switches > SWITCHES_MAX {
        let message =
            format!("k={k}, switches={switches}: take k from 1 to {LINKS_MAX}, switches from 1 to {SWITCHES_MAX}");
        return Err(PyValueError::new_err(message));
    }
    let meetings = aside(py, move || adversary::worst(k, switches))?;
    let proven = |i| adversary::proven_queue_max_at(i, k, Bytes(1)).0;
    Ok((1..).zip(meetings).map(|(i, meeting)| (meeting.queued_packets, proven(i))).collect())
}

/// More would take longer than anybody waits for.
const SLOTS_MAX: u64 = 10_000_000;
const LINKS_MAX: u32 = 64;
const SWITCHES_MAX: u32 = 7;
