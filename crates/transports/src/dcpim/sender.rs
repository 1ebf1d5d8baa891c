//! The sender's side (sections 3.2, 3.4 and 3.5): notifications and finishes with their timers, short flows at once,
//! long flows by tokens, and the grants of the matching phase.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use node::{Cx, Event, FlowMap, FlowState, Message, Packet, Timers};
use units::{FlowId, HostId, Stream, Time};

use super::header::{self, Accept, Announced, Data, Proposal};
use super::matching::{Offers, full_phase};
use super::params::{Free, Pair, Params};
use super::{Departure, Header};
use crate::bits::Bits;

#[derive(Default, node::Saved)]
pub(super) struct Sender {
    flows: FlowMap<Outgoing>,
    /// Short flows with packets not yet sent, by remaining packets, or order of arrival if sizes don't count.
    short: BinaryHeap<Reverse<(u64, u32, FlowId)>>,
    /// Flows with tokens to use.
    admitted: Vec<u32>,
    arrivals: u64,
    requests: Offers,
    /// Channels granted and accepted.
    matched: Vec<Matched>,
    /// One a flow: its notification has not been acknowledged, or its finish not answered.
    timers: Timers,
    pub counts: Counts,
}

/// Counters for the result.
#[derive(Default, node::Saved)]
pub(super) struct Counts {
    pub notifications_resent: u64,
    pub finishes_resent: u64,
    pub tokens_expired: u64,
    pub tokens_unmatched: u64,
    pub grants: u64,
}

#[derive(node::Saved)]
struct Outgoing {
    dst: HostId,
    /// Of equal flows the first to start goes first.
    arrival: u64,
    bytes: u64,
    packets: u32,
    short: bool,
    /// Short flows: the first packet not yet sent.
    next: u32,
    sent: Bits,
    sent_packets: u64,
    /// Whether the receiver is known to know the flow.
    notified: bool,
    /// How often what has no answer yet was repeated.
    repeats: u32,
    /// Cumulative acknowledgement: all packets below are there.
    acked: u32,
    /// Packets that its receiver has admitted, in order of the tokens, and whether it is listed for that.
    tokens: VecDeque<Token>,
    listed: bool,
    /// Missing packets by its receiver's last report; order of arrival if sizes don't count.
    remaining: u64,
}

/// What a receiver has accepted.
#[derive(node::Saved)]
struct Matched {
    receiver: HostId,
    channels: u32,
    pair: Pair,
    /// The matching phase as the receiver counts them: its tokens carry it.
    label: u32,
    /// The matching phase by this host's clock whose data phase is nearest to the receiver's: k channels a phase.
    phase: i64,
    /// When its tokens expire.
    ends: Time,
}

/// Permission to send one packet.
#[derive(Clone, Copy, node::Saved)]
struct Token {
    packet: u32,
    number: u32,
    class: u8,
    expires: Time,
}

impl Sender {
    /// A message to send.
    pub fn start(&mut self, now: Time, message: &Message, params: &Params, control: &mut VecDeque<Packet>) {
        let packets = params.packets(message.bytes);
        let short = message.bytes <= params.short_bytes;
        self.arrivals += 1;
        let flow = Outgoing {
            dst: message.dst,
            arrival: self.arrivals,
            bytes: message.bytes,
            packets,
            short,
            next: 0,
            sent: Bits::default(),
            sent_packets: 0,
            notified: false,
            repeats: 0,
            acked: 0,
            tokens: VecDeque::new(),
            listed: false,
            remaining: self.arrivals,
        };
        control.push_back(flow.notification(message.flow, params));
        let slot = self.flows.insert(message.flow, flow);
        if params.handshakes() {
            self.timers.set(slot, now + params.rtt);
        }
        if short {
            let order = if params.sizes_known { u64::from(packets) } else { self.arrivals };
            self.short.push(Reverse((order, slot, message.flow)));
        }
    }

    /// The slot of a packet's flow, if it is still open and the packet is its receiver's; that knows of it by now.
    fn answered(&mut self, packet: &Packet) -> Option<u32> {
        let slot = self.flows.slot(packet.flow)?;
        let (_, flow) = self.flows.get_mut(slot).expect("just found");
        if flow.dst != packet.src {
            return None;
        }
        flow.notified = true;
        Some(slot)
    }

