//! Merges consecutive packets of one TCP flow into one frame with one set of headers before they are written to a
//! device, as a network card with receive offload does (GRO). The kernel then handles one frame instead of forty
//! packets.
//!
//! Only packets whose checksums were made here are merged, since the frame says that they need not be checked again.
//! And they must differ in nothing but their place in the stream, so that the frame can be split into the same packets.

use super::ip::{GSO_TCP4, GSO_TCP6, NEEDS_CHECKSUM, OFFLOAD_BYTES, TCP, fold, pseudo, seal_v4};

/// The longest IP packet.
const LONGEST: usize = 65_535;

const ACK: u8 = 0x10;
const PSH: u8 = 0x08;

/// A frame that is being put together: a virtio header, what the device wants in front of an IP packet, and the IP
/// packet.
#[derive(Debug, Default)]
pub(crate) struct Coalescing {
    bytes: Vec<u8>,
    /// Where the IP packet begins.
    packet: usize,
    /// Bytes of its IP header, and of all its headers.
    network: usize,
    headers: usize,
    /// Content of each packet in it; 0 if nothing can follow.
    each: usize,
    /// How many.
    pub count: u32,
    /// The sequence number that must follow.
    next: u32,
}

/// Where headers end, if a packet is one that others may follow or that may follow others.
fn parts(packet: &[u8]) -> Option<(usize, usize)> {
    let network = match packet.first()? >> 4 {
        // Neither options nor fragments.
        4 if packet[0] == 0x45 && *packet.get(9)? == TCP && (packet[6] & 0x3F, packet[7]) == (0, 0) => 20,
        6 if *packet.get(6)? == TCP => 40,
        _ => return None,
    };
    let headers = network + 4 * usize::from(packet.get(network + 12)? >> 4);
    let flags = *packet.get(network + 13)?;
    (headers >= network + 20 && headers < packet.len() && flags & !PSH == ACK).then_some((network, headers))
}

fn sequence(tcp: &[u8]) -> u32 {
    u32::from_be_bytes([tcp[4], tcp[5], tcp[6], tcp[7]])
}

impl Coalescing {
    /// Begins a frame with a packet; `link` is what the device wants in front of it. No packet can follow if the
    /// checksum of this one is not known to be right.
    pub fn begin(&mut self, link: &[u8], packet: &[u8], is_sealed: bool) {
        self.bytes.clear();
        self.bytes.extend([0; OFFLOAD_BYTES]);
        self.bytes.extend(link);
        self.packet = self.bytes.len();
        self.bytes.extend(packet);
        (self.count, self.each) = (1, 0);
        if let Some((network, headers)) = parts(packet).filter(|_| is_sealed) {
            (self.network, self.headers) = (network, headers);
            let content = packet.len() - headers;
            self.next = sequence(&packet[network..]).wrapping_add(content as u32);
            if packet[network + 13] & PSH == 0 {
                self.each = content;
            }
        }
    }

    /// Whether it has anything.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Appends a packet if that follows what is there.
    pub fn append(&mut self, packet: &[u8], is_sealed: bool) -> bool {
        if self.each == 0 || !is_sealed || parts(packet) != Some((self.network, self.headers)) {
            return false;
        }
        let (network, headers) = (self.network, self.headers);
        let (first, content) = (&self.bytes[self.packet..], packet.len() - headers);
        let alike = |from: usize, to: usize| first[from..to] == packet[from..to];
        let same_network = match packet[0] >> 4 {
            // All but length, identification and checksum.
            4 => alike(0, 2) && alike(6, 10) && alike(12, 20) && follows(first, packet, self.count),
            _ => alike(0, 4) && alike(6, 40),
        };
        // All but sequence number, PSH and checksum.
        let (tcp, end) = (network, network + 20);
        let same_tcp =
            alike(tcp, tcp + 4) && alike(tcp + 8, tcp + 13) && alike(tcp + 14, tcp + 16) && alike(end, headers);
        let fits = content <= self.each && first.len() + content <= LONGEST;
        if !same_network || !same_tcp || !fits || sequence(&packet[network..]) != self.next {
            return false;
        }
        self.bytes.extend(&packet[headers..]);
        let pushed = packet[network + 13] & PSH;
        self.bytes[self.packet + network + 13] |= pushed;
        self.next = self.next.wrapping_add(content as u32);
        self.count += 1;
        // What is shorter than the first ends it; so does what is to be read at once.
        if content < self.each || pushed != 0 {
            self.finish();
        }
        true
    }

    fn finish(&mut self) {
        if self.count > 1 {
            self.write_headers();
        }
        self.each = 0;
    }

    /// Of several packets: lengths and the sum of addresses in the place of the checksum, as the kernel wants it.
    fn write_headers(&mut self) {
        let (network, headers) = (self.network, self.headers);
        let each = (self.each as u16).to_ne_bytes();
        let packet = &mut self.bytes[self.packet..];
        let length = packet.len();
        let gso = match packet[0] >> 4 {
            4 => {
                packet[2..4].copy_from_slice(&(length as u16).to_be_bytes());
                seal_v4(packet, network);
                GSO_TCP4
            }
            _ => {
                packet[4..6].copy_from_slice(&((length - network) as u16).to_be_bytes());
                GSO_TCP6
            }
        };
        let sum = fold(pseudo(packet, network, (length - network) as u32, TCP));
        packet[network + 16..network + 18].copy_from_slice(&sum.to_be_bytes());
        let link = self.packet - OFFLOAD_BYTES;
        let word = |bytes: usize| (bytes as u16).to_ne_bytes();
        let [hdr, start, offset] = [word(link + headers), word(link + network), word(16)];
        let offload = [NEEDS_CHECKSUM, gso, hdr[0], hdr[1], each[0], each[1], start[0], start[1], offset[0], offset[1]];
        self.bytes[..OFFLOAD_BYTES].copy_from_slice(&offload);
    }

    /// The finished frame, as the device takes it. Afterwards there is no frame.
    pub fn take(&mut self) -> &[u8] {
        if self.each > 0 {
            self.finish();
        }
        self.count = 0;
        &self.bytes
    }
}

/// Whether the identification of an IPv4 packet is `by` above that of the first, as in packets cut from one frame.
fn follows(first: &[u8], packet: &[u8], by: u32) -> bool {
    let id = |packet: &[u8]| u16::from_be_bytes([packet[4], packet[5]]);
    id(first).wrapping_add(by as u16) == id(packet)
}

#[cfg(test)]
mod tests;
