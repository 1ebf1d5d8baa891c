//! Micro-benchmarks of the emulator on this machine, as R2C2's paper has them for Maze (section 4.1): the throughput of
//! a virtual link by packet size, the latency of a hop, many virtual links on one thread, and packet-hops a second.
//!
//! Paper: 38 Gbps on a link of 40 with packets of 8 KB, and 3 us a hop with small packets, between servers with RDMA.
//! Here both ends are on one machine. All contents are written and checked. Beside each number is the share of the time
//! for which other programs, or other virtual machines, used the workers' cores.

use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

use ::run::{Data, Table};
use scenario::Scenario;
use serde::Serialize;
use units::Problem;

use crate::clock::instant_ns;
use crate::machines::{Membership, News, Token, join, run_machines};
use crate::worker::CROSSING;
use crate::{RunResult, run, run_processes};

/// The rate of the paper's links.
const LINK_GBPS: u32 = 40;

/// More than a core can do, so that it is always behind: a packet of 8 KB takes some 160 ns of it.
const TOO_FAST_GBPS: u32 = 400;

/// The delay of a link in the measurement of latency.
const DELAY_NS: u64 = 100;

/// So often the latency is measured: a single moment in which the machine did something else would decide the 99th
/// percentile of half a second.
const LATENCY_RUNS: usize = 9;

/// The results of all measurements.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Threads that the machine runs at a time.
    pub cores: usize,
    /// One flow over two hops, by packet size.
    pub throughput: Vec<Throughput>,
    /// One small packet at a time.
    pub latency: Vec<Latency>,
    /// Several flows over two hops each, on one worker.
    pub sharing: Vec<Shared>,
    /// Four racks, all hosts to all.
    pub hops: Vec<Hops>,
    /// One flow over the trunk between two machines, by packet size.
    pub trunk: Vec<TrunkBench>,
}

/// One flow from a host over a switch to another, all on one worker.
#[derive(Clone, Debug, Serialize)]
pub struct Throughput {
    /// Size of the packets.
    pub packet_bytes: u32,
    /// Packets on the wire, in Gbps of the machine's time, over links that are faster than the machine.
    pub most_gbps: f64,
    /// The same over links of 40 Gbps.
    pub at_40_gbps: f64,
    /// Whether the finding "in time" passed at 40 Gbps.
    pub in_time: bool,
    /// For how much of the time the machine had taken the workers' cores away, in percent.
    pub away_percent: f64,
}

/// How long a packet takes from when its last bit has left a node until the next node sees it, on links of 100 ns. Each
/// number is the median of nine runs.
#[derive(Clone, Debug, Serialize)]
pub struct Latency {
    /// Threads: with two, the hops between them.
    pub workers: usize,
    /// Processes that they are in.
    pub processes: usize,
    /// The median time of a hop.
    pub median_ns: f64,
    /// The 99th percentile.
    pub p99_ns: f64,
    /// The 99th percentile for as many threads that do nothing but read the clock: what interrupts, other programs and
    /// other virtual machines leave. No worker can have less.
    pub machine_p99_ns: f64,
    /// For how much of the time such threads stood still, in percent. Near 1, chance decides the 99th percentile.
    pub machine_stopped_percent: f64,
    /// With several workers: how long a word takes from a thread to another here. It is some 50 ns where their cores
    /// share a cache, and several times as much elsewhere. A virtual machine may be moved from one to the other.
    pub word_ns: Option<f64>,
    /// For how much of the time the machine had taken the workers' cores away, in percent.
    pub away_percent: f64,
}

/// Virtual links on one worker that have 32 Gbps together.
#[derive(Clone, Debug, Serialize)]
pub struct Shared {
    /// Flows, each over two links of its own.
    pub flows: u32,
    /// Their throughput together.
    pub gbps: f64,
    /// The share of its rate that the slowest flow had.
    pub least: f64,
    /// Whether the finding "in time" passed.
    pub in_time: bool,
    /// For how much of the time the machine had taken the workers' cores away, in percent.
    pub away_percent: f64,
}

