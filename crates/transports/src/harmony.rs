//! Harmony: congestion-free delivery (Agarwal, Cai, Agarwal, Shmoys, Vahdat, NSDI 2024).
//!
//! A message is sent only when every link on its path has reserved bandwidth for it. Each host has K *slots* and each
//! link K *virtual links*, both worth B/K. A sender announces a message by a *request*; its receiver gives it a slot
//! and sends a *rsvp*, to which each switch on the way to the sender adds a virtual link, drawn from the free ones on
//! shortest paths ([`switch`]); the sender gives it one of its own slots and sends at the slot's rate along the way
//! that the rsvp wrote down. A *complete* after the last data frees all of these. If something is not free, a *reject*
//! goes both ways: the receiver waits and tries again, oldest request first, until delta_admission is over and the
//! message is rejected (`receiver`, section 3.1). So at any time packets of at most K messages wait for a link, each
//! paced at its source, and queues are bounded ([`bounds`], [`theory`], section 3.3). With several virtual links for
//! each link, uncoordinated choices seldom leave it unused ([`allocation`]); K = 1 is plain RSVP ([`rsvp`]).
//!
//! As queues are bounded, a host knows by when a packet must have arrived; otherwise it was lost to a failure. Then the
//! receiver sends a *failure*, and the sender asks again (`sender`, section 3.2).
//!
//! The paper's technical report is not available. What the paper leaves open is decided where the code acts and listed
//! in `docs/schemes/harmony.md`.
//!
//! Deliberately absent: a bound on what happens inside hosts, and on waiting for admission beyond delta_admission (the
//! paper has neither); falling back to best effort, which is the application's choice. And pipelined rsvps, which
//! section 3.2 names and the report describes. A rsvp that leaves before its slot is free must bring no data before the
//! slot's last complete can have arrived. That complete may be late by the sender's slip and a packet's wait: 10.4 us
//! on the paper's leaf-spine in the order of arrival, 4.3 us in turn, with a round trip of 4.6 us. The rsvp could leave
//! one round trip before that time: later than the complete is expected in the first case, 0.3 us earlier in the
//! second. So there is almost nothing to gain.

pub mod adversary;
pub mod allocation;
pub mod bounds;
pub mod header;
pub mod rsvp;
pub mod service;
pub mod switch;
pub mod theory;

mod host;
mod params;
mod position;
mod receiver;
mod sender;

#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use fabric::Fabric;
use node::{Balancing, Endpoint, EndpointParams, Packet, QueueDiscipline, SwitchAgent};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Bytes, Duration, HostId, LinkId, Problem, SwitchId};

use bounds::{Bounds, PORTS_MAX, SWITCHES_MAX};
use contract::{
    About, Capabilities, ControlPackets, Family, Guarantee, HeaderFormat, NetworkView, Scheme, SwitchRequirements,
    Timer, Undelivered, headers_of,
};

pub use header::Header;
pub use service::Service;
pub use switch::SwitchPart;

/// Configuration of Harmony. The defaults are the paper's (section 5).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Slots of a host (K), for the slowest host link, and virtual links of an equally fast link. Default: 8.
    pub slots: u16,
    /// How long a request may wait at its receiver before it is rejected, by the receiver's clock. Default: 63us.
    #[schemars(extend("x-least" = "100ns"))]
    pub delta_admission: Duration,
    /// What happens to a request whose rsvp finds no free virtual link or slot. Default: `wait`.
    pub refused: Refused,
    /// Least time between the last rsvp of a refused request and the next attempt. With 0 the oldest request is tried
    /// whenever a slot is free, as section 3.1 literally says. Default: one round trip of control packets.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-least" = "100ns", "x-zero" = true))]
    pub retry_after: Option<Duration>,
    /// Message bytes for each additional slot of an active message. With 0 there are no additional slots: a message has
    /// one, as in section 3.1. Default: one bandwidth-delay product.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub additional: Option<Bytes>,
    /// Which active message gets an additional slot. Section 3.2 says only "an active message". Default: `oldest`.
    pub additional_to: AdditionalTo,
    /// Number of times that a sender asks before it reports a failure, the first included. Default: 3.
    pub attempts: u8,
    /// Share of the links that data never use, so that control packets of the second class are not starved. Default:
    /// 0.01.
    pub control_share: f64,
    /// Order in which links serve packets of different virtual links. In turn, Theorem 3.1 holds. In the order of
    /// arrival, as switches do it, packets can wait longer, and the guaranteed queues are longer. Default: `fifo`.
    pub service: Service,
}

