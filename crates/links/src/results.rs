//! The tables of an estimate.

use run::{Column, Data, FlowColumns, Flows, Table, WorkloadPlan, link_columns, standing_columns};
use scenario::Scenario;
use units::{FlowId, Time};

use crate::combine::{Run, Times};
use crate::decompose::Decomposition;

pub(crate) fn tables(
    scenario: &Scenario,
    work: &WorkloadPlan,
    links: &Decomposition<'_>,
    runs: &[Run],
    times: Times,
    end_ps: u64,
) -> Vec<Table> {
    let link_table = link_table(scenario, work, links, runs, &times, end_ps);
    vec![flow_table(scenario, work, times), link_table]
}

fn flow_table(scenario: &Scenario, work: &WorkloadPlan, times: Times) -> Table {
    let common = FlowColumns {
        scenario,
        fabric: &work.fabric,
        flows: &work.flows,
        transports: &work.transports,
        ideal_ps: &work.ideal_ps,
    };
    let mut columns = common.who();
    columns.extend(common.when(times.started, times.delivered, times.completed));
    columns.extend(standing_columns(&times.status, times.reason, times.reasons));
    Table { name: "flows", columns }
}

/// By flow, the bytes on the wire that it has sent by the end. How far a flow has come that is not delivered is not
/// known: on each of its links it has at most an equal part of the room that is left by those that are.
fn carried(
    scenario: &Scenario,
    work: &WorkloadPlan,
    links: &Decomposition<'_>,
    times: &Times,
    end_ps: u64,
) -> Vec<f64> {
    let flows = (0..work.flows.len()).map(FlowId::from);
    let mut carried: Vec<f64> = flows.map(|flow| links.wire_bytes(scenario, flow) as f64).collect();
    for (resource, crossing) in links.crossing.iter().enumerate() {
        let bytes_a_ps = links.capacity_bps(resource) / 8.0 * 1e-12;
        let (done, open): (Vec<usize>, Vec<usize>) =
            crossing.iter().map(|flow| flow.index()).partition(|&flow| times.delivered[flow] != Flows::NONE);
        let most = |flow: usize| bytes_a_ps * end_ps.saturating_sub(times.started[flow]) as f64;
        let room = bytes_a_ps * end_ps as f64 - done.iter().map(|&flow| carried[flow]).sum::<f64>();
        let wanted: f64 = open.iter().map(|&flow| carried[flow].min(most(flow))).sum();
        let share = if wanted > room { room.max(0.0) / wanted } else { 1.0 };
        open.into_iter().for_each(|flow| carried[flow] = carried[flow].min(most(flow)) * share);
    }
    carried
}

fn link_table(
    scenario: &Scenario,
    work: &WorkloadPlan,
    links: &Decomposition<'_>,
    runs: &[Run],
    times: &Times,
    end_ps: u64,
) -> Table {
    let fabric = &work.fabric;
    let of_link: Vec<usize> = links.ways.resource_of_links().into_iter().map(|resource| resource as usize).collect();
    let carried = carried(scenario, work, links, times, end_ps);
    let sum = |flows: &Vec<FlowId>| flows.iter().map(|&flow| carried[flow.index()]).sum::<f64>();
    let bytes =
        links.crossing.iter().enumerate().map(|(resource, flows)| sum(flows) / links.ways.link(resource).1 as f64);
    let bytes: Vec<f64> = bytes.collect();
    let sent: Vec<f64> = of_link.iter().map(|&resource| bytes[resource]).collect();
    // Drawn, a flow's delay is another's: flows may be delivered before the link can have carried them all.
    let drawn = runs.iter().any(|run| matches!(run, Run::Like(_)));
    let most = if drawn { 1.0 } else { f64::INFINITY };
    let end = Time::from_ps(end_ps);
    let used = sent.iter().zip(&fabric.links).map(|(&sent, link)| run::utilisation(sent, link.rate, end).min(most));
    let used = used.collect();
    // The first is of links that nothing can wait at.
    let names = ["", "itself", "others"].map(str::to_owned).to_vec();
    let simulated = |&resource: &usize| match runs[resource] {
        Run::Idle => 0,
        Run::Own => 1,
        Run::Like(_) => 2,
    };
    let mut columns = link_columns(fabric);
    columns.extend([
        Column::new(
            "sent_bytes",
            "B",
            "bytes of the flows that cross it, headers counted; of flows that have not ended, what links have room for",
            Data::U64(sent.iter().map(|sent| (sent + 0.5) as u64).collect()),
        ),
        Column::new(
            "utilisation",
            "",
            "share of its capacity over the whole run; at most 1 where delays are drawn, since flows may then be \
             delivered before it could have carried them all",
            Data::F64(used),
        ),
        Column::new(
            "flows",
            "",
            "flows that cross it, or that its packets are spread over it and links beside it",
            Data::U64(of_link.iter().map(|&resource| links.crossing[resource].len() as u64).collect()),
        ),
        Column::new(
            "mean_wait_ps",
            "ps",
            "mean delay of its flows there, beyond their time alone",
            Data::F64(of_link.iter().map(|&resource| times.delay_ps[resource]).collect()),
        ),
        Column::new(
            "simulated",
            "",
            "itself, or others of its kind; empty where nothing can wait",
            Data::Names { index: of_link.iter().map(simulated).collect(), names },
        ),
    ]);
    Table { name: "links", columns }
}
