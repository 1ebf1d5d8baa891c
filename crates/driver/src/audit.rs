//! What must hold after every run, whatever the scenario.

use catalogue::LinkControl;
use run::{Finding, Flows, audit};

use crate::results::probes;
use crate::{Carrier, Driver, Probe, Summary, Tally, Whole, deadlock};

/// The findings about a run that is over. If it was `cut_short`, flows may be unfinished. `others` are the summaries of
/// parts that other processes ran.
pub fn findings<C: Carrier, P: Probe>(
    whole: &Whole<'_>,
    parts: &[Driver<C, P>],
    others: &[Summary<P>],
    flows: &Flows,
    cut_short: bool,
) -> Vec<Finding> {
    let tally =
        parts.iter().map(Tally::of).chain(others.iter().map(|other| other.tally)).fold(Tally::default(), Tally::and);
    let bytes = tally.finding(whole.plan);
    let mut findings = vec![bytes, audit::order(flows), audit::once(flows), audit::ends(flows, cut_short)];
    if whole.plan.scenario.flow_control != LinkControl::None {
        findings.push(deadlock::finding(whole.plan, parts, others));
    }
    findings.extend(P::findings(&probes(parts, others), whole));
    findings
}
