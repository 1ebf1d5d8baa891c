use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::sync::OnceLock;

use units::{HostId, LinkId, PortId, Problem, SwitchId, interrupt};

use crate::Fabric;
use crate::frontier::{Frontier, Length};

/// The dead links and switches at one time.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Failures {
    /// Dead directed links. A cut cable is two of them.
    pub links: BTreeSet<LinkId>,
    /// Dead switches. All their links are dead too.
    pub switches: BTreeSet<SwitchId>,
}

impl Failures {
    /// Whether a link is dead: by itself or because a switch at one of its ends is.
    pub fn kills(&self, fabric: &Fabric, link: LinkId) -> bool {
        let dead = |node| fabric.as_switch(node).is_some_and(|switch| self.switches.contains(&switch));
        self.links.contains(&link) || dead(fabric.link(link).from) || dead(fabric.link(link).to)
    }
}

/// All shortest paths over the working links, as the set of equal-cost ports at each switch towards each host. Shortest
/// is what crosses the fewest links between groups of a dragonfly ([`Link::global`](crate::Link::global)) and, of these
/// paths, has the fewest links; in all other fabrics, what has the fewest links. So equal paths have as many links.
///
/// Hosts of one rack share their routes, so the table is indexed by switch and rack. A cell holds the number of a port
/// set; a regular fabric has few distinct sets, so they stay in the cache. A look-up reads the host's home, one table
/// cell and the set.
///
/// Hosts with several links share a column of the table if their working links lead to the same set of switches.
/// Shortest paths lead to the nearest switch of the set, so a host with one dead link is reached over the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Routes {
    homes: Vec<Home>,
    /// Homes of hosts with several links, which do not fit into `homes`.
    several: Box<[Several]>,
    /// Switches with hosts that have no other switch, ascending. Each is one column of the table.
    racks: Box<[SwitchId]>,
    /// Number of columns. After those of `racks` comes one for each set of several switches.
    columns: usize,
    /// Whether each link works.
    works: Vec<bool>,
    /// By switch * columns + column: number of the port set. The next two vectors have the same index.
    set_of: Vec<u32>,
    /// Number of links from the switch to the rack's switch.
    distance: Vec<u32>,
    /// The port of the set on the path that takes a full packet the least time.
    fastest: Vec<PortId>,
    /// Number of last hops that all shortest paths have in common, 255 for more. Computed on first use.
    shared: OnceLock<Vec<u8>>,
    /// Start and end of each set in `ports`.
    sets: Vec<(u32, u32)>,
    ports: Vec<PortId>,
}

/// Where a host is attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Home {
    /// Its switch, or [`SEVERAL`].
    switch: SwitchId,
    /// The column in the table.
    column: u32,
    /// The port of `switch` that leads to the host. For a host with several links: its index among such hosts.
    port: PortId,
    /// Whether a link to the host works.
    to_host: bool,
    /// Whether a link from the host works.
    from_host: bool,
}

/// Stands for the switch of a host with several links.
const SEVERAL: SwitchId = SwitchId(u32::MAX);

/// Where a host with several links is attached.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Several {
    /// By port of the host: the switch, and whether the link from the host works.
    up: Vec<(SwitchId, bool)>,
    /// The switches with a working link to the host, ascending, each with its ports of such links.
    down: Vec<(SwitchId, Vec<PortId>)>,
}

impl Several {
    fn new(fabric: &Fabric, works: &[bool], host: HostId) -> Several {
        let mut down: BTreeMap<SwitchId, Vec<PortId>> = BTreeMap::new();
        for &uplink in fabric.uplinks(host) {
            if works[Fabric::reverse(uplink).index()] {
                down.entry(fabric.switch_at(uplink)).or_default().push(fabric.link(uplink).to_port);
            }
        }
        down.values_mut().for_each(|ports| ports.sort_unstable());
        let up = fabric.uplinks(host).iter().map(|&uplink| (fabric.switch_at(uplink), works[uplink.index()]));
        Several { up: up.collect(), down: down.into_iter().collect() }
    }

    fn switches(&self) -> Vec<SwitchId> {
        self.down.iter().map(|down| down.0).collect()
    }
}

const UNREACHED: u32 = u32::MAX;

impl Routes {
    /// The routes that remain under `failures`.
    pub fn compute(fabric: &Fabric, failures: &Failures) -> Routes {
        match Routes::build(fabric, failures, || Ok::<(), Infallible>(())) {
            Ok(routes) => routes,
        }
    }

