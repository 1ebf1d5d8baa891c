//! `tenants.toml`: who shares a device's link, and how. The keys are those of a scenario's `[[entity]]` and `sharing`,
//! and two more: `match` says which packets belong to a tenant, as `traffic` and `hosts` do in a scenario, and `[link]`
//! describes the device's link, as `fabric` does there.

use std::collections::BTreeMap;

use catalogue::{Sharing, Transport};
use contract::CongestionSignal;
use contract::sharing::Position;
use node::Marking;
use scenario::{Each, RequestSpec};
use serde::{Deserialize, Serialize};
use sharing::aq::gap::LIMIT_MAX;
use sharing::aq::{Config, WorkConserving};
use units::{Bytes, Duration, Problem, Rate};

use crate::matching::{Kind, Matches, Ports};
use crate::word::{RATE_MAX, RATE_MIN};

/// Most tenants of a device.
pub const TENANTS_MAX: usize = 1 << 20;
/// Most states of a device: a flow of a tenant with `each = "flow"` has one.
pub const STATES_MAX: u64 = 1 << 24;

/// The longest round trip.
pub const RTT_MAX: Duration = Duration::from_ms(10_000);

/// A whole file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tenants {
    /// The link that tenants share.
    pub link: Link,
    /// Settings of Augmented Queue: `sharing = { aq = { ... } }`. Default: `"aq"`.
    #[serde(default = "plain_aq")]
    pub sharing: Sharing,
    /// The tenants.
    #[serde(default)]
    pub entity: Vec<Tenant>,
}

/// The link behind a device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// What all tenants may have together, in each direction.
    pub capacity: Rate,
    /// The longest round trip of their packets while nothing queues. Default: what the kernel has measured of the
    /// device's own TCP connections, else 1 ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rtt: Option<Duration>,
    /// What the physical queue behind the device holds. Tenants' limits divide it, as far as their congestion controls
    /// don't need more. Default: 1,000 packets of 1,514 bytes, as `pfifo_fast` and most drivers have.
    #[serde(default = "thousand_packets")]
    pub queue: Bytes,
    /// The least retransmission timeout of senders. Default: that of this machine (`net.ipv4.tcp_rto_min_us`), else 200
    /// ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Duration>,
    /// A full packet on the wire. Default: 1,514 bytes.
    #[serde(default = "ethernet")]
    pub mtu: Bytes,
    /// The most bytes that arrive at once: the kernel hands over packets of many segments. Default: 64 KiB.
    #[serde(default = "segments")]
    pub burst: Bytes,
}

/// A tenant: an entity of the paper.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tenant {
    /// Its name in tables.
    pub name: String,
    /// What its packets are told by.
    #[serde(rename = "match")]
    pub matches: Matches,
    /// `flow`: each of its flows has an AQ with the requested share, `flows` of them; flows are spread by hash.
    #[serde(default)]
    pub each: Each,
    /// With `each = "flow"`: how many AQs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flows: Option<u32>,
    /// The congestion control of its senders, as a scenario names it. It decides the feedback where none is given, and
    /// `simulate` uses it. Default: `cubic`.
    #[serde(default = "cubic")]
    pub transport: Transport,
    /// How many senders `simulate` gives it. Default: 4.
    #[serde(default = "four")]
    pub senders: u32,
    /// What its congestion control listens to. Default: marks with a derived threshold for `dctcp`, else drops.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feedback: Option<CongestionSignal>,
    /// Whether it may have what others leave idle, under `sharing.aq.work_conserving`. Default: true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work_conserving: Option<bool>,
    /// What it asks for: once at `egress`, what leaves by the device, or once at `ingress`, what comes in by it, or
    /// both.
    pub request: Vec<RequestSpec>,
}

fn plain_aq() -> Sharing {
    Sharing::Aq(Config::default())
}

fn thousand_packets() -> Bytes {
    Bytes(1_514_000)
}

fn ethernet() -> Bytes {
    Bytes(1_514)
}

fn segments() -> Bytes {
    Bytes(65_536)
}

fn cubic() -> Transport {
    Transport::named("cubic").unwrap_or_default()
}

fn four() -> u32 {
    4
}

/// Signs of a message about a malformed file.
const MESSAGE_MAX: usize = 500;

/// Reads a file's text; `source` is its name in errors.
pub fn read(text: &str, source: &str) -> Result<Tenants, String> {
    read_with(text, source, std::iter::empty())
}

/// Reads a file's text to which tenants have joined; a text to which any has need not have one itself.
pub fn read_with(text: &str, source: &str, joined: impl Iterator<Item = Tenant>) -> Result<Tenants, String> {
    let mut tenants: Tenants = toml::from_str(text).map_err(|error| {
        let line = error.span().and_then(|span| text.get(..span.start)).map(|before| before.matches('\n').count() + 1);
        let place = line.map_or_else(|| source.to_owned(), |line| format!("{source}:{line}"));
        // A message may quote a value of any length.
        let message: String = error.message().chars().take(MESSAGE_MAX).collect();
        format!("{place}: {message}")
    })?;
    tenants.entity.extend(joined);
    tenants.check().map_err(|problem| format!("{source}: {problem}"))?;
    Ok(tenants)
}

