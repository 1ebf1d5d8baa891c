//! One connection at its sender: which packets are in the network, and which are to go again.

use std::collections::{BTreeSet, VecDeque};

use node::Message;
use units::{Duration, HostId, Stream, Time};

use super::header::{Ack, BITMAP};
use super::params::{Early, Params};
use super::paths::Paths;
use super::windows::Windows;

/// How often a packet goes again before it has timed out (Isekai's `early_retx_threshold`). On a dead path it would
/// otherwise never time out.
const EARLY_MAX: u32 = 16;

#[derive(node::State)]
#[state(first(let oldest = self.oldest().map_or(walk.now(), |(at, _)| at)))]
pub(super) struct Connection {
    pub dst: HostId,
    pub bytes: u64,
    pub packets: u32,
    /// The first packet without an acknowledgement (BPSN), and what is known of it and those after it.
    #[state(position)]
    pub una: u32,
    sent: VecDeque<Sent>,
    /// Packets to be sent again.
    #[state(anew((self.una..).zip(&self.sent).filter(|of| of.1.state == State::Lost).map(|of| of.0).collect()))]
    lost: BTreeSet<u32>,
    /// Departures in their order; some of these packets have arrived or left again since.
    #[state(each((time, sequence)))]
    order: VecDeque<(Time, u32)>,
    /// Packets without an acknowledgement (ORC), and those of them that were sent again and are in the network (ORRC).
    outstanding: u32,
    again: u32,
    pub windows: Windows,
    #[state(given(&oldest))]
    pub paths: Paths,
    /// RACK (RFC 8985, section 6.2): the latest departure among the packets that have arrived; and how long after its
    /// own departure a packet that left earlier counts as lost.
    #[state(if_any(time))]
    newest: Time,
    rack: Duration,
    /// When to probe for a lost tail.
    probe_at: Option<Time>,
    /// When anything was last heard.
    #[state(if_any(time))]
    heard_at: Time,
    /// When its last packet left.
    left_at: Option<Time>,
    #[state(count_of)]
    pub sent_packets: u64,
    #[state(count_of)]
    pub resent_packets: u64,
    /// Whether it waits for its turn to send.
    pub listed: bool,
}

/// A packet that was sent.
#[derive(Clone, Copy, node::State)]
struct Sent {
    state: State,
    #[state(when(self.state == State::InFlight, time, past))]
    at: Time,
    path: u8,
    /// How often it was sent, and how often it has timed out.
    times: u32,
    timeouts: u32,
    /// How often it went again before it had timed out.
    early: u32,
    acknowledged: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, node::State)]
enum State {
    InFlight,
    Lost,
    Arrived,
}

/// What there is to be done at a time, and what has come of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Found {
    pub timeouts: u64,
    pub early: u64,
    pub probes: u64,
    /// Bits of the paths whose packets have timed out.
    pub paths: u8,
}

impl Connection {
    pub fn new(message: &Message, params: &Params, random: &mut Stream) -> Connection {
        Connection {
            dst: message.dst,
            bytes: message.bytes,
            packets: params.packets(message.bytes),
            una: 0,
            sent: VecDeque::new(),
            lost: BTreeSet::new(),
            order: VecDeque::new(),
            outstanding: 0,
            again: 0,
            windows: Windows::new(params),
            paths: Paths::new(random),
            newest: Time::ZERO,
            rack: Duration::MAX,
            probe_at: None,
            heard_at: Time::ZERO,
            left_at: None,
            sent_packets: 0,
            resent_packets: 0,
            listed: false,
        }
    }

    /// The first packet that was never sent (NPSN).
    pub fn next(&self) -> u32 {
        self.una + self.sent.len() as u32
    }

    pub fn outstanding(&self) -> u32 {
        self.outstanding
    }

    pub fn lost(&self) -> usize {
        self.lost.len()
    }

    fn of(&mut self, psn: u32) -> Option<&mut Sent> {
        self.sent.get_mut(psn.checked_sub(self.una)? as usize)
    }

    /// The packet to be sent next, if windows allow it (section 9.1.2).
    pub fn following(&self, params: &Params) -> Option<u32> {
        let next = self.next();
        let (psn, of_nic) = match self.lost.first() {
            Some(&psn) => (psn, self.again),
            None => ((next < self.packets).then_some(next)?, self.outstanding),
        };
        let fits = psn - self.una < self.windows.packets(params) && of_nic < self.windows.nic_packets();
        fits.then_some(psn)
    }

