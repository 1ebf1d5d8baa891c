use std::collections::VecDeque;

use node::packet::flags;
use node::{Cx, EndpointParams, Event, FlowMap, FlowState, Message, Packet, Timers};
use units::{Duration, FlowId, HostId, Time};

use super::control::{Ack, Algorithm, Congestion, Control, Ecn, Phase, RateSample, Signal, Start};
use super::custom::contract::Sent;
use super::header::{Acknowledgement, Data, Header, WINDOW_SEGMENTS};
use super::plb::{Path, Plb};
use super::prr::Prr;
use super::rack::Rack;
use super::rate::Sampler;
use super::rtt::{Bounds, Rtt};
use super::scoreboard::{Progress, Scoreboard};

/// The sending half of a host's TCP.
///
/// Flows that may send wait in `ready` and take turns by packet. What a flow sends is decided when its turn comes.
#[derive(node::State)]
#[state(unit(self.settings.start.mss_bytes))]
#[state(first(walk.refuse_if(A::OWN, "a congestion control does not say what of its state moves")))]
#[state(first(walk.refuse_if(self.settings.plb.is_some(), "flows change their paths (plb)")))]
#[state(first(if A::DRAWS { walk.numbered("a congestion control draws by the number of its flow") }))]
pub(crate) struct Sender<A: Algorithm> {
    #[state(built("settings"))]
    algorithm: A,
    #[state(built("settings"))]
    settings: Settings,
    #[state(built("settings"))]
    site: EndpointParams,
    #[state(built("settings"))]
    ecn: Ecn,
    #[state(slots)]
    flows: FlowMap<Flow<A::Control>>,
    #[state(slots)]
    ready: VecDeque<u32>,
    #[state(slots)]
    retransmission: Timers,
    #[state(slots)]
    pacing: Timers,
    /// When a flow looks again for losses, or probes for a lost tail.
    #[state(slots)]
    loss: Timers,
    /// Those of controls of one's own ([`Algorithm::OWN`]).
    #[state(slots)]
    own: Timers,
    pub counts: Counts,
}

/// A sender's settings.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    pub start: Start,
    pub handshake: bool,
    pub rto: Bounds,
    pub class: u8,
    pub plb: Option<Plb>,
    pub reordering: u32,
    pub prr: bool,
    pub rack: bool,
    /// Whether a lost tail is probed for, and how long its acknowledgement may be delayed.
    pub tail_loss_probe: Option<Duration>,
}

/// What a sender counts.
#[derive(Clone, Copy, Debug, Default, node::State)]
#[state(counts)]
pub(crate) struct Counts {
    pub fast_retransmissions: u64,
    pub timeout_retransmissions: u64,
    pub timeouts: u64,
    pub recoveries: u64,
    pub tail_loss_probes: u64,
    pub ecn_reductions: u64,
    pub path_changes: u64,
    pub syn_retransmissions: u64,
    pub malformed: u64,
}

#[derive(node::State)]
#[state(come(self.board.una() * walk.unit))]
#[state(first(walk.refuse_if(self.handshake_state != Handshake::Done, "a connection is being opened")))]
struct Flow<C> {
    dst: HostId,
    bytes: u64,
    segments: u64,
    board: Scoreboard,
    control: C,
    path: Path,
    sampler: Option<Box<Sampler>>,
    rtt: Rtt,
    phase: Phase,
    prr: Option<Prr>,
    rack: Option<Box<Rack>>,
    /// When a segment is due that is not lost yet.
    reorder_due: Option<Time>,
    /// A tail loss probe is to be sent.
    probing: bool,
    /// SND.NXT when recovery began: it ends when all before is acknowledged (RFC 6675's RecoveryPoint).
    #[state(passed)]
    recovery_point: u64,
    /// Until the cumulative acknowledgement has passed this, no rescue retransmission (RFC 6675's RescueRxt).
    #[state(passed)]
    rescue_point: u64,
    /// SND.NXT when the window was last reduced: congestion of earlier data has been answered.
    #[state(passed)]
    reduced_at: u64,
    /// SND.NXT when the window was last full.
    #[state(passed)]
    full_at: u64,
    /// The segment that timed out last, until another does or until it is acknowledged.
    #[state(passed)]
    timed_out: Option<u64>,
    #[state(skip("refused unless it is done"))]
    handshake_state: Handshake,
    /// The first segment is sent again regardless of the pipe (RFC 6675 section 5, step 4.3).
    urgent: bool,
    /// The next new segment reports that the window was reduced.
    cwr: bool,
    /// It waits in `ready`.
    queued: bool,
    /// When its last packet left, and its length.
    #[state((past, _))]
    last: (Time, u16),
    #[state(count_of)]
    sent_packets: u64,
    #[state(count_of)]
    resent_packets: u64,
}

