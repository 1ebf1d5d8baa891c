//! The process that begins a run of several, and writes its result.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration as Span;

use ::run::{Finding, Plan, Progress};
use driver::{Cut, Probe, Probes, Summary};
use node::wire::{Malformed, Reader, Writer};
use scenario::{LiveLinks, Scenario};
use units::{Duration, NodeId, Problem};

use super::ends::Shape;
use super::socket;
use crate::board::{Board, Ended, PROCESSES_MAX, workers_of};
use crate::clock::{Clock, instant_ns};
use crate::network::{self, Network, Outcome};
use crate::run::{Other, conclude};
use crate::shared::{self, Lines, Shared};
use crate::worker::Worker;
use crate::{RunResult, results, run};

/// How often it looks whether flows have ended everywhere, and who is still there.
const LOOK: Span = Span::from_millis(1);

/// After so many looks it asks whoever watches.
const ASK: u32 = 50;

/// So long it waits for a word of another process.
const PATIENCE: Span = Span::from_secs(30);

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

/// Runs a scenario in so many processes of this machine: no more than there are workers with something to do. `command`
/// gives what starts one of the others, a program that calls [`take_part`](crate::take_part) with its standard input.
///
/// # Errors
/// Where the scenario can't be run so, or a process does not start.
pub fn run_processes(
    scenario: &Scenario,
    processes: usize,
    command: impl FnMut() -> Command,
    watch: impl FnMut(Progress) -> bool,
) -> Result<RunResult, Problem> {
    let plan = Plan::new(scenario)?;
    if processes > 1 && plan.scenario.live.links == LiveLinks::Datagrams {
        let message = "one process reads all sockets: run it in one, or write live.links = \"memory\"";
        return Err(Problem::new("live.links", message));
    }
    if processes > 1 && !plan.attached.is_empty() {
        return Err(Problem::new("live.attach", "devices of attached hosts belong to one process: run it in one"));
    }
    if processes > 1 && !plan.scenario.live.capture.is_empty() {
        return Err(Problem::new("live.capture", "one process writes all captures: run it in one"));
    }
    let cut = Cut::new(&plan, plan.scenario.live.workers as usize * processes);
    let processes = processes.min(cut.parts()).min(PROCESSES_MAX);
    if processes <= 1 {
        return run(scenario, watch);
    }
    // All processes cut alike.
    let cut = Cut::new(&plan, plan.scenario.live.workers as usize * processes);
    let mut left_out = Vec::new();
    let probes = || {
        let mut probes = Probes::new(&plan);
        probes.keep_those_that_pack();
        probes
    };
    left_out.extend(Probes::new(&plan).keep_those_that_pack());
    let first = First { plan: &plan, scenario, processes };
    let mut result = match probes().is_empty() {
        true => first.run(cut, command, || (), watch),
        false => first.run(cut, command, probes, watch),
    }
    .map_err(|error| Problem::new("live.processes", format!("{processes} processes: {error}")))?;
    result.tables.retain(|table| !left_out.contains(&table.name));
    let missing = |name: &&str| format!("{name}: what one process sees of it does not go to another: run it in one");
    result.info.warnings.extend(left_out.iter().map(missing));
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
        command: impl FnMut() -> Command,
        mut probe: impl FnMut() -> P,
        watch: impl FnMut(Progress) -> bool,
    ) -> io::Result<RunResult> {
        let plan = self.plan;
        let shape = Shape::of(plan, &cut, self.processes);
        let part_of: Vec<usize> = (0..plan.fabric.nodes()).map(|node| cut.part_of(NodeId(node))).collect();
        let started = self.start(shape, command);
        let (mut peers, regions, files) = started.map_err(|error| match error.kind() {
            io::ErrorKind::BrokenPipe => io::Error::other("one ended before the run began"),
            _ => error,
        })?;
        let clock = Clock::new(plan.scenario.live.dilation, plan.lookahead);
        let flows = plan.flows.len() as u64;
        let mut network = Network::far(plan, clock, cut, 0, regions, shape.far(0, &files)?);
        let mut workers = network.workers(plan, flows, &mut probe);
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
        network::drive(&mut workers, board, start, LOOK, look(plan, clock, board, &peers, watch));
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
            let own = workers_of(process, self.processes, shape.workers);
            let words = socket::receive(&peer.stream);
            let has = |node: NodeId| own.contains(&part_of[node.index()]);
            match words.map(|words| listen(plan, has, probe(), &mut Reader::new(&words, "words of a process"))) {
                Ok(Ok(other)) => others.push(other),
                Ok(Err(_)) | Err(_) => lost.push(process),
            }
        }
        drop(peers);
        let mut result = conclude(plan, clock, workers, others, Outcome { ended, end, late, machine });
        if !lost.is_empty() {
            lost.sort_unstable();
            let process_of =
                |part| (0..self.processes).find(|&of| workers_of(of, self.processes, shape.workers).contains(&part));
            let is_lost = |node: &usize| process_of(part_of[*node]).is_some_and(|process| lost.contains(&process));
            tell_of_lost(plan, &mut result, lost.clone(), (0..part_of.len()).filter(is_lost).collect());
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
        ready.map_err(|error| io::Error::other(format!("one ended before the run began ({error})")))?;
    }
    let began = instant_ns();
    for peer in peers.iter().flatten() {
        socket::send(&peer.stream, &began.to_le_bytes())?;
    }
    clock.start_at(began);
    Ok(())
}

