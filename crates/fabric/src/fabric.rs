use std::collections::{BTreeMap, BTreeSet};

use petgraph::unionfind::UnionFind;
use units::{Duration, HostId, LinkId, NodeId, PortId, Problem, Rate, SwitchId};

use crate::names;

/// A network of hosts, switches and cables. Plain data that a run never changes; failures are kept apart from it.
#[derive(Clone, Debug, PartialEq)]
pub struct Fabric {
    /// Number of hosts: nodes `0..hosts`.
    pub hosts: u32,
    /// Number of switches: nodes `hosts..hosts + switches`.
    pub switches: u32,
    /// Directed links. A cable is two consecutive links, `2i` and `2i + 1`: see [`Fabric::reverse`].
    pub links: Vec<Link>,
    /// For each node, the outgoing link of each of its ports.
    pub ports: Vec<Vec<LinkId>>,
    /// For each switch, the time from a packet's arrival to its entry in the output queue.
    pub switch_delay: Vec<Duration>,
    /// For each node: the group that it belongs to, the unit of parallel partitioning (a rack, a pod or a slice of a
    /// torus).
    pub group_of: Vec<u32>,
    /// Number of groups.
    pub groups: u32,
    /// For each node, its name: "host3", "leaf0", "spine2".
    pub names: Vec<String>,
    /// The grid that the switches form, if the fabric is a torus or a mesh.
    pub lattice: Option<Lattice>,
    attached_to: Vec<SwitchId>,
}

/// The grid that all switches of a fabric form: switch (x, y, z) has number x + dims\[0\] * (y + dims\[1\] * z).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lattice {
    /// Switches along each dimension.
    pub dims: Vec<u32>,
    /// Whether every dimension of more than two switches is closed to a ring: true for a torus, false for a mesh.
    pub wraps: bool,
}

/// One direction of a cable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// The sending node.
    pub from: NodeId,
    /// The sender's port.
    pub from_port: PortId,
    /// The receiving node.
    pub to: NodeId,
    /// The receiver's port.
    pub to_port: PortId,
    /// Bits per second.
    pub rate: Rate,
    /// Propagation delay.
    pub propagation: Duration,
    /// The kind of hop.
    pub tier: Tier,
    /// Whether it joins two groups of a dragonfly. Routes cross as few of these links as they can.
    pub global: bool,
}

/// The kind of hop that a link is. Results break queueing down by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tier {
    /// The first hop: a host's own NIC.
    FromHost,
    /// Between switches, away from the hosts or sideways. Every link between switches of a direct-connect fabric is of
    /// this kind.
    Up,
    /// Between switches, towards the hosts.
    Down,
    /// The last hop.
    ToHost,
}

impl Fabric {
    /// The other direction of the same cable.
    #[inline]
    pub const fn reverse(link: LinkId) -> LinkId {
        LinkId(link.0 ^ 1)
    }

    /// Number of hosts and switches together.
    #[inline]
    pub const fn nodes(&self) -> u32 {
        self.hosts + self.switches
    }

    /// The link with this id.
    #[inline]
    pub fn link(&self, link: LinkId) -> &Link {
        &self.links[link.index()]
    }

    /// A host as a node.
    #[inline]
    pub const fn host_node(&self, host: HostId) -> NodeId {
        NodeId(host.0)
    }

    /// A switch as a node.
    #[inline]
    pub const fn switch_node(&self, switch: SwitchId) -> NodeId {
        NodeId(self.hosts + switch.0)
    }

    /// The host that a node is, if it is one.
    #[inline]
    pub fn as_host(&self, node: NodeId) -> Option<HostId> {
        (node.0 < self.hosts).then_some(HostId(node.0))
    }

    /// The switch that a node is, if it is one.
    #[inline]
    pub fn as_switch(&self, node: NodeId) -> Option<SwitchId> {
        node.0.checked_sub(self.hosts).map(SwitchId)
    }

    /// The link that leaves a switch by a port.
    #[inline]
    pub fn out_link(&self, switch: SwitchId, port: PortId) -> LinkId {
        self.ports[self.switch_node(switch).index()][port.index()]
    }

    /// Bits that a port number takes in a [`Route`](crate::Route): enough for the switch with the most ports.
    pub fn port_bits(&self) -> u32 {
        let most = self.ports[self.hosts as usize..].iter().map(Vec::len).max().unwrap_or(0);
        most.saturating_sub(1).max(1).ilog2() + 1
    }

    /// The switch that a host is attached to: its rack. For a host with several links, the switch of the first.
    #[inline]
    pub fn rack_of(&self, host: HostId) -> SwitchId {
        self.attached_to[host.index()]
    }

