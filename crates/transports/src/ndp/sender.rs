//! The sender's side (sections 3.2 and 3.2.4): a first window at once, then as many packets as pulled, trimmed packets
//! first.

use std::collections::{BTreeMap, VecDeque};

use node::{Cx, Event, FlowMap, FlowState, Message, Packet, Timers};
use units::{Duration, FlowId, HostId, Time};

use super::Header;
use super::header::{Answer, Data};
use super::params::{DATA, Params};
use super::paths::{Order, Outcome, PathId, Paths};
use crate::bits::Bits;

/// A message is silent when everything sent has been answered and the promised pulls do not arrive: its last pulls are
/// lost. In a large incast pulls take long, so a sender sends a packet without a pull only after many timeouts.
const PATIENCE: u32 = 16;
/// A timeout without any answer doubles, up to this many times.
const BACKOFF_MAX: u32 = 8;
/// Number of last answers that decide whether "most packets recently were ACKed".
const RECENT: u32 = 16;

#[derive(Default, node::State)]
pub(super) struct Sender {
    flows: FlowMap<Outgoing>,
    ready: Ready,
    /// One timer for each flow: for the oldest packet in flight, or the missing pull.
    timers: Timers,
    pub counts: Counts,
}

/// Counters for the result.
#[derive(Default, node::State)]
#[state(counts)]
pub(super) struct Counts {
    pub returned: u64,
    pub returned_resent: u64,
    pub timeouts: u64,
    pub pulls_missed: u64,
}

/// Flows that may send. They take turns packet by packet. With [`super::Departure::InOrder`] a flow is listed once for
/// each permission to send more, and retransmissions come first.
#[derive(Default, node::State)]
struct Ready {
    ahead: VecDeque<QueuePosition>,
    queue: VecDeque<QueuePosition>,
}

/// A flow's place in the sending order, and its number of packets.
#[derive(node::State)]
struct QueuePosition {
    flow: FlowId,
    slot: u32,
    packets: u32,
}

impl Ready {
    /// The flow that sends the next packet.
    fn next(&mut self) -> Option<(FlowId, u32)> {
        let queue = if self.ahead.is_empty() { &mut self.queue } else { &mut self.ahead };
        let first = queue.front_mut()?;
        first.packets -= 1;
        let next = (first.flow, first.slot);
        if first.packets == 0 {
            queue.pop_front();
        }
        Some(next)
    }
}

#[derive(node::State)]
struct Outgoing {
    dst: HostId,
    class: u16,
    bytes: u64,
    packets: u32,
    /// The first packet that has not been sent.
    #[state(position)]
    next: u32,
    /// Packets to be sent again.
    #[state(each((sequence, _)))]
    again: BTreeMap<u32, Retransmission>,
    /// Number of packets that may be sent now: first window, pulled packets, and those without pulls.
    credit: u32,
    /// The highest pull counter seen.
    #[state(steps)]
    pulled: u32,
    /// Number of answers so far that stand for a pull.
    #[state(steps)]
    answered: u32,
    /// A packet marked as the last has been ACKed: packets that come whole from then on cause no pulls.
    ended: bool,
    /// Packets in flight without an answer, oldest first.
    in_flight: VecDeque<Sent>,
    acked: Bits,
    #[state(count_of)]
    sent_packets: u64,
    /// The last answers as bits, set for an ACK, and their number.
    recent: (u32, u32),
    /// When something was last received or sent, and number of timeouts since.
    heard_at: Time,
    timeouts: u32,
    /// Number of packets with a place in the sending order.
    listed: u32,
}

/// A packet to be sent again.
#[derive(node::State)]
struct Retransmission {
    /// Whether it was trimmed, so that a pull will arrive for it.
    trimmed: bool,
    avoid: Option<PathId>,
}

/// A packet in flight.
#[derive(node::State)]
struct Sent {
    #[state(sequence)]
    packet: u32,
    path: Option<PathId>,
    last: bool,
    at: Time,
}

impl Outgoing {
    fn has_work(&self) -> bool {
        !self.again.is_empty() || self.next < self.packets
    }

    /// Number of packets left to send.
    fn work(&self) -> u32 {
        self.again.len() as u32 + (self.packets - self.next)
    }

    fn may_send(&self) -> bool {
        self.credit > 0 && self.has_work()
    }

    /// Number of pulls still expected: packets ACKed or NACKed and not yet pulled.
    fn expected(&self) -> u32 {
        self.answered.saturating_sub(self.pulled)
    }

    fn note(&mut self, ack: bool) {
        let (bits, known) = self.recent;
        self.recent = (bits << 1 | u32::from(ack), (known + 1).min(RECENT));
    }

    /// Whether most packets recently were ACKed.
    fn mostly_acked(&self) -> bool {
        let (bits, known) = self.recent;
        2 * (bits & ((1 << RECENT) - 1)).count_ones() > known
    }

