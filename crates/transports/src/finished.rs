use node::Walk;
use rustc_hash::FxHashSet;
use units::{Duration, FlowId, Time};

/// Flows that are complete. Their senders may not know yet, and a late packet must neither be taken for a new flow nor
/// go unanswered. Each flow is remembered for one to two spans (like RFC 9293's TIME-WAIT, at the other end), so memory
/// is bounded by the flows that finish in that time.
#[derive(Debug, Default)]
pub(crate) struct Finished {
    young: FxHashSet<FlowId>,
    old: FxHashSet<FlowId>,
    turned: Time,
}

impl Finished {
    pub fn add(&mut self, flow: FlowId, now: Time, span: Duration) {
        if now.since(self.turned) >= span {
            self.old = std::mem::take(&mut self.young);
            self.turned = now;
        }
        self.young.insert(flow);
    }

    /// Goes over what is remembered: flows come and go with those that end, after some of which the oldest are
    /// forgotten.
    pub fn walk(&mut self, walk: &mut Walk, span: Duration) {
        walk.same((self.young.len(), self.old.len()));
        walk.same(walk.now().since(self.turned) >= span);
        // No flow ends in a period, so it is not forgotten in one either.
        walk.past(&mut self.turned);
    }

    /// Whether a flow is remembered; if so, it stays for another span.
    pub fn knows(&mut self, flow: FlowId, now: Time, span: Duration) -> bool {
        let known = self.young.contains(&flow) || self.old.contains(&flow);
        if known {
            self.add(flow, now, span);
        }
        known
    }
}

#[cfg(test)]
mod tests;
