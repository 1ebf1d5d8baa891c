//! The switch: one pipeline.
//!
//! On arrival: (1) flow-control frames, (2) forwarding (by the packet's own route, its transport's agent, or routing
//! table and load balancer), (3) ingress stage, (4) buffer admission, (5) the port's queue of the packet's class, or a
//! queue of the flow control's, (6) mark. When the link is free: (7) scheduler, (8) egress stage.
//!
//! The switch is output-queued. It is store and forward, or cut-through if the driver hands packets in when their head
//! arrives. A scheme fills in the stages that it needs through [`Stages`]; everything else is settings, so any
//! transport runs with any of them. As in a programmable switch, the ingress stage knows a packet's output port and
//! what is queued there. The pipeline's latency belongs to the incoming link (the driver adds it to the propagation
//! delay), so the switch sees a packet when it reaches the queue.
//!
//! Deliberately absent: input queues and crossbar contention, which none of the papers model.

mod losses;
mod room;
mod settings;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use fabric::Routes;
use units::{PortId, Rate, Stream, SwitchId, Time};

pub use losses::{Loss, Lost};
pub use settings::{Buffer, Overflow, Settings};

use crate::balance::Balancer;
use crate::link::{Admission, Dequeued, LinkCx, trim};
use crate::packet::{CLASSES, HOPS_MAX, flags};
use crate::pool::{PacketId, Pool, Slot, Transit};
use crate::telemetry::HopRecord;
use crate::{AgentCx, EarlyDrop, LostFlows, MarkAt, Marking, Packet, Port, QueueDiscipline, SwitchAgent, Walk};

crate::save_behind!(dyn Stages);

/// The pipeline stages that a scheme adds to switches.
pub trait Stages: Send + crate::State {
    /// A packet is to join the queue of `out`. False drops it.
    fn ingress(&mut self, now: Time, out: PortId, port: &Port, packet: &mut Packet) -> bool;

    /// A packet is about to leave by `out`. `port` shows the queues without it. False drops it, and the next packet
    /// takes its turn.
    fn egress(&mut self, now: Time, out: PortId, port: &Port, packet: &mut Packet) -> bool;

    /// Telemetry in place of the port's, for a packet that leaves now and belongs to a virtual queue with a rate of its
    /// own; `None` if the port tells.
    fn tell(&mut self, _now: Time, _packet: &Packet) -> Option<HopRecord> {
        None
    }

    /// When it wants [`Stages::wake`]; [`Time::MAX`] for never. Read at the start and after each wake.
    fn poll_at(&self) -> Time {
        Time::MAX
    }

    /// The time named by [`Stages::poll_at`] has come.
    fn wake(&mut self, _now: Time) {}

    /// Counters by tag, for the result.
    fn tag_stats(&self) -> BTreeMap<u32, TagStats> {
        BTreeMap::new()
    }
}

/// Counters of the packets with one tag.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, node::State)]
#[state(counts)]
pub struct TagStats {
    /// Packets that passed.
    pub passed_packets: u64,
    /// Bytes of these packets.
    pub passed_bytes: u64,
    /// Packets dropped.
    pub dropped_packets: u64,
    /// Bytes of these packets.
    pub dropped_bytes: u64,
    /// Packets marked.
    pub marked_packets: u64,
}

/// The fate of a packet that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    /// It is queued at this port.
    Queued(PortId),
    /// It leaves by this port now: the switch has sent it ([`Switch::let_through`]).
    Through(PortId),
    /// It was for this switch: a frame, or a packet that an agent consumed.
    Taken,
    /// It was lost, on its way to this port if that was known.
    Lost(Loss, Option<PortId>),
}

