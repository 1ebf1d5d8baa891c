//! An output port: eight class queues, a scheduler, and a transmitter that takes one packet at a time.

use crate::Walk;
use units::{Duration, PerByte, Rate, Time};

use crate::packet::CLASSES;
use crate::pool::{Fifo, Hop, PacketId, Pool};
use crate::telemetry::{HopRecord, SENT, SENT_UNIT};

/// An output port of a switch. The fields that every packet touches come first and take two cache lines: up to the
/// first queues and the first counters.
#[derive(Clone, Debug, node::State)]
#[state(first(let told = self.visit_told(walk)), last(self.stats.sent_bytes = told.unwrap_or(self.stats.sent_bytes)))]
#[repr(C, align(64))]
pub struct Port {
    #[state(skip("it follows from the rate"))]
    per_byte: PerByte,
    /// Until when the transmitter is busy.
    #[state(expired)]
    free_at: Time,
    queued_bytes: u32,
    /// Classes that have packets, as bits.
    backlog: u8,
    /// Classes that flow control has paused, as bits.
    paused: u8,
    up: bool,
    #[state(built("it never changes"))]
    hop: Hop,
    /// Frames to the neighbour, which go before everything else.
    frames: Fifo,
    round_robin: Option<Box<RoundRobin>>,
    queues: [Queue; CLASSES],
    /// Counters.
    pub stats: PortStats,
    #[state(when(self.paused != 0, past))]
    paused_since: Time,
    rate: Rate,
    /// Whether packets have gathered telemetry here.
    told: bool,
}

#[derive(Clone, Copy, Debug, Default, node::State)]
struct Queue {
    packets: Fifo,
    bytes: u32,
}

/// Counters of a port, the frequent ones first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, node::State)]
#[state(counts)]
#[repr(C)]
pub struct PortStats {
    /// Packets sent.
    pub sent_packets: u64,
    /// Bytes sent.
    pub sent_bytes: u64,
    /// Total time that packets waited here.
    pub waited: Duration,
    /// Packets that had to wait here.
    pub waited_packets: u64,
    /// Most bytes in all its queues together.
    #[state(same)]
    pub queued_bytes_max: u32,
    /// Packets lost because the buffer was full.
    pub overflow_packets: u64,
    /// Bytes of these packets.
    pub overflow_bytes: u64,
    /// Packets whose payload was cut off because the buffer was full.
    pub trimmed_packets: u64,
    /// Packets lost because the link or the switch was down.
    pub dead_packets: u64,
    /// Bytes of these packets.
    pub dead_bytes: u64,
    /// Packets marked "congestion experienced" here.
    pub marked_packets: u64,
    /// Frames sent to the neighbour, which no other counter includes.
    pub sent_frames: u64,
    /// Most queues of the flow control's own in use at one time.
    #[state(same)]
    pub own_queues_max: u32,
    /// Number of pauses.
    pub pauses: u64,
    /// Total duration of pauses up to the last resume.
    pub paused: Duration,
    /// Packets that were to leave here and had passed too many switches ([`crate::packet::HOPS_MAX`]).
    pub expired_packets: u64,
    /// Bytes of these packets.
    pub expired_bytes: u64,
    /// Packets that arrived by its link and had no path onward.
    pub unroutable_packets: u64,
    /// Of the bytes sent, those that had not left when the run ended: a packet was in transmission. 0 before.
    #[state(skip("it is set at the end"))]
    pub unsent_bytes: u64,
}

/// Round robin among classes of equal priority, by bytes (deficit round robin, Shreedhar and Varghese 1995).
#[derive(Clone, Debug, node::State)]
struct RoundRobin {
    /// By class: the classes of its level, as bits.
    level: [u8; CLASSES],
    deficit: [u32; CLASSES],
    /// By level (named by its first class): the class that is being served.
    turn: [u8; CLASSES],
}

/// What one turn adds to a class's deficit: a jumbo frame, so that a turn always sends a packet.
const QUANTUM_BYTES: u32 = 9_216;

impl Port {
    /// A port of a link of `rate`. `levels` groups classes of equal priority; empty means strict priority by class.
    pub fn new(rate: Rate, hop: Hop, levels: &[Vec<u8>]) -> Port {
        Port {
            per_byte: rate.per_byte(),
            hop,
            backlog: 0,
            paused: 0,
            up: true,
            frames: Fifo::default(),
            queues: Default::default(),
            queued_bytes: 0,
            free_at: Time::ZERO,
            round_robin: RoundRobin::new(levels),
            paused_since: Time::ZERO,
            rate,
            told: false,
            stats: PortStats::default(),
        }
    }

