//! The part of links that answers take: acknowledgements, grants, and what else transports send without payload.
//!
//! A piece has the flows of one direction of a link, and answers to the flows of the other direction take their part of
//! it. Parsimon makes the link as much slower as these answers take on average. The average here is over the time from
//! the first of these flows' start until the last would have ended alone, or as long as the link needs for their data,
//! if that is longer. How many answers there are is what the transport declares.

use run::{FlowInfo, Way, Ways, WorkloadPlan};
use scenario::Scenario;
use units::{FlowId, Rate};

use crate::piece::Hop;

/// More than half of a link is left to the data at any rate: beyond that, answers are traffic of their own and not a
/// correction.
const LEFT_MIN: f64 = 0.5;

/// The sum of the answers that cross a resource.
#[derive(Clone, Copy)]
struct Answers {
    bytes: f64,
    /// Bytes of the data that they answer.
    data_bytes: f64,
    from_ps: u64,
    until_ps: u64,
}

/// By resource, the rate of each of its links that answers leave to data.
pub(crate) fn rates_left(scenario: &Scenario, work: &WorkloadPlan, ways: &Ways<'_>, hops: &[Hop]) -> Vec<Rate> {
    let none = Answers { bytes: 0.0, data_bytes: 0.0, from_ps: u64::MAX, until_ps: 0 };
    let mut answers = vec![none; hops.len()];
    let mut way = Way::default();
    for (flow, id) in work.flows.iter().zip(0..) {
        let (bytes, data_bytes) = answers_to(scenario, work, &flow);
        // An answer's addresses are the other way round, and so a hash may send it over other links than the data.
        ways.find_way(FlowId(id), &FlowInfo { src: flow.dst, dst: flow.src, ..flow }, &mut way);
        for &(resource, share) in &way.passes {
            let sum = &mut answers[resource as usize];
            sum.bytes += bytes * share;
            sum.data_bytes += data_bytes * share;
            sum.from_ps = sum.from_ps.min(flow.start.ps());
            sum.until_ps = sum.until_ps.max(flow.start.ps().saturating_add(work.ideal_ps[id as usize]));
        }
    }
    let left = |(hop, answers): (&Hop, &Answers)| {
        let all = hop.rate.bps() as f64 * f64::from(hop.width);
        let back = hop.back_rate.bps() as f64 * f64::from(hop.width);
        let time = answers.until_ps.saturating_sub(answers.from_ps) as f64 * 1e-12;
        let time = f64::max(time, answers.data_bytes * 8.0 / back);
        let share = if answers.bytes == 0.0 { 0.0 } else { answers.bytes * 8.0 / time / all };
        // A link that carries no answers has its rate to the last bit.
        let left = hop.rate.bps() as f64 * f64::max(LEFT_MIN, 1.0 - share);
        if share == 0.0 { hop.rate } else { Rate::from_bps((left as u64).max(1)) }
    };
    hops.iter().zip(&answers).map(left).collect()
}

/// Bytes of a flow's answers, and of its data, headers included.
fn answers_to(scenario: &Scenario, work: &WorkloadPlan, flow: &FlowInfo) -> (f64, f64) {
    let transport = &work.transports[usize::from(flow.transport)];
    let control = transport.as_scheme().control_packets();
    let header = run::data_header_bytes(scenario, transport);
    let packets = flow.bytes.div_ceil(scenario.host.mtu.get() - header) as f64;
    let answers = (control.per_packet * packets + control.per_message) * scenario.host.header.get() as f64;
    (answers, flow.bytes as f64 + packets * header as f64)
}