/// A switch.
#[derive(node::State)]
#[state(given(()))]
#[state(first(walk.refuse_if(self.losses.as_ref().is_some_and(|of| !of.is_empty()), "a probe is to hear of losses")))]
pub struct Switch {
    id: SwitchId,
    #[state(ports)]
    ports: Vec<Port>,
    routes: Arc<Routes>,
    balancers: Vec<Balancer>,
    settings: Arc<Settings>,
    used_bytes: u64,
    /// Most bytes that its buffer has held.
    pub used_bytes_max: u64,
    /// Packets without a path onward.
    #[state(count)]
    pub unroutable_packets: u64,
    /// Bytes of these packets.
    #[state(count)]
    pub unroutable_bytes: u64,
    /// Packets that a stage dropped, and their bytes.
    #[state(count)]
    pub staged_out: (u64, u64),
    random: Stream,
    stages: Option<Box<dyn Stages>>,
    flow_control: Option<Box<dyn QueueDiscipline>>,
    /// The transports' agents, if there are any.
    agents: Option<Box<Agents>>,
    ready_ports: Vec<PortId>,
    marks_late: bool,
    /// Whether packets go through idle ports without a queue.
    #[state(built("it never changes"))]
    lets_through: bool,
    /// Number of switches at which a packet is dropped.
    hops_max: u16,
    kept: Option<Box<Kept>>,
    /// Losses that no probe has been told of; `None` if none observes losses.
    #[state(skip("refused"))]
    losses: Option<VecDeque<Lost>>,
    /// Flows of the packets that it has lost.
    pub lost_flows: LostFlows,
}

/// Reserved buffer space, and the packets that it displaced.
#[derive(node::State)]
struct Kept {
    #[state(built("it never changes"))]
    room: ReservedBuffer,
    /// The reserved bytes, if ports share their memory.
    shared_bytes: u64,
    /// By class: packets that found no room.
    #[state(count)]
    overflow_packets: [u64; CLASSES],
}

/// The transports' agents in a switch.
#[derive(node::State)]
#[state(given(()))]
struct Agents {
    /// By transport: its agent, if it has one, and that agent's random stream.
    of: Vec<Option<(Box<dyn SwitchAgent>, Stream)>>,
    /// Packets that an agent has just sent.
    made: Vec<(PortId, Packet)>,
    /// Bytes that agents have sent, and bytes of packets that they have consumed.
    #[state(count)]
    bytes: (u64, u64),
}

/// Buffer space reserved for the first classes. Guaranteed classes may use all of the reserved bytes. Signals, whose
/// volume is not bounded, may not use the guaranteed classes' part, but have as many bytes reserved from all other
/// classes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReservedBuffer {
    /// Number of guaranteed classes, counted from the first.
    pub guaranteed: u8,
    /// Number of guaranteed and signal classes together.
    pub reserved: u8,
    /// By port: reserved bytes. If ports share their memory, the sum is reserved.
    pub port_bytes: Vec<u64>,
}

impl ReservedBuffer {
    /// How many times the reserved bytes are unavailable to a class.
    fn times(&self, class: u8) -> u64 {
        let signals = self.reserved > self.guaranteed;
        u64::from(class >= self.guaranteed) + u64::from(signals && class >= self.reserved)
    }
}

/// Builds the flow control's context of a switch.
macro_rules! link_cx {
    ($switch:ident, $now:expr, $pool:expr) => {
        LinkCx {
            now: $now,
            ports: &mut $switch.ports,
            pool: $pool,
            used_bytes: &mut $switch.used_bytes,
            random: &mut $switch.random,
            header_bytes: $switch.settings.header_bytes,
            ready_ports: &mut $switch.ready_ports,
        }
    };
}

impl Switch {
    /// A switch with these ports. `balancers` has one entry for each transport.
    pub fn new(
        id: SwitchId,
        ports: Vec<Port>,
        routes: Arc<Routes>,
        balancers: Vec<Balancer>,
        settings: Arc<Settings>,
        random: Stream,
        stages: Option<Box<dyn Stages>>,
    ) -> Switch {
        let marks_late = settings.mark_at == MarkAt::Departure;
        Switch {
            id,
            ports,
            routes,
            balancers,
            settings,
            used_bytes: 0,
            used_bytes_max: 0,
            unroutable_packets: 0,
            unroutable_bytes: 0,
            staged_out: (0, 0),
            random,
            stages,
            flow_control: None,
            agents: None,
            ready_ports: Vec::new(),
            marks_late,
            lets_through: false,
            hops_max: u16::from(HOPS_MAX),
            kept: None,
            losses: None,
            lost_flows: LostFlows::default(),
        }
    }

