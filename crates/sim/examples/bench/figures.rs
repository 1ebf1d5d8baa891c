//! What a run in a process of its own tells: speed, memory and the digest of its history.

use std::process::Command;
use std::time::Instant;

use nix::sys::resource::{Usage, UsageWho, getrusage};
use serde::{Deserialize, Serialize};

use crate::jobs::Job;

/// What a child found out.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Figures {
    pub hops: u64,
    pub events: u64,
    /// User and system, all threads, from the scenario to its tables.
    pub cpu_s: f64,
    pub wall_s: f64,
    /// The most memory that the process has had, as the kernel counts it.
    pub peak_bytes: u64,
    pub hosts: u32,
    pub flows: u64,
    pub flows_completed: u64,
    /// Threads that ran it.
    pub threads: usize,
    pub digest: String,
}

impl Figures {
    pub fn hops_per_cpu_s(&self) -> f64 {
        self.hops as f64 / self.cpu_s
    }
}

/// What a job is run with.
#[derive(Clone, Default)]
pub struct With {
    pub threads: usize,
    pub quick: bool,
    pub sets: Vec<(String, String)>,
}

impl With {
    /// The keys that are set over a job's scenario.
    pub fn sets_of(&self, job: &Job) -> Vec<(String, String)> {
        let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
        let quick = if self.quick { job.quick.unwrap_or_default() } else { &[] };
        quick.iter().map(owned).chain(self.sets.iter().cloned()).collect()
    }
}

/// In the child: runs a job and prints its [`Figures`] as JSON.
pub fn measure(job: &Job, with: &With) {
    let scenario =
        scenario::read(&job.text(), &job.name, &with.sets_of(job)).unwrap_or_else(|error| crate::fail(&error));
    let (cpu_before, began) = (cpu_s(UsageWho::RUSAGE_SELF), Instant::now());
    let result = clearway_sim::run(&scenario, with.threads, |_| false).unwrap_or_else(|error| crate::fail(&error));
    let (wall_s, cpu_s) = (began.elapsed().as_secs_f64(), cpu_s(UsageWho::RUSAGE_SELF) - cpu_before);
    let info = result.info;
    if let Some(finding) = info.audit.iter().find(|finding| !finding.ok) {
        crate::fail(&format!("the audit of {}: {finding:?}", job.name));
    }
    let figures = Figures {
        hops: info.packet_hops,
        events: info.events,
        cpu_s,
        wall_s,
        // Linux counts the peak in KiB.
        peak_bytes: usage(UsageWho::RUSAGE_SELF).max_rss() as u64 * 1024,
        hosts: info.hosts,
        flows: info.flows,
        flows_completed: info.flows_completed,
        threads: info.threads,
        digest: info.digest,
    };
    println!("{}", serde_json::to_string(&figures).expect("figures are JSON"));
}

/// Seconds of CPU, user and system, of this process or of the children that it has waited for.
pub fn cpu_s(who: UsageWho) -> f64 {
    let seconds = |time: nix::sys::time::TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 * 1e-6;
    let usage = usage(who);
    seconds(usage.user_time()) + seconds(usage.system_time())
}

fn usage(who: UsageWho) -> Usage {
    getrusage(who).expect("every process has its usage")
}

/// Runs a job in a child process, `repeat` times. The least CPU time and the least wall time count, since others may
/// use the machine; histories must be equal.
pub fn best(job: &Job, with: &With, repeat: usize) -> Figures {
    let mut runs = (0..repeat.max(1)).map(|_| child(job, with));
    let first = runs.next().expect("at least one");
    runs.fold(first, |best, run| {
        if best.digest != run.digest {
            crate::fail(&format!("two runs of {} differ: digests {} and {}", job.name, best.digest, run.digest));
        }
        let (cpu_s, wall_s) = (best.cpu_s.min(run.cpu_s), best.wall_s.min(run.wall_s));
        Figures { cpu_s, wall_s, peak_bytes: best.peak_bytes.min(run.peak_bytes), ..run }
    })
}

fn child(job: &Job, with: &With) -> Figures {
    let this = std::env::current_exe().expect("a program knows where it is");
    let mut command = Command::new(this);
    command.args(["--one", &job.name, "--threads", &with.threads.to_string()]);
    if with.quick {
        command.arg("--quick");
    }
    for (key, value) in &with.sets {
        command.args(["--set", &format!("{key}={value}")]);
    }
    let output = command.output().expect("it starts");
    if !output.status.success() {
        crate::fail(&format!("{}: {}", job.name, String::from_utf8_lossy(&output.stderr).trim()));
    }
    serde_json::from_slice(&output.stdout).expect("a child prints its figures")
}
