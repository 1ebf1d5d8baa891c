use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Duration, NodeId, Problem, Rate};

use super::{at_least, oversubscribed, positive, switches};
use crate::{Builder, Fabric};

/// Racks of hosts under a leaf switch each, every leaf joined to every spine (dcPIM section 4, Harmony section 5).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LeafSpine {
    /// Number of racks, with one leaf switch each. Default: 9.
    pub racks: u32,
    /// Hosts in each rack. Default: 16.
    pub hosts_per_rack: u32,
    /// Links of each host, each to a different leaf; 2 makes hosts dual-homed. Racks form groups of this size (0 and 1,
    /// 2 and 3, ...). A host's first port leads to its own leaf, the others to the next leaves of the group. Default:
    /// 1.
    pub homes: u32,
    /// Number of spine switches. Default: 4.
    pub spines: u32,
    /// Rate of each link of a host. Default: 100Gbps.
    pub host_rate: Rate,
    /// Rate of each link between a leaf and a spine, before `oversubscription`. Default: 400Gbps.
    pub spine_rate: Rate,
    /// Divides `spine_rate`. The default network has full bisection bandwidth; there 2.0 is dcPIM's 2:1 fabric (200
    /// Gbps). Default: 1.0.
    pub oversubscription: f64,
    /// Propagation delay of every link. Default: 200ns.
    pub propagation: Duration,
    /// Processing delay of every switch. Default: 450ns.
    pub switch_delay: Duration,
}

impl Default for LeafSpine {
    fn default() -> LeafSpine {
        LeafSpine {
            racks: 9,
            hosts_per_rack: 16,
            homes: 1,
            spines: 4,
            host_rate: Rate::from_gbps(100),
            spine_rate: Rate::from_gbps(400),
            oversubscription: 1.0,
            propagation: Duration::from_ns(200),
            switch_delay: Duration::from_ns(450),
        }
    }
}

impl LeafSpine {
    pub(super) fn build(&self) -> Result<Fabric, Problem> {
        let LeafSpine { racks, hosts_per_rack, homes, spines, propagation, .. } = *self;
        at_least("racks", racks, 1)?;
        at_least("hosts_per_rack", hosts_per_rack, 1)?;
        at_least("homes", homes, 1)?;
        at_least("spines", spines, 1)?;
        positive("host_rate", self.host_rate)?;
        positive("spine_rate", self.spine_rate)?;
        let spine_rate = oversubscribed("oversubscription", self.spine_rate, self.oversubscription)?;
        let (racks_, hosts_, spines_) = (u128::from(racks), u128::from(hosts_per_rack), u128::from(spines));
        Builder::check_size(racks_ * hosts_ + racks_ + spines_, racks_ * (hosts_ * u128::from(homes) + spines_))?;
        if racks % homes != 0 {
            let message = format!(
                "is {homes}, and {racks} racks cannot be divided into groups of {homes}; write a divisor of {racks}"
            );
            return Err(Problem::new("homes", message));
        }

        let hosts = racks * hosts_per_rack;
        let leaves = switches("leaf", racks, self.switch_delay);
        let tops = switches("spine", spines, self.switch_delay);
        let mut fabric = Builder::new(Builder::numbered("host", hosts), leaves.chain(tops).collect());
        for host in 0..hosts {
            let own = host / hosts_per_rack;
            for home in 0..homes {
                let leaf = own / homes * homes + (own + home) % homes;
                fabric.cable(NodeId(host), fabric.switch(leaf), self.host_rate, propagation);
            }
        }
        for rack in 0..racks {
            for spine in 0..spines {
                fabric.cable(fabric.switch(rack), fabric.switch(racks + spine), spine_rate, propagation);
            }
        }
        fabric.finish()
    }
}

/// Servers with a NIC for each of several rails, as in clusters for training models. In a block of servers, link r of
/// each server leads to the block's rail switch r. Every rail switch is joined to every spine.
///
/// Without spines a packet stays on the rail by which it leaves its server, and there is only one block.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Rails {
    /// Number of blocks. Default: 2.
    pub blocks: u32,
    /// Servers in each block; each is a host. Default: 16.
    pub servers_per_block: u32,
    /// Links of a server and rail switches of a block. Rail switch r of block b is named "rail" with the number b *
    /// rails + r. Default: 8.
    pub rails: u32,
    /// Number of spine switches; with one block it may be 0, for rails that are separate networks. Default: 4.
    pub spines: u32,
    /// Rate of each link of a server. Default: 100Gbps.
    pub host_rate: Rate,
    /// Rate of each link between a rail switch and a spine. Default: 400Gbps.
    pub spine_rate: Rate,
    /// Propagation delay of every link. Default: 200ns.
    pub propagation: Duration,
    /// Processing delay of every switch. Default: 450ns.
    pub switch_delay: Duration,
}

