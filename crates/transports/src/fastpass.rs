//! Fastpass: a centralised arbiter says which packet leaves when and by which path, so that none ever waits in a switch (Perry,
//! Ousterhout, Balakrishnan, Shah, Fugal: Fastpass: A Centralized "Zero-Queue" Datacenter Network, SIGCOMM 2014), with the two
//! extensions by which Harmony compares itself with it (Agarwal et al., NSDI 2024, footnote 3): a message's packets go in
//! consecutive time slots, and a request may wait delta_admission before it is rejected.
//!
//! - [`header`]: what packets carry;
//! - `arbiter`: the arbiter alone, a state machine: the matching of each slot, and the path of each message;
//! - `calendar`: what has been promised of one link;
//! - `terms`: slots, and how packets move over paths;
//! - `sender`, `receiver`, `host`: asking for slots, sending in them, putting messages together.
//!
//! # Decisions
//!
//! - **Zero queue is exact.** Paths of different lengths take different times, and links faster than a host's carry several
//!   packets a slot. So the arbiter reserves each link for the very instants at which a packet is there, from the rates and delays
//!   of the path, and no two reservations of a link meet. A slot is divided into as many starts as the fastest link carries packets
//!   (lanes), so that trains on such links lie side by side. Where a path's slowest link is slower than a host's (oversubscription), a
//!   message takes every second slot, or third, or so.
//! - **A slot is a full packet's.** The last packet of a message is padded to one: a short packet would cross the first links
//!   faster and reach the next before its time.
//! - **One path a message**: the first free one in the order of ports, for all its packets. What is taken then lies together, and what
//!   is free at one switch is free at others too. The original colours each slot's packets anew, which needs a path in every
//!   allocation of a packet; with `granularity = "packet"` it is chosen for each packet, in the same way.
//! - **Data first.** Data has the first class and control the second: a control packet goes where the schedule leaves room, and
//!   disturbs it by no more than the one that is being sent. For that slots are longer than packets by `control_share`, and the
//!   arbiter's own host leaves one slot in `control_slots` to control, on its way out and in.
//! - **The arbiter is a host.** Requests and allocations are real packets there and back. It decides about a slot when an allocation can
//!   still reach any sender in time: after `processing`, the longest way of a control packet and some slack. An
//!   allocation that comes too late is not used (the slots are others'), and the sender asks again.
//! - **Rejections are said as soon as they are certain**: slots that have been given are never taken back, so the arbiter knows when a
//!   request can't begin within delta_admission.
//! - **Control is reliable** (the original's FCP): requests are numbered and repeated, the arbiter answers a repeated one that waits;
//!   a receiver that is asked tells the first missing packet, and the sender asks for slots from there on. A message that
//!   has begun is not rejected any more. Links of a path on which packets were lost are avoided for `avoid_for`: nobody
//!   tells the arbiter of failures. After `patience` without progress a message has failed.
//! - **Clocks.** The original synchronises hosts by PTP; here they are synchronised exactly, whatever `host.clock_offset_max`
//!   says, unless `clocks = "own"`: then everyone acts by its own clock, and nothing is guaranteed.
//!
//! Absent on purpose: several arbiters and their fail-over (section 4.4 of the original, which is about a dead one; here its
//! messages fail), isolation of faulty links by probes, and multi-core arbiters (`processing` stands for all of that).

pub mod header;

mod arbiter;
mod calendar;
mod host;
mod receiver;
mod sender;
mod terms;

#[cfg(test)]
mod tests;

use fabric::Tier;
use node::{Balancing, Endpoint, Site};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Duration, Problem};

use contract::{
    About, Family, Guarantee, HeaderFormat, Nature, NetworkView, Scheme, SwitchRequirements, Undelivered, headers_of,
};
use terms::Params;

pub use header::Header;

/// What a scenario may set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// The host that the arbiter is on.
    pub arbiter: u32,
    /// What slots are given for.
    pub granularity: Granularity,
    /// How long a request may wait for slots before it is rejected.
    pub delta_admission: Duration,
    /// What the arbiter takes to compute the decisions about a slot.
    pub processing: Duration,
    /// The share of every link that data leaves to control packets.
    pub control_share: f64,
    /// Of the slots of the arbiter's own host, one in so many is left to control.
    pub control_slots: u32,
    /// How much longer than without queueing an allocation may take to its sender; `control_slots` and one slot a switch if unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slack: Option<Duration>,
    /// By what clock hosts act.
    pub clocks: Clocks,
    /// How long links of a path on which packets were lost are avoided.
    pub avoid_for: Duration,
    /// How long without progress until a message has failed.
    pub patience: Duration,
}

/// What slots are given for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Granularity {
    /// Whole messages, in consecutive slots, oldest first (Harmony, footnote 3).
    Message,
    /// Single packets, to those first that have waited longest for their last (the original, max-min fair).
    Packet,
}

