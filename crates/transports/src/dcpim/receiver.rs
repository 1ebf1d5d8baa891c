//! The receiver's side: requests and accepts of the matching phase, and the tokens of the data phase (sections 3.2 and
//! 3.4).
//!
//! Each matched sender is a [`Link`] of one or more channels. A link sends tokens at its share of the host's rate, for
//! the smallest flow of its sender whose window is open. If there is none it stalls until a packet arrives, so that
//! full windows are clocked by arrivals.
//!
//! The window is the set of a flow's unanswered tokens, bounded in number; answered tokens leave it. So a lost packet
//! takes one place until it is admitted again, and does not block all packets after it.

use std::collections::{BTreeMap, VecDeque};

use node::packet::flags;
use node::{Cx, Event, FlowMap, FlowState, Packet};
use units::{Duration, FlowId, HostId, Time};

use super::header::{Accept, Announced, Data, Proposal, Token};
use super::matching::{Offer, Offers};
use super::params::{Free, Pair, Params};
use super::{Departure, Header};
use crate::bits::Bits;
use crate::finished::Finished;

#[derive(Default, node::Saved)]
pub(super) struct Receiver {
    flows: FlowMap<Incoming>,
    /// Senders with incomplete flows.
    peers: BTreeMap<HostId, Peer>,
    finished: Finished,
    /// Matched senders of this data phase.
    links: Vec<Link>,
    /// Matching phase that made them, and when the data phase began.
    phase: i64,
    began: Time,
    /// Matched senders of the next data phase.
    next: Vec<Link>,
    grants: Offers,
    /// Departure: tokens still to be skipped for short flows.
    hold: u32,
    pub counts: Counts,
}

/// Counters for the result.
#[derive(Default, node::Saved)]
pub(super) struct Counts {
    pub tokens: u64,
    pub requests: u64,
    pub accepts: u64,
    pub duplicates: u64,
    pub tokens_again: u64,
}

/// A sender with incomplete flows.
#[derive(node::Saved)]
struct Peer {
    flows: Vec<u32>,
    pair: Pair,
    /// From a token to its packet, measured last, if one of the NICs is slower: packets queue for the slower link.
    delay: Duration,
}

impl Peer {
    /// After how long a packet is taken for lost that was admitted.
    fn patience(&self, params: &Params) -> Duration {
        if self.pair.unequal { self.delay.max(params.rtt) } else { params.rtt }
    }
}

/// An incomplete flow.
#[derive(node::Saved)]
struct Incoming {
    src: HostId,
    /// [`UNKNOWN`] until its sender's finish, if sizes are not told.
    packets: u32,
    received: Bits,
    /// The next packet to admit, if it is missing.
    next: u32,
    /// Packets below this may arrive: they were admitted, or are in flight without tokens.
    admitted: u32,
    /// The last data phase in which it was considered.
    phase: i64,
    /// Packets from `again` to `again_end` were admitted in earlier data phases. Those missing at `settled_at` are lost
    /// and are admitted again.
    again: u32,
    again_end: u32,
    settled_at: Time,
    /// No packet of it is admitted or requested before this time, since earlier packets may still arrive.
    not_before: Time,
    finish_seen: bool,
    /// Tokens sent, and one more than the highest number answered.
    tokens: u32,
    answered: u32,
    /// When the last token was sent, and in which data phase.
    token_at: Time,
    token_phase: i64,
    /// A token whose packet is timed, and when it was sent.
    timed: Option<(u32, Time)>,
}

const UNKNOWN: u32 = u32::MAX;

impl Incoming {
    fn missing(&self) -> u32 {
        if self.packets == UNKNOWN { UNKNOWN } else { self.packets - self.received.count }
    }

    /// Its sender reports its number of packets: packets admitted beyond it can't arrive.
    fn end_at(&mut self, packets: u32) {
        self.packets = packets.max(self.received.count);
        self.admitted = self.admitted.min(self.packets);
        self.again_end = self.again_end.min(self.packets);
    }

