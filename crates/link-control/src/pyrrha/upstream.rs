//! Upstream neighbours, and the frames that they have been sent.

use node::link::LinkCx;
use units::PortId;

/// A set of ports, as bits.
#[derive(Clone, Debug, Default, PartialEq, Eq, node::State)]
pub struct PortSet(Vec<u64>);

impl PortSet {
    /// Whether it contains a port.
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

    /// Adds all ports of another set.
    pub fn add(&mut self, other: &PortSet) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        self.0.iter_mut().zip(&other.0).for_each(|(word, more)| *word |= more);
    }

    /// Removes a port.
    pub fn remove(&mut self, port: PortId) {
        if let Some(word) = self.0.get_mut(port.index() / 64) {
            *word &= !(1 << (port.index() % 64));
        }
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }

    /// All ports, lowest first.
    pub fn iter(&self) -> impl Iterator<Item = PortId> {
        (0..self.0.len() * 64).map(PortId::from).filter(|port| self.has(*port))
    }

    /// Removes and returns all ports, lowest first.
    pub fn drain(&mut self) -> impl Iterator<Item = PortId> + use<> {
        let words = std::mem::take(&mut self.0);
        (0..words.len() * 64).filter(move |bit| words[bit / 64] >> (bit % 64) & 1 == 1).map(PortId::from)
    }
}

impl FromIterator<PortId> for PortSet {
    fn from_iter<T: IntoIterator<Item = PortId>>(ports: T) -> PortSet {
        let mut set = PortSet::default();
        ports.into_iter().for_each(|port| set.insert(port));
        set
    }
}

/// The upstream neighbours of one queue of a congestion tree, by port.
#[derive(Clone, Debug, Default, PartialEq, Eq, node::State)]
pub struct Upstream {
    /// Ports whose packets the queue holds.
    pub held: PortSet,
    /// Ports whose own queue for the root is still assigned, as far as known: the queue's children in the tree. A queue
    /// without children is a leaf. Children belong to the queue and not to the switch: while routes change, a switch
    /// may be upstream of itself.
    pub children: PortSet,
    /// Children that know the root from a MERGE alone. They keep their queue for it until they hear of it again.
    pub merged: PortSet,
}

impl Upstream {
    /// The queue pauses what arrives by a port. Returns whether that is new; false if the link is down.
    pub fn hold(&mut self, cx: &LinkCx<'_>, port: PortId) -> bool {
        let new = !self.held.has(port) && cx.ports[port.index()].is_up();
        if new {
            self.held.insert(port);
            self.children.insert(port);
        }
        new
    }

    /// Forgets a port, whose link has gone down.
    pub fn forget(&mut self, port: PortId) {
        self.held.remove(port);
        self.children.remove(port);
        self.merged.remove(port);
    }
}
