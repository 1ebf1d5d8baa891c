use rustc_hash::FxHashMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The flow that a receiver gives its next token to, and whose token a sender uses next. pHost leaves this to its user
/// (section 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Policy {
    /// The flow with the least remaining packets.
    Srpt,
    /// Flows in turn.
    FlowFairness,
    /// Tenants in turn, and for each tenant the flow with the least remaining packets. A tenant is a traffic class.
    TenantFairness,
}

/// The turns of flows and tenants at one side of a host.
#[derive(Debug, Default, node::State)]
#[state(given(Policy), first(walk.refuse_if(*given == Policy::TenantFairness, "tenants take turns")))]
pub(super) struct Turns {
    #[state(when(*given == Policy::Srpt, counted, turn("turn")))]
    count: u64,
    /// By tenant: when it had its last turn.
    #[state(skip("refused"))]
    tenants: FxHashMap<u16, u64>,
}

impl Turns {
    /// The first sort key of a flow, before its remaining packets; the least goes first. `last` is the flow's last
    /// turn, 0 for none yet.
    #[inline]
    pub fn rank(&self, policy: Policy, last: u64, tenant: u16) -> u64 {
        match policy {
            Policy::Srpt => 0,
            Policy::FlowFairness => last,
            Policy::TenantFairness => self.tenants.get(&tenant).copied().unwrap_or(0),
        }
    }

    /// Counts a turn of a flow and returns its number.
    #[inline]
    pub fn take(&mut self, policy: Policy, tenant: u16) -> u64 {
        self.count += 1;
        if policy == Policy::TenantFairness {
            self.tenants.insert(tenant, self.count);
        }
        self.count
    }
}
