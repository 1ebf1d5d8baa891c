//! UDP at a constant rate: packets leave on a clock, whatever happens to them.
//!
//! Unresponsive traffic, from which congestion-controlled entities must be protected (Augmented Queue, Table 2), and
//! the simplest transport for checking a network model. The receiver answers the last missing byte with one control
//! packet, so that the sender knows. There is no retransmission. A sender without an answer for `patience` after its
//! last packet reports the flow as failed.

use std::collections::VecDeque;

use node::layout::{self, Field, Layout, Message};
use node::wire::{Malformed, Reader, Writer};
use node::{Balancing, Cx, Endpoint, EndpointParams, Event, FlowMap, Input, Packet, PollAt, Timers};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Duration, HostId, PerByte, Problem, Rate};

use crate::bits::Bits;
use contract::{
    About, Capabilities, ControlPackets, Family, HeaderFormat, NetworkView, Scheme, SwitchRequirements, Timer,
    Undelivered, headers_of,
};

/// Configuration of UDP.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Rate of each flow on the wire, headers included. Default: the rate of the host's link.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// Priority class of its packets. Default: 1.
    pub class: u8,
    /// How long after its last packet a flow waits for an answer; then it has failed. Default: 10ms, or as long as a
    /// round trip may take, if that is longer.
    #[schemars(extend("x-least" = "100ns"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patience: Option<Duration>,
}

impl Default for Config {
    fn default() -> Config {
        Config { rate: None, class: 1, patience: None }
    }
}

impl Config {
    fn patience(&self, network: &NetworkView) -> Duration {
        network.timer(self.patience, Duration::from_ms(10))
    }
}

impl Scheme for Config {
    fn about(&self) -> About {
        About {
            title: "UDP at a constant rate",
            source: "RFC 768",
            summary: "Sends at a fixed rate, whatever happens to its packets.",
            needs: "nothing",
        }
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { undelivered: Undelivered::GivenUp, ..Capabilities::of_hosts(Family::Reactive) }
    }

    fn headers(&self) -> &'static dyn HeaderFormat {
        headers_of::<Header>()
    }

    // The answer that tells the sender of the last byte.
    fn control_packets(&self) -> ControlPackets {
        ControlPackets { per_message: 1.0, ..ControlPackets::NONE }
    }

    fn check(&self) -> Result<(), Problem> {
        if self.class > 7 {
            return Err(Problem::new("class", format!("{} is not one of 0 to 7", self.class)));
        }
        if self.rate == Some(Rate::ZERO) {
            return Err(Problem::new("rate", "at 0 nothing would be sent; leave it out for the rate of the link"));
        }
        if let Some(patience) = self.patience.filter(|&patience| patience > Duration::from_ms(1_000_000)) {
            return Err(Problem::new("patience", format!("{patience} is too long; at most 1000s")));
        }
        Ok(())
    }

    fn rate_max(&self) -> Option<Rate> {
        self.rate
    }

    fn timers(&self, network: &NetworkView) -> Vec<Timer> {
        vec![Timer::new("patience", self.patience, self.patience(network), "takes the message for lost")]
    }

    fn endpoint(&self, site: &EndpointParams, network: &NetworkView) -> Box<dyn Endpoint> {
        let rate = self.rate.unwrap_or(site.nic_rate);
        Box::new(Udp {
            config: self.clone(),
            site: site.clone(),
            per_byte: rate.per_byte(),
            patience: self.patience(network),
            sending: FlowMap::default(),
            due: VecDeque::new(),
            pacing: Timers::default(),
            giving_up: Timers::default(),
            receiving: FlowMap::default(),
            answers: VecDeque::new(),
            failed: 0,
        })
    }

    fn requirements(&self, _: &EndpointParams) -> SwitchRequirements {
        SwitchRequirements::only(Balancing::Ecmp)
    }
}

/// What a packet says, in 16 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, node::State)]
pub enum Header {
    /// A part of the message.
    Data(Data),
    /// Every byte has arrived. It stands as a message of no length.
    Answer,
}

/// What a data packet says beside its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, node::State)]
pub struct Data {
    /// Length of the message; never 0.
    pub message_bytes: u64,
    /// Offset of the packet's first byte.
    #[state(sequence(1))]
    pub offset: u64,
}

impl node::Header for Header {
    type Packed = [u64; 2];

    const LAYOUT: Layout = Layout { messages: LAYOUT };

    #[inline]
    fn pack(self) -> [u64; 2] {
        match self {
            Header::Data(Data { message_bytes, offset }) => [message_bytes, offset],
            Header::Answer => [0, 0],
        }
    }

    #[inline]
    fn unpack([message_bytes, offset]: [u64; 2]) -> Header {
        if message_bytes == 0 { Header::Answer } else { Header::Data(Data { message_bytes, offset }) }
    }

    fn emit(self, to: &mut Writer<'_>) {
        for word in self.pack() {
            to.u64(word);
        }
    }

    fn parse(from: &mut Reader<'_>) -> Result<Header, Malformed> {
        from.begin("UDP header: shorter than 16 bytes");
        Ok(Header::unpack([from.u64()?, from.u64()?]))
    }

