//! From a plan to drivers: one for each part of the network.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use catalogue::{LinkControl, Transport};
use engine::Agenda;
use fabric::{Change as FabricChange, Epoch, Fabric, Failures, LinkNoise, RerouteScope, Tier};
use node::pool::{Flight, Pool};
use run::{HEAD_BYTES, Plan};
use units::{Duration, HostId, LinkId, NodeId, PerByte, Rate, Stream, Time};

use crate::change::{Change, Timeline};
use crate::jitter::Jitter;
use crate::pulse::Pulse;
use crate::ties::DUE;
use crate::{Carrier, Cut, Driver, HostPort, HostSlot, LinkRx, LinkTx, Links, Noise, Probe, Repeater, SwitchSlot};

/// Builds a driver for each part, in its state before the first event. `carrier` and `probe` are called once for each
/// part, `sender` and `receiver` once for each link: they make what the carrier keeps at the link's two ends. Where the
/// cut takes a switch apart, each of its parts has all ports, but some in name only: `sender` is called with `None` for
/// these.
pub fn drivers<C: Carrier, P: Probe>(
    plan: &Plan,
    cut: &Cut,
    mut carrier: impl FnMut() -> C,
    mut sender: impl FnMut(Option<LinkId>) -> C::Sender,
    mut receiver: impl FnMut(LinkId) -> C::Receiver,
    mut probe: impl FnMut() -> P,
) -> Vec<Driver<C, P>> {
    let fabric = &plan.fabric;
    let mut built: Vec<_> = (0..cut.parts()).map(|_| empty(plan, carrier(), probe())).collect();
    for node in (0..fabric.nodes()).map(NodeId) {
        for part in cut.parts_of(node) {
            let driver = &mut built[part];
            let first_link_tx = driver.links.link_txs.len() as u32;
            for &link in &fabric.ports[node.index()] {
                let begins = cut.sender_of(link) == part;
                debug_assert!(!begins || driver.links.link_txs.len() as u32 == cut.link_tx_of(link));
                driver.links.link_txs.push(link_tx(plan, cut, part, link, sender(begins.then_some(link))));
            }
            match fabric.as_host(node) {
                Some(host) => {
                    driver.hosts.push(host_slot(plan, host, first_link_tx));
                    driver.pulse.add_host();
                }
                None => {
                    let id = fabric.as_switch(node).expect("a node is a host or a switch");
                    let mut switch = plan.switch(id);
                    if driver.wants.drops {
                        switch.note_losses();
                    }
                    switch.lost_flows = plan.lost_flows();
                    if !driver.retries && !driver.watches_ready_ports {
                        switch.let_through();
                    }
                    driver.switches.push(SwitchSlot { id: id.0, switch, first_link_tx, digest: 0 });
                }
            }
        }
    }
    let noisy: BTreeSet<LinkId> = plan.changes.iter().flat_map(|epoch| noisy_links(&epoch.change)).collect();
    let bears_lost_frames = plan.scenario.flow_control.as_scheme().is_some_and(|control| control.bears_lost_frames());
    let transports: Arc<[Transport]> = if noisy.is_empty() { Arc::new([]) } else { plan.transports.as_slice().into() };
    for id in fabric.ports.iter().flatten().map(|&back| Fabric::reverse(back)) {
        let noise = || {
            let noise = Noise::new(plan.scenario.seed, id.index() as u64, transports.clone());
            Box::new(noise.hitting_frames(bears_lost_frames))
        };
        let (part, link) = (cut.receiver_of(id), fabric.link(id));
        let link_rxs = &mut built[part].links.link_rxs;
        debug_assert_eq!(link_rxs.len() as u32, cut.link_rx_of(id));
        link_rxs.push(LinkRx {
            link: id.0,
            packets: Flight::default(),
            to: cut.end(fabric, part, link.to, link.to_port),
            last_at_node: 0,
            credit: first_credit(plan, id),
            jitters: plan.jitter(id) > Duration::ZERO,
            up: true,
            lost_packets: 0,
            lost_bytes: 0,
            lost_flows: plan.lost_flows(),
            noise: noisy.contains(&id).then(noise),
            acceptor: plan.scenario.link.llr.as_ref().map(|_| Box::default()),
            receiver: receiver(id),
        });
    }
    for (part, (driver, changes)) in built.iter_mut().zip(Changes::of(plan, cut)).enumerate() {
        driver.damages |= driver.links.link_rxs.iter().any(|link_rx| link_rx.noise.is_some());
        driver.timeline.changes = changes;
        driver.links.find_siblings();
        driver.links.agenda = Agenda::new(&driver.groups(plan, cut, part));
        driver.prime();
    }
    built
}

