//! Many queues at one port, served in turn by bytes: what flow controls that hold back single flows keep packets in.
//! [`Order::LowestFirst`] serves them by their numbers instead.
//!
//! Deficit round robin (Shreedhar and Varghese 1995) over the queues that have packets and may send, with a quantum of one
//! full packet. Queues are named by slots, small numbers that a scheme gives to flows as it sees fit: one to each
//! (per-flow queues, BFC's ideal), or a few that flows share (BFC). Putting in, taking out, pausing and resuming take
//! constant time however many queues there are, and none of them allocates.
//!
//! Packets of class 0, control, stay in the port's own queue: they go before everything here and are never held.

use std::collections::VecDeque;

use crate::Port;
use crate::link::{Cause, LinkCx, QueueView};
use crate::pool::{Fifo, PacketId, Pool};
use units::PortId;

/// The class of packets that are never held.
const CONTROL_CLASS: u8 = 0;

/// What a port is told to pause when any queue here is: every class but control. It keeps the time, no packet of these
/// classes being in its own queues.
pub const HELD_CLASSES: u8 = !(1u8 << CONTROL_CLASS);

/// Whose turn it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Deficit round robin.
    InTurn,
    /// The same, where a queue's turn ends with the transmission of its packet: a queue that had no other, and gets one meanwhile, stands
    /// behind all that come before that end.
    WholeTurns,
    /// The lowest slot that has packets and may send: of at most 128 slots.
    LowestFirst,
}

/// The queues of one port.
pub struct FlowQueues {
    queues: Vec<Queue>,
    order: Order,
    /// Queues that have packets and may send, as bits, where the lowest goes first.
    lowest: u128,
    /// Queues in the order of their turns: all that may send, and some that no longer may.
    ring: VecDeque<u32>,
    /// Queues that have packets and may send.
    ready: u32,
    /// Queues that may not send.
    paused: u32,
    /// Queues that have packets, and the most that ever had.
    used: u32,
    used_max: u32,
    quantum_bytes: u32,
}

#[derive(Clone, Copy, Default)]
struct Queue {
    packets: Fifo,
    bytes: u32,
    deficit_bytes: u32,
    paused: bool,
    in_ring: bool,
}

/// A packet taken out.
pub struct Taken {
    /// The packet.
    pub id: PacketId,
    /// The queue that it was in; none for a control packet.
    pub slot: Option<u32>,
    /// Bytes that it leaves behind there.
    pub left_bytes: u32,
}

/// Puts a control packet into its own queue at `out`, and says how long that is then; none for a packet of another class.
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
    /// No queue, at a port that sends packets of up to `mtu_bytes`.
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

    /// Queues that have packets and may send: N_active of BFC.
    #[inline]
    pub fn ready(&self) -> u32 {
        self.ready
    }

    /// The most queues that have had packets at once.
    pub fn used_max(&self) -> u32 {
        self.used_max
    }

    /// Slots from 0 on that have ever been used.
    pub fn slots(&self) -> u32 {
        self.queues.len() as u32
    }

    /// Bytes in a queue.
    #[inline]
    pub fn bytes(&self, slot: u32) -> u32 {
        self.queues.get(slot as usize).map_or(0, |queue| queue.bytes)
    }

    /// Whether a queue may not send.
    #[inline]
    pub fn is_paused(&self, slot: u32) -> bool {
        self.queues.get(slot as usize).is_some_and(|queue| queue.paused)
    }

    /// Appends a packet to a queue of `out`. How long that now is, in bytes.
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

    /// Whether [`FlowQueues::take_next`] would give something.
    #[inline]
    pub fn has_sendable(&self, port: &Port) -> bool {
        port.has_sendable() || self.ready > 0
    }

    /// Takes the packet whose turn it is.
    #[inline]
    pub fn take_next(&mut self, port: &mut Port, pool: &mut Pool) -> Option<Taken> {
        if let Some(id) = port.take_next(pool) {
            return Some(Taken { id, slot: None, left_bytes: port.class_bytes(CONTROL_CLASS) });
        }
        self.take_turn(port, pool)
    }

    /// The same, of the queues here alone.
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
                // On to the next; when its turn comes again it has its quantum.
                queue.deficit_bytes += self.quantum_bytes;
                self.ring.rotate_left(1);
                continue;
            }
            queue.deficit_bytes -= bytes;
            let taken = self.take(port, pool, slot, |packets, pool| packets.pop(pool))?;
            if taken.left_bytes == 0 {
                // An idle queue saves nothing.
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

    /// Pauses a queue of `out` or lets it go on.
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

    /// Lets every queue of `out` go on.
    pub fn resume_all(&mut self, cx: &mut LinkCx<'_>, out: PortId) {
        for slot in 0..self.slots() {
            self.set_paused(cx, out, slot, false);
        }
    }

    /// Takes any packet, paused or not.
    pub fn drain(&mut self, port: &mut Port, pool: &mut Pool) -> Option<Taken> {
        if let Some(id) = port.drain(pool) {
            return Some(Taken { id, slot: None, left_bytes: 0 });
        }
        let slot = self.queues.iter().position(|queue| !queue.packets.is_empty())?;
        self.take(port, pool, slot as u32, |packets, pool| packets.pop(pool))
    }

    /// Takes a last packet of the least urgent class below `class`, of the longest queue that ends with one.
    pub fn push_out(&mut self, port: &mut Port, pool: &mut Pool, class: u8) -> Option<Taken> {
        let last = |queue: &Queue| Some(pool.get(queue.packets.last()?).packet.class);
        let ends = self.queues.iter().enumerate().filter_map(|(slot, queue)| Some((last(queue)?, queue.bytes, slot)));
        let (_, _, slot) = ends.filter(|end| end.0 > class).max()?;
        self.take(port, pool, slot as u32, |packets, pool| packets.pop_last(pool))
    }

    /// Shows the port's control packets, and the queues that hold packets or may not send, each under the name that `cause` gives
    /// to its slot.
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

    /// A queue has packets and may send, one of which is new.
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

    /// A queue has no packets any more, or may not send. Its place in the ring is given up when its turn comes.
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
