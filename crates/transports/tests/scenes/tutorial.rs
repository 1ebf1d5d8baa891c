//! The transport of `docs/write-a-transport.md`, whose blocks of code are this file: a fixed window and go-back-N.

use std::collections::VecDeque;

use contract::{About, Family, HeaderFormat, Nature, NetworkView, Scheme, SwitchRequirements, headers_of};
use node::layout::{Bits, Field, Layout};
use node::wire::{Malformed, Reader, Writer};
use node::{Balancing, Cx, Endpoint, Event, FlowMap, Input, Packet, PollAt, Site, Timers};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use testing::{PacketFate, Wire, check_header};
use units::{Duration, HostId, Problem, Time};

/// Configuration of the fixed window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Packets that may be under way for a message. Default: 16.
    pub window: u32,
    /// Time without progress after which everything under way is sent again. Default: 100us.
    pub timeout: Duration,
}

impl Default for Config {
    fn default() -> Config {
        Config { window: 16, timeout: Duration::from_us(100) }
    }
}

impl Scheme for Config {
    fn about(&self) -> About {
        About {
            title: "A fixed window",
            source: "docs/write-a-transport.md",
            summary: "Keeps some packets under way, and goes back to the first that is missing.",
            needs: "nothing",
        }
    }

    fn nature(&self) -> Nature {
        Nature::of_hosts(Family::Reactive)
    }

    fn headers(&self) -> &'static dyn HeaderFormat {
        headers_of::<Header>()
    }

    fn check(&self) -> Result<(), Problem> {
        if self.window == 0 {
            return Err(Problem::new("window", "at 0 nothing would be sent; give at least 1"));
        }
        if self.timeout == Duration::ZERO {
            return Err(Problem::new("timeout", "at 0 it would send again for ever; give some round trips"));
        }
        Ok(())
    }

    fn endpoint(&self, site: &Site, _: &NetworkView) -> Box<dyn Endpoint> {
        Box::new(Host {
            window_bytes: u64::from(self.window) * u64::from(site.payload_max()),
            timeout: self.timeout,
            site: site.clone(),
            sending: FlowMap::default(),
            ready: VecDeque::new(),
            timers: Timers::default(),
            receiving: FlowMap::default(),
            acks: VecDeque::new(),
        })
    }

    fn requirements(&self, _: &Site) -> SwitchRequirements {
        SwitchRequirements::only(Balancing::Ecmp)
    }
}

/// What a packet says, in 16 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Header {
    /// A part of a message of this many bytes, at least 1, from this byte on.
    Data { message_bytes: u64, offset: u64 },
    /// All bytes before this one have arrived.
    Ack { expected: u64 },
}

impl node::Header for Header {
    type Packed = [u64; 2];

    const LAYOUT: Layout = Layout { messages: LAYOUT };

    fn pack(self) -> [u64; 2] {
        match self {
            Header::Data { message_bytes, offset } => [message_bytes, offset],
            Header::Ack { expected } => [0, expected],
        }
    }

    fn unpack(words: [u64; 2]) -> Header {
        match words {
            [0, expected] => Header::Ack { expected },
            [message_bytes, offset] => Header::Data { message_bytes, offset },
        }
    }

    fn emit(self, to: &mut Writer<'_>) {
        for word in self.pack() {
            to.u64(word);
        }
    }

    fn parse(from: &mut Reader<'_>) -> Result<Header, Malformed> {
        from.begin("header of a fixed window: shorter than 16 bytes");
        Ok(Header::unpack([from.u64()?, from.u64()?]))
    }

    fn payload_offset(self) -> u64 {
        if let Header::Data { offset, .. } = self { offset } else { 0 }
    }
}

const FIRST: Bits = Bits::u64(0);
const SECOND: Bits = Bits::u64(8);

const LAYOUT: &[node::layout::Message] = &[
    node::layout::Message::new("Ack", FIRST.are(0), 16, &[Field::number("expected", SECOND)]),
    node::layout::Message::new(
        "Data",
        FIRST.within(1, u64::MAX),
        16,
        &[Field::number("message_bytes", FIRST), Field::number("offset", SECOND)],
    ),
];

struct Host {
    window_bytes: u64,
    timeout: Duration,
    site: Site,
    sending: FlowMap<Sending>,
    /// Slots of messages that may have something to send, each once.
    ready: VecDeque<u32>,
    timers: Timers,
    receiving: FlowMap<Receiving>,
    acks: VecDeque<Packet>,
}