    /// Missing packets that are not in flight. A token's packet is assumed to be in flight for one round trip.
    fn outstanding(&self, now: Time, params: &Params) -> u32 {
        let on_the_way = if now < self.token_at + params.rtt { self.unanswered() } else { 0 };
        self.missing().saturating_sub(on_the_way)
    }

    fn unanswered(&self) -> u32 {
        self.admitted.saturating_sub(self.received.count)
    }

    /// The packet to admit now, if the flow has one: a lost one first, then, while fewer than `window` tokens are
    /// unanswered, one that was never admitted.
    fn next_packet(&self, window: u32, now: Time) -> Option<u32> {
        let lost = self.received.next_missing(self.again);
        if lost < self.again_end && now >= self.settled_at {
            return Some(lost);
        }
        let fresh = self.received.next_missing(self.next);
        (fresh < self.packets && self.unanswered() < window).then_some(fresh)
    }

    /// Departure [`Departure::RetokenAtEnd`]. A flow whose end is not known has none to wait for.
    fn retokens_at_end(&self, params: &Params) -> bool {
        params.departs(Departure::RetokenAtEnd) && self.packets != UNKNOWN
    }

    /// Departure: after the last missing packet comes the first.
    fn go_round(&mut self) {
        if self.received.next_missing(self.next) >= self.packets {
            self.next = self.received.first_missing;
        }
    }

    /// A data phase begins for which its sender is matched. Section 3.2: "dcPIM simply retransmits the tokens at the
    /// start of the window upon subsequently matching with the sender", but not those whose packets may still be in
    /// flight: a packet comes within a round trip after the end of the phase in which it was admitted.
    ///
    /// On slow links a round trip is longer than a phase. Packets that are waited for when a phase begins are waited
    /// for no longer than before: a sender that is matched in every phase would have them waited for without end.
    fn match_again(&mut self, phase: i64, began: Time, patience: Duration, params: &Params) {
        self.phase = phase;
        if began < self.settled_at && self.received.next_missing(self.again) < self.again_end {
            return;
        }
        let since = phase.saturating_sub(self.token_phase).saturating_sub(1) as u64;
        let passed = Duration::from_ps(params.phase.ps().saturating_mul(since));
        self.settled_at = began + patience.saturating_sub(passed);
        (self.again, self.again_end) = (self.received.first_missing, self.next);
    }
}

#[derive(node::Saved)]
struct Link {
    src: HostId,
    channels: u32,
    pair: Pair,
    /// The round in which it was last accepted, counted over all phases.
    accepted: i64,
    /// Packets that its channels may still admit in this data phase.
    left: u32,
    /// Rank among the links by the size of the smallest flow.
    rank: usize,
    /// When the next token may go; never before the stall ends.
    at: Time,
    stalled: bool,
    /// Departure: matched for the next data phase, and used in this one.
    prompt: bool,
}

/// A request that a receiver would make of a sender: channels for its smallest flow, and how many packets that flow
/// misses.
struct Need {
    peer: HostId,
    flow: FlowId,
    remaining: u32,
    channels: u32,
    pair: Pair,
}

impl Receiver {
    /// A sender would match; `phase_now` is this host's matching phase.
    pub fn granted(&mut self, packet: &Packet, grant: Proposal, phase_now: i64, params: &Params) {
        self.grants.push(grant, packet.src, packet.flow, phase_now, params);
    }

    /// A sender tells of a flow.
    pub fn notified(
        &mut self,
        now: Time,
        packet: &Packet,
        flow: Announced,
        params: &Params,
        control: &mut VecDeque<Packet>,
    ) {
        if params.handshakes() {
            control.push_back(params.control(packet.flow, packet.src, Header::Ack));
        }
        if self.finished.knows(packet.flow) {
            control.push_back(params.control(packet.flow, packet.src, Header::ReceiverFinish));
        } else {
            self.learn(now, packet, flow, params);
        }
    }

