//! What must hold after every run, whatever the scenario.

use catalogue::LinkControl;
use run::audit::{Ending, Left};
use run::{Finding, Flows, audit};
use units::Time;

use crate::results::probes;
use crate::{Carrier, Driver, Movement, Probe, Summary, Tally, Whole, deadlock};

/// The findings about a run that is over. `ending` says how it came to that. `others` are the summaries of parts that
/// other processes ran.
pub fn findings<C: Carrier, P: Probe>(
    whole: &Whole<'_>,
    parts: &[Driver<C, P>],
    others: &[Summary<P>],
    flows: &Flows,
    ending: Ending,
    movement: &Movement,
) -> Vec<Finding> {
    let tally =
        parts.iter().map(Tally::of).chain(others.iter().map(|other| other.tally)).fold(Tally::default(), Tally::and);
    let bytes = tally.finding(whole.plan);
    let left = parts.iter().map(left).chain(others.iter().map(|other| other.left)).fold(Left::default(), Left::and);
    let mut findings = vec![bytes, audit::order(flows), audit::once(flows), audit::ends(flows, left, ending)];
    findings.push(movement.finding());
    if whole.plan.scenario.flow_control != LinkControl::None {
        findings.push(deadlock::finding(whole.plan, parts, others));
    }
    findings.extend(P::findings(&probes(parts, others), whole));
    findings
}

/// The events that a part still has pending.
pub(crate) fn left<C: Carrier, P: Probe>(part: &Driver<C, P>) -> Left {
    let Driver { links, switches, hosts, timeline, .. } = part;
    // Asked of nodes: the agenda also has times of deadlines that were put off since.
    let events = links.link_rxs.iter().any(|link_rx| link_rx.packets.next_at() < Time::MAX)
        || (0..links.link_txs.len() as u32).any(|link_tx| links.agenda.get(links.transmit_ready(link_tx)) < Time::MAX)
        || hosts.iter().any(|slot| slot.host.next_at() < Time::MAX)
        || switches.iter().any(|slot| slot.switch.next_at() < Time::MAX)
        || !timeline.changes.is_empty();
    Left {
        events,
        starts: hosts.iter().any(|slot| slot.host.starts_at() < Time::MAX),
        job_parts: hosts.iter().filter_map(|slot| slot.host.jobs()).map(|jobs| jobs.parts_left()).sum(),
    }
}
