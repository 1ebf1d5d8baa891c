//! What runs in several processes and on several machines have in common.

use ::run::{Finding, Plan, Progress};
use driver::{Cut, Driver, Probe, Summary};
use node::wire::{Malformed, Reader, Writer};
use scenario::{LiveLinks, Scenario};
use units::{Duration, NodeId, Problem, Time};

use crate::board::{Board, Ended, workers_of};
use crate::clock::Clock;
use crate::results::{self, Said};
use crate::run::{Other, plan_of};
use crate::wires::Wires;
use crate::worker::Worker;
use crate::{RunResult, network};

/// `watch` is called once in this many looks.
const ASK: u32 = 50;

/// Works a scenario out for a run that may have several processes. What one alone can do is refused to `several`.
/// `programs`: whether any send messages.
pub(crate) fn plan(scenario: &Scenario, several: bool, programs: bool) -> Result<Plan, Problem> {
    let plan = plan_of(scenario, programs)?;
    if several && plan.scenario.live.links == LiveLinks::Datagrams {
        let message = "one process reads all sockets: run it in one, or write live.links = \"memory\"";
        return Err(Problem::new("live.links", message));
    }
    Ok(plan)
}

/// The nodes of processes, by their numbers.
pub(crate) struct Nodes {
    part_of: Vec<usize>,
    workers: usize,
    processes: usize,
}

impl Nodes {
    pub fn new(plan: &Plan, cut: &Cut, processes: usize) -> Nodes {
        let part_of = (0..plan.fabric.nodes()).map(|node| cut.part_of(NodeId(node))).collect();
        Nodes { part_of, workers: cut.parts(), processes }
    }

    /// Whether a node is in a process.
    pub fn is_in(&self, node: NodeId, process: usize) -> bool {
        workers_of(process, self.processes, self.workers).contains(&self.part_of[node.index()])
    }

    /// How many are.
    pub fn count(&self, process: usize) -> usize {
        (0..self.part_of.len()).filter(|&node| self.is_in(NodeId::from(node), process)).count()
    }
}

/// What the first process looks at while the run goes on, until so many flows have ended: `gone` says of each other one
/// whether it is gone.
pub(crate) fn look<'a>(
    plan: &'a Plan,
    clock: &'a Clock,
    board: &'a Board,
    goal: u64,
    mut gone: impl FnMut(usize) -> bool + 'a,
    mut watch: impl FnMut(Progress) -> bool + 'a,
) -> impl FnMut() + 'a {
    let flows = plan.goal();
    let mut looks = 0;
    move || {
        for process in 1..board.processes() {
            if board.dead() >> process & 1 == 0 && gone(process) {
                board.bury(process);
            }
        }
        let done = board.ended_flows().min(flows);
        if flows > 0 && done >= goal {
            board.stop(Ended::Goal, board.ended_at().min(plan.horizon), Duration::ZERO);
        }
        looks += 1;
        if looks % ASK == 0 && watch(Progress::by_flows(clock.now(), plan.horizon, done, flows)) {
            board.stop(Ended::Interrupted, clock.now(), Duration::ZERO);
        }
    }
}

/// Packs the results of a process's nodes for the first process, when the run is over.
pub(crate) fn speak<P: Probe>(plan: &Plan, clock: &Clock, workers: Vec<Worker<'_, P>>, end: Time) -> Vec<u8> {
    let (mut parts, noted): (Vec<Driver<Wires<'_>, P>>, Vec<_>) = workers.into_iter().map(Worker::take_apart).unzip();
    let said: Vec<Said> = parts.iter_mut().map(|part| Said::of(plan, part)).collect();
    let mut words = Vec::new();
    let mut to = Writer::new(&mut words);
    to.u64(clock.stood().ps());
    driver::pack(plan, &parts, end, &mut to);
    to.u64(parts.len() as u64);
    said.iter().zip(&noted).for_each(|(said, noted)| results::pack(noted, said, &mut to));
    words
}

/// Reads the results of another process. Nothing of them is trusted.
pub(crate) fn listen<P: Probe>(
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

/// Nothing new is sent any more: packets that found no room before go into rings. Whether some still wait.
pub(crate) fn push_held<P: Probe>(workers: &mut [Worker<'_, P>]) -> bool {
    network::take_in(workers);
    workers.iter_mut().fold(false, |held, worker| worker.driver.links.carrier.is_held_up() | held)
}

/// Adds to a result which processes were lost, and with them which nodes. `what`: "process" or "machine".
pub(crate) fn tell_of_lost(plan: &Plan, result: &mut RunResult, what: &'static str, mut lost: Vec<usize>, of: &Nodes) {
    const NAMED: usize = 6;
    lost.sort_unstable();
    let nodes: Vec<usize> = (0..of.part_of.len())
        .filter(|&node| lost.iter().any(|&process| of.is_in(NodeId::from(node), process)))
        .collect();
    let named: Vec<&str> = nodes.iter().take(NAMED).map(|&node| plan.fabric.names[node].as_str()).collect();
    let more = if nodes.len() > NAMED { ", ..." } else { "" };
    // They need both ends of what is counted.
    const WHOLE: [&str; 3] = ["bytes conserved", "delivered after start, completed after delivery", "every flow ended"];
    result.info.audit.retain(|finding| !WHOLE.contains(&finding.name));
    let detail = format!(
        "lost: {what} {} with {} nodes ({}{more}), and all that these had counted; the others went on as if the nodes \
         had failed; bytes sent and received can't be compared",
        lost.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
        nodes.len(),
        named.join(", "),
    );
    let name = if what == "machine" { "all machines lived" } else { "all processes lived" };
    result.info.audit.push(Finding { name, ok: false, detail });
    result.info.lost_processes = lost;
}
