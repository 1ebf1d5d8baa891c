//! A worker: a thread that drives some of the nodes.
//!
//! It has an agenda of pending events: packets that come out of links, transmitters that become free, deadlines of
//! hosts. It processes an event as soon as the clock has reached its time and no other worker can send anything that
//! arrives before it ([`board`](crate::board)). The event keeps the time at which it was due. So a late wake-up neither
//! prolongs a transmission nor shifts a protocol's clocking, as with a real NIC, which has a clock of its own and some
//! packets in hand. The time at which an application learns of something is taken from the clock: a flow's completion
//! time includes all lateness.

use std::sync::Arc;

use driver::{Driver, Due, Probe, Stuck};
use scenario::Wait;
use units::{Duration, LinkId, Time};

use crate::attach::Attached;
use crate::board::{Board, Ended};
use crate::clock::{Away, Clock, Lateness, LinkLateness};
use crate::datagrams::Datagrams;
use crate::maze::{Counter, Desk};
use crate::results::Noted;
use crate::wires::Wires;

/// Events that a worker processes before it looks for packets from other workers.
const BURST: u32 = 32;

/// Events that are processed before the clock is read again. Their lateness leaves out the time that these events take,
/// about a microsecond.
const READ: u32 = 8;

/// How many turns in a row a worker finds nothing to do before it publishes that it rests.
const SPINS: u32 = 8;

/// How many turns in a row a worker waits for another one before it yields its core: the other may have none.
const YIELDS: u32 = 512;

/// The longest sleep: whatever goes wrong, the worker looks again.
const SLEEP_MAX: std::time::Duration = std::time::Duration::from_millis(50);

/// The longest sleep where other processes send: they can't wake this thread.
const SLEEP_FAR: std::time::Duration = std::time::Duration::from_micros(200);

/// It does not sleep if an event is due sooner than this: waking up takes about as long.
const SLEEP_MIN: std::time::Duration = std::time::Duration::from_micros(20);

/// The longest sleep of a worker with attached hosts or programs, where packets come that do not wake it.
const LOOK: std::time::Duration = std::time::Duration::from_micros(50);

/// A worker that is always busy writes arrived packets to the devices of attached hosts once in this many turns.
const FLUSH: u32 = 4;

/// A worker that is always busy checks once in this many turns whether captures are to be written.
const WRITE: u32 = 256;

/// Index of the lateness of arrivals from other workers, after one entry for each [`Due`].
pub(crate) const CROSSING: usize = 3;

/// A thread's nodes, and how late they are.
pub(crate) struct Worker<'a, P: Probe> {
    me: usize,
    pub driver: Driver<Wires<'a>, P>,
    clock: &'a Clock,
    board: &'a Board,
    wait: Wait,
    horizon: Time,
    /// The run ends when this many flows have ended in all workers.
    goal: u64,
    ended_flows: u64,
    /// When the event that it processed last was due.
    now: Time,
    /// Where hosts are attached, or programs send: up to then it has done all that was due, and frames and messages
    /// come in. Otherwise never.
    present: Time,
    /// What it has promised, and how much more makes a new promise worth while.
    promised: Time,
    step: Duration,
    /// All rested, and none can have sent anything that comes before this.
    quiet: Time,
    rests: bool,
    sleep_max: std::time::Duration,
    /// Turns, and those of them without anything to do since there was something.
    turns: u32,
    idle: u32,
    is_done: bool,
    /// By [`Due`], and of arrivals from other workers.
    pub lateness: [Lateness; CROSSING + 1],
    /// By receiving end.
    of_links: Vec<LinkLateness>,
    /// Times that the clock was set back here.
    slips: u64,
    /// For how long it had no core, if it polls.
    away: Duration,
    /// Processes that are lost, as bits.
    dead: u64,
    /// Looks now and then at whether anything can still come of this part, and how often it has.
    stuck: Stuck,
    looks: usize,
}

/// What a worker waits for.
enum Waits {
    /// For nothing: there may be more to do.
    No,
    /// For the clock to come to this.
    Clock(Time),
    /// For other workers.
    Others,
}