    /// The same port with transmission times rounded down to whole multiples of `step`; zero does not round.
    pub fn in_steps_of(self, step: Duration) -> Port {
        Port { per_byte: self.per_byte.in_steps_of(step), ..self }
    }

    /// The same port, whose transmit clock is fast by `clock_ppb` parts per billion, or slow if that is negative.
    pub fn by_clock(self, clock_ppb: i32) -> Port {
        Port { per_byte: self.per_byte.by_clock(self.rate, clock_ppb), ..self }
    }

    /// Transmits at `rate` from the next packet on. The link's nominal rate, which others go by, stays.
    pub fn transmit_at(&mut self, rate: Rate) {
        self.per_byte = self.per_byte.at(rate);
    }

    /// The kind of hop that its link is.
    pub fn hop(&self) -> Hop {
        self.hop
    }

    /// The rate of its link.
    pub fn rate(&self) -> Rate {
        self.rate
    }

    /// Bytes that wait here, in all classes.
    #[inline]
    pub fn queued_bytes(&self) -> u32 {
        self.queued_bytes
    }

    /// Bytes that wait in one class.
    #[inline]
    pub fn class_bytes(&self, class: u8) -> u32 {
        self.queues[class as usize].bytes
    }

    /// Until when the transmitter is busy.
    #[inline]
    pub fn free_at(&self) -> Time {
        self.free_at
    }

    /// Of the bytes that it has begun to send, those that have not left by `now`.
    pub fn unsent_bytes(&self, now: Time) -> u64 {
        self.per_byte.bytes_in(self.free_at.since(now)).min(self.stats.sent_bytes)
    }

    /// Whether the link is up.
    #[inline]
    pub fn is_up(&self) -> bool {
        self.up
    }

    /// Whether a packet waits that may be sent.
    #[inline]
    pub fn has_sendable(&self) -> bool {
        self.has_sendable_of(u8::MAX)
    }

    /// As [`Port::has_sendable`], of the classes whose bits are set.
    #[inline]
    pub fn has_sendable_of(&self, classes: u8) -> bool {
        self.backlog & !self.paused & classes != 0
    }

    /// The most urgent class with a packet that may be sent.
    #[inline]
    pub fn most_urgent(&self) -> Option<u8> {
        let ready = self.backlog & !self.paused;
        (ready != 0).then(|| ready.trailing_zeros() as u8)
    }

    /// The place of a class in the order of service: the first class of its level. Lower goes first.
    #[inline]
    pub fn urgency(&self, class: u8) -> u8 {
        let level = self.round_robin.as_deref().map_or(1 << class, |turns| turns.level[usize::from(class)]);
        level.trailing_zeros() as u8
    }

    /// Pauses the classes whose bits are set and lets the others go on.
    pub fn set_paused(&mut self, classes: u8, now: Time) {
        match (self.paused, classes) {
            (0, 1..) => {
                self.paused_since = now;
                self.stats.pauses += 1;
            }
            (1.., 0) => self.stats.paused += now - self.paused_since,
            _ => {}
        }
        self.paused = classes;
    }

    /// Total time paused by `now`, in any class.
    pub fn paused_time(&self, now: Time) -> Duration {
        let running = if self.paused == 0 { Duration::ZERO } else { now.since(self.paused_since) };
        self.stats.paused + running
    }

    /// Paused classes, as bits.
    #[inline]
    pub fn paused(&self) -> u8 {
        self.paused
    }

    /// The packets of a class.
    pub fn class_packets(&self, class: u8) -> Fifo {
        self.queues[class as usize].packets
    }

    /// The port's telemetry for a packet that begins to leave now and leaves `left_bytes` behind in its queue.
    pub(crate) fn tell(&mut self, now: Time, left_bytes: u32) -> HopRecord {
        self.told = true;
        HopRecord::new(self.rate, now, self.stats.sent_bytes, left_bytes)
    }

    /// Counts a packet that begins to wait here in a queue of the flow control's.
    #[inline]
    pub fn hold(&mut self, now: Time, pool: &mut Pool, id: PacketId) {
        let slot = pool.get_mut(id);
        slot.transit.at = now;
        self.queued_bytes += u32::from(slot.packet.wire_bytes);
        self.stats.queued_bytes_max = self.stats.queued_bytes_max.max(self.queued_bytes);
    }

