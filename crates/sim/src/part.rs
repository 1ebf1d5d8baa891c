//! One part of a network on the engine: some of its nodes, the links between them, and the ends of links to others.
//!
//! Sources of events, in the order that breaks ties: the part's own timeline (failures, samples), what comes out of
//! links, transmitters that become free, hosts, switches' own deadlines. Each group is in the order of ids over the whole fabric, so two nodes
//! that share a part today and not tomorrow see their own events in the same order both times.
//!
//! One event a hop: a packet that meets an idle transmitter goes on in the same event, and a link has one pending
//! event however many packets are in flight on it.

use std::sync::Arc;

use engine::{Agenda, Partition};
use fabric::{LinkNoise, Routes};
use node::packet::flags;
use node::pool::{Flight, PacketId, Pool, Slot, Transit};
use node::{Packet, Received, Switch, Telemetry};
use run::{HEAD_BYTES, Host};
use units::{Duration, PerByte, PortId, Rate, Time, mix};

use crate::arrivals::Arrivals;
use crate::congestion::Congestion;
use crate::entities::EntityProbe;
use crate::first_time::FirstTime;
use crate::guarantee::Watch;
use crate::noise::Noise;
use crate::probe::Samples;

/// A packet that goes from one part to another.
pub(crate) struct Crossing {
    /// The link's end in the receiving part.
    pipe: u32,
    /// When it comes out there.
    at: Time,
    slot: Slot,
    /// What the packet has gathered, if it is flagged for it.
    telemetry: Option<Box<Telemetry>>,
}

/// A link's receiving end: the packets in flight on it, first to come out first.
pub(crate) struct Pipe {
    /// The link's id in the fabric.
    pub link: u32,
    pub packets: Flight,
    pub to: To,
    pub up: bool,
    pub lost_packets: u64,
    pub lost_bytes: u64,
    /// What damages or loses its packets, if it ever does.
    pub noise: Option<Box<Noise>>,
}

impl Pipe {
    /// A packet in flight is lost with the link.
    fn lose(&mut self, packet: &Packet) {
        if !packet.has(flags::LINK_FRAME) {
            self.lost_packets += 1;
            self.lost_bytes += u64::from(packet.wire_bytes);
        }
    }
}

/// Where a link ends.
#[derive(Clone, Copy)]
pub(crate) enum To {
    Switch { index: u32, port: PortId },
    Host { index: u32, port: PortId },
}

/// A link's sending end.
pub(crate) struct Outlet {
    pub to: PipeRef,
    /// From the last bit's departure to the packet's appearance in the next node: propagation, and the node's own
    /// latency.
    pub delay: Duration,
    pub from: From,
    /// Cut-through into the next node: after so many bytes its switch sees the packet.
    pub head: Option<Duration>,
}

#[derive(Clone, Copy)]
pub(crate) enum PipeRef {
    Here(u32),
    There { part: u32, pipe: u32 },
}

/// Where a link begins.
#[derive(Clone, Copy)]
pub(crate) enum From {
    Switch { index: u32, port: PortId },
    Host { index: u32, port: PortId },
}

pub(crate) struct HostSlot {
    pub host: Host,
    pub outlet: u32,
    pub per_byte: PerByte,
    pub free_at: Time,
    pub up: bool,
    /// Packets and bytes lost because its own link was down.
    pub lost: (u64, u64),
    /// Where it has several links, its ports; their outlets are consecutive, and of the above only these and the losses of all count.
    pub ports: Option<Box<[HostPort]>>,
}

/// A port of a host with several links.
pub(crate) struct HostPort {
    pub per_byte: PerByte,
    pub free_at: Time,
    pub up: bool,
    /// Packets and bytes that it took from the host, those for its dead link included.
    pub sent: (u64, u64),
    /// Packets and bytes lost because its link was down.
    pub lost: (u64, u64),
}

