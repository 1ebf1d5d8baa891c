use std::collections::VecDeque;

use node::packet::flags;
use node::{Cx, EndpointParams, Event, FlowMap, Packet, Timers};
use units::{FlowId, HostId, Time};

use super::DelayedAck;
use super::control::Ecn;
use super::header::{Acknowledgement, Block, Data, Header, WINDOW_SEGMENTS};
use crate::finished::Finished;

/// The receiving half of a host's TCP: reassembly and acknowledgements.
#[derive(node::State)]
#[state(unit(self.mss))]
pub(crate) struct Receiver {
    #[state(built("settings"))]
    settings: Settings,
    #[state(built("settings"))]
    site: EndpointParams,
    mss: u64,
    #[state(slots)]
    flows: FlowMap<Flow>,
    finished: Finished,
    acks: VecDeque<Packet>,
    #[state(slots)]
    delayed: Timers,
    pub counts: Counts,
}

/// A receiver's settings.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    pub ecn: Ecn,
    pub delayed_ack: Option<DelayedAck>,
    pub ack_class: u8,
}

/// What a receiver counts.
#[derive(Clone, Copy, Debug, Default, node::State)]
#[state(counts)]
pub(crate) struct Counts {
    pub acks: u64,
    pub duplicates: u64,
    pub trimmed: u64,
    pub malformed: u64,
}

#[derive(node::State)]
struct Flow {
    src: HostId,
    bytes: u64,
    segments: u64,
    /// The first missing segment: RCV.NXT.
    #[state(sequence)]
    next: u64,
    /// Segments that have arrived beyond: disjoint runs `first..end`, the most recent first, as RFC 2018 section 4
    /// reports them.
    #[state(sequence)]
    ahead: Vec<(u64, u64)>,
    /// Number of segments that wait for their acknowledgement.
    owed: u32,
    /// The present value of ECE.
    echo: bool,
    /// Virtual queueing delay of the last packet, in nanoseconds, if it belonged to an AQ.
    virtual_delay_ns: Option<u32>,
}

impl Receiver {
    pub fn new(settings: Settings, site: EndpointParams) -> Receiver {
        Receiver {
            settings,
            mss: u64::from(site.payload_max()),
            site,
            flows: FlowMap::default(),
            finished: Finished::default(),
            acks: VecDeque::new(),
            delayed: Timers::default(),
            counts: Counts::default(),
        }
    }

    /// The next acknowledgement to send.
    #[inline]
    pub fn poll_transmit(&mut self) -> Option<Packet> {
        self.acks.pop_front()
    }

    /// The earliest deadline.
    pub fn deadline(&self) -> Option<Time> {
        self.delayed.next()
    }

    /// Deadlines have come.
    pub fn wake(&mut self, now: Time) {
        while let Some(slot) = self.delayed.expire(now) {
            self.acknowledge(slot);
        }
    }

    /// A packet that asks for a connection has come in.
    pub fn grant(&mut self, packet: &Packet) {
        if packet.has(flags::TRIMMED) {
            self.counts.trimmed += 1;
            return;
        }
        // Nothing is kept for it, so it may come as often as it likes.
        self.answer(packet.flow, packet.src, Header::SynAck);
    }

    /// A data packet has come in.
    pub fn receive(&mut self, cx: &mut Cx<'_>, packet: &Packet, data: Data) {
        if packet.has(flags::TRIMMED) {
            self.counts.trimmed += 1; // as good as lost: TCP knows no trimming
            return;
        }
        let left = data.bytes.saturating_sub(data.sequence);
        let fits = data.sequence.is_multiple_of(self.mss) && u64::from(packet.payload_bytes) == left.min(self.mss);
        if left == 0 || !fits {
            self.counts.malformed += 1;
            return;
        }
        let ce = packet.has(flags::CE);
        let slot = match self.flows.slot(packet.flow) {
            Some(slot) => slot,
            None if self.finished.knows(packet.flow) => {
                self.counts.duplicates += 1;
                let ece = ce && self.settings.ecn != Ecn::Off;
                let ack = Acknowledgement { sequence: data.bytes, ece, ..Acknowledgement::default() };
                self.answer(packet.flow, packet.src, Header::Ack(ack));
                return;
            }
            None => self.flows.insert(packet.flow, Flow::new(packet.src, data.bytes, self.mss)),
        };
        self.take(cx, slot, packet, data, ce);
    }

