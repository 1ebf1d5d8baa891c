//! Captures of links in the format that Wireshark and tcpdump read: pcapng (draft-ietf-opsawg-pcapng). The same for
//! simulated links and live ones.
//!
//! A packet's time is when its last bit has left, in nanoseconds of network time. Every packet is an Ethernet frame,
//! from the hardware address of its source to that of its destination:
//!
//! - that of an attached host has its own bytes, with the mark that a switch has given it;
//! - that of a transport is in IPv4 and UDP: addresses of the two hosts, class (in the upper three bits of the traffic
//!   class), ECN, time to live (64 less the switches passed), a source port of the flow, and as destination port
//!   [`PORT`] and the place of its scheme in the list of schemes. Behind that is the header in the scheme's own wire
//!   format, then content. Where content is not carried (a simulation has none), the packet is cut off in front of it;
//! - a frame of a flow control, which crosses one link, has the type [`LINK_FRAME`], a byte with the flow control's
//!   place in its list (IEEE 802 wants such a subtype there), and the frame in its own format; its addresses are those
//!   of the link's ends.
//!
//! A packet without content has a comment that says what its header means, in the scheme's words: "dcpim: Token class
//! 2, phase 7". The comment of a lost packet says why it was lost.

mod dissector;
pub mod internet;

pub use dissector::dissector;

use std::collections::BTreeMap;

use catalogue::{LinkControl, Sharing, Transport};
use fabric::Fabric;
use node::Packet;
use node::packet::flags;
use node::wire::Writer;
use run::Plan;
use scenario::Networks;
use units::{LinkId, Problem, Time};

use internet::{ethernet, mac_of, mark, seal_v4};

/// The UDP port of packets of the first transport in the list; those of the second have the next port, and so on. After
/// all transports come the sharing mechanisms.
pub const PORT: u16 = 17_770;

/// First port of the transports that a program has registered. Clearway's own list of transports stays shorter than
/// this.
const PORT_REGISTERED: u16 = PORT + 1_000;

/// The EtherType of a flow control's frames: that for experiments (IEEE 802).
pub const LINK_FRAME: [u8; 2] = [0x88, 0xB5];

/// First UDP port for private use (RFC 6335). Flows get source ports from here on, in turn.
const FLOW_PORTS: u32 = 49_152;

const UDP: u8 = 17;

const SECTION: u32 = 0x0A0D_0D0A;
const INTERFACE: u32 = 1;
const PACKET: u32 = 6;

/// The port of a transport's packets, by the name of its scheme.
pub(crate) fn transport_port(name: &str) -> u16 {
    // Numbered after the older lists, so that the ports in older captures keep their meaning.
    if Transport::NEEDING_SETTINGS.contains(&name) {
        let before = Transport::NAMES.len() + Sharing::NAMES.len();
        return PORT + before as u16 + place_in(Transport::NEEDING_SETTINGS, name);
    }
    if let Some(place) = catalogue::registered().iter().position(|known| *known == name) {
        return PORT_REGISTERED + place as u16;
    }
    PORT + place_in(Transport::NAMES, name)
}

/// The port of packets that a sharing mechanism's limiters send each other, by its name.
pub(crate) fn limiter_port(name: &str) -> u16 {
    PORT + Transport::NAMES.len() as u16 + place_in(Sharing::NAMES, name)
}

/// The bytes before a flow control's frames, by its name.
pub(crate) fn control_number(name: &str) -> u8 {
    place_in(LinkControl::NAMES, name) as u8
}

fn place_in(names: &[&str], name: &str) -> u16 {
    names.iter().position(|known| *known == name).unwrap_or(0) as u16
}

/// The links of one file.
pub struct Wanted {
    /// What was asked for, such as "spine0-leaf2", or "host3" for all links of that node.
    pub name: String,
    /// Its links, in the order of the file's interfaces.
    pub links: Vec<LinkId>,
    /// The file.
    pub path: String,
}

/// A packet that is noted.
pub struct Noted<'a> {
    /// Which link of its file.
    pub interface: u32,
    /// That link.
    pub link: LinkId,
    /// When its last bit has left, or when it was lost.
    pub at: Time,
    /// What it is.
    pub packet: &'a Packet,
    /// Its content, if that is carried.
    pub content: Option<&'a [u8]>,
    /// Why it was lost at the link's end, if it was.
    pub lost: Option<&'a str>,
}

/// Makes blocks of packets.
pub struct Encoder {
    networks: Networks,
    frame: Vec<u8>,
}

/// What a name stands for: a link, or a node, which is all of its links, both ways.
fn links_of(plan: &Plan, name: &str) -> Result<Vec<LinkId>, Problem> {
    let Ok(node) = plan.fabric.find(name) else {
        let unknown = |problem: Problem| match name.contains('-') {
            true => problem,
            // The name of a link has a hyphen, so this one was meant as a node's.
            false => plan.fabric.find(name).err().unwrap_or(problem),
        };
        return plan.fabric.find_links(name).map_err(unknown);
    };
    let ports = &plan.fabric.ports[node.index()];
    Ok(ports.iter().flat_map(|&link| [link, Fabric::reverse(link)]).collect())
}

