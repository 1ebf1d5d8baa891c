//! The sender's side: one token bucket a flow, a route for each packet (section 3.5), what it announces and when, and
//! its demand (section 3.3.2).
//!
//! A flow is *active* while it has packets to send, and announced for as long. Its bucket holds one packet: the next is
//! due when the last one's bits have been earned at the rate of the time. It starts at once, at the fair rate that its
//! sender's view gives it then (or, with `first_rate = "alone"`, at what it would have alone in the rack), and has what
//! the whole view gives it from the next recomputation on.
//!
//! Section 3.1 has a node compute the rates of all its own flows at each event, and section 3.3.2 only at intervals:
//! the headroom is for what a node doesn't know in between. It knows its own flows. Decided here: if a new flow's rate
//! together with the present ones of the node's other flows exceeds a link that leaves the node, all of them have
//! their new fair rates at once, and again when one of them ends before the next recomputation. Otherwise the others
//! keep theirs, so that a short flow on other links does not slow them down.
//!
//! A packet's route has room for 42 hops (section 4.2). What a protocol draws is within that while nothing has failed
//! ([`Config::check_on`](super::Config)); around a failure it may be longer. Then it is drawn again, a few times, and
//! after that the packet takes a shortest path. Both are counted. Where the shortest is longer too, the flow waits as
//! one without a path does, and fails in the end.
//!
//! R2C2 is no complete transport (section 6 leaves acknowledgements "solely for reliability" to others). Here the
//! receiver says when all is there; a sender that has sent everything and hears nothing asks what is missing, and sends
//! that, announced like anything else. An answer covers 128 packets. As soon as it has one the sender asks for what is
//! missing behind them, so that after an outage it repeats at the flow's rate and not 128 packets each time that it has
//! waited for an answer.

use std::collections::{BTreeMap, VecDeque};

use fabric::Routing;
use node::{Cx, Event, FlowMap, Message, Packet, Timers};
use units::{Duration, FlowId, HostId, LinkId, PortId, Rate, Time};

use super::demand::{self, Demand};
use super::header::{Data, FlowState, Missing, UNLIMITED, WINDOW};
use super::network::refresh_tree;
use super::plane::{News, Plane};
use super::view::{Key, Params, next_version};
use super::wire::DATA_BYTES;
use super::{FirstRate, Header, route};

#[derive(Default, node::State)]
pub(super) struct Sender {
    flows: FlowMap<Outgoing>,
    /// Active flows, in the order of views.
    active: BTreeMap<Key, u32>,
    /// By destination: the numbers in use.
    numbers: BTreeMap<HostId, Numbers>,
    /// Messages that wait for a number.
    waiting: VecDeque<Message>,
    /// Flows whose next packet is due, in order.
    due: VecDeque<u32>,
    pacing: Timers,
    /// When to announce a flow again.
    refreshing: Timers,
    /// When to ask the receiver.
    answers: Timers,
    /// The tree of the next flow.
    tree: u8,
    /// A start has changed the rates of other flows since rates were last computed for all.
    early: bool,
    #[state(built("it is of the packet that is made"))]
    ports: Vec<PortId>,
    pub counts: Counts,
}

#[derive(Default, node::State)]
#[state(counts)]
pub(super) struct Counts {
    pub probes: u64,
    pub failed: u64,
    pub demands: u64,
    pub rerouted: u64,
    pub announced_again: u64,
    pub computed: u64,
    pub redrawn: u64,
    pub shortened: u64,
}

/// Number of times that a too long route is drawn again before its packet takes a shortest path.
const DRAWS_AGAIN: u32 = 8;

const TOO_LONG: &str = "every path to its receiver has more hops than a source route can hold";

/// Whether a packet has a route.
enum Routed {
    Yes,
    TooLong,
    NoPath,
}

#[derive(Default, node::State)]
struct Numbers {
    next: u8,
    used: [u64; 4],
    /// By number: the last announced version.
    versions: Vec<u8>,
}

