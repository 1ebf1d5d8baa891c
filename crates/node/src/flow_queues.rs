//! Many queues at one port, served in turn by bytes. Flow controls that pause single flows keep their packets here.
//! [`Order::LowestFirst`] serves queues in the order of their numbers instead.
//!
//! The scheduler is deficit round robin (Shreedhar and Varghese 1995) over the queues that have packets and are not
//! paused, with a quantum of one full packet. Queues are numbered by slots. A scheme maps flows to slots: one to each
//! (per-flow queues, ideal BFC), or several flows to a slot (BFC). Enqueueing, dequeueing, pausing and resuming take
//! constant time, whatever the number of queues, and allocate nothing.
//!
//! Packets of class 0 (control) stay in the port's own queue. They are sent before all packets here and are never held.

use std::collections::VecDeque;

use crate::Port;
use crate::link::{Cause, LinkCx, QueueView};
use crate::pool::{Fifo, PacketId, Pool};
use units::PortId;

/// The class of packets that are never held.
const CONTROL_CLASS: u8 = 0;

/// The classes that are paused at a port while any queue here is paused: all but control. The port has no packets of
/// these classes in its own queues; pausing them makes it record the time.
pub const HELD_CLASSES: u8 = !(1u8 << CONTROL_CLASS);

/// The order in which queues are served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, crate::Saved)]
pub enum Order {
    /// Deficit round robin.
    InTurn,
    /// Deficit round robin in which a queue's turn lasts until its packet has been transmitted. A queue that is empty
    /// then, and gets a packet meanwhile, goes behind all queues that became active before the end of the transmission.
    WholeTurns,
    /// The lowest slot that has packets and is not paused. At most 128 slots.
    LowestFirst,
}

/// The queues of one port.
#[derive(node::State)]
pub struct FlowQueues {
    queues: Vec<Queue>,
    #[state(skip("it never changes"))]
    order: Order,
    /// For `LowestFirst`: queues that have packets and are not paused, as bits.
    lowest: u128,
    /// Queues in the order of their turns: all that are ready, and some that no longer are.
    ring: VecDeque<u32>,
    /// Number of queues that have packets and are not paused.
    ready: u32,
    /// Number of paused queues.
    paused: u32,
    /// Number of queues with packets, now and at most so far.
    used: u32,
    used_max: u32,
    quantum_bytes: u32,
}

#[derive(Clone, Copy, Default, node::State)]
struct Queue {
    packets: Fifo,
    bytes: u32,
    deficit_bytes: u32,
    paused: bool,
    in_ring: bool,
}

/// A dequeued packet.
pub struct Taken {
    /// The packet.
    pub id: PacketId,
    /// Its queue; `None` for a control packet.
    pub slot: Option<u32>,
    /// Bytes that remain in the queue.
    pub left_bytes: u32,
}

/// Puts a control packet into the port's own queue and returns that queue's length in bytes; `None` for a packet of
/// another class.
#[inline]
pub fn push_control(cx: &mut LinkCx<'_>, out: PortId, id: PacketId) -> Option<u32> {
    if cx.pool.get(id).packet.class != CONTROL_CLASS {
        return None;
    }
    let port = &mut cx.ports[out.index()];
    port.push(cx.now, cx.pool, id);
    Some(port.class_bytes(CONTROL_CLASS))
}

impl FlowQueues {
    /// No queues yet, at a port that sends packets of up to `mtu_bytes`.
    pub fn new(mtu_bytes: u64, order: Order) -> FlowQueues {
        FlowQueues {
            queues: Vec::new(),
            order,
            lowest: 0,
            ring: VecDeque::new(),
            ready: 0,
            paused: 0,
            used: 0,
            used_max: 0,
            quantum_bytes: u32::try_from(mtu_bytes).unwrap_or(u32::MAX).max(1),
        }
    }

    /// Number of queues that have packets and are not paused: BFC's N_active.
    #[inline]
    pub fn ready(&self) -> u32 {
        self.ready
    }

