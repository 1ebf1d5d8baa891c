//! Which isolation queue serves which congestion root at which port: the multi-segment QueueID stack (appendix E.3).
//!
//! Two flat tables give every port a stack of its own. The Stack Content Table holds each port's free queue ids in a
//! segment; the Stack Pointer Table holds where in its segment each port's top is. Everything below the top is free. To
//! assign is to take the top and move the pointer one up, to unassign is to move it one down and write the id there. (E.3
//! has "increments" for both, which on unassigning would give the next id away instead of taking one back: a slip.)
//!
//! The IsAssigned Table and the QueueID Record Table are arrays over port and root in the prototype, because its pipeline
//! can't search. Here they are one map, in which a root is known exactly while its bit would be 1.

use std::hash::Hash;

use rustc_hash::FxHashMap;
use units::PortId;

/// The isolation queues of a switch's ports, assigned to roots; `R` names a root, or the two of a single-tier queue
/// (appendix C).
#[derive(Clone, Debug)]
pub struct QueueIds<R> {
    queues_per_port: u16,
    /// Stack Pointer Table: by port, how many of its ids are taken.
    top: Vec<u16>,
    /// Stack Content Table: a segment a port.
    content: Vec<u16>,
    /// IsAssigned Table and QueueID Record Table.
    assigned: FxHashMap<(PortId, R), u16>,
}

impl<R: Copy + Eq + Hash> QueueIds<R> {
    /// All queues free: ids `0..queues_per_port` at each port.
    pub fn new(ports: usize, queues_per_port: u16) -> QueueIds<R> {
        QueueIds {
            queues_per_port,
            top: vec![0; ports],
            content: (0..ports).flat_map(|_| 0..queues_per_port).collect(),
            assigned: FxHashMap::default(),
        }
    }

    /// The queue that serves a root at a port.
    #[inline]
    pub fn get(&self, port: PortId, root: R) -> Option<u16> {
        self.assigned.get(&(port, root)).copied()
    }

    /// The queue that serves a root at a port from now on: the one that it has, or else a free one. None when all are
    /// taken.
    pub fn assign(&mut self, port: PortId, root: R) -> Option<u16> {
        if let Some(id) = self.get(port, root) {
            return Some(id);
        }
        let top = self.top[port.index()];
        if top == self.queues_per_port {
            return None;
        }
        let id = self.content[self.slot(port, top)];
        self.top[port.index()] = top + 1;
        self.assigned.insert((port, root), id);
        Some(id)
    }

    /// Frees queue `id` of a port, which served a root. False, and nothing is changed, if it does not (any more).
    pub fn unassign(&mut self, port: PortId, root: R, id: u16) -> bool {
        if self.get(port, root) != Some(id) {
            return false;
        }
        self.assigned.remove(&(port, root));
        let top = self.top[port.index()] - 1;
        self.top[port.index()] = top;
        let slot = self.slot(port, top);
        self.content[slot] = id;
        true
    }

    /// How many queues of a port serve a root (Figure 7).
    #[inline]
    pub fn in_use(&self, port: PortId) -> u16 {
        self.top[port.index()]
    }

    fn slot(&self, port: PortId, depth: u16) -> usize {
        port.index() * usize::from(self.queues_per_port) + usize::from(depth)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    const QUEUES: u16 = 3;

    #[test]
    fn a_root_keeps_its_queue_and_the_last_one_freed_is_next() {
        let mut ids = QueueIds::new(2, QUEUES);
        let port = PortId(1);
        let given = ["a", "b", "a", "c", "d"].map(|root| ids.assign(port, root));
        assert_eq!(given, [Some(0), Some(1), Some(0), Some(2), None]);
        assert_eq!((ids.in_use(port), ids.in_use(PortId(0))), (3, 0));
        assert!(!ids.unassign(port, "b", 2), "b has queue 1");
        assert!(ids.unassign(port, "b", 1));
        assert!(!ids.unassign(port, "b", 1), "it has been freed");
        assert_eq!((ids.get(port, "b"), ids.assign(port, "d")), (None, Some(1)));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// The model: by port, which ids are taken and by whom.
        #[test]
        fn an_id_has_one_root_and_comes_back(steps in prop::collection::vec((0u32..3, 0u8..6, any::<bool>()), 0..200)) {
            let mut ids = QueueIds::new(3, QUEUES);
            let mut model: [BTreeMap<u16, u8>; 3] = Default::default();
            for (port, root, assigns) in steps {
                let taken = &mut model[port as usize];
                let port = PortId(port);
                let known = taken.iter().find(|&(_, &owner)| owner == root).map(|(&id, _)| id);
                prop_assert_eq!(ids.get(port, root), known);
                if !assigns {
                    let id = known.unwrap_or(0);
                    prop_assert_eq!(ids.unassign(port, root, id), known.is_some());
                    if known.is_some() {
                        taken.remove(&id);
                    }
                } else {
                    match ids.assign(port, root) {
                        Some(id) if known == Some(id) => {}
                        Some(id) => {
                            prop_assert!(known.is_none() && id < QUEUES);
                            prop_assert_eq!(taken.insert(id, root), None, "given twice");
                        }
                        None => prop_assert_eq!(taken.len(), usize::from(QUEUES)),
                    }
                }
                prop_assert_eq!(usize::from(ids.in_use(port)), taken.len());
            }
        }
    }
}
