//! The sender's side: requests, slots that pace data, and completes (section 3.1), and what it concludes from control
//! packets that do not arrive (section 3.2).
//!
//! Each slot has its own clock: its next packet is due one period after its last one *left*. After a delay in the host,
//! a slot does not send faster to make up for it, so that packets never leave less than a period apart. The clock
//! continues when the slot is assigned to another message. A message's packets are sent in order, each by whichever of
//! its slots is due first.
//!
//! A request that answers a failure goes with the data of the slot over which the failure came, if there is one
//! (`receiver`). A failure of the attempt before tells that the request was lost: it is sent again, by the switches'
//! tables. That is no further attempt, since its receiver answers.
//!
//! A timer runs while a message has no slot at its sender: until the answer to its request, or after the last data
//! until the receiver's complete. While the message has a slot, it is the receiver that detects missing packets.
//!
//! A message ends as *rejected* only if part of it has never been sent, so that it cannot have been delivered. If a
//! later attempt is rejected after all bytes were sent once, the message ends as failed.

use std::collections::VecDeque;

use node::packet::flags;
use node::{Cx, Event, FlowMap, FlowState, Message, Packet, Timers, Walk};
use units::{FlowId, HostId, Time};

use super::header::{Data, Rejected, Reservation, Rsvp, Slot as Purpose, slot_name};
use super::params::Params;
use super::{Control, Header, URGENT};
use contract::Guarantee;

#[derive(node::State)]
#[state(given(Params), last(self.visit_slots(walk)))]
pub(super) struct Sender {
    messages: FlowMap<Outgoing>,
    /// Number of messages that have had no slot in their current attempt.
    waiting: usize,
    #[state(turn_at(given.site.host.0, "attempt"))]
    attempts: u16,
    #[state(skip("`visit_slots` visits them"))]
    slots: Vec<Slot>,
    /// Slots in use that may send now, in the order in which they became due.
    due: VecDeque<u32>,
    /// Clocks of the other slots in use.
    pacing: Timers,
    /// By message: the time by which the next control packet must have arrived.
    answers: Timers,
    pub counts: Counts,
}

/// Counters for the result.
#[derive(Default, node::State)]
#[state(counts)]
pub(super) struct Counts {
    pub requests: u64,
    pub requests_again: u64,
    pub rsvps_used: u64,
    pub rsvps_refused: u64,
    pub rsvps_stale: u64,
    pub refusals_heard: u64,
    pub rejected: u64,
    pub attempts_failed: u64,
    pub malformed: u64,
}

#[derive(Default, node::State)]
#[state(given(Option<HostId>), first(let due = self.due), first(walk.same(due > walk.now())))]
struct Slot {
    /// Earliest time of its next packet.
    #[state(when(self.assigned.is_some() && given.is_some() || due > walk.now(), time, past))]
    due: Time,
    /// Size of its last packet.
    wire_bytes: u16,
    #[state(when(given.is_some(), each(given(&(given.expect("checked"), due)))))]
    assigned: Option<Assignment>,
}

/// The message that a slot is assigned to.
#[derive(Clone, Copy, node::State)]
#[state(given((HostId, Time)))]
struct Assignment {
    message: u32,
    #[state(turn_at(given.0.0, slot_name(self.id)))]
    id: u32,
    #[state(when(self.given > given.1, time, past))]
    given: Time,
    /// The path of the data, and the path of the receiver's complete.
    label: u64,
    back: u64,
    /// Whether it is for all remaining bytes; otherwise it is additional.
    main: bool,
    /// For an additional slot: message bytes that it may still send, and has sent.
    granted: u64,
    #[state(when(self.main, counted_of, _))]
    sent: u64,
}

/// The packet by which a sender releases a reservation.
#[derive(Clone, Copy)]
enum End {
    Complete,
    Reject,
}

#[derive(node::State)]
#[state(given(Params))]
#[state(first(walk.inherited(walk.flow, if self.begun { walk.now().since(self.began).ps() } else { 0 })))]
struct Outgoing {
    dst: HostId,
    bytes: u64,
    /// The next byte to send, and the first byte that no attempt has sent.
    #[state(sequence(1))]
    next: u64,
    #[state(sequence(1))]
    fresh: u64,
    #[state(turn_at(given.site.host.0, "attempt"))]
    attempt: u16,
    /// Number of requests sent, in all attempts.
    tries: u8,
    /// Whether this attempt has had a slot; if so, since when, and how many bytes were missing then.
    begun: bool,
    #[state(past)]
    began: Time,
    began_bytes: u64,
    slots: u32,
    #[state(count_of)]
    sent_packets: u64,
    #[state(count_of)]
    resent_packets: u64,
}

