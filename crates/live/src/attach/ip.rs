//! The frames that a device of the machine hands over: an IP packet after a virtio header (OASIS virtio 1.2, section
//! 5.1.6).
//!
//! A kernel that segments late (GSO) hands over up to 64 KB of TCP at a time, with one set of headers and without
//! checksum. [`Packets`] is such a frame, and writes the packets of which it consists, each into its own place: headers
//! copied and counted on, checksums complete. Nothing is written twice.
//!
//! Any program on the machine may write anything to a device. [`Packets::read`] refuses what is not exactly a packet
//! with a [`Refused`], and never panics.

pub(crate) use driver::capture::internet::{add, checksum, fold, seal_v4};
pub use driver::capture::internet::{ecn, mark};

/// The length of the virtio header in front of each frame.
pub const OFFLOAD_BYTES: usize = 10;

/// The longest frame that a device hands over: virtio and Ethernet headers, and an IP packet.
pub const FRAME_BYTES_MAX: usize = OFFLOAD_BYTES + 14 + 65_535;

pub(crate) const NEEDS_CHECKSUM: u8 = 1;
pub(crate) const GSO_TCP4: u8 = 1;
pub(crate) const GSO_TCP6: u8 = 4;
const GSO_ECN: u8 = 0x80;
pub(crate) const TCP: u8 = 6;
const UDP: u8 = 17;
const FIN_PSH: u8 = 0x09;
const CWR: u8 = 0x80;

/// Why a frame of a device was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[repr(usize)]
pub enum Refused {
    /// It ends before its headers do.
    #[error("device: cut off")]
    Short,
    /// Neither IPv4 nor IPv6.
    #[error("device: no IP packet")]
    Version,
    /// Its headers do not fit its length.
    #[error("device: length")]
    Length,
    /// Its virtio header says what can't be, or has not been asked for.
    #[error("device: offload")]
    Offload,
    /// It is longer than the fabric's packets.
    #[error("device: too long")]
    TooLong,
    /// It goes to no attached host: to a broadcast address, to nobody, or to a host of the simulation.
    #[error("device: destination")]
    Destination,
    /// A switch has cut its content off.
    #[error("device: trimmed")]
    Trimmed,
    /// The device did not take it.
    #[error("device: not taken")]
    NotTaken,
}

/// Whether bytes from another process are an IP packet, as far as whoever writes it to a device relies on that.
pub fn is_packet(bytes: &[u8]) -> bool {
    match bytes.first().map(|first| first >> 4) {
        Some(4) => {
            let header = 4 * usize::from(bytes[0] & 15);
            header >= 20 && bytes.len() >= header
        }
        Some(6) => bytes.len() >= 40,
        _ => false,
    }
}

impl Refused {
    /// All of them, in order.
    pub const ALL: [Refused; 8] = [
        Refused::Short,
        Refused::Version,
        Refused::Length,
        Refused::Offload,
        Refused::TooLong,
        Refused::Destination,
        Refused::Trimmed,
        Refused::NotTaken,
    ];
}

/// Where an IP packet goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Destination {
    /// An IPv4 address.
    V4([u8; 4]),
    /// An IPv6 address.
    V6([u8; 16]),
}

/// One frame of a device: the packets of which it consists.
#[derive(Clone, Debug)]
pub struct Packets {
    /// An IP packet with all content.
    bytes: Vec<u8>,
    /// Bytes of its IP header.
    network: usize,
    /// Bytes of its headers, TCP's counted, if it is cut into several.
    headers: usize,
    /// Bytes of content in each packet, the last may have fewer.
    each: usize,
    count: u32,
    /// Whether its checksums are known to be right, since they are made here.
    sealed: bool,
    /// A number that identifies its flow by addresses, protocol and ports.
    pub flow: u32,
    /// Where it goes.
    pub destination: Destination,
}

/// What is read of an IP header.
struct Network {
    bytes: usize,
    protocol: u8,
    is_fragment: bool,
    destination: Destination,
}

