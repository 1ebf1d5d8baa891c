//! Whether anything moves: what comes to hosts, by group ([`Groups`]), and when something new last came.
//!
//! Where packets flow for ever and nothing new comes, each node does what it should, and the run looks busy. So each
//! part looks up at *marks*, set times that are far apart, and notes which groups something new came of since the last.
//! Between marks a packet that comes to a host costs some additions. A mark takes place before the first event at its
//! time or later, so it is no event of its own: what nodes do does not change, and neither does where windows begin.
//!
//! A delivered flow is new. So is payload, unless its host has had none of its flows delivered for a
//! while: then all that comes to this host is compared with what came before, in a short *span* after each mark. If
//! that has all been seen, nothing new has come. In spans also the packets are noted that hosts send of groups of which
//! nothing new came, and whether these say anything new. A span is an eighth of the time between marks, and begins only
//! where there is a doubt.
//!
//! All of this is asked of each host by itself, or is only used if nothing new came in the whole network. So it is the
//! same however the network is cut. [`crate::progress`] says what follows.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use catalogue::Transport;
use node::Packet;
use node::Saved;
use node::packet::flags;
use node::saved::{Damaged, Loader};
use run::{FlowEvent, Group, Groups, Plan};
use units::{Duration, Time};

use crate::first_time::FirstTime;
use crate::{Fork, HostSlot};

/// Packets of a group that a host has received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, node::State)]
#[state(counts)]
pub struct ReceivedPackets {
    /// Packets.
    pub packets: u64,
    /// Their bytes on the wire.
    pub bytes: u64,
    /// Those with payload.
    pub data_packets: u64,
    /// The payload, what was sent again included.
    pub payload_bytes: u64,
}

/// How far a host is from doubting that a group moves.
#[derive(Clone, Copy, Default, node::Saved)]
struct Ear {
    /// Payload by the last mark.
    payload_bytes: u64,
    /// Marks in a row by which payload came and no flow was delivered.
    marks: u8,
    /// In the present span, or the last: payload came, and some of it was new.
    heard: bool,
    heard_new: bool,
}

/// Marks after the last delivery at which a host begins to compare payload with what came before.
const DOUBT: u8 = 2;

/// Packets of a host that are described in each span: describing one takes about a microsecond.
const DESCRIBED: u8 = 8;

/// Packets of a group that hosts sent in a span.
#[derive(Clone, Debug, Default, PartialEq, Eq, node::Saved)]
pub struct Sent {
    /// Packets.
    pub packets: u64,
    /// Those with payload that was in no span before.
    pub new_packets: u64,
    /// The hosts that sent them.
    pub hosts: BTreeSet<u32>,
    /// The first packets of each host, by priority class and kind, as the transport calls it.
    pub kinds: BTreeMap<(u8, String), u64>,
}

/// A span: when it began, and by group what was sent.
pub(crate) type Span = (Time, Vec<Sent>);

/// The pulse of a part.
#[derive(node::Saved)]
pub(crate) struct Pulse {
    #[state(built("settings"))]
    groups: Arc<Groups>,
    /// How many there are.
    #[state(built("settings"))]
    pub count: usize,
    #[state(built("settings"))]
    every: Duration,
    mark_at: Time,
    /// When it looks up next: at a mark or at the end of a span.
    pub look_at: Time,
    /// Whether there is a span now.
    pub listens: bool,
    /// By host, and there by group.
    pub came: Vec<ReceivedPackets>,
    ears: Vec<Ear>,
    /// By host: how many of its records have been looked at.
    records: Vec<usize>,
    /// By group: the mark by which something new came last.
    pub new_at: Vec<Time>,
    /// By group: whether nothing new came by the last mark.
    quiet: Vec<bool>,
    /// What came in spans, and what was sent in them.
    heard: FirstTime,
    said: FirstTime,
    #[state(built("settings"))]
    transports: Vec<Transport>,
    span: Span,
    /// By host, and there by group, how many packets were described in this span.
    described: Vec<u8>,
    /// The last span that is over.
    pub last: Span,
}

