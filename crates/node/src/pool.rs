//! The pool of packets inside a network: slots of two cache lines, named by a 32-bit id.
//!
//! A packet is written once, when its host sends it, and read in place at every hop. Queues and links are doubly linked
//! lists through the slots, so no queue ever allocates, and a full buffer can drop a queue's last packet.

use units::{Duration, Time};

use crate::packet::flags;
use crate::saved::{Damaged, Loader, Saver, Tree};
use crate::{Packet, Saved, State, Telemetry, Walk, prefetch};

/// The id of a packet in its [`Pool`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketId(u32);

/// A person sees the packet.
impl Saved for PacketId {
    fn save(&self, to: &mut Saver) {
        to.chained(self.0, false);
    }

    fn load(&mut self, from: &mut Loader<'_>) -> Result<(), Damaged> {
        self.0.load(from)
    }

    fn make(from: &mut Loader<'_>) -> Result<Self, Damaged> {
        u32::make(from).map(PacketId)
    }
}

impl PacketId {
    /// Index of the slot, for a driver that keeps more about each packet than its slot holds.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

const NIL: u32 = u32::MAX;

/// A packet and its history in the network.
#[derive(Clone, Copy, Debug, Saved)]
#[repr(C, align(128))]
pub struct Slot {
    /// The packet.
    pub packet: Packet,
    /// Its history so far.
    pub transit: Transit,
}

/// A packet's history in the network: the second cache line of its slot.
#[derive(Clone, Copy, Debug, Default, node::State)]
pub struct Transit {
    #[state(skip("the list that it is in visits this"))]
    next: u32,
    #[state(skip("the list that it is in visits this"))]
    prev: u32,
    /// In a queue: time of arrival. On a link: time at which the packet behind it comes out.
    #[state(skip("the list that it is in visits this"))]
    pub at: Time,
    /// When its first bit left the sender.
    #[state(past)]
    pub sent: Time,
    /// Time spent in queues, by kind of [`Hop`].
    pub queued: [Duration; 3],
    /// Time spent in transmission over all links. Under cut-through: that of the head on each link, and of the whole
    /// packet at the end.
    pub serialised: Duration,
    /// Under cut-through: time from the arrival of the head, which is when the packet is seen, to that of the tail.
    pub tail_lag: TailLag,
    /// The port by which it entered its current switch.
    pub in_port: u16,
    /// Its queue at the previous node, if the flow control numbers queues.
    pub queue: u16,
}

impl Transit {
    /// A packet whose first bit leaves its sender now.
    #[inline]
    pub fn leaving(now: Time) -> Transit {
        Transit { sent: now, ..Transit::default() }
    }
}

/// The time from a packet's head to its tail, in the 32 bits that a slot has for it. Below 2^31 ps, which 1,500 bytes
/// take at 5.6 Mbps, it is exact; beyond, it is rounded up by less than one part in 2^24.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, node::State)]
pub struct TailLag(u32);

impl TailLag {
    /// Below this bit stands the time in picoseconds; with it, 5 bits say by how many places the other 26 are shifted.
    const SHIFTED: u32 = 1 << 31;
    const PLACES: u32 = 26;

    /// Of a duration.
    #[inline]
    pub fn of(lag: Duration) -> TailLag {
        match u32::try_from(lag.ps()) {
            Ok(ps) if ps < Self::SHIFTED => TailLag(ps),
            _ => TailLag::long(lag.ps()),
        }
    }

    #[cold]
    fn long(ps: u64) -> TailLag {
        let shift = (u64::BITS - ps.leading_zeros() + 1 - Self::PLACES).min(31);
        let rest = ps.div_ceil(1 << shift).min((1 << Self::PLACES) - 1);
        TailLag(Self::SHIFTED | shift << Self::PLACES | rest as u32)
    }

