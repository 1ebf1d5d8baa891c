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
mod tests {
    use super::*;

    #[test]
    fn finished_flows_are_remembered_for_one_to_two_spans_since_they_were_last_heard_of() {
        let span = Duration::from_us(10);
        let mut finished = Finished::default();
        finished.add(FlowId(1), Time::from_us(1), span);
        assert!(finished.knows(FlowId(1), Time::from_us(9), span));
        finished.add(FlowId(2), Time::from_us(12), span);
        assert!(finished.knows(FlowId(1), Time::from_us(13), span));
        finished.add(FlowId(3), Time::from_us(22), span);
        assert!(finished.knows(FlowId(1), Time::from_us(23), span));
        finished.add(FlowId(3), Time::from_us(32), span);
        finished.add(FlowId(3), Time::from_us(42), span);
        assert!(!finished.knows(FlowId(2), Time::from_us(43), span));
    }
}
