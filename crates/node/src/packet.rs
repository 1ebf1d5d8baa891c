//! The packet of the project: one cache line, `Copy`, no payload, a typed header of the scheme that made it.

use bytemuck::Pod;
use units::{FlowId, HostId};

use crate::layout::Layout;
use crate::wire::{Malformed, Reader, Writer};

/// Highest priority; switches serve class 0 before class 1, and so on to 7 unless the scenario groups them.
pub const CLASSES: usize = 8;

/// The most switches that a packet may reach, unless its network's own paths are longer. At the last of them it is
/// lost, as by IP's time to live, which hosts set to 64 (RFC 1700) and every router lowers by one. What goes round in
/// circles while tables differ ends so.
pub const HOPS_MAX: u8 = 64;

/// A packet in flight. 64 bytes: it is copied from queue to queue and must not cost more than a cache line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, crate::Saved)]
#[repr(C, align(64))]
pub struct Packet {
    /// The scheme's own header, as raw words: see [`Packet::header`].
    header: [u64; 4],
    /// What switches read beside the addresses. With `SOURCE_ROUTED`: output port numbers, one byte a hop (three bits
    /// with `COMPACT_ROUTE`), first hop lowest. Without: the entities that it belongs to, see [`Packet::tags`]; or with
    /// `COMPACT_ROUTE` alone a flow label, see [`Packet::flow_label`].
    pub label: u64,
    /// The flow (or message) that this packet serves; ECMP hashes it with the addresses, as it would a 5-tuple.
    pub flow: FlowId,
    /// The host that sent it.
    pub src: HostId,
    /// The host that it goes to.
    pub dst: HostId,
    /// Virtual queueing delay gathered so far, in nanoseconds (Augmented Queue, section 3.3.2).
    pub virtual_delay_ns: u32,
    /// Bytes on the wire, every header counted.
    pub wire_bytes: u16,
    /// Bytes of the message in it.
    pub payload_bytes: u16,
    /// Priority class, 0 (first served) to 7.
    pub class: u8,
    /// [`flags`].
    pub flags: u8,
    /// Which of the run's transports made it: the index of the endpoint that takes it at each host.
    pub transport: u8,
    /// Switches passed so far.
    pub hops: u8,
}

/// Bits of [`Packet::flags`].
pub mod flags {
    /// The sender understands congestion marks (RFC 3168 ECT).
    pub const ECT: u8 = 1;
    /// Congestion experienced (RFC 3168 CE).
    pub const CE: u8 = 2;
    /// A switch has cut the payload off.
    pub const TRIMMED: u8 = 4;
    /// The packet's `label` decides its path.
    pub const SOURCE_ROUTED: u8 = 8;
    /// A frame between neighbours (see [`crate::link`]): it crosses one link.
    pub const LINK_FRAME: u8 = 16;
    /// It gathers or carries in-band telemetry (see [`crate::telemetry`]).
    pub const TELEMETRY: u8 = 32;
    /// Switches hand it to the part of its transport that they have (see [`crate::SwitchAgent`]). Of a frame: it keeps
    /// its place among packets (see [`crate::link::ordered_frame`]).
    pub const ROUTER_ALERT: u8 = 64;
    /// With `SOURCE_ROUTED`: three bits a hop, for switches of up to eight ports and paths of up to 21 (R2C2, section
    /// 4.2). Without: `label` is a flow label.
    pub const COMPACT_ROUTE: u8 = 128;
}

/// How nodes agree on who may send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Agreement {
    /// Senders and receivers are matched, in rounds (dcPIM).
    Matching,
    /// Bandwidth or times are reserved, at the network's nodes or at an arbiter (Harmony, Fastpass).
    Reservation,
    /// A receiver permits so many bytes or packets, or is asked to (Homa, pHost, NDP, UET).
    Grant,
}

/// What a scheme's packets say: an enum of its messages to whoever reads or writes one, plain words in a packet, bytes
/// on a real wire.
pub trait Header: Copy + std::fmt::Debug + crate::State {
    /// How it lies in a packet. At most 32 bytes.
    type Packed: Pod;

    /// The layout of the bytes that [`Header::emit_with`] writes, for readers of captures.
    const LAYOUT: Layout = Layout { messages: &[] };

    /// As it lies in a packet.
    fn pack(self) -> Self::Packed;

    /// Back from there. Only what [`Header::pack`] has made is ever handed in, since [`Header::parse`] refuses a
    /// message that there is not: whatever else a number of messages could be may be read as any of them.
    fn unpack(packed: Self::Packed) -> Self;

