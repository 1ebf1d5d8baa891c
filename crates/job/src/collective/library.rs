//! Collectives as NCCL runs them: which algorithm and protocol it takes for a size, and for how long.
//!
//! A library moves a buffer in chunks through a pipeline: kernels are launched, the first chunk goes step by step, and
//! from then on every link is as busy as the bottleneck lets it be. So a collective takes
//!
//! ```text
//! launch + steps x latency + filling of the pipeline + bytes / (rate of the bottleneck)
//! ```
//!
//! Steps, latencies and chunks are those of NCCL's public model (`NVIDIA/nccl`, `src/graph/tuning.cc` for latencies by
//! algorithm and protocol, `src/enqueue.cc` for sizes of chunks). Among algorithms and protocols that are possible the
//! one with the shortest time is taken, as NCCL does by its own constants. The hardware's part is in [`Constants`],
//! which `clearway calibrate` reads from logs.
//!
//! In a job, `add` makes of that few messages: a rank enters, tells the others (a dissemination barrier, so that a
//! late rank delays all), and the time before the pipeline is full passes; then each neighbour gets all of its bytes in
//! one message a channel. So links are shared with other traffic as the library's connections would share them, and the
//! number of messages does not depend on the size. Deliberately absent: that a slow link slows down the other links of
//! the same ring before the collective ends, reductions in the network (CollNet), and NVLS across more hosts than one
//! without a tree.

mod links;

use units::{Duration, Rate};

use super::Kind;
pub(crate) use links::{add, chosen, late, messages};

/// The measured constants of a machine.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Constants {
    /// From the call of the library until its kernels run at all ranks.
    pub launch: Duration,
    /// More than that for the protocol Simple, whose ranks synchronise memory.
    pub simple: Duration,
    /// More than that to send to one rank and receive from another.
    pub send_recv: Duration,
    /// A step's latency, as a multiple of NCCL's own constants.
    pub latency: f64,
    /// The share of the links' rate that payload reaches between hosts.
    pub nic_efficiency: f64,
    /// The share of a rank's link into its host that payload reaches.
    pub local_efficiency: f64,
    /// The rate at which a channel copies and adds up; with LL128 half of it, with LL a quarter.
    pub copy: Rate,
    /// Channels.
    pub channels: u32,
}

/// The links that a library finds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Machine {
    /// Of a host into the network.
    pub nic: Rate,
    /// Of a rank into its host.
    pub local: Rate,
    /// Whether the switch between the ranks of a host adds up and multicasts (NVLS).
    pub multicast: bool,
}

/// A library as a job uses it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Library {
    /// Measured constants.
    pub constants: Constants,
    /// Its links.
    pub machine: Machine,
    /// Ranks of a host: consecutive ones.
    pub local: u32,
    /// The algorithm, if it isn't left to the library.
    pub algorithm: Option<Algorithm>,
}

/// How the ranks of a collective are connected.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Algorithm {
    /// Each rank sends to the next.
    Ring,
    /// A chain in each host, two binary trees across hosts (NCCL's tree).
    Tree,
    /// The switch of a host adds up and multicasts.
    Nvls,
    /// The same in each host, two binary trees across hosts.
    NvlsTree,
    /// Parallel aggregated trees: log2(n) rounds, for all-gathers and reduce-scatters of one rank a host.
    Pat,
}

/// How data and the news that they are there travel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wire {
    /// 4 bytes of flags to 4 of data.
    Ll,
    /// 8 bytes of flags to 120 of data.
    Ll128,
    /// Data, then a flag in memory.
    Simple,
}

/// How one collective goes.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Course {
    /// Connections.
    pub algorithm: Algorithm,
    /// Protocol.
    pub wire: Wire,
    /// Seconds until all links are busy: launch, latencies, and the first chunks.
    pub before: f64,
    /// Seconds that the links then take, alone in the network.
    pub links: f64,
    /// Seconds that copies then take.
    pub copies: f64,
    /// The share of bytes that is sent then; the rest went with the first chunks.
    pub rest: f64,
}