    /// As a duration.
    #[inline]
    pub fn time(self) -> Duration {
        let shift = (self.0 & !Self::SHIFTED) >> Self::PLACES;
        let rest = self.0 & ((1 << Self::PLACES) - 1);
        let shifted = self.0 & Self::SHIFTED != 0;
        Duration::from_ps(if shifted { u64::from(rest) << shift } else { self.0.into() })
    }

    /// As it stands in a slot.
    pub fn bits(self) -> u32 {
        self.0
    }

    /// The same back. Any bits are a time.
    pub fn from_bits(bits: u32) -> TailLag {
        TailLag(bits)
    }
}

/// The kinds of hop by which waiting is broken down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Hop {
    /// Away from hosts, and every hop between switches of a direct-connect fabric.
    Up = 0,
    /// Between switches, towards hosts.
    Down = 1,
    /// From a switch to the destination.
    Last = 2,
}

/// All packets inside one part of a network.
#[derive(Debug, Default, Saved)]
pub struct Pool {
    slots: Vec<Slot>,
    /// By slot, up to the last slot that has needed it.
    telemetry: Vec<Telemetry>,
    /// Free slots, the one that became free last at the end: it is the most likely to be in the cache.
    free: Vec<u32>,
}

/// So many packets ahead [`Pool::insert`] asks for free slots: packets from other parts come many at a time, some 20 ns
/// apart, and a slot takes up to 150 ns to come from memory.
const FREE_AHEAD: usize = 8;

impl Pool {
    /// Adds a packet.
    #[inline]
    pub fn insert(&mut self, packet: Packet, transit: Transit) -> PacketId {
        let slot = Slot { packet, transit };
        let Some(id) = self.free.pop() else {
            let id = u32::try_from(self.slots.len()).expect("fewer than 2^32 packets in flight");
            self.slots.push(slot);
            return PacketId(id);
        };
        self.slots[id as usize] = slot;
        if let Some(ahead) = self.free.len().checked_sub(FREE_AHEAD) {
            self.prefetch(self.free[ahead]);
        }
        PacketId(id)
    }

    /// Asks for a slot that will be needed soon, if there is one.
    #[inline(always)]
    fn prefetch(&self, id: u32) {
        if let Some(slot) = self.slots.get(id as usize) {
            prefetch(slot);
        }
    }

    /// Removes a packet and frees its slot.
    #[inline]
    pub fn remove(&mut self, id: PacketId) -> Slot {
        self.free.push(id.0);
        self.slots[id.0 as usize]
    }

    /// A packet's slot.
    #[inline]
    pub fn get(&self, id: PacketId) -> &Slot {
        &self.slots[id.0 as usize]
    }

    /// A packet's slot.
    #[inline]
    pub fn get_mut(&mut self, id: PacketId) -> &mut Slot {
        &mut self.slots[id.0 as usize]
    }

    /// The telemetry of a packet, which must be flagged for it. It stays valid until the slot is reused.
    pub fn telemetry_mut(&mut self, id: PacketId) -> &mut Telemetry {
        if self.telemetry.len() <= id.index() {
            self.telemetry.resize(self.slots.len(), Telemetry::default());
        }
        &mut self.telemetry[id.index()]
    }

    /// Goes over a packet and its history. Where it lies is of no interest.
    fn visit(&mut self, walk: &mut Walk, id: PacketId) {
        let Slot { packet, transit } = self.get_mut(id);
        walk.packet(packet);
        transit.visit(walk, &());
        if packet.has(flags::TELEMETRY) {
            self.telemetry_mut(id).visit(walk, &());
        }
    }

    /// The packets as `drawn`, by slot, with the slot behind each: for a person who sees queues.
    pub fn drawn(&self, drawn: impl Fn(&Slot) -> Tree) -> Vec<(u32, Tree)> {
        self.slots.iter().map(|slot| (slot.transit.next, drawn(slot))).collect()
    }

