//! The scenario type: read from TOML, checked as a whole, and written back with every default filled in.
//!
//! It holds everything that can change a result and nothing else. Unknown keys are refused (see [`read()`]), and so
//! is a setting that would have no effect in its scenario.

mod read;
mod resubmit;

use catalogue::{LinkControl, Sharing, Transport};
use fabric::{FabricSpec, FailureSpec};
use node::{Balancing, Buffer, MarkAt, Marking, Overflow};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Bytes, Duration, Problem, Rate};
use workload::Traffic;

use crate::EntitySpec;

pub use read::{ScenarioError, Source, read};
pub use resubmit::{Again, Carriers};

/// A scenario: everything that defines a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Scenario {
    /// Name of the scenario in tables and reports.
    pub name: String,
    /// Seed of all random numbers. Default: 1.
    pub seed: u64,
    /// Transport of every traffic class that names none.
    pub transport: Transport,
    /// How long the run lasts and what it records.
    pub measure: Measure,
    /// The network: hosts, switches and links.
    pub fabric: FabricSpec,
    /// Properties of all hosts.
    pub host: HostSpec,
    /// Properties of all switches. A key that is left out takes what the transports ask for.
    pub switch: SwitchSpec,
    /// Hop-by-hop flow control, by which neighbours pause each other before queues overflow.
    pub flow_control: LinkControl,
    /// Time from a failure or repair until all switches forward by new routes. Default: 1ms. With `reroute_per_hop` or
    /// `reroute_compute_max` it is the time until the adjacent switches detect the change.
    pub reroute_delay: Duration,
    /// Time a switch takes to pass the news of a failure or repair to its neighbours. A switch that has not heard of it
    /// forwards by its old tables, so packets may loop. Hosts hear of it from their switch. Default: 0, all nodes hear
    /// at once.
    #[serde(skip_serializing_if = "is_zero")]
    pub reroute_per_hop: Duration,
    /// Longest time from hearing of a failure or repair until a switch forwards by new tables. Each switch draws its
    /// own time once, uniformly between 0 and this. Default: 0.
    #[serde(skip_serializing_if = "is_zero")]
    pub reroute_compute_max: Duration,
    /// Granularity of transmission times, which are rounded down to whole multiples of it, as in a program with a
    /// coarser clock (ns-3 uses "1ns"). Default: 0, no rounding.
    #[serde(skip_serializing_if = "is_zero")]
    pub transmission_step: Duration,
    /// Failures and repairs of links and switches.
    pub failure: Vec<FailureSpec>,
    /// How entities share the network. Default: `physical_queue`, no mechanism.
    pub sharing: Sharing,
    /// Entities: groups of traffic whose results are kept apart, with their bandwidth requests.
    pub entity: Vec<EntitySpec>,
    /// Traffic classes: who sends what to whom, and when.
    pub traffic: Vec<Traffic<Transport>>,
}

/// How long the run lasts and what it records.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Measure {
    /// When a flow counts as complete. Default: `delivered`.
    pub completion: Completion,
    /// Latest end of the run; it ends earlier when all flows have ended. Default: none, see `drain`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<Duration>,
    /// Without `end`: how long the run may continue after the last flow's start. Default: 1s.
    pub drain: Duration,
    /// Time between samples of queues and links; 0 takes no samples. Default: 10us.
    pub interval: Duration,
    /// Hosts, such as "host3", whose data packets are recorded one by one on arrival, in the table `arrivals`. Default:
    /// none.
    pub arrivals: Vec<String>,
}

/// Whether a duration is zero, the default, and need not be written.
fn is_zero(time: &Duration) -> bool {
    *time == Duration::ZERO
}

/// When a flow counts as complete.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Completion {
    /// When the receiver has the last byte.
    #[default]
    Delivered,
    /// When the sender has the final acknowledgement, as in the papers of dcPIM and Pyrrha.
    Acknowledged,
}

/// Properties of all hosts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct HostSpec {
    /// Size of a full data packet on the wire, headers included. Default: 1500B.
    pub mtu: Bytes,
    /// Size of the headers of a data packet, and of a control packet. Default: 40B.
    pub header: Bytes,
    /// Processing time in a host, spent once on the way out and once on the way in. Default: 0.
    pub delay: Duration,
    /// Rate at which a host takes packets in, if it may be less than the rate of its links, for example because its
    /// PCIe bus is congested. Packets wait in the NIC until then. Default: the rate of the links.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub intake_rate: Option<Rate>,
    /// NIC buffer for packets that wait because of `intake_rate`. Packets beyond it are lost, unless a flow control
    /// pauses the switch. Default: 1MB.
    pub intake_buffer: Bytes,
    /// Greatest clock offset. Each host's clock is ahead by a time drawn uniformly between 0 and this. Default: 0.
    pub clock_offset_max: Duration,
    /// Greatest clock drift, in parts per billion. Each host's clock runs fast or slow by a uniformly drawn amount up
    /// to this. Default: 0.
    pub clock_drift_ppb_max: u32,
}

