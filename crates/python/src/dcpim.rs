use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use transports::dcpim::bounds;

use crate::aside::aside;

/// Most hosts of a study: its time and memory grow with them.
const HOSTS_MAX: u32 = 10_000_000;

/// Hosts, degree, rounds, matched, bound, maximal, rounds until the matching is maximal; shares are of all hosts.
type Row = (u32, f64, u32, f64, f64, f64, f64);

/// Theorem 1 beside matchings of random demands.
#[pyfunction]
pub(crate) fn dcpim_matchings(py: Python<'_>, hosts: u32, degree: f64, rounds: u32, seed: u64) -> PyResult<Vec<Row>> {
    if !(2..=HOSTS_MAX).contains(&hosts) {
        return Err(PyValueError::new_err(format!("hosts={hosts}: take from 2 to {HOSTS_MAX}")));
    }
    if !(degree > 0.0 && degree <= 100.0) {
        return Err(PyValueError::new_err(format!("degree={degree}: must be above 0 and at most 100")));
    }
    if !(1..=64).contains(&rounds) {
        return Err(PyValueError::new_err(format!("rounds={rounds}: take from 1 to 64")));
    }
    let rows = aside(py, move || bounds::study(&[hosts], degree, rounds, seed))?;
    let plain = |row: bounds::Row| {
        (row.hosts, row.degree, row.rounds, row.matched, row.bound, row.maximal, row.rounds_to_maximal)
    };
    Ok(rows.into_iter().map(plain).collect())
}
