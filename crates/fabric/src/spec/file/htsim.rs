use units::{Duration, NodeId, Problem, Rate};

use super::{Line, Lines};
use crate::spec::switches;
use crate::{Builder, Fabric};

/// htsim's `.topo`: `Nodes`, `Tiers` (2 or 3) and `Podsize`, then a block `Tier N` for the top-of-rack switches (0),
/// the next level (1) and, with three tiers, the cores (2). Keys ignore case. In each block: `Radix_Down`, `Radix_Up`
/// (not in the last), `Downlink_Speed_Gbps`, `Downlink_Latency_ns`, and optionally `Switch_Latency_ns`, `Bundle`
/// (parallel cables on each downlink) and `Oversubscribed`.
///
/// The radices define the structure; `Oversubscribed` follows from them and is only checked. The l-th uplink of the
/// j-th of A aggregation switches of a pod goes to core j + A * l, as in htsim. Queue sizes are refused: they are
/// settings of the switches here and would be ignored.
pub(super) fn parse(lines: Lines<'_>, switch_delay: Duration) -> Result<Fabric, Problem> {
    let mut head = Head::default();
    let mut tiers = [Tier::default(), Tier::default(), Tier::default()];
    let mut current: Option<usize> = None;
    for mut line in lines.iter() {
        let key = line.word("a key")?.to_ascii_lowercase();
        let tier = current.map(|index| &mut tiers[index]);
        match (key.as_str(), tier) {
            ("nodes", _) => head.nodes = line.count("Nodes", 2..=COUNT_MAX)?,
            ("tiers", _) => head.tiers = line.count("Tiers", 2..=3)? as usize,
            ("podsize", _) => head.pod_size = line.count("Podsize", 1..=COUNT_MAX)?,
            ("tier", _) => current = Some(line.count("Tier", 0..=2)? as usize),
            ("radix_down", Some(tier)) => set(&mut tier.down, line.count("Radix_Down", 1..=COUNT_MAX)?, &line)?,
            ("radix_up", Some(tier)) => set(&mut tier.up, line.count("Radix_Up", 1..=COUNT_MAX)?, &line)?,
            ("bundle", Some(tier)) => set(&mut tier.bundle, line.count("Bundle", 1..=COUNT_MAX)?, &line)?,
            ("oversubscribed", Some(tier)) => {
                set(&mut tier.oversubscribed, line.count("Oversubscribed", 1..=COUNT_MAX)?, &line)?;
            }
            ("downlink_speed_gbps", Some(tier)) => {
                let gbps = line.count("Downlink_Speed_Gbps", 1..=1_000_000)?;
                set(&mut tier.rate, Rate::from_gbps(gbps.into()), &line)?;
            }
            ("downlink_latency_ns", Some(tier)) => {
                let ns = line.count("Downlink_Latency_ns", 0..=1_000_000_000)?;
                set(&mut tier.propagation, Duration::from_ns(ns.into()), &line)?;
            }
            ("switch_latency_ns", Some(tier)) => {
                let ns = line.count("Switch_Latency_ns", 0..=1_000_000_000)?;
                set(&mut tier.delay, Duration::from_ns(ns.into()), &line)?;
            }
            ("queue_up" | "queue_down", Some(_)) => {
                return Err(line.error("queue sizes belong to the scenario's switch settings; remove this line"));
            }
            (other, _) if KEYS.contains(&other) => {
                return Err(line.error(&format!("\"{other}\" comes before any \"Tier\" line")));
            }
            (other, _) => return Err(line.unknown("key", other, &KEYS)),
        }
        line.end()?;
    }
    Shape::of(&head, tiers)?.build(switch_delay)
}

const COUNT_MAX: u32 = 1 << 21;
const KEYS: [&str; 11] = [
    "nodes",
    "tiers",
    "podsize",
    "tier",
    "radix_down",
    "radix_up",
    "bundle",
    "oversubscribed",
    "downlink_speed_gbps",
    "downlink_latency_ns",
    "switch_latency_ns",
];

#[derive(Default)]
struct Head {
    nodes: u32,
    tiers: usize,
    pod_size: u32,
}

#[derive(Default, Clone, Copy)]
struct Tier {
    down: Option<u32>,
    up: Option<u32>,
    bundle: Option<u32>,
    oversubscribed: Option<u32>,
    rate: Option<Rate>,
    propagation: Option<Duration>,
    delay: Option<Duration>,
}

fn set<T>(slot: &mut Option<T>, value: T, line: &Line<'_>) -> Result<(), Problem> {
    match slot.replace(value) {
        None => Ok(()),
        Some(_) => Err(line.error("this tier already has that key")),
    }
}

/// The dimensions of the network that the file describes.
struct Shape {
    hosts: u32,
    hosts_per_tor: u32,
    tors_per_pod: u32,
    aggs_per_pod: u32,
    cores: u32,
    /// By tier: number of parallel cables, their rate and propagation delay, and the delay of the tier's switches.
    down: Vec<(u32, Rate, Duration, Option<Duration>)>,
}

