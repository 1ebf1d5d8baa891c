//! What must hold after every run, whatever the scenario.

use engine::{Ended, Outcome};
use node::Overflow;
use scenario::{Flows, Plan, Status};
use serde::Serialize;

use crate::part::Part;

/// One thing that was checked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What.
    pub name: &'static str,
    /// Whether it holds.
    pub ok: bool,
    /// The numbers behind it.
    pub detail: String,
}

pub(crate) fn audit(plan: &Plan, parts: &[Part], flows: &Flows, outcome: Outcome) -> Vec<Finding> {
    vec![bytes(plan, parts), order(plan, flows), once(flows), ends(flows, outcome)]
}

/// Every byte that a host sent was received, lost for a reason that was counted, or is still inside.
fn bytes(plan: &Plan, parts: &[Part]) -> Finding {
    let hosts = || parts.iter().flat_map(|part| &part.hosts);
    let sent: u64 = hosts().map(|slot| slot.host.sent_bytes).sum();
    let received: u64 = hosts().map(|slot| slot.host.received_bytes).sum();
    let (mut lost, mut inside) = (hosts().map(|slot| slot.lost.1).sum::<u64>(), 0);
    for part in parts {
        for slot in &part.switches {
            lost += slot.switch.unroutable_bytes + slot.switch.staged_out.1;
            lost +=
                slot.switch.ports().iter().map(|port| port.stats.overflow_bytes + port.stats.dead_bytes).sum::<u64>();
            inside += slot.switch.used_bytes();
        }
        for pipe in &part.pipes {
            lost += pipe.lost_bytes;
            inside += pipe.packets.iter().map(|(_, id)| u64::from(part.pool.get(*id).packet.wire_bytes)).sum::<u64>();
        }
    }
    let trims = if plan.settings.overflow == Overflow::Trim { ", cut-off payload counted as lost" } else { "" };
    Finding {
        name: "bytes conserved",
        ok: sent == received + lost + inside,
        detail: format!("{sent} sent = {received} received + {lost} lost + {inside} inside{trims}"),
    }
}

/// No flow is delivered before it starts or faster than light and line rate allow.
fn order(plan: &Plan, flows: &Flows) -> Finding {
    let known = |at: u64| at != Flows::NONE;
    let early = |flow: &usize| {
        let (start, delivered, completed) = (flows.started[*flow], flows.delivered[*flow], flows.completed[*flow]);
        known(delivered) && (!known(start) || delivered < start) || known(completed) && !known(delivered)
    };
    let wrong = (0..plan.flows.len()).filter(early).count();
    Finding {
        name: "delivered after start, completed after delivery",
        ok: wrong == 0,
        detail: format!("{wrong} flows out of order"),
    }
}

/// Delivery and completion are said once a flow.
fn once(flows: &Flows) -> Finding {
    let twice = flows.said_twice;
    Finding { name: "said once", ok: twice == 0, detail: format!("{twice} events said twice") }
}

/// A run that was not cut short has no unfinished flow.
fn ends(flows: &Flows, outcome: Outcome) -> Finding {
    let open = |status: &&Status| matches!(**status, Status::Unfinished | Status::Delivered);
    let unfinished = flows.status.iter().filter(open).count();
    let cut_short = matches!(outcome.ended, Ended::Horizon | Ended::Interrupted);
    Finding {
        name: "every flow ended",
        ok: unfinished == 0 || cut_short,
        detail: match (unfinished, cut_short) {
            (0, _) => "all of them".to_owned(),
            (some, true) => format!("{some} were under way when the run was ended; see their reasons"),
            (some, false) => format!("{some} are unfinished though nothing was left to happen"),
        },
    }
}
