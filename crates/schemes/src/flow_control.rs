//! Flow control between neighbours: the mechanisms, one line each, apart from the transports above them.
//!
//! Any transport runs over any of them. Each has a part in switches, and one in NICs where hosts answer.

use std::sync::Arc;

use fabric::{Fabric, Tier};
use node::{Balancing, FlowControl as SwitchControl, NicControl};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use units::{Bytes, Duration, HostId, NodeId, PortId, Problem, Rate, SwitchId};

use crate::About;
use crate::catalogue::name_or_table;
use crate::pyrrha::paths::Downstream;

/// What each mechanism's `Config` can do.
pub trait LinkScheme {
    /// What it is and where it is described.
    const ABOUT: About;

    /// What the types of the configuration can't forbid. Keys are relative to its table.
    fn check(&self) -> Result<(), Problem>;

    /// Its part of a switch. An error's key is relative to its table.
    fn switch_control(&self, ground: &Ground<'_>, switch: SwitchId) -> Result<Box<dyn SwitchControl>, Problem>;

    /// Its part of a host's NIC; none if hosts do not answer.
    fn nic_control(&self, ground: &Ground<'_>, host: HostId) -> Option<Box<dyn NicControl>>;

    /// Whether ports can never wait for each other in a circle under it, whatever the routes.
    fn deadlock_free(&self) -> bool {
        false
    }

    /// Whether it keeps packets by flow, and not by class.
    fn keeps_flows(&self) -> bool {
        false
    }

    /// What it promises of the congestion roots that it names; none if it names none.
    fn promise(&self) -> Option<Promise> {
        None
    }
}

/// What a flow control that names congestion roots can be held to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Promise {
    /// A packet is held only by roots on its own onward path (Pyrrha, Theorem 3.1).
    pub on_path: bool,
    /// A port never has more isolation queues than there are roots.
    pub queue_a_root: bool,
}

/// What a flow control is told of the network when it is built.
pub struct Ground<'a> {
    /// Nodes and links.
    pub fabric: &'a Arc<Fabric>,
    /// How switches will choose the paths of packets.
    pub downstream: &'a Downstream,
    /// How each transport's packets choose among equal paths, by the packet's `transport`.
    pub balancing: &'a [Balancing],
    /// Bytes of a full packet.
    pub mtu_bytes: u64,
    /// What a host adds to the delay of its link, each way.
    pub host_delay: Duration,
    /// What a NIC has room for of what its host does not take in fast enough.
    pub intake_buffer: Bytes,
    /// A switch's memory; with memory for each port, that of a port.
    pub buffer: Bytes,
}

impl Ground<'_> {
    /// Bytes that come in at a node's port between its decision to pause and the silence that follows: what is in flight both
    /// ways, a packet that each end has begun, and the frame (IEEE 802.1Qbb annex O, less the internal delays of interfaces,
    /// which hops here do not have).
    pub fn reaction_bytes(&self, node: NodeId, port: PortId) -> u64 {
        let rate = self.rate(node, port);
        let begun = rate.transmit(2 * self.mtu_bytes + u64::from(node::link::FRAME_BYTES));
        rate.bytes_in(self.round_trip(node, port) + begun)
    }

    /// One-hop bandwidth-delay product of a node's port: the link's rate times the time to the neighbour and back.
    pub fn hop_bdp_bytes(&self, node: NodeId, port: PortId) -> u64 {
        self.rate(node, port).bytes_in(self.round_trip(node, port))
    }

    /// What each port of a switch sends, by the port by which it came, while the neighbour there is told and answers: the
    /// rate of the link out times the round trip of the link in. By [`Shares::bytes`].
    pub fn shares(&self, switch: SwitchId) -> Shares {
        let node = self.fabric.switch_node(switch);
        let ports = || (0..self.fabric.ports[node.index()].len()).map(PortId::from);
        let out = |out| self.rate(node, out);
        let bytes = ports().flat_map(|into| ports().map(move |port| out(port).bytes_in(self.round_trip(node, into))));
        Shares { ports: ports().len(), bytes: bytes.collect() }
    }

    /// The rate of a port's link.
    pub fn rate(&self, node: NodeId, port: PortId) -> Rate {
        self.fabric.link(self.fabric.ports[node.index()][port.index()]).rate
    }

    /// From a node to its neighbour at a port and back, without transmission: BFC's HRTT.
    pub fn round_trip(&self, node: NodeId, port: PortId) -> Duration {
        let there = self.fabric.ports[node.index()][port.index()];
        let way = |id| {
            let link = self.fabric.link(id);
            let at_host = matches!(link.tier, Tier::FromHost | Tier::ToHost);
            link.propagation + self.fabric.delay_after(id) + if at_host { self.host_delay } else { Duration::ZERO }
        };
        way(there) + way(Fabric::reverse(there))
    }
}