#[derive(node::State)]
#[state(first(walk.refuse_if(self.source.is_some(), "R2C2's messages are produced at a rate")))]
struct Outgoing {
    key: Key,
    params: Params,
    version: u8,
    tree: u8,
    bytes: u64,
    packets: u32,
    /// The next packet that has not been sent.
    #[state(sequence)]
    next: u32,
    /// Packets to be sent again.
    repairs: VecDeque<u32>,
    /// From which packet on it has asked what is missing, while it sends what is.
    asked: Option<u32>,
    /// The rate at which its application produces it.
    source: Option<Rate>,
    #[state(past)]
    started: Time,
    active: bool,
    /// Whether it waits for a path to its receiver.
    stranded: bool,
    rate_bps: f64,
    /// What the bucket owed at `settled`.
    owed_bits: f64,
    #[state(when(!self.active && self.paid() <= walk.now(), past, time))]
    settled: Time,
    /// What it has earned at earlier rates, and for how long it has earned at this one by `settled`.
    earned_bits: f64,
    #[state(count_of)]
    at_rate: Duration,
    #[state(count_of)]
    active_time: Duration,
    demand: Demand,
    #[state(count_of)]
    sent_bytes: u64,
    #[state(count_of)]
    sent_packets: u64,
    #[state(count_of)]
    resent_packets: u64,
    probes: u8,
    /// How often it has been announced again, modulo 256.
    #[state(same(self.refreshes % 2))]
    refreshes: u8,
}

impl Numbers {
    fn take(&mut self) -> Option<u8> {
        let free = |number: u8| self.used[usize::from(number >> 6)] >> (number & 63) & 1 == 0;
        let number = (0..=u8::MAX).map(|step| self.next.wrapping_add(step)).find(|&number| free(number))?;
        self.used[usize::from(number >> 6)] |= 1 << (number & 63);
        self.next = number.wrapping_add(1);
        Some(number)
    }

    fn is_used(&self, number: u8) -> bool {
        self.used[usize::from(number >> 6)] >> (number & 63) & 1 == 1
    }

    fn give_back(&mut self, number: u8, version: u8) {
        self.used[usize::from(number >> 6)] &= !(1 << (number & 63));
        if self.versions.len() <= usize::from(number) {
            self.versions.resize(usize::from(number) + 1, 0);
        }
        self.versions[usize::from(number)] = version;
    }

    /// The next version of an unused number. A node that missed the end takes the next flow's start for news all the
    /// same.
    fn next_version(&self, number: u8) -> u8 {
        self.versions.get(usize::from(number)).map_or(0, |&version| next_version(version))
    }
}

impl Outgoing {
    fn news(&self, flow: FlowId) -> News {
        News { flow, key: self.key, params: self.params, version: self.version, tree: self.tree }
    }

    /// Brings what the bucket owes up to now.
    fn settle(&mut self, now: Time) {
        let span = now.since(self.settled);
        self.owed_bits = (self.owed_bits - self.rate_bps * seconds(span)).max(0.0);
        if self.active && !self.stranded {
            self.at_rate += span;
            self.active_time += span;
        }
        self.settled = now;
    }

    /// What it has earned by `settled`.
    fn earned_bits(&self) -> f64 {
        self.earned_bits + self.rate_bps * seconds(self.at_rate)
    }

    /// It is settled, and has another rate from now on.
    fn set_rate(&mut self, rate_bps: f64) {
        if rate_bps != self.rate_bps {
            (self.earned_bits, self.at_rate) = (self.earned_bits(), Duration::ZERO);
            self.rate_bps = rate_bps;
        }
    }

    /// When the bucket has what it owes.
    fn paid(&self) -> Time {
        match self.owed_bits {
            0.0 => self.settled,
            owed if self.rate_bps > 0.0 => later(self.settled, owed / self.rate_bps),
            _ => Time::MAX,
        }
    }

    /// When its next packet may go: the bucket has it, and the application has produced it.
    fn due(&self, payload: u64) -> Time {
        let paid = self.paid();
        let fresh = self.source.filter(|_| self.repairs.is_empty());
        let produced = (u64::from(self.next) + 1).saturating_mul(payload).min(self.bytes);
        fresh.map_or(paid, |source| paid.max(self.started + source.transmit(produced)))
    }

    /// What its application has produced.
    fn produced(&self, now: Time) -> u64 {
        self.source.map_or(self.bytes, |source| source.bytes_in(now.since(self.started)).min(self.bytes))
    }

    fn has_more(&self) -> bool {
        self.next < self.packets || !self.repairs.is_empty()
    }
}

