//! The sender's side (sections 3.2 and 3.3): the first RTTbytes of a message without grants, the rest as granted, and
//! always the message with the fewest remaining bytes first.
//!
//! A grant states how many scheduled packets of its message may be sent in total, so a later grant makes up for a lost
//! one. The sender chooses the packets: with Aeolus, unscheduled packets known to be lost go before new ones.

use std::collections::{BTreeSet, VecDeque};

use node::packet::flags;
use node::{Cx, Event, FlowMap, FlowState, Message, Packet, Timers, Walk};
use rustc_hash::FxHashMap;
use units::{FlowId, HostId, Time};

use super::Header;
use super::header::{Announced, Answer, Data, Granted};
use super::params::Params;
use super::traffic::Levels;
use crate::bits::Bits;
use crate::srpt::visit_order;

#[derive(Default, node::State)]
#[state(given(Params), last(self.put_in_order(walk, given)))]
pub(super) struct Sender {
    #[state(slots)]
    flows: FlowMap<Outgoing>,
    /// Messages with a packet to send, by remaining bytes (SRPT).
    #[state(skip("it follows from the flows: see `put_in_order`"))]
    ready: BTreeSet<(u64, u64, u32)>,
    /// Messages that have been started.
    #[state(skip("only the order counts: see `put_in_order`"))]
    arrivals: u64,
    /// By receiver: its last reported levels.
    told: FxHashMap<HostId, Levels>,
    /// One timer for each message whose receiver is silent.
    #[state(slots)]
    timers: Timers,
    pub counts: Counts,
}

/// Counters for the result.
#[derive(Default, node::State)]
#[state(counts)]
pub(super) struct Counts {
    pub unscheduled: u64,
    pub scheduled: u64,
    pub resent: u64,
    pub lost: u64,
    pub busy: u64,
    pub probes: u64,
}

#[derive(node::State)]
#[state(given(Params))]
#[state(first(walk.same((self.ready.is_some(), self.next < self.unscheduled))))]
#[state(first(walk.sequence(walk.flow, walk.unit, &mut (self.unscheduled + self.allowed))))]
struct Outgoing {
    dst: HostId,
    /// Of equal messages the first to start goes first.
    #[state(skip("only the order counts: see `put_in_order`"))]
    arrival: u64,
    bytes: u64,
    packets: u32,
    /// Number of packets sent without grants.
    unscheduled: u32,
    /// The first packet that has not been sent.
    #[state(sequence)]
    next: u32,
    /// Number of scheduled packets granted, and number sent.
    #[state(steps)]
    allowed: u32,
    #[state(sequence)]
    spent: u32,
    /// Their class, as last reported.
    class: u8,
    /// Requested again: these need no grant.
    again: BTreeSet<u32>,
    /// Aeolus: unscheduled packets known to have arrived, and those known to be lost, which go first with the next
    /// grants. Known since the probe was answered.
    #[state(same(self.acked.count, self.acked.first_missing))]
    acked: Bits,
    lost: BTreeSet<u32>,
    probed: bool,
    #[state(count_of)]
    sent_packets: u64,
    /// Its key in the list of those that have a packet to send.
    #[state(anew(self.ready.map(|_| self.bytes_left(given))))]
    ready: Option<u64>,
}

impl Outgoing {
    /// The packet to send now, and the reason.
    fn next_packet(&self) -> Option<(u32, Reason)> {
        if let Some(&packet) = self.again.first() {
            return Some((packet, Reason::Again));
        }
        if self.next < self.unscheduled {
            return Some((self.next, Reason::Unscheduled));
        }
        if self.spent == self.allowed {
            return None;
        }
        let fresh = (self.next < self.packets).then_some((self.next, Reason::Granted));
        self.lost.first().map(|&packet| (packet, Reason::Lost)).or(fresh)
    }

    fn announced(&self) -> Announced {
        Announced { unscheduled: self.unscheduled as u16, length: self.bytes }
    }

    /// Its receiver has granted this many scheduled packets in all.
    fn allow(&mut self, granted: Granted) {
        self.allowed = self.allowed.max(granted.allowed.min(self.packets));
    }

    fn grant(&mut self, granted: Granted) {
        self.allow(granted);
        self.class = granted.class;
    }

    fn bytes_left(&self, params: &Params) -> u64 {
        let again = (self.again.len() + self.lost.len()) as u32;
        self.bytes.saturating_sub(params.bytes(self.next)) + params.bytes(again)
    }
}

/// The reason why a packet may be sent.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reason {
    Again,
    Unscheduled,
    Lost,
    Granted,
}

