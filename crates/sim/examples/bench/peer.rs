//! The same job in htsim, if a build of it is given: flows as a connection matrix, its NDP on its own fat-tree.
//!
//! Links, delays, packets and queues are those of the scenario; what htsim's NDP decides itself stays as its authors
//! have it. `tests/peers/htsim.sh` fetches and builds it.

use std::fmt::Write;
use std::path::Path;
use std::process::Command;
use std::{env, fs, process};

use nix::sys::resource::UsageWho;
use run::Plan;
use serde::Serialize;

use crate::figures::cpu_s;
use crate::jobs::Job;

/// What htsim took for a job.
#[derive(Serialize)]
pub struct Peer {
    pub name: String,
    pub cpu_s: f64,
    /// Flows that it says have finished.
    pub finished: usize,
    pub flows: usize,
}

/// Runs a job in the htsim at `path`: the program `htsim_ndp`, or the folder that it is in.
pub fn measure(path: &Path, job: &Job, sets: &[(String, String)]) -> Peer {
    let program = if path.is_dir() { path.join("htsim_ndp") } else { path.to_owned() };
    let scenario = scenario::read(&job.text(), &job.name, sets).unwrap_or_else(|error| crate::fail(&error));
    let plan = Plan::new(&scenario).unwrap_or_else(|error| crate::fail(&error));
    let folder = env::temp_dir().join(format!("clearway-bench-{}", process::id()));
    let written = fs::create_dir_all(&folder).and_then(|()| fs::write(folder.join("flows.cm"), matrix(&plan)));
    written.unwrap_or_else(|error| crate::fail(&format!("{}: {error}", folder.display())));
    let fabric = &plan.fabric;
    let uplink = fabric.link(fabric.uplinks(units::HostId(0))[0]);
    let mtu = scenario.host.mtu.get();
    // The first window of NDP here: what is on the way and two queues.
    let window = plan.sites[0].bdp_bytes().div_ceil(mtu) + 16;
    let us = |time: units::Duration| format!("{}", time.ps() as f64 / 1e6);
    let before = cpu_s(UsageWho::RUSAGE_CHILDREN);
    let output = Command::new(&program)
        .current_dir(&folder)
        .args(["-tm", "flows.cm", "-nodes", &fabric.hosts.to_string(), "-tiers", "3"])
        .args(["-linkspeed", &(uplink.rate.bps() / 1_000_000).to_string()])
        .args(["-hop_latency", &us(uplink.propagation)])
        .args(["-switch_latency", &us(fabric.delay_after(fabric.uplinks(units::HostId(0))[0]))])
        // htsim counts no headers: as many packets, then, of the payload's size. Queues of 8 packets are NDP's own.
        .args(["-mtu", &(mtu - scenario.host.header.get()).to_string(), "-q", "8", "-cwnd", &window.to_string()])
        .args(["-strat", "perm", "-end", "1000000"])
        .output()
        .unwrap_or_else(|error| crate::fail(&format!("{}: {error}", program.display())));
    let cpu_s = cpu_s(UsageWho::RUSAGE_CHILDREN) - before;
    // What is left there is a log of hundreds of megabytes at worst.
    let _ = fs::remove_dir_all(&folder);
    if !output.status.success() {
        crate::fail(&format!("{}: {}", program.display(), String::from_utf8_lossy(&output.stderr).trim()));
    }
    let finished = String::from_utf8_lossy(&output.stdout).lines().filter(|line| line.contains("finished at")).count();
    Peer { name: job.name.clone(), cpu_s, finished, flows: plan.flows.len() }
}

/// The flows as htsim reads them.
fn matrix(plan: &Plan) -> String {
    let mut text = format!("Nodes {}\nConnections {}\n", plan.fabric.hosts, plan.flows.len());
    for (index, flow) in plan.flows.iter().enumerate() {
        let (src, dst, start) = (flow.src.0, flow.dst.0, flow.start.ps());
        writeln!(text, "{src}->{dst} id {} start {start} size {}", index + 1, flow.bytes).expect("a string takes all");
    }
    text
}