    /// The link from a host to its switch; its reverse is the host's last hop. Of a host with several links, the first.
    #[inline]
    pub fn uplink(&self, host: HostId) -> LinkId {
        self.ports[host.index()][0]
    }

    /// All links from a host to switches, in the order of its ports; the reverse of each is one of its last hops.
    #[inline]
    pub fn uplinks(&self, host: HostId) -> &[LinkId] {
        &self.ports[host.index()]
    }

    /// The switch that one of a host's links leads to.
    #[inline]
    pub fn switch_at(&self, uplink: LinkId) -> SwitchId {
        self.as_switch(self.link(uplink).to).expect("a host's link leads to a switch")
    }

    /// The first host that has several links, if any has.
    pub fn several_links(&self) -> Option<HostId> {
        (0..self.hosts).map(HostId).find(|&host| self.uplinks(host).len() > 1)
    }

    /// The rate at which a host can send (and receive: cables are symmetric), over all its links together.
    #[inline]
    pub fn host_rate(&self, host: HostId) -> Rate {
        let rates = self.uplinks(host).iter().map(|&link| self.link(link).rate.bps());
        Rate::from_bps(rates.fold(0, u64::saturating_add))
    }

    /// The lowest rate of any link.
    pub fn narrowest_rate(&self) -> Rate {
        self.links.iter().map(|link| link.rate).min().unwrap_or(Rate::ZERO)
    }

    /// Processing delay at the far end of a link: the switch's, or zero at a host.
    #[inline]
    pub fn delay_after(&self, link: LinkId) -> Duration {
        self.as_switch(self.link(link).to).map_or(Duration::ZERO, |switch| self.switch_delay[switch.index()])
    }

    /// From a packet's last bit leaving by a link to the next node's seeing it: propagation, and processing there.
    #[inline]
    pub fn delay(&self, link: LinkId) -> Duration {
        self.link(link).propagation + self.delay_after(link)
    }

    /// How long parts of the network can be simulated on their own: an event in one cannot affect another sooner.
    /// `None` if all nodes are in one group.
    ///
    /// It is the delay (propagation plus the receiving switch's processing) of the fastest link between groups, unless
    /// few links are that fast: then the nodes at their ends stay together, and the next delay counts, as long as no
    /// clump of nodes that stay together has more than an eighth of the network's links, or more than there was at
    /// first. So one short link does not make all windows short.
    pub fn lookahead(&self) -> Option<Duration> {
        let crosses = |link: &Link| self.group_of[link.from.index()] != self.group_of[link.to.index()];
        let ids = || (0..self.links.len()).map(LinkId::from);
        let least = ids().filter(|&id| crosses(self.link(id))).map(|id| self.delay(id)).min()?;
        let mut clumps = self.together(least);
        let mut links_of = vec![0; self.nodes() as usize];
        self.links.iter().for_each(|link| links_of[clumps.find(link.from.0) as usize] += 1);
        let most = links_of.iter().copied().max().unwrap_or(0).max(self.links.len() / 8);
        let mut by_delay: Vec<(Duration, LinkId)> =
            ids().map(|id| (self.delay(id), id)).filter(|of| of.0 >= least).collect();
        by_delay.sort_unstable();
        for (delay, id) in by_delay {
            let [from, to] = [self.link(id).from, self.link(id).to].map(|node| clumps.find(node.0));
            if from == to {
                continue;
            }
            let links = links_of[from as usize] + links_of[to as usize];
            if links > most {
                return Some(delay);
            }
            clumps.union(from, to);
            links_of[clumps.find(from) as usize] = links;
        }
        Some(least)
    }

    /// By node, the number of its clump: nodes that can't be parted where something takes at least `delay` from part to
    /// part. A host and the switch of its first link are in one, and the ends of a link whose propagation and the
    /// receiver's own delay take less.
    pub fn clumps(&self, delay: Duration) -> Vec<u32> {
        self.together(delay).into_labeling()
    }

    fn together(&self, delay: Duration) -> UnionFind<u32> {
        let mut with = UnionFind::<u32>::new(self.nodes() as usize);
        for (id, link) in self.links.iter().enumerate() {
            let first_of_host = link.from_port.0 == 0 && self.as_host(link.from).is_some();
            if first_of_host || self.delay(LinkId::from(id)) < delay {
                with.union(link.from.0, link.to.0);
            }
        }
        with
    }

