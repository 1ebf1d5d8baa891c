//! What must hold after every simulated run, whatever the scenario.

use catalogue::LinkControl;
use engine::{Ended, Outcome};
use node::Overflow;
use node::packet::flags;
use run::{Finding, Flows, Plan, audit};

use crate::congestion;
use crate::deadlock;
use crate::guarantee;
use crate::part::Part;

pub(crate) fn findings(plan: &Plan, parts: &[Part], flows: &Flows, outcome: Outcome) -> Vec<Finding> {
    let cut_short = matches!(outcome.ended, Ended::Horizon | Ended::Interrupted);
    let mut findings = vec![bytes(plan, parts), audit::order(flows), audit::once(flows), audit::ends(flows, cut_short)];
    if plan.scenario.flow_control != LinkControl::None {
        findings.push(deadlock::finding(plan, parts));
    }
    findings.extend(congestion::findings(plan, parts));
    findings.extend(guarantee::findings(plan, parts));
    findings
}

/// Every byte that a host, or a transport's part of a switch, sent was received, lost for a reason that was counted, or is still inside.
fn bytes(plan: &Plan, parts: &[Part]) -> Finding {
    let hosts = || parts.iter().flat_map(|part| &part.hosts);
    let agents = || parts.iter().flat_map(|part| &part.switches).map(|slot| slot.switch.agents_bytes());
    let sent: u64 = hosts().map(|slot| slot.host.sent_bytes).chain(agents().map(|bytes| bytes.0)).sum();
    let received: u64 = hosts().map(|slot| slot.host.received_bytes).chain(agents().map(|bytes| bytes.1)).sum();
    let (mut lost, mut inside) = (hosts().map(|slot| slot.lost.1).sum::<u64>(), 0);
    for part in parts {
        for slot in &part.switches {
            lost += slot.switch.unroutable_bytes + slot.switch.staged_out.1;
            lost += slot
                .switch
                .ports()
                .iter()
                .map(|port| port.stats.overflow_bytes + port.stats.dead_bytes + port.stats.expired_bytes)
                .sum::<u64>();
            inside += slot.switch.used_bytes();
        }
        for pipe in &part.pipes {
            lost +=
                pipe.lost_bytes + pipe.noise.as_deref().map_or(0, |noise| noise.corrupted_bytes + noise.lossy_bytes);
            let packets = pipe.packets.iter(&part.pool).map(|id| &part.pool.get(id).packet);
            inside += packets
                .filter(|packet| !packet.has(flags::LINK_FRAME))
                .map(|packet| u64::from(packet.wire_bytes))
                .sum::<u64>();
        }
    }
    let trims = if plan.settings.overflow == Overflow::Trim { ", cut-off payload counted as lost" } else { "" };
    Finding {
        name: "bytes conserved",
        ok: sent == received + lost + inside,
        detail: format!("{sent} sent = {received} received + {lost} lost + {inside} inside{trims}"),
    }
}
