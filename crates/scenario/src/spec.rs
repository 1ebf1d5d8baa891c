//! The scenario type: read from TOML, checked as a whole, and written back with every default filled in.
//!
//! It holds everything that can change a result and nothing else. Unknown keys are refused (see [`read()`]). A setting
//! that has no effect in its scenario is a line of advice ([`Scenario::advice`]).

mod advice;
mod bounds;
mod check;
mod custom;
mod differ;
mod memory;
mod outside;
mod read;
mod resubmit;
mod timing;
mod words;

use std::collections::BTreeMap;

use catalogue::{LinkControl, Sharing, Transport};
use fabric::{FabricSpec, FailureSpec};
use node::cpu::CpuSpec;
use node::retry::RetrySpec;
use node::{Balancing, Buffer, MarkAt, Marking, Overflow};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Bytes, Duration, Rate, Tolerance};
use workload::{Job, Traffic};

use crate::{DecompositionSpec, EntitySpec, LiveSpec};

pub use custom::Programs;
use memory::MemorySpec;
pub use outside::{CrateSpec, Crates, outside};
pub use read::{ScenarioError, Source, read};
pub use resubmit::{Carriers, ResubmitPolicy};
pub use timing::Timing;

/// A scenario: everything that defines a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Scenario {
    /// Name of the scenario in tables and reports.
    pub name: String,
    /// Seed of all random numbers. Default: 1.
    pub seed: u64,
    /// Transport of every traffic class that names none.
    pub transport: Transport,
    /// Folders of crates with transports of your own, by the transports' names, such as `mine = "../mine"`; relative to
    /// the scenario's folder. Each has a program, which runs once you trust it: `clearway trust FOLDER`. Default: none.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub transports: BTreeMap<String, CrateSpec>,
    /// How long the run lasts and what it records.
    pub measure: Measure,
    /// The network: hosts, switches and links.
    pub fabric: FabricSpec,
    /// How a live run (`clearway live`) uses the machine; a simulation does not read it.
    #[serde(skip_serializing_if = "LiveSpec::is_default")]
    pub live: LiveSpec,
    /// How `level = "links"` combines links that are simulated alone; other levels do not read it.
    #[serde(skip_serializing_if = "DecompositionSpec::is_default")]
    pub decomposition: DecompositionSpec,
    /// Properties of all hosts.
    pub host: HostSpec,
    /// Properties of all switches. A key that is left out has the value that transports ask for.
    pub switch: SwitchSpec,
    /// Properties of all links.
    #[serde(skip_serializing_if = "LinkSpec::is_default")]
    pub link: LinkSpec,
    /// Hop-by-hop flow control, by which neighbours pause each other before queues overflow.
    pub flow_control: LinkControl,
    /// Time from a failure or repair until all switches forward by new routes. Default: 1ms. With `reroute_per_hop` or
    /// `reroute_compute_max` it is the time until the adjacent switches detect the change.
    pub reroute_delay: Duration,
    /// Time a switch takes to pass the news of a failure or repair to its neighbours. A switch that has not heard of it
    /// forwards by its old tables, so packets may loop. Hosts hear of it from their switch. Default: 0, all nodes hear
    /// at once.
    #[serde(skip_serializing_if = "is_zero")]
    pub reroute_per_hop: Duration,
    /// Longest time from when a switch learns of a failure or repair until it forwards by new tables. Each switch draws
    /// its own time once, uniformly between 0 and this. Default: 0.
    #[serde(skip_serializing_if = "is_zero")]
    pub reroute_compute_max: Duration,
    /// Granularity of transmission times, which are rounded down to whole multiples of it, as in a program with a
    /// coarser clock (ns-3 uses "1ns"). Default: 0, no rounding.
    #[serde(skip_serializing_if = "is_zero")]
    pub transmission_step: Duration,
    /// Whether hosts and clocks are ideal, or differ as real ones do: see docs/concepts.md. `host.jitter` and
    /// `link.clock_tolerance` say otherwise for one of them. Default: `real`.
    #[serde(skip_serializing_if = "Timing::is_default")]
    pub timing: Timing,
    /// Whether a simulation skips what repeats. Default: `off`.
    #[serde(skip_serializing_if = "FastForward::is_off")]
    pub fast_forward: FastForward,
    /// Failures and repairs of links and switches.
    pub failure: Vec<FailureSpec>,
    /// How entities share the network. Default: `physical_queue`, no mechanism.
    pub sharing: Sharing,
    /// Entities: groups of traffic whose results are kept apart, with their bandwidth requests.
    pub entity: Vec<EntitySpec>,
    /// Traffic classes: who sends what to whom, and when.
    pub traffic: Vec<Traffic<Transport>>,
    /// Training jobs: what ranks compute and send, and which steps wait for which. Each is a class of traffic, too.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub job: Vec<Job<Transport>>,
    /// Keys that were written by an earlier name, each with the name that it has now.
    #[serde(skip)]
    pub renamed: Vec<units::Problem>,
}

