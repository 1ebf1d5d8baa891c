//! pFabric: minimal near-optimal datacenter transport (Alizadeh, Yang, Sharif, Katti, McKeown, Prabhakar, Shenker,
//! SIGCOMM 2013).
//!
//! Scheduling and rate control are separate. Every packet carries a number, the remaining size of its flow. Switches
//! have a queue of two bandwidth-delay products at each port; they send the packet with the least number first and drop
//! the one with the greatest (section 4.1, [`queue`]). Rate control then only has to prevent collapse (section 4.3,
//! `sender`): flows start at line rate, slow down only at timeouts, and probe with headers after five of them.
//!
//! Of the flow whose packet has the least number a switch sends the packet that came *first*: a flow's later packets
//! have smaller numbers, and its earlier ones would starve (section 4.1).
//!
//! - [`header`]: what packets carry;
//! - [`queue`]: a port's queue, and the switch with one at each port;
//! - [`ideal`]: the central scheduler that it is compared with;
//! - `sender`, `receiver`, `host`, `params`: rate control, and the NIC, which sends the flow with the least remaining
//!   first.
//!
//! # Decisions
//!
//! - **A round trip** is that of a full data packet and an acknowledgement over the longest way; the bandwidth-delay
//!   product is what a host sends in it. The paper has 12 packets, and 15 for the greatest window in its authors'
//!   program; both scale with the product.
//! - **Each data packet is acknowledged**, by its own number and cumulatively. Acknowledgements have the highest
//!   priority, probes that of their flow.
//! - **The timer** is one for each flow, restarted by each cumulative acknowledgement. After a timeout sending begins
//!   again at the first packet that is not acknowledged, over all that are not.
//! - **The window** bounds packets that are on their way: those acknowledged out of order aren't. It grows with
//!   cumulative acknowledgements, one each up to the threshold, one a window above.
//! - **A packet leaves its flow at the last moment**: no NIC queue exists in which its number could become stale.
//! - **Equal numbers** are ordered by arrival: the first is sent first, the last is dropped first.
//! - **Packets of other transports** have no such number, and go last.
//!
//! Deliberately absent: other priorities than remaining size (deadlines, which no scenario has; total flow size).

pub mod header;
pub mod ideal;
pub mod queue;

mod host;
mod params;
mod receiver;
mod sender;

#[cfg(test)]
mod tests;

use node::{Balancing, Endpoint, EndpointParams, QueueDiscipline};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Bytes, Problem, SwitchId};

use contract::{About, Capabilities, Family, HeaderFormat, NetworkView, Scheme, SwitchRequirements, Timer, headers_of};

pub use header::Header;

/// Configuration of pFabric. The defaults are the paper's (sections 4 and 5.1).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Queue of a switch port. Default: two bandwidth-delay products.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<Bytes>,
    /// Initial window of a flow. Default: one bandwidth-delay product.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initial_window: Option<Bytes>,
    /// Largest window in units of the initial window. Default: 1.25.
    pub window_max: f64,
    /// Retransmission timeout, in round trips. Default: 3.
    pub timeout: f64,
    /// Number of timeouts without an acknowledgement after which a flow probes. Default: 5.
    pub probe_after: u32,
}

impl Default for Config {
    fn default() -> Config {
        Config { queue: None, initial_window: None, window_max: 1.25, timeout: 3.0, probe_after: 5 }
    }
}

impl Scheme for Config {
    fn about(&self) -> About {
        About {
            title: "pFabric: minimal near-optimal datacenter transport",
            source: "Alizadeh, Yang, Sharif, Katti, McKeown, Prabhakar, Shenker: pFabric, SIGCOMM 2013",
            summary: "Packets carry the bytes that their flow has left; switches send the smallest first and drop the \
                      largest.",
            needs: "hosts: flow sizes known in advance; switches: queues sorted by remaining size and by flow, packet \
                    spraying",
        }
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { brings_queueing: true, ..Capabilities::of_hosts(Family::Proactive) }
    }

    fn headers(&self) -> &'static dyn HeaderFormat {
        headers_of::<Header>()
    }

    fn check(&self) -> Result<(), Problem> {
        let problem = |key: &str, message: String| Err(Problem::new(key, message));
        if self.queue.is_some_and(|queue| queue.get() < 1_500) {
            return problem("queue", "must have room for at least one packet, 1500B".into());
        }
        let most = |bytes: Option<Bytes>| bytes.is_some_and(|bytes| bytes.get() > 1 << 30);
        if most(self.queue) || most(self.initial_window) {
            let key = if most(self.queue) { "queue" } else { "initial_window" };
            return problem(key, "is too large; at most 1GiB".into());
        }
        if self.initial_window == Some(Bytes(0)) {
            return problem(
                "initial_window",
                "with a window of 0 nothing would be sent; leave it out for 1 BDP".into(),
            );
        }
        if !(1.0..=1_000.0).contains(&self.window_max) {
            return problem("window_max", format!("{} is not between 1 (as it started) and 1000", self.window_max));
        }
        if !(1.0..=1_000.0).contains(&self.timeout) {
            return problem("timeout", format!("{} is not between 1 (no answer can be sooner) and 1000", self.timeout));
        }
        if self.probe_after == 0 {
            return problem(
                "probe_after",
                "at 0 it would probe before anything is sent; write at least 1 (5 in the paper)".into(),
            );
        }
        Ok(())
    }

    fn timers(&self, network: &NetworkView) -> Vec<Timer> {
        let timeout = params::Params::new(self, &network.site).timeout;
        let set = Some(timeout).filter(|_| self.timeout != Config::default().timeout);
        vec![Timer::new("timeout", set, timeout, "sends all that is not acknowledged again, a packet at a time")]
    }

    fn endpoint(&self, site: &EndpointParams, _: &NetworkView) -> Box<dyn Endpoint> {
        Box::new(host::Pfabric::new(params::Params::new(self, site)))
    }

    fn queueing(&self, network: &NetworkView, switch: SwitchId) -> Option<Box<dyn QueueDiscipline>> {
        let site = &network.site;
        let bytes = self.queue.map_or(2 * site.bdp_bytes(), |queue| queue.get());
        // A full packet always fits.
        let bytes = bytes.max(u64::from(site.mtu_bytes)).min(u64::from(u32::MAX)) as u32;
        let ports = network.fabric.ports[network.fabric.switch_node(switch).index()].len();
        Some(Box::new(queue::SwitchPart::new(ports, bytes, site.transport)))
    }

    fn requirements(&self, _: &EndpointParams) -> SwitchRequirements {
        SwitchRequirements::only(Balancing::Spray)
    }
}
