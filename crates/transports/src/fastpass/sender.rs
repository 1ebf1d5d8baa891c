//! The sender's side: asks for slots, sends in them, and asks the receiver if it hears nothing.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use node::packet::flags;
use node::{Cx, Event, FlowMap, FlowState, Message, Packet, Timers};
use units::{Duration, FlowId, HostId, Time};

use super::Header;
use super::header::{Allocation, Data, Request};
use super::params::{DATA, Params};

#[derive(Default, node::State)]
pub(super) struct Sender {
    flows: FlowMap<Outgoing>,
    /// One entry for each flow with slots: when its next packet is due.
    due: BinaryHeap<Reverse<(Time, u32, FlowId)>>,
    /// Flows whose next packet is due.
    ready: VecDeque<(u32, FlowId)>,
    timers: Timers,
    pub counts: Counts,
}

/// Counters for the result.
#[derive(Default, node::State)]
#[state(counts)]
pub(super) struct Counts {
    pub requests: u64,
    pub requests_again: u64,
    pub probes: u64,
    pub slots_missed: u64,
}

#[derive(node::State)]
#[state(come(u64::from(self.distinct) * walk.unit))]
struct Outgoing {
    dst: HostId,
    bytes: u64,
    packets: u32,
    phase: Phase,
    /// Number of requests for slots, modulo 2^16.
    attempt: u16,
    /// The first packet without a slot in this attempt.
    #[state(when(self.granted < self.packets, position))]
    granted: u32,
    #[state(each(given(&self.packets)))]
    grants: VecDeque<Grant>,
    #[state(count_of)]
    sent_packets: u64,
    /// The first packet that has never been sent.
    #[state(position)]
    distinct: u32,
    /// The first missing packet by the receiver's last report.
    #[state(passed)]
    missing: u32,
    /// Number of consecutive requests without an answer.
    silences: u32,
    give_up: Time,
}

#[derive(Clone, Copy, PartialEq, Eq, node::State)]
enum Phase {
    /// Waits for slots for all packets from `granted` on.
    Asking,
    /// Has slots for all packets, or has sent them and waits for the receiver.
    Granted,
}

/// Slots, and how many of them have been used.
#[derive(Clone, Copy, node::State)]
#[state(given(u32), first(let of_all = self.first + self.packets == *given))]
struct Grant {
    #[state(when(of_all, _, later(self.used, position)))]
    first: u32,
    packets: u32,
    #[state(when(of_all, later(self.first, position), _))]
    used: u32,
    #[state(past)]
    at: Time,
    stride: u64,
    path: u64,
}

/// A control packet to send: flow, destination and header.
pub(super) type Outbox = Vec<(FlowId, HostId, Header)>;

impl Sender {
    /// What a flow has: timeslots allocated and not used, and packets that wait for some.
    pub fn state(&self, flow: FlowId, say: &mut FlowState) {
        let Some(Outgoing { packets, granted, grants, .. }) = self.flows.of(flow) else { return };
        say.say("timeslots", grants.iter().map(|grant| u64::from(grant.packets - grant.used)).sum());
        say.say("unallocated_packets", u64::from(packets.saturating_sub(*granted)));
    }

    /// A message to send.
    pub fn start(&mut self, now: Time, message: &Message, params: &Params, out: &mut Outbox) {
        let flow = Outgoing {
            dst: message.dst,
            bytes: message.bytes,
            packets: params.packets(message.bytes),
            phase: Phase::Asking,
            attempt: 0,
            granted: 0,
            grants: VecDeque::new(),
            sent_packets: 0,
            distinct: 0,
            missing: 0,
            silences: 0,
            give_up: now + params.patience,
        };
        let slot = self.flows.insert(message.flow, flow);
        self.counts.requests += 1;
        self.ask(now, slot, 0, false, params, out);
    }