    /// A packet is no longer in flight.
    fn land(&mut self, packet: u32) -> Option<Sent> {
        let at = self.in_flight.iter().position(|sent| sent.packet == packet)?;
        self.in_flight.remove(at)
    }

    /// All packets below `acked` have arrived.
    fn ack_below(&mut self, acked: u32) {
        while self.acked.first_missing < acked.min(self.packets) {
            let packet = self.acked.first_missing;
            self.acked.insert(packet);
            self.again.remove(&packet);
            self.land(packet);
        }
    }

    /// If neither an answer nor a pull is expected and packets are left, one is sent without a pull: the pull clock
    /// must not stop.
    fn keep_going(&mut self) -> bool {
        let stuck = self.credit == 0 && self.in_flight.is_empty() && self.expected() == 0 && self.has_work();
        self.credit += u32::from(stuck);
        stuck
    }

    fn timeout(&self, params: &Params) -> Option<Time> {
        let times = 1u64 << self.timeouts.min(BACKOFF_MAX);
        let wait: Duration = params.rto * times;
        match self.in_flight.front() {
            Some(oldest) => Some(oldest.at + wait),
            None if self.may_send() => None,
            None => Some(self.heard_at + wait * u64::from(PATIENCE)),
        }
    }
}

impl Sender {
    /// What a flow has here: packets that it may send, and in flight full packets without an answer.
    pub fn state(&self, flow: FlowId, params: &Params, say: &mut FlowState) {
        let Some(Outgoing { credit, in_flight, .. }) = self.flows.of(flow) else { return };
        say.say("credit_packets", u64::from(*credit));
        say.outstanding_bytes(in_flight.len() as u64 * u64::from(params.site.payload_max()));
    }

    /// A message to send.
    pub fn start(&mut self, now: Time, message: &Message, params: &Params) {
        let packets = params.packets(message.bytes);
        let slot = self.flows.insert(
            message.flow,
            Outgoing {
                dst: message.dst,
                class: if params.by_class { message.class } else { 0 },
                bytes: message.bytes,
                packets,
                next: 0,
                again: BTreeMap::new(),
                credit: params.window.min(packets),
                pulled: 0,
                answered: 0,
                ended: false,
                in_flight: VecDeque::new(),
                acked: Bits::default(),
                sent_packets: 0,
                recent: (0, 0),
                heard_at: now,
                timeouts: 0,
                listed: 0,
            },
        );
        self.settle(slot, params);
    }

    /// A control packet from a receiver.
    pub fn hear(
        &mut self,
        cx: &mut Cx<'_>,
        packet: &Packet,
        header: Header,
        params: &Params,
        mut paths: Option<&mut Paths>,
    ) {
        let (Header::Ack(Answer { progress, .. }) | Header::Nack(Answer { progress, .. }) | Header::Pull(progress)) =
            header
        else {
            return;
        };
        let Some(slot) = self.flows.slot(packet.flow) else { return };
        let (_, flow) = self.flows.get_mut(slot).expect("just found");
        if flow.dst != packet.src {
            return;
        }
        (flow.heard_at, flow.timeouts) = (cx.now, 0);
        // Cumulative, so lost and late pulls do no harm (section 3.2.1).
        let more = progress.pull.saturating_sub(flow.pulled);
        flow.pulled += more;
        flow.credit += more;
        let mut count = |dst, sent: &Sent, outcome| {
            if let (Some(paths), Some(path)) = (&mut paths, sent.path) {
                paths.count(dst, path, outcome);
            }
        };
        match header {
            Header::Ack(Answer { packet: number, .. }) if number < flow.packets => {
                flow.note(true);
                flow.answered += u32::from(!flow.ended);
                flow.again.remove(&number);
                flow.acked.insert(number);
                if let Some(sent) = flow.land(number) {
                    count(packet.src, &sent, Outcome::Acked);
                    if sent.last && params.mark_ends_pulls {
                        // Its receiver has removed its pulls for this flow, except for packets known to be trimmed.
                        flow.ended = true;
                        let trimmed = flow.again.values().filter(|again| again.trimmed).count() as u32;
                        flow.answered = flow.pulled + trimmed.saturating_sub(flow.credit);
                    }
                }
            }
            Header::Nack(Answer { packet: number, .. }) if number < flow.packets => {
                flow.note(false);
                flow.answered += 1;
                if let Some(sent) = flow.land(number) {
                    count(packet.src, &sent, Outcome::Nacked);
                    flow.again.insert(number, Retransmission { trimmed: true, avoid: None });
                }
            }
            _ => {}
        }
        flow.ack_below(progress.acked);
        if flow.acked.count == flow.packets {
            let (sent_packets, resent_packets) = (flow.sent_packets, flow.sent_packets - u64::from(flow.next));
            self.timers.clear(slot);
            self.flows.remove(slot);
            cx.events.push(Event::Completed { flow: packet.flow, sent_packets, resent_packets });
            return;
        }
        flow.keep_going();
        self.settle(slot, params);
    }

