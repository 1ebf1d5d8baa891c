use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{HostId, Problem};

/// The utility that the selection maximises (section 3.4): "the rack's aggregate throughput or the tail throughput, as
/// measured across tenants or even across jobs".
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Utility {
    /// The sum of all flows' rates.
    #[default]
    Aggregate,
    /// A low percentile of the flows' rates.
    Tail(Tail),
    /// A low percentile of the tenants' throughputs.
    Tenants(Tenants),
}

/// The percentile of flows' rates that counts as the tail.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Tail {
    /// Percentile of all flows' rates, from 0 (the slowest flow) to 100, by nearest rank. Default: 1.
    pub percentile: f64,
}

impl Default for Tail {
    /// The first percentile: 99 of 100 flows are faster, as for other tails in the paper.
    fn default() -> Tail {
        Tail { percentile: 1.0 }
    }
}

/// The tenants, and the percentile of their throughputs that counts as the tail.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tenants {
    /// Hosts of each tenant, as lists of numbers. A flow belongs to its source's tenant. Flows of other hosts do not
    /// count, and neither do tenants without flows.
    pub hosts: Vec<Vec<u32>>,
    /// Percentile of the tenants' throughputs, from 0 (the slowest tenant) to 100, by nearest rank. Default: 0.
    #[serde(default)]
    pub percentile: f64,
}

impl Utility {
    /// Checks what the types can't express, for a fabric with this many hosts.
    pub fn check(&self, hosts: u32) -> Result<(), Problem> {
        match self {
            Utility::Aggregate => Ok(()),
            Utility::Tail(tail) => check_percentile(tail.percentile).map_err(|problem| problem.under("tail")),
            Utility::Tenants(tenants) => tenants.check(hosts).map_err(|problem| problem.under("tenants")),
        }
    }

    /// Prepares the utility for flows from these sources.
    pub fn measure(&self, sources: &[HostId]) -> Measure {
        let of = match self {
            Utility::Aggregate => Of::Sum,
            Utility::Tail(Tail { percentile }) => Of::Flows { percentile: *percentile },
            Utility::Tenants(Tenants { hosts, percentile }) => {
                let tenant = |source: &HostId| hosts.iter().position(|hosts| hosts.contains(&source.0));
                let owners: Vec<Option<usize>> = sources.iter().map(tenant).collect();
                let mut with_flows: Vec<usize> = owners.iter().copied().flatten().collect();
                with_flows.sort_unstable();
                with_flows.dedup();
                let place = |owner: Option<usize>| with_flows.binary_search(&owner?).ok();
                let owners = owners.into_iter().map(place).collect();
                Of::Tenants { percentile: *percentile, owners, count: with_flows.len() }
            }
        };
        Measure { of, values: Vec::new() }
    }
}

impl Tenants {
    fn check(&self, hosts: u32) -> Result<(), Problem> {
        check_percentile(self.percentile)?;
        let mut owner = vec![None; hosts as usize];
        for (tenant, of_tenant) in self.hosts.iter().enumerate() {
            for (at, &host) in of_tenant.iter().enumerate() {
                let key = || format!("hosts[{tenant}][{at}]");
                let Some(owner) = owner.get_mut(host as usize) else {
                    return Err(Problem::new(key(), format!("is host {host}; the fabric has {hosts}, counted from 0")));
                };
                if let Some(other) = owner.replace(tenant) {
                    let message =
                        format!("is host {host}, which hosts[{other}] names too; give each host to one tenant");
                    return Err(Problem::new(key(), message));
                }
            }
        }
        Ok(())
    }
}

fn check_percentile(percentile: f64) -> Result<(), Problem> {
    match (0.0..=100.0).contains(&percentile) {
        true => Ok(()),
        false => Err(Problem::new("percentile", format!("is {percentile}; it must be from 0 to 100"))),
    }
}

/// A [`Utility`] for known flows, computed from their rates.
#[derive(Clone, Debug)]
pub struct Measure {
    of: Of,
    /// Scratch memory for sorting.
    values: Vec<f64>,
}

#[derive(Clone, Debug)]
enum Of {
    Sum,
    Flows {
        percentile: f64,
    },
    Tenants {
        percentile: f64,
        /// By flow: its tenant. Only tenants with flows are numbered, from 0.
        owners: Vec<Option<usize>>,
        count: usize,
    },
}

impl Measure {
    /// The utility of flows with these rates, in the order of their sources; 0 without flows.
    pub fn of(&mut self, rates: &[f64]) -> f64 {
        let Measure { of, values } = self;
        values.clear();
        match of {
            Of::Sum => rates.iter().sum(),
            Of::Flows { percentile } => {
                values.extend_from_slice(rates);
                nearest_rank(values, *percentile)
            }
            Of::Tenants { percentile, owners, count } => {
                values.resize(*count, 0.0);
                for (owner, rate) in owners.iter().zip(rates) {
                    if let Some(owner) = *owner {
                        values[owner] += rate;
                    }
                }
                nearest_rank(values, *percentile)
            }
        }
    }
}

/// The least value that at least `percentile` percent of all values do not exceed.
fn nearest_rank(values: &mut [f64], percentile: f64) -> f64 {
    if values.is_empty() {
        return 0.0;
    }
    let rank = (percentile / 100.0 * values.len() as f64).ceil() as usize;
    let at = rank.clamp(1, values.len()) - 1;
    *values.select_nth_unstable_by(at, f64::total_cmp).1
}

#[cfg(test)]
mod tests;
