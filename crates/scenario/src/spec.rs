//! What a run is: one type, read from TOML, checked as a whole, written back with every default filled in.
//!
//! Everything that can change a result is here and nothing else is. Unknown keys are refused (see [`mod@read`]), and a
//! setting that has no effect in its company is an error too.

mod check;
mod read;
mod resubmit;

use catalogue::{LinkControl, Sharing, Transport};
use fabric::{FabricSpec, FailureSpec};
use node::{Balancing, Buffer, MarkAt, Marking, Overflow};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Bytes, Duration, Rate};
use workload::Traffic;

use crate::EntitySpec;

pub use read::{ScenarioError, Source, read};
pub use resubmit::{Again, Carriers};

/// A whole scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Scenario {
    /// What to call it in tables and reports.
    pub name: String,
    /// Everything random follows from this number.
    pub seed: u64,
    /// The transport of every traffic class that names none.
    pub transport: Transport,
    /// How long to run and what to note.
    pub measure: Measure,
    /// The network.
    pub fabric: FabricSpec,
    /// What hosts are like.
    pub host: HostSpec,
    /// What switches are like.
    pub switch: SwitchSpec,
    /// What neighbours tell each other so that queues do not overflow.
    pub flow_control: LinkControl,
    /// After a failure or a repair, how long until all switches forward by new routes; with `reroute_per_hop` or
    /// `reroute_compute_max`, until the switches beside it have noticed.
    pub reroute_delay: Duration,
    /// How long each switch takes to tell its neighbours of a failure or a repair. Until the news has reached it, a
    /// switch forwards by its old tables: packets may go in circles. Hosts hear of it from their switch. Zero, the
    /// default, tells all at once.
    #[serde(skip_serializing_if = "is_zero")]
    pub reroute_per_hop: Duration,
    /// Each switch takes a uniformly drawn time up to this, the same each time, from when it has heard to when it
    /// forwards by new tables.
    #[serde(skip_serializing_if = "is_zero")]
    pub reroute_compute_max: Duration,
    /// Transmission times are cut to whole multiples of this, as in a program whose clock has such steps (ns-3's has
    /// "1ns"). Zero, the default, cuts nothing.
    #[serde(skip_serializing_if = "is_zero")]
    pub transmission_step: Duration,
    /// Links and switches that fail.
    pub failure: Vec<FailureSpec>,
    /// How entities share the network.
    pub sharing: Sharing,
    /// Whose traffic is told apart, and what each asks for.
    pub entity: Vec<EntitySpec>,
    /// What is to be carried.
    pub traffic: Vec<Traffic<Transport>>,
}

/// How long to run and what to note.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Measure {
    /// When a flow counts as complete.
    pub completion: Completion,
    /// The run ends when every flow has ended, and at this time at the latest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<Duration>,
    /// Without `end`: how long after the last start the run may go on.
    pub drain: Duration,
    /// Time between samples of queues and links; zero takes none.
    pub interval: Duration,
    /// Hosts, such as "host3", of which each data packet's arrival is noted, in the table `arrivals`.
    pub arrivals: Vec<String>,
}

/// Whether a time is none, which need not be written.
fn is_zero(time: &Duration) -> bool {
    *time == Duration::ZERO
}

/// When a flow counts as complete.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Completion {
    /// When the receiver has its last byte.
    #[default]
    Delivered,
    /// When the sender knows that (the final acknowledgement is back), as dcPIM's and Pyrrha's authors measure it.
    Acknowledged,
}

/// What hosts are like.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct HostSpec {
    /// Bytes of a full data packet on the wire.
    pub mtu: Bytes,
    /// Bytes of headers in a data packet; a control packet is as long.
    pub header: Bytes,
    /// Processing time in the host, on the way out and again on the way in.
    pub delay: Duration,
    /// At what rate a host takes packets in, if that may be less than its link's: where its PCIe bus is congested, say.
    /// What waits for that is in its NIC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub intake_rate: Option<Rate>,
    /// What its NIC has room for with `intake_rate`; more is lost, unless a flow control holds it back.
    pub intake_buffer: Bytes,
    /// Each host's clock is ahead by a uniformly drawn time up to this.
    pub clock_offset_max: Duration,
    /// Each host's clock runs fast or slow by up to so many parts in 10^9, uniformly drawn.
    pub clock_drift_ppb_max: u32,
}

/// What switches are like. What is left out is what the transports ask for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SwitchSpec {
    /// How memory is divided.
    pub buffer: Buffer,
    /// What happens to a packet that finds no room.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overflow: Option<Overflow>,
    /// How to choose among shortest paths.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub balancing: Option<Balancing>,
    /// When to mark packets of transports that understand marks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub marking: Option<Marking>,
    /// When in its passage through a switch a packet is marked.
    pub mark_at: MarkAt,
    /// Whether packets that are not ECN-capable are lost where `marking` would mark them: what RED does by RFC 3168,
    /// and ns-3's RED queue with it. Needs `marking`.
    pub early_drop: bool,
    /// Classes of equal priority, served in turn by bytes; a class that is in none stands alone at its number.
    pub levels: Vec<Vec<u8>>,
    /// Whether a packet is forwarded as soon as its headers are in.
    pub cut_through: bool,
}

impl Default for Scenario {
    fn default() -> Scenario {
        Scenario {
            name: String::new(),
            seed: 1,
            transport: Transport::default(),
            measure: Measure::default(),
            fabric: FabricSpec::default(),
            host: HostSpec::default(),
            switch: SwitchSpec::default(),
            flow_control: LinkControl::default(),
            reroute_delay: Duration::from_ms(1),
            reroute_per_hop: Duration::ZERO,
            reroute_compute_max: Duration::ZERO,
            transmission_step: Duration::ZERO,
            failure: Vec::new(),
            sharing: Sharing::default(),
            entity: Vec::new(),
            traffic: Vec::new(),
        }
    }
}

impl Default for Measure {
    fn default() -> Measure {
        Measure {
            completion: Completion::Delivered,
            end: None,
            drain: Duration::from_ms(1000),
            interval: Duration::from_us(10),
            arrivals: Vec::new(),
        }
    }
}

impl Default for HostSpec {
    fn default() -> HostSpec {
        HostSpec {
            mtu: Bytes(1500),
            header: Bytes(40),
            delay: Duration::ZERO,
            intake_rate: None,
            intake_buffer: Bytes(1_000_000),
            clock_offset_max: Duration::ZERO,
            clock_drift_ppb_max: 0,
        }
    }
}

impl Default for SwitchSpec {
    fn default() -> SwitchSpec {
        SwitchSpec {
            buffer: Buffer::PerPort { bytes: Bytes(500_000) },
            overflow: None,
            balancing: None,
            marking: None,
            mark_at: MarkAt::default(),
            early_drop: false,
            levels: Vec::new(),
            cut_through: false,
        }
    }
}

impl Scenario {
    /// As TOML, with every default filled in.
    pub fn to_toml(&self) -> String {
        toml::to_string(self).expect("a scenario has no key that TOML lacks")
    }

    /// Its JSON Schema, for editors.
    pub fn json_schema() -> String {
        serde_json::to_string_pretty(&schemars::schema_for!(Scenario)).expect("a schema is JSON")
    }
}
