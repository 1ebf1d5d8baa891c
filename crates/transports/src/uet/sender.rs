//! The sender's side: a window, credit or both; lost packets first, then new ones; a path for each.

use std::collections::{BTreeSet, VecDeque};

use node::packet::flags;
use node::{Cx, Event, FlowMap, FlowState, Message, Packet, Timers, Walk};
use units::{Duration, FlowId, HostId, Stream, Time};

use super::Header;
use super::header::{Ack, CREDIT, CREDIT_UNIT, Data, Nack, RECEIVED, Rts};
use super::nscc::Window;
use super::params::{DATA, Params, REACH};
use super::spraying::{Fate, Spray};

/// A packet's timeout doubles each time that it is sent again, up to this many times.
const BACKOFF_MAX: u32 = 6;
/// A sender without credit and with nothing in flight waits for this many timeouts before it asks again: in a large
/// incast its turn at the receiver is long in coming.
const PATIENCE: u64 = 16;
/// A packet that has been trimmed so often is not sent again at once.
const ATTEMPTS: u32 = 3;
/// Fewest packets that overtake one before it counts as lost.
const OVERTAKEN_MIN: u32 = 5;

/// The measure in which packets are counted as they leave.
const LEFT: &str = "how many packets have left";

#[derive(Default, node::State)]
#[state(given(Params))]
pub(super) struct Sender {
    flows: FlowMap<Outgoing>,
    /// Flows that may send, in turn, packet by packet.
    ready: VecDeque<(FlowId, u32)>,
    /// One for each flow: for its oldest packet in flight, or the credit that it waits for.
    timers: Timers,
    pub counts: Counts,
}

/// Counters for the result.
#[derive(Default, node::State)]
#[state(counts)]
pub(super) struct Counts {
    pub retransmissions: u64,
    pub timeouts: u64,
    pub inferred_losses: u64,
    pub requests: u64,
    pub malformed: u64,
}

#[derive(node::State)]
#[state(given(Params), first(self.tell(walk, given)))]
struct Outgoing {
    dst: HostId,
    bytes: u64,
    packets: u32,
    /// The first packet without an acknowledgement, and what is known of it and those after it.
    #[state(position)]
    una: u32,
    sent: VecDeque<Sent>,
    /// Packets to be sent again.
    #[state(anew(self.in_state(State::Lost).map(|of| of.0).collect()))]
    lost: BTreeSet<u32>,
    /// When each packet in flight times out.
    #[state(anew(self.in_state(State::InFlight).map(|(psn, sent)| (sent.deadline(given), psn)).collect()))]
    deadlines: BTreeSet<(Time, u32)>,
    /// Packets in flight by the order in which they left; some have arrived or left again since.
    #[state(each((measured(LEFT), sequence)))]
    order: VecDeque<(u32, u32)>,
    /// The next place in that order, and the highest of a packet that has arrived.
    #[state(measured(LEFT))]
    next_place: u32,
    #[state(measured(LEFT))]
    arrived_place: u32,
    /// Bytes in flight by what the receiver says that it has. Below what is known of single packets, since it says so
    /// before it can name them all; negative when it has what was given up.
    in_flight: i64,
    #[state(measured(RECEIVED))]
    received_bytes: u64,
    spray: Spray,
    #[state(each(given(given.nscc.as_ref().expect("it has a window"))))]
    window: Option<Window>,
    credit: Credit,
    #[state(count_of)]
    sent_packets: u64,
    #[state(count_of)]
    resent_packets: u64,
    listed: bool,
    /// Nothing is sent before this time, because a packet was trimmed again and again.
    #[state(expired)]
    held_until: Time,
}

