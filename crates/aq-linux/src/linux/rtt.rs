//! The longest round trip of a device's TCP connections while nothing queues, as the kernel itself has measured it: the
//! least round trip (`tcpi_min_rtt`) of each connection whose own address is one of the device's, and the longest of
//! these. `sock_diag` (7) reports it over netlink, for one network namespace.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send, socket_with, sockopt,
};
use units::Duration;

use super::device::addresses;

/// A connection counts once it has had this many bytes acknowledged: shorter ones matter to no share.
const LEAST_BYTES: u64 = 65_536;
/// Numbers and sizes of `linux/netlink.h`, `linux/sock_diag.h`, `linux/inet_diag.h` and `linux/tcp.h`.
const HEADER: usize = 16;
const REQUEST: usize = 56;
const DONE: u16 = 3;
const ERROR: u16 = 2;
const BY_FAMILY: u16 = 20;
const DUMP: u16 = 0x301;
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
    let own = addresses(device)?;
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
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, Some(netlink::SOCK_DIAG))?;
    // The kernel answers at once; if it does not, the wait has an end.
    sockopt::set_socket_timeout(&socket, sockopt::Timeout::Recv, Some(std::time::Duration::from_secs(2)))?;
    send(&socket, &request(family), SendFlags::empty())?;
    let mut buffer = vec![0; 1 << 16];
    let mut all = Vec::new();
    loop {
        let (read, _) = recv(&socket, &mut buffer[..], RecvFlags::empty())?;
        if read == 0 || !take(buffer.get(..read).unwrap_or_default(), &mut all)? {
            return Ok(all);
        }
    }
}

/// All established TCP connections of a family, with what TCP knows of them.
fn request(family: AddressFamily) -> [u8; HEADER + REQUEST] {
    let mut bytes = [0; HEADER + REQUEST];
    bytes[..4].copy_from_slice(&((HEADER + REQUEST) as u32).to_ne_bytes());
    bytes[4..6].copy_from_slice(&BY_FAMILY.to_ne_bytes());
    bytes[6..8].copy_from_slice(&DUMP.to_ne_bytes());
    bytes[HEADER] = family.as_raw() as u8;
    bytes[HEADER + 1] = TCP;
    bytes[HEADER + 2] = 1 << (INFO - 1);
    bytes[HEADER + 4..HEADER + 8].copy_from_slice(&ESTABLISHED.to_ne_bytes());
    bytes
}

/// Reads the messages of one datagram. False once the kernel has said all.
fn take(mut bytes: &[u8], all: &mut Vec<Connection>) -> rustix::io::Result<bool> {
    while let (Some(length), Some(kind)) = (u32_at(bytes, 0), u16_at(bytes, 4)) {
        let length = length as usize;
        let Some(body) = bytes.get(HEADER..length) else { return Ok(false) };
        match kind {
            DONE => return Ok(false),
            ERROR => {
                let code = u32_at(body, 0).map_or(0, u32::cast_signed);
                return if code == 0 { Ok(false) } else { Err(rustix::io::Errno::from_raw_os_error(-code)) };
            }
            _ => all.extend(connection(body)),
        }
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    Ok(true)
}

fn connection(body: &[u8]) -> Option<Connection> {
    let family = *body.first()?;
    let mut attributes = body.get(MESSAGE..)?;
    while let (Some(length), Some(kind)) = (u16_at(attributes, 0), u16_at(attributes, 2)) {
        let length = usize::from(length);
        let info = attributes.get(4..length)?;
        if kind == INFO {
            let low = u64::from(u32_at(info, BYTES_ACKED_AT)?);
            let high = u64::from(u32_at(info, BYTES_ACKED_AT + 4)?);
            let bytes_acked = if cfg!(target_endian = "little") { high << 32 | low } else { low << 32 | high };
            // All ones until there was a sample.
            let min_rtt_us = u32_at(info, MIN_RTT_AT).filter(|&us| us != u32::MAX)?;
            let (source, destination) = (address(body, family, SOURCE_AT)?, address(body, family, DESTINATION_AT)?);
            return Some(Connection { source, destination, bytes_acked, min_rtt_us });
        }
        attributes = attributes.get(length.next_multiple_of(4)..)?;
    }
    None
}

fn address(body: &[u8], family: u8, at: usize) -> Option<IpAddr> {
    if family == AddressFamily::INET.as_raw() as u8 {
        let octets: [u8; 4] = body.get(at..at + 4)?.try_into().ok()?;
        return Some(Ipv4Addr::from(octets).into());
    }
    let octets: [u8; 16] = body.get(at..at + 16)?.try_into().ok()?;
    Some(Ipv6Addr::from(octets).to_canonical())
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

#[cfg(test)]
mod tests;
