//! The NIC of a host with several links: one port for each link, each with its own flow control and queues.
//!
//! The port of a packet is chosen when the endpoint hands it over, among the ports whose links are up and begin a
//! shortest path to its destination. The choice uses the balancing of its transport, as in a switch ([`Balancer`]),
//! with a seed of the host's own. Under a hash, a flow stays on one port. Otherwise a port with a free transmitter is
//! preferred, so that nothing waits in the NIC while a port could send.
//!
//! With one link the NIC has no queue: it asks for a packet when it can send one. With several links, the packet that
//! it gets may be for a busy port and waits in that port's *ring*, urgent classes first. A ring is short ([`RING`]),
//! because its packets were chosen too early. An endpoint that asks the gate by flow is told that a flow may not send
//! while the ring of its port is full. Other endpoints are asked for nothing, for any port, while a ring has twice as
//! much; so their flows may wait for another flow of the same host that fills another port. Packets that flow control
//! holds wait beside the ring and do not count.
//!
//! A host sees at once whether its own links are up. When a link goes down, the packets at its port move to other
//! ports. The host learns of failures beyond from the switches' tables, so after `reroute_delay`.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::balance::{Balancer, hashed_choice, switch_seed};
use crate::link::Cause;
use crate::{Balancing, NicControl, Packet, Walk};
use fabric::Routes;
use units::{Duration, FlowId, HostId, PortId, Stream, SwitchId, Time};

use crate::nic::Nic;

/// The ports of a host that a flow may use, as bits; none if it may use all.
pub type Bound = Arc<dyn Fn(FlowId, HostId) -> Option<u64> + Send + Sync>;

/// Most packets in the ring of a port.
pub const RING: usize = 16;

/// The ports of a host with several links, with the packets that wait for each.
#[derive(node::State)]
#[state(given(()), first(self.tell(walk)))]
pub struct MultihomedNic {
    host: HostId,
    routes: Arc<Routes>,
    /// By transport: how packets choose a port.
    #[state(built("it never changes"))]
    balancing: Vec<Balancing>,
    balancers: Vec<Balancer>,
    /// To which ports flows are bound, if some are.
    #[state(built("it never changes"))]
    bound: Option<Bound>,
    /// Seed of its hash.
    seed: u64,
    #[state(ports)]
    ports: Vec<Port>,
    /// The ports whose links are up, as bits.
    up: u64,
    /// A number that changes when a ring empties and when flows may change ports.
    #[state(count)]
    epoch: u32,
}

#[derive(node::State)]
#[state(given(()))]
struct Port {
    nic: Option<Nic>,
    /// Packets that may be sent.
    ring: VecDeque<Packet>,
    /// Packets of paused classes.
    parked: VecDeque<Packet>,
    /// Whether the ring has been full and is still more than half full.
    crowded: bool,
}

impl MultihomedNic {
    /// The NIC of a host whose ports have these flow controls, in a fabric of `switches` switches and a run with this
    /// seed.
    pub fn new(
        host: HostId,
        nics: Vec<Option<Box<dyn NicControl>>>,
        routes: Arc<Routes>,
        balancing: Vec<Balancing>,
        switches: u32,
        seed: u64,
    ) -> MultihomedNic {
        // The host counts as another switch, so that its hash is independent of theirs.
        let own = switch_seed(seed, SwitchId(switches + host.0));
        let random = |index| Stream::new(seed, (index as u64) << 32 | u64::from(host.0), "port");
        let balancer = |(index, &balancing): (usize, &Balancing)| Balancer::new(balancing, own, random(index));
        let up = u64::MAX >> (64 - nics.len());
        let port = |nic: Option<Box<dyn NicControl>>| Port {
            nic: nic.map(Nic::new),
            ring: VecDeque::new(),
            parked: VecDeque::new(),
            crowded: false,
        };
        MultihomedNic {
            host,
            routes,
            balancers: balancing.iter().enumerate().map(balancer).collect(),
            balancing,
            bound: None,
            seed: own,
            ports: nics.into_iter().map(port).collect(),
            up,
            epoch: 0,
        }
    }

