//! The memory management unit at work.

use std::collections::VecDeque;

use node::link::{Admission, Cause, Dequeued, LinkCx, QueueDiscipline, QueueView, Share};
use node::mmu::{Average, Buckets, Colour, Memory, Meter, Room, Schedule, Wred};
use node::packet::{CLASSES, flags};
use node::pool::{Fifo, PacketId, Slot};
use node::{Packet, Port};
use units::{PortId, Time};

use super::resolved::{Classes, Resolved};
use super::watch::Watch;
use super::{Action, Watchdog};
use crate::pfc::{Expiry, Frame, frame_of};

/// A switch's pools and queues.
#[derive(node::State)]
pub(super) struct SwitchPart {
    #[state(built("settings"))]
    classes: Classes,
    #[state(built("settings"))]
    wred: [Option<Wred>; CLASSES],
    #[state(built("settings"))]
    meters: Vec<Meter>,
    #[state(built("settings"))]
    mtu_bytes: u64,
    /// Whether any queue has early marks or losses.
    #[state(built("settings"))]
    early: bool,
    /// The colour of the packet that arrives or leaves.
    #[state(built("it is of the packet that is handled"))]
    colour: Colour,
    ingress: Memory,
    egress: Memory,
    ports: Vec<PortPart>,
    #[state(built("settings"))]
    watchdog: Option<Watchdog>,
    /// Where pauses end by themselves.
    expiry: Option<Box<Expiry>>,
    /// When the first port is to be asked again whose queues wait for their rates, or the watchdog looks.
    #[state(wakes)]
    wakes_at: Time,
    /// Packets that the watchdog has just taken out of queues.
    #[state(built("there are none between events"))]
    given_up: Vec<(PortId, PacketId)>,
    #[state(count)]
    pauses: u64,
    #[state(count)]
    resumes: u64,
    /// Packets of lossless classes that found no room.
    #[state(count)]
    lossless_losses: u64,
    /// Storms that the watchdog has found, and that are over.
    #[state(count)]
    storms: u64,
    #[state(count)]
    restored: u64,
}

#[derive(node::State)]
struct PortPart {
    queues: [Queue; CLASSES],
    /// Queues that have packets, and queues that the neighbour has paused, as bits.
    backlog: u8,
    paused: u8,
    /// Groups that have paused the neighbour, as bits.
    pausing: u8,
    class_bytes: [u32; CLASSES],
    schedule: Schedule,
    /// Until when all queues with packets wait for their rates.
    #[state(wakes)]
    shaped_until: Time,
    watch: Option<Box<Watch>>,
    early: Option<Box<Early>>,
}

/// A port's state for early marks and losses, where they go by averages or by colours that meters give.
#[derive(Default, node::State)]
#[state(refuse("early marks go by averages or meters"))]
struct Early {
    /// By queue.
    averages: [Average; CLASSES],
    /// By queue: colours of its packets, if they are marked when they leave.
    colours: [VecDeque<Colour>; CLASSES],
    /// By meter, of what arrives here.
    buckets: Vec<Buckets>,
}

#[derive(Clone, Copy, Debug, Default, node::State)]
struct Queue {
    packets: Fifo,
    bytes: u32,
}

impl PortPart {
    /// Queues that a storm holds, as bits.
    fn storm(&self) -> u8 {
        self.watch.as_ref().map_or(0, |watch| watch.storm)
    }
}

/// Where a packet is counted.
struct Counted {
    into: usize,
    group: usize,
    queue: usize,
    bytes: u64,
}