impl Course {
    /// Seconds that it takes in a network of its own.
    pub fn total(&self) -> f64 {
        self.before + self.links.max(self.copies) * self.rest
    }
}

const MICROSECOND: f64 = 1e-6;

impl Algorithm {
    /// Its name in results.
    pub const fn name(self) -> &'static str {
        match self {
            Algorithm::Ring => "ring",
            Algorithm::Tree => "tree",
            Algorithm::Nvls => "nvls",
            Algorithm::NvlsTree => "nvls_tree",
            Algorithm::Pat => "pat",
        }
    }
}

impl Wire {
    /// All.
    pub const ALL: [Wire; 3] = [Wire::Ll, Wire::Ll128, Wire::Simple];

    /// Its name in results.
    pub const fn name(self) -> &'static str {
        match self {
            Wire::Ll => "ll",
            Wire::Ll128 => "ll128",
            Wire::Simple => "simple",
        }
    }

    /// Bytes on links for a byte of the buffer.
    pub const fn expand(self) -> f64 {
        match self {
            Wire::Ll => 2.0,
            Wire::Ll128 => 128.0 / 120.0,
            Wire::Simple => 1.0,
        }
    }

    /// By how much slower than a plain copy a channel is.
    const fn slower(self) -> f64 {
        match self {
            Wire::Ll => 4.0,
            Wire::Ll128 => 2.0,
            Wire::Simple => 1.0,
        }
    }

    /// A step's latency in microseconds, within hosts and between them (`ncclTunerConstantsDefaults`).
    const fn latencies(self, algorithm: Algorithm) -> (f64, f64) {
        match (algorithm, self) {
            (Algorithm::Tree, Wire::Ll) => (0.6, 5.0),
            (Algorithm::Tree, Wire::Ll128) => (1.25, 8.5),
            (Algorithm::Tree, Wire::Simple) => (4.0, 14.0),
            (_, Wire::Ll) => (0.6, 2.7),
            (_, Wire::Ll128) => (1.9, 4.0),
            (Algorithm::Nvls | Algorithm::NvlsTree, Wire::Simple) => (25.0, 20.9),
            (_, Wire::Simple) => (3.4, 14.0),
        }
    }
}

/// A collective's ranks and bytes.
#[derive(Clone, Copy)]
struct Asked {
    kind: Kind,
    /// Ranks, hosts, and most ranks of a host.
    ranks: f64,
    nodes: u32,
    local: f64,
    bytes: f64,
}

impl Library {
    /// How a collective goes among `ranks` ranks on `nodes` hosts, with `local` on each. None for a kind that has no
    /// algorithm of its own here.
    pub fn course(&self, kind: Kind, ranks: u32, nodes: u32, local: u32, bytes: u64) -> Option<Course> {
        let asked = Asked { kind, ranks: ranks.into(), nodes, local: local.into(), bytes: bytes as f64 };
        let possible = |algorithm: &Algorithm| match algorithm {
            Algorithm::Ring => true,
            Algorithm::Tree => kind == Kind::AllReduce,
            Algorithm::Nvls => kind == Kind::AllReduce && self.machine.multicast && nodes == 1,
            Algorithm::NvlsTree => kind == Kind::AllReduce && self.machine.multicast && nodes > 1 && local > 1,
            Algorithm::Pat => {
                self.algorithm == Some(Algorithm::Pat) && matches!(kind, Kind::AllGather | Kind::ReduceScatter)
            }
        };
        if matches!(kind, Kind::AllToAll | Kind::Broadcast) {
            return None;
        }
        let all = [Algorithm::Ring, Algorithm::Tree, Algorithm::Nvls, Algorithm::NvlsTree, Algorithm::Pat];
        let mut best: Option<Course> = None;
        let wanted = self.algorithm.filter(possible);
        for algorithm in all.into_iter().filter(possible).filter(|&of| wanted.is_none_or(|wanted| wanted == of)) {
            for wire in Wire::ALL {
                let only_simple = matches!(algorithm, Algorithm::Nvls | Algorithm::NvlsTree | Algorithm::Pat);
                if only_simple && wire != Wire::Simple {
                    continue;
                }
                let course = match algorithm {
                    Algorithm::Ring | Algorithm::Pat => self.around(&asked, algorithm, wire),
                    Algorithm::Tree => self.trees(&asked, wire),
                    Algorithm::Nvls | Algorithm::NvlsTree => self.multicast(&asked, algorithm),
                };
                if best.is_none_or(|best| course.total() < best.total()) {
                    best = Some(course);
                }
            }
        }
        best
    }

