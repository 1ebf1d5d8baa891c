//! Settings that some switches have of their own: a fabric of leaves and spines has a configuration for each role.

use std::borrow::Cow;

use contract::link_control::LinkView;
use node::Buffer;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Bytes, Problem, Rate, SwitchId};

use super::{Config, GroupSpec, LevelSpec, Maps, MeterSpec, PoolSpec, PortSpec, QueueSpec, Watchdog, resolved};

/// Settings of some switches, in place of all those of `flow_control.mmu` but `quanta` and `refresh`. A key that is
/// left out has its default, and not the value above.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RoleSpec {
    /// Names of switches. An asterisk at the end stands for any rest: `"leaf*"`.
    pub switches: Vec<String>,
    /// All memory of each of these switches. Default: `switch.buffer`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub buffer: Option<Bytes>,
    /// As `flow_control.mmu.cell`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cell: Option<Bytes>,
    /// As `flow_control.mmu.lossless`. Default: 1 to 7.
    #[serde(default = "lossless")]
    pub lossless: Vec<u8>,
    /// As `flow_control.mmu.pool`.
    #[serde(default)]
    pub pool: Vec<PoolSpec>,
    /// As `flow_control.mmu.group`.
    #[serde(default)]
    pub group: Vec<GroupSpec>,
    /// As `flow_control.mmu.queue`.
    #[serde(default)]
    pub queue: Vec<QueueSpec>,
    /// As `flow_control.mmu.port`.
    #[serde(default)]
    pub port: Vec<PortSpec>,
    /// As `flow_control.mmu.schedule`.
    #[serde(default)]
    pub schedule: Vec<LevelSpec>,
    /// As `flow_control.mmu.meter`.
    #[serde(default)]
    pub meter: Vec<MeterSpec>,
    /// As `flow_control.mmu.max_rate`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_rate: Option<Rate>,
    /// As `flow_control.mmu.burst`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst: Option<Bytes>,
    /// As `flow_control.mmu.maps`.
    #[serde(default)]
    pub maps: Maps,
    /// As `flow_control.mmu.watchdog`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watchdog: Option<Watchdog>,
}

fn lossless() -> Vec<u8> {
    Config::default().lossless
}

impl RoleSpec {
    fn names(&self, switch: &str) -> bool {
        self.switches.iter().any(|pattern| matches(pattern, switch))
    }

    /// The same as settings of all switches.
    pub(super) fn config(&self) -> Config {
        let RoleSpec { switches: _, buffer: _, cell, lossless, pool, group, queue, port, .. } = self.clone();
        let RoleSpec { schedule, meter, max_rate, burst, maps, watchdog, .. } = self.clone();
        let own = Config { cell, lossless, pool, group, queue, port, schedule, ..Config::default() };
        Config { meter, max_rate, burst, maps, watchdog, ..own }
    }
}

fn matches(pattern: &str, name: &str) -> bool {
    pattern.strip_suffix('*').map_or(pattern == name, |start| name.starts_with(start))
}

impl Config {
    /// The number of a switch's role; `None` if it has none.
    pub(super) fn role_of(&self, view: &LinkView<'_>, switch: SwitchId) -> Option<usize> {
        let name = &view.fabric.names[view.fabric.switch_node(switch).index()];
        self.role.iter().position(|role| role.names(name))
    }

    /// The settings of one switch, and the view with its memory.
    pub(super) fn at<'a>(&'a self, view: &LinkView<'a>, switch: SwitchId) -> (Cow<'a, Config>, LinkView<'a>) {
        let Some(role) = self.role_of(view, switch).map(|index| &self.role[index]) else {
            return (Cow::Borrowed(self), LinkView { ..*view });
        };
        let buffer = role.buffer.map_or(view.buffer, |bytes| Buffer::Shared { bytes, alpha: None });
        // Both ends of a link count the same quanta.
        let config = Config { quanta: self.quanta, refresh: self.refresh, ..role.config() };
        (Cow::Owned(config), LinkView { buffer, ..*view })
    }

    /// The settings of all switches and of each role.
    pub(super) fn every(&self) -> impl Iterator<Item = Cow<'_, Config>> {
        std::iter::once(Cow::Borrowed(self)).chain(self.role.iter().map(|role| Cow::Owned(role.config())))
    }

    /// A problem of a switch, under the key of the role that the switch has.
    pub(super) fn placed(&self, view: &LinkView<'_>, switch: SwitchId, problem: Problem) -> Problem {
        match self.role_of(view, switch) {
            Some(index) => problem.under(format!("role[{index}]")),
            None => problem,
        }
    }

    /// Checks of each role what the types can't express.
    pub(super) fn check_roles(&self) -> Result<(), Problem> {
        for (index, role) in self.role.iter().enumerate() {
            if role.switches.is_empty() {
                let message = "names no switch; write names, such as [\"leaf*\"]";
                return Err(Problem::new(format!("role[{index}].switches"), message));
            }
            if let Some(buffer) = role.buffer.filter(|of| of.get() < 9_216 || of.get() > u64::from(u32::MAX)) {
                let message = format!("{buffer} is not between 10KB and 4GB");
                return Err(Problem::new(format!("role[{index}].buffer"), message));
            }
            resolved::check(&role.config()).map_err(|problem| problem.under(format!("role[{index}]")))?;
        }
        Ok(())
    }

    /// Checks that each name is that of a switch, and that this switch has one role at most.
    pub(super) fn check_names(&self, view: &LinkView<'_>, switch: SwitchId) -> Result<(), Problem> {
        let name = |id: u32| &view.fabric.names[view.fabric.switch_node(SwitchId(id)).index()];
        let own = name(switch.0);
        let mut roles = (0..self.role.len()).filter(|index| self.role[*index].names(own));
        if let (Some(first), Some(second)) = (roles.next(), roles.next()) {
            let message = format!("names {own}, and so does role[{first}]; a switch has one role");
            return Err(Problem::new(format!("role[{second}].switches"), message));
        }
        if switch.0 > 0 {
            return Ok(());
        }
        for (index, role) in self.role.iter().enumerate() {
            let unknown = |pattern: &&String| (0..view.fabric.switches).all(|id| !matches(pattern, name(id)));
            if let Some(pattern) = role.switches.iter().find(unknown) {
                let message = format!("\"{pattern}\" is the name of no switch; the first of them is {}", name(0));
                return Err(Problem::new(format!("role[{index}].switches"), message));
            }
        }
        Ok(())
    }
}
