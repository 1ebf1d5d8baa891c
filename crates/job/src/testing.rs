//! Helpers for tests of several modules: a network on which messages take given times, and broken files.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use units::{Duration, HostId, Rate, Time};

use crate::{Carried, Done, Graph, MessageId, Placement, Progress, Rank, StepId};

/// The events: of computations and messages within hosts, and of the others.
pub struct Ran {
    pub done: Vec<Done>,
    pub carried: Vec<Carried>,
    pub left: u64,
    /// When the last of all this was.
    pub end: Time,
}

/// The steps that wait for a step, each as often as it does, in the order of their numbers.
pub(crate) fn after(graph: &Graph, step: StepId) -> Vec<StepId> {
    let mut after = Vec::new();
    graph.each_after(step, |next| after.push(next));
    after.sort_unstable();
    after
}

/// Carries a job that begins at 0. `takes` says how long a message takes, and how long the news of that.
pub fn carry(graph: &Arc<Graph>, placement: &Arc<Placement>, takes: impl Fn(MessageId) -> (Duration, Duration)) -> Ran {
    let mut ranks: Vec<Vec<Rank>> =
        vec![Vec::new(); placement.host_of.iter().map(|host| host.index() + 1).max().unwrap_or(0)];
    placement.host_of.iter().zip(0..).for_each(|(host, rank)| ranks[host.index()].push(Rank(rank)));
    let progress = |ranks: &Vec<Rank>| Progress::new(Arc::clone(graph), Arc::clone(placement), ranks);
    let mut hosts: Vec<Progress> = ranks.iter().map(progress).collect();
    let mut carried = vec![Carried::default(); graph.messages().len()];
    // Messages under way: those that arrive, and those whose senders learn of that.
    let mut news: BinaryHeap<Reverse<(Time, MessageId, bool)>> = BinaryHeap::new();
    let mut now = Time::ZERO;
    let mut out = Vec::new();
    hosts.iter_mut().for_each(|host| host.begin(now, &mut out));
    loop {
        for message in out.drain(..) {
            let (there, back) = takes(message);
            carried[message.index()].started = Some(now);
            news.push(Reverse((now + there, message, false)));
            news.push(Reverse((now + there + back, message, true)));
        }
        let timer = hosts.iter().map(Progress::next_at).min().unwrap_or(Time::MAX);
        let next = news.peek().map_or(Time::MAX, |next| next.0.0);
        if timer.min(next) == Time::MAX {
            break;
        }
        now = timer.min(next);
        if next > now {
            hosts.iter_mut().filter(|host| host.next_at() == now).for_each(|host| host.wake(now, &mut out));
            continue;
        }
        let Some(Reverse((_, message, back))) = news.pop() else { break };
        let HostId(host) = placement.host_of[{
            let message = graph.message(message);
            if back { message.from } else { message.to }
        }
        .index()];
        let (host, carried) = (&mut hosts[host as usize], &mut carried[message.index()]);
        if back {
            carried.completed = Some(now);
            host.sent(message, now, &mut out);
        } else {
            carried.delivered = Some(now);
            host.arrived(message, now, &mut out);
            // The whole time of a message is taken for its serialisation.
            hosts[placement.host_of[graph.message(message).from.index()].index()].left_host(message, now, &mut out);
        }
    }
    let done = hosts.iter().flat_map(|host| host.done().iter().copied()).collect();
    Ran { done, carried, left: hosts.iter().map(Progress::left).sum(), end: now }
}

/// When everything has ended, and all computations, with a host for each rank.
pub(crate) fn run(graph: &Arc<Graph>, message: Duration) -> (Time, Vec<Done>) {
    let host_of = (0..graph.ranks()).map(HostId).collect();
    let placement = Arc::new(Placement { host_of, rate: Rate::from_gbps(1), delay: Duration::ZERO });
    let Ran { mut done, left, end, .. } = carry(graph, &placement, |_| (message, Duration::ZERO));
    assert_eq!(left, 0, "everything ends");
    done.sort_by_key(|done| done.end);
    (end, done)
}

/// The content after a few small changes, always the same ones: bits, bytes, cuts, copies.
pub(crate) fn mangled(seeds: &[Vec<u8>], tries: u64, mut each: impl FnMut(&[u8])) {
    let mut chance = units::Stream::new(1, 0, "mangled");
    for content in seeds {
        (0..content.len().min(300)).for_each(|length| each(&content[..length]));
    }
    for _ in 0..tries {
        let mut bytes = chance.choose(seeds).expect("there are seeds").clone();
        for _ in 0..=chance.below(3) {
            let length = bytes.len() as u64;
            let at = chance.below(length + 1) as usize;
            let end = at + chance.below(length + 1 - at as u64).min(40) as usize;
            match chance.below(6) {
                0 if at < bytes.len() => bytes[at] ^= 1 << chance.below(8),
                1 if at < bytes.len() => bytes[at] = *chance.choose(b"\0\x01\x7f\x80\xff09{}:-\n").expect("some"),
                2 => drop(bytes.drain(at..end)),
                3 => bytes.truncate(at),
                4 => drop(bytes.splice(at..end, b"18446744073709551615".iter().copied())),
                _ => {
                    let copy = bytes[at..end].to_vec();
                    bytes.splice(at..at, copy);
                }
            }
        }
        each(&bytes);
    }
    for length in 0..200 {
        let bytes: Vec<u8> = (0..length).map(|_| chance.below(256) as u8).collect();
        each(&bytes);
    }
}
