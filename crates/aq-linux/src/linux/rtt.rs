//! The longest round trip of a device's TCP connections while nothing queues, as the kernel itself has measured it: the
//! least round trip (`tcpi_min_rtt`) of each connection whose own address is one of the device's, and the longest of
//! these. `sock_diag` (7) reports it over netlink, for one network namespace.

use std::net::IpAddr;

use rustix::net::{AddressFamily, netlink};
use units::Duration;

use super::netlink::{address, addresses, ask, attributes, link, request_all, u32_at, u64_at};

/// A connection counts once it has had this many bytes acknowledged: shorter ones matter to no share.
const LEAST_BYTES: u64 = 65_536;
/// Numbers and sizes of `linux/sock_diag.h`, `linux/inet_diag.h` and `linux/tcp.h`.
const REQUEST: usize = 56;
const BY_FAMILY: u16 = 20;
const TCP: u8 = 6;
const INFO: u16 = 2;
const ESTABLISHED: u32 = 1 << 1;
const MESSAGE: usize = 72;
const SOURCE_AT: usize = 8;
const DESTINATION_AT: usize = 24;
const BYTES_ACKED_AT: usize = 120;
const MIN_RTT_AT: usize = 148;

/// The measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measured {
    /// Connections that counted.
    pub connections: usize,
    /// The longest of their least round trips.
    pub longest: Duration,
}

/// Asks the kernel about the connections of a device in the namespace of this thread; none if none counts.
pub fn measure(device: &str) -> Result<Option<Measured>, String> {
    let own = link(device)?.map_or(Ok(Vec::new()), |link| addresses(link.index))?;
    let mut all: Option<Measured> = None;
    for family in [AddressFamily::INET, AddressFamily::INET6] {
        let wrong = |error: rustix::io::Errno| format!("round trips: sock_diag: {error}");
        for one in connections(family).map_err(wrong)? {
            // A connection to itself does not leave.
            if !own.contains(&one.source) || own.contains(&one.destination) || one.bytes_acked < LEAST_BYTES {
                continue;
            }
            let before = all.unwrap_or(Measured { connections: 0, longest: Duration::ZERO });
            all = Some(Measured {
                connections: before.connections + 1,
                longest: before.longest.max(Duration::from_us(u64::from(one.min_rtt_us))),
            });
        }
    }
    Ok(all)
}

/// The values that are read of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Connection {
    source: IpAddr,
    destination: IpAddr,
    bytes_acked: u64,
    min_rtt_us: u32,
}

fn connections(family: AddressFamily) -> rustix::io::Result<Vec<Connection>> {
    let mut all = Vec::new();
    let request = request_all(BY_FAMILY, &question(family));
    ask(Some(netlink::SOCK_DIAG), &request, |_, body| all.extend(connection(body)))?;
    Ok(all)
}

/// All established TCP connections of a family, with what TCP knows of them.
fn question(family: AddressFamily) -> [u8; REQUEST] {
    let mut bytes = [0; REQUEST];
    bytes[0] = family.as_raw() as u8;
    bytes[1] = TCP;
    bytes[2] = 1 << (INFO - 1);
    bytes[4..8].copy_from_slice(&ESTABLISHED.to_ne_bytes());
    bytes
}

fn connection(body: &[u8]) -> Option<Connection> {
    let family = *body.first()?;
    let (_, info) = attributes(body.get(MESSAGE..)?).find(|&(kind, _)| kind == INFO)?;
    // All ones until there was a sample.
    let min_rtt_us = u32_at(info, MIN_RTT_AT).filter(|&us| us != u32::MAX)?;
    let (source, destination) = (address(body, family, SOURCE_AT)?, address(body, family, DESTINATION_AT)?);
    Some(Connection { source, destination, bytes_acked: u64_at(info, BYTES_ACKED_AT)?, min_rtt_us })
}

#[cfg(test)]
mod tests;