/// What a sender has of credit.
#[derive(node::State)]
#[state(given(Params))]
struct Credit {
    /// Bytes that it may send; the last packet may overdraw them.
    bytes: i64,
    /// Credit so far, in units of [`CREDIT_UNIT`].
    #[state(measured(CREDIT))]
    given: u32,
    /// The first window needs no credit, until the receiver's first answer.
    speculating: bool,
    /// When it was last asked for by itself, and how often since anything was heard.
    #[state(each(later(given.asks_again(), expired)))]
    asked_at: Option<Time>,
    times: u32,
    /// When anything was last heard, or asked.
    #[state(when(given.rccc, later(self.patience(given), time), past))]
    heard_at: Time,
}

impl Credit {
    /// How long a sender without credit waits before it asks for it, if nothing is heard.
    fn patience(&self, params: &Params) -> Duration {
        params.rto * (PATIENCE << self.times.min(BACKOFF_MAX))
    }
}

/// A packet that was sent.
#[derive(Clone, Copy, node::State)]
struct Sent {
    state: State,
    #[state(when(self.state == State::InFlight, time, past))]
    at: Time,
    entropy: u16,
    /// How often it was sent.
    times: u32,
    /// Its last place in the order of departures.
    #[state(measured(LEFT))]
    place: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, node::State)]
enum State {
    InFlight,
    Lost,
    Arrived,
}

impl Sent {
    fn deadline(&self, params: &Params) -> Time {
        self.at + params.rto * (1u64 << (self.times - 1).min(BACKOFF_MAX))
    }

    /// Whether an answer that says whether its packet was sent before is one of this copy.
    fn is_copy(&self, resent: bool) -> bool {
        (self.times > 1) == resent && self.times <= 2
    }
}

impl Outgoing {
    fn new(message: &Message, params: &Params, now: Time, random: &mut Stream) -> Outgoing {
        Outgoing {
            dst: message.dst,
            bytes: message.bytes,
            packets: params.packets(message.bytes),
            una: 0,
            sent: VecDeque::new(),
            lost: BTreeSet::new(),
            deadlines: BTreeSet::new(),
            order: VecDeque::new(),
            next_place: 0,
            arrived_place: 0,
            in_flight: 0,
            received_bytes: 0,
            spray: Spray::new(params.spraying, params.entropies, random),
            window: params.nscc.as_ref().map(|gains| Window::new(gains, now)),
            credit: Credit {
                bytes: params.window_max as i64,
                given: 0,
                speculating: true,
                asked_at: None,
                times: 0,
                heard_at: now,
            },
            sent_packets: 0,
            resent_packets: 0,
            listed: false,
            held_until: Time::ZERO,
        }
    }

    /// The first packet that was never sent.
    fn next(&self) -> u32 {
        self.una + self.sent.len() as u32
    }

    /// The packet to be sent next.
    fn following(&self) -> Option<u32> {
        let next = self.next();
        let new = (next < self.packets && self.sent.len() < REACH as usize).then_some(next);
        self.lost.first().copied().or(new)
    }

    fn of(&mut self, psn: u32) -> Option<&mut Sent> {
        self.sent.get_mut(psn.checked_sub(self.una)? as usize)
    }

    fn may_send(&self, now: Time, params: &Params) -> bool {
        if now < self.held_until {
            return false;
        }
        let Some(psn) = self.following() else { return false };
        let bytes = params.wire_bytes(self.bytes, psn) as i64;
        let fits = self.window.as_ref().is_none_or(|window| self.in_flight + bytes <= window.bytes as i64);
        fits && (!params.rccc || self.credit.bytes > 0)
    }

    /// Bytes left to send, headers included.
    fn backlog(&self, params: &Params) -> u64 {
        let next = self.next();
        let sent = u64::from(next) * u64::from(params.site.payload_max());
        let new =
            self.bytes.saturating_sub(sent) + u64::from(self.packets - next) * u64::from(params.site.header_bytes);
        new + self.lost.iter().map(|&psn| params.wire_bytes(self.bytes, psn)).sum::<u64>()
    }