    /// Handles a message from the arbiter or a receiver about a flow.
    pub fn hear(
        &mut self,
        cx: &mut Cx<'_>,
        id: FlowId,
        from: HostId,
        header: Header,
        params: &Params,
        out: &mut Outbox,
    ) {
        let now = cx.now;
        let Some(slot) = self.flows.slot(id) else { return };
        let (_, flow) = self.flows.get_mut(slot).expect("just found");
        let (speaks, attempt) = match header {
            Header::Complete { attempt } | Header::State { attempt, .. } => (flow.dst, attempt),
            Header::Reject { attempt } | Header::Wait { attempt } => (params.arbiter, attempt),
            Header::Allocation(allocation) => (params.arbiter, allocation.attempt),
            Header::Request(_) | Header::Data(_) | Header::Probe { .. } => return,
        };
        if from != speaks {
            return;
        }
        if let Header::Complete { .. } = header {
            let (sent_packets, resent_packets) = (flow.sent_packets, flow.sent_packets - u64::from(flow.distinct));
            self.forget(slot);
            cx.events.push(Event::Completed { flow: id, sent_packets, resent_packets });
            return;
        }
        if attempt != flow.attempt {
            return;
        }
        match (header, flow.phase) {
            (Header::Allocation(allocation), Phase::Asking) => self.allocated(now, slot, allocation, params),
            (Header::Wait { .. }, Phase::Asking) => {
                flow.give_up = now + params.patience;
                flow.silences = 0;
                self.timers.set(slot, now + params.ask_again);
            }
            (Header::Reject { .. }, Phase::Asking) if !flow.is_admitted() => {
                self.forget(slot);
                cx.events.push(Event::Rejected { flow: id });
            }
            (Header::State { missing, .. }, Phase::Granted) if flow.grants.is_empty() && missing < flow.packets => {
                if missing > flow.missing {
                    flow.missing = missing;
                    flow.give_up = now + params.patience;
                }
                self.counts.requests_again += 1;
                self.ask(now, slot, missing, true, params, out);
            }
            _ => {}
        }
    }

    fn allocated(&mut self, now: Time, slot: u32, allocation: Allocation, params: &Params) {
        let Allocation { first, packets, stride, at, path, .. } = allocation;
        let (id, flow) = self.flows.get_mut(slot).expect("the caller has it");
        let end = u64::from(first) + u64::from(packets);
        if packets == 0 || first < flow.granted || end > u64::from(flow.packets) || stride == 0 {
            return;
        }
        flow.granted = end as u32;
        let grant = Grant { first, packets, used: 0, at, stride: u64::from(stride), path };
        let last = flow.granted == flow.packets;
        let (begins, ends) = (flow.due(&grant, 0, params), flow.due(&grant, grant.packets - 1, params));
        if begins < now {
            // The allocation has arrived too late: later slots are promised to others.
            self.counts.slots_missed += u64::from(packets);
            if last && flow.grants.is_empty() {
                // Late allocations mean too much control traffic: asking again at once would add to it.
                flow.granted = first;
                flow.silences += 1;
                self.timers.set(slot, flow.patient(now, params.ask_again));
                return;
            }
        } else {
            if flow.grants.is_empty() {
                self.due.push(Reverse((begins, slot, id)));
            }
            flow.grants.push_back(grant);
            flow.silences = 0;
            if flow.granted > flow.distinct {
                flow.give_up = ends.saturating_add(params.patience);
            }
        }
        if last {
            flow.phase = Phase::Granted;
            self.timers.clear(slot);
        } else {
            self.timers.set(slot, ends.max(now).saturating_add(params.ask_again));
        }
    }

    /// Asks for slots for the packets from `first` on.
    fn ask(&mut self, now: Time, slot: u32, first: u32, lost: bool, params: &Params, out: &mut Outbox) {
        let (id, flow) = self.flows.get_mut(slot).expect("the caller has it");
        flow.phase = Phase::Asking;
        flow.attempt = flow.attempt.wrapping_add(1);
        flow.granted = first;
        let (attempt, packets, admitted) = (flow.attempt, flow.packets - first, flow.is_admitted());
        let request = Request { attempt, first, packets, dst: flow.dst, admitted, lost };
        out.push((id, params.arbiter, Header::Request(request)));
        self.timers.set(slot, flow.patient(now, params.ask_again));
    }

