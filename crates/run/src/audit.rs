//! Laws that hold after every run, for every scenario and driver, as far as flows tell.

use serde::Serialize;

use crate::{Flows, Status, Unlisted};

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
    let Unlisted { started, delivered, completed, .. } = flows.unlisted;
    let unlisted = delivered.saturating_sub(started) + completed.saturating_sub(delivered);
    let wrong = (0..flows.status.len()).filter(early).count() as u64 + unlisted;
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

/// How a run came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// By itself: everything has ended, or no event was left.
    Itself,
    /// At its horizon.
    TimeUp {
        /// Whether the scenario says when (`measure.end`).
        said: bool,
    },
    /// A signal or the caller stopped it.
    Stopped,
    /// Events were pending, and none of them could have ended anything.
    Stuck,
}

/// The events that were pending when a run ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Left {
    /// Whether a packet was on its way, or a node or a failure had a time to come. Samples do not count: they change
    /// nothing.
    pub events: bool,
    /// Whether a host had something to start by itself: a flow whose time had not come, or a rank that computed.
    pub starts: bool,
    /// Parts of jobs at hosts whose ranks had not done everything.
    pub job_parts: u64,
}

impl Left {
    /// Of two parts of a network.
    pub fn and(self, other: Left) -> Left {
        Left {
            events: self.events || other.events,
            starts: self.starts || other.starts,
            job_parts: self.job_parts.saturating_add(other.job_parts),
        }
    }
}

/// The name of the finding that nothing is left undone.
pub const EVERY_FLOW_ENDED: &str = "every flow ended";

/// Every unfinished flow and job could still have ended when the run was ended.
///
/// Pending events decide that, and not how the run ended: samples and timers go on when no flow can end any more, for
/// example when a message that a job waits for was given up. An end that the scenario sets cuts off what
/// was under way, and that is no fault. A job without such an end has all the time that there is.
pub fn ends(flows: &Flows, left: Left, ending: Ending) -> Finding {
    let open = |flow: &usize| matches!(flows.status[*flow], Status::Unfinished | Status::Delivered);
    let Unlisted { flows: unlisted, completed, failed, .. } = flows.unlisted;
    let unfinished = (0..flows.status.len()).filter(open).count() as u64 + unlisted.saturating_sub(completed + failed);
    let under_way = flows.unlisted.under_way() > 0
        || (0..flows.status.len()).filter(open).any(|flow| flows.started[flow] != Flows::NONE);
    let jobs = match left.job_parts {
        0 => String::new(),
        1 => "; ranks of a job on 1 host have not ended".to_owned(),
        some => format!("; ranks of jobs on {some} hosts have not ended"),
    };
    let all_ended = unfinished == 0 && left.job_parts == 0;
    let could_end = left.starts || (left.events && under_way);
    let cut_short = match ending {
        Ending::Itself | Ending::Stuck => false,
        Ending::TimeUp { said } => could_end && (said || left.job_parts == 0),
        Ending::Stopped => true,
    };
    let detail = if all_ended {
        "all flows".to_owned()
    } else if cut_short {
        format!("{unfinished} flows were unfinished when the run was ended; the column `reason` says why{jobs}")
    } else if ending == Ending::Stuck {
        format!("{unfinished} flows are unfinished, and nothing that was still to come would have finished them{jobs}")
    } else if could_end && ending != Ending::Itself {
        format!("{unfinished} flows are unfinished after the longest time that a job may take, a day{jobs}")
    } else {
        format!("{unfinished} flows are unfinished, and no event is left that could finish them{jobs}")
    };
    Finding { name: EVERY_FLOW_ENDED, ok: all_ended || cut_short, detail }
}

#[cfg(test)]
mod tests;