impl Tenants {
    /// The settings of Augmented Queue.
    pub fn config(&self) -> &Config {
        static DEFAULT: std::sync::LazyLock<Config> = std::sync::LazyLock::new(Config::default);
        match &self.sharing {
            Sharing::Aq(config) => config,
            _ => &DEFAULT,
        }
    }

    /// Whether rates follow use, so that a process must re-divide them.
    pub fn divides(&self) -> bool {
        self.config().work_conserving.is_some_and(WorkConserving::lends)
    }

    /// The positions at which anything is asked.
    pub fn positions(&self) -> Vec<Position> {
        let asked = |&position: &Position| {
            self.entity.iter().any(|tenant| tenant.request.iter().any(|request| request.position == position))
        };
        [Position::Egress, Position::Ingress].into_iter().filter(asked).collect()
    }

    /// Checks beyond the types.
    pub(crate) fn check(&self) -> Result<(), Problem> {
        let config = match &self.sharing {
            Sharing::Aq(config) => config,
            other => {
                let message = format!("\"{}\" is a simulator's; a kernel has \"aq\"", other.name());
                return Err(Problem::new("sharing", message));
            }
        };
        self.sharing.check().map_err(|problem| problem.under("sharing"))?;
        if config.work_conserving == Some(WorkConserving::Bypass) {
            let message = "can't see a kernel's queue; use { reallocate = { period = \"100ms\", headroom = 0.1 } }";
            return Err(Problem::new("sharing.aq.work_conserving", format!("\"bypass\" {message}")));
        }
        if config.idle_after.is_some_and(|idle| idle > Duration::ZERO) {
            let message = "has no effect: in a kernel all weights count; work_conserving lends what is idle";
            return Err(Problem::new("sharing.aq.idle_after", message));
        }
        self.link.check().map_err(|problem| problem.under("link"))?;
        if self.entity.is_empty() {
            return Err(Problem::new("entity", "there is none; write at least one [[entity]]"));
        }
        if self.entity.len() >= TENANTS_MAX {
            return Err(Problem::new("entity", format!("{} are too many; at most {TENANTS_MAX}", self.entity.len())));
        }
        let mut names = std::collections::BTreeSet::new();
        let mut states = 1;
        for (index, tenant) in self.entity.iter().enumerate() {
            tenant.check().map_err(|problem| problem.under(format!("entity[{index}]")))?;
            if !names.insert(&tenant.name) {
                return Err(Problem::new(
                    format!("entity[{index}].name"),
                    format!("\"{}\" is there twice", tenant.name),
                ));
            }
            states += u64::from(tenant.states());
        }
        if states > STATES_MAX {
            let message = format!("all have {states} AQs together; a device has at most {STATES_MAX}");
            return Err(Problem::new("entity", message));
        }
        self.positions().into_iter().try_for_each(|position| self.check_matches(position))
    }

    /// No packet may be two tenants' by the same entry of one kind, at a position where both ask.
    fn check_matches(&self, position: Position) -> Result<(), Problem> {
        let asks = |(_, tenant): &(usize, &Tenant)| tenant.request.iter().any(|request| request.position == position);
        let mut owners: BTreeMap<(Kind, String), &str> = BTreeMap::new();
        let mut ranges = Vec::new();
        for (index, tenant) in self.entity.iter().enumerate().filter(asks) {
            let matches = &tenant.matches;
            for (kind, entry) in matches.entries() {
                if let Some(other) = owners.insert((kind, entry.clone()), &tenant.name)
                    && other != tenant.name
                {
                    let message = format!("{entry} is \"{other}\"'s too; a packet has one tenant");
                    return Err(Problem::new(format!("entity[{index}].match.{}", kind.key()), message));
                }
            }
            ranges.extend(matches.ports.iter().map(|&ports| (Kind::Port, ports, index)));
            ranges.extend(matches.source_ports.iter().map(|&ports| (Kind::SourcePort, ports, index)));
        }
        ranges.sort_unstable();
        // The range that reaches furthest of those before.
        let mut furthest: Option<(Kind, Ports, usize)> = None;
        for (kind, ports, index) in ranges {
            match furthest {
                Some((same, before, other)) if same == kind && before.last() >= ports.first() => {
                    if other != index {
                        let (later, earlier) = (index.max(other), &self.entity[index.min(other)].name);
                        let message = format!(
                            "port {} is \"{earlier}\"'s too ({before} and {ports}); a packet has one tenant",
                            ports.first()
                        );
                        return Err(Problem::new(format!("entity[{later}].match.{}", kind.key()), message));
                    }
                    if ports.last() > before.last() {
                        furthest = Some((kind, ports, index));
                    }
                }
                _ => furthest = Some((kind, ports, index)),
            }
        }
        Ok(())
    }
}