    /// A notification has arrived.
    pub fn acknowledged(&mut self, packet: &Packet) {
        let Some(slot) = self.answered(packet) else { return };
        let (_, flow) = self.flows.get_mut(slot).expect("just found");
        if flow.sent.count < flow.packets {
            flow.repeats = 0;
            self.timers.clear(slot);
        }
    }

    /// All of a flow has arrived.
    pub fn receiver_finished(&mut self, cx: &mut Cx<'_>, packet: &Packet) {
        let Some(slot) = self.answered(packet) else { return };
        let (_, flow) = self.flows.get(slot).expect("just found");
        let (sent_packets, distinct) = (flow.sent_packets, u64::from(flow.sent.count));
        let resent_packets = sent_packets - distinct;
        self.timers.clear(slot);
        self.admitted.retain(|&listed| listed != slot);
        self.flows.remove(slot);
        cx.events.push(Event::Completed { flow: packet.flow, sent_packets, resent_packets });
    }

    /// A receiver would match; `phase_now` is this host's matching phase.
    pub fn requested(&mut self, packet: &Packet, request: Proposal, phase_now: i64, params: &Params) {
        self.requests.push(request, packet.src, packet.flow, phase_now, params);
    }

    /// A token has come.
    pub fn admitted(&mut self, packet: &Packet, token: header::Token, phase_now: i64, params: &Params) {
        let Some(slot) = self.answered(packet) else { return };
        let of_this = |matched: &&Matched| (matched.label, matched.receiver) == (token.phase, packet.src);
        let expires = match self.matched.iter().find(of_this) {
            Some(matched) => matched.ends,
            None if params.departs(Departure::AnyToken) => params.tokens_end(full_phase(token.phase, phase_now)),
            None => {
                self.counts.tokens_unmatched += 1;
                return;
            }
        };
        // A request to send again: the finish waits until that has been done.
        self.timers.clear(slot);
        let (_, flow) = self.flows.get_mut(slot).expect("just found");
        flow.repeats = 0;
        flow.acked = flow.acked.max(token.acked.min(flow.packets));
        if params.sizes_known {
            flow.remaining = token.remaining;
        }
        if !flow.listed {
            flow.listed = true;
            self.admitted.push(slot);
        }
        flow.tokens.push_back(Token { packet: token.packet, number: token.token, class: token.class, expires });
    }

    /// The next data packet for the NIC.
    pub fn poll_data(&mut self, cx: &Cx<'_>, params: &Params, control: &mut VecDeque<Packet>) -> Option<Packet> {
        self.poll_short(cx, params, control).or_else(|| self.poll_admitted(cx, params, control))
    }

    fn poll_short(&mut self, cx: &Cx<'_>, params: &Params, control: &mut VecDeque<Packet>) -> Option<Packet> {
        loop {
            let mut top = self.short.peek_mut()?;
            let Reverse((order, slot, entered)) = &mut *top;
            let waits = |(id, flow): &(FlowId, &mut Outgoing)| id == entered && flow.next < flow.packets;
            // The receiver has finished the flow; its slot may belong to another flow by now.
            let Some((id, flow)) = self.flows.get_mut(*slot).filter(waits) else {
                std::collections::binary_heap::PeekMut::pop(top);
                continue;
            };
            let class = params.short_class(flow.packets);
            if !cx.gate.open(class) {
                return None;
            }
            let packet = flow.next;
            flow.next += 1;
            // The least becomes less: the order stands.
            *order -= u64::from(params.sizes_known);
            let slot = *slot;
            drop(top);
            return Some(self.data(cx.now, id, slot, (packet, packet), class, params, control));
        }
    }

    /// Section 3.2: of the flows with tokens the one with the least remaining.
    fn poll_admitted(&mut self, cx: &Cx<'_>, params: &Params, control: &mut VecDeque<Packet>) -> Option<Packet> {
        let mut best: Option<(u64, u64, u32)> = None;
        let mut index = 0;
        while let Some(&slot) = self.admitted.get(index) {
            match self.next_token(slot, cx.now, params) {
                None => {
                    self.admitted.swap_remove(index);
                    let (_, flow) = self.flows.get_mut(slot).expect("a listed flow is known");
                    flow.listed = false;
                    continue;
                }
                Some((arrival, remaining, class)) if cx.gate.open(class) => {
                    let key = (remaining, arrival, slot);
                    best = Some(best.map_or(key, |best| best.min(key)));
                }
                Some(_) => {}
            }
            index += 1;
        }
        let (id, flow) = self.flows.get_mut(best?.2).expect("just seen");
        let token = flow.tokens.pop_front().expect("just seen");
        Some(self.data(cx.now, id, best?.2, (token.packet, token.number), token.class, params, control))
    }