pub(crate) struct SwitchSlot {
    /// Its id in the fabric.
    pub id: u32,
    pub switch: Switch,
    /// Its ports' outlets are consecutive from here.
    pub first_outlet: u32,
    pub digest: u64,
}

/// What happens to a part at a set time.
pub(crate) enum Change {
    Outlet {
        outlet: u32,
        up: bool,
    },
    Pipe {
        pipe: u32,
        up: bool,
    },
    /// From now on the link does this to packets.
    Noise {
        pipe: u32,
        noise: LinkNoise,
    },
    /// From now on the link transmits at this rate.
    Rate {
        outlet: u32,
        rate: Rate,
    },
    /// A link anywhere is slower than it should be for the first time: nothing is guaranteed from now on.
    NoGuarantee,
    Routes(Arc<Routes>),
    /// Some switches, by their places in this part, and the hosts below them have these tables from now on; everybody is told, so that audits of
    /// all parts know.
    RoutesOf {
        routes: Arc<Routes>,
        switches: Vec<u32>,
        hosts: Vec<u32>,
    },
}

pub(crate) struct Part {
    pub agenda: Agenda,
    pub pool: Pool,
    pub pipes: Vec<Pipe>,
    pub outlets: Vec<Outlet>,
    pub switches: Vec<SwitchSlot>,
    pub hosts: Vec<HostSlot>,
    /// Future changes, latest first.
    pub changes: Vec<(Time, Change)>,
    pub samples: Samples,
    /// Whether switches have a flow control.
    pub flow_controlled: bool,
    /// Whether what a switch takes in may set other ports to work, by its flow control or an agent, or is watched.
    pub watches_ready_ports: bool,
    /// What waits for whom, with a flow control.
    pub congestion: Option<Congestion>,
    /// Whether anything is noted of what arrives at hosts.
    pub probes: bool,
    /// What arrives for entities, if there are any.
    pub entities: Option<EntityProbe>,
    /// Whether what is guaranteed holds, if anything is.
    pub guarantee: Option<Box<Watch>>,
    /// Arrivals at hosts, if any are asked for.
    pub arrivals: Option<Arrivals>,
    /// Data that comes to hosts for the first time, if there are samples.
    pub first_time: Option<FirstTime>,
    pub outbox: Vec<(u32, Crossing)>,
    /// Packets that came out of links: each link once.
    pub packet_hops: u64,
    pub events: u64,
}

impl Part {
    /// How many sources of events it has.
    pub fn sources(&self) -> usize {
        self.switch_timer(self.switches.len())
    }

    /// The run is over.
    pub fn end(&mut self) {
        if let Some(congestion) = &mut self.congestion {
            self.switches.iter().for_each(|slot| congestion.audit_all(slot, &self.pool));
        }
    }

    /// Fills the agenda from the nodes' states, before the first window.
    pub fn prime(&mut self) {
        for index in 0..self.hosts.len() {
            self.arm_host(Time::ZERO, index, false);
        }
        for index in 0..self.switches.len() {
            self.agenda.set(self.switch_timer(index), self.switches[index].switch.next_at());
        }
        self.agenda.set(0, self.timeline_at());
    }

    fn timeline_at(&self) -> Time {
        self.changes.last().map_or(Time::MAX, |change| change.0).min(self.samples.next_at())
    }

    fn transmit_ready(&self, outlet: u32) -> usize {
        1 + self.pipes.len() + outlet as usize
    }

    fn deadline(&self, host: usize) -> usize {
        1 + self.pipes.len() + self.outlets.len() + host
    }

    fn switch_timer(&self, switch: usize) -> usize {
        self.deadline(self.hosts.len()) + switch
    }

