//! Training jobs: their ranks, where they are, and what they do.
//!
//! A job's message starts when its rank reaches the step that sends it, so a job's times are results of the run. What
//! ranks do is a list of steps that all do in order (computations, and collectives among groups of ranks), or the
//! training of a model, or what another tool has written. [`place`] turns jobs into graphs on hosts, and into a flow
//! for each message that leaves its host.

mod build;
mod constants;
mod count;
mod loaded;
mod place;

pub(crate) use count::said;
pub use loaded::Loaded;
pub use place::{PlacedJob, place};

use std::sync::Arc;

use job::model::Training;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Bytes, Duration, Rate, Time};

use crate::Hosts;

/// A training job: a `[[job]]` table of a scenario. In results it is a class of traffic of its name.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Job<T> {
    /// Name of the job, and of the class of its messages. It differs from those of other jobs and classes. Default:
    /// `job`.
    #[serde(default = "default_name")]
    pub name: String,
    /// Transport of the job's messages. Default: the scenario's `transport`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transport: Option<T>,
    /// When its ranks begin. Default: 0.
    #[serde(default)]
    pub start: Time,
    /// Hosts that ranks may be on. Default: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hosts: Option<Hosts>,
    /// Number of ranks. Default: as many as the hosts have room for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ranks: Option<u32>,
    /// Ranks (accelerators) of a host. Default: 1.
    #[serde(default = "one")]
    pub ranks_per_host: u32,
    /// Which rank is where. Default: `packed`.
    #[serde(default)]
    pub placement: Placement,
    /// The links that a rank uses, where hosts have several, as libraries bind accelerators to NICs. Default: any, as
    /// `switch.balancing` says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nics: Option<Nics>,
    /// How ranks of one host reach each other: each has a link of its own into the host, such as NVLink. Default: 3.6
    /// Tbps and 1us.
    #[serde(default)]
    pub local: Local,
    /// Number of iterations. Default: 1.
    #[serde(default = "one")]
    pub iterations: u32,
    /// What every rank does in an iteration, in order, each step as soon as the rank has done the one before. A job has
    /// `steps`, a `model` or a `trace`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<Step>,
    /// A model; each iteration is a training step of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<Training>,
    /// A file in which another tool has written what ranks do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<job::read::TraceFile>,
    /// The trace once it is read.
    #[serde(skip)]
    pub loaded: Option<Arc<Loaded>>,
    /// How collectives are carried out, unless a step says otherwise.
    #[serde(default)]
    pub library: Library,
    /// Ranks whose computations take longer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stragglers: Vec<Straggler>,
}

fn default_name() -> String {
    "job".to_owned()
}

fn one() -> u32 {
    1
}

/// Which rank is where.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Placement {
    /// Host by host: ranks 0, 1, ... on the first host until it is full, then on the next.
    #[default]
    Packed,
    /// Host by host, the hosts in random order.
    Random,
    /// Rack by rack in turn: consecutive hosts of the job are in different racks.
    Striped,
}

/// A link of a rank into its host.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Local {
    /// Rate of the link. Default: 3.6Tbps.
    pub rate: Rate,
    /// Time from when a message's last byte has left until it has arrived. Default: 1us.
    pub delay: Duration,
    /// Whether the switch between the ranks of a host adds up and multicasts, such as NVLink's switch with NVLS. A
    /// library uses it for all-reduces. Default: false.
    pub multicast: bool,
}

impl Default for Local {
    fn default() -> Local {
        Local { rate: Rate::from_gbps(3_600), delay: Duration::from_us(1), multicast: false }
    }
}

/// The links of its host that a rank uses.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Nics {
    /// The ranks of a host divide its links among them in order: where there are as many, rank i uses link i.
    ByRank,
    /// The number of its link, from 0 on, for each rank of a host.
    Links(Vec<u32>),
}

impl Nics {
    /// As bits, which of a host's `count` links the rank at `place` of `ranks` uses.
    pub(crate) fn links(&self, place: u32, ranks: u32, count: u32) -> u64 {
        match self {
            Nics::Links(links) => links.get(place as usize).map_or(0, |link| 1 << (link % 64)),
            Nics::ByRank => {
                let begin = place * count / ranks.max(1);
                let end = ((place + 1) * count / ranks.max(1)).max(begin + 1);
                (begin..end.min(64)).fold(0, |links, link| links | 1 << link)
            }
        }
    }
}

/// A slow rank.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Straggler {
    /// Which.
    pub rank: u32,
    /// Its computations take this many times as long.
    pub factor: f64,
}