    /// A flow's arrival, its remaining packets and the class of its next token, after void tokens have been dropped.
    fn next_token(&mut self, slot: u32, now: Time, params: &Params) -> Option<(u64, u64, u8)> {
        let (_, flow) = self.flows.get_mut(slot)?;
        let before = flow.tokens.len();
        while let Some(token) = flow.tokens.front() {
            let expired = token.expires < now;
            // Beyond the end of a flow whose size its receiver doesn't know, or already received.
            let needless = token.packet >= flow.packets || token.packet < flow.acked;
            if !expired && !needless {
                return Some((flow.arrival, flow.remaining, token.class));
            }
            self.counts.tokens_expired += u64::from(expired);
            flow.tokens.pop_front();
        }
        // Requested packets were not sent again, so the finish must be.
        if before > 0 && flow.sent.count == flow.packets && params.handshakes() {
            self.timers.set(slot, now + params.rtt);
        }
        None
    }

    /// The packet of that number, on that token's leave.
    #[expect(clippy::too_many_arguments, reason = "the one place where data packets are made")]
    fn data(
        &mut self,
        now: Time,
        id: FlowId,
        slot: u32,
        (number, token): (u32, u32),
        class: u8,
        params: &Params,
        control: &mut VecDeque<Packet>,
    ) -> Packet {
        let (_, flow) = self.flows.get_mut(slot).expect("the caller has it");
        let offset = u64::from(number) * u64::from(params.site.payload_max());
        let payload = (flow.bytes - offset).min(u64::from(params.site.payload_max())) as u16;
        let header = Header::Data(Data { flow: flow.announced(params), packet: number, token, offset });
        let mut packet = params.site.data_packet(id, flow.dst, header, payload);
        packet.class = class;
        flow.sent_packets += 1;
        flow.sent.insert(number);
        if flow.sent.count == flow.packets && params.handshakes() {
            control.push_back(flow.finish(id, params));
            flow.repeats = 0;
            self.timers.set(slot, now + params.rtt);
        }
        packet
    }

    /// Resends what has not been answered in time (section 3.5).
    pub fn deadline(&mut self, now: Time, params: &Params, control: &mut VecDeque<Packet>) {
        while let Some(slot) = self.timers.expire(now) {
            let Some((id, flow)) = self.flows.get_mut(slot) else { continue };
            flow.repeats += 1;
            if !flow.notified {
                self.counts.notifications_resent += 1;
                control.push_back(flow.notification(id, params));
            }
            if flow.sent.count == flow.packets {
                self.counts.finishes_resent += 1;
                control.push_back(flow.finish(id, params));
            }
            let patience = params.patience(flow.repeats);
            self.timers.set(slot, now + patience);
        }
    }

    pub fn next_deadline(&self) -> Time {
        self.timers.next().unwrap_or(Time::MAX)
    }

    /// The grant stage of a round in matching phase `phase`.
    pub fn grant(&mut self, phase: i64, params: &Params, random: &mut Stream, control: &mut VecDeque<Packet>) {
        if self.requests.is_empty() {
            return;
        }
        let free = self.free(phase, params);
        let mut idle = params.idle(self.of_phase(phase - 1));
        for (request, channels) in self.requests.pick(|_| true, free, params, random) {
            let prompt = request.prompt(channels, &mut idle) as u8;
            let (round, phase, channels) = (request.round, request.phase as u32, channels as u8);
            let (remaining, kbps) = (request.remaining, params.kbps(&request.pair));
            let header = Header::Grant(Proposal { phase, round, channels, remaining, prompt, kbps });
            control.push_back(params.control(request.flow, request.peer, header));
            self.counts.grants += 1;
        }
    }