/// The handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, node::Saved)]
enum Handshake {
    /// A SYN is to be sent, and whether it is a retransmission.
    Due { again: bool },
    /// It was sent.
    Sent { at: Time, again: bool },
    /// Connected, or no handshake required.
    Done,
}

/// What a flow would send next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Handshake,
    New,
    Again(u64),
    Rescue(u64),
}

impl<A: Algorithm> Sender<A> {
    pub fn new(algorithm: A, settings: Settings, site: EndpointParams) -> Self {
        Sender {
            ecn: algorithm.ecn(),
            algorithm,
            settings,
            site,
            flows: FlowMap::default(),
            ready: VecDeque::new(),
            retransmission: Timers::default(),
            pacing: Timers::default(),
            loss: Timers::default(),
            own: Timers::default(),
            counts: Counts::default(),
        }
    }

    pub fn start(&mut self, cx: &mut Cx<'_>, message: &Message) {
        let virtual_serialisation = message.virtual_serialisation;
        let (flow, now, seed) = (message.flow, cx.now, seed::<A>(cx));
        let start = Start { flow, now, seed, virtual_serialisation, ..self.settings.start };
        let flow = Flow {
            dst: message.dst,
            bytes: message.bytes,
            segments: message.bytes.div_ceil(self.settings.start.mss_bytes),
            board: Scoreboard::new(self.settings.reordering, self.settings.rack),
            control: self.algorithm.start(start),
            path: Path::default(),
            sampler: self.algorithm.samples_rate().then(|| Box::new(Sampler::new())),
            rtt: Rtt::new(self.site.data_rtt),
            phase: Phase::Open,
            prr: None,
            rack: self.settings.rack.then(Box::default),
            reorder_due: None,
            probing: false,
            recovery_point: 0,
            rescue_point: 0,
            reduced_at: 0,
            full_at: 0,
            timed_out: None,
            handshake_state: if self.settings.handshake { Handshake::Due { again: false } } else { Handshake::Done },
            urgent: false,
            cwr: false,
            queued: true,
            last: (Time::ZERO, 0),
            sent_packets: 0,
            resent_packets: 0,
        };
        let slot = self.flows.insert(message.flow, flow);
        self.ready.push_back(slot);
        self.poll_user_control(cx, slot);
    }

    /// The next packet of the flow whose turn it is.
    pub fn poll_transmit(&mut self, cx: &mut Cx<'_>) -> Option<Packet> {
        let now = cx.now;
        while let Some(slot) = self.ready.pop_front() {
            let (id, flow) = self.flows.get_mut(slot).expect("a flow that ends leaves no turn behind");
            flow.queued = false;
            let Some(next) = flow.next(self.settings.start.mss_bytes) else { continue };
            let packet = flow.packet(id, next, now, &self.settings, &self.site, self.ecn);
            match next {
                Next::Handshake => self.counts.syn_retransmissions += u64::from(flow.hello_again()),
                Next::New => {}
                _ if flow.phase == Phase::Loss => self.counts.timeout_retransmissions += 1,
                _ => self.counts.fast_retransmissions += 1,
            }
            // The first outstanding segment's timer counts from its retransmission, however long that had to wait.
            if self.retransmission.get(slot).is_none() || next == Next::Again(flow.board.una()) {
                self.retransmission.set(slot, now + flow.rtt.timeout(&self.settings.rto));
            }
            flow.last = (now, packet.wire_bytes);
            if next == Next::New && self.settings.rack {
                self.arm(slot, now);
            }
            let (_, flow) = self.flows.get_mut(slot).expect("it has just sent");
            if A::OWN && next != Next::Handshake {
                flow.tell_sent(now, next, packet.wire_bytes, self.settings.start.mss_bytes);
            }
            if self.poll_user_control(cx, slot) {
                self.queue(slot, now);
            }
            return Some(packet);
        }
        None
    }