    /// The same, for work that may be stopped ([`interrupt`]): in a large fabric it takes seconds.
    ///
    /// # Errors
    /// If the work of this thread is to stop.
    pub fn compute_or_stop(fabric: &Fabric, failures: &Failures) -> Result<Routes, Problem> {
        Routes::build(fabric, failures, interrupt::check)
    }

    /// `go_on` is asked before each column of the table.
    fn build<E>(fabric: &Fabric, failures: &Failures, mut go_on: impl FnMut() -> Result<(), E>) -> Result<Routes, E> {
        let works: Vec<bool> =
            (0..fabric.links.len()).map(|link| !failures.kills(fabric, LinkId::from(link))).collect();
        let mut several = Vec::new();
        // A host with one link keeps its switch even if that link is dead. A host with several links keeps only the
        // working ones.
        let mut sets = BTreeSet::new();
        for host in (0..fabric.hosts).map(HostId) {
            match fabric.uplinks(host) {
                [_] => _ = sets.insert(vec![fabric.rack_of(host)]),
                _ => {
                    let home = Several::new(fabric, &works, host);
                    sets.insert(home.switches());
                    several.push(home);
                }
            }
        }
        sets.remove(&Vec::new());
        let (ones, sets): (Vec<_>, Vec<_>) = sets.into_iter().partition(|set| set.len() == 1);
        let racks: Vec<SwitchId> = ones.into_iter().flatten().collect();
        let column_of = |set: &[SwitchId]| match set {
            [] => 0, // nothing leads to the host, whatever the column
            [rack] => racks.binary_search(rack).expect("every switch alone is among the racks"),
            set => racks.len() + sets.binary_search_by(|known| known[..].cmp(set)).expect("every set is known"),
        };
        let mut next_several = 0..;
        let home = |host| match fabric.uplinks(host) {
            &[uplink] => Home {
                switch: fabric.rack_of(host),
                column: column_of(&[fabric.rack_of(host)]) as u32,
                port: fabric.link(uplink).to_port,
                to_host: works[Fabric::reverse(uplink).index()],
                from_host: works[uplink.index()],
            },
            _ => {
                let place = next_several.next().expect("endless");
                let home: &Several = &several[place as usize];
                Home {
                    switch: SEVERAL,
                    column: column_of(&home.switches()) as u32,
                    port: PortId(place),
                    to_host: !home.down.is_empty(),
                    from_host: home.up.iter().any(|up| up.1),
                }
            }
        };
        let homes = (0..fabric.hosts).map(HostId).map(home).collect();
        let columns = racks.len() + sets.len();
        let mut table = Table::new(fabric, &works, columns);
        for (column, set) in racks.iter().map(std::slice::from_ref).chain(sets.iter().map(|set| &set[..])).enumerate() {
            go_on()?;
            table.fill(column, set);
        }
        let Table { set_of, distance, fastest, sets, ports, .. } = table;
        Ok(Routes {
            homes,
            several: several.into(),
            racks: racks.into(),
            columns,
            works,
            set_of,
            distance,
            fastest,
            shared: OnceLock::new(),
            sets,
            ports,
        })
    }

    /// Whether a link works: neither it nor a switch at one of its ends is dead.
    #[inline]
    pub fn works(&self, link: LinkId) -> bool {
        self.works[link.index()]
    }

    /// The switches that have hosts with no other switch, in ascending order.
    pub fn racks(&self) -> &[SwitchId] {
        &self.racks
    }

    /// The ports of `switch` on shortest paths to `dst`, in ascending order. Empty if `dst` is unreachable.
    #[inline]
    pub fn next(&self, switch: SwitchId, dst: HostId) -> &[PortId] {
        let home = &self.homes[dst.index()];
        if home.switch == switch {
            return if home.to_host { std::slice::from_ref(&home.port) } else { &[] };
        }
        if !home.to_host {
            return &[];
        }
        let ports = self.next_in(switch, home.column as usize);
        if ports.is_empty() && home.switch == SEVERAL {
            return self.own_ports(home, switch);
        }
        ports
    }

    /// The ports of a switch to a host with several links; empty if the host is not attached to it.
    #[cold]
    fn own_ports(&self, home: &Home, switch: SwitchId) -> &[PortId] {
        let down = &self.several[home.port.index()].down;
        down.binary_search_by_key(&switch, |down| down.0).map_or(&[], |place| &down[place].1)
    }

