//! Who upstream has been told what.

use std::collections::BTreeMap;

use units::PortId;

/// Ports as bits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PortSet(Vec<u64>);

impl PortSet {
    /// Whether it has a port.
    #[inline]
    pub fn has(&self, port: PortId) -> bool {
        self.0.get(port.index() / 64).is_some_and(|word| word >> (port.index() % 64) & 1 == 1)
    }

    /// Adds a port.
    pub fn insert(&mut self, port: PortId) {
        let word = port.index() / 64;
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= 1 << (port.index() % 64);
    }

    /// Takes a port out.
    pub fn remove(&mut self, port: PortId) {
        if let Some(word) = self.0.get_mut(port.index() / 64) {
            *word &= !(1 << (port.index() % 64));
        }
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }

    /// Takes out all, lowest first.
    pub fn drain(&mut self) -> impl Iterator<Item = PortId> + use<> {
        let words = std::mem::take(&mut self.0);
        (0..words.len() * 64).filter(move |bit| words[bit / 64] >> (bit % 64) & 1 == 1).map(PortId::from)
    }
}

/// The nodes upstream that belong to a root's congestion tree, by the ports that lead to them.
///
/// Several queues of a switch may hold back what one neighbour sends for one root, since to some destinations there are several
/// ways on: it is told to pause by the first and to go on by the last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Upstream {
    /// How many queues hold back what comes by a port.
    holding: BTreeMap<PortId, u32>,
    /// Whose queue for the root is assigned still: the children in the tree.
    pub assigned: PortSet,
}

impl Upstream {
    /// Whether there is no child: a leaf of the tree.
    pub fn is_leaf(&self) -> bool {
        self.assigned.is_empty()
    }

    /// One queue more holds back what comes by a port. Whether it is the first.
    pub fn pause(&mut self, port: PortId) -> bool {
        let count = self.holding.entry(port).or_default();
        *count += 1;
        self.assigned.insert(port);
        *count == 1
    }

    /// One queue less does. Whether it was the last.
    pub fn resume(&mut self, port: PortId) -> bool {
        let Some(count) = self.holding.get_mut(&port) else { return false };
        *count -= 1;
        let last = *count == 0;
        if last {
            self.holding.remove(&port);
        }
        last
    }

    /// A child has no queue for the root any more. Said before it heard a PAUSE that is under way, it does not count.
    pub fn unassigned(&mut self, port: PortId) {
        if !self.holding.contains_key(&port) {
            self.assigned.remove(port);
        }
    }

    /// Forgets a port, whose link has gone down.
    pub fn forget(&mut self, port: PortId) {
        self.holding.remove(&port);
        self.assigned.remove(port);
    }
}