impl Pulse {
    /// Of a part without hosts.
    pub fn new(plan: &Plan) -> Pulse {
        let (groups, transports) = (plan.groups.clone(), plan.transports.clone());
        let count = groups.all().len();
        let every = every(plan);
        Pulse {
            groups,
            count,
            every,
            mark_at: Time::ZERO + every,
            look_at: Time::ZERO + every,
            listens: false,
            came: Vec::new(),
            ears: Vec::new(),
            records: Vec::new(),
            new_at: vec![Time::ZERO; count],
            quiet: vec![false; count],
            heard: FirstTime::new(plan),
            said: FirstTime::new(plan),
            transports,
            span: (Time::ZERO, Vec::new()),
            described: Vec::new(),
            last: (Time::ZERO, Vec::new()),
        }
    }

    /// There is one more host.
    pub fn add_host(&mut self) {
        self.came.extend(std::iter::repeat_n(ReceivedPackets::default(), self.count));
        self.ears.extend(std::iter::repeat_n(Ear::default(), self.count));
        self.described.extend(std::iter::repeat_n(0, self.count));
        self.records.push(0);
    }

    /// Reads over it what was saved of a run that had other groups. Of new groups nothing has come.
    pub fn load_fork(&mut self, from: &mut Loader<'_>, fork: Fork<'_>, hosts: usize) -> Result<(), Damaged> {
        let mut old = Pulse::new(fork.before);
        (0..hosts).for_each(|_| old.add_host());
        old.load(from)?;
        let was = |group: &Group| old.groups.all().iter().position(|of| of == group);
        let was: Vec<Option<usize>> = self.groups.all().iter().map(was).collect();
        for (group, was) in was.iter().enumerate().filter_map(|(group, was)| Some((group, (*was)?))) {
            (self.new_at[group], self.quiet[group]) = (old.new_at[was], old.quiet[was]);
            for (here, there) in (0..hosts).map(|host| (host * self.count + group, host * old.count + was)) {
                self.came[here] = old.came[there];
                self.ears[here] = old.ears[there];
                self.described[here] = old.described[there];
            }
        }
        let moved = |(at, sent): &Span| {
            let of = |was: &Option<usize>| was.and_then(|was| sent.get(was)).cloned().unwrap_or_default();
            (*at, if sent.is_empty() { Vec::new() } else { was.iter().map(of).collect() })
        };
        (self.span, self.last) = (moved(&old.span), moved(&old.last));
        (self.mark_at, self.look_at, self.listens) = (old.mark_at, old.look_at, old.listens);
        self.records = old.records;
        self.heard.take_over(old.heard);
        self.said.take_over(old.said);
        Ok(())
    }

    /// A packet has come to a host, by its place in the part.
    #[inline(always)]
    pub fn comes(&mut self, host: usize, packet: &Packet) {
        // Most runs have one group: nothing is looked up for it.
        let group = match self.count {
            1 if usize::from(packet.transport) < self.transports.len() => 0,
            _ => match self.groups.of(packet.transport, packet.flow) {
                Some(group) => group,
                None => return,
            },
        };
        let came = &mut self.came[host * self.count + group];
        came.packets += 1;
        came.bytes += u64::from(packet.wire_bytes);
        if packet.payload_bytes > 0 && !packet.has(flags::TRIMMED) {
            came.data_packets += 1;
            came.payload_bytes += u64::from(packet.payload_bytes);
        }
        if self.listens {
            self.hear(host * self.count + group, packet);
        }
    }

    #[inline(never)]
    fn hear(&mut self, ear: usize, packet: &Packet) {
        let ear = &mut self.ears[ear];
        if ear.marks >= DOUBT && packet.payload_bytes > 0 && !packet.has(flags::TRIMMED) {
            ear.heard = true;
            ear.heard_new |= self.heard.note(packet) > 0;
        }
    }

