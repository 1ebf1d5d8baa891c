//! The process that begins a run of several, and writes its result.

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
use crate::network::{self, Network, Outcome};
use crate::outside::{Outside, Share};
use crate::run::{conclude, goal_of, run_alone};
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
    child: Child,
    stream: UnixStream,
}

impl Drop for Peer {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
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
    mut watch: impl FnMut(Progress) -> bool,
) -> Result<RunResult, Problem> {
    let plan = several::plan(scenario, processes > 1)?;
    let cut = Cut::new(&plan, plan.scenario.live.workers as usize * processes);
    let processes = processes.min(cut.parts()).min(PROCESSES_MAX);
    if processes <= 1 {
        return run(scenario, watch);
    }
    // All processes cut alike.
    let cut = Cut::new(&plan, plan.scenario.live.workers as usize * processes);
    let outside = Outside::open(&plan, &cut, Share::Process(0, processes))?;
    let probes = outside.probes(&plan);
    let first = First { plan: &plan, scenario, processes };
    let mut result = match probes().is_empty() {
        true => first.run(cut, outside, command, || (), &mut watch),
        false => first.run(cut, outside, command, probes, &mut watch),
    }
    .map_err(|error| Problem::new("live.processes", format!("{processes} processes: {error}")))?;
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
        mut probe: impl FnMut() -> P,
        watch: impl FnMut(Progress) -> bool,
    ) -> io::Result<RunResult> {
        let plan = self.plan;
        let shape = Shape::of(plan, &cut, self.processes);
        let nodes = Nodes::new(plan, &cut, self.processes);
        let started = self.start(shape, command);
        let (mut peers, regions, files) = started.map_err(|error| match error.kind() {
            io::ErrorKind::BrokenPipe => io::Error::other("one ended before the run began"),
            _ => error,
        })?;
        let mut network = Network::far(plan, cut, 0, outside, (regions, shape.far(0, &files)?));
        let mut workers = network.workers(plan, goal_of(plan, false), &mut probe);
        let Some((clock, board)) = workers.first().map(Worker::shared) else {
            return Err(io::Error::other("there is nothing to do"));
        };
        let mut begun = Ok(());
        let start = || {
            begun = begin(clock, &peers);
            if begun.is_err() {
                board.quit();
            }
        };
        let gone = |process: usize| peers[process].as_ref().is_some_and(|peer: &Peer| socket::is_gone(&peer.stream));
        network::drive(&mut workers, board, start, LOOK, several::look(plan, clock, board, gone, watch));
        begun?;
        let machine = clock.machine();
        let mut lost: Vec<usize> = (1..self.processes).filter(|process| board.dead() >> process & 1 != 0).collect();
        for process in &lost {
            peers[*process] = None;
        }
        meet(&mut peers, &mut lost);
        network::take_in(&mut workers);
        meet(&mut peers, &mut lost);
        workers.iter_mut().for_each(|worker| _ = worker.driver.links.carrier.is_held_up());
        meet(&mut peers, &mut lost);
        network::take_in(&mut workers);
        network::settle(&mut workers);
        let (ended, end, late) = board.outcome();
        let mut others = Vec::new();
        for (process, peer) in peers.iter().enumerate() {
            let Some(peer) = peer else { continue };
            let words = socket::receive(&peer.stream);
            let has = |node: NodeId| nodes.is_in(node, process);
            match words.map(|words| listen(plan, has, probe(), &mut Reader::new(&words, "words of a process"))) {
                Ok(Ok(other)) => others.push(other),
                Ok(Err(_)) | Err(_) => lost.push(process),
            }
        }
        drop(peers);
        let mut result = conclude(plan, clock, workers, others, Outcome { ended, end, late, machine });
        if !lost.is_empty() {
            tell_of_lost(plan, &mut result, "process", lost, &nodes);
        }
        Ok(result)
    }

    /// Makes memory, starts the other processes and tells them what to do. By process: itself (none for the first),
    /// what it says on the board, and the rings to it and from it.
    #[expect(clippy::type_complexity, reason = "three lists by process, taken apart at once")]
    fn start(
        &self,
        shape: Shape,
        mut command: impl FnMut() -> Command,
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
            let peer = Peer { child, stream };
            let mut setup = Vec::new();
            let mut to = Writer::new(&mut setup);
            to.u32(process as u32);
            to.u32(self.processes as u32);
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