    /// Number of packets.
    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Whether there are no packets.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Memory that the slots take, in bytes.
    pub fn footprint_bytes(&self) -> usize {
        self.slots.capacity() * size_of::<Slot>()
            + self.free.capacity() * size_of::<u32>()
            + self.telemetry.capacity() * size_of::<Telemetry>()
    }
}

/// A first-in-first-out list of packets, linked through their slots.
#[derive(Clone, Copy, Debug)]
pub struct Fifo {
    head: u32,
    tail: u32,
}

impl Default for Fifo {
    fn default() -> Self {
        Fifo { head: NIL, tail: NIL }
    }
}

impl Fifo {
    /// Whether no packet is in it.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.head == NIL
    }

    /// Appends.
    #[inline]
    pub fn push(&mut self, pool: &mut Pool, id: PacketId) {
        let transit = &mut pool.get_mut(id).transit;
        transit.next = NIL;
        transit.prev = self.tail;
        match self.tail {
            NIL => self.head = id.0,
            tail => pool.slots[tail as usize].transit.next = id.0,
        }
        self.tail = id.0;
    }

    /// The packet that entered first.
    #[inline]
    pub fn first(&self) -> Option<PacketId> {
        (self.head != NIL).then_some(PacketId(self.head))
    }

    /// The packet that entered last.
    #[inline]
    pub fn last(&self) -> Option<PacketId> {
        (self.tail != NIL).then_some(PacketId(self.tail))
    }

    /// All of them, in order.
    pub fn iter<'a>(&self, pool: &'a Pool) -> impl Iterator<Item = PacketId> + use<'a> {
        let some = |id: u32| (id != NIL).then_some(PacketId(id));
        std::iter::successors(some(self.head), move |&id| some(pool.get(id).transit.next))
    }

    /// Takes the packet that entered first.
    #[inline]
    pub fn pop(&mut self, pool: &Pool) -> Option<PacketId> {
        let id = self.first()?;
        self.head = pool.get(id).transit.next;
        if self.head == NIL {
            self.tail = NIL;
        } else {
            pool.prefetch(self.head);
        }
        Some(id)
    }

    /// Takes the packet that entered last.
    pub fn pop_last(&mut self, pool: &mut Pool) -> Option<PacketId> {
        let id = (self.tail != NIL).then_some(PacketId(self.tail))?;
        if self.head == self.tail {
            *self = Fifo::default();
        } else {
            self.tail = pool.get(id).transit.prev;
            pool.slots[self.tail as usize].transit.next = NIL;
        }
        Some(id)
    }

    /// Removes a packet from any place in the list.
    pub fn remove(&mut self, pool: &mut Pool, id: PacketId) {
        let Transit { next, prev, .. } = pool.get(id).transit;
        match (self.head == id.0, prev) {
            (true, _) => self.head = next,
            (false, prev) => pool.slots[prev as usize].transit.next = next,
        }
        match (self.tail == id.0, next) {
            (true, _) => self.tail = if self.head == NIL { NIL } else { prev },
            (false, next) => pool.slots[next as usize].transit.prev = prev,
        }
    }
}

macro_rules! lists {
    ($($list:ident { $($field:ident),* })*) => {$(
        impl Saved for $list {
            fn save(&self, to: &mut Saver) {
                if !to.chained(self.head, true) {
                    $(self.$field.save(to);)*
                }
            }

            fn load(&mut self, from: &mut Loader<'_>) -> Result<(), Damaged> {
                $(self.$field.load(from)?;)*
                Ok(())
            }

            fn make(from: &mut Loader<'_>) -> Result<Self, Damaged> {
                Ok($list { $($field: Saved::make(from)?),* })
            }
        }
    )*};
}

lists! {
    Fifo { head, tail }
    Flight { head, tail, head_at }
}

/// Goes over its packets, which came to where they wait at `at`.
impl<G: ?Sized> State<G> for Fifo {
    fn visit(&mut self, walk: &mut Walk, _: &G) {
        walk.with_pool(|walk, pool| {
            let mut next = self.head;
            walk.same(next != NIL);
            while next != NIL {
                pool.visit(walk, PacketId(next));
                let transit = &mut pool.get_mut(PacketId(next)).transit;
                walk.past(&mut transit.at);
                next = transit.next;
                walk.same(next != NIL);
            }
        });
    }
}

