//! The receiver's side: data in any order, acknowledgements that are coalesced for each path, and the receive buffer.

use std::collections::VecDeque;

use node::packet::flags;
use node::{Cx, Event, FlowMap, Packet, Timers};
use units::{FlowId, HostId, Time};

use super::Header;
use super::header::{Ack, BITMAP, Data, Echo, Nack, visit_stamp};
use super::intake::{Intake, Taken};
use super::params::{PATHS, Params};
use crate::bits::Bits;
use crate::finished::Finished;

#[derive(Default, node::State)]
pub(super) struct Receiver {
    flows: FlowMap<Incoming>,
    /// Complete messages: their senders may not know yet.
    finished: Finished,
    intake: Option<Intake>,
    /// Acknowledgements that wait for more packets: by slot and path.
    coalescing: Timers,
    /// Answers for the NIC, and when what they answer came.
    answers: VecDeque<(Packet, Time)>,
    pub counts: Counts,
}

/// Counters for the result.
#[derive(Default, node::State)]
#[state(counts)]
pub(super) struct Counts {
    pub acks: u64,
    pub nacks: u64,
    pub duplicates: u64,
    pub out_of_order: u64,
    pub malformed: u64,
    pub trimmed: u64,
}

/// An incomplete message.
#[derive(node::State)]
#[state(last(walk.steps(walk.flow, &mut { self.taken.first_missing })))]
struct Incoming {
    src: HostId,
    bytes: u64,
    packets: u32,
    received: Bits,
    /// What the upper layer has taken.
    taken: Bits,
    paths: [Owed; PATHS],
}

/// What a path's next acknowledgement says of its newest packet.
#[derive(Clone, Copy, Default, node::State)]
struct Owed {
    /// Packets since the last one.
    packets: u32,
    #[state(if_any(time))]
    at: Time,
    hops: u8,
    #[state(when(self.label != 0, by(visit_stamp)))]
    t1_ns: u32,
    label: u32,
}

impl Owed {
    fn of(packet: &Packet, data: &Data, now: Time, packets: u32) -> Owed {
        Owed { packets, at: now, hops: packet.hops, t1_ns: data.t1_ns, label: packet.flow_label() }
    }

    fn echo(&self, path: u8, buffer_level: u8) -> Echo {
        Echo { path, hops: self.hops, buffer_level, t1_ns: self.t1_ns, held_ns: 0 }
    }
}

fn key(slot: u32, path: u8) -> u32 {
    slot * PATHS as u32 + u32::from(path)
}

impl Receiver {
    pub fn new(params: &Params) -> Receiver {
        Receiver { intake: params.nic.map(Intake::new), ..Receiver::default() }
    }

    fn level(&self) -> u8 {
        self.intake.as_ref().map_or(0, Intake::level)
    }

    /// A data packet.
    pub fn receive(&mut self, cx: &mut Cx<'_>, packet: &Packet, data: Data, params: &Params) {
        self.drain(cx, params);
        // The specification knows no trimming: what has lost its payload is a loss, which later packets show.
        if packet.has(flags::TRIMMED) {
            self.counts.trimmed += 1;
            return;
        }
        let (now, id) = (cx.now, packet.flow);
        if usize::from(data.path) >= params.paths || data.psn >= params.packets(data.message_bytes) {
            self.counts.malformed += 1;
            return;
        }
        if self.finished.knows(id) {
            self.counts.duplicates += 1;
            let base = params.packets(data.message_bytes);
            let owed = Owed::of(packet, &data, now, 0);
            let ack = Ack { base, received: 0, received_beyond: 0, echo: owed.echo(data.path, self.level()) };
            self.counts.acks += 1;
            self.answers.push_back((params.answer(id, packet.src, owed.label, Header::Ack(ack)), now));
            return;
        }
        let slot = self.flows.slot(id).unwrap_or_else(|| self.flows.insert(id, Incoming::new(packet, &data, params)));
        let Some((_, flow)) = self.flows.get_mut(slot) else { return };
        let far = data.psn > flow.received.first_missing.saturating_add(params.gains.window_max as u32);
        if flow.src != packet.src || flow.bytes != data.message_bytes || far {
            self.counts.malformed += 1;
            return;
        }
        let known = flow.received.next_missing(data.psn) != data.psn;
        let Data { psn, path, ack_request, .. } = data;
        let came = Taken { flow: id, psn, path, ack_request, bytes: u64::from(packet.payload_bytes) };
        if !known
            && let Some(intake) = &mut self.intake
            && !intake.admit(now, came)
        {
            let owed = Owed::of(packet, &data, now, 0);
            let nack = Nack { base: flow.taken.first_missing, psn, echo: owed.echo(path, intake.level()) };
            self.counts.nacks += 1;
            self.answers.push_back((params.answer(id, packet.src, owed.label, Header::Nack(nack)), now));
            return;
        }
        let owed = &mut flow.paths[usize::from(path)];
        *owed = Owed::of(packet, &data, now, owed.packets);
        self.counts.duplicates += u64::from(known);
        self.counts.out_of_order += u64::from(!known && psn != flow.received.first_missing);
        flow.received.insert(psn);
        if known {
            // What came twice asks for nothing (section 9.2.2.4), and counts.
            self.owe(now, slot, path, false, params);
        } else if self.intake.is_none() {
            self.taken(cx, came, params);
        } else {
            self.coalesce(now, slot, path, params);
        }
    }

