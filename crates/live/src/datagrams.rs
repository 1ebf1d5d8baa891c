//! Links of datagrams.
//!
//! A frame is handed to the kernel when its first bit would leave, and says when its last bit has left; the receiver
//! holds it until it would have come in. So the kernel's own time, tens of microseconds, is hidden in the time that the
//! link takes anyway, as long as it is shorter. Every packet that goes over a link goes through the kernel.

use driver::{Carrier, Departure, Links, Pipe};
use node::packet::flags;
use node::pool::{PacketId, Slot, Transit};
use node::{Packet, Telemetry};
use run::{FlowEvent, Host, Journey, Plan};
use units::{Duration, LinkId, NodeId, Time};

use crate::clock::Clock;
use crate::content::{self, Inbox};
use crate::frame::{Codec, Frame, Refusal};
use crate::sockets::Sockets;

/// Datagrams taken from a node's socket at a time, so that a flood does not hold up what is due.
const TAKE_MAX: usize = 64;

/// Carries packets as datagrams, with the content of each.
pub(crate) struct Datagrams<'a> {
    plan: &'a Plan,
    sockets: Sockets,
    pub clock: Clock,
    /// The content of each packet, by its place in the pool; it may be longer than what the packet still has of it.
    contents: Vec<Vec<u8>>,
    /// Nodes to which frames have been sent that have not been read, perhaps several times.
    unread: Vec<NodeId>,
    ready: Vec<NodeId>,
    /// By [`Refusal`].
    pub refused: [u64; Refusal::ALL.len()],
    pub inbox: Inbox,
    /// Per flow, how far the clock was past its delivery when that was done, in picoseconds.
    pub late_ps: Vec<u64>,
    pub ended_flows: u64,
    /// By host, how many of its records have been seen, and how many of its flows had ended.
    seen: Vec<(usize, u64)>,
    datagram: Vec<u8>,
}

/// What has been sent on a link. Bytes are without frames between neighbours.
pub(crate) struct Sent {
    link: LinkId,
    pub frames: u64,
    pub bytes: u64,
}

/// What has been read from a link. Bytes are without frames between neighbours.
pub(crate) struct Read {
    /// The place of the link's sending end.
    pub outlet: u32,
    pub frames: u64,
    pub bytes: u64,
    /// Number of the frame that is read next.
    next: u64,
}

impl Sent {
    /// On a link on which nothing has been sent.
    pub fn new(link: LinkId) -> Sent {
        Sent { link, frames: 0, bytes: 0 }
    }
}

