//! The machine that others join, and that writes the result.

use std::cell::OnceCell;
use std::io;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::sync::Arc;
use std::time::Duration as Span;

use ::run::{Column, Data, Plan, Progress, Table};
use driver::{Cut, Probe};
use node::wire::{Malformed, Reader, Writer};
use scenario::Scenario;
use units::{Problem, Time};

use super::agreement::{self, Go, Intro, Setup, hear, refuse, say};
use super::clocks::{Offset, ROUNDS, measure};
use super::control::{Control, Denial, Guest};
use super::courier::{Seen, Status};
use super::ends::{self, Ending, Ends};
use super::token::nonce;
use super::trunk::Counts;
use super::{Membership, News};
use crate::RunResult;
use crate::board::{Board, PROCESSES_MAX};
use crate::clock::{Clock, instant_ns};
use crate::frame::Refusal;
use crate::mail::Mail;
use crate::maze::Exchange;
use crate::network::{self, Network, Outcome};
use crate::outside::{Outside, Share};
use crate::run::{End, conclude, goal_of, run_alone};
use crate::several::{self, Nodes};
use crate::worker::Worker;

/// How often it looks whether flows have ended everywhere, and who is still there.
const LOOK: Span = Span::from_millis(1);

/// How often it looks for machines that join, and how often it then asks whoever watches.
const WAIT: Span = Span::from_millis(10);

/// So long a guest may take to show the token, and so many may try at once.
const GUEST: Span = Span::from_secs(10);
const GUESTS: usize = 32;

/// So long it waits for a word of another machine.
pub(crate) const PATIENCE: Span = Span::from_secs(60);

/// All begin so long after all are ready: longer than a message takes.
const AHEAD: Span = Span::from_millis(50);

/// The key that errors of this module name.
const KEY: &str = "live.machines";

/// Another machine.
struct Member {
    control: Arc<Control>,
    /// Where its trunks end.
    address: SocketAddr,
    offset: Offset,
}

/// A machine's own measurements, sent at the end.
#[derive(Clone, Copy, Debug, Default)]
struct Facts {
    trip_ns: u64,
    error_ns: u64,
    drift_ns: u64,
    counts: Counts,
}

/// Runs a scenario on `machines` machines, of which this is the first: it listens at an address and waits for the
/// others, which [`join`](super::join). `tell` hears what happens until then, and `watch` is called about twenty times
/// a second: when it returns true the run stops there.
///
/// # Errors
/// Where the scenario can't be run so, a machine with the token is of another build or has another scenario, or one
/// goes before the run begins.
pub fn run_machines(
    scenario: &Scenario,
    machines: usize,
    listen: &str,
    member: &Membership<'_>,
    tell: impl FnMut(News),
    watch: impl FnMut(Progress) -> bool,
) -> Result<RunResult, Problem> {
    run_with([scenario; 2], machines, listen, member, None::<fn(&Arc<Exchange>) -> Result<(), Problem>>, tell, watch)
}

/// The same, where programs send messages. `opened` is told when they can. Of the two scenarios, the first is the one
/// that was given, and which another machine may have been given too; the second has a class for messages.
pub(crate) fn run_open(
    scenarios: [&Scenario; 2],
    machines: usize,
    listen: &str,
    member: &Membership<'_>,
    opened: impl FnOnce(&Arc<Exchange>) -> Result<(), Problem>,
    tell: impl FnMut(News),
    watch: impl FnMut(Progress) -> bool,
) -> Result<RunResult, Problem> {
    run_with(scenarios, machines, listen, member, Some(opened), tell, watch)
}

