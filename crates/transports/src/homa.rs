//! Homa: receiver-driven, with network priorities that receivers choose (Montazeri, Li, Alizadeh, Ousterhout: Homa: A
//! Receiver-Driven Low-Latency Transport Protocol Using Network Priorities, SIGCOMM 2018).
//!
//! A sender sends the first RTTbytes of a message at once (*unscheduled*). The receiver grants the rest, one packet for
//! each packet received, so that RTTbytes are in flight (`receiver`, sections 3.2 and 3.3). It grants to several
//! messages at a time, those with the fewest bytes missing (*overcommitment*, section 3.5), since a sender may be busy
//! with another message. Receivers divide the eight priorities by their recent traffic (`traffic`, section 3.4):
//! shorter messages' unscheduled packets go at higher ones, and each message with grants has a level of its own below.
//! Senders too prefer the message with the fewest bytes left (`sender`). [`aeolus`] changes the first round trip.
//!
//! # Decisions
//!
//! - **Messages, not RPCs.** Messages here go one way. A receiver that has a whole message reports it (DONE). That
//!   packet stands for the RPC's response, which in Homa tells a client that its request has arrived. Where a client
//!   would ask for the response again, a sender that has heard nothing for `resend_after` and two round trips asks what
//!   is there (PROBE); a receiver that knows nothing of the message asks for all of its first RTTbytes (RESEND), one
//!   that has finished it says DONE again. The incast optimisation (section 3.6) needs RPCs, of which a client marks
//!   the responses: it is absent, and so is re-execution: receivers remember what they have finished, and deliver once.
//! - **Packets.** RTTbytes are rounded up to full packets, and grants are of whole packets: one that begins in them is
//!   sent whole.
//! - **Which messages are active**: one a sender (as in the authors' simulator), those with the fewest bytes missing
//!   that are not wholly granted; ties go to the older message. A message that is passed by a shorter one keeps what it
//!   was granted.
//! - **Cutoffs** are told in each control packet to a sender. Until a receiver has told any, a sender assumes those of
//!   its own host's traffic; a host that has seen none has all unscheduled packets at the highest level, since lower
//!   ones may starve beneath what others schedule. Recent traffic is some thousand messages.
//! - **The level of a scheduled packet** is that of its latest grant: it may change while packets are on their way.
//! - **Lost packets.** A receiver that has not got what must be on its way for `resend_after` asks for each gap of it
//!   (the paper's RESEND names one range; all gaps together are at most RTTbytes). They come at the message's level. A
//!   lost grant is made up for by the next, and a RESEND says what has been granted too. The paper says "a few
//!   milliseconds" of the timeout: 2 ms.
//!
//! Deliberately absent: RPCs and what depends on them (above), the cost of software (the paper's limit of NIC queues:
//! here the NIC pulls), and measuring RTTbytes (it follows from the fabric).

pub mod aeolus;
pub mod header;

mod host;
mod params;
mod receiver;
mod sender;
mod traffic;

#[cfg(test)]
mod tests;

use node::{Balancing, Endpoint, EndpointParams};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Bytes, Duration, Problem};

use contract::{About, Capabilities, Family, HeaderFormat, NetworkView, Scheme, SwitchRequirements, Timer, headers_of};
use params::Params;

pub use header::Header;
pub use traffic::Levels;

