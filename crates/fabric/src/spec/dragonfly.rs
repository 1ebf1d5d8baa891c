//! Dragonflies: groups with links between every two of them.
//!
//! The ends of a group's links to other groups are numbered, router by router. With g groups, end q (g - 1) + j of
//! group i is joined to end q (g - 1) + (g - 2 - j) of group i + j + 1 (modulo g). So every two groups have the same
//! number of links, and those of one pair are as far apart as can be.
//!
//! Routes are minimal in the dragonfly's sense: one link between groups, however many links a path over two of them
//! would save ([`Link::global`](crate::Link::global)).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Duration, NodeId, Problem, Rate};

use super::{at_least, positive, switches};
use crate::{Builder, Fabric};

/// Groups of routers that are all joined to each other, with links between all groups (Kim, Dally, Scott and Abts, ISCA
/// 2008). The default is balanced as the paper has it: twice as many routers in a group as hosts, and as links to other
/// groups, at each router.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Dragonfly {
    /// Number of groups. Default: as many as the links between groups can join, `routers_per_group *
    /// global_links_per_router + 1`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub groups: Option<u32>,
    /// Routers of a group. Router i of group j is named "router" with the number j * routers_per_group + i. Default: 4.
    pub routers_per_group: u32,
    /// Hosts at each router. Default: 2.
    pub hosts_per_router: u32,
    /// Links of a router to other groups. Default: 2.
    pub global_links_per_router: u32,
    /// Rate of each link of a host. Default: 100Gbps.
    pub host_rate: Rate,
    /// Rate of each link within a group. Default: 100Gbps.
    pub local_rate: Rate,
    /// Rate of each link between groups. Default: 100Gbps.
    pub global_rate: Rate,
    /// Propagation delay of the links of hosts and within groups. Default: 200ns.
    pub propagation: Duration,
    /// Propagation delay of the links between groups. Default: 500ns.
    pub global_propagation: Duration,
    /// Processing delay of every router. Default: 450ns.
    pub switch_delay: Duration,
}

impl Default for Dragonfly {
    fn default() -> Dragonfly {
        Dragonfly {
            groups: None,
            routers_per_group: 4,
            hosts_per_router: 2,
            global_links_per_router: 2,
            host_rate: Rate::from_gbps(100),
            local_rate: Rate::from_gbps(100),
            global_rate: Rate::from_gbps(100),
            propagation: Duration::from_ns(200),
            global_propagation: Duration::from_ns(500),
            switch_delay: Duration::from_ns(450),
        }
    }
}

impl Dragonfly {
    pub(super) fn build(&self) -> Result<Fabric, Problem> {
        let Dragonfly { routers_per_group, hosts_per_router, global_links_per_router, propagation, .. } = *self;
        at_least("routers_per_group", routers_per_group, 1)?;
        at_least("hosts_per_router", hosts_per_router, 1)?;
        at_least("global_links_per_router", global_links_per_router, 1)?;
        positive("host_rate", self.host_rate)?;
        positive("local_rate", self.local_rate)?;
        positive("global_rate", self.global_rate)?;
        let global = Globals::new(self.groups, [routers_per_group, global_links_per_router], "routers")?;
        let [groups_, routers_, hosts_] = [global.groups, routers_per_group, hosts_per_router].map(u128::from);
        let nodes = (groups_ * routers_).saturating_mul(hosts_ + 1);
        Builder::check_size(nodes, nodes.saturating_add((groups_ * routers_).saturating_mul(routers_)))?;

        let routers = global.groups * routers_per_group;
        let hosts = routers * hosts_per_router;
        let all = switches("router", routers, self.switch_delay).collect();
        let mut fabric = Builder::new(Builder::numbered("host", hosts), all);
        for host in 0..hosts {
            fabric.cable(NodeId(host), fabric.switch(host / hosts_per_router), self.host_rate, propagation);
        }
        for router in 0..routers {
            let group = router / routers_per_group;
            for other in router + 1..(group + 1) * routers_per_group {
                fabric.cable(fabric.switch(router), fabric.switch(other), self.local_rate, propagation);
            }
            fabric.group(fabric.switch(router), group);
        }
        for ends in global.cables() {
            let [one, other] =
                ends.map(|(group, end)| fabric.switch(group * routers_per_group + end / global_links_per_router));
            fabric.global_cable(one, other, self.global_rate, self.global_propagation);
        }
        fabric.finish()
    }
}

/// Groups that are leaf-spine networks, with links between the spines of all groups (Shpiner and others, "Dragonfly+",
/// HiPINEB 2017; "Megafly").
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DragonflyPlus {
    /// Number of groups. Default: as many as the links between groups can join, `spines_per_group *
    /// global_links_per_spine + 1`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub groups: Option<u32>,
    /// Leaf switches of a group, each joined to all of its spines. Leaf i of group j is named "leaf" with the number
    /// j * leaves_per_group + i. Default: 4.
    pub leaves_per_group: u32,
    /// Spine switches of a group, named as leaves are. Default: 4.
    pub spines_per_group: u32,
    /// Hosts at each leaf. Default: 4.
    pub hosts_per_leaf: u32,
    /// Links of a spine to other groups. Default: 2.
    pub global_links_per_spine: u32,
    /// Rate of each link of a host. Default: 100Gbps.
    pub host_rate: Rate,
    /// Rate of each link between a leaf and a spine. Default: 100Gbps.
    pub local_rate: Rate,
    /// Rate of each link between groups. Default: 200Gbps.
    pub global_rate: Rate,
    /// Propagation delay of the links of hosts and within groups. Default: 200ns.
    pub propagation: Duration,
    /// Propagation delay of the links between groups. Default: 500ns.
    pub global_propagation: Duration,
    /// Processing delay of every switch. Default: 450ns.
    pub switch_delay: Duration,
}

