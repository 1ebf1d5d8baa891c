//! A collective of a library as messages of a job.

use units::Duration;

use super::{Algorithm, Course, Library};
use crate::collective::tree::{other, tree};
use crate::collective::{Entry, Kind};
use crate::{Builder, Rank, StepId};

/// Payload of a message that says that a rank has entered.
const NEWS: u64 = 8;

/// The hosts of a group: the places of their ranks, in order.
struct Hosts(Vec<Vec<usize>>);

impl Hosts {
    fn new(ranks: &[Rank], local: u32) -> Hosts {
        let mut hosts: Vec<(u32, Vec<usize>)> = Vec::new();
        for (place, rank) in ranks.iter().enumerate() {
            let host = rank.0 / local.max(1);
            match hosts.last_mut() {
                Some((last, places)) if *last == host => places.push(place),
                _ => hosts.push((host, vec![place])),
            }
        }
        Hosts(hosts.into_iter().map(|of| of.1).collect())
    }

    fn count(&self) -> u32 {
        self.0.len() as u32
    }

    fn most(&self) -> u32 {
        self.0.iter().map(Vec::len).max().unwrap_or(1) as u32
    }

    /// The rank of a host that a channel uses for the network.
    fn way_out(&self, host: usize, channel: usize) -> usize {
        let places = &self.0[host];
        places[channel % places.len()]
    }
}

/// How a collective of these ranks goes.
fn course(library: &Library, kind: Kind, ranks: &[Rank], bytes: u64) -> Option<(Course, Hosts)> {
    let hosts = Hosts::new(ranks, library.local);
    let course = library.course(kind, ranks.len() as u32, hosts.count(), hosts.most(), bytes)?;
    Some((course, hosts))
}

/// Adds a collective. None for a kind that goes as without a library.
pub(crate) fn add(
    b: &mut Builder,
    library: &Library,
    kind: Kind,
    ranks: &[Rank],
    bytes: u64,
    entry: Entry<'_>,
) -> Option<Vec<StepId>> {
    let (course, hosts) = course(library, kind, ranks, bytes)?;
    let entered = barrier(b, ranks, entry);
    let ready: Vec<Vec<StepId>> = (0..ranks.len())
        .map(|place| {
            let filled = b.delay(ranks[place], Duration::from_secs_f64(course.before), &entry[place]);
            vec![b.join(ranks[place], &[&entered[place][..], &[filled]].concat())]
        })
        .collect();
    let mut ends = ready.clone();
    let copies = Duration::from_secs_f64(course.copies * course.rest);
    for (place, ends) in ends.iter_mut().enumerate() {
        *ends = vec![b.delay(ranks[place], copies, &ready[place])];
    }
    for (from, to, bytes) in edges(library, &course, &hosts, kind, ranks.len(), bytes) {
        let (send, receive) = b.message((ranks[from], ranks[to]), bytes, (0, 0), &ready[from], &[]);
        let _ = send;
        ends[to].push(receive);
    }
    Some(ends.iter().zip(ranks).map(|(ends, &rank)| b.join(rank, ends)).collect())
}

/// The name of the algorithm that a collective takes.
pub(crate) fn chosen(library: &Library, kind: Kind, ranks: &[Rank], bytes: u64) -> Option<&'static str> {
    course(library, kind, ranks, bytes).map(|of| of.0.algorithm.name())
}

/// For a kind that goes as without a library: every rank begins after the launch.
pub(crate) fn late(b: &mut Builder, library: &Library, ranks: &[Rank], entry: Entry<'_>) -> Vec<Vec<StepId>> {
    let launch = library.constants.launch;
    entry.iter().zip(ranks).map(|(entry, &rank)| vec![b.delay(rank, launch, entry)]).collect()
}

