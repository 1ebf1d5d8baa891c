//! Some of a part's hosts and links, which are skipped apart from the others as long as they send to each other only.
//!
//! They sleep: their events leave the agenda, and everything about them stays as it is until they are woken. What does
//! not belong to them goes on meanwhile. If an event of theirs comes up nevertheless, somebody else has sent them
//! something: they have [strayed](Driver::strayed).

use std::collections::{BTreeMap, BTreeSet};
use std::mem::take;

use catalogue::LinkControl;
use fabric::Fabric;
use node::Walk;
use run::{Host, Plan};
use units::{HostId, LinkId, NodeId, Time, mix};

use crate::islands::{links_onward, ports_are_plain};
use crate::repeat::{visit_outlet, visit_pipe};
use crate::{Arrival, Carrier, Cut, Driver, End, Probe};

/// Some of a part's hosts and links, by their places in it.
#[derive(Debug, Default)]
pub struct Members {
    hosts: Vec<usize>,
    /// Receiving ends.
    link_rxs: Vec<usize>,
    /// Sending ends.
    link_txs: Vec<u32>,
}

impl Members {
    /// By part that has some: these links, and the hosts at their ends.
    pub fn of(plan: &Plan, cut: &Cut, links: &[LinkId]) -> Vec<(usize, Members)> {
        let mut of_part: BTreeMap<usize, Members> = BTreeMap::new();
        for &link in links {
            of_part.entry(cut.receiver_of(link)).or_default().link_rxs.push(cut.link_rx_of(link) as usize);
            of_part.entry(cut.sender_of(link)).or_default().link_txs.push(cut.link_tx_of(link));
        }
        let nodes = links.iter().map(|&link| plan.fabric.link(link).from);
        let mut hosts: Vec<NodeId> = nodes.filter(|&node| plan.fabric.as_host(node).is_some()).collect();
        hosts.sort_unstable();
        hosts.dedup();
        for host in hosts {
            let part = cut.part_of(host);
            of_part.entry(part).or_default().hosts.push(cut.place_in(part, host) as usize);
        }
        of_part.values_mut().for_each(|members| members.hosts.sort_unstable());
        of_part.into_iter().collect()
    }

    /// Whether packets change nothing at ports of a switch that are not on their way, but for the memory that is left.
    pub fn may_sleep(plan: &Plan) -> bool {
        let scenario = &plan.scenario;
        matches!(scenario.flow_control, LinkControl::None | LinkControl::Pfc(_))
            && scenario.link.llr.is_none()
            && ports_are_plain(plan)
    }
}

/// The links on all shortest paths between two hosts, both ways, and those back.
pub fn links_between(plan: &Plan, one: HostId, other: HostId) -> Vec<LinkId> {
    let fabric = &plan.fabric;
    let mut links = BTreeSet::new();
    for (from, to) in [(one, other), (other, one)] {
        let mut pending = fabric.uplinks(from).to_vec();
        while let Some(link) = pending.pop() {
            let more = links.insert(link) | links.insert(Fabric::reverse(link));
            let Some(switch) = fabric.as_switch(fabric.link(link).to).filter(|_| more) else { continue };
            pending.extend(links_onward(plan, switch, to));
        }
    }
    links.into_iter().collect()
}

impl<C: Carrier, P: Probe> Driver<C, P> {
    /// The packets that have come to these hosts since so many were heard.
    pub fn heard_by(&self, members: &Members, from: usize) -> impl Iterator<Item = &Arrival> {
        let mut is_member = vec![false; self.hosts.len()];
        members.hosts.iter().for_each(|&host| is_member[host] = true);
        let heard = self.heard.as_deref().unwrap_or_default();
        heard[from..].iter().filter(move |arrival| is_member[arrival.node as usize])
    }

    /// The hosts among them, in the order of their places.
    pub fn hosts_of(&self, members: &Members) -> impl Iterator<Item = &Host> + Clone {
        members.hosts.iter().map(|&host| &self.hosts[host].host)
    }

    /// The same, to change them.
    pub fn hosts_of_mut(&mut self, members: &Members) -> impl Iterator<Item = &mut Host> {
        let mut places = members.hosts.iter().peekable();
        let hosts = self.hosts.iter_mut().enumerate();
        hosts.filter_map(move |(place, slot)| places.next_if_eq(&&place).map(|_| &mut slot.host))
    }

    /// One of these hosts by itself, without links, if it is here.
    pub fn member(&self, members: &Members, host: HostId) -> Option<Members> {
        let place = members.hosts.iter().find(|&&place| self.hosts[place].host.id() == host)?;
        Some(Members { hosts: vec![*place], ..Members::default() })
    }

