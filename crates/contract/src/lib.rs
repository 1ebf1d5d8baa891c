//! What a scheme is: the contracts that transports, link controls and mechanisms of sharing meet, and what they are
//! told of the network.

pub mod departures;
pub mod link_control;
mod name_or_table;
mod scheme;
pub mod sharing;

use std::any::Any;
use std::sync::{Arc, Mutex, PoisonError};

use fabric::{Fabric, FabricSpec, Failures, Routes, Star};
use node::{Balancing, EarlyDrop, Marking, Overflow, Site};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Duration, Problem};

pub use name_or_table::name_or_table;
pub use scheme::{Compared, Family, HeaderFormat, Nature, Scheme, Undelivered, headers_of};

/// The network that a scheme runs on.
#[derive(Clone, Debug)]
pub struct NetworkView {
    /// Its nodes and links.
    pub fabric: Arc<Fabric>,
    /// Routes while nothing has failed.
    pub routes: Arc<Routes>,
    /// What hosts know of their places: the first host's.
    pub site: Site,
    /// Processing time in a host, on the way out and again on the way in.
    pub host_delay: Duration,
    /// After so many bytes of a packet a switch that cuts through forwards it; none where switches store first.
    pub head_bytes: Option<u64>,
    /// The names of the classes of traffic.
    pub classes: Vec<String>,
    /// What all nodes of a scheme have in common.
    pub common: Common,
}

/// What the nodes of a run compute alike and need once: tables and caches, one of each type. They are functions of the
/// network and of what they are asked, so that it makes no difference who asked first.
#[derive(Clone, Debug, Default)]
pub struct Common(Arc<Mutex<Vec<Arc<dyn Any + Send + Sync>>>>);

impl Common {
    /// The one of this type.
    pub fn get<T: Any + Send + Sync + Default>(&self) -> Arc<T> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(one) = all.iter().find_map(|one| one.clone().downcast::<T>().ok()) {
            return one;
        }
        let one = Arc::new(T::default());
        all.push(one.clone());
        one
    }
}

/// What a scheme guarantees wherever its packets go: it keeps the first classes of all switches for itself, and what
/// queues there, or waits, is bounded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guarantee {
    /// The class that it is given for; other transports' packets go below [`SwitchRequirements::reserved_classes`].
    pub class: u8,
    /// By [`LinkId`](units::LinkId), the most bytes of that class that ever wait for a link.
    pub queue_bytes: Vec<u64>,
    /// Likewise, the room that switches keep for that class: no more than `queue_bytes`. A scheme asks for what it must
    /// have; all of `queue_bytes` is kept where a switch's memory holds it.
    pub room_bytes: Vec<u64>,
    /// The longest that a data packet of that class waits in all switches together.
    pub wait: Duration,
    /// Whether that is proven for this network, or only taken for true and audited.
    pub proven: bool,
}

impl Guarantee {
    /// What a transport measures of a message that it guarantees a delay ([`Event::Measured`](node::Event::Measured)):
    /// how long it took.
    pub const DELAY: &'static str = "message_delay_ps";
    /// And how long it might have, if nothing failed.
    pub const DELAY_BOUND: &'static str = "message_delay_bound_ps";
}

impl NetworkView {
    /// A network where nothing has failed, hosts take no time and switches store and forward.
    pub fn new(fabric: Fabric, site: &Site) -> NetworkView {
        let routes = Arc::new(Routes::compute(&fabric, &Failures::default()));
        NetworkView {
            fabric: Arc::new(fabric),
            routes,
            site: site.clone(),
            host_delay: Duration::ZERO,
            head_bytes: None,
            classes: Vec::new(),
            common: Common::default(),
        }
    }

    /// One switch that joins all hosts, whose round trips are the site's: a network for a scene that has none.
    pub fn star(site: &Site) -> NetworkView {
        let transmissions = site.nic_rate.transmit(u64::from(site.header_bytes)) * 4;
        let star = Star {
            hosts: site.hosts.max(2),
            rate: site.nic_rate,
            propagation: site.control_rtt.saturating_sub(transmissions) / 4,
            switch_delay: Duration::ZERO,
        };
        let fabric = FabricSpec::Star(star).build().expect("hosts have a rate");
        NetworkView::new(fabric, site)
    }

    /// Refuses a network in which a host has several links, for a scheme that `does` something of a host's only link.
    pub fn one_link_a_host(&self, does: &str) -> Result<(), Problem> {
        let Some(host) = self.fabric.several_links() else { return Ok(()) };
        let (name, links) = (&self.fabric.names[host.index()], self.fabric.uplinks(host).len());
        let message = format!(
            "{does}, and the fabric gives {name} {links} links: let hosts have one each (such as homes = 1), or \
             choose another \
             transport"
        );
        Err(Problem::new("", message))
    }
}

/// One line for a person who looks for a scheme.
#[derive(Clone, Copy, Debug)]
pub struct About {
    /// Its name in full.
    pub title: &'static str,
    /// Where it is described.
    pub source: &'static str,
    /// What it does, in a sentence.
    pub summary: &'static str,
    /// What hosts and switches must be able to do.
    pub needs: &'static str,
}

/// What a scheme asks of the switches on the way of its packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SwitchRequirements {
    /// How to choose among shortest paths.
    pub balancing: Balancing,
    /// How to tell it that the network is congested.
    pub signal: CongestionSignal,
    /// What shall happen to a packet that finds no room, if it is not all the same.
    pub overflow: Option<Overflow>,
    /// When its packets that are not ECN-capable shall be lost early, if ever (Aeolus's selective dropping).
    pub early_drop: Option<EarlyDrop>,
    /// Whether its packets have routes of their own, in the place of tags: no AQ sees them.
    pub own_routes: bool,
    /// Whether its packets have flow labels, likewise: ECMP alone reads them.
    pub flow_labels: bool,
    /// Whether it takes it that all nodes have the same tables at any time.
    pub same_tables: bool,
    /// How many of the first priority classes it must have for itself: packets of all other transports go below them. 0
    /// for a scheme that shares all.
    pub reserved_classes: u8,
}

impl SwitchRequirements {
    /// Paths chosen like this, and nothing else.
    pub const fn only(balancing: Balancing) -> SwitchRequirements {
        SwitchRequirements {
            balancing,
            signal: CongestionSignal::Drop,
            overflow: None,
            early_drop: None,
            own_routes: false,
            same_tables: false,
            flow_labels: false,
            reserved_classes: 0,
        }
    }
}

/// What a congestion control listens to: the CC fields of an AQ request (Augmented Queue, section 4.1, Algorithm 2).
/// Loss is common to all.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum CongestionSignal {
    /// Loss alone (NewReno, CUBIC, Illinois).
    Drop,
    /// Marks, set like this (DCTCP, DCQCN). A packet that is not ECN-capable passes unmarked.
    Ecn(Marking),
    /// Delay (Swift): its round trips show a real queue's, packets gather the virtual queueing delay of AQs.
    Delay,
}

impl CongestionSignal {
    /// When to mark, if it listens to marks.
    pub fn marking(self) -> Option<Marking> {
        match self {
            CongestionSignal::Ecn(marking) => Some(marking),
            CongestionSignal::Drop | CongestionSignal::Delay => None,
        }
    }
}
