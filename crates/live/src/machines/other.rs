//! Every machine but the first.

use std::cell::OnceCell;
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs, UdpSocket};
use std::sync::Arc;
use std::time::Duration as Span;

use ::run::{Plan, Progress};
use driver::{Cut, Probe};
use node::wire::Writer;
use scenario::Scenario;
use units::{Problem, Time};

use super::agreement::{self, Go, Intro, Setup, hear, refuse, say};
use super::clocks::answer;
use super::control::Control;
use super::courier::Status;
use super::ends::{self, Ending, Ends};
use super::first::{PATIENCE, add_refused, write_counts};
use super::{Membership, News};
use crate::board::Board;
use crate::clock::{Clock, instant_ns};
use crate::mail::BranchMail;
use crate::network::{self, Network};
use crate::outside::{Outside, Share};
use crate::several::{self, Nodes};
use crate::worker::Worker;

/// How often it looks whether the first machine is still there, and whether it shall go on.
const LOOK: Span = Span::from_millis(20);

/// So long it tries to reach a first machine that does not listen yet, and how often.
const TRIES: Span = Span::from_secs(60);
const AGAIN: Span = Span::from_millis(100);

/// The key that errors of this module name.
const KEY: &str = "join";

/// What a machine has taken part in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Joined {
    /// Its number, from 1, and how many there were.
    pub machine: usize,
    /// Machines in all.
    pub machines: usize,
    /// Hosts and switches that lived here.
    pub nodes: usize,
    /// When the run ended, by the network's time.
    pub end: Time,
}

/// Takes part in a run that a machine at this address has begun. With a `scenario` it has to be that machine's. `tell`
/// hears what happens, and `watch` is called about ten times a second: when it returns true this machine leaves.
///
/// # Errors
/// Where it is not let in, the first machine goes on without it, or ends.
pub fn join(
    at: &str,
    scenario: Option<&Scenario>,
    member: &Membership<'_>,
    mut tell: impl FnMut(News),
    mut watch: impl FnMut(Progress) -> bool,
) -> Result<Joined, Problem> {
    let wrong = |error: io::Error| Problem::new(KEY, error.to_string());
    let mut interrupted = || watch(Progress::by_flows(Time::ZERO, Time::MAX, 0, 0));
    let stream = reach(at, &mut tell, &mut interrupted).map_err(wrong)?;
    let (own, first) = (stream.local_addr().map_err(wrong)?, stream.peer_addr().map_err(wrong)?);
    let control = Control::join(stream, member.token, PATIENCE).map_err(wrong)?;
    let socket = UdpSocket::bind((own.ip(), 0)).map_err(wrong)?;
    let port = socket.local_addr().map_err(wrong)?.port();
    let intro = Intro { build: agreement::build(member.build), port, scenario: scenario.map(Scenario::to_toml) };
    say(&control, &intro.emit()).map_err(wrong)?;
    let setup = wait_for_all(&control, &mut interrupted).map_err(wrong)?;
    let read = scenario::read(&setup.scenario, "the first machine's scenario", &[]);
    let read = read.map_err(|error| Problem::new(error.key, error.message));
    let (machine, machines) = (setup.machine as usize, setup.machines as usize);
    let prepared = read.and_then(|read| {
        let plan = several::plan(&read, true, setup.programs)?;
        let cut = Cut::new(&plan, plan.scenario.live.workers as usize * machines);
        let outside = Outside::open(&plan, &cut, Share::Machine(machine, machines))?;
        Ok((plan, cut, outside))
    });
    let (plan, cut, outside) = prepared.inspect_err(|why| refuse(&control, &why.to_string()))?;
    say(&control, &agreement::digest(&plan)).map_err(wrong)?;
    let go = answer(&control).and_then(|words| Go::parse(&words).map_err(io::Error::other)).map_err(wrong)?;
    if go.others.len() + 1 != machines {
        return Err(wrong(io::Error::other("it says nothing that makes sense")));
    }
    let mut addresses = vec![SocketAddr::new(first.ip(), go.port)];
    addresses.extend(&go.others);
    let nodes = Nodes::new(&plan, &cut, machines).count(machine);
    tell(News::Part(machine, machines, nodes));
    let control = Arc::new(control);
    let programs = setup.programs;
    let part =
        JoinedMachine { plan: &plan, me: machine, machines, programs, control, addresses, session: go.session, member };
    let probes = outside.probes(&plan);
    let end = match probes().is_empty() {
        true => part.live(cut, outside, socket, || (), watch),
        false => part.live(cut, outside, socket, probes, watch),
    }
    .map_err(wrong)?;
    Ok(Joined { machine, machines, nodes, end })
}

/// Connects, also where nobody listens yet.
fn reach(at: &str, tell: &mut impl FnMut(News), interrupted: &mut impl FnMut() -> bool) -> io::Result<TcpStream> {
    let began = instant_ns();
    let mut told = false;
    loop {
        let addresses = at
            .to_socket_addrs()
            .map_err(|error| io::Error::other(format!("no such address: {error}; it is written as HOST:PORT")))?;
        let mut last = io::Error::other("no address");
        for address in addresses {
            match TcpStream::connect_timeout(&address, PATIENCE) {
                Ok(stream) => return Ok(stream),
                Err(error) => last = error,
            }
        }
        if last.kind() != ErrorKind::ConnectionRefused || instant_ns() - began > TRIES.as_nanos() as u64 {
            return Err(last);
        }
        if !std::mem::replace(&mut told, true) {
            tell(News::Waiting(at.to_owned()));
        }
        if interrupted() {
            return Err(io::Error::other("interrupted"));
        }
        std::thread::sleep(AGAIN);
    }
}

