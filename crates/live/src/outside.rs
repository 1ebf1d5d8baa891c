//! What a process has open of its machine, beside the network: devices of attached hosts and files of captured links.

use driver::{Cut, Probes, TellsLosses};
use run::Plan;
use units::{NodeId, Problem};

use crate::attach::{self, Port};
use crate::board::workers_of;
use crate::capture::{self, Capture};

/// Which part of a run a process has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Share {
    /// All of it.
    Whole,
    /// One of several processes of this machine: which, and of how many.
    Process(usize, usize),
    /// One of several machines: which, and of how many.
    Machine(usize, usize),
}

impl Share {
    /// Whether a node is in it.
    pub fn has(self, cut: &Cut, node: NodeId) -> bool {
        match self {
            Share::Whole => true,
            Share::Process(me, of) | Share::Machine(me, of) => {
                workers_of(me, of, cut.parts()).contains(&cut.part_of(node))
            }
        }
    }
}

/// Devices and files that are open.
#[derive(Default)]
pub(crate) struct Outside {
    /// Devices of attached hosts.
    pub ports: Vec<Port>,
    /// Files of captured links.
    pub captures: Vec<Capture>,
    /// Tells them of losses.
    losses: Option<TellsLosses>,
}

impl Outside {
    /// Opens what belongs to the nodes of a part of a run. The first of several processes of a machine has to do so
    /// before the others, since it begins the files.
    ///
    /// # Errors
    /// Where there is no such device or link, or a file can't be written.
    pub fn open(plan: &Plan, cut: &Cut, share: Share) -> Result<Outside, Problem> {
        let has = |node| share.has(cut, node);
        let ports = attach::open(plan, has)?;
        let (captures, losses) = capture::open(plan, share, has)?;
        Ok(Outside { ports, captures, losses })
    }

    /// What makes the probes of a worker: those that the scenario asks for, and the one that tells files of losses.
    pub fn probes<'a>(&self, plan: &'a Plan) -> impl Fn() -> Probes + use<'a> {
        let losses = self.losses.clone();
        move || Probes::new(plan).telling(losses.as_ref())
    }
}