    /// Credit that this sender wants in all; `others` take part in what its link can send.
    fn pull_target(&self, params: &Params, others: usize) -> u32 {
        if !params.rccc {
            return 0;
        }
        let mtu = u64::from(params.site.mtu_bytes);
        let backlog = self.backlog(params);
        let window = self.window.as_ref().map_or(u64::MAX, |window| window.bytes + mtu);
        let mut wanted = backlog.min(window).min(params.window_max) as i64 - self.credit.bytes;
        if self.credit.speculating && backlog > 0 {
            wanted = wanted.max(mtu as i64);
        }
        let share = wanted.max(0) as u64 / (others as u64 + 1);
        let units = u32::try_from(share.div_ceil(CREDIT_UNIT)).unwrap_or(u32::MAX);
        self.credit.given.saturating_add(units)
    }

    /// A packet has arrived.
    fn arrive(&mut self, psn: u32, params: &Params) {
        let bytes = params.wire_bytes(self.bytes, psn) as i64;
        let Some(sent) = self.of(psn) else { return };
        let (before, deadline) = (sent.state, sent.deadline(params));
        let place = (sent.times == 1).then_some(sent.place);
        sent.state = State::Arrived;
        match before {
            State::Arrived => return,
            State::InFlight => {
                self.deadlines.remove(&(deadline, psn));
            }
            State::Lost => {
                self.lost.remove(&psn);
                // It left the count when it was given up, and again with what the receiver says that it has.
                self.in_flight += bytes;
            }
        }
        if let Some(place) = place {
            self.arrived_place = self.arrived_place.max(place);
        }
    }

    /// A packet in flight is lost: it goes again.
    fn lose(&mut self, psn: u32, params: &Params) {
        let bytes = params.wire_bytes(self.bytes, psn) as i64;
        let Some(sent) = self.of(psn) else { return };
        let deadline = sent.deadline(params);
        sent.state = State::Lost;
        self.deadlines.remove(&(deadline, psn));
        self.lost.insert(psn);
        self.in_flight -= bytes;
    }

    /// What an acknowledgement says has arrived.
    fn take(&mut self, ack: &Ack, params: &Params) {
        let named = (0..64).filter(|bit| ack.bitmap >> bit & 1 == 1).filter_map(|bit| ack.base.checked_add(bit));
        for psn in named {
            self.arrive(psn, params);
        }
        while self.una < ack.cumulative {
            self.arrive(self.una, params);
            self.sent.pop_front();
            self.una += 1;
        }
    }

    /// Loses what this many others have overtaken.
    fn infer_losses(&mut self, params: &Params) -> u64 {
        let window = self.window.as_ref().map_or(params.window_max, |window| window.bytes * 3 / 2);
        let packets = window.min(params.window_max) / u64::from(params.site.mtu_bytes);
        let most = OVERTAKEN_MIN.max(packets as u32);
        let mut inferred = 0;
        while let Some(&(place, psn)) = self.order.front() {
            let waits = self.of(psn).is_some_and(|sent| sent.state == State::InFlight && sent.place == place);
            if waits {
                if place.saturating_add(most) > self.arrived_place {
                    break;
                }
                let bytes = params.wire_bytes(self.bytes, psn);
                self.lose(psn, params);
                if let (Some(window), Some(gains)) = (&mut self.window, &params.nscc) {
                    window.lost(gains, bytes);
                }
                inferred += 1;
            }
            self.order.pop_front();
        }
        inferred
    }

    /// The receiver has answered: packets until now needed no credit, from now on all do.
    fn stop_speculating(&mut self, now: Time) {
        (self.credit.heard_at, self.credit.times) = (now, 0);
        if std::mem::take(&mut self.credit.speculating) {
            self.credit.bytes = self.credit.bytes.min(0);
        }
    }

    /// Whether it has something to send and no credit.
    fn is_starved(&self, params: &Params) -> bool {
        params.rccc && self.credit.bytes <= 0 && self.following().is_some()
    }

    /// When a sender without credit asks for it, if nothing is heard.
    fn asks_at(&self, params: &Params) -> Time {
        self.credit.heard_at + self.credit.patience(params)
    }