impl Sender {
    /// What a message has here: bytes granted and not sent, and unscheduled bytes not sent, in full packets.
    pub fn state(&self, flow: FlowId, params: &Params, say: &mut FlowState) {
        let Some(outgoing) = self.flows.of(flow) else { return };
        say.say("granted_bytes", params.bytes(outgoing.allowed.saturating_sub(outgoing.spent)));
        say.say("unscheduled_bytes", params.bytes(outgoing.unscheduled.saturating_sub(outgoing.next)));
    }

    /// A message to send.
    pub fn start(&mut self, now: Time, message: &Message, params: &Params) {
        let packets = params.packets(message.bytes);
        self.arrivals += 1;
        let flow = Outgoing {
            dst: message.dst,
            arrival: self.arrivals,
            bytes: message.bytes,
            packets,
            unscheduled: packets.min(params.rtt_packets),
            next: 0,
            allowed: 0,
            spent: 0,
            class: params.lowest_class(),
            again: BTreeSet::new(),
            acked: Bits::default(),
            lost: BTreeSet::new(),
            probed: false,
            sent_packets: 0,
            ready: None,
        };
        let slot = self.flows.insert(message.flow, flow);
        self.list(slot, params);
        self.timers.set(slot, now + params.ask_after);
    }

    /// Updates a message's place among those with a packet to send.
    fn list(&mut self, slot: u32, params: &Params) {
        let (_, flow) = self.flows.get_mut(slot).expect("the caller has it");
        let key = flow.next_packet().map(|_| flow.bytes_left(params));
        if key != flow.ready {
            if let Some(before) = flow.ready {
                self.ready.remove(&(before, flow.arrival, slot));
            }
            self.ready.extend(key.map(|key| (key, flow.arrival, slot)));
            flow.ready = key;
        }
    }

    /// A packet from a receiver.
    pub fn receive(
        &mut self,
        cx: &mut Cx<'_>,
        packet: &Packet,
        levels: Option<Levels>,
        answer: Answer,
        params: &Params,
        control: &mut VecDeque<Packet>,
    ) {
        if params.tells()
            && let Some(levels) = levels
        {
            self.told.insert(packet.src, levels);
        }
        let Some(slot) = self.flows.slot(packet.flow) else { return };
        let (_, flow) = self.flows.get_mut(slot).expect("just found");
        if flow.dst != packet.src {
            return;
        }
        match answer {
            Answer::Done => return self.complete(cx, slot),
            Answer::Grant(granted) => flow.grant(granted),
            Answer::Resend { granted, offset, length } => {
                flow.grant(granted);
                self.resend(slot, offset, length, params, control);
            }
            Answer::Ack { offset } => {
                let number = (offset / u64::from(params.site.payload_max())).min(u64::from(flow.unscheduled));
                if number < u64::from(flow.unscheduled) && flow.acked.insert(number as u32) {
                    flow.lost.remove(&(number as u32));
                }
            }
            Answer::Probed(granted) => {
                flow.allow(granted);
                if !std::mem::replace(&mut flow.probed, true) {
                    let (end, acked) = (flow.unscheduled.min(flow.next), &flow.acked);
                    let missing = |from: u32| Some(acked.next_missing(from)).filter(|&number| number < end);
                    flow.lost = std::iter::successors(missing(0), |&number| missing(number + 1)).collect();
                    self.counts.lost += flow.lost.len() as u64;
                }
            }
        }
        self.list(slot, params);
        self.timers.set(slot, cx.now + params.ask_after);
    }

    /// Section 3.7: its receiver misses packets that should have been sent. If they were sent, they are sent again; if
    /// they wait for shorter messages, the receiver is told so.
    fn resend(&mut self, slot: u32, offset: u64, length: u64, params: &Params, control: &mut VecDeque<Packet>) {
        let (id, flow) = self.flows.get_mut(slot).expect("the caller has it");
        let payload = u64::from(params.site.payload_max());
        let end = offset.saturating_add(length).div_ceil(payload).min(u64::from(flow.packets)) as u32;
        // Requested packets count as granted, in case the grants were lost.
        let fresh = end.saturating_sub(flow.next.max(flow.unscheduled));
        if fresh > 0 {
            flow.allowed = flow.allowed.max(flow.spent.saturating_add(flow.lost.len() as u32).saturating_add(fresh));
        }
        let end = end.min(flow.next);
        let first = (offset / payload).min(u64::from(end)) as u32;
        let before = flow.again.len();
        for packet in first..end {
            flow.again.insert(packet);
            flow.lost.remove(&packet);
        }
        if flow.again.len() == before && flow.next_packet().is_some() {
            self.counts.busy += 1;
            control.push_back(params.control(id, flow.dst, Header::Busy));
        }
    }

