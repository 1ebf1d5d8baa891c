//! Netlink: the kernel's answers about devices, their addresses and counters, and its news of them; for the namespace
//! in which a socket was opened.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType, bind, netlink, recv, send, socket_with,
    sockopt,
};

/// Numbers and sizes of `linux/netlink.h`, `linux/rtnetlink.h`, `linux/if_link.h` and `linux/if_addr.h`.
pub const HEADER: usize = 16;
const ERROR: u16 = 2;
const DONE: u16 = 3;
const REQUEST: u16 = 0x1;
const ACKNOWLEDGE: u16 = 0x4;
const ALL: u16 = 0x300;
const NEW_LINK: u16 = 16;
const GET_LINK: u16 = 18;
const GET_ADDRESS: u16 = 22;
const LINK_BODY: usize = 16;
const ADDRESS_BODY: usize = 8;
/// An attribute's kind without its flags.
const KIND: u16 = 0x3fff;
const NAME: u16 = 3;
const PEER: u16 = 5;
const INFO: u16 = 18;
const STATISTICS: u16 = 23;
const PEER_NAMESPACE: u16 = 37;
const INFO_KIND: u16 = 1;
const INFO_MASTER: u16 = 4;
const LOCAL: u16 = 2;
/// The group of news of devices, as a bit.
const GROUP_LINK: u32 = 1;
const UP: u32 = 1;

/// Packets and bytes of a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Packets.
    pub packets: u64,
    /// Bytes.
    pub bytes: u64,
}

/// A device, as the kernel describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Link {
    /// Its number in its namespace.
    pub index: u32,
    /// Its present name.
    pub name: String,
    /// "veth", "bridge" and so on; empty for hardware.
    pub kind: String,
    /// The kind of its master; empty for none.
    pub port_of: String,
    /// Its kind of link header (`ARPHRD_`).
    pub header: u16,
    /// Whether it is up.
    pub up: bool,
    /// The number of its other end, of a veth pair that of the peer.
    pub peer: Option<u32>,
    /// Whether that is in another namespace.
    pub peer_is_elsewhere: bool,
    /// Packets that came in by it.
    pub received: Count,
    /// Packets that left by it.
    pub sent: Count,
}

impl Link {
    /// From the body of a message.
    fn read(body: &[u8]) -> Option<Link> {
        let mut link = Link {
            index: u32_at(body, 4)?,
            header: u16_at(body, 2)?,
            up: u32_at(body, 8)? & UP != 0,
            ..Link::default()
        };
        for (kind, value) in attributes(body.get(LINK_BODY..)?) {
            match kind {
                NAME => link.name = text(value),
                PEER => link.peer = u32_at(value, 0),
                PEER_NAMESPACE => link.peer_is_elsewhere = true,
                INFO => {
                    for (kind, value) in attributes(value) {
                        match kind {
                            INFO_KIND => link.kind = text(value),
                            INFO_MASTER => link.port_of = text(value),
                            _ => {}
                        }
                    }
                }
                STATISTICS => {
                    let at = |place: usize| u64_at(value, 8 * place).unwrap_or(0);
                    link.received = Count { packets: at(0), bytes: at(2) };
                    link.sent = Count { packets: at(1), bytes: at(3) };
                }
                _ => {}
            }
        }
        (!link.name.is_empty()).then_some(link)
    }
}

/// All devices of this thread's namespace.
pub fn links() -> Result<Vec<Link>, String> {
    let mut all = Vec::new();
    ask(None, &request(GET_LINK, ALL, &[0; LINK_BODY]), |kind, body| {
        if kind == NEW_LINK {
            all.extend(Link::read(body));
        }
    })
    .map_err(|error| format!("devices: netlink: {error}"))?;
    Ok(all)
}

/// The device of a name in this thread's namespace; none if there is none.
pub fn link(name: &str) -> Result<Option<Link>, String> {
    let mut body = vec![0; LINK_BODY];
    body.extend((name.len() as u16 + 5).to_ne_bytes());
    body.extend(NAME.to_ne_bytes());
    body.extend(name.as_bytes());
    body.push(0);
    body.resize(body.len().next_multiple_of(4), 0);
    let mut found = None;
    let asked = ask(None, &request(GET_LINK, ACKNOWLEDGE, &body), |kind, body| {
        if kind == NEW_LINK {
            found = Link::read(body);
        }
    });
    match asked {
        Ok(()) => Ok(found),
        Err(Errno::NODEV) => Ok(None),
        Err(error) => Err(format!("{name}: netlink: {error}")),
    }
}