fn seconds(span: Duration) -> f64 {
    span.ps() as f64 * 1e-12
}

fn later(from: Time, seconds: f64) -> Time {
    let ps = (seconds * 1e12).ceil();
    if ps < 1e18 { from.saturating_add(Duration::from_ps(ps as u64)) } else { Time::MAX }
}

impl Sender {
    /// A message to send.
    pub fn start(&mut self, cx: &mut Cx<'_>, message: &Message, plane: &mut Plane) {
        let (now, payload) = (cx.now, u64::from(plane.payload_max()));
        let Some(packets) = u32::try_from(message.bytes.div_ceil(payload)).ok().filter(|&packets| packets < u32::MAX)
        else {
            self.counts.failed += 1;
            let reason = "it has more packets than 32-bit sequence numbers can count";
            return cx.events.push(Event::Failed { flow: message.flow, reason });
        };
        let numbers = self.numbers.entry(message.dst).or_default();
        let Some(number) = numbers.take() else {
            self.waiting.push_back(*message);
            return;
        };
        let version = numbers.next_version(number);
        let (params, source) = plane.params(message.class);
        let outgoing = Outgoing {
            key: Key { src: plane.site.host, dst: message.dst, number },
            params,
            version,
            tree: self.tree,
            bytes: message.bytes,
            packets,
            next: 0,
            repairs: VecDeque::new(),
            asked: None,
            source,
            started: now,
            active: false,
            stranded: false,
            rate_bps: 0.0,
            owed_bits: 0.0,
            settled: now,
            earned_bits: 0.0,
            at_rate: Duration::ZERO,
            active_time: Duration::ZERO,
            demand: Demand::default(),
            sent_bytes: 0,
            sent_packets: 0,
            resent_packets: 0,
            probes: 0,
            refreshes: 0,
        };
        self.tree = (self.tree + 1) % plane.config.trees;
        let slot = self.flows.insert(message.flow, outgoing);
        self.activate(now, slot, plane);
    }

    /// A flow becomes active and is announced.
    fn activate(&mut self, now: Time, slot: u32, plane: &mut Plane) {
        let Some((flow, outgoing)) = self.flows.get_mut(slot) else { return };
        outgoing.settle(now);
        outgoing.active = true;
        let Key { src, dst, .. } = outgoing.key;
        let links = plane.calculator.network.links(outgoing.params.routing, src, dst);
        outgoing.demand.restart(now, outgoing.sent_bytes);
        plane.announce(now, outgoing.news(flow));
        self.active.insert(outgoing.key, slot);
        let fair = match plane.config.first_rate {
            FirstRate::Alone => None,
            FirstRate::Fair => Some(plane.calculator.rates(&plane.view)),
        };
        let first = match &fair {
            None => plane.calculator.alone_bps(&links).min(outgoing.params.demand_bps()),
            Some(fair) => {
                self.counts.computed += 1;
                let place = self.active.range(..outgoing.key).count();
                fair.of(src)[place]
            }
        };
        outgoing.set_rate(first.min(plane.site.nic_rate.bps() as f64));
        self.refreshing.set(slot, now + plane.refresh);
        self.arm(now, slot, plane);
        if let Some(fair) = fair
            && self.oversubscribes(plane)
        {
            self.early = true;
            self.set_rates(now, fair.of(src), plane);
        }
    }

    /// Whether this node's flows have more than all of a link of its own: from its host, or from its switch.
    fn oversubscribes(&self, plane: &Plane) -> bool {
        let network = &plane.calculator.network;
        let (fabric, host) = (network.tables.fabric(), plane.site.host);
        let nodes = [fabric.link(fabric.uplink(host)).from, fabric.switch_node(network.tables.routes().home(host))];
        let mut load_bps: BTreeMap<LinkId, f64> = BTreeMap::new();
        for outgoing in self.active.values().filter_map(|&slot| Some(self.flows.get(slot)?.1)) {
            for of in network.links(outgoing.params.routing, host, outgoing.key.dst) {
                if nodes.contains(&fabric.link(of.link).from) {
                    *load_bps.entry(of.link).or_default() += outgoing.rate_bps * f64::from(of.weight);
                }
            }
        }
        load_bps.into_iter().any(|(link, bps)| bps > fabric.link(link).rate.bps() as f64)
    }

