//! Link-level retry (LLR of Ultra Ethernet's link layer; UE specification 1.0, section 5.1): a link sends packets again
//! that bit errors have damaged, so that nothing above the link notices.
//!
//! The sender numbers packets and keeps each until it is acknowledged. The receiver acknowledges all up to a number
//! (LLR_ACK). If the packet that it expects comes damaged, or a later one comes first, it says which it had last
//! (LLR_NACK) and drops all until the expected one comes; the sender goes back to that one and repeats all from there
//! on, in their order. If nothing is acknowledged for a while, because the last packets or the message itself were
//! lost, the sender repeats without being asked. Messages are control ordered sets of 8 bytes between packets.
//!
//! Decided here, where public descriptions leave it open:
//!
//! - *Numbers have 16 bits* instead of 20, and go round. A damaged packet's number is still known, because it is in the
//!   preamble.
//! - *A timer runs from the first packet that nothing has acknowledged*, and starts again when more is acknowledged and
//!   when packets are repeated. New packets do not start it again: where small packets follow each other, as probes of
//!   a transport do, a lost LLR_NACK would otherwise hold the link up until the sender may keep no more.
//! - *Frames of a flow control* have no number and are not repeated: they are not damaged here either, and a pause may
//!   not wait. Those that count packets are numbered ([`crate::link::ordered_frame`]).
//!
//! Deliberately absent: the handshake that begins (LLR_INIT), a limit to repeating, after which the specification gives
//! packets up, and the age of what is kept.

use std::collections::VecDeque;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Bytes, Duration, Problem, Time};

use crate::link::sized_frame;
use crate::packet::flags;
use crate::wire::{Malformed, Reader, Writer};
use crate::{Header, Packet};

/// Settings of link-level retry.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RetrySpec {
    /// Most unacknowledged bytes of a sender; when it has that many, it sends no new packet. Default: 1MB.
    pub outstanding: Bytes,
    /// Most packets of them, 1 to 16384. Default: 16384.
    pub outstanding_packets: u32,
    /// Time without acknowledgements after which a sender repeats unasked. Default: twice the link's round trip with
    /// two packets of 9216B and two of `spacing`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-least" = "100ns"))]
    pub timeout: Option<Duration>,
    /// Least number of bytes between acknowledgements on the link. Default: 2048B.
    pub spacing: Bytes,
}

impl Default for RetrySpec {
    fn default() -> RetrySpec {
        let (outstanding, spacing) = (Bytes(1_000_000), Bytes(2_048));
        RetrySpec { outstanding, outstanding_packets: 1 << 14, timeout: None, spacing }
    }
}

impl RetrySpec {
    /// Checks what types can't express. Keys of errors are relative to the table.
    pub fn check(&self) -> Result<(), Problem> {
        if self.outstanding.get() < 9_216 {
            let message = format!("{} can't hold a packet; write at least 9216B", self.outstanding);
            return Err(Problem::new("outstanding", message));
        }
        if !(1..=1 << 14).contains(&self.outstanding_packets) {
            let message = format!("{} is not from 1 to 16384, which the numbers tell apart", self.outstanding_packets);
            return Err(Problem::new("outstanding_packets", message));
        }
        if self.timeout == Some(Duration::ZERO) {
            let message = "is 0, before anything can be acknowledged; write more than the round trip of a link";
            return Err(Problem::new("timeout", message));
        }
        if self.spacing.get() > 1 << 20 {
            return Err(Problem::new("spacing", format!("{} is more than 1MiB", self.spacing)));
        }
        Ok(())
    }
}

/// A message of the receiving end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, node::State)]
pub enum RetryMessage {
    /// All packets up to this number have arrived.
    Ack(u16),
    /// All packets up to this number have arrived, and the packets after it must be sent again.
    Nack(u16),
}

/// Bytes of a message.
const MESSAGE_BYTES: u16 = 8;
/// In place of a transport: a message of link-level retry.
const MARK: u8 = u8::MAX;
const ACK: u8 = 1;
const NACK: u8 = 2;

impl RetryMessage {
    /// As a packet.
    pub fn packet(self) -> Packet {
        let mut packet = sized_frame(self, MESSAGE_BYTES);
        packet.transport = MARK;
        packet
    }

    /// The message that a packet is, if it is one.
    #[inline]
    pub fn of(packet: &Packet) -> Option<RetryMessage> {
        (packet.has(flags::LINK_FRAME) && packet.transport == MARK).then(|| packet.header())
    }
}

