//! A packet as a datagram.
//!
//! Big-endian, in this order: magic and version; the directed link and the datagram's number on it; when it has left
//! the sender, from which queue, and its number under link-level retry; the fields that every packet has; its journey
//! so far; the scheme's header in the scheme's own wire format; the telemetry that it has gathered, if it is flagged
//! for that; the content; a CRC-32 (IEEE 802.3) over all that. The checksum protects the link, as a frame check
//! sequence does. The application's bytes are checked where they arrive, against [`content`](crate::content).
//!
//! Anything may come in by a socket. [`Codec::parse`] refuses what is not exactly a frame with a [`Refusal`], and never
//! panics.

use catalogue::{LinkControl, Sharing, Transport};
use node::packet::flags::{LINK_FRAME, TELEMETRY, TRIMMED};
use node::pool::TailLag;
use node::retry::RetryMessage;
use node::wire::{Malformed, Reader, Writer};
use node::{Header, Packet, Telemetry};
use run::Journey;
use units::{Duration, FlowId, HostId, LinkId, Time};

use crate::attach::FrameSlot;
use crate::attach::ip::is_packet;

/// What every frame begins with.
pub const MAGIC: [u8; 4] = *b"CLWY";
/// The version of the format, behind that.
pub const VERSION: u8 = 4;
const CHECKSUM_BYTES: usize = 4;

/// The longest frame that a packet can need: what fits into a UDP datagram over IPv4.
pub const FRAME_BYTES_MAX: usize = 65_507;

/// A packet on a link, with what the sending node tells the receiving one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Frame<'a> {
    /// The directed link that it is on.
    pub link: LinkId,
    /// How many frames have been put on that link before it.
    pub number: u64,
    /// When its last bit (under cut-through: its head) has left the sender, by the run's clock, and the random time
    /// that a host at the link's end takes for it.
    pub gone: Time,
    /// Cut-through: how long after its head its tail leaves.
    pub tail_lag: TailLag,
    /// The packet.
    pub packet: Packet,
    /// Its way so far.
    pub journey: Journey,
    /// The queue that it left the sender from, where the flow control numbers queues.
    pub queue: u16,
    /// Its number on the link, under link-level retry; otherwise 0.
    pub retry: u16,
    /// What it has gathered or carries; nothing, unless it is flagged for that.
    pub telemetry: Telemetry,
    /// The application's bytes in it; as many as `packet.payload_bytes`.
    pub content: &'a [u8],
}

/// Why bytes from a socket were dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[repr(usize)]
pub enum Refusal {
    /// Shorter or longer than its fields say.
    #[error("length")]
    Length,
    /// Not ours at all.
    #[error("magic")]
    Magic,
    /// Ours, of another version.
    #[error("version")]
    Version,
    /// Damaged.
    #[error("checksum")]
    Checksum,
    /// There is no such link, or it doesn't lead here.
    #[error("link")]
    Link,
    /// There is no such transport.
    #[error("transport")]
    Transport,
    /// There is no such host.
    #[error("host")]
    Host,
    /// There is no such class, or the sizes can't be.
    #[error("packet")]
    Packet,
    /// The scheme can't read its header.
    #[error("header")]
    Header,
    /// Times that do not add up, or that have not come yet.
    #[error("times")]
    Times,
    /// A frame, but not from the socket of the node at the link's other end.
    #[error("stranger")]
    Stranger,
    /// A frame that has come in before, or was overtaken.
    #[error("repeated")]
    Repeated,
    /// A process says that it has written or read more than there is room for.
    #[error("index")]
    Index,
    /// A process has read nothing for long, and gets nothing more.
    #[error("stalled")]
    Stalled,
}

impl Refusal {
    /// All of them, in order.
    pub const ALL: [Refusal; 14] = [
        Refusal::Length,
        Refusal::Magic,
        Refusal::Version,
        Refusal::Checksum,
        Refusal::Link,
        Refusal::Transport,
        Refusal::Host,
        Refusal::Packet,
        Refusal::Header,
        Refusal::Times,
        Refusal::Stranger,
        Refusal::Repeated,
        Refusal::Index,
        Refusal::Stalled,
    ];
}

