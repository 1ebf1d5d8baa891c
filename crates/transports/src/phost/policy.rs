use rustc_hash::FxHashMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Whom a receiver gives its next token to, and whose token a sender uses next: what pHost leaves to its user (section 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Policy {
    /// The flow with the least remaining packets.
    Srpt,
    /// Flows in turn.
    FlowFairness,
    /// Tenants in turn, and of a tenant the flow with the least remaining. A tenant is a class of traffic.
    TenantFairness,
}

/// Whose turn it is at one side of one host.
#[derive(Debug, Default)]
pub(super) struct Turns {
    count: u64,
    /// By tenant, when it had its last turn.
    tenants: FxHashMap<u16, u64>,
}

impl Turns {
    /// What goes before the remaining packets in the order of flows: least first. `last` is the flow's last turn, 0 for none yet.
    #[inline]
    pub fn rank(&self, policy: Policy, last: u64, tenant: u16) -> u64 {
        match policy {
            Policy::Srpt => 0,
            Policy::FlowFairness => last,
            Policy::TenantFairness => self.tenants.get(&tenant).copied().unwrap_or(0),
        }
    }

    /// A flow has its turn, whose number is returned.
    #[inline]
    pub fn take(&mut self, policy: Policy, tenant: u16) -> u64 {
        self.count += 1;
        if policy == Policy::TenantFairness {
            self.tenants.insert(tenant, self.count);
        }
        self.count
    }
}
