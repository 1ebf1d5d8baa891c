//! NDP (Handley, Raiciu, Agache, Voinescu, Moore, Antichi, Wójcik: Re-architecting Datacenter Networks and Stacks for
//! Low Latency and High Performance, SIGCOMM 2017).
//!
//! A sender pushes a first window at line rate, without a handshake (`sender`, section 3.2). Switches have a data
//! queue of eight packets at each port. A packet that finds it full loses its payload, and its headers go ahead of data
//! ([`switch`], section 3.1). So the receiver learns of every packet that was sent: it answers data with an *ACK* and
//! headers with a *NACK*, at once, and adds a *PULL* to the one pull queue of its link, from which pulls leave at the
//! rate at which full packets can arrive (`receiver`). A sender sends as many packets as the pull counter has grown
//! by, trimmed ones first.
//!
//! Senders choose the path of each packet: a random permutation of all paths, then another (section 3.1.1); paths that
//! trim or lose more than the others are left out for a while (`paths`, section 3.2.3). If even headers find no room,
//! the switch returns them to their sender (section 3.2.4). There is no further congestion control, which is the
//! paper's point.
//!
//! Comments note where the paper is silent, and `docs/schemes/ndp.md` lists all decisions.
//!
//! Deliberately absent: the reuse of a connection for several messages (each message is a connection here, so nothing
//! is pushed behind the last packet), the processing delays of the authors' prototype, and P4.

pub mod departures;
pub mod header;
pub mod switch;

mod host;
mod params;
mod paths;
mod receiver;
mod sender;

#[cfg(test)]
mod tests;

use node::{Balancing, Endpoint, EndpointParams};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Bytes, Duration, Problem, SwitchId};

use contract::{
    About, Capabilities, ControlPackets, Family, HeaderFormat, NetworkView, Scheme, SwitchRequirements, Timer,
    headers_of,
};

pub use departures::{Departure, Departures};
pub use header::Header;

/// Configuration of NDP.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Bytes that a sender sends before it hears from the receiver (IW). Default: one bandwidth-delay product and two
    /// queues of a switch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initial_window: Option<Bytes>,
    /// Length of the data queue of a switch port, in full packets. Its header queue has as much memory. Default: 8.
    pub queue_packets: u16,
    /// Number of headers that a port sends for each data packet while both wait. Default: 10.
    pub headers_per_packet: u16,
    /// Whether switches return headers that find no room to their sender. Default: true.
    pub return_to_sender: bool,
    /// Who chooses the path of each packet. Default: `senders`.
    pub paths: PathChoice,
    /// Whether senders avoid paths that trim or lose more packets than others. Default: true.
    pub path_penalty: bool,
    /// The order of pulls. Default: `fair`.
    pub pulls: PullOrder,
    /// Time without ACK, NACK or return after which a packet is sent again. Default: the time that full queues on the
    /// whole path take.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-least" = "100ns"))]
    pub rto: Option<Duration>,
    /// Points in which to follow the authors' program of 2017 instead of the paper: a list, or `"published"` for all.
    /// Default: none.
    pub departures: Departures,
}

/// Who chooses the path of each packet (section 3.1.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PathChoice {
    /// The sender: each path once, in random order, then again in another order.
    Senders,
    /// The switches, as `switch.balancing` says; at random if it is not set.
    Switches,
}

/// The order in which a receiver serves the flows that it has pulls for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PullOrder {
    /// One pull for each flow in turn.
    Fair,
    /// Flows of a traffic class that the scenario lists earlier go first; in turn within a class.
    ByClass,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            initial_window: None,
            queue_packets: 8,
            headers_per_packet: 10,
            return_to_sender: true,
            paths: PathChoice::Senders,
            path_penalty: true,
            pulls: PullOrder::Fair,
            rto: None,
            departures: Departures::default(),
        }
    }
}

impl Config {
    /// The bytes of a full packet that count, between pulls and in a switch's queue.
    fn counted_bytes(&self, site: &EndpointParams) -> u16 {
        if self.departures.has(Departure::PayloadOnly) { site.payload_max() } else { site.mtu_bytes }
    }
}

impl Scheme for Config {
    fn about(&self) -> About {
        About {
            title: "NDP",
            source: "Handley et al.: Re-architecting Datacenter Networks and Stacks for Low Latency and High \
                     Performance, SIGCOMM 2017",
            summary: "Senders send a first window at line rate over all paths, switches trim packets that do not fit, \
                      receivers pull the rest.",
            needs: "switches: two queues a port (eight data packets, and headers with priority), trimming, return to \
                    sender, source routes; hosts: all paths to every other host, pulls paced at the link rate",
        }
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { brings_queueing: true, ..Capabilities::of_hosts(Family::Proactive) }
    }

    fn headers(&self) -> &'static dyn HeaderFormat {
        headers_of::<Header>()
    }

    // An ACK, with a pull in it; 0.35 to 0.5 more are trimmed packets and pulls alone (web search 0.6, permutations).
    fn control_packets(&self) -> ControlPackets {
        ControlPackets { per_packet: 1.4, ..ControlPackets::NONE }
    }

    fn check(&self) -> Result<(), Problem> {
        let problem = |key: &str, message: String| Err(Problem::new(key, message));
        if let Some(window) = self.initial_window.filter(|window| !(1..=1 << 32).contains(&window.get())) {
            return problem("initial_window", format!("{window} is not between 1B (one packet) and 4GiB"));
        }
        if !(1..=1_024).contains(&self.queue_packets) {
            return problem("queue_packets", format!("{} is not between 1 and 1024", self.queue_packets));
        }
        if !(1..=1_000).contains(&self.headers_per_packet) {
            let message = format!("{} is not between 1 and 1000", self.headers_per_packet);
            return problem("headers_per_packet", message);
        }
        let long = Duration::from_ms(1_000);
        if let Some(rto) = self.rto.filter(|&rto| rto == Duration::ZERO || rto > long) {
            return problem("rto", format!("{rto} is not above 0 and up to {long}"));
        }
        Ok(())
    }

    fn requirements(&self, _: &EndpointParams) -> SwitchRequirements {
        SwitchRequirements {
            own_routes: self.paths == PathChoice::Senders,
            ..SwitchRequirements::only(Balancing::Spray)
        }
    }

    fn check_on(&self, network: &NetworkView) -> Result<(), Problem> {
        if self.paths == PathChoice::Senders {
            paths::check(network)?;
        }
        Ok(())
    }

    fn timers(&self, network: &NetworkView) -> Vec<Timer> {
        let rto = params::Params::new(self, &network.site, network.narrowest).rto;
        vec![Timer::new("rto", self.rto, rto, "sends a packet again")]
    }

    fn endpoint(&self, site: &EndpointParams, network: &NetworkView) -> Box<dyn Endpoint> {
        let params = params::Params::new(self, site, network.narrowest);
        let paths = (self.paths == PathChoice::Senders).then(|| paths::Paths::new(self, site, network));
        Box::new(host::Ndp::new(params, paths))
    }

    fn queueing(&self, network: &NetworkView, switch: SwitchId) -> Option<Box<dyn node::QueueDiscipline>> {
        let ports = network.fabric.ports[network.fabric.switch_node(switch).index()].len();
        Some(Box::new(switch::part(self, &network.site, ports)))
    }
}