    /// Counts a packet that leaves such a queue.
    #[inline]
    pub fn release(&mut self, pool: &Pool, id: PacketId) {
        self.queued_bytes -= u32::from(pool.get(id).packet.wire_bytes);
    }

    /// If packets gather telemetry here: what it tells is rounded, so it is alike only at the same places between two
    /// units. And what packets and senders know of its counter must have moved by as much as the counter has. Returns
    /// what the counter is to be if averages move it: as much as they know, which is a whole number of units.
    fn visit_told(&self, walk: &mut Walk) -> Option<u64> {
        let mut sent = self.stats.sent_bytes;
        if self.told {
            walk.same_of("the part of a nanosecond that has passed", walk.now().ps() % 1_000);
            walk.same_of("the part of a unit that a port has sent", sent % SENT_UNIT);
            walk.turn_at(walk.here(), SENT, &mut sent);
        }
        (self.told && walk.by_averages()).then_some(sent)
    }

    /// Appends a packet that was already waiting to the queue of its class. The start of its wait stays.
    #[inline]
    pub fn push_held(&mut self, pool: &mut Pool, id: PacketId) {
        let packet = &pool.get(id).packet;
        let (class, bytes) = (packet.class as usize, u32::from(packet.wire_bytes));
        let queue = &mut self.queues[class];
        queue.packets.push(pool, id);
        queue.bytes += bytes;
        self.backlog |= 1 << class;
    }

    pub(crate) fn push_frame(&mut self, pool: &mut Pool, id: PacketId) {
        self.frames.push(pool, id);
    }

    /// Begins to send a frame, if one waits.
    pub(crate) fn transmit_frame(&mut self, now: Time, pool: &mut Pool) -> Option<PacketId> {
        let id = self.frames.pop(pool)?;
        self.free_at = now + self.per_byte.transmit(u32::from(pool.get(id).packet.wire_bytes));
        self.stats.sent_frames += 1;
        Some(id)
    }

    /// Is busy with so many bytes that are in no queue. Returns until when.
    pub(crate) fn occupy(&mut self, now: Time, bytes: u32) -> Time {
        self.free_at = now + self.per_byte.transmit(bytes);
        self.free_at
    }

    /// Whether a frame waits.
    #[inline]
    pub fn has_frame(&self) -> bool {
        !self.frames.is_empty()
    }

    pub(crate) fn drop_frames(&mut self, pool: &mut Pool) {
        while let Some(id) = self.frames.pop(pool) {
            pool.remove(id);
        }
    }

    /// Appends a packet to the queue of its class.
    #[inline]
    pub fn push(&mut self, now: Time, pool: &mut Pool, id: PacketId) {
        let slot = pool.get_mut(id);
        slot.transit.at = now;
        let (class, bytes) = (slot.packet.class as usize, u32::from(slot.packet.wire_bytes));
        let queue = &mut self.queues[class];
        queue.packets.push(pool, id);
        queue.bytes += bytes;
        self.backlog |= 1 << class;
        self.queued_bytes += bytes;
        self.stats.queued_bytes_max = self.stats.queued_bytes_max.max(self.queued_bytes);
    }

    /// Dequeues the next packet; `None` if nothing may be sent.
    #[inline]
    pub fn take_next(&mut self, pool: &mut Pool) -> Option<PacketId> {
        self.take_next_of(u8::MAX, pool)
    }

    /// As [`Port::take_next`], of the classes whose bits are set.
    #[inline]
    pub fn take_next_of(&mut self, classes: u8, pool: &mut Pool) -> Option<PacketId> {
        let ready = self.backlog & !self.paused & classes;
        if ready == 0 {
            return None;
        }
        let lowest = ready.trailing_zeros() as u8;
        let class = match &mut self.round_robin {
            None => lowest,
            Some(turns) => {
                let queues = &self.queues;
                turns.pick(ready, lowest, |class| {
                    let first = queues[class as usize].packets.first().expect("its backlog bit is set");
                    u32::from(pool.get(first).packet.wire_bytes)
                })
            }
        };
        self.take(class, |queue, pool| queue.pop(pool), pool)
    }