    /// A packet comes out of a link.
    #[inline]
    fn arrive(&mut self, now: Time, source: usize) {
        let pipe = &mut self.pipes[source - 1];
        let id = pipe.packets.pop(&self.pool).expect("a link with an event has a packet");
        let to = pipe.to;
        self.agenda.set(source, pipe.packets.next_at());
        self.packet_hops += 1;
        if pipe.noise.is_some() && self.is_lost_to_noise(source - 1, id) {
            return;
        }
        match to {
            To::Switch { index, port } => {
                let slot = &mut self.switches[index as usize];
                let packet = &self.pool.get(id).packet;
                slot.digest = hash_arrival(slot.digest, now, packet);
                if packet.has(flags::LINK_FRAME)
                    && let Some(congestion) = &mut self.congestion
                {
                    congestion.hear(slot, port, packet, &self.pool);
                }
                let received = slot.switch.receive(now, port, &mut self.pool, id);
                if let Received::Queued(out) = received {
                    self.nudge(now, index, out);
                }
                if self.watches_ready_ports {
                    self.joined(now, index, received);
                    self.follow_up(now, index);
                }
            }
            To::Host { index, port } => {
                let Slot { packet, transit } = self.pool.remove(id);
                let slot = &mut self.hosts[index as usize];
                slot.host.digest = hash_arrival(slot.host.digest, now, &packet);
                if packet.has(flags::LINK_FRAME) {
                    slot.host.frame(now, port, &packet);
                    return self.arm_host(now, index as usize, false);
                }
                if self.probes {
                    self.note_arrival(now, index, &packet, &transit);
                }
                let slot = &mut self.hosts[index as usize];
                let telemetry = packet.has(flags::TELEMETRY).then(|| &*self.pool.telemetry_mut(id));
                slot.host.receive(now, &packet, &transit, telemetry);
                self.arm_host(now, index as usize, false);
            }
        }
    }

    /// Whether a packet that comes out of a link has been lost or damaged on it, and is gone for that.
    #[cold]
    fn is_lost_to_noise(&mut self, pipe: usize, id: PacketId) -> bool {
        let Some(noise) = &mut self.pipes[pipe].noise else { return false };
        let lost = noise.loses(&mut self.pool.get_mut(id).packet);
        if lost {
            self.pool.remove(id);
        }
        lost
    }

    /// For the probes of what comes to hosts.
    #[inline(never)]
    fn note_arrival(&mut self, now: Time, host: u32, packet: &Packet, transit: &Transit) {
        if let Some(entities) = &mut self.entities {
            entities.note(packet, transit);
        }
        if let Some(guarantee) = &mut self.guarantee {
            guarantee.arrived(now, packet, transit);
        }
        if let Some(arrivals) = &mut self.arrivals {
            arrivals.note(now, self.hosts[host as usize].host.id(), packet);
        }
        if let Some(first_time) = &mut self.first_time {
            first_time.note(packet);
        }
    }

    /// Something has come to wait at a port: it goes if the transmitter is free, or when it will be.
    #[inline(always)]
    fn nudge(&mut self, now: Time, switch: u32, out: PortId) {
        let slot = &self.switches[switch as usize];
        let outlet = slot.first_outlet + out.0;
        let free_at = slot.switch.port(out).free_at();
        if free_at <= now {
            self.open(now, outlet);
        } else {
            let transmit_ready = self.transmit_ready(outlet);
            self.agenda.advance(transmit_ready, free_at);
        }
    }

    /// What has come to wait, and did not go at once, is held against what is guaranteed.
    #[inline(never)]
    fn joined(&mut self, now: Time, switch: u32, received: Received) {
        if let (Some(guarantee), Received::Queued(out)) = (&mut self.guarantee, received) {
            let SwitchSlot { id, switch, .. } = &self.switches[switch as usize];
            guarantee.joined(now, *id, switch, out);
        }
    }

    /// What a flow control has set free, or it or an agent wants to say, after anything that its switch did.
    #[inline(never)]
    fn follow_up(&mut self, now: Time, switch: u32) {
        while let Some(port) = self.switches[switch as usize].switch.take_ready_port() {
            self.nudge(now, switch, port);
            self.joined(now, switch, Received::Queued(port));
        }
    }

