use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Duration, NodeId, Problem, Rate};

use super::{at_least, positive, switches};
use crate::{Builder, Fabric};

/// One switch with hosts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Star {
    /// Number of hosts. Default: 8.
    pub hosts: u32,
    /// Rate of every link. Default: 100Gbps.
    pub rate: Rate,
    /// Propagation delay of every link. Default: 200ns.
    pub propagation: Duration,
    /// Processing delay of the switch. Default: 450ns.
    pub switch_delay: Duration,
}

impl Default for Star {
    fn default() -> Star {
        Star {
            hosts: 8,
            rate: Rate::from_gbps(100),
            propagation: Duration::from_ns(200),
            switch_delay: Duration::from_ns(450),
        }
    }
}

impl Star {
    pub(super) fn build(&self) -> Result<Fabric, Problem> {
        at_least("hosts", self.hosts, 2)?;
        positive("rate", self.rate)?;
        Builder::check_size(u128::from(self.hosts) + 1, self.hosts.into())?;
        let switch = switches("switch", 1, self.switch_delay).collect();
        let mut fabric = Builder::new(Builder::numbered("host", self.hosts), switch);
        for host in 0..self.hosts {
            fabric.cable(NodeId(host), fabric.switch(0), self.rate, self.propagation);
        }
        fabric.finish()
    }
}

/// Two switches with one link between them: the usual single bottleneck. The first half of the hosts is on the left.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Dumbbell {
    /// Hosts on each side. Default: 4.
    pub hosts_per_side: u32,
    /// Rate of the links of hosts. Default: 100Gbps.
    pub host_rate: Rate,
    /// Rate of the link between the switches. Default: 100Gbps.
    pub bottleneck_rate: Rate,
    /// Propagation delay of every link. Default: 200ns.
    pub propagation: Duration,
    /// Processing delay of both switches. Default: 450ns.
    pub switch_delay: Duration,
}

impl Default for Dumbbell {
    fn default() -> Dumbbell {
        Dumbbell {
            hosts_per_side: 4,
            host_rate: Rate::from_gbps(100),
            bottleneck_rate: Rate::from_gbps(100),
            propagation: Duration::from_ns(200),
            switch_delay: Duration::from_ns(450),
        }
    }
}

impl Dumbbell {
    pub(super) fn build(&self) -> Result<Fabric, Problem> {
        let side = self.hosts_per_side;
        at_least("hosts_per_side", side, 1)?;
        positive("host_rate", self.host_rate)?;
        positive("bottleneck_rate", self.bottleneck_rate)?;
        Builder::check_size(u128::from(side) * 2 + 2, u128::from(side) * 2 + 1)?;
        let both = ["left", "right"].map(|name| (name.to_owned(), self.switch_delay)).to_vec();
        let mut fabric = Builder::new(Builder::numbered("host", 2 * side), both);
        for host in 0..2 * side {
            fabric.cable(NodeId(host), fabric.switch(host / side), self.host_rate, self.propagation);
        }
        fabric.cable(fabric.switch(0), fabric.switch(1), self.bottleneck_rate, self.propagation);
        fabric.finish()
    }
}