    /// Begins to send a dequeued packet: records its wait and makes the transmitter busy until [`Port::free_at`].
    #[inline]
    pub(crate) fn transmit(&mut self, now: Time, pool: &mut Pool, id: PacketId) {
        let slot = pool.get_mut(id);
        let bytes = u32::from(slot.packet.wire_bytes);
        let waited = now - slot.transit.at;
        slot.transit.queued[self.hop as usize] += waited;
        // Under cut-through the tail may still be arriving; the link stays busy until it has passed.
        let tail_in = slot.transit.at + slot.transit.tail_lag.time();
        self.free_at = (now + self.per_byte.transmit(bytes)).max(tail_in);
        self.stats.sent_packets += 1;
        self.stats.sent_bytes += u64::from(bytes);
        self.stats.waited_packets += u64::from(waited > Duration::ZERO);
        self.stats.waited += waited;
    }

    /// Whether a packet that comes now would be the next to leave, and now: the link is up, nothing is being sent,
    /// waits or is paused, and no class has a turn.
    #[inline(always)]
    pub(crate) fn is_idle(&self, now: Time) -> bool {
        self.free_at <= now
            && self.up
            && self.backlog | self.paused == 0
            && self.frames.is_empty()
            && self.round_robin.is_none()
    }

    /// As [`Port::push`] and [`Port::transmit`], of a packet that finds the port idle and whose tail comes `tail_lag`
    /// after its head.
    #[inline(always)]
    pub(crate) fn transmit_at_once(&mut self, now: Time, bytes: u32, tail_lag: Duration) {
        self.free_at = now + self.per_byte.transmit(bytes).max(tail_lag);
        self.stats.queued_bytes_max = self.stats.queued_bytes_max.max(bytes);
        self.stats.sent_packets += 1;
        self.stats.sent_bytes += u64::from(bytes);
    }

    /// Removes the last packet of the least urgent class, if that class is less urgent than `class`.
    pub fn push_out(&mut self, class: u8, pool: &mut Pool) -> Option<PacketId> {
        let last = 7u8.checked_sub(self.backlog.leading_zeros() as u8).filter(|&last| last > class)?;
        self.take(last, |queue, pool| queue.pop_last(pool), pool)
    }

    /// The link goes down or comes up again. The caller removes the packets that wait here.
    pub fn set_up(&mut self, up: bool) {
        self.up = up;
    }

    /// Removes any packet, paused or not.
    pub fn drain(&mut self, pool: &mut Pool) -> Option<PacketId> {
        let class = (self.backlog != 0).then(|| self.backlog.trailing_zeros() as u8)?;
        self.take(class, |queue, pool| queue.pop(pool), pool)
    }

    #[inline]
    fn take(
        &mut self,
        class: u8,
        pop: impl FnOnce(&mut Fifo, &mut Pool) -> Option<PacketId>,
        pool: &mut Pool,
    ) -> Option<PacketId> {
        let queue = &mut self.queues[class as usize];
        let id = pop(&mut queue.packets, pool)?;
        let bytes = u32::from(pool.get(id).packet.wire_bytes);
        queue.bytes -= bytes;
        self.queued_bytes -= bytes;
        if queue.packets.is_empty() {
            self.backlog &= !(1 << class);
        }
        Some(id)
    }
}

impl RoundRobin {
    fn new(levels: &[Vec<u8>]) -> Option<Box<RoundRobin>> {
        let mut level: [u8; CLASSES] = std::array::from_fn(|class| 1 << class);
        for classes in levels {
            let bits = classes.iter().fold(0, |bits, &class| bits | 1 << class);
            for &class in classes {
                level[class as usize] = bits;
            }
        }
        let shared = level.iter().any(|bits| bits.count_ones() > 1);
        shared.then(|| Box::new(RoundRobin { level, deficit: [0; CLASSES], turn: std::array::from_fn(|c| c as u8) }))
    }

    /// The class to serve among `ready`, within the level of `lowest`.
    fn pick(&mut self, ready: u8, lowest: u8, first_bytes: impl Fn(u8) -> u32) -> u8 {
        let level = self.level[lowest as usize];
        let ready = ready & level;
        let turn = &mut self.turn[level.trailing_zeros() as usize];
        loop {
            let class = *turn;
            if ready >> class & 1 == 1 {
                let bytes = first_bytes(class);
                if self.deficit[class as usize] >= bytes {
                    self.deficit[class as usize] -= bytes;
                    return class;
                }
            } else {
                self.deficit[class as usize] = 0; // an idle class saves nothing
            }
            // The next ready class of the level gets its turn and quantum.
            let after = ready & u8::MAX.checked_shl(u32::from(class) + 1).unwrap_or(0);
            *turn = if after != 0 { after.trailing_zeros() } else { ready.trailing_zeros() } as u8;
            self.deficit[*turn as usize] += QUANTUM_BYTES;
        }
    }
}
