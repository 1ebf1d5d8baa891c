//! The receiver's side (section 3, Algorithm 2): one token in each packet time, to the flow that the policy prefers.

use std::collections::VecDeque;

use node::packet::flags;
use node::{Cx, Event, FlowMap, FlowState, Packet};
use units::{FlowId, HostId, Time};

use super::Header;
use super::header::{Announced, Data, Token};
use super::params::Params;
use super::policy::{Policy, Turns};
use crate::bits::Bits;
use crate::finished::Finished;
use crate::srpt::visit_order;

#[derive(Default, node::State)]
#[state(given(Params))]
#[state(last(visit_order(walk, self.flows.iter().map(|(flow, of)| (of.missing().into(), of.arrival, flow)))))]
pub(super) struct Receiver {
    #[state(slots)]
    flows: FlowMap<Incoming>,
    /// Incomplete flows.
    #[state(slots)]
    pending: Vec<u32>,
    finished: Finished,
    #[state(given(&given.policy))]
    turns: Turns,
    /// Flows that have been learnt of.
    #[state(skip("only the order counts: see `visit_order`"))]
    arrivals: u64,
    /// Until when this host's link is reserved: when the last admitted packet will have arrived completely.
    #[state(later(given.packet_time, expired))]
    booked: Time,
    /// When to give the next token; if stalled, when to check again even if nothing arrives.
    next_at: Option<Time>,
    stalled: bool,
    pub counts: Counts,
}

/// Counters for the result.
#[derive(Default, node::State)]
#[state(counts)]
pub(super) struct Counts {
    pub tokens: u64,
    pub tokens_again: u64,
    pub downgrades: u64,
    pub duplicates: u64,
}

/// An incomplete flow.
#[derive(node::State)]
#[state(given(Params), first(walk.expired(&mut self.eligible_at(given))))]
struct Incoming {
    src: HostId,
    /// Of equal flows the first to come goes first.
    #[state(skip("only the order counts: see `visit_order`"))]
    arrival: u64,
    tenant: u16,
    packets: u32,
    received: Bits,
    /// Packets below this may arrive.
    #[state(position)]
    admitted: u32,
    /// Where the search for the next token's packet continues, and whether all missing packets have been admitted since
    /// it began there.
    #[state(position)]
    next: u32,
    anew: bool,
    /// Number of tokens given, free ones included, and one more than the highest number answered.
    #[state(position)]
    tokens: u32,
    #[state(position)]
    answered: u32,
    /// When the answer to the last token is due, and when the last answer arrived.
    #[state(when(self.due_at > walk.now(), time, past))]
    due_at: Time,
    #[state(past)]
    heard_at: Time,
    #[state(when(given.policy == Policy::FlowFairness, turn("turn")))]
    last_turn: u64,
}

/// Most free tokens that a sender may claim.
const FREE_MAX: u32 = 1 << 20;

impl Incoming {
    fn missing(&self) -> u32 {
        self.packets - self.received.count
    }

    fn unanswered(&self) -> u32 {
        self.tokens - self.answered
    }

    /// Earliest time for a token.
    fn eligible_at(&self, params: &Params) -> Time {
        let downgraded = self.unanswered() >= params.window;
        let upgraded_at = if downgraded { self.due_at + params.timeout.saturating_sub(params.rtt) } else { Time::ZERO };
        if !self.anew {
            return upgraded_at;
        }
        // While answers arrive, more may be in flight, waiting in switches.
        let silent_at = if self.unanswered() > 0 { self.heard_at + params.rtt } else { Time::ZERO };
        upgraded_at.max(silent_at.max(self.due_at) + params.lifetime)
    }

    /// Gives a token and returns its packet.
    fn give(&mut self, now: Time, params: &Params) -> u32 {
        let packet = self.received.next_missing(self.next);
        self.tokens += 1;
        self.due_at = now + params.rtt;
        self.admitted = self.admitted.max(packet + 1);
        (self.next, self.anew) = (packet + 1, false);
        self.go_round();
        packet
    }

    /// After the last missing packet comes the first.
    fn go_round(&mut self) {
        if self.received.next_missing(self.next) >= self.packets {
            (self.next, self.anew) = (self.received.first_missing, true);
        }
    }
}

impl Receiver {
    /// What a flow has here: tokens without an answer, free ones included.
    pub fn state(&self, flow: FlowId, say: &mut FlowState) {
        let Some(incoming) = self.flows.of(flow) else { return };
        say.say("unanswered_tokens", u64::from(incoming.unanswered()));
    }

    /// A sender asks to send a flow.
    pub fn requested(
        &mut self,
        now: Time,
        packet: &Packet,
        flow: Announced,
        params: &Params,
        control: &mut VecDeque<Packet>,
    ) {
        if packet.has(flags::TRIMMED) || flow.packets == 0 {
            return;
        }
        if self.finished.knows(packet.flow) {
            control.push_back(params.control(packet.flow, packet.src, Header::Ack));
            return;
        }
        self.learn(now, packet, flow, params);
    }

