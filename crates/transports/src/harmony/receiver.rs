//! The receiver's side: pending requests, the oldest first, slots and their rsvps (section 3.1), additional slots, and
//! the times by which packets must have arrived (section 3.2).
//!
//! A message is *pending* until it is assigned a slot for all of its remaining bytes (its main slot), and *active* from
//! then on. If the rsvp of the main slot is refused and the message has an additional slot, that becomes the main slot.
//! If all are refused, the message is pending again with its first arrival time, and other requests are tried before it
//! is tried again. After a failure a message is *lost*: the bytes that have arrived are kept until the sender asks
//! again, or for as long as it may ask ([`Bounds::patience`](super::bounds::Bounds::patience)).
//!
//! Decided here, where the paper refers to its report: a *failure* may be lost, and so may the request that answers it.
//! The failure goes over the slot of the message by which data came last, against these data, and the request goes that
//! way with them. Both keep off the failed link, which sprayed packets may meet. If no request has come within the time
//! that it takes ([`Bounds::reaction`](super::bounds::Bounds::reaction)), the failure is told again: over the slot by
//! which data of the failed attempt have come since, or else by the switches' tables, after twice as long each time.
//!
//! A message whose additional slots are refused asks for them more and more seldom (`back_off`), since its sender may
//! have none for a long time: one with K messages for K receivers has none until a message ends, and was
//! asked for seven by each of them in every round trip. The longest pause is the time for which an additional slot
//! lasts: then a rsvp and its reject cost 80 bytes for a slot's 45 packets on the paper's leaf-spine, and a slot that
//! has become free stays unused no longer than it would have been used.
//!
//! A slot that a message no longer needs stays assigned until its sender cannot use it any more; until then it is
//! *draining*. That ends when the slot's complete or reject arrives; or, after the request of a later attempt, when all
//! packets that were in flight then have arrived; or else after [`Bounds::hold`](super::bounds::Bounds::hold). That no
//! data arrive proves nothing: a failed link may come up again, and only the slots limit the use of the receiver's
//! link.

use std::collections::BTreeSet;

use node::{Cx, Event, FlowMap, Packet, Timers, Walk};
use units::{FlowId, HostId, Time};

use super::header::{Data, Rejected, Reservation, Rsvp, Slot as Purpose, slot_name, visit_missing};
use super::params::Params;
use super::{AdditionalTo, Control, Header, SLOTS_MAX};
use crate::bits::Bits;
use crate::finished::Finished;

use pauses::{Backoff, Lost};

mod pauses;

const NEVER: Time = Time::MAX;

#[derive(node::State)]
#[state(given(Params))]
#[state(first(walk.refuse_if(given.site.clock.drift_ppb != 0, "clocks drift")))]
#[state(last(self.put_in_order(walk)))]
pub(super) struct Receiver {
    messages: FlowMap<Incoming>,
    #[state(by(visit_slots))]
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// Messages that wait for their main slot, and those that have it, oldest first: arrival, order of arrival, key.
    #[state(skip("it follows from the messages: see `put_in_order`"))]
    pending: BTreeSet<(Time, u64, u32)>,
    #[state(skip("it follows from the messages: see `put_in_order`"))]
    active: BTreeSet<(Time, u64, u32)>,
    #[state(turn_at(given.site.host.0, "arrival"))]
    arrivals: u64,
    /// By message: the end of delta_admission, the next try, or the end of the time for which a lost message is kept.
    timers: Timers,
    /// By slot: the time by which its next packet must have arrived.
    expected: Timers,
    finished: Finished,
    pub counts: Counts,
}

/// Counters for the result.
#[derive(Default, node::State)]
#[state(counts)]
pub(super) struct Counts {
    pub rsvps: u64,
    pub rsvps_additional: u64,
    pub promoted: u64,
    pub refused: u64,
    pub rejected: u64,
    pub rejected_begun: u64,
    pub failures_seen: u64,
    pub failures_repeated: u64,
    pub completes_missed: u64,
    pub duplicates: u64,
    pub malformed: u64,
}

#[derive(Default, node::Saved)]
struct Slot {
    /// How often the slot has been assigned.
    count: u32,
    held: Option<Held>,
}

