//! Flow control between neighbours: the mechanisms, one line each, apart from the transports above them.
//!
//! Any transport runs over any of them. Each has a part in switches, and one in NICs where hosts answer.

use contract::link_control::{LinkScheme, LinkView};
use contract::{About, Compared, Family};
use node::Packet;
use node::wire::{Malformed, Reader, Writer};
use units::{Problem, SwitchId};

use crate::list::list;

list! {
    /// A flow control and its settings. In a scenario: a name (`"pfc"`, all defaults) or a table (`{ pfc = { alpha =
    /// 2.0 } }`). With none, a packet that finds no room is lost.
    #[derive(Default)]
    LinkControl of LinkScheme, "a flow control's name";
    none "none" None;
    "pfc" Pfc(link_control::pfc::Config),
    "bfc" Bfc(link_control::bfc::Config),
    "per_flow_queues" PerFlowQueues(link_control::per_flow_queues::Config),
    "congestion_isolation" CongestionIsolation(link_control::congestion_isolation::Config),
    "pyrrha" Pyrrha(link_control::pyrrha::Config),
    "cbfc" Cbfc(link_control::cbfc::Config),
    "mmu" Mmu(link_control::mmu::Config),
}

impl LinkControl {
    /// What it is.
    pub fn about(&self) -> About {
        const NONE: About = About {
            title: "No flow control",
            source: "",
            summary: "A switch without free buffer drops the packet.",
            needs: "nothing",
        };
        self.as_scheme().map_or(NONE, LinkScheme::about)
    }

    /// Its family: whatever holds back the neighbour makes a network lossless.
    pub fn family(&self) -> Option<Family> {
        self.as_scheme().map(|_| Family::Lossless)
    }

    /// How `clearway compare --all` runs it.
    pub fn compared(&self) -> Compared {
        self.as_scheme().map_or(Compared::No, LinkScheme::compared)
    }

    /// What its types can't forbid; keys begin with its name.
    pub fn check(&self) -> Result<(), Problem> {
        let checked = self.as_scheme().map_or(Ok(()), LinkScheme::check);
        checked.map_err(|problem| problem.under(self.name()))
    }

    /// Its settings that have no effect beside its others; keys begin with its name.
    pub fn advice(&self) -> Vec<Problem> {
        let advice = self.as_scheme().map_or(Vec::new(), LinkScheme::advice);
        advice.into_iter().map(|problem| problem.under(self.name())).collect()
    }

    /// What a switch must be like for it; keys begin with its name.
    pub fn check_on(&self, view: &LinkView<'_>, switch: SwitchId) -> Result<(), Problem> {
        let checked = self.as_scheme().map_or(Ok(()), |scheme| scheme.check_on(view, switch));
        checked.map_err(|problem| problem.under(self.name()))
    }

    /// A setting with which it works on a switch, but hardly as it is meant; the key begins with its name.
    pub fn doubt(&self, view: &LinkView<'_>, switch: SwitchId) -> Option<Problem> {
        Some(self.as_scheme()?.doubt(view, switch)?.under(self.name()))
    }

    /// Appends a frame to a neighbour as it travels.
    pub fn emit_frame(&self, frame: &Packet, to: &mut Writer<'_>) {
        if let Some(scheme) = self.as_scheme() {
            scheme.frames().emit(frame, &[], to);
        }
    }

    /// What a frame says, in the words of its paper.
    pub fn says(&self, frame: &Packet) -> String {
        self.as_scheme().map_or_else(String::new, |scheme| scheme.frames().says(frame))
    }

    /// Reads a frame from a wire into `frame`.
    pub fn parse_frame(&self, from: &mut Reader<'_>, frame: &mut Packet) -> Result<(), Malformed> {
        let scheme = self.as_scheme().ok_or(Malformed { what: "frame: there is no flow control" })?;
        scheme.frames().parse(from, frame)
    }
}
