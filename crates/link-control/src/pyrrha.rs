//! Pyrrha (Liu et al., NSDI 2025): flow control by congestion root. It isolates congested flows and pauses no others.
//!
//! A port whose output queue exceeds `K_pause` one-hop bandwidth-delay products nominates itself as a congestion root
//! and tells the upstream ports that feed it to PAUSE traffic through it (`switch`, section 4.1). An upstream port that
//! hears of a root computes the whole onward path of each packet ([`node::onward_path`], section 4.2) and puts packets
//! that will pass the root into an isolation queue. The root pauses and resumes this queue, which in turn pauses ports
//! further upstream, up to the hosts (`nic`). So only traffic that contributes to congestion waits for it (Theorem
//! 3.1), however far congestion spreads.
//!
//! A port that has nominated itself and then hears of a new root further downstream was a false root: it abdicates, and
//! MERGE dissolves its congestion tree. Isolation queues form a hierarchy by distance to the root, from near to far,
//! followed by the output queue (`egress`, section 4.3). For switches without hierarchies there is a single tier with a
//! queue for each set of roots, and order marks (appendix C). [`State`] is Figure 6.
//!
//! Points that the paper leaves open are decided in comments where they matter and listed in `docs/schemes/pyrrha.md`.

use std::sync::Arc;

use node::link::{NicControl, QueueDiscipline};
use node::packet::CLASSES;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Duration, HostId, PortId, Problem, SwitchId};

use contract::link_control::{LinkScheme, LinkView, Promise, check_classes, class_mask};
use contract::{About, Compared, HeaderFormat, headers_of};

pub mod departures;
pub mod frame;
pub mod regular;
pub mod resources;

mod egress;
mod nic;
mod state;
mod switch;
mod upstream;

pub use departures::{Departure, Departures};
pub use state::{Change, State};

/// Configuration of Pyrrha.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Queue length above which a port pauses, in one-hop bandwidth-delay products: the rate of the port times the
    /// longest round trip to a neighbour whose packets wait in the queue or are held for it. Default: 2.
    pub k_pause: f64,
    /// Queue length at which it resumes, in one-hop bandwidth-delay products. Default: 1.
    pub k_resume: f64,
    /// Whether the congestion tree of a false root merges into that of the true root. Default: true.
    pub merging: bool,
    /// How isolation queues are arranged. Default: `hierarchy`.
    pub tiers: Tiers,
    /// Which ports may nominate themselves as congestion roots. Default: `all`.
    pub roots: Roots,
    /// Isolation queues of each port. When all are in use, roots share queues (section 6). Default: 100.
    pub queues: u16,
    /// Whether hosts take part and pause single flows. Default: true.
    pub hosts: bool,
    /// Departures from the paper: a list, or "published" for those of the authors' program. Default: none.
    pub departures: Departures,
    /// The classes that are isolated and paused. Other classes are always sent; class 0 carries acknowledgements and
    /// other control packets. Default: 1 to 7.
    pub classes: Vec<u8>,
}

impl Config {
    /// The isolated classes, as a bit mask.
    fn mask(&self) -> u8 {
        class_mask(&self.classes)
    }
}

/// How isolation queues are arranged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Tiers {
    /// A queue for each root, in levels by distance (section 4.3).
    #[default]
    Hierarchy,
    /// A queue for each set of roots that flows pass (appendix C).
    Single,
}

/// Which ports may nominate themselves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Roots {
    /// All ports. Under adaptive balancing only ports to hosts, since no other port is certain to be on a path (section
    /// 4.2).
    #[default]
    All,
    /// Only ports that lead down, on a fabric with tiers: `ONLY_DOWN_PORT_ENABLE` of the authors' program.
    Down,
    /// Only ports at most two hops from the destination: "Pyrrha (downstream)" (appendix C.2).
    Downstream,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            k_pause: 2.0,
            k_resume: 1.0,
            merging: true,
            tiers: Tiers::default(),
            roots: Roots::default(),
            queues: 100,
            hosts: true,
            departures: Departures::default(),
            classes: (1..CLASSES as u8).collect(),
        }
    }
}

impl LinkScheme for Config {
    fn about(&self) -> About {
        About {
            title: "Pyrrha",
            source: "Liu et al., NSDI 2025",
            summary: "A port where congestion has its root pauses the traffic that goes through it, hop by hop, and \
                      no other traffic.",
            needs: "switches: path calculation, a table of congestion roots, isolation queues; hosts: NICs that pause \
                    single flows",
        }
    }

    fn compared(&self) -> Compared {
        Compared::With("rdma")
    }

