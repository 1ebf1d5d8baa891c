//! The sender's side (section 3, Algorithm 1): requests to send, and tokens to use.

use std::collections::VecDeque;

use node::{Cx, Event, FlowMap, FlowState, Message, Packet, Timers};
use units::{FlowId, HostId, Time};

use super::Header;
use super::header::{self, Announced, Data};
use super::params::Params;
use super::policy::{Policy, Turns};
use crate::bits::Bits;
use crate::srpt::visit_order;

#[derive(Default, node::State)]
#[state(given(Params))]
#[state(last(visit_order(walk, self.flows.iter().map(|(flow, of)| (of.remaining.into(), of.arrival, flow)))))]
pub(super) struct Sender {
    #[state(slots)]
    flows: FlowMap<Outgoing>,
    /// Flows that have, or have had, tokens.
    #[state(slots)]
    admitted: Vec<u32>,
    #[state(given(&given.policy))]
    turns: Turns,
    /// Messages that have been started.
    #[state(skip("only the order counts: see `visit_order`"))]
    arrivals: u64,
    /// One timer for each silent flow.
    #[state(slots)]
    timers: Timers,
    pub counts: Counts,
}

/// Counters for the result.
#[derive(Default, node::State)]
#[state(counts)]
pub(super) struct Counts {
    pub tokens_expired: u64,
    pub requests_resent: u64,
}

#[derive(node::State)]
#[state(given(Params))]
#[state(come(u64::from(self.sent.first_missing) * walk.unit))]
#[state(first(walk.same(self.next_free < self.free)))]
struct Outgoing {
    dst: HostId,
    /// Of equal flows the first to start goes first.
    #[state(skip("only the order counts: see `visit_order`"))]
    arrival: u64,
    tenant: u16,
    bytes: u64,
    packets: u32,
    /// Free tokens; those before `next_free` are used.
    free: u32,
    #[state(passed)]
    next_free: u32,
    /// Tokens from its receiver, in order of arrival.
    tokens: VecDeque<Token>,
    /// Whether it is in the list of flows with tokens.
    listed: bool,
    /// Packets missing at its receiver, by its last report.
    #[state(left(self.packets, position))]
    remaining: u32,
    #[state(when(given.policy == Policy::FlowFairness, turn("turn")))]
    last_turn: u64,
    sent: Bits,
    #[state(count_of)]
    sent_packets: u64,
    /// Number of repeated requests since something was sent or received.
    repeated: u32,
}

/// Permission to send one packet.
#[derive(Clone, Copy, node::State)]
struct Token {
    #[state(sequence)]
    packet: u32,
    #[state(sequence)]
    number: u32,
    class: u8,
    expires: Time,
}

/// A silent flow's requests are repeated at intervals that double this many times.
const DOUBLINGS_MAX: u32 = 6;

impl Sender {
    /// A message to send.
    pub fn start(&mut self, now: Time, message: &Message, params: &Params, control: &mut VecDeque<Packet>) {
        let packets = params.packets(message.bytes);
        let free = params.free(packets);
        self.arrivals += 1;
        let flow = Outgoing {
            dst: message.dst,
            arrival: self.arrivals,
            tenant: message.class,
            bytes: message.bytes,
            packets,
            free,
            next_free: 0,
            tokens: VecDeque::new(),
            listed: free > 0,
            remaining: packets,
            last_turn: 0,
            sent: Bits::default(),
            sent_packets: 0,
            repeated: 0,
        };
        control.push_back(flow.request(message.flow, params));
        let slot = self.flows.insert(message.flow, flow);
        self.timers.set(slot, now + params.silence);
        if free > 0 {
            self.admitted.push(slot);
        }
    }

    /// The slot of a packet's flow, if it is still open and the packet is its receiver's.
    fn answered(&self, packet: &Packet) -> Option<u32> {
        let slot = self.flows.slot(packet.flow)?;
        let (_, flow) = self.flows.get(slot).expect("just found");
        (flow.dst == packet.src).then_some(slot)
    }

    /// What a flow has here: tokens to use, free ones and its receiver's.
    pub fn state(&self, flow: FlowId, say: &mut FlowState) {
        let Some(Outgoing { free, next_free, tokens, .. }) = self.flows.of(flow) else { return };
        say.say("free_tokens", u64::from(free.saturating_sub(*next_free)));
        say.say("tokens", tokens.len() as u64);
    }

    /// All of a flow has arrived.
    pub fn acknowledged(&mut self, cx: &mut Cx<'_>, packet: &Packet) {
        let Some(slot) = self.answered(packet) else { return };
        let (_, flow) = self.flows.get(slot).expect("just found");
        let (sent_packets, distinct) = (flow.sent_packets, u64::from(flow.sent.count));
        let resent_packets = sent_packets - distinct;
        self.timers.clear(slot);
        self.admitted.retain(|&listed| listed != slot);
        self.flows.remove(slot);
        cx.events.push(Event::Completed { flow: packet.flow, sent_packets, resent_packets });
    }