struct Sending {
    dst: HostId,
    bytes: u64,
    acked: u64,
    next: u64,
    /// The end of what was sent at least once.
    reached: u64,
    is_ready: bool,
    sent_packets: u64,
    resent_packets: u64,
}

/// Kept when all has arrived: the last acknowledgement may be lost.
struct Receiving {
    expected: u64,
}

/// Acknowledgements before data: a class with a smaller number is served first.
const ACK_CLASS: u8 = 0;
const DATA_CLASS: u8 = 1;

impl Endpoint for Host {
    fn handle(&mut self, cx: &mut Cx<'_>, input: Input<'_>) {
        match input {
            Input::Send(message) => {
                let slot = self.sending.insert(
                    message.flow,
                    Sending {
                        dst: message.dst,
                        bytes: message.bytes,
                        acked: 0,
                        next: 0,
                        reached: 0,
                        is_ready: false,
                        sent_packets: 0,
                        resent_packets: 0,
                    },
                );
                self.make_ready(slot);
            }
            Input::Packet(packet) => match packet.header() {
                Header::Data { message_bytes, offset } => self.take_data(cx, packet, message_bytes, offset),
                Header::Ack { expected } => self.take_ack(cx, packet, expected),
            },
            Input::Deadline => {
                while let Some(slot) = self.timers.expire(cx.now) {
                    if let Some((_, sending)) = self.sending.get_mut(slot) {
                        sending.next = sending.acked;
                        self.make_ready(slot);
                    }
                }
            }
        }
    }

    fn poll_transmit(&mut self, cx: &mut Cx<'_>) -> Option<Packet> {
        if cx.gate.open(ACK_CLASS)
            && let Some(ack) = self.acks.pop_front()
        {
            return Some(ack);
        }
        if !cx.gate.open(DATA_CLASS) {
            return None;
        }
        while let Some(slot) = self.ready.pop_front() {
            let Some((flow, sending)) = self.sending.get_mut(slot) else { continue };
            sending.is_ready = false;
            if sending.next == sending.bytes || sending.next >= sending.acked + self.window_bytes {
                continue;
            }
            let payload = (sending.bytes - sending.next).min(u64::from(self.site.payload_max()));
            let header = Header::Data { message_bytes: sending.bytes, offset: sending.next };
            let mut packet = self.site.data_packet(flow, sending.dst, header, payload as u16);
            packet.class = DATA_CLASS;
            sending.sent_packets += 1;
            sending.resent_packets += u64::from(sending.next < sending.reached);
            sending.next += payload;
            sending.reached = sending.reached.max(sending.next);
            if self.timers.get(slot).is_none() {
                self.timers.set(slot, cx.now + self.timeout);
            }
            // Messages take turns, packet by packet.
            self.make_ready(slot);
            return Some(packet);
        }
        None
    }

    fn poll_at(&self) -> PollAt {
        self.timers.next().into()
    }
}

impl Host {
    fn make_ready(&mut self, slot: u32) {
        if let Some((_, sending)) = self.sending.get_mut(slot)
            && !sending.is_ready
        {
            sending.is_ready = true;
            self.ready.push_back(slot);
        }
    }

    fn take_data(&mut self, cx: &mut Cx<'_>, packet: &Packet, message_bytes: u64, offset: u64) {
        let slot = self.receiving.slot(packet.flow);
        let slot = slot.unwrap_or_else(|| self.receiving.insert(packet.flow, Receiving { expected: 0 }));
        let Some((flow, receiving)) = self.receiving.get_mut(slot) else { return };
        if offset == receiving.expected && offset < message_bytes {
            receiving.expected = offset.saturating_add(u64::from(packet.payload_bytes)).min(message_bytes);
            if receiving.expected == message_bytes {
                cx.events.push(Event::Delivered { flow });
            }
        }
        let mut ack = self.site.control_packet(flow, packet.src, Header::Ack { expected: receiving.expected });
        ack.class = ACK_CLASS;
        self.acks.push_back(ack);
    }