/// A switch's one-hop bandwidth-delay products, for each port in and out.
pub struct Shares {
    ports: usize,
    bytes: Vec<u64>,
}

impl Shares {
    /// What `out` sends in the round trip of the link at `into`.
    #[inline]
    pub fn bytes(&self, into: PortId, out: PortId) -> u64 {
        self.bytes[into.index() * self.ports + out.index()]
    }
}

macro_rules! flow_controls {
    ($($name:literal $variant:ident($config:ty),)*) => {
        /// A flow control and its settings. In a scenario: a name (`"pfc"`, all defaults) or a table (`{ pfc = { alpha = 2.0 } }`).
        #[derive(Clone, Debug, Default, PartialEq, Serialize)]
        #[allow(missing_docs, reason = "each variant is documented by its configuration")]
        pub enum FlowControl {
            /// None: a packet that finds no room is lost.
            #[default]
            #[serde(rename = "none")]
            None,
            $(#[serde(rename = $name)] $variant($config),)*
        }

        /// What the derived reader of the table form reads.
        #[derive(Deserialize, JsonSchema)]
        enum Table {
            $(#[serde(rename = $name)] $variant($config),)*
        }

        impl From<Table> for FlowControl {
            fn from(table: Table) -> FlowControl {
                match table { $(Table::$variant(config) => FlowControl::$variant(config),)* }
            }
        }

        impl FlowControl {
            /// The names of all flow controls.
            pub const NAMES: &[&str] = &["none", $($name),*];

            /// A flow control with its defaults, by name.
            pub fn named(name: &str) -> Option<FlowControl> {
                match name {
                    "none" => Some(FlowControl::None),
                    $($name => Some(FlowControl::$variant(Default::default())),)*
                    _ => None,
                }
            }

            /// Its name.
            pub fn name(&self) -> &'static str {
                match self { FlowControl::None => "none", $(FlowControl::$variant(_) => $name,)* }
            }

            /// What it is.
            pub fn about(&self) -> About {
                match self {
                    FlowControl::None => About {
                        title: "No flow control",
                        source: "",
                        summary: "A packet that finds no room is lost.",
                        needs: "nothing",
                    },
                    $(FlowControl::$variant(_) => <$config as LinkScheme>::ABOUT,)*
                }
            }

            /// What its types can't forbid; keys begin with its name.
            pub fn check(&self) -> Result<(), Problem> {
                match self {
                    FlowControl::None => Ok(()),
                    $(FlowControl::$variant(config) => config.check().map_err(|problem| problem.under($name)),)*
                }
            }

            /// Whether ports can never wait for each other in a circle under it, whatever the routes.
            pub fn deadlock_free(&self) -> bool {
                match self {
                    FlowControl::None => true,
                    $(FlowControl::$variant(config) => config.deadlock_free(),)*
                }
            }

            /// Whether it keeps packets by flow, so that settings of classes have no effect.
            pub fn keeps_flows(&self) -> bool {
                match self {
                    FlowControl::None => false,
                    $(FlowControl::$variant(config) => config.keeps_flows(),)*
                }
            }

            /// Its part of a switch, if it has one.
            pub fn switch_control(
                &self,
                ground: &Ground<'_>,
                switch: SwitchId,
            ) -> Result<Option<Box<dyn SwitchControl>>, Problem> {
                match self {
                    FlowControl::None => Ok(None),
                    $(FlowControl::$variant(config) => {
                        config.switch_control(ground, switch).map(Some).map_err(|problem| problem.under($name))
                    })*
                }
            }

            /// What it promises of the congestion roots that it names; none if it names none.
            pub fn promise(&self) -> Option<Promise> {
                match self {
                    FlowControl::None => None,
                    $(FlowControl::$variant(config) => config.promise(),)*
                }
            }

            /// Its part of a host's NIC, if it has one.
            pub fn nic_control(&self, ground: &Ground<'_>, host: HostId) -> Option<Box<dyn NicControl>> {
                match self {
                    FlowControl::None => None,
                    $(FlowControl::$variant(config) => config.nic_control(ground, host),)*
                }
            }
        }
    };
}

flow_controls! {
    "pfc" Pfc(crate::pfc::Config),
    "bfc" Bfc(crate::bfc::Config),
    "per_flow_queues" PerFlowQueues(crate::per_flow_queues::Config),
    "congestion_isolation" CongestionIsolation(crate::congestion_isolation::Config),
    "pyrrha" Pyrrha(crate::pyrrha::Config),
}

impl<'de> Deserialize<'de> for FlowControl {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<FlowControl, D::Error> {
        let what = "a flow control's name";
        name_or_table::<D, FlowControl, Table>(deserializer, what, FlowControl::NAMES, FlowControl::named)
    }
}

impl JsonSchema for FlowControl {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "FlowControl".into()
    }
    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let table = generator.subschema_for::<Table>();
        schemars::json_schema!({ "anyOf": [{ "enum": FlowControl::NAMES }, table] })
    }
}