impl Shape {
    fn of(head: &Head, tiers: [Tier; 3]) -> Result<Shape, Problem> {
        let fail = |message: String| Err(Problem::new("", message));
        for (value, key) in [(head.nodes, "Nodes"), (head.tiers as u32, "Tiers"), (head.pod_size, "Podsize")] {
            if value == 0 {
                return fail(format!("\"{key}\" is missing"));
            }
        }
        let tiers = &tiers[..head.tiers];
        let need = |tier: usize, value: Option<u32>, key: &str| {
            value.ok_or_else(|| Problem::new("", format!("tier {tier} has no \"{key}\"")))
        };
        let mut down = Vec::new();
        for (index, tier) in tiers.iter().enumerate() {
            let (Some(rate), Some(propagation)) = (tier.rate, tier.propagation) else {
                return fail(format!("tier {index} needs \"Downlink_Speed_Gbps\" and \"Downlink_Latency_ns\""));
            };
            down.push((tier.bundle.unwrap_or(1), rate, propagation, tier.delay));
            let above = tiers.get(index + 1).and_then(|above| above.rate).map(Rate::bps);
            if let (Some(ratio), Some(above)) = (tier.oversubscribed, above) {
                let below = u128::from(need(index, tier.down, "Radix_Down")?) * u128::from(rate.bps());
                let above = u128::from(need(index, tier.up, "Radix_Up")?) * u128::from(above);
                if below != above * u128::from(ratio) {
                    return fail(format!(
                        "tier {index} says Oversubscribed {ratio}, but its links give {below}:{above}"
                    ));
                }
            }
        }
        let whole = |what: &str, count: u32, part: u32| match count.is_multiple_of(part) {
            true => Ok(count / part),
            false => Err(Problem::new("", format!("{count} {what} is not a multiple of {part}"))),
        };
        if down[0].0 != 1 {
            return fail("hosts have one link, so \"Bundle\" of tier 0 must be 1".into());
        }
        let hosts_per_tor = need(0, tiers[0].down, "Radix_Down")?;
        let pods = whole("Nodes in pods of Podsize", head.nodes, head.pod_size)?;
        let tors_per_pod = whole("Podsize under switches of Radix_Down", head.pod_size, hosts_per_tor)?;
        let aggs_per_pod = whole("Radix_Up of tier 0 in Bundles", need(0, tiers[0].up, "Radix_Up")?, down[1].0)?;
        let fits = |tier: usize, below: u32| {
            let (radix, bundle) = (need(tier, tiers[tier].down, "Radix_Down")?, down[tier].0);
            if u64::from(below) * u64::from(bundle) == u64::from(radix) {
                return Ok(());
            }
            let message = format!("tier {tier} has Radix_Down {radix}, but {below} switches x {bundle} below it");
            Err(Problem::new("", message))
        };
        fits(1, tors_per_pod)?;
        let mut cores = 0;
        if head.tiers == 3 {
            fits(2, pods)?;
            let uplinks = whole("Radix_Up of tier 1 in Bundles", need(1, tiers[1].up, "Radix_Up")?, down[2].0)?;
            Builder::check_size(u128::from(aggs_per_pod) * u128::from(uplinks), 0)?;
            cores = aggs_per_pod * uplinks;
        } else if pods != 1 {
            return fail(format!("with 2 tiers Podsize must be all {} Nodes, not {}", head.nodes, head.pod_size));
        }
        let (tors, aggs) = (u128::from(pods * tors_per_pod), u128::from(pods) * u128::from(aggs_per_pod));
        let upper = down.get(2).map_or(0, |tier| u128::from(tier.0) * u128::from(cores) * u128::from(pods));
        let cables = u128::from(head.nodes) + tors * u128::from(aggs_per_pod) * u128::from(down[1].0) + upper;
        Builder::check_size(u128::from(head.nodes) + tors + aggs + u128::from(cores), cables)?;
        Ok(Shape { hosts: head.nodes, hosts_per_tor, tors_per_pod, aggs_per_pod, cores, down })
    }

    fn build(&self, switch_delay: Duration) -> Result<Fabric, Problem> {
        let tors = self.hosts / self.hosts_per_tor;
        let pods = tors / self.tors_per_pod;
        let aggs = pods * self.aggs_per_pod;
        let kinds = if self.cores == 0 { ["leaf", "spine", ""] } else { ["edge", "agg", "core"] };
        let delay = |tier: usize| self.down.get(tier).and_then(|tier| tier.3).unwrap_or(switch_delay);
        let names = [tors, aggs, self.cores].into_iter().enumerate();
        let switches = names.flat_map(|(tier, count)| switches(kinds[tier], count, delay(tier))).collect();
        let mut fabric = Builder::new(Builder::numbered("host", self.hosts), switches);
        let cable = |fabric: &mut Builder, tier: usize, below: NodeId, above: NodeId| {
            let (bundle, rate, propagation, _) = self.down[tier];
            for _ in 0..bundle {
                fabric.cable(below, above, rate, propagation);
            }
        };
        for host in 0..self.hosts {
            let tor = fabric.switch(host / self.hosts_per_tor);
            cable(&mut fabric, 0, NodeId(host), tor);
        }
        for tor in 0..tors {
            let first = tors + tor / self.tors_per_pod * self.aggs_per_pod;
            for agg in first..first + self.aggs_per_pod {
                let ends = (fabric.switch(tor), fabric.switch(agg));
                cable(&mut fabric, 1, ends.0, ends.1);
            }
        }
        for agg in 0..if self.cores == 0 { 0 } else { aggs } {
            for core in (agg % self.aggs_per_pod..self.cores).step_by(self.aggs_per_pod as usize) {
                let ends = (fabric.switch(tors + agg), fabric.switch(tors + aggs + core));
                cable(&mut fabric, 2, ends.0, ends.1);
            }
        }
        if self.cores > 0 {
            for switch in 0..tors {
                fabric.group(fabric.switch(switch), switch / self.tors_per_pod);
            }
            for agg in 0..aggs {
                fabric.group(fabric.switch(tors + agg), agg / self.aggs_per_pod);
            }
        }
        fabric.finish()
    }
}
