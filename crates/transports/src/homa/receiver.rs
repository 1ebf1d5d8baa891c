//! The receiver's side (sections 3.3 to 3.7). It grants packets to a few messages at a time, those with the fewest
//! bytes missing, and sets their priority; requests packets that must have been lost; and measures its traffic.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use node::packet::flags;
use node::{Cx, Event, FlowMap, FlowState, Packet, Timers, Walk};
use units::{FlowId, HostId, Time};

use super::Header;
use super::header::{Announced, Answer, Data, Granted};
use super::params::Params;
use super::traffic::{Levels, Traffic};
use crate::bits::Bits;
use crate::finished::Finished;
use crate::srpt::visit_order;

#[derive(node::State)]
#[state(given(Params), last(self.put_in_order(walk, given)))]
pub(super) struct Receiver {
    #[state(slots)]
    flows: FlowMap<Incoming>,
    /// By sender: its messages that need grants, by missing bytes.
    #[state(skip("they follow from the flows: see `put_in_order`"))]
    peers: BTreeMap<HostId, BTreeSet<(u64, u64, u32)>>,
    /// For each sender the message with the fewest missing bytes, in the same order.
    #[state(skip("it follows from the flows: see `put_in_order`"))]
    order: BTreeSet<(u64, u64, u32)>,
    /// Messages that have been learnt of.
    #[state(skip("only the order counts: see `put_in_order`"))]
    arrivals: u64,
    finished: Finished,
    /// One timer for each message with packets in flight.
    #[state(slots)]
    timers: Timers,
    traffic: Traffic,
    /// Aeolus: probes to be answered, and when: packets that they have overtaken on other paths have arrived by then.
    probes: VecDeque<(Time, FlowId)>,
    /// Scheduled packets in flight, of all messages.
    scheduled: u32,
    /// Messages that have got grants in this turn.
    #[state(built("it is empty between events"))]
    active: Vec<u32>,
    pub counts: Counts,
}

/// Counters for the result.
#[derive(Default, node::State)]
#[state(counts)]
pub(super) struct Counts {
    pub grants: u64,
    pub resends: u64,
    pub duplicates: u64,
}

/// An incomplete message.
#[derive(node::State)]
#[state(given(Params))]
#[state(first(walk.same(self.listed.is_some())))]
#[state(first(walk.sequence(walk.flow, walk.unit, &mut (self.received.count + given.rtt_packets))))]
#[state(first(walk.sequence(walk.flow, walk.unit, &mut (self.base + self.allowed))))]
struct Incoming {
    src: HostId,
    /// Of equal messages the first to come goes first.
    #[state(skip("only the order counts: see `put_in_order`"))]
    arrival: u64,
    bytes: u64,
    packets: u32,
    /// Number of packets that its sender sends without grants.
    unscheduled: u32,
    /// Number of these that have not been given up.
    base: u32,
    /// Total number of scheduled packets granted.
    #[state(steps)]
    allowed: u32,
    received: Bits,
    /// The last class of its scheduled packets.
    class: u8,
    probed: bool,
    /// Its contribution to [`Receiver::scheduled`].
    counted: u32,
    /// Its key among the messages of its sender that need grants.
    #[state(anew(self.listed.map(|_| self.bytes_missing(given))))]
    listed: Option<u64>,
}

impl Incoming {
    /// Packets that were sent without grants or granted, and have not arrived.
    fn in_flight(&self) -> u32 {
        (self.base + self.allowed).saturating_sub(self.received.count)
    }

    /// Packets that still need grants.
    fn ungranted(&self) -> u32 {
        self.packets.saturating_sub(self.base + self.allowed)
    }

    fn granted(&self) -> Granted {
        Granted { class: self.class, allowed: self.allowed }
    }

    fn scheduled(&self) -> u32 {
        self.in_flight().min(self.allowed)
    }

    fn bytes_missing(&self, params: &Params) -> u64 {
        self.bytes.saturating_sub(params.bytes(self.received.count))
    }
}

impl Receiver {
    pub fn new(params: &Params) -> Receiver {
        Receiver {
            flows: FlowMap::default(),
            peers: BTreeMap::new(),
            order: BTreeSet::new(),
            arrivals: 0,
            finished: Finished::default(),
            timers: Timers::default(),
            traffic: params.traffic(),
            probes: VecDeque::new(),
            scheduled: 0,
            active: Vec::new(),
            counts: Counts::default(),
        }
    }