    /// The connection that a flow has asked for is granted.
    pub fn granted(&mut self, cx: &mut Cx<'_>, packet: &Packet) {
        let Some(slot) = self.flows.slot(packet.flow) else { return }; // completed since
        let (_, flow) = self.flows.get_mut(slot).expect("just found");
        let Handshake::Sent { at, again } = flow.handshake_state else { return };
        flow.handshake_state = Handshake::Done;
        self.retransmission.clear(slot);
        if again {
            // RFC 5681 section 3.1: after a lost SYN the initial window is one segment.
            let seed = seed::<A>(cx);
            let (id, now, window_bytes) = (packet.flow, cx.now, self.settings.start.mss_bytes);
            let start = Start { flow: id, now, window_bytes, seed, ..self.settings.start };
            flow.control = self.algorithm.start(start);
        } else {
            flow.rtt.sample(cx.now - at);
            flow.control.on_opened(cx.now, cx.now - at);
        }
        if self.poll_user_control(cx, slot) {
            self.queue(slot, cx.now);
        }
    }

    /// An acknowledgement has come in.
    pub fn receive(&mut self, cx: &mut Cx<'_>, packet: &Packet, ack: &Acknowledgement) {
        let Some(slot) = self.flows.slot(packet.flow) else { return }; // completed since
        let (_, flow) = self.flows.get_mut(slot).expect("just found");
        let upto = segment_at(ack.sequence, flow.bytes, self.settings.start.mss_bytes);
        let Some(upto) = upto.filter(|&upto| upto <= flow.board.next()) else {
            self.counts.malformed += 1;
            return;
        };
        self.acknowledge(cx, slot, upto, ack, packet.hops);
    }

    /// What a flow has: in flight is RFC 6675's pipe, in whole segments.
    pub fn state(&self, flow: FlowId, say: &mut FlowState) {
        let Some(Flow { control, board, .. }) = self.flows.of(flow) else { return };
        say.window_bytes(control.window_bytes());
        if let Some(rate) = control.pacing() {
            say.rate(rate);
        }
        say.outstanding_bytes(board.pipe() * self.settings.start.mss_bytes);
        control.state(say);
    }

    /// The earliest deadline.
    pub fn deadline(&self) -> Option<Time> {
        let timers = [&self.retransmission, &self.pacing, &self.loss, &self.own];
        timers.into_iter().filter_map(Timers::next).min()
    }

    /// Deadlines have come.
    pub fn wake(&mut self, cx: &mut Cx<'_>) {
        let now = cx.now;
        while let Some(slot) = self.own.expire(now) {
            let (_, flow) = self.flows.get_mut(slot).expect("a flow that ends disarms its timers");
            flow.control.on_timer(now);
            if self.poll_user_control(cx, slot) {
                self.queue(slot, now);
            }
        }
        while let Some(slot) = self.pacing.expire(now) {
            self.queue(slot, now);
        }
        while let Some(slot) = self.loss.expire(now) {
            self.look(cx, slot);
        }
        while let Some(slot) = self.retransmission.expire(now) {
            let (_, flow) = self.flows.get_mut(slot).expect("a flow that ends disarms its timers");
            if self.pacing.get(slot).is_some() && flow.board.head_lost() && !flow.board.head_resent() {
                // The segment has not left: its packets are further apart than the timeout.
                self.retransmission.set(slot, now + flow.rtt.timeout(&self.settings.rto));
                continue;
            }
            self.counts.timeouts += 1;
            flow.time_out(now, self.settings.start.mss_bytes);
            if let Some(plb) = &self.settings.plb {
                flow.path.on_timeout(plb, now);
                self.counts.path_changes += 1;
            }
            self.loss.clear(slot);
            if self.poll_user_control(cx, slot) {
                self.queue(slot, now);
            }
        }
    }