/// The message that a slot is assigned to.
#[derive(node::State)]
#[state(given(Params), last(self.visit_hold(walk, given)))]
struct Held {
    #[state(flow)]
    flow: FlowId,
    src: HostId,
    #[state(turn_at(given.site.host.0, slot_name(self.id)))]
    id: u32,
    #[state(turn_at(self.src.0, "attempt"))]
    attempt: u16,
    #[state(later(given.pause_max, expired))]
    given: Time,
    /// What its rsvp says: whether it is additional, the first byte that is missing, and how many.
    additional: bool,
    #[state(skip("`visit_hold` visits it"))]
    offset: u64,
    #[state(skip("`visit_hold` visits it"))]
    missing: u64,
    /// The latest time at which its sender may use it; [`NEVER`] until the rsvp has left.
    #[state(skip("`visit_hold` visits it"))]
    until: Time,
    main: bool,
    /// Its message no longer needs it, but its sender may still use it.
    draining: bool,
    began: bool,
    /// No other additional slot of its message has been refused since it was asked for.
    telling: bool,
    #[state(when(self.main, counted_of, _))]
    got_bytes: u64,
    /// The route to the sender, known from the first data packet.
    back: u64,
}

impl Held {
    /// Goes over how long it is held: the longer, the more is missing of its message.
    fn visit_hold(&mut self, walk: &mut Walk, params: &Params) {
        walk.same(self.until == NEVER);
        if !self.additional {
            walk.same((self.offset, self.missing));
            return walk.time(&mut self.until);
        }
        let hold = params.bounds.hold(self.missing);
        let mut left = if self.until == NEVER || self.draining { NEVER } else { self.until - hold };
        walk.time(&mut left);
        visit_missing(walk, &mut self.offset, &mut self.missing);
        if left == NEVER {
            walk.time(&mut self.until);
        } else {
            self.until = left + params.bounds.hold(self.missing);
        }
    }
}

#[derive(node::State)]
#[state(given(Params))]
#[state(first(walk.sequence(walk.flow, 1, &mut self.reach(walk.unit, given))))]
#[state(first(walk.expired(&mut given.admits_until(self.arrived))))]
struct Incoming {
    src: HostId,
    bytes: u64,
    packets: u32,
    have: Bits,
    #[state(turn_at(self.src.0, "attempt"))]
    attempt: u16,
    #[state(past)]
    arrived: Time,
    #[state(turn_at(given.site.host.0, "arrival"))]
    order: u64,
    state: State,
    /// Earliest time of its next rsvp; [`NEVER`] once delta_admission is over.
    #[state(when(self.not_before != NEVER, expired))]
    not_before: Time,
    refused: Backoff,
    /// Number of its slots, and of those whose data have begun to arrive.
    slots: u32,
    flowing: u32,
    /// The main slot's complete has arrived: the sender has sent everything.
    all_sent: bool,
    lost: Lost,
}

#[derive(Clone, Copy, PartialEq, Eq, node::State)]
enum State {
    Pending,
    Active,
    Lost,
}

impl Incoming {
    /// How far it has come, and a little more: what is missing decides about additional slots when it is no more than
    /// its slots send in a round trip.
    fn reach(&self, payload: u64, params: &Params) -> u64 {
        let slots = params.slot_bdp_bytes.max(payload) * u64::from(self.slots + 1);
        u64::from(self.have.count) * payload + params.additional + slots
    }

    fn place(&self, key: u32) -> (Time, u64, u32) {
        (self.arrived, self.order, key)
    }
}

/// Goes over slots. A slot's place is part of its reservations' numbers.
fn visit_slots(slots: &mut [Slot], walk: &mut Walk, params: &Params) {
    for (index, slot) in (0..).zip(slots) {
        let mut id = slot.count.wrapping_mul(SLOTS_MAX) | index;
        walk.turn_at(params.site.host.0, slot_name(id), &mut id);
        slot.count = id / SLOTS_MAX;
        node::State::visit(&mut slot.held, walk, params);
    }
}