    /// A transmitter is free: the next packet, if one may go.
    #[inline]
    fn open(&mut self, now: Time, outlet: u32) {
        match self.outlets[outlet as usize].from {
            From::Switch { index, port } => {
                let switch = &mut self.switches[index as usize].switch;
                let sent = switch.transmit(now, port, &mut self.pool);
                let (free_at, more) = (switch.port(port).free_at(), switch.has_sendable(port));
                if let Some(id) = sent {
                    self.launch(outlet, now, free_at, id);
                }
                let transmit_ready = self.transmit_ready(outlet);
                let next = if more && sent.is_some() { free_at } else { Time::MAX };
                if self.agenda.get(transmit_ready) != next {
                    self.agenda.set(transmit_ready, next);
                }
            }
            From::Host { index, .. } => {
                let transmit_ready = self.transmit_ready(outlet);
                self.agenda.set(transmit_ready, Time::MAX);
                self.arm_host(now, index as usize, false);
            }
        }
    }

    /// After anything that a host did: its NIC pulls if it can, and its next deadline is noted.
    #[inline]
    fn arm_host(&mut self, now: Time, index: usize, due: bool) {
        let slot = &mut self.hosts[index];
        if slot.ports.is_some() {
            self.pull_by_ports(now, index);
        } else if slot.free_at <= now
            && let Some(packet) = slot.host.pull(now)
        {
            slot.free_at = now + slot.per_byte.transmit(u32::from(packet.wire_bytes));
            let (outlet, free_at) = (slot.outlet, slot.free_at);
            if slot.up {
                let mut transit = Transit::leaving(now);
                if self.flow_controlled {
                    transit.queue = slot.host.stamp(PortId(0), &packet);
                }
                let id = self.pool.insert(packet, transit);
                if packet.has(flags::TELEMETRY) {
                    *self.pool.telemetry_mut(id) = slot.host.carries(&packet);
                }
                self.launch(outlet, now, free_at, id);
            } else {
                slot.lost.0 += 1;
                slot.lost.1 += u64::from(packet.wire_bytes);
            }
            let transmit_ready = self.transmit_ready(outlet);
            self.agenda.set(transmit_ready, free_at);
        }
        let at = self.hosts[index].host.next_at().max(now);
        let deadline = self.deadline(index);
        if due || at < self.agenda.get(deadline) {
            self.agenda.set(deadline, at);
        }
    }

    /// The ports of a host with several links take packets while one is free and there is one for it.
    #[inline(never)]
    fn pull_by_ports(&mut self, now: Time, index: usize) {
        loop {
            let HostSlot { host, outlet, ports: Some(ports), lost, .. } = &mut self.hosts[index] else { return };
            let free =
                (0..).zip(&**ports).filter(|(_, port)| port.free_at <= now).fold(0, |free, (bit, _)| free | 1 << bit);
            if free == 0 {
                return;
            }
            let Some((out, packet)) = host.pull_by(now, free) else { return };
            let outlet = *outlet + out.0;
            let port = &mut ports[out.index()];
            port.free_at = now + port.per_byte.transmit(u32::from(packet.wire_bytes));
            let free_at = port.free_at;
            let count = |(packets, bytes): &mut (u64, u64)| {
                *packets += 1;
                *bytes += u64::from(packet.wire_bytes);
            };
            let frame = packet.has(flags::LINK_FRAME);
            if !frame {
                count(&mut port.sent);
            }
            if port.up {
                let mut transit = Transit::leaving(now);
                if self.flow_controlled {
                    transit.queue = host.stamp(out, &packet);
                }
                let id = self.pool.insert(packet, transit);
                if packet.has(flags::TELEMETRY) {
                    *self.pool.telemetry_mut(id) = host.carries(&packet);
                }
                self.launch(outlet, now, free_at, id);
            } else if !frame {
                count(&mut port.lost);
                count(lost);
            }
            let transmit_ready = self.transmit_ready(outlet);
            self.agenda.set(transmit_ready, free_at);
        }
    }