/// Waits until all machines are there: as long as that takes.
fn wait_for_all(control: &Control, interrupted: &mut impl FnMut() -> bool) -> io::Result<Setup> {
    while !control.has_some(AGAIN)? {
        if interrupted() {
            return Err(io::Error::other("interrupted"));
        }
    }
    Setup::parse(&hear(control)?).map_err(io::Error::other)
}

struct JoinedMachine<'a> {
    plan: &'a Plan,
    me: usize,
    machines: usize,
    /// Whether programs send messages.
    programs: bool,
    control: Arc<Control>,
    addresses: Vec<SocketAddr>,
    session: [u8; 32],
    member: &'a Membership<'a>,
}

impl JoinedMachine<'_> {
    fn live<P: Probe>(
        &self,
        cut: Cut,
        outside: Outside,
        socket: UdpSocket,
        probe: impl FnMut() -> P,
        mut watch: impl FnMut(Progress) -> bool,
    ) -> io::Result<Time> {
        let (plan, me, machines) = (self.plan, self.me, self.machines);
        let (ends, far) = Ends::new(plan, &cut, me, machines);
        let mut network = Network::far(plan, cut, me, outside, (ends.regions.clone(), far));
        let branch = self.programs.then(|| network.branch(plan));
        let mut workers = network.workers(plan, u64::MAX, probe);
        network::open(&mut workers, branch.as_ref());
        let Some((clock, board)) = workers.first().map(Worker::shared) else {
            return Err(io::Error::other("there is nothing to do"));
        };
        let status = Status::default();
        let sleeps = plan.scenario.live.wait == scenario::Wait::Sleep;
        let with = (self.member.token, &self.session);
        let courier = ends.courier(socket, &self.addresses, with, (board, &status, sleeps))?;
        let flows = plan.goal();
        std::thread::scope(|scope| {
            let _ending = Ending(&status);
            scope.spawn(|| courier.live());
            let (mut begun, mut left) = (Ok(()), None);
            let mail = OnceCell::new();
            let start = || {
                begun = self.begin(clock, &status).and_then(|()| {
                    let started = branch.as_ref().map(|branch| BranchMail::start(branch, self.control.notes()));
                    // It is the only one.
                    started.transpose().map(|started| _ = started.map(|started| mail.set(started)))
                });
                if begun.is_err() {
                    board.quit();
                }
            };
            let mut leaves = || {
                let at = Progress::by_flows(clock.now(), plan.horizon, board.ended_flows(), flows);
                let asked = watch(at).then_some("interrupted: the others go on without it");
                self.why_it_leaves(board, mail.get()).or(asked)
            };
            network::drive(&mut workers, board, start, LOOK, || {
                left = leaves();
                if left.is_some() {
                    board.quit();
                }
            });
            begun?;
            let all = ends::others(me, machines);
            ends::drain(&mut workers, board, &status, all, || {
                left = left.or_else(|| self.why_it_leaves(board, mail.get()));
                left.is_some()
            });
            if let Some(why) = left {
                return Err(io::Error::other(why));
            }
            mail.into_inner().iter_mut().for_each(BranchMail::finish);
            network::settle(&mut workers);
            let (_, end, _) = board.outcome();
            let seen = status.seen();
            add_refused(&mut workers, &seen);
            let mut words = Vec::new();
            write_counts(&seen.counts, &mut Writer::new(&mut words));
            words.extend(several::speak(plan, clock, workers, end));
            say(&self.control, &words)?;
            answer(&self.control)?;
            Ok(end)
        })
    }

    /// Begins when the first machine says so.
    fn begin(&self, clock: &Clock, status: &Status) -> io::Result<()> {
        let control = &self.control;
        let up = ends::wait_until_up(status, ends::others(self.me, self.machines), &self.addresses);
        if let Err(why) = up {
            refuse(control, &why);
            return Err(io::Error::other(why));
        }
        say(control, b"up")?;
        let began = hear(control)?;
        let began = began.try_into().map_err(|_| io::Error::other("no time to begin at"))?;
        clock.begin_at(u64::from_be_bytes(began));
        Ok(())
    }

    /// Why this machine can't go on, if it can't.
    fn why_it_leaves(&self, board: &Board, mail: Option<&BranchMail>) -> Option<&'static str> {
        if mail.is_some_and(|mail| mail.wrong().is_some()) {
            Some("the first machine said of messages what can't be")
        } else if self.control.is_gone() {
            Some("the first machine has ended, or goes on without this one")
        } else if board.suspects(self.me) & 1 != 0 {
            Some("nothing has come from the first machine for 10 s")
        } else {
            (board.dead() >> self.me & 1 != 0).then_some("the first machine has taken this one for lost")
        }
    }
}