    /// The ports of `src`, as bits, that lie on shortest paths to `dst`, restricted to those in `up`. A host with
    /// several links chooses from them: it knows which of its links are up, and these tables tell what lies beyond. 0
    /// if there is no path.
    pub fn first_ports(&self, src: HostId, dst: HostId, up: u64) -> u64 {
        let home = &self.homes[src.index()];
        if home.switch != SEVERAL {
            return up & u64::from(self.distance(home.switch, dst).is_some());
        }
        let (mut nearest, mut ports) = (UNREACHED, 0);
        for (port, &(switch, _)) in self.several[home.port.index()].up.iter().enumerate() {
            let Some(distance) = self.distance(switch, dst).filter(|_| up >> port & 1 == 1) else { continue };
            if distance < nearest {
                (nearest, ports) = (distance, 0);
            }
            ports |= u64::from(distance == nearest) << port;
        }
        ports
    }

    /// A number for the routes to a host. Hosts that share it are reached by the same paths up to the last link. If
    /// hosts have one link each, it is below the number of switches.
    #[inline]
    pub fn group(&self, dst: HostId) -> usize {
        let home = &self.homes[dst.index()];
        match home.switch {
            SEVERAL => self.set_of.len() / self.columns.max(1) + home.column as usize,
            switch => switch.index(),
        }
    }

    /// The column of the table for paths that end at a switch; `None` if it has no hosts.
    pub(crate) fn column_of(&self, rack: SwitchId) -> Option<usize> {
        self.racks.binary_search(&rack).ok()
    }

    /// The ports of `switch` on shortest paths to the switch of a column, regardless of that switch's hosts. Empty at
    /// that switch itself and where there is no path.
    #[inline]
    pub(crate) fn next_in(&self, switch: SwitchId, column: usize) -> &[PortId] {
        let (begin, end) = self.sets[self.set_of[switch.index() * self.columns + column] as usize];
        &self.ports[begin as usize..end as usize]
    }

    /// Links from `switch` to the switch of a column; none when there is no path.
    pub(crate) fn distance_in(&self, switch: SwitchId, column: usize) -> Option<u32> {
        let distance = self.distance[switch.index() * self.columns + column];
        (distance != UNREACHED).then_some(distance)
    }

    /// The switch that `host` is attached to; the first, if there are several.
    #[inline]
    pub fn home(&self, host: HostId) -> SwitchId {
        let home = &self.homes[host.index()];
        if home.switch == SEVERAL { self.several[home.port.index()].up[0].0 } else { home.switch }
    }

    /// Links on a shortest path from `switch` to `dst`; none when there is no path.
    pub fn distance(&self, switch: SwitchId, dst: HostId) -> Option<u32> {
        let home = &self.homes[dst.index()];
        if !home.to_host {
            return None;
        }
        let distance = if home.switch == switch { 0 } else { self.distance[self.cell(switch, home)] };
        (distance != UNREACHED).then(|| distance + 1)
    }

    /// The number of hops that all shortest paths from `switch` to `dst` have in common at their end, the last link
    /// included. So much is known of a packet's path when switches choose freely among equal paths (Pyrrha, section
    /// 4.2). It is 0 if there is no path or if paths end on different links of the host, and 255 at most.
    ///
    /// `next` gives the switch at the other end of a port between switches.
    #[inline]
    pub fn shared_hops(&self, switch: SwitchId, dst: HostId, next: impl Fn(SwitchId, PortId) -> SwitchId) -> u32 {
        let home = &self.homes[dst.index()];
        let shared = self.shared.get_or_init(|| self.find_shared(next));
        // Columns do not distinguish parallel cables from one switch, so nothing is known.
        if home.switch == SEVERAL && self.several[home.port.index()].down.iter().any(|down| down.1.len() > 1) {
            return 0;
        }
        if home.to_host { u32::from(shared[self.cell(switch, home)]) } else { 0 }
    }