    fn take(&mut self, cx: &mut Cx<'_>, slot: u32, packet: &Packet, data: Data, ce: bool) {
        let (_, flow) = self.flows.get_mut(slot).expect("just found");
        let segment = data.sequence / self.mss;
        if data.bytes != flow.bytes || segment >= flow.next + WINDOW_SEGMENTS {
            self.counts.malformed += 1;
            return;
        }
        // RFC 8257 section 3.2: pending data is acknowledged with the old state, and the change at once.
        let turns = self.settings.ecn == Ecn::Proportional && ce != flow.echo;
        if turns && flow.owed > 0 {
            self.acknowledge(slot);
        }
        let (_, flow) = self.flows.get_mut(slot).expect("just found");
        flow.echo = match self.settings.ecn {
            Ecn::Off => false,
            Ecn::Proportional => ce,
            // RFC 3168 section 6.1.3: from a mark until the sender has responded.
            Ecn::Classic => ce || flow.echo && !data.cwr,
        };
        flow.virtual_delay_ns = (packet.tags() != [0, 0]).then_some(packet.virtual_delay_ns);
        // RFC 5681 section 4.2: at once if a segment is missing, fills a hole or arrives again.
        let holes = !flow.ahead.is_empty();
        let again = !flow.place(segment);
        self.counts.duplicates += u64::from(again);
        let at_once = turns || holes || again || !flow.ahead.is_empty();
        flow.owed += 1;
        if flow.next == flow.segments {
            cx.events.push(Event::Delivered { flow: packet.flow });
            self.acknowledge(slot);
            self.flows.remove(slot);
            self.finished.add(packet.flow);
            return;
        }
        match self.settings.delayed_ack {
            Some(delay) if !at_once && flow.owed < delay.packets => {
                if self.delayed.get(slot).is_none() {
                    self.delayed.set(slot, cx.now + delay.timeout);
                }
            }
            _ => self.acknowledge(slot),
        }
    }

    /// Acknowledges what has arrived of a flow.
    fn acknowledge(&mut self, slot: u32) {
        let Some((id, flow)) = self.flows.get_mut(slot) else { return };
        flow.owed = 0;
        let mut blocks = [Block::default(); 3];
        for (block, &(first, end)) in blocks.iter_mut().zip(&flow.ahead) {
            // Both fit: no segment beyond the window is accepted.
            *block = Block { first: (first - flow.next) as u16, count: (end - first) as u16 };
        }
        let ack = Acknowledgement {
            sequence: (flow.next * self.mss).min(flow.bytes),
            blocks,
            ece: flow.echo,
            virtual_delay_ns: flow.virtual_delay_ns,
        };
        let src = flow.src;
        self.delayed.clear(slot);
        self.answer(id, src, Header::Ack(ack));
    }

    /// A flow has come whole in time that is skipped.
    pub fn came_again(&mut self, flow: FlowId) {
        self.finished.add(flow);
    }

    fn answer(&mut self, flow: FlowId, to: HostId, header: Header) {
        let mut packet = self.site.control_packet(flow, to, header);
        packet.class = self.settings.ack_class;
        self.acks.push_back(packet);
        self.counts.acks += 1;
    }
}

impl Flow {
    fn new(src: HostId, bytes: u64, mss: u64) -> Flow {
        Flow {
            src,
            bytes,
            segments: bytes.div_ceil(mss),
            next: 0,
            ahead: Vec::new(),
            owed: 0,
            echo: false,
            virtual_delay_ns: None,
        }
    }

    /// Inserts a segment; false if it has already arrived.
    #[inline]
    fn place(&mut self, segment: u64) -> bool {
        if segment == self.next {
            self.next += 1;
            if let Some(run) = self.ahead.iter().position(|run| run.0 == self.next) {
                self.next = self.ahead.remove(run).1;
            }
            return true;
        }
        if segment < self.next {
            return false;
        }
        if let Some(run) = self.ahead.iter().position(|run| run.0 <= segment && segment < run.1) {
            self.ahead[..=run].rotate_right(1);
            return false;
        }
        let (mut first, mut end) = (segment, segment + 1);
        self.ahead.retain(|run| {
            let touches = run.1 == first || run.0 == end;
            if touches {
                (first, end) = (first.min(run.0), end.max(run.1));
            }
            !touches
        });
        self.ahead.insert(0, (first, end));
        true
    }
}

#[cfg(test)]
mod tests;
