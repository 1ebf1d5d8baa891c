use node::packet::flags;
use node::pool::{PacketId, Slot, Transit};
use node::{Loss, Lost, LostFlows, Packet, Received};
use units::{Duration, FlowId, PortId, Time};

use crate::change::Timeline;
use crate::links::TIMELINE;
use crate::nodes::hash_arrival;
use crate::pulse::Pulse;
use crate::repeat::{Arrival, Log};
use crate::retry::Repeats;
use crate::ties::Tied;
use crate::{Carrier, End, HostSlot, Leaving, Links, NodePort, Probe, SwitchSlot, View, Wants};

/// One part of a network: some of its nodes and the ends of their links.
pub struct Driver<C: Carrier, P: Probe> {
    /// Links, packets, and the agenda of events.
    pub links: Links<C>,
    /// Its switches, in the order of their ids.
    pub switches: Vec<SwitchSlot>,
    /// Its hosts, in the order of their ids.
    pub hosts: Vec<HostSlot>,
    /// The probe that observes this part.
    pub probe: P,
    /// Packets that came out of links: each link once.
    pub packet_hops: u64,
    /// Payload that hosts have received, what was sent again included.
    pub delivered_bytes: u64,
    /// Events that were processed: arrivals, transmissions and deadlines.
    pub events: u64,
    /// A log of events for the search for a period; only with a probe.
    pub log: Option<Box<Log>>,
    /// The packets that have come to hosts, while somebody looks for a period of some of them; only with a probe.
    pub heard: Option<Vec<Arrival>>,
    /// Whether a flow may have started since somebody last set this to false; only with a probe.
    pub stirred: bool,
    /// Whether something has happened to what sleeps ([`Members`](crate::Members)).
    pub strayed: bool,
    /// By source of events, whether it sleeps; empty while nothing ever has.
    pub(crate) asleep: Vec<bool>,
    pub(crate) timeline: Timeline,
    /// Packets that have come to a node at one instant, in the order in which they are served; empty without a tie.
    pub(crate) tied: Vec<Tied>,
    /// How many of them have been served.
    pub(crate) tied_served: usize,
    /// Whether anything moves.
    pub(crate) pulse: Pulse,
    /// The least time from an event at a node to its effect at a node that is served before that: the window's length.
    pub(crate) reach: Duration,
    pub(crate) wants: Wants,
    /// By slot of the pool, the flags that a packet bore when it came to a switch; only if a probe asks.
    pub(crate) came: Vec<u8>,
    /// Whether links send damaged packets again.
    pub(crate) retries: bool,
    /// Whether links damage or lose packets.
    pub(crate) damages: bool,
    /// Whether a probe or link-level retry looks at each packet that goes on a link.
    pub(crate) watches_launches: bool,
    /// Whether a probe looks at each packet that comes to a switch.
    pub(crate) watches_switch_arrivals: bool,
    /// Whether links have a flow control.
    pub(crate) flow_controlled: bool,
    /// Whether the flow control's part of a switch says anew, after each of its actions, when it is to be woken.
    pub(crate) keeps_time: bool,
    /// Whether a packet that a switch accepts may make other ports ready, through its flow control or an agent, or is
    /// observed.
    pub(crate) watches_ready_ports: bool,
}

/// The kinds of event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Due {
    /// A packet comes out of a link.
    Arrival,
    /// A transmitter becomes free.
    Transmission,
    /// A node's deadline, or a change.
    Deadline,
}

/// The first source of events of each group after the links.
#[derive(Clone, Copy)]
struct Firsts {
    transmitter: usize,
    host: usize,
    timer: usize,
}

impl<C: Carrier, P: Probe> Driver<C, P> {
    /// How many sources of events it has.
    pub(crate) fn sources(&self) -> usize {
        self.switch_timer(self.switches.len())
    }

    /// Fills the agenda from the nodes' states, before anything happens.
    pub(crate) fn prime(&mut self) {
        for index in 0..self.hosts.len() {
            self.poll_host(Time::ZERO, index, false);
        }
        for index in 0..self.switches.len() {
            let timer = self.switch_timer(index);
            self.links.agenda.set(timer, self.switches[index].switch.next_at());
        }
        self.links.agenda.set(TIMELINE, self.timeline.next_at());
    }

