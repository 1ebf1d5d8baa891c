//! The receiver's side (section 3.2): ACKs and NACKs at once, and one pull queue for everything that arrives, emptied
//! at the rate of the link.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use node::packet::flags;
use node::{Cx, Event, FlowMap, FlowState, Packet, Walk};
use units::{Duration, FlowId, HostId, Time};

use super::Header;
use super::header::{Answer, Data, Progress};
use super::params::Params;
use crate::bits::Bits;
use crate::finished::Finished;

#[derive(Default, node::State)]
#[state(given(Params), last(self.visit_pace(walk, given)))]
pub(super) struct Receiver {
    flows: FlowMap<Incoming>,
    /// Complete messages (section 3.2.2: no connection is processed twice).
    finished: Finished,
    /// The pull queue: by class, flows that have pulls in it, in turn. A flow may have lost its pulls meanwhile, or
    /// have ended.
    turns: BTreeMap<u16, VecDeque<FlowId>>,
    /// Number of pulls in the queue.
    queued: u64,
    /// Earliest time of the next pull.
    #[state(skip("`visit_pace` visits it"))]
    pull_at: Time,
    #[state(skip("`visit_pace` visits it"))]
    spacing: Spacing,
    pub counts: Counts,
}

/// How far pulls have been apart, for who goes over the state.
#[derive(Default, node::Saved)]
struct Spacing {
    last: Time,
    /// Between the last two pulls.
    apart: Duration,
    /// How many pulls had to wait, or were not as far apart as those before.
    others: u64,
}

impl Spacing {
    fn pull(&mut self, now: Time, waited: bool) {
        let apart = now.since(self.last);
        self.others += u64::from(waited || apart != self.apart);
        (self.last, self.apart) = (now, apart);
    }
}

/// Counters for the result.
#[derive(Default, node::State)]
#[state(counts)]
pub(super) struct Counts {
    pub acks: u64,
    pub nacks: u64,
    #[state(skip("`visit_pace` visits it"))]
    pub pulls: u64,
    pub pulls_with_answers: u64,
    pub pulls_removed: u64,
    pub duplicates: u64,
}

/// An incomplete message.
#[derive(node::State)]
#[state(last(walk.steps(walk.flow, &mut { self.received.first_missing })))]
struct Incoming {
    src: HostId,
    class: u16,
    packets: u32,
    received: Bits,
    /// Packets of which only headers have arrived.
    #[state(sequence)]
    trimmed: BTreeSet<u32>,
    /// Number of pulls sent.
    #[state(steps)]
    pulls: u32,
    /// Number of pulls in the queue, and whether the flow is in it.
    queued: u32,
    listed: bool,
    /// The sender had nothing more to send: data then in flight causes no pulls.
    last_seen: bool,
}

impl Receiver {
    /// Handles a data packet or its headers.
    pub fn receive(
        &mut self,
        cx: &mut Cx<'_>,
        packet: &Packet,
        data: Data,
        params: &Params,
        control: &mut VecDeque<Packet>,
    ) {
        let packets = params.packets(data.message_bytes);
        let answer = |whole, pull, acked| {
            let answer = Answer { packet: data.packet, progress: Progress { pull, acked } };
            let header = if whole { Header::Ack(answer) } else { Header::Nack(answer) };
            params.control(packet.flow, packet.src, header)
        };
        if self.finished.knows(packet.flow) {
            self.counts.duplicates += 1;
            control.push_back(answer(true, 0, packets));
            return;
        }
        let slot = self.flows.slot(packet.flow).unwrap_or_else(|| {
            let new = Incoming {
                src: packet.src,
                class: data.class,
                packets,
                received: Bits::default(),
                trimmed: BTreeSet::new(),
                pulls: 0,
                queued: 0,
                listed: false,
                last_seen: false,
            };
            self.flows.insert(packet.flow, new)
        });
        let (_, flow) = self.flows.get_mut(slot).expect("just found");
        if flow.src != packet.src || data.packet >= flow.packets {
            return;
        }
        // A duplicate was sent without a pull, and so causes none.
        let known = flow.received.next_missing(data.packet) != data.packet;
        let trimmed = packet.has(flags::TRIMMED);
        let pulls = match (known, trimmed) {
            (true, _) => {
                self.counts.duplicates += 1;
                false
            }
            (false, true) => {
                flow.trimmed.insert(data.packet);
                true
            }
            (false, false) => {
                flow.received.insert(data.packet);
                flow.trimmed.remove(&data.packet);
                !flow.last_seen
            }
        };
        let whole = known || !trimmed;
        self.counts.acks += u64::from(whole);
        self.counts.nacks += u64::from(!whole);
        if flow.received.count == flow.packets {
            control.push_back(answer(whole, flow.pulls, packets));
            self.keep(slot, 0);
            self.flows.remove(slot);
            self.finished.add(packet.flow);
            cx.events.push(Event::Delivered { flow: packet.flow });
            return;
        }
        if params.mark_ends_pulls && data.last && !trimmed {
            flow.last_seen = true;
            // Trimmed packets need their pulls, also if sent again after the mark.
            let need = flow.trimmed.len() as u32;
            self.keep(slot, need);
        } else if pulls {
            self.add(slot, packet.flow);
        }
        let combined = self.queued == 1 && self.take_own(slot, cx.now, params);
        let (_, flow) = self.flows.get(slot).expect("it has not ended");
        self.counts.pulls_with_answers += u64::from(combined);
        control.push_back(answer(whole, flow.pulls, flow.received.first_missing));
    }

