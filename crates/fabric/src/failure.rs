use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Duration, LinkId, NodeId, Problem, Time};

use crate::{Fabric, Failures, Routes};

/// A link or a switch that fails at a given time and may come back, or a link that damages bits for a while.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FailureSpec {
    /// When it fails.
    pub at: Time,
    /// When it works again; never, if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Time>,
    /// The two ends of the link, such as ["leaf0", "spine2"]; both directions fail, and so do all cables in parallel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<[String; 2]>,
    /// The switch, such as "spine2"; exactly one of `link` and `switch` is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub switch: Option<String>,
    /// With `link`: the link does not fail, but damages each bit of a packet with this probability in both directions, such as 1e-9. A packet that is hit is
    /// lost where the link ends, by Ethernet's frame check sequence (also in a switch that cuts through), or by the checksum of a transport that
    /// brings its own. Frames of a flow control are not hit. Routes stay as they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bit_error_rate: Option<f64>,
}

/// Something about the fabric that changes at a known time.
#[derive(Clone, Debug, PartialEq)]
pub struct Epoch {
    /// From when on it holds.
    pub at: Time,
    /// What holds.
    pub change: Change,
}

/// What an [`Epoch`] brings.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// All that is dead from now on, whole and not as a difference; anything else works (again).
    Dead(Failures),
    /// All links that damage bits from now on, whole and not as a difference, in order of their ids, and the probability for each bit.
    Noisy(Vec<(LinkId, f64)>),
    /// The tables that all switches use from now on.
    Reroute(Routes),
}

/// The timeline that a list of failures makes, in order of time: what is dead from when on and, `reroute_delay` after
/// each such change, the routes around it. At equal times what is dead comes before new routes. What only damages bits is not routed around.
///
/// A second change within the delay does not hold the first one's routes back, just as each failure's news travels by
/// itself; until its own routes come, packets may meet the second failure.
pub fn epochs(fabric: &Fabric, specs: &[FailureSpec], reroute_delay: Duration) -> Result<Vec<Epoch>, Problem> {
    let failures: Vec<Failures> = specs
        .iter()
        .enumerate()
        .map(|(index, spec)| spec.resolve(fabric).map_err(|problem| problem.under(format!("[{index}]"))))
        .collect::<Result<_, _>>()?;
    let (noisy, fatal): (Vec<_>, Vec<_>) = specs.iter().zip(&failures).partition(|of| of.0.bit_error_rate.is_some());
    let mut epochs = Vec::new();
    for now in times(&fatal) {
        let mut dead = Failures::default();
        for (_, failure) in fatal.iter().filter(|of| of.0.lasts_at(now)) {
            dead.links.extend(&failure.links);
            dead.switches.extend(&failure.switches);
        }
        let routes = Routes::compute(fabric, &dead);
        epochs.push(Epoch { at: now, change: Change::Dead(dead) });
        epochs.push(Epoch { at: now.saturating_add(reroute_delay), change: Change::Reroute(routes) });
    }
    for now in times(&noisy) {
        // A bit that passes two sources of errors is whole if both leave it so.
        let mut whole: BTreeMap<LinkId, f64> = BTreeMap::new();
        for (spec, failure) in noisy.iter().filter(|of| of.0.lasts_at(now)) {
            for &link in &failure.links {
                *whole.entry(link).or_insert(1.0) *= 1.0 - spec.bit_error_rate.unwrap_or(0.0);
            }
        }
        let noisy = whole.into_iter().map(|(link, whole)| (link, 1.0 - whole)).collect();
        epochs.push(Epoch { at: now, change: Change::Noisy(noisy) });
    }
    epochs.sort_by_key(|epoch| (epoch.at, matches!(epoch.change, Change::Reroute(_))));
    Ok(epochs)
}

/// When anything of these begins or ends.
fn times(specs: &[(&FailureSpec, &Failures)]) -> Vec<Time> {
    let mut times: Vec<Time> = specs.iter().flat_map(|(spec, _)| [Some(spec.at), spec.until]).flatten().collect();
    times.sort_unstable();
    times.dedup();
    times
}

impl FailureSpec {
    fn lasts_at(&self, now: Time) -> bool {
        self.at <= now && self.until.is_none_or(|until| now < until)
    }

    fn resolve(&self, fabric: &Fabric) -> Result<Failures, Problem> {
        if self.until.is_some_and(|until| until <= self.at) {
            return Err(Problem::new("until", format!("must be later than at = \"{}\"", self.at)));
        }
        if let Some(rate) = self.bit_error_rate {
            // A bit that is more often wrong than right would be right the other way round. NaN is neither.
            if !(rate > 0.0 && rate <= 0.5) {
                let message = format!("{rate} is no probability of a wrong bit: above 0 and up to 0.5, such as 1e-9");
                return Err(Problem::new("bit_error_rate", message));
            }
            if self.link.is_none() {
                let message = "belongs to a link: name its ends by `link = [\"leaf0\", \"spine2\"]`";
                return Err(Problem::new("bit_error_rate", message));
            }
        }
        match (&self.link, &self.switch) {
            (Some([a, b]), None) => {
                let end = |name: &str| fabric.find(name).map_err(|problem| problem.under("link"));
                Ok(Failures { links: cable(fabric, end(a)?, end(b)?)?.into_iter().collect(), ..Failures::default() })
            }
            (None, Some(name)) => {
                let node = fabric.find(name).map_err(|problem| problem.under("switch"))?;
                let switch = fabric.as_switch(node).ok_or_else(|| {
                    Problem::new("switch", format!("\"{name}\" is a host; to cut it off, let its link fail"))
                })?;
                Ok(Failures { switches: [switch].into(), ..Failures::default() })
            }
            _ => Err(Problem::new(
                "",
                "names what fails by exactly one of `link = [\"leaf0\", \"spine2\"]` and `switch`",
            )),
        }
    }
}

fn cable(fabric: &Fabric, a: NodeId, b: NodeId) -> Result<Vec<LinkId>, Problem> {
    let links: Vec<LinkId> = fabric.links_between(a, b).flat_map(|link| [link, Fabric::reverse(link)]).collect();
    if links.is_empty() {
        let name = |node: NodeId| &fabric.names[node.index()];
        let neighbours: Vec<&str> =
            fabric.ports[a.index()].iter().take(8).map(|&link| name(fabric.link(link).to).as_str()).collect();
        let message =
            format!("no link joins {} and {}; {} is joined to {}", name(a), name(b), name(a), neighbours.join(", "));
        return Err(Problem::new("link", message));
    }
    Ok(links)
}
