//! The sender's side: minimal rate control (section 4.3), and the flow with the least remaining first (section 4.2).

use node::{Cx, Event, FlowMap, FlowState, Message, Packet, Timers};
use units::{FlowId, HostId, Time};

use super::Header;
use super::header::{Ack, Data};
use super::params::Params;
use crate::bits::Bits;
use crate::srpt::visit_order;

#[derive(Default, node::State)]
#[state(last(visit_order(walk, self.flows.iter().map(|(flow, of)| (of.remaining, of.arrival, flow)))))]
pub(super) struct Sender {
    #[state(slots)]
    flows: FlowMap<Outgoing>,
    /// Flows that may send.
    #[state(slots)]
    ready: Vec<u32>,
    /// Messages that have been started.
    #[state(skip("only the order counts: see `visit_order`"))]
    arrivals: u64,
    /// One timer for each flow with packets in flight.
    #[state(slots)]
    timers: Timers,
    pub counts: Counts,
}

/// Counters for the result.
#[derive(Default, node::State)]
#[state(counts)]
pub(super) struct Counts {
    pub timeouts: u64,
    pub probes: u64,
}

#[derive(node::State)]
struct Outgoing {
    dst: HostId,
    /// Of equal flows the first to start goes first.
    #[state(skip("only the order counts: see `visit_order`"))]
    arrival: u64,
    bytes: u64,
    packets: u32,
    /// Message bytes without acknowledgement.
    #[state(rest(u64::from(self.acked.count) * walk.unit))]
    remaining: u64,
    acked: Bits,
    sent: Bits,
    #[state(count_of)]
    sent_packets: u64,
    /// Number of packets below it without acknowledgement that have been sent since the last timeout.
    #[state(position)]
    next: u32,
    on_the_way: u32,
    window: u32,
    threshold: u32,
    /// Above the threshold: acknowledgements counted towards the next packet of the window.
    credit: u32,
    /// Timeouts since the last acknowledgement.
    timeouts: u32,
    /// Whether a probe is to be sent.
    probe: bool,
    /// Whether it is in the list of ready flows.
    listed: bool,
}

impl Sender {
    /// What a flow has, in full packets.
    pub fn state(&self, flow: FlowId, params: &Params, say: &mut FlowState) {
        let Some(Outgoing { window, on_the_way, .. }) = self.flows.of(flow) else { return };
        let bytes = |packets: u32| u64::from(packets) * u64::from(params.site.payload_max());
        say.window_bytes(bytes(*window));
        say.outstanding_bytes(bytes(*on_the_way));
    }

    /// A message to send.
    pub fn start(&mut self, message: &Message, params: &Params) {
        self.arrivals += 1;
        let flow = Outgoing {
            dst: message.dst,
            arrival: self.arrivals,
            bytes: message.bytes,
            packets: params.packets(message.bytes),
            remaining: message.bytes,
            acked: Bits::default(),
            sent: Bits::default(),
            sent_packets: 0,
            next: 0,
            on_the_way: 0,
            window: params.window,
            threshold: u32::MAX,
            credit: 0,
            timeouts: 0,
            probe: false,
            listed: true,
        };
        let slot = self.flows.insert(message.flow, flow);
        self.ready.push(slot);
    }

    /// An acknowledgement.
    pub fn acknowledged(&mut self, cx: &mut Cx<'_>, packet: &Packet, ack: Ack, params: &Params) {
        let Some(slot) = self.flows.slot(packet.flow) else { return };
        let (_, flow) = self.flows.get_mut(slot).expect("just found");
        if flow.dst != packet.src || ack.acked > flow.packets {
            return;
        }
        let before = flow.acked.first_missing;
        (before..ack.acked).for_each(|number| flow.acknowledge(number, params));
        if let Some(number) = ack.packet.filter(|&number| number < flow.packets) {
            flow.acknowledge(number, params);
        }
        if flow.acked.count == flow.packets {
            let (sent_packets, distinct) = (flow.sent_packets, u64::from(flow.sent.count));
            self.timers.clear(slot);
            self.ready.retain(|&ready| ready != slot);
            self.flows.remove(slot);
            let resent_packets = sent_packets - distinct;
            cx.events.push(Event::Completed { flow: packet.flow, sent_packets, resent_packets });
            return;
        }
        // Section 4.3: a probing flow restarts slowly with the first acknowledgement.
        flow.probe = false;
        flow.timeouts = 0;
        if flow.acked.first_missing > before {
            flow.grow(params);
            self.timers.set(slot, cx.now + params.timeout);
        }
        if flow.on_the_way == 0 {
            // A packet that has not been sent can't be late.
            self.timers.clear(slot);
        }
        self.list(slot);
    }

