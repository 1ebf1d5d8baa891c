//! The order of messages by what is left of them.
//!
//! Homa, pHost and pFabric serve the message with the least left first (SRPT), and say nothing of equals. Here the
//! first to come goes first, as in the authors' Homa for Linux, and then it has less left: of equals one is sent whole
//! before the next, which gives the least mean time. If the order were that of hosts or of flows' numbers instead, the
//! same host would win each time that two send as much at once. Which message comes first is decided by the jitter of
//! hosts and by the order of ties at switches, which favour none.

use node::Walk;
use units::FlowId;

/// Messages are served by their remaining bytes, and equal ones by arrival: the differences in remaining bytes may
/// grow, but not shrink, and each message keeps its place in both orders. `left` has, for each message, its remaining
/// bytes, its arrival and its name.
pub(crate) fn visit_order(walk: &mut Walk, left: impl Iterator<Item = (u64, u64, FlowId)>) {
    let mut left: Vec<(u64, u64, FlowId)> = left.collect();
    left.sort_unstable();
    for pair in left.windows(2) {
        walk.lead(pair[1].0 - pair[0].0);
    }
    left.iter().for_each(|&(_, _, mut flow)| walk.flow(&mut flow));
    left.sort_unstable_by_key(|&(_, arrival, _)| arrival);
    left.iter().for_each(|&(_, _, mut flow)| walk.flow(&mut flow));
}