    fn sources_of(&self, members: &Members) -> Vec<usize> {
        let arrivals = members.link_rxs.iter().map(|&link_rx| self.links.arrival(link_rx));
        let transmissions = members.link_txs.iter().map(|&link_tx| self.links.transmit_ready(link_tx));
        let hosts = members.hosts.iter().map(|&host| self.deadline(host));
        arrivals.chain(transmissions).chain(hosts).collect()
    }

    /// Nothing of these happens until they are woken. Returns when it would have.
    pub fn put_to_sleep(&mut self, members: &Members) -> Vec<Time> {
        let sources = self.sources_of(members);
        self.asleep.resize(self.sources(), false);
        let mut sleep = |source: usize| {
            self.asleep[source] = true;
            let at = self.links.agenda.get(source);
            self.links.agenda.set(source, Time::MAX);
            at
        };
        sources.into_iter().map(&mut sleep).collect()
    }

    /// They go on where they were.
    pub fn wake_up(&mut self, members: &Members, times: &[Time]) {
        for (source, &at) in self.sources_of(members).into_iter().zip(times) {
            self.asleep[source] = false;
            self.links.agenda.set(source, at);
        }
    }

    /// Visits the state of these nodes and links, as [`Driver::visit`] visits all state. The state that a switch keeps
    /// for all of its ports is left out.
    pub fn visit_members(&mut self, walk: &mut Walk, members: &Members) {
        walk.part("agenda", 0);
        self.sources_of(members).into_iter().for_each(|source| self.visit_source(walk, source));
        walk.pool = take(&mut self.links.pool);
        members.link_rxs.iter().for_each(|&link_rx| visit_pipe(walk, &mut self.links.link_rxs[link_rx]));
        for &link_tx in &members.link_txs {
            visit_outlet(walk, &mut self.links.link_txs[link_tx as usize]);
            if let End::Switch { index, port } = self.links.link_txs[link_tx as usize].from {
                let slot = &mut self.switches[index as usize];
                walk.part("switch", slot.id);
                slot.switch.visit_port(walk, port);
            }
        }
        self.links.pool = take(&mut walk.pool);
        members.hosts.iter().for_each(|&host| self.visit_host(walk, host));
        members.hosts.iter().for_each(|&host| self.look_ahead_at(host, Host::transports_at));
    }

    /// A word for what is next on their links, in time from `now`, and for how much waits in switches. If it is not
    /// what it was, their state has not recurred.
    pub fn outline(&self, now: Time, members: &Members) -> u64 {
        let arrivals = members.link_rxs.iter().map(|&link_rx| self.links.arrival(link_rx));
        let transmissions = members.link_txs.iter().map(|&link_tx| self.links.transmit_ready(link_tx));
        let next = arrivals.chain(transmissions).map(|source| self.links.agenda.get(source));
        let next = next.map(|at| if at == Time::MAX { u64::MAX } else { at.since(now).ps() });
        let waiting = members.link_txs.iter().map(|&link_tx| match self.links.link_txs[link_tx as usize].from {
            End::Switch { index, port } => self.switches[index as usize].switch.port(port).queued_bytes(),
            End::Host { .. } => 0,
        });
        next.chain(waiting.map(u64::from)).fold(0, mix)
    }

    /// Time was skipped: a host may have been about to start a flow or to let a rank act, which stays where it is.
    pub fn look_at_members(&mut self, members: &Members) {
        members.hosts.iter().for_each(|&host| self.look_ahead_at(host, Host::next_at));
    }

    /// Packets that they have sent, each link once.
    pub fn sent_by(&self, members: &Members) -> u64 {
        let of_outlet = |&link_tx: &u32| match self.links.link_txs[link_tx as usize].from {
            End::Switch { index, port } => {
                let stats = &self.switches[index as usize].switch.port(port).stats;
                stats.sent_packets + stats.sent_frames
            }
            End::Host { .. } => 0,
        };
        let of_hosts =
            members.hosts.iter().map(|&host| self.hosts[host].host.sent_packets + self.hosts[host].sent_frames);
        of_hosts.chain(members.link_txs.iter().map(of_outlet)).sum()
    }

    /// Mixes the length of a skipped span into the digests of the hosts.
    pub fn mark_digests_of(&mut self, members: &Members, time: units::Duration) {
        for &host in &members.hosts {
            let digest = &mut self.hosts[host].host.digest;
            *digest = mix(*digest, time.ps());
        }
    }
}