    /// A flow of this node has ended or rests. If starts have changed the rates of others since the last recomputation,
    /// they have what it leaves.
    fn give_back(&mut self, now: Time, plane: &Plane) {
        if self.early && !self.active.is_empty() {
            self.counts.computed += 1;
            let fair = plane.calculator.rates(&plane.view);
            self.set_rates(now, fair.of(plane.site.host), plane);
        }
    }

    /// Schedules the flow's next packet.
    fn arm(&mut self, now: Time, slot: u32, plane: &Plane) {
        let Some((_, outgoing)) = self.flows.get(slot) else { return };
        let due = outgoing.due(u64::from(plane.payload_max()));
        if due > now {
            self.pacing.set(slot, due);
        } else {
            self.pacing.clear(slot);
            self.due.push_back(slot);
        }
    }

    /// Everything has been sent for now.
    fn rest(&mut self, now: Time, slot: u32, plane: &mut Plane) {
        let Some((flow, outgoing)) = self.flows.get_mut(slot) else { return };
        outgoing.settle(now);
        (outgoing.active, outgoing.asked) = (false, None);
        outgoing.version = next_version(outgoing.version);
        plane.finish(outgoing.news(flow));
        self.active.remove(&outgoing.key);
        self.refreshing.clear(slot);
        self.answers.set(slot, now + plane.patience(outgoing.probes));
        self.give_back(now, plane);
    }

    /// The next data packet for the NIC.
    pub fn poll_data(&mut self, cx: &mut Cx<'_>, plane: &mut Plane) -> Option<Packet> {
        self.pace(cx.now);
        loop {
            let lets = |slot: &u32| {
                let flow = self.flows.get(*slot);
                flow.is_none_or(|(flow, outgoing)| cx.gate.lets(flow, outgoing.key.dst, plane.config.class))
            };
            let place = self.due.iter().position(lets)?;
            let slot = self.due.remove(place)?;
            if let Some(packet) = self.data(cx, slot, plane) {
                return Some(packet);
            }
        }
    }

    /// Flows whose buckets have filled are due.
    fn pace(&mut self, now: Time) {
        while let Some(slot) = self.pacing.expire(now) {
            self.due.push_back(slot);
        }
    }

    fn data(&mut self, cx: &mut Cx<'_>, slot: u32, plane: &mut Plane) -> Option<Packet> {
        let (_, outgoing) = self.flows.get(slot).filter(|(_, outgoing)| outgoing.active)?;
        let (key, routing) = (outgoing.key, outgoing.params.routing);
        match self.draw(cx, key, routing, plane) {
            Routed::Yes => {}
            Routed::NoPath => return self.wait_for_path(cx, slot, "there is no path to its receiver", plane),
            Routed::TooLong => return self.wait_for_path(cx, slot, TOO_LONG, plane),
        }
        let (flow, outgoing) = self.flows.get_mut(slot)?;
        let dst = key.dst;
        let full = plane.payload_max();
        let number = outgoing.repairs.pop_front().unwrap_or(outgoing.next);
        let offset = u64::from(number) * u64::from(full);
        let last = number + 1 == outgoing.packets;
        let mut data = Data { last, rlen: 0, route: [0; 2], seq: number, full: u32::from(full) };
        let payload = (outgoing.bytes - offset).min(u64::from(full)) as u16;
        let mut packet = plane.packet(flow, dst, Header::Data(data), payload + DATA_BYTES as u16);
        packet.payload_bytes = payload;
        let fits = route::set(&mut packet, &mut data, &self.ports);
        debug_assert!(fits, "a route that was drawn fits");
        packet.set_header(Header::Data(data));
        outgoing.settle(cx.now);
        outgoing.owed_bits = f64::from(packet.wire_bytes) * 8.0;
        outgoing.sent_packets += 1;
        outgoing.sent_bytes += u64::from(payload);
        if number == outgoing.next {
            outgoing.next += 1;
        } else {
            outgoing.resent_packets += 1;
        }
        if outgoing.has_more() {
            self.arm(cx.now, slot, plane)
        } else {
            self.rest(cx.now, slot, plane)
        }
        Some(packet)
    }