impl Receiver {
    pub fn new(params: &Params) -> Receiver {
        Receiver {
            messages: FlowMap::default(),
            slots: (0..params.slots).map(|_| Slot::default()).collect(),
            free: (0..params.slots).rev().collect(),
            pending: BTreeSet::new(),
            active: BTreeSet::new(),
            arrivals: 0,
            timers: Timers::default(),
            expected: Timers::default(),
            finished: Finished::default(),
            counts: Counts::default(),
        }
    }

    /// A packet from a sender, or a reject from a switch.
    pub fn receive(
        &mut self,
        cx: &mut Cx<'_>,
        packet: &Packet,
        header: Header,
        params: &Params,
        control: &mut Control,
    ) {
        match header {
            Header::Request { attempt, length } => self.requested(cx.now, packet, attempt, length, params, control),
            Header::Data(data) => return self.data(cx, packet, data, params, control),
            Header::Complete { reservation, sent, last } => {
                if let Some(held) = self.release(reservation.id, packet.flow).filter(|held| !held.draining) {
                    self.slot_complete(cx.now, &held, sent, last, params, control);
                }
            }
            Header::Reject { reservation, what } => {
                if let Some(held) = self.release(reservation.id, packet.flow).filter(|held| !held.draining) {
                    self.slot_refused(cx.now, &held, what, params, control);
                }
            }
            // To senders.
            Header::Rsvp(_) | Header::Delivered | Header::Refusal { .. } | Header::Failure(_) => return,
        }
        self.assign(cx.now, params, control);
    }

    fn requested(
        &mut self,
        now: Time,
        packet: &Packet,
        attempt: u16,
        bytes: u64,
        params: &Params,
        control: &mut Control,
    ) {
        let flow = packet.flow;
        let Some(packets) = params.packets(bytes) else {
            self.counts.malformed += 1;
            return;
        };
        if self.finished.knows(flow) {
            // The virtual links of its path may belong to another message by now, so this packet is routed by tables.
            return control.push(params.control(flow, packet.src, Header::Delivered));
        }
        if let Some(key) = self.messages.slot(flow) {
            let Some((_, known)) = self.messages.get(key) else { return };
            if known.src != packet.src || known.bytes != bytes {
                self.counts.malformed += 1;
                return;
            }
            if attempt == known.attempt && known.state == State::Lost {
                return self.tell_failure(key, params, control);
            }
            if attempt.wrapping_sub(known.attempt).cast_signed() <= 0 {
                return;
            }
            self.retire_slots(key);
            self.unlist(key);
            // Before it asked again the sender released all slots of the message, so that only packets in flight are
            // still to come.
            let drained = now + params.bounds.drained();
            for (index, held) in held_for(&mut self.slots, flow) {
                held.until = held.until.min(drained);
                self.expected.set(index, held.until);
            }
        } else {
            let incoming = Incoming {
                src: packet.src,
                bytes,
                packets,
                have: Bits::default(),
                attempt,
                arrived: now,
                order: 0,
                state: State::Pending,
                not_before: now,
                refused: Backoff::default(),
                slots: 0,
                flowing: 0,
                all_sent: false,
                lost: Lost::default(),
            };
            self.messages.insert(flow, incoming);
        }
        self.arrivals += 1;
        let key = self.messages.slot(flow).expect("just inserted or found");
        let (_, incoming) = self.messages.get_mut(key).expect("just inserted or found");
        incoming.attempt = attempt;
        (incoming.arrived, incoming.order, incoming.not_before) = (now, self.arrivals, now);
        (incoming.all_sent, incoming.refused) = (false, Backoff::default());
        self.wait(key, now, params);
    }

    /// Makes the message pending: it waits for its main slot.
    fn wait(&mut self, key: u32, now: Time, params: &Params) {
        let Some((_, message)) = self.messages.get_mut(key) else { return };
        message.state = State::Pending;
        let place = message.place(key);
        self.active.remove(&place);
        self.pending.insert(place);
        let until = params.admits_until(message.arrived);
        let retried = message.not_before > now && message.not_before < until;
        self.timers.set(key, if retried { message.not_before } else { until });
    }

    /// Gives free slots to pending messages, or to active ones if none is pending, the oldest first.
    fn assign(&mut self, now: Time, params: &Params, control: &mut Control) {
        while !self.free.is_empty()
            && let Some(key) = self.next_pending(now)
        {
            self.give(key, true, now, params, control);
        }
        if !self.pending.is_empty() || self.free.is_empty() || params.additional == 0 {
            return;
        }
        while !self.free.is_empty()
            && let Some(key) = self.next_active(now, params)
        {
            self.give(key, false, now, params, control);
        }
    }

