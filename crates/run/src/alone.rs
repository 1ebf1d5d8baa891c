//! Runs each job alone, to find how much other traffic slows it down.
//!
//! A job's slowdown is its time over that of a run of its own, at the same level, with the same seed. There its ranks
//! are on the same hosts, its messages have the same numbers and so take the same paths, its stragglers are as slow,
//! and the network fails as it does in the whole run; only other traffic and other jobs never begin. So every
//! difference is due to the other traffic and jobs. A job that is the only traffic has a slowdown of exactly 1, and is
//! not run again. A closed form or an estimate at another level would mix in what these leave out.
//!
//! Entities keep their shares in switches, even if they send nothing: "alone" changes only the traffic, not the
//! network.

use scenario::{Measure, Scenario};
use units::Duration;

use crate::{Column, Data, Flows, Jobs, Table};

/// In place of a time that there is not.
const NONE: u64 = Flows::NONE;

/// The scenario of a job alone: nothing of it is recorded but what became of the job.
pub fn without_records(scenario: &Scenario) -> Scenario {
    let measure = Measure {
        interval: Duration::ZERO,
        arrivals: Vec::new(),
        packets: None,
        flows: None,
        events: Vec::new(),
        ports: Vec::new(),
        alone: false,
        ..scenario.measure.clone()
    };
    Scenario { measure, ..scenario.clone() }
}

/// The columns `alone_ps` and `slowdown` of the table `jobs`, without values until [`fill_in`] gives them some.
pub(crate) fn columns(rows: usize) -> [Column; 2] {
    [
        Column::new(
            "alone_ps",
            "ps",
            "time_ps in a run of this job alone in the same network; null without measure.alone",
            Data::OptU64(vec![NONE; rows]),
        ),
        Column::new(
            "slowdown",
            "",
            "time_ps over alone_ps: what other traffic and other jobs cost it; null without measure.alone",
            Data::F64(vec![f64::NAN; rows]),
        ),
    ]
}

/// Fills in how long each iteration takes alone, in the table `jobs` of a run with `flows` flows. `run_alone` gives the
/// tables of a run of one job; none if there is no such run.
pub fn fill_in(
    tables: &mut [Table],
    jobs: &Jobs,
    flows: usize,
    mut run_alone: impl FnMut(usize) -> Option<Vec<Table>>,
) {
    let Some(table) = tables.iter_mut().find(|table| table.name == "jobs") else { return };
    let times = values(table, "time_ps");
    let of_rows = job_of_rows(table);
    let mut alone = vec![NONE; times.len()];
    for (job, placed) in jobs.iter().enumerate() {
        let is_all = jobs.iter().len() == 1 && placed.flows() == flows;
        let own = if is_all { Some(times.clone()) } else { run_alone(job).map(|tables| times_of(&tables)) };
        let Some(own) = own else { continue };
        let rows = of_rows.iter().enumerate().filter(|of| *of.1 as usize == job);
        rows.for_each(|(row, _)| alone[row] = own[row]);
    }
    let slowdown = |(&time, &alone): (&u64, &u64)| match (time, alone) {
        (NONE, _) | (_, NONE | 0) => f64::NAN,
        _ => time as f64 / alone as f64,
    };
    let slowdown = times.iter().zip(&alone).map(slowdown).collect();
    for (name, data) in [("alone_ps", Data::OptU64(alone)), ("slowdown", Data::F64(slowdown))] {
        let column = table.columns.iter_mut().find(|column| column.name == name);
        column.expect("a table of jobs has it").data = data;
    }
}

/// The times of all rows of the table `jobs`. It has the same rows whichever jobs begin.
fn times_of(tables: &[Table]) -> Vec<u64> {
    tables.iter().find(|table| table.name == "jobs").map_or(Vec::new(), |table| values(table, "time_ps"))
}

fn values(table: &Table, name: &str) -> Vec<u64> {
    match table.column(name).map(|column| &column.data) {
        Some(Data::U64(values) | Data::OptU64(values)) => values.clone(),
        _ => Vec::new(),
    }
}

fn job_of_rows(table: &Table) -> Vec<u32> {
    match table.column("job").map(|column| &column.data) {
        Some(Data::Names { index, .. }) => index.clone(),
        _ => Vec::new(),
    }
}
