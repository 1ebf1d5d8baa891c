use std::collections::BTreeMap;

use petgraph::algo::dinics;
use petgraph::graph::DiGraph;
use units::{Duration, HostId, LinkId, Rate, SwitchId};

use crate::{Fabric, Link, Routes};

/// What an idle fabric gives: times and capacities that depend on nothing but the graph.
impl Fabric {
    /// Time from the first bit of a lone packet leaving `src` to its last bit reaching `dst`: over the links of the
    /// fastest shortest path, transmission and propagation (store and forward), and the processing of each switch. The
    /// hosts' own delays are not the fabric's and not counted. None when there is no path.
    pub fn lone_packet_time(&self, routes: &Routes, src: HostId, dst: HostId, bytes: u64) -> Option<Duration> {
        routes.hops(src, dst)?;
        Some(total(routes.path(self, src, dst).map(|link| self.hop_time(link, bytes))))
    }

    /// The longest time over all pairs of hosts for a packet of `data_bytes` one way and one of `answer_bytes` back,
    /// each alone in the network. `routes` are those of the whole fabric: what has no path would count as no time.
    pub fn max_rtt(&self, routes: &Routes, data_bytes: u64, answer_bytes: u64) -> Duration {
        self.max_rtts(routes, data_bytes, answer_bytes).into_values().max().unwrap_or(Duration::ZERO)
    }

    /// The same for each number of switches that lie between two hosts.
    ///
    /// A path is (host link, links between racks, host link), so it suffices to look at one pair of hosts a pair of
    /// racks: in each, the slowest to send and the slowest to receive.
    pub fn max_rtts(&self, routes: &Routes, data_bytes: u64, answer_bytes: u64) -> BTreeMap<u32, Duration> {
        let forth: Vec<Duration> = (0..self.links.len()).map(|link| self.hop_time(link.into(), data_bytes)).collect();
        let back: Vec<Duration> = (0..self.links.len()).map(|link| self.hop_time(link.into(), answer_bytes)).collect();
        let time = |times: &[Duration], src, dst| total(routes.path(self, src, dst).map(|link| times[link.index()]));
        let round = |src, dst| total([time(&forth, src, dst), time(&back, dst, src)]);
        let (up, down) = (|host| self.uplink(host).index(), |host| Fabric::reverse(self.uplink(host)).index());
        let mut racks: BTreeMap<SwitchId, Vec<HostId>> = BTreeMap::new();
        for host in (0..self.hosts).map(HostId) {
            racks.entry(self.rack_of(host)).or_default().push(host);
        }
        let ends: Vec<[Vec<HostId>; 2]> = racks
            .into_values()
            .map(|hosts| {
                let as_sender = |host: &HostId| total([forth[up(*host)], back[down(*host)]]);
                let as_receiver = |host: &HostId| total([forth[down(*host)], back[up(*host)]]);
                [two_slowest(&hosts, as_sender), two_slowest(&hosts, as_receiver)]
            })
            .collect();
        let mut longest = BTreeMap::new();
        for (from, [senders, _]) in ends.iter().enumerate() {
            for (to, [_, receivers]) in ends.iter().enumerate() {
                // Within a rack the slowest sender may be the slowest receiver too: then the second of either is next.
                let depth = if from == to { 2 } else { 1 };
                for &src in senders.iter().take(depth) {
                    for &dst in receivers.iter().take(depth).filter(|&&dst| dst != src) {
                        let switches = routes.hops(src, dst).map_or(0, |links| links - 1);
                        let known = longest.entry(switches).or_insert(Duration::ZERO);
                        *known = round(src, dst).max(*known);
                    }
                }
            }
        }
        longest
    }

    /// How many links lie side by side at each hop of the shortest paths between two hosts: the most that a message can
    /// be spread over there. Empty when there is no path.
    pub fn widths(&self, routes: &Routes, src: HostId, dst: HostId) -> Vec<u32> {
        let hops = routes.hops(src, dst).unwrap_or(0);
        let mut widths = vec![1; hops.min(1) as usize];
        let mut level = vec![self.rack_of(src)];
        for _ in 1..hops {
            let onward = |&switch: &SwitchId| routes.next(switch, dst).iter().map(move |&port| (switch, port));
            let links: Vec<LinkId> =
                level.iter().flat_map(onward).map(|(switch, port)| self.out_link(switch, port)).collect();
            widths.push(links.len() as u32);
            level = links.iter().filter_map(|&link| self.as_switch(self.link(link).to)).collect();
            level.sort_unstable();
            level.dedup();
        }
        widths
    }

    /// The bisection: what the first half of the hosts, by number, can send to the second half at once if routing is
    /// ideal (a maximum flow, hence a minimum cut). In a regular fabric, where hosts are numbered rack by rack, no other
    /// halves would get less.
    pub fn bisection(&self) -> Rate {
        let mut graph: DiGraph<(), u64> = DiGraph::new();
        let switches: Vec<_> = (0..self.switches).map(|_| graph.add_node(())).collect();
        let (source, sink) = (graph.add_node(()), graph.add_node(()));
        // Hosts of one rack and half are one edge: the flow is the same and the graph much smaller.
        let mut halves = vec![[0u64; 2]; switches.len()];
        for host in (0..self.hosts).map(HostId) {
            halves[self.rack_of(host).index()][usize::from(host.0 >= self.hosts / 2)] += self.host_rate(host).bps();
        }
        for (&switch, [first, second]) in switches.iter().zip(halves) {
            graph.add_edge(source, switch, first);
            graph.add_edge(switch, sink, second);
        }
        for link in &self.links {
            if let (Some(from), Some(to)) = (self.as_switch(link.from), self.as_switch(link.to)) {
                graph.add_edge(switches[from.index()], switches[to.index()], link.rate.bps());
            }
        }
        Rate::from_bps(dinics(&graph, source, sink).0)
    }

    fn hop_time(&self, link: LinkId, bytes: u64) -> Duration {
        let Link { rate, propagation, .. } = *self.link(link);
        total([rate.transmit(bytes), propagation, self.delay_after(link)])
    }
}

/// A sum that stops at the longest time there is: rates and sizes come from outside.
fn total(times: impl IntoIterator<Item = Duration>) -> Duration {
    times.into_iter().fold(Duration::ZERO, |sum, time| Duration::from_ps(sum.ps().saturating_add(time.ps())))
}

fn two_slowest(hosts: &[HostId], time: impl Fn(&HostId) -> Duration) -> Vec<HostId> {
    let mut sorted = hosts.to_vec();
    sorted.sort_by_key(|host| std::cmp::Reverse(time(host)));
    sorted.truncate(2);
    sorted
}