    /// Processes all events that are due before `end`.
    pub fn advance(&mut self, end: Time) {
        let firsts = self.firsts();
        loop {
            let (now, source) = self.links.agenda.first();
            if now >= end {
                break;
            }
            if now >= self.pulse.look_at {
                self.look(now);
            } else if source == TIMELINE {
                self.act_at(now, source, firsts);
            } else {
                // A window may begin earlier than it was planned: where nodes that slept are woken up.
                let until = end
                    .min(now.saturating_add(self.reach))
                    .min(self.pulse.look_at)
                    .min(self.links.agenda.get(TIMELINE));
                self.serve_nodes(until, firsts);
            }
        }
    }

    /// Lets one node after another do all that is due there before `until`, or some of it if that is far away. Nodes
    /// are in such an order that none does anything that comes to one before it as early ([`crate::order`]).
    fn serve_nodes(&mut self, until: Time, firsts: Firsts) {
        self.links.agenda.open(until);
        let mut from = 0;
        while let Some(group) = self.links.agenda.next_due(from) {
            while let Some((now, source)) = self.links.agenda.next_of(group) {
                self.act_at(now, source, firsts);
            }
            from = group + 1;
        }
        self.links.agenda.close();
    }

    /// A packet from outside enters the network at an attached host.
    pub fn offer(&mut self, host: usize, packet: Packet) {
        self.hosts[host].host.offer(packet);
    }

    /// Starts a message that a program sends from a host at time `now`. Its flow was not known beforehand.
    pub fn submit(&mut self, now: Time, host: usize, flow: FlowId) {
        self.hosts[host].host.submit(now, flow);
        self.hosts[host].host.wake(now);
        self.poll_host(now, host, false);
    }

    /// Lets the NIC of a host take the packets that were offered to the host ([`Driver::offer`]), as far as it can now.
    pub fn pull_offered(&mut self, now: Time, host: usize) {
        self.poll_host(now, host, false);
    }

    /// Processes the next event of one source, and returns what it was.
    pub fn act(&mut self, now: Time, source: usize) -> Due {
        if now >= self.pulse.look_at {
            self.look(now);
        }
        self.act_at(now, source, self.firsts())
    }

    #[inline(always)]
    fn act_at(&mut self, now: Time, source: usize, firsts: Firsts) -> Due {
        self.note_event(now, source);
        if source == TIMELINE {
            self.timeline(now);
            Due::Deadline
        } else if source < firsts.transmitter {
            self.arrive(now, source);
            Due::Arrival
        } else if source < firsts.host {
            let link_tx = (source - firsts.transmitter) as u32;
            self.transmit_ready(now, link_tx);
            if self.flow_controlled
                && let End::Switch { index, .. } = self.links.link_txs[link_tx as usize].from
            {
                self.follow_up(now, index);
            }
            Due::Transmission
        } else if source >= firsts.timer {
            let index = source - firsts.timer;
            let switch = &mut self.switches[index].switch;
            switch.wake(now, &mut self.links.pool);
            self.links.agenda.set(source, switch.next_at());
            self.tell_losses(now, index as u32);
            self.follow_up(now, index as u32);
            Due::Deadline
        } else {
            let index = source - firsts.host;
            let records = self.hosts[index].host.records.len();
            self.hosts[index].host.wake(now);
            if P::ANY {
                self.stirred |= self.hosts[index].host.records.len() > records;
            }
            self.poll_host(now, index, true);
            Due::Deadline
        }
    }

    /// An event is about to be processed.
    #[inline(always)]
    pub(crate) fn note_event(&mut self, now: Time, source: usize) {
        // Each part has a timeline, so its events would count more often the more parts there are.
        self.events += u64::from(source != TIMELINE);
        if P::ANY
            && let Some(log) = &mut self.log
        {
            log.events.push(now);
        }
        if P::ANY && !self.asleep.is_empty() {
            self.strayed |= self.asleep[source];
        }
    }

