//! The list of schemes: one line each, and all that there is to adding one outside its folder.

use contract::name_or_table;
use node::wire::{Malformed, Reader, Writer};
use node::{Endpoint, Header, Packet, QueueDiscipline, Site, SwitchAgent};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use units::{Problem, Rate, SwitchId};

use contract::{About, Guarantee, NetworkView, Scheme, SwitchRequirements};

macro_rules! catalogue {
    ($($name:literal $variant:ident($config:ty),)*) => {
        /// A transport and its settings. In a scenario: a name (`"dcpim"`, all defaults) or a table
        /// (`{ dcpim = { rounds = 3 } }`).
        #[derive(Clone, Debug, PartialEq, Serialize)]
        #[allow(missing_docs, reason = "each variant is documented by its configuration")]
        pub enum Transport {
            $(#[serde(rename = $name)] $variant($config),)*
        }

        /// What the derived reader of the table form reads.
        #[derive(Deserialize, JsonSchema)]
        enum Table {
            $(#[serde(rename = $name)] $variant($config),)*
        }

        impl From<Table> for Transport {
            fn from(table: Table) -> Transport {
                match table { $(Table::$variant(config) => Transport::$variant(config),)* }
            }
        }

        impl Transport {
            /// The names of all transports, in the order of the catalogue.
            pub const NAMES: &[&str] = &[$($name),*];

            /// A transport with its defaults, by name.
            pub fn named(name: &str) -> Option<Transport> {
                match name { $($name => Some(Transport::$variant(Default::default())),)* _ => None }
            }

            /// Its name in the catalogue.
            pub fn name(&self) -> &'static str {
                match self { $(Transport::$variant(_) => $name,)* }
            }

            /// What it is.
            pub fn about(&self) -> About {
                match self { $(Transport::$variant(_) => <$config as Scheme>::ABOUT,)* }
            }

            /// What its types can't forbid.
            pub fn check(&self) -> Result<(), Problem> {
                match self { $(Transport::$variant(config) => config.check().map_err(|p| p.under($name)),)* }
            }

            /// Its part of the host at `site`.
            pub fn endpoint(&self, site: &Site) -> Box<dyn Endpoint> {
                match self { $(Transport::$variant(config) => config.endpoint(site),)* }
            }

            /// Whether it may end a message that it has not delivered.
            pub fn gives_up(&self) -> bool {
                match self { $(Transport::$variant(config) => config.gives_up(),)* }
            }

            /// Headers of its data packets, if they are its own.
            pub fn header_bytes(&self) -> Option<u16> {
                match self { $(Transport::$variant(config) => config.header_bytes(),)* }
            }

            /// What a message is sent at, at most, if that is not all that its host's link carries.
            pub fn rate_max(&self) -> Option<Rate> {
                match self { $(Transport::$variant(config) => config.rate_max(),)* }
            }

            /// What the network must be like for it.
            pub fn check_on(&self, network: &NetworkView) -> Result<(), Problem> {
                match self { $(Transport::$variant(config) => config.check_on(network).map_err(|p| p.under($name)),)* }
            }

            /// As [`Transport::endpoint`], on such a network.
            pub fn endpoint_on(&self, site: &Site, network: &NetworkView) -> Box<dyn Endpoint> {
                match self { $(Transport::$variant(config) => config.endpoint_on(site, network),)* }
            }

            /// Its part of a switch, if it has one.
            pub fn agent(&self, network: &NetworkView, switch: SwitchId) -> Option<Box<dyn SwitchAgent>> {
                match self { $(Transport::$variant(config) => config.agent(network, switch),)* }
            }

            /// Queues of its own that it brings to a switch, if it does.
            pub fn queueing(&self, network: &NetworkView, switch: SwitchId) -> Option<Box<dyn QueueDiscipline>> {
                match self { $(Transport::$variant(config) => config.queueing(network, switch),)* }
            }

            /// What it guarantees of the packets that it carries, if it guarantees anything.
            pub fn guarantee(&self, network: &NetworkView) -> Option<Guarantee> {
                match self { $(Transport::$variant(config) => config.guarantee(network),)* }
            }

            /// Appends a packet of this transport's as it travels, but for its content, which follows.
            pub fn emit_header(&self, packet: &Packet, content: &[u8], to: &mut Writer<'_>) {
                match self { $(Transport::$variant(_) => <$config as Scheme>::Header::emit_with(packet, content, to),)* }
            }

            /// Reads a header from a wire, its content behind it, into `packet`; the content is left.
            pub fn parse_header(&self, from: &mut Reader<'_>, packet: &mut Packet) -> Result<(), Malformed> {
                match self { $(Transport::$variant(_) => <$config as Scheme>::Header::parse_with(from, packet),)* }
            }

            /// A link has inverted these bits of a packet of this transport's: whether it goes on, as what it is now.
            pub fn damage(&self, packet: &mut Packet, bits: &[u32]) -> bool {
                match self { $(Transport::$variant(_) => <$config as Scheme>::Header::damage(packet, bits),)* }
            }

            /// Where in its message a data packet's payload begins, in bytes.
            pub fn payload_offset(&self, packet: &Packet) -> u64 {
                match self { $(Transport::$variant(_) => {
                    packet.header::<<$config as Scheme>::Header>().payload_offset()
                })* }
            }

            /// What it asks of switches.
            pub fn requirements(&self, site: &Site) -> SwitchRequirements {
                match self { $(Transport::$variant(config) => config.requirements(site),)* }
            }
        }
    };
}

catalogue! {
    "dcpim" Dcpim(transports::dcpim::Config),
    "phost" Phost(transports::phost::Config),
    "pfabric" Pfabric(transports::pfabric::Config),
    "newreno" NewReno(transports::tcp::Config<transports::tcp::newreno::Config>),
    "cubic" Cubic(transports::tcp::Config<transports::tcp::cubic::Config>),
    "dctcp" Dctcp(transports::tcp::Config<transports::tcp::dctcp::Config>),
    "swift" Swift(transports::tcp::Config<transports::tcp::swift::Config>),
    "illinois" Illinois(transports::tcp::Config<transports::tcp::illinois::Config>),
    "bbr" Bbr(transports::tcp::Config<transports::tcp::bbr::Config>),
    "rdma" Rdma(transports::rdma::Config<transports::rdma::line_rate::Config>),
    "dcqcn" Dcqcn(transports::rdma::Config<transports::rdma::dcqcn::Config>),
    "timely" Timely(transports::rdma::Config<transports::rdma::timely::Config>),
    "hpcc" Hpcc(transports::rdma::Config<transports::rdma::hpcc::Config>),
    "harmony" Harmony(transports::harmony::Config),
    "rsvp" Rsvp(transports::harmony::rsvp::Config),
    "fastpass" Fastpass(transports::fastpass::Config),
    "homa" Homa(transports::homa::Config),
    "homa_aeolus" HomaAeolus(transports::homa::aeolus::Config),
    "r2c2" R2c2(transports::r2c2::Config),
    "ndp" Ndp(transports::ndp::Config),
    "udp" Udp(transports::udp::Config),
}

impl Default for Transport {
    fn default() -> Transport {
        Transport::named(Transport::NAMES[0]).expect("the catalogue's own name")
    }
}

impl<'de> Deserialize<'de> for Transport {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Transport, D::Error> {
        name_or_table::<D, Transport, Table>(deserializer, "a transport's name", Transport::NAMES, Transport::named)
    }
}

impl JsonSchema for Transport {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Transport".into()
    }
    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let table = generator.subschema_for::<Table>();
        schemars::json_schema!({ "anyOf": [{ "enum": Transport::NAMES }, table] })
    }
}
