//! The contracts that transports, flow controls and sharing mechanisms implement, and the view of the network that they
//! are given.

pub mod departures;
pub mod link_control;
mod name_or_table;
mod scheme;
pub mod sharing;

use std::any::Any;
use std::sync::{Arc, Mutex, PoisonError};

use fabric::{Fabric, FabricSpec, Failures, Routes, Star};
use node::{Balancing, EarlyDrop, EndpointParams, Marking, Overflow};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Duration, Problem, Rate};

pub use name_or_table::{Others, name_or_table};
pub use scheme::{
    Capabilities, Compared, ControlPackets, Family, HeaderFormat, Scheme, Timer, Undelivered, headers_of,
};

/// The network, as a scheme sees it.
#[derive(Clone, Debug)]
pub struct NetworkView {
    /// Its nodes and links.
    pub fabric: Arc<Fabric>,
    /// Routes before any failure.
    pub routes: Arc<Routes>,
    /// The first host's view of the network.
    pub site: EndpointParams,
    /// Processing time in a host, spent once on the way out and once on the way in.
    pub host_delay: Duration,
    /// The longest that a packet waits on its way without being lost: at one link, in a full buffer, and in the full
    /// queue of a rate limiter.
    pub wait: Duration,
    /// Bytes after which a cut-through switch starts to forward a packet; `None` for store and forward.
    pub head_bytes: Option<u64>,
    /// The lowest rate of any link, which takes long to find where each of many hosts asks.
    pub narrowest: Rate,
    /// Names of the traffic classes.
    pub classes: Vec<String>,
    /// Values that all nodes of the scheme share.
    pub common: SharedCache,
}

/// Tables and caches that many nodes need and that are computed once a run, one value of each type. A value may depend
/// only on the network and on the arguments of its calls, so the order of calls can't change a result.
#[derive(Clone, Debug, Default)]
pub struct SharedCache(Arc<Mutex<Vec<Arc<dyn Any + Send + Sync>>>>);

impl SharedCache {
    /// The shared value of type `T`, created on first use.
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

/// Bounds that a scheme guarantees for its packets. The scheme reserves the first priority classes of all switches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guarantee {
    /// The class that the bounds hold for. Packets of other transports use classes from
    /// [`SwitchRequirements::reserved_classes`] on.
    pub class: u8,
    /// By [`LinkId`](units::LinkId): the most bytes of the class that ever queue for the link.
    pub queue_bytes: Vec<u64>,
    /// By [`LinkId`](units::LinkId): bytes of switch memory reserved for the class, at most `queue_bytes`. This is the
    /// least that the scheme needs; switches reserve all of `queue_bytes` where their memory suffices.
    pub room_bytes: Vec<u64>,
    /// The longest total time that a data packet of the class waits in switches.
    pub wait: Duration,
    /// Whether the bounds are proven for this network. If not, they are assumed, and the audit still checks them.
    pub proven: bool,
}

impl Guarantee {
    /// Name of a measurement ([`Event::Measured`](node::Event::Measured)): a message's delay in picoseconds.
    pub const DELAY: &'static str = "message_delay_ps";
    /// Name of a measurement: the guaranteed bound of a message's delay in picoseconds, if nothing fails.
    pub const DELAY_BOUND: &'static str = "message_delay_bound_ps";
}

impl NetworkView {
    /// A network without failures, with store-and-forward switches and no processing time in hosts.
    pub fn new(fabric: Fabric, site: &EndpointParams) -> NetworkView {
        let routes = Arc::new(Routes::compute(&fabric, &Failures::default()));
        NetworkView {
            narrowest: fabric.narrowest_rate(),
            fabric: Arc::new(fabric),
            routes,
            site: site.clone(),
            host_delay: Duration::ZERO,
            wait: Duration::ZERO,
            head_bytes: None,
            classes: Vec::new(),
            common: SharedCache::default(),
        }
    }

