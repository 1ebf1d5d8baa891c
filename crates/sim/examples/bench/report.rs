//! The table that people read and the JSON that programs do.

use serde::Serialize;

use crate::figures::Figures;
use crate::jobs::Job;
use crate::machine::Machine;
use crate::peer::Peer;

/// A line of the bench with what is computed from its figures.
#[derive(Serialize)]
pub struct Line {
    pub name: String,
    pub title: String,
    #[serde(flatten)]
    pub figures: Figures,
    pub hops_per_cpu_s: f64,
    /// Its speed over that of the reference, as measured just before its group.
    pub ratio: f64,
    pub events_per_hop: f64,
    /// Peak memory over hosts, and over flows: each as if the other took none.
    pub bytes_a_host: f64,
    pub bytes_a_flow: f64,
}

/// All that a bench found out.
#[derive(Serialize)]
pub struct Report {
    pub commit: String,
    pub date: String,
    pub machine: Machine,
    pub quick: bool,
    pub reference: &'static str,
    pub lines: Vec<Line>,
    pub peers: Vec<Peer>,
    /// What follows from several lines together.
    pub conclusions: Vec<String>,
}

impl Line {
    pub fn new(job: &Job, figures: Figures, reference_hops_per_cpu_s: f64) -> Line {
        let peak = figures.peak_bytes as f64;
        Line {
            name: job.name.clone(),
            title: job.title.clone(),
            hops_per_cpu_s: figures.hops_per_cpu_s(),
            ratio: figures.hops_per_cpu_s() / reference_hops_per_cpu_s,
            events_per_hop: figures.events as f64 / figures.hops as f64,
            bytes_a_host: peak / f64::from(figures.hosts),
            bytes_a_flow: peak / figures.flows as f64,
            figures,
        }
    }

    /// The table's head, in two lines.
    pub fn head() -> String {
        let names = ["", "thr", "hops", "cpu", "wall", "hops/", "of the", "events", "peak", "a host", "a flow", ""];
        let units = ["", "", "", "s", "s", "cpu s", "144", "/hop", "MB", "KB", "KB", "digest"];
        format!("{}\n{}", Line::row(&names.map(str::to_owned)), Line::row(&units.map(str::to_owned)))
    }

    /// The line for people.
    pub fn shown(&self) -> String {
        let Figures { hops, cpu_s, wall_s, peak_bytes, threads, digest, .. } = &self.figures;
        Line::row(&[
            self.name.clone(),
            threads.to_string(),
            format!("{:.1}M", *hops as f64 / 1e6),
            format!("{cpu_s:.2}"),
            format!("{wall_s:.2}"),
            format!("{:.2}M", self.hops_per_cpu_s / 1e6),
            format!("{:.2}", self.ratio),
            format!("{:.2}", self.events_per_hop),
            format!("{:.0}", *peak_bytes as f64 / 1e6),
            format!("{:.0}", self.bytes_a_host / 1e3),
            format!("{:.1}", self.bytes_a_flow / 1e3),
            digest.clone(),
        ])
    }

    fn row(cells: &[String; 12]) -> String {
        let [name, threads, hops, cpu, wall, speed, ratio, events, peak, host, flow, digest] = cells;
        format!(
            "{name:<31} {threads:>3} {hops:>8} {cpu:>6} {wall:>6} {speed:>7} {ratio:>6} {events:>6} {peak:>6} \
             {host:>6} {flow:>8} {digest:>17}"
        )
    }
}

impl Report {
    fn line(&self, name: &str) -> Option<&Line> {
        self.lines.iter().find(|line| line.name == name)
    }

    /// Says what follows from several lines together.
    pub fn conclude(&mut self) {
        let mut said = Vec::new();
        if let [Some(one), Some(two)] =
            ["poisson-1024/dcpim", "poisson-1024/dcpim/2-threads"].map(|name| self.line(name))
        {
            let times = one.figures.wall_s / two.figures.wall_s;
            said.push(format!("Two threads on 1,024 hosts: {times:.2} times as fast by the wall clock."));
        }
        if let [Some(idle), Some(million)] = ["one-flow/dcpim", "million/dcpim"].map(|name| self.line(name)) {
            let a_host = idle.bytes_a_host / 1e3;
            let a_flow = million.figures.peak_bytes.saturating_sub(idle.figures.peak_bytes) as f64 / 1e6;
            said.push(format!(
                "Memory: {a_host:.0} KB a host of an idle fat-tree with its switches, {a_flow:.0} B a flow."
            ));
        }
        for peer in &self.peers {
            let Some(line) = self.line(&peer.name) else { continue };
            said.push(format!(
                "{}: htsim takes {:.1} CPU s ({} of {} flows finished), {:.1} times as long.",
                peer.name,
                peer.cpu_s,
                peer.finished,
                peer.flows,
                peer.cpu_s / line.figures.cpu_s
            ));
        }
        self.conclusions = said;
    }
}
