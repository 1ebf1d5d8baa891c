//! Link-level retry at both ends of a link: what a transmitter repeats before it takes a new packet, and what an
//! arrival says to the other end. The rules are in [`node::retry`].
//!
//! A packet keeps its number in `Transit::in_port` while it is on a link, where there is no port that it came by. A
//! repeated packet is the one that the node has sent: it is in no count of packets sent, and its time since then counts
//! as waiting.

use node::Telemetry;
use node::packet::flags;
use node::pool::{Hop, PacketId, Slot};
use node::retry::{RetryMessage, RetryReceiver, RetrySender, RetrySpeaker, RetrySpec, RetryStats, is_numbered};
use run::Plan;
use units::{LinkId, Time};

use crate::{Carrier, Driver, End, Probe};

/// Link-level retry at a link's sending end.
#[derive(node::Saved)]
pub struct Repeater {
    sender: RetrySender<Kept>,
    /// The messages of the reverse link's receiving end, which are sent on this link.
    speaker: RetrySpeaker,
    /// Packets and bytes that have left since the link last came up, each once.
    sent: (u64, u64),
    /// The same for all earlier times in which the link was up.
    before: (u64, u64),
}

/// What is kept of a packet until it is acknowledged.
#[derive(node::Saved)]
struct Kept {
    slot: Slot,
    telemetry: Option<Box<Telemetry>>,
    /// The content that the carrier keeps of it, if any.
    content: Option<Box<[u8]>>,
    /// When its first bit left for the first time.
    since: Time,
}

/// Link-level retry at a link's receiving end.
#[derive(Default, node::Saved)]
pub struct Acceptor {
    receiver: RetryReceiver,
    /// Packets and bytes that went on since the link last came up.
    accepted: (u64, u64),
    /// The same for all earlier times in which the link was up.
    before: (u64, u64),
}

/// What link-level retry does with a free transmitter.
pub(crate) enum Repeats {
    /// Nothing: a new packet may go.
    Nothing,
    /// It has begun to send, and is busy until then.
    Busy(Time),
    /// Nothing, and no new packet may go: too much is unacknowledged.
    Full,
}

impl Repeater {
    pub(crate) fn new(plan: &Plan, spec: &RetrySpec, id: LinkId) -> Repeater {
        let rate = plan.fabric.link(id).rate;
        let spacing = spec.spacing.get();
        let round_trip = plan.link_round_trip(id) + rate.transmit(2 * 9_216 + 2 * spacing);
        Repeater {
            sender: RetrySender::new(spec, spec.timeout.unwrap_or(round_trip * 2)),
            speaker: RetrySpeaker::new(rate.transmit(spacing)),
            sent: (0, 0),
            before: (0, 0),
        }
    }

    /// Bytes that left since the link last came up. Those that the other end has not accepted are still on the link.
    pub(crate) fn sent_bytes(&self) -> u64 {
        self.sent.1
    }

    /// Packets and bytes that left before the link went down. Those that the other end had not accepted were lost.
    pub(crate) fn sent_before(&self) -> (u64, u64) {
        self.before
    }

    /// By name, what it has counted.
    pub(crate) fn counters(&self) -> [(&'static str, u64); 6] {
        let RetryStats { replayed, replays, timeouts, .. } = self.sender.stats;
        let (acks, nacks) = self.speaker.stats.messages;
        [
            ("llr_acks", acks),
            ("llr_nacks", nacks),
            ("llr_replayed_bytes", replayed.1),
            ("llr_replayed_packets", replayed.0),
            ("llr_replays", replays),
            ("llr_timeouts", timeouts),
        ]
    }

    fn next_at(&self) -> Time {
        self.sender.next_at().min(self.speaker.next_at())
    }

    fn reset(&mut self) {
        self.sender.reset();
        self.speaker.reset();
        self.before = (self.before.0 + self.sent.0, self.before.1 + self.sent.1);
        self.sent = (0, 0);
    }
}

impl Acceptor {
    pub(crate) fn accepted_bytes(&self) -> u64 {
        self.accepted.1
    }

    pub(crate) fn accepted_before(&self) -> (u64, u64) {
        self.before
    }

    pub(crate) fn reset(&mut self) {
        self.receiver.reset();
        self.before = (self.before.0 + self.accepted.0, self.before.1 + self.accepted.1);
        self.accepted = (0, 0);
    }
}

impl<C: Carrier, P: Probe> Driver<C, P> {
    /// A new packet begins to leave: it gets a number, and is kept.
    #[cold]
    pub(crate) fn keep(&mut self, link_tx: u32, now: Time, id: PacketId) {
        let slot = *self.links.pool.get(id);
        if !is_numbered(&slot.packet) {
            return;
        }
        let content = C::copied(&self.links, id);
        let Some(end) = &mut self.links.link_txs[link_tx as usize].repeater else { return };
        let telemetry = slot.packet.has(flags::TELEMETRY).then(|| Box::new(*self.links.pool.telemetry_mut(id)));
        let bytes = u32::from(slot.packet.wire_bytes);
        let number = end.sender.sent(now, bytes, Kept { slot, telemetry, content, since: now });
        if !slot.packet.has(flags::LINK_FRAME) {
            end.sent = (end.sent.0 + 1, end.sent.1 + u64::from(bytes));
        }
        self.links.pool.get_mut(id).transit.in_port = number;
    }

