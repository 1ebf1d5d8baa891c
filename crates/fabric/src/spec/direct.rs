use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Duration, NodeId, Problem, Rate};

use super::{at_least, positive, switches};
use crate::{Builder, Fabric, fabric::Lattice};

/// A torus or mesh: nodes in a grid, each joined to its neighbours in every dimension.
///
/// A node is a switch with one host or several. It models R2C2's nodes with an integrated switch: by default the link
/// between host and switch has no propagation delay and the rate of all links of a 3D torus node together, so only the
/// links between switches limit traffic.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Grid {
    /// Nodes along each dimension, at least 2 each. Node (x, y, z) has number x + dims\[0\] * (y + dims\[1\] * z).
    /// Default: [8, 8, 8].
    pub dims: Vec<u32>,
    /// Hosts at each switch. Default: 1.
    pub hosts_per_node: u32,
    /// Rate of the links between switches. Default: 10Gbps.
    pub rate: Rate,
    /// Propagation delay of the links between switches. Default: 100ns.
    pub propagation: Duration,
    /// Rate of the links of hosts. Default: 60Gbps.
    pub host_rate: Rate,
    /// Propagation delay of the links of hosts. Default: 0.
    pub host_propagation: Duration,
    /// Processing delay of every switch. Default: 0.
    pub switch_delay: Duration,
}

impl Default for Grid {
    /// R2C2 section 5.2: a 512-node 3D torus, 10 Gbps and 100 ns a link.
    fn default() -> Grid {
        Grid {
            dims: vec![8, 8, 8],
            hosts_per_node: 1,
            rate: Rate::from_gbps(10),
            propagation: Duration::from_ns(100),
            host_rate: Rate::from_gbps(60),
            host_propagation: Duration::ZERO,
            switch_delay: Duration::ZERO,
        }
    }
}

impl Grid {
    pub(super) fn build(&self, wraps: bool) -> Result<Fabric, Problem> {
        if self.dims.is_empty() || self.dims.len() > 6 {
            let message = format!("has {} dimensions; 1 to 6 are supported, such as [8, 8, 8]", self.dims.len());
            return Err(Problem::new("dims", message));
        }
        for (axis, &length) in self.dims.iter().enumerate() {
            at_least(&format!("dims[{axis}]"), length, 2)?;
        }
        at_least("hosts_per_node", self.hosts_per_node, 1)?;
        positive("rate", self.rate)?;
        positive("host_rate", self.host_rate)?;
        let nodes = self.dims.iter().fold(1u128, |product, &length| product.saturating_mul(length.into()));
        let hosts_per_node = u128::from(self.hosts_per_node);
        let cables = nodes.saturating_mul(self.dims.len() as u128 + hosts_per_node);
        Builder::check_size(nodes.saturating_mul(hosts_per_node + 1), cables)?;

        let (nodes, hosts) = (nodes as u32, nodes as u32 * self.hosts_per_node);
        let names = Builder::numbered("host", hosts);
        let mut fabric = Builder::new(names, switches("switch", nodes, self.switch_delay).collect());
        for host in 0..hosts {
            let node = fabric.switch(host / self.hosts_per_node);
            fabric.cable(NodeId(host), node, self.host_rate, self.host_propagation);
        }
        for node in 0..nodes {
            let mut stride = 1;
            for &length in &self.dims {
                let at = node / stride % length;
                let neighbour = match at + 1 < length {
                    true => Some(node + stride),
                    // A ring of two would use the same cable twice.
                    false if wraps && length > 2 => Some(node - at * stride),
                    false => None,
                };
                if let Some(neighbour) = neighbour {
                    fabric.cable(fabric.switch(node), fabric.switch(neighbour), self.rate, self.propagation);
                }
                stride *= length;
            }
        }
        self.group_by_slice(&mut fabric, nodes);
        fabric.lattice(Lattice { dims: self.dims.clone(), wraps });
        fabric.finish()
    }

    /// Groups the nodes by slices across the longest dimension, which cuts the fewest links.
    fn group_by_slice(&self, fabric: &mut Builder, nodes: u32) {
        let mut longest = (0, 1);
        let mut stride = 1;
        for &length in &self.dims {
            if length >= longest.0 {
                longest = (length, stride);
            }
            stride *= length;
        }
        for node in 0..nodes {
            fabric.group(fabric.switch(node), node / longest.1 % longest.0);
        }
    }
}