    fn acknowledge(&mut self, cx: &mut Cx<'_>, slot: u32, upto: u64, ack: &Acknowledgement, hops: u8) {
        let mss = self.settings.start.mss_bytes;
        let (id, flow) = self.flows.get_mut(slot).expect("the caller has found it");
        let (before, una_before, pipe_before) = (flow.phase, flow.board.una(), flow.board.pipe());
        let blocks = ack.blocks.iter().filter(|block| block.count > 0);
        let blocks = blocks.map(|block| {
            let first = upto + u64::from(block.first);
            (first, first + u64::from(block.count))
        });
        let mut progress = flow.board.acknowledge(upto, blocks);
        let una = flow.board.una();
        let rtt = progress.rtt(cx.now);
        if let Some(rtt) = rtt {
            flow.rtt.sample(rtt);
        }
        flow.find_lost(cx.now, &mut progress);
        if una == flow.segments {
            let (sent_packets, resent_packets) = (flow.sent_packets, flow.resent_packets);
            cx.events.push(Event::Completed { flow: id, sent_packets, resent_packets });
            self.remove(slot);
            return;
        }
        if before != Phase::Open && una >= flow.recovery_point {
            (flow.phase, flow.prr) = (Phase::Open, None);
        }
        if let Some(prr) = &mut flow.prr {
            prr.on_ack(progress.delivered, flow.board.pipe(), progress.acked > 0 && progress.lost == 0);
        }
        let marked = ack.ece;
        let rate = flow.sample(cx.now, una_before, &progress, mss);
        flow.control.on_ack(&Ack {
            now: cx.now,
            acked_bytes: progress.acked * mss,
            delivered_bytes: progress.delivered * mss,
            una: una * mss,
            next: (flow.board.next() * mss).min(flow.bytes),
            marked,
            rtt,
            delay: progress.delay(cx.now),
            virtual_delay: ack.virtual_delay(),
            rate,
            in_flight_bytes: flow.board.pipe() * mss,
            in_flight_before_bytes: pipe_before * mss,
            lost_bytes: progress.lost * mss,
            srtt: flow.rtt.smoothed(),
            hops,
            limited: una_before < flow.full_at,
            phase: before,
        });
        if let Some(plb) = &self.settings.plb {
            let acked = progress.acked * mss;
            let changes = flow.path.on_ack(plb, cx.now, acked, marked, una * mss, flow.board.next() * mss);
            self.counts.path_changes += u64::from(changes);
        }
        if flow.control.holds_back() {
            flow.limit();
        }
        // Once in a window: a mark counts if something sent after the last reduction is acknowledged.
        if marked && self.ecn != Ecn::Off && flow.phase == Phase::Open && una > flow.reduced_at {
            self.counts.ecn_reductions += 1;
            flow.reduce(cx.now, Signal::Mark, mss);
        }
        let enters = flow.phase == Phase::Open && flow.board.head_lost();
        if enters {
            self.counts.recoveries += 1;
            flow.enter_recovery(cx.now, self.ecn, mss, self.settings.prr.then_some(progress.delivered));
        }
        // RFC 6298 (5.2) and (5.3); and RFC 6675 section 6 lets a retransmission restart the timer, as this one does.
        if una == flow.board.next() {
            self.retransmission.clear(slot);
        } else if progress.acked > 0 || enters {
            self.retransmission.set(slot, cx.now + flow.rtt.timeout(&self.settings.rto));
        }
        if self.settings.rack {
            self.arm(slot, cx.now);
        }
        if self.poll_user_control(cx, slot) {
            self.queue(slot, cx.now);
        }
    }