impl Header for RetryMessage {
    type Packed = [u16; 2];

    fn pack(self) -> [u16; 2] {
        match self {
            RetryMessage::Ack(seq) => [u16::from(ACK), seq],
            RetryMessage::Nack(seq) => [u16::from(NACK), seq],
        }
    }

    fn unpack([kind, seq]: [u16; 2]) -> RetryMessage {
        if kind == u16::from(ACK) { RetryMessage::Ack(seq) } else { RetryMessage::Nack(seq) }
    }

    fn emit(self, to: &mut Writer<'_>) {
        let [kind, seq] = self.pack();
        to.u8(kind as u8);
        to.u16(seq);
    }

    fn parse(from: &mut Reader<'_>) -> Result<RetryMessage, Malformed> {
        from.begin("LLR message: shorter than its number");
        match (from.u8()?, from.u16()?) {
            (ACK, seq) => Ok(RetryMessage::Ack(seq)),
            (NACK, seq) => Ok(RetryMessage::Nack(seq)),
            _ => Err(Malformed { what: "LLR message type" }),
        }
    }
}

/// Whether a link numbers a packet and repeats it.
#[inline]
pub fn is_numbered(packet: &Packet) -> bool {
    !packet.has(flags::LINK_FRAME) || packet.has(flags::ROUTER_ALERT)
}

/// What an end of a link has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, crate::Saved)]
pub struct RetryStats {
    /// Packets sent again, and their bytes.
    pub replayed: (u64, u64),
    /// Times that a sender went back because it was told to.
    pub replays: u64,
    /// Times that it did so by itself.
    pub timeouts: u64,
    /// Acknowledgements sent, and messages that asked for packets.
    pub messages: (u64, u64),
}

/// The sending end of a link, which keeps a `K` of each packet.
#[derive(crate::Saved)]
pub struct RetrySender<K> {
    bytes_max: u64,
    packets_max: usize,
    timeout: Duration,
    kept: VecDeque<(u32, K)>,
    kept_bytes: u64,
    /// Number of the first that is kept.
    first: u16,
    /// The next of those kept that is to be sent again; all that are kept, if none is.
    next: usize,
    /// When it repeats by itself.
    deadline: Time,
    /// Counters.
    pub stats: RetryStats,
}

impl<K> RetrySender<K> {
    /// An end that has sent nothing.
    pub fn new(spec: &RetrySpec, timeout: Duration) -> RetrySender<K> {
        RetrySender {
            bytes_max: spec.outstanding.get(),
            packets_max: spec.outstanding_packets as usize,
            timeout,
            kept: VecDeque::new(),
            kept_bytes: 0,
            first: 0,
            next: 0,
            deadline: Time::MAX,
            stats: RetryStats::default(),
        }
    }

    /// Whether no new packet may go: too much is unacknowledged, or something has to be sent again first.
    pub fn full(&self) -> bool {
        self.next < self.kept.len() || self.kept.len() >= self.packets_max || self.kept_bytes >= self.bytes_max
    }

    /// A new packet leaves. Returns its number.
    pub fn sent(&mut self, now: Time, bytes: u32, kept: K) -> u16 {
        let number = self.first.wrapping_add(self.kept.len() as u16);
        self.kept.push_back((bytes, kept));
        self.kept_bytes += u64::from(bytes);
        self.next = self.kept.len();
        if self.deadline == Time::MAX {
            self.deadline = now + self.timeout;
        }
        number
    }

    /// Handles a message from the other end. A number that no stored packet has is old, and ignored.
    pub fn hears(&mut self, now: Time, message: RetryMessage) {
        let (RetryMessage::Ack(last) | RetryMessage::Nack(last)) = message;
        let come = usize::from(last.wrapping_sub(self.first).wrapping_add(1));
        if come > self.kept.len() {
            return;
        }
        for (bytes, _) in self.kept.drain(..come) {
            self.kept_bytes -= u64::from(bytes);
        }
        self.first = self.first.wrapping_add(come as u16);
        self.next = self.next.saturating_sub(come);
        if let RetryMessage::Nack(_) = message
            && !self.kept.is_empty()
        {
            self.next = 0;
            self.stats.replays += 1;
        }
        if come > 0 || self.next == 0 {
            self.deadline = if self.kept.is_empty() { Time::MAX } else { now + self.timeout };
        }
    }

