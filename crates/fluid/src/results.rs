//! The result tables: those of a run that make sense without packets.

use run::{Column, Data, FlowColumns, Flows, Status, Table, job_tables, link_columns, standing_columns};

use units::Time;

use crate::run::Run;
use crate::usage::{TIERS, tier_index};

/// The state of all flows at the end.
pub(crate) struct Standing {
    status: Vec<Status>,
    reason: Vec<u32>,
}

impl Standing {
    pub fn new(run: &Run<'_>) -> Standing {
        let of = |flow| Status::of(run.started[flow], run.delivered[flow], run.completed[flow]);
        let (status, reason) = (0..run.started.len()).map(of).unzip();
        Standing { status, reason }
    }

    pub fn completed(&self) -> u64 {
        self.status.iter().filter(|&&status| status == Status::Completed).count() as u64
    }
}

pub(crate) fn tables(run: &mut Run<'_>, standing: Standing, end_ps: u64) -> Vec<Table> {
    let plan = run.workload_plan;
    let done = run.ranks.done(end_ps);
    let times = [&run.started[..], &run.delivered, &run.completed];
    let jobs = job_tables(&plan.jobs, &plan.fabric, times, done, run.ranks.summed());
    let mut tables = vec![flow_table(run, standing), utilisation_table(run, end_ps), link_table(run, end_ps)];
    tables.extend(jobs);
    tables
}

fn flow_table(run: &mut Run<'_>, standing: Standing) -> Table {
    let common = FlowColumns {
        scenario: run.scenario,
        fabric: &run.workload_plan.fabric,
        flows: &run.workload_plan.flows,
        transports: &run.workload_plan.transports,
        ideal_ps: &run.workload_plan.ideal_ps,
    };
    let mut columns = common.who();
    let times = [&mut run.started, &mut run.delivered, &mut run.completed];
    let [started, delivered, completed] = times.map(std::mem::take);
    columns.extend(common.when(started, delivered, completed));
    columns.extend(standing_columns(&standing.status, standing.reason, Flows::REASONS.map(str::to_owned).to_vec()));
    Table { name: "flows", columns }
}

fn utilisation_table(run: &mut Run<'_>, end_ps: u64) -> Table {
    let mut capacity = [0u64; TIERS.len()];
    for link in &run.workload_plan.fabric.links {
        tier_index(link.tier).into_iter().for_each(|tier| capacity[tier] += link.rate.bps());
    }
    let (mut time, mut tiers, mut shares) = (Vec::new(), Vec::new(), Vec::new());
    let samples = run.usage.samples(end_ps);
    let interval = run.usage.interval().secs_f64();
    for (at, bits) in samples {
        for tier in (0..TIERS.len()).filter(|&tier| capacity[tier] > 0) {
            time.push(at);
            tiers.push(tier as u32);
            shares.push((bits[tier] / interval / capacity[tier] as f64).min(1.0));
        }
    }
    Table {
        name: "utilisation",
        columns: vec![
            Column::new("time_ps", "ps", "end of the interval", Data::U64(time)),
            Column::new(
                "tier",
                "",
                "links between switches away from hosts (up) and towards them (down), and to hosts",
                Data::Names { index: tiers, names: TIERS.map(str::to_owned).to_vec() },
            ),
            Column::new(
                "utilisation",
                "",
                "share of the tier's capacity that was used, headers counted",
                Data::F64(shares),
            ),
        ],
    }
}

fn link_table(run: &Run<'_>, end_ps: u64) -> Table {
    let fabric = &run.workload_plan.fabric;
    let resources = run.network.resource_of_links();
    let sent = |resource: &u32| run.brought[*resource as usize] / run.network.link(*resource as usize).1 as f64;
    let sent: Vec<f64> = resources.iter().map(sent).collect();
    // Rates change at whole picoseconds, so a link may have brought those few more that are rounded up.
    let used = |(&sent, link): (&f64, &fabric::Link)| run::utilisation(sent, link.rate, Time::from_ps(end_ps)).min(1.0);
    let used = sent.iter().zip(&fabric.links).map(used).collect();
    let mut columns = link_columns(fabric);
    let whole = sent.iter().map(|sent| (sent + 0.5) as u64).collect();
    columns.extend([
        Column::new("sent_bytes", "B", "bytes sent, headers counted", Data::U64(whole)),
        Column::new("utilisation", "", "share of its capacity over the whole run", Data::F64(used)),
    ]);
    Table { name: "links", columns }
}
