//! Hosts of the fabric that are attached to this machine: by a TUN or TAP device, or by a network namespace with one in
//! it.
//!
//! A packet that the kernel sends to such a device enters the fabric at that host, at the time by the clock. It goes
//! through the same NIC, links and switches as every packet. If it reaches another attached host, it is written to that
//! host's device. So the kernel's TCP, and every program over it, runs over a fabric of Clearway, with its rates,
//! delays, queues, failures, AQs and flow controls. The fabric carries IP packets: a packet is as long on the wire as
//! it is from its IP header on, and has its bytes as content. Switches mark those whose transport understands it (ECT),
//! and the mark is in the IP header when they come out. ECMP tells flows apart by addresses, protocol and ports.
//!
//! A frame of up to 64 KB that the kernel has left uncut waits in `Frames` until the NIC takes its packets one after
//! another ([`ip`]); packets that come out are merged again (`coalesce`). While a host has `OFFERED` packets to send,
//! nothing more is read from its device, so that an excess waits, and is dropped, in the kernel's own queue.

mod coalesce;
#[cfg(target_os = "linux")]
mod device;
#[cfg(not(target_os = "linux"))]
#[path = "attach/no_device.rs"]
mod device;
pub mod ip;
pub mod neighbours;

use std::collections::VecDeque;

use driver::{Driver, Probe};
use node::packet::flags;
use node::wire::{Malformed, Reader, Writer};
use node::{Header, Packet};
use run::{Plan, ReceiveOutcome};
use scenario::Networks;
use units::{FlowId, HostId, NodeId, Problem, Time};

use crate::clock::Clock;
use crate::wires::Wires;
use coalesce::Coalescing;
use device::Device;
use ip::{Destination, FRAME_BYTES_MAX, OFFLOAD_BYTES, Packets, Refused};
use neighbours::{ETHERNET_BYTES, Ethernet};

/// The most packets that a host may have to send before its device is read again.
const OFFERED: usize = 64;

/// The most frames that are kept because some of their packets have not left. Beyond that the oldest are forgotten;
/// their missing packets were lost before they left.
const KEPT: usize = 4096;

/// The header, in memory only, of an attached host's packet: where its bytes are until it leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, node::State)]
pub(crate) struct FrameSlot {
    frame: u32,
    index: u32,
    /// Whether its checksums are known to be right.
    sealed: bool,
}

impl Header for FrameSlot {
    type Packed = [u32; 3];

    fn pack(self) -> [u32; 3] {
        [self.frame, self.index, self.sealed.into()]
    }

    fn unpack([frame, index, sealed]: [u32; 3]) -> FrameSlot {
        FrameSlot { frame, index, sealed: sealed != 0 }
    }

    /// On a wire it takes no bytes, since an IP packet has headers of its own. To another process goes whether its
    /// checksums are right; its bytes go with it.
    fn emit(self, to: &mut Writer<'_>) {
        to.u8(self.sealed.into());
    }

    fn parse(from: &mut Reader<'_>) -> Result<FrameSlot, Malformed> {
        Ok(FrameSlot { frame: 0, index: 0, sealed: from.u8()? != 0 })
    }
}

/// Frames whose packets have not all left, by number.
#[derive(Default)]
struct Frames {
    first: u32,
    kept: VecDeque<(Packets, u32)>,
}

impl Frames {
    fn push(&mut self, packets: Packets) -> u32 {
        let left = packets.count();
        self.kept.push_back((packets, left));
        while self.kept.front().is_some_and(|(_, left)| *left == 0) || self.kept.len() > KEPT {
            self.kept.pop_front();
            self.first = self.first.wrapping_add(1);
        }
        self.first.wrapping_add(self.kept.len() as u32 - 1)
    }

    /// Writes a packet's bytes when it leaves.
    fn write(&mut self, place: FrameSlot, out: &mut [u8]) {
        match self.kept.get_mut(place.frame.wrapping_sub(self.first) as usize) {
            Some((packets, left)) => {
                packets.write(place.index, out);
                *left -= 1;
            }
            None => out.fill(0),
        }
    }
}