/// How many packets pass a link in a second, with 1,500 B, while the machine is always behind.
#[derive(Clone, Debug, Serialize)]
pub struct Hops {
    /// Threads.
    pub workers: usize,
    /// Processes that they are in.
    pub processes: usize,
    /// Packet-hops a second of the machine's time, in millions, of all threads together.
    pub million_per_second: f64,
    /// With several workers: how long a word takes from a thread to another, as in [`Latency`].
    pub word_ns: Option<f64>,
    /// For how much of the time the machine had taken the workers' cores away, in percent.
    pub away_percent: f64,
}

/// One flow from a host of one machine to a host of another. Both machines are this one, and the trunk goes over
/// loopback: so this is what the trunk costs, without a network card.
#[derive(Clone, Debug, Serialize)]
pub struct TrunkBench {
    /// Size of the packets.
    pub packet_bytes: u32,
    /// Packets that crossed the trunk, in Gbps of the machine's time, over links that are faster than the machine.
    pub gbps: f64,
    /// Datagrams of the trunk that were sent again, in percent.
    pub sent_again_percent: f64,
    /// For how much of the time the machine had taken the workers' cores away, in percent.
    pub away_percent: f64,
}

/// Measures everything: three quarters of a minute. `look` is asked now and then whether to stop, which is an error.
/// Two processes are measured where `start` can start another, which calls [`take_part`](crate::take_part).
pub fn measure(mut start: Option<impl FnMut() -> Command>, mut look: impl FnMut() -> bool) -> Result<Report, Problem> {
    let apart = start.as_ref().map(|_| (2, 1));
    let mut live = |text: String, processes: usize| -> Result<RunResult, Problem> {
        let scenario = scenario_of(&text)?;
        let result = match &mut start {
            Some(start) if processes > 1 => run_processes(&scenario, processes, start, |_| look())?,
            _ => run(&scenario, |_| look())?,
        };
        whole(result)
    };
    let sizes = [256, 512, 1024, 1500, 2048, 4096, 8192];
    let throughput: Result<_, _> = sizes.into_iter().map(|bytes| throughput(&mut live, bytes)).collect();
    let latency: Result<_, _> =
        [(1, 1), (1, 2)].into_iter().chain(apart).map(|shape| latency(&mut live, shape)).collect();
    let sharing: Result<_, _> = [1, 2, 4, 8, 16].into_iter().map(|flows| sharing(&mut live, flows)).collect();
    let hops: Result<_, _> = [(1, 1), (1, 2)].into_iter().chain(apart).map(|shape| hops(&mut live, shape)).collect();
    let trunk: Result<_, _> = [1500, 8192].into_iter().map(|bytes| trunk(bytes, &mut look)).collect();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    Ok(Report { cores, throughput: throughput?, latency: latency?, sharing: sharing?, hops: hops?, trunk: trunk? })
}

fn scenario_of(text: &str) -> Result<Scenario, Problem> {
    scenario::read(text, "bench", &[]).map_err(|error| Problem::new(error.key, error.message))
}

/// A run that was not interrupted.
fn whole(result: RunResult) -> Result<RunResult, Problem> {
    match result.info.ended {
        "interrupted" => Err(Problem::new("bench", "was interrupted")),
        _ => Ok(result),
    }
}

/// `flows` pairs of hosts on a switch, each with a message of this many bytes, in packets of this many.
fn pairs(flows: u32, gbps: f64, packet_bytes: u32, bytes: f64) -> String {
    let classes = (0..flows).map(|flow| {
        let (sender, receiver) = (2 * flow, 2 * flow + 1);
        format!(
            "[[traffic]]\nname = 'flow{flow}'\nsizes.constant = '{bytes:.0}B'\narrivals = 'all_at_once'\nflows = 1\n\
             senders = '{sender}'\nreceivers = '{receiver}'\n"
        )
    });
    format!(
        "transport = 'udp'\nhost.mtu = '{packet_bytes}B'\nmeasure = {{ interval = '0s', end = '20s' }}\n\
         fabric.star = {{ hosts = {}, rate = '{:.0}Mbps', propagation = '1us', switch_delay = '0s' }}\n{}",
        2 * flows,
        gbps * 1e3,
        classes.collect::<String>(),
    )
}

