//! The cores of a host: what software costs between an application and the NIC.
//!
//! A message passes through stages, named as Homa/Linux's published timelines name them (HomaModule's notes on
//! performance, item 33). Each takes its time on one core, or passes as time alone:
//!
//! | stage | takes |
//! |---|---|
//! | an application hands a message over | `per_message_send` of a core |
//! | packets leave, in batches of one flow (TSO) | `per_packet_send` of a core for each batch |
//! | a packet crosses the PCIe bus, each way | its bytes at `pcie_rate`, and `pcie_latency` |
//! | the NIC holds its interrupt back | `interrupt_moderation` |
//! | the core of the packet's flow (RSS) polls the NIC | `interrupt` of that core, then `per_packet_receive` for each |
//! | packets of a flow that were polled together are one batch (GRO); another core is woken for it | `hand_over` |
//! | the protocol takes the batch in | `per_batch_receive` of that core |
//! | a thread is woken for a message that has come whole, if it sleeps | `wake_up` |
//! | it receives the message | `per_message_receive` of the thread's core |
//!
//! Two cores may be siblings, hardware threads of one: then each takes `sibling_slowdown` times as long for what it
//! begins while the other works or has a thread that polls.
//!
//! A core does one thing at a time, and what comes meanwhile waits in order. The kernel's work goes before that
//! of threads, as SoftIRQs go before processes, and nothing is broken off. A core that has work is never idle. Packets
//! of a flow stay in order: all of a stage's work for one flow is done by one core.
//!
//! Decided here, where measurements leave it open:
//!
//! - *Flows are spread by a hash of their number.* A message is a flow here, so that messages between the same two
//!   hosts may be spread over several cores. A NIC hashes addresses and ports.
//! - *A poll takes at most 64 packets* (NAPI's weight) and asks for another if more have come, behind what else waits.
//! - *A transport is asked for packets* as long as fewer than `nic_queue` bytes are on their way from it to the link,
//!   so that it still chooses late what to send.
//!
//! Deliberately absent: time for each byte that is copied, caches, the time slices of a scheduler, and the limit of a
//! receive ring.

mod spec;

use std::collections::{BTreeMap, VecDeque};

use units::{FlowId, Time, mix};

use crate::pool::Transit;
use crate::{Packet, Telemetry};

pub use spec::{Costs, CpuLike, CpuSpec};

/// Most packets of one poll: NAPI's weight.
const WEIGHT: usize = 64;

/// The hashes that spread flows over cores; each stage has a hash of its own.
#[derive(Clone, Copy)]
enum Spread {
    /// The NIC's queues.
    Rss = 1,
    /// The cores that are woken for batches.
    HandOver = 2,
    /// The threads that send.
    Senders = 3,
    /// The sockets of threads that receive.
    Receivers = 4,
}

/// A packet that has come, with its history.
#[derive(Clone, Copy, Debug, crate::Saved)]
pub struct Arrived {
    /// The packet.
    pub packet: Packet,
    /// Its history in the network.
    pub transit: Transit,
    /// Its telemetry, if it is flagged for it.
    pub telemetry: Option<Telemetry>,
}

/// The result of a core's work, for its host to go on with.
#[derive(Debug)]
pub enum Done {
    /// The protocol gets these packets.
    Packets(Vec<Arrived>),
    /// The transport of this index gets a message of an application.
    Submitted(FlowId, u8),
    /// An application has a message.
    Read(Message),
}

/// A message that has come whole.
#[derive(Clone, Copy, Debug, crate::Saved)]
pub struct Message {
    /// Its flow.
    pub flow: FlowId,
    /// The index of the transport that brought it.
    pub transport: u8,
    /// The history of the packet that made it whole, if one did.
    pub transit: Option<Transit>,
}

/// Something that a core does.
#[derive(Debug, crate::Saved)]
enum Work {
    /// Takes packets from the NIC, after an interrupt or since more have come.
    Poll { interrupted: bool },
    /// The same under way, with what it took.
    Polled(Vec<Arrived>),
    /// Takes a batch in.
    TakeIn(Vec<Arrived>),
    /// Hands a batch to the NIC.
    Send(Vec<Packet>),
    /// Hands a message over.
    Submit { flow: FlowId, transport: u8 },
    /// Receives a message, by a thread.
    Read { message: Message, thread: u32 },
}

