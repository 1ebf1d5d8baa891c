use std::sync::Arc;

use node::packet::flags;
use node::{Cx, EndpointParams, Event, FlowMap, FlowState, Message, Packet, Telemetry, Timers};
use units::{Duration, FlowId, HostId, Rate, Time};

use super::Window;
use super::control::{Ack, Algorithm, Control, Start};
use super::header::{Acknowledgement, Data, Header};
use super::outstanding::Outstanding;
use super::turns::{Turns, Waiting};

/// The sending half of a host's queue pairs.
///
/// Queue pairs that may send wait in `ready` and take turns packet by packet. Those that wait for their rate are in
/// `pacing`; those that flow control holds are in `held` until something is released; those with a full window are in
/// no list and return with an acknowledgement.
#[derive(node::State)]
#[state(unit(self.settings.mss))]
pub(crate) struct Sender<A: Algorithm> {
    #[state(built("settings"))]
    algorithm: A,
    #[state(built("settings"))]
    settings: Settings,
    #[state(built("settings"))]
    site: EndpointParams,
    #[state(built("settings"))]
    window: WindowBytes,
    #[state(slots)]
    pairs: FlowMap<QueuePair<A::Control>>,
    /// Number of queue pairs that have started.
    #[state(turn("number"))]
    begun: u64,
    ready: Waiting,
    #[state(slots)]
    held: Vec<u32>,
    /// The gate's epoch when a queue pair was last held.
    #[state(turn("epoch"))]
    held_in: u32,
    #[state(slots)]
    pacing: Timers,
    #[state(slots)]
    retransmission: Timers,
    #[state(slots)]
    control: Timers,
    pub counts: Counts,
}

/// A sender's settings.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub window: Window,
    pub turns: Turns,
    pub timeout: Timeout,
    /// Whether packets that arrived out of order are not sent again (IRN), and the number of packets by which others
    /// may be late.
    pub selective: Option<u64>,
    /// Message bytes in a full packet.
    pub mss: u64,
    /// Bytes of a packet's headers and telemetry.
    pub header_bytes: u16,
    pub class: u8,
}

/// Timeouts of outstanding packets.
#[derive(Clone, Debug)]
pub(crate) struct Timeout {
    /// While more than `few` packets are in flight, by the number of timeouts without progress. The last holds for all
    /// that follow.
    pub waits: Arc<[Duration]>,
    /// While at most `few` are.
    pub low: Duration,
    pub few: u64,
    /// After how many timeouts without progress the next one is the end.
    pub retries: Option<u32>,
}

/// What a sender counts.
#[derive(Clone, Copy, Debug, Default, node::State)]
#[state(counts)]
pub(crate) struct Counts {
    pub retransmissions: u64,
    pub timeouts: u64,
    pub given_up: u64,
    pub recoveries: u64,
    pub malformed: u64,
}

#[derive(node::State)]
struct QueuePair<C> {
    dst: HostId,
    /// Its number in the order of start, from 1 on.
    #[state(turn("number"))]
    number: u64,
    bytes: u64,
    outstanding: Outstanding,
    control: C,
    /// Whether it waits in `ready` or in `held`.
    queued: bool,
    /// When its last packet left, and its length.
    #[state((past, _))]
    last: (Time, u16),
    /// Start of the wait for an acknowledgement of what is outstanding.
    #[state(past)]
    silent_since: Time,
    /// Timeouts since anything new was acknowledged.
    fruitless: u32,
    #[state(count_of)]
    sent_packets: u64,
    #[state(count_of)]
    resent_packets: u64,
}

/// The window at any rate.
#[derive(Clone, Copy, Debug)]
struct WindowBytes {
    at_line: u64,
    line: Option<Rate>,
}

