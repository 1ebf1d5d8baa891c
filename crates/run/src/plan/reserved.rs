//! A transport that has the first classes for itself, and what cannot stand beside it: whatever could hold its packets back, drop
//! them or put others among them, since what it guarantees rests on none of that.

use contract::{Guarantee, SwitchRequirements};
use fabric::Fabric;
use node::{Buffer, Overflow, ReservedBuffer};
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
    /// The transport that reserves, if one does, by name and what it asks for; `key` says where a transport is named.
    pub(super) fn new(
        scenario: &Scenario,
        transports: &[(&'static str, SwitchRequirements)],
        key: impl Fn(usize) -> String,
        guarantee: impl Fn(usize) -> Option<Guarantee>,
    ) -> Result<Option<Reserved>, Problem> {
        let mut reserving = (0..transports.len()).filter(|&index| transports[index].1.reserved_classes > 0);
        let Some(index) = reserving.next() else { return Ok(None) };
        let (name, requirements) = transports[index];
        if let Some(other) = reserving.next() {
            let message = format!(
                "must have the first classes for itself, and so must {name} with the settings of {}: only one transport of a \
                 run can",
                key(index)
            );
            return Err(Problem::new(key(other), message));
        }
        check(scenario, name, requirements.reserved_classes)?;
        Ok(Some(Reserved {
            transport: index as u8,
            classes: requirements.reserved_classes,
            guarantee: guarantee(index),
        }))
    }

    /// Checks that switches have room for what is guaranteed to find it, and for a packet of others' too if there are any.
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
                    "{name} guarantees that nothing is lost, for which {} {node} needs {needed} bytes; there are {buffer}",
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

fn check(scenario: &Scenario, name: &str, classes: u8) -> Result<(), Problem> {
    let last = classes - 1;
    let refuse = |key: &str, message: String| Err(Problem::new(key, message));
    if scenario.sharing.limits_hosts() {
        let message = format!(
            "its limiters would queue what {name} sends behind other traffic and change its pace, on which what {name} guarantees \
             rests; share by \"aq\" or \"physical_queue\""
        );
        return refuse("sharing", message);
    }
    let held = scenario.flow_control.held_classes();
    if let Some(class) = (0..classes).find(|class| held >> class & 1 == 1) {
        let message = format!(
            "may hold back class {class}; {name} has the classes 0 to {last} for itself, and what it guarantees knows no pauses. \
             Other traffic goes below: let it hold back classes from {classes} on alone"
        );
        return refuse("flow_control", message);
    }
    let mixed = |classes_of: &Vec<u8>| classes_of.len() > 1 && classes_of.iter().any(|class| *class < classes);
    if let Some(level) = scenario.switch.levels.iter().position(mixed) {
        let message =
            format!("{name} has the classes 0 to {last} for itself, which go first: none can be served in turn");
        return refuse(&format!("switch.levels[{level}]"), message);
    }
    if scenario.switch.overflow == Some(Overflow::Trim) {
        let message = format!("sends trimmed headers on in class 0, which {name} has for itself");
        return refuse("switch.overflow", message);
    }
    if scenario.switch.early_drop {
        let message = format!("drops packets of {name} too, which guarantees that none is");
        return refuse("switch.early_drop", message);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use fabric::FabricSpec;
    use node::Balancing;
    use units::Duration;

    use super::*;
    use scenario::read;

    const ONE: &str = "[[traffic]]\nsizes.constant = '1KB'\nflows = 1\narrivals = 'all_at_once'\n";

    fn requirements(reserved_classes: u8) -> SwitchRequirements {
        SwitchRequirements { reserved_classes, ..SwitchRequirements::only(Balancing::Spray) }
    }

    fn reserved(settings: &str, transports: &[(&'static str, u8)]) -> Result<Option<Reserved>, Problem> {
        let scenario = read(&format!("{settings}\n{ONE}"), "test", &[]).unwrap_or_else(|error| panic!("{error}"));
        let transports: Vec<_> = transports.iter().map(|&(name, classes)| (name, requirements(classes))).collect();
        Reserved::new(&scenario, &transports, |index| format!("traffic[{index}].transport"), |_| None)
    }

    #[test]
    fn one_transport_may_reserve() {
        assert_eq!(reserved("", &[("dctcp", 0), ("dcpim", 0)]), Ok(None));
        let some = Reserved { transport: 1, classes: 2, guarantee: None };
        assert_eq!(reserved("", &[("dctcp", 0), ("harmony", 2)]), Ok(Some(some)));
        let problem = reserved("", &[("harmony", 2), ("dctcp", 0), ("rsvp", 2)]).unwrap_err();
        assert_eq!(problem.key, "traffic[2].transport");
        assert!(problem.message.contains("harmony with the settings of traffic[0].transport"), "{problem:?}");
    }

    #[test]
    fn what_would_break_it_is_refused() {
        let two = [("harmony", 2), ("dctcp", 0)];
        for (settings, key, words) in [
            ("flow_control = 'pfc'", "flow_control", "class 1; harmony has the classes 0 to 1"),
            ("flow_control = 'bfc'", "flow_control", "from 2 on"),
            ("switch.levels = [[5, 6], [1, 4]]", "switch.levels[1]", "go first"),
            ("switch.overflow = 'trim'", "switch.overflow", "class 0"),
            (
                "switch.marking.step.threshold = '9KB'\nswitch.early_drop = true",
                "switch.early_drop",
                "guarantees that none is",
            ),
            (
                "sharing = 'rate_limiter'\nentity = [{ name = 'a', hosts = '0-3', request = [{ share.absolute = '1Gbps', \
                 position = 'ingress' }] }]",
                "sharing",
                "pace",
            ),
        ] {
            let problem = reserved(settings, &two).unwrap_err();
            assert_eq!(problem.key, key);
            assert!(problem.message.contains(words), "{words} is not in {}", problem.message);
            assert_eq!(reserved(settings, &[("dctcp", 0)]), Ok(None));
        }
        // What leaves the reserved classes alone stands beside them.
        for settings in [
            "flow_control = { pfc = { classes = [2, 3, 4, 5, 6, 7] } }",
            "flow_control = { pyrrha = { classes = [3] } }",
            "switch.levels = [[0], [2, 3]]",
            "switch.overflow = 'tail_drop'",
        ] {
            assert!(reserved(settings, &two).is_ok(), "{settings}");
        }
        assert!(reserved("flow_control = 'bfc'", &[("fastpass", 1), ("dctcp", 0)]).is_ok());
    }

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
