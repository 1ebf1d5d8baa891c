//! The receiver's side: data in any order, selective acknowledgements, NACKs of what was trimmed, and credits.

use std::collections::VecDeque;

use node::packet::flags;
use node::{Cx, Event, FlowMap, FlowState, Packet};
use units::{FlowId, HostId, Time};

use super::Header;
use super::credits::{Account, Credits};
use super::header::{Ack, CREDIT_UNIT, Data, Nack, Pull, RECEIVED, Rts};
use super::params::{Params, REACH};
use crate::bits::Bits;
use crate::finished::Finished;

#[derive(node::State)]
pub(super) struct Receiver {
    flows: FlowMap<Incoming>,
    /// Complete messages: their senders may not know yet.
    finished: Finished,
    /// None if senders alone decide.
    credits: Option<Credits>,
    pub counts: Counts,
}

/// Counters for the result.
#[derive(Default, node::State)]
#[state(counts)]
pub(super) struct Counts {
    pub acks: u64,
    pub nacks: u64,
    pub pulls: u64,
    pub duplicates: u64,
    pub out_of_order: u64,
    pub trimmed: u64,
    pub malformed: u64,
}

/// An incomplete message.
#[derive(node::State)]
#[state(last(walk.steps(walk.flow, &mut { self.received.first_missing })))]
pub(super) struct Incoming {
    src: HostId,
    bytes: u64,
    packets: u32,
    received: Bits,
    /// Bytes taken in, headers included.
    #[state(measured(RECEIVED))]
    received_bytes: u64,
    /// Bytes taken in since the last acknowledgement.
    unacked_bytes: u64,
    /// The sender has asked for an answer, and packets were missing.
    ack_owed: bool,
    pub account: Account,
}

/// What an acknowledgement says of the packet that caused it.
struct Cause {
    psn: u32,
    entropy: u16,
    marked: bool,
    resent: bool,
    of_request: bool,
}

impl Receiver {
    pub fn new(credits: Option<Credits>) -> Receiver {
        Receiver { flows: FlowMap::default(), finished: Finished::default(), credits, counts: Counts::default() }
    }

    /// Handles a data packet or its headers.
    pub fn receive(
        &mut self,
        cx: &mut Cx<'_>,
        packet: &Packet,
        data: Data,
        params: &Params,
        control: &mut VecDeque<Packet>,
    ) {
        let (trimmed, marked) = (packet.has(flags::TRIMMED), packet.has(flags::CE));
        if let Some(credits) = &mut self.credits
            && let Some(rates) = &mut credits.control
        {
            rates.count(cx.now, marked, trimmed.then_some(data.last_hop), cx.random);
        }
        let Data { psn, entropy, resent, .. } = data;
        let cause = Cause { psn, entropy, marked: marked && !trimmed, resent, of_request: false };
        let Some(slot) = self.find(packet, data.message_bytes, &cause, params, control) else { return };
        let Some((_, flow)) = self.flows.get_mut(slot) else { return };
        if psn >= flow.packets || psn > flow.received.first_missing.saturating_add(REACH) {
            self.counts.malformed += 1;
            return;
        }
        let known = flow.received.next_missing(psn) != psn;
        if let Some(credits) = &mut self.credits {
            if trimmed && !known {
                credits.trimmed(&mut flow.account);
            }
            credits.ask(packet.flow, &mut flow.account, data.pull_target, trimmed && !known);
        }
        if known {
            self.counts.duplicates += 1;
            self.ack(slot, &cause, params, control);
        } else if trimmed {
            self.counts.trimmed += 1;
            self.counts.nacks += 1;
            let nack = Nack { psn, entropy, marked, resent, last_hop: data.last_hop };
            control.push_back(params.control(packet.flow, packet.src, Header::Nack(nack)));
        } else if self.take(slot, psn, data.ack_request, &cause, params) {
            self.ack(slot, &cause, params, control);
        }
        if self.flows.get(slot).is_some_and(|(_, flow)| flow.received.count == flow.packets) {
            self.flows.remove(slot);
            self.finished.add(packet.flow);
            cx.events.push(Event::Delivered { flow: packet.flow });
        }
    }

    /// Takes in a packet. Whether it is to be acknowledged now: marked, asked for, the first, enough since the last
    /// time, or the last that was missing of what was asked for.
    fn take(&mut self, slot: u32, psn: u32, asked: bool, cause: &Cause, params: &Params) -> bool {
        let Some((_, flow)) = self.flows.get_mut(slot) else { return false };
        let first = flow.received.count == 0;
        self.counts.out_of_order += u64::from(psn != flow.received.first_missing);
        flow.received.insert(psn);
        let bytes = params.wire_bytes(flow.bytes, psn);
        flow.received_bytes += bytes;
        flow.unacked_bytes += bytes;
        flow.ack_owed |= asked;
        let in_order = flow.received.count == flow.received.first_missing;
        let owed = flow.ack_owed && in_order;
        flow.ack_owed &= !in_order;
        cause.marked || asked || first || owed || flow.unacked_bytes >= params.ack_bytes
    }

