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
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn flow(src: u32, dst: u32, start_us: u64, work_us: u64) -> Flow {
        let (start, work) = (Time::from_us(start_us), Duration::from_us(work_us));
        Flow { src: HostId(src), dst: HostId(dst), start, work }
    }

    #[test]
    fn the_least_remaining_goes_first_and_what_is_free_is_used() {
        // Two to one receiver, of which the second has less and preempts; for so long the first's sender has time for a
        // third.
        let flows = [flow(0, 2, 0, 100), flow(1, 2, 10, 30), flow(0, 3, 10, 200)];
        assert_eq!(ideal(&flows), [130, 40, 300].map(Time::from_us));
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, ..Default::default() })]

        /// None is done before it could be alone; and one link is never idle while it has something to do.
        #[test]
        fn is_a_schedule(flows in proptest::collection::vec((0u32..4, 0u32..4, 0u64..50, 1u64..50), 1..30)) {
            let all: Vec<Flow> = flows.iter().map(|&(src, dst, start, work)| flow(src, 4 + dst, start, work)).collect();
            for (done, flow) in ideal(&all).into_iter().zip(&all) {
                prop_assert!(done >= flow.start + flow.work);
            }
            let one: Vec<Flow> = all.iter().map(|flow| Flow { src: HostId(0), dst: HostId(1), ..*flow }).collect();
            let mut busy_until = Time::ZERO;
            let mut sorted = one.clone();
            sorted.sort_by_key(|flow| flow.start);
            sorted.iter().for_each(|flow| busy_until = busy_until.max(flow.start) + flow.work);
            prop_assert_eq!(ideal(&one).into_iter().max(), Some(busy_until));
        }
    }
}
