//! NDP (Handley, Raiciu, Agache, Voinescu, Moore, Antichi, Wójcik: Re-architecting Datacenter Networks and Stacks for Low Latency and
//! High Performance, SIGCOMM 2017).
//!
//! A sender pushes a first window at line rate, without a handshake ([`sender`], section 3.2). Switches have a data queue of eight
//! packets a port; what finds it full loses its payload, and its headers go ahead of data ([`switch`], section 3.1). So the receiver
//! learns of every packet that was sent: it answers data with an *ACK* and headers with a *NACK*, at once, and adds a *PULL* to the one
//! pull queue of its link, from which pulls leave at the rate at which full packets can come in ([`receiver`]). A sender sends as many
//! packets as the pull counter has grown by, what was trimmed first.
//!
//! Senders choose the path of each packet: a random permutation of all paths, then another (section 3.1.1); paths that trim or lose more
//! than the others are left out for a while ([`paths`], section 3.2.3). Where even headers find no room, the switch sends them back
//! to their sender (section 3.2.4). There is no congestion control beyond that, which is the paper's point.
//!
//! Where the paper is silent it says so beside the code, and `docs/schemes/ndp.md` lists it all.
//!
//! Absent on purpose: the reuse of a connection for several messages (each message of an application is one here, so that nothing is
//! pushed behind the last packet), the processing delays of the authors' prototype, and P4.

pub mod departures;
pub mod header;
pub mod switch;

mod host;
mod paths;
mod receiver;
mod sender;
mod terms;

#[cfg(test)]
mod tests;

use node::{Balancing, Endpoint, Site};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Bytes, Duration, Problem, SwitchId};

use contract::{About, Family, HeaderFormat, Nature, NetworkView, Scheme, SwitchRequirements, headers_of};

pub use departures::{Departure, Departures};
pub use header::Header;
pub use switch::SwitchPart;

/// What a scenario may set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// IW: what a sender pushes before it has heard anything. One bandwidth-delay product and two queues of a switch if unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initial_window: Option<Bytes>,
    /// Full packets that the data queue of a switch's port holds. Its header queue has as much memory.
    pub queue_packets: u16,
    /// Headers that a port sends for each data packet while both wait.
    pub headers_per_packet: u16,
    /// Whether switches send headers back that find no room.
    pub return_to_sender: bool,
    /// Who chooses the path of each packet.
    pub paths: PathChoice,
    /// Whether senders leave paths out that trim or lose more than the others.
    pub path_penalty: bool,
    /// Whose pull goes first.
    pub pulls: PullOrder,
    /// How long a packet may go without ACK, NACK or return before it is sent again; what full queues on the whole way take, if unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rto: Option<Duration>,
    /// Where to follow the authors' program of 2017 instead of the paper: `"published"`, everywhere, or a list.
    pub departures: Departures,
}

/// Who chooses the path of each packet (section 3.1.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PathChoice {
    /// Its sender: each path once, in random order, then again in another.
    Senders,
    /// The switches, as `switch.balancing` says; at random if it says nothing.
    Switches,
}

/// In which order the flows that a receiver has pulls for are served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PullOrder {
    /// One pull a flow in turn.
    Fair,
    /// Flows of a class of traffic that the scenario lists earlier go first; within a class, in turn.
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
    /// What counts of a full packet, between pulls and in a switch's queue.
    fn counted_bytes(&self, site: &Site) -> u16 {
        if self.departures.has(Departure::PayloadOnly) { site.payload_max() } else { site.mtu_bytes }
    }
}

impl Scheme for Config {
    fn about(&self) -> About {
        About {
            title: "NDP",
            source: "Handley et al.: Re-architecting Datacenter Networks and Stacks for Low Latency and High Performance, SIGCOMM 2017",
            summary: "Senders push a first window at line rate over all paths, switches trim what does not fit, receivers pull the rest.",
            needs: "switches: two queues a port (eight packets of data, and headers before them), trimming, return to sender, source routes; \
                    hosts: paths to all others, pulls paced by the packet",
        }
    }

    fn nature(&self) -> Nature {
        Nature { brings_queueing: true, ..Nature::of_hosts(Family::Proactive) }
    }

    fn headers(&self) -> &'static dyn HeaderFormat {
        headers_of::<Header>()
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

    fn requirements(&self, _: &Site) -> SwitchRequirements {
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

    fn endpoint(&self, site: &Site, network: &NetworkView) -> Box<dyn Endpoint> {
        let terms = terms::Params::new(self, site, network.fabric.narrowest_rate());
        let paths = (self.paths == PathChoice::Senders).then(|| paths::Paths::new(self, site, network));
        Box::new(host::Ndp::new(terms, paths))
    }

    fn queueing(&self, network: &NetworkView, switch: SwitchId) -> Option<Box<dyn node::QueueDiscipline>> {
        let ports = network.fabric.ports[network.fabric.switch_node(switch).index()].len();
        Some(Box::new(SwitchPart::new(self, &network.site, ports)))
    }
}