/// A class of traffic as results know it: of a `[[traffic]]` or a `[[job]]` table, or of `live.sockets`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Class<'a> {
    /// Its name.
    pub name: &'a str,
    /// The transport that its messages are submitted to first.
    pub transport: &'a Transport,
}

impl Scenario {
    /// The classes of traffic, in the order of their numbers: those of `[[traffic]]`, then those of `[[job]]`, then
    /// those of `live.sockets`.
    pub fn classes(&self) -> impl Iterator<Item = Class<'_>> + Clone {
        let traffic = self.traffic.iter().map(|of| (&of.name, &of.transport));
        let jobs = self.job.iter().map(|of| (&of.name, &of.transport));
        let sockets = self.live.sockets.iter().map(|(name, of)| (name, &of.transport));
        let all = traffic.chain(jobs).chain(sockets);
        all.map(|(name, own)| Class { name, transport: own.as_ref().unwrap_or(&self.transport) })
    }

    /// The first class of `live.sockets`.
    pub fn first_socket_class(&self) -> usize {
        self.traffic.len() + self.job.len()
    }

    /// The key of the table that describes a class, such as `traffic[0]`.
    pub fn class_key(&self, class: usize) -> String {
        if let Some(name) = class.checked_sub(self.first_socket_class()).and_then(|at| self.live.sockets.keys().nth(at))
        {
            return format!("live.sockets.{name}");
        }
        match class.checked_sub(self.traffic.len()) {
            None => format!("traffic[{class}]"),
            Some(job) => format!("job[{job}]"),
        }
    }
}

/// Whether a simulation skips what repeats: see docs/acceleration.md.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FastForward {
    /// Every packet is simulated.
    #[default]
    Off,
    /// Once the whole state of the network has recurred, whole periods are skipped until the next thing from outside.
    /// All results are those of the whole run. It needs `timing = "ideal"`, since what is random does not recur, and a
    /// transport that says how its state moves. It pays where traffic is steady, as in training jobs.
    Exact,
    /// Besides, flows that are steady are moved ahead by what they do on average, though the state has not recurred.
    /// Results are then estimates, and the digest begins with "~": it tells two estimates apart and is no whole run's.
    Approximate,
}

impl FastForward {
    fn is_off(&self) -> bool {
        *self == FastForward::Off
    }
}