    /// A host, by its place in the part, sends a packet. Called while it listens.
    #[inline(never)]
    pub fn sends(&mut self, host: usize, packet: &Packet) {
        let Some(group) = self.groups.of(packet.transport, packet.flow).filter(|&group| self.quiet[group]) else {
            return;
        };
        let sent = &mut self.span.1[group];
        sent.packets += 1;
        sent.new_packets += u64::from(self.said.note(packet) > 0);
        let described = &mut self.described[host * self.count + group];
        if *described < DESCRIBED {
            *described += 1;
            sent.hosts.insert(packet.src.0);
            let says = self.transports[usize::from(packet.transport)].as_scheme().headers().says(packet);
            let kind = says.split([' ', ',']).next().unwrap_or_default().to_owned();
            *sent.kinds.entry((packet.class, kind)).or_default() += 1;
        }
    }

    /// Everything before `now` has happened, which is [`Pulse::look_at`] or later: looks up, perhaps more than once.
    #[cold]
    pub fn look(&mut self, now: Time, hosts: &[HostSlot]) {
        while self.look_at <= now {
            if self.listens {
                self.listens = false;
                self.look_at = self.mark_at;
                std::mem::swap(&mut self.last, &mut self.span);
                continue;
            }
            self.mark(hosts);
            // Up to now nothing has happened since. Of marks by which nothing has, the last stands for all.
            let idle = now.since(self.mark_at).ps() / self.every.ps();
            self.mark_at += self.every * idle.max(1);
            self.look_at = self.mark_at;
            if idle <= 1 {
                self.listen(self.mark_at - self.every);
            }
        }
    }

    fn mark(&mut self, hosts: &[HostSlot]) {
        self.quiet.fill(true);
        for (host, slot) in hosts.iter().enumerate() {
            let ears = &mut self.ears[host * self.count..][..self.count];
            let records = &slot.host.records;
            for record in &records[self.records[host].min(records.len())..] {
                if let FlowEvent::Delivered { transport, .. } = record.fate
                    && let Some(group) = self.groups.of(transport, record.flow)
                {
                    ears[group].marks = 0;
                    self.quiet[group] = false;
                }
            }
            self.records[host] = records.len();
            for (group, (ear, came)) in ears.iter_mut().zip(&self.came[host * self.count..]).enumerate() {
                if came.payload_bytes != ear.payload_bytes {
                    // What came outside of the span is taken for new.
                    self.quiet[group] &= ear.heard && !ear.heard_new;
                    ear.marks = ear.marks.saturating_add(1);
                }
                *ear = Ear { payload_bytes: came.payload_bytes, marks: ear.marks, ..Ear::default() };
            }
        }
        for (new_at, _) in self.new_at.iter_mut().zip(&self.quiet).filter(|of| !of.1) {
            *new_at = self.mark_at;
        }
    }

    /// Whether something new has come of a group since the last mark, as far as is known without a span.
    pub fn moves(&self, group: usize) -> bool {
        let of_group = self.ears.iter().zip(&self.came).skip(group).step_by(self.count);
        of_group.into_iter().any(|(ear, came)| ear.marks < DOUBT && came.payload_bytes != ear.payload_bytes)
    }

    /// A span begins after a mark, if there is a doubt.
    fn listen(&mut self, mark: Time) {
        let doubt = |ear: &Ear| ear.marks >= DOUBT;
        if self.quiet.contains(&true) || self.ears.iter().any(doubt) {
            self.listens = true;
            self.look_at = mark + self.every / 8;
            self.span = (mark, vec![Sent::default(); self.count]);
            self.described.fill(0);
        }
    }
}

/// The time between marks.
pub(crate) fn every(plan: &Plan) -> Duration {
    plan.patience() / 2
}

/// How long a span lasts.
pub(crate) fn span(plan: &Plan) -> Duration {
    every(plan) / 8
}

/// Adds the span of other hosts. Whose span began earlier has sent nothing since.
pub(crate) fn join(spans: &mut Span, other: &Span) {
    if other.0 > spans.0 {
        *spans = (other.0, vec![Sent::default(); other.1.len()]);
    }
    if other.0 < spans.0 {
        return;
    }
    for (sum, sent) in spans.1.iter_mut().zip(&other.1) {
        sum.packets += sent.packets;
        sum.new_packets += sent.new_packets;
        sum.hosts.extend(&sent.hosts);
        for (kind, packets) in &sent.kinds {
            *sum.kinds.entry(kind.clone()).or_default() += packets;
        }
    }
}