fn throughput(
    live: &mut impl FnMut(String, usize) -> Result<RunResult, Problem>,
    bytes: u32,
) -> Result<Throughput, Problem> {
    // A third of a second, if the machine can do 2 million packets in that.
    let message = |gbps: f64| (gbps / 8.0 * 1e9 * 0.3).min(0.6e6 * f64::from(bytes));
    let most = live(pairs(1, TOO_FAST_GBPS.into(), bytes, message(TOO_FAST_GBPS.into())), 1)?;
    let paced = live(pairs(1, LINK_GBPS.into(), bytes, message(LINK_GBPS.into())), 1)?;
    Ok(Throughput {
        packet_bytes: bytes,
        most_gbps: gbps(&most),
        at_40_gbps: gbps(&paced),
        in_time: in_time(&paced),
        away_percent: away_percent(&[&most, &paced]),
    })
}

fn latency(
    live: &mut impl FnMut(String, usize) -> Result<RunResult, Problem>,
    (processes, workers): (usize, usize),
) -> Result<Latency, Problem> {
    let runs: Result<Vec<Latency>, Problem> =
        (0..LATENCY_RUNS).map(|_| latency_once(live, (processes, workers))).collect();
    let runs = runs?;
    let median = |of: fn(&Latency) -> f64| {
        let mut all: Vec<f64> = runs.iter().map(of).collect();
        all.sort_unstable_by(f64::total_cmp);
        all[all.len() / 2]
    };
    Ok(Latency {
        workers: runs[0].workers,
        processes: runs[0].processes,
        median_ns: median(|of| of.median_ns),
        p99_ns: median(|of| of.p99_ns),
        machine_p99_ns: median(|of| of.machine_p99_ns),
        machine_stopped_percent: median(|of| of.machine_stopped_percent),
        word_ns: runs[0].word_ns.map(|_| median(|of| of.word_ns.unwrap_or(f64::NAN))),
        away_percent: median(|of| of.away_percent),
    })
}

fn latency_once(
    live: &mut impl FnMut(String, usize) -> Result<RunResult, Problem>,
    (processes, workers): (usize, usize),
) -> Result<Latency, Problem> {
    let result = live(
        format!(
            "transport = 'udp'\nlive.workers = {workers}\nmeasure = {{ interval = '0s', end = '500ms' }}\n\
         fabric.leaf_spine = {{ racks = 2, hosts_per_rack = 1, spines = 1, propagation = '{DELAY_NS}ns', switch_delay \
         = '0s' }}\n[[traffic]]\nsizes.constant = '64B'\narrivals.periodic.every = '25us'\nduration = '500ms'\n\
         senders = '0'\nreceivers = '1'\n"
        ),
        processes,
    )?;
    let machine = machine(result.info.workers);
    // Of all arrivals, or of those from another thread.
    let row = if result.info.workers > 1 { CROSSING } else { 0 };
    let late = |name| column(&result.tables, "lateness", name).get(row).copied().unwrap_or_default() * 1e-3;
    let taken = |name| DELAY_NS as f64 + late(name);
    Ok(Latency {
        workers: result.info.workers,
        processes: result.info.processes,
        median_ns: taken("median_ps"),
        p99_ns: taken("p99_ps"),
        machine_p99_ns: DELAY_NS as f64 + machine.0,
        machine_stopped_percent: machine.1,
        word_ns: (result.info.workers > 1).then(word_ns),
        away_percent: away_percent(&[&result]),
    })
}