impl SwitchPart {
    /// An empty switch.
    pub fn new(resolved: Resolved, ports: usize, watchdog: Option<Watchdog>) -> SwitchPart {
        let keeps = !resolved.meters.is_empty() || resolved.wred.iter().flatten().any(|of| of.average.is_some());
        let buckets = vec![Buckets::default(); resolved.meters.len()];
        let port = |_| PortPart {
            queues: Default::default(),
            backlog: 0,
            paused: 0,
            pausing: 0,
            class_bytes: [0; CLASSES],
            schedule: resolved.schedule(),
            shaped_until: Time::MAX,
            watch: watchdog.map(|_| Box::default()),
            early: keeps.then(|| Box::new(Early { buckets: buckets.clone(), ..Early::default() })),
        };
        SwitchPart {
            ports: (0..ports).map(port).collect(),
            classes: resolved.classes,
            early: resolved.wred.iter().any(Option::is_some),
            wred: resolved.wred,
            meters: resolved.meters,
            mtu_bytes: resolved.mtu_bytes,
            colour: Colour::Green,
            ingress: resolved.ingress,
            egress: resolved.egress,
            expiry: resolved.expiry,
            watchdog,
            wakes_at: Time::MAX,
            given_up: Vec::new(),
            pauses: 0,
            resumes: 0,
            lossless_losses: 0,
            storms: 0,
            restored: 0,
        }
    }

    fn counted(&self, slot: &Slot) -> Counted {
        let class = usize::from(slot.packet.class);
        Counted {
            into: usize::from(slot.transit.in_port),
            group: usize::from(self.classes.group[class]),
            queue: usize::from(self.classes.queue[class]),
            bytes: u64::from(slot.packet.wire_bytes),
        }
    }

    fn is_lossless(&self, class: u8) -> bool {
        self.classes.lossless >> class & 1 == 1
    }

    /// Queues of a port with packets that may go.
    fn sendable(&self, port: PortId) -> u8 {
        let part = &self.ports[port.index()];
        let free = if self.watchdog.is_some_and(|of| of.action == Action::Forward) { part.storm() } else { 0 };
        part.backlog & (!part.paused | free)
    }

    /// The watchdog notes which queues are paused with packets in them.
    fn watch(&mut self, now: Time, port: PortId) {
        let part = &mut self.ports[port.index()];
        if let (Some(watchdog), Some(watch)) = (&self.watchdog, &mut part.watch) {
            let at = watch.note(watchdog, now, part.paused, part.backlog);
            self.wakes_at = self.wakes_at.min(at);
        }
    }

    /// The watchdog looks: storms begin and end.
    fn look(&mut self, cx: &mut LinkCx<'_>, port: PortId) {
        let Some(watchdog) = self.watchdog else { return };
        let part = &mut self.ports[port.index()];
        let Some(watch) = &mut part.watch else { return };
        let (begun, over) = watch.look(&watchdog, cx.now);
        self.storms += u64::from(begun.count_ones());
        self.restored += u64::from(over.count_ones());
        for queue in (0..CLASSES).filter(|queue| begun >> queue & 1 == 1 && watchdog.action == Action::Drop) {
            while let Some(id) = self.take(cx, port, queue) {
                self.given_up.push((port, id));
            }
        }
        if begun | over != 0 {
            cx.port_ready(port);
        }
        self.watch(cx.now, port);
    }

    /// Tells the neighbour whether the classes of a group pause.
    fn say(&mut self, cx: &mut LinkCx<'_>, port: PortId, group: u8, pause: bool) {
        let classes = self.classes.of_group(group) & self.classes.lossless;
        let part = &mut self.ports[port.index()];
        part.pausing = part.pausing & !(1 << group) | u8::from(pause) << group;
        *(if pause { &mut self.pauses } else { &mut self.resumes }) += 1;
        cx.send(port, frame_of(&mut self.expiry, cx.now, port, classes, pause));
    }

    /// The neighbour at a port pauses classes or lets them go on.
    fn heard(&mut self, cx: &mut LinkCx<'_>, port: PortId, frame: Frame) {
        frame.obey(cx, port);
        // A class without PFC here is not held back by a neighbour that has it.
        let paused = cx.ports[port.index()].paused() & self.classes.lossless;
        let queue = |class: usize| (paused >> class & 1) << self.classes.paused_queue[class];
        self.ports[port.index()].paused = (0..CLASSES).fold(0, |bits, class| bits | queue(class));
        self.watch(cx.now, port);
    }

