//! The switch's part (section 3.1): two queues at each port, trimming, and return to sender (section 3.2.4).
//!
//! Data wait in a queue of eight packets, headers and control packets in one of as much memory that goes first, ten to
//! one while both wait: so feedback is early, and an overload of headers can't starve data. When data find their queue
//! full, the arriving packet or the last of the queue, by a coin toss, is cut down to its headers. When the header
//! queue is full, headers return to their sender.
//!
//! Decided where the paper is silent: when both queues are full, the arriving packet is trimmed and returned; control
//! packets that find no room are lost, and so are headers that have been returned before. Other transports' packets are
//! served from the data queue and are neither cut nor returned; the paper would give them a queue of their own (section
//! 3.2.5), which here is another run.

use node::link::{Admission, Cause, Dequeued, LinkCx, QueueDiscipline, QueueView};
use node::packet::flags;
use node::pool::{Fifo, PacketId, Pool};
use node::{Packet, Port, Site};
use units::PortId;

use super::header::Data;
use super::{Config, Header};

/// NDP's queues in a switch.
pub struct SwitchPart {
    /// The transport whose packets are NDP's.
    transport: u8,
    /// Room in each queue.
    queue_bytes: u32,
    header_bytes: u32,
    headers_per_packet: u16,
    return_to_sender: bool,
    ports: Vec<Queues>,
    returned: u64,
    headers_lost: u64,
}

/// The queues of a port.
#[derive(Default)]
struct Queues {
    data: Queue,
    headers: Queue,
    /// Headers sent since the last data packet, while both waited.
    turn: u16,
}

#[derive(Default)]
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

impl SwitchPart {
    /// The part of a switch with so many ports, in a network of such hosts.
    pub fn new(config: &Config, site: &Site, ports: usize) -> SwitchPart {
        SwitchPart {
            transport: site.transport,
            queue_bytes: u32::from(config.queue_packets) * u32::from(config.counted_bytes(site)),
            header_bytes: u32::from(site.header_bytes),
            headers_per_packet: config.headers_per_packet,
            return_to_sender: config.return_to_sender,
            ports: (0..ports).map(|_| Queues::default()).collect(),
            returned: 0,
            headers_lost: 0,
        }
    }

    fn is_data(&self, packet: &Packet) -> bool {
        packet.transport != self.transport || (packet.payload_bytes > 0 && !packet.has(flags::TRIMMED))
    }

    /// Admits headers or a control packet, for which the header queue may have no room.
    fn admit_header(&mut self, cx: &mut LinkCx<'_>, out: PortId, id: PacketId) -> Admission {
        let packet = &mut cx.pool.get_mut(id).packet;
        if self.ports[out.index()].headers.bytes + u32::from(packet.wire_bytes) <= self.queue_bytes {
            return Admission::ByBuffer;
        }
        let Header::Data(data @ Data { returned: false, .. }) = packet.header() else {
            self.headers_lost += 1;
            return Admission::Full;
        };
        if !self.return_to_sender {
            self.headers_lost += 1;
            return Admission::Full;
        }
        packet.set_header(Header::Data(Data { returned: true, ..data }));
        (packet.src, packet.dst) = (packet.dst, packet.src);
        // It returns by any path of the routing tables.
        packet.flags &= !(flags::SOURCE_ROUTED | flags::COMPACT_ROUTE);
        packet.label = 0;
        self.returned += 1;
        Admission::Redirect
    }

    fn view(class: u8, queue: &Queue) -> QueueView {
        QueueView { cause: Cause::Class(class), paused: false, root: false, bytes: queue.bytes, packets: queue.packets }
    }
}

impl QueueDiscipline for SwitchPart {
    fn admit(&mut self, cx: &mut LinkCx<'_>, out: PortId, id: PacketId) -> Admission {
        let packet = cx.pool.get(id).packet;
        if !self.is_data(&packet) {
            return self.admit_header(cx, out, id);
        }
        let room = self.queue_bytes.saturating_sub(u32::from(packet.wire_bytes));
        let Queues { data, headers, .. } = &mut self.ports[out.index()];
        if data.bytes <= room {
            return Admission::ByBuffer;
        }
        if packet.transport != self.transport {
            return Admission::Full;
        }
        let headers_fit = headers.bytes + self.header_bytes <= self.queue_bytes;
        let last = data.packets.last().map(|last| cx.pool.get(last).packet);
        let gives_way = last
            .is_some_and(|last| last.transport == self.transport && data.bytes - u32::from(last.wire_bytes) <= room);
        if headers_fit
            && gives_way
            && cx.random.chance(0.5)
            && let Some(victim) = data.pop_last(cx.pool)
        {
            let since = cx.pool.get(victim).transit.at;
            cx.ports[out.index()].release(cx.pool, victim);
            cx.trim_waiting(out, victim);
            cx.ports[out.index()].hold(since, cx.pool, victim);
            headers.push(cx.pool, victim);
            return Admission::ByBuffer;
        }
        cx.trim_arriving(out, id);
        self.admit_header(cx, out, id)
    }

    fn enqueue(&mut self, cx: &mut LinkCx<'_>, out: PortId, id: PacketId) -> u32 {
        cx.ports[out.index()].hold(cx.now, cx.pool, id);
        let is_data = self.is_data(&cx.pool.get(id).packet);
        let Queues { data, headers, .. } = &mut self.ports[out.index()];
        let queue = if is_data { data } else { headers };
        queue.push(cx.pool, id);
        queue.bytes
    }

    fn dequeue(&mut self, cx: &mut LinkCx<'_>, out: PortId) -> Option<Dequeued> {
        let Queues { data, headers, turn } = &mut self.ports[out.index()];
        let both = !data.packets.is_empty() && !headers.packets.is_empty();
        let headers_turn = if both { *turn < self.headers_per_packet } else { data.packets.is_empty() };
        if both {
            *turn = if headers_turn { *turn + 1 } else { 0 };
        }
        let queue = if headers_turn { headers } else { data };
        let id = queue.pop(cx.pool)?;
        cx.ports[out.index()].release(cx.pool, id);
        Some(Dequeued { id, left_bytes: queue.bytes })
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
            see(SwitchPart::view(class, queue));
        });
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        vec![("headers_returned", self.returned), ("headers_lost", self.headers_lost)]
    }
}

#[cfg(test)]
mod tests;
