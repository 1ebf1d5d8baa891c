//! Queues that trim: two at each port of a switch, as NDP has them (SIGCOMM 2017, section 3.1) and Ultra Ethernet.
//!
//! Data wait in one queue. Headers and control packets wait in another, which goes first: while both wait, several of
//! them are sent for each data packet. So feedback is early, and an overload of headers can't starve data. When data
//! find their queue full, the arriving packet or the last of the queue, by a coin toss, is cut down to its headers.
//! When the header queue is full, headers are lost, or return to their sender if the transport has a way to say so
//! (NDP, section 3.2.4).
//!
//! Decided where NDP's paper is silent: when both queues are full, the arriving packet is trimmed and returned; control
//! packets that find no room are lost, and so are headers that have been returned before. Other transports' packets are
//! served from the data queue and are neither cut nor returned; the paper would give them a queue of their own (section
//! 3.2.5), which here is another run.

use node::link::{Admission, Cause, Dequeued, LinkCx, QueueDiscipline, QueueView};
use node::packet::flags;
use node::pool::{Fifo, PacketId, Pool};
use node::{Packet, Port};
use units::PortId;

/// The trimming queues of a switch.
#[derive(node::State)]
pub struct TrimmingQueues {
    #[state(built("settings"))]
    params: Params,
    #[state(given(&self.params))]
    ports: Vec<Queues>,
    #[state(count)]
    returned: u64,
    #[state(count)]
    headers_lost: u64,
}

/// Settings of a transport's queues.
#[derive(Clone, Copy, Debug)]
pub struct Params {
    /// The transport whose packets are trimmed.
    pub transport: u8,
    /// Room in the data queue of a port.
    pub data_bytes_max: u32,
    /// Room in the header queue of a port.
    pub headers_bytes_max: u32,
    /// Bytes of a trimmed packet.
    pub header_bytes: u32,
    /// Headers that a port sends for each data packet while both wait.
    pub headers_per_packet: u16,
    /// Whether packets that leave by the last link of their path can be marked (ECN).
    pub marks_last_hop: bool,
    /// Turns headers that find no room into headers on their way back to their sender. False if they can't be.
    pub send_back: Option<fn(&mut Packet) -> bool>,
    /// Says in a packet's header that it was trimmed before the last link of its path.
    pub trimmed_last_hop: Option<fn(&mut Packet)>,
}

/// The queues of a port.
#[derive(Default, node::State)]
#[state(given(Params))]
struct Queues {
    /// Whether its link leads to a host.
    last_hop: bool,
    data: Queue,
    headers: Queue,
    /// Headers sent since the last data packet, while both waited.
    #[state(when(given.headers_per_packet == u16::MAX, below(u16::MAX.into()), _))]
    turn: u16,
    /// How often it was the turn of data while headers waited.
    #[state(when(given.headers_per_packet == u16::MAX, _))]
    data_turns: u64,
}

#[derive(Default, node::State)]
struct Queue {
    packets: Fifo,
    bytes: u32,
}

impl Queue {
    fn push(&mut self, pool: &mut Pool, id: PacketId) {
        self.packets.push(pool, id);
        self.bytes += u32::from(pool.get(id).packet.wire_bytes);
    }

    fn pop(&mut self, pool: &Pool) -> Option<PacketId> {
        let id = self.packets.pop(pool)?;
        self.bytes -= u32::from(pool.get(id).packet.wire_bytes);
        Some(id)
    }

    fn pop_last(&mut self, pool: &mut Pool) -> Option<PacketId> {
        let id = self.packets.pop_last(pool)?;
        self.bytes -= u32::from(pool.get(id).packet.wire_bytes);
        Some(id)
    }
}

impl TrimmingQueues {
    /// The queues of a switch; for each port, whether its link leads to a host.
    pub fn new(params: Params, ports: impl IntoIterator<Item = bool>) -> TrimmingQueues {
        let ports = ports.into_iter().map(|last_hop| Queues { last_hop, ..Queues::default() }).collect();
        TrimmingQueues { params, ports, returned: 0, headers_lost: 0 }
    }

    fn is_data(&self, packet: &Packet) -> bool {
        packet.transport != self.params.transport || (packet.payload_bytes > 0 && !packet.has(flags::TRIMMED))
    }

    /// Says of a packet that has been trimmed where that was.
    fn note_trimmed(&self, out: PortId, packet: &mut Packet) {
        if let Some(say) = self.params.trimmed_last_hop
            && self.ports[out.index()].last_hop
        {
            say(packet);
        }
    }

    /// Admits headers or a control packet, for which the header queue may have no room.
    fn admit_header(&mut self, cx: &mut LinkCx<'_>, out: PortId, id: PacketId) -> Admission {
        let packet = &mut cx.pool.get_mut(id).packet;
        if self.ports[out.index()].headers.bytes + u32::from(packet.wire_bytes) <= self.params.headers_bytes_max {
            return Admission::ByBuffer;
        }
        if !self.params.send_back.is_some_and(|send_back| send_back(packet)) {
            self.headers_lost += 1;
            return Admission::Full;
        }
        (packet.src, packet.dst) = (packet.dst, packet.src);
        // It returns by any path of the routing tables.
        packet.flags &= !(flags::SOURCE_ROUTED | flags::COMPACT_ROUTE);
        packet.label = 0;
        self.returned += 1;
        Admission::Redirect
    }

