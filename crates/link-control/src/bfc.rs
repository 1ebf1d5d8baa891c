//! Backpressure Flow Control (Goyal, Shah, Zhao, Nikolaidis, Alizadeh, Anderson: NSDI 2022): per-hop flow control of single
//! flows with a bounded number of queues.
//!
//! Each egress port has a few physical queues, served by deficit round robin. A flow is known by its virtual id, a hash; when
//! its first packet comes to a port it is given an empty queue, and keeps it while it has packets there and for two one-hop round
//! trips after. When no queue is empty it shares one. A packet that makes its queue longer than its share of the one-hop
//! bandwidth-delay product, HRTT x rate / N_active, is counted against the upstream queue that it came from, until it leaves: as
//! long as that count is above zero the upstream queue pauses. Packets carry the number of the queue that they come from.
//!
//! `queues = "ideal"` gives each flow a queue of its own and pauses it by name: BFC without collisions, as Pyrrha's authors
//! run it beside the real one.
//!
//! [`Departures`] says what else the published program of Pyrrha's authors does, whose results `papers/pyrrha` holds this against.
//!
//! Control packets, class 0, go first and are never held. Absent on purpose: limits of how many queues resume at once, and a
//! queue of high priority for flows' first packets; what the program lacks in which Pyrrha's authors run BFC.

mod assignment;
mod departures;
mod pauses;
mod switch;

use node::{NicControl, QueueDiscipline};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{HostId, PortId, Problem, SwitchId};

use crate::queue_frame::{Name, NicPart};
use contract::About;
use contract::link_control::{LinkScheme, LinkView};
pub use departures::{Departure, Departures};
use node::flow_queues::HELD_CLASSES;

/// What a scenario may set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Queues of each egress port.
    pub queues: Queues,
    /// Virtual flow ids; flows with the same one are one flow to switches and NICs.
    pub vfids: u32,
    /// How long a flow keeps its queue after its last packet there has left, in one-hop round trips.
    pub sticky: f64,
    /// Where the published program departs from BFC: "published" for all of it, or a list.
    pub departures: Departures,
}

/// Queues of an egress port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Queues {
    /// So many, 1 to 128, that flows share.
    Physical(u32),
    /// One for each flow.
    Ideal,
}

impl Default for Config {
    fn default() -> Config {
        Config { queues: Queues::Physical(32), vfids: 16_384, sticky: 2.0, departures: Departures::default() }
    }
}

impl LinkScheme for Config {
    type Frame = crate::queue_frame::Frame;

    const ABOUT: About = About {
        title: "Backpressure Flow Control (BFC)",
        source: "Goyal et al., NSDI 2022",
        summary: "Flows are given the queues of each port, and a queue that grows pauses the queues upstream that fill it.",
        needs: "32 to 128 queues a port, a table of flows, queue numbers in packets, NICs with a queue a flow",
    };

    fn check(&self) -> Result<(), Problem> {
        let Config { queues, vfids, sticky, departures } = *self;
        if let Queues::Physical(count) = queues
            && !(1..=assignment::QUEUES_MAX).contains(&count)
        {
            let message = format!("{count} is not between 1 and {}; \"ideal\" has one a flow", assignment::QUEUES_MAX);
            return Err(Problem::new("queues.physical", message));
        }
        if !(1..=1 << pauses::NUMBER_BITS).contains(&vfids) {
            let message = format!("{vfids} is not between 1 and {}", 1 << pauses::NUMBER_BITS);
            return Err(Problem::new("vfids", message));
        }
        if !(0.0..=1e6).contains(&sticky) {
            return Err(Problem::new("sticky", format!("{sticky} is not between 0 and 1000000 round trips")));
        }
        let physical = Config::default();
        if queues == Queues::Ideal && (vfids, sticky) != (physical.vfids, physical.sticky) {
            let key = if vfids == physical.vfids { "sticky" } else { "vfids" };
            return Err(Problem::new(key, "has no effect with queues = \"ideal\": each flow has its own; delete it"));
        }
        if queues == Queues::Ideal && departures != Departures::default() {
            let message = "have no effect with queues = \"ideal\": each flow has its own; delete them";
            return Err(Problem::new("departures", message));
        }
        Ok(())
    }

    fn switch_control(&self, view: &LinkView<'_>, switch: SwitchId) -> Result<Box<dyn QueueDiscipline>, Problem> {
        Ok(Box::new(switch::SwitchPart::new(self, view, switch)))
    }

    fn nic_control(&self, _: &LinkView<'_>, host: HostId, _: PortId) -> Option<Box<dyn NicControl>> {
        Some(Box::new(NicPart::new(self.host_name(), host)))
    }

    /// Where each flow has a queue of its own, a packet waits only for packets of its own flow that are further on.
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

    /// By what a host's queues are called.
    fn host_name(&self) -> Name {
        if self.departures.has(Departure::HostsByFlow) { Name::Flow } else { self.name() }
    }
}
