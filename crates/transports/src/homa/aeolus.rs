//! Aeolus on Homa: first-RTT packets never delay scheduled ones (Hu, Bai, Zeng, Wang, Qiao, Chen, Tan, Wang: Aeolus: A
//! Building Block for Proactive Transport in Datacenters, SIGCOMM 2020).
//!
//! Unscheduled packets go at line rate as in Homa, but switches drop them as soon as a few packets wait (*selective
//! dropping*, by RED on packets that are not ECN-capable: section 4). Granted packets are flagged ECN-capable and never
//! dropped that way. Each unscheduled packet that arrives is acknowledged, and so is the *probe* that follows the last
//! of them. Packets that are not acknowledged by then are lost, and are sent again as scheduled packets, before any new
//! ones. The receiver learns the same from the probe, and grants lost packets like the rest. The scheduled part is
//! Homa's.

use node::{EarlyDrop, Endpoint, EndpointParams, Marking};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Bytes, Problem};

use super::Header;
use super::host::Homa;
use super::params::Params;
use contract::{About, Capabilities, Family, HeaderFormat, NetworkView, Scheme, SwitchRequirements, Timer, headers_of};

/// Configuration of Aeolus.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Unscheduled packets are dropped if more than this waits, including themselves. Default: 6000B.
    pub threshold: Bytes,
    /// Which queue counts. Default: `port`.
    pub queue: Queue,
    /// The settings of Homa.
    pub homa: super::Config,
}

/// Where unscheduled packets wait, and which queue's length drops them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Queue {
    /// Homa's priorities; the length of all queues of the port counts (RED by port).
    Port,
    /// Homa's priorities; the length of the packet's own class counts (RED by queue).
    Class,
    /// All data waits in one queue below control packets, as in the authors' testbed, and that queue counts.
    One,
}

impl Default for Config {
    fn default() -> Config {
        Config { threshold: Bytes(6_000), queue: Queue::Port, homa: super::Config::default() }
    }
}

impl Scheme for Config {
    fn about(&self) -> About {
        About {
            title: "Homa with Aeolus: selective dropping in the first round trip",
            source: "Hu, Bai, Zeng, Wang, Qiao, Chen, Tan, Wang: Aeolus: A Building Block for Proactive Transport in \
                     Datacenters, SIGCOMM 2020",
            summary: "Homa whose unscheduled packets are dropped at a queue that is not empty, and sent again as \
                      scheduled packets.",
            needs: "hosts: as Homa; switches: 8 strict priorities (2 at least), packet spraying, RED that drops \
                    packets that are not ECN-capable",
        }
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::of_hosts(Family::Proactive)
    }

    fn headers(&self) -> &'static dyn HeaderFormat {
        headers_of::<Header>()
    }

    fn check(&self) -> Result<(), Problem> {
        if self.threshold == Bytes(0) {
            return Err(Problem::new(
                "threshold",
                "at 0 no unscheduled packet would arrive; write at least one packet, \"1500B\"",
            ));
        }
        self.homa.check().map_err(|problem| problem.under("homa"))
    }

    fn timers(&self, network: &NetworkView) -> Vec<Timer> {
        let after = self.homa.resend_after(network);
        vec![Timer::new("homa.resend_after", self.homa.resend_after, after, super::RESENDS)]
    }

    fn endpoint(&self, site: &EndpointParams, network: &NetworkView) -> Box<dyn Endpoint> {
        Box::new(Homa::new(Params::new(&self.homa, Some(self.queue), site, network)))
    }

    fn requirements(&self, site: &EndpointParams) -> SwitchRequirements {
        let at = Marking::Step { threshold: self.threshold };
        let by_port = self.queue == Queue::Port;
        SwitchRequirements { early_drop: Some(EarlyDrop { at, by_port }), ..self.homa.requirements(site) }
    }
}
