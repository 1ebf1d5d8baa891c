//! Skipping what repeats: see [`node::walk`]. A driver says what its whole state is, and moves it ahead.

use std::sync::Arc;

use node::Walk;
use node::walk::HeaderWalk;
use run::Plan;
use units::{Duration, Time, mix};

use crate::links::TIMELINE;
use crate::nodes::hash_what;
use crate::{Carrier, Driver, Outlet, Pipe, Probe};

/// What has happened in a part of a network for some time.
#[derive(Debug, Default)]
pub struct Log {
    /// Packets that have come to nodes, in order: the node (hosts by their places in the part, then switches), when,
    /// and what of the packet is in its node's digest.
    pub arrivals: Vec<(u32, Time, u64)>,
    /// When events took place, in order.
    pub events: Vec<Time>,
}

/// How headers of the transports of a run are gone over.
pub fn header_walks(plan: &Plan) -> Arc<[HeaderWalk]> {
    plan.transports.iter().map(|transport| transport.as_scheme().headers().walk()).collect()
}

impl<C: Carrier, P: Probe> Driver<C, P> {
    /// Goes over all of its state.
    pub fn walk(&mut self, walk: &mut Walk) {
        walk.part("agenda", 0);
        for source in 0..self.sources() {
            let mut at = self.links.agenda.get(source);
            if source == TIMELINE {
                // Samples change nothing: who moves the state ahead asks for them ([`Driver::next_sample_at`]).
                walk.outside(self.timeline.changes.last().map_or(Time::MAX, |change| change.0));
            } else {
                let before = at;
                walk.time(&mut at);
                if at != before {
                    self.links.agenda.set(source, at);
                }
            }
        }
        walk.refuse_if(self.retries, "links send damaged packets again (link.llr)");
        let links = &mut self.links;
        for (index, pipe) in (0..).zip(&mut links.pipes) {
            walk.part("link", index);
            let Pipe { packets, up, lost_packets, lost_bytes, noise, .. } = pipe;
            walk.refuse_if(noise.is_some(), "links damage or lose packets at random");
            walk.same(*up);
            packets.walk(walk, &mut links.pool);
            walk.count(lost_packets);
            walk.count(lost_bytes);
        }
        for Outlet { delay, head, .. } in &links.outlets {
            walk.same((*delay, *head));
        }
        for slot in &mut self.switches {
            walk.part("switch", slot.id);
            slot.switch.walk(walk, &mut self.links.pool);
        }
        for slot in &mut self.hosts {
            walk.part("host", slot.host.id().0);
            walk.expired(&mut slot.free_at);
            walk.same((slot.up, slot.ports.is_some()));
            walk.count(&mut slot.lost.0);
            walk.count(&mut slot.lost.1);
            slot.host.walk(walk);
        }
        walk.part("totals", 0);
        walk.counts([&mut self.packet_hops, &mut self.delivered_bytes, &mut self.events]);
        self.probe.walk(walk);
    }

    /// When the next sample is taken; [`Time::MAX`] for never.
    pub fn next_sample_at(&self) -> Time {
        self.timeline.sample_at
    }

    /// Takes the sample that is due at `now`. Nothing else is: what was due before has been moved behind it.
    pub fn sample(&mut self, now: Time) {
        self.timeline(now);
    }

    /// Tells the digests of all nodes that so much time was skipped, in which nobody knows what came.
    pub fn mark_digests(&mut self, time: Duration) {
        let hosts = self.hosts.iter_mut().map(|slot| &mut slot.host.digest);
        let switches = self.switches.iter_mut().map(|slot| &mut slot.digest);
        hosts.chain(switches).for_each(|digest| *digest = mix(*digest, time.ps()));
    }

    /// Takes what has been logged of a period so many times into the digests of nodes, as if it had happened again. The
    /// first of these times is `since` after the end of the one that was logged.
    pub fn repeat_digests(&mut self, log: &Log, since: Duration, period: Duration, times: u64) {
        let hosts = self.hosts.len();
        let mut by_node = vec![Vec::new(); hosts + self.switches.len()];
        for &(node, at, what) in &log.arrivals {
            by_node[node as usize].push((at.ps(), what));
        }
        for (node, arrivals) in by_node.iter().enumerate().filter(|(_, arrivals)| !arrivals.is_empty()) {
            let digest = match node.checked_sub(hosts) {
                None => &mut self.hosts[node].host.digest,
                Some(switch) => &mut self.switches[switch].digest,
            };
            let mut shift = since.ps();
            for _ in 0..times {
                shift += period.ps();
                for &(at, what) in arrivals {
                    *digest = hash_what(*digest, Time::from_ps(at + shift), what);
                }
            }
        }
    }
}