    fn payload_offset(self) -> u64 {
        if let Header::Data(data) = self { data.offset } else { 0 }
    }
}

const BYTES: layout::Bits = layout::Bits::u64(0);

const LAYOUT: &[Message] = &[
    Message::new("Answer", BYTES.are(0), 16, &[]),
    Message::new(
        "Data",
        BYTES.within(1, u64::MAX),
        16,
        &[Field::number("message_bytes", BYTES), Field::number("offset", layout::Bits::u64(8))],
    ),
];

#[derive(node::State)]
#[state(unit(u64::from(self.site.payload_max())))]
struct Udp {
    #[state(built("settings"))]
    config: Config,
    #[state(built("settings"))]
    site: EndpointParams,
    #[state(built("settings"))]
    per_byte: PerByte,
    patience: Duration,
    #[state(slots)]
    sending: FlowMap<Sending>,
    /// Slots of flows whose next packet is due.
    #[state(slots)]
    due: VecDeque<u32>,
    #[state(slots)]
    pacing: Timers,
    #[state(slots)]
    giving_up: Timers,
    #[state(slots)]
    receiving: FlowMap<Receiving>,
    answers: VecDeque<Packet>,
    #[state(count)]
    failed: u64,
}

#[derive(node::State)]
struct Receiving {
    #[state(rest(u64::from(self.packets.count) * walk.unit))]
    missing_bytes: u64,
    /// The packets that have arrived, by number: a message that was given up may be submitted again.
    packets: Bits,
}

#[derive(node::State)]
struct Sending {
    dst: HostId,
    bytes: u64,
    #[state(sequence(1))]
    next: u64,
    #[state(count_of)]
    packets: u64,
}

impl Endpoint for Udp {
    fn handle(&mut self, cx: &mut Cx<'_>, input: Input<'_>) {
        match input {
            Input::Send(message) => {
                let sending = Sending { dst: message.dst, bytes: message.bytes, next: 0, packets: 0 };
                self.due.push_back(self.sending.insert(message.flow, sending));
            }
            Input::Packet(packet) => self.receive(cx, packet),
            Input::Deadline => {
                while let Some(slot) = self.pacing.expire(cx.now) {
                    self.due.push_back(slot);
                }
                while let Some(slot) = self.giving_up.expire(cx.now) {
                    if let Some((flow, _)) = self.sending.get(slot) {
                        cx.events.push(Event::Failed { flow, reason: Event::NO_ANSWER });
                    }
                    self.sending.remove(slot);
                    self.failed += 1;
                }
            }
        }
    }

    fn poll_transmit(&mut self, cx: &mut Cx<'_>) -> Option<Packet> {
        if !cx.gate.open(self.config.class) {
            return None;
        }
        if let Some(answer) = self.answers.pop_front() {
            return Some(answer);
        }
        let slot = self.due.pop_front()?;
        let (flow, sending) = self.sending.get_mut(slot)?;
        let payload = (sending.bytes - sending.next).min(u64::from(self.site.payload_max()));
        let header = Header::Data(Data { message_bytes: sending.bytes, offset: sending.next });
        let mut packet = self.site.data_packet(flow, sending.dst, header, payload as u16);
        packet.class = self.config.class;
        sending.next += payload;
        sending.packets += 1;
        if sending.next < sending.bytes {
            self.pacing.set(slot, cx.now + self.per_byte.transmit(u32::from(packet.wire_bytes)));
        } else {
            self.giving_up.set(slot, cx.now + self.patience);
        }
        Some(packet)
    }

    fn poll_at(&self) -> PollAt {
        self.pacing.next().into_iter().chain(self.giving_up.next()).min().into()
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        vec![("flows_failed", self.failed)]
    }
}

impl Udp {
    fn receive(&mut self, cx: &mut Cx<'_>, packet: &Packet) {
        let Header::Data(data) = packet.header() else {
            let slot = self.sending.slot(packet.flow);
            if let Some((slot, sending)) = slot.and_then(|slot| Some((slot, self.sending.remove(slot)?))) {
                self.giving_up.clear(slot);
                let sent_packets = sending.packets;
                cx.events.push(Event::Completed { flow: packet.flow, sent_packets, resent_packets: 0 });
            }
            return;
        };
        let Ok(number) = u32::try_from(data.offset / u64::from(self.site.payload_max())) else { return };
        let known = self.receiving.slot(packet.flow);
        let fresh = || Receiving { missing_bytes: data.message_bytes, packets: Bits::default() };
        let slot = known.unwrap_or_else(|| self.receiving.insert(packet.flow, fresh()));
        let (_, receiving) = self.receiving.get_mut(slot).expect("just found");
        if receiving.packets.insert(number) {
            receiving.missing_bytes = receiving.missing_bytes.saturating_sub(u64::from(packet.payload_bytes));
        }
        if receiving.missing_bytes == 0 {
            self.receiving.remove(slot);
            let mut answer = self.site.control_packet(packet.flow, packet.src, Header::Answer);
            answer.class = self.config.class;
            self.answers.push_back(answer);
            cx.events.push(Event::Delivered { flow: packet.flow });
        }
    }
}

#[cfg(test)]
mod tests;
