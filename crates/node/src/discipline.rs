use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Bytes, Duration, Rate};

/// How a switch chooses among shortest paths.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Balancing {
    /// One path for each flow, chosen by a hash under the switch's seed (hash-threshold, RFC 2992). The hash is known,
    /// so any switch can compute any other switch's choice.
    Ecmp,
    /// A uniformly random port for each packet.
    Spray,
    /// The next port in turn for each packet, from a random start for each destination switch.
    RoundRobin,
    /// The next port in turn for each packet that comes over one link, whatever its destination, from a random start
    /// for each link.
    RoundRobinByLink,
    /// DRILL (SIGCOMM 2017): the shortest among `samples` randomly drawn queues and the `memory` best queues of the
    /// previous packet.
    Drill {
        /// Number of queues drawn for each packet.
        #[schemars(range(min = 1))]
        samples: u8,
        /// Number of best queues remembered from the previous packet.
        memory: u8,
    },
    /// Adaptive routing, as switches of RoCE networks do it: the port with the shortest queue, of equal ones a random
    /// one.
    Adaptive {
        /// A flow stays on its port until it has sent nothing for this long. Default: 0, a choice for each packet.
        #[serde(default)]
        flowlet: Duration,
    },
    /// ECMP with a skewed hash that favours the first ports: port i of n has weight `skew`^i. 1.0 is fair; lower values
    /// polarise the network more (Pyrrha, section 2.2).
    Skewed {
        /// Ratio of the weights of neighbouring ports, above 0 and at most 1.
        skew: f64,
    },
}

impl Balancing {
    /// Whether packet and switch seed alone decide, so that any node can compute the choice.
    #[inline]
    pub const fn by_hash(self) -> bool {
        matches!(self, Balancing::Ecmp | Balancing::Skewed { .. })
    }

    /// Whether a flow stays for a time on the port that its queue's length has chosen.
    #[inline]
    pub const fn by_flowlet(self) -> bool {
        matches!(self, Balancing::Adaptive { flowlet } if flowlet.ps() > 0)
    }
}

/// When a switch marks an ECN-capable packet, by the length of its queue.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema, crate::Saved)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Marking {
    /// Mark every packet above a threshold (DCTCP, RFC 8257 section 3.1).
    Step {
        /// Queue length from which every packet is marked.
        threshold: Bytes,
    },
    /// Mark with a probability that grows from 0 at `min` to `probability_max` at `max`, and every packet above (RED on
    /// the instantaneous queue, as DCQCN configures it).
    Ramp {
        /// Queue length at which marking begins.
        min: Bytes,
        /// Queue length at which the ramp ends.
        max: Bytes,
        /// Probability at the end of the ramp, 0 to 1.
        probability_max: f64,
        /// Link rate that `min` and `max` are meant for; other links scale them in proportion to their rate. Only for
        /// physical queues. Default: the lengths hold for every rate.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        per: Option<Rate>,
    },
    /// Like `ramp` up to `max`, then with a probability that grows further to 1 at twice `max` ("gentle" RED, ns-3's
    /// default). Only for physical queues.
    GentleRamp {
        /// Queue length at which marking begins.
        min: Bytes,
        /// Queue length at which the first ramp ends.
        max: Bytes,
        /// Probability at `max`, 0 to 1.
        probability_max: f64,
    },
}

/// When packets that are not ECN-capable are dropped early, although there is room (RFC 3168 section 5).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EarlyDrop {
    /// Queue lengths at which packets are dropped.
    pub at: Marking,
    /// Whether the length of all queues of the port counts, instead of the packet's class alone.
    pub by_port: bool,
}

/// When in its passage through a switch a packet is marked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MarkAt {
    /// When it joins its queue, by the queue length including the packet (default).
    #[default]
    Arrival,
    /// When it leaves its queue, by the length that remains. The signal is then fresher by the time spent in the queue.
    Departure,
}
