//! What happens to a part at set times: failures, new routes, samples.

use std::sync::Arc;

use fabric::{LinkNoise, Routes};
use run::HEAD_BYTES;
use units::{Duration, Rate, Time};

use crate::links::TIMELINE;
use crate::{Carrier, Driver, End, LinkTx, Probe, Upcoming, View};

/// What happens to a part at a set time.
#[derive(Clone)]
pub(crate) enum Change {
    LinkTx {
        link_tx: u32,
        up: bool,
    },
    LinkRx {
        link_rx: u32,
        up: bool,
    },
    /// From now on the link does this to packets.
    Noise {
        link_rx: u32,
        noise: LinkNoise,
    },
    /// From now on the link transmits at this rate.
    Rate {
        link_tx: u32,
        rate: Rate,
    },
    /// A link anywhere is slower than it should be for the first time: nothing is guaranteed from now on.
    NoGuarantee,
    Routes(Arc<Routes>),
    /// Some switches, by their places in this part, and the hosts below them have these tables from now on; everybody
    /// is told, so that audits of all parts know.
    RoutesOf {
        routes: Arc<Routes>,
        switches: Vec<u32>,
        hosts: Vec<u32>,
    },
}

/// Changes and samples to come.
pub(crate) struct Timeline {
    /// Latest first.
    pub changes: Vec<(Time, Change)>,
    /// Between samples; zero for none.
    pub interval: Duration,
    pub sample_at: Time,
    /// Samples that are kept, and how many that may be: an even number.
    pub samples: u64,
    samples_max: u64,
}

impl Timeline {
    pub fn new(interval: Duration, samples_max: u64) -> Timeline {
        let sample_at = if interval == Duration::ZERO { Time::MAX } else { Time::ZERO + interval };
        Timeline { changes: Vec::new(), interval, sample_at, samples: 0, samples_max: samples_max & !1 }
    }

    pub fn next_at(&self) -> Time {
        self.changes.last().map_or(Time::MAX, |change| change.0).min(self.sample_at)
    }
}

impl<C: Carrier, P: Probe> Driver<C, P> {
    /// Fails links for good that the scenario does not fail: `link_rxs` and `link_txs` are those of their ends that are
    /// in this part. From now on all switches forward by `routes`.
    #[cold]
    pub fn fail(&mut self, now: Time, link_rxs: &[u32], link_txs: &[u32], routes: &Arc<Routes>) {
        let link_rxs = link_rxs.iter().map(|&link_rx| Change::LinkRx { link_rx, up: false });
        let link_txs = link_txs.iter().map(|&link_tx| Change::LinkTx { link_tx, up: false });
        let around = [Change::NoGuarantee, Change::Routes(routes.clone())];
        for change in link_rxs.chain(link_txs).chain(around) {
            self.announce(now, &change);
            self.apply(now, change);
        }
    }

    #[cold]
    pub(crate) fn timeline(&mut self, now: Time) {
        while self.timeline.changes.last().is_some_and(|change| change.0 <= now) {
            let (_, change) = self.timeline.changes.pop().expect("just seen");
            self.announce(now, &change);
            self.apply(now, change);
        }
        if self.timeline.sample_at <= now {
            let view = View { switches: &self.switches, hosts: &self.hosts, pool: &self.links.pool };
            self.probe.on_sample(now, view);
            self.timeline.samples += 1;
            if self.timeline.samples == self.timeline.samples_max {
                self.timeline.samples /= 2;
                self.timeline.interval = self.timeline.interval * 2;
                self.probe.on_thin(self.timeline.interval);
            }
            self.timeline.sample_at = now + self.timeline.interval;
        }
        let at = self.timeline.next_at();
        self.links.agenda.set(TIMELINE, at);
    }

    /// Tells the probe what is about to change.
    pub(crate) fn announce(&mut self, now: Time, change: &Change) {
        let upcoming = match change {
            Change::Routes(routes) => Upcoming::Routes(routes),
            Change::RoutesOf { routes, .. } => Upcoming::RoutesOfSome(routes),
            Change::NoGuarantee => Upcoming::GuaranteeEnds,
            Change::LinkTx { link_tx, .. } => match self.links.link_txs[*link_tx as usize].from {
                End::Switch { index, .. } => Upcoming::LinkOf(index),
                End::Host { .. } => return,
            },
            Change::LinkRx { .. } | Change::Noise { .. } | Change::Rate { .. } => return,
        };
        let view = View { switches: &self.switches, hosts: &self.hosts, pool: &self.links.pool };
        self.probe.on_change(now, upcoming, view);
    }

    pub(crate) fn apply(&mut self, now: Time, change: Change) {
        match change {
            Change::Routes(routes) => {
                let (switches, hosts) = (0..self.switches.len() as u32, 0..self.hosts.len() as u32);
                self.set_routes(now, &routes, switches, hosts);
            }
            Change::RoutesOf { routes, switches, hosts } => self.set_routes(now, &routes, switches, hosts),
            Change::LinkTx { link_tx, up } => self.set_link_tx(now, link_tx, up),
            Change::LinkRx { link_rx, up } => self.links.set_up(link_rx, up),
            Change::Noise { link_rx, noise } => {
                let of = self.links.link_rxs[link_rx as usize].noise.as_mut();
                of.expect("a link that is ever noisy has it").set(noise);
            }
            Change::Rate { link_tx, rate } => self.set_rate(link_tx, rate),
            Change::NoGuarantee => {}
        }
    }

    /// Gives some nodes, by their places in this part, new tables: first the switches, then the hosts.
    fn set_routes(
        &mut self,
        now: Time,
        routes: &Arc<Routes>,
        switches: impl IntoIterator<Item = u32>,
        hosts: impl IntoIterator<Item = u32>,
    ) {
        for index in switches {
            self.switches[index as usize].switch.set_routes(now, routes.clone(), &mut self.links.pool);
            self.tell_losses(now, index);
            self.follow_up(now, index);
        }
        for index in hosts {
            self.hosts[index as usize].host.set_routes(now, routes);
            self.poll_host(now, index as usize, false);
        }
    }

    /// A link stops working, or works again: its sender sees it.
    fn set_link_tx(&mut self, now: Time, link_tx: u32, up: bool) {
        self.reset_repeater(link_tx);
        if !up {
            C::fail(&mut self.links, link_tx);
        }
        match self.links.link_txs[link_tx as usize].from {
            End::Switch { index, port } => {
                self.switches[index as usize].switch.set_up(now, port, up, &mut self.links.pool);
                self.tell_losses(now, index);
                self.follow_up(now, index);
            }
            End::Host { index, port } => {
                let slot = &mut self.hosts[index as usize];
                match &mut slot.ports {
                    None => slot.up = up,
                    Some(ports) => ports[port.index()].up = up,
                }
                slot.host.link_changed(now, port, up);
                self.poll_host(now, index as usize, false);
            }
        }
    }

    fn set_rate(&mut self, link_tx: u32, rate: Rate) {
        let LinkTx { from, head, .. } = &mut self.links.link_txs[link_tx as usize];
        *head = head.map(|_| rate.transmit(HEAD_BYTES));
        match *from {
            End::Switch { index, port } => self.switches[index as usize].switch.transmit_at(port, rate),
            End::Host { index, port } => {
                let slot = &mut self.hosts[index as usize];
                let per_byte = match &mut slot.ports {
                    None => &mut slot.per_byte,
                    Some(ports) => &mut ports[port.index()].per_byte,
                };
                *per_byte = per_byte.at(rate);
            }
        }
    }
}
