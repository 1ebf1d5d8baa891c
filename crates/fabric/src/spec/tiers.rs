use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Duration, NodeId, Problem, Rate};

use super::{at_least, oversubscribed, positive, switches};
use crate::{Builder, Fabric};

/// Three tiers: pods of leaf and aggregation switches, all of a pod joined, under cores. The j-th aggregation switch of
/// every pod is joined to the j-th group of cores. The rates between switches follow from the oversubscription of each
/// tier: the rate of all links down from a switch over that of all its links up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Clos {
    /// Number of pods. Default: 4.
    pub pods: u32,
    /// Leaf switches of a pod. Default: 4.
    pub leaves_per_pod: u32,
    /// Hosts under each leaf. Default: 8.
    pub hosts_per_leaf: u32,
    /// Aggregation switches of a pod. Default: 4.
    pub aggs_per_pod: u32,
    /// Cores above each aggregation switch. There are `aggs_per_pod` times as many. Default: 4.
    pub cores_per_agg: u32,
    /// Rate of each link of a host. Default: 100Gbps.
    pub host_rate: Rate,
    /// Rate of the links of a leaf's hosts over that of its links to aggregation switches. Default: 1.0.
    pub leaf_oversubscription: f64,
    /// Rate of the links of an aggregation switch to its leaves over that of its links to cores. Default: 1.0.
    pub agg_oversubscription: f64,
    /// Propagation delay of every link. Default: 200ns.
    pub propagation: Duration,
    /// Processing delay of every switch. Default: 450ns.
    pub switch_delay: Duration,
}

impl Default for Clos {
    fn default() -> Clos {
        Clos {
            pods: 4,
            leaves_per_pod: 4,
            hosts_per_leaf: 8,
            aggs_per_pod: 4,
            cores_per_agg: 4,
            host_rate: Rate::from_gbps(100),
            leaf_oversubscription: 1.0,
            agg_oversubscription: 1.0,
            propagation: Duration::from_ns(200),
            switch_delay: Duration::from_ns(450),
        }
    }
}

impl Clos {
    pub(super) fn build(&self) -> Result<Fabric, Problem> {
        let Clos { pods, leaves_per_pod, hosts_per_leaf, aggs_per_pod, cores_per_agg, propagation, .. } = *self;
        at_least("pods", pods, 1)?;
        at_least("leaves_per_pod", leaves_per_pod, 1)?;
        at_least("hosts_per_leaf", hosts_per_leaf, 1)?;
        at_least("aggs_per_pod", aggs_per_pod, 1)?;
        at_least("cores_per_agg", cores_per_agg, 1)?;
        positive("host_rate", self.host_rate)?;
        let [pods_, leaves_, hosts_, aggs_, cores_] =
            [pods, leaves_per_pod, hosts_per_leaf, aggs_per_pod, cores_per_agg].map(u128::from);
        let nodes =
            (pods_ * (leaves_ + aggs_) + aggs_ * cores_).saturating_add((pods_ * leaves_).saturating_mul(hosts_));
        let in_pods = (pods_ * leaves_).saturating_mul(hosts_ + aggs_);
        Builder::check_size(nodes, in_pods.saturating_add((pods_ * aggs_).saturating_mul(cores_)))?;
        let above = |rate: Rate, below: u32, up: u32| rate.mul_f64(f64::from(below) / f64::from(up));
        let agg_rate = above(self.host_rate, hosts_per_leaf, aggs_per_pod);
        let agg_rate = oversubscribed("leaf_oversubscription", agg_rate, self.leaf_oversubscription)?;
        let core_rate = above(agg_rate, leaves_per_pod, cores_per_agg);
        let core_rate = oversubscribed("agg_oversubscription", core_rate, self.agg_oversubscription)?;

        let (leaves, aggs) = (pods * leaves_per_pod, pods * aggs_per_pod);
        let hosts = leaves * hosts_per_leaf;
        let tiers = [("leaf", leaves), ("agg", aggs), ("core", aggs_per_pod * cores_per_agg)];
        let all = tiers.into_iter().flat_map(|(kind, count)| switches(kind, count, self.switch_delay));
        let mut fabric = Builder::new(Builder::numbered("host", hosts), all.collect());
        for host in 0..hosts {
            fabric.cable(NodeId(host), fabric.switch(host / hosts_per_leaf), self.host_rate, propagation);
        }
        for leaf in 0..leaves {
            let first = leaves + leaf / leaves_per_pod * aggs_per_pod;
            for agg in first..first + aggs_per_pod {
                fabric.cable(fabric.switch(leaf), fabric.switch(agg), agg_rate, propagation);
            }
        }
        for agg in 0..aggs {
            let first = leaves + aggs + agg % aggs_per_pod * cores_per_agg;
            for core in first..first + cores_per_agg {
                fabric.cable(fabric.switch(leaves + agg), fabric.switch(core), core_rate, propagation);
            }
        }
        for leaf in 0..leaves {
            fabric.group(fabric.switch(leaf), leaf / leaves_per_pod);
        }
        for agg in 0..aggs {
            fabric.group(fabric.switch(leaves + agg), agg / aggs_per_pod);
        }
        fabric.finish()
    }
}