/// Goes over the packets in flight, and when each comes out.
impl<G: ?Sized> State<G> for Flight {
    fn visit(&mut self, walk: &mut Walk, _: &G) {
        walk.time(&mut self.head_at);
        walk.with_pool(|walk, pool| {
            let mut next = self.head;
            while next != NIL {
                pool.visit(walk, PacketId(next));
                let transit = &mut pool.get_mut(PacketId(next)).transit;
                next = transit.next;
                walk.same(next != NIL);
                if next != NIL {
                    walk.time(&mut transit.at);
                }
            }
        });
    }
}

/// The packets in flight on a link, in order of arrival.
///
/// Each slot stores when the packet behind it comes out, so that taking one packet tells the next time without reading
/// another slot.
#[derive(Clone, Copy, Debug)]
pub struct Flight {
    head: u32,
    tail: u32,
    head_at: Time,
}

impl Default for Flight {
    fn default() -> Self {
        Flight { head: NIL, tail: NIL, head_at: Time::MAX }
    }
}

impl Flight {
    /// When the first comes out; [`Time::MAX`] if there is none.
    #[inline]
    pub fn next_at(&self) -> Time {
        self.head_at
    }

    /// Appends a packet that comes out at `at`, not before those ahead of it. Returns whether it is the only one.
    #[inline]
    pub fn push(&mut self, pool: &mut Pool, id: PacketId, at: Time) -> bool {
        pool.get_mut(id).transit.next = NIL;
        let alone = self.tail == NIL;
        if alone {
            (self.head, self.head_at) = (id.0, at);
        } else {
            let last = &mut pool.slots[self.tail as usize].transit;
            (last.next, last.at) = (id.0, at);
        }
        self.tail = id.0;
        alone
    }

    /// Inserts a packet that comes out at `at`, behind all that come out by then. Returns whether it is the first.
    pub fn insert(&mut self, pool: &mut Pool, id: PacketId, at: Time) -> bool {
        let (mut before, mut next, mut next_at) = (NIL, self.head, self.head_at);
        while next != NIL && next_at <= at {
            let transit = &pool.slots[next as usize].transit;
            (before, next, next_at) = (next, transit.next, transit.at);
        }
        if next == NIL {
            return self.push(pool, id, at);
        }
        let transit = &mut pool.get_mut(id).transit;
        (transit.next, transit.at) = (next, next_at);
        match before {
            NIL => (self.head, self.head_at) = (id.0, at),
            before => {
                let transit = &mut pool.slots[before as usize].transit;
                (transit.next, transit.at) = (id.0, at);
            }
        }
        before == NIL
    }

    /// Takes the first.
    #[inline]
    pub fn pop(&mut self, pool: &Pool) -> Option<PacketId> {
        let id = (self.head != NIL).then_some(PacketId(self.head))?;
        let transit = &pool.get(id).transit;
        if transit.next == NIL {
            *self = Flight::default();
        } else {
            (self.head, self.head_at) = (transit.next, transit.at);
            pool.prefetch(self.head);
        }
        Some(id)
    }

    /// Asks for the slot of the packet that entered last, which the next one to enter is linked to.
    #[inline(always)]
    pub fn prefetch_last(&self, pool: &Pool) {
        pool.prefetch(self.tail);
    }

    /// All of them, first to come out first.
    pub fn iter<'a>(&self, pool: &'a Pool) -> impl Iterator<Item = PacketId> + 'a {
        let some = |id: u32| (id != NIL).then_some(PacketId(id));
        std::iter::successors(some(self.head), move |&id| some(pool.get(id).transit.next))
    }
}

const _: () = assert!(size_of::<Slot>() == 128);

#[cfg(test)]
mod tests;
