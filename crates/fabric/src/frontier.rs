use std::collections::{BTreeSet, VecDeque};

/// The length of a path: the links between groups that it crosses, and all its links. Paths are compared in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Length {
    /// Links between groups ([`Link::global`](crate::Link::global)).
    pub global: u32,
    /// All links.
    pub links: u32,
}

impl Length {
    /// Of no links.
    pub const ZERO: Length = Length { global: 0, links: 0 };
    /// Of no path.
    pub const NONE: Length = Length { global: u32::MAX, links: u32::MAX };

    /// The length with one more link in front; none where there is no path.
    #[inline]
    pub fn and(self, global: bool) -> Length {
        if self == Length::NONE {
            return self;
        }
        Length { global: self.global + u32::from(global), links: self.links + 1 }
    }
}

/// The nodes that a search for shortest paths has reached and not yet settled. It hands nodes out by length, and those
/// of equal length as they came, apart from links between groups: where there are none, it is the queue of a
/// breadth-first search.
#[derive(Default)]
pub(crate) struct Frontier {
    near: VecDeque<(Length, u32)>,
    /// Reached by a link between groups, and so farther than all of `near` when it came.
    beyond: BTreeSet<(Length, u32)>,
}

impl Frontier {
    /// A node is reached by a path of this length, whose first link joins groups or not.
    #[inline]
    pub fn push(&mut self, length: Length, node: u32, global: bool) {
        match global {
            false => self.near.push_back((length, node)),
            true => _ = self.beyond.insert((length, node)),
        }
    }

    /// The next node, by a path of this length. A node that has since been reached by a shorter one comes again.
    #[inline]
    pub fn pop(&mut self) -> Option<(Length, u32)> {
        match (self.near.front(), self.beyond.first()) {
            (Some(near), Some(beyond)) if beyond.0 < near.0 => self.beyond.pop_first(),
            (None, Some(_)) => self.beyond.pop_first(),
            _ => self.near.pop_front(),
        }
    }
}