    /// What a message has here: in flight is what was sent without grants or granted, and has not come.
    pub fn state(&self, flow: FlowId, params: &Params, say: &mut FlowState) {
        let Some(incoming) = self.flows.of(flow) else { return };
        say.outstanding_bytes(params.bytes(incoming.in_flight()));
        say.say("ungranted_bytes", params.bytes(incoming.ungranted()));
    }

    /// The division of levels by its own traffic.
    pub fn levels(&self) -> Levels {
        self.traffic.levels()
    }

    /// A packet from a sender.
    pub fn receive(
        &mut self,
        cx: &mut Cx<'_>,
        packet: &Packet,
        header: Header,
        params: &Params,
        control: &mut VecDeque<Packet>,
    ) {
        if packet.has(flags::TRIMMED) {
            return; // its payload is lost as any other
        }
        if self.finished.knows(packet.flow) {
            self.counts.duplicates += u64::from(packet.payload_bytes > 0);
            control.push_back(self.answer(packet.flow, packet.src, Answer::Done, params));
            return;
        }
        let known = self.flows.slot(packet.flow);
        let slot = match known {
            Some(slot) => slot,
            None => match header {
                Header::Unscheduled(Data { message, .. }) | Header::Probe(message) if message.length > 0 => {
                    self.learn(packet, message, params)
                }
                _ => return,
            },
        };
        let (_, flow) = self.flows.get(slot).expect("just found");
        if flow.src != packet.src {
            return;
        }
        match header {
            Header::Unscheduled(Data { offset, .. }) | Header::Scheduled(Data { offset, .. }) => {
                let scheduled = matches!(header, Header::Scheduled(_));
                if self.data(cx, slot, offset, scheduled, params, control) {
                    return;
                }
                self.arm(slot, cx.now, params);
            }
            Header::Probe(_) if params.aeolus.is_some() => {
                self.probes.push_back((cx.now + params.probe_lag(), packet.flow))
            }
            // A probe is no answer: the wait for missing packets does not restart.
            Header::Probe(_) => {
                if known.is_none() {
                    self.ask_again(slot, params, control);
                    self.arm(slot, cx.now, params);
                }
                self.tell(slot, Answer::Grant, params, control);
            }
            Header::Busy | Header::Answer { .. } => self.arm(slot, cx.now, params),
        }
        self.list(slot, params);
        self.grant(cx.now, params, control);
    }

    fn learn(&mut self, packet: &Packet, message: Announced, params: &Params) -> u32 {
        let packets = params.packets(message.length);
        let unscheduled = u32::from(message.unscheduled).min(packets);
        self.note(message.length, packets, unscheduled, params);
        self.arrivals += 1;
        let flow = Incoming {
            src: packet.src,
            arrival: self.arrivals,
            bytes: message.length,
            packets,
            unscheduled,
            base: unscheduled,
            allowed: 0,
            received: Bits::default(),
            class: params.lowest_class(),
            probed: false,
            counted: 0,
            listed: None,
        };
        self.flows.insert(packet.flow, flow)
    }

    /// Counts the bytes that a message brings at unscheduled levels.
    fn note(&mut self, bytes: u64, packets: u32, unscheduled: u32, params: &Params) {
        let first = bytes.min(params.bytes(unscheduled));
        if !params.graduated {
            self.traffic.saw(bytes, [(bytes, first)]);
            return;
        }
        // Each packet counts like a message with its remaining bytes; so do the last RTTbytes.
        let last = packets.saturating_sub(params.rtt_packets).max(unscheduled);
        let left = |packet: u32| bytes - params.bytes(packet);
        let each = (0..unscheduled).chain(last..packets);
        self.traffic.saw(bytes, each.map(|packet| (left(packet), left(packet).min(params.bytes(1)))));
    }

