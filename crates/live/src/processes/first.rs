//! The process that begins a run of several, and writes its result.

use std::cell::RefCell;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration as Span;

use ::run::{Plan, Progress};
use driver::{Cut, Probe};
use node::wire::{Reader, Writer};
use scenario::Scenario;
use units::{NodeId, Problem};

use super::ends::Shape;
use super::socket;
use crate::board::PROCESSES_MAX;
use crate::clock::{Clock, instant_ns};
use crate::mail::Mail;
use crate::maze::Exchange;
use crate::network::{self, Network, Outcome};
use crate::outside::{Outside, Share};
use crate::run::{End, Other, conclude, goal_of, run_alone};
use crate::several::{self, Nodes, listen, tell_of_lost};
use crate::shared::{self, Lines, Shared};
use crate::worker::Worker;
use crate::{RunResult, run};

/// How often it looks whether flows have ended everywhere, and who is still there.
const LOOK: Span = Span::from_millis(1);

/// So long it waits for a word of another process.
const PATIENCE: Span = Span::from_secs(30);

/// What a process says when it has all that it needs; otherwise it says what is wrong.
pub(super) const READY: &[u8] = b"ready";

/// Another process, which ends with this at the latest.
struct Peer {
    child: RefCell<Child>,
    stream: UnixStream,
    /// For programs' messages, until its threads have it.
    mail: Option<UnixStream>,
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.kill();
        let _ = self.child.get_mut().wait();
    }
}

impl Peer {
    fn kill(&self) {
        // It may have ended by itself.
        let _ = self.child.borrow_mut().kill();
    }
}

/// Runs a scenario in several processes of this machine, but not more than there are workers with something to do.
/// `command` gives what starts one of the others, a program that calls [`take_part`](crate::take_part) with its
/// standard input.
///
/// # Errors
/// Where the scenario can't be run so, or a process does not start.
pub fn run_processes(
    scenario: &Scenario,
    processes: usize,
    command: impl FnMut() -> Command,
    watch: impl FnMut(Progress) -> bool,
) -> Result<RunResult, Problem> {
    run_with(scenario, processes, command, None::<fn(&Arc<Exchange>) -> Result<(), Problem>>, watch)
}

/// The same, where programs send messages. `opened` is told when they can.
pub(crate) fn run_open(
    scenario: &Scenario,
    processes: usize,
    command: impl FnMut() -> Command,
    opened: impl FnOnce(&Arc<Exchange>) -> Result<(), Problem>,
    watch: impl FnMut(Progress) -> bool,
) -> Result<RunResult, Problem> {
    run_with(scenario, processes, command, Some(opened), watch)
}

fn run_with(
    scenario: &Scenario,
    processes: usize,
    command: impl FnMut() -> Command,
    opened: Option<impl FnOnce(&Arc<Exchange>) -> Result<(), Problem>>,
    mut watch: impl FnMut(Progress) -> bool,
) -> Result<RunResult, Problem> {
    let plan = several::plan(scenario, processes > 1, opened.is_some())?;
    let cut = Cut::new(&plan, plan.scenario.live.workers as usize * processes);
    let processes = processes.min(cut.parts()).min(PROCESSES_MAX);
    if processes <= 1 {
        return match opened {
            Some(opened) => crate::run::run_open(scenario, opened, |_, progress| watch(progress)),
            None => run(scenario, watch),
        };
    }
    // All processes cut alike.
    let cut = Cut::new(&plan, plan.scenario.live.workers as usize * processes);
    let outside = Outside::open(&plan, &cut, Share::Process(0, processes))?;
    let probes = outside.probes(&plan);
    let first = First { plan: &plan, scenario, processes };
    let mut result = match probes().is_empty() {
        true => first.run(cut, outside, command, opened, || (), &mut watch),
        false => first.run(cut, outside, command, opened, probes, &mut watch),
    }
    .map_err(|error| {
        let wrong = |error| Problem::new("live.processes", format!("{processes} processes: {error}"));
        error.downcast().unwrap_or_else(wrong)
    })?;
    run_alone(&plan, &mut result, watch);
    Ok(result)
}

struct First<'a> {
    plan: &'a Plan,
    scenario: &'a Scenario,
    processes: usize,
}