/// How long the run lasts and what it records.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Measure {
    /// When a flow counts as complete. Default: `delivered`.
    pub completion: Completion,
    /// Latest end of the run; it ends earlier when all flows have ended. Default: none, see `drain`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<Duration>,
    /// Without `end`: how long the run may continue after the last flow's start. Default: 1s.
    pub drain: Duration,
    /// Time between samples of queues and links; 0 takes no samples. It doubles when `rows_max` is reached. Default:
    /// 10us.
    pub interval: Duration,
    /// Most rows of samples, of switches and tiers of links. When more would be taken, every second sample is dropped
    /// and the interval doubles, so that a long run takes no more memory than a short one. At least two samples' rows.
    /// Also the most rows of `events` and of `ports`, and of `flows` that messages of jobs
    /// have: of a job with more, or with more than 8 times as many steps, the first have rows, times of iterations,
    /// collectives and ranks are as always, no critical path is traced, and a warning says so. Default: 2097152.
    pub rows_max: u64,
    /// Hosts, such as "host3", whose data packets are recorded one by one on arrival, in the table `arrivals`. Default:
    /// none.
    pub arrivals: Vec<String>,
    /// Whether each job is also run alone, at the same level, in the same network with the same failures and without
    /// all other traffic and jobs: `alone_ps` and `slowdown` of the table `jobs`. It takes one more run for each job.
    /// Default: false.
    pub alone: bool,
    /// Which packets are recorded one by one, link by link, in the table `packets`: `{}` for all, or some by flow,
    /// class, host, link and time. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packets: Option<PacketsSpec>,
    /// Which flows' windows, rates, tokens and bytes in flight are recorded, at each change, in the table `states`:
    /// `{}` for all, or some by number, class, host and time. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flows: Option<FlowsSpec>,
    /// What is recorded of the whole network, one by one, in the table `events`: frames between neighbours, drops,
    /// marks, trimmed packets, matching, reservations, grants, or all that transports say without payload. Of more than
    /// `rows_max` the first are recorded, and a warning says so. Default: none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<EventKind>,
    /// Ports whose queue and whose sent bytes are recorded, at each change, in the table `ports`: a node and the number
    /// of its port, such as "spine0:3", or a link that it sends by, such as "spine0-leaf3". Where a port would have
    /// more than its share of `rows_max`, every two of its rows become one, with the longest queue of both. Default:
    /// none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<String>,
}

/// A kind of event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema, state::Saved)]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    /// A frame of the flow control between neighbours leaves: pauses, credits, what Pyrrha says of its roots.
    LinkControl,
    /// A packet is lost.
    Drops,
    /// A packet leaves a switch with the congestion mark that it got there.
    Marks,
    /// A packet leaves a switch that has cut off its payload.
    Trims,
    /// A message of a matching leaves its host: dcPIM's requests, grants and accepts.
    Matching,
    /// A message that reserves, refuses or frees bandwidth or times leaves a node: Harmony, Fastpass.
    Reservations,
    /// A permission to send, or what asks for one, leaves its host: Homa, pHost, NDP, UET, dcPIM's tokens.
    Grants,
    /// Any packet of a transport without payload leaves its host: all of these, and acknowledgements.
    Control,
}

impl EventKind {
    /// All of them.
    pub const ALL: [EventKind; 8] = [
        EventKind::LinkControl,
        EventKind::Drops,
        EventKind::Marks,
        EventKind::Trims,
        EventKind::Matching,
        EventKind::Reservations,
        EventKind::Grants,
        EventKind::Control,
    ];

    /// As scenarios and tables have it.
    pub fn name(self) -> &'static str {
        match self {
            EventKind::LinkControl => "link_control",
            EventKind::Drops => "drops",
            EventKind::Marks => "marks",
            EventKind::Trims => "trims",
            EventKind::Matching => "matching",
            EventKind::Reservations => "reservations",
            EventKind::Grants => "grants",
            EventKind::Control => "control",
        }
    }
}

/// Which flows' states are recorded, at both of their hosts. A flow must match all keys that are given; in a list, one
/// of the names must match.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct FlowsSpec {
    /// Numbers of flows, as in the table `flows`. Default: all.
    pub flows: Vec<u32>,
    /// Names of traffic classes. Default: all.
    pub classes: Vec<String>,
    /// Hosts that send or receive the flow. Default: all.
    pub hosts: Vec<String>,
    /// From when on. Default: 0.
    pub from: Duration,
    /// Until when. Default: the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Duration>,
    /// Most rows; later changes are not recorded, and a warning says so. Default: 1048576.
    pub rows_max: u64,
}

/// Which packets are recorded. A packet must match all keys that are given; in a list, one of the names must match.
/// Frames of a flow control, and limiters' packets, belong to no flow and class: for them only `links` and the times
/// count.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PacketsSpec {
    /// Numbers of flows, as in the table `flows`. Default: all.
    pub flows: Vec<u32>,
    /// Names of traffic classes. Default: all.
    pub classes: Vec<String>,
    /// Hosts that send or receive the flow. Default: all.
    pub hosts: Vec<String>,
    /// Links that packets leave by, such as "spine0-leaf2". Default: all.
    pub links: Vec<String>,
    /// From when on. Default: 0.
    pub from: Duration,
    /// Until when. Default: the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Duration>,
    /// Most rows; later packets are not recorded, and a warning says so. Default: 1048576.
    pub rows_max: u64,
}