    /// The same switch with reserved buffer space. Call before the run starts.
    pub fn with_reserved_buffer(self, kept: Option<ReservedBuffer>) -> Switch {
        let kept = kept.map(|room| {
            let shared_bytes = room.port_bytes.iter().sum();
            Box::new(Kept { room, shared_bytes, overflow_packets: [0; CLASSES] })
        });
        Switch { kept, ..self }
    }

    /// The same switch in a network in which packets may pass any number of switches.
    pub fn with_long_paths(self) -> Switch {
        Switch { hops_max: u16::MAX, ..self }
    }

    /// The same switch with a flow control. Call before the run starts.
    pub fn with_flow_control(self, flow_control: Option<Box<dyn QueueDiscipline>>) -> Switch {
        Switch { flow_control, ..self }
    }

    /// From now on a packet that finds its port idle is sent within [`Switch::receive`], with all that the port's queue
    /// would have done. Not where stages, a flow control or round robin decide what goes next. Call after them.
    pub fn let_through(&mut self) {
        self.lets_through = self.stages.is_none() && self.flow_control.is_none();
    }

    /// The same switch with agents, by transport. Call before the run starts.
    pub fn with_agents(self, of: Vec<Option<(Box<dyn SwitchAgent>, Stream)>>) -> Switch {
        let some = of.iter().any(Option::is_some);
        Switch { agents: some.then(|| Box::new(Agents { of, made: Vec::new(), bytes: (0, 0) })), ..self }
    }

    /// Bytes that agents have sent, and bytes of packets that they have consumed.
    pub fn agents_bytes(&self) -> (u64, u64) {
        self.agents.as_ref().map_or((0, 0), |agents| agents.bytes)
    }

    /// By class: packets that found no room, if buffer space is reserved.
    pub fn overflow_by_class(&self) -> [u64; CLASSES] {
        self.kept.as_ref().map_or([0; CLASSES], |kept| kept.overflow_packets)
    }

    /// Its ports, in order.
    pub fn ports(&self) -> &[Port] {
        &self.ports
    }

    /// One port.
    #[inline]
    pub fn port(&self, port: PortId) -> &Port {
        &self.ports[port.index()]
    }

    /// Bytes of a class that wait at a port, in its own queues or in a flow control's.
    #[inline]
    pub fn class_bytes(&self, port: PortId, class: u8) -> u32 {
        match &self.flow_control {
            None => self.ports[port.index()].class_bytes(class),
            Some(control) => control.class_bytes(&self.ports, port, class),
        }
    }

    /// Bytes in its buffer.
    pub fn used_bytes(&self) -> u64 {
        self.used_bytes
    }

    /// Forwards by these tables from now on.
    pub fn set_routes(&mut self, now: Time, routes: Arc<Routes>, pool: &mut Pool) {
        if let Some(control) = &mut self.flow_control {
            control.set_routes(&mut link_cx!(self, now, pool), &routes);
        }
        self.routes = routes.clone();
        for transport in 0..self.agents.as_ref().map_or(0, |agents| agents.of.len()) {
            self.ask_agent(now, transport, |agent, cx| agent.set_routes(cx, &routes));
        }
    }

    /// Goes over one of its ports.
    pub fn visit_port(&mut self, walk: &mut Walk, port: PortId) {
        walk.port(Some(port.0));
        crate::State::visit(&mut self.ports[port.index()], walk, &());
        walk.port(None);
    }

    /// Whether [`Switch::take_ready_port`] has a port to return.
    #[inline]
    pub fn has_ready_ports(&self) -> bool {
        !self.ready_ports.is_empty()
    }

    /// A port that may have become ready to send without a new packet; `None` when there is none left.
    #[inline]
    pub fn take_ready_port(&mut self) -> Option<PortId> {
        self.ready_ports.pop()
    }