    fn next_pending(&self, now: Time) -> Option<u32> {
        let due = |key: &u32| self.messages.get(*key).is_some_and(|(_, message)| message.not_before <= now);
        self.pending.iter().map(|place| place.2).find(due)
    }

    /// The message that gets the next additional slot.
    fn next_active(&self, now: Time, params: &Params) -> Option<u32> {
        let mut useful = self.active.iter().map(|place| place.2).filter(|&key| self.is_useful(key, now, params));
        match params.additional_to {
            AdditionalTo::Oldest => useful.next(),
            AdditionalTo::Fewest => useful.min_by_key(|&key| self.messages.get(key).map(|(_, message)| message.slots)),
        }
    }

    /// Whether an additional slot would find bytes to send, after those that the present slots send until its rsvp
    /// arrives. A message that has no data by the end of delta_admission gets no additional slot. Otherwise the
    /// receiver could send one rsvp after the other in vain, each of which becomes the main one when the one before is
    /// refused, and the message would neither begin nor be rejected.
    fn is_useful(&self, key: u32, now: Time, params: &Params) -> bool {
        let Some((_, message)) = self.messages.get(key) else { return false };
        let missing = u64::from(message.packets - message.have.count) * u64::from(params.site.payload_max());
        let flowing = u64::from(message.flowing) * params.slot_bdp_bytes;
        let waiting = u64::from(message.slots.saturating_sub(message.flowing)) * u64::from(params.site.payload_max());
        let in_time = message.flowing > 0 || now < params.admits_until(message.arrived);
        let asked = message.refused.alone && message.slots > message.flowing;
        let due = message.not_before <= now && message.refused.until <= now && !asked;
        in_time && due && missing > flowing + waiting
    }

    fn give(&mut self, key: u32, main: bool, now: Time, params: &Params, control: &mut Control) {
        let Some((flow, message)) = self.messages.get_mut(key) else { return };
        let Some(index) = self.free.pop() else { return };
        let slot = &mut self.slots[index as usize];
        slot.count = slot.count.wrapping_add(1);
        // A slot's number and how often it was assigned identify the reservation.
        let id = slot.count.wrapping_mul(SLOTS_MAX) | index;
        let attempt = message.attempt;
        let offset = u64::from(message.have.first_missing) * u64::from(params.site.payload_max());
        let missing = message.bytes.saturating_sub(offset).max(1);
        slot.held = Some(Held {
            flow,
            src: message.src,
            id,
            attempt,
            given: now,
            additional: !main,
            offset,
            missing,
            until: NEVER,
            main,
            draining: false,
            began: false,
            telling: true,
            got_bytes: 0,
            back: 0,
        });
        message.slots += 1;
        let conclusive = params.gives_up && message.slots == 1;
        let slot = if main { Purpose::Main { conclusive } } else { Purpose::Additional };
        let rsvp = Rsvp { reservation: Reservation { attempt, id }, slot, missing, offset, back: 0 };
        control.push(params.routed(flow, message.src, Header::Rsvp(rsvp), 0));
        self.counts.rsvps += 1;
        if main {
            message.state = State::Active;
            let place = message.place(key);
            self.pending.remove(&place);
            self.active.insert(place);
            self.timers.clear(key);
        } else {
            self.counts.rsvps_additional += 1;
        }
    }

    /// A rsvp has left: sets the time by which its first data must arrive.
    pub fn departed(&mut self, now: Time, rsvp: Rsvp, params: &Params) {
        let id = rsvp.reservation.id;
        if let Some(held) = self.held(id) {
            held.until = now + params.bounds.hold(rsvp.missing);
            let expected = if held.draining { held.until } else { now + params.bounds.first_data() };
            self.expected.set(id % SLOTS_MAX, expected);
        }
    }

    fn held(&mut self, id: u32) -> Option<&mut Held> {
        let slot = self.slots.get_mut((id % SLOTS_MAX) as usize)?;
        slot.held.as_mut().filter(|held| held.id == id)
    }