    /// A link by its ends, such as "host0 to leaf0", for messages.
    pub fn link_name(&self, link: LinkId) -> String {
        let link = self.link(link);
        format!("{} to {}", self.names[link.from.index()], self.names[link.to.index()])
    }

    /// The node with this name. The error names the nearest name that exists.
    pub fn find(&self, name: &str) -> Result<NodeId, Problem> {
        match self.names.iter().position(|known| known == name) {
            Some(index) => Ok(NodeId::from(index)),
            None => Err(names::unknown("node", name, &self.names)),
        }
    }

    /// The links that `from-to` names, in port order: from the first node to the second, joined by a hyphen.
    pub fn find_links(&self, name: &str) -> Result<Vec<LinkId>, Problem> {
        let node = |name: &str| self.names.iter().position(|known| known == name).map(NodeId::from);
        // Names may have hyphens of their own.
        let pairs = name.match_indices('-').map(|(at, _)| (&name[..at], &name[at + 1..]));
        for (from, to) in pairs {
            let (Some(from), Some(to)) = (node(from), node(to)) else { continue };
            let links: Vec<LinkId> = self.links_between(from, to).collect();
            if !links.is_empty() {
                return Ok(links);
            }
        }
        let named = |link: &Link| format!("{}-{}", self.names[link.from.index()], self.names[link.to.index()]);
        let mut known: Vec<String> = self.links.iter().map(named).collect();
        known.dedup();
        Err(names::unknown("link", name, &known))
    }

    /// The links that a port's name stands for: those of [`Fabric::find_links`], or of a node and the number of its
    /// port, such as "spine0:3".
    pub fn find_ports(&self, name: &str) -> Result<Vec<LinkId>, Problem> {
        let Some((node, number)) = name.rsplit_once(':') else { return self.find_links(name) };
        let node = self.find(node)?;
        let ports = &self.ports[node.index()];
        let port = number.parse::<usize>().ok().and_then(|number| ports.get(number));
        let message = || {
            let there = match ports.len() {
                1 => "its port is 0".to_owned(),
                several => format!("its ports are 0 to {}", several - 1),
            };
            format!("{} has no port \"{number}\"; {there}", self.names[node.index()])
        };
        port.map(|&link| vec![link]).ok_or_else(|| Problem::new("", message()))
    }

    /// The links from one node to a neighbour, in port order: none, one, or several in parallel.
    pub fn links_between(&self, from: NodeId, to: NodeId) -> impl Iterator<Item = LinkId> + '_ {
        self.ports[from.index()].iter().copied().filter(move |&link| self.link(link).to == to)
    }
}

/// Builds a fabric node by node and cable by cable.
pub struct Builder {
    names: Vec<String>,
    hosts: u32,
    switch_delay: Vec<Duration>,
    switch_group: Vec<Option<u32>>,
    links: Vec<Link>,
    ports: Vec<Vec<LinkId>>,
    lattice: Option<Lattice>,
}

/// Most nodes: larger than any datacenter, so a higher count in a scenario is a typing error.
const NODES_MAX: u64 = 1 << 21;
const LINKS_MAX: u64 = 1 << 24;
/// Most links of a host: more than any server has, and the bits of a word.
const HOST_LINKS_MAX: usize = 64;
/// Most cells of the routing table, which has one for each switch and rack: 3 GiB of them.
const ROUTES_MAX: u64 = 1 << 28;
const DELAY_MAX: Duration = Duration::from_ms(1000);

impl Builder {
    /// A fabric with these nodes (a switch with its processing delay) and no cable yet.
    pub fn new(hosts: Vec<String>, switches: Vec<(String, Duration)>) -> Builder {
        let host_count = u32::try_from(hosts.len()).expect("callers bound the count");
        let ports = vec![Vec::new(); hosts.len() + switches.len()];
        let switch_group = vec![None; switches.len()];
        let (switch_names, switch_delay): (Vec<_>, Vec<_>) = switches.into_iter().unzip();
        let names = hosts.into_iter().chain(switch_names).collect();
        Builder { names, hosts: host_count, switch_delay, switch_group, links: Vec::new(), ports, lattice: None }
    }

    /// Nodes named by a kind and a number: `numbered("host", 3)` is host0, host1, host2.
    pub fn numbered(kind: &str, count: u32) -> Vec<String> {
        (0..count).map(|i| format!("{kind}{i}")).collect()
    }

