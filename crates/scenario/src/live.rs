//! How `clearway live` runs a scenario on the machine. A simulation reads none of it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::Problem;

/// How a live run uses the machine; a simulation does not read it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LiveSpec {
    /// How many times slower than real time the nodes live. Rates, delays and timers stay as the scenario says, and so
    /// do all times in the results: at 1000, a second of the machine is a millisecond of the network. Default: 1.
    pub dilation: u32,
    /// Threads that share the nodes. There are no more than the fabric has racks. Default: 1.
    pub workers: u32,
    /// What a thread does while nothing is due. Default: `poll`.
    pub wait: Wait,
    /// How much of the content of packets is written at the source and checked at the destination. Default: `all`.
    pub content: ContentCheck,
    /// What links consist of. Default: `memory`.
    pub links: LiveLinks,
}

/// What a thread does while nothing is due.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Wait {
    /// It looks again at once, and keeps a core busy: events are some 100 ns late.
    #[default]
    Poll,
    /// It sleeps, for machines that have other work: events are some 50 us late.
    Sleep,
}

/// How much of the content of packets is written and checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ContentCheck {
    /// Every byte.
    #[default]
    All,
    /// All bytes of one packet in 16.
    Sampled,
    /// Nothing: packets have no content. That all parts of each message arrive is checked nevertheless.
    None,
}

/// What links consist of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LiveLinks {
    /// Memory: a packet stays where it is and its place is passed on, from thread to thread by rings.
    #[default]
    Memory,
    /// UDP sockets on loopback, one a node: every packet passes the kernel at each hop. Needs `workers = 1`.
    Datagrams,
}

impl Default for LiveSpec {
    fn default() -> LiveSpec {
        LiveSpec {
            dilation: 1,
            workers: 1,
            wait: Wait::default(),
            content: ContentCheck::default(),
            links: LiveLinks::default(),
        }
    }
}

impl LiveSpec {
    /// More threads than any machine of today has cores.
    const WORKERS_MAX: u32 = 1024;

    pub(crate) fn is_default(&self) -> bool {
        *self == LiveSpec::default()
    }

    pub(crate) fn check(&self) -> Result<(), Problem> {
        if self.dilation == 0 {
            return Err(Problem::new("live.dilation", "0 is not at least 1, which is real time"));
        }
        if !(1..=Self::WORKERS_MAX).contains(&self.workers) {
            let message = format!("{} is not between 1 and {}", self.workers, Self::WORKERS_MAX);
            return Err(Problem::new("live.workers", message));
        }
        if self.links == LiveLinks::Datagrams && self.workers > 1 {
            let message = "one thread reads all sockets, so that links = \"datagrams\" needs 1; or write links = \
                           \"memory\"";
            return Err(Problem::new("live.workers", message));
        }
        Ok(())
    }
}
