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
    /// How often a flow was remembered when somebody asked.
    hits: u64,
}

impl Finished {
    pub fn add(&mut self, flow: FlowId, now: Time, span: Duration) {
        if now.since(self.turned) >= span {
            self.old = std::mem::take(&mut self.young);
            self.turned = now;
        }
        self.young.insert(flow);
    }

    /// Goes over what is remembered. It follows the flows that end, and matters only to who asks for one of them.
    pub fn walk(&self, walk: &mut Walk) {
        walk.same(self.hits);
        walk.told(self.young.len() as u64);
        walk.told(self.old.len() as u64);
    }

    /// Whether a flow is remembered; if so, it stays for another span.
    pub fn knows(&mut self, flow: FlowId, now: Time, span: Duration) -> bool {
        let known = self.young.contains(&flow) || self.old.contains(&flow);
        if known {
            self.hits += 1;
            self.add(flow, now, span);
        }
        known
    }
}

/// Flows that are complete, remembered for ever.
#[derive(Debug, Default)]
pub(crate) struct Ended {
    flows: FxHashSet<FlowId>,
    /// How often a flow was remembered when somebody asked.
    hits: u64,
}

impl Ended {
    pub fn add(&mut self, flow: FlowId) {
        self.flows.insert(flow);
    }

    pub fn knows(&mut self, flow: FlowId) -> bool {
        let known = self.flows.contains(&flow);
        self.hits += u64::from(known);
        known
    }

    /// Goes over what is remembered, as [`Finished::walk`].
    pub fn walk(&self, walk: &mut Walk) {
        walk.same(self.hits);
        walk.told(self.flows.len() as u64);
    }
}

#[cfg(test)]
mod tests;