/// What one must know of a run to read and write its frames.
#[derive(Clone, Copy, Debug)]
pub struct Codec<'a> {
    /// The run's transports; packets name them by index.
    pub transports: &'a [Transport],
    /// The run's flow control, whose frames cross one link each.
    pub flow_control: &'a LinkControl,
    /// How entities share the run's network; a mechanism may have packets of its own.
    pub sharing: &'a Sharing,
    /// Whether links repeat what is damaged, and have messages for that.
    pub retry: bool,
    /// The number that packets of attached hosts have for a transport, if hosts are attached.
    pub outside: Option<u8>,
    /// Hosts of the fabric.
    pub hosts: u32,
    /// Directed links of the fabric.
    pub links: u32,
}

impl Codec<'_> {
    /// Writes a frame over `out`. Its packet names one of the run's transports, or that of limiters' own.
    pub fn emit(&self, frame: &Frame<'_>, out: &mut Vec<u8>) {
        debug_assert_eq!(frame.content.len(), usize::from(frame.packet.payload_bytes));
        out.clear();
        let mut to = Writer::new(out);
        to.bytes(&MAGIC);
        to.u8(VERSION);
        self.emit_body(frame, &mut to);
        let checksum = crc32fast::hash(to.written());
        to.u32(checksum);
    }

    /// Writes what is between version and checksum: for memory, which damages nothing. The content may be missing.
    pub fn emit_body(&self, frame: &Frame<'_>, to: &mut Writer<'_>) {
        let packet = &frame.packet;
        to.bytes(&[packet.transport, packet.class, packet.flags, packet.hops]);
        to.u32(frame.link.0);
        to.u64(frame.number);
        to.u64(frame.gone.ps());
        to.u32(frame.tail_lag.bits());
        to.u16(frame.queue);
        to.u16(frame.retry);
        for word in [packet.flow.0, packet.src.0, packet.dst.0, packet.virtual_delay_ns] {
            to.u32(word);
        }
        to.u16(packet.wire_bytes);
        to.u16(packet.payload_bytes);
        to.u64(packet.label);
        let Journey { sent, queued: [up, down, last], serialised } = frame.journey;
        for ps in [sent.ps(), up.ps(), down.ps(), last.ps(), serialised.ps()] {
            to.u64(ps);
        }
        if let Some(message) = RetryMessage::of(packet) {
            message.emit(to);
        } else if packet.has(LINK_FRAME) {
            self.flow_control.emit_frame(packet, to);
        } else if self.outside == Some(packet.transport) {
            packet.header::<FrameSlot>().emit(to);
        } else if let Some(transport) = self.transports.get(usize::from(packet.transport)) {
            transport.emit_header(packet, frame.content, to);
        } else if let Some(limiters) = self.sharing.as_scheme() {
            limiters.emit_header(packet, to);
        }
        if packet.has(TELEMETRY) {
            frame.telemetry.emit(to);
        }
        to.bytes(frame.content);
    }

    /// Reads a frame back.
    pub fn parse<'a>(&self, bytes: &'a [u8]) -> Result<Frame<'a>, Refusal> {
        if bytes.get(..4).ok_or(Refusal::Length)? != MAGIC {
            return Err(Refusal::Magic);
        }
        if *bytes.get(4).ok_or(Refusal::Length)? != VERSION {
            return Err(Refusal::Version);
        }
        let (body, checksum) = bytes.split_last_chunk::<CHECKSUM_BYTES>().ok_or(Refusal::Length)?;
        if crc32fast::hash(body) != u32::from_be_bytes(*checksum) {
            return Err(Refusal::Checksum);
        }
        let frame = self.parse_body(body.get(5..).ok_or(Refusal::Length)?)?;
        if frame.content.len() != usize::from(frame.packet.payload_bytes) {
            return Err(Refusal::Length);
        }
        Ok(frame)
    }

    /// Reads what is between version and checksum. The content is there whole, or missing. That of an attached host's
    /// packet is an IP packet, unless a switch has trimmed it.
    pub fn parse_body<'a>(&self, body: &'a [u8]) -> Result<Frame<'a>, Refusal> {
        let mut from = Reader::new(body, "frame");
        let mut frame = parse_fields(&mut from).map_err(|_| Refusal::Length)?;
        self.check(&frame)?;
        let header = if is_retry(&frame.packet) {
            RetryMessage::parse(&mut from).map(|message| frame.packet.set_header(message))
        } else if frame.packet.has(LINK_FRAME) {
            self.flow_control.parse_frame(&mut from, &mut frame.packet)
        } else if self.outside == Some(frame.packet.transport) {
            FrameSlot::parse(&mut from).map(|place| frame.packet.set_header(place))
        } else if let Some(transport) = self.transports.get(usize::from(frame.packet.transport)) {
            transport.parse_header(&mut from, &mut frame.packet)
        } else {
            let limiters = self.sharing.as_scheme().ok_or(Refusal::Transport)?;
            limiters.parse_header(&mut from, &mut frame.packet)
        };
        header.map_err(|_| Refusal::Header)?;
        if frame.packet.has(TELEMETRY) {
            frame.telemetry = Telemetry::parse(&mut from).map_err(|_| Refusal::Header)?;
        }
        frame.content = from.rest();
        if !frame.content.is_empty() && frame.content.len() != usize::from(frame.packet.payload_bytes) {
            return Err(Refusal::Length);
        }
        let packet = &frame.packet;
        let outside = self.outside == Some(packet.transport) && !packet.has(LINK_FRAME) && !packet.has(TRIMMED);
        if outside && !is_packet(frame.content) {
            return Err(Refusal::Packet);
        }
        Ok(frame)
    }

    /// Whether there can be such a packet on such a link at such a time.
    fn check(&self, frame: &Frame<'_>) -> Result<(), Refusal> {
        let packet = &frame.packet;
        let limiters = self.sharing.as_scheme().is_some_and(|scheme| scheme.requirements().is_some());
        let known = usize::from(packet.transport) < self.transports.len() + usize::from(limiters)
            || self.outside == Some(packet.transport);
        if !known && !is_retry(packet) || !self.retry && (is_retry(packet) || frame.retry != 0) {
            return Err(Refusal::Transport);
        }
        if frame.link.0 >= self.links {
            return Err(Refusal::Link);
        }
        if !packet.has(LINK_FRAME) && (packet.src.0 >= self.hosts || packet.dst.0 >= self.hosts) {
            return Err(Refusal::Host);
        }
        if packet.class > 7 || packet.wire_bytes == 0 || packet.payload_bytes > packet.wire_bytes {
            return Err(Refusal::Packet);
        }
        let Journey { sent, queued, serialised } = frame.journey;
        let spent = queued.into_iter().chain([serialised]);
        let spent = spent.fold(sent, |at, span| at.saturating_add(span));
        if spent > frame.gone || frame.gone == Time::MAX {
            return Err(Refusal::Times);
        }
        Ok(())
    }
}