    /// Whether a port would send a packet if its transmitter were free.
    #[inline]
    pub fn has_sendable(&self, port: PortId) -> bool {
        let own = &self.ports[port.index()];
        match &self.flow_control {
            None => own.has_sendable(),
            Some(control) => own.has_frame() || control.ready(&self.ports, port),
        }
    }

    /// Its flow control, if it has one.
    pub fn flow_control(&self) -> Option<&dyn QueueDiscipline> {
        self.flow_control.as_deref()
    }

    /// Receives a packet by `in_port`: stages 1 to 6. A part of every hop of every driver, not a call.
    #[inline(always)]
    pub fn receive(&mut self, now: Time, in_port: PortId, pool: &mut Pool, id: PacketId) -> Received {
        let slot = pool.get_mut(id);
        slot.transit.in_port = in_port.0 as u16;
        let packet = &mut slot.packet;
        if packet.has(flags::LINK_FRAME | flags::ROUTER_ALERT) {
            return self.signal(now, in_port, pool, id);
        }
        let Some(out) = self.forward(now, in_port, packet) else {
            return self.lose_unroutable(pool, id);
        };
        if !self.lets_through {
            return self.join(now, out, pool, id);
        }
        if self.ports[out.index()].is_idle(now) && self.send_through(now, out, pool, id) {
            return Received::Through(out);
        }
        self.join_inline(now, out, pool, id)
    }

    /// An idle port sends a packet, with all of stages 3 to 8 that can apply to one. Returns whether it has: it does
    /// not where the packet may be lost.
    #[inline(always)]
    fn send_through(&mut self, now: Time, out: PortId, pool: &mut Pool, id: PacketId) -> bool {
        let Slot { packet, transit } = pool.get_mut(id);
        let hops = packet.hops.saturating_add(1);
        if u16::from(hops) >= self.hops_max || !self.settings.early_drop.is_empty() || !self.fits(out, packet) {
            return false;
        }
        packet.hops = hops;
        let bytes = u32::from(packet.wire_bytes);
        self.used_bytes_max = self.used_bytes_max.max(self.used_bytes + u64::from(bytes));
        // A mark at departure goes by what is left behind, which is nothing.
        if !self.marks_late {
            self.mark(out, bytes, packet);
        }
        let port = &mut self.ports[out.index()];
        let hop = packet.has(flags::TELEMETRY).then(|| port.tell(now, 0));
        transit.at = now;
        port.transmit_at_once(now, bytes, transit.tail_lag.time());
        if let Some(hop) = hop {
            pool.telemetry_mut(id).push(self.id, hop.of(self.id, out));
        }
        true
    }

    /// [`Switch::join_inline`] where no packet goes through, and for rare callers: the way of most packets stays short.
    #[inline(never)]
    fn join(&mut self, now: Time, out: PortId, pool: &mut Pool, id: PacketId) -> Received {
        self.join_inline(now, out, pool, id)
    }

    /// Queues a packet that is to leave by `out`: stages 3 to 6.
    #[inline(always)]
    fn join_inline(&mut self, now: Time, out: PortId, pool: &mut Pool, id: PacketId) -> Received {
        let packet = &mut pool.get_mut(id).packet;
        packet.hops = packet.hops.saturating_add(1);
        if u16::from(packet.hops) >= self.hops_max {
            self.lose_expired(now, out, pool, id);
            return Received::Lost(Loss::Expired, Some(out));
        }
        if !self.ports[out.index()].is_up() {
            self.lose_dead(now, out, pool, id);
            return Received::Lost(Loss::Dead, Some(out));
        }
        if let Some(stages) = &mut self.stages
            && !stages.ingress(now, out, &self.ports[out.index()], packet)
        {
            self.stage_out(pool, id);
            return Received::Lost(Loss::Stage, Some(out));
        }
        if !self.settings.early_drop.is_empty() && self.drops_early(out, &pool.get(id).packet) {
            self.lose_overflow(now, out, pool, id);
            return Received::Lost(Loss::Overflow, Some(out));
        }
        if self.flow_control.is_some()
            && let Some(received) = self.ask_for_room(now, out, pool, id)
        {
            return received;
        }
        if !self.admit(now, out, pool, id) {
            return Received::Lost(Loss::Overflow, Some(out));
        }
        let bytes = u32::from(pool.get(id).packet.wire_bytes);
        self.used_bytes += u64::from(bytes);
        self.used_bytes_max = self.used_bytes_max.max(self.used_bytes);
        let queue_bytes = match &mut self.flow_control {
            None => {
                let port = &mut self.ports[out.index()];
                port.push(now, pool, id);
                port.class_bytes(pool.get(id).packet.class)
            }
            Some(control) => control.enqueue(&mut link_cx!(self, now, pool), out, id),
        };
        if !self.marks_late {
            self.mark(out, queue_bytes, &mut pool.get_mut(id).packet);
        }
        Received::Queued(out)
    }