    fn start(&self, kind: Kind, wire: Wire) -> f64 {
        let Constants { launch, simple, send_recv, .. } = self.constants;
        let more = if wire == Wire::Simple { simple.secs_f64() } else { 0.0 };
        launch.secs_f64() + more + if kind == Kind::SendRecv { send_recv.secs_f64() } else { 0.0 }
    }

    /// Seconds for this many bytes into and out of a host, and of a rank, whichever is longer.
    fn links(&self, across: f64, within: f64, asked: &Asked) -> f64 {
        let Constants { nic_efficiency, local_efficiency, .. } = self.constants;
        let time = |bytes: f64, rate: Rate, efficiency: f64| 8.0 * bytes / (rate.bps() as f64 * efficiency);
        let across = if asked.nodes > 1 { time(across, self.machine.nic, nic_efficiency) } else { 0.0 };
        let within = if asked.local > 1.0 { time(within, self.machine.local, local_efficiency) } else { 0.0 };
        across.max(within)
    }

    /// Seconds in which a channel copies this many bytes.
    fn copy(&self, bytes: f64, wire: Wire) -> f64 {
        8.0 * bytes * wire.slower() / self.constants.copy.bps() as f64
    }

    fn around(&self, asked: &Asked, algorithm: Algorithm, wire: Wire) -> Course {
        let Asked { kind, ranks, nodes, local, bytes } = *asked;
        let times = match kind {
            Kind::AllReduce => 2.0,
            Kind::SendRecv => 0.0,
            _ => 1.0,
        };
        let steps = if times > 0.0 { times * (ranks - 1.0) } else { 1.0 };
        let across = match (local > 1.0, times > 0.0) {
            (false, _) => steps,
            (true, true) => times * (f64::from(nodes) - 1.0),
            (true, false) => f64::from(u32::from(nodes > 1)),
        };
        let share = if times > 0.0 { times * (ranks - 1.0) / ranks } else { 1.0 };
        let (within_latency, across_latency) = wire.latencies(algorithm);
        // Between hosts a step has at least the overhead of posting it, three times with Simple.
        let posting = if wire == Wire::Simple { 3.0 } else { 1.0 };
        let within_latency = if nodes > 1 { within_latency.max(posting) } else { within_latency };
        let latency = match algorithm {
            Algorithm::Pat => f64::from(nodes.ilog2()) * across_latency / 3.5 + ranks * 2.8,
            _ => across * across_latency + (steps - across) * within_latency,
        };
        Course {
            algorithm,
            wire,
            before: self.start(kind, wire) + self.constants.latency * latency * MICROSECOND,
            links: self.links(bytes * share, bytes * share, asked) * wire.expand(),
            copies: self.copy(bytes * share / f64::from(self.constants.channels), wire),
            rest: 1.0,
        }
    }

