//! The arithmetic of headroom, before any packet: what each lossless group is given at each port, and what it needs.

use std::collections::BTreeSet;

use node::mmu::{Profile, Threshold};
use node::packet::CLASSES;
use units::{PortId, Problem, SwitchId};

use super::resolved::{self, Classes};
use super::{Config, Side};
use contract::link_control::LinkView;

/// A lossless group at a port of a switch.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupAtPort {
    /// The role of the switch; `None` if it has none.
    pub role: Option<usize>,
    /// The port.
    pub port: PortId,
    /// The length of its cable, in metres.
    pub cable_m: f64,
    /// The group's number.
    pub group: u8,
    /// The queues of the group's lossless classes.
    pub queues: Vec<u8>,
    /// Its table in `group`; `None` if it is in none.
    pub table: Option<usize>,
    /// Its row in that table's `lookup`; `None` if there is no lookup.
    pub row: Option<usize>,
    /// The name of its pool; empty for the default one.
    pub pool: String,
    /// Bytes of the pool that all share: without what is reserved in it.
    pub shared_bytes: u64,
    /// Its memory.
    pub profile: Profile,
    /// Bytes of headroom that suffice: what arrives with and after the packet that asks for a pause.
    pub needed: u64,
}

impl GroupAtPort {
    /// The bytes at which the group pauses its neighbour, if no other has any.
    pub fn limit(&self) -> u64 {
        let shared = match self.profile.threshold {
            Threshold::Static(bytes) => bytes.min(self.shared_bytes),
            Threshold::Dynamic(alpha) => (self.shared_bytes as f64 * alpha / (1.0 + alpha)) as u64,
        };
        self.profile.reserved.saturating_add(shared)
    }
}

impl Config {
    /// The lossless groups at each port of a switch. `frame_bytes` is the largest frame on its links; `None` for that
    /// of the network's hosts.
    pub fn lossless_groups(
        &self,
        view: &LinkView<'_>,
        switch: SwitchId,
        frame_bytes: Option<u64>,
    ) -> Result<Vec<GroupAtPort>, Problem> {
        let (config, own) = self.at(view, switch);
        let role = self.role_of(view, switch);
        let mut found = config.own_groups(&own, switch, frame_bytes).map_err(|it| self.placed(view, switch, it))?;
        found.iter_mut().for_each(|group| group.role = role);
        Ok(found)
    }

    fn own_groups(
        &self,
        view: &LinkView<'_>,
        switch: SwitchId,
        frame_bytes: Option<u64>,
    ) -> Result<Vec<GroupAtPort>, Problem> {
        let classes = Classes::new(self);
        let node = view.fabric.switch_node(switch);
        let ports: Vec<PortId> = (0..view.fabric.ports[node.index()].len()).map(PortId::from).collect();
        let profiles: Vec<_> =
            ports.iter().map(|port| resolved::groups(self, &classes, view, switch, *port)).collect::<Result<_, _>>()?;
        let frames = LinkView { mtu_bytes: frame_bytes.unwrap_or(view.mtu_bytes), ..*view };
        let pools: Vec<_> = self.pool.iter().filter(|pool| pool.side == Side::Ingress).collect();
        let shared = |at: usize| {
            let reserved: u64 =
                profiles.iter().flatten().flatten().filter(|of| of.pool == at).map(|of| of.reserved).sum();
            let own = self.port.iter().filter(|of| pools.get(at).is_some_and(|pool| pool.name == of.pool));
            let of_ports = own.map(|of| of.reserved.get()).sum::<u64>() * ports.len() as u64;
            let headroom: u64 = profiles.iter().flatten().flatten().map(|of| of.headroom).sum();
            let memory = view.memory_bytes(node);
            let all = pools.get(at).map_or(memory - headroom.min(memory / 2), |pool| pool.bytes.get());
            all.saturating_sub(reserved + of_ports)
        };
        let mut found = Vec::new();
        for (port, given) in ports.iter().zip(&profiles) {
            for group in classes.group.into_iter().collect::<BTreeSet<u8>>() {
                let Some(profile) = given[usize::from(group)].filter(|_| classes.group_is_lossless(group)) else {
                    continue;
                };
                let table = self.group.iter().position(|spec| spec.groups.contains(&group));
                let row = match table.map(|table| &self.group[table].lookup) {
                    Some(rows) => resolved::lookup(rows, view, switch, *port)?
                        .and_then(|row| rows.iter().position(|one| std::ptr::eq(one, row))),
                    None => None,
                };
                let of_group = |class: &usize| classes.group[*class] == group && classes.lossless >> class & 1 == 1;
                let queues: BTreeSet<u8> = (0..CLASSES).filter(of_group).map(|class| classes.queue[class]).collect();
                found.push(GroupAtPort {
                    role: None,
                    port: *port,
                    cable_m: resolved::cable_m(view, node, *port),
                    group,
                    queues: queues.into_iter().collect(),
                    table,
                    row,
                    pool: pools.get(profile.pool).map_or_else(String::new, |pool| pool.name.clone()),
                    shared_bytes: shared(profile.pool),
                    profile,
                    needed: resolved::needed(self, &frames, node, *port),
                });
            }
        }
        Ok(found)
    }
}