    /// Marks a packet whose queue has this length, if the settings say so.
    #[inline]
    fn mark(&mut self, out: PortId, queue_bytes: u32, packet: &mut Packet) {
        let port = &mut self.ports[out.index()];
        // If entities have virtual queues (AQs), those mark their packets.
        if packet.has(flags::ECT)
            && (self.stages.is_none() || packet.tags() == [0, 0])
            && let Some(marking) = self.settings.marking[packet.transport as usize]
            && marks(marking, port.rate(), queue_bytes, &mut self.random)
        {
            packet.flags |= flags::CE;
            port.stats.marked_packets += 1;
        }
    }

    /// Handles a packet that is for this switch or asks it to look.
    #[inline(never)]
    fn signal(&mut self, now: Time, in_port: PortId, pool: &mut Pool, id: PacketId) -> Received {
        let packet = &mut pool.get_mut(id).packet;
        if packet.has(flags::LINK_FRAME) {
            self.frame(now, in_port, pool, id);
            return Received::Taken;
        }
        let transport = usize::from(packet.transport);
        let out = self.ask_agent(now, transport, |agent, cx| agent.handle(cx, in_port, packet));
        self.send_made(now, in_port, pool);
        match (out, &mut self.agents) {
            (Some(Some(out)), _) => {
                let received = self.join(now, out, pool, id);
                // The loss of the packet may have made the agent send others.
                self.send_made(now, in_port, pool);
                received
            }
            (Some(None), Some(agents)) => {
                agents.bytes.1 += u64::from(pool.remove(id).packet.wire_bytes);
                Received::Taken
            }
            _ => self.lose_unroutable(pool, id),
        }
    }

