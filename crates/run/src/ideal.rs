//! The time of a flow alone in the network: the denominator of slowdown.

use catalogue::Transport;
use fabric::{Fabric, Quotient};
use node::cpu::Costs;
use rustc_hash::FxHashMap;
use units::{Duration, HostId, LinkId, PerByte, Rate};

use crate::{FlowInfo, HEAD_BYTES};
use scenario::{Completion, Scenario};

/// Completion times of flows that are alone in the network and sent at line rate from their first bit on, over all
/// shortest paths at once: the least that any transport under any load balancer could reach, and so the same for all of
/// them, but for those whose packets have headers of another length ([`Ideal::with_header`]). (Not the least if it goes
/// other ways: around a failure, in a grid, there may be more of them than there were shortest ones.)
///
/// A message is cut into N full packets and a last one. On a single path, at link j packet n begins to leave when it
/// has been seen there and the packet before it has gone, and has gone when all of it has been sent and has come in:
///
/// - begin_j(n) = max(seen_j(n), gone_j(n-1))
/// - gone_j(n) = max(begin_j(n) + t_j(n), gone_{j-1}(n) + l_j)
/// - seen_{j+1}(n) = begin_j(n) + h_j(n) + l_{j+1}
///
/// with t_j the transmission time, l_j the propagation and processing before link j, and h_j the time until the next
/// switch may forward: t_j, or under cut-through that of the packet's head. For the full packets the first line is
/// begin_j(N) = begin_j(1) + (N-1) max_{i<=j} t_i in closed form, since h_j <= t_j.
///
/// Where w_j links lie side by side at hop j, one of them carries every w_j-th packet at least: there (N-1) t_j becomes
/// floor((N-1)/w_j) t_j. From then on the last packet, if it is shorter, may overtake the others. A link that all
/// share is then busy for as long as all of them take, from when it sees the first of them, or this one. With
/// completion "acknowledged", a control packet's way back is added.
///
/// The links of a host lie side by side too, those of them that lie on shortest paths: as everywhere, what counts is
/// what could be reached and not what a load balancer does. So a message that ECMP sends by one of two links has a
/// slowdown of about 2, and one that is sprayed over both a slowdown of 1. At such a first hop packets leave in order,
/// so that the last one is not earlier than others.
///
/// Where software takes time (`host.cpu`) the stages of a lone message are added: those of a message and of its last
/// packet, and for the packets before it by how much the slowest stage takes longer than the slowest link. Batches are
/// full then, and no two stages share a core, so that this is exact for a packet and the least for more.
pub struct Ideal<'a> {
    fabric: &'a Fabric,
    quotient: &'a Quotient,
    scenario: &'a Scenario,
    /// Headers of each packet.
    header_bytes: u64,
    /// Times of software, if it takes any.
    costs: Option<Costs>,
    /// Whether hosts have several links.
    several: bool,
    /// Per pair of sets of racks, where hosts have several links, the way between them.
    ways: FxHashMap<[Vec<usize>; 2], Way>,
    /// Per pair of racks, which of `shapes` the way between them has.
    shape_of: FxHashMap<(u32, u32), u32>,
    shapes: Vec<Vec<Hop>>,
    known: FxHashMap<Vec<HopKey>, u32>,
}

#[derive(Clone, Copy)]
struct Hop {
    rate: Rate,
    per_byte: PerByte,
    /// Propagation and processing after the link.
    after: Duration,
    /// Links side by side.
    width: u32,
}

/// The way between hosts with several links.
struct Way {
    /// Hops between switches.
    hops: Vec<Hop>,
    /// The racks that shortest paths begin at, and those that they end at.
    ends: [Vec<usize>; 2],
}

type HopKey = (Rate, Duration, u32);

/// Bytes of headers in a data packet of a transport: its own number if its paper states one, else the scenario's.
pub fn data_header_bytes(scenario: &Scenario, transport: &Transport) -> u64 {
    transport.as_scheme().header_bytes().map_or(scenario.host.header.get(), u64::from)
}

impl<'a> Ideal<'a> {
    /// For flows of a scenario on its fabric.
    pub fn new(fabric: &'a Fabric, quotient: &'a Quotient, scenario: &'a Scenario) -> Ideal<'a> {
        let (shape_of, known) = (FxHashMap::default(), FxHashMap::default());
        let header_bytes = scenario.host.header.get();
        let (several, ways) = (fabric.several_links().is_some(), FxHashMap::default());
        let costs = scenario.host.cpu.map(|cpu| cpu.costs(scenario.host.mtu.get()));
        Ideal { fabric, quotient, scenario, header_bytes, costs, several, ways, shape_of, shapes: Vec::new(), known }
    }

    /// The same for packets with headers of this many bytes, where a transport has its own.
    pub fn with_header(self, header_bytes: u64) -> Ideal<'a> {
        Ideal { header_bytes, ..self }
    }

