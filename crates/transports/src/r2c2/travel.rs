//! Packets as they travel.
//!
//! Data and broadcasts are Figure 6's bytes. Figure 6 has nothing for what the paper leaves to others (reliability,
//! section 6), for assignments, reports of these, and rate messages: they travel as the project's header and a checksum
//! of the same kind. A frame of the live driver has, behind a data packet's header, two bytes that are not R2C2's: how
//! much message each packet but the last has, from which the driver, which checks content, knows where it belongs.
//!
//! Each node checks what it receives before it does anything with it. The paper says so of broadcasts (section 3.2: "To
//! detect corruption, we rely on a packet checksum"); of data it says that they have one. A node that forwarded
//! unchecked would do so by a route that may be damaged. The checksum is all that there is: a rack's links are no
//! Ethernet. It finds every single wrong bit, and of two wrong bits misses those that are opposite in the same column
//! of 16: one pair in 32. A damaged packet that it misses travels on with its changed fields.

use node::Packet;
use node::packet::flags;
use node::wire::{Malformed, Reader, Writer};
use units::{HostId, mix};

use super::header::{self, FlowState, Header, WIRE_BYTES, kind};
use super::route::COMPACT_MAX;
use super::wire::{BROADCAST_BYTES, Broadcast, DATA_BYTES, Data, Says, WIDE, checksum};

const ROUTES: u8 = flags::SOURCE_ROUTED | flags::COMPACT_ROUTE | flags::ROUTER_ALERT;
/// Bytes of a packet that is not in Figure 6: the project's header and a checksum.
pub(super) const OWN_BYTES: usize = WIRE_BYTES + 2;

/// The data packet that this is.
fn data(packet: &Packet, header: header::Data) -> Data {
    let long = packet.has(flags::ROUTER_ALERT);
    let route =
        if long { u128::from(header.route[1]) << 64 | u128::from(header.route[0]) } else { packet.label.into() };
    Data {
        last: header.last,
        rlen: header.rlen,
        ridx: packet.hops,
        flow: packet.flow.0,
        src: packet.src.0 as u16,
        dst: packet.dst.0 as u16,
        seq: header.seq,
        plen: packet.payload_bytes,
        route,
    }
}

/// The broadcast, or the report of one, that this is.
fn broadcast(packet: &Packet, says: Says, state: FlowState) -> Broadcast {
    let FlowState { dst, number, version, weight, priority, demand_kbps, tree, rp } = state;
    let (src, dst) = (packet.src.0 as u16, dst.0 as u16);
    Broadcast { says, version, src, dst, weight, priority, number, demand_kbps, tree, rp }
}

impl From<Broadcast> for Header {
    fn from(of: Broadcast) -> Header {
        let Broadcast { says, version, src: _, dst, weight, priority, number, demand_kbps, tree, rp } = of;
        let dst = HostId(dst.into());
        let state = FlowState { dst, number, version, weight, priority, demand_kbps, tree, rp };
        match says {
            Says::Announce => Header::Announce(state),
            Says::Finish => Header::Finish(state),
            Says::Dropped => Header::Dropped(state),
        }
    }
}

/// In which of the wire's formats a packet travels.
enum Format {
    Data(header::Data),
    Broadcast(Says, FlowState),
    Own,
}

impl Format {
    fn of(header: Header) -> Format {
        match header {
            Header::Data(data) => Format::Data(data),
            Header::Announce(state) => Format::Broadcast(Says::Announce, state),
            Header::Finish(state) => Format::Broadcast(Says::Finish, state),
            Header::Dropped(state) => Format::Broadcast(Says::Dropped, state),
            _ => Format::Own,
        }
    }
}

/// Appends a packet but for its content.
pub(super) fn emit(packet: &Packet, content: &[u8], to: &mut Writer<'_>) {
    let header: Header = packet.header();
    match Format::of(header) {
        Format::Data(of) => {
            to.bytes(&data(packet, of).emit(content));
            to.u16(of.full as u16);
        }
        Format::Broadcast(says, state) => to.bytes(&broadcast(packet, says, state).emit()),
        Format::Own => {
            let mut own = Vec::with_capacity(WIRE_BYTES);
            node::Header::emit(header, &mut Writer::new(&mut own));
            // The kind first, so that readers know what it is.
            own.rotate_right(8);
            to.bytes(&own);
            to.u16(checksum(own.into_iter(), WIRE_BYTES));
        }
    }
}

/// Reads a packet's header and looks whether it is its frame's; its content is the rest.
pub(super) fn parse(from: &mut Reader<'_>, packet: &mut Packet) -> Result<(), Malformed> {
    let taken = parse_bytes(from.rest(), packet)?;
    from.bytes(taken).map(|_| ())
}