    /// Draws a packet's path to its receiver, with at most as many hops as a packet has room for.
    fn draw(&mut self, cx: &mut Cx<'_>, Key { src, dst, .. }: Key, routing: Routing, plane: &Plane) -> Routed {
        let tables = &plane.calculator.network.tables;
        for again in 0..=DRAWS_AGAIN {
            if !tables.sample(routing, src, dst, cx.random, &mut self.ports) {
                return Routed::NoPath;
            }
            if route::fits(&self.ports) {
                self.counts.redrawn += u64::from(again > 0);
                return Routed::Yes;
            }
        }
        let shortest = tables.sample(Routing::RandomPacketSpraying, src, dst, cx.random, &mut self.ports);
        if !shortest || !route::fits(&self.ports) {
            return Routed::TooLong;
        }
        self.counts.shortened += 1;
        Routed::Yes
    }

    /// There is no path that a packet could take now.
    fn wait_for_path(&mut self, cx: &mut Cx<'_>, slot: u32, why: &'static str, plane: &mut Plane) -> Option<Packet> {
        let (_, outgoing) = self.flows.get_mut(slot)?;
        outgoing.settle(cx.now);
        outgoing.stranded = true;
        outgoing.probes += 1;
        if outgoing.probes > plane.config.probes {
            self.fail(cx, slot, why, plane);
        } else {
            self.pacing.set(slot, cx.now + plane.patience(outgoing.probes));
        }
        None
    }

    /// What a flow has: the rate of its bucket.
    pub fn state(&self, flow: FlowId, say: &mut node::FlowState) {
        if let Some(outgoing) = self.flows.of(flow) {
            say.rate(Rate::from_bps(outgoing.rate_bps as u64));
        }
    }

    /// The rates of all nodes' flows have been computed.
    pub fn recomputed(&mut self, now: Time, rates_bps: &[f64], plane: &Plane) {
        self.early = false;
        self.set_rates(now, rates_bps, plane);
    }

    /// Sets the rates of this node's active flows, in order of their keys.
    fn set_rates(&mut self, now: Time, rates_bps: &[f64], plane: &Plane) {
        debug_assert_eq!(rates_bps.len(), self.active.len(), "a view has its own node's active flows");
        let slots: Vec<u32> = self.active.values().copied().collect();
        for (slot, &rate_bps) in slots.into_iter().zip(rates_bps) {
            self.set_rate(now, slot, rate_bps, plane);
        }
    }

    /// A controller has told the rate of one flow of this node.
    pub fn set_rate_of(&mut self, now: Time, key: Key, rate_bps: f64, plane: &Plane) {
        if let Some(&slot) = self.active.get(&key) {
            self.set_rate(now, slot, rate_bps, plane);
        }
    }

    fn set_rate(&mut self, now: Time, slot: u32, rate_bps: f64, plane: &Plane) {
        let Some((_, outgoing)) = self.flows.get_mut(slot) else { return };
        if outgoing.stranded {
            return; // its timer is not its bucket's
        }
        outgoing.settle(now);
        outgoing.set_rate(rate_bps.min(plane.site.nic_rate.bps() as f64));
        let due = outgoing.due(u64::from(plane.payload_max()));
        // A packet that is already due stays due, and has its turn.
        if self.pacing.get(slot).is_some() || due > now && !self.due.contains(&slot) {
            self.pacing.set(slot, due.max(now));
        }
    }

    /// Estimates demands, and announces those that change what others may have.
    pub fn estimate(&mut self, now: Time, plane: &mut Plane) {
        let gain = plane.config.smoothing;
        for slot in self.active.values().copied().collect::<Vec<_>>() {
            let Some((_, outgoing)) = self.flows.get_mut(slot) else { continue };
            // A message that is complete from the beginning is never limited by its application.
            if outgoing.source.is_none() {
                continue;
            }
            outgoing.settle(now);
            let queued =
                outgoing.produced(now).saturating_sub(u64::from(outgoing.next) * u64::from(plane.payload_max()));
            // Wire bytes of its packets for each message byte.
            let wire = f64::from(plane.site.mtu_bytes) / f64::from(plane.payload_max());
            let (rate_bps, most_bps) = (outgoing.rate_bps, plane.site.nic_rate.bps() as f64);
            let Some(demand_bps) = outgoing.demand.estimate(now, outgoing.sent_bytes, queued, wire, most_bps, gain)
            else {
                continue;
            };
            if demand::is_news(demand_bps, outgoing.params.demand_bps(), rate_bps) {
                outgoing.params.demand_kbps =
                    ((demand_bps / 1_000.0).ceil()).clamp(1.0, f64::from(UNLIMITED - 1)) as u32;
                self.counts.demands += 1;
                self.again(now, slot, plane);
            }
        }
    }