    /// What a flow has here: pulls in the queue, and packets of which only headers have come.
    pub fn state(&self, flow: FlowId, say: &mut FlowState) {
        let Some(Incoming { queued, trimmed, .. }) = self.flows.of(flow) else { return };
        say.say("queued_pulls", u64::from(*queued));
        say.say("trimmed_packets", trimmed.len() as u64);
    }

    /// Adds a pull to the queue.
    fn add(&mut self, slot: u32, id: FlowId) {
        let (_, flow) = self.flows.get_mut(slot).expect("the caller has it");
        flow.queued += 1;
        self.queued += 1;
        if !flow.listed {
            flow.listed = true;
            self.turns.entry(flow.class).or_default().push_back(id);
        }
    }

    /// Removes all pulls of a flow except for this many.
    fn keep(&mut self, slot: u32, most: u32) {
        let (_, flow) = self.flows.get_mut(slot).expect("the caller has it");
        let removed = flow.queued.saturating_sub(most);
        flow.queued -= removed;
        self.queued -= u64::from(removed);
        self.counts.pulls_removed += u64::from(removed);
    }

    /// If the only pull in the queue is this flow's and may be sent now, it goes with the answer (section 3.2, "a
    /// combined PULLACK").
    fn take_own(&mut self, slot: u32, now: Time, params: &Params) -> bool {
        let (_, flow) = self.flows.get_mut(slot).expect("the caller has it");
        if flow.queued != 1 || now < self.pull_at {
            return false;
        }
        flow.queued = 0;
        flow.pulls += 1;
        self.queued = 0;
        self.pace(now, params);
        true
    }

    /// Sends a pull; the next follows when its packet has arrived. A pull late by less than that does not delay the
    /// others.
    fn pace(&mut self, now: Time, params: &Params) {
        self.spacing.pull(now, now == self.pull_at);
        let due = if now < self.pull_at + params.packet_time { self.pull_at } else { now };
        self.pull_at = due + params.packet_time;
        self.counts.pulls += 1;
    }

    /// Sends the pulls that are due.
    pub fn send_pulls(&mut self, now: Time, params: &Params, control: &mut VecDeque<Packet>) {
        while self.queued > 0 && self.pull_at <= now {
            let (id, slot) = self.take_turn();
            let (_, flow) = self.flows.get_mut(slot).expect("it has a pull");
            flow.pulls += 1;
            let progress = Progress { pull: flow.pulls, acked: flow.received.first_missing };
            control.push_back(params.control(id, flow.src, Header::Pull(progress)));
            self.pace(now, params);
        }
    }

    /// Removes a pull of the flow whose turn it is.
    fn take_turn(&mut self) -> (FlowId, u32) {
        loop {
            let mut first = self.turns.first_entry().expect("flows with pulls are listed");
            let Some(id) = first.get_mut().pop_front() else {
                first.remove();
                continue;
            };
            let Some(slot) = self.flows.slot(id) else { continue };
            let (_, flow) = self.flows.get_mut(slot).expect("just found");
            flow.listed = flow.queued > 1;
            if flow.listed {
                first.get_mut().push_back(id);
            }
            if flow.queued > 0 {
                flow.queued -= 1;
                self.queued -= 1;
                return (id, slot);
            }
        }
    }

    /// A flow has come whole in time that is skipped.
    pub fn came_again(&mut self, flow: FlowId) {
        self.finished.add(flow);
    }

    /// When a pull is due.
    pub fn next_pull(&self) -> Time {
        if self.queued > 0 { self.pull_at } else { Time::MAX }
    }

    /// Goes over the pace of pulls.
    fn visit_pace(&mut self, walk: &mut Walk, params: &Params) {
        let Spacing { last, apart, others } = &mut self.spacing;
        // A pull that is later than this begins anew.
        let mut begins_anew = self.pull_at + params.packet_time;
        let apart_enough = self.queued == 0 && *apart > params.packet_time && begins_anew > walk.now();
        walk.same(apart_enough);
        if apart_enough {
            let mut left = self.pull_at - *last;
            walk.same((*apart, *others));
            walk.past(last);
            let pulls = walk.count(&mut self.counts.pulls);
            // Averages don't say how the pulls were spaced.
            for _ in 0..if walk.by_averages() { 0 } else { pulls } {
                let late = *apart - left;
                left = if late < params.packet_time { params.packet_time - late } else { params.packet_time };
            }
            self.pull_at = *last + left;
        } else {
            walk.past(last);
            walk.count(&mut self.counts.pulls);
            walk.expired(&mut begins_anew);
            self.pull_at = begins_anew - params.packet_time;
        }
    }
}