    /// Refuses a fabric that is too large for memory. `nodes` and `cables` are what the caller is about to add.
    pub(crate) fn check_size(nodes: u128, cables: u128) -> Result<(), Problem> {
        if nodes > u128::from(NODES_MAX) || cables > u128::from(LINKS_MAX / 2) {
            let message = format!(
                "{nodes} nodes and {cables} cables are too many; at most {NODES_MAX} nodes and {} cables",
                LINKS_MAX / 2
            );
            return Err(Problem::new("", message));
        }
        Ok(())
    }

    /// The i-th switch as a node.
    pub fn switch(&self, index: u32) -> NodeId {
        NodeId(self.hosts + index)
    }

    /// Joins two nodes by a cable: a link each way, each on the next free port of its sender.
    pub fn cable(&mut self, a: NodeId, b: NodeId, rate: Rate, propagation: Duration) {
        self.join(a, b, rate, propagation, false);
    }

    /// As [`Builder::cable`], between two groups of a dragonfly ([`Link::global`]).
    pub(crate) fn global_cable(&mut self, a: NodeId, b: NodeId, rate: Rate, propagation: Duration) {
        self.join(a, b, rate, propagation, true);
    }

    fn join(&mut self, a: NodeId, b: NodeId, rate: Rate, propagation: Duration, global: bool) {
        let next_port = |builder: &Builder, node: NodeId| PortId::from(builder.ports[node.index()].len());
        let a_port = next_port(self, a);
        self.ports[a.index()].push(LinkId::from(self.links.len()));
        let b_port = next_port(self, b);
        self.ports[b.index()].push(LinkId::from(self.links.len() + 1));
        // `tiers` sets the tier once all cables are known.
        let tier = Tier::Up;
        self.links.push(Link { from: a, from_port: a_port, to: b, to_port: b_port, rate, propagation, tier, global });
        self.links.push(Link { from: b, from_port: b_port, to: a, to_port: a_port, rate, propagation, tier, global });
    }

    /// Puts a switch and its hosts into a group. Groups are numbered from 0 without gaps.
    pub fn group(&mut self, switch: NodeId, group: u32) {
        self.switch_group[(switch.0 - self.hosts) as usize] = Some(group);
    }

    /// Declares that the switches form a torus or a mesh, which the caller has cabled.
    pub(crate) fn lattice(&mut self, lattice: Lattice) {
        self.lattice = Some(lattice);
    }

    /// Checks the fabric and computes tiers and groups. Unless the caller has set groups, each switch with hosts is one
    /// group; switches that share hosts are one group together. Switches without a group are distributed over the
    /// groups in turn.
    pub fn finish(mut self) -> Result<Fabric, Problem> {
        let attached_to = self.check()?;
        self.tiers(&attached_to);
        let (group_of, groups) = self.groups(&attached_to);
        Ok(Fabric {
            hosts: self.hosts,
            switches: self.switch_delay.len() as u32,
            links: self.links,
            ports: self.ports,
            switch_delay: self.switch_delay,
            group_of,
            groups,
            names: self.names,
            lattice: self.lattice,
            attached_to,
        })
    }

    fn check(&self) -> Result<Vec<SwitchId>, Problem> {
        let fail = |message: String| Err(Problem::new("", message));
        if self.hosts < 2 || self.switch_delay.is_empty() {
            return fail(format!(
                "{} hosts and {} switches are too few; a network has at least two hosts and one switch",
                self.hosts,
                self.switch_delay.len()
            ));
        }
        let name = |node: NodeId| &self.names[node.index()];
        for link in self.links.iter().step_by(2) {
            let (a, b) = (name(link.from), name(link.to));
            if link.from == link.to {
                return fail(format!("a cable joins {a} to itself"));
            }
            if link.rate == Rate::ZERO {
                return fail(format!("the link {a} - {b} has rate 0; write a rate above 0"));
            }
            if link.propagation > DELAY_MAX {
                return fail(format!("the link {a} - {b} has a delay of {}; at most {DELAY_MAX}", link.propagation));
            }
        }
        if let Some(slow) = self.switch_delay.iter().position(|&delay| delay > DELAY_MAX) {
            let name = name(self.switch(slow as u32));
            return fail(format!("{name} has a delay of {}; at most {DELAY_MAX}", self.switch_delay[slow]));
        }
        let mut attached_to = Vec::with_capacity(self.hosts as usize);
        // Hosts on the same switches share their routes.
        let mut racks = BTreeSet::new();
        for host in (0..self.hosts).map(NodeId) {
            let uplinks = &self.ports[host.index()];
            if uplinks.is_empty() || uplinks.len() > HOST_LINKS_MAX {
                let count = uplinks.len();
                return fail(format!(
                    "{} has {count} links; a host has 1 to {HOST_LINKS_MAX}, to switches",
                    name(host)
                ));
            }
            let mut switches = Vec::with_capacity(uplinks.len());
            for uplink in uplinks {
                let Some(switch) = self.links[uplink.index()].to.0.checked_sub(self.hosts) else {
                    let to = name(self.links[uplink.index()].to);
                    let message =
                        format!("{} is joined to {to}, another host; a host is joined to switches", name(host));
                    return fail(message);
                };
                switches.push(SwitchId(switch));
            }
            attached_to.push(switches[0]);
            switches.sort_unstable();
            switches.dedup();
            racks.insert(switches);
        }
        let racks = racks.len();
        if racks as u64 * self.switch_delay.len() as u64 > ROUTES_MAX {
            let switches = self.switch_delay.len();
            return fail(format!(
                "routes between {switches} switches and {racks} racks do not fit in memory; choose a smaller fabric"
            ));
        }
        let reached = self.distances(&[NodeId(0)]);
        if let Some(lost) = reached.iter().position(|&distance| distance == u32::MAX) {
            return fail(format!(
                "there is no path from {} to {}; join them by links",
                self.names[0], self.names[lost]
            ));
        }
        Ok(attached_to)
    }