    /// A node has dropped this node's broadcast about a flow. The present state is announced again over another tree,
    /// once, however many nodes have dropped it. If the state has been announced since, that suffices.
    pub fn dropped(&mut self, now: Time, flow: FlowId, state: FlowState, plane: &mut Plane) {
        let key = Key { src: plane.site.host, dst: state.dst, number: state.number };
        let tree = state.tree.wrapping_add(1) % plane.config.trees;
        if let Some((flow, outgoing)) = self.flows.slot(flow).and_then(|slot| self.flows.get_mut(slot)) {
            if outgoing.key != key || outgoing.version != state.version {
                return;
            }
            outgoing.tree = tree;
            outgoing.version = next_version(outgoing.version);
            let news = outgoing.news(flow);
            if outgoing.active { plane.announce(now, news) } else { plane.finish(news) }
        } else {
            // The flow has ended, and its number may belong to another, whose start replaces the lost broadcast.
            let Some(numbers) = self.numbers.get_mut(&key.dst).filter(|numbers| !numbers.is_used(key.number)) else {
                return;
            };
            let Some(version) =
                numbers.versions.get_mut(usize::from(key.number)).filter(|last| **last == state.version)
            else {
                return;
            };
            *version = next_version(*version);
            let (params, _) = plane.params(0);
            plane.finish(News { flow, key, params, version: *version, tree });
        }
        self.counts.announced_again += 1;
    }

    /// The topology has changed: announces this node's flows again, and resumes those that waited for a path.
    pub fn announce_all(&mut self, now: Time, plane: &mut Plane) {
        for slot in self.active.values().copied().collect::<Vec<_>>() {
            let Some((_, outgoing)) = self.flows.get_mut(slot) else { continue };
            let routes = plane.calculator.network.tables.routes();
            if outgoing.stranded && routes.hops(outgoing.key.src, outgoing.key.dst).is_some() {
                outgoing.settle(now);
                (outgoing.stranded, outgoing.probes) = (false, 0);
                self.pacing.clear(slot);
                self.due.push_back(slot);
            }
            self.again(now, slot, plane);
        }
    }

    fn again(&mut self, now: Time, slot: u32, plane: &mut Plane) {
        self.again_by(now, slot, None, plane);
    }

    /// Announces a flow again, by this tree or by its own.
    fn again_by(&mut self, now: Time, slot: u32, tree: Option<u8>, plane: &mut Plane) {
        let Some((flow, outgoing)) = self.flows.get_mut(slot).filter(|(_, outgoing)| outgoing.active) else { return };
        outgoing.version = next_version(outgoing.version);
        let news = outgoing.news(flow);
        plane.announce(now, News { tree: tree.unwrap_or(news.tree), ..news });
        self.refreshing.set(slot, now + plane.refresh);
    }

    /// A flow of this node changes its routing protocol.
    pub fn reroute(&mut self, key: Key, routing: Routing) {
        if let Some((_, outgoing)) = self.active.get(&key).and_then(|&slot| self.flows.get_mut(slot)) {
            self.counts.rerouted += u64::from(outgoing.params.routing != routing);
            outgoing.params.routing = routing;
        }
    }

    /// The receiver says that everything is there.
    pub fn done(&mut self, cx: &mut Cx<'_>, packet: &Packet, plane: &mut Plane) {
        let Some(slot) = self.of(packet) else { return };
        if let Some(Outgoing { sent_packets, resent_packets, .. }) = self.end(cx, slot, plane) {
            cx.events.push(Event::Completed { flow: packet.flow, sent_packets, resent_packets });
        }
    }

