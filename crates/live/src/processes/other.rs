//! Every process but the first.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration as Span;

use driver::{Cut, Probe, Probes};
use node::wire::Reader;
use run::Plan;
use units::Problem;

use super::ends::Shape;
use super::socket;
use crate::clock::Clock;
use crate::network::{self, Network};
use crate::several;
use crate::shared::{Lines, Shared};
use crate::worker::Worker;

/// How often it looks whether the first process is still there.
const LOOK: Span = Span::from_millis(20);

/// Takes part in a run that another process has begun, which is at the other end of this Unix socket.
///
/// # Errors
/// Where that process says nothing that makes sense, or is gone.
pub fn take_part(socket: OwnedFd) -> Result<(), Problem> {
    let stream = UnixStream::from(socket);
    let wrong = |error: io::Error| Problem::new("live.processes", format!("the first process: {error}"));
    let message = socket::receive(&stream).map_err(wrong)?;
    let mut from = Reader::new(&message, "setup");
    let numbers = (|| Ok::<_, node::wire::Malformed>((from.u32()? as usize, from.u32()? as usize)))();
    let (me, processes) = numbers.map_err(|error| wrong(io::Error::other(error)))?;
    let text = std::str::from_utf8(from.rest()).map_err(|error| wrong(io::Error::other(error)))?;
    let scenario = scenario::read(text, "scenario", &[]).map_err(|error| Problem::new(error.key, error.message))?;
    let plan = Plan::new(&scenario)?;
    let cut = Cut::new(&plan, plan.scenario.live.workers as usize * processes);
    match Probes::new(&plan).is_empty() {
        true => live(&plan, cut, me, processes, &stream, || ()),
        false => live(&plan, cut, me, processes, &stream, || Probes::new(&plan)),
    }
    .map_err(wrong)
}

fn live<P: Probe>(
    plan: &Plan,
    cut: Cut,
    me: usize,
    processes: usize,
    stream: &UnixStream,
    probe: impl FnMut() -> P,
) -> io::Result<()> {
    let shape = Shape::of(plan, &cut, processes);
    let mut regions = Vec::new();
    for process in 0..processes {
        let file = socket::receive_file(stream)?;
        let lines = Shared::map(&file, shape.board_lines(process), process == me)?;
        regions.push(Arc::new(Lines::Shared(lines)));
    }
    let mut files: Vec<Option<(File, File)>> = Vec::new();
    for other in 0..processes {
        let both = || Ok::<_, io::Error>((socket::receive_file(stream)?, socket::receive_file(stream)?));
        files.push(if other == me { None } else { Some(both()?) });
    }
    let clock = Clock::new(plan.scenario.live.dilation, plan.lookahead);
    let mut network = Network::far(plan, clock, cut, me, regions, shape.far(me, &files)?);
    let mut workers = network.workers(plan, u64::MAX, probe);
    let Some((clock, board)) = workers.first().map(Worker::shared) else {
        return Err(io::Error::other("there is nothing to do"));
    };
    let begin = || -> io::Result<()> {
        socket::send(stream, b"ready")?;
        let began = socket::receive(stream)?;
        let began = began.as_slice().try_into().map_err(|_| io::Error::other("no time to begin at"))?;
        clock.start_at(u64::from_le_bytes(began));
        Ok(())
    };
    let mut begun = Ok(());
    let start = || {
        begun = begin();
        if begun.is_err() {
            board.quit();
        }
    };
    network::drive(&mut workers, board, start, LOOK, || {
        if socket::is_gone(stream) {
            board.quit();
        }
    });
    begun?;
    let meet = || socket::send(stream, b"here").and_then(|()| socket::receive(stream)).map(drop);
    meet()?;
    network::take_in(&mut workers);
    meet()?;
    workers.iter_mut().for_each(|worker| _ = worker.driver.links.carrier.is_held_up());
    meet()?;
    network::take_in(&mut workers);
    network::settle(&mut workers);
    let (_, end, _) = board.outcome();
    socket::send(stream, &several::speak(plan, clock, workers, end))
}
