//! Entities of a scenario: groups of traffic whose results are kept apart, with their bandwidth requests.
//!
//! The term is Augmented Queue's (section 2), where an entity is an application, a congestion control or a VM. Here it
//! is a group of traffic classes, all traffic of some transports, or a group of hosts (a VM is a host). The mechanism
//! in `sharing` gives requests their meaning. Under `physical_queue` they have none, so the same scenario serves to
//! compare mechanisms.

use contract::CongestionSignal;
use contract::sharing::{Position, Share};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::Time;
use workload::Hosts;

/// An entity: a group of traffic whose results are kept apart. Exactly one of `traffic`, `transports` and `hosts` says
/// what belongs to it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EntitySpec {
    /// Name of the entity in results.
    pub name: String,
    /// Names of traffic classes: the entity is an application.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub traffic: Vec<String>,
    /// Names of transports: the entity is a congestion control.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub transports: Vec<String>,
    /// Hosts: the entity is a group of VMs, with all traffic that these hosts send and receive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hosts: Option<Hosts>,
    /// Whether a request is for the whole entity, for each of its hosts or for each of its flows. Default: `entity`.
    #[serde(default)]
    pub each: Each,
    /// The congestion signal that the entity's traffic reacts to. Default: the signal of its transports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feedback: Option<CongestionSignal>,
    /// Whether the entity may exceed its request where capacity is unused. Default: true. Has an effect only under
    /// `sharing.aq.work_conserving`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work_conserving: Option<bool>,
    /// When the entity makes its requests. Default: at 0.
    #[serde(default)]
    pub start: Time,
    /// When the entity gives back what it was granted. Default: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<Time>,
    /// Bandwidth requests of the entity.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub request: Vec<RequestSpec>,
}

/// What a request applies to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Each {
    /// The whole entity.
    #[default]
    Entity,
    /// Each host of the entity; for a group of flows, each host that sends some of them.
    Host,
    /// Each flow.
    Flow,
}

/// A request for bandwidth (Augmented Queue, section 4.1).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RequestSpec {
    /// Amount of bandwidth: `{ absolute = "5Gbps" }` or `{ weight = 2 }`.
    pub share: Share,
    /// The switch pipeline that enforces the request: `ingress` limits what the entity sends, `egress` what it
    /// receives.
    pub position: Position,
    /// The shared link as a pair of node names, such as `["left", "right"]`, in this direction. The switch that sends
    /// on the link enforces the request; for the link out of a host, the switch that receives does. Default: the own
    /// link of each of the entity's hosts, out of the host at ingress and into the host at egress; of a group of flows
    /// with `each = "host"`, at ingress, the own link of the host that sends them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<[String; 2]>,
}
