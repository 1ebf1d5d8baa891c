//! Links of datagrams.
//!
//! A frame is handed to the kernel when its first bit would leave the sender, and says when its last bit leaves. The
//! receiver holds it back until it would have arrived. So the kernel's own delay, tens of microseconds, does not show
//! as long as it is shorter than the link's. Every packet that crosses a link goes through the kernel.

use driver::{Cut, Departure, LinkRx, Links};
use node::packet::flags;
use node::pool::{PacketId, Slot, Transit};
use node::{Packet, Telemetry};
use run::{Journey, Plan};
use units::{LinkId, NodeId, PerByte, Time};

use crate::frame::{Codec, Frame, Refusal};
use crate::sockets::Sockets;
use crate::wires::{Sender, Wires, retry_number};

/// Datagrams taken from a node's socket at a time, so that a flood does not hold up what is due.
const TAKE_MAX: usize = 64;

/// Carries packets as datagrams, with the content of each.
pub(crate) struct Datagrams {
    sockets: Sockets,
    /// Nodes to which frames have been sent that have not been read, perhaps several times.
    unread: Vec<NodeId>,
    ready: Vec<NodeId>,
    /// By [`Refusal`].
    pub refused: [u64; Refusal::ALL.len()],
    /// What has been sent last.
    datagram: Vec<u8>,
    /// The transmission time of the slowest link, by the slowest clock.
    slowest: PerByte,
}

/// What has been sent on a link.
pub(crate) struct Sent {
    link: LinkId,
    pub count: Count,
}

/// What has been read from a link.
#[derive(Default)]
pub(crate) struct Read {
    /// The place of the link's sending end.
    link_tx: u32,
    pub count: Count,
    /// Number of the frame that is read next.
    next: u64,
    /// When the last packet from another process comes out.
    pub last: Time,
}

/// Frames on a link, and the packets among them, without frames between neighbours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Count {
    pub frames: u64,
    pub packets: u64,
    pub bytes: u64,
}

impl Count {
    fn add(&mut self, packet: &Packet) {
        self.frames += 1;
        if !packet.has(flags::LINK_FRAME) {
            self.packets += 1;
            self.bytes += u64::from(packet.wire_bytes);
        }
    }
}

impl Sent {
    /// For a link on which nothing has been sent.
    pub fn new(link: LinkId) -> Sent {
        Sent { link, count: Count::default() }
    }
}

impl Read {
    /// For a link from which nothing has been read; `link_tx` is its sending end.
    pub fn new(link_tx: u32) -> Read {
        Read { link_tx, ..Read::default() }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Taken {
    Frame,
    Refused,
    Nothing,
}

pub(crate) fn codec(plan: &Plan) -> Codec<'_> {
    Codec {
        transports: &plan.transports,
        flow_control: &plan.scenario.flow_control,
        sharing: &plan.scenario.sharing,
        retry: plan.scenario.link.llr.is_some(),
        outside: plan.outside,
        hosts: plan.fabric.hosts,
        links: plan.fabric.links.len() as u32,
    }
}

impl Datagrams {
    pub fn new(plan: &Plan, sockets: Sockets) -> Datagrams {
        let narrowest = plan.fabric.narrowest_rate();
        let slow_ppb = plan.scenario.clock_tolerance().ppb() as i32;
        Datagrams {
            sockets,
            unread: Vec::new(),
            ready: Vec::new(),
            refused: [0; Refusal::ALL.len()],
            datagram: Vec::new(),
            slowest: narrowest.per_byte().by_clock(narrowest, -slow_ppb),
        }
    }

    /// Reads the frames that this process has sent itself: on loopback they are there as soon as they are sent.
    #[inline]
    pub fn read_sent(links: &mut Links<Wires<'_>>) {
        while let Some(node) = links.carrier.datagrams.as_mut().and_then(|of| of.unread.pop()) {
            Self::take(links, node, |taken| taken != Taken::Frame);
        }
    }

    /// Sleeps until something comes, for `span` at most, and reads what has come.
    pub fn read_ready(links: &mut Links<Wires<'_>>, span: std::time::Duration) {
        let Some(datagrams) = &mut links.carrier.datagrams else { return };
        let mut ready = std::mem::take(&mut datagrams.ready);
        datagrams.sockets.wait(span, &mut ready);
        for &node in &ready {
            Self::take(links, node, |_| true);
        }
        if let Some(datagrams) = &mut links.carrier.datagrams {
            datagrams.ready = ready;
        }
    }

    /// The run is over: takes what is still in the sockets. What is missing then was lost.
    pub fn settle(links: &mut Links<Wires<'_>>) {
        for node in 0..links.carrier.plan.fabric.nodes() {
            Self::take(links, NodeId(node), |_| true);
        }
        for link_rx in &mut links.link_rxs {
            let Sender::Socket(sent) = &links.link_txs[link_rx.receiver.link_tx as usize].sender else { continue };
            if link_rx.acceptor.is_some() {
                continue; // what has not come is on the link still
            }
            link_rx.lost_packets += sent.count.packets - link_rx.receiver.count.packets;
            link_rx.lost_bytes += sent.count.bytes - link_rx.receiver.count.bytes;
        }
    }

