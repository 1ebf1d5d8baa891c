//! pHost: distributed near-optimal datacenter transport over commodity network fabric (Gao, Narayan, Kumar, Agarwal, Ratnasamy,
//! Shenker, CoNEXT 2015). The network sprays packets and has a few priorities; hosts decide everything else.
//!
//! A sender announces a flow to its receiver in a *request to send*. A receiver hands out *tokens*, one each transmission time of a
//! packet, to the flow that it likes best; a sender with tokens of several flows uses those of the flow that it likes best, and has
//! 1.5 packet times to use one (section 3). So hosts are matched packet by packet, by nobody. Two things keep that from
//! wasting links: a flow starts with a bandwidth-delay product of *free tokens*, so that it need not wait for a round trip; and a
//! receiver whose tokens a source leaves unanswered, a bandwidth-delay product of them, *downgrades* it: others get its tokens for
//! three round trips.
//!
//! - [`header`]: what packets carry;
//! - `terms`: what follows from configuration and place; `policy`: whom hosts like best;
//! - `sender`, `receiver`, `host`: both sides on one NIC.
//!
//! # Decisions
//!
//! - **What is unanswered** is told by tokens' numbers: data carries its token's, and a token counts as unanswered until one given
//!   later, or itself, is answered. Those that are expired or lost stop counting when a later one is answered.
//! - **A downgraded source is probed** with one token when the timeout is over, and has all its tokens again with the first answer.
//! - **Free tokens don't expire.** Nobody has set time aside for them, so a sender uses them when it has nothing better: of a flow,
//!   tokens that expire go first. A packet whose token comes before its free one was used is sent once.
//! - **Free packets take their receiver's time**: its link is booked for them when the request to send comes, and tokens follow behind; by
//!   no more than a round trip, as they may have been lost.
//! - **A lost packet is admitted again** when all others have been: a receiver goes through a flow's missing packets in order, and
//!   begins anew when the answer to its last token should be there, a round trip and a token's lifetime later; while answers still
//!   come (packets wait in switches), not before they have ceased for as long.
//! - **Lost requests and acknowledgements**: a sender that has neither sent nor heard anything of a flow for one round trip more than
//!   the timeout repeats its request, later each time, and a receiver that has everything answers with the acknowledgement.
//! - **Ties** go to the flow that came first.
//!
//! Absent on purpose: deadlines (no scenario has them, so there is no earliest deadline first), and a fourth priority for
//! packets without a token, which the authors' program has but does not use.

pub mod header;

mod host;
mod policy;
mod receiver;
mod sender;
mod terms;

#[cfg(test)]
mod tests;

use node::{Balancing, Endpoint, Site};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Bytes, Problem};

use contract::{About, Family, HeaderFormat, Nature, NetworkView, Scheme, SwitchRequirements, headers_of};

pub use header::Header;
pub use policy::Policy;

/// What a scenario may set. The defaults are the paper's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Whom receivers give tokens to, and senders use tokens of.
    pub policy: Policy,
    /// Tokens that a flow has from the start; one bandwidth-delay product if unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub free_tokens: Option<Bytes>,
    /// Which flows have free tokens.
    pub free_tokens_for: FreeTokensFor,
    /// How long a sender may use a token, in transmission times of a full packet.
    pub token_lifetime: f64,
    /// So many unanswered tokens downgrade a source; one bandwidth-delay product if unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_window: Option<Bytes>,
    /// How long a source is downgraded, in round trips; after one more of silence a request is repeated.
    pub timeout: f64,
    /// Flows up to this length go before longer ones; one bandwidth-delay product if unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub short_flow: Option<Bytes>,
    /// Priority classes in use: 2 for control and data, 3 for control, short flows and the rest.
    pub priorities: u8,
}

/// Which flows have free tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FreeTokensFor {
    /// All.
    EveryFlow,
    /// Those that need no other, as in the authors' program.
    ShortFlows,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            policy: Policy::Srpt,
            free_tokens: None,
            free_tokens_for: FreeTokensFor::EveryFlow,
            token_lifetime: 1.5,
            token_window: None,
            timeout: 3.0,
            short_flow: None,
            priorities: 3,
        }
    }
}

impl Scheme for Config {
    fn about(&self) -> About {
        About {
            title: "pHost: distributed near-optimal datacenter transport over commodity network fabric",
            source: "Gao, Narayan, Kumar, Agarwal, Ratnasamy, Shenker: pHost, CoNEXT 2015",
            summary: "Receivers hand out a token each packet time to the flow that they like best, senders use those that they like best.",
            needs: "hosts: flow sizes known, timers of a packet's transmission time; switches: 2 or 3 strict priorities, packet spraying",
        }
    }

    fn nature(&self) -> Nature {
        Nature::of_hosts(Family::Proactive)
    }

    fn headers(&self) -> &'static dyn HeaderFormat {
        headers_of::<Header>()
    }

    fn check(&self) -> Result<(), Problem> {
        let problem = |key: &str, message: String| Err(Problem::new(key, message));
        if !(1.0..=1_000.0).contains(&self.token_lifetime) {
            let message = format!(
                "{} is not between 1 (a token would expire behind a single packet) and 1000",
                self.token_lifetime
            );
            return problem("token_lifetime", message);
        }
        if !(1.0..=1_000.0).contains(&self.timeout) {
            return problem("timeout", format!("{} is not between 1 (no answer can be sooner) and 1000", self.timeout));
        }
        if !(2..=3).contains(&self.priorities) {
            return problem("priorities", format!("{} is neither 2 nor 3", self.priorities));
        }
        if self.priorities == 2 && self.short_flow.is_some() {
            return problem("short_flow", "has no effect with 2 priorities; delete one".into());
        }
        if self.token_window == Some(Bytes(0)) {
            return problem("token_window", "a window of 0 admits nothing; leave it out for 1 BDP".into());
        }
        if let Some(free) = self.free_tokens.filter(|free| free.get() > 1 << 30) {
            return problem("free_tokens", format!("{free} is more than sensible: at most 1GiB"));
        }
        Ok(())
    }

    fn endpoint(&self, site: &Site, _: &NetworkView) -> Box<dyn Endpoint> {
        Box::new(host::Phost::new(terms::Params::new(self, site)))
    }

    fn requirements(&self, _: &Site) -> SwitchRequirements {
        SwitchRequirements::only(Balancing::Spray)
    }
}