    /// A sender has sent all of a flow.
    pub fn sender_finished(
        &mut self,
        cx: &mut Cx<'_>,
        packet: &Packet,
        packets: u32,
        params: &Params,
        control: &mut VecDeque<Packet>,
    ) {
        if self.finished.knows(packet.flow) {
            control.push_back(params.control(packet.flow, packet.src, Header::ReceiverFinish));
            return;
        }
        // All packets of a flow that is not known here were sent without tokens.
        let flow = Announced { packets, untokened: params.untokened(packets), kbps: 0 };
        let slot = self.learn(cx.now, packet, flow, params);
        let (_, flow) = self.flows.get_mut(slot).expect("just learnt");
        flow.finish_seen = true;
        if flow.packets == UNKNOWN {
            flow.end_at(packets);
            self.complete(cx, slot, params, control);
        }
    }

    /// The slot of a packet's flow, which is created if it is new.
    fn learn(&mut self, now: Time, packet: &Packet, told: Announced, params: &Params) -> u32 {
        let peer = self.peers.get(&packet.src);
        let pair = peer.filter(|_| told.kbps == 0).map_or_else(|| params.pair(told.kbps), |peer| peer.pair);
        if let Some(slot) = self.flows.slot(packet.flow) {
            return slot;
        }
        let packets = if told.packets == 0 { UNKNOWN } else { told.packets };
        let expected = packets.min(told.untokened);
        let not_before = if expected > 0 {
            if params.departs(Departure::ShortFlowsHoldTokens) {
                self.hold = expected;
            }
            now + pair.packet_time * u64::from(expected) + timeout(params)
        } else {
            now
        };
        let slot = self.flows.insert(
            packet.flow,
            Incoming {
                src: packet.src,
                packets,
                received: Bits::default(),
                next: expected,
                admitted: expected,
                phase: i64::MIN,
                again: 0,
                again_end: 0,
                settled_at: now,
                not_before,
                finish_seen: false,
                tokens: expected,
                answered: 0,
                token_at: now,
                token_phase: i64::MIN,
                timed: None,
            },
        );
        let peer = self.peers.entry(packet.src).or_insert(Peer { flows: Vec::new(), pair, delay: Duration::ZERO });
        peer.flows.push(slot);
        peer.pair = pair;
        self.unstall(now, packet.src);
        slot
    }

    /// What a flow has here: channels of this data phase to its sender, and packets admitted that have not come.
    pub fn state(&self, flow: FlowId, say: &mut FlowState) {
        let Some(incoming) = self.flows.of(flow) else { return };
        let links = self.links.iter().filter(|link| link.src == incoming.src);
        say.say("data_phase_channels", links.map(|link| u64::from(link.channels)).sum());
        say.say("admitted_packets", u64::from(incoming.unanswered()));
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
        if packet.has(flags::TRIMMED) {
            return; // its payload is lost as any other
        }
        if self.finished.knows(packet.flow) {
            self.counts.duplicates += 1;
            return;
        }
        let slot = match self.flows.slot(packet.flow) {
            Some(slot) => slot,
            // A short flow's packet that has overtaken its notification, or whose notification was lost.
            None => {
                let untokened = params.untokened(data.flow.untokened);
                if data.packet >= untokened {
                    return;
                }
                self.learn(cx.now, packet, Announced { untokened, ..data.flow }, params)
            }
        };
        let (_, flow) = self.flows.get_mut(slot).expect("just found");
        if data.packet >= flow.admitted || flow.src != packet.src {
            return;
        }
        flow.answered = flow.answered.max(data.token.saturating_add(1));
        if let Some((_, sent)) = flow.timed.take_if(|(token, _)| *token <= data.token)
            && let Some(peer) = self.peers.get_mut(&packet.src)
        {
            // If a later one comes first, this is too long by as much.
            peer.delay = cx.now - sent;
        }
        if !flow.received.insert(data.packet) {
            self.counts.duplicates += 1;
            return;
        }
        self.complete(cx, slot, params, control);
        self.unstall(cx.now, packet.src);
    }

