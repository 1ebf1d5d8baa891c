//! Fastpass: a centralised arbiter decides when each packet leaves and by which path, so that none ever waits in a
//! switch (Perry, Ousterhout, Balakrishnan, Shah, Fugal: Fastpass: A Centralized "Zero-Queue" Datacenter Network,
//! SIGCOMM 2014), with the two extensions by which Harmony compares itself with it (Agarwal et al., NSDI 2024, footnote
//! 3): a message's packets go in consecutive time slots, and a request may wait delta_admission before it is rejected.
//!
//! - [`header`]: what packets carry;
//! - `arbiter`: the arbiter alone, a state machine: the matching of each slot, and the path of each message;
//! - `calendar`: the reservations of one link;
//! - `params`: slots, and how packets move over paths;
//! - `sender`, `receiver`, `host`: asking for slots, sending in them, putting messages together.
//!
//! # Decisions
//!
//! - **Zero queue is exact.** Paths of different lengths take different times, and links faster than a host's carry
//!   several packets a slot. So the arbiter reserves each link for the exact times at which a packet is there, from the
//!   rates and delays of the path, and no two reservations of a link overlap. A slot is divided into as many starts as
//!   the fastest link carries packets (lanes), so that trains on such links lie side by side. Where a path's slowest
//!   link is slower than a host's (oversubscription), a message takes every second slot, or third, or so.
//! - **A slot is a full packet's.** The last packet of a message is padded to one: a short packet would cross the first
//!   links faster and reach the next before its time.
//! - **One path a message**: the first free one in the order of ports, for all its packets. So all leaves fill the same
//!   spines first, and a spine that is free at one leaf is probably free at others too. The original computes a new
//!   edge colouring for each slot, and must tell the sender a path for each packet. With `granularity = "packet"` the
//!   path is chosen for each packet, in the same way.
//! - **Data first.** Data has the first class and control the second: a control packet uses gaps of the schedule, and
//!   delays data by at most one packet in transmission. For that, slots are longer than packets by `control_share`, and
//!   the arbiter's own host leaves one slot in `control_slots` to control, in both directions.
//! - **The arbiter is a host.** Requests and allocations are real packets there and back. It decides about a slot early
//!   enough for an allocation to reach any sender in time: `processing`, the longest path of a control packet and some
//!   slack before it. An allocation that comes too late is not used (the slots are others'), and the sender asks again.
//! - **Rejections are sent as soon as they are certain**: slots are never taken back, so the arbiter knows when a
//!   request can't begin within delta_admission.
//! - **Control is reliable** (the original's FCP): requests are numbered and repeated, and the arbiter answers
//!   repetitions of a waiting request. A receiver that is asked reports the first missing packet, and the sender asks
//!   for slots from there on. A message that has begun is not rejected any more. Links of a path on which packets were
//!   lost are avoided for `avoid_for`: nobody tells the arbiter of failures. After `patience` without progress a
//!   message has failed.
//! - **Clocks.** The original synchronises hosts by PTP; here they are synchronised exactly, whatever
//!   `host.clock_offset_max` says, unless `clocks = "own"`: then everyone acts by its own clock, and nothing is
//!   guaranteed.
//!
//! Deliberately absent: several arbiters and their fail-over (section 4.4 of the original; here messages fail if the
//! arbiter is dead), isolation of faulty links by probes, and multi-core arbiters (`processing` stands for their
//! computing time).

pub mod header;

mod arbiter;
mod calendar;
mod host;
mod params;
mod receiver;
mod sender;

#[cfg(test)]
mod tests;

use fabric::Tier;
use node::{Balancing, Endpoint, EndpointParams};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Duration, Problem};

use contract::{
    About, Capabilities, ControlPackets, Family, Guarantee, HeaderFormat, NetworkView, Scheme, SwitchRequirements,
    Timer, Undelivered, headers_of,
};
use params::Params;

pub use header::Header;

