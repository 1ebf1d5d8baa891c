use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use units::{HostId, LinkId, PortId, SwitchId};

use crate::Fabric;

/// What does not work, at one instant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Failures {
    /// Dead directed links; a cut cable is both its directions.
    pub links: BTreeSet<LinkId>,
    /// Dead switches, and with them all their links.
    pub switches: BTreeSet<SwitchId>,
}

impl Failures {
    /// Whether a link carries nothing: it is dead itself, or a switch at one of its ends is.
    pub fn kills(&self, fabric: &Fabric, link: LinkId) -> bool {
        let dead = |node| fabric.as_switch(node).is_some_and(|switch| self.switches.contains(&switch));
        self.links.contains(&link) || dead(fabric.link(link).from) || dead(fabric.link(link).to)
    }
}

/// All shortest paths (fewest hops) over the links that work, as the set of equal-cost ports at each switch towards
/// each host.
///
/// Hosts of one rack share their routes, so the table is by switch and rack, and it holds the number of a port set:
/// a regular fabric has few different ones, so they stay in the cache. A look-up reads the host's home, one table entry
/// and the set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Routes {
    homes: Vec<Home>,
    /// Switches with hosts, ascending: one column of the table each.
    racks: Vec<SwitchId>,
    /// Whether each link works.
    works: Vec<bool>,
    /// The number of the port set, by switch * columns + column, as the next two.
    set_of: Vec<u32>,
    /// Links from the switch to the rack's switch.
    distance: Vec<u32>,
    /// Of the set, the port on the path that takes a full packet least time.
    fastest: Vec<PortId>,
    /// How many of the last hops all shortest paths share, 255 for more; worked out when somebody asks.
    shared: OnceLock<Vec<u8>>,
    /// Where in `ports` each set begins and ends.
    sets: Vec<(u32, u32)>,
    ports: Vec<PortId>,
}

/// Where a host hangs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Home {
    switch: SwitchId,
    /// The rack's column in the table.
    column: u32,
    /// The port of `switch` that leads to the host.
    port: PortId,
    /// Whether the link to the host works.
    to_host: bool,
    /// Whether the link from the host works.
    from_host: bool,
}

const UNREACHED: u32 = u32::MAX;

impl Routes {
    /// The routes that remain under `failures`.
    pub fn compute(fabric: &Fabric, failures: &Failures) -> Routes {
        let works: Vec<bool> =
            (0..fabric.links.len()).map(|link| !failures.kills(fabric, LinkId::from(link))).collect();
        let mut racks: Vec<SwitchId> = (0..fabric.hosts).map(|host| fabric.rack_of(HostId(host))).collect();
        racks.sort_unstable();
        racks.dedup();
        let home = |host| {
            let (switch, uplink) = (fabric.rack_of(host), fabric.uplink(host));
            Home {
                switch,
                column: racks.binary_search(&switch).expect("every host's switch is among the racks") as u32,
                port: fabric.link(uplink).to_port,
                to_host: works[Fabric::reverse(uplink).index()],
                from_host: works[uplink.index()],
            }
        };
        let mut table = Table::new(fabric, &works, racks.len());
        for (column, &rack) in racks.iter().enumerate() {
            table.fill(column, rack);
        }
        let Table { set_of, distance, fastest, sets, ports, .. } = table;
        Routes {
            homes: (0..fabric.hosts).map(|host| home(HostId(host))).collect(),
            racks,
            works,
            set_of,
            distance,
            fastest,
            shared: OnceLock::new(),
            sets,
            ports,
        }
    }

    /// Whether a link works: neither it nor a switch at one of its ends is dead.
    #[inline]
    pub fn works(&self, link: LinkId) -> bool {
        self.works[link.index()]
    }

    /// The switches with hosts, in ascending order.
    pub fn racks(&self) -> &[SwitchId] {
        &self.racks
    }

    /// The ports of `switch` on shortest paths to `dst`, in ascending order; none when `dst` can't be reached.
    #[inline]
    pub fn next(&self, switch: SwitchId, dst: HostId) -> &[PortId] {
        let home = &self.homes[dst.index()];
        if home.switch == switch {
            return if home.to_host { std::slice::from_ref(&home.port) } else { &[] };
        }
        if !home.to_host {
            return &[];
        }
        self.next_in(switch, home.column as usize)
    }

    /// The column of the table for paths that end at a switch; none if it has no hosts.
    pub(crate) fn column_of(&self, rack: SwitchId) -> Option<usize> {
        self.racks.binary_search(&rack).ok()
    }

    /// The ports of `switch` on shortest paths to the switch of a column, whatever works of that one's hosts; none at
    /// that switch itself and where there is no path.
    #[inline]
    pub(crate) fn next_in(&self, switch: SwitchId, column: usize) -> &[PortId] {
        let (begin, end) = self.sets[self.set_of[switch.index() * self.racks.len() + column] as usize];
        &self.ports[begin as usize..end as usize]
    }