/// What went through a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Count {
    pub frames: u64,
    pub packets: u64,
    pub bytes: u64,
}

impl Count {
    pub fn counts(&mut self) -> [&mut u64; 3] {
        [&mut self.frames, &mut self.packets, &mut self.bytes]
    }
}

/// An attached host.
pub(crate) struct Port {
    pub host: HostId,
    device: Device,
    /// Its place among the hosts of its worker.
    index: usize,
    /// Packets from the device with the time at which they came. They wait until all events due before it are done.
    waiting: VecDeque<(Time, Packet)>,
    coalescing: Coalescing,
    /// If the host takes packets in at `host.intake_rate`: packets that have arrived and wait to be taken in.
    unread: Option<VecDeque<(Packet, Vec<u8>)>>,
    /// From the device into the fabric, and out of it.
    pub sent: Count,
    pub received: Count,
    /// Packets that came out marked.
    pub marked: u64,
}

/// The attached hosts of a worker.
pub(crate) struct Attached {
    transport: u8,
    networks: Networks,
    mtu: usize,
    /// Whether hosts are attached, by number.
    is_attached: Vec<bool>,
    pub ports: Vec<Port>,
    frames: Frames,
    buffer: Vec<u8>,
    /// By [`Refused`].
    pub refused: [u64; Refused::ALL.len()],
}

/// What a device that is made for a host gets.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "only Linux has devices that could get it"))]
pub(crate) struct Setting {
    pub networks: Networks,
    pub host: HostId,
    pub mtu: u16,
}

/// Opens the devices of those attached hosts that are in this process.
pub(crate) fn open(plan: &Plan, has: impl Fn(NodeId) -> bool) -> Result<Vec<Port>, Problem> {
    let networks = plan.scenario.live.networks()?;
    let open = |(&host, what): (&HostId, &String)| {
        let setting = Setting { networks, host, mtu: plan.scenario.host.mtu.get() as u16 };
        let device = Device::open(what, &plan.fabric.names[host.index()], setting)?;
        let (sent, received) = Default::default();
        let coalescing = Coalescing::default();
        let waiting = VecDeque::new();
        let unread = plan.scenario.host.intake_rate.map(|_| VecDeque::new());
        Ok(Port { host, device, index: 0, waiting, coalescing, unread, sent, received, marked: 0 })
    };
    plan.attached.iter().filter(|(host, _)| has(plan.fabric.host_node(**host))).map(open).collect()
}

impl Attached {
    /// Those of a worker; none if it has none. `index` says which of its hosts each is.
    pub fn new(plan: &Plan, ports: Vec<Port>, index: impl Fn(HostId) -> usize) -> Option<Attached> {
        let transport = plan.outside.filter(|_| !ports.is_empty())?;
        let ports = ports.into_iter().map(|port| Port { index: index(port.host), ..port }).collect();
        Some(Attached {
            transport,
            networks: plan.scenario.live.networks().ok()?,
            mtu: plan.scenario.host.mtu.get() as usize,
            is_attached: (0..plan.fabric.hosts).map(|host| plan.attached.contains_key(&HostId(host))).collect(),
            ports,
            frames: Frames::default(),
            buffer: vec![0; FRAME_BYTES_MAX],
            refused: [0; Refused::ALL.len()],
        })
    }

    /// Whether a packet belongs to attached hosts.
    #[inline]
    pub fn has_made(&self, packet: &Packet) -> bool {
        packet.transport == self.transport
    }

    /// Reads the devices. The clock is read after each frame: a thread may lose its core before it reads a frame, and a
    /// packet must not enter the network before it has come.
    pub fn read_devices<P: Probe>(driver: &mut Driver<Wires<'_>, P>, clock: &Clock) {
        let Some(attached) = &mut driver.links.carrier.attached else { return };
        let mut offered = Vec::new();
        for port in 0..attached.ports.len() {
            let offered_before = driver.hosts[attached.ports[port].index].host.offered();
            while offered_before + attached.ports[port].waiting.len() < OFFERED && attached.read(port, &mut offered) {
                let came = clock.now();
                attached.ports[port].waiting.extend(offered.drain(..).map(|packet| (came, packet)));
            }
        }
    }

