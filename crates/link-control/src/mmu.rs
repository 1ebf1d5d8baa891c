//! A switch with shared memory as operators configure it: its memory management unit, its classes and its scheduler.
//!
//! Memory is divided into pools, counted by the port and priority group in which packets arrive (ingress) and by the
//! port and queue in which they leave (egress); a packet is admitted only where both have room
//! ([`node::mmu::Memory`]). A priority group of a class that PFC is enabled for pauses its neighbour when it needs its
//! headroom. Queues are served by strict priority and by weights, and may have a least and a greatest rate
//! ([`node::mmu::Schedule`]). Each queue may have a profile of its own for marks.
//!
//! The terms are SONiC's and SAI's, whose files `clearway import sonic` reads. Queues and groups are numbered as there,
//! and numbers say nothing about urgency: `schedule` lists queues in the order of service. Classes are the simulator's:
//! what a transport calls `class`. [`Maps`] says which traffic class, queue and group each has.
//!
//! All ports of a switch have the same settings, but for headroom, which may depend on a link's rate and length; and so
//! have all switches, but those that have a role of their own ([`RoleSpec`]).
//! Packets may have colours, by their DSCP or by meters ([`node::mmu::Meter`]), and each queue a profile of early marks
//! and losses for each colour, by its length or by the average of that ([`node::mmu::Wred`]).
//!
//! Deliberately absent: hierarchies of weights within weights.

mod arithmetic;
mod resolved;
mod role;
mod switch;
mod watch;

use node::link::{NicControl, QueueDiscipline};
use node::packet::CLASSES;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Bytes, Duration, HostId, PortId, Problem, Rate, SwitchId};

use crate::pfc::{self, Quanta};
pub use arithmetic::GroupAtPort;
use contract::link_control::{LinkScheme, LinkView};
use contract::{About, Compared, HeaderFormat, headers_of};
use resolved::Resolved;
pub use role::RoleSpec;

/// Configuration of a switch's pools, groups, queues and classes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Size of the cells of memory: each packet takes whole ones. Default: memory has no cells.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cell: Option<Bytes>,
    /// Traffic classes for which PFC is enabled: their groups pause the neighbour and have headroom. Groups of other
    /// classes lose packets. Default: 1 to 7, as `flow_control = "pfc"` has them.
    pub lossless: Vec<u8>,
    /// Pools of memory. Default: one for each side with all memory of the switch but for headroom.
    pub pool: Vec<PoolSpec>,
    /// The memory of priority groups. A group in no table may take twice the free bytes of the first ingress pool, and
    /// has the headroom that suffices.
    pub group: Vec<GroupSpec>,
    /// The memory, marks and rates of queues. A queue in no table may take all of the first egress pool.
    pub queue: Vec<QueueSpec>,
    /// The memory of each port in pools, for all of its groups or queues together. Default: no limits.
    pub port: Vec<PortSpec>,
    /// Queues in the order of service. Default: queue 0 first, each strictly before the next.
    pub schedule: Vec<LevelSpec>,
    /// Meters that colour what arrives at each port. Default: packets have the colour that `maps` says, or are green.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub meter: Vec<MeterSpec>,
    /// The rate that each port may not exceed, all of its queues together. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_rate: Option<Rate>,
    /// Bytes that a port may send at once at `max_rate`. Default: 16KB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub burst: Option<Bytes>,
    /// Which traffic class, queue and group each class of packets has. Default: those with its own number.
    pub maps: Maps,
    /// A watchdog for queues that a neighbour has paused for long. Default: nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub watchdog: Option<Watchdog>,
    /// Quanta of 512 bit times after which a pause ends by itself, 1 to 65535. Frames may be lost then, like packets.
    /// Default: a pause holds until it is lifted, and no frame is lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quanta: Option<u16>,
    /// Quanta after which a pause is sent again while it is to last; 0 for never. Default: half of `quanta`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refresh: Option<u16>,
    /// Settings of some switches in place of these, by the switches' names: of leaves, of spines. Default: all switches
    /// have these.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub role: Vec<RoleSpec>,
}

/// The side on which a pool counts packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// By port and priority group of arrival.
    Ingress,
    /// By port and queue of departure.
    Egress,
}