    /// A token has come.
    pub fn admitted(&mut self, now: Time, packet: &Packet, token: header::Token, params: &Params) {
        let Some(slot) = self.answered(packet) else { return };
        let (_, flow) = self.flows.get_mut(slot).expect("just found");
        if token.packet >= flow.packets {
            return;
        }
        flow.remaining = token.remaining;
        let expires = now + params.lifetime;
        flow.tokens.push_back(Token { packet: token.packet, number: token.token, class: token.class, expires });
        if !flow.listed {
            flow.listed = true;
            self.admitted.push(slot);
        }
        self.heard(slot, now, params);
    }

    /// The next data packet for the NIC: of the flow with tokens that the policy prefers.
    pub fn poll_data(&mut self, cx: &Cx<'_>, params: &Params) -> Option<Packet> {
        let mut best: Option<(u64, u32, u64, u32)> = None;
        let mut index = 0;
        while let Some(&slot) = self.admitted.get(index) {
            let (_, flow) = self.flows.get_mut(slot).expect("a listed flow is known");
            self.counts.tokens_expired += flow.drop_expired(cx.now);
            let Some(class) = flow.next_class(params) else {
                flow.listed = false;
                self.admitted.swap_remove(index);
                continue;
            };
            if cx.gate.open(class) {
                let key =
                    (self.turns.rank(params.policy, flow.last_turn, flow.tenant), flow.remaining, flow.arrival, slot);
                best = Some(best.map_or(key, |best| best.min(key)));
            }
            index += 1;
        }
        let (_, _, _, slot) = best?;
        let (id, flow) = self.flows.get_mut(slot).expect("just seen");
        flow.last_turn = self.turns.take(params.policy, flow.tenant);
        let packet = flow.data(id, params);
        self.heard(slot, cx.now, params);
        Some(packet)
    }

    /// A flow has sent or received something.
    fn heard(&mut self, slot: u32, now: Time, params: &Params) {
        let (_, flow) = self.flows.get_mut(slot).expect("the caller has it");
        flow.repeated = 0;
        self.timers.set(slot, now + params.silence);
    }

    /// Repeats the requests of flows that have been silent for too long.
    pub fn deadline(&mut self, now: Time, params: &Params, control: &mut VecDeque<Packet>) {
        while let Some(slot) = self.timers.expire(now) {
            let Some((id, flow)) = self.flows.get_mut(slot) else { continue };
            control.push_back(flow.request(id, params));
            self.counts.requests_resent += 1;
            flow.repeated = (flow.repeated + 1).min(DOUBLINGS_MAX);
            self.timers.set(slot, now + params.silence * (1 << flow.repeated));
        }
    }

    pub fn next_deadline(&self) -> Time {
        self.timers.next().unwrap_or(Time::MAX)
    }
}

impl Outgoing {
    fn request(&self, id: FlowId, params: &Params) -> Packet {
        params.control(id, self.dst, Header::Rts(self.announced()))
    }

    fn announced(&self) -> Announced {
        Announced { tenant: self.tenant, packets: self.packets, free: self.free }
    }

    /// Drops void tokens, and returns how many had expired.
    fn drop_expired(&mut self, now: Time) -> u64 {
        let before = self.tokens.len();
        while self.tokens.front().is_some_and(|token| token.expires < now) {
            self.tokens.pop_front();
        }
        (before - self.tokens.len()) as u64
    }

    /// The class of the next packet, if the flow may send one.
    fn next_class(&mut self, params: &Params) -> Option<u8> {
        self.next_free = self.sent.next_missing(self.next_free);
        let free = (self.next_free < self.free).then(|| params.class(self.packets));
        self.tokens.front().map(|token| token.class).or(free)
    }

    fn data(&mut self, id: FlowId, params: &Params) -> Packet {
        let (number, token, class) = match self.tokens.pop_front() {
            Some(token) => (token.packet, token.number, token.class),
            None => (self.next_free, self.next_free, params.class(self.packets)),
        };
        let offset = u64::from(number) * u64::from(params.site.payload_max());
        let payload = (self.bytes - offset).min(u64::from(params.site.payload_max())) as u16;
        let header = Header::Data(Data { flow: self.announced(), packet: number, token, offset });
        let mut packet = params.site.data_packet(id, self.dst, header, payload);
        packet.class = class;
        self.sent_packets += 1;
        self.sent.insert(number);
        packet
    }
}

#[cfg(test)]
mod tests;