impl Work {
    /// Whether the kernel does it, and not a thread.
    fn is_kernel(&self) -> bool {
        !matches!(self, Work::Submit { .. } | Work::Read { .. })
    }
}

/// Something that happens at a later time.
#[derive(Debug, crate::Saved)]
enum Later {
    /// A packet is in the host's memory.
    Landed(Box<Arrived>),
    /// A core has this to do.
    Work { core: u32, work: Work },
}

#[derive(Debug, Default, crate::Saved)]
struct Core {
    kernel: VecDeque<Work>,
    threads: VecDeque<Work>,
    running: Option<Work>,
    /// When it is done with that.
    until: Time,
    /// Packets in memory that it has not polled.
    ring: VecDeque<Arrived>,
    /// Whether it polls, or will soon, so that the NIC raises no interrupt.
    polls: bool,
}

impl Core {
    fn load(&self) -> usize {
        self.kernel.len() + self.threads.len() + usize::from(self.running.is_some())
    }
}

/// A thread that receives messages.
#[derive(Clone, Debug, Default, crate::Saved)]
struct Thread {
    /// Messages that it has been given and has not received.
    given: u32,
    /// When it received the last one.
    last: Time,
    /// Whether it ever did.
    used: bool,
}

/// The cores of a host.
#[derive(Debug, crate::Saved)]
pub struct Cpu {
    costs: Costs,
    cores: Vec<Core>,
    threads: Vec<Thread>,
    /// In the order of time, then of coming.
    later: BTreeMap<(Time, u64), Later>,
    count: u64,
    /// When the PCIe bus is free, into the host and out of it.
    bus: [Time; 2],
    /// Batches that the transport has just made, for cores that do not know of them yet.
    gathered: Vec<Vec<Packet>>,
    /// Packets on the bus to the NIC.
    outward: VecDeque<(Time, Packet)>,
    /// Packets in the NIC.
    ready: VecDeque<Packet>,
    /// Bytes on their way from the transport to the link.
    pulled_bytes: u64,
}

impl Cpu {
    /// Cores that have nothing to do yet.
    pub fn new(costs: Costs) -> Cpu {
        let cores = (0..costs.cores).map(|_| Core::default()).collect();
        let threads = vec![Thread::default(); costs.threads as usize];
        let (later, outward, ready) = (BTreeMap::new(), VecDeque::new(), VecDeque::new());
        let (gathered, bus) = (Vec::new(), [Time::ZERO; 2]);
        Cpu { costs, cores, threads, later, count: 0, bus, gathered, outward, ready, pulled_bytes: 0 }
    }

    /// When something happens here by itself.
    pub fn next_at(&self) -> Time {
        let cores = self.cores.iter().filter(|core| core.running.is_some()).map(|core| core.until);
        let first = self.later.first_key_value().map(|first| first.0.0);
        cores.chain(first).chain(self.outward.front().map(|first| first.0)).min().unwrap_or(Time::MAX)
    }

    /// Goes on until a core has done something that its host must know, or nothing more happens by `now`.
    pub fn next(&mut self, now: Time) -> Option<Done> {
        loop {
            let at = self.next_at();
            if at > now {
                return None;
            }
            if self.outward.front().is_some_and(|first| first.0 == at) {
                self.ready.extend(self.outward.pop_front().map(|first| first.1));
            } else if let Some(first) = self.later.first_entry().filter(|first| first.key().0 == at) {
                match first.remove() {
                    Later::Landed(arrived) => self.land(at, *arrived),
                    Later::Work { core, work } => self.give(at, core, work),
                }
            } else {
                let due = |core: &Core| core.running.is_some() && core.until == at;
                let core = self.cores.iter().position(due).expect("a core is due");
                let done = self.finish(at, core as u32);
                if done.is_some() {
                    return done;
                }
            }
        }
    }

    /// A packet has come in at the NIC.
    pub fn arrive(&mut self, now: Time, arrived: Arrived) {
        let landed = self.cross(0, now, arrived.packet.wire_bytes.into());
        self.at(landed, Later::Landed(Box::new(arrived)));
    }