    /// Links from `switch` to the switch of a column; none when there is no path.
    pub(crate) fn distance_in(&self, switch: SwitchId, column: usize) -> Option<u32> {
        let distance = self.distance[switch.index() * self.racks.len() + column];
        (distance != UNREACHED).then_some(distance)
    }

    /// The switch that `host` hangs on.
    #[inline]
    pub fn home(&self, host: HostId) -> SwitchId {
        self.homes[host.index()].switch
    }

    /// Links on a shortest path from `switch` to `dst`; none when there is no path.
    pub fn distance(&self, switch: SwitchId, dst: HostId) -> Option<u32> {
        let home = &self.homes[dst.index()];
        let distance = if home.switch == switch { 0 } else { self.distance[self.cell(switch, home)] };
        (home.to_host && distance != UNREACHED).then(|| distance + 1)
    }

    /// How many hops all shortest paths from `switch` to `dst` have in common at their end, the last link included: what
    /// is known of a packet's path when switches choose freely among its links (Pyrrha, section 4.2). 0 when there is
    /// no path; beyond 255 they are not counted.
    #[inline]
    ///
    /// `next` is the switch at the other end of a port between switches, as in the fabric that these routes are of.
    pub fn shared_hops(&self, switch: SwitchId, dst: HostId, next: impl Fn(SwitchId, PortId) -> SwitchId) -> u32 {
        let home = &self.homes[dst.index()];
        let shared = self.shared.get_or_init(|| self.find_shared(next));
        if home.to_host { u32::from(shared[self.cell(switch, home)]) } else { 0 }
    }

    fn find_shared(&self, next: impl Fn(SwitchId, PortId) -> SwitchId) -> Vec<u8> {
        let mut shared = vec![0; self.set_of.len()];
        for column in 0..self.racks.len() {
            let cells = (column..shared.len()).step_by(self.racks.len());
            let reached = (0u32..).map(SwitchId).zip(cells).filter(|(_, cell)| self.distance[*cell] != UNREACHED);
            let mut reached: Vec<(SwitchId, usize)> = reached.collect();
            reached.sort_by_key(|(_, cell)| self.distance[*cell]);
            for (switch, cell) in reached {
                shared[cell] = self.shared_from(switch, column, &shared, &next);
            }
        }
        shared
    }

    /// How many of the last hops the paths from a switch share; all nearer switches are settled.
    fn shared_from(
        &self,
        switch: SwitchId,
        column: usize,
        shared_by: &[u8],
        next: impl Fn(SwitchId, PortId) -> SwitchId,
    ) -> u8 {
        let cell = |switch: SwitchId| switch.index() * self.racks.len() + column;
        let candidates = |switch: SwitchId| {
            let (begin, end) = self.sets[self.set_of[cell(switch)] as usize];
            &self.ports[begin as usize..end as usize]
        };
        let distance = self.distance[cell(switch)];
        let Some((&port, others)) = candidates(switch).split_first() else { return 1 };
        let first = next(switch, port);
        let mut shared = shared_by[cell(first)];
        if others.is_empty() {
            return if u32::from(shared) == distance { shared.saturating_add(1) } else { shared };
        }
        for &port in others {
            if shared == 1 {
                break;
            }
            // Side by side down any path of each, to where both are certain and have met: at the latest, the rack.
            let (mut a, mut b, mut left) = (first, next(switch, port), distance);
            shared = shared.min(shared_by[cell(b)]);
            let any = |switch| next(switch, candidates(switch)[0]);
            while left > 1 && (a != b || left > u32::from(shared)) {
                (a, b, left) = (any(a), any(b), left - 1);
            }
            shared = left as u8;
        }
        shared
    }

    /// Links on a shortest path between two hosts; none when there is no path, 0 from a host to itself.
    pub fn hops(&self, src: HostId, dst: HostId) -> Option<u32> {
        if src == dst {
            return Some(0);
        }
        let home = &self.homes[src.index()];
        home.from_host.then(|| self.distance(home.switch, dst))?.map(|distance| distance + 1)
    }

    /// The links of the fastest of the shortest paths: that on which a lone 1,500 B packet takes least time, the lowest
    /// ports on a tie. Empty when there is no path, or from a host to itself.
    pub fn path<'a>(&'a self, fabric: &'a Fabric, src: HostId, dst: HostId) -> impl Iterator<Item = LinkId> + 'a {
        let (from, to) = (&self.homes[src.index()], &self.homes[dst.index()]);
        let exists = self.hops(src, dst).is_some_and(|hops| hops > 0);
        let first = exists.then(|| fabric.uplink(src));
        let mut at = exists.then_some(from.switch);
        let rest = std::iter::from_fn(move || {
            let switch = at?;
            let port = if switch == to.switch { to.port } else { self.fastest[self.cell(switch, to)] };
            let link = fabric.out_link(switch, port);
            at = fabric.as_switch(fabric.link(link).to);
            Some(link)
        });
        first.into_iter().chain(rest)
    }

