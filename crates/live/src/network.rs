//! All workers of a run, with the nodes that each drives.

use std::net::SocketAddr;
use std::sync::{Arc, Barrier};
use std::time::Duration as Span;

use driver::{Cut, Driver, Probe, Probes, drivers};
use run::{FlowEvent, FlowRecord, Plan};
use scenario::LiveLinks;
use units::{Duration, FlowId, LinkId, NodeId, Problem, Time};

use crate::attach::Attached;
use crate::board::{Board, Ended};
use crate::capture::Captures;
use crate::clock::{Clock, Lateness, Punctual};
use crate::datagrams::{Datagrams, Read, Sent};
use crate::maze::{Branch, Desk, Exchange};
use crate::outside::{Outside, Share};
use crate::results::Noted;
use crate::shared::Lines;
use crate::sockets::Sockets;
use crate::wires::{Far, Sender, Wires, trunks};
use crate::worker::{CROSSING, Worker};

/// How often whoever watches is asked.
const LOOK: Span = Span::from_millis(50);

/// The most records of flows for which a worker's memory is made ready: some 50 MB.
const ROOM_MAX: usize = 1 << 20;

/// A network, cut into what each worker has.
pub(crate) struct Network {
    cut: Cut,
    pub clock: Arc<Clock>,
    pub board: Board,
    sockets: Option<Sockets>,
    far: FarEnds,
    outside: Outside,
}

/// By worker of this process and other worker, the ends of rings to another process.
pub(crate) type FarEnds = Vec<Vec<Option<Far>>>;

/// How a run went.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outcome {
    pub ended: Ended,
    pub end: Time,
    /// How late that was noticed.
    pub late: Duration,
    /// How long it took by the machine's clock.
    pub machine: Span,
}

impl Network {
    /// Of a plan, by a clock, and in this many parts at most; none: as many as the scenario says.
    pub fn new(plan: &Plan, clock: Clock, links: LiveLinks, workers: usize) -> Result<Network, Problem> {
        let cut = Cut::new(plan, workers);
        let sockets = match links {
            LiveLinks::Memory => None,
            LiveLinks::Datagrams => Some(sockets(plan)?),
        };
        let board = Board::new(delays(plan, &cut), plan.scenario.live.wait == scenario::Wait::Sleep);
        let far = (0..cut.parts()).map(|_| (0..cut.parts()).map(|_| None).collect()).collect();
        let outside = Outside::open(plan, &cut, Share::Whole)?;
        let clock = Arc::new(clock);
        Ok(Network { board, cut, clock, sockets, far, outside })
    }

    /// Of one process of several, with what it has open: over what each says, and with what its workers have between
    /// them and others'.
    pub fn far(
        plan: &Plan,
        cut: Cut,
        me: usize,
        outside: Outside,
        (regions, far): (Vec<Arc<Lines>>, FarEnds),
    ) -> Network {
        let board = Board::over(regions, me, delays(plan, &cut), plan.scenario.live.wait == scenario::Wait::Sleep);
        let clock = Arc::new(Clock::new(plan.scenario.live.dilation, plan.lookahead));
        Network { board, cut, clock, sockets: None, far, outside }
    }

    /// The exchange of messages between programs and workers. The calling thread will watch the workers. `what` the
    /// run has several of: "process" or "machine".
    pub fn exchange(&self, plan: &Plan, what: &'static str) -> Arc<Exchange> {
        let processes = (what, self.board.processes(), |worker| self.board.process_of(worker));
        Arc::new(Exchange::new(plan, self.clock.clone(), self.cut.parts(), |node| self.cut.part_of(node), processes))
    }

    /// The part of the exchange that another process has.
    pub fn branch(&self, plan: &Plan) -> Arc<Branch> {
        Arc::new(Branch::new(plan, &self.cut, self.board.own()))
    }

    /// Where each node's socket is, if nodes have any.
    pub fn addresses(&self) -> &[SocketAddr] {
        self.sockets.as_ref().map_or(&[], Sockets::addresses)
    }

