use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{HostId, Problem};

/// What the selection makes as large as it can (section 3.4): "the rack's aggregate throughput or the tail throughput,
/// as measured across tenants or even across jobs".
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Utility {
    /// The sum of all flows' rates.
    #[default]
    Aggregate,
    /// The rate of a flow that few others are slower than.
    Tail(Tail),
    /// The throughput of a tenant that few others have less than.
    Tenants(Tenants),
}

/// Which flow's rate is the tail.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Tail {
    /// Percentile of all flows' rates, from 0 (the slowest flow) to 100, by nearest rank.
    pub percentile: f64,
}

impl Default for Tail {
    /// The first percentile: what 99 of 100 flows reach, as tails are told elsewhere in the paper.
    fn default() -> Tail {
        Tail { percentile: 1.0 }
    }
}

/// Whose throughput counts, and which tenant's is the tail.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tenants {
    /// The hosts of each tenant; a flow is its source's tenant's. Flows of hosts that are nobody's do not count, nor do
    /// tenants that have no flow.
    pub hosts: Vec<Vec<u32>>,
    /// Percentile of the tenants' throughputs, from 0 (the tenant that has least) to 100, by nearest rank.
    #[serde(default)]
    pub percentile: f64,
}

impl Utility {
    /// What its types can't forbid, on a fabric of so many hosts.
    pub fn check(&self, hosts: u32) -> Result<(), Problem> {
        match self {
            Utility::Aggregate => Ok(()),
            Utility::Tail(tail) => check_percentile(tail.percentile).map_err(|problem| problem.under("tail")),
            Utility::Tenants(tenants) => tenants.check(hosts).map_err(|problem| problem.under("tenants")),
        }
    }

    /// Made ready for the flows of these sources.
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
                    let message = format!("is host {host}, which hosts[{other}] has; a host is one tenant's");
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

/// A [`Utility`] of known flows, from their rates.
#[derive(Clone, Debug)]
pub struct Measure {
    of: Of,
    /// Room for sorting.
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
        /// Of each flow; tenants with flows are counted from 0.
        owners: Vec<Option<usize>>,
        count: usize,
    },
}

impl Measure {
    /// The utility of flows with these rates, in the order in which their sources were given; 0 without any.
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

/// The least value that `percentile` percent of all do not exceed.
fn nearest_rank(values: &mut [f64], percentile: f64) -> f64 {
    if values.is_empty() {
        return 0.0;
    }
    let rank = (percentile / 100.0 * values.len() as f64).ceil() as usize;
    let at = rank.clamp(1, values.len()) - 1;
    *values.select_nth_unstable_by(at, f64::total_cmp).1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(ids: &[u32]) -> Vec<HostId> {
        ids.iter().copied().map(HostId).collect()
    }

    #[test]
    fn aggregate_is_the_sum_and_tails_are_nearest_ranks() {
        let rates = [4.0, 1.0, 3.0, 2.0];
        let of = |utility: &Utility| utility.measure(&hosts(&[0, 1, 2, 3])).of(&rates);
        let tail = |percentile| Utility::Tail(Tail { percentile });
        assert_eq!(of(&Utility::Aggregate), 10.0);
        assert_eq!([0.0, 1.0, 25.0, 26.0, 50.0, 100.0].map(|p| of(&tail(p))), [1.0, 1.0, 1.0, 2.0, 2.0, 4.0]);
        assert_eq!(Utility::Aggregate.measure(&[]).of(&[]), 0.0);
        assert_eq!(tail(1.0).measure(&[]).of(&[]), 0.0);
    }

    #[test]
    fn a_tenant_has_the_flows_of_its_hosts() {
        let tenants = |percentile| Utility::Tenants(Tenants { hosts: vec![vec![0, 1], vec![9], vec![2]], percentile });
        // Host 3 is nobody's, and the second tenant has no flow.
        let of = |percentile| tenants(percentile).measure(&hosts(&[0, 2, 1, 3])).of(&[1.0, 4.0, 2.0, 0.5]);
        assert_eq!([of(0.0), of(100.0)], [3.0, 4.0]);
    }

    #[test]
    fn says_what_is_wrong_and_where() {
        let problem = |toml_like: Utility| toml_like.check(4).unwrap_err().to_string();
        let tenants = |hosts: Vec<Vec<u32>>| Utility::Tenants(Tenants { hosts, percentile: 0.0 });
        assert_eq!(
            problem(Utility::Tail(Tail { percentile: 101.0 })),
            "tail.percentile: is 101; it must be from 0 to 100"
        );
        assert_eq!(
            problem(tenants(vec![vec![0], vec![1, 4]])),
            "tenants.hosts[1][1]: is host 4; the fabric has 4, counted from 0"
        );
        assert_eq!(
            problem(tenants(vec![vec![0], vec![1, 0]])),
            "tenants.hosts[1][1]: is host 0, which hosts[0] has; a host is one tenant's"
        );
        assert_eq!(tenants(vec![vec![0, 3], vec![]]).check(4), Ok(()));
    }
}
