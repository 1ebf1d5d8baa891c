//! The program of a crate with transports of its own, which Clearway's commands start in the place of their own
//! simulator.
//!
//! A program is asked one thing and answers it: it has a Unix socket as its standard input, reads a line of JSON
//! ([`Request`]), and writes lines of JSON ([`Reply`]), of which the first says what it is. The values of a result's
//! columns follow behind the last line, as they are in memory. It needs nothing else from outside: standard output and
//! standard error are free for a transport's author, who wants to print something. When the other end says nothing more
//! (the command was interrupted, or is gone), the run ends at a consistent point, with the results so far.
//!
//! Scenarios are read here, by the same reader as in the command, so that a transport's settings are checked by its own
//! types and errors have the same form.

mod reply;
mod request;

use std::any::Any;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use contract::Scheme;
use run::{Estimate, Plan, Progress};
use scenario::ScenarioError;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use sim::capture::wanted;
use sim::{Capturing, Execution};
use units::Problem;

pub use reply::{Reply, Said};
pub use request::{Asked, Read, Request, Simulate};

/// The version of what a command and a program say to each other.
pub const PROTOCOL: u32 = 1;

/// How often a run tells how far it is.
const TELL: Duration = Duration::from_millis(100);

/// The simulator, to which transports are added. See [the crate's page](crate).
#[derive(Debug, Default)]
pub struct Engine {
    problem: Option<Problem>,
}

impl Engine {
    /// The simulator with Clearway's own transports.
    pub fn new() -> Engine {
        Engine::default()
    }

