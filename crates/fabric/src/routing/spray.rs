//! Random packet spraying: at each switch one of the equal-cost ports, all equally likely.

use units::{LinkId, PortId, Stream, SwitchId};

use crate::{Fabric, Routes};

/// Spraying over the shortest paths of some routes.
#[derive(Clone, Copy)]
pub(super) struct Spray<'a> {
    pub(super) fabric: &'a Fabric,
    pub(super) routes: &'a Routes,
}

impl Spray<'_> {
    /// Draws a path to a reachable switch, one port for each switch on it.
    pub(super) fn draw(self, from: SwitchId, to: SwitchId, stream: &mut Stream, ports: &mut Vec<PortId>) {
        let column = self.column(to).expect("packets are sprayed towards switches with hosts");
        let mut at = from;
        while at != to {
            let &port = stream.choose(self.routes.next_in(at, column)).expect("the destination can be reached");
            ports.push(port);
            at = self.across(self.fabric.out_link(at, port));
        }
    }

    /// The loads of `mass` packets, nearer links first.
    pub(super) fn load(self, from: SwitchId, to: SwitchId, mass: f64, mut load: impl FnMut(LinkId, f64)) {
        let column = self.column(to).expect("packets are sprayed towards switches with hosts");
        let mut masses = vec![0.0; self.fabric.switches as usize];
        masses[from.index()] = mass;
        // In the order of first visits, all switches of one distance come before any of the next.
        let mut reached = vec![from];
        let mut next = 0;
        while let Some(&at) = reached.get(next) {
            next += 1;
            self.pass(at, column, masses[at.index()], |link, share| {
                load(link, share);
                let to = self.across(link);
                if masses[to.index()] == 0.0 {
                    reached.push(to);
                }
                masses[to.index()] += share;
            });
        }
    }

    /// The loads of `mass` packets from each of `sources` to one switch.
    pub(super) fn gather(self, sources: &[SwitchId], to: SwitchId, mass: f64, mut load: impl FnMut(LinkId, f64)) {
        let column = self.column(to).expect("packets are sprayed towards switches with hosts");
        let mut masses = vec![0.0; self.fabric.switches as usize];
        for source in sources {
            masses[source.index()] = mass;
        }
        let distance = |switch| self.routes.distance_in(switch, column);
        let mut far_first: Vec<SwitchId> =
            (0..self.fabric.switches).map(SwitchId).filter(|&switch| distance(switch).is_some()).collect();
        far_first.sort_by_key(|&switch| std::cmp::Reverse(distance(switch)));
        for at in far_first {
            self.pass(at, column, masses[at.index()], |link, share| {
                load(link, share);
                masses[self.across(link).index()] += share;
            });
        }
    }

    fn pass(self, at: SwitchId, column: usize, mass: f64, mut load: impl FnMut(LinkId, f64)) {
        let ports = self.routes.next_in(at, column);
        let share = mass / ports.len() as f64;
        for &port in ports {
            load(self.fabric.out_link(at, port), share);
        }
    }

    fn column(self, to: SwitchId) -> Option<usize> {
        self.routes.column_of(to)
    }

    fn across(self, link: LinkId) -> SwitchId {
        self.fabric.as_switch(self.fabric.link(link).to).expect("only the last hop leads to a host")
    }
}