    /// What makes the probes of a worker ([`Outside::probes`]).
    pub fn probes<'a>(&self, plan: &'a Plan) -> impl Fn() -> Probes + use<'a> {
        self.outside.probes(plan)
    }

    /// The workers, before anything has happened.
    pub fn workers<'a, P: Probe>(
        &'a mut self,
        plan: &'a Plan,
        goal: u64,
        probe: impl FnMut() -> P,
    ) -> Vec<Worker<'a, P>> {
        let mut datagrams = self.sockets.take().map(|sockets| Datagrams::new(plan, sockets));
        let mut far = std::mem::take(&mut self.far).into_iter();
        let Outside { mut ports, mut captures, .. } = std::mem::take(&mut self.outside);
        let Network { cut, clock, board, .. } = &*self;
        let sockets = datagrams.is_some();
        let sender = |link: LinkId| {
            let (ends, link_rx) = (plan.fabric.link(link), cut.link_rx_of(link));
            let (here, there) = (cut.part_of(ends.from), cut.part_of(ends.to));
            match here == there {
                _ if sockets => Sender::Socket(Sent::new(link)),
                true => Sender::Here(link_rx),
                false if board.process_of(here) != board.process_of(there) => {
                    Sender::Far { worker: there as u32, link: link.0 }
                }
                false => Sender::There { worker: there as u32, link_rx },
            }
        };
        let mut ends = trunks(cut.parts()).into_iter().enumerate();
        let none = || (0..cut.parts()).map(|_| None).collect();
        let carrier = || {
            let (me, trunks) = ends.next().expect("one for each part");
            let far = if board.own().contains(&me) { far.next().unwrap_or_else(none) } else { none() };
            Wires::new(plan, clock, board, (trunks, far), cut, me, datagrams.take())
        };
        let sender = |link: Option<_>| sender(link.expect("no switch is taken apart"));
        let built = drivers(plan, cut, carrier, sender, |link| Read::new(cut.link_tx_of(link)), probe);
        let step = Duration::from_ps(plan.lookahead.ps() / 4);
        let crosses = |link| {
            let ends = plan.fabric.link(link);
            cut.part_of(ends.from) != cut.part_of(ends.to)
        };
        let records = records(plan);
        let worker = |(me, mut driver): (usize, Driver<Wires<'a>, P>)| {
            make_room(&mut driver, &records);
            let place = |host| driver.hosts.iter().position(|slot| slot.host.id() == host);
            let (here, others) = std::mem::take(&mut ports).into_iter().partition(|port| place(port.host).is_some());
            ports = others;
            let attached = Attached::new(plan, here, |host| place(host).unwrap_or(0));
            driver.links.carrier.attached = attached.map(Box::new);
            let has = |node: NodeId| cut.part_of(node) == me;
            // Of a link that begins in another process, the worker with its other end writes what is lost there.
            let writes = |link: LinkId| {
                let ends = plan.fabric.link(link);
                has(ends.from) || has(ends.to) && !board.own().contains(&cut.part_of(ends.from))
            };
            let here = captures.iter_mut().filter_map(|file| file.part(writes)).collect();
            let link_tx = |link: LinkId| has(plan.fabric.link(link).from).then(|| cut.link_tx_of(link));
            driver.links.carrier.captures = Captures::new(plan, here, link_tx).map(Box::new);
            Worker::new(me, driver, board, crosses, step, goal)
        };
        // The nodes of other processes are there too until here, as they begin; they are not needed any more.
        built.into_iter().enumerate().filter(|(me, _)| board.own().contains(me)).map(worker).collect()
    }
}

/// By host, how many records of planned flows it will make if each ends once: a sender notes the start and the end, a
/// receiver the delivery.
fn records(plan: &Plan) -> Vec<usize> {
    let mut records = vec![0; plan.fabric.hosts as usize];
    for flow in plan.flows.iter() {
        records[flow.src.index()] += 2;
        records[flow.dst.index()] += 1;
    }
    records
}

/// Gives a worker's hosts memory for these records, and writes to it. Otherwise the worker would wait for the machine
/// during the run: some microseconds for each new page, and a millisecond when a long list is moved.
fn make_room<P: Probe>(driver: &mut Driver<Wires<'_>, P>, records: &[usize]) {
    let mut left = ROOM_MAX;
    for slot in &mut driver.hosts {
        let count = records[slot.host.id().index()].min(left);
        left -= count;
        let all = &mut slot.host.records;
        all.reserve_exact(count);
        let none = FlowRecord { flow: FlowId(0), at: Time::ZERO, due: Time::ZERO, fate: FlowEvent::Started };
        all.spare_capacity_mut().iter_mut().for_each(|place| _ = place.write(none));
    }
}