    /// Adds a transport. In scenarios it has this name, and `C` reads its settings.
    pub fn transport<C>(mut self, name: &'static str) -> Engine
    where
        C: Scheme + Default + Serialize + DeserializeOwned + JsonSchema + Send + Sync + 'static,
    {
        self.problem = self.problem.or(catalogue::register::<C>(name).err());
        self
    }

    /// Answers the command that has started this program.
    pub fn main(self) -> ExitCode {
        let names = catalogue::registered().join(", ");
        let socket = std::io::stdin().as_fd().try_clone_to_owned().map(UnixStream::from);
        // Anything but a socket has no address.
        let socket = socket.and_then(|socket| socket.peer_addr().map(|_| socket));
        let Ok(socket) = socket else {
            eprintln!(
                "This program runs scenarios with the transport {names} for Clearway's commands. Name its crate's \
                 folder in a scenario, such as transports = {{ {names} = \"FOLDER\" }}, and run `clearway run`."
            );
            return ExitCode::from(2);
        };
        match serve(socket, self.problem, &heed_panics()) {
            Ok(()) => ExitCode::SUCCESS,
            // The command is gone, and with it whoever could read an error.
            Err(_) => ExitCode::FAILURE,
        }
    }
}

/// Answers one request.
fn serve(socket: UnixStream, problem: Option<Problem>, panics: &Panics) -> std::io::Result<()> {
    let mut from = BufReader::new(socket.try_clone()?);
    let mut to = BufWriter::new(socket);
    reply::line(&mut to, &Reply::engine())?;
    let mut line = String::new();
    from.read_line(&mut line)?;
    let stopped = Arc::new(AtomicBool::new(false));
    watch_for_the_end(from, stopped.clone());
    let answered = catch_unwind(AssertUnwindSafe(|| match problem {
        Some(problem) => Err(refused(format!("its transport {problem}"))),
        None => answer(&line, &stopped, &mut to),
    }));
    match answered {
        Ok(Ok(said)) => reply::said(&mut to, &said)?,
        Ok(Err(error)) => reply::line(&mut to, &Reply::of(error))?,
        Err(panic) => {
            let noted = panics.lock().unwrap_or_else(PoisonError::into_inner).take();
            reply::line(&mut to, &Reply::Panic(noted.unwrap_or_else(|| words(&*panic))))?;
        }
    }
    to.flush()?;
    // What was written still arrives, and nobody waits for more.
    to.get_ref().shutdown(Shutdown::Both)
}

/// Sets a flag when the other end says nothing more.
#[expect(clippy::disallowed_methods, reason = "it waits beside the run, and touches nothing of it")]
fn watch_for_the_end(mut from: BufReader<UnixStream>, stopped: Arc<AtomicBool>) {
    std::thread::spawn(move || {
        let mut rest = [0; 64];
        while std::io::Read::read(&mut from, &mut rest).is_ok_and(|bytes| bytes > 0) {}
        stopped.store(true, Ordering::Relaxed);
    });
}

/// What was noted of the first panic.
type Panics = Arc<Mutex<Option<String>>>;

/// Notes the first panic, with its place in the transport's code, and prints none: the command says it.
fn heed_panics() -> Panics {
    let noted = Panics::default();
    let (first, before) = (noted.clone(), std::panic::take_hook());
    std::panic::set_hook(Box::new(move |panic| {
        let place = panic.location().map_or_else(String::new, |at| format!("{}:{}: ", at.file(), at.line()));
        let mut first = first.lock().unwrap_or_else(PoisonError::into_inner);
        first.get_or_insert_with(|| format!("{place}{}", words(panic.payload())));
        if std::env::var_os("RUST_BACKTRACE").is_some() {
            before(panic);
        }
    }));
    noted
}

fn words(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("it panicked").to_owned()
}

/// An error that has no place in a scenario.
fn refused(message: String) -> ScenarioError {
    ScenarioError { source: String::new(), line: None, key: String::new(), message }
}

fn answer(line: &str, stopped: &AtomicBool, to: &mut impl Write) -> Result<Said, ScenarioError> {
    let request: Request =
        serde_json::from_str(line).map_err(|error| refused(format!("it was asked what it does not know: {error}")))?;
    let source = request.scenario.source();
    let read = source.read()?;
    let located = |problem| source.locate(problem);
    let mut watch = teller(to, stopped);
    match request.asked {
        Asked::Read => Ok(Said::Read {
            toml: read.to_toml(),
            name: read.name.clone(),
            transports: read.carriers().transports.into_iter().map(|transport| transport.name()).collect(),
        }),
        Asked::Check { memory_bytes_max } => {
            let plan = Plan::within(&read, memory_bytes_max).map_err(located)?;
            Ok(Said::Check { hosts: plan.fabric.hosts, flows: plan.flows.len() })
        }
        Asked::Foresee { probe_cpu_s, memory_bytes_max } => {
            Ok(Said::Foreseen(crate::foresee(&read, probe_cpu_s, memory_bytes_max).map_err(located)?))
        }
        Asked::Estimate { memory_bytes_max } => {
            let result = fluid::estimate_within(&read, memory_bytes_max, watch).map_err(located)?;
            Ok(Said::result(&result.info, result.scenario_toml, result.tables, Vec::new()))
        }
        Asked::Simulate(how) => simulate(&read, &how, &mut watch).map_err(located),
    }
}

fn simulate(
    scenario: &scenario::Scenario,
    how: &Simulate,
    watch: &mut dyn FnMut(Progress) -> bool,
) -> Result<Said, Problem> {
    let plan = Plan::within(scenario, how.memory_bytes_max)?;
    let capturing =
        |(places, most): &(_, u64)| Ok((Capturing::new(&plan, wanted(&plan, places, "pcap")?, *most), *most));
    let links = how.pcap.as_ref().map(capturing).transpose()?;
    if let Some(most) = how.memory_bytes_max {
        let estimate = Estimate::of(&plan);
        match &links {
            Some((links, packets)) => estimate.capturing(&plan, links.links(), *packets),
            None => estimate,
        }
        .check_memory(&plan, most)?;
    }
    let links = links.map(|(links, _)| links);
    let execution = Execution { threads: how.threads, parts: how.parts };
    let result = sim::run_captured(&plan, execution, links.as_ref(), watch);
    let captured = links.map(|links| links.contents(&plan)).transpose()?.unwrap_or_default();
    let captured = captured.into_iter().map(|of| (of.blocks, of.is_cut_off)).collect();
    Ok(Said::result(&result.info, result.scenario_toml, result.tables, captured))
}

/// Tells the command how far a run is, and the run whether to stop.
#[expect(clippy::disallowed_methods, reason = "the real clock, for whoever looks on")]
fn teller(to: &mut impl Write, stopped: &AtomicBool) -> impl FnMut(Progress) -> bool {
    let mut told = Instant::now();
    move |at| {
        if told.elapsed() >= TELL {
            told = Instant::now();
            let at = Reply::At(at.now.ps(), at.horizon.ps(), at.flows_done, at.flows, at.fraction());
            if reply::line(to, &at).is_err() {
                return true;
            }
        }
        stopped.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests;