    /// A receiver has accepted: it sends tokens, so they are obeyed, also when another has accepted before that was
    /// granted later, and there are more than k channels (section 3.5: a sender may "receive tokens from multiple
    /// receivers").
    ///
    /// Receivers accept as a stage of theirs begins, so that an accept tells by its coming when the receiver's data
    /// phase begins, whatever its clock shows.
    ///
    /// With [`Departure::TrimmedAccepts`] what is more is not obeyed, and the receiver is told.
    pub fn accepted(
        &mut self,
        now: Time,
        packet: &Packet,
        accept: Accept,
        params: &Params,
        control: &mut VecDeque<Packet>,
    ) {
        let Accept { phase: label, round, channels, prompt, kbps } = accept;
        let (receiver, pair) = (packet.src, params.pair(kbps));
        let begins = params.accepted_data_begins(round, now);
        let phase = params.phase_of_data(begins);
        let (mut serves, mut at_once) = (channels, prompt);
        if params.departs(Departure::TrimmedAccepts) {
            serves = serves.min(self.free(phase, params).channels(&pair).min(u8::MAX.into()) as u8);
            at_once = at_once.min(serves);
        }
        if serves < channels {
            let trim = Accept { channels: channels - serves, prompt: prompt - at_once, ..accept };
            control.push_back(params.control(packet.flow, receiver, Header::Trim(trim)));
        }
        let ends = params.accepted_tokens_end(phase, begins);
        self.matches(Matched { receiver, channels: serves.into(), pair, label, phase, ends });
        // Prompt channels are of the data phase before.
        let (label, phase, begins) = (label.wrapping_sub(1), phase - 1, begins - params.phase.ps() as i64);
        let ends = params.accepted_tokens_end(phase, begins);
        self.matches(Matched { receiver, channels: at_once.into(), pair, label, phase, ends });
    }

    fn matches(&mut self, more: Matched) {
        let of_this = |matched: &&mut Matched| (matched.label, matched.receiver) == (more.label, more.receiver);
        match self.matched.iter_mut().find(of_this) {
            Some(matched) => matched.channels += more.channels,
            None if more.channels > 0 => self.matched.push(more),
            None => {}
        }
    }

    /// The channels of its matches of a phase.
    fn of_phase(&self, phase: i64) -> impl Iterator<Item = (u32, &Pair)> {
        let of_phase = self.matched.iter().filter(move |matched| matched.phase == phase);
        of_phase.map(|matched| (matched.channels, &matched.pair))
    }

    /// The capacity of the link that is free beside its matches of a phase.
    fn free(&self, phase: i64, params: &Params) -> Free {
        params.free(self.of_phase(phase))
    }

    /// Forgets the matches whose tokens can't be used any more.
    pub fn forget_over(&mut self, now: Time) {
        self.matched.retain(|matched| matched.ends >= now);
    }

    /// What a flow has here: tokens to use, channels to its receiver, and packets that were never sent.
    pub fn state(&self, flow: FlowId, say: &mut FlowState) {
        let Some(Outgoing { dst, packets, sent, tokens, .. }) = self.flows.of(flow) else { return };
        let matched = self.matched.iter().filter(|matched| matched.receiver == *dst);
        say.say("channels", matched.map(|matched| u64::from(matched.channels)).sum());
        say.say("tokens", tokens.len() as u64);
        say.say("unsent_packets", u64::from(packets.saturating_sub(sent.count)));
    }

    /// Whether stages must be kept.
    pub fn is_matching(&self) -> bool {
        !self.requests.is_empty()
    }
}

impl Outgoing {
    fn notification(&self, id: FlowId, params: &Params) -> Packet {
        let class = if self.short { params.short_class(self.packets) } else { 0 };
        params.control(id, self.dst, Header::Notification { class, flow: self.announced(params) })
    }

    /// Where sizes are not told, the packets that need no tokens don't tell them either.
    fn announced(&self, params: &Params) -> Announced {
        let packets = if params.sizes_known { self.packets } else { 0 };
        let untokened = match self.short {
            true if params.sizes_known => self.packets,
            true => params.short_packets_max(),
            false => 0,
        };
        Announced { packets, untokened, kbps: params.kbps(&params.own) }
    }

    fn finish(&self, id: FlowId, params: &Params) -> Packet {
        params.control(id, self.dst, Header::SenderFinish { packets: self.packets })
    }
}