    /// Sets the timer of RACK-TLP: for the next segment that is due, or else for a tail loss probe (RFC 8985 section
    /// 7.2).
    fn arm(&mut self, slot: u32, now: Time) {
        let (_, flow) = self.flows.get_mut(slot).expect("the caller has found it");
        if let Some(due) = flow.reorder_due {
            return self.loss.set(slot, due);
        }
        let (Some(rack), Some(ack_delay)) = (&flow.rack, self.settings.tail_loss_probe) else {
            return self.loss.clear(slot);
        };
        let (una, next) = (flow.board.una(), flow.board.next());
        if next == una || flow.phase != Phase::Open || rack.probed.is_some() || flow.board.sacked_segments() > 0 {
            return self.loss.clear(slot);
        }
        let delayed = if next == una + 1 { ack_delay } else { Duration::ZERO };
        let probe = now + flow.rtt.smoothed() * 2 + delayed;
        self.loss.set(slot, self.retransmission.get(slot).map_or(probe, |timeout| timeout.min(probe)));
    }

    /// The timer of RACK-TLP has come.
    fn look(&mut self, cx: &mut Cx<'_>, slot: u32) {
        let mss = self.settings.start.mss_bytes;
        let (_, flow) = self.flows.get_mut(slot).expect("a flow that ends disarms its timers");
        if flow.reorder_due.is_some() {
            let mut progress = Progress::default();
            flow.find_lost(cx.now, &mut progress);
            if flow.phase == Phase::Open && flow.board.head_lost() {
                self.counts.recoveries += 1;
                flow.enter_recovery(cx.now, self.ecn, mss, self.settings.prr.then_some(0));
            }
            self.arm(slot, cx.now);
        } else {
            flow.probing = true;
            self.counts.tail_loss_probes += 1;
            self.retransmission.set(slot, cx.now + flow.rtt.timeout(&self.settings.rto));
        }
        if self.poll_user_control(cx, slot) {
            self.queue(slot, cx.now);
        }
    }

    /// After an event of a flow whose control is a user's own: its timer is set, or the flow ends if it has failed.
    /// Whether it goes on.
    #[inline]
    fn poll_user_control(&mut self, cx: &mut Cx<'_>, slot: u32) -> bool {
        if !A::OWN {
            return true;
        }
        let (flow, of) = self.flows.get_mut(slot).expect("the caller has found it");
        if let Some(reason) = of.control.failed() {
            cx.events.push(Event::Failed { flow, reason });
            self.remove(slot);
            return false;
        }
        match of.control.timer() {
            Some(at) => self.own.set(slot, at),
            None => self.own.clear(slot),
        }
        true
    }

    /// Gives a flow a turn if it has something to send, when its rate allows.
    fn queue(&mut self, slot: u32, now: Time) {
        let mss = self.settings.start.mss_bytes;
        let (_, flow) = self.flows.get_mut(slot).expect("the caller has found it");
        if flow.queued || flow.next(mss).is_none() {
            return;
        }
        match flow.due() {
            Some(due) if due > now => self.pacing.set(slot, due),
            _ => {
                self.pacing.clear(slot);
                flow.queued = true;
                self.ready.push_back(slot);
            }
        }
    }

    fn remove(&mut self, slot: u32) {
        self.retransmission.clear(slot);
        self.pacing.clear(slot);
        self.loss.clear(slot);
        self.own.clear(slot);
        let flow = self.flows.remove(slot);
        // Rare: a retransmission that was about to be sent has become needless.
        if flow.is_some_and(|flow| flow.queued) {
            self.ready.retain(|&ready| ready != slot);
        }
    }
}

/// The seed of a flow's own random stream, if its control draws from one.
fn seed<A: Algorithm>(cx: &mut Cx<'_>) -> u64 {
    if A::DRAWS { cx.random.bits() } else { 0 }
}

