//! How fast the simulator is and how much memory it takes: `make bench`, or
//! `cargo run --release -p clearway-sim --example bench -- [NAME...] [OPTION...]`.
//!
//! Each line is a scenario in a process of its own, so that peak memory is that scenario's and no other's. Speed is in
//! packet-hops, a packet (data or control) over one link, per second of CPU time (user and system, all threads) from
//! the scenario to its tables. A machine may be shared, and its caches are shared more often: so what counts is the
//! ratio to the reference, dcPIM on 144 hosts, which runs again before each group of lines.
//!
//! R2C2's rate computation comes last; with the name `rates`, alone.

#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

mod figures;
mod jobs;
mod machine;
mod peer;
mod rates;
mod report;

use std::fmt::Display;
use std::path::PathBuf;

use figures::{With, best};
use jobs::{Job, REFERENCE, jobs};
use machine::Machine;
use report::{Line, Report};

const USAGE: &str = "\
bench [NAME...] [OPTION...]
  NAME            lines to run, such as storm, permutation-1024/ndp or rates; all without
  --list          print the names
  --quick         fewer and shorter lines, in a minute
  --repeat N      run each so often; the best counts (default: 2, long ones 1)
  --threads N     run each with so many threads (default: 1, or what its name says)
  --set KEY=VALUE set a key of every scenario but the reference (repeatable)
  --json FILE     write the figures, the machine and the commit
  --peer PATH     time htsim too: its htsim_ndp, as tests/peers/htsim.sh builds it
  --one NAME      run one line here and print its figures as JSON";

/// That of the Python module.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// What the command line says.
#[derive(Default)]
struct Arguments {
    names: Vec<String>,
    list: bool,
    quick: bool,
    repeat: Option<usize>,
    threads: Option<usize>,
    sets: Vec<(String, String)>,
    json: Option<PathBuf>,
    peer: Option<PathBuf>,
    one: Option<String>,
}

fn main() {
    let arguments = Arguments::read(std::env::args().skip(1));
    if arguments.list {
        jobs().iter().for_each(|job| println!("{}", job.name));
        return println!("rates");
    }
    if let Some(name) = &arguments.one {
        let jobs = jobs();
        let job = jobs.iter().find(|job| job.name == *name).unwrap_or_else(|| fail(&format!("no line {name}")));
        return figures::measure(job, &arguments.with(job));
    }
    bench(&arguments);
}

impl Arguments {
    fn read(mut words: impl Iterator<Item = String>) -> Arguments {
        let mut read = Arguments::default();
        while let Some(word) = words.next() {
            let mut value = || words.next().unwrap_or_else(|| fail(&format!("{word} needs a value\n{USAGE}")));
            match word.as_str() {
                "--help" | "-h" => {
                    println!("{USAGE}");
                    std::process::exit(0)
                }
                "--list" => read.list = true,
                "--quick" => read.quick = true,
                "--repeat" => read.repeat = Some(number(&value())),
                "--threads" => read.threads = Some(number(&value())),
                "--json" => read.json = Some(value().into()),
                "--peer" => read.peer = Some(value().into()),
                "--one" => read.one = Some(value()),
                "--set" => {
                    let set = value();
                    let (key, value) = set.split_once('=').unwrap_or_else(|| fail(&format!("{set}: KEY=VALUE")));
                    read.sets.push((key.to_owned(), value.to_owned()));
                }
                _ if word.starts_with('-') => fail(&format!("{word}?\n{USAGE}")),
                _ => read.names.push(word),
            }
        }
        read
    }

    /// What a job is run with.
    fn with(&self, job: &Job) -> With {
        With { threads: self.threads.unwrap_or(job.threads), quick: self.quick, sets: self.sets.clone() }
    }

    /// The jobs that were chosen. A name chooses the lines that it is, and those that it begins.
    fn chosen(&self) -> Vec<Job> {
        let mut jobs = jobs();
        let is = |job: &Job, name: &str| job.name == name || job.name.starts_with(&format!("{name}/"));
        for name in self.names.iter().filter(|name| *name != "rates") {
            if !jobs.iter().any(|job| is(job, name)) {
                fail(&format!("no line is called {name}; --list prints the names"));
            }
        }
        jobs.retain(|job| match self.names.is_empty() {
            true => !self.quick || job.quick.is_some(),
            false => self.names.iter().any(|name| is(job, name)),
        });
        jobs
    }
}

fn number(word: &str) -> usize {
    word.parse().ok().filter(|number| *number > 0).unwrap_or_else(|| fail(&format!("{word}: a number from 1 on")))
}

/// Ends with a message.
fn fail(why: &impl Display) -> ! {
    eprintln!("bench: {why}");
    std::process::exit(2)
}

fn bench(arguments: &Arguments) {
    let chosen = arguments.chosen();
    let mut report = Report {
        commit: machine::commit(),
        date: machine::date(),
        machine: Machine::this(),
        quick: arguments.quick,
        reference: REFERENCE,
        lines: Vec::new(),
        peers: Vec::new(),
        conclusions: Vec::new(),
    };
    println!("{} of {}, {}", report.commit, report.date, report.machine.cpu);
    if !chosen.is_empty() {
        println!("{}", Line::head());
    }
    let mut reference = Reference::new();
    for group in chosen.chunk_by(|a, b| a.group == b.group) {
        let speed = reference.measure();
        for job in group {
            let repeat = arguments.repeat.unwrap_or(if arguments.quick { 1 } else { job.repeat });
            let line = Line::new(job, best(job, &arguments.with(job), repeat), speed);
            println!("{}", line.shown());
            report.lines.push(line);
        }
    }
    for job in chosen.iter().filter(|job| job.peer) {
        let Some(path) = &arguments.peer else { continue };
        report.peers.push(peer::measure(path, job, &arguments.with(job).sets_of(job)));
    }
    println!();
    report.conclude();
    report.conclusions.iter().for_each(|said| println!("{said}"));
    if let Some(path) = &arguments.json {
        let text = serde_json::to_string_pretty(&report).expect("a report is JSON");
        std::fs::write(path, text + "\n").unwrap_or_else(|error| fail(&format!("{}: {error}", path.display())));
    }
    if arguments.names.iter().any(|name| name == "rates") || arguments.names.is_empty() && !arguments.quick {
        println!();
        rates::bench();
    }
}

/// The reference's speed at present: the better of its last two runs.
struct Reference {
    job: Option<Job>,
    before: f64,
}

impl Reference {
    fn new() -> Reference {
        Reference { job: jobs().into_iter().find(|job| job.name == REFERENCE), before: 0.0 }
    }

    fn measure(&mut self) -> f64 {
        let Some(job) = &self.job else { return f64::NAN };
        let now = best(job, &With { threads: 1, ..With::default() }, 1).hops_per_cpu_s();
        let better = now.max(self.before);
        self.before = now;
        better
    }
}