/// A pool of memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PoolSpec {
    /// Its name, for `group.pool`, `queue.pool` and `port.pool`.
    pub name: String,
    /// The side on which it counts packets.
    pub side: Side,
    /// Bytes without headroom: what is reserved, and the part that all share.
    pub bytes: Bytes,
    /// Headroom that all groups of the pool share. Default: each group has its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub headroom: Option<Bytes>,
}

/// The memory of some priority groups.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GroupSpec {
    /// Their numbers, 0 to 7.
    pub groups: Vec<u8>,
    /// Their pool. Default: the first ingress pool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
    /// Bytes that each alone may use. Default: 0.
    #[serde(default)]
    pub reserved: Bytes,
    /// Share of the pool's free bytes that each may take. Switches have powers of two. Default: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alpha: Option<f64>,
    /// Bytes of the shared part that each may take, instead of `alpha`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threshold: Option<Bytes>,
    /// Headroom of a lossless group. Default: the row of `lookup` for the link, or if there is none what arrives during
    /// the reaction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub headroom: Option<Bytes>,
    /// A paused group goes on below this many bytes in any case. Default: 0.
    #[serde(default)]
    pub xon: Bytes,
    /// How far below its limit a paused group must have fallen to go on. Default: 0.
    #[serde(default)]
    pub xon_offset: Bytes,
    /// By a link's rate and length: the memory of lossless groups there (SONiC's `pg_profile_lookup.ini`), instead of
    /// the keys above. Default: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lookup: Vec<LookupRow>,
}

/// The memory of lossless groups on links of one rate, up to a length.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LookupRow {
    /// The rate of the link.
    pub rate: Rate,
    /// The length in metres, at 198,000 km/s. A longer cable has the next row.
    pub cable_m: f64,
    /// Bytes that the group alone may use.
    pub reserved: Bytes,
    /// Headroom.
    pub headroom: Bytes,
    /// The group goes on below this many bytes in any case.
    #[serde(default)]
    pub xon: Bytes,
    /// How far below its limit the group must have fallen to go on.
    #[serde(default)]
    pub xon_offset: Bytes,
    /// Share of the pool's free bytes that the group may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alpha: Option<f64>,
    /// Bytes of the shared part that it may take, instead of `alpha`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threshold: Option<Bytes>,
}

/// The memory, marks and rates of some queues.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QueueSpec {
    /// Their numbers, 0 to 7.
    pub queues: Vec<u8>,
    /// Their pool. Default: the first egress pool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
    /// Bytes that each alone may use. Default: 0.
    #[serde(default)]
    pub reserved: Bytes,
    /// Share of the pool's free bytes that each may take. Switches have powers of two. Default: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alpha: Option<f64>,
    /// Bytes of the shared part that each may take, instead of `alpha`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threshold: Option<Bytes>,
    /// When packets are marked. Default: if no queue has this, as `switch.marking` says or transports ask for;
    /// otherwise never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ecn: Option<Ecn>,
    /// The rate up to which each goes before all other queues. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_rate: Option<Rate>,
    /// The rate that each may not exceed. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_rate: Option<Rate>,
    /// Bytes that it may send at once at `max_rate`. Default: 16KB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst: Option<Bytes>,
}

/// A profile for marks and early losses, by the length of the queue (WRED). Packets that are not green have their own,
/// if there is one for their colour.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Ecn {
    /// Queue length at which marking begins.
    pub min: Bytes,
    /// Queue length above which every packet is marked.
    pub max: Bytes,
    /// Probability at `max`, 0 to 1.
    pub probability_max: f64,
    /// Whether packets that are not ECN-capable, and so not marked, are dropped where others are. Default: false.
    #[serde(default)]
    pub drop: bool,
    /// Whether ECN-capable packets are marked. Default: true.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub mark: bool,
    /// Whether a packet is marked when it leaves, by the length that remains. Default: when it arrives.
    #[serde(default)]
    pub at_departure: bool,
    /// Lengths are averages: each arrival moves them by 2 to the power of minus this, 1 to 15, of the distance to the
    /// length that it finds, and idle time by as many full packets as could have left (RED; SAI's `weight`). Default:
    /// the length itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub average: Option<u8>,
    /// The profile of yellow packets. Default: that of green ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub yellow: Option<ColourSpec>,
    /// The profile of red packets. Default: that of green ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub red: Option<ColourSpec>,
}