    /// When something must be done if nothing is heard.
    fn timeout(&self, now: Time, params: &Params) -> Option<Time> {
        let asks = self.is_starved(params).then(|| self.asks_at(params));
        let packet = self.deadlines.first().map(|(at, _)| *at);
        let held = (self.held_until > now).then_some(self.held_until);
        asks.into_iter().chain(packet).chain(held).min()
    }

    /// A packet that has been sent so often was trimmed. With the smallest window, each sender of an incast has a
    /// packet on its way at any time. If these are more than a round trip holds, headers of trimmed packets, which go
    /// first, can fill the link so that no data comes through. So after a few attempts it waits, longer each time.
    fn hold(&mut self, now: Time, times: u32, params: &Params) {
        let smallest = self.window.as_ref().is_some_and(|window| window.bytes <= u64::from(params.site.mtu_bytes));
        if smallest && !params.rccc && times >= ATTEMPTS {
            self.held_until = now + params.network_rtt * (1 << (times - ATTEMPTS).min(BACKOFF_MAX));
        }
    }

    /// Packets without an answer until now are lost. How many packets that are.
    fn time_out(&mut self, now: Time, params: &Params) -> u64 {
        let mut timeouts = 0;
        while let Some(&(at, psn)) = self.deadlines.first()
            && at <= now
        {
            timeouts += 1;
            let entropy = self.of(psn).map_or(0, |sent| sent.entropy);
            self.lose(psn, params);
            self.spray.heard(now, entropy, Fate::Lost);
            if let (Some(window), Some(gains)) = (&mut self.window, &params.nscc) {
                window.lost(gains, params.wire_bytes(self.bytes, psn));
            }
        }
        timeouts
    }

    /// Goes over what is left of it. The bytes left decide how much credit it wants when they are less than the
    /// greatest window, and how much its receiver gives in advance when they are less than another one.
    fn tell(&self, walk: &mut Walk, params: &Params) {
        // More could not be counted in 32 bits.
        walk.refuse_if(
            params.rccc && params.all_wire_bytes(self.bytes) / CREDIT_UNIT > u64::from(u32::MAX) / 2,
            "the credit of a long message has no number",
        );
        let reach = if params.rccc { 2 * params.window_max } else { 0 };
        walk.sequence(walk.flow, 1, &mut (u64::from(self.next()) * walk.unit + reach));
    }

    /// The packets in a state, by their numbers.
    fn in_state(&self, state: State) -> impl Iterator<Item = (u32, &Sent)> {
        (self.una..).zip(&self.sent).filter(move |of| of.1.state == state)
    }
}

impl Sender {
    /// What a flow has here.
    pub fn state(&self, flow: FlowId, params: &Params, say: &mut FlowState) {
        let Some(of) = self.flows.of(flow) else { return };
        if let Some(window) = &of.window {
            say.window_bytes(window.bytes);
        }
        if params.rccc {
            say.say("credit_bytes", of.credit.bytes.max(0) as u64);
        }
        say.say("lost_packets", of.lost.len() as u64);
        say.outstanding_bytes(of.in_flight.max(0) as u64);
    }

    /// A message to send.
    pub fn start(&mut self, cx: &mut Cx<'_>, message: &Message, params: &Params) {
        let slot = self.flows.insert(message.flow, Outgoing::new(message, params, cx.now, cx.random));
        self.settle(slot, cx.now, params);
    }

