//! A node of R2C2: its stack on one NIC.

use std::sync::Arc;

use fabric::{Fabric, Routes, Routing};
use node::{Cx, Endpoint, Input, Packet, PollAt};
use units::{Duration, HostId, Time};

use super::adapt::Turn;
use super::header::kind;
use super::network::{Calculators, Networks};
use super::plane::Plane;
use super::receiver::Receiver;
use super::sender::Sender;
use super::view::{Key, Params};
use super::{Control, Header};

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
    turn: Turn,
    counts: Counts,
}

#[derive(Default)]
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
        let named = header.seq < hosts && header.seq != host.0;
        let sound = match header.kind {
            // It returns with this node's own announcement of its flow.
            kind::DROPPED => named,
            kind::RATES => packet.src != host && named,
            // The same holds for assignments, which go to nobody else.
            kind::DROPPED_ASSIGN => packet.src == host,
            _ => packet.src != host,
        };
        if packet.src.0 >= hosts || !sound {
            self.counts.malformed += 1;
            return;
        }
        match header.kind {
            kind::DATA | kind::LAST => self.receiver.data(cx, packet, &header, plane),
            kind::PROBE => self.receiver.probe(cx, packet, &header, plane),
            kind::DONE => self.sender.done(cx, packet, plane),
            kind::STATUS => self.sender.status(cx, packet, &header, plane),
            kind::DROPPED => self.sender.dropped(cx.now, packet.flow, &header, plane),
            kind::ANNOUNCE | kind::FINISH => self.heard(cx.now, packet, &header),
            kind::ASSIGN => self.assigned(packet, &header),
            kind::DROPPED_ASSIGN => self.counts.assigned_again += u64::from(plane.assign_again(&header)),
            kind::RATES => self.rates(cx.now, packet, &header),
            _ => self.counts.malformed += 1,
        }
    }

    /// The protocol of a packet, if this fabric knows it.
    fn routing(&mut self, header: &Header) -> Option<Routing> {
        let tables = &self.plane.calculator.network.tables;
        let routing = Routing::from_code(header.rp).filter(|&routing| tables.check(routing).is_ok());
        self.counts.malformed += u64::from(routing.is_none());
        routing
    }

    /// Another node's flow has started, changed or finished.
    fn heard(&mut self, now: Time, packet: &Packet, header: &Header) {
        let key = Key { src: packet.src, dst: HostId(header.seq), number: header.number };
        let Some(routing) = self.routing(header) else { return };
        if key.src == self.plane.site.host || key.dst.0 >= self.plane.site.hosts || header.weight == 0 {
            self.counts.malformed += 1;
            return;
        }
        self.plane.unicast_bytes += far(packet);
        let terms = Params { weight: header.weight, priority: header.priority, demand_kbps: header.word, routing };
        let news = match header.kind {
            kind::ANNOUNCE => self.plane.view.hear(key, terms, header.version, now),
            _ => self.plane.view.finish(key, header.version),
        };
        if !news {
            // A controller that hears a known flow again tells its rates again: they may have been lost, and a flow
            // without a rate waits for ever.
            self.told = 0;
        }
    }

    fn assigned(&mut self, packet: &Packet, header: &Header) {
        let tables = &self.plane.calculator.network.tables;
        let known = |all: &Vec<(Key, Routing)>| all.iter().all(|of| tables.check(of.1).is_ok());
        let Some(assigned) = self.plane.assigned(packet.src, header.seq).filter(known) else {
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
    fn rates(&mut self, now: Time, packet: &Packet, header: &Header) {
        self.plane.unicast_bytes += far(packet);
        let key = Key { src: self.plane.site.host, dst: HostId(header.seq), number: header.number };
        self.sender.set_rate_of(now, key, f64::from(header.word) * 1_000.0, &self.plane);
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
        let (clock, config) = (self.plane.site.clock, &self.plane.config);
        let every = if config.recompute == Duration::ZERO { config.refresh } else { config.recompute }.ps() as i64;
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
                self.sender.set_rates(now, rates.of(host), &self.plane);
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
            let header = Header { seq: key.dst.0, number: key.number, word: kbps, ..Header::of(kind::RATES) };
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