fn run_with(
    [given, scenario]: [&Scenario; 2],
    machines: usize,
    listen: &str,
    member: &Membership<'_>,
    opened: Option<impl FnOnce(&Arc<Exchange>) -> Result<(), Problem>>,
    mut tell: impl FnMut(News),
    mut watch: impl FnMut(Progress) -> bool,
) -> Result<RunResult, Problem> {
    let wrong = |error: String| Problem::new(KEY, error);
    let plan = several::plan(scenario, true, opened.is_some())?;
    let cut = Cut::new(&plan, plan.scenario.live.workers as usize * machines);
    if !(2..=PROCESSES_MAX).contains(&machines) || cut.parts() < machines {
        let most = Cut::new(&plan, PROCESSES_MAX).parts();
        let right =
            if most < 2 { "it is one group of nodes, for one machine".to_owned() } else { format!("2 to {most}") };
        return Err(wrong(format!("{machines} machines can't share the nodes of this fabric: {right}")));
    }
    let outside = Outside::open(&plan, &cut, Share::Machine(0, machines))?;
    let bind = |error: io::Error| {
        wrong(format!("can't listen at {listen}: {error}; name an address of this machine, such as 0.0.0.0:7770"))
    };
    let listener = TcpListener::bind(listen).map_err(bind)?;
    let at = listener.local_addr().map_err(bind)?;
    // One number for both lets one rule of a firewall do; any number is another for each.
    let port = if listen.ends_with(":0") { 0 } else { at.port() };
    let socket = UdpSocket::bind((at.ip(), port)).map_err(bind)?;
    let at_udp = socket.local_addr().map_err(bind)?;
    listener.set_nonblocking(true).map_err(bind)?;
    tell(News::Listening(at, machines - 1));
    let flows = plan.goal();
    let mut interrupted = || watch(Progress::by_flows(Time::ZERO, plan.horizon, 0, flows));
    let party = Party { machines, member, build: agreement::build(member.build), scenario: &given.to_toml() };
    let mut members = party.gather(&listener, &mut tell, &mut interrupted).map_err(wrong)?;
    drop(listener);
    let agreed = agree(&plan, opened.is_some(), &mut members, at_udp.port());
    let session = agreed.inspect_err(|why| part(&members, why)).map_err(wrong)?;
    let nodes = Nodes::new(&plan, &cut, machines);
    tell(News::Part(0, machines, nodes.count(0)));
    let first = First { plan: &plan, machines, token: member, session, members, nodes };
    let probes = outside.probes(&plan);
    let mut result = match probes().is_empty() {
        true => first.run(cut, outside, socket, opened, || (), &mut watch),
        false => first.run(cut, outside, socket, opened, probes, &mut watch),
    }
    .map_err(|error| error.downcast().unwrap_or_else(|error| wrong(error.to_string())))?;
    run_alone(&plan, &mut result, watch);
    Ok(result)
}

/// Tells all why it does not begin.
fn part(members: &[Member], why: &str) {
    members.iter().for_each(|member| refuse(&member.control, why));
}

/// The machines that are to join.
struct Party<'a> {
    machines: usize,
    member: &'a Membership<'a>,
    build: String,
    scenario: &'a str,
}

impl Party<'_> {
    /// Waits until all machines have joined.
    fn gather(
        &self,
        listener: &TcpListener,
        tell: &mut impl FnMut(News),
        interrupted: &mut impl FnMut() -> bool,
    ) -> Result<Vec<Member>, String> {
        let (mut guests, mut members): (Vec<(SocketAddr, u64, Guest)>, Vec<Member>) = (Vec::new(), Vec::new());
        while members.len() + 1 < self.machines {
            while let Ok((stream, from)) = listener.accept() {
                if guests.len() >= GUESTS {
                    tell(News::Denied(from, "too many try at once".to_owned()));
                } else if let Ok(guest) = Guest::new(stream) {
                    guests.push((from, instant_ns(), guest));
                }
            }
            for (from, since, mut guest) in std::mem::take(&mut guests) {
                let denied = match guest.listen() {
                    Ok(true) if members.len() + 1 < self.machines => match guest.judge(self.member.token) {
                        Ok(control) => {
                            if let Some(member) = self.admit(control, from, &members)? {
                                members.push(member);
                                tell(News::Joined(from, self.machines - 1 - members.len()));
                            }
                            continue;
                        }
                        Err(denial) => denial,
                    },
                    Ok(_) if instant_ns() - since < GUEST.as_nanos() as u64 => {
                        guests.push((from, since, guest));
                        continue;
                    }
                    Ok(_) => {
                        guest.send_away();
                        Denial::Silence
                    }
                    Err(denial) => {
                        guest.send_away();
                        denial
                    }
                };
                tell(News::Denied(from, denied.to_string()));
            }
            members.retain(|member| {
                let stays = !member.control.is_gone();
                if !stays {
                    tell(News::Left(member.address));
                }
                stays
            });
            if interrupted() {
                let why = format!("interrupted while {} of {} machines had joined", members.len() + 1, self.machines);
                part(&members, &why);
                return Err(why);
            }
            std::thread::sleep(WAIT);
        }
        Ok(members)
    }

    /// Hears what a machine is that has the token. None if it has gone again.
    fn admit(&self, control: Control, from: SocketAddr, members: &[Member]) -> Result<Option<Member>, String> {
        let Ok(words) = control.set_patience(GUEST).and_then(|()| hear(&control)) else { return Ok(None) };
        let checked = match Intro::parse(&words) {
            Ok(intro) => intro.check(&self.build, self.scenario).map(|()| intro.port),
            Err(error) => Err(error.to_string()),
        };
        match checked {
            Ok(port) => {
                let address = SocketAddr::new(from.ip(), port);
                let offset = Offset { ahead_ns: 0, trip_ns: 0 };
                Ok(Some(Member { control: Arc::new(control), address, offset }))
            }
            Err(why) => {
                refuse(&control, &why);
                part(members, &why);
                Err(format!("{from}: {why}"))
            }
        }
    }
}