    /// An application hands a message over.
    pub fn submit(&mut self, now: Time, flow: FlowId, transport: u8) {
        let core = self.core_of(flow, Spread::Senders);
        self.give(now, core, Work::Submit { flow, transport });
    }

    /// A message has come whole.
    pub fn read(&mut self, now: Time, message: Message) {
        let thread = self.thread_for(message.flow);
        let Thread { given, last, .. } = &mut self.threads[thread as usize];
        let sleeps = *given == 0 && now.since(*last) >= self.costs.polling;
        *given += 1;
        let (core, work) = (thread % self.costs.cores, Work::Read { message, thread });
        match sleeps {
            true => self.at(now + self.costs.wake_up, Later::Work { core, work }),
            false => self.give(now, core, work),
        }
    }

    /// Bytes for which the transport may be asked now. With any room there is some for a whole batch: otherwise a
    /// full queue would let packets in one by one, each a batch of its own.
    pub fn room(&self) -> u64 {
        let Costs { nic_queue, tso, .. } = self.costs;
        if self.pulled_bytes < nic_queue { (nic_queue - self.pulled_bytes).max(tso) } else { 0 }
    }

    /// The transport has made a packet. Those of one flow that follow each other are one batch, until
    /// [`Cpu::hand_out`].
    pub fn send(&mut self, packet: Packet) {
        self.pulled_bytes += u64::from(packet.wire_bytes);
        let bytes = |batch: &[Packet]| batch.iter().map(|packet| u64::from(packet.wire_bytes)).sum::<u64>();
        match self.gathered.last_mut() {
            Some(batch)
                if batch[0].flow == packet.flow
                    && batch[0].class == packet.class
                    && packet.payload_bytes > 0
                    && bytes(batch) + u64::from(packet.wire_bytes) <= self.costs.tso =>
            {
                batch.push(packet);
            }
            _ => self.gathered.push(vec![packet]),
        }
    }

    /// The transport makes no more packets for now: cores are given the batches.
    pub fn hand_out(&mut self, now: Time) {
        for batch in std::mem::take(&mut self.gathered) {
            let core = self.core_of(batch[0].flow, Spread::Senders);
            self.give(now, core, Work::Send(batch));
        }
    }

    /// The next packet for the link.
    pub fn pull(&mut self) -> Option<Packet> {
        let packet = self.ready.pop_front()?;
        self.pulled_bytes -= u64::from(packet.wire_bytes);
        Some(packet)
    }

    fn core_of(&self, flow: FlowId, spread: Spread) -> u32 {
        below(flow, spread, self.costs.cores)
    }

    /// The thread that receives a message: of its socket's one that has least to do, on a core with least to do.
    fn thread_for(&self, flow: FlowId) -> u32 {
        let Costs { threads, ports, .. } = self.costs;
        let load = |thread: &u32| {
            let core = &self.cores[(thread % self.costs.cores) as usize];
            (self.threads[*thread as usize].given, core.load())
        };
        let socket = below(flow, Spread::Receivers, ports);
        (socket..threads).step_by(ports as usize).min_by_key(load).expect("there is a thread")
    }

    fn at(&mut self, at: Time, later: Later) {
        self.later.insert((at, self.count), later);
        self.count += 1;
    }

    /// Bytes cross the bus, after those before them. Returns when they are across.
    fn cross(&mut self, way: usize, now: Time, bytes: u64) -> Time {
        let begin = self.bus[way].max(now);
        self.bus[way] = begin + self.costs.pcie_time(bytes);
        self.bus[way] + self.costs.pcie_latency
    }

    fn land(&mut self, now: Time, arrived: Arrived) {
        let core = self.core_of(arrived.packet.flow, Spread::Rss);
        let Core { ring, polls, .. } = &mut self.cores[core as usize];
        ring.push_back(arrived);
        if !std::mem::replace(polls, true) {
            let work = Work::Poll { interrupted: true };
            self.at(now + self.costs.interrupt_moderation, Later::Work { core, work });
        }
    }

    fn give(&mut self, now: Time, core: u32, work: Work) {
        let of = &mut self.cores[core as usize];
        if work.is_kernel() {
            of.kernel.push_back(work)
        } else {
            of.threads.push_back(work)
        }
        self.begin(now, core);
    }

