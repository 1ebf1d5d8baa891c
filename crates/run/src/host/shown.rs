//! A host as results and probes show it.

use node::FlowState;
use units::FlowId;

use super::Host;
use crate::Noted;

impl Host {
    /// Asks the transport that knows a flow for the flow's present state.
    pub fn flow_state(&self, flow: FlowId, say: &mut FlowState) {
        for slot in &self.transports {
            slot.endpoint.state(flow, say);
            if !say.is_empty() {
                return;
            }
        }
    }

    /// The counters of the endpoints, by transport, then those of the shaper, if there is one.
    pub fn counters(&self) -> impl Iterator<Item = Vec<(&'static str, u64)>> + '_ {
        let lost = self.receive_limit.as_ref().map(|receive_limit| ("intake_lost_packets", receive_limit.lost_packets));
        let resubmits = self.again.iter().any(|again| !again.is_empty());
        let endpoints = self.transports.iter().enumerate().map(move |(index, slot)| {
            let mut counters = slot.endpoint.counters();
            // Packets lost at the intake belong to no transport: their counter stands with the first one.
            counters.extend(lost.filter(|_| index == 0));
            if resubmits {
                counters.push(("messages_submitted_again", slot.submitted_again));
                counters.push(("messages_delivered_again", slot.delivered_again));
            }
            counters
        });
        endpoints.chain(self.shaper.iter().map(|shaper| shaper.counters()))
    }

    /// The computations of ranks here, and their messages within the host: with the job's number.
    pub fn done(&self) -> impl Iterator<Item = Noted> + '_ {
        self.jobs.iter().flat_map(|jobs| jobs.done())
    }

    /// Sums over the steps of jobs whose steps are not noted one by one, with the job's number.
    pub fn summed(&self) -> impl Iterator<Item = (u16, &job::Summed)> {
        self.jobs.iter().flat_map(|jobs| jobs.summed())
    }
}