/// How collectives are carried out, by settings like NCCL's.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Library {
    /// Channels that share a buffer and work in parallel. Default: 1, which with `like` stands for 16.
    pub channels: u32,
    /// Most bytes of a buffer in one message. Default: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chunk: Option<Bytes>,
    /// Messages of one channel that a rank may have under way. Default: 8.
    pub slots: u32,
    /// Time between a message's arrival and the sending of messages that depend on it. Default: 0.
    pub latency: Duration,
    /// Protocol, which makes messages longer. Default: `simple`.
    pub protocol: Protocol,
    /// Algorithm of all-reduces that do not name one: in steps, of a model's gradients, in a trace. Default: `ring`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub all_reduce: Option<Algorithm>,
    /// The library whose choices are followed: algorithm, protocol and chunks by size. `channels` are then its own, and
    /// `chunk`, `slots`, `latency` and `protocol` hold for all-to-alls and broadcasts alone. Keys "with `like`" are
    /// measured constants, which `clearway calibrate` reads from logs. Default: none, a collective goes as the keys
    /// above say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub like: Option<Like>,
    /// With `like`: time from the call until kernels run at all ranks. Default: 10us.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub launch: Option<Duration>,
    /// With `like`: time more for the protocol Simple, whose ranks synchronise memory. Default: 5us.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub simple: Option<Duration>,
    /// With `like`: time more for `send_recv`. Default: 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub send_recv: Option<Duration>,
    /// With `like`: latency of a step, as a multiple of NCCL's own constants. Default: 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step_latency: Option<f64>,
    /// With `like`: the share of the rate of hosts' links that a buffer's bytes reach. Default: 0.9.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nic_efficiency: Option<f64>,
    /// With `like`: the same for links of ranks into their hosts. Default: 0.8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub local_efficiency: Option<f64>,
    /// With `like`: rate at which a channel copies and adds up; with the protocol LL128 half of it, with LL a quarter.
    /// Default: 160Gbps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub copy: Option<Rate>,
    /// With `like`: rate of a host into the network, all links together. Default: that of the job's first host. A trace
    /// needs it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nic: Option<Rate>,
}

/// A library of collectives.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Like {
    /// NVIDIA's NCCL, and AMD's RCCL, which follows it: ring, tree, NVLS and trees of NVLS; LL, LL128 and Simple.
    Nccl,
    /// A library that knows rings alone, with protocols like NCCL's.
    Ring,
}

impl Default for Library {
    fn default() -> Library {
        Library {
            channels: 1,
            chunk: None,
            slots: 8,
            latency: Duration::ZERO,
            protocol: Protocol::Simple,
            all_reduce: None,
            like: None,
            launch: None,
            simple: None,
            send_recv: None,
            step_latency: None,
            nic_efficiency: None,
            local_efficiency: None,
            copy: None,
            nic: None,
        }
    }
}

/// A protocol of NCCL: how many bytes it sends for the bytes of a buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Protocol {
    /// The bytes alone.
    #[default]
    Simple,
    /// 4 bytes of flags to 4 bytes of data.
    Ll,
    /// 8 bytes of flags to 120 bytes of data.
    Ll128,
}

/// What every rank does.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Step {
    /// Each rank computes for this long.
    Compute(Duration),
    /// Everybody gets the sum of all buffers.
    AllReduce(Operation),
    /// Everybody gets one part of the sum of all buffers.
    ReduceScatter(Operation),
    /// Everybody gets all parts.
    AllGather(Operation),
    /// Everybody gets the first rank's buffer.
    Broadcast(Operation),
    /// Everybody sends a part of its buffer to each other.
    AllToAll(Operation),
    /// Everybody sends its buffer to the next, and the last to the first, as NCCL's test sendrecv does.
    SendRecv(Operation),
}

/// A collective operation.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Operation {
    /// Its name in results. Default: what it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Size of the buffer, as NCCL's tests count it: for an all-gather and a reduce-scatter all parts together, for an
    /// all-to-all the bytes that a rank sends, including its own part.
    pub bytes: Bytes,
    /// How it is carried out. Default: `ring`; `pairwise` for an all-to-all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub algorithm: Option<Algorithm>,
    /// Ranks among which it is carried out, many groups at once. Default: one group of all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub among: Option<Groups>,
    /// Whether ranks go on to their next step at once. The iteration ends when it has ended, too. Default: false.
    #[serde(default)]
    pub beside: bool,
    /// How this one is carried out, in place of the job's `library`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub library: Option<Library>,
}

/// How a collective is carried out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Algorithm {
    /// Each rank sends to the next.
    Ring,
    /// Two binary trees, for half of the buffer each (all-reduce and broadcast).
    Tree,
    /// Recursive halving and doubling, for a power of two ranks (all-reduce).
    HalvingDoubling,
    /// A ring in each host, and a ring across hosts for each place in them (all-reduce, all-gather, reduce-scatter).
    Rails,
    /// Everybody to everybody, in turn (all-to-all).
    Pairwise,
    /// The switch of a host adds up and multicasts; across hosts trees of these (all-reduce; with `library.like`).
    Nvls,
    /// Parallel aggregated trees (all-gather and reduce-scatter of one rank a host; with `library.like`).
    Pat,
}

/// Equal groups of ranks: a group has every `stride`-th rank, as a dimension of a parallel job has.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Groups {
    /// Ranks of a group.
    pub size: u32,
    /// From a rank of a group to its next. Default: 1.
    #[serde(default = "one")]
    pub stride: u32,
}