impl Outgoing {
    /// Message bytes in its next packet.
    fn next_payload(&self, params: &Params) -> u16 {
        (self.bytes - self.next).min(u64::from(params.site.payload_max())) as u16
    }
}

impl Sender {
    pub fn new(params: &Params) -> Sender {
        Sender {
            messages: FlowMap::default(),
            waiting: 0,
            attempts: 0,
            slots: (0..params.slots).map(|_| Slot::default()).collect(),
            due: VecDeque::new(),
            pacing: Timers::default(),
            answers: Timers::default(),
            counts: Counts::default(),
        }
    }

    /// What a message has: slots, and the rate of them together.
    pub fn state(&self, flow: FlowId, params: &Params, say: &mut FlowState) {
        let Some(Outgoing { slots, .. }) = self.messages.of(flow) else { return };
        say.rate(params.bounds.slot_rate.mul_f64(f64::from(*slots)));
        say.say("slots", u64::from(*slots));
    }

    /// Starts a message with a request.
    pub fn start(&mut self, message: &Message, params: &Params, control: &mut Control) {
        let outgoing = Outgoing {
            dst: message.dst,
            bytes: message.bytes,
            next: 0,
            fresh: 0,
            attempt: self.next_attempt(),
            tries: 0,
            begun: false,
            began: Time::ZERO,
            began_bytes: 0,
            slots: 0,
            sent_packets: 0,
            resent_packets: 0,
        };
        let key = self.messages.insert(message.flow, outgoing);
        self.waiting += 1;
        self.ask(key, None, params, control);
    }

    /// The number of a new attempt. Attempts of all messages are counted together, so that a message that is submitted
    /// again has other numbers.
    fn next_attempt(&mut self) -> u16 {
        self.attempts = self.attempts.wrapping_add(1);
        self.attempts
    }

    /// Sends a request that counts as a try.
    fn ask(&mut self, key: u32, over: Option<u64>, params: &Params, control: &mut Control) {
        let Some((_, message)) = self.messages.get_mut(key) else { return };
        message.tries += 1;
        self.request(key, over, params, control);
    }

    /// Sends a request, over a path of data if one is given.
    fn request(&mut self, key: u32, over: Option<u64>, params: &Params, control: &mut Control) {
        let Some((flow, message)) = self.messages.get_mut(key) else { return };
        self.counts.requests += 1;
        let request = Header::Request { attempt: message.attempt, length: message.bytes };
        control.push(match over {
            Some(label) => params.along(flow, message.dst, request, label),
            None => params.control(flow, message.dst, request),
        });
    }

    /// A request has left: starts the timer for its answer.
    pub fn departed(&mut self, now: Time, request: &Packet, params: &Params) {
        let Some(key) = self.messages.slot(request.flow) else { return };
        if let Some((_, message)) = self.messages.get(key).filter(|(_, message)| message.slots == 0) {
            self.answers.set(key, now + params.bounds.answer_to(message.tries));
        }
    }

    /// A control packet from a receiver or a switch.
    pub fn receive(
        &mut self,
        cx: &mut Cx<'_>,
        packet: &Packet,
        header: Header,
        params: &Params,
        control: &mut Control,
    ) {
        let known = self.messages.slot(packet.flow);
        let known = known.filter(|&key| self.messages.get(key).is_some_and(|(_, known)| known.dst == packet.src));
        let current =
            |attempt| known.filter(|&key| self.messages.get(key).is_some_and(|(_, known)| known.attempt == attempt));
        match header {
            Header::Rsvp(rsvp) => match current(rsvp.reservation.attempt) {
                Some(key) => self.reserved(cx, key, packet, rsvp, params, control),
                None => {
                    self.counts.rsvps_stale += 1;
                    // It belongs to an earlier attempt that has been replaced, or to a message that has ended.
                    let what = if known.is_some() { Rejected::Attempt } else { Rejected::Message };
                    answer_rsvp(packet, Header::Reject { reservation: rsvp.reservation, what }, params, control);
                }
            },
            Header::Delivered => {
                if let Some(key) = known {
                    self.completed(cx, key, packet.flow, params, control);
                }
            }
            Header::Refusal { attempt, conclusive } => match current(attempt) {
                Some(key) if conclusive => self.refused(cx, key),
                Some(key) => self.heard(cx.now, key, params),
                None => {}
            },
            Header::Failure(Reservation { attempt, id }) => {
                let Some(key) = known else { return };
                match current(attempt) {
                    Some(key) => {
                        let over = self.path_of(key, id).filter(|_| Params::is_along(packet));
                        self.fail(cx, key, over, params, control);
                    }
                    None => self.failed_before(key, attempt, params, control),
                }
            }
            // To receivers.
            Header::Request { .. } | Header::Data(_) | Header::Complete { .. } | Header::Reject { .. } => {}
        }
    }

