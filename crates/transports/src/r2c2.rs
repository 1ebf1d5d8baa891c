//! R2C2: a rack's network stack (Costa, Ballani, Razavi, Kash: R2C2: A Network Stack for Rack-scale Computers, SIGCOMM
//! 2015).
//!
//! Every node knows every flow: starts, ends and changes are broadcast in 16 bytes over shortest-path trees
//! ([`network`], `switch`; section 3.2). From these broadcasts ([`view`]) and the routing of flows, each node
//! computes the fair rates of its own flows ([`rates`]; section 3.3) and enforces them with one token bucket for each
//! flow (`sender`). Packets carry their routes (`route`; section 3.5). Nothing probes the network, and switches
//! have one queue at each port. The routing protocol of each flow is chosen to maximise a utility of the whole rack
//! ([`selection`]; section 3.4).
//!
//! [`wire`] has the packets of Figure 6; `travel` carries them. The schemes that the evaluation compares with are other
//! transports and flow controls of the project; the centralised design of section 5.2 is a setting here ([`Control`]).
//!
//! Deliberately absent: topology discovery (section 3.2 takes it from the routing protocols; here all nodes learn of a
//! failure at one time, when routes change), and inter-rack networking (section 6, future work).

mod adapt;
mod demand;
mod header;
mod host;
mod independent;
pub mod network;
mod plane;
pub mod rates;
mod receiver;
mod route;
pub mod selection;
mod sender;
mod switch;
#[cfg(test)]
mod tests;
mod travel;
pub mod view;
pub mod wire;

use std::collections::BTreeSet;
use std::sync::Arc;

use fabric::Routing;
use node::{Balancing, Endpoint, EndpointParams, SwitchAgent};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Duration, Problem, Rate, SwitchId};

pub use adapt::{Adapt, Turns};
pub use header::{Header, UNLIMITED};
pub use route::HOPS_MAX;

use contract::{
    About, Capabilities, ControlPackets, Family, HeaderFormat, NetworkView, Scheme, SwitchRequirements, Timer,
    Undelivered, headers_of,
};
use network::{Calculators, Networks, TREES_MAX};

/// Bytes of a broadcast on the wire (section 4.2).
pub const BROADCAST_BYTES: u16 = wire::BROADCAST_BYTES as u16;
/// The announcements of one flow take at most a thousandth of a link.
const REFRESH_SHARE: u64 = 1_000;

/// Configuration of R2C2.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Share of each link that rates leave free, for flows that not all nodes have heard of (section 3.3.2). Default:
    /// 0.05.
    pub headroom: f64,
    /// Interval at which each node computes rates, by its own clock (rho); "0s" computes at each flow event. Default:
    /// 500us.
    #[schemars(extend("x-least" = "1us", "x-zero" = true))]
    pub recompute: Duration,
    /// Rate of a new flow until its node next computes rates. Default: `fair`.
    pub first_rate: FirstRate,
    /// Routing protocol of flows. Default: `rps`.
    pub routing: Routing,
    /// Broadcast trees of each source, which its flows use in turn. Default: 4.
    pub trees: u8,
    /// Interval at which long flows are announced again. A flow that has not been heard of for three and a half
    /// intervals is forgotten, or later if an announcement may wait longer in full buffers. Default: 10ms, or, if
    /// longer, an unloaded round trip, or 1000 times as long as an announcement takes on the slowest link.
    #[schemars(extend("x-least" = "1us"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refresh: Option<Duration>,
    /// Weight of the newest estimate of a flow's demand. Default: 0.5.
    pub smoothing: f64,
    /// Settings by traffic class. Classes that are not listed have the defaults.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allocations: Vec<Allocation>,
    /// Who computes rates. Default: `decentralised`.
    pub control: Control,
    /// How routing protocols are selected for long flows. Default: flows keep their protocol.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub adapt: Option<Adapt>,
    /// How long a sender that has sent everything waits before it asks what is missing; the wait grows with each time.
    /// Default: 1ms, or as long as a round trip may take.
    #[schemars(extend("x-least" = "1us"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patience: Option<Duration>,
    /// Number of times that it asks before it reports a failure. Default: 8.
    pub probes: u8,
    /// Priority class of all packets in switches. Default: 0.
    pub class: u8,
}

/// Settings of a traffic class (section 3.3.2).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Allocation {
    /// Name of the traffic class.
    pub traffic: String,
    /// Weight relative to other flows of the same priority, 1 to 255. Default: 1.
    #[serde(default = "one")]
    pub weight: u8,
    /// Priority: 0 is served first, and each following one gets what the previous ones leave. Default: 0.
    #[serde(default)]
    pub priority: u8,
    /// Rate at which applications produce the messages. Default: at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub produced_at: Option<Rate>,
    /// Routing protocol of the class. Default: that of the transport.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub routing: Option<Routing>,
}

fn one() -> u8 {
    1
}

