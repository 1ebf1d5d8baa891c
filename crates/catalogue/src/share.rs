//! How entities share a network: the mechanisms, one line each, apart from the transports that they apply to.
//!
//! Any transport runs under any of them. Where transports are endpoints, these stand elsewhere: in switches (Augmented
//! Queue) or between a host's endpoints and its NIC (the rate limiters that it is measured against).

use node::Balancing;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use units::Problem;

use contract::name_or_table;
use contract::{About, SwitchRequirements};
use sharing::aq;
use sharing::limiter::{elastic_switch, rate_limiter};

/// A mechanism and its settings. In a scenario: a name (`"aq"`, all defaults) or a table (`{ aq = { limit = "queue" } }`).
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Sharing {
    /// None: the physical queue as it is. Entities are only told apart in results.
    #[default]
    PhysicalQueue,
    /// Augmented Queue: each request is an AQ in a switch.
    Aq(aq::Config),
    /// PRL: what an entity is to have is divided evenly among the hosts that send for it, for good.
    RateLimiter(rate_limiter::Config),
    /// DRL: what it is to have is divided evenly among its hosts as hoses, out of senders and into receivers.
    ElasticSwitch(elastic_switch::Config),
}

/// What the derived reader of the table form reads.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Table {
    Aq(aq::Config),
    RateLimiter(rate_limiter::Config),
    ElasticSwitch(elastic_switch::Config),
}

impl From<Table> for Sharing {
    fn from(table: Table) -> Sharing {
        match table {
            Table::Aq(config) => Sharing::Aq(config),
            Table::RateLimiter(config) => Sharing::RateLimiter(config),
            Table::ElasticSwitch(config) => Sharing::ElasticSwitch(config),
        }
    }
}

impl Sharing {
    /// The names of all mechanisms.
    pub const NAMES: &[&str] = &["physical_queue", "aq", "rate_limiter", "elastic_switch"];

    /// A mechanism with its defaults, by name.
    pub fn named(name: &str) -> Option<Sharing> {
        match name {
            "physical_queue" => Some(Sharing::PhysicalQueue),
            "aq" => Some(Sharing::Aq(Default::default())),
            "rate_limiter" => Some(Sharing::RateLimiter(Default::default())),
            "elastic_switch" => Some(Sharing::ElasticSwitch(Default::default())),
            _ => None,
        }
    }

    /// Its name.
    pub fn name(&self) -> &'static str {
        match self {
            Sharing::PhysicalQueue => "physical_queue",
            Sharing::Aq(_) => "aq",
            Sharing::RateLimiter(_) => "rate_limiter",
            Sharing::ElasticSwitch(_) => "elastic_switch",
        }
    }

    /// What it is.
    pub fn about(&self) -> About {
        match self {
            Sharing::PhysicalQueue => About {
                title: "The physical queue",
                source: "",
                summary: "Entities share as their congestion controls and numbers of flows have it.",
                needs: "nothing",
            },
            Sharing::Aq(_) => About {
                title: "Augmented Queue",
                source: "Wu, Wang, Wang, Ng, SIGCOMM 2023",
                summary: "Each entity is answered by the length that a queue of its own, drained at its rate, would have.",
                needs: "15 bytes an entity and some integer arithmetic at switches; tags in packets",
            },
            Sharing::RateLimiter(_) => About {
                title: "Pre-determined rate limiter (PRL)",
                source: "Linux HTB, as Augmented Queue section 5.1 measures it",
                summary: "Each host sends through a token bucket at a rate that is set once.",
                needs: "a hypervisor at each host",
            },
            Sharing::ElasticSwitch(_) => About {
                title: "ElasticSwitch (DRL)",
                source: "Popa et al., SIGCOMM 2013",
                summary: "Hypervisors divide guarantees of hosts among pairs, and probe for more, every 15 ms.",
                needs: "a hypervisor at each host, and control packets between them",
            },
        }
    }

    /// Whether it limits the rates of hosts, by the bandwidth of the requests that they send or receive for.
    pub fn limits_hosts(&self) -> bool {
        matches!(self, Sharing::RateLimiter(_) | Sharing::ElasticSwitch(_))
    }

    /// What its own packets ask of switches, if it sends any.
    pub fn requirements(&self) -> Option<SwitchRequirements> {
        let own = SwitchRequirements::only(Balancing::Ecmp);
        matches!(self, Sharing::ElasticSwitch(_)).then_some(own)
    }

    /// What its types can't forbid; keys begin with its name.
    pub fn check(&self) -> Result<(), Problem> {
        match self {
            Sharing::PhysicalQueue => Ok(()),
            Sharing::Aq(config) => config.check().map_err(|problem| problem.under("aq")),
            Sharing::RateLimiter(config) => config.check().map_err(|problem| problem.under("rate_limiter")),
            Sharing::ElasticSwitch(config) => config.check().map_err(|problem| problem.under("elastic_switch")),
        }
    }
}

impl<'de> Deserialize<'de> for Sharing {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Sharing, D::Error> {
        name_or_table::<D, Sharing, Table>(deserializer, "a mechanism's name", Sharing::NAMES, Sharing::named)
    }
}

impl JsonSchema for Sharing {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Sharing".into()
    }
    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let table = generator.subschema_for::<Table>();
        schemars::json_schema!({ "anyOf": [{ "enum": Sharing::NAMES }, table] })
    }
}
