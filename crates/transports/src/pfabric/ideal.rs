//! The central scheduler that pFabric is compared with (section 3, Algorithm 1).
//!
//! The fabric is one big switch. At every arrival and every end of a flow, the scheduler goes through the flows by
//! remaining size, least first, and each whose sender and receiver are both free is sent at line rate. It knows all
//! flows at once and preempts at no cost.

use units::{Duration, HostId, Time};

/// A flow, as the scheduler sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Its sender.
    pub src: HostId,
    /// Its receiver.
    pub dst: HostId,
    /// When it arrives.
    pub start: Time,
    /// Its transmission time at line rate.
    pub work: Duration,
}

/// When each flow ends.
pub fn ideal(flows: &[Flow]) -> Vec<Time> {
    let hosts = flows.iter().map(|flow| flow.src.index().max(flow.dst.index()) + 1).max().unwrap_or(0);
    let mut arrivals: Vec<usize> = (0..flows.len()).collect();
    arrivals.sort_by_key(|&flow| (flows[flow].start, flow));
    let mut arrivals = arrivals.into_iter().peekable();
    let mut done = vec![Time::ZERO; flows.len()];
    // Remaining sizes of the present flows, and whether they are being sent.
    let mut active: Vec<(Duration, usize, bool)> = Vec::new();
    let mut now = Time::ZERO;
    loop {
        let goes = active.iter().filter(|flow| flow.2).map(|flow| now + flow.0).min();
        let comes = arrivals.peek().map(|&flow| flows[flow].start);
        let Some(next) = goes.into_iter().chain(comes).min() else { return done };
        let passed = next.since(now);
        now = next;
        for (remaining, flow, _) in active.iter_mut().filter(|flow| flow.2) {
            *remaining = remaining.saturating_sub(passed);
            done[*flow] = now;
        }
        active.retain(|flow| flow.0 > Duration::ZERO);
        while let Some(flow) = arrivals.next_if(|&flow| flows[flow].start <= now) {
            active.push((flows[flow].work, flow, false));
        }
        active.sort_unstable();
        let (mut sends, mut receives) = (vec![false; hosts], vec![false; hosts]);
        for (_, flow, goes) in &mut active {
            let (src, dst) = (flows[*flow].src.index(), flows[*flow].dst.index());
            *goes = !sends[src] && !receives[dst];
            if *goes {
                (sends[src], receives[dst]) = (true, true);
            }
        }
    }
}

#[cfg(test)]
mod tests;
