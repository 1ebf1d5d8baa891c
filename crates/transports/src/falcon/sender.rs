//! The sender's side of a host: its connections take turns by packet; what is lost goes first.

use std::collections::VecDeque;

use node::{Cx, Event, FlowMap, FlowState, Message, Packet, Timers};
use units::{Duration, FlowId, Time};

use super::Header;
use super::connection::{Connection, Found};
use super::header::{Ack, Data, Echo, Nack, stamp};
use super::params::{PATHS, Params};
use super::windows::Answer;

#[derive(Default, node::State)]
pub(super) struct Sender {
    flows: FlowMap<Connection>,
    /// Connections that may send, in turn.
    ready: VecDeque<(FlowId, u32)>,
    /// One for each: for its oldest packet in the network, a probe, or pacing.
    timers: Timers,
    pub counts: Counts,
}

/// Counters for the result.
#[derive(Default, node::State)]
#[state(counts)]
pub(super) struct Counts {
    pub retransmissions: u64,
    pub early: u64,
    pub timeouts: u64,
    pub probes: u64,
    pub path_changes: u64,
    pub malformed: u64,
}

impl Counts {
    fn add(&mut self, found: Found) {
        self.early += found.early;
        self.timeouts += found.timeouts;
        self.probes += found.probes;
    }
}

impl Sender {
    /// A message to send.
    pub fn start(&mut self, cx: &mut Cx<'_>, message: &Message, params: &Params) {
        let slot = self.flows.insert(message.flow, Connection::new(message, params, cx.random));
        self.settle(cx.now, slot, params);
    }

    /// What a flow has here. Windows are in packets; below one, the fabric window is written in thousandths too.
    pub fn state(&self, flow: FlowId, params: &Params, say: &mut FlowState) {
        let Some(of) = self.flows.of(flow) else { return };
        let payload = u64::from(params.site.payload_max());
        say.window_bytes(u64::from(of.windows.packets(params).min(of.windows.nic_packets())) * payload);
        say.outstanding_bytes(u64::from(of.outstanding()) * payload);
        say.say("fcwnd_millipackets", (of.windows.fcwnd(params) * 1e3) as u64);
        if params.nic.is_some() {
            say.say("ncwnd_packets", u64::from(of.windows.nic_packets()));
        }
        say.say("lost_packets", of.lost() as u64);
    }

    /// An acknowledgement.
    pub fn acked(&mut self, cx: &mut Cx<'_>, packet: &Packet, ack: &Ack, params: &Params) {
        let Some(slot) = self.flows.slot(packet.flow) else { return };
        let Some((id, flow)) = self.flows.get_mut(slot) else { return };
        let sound = flow.dst == packet.src && ack.base <= flow.next() && usize::from(ack.echo.path) < params.paths;
        if !sound {
            self.counts.malformed += 1;
            return;
        }
        let stale = ack.base < flow.una;
        if stale && params.paths == 1 {
            return;
        }
        let answer = answer(cx.now, ack.echo, false);
        if !stale {
            flow.take(ack, params);
        }
        flow.heard(cx.now, sent_at(cx.now, &answer), params);
        self.counts.early += flow.scan(cx.now);
        if !stale {
            self.counts.early += flow.overtaken(ack, cx.now, answer.rtt, params);
        }
        if flow.una == flow.packets {
            let (sent_packets, resent_packets) = (flow.sent_packets, flow.resent_packets);
            self.flows.remove(slot);
            self.timers.clear(slot);
            cx.events.push(Event::Completed { flow: id, sent_packets, resent_packets });
            return;
        }
        // An answer that others have overtaken on their paths is the newest of its own, if that has any news.
        if !stale || flow.windows.has_news(usize::from(ack.echo.path)) {
            self.adapt(cx, slot, &answer, params);
        }
        self.settle(cx.now, slot, params);
    }

    /// A packet found no room.
    pub fn nacked(&mut self, cx: &mut Cx<'_>, packet: &Packet, nack: &Nack, params: &Params) {
        let Some(slot) = self.flows.slot(packet.flow) else { return };
        let Some((_, flow)) = self.flows.get_mut(slot) else { return };
        let sound = flow.dst == packet.src
            && nack.psn < flow.next()
            && params.nic.is_some()
            && usize::from(nack.echo.path) < params.paths;
        if !sound {
            self.counts.malformed += 1;
            return;
        }
        let answer = answer(cx.now, nack.echo, true);
        self.counts.early += u64::from(flow.lose(nack.psn));
        self.adapt(cx, slot, &answer, params);
        self.settle(cx.now, slot, params);
    }