impl Link {
    /// A link of a rate, all else by default.
    pub fn of(capacity: Rate) -> Link {
        let (queue, mtu, burst) = (thousand_packets(), ethernet(), segments());
        Link { capacity, rtt: None, queue, timeout: None, mtu, burst }
    }

    fn check(&self) -> Result<(), Problem> {
        if !(RATE_MIN..=RATE_MAX).contains(&self.capacity) {
            let message = format!("{} is not from {RATE_MIN} to {RATE_MAX}", self.capacity);
            return Err(Problem::new("capacity", message));
        }
        if let Some(rtt) = self.rtt.filter(|&rtt| rtt == Duration::ZERO || rtt > RTT_MAX) {
            return Err(Problem::new("rtt", format!("{rtt} is not above 0 and at most {RTT_MAX}")));
        }
        if self.mtu.get() < 64 || self.mtu > self.burst {
            let message = format!("{} is not at least 64 bytes and at most the burst, {}", self.mtu, self.burst);
            return Err(Problem::new("mtu", message));
        }
        if self.burst > self.queue || self.queue > LIMIT_MAX {
            let message = format!("{} is not at least the burst, {}, and at most {LIMIT_MAX}", self.queue, self.burst);
            return Err(Problem::new("queue", message));
        }
        Ok(())
    }
}

impl Tenant {
    /// A tenant that matches nothing and asks for nothing yet, all else by default.
    pub fn named(name: &str) -> Tenant {
        Tenant {
            name: name.to_owned(),
            matches: Matches::default(),
            each: Each::default(),
            flows: None,
            transport: cubic(),
            senders: four(),
            feedback: None,
            work_conserving: None,
            request: Vec::new(),
        }
    }

    /// How many AQs it has at each position.
    pub fn states(&self) -> u32 {
        if self.each == Each::Flow { self.flows.unwrap_or(1) } else { 1 }
    }

    /// The feedback of its AQ, and whether the threshold is to be derived.
    pub fn signal(&self) -> (CongestionSignal, bool) {
        let any = CongestionSignal::Ecn(Marking::Step { threshold: Bytes(u64::MAX) });
        match self.feedback {
            Some(given) => (given, false),
            None if self.transport.name() == "dctcp" => (any, true),
            None => (CongestionSignal::Drop, false),
        }
    }

    fn check(&self) -> Result<(), Problem> {
        let printable = |name: &str| !name.is_empty() && name.len() <= 64 && !name.contains(|c: char| c.is_control());
        if !printable(&self.name) || self.name.starts_with('(') {
            return Err(Problem::new("name", "must be 1 to 64 printable signs and not begin with a bracket"));
        }
        if self.matches.is_empty() {
            return Err(Problem::new("match", "matches nothing; name cgroups, marks, prefixes or ports"));
        }
        if !self.matches.portless.is_empty() && self.matches.only_portless() {
            let message = "says whose packets are that should have been told by ports; name ports or another match too";
            return Err(Problem::new("match.portless", message));
        }
        if self.matches.mark.contains(&0) {
            return Err(Problem::new("match.mark", "0 is no mark: packets without one have it"));
        }
        if self.matches.vlan.iter().any(|&id| !(1..=4094).contains(&id)) {
            return Err(Problem::new("match.vlan", "a VLAN has an id from 1 to 4094"));
        }
        match (self.each, self.flows) {
            (Each::Host, _) => {
                return Err(Problem::new("each", "\"host\" is a simulator's; write a tenant for each prefix"));
            }
            (Each::Flow, None) => return Err(Problem::new("flows", "is needed with each = \"flow\": how many AQs")),
            (Each::Flow, Some(0)) => return Err(Problem::new("flows", "must be at least 1")),
            (Each::Entity, Some(_)) => return Err(Problem::new("flows", "has an effect only with each = \"flow\"")),
            _ => {}
        }
        if self.senders == 0 || self.senders > 1_000 {
            return Err(Problem::new("senders", format!("{} is not from 1 to 1000", self.senders)));
        }
        if let Some(CongestionSignal::Ecn(Marking::Ramp { .. } | Marking::GentleRamp { .. })) = self.feedback {
            return Err(Problem::new(
                "feedback.ecn",
                "a kernel's AQ marks by a step: { step = { threshold = \"1MB\" } }",
            ));
        }
        if self.feedback == Some(CongestionSignal::Delay) {
            let message = "\"delay\" has no effect: no congestion control in a kernel reads virtual delays";
            return Err(Problem::new("feedback", message));
        }
        if self.request.is_empty() {
            return Err(Problem::new("request", "asks for nothing; without a request, leave the tenant out"));
        }
        for (index, request) in self.request.iter().enumerate() {
            let key = format!("request[{index}]");
            if request.link.is_some() {
                return Err(Problem::new(format!("{key}.link"), "has no effect: the link is the device's"));
            }
            if self.request[..index].iter().any(|other| other.position == request.position) {
                let message = format!("asks at {} again; once is enough", request.position.name());
                return Err(Problem::new(format!("{key}.position"), message));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