    /// A slot at the receiver and a virtual link on each link of the path are reserved for this message.
    fn reserved(
        &mut self,
        cx: &mut Cx<'_>,
        key: u32,
        packet: &Packet,
        rsvp: Rsvp,
        params: &Params,
        control: &mut Control,
    ) {
        let reservation = rsvp.reservation;
        let assignments = || self.slots.iter().filter_map(|slot| slot.assigned);
        if assignments().any(|assigned| assigned.message == key && assigned.id == reservation.id) {
            return; // a duplicate
        }
        let Some((_, message)) = self.messages.get_mut(key) else { return };
        let payload = u64::from(params.site.payload_max());
        let sensible = rsvp.offset < message.bytes && rsvp.offset.is_multiple_of(payload) && rsvp.missing > 0;
        let reject = Header::Reject { reservation, what: Rejected::Full };
        if !packet.has(flags::SOURCE_ROUTED) || !sensible {
            self.counts.malformed += 1;
            return answer_rsvp(packet, reject, params, control);
        }
        if message.begun && message.next == message.bytes {
            let complete = Header::Complete { reservation, sent: 0, last: true };
            return answer_rsvp(packet, complete, params, control);
        }
        // The free slot that may send first. An active message leaves one slot for each message that has none yet.
        let free = || (0..).zip(&self.slots).filter(|(_, slot)| slot.assigned.is_none());
        let spared = if message.slots > 0 { self.waiting } else { 0 };
        let Some((index, _)) = free().min_by_key(|(_, slot)| slot.due).filter(|_| free().count() > spared) else {
            self.counts.rsvps_refused += 1;
            answer_rsvp(packet, reject, params, control);
            if rsvp.slot == (Purpose::Main { conclusive: true }) {
                self.refused(cx, key);
            }
            return;
        };
        if !message.begun {
            message.begun = true;
            (message.began, message.began_bytes) = (cx.now, message.bytes - rsvp.offset);
            self.waiting -= 1;
            message.next = rsvp.offset;
        }
        message.slots += 1;
        self.answers.clear(key);
        self.counts.rsvps_used += 1;
        let slot = &mut self.slots[index as usize];
        let (id, label, back) = (reservation.id, packet.label, rsvp.back);
        let main = rsvp.slot != Purpose::Additional;
        let granted = params.additional;
        slot.assigned = Some(Assignment { message: key, id, given: cx.now, label, back, main, granted, sent: 0 });
        if slot.due <= cx.now {
            self.due.push_back(index);
        } else {
            self.pacing.set(index, slot.due);
        }
    }

    fn completed(&mut self, cx: &mut Cx<'_>, key: u32, flow: FlowId, params: &Params, control: &mut Control) {
        self.end_slots(key, End::Complete, params, control);
        if let Some(message) = self.remove(key) {
            let Outgoing { sent_packets, resent_packets, .. } = message;
            if message.begun {
                let bound = params.bounds.message_delay(message.began_bytes);
                let delay = cx.now.since(message.began);
                cx.events.push(Event::Measured { flow, what: Guarantee::DELAY, value: delay.ps() });
                cx.events.push(Event::Measured { flow, what: Guarantee::DELAY_BOUND, value: bound.ps() });
            }
            cx.events.push(Event::Completed { flow, sent_packets, resent_packets });
        }
    }

    /// A switch had no free virtual link for the message's rsvp. Its receiver has the request and tries again, so that
    /// the timer starts anew.
    fn heard(&mut self, now: Time, key: u32, params: &Params) {
        self.counts.refusals_heard += 1;
        if let Some((_, message)) = self.messages.get(key).filter(|(_, message)| !message.begun) {
            self.answers.set(key, now + params.bounds.answer_to(message.tries));
        }
    }

    /// Ends a message whose request was refused for good, unless it has got a slot since or all of it has been sent.
    fn refused(&mut self, cx: &mut Cx<'_>, key: u32) {
        let Some((flow, message)) = self.messages.get(key) else { return };
        if message.slots > 0 || message.begun && message.next == message.bytes {
            return;
        }
        let event = if message.fresh < message.bytes {
            self.counts.rejected += 1;
            Event::Rejected { flow }
        } else {
            Event::Failed { flow, reason: "rejected, after an earlier attempt had sent everything and failed" }
        };
        self.remove(key);
        cx.events.push(event);
    }