/// The profile of one colour.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ColourSpec {
    /// Queue length at which marking begins.
    pub min: Bytes,
    /// Queue length above which every packet is marked.
    pub max: Bytes,
    /// Probability at `max`, 0 to 1.
    pub probability_max: f64,
    /// Whether packets that are not marked are dropped where others are. Default: false.
    #[serde(default)]
    pub drop: bool,
    /// Whether ECN-capable packets are marked. Default: true.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub mark: bool,
}

impl Ecn {
    /// The profile of green packets.
    fn green(self) -> ColourSpec {
        let Ecn { min, max, probability_max, drop, mark, .. } = self;
        ColourSpec { min, max, probability_max, drop, mark }
    }
}

/// A meter of the packets of some classes that arrive at a port. With `pir` it has two rates (RFC 2698): green within
/// `cir`, yellow within `pir`, red beyond. Without, a single rate (RFC 2697): green within `cbs`, yellow within `ebs`,
/// red beyond. A packet that `maps` makes yellow or red gets no better colour.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MeterSpec {
    /// The traffic classes that it measures together, 0 to 7.
    pub classes: Vec<u8>,
    /// The committed rate.
    pub cir: Rate,
    /// Bytes that may come at once within it.
    pub cbs: Bytes,
    /// Bytes beyond those that may come at once, which fill at `cir` when the others are full. Without `pir`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ebs: Option<Bytes>,
    /// The peak rate. Goes with `pbs`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pir: Option<Rate>,
    /// Bytes that may come at once within the peak rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pbs: Option<Bytes>,
}

fn yes() -> bool {
    true
}

fn is_yes(value: &bool) -> bool {
    *value
}

/// The memory of each port in a pool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PortSpec {
    /// The pool.
    pub pool: String,
    /// Bytes that each port alone may use. Default: 0.
    #[serde(default)]
    pub reserved: Bytes,
    /// Share of the pool's free bytes that each port may take. Default: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alpha: Option<f64>,
    /// Bytes of the shared part that each port may take, instead of `alpha`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threshold: Option<Bytes>,
}

/// By what the weights of a level are counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum By {
    /// Bytes, over turns of 2,048 bytes for each unit of weight (deficit round robin).
    #[default]
    Bytes,
    /// Packets (weighted round robin).
    Packets,
}

/// Queues of equal priority.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LevelSpec {
    /// Their numbers, 0 to 7. One queue alone has strict priority over the levels that follow.
    pub queues: Vec<u8>,
    /// By queue: its weight, 1 to 255. Default: equal weights.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub weights: Vec<u32>,
    /// By what weights are counted. Default: bytes.
    #[serde(default)]
    pub by: By,
}

/// Which traffic class, queue and group each class of packets has. A table that is left out maps each number to itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Maps {
    /// By class of packets, 0 to 7: the DSCP that they carry. Needs `dscp_to_tc`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dscp: Vec<u8>,
    /// By DSCP, 0 to 63: its traffic class.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dscp_to_tc: Vec<u8>,
    /// By DSCP, 0 to 63: the colour that packets come with, 0 for green, 1 for yellow, 2 for red. Needs `dscp`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dscp_to_colour: Vec<u8>,
    /// By traffic class: its queue.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tc_to_queue: Vec<u8>,
    /// By traffic class: its priority group.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tc_to_group: Vec<u8>,
    /// By priority of a pause, which is a traffic class: the queue that it stops.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pfc_to_queue: Vec<u8>,
}

/// The treatment of a queue that is paused for too long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Its packets are lost, and so are those that arrive.
    #[default]
    Drop,
    /// Its packets are sent, as if it were not paused.
    Forward,
}

/// A watchdog for queues that are paused for too long (SONiC's PFC_WD).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Watchdog {
    /// A queue with packets that has been paused for this long without a break is in a storm. Default: 200ms.
    #[schemars(extend("x-least" = "1us"))]
    pub detection: Duration,
    /// The storm is over when the queue has not been paused for this long. Default: 200ms.
    #[schemars(extend("x-least" = "1us"))]
    pub restoration: Duration,
    /// The treatment of the queue meanwhile. Default: drop.
    pub action: Action,
}

impl Default for Watchdog {
    fn default() -> Watchdog {
        Watchdog { detection: Duration::from_ms(200), restoration: Duration::from_ms(200), action: Action::Drop }
    }
}