    /// Lets in the packets that had come by `present`. All events due before that are done. Returns whether there was
    /// any.
    pub fn let_in<P: Probe>(driver: &mut Driver<Wires<'_>, P>, present: Time) -> bool {
        let mut any = false;
        let Some(mut attached) = driver.links.carrier.attached.take() else { return false };
        for Port { index, waiting, .. } in &mut attached.ports {
            while waiting.front().is_some_and(|(at, _)| *at <= present) {
                any = true;
                waiting.pop_front().into_iter().for_each(|(_, packet)| driver.offer(*index, packet));
            }
        }
        // Most turns of a worker let nothing in: those need no list.
        let ready = if any { attached.ports.iter().map(|port| port.index).collect() } else { Vec::new() };
        driver.links.carrier.attached = Some(attached);
        for index in ready {
            if driver.hosts[index].host.offered() > 0 {
                driver.pull_offered(present, index);
            }
        }
        any
    }

    /// Reads a frame of a device, if there is one, and gives its packets.
    fn read(&mut self, port: usize, offered: &mut Vec<Packet>) -> bool {
        let Port { host, device, sent, .. } = &mut self.ports[port];
        let Some(count) = device.read(&mut self.buffer) else { return false };
        let frame = &self.buffer[..count];
        let (networks, is_attached, host) = (self.networks, &self.is_attached, *host);
        let to = |destination| {
            let to = match destination {
                Destination::V4(address) => networks.host_v4(address),
                Destination::V6(address) => networks.host_v6(address),
            };
            to.map(HostId).filter(|to| *to != host && is_attached.get(to.index()).is_some_and(|&attached| attached))
        };
        let Some((offload, rest)) = frame.split_first_chunk::<OFFLOAD_BYTES>() else {
            self.refused[Refused::Short as usize] += 1;
            return true;
        };
        let (packet, before) = match device.mac {
            None => (rest, 0),
            Some(_) => match neighbours::read(rest, |wanted| to(wanted).map(|host| host.0)) {
                None => {
                    self.refused[Refused::Short as usize] += 1;
                    return true;
                }
                Some((from, what)) => {
                    device.mac = Some(from);
                    match what {
                        Ethernet::Packet(packet) => (packet, ETHERNET_BYTES),
                        Ethernet::Question(answer) => {
                            let answer = [&[0; OFFLOAD_BYTES][..], &answer].concat();
                            self.refused[Refused::NotTaken as usize] += u64::from(!device.write(&answer));
                            return true;
                        }
                        Ethernet::Silence => return true,
                        Ethernet::Other => {
                            self.refused[Refused::Version as usize] += 1;
                            return true;
                        }
                    }
                }
            },
        };
        let read = Packets::read(offload, packet, before, self.mtu);
        let read = read.and_then(|packets| match to(packets.destination) {
            Some(to) => Ok((packets, to)),
            None => Err(Refused::Destination),
        });
        match read {
            Err(refused) => self.refused[refused as usize] += 1,
            Ok((packets, to)) => {
                sent.frames += 1;
                sent.packets += u64::from(packets.count());
                offer(&mut self.frames, packets, host, to, |packet| {
                    sent.bytes += u64::from(packet.wire_bytes);
                    offered.push(packet);
                });
            }
        }
        true
    }

    /// Writes the bytes of a packet that is about to leave its host.
    #[inline]
    pub fn write(&mut self, packet: &Packet, out: &mut [u8]) {
        self.frames.write(packet.header(), out);
    }

    /// A packet has come to its host: it goes to the device, or waits until the host takes it in.
    pub fn come(&mut self, packet: &Packet, content: Option<&mut [u8]>) {
        let port = self.ports.iter_mut().find(|port| port.host == packet.dst);
        match port.and_then(|port| port.unread.as_mut()) {
            Some(unread) => unread.push_back((*packet, content.map(|content| content.to_vec()).unwrap_or_default())),
            None => self.give(packet, content),
        }
    }