/// The credit with which a link begins ([`crate::ties`]): drawn, so that at a node's first tie each link is as likely
/// to go first. In an ideal network no link has any.
fn first_credit(plan: &Plan, link: LinkId) -> i64 {
    let drawn = || Stream::new(plan.scenario.seed, u64::from(link.0), "first turn").below(DUE.unsigned_abs());
    plan.scenario.never_recurs().map_or(0, |_| drawn() as i64)
}

/// The links that are noisy from an epoch on.
fn noisy_links(change: &FabricChange) -> impl Iterator<Item = LinkId> {
    let links = match change {
        FabricChange::Noisy(links) => links.as_slice(),
        FabricChange::Dead(_) | FabricChange::Slow(_) | FabricChange::Reroute(..) => &[],
    };
    links.iter().map(|of| of.0)
}

/// A driver without nodes and links.
fn empty<C: Carrier, P: Probe>(plan: &Plan, carrier: C, probe: P) -> Driver<C, P> {
    let wants = probe.wants();
    let flow_controlled = plan.scenario.flow_control != LinkControl::None;
    let retries = plan.scenario.link.llr.is_some();
    let interval = if wants.samples { plan.scenario.measure.interval } else { Duration::ZERO };
    Driver {
        links: Links {
            agenda: Agenda::new(&[]),
            pool: Pool::default(),
            link_rxs: Vec::new(),
            link_txs: Vec::new(),
            carrier,
        },
        switches: Vec::new(),
        hosts: Vec::new(),
        watches_ready_ports: flow_controlled || wants.enqueues || plan.has_agents(),
        retries,
        damages: retries,
        watches_launches: retries || wants.departures,
        watches_switch_arrivals: wants.frames || wants.changes,
        flow_controlled,
        keeps_time: plan.scenario.flow_control.as_scheme().is_some_and(|control| control.keeps_time()),
        wants,
        came: Vec::new(),
        probe,
        reach: plan.lookahead,
        packet_hops: 0,
        delivered_bytes: 0,
        events: 0,
        log: None,
        heard: None,
        stirred: false,
        strayed: false,
        asleep: Vec::new(),
        tied: Vec::new(),
        tied_served: 0,
        pulse: Pulse::new(plan),
        timeline: Timeline::new(interval, plan.scenario.measure.rows_max / plan.sample_rows()),
    }
}

fn per_byte(plan: &Plan, link: LinkId) -> PerByte {
    let link = plan.fabric.link(link);
    let per_byte = link.rate.per_byte().by_clock(link.rate, plan.clock_ppb(link.from));
    per_byte.in_steps_of(plan.scenario.transmission_step)
}

fn host_slot(plan: &Plan, host: HostId, link_tx: u32) -> HostSlot {
    let uplinks = plan.fabric.uplinks(host);
    let port = |&link: &LinkId| HostPort {
        per_byte: per_byte(plan, link),
        free_at: Time::ZERO,
        up: true,
        sent: (0, 0),
        lost: (0, 0),
        sent_frames: 0,
    };
    HostSlot {
        host: plan.host(host),
        link_tx,
        per_byte: per_byte(plan, plan.fabric.uplink(host)),
        free_at: Time::ZERO,
        up: true,
        lost: (0, 0),
        sent_frames: 0,
        ports: (uplinks.len() > 1).then(|| uplinks.iter().map(port).collect()),
    }
}

fn link_tx<S>(plan: &Plan, cut: &Cut, part: usize, id: LinkId, sender: S) -> LinkTx<S> {
    let link = plan.fabric.link(id);
    let at_host = matches!(link.tier, Tier::FromHost | Tier::ToHost);
    let host_delay = if at_host { plan.scenario.host.delay } else { Duration::ZERO };
    let cut_through = plan.scenario.switch.cut_through && link.tier != Tier::ToHost;
    LinkTx {
        sender,
        delay: plan.fabric.delay(id) + host_delay,
        from: cut.end(&plan.fabric, part, link.from, link.from_port),
        begins: cut.sender_of(id) == part,
        head: cut_through.then(|| link.rate.transmit(HEAD_BYTES)),
        jitter: Jitter::new(plan, id),
        repeater: plan.scenario.link.llr.as_ref().map(|llr| Box::new(Repeater::new(plan, llr, id))),
    }
}

/// The failures, repairs and new routes that each part applies.
struct Changes<'a> {
    fabric: &'a Fabric,
    cut: &'a Cut,
    /// By part, earliest first.
    of_parts: Vec<Vec<(Time, Change)>>,
    /// The state of links and switches at the current epoch.
    dead: Failures,
    noise: BTreeMap<LinkId, LinkNoise>,
    rates: BTreeMap<LinkId, Rate>,
    guaranteed: bool,
}