    /// The path of the data of a slot.
    fn path_of(&self, key: u32, id: u32) -> Option<u64> {
        let mut assigned = self.slots.iter().filter_map(|slot| slot.assigned);
        assigned.find(|of| of.message == key && of.id == id).map(|of| of.label)
    }

    /// The receiver says again that an attempt failed. If the request of the next one has had no answer, it was lost.
    fn failed_before(&mut self, key: u32, attempt: u16, params: &Params, control: &mut Control) {
        let Some((_, message)) = self.messages.get(key) else { return };
        if attempt.wrapping_sub(message.attempt).cast_signed() < 0 && !message.begun {
            self.counts.requests_again += 1;
            self.request(key, None, params, control);
        }
    }

    /// Ends this attempt: releases its reservations, and starts another attempt or none. `over` is a path that still
    /// delivers, if one is known.
    fn fail(&mut self, cx: &mut Cx<'_>, key: u32, over: Option<u64>, params: &Params, control: &mut Control) {
        self.counts.attempts_failed += 1;
        self.end_slots(key, End::Reject, params, control);
        let attempt = self.next_attempt();
        let Some((flow, message)) = self.messages.get_mut(key) else { return };
        if message.tries >= params.attempts {
            let reason = if message.begun {
                "packets did not come in time: a link or switch failed"
            } else {
                "no answer to its requests"
            };
            self.remove(key);
            cx.events.push(Event::Failed { flow, reason });
            return;
        }
        message.attempt = attempt;
        self.waiting += usize::from(std::mem::take(&mut message.begun));
        self.answers.clear(key);
        self.ask(key, over, params, control);
    }

    fn remove(&mut self, key: u32) -> Option<Outgoing> {
        self.answers.clear(key);
        let message = self.messages.remove(key)?;
        self.waiting -= usize::from(!message.begun);
        Some(message)
    }

    /// Releases all slots of a message, and its virtual links by packets along the paths of its data.
    fn end_slots(&mut self, key: u32, end: End, params: &Params, control: &mut Control) {
        for index in 0..self.slots.len() as u32 {
            if self.slots[index as usize].assigned.is_some_and(|assigned| assigned.message == key) {
                self.end_slot(index, end, params, control);
            }
        }
    }

    fn end_slot(&mut self, index: u32, end: End, params: &Params, control: &mut Control) {
        let Some(assigned) = self.slots[index as usize].assigned.take() else { return };
        self.pacing.clear(index);
        self.due.retain(|&due| due != index);
        let Some((flow, message)) = self.messages.get_mut(assigned.message) else { return };
        message.slots -= 1;
        let reservation = Reservation { attempt: message.attempt, id: assigned.id };
        let header = match end {
            End::Complete => Header::Complete { reservation, sent: assigned.sent, last: message.next == message.bytes },
            End::Reject => Header::Reject { reservation, what: Rejected::Slot },
        };
        control.push(params.routed(flow, message.dst, header, assigned.label));
    }

    /// An additional slot that has sent its share becomes the message's main slot if the message has none, because the
    /// main slot's rsvp was refused. Returns whether it did.
    fn goes_on(&mut self, index: u32) -> bool {
        let Some(assigned) = self.slots[index as usize].assigned else { return false };
        let of = |slot: &Slot| slot.assigned.is_some_and(|other| other.message == assigned.message && other.main);
        if self.slots.iter().any(of) {
            return false;
        }
        self.slots[index as usize].assigned = Some(Assignment { main: true, ..assigned });
        true
    }

    /// The next data packet for the NIC.
    pub fn poll_data(&mut self, cx: &mut Cx<'_>, params: &Params, control: &mut Control) -> Option<Packet> {
        self.tick(cx.now);
        if self.due.is_empty() || !cx.gate.open(URGENT) {
            return None;
        }
        loop {
            let lets = |index: &u32| {
                let assigned = self.slots[*index as usize].assigned?;
                let (flow, message) = self.messages.get(assigned.message)?;
                cx.gate.lets(flow, message.dst, URGENT).then_some(message.next_payload(params))
            };
            let (place, payload) = (0..).zip(&self.due).find_map(|(place, index)| Some((place, lets(index)?)))?;
            let index = self.due.remove(place)?;
            let slot = &mut self.slots[index as usize];
            let assigned = slot.assigned.expect("a slot that is due is assigned");
            if cx.now > slot.due.max(assigned.given) + params.bounds.slip(params.bounds.access_rate) {
                // The host's link was down for so long that receiver and switches may have dropped the reservation.
                self.fail(cx, assigned.message, None, params, control);
                continue;
            }
            let wire_bytes = payload + params.site.header_bytes;
            if wire_bytes < slot.wire_bytes {
                slot.due += params.bounds.catch_up(u64::from(slot.wire_bytes), u64::from(wire_bytes));
                slot.wire_bytes = wire_bytes;
                if slot.due > cx.now {
                    self.pacing.set(index, slot.due);
                    continue;
                }
            }
            return Some(self.data(cx.now, index, params, control));
        }
    }

