//! A node of R2C2: its stack on one NIC.

use std::sync::Arc;

use fabric::{Fabric, Routes, Routing};
use node::{Cx, Endpoint, Input, Packet, PollAt};
use units::{Duration, FlowId, HostId, Time};

use super::adapt::Turn;
use super::header::{Batch, FlowRate, FlowState};
use super::network::{Calculators, Networks};
use super::plane::Plane;
use super::receiver::Receiver;
use super::sender::Sender;
use super::view::{Key, Params};
use super::{Control, Header};

#[derive(node::State)]
#[state(unit(u64::from(self.plane.payload_max())))]
#[state(first(walk.refuse_if(self.plane.site.clock.drift_ppb != 0, "clocks drift")))]
#[state(first(if self.tick.is_none() { walk.time(&mut self.next_tick(walk.now())) }))]
pub(super) struct R2c2 {
    plane: Plane,
    sender: Sender,
    receiver: Receiver,
    fabric: Arc<Fabric>,
    networks: Arc<Networks>,
    calculators: Arc<Calculators>,
    /// When it next computes rates, if at all.
    tick: Option<Time>,
    /// The controller's: the view whose rates it has told.
    told: u128,
    #[state(skip("refused"))]
    turn: Turn,
    counts: Counts,
}

#[derive(Default, node::State)]
#[state(counts)]
struct Counts {
    recomputed: u64,
    rate_messages: u64,
    assigned_again: u64,
    malformed: u64,
}

impl R2c2 {
    pub fn new(plane: Plane, fabric: Arc<Fabric>, networks: Arc<Networks>, calculators: Arc<Calculators>) -> R2c2 {
        let (sender, receiver) = (Sender::default(), Receiver::default());
        R2c2 {
            plane,
            sender,
            receiver,
            fabric,
            networks,
            calculators,
            tick: None,
            told: 0,
            turn: Turn::default(),
            counts: Counts::default(),
        }
    }

    fn receive(&mut self, cx: &mut Cx<'_>, packet: &Packet) {
        let header: Header = packet.header();
        let plane = &mut self.plane;
        let (host, hosts) = (plane.site.host, plane.site.hosts);
        let named = |dst: HostId| dst.0 < hosts && dst != host;
        let sound = match header {
            // It returns with this node's own announcement of its flow.
            Header::Dropped(state) => named(state.dst),
            Header::Rate(rate) => packet.src != host && named(rate.dst),
            // The same holds for assignments, which go to nobody else.
            Header::DroppedAssign(_) => packet.src == host,
            _ => packet.src != host,
        };
        if packet.src.0 >= hosts || !sound {
            self.counts.malformed += 1;
            return;
        }
        match header {
            Header::Data(data) => self.receiver.data(cx, packet, data, plane),
            Header::Announce(state) => self.heard(cx.now, packet, state, false),
            Header::Finish(state) => self.heard(cx.now, packet, state, true),
            Header::Dropped(state) => self.sender.dropped(cx.now, packet.flow, state, plane),
            Header::Assign(batch) => self.assigned(packet, batch),
            Header::DroppedAssign(batch) => self.counts.assigned_again += u64::from(plane.assign_again(batch)),
            Header::Rate(rate) => self.rate(cx.now, packet, rate),
            Header::Probe { packets, from } => self.receiver.probe(packet, packets, from, plane),
            Header::Status(missing) => self.sender.status(cx, packet, missing, plane),
            Header::Done => self.sender.done(cx, packet, plane),
        }
    }

    /// The protocol of this number, if this fabric knows it.
    fn routing(&mut self, rp: u8) -> Option<Routing> {
        let tables = &self.plane.calculator.network.tables;
        let routing = Routing::from_code(rp).filter(|&routing| tables.check(routing).is_ok());
        self.counts.malformed += u64::from(routing.is_none());
        routing
    }