/// Whether a duration is zero, the default, and need not be written.
fn is_zero(time: &Duration) -> bool {
    *time == Duration::ZERO
}

/// When a flow counts as complete.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Completion {
    /// When the receiver has the last byte.
    #[default]
    Delivered,
    /// When the sender has the final acknowledgement, as in the papers of dcPIM and Pyrrha.
    Acknowledged,
}

/// Properties of all hosts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct HostSpec {
    /// Size of a full data packet on the wire, headers included. Default: 1500B.
    pub mtu: Bytes,
    /// Size of the headers of a data packet, and of a control packet. Default: 40B.
    pub header: Bytes,
    /// Processing time in a host, spent once on the way out and once on the way in. Default: 0.
    pub delay: Duration,
    /// Greatest random processing time of a packet that comes to a host, besides `delay`: drawn uniformly between 0 and
    /// this for each packet, by the host's own random stream. Packets keep their order. Frames of a flow control are
    /// handled by the NIC at once, and with `link.llr` there is none. Default: the time of a full
    /// packet on the host's link, or 0 with `timing = "ideal"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-most" = "1ms"))]
    pub jitter: Option<Duration>,
    /// Greatest random time by which each message of `[[traffic]]` starts later than its arrivals say, drawn uniformly
    /// between 0 and this. A part of a packet's time shows how far a result depends on phases. Default: 0.
    #[serde(skip_serializing_if = "is_zero")]
    #[schemars(extend("x-most" = "1s"))]
    pub start_jitter: Duration,
    /// Rate at which a host takes packets in, if it may be less than the rate of its links, for example because its
    /// PCIe bus is congested. Packets wait in the NIC until then. Default: the rate of the links.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub intake_rate: Option<Rate>,
    /// NIC buffer for packets that wait because of `intake_rate`. Packets beyond it are lost, unless a flow control
    /// pauses the switch. Default: 1MB.
    pub intake_buffer: Bytes,
    /// Times that cores of a host spend on messages and packets, and how these are spread over them. Default: software
    /// takes no time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu: Option<CpuSpec>,
    /// Greatest clock offset. Each host's clock is ahead by a time drawn uniformly between 0 and this. Default: 0.
    pub clock_offset_max: Duration,
    /// Greatest clock drift, in parts per billion. Each host's clock runs fast or slow by a uniformly drawn amount up
    /// to this. Default: 0.
    pub clock_drift_ppb_max: u32,
}

/// Properties of all links.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LinkSpec {
    /// Link-level retry: links send packets again that bit errors have hit (Ultra Ethernet 1.0, section 5.1). Default:
    /// none, such packets are lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub llr: Option<RetrySpec>,
    /// By how much a node's transmit clock may be fast or slow, such as "100ppm", which IEEE 802.3 allows. Each node
    /// draws a constant for all its ports, uniformly between this and its negative. Default: 100ppm, or
    /// 0ppm with `timing = "ideal"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock_tolerance: Option<Tolerance>,
}

impl LinkSpec {
    /// Whether links have nothing special.
    pub fn is_default(&self) -> bool {
        *self == LinkSpec::default()
    }
}