fn sockets(plan: &Plan) -> Result<Sockets, Problem> {
    let nodes = plan.fabric.nodes();
    Sockets::bind(nodes).map_err(|error| {
        let message = format!("each of the {nodes} nodes needs a UDP socket on the loopback interface: {error}");
        Problem::new("live.links", message)
    })
}

/// By receiving worker and sending worker, the least delay of a link between them.
fn delays(plan: &Plan, cut: &Cut) -> Vec<Vec<Duration>> {
    let mut delays = vec![vec![Duration::from_ps(u64::MAX); cut.parts()]; cut.parts()];
    for id in (0..plan.fabric.links.len()).map(LinkId::from) {
        let ends = plan.fabric.link(id);
        let (from, to) = (cut.part_of(ends.from), cut.part_of(ends.to));
        if from != to {
            delays[to][from] = delays[to][from].min(plan.fabric.delay(id));
        }
    }
    delays
}

/// Programs may send messages from the hosts of these workers, if there is a desk for that.
pub(crate) fn open<P: Probe, D: Desk + 'static>(workers: &mut [Worker<'_, P>], desk: Option<&Arc<D>>) {
    if let Some(desk) = desk {
        workers.iter_mut().for_each(|worker| worker.open(desk.clone()));
    }
}

/// Lets workers live, a thread each, until the run is over or `watch` returns true. The calling thread watches.
pub(crate) fn live<P: Probe>(
    workers: &mut [Worker<'_, P>],
    clock: &Clock,
    board: &Board,
    mut watch: impl FnMut(Time, u64) -> bool,
) -> Outcome {
    drive(
        workers,
        board,
        || clock.start(),
        LOOK,
        || {
            if watch(clock.now(), board.ended_flows()) {
                board.stop(Ended::Interrupted, clock.now(), Duration::ZERO);
            }
        },
    );
    let machine = clock.machine();
    take_in(workers);
    settle(workers);
    let (ended, end, late) = board.outcome();
    workers.iter_mut().for_each(|worker| worker.driver.settle(end));
    Outcome { ended, end, late, machine }
}

/// The same, without the end. When all is ready `start` is called, and then `look` again and again.
pub(crate) fn drive<P: Probe>(
    workers: &mut [Worker<'_, P>],
    board: &Board,
    start: impl FnOnce(),
    every: Span,
    mut look: impl FnMut(),
) {
    let ready = Barrier::new(workers.len() + 1);
    std::thread::scope(|scope| {
        for (me, worker) in board.own().zip(workers) {
            let ready = &ready;
            scope.spawn(move || {
                let _guard = board.guard();
                let _punctual = Punctual::new();
                board.begin(me);
                ready.wait();
                ready.wait();
                worker.live();
            });
        }
        ready.wait();
        start();
        ready.wait();
        while !board.is_over() {
            std::thread::park_timeout(every);
            if !board.is_over() {
                look();
            }
        }
    });
}

/// The run is over: packets in rings are delivered to their links' ends.
pub(crate) fn take_in<P: Probe>(workers: &mut [Worker<'_, P>]) {
    workers.iter_mut().for_each(|worker| Wires::take_in(&mut worker.driver.links));
}

/// The same for packets that found no room in rings.
pub(crate) fn settle<P: Probe>(workers: &mut [Worker<'_, P>]) {
    let Some(first) = workers.first().map(Worker::number) else { return };
    for from in 0..workers.len() {
        for (to, held) in workers[from].driver.links.carrier.take_held() {
            Wires::put_held(&mut workers[to - first].driver.links, held);
        }
    }
    for worker in workers {
        if worker.driver.links.carrier.datagrams.is_some() {
            Datagrams::settle(&mut worker.driver.links);
        }
        Driver::end(&mut worker.driver);
    }
}

/// How late everything was, of all kinds and workers together.
pub(crate) fn all_lateness(noted: &[Noted]) -> Lateness {
    let mut all = Lateness::default();
    noted.iter().flat_map(|of| &of.lateness[..CROSSING]).for_each(|kind| all.add(kind));
    all
}

#[cfg(test)]
mod tests;
