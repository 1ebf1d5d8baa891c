//! CBFC in a switch.

use node::link::{Admission, Cause, Dequeued, LinkCx, QueueDiscipline, QueueView, Share};
use node::packet::CLASSES;
use node::pool::{PacketId, Slot};
use node::{Packet, Port};
use units::PortId;

use super::channels::Channels;
use super::frame::Frame;

/// A switch whose ports send by credits and give credits for what has left the buffer. Packets wait in the ports' class
/// queues.
#[derive(node::State)]
pub(super) struct SwitchPart {
    /// By port.
    channels: Vec<Channels>,
    /// The classes that need credits, as bits.
    credited: u8,
    /// Memory that stands behind no credits.
    left_bytes: u64,
    /// Of that, what packets without credits take.
    used_bytes: u64,
    #[state(count)]
    updates: u64,
}

impl SwitchPart {
    /// An empty switch with this many bytes beside all credits.
    pub fn new(channels: Vec<Channels>, credited: u8, left_bytes: u64) -> SwitchPart {
        SwitchPart { channels, credited, left_bytes, used_bytes: 0, updates: 0 }
    }

    fn say(&mut self, cx: &mut LinkCx<'_>, port: PortId, message: Option<Frame>) {
        if let Some(message) = message {
            self.updates += 1;
            cx.send_packet(port, self.channels[port.index()].packet(message));
        }
    }

    fn tell_port(&self, cx: &mut LinkCx<'_>, port: PortId) {
        let (own, paused) = (&mut cx.ports[port.index()], self.channels[port.index()].paused());
        if own.paused() != paused {
            own.set_paused(paused, cx.now);
            cx.port_ready(port);
        }
    }

    /// A packet has left the buffer.
    fn left(&mut self, cx: &mut LinkCx<'_>, id: PacketId) {
        let Slot { packet, transit } = cx.pool.get(id);
        let (port, mark) = (PortId(u32::from(transit.in_port)), transit.queue);
        if mark == 0 {
            self.used_bytes -= u64::from(packet.wire_bytes);
            return;
        }
        let message = self.channels[port.index()].freed(mark, packet);
        self.say(cx, port, message);
    }
}

impl QueueDiscipline for SwitchPart {
    fn admit(&mut self, cx: &mut LinkCx<'_>, _: PortId, id: PacketId) -> Admission {
        let Slot { packet, transit } = cx.pool.get(id);
        let without = transit.queue == 0;
        let fits = !without || self.used_bytes + u64::from(packet.wire_bytes) <= self.left_bytes;
        if fits { Admission::ByBuffer } else { Admission::Full }
    }

    /// Packets with credits have room wherever they go. Others have what is left, which [`QueueDiscipline::admit`]
    /// counts.
    fn share(&self, class: u8) -> Option<Share> {
        let credited = self.credited >> class & 1 == 1;
        Some(if credited { Share::Lossless } else { Share::Lossy { classes: !self.credited, kept_bytes: 0 } })
    }

    fn enqueue(&mut self, cx: &mut LinkCx<'_>, out: PortId, id: PacketId) -> u32 {
        let Slot { packet, transit } = cx.pool.get(id);
        match transit.queue {
            0 => self.used_bytes += u64::from(packet.wire_bytes),
            mark => self.channels[usize::from(transit.in_port)].came(mark, packet),
        }
        let class = packet.class;
        let port = &mut cx.ports[out.index()];
        port.push(cx.now, cx.pool, id);
        port.class_bytes(class)
    }

    fn dequeue(&mut self, cx: &mut LinkCx<'_>, out: PortId) -> Option<Dequeued> {
        let id = cx.ports[out.index()].take_next(cx.pool)?;
        self.left(cx, id);
        let slot = cx.pool.get_mut(id);
        let (mark, message) = self.channels[out.index()].leaves(&slot.packet);
        slot.transit.queue = mark;
        let left_bytes = cx.ports[out.index()].class_bytes(slot.packet.class);
        self.say(cx, out, message);
        self.tell_port(cx, out);
        Some(Dequeued { id, left_bytes })
    }

    fn ready(&self, ports: &[Port], out: PortId) -> bool {
        ports[out.index()].has_sendable()
    }

    fn frame(&mut self, cx: &mut LinkCx<'_>, port: PortId, frame: &Packet) {
        let answer = self.channels[port.index()].hears(frame);
        self.say(cx, port, answer);
        self.tell_port(cx, port);
    }

    fn drain(&mut self, cx: &mut LinkCx<'_>, port: PortId) -> Option<PacketId> {
        let id = cx.ports[port.index()].drain(cx.pool)?;
        self.left(cx, id);
        Some(id)
    }

    /// Packets with credits have room, and are never dropped to make room for others.
    fn push_out(&mut self, _: &mut LinkCx<'_>, _: PortId, _: u8) -> Option<PacketId> {
        None
    }

    fn set_up(&mut self, cx: &mut LinkCx<'_>, port: PortId, up: bool) {
        for message in self.channels[port.index()].reset(up) {
            self.say(cx, port, Some(message));
        }
        self.tell_port(cx, port);
    }

    fn queues(&self, ports: &[Port], port: PortId, see: &mut dyn FnMut(QueueView)) {
        let own = &ports[port.index()];
        for class in 0..CLASSES as u8 {
            let (bytes, paused) = (own.class_bytes(class), own.paused() >> class & 1 == 1);
            if bytes > 0 || paused {
                let vc = self.channels[port.index()].vc_of(class);
                let cause = vc.map_or(Cause::Class(class), |vc| Cause::Queue(u32::from(vc)));
                see(QueueView { cause, paused, root: false, bytes, packets: own.class_packets(class) });
            }
        }
    }

    fn holds_back(&self, slot: &Slot, _: Cause) -> Option<Cause> {
        slot.transit.queue.checked_sub(1).map(|vc| Cause::Queue(u32::from(vc)))
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        let lost = self.channels.iter().map(|channels| channels.lost_credits).sum();
        vec![("cbfc_updates", self.updates), ("cbfc_lost_credits", lost)]
    }
}
