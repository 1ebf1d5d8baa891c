//! Congestion isolation in a switch.

use node::link::{Cause, Dequeued, LinkCx, QueueDiscipline, QueueView, Share};
use node::pool::{PacketId, Slot};
use node::{Packet, Port};
use rustc_hash::FxHashMap;
use units::{Duration, FlowId, PortId, SwitchId, Time};

use super::{Config, Message};
use crate::pfc;
use contract::link_control::{LinkView, Shares};

#[derive(node::State)]
#[state(first(let silence = self.age / 2 + Duration::from_ps(1)))]
pub struct SwitchPart {
    threshold: f64,
    class: u8,
    age: Duration,
    /// The classes whose flows may be isolated.
    lossless: u8,
    #[state(built("settings"))]
    shares: Shares,
    /// PFC's accounts. In a switch, `Transit::queue` is the class in which a packet crossed its last link.
    ingress: pfc::Ingress,
    /// By port: its congesting flows.
    #[state(each(each((_, given(&silence)))))]
    tables: Vec<FxHashMap<FlowId, Entry>>,
    #[state(count)]
    isolated: u64,
    #[state(count)]
    messages: u64,
}

/// A flow's entry in a port's table.
#[derive(node::State)]
#[state(given(Duration), first(self.told.iter().for_each(|(_, at)| walk.expired(&mut (*at + *given)))))]
struct Entry {
    /// Number of its packets in the congested queue.
    waiting: u32,
    /// When it stops being a congesting flow.
    #[state(expired)]
    until: Time,
    /// The neighbour that was last told, and when.
    #[state(each((_, past)))]
    told: Option<(PortId, Time)>,
}

impl SwitchPart {
    pub fn new(config: &Config, view: &LinkView<'_>, switch: SwitchId) -> SwitchPart {
        let ports = view.fabric.ports[view.fabric.switch_node(switch).index()].len();
        SwitchPart {
            threshold: config.threshold,
            class: config.class,
            age: config.age,
            lossless: config.pfc.mask(),
            shares: view.shares(switch),
            ingress: pfc::Ingress::new(&config.pfc, view, switch),
            tables: (0..ports).map(|_| FxHashMap::default()).collect(),
            isolated: 0,
            messages: 0,
        }
    }

    /// Whether a packet has to wait in the congested queue of `out`. If so, enters its flow in the table and tells the
    /// neighbour.
    fn isolates(&mut self, cx: &mut LinkCx<'_>, out: PortId, id: PacketId) -> bool {
        let &Slot { packet, transit } = cx.pool.get(id);
        if self.lossless >> packet.class & 1 == 0 {
            return false;
        }
        let (into, now) = (PortId(u32::from(transit.in_port)), cx.now);
        let long = self.threshold * self.shares.bytes(into, out) as f64;
        let port = &cx.ports[out.index()];
        let is_long = |class| f64::from(port.class_bytes(class) + u32::from(packet.wire_bytes)) > long;
        let table = &mut self.tables[out.index()];
        let congesting = is_long(packet.class) || table.contains_key(&packet.flow) && is_long(self.class);
        let by_class = packet.class == self.class;
        if congesting || by_class {
            let isolated = &mut self.isolated;
            let entry = table.entry(packet.flow).or_insert_with(|| {
                *isolated += 1;
                Entry { waiting: 0, until: now, told: None }
            });
            if congesting {
                entry.until = now + self.age;
            }
        }
        let Some(entry) = table.get_mut(&packet.flow) else { return false };
        if entry.until <= now && entry.waiting == 0 && !by_class {
            if let Some((told, _)) = entry.told {
                cx.send(told, Message::Release(packet.flow));
            }
            table.remove(&packet.flow);
            return false;
        }
        entry.waiting += 1;
        // Repeated from time to time, since entries upstream expire too.
        let silent = |(port, at): (PortId, Time)| port != into || now.since(at) > self.age / 2;
        if congesting && entry.told.is_none_or(silent) {
            entry.told = Some((into, now));
            self.messages += 1;
            cx.send(into, Message::Isolate(packet.flow));
        }
        true
    }