    /// Takes datagrams from a node's socket while there are some and `more` wants to go on.
    fn take(links: &mut Links<Wires<'_>>, node: NodeId, more: impl Fn(Taken) -> bool) {
        for _ in 0..TAKE_MAX {
            let taken = Self::take_one(links, node);
            if taken == Taken::Nothing || !more(taken) {
                return;
            }
        }
    }

    fn take_one(links: &mut Links<Wires<'_>>, node: NodeId) -> Taken {
        let Wires { plan, cut, clock, pages, datagrams: Some(datagrams), .. } = &mut links.carrier else {
            return Taken::Nothing;
        };
        let Some((bytes, from)) = datagrams.sockets.receive(node) else { return Taken::Nothing };
        // It may still be leaving, by the slowest clock and under cut-through as slowly as it came in, and a host may
        // take a random time for it.
        let (wall, slowest) = (clock.now(), datagrams.slowest);
        let latest = |frame: &Frame<'_>| {
            let longest = slowest.transmit(u32::from(frame.packet.wire_bytes)) + plan.jitter(frame.link);
            wall.saturating_add(longest)
        };
        let admitted = admit(plan, cut, &links.link_rxs, node, bytes, from);
        let frame = match admitted.and_then(|of| if of.gone > latest(&of) { Err(Refusal::Times) } else { Ok(of) }) {
            Ok(frame) => frame,
            Err(refusal) => {
                datagrams.refused[refusal as usize] += 1;
                return Taken::Refused;
            }
        };
        let Frame { link, number, gone, tail_lag, packet, journey, queue, retry, telemetry, content } = frame;
        let place = cut.link_rx_of(link);
        let link_rx = &mut links.link_rxs[place as usize];
        let read = &mut link_rx.receiver;
        read.next = number + 1;
        read.count.add(&packet);
        if !link_rx.up {
            link_rx.lose(&packet);
            return Taken::Frame;
        }
        let mut transit = Transit::leaving(journey.sent);
        transit.queued = journey.queued;
        transit.serialised = journey.serialised;
        transit.tail_lag = tail_lag;
        (transit.queue, transit.in_port) = (queue, retry);
        let at = gone + links.link_txs[read.link_tx as usize].delay;
        let id = links.pool.insert(packet, transit);
        if packet.has(flags::TELEMETRY) {
            *links.pool.telemetry_mut(id) = telemetry;
        }
        if !content.is_empty() {
            pages.fresh(id, content.len()).copy_from_slice(content);
        }
        links.put(place, id, at);
        Taken::Frame
    }

    /// A packet leaves by a link that is a socket.
    pub fn send(links: &mut Links<Wires<'_>>, link_tx: u32, departure: Departure, id: PacketId) {
        // The receiving end adds the link's delay.
        let gone = departure.at - links.link_txs[link_tx as usize].delay;
        let Slot { packet, transit } = links.pool.remove(id);
        let flagged = packet.has(flags::TELEMETRY);
        let telemetry = if flagged { *links.pool.telemetry_mut(id) } else { Telemetry::default() };
        let Wires { plan, pages, datagrams: Some(datagrams), .. } = &mut links.carrier else { return };
        let Sender::Socket(sent) = &mut links.link_txs[link_tx as usize].sender else { return };
        let content = pages.content(id, usize::from(packet.payload_bytes));
        let frame = Frame {
            link: sent.link,
            number: sent.count.frames,
            gone,
            tail_lag: transit.tail_lag,
            packet,
            journey: Journey::from(transit),
            queue: transit.queue,
            retry: retry_number(plan, &transit),
            telemetry,
            content: content.unwrap_or_default(),
        };
        codec(plan).emit(&frame, &mut datagrams.datagram);
        sent.count.add(&packet);
        let ends = plan.fabric.link(sent.link);
        if datagrams.sockets.send(ends.from, ends.to, &datagrams.datagram) {
            datagrams.unread.push(ends.to);
        }
    }
}

/// The frame that a datagram is, if it is one that the link's other end has sent to this node.
fn admit<'d>(
    plan: &Plan,
    cut: &Cut,
    link_rxs: &[LinkRx<Read>],
    node: NodeId,
    datagram: &'d [u8],
    from: Option<NodeId>,
) -> Result<Frame<'d>, Refusal> {
    let frame = codec(plan).parse(datagram)?;
    let ends = plan.fabric.link(frame.link);
    if ends.to != node {
        return Err(Refusal::Link);
    }
    if !is_attached_if_outside(plan, &frame.packet) {
        return Err(Refusal::Host);
    }
    if from != Some(ends.from) {
        return Err(Refusal::Stranger);
    }
    if frame.number < link_rxs[cut.link_rx_of(frame.link) as usize].receiver.next {
        return Err(Refusal::Repeated);
    }
    Ok(frame)
}

/// Whether a packet is from an attached host.
pub(crate) fn is_outside(plan: &Plan, packet: &Packet) -> bool {
    plan.outside == Some(packet.transport) && !packet.has(flags::LINK_FRAME)
}

/// Whether the packet's destination is an attached host, if the packet is from one: those send to each other alone.
pub(crate) fn is_attached_if_outside(plan: &Plan, packet: &Packet) -> bool {
    !is_outside(plan, packet) || plan.attached.contains_key(&packet.dst)
}

#[cfg(test)]
mod tests;
