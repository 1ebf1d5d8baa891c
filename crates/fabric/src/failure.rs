use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Duration, LinkId, NodeId, Problem, Time};

use crate::{Fabric, Failures, Routes};

/// A link or a switch that fails at a given time and may come back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
    /// The tables that all switches use from now on.
    Reroute(Routes),
}

/// The timeline that a list of failures makes, in order of time: what is dead from when on and, `reroute_delay` after
/// each such change, the routes around it. At equal times what is dead comes before new routes.
///
/// A second change within the delay does not hold the first one's routes back, just as each failure's news travels by
/// itself; until its own routes come, packets may meet the second failure.
pub fn epochs(fabric: &Fabric, specs: &[FailureSpec], reroute_delay: Duration) -> Result<Vec<Epoch>, Problem> {
    let failures: Vec<Failures> = specs
        .iter()
        .enumerate()
        .map(|(index, spec)| spec.resolve(fabric).map_err(|problem| problem.under(format!("[{index}]"))))
        .collect::<Result<_, _>>()?;
    let mut times: Vec<Time> = specs.iter().flat_map(|spec| [Some(spec.at), spec.until]).flatten().collect();
    times.sort_unstable();
    times.dedup();
    let mut epochs = Vec::new();
    for now in times {
        let mut dead = Failures::default();
        for (spec, failure) in specs.iter().zip(&failures) {
            if spec.at <= now && spec.until.is_none_or(|until| now < until) {
                dead.links.extend(&failure.links);
                dead.switches.extend(&failure.switches);
            }
        }
        let routes = Routes::compute(fabric, &dead);
        epochs.push(Epoch { at: now, change: Change::Dead(dead) });
        epochs.push(Epoch { at: now.saturating_add(reroute_delay), change: Change::Reroute(routes) });
    }
    epochs.sort_by_key(|epoch| (epoch.at, matches!(epoch.change, Change::Reroute(_))));
    Ok(epochs)
}

impl FailureSpec {
    fn resolve(&self, fabric: &Fabric) -> Result<Failures, Problem> {
        if self.until.is_some_and(|until| until <= self.at) {
            return Err(Problem::new("until", format!("must be later than at = \"{}\"", self.at)));
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