    /// Ends a flow if all of it has arrived.
    fn complete(&mut self, cx: &mut Cx<'_>, slot: u32, params: &Params, control: &mut VecDeque<Packet>) {
        let (id, flow) = self.flows.get(slot).expect("the caller has it");
        if flow.missing() > 0 {
            return;
        }
        if flow.finish_seen || !params.handshakes() {
            control.push_back(params.control(id, flow.src, Header::ReceiverFinish));
        }
        let flow = self.flows.remove(slot).expect("just seen");
        let peer = self.peers.get_mut(&flow.src).expect("a peer of each flow");
        peer.flows.retain(|&other| other != slot);
        if peer.flows.is_empty() {
            self.peers.remove(&flow.src);
        }
        self.finished.add(id);
        cx.events.push(Event::Delivered { flow: id });
    }

    /// Something has changed for a sender: its link may have a token to send again.
    fn unstall(&mut self, now: Time, src: HostId) {
        for link in self.links.iter_mut().filter(|link| link.src == src && link.stalled) {
            (link.at, link.stalled) = (now, false);
        }
    }

    /// Drops the requests of earlier rounds that have not left: on slow links it takes longer than a stage to ask many
    /// senders. Late requests are of no use (section 3.3: they "can be ignored"), and would pile up here.
    fn drop_late_requests(&mut self, control: &mut VecDeque<Packet>) {
        let before = control.len();
        control.retain(|packet| !matches!(packet.header(), Header::Request(_)));
        self.counts.requests -= (before - control.len()) as u64;
    }

    /// The request stage of a round (section 3.4): as many channels as the outstanding bytes need.
    pub fn request(&mut self, phase: i64, round: u8, cx: &mut Cx<'_>, params: &Params, control: &mut VecDeque<Packet>) {
        self.drop_late_requests(control);
        let free = self.free(params);
        if free.is_none() {
            return;
        }
        let needs = |(&host, peer): (&HostId, &Peer)| self.need(host, peer, free, cx.now, params);
        let mut needs: Vec<Need> = self.peers.iter().filter_map(needs).collect();
        let most = params.requests_max.max(free.channels(&params.own).max(1) as usize);
        if needs.len() > most {
            cx.random.shuffle(&mut needs);
            if round == 1 && params.sizes_known {
                needs.sort_by_key(|need| need.remaining);
            }
            needs.truncate(most);
        }
        let idle = self.idle(params);
        for Need { peer, flow, remaining, channels, pair } in needs {
            let (prompt, kbps) = (channels.min(idle.channels(&pair)) as u8, params.kbps(&pair));
            let (channels, phase, remaining) = (channels as u8, phase as u32, u64::from(remaining));
            let header = Header::Request(Proposal { phase, round, channels, remaining, prompt, kbps });
            control.push_back(params.control(flow, peer, header));
            self.counts.requests += 1;
        }
    }

    /// The channels to request from a sender, if any.
    fn need(&self, host: HostId, peer: &Peer, free: Free, now: Time, params: &Params) -> Option<Need> {
        let &Peer { ref flows, pair, .. } = peer;
        let eligible = flows.iter().map(|&slot| self.flows.get(slot).expect("a peer's flow"));
        let eligible = eligible.filter(|(_, flow)| flow.not_before <= now);
        let (flow, smallest) = eligible.clone().min_by_key(|(id, flow)| (flow.missing(), *id))?;
        let current = self.links.iter().find(|link| link.src == host && !link.prompt);
        let next = self.next.iter().find(|link| link.src == host).map_or(0, |link| link.channels);
        let channels = if params.departs(Departure::RequestByFlow) {
            let held = current.map_or(0, |link| link.channels) + next;
            smallest.missing().div_ceil(pair.channel_packets).saturating_sub(held)
        } else {
            let outstanding = eligible.map(|(_, flow)| u64::from(flow.outstanding(now, params))).sum::<u64>();
            let promised = current.map_or(0, |link| link.left) + next * pair.channel_packets;
            let open = outstanding.saturating_sub(u64::from(promised));
            open.div_ceil(u64::from(pair.channel_packets)).min(params.channels.into()) as u32
        };
        let channels = channels.min(params.channels.saturating_sub(next)).min(free.channels(&pair));
        (channels > 0).then_some(Need { peer: host, flow, remaining: smallest.missing(), channels, pair })
    }