/// How long it takes, after a random instant, until a thread that reads the clock again and again does so next: the
/// 99th percentile, in ns, over so many threads at once. And for what share of the time they did not, in percent.
fn machine(threads: usize) -> (f64, f64) {
    const SPAN_NS: u64 = 500_000_000;
    let spin = || {
        let began = instant_ns();
        let (mut last, mut gaps) = (began, Vec::new());
        while last < began + SPAN_NS {
            let now = instant_ns();
            // Shorter ones are the reading itself.
            if now - last > 200 {
                gaps.push(now - last);
            }
            last = now;
        }
        gaps
    };
    let gaps: Vec<u64> = std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(spin)).collect();
        let own = spin();
        own.into_iter().chain(others.into_iter().flat_map(|of| of.join().unwrap_or_default())).collect()
    });
    let percent = 0.01 * SPAN_NS as f64 * threads as f64;
    (longer_than(&gaps, percent), gaps.iter().sum::<u64>() as f64 / percent)
}

/// How long it takes until a thread sees what another has written, in ns: half of there and back.
fn word_ns() -> f64 {
    const SPAN_NS: u64 = 20_000_000;
    const OVER: u64 = u64::MAX;
    /// A cache line of its own.
    #[repr(align(128))]
    #[derive(Default)]
    struct Word(AtomicU64);
    let (there, back) = (Word::default(), Word::default());
    std::thread::scope(|scope| {
        let (there, back) = (&there.0, &back.0);
        scope.spawn(move || {
            loop {
                match there.load(Ordering::Acquire) {
                    OVER => break,
                    word => back.store(word, Ordering::Release),
                }
                std::hint::spin_loop();
            }
        });
        // The first time counts from when the other thread has begun.
        let (mut word, mut began) = (0, 0);
        let now = loop {
            word += 1;
            there.store(word, Ordering::Release);
            while back.load(Ordering::Acquire) != word {
                std::hint::spin_loop();
            }
            let now = instant_ns();
            if word == 1 {
                began = now;
            } else if now > began + SPAN_NS {
                break now;
            }
        };
        there.store(OVER, Ordering::Release);
        (now - began) as f64 / (word - 1) as f64 / 2.0
    })
}

/// The wait that is exceeded at instants that are `share_ns` together, where each of `gaps` is a time without a look.
fn longer_than(gaps: &[u64], share_ns: f64) -> f64 {
    let beyond = |wait: f64| gaps.iter().map(|&gap| (gap as f64 - wait).max(0.0)).sum::<f64>();
    let (mut low, mut high) = (0.0, gaps.iter().max().map_or(0.0, |&gap| gap as f64));
    for _ in 0..50 {
        let middle = (low + high) / 2.0;
        if beyond(middle) > share_ns { low = middle } else { high = middle }
    }
    high
}

fn sharing(live: &mut impl FnMut(String, usize) -> Result<RunResult, Problem>, flows: u32) -> Result<Shared, Problem> {
    let rate = 32.0 / f64::from(flows);
    let result = live(pairs(flows, rate, 8192, rate / 8.0 * 1e9 * 0.3), 1)?;
    let longest = column(&result.tables, "flows", "fct_ps").into_iter().fold(0.0, f64::max);
    let ideal = column(&result.tables, "flows", "ideal_ps").into_iter().fold(0.0, f64::max);
    Ok(Shared {
        flows,
        gbps: gbps(&result),
        least: ideal / longest,
        in_time: in_time(&result),
        away_percent: away_percent(&[&result]),
    })
}

fn hops(
    live: &mut impl FnMut(String, usize) -> Result<RunResult, Problem>,
    (processes, workers): (usize, usize),
) -> Result<Hops, Problem> {
    let result = live(
        format!(
            "transport = 'dctcp'\nlive.workers = {workers}\nmeasure = {{ interval = '0s', end = '4ms' }}\n\
         fabric.leaf_spine = {{ racks = 4, hosts_per_rack = 8, spines = 2, propagation = '1us' }}\n\
         [[traffic]]\nsizes.constant = '1MB'\narrivals.poisson.load = 0.6\nduration = '4ms'\n"
        ),
        processes,
    )?;
    let million_per_second = result.info.packet_hops as f64 / result.info.machine_s * 1e-6;
    Ok(Hops {
        workers: result.info.workers,
        processes: result.info.processes,
        million_per_second,
        word_ns: (result.info.workers > 1).then(word_ns),
        away_percent: away_percent(&[&result]),
    })
}