    /// A packet of ours that a switch has sent back (section 3.2.4). It is sent again at once if no pull is to come for
    /// anything, or if most packets get through, so that it is a matter of its path; otherwise it waits for a pull, and
    /// the window is smaller by one.
    pub fn returned(&mut self, now: Time, packet: &Packet, number: u32, params: &Params, paths: Option<&mut Paths>) {
        let Some(slot) = self.flows.slot(packet.flow) else { return };
        let (_, flow) = self.flows.get_mut(slot).expect("just found");
        // The switch has swapped the addresses.
        let Some(sent) = flow.land(number).filter(|_| flow.dst == packet.src) else { return };
        self.counts.returned += 1;
        (flow.heard_at, flow.timeouts) = (now, 0);
        if let (Some(paths), Some(path)) = (paths, sent.path) {
            paths.count(flow.dst, path, Outcome::Nacked);
        }
        flow.note(false);
        flow.again.insert(number, Retransmission { trimmed: false, avoid: sent.path });
        if flow.mostly_acked() {
            flow.credit += 1;
            self.counts.returned_resent += 1;
        } else {
            self.counts.returned_resent += u64::from(flow.keep_going());
        }
        self.settle(slot, params);
    }

    /// The next data packet for the NIC.
    pub fn poll_data(&mut self, cx: &mut Cx<'_>, params: &Params, paths: Option<&mut Paths>) -> Option<Packet> {
        while let Some((id, slot)) = self.ready.next() {
            // The slot of a flow that has ended may belong to another flow by now.
            let Some((_, flow)) = self.flows.get_mut(slot).filter(|known| known.0 == id) else { continue };
            flow.listed -= 1;
            if flow.may_send() {
                let packet = Self::data(cx, id, flow, params, paths);
                self.settle(slot, params);
                return Some(packet);
            }
        }
        None
    }

    fn data(cx: &mut Cx<'_>, id: FlowId, flow: &mut Outgoing, params: &Params, paths: Option<&mut Paths>) -> Packet {
        let (number, avoid) = match flow.again.pop_first() {
            Some((number, again)) => (number, again.avoid),
            None => {
                flow.next += 1;
                (flow.next - 1, None)
            }
        };
        flow.credit -= 1;
        let offset = u64::from(number) * u64::from(params.site.payload_max());
        let payload = (flow.bytes - offset).min(u64::from(params.site.payload_max())) as u16;
        let last = !flow.has_work();
        let (class, message_bytes) = (flow.class, flow.bytes);
        let data = Data { packet: number, class, message_bytes, offset, last, returned: false };
        let mut packet = params.site.data_packet(id, flow.dst, Header::Data(data), payload);
        packet.class = DATA;
        let path = paths.and_then(|paths| paths.route(&mut packet, Order::Data, avoid, cx.random));
        flow.sent_packets += 1;
        flow.heard_at = cx.now;
        flow.in_flight.push_back(Sent { packet: number, path, last, at: cx.now });
        packet
    }

    /// A packet without ACK, NACK or return is lost and is sent again without a pull, since it caused none.
    pub fn deadline(&mut self, now: Time, params: &Params, mut paths: Option<&mut Paths>) {
        while let Some(slot) = self.timers.expire(now) {
            let Some((_, flow)) = self.flows.get_mut(slot) else { continue };
            let wait = params.rto * (1u64 << flow.timeouts.min(BACKOFF_MAX));
            let mut lost = 0;
            while flow.in_flight.front().is_some_and(|sent| sent.at + wait <= now)
                && let Some(sent) = flow.in_flight.pop_front()
            {
                if let (Some(paths), Some(path)) = (&mut paths, sent.path) {
                    paths.count(flow.dst, path, Outcome::Lost);
                }
                flow.again.insert(sent.packet, Retransmission { trimmed: false, avoid: sent.path });
                lost += 1;
            }
            if lost == 0 && flow.in_flight.is_empty() && flow.credit == 0 && flow.has_work() {
                self.counts.pulls_missed += 1;
                lost = 1;
            } else {
                self.counts.timeouts += u64::from(lost);
            }
            flow.credit += lost;
            flow.timeouts += u32::from(lost > 0);
            self.settle(slot, params);
        }
    }

    /// Lists a flow that may send, and sets its timer.
    fn settle(&mut self, slot: u32, params: &Params) {
        let (id, flow) = self.flows.get_mut(slot).expect("the caller has it");
        let places = if params.in_order { flow.credit.min(flow.work()) } else { u32::from(flow.may_send()) };
        if places > flow.listed {
            let place = QueuePosition { flow: id, slot, packets: places - flow.listed };
            flow.listed = places;
            let ahead = params.in_order && !flow.again.is_empty();
            if ahead { &mut self.ready.ahead } else { &mut self.ready.queue }.push_back(place);
        }
        match flow.timeout(params) {
            Some(at) => self.timers.set(slot, at),
            None => self.timers.clear(slot),
        }
    }

    pub fn next_deadline(&self) -> Time {
        self.timers.next().unwrap_or(Time::MAX)
    }
}