/// What happens to a request whose rsvp finds no free virtual link, or no free slot at the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Refused {
    /// It waits again at its receiver, up to `delta_admission`.
    Wait,
    /// The message is rejected.
    GiveUp,
}

/// Which active message gets an additional slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AdditionalTo {
    /// The one whose request came first, as pending requests are served (section 3.1). A short message beside a long
    /// one has one slot.
    #[default]
    Oldest,
    /// The one with the fewest slots, of several the oldest: messages share the receiver's link equally.
    Fewest,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            slots: 8,
            delta_admission: Duration::from_us(63),
            refused: Refused::Wait,
            retry_after: None,
            additional: None,
            additional_to: AdditionalTo::Oldest,
            attempts: 3,
            control_share: 0.01,
            service: Service::Fifo,
        }
    }
}

/// Priority class of data, rsvps and completes (section 3.2).
const URGENT: u8 = 0;
/// Priority class of all other control packets; the third is best effort's.
const SIGNALS: u8 = 1;
/// More slots than a host can have.
const SLOTS_MAX: u32 = 4_096;

impl Scheme for Config {
    fn about(&self) -> About {
        About {
            title: "Harmony: congestion-free delivery",
            source: "Agarwal, Cai, Agarwal, Shmoys, Vahdat: Harmony: A Congestion-free Datacenter Architecture, NSDI \
                     2024",
            summary: "Hosts and switches reserve virtual links before a message is sent, so that queues and delays \
                      are bounded; or they reject it.",
            needs: "switches: two strict priorities of their own, a list of reservations for each port, source \
                    routes; hosts: pacing by slot",
        }
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            undelivered: Undelivered::Rejected,
            has_agent: true,
            brings_queueing: self.service == Service::RoundRobin,
            guarantees: true,
            ..Capabilities::of_hosts(Family::Proactive)
        }
    }

    fn headers(&self) -> &'static dyn HeaderFormat {
        headers_of::<Header>()
    }

    // Reservations: measured on RPCs of 88 packets and on web search.
    fn control_packets(&self) -> ControlPackets {
        ControlPackets { per_packet: 0.06, per_message: 22.0, ..ControlPackets::NONE }
    }

    fn check(&self) -> Result<(), Problem> {
        let problem = |key: &str, message: String| Err(Problem::new(key, message));
        let long = Duration::from_ms(1_000);
        if !(1..=1_024).contains(&self.slots) {
            return problem("slots", format!("{} is not between 1 (plain RSVP) and 1024", self.slots));
        }
        if self.delta_admission == Duration::ZERO || self.delta_admission > long {
            let message = format!("{} is not above 0 (no message could wait) and at most {long}", self.delta_admission);
            return problem("delta_admission", message);
        }
        if let Some(after) = self.retry_after.filter(|&after| after > long) {
            return problem("retry_after", format!("{after} is too long; at most {long}"));
        }
        if !(1..=16).contains(&self.attempts) {
            return problem("attempts", format!("{} is not between 1 and 16", self.attempts));
        }
        if !(0.0..=0.5).contains(&self.control_share) {
            return problem("control_share", format!("{} is not between 0 and 0.5", self.control_share));
        }
        if self.service == Service::RoundRobin && self.control_share == 0.0 {
            let message = "0 leaves control packets no turn where service is \"round_robin\"; 0.01 is the default";
            return problem("control_share", message.into());
        }
        Ok(())
    }

    fn requirements(&self, _: &EndpointParams) -> SwitchRequirements {
        SwitchRequirements { own_routes: true, reserved_classes: 2, ..SwitchRequirements::only(Balancing::Spray) }
    }

    fn check_on(&self, network: &NetworkView) -> Result<(), Problem> {
        network.one_link_a_host("divides each host's only link into slots, and reserves a path from there")?;
        let (fabric, bounds) = (&*network.fabric, Bounds::new(self, network));
        if bounds.switches > SWITCHES_MAX {
            let switches = bounds.switches;
            let message = format!(
                "a route holds up to {SWITCHES_MAX} switches, and paths here pass {switches}; choose a smaller fabric"
            );
            return Err(Problem::new("", message));
        }
        if let Some(node) = fabric.ports.iter().position(|ports| ports.len() > PORTS_MAX) {
            let (name, ports) = (&fabric.names[node], fabric.ports[node].len());
            return Err(Problem::new(
                "",
                format!(
                    "a route can name up to {PORTS_MAX} ports of a switch, and {name} has {ports}; choose smaller \
                     switches"
                ),
            ));
        }
        if let Some((link, slots)) = narrow(&bounds, fabric) {
            let ends = fabric.link(link);
            let (from, to) = (&fabric.names[ends.from.index()], &fabric.names[ends.to.index()]);
            let message = format!(
                "a link of {} is slower than one slot of a host ({} / {}), from {from} to {to}; write slots = {slots} \
                 or more",
                ends.rate, bounds.access_rate, self.slots
            );
            return Err(Problem::new("slots", message));
        }
        let most = (0..fabric.hosts).map(|host| bounds.virtual_links(fabric.host_rate(HostId(host)))).max();
        if most.is_some_and(|most| most >= SLOTS_MAX) {
            let message =
                format!("the fastest host would have {} slots; at most {SLOTS_MAX} are possible", most.unwrap_or(0));
            return Err(Problem::new("slots", message));
        }
        Ok(())
    }

    fn timers(&self, _: &NetworkView) -> Vec<Timer> {
        let waits = Some(self.delta_admission).filter(|&of| of != Config::default().delta_admission);
        vec![Timer::new("delta_admission", waits, self.delta_admission, "is rejected if no slot is free")]
    }

    fn endpoint(&self, site: &EndpointParams, network: &NetworkView) -> Box<dyn Endpoint> {
        Box::new(host::Harmony::new(params::Params::new(self, site, Bounds::new(self, network))))
    }

    fn agent(&self, network: &NetworkView, switch: SwitchId) -> Option<Box<dyn SwitchAgent>> {
        let (fabric, bounds) = (&*network.fabric, Bounds::new(self, network));
        let lateness = bounds.lateness(fabric, &fabric.ports[fabric.switch_node(switch).index()]);
        Some(Box::new(SwitchPart::new(bounds, fabric.hosts).with_lateness(lateness)))
    }

    fn queueing(&self, network: &NetworkView, switch: SwitchId) -> Option<Box<dyn QueueDiscipline>> {
        if self.service == Service::Fifo {
            return None;
        }
        let fabric = &network.fabric;
        let rates = fabric.ports[fabric.switch_node(switch).index()].iter().map(|&link| fabric.link(link).rate);
        Some(Box::new(service::Turns::new(&Bounds::new(self, network), rates, network.site.transport)))
    }

    fn guarantee(&self, network: &NetworkView) -> Option<Guarantee> {
        let bounds = Bounds::new(self, network);
        let queue_bytes = bounds::by_link(&network.fabric, |link, rate| bounds.queue_bytes(link, rate));
        let room_bytes = bounds::by_link(&network.fabric, |link, rate| bounds.room_bytes(link, rate));
        let proven = bounds.are_proven();
        Some(Guarantee { class: URGENT, queue_bytes, room_bytes, wait: bounds.wait, proven })
    }
}

/// A link too slow for a virtual link, and the K that would give it one.
fn narrow(bounds: &Bounds, fabric: &Fabric) -> Option<(LinkId, u64)> {
    let link = (0..fabric.links.len()).map(LinkId::from).min_by_key(|&link| fabric.link(link).rate)?;
    let rate = fabric.link(link).rate;
    (bounds.virtual_links(rate) == 0).then(|| (link, bounds.access_rate.bps().div_ceil(rate.bps().max(1))))
}

/// Control packets for the NIC, by class.
#[derive(Default, node::State)]
struct Control {
    urgent: VecDeque<Packet>,
    signals: VecDeque<Packet>,
}

impl Control {
    fn push(&mut self, packet: Packet) {
        match packet.class {
            URGENT => self.urgent.push_back(packet),
            _ => self.signals.push_back(packet),
        }
    }
}