    fn data(&mut self, cx: &mut Cx<'_>, packet: &Packet, data: Data, params: &Params, control: &mut Control) {
        let Data { reservation: Reservation { id, .. }, offset, back } = data;
        let payload = u64::from(packet.payload_bytes);
        let (mut began, mut granted) = (false, false);
        if let Some(held) = self.held(id).filter(|held| held.flow == packet.flow) {
            began = !std::mem::replace(&mut held.began, true) && !held.draining;
            granted = began && held.additional;
            held.got_bytes += payload;
            held.back = back;
            if !held.draining {
                self.expected.set(id % SLOTS_MAX, cx.now + params.bounds.next_data());
            }
        }
        // Late data of an earlier attempt count, too.
        let Some(key) = self.messages.slot(packet.flow) else { return };
        let Some((_, message)) = self.messages.get_mut(key) else { return };
        message.flowing += u32::from(began);
        let alone = message.refused.alone;
        if granted {
            message.refused = Backoff::default();
        }
        if message.state == State::Lost && message.attempt == data.reservation.attempt {
            message.lost.over = Some((id, back));
        }
        let full = u64::from(params.site.payload_max());
        let whole =
            offset < message.bytes && offset.is_multiple_of(full) && payload == full.min(message.bytes - offset);
        if message.src != packet.src || !whole {
            self.counts.malformed += 1;
            return;
        }
        if !message.have.insert((offset / full) as u32) {
            self.counts.duplicates += 1;
        } else if message.have.count == message.packets {
            return self.delivered(cx, key, packet, back, params, control);
        }
        if began && alone {
            // It had waited for this slot before it asked for another.
            self.assign(cx.now, params, control);
        }
    }

    fn delivered(
        &mut self,
        cx: &mut Cx<'_>,
        key: u32,
        packet: &Packet,
        back: u64,
        params: &Params,
        control: &mut Control,
    ) {
        self.retire_slots(key);
        self.remove(key);
        self.finished.add(packet.flow);
        control.push(params.routed(packet.flow, packet.src, Header::Delivered, back));
        cx.events.push(Event::Delivered { flow: packet.flow });
        self.assign(cx.now, params, control);
    }

    /// Frees a slot, if this reservation still holds it.
    fn release(&mut self, id: u32, flow: FlowId) -> Option<Held> {
        self.held(id).filter(|held| held.flow == flow)?;
        let index = id % SLOTS_MAX;
        let held = self.slots[index as usize].held.take()?;
        self.expected.clear(index);
        self.free.push(index);
        if !held.draining
            && let Some(key) = self.messages.slot(flow)
            && let Some((_, message)) = self.messages.get_mut(key)
        {
            message.slots -= 1;
            message.flowing -= u32::from(held.began);
        }
        Some(held)
    }

    /// The sender has sent all that it will send in a slot.
    fn slot_complete(&mut self, now: Time, held: &Held, sent: u64, last: bool, params: &Params, control: &mut Control) {
        let Some(key) = self.messages.slot(held.flow) else { return };
        let Some((_, message)) = self.messages.get_mut(key) else { return };
        message.all_sent |= last;
        // Packets of one slot arrive in order, so that missing ones are not in flight.
        if held.got_bytes < sent || (message.all_sent && message.slots == 0) {
            return self.fail(now, key, params, control);
        }
        if held.main && !message.all_sent {
            // The sender sends the rest in another slot.
            self.promote(key, now, params);
        }
        self.reconsider(now, key, params, control);
    }

    /// A switch or the sender had nothing free, or the sender has given up this attempt or no longer has the message.
    fn slot_refused(&mut self, now: Time, held: &Held, what: Rejected, params: &Params, control: &mut Control) {
        self.counts.refused += 1;
        let Some(key) = self.messages.slot(held.flow) else { return };
        match what {
            Rejected::Slot | Rejected::Full => {}
            Rejected::Attempt => return self.lose(now, key, params),
            Rejected::Message => {
                self.retire_slots(key);
                return self.remove(key);
            }
        }
        let Some((_, message)) = self.messages.get_mut(key) else { return };
        if held.main {
            let next = if params.gives_up { NEVER } else { now.max(held.given + params.retry_after) };
            message.not_before = message.not_before.max(next);
            self.promote(key, now, params);
        } else {
            self.back_off(now, key, held, what, params);
        }
        self.reconsider(now, key, params, control);
    }

