//! What must hold after every simulated run, whatever the scenario.

use catalogue::LinkControl;
use driver::{Driver, Probe, Tally, Whole};
use engine::{Ended, Outcome};
use run::{Finding, Flows, audit};

use crate::deadlock;
use crate::part::Memory;

pub(crate) fn findings<P: Probe>(
    whole: &Whole<'_>,
    parts: &[Driver<Memory, P>],
    flows: &Flows,
    outcome: Outcome,
) -> Vec<Finding> {
    let cut_short = matches!(outcome.ended, Ended::Horizon | Ended::Interrupted);
    let bytes = tally(parts).finding(whole.plan);
    let mut findings = vec![bytes, audit::order(flows), audit::once(flows), audit::ends(flows, cut_short)];
    if whole.plan.scenario.flow_control != LinkControl::None {
        findings.push(deadlock::finding(whole.plan, parts));
    }
    let probes: Vec<&P> = parts.iter().map(|part| &part.probe).collect();
    findings.extend(P::findings(&probes, whole));
    findings
}

/// Where all bytes are.
fn tally<P: Probe>(parts: &[Driver<Memory, P>]) -> Tally {
    let mut tally = parts.iter().map(Tally::of).fold(Tally::default(), Tally::and);
    let noises = parts.iter().flat_map(|part| &part.links.pipes).filter_map(|pipe| pipe.receiver.as_deref());
    tally.lost += noises.map(|noise| noise.corrupted_bytes + noise.lossy_bytes).sum::<u64>();
    tally
}
