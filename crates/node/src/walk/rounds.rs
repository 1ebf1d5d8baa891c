//! States in which messages of a job follow each other in rounds that are alike, but not the same.

use std::collections::BTreeSet;

use units::{Duration, FlowId, Time};

use super::recurrence::tallies;
use super::{Amounts, Kind, Notes};

impl Amounts {
    /// What moves in so many more rounds like the one between two notes, each of which takes so long: times and
    /// counters. What is under way stays as it is, under other names. `None` if other things are counted now.
    pub fn of_rounds(before: &Notes, after: &Notes, length: Duration, times: u64) -> Option<Amounts> {
        let places = |of: &Notes| of.parts.iter().map(|of| of.counts).collect::<Vec<_>>();
        let alike =
            before.has_parts_of(after) && places(before) == places(after) && before.counts.len() == after.counts.len();
        let more = |before: &[u64], after: &[u64]| {
            before.iter().zip(after).map(|(was, is)| Some(is.checked_sub(*was)? * times)).collect::<Option<Vec<_>>>()
        };
        Some(Amounts {
            time: length * times,
            appointments: Vec::new(),
            until: Time::MAX,
            flows: Default::default(),
            turns: Default::default(),
            counts: alike.then(|| more(&before.counts, &after.counts))??,
            totals: more(&before.totals, &after.totals)?,
            counts_of: Vec::new(),
            tallies: tallies(before, after).into_iter().map(|by| by * times).collect(),
        })
    }
}

impl Notes {
    /// Whether they are of the same parts of a network.
    pub(super) fn has_parts_of(&self, other: &Notes) -> bool {
        let others = other.parts.iter().map(|of| (of.part, of.node));
        self.parts.iter().map(|of| (of.part, of.node)).eq(others)
    }

    /// The first time that is set from outside, other than that at which a rank acts; [`Time::MAX`] for none.
    pub fn outside(&self) -> Time {
        let times = self.moving.iter().filter(|of| matches!(of.0, Kind::Outside));
        times.map(|of| Time::from_ps(of.1)).min().unwrap_or(Time::MAX)
    }

    /// The flows that anything names.
    pub fn flows(&self) -> BTreeSet<FlowId> {
        self.moving.iter().filter_map(flow_of).collect()
    }

    /// The flows that links and switches name, in packets or otherwise.
    pub fn flows_in_network(&self) -> BTreeSet<FlowId> {
        let parts = (0..self.parts.len()).filter(|&at| matches!(self.parts[at].part, "link" | "switch"));
        parts.flat_map(|at| &self.moving[self.moving_of(at)]).filter_map(flow_of).collect()
    }

    /// Why no flow can stand in another's place, if the number of one makes a difference.
    pub fn numbered(&self) -> Option<String> {
        self.numbered.as_ref().map(ToString::to_string)
    }

    /// Whether something goes by the order of flows' numbers.
    pub fn by_number(&self) -> bool {
        self.by_number
    }
}

fn flow_of(&(kind, value): &(Kind, u64)) -> Option<FlowId> {
    match kind {
        Kind::Flow => Some(FlowId(value as u32)),
        Kind::Sequence(flow, _) | Kind::Steps(flow) | Kind::Measured(flow, _) | Kind::Inherited(flow) => Some(flow),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