    /// The same with flows that are bound to ports.
    #[must_use]
    pub fn binding(self, bound: Bound) -> MultihomedNic {
        MultihomedNic { bound: Some(bound), ..self }
    }

    /// The next waiting packet for one of the `free` ports.
    pub fn next(&mut self, free: u64) -> Option<(PortId, Packet)> {
        bits(free).find_map(|port| Some((PortId(port), self.ports[port as usize].next(&mut self.epoch)?)))
    }

    /// Whether a port has so many packets that endpoints should be asked for nothing.
    pub fn full(&self) -> bool {
        self.ports.iter().any(|port| port.ring.len() >= 2 * RING)
    }

    /// Takes a packet from an endpoint. It leaves at once by one of the `free` ports, or waits.
    pub fn take_in(&mut self, now: Time, packet: Packet, free: u64) -> Option<(PortId, Packet)> {
        let port = self.choose(now, &packet, free);
        let packet = self.ports[port as usize].admit(packet)?;
        if free >> port & 1 == 1 {
            return Some((PortId(port), packet));
        }
        self.ports[port as usize].queue(packet);
        None
    }

    /// The ports that a flow may take to a host: those to which it is bound, if a shortest path begins at one.
    fn among(&self, flow: FlowId, dst: HostId) -> u64 {
        let all = self.candidates(dst);
        let bound = self.bound.as_ref().and_then(|bound| bound(flow, self.host)).map(|bound| bound & all);
        bound.filter(|&some| some != 0).unwrap_or(all)
    }

    /// The ports where a shortest path to a host begins. If there are none, one port, where the packet is lost.
    fn candidates(&self, dst: HostId) -> u64 {
        match (self.routes.first_ports(self.host, dst, self.up), self.up) {
            (0, 0) => 1,
            (0, up) => up & up.wrapping_neg(),
            (ports, _) => ports,
        }
    }

    /// The port of a flow whose packets choose by a hash.
    fn hashed(&self, packet: &Packet, among: u64) -> Option<u32> {
        if among.count_ones() == 1 {
            return Some(among.trailing_zeros());
        }
        let balancing = self.balancing[usize::from(packet.transport)];
        Some(nth(among, hashed_choice(balancing, packet, self.seed, among.count_ones() as usize)?))
    }

    fn choose(&mut self, now: Time, packet: &Packet, free: u64) -> u32 {
        let among = self.among(packet.flow, packet.dst);
        if let Some(port) = self.hashed(packet, among) {
            return port;
        }
        let lets =
            bits(among).filter(|&port| self.ports[port as usize].lets(packet)).fold(0, |set, port| set | 1 << port);
        // A flowlet stays on its port even while another is free.
        let free = if self.balancing[usize::from(packet.transport)].by_flowlet() { lets } else { free };
        let among = [lets & free, lets, among].into_iter().find(|&set| set != 0).unwrap_or(among);
        if among.count_ones() == 1 {
            return among.trailing_zeros();
        }
        let group = self.routes.group(packet.dst);
        let waiting = |index| self.ports[nth(among, index) as usize].ring_bytes();
        let balancer = &mut self.balancers[usize::from(packet.transport)];
        nth(among, balancer.choose(now, packet, group, among.count_ones() as usize, waiting))
    }

    /// The flow controls of the ports.
    pub fn nics(&mut self) -> impl Iterator<Item = &mut Nic> {
        self.ports.iter_mut().filter_map(|port| port.nic.as_mut())
    }

    /// A flow-control frame has arrived at a port.
    pub fn frame(&mut self, now: Time, port: PortId, frame: &Packet) {
        let port = &mut self.ports[port.index()];
        if let Some(nic) = &mut port.nic {
            nic.frame(now, frame);
        }
        port.settle();
    }