/// The links that these names stand for, each with its file. `key` is where the names are, for errors.
pub fn wanted(plan: &Plan, places: &BTreeMap<String, String>, key: &str) -> Result<Vec<Wanted>, Problem> {
    let mut files: Vec<Wanted> = Vec::new();
    for (name, path) in places {
        let key = format!("{key}.{name}");
        let links = links_of(plan, name).map_err(|problem| problem.under(&key))?;
        if files.iter().any(|known| known.path == *path) {
            return Err(Problem::new(
                key,
                format!("something else is written to \"{path}\" already; name another file"),
            ));
        }
        files.push(Wanted { name: name.clone(), links, path: path.clone() });
    }
    Ok(files)
}

impl Wanted {
    /// The blocks with which its file begins: a section, and an interface for each link.
    pub fn begin(&self, plan: &Plan) -> Vec<u8> {
        let mut blocks = Vec::new();
        section(&mut blocks);
        let name = |link: LinkId| {
            let ends = plan.fabric.link(link);
            format!("{}-{}", plan.fabric.names[ends.from.index()], plan.fabric.names[ends.to.index()])
        };
        for (index, &link) in self.links.iter().enumerate() {
            // Parallel cables have numbers.
            let of_name = |links: &[LinkId]| links.iter().filter(|&&other| name(other) == name(link)).count();
            let number =
                if of_name(&self.links) > 1 { format!("#{}", of_name(&self.links[..index])) } else { String::new() };
            interface(&mut blocks, &(name(link) + &number), plan.fabric.link(link).rate.bps());
        }
        blocks
    }

    /// The error of a file that cannot be written. `key` is the table that names the file.
    pub fn refused(&self, key: &str, error: &std::io::Error) -> Problem {
        let message = format!("\"{}\" cannot be written: {error}; name a file in a folder that there is", self.path);
        Problem::new(format!("{key}.{}", self.name), message)
    }
}

impl Encoder {
    /// For packets of this plan. Its addresses are those of `live.network`.
    pub fn new(plan: &Plan) -> Result<Encoder, Problem> {
        Ok(Encoder { networks: plan.scenario.live.networks()?, frame: Vec::new() })
    }

    /// Appends the block of a packet.
    pub fn note(&mut self, plan: &Plan, noted: &Noted<'_>, blocks: &mut Vec<u8>) {
        let Noted { interface, link, at, packet, content, lost } = *noted;
        let frame = &mut self.frame;
        frame.clear();
        let length = if packet.has(flags::LINK_FRAME) {
            link_frame(plan, link, packet, frame);
            frame.len()
        } else if plan.outside == Some(packet.transport) {
            attached(packet, content.unwrap_or_default(), frame)
        } else {
            datagram(plan, &self.networks, packet, content, frame)
        };
        let mut comment = says(plan, packet);
        if let Some(why) = lost {
            comment = if comment.is_empty() { format!("lost: {why}") } else { format!("lost: {why}. {comment}") };
        }
        block(blocks, interface, at, frame, length, &comment);
    }
}

/// The Ethernet frame of an attached host's packet, as its destination will get it. Returns the frame's length with all
/// content.
fn attached(packet: &Packet, content: &[u8], frame: &mut Vec<u8>) -> usize {
    frame.extend(ethernet(mac_of(packet.dst.0), mac_of(packet.src.0), content));
    let begin = frame.len();
    frame.extend(content);
    if packet.has(flags::CE) {
        mark(&mut frame[begin..]);
    }
    begin + usize::from(packet.payload_bytes)
}

/// A frame between neighbours.
fn link_frame(plan: &Plan, link: LinkId, packet: &Packet, frame: &mut Vec<u8>) {
    let ends = plan.fabric.link(link);
    frame.extend(mac_of(ends.to.0));
    frame.extend(mac_of(ends.from.0));
    frame.extend(LINK_FRAME);
    frame.push(control_number(plan.scenario.flow_control.name()));
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
    let transport = plan.transports.get(usize::from(packet.transport));
    let sharing = plan.scenario.sharing.name();
    let port = transport.map_or_else(|| limiter_port(sharing), |transport| transport_port(transport.name()));
    let ports = [(FLOW_PORTS + packet.flow.0 % (65_536 - FLOW_PORTS)) as u16, port];
    frame.extend(ports.map(u16::to_be_bytes).as_flattened());
    // No checksum (RFC 768).
    frame.extend([0; 4]);
    let trimmed = packet.has(flags::TRIMMED);
    let known = content.unwrap_or_default();
    let mut to = Writer::new(frame);
    if let Some(transport) = transport {
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
    seal_v4(&mut frame[ip..], 20);
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

/// A packet: its captured bytes, its length, and perhaps a comment.
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

/// The comment of a packet without content, in the words of its scheme. Data packets have none, since writing it would
/// take longer than sending them.
fn says(plan: &Plan, packet: &Packet) -> String {
    if packet.has(flags::LINK_FRAME) {
        return format!("{}: {}", plan.scenario.flow_control.name(), plan.scenario.flow_control.says(packet));
    }
    if packet.payload_bytes > 0 || plan.outside == Some(packet.transport) {
        return String::new();
    }
    match (plan.transports.get(usize::from(packet.transport)), plan.scenario.sharing.as_scheme()) {
        (Some(transport), _) => format!("{}: {}", transport.name(), transport.says(packet)),
        (None, Some(limiters)) => format!("{}: {}", plan.scenario.sharing.name(), limiters.says(packet)),
        (None, None) => String::new(),
    }
}

#[cfg(test)]
mod tests;
