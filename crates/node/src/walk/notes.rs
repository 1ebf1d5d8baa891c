//! Which part of a state a value belongs to.

use std::ops::Range;

use super::Notes;

impl Notes {
    /// Whether they are of the same parts of a network.
    pub(super) fn has_parts_of(&self, other: &Notes) -> bool {
        let others = other.parts.iter().map(|of| (of.part, of.node));
        self.parts.iter().map(|of| (of.part, of.node)).eq(others)
    }

    /// Why positions of flows can't be moved by averages, if somebody has said so.
    pub fn not_by_averages(&self) -> Option<&'static str> {
        self.not_by_averages
    }

    /// How many values of links and nodes there are.
    pub fn of_network(&self) -> usize {
        let ends = self.parts.iter().skip(1).map(|next| next.same + next.moving);
        let ends = ends.chain([self.same.len() + self.moving.len()]);
        let parts = self.parts.iter().zip(ends).filter(|(of, _)| matches!(of.part, "link" | "switch" | "host"));
        parts.map(|(of, end)| end - of.same - of.moving).sum()
    }

    /// The values of a part that must be the same.
    pub(super) fn same_of(&self, part: usize) -> Range<usize> {
        self.parts[part].same..self.parts.get(part + 1).map_or(self.same.len(), |next| next.same)
    }

    /// The values of a part that move.
    pub(super) fn moving_of(&self, part: usize) -> Range<usize> {
        self.parts[part].moving..self.parts.get(part + 1).map_or(self.moving.len(), |next| next.moving)
    }
}