/// All messages of a collective: ends by place, and payload.
pub(crate) fn messages(library: &Library, kind: Kind, ranks: &[Rank], bytes: u64) -> Option<Vec<(usize, usize, u64)>> {
    let (course, hosts) = course(library, kind, ranks, bytes)?;
    let n = ranks.len();
    let mut all: Vec<_> = shifts(n).flat_map(|by| (0..n).map(move |from| (from, (from + by) % n, NEWS))).collect();
    all.extend(edges(library, &course, &hosts, kind, n, bytes));
    Some(all)
}

/// Distances of a dissemination barrier (Hensgen, Finkel and Manber 1988): after round k a rank knows of 2^k others.
fn shifts(n: usize) -> impl Iterator<Item = usize> {
    std::iter::successors(Some(1), |by| Some(by * 2)).take_while(move |&by| by < n)
}

/// By rank, the steps after which it knows that all have entered.
fn barrier(b: &mut Builder, ranks: &[Rank], entry: Entry<'_>) -> Vec<Vec<StepId>> {
    let n = ranks.len();
    let mut knows: Vec<Vec<StepId>> = entry.to_vec();
    for by in shifts(n) {
        let before = knows.clone();
        for (from, before) in before.iter().enumerate() {
            let to = (from + by) % n;
            let (_, receive) = b.message((ranks[from], ranks[to]), NEWS, (0, 0), before, &[]);
            knows[to].push(receive);
        }
        // Otherwise a message of the last round would wait for all before.
        for (knows, &rank) in knows.iter_mut().zip(ranks) {
            *knows = vec![b.join(rank, knows)];
        }
    }
    knows
}

/// Bytes from place to place once the pipeline is full, as the links carry them: payload over efficiency.
fn edges(
    library: &Library,
    course: &Course,
    hosts: &Hosts,
    kind: Kind,
    n: usize,
    bytes: u64,
) -> Vec<(usize, usize, u64)> {
    let channels = library.constants.channels as usize;
    let mut all = Vec::new();
    let host_of: Vec<usize> =
        hosts.0.iter().enumerate().flat_map(|(host, places)| places.iter().map(move |_| host)).collect();
    let mut push = |from: usize, to: usize, bytes: f64| {
        let across = host_of[from] != host_of[to];
        let efficiency = if across { library.constants.nic_efficiency } else { library.constants.local_efficiency };
        let on_link = bytes * course.rest * course.wire.expand() / efficiency;
        if from != to && bytes > 0.0 {
            all.push((from, to, (on_link as u64).max(1)));
        }
    };
    let of_channel = bytes as f64 / channels as f64;
    for channel in 0..channels {
        match course.algorithm {
            Algorithm::Ring | Algorithm::Pat => {
                let share = match kind {
                    Kind::AllReduce => 2.0 * (n as f64 - 1.0) / n as f64,
                    Kind::SendRecv => 1.0,
                    _ => (n as f64 - 1.0) / n as f64,
                };
                // Each channel leaves a host from another rank.
                let rotated = |places: &[usize]| {
                    let mut places = places.to_vec();
                    let by = channel % places.len();
                    places.rotate_left(by);
                    places
                };
                let way: Vec<usize> = hosts.0.iter().flat_map(|places| rotated(places)).collect();
                (0..n).for_each(|at| push(way[at], way[(at + 1) % n], of_channel * share));
            }
            Algorithm::Tree | Algorithm::Nvls | Algorithm::NvlsTree => {
                let within = if course.algorithm == Algorithm::Tree { 2.0 } else { 1.0 };
                for places in &hosts.0 {
                    let m = places.len();
                    (0..m).for_each(|at| push(places[at], places[(at + 1) % m], of_channel * within));
                }
                let nodes = hosts.0.len();
                for half in 0..2 {
                    let host_at = |place: usize| if half == 0 { place } else { other(place, nodes) };
                    for (place, node) in tree(nodes).iter().enumerate() {
                        let Some(parent) = node.parent else { continue };
                        let ends = (hosts.way_out(host_at(place), channel), hosts.way_out(host_at(parent), channel));
                        push(ends.0, ends.1, of_channel / 2.0);
                        push(ends.1, ends.0, of_channel / 2.0);
                    }
                }
            }
        }
    }
    all
}