    /// The accept stage of a round.
    pub fn accept(&mut self, phase: i64, round: u8, cx: &mut Cx<'_>, params: &Params, control: &mut VecDeque<Packet>) {
        if self.grants.is_empty() {
            return;
        }
        if self.phase != phase - 1 {
            // It slept when the running data phase began.
            (self.phase, self.began) = (phase - 1, params.data_begins(phase - 1));
        }
        let free = self.free(params);
        let rounds = i64::from(params.rounds);
        let now = phase * rounds + i64::from(round);
        let (next, mut idle) = (&self.next, self.idle(params));
        // A grant that arrives too late for its round counts in the next: where clocks differ most, grants take longer
        // than the slack of a stage (section 3.5: a host unmatched in one round catches up in the next). But the
        // request of that next round asked for the same channels again, so channels accepted since a request was made
        // count for it too.
        let good = |grant: &Offer| {
            let asked = grant.phase * rounds + i64::from(grant.round);
            let answered = next.iter().any(|link| link.src == grant.peer && link.accepted >= asked);
            asked <= now && now <= asked + 1 && !answered
        };
        for (grant, channels) in self.grants.pick(good, free, params, cx.random) {
            // The grant gives back the slower rate alone.
            let pair = self.peers.get(&grant.peer).map_or(grant.pair, |peer| peer.pair);
            let kbps = params.kbps(&pair);
            let prompt = grant.prompt(channels, &mut idle);
            let accept = Accept { phase: phase as u32, round, channels: channels as u8, prompt: prompt as u8, kbps };
            let header = Header::Accept(accept);
            control.push_back(params.control(grant.flow, grant.peer, header));
            self.counts.accepts += 1;
            match self.next.iter_mut().find(|link| link.src == grant.peer) {
                Some(link) => (link.channels, link.accepted) = (link.channels + channels, now),
                None => {
                    let (src, at) = (grant.peer, Time::ZERO);
                    self.next.push(Link {
                        src,
                        channels,
                        pair,
                        accepted: now,
                        left: 0,
                        rank: 0,
                        at,
                        stalled: false,
                        prompt: false,
                    });
                }
            }
            if prompt > 0 {
                self.begin_at_once(grant.peer, prompt, pair, cx.now);
            }
        }
    }

    /// Channels that are idle in this data phase have been matched along with those of the next.
    fn begin_at_once(&mut self, src: HostId, channels: u32, pair: Pair, now: Time) {
        match self.links.iter_mut().find(|link| link.src == src && link.prompt) {
            Some(link) => (link.channels, link.at, link.stalled) = (link.channels + channels, now, false),
            None => self.links.push(Link {
                src,
                channels,
                pair,
                accepted: 0,
                left: 0,
                rank: usize::from(u8::MAX),
                at: now,
                stalled: false,
                prompt: true,
            }),
        }
    }

    /// A sender can't serve all channels that were accepted.
    pub fn trimmed(&mut self, src: HostId, trim: Accept) {
        let take = |links: &mut Vec<Link>, prompt: bool, channels: u8| {
            let of_this = |link: &mut Link| link.src == src && link.prompt == prompt;
            links.iter_mut().filter_map(|link| of_this(link).then_some(link)).for_each(|link| {
                link.channels = link.channels.saturating_sub(channels.into());
            });
            links.retain(|link| link.channels > 0);
        };
        if trim.phase == self.phase as u32 {
            take(&mut self.links, false, trim.channels);
        } else if trim.phase == (self.phase + 1) as u32 {
            take(&mut self.next, false, trim.channels);
            take(&mut self.links, true, trim.prompt);
        }
    }

