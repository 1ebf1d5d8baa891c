//! Entities as a scenario names them: whose traffic is told apart in results, and what each has asked for.
//!
//! The term is Augmented Queue's (section 2): an application, a congestion control or a VM; here a group of traffic
//! classes, all traffic of some transports, or hosts, since a VM is a host here. What a request means is up to
//! `sharing`; under `physical_queue` it means nothing, so that one scenario serves to compare mechanisms.

use contract::CongestionSignal;
use contract::sharing::{Position, Share};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::Time;
use workload::Hosts;

/// An entity: an `[[entity]]` table of a scenario. Exactly one of `traffic`, `transports` and `hosts` says who belongs
/// to it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EntitySpec {
    /// What results call it.
    pub name: String,
    /// Traffic classes by name: an application.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub traffic: Vec<String>,
    /// All traffic of these transports, by the scheme's name: a congestion control.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub transports: Vec<String>,
    /// All that these hosts send and receive: VMs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hosts: Option<Hosts>,
    /// Whether its requests are for all of it together, or for each part of it.
    #[serde(default)]
    pub each: Each,
    /// What its congestion control listens to; what its transports ask for if unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feedback: Option<CongestionSignal>,
    /// Whether it may have more than it asked for where nobody else uses it; yes if unset. Under
    /// `sharing.aq.work_conserving` alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work_conserving: Option<bool>,
    /// When it makes its requests.
    #[serde(default)]
    pub start: Time,
    /// When it gives back what it was granted; never if unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<Time>,
    /// What it asks for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub request: Vec<RequestSpec>,
}

/// Whom a request is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Each {
    /// All of the entity.
    #[default]
    Entity,
    /// Each of its hosts; of a group of flows, each host that sends some.
    Host,
    /// Each flow.
    Flow,
}

/// A request for bandwidth (Augmented Queue, section 4.1).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RequestSpec {
    /// How much: `{ absolute = "5Gbps" }` or `{ weight = 2 }`.
    pub share: Share,
    /// The pipeline that controls it: what is sent is controlled at ingress, what is received at egress.
    pub position: Position,
    /// The link that is shared, such as `["left", "right"]`, in this direction. It is controlled in the switch that
    /// sends on it; a host's own link, in the switch that it leads to. Unset, it is the own link of each of the
    /// entity's hosts: out of the host at ingress, into it at egress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<[String; 2]>,
}
