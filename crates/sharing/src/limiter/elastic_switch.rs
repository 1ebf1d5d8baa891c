//! DRL: ElasticSwitch (Popa, Yalagandula, Banerjee, Mogul, Turner, Santos, SIGCOMM 2013), a dynamic rate limiter.
//!
//! Every VM is guaranteed a [`Hose`]: a rate out of it and a rate into it, for any peers. Hypervisors turn hoses into
//! guarantees for pairs of VMs without a coordinator, in two layers. *Guarantee partitioning* (GP, [`partition`]): each
//! period both ends of a pair divide their hoses among their active pairs by demand, the receiver's hypervisor tells
//! the sender's its part, and the pair's guarantee is the lesser of the two. *Rate allocation* (RA, [`allocation`]): a
//! pair may exceed its guarantee as long as there is no congestion, and never has to send less. The sender's hypervisor
//! limits each pair with a token bucket of that rate and serves the pairs that have a packet and tokens for it in turn
//! (`hypervisor`).
//!
//! Hypervisors exchange control packets on the same network ([`header`]): of class 0, the size of a header and outside
//! of any flow ([`CONTROL`]). They do not count against a hose.
//!
//! Taken from ElasticSwitch: the two layers, the minimum of both ends, division by max-min of measured demands, the
//! period of 15 ms, a new pair served at once and not at the next period, weighted probing like TCP's with
//! hold-increase and rate-caution, its congestion signs (ECN and loss between hypervisors). Its headroom, guarantees
//! for at most 90% of a link, is left to the hoses in the scenario. The source is summaries of ElasticSwitch and not
//! its text, so no sections are cited, and constants that the summaries don't give are ours.
//!
//! Decided here: how demand follows from measurements ([`Config::demand_headroom`]) and that capacity without demand is
//! divided too ([`partition`]); RA's curve and constants ([`Probing`]); that a new pair makes both ends divide again,
//! and that its sender begins with its own part before it hears from the receiver; that a hypervisor's periods begin
//! with its first packet and end after a period of silence, so that hosts are not synchronised; that a pair's queue and
//! burst are those of [`rate_limiter`](super::rate_limiter).
//!
//! Departs from ElasticSwitch in detecting loss. There a shim numbers each packet; packets here have no room for it.
//! Instead the sender reports every [`Probing::interval`] how many packets it has sent, in the class of the pair's data
//! and so in order with it. Packets that the receiver does not have by then count as lost. If a pair's packets take
//! several paths or classes, some late packets are taken for lost.
//!
//! Deliberately absent: admission of VMs, and hypervisors with more than one VM.

pub mod allocation;
pub mod header;
pub mod partition;

mod hypervisor;
mod incoming;
mod outgoing;

#[cfg(test)]
mod tests;

use contract::sharing::{self, SharingScheme};
use contract::{About, SwitchRequirements};
use node::wire::{Malformed, Reader, Writer};
use node::{Balancing, EndpointParams, Header as _, Packet, Shaper};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Bytes, Duration, FlowId, Problem, Rate};

pub use allocation::Probing;
pub use header::Header;

/// A VM's guaranteed rates, both above zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hose {
    /// To all other VMs together.
    pub outbound: Rate,
    /// From all other VMs together.
    pub inbound: Rate,
}

/// The flow id of control packets, which belong to no flow.
pub const CONTROL: FlowId = FlowId(u32::MAX);

/// Configuration of ElasticSwitch. Hoses follow from the grants of entities.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Time between divisions of the guarantees. Default: 15ms.
    #[schemars(extend("x-least" = "1us"))]
    pub period: Duration,
    /// Demand of a pair counts as bounded if the pair used less than its guarantee minus this fraction. It then gets
    /// what it used plus this fraction of an equal share. Default: 0.1.
    pub demand_headroom: f64,
    /// Whether pairs may exceed their guarantees. Default: `work_conserving`.
    pub rate_allocation: RateAllocation,
    /// What a pair may send at once after a pause. Default: one full packet, as for `rate_limiter`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub burst: Option<Bytes>,
    /// Longest queue of a pair, in packets; further packets are dropped. Default: 1000.
    pub queue_packets: u32,
}

