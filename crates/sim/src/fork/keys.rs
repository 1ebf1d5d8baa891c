//! The keys that a fork may change: one table, for the check and for the page.

/// A key of a scenario, with all that is below it and has no entry of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    /// Without numbers of entries: `traffic.sizes`. Below `transport` and `flow_control` the scheme's name follows; the
    /// transport of a class stands under `transport`, too.
    pub key: &'static str,
    /// Whether it may change.
    pub says: Says,
}

impl Key {
    /// The table of the scenario in which it is.
    pub(crate) fn group(self) -> &'static str {
        self.key.split('.').next().unwrap_or_default()
    }
}

/// Whether a key may change in a fork.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Says {
    /// It may: what that means.
    Free(&'static str),
    /// It may not: why.
    Fixed(&'static str),
}

use Says::{Fixed, Free};

/// For settings of schemes without an entry of their own.
const OF_STATE: &str = "what hosts and switches keep for it follows from it, and would no longer fit";

const TIMEOUT: &str = "each timer that is set from then on";

/// All of them. Of several that fit, the longest counts.
pub const KEYS: &[Key] = &[
    key("name", Free("what tables and reports call the fork")),
    key("failure", Free("what fails, is repaired, loses packets or changes its rate from the checkpoint on")),
    key("reroute_delay", Free("for failures from the checkpoint on")),
    key("reroute_per_hop", Free("for failures from the checkpoint on")),
    key("reroute_compute_max", Free("for failures from the checkpoint on")),
    key("traffic", Free("which messages start from the checkpoint on; those before stay the same")),
    key("measure.end", Free("when the run ends")),
    key("measure.drain", Free("when the run ends")),
    key(
        "switch.buffer",
        Free("packets that wait stay; new ones find this room; not where a flow control keeps shares of it"),
    ),
    key("switch.overflow", Free("packets that find no room from then on")),
    key("switch.marking", Free("packets that are marked from then on")),
    key("switch.early_drop", Free("packets that come from then on")),
    key("switch.balancing", Free("each choice of a path from then on")),
    key("flow_control.pfc.alpha", Free("each comparison with the threshold from then on")),
    key("transport.TCP.initial_window", Free("messages that start from then on")),
    key("transport.TCP.rto_min", Free(TIMEOUT)),
    key("transport.TCP.rto_max", Free(TIMEOUT)),
    key("transport.TCP.clock_granularity", Free(TIMEOUT)),
    key("transport.RDMA.window", Free("each packet that may be sent from then on")),
    key("transport.RDMA.recovery.go_back_n.timeout", Free(TIMEOUT)),
    key("transport.RDMA.recovery.irn.rto_low", Free(TIMEOUT)),
    key("transport.RDMA.recovery.irn.rto_high", Free(TIMEOUT)),
    key("transport.RDMA.recovery.irn.few_packets", Free(TIMEOUT)),
    key(
        "seed",
        Fixed("messages before the checkpoint were drawn with it; all random streams go on from where they were"),
    ),
    key("transport", Fixed(OF_STATE)),
    key("transports", Fixed("transports from crates take no checkpoints")),
    key("flow_control", Fixed(OF_STATE)),
    key("measure", Fixed("tables have rows from before the checkpoint, which were recorded by it")),
    key("fabric", Fixed("nodes and links keep their state by it; a link's rate changes by a failure with a rate")),
    key("live", Fixed("a simulation does not read it")),
    key("decomposition", Fixed("a simulation does not read it")),
    key("host", Fixed("hosts keep packets, clocks and random times by it")),
    key("switch", Fixed("the state of switches and links follows from it")),
    key("switch.path_seed", Fixed("flows under way have paths by it")),
    key("link", Fixed("the state of links follows from it")),
    key("transmission_step", Fixed("transmitters keep their rate by it")),
    key("timing", Fixed("hosts and clocks keep what was drawn by it")),
    key("fast_forward", Fixed("a run that skips repetitions takes no checkpoints")),
    key("sharing", Fixed(OF_STATE)),
    key("entity", Fixed("nodes keep state by entity")),
    key("job", Fixed("ranks keep how far they have come in it")),
];

const fn key(key: &'static str, says: Says) -> Key {
    Key { key, says }
}

/// The transports that are TCP with a congestion control, and those that are RDMA with a rate control. Each family
/// has one stack.
pub const FAMILIES: [(&str, &[&str]); 2] = [
    ("TCP", &["newreno", "cubic", "dctcp", "bbr", "illinois", "swift"]),
    ("RDMA", &["rdma", "dcqcn", "hpcc", "timely"]),
];

/// The entry of a key such as `traffic[0].transport.dctcp.rto_min`.
pub(crate) fn of(key: &str) -> Key {
    let plain = key.split(['.', '[', ']']).filter(|part| !part.is_empty() && part.parse::<usize>().is_err());
    let mut parts: Vec<&str> = plain.collect();
    if let Some(place) = parts.iter().position(|part| matches!(*part, "transport" | "over")) {
        parts.drain(..place);
        parts[0] = "transport";
        let family = parts.get(1).and_then(|name| FAMILIES.iter().find(|of| of.1.contains(name)));
        if let Some((family, _)) = family {
            parts[1] = family;
        }
    }
    let fits = |of: &&Key| {
        let mut own = of.key.split('.');
        let mut given = parts.iter();
        own.all(|part| given.next() == Some(&part))
    };
    let best = KEYS.iter().filter(fits).max_by_key(|of| of.key.len());
    best.copied().unwrap_or(Key { key: "", says: Fixed("the state may follow from it") })
}