    /// An acknowledgement.
    pub fn acked(&mut self, cx: &mut Cx<'_>, packet: &Packet, ack: Ack, params: &Params) {
        let Some(slot) = self.flows.slot(packet.flow) else { return };
        let Some((id, flow)) = self.flows.get_mut(slot) else { return };
        let possible = ack.cumulative <= flow.next() && ack.received_bytes <= params.all_wire_bytes(flow.bytes);
        if flow.dst != packet.src || !possible {
            self.counts.malformed += 1;
            return;
        }
        let newly = ack.received_bytes.saturating_sub(flow.received_bytes);
        flow.received_bytes += newly;
        flow.in_flight -= newly as i64;
        let copy = flow
            .of(ack.psn)
            .filter(|sent| !ack.of_request && sent.state == State::InFlight && sent.is_copy(ack.resent));
        let (rtt, place) = copy.map(|sent| (cx.now.since(sent.at), sent.place)).unzip();
        flow.arrived_place = flow.arrived_place.max(place.unwrap_or(0));
        flow.take(&ack, params);
        if !ack.of_request {
            flow.spray.heard(cx.now, ack.entropy, if ack.marked { Fate::Marked } else { Fate::Good });
        }
        if let (Some(window), Some(gains)) = (&mut flow.window, &params.nscc) {
            window.acked(gains, cx.now, rtt, ack.marked, newly, flow.in_flight.max(0) as u64);
        }
        if params.infers_losses {
            self.counts.inferred_losses += flow.infer_losses(params);
        }
        flow.stop_speculating(cx.now);
        if flow.una == flow.packets {
            let (sent_packets, resent_packets) = (flow.sent_packets, flow.resent_packets);
            self.timers.clear(slot);
            self.flows.remove(slot);
            cx.events.push(Event::Completed { flow: id, sent_packets, resent_packets });
            return;
        }
        self.settle(slot, cx.now, params);
    }

    /// A packet was trimmed.
    pub fn nacked(&mut self, cx: &mut Cx<'_>, packet: &Packet, nack: Nack, params: &Params) {
        let Some(slot) = self.flows.slot(packet.flow) else { return };
        let Some((_, flow)) = self.flows.get_mut(slot) else { return };
        if flow.dst != packet.src {
            self.counts.malformed += 1;
            return;
        }
        flow.stop_speculating(cx.now);
        let bytes = params.wire_bytes(flow.bytes, nack.psn);
        let in_flight = flow.in_flight.max(0) as u64;
        let copy = flow.of(nack.psn).filter(|sent| sent.state == State::InFlight && (sent.times > 1) == nack.resent);
        if let Some(sent) = copy {
            let (rtt, times) = (cx.now.since(sent.at), sent.times);
            if let (Some(window), Some(gains)) = (&mut flow.window, &params.nscc) {
                let by_credit = params.rccc && nack.last_hop;
                window.trimmed(gains, cx.now, rtt, bytes, by_credit, in_flight);
            }
            flow.lose(nack.psn, params);
            flow.hold(cx.now, times, params);
            let fate = match (nack.last_hop, nack.marked) {
                (false, _) => Fate::Trimmed,
                (true, true) => Fate::Marked,
                (true, false) => Fate::Good,
            };
            flow.spray.heard(cx.now, nack.entropy, fate);
        }
        self.settle(slot, cx.now, params);
    }

    /// Credit so far.
    pub fn pulled(&mut self, cx: &mut Cx<'_>, packet: &Packet, credit: u32, params: &Params) {
        let Some(slot) = self.flows.slot(packet.flow) else { return };
        let Some((_, flow)) = self.flows.get_mut(slot) else { return };
        if flow.dst != packet.src || !params.rccc {
            self.counts.malformed += 1;
            return;
        }
        flow.stop_speculating(cx.now);
        let more = credit.saturating_sub(flow.credit.given);
        flow.credit.given += more;
        let bytes = flow.credit.bytes.saturating_add_unsigned(u64::from(more) * CREDIT_UNIT);
        flow.credit.bytes = bytes.min(params.window_max as i64);
        self.settle(slot, cx.now, params);
    }

    /// The next data packet for the NIC.
    pub fn poll_data(&mut self, cx: &mut Cx<'_>, params: &Params) -> Option<Packet> {
        while let Some((id, slot)) = self.ready.pop_front() {
            // The slot of a flow that has ended may belong to another by now.
            let Some((_, flow)) = self.flows.get_mut(slot).filter(|known| known.0 == id) else { continue };
            flow.listed = false;
            if !flow.may_send(cx.now, params) {
                continue;
            }
            let Some(psn) = flow.following() else { continue };
            let packet = Self::data(cx, id, flow, psn, params, self.ready.len());
            self.counts.retransmissions += u64::from(flow.of(psn).is_some_and(|sent| sent.times > 1));
            self.settle(slot, cx.now, params);
            return Some(packet);
        }
        None
    }