/// By what clock hosts act.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Clocks {
    /// One that all share, as if PTP were exact.
    Synchronised,
    /// Each its own.
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
            patience: Duration::from_ms(10),
        }
    }
}

impl Scheme for Config {
    fn about(&self) -> About {
        About {
            title: "Fastpass: a centralised zero-queue network",
            source: "Perry, Ousterhout, Balakrishnan, Shah, Fugal: Fastpass: A Centralized \"Zero-Queue\" Datacenter Network, SIGCOMM 2014",
            summary: "An arbiter tells every sender when to send and by which path, so that no packet waits for another.",
            needs: "hosts: an arbiter, synchronised clocks, timed sending; switches: source routing, two strict priorities",
        }
    }

    fn nature(&self) -> Nature {
        Nature {
            undelivered: Undelivered::Rejected,
            guarantees: self.clocks != Clocks::Own,
            ..Nature::of_hosts(Family::Proactive)
        }
    }

    fn headers(&self) -> &'static dyn HeaderFormat {
        headers_of::<Header>()
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
        if self.patience == Duration::ZERO {
            return Err(Problem::new("patience", "0 would give up before anything is sent"));
        }
        let most = Duration::from_ms(1_000_000);
        let bounded = [
            ("delta_admission", self.delta_admission),
            ("processing", self.processing),
            ("slack", self.slack.unwrap_or_default()),
            ("avoid_for", self.avoid_for),
            ("patience", self.patience),
        ];
        match bounded.into_iter().find(|(_, value)| *value > most) {
            Some((key, value)) => Err(Problem::new(key, format!("{value} is more than sensible: at most {most}"))),
            None => Ok(()),
        }
    }

    fn check_on(&self, network_view: &NetworkView) -> Result<(), Problem> {
        network_view
            .one_link_a_host("gives each host's only link to one packet at a time, and names the path from there on")?;
        let fabric = &network_view.fabric;
        if self.arbiter >= fabric.hosts {
            let message = format!("there is no host {}; the last is {}", self.arbiter, fabric.hosts - 1);
            return Err(Problem::new("arbiter", message));
        }
        let longest = network_view.site.data_rtts.iter().map(|of| of.0).max().unwrap_or(1);
        if longest > SWITCHES_MAX {
            let message = format!(
                "a path passes {longest} switches; an allocation has room for the ports of {SWITCHES_MAX}: make the fabric smaller"
            );
            return Err(Problem::new("", message));
        }
        let most = fabric.ports[fabric.hosts as usize..].iter().map(Vec::len).max().unwrap_or(0);
        if most > PORTS_MAX {
            let message =
                format!("a switch has {most} ports; an allocation can name {PORTS_MAX}: make the switches smaller");
            return Err(Problem::new("", message));
        }
        Ok(())
    }

    fn endpoint(&self, site: &Site, network_view: &NetworkView) -> Box<dyn Endpoint> {
        Box::new(host::Fastpass::new(Params::new(self, site, network_view)))
    }

    fn requirements(&self, _: &Site) -> SwitchRequirements {
        SwitchRequirements { own_routes: true, reserved_classes: 2, ..SwitchRequirements::only(Balancing::Spray) }
    }

    /// By the schedule nothing waits. What is late against it is so because a packet was being sent when its turn came, at its host's
    /// NIC and at each switch on the way: one of control, or of another transport's beneath. Since a queue never does less work than
    /// the schedule whatever the order, lateness adds up over the links of a path and no further.
    fn guarantee(&self, network_view: &NetworkView) -> Option<Guarantee> {
        if self.clocks == Clocks::Own {
            return None;
        }
        let mtu = u64::from(network_view.site.mtu_bytes);
        let full = lateness(network_view, mtu);
        let queue_bytes = |link: &fabric::Link| mtu * full.ps().div_ceil(link.rate.transmit(mtu).ps().max(1));
        let queue_bytes: Vec<u64> = network_view.fabric.links.iter().map(queue_bytes).collect();
        Some(Guarantee { class: terms::DATA, room_bytes: queue_bytes.clone(), queue_bytes, wait: full, proven: true })
    }
}

/// The most that a data packet is late at its last link, if a packet of so many bytes was being sent at every link
/// on the longest way, on the slowest links.
fn lateness(network_view: &NetworkView, bytes: u64) -> Duration {
    let switches = network_view.site.data_rtts.iter().map(|of| u64::from(of.0)).max().unwrap_or(1);
    let slowest = |of_hosts: bool| {
        let at_host = |link: &&fabric::Link| matches!(link.tier, Tier::FromHost | Tier::ToHost) == of_hosts;
        network_view.fabric.links.iter().filter(at_host).map(|link| link.rate.transmit(bytes).ps()).max().unwrap_or(0)
    };
    Duration::from_ps(2 * slowest(true) + switches.saturating_sub(1) * slowest(false))
}

/// Ports of so many switches fit into an allocation, and of so many ports each.
const SWITCHES_MAX: u8 = 8;
const PORTS_MAX: usize = 256;