    /// How many shortest paths lead from one host to another; [`u64::MAX`] if more than that.
    pub fn count_paths(&self, fabric: &Fabric, src: HostId, dst: HostId) -> u64 {
        if self.hops(src, dst).is_none() {
            return 0;
        }
        let start = self.homes[src.index()].switch;
        // Switches in the order in which paths reach them: all of one distance before any of the next.
        let mut reached = BTreeMap::from([(start, 1u64)]);
        for _ in 1..self.distance(start, dst).unwrap_or(0) {
            let mut next = BTreeMap::new();
            for (switch, paths) in reached {
                for port in self.next(switch, dst) {
                    let link = fabric.out_link(switch, *port);
                    let to = fabric.as_switch(fabric.link(link).to).expect("only the last hop leads to a host");
                    let count: &mut u64 = next.entry(to).or_default();
                    *count = count.saturating_add(paths);
                }
            }
            reached = next;
        }
        reached.into_values().fold(0, u64::saturating_add)
    }

    #[inline]
    fn cell(&self, switch: SwitchId, home: &Home) -> usize {
        switch.index() * self.racks.len() + home.column as usize
    }
}

/// Routes in the making: one breadth-first search a rack, backwards from its switch.
struct Table<'a> {
    fabric: &'a Fabric,
    works: &'a [bool],
    /// Time of a lone full packet over each link, with the processing behind it, in picoseconds.
    cost: Vec<u64>,
    columns: usize,
    set_of: Vec<u32>,
    distance: Vec<u32>,
    fastest: Vec<PortId>,
    sets: Vec<(u32, u32)>,
    ports: Vec<PortId>,
    known: BTreeMap<Vec<PortId>, u32>,
}

impl<'a> Table<'a> {
    fn new(fabric: &'a Fabric, works: &'a [bool], columns: usize) -> Table<'a> {
        let cost = |(id, link): (usize, &crate::Link)| {
            let flight = link.propagation.ps() + fabric.delay_after(LinkId::from(id)).ps();
            link.rate.transmit(1500).ps().saturating_add(flight)
        };
        let cells = fabric.switches as usize * columns;
        Table {
            fabric,
            works,
            cost: fabric.links.iter().enumerate().map(cost).collect(),
            columns,
            set_of: vec![0; cells],
            distance: vec![UNREACHED; cells],
            fastest: vec![PortId(0); cells],
            sets: vec![(0, 0)],
            ports: Vec::new(),
            known: BTreeMap::from([(Vec::new(), 0)]),
        }
    }

    fn fill(&mut self, column: usize, rack: SwitchId) {
        let fabric = self.fabric;
        let mut distance = vec![UNREACHED; fabric.switches as usize];
        let mut time = vec![u64::MAX; fabric.switches as usize];
        (distance[rack.index()], time[rack.index()]) = (0, 0);
        let mut queue = vec![rack];
        let mut candidates = Vec::new();
        let mut next = 0;
        while let Some(&switch) = queue.get(next) {
            next += 1;
            let here = distance[switch.index()];
            let links = &fabric.ports[fabric.switch_node(switch).index()];
            // A switch's ports are settled when it leaves the queue: by then all nearer switches have.
            candidates.clear();
            let mut fastest = (u64::MAX, PortId(0));
            for (port, &link) in links.iter().enumerate() {
                let Some(other) = fabric.as_switch(fabric.link(link).to) else { continue };
                if distance[other.index()] == UNREACHED && self.works[Fabric::reverse(link).index()] {
                    distance[other.index()] = here + 1;
                    queue.push(other);
                }
                if distance[other.index()] < here && self.works[link.index()] {
                    let port = PortId::from(port);
                    candidates.push(port);
                    fastest = fastest.min((self.cost[link.index()].saturating_add(time[other.index()]), port));
                }
            }
            if switch != rack {
                time[switch.index()] = fastest.0;
            }
            let set = self.intern(&candidates);
            let cell = switch.index() * self.columns + column;
            (self.set_of[cell], self.distance[cell], self.fastest[cell]) = (set, here, fastest.1);
        }
    }

    fn intern(&mut self, ports: &[PortId]) -> u32 {
        if let Some(&set) = self.known.get(ports) {
            return set;
        }
        let (set, begin) = (self.sets.len() as u32, self.ports.len() as u32);
        self.ports.extend_from_slice(ports);
        self.sets.push((begin, self.ports.len() as u32));
        self.known.insert(ports.to_vec(), set);
        set
    }
}