impl<'a, P: Probe> Worker<'a, P> {
    pub fn new(
        me: usize,
        driver: Driver<Wires<'a>, P>,
        board: &'a Board,
        crosses: impl Fn(LinkId) -> bool,
        step: Duration,
        goal: u64,
    ) -> Worker<'a, P> {
        let (plan, clock) = (driver.links.carrier.plan, driver.links.carrier.clock);
        let attached = driver.links.carrier.attached.is_some();
        let of_links =
            driver.links.link_rxs.iter().map(|link_rx| LinkLateness::of(crosses(LinkId(link_rx.link)))).collect();
        Worker {
            me,
            driver,
            clock,
            board,
            wait: plan.scenario.live.wait,
            horizon: plan.horizon,
            goal,
            ended_flows: 0,
            now: Time::ZERO,
            present: if attached { Time::ZERO } else { Time::MAX },
            promised: Time::ZERO,
            step,
            quiet: Time::ZERO,
            sleep_max: if board.processes() > 1 { SLEEP_FAR } else { SLEEP_MAX },
            rests: false,
            turns: 0,
            idle: 0,
            is_done: false,
            lateness: Default::default(),
            of_links,
            slips: 0,
            away: Duration::ZERO,
            dead: 0,
            stuck: Stuck::new(plan),
            looks: 0,
        }
    }

    /// Programs may send messages from its hosts.
    pub fn open(&mut self, desk: Arc<dyn Desk>) {
        let hosts = self.driver.hosts.iter().map(|slot| slot.host.id());
        let all = self.driver.links.carrier.plan.fabric.hosts;
        self.driver.links.carrier.counter = Some(Box::new(Counter::new(desk, self.me, all, hosts)));
        self.present = Time::ZERO;
    }

    /// Its number among all.
    pub fn number(&self) -> usize {
        self.me
    }

    /// What it has in common with others.
    pub fn shared(&self) -> (&'a Clock, &'a Board) {
        (self.clock, self.board)
    }

    /// The run is over: its nodes, and how late they were.
    pub fn take_apart(self) -> (Driver<Wires<'a>, P>, Noted) {
        let Worker { driver, lateness, of_links, slips, away, .. } = self;
        let of_links = driver.links.link_rxs.iter().map(|link_rx| LinkId(link_rx.link)).zip(of_links).collect();
        (driver, Noted { lateness, of_links, slips, away })
    }

    /// Runs until the run is over.
    pub fn live(&mut self) {
        let alone = self.board.workers() == 1;
        let away = Away::begin();
        self.driver.links.carrier.counter.iter().for_each(|counter| counter.begin());
        while !self.board.is_over() {
            let limit = if alone { Time::MAX } else { self.board.limit(self.me).max(self.quiet) };
            if self.board.dead() != self.dead {
                self.bury();
            }
            if !alone && self.driver.links.carrier.has_mail() {
                self.stir();
                Wires::take_in(&mut self.driver.links);
            }
            self.take_outside(limit);
            let present = self.present;
            let look_at = self.stuck.next_at();
            // A run of attached hosts never looks, and may have nothing due.
            if look_at < Time::MAX && self.driver.links.agenda.first().0.min(limit) >= look_at {
                self.look();
            }
            let waits = self.act_until(limit);
            if !alone {
                self.promise(self.driver.links.agenda.first().0.min(limit).min(present));
            }
            self.turns = self.turns.wrapping_add(1);
            if present < Time::MAX && (!matches!(waits, Waits::No) || self.turns.is_multiple_of(FLUSH)) {
                self.give_frames();
            }
            if self.driver.links.carrier.captures.is_some() {
                self.write_captures(&waits);
            }
            match waits {
                Waits::No => self.idle = 0,
                Waits::Clock(at) if present < Time::MAX => self.wait_for_outside(at, present),
                Waits::Others if present < self.horizon => self.wait_for_outside(self.horizon, present),
                Waits::Clock(at) => self.wait_for_clock(at),
                Waits::Others => self.wait_for_others(limit),
            }
        }
        if self.wait == Wait::Poll {
            self.away = away.so_far();
        }
    }

    /// All that is due before [`Stuck::next_at`] has been done, and nothing since.
    #[cold]
    fn look(&mut self) {
        let at = self.stuck.next_at();
        // Whatever a program sends may come any time.
        let stuck = self.stuck.look_at_part(self.driver.links.carrier.plan, &self.driver);
        self.looks += 1;
        if stuck && self.driver.links.carrier.counter.is_none() && self.board.add_stuck(self.looks) {
            self.board.stop(Ended::Stuck, at, Duration::ZERO);
        }
    }

    /// Processes are lost: their nodes have failed for this worker, before anything that it has not promised to leave.
    #[cold]
    fn bury(&mut self) {
        self.dead = self.board.dead();
        self.stir();
        let (link_rxs, link_txs, routes) = self.driver.links.carrier.cut_off(self.dead);
        let at = self.now.max(if self.promised == Time::MAX { self.horizon } else { self.promised });
        self.driver.fail(at, &link_rxs, &link_txs, &routes);
        self.now = at;
    }

    /// Frames of attached hosts' devices and messages of programs enter the network at this worker's present.
    #[inline]
    fn take_outside(&mut self, limit: Time) {
        if self.present == Time::MAX {
            return;
        }
        let is_held_up = self.driver.links.carrier.is_held_up();
        if !is_held_up {
            Attached::read_devices(&mut self.driver, self.clock);
            self.driver.links.carrier.counter.iter_mut().for_each(|counter| counter.read_mail(self.clock));
        }
        let due = self.driver.links.agenda.first().0;
        let present = self.clock.now().min(limit).min(due).max(self.now).max(self.promised);
        self.present = present;
        self.driver.links.carrier.counter.iter().for_each(|counter| counter.ring(present));
        if is_held_up || present >= self.horizon {
            return;
        }
        let rested = self.rests;
        if rested {
            self.rests = false;
            self.board.stir(self.me);
        }
        let messages = Counter::take_in(&mut self.driver, present);
        if Attached::let_in(&mut self.driver, present) || messages {
            self.now = present;
            self.idle = 0;
            Datagrams::read_sent(&mut self.driver.links);
        } else if rested {
            self.rest();
        }
    }

    /// Writes the packets that have arrived for attached hosts to their devices.
    fn give_frames(&mut self) {
        if let Some(attached) = &mut self.driver.links.carrier.attached {
            attached.flush();
        }
    }

    /// What has been captured goes to its files from time to time, at first when there is nothing to do.
    #[cold]
    fn write_captures(&mut self, waits: &Waits) {
        let Wires { captures, plan, .. } = &mut self.driver.links.carrier;
        if let Some(captures) = captures
            && (!matches!(waits, Waits::No) || self.turns.is_multiple_of(WRITE))
        {
            captures.write_after(plan, self.clock.machine());
        }
    }

    /// Nothing is due before `at`, or before other workers go on, unless a device or a program has something.
    fn wait_for_outside(&mut self, at: Time, present: Time) {
        self.idle = self.idle.saturating_add(1);
        let alone = self.board.workers() == 1;
        if !alone && self.idle > SPINS {
            self.rest_at(present);
            if let Some(quiet) = self.board.quiet_until() {
                self.quiet = self.quiet.max(self.board.heard(self.me, quiet));
            }
        }
        let datagrams = self.driver.links.carrier.datagrams.is_some();
        Datagrams::read_ready(&mut self.driver.links, std::time::Duration::ZERO);
        if self.wait == Wait::Sleep && self.idle > SPINS {
            // Neither other workers nor datagrams wake who waits for devices and programs.
            let most = if alone && !datagrams { SLEEP_MAX } else { LOOK };
            let alarm = self.driver.links.carrier.counter.as_ref().map_or(Time::MAX, |counter| counter.next_alarm());
            let span = self.clock.until(at.min(alarm)).min(most);
            match (&self.driver.links.carrier.attached, &self.driver.links.carrier.counter) {
                _ if span <= SLEEP_MIN => {}
                (Some(attached), None) => attached.wait(span),
                // A program wakes who sleeps here, but not who waits for a device.
                (Some(attached), Some(_)) => attached.wait(span.min(LOOK)),
                (None, Some(counter)) if !counter.has_mail() => std::thread::park_timeout(span),
                (None, _) => {}
            }
        }
        std::hint::spin_loop();
    }

    /// It will do nothing more that is due before `at`.
    #[inline]
    fn promise(&mut self, at: Time) {
        if at > self.promised && !self.driver.links.carrier.is_held_up() {
            self.promised = at;
            self.board.promise(self.me, at);
        }
    }

    /// Processes events that are due before `limit` and whose time the clock has reached.
    #[inline]
    fn act_until(&mut self, limit: Time) -> Waits {
        let bound = limit.min(self.horizon);
        let mut wall = None;
        for turn in 0..BURST {
            if self.driver.links.carrier.is_held_up() {
                return Waits::Others;
            }
            let (due, source) = self.driver.links.agenda.first();
            if due >= bound {
                return Waits::Others;
            }
            if due >= self.stuck.next_at() {
                return Waits::No;
            }
            if turn % READ == 0 || wall.is_none_or(|wall| wall < due) {
                wall = self.clock.come_to(due);
            }
            let Some(wall) = wall else { return Waits::Clock(due) };
            self.stir();
            self.act(due, source, wall);
            if due.since(self.promised) > self.step && self.board.workers() > 1 {
                self.promise(self.driver.links.agenda.first().0.min(limit).min(self.present));
            }
        }
        Waits::No
    }

    /// Does what was due at `due`.
    #[inline]
    fn act(&mut self, due: Time, source: usize, wall: Time) {
        let stood = self.clock.forgive(due, wall);
        self.slips += u64::from(stood > Duration::ZERO);
        self.now = self.now.max(due);
        let kind = self.driver.act(self.now, source);
        let late = wall.since(due);
        self.lateness[kind as usize].note(late);
        if kind == Due::Arrival {
            let of_link = &mut self.of_links[source - 1];
            of_link.note(late, stood);
            if of_link.crosses {
                self.lateness[CROSSING].note(late);
            }
        }
        Datagrams::read_sent(&mut self.driver.links);
        let ended = self.driver.links.carrier.ended_flows;
        if ended != self.ended_flows {
            let more = ended - std::mem::replace(&mut self.ended_flows, ended);
            let end = if self.clock.is_real() { self.clock.told_at(self.now) } else { self.now };
            if self.board.add_ended(more, end) >= self.goal {
                self.board.stop(Ended::Goal, end, late.saturating_sub(stood));
            }
        }
    }

    /// It is about to do something.
    #[inline]
    fn stir(&mut self) {
        self.idle = 0;
        if self.rests {
            self.rests = false;
            self.board.stir(self.me);
        }
    }

    /// It has nothing to do for now, and says so, unless it has packets that could not be sent.
    fn rest(&mut self) {
        let carrier = &mut self.driver.links.carrier;
        if !self.rests && self.board.workers() > 1 && !carrier.is_held_up() {
            self.rests = true;
            // What comes from outside comes later than all that has been promised.
            let outside = if self.present < Time::MAX { self.promised } else { Time::MAX };
            self.board.rest(self.me, self.driver.links.agenda.first().0.min(outside), &carrier.sent, &carrier.taken);
        }
    }

    /// The same, though frames may come from `present` on.
    fn rest_at(&mut self, present: Time) {
        if self.rests {
            self.rests = false;
            self.board.stir(self.me);
        }
        self.promise(present);
        self.rest();
    }

    /// Nothing is due before `at`, unless something comes.
    fn wait_for_clock(&mut self, at: Time) {
        self.idle = self.idle.saturating_add(1);
        if self.idle > SPINS {
            self.rest();
        }
        if self.driver.links.carrier.datagrams.is_some() {
            let span = if self.wait == Wait::Sleep { self.clock.until(at) } else { std::time::Duration::ZERO };
            return Datagrams::read_ready(&mut self.driver.links, span.min(SLEEP_MAX));
        }
        match self.wait {
            Wait::Poll => std::hint::spin_loop(),
            Wait::Sleep => {
                let span = self.clock.until(at).min(self.sleep_max);
                if span > SLEEP_MIN {
                    self.rest();
                    let carrier = &self.driver.links.carrier;
                    self.board.sleep(self.me, at, span, || !carrier.has_mail());
                }
            }
        }
    }

    /// Nothing can be done before another worker has gone on; or the run is over.
    fn wait_for_others(&mut self, limit: Time) {
        self.idle = self.idle.saturating_add(1);
        let next = self.driver.links.agenda.first().0;
        if self.board.workers() == 1 {
            return self.end_alone(next);
        }
        if next >= self.horizon && limit >= self.horizon && !std::mem::replace(&mut self.is_done, true) {
            self.promise(Time::MAX);
            // While it rested, something could still have come from outside; now nothing can.
            self.stir();
            if self.board.add_done() {
                self.end_at_horizon();
            }
        }
        if self.idle > SPINS {
            self.rest();
            match self.board.quiet_until() {
                Some(Time::MAX) if self.present == Time::MAX => {
                    self.board.stop(Ended::Quiet, self.clock.now(), Duration::ZERO)
                }
                Some(at) if at >= self.horizon => self.end_at_horizon(),
                Some(at) => self.wait_for_first(at),
                None if self.idle > YIELDS && self.wait == Wait::Poll => std::thread::yield_now(),
                None if self.wait == Wait::Sleep => std::thread::park_timeout(SLEEP_MIN),
                None => {}
            }
        }
        std::hint::spin_loop();
    }

    /// All rest, and `at` is when the first of them has something to do.
    fn wait_for_first(&mut self, at: Time) {
        let quiet = self.board.heard(self.me, at);
        if quiet > self.quiet {
            self.quiet = quiet;
        } else if self.wait == Wait::Sleep {
            let carrier = &self.driver.links.carrier;
            let span = self.clock.until(at).clamp(SLEEP_MIN, self.sleep_max);
            self.board.sleep(self.me, Time::MAX, span, || !carrier.has_mail());
        }
    }

    /// There is no other worker, and nothing is left to do.
    fn end_alone(&mut self, next: Time) {
        if self.driver.links.carrier.datagrams.is_some() {
            // What is in the sockets is not in the agenda.
            Datagrams::read_ready(&mut self.driver.links, SLEEP_MAX);
            if self.driver.links.agenda.first().0 < next {
                return;
            }
        }
        match next {
            Time::MAX if self.present == Time::MAX => {
                self.board.stop(Ended::Quiet, self.clock.now(), Duration::ZERO);
            }
            _ => self.end_at_horizon(),
        }
    }

    fn end_at_horizon(&self) {
        let late = if self.clock.is_real() { self.clock.now().since(self.horizon) } else { Duration::ZERO };
        self.board.stop(Ended::Horizon, self.horizon, late);
    }
}
