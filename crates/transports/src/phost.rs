//! pHost: distributed near-optimal datacenter transport over commodity network fabric (Gao, Narayan, Kumar, Agarwal,
//! Ratnasamy, Shenker, CoNEXT 2015). The network sprays packets and has a few priorities; hosts decide everything else.
//!
//! A sender announces a flow to its receiver in a *request to send*. A receiver hands out one *token* in each
//! transmission time of a packet, to the flow that its policy prefers. A sender with tokens of several flows uses those
//! of the flow that its policy prefers, within 1.5 packet times (section 3). So hosts are matched packet by packet,
//! without a central scheduler. Two mechanisms keep that from wasting links: a flow starts with a bandwidth-delay
//! product of *free tokens*, so that it need not wait for a round trip; and a receiver *downgrades* a source that
//! leaves a bandwidth-delay product of tokens unanswered: others get its tokens for three round trips.
//!
//! - [`header`]: what packets carry;
//! - `params`: values derived from configuration and site; `policy`: which flows hosts prefer;
//! - `sender`, `receiver`, `host`: both sides on one NIC.
//!
//! # Decisions
//!
//! - **Unanswered tokens** are recognised by number: data carries its token's number, and a token counts as unanswered
//!   until it or a later one is answered. So expired and lost tokens stop counting when a later one is answered.
//! - **A downgraded source is probed** with one token when the timeout is over, and has all its tokens again with the
//!   first answer.
//! - **Free tokens don't expire.** No receiver has reserved time for them, so a sender uses them last: of a flow,
//!   tokens that expire go first. A packet whose token comes before its free one was used is sent once.
//! - **Free packets take their receiver's time**: its link is booked for them when the request to send comes, and
//!   tokens follow behind; by no more than a round trip, as they may have been lost.
//! - **A lost packet is admitted again** when all others have been: a receiver goes through a flow's missing packets in
//!   order, and begins anew when the answer to its last token should be there, a round trip and a token's lifetime
//!   later; while answers still come (packets wait in switches), not before they have ceased for as long.
//! - **Lost requests and acknowledgements**: a sender that has neither sent nor heard anything of a flow for one round
//!   trip more than the timeout repeats its request, later each time, and a receiver that has everything answers with
//!   the acknowledgement.
//! - **Ties** go to the flow that came first.
//!
//! Deliberately absent: deadlines (no scenario has them, so there is no earliest deadline first), and a fourth priority
//! for packets without a token, which the authors' program has but does not use.

pub mod header;

mod host;
mod params;
mod policy;
mod receiver;
mod sender;

#[cfg(test)]
mod tests;

use node::{Balancing, Endpoint, EndpointParams};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Bytes, Problem};

use contract::{About, Capabilities, Family, HeaderFormat, NetworkView, Scheme, SwitchRequirements, Timer, headers_of};

pub use header::Header;
pub use policy::Policy;

/// Configuration of pHost. The defaults are the paper's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Which flows receivers give tokens to, and which flows senders use tokens of. Default: `srpt`.
    pub policy: Policy,
    /// Free tokens of a flow, in bytes. Default: one bandwidth-delay product.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub free_tokens: Option<Bytes>,
    /// Which flows have free tokens. Default: `every_flow`.
    pub free_tokens_for: FreeTokensFor,
    /// How long a sender may use a token, in transmission times of a full packet. Default: 1.5.
    pub token_lifetime: f64,
    /// Unanswered tokens, in bytes, that downgrade a source. Default: one bandwidth-delay product.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_window: Option<Bytes>,
    /// How long a source is downgraded, in round trips. After one more round trip of silence a request is repeated.
    /// Default: 3.
    pub timeout: f64,
    /// Flows up to this length have priority over longer ones. Default: one bandwidth-delay product.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub short_flow: Option<Bytes>,
    /// Number of priority classes: 2 for control and data, 3 for control, short flows and the rest. Default: 3.
    pub priorities: u8,
}

/// Which flows have free tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FreeTokensFor {
    /// All.
    EveryFlow,
    /// Those short enough to need no other tokens, as in the authors' program.
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
            summary: "A receiver gives one token each packet time, to the flow that it prefers (by default the \
                      shortest); senders spend tokens in the same order.",
            needs: "hosts: flow sizes known in advance, timers as fine as a packet's transmission time; switches: 2 \
                    or 3 strict priorities, packet spraying",
        }
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::of_hosts(Family::Proactive)
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
        if self.token_window == Some(Bytes(0)) {
            return problem("token_window", "with a window of 0 nothing would be sent; leave it out for 1 BDP".into());
        }
        if let Some(free) = self.free_tokens.filter(|free| free.get() > 1 << 30) {
            return problem("free_tokens", format!("{free} is too large; at most 1GiB"));
        }
        Ok(())
    }

    fn timers(&self, network: &NetworkView) -> Vec<Timer> {
        let silence = params::Params::new(self, &network.site).silence;
        let set = Some(silence).filter(|_| self.timeout != Config::default().timeout);
        vec![Timer::new("timeout", set, silence, "asks its receiver for tokens again")]
    }

    fn advice(&self) -> Vec<Problem> {
        let idle = self.priorities == 2 && self.short_flow.is_some();
        let message = "has no effect with 2 priorities; delete one of the two";
        idle.then(|| Problem::new("short_flow", message)).into_iter().collect()
    }

    fn endpoint(&self, site: &EndpointParams, _: &NetworkView) -> Box<dyn Endpoint> {
        Box::new(host::Phost::new(params::Params::new(self, site)))
    }

    fn requirements(&self, _: &EndpointParams) -> SwitchRequirements {
        SwitchRequirements::only(Balancing::Spray)
    }
}
