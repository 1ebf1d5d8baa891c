//! The link layer of a TAP device: who has which hardware address, asked by ARP (RFC 826) and neighbour discovery (RFC
//! 4861), and answered for every host of the fabric that is attached.

pub use driver::capture::internet::{ETHERNET_BYTES, Mac, ethernet, mac_of};

use super::ip::{Destination, checksum, pseudo};

const ARP: [u8; 2] = [0x08, 0x06];
const IPV4: [u8; 2] = [0x08, 0x00];
const IPV6: [u8; 2] = [0x86, 0xDD];
const ICMPV6: u8 = 58;

/// What an Ethernet frame is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ethernet<'a> {
    /// It carries an IP packet.
    Packet(&'a [u8]),
    /// It asks for a hardware address, and this is the answer.
    Question(Vec<u8>),
    /// It asks for one that nobody here has, or is an answer.
    Silence,
    /// It is something else.
    Other,
}

/// Reads an Ethernet frame, and its sender's address. `has` says which host has an address.
pub fn read(frame: &[u8], has: impl Fn(Destination) -> Option<u32>) -> Option<(Mac, Ethernet<'_>)> {
    let (header, rest) = frame.split_first_chunk::<ETHERNET_BYTES>()?;
    let from: Mac = header[6..12].try_into().ok()?;
    let what = match [header[12], header[13]] {
        ARP => arp(rest, has),
        IPV4 => Ethernet::Packet(rest),
        IPV6 => solicitation(rest, from, has).unwrap_or(Ethernet::Packet(rest)),
        _ => Ethernet::Other,
    };
    Some((from, what))
}

fn arp<'a>(question: &[u8], has: impl Fn(Destination) -> Option<u32>) -> Ethernet<'a> {
    let Some(question) = question.first_chunk::<28>() else { return Ethernet::Silence };
    // Of Ethernet for IPv4, and a request.
    if question[..8] != [0, 1, 8, 0, 6, 4, 0, 1] {
        return Ethernet::Silence;
    }
    let wanted: [u8; 4] = question[24..28].try_into().expect("four bytes");
    let Some(host) = has(Destination::V4(wanted)) else { return Ethernet::Silence };
    let (mac, asker) = (mac_of(host), &question[8..18]);
    let answer = [&asker[..6], &mac, &ARP, &[0, 1, 8, 0, 6, 4, 0, 2], &mac, &wanted, asker].concat();
    Ethernet::Question(answer)
}

/// If a packet is a neighbour solicitation: its answer.
fn solicitation<'a>(packet: &[u8], from: Mac, has: impl Fn(Destination) -> Option<u32>) -> Option<Ethernet<'a>> {
    let header = packet.first_chunk::<64>()?;
    // Nothing but ICMPv6, with the greatest hop limit: it has not come from elsewhere.
    if header[0] >> 4 != 6 || header[6] != ICMPV6 || header[7] != 255 || header[40..42] != [135, 0] {
        return None;
    }
    let asker: [u8; 16] = header[8..24].try_into().ok()?;
    let wanted: [u8; 16] = header[48..64].try_into().ok()?;
    // Who asks whether an address is free has none yet.
    let Some(host) = has(Destination::V6(wanted)).filter(|_| asker != [0; 16]) else { return Some(Ethernet::Silence) };
    let mac = mac_of(host);
    let mut answer = [&[0x60, 0, 0, 0, 0, 32, ICMPV6, 255][..], &wanted, &asker].concat();
    // Solicited, and to be taken before what was known.
    answer.extend([136, 0, 0, 0, 0x60, 0, 0, 0]);
    answer.extend(wanted);
    answer.extend([2, 1]);
    answer.extend(mac);
    let sum = checksum(pseudo(&answer, 40, 32, ICMPV6), &answer[40..]);
    answer[42..44].copy_from_slice(&sum.to_be_bytes());
    Some(Ethernet::Question([&ethernet(from, mac, &answer)[..], &answer].concat()))
}

#[cfg(test)]
mod tests;