    /// A packet that had waited at `out` leaves the buffer.
    fn left(&mut self, cx: &mut LinkCx<'_>, out: PortId, id: PacketId) {
        let Counted { into, group, queue, bytes } = self.counted(cx.pool.get(id));
        self.egress.give(out.index(), queue, bytes);
        self.ingress.give(into, group, bytes);
        if self.ports[into].pausing >> group & 1 == 1 && self.ingress.resumes(into, group) {
            self.say(cx, PortId::from(into), group as u8, false);
        }
    }

    /// Takes the first packet out of a queue.
    fn take(&mut self, cx: &mut LinkCx<'_>, out: PortId, queue: usize) -> Option<PacketId> {
        let part = &mut self.ports[out.index()];
        let own = &mut part.queues[queue];
        let id = own.packets.pop(cx.pool)?;
        let packet = &cx.pool.get(id).packet;
        let bytes = u32::from(packet.wire_bytes);
        own.bytes -= bytes;
        part.class_bytes[usize::from(packet.class)] -= bytes;
        if own.packets.is_empty() {
            part.backlog &= !(1 << queue);
        }
        if let Some(early) = &mut part.early {
            self.colour = early.leaves(cx.now, queue, own.packets.is_empty());
        }
        cx.ports[out.index()].release(cx.pool, id);
        self.left(cx, out, id);
        Some(id)
    }

    /// Marks a packet that has joined its queue, or notes its colour for later.
    fn mark_at_arrival(&mut self, cx: &mut LinkCx<'_>, out: PortId, id: PacketId, queue: usize) {
        match &self.wred[queue] {
            Some(wred) if !wred.at_departure => self.mark(cx, out, id, queue, wred, self.colour),
            Some(_) => {
                if let Some(early) = &mut self.ports[out.index()].early {
                    early.colours[queue].push_back(self.colour);
                }
            }
            None => {}
        }
    }

    /// Marks a packet that has left its queue.
    fn mark_at_departure(&self, cx: &mut LinkCx<'_>, out: PortId, id: PacketId, queue: usize) {
        if let Some(wred) = self.wred[queue].as_ref().filter(|wred| wred.at_departure) {
            let class = usize::from(cx.pool.get(id).packet.class);
            let kept = self.ports[out.index()].early.is_some();
            self.mark(cx, out, id, queue, wred, if kept { self.colour } else { self.classes.colour[class] });
        }
    }

    fn mark(&self, cx: &mut LinkCx<'_>, out: PortId, id: PacketId, queue: usize, wred: &Wred, colour: Colour) {
        let part = &self.ports[out.index()];
        let bytes = part.length(queue, wred, part.queues[queue].bytes);
        let port = &mut cx.ports[out.index()];
        let packet = &mut cx.pool.get_mut(id).packet;
        if packet.has(flags::ECT) && wred.marks(colour, port.rate(), bytes, cx.random) {
            packet.flags |= flags::CE;
            port.stats.marked_packets += 1;
        }
    }

    /// Whether a packet that arrives is lost early. Notes its colour, and that it has come.
    fn loses_early(&mut self, cx: &mut LinkCx<'_>, out: PortId, id: PacketId, counted: &Counted) -> bool {
        let slot = cx.pool.get(id);
        let (class, capable) = (usize::from(slot.packet.class), slot.packet.has(flags::ECT));
        self.colour = self.classes.colour[class];
        if let Some(meter) = self.classes.meter[class]
            && let Some(early) = &mut self.ports[counted.into].early
        {
            let (buckets, meter) = (&mut early.buckets[usize::from(meter)], &self.meters[usize::from(meter)]);
            self.colour = buckets.colour(meter, cx.now, counted.bytes, self.colour);
        }
        let Some(wred) = &self.wred[counted.queue] else { return false };
        let rate = cx.ports[out.index()].rate();
        let part = &mut self.ports[out.index()];
        let length = part.queues[counted.queue].bytes;
        if let (Some(exponent), Some(early)) = (wred.average, &mut part.early) {
            early.averages[counted.queue].arrives(cx.now, length, exponent, rate.transmit(self.mtu_bytes));
        }
        let length = part.length(counted.queue, wred, length + counted.bytes as u32);
        wred.loses(self.colour, capable, rate, length, cx.random)
    }
}

