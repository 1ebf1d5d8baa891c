//! Routes in packets: three bits a hop, up to 42 hops (section 4.2).
//!
//! [`check`] bounds the length of routes while nothing has failed; routes drawn around failures are tested with
//! [`fits`].
//!
//! Most routes fit into the packet's label, which any switch reads. If switches have more than eight ports, as in a
//! Clos, a hop takes a byte there and a path has at most eight switches.

use fabric::Routing;
use node::Packet;
use node::packet::flags;
use units::PortId;

use super::header::Data;
use super::wire::WIDE;
use contract::NetworkView;

/// Hops of a route of 128 bits.
pub const HOPS_MAX: usize = 42;
/// Hops of a compact label, and of one with a byte a hop.
pub(super) const COMPACT_MAX: usize = 21;
pub(super) const WIDE_MAX: usize = 8;

/// Checks that a protocol's longest route fits.
pub(super) fn check(network: &NetworkView, routing: Routing) -> Result<(), String> {
    let shortest = network.site.data_rtts.iter().map(|of| usize::from(of.0)).max().unwrap_or(1);
    let switches = match (routing, &network.fabric.lattice) {
        (Routing::RandomPacketSpraying | Routing::DestinationTag, _) => shortest,
        (Routing::Wlb, Some(lattice)) => lattice.dims.iter().map(|&length| length as usize - 1).sum::<usize>() + 1,
        _ => 2 * shortest - 1,
    };
    let ports = network.fabric.ports.iter().map(Vec::len).max().unwrap_or(0);
    let (most, of) = if ports <= 8 { (HOPS_MAX, "8") } else { (WIDE_MAX, "256") };
    if switches <= most && ports <= 256 {
        return Ok(());
    }
    Err(format!(
        "routes of \"{}\" pass up to {switches} switches of up to {ports} ports; a packet has room for {most} of up to \
         {of}",
        routing.name()
    ))
}

/// Whether a packet has room for a route.
pub(super) fn fits(ports: &[PortId]) -> bool {
    ports.len() <= WIDE_MAX || ports.len() <= HOPS_MAX && ports.iter().all(|port| port.0 < 8)
}

/// Gives a data packet its route. False if it is too long ([`fits`]).
pub(super) fn set(packet: &mut Packet, data: &mut Data, ports: &[PortId]) -> bool {
    let bits_of = |ports: &[PortId], bits: u32| {
        ports.iter().rev().try_fold(0u128, |packed, port| {
            (u64::from(port.0) >> bits == 0).then_some(packed << bits | u128::from(port.0))
        })
    };
    match (bits_of(&ports[..ports.len().min(HOPS_MAX)], 3), ports.len()) {
        (Some(route), 0..=COMPACT_MAX) => {
            packet.flags |= flags::SOURCE_ROUTED | flags::COMPACT_ROUTE;
            packet.label = route as u64;
            data.rlen = ports.len() as u8;
        }
        (Some(route), 0..=HOPS_MAX) => {
            packet.flags |= flags::ROUTER_ALERT;
            data.route = [route as u64, (route >> 64) as u64];
            data.rlen = ports.len() as u8;
        }
        (None, 0..=WIDE_MAX) => {
            let Some(route) = bits_of(ports, 8) else { return false };
            packet.flags |= flags::SOURCE_ROUTED;
            packet.label = route as u64;
            data.rlen = ports.len() as u8 | WIDE;
        }
        _ => return false,
    }
    true
}

/// The port of a long route after this many hops.
pub(super) fn port(route: [u64; 2], hops: u8) -> Option<PortId> {
    let route = u128::from(route[1]) << 64 | u128::from(route[0]);
    route.checked_shr(3 * u32::from(hops)).map(|ports| PortId(ports as u32 & 7))
}

#[cfg(test)]
mod tests;