    /// Asks again if there was no answer, or gives up.
    pub fn deadline(&mut self, now: Time, params: &Params, out: &mut Outbox, events: &mut Vec<Event>) {
        self.wake(now);
        while let Some(slot) = self.timers.expire(now) {
            let Some((id, flow)) = self.flows.get_mut(slot) else { continue };
            if now >= flow.give_up {
                let reason = match flow.phase {
                    Phase::Asking => "the arbiter did not answer",
                    Phase::Granted => "the receiver did not acknowledge anything new",
                };
                self.forget(slot);
                events.push(Event::Failed { flow: id, reason });
                continue;
            }
            flow.silences += 1;
            match flow.phase {
                Phase::Asking => {
                    let first = flow.granted;
                    self.counts.requests_again += 1;
                    self.ask(now, slot, first, false, params, out);
                }
                Phase::Granted => {
                    let header = Header::Probe { attempt: flow.attempt, packets: flow.packets };
                    out.push((id, flow.dst, header));
                    self.counts.probes += 1;
                    self.timers.set(slot, flow.patient(now, params.answer));
                }
            }
        }
    }

    /// Notes which packets have become due.
    pub fn wake(&mut self, now: Time) {
        while let Some(&Reverse((at, slot, id))) = self.due.peek() {
            if at > now {
                break;
            }
            self.due.pop();
            self.ready.push_back((slot, id));
        }
    }

    /// The next data packet for the NIC.
    pub fn poll_data(&mut self, now: Time, params: &Params) -> Option<Packet> {
        self.wake(now);
        loop {
            let (slot, entered) = self.ready.pop_front()?;
            let Some((id, flow)) = self.flows.get_mut(slot).filter(|(id, _)| *id == entered) else { continue };
            let Some(grant) = flow.grants.front_mut() else { continue };
            let (number, path) = (grant.first + grant.used, grant.path);
            grant.used += 1;
            if grant.used == grant.packets {
                flow.grants.pop_front();
            }
            match flow.grants.front() {
                Some(grant) => self.due.push(Reverse((flow.due(grant, grant.used, params), slot, id))),
                None if flow.phase == Phase::Granted => self.timers.set(slot, now + params.answer),
                None => {}
            }
            return Some(flow.data(id, number, path, params));
        }
    }

    pub fn next_deadline(&self) -> Time {
        let due = self.due.peek().map_or(Time::MAX, |Reverse((at, ..))| *at);
        self.timers.next().unwrap_or(Time::MAX).min(due)
    }

    fn forget(&mut self, slot: u32) {
        self.timers.clear(slot);
        self.flows.remove(slot);
    }
}

impl Outgoing {
    /// Whether parts of it have been sent or will be.
    fn is_admitted(&self) -> bool {
        self.distinct > 0 || !self.grants.is_empty()
    }

    /// When the packet with this index in a grant leaves.
    fn due(&self, grant: &Grant, place: u32, params: &Params) -> Time {
        let Grant { at, stride, .. } = *grant;
        let strides = params.slot_of(params.site.host, self.dst, stride, at, u64::from(place));
        let after = Duration::from_ps(params.slot.ps().saturating_mul(stride).saturating_mul(strides));
        params.true_time(at.saturating_add(after))
    }

    /// When to stop waiting for an answer that should come within `span`: longer each time, but no later than the flow
    /// is given up.
    fn patient(&self, now: Time, span: Duration) -> Time {
        (now + span * (1 << self.silences.min(6))).min(self.give_up.max(now))
    }

    fn data(&mut self, id: FlowId, number: u32, path: u64, params: &Params) -> Packet {
        let payload_max = u64::from(params.site.payload_max());
        let offset = u64::from(number) * payload_max;
        let (attempt, packets) = (self.attempt, self.packets);
        let header = Header::Data(Data { attempt, packet: number, packets, offset });
        let payload = (self.bytes - offset).min(payload_max) as u16;
        let mut packet = params.site.data_packet(id, self.dst, header, payload);
        // A slot holds a full packet. A shorter one would arrive at the next links too early.
        packet.wire_bytes = params.site.mtu_bytes;
        packet.class = DATA;
        packet.flags = flags::SOURCE_ROUTED;
        packet.label = path;
        self.sent_packets += 1;
        self.distinct = self.distinct.max(number + 1);
        packet
    }
}

#[cfg(test)]
mod tests;