/// Rate of a new flow. Section 3.1 has its sender compute the fair allocation when it starts; section 3.3.2 has rates
/// computed only at intervals, and says that short flows "would be pointless to rate-limit".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FirstRate {
    /// The fair rate by its sender's view, computed for this flow alone: other flows of the sender keep theirs.
    #[default]
    Fair,
    /// The rate that it would have alone in the rack.
    Alone,
}

/// Who computes rates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Control {
    /// Each node computes its own rates, from broadcasts.
    #[default]
    Decentralised,
    /// One node computes all rates from what senders report, and tells them (section 5.2, "Comparison against a
    /// centralized design").
    Centralised {
        /// Number of that node's host.
        controller: u32,
    },
}

impl Default for Config {
    /// The paper's values. R2C2's page of the documentation gives reasons for what the paper leaves open.
    fn default() -> Config {
        Config {
            headroom: 0.05,
            recompute: Duration::from_us(500),
            first_rate: FirstRate::Fair,
            routing: Routing::RandomPacketSpraying,
            trees: 4,
            refresh: None,
            smoothing: 0.5,
            allocations: Vec::new(),
            control: Control::Decentralised,
            adapt: None,
            patience: None,
            probes: 8,
            class: 0,
        }
    }
}

impl Config {
    /// Announcements that wait in full buffers are no reason to make fewer: buffers of 1 GB would put the first one off
    /// by 200 ms, and a node that has missed the beginning of a flow would not hear of it for as long. But many flows
    /// together must not fill a slow link with them.
    fn refresh(&self, network: &NetworkView) -> Duration {
        let taken = network.fabric.narrowest_rate().transmit(u64::from(BROADCAST_BYTES)) * REFRESH_SHARE;
        self.refresh.unwrap_or_else(|| Duration::from_ms(10).max(network.busy_rtt()).max(taken))
    }

    fn patience(&self, network: &NetworkView) -> Duration {
        network.timer(self.patience, Duration::from_ms(1))
    }
}

impl Scheme for Config {
    fn about(&self) -> About {
        About {
            title: "R2C2: a network stack for rack-scale computers",
            source: "Costa, Ballani, Razavi, Kash: R2C2: A Network Stack for Rack-scale Computers, SIGCOMM 2015",
            summary: "Broadcasts flow events, so that each node computes fair rates for its flows, and routes packets \
                      at their sources.",
            needs: "switches: forwarding of packets by source route, of broadcasts by table",
        }
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { undelivered: Undelivered::GivenUp, has_agent: true, ..Capabilities::of_hosts(Family::Proactive) }
    }