impl Read {
    /// From a link from which nothing has been read, whose sending end is there.
    pub fn new(outlet: u32) -> Read {
        Read { outlet, frames: 0, bytes: 0, next: 0 }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Taken {
    Frame,
    Refused,
    Nothing,
}

impl<'a> Datagrams<'a> {
    pub fn new(plan: &'a Plan, sockets: Sockets, clock: Clock) -> Datagrams<'a> {
        Datagrams {
            plan,
            sockets,
            clock,
            contents: Vec::new(),
            unread: Vec::new(),
            ready: Vec::new(),
            refused: [0; Refusal::ALL.len()],
            inbox: Inbox::new(plan.flows.len()),
            late_ps: vec![u64::MAX; plan.flows.len()],
            ended_flows: 0,
            seen: vec![(0, 0); plan.fabric.hosts as usize],
            datagram: Vec::new(),
        }
    }

    fn codec(&self) -> Codec<'a> {
        Codec {
            transports: &self.plan.transports,
            flow_control: &self.plan.scenario.flow_control,
            hosts: self.plan.fabric.hosts,
            links: self.plan.fabric.links.len() as u32,
        }
    }

    /// The place for the content of a packet.
    fn content_of(&mut self, id: PacketId) -> &mut Vec<u8> {
        if self.contents.len() <= id.index() {
            self.contents.resize_with(id.index() + 1, Vec::new);
        }
        &mut self.contents[id.index()]
    }

    /// Reads the frames that this process has sent itself: on loopback they are there as soon as they are sent.
    pub fn read_sent(links: &mut Links<Self>) {
        while let Some(node) = links.carrier.unread.pop() {
            Self::take(links, node, |taken| taken != Taken::Frame);
        }
    }

    /// Sleeps until something comes, for `span` at most, and reads what has come.
    pub fn read_ready(links: &mut Links<Self>, span: Duration) {
        let mut ready = std::mem::take(&mut links.carrier.ready);
        links.carrier.sockets.wait(span, &mut ready);
        for &node in &ready {
            Self::take(links, node, |_| true);
        }
        links.carrier.ready = ready;
    }

    /// Takes what is still in the sockets, so that what is missing then was lost.
    pub fn settle(links: &mut Links<Self>) {
        for node in 0..links.carrier.plan.fabric.nodes() {
            Self::take(links, NodeId(node), |_| true);
        }
    }

    /// Takes datagrams from a node's socket while there are some and `more` wants to go on.
    fn take(links: &mut Links<Self>, node: NodeId, more: impl Fn(Taken) -> bool) {
        for _ in 0..TAKE_MAX {
            let taken = Self::take_one(links, node);
            if taken == Taken::Nothing || !more(taken) {
                return;
            }
        }
    }

    fn take_one(links: &mut Links<Self>, node: NodeId) -> Taken {
        let (codec, wall) = (links.carrier.codec(), links.carrier.clock.now());
        let Datagrams { plan, sockets, datagram, .. } = &mut links.carrier;
        let Some((bytes, from)) = sockets.receive(node) else { return Taken::Nothing };
        let frame = match admit(plan, &codec, &links.pipes, node, bytes, from, wall) {
            Ok(frame) => frame,
            Err(refusal) => {
                links.carrier.refused[refusal as usize] += 1;
                return Taken::Refused;
            }
        };
        // The socket's buffer is needed for the next.
        datagram.clear();
        datagram.extend_from_slice(frame.content);
        let Frame { link, number, gone, tail_lag_ps, packet, journey, queue, telemetry, .. } = frame;
        let read = &mut links.pipes[link.index()].receiver;
        read.next = number + 1;
        read.frames += 1;
        read.bytes += counted_bytes(&packet);
        let mut transit = Transit::leaving(journey.sent);
        transit.queued = journey.queued;
        transit.serialised = journey.serialised;
        transit.tail_lag_ps = tail_lag_ps;
        transit.queue = queue;
        let at = gone + links.outlets[read.outlet as usize].delay;
        let id = links.pool.insert(packet, transit);
        if packet.has(flags::TELEMETRY) {
            *links.pool.telemetry_mut(id) = telemetry;
        }
        let content = std::mem::take(&mut links.carrier.datagram);
        links.carrier.content_of(id).clone_from(&content);
        links.carrier.datagram = content;
        links.put(link.0, id, at);
        Taken::Frame
    }
}

impl Carrier for Datagrams<'_> {
    type Sender = Sent;
    type Receiver = Read;

    fn carry(links: &mut Links<Self>, outlet: u32, Departure { gone, .. }: Departure, id: PacketId) {
        let Slot { packet, transit } = links.pool.remove(id);
        let flagged = packet.has(flags::TELEMETRY);
        let telemetry = if flagged { *links.pool.telemetry_mut(id) } else { Telemetry::default() };
        let codec = links.carrier.codec();
        let Datagrams { plan, sockets, contents, datagram, unread, .. } = &mut links.carrier;
        let content = contents.get(id.index()).and_then(|content| content.get(..usize::from(packet.payload_bytes)));
        let sent = &mut links.outlets[outlet as usize].sender;
        let frame = Frame {
            link: sent.link,
            number: sent.frames,
            gone,
            tail_lag_ps: transit.tail_lag_ps,
            packet,
            journey: Journey::from(transit),
            queue: transit.queue,
            telemetry,
            content: content.unwrap_or_default(),
        };
        codec.emit(&frame, datagram);
        sent.frames += 1;
        sent.bytes += counted_bytes(&packet);
        let ends = plan.fabric.link(sent.link);
        if sockets.send(ends.from, ends.to, datagram) {
            unread.push(ends.to);
        }
    }

    fn made(links: &mut Links<Self>, id: PacketId) {
        let packet = links.pool.get(id).packet;
        let plan = links.carrier.plan;
        let content = links.carrier.content_of(id);
        content.clear();
        if packet.payload_bytes > 0 {
            let offset = plan.transports[usize::from(packet.transport)].payload_offset(&packet);
            content::write(packet.flow, offset, usize::from(packet.payload_bytes), content);
        }
    }

    fn taken(links: &mut Links<Self>, id: PacketId, packet: &Packet) {
        if packet.payload_bytes > 0 {
            let Datagrams { plan, contents, inbox, .. } = &mut links.carrier;
            let offset = plan.transports[usize::from(packet.transport)].payload_offset(packet);
            let content = contents.get(id.index()).and_then(|content| content.get(..usize::from(packet.payload_bytes)));
            inbox.take(&plan.flows, packet.flow, offset, content.unwrap_or_default());
        }
    }

    /// What happened to flows is noted by the clock.
    fn acted(links: &mut Links<Self>, now: Time, host: &mut Host) {
        let Datagrams { plan, clock, inbox, late_ps, ended_flows, seen, .. } = &mut links.carrier;
        let (records, ended) = std::mem::replace(&mut seen[host.id().index()], (host.records.len(), host.ended));
        *ended_flows += host.ended - ended;
        for record in &mut host.records[records..] {
            if let FlowEvent::Started = record.fate {
                continue; // it begins when the scenario says
            }
            record.at = clock.now();
            if let FlowEvent::Delivered { .. } = record.fate {
                inbox.delivered(&plan.flows, record.flow);
                late_ps[record.flow.index()] = record.at.since(now).ps();
            }
        }
    }
}

/// Bytes of a packet, unless it is a frame between neighbours, which is in no count of bytes.
fn counted_bytes(packet: &Packet) -> u64 {
    if packet.has(flags::LINK_FRAME) { 0 } else { u64::from(packet.wire_bytes) }
}

/// The frame that a datagram is, if it is one that the link's other end has sent to this node.
fn admit<'d>(
    plan: &Plan,
    codec: &Codec<'_>,
    pipes: &[Pipe<Read>],
    node: NodeId,
    datagram: &'d [u8],
    from: Option<NodeId>,
    wall: Time,
) -> Result<Frame<'d>, Refusal> {
    let frame = codec.parse(datagram)?;
    let ends = plan.fabric.link(frame.link);
    if ends.to != node {
        return Err(Refusal::Link);
    }
    if from != Some(ends.from) {
        return Err(Refusal::Stranger);
    }
    if frame.number < pipes[frame.link.index()].receiver.next {
        return Err(Refusal::Repeated);
    }
    // It may still be leaving, under cut-through as slowly as it came in.
    let longest = plan.fabric.narrowest_rate().transmit(u64::from(frame.packet.wire_bytes));
    if frame.gone > wall.saturating_add(longest) {
        return Err(Refusal::Times);
    }
    Ok(frame)
}

#[cfg(test)]
mod tests;