    fn complete(&mut self, cx: &mut Cx<'_>, slot: u32) {
        let (id, _) = self.flows.get(slot).expect("the caller has it");
        let flow = self.flows.remove(slot).expect("just seen");
        if let Some(key) = flow.ready {
            self.ready.remove(&(key, flow.arrival, slot));
        }
        self.timers.clear(slot);
        let resent_packets = flow.sent_packets.saturating_sub(u64::from(flow.packets));
        cx.events.push(Event::Completed { flow: id, sent_packets: flow.sent_packets, resent_packets });
    }

    /// The next data packet for the NIC: of the message with the fewest remaining bytes whose class may be sent. For
    /// receivers that have not reported levels, this host's own `levels` are used.
    pub fn poll_data(
        &mut self,
        cx: &Cx<'_>,
        levels: Levels,
        params: &Params,
        control: &mut VecDeque<Packet>,
    ) -> Option<Packet> {
        let choice = self.ready.iter().find_map(|&(_, _, slot)| {
            let (_, flow) = self.flows.get(slot)?;
            let (packet, reason) = flow.next_packet()?;
            let class = self.class(flow, packet, reason, &levels, params);
            cx.gate.open(class).then_some((slot, packet, reason, class))
        });
        let (slot, packet, reason, class) = choice?;
        let (id, flow) = self.flows.get_mut(slot).expect("just found");
        match reason {
            Reason::Again => _ = flow.again.pop_first(),
            Reason::Lost => _ = flow.lost.pop_first(),
            Reason::Unscheduled | Reason::Granted => flow.next += 1,
        }
        flow.spent += u32::from(matches!(reason, Reason::Lost | Reason::Granted));
        flow.sent_packets += 1;
        let (message, offset) = (flow.announced(), params.bytes(packet));
        let data = Data { message, offset };
        let header = if reason == Reason::Unscheduled { Header::Unscheduled(data) } else { Header::Scheduled(data) };
        let payload = (flow.bytes - offset).min(u64::from(params.site.payload_max())) as u16;
        let mut data = params.packet(id, flow.dst, class, header);
        data.payload_bytes = payload;
        data.wire_bytes += payload;
        if reason == Reason::Unscheduled {
            data.flags &= !flags::ECT;
            if params.aeolus.is_some() && flow.next == flow.unscheduled {
                // In the queue of the packets that it must not overtake.
                control.push_back(params.packet(id, flow.dst, class, Header::Probe(message)));
                self.counts.probes += 1;
            }
        }
        match reason {
            Reason::Unscheduled => self.counts.unscheduled += 1,
            Reason::Granted => self.counts.scheduled += 1,
            Reason::Again | Reason::Lost => self.counts.resent += 1,
        }
        self.list(slot, params);
        self.timers.set(slot, cx.now + params.ask_after);
        Some(data)
    }

    fn class(&self, flow: &Outgoing, packet: u32, reason: Reason, levels: &Levels, params: &Params) -> u8 {
        if reason != Reason::Unscheduled {
            return flow.class;
        }
        let bytes = if params.graduated { flow.bytes - params.bytes(packet) } else { flow.bytes };
        params.unscheduled_class(self.told.get(&flow.dst).unwrap_or(levels), bytes)
    }

    /// Probes receivers that have been silent for too long although it is their turn.
    pub fn deadline(&mut self, now: Time, params: &Params, control: &mut VecDeque<Packet>) {
        while let Some(slot) = self.timers.expire(now) {
            let Some((id, flow)) = self.flows.get(slot) else { continue };
            if flow.next_packet().is_none() {
                self.counts.probes += 1;
                control.push_back(params.control(id, flow.dst, Header::Probe(flow.announced())));
            }
            self.timers.set(slot, now + params.ask_after);
        }
    }

    pub fn next_deadline(&self) -> Time {
        self.timers.next().unwrap_or(Time::MAX)
    }

    /// Puts flows in order by what is left of them now.
    fn put_in_order(&mut self, walk: &mut Walk, params: &Params) {
        visit_order(walk, self.flows.iter().map(|(flow, of)| (of.bytes_left(params), of.arrival, flow)));
        let known = |slot| self.flows.get(slot).and_then(|(_, of)| Some((of.ready?, of.arrival, slot)));
        self.ready = self.ready.iter().filter_map(|&(_, _, slot)| known(slot)).collect();
        self.ready.iter().for_each(|(_, _, slot)| walk.same(walk.slots.place(*slot)));
        walk.same(self.ready.len());
    }
}