    fn headers(&self) -> &'static dyn HeaderFormat {
        headers_of::<Header>()
    }

    // Its beginning and its end are broadcast (section 3.2).
    fn control_packets(&self) -> ControlPackets {
        ControlPackets { broadcasts: 2.0, ..ControlPackets::NONE }
    }

    fn check(&self) -> Result<(), Problem> {
        let share = |key, value: f64, ok: bool, right| match ok {
            true => Ok(()),
            false => Err(Problem::new(key, format!("{value} is not {right}"))),
        };
        share(
            "headroom",
            self.headroom,
            (0.0..1.0).contains(&self.headroom),
            "a share of at least 0 and below 1, such as 0.05",
        )?;
        let gain = self.smoothing > 0.0 && self.smoothing <= 1.0;
        share("smoothing", self.smoothing, gain, "a weight above 0 and up to 1, such as 0.5")?;
        if self.trees == 0 || self.trees > TREES_MAX {
            return Err(Problem::new("trees", format!("{} is not one of 1 to {TREES_MAX}", self.trees)));
        }
        let spans = [("recompute", Some(self.recompute)), ("refresh", self.refresh), ("patience", self.patience)];
        for (key, span) in spans {
            let Some(span) = span else { continue };
            let zero = span == Duration::ZERO && key != "recompute";
            if zero || span > Duration::from_ms(1_000_000) {
                return Err(Problem::new(key, format!("{span} is not a time up to 1000s, such as \"1ms\"")));
            }
        }
        if self.probes == 0 {
            return Err(Problem::new(
                "probes",
                "at 0 a flow would fail before its receiver can answer; write at least 1",
            ));
        }
        if self.class > 7 {
            return Err(Problem::new("class", format!("{} is not one of 0 to 7", self.class)));
        }
        if let Some(adapt) = &self.adapt {
            adapt.check().map_err(|problem| problem.under("adapt"))?;
            if self.control != Control::Decentralised {
                return Err(Problem::new(
                    "adapt",
                    "needs control = \"decentralised\", because each node selects routes for the flows that it knows",
                ));
            }
        }
        for (index, own) in self.allocations.iter().enumerate() {
            let here = |key: &str, message: String| Err(Problem::new(format!("allocations[{index}].{key}"), message));
            if own.weight == 0 {
                return here("weight", "at 0 the tenant would get nothing; write 1 to 255".to_owned());
            }
            if own.produced_at == Some(Rate::ZERO) {
                return here("produced_at", "at 0 it would never finish; leave it out for no delay".to_owned());
            }
            if self.allocations[..index].iter().any(|other| other.traffic == own.traffic) {
                return here(
                    "traffic",
                    format!("\"{}\" has an allocation already; delete one of the two", own.traffic),
                );
            }
        }
        Ok(())
    }

    fn check_on(&self, network_view: &NetworkView) -> Result<(), Problem> {
        network_view.one_link_a_host("treats a host and its switch as one node, joined by one link")?;
        if usize::from(network_view.site.mtu_bytes) <= wire::DATA_BYTES {
            let (header, mtu) = (wire::DATA_BYTES, network_view.site.mtu_bytes);
            let message =
                format!("a data packet's header takes {header} bytes, and host.mtu is {mtu}B; set host.mtu higher");
            return Err(Problem::new("", message));
        }
        let network = network_view.common.get::<Networks>().of(&network_view.fabric, &network_view.routes);
        let mut routings = vec![("routing".to_owned(), self.routing)];
        for (index, own) in self.allocations.iter().enumerate() {
            if !network_view.classes.contains(&own.traffic) {
                let known =
                    network_view.classes.iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ");
                let message = format!("there is no class \"{}\"; the scenario has {known}", own.traffic);
                return Err(Problem::new(format!("allocations[{index}].traffic"), message));
            }
            routings.extend(own.routing.map(|routing| (format!("allocations[{index}].routing"), routing)));
        }
        if self.adapt.is_some() && network_view.fabric.hosts > view::IDENTIFIED_NODES_MAX {
            let (most, hosts) = (view::IDENTIFIED_NODES_MAX, network_view.fabric.hosts);
            let message = format!(
                "assignments name flows by 32 bits, 12 for each end: up to {most} hosts, and the fabric has {hosts}"
            );
            return Err(Problem::new("adapt", message));
        }
        if let Some(adapt) = &self.adapt {
            adapt.utility.check(network_view.fabric.hosts).map_err(|problem| problem.under("adapt.utility"))?;
            let among = adapt.among.iter().enumerate();
            routings.extend(among.map(|(index, &routing)| (format!("adapt.among[{index}]"), routing)));
        }
        for (key, routing) in routings {
            network.tables.check(routing).map_err(|problem| Problem::new(key.as_str(), problem.message))?;
            route::check(network_view, routing).map_err(|message| Problem::new(key, message))?;
        }
        if let Control::Centralised { controller } = self.control
            && controller >= network_view.fabric.hosts
        {
            let message = format!("there is no host {controller}; the last is {}", network_view.fabric.hosts - 1);
            return Err(Problem::new("control.centralised.controller", message));
        }
        if network_view.fabric.hosts > 1 << 16 {
            let message =
                format!("addresses have 16 bits: up to 65536 hosts, and the fabric has {}", network_view.fabric.hosts);
            return Err(Problem::new("", message));
        }
        Ok(())
    }

    fn header_bytes(&self) -> Option<u16> {
        Some(wire::DATA_BYTES as u16)
    }

    fn requirements(&self, _: &EndpointParams) -> SwitchRequirements {
        SwitchRequirements { own_routes: true, same_tables: true, ..SwitchRequirements::only(Balancing::Ecmp) }
    }

    fn timers(&self, network: &NetworkView) -> Vec<Timer> {
        let (patience, refresh) = (self.patience(network), self.refresh(network));
        vec![
            Timer::new("patience", self.patience, patience, "asks its receiver what is missing, and in the end fails"),
            Timer::new("refresh", self.refresh, refresh, "announces a flow again"),
        ]
    }

    fn endpoint(&self, site: &EndpointParams, network_view: &NetworkView) -> Box<dyn Endpoint> {
        let (networks, calculators) = (network_view.common.get::<Networks>(), network_view.common.get::<Calculators>());
        let network = networks.of(&network_view.fabric, &network_view.routes);
        let of_class = |name: &String| self.allocations.iter().find(|own| own.traffic == *name).cloned();
        let plane = plane::Plane {
            refresh: self.refresh(network_view),
            loaded_rtt: network_view.loaded_rtt(),
            patience: self.patience(network_view),
            site: site.clone(),
            config: Arc::new(self.clone()),
            allocations: network_view.classes.iter().map(of_class).collect(),
            calculator: calculators.of(&network, self.headroom),
            view: view::View::default(),
            control: std::collections::VecDeque::new(),
            broadcasts: 0,
            batches: network_view.common.get::<selection::assignments::Batches>(),
            batch_next: 0,
            batches_open: BTreeSet::new(),
            unicast_bytes: 0,
        };
        Box::new(host::R2c2::new(plane, network_view.fabric.clone(), networks, calculators))
    }

    fn agent(&self, network_view: &NetworkView, _: SwitchId) -> Option<Box<dyn SwitchAgent>> {
        let networks = network_view.common.get::<Networks>();
        let network = networks.of(&network_view.fabric, &network_view.routes);
        Some(Box::new(switch::SwitchPart::new(network_view.fabric.clone(), networks, network)))
    }
}