    /// The next packet to send again, with its number, if any.
    pub fn replay(&mut self, now: Time) -> Option<(u16, &mut K)> {
        if now >= self.deadline && self.next == self.kept.len() {
            self.next = 0;
            self.stats.timeouts += 1;
        }
        let number = self.first.wrapping_add(self.next as u16);
        let (bytes, kept) = self.kept.get_mut(self.next)?;
        self.next += 1;
        self.deadline = now + self.timeout;
        self.stats.replayed.0 += 1;
        self.stats.replayed.1 += u64::from(*bytes);
        Some((number, kept))
    }

    /// From when on [`RetrySender::replay`] has something; [`Time::MAX`] for never.
    pub fn next_at(&self) -> Time {
        if self.next < self.kept.len() { Time::ZERO } else { self.deadline }
    }

    /// The link has gone down or come up: numbers start again, and stored packets are lost.
    pub fn reset(&mut self) {
        self.kept.clear();
        (self.kept_bytes, self.first, self.next, self.deadline) = (0, 0, 0, Time::MAX);
    }
}

/// The receiving end of a link.
#[derive(Clone, Copy, Debug, Default, crate::Saved)]
pub struct RetryReceiver {
    /// The number of the next packet.
    expected: u16,
    /// Whether a repetition was asked for since the last packet that arrived in order.
    asked: bool,
}

impl RetryReceiver {
    /// A packet with this number has arrived, damaged or not. Returns whether it is passed on, and the message to the
    /// sender.
    pub fn comes(&mut self, number: u16, damaged: bool) -> (bool, Option<RetryMessage>) {
        let last = self.expected.wrapping_sub(1);
        let ahead = number.wrapping_sub(self.expected);
        if ahead == 0 && !damaged {
            self.expected = self.expected.wrapping_add(1);
            self.asked = false;
            return (true, Some(RetryMessage::Ack(number)));
        }
        if ahead >= 1 << 15 {
            // It has come before, and the acknowledgement was lost.
            return (false, (!damaged && !self.asked).then_some(RetryMessage::Ack(last)));
        }
        let asks = !self.asked || ahead == 0;
        self.asked = true;
        (false, asks.then_some(RetryMessage::Nack(last)))
    }

    /// The link has gone down or come up.
    pub fn reset(&mut self) {
        *self = RetryReceiver::default();
    }
}

/// The messages that the receiving end of a link sends on the link back.
#[derive(crate::Saved)]
pub struct RetrySpeaker {
    spacing: Duration,
    /// The next message. One that asks is not replaced by one that does not.
    message: Option<RetryMessage>,
    /// From when on the next acknowledgement may go.
    ready_at: Time,
    /// Counters.
    pub stats: RetryStats,
}

impl RetrySpeaker {
    /// A speaker that leaves at least `spacing` between two acknowledgements.
    pub fn new(spacing: Duration) -> RetrySpeaker {
        RetrySpeaker { spacing, message: None, ready_at: Time::ZERO, stats: RetryStats::default() }
    }

    /// Queues a message. It replaces an earlier one, whose acknowledgement it includes, unless only the earlier one
    /// asks for packets.
    pub fn say(&mut self, message: RetryMessage) {
        let asks = matches!(self.message, Some(RetryMessage::Nack(_)));
        if !asks || matches!(message, RetryMessage::Nack(_)) {
            self.message = Some(message);
        }
    }

    /// The message that goes now, if any.
    pub fn next(&mut self, now: Time) -> Option<RetryMessage> {
        let message = self.message.filter(|_| self.next_at() <= now)?;
        self.message = None;
        self.ready_at = now + self.spacing;
        match message {
            RetryMessage::Ack(_) => self.stats.messages.0 += 1,
            RetryMessage::Nack(_) => self.stats.messages.1 += 1,
        }
        Some(message)
    }

    /// From when on there is a message to send; [`Time::MAX`] for never. A message that asks for packets does not wait.
    pub fn next_at(&self) -> Time {
        match self.message {
            None => Time::MAX,
            Some(RetryMessage::Ack(_)) => self.ready_at,
            Some(RetryMessage::Nack(_)) => Time::ZERO,
        }
    }

    /// The link has gone down or come up.
    pub fn reset(&mut self) {
        self.message = None;
    }
}

#[cfg(test)]
mod tests;
