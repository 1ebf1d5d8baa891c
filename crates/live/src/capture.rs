//! What links carry, as files that Wireshark and tcpdump read while the run goes on: pcapng
//! (draft-ietf-opsawg-pcapng), a file a link.
//!
//! A packet is noted when its last bit has left, in nanoseconds of the network's time. Every packet is an Ethernet
//! frame, from the hardware address of its source to that of its destination:
//!
//! - that of an attached host has its own bytes, with the mark that a switch has given it;
//! - that of a transport is in IPv4 and UDP: addresses of the two hosts, class (in the upper three bits of the traffic
//!   class), ECN, time to live (64 less the switches passed), a source port of the flow, and as destination port
//!   [`PORT`] and the index of its transport. Behind that is the header in the scheme's own wire format, then content.
//!   Where content is not carried (`live.content`), the packet is cut off in front of it;
//! - a frame of a flow control, which crosses one link, has the type [`LINK_FRAME`] and the frame in its own format;
//!   its addresses are those of the link's ends.
//!
//! A packet without content has what it says as a comment, in the scheme's words: "dcpim: Token class 2, phase 7".
//!
//! A file always ends with a whole block. What is written is on the disk a moment later (`DELAY`).

use std::fs::File;
use std::io::Write;
use std::time::Duration as Span;

use node::Packet;
use node::packet::flags;
use node::wire::Writer;
use run::Plan;
use scenario::Networks;
use units::{LinkId, Problem, Time};

use crate::attach::ip;
use crate::attach::neighbours::{ethernet, mac_of};

/// The UDP port to which packets of the run's first transport go; those of the second to the one behind it.
pub const PORT: u16 = 17_770;

/// The EtherType of a flow control's frames: that for experiments (IEEE 802).
pub const LINK_FRAME: [u8; 2] = [0x88, 0xB5];

/// After so long by the machine's clock what has been captured is written, while nothing else is to be done.
const DELAY: Span = Span::from_millis(20);

/// So many bytes are written at once, whatever is to be done.
const FULL: usize = 1 << 18;

/// Ports of UDP for private use begin here (RFC 6335): flows have them in turn.
const FLOW_PORTS: u32 = 49_152;

const UDP: u8 = 17;

const SECTION: u32 = 0x0A0D_0D0A;
const INTERFACE: u32 = 1;
const PACKET: u32 = 6;

/// The files of a worker's links.
pub(crate) struct Captures {
    networks: Networks,
    files: Vec<Capture>,
    /// By sending end: which file, and which interface of it.
    of: Vec<Option<(u32, u32)>>,
    /// When files were last written, by the machine's clock.
    written: Span,
}

/// A file that is being written.
pub(crate) struct Capture {
    /// Its links, in the order of its interfaces.
    pub links: Vec<LinkId>,
    path: String,
    file: File,
    /// Whole blocks.
    blocks: Vec<u8>,
    /// Why no more is written.
    failed: Option<String>,
    frame: Vec<u8>,
}

/// Opens the files of all links that are to be captured.
pub(crate) fn open(plan: &Plan) -> Result<Vec<Capture>, Problem> {
    let mut files: Vec<Capture> = Vec::new();
    for (name, path) in &plan.scenario.live.capture {
        let key = format!("live.capture.{name}");
        let links = plan.fabric.find_links(name).map_err(|problem| problem.under(&key))?;
        if files.iter().any(|known| known.path == *path) {
            return Err(Problem::new(key, format!("another link is written to \"{path}\" already; name another file")));
        }
        let file = File::create(path).map_err(|error| {
            let message = format!("\"{path}\" cannot be written: {error}; name a file in a folder that there is");
            Problem::new(key, message)
        })?;
        let mut blocks = Vec::new();
        section(&mut blocks);
        for (index, &link) in links.iter().enumerate() {
            let name = if links.len() > 1 { format!("{name}#{index}") } else { name.clone() };
            interface(&mut blocks, &name, plan.fabric.link(link).rate.bps());
        }
        let mut file = Capture { links, path: path.clone(), file, blocks, failed: None, frame: Vec::new() };
        file.write();
        files.push(file);
    }
    Ok(files)
}