/// Properties of all switches. A key that is left out has the value that transports ask for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SwitchSpec {
    /// How a switch's memory is divided among ports and classes, or the name of a chip: shared memory as boxes with it
    /// have. Default: 500kB for each port.
    #[serde(deserialize_with = "memory::read")]
    #[schemars(with = "MemorySpec")]
    pub buffer: Buffer,
    /// What a switch does with a packet that finds no room. Default: what the transports ask for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overflow: Option<Overflow>,
    /// How a switch chooses among shortest paths. Default: what the transports ask for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub balancing: Option<Balancing>,
    /// Seed of the choice among paths: the hashes of switches, and what they and hosts with several links draw.
    /// Default: `seed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path_seed: Option<u64>,
    /// When a switch marks packets of transports that react to ECN marks. Default: what the transports ask for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub marking: Option<Marking>,
    /// Where in its passage through a switch a packet is marked.
    pub mark_at: MarkAt,
    /// Whether a packet that is not ECN-capable is dropped where `marking` would mark it, as RED does in RFC 3168 and
    /// in ns-3. Needs `marking`. Default: false.
    pub early_drop: bool,
    /// Groups of classes that share one priority and are served in turn by bytes. A class in no group has a priority of
    /// its own, given by its number. Default: no groups; where AQs lend what is left over, classes 1 to 7.
    pub levels: Vec<Vec<u8>>,
    /// Whether a switch starts to forward a packet when its headers have arrived (cut-through) instead of the whole
    /// packet (store and forward). Default: false.
    pub cut_through: bool,
}

impl Default for Scenario {
    fn default() -> Scenario {
        Scenario {
            name: String::new(),
            seed: 1,
            transport: Transport::default(),
            transports: BTreeMap::new(),
            measure: Measure::default(),
            fabric: FabricSpec::default(),
            live: LiveSpec::default(),
            decomposition: DecompositionSpec::default(),
            host: HostSpec::default(),
            switch: SwitchSpec::default(),
            link: LinkSpec::default(),
            flow_control: LinkControl::default(),
            reroute_delay: Duration::from_ms(1),
            reroute_per_hop: Duration::ZERO,
            reroute_compute_max: Duration::ZERO,
            transmission_step: Duration::ZERO,
            timing: Timing::default(),
            fast_forward: FastForward::Off,
            failure: Vec::new(),
            sharing: Sharing::default(),
            entity: Vec::new(),
            traffic: Vec::new(),
            job: Vec::new(),
            renamed: Vec::new(),
        }
    }
}

impl Default for Measure {
    fn default() -> Measure {
        Measure {
            completion: Completion::Delivered,
            end: None,
            drain: Duration::from_ms(1000),
            interval: Duration::from_us(10),
            rows_max: 1 << 21,
            arrivals: Vec::new(),
            alone: false,
            packets: None,
            flows: None,
            events: Vec::new(),
            ports: Vec::new(),
        }
    }
}

impl Default for FlowsSpec {
    fn default() -> FlowsSpec {
        FlowsSpec {
            flows: Vec::new(),
            classes: Vec::new(),
            hosts: Vec::new(),
            from: Duration::ZERO,
            until: None,
            rows_max: 1 << 20,
        }
    }
}

impl Default for PacketsSpec {
    fn default() -> PacketsSpec {
        PacketsSpec {
            flows: Vec::new(),
            classes: Vec::new(),
            hosts: Vec::new(),
            links: Vec::new(),
            from: Duration::ZERO,
            until: None,
            rows_max: 1 << 20,
        }
    }
}

impl Default for HostSpec {
    fn default() -> HostSpec {
        HostSpec {
            mtu: Bytes(1500),
            header: Bytes(40),
            delay: Duration::ZERO,
            jitter: None,
            start_jitter: Duration::ZERO,
            intake_rate: None,
            cpu: None,
            intake_buffer: Bytes(1_000_000),
            clock_offset_max: Duration::ZERO,
            clock_drift_ppb_max: 0,
        }
    }
}

impl Default for SwitchSpec {
    fn default() -> SwitchSpec {
        SwitchSpec {
            buffer: Buffer::PerPort { bytes: Bytes(500_000) },
            overflow: None,
            balancing: None,
            path_seed: None,
            marking: None,
            mark_at: MarkAt::default(),
            early_drop: false,
            levels: Vec::new(),
            cut_through: false,
        }
    }
}

impl Scenario {
    /// The scenario as TOML, with every default filled in.
    pub fn to_toml(&self) -> String {
        toml::to_string(self).expect("a scenario has no key that TOML lacks")
    }

    /// The JSON Schema of scenarios, for editors.
    pub fn json_schema() -> String {
        serde_json::to_string_pretty(&schemars::schema_for!(Scenario)).expect("a schema is JSON")
    }
}