/// The segment that begins at `sequence`, where one does.
fn segment_at(sequence: u64, bytes: u64, mss: u64) -> Option<u64> {
    if sequence == bytes {
        return Some(bytes.div_ceil(mss));
    }
    (sequence < bytes && sequence.is_multiple_of(mss)).then(|| sequence / mss)
}

impl<C: Control> Flow<C> {
    /// What it would send, if it may send now: NextSeg(), RFC 6675 section 4.
    fn next(&mut self, mss: u64) -> Option<Next> {
        match self.handshake_state {
            Handshake::Due { .. } => return Some(Next::Handshake),
            Handshake::Sent { .. } => return None,
            Handshake::Done => {}
        }
        let (una, next, pipe) = (self.board.una(), self.board.next(), self.board.pipe());
        if self.probing {
            // RFC 8985 section 7.3: whatever the window.
            let fits = next < self.segments.min(una + WINDOW_SEGMENTS);
            return if fits { Some(Next::New) } else { self.board.last_unsacked().map(Next::Rescue) };
        }
        let window = self.prr.map_or(self.control.window_bytes(), |prr| prr.cwnd() * mss);
        if pipe > 0 && (pipe + 1) * mss > window && !self.urgent {
            self.full_at = next;
            return None;
        }
        if let Some(lost) = self.board.next_lost() {
            return Some(Next::Again(lost));
        }
        if next < self.segments {
            return (next < una + WINDOW_SEGMENTS).then_some(Next::New);
        }
        if self.phase != Phase::Recovery {
            self.limit();
            return None;
        }
        if let Some(hole) = self.board.next_hole() {
            return Some(Next::Again(hole));
        }
        if una > self.rescue_point { self.board.last_unsacked().map(Next::Rescue) } else { None }
    }

    /// The delivery rate, if it is measured. The control learns of what is lost.
    fn sample(&mut self, now: Time, una_before: u64, progress: &Progress, mss: u64) -> Option<RateSample> {
        let sampler = self.sampler.as_mut()?;
        for segment in (progress.lost_in.0..progress.lost_in.1).filter(|&segment| self.board.is_missing(segment)) {
            self.control.on_lost(&sampler.lose(segment - una_before, segment * mss, mss));
        }
        sampler.acknowledge(now, una_before, progress, mss)
    }

    /// Finds what is lost by now, where that goes by time.
    fn find_lost(&mut self, now: Time, progress: &mut Progress) {
        let Some(rack) = &mut self.rack else { return };
        rack.on_ack(now, progress, self.board.una());
        let from = self.board.lost_below();
        let recovering = self.phase != Phase::Open;
        let (lost, due) = rack.detect(now, &mut self.board, recovering, self.rtt.smoothed());
        progress.lost += lost;
        progress.lost_in = (from, self.board.lost_below());
        self.reorder_due = due;
    }

    /// It could send more than it does, so that rates tell nothing for now.
    fn limit(&mut self) {
        if let Some(sampler) = &mut self.sampler {
            sampler.limit(self.board.pipe());
        }
    }

    /// When its rate lets the next packet go, if it has one.
    fn due(&self) -> Option<Time> {
        let (at, bytes) = self.last;
        self.control.pacing().map(|rate| at.saturating_add(rate.transmit(u64::from(bytes))))
    }