impl Captures {
    /// Those of a worker; none if it has none. `outlet` is a link's sending end, if it is here.
    pub fn new(plan: &Plan, files: Vec<Capture>, outlet: impl Fn(LinkId) -> u32) -> Option<Captures> {
        let networks = plan.scenario.live.networks().ok().filter(|_| !files.is_empty())?;
        let mut of = Vec::new();
        for (file, capture) in (0..).zip(&files) {
            for (interface, &link) in (0..).zip(&capture.links) {
                let outlet = outlet(link) as usize;
                of.resize(of.len().max(outlet + 1), None);
                of[outlet] = Some((file, interface));
            }
        }
        Some(Captures { networks, files, of, written: Span::ZERO })
    }

    /// Whether what leaves there is captured.
    #[inline]
    pub fn wants(&self, outlet: u32) -> bool {
        self.of.get(outlet as usize).is_some_and(Option::is_some)
    }

    /// A packet has left; its content, if that is carried.
    pub fn note(&mut self, plan: &Plan, outlet: u32, gone: Time, packet: &Packet, content: Option<&[u8]>) {
        let Some((file, interface)) = self.of[outlet as usize] else { return };
        let capture = &mut self.files[file as usize];
        if capture.failed.is_some() {
            return;
        }
        let mut frame = std::mem::take(&mut capture.frame);
        frame.clear();
        let length = if packet.has(flags::LINK_FRAME) {
            link_frame(plan, capture.links[interface as usize], packet, &mut frame);
            frame.len()
        } else if plan.outside == Some(packet.transport) {
            attached(packet, content.unwrap_or_default(), &mut frame)
        } else {
            datagram(plan, &self.networks, packet, content, &mut frame)
        };
        block(&mut capture.blocks, interface, gone, &frame, length, &says(plan, packet));
        capture.frame = frame;
        if capture.blocks.len() > FULL {
            capture.write();
        }
    }

    /// Writes what has been noted if the last time is a moment ago.
    pub fn write_after(&mut self, machine: Span) {
        if machine.saturating_sub(self.written) >= DELAY {
            self.written = machine;
            self.files.iter_mut().for_each(Capture::write);
        }
    }

    /// The run is over: writes the rest, and says which files are not whole.
    pub fn end(&mut self) -> Vec<String> {
        self.files.iter_mut().for_each(Capture::write);
        self.files.iter().filter_map(|file| file.failed.clone()).collect()
    }
}

impl Capture {
    fn write(&mut self) {
        if self.failed.is_none()
            && let Err(error) = self.file.write_all(&self.blocks)
        {
            self.failed = Some(format!("the capture \"{}\" ends early: {error}", self.path));
        }
        self.blocks.clear();
    }
}

/// The bytes of an attached host's packet, as they will come out.
fn attached(packet: &Packet, content: &[u8], frame: &mut Vec<u8>) -> usize {
    frame.extend(ethernet(mac_of(packet.dst.0), mac_of(packet.src.0), content));
    let begin = frame.len();
    frame.extend(content);
    if packet.has(flags::CE) {
        ip::mark(&mut frame[begin..]);
    }
    begin + usize::from(packet.payload_bytes)
}

/// A frame between neighbours.
fn link_frame(plan: &Plan, link: LinkId, packet: &Packet, frame: &mut Vec<u8>) {
    let ends = plan.fabric.link(link);
    frame.extend(mac_of(ends.to.0));
    frame.extend(mac_of(ends.from.0));
    frame.extend(LINK_FRAME);
    let mut to = Writer::new(frame);
    plan.scenario.flow_control.emit_frame(packet, &mut to);
}