fn trunk(bytes: u32, look: &mut impl FnMut() -> bool) -> Result<TrunkBench, Problem> {
    // Links are long, so that the promises of a machine reach the other before it needs them.
    let text = format!(
        "transport = 'udp'\nhost.mtu = '{bytes}B'\nmeasure = {{ interval = '0s', end = '20s' }}\n\
         [fabric.leaf_spine]\nracks = 2\nhosts_per_rack = 1\nspines = 1\nhost_rate = '{TOO_FAST_GBPS}Gbps'\n\
         spine_rate = '{TOO_FAST_GBPS}Gbps'\npropagation = '1ms'\nswitch_delay = '0s'\n\
         [[traffic]]\nsizes.constant = '{}B'\narrivals = 'all_at_once'\nflows = 1\nsenders = '0'\nreceivers = '1'\n",
        200_000 * u64::from(bytes),
    );
    let scenario = scenario_of(&text)?;
    let token = Token::new(&format!("of a bench by process {:016}", std::process::id()))?;
    let member = Membership { token: &token, build: "bench" };
    let result = std::thread::scope(|scope| {
        let member = &member;
        let tell = |news: News| {
            if let News::Listening(at, _) = news {
                scope.spawn(move || join(&at.to_string(), None, member, |_| (), |_| false));
            }
        };
        run_machines(&scenario, 2, "127.0.0.1:0", member, tell, |_| look())
    })?;
    let result = whole(result)?;
    let sum = |name| column(&result.tables, "machines", name).iter().sum::<f64>();
    Ok(TrunkBench {
        packet_bytes: bytes,
        // Each packet passes four links.
        gbps: gbps(&result) / 2.0,
        sent_again_percent: 100.0 * sum("resent_datagrams") / sum("sent_datagrams").max(1.0),
        away_percent: away_percent(&[&result]),
    })
}

/// Bits on the wire of packets that pass two links, a second of the machine's time.
fn gbps(result: &RunResult) -> f64 {
    column(&result.tables, "links", "sent_bytes").iter().sum::<f64>() / 2.0 * 8.0 / result.info.machine_s * 1e-9
}

fn away_percent(results: &[&RunResult]) -> f64 {
    let sum = |of: fn(&RunResult) -> f64| results.iter().map(|result| of(result)).sum::<f64>();
    100.0 * sum(|result| result.info.away_s) / sum(|result| result.info.machine_s)
}

fn in_time(result: &RunResult) -> bool {
    result.info.audit.iter().all(|finding| finding.ok)
}

fn column(tables: &[Table], table: &str, name: &str) -> Vec<f64> {
    let column = tables.iter().find(|known| known.name == table).and_then(|table| table.column(name));
    match column.map(|column| &column.data) {
        Some(Data::U64(values) | Data::OptU64(values)) => values.iter().map(|&value| value as f64).collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::longer_than;

    /// One gap of 2 us and one of 10 us: waits are beyond w at (2 - w) + (10 - w) us of the time.
    #[test]
    fn the_wait_that_is_exceeded_for_a_share_of_the_time() {
        for (share_us, wait_us) in [(12.0, 0.0), (10.0, 1.0), (8.0, 2.0), (3.0, 7.0)] {
            let wait = longer_than(&[2_000, 10_000], share_us * 1e3) * 1e-3;
            assert!((wait - wait_us).abs() < 1e-6, "{share_us}: {wait}");
        }
        assert_eq!(longer_than(&[], 5.0), 0.0);
    }
}