    /// An additional slot was refused ([`Backoff`]).
    fn back_off(&mut self, now: Time, key: u32, refused: &Held, what: Rejected, params: &Params) {
        let Some((flow, message)) = self.messages.get_mut(key) else { return };
        message.refused.add(now, refused.given, what == Rejected::Full, refused.telling, params);
        if message.refused.alone {
            held_for(&mut self.slots, flow).for_each(|(_, other)| other.telling = false);
        }
        if message.state == State::Active {
            self.timers.set(key, message.not_before.max(message.refused.until));
        }
    }

    /// The main slot was refused. Another slot of the message takes its place, since the sender continues in the last
    /// slot that it has, so that a message that has begun is not rejected. Without another slot the message waits
    /// again.
    fn promote(&mut self, key: u32, now: Time, params: &Params) {
        let Some((flow, _)) = self.messages.get(key) else { return };
        let others = || held_for_ref(&self.slots, flow).filter(|held| !held.1.draining);
        // A slot whose data have arrived has been accepted.
        match others().max_by_key(|held| held.1.began).map(|held| held.0) {
            Some(index) => {
                let slot = self.slots[index as usize].held.as_mut().expect("it is one of those assigned");
                slot.main = true;
                self.counts.promoted += 1;
            }
            None => self.wait(key, now, params),
        }
    }

    /// Once delta_admission is over, a pending message is not tried again, and it is rejected when it has no slot left.
    fn reconsider(&mut self, now: Time, key: u32, params: &Params, control: &mut Control) {
        let Some((flow, message)) = self.messages.get_mut(key).filter(|(_, message)| message.state == State::Pending)
        else {
            return;
        };
        if now >= params.admits_until(message.arrived) {
            message.not_before = NEVER;
        }
        if message.not_before == NEVER && message.slots == 0 {
            let refusal = Header::Refusal { attempt: message.attempt, conclusive: true };
            control.push(params.control(flow, message.src, refusal));
            self.counts.rejected += 1;
            self.counts.rejected_begun += u64::from(message.have.count > 0);
            self.remove(key);
        }
    }

    /// A packet has not arrived in time: the message is lost until its sender asks again.
    fn fail(&mut self, now: Time, key: u32, params: &Params, control: &mut Control) {
        self.counts.failures_seen += 1;
        let over = self.last_delivered(key);
        if let Some((_, message)) = self.messages.get_mut(key) {
            message.lost.over = over;
        }
        self.tell_failure(key, params, control);
        self.lose(now, key, params);
    }

    /// The slot of a message by which data came last, of those that are not overdue, and the route against its data.
    fn last_delivered(&self, key: u32) -> Option<(u32, u64)> {
        let (flow, _) = self.messages.get(key)?;
        let flowing = held_for_ref(&self.slots, flow).filter(|(_, held)| held.began && !held.draining);
        let in_time = flowing.filter_map(|(index, held)| Some((self.expected.get(index)?, held)));
        in_time.max_by_key(|(next, _)| *next).map(|(_, held)| (held.id, held.back))
    }

    fn lose(&mut self, now: Time, key: u32, params: &Params) {
        self.retire_slots(key);
        self.unlist(key);
        if let Some((_, message)) = self.messages.get_mut(key) {
            message.state = State::Lost;
            let (until, pause) = (now + params.bounds.patience(), params.bounds.reaction());
            message.lost = Lost { until, pause, over: None };
            self.timers.set(key, until.min(now + pause));
        }
    }

    fn tell_failure(&mut self, key: u32, params: &Params, control: &mut Control) {
        let Some((flow, message)) = self.messages.get_mut(key) else { return };
        let (src, attempt) = (message.src, message.attempt);
        let failure = |id| Header::Failure(Reservation { attempt, id });
        control.push(match message.lost.over.take() {
            Some((id, back)) => params.along(flow, src, failure(id), back),
            None => params.control(flow, src, failure(0)),
        });
    }

