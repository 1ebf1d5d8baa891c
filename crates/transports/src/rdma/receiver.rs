use std::collections::VecDeque;

use node::packet::flags;
use node::{Cx, EndpointParams, Event, FlowMap, Packet, Telemetry};
use rustc_hash::FxHashMap;
use units::{Duration, FlowId, Time};

use super::control::{Cnp, Spaced};
use super::header::{Acknowledgement, Answer, Data, Header};
use super::outstanding::REACH;
use crate::finished::Finished;

/// The receiving half of a host's queue pairs: reassembly, acknowledgements and congestion notifications.
#[derive(node::State)]
#[state(unit(self.mss))]
pub(crate) struct Receiver {
    #[state(built("settings"))]
    settings: Settings,
    #[state(built("settings"))]
    site: EndpointParams,
    mss: u64,
    #[state(slots)]
    flows: FlowMap<Flow>,
    finished: Finished,
    answers: VecDeque<Packet>,
    /// Notifications, where they have a class of their own.
    notifications: VecDeque<Packet>,
    /// Until when no queue pair sends a notification, where they keep a least time between them together.
    #[state(expired)]
    notified: Time,
    /// Contents of acknowledgements that have not left, by flow and packet.
    #[state(each(((flow, sequence(1)), _)))]
    echoes: FxHashMap<(FlowId, u64), Telemetry>,
    pub counts: Counts,
}

/// A receiver's settings.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    /// What happens to out-of-order packets.
    pub order: Order,
    /// How marks are reported, if at all.
    pub cnp: Option<Cnp>,
    pub class: u8,
    /// The class of notifications in packets of their own.
    pub cnp_class: u8,
    /// Bytes of an acknowledgement with all that it carries.
    pub ack_bytes: u16,
}

/// What a receiver does with out-of-order packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// Discards them, and sends at most one NACK in each interval for the same missing packet (RoCE).
    Only { nack_interval: Duration },
    /// Keeps them, and reports each (IRN).
    Any,
}

/// What a receiver counts.
#[derive(Clone, Copy, Debug, Default, node::State)]
#[state(counts)]
pub(crate) struct Counts {
    pub acks: u64,
    pub nacks: u64,
    pub cnps: u64,
    pub out_of_order: u64,
    pub duplicates: u64,
    pub trimmed: u64,
    pub malformed: u64,
}

#[derive(node::State)]
struct Flow {
    bytes: u64,
    packets: u64,
    /// The expected packet: all before it have arrived.
    #[state(sequence)]
    next: u64,
    /// Packets after `next` that have arrived.
    ahead: VecDeque<bool>,
    /// Whether a mark has arrived that no acknowledgement has reported.
    marked: bool,
    /// The missing packet of the last NACK, and until when no other NACK is sent for it.
    #[state(each(when(item.1 > walk.now(), (sequence, _))))]
    nacked: Option<(u64, Time)>,
    /// Until when no notification is sent.
    #[state(expired)]
    notified: Time,
}

impl Receiver {
    pub fn new(settings: Settings, site: EndpointParams, mss: u64) -> Receiver {
        Receiver {
            settings,
            mss,
            site,
            flows: FlowMap::default(),
            finished: Finished::default(),
            answers: VecDeque::new(),
            notifications: VecDeque::new(),
            notified: Time::ZERO,
            echoes: FxHashMap::default(),
            counts: Counts::default(),
        }
    }

    /// The next answer to send.
    #[inline]
    pub fn poll_transmit(&mut self) -> Option<Packet> {
        self.answers.pop_front()
    }

    /// Whether a notification waits that has a class of its own.
    #[inline]
    pub fn notifies(&self) -> bool {
        !self.notifications.is_empty()
    }

    /// The first of these.
    pub fn poll_notification(&mut self) -> Option<Packet> {
        self.notifications.pop_front()
    }

    /// The telemetry that an acknowledgement leaves with.
    pub fn carries(&mut self, answer: &Packet) -> Telemetry {
        let (Header::Ack(ack) | Header::Nack(ack)) = answer.header() else { return Telemetry::default() };
        self.echoes.remove(&(answer.flow, ack.answer.packet)).unwrap_or_default()
    }

