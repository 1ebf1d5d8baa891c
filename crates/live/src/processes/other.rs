//! Every process but the first.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration as Span;

use driver::{Cut, Probe};
use node::wire::Reader;
use run::Plan;
use units::Problem;

use super::ends::Shape;
use super::first::READY;
use super::socket;
use crate::mail::BranchMail;
use crate::network::{self, FarEnds, Network};
use crate::outside::{Outside, Share};
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
    let numbers = (|| Ok::<_, node::wire::Malformed>((from.u32()? as usize, from.u32()? as usize, from.u8()? != 0)))();
    let (me, processes, programs) = numbers.map_err(|error| wrong(io::Error::other(error)))?;
    let text = std::str::from_utf8(from.rest()).map_err(|error| wrong(io::Error::other(error)))?;
    let scenario = scenario::read(text, "scenario", &[]).map_err(|error| Problem::new(error.key, error.message))?;
    let plan = several::plan(&scenario, true, programs)?;
    let cut = Cut::new(&plan, plan.scenario.live.workers as usize * processes);
    let given = receive_memory(&plan, &cut, me, processes, &stream).map_err(wrong)?;
    let mail = if programs { Some(socket::receive_file(&stream).map_err(wrong)?) } else { None };
    let mail = mail.map(|file| UnixStream::from(OwnedFd::from(file)));
    let outside = Outside::open(&plan, &cut, Share::Process(me, processes)).inspect_err(|problem| {
        // Whoever can't be told is gone, and ends this one, too.
        let _ = socket::send(&stream, problem.to_string().as_bytes());
    })?;
    let probes = outside.probes(&plan);
    match probes().is_empty() {
        true => live(&plan, cut, me, outside, given, (&stream, mail), || ()),
        false => live(&plan, cut, me, outside, given, (&stream, mail), probes),
    }
    .map_err(wrong)
}

/// Memory of the run: what each process says on the board, and the ends of rings.
type Given = (Vec<Arc<Lines>>, FarEnds);

fn receive_memory(plan: &Plan, cut: &Cut, me: usize, processes: usize, stream: &UnixStream) -> io::Result<Given> {
    let shape = Shape::of(plan, cut, processes);
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
    Ok((regions, shape.far(me, &files)?))
}

fn live<P: Probe>(
    plan: &Plan,
    cut: Cut,
    me: usize,
    outside: Outside,
    given: Given,
    (stream, mail): (&UnixStream, Option<UnixStream>),
    probe: impl FnMut() -> P,
) -> io::Result<()> {
    let mut network = Network::far(plan, cut, me, outside, given);
    let branch = mail.is_some().then(|| network.branch(plan));
    let mut workers = network.workers(plan, u64::MAX, probe);
    network::open(&mut workers, branch.as_ref());
    let start = |(stream, branch)| BranchMail::start(&branch, socket::connection(stream)?);
    let mut mail = mail.zip(branch).map(start).transpose()?;
    let Some((clock, board)) = workers.first().map(Worker::shared) else {
        return Err(io::Error::other("there is nothing to do"));
    };
    let begin = || -> io::Result<()> {
        socket::send(stream, READY)?;
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
        if socket::is_gone(stream) || mail.as_ref().is_some_and(|mail| mail.wrong().is_some()) {
            board.quit();
        }
    });
    begun?;
    if let Some(wrong) = mail.as_ref().and_then(BranchMail::wrong) {
        return Err(io::Error::other(format!("it said of messages what can't be: {wrong}")));
    }
    mail.iter_mut().for_each(BranchMail::finish);
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