    fn data(&mut self, now: Time, index: u32, params: &Params, control: &mut Control) -> Packet {
        let slot = &mut self.slots[index as usize];
        let assigned = slot.assigned.as_mut().expect("a slot that is due is assigned");
        let (flow, message) =
            self.messages.get_mut(assigned.message).expect("a slot is assigned to a message that is known");
        let offset = message.next;
        let payload = message.next_payload(params);
        let reservation = Reservation { attempt: message.attempt, id: assigned.id };
        let data = Header::Data(Data { reservation, offset, back: assigned.back });
        let mut packet = params.site.data_packet(flow, message.dst, data, payload);
        packet.class = URGENT;
        packet.flags = flags::SOURCE_ROUTED;
        packet.label = assigned.label;
        let payload = u64::from(payload);
        message.next += payload;
        message.sent_packets += 1;
        message.resent_packets += u64::from(offset < message.fresh);
        message.fresh = message.fresh.max(message.next);
        assigned.sent += payload;
        assigned.granted = assigned.granted.saturating_sub(payload);
        let (key, all, used_up) =
            (assigned.message, message.next == message.bytes, !assigned.main && assigned.granted == 0);
        slot.due = now + params.bounds.period(u64::from(packet.wire_bytes));
        slot.wire_bytes = packet.wire_bytes;
        if all {
            // None of its slots has anything left to send.
            self.end_slots(key, End::Complete, params, control);
            self.answers.set(key, now + params.bounds.completion());
        } else if used_up && !self.goes_on(index) {
            self.end_slot(index, End::Complete, params, control);
            if self.messages.get(key).is_some_and(|(_, message)| message.slots == 0) {
                self.answers.set(key, now + params.bounds.answer());
            }
        } else {
            self.pacing.set(index, self.slots[index as usize].due);
        }
        packet
    }

    /// Makes slots due whose clocks have expired.
    fn tick(&mut self, now: Time) {
        while let Some(index) = self.pacing.expire(now) {
            self.due.push_back(index);
        }
    }

    /// Handles slots that have become due, and control packets that have not arrived in time.
    pub fn deadline(&mut self, cx: &mut Cx<'_>, params: &Params, control: &mut Control) {
        self.tick(cx.now);
        while let Some(key) = self.answers.expire(cx.now) {
            let Some((_, message)) = self.messages.get(key) else { continue };
            if message.begun || message.tries >= params.attempts {
                self.fail(cx, key, None, params, control);
            } else {
                // There was no answer to the request: it is sent again, in the same attempt.
                self.counts.requests_again += 1;
                self.ask(key, None, params, control);
            }
        }
    }

    /// Whether it holds nothing of any message.
    pub fn is_idle(&self) -> bool {
        self.messages.is_empty() && self.slots.iter().all(|slot| slot.assigned.is_none())
    }

    pub fn next_deadline(&self) -> Time {
        self.answers.next().into_iter().chain(self.pacing.next()).min().unwrap_or(Time::MAX)
    }

    /// Goes over its slots. A message gets the slot that may send first.
    fn visit_slots(&mut self, walk: &mut Walk) {
        let mut order: Vec<(Time, usize)> = self.slots.iter().map(|slot| slot.due).zip(0..).collect();
        order.sort_unstable();
        order.iter().for_each(|&(_, slot)| walk.same(slot));
        order.windows(2).for_each(|pair| walk.lead((pair[1].0 - pair[0].0).ps()));
        for slot in &mut self.slots {
            let message = slot.assigned.and_then(|assigned| self.messages.get(assigned.message));
            walk.flow = message.map_or(walk.flow, |(flow, _)| flow);
            node::State::visit(slot, walk, &message.map(|(_, message)| message.dst));
        }
    }
}

/// Answers a rsvp that the sender cannot use, so that what it reserved is released.
fn answer_rsvp(rsvp: &Packet, answer: Header, params: &Params, control: &mut Control) {
    if rsvp.has(flags::SOURCE_ROUTED) {
        control.push(params.routed(rsvp.flow, rsvp.src, answer, rsvp.label));
    }
}

#[cfg(test)]
mod tests;