    /// A free transmitter: messages go first, then what is to be repeated.
    pub(crate) fn repeats(&mut self, now: Time, link_tx: u32) -> Repeats {
        let Some(end) = &mut self.links.link_txs[link_tx as usize].repeater else { return Repeats::Nothing };
        if let Some(message) = end.speaker.next(now) {
            let packet = message.packet();
            let id = self.links.pool.insert(packet, Default::default());
            let free_at = self.occupy(link_tx, now, u32::from(packet.wire_bytes));
            self.links.launch(link_tx, now, free_at, id);
            return Repeats::Busy(free_at);
        }
        let Some((number, Kept { slot, telemetry, content, since })) = end.sender.replay(now) else {
            return if end.sender.full() { Repeats::Full } else { Repeats::Nothing };
        };
        let (mut slot, waited) = (*slot, now - *since);
        let (telemetry, content) = (telemetry.as_deref().copied(), content.clone());
        slot.transit.in_port = number;
        slot.transit.queued[self.hop_of(link_tx) as usize] += waited;
        let id = self.links.pool.insert(slot.packet, slot.transit);
        if let Some(telemetry) = telemetry {
            *self.links.pool.telemetry_mut(id) = telemetry;
        }
        C::restored(&mut self.links, id, content.as_deref());
        let free_at = self.occupy(link_tx, now, u32::from(slot.packet.wire_bytes));
        self.links.launch(link_tx, now, free_at, id);
        Repeats::Busy(free_at)
    }

    /// When a transmitter that is free from `free_at` on has something to say or to repeat; [`Time::MAX`] for never.
    pub(crate) fn repeats_at(&self, link_tx: u32, free_at: Time) -> Time {
        let at = self.links.link_txs[link_tx as usize].repeater.as_ref().map_or(Time::MAX, |end| end.next_at());
        at.max(free_at)
    }

    /// The kind of hop that a link is, by which waiting is broken down.
    fn hop_of(&self, link_tx: u32) -> Hop {
        match self.links.link_txs[link_tx as usize].from {
            End::Switch { index, port } => self.switches[index as usize].switch.port(port).hop(),
            End::Host { .. } => Hop::Up,
        }
    }

    /// A free transmitter is busy with this many bytes. Returns until when.
    fn occupy(&mut self, link_tx: u32, now: Time, bytes: u32) -> Time {
        match self.links.link_txs[link_tx as usize].from {
            End::Switch { index, port } => self.switches[index as usize].switch.occupy(now, port, bytes),
            End::Host { index, port } => {
                let slot = &mut self.hosts[index as usize];
                let (per_byte, free_at) = match &mut slot.ports {
                    None => (slot.per_byte, &mut slot.free_at),
                    Some(ports) => (ports[port.index()].per_byte, &mut ports[port.index()].free_at),
                };
                *free_at = now + per_byte.transmit(bytes);
                *free_at
            }
        }
    }

    /// Handles what comes out of a link under link-level retry. Returns whether it goes on into the node.
    #[cold]
    pub(crate) fn accepts(&mut self, now: Time, link_rx: usize, id: PacketId) -> bool {
        let packet = self.links.pool.get(id).packet;
        let number = self.links.pool.get(id).transit.in_port;
        let end = &mut self.links.link_rxs[link_rx];
        let to = end.to;
        let back = match to {
            End::Switch { index, port } => self.switches[index as usize].first_link_tx + port.0,
            End::Host { index, port } => self.hosts[index as usize].link_tx + port.0,
        };
        if let Some(message) = RetryMessage::of(&packet) {
            let hit = end.noise.as_mut().is_some_and(|noise| noise.hits(u64::from(packet.wire_bytes)));
            self.links.pool.remove(id);
            if !hit && let Some(end) = &mut self.links.link_txs[back as usize].repeater {
                end.sender.hears(now, message);
                self.prod(now, to);
            }
            return false;
        }
        let Some(acceptor) = end.acceptor.as_mut().filter(|_| is_numbered(&packet)) else { return true };
        let (mut goes_on, mut message) = (false, None);
        let vanished = end.noise.as_ref().map_or(0, |noise| noise.lossy_packets);
        let hit = end.noise.as_mut().is_some_and(|noise| noise.loses(&mut self.links.pool.get_mut(id).packet));
        if end.noise.as_ref().map_or(0, |noise| noise.lossy_packets) == vanished {
            (goes_on, message) = acceptor.receiver.comes(number, hit);
        }
        if goes_on && !packet.has(flags::LINK_FRAME) {
            let bytes = u64::from(packet.wire_bytes);
            acceptor.accepted = (acceptor.accepted.0 + 1, acceptor.accepted.1 + bytes);
        }
        if !goes_on {
            self.links.pool.remove(id);
        }
        if let (Some(message), Some(end)) = (message, &mut self.links.link_txs[back as usize].repeater) {
            end.speaker.say(message);
            self.prod(now, to);
        }
        goes_on
    }

    /// The transmitter at this end has a message to send or a packet to repeat: sends it as soon as it can.
    fn prod(&mut self, now: Time, end: End) {
        match end {
            End::Switch { index, port } => {
                self.try_transmit(now, index, port);
                if self.flow_controlled {
                    self.follow_up(now, index);
                }
            }
            End::Host { index, .. } => {
                self.poll_host(now, index as usize, false);
            }
        }
    }

    /// The sending end of a link sees that it has gone down or come up.
    pub(crate) fn reset_repeater(&mut self, link_tx: u32) {
        if let Some(end) = &mut self.links.link_txs[link_tx as usize].repeater {
            end.reset();
        }
    }
}