    /// Builds what [`Flow::next`] chose and notes it as sent.
    fn packet(
        &mut self,
        id: FlowId,
        next: Next,
        now: Time,
        settings: &Settings,
        site: &EndpointParams,
        ecn: Ecn,
    ) -> Packet {
        let mut cwr = false;
        let segment = match next {
            Next::Handshake => {
                self.handshake_state =
                    Handshake::Sent { at: now, again: self.handshake_state == Handshake::Due { again: true } };
                None
            }
            Next::New => {
                let segment = self.board.next();
                self.board.send(now);
                cwr = std::mem::take(&mut self.cwr) && ecn == Ecn::Classic;
                Some(segment)
            }
            Next::Again(segment) => {
                self.urgent = false;
                self.board.resend(segment, now);
                self.rack.iter_mut().for_each(|rack| rack.resend(segment, now));
                Some(segment)
            }
            Next::Rescue(segment) => {
                self.rescue_point = self.recovery_point;
                self.board.rescue(segment, now);
                Some(segment)
            }
        };
        if std::mem::take(&mut self.probing) {
            self.rack.iter_mut().for_each(|rack| rack.probed = Some(self.board.next()));
        }
        self.prr.iter_mut().for_each(Prr::send);
        let mut packet = if let Some(segment) = segment {
            if let Some(sampler) = &mut self.sampler {
                sampler.send(segment - self.board.una(), now, self.board.pipe());
            }
            let sequence = segment * settings.start.mss_bytes;
            let payload = (self.bytes - sequence).min(settings.start.mss_bytes) as u16;
            self.sent_packets += 1;
            self.resent_packets += u64::from(next != Next::New);
            let header = Header::Data(Data { sequence, bytes: self.bytes, cwr });
            site.data_packet(id, self.dst, header, payload)
        } else {
            site.control_packet(id, self.dst, Header::Syn { bytes: self.bytes })
        };
        packet.class = settings.class;
        // Neither a SYN nor a retransmission is ECN-capable (RFC 3168 sections 6.1.1 and 6.1.5).
        if ecn != Ecn::Off && next == Next::New {
            packet.flags = flags::ECT;
        }
        if self.path.label != 0 {
            packet.set_flow_label(self.path.label);
        }
        packet
    }

    /// Tells a control of one's own of a packet that has left.
    fn tell_sent(&mut self, now: Time, next: Next, packet_bytes: u16, mss: u64) {
        self.control.on_send(&Sent {
            now,
            packet_bytes: u64::from(packet_bytes),
            again: next != Next::New,
            in_flight_bytes: self.board.pipe() * mss,
            next: (self.board.next() * mss).min(self.bytes),
        });
    }

    fn hello_again(&self) -> bool {
        matches!(self.handshake_state, Handshake::Sent { again: true, .. })
    }

    /// RFC 6675 section 5, step 4. With PRR, what the acknowledgement has delivered that tells of the loss counts.
    fn enter_recovery(&mut self, now: Time, ecn: Ecn, mss: u64, prr: Option<u64>) {
        self.phase = Phase::Recovery;
        if self.board.una() >= self.reduced_at || ecn == Ecn::Proportional {
            self.reduce(now, Signal::Loss, mss);
        }
        self.recovery_point = self.board.next();
        self.rescue_point = self.board.una() + 1;
        self.urgent = !self.board.head_resent();
        // A control that paces has its own way with a recovery.
        let outstanding = self.board.next() - self.board.una();
        let (missing, pipe) = (outstanding - self.board.sacked_segments(), self.board.pipe());
        let window = self.control.window_bytes() / mss;
        let prr = prr.filter(|_| self.control.pacing().is_none());
        self.prr = prr.map(|delivered| Prr::new(window, missing, delivered, pipe));
    }

    /// RFC 6298 (5.4) to (5.6), RFC 5681 section 3.1, RFC 6675 section 5.1.
    fn time_out(&mut self, now: Time, mss: u64) {
        self.rtt.back_off();
        if let Handshake::Sent { .. } = self.handshake_state {
            self.handshake_state = Handshake::Due { again: true };
            return;
        }
        let una = self.board.una();
        let again = self.timed_out.replace(una) == Some(una);
        self.reduce(now, Signal::Timeout { again }, mss);
        self.phase = Phase::Loss;
        self.urgent = false;
        self.recovery_point = self.board.next();
        (self.prr, self.probing, self.reorder_due) = (None, false, None);
        self.rack.iter_mut().for_each(|rack| rack.give_up());
        self.board.give_up();
    }

    fn reduce(&mut self, now: Time, signal: Signal, mss: u64) {
        let flight = (self.board.next() - self.board.una()) * mss;
        let flight_bytes = flight.min(self.control.window_bytes());
        self.control.on_congestion(&Congestion { now, signal, flight_bytes });
        self.reduced_at = self.board.next();
        self.cwr = true;
    }
}