    /// The upper layer has taken a packet, so it is acknowledged: with others, or at once if that was asked for. A
    /// whole message is acknowledged at once.
    fn taken(&mut self, cx: &mut Cx<'_>, packet: Taken, params: &Params) {
        let Some(slot) = self.flows.slot(packet.flow) else { return };
        let Some((_, flow)) = self.flows.get_mut(slot) else { return };
        flow.taken.insert(packet.psn);
        let whole = flow.taken.count == flow.packets;
        self.owe(cx.now, slot, packet.path, packet.ack_request || whole, params);
        if whole {
            (0..PATHS as u8).for_each(|path| self.coalescing.clear(key(slot, path)));
            self.flows.remove(slot);
            self.finished.add(packet.flow);
            cx.events.push(Event::Delivered { flow: packet.flow });
        }
    }

    /// One more packet of a path is to be acknowledged.
    fn owe(&mut self, now: Time, slot: u32, path: u8, at_once: bool, params: &Params) {
        let Some((_, flow)) = self.flows.get_mut(slot) else { return };
        let owed = &mut flow.paths[usize::from(path)];
        owed.packets += 1;
        if at_once || owed.packets >= params.ack_packets {
            self.ack(slot, path, params);
        } else {
            // An acknowledgement may have left while this packet was in the receive buffer.
            self.coalesce(now, slot, path, params);
        }
    }

    /// Waits for more packets of a path, but not for long.
    fn coalesce(&mut self, now: Time, slot: u32, path: u8, params: &Params) {
        if self.coalescing.get(key(slot, path)).is_none() {
            self.coalescing.set(key(slot, path), now + params.ack_timeout);
        }
    }

    /// Acknowledges what is there, for a path.
    fn ack(&mut self, slot: u32, path: u8, params: &Params) {
        let level = self.level();
        let Some((id, flow)) = self.flows.get_mut(slot) else { return };
        let owed = &mut flow.paths[usize::from(path)];
        owed.packets = 0;
        let (echo, at, label) = (owed.echo(path, level), owed.at, owed.label);
        let base = flow.taken.first_missing;
        let end = base.saturating_add(BITMAP);
        let mut bits = [0u64; 2];
        for psn in base..end {
            let here = flow.received.next_missing(psn) != psn;
            bits[((psn - base) / 64) as usize] |= u64::from(here) << ((psn - base) % 64);
        }
        let ack = Ack { base, received: bits[0], received_beyond: bits[1], echo };
        self.coalescing.clear(key(slot, path));
        self.counts.acks += 1;
        self.answers.push_back((params.answer(id, flow.src, label, Header::Ack(ack)), at));
    }

    /// The upper layer takes what is due.
    fn drain(&mut self, cx: &mut Cx<'_>, params: &Params) {
        while let Some(taken) = self.intake.as_mut().and_then(|intake| intake.take(cx.now)) {
            self.taken(cx, taken, params);
        }
    }

    /// Does what is due.
    pub fn deadline(&mut self, cx: &mut Cx<'_>, params: &Params) {
        self.drain(cx, params);
        while let Some(key) = self.coalescing.expire(cx.now) {
            self.ack(key / PATHS as u32, (key % PATHS as u32) as u8, params);
        }
    }

    /// The next answer for the NIC. Now is when it leaves (T3).
    pub fn poll_answer(&mut self, now: Time) -> Option<Packet> {
        let (mut packet, came) = self.answers.pop_front()?;
        let held_ns = u32::try_from(now.since(came).ps() / 1_000).unwrap_or(u32::MAX);
        let held = |echo: Echo| Echo { held_ns, ..echo };
        packet.set_header(match packet.header() {
            Header::Ack(ack) => Header::Ack(Ack { echo: held(ack.echo), ..ack }),
            Header::Nack(nack) => Header::Nack(Nack { echo: held(nack.echo), ..nack }),
            Header::Data(data) => Header::Data(data),
        });
        Some(packet)
    }

    /// A flow has come whole in time that is skipped.
    pub fn came_again(&mut self, flow: FlowId) {
        self.finished.add(flow);
    }

    pub fn next_deadline(&self) -> Time {
        let taken = self.intake.as_ref().and_then(Intake::next_at);
        self.coalescing.next().into_iter().chain(taken).min().unwrap_or(Time::MAX)
    }
}

impl Incoming {
    fn new(packet: &Packet, data: &Data, params: &Params) -> Incoming {
        Incoming {
            src: packet.src,
            bytes: data.message_bytes,
            packets: params.packets(data.message_bytes),
            received: Bits::default(),
            taken: Bits::default(),
            paths: [Owed::default(); PATHS],
        }
    }
}