    fn trees(&self, asked: &Asked, wire: Wire) -> Course {
        let Asked { kind, nodes, local, bytes, .. } = *asked;
        let channels = f64::from(self.constants.channels);
        let levels = f64::from(nodes.ilog2());
        let (within, across) = (2.0 * (local - 1.0), 2.0 * levels);
        let (within_latency, across_latency) = wire.latencies(Algorithm::Tree);
        let chunk = (bytes / channels).min(self.tree_chunk(bytes, local + levels, local, levels, wire));
        let of_chunk = self.copy(chunk, wire);
        let latency = within * within_latency + across * across_latency;
        let filled = self.constants.latency * latency * MICROSECOND + (within + across) * of_chunk;
        let (links, copies) =
            (self.links(bytes * sent(nodes), bytes * 2.0, asked) * wire.expand(), self.copy(bytes / channels, wire));
        let before = self.start(kind, wire) + filled;
        Course { algorithm: Algorithm::Tree, wire, before, links, copies, rest: rest(links.max(copies), of_chunk) }
    }

    /// Bytes of a channel's chunk in a tree.
    fn tree_chunk(&self, bytes: f64, depth: f64, local: f64, levels: f64, wire: Wire) -> f64 {
        let channels = f64::from(self.constants.channels);
        let halved = |chunk: f64, bounds: &[(f64, f64)]| {
            bounds.iter().fold(chunk, |mut chunk, &(chunks, least)| {
                while bytes / (channels * chunk) < chunks && chunk > least {
                    chunk /= 2.0;
                }
                chunk
            })
        };
        match wire {
            Wire::Ll => 16_384.0,
            Wire::Ll128 => {
                let steps = 1.0 + levels + 0.1 * local;
                halved(122_880.0, &[(steps * 64.0 / local, 131_072.0), (steps * 16.0 / local, 32_768.0)])
            }
            Wire::Simple => halved(524_288.0, &[(depth * 8.0, 131_072.0), (depth * 4.0, 65_536.0), (depth, 32_768.0)]),
        }
    }

    fn multicast(&self, asked: &Asked, algorithm: Algorithm) -> Course {
        let Asked { kind, nodes, local, bytes, .. } = *asked;
        let wire = Wire::Simple;
        let channels = f64::from(self.constants.channels);
        // NCCL_MAX_NVLS_ARITY.
        let at_once = channels * local.min(32.0);
        let bounds: &[(f64, f64)] = match algorithm {
            Algorithm::Nvls => &[(64.0, 65_536.0), (8.0, 32_768.0), (2.0, 16_384.0)],
            _ => &[(4.0, 65_536.0), (1.0, 32_768.0)],
        };
        let most = bounds.iter().fold(131_072.0f64, |chunk, &(chunks, next)| {
            if bytes < chunks * at_once * chunk && chunk > next { next } else { chunk }
        });
        let chunk = (bytes / channels / local).min(most);
        let Constants { local_efficiency, latency, .. } = self.constants;
        let on_links = 8.0 * chunk * at_once / (self.machine.local.bps() as f64 * local_efficiency);
        let of_chunk = on_links + self.copy(chunk, wire);
        let across = if nodes > 1 { 2.0 * f64::from(nodes.ilog2()) } else { 0.0 };
        let (once, step) = wire.latencies(algorithm);
        let filled = latency * (once + across * step) * MICROSECOND + (2.0 + across) * of_chunk;
        let (links, copies) =
            (self.links(bytes * sent(nodes), bytes, asked), self.copy(bytes / channels / local, wire));
        let before = self.start(kind, wire) + filled;
        Course { algorithm, wire, before, links, copies, rest: rest(links.max(copies), of_chunk) }
    }
}

/// How often a host sends the buffer in two trees: up and down each, half of it to two children beyond two hosts.
fn sent(nodes: u32) -> f64 {
    if nodes <= 2 { 1.0 } else { 2.0 }
}

/// The share that is left of a time once a chunk is through.
fn rest(all: f64, of_chunk: f64) -> f64 {
    if all > of_chunk { 1.0 - of_chunk / all } else { 0.0 }
}

#[cfg(test)]
mod tests;
