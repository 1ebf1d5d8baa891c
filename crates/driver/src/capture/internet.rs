//! The headers around a transport's packet in captures: Ethernet, and the checksums and marks of IP packets.

/// Bytes of an Ethernet header.
pub const ETHERNET_BYTES: usize = 14;

/// A hardware address.
pub type Mac = [u8; 6];

const IPV4: [u8; 2] = [0x08, 0x00];
const IPV6: [u8; 2] = [0x86, 0xDD];

/// The hardware address of a host, by number: locally administered.
pub fn mac_of(host: u32) -> Mac {
    let [a, b, c, d] = host.wrapping_add(1).to_be_bytes();
    [0x02, 0x77, a, b, c, d]
}

/// The header in front of an IP packet.
pub fn ethernet(to: Mac, from: Mac, packet: &[u8]) -> [u8; ETHERNET_BYTES] {
    let kind = if packet.first().is_some_and(|first| first >> 4 == 4) { IPV4 } else { IPV6 };
    let mut header = [0; ETHERNET_BYTES];
    header[..6].copy_from_slice(&to);
    header[6..12].copy_from_slice(&from);
    header[12..].copy_from_slice(&kind);
    header
}

/// The two bits of ECN of an IP packet (RFC 3168).
pub fn ecn(packet: &[u8]) -> u8 {
    match packet {
        [version, tos, ..] if version >> 4 == 4 => tos & 3,
        [version, flow, ..] if version >> 4 == 6 => flow >> 4 & 3,
        _ => 0,
    }
}

/// Sets "congestion experienced" in a packet of a transport that understands it, and says whether it was one.
pub fn mark(packet: &mut [u8]) -> bool {
    if ecn(packet) == 0 {
        return false;
    }
    match packet[0] >> 4 {
        4 => {
            packet[1] |= 3;
            let header = 4 * usize::from(packet[0] & 15);
            seal_v4(packet, header);
        }
        _ => packet[1] |= 0x30,
    }
    true
}

/// Writes the checksum of an IPv4 header.
pub fn seal_v4(packet: &mut [u8], header: usize) {
    packet[10..12].fill(0);
    let sum = checksum(0, &packet[..header]);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
}

/// The Internet checksum (RFC 1071) of bytes and of what has been summed before.
pub fn checksum(before: u64, bytes: &[u8]) -> u16 {
    !fold(add(before, bytes))
}

/// Adds bytes to a sum of 16-bit words in network byte order.
pub fn add(before: u64, bytes: &[u8]) -> u64 {
    // Sums of words can be taken in any byte order, and of two words at a time (RFC 1071, section 2).
    let (words, rest) = bytes.as_chunks::<4>();
    let mut sum: u64 = words.iter().map(|&word| u64::from(u32::from_ne_bytes(word))).sum();
    let mut last = [0; 4];
    last[..rest.len()].copy_from_slice(rest);
    sum += u64::from(u32::from_ne_bytes(last));
    before + u64::from(u16::from_be(fold(sum)))
}

/// A sum of 16-bit words, with carries added until none is left.
pub fn fold(mut sum: u64) -> u16 {
    while sum > 0xFFFF {
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    sum as u16
}

#[cfg(test)]
mod tests;
