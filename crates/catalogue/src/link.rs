//! Flow control between neighbours: the mechanisms, one line each, apart from the transports above them.
//!
//! Any transport runs over any of them. Each has a part in switches, and one in NICs where hosts answer.

use node::{Malformed, NicControl, Packet, QueueDiscipline};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use units::{HostId, PortId, Problem, SwitchId};

use contract::About;
use contract::link_control::{LinkScheme, LinkView, Promise};
use contract::name_or_table;

macro_rules! flow_controls {
    ($($name:literal $variant:ident($config:ty),)*) => {
        /// A flow control and its settings. In a scenario: a name (`"pfc"`, all defaults) or a table (`{ pfc = { alpha = 2.0 } }`).
        #[derive(Clone, Debug, Default, PartialEq, Serialize)]
        #[allow(missing_docs, reason = "each variant is documented by its configuration")]
        pub enum LinkControl {
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

        impl From<Table> for LinkControl {
            fn from(table: Table) -> LinkControl {
                match table { $(Table::$variant(config) => LinkControl::$variant(config),)* }
            }
        }

        impl LinkControl {
            /// The names of all flow controls.
            pub const NAMES: &[&str] = &["none", $($name),*];

            /// A flow control with its defaults, by name.
            pub fn named(name: &str) -> Option<LinkControl> {
                match name {
                    "none" => Some(LinkControl::None),
                    $($name => Some(LinkControl::$variant(Default::default())),)*
                    _ => None,
                }
            }

            /// Its name.
            pub fn name(&self) -> &'static str {
                match self { LinkControl::None => "none", $(LinkControl::$variant(_) => $name,)* }
            }

            /// What it is.
            pub fn about(&self) -> About {
                match self {
                    LinkControl::None => About {
                        title: "No flow control",
                        source: "",
                        summary: "A packet that finds no room is lost.",
                        needs: "nothing",
                    },
                    $(LinkControl::$variant(_) => <$config as LinkScheme>::ABOUT,)*
                }
            }

            /// What its types can't forbid; keys begin with its name.
            pub fn check(&self) -> Result<(), Problem> {
                match self {
                    LinkControl::None => Ok(()),
                    $(LinkControl::$variant(config) => config.check().map_err(|problem| problem.under($name)),)*
                }
            }

            /// Whether ports can never wait for each other in a circle under it: see [`LinkScheme::deadlock_free`].
            pub fn deadlock_free(&self, sharing: bool) -> bool {
                match self {
                    LinkControl::None => true,
                    $(LinkControl::$variant(config) => config.deadlock_free(sharing),)*
                }
            }

            /// Whether it keeps packets by flow, so that settings of classes have no effect.
            pub fn keeps_flows(&self) -> bool {
                match self {
                    LinkControl::None => false,
                    $(LinkControl::$variant(config) => config.keeps_flows(),)*
                }
            }

            /// The classes that it may hold back, as bits.
            pub fn held_classes(&self) -> u8 {
                match self {
                    LinkControl::None => 0,
                    $(LinkControl::$variant(config) => config.held_classes(),)*
                }
            }

            /// Its part of a switch, if it has one.
            pub fn switch_control(
                &self,
                view: &LinkView<'_>,
                switch: SwitchId,
            ) -> Result<Option<Box<dyn QueueDiscipline>>, Problem> {
                match self {
                    LinkControl::None => Ok(None),
                    $(LinkControl::$variant(config) => {
                        config.switch_control(view, switch).map(Some).map_err(|problem| problem.under($name))
                    })*
                }
            }

            /// What it promises of the congestion roots that it names; none if it names none.
            pub fn promise(&self) -> Option<Promise> {
                match self {
                    LinkControl::None => None,
                    $(LinkControl::$variant(config) => config.promise(),)*
                }
            }

            /// Appends a frame to a neighbour as it travels.
            pub fn emit_frame(&self, frame: &Packet, out: &mut Vec<u8>) {
                match self {
                    LinkControl::None => {}
                    $(LinkControl::$variant(_) => <$config as LinkScheme>::emit_frame(frame, out),)*
                }
            }

            /// Reads a frame from a wire into `frame`, and says how many bytes it took.
            pub fn parse_frame(&self, bytes: &[u8], frame: &mut Packet) -> Result<usize, Malformed> {
                match self {
                    LinkControl::None => Err(Malformed { what: "frame: there is no flow control" }),
                    $(LinkControl::$variant(_) => <$config as LinkScheme>::parse_frame(bytes, frame),)*
                }
            }

            /// Its part of a port of a host's NIC, if it has one.
            pub fn nic_control(&self, view: &LinkView<'_>, host: HostId, port: PortId) -> Option<Box<dyn NicControl>> {
                match self {
                    LinkControl::None => None,
                    $(LinkControl::$variant(config) => config.nic_control(view, host, port),)*
                }
            }
        }
    };
}

flow_controls! {
    "pfc" Pfc(link_control::pfc::Config),
    "bfc" Bfc(link_control::bfc::Config),
    "per_flow_queues" PerFlowQueues(link_control::per_flow_queues::Config),
    "congestion_isolation" CongestionIsolation(link_control::congestion_isolation::Config),
    "pyrrha" Pyrrha(link_control::pyrrha::Config),
}

impl<'de> Deserialize<'de> for LinkControl {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<LinkControl, D::Error> {
        let what = "a flow control's name";
        name_or_table::<D, LinkControl, Table>(deserializer, what, LinkControl::NAMES, LinkControl::named)
    }
}

impl JsonSchema for LinkControl {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "LinkControl".into()
    }
    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let table = generator.subschema_for::<Table>();
        schemars::json_schema!({ "anyOf": [{ "enum": LinkControl::NAMES }, table] })
    }
}