    fn take_ack(&mut self, cx: &mut Cx<'_>, packet: &Packet, expected: u64) {
        let Some(slot) = self.sending.slot(packet.flow) else { return };
        let Some((flow, sending)) = self.sending.get_mut(slot) else { return };
        // What was never sent can't have arrived.
        if expected <= sending.acked || expected > sending.reached {
            return;
        }
        sending.acked = expected;
        sending.next = sending.next.max(expected);
        if expected == sending.bytes {
            let (sent_packets, resent_packets) = (sending.sent_packets, sending.resent_packets);
            cx.events.push(Event::Completed { flow, sent_packets, resent_packets });
            self.timers.clear(slot);
            self.sending.remove(slot);
        } else {
            self.timers.set(slot, cx.now + self.timeout);
            self.make_ready(slot);
        }
    }
}

#[test]
fn a_lone_packet_takes_the_unloaded_round_trip() {
    let mut scene = super::scene(2, Wire::default(), Config::default());
    let flow = scene.send(Time::ZERO, 0, 1, 1460);
    scene.run_until(Time::from_ms(1));
    assert_eq!(scene.delivered_at(flow), Some(Time::from_ns(2_740)));
    assert_eq!(scene.completed_at(flow), Some(Time::ZERO + super::RTT));
}

#[test]
fn no_more_than_the_window_is_under_way() {
    let mut scene = super::scene(2, Wire::default(), Config { window: 4, ..Config::default() });
    let flow = scene.send(Time::ZERO, 0, 1, 8 * super::MSS);
    scene.run_until(Time::from_ms(1));
    let left: Vec<Time> = super::data::<Header>(&scene, flow).iter().map(|(at, _)| *at).collect();
    // Four at line rate; the fifth when the first is acknowledged, and so on.
    let expected = |packet: u64| Time::ZERO + super::PACKET * (packet % 4) + super::RTT * (packet / 4);
    assert_eq!(left, (0..8).map(expected).collect::<Vec<_>>());
}

#[test]
fn after_a_loss_it_goes_back() {
    let mut scene = super::scene(2, Wire::default(), Config { window: 4, ..Config::default() });
    super::lose::<Header>(&mut scene, &[(1, 1)]);
    let flow = scene.send(Time::ZERO, 0, 1, 4 * super::MSS);
    scene.run_until(Time::from_ms(1));
    // The last progress is the acknowledgement of packet 0, after a round trip.
    let again = Time::ZERO + super::RTT + Duration::from_us(100);
    let expected: Vec<_> = (0..3).map(|packet| (again + super::PACKET * packet, packet + 1)).collect();
    assert_eq!(super::resent::<Header>(&scene, flow), expected);
    let completed = Event::Completed { flow, sent_packets: 7, resent_packets: 3 };
    assert!(scene.events.iter().any(|(_, host, event)| *host == HostId(0) && *event == completed));
}

proptest::proptest! {
    #[test]
    fn whatever_is_lost_late_or_doubled_messages_arrive_once(fates: u64, bytes in 1u64..100_000) {
        let mut scene = super::scene(3, Wire::default(), Config::default());
        scene.spoil_for_a_millisecond(fates, |_| false);
        let flows = [scene.send(Time::ZERO, 0, 2, bytes), scene.send(Time::ZERO, 1, 2, 2 * bytes)];
        scene.run_until(Time::from_ms(100));
        for flow in flows {
            let delivered = scene.events.iter().filter(|event| event.2 == Event::Delivered { flow });
            assert_eq!(delivered.count(), 1);
            assert!(scene.completed_at(flow).is_some());
        }
    }

    #[test]
    fn headers_survive_the_wire(message_bytes in 1u64.., offset: u64, noise: Vec<u8>) {
        check_header(Header::Data { message_bytes, offset }, &noise);
        check_header(Header::Ack { expected: offset }, &noise);
    }
}

#[test]
fn lost_acknowledgements_do_no_harm() {
    let mut scene = super::scene(2, Wire::default(), Config::default());
    scene.spoil(|now, packet| {
        let early = now < Time::from_us(50);
        if early && packet.payload_bytes == 0 { PacketFate::Drop } else { PacketFate::Pass }
    });
    let flow = scene.send(Time::ZERO, 0, 1, 3 * super::MSS);
    scene.run_until(Time::from_ms(1));
    assert!(scene.completed_at(flow).is_some_and(|at| at > Time::from_us(100)));
}

#[test]
fn settings_without_sense_are_refused_by_name() {
    let of = |config: Config| config.check().expect_err("refused").to_string();
    assert!(of(Config { window: 0, ..Config::default() }).contains("window"));
    assert!(of(Config { timeout: Duration::ZERO, ..Config::default() }).contains("timeout"));
}