impl First<'_> {
    fn run<P: Probe>(
        &self,
        cut: Cut,
        outside: Outside,
        command: impl FnMut() -> Command,
        opened: Option<impl FnOnce(&Arc<Exchange>) -> Result<(), Problem>>,
        mut probe: impl FnMut() -> P,
        watch: impl FnMut(Progress) -> bool,
    ) -> io::Result<RunResult> {
        let plan = self.plan;
        let shape = Shape::of(plan, &cut, self.processes);
        let nodes = Nodes::new(plan, &cut, self.processes);
        let started = self.start(shape, command, opened.is_some());
        let (mut peers, regions, files) = started.map_err(|error| match error.kind() {
            io::ErrorKind::BrokenPipe => io::Error::other("one ended before the run began"),
            _ => error,
        })?;
        let mut network = Network::far(plan, cut, 0, outside, (regions, shape.far(0, &files)?));
        let exchange = opened.is_some().then(|| network.exchange(plan, "process"));
        let _end = exchange.as_deref().map(End);
        let goal = goal_of(plan, exchange.is_some());
        let mut workers = network.workers(plan, goal, &mut probe);
        network::open(&mut workers, exchange.as_ref());
        let Some((clock, board)) = workers.first().map(Worker::shared) else {
            return Err(io::Error::other("there is nothing to do"));
        };
        let streams = peers.iter_mut().map(|peer| peer.as_mut()?.mail.take());
        let connections: Result<_, _> = streams.map(|stream| stream.map(socket::connection).transpose()).collect();
        let connections = connections?;
        let mut mail = exchange.as_ref().map(|exchange| Mail::start(exchange, connections)).transpose()?;
        let mut begun = Ok(());
        let start = || {
            let open = |exchange| opened.map_or(Ok(()), |opened| opened(exchange).map_err(io::Error::other));
            begun = begin(clock, &peers).and_then(|()| exchange.as_ref().map_or(Ok(()), open));
            if begun.is_err() {
                board.quit();
            }
        };
        let mut ended_why = Vec::new();
        let gone = |process: usize| {
            let Some(peer) = &peers[process] else { return false };
            let why = mail.as_ref().and_then(|mail| mail.why_lost(process));
            let is_gone = why.is_some() || socket::is_gone(&peer.stream);
            if let Some(exchange) = exchange.as_ref().filter(|_| is_gone) {
                let why = why.unwrap_or_else(|| "it has ended".to_owned());
                exchange.lose_process(process, &why);
                // It may live, and what it said was wrong.
                peer.kill();
                ended_why.push(format!("process {process}: {why}"));
            }
            is_gone
        };
        network::drive(&mut workers, board, start, LOOK, several::look(plan, clock, board, goal, gone, watch));
        begun?;
        let machine = clock.machine();
        let mut lost: Vec<usize> = (1..self.processes).filter(|process| board.dead() >> process & 1 != 0).collect();
        for process in &lost {
            peers[*process] = None;
        }
        mail.iter_mut().for_each(Mail::finish);
        if let Some(exchange) = &exchange {
            // From here on no message is sent: tables are made of all flows that there are.
            exchange.end(exchange.why_over());
        }
        let others = self.gather(&mut peers, &mut lost, &mut workers, &mut probe, &nodes);
        drop(peers);
        let (ended, end, late) = board.outcome();
        let mut result = conclude(plan, clock, workers, others, Outcome { ended, end, late, machine });
        result.info.warnings.extend(ended_why);
        if !lost.is_empty() {
            tell_of_lost(plan, &mut result, "process", lost, &nodes);
        }
        Ok(result)
    }

    /// The run is over: all processes take in what is under way, and the others say what their nodes have counted.
    fn gather<P: Probe>(
        &self,
        peers: &mut [Option<Peer>],
        lost: &mut Vec<usize>,
        workers: &mut [Worker<'_, P>],
        mut probe: impl FnMut() -> P,
        nodes: &Nodes,
    ) -> Vec<Other<P>> {
        meet(peers, lost);
        network::take_in(workers);
        meet(peers, lost);
        workers.iter_mut().for_each(|worker| _ = worker.driver.links.carrier.is_held_up());
        meet(peers, lost);
        network::take_in(workers);
        network::settle(workers);
        let mut others = Vec::new();
        for (process, peer) in peers.iter().enumerate() {
            let Some(peer) = peer else { continue };
            let words = socket::receive(&peer.stream);
            let has = |node: NodeId| nodes.is_in(node, process);
            match words.map(|words| listen(self.plan, has, probe(), &mut Reader::new(&words, "words of a process"))) {
                Ok(Ok(other)) => others.push(other),
                Ok(Err(_)) | Err(_) => lost.push(process),
            }
        }
        others
    }

    /// Makes memory, starts the other processes and tells them what to do. By process: itself (none for the first),
    /// what it says on the board, and the rings to it and from it.
    #[expect(clippy::type_complexity, reason = "three lists by process, taken apart at once")]
    fn start(
        &self,
        shape: Shape,
        mut command: impl FnMut() -> Command,
        programs: bool,
    ) -> io::Result<(Vec<Option<Peer>>, Vec<Arc<Lines>>, Vec<Option<(File, File)>>)> {
        let boards: Vec<File> =
            (0..self.processes).map(|process| shared::create(shape.board_lines(process))).collect::<Result<_, _>>()?;
        let mut rings: Vec<Vec<File>> = Vec::new();
        for from in 0..self.processes {
            let to = (0..self.processes).map(|to| shared::create(shape.ring_lines(from, to).max(1)));
            rings.push(to.collect::<Result<_, _>>()?);
        }
        let mut peers = vec![None];
        for (process, to_others) in rings.iter().enumerate().skip(1) {
            let (stream, theirs) = UnixStream::pair()?;
            let child = command().stdin(OwnedFd::from(theirs)).stdout(Stdio::null()).spawn()?;
            stream.set_read_timeout(Some(PATIENCE))?;
            stream.set_write_timeout(Some(PATIENCE))?;
            let mut peer = Peer { child: RefCell::new(child), stream, mail: None };
            let mut setup = Vec::new();
            let mut to = Writer::new(&mut setup);
            to.u32(process as u32);
            to.u32(self.processes as u32);
            to.u8(programs.into());
            to.bytes(self.scenario.to_toml().as_bytes());
            socket::send(&peer.stream, &setup)?;
            for (of, board) in boards.iter().enumerate() {
                match of == process {
                    true => socket::send_file(&peer.stream, board)?,
                    false => socket::send_file(&peer.stream, &shared::read_only(board)?)?,
                }
            }
            for other in (0..self.processes).filter(|&other| other != process) {
                socket::send_file(&peer.stream, &to_others[other])?;
                socket::send_file(&peer.stream, &rings[other][process])?;
            }
            if programs {
                let (mail, theirs) = UnixStream::pair()?;
                socket::send_file(&peer.stream, &File::from(OwnedFd::from(theirs)))?;
                peer.mail = Some(mail);
            }
            peers.push(Some(peer));
        }
        let mut regions = Vec::new();
        for (process, board) in boards.iter().enumerate() {
            regions.push(Arc::new(Lines::Shared(Shared::map(board, shape.board_lines(process), process == 0)?)));
        }
        let mut files = vec![None];
        for (process, back) in rings.iter().enumerate().skip(1) {
            files.push(Some((rings[0][process].try_clone()?, back[0].try_clone()?)));
        }
        Ok((peers, regions, files))
    }
}

/// When all are ready all begin.
fn begin(clock: &Clock, peers: &[Option<Peer>]) -> io::Result<()> {
    for peer in peers.iter().flatten() {
        let ready = socket::receive(&peer.stream);
        let ready = ready.map_err(|error| io::Error::other(format!("one ended before the run began ({error})")))?;
        if ready != READY {
            return Err(io::Error::other(String::from_utf8_lossy(&ready).into_owned()));
        }
    }
    let began = instant_ns();
    for peer in peers.iter().flatten() {
        socket::send(&peer.stream, &began.to_le_bytes())?;
    }
    clock.start_at(began);
    Ok(())
}

/// Waits until all have come so far, and lets them go on. Who does not come is lost.
fn meet(peers: &mut [Option<Peer>], lost: &mut Vec<usize>) {
    for (process, place) in peers.iter_mut().enumerate() {
        if place.as_ref().is_some_and(|peer| socket::receive(&peer.stream).is_err()) {
            *place = None;
            lost.push(process);
        }
    }
    // Who can't be told is not there the next time.
    peers.iter().flatten().for_each(|peer| _ = socket::send(&peer.stream, b"on"));
}