/// The addresses of the device with a number in this thread's namespace.
pub fn addresses(index: u32) -> Result<Vec<IpAddr>, String> {
    let mut all = Vec::new();
    ask(None, &request(GET_ADDRESS, ALL, &[0; ADDRESS_BODY]), |_, body| {
        if u32_at(body, 4) == Some(index)
            && let Some(family) = body.first()
        {
            // A peer's address comes first, if there is one.
            let of = |wanted: u16| {
                attributes(body.get(ADDRESS_BODY..).unwrap_or_default()).find(|&(kind, _)| kind == wanted)
            };
            all.extend(of(LOCAL).or_else(|| of(1)).and_then(|(_, value)| address(value, *family, 0)));
        }
    })
    .map_err(|error| format!("addresses: netlink: {error}"))?;
    Ok(all)
}

/// A socket that becomes readable when a device of this thread's namespace is made, renamed, changed or removed.
pub fn news() -> Result<OwnedFd, String> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, None);
    let wrong = |error: Errno| format!("news of devices: netlink: {error}");
    let socket = socket.map_err(wrong)?;
    bind(&socket, &netlink::SocketAddrNetlink::new(0, GROUP_LINK)).map_err(wrong)?;
    Ok(socket)
}

/// Takes what a socket of news has; says whether there was any. News that was lost because there was too much counts,
/// too.
pub fn drain(socket: impl AsFd) -> bool {
    let mut buffer = vec![0; 1 << 15];
    let mut any = false;
    loop {
        match recv(&socket, &mut buffer[..], RecvFlags::DONTWAIT) {
            Ok((0, _)) => return any,
            Ok(_) | Err(Errno::NOBUFS | Errno::INTR) => any = true,
            Err(_) => return any,
        }
    }
}

/// A message of a kind, with flags beside that of a request.
pub fn request(kind: u16, flags: u16, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; HEADER];
    bytes[..4].copy_from_slice(&((HEADER + body.len()) as u32).to_ne_bytes());
    bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
    bytes[6..8].copy_from_slice(&(REQUEST | flags).to_ne_bytes());
    bytes.extend(body);
    bytes
}

/// The same, for all objects of a kind.
pub fn request_all(kind: u16, body: &[u8]) -> Vec<u8> {
    request(kind, ALL, body)
}

/// Sends a request and hands over the answer's messages, by kind and body.
pub fn ask(protocol: Option<Protocol>, request: &[u8], mut each: impl FnMut(u16, &[u8])) -> Result<(), Errno> {
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, protocol)?;
    // The kernel answers at once; if it does not, the wait has an end.
    sockopt::set_socket_timeout(&socket, sockopt::Timeout::Recv, Some(std::time::Duration::from_secs(2)))?;
    send(&socket, request, SendFlags::empty())?;
    let mut buffer = vec![0; 1 << 16];
    loop {
        let (read, _) = recv(&socket, &mut buffer[..], RecvFlags::empty())?;
        if read == 0 || !take(buffer.get(..read).unwrap_or_default(), &mut each)? {
            return Ok(());
        }
    }
}

/// Reads the messages of one datagram. False once the kernel has said all.
pub fn take(mut bytes: &[u8], each: &mut impl FnMut(u16, &[u8])) -> Result<bool, Errno> {
    while let (Some(length), Some(kind)) = (u32_at(bytes, 0), u16_at(bytes, 4)) {
        let length = length as usize;
        let Some(body) = bytes.get(HEADER..length) else { return Ok(false) };
        match kind {
            DONE => return Ok(false),
            ERROR => {
                let code = u32_at(body, 0).map_or(0, u32::cast_signed);
                return if code == 0 { Ok(false) } else { Err(Errno::from_raw_os_error(-code)) };
            }
            _ => each(kind, body),
        }
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    Ok(true)
}

/// Attributes, by kind and value, until one is malformed.
pub fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let (length, kind) = (usize::from(u16_at(bytes, 0)?), u16_at(bytes, 2)?);
        let value = bytes.get(4..length)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind & KIND, value))
    })
}

/// An address of a family at a place.
pub fn address(bytes: &[u8], family: u8, at: usize) -> Option<IpAddr> {
    if family == AddressFamily::INET.as_raw() as u8 {
        let octets: [u8; 4] = bytes.get(at..at + 4)?.try_into().ok()?;
        return Some(Ipv4Addr::from(octets).into());
    }
    let octets: [u8; 16] = bytes.get(at..at + 16)?.try_into().ok()?;
    Some(Ipv6Addr::from(octets).to_canonical())
}

fn text(value: &[u8]) -> String {
    String::from_utf8_lossy(value.split(|&byte| byte == 0).next().unwrap_or_default()).into_owned()
}

/// A number at a place.
pub fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

/// A number at a place.
pub fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// A number at a place.
pub fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

#[cfg(test)]
mod tests;