    fn frames(&self) -> &'static dyn HeaderFormat {
        headers_of::<frame::Frame>()
    }

    fn check(&self) -> Result<(), Problem> {
        for (key, value) in [("k_pause", self.k_pause), ("k_resume", self.k_resume)] {
            if !(value > 0.0 && value <= 10_000.0) {
                return Err(Problem::new(key, format!("{value} is not above 0 and at most 10000")));
            }
        }
        if self.k_resume > self.k_pause {
            let message =
                format!("{} is above k_pause, {}: a queue would resume before it pauses", self.k_resume, self.k_pause);
            return Err(Problem::new("k_resume", message));
        }
        if self.queues == 0 {
            return Err(Problem::new("queues", "with 0 isolation queues no flow can be isolated; write at least 1"));
        }
        check_classes(&self.classes, "names no class; name at least one, or leave flow_control out")
    }

    fn advice(&self) -> Vec<Problem> {
        let has = |departure| self.departures.has(departure);
        let idle = [
            (
                has(Departure::MergeAtDownPorts) && !self.merging,
                "merge_at_down_ports has no effect with merging = false; leave it out",
            ),
            (
                has(Departure::UplinksAboveMean) && self.roots != Roots::All,
                "uplinks_above_mean has no effect if no uplink may be a root; leave it out",
            ),
        ];
        idle.iter().filter(|idle| idle.0).map(|idle| Problem::new("departures", idle.1)).collect()
    }

    fn switch_control(&self, view: &LinkView<'_>, id: SwitchId) -> Box<dyn QueueDiscipline> {
        let fabric = view.fabric;
        let node = fabric.switch_node(id);
        let adaptive = view.balancing.iter().any(|balancing| !balancing.by_hash());
        let has_hosts = |node: units::NodeId| {
            fabric.ports[node.index()].iter().any(|link| fabric.as_host(fabric.link(*link).to).is_some())
        };
        let links = || fabric.ports[node.index()].iter().map(|link| fabric.link(*link));
        let trips: Vec<Duration> = (0..links().count()).map(|port| view.round_trip(node, PortId::from(port))).collect();
        let mut distinct = trips.clone();
        distinct.sort_unstable();
        distinct.dedup();
        let rank = |trip: &Duration| distinct.partition_point(|other| other < trip) as u16;
        let ranks: Arc<[u16]> = trips.iter().map(rank).collect();
        let egress = |link: &fabric::Link| {
            let limits = |trip: &Duration| {
                let hop = link.rate.bytes_in(*trip) as f64;
                let length = |k: f64| ((k * hop) as u64).clamp(view.mtu_bytes, u64::from(u32::MAX)) as u32;
                egress::Limits { pause: length(self.k_pause), resume: length(self.k_resume) }
            };
            let last = link.tier == fabric::Tier::ToHost;
            let nominates = match self.roots {
                _ if adaptive => last,
                Roots::All => true,
                Roots::Down => last || link.tier == fabric::Tier::Down,
                Roots::Downstream => last || link.tier == fabric::Tier::Down && has_hosts(link.to),
            };
            egress::Egress::new(egress::PortParams {
                ranks: ranks.clone(),
                limits: distinct.iter().map(limits).collect(),
                nominates,
                up: link.tier == fabric::Tier::Up,
                ingresses: self.departures.has(Departure::PauseByIngress).then(|| links().count()),
                queues: self.queues,
                packet_time: link.rate.transmit(view.mtu_bytes),
            })
        };
        let place = switch::PortParams {
            id,
            node,
            switches: fabric.switches,
            downstream: view.downstream.clone(),
            ports: links().map(egress).collect(),
            to_host: links().map(|link| fabric.as_host(link.to).is_some()).collect(),
        };
        Box::new(switch::SwitchPart::new(self, place))
    }

    fn held_classes(&self) -> u8 {
        self.mask()
    }

    fn nic_control(&self, view: &LinkView<'_>, host: HostId, port: PortId) -> Option<Box<dyn NicControl>> {
        let (switches, downstream) = (view.fabric.switches, view.downstream.clone());
        let hop = view.of_ports(host, |node, port| view.hop_bdp_bytes(node, port)) as f64;
        let part = nic::NicPart {
            host,
            port,
            classes: self.mask(),
            switches,
            downstream,
            paused: Vec::new(),
            epoch: 0,
            pause_bytes: (self.k_pause * hop) as u64,
            resume_bytes: (self.k_resume * hop) as u64,
            is_root: false,
        };
        self.hosts.then(|| Box::new(part) as Box<dyn NicControl>)
    }

    /// Even a false root holds only packets that pass it, with or without merging. In a single tier a queue belongs to
    /// a set of roots. No promise is made for a queue that several roots share because none was free.
    fn promise(&self) -> Option<Promise> {
        Some(Promise { on_path: true, queue_a_root: self.tiers == Tiers::Hierarchy })
    }

    /// The output queue of a root is never paused (section 4.5). If two roots share a queue, traffic through one waits
    /// for the other, and such waits may form a circle.
    fn deadlock_free(&self, sharing: bool) -> bool {
        !sharing
    }
}