/// How many bytes the header took.
fn parse_bytes(bytes: &[u8], packet: &mut Packet) -> Result<usize, Malformed> {
    let other = Malformed { what: "R2C2 packet: not what its frame says" };
    match bytes.first().map(|first| first & 15) {
        Some(kind::DATA | kind::LAST) => {
            // The driver's two bytes stand between the header and what it is checked with.
            let split = bytes
                .split_first_chunk::<DATA_BYTES>()
                .and_then(|(head, rest)| Some((head, rest.split_first_chunk::<2>()?)));
            let Some((head, (full, content))) = split else {
                return Err(Malformed { what: "R2C2 data packet: shorter than 37 bytes" });
            };
            let whole = [&head[..], content].concat();
            let (read, _) = Data::parse(&whole)?;
            let Data { last, rlen, seq, .. } = read;
            let mut header = header::Data { last, rlen, route: [0; 2], seq, full: u16::from_be_bytes(*full).into() };
            let (routes, label) = match rlen {
                wide if wide & WIDE != 0 => (flags::SOURCE_ROUTED, read.route as u64),
                short if usize::from(short) <= COMPACT_MAX => {
                    (flags::SOURCE_ROUTED | flags::COMPACT_ROUTE, read.route as u64)
                }
                _ => {
                    header.route = [read.route as u64, (read.route >> 64) as u64];
                    (flags::ROUTER_ALERT, 0)
                }
            };
            if packet.flags & ROUTES != routes || packet.label != label || data(packet, header) != read {
                return Err(other);
            }
            packet.set_header(Header::Data(header));
            Ok(DATA_BYTES + full.len())
        }
        Some(kind::ANNOUNCE | kind::FINISH | kind::DROPPED) => {
            let read = Broadcast::parse(bytes.get(..BROADCAST_BYTES).unwrap_or(bytes))?;
            if u32::from(read.src) != packet.src.0 {
                return Err(other);
            }
            packet.set_header(Header::from(read));
            Ok(BROADCAST_BYTES)
        }
        _ => {
            let Some((head, _)) = bytes.split_first_chunk::<OWN_BYTES>() else {
                return Err(Malformed { what: "R2C2 packet: shorter than 34 bytes" });
            };
            let sum = checksum(head.iter().copied(), WIRE_BYTES);
            if head[WIRE_BYTES..] != sum.to_be_bytes() {
                return Err(Malformed { what: "R2C2 packet: checksum" });
            }
            let mut header = [0; WIRE_BYTES];
            header.copy_from_slice(&head[..WIRE_BYTES]);
            header.rotate_left(8);
            let header = <Header as node::Header>::parse(&mut Reader::new(&header, "R2C2 packet"))?;
            if !matches!(Format::of(header), Format::Own) {
                return Err(Malformed { what: "R2C2 type" });
            }
            packet.set_header(header);
            Ok(head.len())
        }
    }
}

/// Stands for a simulated packet's payload: arbitrary but constant bytes. Zeros would not do: two of their bits never
/// flip in opposite directions.
fn content(packet: &Packet, seq: u32) -> Vec<u8> {
    let which = u64::from(packet.flow.0) << 32 | u64::from(seq);
    let words = (0..u64::from(packet.payload_bytes).div_ceil(8)).flat_map(|word| mix(which, word).to_be_bytes());
    words.take(packet.payload_bytes.into()).collect()
}

/// A link has inverted these bits of a packet: whether its checksum lets it pass, as what it is now.
pub(super) fn damage(packet: &mut Packet, bits: &[u32]) -> bool {
    match Format::of(packet.header()) {
        Format::Data(header) => {
            let (sent, content) = (data(packet, header), content(packet, header.seq));
            let Some(bytes) = flipped([&sent.emit(&content)[..], &content].concat(), bits) else { return false };
            let Ok((read, _)) = Data::parse(&bytes) else { return false };
            let Data { seq, last, .. } = read;
            // Another way, another flow or another node's: it is lost there.
            if read != (Data { seq, last, ..sent }) {
                return false;
            }
            packet.set_header(Header::Data(header::Data { seq, last, ..header }));
        }
        Format::Broadcast(says, state) => {
            let Some(bytes) = flipped(broadcast(packet, says, state).emit(), bits) else { return false };
            let Ok(read) = Broadcast::parse(&bytes) else { return false };
            packet.src = HostId(read.src.into());
            packet.set_header(Header::from(read));
        }
        // Checked whole: a single wrong bit is always found, and the rest of these packets is nothing that could be
        // wrong unnoticed.
        Format::Own => return false,
    }
    true
}

/// The bytes with these bits inverted, if they are all there.
fn flipped(mut bytes: Vec<u8>, bits: &[u32]) -> Option<Vec<u8>> {
    for &bit in bits {
        *bytes.get_mut(bit as usize / 8)? ^= 0x80 >> (bit % 8);
    }
    Some(bytes)
}

#[cfg(test)]
mod tests;