    /// Puts a packet whose first bit leaves now and whose last at `gone` on its link.
    #[inline]
    fn launch(&mut self, outlet: u32, now: Time, gone: Time, id: PacketId) {
        let Outlet { to, delay, head, .. } = self.outlets[outlet as usize];
        let seen = head.map_or(gone, |head| gone.min(now + head));
        let at = seen + delay;
        let transit = &mut self.pool.get_mut(id).transit;
        transit.tail_lag_ps = (gone - seen).ps() as u32;
        transit.serialised += seen - now;
        match to {
            PipeRef::Here(pipe) => {
                if self.pipes[pipe as usize].packets.push(&mut self.pool, id, at) {
                    self.agenda.set(1 + pipe as usize, at);
                }
            }
            PipeRef::There { part, pipe } => {
                let slot = self.pool.remove(id);
                let telemetry = slot.packet.has(flags::TELEMETRY).then(|| Box::new(*self.pool.telemetry_mut(id)));
                self.outbox.push((part, Crossing { pipe, at, slot, telemetry }));
            }
        }
    }

    #[cold]
    fn timeline(&mut self, now: Time) {
        while self.changes.last().is_some_and(|change| change.0 <= now) {
            let (_, change) = self.changes.pop().expect("just seen");
            self.apply(now, change);
        }
        if self.samples.next_at() <= now {
            self.samples.take(now, &self.switches);
            if let Some(congestion) = &mut self.congestion {
                congestion.sample(now, &self.switches, &self.hosts, &self.pool);
            }
            if let Some(entities) = &mut self.entities {
                entities.sample(now);
            }
            if let Some(first_time) = &mut self.first_time {
                first_time.sample(now);
            }
        }
        let at = self.timeline_at();
        self.agenda.set(0, at);
    }

    fn apply(&mut self, now: Time, change: Change) {
        match change {
            Change::Routes(routes) => {
                if let Some(congestion) = &mut self.congestion {
                    self.switches.iter().for_each(|slot| congestion.audit_all(slot, &self.pool));
                }
                for index in 0..self.switches.len() {
                    self.switches[index].switch.set_routes(now, routes.clone(), &mut self.pool);
                    self.follow_up(now, index as u32);
                }
                for index in 0..self.hosts.len() {
                    self.hosts[index].host.set_routes(now, &routes);
                    self.arm_host(now, index, false);
                }
                if let Some(congestion) = &mut self.congestion {
                    congestion.set_routes(&routes);
                }
            }
            Change::RoutesOf { routes, switches, hosts } => {
                if let Some(congestion) = &mut self.congestion {
                    self.switches.iter().for_each(|slot| congestion.audit_all(slot, &self.pool));
                    congestion.tables_differ(&routes);
                }
                for index in switches {
                    self.switches[index as usize].switch.set_routes(now, routes.clone(), &mut self.pool);
                    self.follow_up(now, index);
                }
                for index in hosts {
                    self.hosts[index as usize].host.set_routes(now, &routes);
                    self.arm_host(now, index as usize, false);
                }
            }
            Change::Outlet { outlet, up } => match self.outlets[outlet as usize].from {
                From::Switch { index, port } => {
                    if let Some(congestion) = &mut self.congestion {
                        congestion.audit_all(&self.switches[index as usize], &self.pool);
                    }
                    self.switches[index as usize].switch.set_up(now, port, up, &mut self.pool);
                    self.follow_up(now, index);
                }
                From::Host { index, port } => {
                    let slot = &mut self.hosts[index as usize];
                    match &mut slot.ports {
                        None => slot.up = up,
                        Some(ports) => ports[port.index()].up = up,
                    }
                    slot.host.link_changed(now, port, up);
                    self.arm_host(now, index as usize, false);
                }
            },
            Change::Noise { pipe, noise } => {
                let state = &mut self.pipes[pipe as usize].noise;
                state.as_mut().expect("a link that is ever noisy has it").set(noise);
            }
            Change::Rate { outlet, rate } => {
                let Outlet { from, head, .. } = &mut self.outlets[outlet as usize];
                *head = head.map(|_| rate.transmit(HEAD_BYTES));
                match *from {
                    From::Switch { index, port } => self.switches[index as usize].switch.transmit_at(port, rate),
                    From::Host { index, port } => {
                        let slot = &mut self.hosts[index as usize];
                        let per_byte = match &mut slot.ports {
                            None => &mut slot.per_byte,
                            Some(ports) => &mut ports[port.index()].per_byte,
                        };
                        *per_byte = per_byte.at(rate);
                    }
                }
            }
            Change::NoGuarantee => {
                if let Some(guarantee) = &mut self.guarantee {
                    guarantee.ends(now, &self.switches);
                }
            }
            Change::Pipe { pipe, up } => {
                let pipe_state = &mut self.pipes[pipe as usize];
                pipe_state.up = up;
                while !up && let Some(id) = pipe_state.packets.pop(&self.pool) {
                    let packet = self.pool.remove(id).packet;
                    pipe_state.lose(&packet);
                }
                if !up {
                    self.agenda.set(1 + pipe as usize, Time::MAX);
                }
            }
        }
    }
}