    /// The sender has not asked again: the failure or the request was lost, or the message is no longer kept.
    fn not_asked_again(&mut self, now: Time, key: u32, params: &Params, control: &mut Control) {
        let Some((_, message)) = self.messages.get_mut(key) else { return };
        let Lost { until, pause, over } = &mut message.lost;
        if now >= *until {
            return self.remove(key);
        }
        *pause = if over.is_some() { params.bounds.reaction() } else { *pause * 2 };
        self.timers.set(key, (*until).min(now + *pause));
        self.counts.failures_repeated += 1;
        self.tell_failure(key, params, control);
    }

    /// The message no longer needs its slots: they drain.
    fn retire_slots(&mut self, key: u32) {
        let Some((flow, message)) = self.messages.get_mut(key) else { return };
        (message.slots, message.flowing) = (0, 0);
        for (index, held) in held_for(&mut self.slots, flow) {
            held.draining = true;
            if held.until < NEVER {
                self.expected.set(index, held.until);
            }
        }
    }

    /// Sends a failure along the path of a slot whose complete did not arrive. It frees the virtual links of the
    /// switches behind the failed link, where no complete or reject has passed.
    fn free_path(&self, held: &Held, params: &Params, control: &mut Control) {
        if held.began {
            let failure = Header::Failure(Reservation { attempt: held.attempt, id: held.id });
            control.push(params.routed(held.flow, held.src, failure, held.back));
        }
    }

    fn unlist(&mut self, key: u32) {
        if let Some((_, message)) = self.messages.get(key) {
            let place = message.place(key);
            self.pending.remove(&place);
            self.active.remove(&place);
        }
        self.timers.clear(key);
    }

    fn remove(&mut self, key: u32) {
        self.unlist(key);
        self.messages.remove(key);
    }

    pub fn deadline(&mut self, now: Time, params: &Params, control: &mut Control) {
        while let Some(index) = self.expected.expire(now) {
            let Some(&Held { id, flow, draining, .. }) = self.slots[index as usize].held.as_ref() else { continue };
            if !draining && let Some(key) = self.messages.slot(flow) {
                self.fail(now, key, params, control);
            } else if let Some(held) = self.release(id, flow) {
                self.counts.completes_missed += 1;
                self.free_path(&held, params, control);
            }
        }
        while let Some(key) = self.timers.expire(now) {
            let Some((_, message)) = self.messages.get(key) else { continue };
            match message.state {
                State::Pending => {
                    let until = params.admits_until(message.arrived);
                    if now < until {
                        self.timers.set(key, until);
                    }
                    self.reconsider(now, key, params, control);
                }
                State::Active => {}
                State::Lost => self.not_asked_again(now, key, params, control),
            }
        }
        self.assign(now, params, control);
    }

    /// A message has come whole in time that is skipped.
    pub fn came_again(&mut self, flow: FlowId) {
        self.finished.add(flow);
    }

    /// Whether it holds no state of any message.
    pub fn is_idle(&self) -> bool {
        self.messages.is_empty() && self.free.len() == self.slots.len()
    }

    pub fn next_deadline(&self) -> Time {
        self.timers.next().into_iter().chain(self.expected.next()).min().unwrap_or(Time::MAX)
    }

    /// Puts messages in order by when they came.
    fn put_in_order(&mut self, walk: &mut Walk) {
        for list in [&mut self.pending, &mut self.active] {
            list.iter().for_each(|&(_, _, key)| walk.same(key));
            walk.same(list.len());
            let place = |key| self.messages.get(key).map(|(_, message)| message.place(key));
            *list = list.iter().filter_map(|&(_, _, key)| place(key)).collect();
        }
    }
}

/// A flow's slots, to read.
fn held_for_ref(slots: &[Slot], flow: FlowId) -> impl Iterator<Item = (u32, &Held)> {
    (0..)
        .zip(slots)
        .filter_map(move |(index, slot)| Some((index, slot.held.as_ref().filter(|held| held.flow == flow)?)))
}

/// A flow's slots.
fn held_for(slots: &mut [Slot], flow: FlowId) -> impl Iterator<Item = (u32, &mut Held)> {
    (0..)
        .zip(slots)
        .filter_map(move |(index, slot)| Some((index, slot.held.as_mut().filter(|held| held.flow == flow)?)))
}

#[cfg(test)]
mod tests;