    /// The data phase of matching phase `phase` begins: its matches now send data.
    pub fn begin_data(&mut self, phase: i64, now: Time, params: &Params) {
        self.links.clear();
        std::mem::swap(&mut self.links, &mut self.next);
        (self.phase, self.began) = (phase, now);
        let (peers, flows) = (&self.peers, &self.flows);
        let missing = |slot: &u32| flows.get(*slot).map_or(UNKNOWN, |(_, flow)| flow.missing());
        let slots = |src| peers.get(&src).into_iter().flat_map(|peer| &peer.flows);
        let smallest = |src| slots(src).map(missing).min().unwrap_or(UNKNOWN);
        if params.sizes_known {
            self.links.sort_by_cached_key(|link| (smallest(link.src), link.src));
        }
        for (rank, link) in self.links.iter_mut().enumerate() {
            link.left = link.channels * link.pair.channel_packets;
            link.rank = if params.sizes_known { rank } else { 0 };
            link.at = now;
        }
    }

    /// Drops the matches: the phases passed while nothing was wanted.
    pub fn forget_links(&mut self) {
        self.links.clear();
        self.next.clear();
    }

    /// Sends the tokens that are due.
    pub fn send_tokens(&mut self, now: Time, params: &Params, control: &mut VecDeque<Packet>) {
        for index in 0..self.links.len() {
            while self.links[index].at <= now {
                self.send_token(index, now, params, control);
            }
        }
    }

    fn send_token(&mut self, index: usize, now: Time, params: &Params, control: &mut VecDeque<Packet>) {
        let Link { src, channels, pair, rank, .. } = self.links[index];
        let pace = params.pace(channels, &pair);
        if self.hold > 0 {
            self.hold -= 1;
            self.links[index].at = now + pace;
            return;
        }
        let choice = if params.departs(Departure::LooseWindow) {
            self.choose_loosely(src, channels, &pair, now, params)
        } else {
            self.choose(src, channels, &pair, now, params)
        };
        let link = &mut self.links[index];
        let slot = match choice {
            Ok(slot) => slot,
            Err(retry_at) => {
                (link.at, link.stalled) = (retry_at, true);
                return;
            }
        };
        (link.at, link.stalled) = (now + pace, false);
        link.left = link.left.saturating_sub(1);
        let (id, flow) = self.flows.get_mut(slot).expect("just chosen");
        let packet = flow.next_packet(u32::MAX, now).expect("just chosen");
        self.counts.tokens_again += u64::from(packet < flow.admitted);
        if packet < flow.again_end {
            flow.again = packet + 1;
        } else {
            flow.next = packet + 1;
        }
        flow.admitted = flow.admitted.max(packet + 1);
        flow.timed.get_or_insert((flow.tokens, now));
        (flow.token_at, flow.token_phase) = (now, self.phase);
        let header = Header::Token(Token {
            class: params.long_class(flow.packets, rank),
            phase: self.phase as u32,
            packet,
            acked: flow.received.first_missing,
            token: flow.tokens,
            remaining: u64::from(flow.missing()),
        });
        flow.tokens += 1;
        control.push_back(params.control(id, src, header));
        self.counts.tokens += 1;
        if flow.retokens_at_end(params) {
            // All packets are admitted: after a while go through the missing ones again.
            flow.go_round();
            if flow.received.next_missing(flow.next) <= packet {
                flow.not_before = now + timeout(params);
            }
        }
    }

