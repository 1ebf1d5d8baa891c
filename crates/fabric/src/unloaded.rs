use std::collections::BTreeMap;

use petgraph::algo::dinics;
use petgraph::graph::DiGraph;
use units::{Duration, HostId, LinkId, Rate};

use crate::{Fabric, Link, Quotient, Routes};

/// Number of racks whose columns of the path table fit into a cache together.
const SIDE_BY_SIDE: usize = 32;

/// Properties of an idle fabric: times and capacities that depend only on the graph.
impl Fabric {
    /// Time from the first bit of a single packet leaving `src` to its last bit reaching `dst`, over the fastest
    /// shortest path: transmission and propagation on each link (store and forward) and processing in each switch.
    /// Delays of hosts are not included. `None` if there is no path.
    pub fn lone_packet_time(&self, routes: &Routes, src: HostId, dst: HostId, bytes: u64) -> Option<Duration> {
        routes.hops(src, dst)?;
        Some(total(routes.path(self, src, dst).map(|link| self.hop_time(link, bytes))))
    }

    /// The longest round trip over all pairs of hosts: a packet of `data_bytes` one way and one of `answer_bytes` back,
    /// with no other traffic.
    pub fn max_rtt(&self, quotient: &Quotient, data_bytes: u64, answer_bytes: u64) -> Duration {
        self.max_rtts(quotient, data_bytes, answer_bytes).into_values().max().unwrap_or(Duration::ZERO)
    }

    /// The longest round trip by the number of switches between two hosts.
    ///
    /// A path consists of the first host link, links between racks and the last host link. So for each pair of racks it
    /// suffices to look at the hosts with the slowest links. A host with several links belongs to several racks.
    pub fn max_rtts(&self, quotient: &Quotient, data_bytes: u64, answer_bytes: u64) -> BTreeMap<u32, Duration> {
        let between = |bytes| {
            let bundles = quotient.bundles().iter();
            let times: Vec<Duration> = bundles.map(|bundle| self.hop_time(bundle.links[0], bytes)).collect();
            move |from, to| total(quotient.path(from, to).map(|bundle| times[bundle]))
        };
        let (forth, back) = (between(data_bytes), between(answer_bytes));
        let up = |link: LinkId, bytes| self.hop_time(link, bytes);
        let down = |link: LinkId, bytes| self.hop_time(Fabric::reverse(link), bytes);
        // Hosts, grouped by the racks that they are attached to and by the one of these where a path begins or ends.
        let mut ends: BTreeMap<(Vec<usize>, usize), Vec<HostId>> = BTreeMap::new();
        for host in (0..self.hosts).map(HostId) {
            let racks = quotient.racks_of(self, host);
            for &rack in &racks {
                ends.entry((racks.clone(), rack)).or_default().push(host);
            }
        }
        let slowest = |((racks, rack), hosts): ((Vec<usize>, usize), Vec<HostId>)| {
            let there = |link: &&LinkId| quotient.class_of(self.switch_at(**link)) == rack;
            let at_rack = |host: HostId, time: &dyn Fn(LinkId) -> Duration| {
                self.uplinks(host).iter().filter(there).map(|&link| time(link)).max().unwrap_or(Duration::ZERO)
            };
            // The answer may use another link.
            let any = |host: HostId, time: &dyn Fn(LinkId) -> Duration| {
                self.uplinks(host).iter().map(|&link| time(link)).max().unwrap_or(Duration::ZERO)
            };
            let as_sender = |&host: &HostId| {
                total([at_rack(host, &|link| up(link, data_bytes)), any(host, &|link| down(link, answer_bytes))])
            };
            let as_receiver = |&host: &HostId| {
                total([at_rack(host, &|link| down(link, data_bytes)), any(host, &|link| up(link, answer_bytes))])
            };
            (rack, racks, two_slowest(&hosts, as_sender), two_slowest(&hosts, as_receiver))
        };
        let ends: Vec<_> = ends.into_iter().map(slowest).collect();
        let mut longest = BTreeMap::new();
        // In blocks, so that the paths to a block's racks stay in the cache.
        for block in (0..ends.len()).step_by(SIDE_BY_SIDE) {
            for (to, among, _, receivers) in &ends {
                for (from, of, senders, _) in ends.iter().skip(block).take(SIDE_BY_SIDE) {
                    let (from, to) = (*from, *to);
                    if (of.len() > 1 || among.len() > 1) && quotient.distance(from, to) > quotient.nearest(of, among) {
                        continue; // no shortest path between such hosts
                    }
                    let fabric = if from == to { Duration::ZERO } else { total([forth(from, to), back(to, from)]) };
                    // Within a rack the slowest sender may be the slowest receiver too. Then the second slowest of
                    // either counts.
                    let depth = if from == to { 2 } else { 1 };
                    for &(src, sent) in senders.iter().take(depth) {
                        for &(_, received) in receivers.iter().take(depth).filter(|&&(dst, _)| dst != src) {
                            let known = longest.entry(quotient.distance(from, to) + 1).or_insert(Duration::ZERO);
                            *known = total([sent, fabric, received]).max(*known);
                        }
                    }
                }
            }
        }
        longest
    }

    /// The bisection bandwidth: what the first half of the hosts, by number, can send to the second half under ideal
    /// routing (a maximum flow, hence a minimum cut). In a regular fabric, where hosts are numbered rack by rack, no
    /// other halves would get less.
    pub fn bisection(&self, quotient: &Quotient) -> Rate {
        let mut graph: DiGraph<(), u64> = DiGraph::new();
        let classes: Vec<_> = (0..quotient.classes()).map(|_| graph.add_node(())).collect();
        let (source, sink) = (graph.add_node(()), graph.add_node(()));
        // Hosts of one rack and half are one edge, which keeps the flow and makes the graph much smaller.
        let mut halves = vec![[0u64; 2]; quotient.racks()];
        for host in (0..self.hosts).map(HostId) {
            for &uplink in self.uplinks(host) {
                let rack = quotient.class_of(self.switch_at(uplink));
                halves[rack][usize::from(host.0 >= self.hosts / 2)] += self.link(uplink).rate.bps();
            }
        }
        for (&rack, [first, second]) in classes.iter().zip(halves) {
            graph.add_edge(source, rack, first);
            graph.add_edge(rack, sink, second);
        }
        for bundle in quotient.bundles() {
            let rate = self.link(bundle.links[0]).rate.bps() * bundle.links.len() as u64;
            graph.add_edge(classes[bundle.from], classes[bundle.to], rate);
        }
        Rate::from_bps(dinics(&graph, source, sink).0)
    }

    /// Time of a single packet over a link, with the processing at its end.
    pub(crate) fn hop_time(&self, link: LinkId, bytes: u64) -> Duration {
        let Link { rate, propagation, .. } = *self.link(link);
        total([rate.transmit(bytes), propagation, self.delay_after(link)])
    }
}

/// A saturating sum: rates and sizes come from outside.
fn total(times: impl IntoIterator<Item = Duration>) -> Duration {
    times.into_iter().fold(Duration::ZERO, |sum, time| Duration::from_ps(sum.ps().saturating_add(time.ps())))
}

fn two_slowest(hosts: &[HostId], time: impl Fn(&HostId) -> Duration) -> Vec<(HostId, Duration)> {
    let mut sorted: Vec<(HostId, Duration)> = hosts.iter().map(|host| (*host, time(host))).collect();
    sorted.sort_by_key(|&(_, time)| std::cmp::Reverse(time));
    sorted.truncate(2);
    sorted
}