    /// The most queues that had packets at one time.
    pub fn used_max(&self) -> u32 {
        self.used_max
    }

    /// Number of slots that have ever been used.
    pub fn slots(&self) -> u32 {
        self.queues.len() as u32
    }

    /// Bytes in a queue.
    #[inline]
    pub fn bytes(&self, slot: u32) -> u32 {
        self.queues.get(slot as usize).map_or(0, |queue| queue.bytes)
    }

    /// Whether a queue is paused.
    #[inline]
    pub fn is_paused(&self, slot: u32) -> bool {
        self.queues.get(slot as usize).is_some_and(|queue| queue.paused)
    }

    /// Appends a packet to a queue of `out` and returns the queue's new length in bytes.
    #[inline]
    pub fn push(&mut self, cx: &mut LinkCx<'_>, out: PortId, slot: u32, id: PacketId) -> u32 {
        cx.ports[out.index()].hold(cx.now, cx.pool, id);
        let bytes = u32::from(cx.pool.get(id).packet.wire_bytes);
        let queue = self.queue(slot);
        let (first, paused) = (queue.packets.is_empty(), queue.paused);
        queue.packets.push(cx.pool, id);
        queue.bytes += bytes;
        let length = queue.bytes;
        if first {
            self.used += 1;
            self.used_max = self.used_max.max(self.used);
            if !paused {
                self.start(slot);
            }
        }
        length
    }

    /// Whether [`FlowQueues::take_next`] would return a packet.
    #[inline]
    pub fn has_sendable(&self, port: &Port) -> bool {
        port.has_sendable() || self.ready > 0
    }

    /// Dequeues the next packet, control packets included.
    #[inline]
    pub fn take_next(&mut self, port: &mut Port, pool: &mut Pool) -> Option<Taken> {
        if let Some(id) = port.take_next(pool) {
            return Some(Taken { id, slot: None, left_bytes: port.class_bytes(CONTROL_CLASS) });
        }
        self.take_turn(port, pool)
    }

    /// Dequeues the next packet of the queues here, without control packets.
    #[inline]
    pub fn take_turn(&mut self, port: &mut Port, pool: &mut Pool) -> Option<Taken> {
        if self.order == Order::LowestFirst {
            let slot = (self.lowest != 0).then(|| self.lowest.trailing_zeros())?;
            return self.take(port, pool, slot, |packets, pool| packets.pop(pool));
        }
        while let Some(&slot) = self.ring.front() {
            let queue = &mut self.queues[slot as usize];
            let first = queue.packets.first().filter(|_| !queue.paused);
            let Some(first) = first else {
                queue.in_ring = false;
                self.ring.pop_front();
                continue;
            };
            let bytes = u32::from(pool.get(first).packet.wire_bytes);
            if queue.deficit_bytes < bytes {
                // The quantum is spent: the next queue gets its turn.
                queue.deficit_bytes += self.quantum_bytes;
                self.ring.rotate_left(1);
                continue;
            }
            queue.deficit_bytes -= bytes;
            let taken = self.take(port, pool, slot, |packets, pool| packets.pop(pool))?;
            if taken.left_bytes == 0 {
                // An empty queue loses its deficit.
                let queue = &mut self.queues[slot as usize];
                queue.deficit_bytes = 0;
                if self.order == Order::InTurn {
                    queue.in_ring = false;
                    self.ring.pop_front();
                }
            }
            return Some(taken);
        }
        None
    }

    /// Pauses or resumes a queue of `out`.
    pub fn set_paused(&mut self, cx: &mut LinkCx<'_>, out: PortId, slot: u32, paused: bool) {
        let queue = self.queue(slot);
        if queue.paused == paused {
            return;
        }
        queue.paused = paused;
        let waits = !queue.packets.is_empty();
        let port = &mut cx.ports[out.index()];
        if paused {
            self.paused += 1;
            if waits {
                self.stop(slot);
            }
            port.set_paused(HELD_CLASSES, cx.now);
        } else {
            self.paused -= 1;
            if self.paused == 0 {
                port.set_paused(0, cx.now);
            }
            if waits {
                self.start(slot);
                cx.port_ready(out);
            }
        }
    }

