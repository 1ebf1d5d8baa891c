use rustc_hash::FxHashSet;
use units::FlowId;

/// Flows that are complete. Their senders may not know yet: all answers may be lost, for as long as a link is down. A
/// late packet must neither be taken for a new flow nor go unanswered. So flows are remembered for ever, with a few
/// bytes each.
#[derive(Debug, Default, node::State)]
#[state(first(walk.told(self.flows.len() as u64)))]
pub(crate) struct Finished {
    #[state(skip("`told` says how many"))]
    flows: FxHashSet<FlowId>,
    /// How often a flow was remembered when somebody asked.
    hits: u64,
}

impl Finished {
    pub fn add(&mut self, flow: FlowId) {
        self.flows.insert(flow);
    }

    pub fn knows(&mut self, flow: FlowId) -> bool {
        let known = self.flows.contains(&flow);
        self.hits += u64::from(known);
        known
    }
}