impl Changes<'_> {
    /// By part, latest first.
    fn of(plan: &Plan, cut: &Cut) -> Vec<Vec<(Time, Change)>> {
        let mut changes = Changes {
            fabric: &plan.fabric,
            cut,
            of_parts: (0..cut.parts()).map(|_| Vec::new()).collect(),
            dead: Failures::default(),
            noise: BTreeMap::new(),
            rates: BTreeMap::new(),
            guaranteed: true,
        };
        for Epoch { at, change } in &plan.changes {
            match change {
                FabricChange::Reroute(routes, RerouteScope::Switches(switches)) => {
                    for (part, (switches, hosts)) in changes.told(switches).into_iter().enumerate() {
                        let routes = routes.clone();
                        changes.of_parts[part].push((*at, Change::RoutesOf { routes, switches, hosts }));
                    }
                }
                FabricChange::Reroute(routes, RerouteScope::All) => {
                    changes.everywhere(*at, &Change::Routes(routes.clone()))
                }
                FabricChange::Noisy(links) => changes.noisy(*at, links),
                FabricChange::Slow(links) => changes.slow(*at, links),
                FabricChange::Dead(dead) => changes.dead(*at, dead),
            }
        }
        changes.of_parts.iter_mut().for_each(|changes| changes.reverse());
        changes.of_parts
    }

    fn everywhere(&mut self, at: Time, change: &Change) {
        self.of_parts.iter_mut().for_each(|changes| changes.push((at, change.clone())));
    }

    fn at_sender(&mut self, at: Time, link: LinkId, change: impl FnOnce(u32) -> Change) {
        let part = self.cut.sender_of(link);
        self.of_parts[part].push((at, change(self.cut.link_tx_of(link))));
    }

    fn at_receiver(&mut self, at: Time, link: LinkId, change: impl FnOnce(u32) -> Change) {
        let part = self.cut.receiver_of(link);
        self.of_parts[part].push((at, change(self.cut.link_rx_of(link))));
    }

    /// By part, the places of these switches and of the hosts below them.
    fn told(&self, switches: &[units::SwitchId]) -> Vec<(Vec<u32>, Vec<u32>)> {
        let mut told = vec![(Vec::new(), Vec::new()); self.cut.parts()];
        for &switch in switches {
            let node = self.fabric.switch_node(switch);
            let part = self.cut.part_of(node);
            told[part].0.push(self.cut.place_in(part, node));
        }
        let below = |&host: &HostId| switches.contains(&self.fabric.rack_of(host));
        for host in (0..self.fabric.hosts).map(HostId).filter(below) {
            let node = self.fabric.host_node(host);
            let part = self.cut.part_of(node);
            told[part].1.push(self.cut.place_in(part, node));
        }
        told
    }

    fn noisy(&mut self, at: Time, links: &[(LinkId, LinkNoise)]) {
        let quiet = self.noise.keys().map(|&link| (link, LinkNoise::default()));
        let now: BTreeMap<LinkId, LinkNoise> = quiet.chain(links.iter().copied()).collect();
        let before = std::mem::replace(&mut self.noise, now.clone());
        for (&link, &noise) in now.iter().filter(|(link, now)| before.get(link) != Some(now)) {
            self.at_receiver(at, link, |link_rx| Change::Noise { link_rx, noise });
        }
    }

    fn slow(&mut self, at: Time, links: &[(LinkId, Rate)]) {
        if std::mem::take(&mut self.guaranteed) {
            self.everywhere(at, &Change::NoGuarantee);
        }
        let whole = self.rates.keys().map(|&link| (link, self.fabric.link(link).rate));
        let now: BTreeMap<LinkId, Rate> = whole.chain(links.iter().copied()).collect();
        let before = std::mem::replace(&mut self.rates, now.clone());
        for (&link, &rate) in now.iter().filter(|(link, now)| before.get(link) != Some(now)) {
            self.at_sender(at, link, |link_tx| Change::Rate { link_tx, rate });
        }
    }

    fn dead(&mut self, at: Time, now: &Failures) {
        let before = std::mem::replace(&mut self.dead, now.clone());
        for link in touched(self.fabric, &before, now) {
            let up = !now.kills(self.fabric, link);
            if up == before.kills(self.fabric, link) {
                self.at_sender(at, link, |link_tx| Change::LinkTx { link_tx, up });
                self.at_receiver(at, link, |link_rx| Change::LinkRx { link_rx, up });
            }
        }
    }
}

/// The links, in order, that may be dead in one of two states and not in the other.
fn touched(fabric: &Fabric, before: &Failures, now: &Failures) -> BTreeSet<LinkId> {
    let switches = before.switches.symmetric_difference(&now.switches);
    let ports = switches.flat_map(|&switch| &fabric.ports[fabric.switch_node(switch).index()]);
    let both = ports.flat_map(|&link| [link, Fabric::reverse(link)]);
    before.links.symmetric_difference(&now.links).copied().chain(both).collect()
}