impl Default for Rails {
    /// Servers of eight accelerators. The uplinks of a rail switch have the same total rate as its links to servers.
    fn default() -> Rails {
        Rails {
            blocks: 2,
            servers_per_block: 16,
            rails: 8,
            spines: 4,
            host_rate: Rate::from_gbps(100),
            spine_rate: Rate::from_gbps(400),
            propagation: Duration::from_ns(200),
            switch_delay: Duration::from_ns(450),
        }
    }
}

impl Rails {
    pub(super) fn build(&self) -> Result<Fabric, Problem> {
        let Rails { blocks, servers_per_block, rails, spines, propagation, .. } = *self;
        at_least("blocks", blocks, 1)?;
        at_least("servers_per_block", servers_per_block, 1)?;
        at_least("rails", rails, 1)?;
        if spines == 0 && blocks > 1 {
            let message = format!("is 0, so that nothing joins the {blocks} blocks; write at least 1, or blocks = 1");
            return Err(Problem::new("spines", message));
        }
        positive("host_rate", self.host_rate)?;
        positive("spine_rate", self.spine_rate)?;
        let [blocks_, servers_, rails_, spines_] = [blocks, servers_per_block, rails, spines].map(u128::from);
        let nodes = blocks_ * (servers_ + rails_) + spines_;
        Builder::check_size(nodes, blocks_.saturating_mul(rails_).saturating_mul(servers_ + spines_))?;

        let (hosts, below) = (blocks * servers_per_block, blocks * rails);
        let tops = switches("spine", spines, self.switch_delay);
        let rail_switches = switches("rail", below, self.switch_delay);
        let mut fabric = Builder::new(Builder::numbered("host", hosts), rail_switches.chain(tops).collect());
        for host in 0..hosts {
            for rail in 0..rails {
                let switch = fabric.switch(host / servers_per_block * rails + rail);
                fabric.cable(NodeId(host), switch, self.host_rate, propagation);
            }
        }
        for rail in 0..below {
            for spine in 0..spines {
                fabric.cable(fabric.switch(rail), fabric.switch(below + spine), self.spine_rate, propagation);
            }
        }
        fabric.finish()
    }
}

/// The fat-tree of k-port switches (Al-Fares et al., SIGCOMM 2008): k pods of k/2 edge and k/2 aggregation switches,
/// k/2 hosts under each edge switch and (k/2)^2 cores. The j-th aggregation switch of every pod is joined to the j-th
/// group of k/2 cores.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct FatTree {
    /// Number of ports of a switch, even. The fat-tree has k^3/4 hosts. Default: 16.
    pub k: u32,
    /// Rate of every link, before `oversubscription`. Default: 100Gbps.
    pub rate: Rate,
    /// Divides the rate of all links between switches. Hosts, paths and traffic stay those of the 1:1 fabric, as with
    /// the oversubscribed leaf-spine of dcPIM section 4 and Harmony section 5. Default: 1.0.
    pub oversubscription: f64,
    /// Propagation delay of every link. Default: 200ns.
    pub propagation: Duration,
    /// Processing delay of every switch. Default: 450ns.
    pub switch_delay: Duration,
}

impl Default for FatTree {
    fn default() -> FatTree {
        FatTree {
            k: 16,
            rate: Rate::from_gbps(100),
            oversubscription: 1.0,
            propagation: Duration::from_ns(200),
            switch_delay: Duration::from_ns(450),
        }
    }
}

impl FatTree {
    pub(super) fn build(&self) -> Result<Fabric, Problem> {
        let k = self.k;
        if k < 2 || k % 2 == 1 {
            return Err(Problem::new("k", format!("is {k}; a fat-tree needs an even number of ports, at least 2")));
        }
        positive("rate", self.rate)?;
        let core_rate = oversubscribed("oversubscription", self.rate, self.oversubscription)?;
        let wide = u128::from(k);
        Builder::check_size(wide.pow(3) / 4 + wide.pow(2) * 5 / 4, wide.pow(3) * 3 / 4)?;

        let half = k / 2;
        let (hosts, per_tier) = (k * half * half, k * half);
        let edges = switches("edge", per_tier, self.switch_delay);
        let aggs = switches("agg", per_tier, self.switch_delay);
        let cores = switches("core", half * half, self.switch_delay);
        let mut fabric = Builder::new(Builder::numbered("host", hosts), edges.chain(aggs).chain(cores).collect());
        for host in 0..hosts {
            fabric.cable(NodeId(host), fabric.switch(host / half), self.rate, self.propagation);
        }
        for edge in 0..per_tier {
            let pod = edge / half;
            for agg in per_tier + pod * half..per_tier + (pod + 1) * half {
                fabric.cable(fabric.switch(edge), fabric.switch(agg), core_rate, self.propagation);
            }
        }
        for agg in 0..per_tier {
            let first = 2 * per_tier + agg % half * half;
            for core in first..first + half {
                fabric.cable(fabric.switch(per_tier + agg), fabric.switch(core), core_rate, self.propagation);
            }
        }
        for switch in 0..per_tier {
            fabric.group(fabric.switch(switch), switch / half);
            fabric.group(fabric.switch(per_tier + switch), switch / half);
        }
        fabric.finish()
    }
}