    fn data(cx: &mut Cx<'_>, id: FlowId, flow: &mut Outgoing, psn: u32, params: &Params, others: usize) -> Packet {
        let (payload, bytes) = (params.payload(flow.bytes, psn), params.wire_bytes(flow.bytes, psn));
        let entropy = flow.spray.next(cx.random);
        let resent = flow.lost.remove(&psn);
        let place = flow.next_place;
        flow.next_place += 1;
        let new = Sent { state: State::InFlight, at: cx.now, entropy, times: 1, place };
        let sent = match flow.of(psn) {
            Some(sent) => {
                *sent = Sent { times: sent.times + 1, ..new };
                *sent
            }
            None => {
                flow.sent.push_back(new);
                new
            }
        };
        flow.deadlines.insert((sent.deadline(params), psn));
        if params.infers_losses {
            flow.order.push_back((place, psn));
        }
        flow.in_flight += bytes as i64;
        flow.credit.bytes -= if params.rccc { bytes as i64 } else { 0 };
        flow.sent_packets += 1;
        flow.resent_packets += u64::from(resent);
        let closes = |window: &Window| flow.in_flight + bytes as i64 >= window.bytes as i64;
        let ack_request = resent
            || flow.next() == flow.packets
            || (params.rccc && flow.credit.bytes <= 0)
            || flow.window.as_ref().is_some_and(closes);
        let data = Data {
            psn,
            entropy,
            pull_target: flow.pull_target(params, others),
            message_bytes: flow.bytes,
            offset: u64::from(psn) * u64::from(params.site.payload_max()),
            ack_request,
            resent,
            last_hop: false,
        };
        let mut packet = params.site.data_packet(id, flow.dst, Header::Data(data), payload as u16);
        packet.class = DATA;
        packet.flags |= flags::ECT;
        packet
    }

    /// Packets without an answer are lost. A sender without credit asks for it then, once a round trip, or when it has
    /// waited for long.
    pub fn deadline(&mut self, cx: &mut Cx<'_>, params: &Params, control: &mut VecDeque<Packet>) {
        let again = params.asks_again();
        while let Some(slot) = self.timers.expire(cx.now) {
            let others = self.ready.len();
            let Some((id, flow)) = self.flows.get_mut(slot) else { continue };
            let timeouts = flow.time_out(cx.now, params);
            self.counts.timeouts += timeouts;
            let due = timeouts > 0 || flow.asks_at(params) <= cx.now;
            if due && flow.is_starved(params) && flow.credit.asked_at.is_none_or(|at| at + again <= cx.now) {
                flow.credit.speculating = false;
                flow.credit.asked_at = Some(cx.now);
                (flow.credit.heard_at, flow.credit.times) = (cx.now, flow.credit.times + 1);
                let pull_target = flow.pull_target(params, others);
                let rts = Rts { pull_target, message_bytes: flow.bytes };
                control.push_back(params.control(id, flow.dst, Header::Rts(rts)));
                self.counts.requests += 1;
            }
            self.settle(slot, cx.now, params);
        }
    }

    /// Lists a flow that may send, and sets its timer.
    fn settle(&mut self, slot: u32, now: Time, params: &Params) {
        let Some((id, flow)) = self.flows.get_mut(slot) else { return };
        if !flow.listed && flow.may_send(now, params) {
            flow.listed = true;
            self.ready.push_back((id, slot));
        }
        match flow.timeout(now, params) {
            Some(at) => self.timers.set(slot, at),
            None => self.timers.clear(slot),
        }
    }

    pub fn next_deadline(&self) -> Time {
        self.timers.next().unwrap_or(Time::MAX)
    }
}

#[cfg(test)]
mod tests;