    /// Sets the tier of every link between switches. A switch's level is its distance from the nearest host. A link to
    /// a lower level goes down, any other goes up. A Clos network gets its usual tiers; in a mesh whose switches all
    /// have hosts every link goes up.
    fn tiers(&mut self, attached_to: &[SwitchId]) {
        let hosts: Vec<NodeId> = (0..attached_to.len()).map(NodeId::from).collect();
        let level = self.distances(&hosts);
        for link in &mut self.links {
            link.tier = match (level[link.from.index()], level[link.to.index()]) {
                (0, _) => Tier::FromHost,
                (_, 0) => Tier::ToHost,
                (from, to) if to < from => Tier::Down,
                _ => Tier::Up,
            };
        }
    }

    fn groups(&self, attached_to: &[SwitchId]) -> (Vec<u32>, u32) {
        let mut of_switch = self.switch_group.clone();
        if of_switch.iter().all(Option::is_none) {
            for (group, racks) in self.neighbourhoods(attached_to).into_iter().enumerate() {
                for rack in racks {
                    of_switch[rack.index()] = Some(group as u32);
                }
            }
        }
        let groups = of_switch.iter().flatten().max().map_or(1, |last| last + 1);
        let mut turn = (0..groups).cycle();
        let of_switch: Vec<u32> =
            of_switch.into_iter().map(|group| group.or_else(|| turn.next()).unwrap_or(0)).collect();
        let of_hosts = attached_to.iter().map(|switch| of_switch[switch.index()]);
        (of_hosts.chain(of_switch.iter().copied()).collect(), groups)
    }

    /// Groups of switches with hosts. Switches that share a host are in one group, since a host can be in only one.
    fn neighbourhoods(&self, attached_to: &[SwitchId]) -> Vec<Vec<SwitchId>> {
        let mut with = UnionFind::<u32>::new(self.switch_delay.len());
        let mut is_rack = vec![false; self.switch_delay.len()];
        for (host, first) in attached_to.iter().enumerate() {
            for uplink in &self.ports[host] {
                let switch = self.links[uplink.index()].to.0 - self.hosts;
                is_rack[switch as usize] = true;
                with.union(first.0, switch);
            }
        }
        let mut together: Vec<Vec<SwitchId>> = Vec::new();
        let mut place = BTreeMap::new();
        for rack in (0..self.switch_delay.len() as u32).filter(|&rack| is_rack[rack as usize]) {
            let place = *place.entry(with.find(rack)).or_insert_with(|| {
                together.push(Vec::new());
                together.len() - 1
            });
            together[place].push(SwitchId(rack));
        }
        together
    }

    /// Hops from each node to the nearest of `sources`; `u32::MAX` if unreachable. Every link has a reverse, so
    /// distances are symmetric.
    fn distances(&self, sources: &[NodeId]) -> Vec<u32> {
        let mut distance = vec![u32::MAX; self.ports.len()];
        let mut queue = sources.to_vec();
        for source in sources {
            distance[source.index()] = 0;
        }
        let mut next = 0;
        while let Some(&node) = queue.get(next) {
            next += 1;
            for link in &self.ports[node.index()] {
                let to = self.links[link.index()].to;
                if distance[to.index()] == u32::MAX {
                    distance[to.index()] = distance[node.index()] + 1;
                    queue.push(to);
                }
            }
        }
        distance
    }
}