    /// The next packet for the NIC: of the flow with the least remaining that may send.
    pub fn poll(&mut self, now: Time, params: &Params) -> Option<Packet> {
        let mut best: Option<(u64, u64, u32)> = None;
        let mut index = 0;
        while let Some(&slot) = self.ready.get(index) {
            let (_, flow) = self.flows.get_mut(slot).expect("a listed flow is known");
            if !flow.may_send(params) {
                flow.listed = false;
                self.ready.swap_remove(index);
                continue;
            }
            let key = (flow.remaining, flow.arrival, slot);
            best = Some(best.map_or(key, |best| best.min(key)));
            index += 1;
        }
        let (_, _, slot) = best?;
        let (id, flow) = self.flows.get_mut(slot).expect("just seen");
        let idle = self.timers.get(slot).is_none();
        self.counts.probes += u64::from(flow.probe);
        let packet = flow.send(id, params);
        if idle {
            self.timers.set(slot, now + params.timeout);
        }
        Some(packet)
    }

    /// Timers that have run out.
    pub fn deadline(&mut self, now: Time, params: &Params) {
        while let Some(slot) = self.timers.expire(now) {
            let Some((_, flow)) = self.flows.get_mut(slot) else { continue };
            self.counts.timeouts += 1;
            flow.time_out(params);
            self.list(slot);
        }
    }

    pub fn next_deadline(&self) -> Option<Time> {
        self.timers.next()
    }

    fn list(&mut self, slot: u32) {
        let (_, flow) = self.flows.get_mut(slot).expect("the caller has it");
        if !std::mem::replace(&mut flow.listed, true) {
            self.ready.push(slot);
        }
    }
}

impl Outgoing {
    fn payload(&self, number: u32, params: &Params) -> (u64, u16) {
        let payload_max = u64::from(params.site.payload_max());
        let offset = u64::from(number) * payload_max;
        (offset, (self.bytes - offset).min(payload_max) as u16)
    }

    fn acknowledge(&mut self, number: u32, params: &Params) {
        if self.acked.insert(number) {
            self.remaining -= u64::from(self.payload(number, params).1);
            self.on_the_way -= u32::from(number < self.next);
        }
    }

    /// An acknowledgement of all packets up to a later one has arrived.
    fn grow(&mut self, params: &Params) {
        if self.window >= self.threshold {
            self.credit += 1;
            if self.credit < self.window {
                return;
            }
            self.credit = 0;
        }
        self.window = (self.window + 1).min(params.window_max);
    }

    fn time_out(&mut self, params: &Params) {
        self.timeouts += 1;
        self.threshold = (self.window / 2).max(2);
        (self.window, self.credit) = (1, 0);
        (self.next, self.on_the_way) = (self.acked.first_missing, 0);
        self.probe = self.timeouts >= params.probe_after;
    }

    fn may_send(&mut self, params: &Params) -> bool {
        if self.timeouts >= params.probe_after {
            return self.probe;
        }
        self.acked.next_missing(self.next) < self.packets && self.on_the_way < self.window
    }

    fn send(&mut self, id: FlowId, params: &Params) -> Packet {
        let (packets, remaining) = (self.packets, self.remaining);
        if std::mem::take(&mut self.probe) {
            return params.packet(id, self.dst, Header::Probe { packets, remaining }, 0);
        }
        let number = self.acked.next_missing(self.next);
        self.next = number + 1;
        self.on_the_way += 1;
        self.sent_packets += 1;
        self.sent.insert(number);
        let (offset, payload) = self.payload(number, params);
        let header = Header::Data(Data { packet: number, packets, remaining, offset });
        params.packet(id, self.dst, header, payload)
    }
}
