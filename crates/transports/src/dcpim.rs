//! dcPIM: Datacenter Parallel Iterative Matching (Cai, Arashloo, Agarwal, SIGCOMM 2022).
//!
//! Time is divided into phases of equal length. During each phase, hosts match senders with receivers for the next
//! phase in `r` rounds of request, grant and accept (`matching`), while the pairs matched in the previous phase send
//! data (section 3.3). A receiver admits each packet of a long flow with a token (`receiver`, section 3.2), at the
//! rate of the channels that it has been matched for (section 3.4). Short flows are sent at once and take part in
//! matching only if some of their packets are lost (`sender`).
//!
//! The paper's terms and their modules: *notification*, *ack*, *finish*, *token*, *request*, *grant*, *accept* are the
//! kinds of [`header`]; *stage*, *round*, *phase*, *channel* and *slack* beta are computed in `params`; PIM itself and
//! Theorem 1, without hosts, are in [`pim`] and [`bounds`].
//!
//! The authors' simulator departs from the paper's text in a number of points. Each can be switched on, see
//! [`departures`]. Some are ours, and on by default: they serve slow links and unequal NICs. Without any, `departures =
//! "paper"`, this is the paper.
//!
//! Decided where the paper is silent: ties of remaining size are broken at random in matching, and a sender that has
//! tokens for equal flows sends of the one that started first; a receiver that has seen a flow's
//! *finish* before its last packet answers when that packet comes (the finish is smaller and overtakes it); tokens of a
//! phase count as lost one RTT after its end, when no packet that they admitted can still be on its way (on links of 1
//! Gbps several phases later), and are sent again in the next phase with that sender; a sender uses requests by its own
//! next grant stage, a receiver grants that answer its request of this round or the last, by its own clock; a request
//! that has not left its host when the next round begins is dropped; the token window bounds the number of unanswered
//! tokens; a receiver whose best flow has a full window admits another of the same sender.
//!
//! Deliberately absent: deadlines and tenants in notifications (no scheme here reads them), drop notification by
//! switches (section 3.2 mentions it as possible), and unequal channels between two hosts (the paper leaves them to
//! future work).

pub mod bounds;
pub mod departures;
pub mod header;
pub mod pim;

mod host;
mod matching;
mod params;
mod receiver;
mod sender;

#[cfg(test)]
mod tests;

use node::{Balancing, Endpoint, EndpointParams, Overflow};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Bytes, Problem};

use contract::{
    About, Capabilities, ControlPackets, Family, HeaderFormat, NetworkView, Scheme, SwitchRequirements, headers_of,
};

pub use departures::{Departure, Departures};
pub use header::Header;

/// Configuration of dcPIM. The defaults are the paper's (section 4.1), but for `departures`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Rounds of matching in a phase (r). Default: 4.
    pub rounds: u8,
    /// Length of a stage in units of half a control packet's round trip. Default: 1.3.
    pub beta: f64,
    /// Number of channels that a host's bandwidth is divided into (k). Default: 4.
    pub channels: u8,
    /// Flows up to this length are sent without matching. Default: one bandwidth-delay product.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub short_flow: Option<Bytes>,
    /// Token window of a flow over all channels. Default: one bandwidth-delay product.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_window: Option<Bytes>,
    /// Number of priority classes: control, short flows, and the rest for long flows. Default: 8.
    pub priorities: u8,
    /// Whether notifications carry a flow's size. If not, choices are random or by order of arrival. Default: true.
    pub sizes_known: bool,
    /// Points in which to depart from the paper: a list, `"authors_2022"` for all of the authors' simulator of that
    /// year, `"authors_2023"` for its later version, `"paper"` for none. Default: `["backoff", "slow_links",
    /// "told_untokened", "slower_nic"]`.
    pub departures: Departures,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            rounds: 4,
            beta: 1.3,
            channels: 4,
            short_flow: None,
            token_window: None,
            priorities: 8,
            sizes_known: true,
            departures: Departure::OURS.iter().copied().collect(),
        }
    }
}

impl Scheme for Config {
    fn about(&self) -> About {
        About {
            title: "dcPIM: Datacenter Parallel Iterative Matching",
            source: "Cai, Arashloo, Agarwal: dcPIM: Near-Optimal Proactive Datacenter Transport, SIGCOMM 2022",
            summary: "Hosts match senders with receivers in a few rounds, then receivers clock data with tokens.",
            needs: "hosts: clocks that run at the same rate (their times may differ); switches: 3 to 8 strict \
                    priorities, packet spraying",
        }
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::of_hosts(Family::Proactive)
    }

    fn headers(&self) -> &'static dyn HeaderFormat {
        headers_of::<Header>()
    }

    // An ACK a packet, and beside them notification, finish and their ACKs; matching is a few packets a host.
    fn control_packets(&self) -> ControlPackets {
        ControlPackets { per_message: 3.5, ..ControlPackets::ACKS }
    }

    fn check(&self) -> Result<(), Problem> {
        let problem = |key: &str, message: String| Err(Problem::new(key, message));
        if !(1..=32).contains(&self.rounds) {
            return problem("rounds", format!("{} is not between 1 and 32", self.rounds));
        }
        if !(1..=64).contains(&self.channels) {
            return problem("channels", format!("{} is not between 1 and 64", self.channels));
        }
        if !(1.0..=100.0).contains(&self.beta) {
            return problem("beta", format!("{} is not between 1 (no slack) and 100", self.beta));
        }
        if !(3..=8).contains(&self.priorities) {
            return problem("priorities", format!("{} is not between 3 and 8", self.priorities));
        }
        if self.token_window == Some(Bytes(0)) {
            return problem("token_window", "with a window of 0 nothing would be sent; leave it out for 1 BDP".into());
        }
        if self.departures.has(Departure::RetokenAtEnd) && !self.departures.has(Departure::LooseWindow) {
            return problem("departures", "retoken_at_end needs loose_window; add that, or delete this".into());
        }
        Ok(())
    }

    fn advice(&self) -> Vec<Problem> {
        let has = |departure| self.departures.has(departure);
        let idle = [
            (
                "priorities",
                has(Departure::PriorityBySize) && self.priorities != 8,
                "has no effect with the departure priority_by_size; delete one of the two",
            ),
            (
                "departures",
                has(Departure::Backoff) && has(Departure::NoHandshakes) && self.sizes_known,
                "backoff has no effect with no_handshakes, which repeats nothing; delete one of the two",
            ),
            (
                "sizes_known",
                has(Departure::NoHandshakes) && !self.sizes_known,
                "the departure no_handshakes has no effect without it: the finish alone tells where a flow ends",
            ),
        ];
        idle.into_iter().filter(|idle| idle.1).map(|(key, _, why)| Problem::new(key, why)).collect()
    }

    fn endpoint(&self, site: &EndpointParams, network: &NetworkView) -> Box<dyn Endpoint> {
        Box::new(host::Dcpim::new(params::Params::new(self, site, network)))
    }

    fn when_stuck(&self, _: &NetworkView) -> Option<String> {
        (!self.departures.has(Departure::Backoff))
            .then(|| "departures = [\"backoff\"] repeats them less and less often".to_owned())
    }

    fn requirements(&self, _: &EndpointParams) -> SwitchRequirements {
        let overflow = self.departures.has(Departure::PushOut).then_some(Overflow::PushOut);
        let balancing = if self.departures.has(Departure::SprayByLink) {
            Balancing::RoundRobinByLink
        } else if overflow.is_some() {
            Balancing::RoundRobin
        } else {
            Balancing::Spray
        };
        SwitchRequirements { overflow, ..SwitchRequirements::only(balancing) }
    }
}