    /// The first time of its flow controls' own.
    pub fn next_at(&self) -> Time {
        self.ports.iter().filter_map(|port| port.control()).map(|control| control.poll_at()).min().unwrap_or(Time::MAX)
    }

    /// That time may have come.
    pub fn wake(&mut self, now: Time) {
        for port in &mut self.ports {
            if let Some(nic) = port.nic.as_mut().filter(|nic| nic.control.poll_at() <= now) {
                nic.wake(now);
                port.settle();
            }
        }
    }

    /// The link at a port has gone down or come up.
    pub fn link_changed(&mut self, now: Time, port: PortId, up: bool) {
        let bit = 1 << port.0;
        self.up = if up { self.up | bit } else { self.up & !bit };
        self.epoch += 1;
        let own = &mut self.ports[port.index()];
        if let Some(nic) = &mut own.nic {
            nic.reset(now, up);
        }
        own.settle();
        if !up && self.up != 0 {
            for packet in self.ports[port.index()].empty() {
                let port = self.choose(now, &packet, 0) as usize;
                if let Some(packet) = self.ports[port].admit(packet) {
                    self.ports[port].queue(packet);
                }
            }
        }
    }

    /// All switches use these routing tables from now on.
    pub fn set_routes(&mut self, routes: &Arc<Routes>) {
        self.routes = routes.clone();
        self.epoch += 1;
        for port in &mut self.ports {
            if let Some(nic) = &mut port.nic {
                nic.control.set_routes(routes);
            }
            port.settle();
        }
    }

    /// What follows from all ports, and from the numbers of flows.
    fn tell(&self, walk: &mut Walk) {
        // Endpoints see the sum of all epochs.
        walk.turn("epoch", &mut NicControl::epoch(self));
        if self.balancing.iter().any(|balancing| balancing.by_hash()) {
            walk.numbered("which link a flow takes from its host");
        }
    }

    /// The number of the queue by which a packet leaves a port.
    pub fn stamp(&mut self, now: Time, port: PortId, packet: &Packet) -> u16 {
        self.ports[port.index()].nic.as_mut().map_or(0, |nic| nic.stamp(now, packet))
    }

    /// The flow control of a port.
    pub fn nic(&mut self, port: PortId) -> Option<&mut Nic> {
        self.ports[port.index()].nic.as_mut()
    }

    /// Shows the causes of pauses, by port.
    pub fn held(&self, see: &mut dyn FnMut(PortId, Cause)) {
        for (port, own) in (0u32..).map(PortId).zip(&self.ports) {
            if let Some(nic) = &own.nic {
                nic.control.causes(&mut |cause| see(port, cause));
            }
        }
    }

    /// Number of pauses of a port, and their total duration by `end`.
    pub fn pauses(&self, port: PortId, end: Time) -> (u64, Duration) {
        self.ports[port.index()].nic.as_ref().map_or((0, Duration::ZERO), |nic| nic.pauses(end))
    }
}

impl Port {
    fn control(&self) -> Option<&dyn NicControl> {
        self.nic.as_ref().map(|nic| &*nic.control)
    }

    fn lets(&self, packet: &Packet) -> bool {
        self.nic.as_ref().is_none_or(|nic| !nic.pauses_class(packet) && !nic.holds_flow(packet))
    }

    fn ring_bytes(&self) -> u32 {
        self.ring.iter().map(|packet| u32::from(packet.wire_bytes)).sum()
    }

    /// Returns the packet unless it must wait for the flow control.
    fn admit(&mut self, packet: Packet) -> Option<Packet> {
        let Some(nic) = &mut self.nic else { return Some(packet) };
        if nic.pauses_class(&packet) {
            self.parked.push_back(packet);
            return None;
        }
        nic.hold.pass(&*nic.control, packet)
    }