    /// The receiver says what is missing.
    pub fn status(&mut self, cx: &Cx<'_>, packet: &Packet, Missing { first, packets }: Missing, plane: &mut Plane) {
        let Some(slot) = self.of(packet) else { return };
        let Some((flow, outgoing)) = self.flows.get_mut(slot) else { return };
        // An answer about packets of which it knows already, or which may be on their way.
        if outgoing.active && outgoing.asked.is_none_or(|from| first < from) {
            return;
        }
        let missing = |place: u32| packets[place as usize / 64] >> (place % 64) & 1 == 1;
        let numbers = (0..WINDOW).filter(|&place| missing(place)).map(|place| first.saturating_add(place));
        let before = outgoing.repairs.len();
        outgoing.repairs.extend(numbers.filter(|&number| number < outgoing.packets));
        outgoing.asked = None;
        if outgoing.repairs.len() == before {
            return;
        }
        let further = first.saturating_add(WINDOW);
        if further < outgoing.packets {
            outgoing.asked = Some(further);
            plane.send(flow, outgoing.key.dst, Header::Probe { packets: outgoing.packets, from: further });
        }
        outgoing.probes = 0;
        if !outgoing.active {
            outgoing.version = next_version(outgoing.version);
            self.answers.clear(slot);
            self.activate(cx.now, slot, plane);
        }
    }

    fn of(&self, packet: &Packet) -> Option<u32> {
        let slot = self.flows.slot(packet.flow)?;
        self.flows.get(slot).is_some_and(|(_, outgoing)| outgoing.key.dst == packet.src).then_some(slot)
    }

    fn fail(&mut self, cx: &mut Cx<'_>, slot: u32, reason: &'static str, plane: &mut Plane) {
        let Some((flow, _)) = self.flows.get(slot) else { return };
        self.counts.failed += 1;
        self.end(cx, slot, plane);
        cx.events.push(Event::Failed { flow, reason });
    }

    /// A flow has ended: its number is free for a waiting message.
    fn end(&mut self, cx: &mut Cx<'_>, slot: u32, plane: &mut Plane) -> Option<Outgoing> {
        if self.flows.get(slot).is_some_and(|(_, outgoing)| outgoing.active) {
            self.rest(cx.now, slot, plane);
        }
        self.answers.clear(slot);
        self.pacing.clear(slot);
        self.due.retain(|&due| due != slot);
        let (flow, _) = self.flows.get(slot)?;
        let outgoing = self.flows.remove(slot)?;
        let (Key { dst, number, .. }, version) = (outgoing.key, outgoing.version);
        if outgoing.active_time > Duration::ZERO {
            let value = (outgoing.earned_bits() / seconds(outgoing.active_time)) as u64;
            cx.events.push(Event::Measured { flow, what: "rate_mean_bps", value });
        }
        if let Some(numbers) = self.numbers.get_mut(&dst) {
            numbers.give_back(number, version);
        }
        if let Some(place) = self.waiting.iter().position(|message| message.dst == dst)
            && let Some(message) = self.waiting.remove(place)
        {
            self.start(cx, &message, plane);
        }
        Some(outgoing)
    }

    /// Something is due.
    pub fn deadline(&mut self, cx: &mut Cx<'_>, plane: &mut Plane) {
        self.pace(cx.now);
        while let Some(slot) = self.refreshing.expire(cx.now) {
            let Some((_, outgoing)) = self.flows.get_mut(slot) else { continue };
            let tree = refresh_tree(outgoing.refreshes);
            outgoing.refreshes = outgoing.refreshes.wrapping_add(1);
            self.again_by(cx.now, slot, Some(tree), plane);
        }
        while let Some(slot) = self.answers.expire(cx.now) {
            let Some((flow, outgoing)) = self.flows.get_mut(slot) else { continue };
            outgoing.probes += 1;
            if outgoing.probes > plane.config.probes {
                self.fail(cx, slot, "no answer from its receiver", plane);
                continue;
            }
            self.counts.probes += 1;
            let (dst, packets) = (outgoing.key.dst, outgoing.packets);
            self.answers.set(slot, cx.now + plane.patience(outgoing.probes));
            plane.send(flow, dst, Header::Probe { packets, from: 0 });
        }
    }

    /// Whether any flow is active.
    pub fn is_active(&self) -> bool {
        !self.active.is_empty()
    }

    /// Whether no flow is in progress.
    pub fn is_idle(&self) -> bool {
        self.flows.is_empty() && self.waiting.is_empty()
    }

    pub fn next_deadline(&self) -> Time {
        let timers = [&self.pacing, &self.refreshing, &self.answers];
        timers.into_iter().filter_map(Timers::next).min().unwrap_or(Time::MAX)
    }
}
