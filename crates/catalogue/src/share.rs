//! How entities share a network: the mechanisms, one line each, apart from the transports that they apply to.
//!
//! Any transport runs under any of them. Where transports are endpoints, these stand elsewhere: in switches (Augmented
//! Queue) or between a host's endpoints and its NIC (the rate limiters that it is measured against).

use contract::About;
use contract::sharing::SharingScheme;
use units::Problem;

use crate::list::list;

list! {
    /// A mechanism and its settings. In a scenario: a name (`"aq"`, all defaults) or a table (`{ aq = { limit = "queue"
    /// } }`). With the physical queue as it is, entities are only told apart in results.
    #[derive(Default)]
    Sharing of SharingScheme, "a mechanism's name";
    none "physical_queue" PhysicalQueue;
    "aq" Aq(sharing::aq::Config),
    "rate_limiter" RateLimiter(sharing::limiter::rate_limiter::Config),
    "elastic_switch" ElasticSwitch(sharing::limiter::elastic_switch::Config),
}

impl Sharing {
    /// What it is.
    pub fn about(&self) -> About {
        const PHYSICAL_QUEUE: About = About {
            title: "Physical queues alone",
            source: "",
            summary: "Nothing separates entities: shares depend on their congestion control and their number of flows.",
            needs: "nothing",
        };
        self.as_scheme().map_or(PHYSICAL_QUEUE, SharingScheme::about)
    }

    /// What its types can't forbid; keys begin with its name.
    pub fn check(&self) -> Result<(), Problem> {
        self.as_scheme().map_or(Ok(()), SharingScheme::check).map_err(|problem| problem.under(self.name()))
    }

    /// Its settings that have no effect beside its others; keys begin with its name.
    pub fn advice(&self) -> Vec<Problem> {
        let advice = self.as_scheme().map_or(Vec::new(), SharingScheme::advice);
        advice.into_iter().map(|problem| problem.under(self.name())).collect()
    }
}