    fn queue(&mut self, packet: Packet) {
        self.ring.push_back(packet);
        self.crowded |= self.ring.len() >= RING;
    }

    fn next(&mut self, epoch: &mut u32) -> Option<Packet> {
        if let Some(nic) = &mut self.nic {
            if let Some(frame) = nic.next_frame() {
                return Some(frame);
            }
            let Nic { control, hold, .. } = nic;
            while self.ring.len() < RING
                && let Some(packet) = hold.next(&**control)
            {
                self.ring.push_back(packet);
            }
        }
        let goes = |packet: &Packet| self.nic.as_ref().is_none_or(|nic| !nic.must_hold(packet));
        let waiting = self.ring.iter().enumerate().filter(|(_, packet)| goes(packet));
        let (place, _) = waiting.min_by_key(|(place, packet)| (packet.class, *place))?;
        let packet = self.ring.remove(place);
        if self.crowded && self.ring.len() <= RING / 2 {
            self.crowded = false;
            *epoch += 1;
        }
        packet
    }

    /// Sorts the waiting packets after flow control has changed: the ring keeps those that may be sent.
    fn settle(&mut self) {
        let Port { nic: Some(nic), ring, parked, .. } = self else { return };
        let mut last_first = Vec::new();
        let waiting: Vec<Packet> = ring.drain(..).chain(parked.drain(..)).collect();
        for packet in waiting {
            if nic.pauses_class(&packet) {
                parked.push_back(packet);
            } else if nic.holds_flow(&packet) {
                last_first.push(packet);
            } else {
                ring.push_back(packet);
            }
        }
        // They precede the held packets of their flows.
        last_first.into_iter().rev().for_each(|packet| nic.hold.put_back(packet));
    }

    /// Removes all waiting packets.
    fn empty(&mut self) -> Vec<Packet> {
        let held = self.nic.as_mut().map_or_else(Vec::new, |nic| std::mem::take(&mut nic.hold).into_packets());
        self.crowded = false;
        self.ring.drain(..).chain(self.parked.drain(..)).chain(held).collect()
    }
}

/// The gate as endpoints see it: all ports as one.
impl NicControl for MultihomedNic {
    // Frames and link changes concern single ports and are handled above.
    fn frame(&mut self, _: Time, _: &Packet) {}

    fn reset(&mut self, _: bool) {}

    /// A class counts as paused if it is paused at every usable port.
    fn paused_classes(&self) -> u8 {
        let paused = |port: u32| self.ports[port as usize].control().map_or(0, |control| control.paused_classes());
        if self.up == 0 { 0 } else { bits(self.up).map(paused).fold(u8::MAX, |all, one| all & one) }
    }

    fn lets(&self, transport: u8, flow: FlowId, dst: HostId, class: u8, label: u32) -> bool {
        let mut packet = Packet::bare(flow, self.host, dst);
        packet.transport = transport;
        if label != 0 {
            packet.set_flow_label(label);
        }
        let goes = |port: u32| {
            let port = &self.ports[port as usize];
            !port.crowded && port.control().is_none_or(|control| control.lets(transport, flow, dst, class, label))
        };
        let among = self.among(flow, dst);
        match self.hashed(&packet, among) {
            Some(port) => goes(port),
            None => bits(among).any(goes),
        }
    }

    fn epoch(&self) -> u32 {
        let of_ports = self.ports.iter().filter_map(|port| port.control()).map(|control| control.epoch());
        of_ports.fold(self.epoch, u32::wrapping_add)
    }
}

/// The positions of the set bits, lowest first.
fn bits(mut set: u64) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let bit = (set != 0).then(|| set.trailing_zeros())?;
        set &= set - 1;
        Some(bit)
    })
}

/// The position of the set bit that has `index` set bits below it.
fn nth(set: u64, index: usize) -> u32 {
    bits(set).nth(index).expect("fewer than are set")
}

#[cfg(test)]
mod tests;