    /// The flow of `src` to send a token for: the one with the fewest missing packets among those whose window is open.
    /// If there is none, when to check again even if nothing arrives.
    fn choose(&mut self, src: HostId, channels: u32, pair: &Pair, now: Time, params: &Params) -> Result<u32, Time> {
        let window = params.window(channels, pair);
        let patience = self.peers.get(&src).map_or(params.rtt, |peer| peer.patience(params));
        let mut retry_at = Time::MAX;
        let mut best: Option<(u32, FlowId, u32)> = None;
        for &slot in self.peers.get(&src).into_iter().flat_map(|peer| &peer.flows) {
            let (id, flow) = self.flows.get_mut(slot).expect("a peer's flow");
            if flow.not_before > now {
                retry_at = retry_at.min(flow.not_before);
                continue;
            }
            if flow.phase != self.phase {
                flow.match_again(self.phase, self.began, patience, params);
            }
            let key = (flow.missing(), id, slot);
            if flow.next_packet(window, now).is_some() && best.is_none_or(|best| key < best) {
                best = Some(key);
            } else if now < flow.settled_at {
                retry_at = retry_at.min(flow.settled_at);
            }
        }
        best.map(|(_, _, slot)| slot).ok_or(retry_at)
    }

    /// The same with the departure [`Departure::LooseWindow`]: only the smallest flow counts.
    fn choose_loosely(
        &mut self,
        src: HostId,
        channels: u32,
        pair: &Pair,
        now: Time,
        params: &Params,
    ) -> Result<u32, Time> {
        let flows = &self.flows;
        let slots = self.peers.get(&src).into_iter().flat_map(|peer| &peer.flows);
        let eligible = slots.map(|&slot| (slot, flows.get(slot).expect("a peer's flow").1));
        let eligible = eligible.filter(|(_, flow)| flow.not_before <= now);
        let smallest = eligible.min_by_key(|(slot, flow)| (flow.missing(), *slot)).map(|(slot, _)| slot);
        let slot = smallest.ok_or(Time::MAX)?;
        let patience = self.peers.get(&src).map_or(params.rtt, |peer| peer.patience(params));
        let (_, flow) = self.flows.get_mut(slot).expect("just found");
        let in_flight = |flow: &Incoming| flow.tokens - flow.answered.min(flow.tokens);
        let window = pair.window_packets * channels;
        if flow.retokens_at_end(params) {
            flow.go_round();
        } else if flow.phase != self.phase {
            flow.match_again(self.phase, self.began, patience, params);
        }
        if in_flight(flow) * params.channels > window {
            let relaxed_at = flow.token_at + timeout(params).mul_f64(1.1);
            if now < relaxed_at {
                return Err(relaxed_at);
            }
            flow.answered = (flow.tokens + 1).saturating_sub(pair.window_packets / params.channels * channels);
        }
        if flow.next_packet(u32::MAX, now).is_none() {
            return Err(if now < flow.settled_at { flow.settled_at } else { Time::MAX });
        }
        Ok(slot)
    }

    /// When a token may be due.
    pub fn next_token(&self) -> Time {
        self.links.iter().map(|link| link.at).min().unwrap_or(Time::MAX)
    }

    /// Whether stages must be kept.
    pub fn is_matching(&self) -> bool {
        !(self.peers.is_empty() && self.grants.is_empty() && self.next.is_empty())
    }

    /// The capacity of the link that is free beside the matches for this data phase.
    fn idle(&self, params: &Params) -> Free {
        params.idle(self.links.iter().map(|link| (link.channels, &link.pair)))
    }

    /// The capacity of the link that is free beside the matches for the next data phase.
    fn free(&self, params: &Params) -> Free {
        params.free(self.next.iter().map(|link| (link.channels, &link.pair)))
    }

    pub fn grants_stale(&self) -> u64 {
        self.grants.stale
    }
}

/// Time after its last packet was sent from which a short flow is taken to be incomplete: a round trip. In the authors'
/// program it is the time to send a window, which is also when a flow is admitted again.
fn timeout(params: &Params) -> Duration {
    if params.departs(Departure::LooseWindow) {
        params.own.packet_time * u64::from(params.own.window_packets)
    } else {
        params.rtt
    }
}