    /// One for each transport: its packets may have headers of their own length.
    pub fn by_transport(
        fabric: &'a Fabric,
        quotient: &'a Quotient,
        scenario: &'a Scenario,
        transports: &[Transport],
    ) -> Vec<Ideal<'a>> {
        let of = |transport| Ideal::new(fabric, quotient, scenario).with_header(data_header_bytes(scenario, transport));
        transports.iter().map(of).collect()
    }

    /// Completion time of a flow in picoseconds, by that of its transport.
    pub fn of(by_transport: &mut [Ideal<'a>], flow: &FlowInfo) -> u64 {
        by_transport[usize::from(flow.transport)].completion(flow.src, flow.dst, flow.bytes).ps()
    }

    /// Completion time of a message of `bytes`, as the scenario defines completion.
    pub fn completion(&mut self, src: HostId, dst: HostId, bytes: u64) -> Duration {
        let delivery = self.delivery(src, dst, bytes);
        match self.scenario.measure.completion {
            Completion::Delivered => delivery,
            Completion::Acknowledged => {
                // Transports answer before an application has the message.
                let reading = self.costs.map_or(Duration::ZERO, |costs| costs.of_reading());
                let arrived = delivery.ps().saturating_sub(reading.ps());
                Duration::from_ps(arrived.saturating_add(self.answer(src, dst).ps()).max(delivery.ps()))
            }
        }
    }

    /// Time until the receiver has the last byte of a message.
    pub fn delivery(&mut self, src: HostId, dst: HostId, bytes: u64) -> Duration {
        let hops = self.hops(src, dst);
        self.with_software(self.train(&hops, bytes), &hops, bytes)
    }

    /// Time of the control packet by which the receiver at `dst` answers the sender.
    pub fn answer(&mut self, src: HostId, dst: HostId) -> Duration {
        let hops = self.hops(dst, src);
        let software = self.costs.map_or(Duration::ZERO, |costs| costs.of_packet(self.header_bytes));
        Duration::from_ps(self.train(&hops, 0).ps().saturating_add(software.ps()))
    }

    /// Time until the receiver has the last byte of a message all of whose packets take the same links.
    pub fn delivery_over(&self, links: &[LinkId], bytes: u64) -> Duration {
        let last = links.len() - 1;
        let hop = |(index, &link)| if index == 0 || index == last { self.end_hop(link) } else { self.hop(link) };
        let hops: Vec<Hop> = links.iter().enumerate().map(hop).collect();
        self.with_software(self.train(&hops, bytes), &hops, bytes)
    }

    /// The time of a message over hops, with that of software at both ends.
    fn with_software(&self, network: Duration, hops: &[Hop], bytes: u64) -> Duration {
        let Some(costs) = &self.costs else { return network };
        let (mtu, header) = (self.scenario.host.mtu.get(), self.header_bytes);
        let full_before = bytes.saturating_sub(1) / (mtu - header);
        let last = header + bytes - full_before * (mtu - header);
        let slowest = hops.iter().map(|hop| hop.per_byte.transmit(mtu as u32).ps() / u64::from(hop.width)).max();
        let link = Duration::from_ps(slowest.unwrap_or_default());
        let more = u128::from((costs.of_message() + costs.of_packet(last)).ps());
        let more = more + costs.behind(full_before.into(), mtu, link);
        Duration::from_ps(u64::try_from(more).unwrap_or(u64::MAX).saturating_add(network.ps()))
    }

    /// Bits per second at the narrowest hop between two hosts, all of its links together.
    pub fn narrowest_bps(&mut self, src: HostId, dst: HostId) -> f64 {
        let of = |hop: &Hop| hop.rate.bps() as f64 * f64::from(hop.width);
        self.hops(src, dst).iter().map(of).fold(f64::INFINITY, f64::min)
    }

    fn hops(&mut self, src: HostId, dst: HostId) -> Vec<Hop> {
        if self.several {
            return self.hops_between_several(src, dst);
        }
        let (from, to) = (self.quotient.rack_of(self.fabric, src), self.quotient.rack_of(self.fabric, dst));
        let shape = self.shape(from, to);
        let mut hops = Vec::with_capacity(self.shapes[shape as usize].len() + 2);
        hops.push(self.end_hop(self.fabric.uplink(src)));
        hops.extend_from_slice(&self.shapes[shape as usize]);
        hops.push(self.end_hop(Fabric::reverse(self.fabric.uplink(dst))));
        hops
    }

    fn hops_between_several(&mut self, src: HostId, dst: HostId) -> Vec<Hop> {
        let racks = [src, dst].map(|host| self.quotient.racks_of(self.fabric, host));
        if !self.ways.contains_key(&racks) {
            let way = self.way(&racks);
            self.ways.insert(racks.clone(), way);
        }
        let Way { hops, ends: [starts, ends] } = &self.ways[&racks];
        let links = |host, racks: &[usize]| {
            let class = |&uplink: &LinkId| self.quotient.class_of(self.fabric.switch_at(uplink));
            let uplinks = self.fabric.uplinks(host).iter().copied();
            uplinks.filter(|uplink| racks.contains(&class(uplink))).collect::<Vec<_>>()
        };
        let down = links(dst, ends).into_iter().map(Fabric::reverse).collect();
        let mut way = vec![self.side_by_side(links(src, starts))];
        way.extend_from_slice(hops);
        way.push(self.side_by_side(down));
        way
    }

    fn way(&self, [from, to]: &[Vec<usize>; 2]) -> Way {
        let (widths, ends) = self.quotient.widths(from, to);
        let nearest = self.quotient.nearest(from, to);
        let pairs = ends[0].iter().flat_map(|&from| ends[1].iter().map(move |&to| (from, to)));
        let mut pairs = pairs.filter(|&(from, to)| self.quotient.distance(from, to) == nearest);
        let (from, to) = pairs.next().expect("some racks are the nearest");
        let links = self.quotient.path(from, to).map(|bundle| self.quotient.bundles()[bundle].links[0]);
        Way { hops: links.zip(widths).map(|(link, width)| Hop { width, ..self.hop(link) }).collect(), ends }
    }

    /// Links of a host that lie side by side, as fast as the fastest of them.
    fn side_by_side(&self, links: Vec<LinkId>) -> Hop {
        let &fastest = links.iter().max_by_key(|link| self.fabric.link(**link).rate).expect("a path begins and ends");
        Hop { width: links.len() as u32, ..self.end_hop(fastest) }
    }

    fn shape(&mut self, from: usize, to: usize) -> u32 {
        let racks = (from as u32, to as u32);
        if let Some(&shape) = self.shape_of.get(&racks) {
            return shape;
        }
        let links = self.quotient.path(from, to).map(|bundle| self.quotient.bundles()[bundle].links[0]);
        let (widths, _) = self.quotient.widths(&[from], &[to]);
        let key = |(link, width)| (self.fabric.link(link).rate, self.fabric.delay(link), width);
        let key: Vec<HopKey> = links.zip(widths).map(key).collect();
        let step = self.scenario.transmission_step;
        let hop =
            |&(rate, after, width): &HopKey| Hop { rate, per_byte: rate.per_byte().in_steps_of(step), after, width };
        let hops: Vec<Hop> = key.iter().map(hop).collect();
        let next = self.shapes.len() as u32;
        let shape = *self.known.entry(key).or_insert(next);
        if shape == next {
            self.shapes.push(hops);
        }
        self.shape_of.insert(racks, shape);
        shape
    }

    fn end_hop(&self, link: LinkId) -> Hop {
        let hop = self.hop(link);
        Hop { after: hop.after + self.scenario.host.delay, ..hop }
    }

    fn hop(&self, link: LinkId) -> Hop {
        let rate = self.fabric.link(link).rate;
        let per_byte = rate.per_byte().in_steps_of(self.scenario.transmission_step);
        Hop { rate, per_byte, after: self.fabric.delay(link), width: 1 }
    }

    /// Arrival of the last bit of a message of `bytes` (0: a lone control packet) over `hops`.
    fn train(&self, hops: &[Hop], bytes: u64) -> Duration {
        let (mtu, header) = (self.scenario.host.mtu.get(), self.header_bytes);
        let payload = mtu - header;
        let full_before = bytes.saturating_sub(1) / payload;
        let last = header + (bytes - full_before * payload);
        // Without overflow: sizes, rates and delays come from outside.
        let wide = |time: Duration| u128::from(time.ps());
        let full_before = u128::from(full_before);
        // Of the full packets: when the first begins, how much later the last does, when the last has gone.
        let (mut first_begin, mut spread, mut full_gone) = (0, 0, 0);
        // Of the last packet, if it overtakes where it can; and when all have gone.
        let (mut last_seen, mut last_gone, mut all_gone, mut overtakes) = (0, 0, 0, false);
        for (index, hop) in hops.iter().enumerate() {
            let sent = |bytes: u64| wide(hop.per_byte.transmit(bytes as u32));
            let seen = |bytes: u64| sent(if self.scenario.switch.cut_through { bytes.min(HEAD_BYTES) } else { bytes });
            let after = wide(hop.after);
            overtakes |= hop.width > 1;
            let (mut last_begin, mut shared_until) = (last_seen, 0);
            if full_before > 0 {
                spread = spread.max((full_before - 1) / u128::from(hop.width) * sent(mtu));
                full_gone = full_gone.max(first_begin + spread + sent(mtu));
                match hop.width {
                    width if index == 0 => last_begin = full_before / u128::from(width) * sent(mtu),
                    _ if !overtakes => last_begin = last_begin.max(full_gone),
                    1 => shared_until = first_begin.min(last_seen) + full_before * sent(mtu) + sent(last),
                    _ => {}
                }
                first_begin += seen(mtu) + after;
            }
            last_gone = (last_begin + sent(last)).max(last_gone) + after;
            last_seen = last_begin + seen(last) + after;
            // Whichever packet left the hop before at the end is no shorter than the last one.
            let onward = if self.scenario.switch.cut_through { 0 } else { sent(last) };
            all_gone = last_gone.max(full_gone.max(all_gone + onward).max(shared_until) + after);
            full_gone += after;
        }
        Duration::from_ps(u64::try_from(all_gone).unwrap_or(u64::MAX))
    }
}