impl<A: Algorithm> Sender<A> {
    pub fn new(algorithm: A, settings: Settings, site: EndpointParams) -> Self {
        Sender {
            algorithm,
            window: WindowBytes::new(settings.window, &site),
            ready: Waiting::new(settings.turns),
            settings,
            site,
            pairs: FlowMap::default(),
            begun: 0,
            held: Vec::new(),
            held_in: 0,
            pacing: Timers::default(),
            retransmission: Timers::default(),
            control: Timers::default(),
            counts: Counts::default(),
        }
    }

    pub fn start(&mut self, now: Time, message: &Message) {
        let start = Start { now, line: self.site.nic_rate, rtt: self.site.data_rtt };
        self.begun += 1;
        let pair = QueuePair {
            dst: message.dst,
            number: self.begun,
            bytes: message.bytes,
            outstanding: Outstanding::new(message.bytes.div_ceil(self.settings.mss)),
            control: self.algorithm.start(start),
            queued: true,
            last: (Time::ZERO, 0),
            silent_since: now,
            fruitless: 0,
            sent_packets: 0,
            resent_packets: 0,
        };
        let slot = self.pairs.insert(message.flow, pair);
        self.ready.push(slot, self.begun);
    }

    /// The next packet of the queue pair whose turn it is.
    pub fn poll_transmit(&mut self, cx: &mut Cx<'_>) -> Option<Packet> {
        let now = cx.now;
        while let Some(slot) = self.pacing.expire(now) {
            self.queue(slot, now);
        }
        if cx.gate.epoch() != self.held_in {
            self.held_in = cx.gate.epoch();
            for slot in self.held.drain(..) {
                let (_, pair) = self.pairs.get(slot).expect("a queue pair that ends is not held");
                self.ready.push(slot, pair.number);
            }
        }
        while let Some(slot) = self.ready.pop() {
            let (flow, pair) = self.pairs.get_mut(slot).expect("a queue pair that ends leaves no turn behind");
            if !cx.gate.lets(flow, pair.dst, self.settings.class) {
                self.held.push(slot);
                continue;
            }
            pair.queued = false;
            let Some(number) = pair.next(self.window, self.settings.mss) else { continue };
            if pair.due(self.site.nic_rate) > now {
                self.pacing.set(slot, pair.due(self.site.nic_rate));
                continue;
            }
            let again = pair.outstanding.send(number);
            pair.sent_packets += 1;
            self.ready.sent(pair.number);
            pair.resent_packets += u64::from(again);
            self.counts.retransmissions += u64::from(again);
            let sequence = number * self.settings.mss;
            let payload = (pair.bytes - sequence).min(self.settings.mss) as u16;
            let header = Header::Data(Data { sequence, bytes: pair.bytes, sent: now });
            let mut packet = self.site.data_packet(flow, pair.dst, header, payload);
            packet.wire_bytes = payload + self.settings.header_bytes;
            packet.class = self.settings.class;
            packet.flags = if self.algorithm.cnp().is_some() { flags::ECT } else { 0 }
                | if A::TELEMETRY { flags::TELEMETRY } else { 0 };
            pair.last = (now, packet.wire_bytes);
            pair.control.on_sent(packet.wire_bytes);
            if self.retransmission.get(slot).is_none() || number == pair.outstanding.una() {
                pair.silent_since = now;
                self.retransmission.set(slot, now + self.settings.timeout.of(pair));
            }
            self.attend(slot, now);
            return Some(packet);
        }
        None
    }