impl Partition for Part {
    type Mail = Crossing;

    fn next_at(&self) -> Time {
        self.agenda.first().0
    }

    fn advance(&mut self, end: Time, outbox: &mut [Vec<Crossing>]) {
        let first_opening = 1 + self.pipes.len();
        let first_deadline = first_opening + self.outlets.len();
        let first_switch_timer = self.switch_timer(0);
        loop {
            let (now, source) = self.agenda.first();
            if now >= end {
                break;
            }
            self.events += 1;
            if source == 0 {
                self.timeline(now);
            } else if source < first_opening {
                self.arrive(now, source);
            } else if source < first_deadline {
                let outlet = (source - first_opening) as u32;
                self.open(now, outlet);
                if self.flow_controlled
                    && let From::Switch { index, .. } = self.outlets[outlet as usize].from
                {
                    self.follow_up(now, index);
                }
            } else if source >= first_switch_timer {
                let index = source - first_switch_timer;
                self.switches[index].switch.wake(now, &mut self.pool);
                self.agenda.set(source, self.switches[index].switch.next_at());
                self.follow_up(now, index as u32);
            } else {
                let index = source - first_deadline;
                self.hosts[index].host.wake(now);
                self.arm_host(now, index, true);
            }
        }
        for (part, crossing) in self.outbox.drain(..) {
            outbox[part as usize].push(crossing);
        }
    }

    fn effect_at(mail: &Crossing) -> Time {
        mail.at
    }

    fn accept(&mut self, mail: &mut Vec<Crossing>) {
        for Crossing { pipe, at, slot, telemetry } in mail.drain(..) {
            let end = &mut self.pipes[pipe as usize];
            if !end.up {
                end.lose(&slot.packet);
                continue;
            }
            let id = self.pool.insert(slot.packet, slot.transit);
            if let Some(telemetry) = telemetry {
                *self.pool.telemetry_mut(id) = *telemetry;
            }
            if end.packets.push(&mut self.pool, id, at) {
                self.agenda.set(1 + pipe as usize, at);
            }
        }
    }

    fn reached(&self) -> u64 {
        self.hosts.iter().map(|slot| slot.host.ended).sum()
    }
}

/// Takes one arrival into a node's digest.
#[inline]
fn hash_arrival(digest: u64, now: Time, packet: &Packet) -> u64 {
    let size = u64::from(packet.wire_bytes) << 16 | u64::from(packet.class) << 8 | u64::from(packet.flags);
    let what = u64::from(packet.flow.0) << 32 ^ size;
    (digest.rotate_left(23) ^ now.ps() ^ what.rotate_left(17)).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

/// The digest of a node under its id, so that the digests of all nodes can be added up in any order.
pub(crate) fn seal(node: u64, digest: u64) -> u64 {
    mix(digest, node)
}