/// Whether it says that it is a message of link-level retry, whatever it has for a header.
fn is_retry(packet: &Packet) -> bool {
    let mark = RetryMessage::Ack(0).packet();
    packet.has(LINK_FRAME) && packet.transport == mark.transport
}

/// What a frame begins with, behind magic and version and up to its scheme's header.
fn parse_fields<'a>(from: &mut Reader<'_>) -> Result<Frame<'a>, Malformed> {
    let [transport, class, flags, hops] = from.array()?;
    let (link, number) = (LinkId(from.u32()?), from.u64()?);
    let (gone, tail_lag) = (Time::from_ps(from.u64()?), TailLag::from_bits(from.u32()?));
    let (queue, retry) = (from.u16()?, from.u16()?);
    let (flow, src, dst) = (FlowId(from.u32()?), HostId(from.u32()?), HostId(from.u32()?));
    let mut packet = Packet::bare(flow, src, dst);
    packet.virtual_delay_ns = from.u32()?;
    packet.wire_bytes = from.u16()?;
    packet.payload_bytes = from.u16()?;
    packet.label = from.u64()?;
    packet.class = class;
    packet.flags = flags;
    packet.transport = transport;
    packet.hops = hops;
    let sent = Time::from_ps(from.u64()?);
    let mut duration = || from.u64().map(Duration::from_ps);
    let journey = Journey { sent, queued: [duration()?, duration()?, duration()?], serialised: duration()? };
    let telemetry = Telemetry::default();
    Ok(Frame { link, number, gone, tail_lag, packet, journey, queue, retry, telemetry, content: &[] })
}