    /// Handles a request for credit.
    pub fn request(&mut self, packet: &Packet, rts: Rts, params: &Params, control: &mut VecDeque<Packet>) {
        let cause = Cause { psn: 0, entropy: 0, marked: false, resent: false, of_request: true };
        let Some(slot) = self.find(packet, rts.message_bytes, &cause, params, control) else { return };
        if let Some(credits) = &mut self.credits
            && let Some((_, flow)) = self.flows.get_mut(slot)
        {
            credits.ask(packet.flow, &mut flow.account, rts.pull_target, true);
        }
        self.ack(slot, &cause, params, control);
    }

    /// The slot of a packet's message, new if this is the first of it. None, and an answer, if it is complete; none if
    /// the packet is none of it.
    fn find(
        &mut self,
        packet: &Packet,
        bytes: u64,
        cause: &Cause,
        params: &Params,
        control: &mut VecDeque<Packet>,
    ) -> Option<u32> {
        if self.finished.knows(packet.flow) {
            self.counts.duplicates += 1;
            self.counts.acks += 1;
            let packets = params.packets(bytes);
            let ack = Ack {
                psn: cause.psn,
                entropy: cause.entropy,
                cumulative: packets,
                base: packets,
                bitmap: 0,
                received_bytes: params.all_wire_bytes(bytes),
                marked: cause.marked,
                resent: cause.resent,
                of_request: cause.of_request,
            };
            control.push_back(params.control(packet.flow, packet.src, Header::Ack(ack)));
            return None;
        }
        let slot = self.flows.slot(packet.flow).unwrap_or_else(|| {
            let new = Incoming {
                src: packet.src,
                bytes,
                packets: params.packets(bytes),
                received: Bits::default(),
                received_bytes: 0,
                unacked_bytes: 0,
                ack_owed: false,
                account: Account::new(params.all_wire_bytes(bytes)),
            };
            self.flows.insert(packet.flow, new)
        });
        let same = self.flows.get(slot).is_some_and(|(_, flow)| flow.src == packet.src && flow.bytes == bytes);
        self.counts.malformed += u64::from(!same);
        same.then_some(slot)
    }

    fn ack(&mut self, slot: u32, cause: &Cause, params: &Params, control: &mut VecDeque<Packet>) {
        let Some((id, flow)) = self.flows.get_mut(slot) else { return };
        flow.unacked_bytes = 0;
        let cumulative = flow.received.first_missing;
        let base = cause.psn.saturating_sub(63).max(cumulative.saturating_add(1));
        let here = |psn: &u32| flow.received.next_missing(*psn) != *psn;
        let bitmap = (base..base.saturating_add(64)).filter(here).fold(0, |bits, psn| bits | 1 << (psn - base));
        let ack = Ack {
            psn: cause.psn,
            entropy: cause.entropy,
            cumulative,
            base,
            bitmap,
            received_bytes: flow.received_bytes,
            marked: cause.marked,
            resent: cause.resent,
            of_request: cause.of_request,
        };
        self.counts.acks += 1;
        control.push_back(params.control(id, flow.src, Header::Ack(ack)));
    }

    /// Sends the pulls that are due.
    pub fn send_pulls(&mut self, cx: &mut Cx<'_>, params: &Params, control: &mut VecDeque<Packet>) {
        let Some(credits) = &mut self.credits else { return };
        if let Some(rates) = &mut credits.control {
            rates.decide(cx.now, cx.random);
        }
        while let Some((flow, credit)) = credits.next(cx.now, &mut self.flows) {
            let Some(to) = self.flows.of(flow).map(|flow| flow.src) else { continue };
            self.counts.pulls += 1;
            control.push_back(params.control(flow, to, Header::Pull(Pull { credit })));
        }
    }

    /// A message has come whole in time that is skipped.
    pub fn came_again(&mut self, flow: FlowId) {
        self.finished.add(flow);
    }

    /// What a flow has here: credit that it wants and that it was given, if receivers give any.
    pub fn state(&self, flow: FlowId, say: &mut FlowState) {
        let Some(incoming) = self.flows.of(flow) else { return };
        say.say("received_packets", u64::from(incoming.received.count));
        if self.credits.is_some() {
            let Account { given, target, .. } = incoming.account;
            say.say("wanted_credit_bytes", u64::from(target.saturating_sub(given)) * CREDIT_UNIT);
            say.say("given_credit_bytes", u64::from(given) * CREDIT_UNIT);
        }
    }

    /// When a pull is due, or the rate of pulls is to be decided on.
    pub fn next_deadline(&self) -> Time {
        self.credits.as_ref().map_or(Time::MAX, |credits| {
            let decides_at = credits.control.as_ref().map_or(Time::MAX, |control| control.decides_at());
            credits.next_at().min(decides_at)
        })
    }
}

#[cfg(test)]
mod tests;