    /// Resumes every queue of `out`.
    pub fn resume_all(&mut self, cx: &mut LinkCx<'_>, out: PortId) {
        for slot in 0..self.slots() {
            self.set_paused(cx, out, slot, false);
        }
    }

    /// Dequeues any packet, paused or not.
    pub fn drain(&mut self, port: &mut Port, pool: &mut Pool) -> Option<Taken> {
        if let Some(id) = port.drain(pool) {
            return Some(Taken { id, slot: None, left_bytes: 0 });
        }
        let slot = self.queues.iter().position(|queue| !queue.packets.is_empty())?;
        self.take(port, pool, slot as u32, |packets, pool| packets.pop(pool))
    }

    /// Takes the last packet of the least urgent class below `class`, from the longest queue that ends with one.
    pub fn push_out(&mut self, port: &mut Port, pool: &mut Pool, class: u8) -> Option<Taken> {
        let last = |queue: &Queue| Some(pool.get(queue.packets.last()?).packet.class);
        let ends = self.queues.iter().enumerate().filter_map(|(slot, queue)| Some((last(queue)?, queue.bytes, slot)));
        let (_, _, slot) = ends.filter(|end| end.0 > class).max()?;
        self.take(port, pool, slot as u32, |packets, pool| packets.pop_last(pool))
    }

    /// Shows the port's control packets and the queues that have packets or are paused. `cause` names the cause of a
    /// slot.
    pub fn show(&self, port: &Port, cause: impl Fn(u32) -> Cause, see: &mut dyn FnMut(QueueView)) {
        let control = QueueView {
            cause: Cause::Class(CONTROL_CLASS),
            paused: false,
            root: false,
            bytes: port.class_bytes(CONTROL_CLASS),
            packets: port.class_packets(CONTROL_CLASS),
        };
        if control.bytes > 0 {
            see(control);
        }
        for (slot, queue) in self.queues.iter().enumerate().filter(|(_, queue)| queue.bytes > 0 || queue.paused) {
            let &Queue { packets, bytes, paused, .. } = queue;
            see(QueueView { cause: cause(slot as u32), paused, root: false, bytes, packets });
        }
    }

    #[inline]
    fn queue(&mut self, slot: u32) -> &mut Queue {
        let slot = slot as usize;
        if slot >= self.queues.len() {
            self.queues.resize(slot + 1, Queue::default());
        }
        &mut self.queues[slot]
    }

    /// A queue becomes ready: it now has packets and is not paused.
    #[inline]
    fn start(&mut self, slot: u32) {
        self.ready += 1;
        if self.order == Order::LowestFirst {
            self.lowest |= 1 << slot;
            return;
        }
        let queue = &mut self.queues[slot as usize];
        if !queue.in_ring {
            queue.in_ring = true;
            queue.deficit_bytes = self.quantum_bytes;
            self.ring.push_back(slot);
        }
    }

    /// A queue is no longer ready. It leaves the ring when its turn comes.
    #[inline]
    fn stop(&mut self, slot: u32) {
        self.ready -= 1;
        if self.order == Order::LowestFirst {
            self.lowest &= !(1 << slot);
        }
    }

    #[inline]
    fn take(
        &mut self,
        port: &mut Port,
        pool: &mut Pool,
        slot: u32,
        pop: impl FnOnce(&mut Fifo, &mut Pool) -> Option<PacketId>,
    ) -> Option<Taken> {
        let queue = &mut self.queues[slot as usize];
        let id = pop(&mut queue.packets, pool)?;
        queue.bytes -= u32::from(pool.get(id).packet.wire_bytes);
        if queue.packets.is_empty() {
            self.used -= 1;
            if !queue.paused {
                self.stop(slot);
            }
        }
        port.release(pool, id);
        Some(Taken { id, slot: Some(slot), left_bytes: self.queues[slot as usize].bytes })
    }
}