    /// An acknowledgement has arrived, with the telemetry of the packet that it acknowledges.
    pub fn receive(&mut self, cx: &mut Cx<'_>, flow: FlowId, header: Header, telemetry: Option<&Telemetry>) {
        let Some(slot) = self.pairs.slot(flow) else { return }; // completed since
        let (flow, pair) = self.pairs.get_mut(slot).expect("just found");
        let (cnp, ack, nack) = match header {
            Header::Data(_) => return,
            Header::Cnp(_) => (true, None, false),
            Header::Ack(Acknowledgement { answer, cnp }) => (cnp, Some(answer), false),
            Header::Nack(Acknowledgement { answer, cnp }) => (cnp, Some(answer), true),
        };
        if cnp {
            pair.control.on_cnp(cx.now);
        }
        if let Some(answer) = ack {
            let mss = self.settings.mss;
            let upto = pair.number_at(answer.sequence, mss);
            let of = pair.number_at(answer.packet, mss);
            let (Some(upto), Some(of)) = (upto, of) else {
                self.counts.malformed += 1;
                return;
            };
            let advanced = pair.outstanding.acknowledge(upto, answer.sent);
            if pair.outstanding.done() {
                let (sent_packets, resent_packets) = (pair.sent_packets, pair.resent_packets);
                cx.events.push(Event::Completed { flow, sent_packets, resent_packets });
                self.remove(slot);
                return;
            }
            // An overtaken acknowledgement says nothing about packets that are missing now.
            if nack && upto == pair.outstanding.una() && of > upto {
                let begins = if let Some(reordering) = self.settings.selective {
                    pair.outstanding.sack(of, reordering)
                } else {
                    pair.outstanding.go_back();
                    true
                };
                self.counts.recoveries += u64::from(begins);
            }
            if advanced {
                (pair.silent_since, pair.fruitless) = (cx.now, 0);
                if pair.outstanding.any() {
                    self.retransmission.set(slot, cx.now + self.settings.timeout.of(pair));
                } else {
                    self.retransmission.clear(slot);
                }
            }
            pair.control.on_ack(&Ack {
                now: cx.now,
                una: pair.outstanding.una() * mss,
                next: (pair.outstanding.next() * mss).min(pair.bytes),
                rtt: cx.now.since(answer.sent),
                virtual_delay: answer.virtual_delay(),
                telemetry,
            });
        }
        self.attend(slot, cx.now);
    }

    /// What a queue pair has; without a window it has none.
    pub fn state(&self, flow: FlowId, say: &mut FlowState) {
        let Some(QueuePair { control, outstanding, .. }) = self.pairs.of(flow) else { return };
        let window = self.window.at(control.rate());
        if window < u64::MAX {
            say.window_bytes(window);
        }
        say.rate(control.rate());
        say.outstanding_bytes(outstanding.in_flight() * self.settings.mss);
        control.state(say);
    }

    /// The earliest deadline.
    pub fn deadline(&self) -> Option<Time> {
        // While others wait for the link, the next poll checks those that wait for their rates.
        let pacing = self.pacing.next().filter(|_| self.ready.is_empty());
        pacing.into_iter().chain(self.retransmission.next()).chain(self.control.next()).min()
    }

    /// Deadlines have come.
    pub fn wake(&mut self, cx: &mut Cx<'_>) {
        let now = cx.now;
        while let Some(slot) = self.control.expire(now) {
            let (_, pair) = self.pairs.get_mut(slot).expect("a queue pair that ends disarms its timers");
            pair.control.wake(now);
            self.attend(slot, now);
        }
        while let Some(slot) = self.pacing.expire(now) {
            self.queue(slot, now);
        }
        while let Some(slot) = self.retransmission.expire(now) {
            self.time_out(slot, cx);
        }
    }

    fn time_out(&mut self, slot: u32, cx: &mut Cx<'_>) {
        let now = cx.now;
        let (flow, pair) = self.pairs.get_mut(slot).expect("a queue pair that ends disarms its timers");
        let due = pair.silent_since + self.settings.timeout.of(pair);
        if due > now {
            self.retransmission.set(slot, due); // more is in flight than when it was set
            return;
        }
        pair.silent_since = now;
        if pair.outstanding.head_waits() {
            self.retransmission.set(slot, now + self.settings.timeout.of(pair));
            return; // what it would wait for has not left
        }
        self.counts.timeouts += 1;
        if self.settings.timeout.retries == Some(pair.fruitless) {
            self.counts.given_up += 1;
            cx.events.push(Event::Failed { flow, reason: Event::NO_ANSWER });
            self.remove(slot);
            return;
        }
        pair.fruitless = pair.fruitless.saturating_add(1);
        self.retransmission.set(slot, now + self.settings.timeout.of(pair));
        if self.settings.selective.is_some() {
            pair.outstanding.time_out(now);
        } else {
            pair.outstanding.go_back();
        }
        self.queue(slot, now);
    }