    /// Another node's flow has started, changed or finished.
    fn heard(&mut self, now: Time, packet: &Packet, state: FlowState, finished: bool) {
        let FlowState { dst, number, version, weight, priority, demand_kbps, rp, .. } = state;
        let key = Key { src: packet.src, dst, number };
        let Some(routing) = self.routing(rp) else { return };
        if key.src == self.plane.site.host || key.dst.0 >= self.plane.site.hosts || weight == 0 {
            self.counts.malformed += 1;
            return;
        }
        self.plane.unicast_bytes += far(packet);
        let params = Params { weight, priority, demand_kbps, routing };
        let news = match finished {
            false => self.plane.view.hear(key, params, version, now),
            true => self.plane.view.finish(key, version),
        };
        if !news {
            // A controller that hears a known flow again tells its rates again: they may have been lost, and a flow
            // without a rate waits for ever.
            self.told = 0;
        }
    }

    fn assigned(&mut self, packet: &Packet, batch: Batch) {
        let tables = &self.plane.calculator.network.tables;
        let known = |all: &Vec<(Key, Routing)>| all.iter().all(|of| tables.check(of.1).is_ok());
        let Some(assigned) = self.plane.assigned(packet.src, batch.number).filter(known) else {
            self.counts.malformed += 1;
            return;
        };
        for (key, routing) in assigned {
            if self.plane.view.assign(key, routing) {
                self.sender.reroute(key, routing);
            }
        }
    }

    /// A controller's rate for one of this node's flows.
    fn rate(&mut self, now: Time, packet: &Packet, FlowRate { dst, number, kbps }: FlowRate) {
        self.plane.unicast_bytes += far(packet);
        let key = Key { src: self.plane.site.host, dst, number };
        self.sender.set_rate_of(now, key, f64::from(kbps) * 1_000.0, &self.plane);
    }

    /// Something that rates depend on has changed.
    fn follow(&mut self, now: Time) {
        if self.plane.config.recompute == Duration::ZERO {
            self.recompute(now);
        }
        if self.tick.is_none() && self.ticks() {
            self.tick = Some(self.next_tick(now));
        }
    }

    /// Whether there is periodic work: rates to compute, or demands to estimate, which every sender does.
    fn ticks(&self) -> bool {
        self.computes() || self.sender.is_active()
    }

    /// Computes rates: those of its own flows or, at the controller, all.
    fn computes(&self) -> bool {
        match self.plane.config.control {
            Control::Decentralised => self.sender.is_active(),
            Control::Centralised { controller } => {
                HostId(controller) == self.plane.site.host && !self.plane.view.is_empty()
            }
        }
    }

    /// The next multiple of the recomputation interval on this node's clock; of the refresh interval, if rates are
    /// computed at each event.
    fn next_tick(&self, now: Time) -> Time {
        let (clock, recompute) = (self.plane.site.clock, self.plane.config.recompute);
        let every = if recompute == Duration::ZERO { self.plane.refresh } else { recompute }.ps() as i64;
        clock.true_time((clock.local_ps(now).div_euclid(every) + 1).saturating_mul(every))
    }

    fn recompute(&mut self, now: Time) {
        if !self.computes() {
            return;
        }
        self.counts.recomputed += 1;
        let host = self.plane.site.host;
        match self.plane.config.control {
            Control::Decentralised => {
                let rates = self.plane.calculator.rates(&self.plane.view);
                self.sender.recomputed(now, rates.of(host), &self.plane);
            }
            Control::Centralised { .. } if self.told != self.plane.view.digest() => {
                self.told = self.plane.view.digest();
                self.tell_rates(now);
            }
            Control::Centralised { .. } => {}
        }
    }

    /// Sends each node the rates of its flows: in one message a node, twelve bytes and four a flow (section 5.2 says
    /// one message a node; with these sizes Figure 19's ratios come out within 3%). Here each rate is a packet of its
    /// own, the first of a node's as large as the twelve bytes too.
    fn tell_rates(&mut self, now: Time) {
        let rates = self.plane.calculator.rates(&self.plane.view);
        let flows: Vec<(Key, f64)> =
            self.plane.view.iter().map(|flow| flow.0).zip(rates.all().iter().copied()).collect();
        let mut last = None;
        for (key, rate_bps) in flows {
            if key.src == self.plane.site.host {
                self.sender.set_rate_of(now, key, rate_bps, &self.plane);
                continue;
            }
            let first = last.replace(key.src) != Some(key.src);
            self.counts.rate_messages += u64::from(first);
            let kbps = (rate_bps / 1_000.0).min(f64::from(u32::MAX)) as u32;
            let header = Header::Rate(FlowRate { dst: key.dst, number: key.number, kbps });
            let packet = self.plane.packet(units::FlowId(0), key.src, header, if first { 16 } else { 4 });
            self.plane.control.push_back(packet);
        }
    }