/// Configuration of Fastpass.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Number of the host with the arbiter. Default: 0.
    pub arbiter: u32,
    /// Whether slots are allocated to whole messages or to single packets. Default: `message`.
    pub granularity: Granularity,
    /// How long a request may wait for slots before it is rejected. Default: 63us.
    #[schemars(extend("x-least" = "100ns"))]
    pub delta_admission: Duration,
    /// Time that the arbiter takes to compute the decisions about a slot. Default: 0.
    pub processing: Duration,
    /// Share of every link that data leaves to control packets. Default: 0.01.
    pub control_share: f64,
    /// Of this many slots of the arbiter's own host, one is left free for control packets. Default: 8.
    pub control_slots: u32,
    /// Extra time, beyond the time without queueing, that an allocation may take to its sender. Default:
    /// `control_slots` plus one slot for each switch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slack: Option<Duration>,
    /// The clock that hosts act by. Default: `synchronised`.
    pub clocks: Clocks,
    /// How long to avoid the links of a path on which packets were lost. Default: 1ms.
    pub avoid_for: Duration,
    /// Time without progress after which a message fails. Default: 10ms, or enough for six unanswered requests, if that
    /// is longer.
    #[schemars(extend("x-least" = "100ns"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patience: Option<Duration>,
}

/// The unit of allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Granularity {
    /// Whole messages, in consecutive slots, oldest first (Harmony, footnote 3).
    Message,
    /// Single packets, first to those that have waited longest since their last (the original, max-min fair).
    Packet,
}

/// The clock that hosts act by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Clocks {
    /// One clock shared by all, as if PTP were exact.
    Synchronised,
    /// Each host's own clock.
    Own,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            arbiter: 0,
            granularity: Granularity::Message,
            delta_admission: Duration::from_us(63),
            processing: Duration::ZERO,
            control_share: 0.01,
            control_slots: 8,
            slack: None,
            clocks: Clocks::Synchronised,
            avoid_for: Duration::from_ms(1),
            patience: None,
        }
    }
}