    fn adapt(&mut self, cx: &mut Cx<'_>, slot: u32, answer: &Answer, params: &Params) {
        let Some((_, flow)) = self.flows.get_mut(slot) else { return };
        if flow.windows.answered(answer, params) {
            flow.paths.change(answer.echo.path, cx.now, cx.random);
            self.counts.path_changes += 1;
        }
    }

    /// The next data packet for the NIC.
    pub fn poll_data(&mut self, cx: &mut Cx<'_>, params: &Params) -> Option<Packet> {
        while let Some((id, slot)) = self.ready.pop_front() {
            // The slot of a connection that has ended may belong to another by now.
            let Some((_, flow)) = self.flows.get_mut(slot).filter(|known| known.0 == id) else { continue };
            flow.listed = false;
            let Some(psn) = flow.following(params) else { continue };
            if flow.held_until(params).is_some_and(|at| at > cx.now) {
                self.settle(cx.now, slot, params);
                continue;
            }
            let (first, path) = flow.leaves(psn, cx.now, params);
            self.counts.retransmissions += u64::from(!first);
            let small =
                flow.windows.fcwnd(params).min(f64::from(flow.windows.nic_packets())) <= params.ack_request_window;
            let drawn = params.ack_request_share > 0.0 && cx.random.chance(params.ack_request_share);
            let data = Data {
                psn,
                path,
                // Beside what section 9.1.3.1 asks for: the end of a message and what goes again, of which the sender
                // wants to know at once.
                ack_request: small || drawn || !first || psn + 1 == flow.packets,
                t1_ns: stamp(cx.now),
                message_bytes: flow.bytes,
                offset: u64::from(psn) * u64::from(params.site.payload_max()),
            };
            let payload = params.payload(flow.bytes, psn) as u16;
            let mut packet = params.site.data_packet(id, flow.dst, Header::Data(data), payload);
            packet.class = params.class;
            packet.set_flow_label(flow.paths.label(path));
            self.settle(cx.now, slot, params);
            return Some(packet);
        }
        None
    }

    /// Does what is due.
    pub fn deadline(&mut self, cx: &mut Cx<'_>, params: &Params) {
        while let Some(slot) = self.timers.expire(cx.now) {
            let Some((_, flow)) = self.flows.get_mut(slot) else { continue };
            let found = flow.expire(cx.now, params);
            self.counts.add(found);
            // The path may have failed. The specification changes paths for delay alone; PLB as published does so after
            // a timeout too (Qureshi et al., SIGCOMM 2022).
            for path in (0..PATHS as u8).filter(|path| params.plb.on && found.paths >> path & 1 == 1) {
                flow.paths.change(path, cx.now, cx.random);
                self.counts.path_changes += 1;
            }
            self.settle(cx.now, slot, params);
        }
    }

    /// Lists a connection that may send, and sets its timer.
    fn settle(&mut self, now: Time, slot: u32, params: &Params) {
        let Some((id, flow)) = self.flows.get_mut(slot) else { return };
        let mut deadline = flow.deadline(params);
        if !flow.listed && flow.following(params).is_some() {
            match flow.held_until(params).filter(|&at| at > now) {
                Some(at) => deadline = Some(deadline.map_or(at, |deadline| deadline.min(at))),
                None => {
                    flow.listed = true;
                    self.ready.push_back((id, slot));
                }
            }
        }
        match deadline {
            Some(at) => self.timers.set(slot, at),
            None => self.timers.clear(slot),
        }
    }

    pub fn next_deadline(&self) -> Time {
        self.timers.next().unwrap_or(Time::MAX)
    }
}

/// What an answer that comes now says of its path (section 10.1): rtt = T4 - T1, and fabric delay, which is that less
/// T3 - T2.
fn answer(now: Time, echo: Echo, exhausted: bool) -> Answer {
    let rtt = u64::from(stamp(now).wrapping_sub(echo.t1_ns));
    let delay = rtt.saturating_sub(u64::from(echo.held_ns));
    Answer { now, rtt: Duration::from_ns(rtt), delay: Duration::from_ns(delay), echo, exhausted }
}

/// When the packet left that an answer answers.
fn sent_at(now: Time, answer: &Answer) -> Time {
    Time::from_ps(now.ps().saturating_sub(answer.rtt.ps()))
}
