//! What is measured: scenarios under the schemes that they are about.

use catalogue::{LinkControl, Transport};

/// The line that all others are compared with.
pub const REFERENCE: &str = "leaf-spine/dcpim";

/// A line of the bench.
#[derive(Clone, Debug)]
pub struct Job {
    /// What it is chosen by: its scenario, then the scheme, then the threads if not one.
    pub name: String,
    /// What it is, for people.
    pub title: String,
    /// Lines of a group stand together, each group after a new run of the reference.
    pub group: &'static str,
    /// The scenario without its schemes.
    pub toml: &'static str,
    pub transport: &'static str,
    pub flow_control: &'static str,
    pub threads: usize,
    /// How often it runs by default.
    pub repeat: usize,
    /// What makes it short, if `--quick` has it at all.
    pub quick: Option<&'static [(&'static str, &'static str)]>,
    /// Whether htsim can do the same job.
    pub peer: bool,
}

macro_rules! toml {
    ($name:literal) => {
        include_str!(concat!("scenarios/", $name, ".toml"))
    };
}

impl Job {
    fn new(group: &'static str, toml: &'static str, title: &str, scheme: &'static str) -> Job {
        Job {
            name: format!("{group}/{scheme}"),
            title: format!("{title}, {scheme}"),
            group,
            toml,
            transport: scheme,
            flow_control: "none",
            threads: 1,
            repeat: 2,
            quick: None,
            peer: false,
        }
    }

    /// A line about a flow control, under RDMA without rate control.
    fn under(self, flow_control: &'static str) -> Job {
        Job { transport: "rdma", flow_control, ..self }
    }

    fn on(self, threads: usize) -> Job {
        let name = format!("{}/{threads}-threads", self.name);
        Job { name, threads, ..self }
    }

    fn once(self) -> Job {
        Job { repeat: 1, ..self }
    }

    fn quick(self, sets: &'static [(&'static str, &'static str)]) -> Job {
        Job { quick: Some(sets), ..self }
    }

    /// The scenario's text, schemes and all.
    pub fn text(&self) -> String {
        format!("transport = \"{}\"\nflow_control = \"{}\"\n{}", self.transport, self.flow_control, self.toml)
    }
}

/// All lines, in their order.
pub fn jobs() -> Vec<Job> {
    let mut jobs = small();
    jobs.extend(large());
    // Of a build with fewer schemes.
    jobs.retain(|job| Transport::NAMES.contains(&job.transport) && LinkControl::NAMES.contains(&job.flow_control));
    jobs
}

/// Fabrics that fit the caches, under every scheme.
fn small() -> Vec<Job> {
    let mut jobs = Vec::new();
    for &transport in Transport::NAMES {
        let job = Job::new("leaf-spine", toml!("leaf-spine"), "144 hosts, web search 0.6", transport);
        jobs.push(if ["dcpim", "dctcp"].contains(&transport) { job.quick(&[]) } else { job });
    }
    let rpcs = |transport| Job::new("rpcs", toml!("rpcs"), "144 hosts, 128 KB RPCs 0.5", transport);
    jobs.extend(["harmony", "fastpass", "dcpim"].map(rpcs));
    let rack = |transport| Job::new("rack", toml!("rack"), "512 nodes of a rack, a flow each us", transport);
    jobs.extend(["r2c2", "newreno"].map(rack));
    let storm = |&control| Job::new("storm", toml!("storm"), "160 hosts, storm", control).under(control);
    jobs.extend(LinkControl::NAMES.iter().map(storm));
    jobs
}

/// Fabrics that do not, and bursts.
fn large() -> Vec<Job> {
    let poisson = || Job::new("poisson-1024", toml!("poisson-1024"), "1,024 hosts, web search 0.6", "dcpim");
    let mut jobs = vec![poisson().quick(&[("traffic.0.flows", "700")]), poisson().on(2)];
    jobs.push(Job::new("poisson-8192", toml!("poisson-8192"), "8,192 hosts, web search 0.6", "dcpim").once());
    let permutation = |transport| {
        let title = "1,024 hosts, permutation of 2 MB";
        Job::new("permutation-1024", toml!("permutation-1024"), title, transport).once()
    };
    let quick: &[(&str, &str)] = &[("traffic.0.sizes", "{ constant = \"300KB\" }")];
    jobs.push(Job { peer: true, ..permutation("ndp") }.quick(quick));
    jobs.extend([permutation("dcpim").quick(quick), permutation("dctcp").quick(quick)]);
    let ring = |transport| Job::new("ring-1024", toml!("ring-1024"), "1,024 hosts, ring of 64 KiB", transport);
    jobs.extend(["dcpim", "dctcp"].map(ring));
    let all_to_all =
        |transport| Job::new("all-to-all-1024", toml!("all-to-all-1024"), "1,024 hosts, all-to-all", transport);
    jobs.extend(["ndp", "dctcp"].map(all_to_all).map(Job::once));
    let incast = |transport| Job::new("incast-1024", toml!("incast-1024"), "1,024 hosts, incast 1,023:1", transport);
    jobs.extend(["ndp", "dcpim", "dctcp"].map(incast));
    let storm = |&control: &&'static str| {
        let job = Job::new("storm-1024", toml!("storm-1024"), "1,024 hosts, storm", control).under(control).once();
        if control == "pfc" { job.quick(&[("traffic.1.flows", "2500")]) } else { job }
    };
    jobs.extend(LinkControl::NAMES.iter().map(storm));
    jobs.push(Job::new("million", toml!("million"), "144 hosts, a million small flows", "dcpim").once());
    jobs.push(Job::new("one-flow", toml!("one-flow"), "1,024 hosts, one flow", "dcpim").once());
    jobs.push(Job::new("set-up-65536", toml!("set-up-65536"), "65,536 hosts, one flow", "dcpim").once());
    jobs.push(Job::new("planned-65536", toml!("planned-65536"), "65,536 hosts, a million flows", "dcpim").once());
    jobs
}