    /// A data packet has arrived, with its telemetry.
    pub fn receive(&mut self, cx: &mut Cx<'_>, packet: &Packet, data: Data, telemetry: Option<&Telemetry>) {
        if packet.has(flags::TRIMMED) {
            self.counts.trimmed += 1; // as good as lost
            return;
        }
        let bytes = data.bytes;
        let left = bytes.saturating_sub(data.sequence);
        let fits = data.sequence.is_multiple_of(self.mss) && u64::from(packet.payload_bytes) == left.min(self.mss);
        if left == 0 || !fits {
            self.counts.malformed += 1;
            return;
        }
        let slot = match self.flows.slot(packet.flow) {
            Some(slot) => slot,
            None if self.finished.knows(packet.flow) => {
                self.counts.duplicates += 1;
                self.counts.acks += 1;
                let answer = answer(packet, data, bytes);
                self.answer(packet, Header::Ack(Acknowledgement { answer, cnp: false }), None);
                return;
            }
            None => self.flows.insert(packet.flow, Flow::new(bytes, self.mss)),
        };
        let number = data.sequence / self.mss;
        let (_, flow) = self.flows.get_mut(slot).expect("just found");
        if bytes != flow.bytes || number >= flow.next.saturating_add(REACH) {
            self.counts.malformed += 1;
            return;
        }
        let place = flow.place(number, self.settings.order);
        let due = flow.due(place, cx.now, self.settings.order);
        let marked = packet.has(flags::CE);
        let notification = match self.settings.cnp {
            Some(Cnp::InAck) => {
                flow.marked |= marked;
                false
            }
            Some(Cnp::Packet { interval, spaced }) if marked => {
                let until = if spaced == Spaced::Receiver { &mut self.notified } else { &mut flow.notified };
                let due = cx.now >= *until;
                if due {
                    *until = cx.now + interval;
                }
                due
            }
            _ => false,
        };
        let cnp = due.is_some() && std::mem::take(&mut flow.marked);
        let answer = answer(packet, data, (flow.next * self.mss).min(bytes));
        if flow.next == flow.packets {
            cx.events.push(Event::Delivered { flow: packet.flow });
            self.flows.remove(slot);
            self.finished.add(packet.flow);
        }
        self.counts.duplicates += u64::from(place == Arrival::Again);
        self.counts.out_of_order += u64::from(place == Arrival::Ahead);
        self.counts.cnps += u64::from(notification || cnp);
        if notification {
            self.answer(packet, Header::Cnp(answer), None);
        }
        match due {
            Some(Due::Ack) => {
                self.counts.acks += 1;
                self.answer(packet, Header::Ack(Acknowledgement { answer, cnp }), telemetry);
            }
            Some(Due::Nack) => {
                self.counts.nacks += 1;
                self.answer(packet, Header::Nack(Acknowledgement { answer, cnp }), telemetry);
            }
            None => {}
        }
    }

    /// A flow has come whole in time that is skipped.
    pub fn came_again(&mut self, flow: FlowId) {
        self.finished.add(flow);
    }

    /// Answers a data packet, with what that has gathered.
    fn answer(&mut self, to: &Packet, header: Header, telemetry: Option<&Telemetry>) {
        let mut packet = self.site.control_packet(to.flow, to.src, header);
        packet.wire_bytes = self.settings.ack_bytes;
        let notifies = matches!(header, Header::Cnp(_));
        packet.class = if notifies { self.settings.cnp_class } else { self.settings.class };
        if let (Some(telemetry), Header::Ack(ack) | Header::Nack(ack)) = (telemetry, header) {
            packet.flags = flags::TELEMETRY;
            self.echoes.insert((to.flow, ack.answer.packet), telemetry.echo());
        }
        let apart = notifies && self.settings.cnp_class != self.settings.class;
        if apart { &mut self.notifications } else { &mut self.answers }.push_back(packet);
    }
}

/// What is said of a data packet when all before `sequence` is there.
fn answer(packet: &Packet, data: Data, sequence: u64) -> Answer {
    let virtual_delay_ns = (packet.tags() != [0, 0]).then_some(packet.virtual_delay_ns);
    Answer { sequence, packet: data.sequence, sent: data.sent, virtual_delay_ns }
}

/// How a data packet is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Due {
    Ack,
    Nack,
}

/// The position of an arriving packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Arrival {
    /// It is the expected one.
    Next,
    /// An earlier one is missing.
    Ahead,
    /// It has already arrived.
    Again,
}

impl Flow {
    fn new(bytes: u64, mss: u64) -> Flow {
        Flow {
            bytes,
            packets: bytes.div_ceil(mss),
            next: 0,
            ahead: VecDeque::new(),
            marked: false,
            nacked: None,
            notified: Time::ZERO,
        }
    }

    /// Accepts a packet, if it may.
    #[inline]
    fn place(&mut self, number: u64, order: Order) -> Arrival {
        if number < self.next {
            return Arrival::Again;
        }
        if number == self.next {
            self.next += 1;
            self.ahead.pop_front();
            while self.ahead.front() == Some(&true) {
                self.next += 1;
                self.ahead.pop_front();
            }
            return Arrival::Next;
        }
        if order == Order::Any {
            let place = (number - self.next) as usize;
            if self.ahead.len() <= place {
                self.ahead.resize(place + 1, false);
            }
            self.ahead[place] = true;
        }
        Arrival::Ahead
    }

    /// An acknowledgement to send.
    #[inline]
    fn due(&mut self, place: Arrival, now: Time, order: Order) -> Option<Due> {
        match (place, order) {
            (Arrival::Next | Arrival::Again, _) => Some(Due::Ack),
            (Arrival::Ahead, Order::Any) => Some(Due::Nack),
            (Arrival::Ahead, Order::Only { nack_interval }) => {
                let silent = self.nacked.is_some_and(|(missing, until)| missing == self.next && now < until);
                if silent {
                    return None;
                }
                self.nacked = Some((self.next, now + nack_interval));
                Some(Due::Nack)
            }
        }
    }
}
