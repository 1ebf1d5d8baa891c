use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Duration, NodeId, Problem, Rate};

use super::{at_least, oversubscribed, positive, switches};
use crate::{Builder, Fabric};

/// Servers with a link into each of several planes. Each plane is a leaf-spine network of its own: a packet stays in
/// the plane by which it leaves its server. So a server's bandwidth is that of all its planes, and a plane that fails
/// takes its share of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct MultiPlane {
    /// Number of planes: links of a server. Link p leads to plane p. Default: 4.
    pub planes: u32,
    /// Number of racks, with a leaf switch of each plane. The leaf of rack r in plane p is named "leaf" with the number
    /// p * racks + r. Default: 8.
    pub racks: u32,
    /// Servers in each rack; each is a host. Default: 16.
    pub hosts_per_rack: u32,
    /// Number of spine switches of each plane. Spine s of plane p is named "spine" with the number p * spines + s.
    /// Default: 4.
    pub spines: u32,
    /// Rate of each link of a server. Default: 100Gbps.
    pub host_rate: Rate,
    /// Rate of each link between a leaf and a spine, before `oversubscription`. Default: 400Gbps.
    pub spine_rate: Rate,
    /// Divides `spine_rate`. The default network has full bisection bandwidth. Default: 1.0.
    pub oversubscription: f64,
    /// Propagation delay of every link. Default: 200ns.
    pub propagation: Duration,
    /// Processing delay of every switch. Default: 450ns.
    pub switch_delay: Duration,
}

impl Default for MultiPlane {
    fn default() -> MultiPlane {
        MultiPlane {
            planes: 4,
            racks: 8,
            hosts_per_rack: 16,
            spines: 4,
            host_rate: Rate::from_gbps(100),
            spine_rate: Rate::from_gbps(400),
            oversubscription: 1.0,
            propagation: Duration::from_ns(200),
            switch_delay: Duration::from_ns(450),
        }
    }
}

impl MultiPlane {
    pub(super) fn build(&self) -> Result<Fabric, Problem> {
        let MultiPlane { planes, racks, hosts_per_rack, spines, propagation, .. } = *self;
        at_least("planes", planes, 1)?;
        at_least("racks", racks, 1)?;
        at_least("hosts_per_rack", hosts_per_rack, 1)?;
        at_least("spines", spines, 1)?;
        positive("host_rate", self.host_rate)?;
        positive("spine_rate", self.spine_rate)?;
        let spine_rate = oversubscribed("oversubscription", self.spine_rate, self.oversubscription)?;
        let [planes_, racks_, hosts_, spines_] = [planes, racks, hosts_per_rack, spines].map(u128::from);
        let nodes = racks_ * hosts_ + planes_ * (racks_ + spines_);
        Builder::check_size(nodes, (planes_ * racks_).saturating_mul(hosts_ + spines_))?;

        let (hosts, leaves) = (racks * hosts_per_rack, planes * racks);
        let leaf_switches = switches("leaf", leaves, self.switch_delay);
        let tops = switches("spine", planes * spines, self.switch_delay);
        let mut fabric = Builder::new(Builder::numbered("host", hosts), leaf_switches.chain(tops).collect());
        for host in 0..hosts {
            for plane in 0..planes {
                let leaf = fabric.switch(plane * racks + host / hosts_per_rack);
                fabric.cable(NodeId(host), leaf, self.host_rate, propagation);
            }
        }
        for leaf in 0..leaves {
            for spine in 0..spines {
                let spine = fabric.switch(leaves + leaf / racks * spines + spine);
                fabric.cable(fabric.switch(leaf), spine, spine_rate, propagation);
            }
        }
        fabric.finish()
    }
}