    /// One switch that joins all hosts, whose round trips are the site's: a network for a scene that has none.
    pub fn star(site: &EndpointParams) -> NetworkView {
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

    /// The longest unloaded round trip with a full packet each way: an answer that comes to a link while that sends a
    /// packet waits for its end.
    pub fn busy_rtt(&self) -> Duration {
        let [data, control] = [self.site.data_rtt, self.site.control_rtt].map(Duration::ps);
        Duration::from_ps(data.saturating_mul(2).saturating_sub(control))
    }

    /// The longest round trip of a packet that is not lost: [`NetworkView::busy_rtt`], with a full buffer at one link.
    /// IRN's authors set their timeout so (Mittal et al., SIGCOMM 2018, section 4.1); here all timers that can't be
    /// measured are at least so long, whatever constant their source has.
    pub fn loaded_rtt(&self) -> Duration {
        let longest = self.busy_rtt().ps().saturating_add(self.wait.ps());
        // No timer that a scenario sets may be longer.
        Duration::from_ps(longest).min(Duration::from_ms(1_000_000))
    }

    /// A timer that can't be measured: as the scenario has set it, or else a source's constant where
    /// [`NetworkView::loaded_rtt`] is not longer.
    pub fn timer(&self, set: Option<Duration>, constant: Duration) -> Duration {
        set.unwrap_or_else(|| self.loaded_rtt().max(constant))
    }

    /// Refuses a network in which a host has several links. `does` says what the scheme does that needs a single link.
    pub fn one_link_a_host(&self, does: &str) -> Result<(), Problem> {
        let Some(host) = self.fabric.several_links() else { return Ok(()) };
        let (name, links) = (&self.fabric.names[host.index()], self.fabric.uplinks(host).len());
        let message = format!(
            "{does}, and in this fabric {name} has {links} links; give each host one (such as homes = 1), or choose \
             another transport"
        );
        Err(Problem::new("", message))
    }
}

/// A scheme in brief, for a person who chooses one.
#[derive(Clone, Copy, Debug)]
pub struct About {
    /// Full name.
    pub title: &'static str,
    /// The paper or standard that describes it.
    pub source: &'static str,
    /// What it does, in one sentence.
    pub summary: &'static str,
    /// What hosts and switches must be able to do.
    pub needs: &'static str,
}

/// What a scheme asks of the switches on its packets' paths.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SwitchRequirements {
    /// How switches choose among shortest paths.
    pub balancing: Balancing,
    /// How switches signal congestion.
    pub signal: CongestionSignal,
    /// What switches do with a packet that finds no room; `None` if the scheme works with either.
    pub overflow: Option<Overflow>,
    /// When switches drop packets that are not ECN-capable early; `None` for never (Aeolus's selective dropping).
    pub early_drop: Option<EarlyDrop>,
    /// Whether its packets carry their own routes in place of AQ tags, so that no AQ applies to them.
    pub own_routes: bool,
    /// Whether its packets carry flow labels in place of AQ tags. Only ECMP reads the labels.
    pub flow_labels: bool,
    /// Whether it assumes that all nodes have the same routing tables at any time.
    pub same_tables: bool,
    /// Number of priority classes, counted from the first, that it reserves. Packets of all other transports use lower
    /// classes. 0 shares all classes.
    pub reserved_classes: u8,
}

impl SwitchRequirements {
    /// Requirements with this balancing and no others.
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

/// The congestion signal that a transport reacts to: the CC fields of an AQ request (Augmented Queue, section 4.1,
/// Algorithm 2). Every transport also reacts to loss.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema, node::Saved)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum CongestionSignal {
    /// Only loss (NewReno, CUBIC, Illinois).
    Drop,
    /// ECN marks with these thresholds (DCTCP, DCQCN). A packet that is not ECN-capable passes unmarked.
    Ecn(Marking),
    /// Delay (Swift). Round-trip times include the delay of real queues; packets accumulate the virtual queueing delay
    /// of AQs.
    Delay,
}

impl CongestionSignal {
    /// The marking thresholds, for a transport that reacts to marks.
    pub fn marking(self) -> Option<Marking> {
        match self {
            CongestionSignal::Ecn(marking) => Some(marking),
            CongestionSignal::Drop | CongestionSignal::Delay => None,
        }
    }
}