    /// A packet has been dequeued at `out`.
    fn left(&mut self, cx: &mut LinkCx<'_>, out: PortId, id: PacketId) {
        let &Slot { packet, transit } = cx.pool.get(id);
        self.ingress.left(cx, id, transit.queue as u8);
        cx.pool.get_mut(id).transit.queue = u16::from(packet.class);
        if packet.class == self.class {
            let table = &mut self.tables[out.index()];
            let entry = table.get_mut(&packet.flow).expect("a flow in the congested queue has an entry");
            entry.waiting -= 1;
            if entry.waiting == 0 && entry.until <= cx.now && entry.told.is_none() {
                table.remove(&packet.flow);
            }
        }
    }

    /// The classes that a port may serve: the congested class only if no other lossless class has packets.
    fn classes(&self, port: &Port) -> u8 {
        let others = self.lossless & !(1 << self.class);
        let waits = (0..8).any(|class| others >> class & 1 == 1 && port.class_bytes(class) > 0);
        if waits { !(1 << self.class) } else { u8::MAX }
    }
}

impl QueueDiscipline for SwitchPart {
    fn share(&self, class: u8) -> Option<Share> {
        Some(self.ingress.share(class))
    }

    fn enqueue(&mut self, cx: &mut LinkCx<'_>, out: PortId, id: PacketId) -> u32 {
        let came_in = cx.pool.get(id).transit.queue as u8;
        self.ingress.came(cx, id, came_in);
        if self.isolates(cx, out, id) {
            cx.pool.get_mut(id).packet.class = self.class;
        }
        let class = cx.pool.get(id).packet.class;
        let port = &mut cx.ports[out.index()];
        port.push(cx.now, cx.pool, id);
        port.class_bytes(class)
    }

    fn dequeue(&mut self, cx: &mut LinkCx<'_>, out: PortId) -> Option<Dequeued> {
        let classes = self.classes(&cx.ports[out.index()]);
        let id = cx.ports[out.index()].take_next_of(classes, cx.pool)?;
        self.left(cx, out, id);
        let left_bytes = cx.ports[out.index()].class_bytes(cx.pool.get(id).packet.class);
        Some(Dequeued { id, left_bytes })
    }

    fn ready(&self, ports: &[Port], out: PortId) -> bool {
        let port = &ports[out.index()];
        port.has_sendable_of(self.classes(port))
    }

    fn frame(&mut self, cx: &mut LinkCx<'_>, port: PortId, frame: &Packet) {
        let (flow, until) = match frame.header() {
            Message::Isolate(flow) => (flow, cx.now + self.age),
            Message::Release(flow) => (flow, cx.now),
            Message::Pfc(frame) => return frame.obey(cx, port),
        };
        let isolated = &mut self.isolated;
        let entry = self.tables[port.index()].entry(flow).or_insert_with(|| {
            *isolated += 1;
            Entry { waiting: 0, until, told: None }
        });
        entry.until = until;
    }

    fn drain(&mut self, cx: &mut LinkCx<'_>, port: PortId) -> Option<PacketId> {
        let id = cx.ports[port.index()].drain(cx.pool)?;
        self.left(cx, port, id);
        Some(id)
    }

    fn push_out(&mut self, cx: &mut LinkCx<'_>, port: PortId, class: u8) -> Option<PacketId> {
        let id = cx.ports[port.index()].push_out(class, cx.pool)?;
        self.left(cx, port, id);
        Some(id)
    }

    fn set_up(&mut self, cx: &mut LinkCx<'_>, port: PortId, _: bool) {
        // The packets that waited there are lost.
        self.tables[port.index()].clear();
        self.ingress.link_changed(cx, port);
    }

    fn queues(&self, ports: &[Port], port: PortId, see: &mut dyn FnMut(QueueView)) {
        pfc::show_classes(&ports[port.index()], see);
    }

    fn holds_back(&self, slot: &Slot, _: Cause) -> Option<Cause> {
        self.ingress.holds_back(slot.transit.queue as u8)
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        let mut counters = vec![("ci_isolated", self.isolated), ("ci_messages", self.messages)];
        counters.extend(self.ingress.counters());
        counters
    }
}

#[cfg(test)]
mod tests;
