//! A receiver-driven transport: receivers grant packets one by one, as fast as their links can take them.
//!
//! A sender *requests* to send a message. The receiver *grants* one packet in each transmission time of a packet, to
//! its messages in turn, and the sender sends what is granted. So packets of many senders don't meet in front of a
//! receiver's link, where other transports have their longest queues. When all have arrived, the receiver says that
//! the message is *done*.
//!
//! - **Loss**: a receiver that has granted everything and hears nothing for a while grants what is missing again. A
//!   sender that hears nothing for a while requests again, which gets it another answer if the message is done.
//! - **Absent**: data before the first grant, which would save short messages a round trip.

use std::collections::{BTreeSet, VecDeque};

use clearway::contract::{
    About, Capabilities, ControlPackets, Family, HeaderFormat, NetworkView, Scheme, SwitchRequirements, headers_of,
};
use clearway::node;
use clearway::node::layout::{Bits, Field, Layout, Message};
use clearway::node::wire::{Malformed, Reader, Writer};
use clearway::node::{
    Balancing, Cx, Endpoint, EndpointParams, Event, FlowMap, FlowState, Input, Packet, PollAt, Timers,
};
use clearway::units::{Bytes, Duration, FlowId, HostId, Problem, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Configuration of the transport.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Bytes of a message that may be granted and not have arrived. Default: two bandwidth-delay products.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<Bytes>,
    /// Silence after which receivers grant again and senders request again. Default: 100us.
    pub timeout: Duration,
}

impl Default for Config {
    fn default() -> Config {
        Config { window: None, timeout: Duration::from_us(100) }
    }
}

impl Scheme for Config {
    fn about(&self) -> About {
        About {
            title: "mine: receivers grant packets",
            source: "",
            summary: "Receivers grant packets one by one, at the rate of their links.",
            needs: "nothing",
        }
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::of_hosts(Family::Proactive)
    }

    fn headers(&self) -> &'static dyn HeaderFormat {
        headers_of::<Header>()
    }

    fn check(&self) -> Result<(), Problem> {
        if self.window == Some(Bytes(0)) {
            return Err(Problem::new(
                "window",
                "at 0 nothing would be granted; leave it out for two round trips' worth",
            ));
        }
        if self.timeout == Duration::ZERO {
            return Err(Problem::new("timeout", "at 0 it would ask again for ever; give some round trips"));
        }
        Ok(())
    }

    fn control_packets(&self) -> ControlPackets {
        ControlPackets { per_packet: 1.0, per_message: 2.0, ..ControlPackets::NONE }
    }

    fn endpoint(&self, site: &EndpointParams, _: &NetworkView) -> Box<dyn Endpoint> {
        let payload = u64::from(site.payload_max());
        let window_bytes = self.window.map_or(2 * site.bdp_bytes(), Bytes::get);
        Box::new(Host {
            window: window_bytes.div_ceil(payload) as usize,
            timeout: self.timeout,
            packet_time: site.nic_rate.transmit(u64::from(site.mtu_bytes)),
            payload,
            site: site.clone(),
            control: VecDeque::new(),
            sending: FlowMap::default(),
            granted: VecDeque::new(),
            requests: Timers::default(),
            receiving: FlowMap::default(),
            turns: VecDeque::new(),
            grant_at: Time::ZERO,
            arrivals: Timers::default(),
        })
    }

    fn requirements(&self, _: &EndpointParams) -> SwitchRequirements {
        SwitchRequirements::only(Balancing::Spray)
    }
}

/// What a packet says, in 16 bytes. Packets are named by where they begin in the message, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, node::State)]
pub enum Header {
    /// The sender has a message of this many bytes, at least 1.
    Request { message_bytes: u64 },
    /// The sender may send the packet that begins here.
    Grant { offset: u64 },
    /// The packet that begins here.
    Data { offset: u64 },
    /// The whole message has arrived.
    Done,
}

impl clearway::node::Header for Header {
    type Packed = [u64; 2];

    const LAYOUT: Layout = Layout { messages: LAYOUT };

    fn pack(self) -> [u64; 2] {
        match self {
            Header::Request { message_bytes } => [0, message_bytes],
            Header::Grant { offset } => [1, offset],
            Header::Data { offset } => [2, offset],
            Header::Done => [3, 0],
        }
    }

    fn unpack(words: [u64; 2]) -> Header {
        match words {
            [0, message_bytes] => Header::Request { message_bytes },
            [1, offset] => Header::Grant { offset },
            [2, offset] => Header::Data { offset },
            _ => Header::Done,
        }
    }

    fn emit(self, to: &mut Writer<'_>) {
        for word in self.pack() {
            to.u64(word);
        }
    }