impl Packets {
    /// Reads a frame: a virtio header and an IP packet. `before` is how many bytes stood between the two, which offsets
    /// in the virtio header count. No packet of it is longer than `mtu`.
    pub fn read(offload: &[u8; OFFLOAD_BYTES], packet: &[u8], before: usize, mtu: usize) -> Result<Packets, Refused> {
        let [flags, gso, ..] = *offload;
        let word = |at: usize| usize::from(u16::from_ne_bytes([offload[at], offload[at + 1]]));
        let (size, start, offset) = (word(4), word(6), word(8));
        let network = Network::read(packet)?;
        let gso = match gso & !GSO_ECN {
            0 => false,
            GSO_TCP4 if matches!(network.destination, Destination::V4(_)) => true,
            GSO_TCP6 if matches!(network.destination, Destination::V6(_)) => true,
            _ => return Err(Refused::Offload),
        };
        let mut bytes = packet.to_vec();
        let (destination, headers) = (network.destination, network.bytes);
        let flow = network.flow(packet);
        if !gso {
            // A TAP device pads frames to the least length of Ethernet's.
            let bytes_said = said_length(packet);
            if bytes_said < network.bytes || bytes_said > packet.len() {
                return Err(Refused::Length);
            }
            bytes.truncate(bytes_said);
            if bytes.len() > mtu {
                return Err(Refused::TooLong);
            }
            let sealed = flags & NEEDS_CHECKSUM != 0;
            if sealed {
                // Only what the IP header carries: a checksum written into that header would make it another.
                let start = start.checked_sub(before).filter(|start| *start >= headers).ok_or(Refused::Offload)?;
                complete(&mut bytes, start, offset).ok_or(Refused::Offload)?;
            }
            let each = bytes.len() - headers;
            return Ok(Packets { bytes, network: headers, headers, each, count: 1, sealed, flow, destination });
        }
        if network.protocol != TCP || network.is_fragment || size == 0 || packet.len() > 65_535 {
            return Err(Refused::Offload);
        }
        let words = packet.get(headers + 12).ok_or(Refused::Short)? >> 4;
        let all = headers + 4 * usize::from(words);
        if words < 5 || all > packet.len() {
            return Err(Refused::Length);
        }
        if all + size.min(packet.len() - all) > mtu {
            return Err(Refused::TooLong);
        }
        let count = (packet.len() - all).div_ceil(size).max(1) as u32;
        Ok(Packets { bytes, network: headers, headers: all, each: size, count, sealed: true, flow, destination })
    }

    /// Of how many packets it consists.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// The length of one of them, from its IP header on.
    pub fn length(&self, index: u32) -> usize {
        let begin = self.headers + index as usize * self.each;
        self.headers + self.each.min(self.bytes.len().saturating_sub(begin))
    }

    /// Whether the checksums of its packets are known to be right, so that nobody need look again.
    pub fn is_sealed(&self) -> bool {
        self.sealed
    }

    /// The two bits of ECN (RFC 3168).
    pub fn ecn(&self) -> u8 {
        ecn(&self.bytes)
    }

    /// Writes one of its packets over `out`, which is as long.
    pub fn write(&self, index: u32, out: &mut [u8]) {
        if self.count == 1 && self.headers == self.network {
            out.copy_from_slice(&self.bytes);
            return;
        }
        let begin = self.headers + index as usize * self.each;
        let content = out.len() - self.headers;
        out[..self.headers].copy_from_slice(&self.bytes[..self.headers]);
        out[self.headers..].copy_from_slice(&self.bytes[begin..begin + content]);
        let (length, network) = (out.len(), self.network);
        match self.destination {
            Destination::V4(_) => {
                let id = u16::from_be_bytes([out[4], out[5]]).wrapping_add(index as u16);
                out[2..4].copy_from_slice(&(length as u16).to_be_bytes());
                out[4..6].copy_from_slice(&id.to_be_bytes());
                seal_v4(out, network);
            }
            Destination::V6(_) => out[4..6].copy_from_slice(&((length - network) as u16).to_be_bytes()),
        }
        let tcp = &mut out[network..];
        let first = u32::from_be_bytes([tcp[4], tcp[5], tcp[6], tcp[7]]);
        tcp[4..8].copy_from_slice(&first.wrapping_add((index as usize * self.each) as u32).to_be_bytes());
        if index + 1 < self.count {
            tcp[13] &= !FIN_PSH;
        }
        if index > 0 {
            tcp[13] &= !CWR;
        }
        tcp[16..18].fill(0);
        let sum = checksum(pseudo(out, network, (length - network) as u32, TCP), &out[network..]);
        out[network + 16..network + 18].copy_from_slice(&sum.to_be_bytes());
    }
}

