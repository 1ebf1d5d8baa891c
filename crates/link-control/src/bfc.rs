//! Backpressure Flow Control (Goyal, Shah, Zhao, Nikolaidis, Alizadeh, Anderson: NSDI 2022): hop-by-hop flow control of
//! single flows with a bounded number of queues.
//!
//! Each egress port has a few physical queues, served by deficit round robin. A flow is identified by its virtual id, a
//! hash. When its first packet arrives at a port it is assigned an empty queue, and keeps it while it has packets there
//! and for two one-hop round trips after. If no queue is empty it shares one. A packet that makes its queue longer than
//! its share of the one-hop bandwidth-delay product, HRTT x rate / N_active, is counted against the upstream queue that
//! it came from until it leaves; while that count is above zero the upstream queue is paused. Packets carry the number
//! of the queue that they come from.
//!
//! `queues = "ideal"` gives each flow a queue of its own and pauses it by name: BFC without collisions, which Pyrrha's
//! authors run beside the real one.
//!
//! [`Departures`] lists what the published program of Pyrrha's authors does differently. `papers/pyrrha` compares with
//! its results.
//!
//! Control packets, class 0, go first and are never paused. Deliberately absent: limits of how many queues resume at
//! once, and the high-priority queue for flows' first packets, which the program of Pyrrha's authors lacks too.

mod assignment;
mod departures;
mod pauses;
mod switch;

use node::{NicControl, QueueDiscipline};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{HostId, PortId, Problem, SwitchId};

use crate::queue_frame::{FlowFrame, Frame, Name, NicPart};
use contract::link_control::{LinkScheme, LinkView};
use contract::{About, Compared, HeaderFormat, headers_of};
pub use departures::{Departure, Departures};
use node::flow_queues::HELD_CLASSES;

/// Configuration of BFC.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Queues of each egress port: `{ physical = 32 }` or `"ideal"`. Default: 32 physical queues.
    pub queues: Queues,
    /// Number of virtual flow ids. Switches and NICs treat flows with the same id as one flow. Default: 16384.
    pub vfids: u32,
    /// How long a flow keeps its queue after its last packet there has left, in one-hop round trips. Default: 2.
    pub sticky: f64,
    /// Departures from BFC: "published" for those of the program of Pyrrha's authors, or a list. Default: none.
    pub departures: Departures,
}

/// Queues of an egress port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Queues {
    /// This many queues, 1 to 128, which flows share.
    Physical(u32),
    /// A queue for each flow.
    Ideal,
}

impl Default for Config {
    fn default() -> Config {
        Config { queues: Queues::Physical(32), vfids: 16_384, sticky: 2.0, departures: Departures::default() }
    }
}

impl LinkScheme for Config {
    fn about(&self) -> About {
        About {
            title: "Backpressure Flow Control (BFC)",
            source: "Goyal et al., NSDI 2022",
            summary: "Each port assigns flows to its queues, and a queue that grows pauses the queues upstream that \
                      fill it.",
            needs: "switches: 32 to 128 queues a port, a table of flows, queue numbers in packets; hosts: NICs with a \
                    queue for each flow",
        }
    }

    fn compared(&self) -> Compared {
        Compared::With("rdma")
    }

    fn frames(&self) -> &'static dyn HeaderFormat {
        match self.queues {
            Queues::Physical(_) => headers_of::<Frame>(),
            Queues::Ideal => headers_of::<FlowFrame>(),
        }
    }

    fn check(&self) -> Result<(), Problem> {
        let Config { queues, vfids, sticky, departures: _ } = *self;
        if let Queues::Physical(count) = queues
            && !(1..=assignment::QUEUES_MAX).contains(&count)
        {
            let message = format!(
                "{count} is not between 1 and {}; for one queue a flow write \"ideal\"",
                assignment::QUEUES_MAX
            );
            return Err(Problem::new("queues.physical", message));
        }
        if !(1..=1 << pauses::NUMBER_BITS).contains(&vfids) {
            let message = format!("{vfids} is not between 1 and {}", 1 << pauses::NUMBER_BITS);
            return Err(Problem::new("vfids", message));
        }
        if !(0.0..=1e6).contains(&sticky) {
            return Err(Problem::new("sticky", format!("{sticky} is not between 0 and 1000000 round trips")));
        }
        Ok(())
    }

    fn advice(&self) -> Vec<Problem> {
        let physical = Config::default();
        if self.queues != Queues::Ideal {
            return Vec::new();
        }
        let idle = [
            ("vfids", self.vfids != physical.vfids, "has"),
            ("sticky", self.sticky != physical.sticky, "has"),
            ("departures", self.departures != physical.departures, "have"),
        ];
        let said = |(key, _, has): (&str, bool, &str)| {
            let message =
                format!("{has} no effect with queues = \"ideal\", where each flow has a queue of its own; delete it");
            Problem::new(key, message)
        };
        idle.into_iter().filter(|idle| idle.1).map(said).collect()
    }

    fn switch_control(&self, view: &LinkView<'_>, switch: SwitchId) -> Box<dyn QueueDiscipline> {
        Box::new(switch::SwitchPart::new(self, view, switch))
    }

    fn nic_control(&self, _: &LinkView<'_>, host: HostId, _: PortId) -> Option<Box<dyn NicControl>> {
        Some(Box::new(NicPart::new(self.host_name(), host)))
    }

    /// If each flow has its own queue, a packet waits only for packets of its own flow further downstream.
    fn deadlock_free(&self, _: bool) -> bool {
        self.queues == Queues::Ideal
    }

    fn keeps_flows(&self) -> bool {
        true
    }

    fn held_classes(&self) -> u8 {
        HELD_CLASSES
    }
}

impl Config {
    fn name(&self) -> Name {
        match self.queues {
            Queues::Physical(_) => Name::Number { vfids: self.vfids as u16 },
            Queues::Ideal => Name::Flow,
        }
    }

    /// How frames to a host name queues.
    fn host_name(&self) -> Name {
        if self.departures.has(Departure::HostsByFlow) { Name::Flow } else { self.name() }
    }
}