    /// A host that takes packets in at its own rate has taken some: they go to its device.
    pub fn taken_in(&mut self, host: HostId, ReceiveOutcome { taken, lost }: ReceiveOutcome) {
        let Some(place) = self.ports.iter().position(|port| port.host == host) else { return };
        if lost && let Some(unread) = &mut self.ports[place].unread {
            unread.pop_back();
        }
        for _ in 0..taken {
            let next = self.ports[place].unread.as_mut().and_then(VecDeque::pop_front);
            let Some((packet, mut content)) = next else { return };
            let has_content = content.len() == usize::from(packet.payload_bytes);
            self.give(&packet, has_content.then_some(&mut content[..]));
        }
    }

    /// Appends a packet to the frame for its host's device, or begins a new frame with it.
    fn give(&mut self, packet: &Packet, content: Option<&mut [u8]>) {
        let Some(port) = self.ports.iter_mut().find(|port| port.host == packet.dst) else { return };
        let Some(content) = content.filter(|_| !packet.has(flags::TRIMMED)) else {
            self.refused[Refused::Trimmed as usize] += 1;
            return;
        };
        if packet.has(flags::CE) && ip::mark(content) {
            port.marked += 1;
        }
        port.received.packets += 1;
        port.received.bytes += content.len() as u64;
        let sealed = packet.header::<FrameSlot>().sealed;
        if !port.coalescing.is_empty() {
            if port.coalescing.append(content, sealed) {
                return;
            }
            port.flush(&mut self.refused);
        }
        match port.device.mac {
            None => port.coalescing.begin(&[], content, sealed),
            Some(mac) => {
                let header = neighbours::ethernet(mac, neighbours::mac_of(packet.src.0), content);
                port.coalescing.begin(&header, content, sealed);
            }
        }
    }

    /// Writes the packets that have arrived so far to their devices.
    #[inline]
    pub fn flush(&mut self) {
        for port in &mut self.ports {
            if !port.coalescing.is_empty() {
                port.flush(&mut self.refused);
            }
        }
    }

    /// Sleeps until a device has something, for `span` at most.
    pub fn wait(&self, span: std::time::Duration) {
        #[cfg(target_os = "linux")]
        {
            use rustix::event::{PollFd, PollFlags, Timespec, poll};
            let mut ends: Vec<PollFd<'_>> =
                self.ports.iter().map(|port| PollFd::new(&port.device, PollFlags::IN)).collect();
            let span = Timespec { tv_sec: span.as_secs() as i64, tv_nsec: span.subsec_nanos().into() };
            // Interrupted or not, whoever waits looks again.
            let _ = poll(&mut ends, Some(&span));
        }
        #[cfg(not(target_os = "linux"))]
        std::thread::sleep(span);
    }
}

/// Packets of a frame, from one host to another.
fn offer(frames: &mut Frames, packets: Packets, from: HostId, to: HostId, mut take: impl FnMut(Packet)) {
    let ecn = match packets.ecn() {
        0 => 0,
        3 => flags::ECT | flags::CE,
        _ => flags::ECT,
    };
    let (flow, sealed) = (FlowId(packets.flow), packets.is_sealed());
    let lengths: Vec<u16> = (0..packets.count()).map(|index| packets.length(index) as u16).collect();
    let frame = frames.push(packets);
    for (index, length) in (0..).zip(lengths) {
        let mut packet = Packet::new(flow, from, to, FrameSlot { frame, index, sealed });
        (packet.wire_bytes, packet.payload_bytes, packet.flags) = (length, length, ecn);
        take(packet);
    }
}

impl Port {
    fn flush(&mut self, refused: &mut [u64; Refused::ALL.len()]) {
        let taken = self.device.write(self.coalescing.take());
        self.received.frames += u64::from(taken);
        refused[Refused::NotTaken as usize] += u64::from(!taken);
    }
}