impl PortPart {
    /// The length by which packets are marked, where the queue is as long as `now`.
    fn length(&self, queue: usize, wred: &Wred, now: u32) -> u32 {
        match &self.early {
            Some(early) if wred.average.is_some() => early.averages[queue].bytes(),
            _ => now,
        }
    }
}

impl Early {
    /// A packet has left a queue, which may be empty now. Returns its colour, if that was kept.
    fn leaves(&mut self, now: Time, queue: usize, empty: bool) -> Colour {
        if empty {
            self.averages[queue].empties(now);
        }
        self.colours[queue].pop_front().unwrap_or_default()
    }
}

impl QueueDiscipline for SwitchPart {
    fn admit(&mut self, cx: &mut LinkCx<'_>, out: PortId, id: PacketId) -> Admission {
        let slot = cx.pool.get(id);
        let (counted, class) = (self.counted(slot), slot.packet.class);
        if self.early && self.loses_early(cx, out, id, &counted) {
            return Admission::Full;
        }
        let Counted { into, group, queue, bytes } = counted;
        let drops = self.watchdog.is_some_and(|of| of.action == Action::Drop);
        if drops && self.ports[out.index()].storm() >> queue & 1 == 1 {
            return Admission::Full;
        }
        let both = self.ingress.room(into, group, bytes).and(self.egress.room(out.index(), queue, bytes));
        if both.is_some() {
            return Admission::ByBuffer;
        }
        self.lossless_losses += u64::from(self.is_lossless(class));
        Admission::Full
    }

    /// Pools and thresholds have decided already.
    fn share(&self, _: u8) -> Option<Share> {
        Some(Share::Lossless)
    }

    fn enqueue(&mut self, cx: &mut LinkCx<'_>, out: PortId, id: PacketId) -> u32 {
        let slot = cx.pool.get(id);
        let Counted { into, group, queue, bytes } = self.counted(slot);
        let class = slot.packet.class;
        let place = self.ingress.room(into, group, bytes).expect("it has been admitted");
        self.ingress.take(into, group, bytes, place);
        self.egress.take(out.index(), queue, bytes, Room::Shared);
        let part = &mut self.ports[out.index()];
        let own = &mut part.queues[queue];
        own.packets.push(cx.pool, id);
        own.bytes += bytes as u32;
        let length = own.bytes;
        part.backlog |= 1 << queue;
        part.class_bytes[usize::from(class)] += bytes as u32;
        cx.ports[out.index()].hold(cx.now, cx.pool, id);
        if place == Room::Headroom && self.ports[into].pausing >> group & 1 == 0 {
            self.say(cx, PortId::from(into), group as u8, true);
        }
        if self.early {
            self.mark_at_arrival(cx, out, id, queue);
        }
        self.watch(cx.now, out);
        length
    }

    fn class_bytes(&self, _: &[Port], port: PortId, class: u8) -> u32 {
        self.ports[port.index()].class_bytes[usize::from(class)]
    }

    fn dequeue(&mut self, cx: &mut LinkCx<'_>, out: PortId) -> Option<Dequeued> {
        let ready = self.sendable(out);
        let part = &mut self.ports[out.index()];
        let first = |queue: u8| {
            let first = part.queues[usize::from(queue)].packets.first().expect("its backlog bit is set");
            u32::from(cx.pool.get(first).packet.wire_bytes)
        };
        let Some(queue) = part.schedule.pick(cx.now, ready, first) else {
            part.shaped_until = part.schedule.next_at(ready);
            self.wakes_at = self.wakes_at.min(part.shaped_until);
            return None;
        };
        let id = self.take(cx, out, usize::from(queue))?;
        self.ports[out.index()].schedule.sent(cx.now, queue, u32::from(cx.pool.get(id).packet.wire_bytes));
        if self.early {
            self.mark_at_departure(cx, out, id, usize::from(queue));
        }
        self.watch(cx.now, out);
        Some(Dequeued { id, left_bytes: self.ports[out.index()].queues[usize::from(queue)].bytes })
    }

