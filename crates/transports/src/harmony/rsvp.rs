//! RSVP in a datacenter: Harmony with K = 1 (sections 1 and 3.1), which the paper uses to show the value of virtual
//! links.
//!
//! A host sends and receives one message at a time and a link carries one, each at the full rate. So links are not
//! shared, only control packets queue, and a rsvp is refused wherever its path meets another message's. The
//! implementation is Harmony's.

use node::{Endpoint, EndpointParams, SwitchAgent};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Duration, Problem, SwitchId};

use super::{Header, Refused};
use contract::{
    About, Capabilities, ControlPackets, Guarantee, HeaderFormat, NetworkView, Scheme, SwitchRequirements, Timer,
    headers_of,
};

/// Configuration of RSVP, with keys as in Harmony's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// How long a request may wait at its receiver before it is rejected, by the receiver's clock. Default: 63us.
    #[schemars(extend("x-least" = "100ns"))]
    pub delta_admission: Duration,
    /// What happens to a request whose rsvp finds no free virtual link or slot. Default: `wait`.
    pub refused: Refused,
    /// Least time between the last rsvp of a refused request and the next attempt. Default: one round trip of control
    /// packets.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-least" = "100ns"))]
    pub retry_after: Option<Duration>,
    /// Number of times that a sender asks before it reports a failure, the first included. Default: 3.
    pub attempts: u8,
    /// Share of the links that data never use, so that control packets of the second class are not starved. Default:
    /// 0.01.
    pub control_share: f64,
}

impl Default for Config {
    fn default() -> Config {
        let super::Config { delta_admission, refused, retry_after, attempts, control_share, .. } = Default::default();
        Config { delta_admission, refused, retry_after, attempts, control_share }
    }
}

impl Config {
    fn harmony(&self) -> super::Config {
        let Config { delta_admission, refused, retry_after, attempts, control_share } = self.clone();
        let more = super::Config::default();
        super::Config { slots: 1, delta_admission, refused, retry_after, attempts, control_share, ..more }
    }
}

impl Scheme for Config {
    fn about(&self) -> About {
        About {
            title: "RSVP: whole links reserved before a message is sent",
            source: "Agarwal, Cai, Agarwal, Shmoys, Vahdat: Harmony, NSDI 2024, with K = 1; RFC 2205",
            summary: "Reserves every link of a path for one message at a time: no queues, and low utilisation.",
            needs: self.harmony().about().needs,
        }
    }

    fn capabilities(&self) -> Capabilities {
        self.harmony().capabilities()
    }

    fn headers(&self) -> &'static dyn HeaderFormat {
        headers_of::<Header>()
    }

    // A reservation and its release; a rejected message sends no more than that.
    fn control_packets(&self) -> ControlPackets {
        ControlPackets { per_message: 2.0, ..ControlPackets::NONE }
    }

    fn check(&self) -> Result<(), Problem> {
        self.harmony().check()
    }

    fn requirements(&self, site: &EndpointParams) -> SwitchRequirements {
        self.harmony().requirements(site)
    }

    fn check_on(&self, network: &NetworkView) -> Result<(), Problem> {
        let no_slots = |problem: Problem| match problem.key.as_str() {
            "slots" => Problem::new(
                "",
                format!("RSVP has one slot a host: {}; that setting belongs to harmony", problem.message),
            ),
            _ => problem,
        };
        self.harmony().check_on(network).map_err(no_slots)
    }

    fn timers(&self, network: &NetworkView) -> Vec<Timer> {
        self.harmony().timers(network)
    }

    fn endpoint(&self, site: &EndpointParams, network: &NetworkView) -> Box<dyn Endpoint> {
        self.harmony().endpoint(site, network)
    }

    fn agent(&self, network: &NetworkView, switch: SwitchId) -> Option<Box<dyn SwitchAgent>> {
        self.harmony().agent(network, switch)
    }

    fn guarantee(&self, network: &NetworkView) -> Option<Guarantee> {
        self.harmony().guarantee(network)
    }
}
