//! The order of messages by what is left of them.

use node::Walk;
use units::FlowId;

/// What follows depends on the order of messages by what is left of each, ties by their numbers: the distances may
/// grow, but not shrink, and each keeps its place.
pub(crate) fn visit_order(walk: &mut Walk, left: impl Iterator<Item = (u64, FlowId)>) {
    let mut left: Vec<(u64, FlowId)> = left.collect();
    left.sort_unstable();
    for pair in left.windows(2) {
        walk.lead(pair[1].0 - pair[0].0);
    }
    left.iter_mut().for_each(|(_, flow)| walk.flow(flow));
    walk.by_number();
}