    fn firsts(&self) -> Firsts {
        Firsts { transmitter: self.links.transmit_ready(0), host: self.links.first_host(), timer: self.switch_timer(0) }
    }

    /// Everything before `now` has happened: looks up whether anything moves.
    #[cold]
    fn look(&mut self, now: Time) {
        self.pulse.look(now, &self.hosts);
        self.watches_launches = self.retries || self.wants.departures || self.pulse.listens;
    }

    /// All that was to happen before `end` has, and the run is over.
    pub fn settle(&mut self, end: Time) {
        self.look(end);
    }

    /// The run is over.
    pub fn end(&mut self) {
        let view = View { switches: &self.switches, hosts: &self.hosts, pool: &self.links.pool };
        self.probe.end(view);
    }

    /// Between samples by now: `measure.interval`, or a multiple of it after many samples; zero if none are taken.
    pub fn sample_interval(&self) -> Duration {
        self.timeline.interval
    }

    /// Flows of the packets that were lost in this part, if that is noted; some more than once.
    pub fn lost_flows(&self) -> impl Iterator<Item = FlowId> + '_ {
        let at_links = self.links.link_rxs.iter().map(|link_rx| &link_rx.lost_flows);
        let at_hosts = self.hosts.iter().map(|slot| &slot.host.lost_flows);
        let at_switches = self.switches.iter().map(|slot| &slot.switch.lost_flows);
        at_links.chain(at_hosts).chain(at_switches).flat_map(LostFlows::iter)
    }

    /// Flows that have ended at its hosts.
    pub fn ended_flows(&self) -> u64 {
        self.hosts.iter().map(|slot| slot.host.ended).sum()
    }

    pub(crate) fn deadline(&self, host: usize) -> usize {
        self.links.first_host() + host
    }

    pub(crate) fn switch_timer(&self, switch: usize) -> usize {
        self.deadline(self.hosts.len()) + switch
    }

    /// A packet comes out of a link.
    #[inline]
    fn arrive(&mut self, now: Time, source: usize) {
        let (mut id, last_at_node) = self.links.take(source);
        let mut source = source;
        if self.links.ties(now, source, last_at_node).is_some() {
            (source, id) = self.gather_tied(now, source, last_at_node, id);
        }
        loop {
            let received = self.arrive_from(now, source, id);
            if self.tied.is_empty() {
                return;
            }
            let Some(next) = self.next_tied(received) else { return };
            (source, id) = next;
        }
    }

    /// A packet that has come out of a link goes on into the node, unless the link has lost it. Returns what a switch
    /// did with it; what a host takes in counts as taken.
    #[inline(always)]
    fn arrive_from(&mut self, now: Time, source: usize, id: PacketId) -> Option<Received> {
        let to = self.links.link_rxs[source - 1].to;
        self.packet_hops += 1;
        if self.damages && !self.survives(now, source - 1, to, id) {
            return None;
        }
        Some(match to {
            End::Switch { index, port } => self.arrive_at_switch(now, index, port, id),
            End::Host { index, port } => {
                self.arrive_at_host(now, index, port, id);
                Received::Taken
            }
        })
    }

    /// Whether a packet that comes out of a link goes on into the node. Called only where links damage, lose or repeat
    /// packets.
    #[cold]
    fn survives(&mut self, now: Time, link_rx: usize, to: End, id: PacketId) -> bool {
        if self.retries {
            return self.accepts(now, link_rx, id);
        }
        let packet = self.links.pool.get(id).packet;
        let lost = self.links.loses_to_noise(link_rx, id);
        if lost && P::ANY && self.wants.drops {
            let at = self.place(to);
            self.probe.on_drop(now, at, &packet, Loss::Link);
        }
        !lost
    }

    #[inline(always)]
    fn arrive_at_switch(&mut self, now: Time, index: u32, port: PortId, id: PacketId) -> Received {
        let (slot, pool) = (&mut self.switches[index as usize], &mut self.links.pool);
        slot.digest = hash_arrival(slot.digest, now, &pool.get(id).packet);
        if P::ANY {
            if self.watches_switch_arrivals {
                self.note_switch_arrival(now, index, port, id);
            }
            if let Some(log) = &mut self.log {
                log.arrivals.push(Arrival::new(self.hosts.len() as u32 + index, now, &self.links.pool.get(id).packet));
            }
        }
        let received = self.switches[index as usize].switch.receive(now, port, &mut self.links.pool, id);
        self.tell_losses(now, index);
        match received {
            Received::Queued(out) => self.try_transmit(now, index, out),
            Received::Through(out) => self.went_through(now, index, out, id),
            Received::Taken | Received::Lost(..) => {}
        }
        if self.watches_ready_ports {
            if let Received::Queued(out) = received {
                self.joined(now, index, out);
            }
            self.follow_up(now, index);
        }
        received
    }

    #[inline(never)]
    fn note_switch_arrival(&mut self, now: Time, index: u32, port: PortId, id: PacketId) {
        let packet = &self.links.pool.get(id).packet;
        if packet.has(flags::LINK_FRAME) && self.wants.frames {
            self.probe.on_frame(now, &self.switches[index as usize], port, packet, &self.links.pool);
        }
        if self.wants.changes {
            if self.came.len() <= id.index() {
                self.came.resize(id.index() + 1, 0);
            }
            self.came[id.index()] = packet.flags;
        }
    }

    /// Tells the probe of each packet that a switch has lost since the last call.
    #[inline(always)]
    pub(crate) fn tell_losses(&mut self, now: Time, index: u32) {
        if P::ANY && self.wants.drops {
            while let Some(Lost { port, packet, why }) = self.switches[index as usize].switch.take_loss() {
                let at = self.place(End::Switch { index, port });
                self.probe.on_drop(now, at, &packet, why);
            }
        }
    }

    #[inline(always)]
    fn arrive_at_host(&mut self, now: Time, index: u32, port: PortId, id: PacketId) {
        let Slot { packet, mut transit } = self.links.pool.remove(id);
        transit.in_port = port.0 as u16;
        let slot = &mut self.hosts[index as usize];
        slot.host.digest = hash_arrival(slot.host.digest, now, &packet);
        if P::ANY
            && let Some(log) = &mut self.log
        {
            log.arrivals.push(Arrival::new(index, now, &packet));
        }
        if P::ANY
            && let Some(heard) = &mut self.heard
        {
            heard.push(Arrival::new(index, now, &packet));
        }
        if packet.has(flags::LINK_FRAME) {
            slot.host.frame(now, port, &packet);
            self.poll_host(now, index as usize, false);
            return;
        }
        if P::ANY && self.wants.arrivals {
            self.note_arrival(now, index, &packet, &transit);
        }
        if !packet.has(flags::TRIMMED) {
            self.delivered_bytes += u64::from(packet.payload_bytes);
        }
        self.pulse.comes(index as usize, &packet);
        C::taken(&mut self.links, id, &packet);
        let slot = &mut self.hosts[index as usize];
        let telemetry = packet.has(flags::TELEMETRY).then(|| &*self.links.pool.telemetry_mut(id));
        slot.host.receive(now, &packet, &transit, telemetry);
        self.poll_host(now, index as usize, false);
    }

    #[inline(never)]
    fn note_arrival(&mut self, now: Time, host: u32, packet: &Packet, transit: &Transit) {
        self.probe.on_arrival(now, &self.hosts[host as usize], packet, transit);
    }

    /// Sends the packet that waits at a port: now if the transmitter is free, otherwise once it is.
    #[inline(always)]
    pub(crate) fn try_transmit(&mut self, now: Time, switch: u32, out: PortId) {
        let slot = &self.switches[switch as usize];
        let link_tx = slot.first_link_tx + out.0;
        let free_at = slot.switch.port(out).free_at();
        if free_at <= now {
            self.transmit_ready(now, link_tx);
        } else {
            let transmit_ready = self.links.transmit_ready(link_tx);
            self.links.agenda.advance(transmit_ready, free_at);
        }
    }

    /// A packet that has gone through an idle port goes on its link.
    #[inline(always)]
    fn went_through(&mut self, now: Time, switch: u32, out: PortId, id: PacketId) {
        let slot = &self.switches[switch as usize];
        let (link_tx, free_at) = (slot.first_link_tx + out.0, slot.switch.port(out).free_at());
        self.launch(link_tx, now, free_at, id);
        // A packet that was to leave at this instant may have been lost with a link.
        let transmit_ready = self.links.transmit_ready(link_tx);
        if self.links.agenda.get(transmit_ready) != Time::MAX {
            self.links.agenda.set(transmit_ready, Time::MAX);
        }
    }

    /// Shows the probe a packet that waits because it was not sent at once.
    #[inline(always)]
    fn joined(&mut self, now: Time, switch: u32, out: PortId) {
        if P::ANY && self.wants.enqueues {
            self.note_enqueue(now, switch, out);
        }
    }

    #[inline(never)]
    fn note_enqueue(&mut self, now: Time, switch: u32, out: PortId) {
        self.probe.on_enqueue(now, &self.switches[switch as usize], out);
    }

    /// After an action of a switch: serves the ports that its flow control has made ready, and sends messages of the
    /// flow control or an agent. Few actions make any ready.
    #[inline(always)]
    pub(crate) fn follow_up(&mut self, now: Time, switch: u32) {
        if self.keeps_time || self.switches[switch as usize].switch.has_ready_ports() {
            self.serve_ready_ports(now, switch);
        }
    }

    #[inline(never)]
    fn serve_ready_ports(&mut self, now: Time, switch: u32) {
        while let Some(port) = self.switches[switch as usize].switch.take_ready_port() {
            self.try_transmit(now, switch, port);
            self.joined(now, switch, port);
        }
        if self.keeps_time {
            let (timer, at) = (self.switch_timer(switch as usize), self.switches[switch as usize].switch.next_at());
            self.links.agenda.set(timer, at);
        }
    }

    /// A transmitter is free: sends the next packet, if one may be sent.
    #[inline]
    fn transmit_ready(&mut self, now: Time, link_tx: u32) {
        let transmit_ready = self.links.transmit_ready(link_tx);
        match self.links.link_txs[link_tx as usize].from {
            End::Switch { index, port } => {
                let next = match self.retries {
                    false => self.transmit_from_switch(now, link_tx, index, port),
                    true => self.transmit_beside_repeats(now, link_tx, index, port),
                };
                if self.links.agenda.get(transmit_ready) != next {
                    self.links.agenda.set(transmit_ready, next);
                }
            }
            End::Host { index, .. } => {
                // Cleared here. If the host pulls a packet by this port, it sets the time again.
                let several = self.retries || self.hosts[index as usize].ports.is_some();
                if several {
                    self.links.agenda.set(transmit_ready, Time::MAX);
                }
                if !self.poll_host(now, index as usize, false) && !several {
                    self.links.agenda.set(transmit_ready, Time::MAX);
                }
            }
        }
    }

    /// A free port of a switch sends a packet, if one may go. Returns when it is free for the next, or never if none
    /// waits.
    #[inline(always)]
    fn transmit_from_switch(&mut self, now: Time, link_tx: u32, index: u32, port: PortId) -> Time {
        let switch = &mut self.switches[index as usize].switch;
        let sent = switch.transmit(now, port, &mut self.links.pool);
        let (free_at, more) = (switch.port(port).free_at(), switch.has_sendable(port));
        self.tell_losses(now, index);
        let Some(id) = sent else { return Time::MAX };
        self.launch(link_tx, now, free_at, id);
        if more { free_at } else { Time::MAX }
    }

    /// As `transmit_from_switch`, where links have link-level retry.
    #[cold]
    fn transmit_beside_repeats(&mut self, now: Time, link_tx: u32, index: u32, port: PortId) -> Time {
        if self.repeats_first(now, link_tx) {
            return self.links.agenda.get(self.links.transmit_ready(link_tx));
        }
        let next = self.transmit_from_switch(now, link_tx, index, port);
        let free_at = self.switches[index as usize].switch.port(port).free_at();
        next.min(self.repeats_at(link_tx, free_at))
    }

    /// Called after anything that a host did: its NIC pulls packets if it can, and its next deadline is noted. Returns
    /// whether a host with one port has taken a packet; always false where links have link-level retry.
    #[inline]
    pub(crate) fn poll_host(&mut self, now: Time, index: usize, due: bool) -> bool {
        C::acted(&mut self.links, now, &mut self.hosts[index].host);
        let mut pulled = false;
        if self.hosts[index].ports.is_some() {
            self.pull_by_ports(now, index);
        } else if self.retries {
            self.pull_beside_repeats(now, index);
        } else {
            pulled = self.pull_by_one(now, index);
        }
        C::acted(&mut self.links, now, &mut self.hosts[index].host);
        if P::ANY && self.wants.hosts {
            self.note_host(now, index);
        }
        let at = self.hosts[index].host.next_at().max(now);
        let deadline = self.deadline(index);
        if due || at < self.links.agenda.get(deadline) {
            self.links.agenda.set(deadline, at);
        }
        pulled
    }

    /// The only port of a host takes a packet, if it is free and there is one. Returns whether it has.
    #[inline(always)]
    fn pull_by_one(&mut self, now: Time, index: usize) -> bool {
        let slot = &mut self.hosts[index];
        if slot.free_at > now {
            return false;
        }
        let Some(packet) = slot.host.pull(now) else { return false };
        slot.free_at = now + slot.per_byte.transmit(u32::from(packet.wire_bytes));
        let (link_tx, free_at) = (slot.link_tx, slot.free_at);
        if slot.up {
            self.send_from_host(now, index, PortId(0), link_tx, free_at, packet);
        } else if !packet.has(flags::LINK_FRAME) {
            slot.host.lost_flows.note(&packet);
            slot.lost.0 += 1;
            slot.lost.1 += u64::from(packet.wire_bytes);
        }
        let transmit_ready = self.links.transmit_ready(link_tx);
        self.links.agenda.set(transmit_ready, free_at);
        true
    }

    /// As `pull_by_one`, where links have link-level retry.
    #[cold]
    fn pull_beside_repeats(&mut self, now: Time, index: usize) {
        let HostSlot { link_tx, up, free_at, .. } = self.hosts[index];
        if up && free_at <= now && self.repeats_first(now, link_tx) {
            return;
        }
        if !self.pull_by_one(now, index) && up {
            let (transmit_ready, at) = (self.links.transmit_ready(link_tx), self.repeats_at(link_tx, free_at.max(now)));
            self.links.agenda.advance(transmit_ready, at);
        }
    }

    #[inline(never)]
    fn note_host(&mut self, now: Time, index: usize) {
        self.probe.on_host(now, &self.hosts[index]);
    }

    /// The ports of a host with several links take packets while one is free and there is one for it.
    #[inline(never)]
    fn pull_by_ports(&mut self, now: Time, index: usize) {
        loop {
            let held = if self.retries { self.repeat_by_ports(now, index) } else { 0 };
            let HostSlot { host, link_tx, ports: Some(ports), lost, .. } = &mut self.hosts[index] else { return };
            let free =
                (0..).zip(&**ports).filter(|(_, port)| port.free_at <= now).fold(0, |free, (bit, _)| free | 1 << bit);
            let free = free & !held;
            if free == 0 {
                return;
            }
            let Some((out, packet)) = host.pull_by(now, free) else { return };
            let link_tx = *link_tx + out.0;
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
                self.send_from_host(now, index, out, link_tx, free_at, packet);
            } else if !frame {
                host.lost_flows.note(&packet);
                count(&mut port.lost);
                count(lost);
            }
            let transmit_ready = self.links.transmit_ready(link_tx);
            self.links.agenda.set(transmit_ready, free_at);
        }
    }

    /// A packet that a host's NIC has pulled goes on its link.
    #[inline(always)]
    fn send_from_host(&mut self, now: Time, index: usize, port: PortId, link_tx: u32, last: Time, packet: Packet) {
        let HostSlot { host, sent_frames, ports, .. } = &mut self.hosts[index];
        let mut transit = Transit::leaving(now);
        if self.flow_controlled {
            transit.queue = host.stamp(now, port, &packet);
            let frames = u64::from(packet.has(flags::LINK_FRAME));
            *sent_frames += frames;
            ports.iter_mut().for_each(|ports| ports[port.index()].sent_frames += frames);
        }
        let id = self.links.pool.insert(packet, transit);
        if packet.has(flags::TELEMETRY) {
            *self.links.pool.telemetry_mut(id) = host.carries(&packet);
        }
        C::made(&mut self.links, id);
        self.launch(link_tx, now, last, id);
    }

    #[inline(always)]
    fn launch(&mut self, link_tx: u32, now: Time, last: Time, id: PacketId) {
        if self.watches_launches {
            self.note_launch(link_tx, now, last, id);
        }
        self.links.launch(link_tx, now, last, id);
    }

    #[inline(never)]
    fn note_launch(&mut self, link_tx: u32, now: Time, last: Time, id: PacketId) {
        if P::ANY && self.wants.departures {
            self.note_departure(link_tx, now, last, id);
        }
        if self.retries {
            self.keep(link_tx, now, id);
        }
        if self.pulse.listens
            && let End::Host { index, .. } = self.links.link_txs[link_tx as usize].from
        {
            self.pulse.sends(index as usize, &self.links.pool.get(id).packet);
        }
    }

    /// Lets link-level retry use a free transmitter first, for a message or a repeated packet. Returns whether no new
    /// packet may be sent now.
    #[cold]
    fn repeats_first(&mut self, now: Time, link_tx: u32) -> bool {
        let at = match self.repeats(now, link_tx) {
            Repeats::Nothing => return false,
            Repeats::Busy(free_at) => free_at,
            Repeats::Full => self.repeats_at(link_tx, now),
        };
        let transmit_ready = self.links.transmit_ready(link_tx);
        self.links.agenda.set(transmit_ready, at);
        true
    }

    /// As `repeats_first`, for all ports of a host with several links. Returns the ports, as bits, that may send no new
    /// packet.
    #[cold]
    fn repeat_by_ports(&mut self, now: Time, index: usize) -> u64 {
        let mut held = 0;
        for port in 0..self.hosts[index].ports.as_ref().map_or(0, |ports| ports.len()) {
            let HostSlot { link_tx, ports: Some(ports), .. } = &self.hosts[index] else { break };
            let (link_tx, up, free) = (link_tx + port as u32, ports[port].up, ports[port].free_at <= now);
            if !up || !free {
                continue;
            }
            if self.repeats_first(now, link_tx) {
                held |= 1 << port;
            } else {
                let (transmit_ready, at) = (self.links.transmit_ready(link_tx), self.repeats_at(link_tx, now));
                self.links.agenda.advance(transmit_ready, at);
            }
        }
        held
    }

    fn note_departure(&mut self, link_tx: u32, now: Time, last: Time, id: PacketId) {
        let from = self.links.link_txs[link_tx as usize].from;
        let waiting_bytes = match from {
            End::Switch { index, port } => self.switches[index as usize].switch.port(port).queued_bytes(),
            End::Host { .. } => 0,
        };
        let place = self.place(from);
        let Slot { packet, transit } = self.links.pool.get(id);
        // A packet that a switch has made itself came from no link, so it came without flags.
        let came = match self.came.get_mut(id.index()) {
            Some(came) if place.is_switch => std::mem::take(came),
            _ if place.is_switch => 0,
            _ => packet.flags,
        };
        self.probe.on_departure(now, place, Leaving { packet, transit, came, waiting_bytes, last });
    }

    /// The end of a link by its numbers in the whole network.
    pub(crate) fn place(&self, end: End) -> NodePort {
        match end {
            End::Switch { index, port } => NodePort { id: self.switches[index as usize].id, is_switch: true, port },
            End::Host { index, port } => {
                NodePort { id: self.hosts[index as usize].host.id().0, is_switch: false, port }
            }
        }
    }
}

#[cfg(test)]
mod tests;
