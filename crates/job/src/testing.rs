//! A network for tests: every message takes the time that a function says.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use units::{Duration, HostId, Time};

use crate::{Carried, Done, Graph, MessageId, Placement, Progress, Rank};

/// What happened: of computations and messages within hosts, and of the others.
pub struct Ran {
    pub done: Vec<Done>,
    pub carried: Vec<Carried>,
    pub left: u64,
}

/// Runs a job that begins at 0. `takes` says how long a message takes, and how long the news of that.
pub fn run(graph: &Arc<Graph>, placement: &Arc<Placement>, takes: impl Fn(MessageId) -> (Duration, Duration)) -> Ran {
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
        now = timer.min(next);
        if now == Time::MAX {
            break;
        }
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
            hosts[placement.host_of[graph.message(message).from.index()].index()].left_host(message, &mut out);
        }
    }
    let done = hosts.iter().flat_map(|host| host.done().iter().copied()).collect();
    Ran { done, carried, left: hosts.iter().map(Progress::left).sum() }
}