    fn find_shared(&self, next: impl Fn(SwitchId, PortId) -> SwitchId) -> Vec<u8> {
        let mut shared = vec![0; self.set_of.len()];
        for column in 0..self.columns {
            let cells = (column..shared.len()).step_by(self.columns);
            let reached = (0u32..).map(SwitchId).zip(cells).filter(|(_, cell)| self.distance[*cell] != UNREACHED);
            let mut reached: Vec<(SwitchId, usize)> = reached.collect();
            reached.sort_by_key(|(_, cell)| self.distance[*cell]);
            for (switch, cell) in reached {
                shared[cell] = self.shared_from(switch, column, &shared, &next);
            }
        }
        shared
    }

    /// The number of last hops that all paths from a switch have in common. All nearer switches must be settled.
    fn shared_from(
        &self,
        switch: SwitchId,
        column: usize,
        shared_by: &[u8],
        next: impl Fn(SwitchId, PortId) -> SwitchId,
    ) -> u8 {
        let cell = |switch: SwitchId| switch.index() * self.columns + column;
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
        // Paths to one rack share at least the last hop; paths to several racks may share none.
        let least = u8::from(column < self.racks.len());
        for &port in others {
            if shared == least {
                break;
            }
            // Follow any path of each port in parallel until the shared part of both begins and they have met, at the
            // latest at their end.
            let (mut a, mut b, mut left) = (first, next(switch, port), distance);
            shared = shared.min(shared_by[cell(b)]);
            let any = |switch| next(switch, candidates(switch)[0]);
            while left > 1 && (a != b || left > u32::from(shared)) {
                (a, b, left) = (any(a), any(b), left - 1);
            }
            shared = if a == b { shared.min(left as u8) } else { 0 };
        }
        shared
    }

    /// Links on a shortest path between two hosts; none when there is no path, 0 from a host to itself.
    pub fn hops(&self, src: HostId, dst: HostId) -> Option<u32> {
        if src == dst {
            return Some(0);
        }
        let home = &self.homes[src.index()];
        if home.switch == SEVERAL {
            let (_, uplink) = self.first_link(home, dst)?;
            return self.distance(self.several[home.port.index()].up[uplink].0, dst).map(|distance| distance + 1);
        }
        home.from_host.then(|| self.distance(home.switch, dst))?.map(|distance| distance + 1)
    }

    /// For a host with several links: the length of a shortest path to `dst` and the index of the first link that
    /// begins one.
    fn first_link(&self, home: &Home, dst: HostId) -> Option<(u32, usize)> {
        let up = self.several[home.port.index()].up.iter().enumerate().filter(|(_, up)| up.1);
        up.filter_map(|(port, up)| Some((self.distance(up.0, dst)?, port))).min()
    }

    /// The links of the fastest shortest path: the one that takes a single 1,500 B packet the least time, with the
    /// lowest ports on a tie. Empty if there is no path or if both hosts are the same. For a host with several links,
    /// the first link on a shortest path.
    pub fn path<'a>(&'a self, fabric: &'a Fabric, src: HostId, dst: HostId) -> impl Iterator<Item = LinkId> + 'a {
        let (from, to) = (&self.homes[src.index()], &self.homes[dst.index()]);
        let exists = self.hops(src, dst).is_some_and(|hops| hops > 0);
        let first = exists.then(|| match from.switch {
            SEVERAL => fabric.uplinks(src)[self.first_link(from, dst).map_or(0, |first| first.1)],
            _ => fabric.uplink(src),
        });
        let mut at = first.map(|uplink| fabric.switch_at(uplink));
        let rest = std::iter::from_fn(move || {
            let switch = at?;
            let last = to.switch == SEVERAL && self.distance[self.cell(switch, to)] == 0;
            let port = match to.switch {
                _ if last => *self.own_ports(to, switch).first()?,
                home if home == switch => to.port,
                _ => self.fastest[self.cell(switch, to)],
            };
            let link = fabric.out_link(switch, port);
            at = fabric.as_switch(fabric.link(link).to);
            Some(link)
        });
        first.into_iter().chain(rest)
    }