    /// A core that does nothing begins what is next, if anything is.
    fn begin(&mut self, now: Time, core: u32) {
        if self.cores[core as usize].running.is_some() {
            return;
        }
        let slow = self.costs.sibling_slowdown > 1.0 && self.is_busy(now, core ^ 1);
        let (costs, of) = (&self.costs, &mut self.cores[core as usize]);
        let Some(work) = of.kernel.pop_front().or_else(|| of.threads.pop_front()) else { return };
        let (work, takes) = match work {
            Work::Poll { interrupted } => {
                let taken: Vec<Arrived> = of.ring.drain(..of.ring.len().min(WEIGHT)).collect();
                let takes = costs.per_packet_receive * taken.len() as u64;
                (Work::Polled(taken), if interrupted { takes + costs.interrupt } else { takes })
            }
            Work::TakeIn(_) => (work, costs.per_batch_receive),
            Work::Send(_) => (work, costs.per_packet_send),
            Work::Submit { .. } => (work, costs.per_message_send),
            Work::Read { .. } | Work::Polled(_) => (work, costs.per_message_receive),
        };
        let takes = if slow { takes.mul_f64(costs.sibling_slowdown) } else { takes };
        (of.running, of.until) = (Some(work), now + takes);
    }

    /// Whether a core works, or has a thread that polls.
    fn is_busy(&self, now: Time, core: u32) -> bool {
        let polls = |thread: &Thread| thread.used && thread.given == 0 && now.since(thread.last) < self.costs.polling;
        let runs = self.cores.get(core as usize).is_some_and(|core| core.running.is_some());
        runs || self.threads.iter().skip(core as usize).step_by(self.costs.cores as usize).any(polls)
    }

    fn finish(&mut self, now: Time, core: u32) -> Option<Done> {
        let done = match self.cores[core as usize].running.take()? {
            Work::Poll { .. } => None,
            Work::Polled(packets) => {
                self.hand_over(now, core, packets);
                None
            }
            Work::TakeIn(batch) => Some(Done::Packets(batch)),
            Work::Send(batch) => {
                for packet in batch {
                    let at = self.cross(1, now, packet.wire_bytes.into());
                    self.outward.push_back((at, packet));
                }
                None
            }
            Work::Submit { flow, transport } => Some(Done::Submitted(flow, transport)),
            Work::Read { message, thread } => {
                let thread = &mut self.threads[thread as usize];
                *thread = Thread { given: thread.given - 1, last: now, used: true };
                Some(Done::Read(message))
            }
        };
        self.begin(now, core);
        done
    }

    /// Makes batches of what a core has polled, and gives them to the cores of their flows.
    fn hand_over(&mut self, now: Time, core: u32, packets: Vec<Arrived>) {
        let mut batches: Vec<Vec<Arrived>> = Vec::new();
        for arrived in packets {
            let fits = |batch: &&mut Vec<Arrived>| {
                let data = arrived.packet.payload_bytes > 0 && batch[0].packet.payload_bytes > 0;
                data && batch[0].packet.flow == arrived.packet.flow
            };
            // Only the last of its flow: packets keep their order.
            let last = batches.iter_mut().rfind(|batch| batch[0].packet.flow == arrived.packet.flow);
            match last.filter(fits).filter(|batch| batch.len() < self.costs.gro as usize) {
                Some(batch) => batch.push(arrived),
                None => batches.push(vec![arrived]),
            }
        }
        for batch in batches {
            match self.costs.hand_over {
                units::Duration::ZERO => self.cores[core as usize].kernel.push_back(Work::TakeIn(batch)),
                wait => {
                    let to = self.core_of(batch[0].packet.flow, Spread::HandOver);
                    self.at(now + wait, Later::Work { core: to, work: Work::TakeIn(batch) });
                }
            }
        }
        let of = &mut self.cores[core as usize];
        of.polls = !of.ring.is_empty();
        if of.polls {
            of.kernel.push_back(Work::Poll { interrupted: false });
        }
    }
}

/// A number below `count` that follows from a flow.
fn below(flow: FlowId, spread: Spread, count: u32) -> u32 {
    let hash = mix(spread as u64, u64::from(flow.0)) >> 32;
    ((hash * u64::from(count)) >> 32) as u32
}

#[cfg(test)]
mod tests;
