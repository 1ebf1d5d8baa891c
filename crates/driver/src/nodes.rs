//! Nodes with what a driver keeps beside each.

use node::{Packet, Switch};
use run::Host;
use units::{FlowId, PerByte, Time, mix};

/// A host and its transmitters.
#[derive(node::State)]
#[state(given(()))]
pub struct HostSlot {
    /// The host.
    pub host: Host,
    /// Its first link's sending end.
    #[state(built("it never changes"))]
    pub link_tx: u32,
    /// The rate of its link.
    #[state(skip("settings"))]
    pub per_byte: PerByte,
    /// Until when its transmitter is busy.
    #[state(expired)]
    pub free_at: Time,
    /// Whether its link works.
    pub up: bool,
    /// Packets and bytes lost because its own link was down.
    #[state(count)]
    pub lost: (u64, u64),
    /// Frames of the flow control that it has sent.
    #[state(count)]
    pub sent_frames: u64,
    /// Where it has several links, its ports; their outlets are consecutive, and of the above only the first outlet and
    /// what all ports have lost count.
    pub ports: Option<Box<[HostPort]>>,
}

/// A port of a host with several links.
#[derive(node::State)]
pub struct HostPort {
    /// The rate of its link.
    #[state(skip("settings"))]
    pub per_byte: PerByte,
    /// Until when its transmitter is busy.
    #[state(expired)]
    pub free_at: Time,
    /// Whether its link works.
    pub up: bool,
    /// Packets and bytes that it took from the host, those for its dead link included.
    #[state(count)]
    pub sent: (u64, u64),
    /// Packets and bytes lost because its link was down.
    #[state(count)]
    pub lost: (u64, u64),
    /// Frames of the flow control that it has sent.
    #[state(count)]
    pub sent_frames: u64,
}

/// A switch, and a digest of the packets that arrived at it.
#[derive(node::Saved)]
pub struct SwitchSlot {
    /// Its id in the fabric.
    #[state(built("it never changes"))]
    pub id: u32,
    /// The switch.
    pub switch: Switch,
    /// Its ports' outlets are consecutive from here.
    #[state(built("it never changes"))]
    pub first_link_tx: u32,
    /// Digest of all that came in.
    pub digest: u64,
}

/// Takes one arrival into a node's digest.
#[inline]
pub(crate) fn hash_arrival(digest: u64, now: Time, packet: &Packet) -> u64 {
    hash_what(digest, now, what(packet))
}

/// The fields of a packet that go into a digest.
#[inline]
fn what(packet: &Packet) -> u64 {
    what_of(packet.flow, size_of(packet))
}

/// Those fields, except the flow.
#[inline]
pub(crate) fn size_of(packet: &Packet) -> u64 {
    u64::from(packet.wire_bytes) << 16 | u64::from(packet.class) << 8 | u64::from(packet.flags)
}

/// The digest's fields of a packet of this size and flow.
#[inline]
pub(crate) fn what_of(flow: FlowId, size: u64) -> u64 {
    (u64::from(flow.0) << 32 ^ size).rotate_left(17)
}

/// Takes the arrival of a packet with this word into a node's digest.
#[inline]
pub(crate) fn hash_what(digest: u64, now: Time, what: u64) -> u64 {
    (digest.rotate_left(23) ^ now.ps() ^ what).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

/// The digest of a run: the sum over all nodes of their digests, each mixed with the node's id, so that neither order
/// nor the cut into parts matters.
pub fn digest<'a>(switches: impl Iterator<Item = &'a SwitchSlot>, hosts: impl Iterator<Item = &'a HostSlot>) -> u64 {
    let switches = switches.map(|slot| mix(slot.digest, u64::from(slot.id) << 32));
    let hosts = hosts.map(|slot| mix(slot.host.digest, u64::from(slot.host.id().0)));
    switches.chain(hosts).fold(0, u64::wrapping_add)
}