/// What is looked at while the run goes on.
fn look<'a>(
    plan: &'a Plan,
    clock: &'a Clock,
    board: &'a Board,
    peers: &'a [Option<Peer>],
    mut watch: impl FnMut(Progress) -> bool + 'a,
) -> impl FnMut() + 'a {
    let flows = plan.flows.len() as u64;
    let mut looks = 0;
    move || {
        for (process, peer) in peers.iter().enumerate() {
            let gone = peer.as_ref().is_some_and(|peer| socket::is_gone(&peer.stream));
            if gone && board.dead() >> process & 1 == 0 {
                board.bury(process);
            }
        }
        let done = board.ended_flows().min(flows);
        if flows > 0 && done >= flows {
            board.stop(Ended::Goal, board.ended_at().min(plan.horizon), Duration::ZERO);
        }
        looks += 1;
        if looks % ASK == 0 && watch(Progress::by_flows(clock.now(), plan.horizon, done, flows)) {
            board.stop(Ended::Interrupted, clock.now(), Duration::ZERO);
        }
    }
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

/// Reads the words of a process, of which nothing is trusted.
fn listen<P: Probe>(
    plan: &Plan,
    has: impl Fn(NodeId) -> bool,
    probe: P,
    from: &mut Reader<'_>,
) -> Result<Other<P>, Malformed> {
    let stood = Duration::from_ps(from.u64()?.min(1 << 60));
    let summary = Summary::parse(plan, has, probe, from)?;
    let mut workers = Vec::new();
    for _ in 0..from.u64()? {
        workers.push(results::parse(plan, from)?);
    }
    Ok(Other { summary, workers, stood })
}

/// The result says what is not in it.
fn tell_of_lost(plan: &Plan, result: &mut RunResult, lost: Vec<usize>, nodes: Vec<usize>) {
    const NAMED: usize = 6;
    let named: Vec<&str> = nodes.iter().take(NAMED).map(|&node| plan.fabric.names[node].as_str()).collect();
    let more = if nodes.len() > NAMED { ", ..." } else { "" };
    // They need both ends of what is counted.
    const WHOLE: [&str; 3] = ["bytes conserved", "delivered after start, completed after delivery", "every flow ended"];
    result.info.audit.retain(|finding| !WHOLE.contains(&finding.name));
    let detail = format!(
        "lost: process {} with {} nodes ({}{more}), and all that these had counted; the others went on as if the nodes \
         had failed; bytes sent and received can't be compared",
        lost.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
        nodes.len(),
        named.join(", "),
    );
    result.info.audit.push(Finding { name: "all processes lived", ok: false, detail });
    result.info.lost_processes = lost;
}