    fn parse(from: &mut Reader<'_>) -> Result<Header, Malformed> {
        from.begin("header of mine: shorter than 16 bytes");
        let words = [from.u64()?, from.u64()?];
        if words == [0, 0] || Header::unpack(words).pack() != words {
            return Err(Malformed { what: "header of mine: none of its messages" });
        }
        Ok(Header::unpack(words))
    }

    fn payload_offset(self) -> u64 {
        if let Header::Data { offset } = self { offset } else { 0 }
    }
}

const KIND: Bits = Bits::u64(0);
const VALUE: Bits = Bits::u64(8);

const LAYOUT: &[Message] = &[
    Message::new("Request", KIND.are(0), 16, &[Field::number("message_bytes", VALUE)]),
    Message::new("Grant", KIND.are(1), 16, &[Field::number("offset", VALUE)]),
    Message::new("Data", KIND.are(2), 16, &[Field::number("offset", VALUE)]),
    Message::new("Done", KIND.are(3), 16, &[]),
];

#[derive(node::State)]
#[state(refuse("this transport does not say what of its state moves"))]
struct Host {
    #[state(built("settings"))]
    site: EndpointParams,
    /// Bytes of a message in a full packet.
    payload: u64,
    /// Packets of a message that may be granted and not have arrived.
    window: usize,
    timeout: Duration,
    /// How long this host's link takes for a full packet.
    packet_time: Duration,
    /// What goes out before data.
    control: VecDeque<Packet>,
    sending: FlowMap<Sending>,
    /// Packets that this host may send, in the order of their grants.
    granted: VecDeque<(FlowId, u64)>,
    /// By slot of a message that is sent: when to request again.
    requests: Timers,
    receiving: FlowMap<Receiving>,
    /// Slots of messages with something to grant, each once.
    turns: VecDeque<u32>,
    /// Earliest time of the next grant.
    grant_at: Time,
    /// By slot of a message that is received: when to grant again.
    arrivals: Timers,
}

#[derive(node::Saved)]
struct Sending {
    dst: HostId,
    bytes: u64,
    sent_packets: u64,
}

/// Kept when all has arrived: the sender may not have heard of it.
#[derive(node::Saved)]
struct Receiving {
    src: HostId,
    bytes: u64,
    /// The first byte that was never granted.
    next: u64,
    /// Packets that were granted and have not arrived.
    waited: BTreeSet<u64>,
    /// Those of them that are to be granted again.
    again: BTreeSet<u64>,
    has_turn: bool,
}

/// Control before data: a class with a smaller number is served first.
const CONTROL_CLASS: u8 = 0;
const DATA_CLASS: u8 = 1;

impl Endpoint for Host {
    fn handle(&mut self, cx: &mut Cx<'_>, input: Input<'_>) {
        match input {
            Input::Send(message) => {
                let sending = Sending { dst: message.dst, bytes: message.bytes, sent_packets: 0 };
                let slot = self.sending.insert(message.flow, sending);
                self.request(cx.now, slot);
            }
            Input::Packet(packet) => match packet.header() {
                Header::Request { message_bytes } => self.take_request(cx.now, packet, message_bytes),
                Header::Grant { offset } => self.take_grant(cx.now, packet, offset),
                Header::Data { offset } => self.take_data(cx, packet, offset),
                Header::Done => self.take_done(cx, packet),
            },
            Input::Deadline => {
                while let Some(slot) = self.requests.expire(cx.now) {
                    self.request(cx.now, slot);
                }
                while let Some(slot) = self.arrivals.expire(cx.now) {
                    self.grant_again(slot);
                }
            }
        }
        self.grant(cx.now);
    }

    fn poll_transmit(&mut self, cx: &mut Cx<'_>) -> Option<Packet> {
        if cx.gate.open(CONTROL_CLASS)
            && let Some(packet) = self.control.pop_front()
        {
            return Some(packet);
        }
        if !cx.gate.open(DATA_CLASS) {
            return None;
        }
        while let Some((flow, offset)) = self.granted.pop_front() {
            // It may be done meanwhile.
            let Some(slot) = self.sending.slot(flow) else { continue };
            let Some((_, sending)) = self.sending.get_mut(slot) else { continue };
            let payload = (sending.bytes - offset).min(self.payload);
            let mut packet = self.site.data_packet(flow, sending.dst, Header::Data { offset }, payload as u16);
            packet.class = DATA_CLASS;
            sending.sent_packets += 1;
            return Some(packet);
        }
        None
    }

    fn poll_at(&self) -> PollAt {
        let grant = (!self.turns.is_empty()).then_some(self.grant_at);
        [grant, self.requests.next(), self.arrivals.next()].into_iter().flatten().min().into()
    }

    fn state(&self, flow: FlowId, say: &mut FlowState) {
        if let Some(receiving) = self.receiving.of(flow) {
            say.say("granted_packets", receiving.waited.len() as u64);
        }
    }
}