    fn ticked(&mut self, now: Time) {
        self.plane.forget(now, |_| false);
        self.sender.estimate(now, &mut self.plane);
        self.recompute(now);
        self.tick = self.ticks().then(|| self.next_tick(now));
    }
}

/// Counts the cost of a unicast packet: its bytes on each link between switches.
fn far(packet: &Packet) -> u64 {
    match packet.has(node::packet::flags::ROUTER_ALERT) {
        true => 0,
        false => u64::from(packet.wire_bytes) * u64::from(packet.hops.saturating_sub(1)),
    }
}

impl Endpoint for R2c2 {
    fn handle(&mut self, cx: &mut Cx<'_>, input: Input<'_>) {
        let before = self.plane.view.digest();
        match input {
            Input::Send(message) => self.sender.start(cx, message, &mut self.plane),
            Input::Packet(packet) => self.receive(cx, packet),
            Input::Deadline => {
                self.sender.deadline(cx, &mut self.plane);
                let changed = self.turn.look(cx, &mut self.plane);
                self.plane.assign(&changed, self.turn.searches as u8 % self.plane.config.trees);
                for (key, routing) in changed {
                    self.sender.reroute(key, routing);
                }
                if self.tick.is_some_and(|tick| tick <= cx.now) {
                    self.ticked(cx.now);
                }
            }
        }
        if self.plane.view.digest() != before {
            self.follow(cx.now);
        }
    }

    fn poll_transmit(&mut self, cx: &mut Cx<'_>) -> Option<Packet> {
        if !cx.gate.open(self.plane.config.class) {
            return None;
        }
        match self.plane.control.pop_front() {
            Some(packet) => Some(packet),
            None => {
                let before = self.plane.view.digest();
                let packet = self.sender.poll_data(cx, &mut self.plane);
                // One of its own flows has ended.
                if self.plane.view.digest() != before {
                    self.follow(cx.now);
                }
                packet
            }
        }
    }

    fn poll_at(&self) -> PollAt {
        PollAt::At(self.tick.unwrap_or(Time::MAX).min(self.sender.next_deadline()).min(self.turn.at(&self.plane)))
    }

    fn set_routes(&mut self, cx: &mut Cx<'_>, routes: &Arc<Routes>) {
        let network = self.networks.of(&self.fabric, routes);
        self.plane.calculator = self.calculators.of(&network, self.plane.config.headroom);
        let unreachable = |key: &Key| routes.hops(key.src, key.dst).is_none();
        self.plane.forget(cx.now, unreachable);
        self.sender.announce_all(cx.now, &mut self.plane);
        self.recompute(cx.now);
        self.follow(cx.now);
    }

    fn came_again(&mut self, flow: FlowId) {
        self.receiver.came_again(flow);
    }

    fn state(&self, flow: FlowId, say: &mut node::FlowState) {
        self.sender.state(flow, say);
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        let sender = &self.sender.counts;
        vec![
            ("broadcasts", self.plane.broadcasts),
            ("announced_again", sender.announced_again),
            ("assigned_again", self.counts.assigned_again),
            ("unicast_control_bytes", self.plane.unicast_bytes),
            ("recomputations", self.counts.recomputed),
            ("computations_at_starts", sender.computed),
            ("rate_messages", self.counts.rate_messages),
            ("demands_announced", sender.demands),
            ("flows_rerouted", sender.rerouted),
            ("routes_drawn_again", sender.redrawn),
            ("routes_shortened", sender.shortened),
            ("searches", self.turn.searches),
            ("assignments", self.turn.assignments),
            ("probes", sender.probes),
            ("flows_failed", sender.failed),
            ("duplicates", self.receiver.duplicates),
            ("malformed", self.counts.malformed),
            ("known_at_end", self.plane.view.len() as u64),
            ("busy_at_end", u64::from(!self.sender.is_idle())),
        ]
    }
}