/// Properties of all switches. A key that is left out takes what the transports ask for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SwitchSpec {
    /// How a switch's memory is divided among ports and classes. Default: 500kB for each port.
    pub buffer: Buffer,
    /// What a switch does with a packet that finds no room. Default: what the transports ask for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overflow: Option<Overflow>,
    /// How a switch chooses among shortest paths. Default: what the transports ask for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub balancing: Option<Balancing>,
    /// When a switch marks packets of transports that react to ECN marks. Default: what the transports ask for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub marking: Option<Marking>,
    /// Where in its passage through a switch a packet is marked.
    pub mark_at: MarkAt,
    /// Whether a packet that is not ECN-capable is dropped where `marking` would mark it, as RED does in RFC 3168 and
    /// in ns-3. Needs `marking`. Default: false.
    pub early_drop: bool,
    /// Groups of classes that share one priority and are served in turn by bytes. A class in no group has a priority of
    /// its own, given by its number. Default: no groups.
    pub levels: Vec<Vec<u8>>,
    /// Whether a switch starts to forward a packet when its headers have arrived (cut-through) instead of the whole
    /// packet (store and forward). Default: false.
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
    /// The scenario as TOML, with every default filled in.
    pub fn to_toml(&self) -> String {
        toml::to_string(self).expect("a scenario has no key that TOML lacks")
    }

    /// The JSON Schema of scenarios, for editors.
    pub fn json_schema() -> String {
        serde_json::to_string_pretty(&schemars::schema_for!(Scenario)).expect("a schema is JSON")
    }

    /// Checks what the types can't express and what needs no fabric.
    pub fn check(&self) -> Result<(), Problem> {
        self.transport.check().map_err(|problem| problem.under("transport"))?;
        for (index, class) in self.traffic.iter().enumerate() {
            if let Some(transport) = &class.transport {
                transport.check().map_err(|problem| problem.under("transport").under(format!("traffic[{index}]")))?;
            }
            self.check_resubmit(class).map_err(|problem| problem.under(format!("traffic[{index}]")))?;
        }
        if self.traffic.is_empty() {
            return Err(Problem::new("traffic", "there is none: add a [[traffic]] table with sizes and a pattern"));
        }
        if self.traffic.len() > usize::from(u16::MAX) {
            return Err(Problem::new("traffic", "more than 65,535 classes"));
        }
        if self.carriers().transports.len() > 255 {
            return Err(Problem::new("traffic", "more than 255 transports, each with settings of its own"));
        }
        let used = self.traffic.iter().any(|class| class.transport.is_none());
        if !used && self.transport != Transport::default() {
            let message = "has no effect, since every traffic class names its own; delete one or the other";
            return Err(Problem::new("transport", message));
        }
        if self.entity.len() > usize::from(u16::MAX) {
            return Err(Problem::new("entity", "more than 65535; each = \"flow\" or \"host\" makes many of one"));
        }
        self.sharing.check().map_err(|problem| problem.under("sharing"))?;
        if self.sharing != Sharing::PhysicalQueue && self.entity.iter().all(|entity| entity.request.is_empty()) {
            let message = "has no effect, since no entity requests anything; add an [[entity]] with a request";
            return Err(Problem::new("sharing", message));
        }
        self.flow_control.check().map_err(|problem| problem.under("flow_control"))?;
        let HostSpec { mtu, header, .. } = self.host;
        if header.get() == 0 || header.get() > 1_000 {
            return Err(Problem::new("host.header", format!("{header} is not between 1B and 1000B")));
        }
        if mtu <= header || mtu.get() > 9_216 {
            let message = format!("{mtu} is not between the header ({header}) and a jumbo frame (9216B)");
            return Err(Problem::new("host.mtu", message));
        }
        if self.host.intake_rate == Some(Rate::ZERO) {
            return Err(Problem::new("host.intake_rate", "0 takes nothing in; leave it out for the rate of the link"));
        }
        if self.host.intake_rate.is_none() && self.host.intake_buffer != HostSpec::default().intake_buffer {
            return Err(Problem::new("host.intake_buffer", "has no effect without host.intake_rate"));
        }
        if self.host.intake_buffer.get() < 9_216 {
            let message = format!("{} can't hold a packet; write at least 9216B", self.host.intake_buffer);
            return Err(Problem::new("host.intake_buffer", message));
        }
        if self.host.clock_drift_ppb_max > 1_000_000 {
            let message = format!("{} ppb is no clock: at most 1000000", self.host.clock_drift_ppb_max);
            return Err(Problem::new("host.clock_drift_ppb_max", message));
        }
        let (second, day) = (Duration::from_ms(1_000), Duration::from_ms(86_400_000));
        let bounded = [
            ("host.delay", self.host.delay, second),
            ("host.clock_offset_max", self.host.clock_offset_max, second),
            ("reroute_delay", self.reroute_delay, day),
            ("reroute_per_hop", self.reroute_per_hop, day),
            ("reroute_compute_max", self.reroute_compute_max, day),
            ("transmission_step", self.transmission_step, Duration::from_ns(10)),
            ("measure.end", self.measure.end.unwrap_or_default(), day),
            ("measure.drain", self.measure.drain, day),
            ("measure.interval", self.measure.interval, day),
        ];
        if let Some((key, value, most)) = bounded.into_iter().find(|(_, value, most)| value > most) {
            return Err(Problem::new(key, format!("{value} is more than sensible: at most {most}")));
        }
        let fails = self.failure.iter().any(FailureSpec::is_news);
        let idle = Scenario::default();
        let set = [
            ("reroute_delay", self.reroute_delay != idle.reroute_delay),
            ("reroute_per_hop", self.reroute_per_hop != idle.reroute_per_hop),
            ("reroute_compute_max", self.reroute_compute_max != idle.reroute_compute_max),
        ];
        if let Some((key, _)) = set.into_iter().find(|of| of.1 && !fails) {
            return Err(Problem::new(
                key,
                "has no effect, since nothing fails that is routed around; delete it or add a [[failure]]",
            ));
        }
        if self.measure.end == Some(Duration::ZERO) {
            return Err(Problem::new("measure.end", "0 leaves no time to run; leave it out to run until all is done"));
        }
        if self.measure.end.is_some() && self.measure.drain != Measure::default().drain {
            return Err(Problem::new("measure.drain", "has no effect beside measure.end; delete one of them"));
        }
        Ok(())
    }
}