    /// Handles a part of a message. Returns whether the message is complete now.
    fn data(
        &mut self,
        cx: &mut Cx<'_>,
        slot: u32,
        offset: u64,
        scheduled: bool,
        params: &Params,
        control: &mut VecDeque<Packet>,
    ) -> bool {
        let (id, flow) = self.flows.get_mut(slot).expect("the caller has it");
        let number = offset / u64::from(params.site.payload_max());
        if number >= u64::from(flow.unscheduled.saturating_add(flow.allowed).min(flow.packets)) {
            return false; // nobody asked for it
        }
        if !flow.received.insert(number as u32) {
            self.counts.duplicates += 1;
            if params.aeolus.is_some() && scheduled {
                // A packet taken for lost has arrived twice, and has used another packet's grant.
                flow.base = flow.base.saturating_sub(1);
            }
        }
        let src = flow.src;
        if flow.received.count == flow.packets {
            self.complete(cx, slot, params, control);
            return true;
        }
        if params.aeolus.is_some() && !scheduled {
            control.push_back(self.answer(id, src, Answer::Ack { offset }, params));
        }
        false
    }

    /// Aeolus: packets that were sent before the probe and have not arrived are lost, and need grants like new packets.
    fn settle(&mut self, slot: u32, now: Time, params: &Params, control: &mut VecDeque<Packet>) {
        let (_, flow) = self.flows.get_mut(slot).expect("the caller has it");
        if !flow.probed {
            flow.probed = true;
            let lost = (0..flow.unscheduled).filter(|&number| flow.received.next_missing(number) == number).count();
            flow.base -= lost as u32;
        }
        self.tell(slot, Answer::Probed, params, control);
        if self.timers.get(slot).is_none() {
            self.arm(slot, now, params);
        }
        self.list(slot, params);
        self.grant(now, params, control);
    }

    /// Tells a sender the grants of its message.
    fn tell(&self, slot: u32, how: fn(Granted) -> Answer, params: &Params, control: &mut VecDeque<Packet>) {
        let (id, flow) = self.flows.get(slot).expect("the caller has it");
        control.push_back(self.answer(id, flow.src, how(flow.granted()), params));
    }

    fn complete(&mut self, cx: &mut Cx<'_>, slot: u32, params: &Params, control: &mut VecDeque<Packet>) {
        let (id, flow) = self.flows.get_mut(slot).expect("the caller has it");
        let src = flow.src;
        (flow.base, flow.allowed) = (flow.packets, 0);
        self.list(slot, params);
        self.flows.remove(slot);
        self.timers.clear(slot);
        self.finished.add(id);
        cx.events.push(Event::Delivered { flow: id });
        control.push_back(self.answer(id, src, Answer::Done, params));
        self.grant(cx.now, params, control);
    }

    /// Updates a message's place among those that need grants, and the count of packets in flight.
    fn list(&mut self, slot: u32, params: &Params) {
        let (_, flow) = self.flows.get_mut(slot).expect("the caller has it");
        self.scheduled = self.scheduled - flow.counted + flow.scheduled();
        flow.counted = flow.scheduled();
        let key = (flow.ungranted() > 0).then(|| flow.bytes_missing(params));
        if key == flow.listed {
            return;
        }
        let peer = self.peers.entry(flow.src).or_default();
        let best = peer.first().copied();
        if let Some(before) = flow.listed {
            peer.remove(&(before, flow.arrival, slot));
        }
        peer.extend(key.map(|key| (key, flow.arrival, slot)));
        flow.listed = key;
        let now_best = peer.first().copied();
        if best != now_best {
            if let Some(best) = best {
                self.order.remove(&best);
            }
            self.order.extend(now_best);
        }
        if now_best.is_none() {
            self.peers.remove(&flow.src);
        }
    }

    /// Sections 3.3 to 3.5: grants so that RTTbytes are in flight for each of the messages with the fewest missing
    /// bytes, one of each sender and as many as the degree of overcommitment.
    fn grant(&mut self, now: Time, params: &Params, control: &mut VecDeque<Packet>) {
        let levels = self.traffic.levels();
        let degree = params.overcommitment(&levels);
        let most = params.scheduled_max(degree);
        let mut room = true;
        while room {
            room = false;
            let mut active = std::mem::take(&mut self.active);
            active.clear();
            active.extend(self.order.iter().take(degree).map(|&(_, _, slot)| slot));
            for (rank, &slot) in active.iter().enumerate() {
                let (id, flow) = self.flows.get_mut(slot).expect("a listed message is known");
                let target = flow.packets.min(flow.received.count.saturating_add(params.rtt_packets));
                let more = target.saturating_sub(flow.base + flow.allowed).min(most.saturating_sub(self.scheduled));
                if more == 0 {
                    continue;
                }
                let ungranted = flow.bytes.saturating_sub(params.bytes(flow.base + flow.allowed));
                flow.allowed += more;
                flow.class = params.scheduled_class(&levels, rank, active.len());
                if params.graduated && ungranted <= params.bytes(params.rtt_packets) {
                    flow.class = flow.class.min(params.unscheduled_class(&levels, ungranted));
                }
                // A fully granted message makes room for another.
                room |= flow.ungranted() == 0;
                let (src, grant) = (flow.src, Answer::Grant(flow.granted()));
                control.push_back(self.answer(id, src, grant, params));
                self.counts.grants += 1;
                self.list(slot, params);
                self.arm(slot, now, params);
            }
            self.active = active;
        }
    }

