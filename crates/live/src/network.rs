//! Nodes on the real clock.
//!
//! One thread drives all nodes of the process, by an agenda of what is due when: frames that come out of links,
//! transmitters that become free, deadlines of hosts. When the clock has come to what is due first, it is done; until then
//! the thread sleeps on the sockets. Every packet that goes over a link goes through the kernel as a datagram.
//!
//! **Links.** A frame is handed to the kernel when its first bit would leave, and says when its last bit has left; the
//! receiver holds it until it would have come in. So the kernel's own time, tens of microseconds, is hidden in the time
//! that the link takes anyway, as long as it is shorter.
//!
//! **Time.** What was due at t is done with `now` = t, though the clock is past t already when the thread gets there:
//! so a late wake-up neither stretches a transmission nor shifts a protocol's clocking, as with a real NIC, which has
//! a clock of its own and some packets in hand. All nodes share that time, and it is never more than [`CREDIT`]
//! behind the real clock: where the machine holds things up for longer, time is lost for good, and the audit says so.
//! When an application was told of something is noted by the real clock: a flow's completion time has all lateness in it.

use std::collections::VecDeque;

use engine::Agenda;
use fabric::Tier;
use node::pool::{Pool, Transit};
use node::{Packet, Received, Switch, Telemetry, packet::flags};
use run::{FlowEvent, HEAD_BYTES, Host, Plan};
use units::{Duration, HostId, LinkId, NodeId, PerByte, PortId, Time};

use crate::clock::{Clock, Lateness};
use crate::content::{self, Inbox};
use crate::frame::{Codec, Frame, Refusal};
use crate::sockets::Sockets;

/// How far nodes may live behind the real clock: a few turns of a busy machine's scheduler.
pub const CREDIT: Duration = Duration::from_ms(10);

/// How often the run looks up from what is due: for who watches, and for strangers' datagrams.
const LOOK: Duration = Duration::from_ms(50);

/// Datagrams taken from a node's socket at a time, so that a flood does not hold up what is due.
const TAKE_MAX: usize = 64;

/// Everything that a live run consists of.
pub(crate) struct Network<'a> {
    plan: &'a Plan,
    sockets: Sockets,
    clock: Clock,
    agenda: Agenda,
    /// By the link's id.
    pub links: Vec<Link>,
    /// By the host's id.
    pub hosts: Vec<HostSlot>,
    /// By the switch's id.
    pub switches: Vec<SwitchSlot>,
    /// Nodes to which frames have been sent that have not been read, perhaps several times.
    unread: Vec<NodeId>,
    ready: Vec<NodeId>,
    /// The time by which nodes live.
    now: Time,
    /// By [`Kind`].
    pub lateness: [Lateness; 3],
    /// Things that were so late that time was lost, and how much in all.
    pub slips: (u64, Duration),
    /// By [`Refusal`].
    pub refused: [u64; Refusal::ALL.len()],
    pub inbox: Inbox,
    /// Per flow, how far the clock was past its delivery when that was done, in picoseconds.
    pub late_ps: Vec<u64>,
    pub ended_flows: u64,
    pub packet_hops: u64,
    pub events: u64,
    datagram: Vec<u8>,
    message: Vec<u8>,
}

/// What is due.
#[derive(Clone, Copy)]
#[repr(usize)]
pub(crate) enum Kind {
    Arrival,
    Transmission,
    Deadline,
}

/// A directed link, both ends.
pub(crate) struct Link {
    from: NodeId,
    to: To,
    /// From the last bit's departure to the packet's appearance in the next node.
    delay: Duration,
    /// Cut-through into the next node: how long until its switch sees the packet.
    head: Option<Duration>,
    per_byte: PerByte,
    /// Frames that have been read and have not come out, by when they do.
    held: VecDeque<(Time, Held)>,
    pub sent_frames: u64,
    pub sent_bytes: u64,
    pub read_frames: u64,
    pub read_bytes: u64,
    /// Number of the frame that is read next.
    next: u64,
}

impl Link {
    /// Bytes that have been read and have not come out.
    pub fn held_bytes(&self) -> u64 {
        self.held.iter().map(|(_, held)| u64::from(held.packet.wire_bytes)).sum()
    }
}

struct Held {
    packet: Packet,
    transit: Transit,
    telemetry: Telemetry,
    content: Vec<u8>,
}