/// All work the same out, clocks are measured, and everybody hears where the others are. Gives the run's session.
fn agree(plan: &Plan, programs: bool, members: &mut [Member], port: u16) -> Result<[u8; 32], String> {
    let named = |machine: usize, of: &Member, error: io::Error| {
        format!("machine {} at {}: {error}", machine + 1, of.address.ip())
    };
    let machines = members.len() as u32 + 1;
    for (machine, member) in members.iter().enumerate() {
        let setup = Setup { machine: machine as u32 + 1, machines, programs, scenario: plan.scenario.to_toml() };
        let control = &member.control;
        let told = control.set_patience(PATIENCE).and_then(|()| say(control, &setup.emit()));
        told.map_err(|error| named(machine, member, error))?;
    }
    let digest = agreement::digest(plan);
    for (machine, member) in members.iter_mut().enumerate() {
        let theirs = hear(&member.control).map_err(|error| named(machine, member, error))?;
        if theirs != digest {
            let why = "it has worked another network or other flows out of the same scenario: files that the scenario \
                       names differ";
            return Err(named(machine, member, io::Error::other(why)));
        }
        let offset = measure(&member.control, ROUNDS);
        member.offset = offset.map_err(|error| named(machine, member, error))?;
    }
    let session = nonce().map_err(|error| error.to_string())?;
    let go = Go { session, port, others: members.iter().map(|member| member.address).collect() };
    for (machine, member) in members.iter().enumerate() {
        say(&member.control, &go.emit()).map_err(|error| named(machine, member, error))?;
    }
    Ok(session)
}

struct First<'a> {
    plan: &'a Plan,
    machines: usize,
    token: &'a Membership<'a>,
    session: [u8; 32],
    members: Vec<Member>,
    nodes: Nodes,
}