    fn ready(&self, _: &[Port], out: PortId) -> bool {
        self.sendable(out) != 0
    }

    fn frame(&mut self, cx: &mut LinkCx<'_>, port: PortId, frame: &Packet) {
        let frame = frame.header::<Frame>();
        if let Some(expiry) = &mut self.expiry {
            expiry.heard(cx.now, port, frame);
        }
        self.heard(cx, port, frame);
    }

    fn drain(&mut self, cx: &mut LinkCx<'_>, port: PortId) -> Option<PacketId> {
        let backlog = self.ports[port.index()].backlog;
        if backlog == 0 { None } else { self.take(cx, port, backlog.trailing_zeros() as usize) }
    }

    /// Which queue gives way is for thresholds to say.
    fn push_out(&mut self, _: &mut LinkCx<'_>, _: PortId, _: u8) -> Option<PacketId> {
        None
    }

    /// Nothing is paused at either end.
    fn set_up(&mut self, cx: &mut LinkCx<'_>, port: PortId, _: bool) {
        cx.ports[port.index()].set_paused(0, cx.now);
        let part = &mut self.ports[port.index()];
        (part.paused, part.pausing) = (0, 0);
        if let Some(expiry) = &mut self.expiry {
            expiry.clear(port);
        }
        self.watch(cx.now, port);
        cx.port_ready(port);
    }

    fn poll_at(&self) -> Time {
        self.expiry.as_ref().map_or(self.wakes_at, |expiry| expiry.next_at().min(self.wakes_at))
    }

    fn wake(&mut self, cx: &mut LinkCx<'_>) {
        if let Some(mut expiry) = self.expiry.take() {
            expiry.wake(cx, |cx, port, frame| self.heard(cx, port, frame));
            self.expiry = Some(expiry);
        }
        self.wakes_at = Time::MAX;
        for port in (0..self.ports.len()).map(PortId::from) {
            self.look(cx, port);
            let part = &mut self.ports[port.index()];
            if part.shaped_until <= cx.now {
                part.shaped_until = Time::MAX;
                cx.port_ready(port);
            }
            self.wakes_at = self.wakes_at.min(part.shaped_until);
        }
    }

    fn gives_up(&mut self) -> Option<(PortId, PacketId)> {
        self.given_up.pop()
    }

    /// A queue is shown as the first class that it is for.
    fn queues(&self, _: &[Port], port: PortId, see: &mut dyn FnMut(QueueView)) {
        let part = &self.ports[port.index()];
        for (queue, Queue { packets, bytes }) in part.queues.iter().enumerate() {
            let paused = part.paused >> queue & 1 == 1;
            if let Some(class) = self.classes.queue.iter().position(|of| usize::from(*of) == queue)
                && (*bytes > 0 || paused)
            {
                let (cause, packets) = (Cause::Class(class as u8), *packets);
                see(QueueView { cause, paused, root: false, bytes: *bytes, packets });
            }
        }
    }

    fn holds_back(&self, slot: &Slot, _: Cause) -> Option<Cause> {
        let class = slot.packet.class;
        let queue = self.classes.queue[usize::from(class)];
        let first = self.classes.queue.iter().position(|of| *of == queue)?;
        self.is_lossless(class).then_some(Cause::Class(first as u8))
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        let mut counters =
            vec![("pfc_pauses", self.pauses), ("pfc_resumes", self.resumes), ("lossless_losses", self.lossless_losses)];
        if self.watchdog.is_some() {
            counters.extend([("pfc_storms", self.storms), ("pfc_storms_over", self.restored)]);
        }
        counters.extend(self.expiry.iter().flat_map(|expiry| expiry.counters()));
        counters
    }
}
