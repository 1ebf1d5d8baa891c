//! What must hold after every run, whatever the scenario and the driver, as far as flows tell.

use serde::Serialize;

use crate::{Flows, Status};

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

/// No flow is delivered before it starts, or completed before it is delivered.
pub fn order(flows: &Flows) -> Finding {
    let known = |at: u64| at != Flows::NONE;
    let early = |flow: &usize| {
        let (start, delivered, completed) = (flows.started[*flow], flows.delivered[*flow], flows.completed[*flow]);
        known(delivered) && (!known(start) || delivered < start) || known(completed) && !known(delivered)
    };
    let wrong = (0..flows.status.len()).filter(early).count();
    Finding {
        name: "delivered after start, completed after delivery",
        ok: wrong == 0,
        detail: format!("{wrong} flows with their times out of order"),
    }
}

/// Each flow is reported as delivered at most once, and as completed at most once.
pub fn once(flows: &Flows) -> Finding {
    let twice = flows.said_twice;
    Finding {
        name: "reported once",
        ok: twice == 0,
        detail: format!("{twice} deliveries or completions reported twice"),
    }
}

/// A run that was not cut short has no unfinished flow.
pub fn ends(flows: &Flows, cut_short: bool) -> Finding {
    let open = |status: &&Status| matches!(**status, Status::Unfinished | Status::Delivered);
    let unfinished = flows.status.iter().filter(open).count();
    Finding {
        name: "every flow ended",
        ok: unfinished == 0 || cut_short,
        detail: match (unfinished, cut_short) {
            (0, _) => "all flows".to_owned(),
            (some, true) => {
                format!("{some} flows were unfinished when the run was ended; the column `reason` says why")
            }
            (some, false) => format!("{some} flows are unfinished, and no event is left that could finish them"),
        },
    }
}