    /// The number of shortest paths from one host to another, at most [`u64::MAX`].
    pub fn count_paths(&self, fabric: &Fabric, src: HostId, dst: HostId) -> u64 {
        if self.hops(src, dst).is_none() {
            return 0;
        }
        // Switches in the order in which paths reach them, by distance.
        let up = fabric.uplinks(src).iter().enumerate().filter(|&(_, &uplink)| self.works(uplink));
        let ports = self.first_ports(src, dst, up.fold(0, |up, (port, _)| up | 1 << port));
        let mut reached: BTreeMap<SwitchId, u64> = BTreeMap::new();
        let first = fabric.uplinks(src).iter().enumerate().filter(|(port, _)| ports >> port & 1 == 1);
        for (_, &uplink) in first {
            *reached.entry(fabric.switch_at(uplink)).or_default() += 1;
        }
        let distance = reached.keys().next().and_then(|&start| self.distance(start, dst)).unwrap_or(0);
        for _ in 1..distance {
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
        let last = |(switch, paths): (SwitchId, u64)| paths.saturating_mul(self.next(switch, dst).len() as u64);
        reached.into_iter().map(last).fold(0, u64::saturating_add)
    }

    #[inline]
    fn cell(&self, switch: SwitchId, home: &Home) -> usize {
        switch.index() * self.columns + home.column as usize
    }
}

/// Builder of [`Routes`]: one search for each column, backwards from its switches.
struct Table {
    /// Links between switches that work in one direction at least: those of switch i are at `first[i]..first[i + 1]`.
    edges: Vec<Edge>,
    first: Vec<u32>,
    columns: usize,
    set_of: Vec<u32>,
    distance: Vec<u32>,
    fastest: Vec<PortId>,
    sets: Vec<(u32, u32)>,
    ports: Vec<PortId>,
    known: BTreeMap<Vec<PortId>, u32>,
}

/// A link from a switch to another: all that a search needs of it, side by side, since it looks at each link once for
/// each column.
struct Edge {
    /// Time of a single full packet including the processing after it, in picoseconds.
    cost: u64,
    to: SwitchId,
    port: PortId,
    global: bool,
    /// Whether it works, and whether the link back does.
    out: bool,
    back: bool,
}

impl Table {
    fn new(fabric: &Fabric, works: &[bool], columns: usize) -> Table {
        let (mut edges, mut first) = (Vec::new(), vec![0]);
        for switch in (0..fabric.switches).map(SwitchId) {
            for (port, &id) in fabric.ports[fabric.switch_node(switch).index()].iter().enumerate() {
                let link = fabric.link(id);
                let Some(to) = fabric.as_switch(link.to) else { continue };
                let cost = link.rate.transmit(1500).ps().saturating_add(fabric.delay(id).ps());
                let (out, back) = (works[id.index()], works[Fabric::reverse(id).index()]);
                edges.push(Edge { cost, to, port: PortId::from(port), global: link.global, out, back });
            }
            first.push(edges.len() as u32);
        }
        let cells = fabric.switches as usize * columns;
        Table {
            edges,
            first,
            columns,
            set_of: vec![0; cells],
            distance: vec![UNREACHED; cells],
            fastest: vec![PortId(0); cells],
            sets: vec![(0, 0)],
            ports: Vec::new(),
            known: BTreeMap::from([(Vec::new(), 0)]),
        }
    }

    fn fill(&mut self, column: usize, racks: &[SwitchId]) {
        let switches = self.first.len() - 1;
        let mut length = vec![Length::NONE; switches];
        let mut time = vec![u64::MAX; switches];
        let mut frontier = Frontier::default();
        for rack in racks {
            (length[rack.index()], time[rack.index()]) = (Length::ZERO, 0);
            frontier.push(Length::ZERO, rack.0, false);
        }
        let mut candidates = Vec::new();
        while let Some((here, switch)) = frontier.pop() {
            let switch = SwitchId(switch);
            if here != length[switch.index()] {
                continue;
            }
            // When a switch leaves the frontier all nearer switches are settled, so its ports are too.
            candidates.clear();
            let mut fastest = (u64::MAX, PortId(0));
            let edges = self.first[switch.index()] as usize..self.first[switch.index() + 1] as usize;
            for edge in &self.edges[edges] {
                let Edge { cost, to: other, port, global, out, back } = *edge;
                if back && here.and(global) < length[other.index()] {
                    length[other.index()] = here.and(global);
                    frontier.push(here.and(global), other.0, global);
                }
                if out && length[other.index()].and(global) == here {
                    candidates.push(port);
                    fastest = fastest.min((cost.saturating_add(time[other.index()]), port));
                }
            }
            if here != Length::ZERO {
                time[switch.index()] = fastest.0;
            }
            let set = self.intern(&candidates);
            let cell = switch.index() * self.columns + column;
            (self.set_of[cell], self.distance[cell], self.fastest[cell]) = (set, here.links, fastest.1);
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