impl Default for DragonflyPlus {
    /// A group's links to its hosts, between its switches and to other groups have the same total rate.
    fn default() -> DragonflyPlus {
        DragonflyPlus {
            groups: None,
            leaves_per_group: 4,
            spines_per_group: 4,
            hosts_per_leaf: 4,
            global_links_per_spine: 2,
            host_rate: Rate::from_gbps(100),
            local_rate: Rate::from_gbps(100),
            global_rate: Rate::from_gbps(200),
            propagation: Duration::from_ns(200),
            global_propagation: Duration::from_ns(500),
            switch_delay: Duration::from_ns(450),
        }
    }
}

impl DragonflyPlus {
    pub(super) fn build(&self) -> Result<Fabric, Problem> {
        let DragonflyPlus { leaves_per_group, spines_per_group, hosts_per_leaf, global_links_per_spine, .. } = *self;
        at_least("leaves_per_group", leaves_per_group, 1)?;
        at_least("spines_per_group", spines_per_group, 1)?;
        at_least("hosts_per_leaf", hosts_per_leaf, 1)?;
        at_least("global_links_per_spine", global_links_per_spine, 1)?;
        positive("host_rate", self.host_rate)?;
        positive("local_rate", self.local_rate)?;
        positive("global_rate", self.global_rate)?;
        let global = Globals::new(self.groups, [spines_per_group, global_links_per_spine], "spines")?;
        let [groups_, leaves_, spines_, hosts_] =
            [global.groups, leaves_per_group, spines_per_group, hosts_per_leaf].map(u128::from);
        let nodes = (groups_ * leaves_).saturating_mul(hosts_ + 1).saturating_add(groups_ * spines_);
        let in_groups = (groups_ * leaves_).saturating_mul(hosts_ + spines_);
        Builder::check_size(nodes, in_groups.saturating_add(groups_ * u128::from(global.ends)))?;

        let (leaves, spines) = (global.groups * leaves_per_group, global.groups * spines_per_group);
        let hosts = leaves * hosts_per_leaf;
        let all = switches("leaf", leaves, self.switch_delay).chain(switches("spine", spines, self.switch_delay));
        let mut fabric = Builder::new(Builder::numbered("host", hosts), all.collect());
        for host in 0..hosts {
            fabric.cable(NodeId(host), fabric.switch(host / hosts_per_leaf), self.host_rate, self.propagation);
        }
        for leaf in 0..leaves {
            let group = leaf / leaves_per_group;
            for spine in group * spines_per_group..(group + 1) * spines_per_group {
                fabric.cable(fabric.switch(leaf), fabric.switch(leaves + spine), self.local_rate, self.propagation);
            }
            fabric.group(fabric.switch(leaf), group);
        }
        for spine in 0..spines {
            fabric.group(fabric.switch(leaves + spine), spine / spines_per_group);
        }
        for ends in global.cables() {
            let [one, other] = ends
                .map(|(group, end)| fabric.switch(leaves + group * spines_per_group + end / global_links_per_spine));
            fabric.global_cable(one, other, self.global_rate, self.global_propagation);
        }
        fabric.finish()
    }
}

/// Which groups have links to which.
struct Globals {
    groups: u32,
    /// Ends of links to other groups that a group has.
    ends: u32,
}

impl Globals {
    /// Checks a number of groups against the `[switches, links of each]` of a group that lead to others.
    fn new(groups: Option<u32>, [switches, links]: [u32; 2], kind: &str) -> Result<Globals, Problem> {
        // Two groups have so many nodes and cables at least.
        Builder::check_size(2 * u128::from(switches), u128::from(switches) * u128::from(links))?;
        let ends = switches * links;
        let groups = groups.unwrap_or(ends + 1);
        at_least("groups", groups, 2)?;
        let fits = |groups: &u32| *groups >= 2 && *groups <= ends + 1 && ends % (groups - 1) == 0;
        if !fits(&groups) {
            // Divisors on both sides; 2 groups always fit.
            let below = (2..groups.min(ends + 2)).rev().find(fits).unwrap_or(2);
            let above = (groups.saturating_add(1)..=ends + 1).find(fits);
            let right = above.map_or_else(|| below.to_string(), |above| format!("{below} or {above}"));
            let message = format!(
                "is {groups}; the {ends} links of a group to others ({switches} {kind} with {links} each) cannot be \
                 shared equally by {} other groups; write {right}",
                groups - 1
            );
            return Err(Problem::new("groups", message));
        }
        Ok(Globals { groups, ends })
    }

    /// Both ends of every cable between groups: a group, and which of its ends.
    fn cables(&self) -> impl Iterator<Item = [(u32, u32); 2]> + use<> {
        let (groups, ends) = (self.groups, self.ends);
        let of_group = move |group: u32| {
            (0..ends).map(move |end| {
                let (first, step) = (end / (groups - 1) * (groups - 1), end % (groups - 1));
                [(group, end), ((group + step + 1) % groups, first + groups - 2 - step)]
            })
        };
        // Each cable is seen from both ends and made at the lower group.
        (0..groups).flat_map(of_group).filter(|[one, other]| one.0 < other.0)
    }
}