/// Configuration of Homa. The defaults are the paper's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Message bytes that a sender sends without grants, and that receivers keep in flight (RTTbytes). Default: what
    /// fits into the longest round trip of a data and a control packet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rtt_bytes: Option<Bytes>,
    /// Number of priority classes. Default: 8.
    pub priorities: u8,
    /// Number of priority classes for unscheduled packets. Default: in proportion to the share of unscheduled bytes
    /// that each receiver measures.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unscheduled_levels: Option<u8>,
    /// The largest message of each unscheduled priority class except for the last. Default: measured by each receiver.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cutoffs: Vec<Bytes>,
    /// Number of messages that a receiver grants to at one time. Default: the number of scheduled priority classes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overcommitment: Option<u8>,
    /// Silence after which a receiver asks again for bytes in flight. Two round trips later, a sender asks whether its
    /// message is known. Default: 2ms, or as long as a round trip may take, if that is longer.
    #[schemars(extend("x-least" = "100ns"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resend_after: Option<Duration>,
    /// Whether the last RTTbytes of a message use the priority of a message with the remaining length, as in the
    /// authors' simulator. In the paper unscheduled packets use the priority of their message's length, and scheduled
    /// ones a lower one. Default: false.
    pub graduated: bool,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            rtt_bytes: None,
            priorities: 8,
            unscheduled_levels: None,
            cutoffs: Vec::new(),
            overcommitment: None,
            resend_after: None,
            graduated: false,
        }
    }
}

impl Config {
    /// The paper's "few milliseconds" (section 3.7), where a round trip is sure to be shorter.
    fn resend_after(&self, network: &NetworkView) -> Duration {
        network.timer(self.resend_after, Duration::from_ms(2))
    }
}

/// The action of a receiver when `resend_after` has passed.
const RESENDS: &str = "asks for all that should have come again";

impl Scheme for Config {
    fn about(&self) -> About {
        About {
            title: "Homa: receiver-driven transport using network priorities",
            source: "Montazeri, Li, Alizadeh, Ousterhout: Homa: A Receiver-Driven Low-Latency Transport Protocol Using \
                     Network Priorities, SIGCOMM 2018",
            summary: "Senders send the first bytes of a message at once; receivers grant the rest, to a few messages \
                      at a time, and choose priorities.",
            needs: "hosts: message lengths known in advance; switches: 8 strict priorities (2 at least), packet \
                    spraying, buffer for RTTbytes of many senders",
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
        if !(2..=8).contains(&self.priorities) {
            return problem("priorities", format!("{} is not between 2 and 8", self.priorities));
        }
        if self.rtt_bytes == Some(Bytes(0)) {
            return problem("rtt_bytes", "at 0 nothing would be sent; leave it out for one round trip".into());
        }
        let most = self.priorities - 1;
        if let Some(levels) = self.unscheduled_levels
            && !(1..=most).contains(&levels)
        {
            return problem(
                "unscheduled_levels",
                format!("{levels} is not between 1 and {most}, one less than priorities"),
            );
        }
        if self.cutoffs.len() >= usize::from(most) {
            let message = format!(
                "{} cutoffs make {} levels; at most {most} can be unscheduled",
                self.cutoffs.len(),
                self.cutoffs.len() + 1
            );
            return problem("cutoffs", message);
        }
        if self.cutoffs.windows(2).any(|two| two[0] >= two[1]) {
            return problem("cutoffs", "must rise: each cutoff larger than the one before".into());
        }
        if self.overcommitment == Some(0) {
            return problem("overcommitment", "at 0 nothing would be granted; write at least 1".into());
        }
        let sane = Duration::from_us(1)..=Duration::from_ms(1_000_000);
        if let Some(after) = self.resend_after.filter(|after| !sane.contains(after)) {
            return problem("resend_after", format!("{after} is not between 1us and 1000s"));
        }
        Ok(())
    }

    fn timers(&self, network: &NetworkView) -> Vec<Timer> {
        vec![Timer::new("resend_after", self.resend_after, self.resend_after(network), RESENDS)]
    }

    fn advice(&self) -> Vec<Problem> {
        let idle = !self.cutoffs.is_empty() && self.unscheduled_levels.is_some();
        let message = "has no effect beside cutoffs; delete one of the two";
        idle.then(|| Problem::new("unscheduled_levels", message)).into_iter().collect()
    }

    fn endpoint(&self, site: &EndpointParams, network: &NetworkView) -> Box<dyn Endpoint> {
        Box::new(host::Homa::new(Params::new(self, None, site, network)))
    }

    fn requirements(&self, _: &EndpointParams) -> SwitchRequirements {
        SwitchRequirements::only(Balancing::Spray)
    }
}