impl Network {
    fn read(packet: &[u8]) -> Result<Network, Refused> {
        match packet.first().ok_or(Refused::Short)? >> 4 {
            4 => {
                let header: &[u8; 20] = packet.first_chunk().ok_or(Refused::Short)?;
                let bytes = 4 * usize::from(header[0] & 15);
                if bytes < 20 || bytes > packet.len() {
                    return Err(Refused::Length);
                }
                Ok(Network {
                    bytes,
                    protocol: header[9],
                    is_fragment: u16::from_be_bytes([header[6], header[7]]) & 0x3FFF != 0,
                    destination: Destination::V4([header[16], header[17], header[18], header[19]]),
                })
            }
            6 => {
                let header: &[u8; 40] = packet.first_chunk().ok_or(Refused::Short)?;
                let destination = header[24..].try_into().expect("sixteen bytes");
                // What follows other headers is a flow without ports.
                Ok(Network {
                    bytes: 40,
                    protocol: header[6],
                    is_fragment: false,
                    destination: Destination::V6(destination),
                })
            }
            _ => Err(Refused::Version),
        }
    }

    /// A number of the packet's flow, in the upper half of all numbers: no flow of a scenario has such a one.
    fn flow(&self, packet: &[u8]) -> u32 {
        let addresses = match self.destination {
            Destination::V4(_) => &packet[12..20],
            Destination::V6(_) => &packet[8..40],
        };
        let ports = match self.protocol {
            TCP | UDP if !self.is_fragment => packet.get(self.bytes..self.bytes + 4),
            _ => None,
        };
        let mut hash = crc32fast::Hasher::new();
        hash.update(addresses);
        hash.update(&[self.protocol]);
        hash.update(ports.unwrap_or_default());
        hash.finalize() | 1 << 31
    }
}

/// The length that an IP packet's header gives. The packet must have its whole header.
fn said_length(packet: &[u8]) -> usize {
    match packet[0] >> 4 {
        4 => usize::from(u16::from_be_bytes([packet[2], packet[3]])),
        _ => 40 + usize::from(u16::from_be_bytes([packet[4], packet[5]])),
    }
}

/// Completes a checksum that the kernel has left to the device. It covers everything from `start` on and is `offset`
/// bytes after `start`, where the kernel has already put the sum of the addresses and the length.
fn complete(packet: &mut [u8], start: usize, offset: usize) -> Option<()> {
    let at = start.checked_add(offset)?;
    let sum = checksum(0, packet.get(start..)?);
    // Zero would say that there is none (RFC 768).
    let sum = if sum == 0 { 0xFFFF } else { sum };
    packet.get_mut(at..at + 2)?.copy_from_slice(&sum.to_be_bytes());
    Some(())
}

/// The sum of the pseudo-header, which TCP's checksum covers too: a packet's addresses, a length and a protocol.
pub(crate) fn pseudo(packet: &[u8], network: usize, length: u32, protocol: u8) -> u64 {
    let addresses = if packet[0] >> 4 == 4 { 12..20 } else { 8..40 };
    debug_assert!(addresses.end <= network);
    add(u64::from(length) + u64::from(protocol), &packet[addresses])
}

#[cfg(test)]
pub(crate) mod tests;