#[derive(Clone, Copy)]
enum To {
    Host(HostId),
    Switch(usize, PortId),
}

pub(crate) struct HostSlot {
    pub host: Host,
    uplink: LinkId,
    free_at: Time,
}

pub(crate) struct SwitchSlot {
    pub switch: Switch,
    /// The link of each port.
    ports: Vec<LinkId>,
    pool: Pool,
    /// The content of each packet, by its place in the pool.
    contents: Vec<Vec<u8>>,
}

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    Goal,
    Horizon,
    Quiet,
    Interrupted,
}

impl<'a> Network<'a> {
    pub fn new(plan: &'a Plan, sockets: Sockets) -> Network<'a> {
        let fabric = &plan.fabric;
        let (links, hosts) = (fabric.links.len(), fabric.hosts as usize);
        let host = |id: usize| HostSlot {
            host: plan.host(HostId::from(id)),
            uplink: fabric.uplink(HostId::from(id)),
            free_at: Time::ZERO,
        };
        let switch = |id: usize| SwitchSlot {
            switch: plan.switch(id.into()),
            ports: fabric.ports[hosts + id].clone(),
            pool: Pool::default(),
            contents: Vec::new(),
        };
        let mut network = Network {
            plan,
            sockets,
            clock: Clock::start(),
            agenda: Agenda::new(2 * links + hosts + fabric.switches as usize),
            links: (0..links).map(|id| link(plan, LinkId::from(id))).collect(),
            hosts: (0..hosts).map(host).collect(),
            switches: (0..fabric.switches as usize).map(switch).collect(),
            unread: Vec::new(),
            ready: Vec::new(),
            now: Time::ZERO,
            lateness: Default::default(),
            slips: (0, Duration::ZERO),
            refused: [0; Refusal::ALL.len()],
            inbox: Inbox::new(plan.flows.len()),
            late_ps: vec![u64::MAX; plan.flows.len()],
            ended_flows: 0,
            packet_hops: 0,
            events: 0,
            datagram: Vec::new(),
            message: Vec::new(),
        };
        for id in 0..hosts {
            let at = network.hosts[id].host.next_at();
            network.agenda.set(network.deadline(id), at);
        }
        for id in 0..network.switches.len() {
            network.agenda.set(network.switch_timer(id), network.switches[id].switch.next_at());
        }
        network
    }

    /// Lets the network live until all flows have ended, `plan.horizon` has come, or `watch` returns true. Gives why it
    /// ended and when.
    pub fn run(&mut self, mut watch: impl FnMut(Time, u64) -> bool) -> (Ended, Time) {
        let goal = self.plan.flows.len() as u64;
        let mut look_at = Time::ZERO;
        self.clock = Clock::start();
        loop {
            self.read_sent();
            let wall = self.clock.now();
            if wall >= look_at {
                look_at = wall + LOOK;
                self.read_ready(Duration::ZERO);
                if watch(wall, self.ended_flows) {
                    return (Ended::Interrupted, wall);
                }
            }
            if self.ended_flows == goal {
                return (Ended::Goal, wall);
            }
            let (due, source) = self.agenda.first();
            if due == Time::MAX {
                self.read_ready(LOOK);
                if self.agenda.first().0 == Time::MAX {
                    return (Ended::Quiet, wall);
                }
                continue;
            }
            if due.min(wall) >= self.plan.horizon {
                return (Ended::Horizon, wall);
            }
            if due > wall {
                let until = due.min(look_at).min(self.plan.horizon);
                self.read_ready(until.since(wall));
            } else {
                self.act(wall, due, source);
            }
        }
    }

    /// Takes what is still in the sockets, so that what is missing then was lost.
    pub fn settle(&mut self) {
        for node in 0..self.plan.fabric.nodes() {
            self.take(NodeId(node), |_| true);
        }
    }

    /// How late everything was, of all kinds together.
    pub fn all_lateness(&self) -> Lateness {
        let mut all = Lateness::default();
        self.lateness.iter().for_each(|kind| all.add(kind));
        all
    }

    fn transmit_ready(&self, link: LinkId) -> usize {
        self.links.len() + link.index()
    }

    fn deadline(&self, host: usize) -> usize {
        2 * self.links.len() + host
    }

    fn switch_timer(&self, switch: usize) -> usize {
        self.deadline(self.hosts.len()) + switch
    }

    /// What was due at `due` is done.
    fn act(&mut self, wall: Time, due: Time, source: usize) {
        self.events += 1;
        let floor = Time::ZERO + wall.since(Time::ZERO + CREDIT);
        if due < floor {
            self.slips.0 += 1;
            self.slips.1 += floor.since(self.now.max(due));
        }
        self.now = self.now.max(due).max(floor);
        let links = self.links.len();
        let kind = if source < links {
            self.arrive(source);
            Kind::Arrival
        } else if source < 2 * links {
            self.open(LinkId::from(source - links));
            Kind::Transmission
        } else if source >= self.switch_timer(0) {
            let index = source - self.switch_timer(0);
            let slot = &mut self.switches[index];
            slot.switch.wake(self.now, &mut slot.pool);
            self.agenda.set(source, slot.switch.next_at());
            Kind::Deadline
        } else {
            let host = source - 2 * links;
            self.agenda.set(source, Time::MAX);
            self.host(host, |host, now| host.wake(now));
            Kind::Deadline
        };
        self.lateness[kind as usize].note(wall.since(due));
    }

    /// A packet comes out of a link.
    fn arrive(&mut self, link: usize) {
        let (now, end) = (self.now, &mut self.links[link]);
        let (_, Held { packet, mut transit, telemetry, content }) =
            end.held.pop_front().expect("a link with an event has a frame");
        let next = end.held.front().map_or(Time::MAX, |next| next.0);
        let to = end.to;
        self.agenda.set(link, next);
        self.packet_hops += 1;
        match to {
            To::Switch(index, port) => {
                let slot = &mut self.switches[index];
                transit.at = now;
                let id = slot.pool.insert(packet, transit);
                if slot.contents.len() <= id.index() {
                    slot.contents.resize(id.index() + 1, Vec::new());
                }
                slot.contents[id.index()] = content;
                if packet.has(flags::TELEMETRY) {
                    *slot.pool.telemetry_mut(id) = telemetry;
                }
                let mut next = match slot.switch.receive(now, port, &mut slot.pool, id) {
                    Received::Queued(out) => Some(out),
                    Received::Taken | Received::Lost(_) => self.switches[index].switch.take_ready_port(),
                };
                while let Some(out) = next {
                    let slot = &self.switches[index];
                    let (link, free_at) = (slot.ports[out.index()], slot.switch.port(out).free_at());
                    if free_at <= now {
                        self.open(link);
                    } else {
                        self.agenda.advance(self.transmit_ready(link), free_at);
                    }
                    next = self.switches[index].switch.take_ready_port();
                }
            }
            To::Host(id) => {
                if packet.payload_bytes > 0 {
                    let offset = self.plan.transports[usize::from(packet.transport)].payload_offset(&packet);
                    self.inbox.take(&self.plan.flows, packet.flow, offset, &content);
                }
                let telemetry = packet.has(flags::TELEMETRY).then_some(telemetry);
                self.host(id.index(), |host, now| host.receive(now, &packet, &transit, telemetry.as_ref()));
            }
        }
    }

    /// A transmitter is free: the next packet, if one may go.
    fn open(&mut self, link: LinkId) {
        let transmit_ready = self.transmit_ready(link);
        let from = self.links[link.index()].from;
        let Some(index) = self.plan.fabric.as_switch(from).map(|switch| switch.index()) else {
            self.agenda.set(transmit_ready, Time::MAX);
            self.host(from.index(), |_, _| {});
            return;
        };
        let port = self.plan.fabric.link(link).from_port;
        let slot = &mut self.switches[index];
        let sent = slot.switch.transmit(self.now, port, &mut slot.pool);
        let (free_at, more) = (slot.switch.port(port).free_at(), slot.switch.port(port).has_sendable());
        self.agenda.set(transmit_ready, if more && sent.is_some() { free_at } else { Time::MAX });
        if let Some(id) = sent {
            let gone = slot.pool.remove(id);
            let flagged = gone.packet.has(flags::TELEMETRY);
            let telemetry = if flagged { *slot.pool.telemetry_mut(id) } else { Telemetry::default() };
            let mut content = slot.contents.get_mut(id.index()).map(std::mem::take).unwrap_or_default();
            content.truncate(usize::from(gone.packet.payload_bytes)); // less than came in, if it has been trimmed
            self.launch(link, free_at, gone.packet, gone.transit, telemetry, &content);
        }
    }

    /// Lets a host do something; then its NIC pulls if it can, and its next deadline is noted.
    fn host(&mut self, index: usize, act: impl FnOnce(&mut Host, Time)) {
        let now = self.now;
        let slot = &mut self.hosts[index];
        let (ended, noted) = (slot.host.ended, slot.host.records.len());
        act(&mut slot.host, now);
        let pulled = if slot.free_at <= now { slot.host.pull(now) } else { None };
        self.ended_flows += slot.host.ended - ended;
        for record in &mut slot.host.records[noted..] {
            if let FlowEvent::Started = record.fate {
                continue; // it begins when the scenario says
            }
            record.at = self.clock.now();
            if let FlowEvent::Delivered { .. } = record.fate {
                self.inbox.delivered(&self.plan.flows, record.flow);
                self.late_ps[record.flow.index()] = record.at.since(now).ps();
            }
        }
        let uplink = slot.uplink;
        if let Some(packet) = pulled {
            let free_at = now + self.links[uplink.index()].per_byte.transmit(u32::from(packet.wire_bytes));
            slot.free_at = free_at;
            let offset = self.plan.transports[usize::from(packet.transport)].payload_offset(&packet);
            let mut message = std::mem::take(&mut self.message);
            content::write(packet.flow, offset, usize::from(packet.payload_bytes), &mut message);
            let flagged = packet.has(flags::TELEMETRY);
            let telemetry = if flagged { slot.host.carries(&packet) } else { Telemetry::default() };
            self.launch(uplink, free_at, packet, Transit::leaving(now), telemetry, &message);
            self.message = message;
            self.agenda.set(self.transmit_ready(uplink), free_at);
        }
        let at = self.hosts[index].host.next_at().max(now);
        self.agenda.set(self.deadline(index), at);
    }

    /// Hands a packet whose first bit leaves now and whose last at `last` to the kernel.
    fn launch(
        &mut self,
        id: LinkId,
        last: Time,
        packet: Packet,
        transit: Transit,
        telemetry: Telemetry,
        content: &[u8],
    ) {
        let link = &mut self.links[id.index()];
        let gone = link.head.map_or(last, |head| last.min(self.now + head));
        let mut journey = run::Journey::from(transit);
        journey.serialised += gone - self.now;
        let tail_lag_ps = (last - gone).ps() as u32;
        let frame =
            Frame { link: id, number: link.sent_frames, gone, tail_lag_ps, packet, journey, telemetry, content };
        codec(self.plan).emit(&frame, &mut self.datagram);
        link.sent_frames += 1;
        link.sent_bytes += u64::from(packet.wire_bytes);
        let to = self.plan.fabric.link(id).to;
        if self.sockets.send(link.from, to, &self.datagram) {
            self.unread.push(to);
        }
    }

    /// Reads the frames that this process has sent itself: on loopback they are there as soon as they are sent.
    fn read_sent(&mut self) {
        while let Some(node) = self.unread.pop() {
            self.take(node, |taken| taken != Taken::Frame);
        }
    }

    /// Sleeps until something comes, for `span` at most, and reads what has come.
    fn read_ready(&mut self, span: Duration) {
        let mut ready = std::mem::take(&mut self.ready);
        self.sockets.wait(span, &mut ready);
        for &node in &ready {
            self.take(node, |_| true);
        }
        self.ready = ready;
    }

    /// Takes datagrams from a node's socket while there are some and `more` wants to go on.
    fn take(&mut self, node: NodeId, more: impl Fn(Taken) -> bool) {
        for _ in 0..TAKE_MAX {
            let taken = self.take_one(node);
            if taken == Taken::Nothing || !more(taken) {
                return;
            }
        }
    }

    fn take_one(&mut self, node: NodeId) -> Taken {
        let Some((datagram, from)) = self.sockets.receive(node) else { return Taken::Nothing };
        let wall = self.clock.now();
        match admit(self.plan, &self.links, node, datagram, from, wall) {
            Ok(frame) => {
                let index = frame.link.index();
                let link = &mut self.links[index];
                link.next = frame.number + 1;
                link.read_frames += 1;
                link.read_bytes += u64::from(frame.packet.wire_bytes);
                let mut transit = Transit::leaving(frame.journey.sent);
                transit.queued = frame.journey.queued;
                transit.serialised = frame.journey.serialised;
                transit.tail_lag_ps = frame.tail_lag_ps;
                let due = frame.gone + link.delay;
                link.held.push_back((
                    due,
                    Held { packet: frame.packet, transit, telemetry: frame.telemetry, content: frame.content.to_vec() },
                ));
                if link.held.len() == 1 {
                    self.agenda.set(index, due);
                }
                Taken::Frame
            }
            Err(refusal) => {
                self.refused[refusal as usize] += 1;
                Taken::Refused
            }
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Taken {
    Frame,
    Refused,
    Nothing,
}

/// The frame that a datagram is, if it is one that the link's other end has sent to this node.
fn admit<'d>(
    plan: &Plan,
    links: &[Link],
    node: NodeId,
    datagram: &'d [u8],
    from: Option<NodeId>,
    wall: Time,
) -> Result<Frame<'d>, Refusal> {
    let frame = codec(plan).parse(datagram)?;
    let (ends, link) = (plan.fabric.link(frame.link), &links[frame.link.index()]);
    if ends.to != node {
        return Err(Refusal::Link);
    }
    if from != Some(ends.from) {
        return Err(Refusal::Stranger);
    }
    if frame.number < link.next {
        return Err(Refusal::Repeated);
    }
    // It may still be leaving, under cut-through as slowly as it came in.
    let longest = plan.fabric.narrowest_rate().transmit(u64::from(frame.packet.wire_bytes));
    if frame.gone > wall.saturating_add(longest) {
        return Err(Refusal::Times);
    }
    Ok(frame)
}

fn codec(plan: &Plan) -> Codec<'_> {
    Codec { transports: &plan.transports, hosts: plan.fabric.hosts, links: plan.fabric.links.len() as u32 }
}

fn link(plan: &Plan, id: LinkId) -> Link {
    let fabric = &plan.fabric;
    let link = fabric.link(id);
    let at_host = matches!(link.tier, Tier::FromHost | Tier::ToHost);
    let host_delay = if at_host { plan.scenario.host.delay } else { Duration::ZERO };
    let cut_through = plan.scenario.switch.cut_through && link.tier != Tier::ToHost;
    Link {
        from: link.from,
        to: match fabric.as_host(link.to) {
            Some(host) => To::Host(host),
            None => To::Switch(fabric.as_switch(link.to).expect("a node is a host or a switch").index(), link.to_port),
        },
        delay: link.propagation + fabric.delay_after(id) + host_delay,
        head: cut_through.then(|| link.rate.transmit(HEAD_BYTES)),
        per_byte: link.rate.per_byte().in_steps_of(plan.scenario.transmission_step),
        held: VecDeque::new(),
        sent_frames: 0,
        sent_bytes: 0,
        read_frames: 0,
        read_bytes: 0,
        next: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_counts_once_and_only_from_its_neighbour() {
        let text = "fabric.star = {}\n[[traffic]]\nsizes.constant = '50KB'\narrivals = 'all_at_once'\n";
        let plan = Plan::new(&scenario::read(text, "test", &[]).expect("a scenario")).expect("it can be planned");
        let mut network = Network::new(&plan, Sockets::bind(plan.fabric.nodes()).expect("sockets"));
        network.host(0, |host, now| host.wake(now));
        let (host, neighbour, switch) = (NodeId(0), NodeId(1), NodeId(8));
        let datagram = network.datagram.clone();
        assert!(network.take_one(switch) == Taken::Frame && network.take_one(switch) == Taken::Nothing);
        for (from, to, refusal) in [
            (host, switch, Refusal::Repeated),
            (neighbour, switch, Refusal::Stranger),
            (host, neighbour, Refusal::Link),
        ] {
            assert!(network.sockets.send(from, to, &datagram));
            assert!(network.take_one(to) == Taken::Refused);
            assert_eq!(network.refused[refusal as usize], 1, "{refusal}");
        }
        let mut early = codec(&plan).parse(&datagram).expect("it is a frame");
        (early.number, early.gone) = (1, Time::from_ms(1_000_000));
        codec(&plan).emit(&early, &mut network.datagram);
        assert!(network.sockets.send(host, switch, &network.datagram));
        assert!(network.take_one(switch) == Taken::Refused && network.refused[Refusal::Times as usize] == 1);
        assert_eq!(network.links.iter().map(|link| link.read_frames).sum::<u64>(), 1);
    }
}