    /// A part of a message.
    pub fn data(
        &mut self,
        cx: &mut Cx<'_>,
        packet: &Packet,
        data: Data,
        params: &Params,
        control: &mut VecDeque<Packet>,
    ) {
        let trimmed = packet.has(flags::TRIMMED); // its payload is lost as any other
        if trimmed || data.flow.packets == 0 {
            return;
        }
        if self.finished.knows(packet.flow) {
            self.counts.duplicates += 1;
            return;
        }
        let slot = self.learn(cx.now, packet, data.flow, params);
        let (_, flow) = self.flows.get_mut(slot).expect("just found");
        if data.packet >= flow.admitted || flow.src != packet.src {
            return;
        }
        flow.answered = flow.answered.max(data.token.saturating_add(1)).min(flow.tokens);
        flow.heard_at = cx.now;
        if !flow.received.insert(data.packet) {
            self.counts.duplicates += 1;
            return;
        }
        if flow.missing() == 0 {
            control.push_back(params.control(packet.flow, packet.src, Header::Ack));
            self.pending.retain(|&pending| pending != slot);
            self.flows.remove(slot);
            self.finished.add(packet.flow);
            cx.events.push(Event::Delivered { flow: packet.flow });
        } else {
            flow.go_round();
        }
    }

    /// The slot of a packet's flow, made if it is new. Either way there may be a token to give.
    fn learn(&mut self, now: Time, packet: &Packet, of: Announced, params: &Params) -> u32 {
        let slot = self.flows.slot(packet.flow).unwrap_or_else(|| self.begin(now, packet, of, params));
        self.wake(now, params);
        slot
    }

    fn begin(&mut self, now: Time, packet: &Packet, of: Announced, params: &Params) -> u32 {
        let free = of.free.min(of.packets).min(FREE_MAX);
        self.arrivals += 1;
        let mut flow = Incoming {
            src: packet.src,
            arrival: self.arrivals,
            tenant: of.tenant,
            packets: of.packets,
            received: Bits::default(),
            admitted: free,
            next: free,
            anew: false,
            tokens: free,
            answered: 0,
            due_at: now,
            heard_at: now,
            last_turn: 0,
        };
        if free > 0 {
            let others = params.packet_time * u64::from(free - 1);
            flow.due_at = now + params.data_lag + others;
            flow.go_round();
            let first = (self.booked + params.packet_time).max(now + params.data_lag);
            self.booked = self.booked.max((first + others).min(now + params.rtt * 2));
        }
        let slot = self.flows.insert(packet.flow, flow);
        self.pending.push(slot);
        slot
    }

    /// Something has changed: there may be a flow for the next token.
    fn wake(&mut self, now: Time, params: &Params) {
        // A token's packet arrives a round trip later, after what is already reserved.
        let free_at = (self.booked + params.packet_time).since(Time::ZERO).saturating_sub(params.rtt);
        self.next_at = Some(now.max(Time::ZERO + free_at));
        self.stalled = false;
    }

    /// Gives the tokens that are due.
    pub fn send_tokens(&mut self, now: Time, params: &Params, control: &mut VecDeque<Packet>) {
        while self.next_at.is_some_and(|at| at <= now) {
            if self.stalled {
                self.wake(now, params);
                continue;
            }
            match self.choose(now, params) {
                Ok(slot) => self.send_token(slot, now, params, control),
                Err(retry_at) => (self.next_at, self.stalled) = (retry_at, true),
            }
        }
    }

    fn send_token(&mut self, slot: u32, now: Time, params: &Params, control: &mut VecDeque<Packet>) {
        let (id, flow) = self.flows.get_mut(slot).expect("just chosen");
        if flow.unanswered() >= params.window {
            // Its timeout is over: one token to test whether the source answers.
            flow.answered = flow.tokens - (params.window - 1);
            self.counts.downgrades += 1;
        }
        let (number, admitted) = (flow.tokens, flow.admitted);
        flow.last_turn = self.turns.take(params.policy, flow.tenant);
        let packet = flow.give(now, params);
        debug_assert!(flow.unanswered() <= params.window && packet < flow.packets);
        self.counts.tokens += 1;
        self.counts.tokens_again += u64::from(packet < admitted);
        let class = params.class(flow.packets);
        let remaining = flow.missing();
        let header = Header::Token(Token { class, packet, token: number, remaining });
        control.push_back(params.control(id, flow.src, header));
        self.booked = (self.booked + params.packet_time).max(now + params.rtt);
        self.next_at = Some(now + params.packet_time);
    }

    /// The flow for the next token: the one that the policy prefers among those that may have one. If there is none,
    /// when to check again even if nothing arrives.
    fn choose(&self, now: Time, params: &Params) -> Result<u32, Option<Time>> {
        let mut retry_at: Option<Time> = None;
        let mut best: Option<(u64, u32, u64, u32)> = None;
        for &slot in &self.pending {
            let (_, flow) = self.flows.get(slot).expect("a pending flow is known");
            let at = flow.eligible_at(params);
            if at > now {
                retry_at = Some(retry_at.map_or(at, |retry_at| retry_at.min(at)));
                continue;
            }
            let key = (self.turns.rank(params.policy, flow.last_turn, flow.tenant), flow.missing(), flow.arrival, slot);
            best = Some(best.map_or(key, |best| best.min(key)));
        }
        best.map(|(_, _, _, slot)| slot).ok_or(retry_at)
    }

    /// A flow has come whole in time that is skipped.
    pub fn came_again(&mut self, flow: FlowId) {
        self.finished.add(flow);
    }

    /// When a token may be due.
    pub fn next_token(&self) -> Time {
        self.next_at.unwrap_or(Time::MAX)
    }
}

#[cfg(test)]
mod tests;
