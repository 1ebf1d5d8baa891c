//! A transport that has the first classes for itself: what it guarantees, and the buffer that it needs. Settings that
//! could hold its packets back, drop them or mix others with them are refused in
//! [`compatibility`](crate::compatibility).

use catalogue::Transport;
use contract::{Guarantee, NetworkView, SwitchRequirements};
use fabric::Fabric;
use node::{Buffer, ReservedBuffer};
use units::{LinkId, Problem, SwitchId};

use scenario::Scenario;

/// The transport of a run that reserves classes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reserved {
    /// Its index.
    pub transport: u8,
    /// How many of the first classes it has for itself; all other transports' packets go this many below their own.
    pub classes: u8,
    /// Its guarantee, if it has one.
    pub guarantee: Option<Guarantee>,
}

impl Reserved {
    /// The transport that reserves, if one does.
    pub(super) fn new(
        transports: &[Transport],
        requirements: &[SwitchRequirements],
        network: &NetworkView,
    ) -> Option<Reserved> {
        let index = requirements.iter().position(|required| required.reserved_classes > 0)?;
        Some(Reserved {
            transport: index as u8,
            classes: requirements[index].reserved_classes,
            guarantee: transports[index].as_scheme().guarantee(network),
        })
    }

    /// Checks that each switch has room for the bytes that it reserves, for as many again if there is other traffic,
    /// and for one more packet.
    pub(super) fn check_room(
        &self,
        scenario: &Scenario,
        fabric: &Fabric,
        name: &str,
        alone: bool,
    ) -> Result<(), Problem> {
        for switch in (0..fabric.switches).map(SwitchId) {
            let Some(ReservedBuffer { port_bytes, .. }) = self.room(fabric, switch) else { return Ok(()) };
            let Memory { needed, buffer, per_port } = Memory::of(scenario, &port_bytes, alone);
            if needed > buffer {
                let node = &fabric.names[fabric.switch_node(switch).index()];
                let message = format!(
                    "{name} guarantees that no packet is lost; for that {} {node} needs {needed} bytes of buffer, and \
                     it has {buffer}",
                    if per_port { "a port of" } else { "the memory of" },
                );
                return Err(Problem::new("switch.buffer", message));
            }
        }
        Ok(())
    }

    /// Lets each switch reserve all that is guaranteed to suffice for its links, if its memory holds that much.
    pub(super) fn widen(&mut self, scenario: &Scenario, fabric: &Fabric, alone: bool) {
        let Some(guarantee) = &mut self.guarantee else { return };
        for switch in (0..fabric.switches).map(SwitchId) {
            let links = &fabric.ports[fabric.switch_node(switch).index()];
            let most: Vec<u64> = links.iter().map(|link| guarantee.queue_bytes[link.index()]).collect();
            let memory = Memory::of(scenario, &most, alone);
            if memory.needed <= memory.buffer {
                links.iter().zip(most).for_each(|(link, most)| guarantee.room_bytes[link.index()] = most);
            }
        }
    }

    /// The room that a switch keeps for the reserved classes.
    pub(super) fn room(&self, fabric: &Fabric, switch: SwitchId) -> Option<ReservedBuffer> {
        let guarantee = self.guarantee.as_ref()?;
        let links = &fabric.ports[fabric.switch_node(switch).index()];
        let kept = |link: &LinkId| guarantee.room_bytes[link.index()];
        Some(ReservedBuffer {
            guaranteed: guarantee.class + 1,
            reserved: self.classes,
            port_bytes: links.iter().map(kept).collect(),
        })
    }
}

/// The memory of a port, or of a switch whose ports share it: the bytes that it needs to reserve `port_bytes`, and
/// those that it has.
struct Memory {
    needed: u64,
    buffer: u64,
    per_port: bool,
}

impl Memory {
    fn of(scenario: &Scenario, port_bytes: &[u64], alone: bool) -> Memory {
        let (buffer, per_port) = match scenario.switch.buffer {
            Buffer::PerPort { bytes } => (bytes.get(), true),
            Buffer::Shared { bytes, .. } => (bytes.get(), false),
        };
        let ports = port_bytes.iter().copied();
        let kept: u64 = if per_port { ports.max().unwrap_or(0) } else { ports.fold(0, u64::saturating_add) };
        // Beside other traffic, signals have as many bytes reserved again. One more packet must fit in any case.
        let times = if alone { 1 } else { 2 };
        Memory { needed: kept.saturating_mul(times).saturating_add(scenario.host.mtu.get()), buffer, per_port }
    }
}

#[cfg(test)]
mod tests;