    /// Appends the wire form.
    fn emit(self, to: &mut Writer<'_>);

    /// Reads the wire form back. Any input may come from a socket: no panic.
    fn parse(from: &mut Reader<'_>) -> Result<Self, Malformed>;

    /// Where in its message the payload of a data packet with this header begins, in bytes: what a driver that carries
    /// real content must know. Anything for a packet without payload.
    fn payload_offset(self) -> u64 {
        0
    }

    /// Whether this message is one by which nodes agree on who may send, and how: for event logs.
    fn agreement(self) -> Option<Agreement> {
        None
    }

    /// Appends a packet with such a header as it travels, but for its content, which follows. By default the header's
    /// wire form; a scheme whose headers have the packet's addresses in them, or a checksum over its content, writes
    /// these too.
    fn emit_with(packet: &Packet, _content: &[u8], to: &mut Writer<'_>) {
        packet.header::<Self>().emit(to);
    }

    /// Reads back what [`Header::emit_with`] has written, the content behind it, into a packet whose other fields are
    /// there already. The content is left to be read. Any input may come from a socket: no panic.
    fn parse_with(from: &mut Reader<'_>, packet: &mut Packet) -> Result<(), Malformed> {
        packet.set_header(Self::parse(from)?);
        Ok(())
    }

    /// A link has inverted these bits of a packet, counted from its first. Returns whether the packet travels on with
    /// its changed header. It does if the scheme has a checksum of its own instead of the link's frame check sequence,
    /// and the checksum misses the error. By default the frame check sequence does.
    fn damage(_packet: &mut Packet, _bits: &[u32]) -> bool {
        false
    }
}

impl Packet {
    /// A packet of `flow` from `src` to `dst` carrying `header`; sizes, class and flags are the caller's to set.
    #[inline]
    pub fn new<H: Header>(flow: FlowId, src: HostId, dst: HostId, header: H) -> Packet {
        Packet { header: to_words(header.pack()), ..Packet::bare(flow, src, dst) }
    }

    /// A packet whose header is all zeros, for a reader of wires to fill in.
    #[inline]
    pub fn bare(flow: FlowId, src: HostId, dst: HostId) -> Packet {
        Packet {
            header: [0; 4],
            label: 0,
            flow,
            src,
            dst,
            virtual_delay_ns: 0,
            wire_bytes: 0,
            payload_bytes: 0,
            class: 0,
            flags: 0,
            transport: 0,
            hops: 0,
        }
    }

    /// The header as the scheme's own type. The caller's scheme made this packet: `transport` says so.
    #[inline]
    pub fn header<H: Header>(&self) -> H {
        const { assert!(size_of::<H::Packed>() <= 32, "a header takes at most 32 bytes") };
        H::unpack(bytemuck::pod_read_unaligned(&bytemuck::bytes_of(&self.header)[..size_of::<H::Packed>()]))
    }

    /// The header as raw words.
    pub(crate) fn words(&self) -> [u64; 4] {
        self.header
    }

    /// Replaces the header.
    #[inline]
    pub fn set_header<H: Header>(&mut self, header: H) {
        self.header = to_words(header.pack());
    }

    /// The AQ ids that it is tagged with for the ingress and the egress pipelines of switches, 0 for none (Augmented
    /// Queue, section 4.1). A source route takes their place.
    #[inline]
    pub fn tags(&self) -> [u32; 2] {
        let other = self.has(flags::SOURCE_ROUTED | flags::COMPACT_ROUTE);
        if other { [0, 0] } else { [self.label as u32, (self.label >> 32) as u32] }
    }

    /// The flow label (RFC 6437), which ECMP hashes beside addresses and flow; 0 without one.
    #[inline]
    pub fn flow_label(&self) -> u32 {
        let labelled = self.flags & (flags::SOURCE_ROUTED | flags::COMPACT_ROUTE) == flags::COMPACT_ROUTE;
        if labelled { self.label as u32 } else { 0 }
    }

    /// Gives it a flow label. It must neither be source-routed nor carry tags.
    #[inline]
    pub fn set_flow_label(&mut self, label: u32) {
        debug_assert!(!self.has(flags::SOURCE_ROUTED));
        self.flags |= flags::COMPACT_ROUTE;
        self.label = u64::from(label);
    }

    /// The output port that its own route names at the switch that it has come to; none beyond the route's end.
    #[inline]
    pub fn routed_to(&self) -> Option<u32> {
        let bits = if self.has(flags::COMPACT_ROUTE) { 3 } else { 8 };
        self.label.checked_shr(bits * u32::from(self.hops)).map(|ports| ports as u32 & ((1 << bits) - 1))
    }

    /// Tags it. It must not be source-routed.
    #[inline]
    pub fn set_tags(&mut self, [ingress, egress]: [u32; 2]) {
        debug_assert!(!self.has(flags::SOURCE_ROUTED));
        self.label = u64::from(egress) << 32 | u64::from(ingress);
    }

    /// Whether any bit of `mask` is set.
    #[inline]
    pub fn has(&self, mask: u8) -> bool {
        self.flags & mask != 0
    }
}

#[inline]
fn to_words<P: Pod>(packed: P) -> [u64; 4] {
    const { assert!(size_of::<P>() <= 32, "a header takes at most 32 bytes") };
    let mut words = [0u64; 4];
    bytemuck::bytes_of_mut(&mut words)[..size_of::<P>()].copy_from_slice(bytemuck::bytes_of(&packed));
    words
}

const _: () = assert!(size_of::<Packet>() == 64);