    /// The length by which a packet may be marked that goes into this queue, or comes out of it.
    fn seen_bytes(&self, out: PortId, bytes: u32) -> u32 {
        if self.ports[out.index()].last_hop && !self.params.marks_last_hop { 0 } else { bytes }
    }

    fn view(class: u8, queue: &Queue) -> QueueView {
        QueueView { cause: Cause::Class(class), paused: false, root: false, bytes: queue.bytes, packets: queue.packets }
    }
}

impl QueueDiscipline for TrimmingQueues {
    fn admit(&mut self, cx: &mut LinkCx<'_>, out: PortId, id: PacketId) -> Admission {
        let packet = cx.pool.get(id).packet;
        if !self.is_data(&packet) {
            return self.admit_header(cx, out, id);
        }
        let room = self.params.data_bytes_max.saturating_sub(u32::from(packet.wire_bytes));
        let Queues { data, headers, .. } = &mut self.ports[out.index()];
        if data.bytes <= room {
            return Admission::ByBuffer;
        }
        if packet.transport != self.params.transport {
            return Admission::Full;
        }
        let headers_fit = headers.bytes + self.params.header_bytes <= self.params.headers_bytes_max;
        let last = data.packets.last().map(|last| cx.pool.get(last).packet);
        let gives_way = last.is_some_and(|last| {
            last.transport == self.params.transport && data.bytes - u32::from(last.wire_bytes) <= room
        });
        if headers_fit
            && gives_way
            && cx.random.chance(0.5)
            && let Some(victim) = data.pop_last(cx.pool)
        {
            let since = cx.pool.get(victim).transit.at;
            cx.ports[out.index()].release(cx.pool, victim);
            cx.trim_waiting(out, victim);
            self.note_trimmed(out, &mut cx.pool.get_mut(victim).packet);
            cx.ports[out.index()].hold(since, cx.pool, victim);
            self.ports[out.index()].headers.push(cx.pool, victim);
            return Admission::ByBuffer;
        }
        cx.trim_arriving(out, id);
        self.note_trimmed(out, &mut cx.pool.get_mut(id).packet);
        self.admit_header(cx, out, id)
    }

    fn enqueue(&mut self, cx: &mut LinkCx<'_>, out: PortId, id: PacketId) -> u32 {
        cx.ports[out.index()].hold(cx.now, cx.pool, id);
        let is_data = self.is_data(&cx.pool.get(id).packet);
        let Queues { data, headers, .. } = &mut self.ports[out.index()];
        let queue = if is_data { data } else { headers };
        queue.push(cx.pool, id);
        let bytes = queue.bytes;
        self.seen_bytes(out, bytes)
    }

    fn dequeue(&mut self, cx: &mut LinkCx<'_>, out: PortId) -> Option<Dequeued> {
        let Queues { data, headers, turn, data_turns, .. } = &mut self.ports[out.index()];
        let both = !data.packets.is_empty() && !headers.packets.is_empty();
        let headers_turn = if both { *turn < self.params.headers_per_packet } else { data.packets.is_empty() };
        if both {
            *turn = if headers_turn { *turn + 1 } else { 0 };
            *data_turns += u64::from(!headers_turn);
        }
        let queue = if headers_turn { headers } else { data };
        let id = queue.pop(cx.pool)?;
        cx.ports[out.index()].release(cx.pool, id);
        let bytes = queue.bytes;
        Some(Dequeued { id, left_bytes: self.seen_bytes(out, bytes) })
    }

    fn ready(&self, _: &[Port], out: PortId) -> bool {
        let Queues { data, headers, .. } = &self.ports[out.index()];
        !(data.packets.is_empty() && headers.packets.is_empty())
    }

    fn drain(&mut self, cx: &mut LinkCx<'_>, port: PortId) -> Option<PacketId> {
        let Queues { data, headers, .. } = &mut self.ports[port.index()];
        let id = headers.pop(cx.pool).or_else(|| data.pop(cx.pool))?;
        cx.ports[port.index()].release(cx.pool, id);
        Some(id)
    }

    fn push_out(&mut self, cx: &mut LinkCx<'_>, port: PortId, class: u8) -> Option<PacketId> {
        let data = &mut self.ports[port.index()].data;
        data.packets.last().filter(|&last| cx.pool.get(last).packet.class > class)?;
        let id = data.pop_last(cx.pool)?;
        cx.ports[port.index()].release(cx.pool, id);
        Some(id)
    }

    fn queues(&self, _: &[Port], port: PortId, see: &mut dyn FnMut(QueueView)) {
        let Queues { data, headers, .. } = &self.ports[port.index()];
        [(0, headers), (1, data)].into_iter().filter(|(_, queue)| queue.bytes > 0).for_each(|(class, queue)| {
            see(TrimmingQueues::view(class, queue));
        });
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        vec![("headers_returned", self.returned), ("headers_lost", self.headers_lost)]
    }
}

#[cfg(test)]
mod tests;