    /// Until when pacing holds the next packet.
    pub fn held_until(&self, params: &Params) -> Option<Time> {
        Some(self.left_at? + self.windows.gap(params)?)
    }

    /// Notes that a packet leaves. Returns whether this is its first departure, and its path.
    pub fn leaves(&mut self, psn: u32, now: Time, params: &Params) -> (bool, u8) {
        let first = psn == self.next();
        let path = if first {
            let path = self.paths.next(&self.windows, params);
            self.sent.push_back(Sent {
                state: State::InFlight,
                at: now,
                path,
                times: 1,
                timeouts: 0,
                early: 0,
                acknowledged: false,
            });
            self.outstanding += 1;
            path
        } else {
            self.lost.remove(&psn);
            self.again += 1;
            self.resent_packets += 1;
            let Some(sent) = self.of(psn) else { return (false, 0) };
            *sent = Sent { state: State::InFlight, at: now, times: sent.times + 1, ..*sent };
            sent.path
        };
        self.order.push_back((now, psn));
        self.left_at = Some(now);
        self.sent_packets += 1;
        self.arm_probe(now, params);
        (first, path)
    }

    fn arm_probe(&mut self, now: Time, params: &Params) {
        let Early::RackTlp { probe, probe_min, .. } = params.early else { return };
        let after = (self.windows.rtt().mul_f64(probe) + params.ack_timeout).max(probe_min);
        self.probe_at = Some(now.saturating_add(after));
    }

    /// Takes in what an acknowledgement says has arrived. Without a receive buffer that is acknowledged too.
    pub fn take(&mut self, ack: &Ack, params: &Params) {
        let named = |bits: u64, from: u32| (0..64).filter(move |bit| bits >> bit & 1 == 1).map(move |bit| from + bit);
        if ack.base.checked_add(BITMAP).is_some() {
            let both = named(ack.received, ack.base).chain(named(ack.received_beyond, ack.base + 64));
            both.for_each(|psn| self.arrive(psn, params.nic.is_none()));
        }
        while self.una < ack.base {
            self.arrive(self.una, true);
            self.sent.pop_front();
            self.una += 1;
        }
    }

    fn arrive(&mut self, psn: u32, acknowledged: bool) {
        let Some(sent) = self.of(psn) else { return };
        let Sent { state, path, times, acknowledged: before, .. } = *sent;
        sent.state = State::Arrived;
        sent.acknowledged |= acknowledged;
        match state {
            State::Arrived => {}
            State::InFlight => self.again -= u32::from(times > 1),
            State::Lost => {
                self.lost.remove(&psn);
            }
        }
        if acknowledged && !before {
            self.outstanding -= 1;
            self.windows.acknowledged(usize::from(path));
        }
    }

    /// Marks a packet in the network to be sent again. Returns false if it is not in the network.
    pub fn lose(&mut self, psn: u32) -> bool {
        let Some(sent) = self.of(psn).filter(|sent| sent.state == State::InFlight) else { return false };
        sent.state = State::Lost;
        let again = sent.times > 1;
        self.again -= u32::from(again);
        self.lost.insert(psn);
        true
    }

    /// The same for a packet that has not timed out. Returns false if that has happened too often to this packet.
    fn lose_early(&mut self, psn: u32) -> bool {
        if self.of(psn).is_none_or(|sent| sent.early >= EARLY_MAX) || !self.lose(psn) {
            return false;
        }
        if let Some(sent) = self.of(psn) {
            sent.early += 1;
        }
        true
    }

    /// Whether packet `psn`, which departed at `at`, is still unanswered.
    fn waits(&mut self, at: Time, psn: u32) -> bool {
        self.of(psn).is_some_and(|sent| sent.state == State::InFlight && sent.at == at)
    }

    /// The oldest unanswered departure.
    fn oldest(&mut self) -> Option<(Time, u32)> {
        while let Some(&(at, psn)) = self.order.front() {
            if self.waits(at, psn) {
                return Some((at, psn));
            }
            self.order.pop_front();
        }
        None
    }

    /// An answer shows that a packet that left at `t1` has arrived.
    pub fn heard(&mut self, now: Time, t1: Time, params: &Params) {
        self.heard_at = now;
        self.arm_probe(now, params);
        let Early::RackTlp { window, .. } = params.early else { return };
        if t1 > self.newest {
            self.newest = t1;
            self.rack = now.since(t1) + self.windows.rtt().mul_f64(window);
        }
    }