    /// Starts a timer only if packets are in flight.
    fn arm(&mut self, slot: u32, now: Time, params: &Params) {
        match self.flows.get(slot) {
            Some((_, flow)) if flow.in_flight() > 0 => self.timers.set(slot, now + params.resend_after),
            _ => self.timers.clear(slot),
        }
    }

    /// Section 3.7: requests packets that must be lost, one packet for each gap.
    fn ask_again(&mut self, slot: u32, params: &Params, control: &mut VecDeque<Packet>) {
        let (id, flow) = self.flows.get(slot).expect("the caller has it");
        let levels = self.traffic.levels();
        let short = flow.packets <= flow.unscheduled;
        let class = if short { params.unscheduled_class(&levels, flow.bytes) } else { flow.class };
        let (src, granted) = (flow.src, Granted { class, ..flow.granted() });
        let mut left = flow.in_flight();
        let mut gaps: Vec<(u32, u32)> = Vec::new();
        let mut number = 0;
        while left > 0 {
            number = flow.received.next_missing(number);
            match gaps.last_mut() {
                Some((_, end)) if *end == number => *end += 1,
                _ => gaps.push((number, number + 1)),
            }
            (number, left) = (number + 1, left - 1);
        }
        for (first, end) in gaps {
            let resend = Answer::Resend { granted, offset: params.bytes(first), length: params.bytes(end - first) };
            control.push_back(self.answer(id, src, resend, params));
            self.counts.resends += 1;
        }
    }

    /// Answers probes, and requests packets that should have arrived by now.
    pub fn deadline(&mut self, now: Time, params: &Params, control: &mut VecDeque<Packet>) {
        while let Some(&(at, flow)) = self.probes.front()
            && at <= now
        {
            self.probes.pop_front();
            if let Some(slot) = self.flows.slot(flow) {
                self.settle(slot, now, params, control);
            }
        }
        while let Some(slot) = self.timers.expire(now) {
            if self.flows.get(slot).is_some() {
                self.ask_again(slot, params, control);
                self.arm(slot, now, params);
            }
        }
    }

    /// A message has come whole in time that is skipped.
    pub fn came_again(&mut self, flow: FlowId) {
        self.finished.add(flow);
    }

    pub fn next_deadline(&self) -> Time {
        let probe = self.probes.front().map_or(Time::MAX, |probe| probe.0);
        self.timers.next().unwrap_or(Time::MAX).min(probe)
    }

    /// A packet to a sender, which also carries this receiver's levels (section 3.4).
    fn answer(&self, flow: FlowId, to: HostId, of: Answer, params: &Params) -> Packet {
        let levels = params.tells().then(|| self.traffic.levels());
        params.control(flow, to, Header::Answer { levels, of })
    }

    /// Puts flows in order by what is missing of them now.
    fn put_in_order(&mut self, walk: &mut Walk, params: &Params) {
        visit_order(walk, self.flows.iter().map(|(flow, of)| (of.bytes_missing(params), of.arrival, flow)));
        let flows = &self.flows;
        let known = |&(_, arrival, slot): &(u64, u64, u32)| {
            flows.get(slot).and_then(|(_, incoming)| Some((incoming.listed?, arrival, slot)))
        };
        for (host, messages) in &mut self.peers {
            walk.same((*host, messages.len()));
            *messages = messages.iter().filter_map(known).collect();
        }
        self.order = self.order.iter().filter_map(known).collect();
        self.order.iter().for_each(|(_, _, slot)| walk.same(walk.slots.place(*slot)));
        walk.same(self.order.len());
    }
}
