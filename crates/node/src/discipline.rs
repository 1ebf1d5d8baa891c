use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Bytes, Rate};

/// How a switch chooses among the shortest paths.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Balancing {
    /// One path a flow, by [`path_hash`](crate::balance::path_hash) under the switch's seed (hash-threshold, RFC 2992);
    /// the hash is published, so that any switch can compute any other's choice.
    Ecmp,
    /// Uniformly random for each packet.
    Spray,
    /// Each packet takes the next port in turn, from a random start for each destination switch.
    RoundRobin,
    /// DRILL (SIGCOMM 2017): the shortest of `samples` random queues and of the `memory` best of last time.
    Drill {
        /// Queues drawn anew for each packet.
        samples: u8,
        /// Best queues remembered from the last packet.
        memory: u8,
    },
    /// ECMP whose hash favours the first ports: port i of n has weight `skew`^i. 1.0 is fair; smaller is a more
    /// polarised network (Pyrrha, section 2.2).
    Skewed {
        /// Ratio of the weights of neighbouring ports, above 0 and at most 1.
        skew: f64,
    },
}

impl Balancing {
    /// Whether packet and switch alone decide, so that anyone can compute the choice.
    #[inline]
    pub const fn by_hash(self) -> bool {
        matches!(self, Balancing::Ecmp | Balancing::Skewed { .. })
    }
}

/// When a switch marks an ECN-capable packet, by the length of the queue that it joins.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Marking {
    /// Always above a threshold (DCTCP, RFC 8257 section 3.1).
    Step {
        /// Queue length from which every packet is marked.
        threshold: Bytes,
    },
    /// With a probability that grows from 0 at `min` to `probability_max` at `max`, and always above (RED on the
    /// instantaneous queue, as DCQCN configures it).
    Ramp {
        /// Queue length at which marking begins.
        min: Bytes,
        /// Queue length at which the ramp ends.
        max: Bytes,
        /// Probability at the ramp's end, 0 to 1.
        probability_max: f64,
        /// If set, the lengths are those for a link of this rate, and for others in proportion to theirs. Of physical queues
        /// alone.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        per: Option<Rate>,
    },
    /// As a ramp up to `max`, and from there on ever more, to always at twice `max` ("gentle" RED, ns-3's default). Of physical
    /// queues alone.
    GentleRamp {
        /// Queue length at which marking begins.
        min: Bytes,
        /// Queue length at which the first ramp ends.
        max: Bytes,
        /// Probability there, 0 to 1.
        probability_max: f64,
    },
}

/// When packets that are not ECN-capable are lost, though there is room (RFC 3168 section 5).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EarlyDrop {
    /// Where packets would be marked.
    pub at: Marking,
    /// Whether all that waits at the port counts, and not only what waits in the packet's class.
    pub by_port: bool,
}

/// When a packet is marked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MarkAt {
    /// When it joins its queue, by the length with it.
    #[default]
    Arrival,
    /// When it leaves, by what it leaves behind: the mark is younger by the time in the queue.
    Departure,
}