    /// Marks packets as lost that have not arrived although a packet with a number higher by more than the threshold
    /// has, unless they were sent within the last round trip (section 9.1.4). Returns how many.
    pub fn overtaken(&mut self, ack: &Ack, now: Time, rtt: Duration, params: &Params) -> u64 {
        let Early::OooDistance(threshold) = params.early else { return 0 };
        let received = u128::from(ack.received_beyond) << 64 | u128::from(ack.received);
        let Some(highest) = received.checked_ilog2() else { return 0 };
        let mut found = 0;
        for offset in 0..highest.saturating_sub(threshold) {
            let psn = ack.base + offset;
            let recent = self.of(psn).is_none_or(|sent| sent.at + rtt >= now);
            if received >> offset & 1 == 0 && !recent && self.lose_early(psn) {
                found += 1;
            }
        }
        found
    }

    /// The time of the next timeout, RACK loss or probe, if no answer arrives before it.
    pub fn deadline(&mut self, params: &Params) -> Option<Time> {
        let Some((at, _)) = self.oldest() else { return self.is_stuck().then(|| self.heard_at + params.upper_timeout) };
        let timeout = at.saturating_add(self.windows.timeout(params));
        let rack = self.overtaken_first().map(|(at, _)| at.saturating_add(self.rack));
        [Some(timeout), rack, self.probe_at].into_iter().flatten().min()
    }

    /// The first packet without an acknowledgement has arrived: the upper layer is slow, or an acknowledgement was
    /// lost. The packets after it may be lost and wait for a window that opens only with that acknowledgement.
    fn is_stuck(&self) -> bool {
        self.sent.front().is_some_and(|first| first.state == State::Arrived)
    }

    /// The oldest departure that RACK may find lost: a packet that left later has arrived, acknowledgements would tell
    /// of this one (Isekai's scan limit), and it has not been tried too often.
    fn overtaken_first(&self) -> Option<(Time, u32)> {
        let mut earlier = self.order.iter().take_while(|(at, psn)| *at < self.newest && *psn < self.una + BITMAP);
        let waits = |&&(at, psn): &&(Time, u32)| {
            let sent = psn.checked_sub(self.una).and_then(|index| self.sent.get(index as usize));
            sent.is_some_and(|sent| sent.state == State::InFlight && sent.at == at && sent.early < EARLY_MAX)
        };
        earlier.find(waits).copied()
    }

    /// Handles the timeouts, RACK losses and probes that are due at `now`.
    pub fn expire(&mut self, now: Time, params: &Params) -> Found {
        let mut found = Found { early: self.scan(now), ..Found::default() };
        if self.oldest().is_none() && self.is_stuck() && self.heard_at + params.upper_timeout <= now {
            self.heard_at = now;
            self.lost.insert(self.una);
            self.sent[0].state = State::Lost;
            found.timeouts += 1;
            return found;
        }
        while let Some((at, psn)) = self.oldest() {
            if at.saturating_add(self.windows.timeout(params)) > now {
                break;
            }
            self.lose(psn);
            found.timeouts += 1;
            let Some(sent) = self.of(psn) else { break };
            sent.timeouts += 1;
            let (path, times) = (sent.path, sent.timeouts);
            self.windows.timed_out(usize::from(path), times, now, params);
            // A packet that left before the path changed says nothing about the new path.
            if at >= self.paths.changed_at(path) {
                found.paths |= 1 << path;
            }
        }
        if self.probe_at.is_some_and(|at| at <= now) {
            self.probe_at = None;
            // Probe with the first packet that has not arrived. If it is to go again anyway, it serves as the probe.
            let first =
                (self.una..self.next()).find(|psn| self.sent[(psn - self.una) as usize].state != State::Arrived);
            found.probes += first.map_or(0, |psn| u64::from(self.lose_early(psn)));
        }
        found
    }

    /// Marks the packets as lost that RACK finds lost. Returns how many.
    pub fn scan(&mut self, now: Time) -> u64 {
        let mut found = 0;
        while let Some((at, psn)) = self.overtaken_first() {
            if at.saturating_add(self.rack) > now {
                break;
            }
            found += u64::from(self.lose_early(psn));
        }
        found
    }
}
