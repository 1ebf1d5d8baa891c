//! The order of messages by what is left of them.

use node::Walk;
use units::FlowId;

/// Goes over the order of messages: the one with the least left first, of equal ones the older.
pub(crate) fn walk_order(walk: &mut Walk, mut left: Vec<(u64, FlowId)>) {
    left.sort_unstable();
    for pair in left.windows(2) {
        walk.lead(pair[1].0 - pair[0].0);
    }
    // Each keeps its place.
    left.iter_mut().for_each(|(_, flow)| walk.flow(flow));
    walk.by_number();
}