impl First<'_> {
    fn run<P: Probe>(
        &self,
        cut: Cut,
        outside: Outside,
        socket: UdpSocket,
        opened: Option<impl FnOnce(&Arc<Exchange>) -> Result<(), Problem>>,
        mut probe: impl FnMut() -> P,
        watch: impl FnMut(Progress) -> bool,
    ) -> io::Result<RunResult> {
        let plan = self.plan;
        let (ends, far) = Ends::new(plan, &cut, 0, self.machines);
        let mut network = Network::far(plan, cut, 0, outside, (ends.regions.clone(), far));
        let exchange = opened.is_some().then(|| network.exchange(plan, "machine"));
        let _end = exchange.as_deref().map(End);
        let goal = goal_of(plan, exchange.is_some());
        let mut workers = network.workers(plan, goal, &mut probe);
        network::open(&mut workers, exchange.as_ref());
        let Some((clock, board)) = workers.first().map(Worker::shared) else {
            return Err(io::Error::other("there is nothing to do"));
        };
        let status = Status::default();
        let own = socket.local_addr()?;
        let addresses: Vec<SocketAddr> =
            std::iter::once(own).chain(self.members.iter().map(|member| member.address)).collect();
        let sleeps = plan.scenario.live.wait == scenario::Wait::Sleep;
        let courier = ends.courier(socket, &addresses, (self.token.token, &self.session), (board, &status, sleeps))?;
        std::thread::scope(|scope| {
            let _ending = Ending(&status);
            scope.spawn(|| courier.live());
            let mut begun = Ok(());
            let mail = OnceCell::new();
            let start = || {
                let open = |exchange| self.open(exchange, &mail, opened);
                let both = self.begin(clock, &status, &addresses);
                begun = both.and_then(|()| exchange.as_ref().map_or(Ok(()), open));
                if begun.is_err() {
                    board.quit();
                }
            };
            let mut ended_why = Vec::new();
            let mut gone = |machine| {
                let why = self.why_gone(board, mail.get(), machine);
                if let Some((exchange, why)) = exchange.as_ref().zip(why.as_ref()) {
                    exchange.lose_process(machine, why);
                    // It may live, and what it said was wrong.
                    self.members[machine - 1].control.shut();
                    ended_why.push(format!("machine {machine}: {why}"));
                }
                why.is_some()
            };
            network::drive(&mut workers, board, start, LOOK, several::look(plan, clock, board, goal, &mut gone, watch));
            begun?;
            let machine = clock.machine();
            let bury = || {
                let alive: Vec<usize> = (1..self.machines).filter(|machine| board.dead() >> machine & 1 == 0).collect();
                alive.into_iter().filter(|&machine| gone(machine)).for_each(|machine| board.bury(machine));
                false
            };
            let missing = ends::drain(&mut workers, board, &status, ends::others(0, self.machines), bury);
            mail.into_inner().iter_mut().for_each(Mail::finish);
            if let Some(exchange) = &exchange {
                // From here on no message is sent: tables are made of all flows that there are.
                exchange.end(exchange.why_over());
            }
            let mut result = self.end(clock, board, workers, missing, machine, &status, probe)?;
            result.info.warnings.extend(ended_why);
            Ok(result)
        })
    }

    /// Programs can send messages, of which the other machines hear from now on.
    fn open(
        &self,
        exchange: &Arc<Exchange>,
        mail: &OnceCell<Mail>,
        opened: Option<impl FnOnce(&Arc<Exchange>) -> Result<(), Problem>>,
    ) -> io::Result<()> {
        let connections = self.members.iter().map(|member| Some(member.control.notes()));
        let started = Mail::start(exchange, std::iter::once(None).chain(connections).collect())?;
        // It is the only one.
        let _ = mail.set(started);
        opened.map_or(Ok(()), |opened| opened(exchange).map_err(io::Error::other))
    }

    /// Why a machine does not take part any more, if that is so.
    fn why_gone(&self, board: &Board, mail: Option<&Mail>, machine: usize) -> Option<String> {
        let alive = |other: &usize| board.dead() >> other & 1 == 0;
        let deaf =
            |other: usize| board.suspects(other) >> machine & 1 != 0 || board.suspects(machine) >> other & 1 != 0;
        mail.and_then(|mail| mail.why_lost(machine))
            .or_else(|| self.members[machine - 1].control.is_gone().then(|| "it has ended".to_owned()))
            .or_else(|| {
                let other = (0..machine).filter(alive).find(|&other| deaf(other))?;
                Some(format!("it and machine {other} can't hear each other"))
            })
    }

    /// When all trunks work all begin.
    fn begin(&self, clock: &Clock, status: &Status, addresses: &[SocketAddr]) -> io::Result<()> {
        let controls = || self.members.iter().map(|member| &member.control);
        let up = ends::wait_until_up(status, ends::others(0, self.machines), addresses);
        let heard = up.map_err(|why| io::Error::other(format!("machine 0: {why}"))).and_then(|()| {
            (1..).zip(controls()).try_for_each(|(machine, control)| {
                let up = hear(control);
                up.map(drop).map_err(|error| io::Error::other(format!("machine {machine}: {error}")))
            })
        });
        if let Err(why) = heard {
            controls().for_each(|control| refuse(control, &why.to_string()));
            return Err(why);
        }
        let began = instant_ns() + AHEAD.as_nanos() as u64;
        for member in &self.members {
            say(&member.control, &member.offset.there(began).to_be_bytes())?;
        }
        clock.begin_at(began);
        Ok(())
    }

    /// All packets have been delivered: receives the others' results, and makes the tables.
    #[expect(clippy::too_many_arguments, reason = "all that a run has left")]
    fn end<P: Probe>(
        &self,
        clock: &Clock,
        board: &Board,
        mut workers: Vec<Worker<'_, P>>,
        missing: u64,
        machine: Span,
        status: &Status,
        mut probe: impl FnMut() -> P,
    ) -> io::Result<RunResult> {
        network::settle(&mut workers);
        let (ended, end, late) = board.outcome();
        let (mut others, mut lost) = (Vec::new(), Vec::new());
        let mut facts = vec![Facts::default(); self.machines];
        for (number, member) in (1..).zip(&self.members) {
            let control = &member.control;
            if (board.dead() | missing) >> number & 1 != 0 {
                refuse(control, "the first machine had lost this one, and went on without it");
                lost.push(number);
                continue;
            }
            let words = hear(control);
            let has = |node| self.nodes.is_in(node, number);
            let read = words.and_then(|words| {
                let mut from = Reader::new(&words, "words of a machine");
                let counts = read_counts(&mut from).map_err(io::Error::other)?;
                let other = several::listen(self.plan, has, probe(), &mut from).map_err(io::Error::other)?;
                Ok((counts, other, measure(control, ROUNDS)?))
            });
            match read {
                Ok((counts, other, after)) => {
                    others.push(other);
                    let before = member.offset;
                    let (error_ns, trip_ns) = (before.error_ns(), before.trip_ns);
                    let drift_ns = after.ahead_ns.abs_diff(before.ahead_ns);
                    facts[number] = Facts { trip_ns, error_ns, drift_ns, counts };
                }
                Err(_) => lost.push(number),
            }
        }
        for (number, member) in (1..).zip(&self.members) {
            if !lost.contains(&number) {
                // Who is gone now has said all.
                let _ = say(&member.control, b"over");
            }
        }
        let seen = status.seen();
        facts[0].counts = seen.counts;
        add_refused(&mut workers, &seen);
        let mut result = conclude(self.plan, clock, workers, others, Outcome { ended, end, late, machine });
        self.tell(&mut result, &facts, &seen, lost);
        Ok(result)
    }

    /// The result says what is of machines.
    fn tell(&self, result: &mut RunResult, facts: &[Facts], seen: &Seen, lost: Vec<usize>) {
        result.info.machines = self.machines - lost.len();
        result.info.clock_error_us = facts.iter().map(|of| of.error_ns).max().unwrap_or(0) as f64 / 1e3;
        result.tables.push(self.table(facts, &lost));
        result.info.warnings.extend(ends::slow_trunk(self.plan, seen));
        if !lost.is_empty() {
            several::tell_of_lost(self.plan, result, "machine", lost, &self.nodes);
        }
    }

    fn table(&self, facts: &[Facts], lost: &[usize]) -> Table {
        let names = (0..self.machines).map(|machine| match machine {
            0 => "0".to_owned(),
            _ => format!("{machine} at {}", self.members[machine - 1].address),
        });
        let names = Data::Names { index: (0..self.machines as u32).collect(), names: names.collect() };
        let each = |of: fn(&Facts) -> u64| Data::U64(facts.iter().map(of).collect());
        let nodes = Data::U64((0..self.machines).map(|machine| self.nodes.count(machine) as u64).collect());
        let lived = Data::Bool((0..self.machines).map(|machine| !lost.contains(&machine)).collect());
        Table {
            name: "machines",
            columns: vec![
                Column::new("machine", "", "its number, and where it joined from", names),
                Column::new("nodes", "", "hosts and switches that lived on it", nodes),
                Column::new("lived", "", "whether it was there to the end; what a lost one counted is 0", lived),
                Column::new(
                    "trip_ns",
                    "ns",
                    "shortest round trip on its control connection, by the machine's clock",
                    each(|of| of.trip_ns),
                ),
                Column::new(
                    "clock_error_ns",
                    "ns",
                    "its clock and that of the first machine agree to within this at the beginning",
                    each(|of| of.error_ns),
                ),
                Column::new(
                    "clock_drift_ns",
                    "ns",
                    "how far the two had gone apart by the end, to within the error of both measurements",
                    each(|of| of.drift_ns),
                ),
                Column::new("sent_datagrams", "", "datagrams that its trunks sent", each(|of| of.counts.sent)),
                Column::new("sent_bytes", "bytes", "bytes of these", each(|of| of.counts.sent_bytes)),
                Column::new("resent_datagrams", "", "those of them that were sent again", each(|of| of.counts.again)),
                Column::new(
                    "received_datagrams",
                    "",
                    "datagrams that came by its trunks",
                    each(|of| of.counts.received),
                ),
                Column::new(
                    "repeated_datagrams",
                    "",
                    "those of them that had come before",
                    each(|of| of.counts.repeated),
                ),
            ],
        }
    }
}

/// What was dropped at the socket stands beside what was dropped of what came by it.
pub(crate) fn add_refused<P: Probe>(workers: &mut [Worker<'_, P>], seen: &Seen) {
    if let Some(worker) = workers.first_mut() {
        let refused: &mut [u64; Refusal::ALL.len()] = &mut worker.driver.links.carrier.refused;
        refused.iter_mut().zip(seen.refused).for_each(|(sum, more)| *sum += more);
    }
}

/// What trunks have counted, as another machine says it.
pub(crate) fn write_counts(counts: &Counts, to: &mut Writer<'_>) {
    let Counts { sent, sent_bytes, again, received, repeated } = *counts;
    [sent, sent_bytes, again, received, repeated].into_iter().for_each(|count| to.u64(count));
}

fn read_counts(from: &mut Reader<'_>) -> Result<Counts, Malformed> {
    Ok(Counts {
        sent: from.u64()?,
        sent_bytes: from.u64()?,
        again: from.u64()?,
        received: from.u64()?,
        repeated: from.u64()?,
    })
}