/// A transport's packet, in IPv4 and UDP. Gives its length with all content.
fn datagram(plan: &Plan, networks: &Networks, packet: &Packet, content: Option<&[u8]>, frame: &mut Vec<u8>) -> usize {
    frame.extend(ethernet(mac_of(packet.dst.0), mac_of(packet.src.0), &[0x45]));
    let ip = frame.len();
    let ecn = if packet.has(flags::CE) { 3 } else { 2 * u8::from(packet.has(flags::ECT)) };
    let ttl = node::packet::HOPS_MAX.saturating_sub(packet.hops);
    frame.extend([0x45, packet.class << 5 | ecn, 0, 0, 0, 0, 0x40, 0, ttl, UDP, 0, 0]);
    frame.extend(networks.v4_of(packet.src.0).octets());
    frame.extend(networks.v4_of(packet.dst.0).octets());
    let ports = [(FLOW_PORTS + packet.flow.0 % (65_536 - FLOW_PORTS)) as u16, PORT + u16::from(packet.transport)];
    frame.extend(ports.map(u16::to_be_bytes).as_flattened());
    // No checksum (RFC 768).
    frame.extend([0; 4]);
    let trimmed = packet.has(flags::TRIMMED);
    let known = content.unwrap_or_default();
    let mut to = Writer::new(frame);
    if let Some(transport) = plan.transports.get(usize::from(packet.transport)) {
        transport.emit_header(packet, known, &mut to);
    } else if let Some(limiters) = plan.scenario.sharing.as_scheme() {
        limiters.emit_header(packet, &mut to);
    }
    let length = frame.len() + if trimmed { 0 } else { usize::from(packet.payload_bytes) };
    if !trimmed {
        frame.extend(known);
    }
    let said = |from: usize| u16::try_from(length - from).unwrap_or(u16::MAX).to_be_bytes();
    frame[ip + 2..ip + 4].copy_from_slice(&said(ip));
    frame[ip + 24..ip + 26].copy_from_slice(&said(ip + 20));
    ip::seal_v4(&mut frame[ip..], 20);
    length
}

/// A block of pcapng: its type, what is in it, and its length before and behind.
fn put(blocks: &mut Vec<u8>, kind: u32, body: &[&[u8]]) {
    let length: usize = body.iter().map(|part| part.len()).sum();
    let all = (12 + length.next_multiple_of(4)) as u32;
    blocks.extend(kind.to_le_bytes());
    blocks.extend(all.to_le_bytes());
    body.iter().for_each(|part| blocks.extend(*part));
    blocks.extend(&[0; 3][..length.next_multiple_of(4) - length]);
    blocks.extend(all.to_le_bytes());
}

/// An option of a block.
fn option(options: &mut Vec<u8>, code: u16, value: &[u8]) {
    options.extend(code.to_le_bytes());
    options.extend((value.len() as u16).to_le_bytes());
    options.extend(value);
    options.extend(&[0; 3][..value.len().next_multiple_of(4) - value.len()]);
}

/// The header of a file, of version 1.0 and of unknown length.
fn section(blocks: &mut Vec<u8>) {
    let mut options = Vec::new();
    option(&mut options, 4, format!("Clearway {}", env!("CARGO_PKG_VERSION")).as_bytes());
    option(&mut options, 0, &[]);
    let [magic, length] = [0x1A2B_3C4Du32.to_le_bytes(), u32::MAX.to_le_bytes()];
    put(blocks, SECTION, &[&magic, &[1, 0, 0, 0], &length, &length, &options]);
}

/// A link: of Ethernet frames, whose times are in nanoseconds.
fn interface(blocks: &mut Vec<u8>, name: &str, bps: u64) {
    let mut options = Vec::new();
    // Names are cut to what a length can say.
    let name = name.as_bytes();
    option(&mut options, 2, &name[..name.len().min(255)]);
    option(&mut options, 8, &bps.to_le_bytes());
    option(&mut options, 9, &[9]);
    option(&mut options, 0, &[]);
    put(blocks, INTERFACE, &[&[1, 0, 0, 0, 0, 0, 0, 0], &options]);
}

/// A packet: what there is of it, how long it is, and a comment if there is something to say.
fn block(blocks: &mut Vec<u8>, interface: u32, at: Time, frame: &[u8], length: usize, comment: &str) {
    let ns = at.ps() / 1_000;
    let words = [interface, (ns >> 32) as u32, ns as u32, frame.len() as u32, length as u32];
    let mut options = Vec::new();
    if !comment.is_empty() {
        option(&mut options, 1, comment.as_bytes());
        option(&mut options, 0, &[]);
    }
    let blank = &[0; 3][..frame.len().next_multiple_of(4) - frame.len()];
    put(blocks, PACKET, &[words.map(u32::to_le_bytes).as_flattened(), frame, blank, &options]);
}

/// What a packet without content says, in the words of its scheme: of data it would take longer than sending them.
fn says(plan: &Plan, packet: &Packet) -> String {
    if packet.has(flags::LINK_FRAME) {
        return format!("{}: {}", plan.scenario.flow_control.name(), plan.scenario.flow_control.says(packet));
    }
    match plan.transports.get(usize::from(packet.transport)) {
        Some(transport) if packet.payload_bytes == 0 => format!("{}: {}", transport.name(), transport.says(packet)),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests;
