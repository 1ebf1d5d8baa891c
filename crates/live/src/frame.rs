//! A packet as a datagram.
//!
//! Big-endian, in this order: magic and version; the directed link and the datagram's number on it; when it has left the
//! sender; what every packet of the house carries; its journey so far; the scheme's header in the scheme's own wire form; what
//! it has gathered, if it is flagged for that; the content; a CRC-32 (IEEE 802.3) over all that. The checksum is the link's own, as a frame check sequence is: what
//! the application's bytes must be is checked where they arrive, against [`content`](crate::content).
//!
//! Anything may come in by a socket. [`Codec::parse`] refuses what is not exactly a frame with a [`Refusal`], and never
//! panics.

use catalogue::{LinkControl, Transport};
use node::packet::flags::{LINK_FRAME, TELEMETRY};
use node::{Packet, Telemetry};
use run::Journey;
use units::{Duration, FlowId, HostId, LinkId, Time};

const MAGIC: [u8; 4] = *b"CLWY";
const VERSION: u8 = 3;
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
    /// When its last bit (under cut-through: its head) has left the sender, by the run's clock.
    pub gone: Time,
    /// Cut-through: how long after its head its tail leaves, in picoseconds.
    pub tail_lag_ps: u32,
    /// The packet.
    pub packet: Packet,
    /// Its way so far.
    pub journey: Journey,
    /// The queue that it left the sender from, where the flow control numbers queues.
    pub queue: u16,
    /// What it has gathered or carries; nothing, unless it is flagged for that.
    pub telemetry: Telemetry,
    /// The application's bytes in it; as many as `packet.payload_bytes`.
    pub content: &'a [u8],
}

/// Why bytes from a socket were dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[repr(usize)]
pub enum Refusal {
    /// Shorter or longer than what it says.
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
}

impl Refusal {
    /// All of them, in order.
    pub const ALL: [Refusal; 12] = [
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
    ];
}

/// What one must know of a run to read and write its frames.
#[derive(Clone, Copy, Debug)]
pub struct Codec<'a> {
    /// The run's transports; packets name them by index.
    pub transports: &'a [Transport],
    /// The run's flow control, whose frames cross one link each.
    pub flow_control: &'a LinkControl,
    /// Hosts of the fabric.
    pub hosts: u32,
    /// Directed links of the fabric.
    pub links: u32,
}

impl Codec<'_> {
    /// Writes a frame over `out`. Its packet names one of the run's transports.
    pub fn emit(&self, frame: &Frame<'_>, out: &mut Vec<u8>) {
        let packet = &frame.packet;
        debug_assert_eq!(frame.content.len(), usize::from(packet.payload_bytes));
        out.clear();
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&[VERSION, packet.transport, packet.class, packet.flags, packet.hops]);
        out.extend_from_slice(&frame.link.0.to_be_bytes());
        out.extend_from_slice(&frame.number.to_be_bytes());
        out.extend_from_slice(&frame.gone.ps().to_be_bytes());
        out.extend_from_slice(&frame.tail_lag_ps.to_be_bytes());
        out.extend_from_slice(&frame.queue.to_be_bytes());
        for word in [packet.flow.0, packet.src.0, packet.dst.0, packet.virtual_delay_ns] {
            out.extend_from_slice(&word.to_be_bytes());
        }
        out.extend_from_slice(&packet.wire_bytes.to_be_bytes());
        out.extend_from_slice(&packet.payload_bytes.to_be_bytes());
        out.extend_from_slice(&packet.label.to_be_bytes());
        let Journey { sent, queued: [up, down, last], serialised } = frame.journey;
        for ps in [sent.ps(), up.ps(), down.ps(), last.ps(), serialised.ps()] {
            out.extend_from_slice(&ps.to_be_bytes());
        }
        match packet.has(LINK_FRAME) {
            true => self.flow_control.emit_frame(packet, out),
            false => self.transports[usize::from(packet.transport)].emit_header(packet, frame.content, out),
        }
        if packet.has(TELEMETRY) {
            frame.telemetry.emit(out);
        }
        out.extend_from_slice(frame.content);
        let checksum = crc32fast::hash(out);
        out.extend_from_slice(&checksum.to_be_bytes());
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
        let mut fields = Fields(body.get(5..).ok_or(Refusal::Length)?);
        let [transport, class, flags, hops] = fields.take()?;
        let link = LinkId(fields.u32()?);
        let number = fields.u64()?;
        let gone = Time::from_ps(fields.u64()?);
        let tail_lag_ps = fields.u32()?;
        let queue = fields.u16()?;
        let (flow, src) = (FlowId(fields.u32()?), HostId(fields.u32()?));
        let (dst, virtual_delay_ns) = (HostId(fields.u32()?), fields.u32()?);
        let (wire_bytes, payload_bytes) = (fields.u16()?, fields.u16()?);
        let label = fields.u64()?;
        let sent = Time::from_ps(fields.u64()?);
        let queued = [fields.duration()?, fields.duration()?, fields.duration()?];
        let serialised = fields.duration()?;

        let scheme = self.transports.get(usize::from(transport)).ok_or(Refusal::Transport)?;
        if link.0 >= self.links {
            return Err(Refusal::Link);
        }
        let between_neighbours = flags & LINK_FRAME != 0;
        if !between_neighbours && (src.0 >= self.hosts || dst.0 >= self.hosts) {
            return Err(Refusal::Host);
        }
        if class > 7 || wire_bytes == 0 || payload_bytes > wire_bytes {
            return Err(Refusal::Packet);
        }
        let spent = queued.into_iter().chain([serialised]);
        let spent = spent.fold(sent, |at, span| at.saturating_add(span));
        if spent > gone || gone == Time::MAX {
            return Err(Refusal::Times);
        }
        let mut packet = Packet::bare(flow, src, dst);
        packet.label = label;
        packet.virtual_delay_ns = virtual_delay_ns;
        packet.wire_bytes = wire_bytes;
        packet.payload_bytes = payload_bytes;
        packet.class = class;
        packet.flags = flags;
        packet.transport = transport;
        packet.hops = hops;
        let header = match between_neighbours {
            true => self.flow_control.parse_frame(fields.0, &mut packet),
            false => scheme.parse_header(fields.0, &mut packet),
        };
        let taken = header.map_err(|_| Refusal::Header)?;
        let mut content = fields.0.get(taken..).ok_or(Refusal::Header)?;
        let mut telemetry = Telemetry::default();
        if packet.has(TELEMETRY) {
            (telemetry, content) = Telemetry::parse(content).ok_or(Refusal::Header)?;
        }
        if content.len() != usize::from(payload_bytes) {
            return Err(Refusal::Length);
        }
        let journey = Journey { sent, queued, serialised };
        Ok(Frame { link, number, gone, tail_lag_ps, packet, journey, queue, telemetry, content })
    }
}

/// The fields of a frame that have not been read yet.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], Refusal> {
        let (field, rest) = self.0.split_first_chunk::<N>().ok_or(Refusal::Length)?;
        self.0 = rest;
        Ok(*field)
    }

    fn u16(&mut self) -> Result<u16, Refusal> {
        self.take().map(u16::from_be_bytes)
    }

    fn u32(&mut self) -> Result<u32, Refusal> {
        self.take().map(u32::from_be_bytes)
    }

    fn u64(&mut self) -> Result<u64, Refusal> {
        self.take().map(u64::from_be_bytes)
    }

    fn duration(&mut self) -> Result<Duration, Refusal> {
        self.u64().map(Duration::from_ps)
    }
}