    /// Something has happened to a queue pair: its rate or its turn may have changed.
    fn attend(&mut self, slot: u32, now: Time) {
        let (_, pair) = self.pairs.get_mut(slot).expect("the caller has found it");
        match pair.control.deadline() {
            Some(at) => self.control.set(slot, at),
            None => self.control.clear(slot),
        }
        self.queue(slot, now);
    }

    /// Queues a queue pair for its turn, if it has something to send, for when its rate allows.
    fn queue(&mut self, slot: u32, now: Time) {
        let (_, pair) = self.pairs.get_mut(slot).expect("the caller has found it");
        if pair.queued || pair.next(self.window, self.settings.mss).is_none() {
            return;
        }
        let due = pair.due(self.site.nic_rate);
        if due > now {
            self.pacing.set(slot, due);
        } else {
            self.pacing.clear(slot);
            pair.queued = true;
            self.ready.push(slot, pair.number);
        }
    }

    fn remove(&mut self, slot: u32) {
        self.pacing.clear(slot);
        self.retransmission.clear(slot);
        self.control.clear(slot);
        let pair = self.pairs.remove(slot);
        // Rare: a retransmission that was about to be sent has become needless.
        if let Some(pair) = pair.filter(|pair| pair.queued) {
            self.ready.remove(slot, pair.number);
            self.held.retain(|&held| held != slot);
        }
    }
}

impl<C: Control> QueuePair<C> {
    /// The packet that it would send next, if it may.
    fn next(&mut self, window: WindowBytes, mss: u64) -> Option<u64> {
        // Retransmissions are inside the window already.
        if let Some(lost) = self.outstanding.lost() {
            return Some(lost);
        }
        let open = self.outstanding.in_flight() * mss < window.at(self.control.rate());
        self.outstanding.following().filter(|_| open)
    }

    /// When its rate allows the next packet. At line rate the link itself paces.
    fn due(&self, line: Rate) -> Time {
        let (rate, (at, bytes)) = (self.control.rate(), self.last);
        if rate >= line { Time::ZERO } else { at.saturating_add(rate.transmit(u64::from(bytes))) }
    }

    /// The packet that begins at `offset`, or the end, if it has been sent.
    fn number_at(&self, offset: u64, mss: u64) -> Option<u64> {
        let number = if offset == self.bytes { offset.div_ceil(mss) } else { offset / mss };
        let begins = offset == self.bytes || offset.is_multiple_of(mss);
        (begins && number <= self.outstanding.sent()).then_some(number)
    }
}

impl Timeout {
    fn of<C>(&self, pair: &QueuePair<C>) -> Duration {
        if self.few > 0 && pair.outstanding.in_flight() <= self.few {
            return self.low;
        }
        self.waits[(pair.fruitless as usize).min(self.waits.len() - 1)]
    }
}

impl WindowBytes {
    fn new(window: Window, site: &EndpointParams) -> WindowBytes {
        let products = |bdps: f64| ((site.bdp_bytes() as f64 * bdps) as u64).max(1);
        match window {
            Window::Unlimited => WindowBytes { at_line: u64::MAX, line: None },
            Window::Fixed { bdps } => WindowBytes { at_line: products(bdps), line: None },
            Window::Variable { bdps } => WindowBytes { at_line: products(bdps), line: Some(site.nic_rate) },
        }
    }

    #[inline]
    fn at(self, rate: Rate) -> u64 {
        match self.line {
            Some(line) if rate < line => {
                let bytes = u128::from(self.at_line) * u128::from(rate.bps()) / u128::from(line.bps());
                (bytes as u64).max(1)
            }
            _ => self.at_line,
        }
    }
}