    fn ask_agent<T>(
        &mut self,
        now: Time,
        transport: usize,
        ask: impl FnOnce(&mut dyn SwitchAgent, &mut AgentCx<'_>) -> T,
    ) -> Option<T> {
        let Agents { of, made, .. } = &mut **self.agents.as_mut()?;
        let (agent, random) = of.get_mut(transport)?.as_mut()?;
        let (ports, routes) = (&self.ports, &*self.routes);
        Some(ask(&mut **agent, &mut AgentCx { now, switch: self.id, ports, routes, random, made }))
    }

    /// Queues what agents have sent, as if it had arrived by `in_port`.
    fn send_made(&mut self, now: Time, in_port: PortId, pool: &mut Pool) {
        let Some(agents) = &mut self.agents else { return };
        // In order, by index: a loss among these packets may make agents send more.
        let mut next = 0;
        let mut made = std::mem::take(&mut agents.made);
        while let Some(&(out, packet)) = made.get(next) {
            next += 1;
            let mut transit = Transit::leaving(now);
            transit.in_port = in_port.0 as u16;
            let id = pool.insert(packet, transit);
            if let Received::Queued(out) = self.join(now, out, pool, id)
                && !self.ready_ports.contains(&out)
            {
                self.ready_ports.push(out);
            }
            made.extend(self.agents.iter_mut().flat_map(|agents| agents.made.drain(..)));
        }
        if let Some(agents) = &mut self.agents {
            agents.bytes.0 += made.iter().map(|(_, packet)| u64::from(packet.wire_bytes)).sum::<u64>();
            made.clear();
            agents.made = made;
        }
    }

    #[cold]
    fn frame(&mut self, now: Time, port: PortId, pool: &mut Pool, id: PacketId) {
        let frame = pool.remove(id).packet;
        if let Some(control) = &mut self.flow_control {
            control.frame(&mut link_cx!(self, now, pool), port, &frame);
        }
    }

    /// Begins to send the next packet of a port: stages 7 and 8. `None` if nothing may be sent. Inlined as
    /// [`Switch::receive`] is.
    #[inline(always)]
    pub fn transmit(&mut self, now: Time, out: PortId, pool: &mut Pool) -> Option<PacketId> {
        loop {
            let (id, left_bytes) = match &mut self.flow_control {
                None => (self.ports[out.index()].take_next(pool)?, None),
                Some(control) => {
                    if let Some(frame) = self.ports[out.index()].transmit_frame(now, pool) {
                        return Some(frame);
                    }
                    let Dequeued { id, left_bytes } = control.dequeue(&mut link_cx!(self, now, pool), out)?;
                    (id, Some(left_bytes))
                }
            };
            if self.marks_late {
                let left_bytes = left_bytes.unwrap_or_else(|| self.class_bytes_of(out, id, pool));
                self.mark(out, left_bytes, &mut pool.get_mut(id).packet);
            }
            let port = &mut self.ports[out.index()];
            let packet = &mut pool.get_mut(id).packet;
            self.used_bytes -= u64::from(packet.wire_bytes);
            if let Some(stages) = &mut self.stages
                && !stages.egress(now, out, port, packet)
            {
                self.stage_out(pool, id);
                continue;
            }
            if packet.has(flags::TELEMETRY) {
                let left_bytes = left_bytes.unwrap_or_else(|| port.class_bytes(packet.class));
                let own = self.stages.as_mut().and_then(|stages| stages.tell(now, packet));
                let hop = own.unwrap_or_else(|| port.tell(now, left_bytes));
                pool.telemetry_mut(id).push(self.id, hop.of(self.id, out));
            }
            port.transmit(now, pool, id);
            return Some(id);
        }
    }

    fn class_bytes_of(&self, out: PortId, id: PacketId, pool: &Pool) -> u32 {
        self.ports[out.index()].class_bytes(pool.get(id).packet.class)
    }

    /// By transport: counters of its agent.
    pub fn agent_counters(&self) -> impl Iterator<Item = (usize, Vec<(&'static str, u64)>)> + '_ {
        let agents = self.agents.iter().flat_map(|agents| agents.of.iter().enumerate());
        agents.filter_map(|(index, agent)| Some((index, agent.as_ref()?.0.counters())))
    }

    /// Counters of its stages, by tag.
    pub fn tag_stats(&self) -> BTreeMap<u32, TagStats> {
        self.stages.as_ref().map_or_else(BTreeMap::new, |stages| stages.tag_stats())
    }

    /// When its stages or its flow control want [`Switch::wake`]; [`Time::MAX`] for never.
    pub fn next_at(&self) -> Time {
        let stages = self.stages.as_ref().map_or(Time::MAX, |stages| stages.poll_at());
        self.flow_control.as_ref().map_or(Time::MAX, |control| control.poll_at()).min(stages)
    }

    /// The time of [`Switch::next_at`] has come.
    pub fn wake(&mut self, now: Time, pool: &mut Pool) {
        if let Some(stages) = &mut self.stages
            && stages.poll_at() <= now
        {
            stages.wake(now);
        }
        if let Some(control) = &mut self.flow_control
            && control.poll_at() <= now
        {
            control.wake(&mut link_cx!(self, now, pool));
            while let Some((port, id)) = self.flow_control.as_mut().and_then(|control| control.gives_up()) {
                self.used_bytes -= u64::from(pool.get(id).packet.wire_bytes);
                self.lose_overflow(now, port, pool, id);
            }
        }
    }

    /// A port's free transmitter is busy with so many bytes that are in no queue of the switch. Returns until when.
    pub fn occupy(&mut self, now: Time, port: PortId, bytes: u32) -> Time {
        self.ports[port.index()].occupy(now, bytes)
    }

    /// The link at a port goes down, which loses the packets that wait for it, or comes up.
    pub fn set_up(&mut self, now: Time, port: PortId, up: bool, pool: &mut Pool) {
        self.ports[port.index()].set_up(up);
        if !up {
            self.ports[port.index()].drop_frames(pool);
            while let Some(id) = self.drain(now, port, pool) {
                self.used_bytes -= u64::from(pool.get(id).packet.wire_bytes);
                self.lose_dead(now, port, pool, id);
            }
        }
        if let Some(control) = &mut self.flow_control {
            control.set_up(&mut link_cx!(self, now, pool), port, up);
        }
        for transport in 0..self.agents.as_ref().map_or(0, |agents| agents.of.len()) {
            self.ask_agent(now, transport, |agent, cx| agent.set_up(cx, port, up));
        }
        self.send_made(now, port, pool);
    }

    /// A port transmits at a rate other than its link's nominal rate. Nobody is told.
    pub fn transmit_at(&mut self, port: PortId, rate: Rate) {
        self.ports[port.index()].transmit_at(rate);
    }

    fn drain(&mut self, now: Time, port: PortId, pool: &mut Pool) -> Option<PacketId> {
        match &mut self.flow_control {
            None => self.ports[port.index()].drain(pool),
            Some(control) => control.drain(&mut link_cx!(self, now, pool), port),
        }
    }

    #[cold]
    fn drops_early(&mut self, out: PortId, packet: &Packet) -> bool {
        let port = &self.ports[out.index()];
        !packet.has(flags::ECT)
            && self.settings.early_drop[usize::from(packet.transport)].is_some_and(|EarlyDrop { at, by_port }| {
                let waiting = if by_port { port.queued_bytes() } else { port.class_bytes(packet.class) };
                marks(at, port.rate(), waiting + u32::from(packet.wire_bytes), &mut self.random)
            })
    }

    #[inline]
    fn forward(&mut self, now: Time, in_port: PortId, packet: &Packet) -> Option<PortId> {
        if packet.has(flags::SOURCE_ROUTED) {
            return packet.routed_to().filter(|&port| (port as usize) < self.ports.len()).map(PortId);
        }
        let candidates = self.routes.next(self.id, packet.dst);
        match candidates {
            [] => None,
            [only] => Some(*only),
            several => {
                let queue = |i: usize| self.ports[several[i].index()].queued_bytes();
                let balancer = &mut self.balancers[packet.transport as usize];
                let group = if balancer.by_link() { in_port.index() } else { self.routes.group(packet.dst) };
                Some(several[balancer.choose(now, packet, group, several.len(), queue)])
            }
        }
    }

    /// Asks the flow control for room. Returns the packet's fate, or `None` if the switch's own memory decides.
    #[inline(never)]
    fn ask_for_room(&mut self, now: Time, out: PortId, pool: &mut Pool, id: PacketId) -> Option<Received> {
        loop {
            let control = self.flow_control.as_mut()?;
            match control.admit(&mut link_cx!(self, now, pool), out, id) {
                Admission::ByBuffer => return None,
                Admission::Evict(victim) => {
                    self.used_bytes -= u64::from(pool.get(victim).packet.wire_bytes);
                    self.lose_overflow(now, out, pool, victim);
                }
                Admission::Redirect => {
                    let slot = pool.get_mut(id);
                    let in_port = PortId(u32::from(slot.transit.in_port));
                    slot.packet.hops -= 1; // this switch counts once
                    let Some(out) = self.forward(now, in_port, &slot.packet) else {
                        return Some(self.lose_unroutable(pool, id));
                    };
                    return Some(self.join(now, out, pool, id));
                }
                Admission::Full => {
                    self.lose_overflow(now, out, pool, id);
                    return Some(Received::Lost(Loss::Overflow, Some(out)));
                }
            }
        }
    }

    /// Makes room for a packet. Returns false if the packet is lost.
    #[inline]
    fn admit(&mut self, now: Time, out: PortId, pool: &mut Pool, id: PacketId) -> bool {
        if self.fits(out, &pool.get(id).packet) {
            return true;
        }
        self.overflow(now, out, pool, id)
    }

    #[inline(always)]
    fn fits(&self, out: PortId, packet: &Packet) -> bool {
        let port = &self.ports[out.index()];
        let bytes = u64::from(packet.wire_bytes);
        if let Some(kept) = &self.kept {
            return self.fits_beside(kept, out, packet);
        }
        if let Some(share) = self.flow_control.as_ref().and_then(|control| control.share(packet.class)) {
            return self.fits_share(share, out, packet);
        }
        match self.settings.buffer {
            Buffer::PerPort { bytes: max } => u64::from(port.queued_bytes()) + bytes <= max.get(),
            Buffer::Shared { bytes: max, alpha } => {
                let free = max.get().saturating_sub(self.used_bytes);
                let queue = u64::from(port.class_bytes(packet.class)) + bytes;
                bytes <= free && alpha.is_none_or(|alpha| queue as f64 <= alpha * free as f64)
            }
        }
    }

    fn push_out(&mut self, now: Time, port: PortId, class: u8, pool: &mut Pool) -> Option<PacketId> {
        match &mut self.flow_control {
            None => self.ports[port.index()].push_out(class, pool),
            Some(control) => control.push_out(&mut link_cx!(self, now, pool), port, class),
        }
    }

    #[cold]
    fn overflow(&mut self, now: Time, out: PortId, pool: &mut Pool, id: PacketId) -> bool {
        match self.settings.overflow {
            Overflow::TailDrop => {}
            Overflow::PushOut => {
                let class = pool.get(id).packet.class;
                while let Some(victim) = self.push_out(now, out, class, pool) {
                    self.used_bytes -= u64::from(pool.get(victim).packet.wire_bytes);
                    self.lose_overflow(now, out, pool, victim);
                    if self.fits(out, &pool.get(id).packet) {
                        return true;
                    }
                }
            }
            Overflow::Trim => {
                let packet = &mut pool.get_mut(id).packet;
                let whole = packet.wire_bytes;
                if !packet.has(flags::TRIMMED) && whole > self.settings.header_bytes {
                    let cut = trim(packet, self.settings.header_bytes);
                    let packet = *packet;
                    if self.fits(out, &packet) {
                        let stats = &mut self.ports[out.index()].stats;
                        stats.trimmed_packets += 1;
                        stats.overflow_bytes += u64::from(cut);
                        return true;
                    }
                    pool.get_mut(id).packet.wire_bytes = whole; // lost whole, and counted so
                }
            }
        }
        self.lose_overflow(now, out, pool, id);
        false
    }
}

/// Whether a packet is marked (or dropped, if it can't be) whose queue is `queue_bytes` long, the packet included.
#[inline]
pub fn marks(marking: Marking, rate: Rate, queue_bytes: u32, random: &mut Stream) -> bool {
    let queue = u64::from(queue_bytes);
    match marking {
        Marking::Step { threshold } => queue > threshold.get(),
        Marking::Ramp { min, max, probability_max, per } => {
            // The queue length that would take the same time to drain at the rate `per`.
            let queue = per.map_or(queue, |per| (queue as f64 * (per.bps() as f64 / rate.bps() as f64)) as u64);
            if queue <= min.get() {
                return false;
            }
            let share = (queue - min.get()) as f64 / (max.get() - min.get()).max(1) as f64;
            queue > max.get() || random.chance(share * probability_max)
        }
        Marking::GentleRamp { min, max, probability_max } => {
            let max_bytes = max.get();
            if queue <= max_bytes {
                let ramp = Marking::Ramp { min, max, probability_max, per: None };
                return marks(ramp, rate, queue_bytes, random);
            }
            let share = (queue - max_bytes) as f64 / max_bytes as f64;
            share >= 1.0 || random.chance(probability_max + share * (1.0 - probability_max))
        }
    }
}
