//! A transport that has the first classes for itself, what it guarantees, and the room that it must have. What cannot
//! stand beside it, since it could hold its packets back, drop them or put others among them, is said in
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
    /// How many of the first classes it has for itself; all other transports' packets go so many below their own.
    pub classes: u8,
    /// What it guarantees, if anything.
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

    /// Checks that switches have room for what is guaranteed to find it, and for a packet of others' too if there are
    /// any.
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

    /// Lets each switch whose memory holds all that is guaranteed of its links keep as much.
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

    /// What a switch keeps for the reserved classes.
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

/// What a port's memory, or all of a switch's, must hold that keeps so many bytes by port, and what it does hold.
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
        // Signals have as much again where there is other traffic, and that and they need room for a packet.
        let times = if alone { 1 } else { 2 };
        Memory { needed: kept.saturating_mul(times).saturating_add(scenario.host.mtu.get()), buffer, per_port }
    }
}

#[cfg(test)]
mod tests {
    use fabric::FabricSpec;
    use units::Duration;

    use super::*;
    use scenario::read;

    const ONE: &str = "[[traffic]]\nsizes.constant = '1KB'\nflows = 1\narrivals = 'all_at_once'\n";

    #[test]
    fn what_is_guaranteed_needs_room() {
        let fabric = FabricSpec::Star(fabric::Star { hosts: 4, ..Default::default() }).build().unwrap();
        let queue_bytes: Vec<u64> = (0..fabric.links.len() as u64).map(|link| 6_000 + link % 2).collect();
        let guarantee = Some(Guarantee {
            class: 0,
            room_bytes: queue_bytes.clone(),
            queue_bytes,
            wait: Duration::ZERO,
            proven: true,
        });
        let reserved = Reserved { transport: 0, classes: 2, guarantee };
        let check = |buffer: &str, alone| {
            let scenario = read(&format!("switch.buffer.{buffer}\n{ONE}"), "test", &[]).unwrap();
            reserved.check_room(&scenario, &fabric, "harmony", alone).map_err(|problem| problem.message)
        };
        let room = reserved.room(&fabric, SwitchId(0)).unwrap();
        let [most, sum]: [u64; 2] = [*room.port_bytes.iter().max().unwrap(), room.port_bytes.iter().sum()];
        assert!(
            room.guaranteed == 1 && room.reserved == 2 && room.port_bytes.len() == 4 && (6_000..=6_001).contains(&most)
        );
        // A packet more, for signals; with other traffic, as much again for them.
        let needed = sum + 1_500;
        assert_eq!(check(&format!("shared.bytes = '{needed}B'"), true), Ok(()));
        let lacking = check(&format!("shared.bytes = '{}B'", needed - 1), true).unwrap_err();
        assert!(lacking.contains(&format!("the memory of switch0 needs {needed} bytes")), "{lacking}");
        assert!(check(&format!("shared.bytes = '{needed}B'"), false).is_err());
        assert_eq!(check(&format!("shared.bytes = '{}B'", needed + sum), false), Ok(()));
        assert_eq!(check("per_port.bytes = '14KB'", false), Ok(()));
    }

    #[test]
    fn all_that_is_guaranteed_is_kept_where_it_fits_and_else_what_must_be() {
        let fabric = FabricSpec::Star(fabric::Star { hosts: 4, ..Default::default() }).build().unwrap();
        let (queue_bytes, room_bytes) = (vec![9_000; fabric.links.len()], vec![6_000; fabric.links.len()]);
        let guarantee = Guarantee { class: 0, queue_bytes, room_bytes, wait: Duration::ZERO, proven: true };
        let kept = |bytes: u64, alone| {
            let text = format!("switch.buffer.per_port.bytes = '{bytes}B'\n{ONE}");
            let scenario = read(&text, "test", &[]).unwrap();
            let mut reserved = Reserved { transport: 0, classes: 2, guarantee: Some(guarantee.clone()) };
            reserved.check_room(&scenario, &fabric, "harmony", alone).ok()?;
            reserved.widen(&scenario, &fabric, alone);
            Some(reserved.room(&fabric, SwitchId(0)).unwrap().port_bytes)
        };
        assert_eq!(kept(10_500, true), Some(vec![9_000; 4]));
        assert_eq!(kept(10_499, true), Some(vec![6_000; 4]));
        assert_eq!(kept(7_500, true), Some(vec![6_000; 4]));
        assert_eq!(kept(7_499, true), None);
        assert_eq!(kept(19_499, false), Some(vec![6_000; 4]));
        assert_eq!(kept(19_500, false), Some(vec![9_000; 4]));
    }
}