impl Scheme for Config {
    fn about(&self) -> About {
        About {
            title: "Fastpass: a centralised zero-queue network",
            source: "Perry, Ousterhout, Balakrishnan, Shah, Fugal: Fastpass: A Centralized \"Zero-Queue\" Datacenter \
                     Network, SIGCOMM 2014",
            summary: "A central arbiter tells each sender when to send each packet and on which path, so that no \
                      packet queues.",
            needs: "hosts: one of them as the arbiter, synchronised clocks, timed sending; switches: source routes, \
                    two strict priorities",
        }
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            undelivered: Undelivered::Rejected,
            guarantees: self.clocks != Clocks::Own,
            ..Capabilities::of_hosts(Family::Proactive)
        }
    }

    fn headers(&self) -> &'static dyn HeaderFormat {
        headers_of::<Header>()
    }

    // A request and its allotments.
    fn control_packets(&self) -> ControlPackets {
        ControlPackets { per_message: 2.0, ..ControlPackets::NONE }
    }

    fn check(&self) -> Result<(), Problem> {
        if !(0.001..=0.5).contains(&self.control_share) {
            let message = format!("{} is not between 0.001 and 0.5", self.control_share);
            return Err(Problem::new("control_share", message));
        }
        if !(2..=1_000).contains(&self.control_slots) {
            let message = format!("{} is not between 2 (every other one) and 1000", self.control_slots);
            return Err(Problem::new("control_slots", message));
        }
        if self.patience == Some(Duration::ZERO) {
            return Err(Problem::new(
                "patience",
                "at 0 a flow would be given up before anything is sent; write at least 1",
            ));
        }
        let most = Duration::from_ms(1_000_000);
        let bounded = [
            ("delta_admission", self.delta_admission),
            ("processing", self.processing),
            ("slack", self.slack.unwrap_or_default()),
            ("avoid_for", self.avoid_for),
            ("patience", self.patience.unwrap_or_default()),
        ];
        match bounded.into_iter().find(|(_, value)| *value > most) {
            Some((key, value)) => Err(Problem::new(key, format!("{value} is too large; at most {most}"))),
            None => Ok(()),
        }
    }

    fn check_on(&self, network_view: &NetworkView) -> Result<(), Problem> {
        network_view.one_link_a_host(
            "assigns each host's only link to one packet at a time, and chooses the path from there",
        )?;
        let fabric = &network_view.fabric;
        if self.arbiter >= fabric.hosts {
            let message = format!("there is no host {}; the last is {}", self.arbiter, fabric.hosts - 1);
            return Err(Problem::new("arbiter", message));
        }
        let longest = network_view.site.data_rtts.iter().map(|of| of.0).max().unwrap_or(1);
        if longest > SWITCHES_MAX {
            let message = format!(
                "a path passes {longest} switches, and an allocation holds the ports of {SWITCHES_MAX}; choose a \
                 smaller fabric"
            );
            return Err(Problem::new("", message));
        }
        let most = fabric.ports[fabric.hosts as usize..].iter().map(Vec::len).max().unwrap_or(0);
        if most > PORTS_MAX {
            let message =
                format!("a switch has {most} ports, and an allocation can name {PORTS_MAX}; choose smaller switches");
            return Err(Problem::new("", message));
        }
        Ok(())
    }

    fn timers(&self, network: &NetworkView) -> Vec<Timer> {
        let patience = Params::new(self, &network.site, network).patience;
        let waits = Some(self.delta_admission).filter(|&of| of != Config::default().delta_admission);
        vec![
            Timer::new("patience", self.patience, patience, "fails"),
            Timer::new("delta_admission", waits, self.delta_admission, "is rejected if it can't begin"),
        ]
    }

    fn endpoint(&self, site: &EndpointParams, network_view: &NetworkView) -> Box<dyn Endpoint> {
        Box::new(host::Fastpass::new(Params::new(self, site, network_view)))
    }

    fn requirements(&self, _: &EndpointParams) -> SwitchRequirements {
        SwitchRequirements { own_routes: true, reserved_classes: 2, ..SwitchRequirements::only(Balancing::Spray) }
    }

    /// Under the schedule nothing waits. A packet is late only because of a packet that was in transmission when its
    /// turn came, or the turn of a packet before it: a control packet or one of a lower-priority transport. By how much
    /// is the function `lateness`.
    fn guarantee(&self, network_view: &NetworkView) -> Option<Guarantee> {
        if self.clocks == Clocks::Own {
            return None;
        }
        let mtu = u64::from(network_view.site.mtu_bytes);
        let full = lateness(network_view, mtu);
        let queue_bytes = |link: &fabric::Link| mtu * full.ps().div_ceil(link.rate.transmit(mtu).ps().max(1));
        let queue_bytes: Vec<u64> = network_view.fabric.links.iter().map(queue_bytes).collect();
        Some(Guarantee { class: params::DATA, room_bytes: queue_bytes.clone(), queue_bytes, wait: full, proven: true })
    }
}

/// The greatest lateness of a data packet at its last link, if a packet of `bytes` may be in transmission at every link
/// of the longest path, on the slowest links: (2^n - 1) p over n equal links, where p is the time of such a packet.
///
/// Packets come to a link at most L late, and are served in the order in which they come. Let b be the time since which
/// data has waited there when a packet comes at r. Those that came before it since b were due in [b - L, r]. In the
/// schedule their transmissions do not overlap, so that they take r - b + L at most. The link has served them since b,
/// after one other packet at most, which takes p. So the packet waits for L + p at most, and is 2 L + p late.
fn lateness(network_view: &NetworkView, bytes: u64) -> Duration {
    let switches = network_view.site.data_rtts.iter().map(|of| u64::from(of.0)).max().unwrap_or(1);
    let slowest = |of_hosts: bool| {
        let at_host = |link: &&fabric::Link| matches!(link.tier, Tier::FromHost | Tier::ToHost) == of_hosts;
        network_view.fabric.links.iter().filter(at_host).map(|link| link.rate.transmit(bytes).ps()).max().unwrap_or(0)
    };
    let between = (1..switches).map(|_| slowest(false));
    let links = std::iter::once(slowest(true)).chain(between).chain([slowest(true)]);
    Duration::from_ps(links.fold(0, |late, other| 2 * late + other))
}

/// Most switches on a path, so that their ports fit into an allocation.
const SWITCHES_MAX: u8 = 8;
const PORTS_MAX: usize = 256;