/// As a sender.
impl Host {
    fn request(&mut self, now: Time, slot: u32) {
        let Some((flow, sending)) = self.sending.get(slot) else { return };
        let header = Header::Request { message_bytes: sending.bytes };
        self.control.push_back(self.site.control_packet(flow, sending.dst, header));
        self.requests.set(slot, now + self.timeout);
    }

    fn take_grant(&mut self, now: Time, packet: &Packet, offset: u64) {
        let Some(slot) = self.sending.slot(packet.flow) else { return };
        let Some((flow, sending)) = self.sending.get(slot) else { return };
        // Anybody may have written it.
        if offset < sending.bytes && offset.is_multiple_of(self.payload) {
            self.granted.push_back((flow, offset));
            self.requests.set(slot, now + self.timeout);
        }
    }

    fn take_done(&mut self, cx: &mut Cx<'_>, packet: &Packet) {
        let Some(slot) = self.sending.slot(packet.flow) else { return };
        let Some(Sending { bytes, sent_packets, .. }) = self.sending.remove(slot) else { return };
        self.requests.clear(slot);
        // Each packet was sent once, and some again.
        let resent_packets = sent_packets.saturating_sub(bytes.div_ceil(self.payload));
        cx.events.push(Event::Completed { flow: packet.flow, sent_packets, resent_packets });
    }
}

/// As a receiver.
impl Host {
    fn take_request(&mut self, now: Time, packet: &Packet, message_bytes: u64) {
        if let Some(slot) = self.receiving.slot(packet.flow) {
            if let Some((_, Receiving { next, bytes, waited, .. })) = self.receiving.get(slot)
                && next == bytes
                && waited.is_empty()
            {
                self.control.push_back(self.site.control_packet(packet.flow, packet.src, Header::Done));
            }
            return;
        }
        let (waited, again) = (BTreeSet::new(), BTreeSet::new());
        let new = Receiving { src: packet.src, bytes: message_bytes, next: 0, waited, again, has_turn: true };
        let slot = self.receiving.insert(packet.flow, new);
        self.turns.push_back(slot);
        self.arrivals.set(slot, now + self.timeout);
    }

    /// Grants a packet if it is time: one in each packet's time on this host's link, to the messages in turn.
    fn grant(&mut self, now: Time) {
        while now >= self.grant_at
            && let Some(slot) = self.turns.pop_front()
        {
            let Some((flow, receiving)) = self.receiving.get_mut(slot) else { continue };
            receiving.has_turn = false;
            let Some(offset) = receiving.grant(self.payload, self.window) else { continue };
            self.control.push_back(self.site.control_packet(flow, receiving.src, Header::Grant { offset }));
            self.grant_at = now + self.packet_time;
            self.arrivals.set(slot, now + self.timeout);
            self.take_turn(slot);
        }
    }

    fn take_turn(&mut self, slot: u32) {
        if let Some((_, receiving)) = self.receiving.get_mut(slot)
            && !receiving.has_turn
            && receiving.can_grant(self.window)
        {
            receiving.has_turn = true;
            self.turns.push_back(slot);
        }
    }

    fn grant_again(&mut self, slot: u32) {
        if let Some((_, receiving)) = self.receiving.get_mut(slot) {
            receiving.again.clone_from(&receiving.waited);
            self.take_turn(slot);
        }
    }

    fn take_data(&mut self, cx: &mut Cx<'_>, packet: &Packet, offset: u64) {
        let Some(slot) = self.receiving.slot(packet.flow) else { return };
        let Some((flow, receiving)) = self.receiving.get_mut(slot) else { return };
        // What was not granted, or has come before, counts for nothing.
        if !receiving.waited.remove(&offset) {
            return;
        }
        receiving.again.remove(&offset);
        if receiving.next == receiving.bytes && receiving.waited.is_empty() {
            self.control.push_back(self.site.control_packet(flow, receiving.src, Header::Done));
            self.arrivals.clear(slot);
            cx.events.push(Event::Delivered { flow });
        } else {
            self.arrivals.set(slot, cx.now + self.timeout);
            self.take_turn(slot);
        }
    }
}

impl Receiving {
    fn can_grant(&self, window: usize) -> bool {
        !self.again.is_empty() || (self.next < self.bytes && self.waited.len() < window)
    }

    /// The packet to grant now, if there is one.
    fn grant(&mut self, payload: u64, window: usize) -> Option<u64> {
        if !self.can_grant(window) {
            return None;
        }
        if let Some(offset) = self.again.pop_first() {
            return Some(offset);
        }
        let offset = self.next;
        self.next = offset.saturating_add(payload).min(self.bytes);
        self.waited.insert(offset);
        Some(offset)
    }
}

#[cfg(test)]
mod tests;