impl Default for Config {
    fn default() -> Config {
        Config {
            cell: None,
            lossless: (1..CLASSES as u8).collect(),
            pool: Vec::new(),
            group: Vec::new(),
            queue: Vec::new(),
            port: Vec::new(),
            schedule: Vec::new(),
            meter: Vec::new(),
            max_rate: None,
            burst: None,
            maps: Maps::default(),
            watchdog: None,
            quanta: None,
            refresh: None,
            role: Vec::new(),
        }
    }
}

impl LinkScheme for Config {
    fn about(&self) -> About {
        About {
            title: "Shared-memory switch with pools, priority groups, queues and PFC",
            source: "SAI and SONiC; IEEE 802.1Qaz, 802.1Qbb",
            summary: "A switch as operators configure it: memory in pools, thresholds by group and queue, headroom, \
                      weights and marks by queue.",
            needs: "switches: their configuration (`clearway import sonic` reads it)",
        }
    }

    fn compared(&self) -> Compared {
        Compared::No
    }

    fn frames(&self) -> &'static dyn HeaderFormat {
        headers_of::<pfc::Frame>()
    }

    fn check(&self) -> Result<(), Problem> {
        resolved::check(self)?;
        self.check_roles()
    }

    fn advice(&self) -> Vec<Problem> {
        let of_roles = self.role.iter().enumerate().flat_map(|(index, role)| {
            let under = move |problem: Problem| problem.under(format!("role[{index}]"));
            resolved::advice(&role.config()).into_iter().map(under)
        });
        resolved::advice(self).into_iter().chain(of_roles).collect()
    }

    fn check_on(&self, view: &LinkView<'_>, switch: SwitchId) -> Result<(), Problem> {
        self.check_names(view, switch)?;
        let (config, own) = self.at(view, switch);
        Resolved::new(&config, &own, switch).map(|_| ()).map_err(|problem| self.placed(view, switch, problem))
    }

    fn doubt(&self, view: &LinkView<'_>, switch: SwitchId) -> Option<Problem> {
        let (config, own) = self.at(view, switch);
        resolved::doubt(&config, &own, switch).map(|problem| self.placed(view, switch, problem))
    }

    fn switch_control(&self, view: &LinkView<'_>, switch: SwitchId) -> Box<dyn QueueDiscipline> {
        let (config, own) = self.at(view, switch);
        let resolved = Resolved::new(&config, &own, switch).expect("it has been checked on this switch");
        let ports = view.fabric.ports[view.fabric.switch_node(switch).index()].len();
        Box::new(switch::SwitchPart::new(resolved, ports, config.watchdog))
    }

    fn memory(&self, view: &LinkView<'_>, switch: SwitchId) -> Option<Bytes> {
        self.role[self.role_of(view, switch)?].buffer
    }

    fn memory_max(&self) -> Option<Bytes> {
        self.role.iter().filter_map(|role| role.buffer).max()
    }

    fn held_classes(&self) -> u8 {
        self.every().fold(0, |classes, config| classes | resolved::lossless_classes(&config))
    }

    fn pools_buffer(&self) -> bool {
        true
    }

    fn marks(&self) -> bool {
        self.every().any(|config| config.queue.iter().any(|queue| queue.ecn.is_some()))
    }

    fn schedules(&self) -> bool {
        true
    }

    fn keeps_time(&self) -> bool {
        let keeps = |config: &Config| {
            let shaped = config.max_rate.is_some() || config.queue.iter().any(|queue| queue.max_rate.is_some());
            shaped || config.watchdog.is_some() || config.quanta.is_some()
        };
        self.every().any(|config| keeps(&config))
    }

    fn bears_lost_frames(&self) -> bool {
        self.quanta.is_some()
    }

    /// A NIC answers to the classes that are lossless at its switch.
    fn nic_control(&self, view: &LinkView<'_>, host: HostId, port: PortId) -> Option<Box<dyn NicControl>> {
        let link = view.fabric.ports[view.fabric.host_node(host).index()][port.index()];
        let switch = view.fabric.as_switch(view.fabric.link(link).to);
        let lossless = match switch {
            Some(switch) => resolved::lossless_classes(&self.at(view, switch).0),
            None => self.held_classes(),
        };
        let quanta = Quanta::new(self.quanta, self.refresh);
        Some(pfc::nic_part(view, host, port, lossless, pfc::Config::default().resume_offset, quanta))
    }
}