/// Whether pairs may exceed their guarantees.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum RateAllocation {
    /// Never: what no guarantee claims stays idle, as with the DRL that Augmented Queue measures (its Table 3: at most
    /// 4.9 Gbps of a guarantee of 5 on a link of 25).
    GuaranteesOnly,
    /// Where there is no congestion, as ElasticSwitch is described.
    WorkConserving(Probing),
}

impl Default for Config {
    fn default() -> Config {
        Config {
            period: Duration::from_ms(15),
            demand_headroom: 0.1,
            rate_allocation: RateAllocation::WorkConserving(Probing::default()),
            burst: None,
            queue_packets: 1000,
        }
    }
}

impl SharingScheme for Config {
    fn about(&self) -> About {
        About {
            title: "ElasticSwitch (DRL)",
            source: "Popa et al., SIGCOMM 2013",
            summary: "Every 15 ms hypervisors divide the guarantees of hosts among pairs of hosts, and probe for free \
                      bandwidth.",
            needs: "hosts: a hypervisor each, control packets between them",
        }
    }

    fn check(&self) -> Result<(), Problem> {
        check_duration("period", self.period)?;
        if !(0.0..1.0).contains(&self.demand_headroom) {
            return Err(Problem::new(
                "demand_headroom",
                format!("{} is not at least 0 and below 1", self.demand_headroom),
            ));
        }
        if let RateAllocation::WorkConserving(probing) = &self.rate_allocation {
            probing.check().map_err(|problem| problem.under("rate_allocation.work_conserving"))?;
        }
        super::rate_limiter::check(self.burst, self.queue_packets)
    }

    fn limits_hosts(&self) -> bool {
        true
    }

    fn longest_wait(&self, site: &EndpointParams, hose: sharing::Hose) -> Duration {
        let rate = hose.outbound.into_iter().chain(hose.inbound).min();
        super::rate_limiter::longest_wait(self.queue_packets, site, rate)
    }

    fn requirements(&self) -> Option<SwitchRequirements> {
        Some(SwitchRequirements::only(Balancing::Ecmp))
    }

    fn emit_header(&self, packet: &Packet, to: &mut Writer<'_>) {
        Header::emit_with(packet, &[], to);
    }

    fn parse_header(&self, from: &mut Reader<'_>, packet: &mut Packet) -> Result<(), Malformed> {
        Header::parse_with(from, packet)
    }

    fn layout(&self) -> node::layout::Layout {
        <Header as node::Header>::LAYOUT
    }

    fn says(&self, packet: &Packet) -> String {
        contract::headers_of::<Header>().says(packet)
    }

    /// Every host has a hypervisor, since every hypervisor hears from others; bandwidth that was not requested is free.
    fn shaper(&self, site: &EndpointParams, hose: sharing::Hose) -> Option<Box<dyn Shaper>> {
        let free = |rate: Option<Rate>| rate.unwrap_or(site.nic_rate);
        let hose = Hose { outbound: free(hose.outbound), inbound: free(hose.inbound) };
        Some(self.hypervisor(site, hose, site.transport))
    }
}

impl Config {
    /// The hypervisor of the host at `site`, whose VM is guaranteed `hose`. Control packets carry the transport index
    /// `transport`, which no other transport may use.
    pub fn hypervisor(&self, site: &EndpointParams, hose: Hose, transport: u8) -> Box<dyn Shaper> {
        Box::new(hypervisor::Hypervisor::new(self, site, hose, transport))
    }
}

fn check_duration(key: &str, duration: Duration) -> Result<(), Problem> {
    if (Duration::from_us(1)..=Duration::from_ms(1_000_000)).contains(&duration) {
        return Ok(());
    }
    Err(Problem::new(key, format!("{duration} is not between 1us and 1000s")))
}
